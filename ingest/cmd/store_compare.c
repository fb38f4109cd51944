/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_compare.c - a shard as it is stored, against a replay of the log from its first event.
 *
 *   log ──map──► naive.h, whole log ─┐
 *   shard ──scan──► each record ─────┴─► not said, or said differently: a difference
 *                   each offset ───────► said below it, and not met: missing; met, but only said above it: too early
 *
 * Three things are left open. A vertex's name is carried by one put only, which may not be sealed yet though others
 * are; so a missing name counts only if all its puts are sealed. An event that is a dead letter although it can be
 * mapped may or may not be there: a schema may have changed. What is as old as the schema's `history` may have been
 * trimmed (repair.h): it is not missed, and a bare put that was never said may stand in its place.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/ingest/map/map.h>
#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/ingest/pipeline/repeats.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/key.h>
#include <weir/store/format/stored.h>
#include <weir/store/graph/repair.h>

#include "naive.h"
#include "store_private.h"

#define RECORDS_A_READ  256u
#define DIFFERENCES_MAX 20u /* that are told; all are counted */

typedef struct store_compare_letter {
    uint64_t identity, offset;
    uint32_t partition;
} store_compare_letter;

typedef struct store_compare_offset {
    uint32_t source, partition;
    uint64_t offset;
} store_compare_offset;

typedef struct store_comparison {
    weir_graph *graph;
    const char *log_folder;
    weir_buf *out;
    store_compare_letter *letters;
    size_t letter_count, letter_capacity;
    store_compare_offset *sealed; /* of the shard in hand */
    size_t sealed_count, sealed_capacity;
    int64_t whole_from_us; /* of the shard in hand: what is as old may have been trimmed */
    weir_naive naive;
    uint64_t events, records, differences;
} store_comparison;

/* --- the log ---------------------------------------------------------------------------------------------------- */

typedef weir_err (*store_compare_visit)(void *context, const weir_record *record);

static weir_err store_compare_walk_partition(weir_eventlog *log, uint32_t partition, store_compare_visit visit,
                                             void *context) {
    weir_eventlog_reader *reader;
    weir_record records[RECORDS_A_READ];
    size_t count = 1;
    weir_err err = weir_eventlog_reader_open(log, partition, 0, &reader);
    if (err) return err;
    while (!err && count) {
        err = weir_eventlog_reader_next(reader, records, RECORDS_A_READ, &count);
        for (size_t i = 0; !err && i < count; i++)
            err = visit(context, &records[i]);
    }
    weir_eventlog_reader_close(reader);
    return err;
}

