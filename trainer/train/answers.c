/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.c - what other ranks ask for: looked up, compared with what they were told already, computed and packed,
 * some hundred rows of one type at a time, which the source fetches side by side.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "answers.h"

#define ANSWERS_NO_MEMORY "for a batch; lower --batch or the fan-outs"
#define ANSWERS_AT_ONCE   256u
#define ANSWERS_NO_ROW    UINT32_MAX /* in place of a computed row                         */
#define ANSWERS_ARENA_MAX ((size_t)1 << 34)

typedef struct answers_chunk {
    weir_train_ask asks[ANSWERS_AT_ONCE]; /* of one type */
    uint32_t count;
    uint64_t vertices[ANSWERS_AT_ONCE], events[ANSWERS_AT_ONCE];
    int64_t before_us[ANSWERS_AT_ONCE], since_us[ANSWERS_AT_ONCE], until_us[ANSWERS_AT_ONCE];
    uint8_t same[ANSWERS_AT_ONCE]; /* 1: the fixed part is that of the last ask for the vertex */
    uint32_t row[ANSWERS_AT_ONCE]; /* among those that are computed, or ANSWERS_NO_ROW     */
} answers_chunk;

weir_err weir_train_answers_open(const weir_train_owners *owners, const weir_nn_shape *shape, weir_train_wire wire,
                                 bool timed, weir_train_answers *answers) {
    *answers = (weir_train_answers){.lengths = weir_calloc(owners->ranks, sizeof *answers->lengths),
                                    .received_lengths = weir_calloc(owners->ranks, sizeof *answers->received_lengths)};
    bool all = answers->lengths && answers->received_lengths;
    weir_err err = all ? weir_train_form_open(shape, wire, timed, &answers->form) : WEIR_NOMEM(ANSWERS_NO_MEMORY);
    if (!err) err = weir_arena_open(ANSWERS_ARENA_MAX, &answers->arena);
    if (err) weir_train_answers_close(answers);
    return err;
}

void weir_train_answers_close(weir_train_answers *answers) {
    weir_train_form_close(&answers->form);
    weir_buf_free(&answers->answers);
    weir_buf_free(&answers->numbers);
    weir_buf_free(&answers->slots);
    weir_buf_free(&answers->received);
    weir_arena_close(answers->arena);
    weir_free(answers->lengths);
    weir_free(answers->received_lengths);
    *answers = (weir_train_answers){.lengths = NULL};
}

uint64_t weir_train_answers_bytes(const weir_train_answers *answers) {
    return answers->answers.capacity + answers->numbers.capacity + answers->slots.capacity +
           answers->received.capacity + weir_arena_used(answers->arena);
}

/* --- to others ---------------------------------------------------------------------------------------------------- */

/* The asks from here on that are of one type. An ask is looked at before its type is believed. */
static weir_err answers_take(answers_chunk *c, const weir_train_owners *owners, const char **atp, const char *end) {
    weir_err err = WEIR_OK;
    for (c->count = 0; !err && c->count < ANSWERS_AT_ONCE; c->count++) {
        const uint32_t i = c->count;
        if ((size_t)(end - *atp) < sizeof *c->asks) break;
        memcpy(&c->asks[i], *atp, sizeof *c->asks);
        if (c->asks[i].type != c->asks[0].type) break;
        err = weir_train_asked(owners, &c->asks[i], &c->vertices[i]);
        c->before_us[i] = c->asks[i].before_us;
        c->events[i] = c->asks[i].event;
        c->same[i] = 0;
        *atp += sizeof *c->asks;
    }
    return err;
}

/* Finds the fixed parts that the rank was told last, and notes the others. */
static weir_err answers_compare(weir_train_answers *a, answers_chunk *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        const unsigned parts = c->asks[i].parts;
        bool first;
        if (!(parts & WEIR_TRAIN_FIXED)) continue;
        weir_train_last *last = weir_train_last_of(&a->told, c->asks[i].type, c->vertices[i], &first);
        if (!last) return WEIR_NOMEM(ANSWERS_NO_MEMORY);
        c->same[i] = !first && (parts & WEIR_TRAIN_AGAIN) && last->what == c->since_us[i];
        last->what = c->since_us[i];
    }
    return WEIR_OK;
}

