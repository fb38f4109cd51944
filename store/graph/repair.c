/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.c - a shard's cold store made anew beside the damaged one, out of the events that it was made of.
 *
 *   begin ──► FOLDER/shard-001.repair ◄── add*: what events say of this shard's vertices      readers go on meanwhile
 *     hold ─► covered up to all that is sealed ──► compare ──► replace: the folders are exchanged in one step
 *                                                     └► the damaged one is kept as FOLDER/shard-001.damaged
 *
 * The store is a set of records, and each follows from one event (GRAPH-S4). So what is made of the same events is the
 * same, in whatever order they come. Nothing is taken on trust: each record of the damaged store that can still be read
 * must be in the new one, else a log that has lost events, or a schema that reads them in another way, would take away
 * what was there.
 *
 * One thread uses a repair.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>
#include <weir/store/graph/repair.h>

#include "cold.h"
#include "graph_private.h"
#include "joining.h"

#define DELTA_SHARE   4u /* of what a shard's delta may have: the server goes on beside it */
#define DELTA_MIN     (1u << 20)
#define LOOK_RECORDS  256u
#define AHEAD_RECORDS 64u
#define PLACE_BYTES   58u /* every key is shorter */

#define NOTES_A_PAGE    1024u
#define ENTRIES_A_PAGE  128u
#define ROWS_A_PAGE_MAX (1u << 30) /* of rows as long as a schema can have */

_Static_assert(PLACE_BYTES > WEIR_EDGE_KEY_BYTES, "a place holds the longest key and a zero behind it");

struct weir_graph_repair {
    weir_shard *shard;
    uint32_t shards;
    char place[WEIR_GRAPH_PATH_MAX], folder[WEIR_GRAPH_PATH_MAX], damaged[WEIR_GRAPH_PATH_MAX];
    weir_engine_cache *blocks; /* borrowed */
    weir_engine *engine;       /* NULL: closed, because it is about to be put in place */
    weir_delta *delta;
    size_t delta_bytes;
    weir_names *names;
    weir_offsets *covered;
    bool held;
    bool replaced;         /* folder has the damaged store now */
    int64_t whole_from_us; /* of the damaged store, which may have been trimmed */
    bool compared;         /* with all that can be read; what was sealed since is the last that was added */
};

/* --- begin and end ---------------------------------------------------------------------------------------------- */

weir_err weir_graph_repair_path(const weir_graph *graph, uint32_t shard, const char *suffix,
                                char path[WEIR_GRAPH_PATH_MAX]) {
    char name[32];
    snprintf(name, sizeof name, "shard-%03u%s", shard, suffix);
    return weir_graph_path(graph->folder, name, path);
}

static weir_err repair_open_engine(weir_graph_repair *repair, bool create) {
    const weir_engine_opts opts = {
        .cache = repair->blocks, .create = create, .last_rank = weir_bundle_last_rank, .joining = &weir_joining};
    return weir_engine_open(repair->folder, &opts, &repair->engine);
}

/* Closed when it was about to be put in place, in vain. */
static weir_err repair_ready(weir_graph_repair *repair) {
    return repair->engine ? WEIR_OK : repair_open_engine(repair, false);
}

weir_err weir_graph_repair_clean(const weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        err = weir_graph_repair_path(graph, i, ".repair", path);
        if (!err && weir_path_exists(path)) err = weir_folder_remove(path);
        if (!err) err = weir_graph_repair_path(graph, i, WEIR_GRAPH_TRIM_SUFFIX, path);
        if (!err && weir_path_exists(path)) err = weir_folder_remove(path);
    }
    return err;
}

static weir_err repair_load_offset(void *context, const void *key, size_t key_length, const void *value,
                                   size_t value_length) {
    weir_graph_repair *repair = context;
    uint32_t source, partition;
    uint64_t offset;
    weir_event_clock clock;
    if (!weir_shard_offset_read(key, key_length, value, value_length, &source, &partition, &offset, &clock))
        return WEIR_ERR(WEIR_ECORRUPT, "an offset of %s is damaged", repair->folder);
    return weir_offsets_set(repair->covered, source, partition, offset, &clock);
}