static int store_compare_letter_order(const void *a, const void *b) {
    const store_compare_letter *x = a, *y = b;
    if (x->identity != y->identity) return x->identity < y->identity ? -1 : 1;
    if (x->partition != y->partition) return x->partition < y->partition ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static weir_err store_compare_add_letter(void *context, const weir_record *record) {
    store_comparison *c = context;
    weir_dead_letter read;
    weir_err err = weir_dead_letter_read(record, &read);
    if (err) return err;
    if (!WEIR_GROW(c->letters, c->letter_capacity, c->letter_count))
        return WEIR_NOMEM("for %zu dead letters", c->letter_count + 1);
    c->letters[c->letter_count++] = (store_compare_letter){read.identity, read.offset, read.partition};
    return WEIR_OK;
}

static weir_err store_compare_read_letters(store_comparison *c) {
    const weir_eventlog_opts opts = {.read_only = true};
    weir_eventlog *log;
    weir_err err = weir_eventlog_open(c->log_folder, WEIR_DEAD_LETTER_TOPIC, &opts, &log);
    if (err) return weir_err_is(err, WEIR_ENOTFOUND) ? WEIR_OK : err;
    for (uint32_t p = 0; !err && p < weir_eventlog_partitions(log); p++)
        err = store_compare_walk_partition(log, p, store_compare_add_letter, c);
    if (c->letter_count) qsort(c->letters, c->letter_count, sizeof *c->letters, store_compare_letter_order);
    weir_err_keep(&err, weir_eventlog_close(log));
    return err;
}

typedef struct store_compare_replay {
    store_comparison *c;
    weir_mapper *mapper;
    weir_repeats *repeats; /* of the partition in hand */
    uint64_t identity;
    weir_naive_place place;
} store_compare_replay;

static weir_err store_compare_replay_record(void *context, const weir_record *record) {
    store_compare_replay *r = context;
    weir_mapped event;
    const store_compare_letter as_letter = {r->identity, record->offset, r->place.partition};
    const void *value = record->value ? record->value : "";
    weir_err err = weir_mapper_map(r->mapper, r->place.partition, record->offset, value, record->value_length, &event);
    r->c->events++;
    if (weir_err_is(err, WEIR_EDATA)) return WEIR_OK; /* a dead letter, or one to be */
    r->place.offset = record->offset;
    r->place.doubtful = r->c->letter_count && bsearch(&as_letter, r->c->letters, r->c->letter_count, sizeof as_letter,
                                                      store_compare_letter_order) != NULL;
    if (err) return err;
    if (event.event_id) {
        uint64_t first;
        weir_repeat repeat = weir_repeats_ask(r->repeats, event.event, event.content, record->offset, &first);
        if (repeat != WEIR_REPEAT_FIRST) return WEIR_OK; /* nothing new, or a dead letter */
        weir_vertex vertex = weir_graph_source_vertex(r->c->graph, r->place.source, r->place.partition);
        err = weir_repeats_add(r->repeats, event.event, event.content, record->offset);
        if (!err) err = weir_naive_add_event(&r->c->naive, vertex, event.event, event.content, &r->place);
        weir_repeats_forget(r->repeats, record->offset);
    }
    return err ? err : weir_naive_add(&r->c->naive, event.mutations, event.count, &r->place);
}

static weir_err store_compare_replay_topic(store_comparison *c, uint32_t index, weir_eventlog *log) {
    const weir_schema *schema = weir_graph_schema(c->graph);
    store_compare_replay r = {.c = c, .identity = weir_eventlog_creation_id(log)};
    const char *topic = weir_schema_source_at(schema, index)->topic;
    weir_err err = weir_graph_source(c->graph, topic, r.identity, &r.place.source);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return WEIR_OK; /* the store was never fed from it */
    if (!err) err = weir_mapper_open(schema, index, weir_graph_id_key(c->graph), &r.mapper);
    for (uint32_t p = 0; !err && p < weir_eventlog_partitions(log); p++) {
        r.place.partition = p;
        err = weir_repeats_open(weir_graph_event_window(c->graph), &r.repeats);
        if (!err)
            err = weir_err_prefix(store_compare_walk_partition(log, p, store_compare_replay_record, &r),
                                  "topic %s, partition %u", topic, p);
        weir_repeats_close(r.repeats);
    }
    weir_mapper_close(r.mapper);
    return err;
}

static weir_err store_compare_replay_log(store_comparison *c) {
    const weir_schema *schema = weir_graph_schema(c->graph);
    const weir_eventlog_opts opts = {.read_only = true};
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_source_count(schema); i++) {
        weir_eventlog *log;
        weir_err open_err = weir_eventlog_open(c->log_folder, weir_schema_source_at(schema, i)->topic, &opts, &log);
        if (weir_err_is(open_err, WEIR_ENOTFOUND)) continue;
        err = open_err ? open_err : store_compare_replay_topic(c, i, log);
        if (!open_err) weir_err_keep(&err, weir_eventlog_close(log));
    }
    weir_naive_sort(&c->naive);
    return err;
}

/* Each source that the store knows must be a topic that was replayed. */
static weir_err store_compare_check_source(void *context, const char *source, uint32_t partition, uint64_t sealed,
                                           uint64_t applied) {
    const store_comparison *c = context;
    const weir_schema *schema = weir_graph_schema(c->graph);
    const weir_eventlog_opts opts = {.read_only = true};
    weir_eventlog_partition_stats stats = {0};
    weir_eventlog *log;
    (void)applied;
    uint32_t i = 0;
    while (i < weir_schema_source_count(schema) && strcmp(weir_schema_source_at(schema, i)->topic, source) != 0)
        i++;
    if (i == weir_schema_source_count(schema)) {
        return WEIR_ERR(WEIR_EDATA, "the store was also fed from '%.64s', which is not a topic of the log in %s",
                        source, c->log_folder);
    }
    weir_err err = weir_eventlog_open(c->log_folder, source, &opts, &log);
    if (err) return err;
    err = weir_eventlog_stats_get(log, partition, &stats);
    if (!err && stats.offset_begin > 0) {
        err = WEIR_ERR(WEIR_EDATA, "the log begins at offset %" PRIu64 " of %s, partition %u; a replay needs all of it",
                       stats.offset_begin, source, partition);
    }
    if (!err && stats.offset_durable < sealed) {
        err = WEIR_ERR(WEIR_EDATA,
                       "the log of %s, partition %u, ends at offset %" PRIu64 ", the store at %" PRIu64
                       "; give the log that the store was fed from with --log",
                       source, partition, stats.offset_durable, sealed);
    }
    weir_err_keep(&err, weir_eventlog_close(log));
    return err;
}

