/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers_test.c - rows that ranks ask each other for where a vertex has another row from time to time. What the whole
 * snapshot says of the vertex as of the time is the oracle; how long an answer may be is counted by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/trainer/comm/comm.h>

#include "answers.h"
#include "rank_fixture.h"
#include "ranks.h"
#include "shell.h"

#define PAYS    400u
#define PEOPLE  20u
#define ASKS    300u /* of a rank */
#define ROUNDS  4u
#define UNTOLD  (-77.0f)
#define PAY_ROW 2u /* columns: a number and whether it is missing */
#define WHO_ROW 3u /* and an aggregate, which moves               */

/* After each pay its payer gets another number, 20 seconds later. */
static const learn_plan updates = {
    .seed = 3, .pays = PAYS, .people = PEOPLE, .bad = 0.3, .leak = LEARN_LEAK_ROW, .leak_us = 20 * LEARN_SECOND};

typedef struct asking {
    const weir_snapshot *snapshot;
    weir_nn_shape *shape;
    weir_inputs *inputs;
    weir_train_owners owners;
    weir_comm *comm;
    weir_rng rng;
    weir_train_ask asks[ASKS]; /* by owner */
    uint32_t earlier[ASKS];    /* the last one for the vertex that asks for the fixed part */
    uint64_t bytes[8];
    uint32_t count;
    weir_real numbers[2][ASKS * WHO_ROW]; /* by type */
    uint32_t slots[2][ASKS];
    int64_t spans[2][2 * ASKS];
} asking;

static uint64_t below(asking *a, uint64_t bound) {
    return weir_rng_below(&a->rng, bound);
}

/* Few vertices at many times, so that a row is asked for again while it is the same, and after it has changed. */
static void draw_asks(asking *a, bool timed) {
    static const uint16_t parts[] = {WEIR_TRAIN_ROW, WEIR_TRAIN_ROW, WEIR_TRAIN_MOVING,
                                     WEIR_TRAIN_FIXED | WEIR_TRAIN_SPAN};
    a->count = 0;
    for (uint32_t rank = 0; rank < a->owners.ranks; rank++) {
        a->bytes[rank] = 0;
        for (uint32_t i = 0; rank != a->owners.rank && i < ASKS / a->owners.ranks; i++) {
            const uint16_t type = (uint16_t)below(a, 2);
            const uint64_t vertices = weir_snapshot_vertices_of(a->snapshot, type)->count;
            uint64_t vertex = below(a, vertices);
            while (weir_train_owner(&a->owners, type, vertex) != rank)
                vertex = (vertex + 1) % vertices;
            const int64_t span_us = (int64_t)(PAYS + 10) * 60 * LEARN_SECOND;
            a->asks[a->count] =
                (weir_train_ask){.vertex = vertex,
                                 .before_us = LEARN_START_US - 60 * LEARN_SECOND + (int64_t)below(a, (uint64_t)span_us),
                                 .event = type == LEARN_PAY && below(a, 2) ? 0 : WEIR_SAMPLE_NO_TARGET,
                                 .type = type,
                                 .parts = timed ? parts[below(a, 4)] : WEIR_TRAIN_ROW,
                                 .row = a->count};
            a->bytes[rank] += sizeof *a->asks;
            a->count++;
        }
    }
    for (uint32_t i = 0; timed && i < a->count; i++) {
        weir_train_ask *ask = &a->asks[i];
        a->earlier[i] = UINT32_MAX;
        for (uint32_t k = 0; ask->parts & WEIR_TRAIN_FIXED && k < i; k++)
            if (a->asks[k].parts & WEIR_TRAIN_FIXED && a->asks[k].type == ask->type && a->asks[k].vertex == ask->vertex)
                a->earlier[i] = k;
        if (a->earlier[i] != UINT32_MAX) ask->parts |= WEIR_TRAIN_AGAIN;
    }
    for (uint32_t type = 0; type < 2; type++)
        for (uint32_t i = 0; i < ASKS * WHO_ROW; i++)
            a->numbers[type][i] = UNTOLD;
}