weir_err weir_graph_repair_begin(weir_graph *graph, uint32_t shard, const char *checkpoints,
                                 weir_graph_repair **repairp) {
    bool based = false;
    *repairp = NULL;
    weir_graph_repair *repair = weir_calloc(1, sizeof *repair);
    if (!repair) return WEIR_NOMEM("while repairing shard %u", shard);
    repair->shard = graph->shards[shard];
    repair->shards = graph->shard_count;
    repair->whole_from_us = weir_graph_whole_from_us(graph, shard);
    repair->blocks = graph->blocks;
    repair->delta_bytes = repair->shard->seal_bytes / DELTA_SHARE;
    if (repair->delta_bytes < DELTA_MIN) repair->delta_bytes = DELTA_MIN;
    weir_err err = weir_graph_shard_path(graph->folder, shard, repair->place);
    if (!err) err = weir_graph_repair_path(graph, shard, ".repair", repair->folder);
    if (!err) err = weir_graph_repair_path(graph, shard, ".damaged", repair->damaged);
    if (!err && weir_path_exists(repair->folder)) err = weir_folder_remove(repair->folder);
    if (!err && checkpoints) err = weir_graph_repair_base(graph, shard, checkpoints, repair->folder, &based);
    if (!err) err = repair_open_engine(repair, !based);
    if (!err) err = weir_graph_identity_write(graph, shard, repair->folder);
    if (!err) err = weir_delta_open(repair->delta_bytes * 2, true, &repair->delta);
    if (!err) err = weir_names_open(WEIR_GRAPH_REPAIR_NAMES_BYTES, false, &repair->names);
    if (!err) err = weir_offsets_open(&repair->covered);
    if (!err && based) err = weir_cold_scan_kind(repair->engine, 'O', repair_load_offset, repair);
    if (err) {
        weir_graph_repair_close(repair);
        return err;
    }
    *repairp = repair;
    return WEIR_OK;
}

void weir_graph_repair_close(weir_graph_repair *repair) {
    if (!repair) return;
    weir_graph_repair_release(repair);
    weir_delta_release(repair->delta);
    weir_names_close(repair->names);
    weir_offsets_close(repair->covered);
    weir_engine_close(repair->engine);
    if (!repair->replaced && weir_path_exists(repair->folder)) {
        weir_err err = weir_folder_remove(repair->folder);
        if (err) weir_log_error("graph.repair_left", err); /* the next repair, or the next start, removes it */
    }
    weir_free(repair);
}

/* --- what it is made of ----------------------------------------------------------------------------------------- */

static weir_err repair_take_record(void *writer, const uint8_t *key, size_t key_length, const uint8_t *value,
                                   size_t value_length) {
    return weir_engine_writer_add(writer, key, key_length, value, value_length);
}

/* What is in memory becomes a sorted file. */
static weir_err repair_flush(weir_graph_repair *repair) {
    weir_engine_writer *writer;
    weir_delta *fresh = NULL;
    weir_delta_order *order = NULL;
    if (weir_delta_records(repair->delta) == 0) return WEIR_OK;
    weir_err err = repair_ready(repair);
    if (!err) err = weir_engine_writer_open(repair->engine, &writer);
    if (err) return err;
    weir_delta_freeze(repair->delta);
    err = weir_delta_order_open(repair->delta, &order);
    if (!err) err = weir_delta_order_walk_deletions(order, repair_take_record, writer);
    if (!err) err = weir_delta_order_walk(order, repair_take_record, writer);
    weir_delta_order_close(order);
    if (!err) err = weir_delta_open(repair->delta_bytes * 2, true, &fresh);
    if (err) {
        weir_engine_writer_cancel(writer);
        return err;
    }
    err = weir_engine_writer_ingest(writer);
    weir_delta_release(repair->delta);
    repair->delta = fresh;
    weir_kill_point("repair.flushed");
    return err;
}

static weir_err repair_apply(weir_graph_repair *repair, const weir_mutation *group, size_t count) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++)
        if (group[i].kind == WEIR_DELETE_VERTEX)
            err = weir_delta_put_deletion(repair->delta, group[i].vertex, group[i].time_us);
    return err ? err : weir_delta_apply(repair->delta, group, count);
}

