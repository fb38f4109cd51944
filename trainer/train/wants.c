/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wants.c - which rows of embeddings a batch of each rank reads. A row is named by a key of rank, table and slot, from
 * the highest bits to the lowest. Sorted, keys lie as they are sent, by owner; what this rank has itself gets a number
 * that no rank has, and so lies behind all others.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "shares.h"

#define WANTS_NO_MEMORY "for the embeddings of a batch; lower --batch or the fan-outs"

static uint64_t wants_key(const weir_train_shares *s, uint32_t rank, uint32_t table, uint32_t slot) {
    uint32_t owner = s->tables[table].owner_of[slot];
    return (uint64_t)(owner == rank ? s->ranks : owner) << 48 | (uint64_t)table << 32 | slot;
}

static int wants_by_key(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

weir_err weir_train_wants_list(weir_train_wants *w, const weir_train_shares *s, uint32_t rank,
                               const weir_block_view *view, const uint32_t *const *slots) {
    weir_buf_clear(&w->keys);
    memset(w->bytes, 0, s->ranks * sizeof *w->bytes);
    for (uint32_t i = 0; view && i < s->table_count; i++) {
        const weir_train_shares_table *table = &s->tables[i];
        const weir_nn_inputs *inputs = weir_nn_vertex(s->shape, table->type);
        bool of_vertices = inputs->categories[table->category].feature == WEIR_SCHEMA_NONE;
        uint32_t rows = view->input_ranges[table->type].end - view->input_ranges[table->type].begin;
        for (uint32_t row = 0; row < rows; row++) {
            uint32_t slot = slots[table->type][row * (size_t)inputs->category_count + table->category];
            if (of_vertices && slot == WEIR_NO_SLOT) continue; /* an unknown one, or one that is shown as such */
            if (slot >= table->slots)                          /* as another rank may have answered */
                return WEIR_ERR(WEIR_ECORRUPT,
                                "a batch names row %u of an embedding of type '%s' that has %u; all ranks need the "
                                "same program and the same data",
                                slot, inputs->name, table->slots);
            uint64_t key = wants_key(s, rank, i, slot);
            weir_buf_append(&w->keys, &key, sizeof key);
        }
    }
    uint64_t *keys = (uint64_t *)(void *)w->keys.bytes;
    size_t all = w->keys.length / sizeof *keys, count = 0;
    w->remote = 0;
    if (all) qsort(keys, all, sizeof *keys, wants_by_key);
    for (size_t i = 0; i < all; i++) {
        if (count && keys[i] == keys[count - 1]) continue;
        keys[count++] = keys[i];
        if (keys[i] >> 48 == s->ranks) continue;
        w->bytes[keys[i] >> 48] += sizeof *keys;
        w->remote++;
    }
    w->keys.length = count * sizeof *keys;
    return weir_buf_err(&w->keys);
}

void weir_train_wants_place(const weir_train_wants *w, const weir_train_shares *s, const weir_block_view *view,
                            uint32_t *const *slots) {
    const uint64_t *keys = (const uint64_t *)(const void *)w->keys.bytes;
    for (uint32_t i = 0; view && i < s->table_count; i++) {
        const weir_train_shares_table *table = &s->tables[i];
        uint32_t categories = weir_nn_vertex(s->shape, table->type)->category_count;
        uint32_t rows = view->input_ranges[table->type].end - view->input_ranges[table->type].begin;
        for (uint32_t row = 0; row < rows; row++) {
            uint32_t *slot = &slots[table->type][row * (size_t)categories + table->category];
            if (*slot == WEIR_NO_SLOT) continue;
            uint64_t key = wants_key(s, s->rank, i, *slot);
            const uint64_t *at = bsearch(&key, keys, w->keys.length / sizeof key, sizeof key, wants_by_key);
            WEIR_ASSERT(at != NULL); /* it was listed */
            *slot = (uint32_t)(at - keys);
        }
    }
}

/* Keys of one rank, in which this one is called `named`, become runs of rows. */
static weir_err wants_serve(weir_train_wants *w, const weir_train_shares *s, uint32_t rank, uint64_t named,
                            const char *keys, uint64_t bytes) {
    weir_train_served run = {.rank = rank};
    for (uint64_t at = 0, key; at < bytes; at += sizeof key) {
        memcpy(&key, keys + at, sizeof key);
        uint32_t table = (uint32_t)(key >> 32) & UINT16_MAX, slot = (uint32_t)key, row = 0;
        bool own = bytes % sizeof key == 0 && key >> 48 == named && table < s->table_count;
        if (own) row = weir_train_shares_row(&s->tables[table], slot);
        if (!own || row == s->tables[table].own_count || s->tables[table].own[row] != slot)
            return WEIR_ERR(WEIR_ECORRUPT,
                            "rank %u wants the embedding of slot %u of table %u, which this rank does not have; all "
                            "ranks need the same snapshot, or parts of one cutting",
                            rank, slot, table);
        if (run.table != table && run.begin < run.end) {
            weir_buf_append(&w->runs, &run, sizeof run);
            run.begin = run.end;
        }
        if (run.begin == run.end) run.begin = run.end = (uint32_t)(w->rows.length / sizeof row);
        run.table = table;
        run.end++;
        weir_buf_append(&w->rows, &row, sizeof row);
    }
    if (run.begin < run.end) weir_buf_append(&w->runs, &run, sizeof run);
    return WEIR_OK;
}

weir_err weir_train_wants_tell(weir_train_wants *w, const weir_train_shares *s, weir_comm *comm) {
    weir_buf_clear(&w->heard);
    weir_buf_clear(&w->rows);
    weir_buf_clear(&w->runs);
    weir_err err = weir_comm_exchange(comm, w->keys.bytes, w->bytes, &w->heard, w->heard_bytes);
    const char *heard = w->heard.bytes, *own = w->keys.bytes + w->remote * sizeof(uint64_t);
    for (uint32_t rank = 0; !err && rank < s->ranks; heard += w->heard_bytes[rank++])
        err = rank == s->rank ? wants_serve(w, s, rank, s->ranks, own, w->keys.length - w->remote * sizeof(uint64_t))
                              : wants_serve(w, s, rank, s->rank, heard, w->heard_bytes[rank]);
    if (!err) err = weir_buf_err(&w->rows);
    return err ? err : weir_buf_err(&w->runs);
}

weir_err weir_train_wants_open(uint32_t ranks, weir_train_wants *wants) {
    *wants = (weir_train_wants){.bytes = weir_calloc(ranks, sizeof *wants->bytes),
                                .heard_bytes = weir_calloc(ranks, sizeof *wants->heard_bytes)};
    if (wants->bytes && wants->heard_bytes) return WEIR_OK;
    weir_train_wants_close(wants);
    return WEIR_NOMEM(WANTS_NO_MEMORY);
}

void weir_train_wants_close(weir_train_wants *wants) {
    weir_buf_free(&wants->keys);
    weir_buf_free(&wants->heard);
    weir_buf_free(&wants->rows);
    weir_buf_free(&wants->runs);
    weir_free(wants->bytes);
    weir_free(wants->heard_bytes);
    *wants = (weir_train_wants){.bytes = NULL};
}
