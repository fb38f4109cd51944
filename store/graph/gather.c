/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - the bundles of a vertex, taken apart and put in order, because they overlap. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cold.h"
#include "gather.h"

weir_err weir_gather_open(weir_engine_cursor *cursor, size_t entries_max, size_t rows_max, size_t rows_bytes,
                          weir_gather *gather) {
    *gather = (weir_gather){.cursor = cursor, .entries_max = entries_max, .rows_max = rows_max};
    return weir_arena_open(rows_bytes, &gather->rows);
}

void weir_gather_close(weir_gather *gather) {
    weir_free(gather->of);
    weir_arena_close(gather->rows);
}

static weir_err gather_keep(weir_gather *g, weir_list list, const weir_entry *e) {
    if (!WEIR_GROW(g->of, g->capacity, g->count))
        return WEIR_NOMEM("while reading vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(g->vertex));
    WEIR_ASSERT(g->count < g->capacity);
    weir_gathered *kept = &g->of[g->count];
    *kept = (weir_gathered){list, *e};
    if (e->row_length) {
        void *copy = weir_arena_alloc_aligned(g->rows, 1, e->row_length);
        if (!copy) return WEIR_NOMEM("while reading vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(g->vertex));
        kept->entry.row = memcpy(copy, e->row, e->row_length);
    }
    g->count++;
    return WEIR_OK;
}

weir_err weir_gather_keep_name(weir_gather *gather, const weir_name *name) {
    if (gather->named) {
        if (name->time_us > gather->name.time_us) gather->name.time_us = name->time_us;
        return WEIR_OK;
    }
    gather->name = *name;
    char *key = weir_arena_alloc_aligned(gather->rows, 1, name->key_length + 1u); /* it may have a 0 in it */
    if (!key) return WEIR_NOMEM("while reading vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(gather->vertex));
    gather->name.key = memcpy(key, name->key, name->key_length);
    gather->named = true;
    return WEIR_OK;
}

static weir_err gather_keep_bundle(weir_gather *g, const weir_bundle_key *key) {
    weir_bundle_reader reader;
    weir_entry e;
    size_t length;
    const void *value = weir_engine_cursor_value(g->cursor, &length);
    if (!weir_bundle_check(key, value, length) || !weir_bundle_open(&reader, key, value, length))
        return weir_cold_damaged(g->vertex);
    WEIR_ASSERT(key->vertex == g->vertex);
    g->bytes += WEIR_BUNDLE_KEY_BYTES + length;
    weir_err err = reader.has_name ? weir_gather_keep_name(g, &reader.name) : WEIR_OK;
    while (!err && weir_bundle_next(&reader, &e) == WEIR_BUNDLE_ENTRY)
        err = gather_keep(g, reader.list, &e);
    return err;
}

weir_err weir_gather_stands(const weir_gather *gather, weir_bundle_key *key, bool *therep) {
    size_t length;
    *therep = false;
    if (!weir_engine_cursor_valid(gather->cursor)) return weir_engine_cursor_err(gather->cursor);
    const void *bytes = weir_engine_cursor_key(gather->cursor, &length);
    if (!weir_bundle_key_read(bytes, length, key)) return weir_cold_damaged(gather->vertex);
    *therep = key->vertex == gather->vertex;
    return WEIR_OK;
}

static int gather_compare(const void *a, const void *b) {
    const weir_gathered *x = a, *y = b;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    return weir_entry_order(&x->entry, &y->entry);
}

/* Of records that are the same, the one that says more. */
static void gather_put_in_order(weir_gather *g) {
    size_t kept = 0;
    qsort(g->of, g->count, sizeof *g->of, gather_compare);
    for (size_t i = 0; i < g->count; i++) {
        if (kept == 0 || gather_compare(&g->of[kept - 1], &g->of[i]) != 0) {
            g->of[kept++] = g->of[i];
        } else if (weir_entry_says_more(&g->of[i].entry, &g->of[kept - 1].entry)) {
            g->of[kept - 1] = g->of[i];
        }
    }
    WEIR_ASSERT(kept <= g->count);
    g->count = kept;
}

weir_err weir_gather_vertex(weir_gather *gather, weir_vertex vertex, bool *largep) {
    weir_bundle_key key;
    bool there;
    size_t bundles = 0;
    gather->vertex = vertex;
    gather->count = 0;
    gather->bytes = 0;
    gather->named = false;
    weir_arena_reset(gather->rows);
    weir_err err = weir_gather_stands(gather, &key, &there);
    while (!err && there && gather->count < gather->entries_max && weir_arena_used(gather->rows) < gather->rows_max) {
        err = gather_keep_bundle(gather, &key);
        bundles++;
        weir_engine_cursor_next(gather->cursor);
        if (!err) err = weir_gather_stands(gather, &key, &there);
    }
    *largep = there;
    if (!err && !there && bundles > 1) gather_put_in_order(gather); /* those of one bundle are in order */
    return err;
}