bool weir_graph_repair_wants(const weir_graph_repair *repair, const weir_mutation *mutation) {
    return mutation->kind == WEIR_DELETE_VERTEX ||
           weir_shard_of(mutation->vertex, repair->shards) == repair->shard->index;
}

weir_err weir_graph_repair_add(weir_graph_repair *repair, const weir_mutation *mutations, size_t count) {
    weir_err err = WEIR_OK;
    for (size_t begin = 0, end; !err && begin < count; begin = end) {
        for (end = begin + 1; end < count && mutations[end].vertex == mutations[begin].vertex; end++) {
        }
        err = repair_apply(repair, mutations + begin, end - begin);
        if (!weir_err_is(err, WEIR_ENOMEM)) continue;
        err =
            repair_flush(repair); /* what of the group is in the file, and again in the next, counts once (GRAPH-S4) */
        if (!err) err = repair_apply(repair, mutations + begin, end - begin);
    }
    return !err && weir_delta_bytes(repair->delta) >= repair->delta_bytes ? repair_flush(repair) : err;
}

bool weir_graph_repair_claim(weir_graph_repair *repair, weir_vertex vertex) {
    return weir_names_claim(repair->names, vertex, 0, 0);
}

weir_err weir_graph_repair_notes(weir_graph_repair *repair, weir_vertex source_vertex, uint64_t from,
                                 weir_graph_repair_note visit, void *context) {
    weir_cold_query query = {.vertex = source_vertex, .before_us = INT64_MAX};
    weir_cold_page page = {.list = WEIR_LIST_EVENTS, .capacity = NOTES_A_PAGE, .room = NOTES_A_PAGE, .more = true};
    weir_engine_cursor *cursor = NULL;
    weir_entry *notes = NULL, last;
    bool passed = false;
    weir_err err = repair_ready(repair);
    if (!err) err = weir_engine_cursor_open(repair->engine, WEIR_ENGINE_POINT, &cursor);
    if (!err) notes = weir_malloc(NOTES_A_PAGE * sizeof *notes);
    if (!err && !notes) err = WEIR_NOMEM("for the notes of a source");
    page.entries = notes;
    while (!err && page.more && !passed) {
        err = weir_cold_list(cursor, &query, &page); /* notes have no rows */
        for (size_t i = 0; !err && i < page.count; i++) {
            passed = notes[i].time_us < (int64_t)from;
            if (passed) break;
            err = visit(context, &(weir_event_note){(uint64_t)notes[i].time_us, notes[i].event, notes[i].content});
        }
        if (!err && page.count) last = notes[page.count - 1];
        query.after = &last;
    }
    weir_free(notes);
    weir_engine_cursor_close(cursor);
    return err;
}

/* --- how far it is ---------------------------------------------------------------------------------------------- */

typedef struct repair_walk {
    weir_graph_repair *repair;
    weir_graph_repair_visit visit;
    void *context;
} repair_walk;

static weir_err repair_visit(void *context, uint32_t source, uint32_t partition, uint64_t sealed,
                             const weir_event_clock *clock) {
    const repair_walk *w = context;
    uint64_t covered = 0;
    (void)clock;
    weir_offsets_get(w->repair->covered, source, partition, &covered);
    return covered < sealed ? w->visit(w->context, source, partition, covered, sealed) : WEIR_OK;
}

weir_err weir_graph_repair_missing(weir_graph_repair *repair, weir_graph_repair_visit visit, void *context) {
    repair_walk w = {repair, visit, context};
    return weir_offsets_walk(repair->shard->sealed, repair_visit, &w);
}

weir_err weir_graph_repair_covered(weir_graph_repair *repair, uint32_t source, uint32_t partition, uint64_t offset) {
    const weir_event_clock none = weir_event_clock_unset();
    return weir_offsets_set(repair->covered, source, partition, offset, &none);
}

weir_err weir_graph_repair_hold(weir_graph_repair *repair) {
    repair->held = true;
    return weir_shard_hold(repair->shard);
}

void weir_graph_repair_release(weir_graph_repair *repair) {
    if (repair->held) weir_shard_release(repair->shard);
    repair->held = false;
}

/* --- whether it has all that can still be read ------------------------------------------------------------------ */