/* The row that is in force, or none: by the rule that a target comes with its row. */
static int64_t version_of(const asking *a, const weir_train_ask *ask) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(a->snapshot, ask->type);
    int64_t version = -1;
    for (int64_t row = v->rows.indptr[ask->vertex]; row < v->rows.indptr[ask->vertex + 1]; row++)
        if (v->rows.times[row] < ask->before_us + (ask->type == LEARN_PAY)) version = row;
    return version;
}

/* What all ranks' answers to this one may take: a row in force comes once, until another one of the vertex is asked for
 * in between. */
static uint64_t bytes_wanted(const asking *a, bool timed, uint64_t *repeatedp) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const weir_train_ask *ask = &a->asks[i];
        const bool who = ask->type == LEARN_WHO;
        if (!timed) {
            bytes += (who ? WHO_ROW : PAY_ROW) * sizeof(weir_real);
            continue;
        }
        const weir_train_ask *last = a->earlier[i] == UINT32_MAX ? NULL : &a->asks[a->earlier[i]];
        const bool repeated = last && version_of(a, last) == version_of(a, ask);
        if (ask->parts & WEIR_TRAIN_SPAN) bytes += 2 * sizeof(int64_t);
        if (ask->parts & WEIR_TRAIN_FIXED) bytes += (last ? 1 : 0) + (repeated ? 0 : 2 * sizeof(weir_real));
        if (ask->parts & WEIR_TRAIN_MOVING && who) bytes += sizeof(weir_real);
        *repeatedp += repeated;
    }
    return bytes;
}

static void as_of(const asking *a, const weir_train_ask *ask, int64_t before_us, weir_real numbers[WHO_ROW]) {
    uint32_t slots[1];
    const weir_sample_vertices of = {
        .vertices = &ask->vertex, .before_us = &before_us, .events = &ask->event, .count = 1, .type = ask->type};
    assert_ok(weir_inputs_rows(a->inputs, &of, numbers, slots));
}