/* Rows of which anything is to be said. */
static weir_err answers_compute(weir_train_answers *a, weir_inputs *inputs, answers_chunk *c) {
    const uint32_t type = c->asks[0].type;
    const weir_train_form_type *t = &a->form.types[type];
    const size_t width = t->fixed + t->moving;
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        bool fixed = c->asks[i].parts & WEIR_TRAIN_FIXED && !c->same[i],
             moving = c->asks[i].parts & WEIR_TRAIN_MOVING && t->moving;
        c->row[i] = fixed || moving ? count : ANSWERS_NO_ROW;
        if (c->row[i] == ANSWERS_NO_ROW) continue;
        c->vertices[count] = c->vertices[i];
        c->before_us[count] = c->before_us[i];
        c->events[count++] = c->events[i];
    }
    weir_buf_clear(&a->numbers);
    weir_buf_clear(&a->slots);
    weir_real *numbers = (weir_real *)(void *)weir_buf_reserve(&a->numbers, count * width * sizeof *numbers + 1);
    uint32_t *slots = (uint32_t *)(void *)weir_buf_reserve(&a->slots, count * t->categories * sizeof *slots + 1);
    if (!numbers || !slots) return WEIR_NOMEM(ANSWERS_NO_MEMORY);
    const weir_sample_vertices rows = {.vertices = c->vertices,
                                       .before_us = c->before_us,
                                       .events = c->events,
                                       .count = count,
                                       .type = (uint16_t)type};
    return weir_inputs_rows(inputs, &rows, numbers, slots);
}

/* What of the row follows, and how long it and what stands before it are. */
static unsigned answers_parts(const weir_train_answers *a, const weir_train_ask *ask, bool same, size_t *headp,
                              size_t *bytesp) {
    unsigned parts = ask->parts & WEIR_TRAIN_ROW;
    *headp = ask->parts & WEIR_TRAIN_SPAN ? 2 * sizeof(int64_t) : 0;
    *headp += ask->parts & WEIR_TRAIN_AGAIN ? 1 : 0;
    if (same) parts &= ~(unsigned)WEIR_TRAIN_FIXED;
    *bytesp = weir_train_form_bytes(&a->form, ask->type, parts);
    return parts;
}

static weir_err answers_write(weir_train_answers *a, const answers_chunk *c) {
    const uint32_t type = c->asks[0].type;
    const weir_train_form_type *t = &a->form.types[type];
    const weir_real *numbers = (const weir_real *)(const void *)a->numbers.bytes;
    const uint32_t *slots = (const uint32_t *)(const void *)a->slots.bytes;
    for (uint32_t i = 0; i < c->count; i++) {
        const weir_train_ask *ask = &c->asks[i];
        size_t head, bytes;
        const unsigned parts = answers_parts(a, ask, c->same[i], &head, &bytes);
        if (ask->parts & WEIR_TRAIN_SPAN) {
            weir_buf_append(&a->answers, &c->since_us[i], sizeof c->since_us[i]);
            weir_buf_append(&a->answers, &c->until_us[i], sizeof c->until_us[i]);
        }
        if (ask->parts & WEIR_TRAIN_AGAIN) weir_buf_append(&a->answers, &c->same[i], 1);
        if (c->row[i] == ANSWERS_NO_ROW) continue;
        char *packed = weir_buf_reserve(&a->answers, bytes + 1);
        if (!packed) break;
        weir_train_form_pack(&a->form, type, parts, numbers + (size_t)c->row[i] * (t->fixed + t->moving),
                             slots + (size_t)c->row[i] * t->categories, packed);
        weir_buf_commit(&a->answers, bytes);
    }
    return weir_buf_err(&a->answers);
}

static void answers_begin(weir_train_answers *a) {
    weir_arena_reset(a->arena);
    a->told = (weir_table){.arena = a->arena};
}

/* The next asks of one rank, compared with those before. */
static weir_err answers_next(weir_train_answers *a, const weir_train_owners *owners, weir_inputs *inputs,
                             const char **atp, const char *end, answers_chunk *c) {
    weir_err err = answers_take(c, owners, atp, end);
    unsigned parts = 0;
    for (uint32_t i = 0; i < c->count; i++)
        parts |= c->asks[i].parts;
    if (err || !a->form.timed || !(parts & (WEIR_TRAIN_FIXED | WEIR_TRAIN_SPAN))) return err;
    const weir_sample_vertices of = {
        .vertices = c->vertices, .before_us = c->before_us, .count = c->count, .type = c->asks[0].type};
    err = weir_inputs_spans(inputs, &of, c->since_us, c->until_us);
    return err ? err : answers_compare(a, c);
}