/* A key, with zeros behind it. */
typedef struct repair_place {
    uint8_t bytes[PLACE_BYTES];
} repair_place;

typedef struct repair_range {
    repair_place from, to;
} repair_range;

typedef struct repair_compare {
    const weir_graph_repair *repair;
    weir_engine *engine;       /* of was */
    weir_engine_cursor *was;   /* bundle by bundle */
    weir_engine_cursor *is;    /* goes along beside it: places to go on at, where `was` cannot be read */
    weir_engine_cursor *looks; /* of the new store, too: for what `was` has  */
    weir_entry *page;
    weir_arena *rows;
    repair_place from; /* where `was` was asked for last, or stood */
    uint64_t ahead;    /* records of the new store to the next place that is tried */
    weir_buf unread;   /* repair_range in order: where `was` could not be read */
    weir_graph_repair_go_on go_on;
    void *context;
    uint64_t steps;
} repair_compare;

static weir_err repair_go_on(repair_compare *c) {
    bool goes_on = ++c->steps % LOOK_RECORDS || c->go_on(c->context);
    return goes_on ? WEIR_OK : WEIR_ERR(WEIR_ECLOSED, "the repair is stopped");
}

static int repair_order(const weir_engine_cursor *a, const weir_engine_cursor *b) {
    size_t a_length, b_length;
    const void *a_key = weir_engine_cursor_key(a, &a_length), *b_key = weir_engine_cursor_key(b, &b_length);
    int order = memcmp(a_key, b_key, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Behind all, if it stands nowhere. */
static repair_place repair_place_of(const weir_engine_cursor *cursor) {
    repair_place place;
    size_t length;
    bool valid = weir_engine_cursor_valid(cursor);
    memset(&place, valid ? 0 : 0xff, sizeof place);
    if (!valid) return place;
    const void *key = weir_engine_cursor_key(cursor, &length);
    memcpy(place.bytes, key, length < sizeof place ? length : sizeof place);
    return place;
}

/* A cursor that has met damage may meet it again elsewhere, so it is another one. What is passed over is damaged for
 * ever: what cannot be read just now may be well. */
static bool repair_reads_at(repair_compare *c, const repair_place *place, weir_err *errp) {
    weir_engine_cursor_close(c->was);
    weir_err err = weir_engine_cursor_open(c->engine, WEIR_ENGINE_PROBE, &c->was);
    if (!err) weir_engine_cursor_seek(c->was, place->bytes, sizeof place->bytes);
    if (!err && !weir_engine_cursor_valid(c->was)) err = weir_engine_cursor_err(c->was);
    if (!c->was || (err && !weir_err_is(err, WEIR_ECORRUPT))) *errp = err;
    return !err;
}

/* Between c->from and `to` `was` cannot be read. */
static weir_err repair_leave_out(repair_compare *c, const repair_place *to) {
    size_t count = c->unread.length / sizeof(repair_range);
    repair_range *ranges = (repair_range *)(void *)c->unread.bytes;
    WEIR_ASSERT(c->unread.length % sizeof(repair_range) == 0);
    if (count && memcmp(&ranges[count - 1].to, &c->from, sizeof c->from) == 0) {
        ranges[count - 1].to = *to;
        return WEIR_OK;
    }
    weir_buf_append(&c->unread, &(repair_range){c->from, *to}, sizeof(repair_range));
    return weir_buf_err(&c->unread);
}

/* Nothing can be read where `was` stands: one of the files that it merges is damaged there. It goes on where the new
 * store has its next record, or further on. What lies between is left to repair_find_unread. *endp: nor can what is
 * left. */
static weir_err repair_pass_damage(repair_compare *c, bool *endp) {
    const repair_place place = repair_place_of(c->is);
    weir_err err = WEIR_OK;
    *endp = !weir_engine_cursor_valid(c->is);
    bool reads = repair_reads_at(c, &place, &err);
    if (!err) err = repair_leave_out(c, &place);
    for (uint64_t i = 0; !reads && i < c->ahead && weir_engine_cursor_valid(c->is); i++)
        weir_engine_cursor_next(c->is);
    c->ahead = reads ? 1 : c->ahead < AHEAD_RECORDS ? 2 * c->ahead : AHEAD_RECORDS;
    c->from = place;
    return err;
}

static weir_err repair_lost_err(const weir_graph_repair *repair, const char *what) {
    return WEIR_ERR(
        WEIR_EDATA,
        "shard %u has readable records that do not follow from the log, the first of them %s: the log has lost "
        "events, or the schema maps them differently now. Bring the damaged file back from a copy, or restore a "
        "checkpoint",
        repair->shard->index, what);
}

/* Whether the new store has these entries of a list, which are in its order. Far apart, each is looked for anew: what
 * lies between them may be long. */
static weir_err repair_find_entries(const repair_compare *c, weir_vertex vertex, weir_list list,
                                    const weir_entry *wanted, size_t count) {
    static const char *const kinds[WEIR_LIST_KINDS] = {"an edge", "a row of features", "a label", "a put",
                                                       "the note of an event"};
    const char *kind = WEIR_LIST_KIND(list) < WEIR_LIST_KINDS ? kinds[WEIR_LIST_KIND(list)] : "of an unknown kind";
    weir_cold_query query = {.vertex = vertex, .before_us = INT64_MAX, .with_it = true};
    weir_cold_page page = {
        .list = list, .capacity = ENTRIES_A_PAGE, .entries = c->page, .room = ENTRIES_A_PAGE, .arena = c->rows};
    size_t at = 0;
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        while (at < page.count && weir_entry_order(&c->page[at], &wanted[i]) < 0)
            at++;
        if (at == page.count) {
            query.after = &wanted[i];
            weir_arena_reset(c->rows);
            err = weir_cold_list(c->looks, &query, &page);
            at = 0;
        }
        bool is = at < page.count && weir_entry_order(&c->page[at], &wanted[i]) == 0;
        bool of_trim = list == WEIR_LIST_PUTS && wanted[i].time_us <= c->repair->whole_from_us;
        if (!err && !is && !of_trim) err = repair_lost_err(c->repair, kind); /* GRAPH-R1 */
    }
    return err;
}

/* A name may be another put's. A bundle that is not as it was written says nothing that must be found again. */
static weir_err repair_find_bundle(const repair_compare *c, const weir_bundle_key *key, const void *value,
                                   size_t length) {
    weir_entry fresh[WEIR_BUNDLE_ENTRIES_MAX + 1];
    weir_bundle_reader reader;
    weir_list list = 0;
    size_t count = 0;
    if (!weir_bundle_check(key, value, length) || !weir_bundle_open(&reader, key, value, length)) return WEIR_OK;
    weir_err err = WEIR_OK;
    if (reader.has_name) {
        weir_name name;
        bool found;
        err = weir_cold_name(c->looks, key->vertex, &name, &found);
        if (!err && !found) err = repair_lost_err(c->repair, "a name"); /* GRAPH-R1 */
    }
    while (!err && weir_bundle_next(&reader, &fresh[count]) == WEIR_BUNDLE_ENTRY) {
        if (count && (reader.list != list || count == WEIR_BUNDLE_ENTRIES_MAX)) {
            err = repair_find_entries(c, key->vertex, list, fresh, count);
            fresh[0] = fresh[count];
            count = 0;
        }
        list = reader.list;
        count++;
    }
    return err || count == 0 ? err : repair_find_entries(c, key->vertex, list, fresh, count);
}

/* Offsets and the newest time are not of events. */
static weir_err repair_find(const repair_compare *c, const void *key, size_t length, const void *value,
                            size_t value_length) {
    weir_bundle_key bundle;
    size_t met_length;
    if (weir_bundle_key_read(key, length, &bundle)) return repair_find_bundle(c, &bundle, value, value_length);
    if (length == 0 || *(const char *)key != 'T') return WEIR_OK;
    weir_engine_cursor_seek(c->looks, key, length);
    const void *met = weir_engine_cursor_valid(c->looks) ? weir_engine_cursor_key(c->looks, &met_length) : NULL;
    weir_err err = met ? WEIR_OK : weir_engine_cursor_err(c->looks);
    bool is = met && met_length == length && memcmp(met, key, length) == 0;
    return err || is ? err : repair_lost_err(c->repair, "the deletion of a vertex"); /* GRAPH-R1 */
}

/* One key, of either or of both. */
static weir_err repair_compare_one(repair_compare *c) {
    size_t length, value_length;
    bool more = weir_engine_cursor_valid(c->is);
    weir_err err = more ? WEIR_OK : weir_engine_cursor_err(c->is);
    int order = more ? repair_order(c->was, c->is) : -1;
    const void *key = weir_engine_cursor_key(c->was, &length);
    const void *value = weir_engine_cursor_value(c->was, &value_length);
    if (!err && order < 0) /* of a key that both have, the value is the same */
        err = repair_find(c, key, length, value, value_length);
    if (err) return err;
    if (order <= 0) c->from = repair_place_of(c->was);
    if (order >= 0) weir_engine_cursor_next(c->is);
    if (order <= 0) weir_engine_cursor_next(c->was);
    return WEIR_OK;
}

static weir_err repair_compare_merged(repair_compare *c) {
    weir_err err = WEIR_OK;
    bool end = false;
    weir_engine_cursor_seek(c->is, "", 0);
    weir_engine_cursor_seek(c->was, "", 0);
    while (!err && !end) {
        bool valid = weir_engine_cursor_valid(c->was);
        weir_err unread = valid ? WEIR_OK : weir_engine_cursor_err(c->was);
        if (!valid && !unread) break;
        err = repair_go_on(c);
        if (!err) err = valid ? repair_compare_one(c) : repair_pass_damage(c, &end);
    }
    return err ? err : weir_engine_cursor_err(c->is);
}

static weir_err repair_visit_unread(void *context, const void *key, size_t key_length, const void *value,
                                    size_t value_length) {
    repair_compare *c = context;
    weir_err err = repair_go_on(c);
    return err ? err : repair_find(c, key, key_length, value, value_length);
}

/* Where one file is damaged, what others have there can be read all the same. */
static weir_err repair_find_unread(repair_compare *c) {
    const repair_range *unread = (const repair_range *)(const void *)c->unread.bytes;
    size_t count = c->unread.length / sizeof *unread;
    if (count == 0) return WEIR_OK;
    weir_engine_range *ranges = weir_calloc(count, sizeof *ranges);
    if (!ranges) return WEIR_NOMEM("while comparing a shard with its repair");
    for (size_t i = 0; i < count; i++)
        ranges[i] = (weir_engine_range){unread[i].from.bytes, unread[i].to.bytes, PLACE_BYTES, PLACE_BYTES};
    weir_err err = weir_engine_salvage(c->engine, ranges, count, repair_visit_unread, c);
    weir_free(ranges);
    return err;
}

/* What an entry is, not its row: a schema that has grown since may give it more columns than it had. */
static weir_err repair_compare_all(weir_graph_repair *repair, weir_graph_repair_go_on go_on, void *context) {
    const weir_engine_opts opts = {.read_only = true};
    repair_compare c = {
        .repair = repair, .engine = repair->shard->engine, .ahead = 1, .go_on = go_on, .context = context};
    weir_engine *opened = NULL; /* the shard may have closed it, because it could not be opened again just then */
    weir_err err = weir_engine_cursor_open(c.engine, WEIR_ENGINE_SCAN, &c.was);
    if (weir_err_is(err, WEIR_ECORRUPT)) {
        err = weir_engine_open(repair->place, &opts, &opened);
        if (weir_err_is(err, WEIR_ECORRUPT)) return WEIR_OK; /* it cannot be opened: nothing can be read */
        c.engine = opened;
        if (!err) err = weir_engine_cursor_open(c.engine, WEIR_ENGINE_SCAN, &c.was);
    }
    if (!err) err = weir_engine_cursor_open(repair->engine, WEIR_ENGINE_PROBE, &c.is);
    if (!err) err = weir_engine_cursor_open(repair->engine, WEIR_ENGINE_POINT, &c.looks);
    if (!err) err = weir_arena_open(ROWS_A_PAGE_MAX, &c.rows);
    if (!err) c.page = weir_malloc(ENTRIES_A_PAGE * sizeof *c.page);
    if (!err && !c.page) err = WEIR_NOMEM("while comparing a shard with its repair");
    if (!err) err = repair_compare_merged(&c);
    if (!err) err = repair_find_unread(&c);
    weir_buf_free(&c.unread);
    weir_free(c.page);
    weir_arena_close(c.rows);
    weir_engine_cursor_close(c.looks);
    weir_engine_cursor_close(c.is);
    weir_engine_cursor_close(c.was);
    weir_engine_close(opened);
    repair->compared = !err;
    return err;
}

/* --- in its place ----------------------------------------------------------------------------------------------- */

static weir_err repair_is_missing(void *context, uint32_t source, uint32_t partition, uint64_t covered,
                                  uint64_t sealed) {
    (void)context;
    return WEIR_ERR(WEIR_EINTERNAL, "source %u partition %u is covered to %llu, and sealed to %llu", source, partition,
                    (unsigned long long)covered, (unsigned long long)sealed);
}

/* One damaged store is kept for people to look at; the one before makes room. */
static weir_err repair_keep_damaged(const char *folder, const char *damaged) {
    weir_err err = weir_path_exists(damaged) ? weir_folder_remove(damaged) : WEIR_OK;
    return err ? err : weir_file_rename(folder, damaged);
}

weir_err weir_graph_repair_replace(weir_graph_repair *repair, weir_graph_repair_go_on go_on, void *context) {
    weir_engine_writer *writer;
    weir_err err = repair_ready(repair);
    if (!err) err = weir_graph_repair_missing(repair, repair_is_missing, NULL);
    if (!err) err = repair_flush(repair);
    if (!err && !repair->compared) err = repair_compare_all(repair, go_on, context);
    if (!err) err = weir_engine_writer_open(repair->engine, &writer);
    if (err) return err;
    err = weir_shard_write_sealed(repair->shard, writer, repair->shard->trimmed);
    if (err) {
        weir_engine_writer_cancel(writer);
        return err;
    }
    err = weir_engine_writer_ingest(writer);
    if (err) return err;

    weir_engine_close(repair->engine);
    repair->engine = NULL;
    weir_kill_point("repair.whole");
    err = weir_shard_replace(repair->shard, repair->folder);
    if (err) return err;
    repair->replaced = true;
    weir_kill_point("repair.replaced");
    err = repair_keep_damaged(repair->folder, repair->damaged);
    if (err) weir_log_error("graph.repair_left", err); /* it stays until the next repair, or the next start */
    return WEIR_OK;
}

/* A crash leaves the damaged shard, or what is to be filled: never none. */
weir_err weir_graph_repair_set_aside(weir_graph *graph, uint32_t shard, const char *checkpoints, bool *emptyp) {
    char path[WEIR_GRAPH_PATH_MAX], fresh[WEIR_GRAPH_PATH_MAX], damaged[WEIR_GRAPH_PATH_MAX];
    bool based = false;
    weir_err err = weir_graph_shard_path(graph->folder, shard, path);
    if (!err) err = weir_graph_repair_path(graph, shard, ".repair", fresh);
    if (!err) err = weir_graph_repair_path(graph, shard, ".damaged", damaged);
    if (!err && weir_path_exists(fresh)) err = weir_folder_remove(fresh);
    if (!err && checkpoints) err = weir_graph_repair_base(graph, shard, checkpoints, fresh, &based);
    if (!err && !based) err = weir_folder_create(fresh);
    if (!err) err = weir_graph_identity_write(graph, shard, fresh);
    if (!err) err = weir_folder_swap(path, fresh);
    weir_kill_point("repair.set_aside");
    if (!err) err = repair_keep_damaged(fresh, damaged);
    *emptyp = !based;
    if (!err)
        WEIR_LOG(WARN, "graph.set_aside", "a damaged shard was set aside; it is filled from the log",
                 WEIR_U64("shard", shard), WEIR_TEXT("aside", damaged));
    return err;
}

void weir_graph_repair_say(weir_graph *graph, uint32_t shard, weir_err err) {
    weir_shard *s = graph->shards[shard];
    weir_mutex_lock(&s->mutex);
    weir_err_kept_set(&s->repair, err);
    weir_mutex_unlock(&s->mutex);
}
