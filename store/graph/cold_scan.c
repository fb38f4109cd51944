/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold_scan.c - every record of a cold store, one by one, out of its bundles.
 *
 * What a vertex has is gathered and sorted, because its bundles overlap. Of a vertex with more than can be gathered
 * each list is read page by page instead, by the same cursor: all is of one moment.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>
#include <weir/store/format/stored.h>

#include "cold.h"
#include "gather.h"

#define GATHERED_MAX      32768u      /* entries of a vertex … */
#define GATHERED_ROWS_MAX (16u << 20) /* … and bytes of their rows */
#define PAGE_ENTRIES      1024u       /* at first */
#define PAGE_ENTRIES_MAX  65536u
#define ROWS_MAX          (1u << 30) /* a page of the longest rows that a schema can have is a quarter of this */

typedef struct cold_scan {
    weir_gather gather; /* of the vertex at hand; of a large one only its name */
    weir_graph_visit visit;
    void *context;
    weir_list *lists; /* of a large vertex, rising */
    size_t list_count, list_capacity;
    weir_entry *page;
} cold_scan;

static weir_err cold_scan_no_memory(const cold_scan *s) {
    return WEIR_NOMEM("while reading vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(s->gather.vertex));
}

/* --- records ---------------------------------------------------------------------------------------------------- */

static weir_err cold_scan_tell(const cold_scan *s, weir_list list, const weir_entry *e) {
    uint8_t key[WEIR_EDGE_KEY_BYTES];
    size_t length = weir_record_key_write(s->gather.vertex, list, e, key);
    return s->visit(s->context, key, length, e->row, e->row_length);
}

static weir_err cold_scan_tell_name(const cold_scan *s) {
    uint8_t key[WEIR_NAME_KEY_BYTES], value[WEIR_STORED_NAME_MAX];
    const weir_name *n = &s->gather.name;
    if (!s->gather.named) return WEIR_OK;
    weir_name_key_write(s->gather.vertex, key);
    size_t length = weir_stored_name_write(n->vertex_type, n->time_us, n->key, n->key_length, value);
    return s->visit(s->context, key, sizeof key, value, length);
}

/* --- large vertices --------------------------------------------------------------------------------------------- */

static weir_err cold_scan_add_list(cold_scan *s, weir_list list) {
    size_t at = 0;
    while (at < s->list_count && s->lists[at] < list)
        at++;
    if (at < s->list_count && s->lists[at] == list) return WEIR_OK;
    if (!WEIR_GROW(s->lists, s->list_capacity, s->list_count)) return cold_scan_no_memory(s);
    memmove(&s->lists[at + 1], &s->lists[at], (s->list_count - at) * sizeof s->lists[0]);
    s->lists[at] = list;
    s->list_count++;
    return WEIR_OK;
}

/* Behind what was looked at. */
static void cold_scan_seek_behind(const cold_scan *s, weir_bundle_key key) {
    uint8_t bytes[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key_write(&key, bytes);
    weir_engine_cursor_seek(s->gather.cursor, bytes, sizeof bytes);
}

/* Which lists the vertex has, and its name; and whether each bundle is sound: what follows takes them as they are. */
static weir_err cold_scan_find_lists(cold_scan *s) {
    weir_bundle_reader reader;
    weir_bundle_key key;
    weir_entry e;
    size_t length;
    bool there;
    s->list_count = 0;
    s->gather.named = false;
    weir_arena_reset(s->gather.rows);
    cold_scan_seek_behind(s, (weir_bundle_key){.vertex = s->gather.vertex, .newest_us = INT64_MAX});
    weir_err err = weir_gather_stands(&s->gather, &key, &there);
    while (!err && there) {
        const void *value = weir_engine_cursor_value(s->gather.cursor, &length);
        if (!weir_bundle_check(&key, value, length) || !weir_bundle_open(&reader, &key, value, length))
            return weir_cold_damaged(s->gather.vertex);
        if (key.part != WEIR_BUNDLE_NAMED) {
            err = cold_scan_add_list(s, key.part - 1u);
        } else {
            err = weir_gather_keep_name(&s->gather, &reader.name);
            while (!err && weir_bundle_next(&reader, &e) == WEIR_BUNDLE_ENTRY)
                err = cold_scan_add_list(s, reader.list);
        }
        weir_engine_cursor_next(s->gather.cursor);
        if (!err) err = weir_gather_stands(&s->gather, &key, &there);
    }
    return err;
}

/* Each page begins anew with the bundles that reach into it, so they become larger. */
static weir_err cold_scan_tell_list(cold_scan *s, weir_list list) {
    weir_cold_query query = {.vertex = s->gather.vertex, .before_us = INT64_MAX};
    weir_cold_page page = {.list = list,
                           .capacity = PAGE_ENTRIES,
                           .entries = s->page,
                           .room = PAGE_ENTRIES_MAX,
                           .arena = s->gather.rows,
                           .more = true};
    weir_entry last;
    weir_err err = WEIR_OK;
    while (!err && page.more) {
        weir_arena_reset(s->gather.rows);
        err = weir_cold_list(s->gather.cursor, &query, &page);
        if (weir_err_is(err, WEIR_ELIMIT) && page.capacity > 1) { /* its rows are long */
            err = WEIR_OK;
            page.more = true;
            page.capacity /= 2;
            continue;
        }
        for (size_t i = 0; !err && i < page.count; i++)
            err = cold_scan_tell(s, list, &page.entries[i]);
        if (page.count) last = page.entries[page.count - 1];
        query.after = page.count ? &last : query.after;
        if (page.capacity < PAGE_ENTRIES_MAX && weir_arena_used(s->gather.rows) < GATHERED_ROWS_MAX) page.capacity *= 2;
    }
    return err;
}

/* What was gathered is given up. */
static weir_err cold_scan_tell_large(cold_scan *s) {
    char key[WEIR_KEY_MAX];
    if (!s->page) s->page = weir_malloc(PAGE_ENTRIES_MAX * sizeof *s->page);
    if (!s->page) return cold_scan_no_memory(s);
    weir_err err = cold_scan_find_lists(s);
    if (!err && s->gather.named) s->gather.name.key = memcpy(key, s->gather.name.key, s->gather.name.key_length);
    for (size_t i = 0; !err && i < s->list_count; i++)
        err = cold_scan_tell_list(s, s->lists[i]);
    if (!err) err = cold_scan_tell_name(s);
    const weir_bundle_key last = {s->gather.vertex,       .part = UINT32_MAX, .span = UINT8_MAX,
                                  .newest_us = INT64_MIN, .turn = UINT32_MAX, .hash = UINT64_MAX};
    cold_scan_seek_behind(s, last);
    return err;
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static weir_err cold_scan_vertex(cold_scan *s, weir_vertex vertex) {
    bool large;
    weir_err err = weir_gather_vertex(&s->gather, vertex, &large);
    if (!err && large) return cold_scan_tell_large(s);
    for (size_t i = 0; !err && i < s->gather.count; i++)
        err = cold_scan_tell(s, s->gather.of[i].list, &s->gather.of[i].entry);
    return err ? err : cold_scan_tell_name(s);
}

/* What the store keeps for itself, and deletions, are a record a key. */
static weir_err cold_scan_step(cold_scan *s) {
    size_t key_length, value_length;
    weir_bundle_key bundle;
    const uint8_t *key = weir_engine_cursor_key(s->gather.cursor, &key_length);
    if (weir_bundle_key_read(key, key_length, &bundle)) return cold_scan_vertex(s, bundle.vertex);
    if (key_length > 0 && key[0] == WEIR_BUNDLE_KIND) return weir_cold_damaged(s->gather.vertex);
    const void *value = weir_engine_cursor_value(s->gather.cursor, &value_length);
    weir_err err = s->visit(s->context, key, key_length, value, value_length);
    weir_engine_cursor_next(s->gather.cursor);
    return err;
}

weir_err weir_cold_scan(weir_engine_cursor *cursor, weir_graph_visit visit, void *context) {
    cold_scan s = {.visit = visit, .context = context};
    weir_err err = weir_gather_open(cursor, GATHERED_MAX, GATHERED_ROWS_MAX, ROWS_MAX, &s.gather);
    if (!err) weir_engine_cursor_seek(cursor, "", 0);
    while (!err && weir_engine_cursor_valid(cursor))
        err = cold_scan_step(&s);
    if (!err) err = weir_engine_cursor_err(cursor);
    weir_free(s.lists);
    weir_free(s.page);
    weir_gather_close(&s.gather);
    return err;
}

weir_err weir_cold_scan_kind(weir_engine *engine, char kind, weir_graph_visit visit, void *context) {
    weir_engine_cursor *cursor;
    weir_err err = weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor);
    if (err) return err;
    for (weir_engine_cursor_seek(cursor, &kind, 1); !err && weir_engine_cursor_valid(cursor);
         weir_engine_cursor_next(cursor)) {
        size_t key_length, value_length;
        const char *key = weir_engine_cursor_key(cursor, &key_length);
        if (key_length == 0 || key[0] != kind) break;
        const void *value = weir_engine_cursor_value(cursor, &value_length);
        err = visit(context, key, key_length, value, value_length);
    }
    if (!err) err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err;
}