static uint32_t bits_of(weir_real number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Columns that were asked for, and no others. */
static void same_row(const asking *a, const weir_train_ask *ask, bool timed) {
    const uint32_t width = ask->type == LEARN_WHO ? WHO_ROW : PAY_ROW;
    const weir_real *told = a->numbers[ask->type] + ask->row * width;
    weir_real wanted[WHO_ROW];
    as_of(a, ask, ask->before_us, wanted);
    for (uint32_t c = 0; c < width; c++) {
        const bool moves = timed && c == 2, asked = ask->parts & (moves ? WEIR_TRAIN_MOVING : WEIR_TRAIN_FIXED);
        const weir_real number = asked ? wanted[c] : (weir_real)UNTOLD;
        if (bits_of(told[c]) != bits_of(number))
            fail_msg("column %u of type %u: %.9g, not %.9g", c, ask->type, (double)told[c], (double)number);
    }
}

/* As of any time in between, the fixed part is this one; where a span ends it is another, or there is none. */
static void same_span(const asking *a, const weir_train_ask *ask) {
    const int64_t *span = &a->spans[ask->type][2 * ask->row];
    const weir_real *told = a->numbers[ask->type] + ask->row * (ask->type == LEARN_WHO ? WHO_ROW : PAY_ROW);
    weir_real there[WHO_ROW];
    assert_true(span[0] <= ask->before_us && ask->before_us < span[1]);
    for (unsigned end = 0; end < 2; end++) {
        if (span[end] == INT64_MIN || span[end] == INT64_MAX) continue;
        as_of(a, ask, span[end] - end, there);
        assert_memory_equal(there, told, 2 * sizeof *told);
        const weir_train_ask beyond = {.vertex = ask->vertex, .type = ask->type, .before_us = span[end] - 1 + end};
        assert_true(version_of(a, &beyond) != version_of(a, ask));
    }
}

static void ask_and_compare(asking *a, bool timed) {
    weir_train_answers answers;
    weir_buf asks = {0}, asked = {0}, earlier = {0};
    uint64_t asked_bytes[8], expected = 0, repeated = 0;
    weir_real *const numbers[] = {a->numbers[0], a->numbers[1]};
    uint32_t *const slots[] = {a->slots[0], a->slots[1]};
    int64_t *const spans[] = {a->spans[0], a->spans[1]};
    draw_asks(a, timed);
    assert_ok(weir_train_answers_open(&a->owners, a->shape, WEIR_TRAIN_WIRE_FLOATS, timed, &answers));
    weir_buf_append(&asks, a->asks, a->count * sizeof *a->asks);
    weir_buf_append(&earlier, a->earlier, a->count * sizeof *a->earlier);
    assert_ok(weir_comm_exchange(a->comm, asks.bytes, a->bytes, &asked, asked_bytes));
    const char *at = asks.bytes;
    for (uint32_t rank = 0; rank < a->owners.ranks; at += a->bytes[rank++]) {
        const weir_train_owners owner = {a->snapshot, NULL, rank, a->owners.ranks};
        uint64_t bytes;
        assert_ok(weir_train_answers_expect(&answers, &owner, a->inputs, at, a->bytes[rank], &bytes));
        expected += bytes;
    }
    assert_ok(weir_train_answers_exchange(&answers, &a->owners, a->inputs, &asked, asked_bytes, a->comm));
    assert_int_equal(answers.received.length, bytes_wanted(a, timed, &repeated));
    assert_int_equal(answers.received.length, expected);
    assert_true(!timed || repeated > 0);
    assert_ok(weir_train_answers_put(&answers, &asks, &earlier, &(weir_train_rows_to){numbers, slots, spans}));
    for (uint32_t i = 0; i < a->count; i++) {
        same_row(a, &a->asks[i], timed);
        if (a->asks[i].parts & WEIR_TRAIN_SPAN) same_span(a, &a->asks[i]);
    }
    /* An answer that is cut is refused; one with other bytes is refused, or has other numbers. */
    const size_t length = answers.received.length;
    for (unsigned i = 0; i < 50; i++) {
        answers.received.length = below(a, length);
        assert_int_equal(weir_err_code(weir_train_answers_put(&answers, &asks, &earlier,
                                                              &(weir_train_rows_to){numbers, slots, spans})),
                         WEIR_ECORRUPT);
    }
    answers.received.length = length;
    for (unsigned i = 0; i < 50; i++) {
        answers.received.bytes[below(a, length)] ^= (char)(1 + below(a, 255));
        const weir_err err =
            weir_train_answers_put(&answers, &asks, &earlier, &(weir_train_rows_to){numbers, slots, spans});
        assert_true(!err || weir_err_code(err) == WEIR_ECORRUPT);
    }
    weir_train_answers_close(&answers);
    weir_buf_free(&asks);
    weir_buf_free(&asked);
    weir_buf_free(&earlier);
}

static void rank_main(void) {
    static const weir_sample_step steps[] = {{.hop = 1, .fanout = 4, .relation = LEARN_BY, .direction = WEIR_OUT}};
    const weir_nn_opts opts = {.task = LEARN_TASK_BAD, .hidden = 4, .steps = steps, .step_count = 1};
    asking *a = calloc(1, sizeof *a);
    weir_sample_source *source;
    assert_non_null(a);
    assert_ok(weir_comm_start(NULL, NULL, &a->comm));
    weir_snapshot *snapshot = rank_snapshot();
    a->snapshot = snapshot;
    a->owners = (weir_train_owners){snapshot, NULL, weir_comm_rank(a->comm), weir_comm_ranks(a->comm)};
    a->rng = weir_rng_stream(rank_seed(), 7, a->owners.rank);
    assert_ok(weir_nn_shape_open(weir_snapshot_schema(snapshot), &opts, &a->shape));
    assert_int_equal(weir_nn_vertex(a->shape, LEARN_PAY)->width, PAY_ROW);
    assert_int_equal(weir_nn_vertex(a->shape, LEARN_WHO)->width, WHO_ROW);
    assert_ok(weir_sample_over_snapshot(snapshot, &source));
    assert_ok(weir_inputs_open(a->shape, weir_snapshot_schema(snapshot), source, &a->inputs));
    for (unsigned round = 0; round < ROUNDS; round++)
        ask_and_compare(a, round % 2 == 0);
    weir_inputs_close(a->inputs);
    weir_sample_source_close(source);
    weir_nn_shape_free(a->shape);
    weir_snapshot_close(snapshot);
    weir_comm_stop(a->comm);
    free(a);
}

/* What the next case starts; by itself it has nothing to do. */
static void one_rank(void **state) {
    (void)state;
    rank_or_skip();
    rank_main();
}

static void e4_an_answer_is_the_row_as_of_its_time(void **state) {
    (void)state;
    rank_prepare(&updates, NULL);
    ranks_again(3);
}

/* --- a training that keeps what holds ----------------------------------------------------------------------------- */

/* Bytes that all ranks sent of asks and answers: lines 2 and 3 of the library that watches MPI. */
static uint64_t bytes_sent(void) {
    uint64_t bytes = 0;
    for (unsigned rank = 0; rank < 3; rank++) {
        char path[4200], *text = NULL;
        size_t length;
        snprintf(path, sizeof path, "%s.%u", weir_test_path("sent"), rank);
        assert_ok(weir_file_load(path, 4096, &text, &length));
        const char *at = text;
        for (unsigned channel = 1; channel < 3; channel++) {
            char *end = strchr(at, '\n') + 1;
            uint64_t numbers[4]; /* calls, messages, bytes to others, bytes to itself */
            for (unsigned i = 0; i < 4; i++)
                numbers[i] = strtoull(end, &end, 10);
            assert_true(*end == '\n' && numbers[3] == 0);
            bytes += numbers[2];
            at = end;
        }
        weir_free(text);
    }
    return bytes;
}

static uint64_t trains_with(const char *first, const char *second, const char *share, const char *policy,
                            const char *wire, const char *folder) {
    const char *const arguments[] = {first,      second, "--task",   "bad",  "--folder",       folder,
                                     "--batch",  "64",   "--hidden", "8",    "--fanouts",      "6,6",
                                     "--epochs", "2",    "--wire",   wire,   "--patience",     "0",
                                     "--cache",  share,  "--test",   "0.25", "--validation",   "0.25",
                                     "--seed",   "5",    "--learn",  "once", "--no-baselines", "--cache-policy",
                                     policy,     NULL};
    weir_test_output output;
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("sent"), 1), 0);
    ranks_run(3, ranks_train_program(), arguments, &output);
    unsetenv("LD_PRELOAD");
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    return bytes_sent();
}