/* --- the store -------------------------------------------------------------------------------------------------- */

static void store_compare_differ(store_comparison *c, const char *what, const weir_naive_record *r) {
    if (c->differences++ >= DIFFERENCES_MAX) return;
    weir_buf_printf(c->out,
                    "shard %u, vertex " WEIR_VERTEX_FORMAT ": %s (kind %c, list %u, time %" PRId64
                    " us, neighbour " WEIR_VERTEX_FORMAT ", event %016" PRIx64 ")\n",
                    c->naive.shard, WEIR_VERTEX_WORDS(r->vertex), what, r->kind, r->list, r->time_us,
                    WEIR_VERTEX_WORDS(r->neighbor), r->event);
}

static weir_err store_compare_add_offset(store_comparison *c, const void *key, size_t length, const void *value) {
    store_compare_offset o = {.offset = weir_get_u64(value)};
    if (!weir_offset_key_read(key, length, &o.source, &o.partition)) return WEIR_OK;
    if (!WEIR_GROW(c->sealed, c->sealed_capacity, c->sealed_count))
        return WEIR_NOMEM("for %zu offsets", c->sealed_count + 1);
    c->sealed[c->sealed_count++] = o;
    return WEIR_OK;
}

/* The offset below which all of the place's partition is sealed. */
static uint64_t store_compare_sealed_below(const store_comparison *c, const weir_naive_place *place) {
    for (size_t i = 0; i < c->sealed_count; i++) {
        if (c->sealed[i].source == place->source && c->sealed[i].partition == place->partition)
            return c->sealed[i].offset;
    }
    return 0;
}

/* false: not a thing that an event says. */
static bool store_compare_thing_of(const uint8_t *key, size_t length, weir_naive_record *like) {
    weir_version_key version = {.vertex = 0};
    weir_edge_key edge;
    char kind = length ? (char)key[0] : 0;
    uint16_t list = 0;
    bool is = false;
    switch (kind) {
    case 'E':
        if (!weir_edge_key_read(key, length, &edge)) return false;
        *like = (weir_naive_record){.kind = edge.deletion ? 'D' : 'E',
                                    .list = edge.relation,
                                    .direction = edge.direction,
                                    .vertex = edge.vertex,
                                    .neighbor = edge.neighbor,
                                    .time_us = edge.time_us,
                                    .event = edge.event,
                                    .content = edge.content};
        return true;
    case 'F':
        is = weir_feature_key_read(key, length, &version);
        break;
    case 'I':
        is = weir_event_key_read(key, length, &version);
        break;
    case 'K':
        is = weir_put_key_read(key, length, &version.vertex, &version.time_us);
        break;
    case 'L':
        is = weir_label_key_read(key, length, &version, &list);
        break;
    case 'N':
        is = weir_name_key_read(key, length, &version.vertex);
        break;
    case 'T':
        is = weir_deleted_key_read(key, length, &version.vertex, &version.time_us);
        break;
    default:
        break;
    }
    *like = (weir_naive_record){.kind = kind,
                                .list = list,
                                .vertex = version.vertex,
                                .time_us = version.time_us,
                                .event = version.event,
                                .content = version.content};
    return is;
}

static bool store_compare_says(const store_comparison *c, const weir_naive_record *said, const void *value,
                               size_t length) {
    uint8_t row[2 + WEIR_KEY_MAX];
    int64_t time_us;
    uint16_t type;
    const char *name;
    size_t name_length;
    if (said->kind != 'N') return weir_naive_row_is(&c->naive, said, value, length);
    if (!weir_stored_name_read(value, length, &type, &time_us, &name, &name_length) || name_length > WEIR_KEY_MAX)
        return false;
    weir_put_u16(row, type);
    memcpy(row + 2, name, name_length);
    return weir_naive_row_is(&c->naive, said, row, name_length + 2);
}