weir_err weir_train_answers_expect(weir_train_answers *a, const weir_train_owners *owners, weir_inputs *inputs,
                                   const char *asks, uint64_t bytes, uint64_t *expectedp) {
    const char *at = asks, *end = asks + bytes;
    answers_chunk c = {.count = 0};
    weir_err err = WEIR_OK;
    *expectedp = 0;
    answers_begin(a);
    while (!err && (size_t)(end - at) >= sizeof *c.asks) {
        err = answers_next(a, owners, inputs, &at, end, &c);
        for (uint32_t i = 0; !err && i < c.count; i++) {
            size_t head, rest;
            answers_parts(a, &c.asks[i], c.same[i], &head, &rest);
            *expectedp += head + rest;
        }
    }
    return err;
}

/* To one rank. */
static weir_err answers_make(weir_train_answers *a, const weir_train_owners *owners, weir_inputs *inputs,
                             const char *at, const char *end) {
    answers_chunk c = {.count = 0};
    weir_err err = WEIR_OK;
    answers_begin(a);
    while (!err && (size_t)(end - at) >= sizeof *c.asks) {
        err = answers_next(a, owners, inputs, &at, end, &c);
        if (!err) err = answers_compute(a, inputs, &c);
        if (!err) err = answers_write(a, &c);
    }
    return err;
}

weir_err weir_train_answers_exchange(weir_train_answers *a, const weir_train_owners *owners, weir_inputs *inputs,
                                     const weir_buf *asked, const uint64_t *asked_bytes, weir_comm *comm) {
    const char *at = asked->bytes;
    weir_err err = WEIR_OK;
    weir_buf_clear(&a->answers);
    weir_buf_clear(&a->received);
    for (uint32_t rank = 0; !err && rank < owners->ranks; rank++) {
        size_t before = a->answers.length;
        err = answers_make(a, owners, inputs, at, at + asked_bytes[rank]);
        a->lengths[rank] = a->answers.length - before;
        at += asked_bytes[rank];
    }
    return err ? err : weir_comm_exchange(comm, a->answers.bytes, a->lengths, &a->received, a->received_lengths);
}

/* --- from others -------------------------------------------------------------------------------------------------- */

/* One answer, of the ask `number`; *atp goes on behind it. earlier: the ask's, of all. */
static weir_err answers_put_one(const weir_train_answers *a, const char *asks, uint32_t number, const uint32_t *earlier,
                                const weir_train_rows_to *to, const char **atp, const char *end) {
    const size_t left = (size_t)(end - *atp);
    weir_train_ask ask, last;
    size_t head, bytes;
    memcpy(&ask, asks + number * sizeof ask, sizeof ask);
    const weir_train_form_type *t = &a->form.types[ask.type];
    answers_parts(a, &ask, false, &head, &bytes);
    const bool same = ask.parts & WEIR_TRAIN_AGAIN && left >= head && (*atp)[head - 1];
    const unsigned parts = answers_parts(a, &ask, same, &head, &bytes);
    if (left < head || left - head < bytes)
        return WEIR_ERR(WEIR_ECORRUPT, "another rank answered too little; all ranks need the same program and --wire");
    const size_t width = t->fixed + t->moving;
    weir_real *numbers = to->numbers[ask.type];
    uint32_t *slots = to->slots[ask.type];
    if (ask.parts & WEIR_TRAIN_SPAN) memcpy(&to->spans[ask.type][2 * (size_t)ask.row], *atp, 2 * sizeof(int64_t));
    if (same) {
        WEIR_ASSERT(earlier && earlier[number] < number);
        memcpy(&last, asks + earlier[number] * sizeof last, sizeof last);
        WEIR_ASSERT(last.type == ask.type && last.vertex == ask.vertex && last.parts & WEIR_TRAIN_FIXED);
        weir_train_form_copy(&a->form, ask.type, numbers + last.row * width, slots + (size_t)last.row * t->categories,
                             numbers + ask.row * width, slots + (size_t)ask.row * t->categories);
    }
    weir_train_form_unpack(&a->form, ask.type, parts, *atp + head, numbers + ask.row * width,
                           slots + (size_t)ask.row * t->categories);
    *atp += head + bytes;
    return WEIR_OK;
}

weir_err weir_train_answers_put(const weir_train_answers *a, const weir_buf *asks, const weir_buf *earlier,
                                const weir_train_rows_to *to) {
    const char *answer = a->received.bytes, *end = answer + a->received.length;
    const uint32_t *before = earlier ? (const uint32_t *)(const void *)earlier->bytes : NULL;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < asks->length / sizeof(weir_train_ask); i++)
        err = answers_put_one(a, asks->bytes, i, before, to, &answer, end);
    if (err) return err;
    if (answer != end)
        return WEIR_ERR(WEIR_ECORRUPT, "another rank answered too much; all ranks need the same program and --wire");
    return WEIR_OK;
}