/* People change again and again, and are counted as of each pay: what is kept is right where it is used. */
static void e4_what_is_kept_of_a_row_changes_no_bit(void **state) {
    (void)state;
    static const char *const policies[] = {"vip", "simulated", "degree"};
    static const char *const wires[] = {"floats", "half", "int8"};
    static const char *const same =
        "cd $folder && for f in none/checkpoint/*.npy; do cmp $f some/checkpoint/${f##*/} || "
        "exit 1; done; rm -r some";
    char none[4096], some[4096], snapshot[4096];
    snprintf(none, sizeof none, "%s", weir_test_path("none"));
    snprintf(some, sizeof some, "%s", weir_test_path("some"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    learn_snapshot(&updates, snapshot);
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t all = trains_with(snapshot, "--load", "0", "vip", wires[i], none);
        const uint64_t less = trains_with(snapshot, "--load", "3", policies[i], wires[i], some);
        if (!(less < all))
            fail_msg("%s: %llu bytes with, %llu without", policies[i], (unsigned long long)less,
                     (unsigned long long)all);
        shell(same);
        shell("rm -r $folder/none");
    }
    shell("cd $folder && $weir partition snapshot --parts 3 --out parts --method random >/dev/null");
    char parts[4200];
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts"));
    const uint64_t of_parts = trains_with("--parts", parts, "0", "vip", "floats", none);
    assert_true(trains_with("--parts", parts, "3", "vip", "floats", some) < of_parts);
    shell(same);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(e4_an_answer_is_the_row_as_of_its_time),
           WEIR_CASE(e4_what_is_kept_of_a_row_changes_no_bit))