static weir_err store_compare_stored(void *context, const void *key, size_t key_length, const void *value,
                                     size_t value_length) {
    store_comparison *c = context;
    weir_naive_record like;
    size_t count;
    bool same = false;
    if (key_length == WEIR_OFFSET_KEY_BYTES && *(const char *)key == 'O' && value_length >= 8)
        return store_compare_add_offset(c, key, key_length, value);
    if (!store_compare_thing_of(key, key_length, &like)) return WEIR_OK; /* verify has looked at it */
    c->records++;
    weir_naive_record *said = weir_naive_find(&c->naive, &like, &count);
    for (size_t i = 0; i < count; i++) {
        said[i].seen = true;
        same = same || store_compare_says(c, &said[i], value, value_length);
    }
    if (!said && like.kind == 'K' && like.time_us <= c->whole_from_us) return WEIR_OK; /* a trim has left it */
    if (!same) store_compare_differ(c, said ? "the log says otherwise" : "the log does not say so", &like);
    return WEIR_OK;
}

/* A trim takes what is old, the name of a vertex of which nothing else is left, and notes of events that are no longer
 * asked for. */
static bool store_compare_may_have_gone(const store_comparison *c, const weir_naive_record *r) {
    if (c->whole_from_us == INT64_MIN) return false;
    if (r->kind == 'I')
        return r->place.offset + weir_graph_event_window(c->graph) < store_compare_sealed_below(c, &r->place);
    if (r->kind == 'N') return !weir_naive_put_after(&c->naive, r->vertex, c->whole_from_us);
    return strchr("DEFKL", r->kind) && r->time_us <= c->whole_from_us;
}

/* What is sealed must have been met, and what was met must be sealed. */
static void store_compare_check_group(store_comparison *c, size_t begin, size_t end) {
    const weir_naive_record *first = &c->naive.records[begin];
    bool some_sealed = false, all_sealed = true, doubtful = false;
    for (size_t i = begin; i < end; i++) {
        const weir_naive_place *place = &c->naive.records[i].place;
        bool sealed = place->offset < store_compare_sealed_below(c, place);
        some_sealed = some_sealed || sealed;
        all_sealed = all_sealed && sealed;
        doubtful = doubtful || c->naive.records[i].place.doubtful;
    }
    if (first->seen && !some_sealed) store_compare_differ(c, "it is stored before its offset is", first);
    if (first->seen || !some_sealed || doubtful) return;
    if (first->kind == 'N' && !all_sealed) return;
    if (store_compare_may_have_gone(c, first)) return;
    store_compare_differ(c, "it is missing", first);
}

static weir_err store_compare_shard(store_comparison *c, uint32_t shard) {
    c->naive = (weir_naive){.shard = shard, .shards = weir_graph_shards(c->graph)};
    c->sealed_count = 0;
    c->whole_from_us = weir_graph_whole_from_us(c->graph, shard);
    weir_err err = store_compare_replay_log(c);
    if (!err) err = weir_graph_scan(c->graph, shard, store_compare_stored, c);
    for (size_t begin = 0, end; !err && begin < c->naive.count; begin = end) {
        end = weir_naive_group_end(&c->naive, begin);
        store_compare_check_group(c, begin, end);
    }
    weir_naive_free(&c->naive);
    return err;
}

weir_err weir_cmd_store_compare(weir_graph *graph, const char *log_folder, weir_buf *out) {
    store_comparison c = {.graph = graph, .log_folder = log_folder, .out = out};
    weir_err err = weir_graph_offsets(graph, store_compare_check_source, &c);
    if (!err) err = store_compare_read_letters(&c);
    for (uint32_t shard = 0; !err && shard < weir_graph_shards(graph); shard++)
        err = store_compare_shard(&c, shard);
    weir_free(c.letters);
    weir_free(c.sealed);
    if (err) return err;
    weir_buf_printf(out, "%" PRIu64 " events replayed, %" PRIu64 " records compared, %" PRIu64 " differences\n",
                    c.events / weir_graph_shards(graph), c.records, c.differences);
    if (c.differences == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the store differs from its log in %" PRIu64
                    " records; move it away and let the server build it again from the log",
                    c.differences);
}
