/* SPDX-License-Identifier: Apache-2.0 */
/* trim.c - the new store of a shard, from its first file to the exchange. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/graph/repair.h>

#include "bundling.h"
#include "cold.h"
#include "joining.h"
#include "trim.h"

#define GATHERED_MAX      131072u     /* entries of a vertex … */
#define GATHERED_ROWS_MAX (16u << 20) /* … and bytes of their rows */
#define ROWS_BYTES        (48u << 20) /* with those of the bundle that is one too many */
#define DELETIONS_BYTES   (32u << 20) /* of a list, in a table */
#define RUN_BYTES         (256u << 20)
#define LOOK_BYTES        (16u << 10)
#define FIRST_KEYS        64u  /* of a store of a few events the watermark may go back */
#define HELD_FILES        2u   /* that may be left to come in while nothing is sealed */
#define BUSY_WAIT_MAX     256u /* seconds between two tries, twice as many each time: a reader takes long */

struct weir_trim {
    weir_graph *graph;
    weir_shard *shard;
    char folder[WEIR_GRAPH_PATH_MAX];
    weir_engine_cache *blocks; /* borrowed */
    weir_engine *fresh;        /* NULL: closed, because it is about to be put in place */
    weir_engine_cursor *cursor;
    weir_trimmer trimmer;
    weir_gather gather;
    weir_bundling bundling;
    weir_entry *entries; /* of the vertex at hand, each list turned around */
    weir_bundling_list *lists;
    size_t entry_capacity, list_capacity;
    weir_engine_writer *writer;  /* of the file at hand; NULL: none is begun */
    weir_engine_writer **sealed; /* finished: what was sealed since, in that order */
    size_t sealed_count, sealed_capacity;
    weir_trimmed trimmed;   /* the shard, once this is in its place */
    atomic_bool failed;     /* what was sealed is not here */
    weir_err_kept seal_err; /* and why                     */
    weir_graph_pace pace;
    void *context;
    uint64_t unpaced; /* bytes that were read since it was told */
};

/* --- what is sealed meanwhile: the sealer's --------------------------------------------------------------------- */

static void trim_fail(weir_trim *trim, weir_err err) {
    weir_err_kept_set(&trim->seal_err, err);
    atomic_store(&trim->failed, true);
}

weir_engine_writer *weir_trim_seal_begin(weir_trim *trim, weir_trimmed *trimmedp) {
    weir_engine_writer *writer = NULL;
    if (!trim || atomic_load(&trim->failed)) return NULL;
    *trimmedp = trim->trimmed;
    weir_err err = trim->fresh ? weir_engine_writer_open(trim->fresh, &writer)
                               : WEIR_ERR(WEIR_EUNAVAILABLE, "%s could not be opened again", trim->folder);
    if (err) trim_fail(trim, err);
    return writer;
}

void weir_trim_seal_end(weir_trim *trim, weir_engine_writer *writer, weir_err err) {
    if (!err) err = weir_engine_writer_finish(writer);
    if (!err && !WEIR_GROW(trim->sealed, trim->sealed_capacity, trim->sealed_count))
        err = WEIR_NOMEM("for %zu files of a trim", trim->sealed_count + 1);
    if (!err) {
        trim->sealed[trim->sealed_count++] = writer;
        return;
    }
    weir_engine_writer_cancel(writer);
    trim_fail(trim, err);
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

/* In the order in which they were sealed; all are closed. */
static weir_err trim_take_in(weir_engine_writer **sealed, size_t *countp) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < *countp; i++) {
        if (!err) {
            err = weir_engine_writer_ingest(sealed[i]);
        } else {
            weir_engine_writer_cancel(sealed[i]);
        }
    }
    *countp = 0;
    return err;
}

static weir_err trim_open_engine(weir_trim *trim, bool create) {
    const weir_engine_opts opts = {
        .cache = trim->blocks, .create = create, .last_rank = weir_bundle_last_rank, .joining = &weir_joining};
    return weir_engine_open(trim->folder, &opts, &trim->fresh);
}

static void trim_stop_reading(weir_trim *trim) {
    weir_deleted_look_end(&trim->trimmer.look);
    trim->trimmer.look.beside = NULL;
    weir_engine_cursor_close(trim->cursor);
    trim->cursor = NULL;
}

/* What the folder has then, the fresh store or the one that it has replaced, is not needed. */
static void trim_close(weir_trim *trim) {
    if (!trim) return;
    trim_stop_reading(trim);
    weir_engine_writer_cancel(trim->writer);
    for (size_t i = 0; i < trim->sealed_count; i++)
        weir_engine_writer_cancel(trim->sealed[i]);
    weir_engine_close(trim->fresh);
    weir_err err = weir_path_exists(trim->folder) ? weir_folder_remove(trim->folder) : WEIR_OK;
    if (err) weir_log_error("graph.trim_left", err); /* the next trim, or the next start, removes it */
    weir_gather_close(&trim->gather);
    weir_arena_close(trim->trimmer.arena);
    weir_buf_free(&trim->bundling.bundle.value);
    weir_free(trim->trimmer.times);
    weir_free(trim->entries);
    weir_free(trim->lists);
    weir_free(trim->sealed);
    weir_free(trim);
}

/* What stays is not known, but is no more than there is; a disk that a trim has filled would stop seals. */
static weir_err trim_needs_room(const weir_graph *graph, const weir_trim *trim) {
    struct statvfs disk;
    weir_engine_stats stats;
    weir_engine_stats_get(trim->shard->engine, &stats);
    if (statvfs(graph->folder, &disk)) return WEIR_ERRNO(errno, "cannot ask how full the disk of %s is", graph->folder);
    uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes > stats.live_bytes) return WEIR_OK;
    return WEIR_ERR(WEIR_EFULL,
                    "trimming shard %u needs up to %llu bytes on the disk, and %llu are free; free some space",
                    trim->shard->index, (unsigned long long)stats.live_bytes, (unsigned long long)free_bytes);
}

/* The watermark that belongs to what is sealed: what is not may be older than a later one would let stand, and after a
 * crash the watermark is this one, or later. One that is ahead of the wall clock may go back. */
static weir_err trim_set_now(weir_trim *trim) {
    weir_shard *shard = trim->shard;
    weir_mutex_lock(&shard->mutex);
    int64_t now_us = shard->sealed_us;
    const weir_trimmed before = shard->trimmed;
    weir_mutex_unlock(&shard->mutex);
    trim->trimmer.rule.now_us = now_us;
    trim->trimmed = (weir_trimmed){now_us, weir_trim_rule_whole_from_us(&trim->trimmer.rule)};
    if (before.now_us > now_us) trim->trimmed.now_us = before.now_us;
    if (before.whole_from_us > trim->trimmed.whole_from_us) trim->trimmed.whole_from_us = before.whole_from_us;
    if (now_us != WEIR_EVENT_CLOCK_NONE && now_us <= weir_clock_wall_us(shard->clock)) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE, "shard %u cannot be trimmed: its watermark is %s", shard->index,
                    now_us == WEIR_EVENT_CLOCK_NONE ? "not known yet" : "ahead of the wall clock");
}

/* While the shard is held: the offsets are those of what the cursor sees, and what is sealed from then on comes here,
 * too. */
static weir_err trim_begin(weir_trim *trim) {
    weir_shard *shard = trim->shard;
    weir_engine_writer *writer;
    weir_err err = trim_set_now(trim);
    if (!err) err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_SCAN, &trim->cursor);
    if (!err) err = weir_gather_open(trim->cursor, GATHERED_MAX, GATHERED_ROWS_MAX, ROWS_BYTES, &trim->gather);
    if (!err) err = weir_engine_writer_open(trim->fresh, &writer);
    if (err) return err;
    trim->trimmer.look.beside = trim->cursor;
    err = weir_shard_write_sealed(shard, writer, trim->trimmed);
    if (err) {
        weir_engine_writer_cancel(writer);
        return err;
    }
    err = weir_engine_writer_ingest(writer);
    if (!err) shard->trim = trim;
    return err;
}

/* --- vertex by vertex ------------------------------------------------------------------------------------------- */

static weir_err trim_ended(const weir_trim *trim) {
    return WEIR_ERR(WEIR_ECLOSED, "shard %u is not trimmed now", trim->shard->index);
}

static weir_err trim_check(weir_trim *trim) {
    if (atomic_load(&trim->failed)) return weir_err_kept_get(&trim->seal_err);
    bool go_on = trim->pace(trim->context, trim->unpaced);
    trim->unpaced = 0;
    if (!go_on) return trim_ended(trim);
    return weir_engine_health(trim->shard->engine); /* what is to be opened again waits for this cursor */
}

/* Between two keys: nothing of a file depends on another. */
static weir_err trim_add(void *context, const uint8_t *key, size_t key_length, const uint8_t *value,
                         size_t value_length) {
    weir_trim *trim = context;
    weir_err err = WEIR_OK;
    if (trim->writer && weir_engine_writer_bytes(trim->writer) >= RUN_BYTES) {
        err = weir_engine_writer_ingest(trim->writer);
        trim->writer = NULL;
        weir_kill_point("trim.run");
    }
    if (!err && !trim->writer) err = weir_engine_writer_open_large(trim->fresh, &trim->writer);
    return err ? err : weir_engine_writer_add(trim->writer, key, key_length, value, value_length);
}

/* What is left of the vertex, each list oldest first. */
static weir_err trim_write_vertex(weir_trim *trim) {
    const weir_gather *g = &trim->gather;
    size_t lists = 0, count = 0;
    for (size_t i = 0; i < g->count; i++)
        lists += i == 0 || g->of[i].list != g->of[i - 1].list;
    if (g->count > trim->entry_capacity) {
        weir_entry *grown = weir_realloc_array(trim->entries, g->count * 2, sizeof *grown);
        if (!grown) return WEIR_NOMEM("for %zu records of a vertex", g->count);
        trim->entries = grown;
        trim->entry_capacity = g->count * 2;
    }
    if (lists > trim->list_capacity) {
        weir_bundling_list *grown = weir_realloc_array(trim->lists, lists * 2, sizeof *grown);
        if (!grown) return WEIR_NOMEM("for %zu lists of a vertex", lists);
        trim->lists = grown;
        trim->list_capacity = lists * 2;
    }
    for (size_t begin = 0, end; begin < g->count; begin = end) {
        for (end = begin; end < g->count && g->of[end].list == g->of[begin].list; end++) {
        }
        for (size_t i = begin; i < end; i++)
            trim->entries[begin + end - 1 - i] = g->of[i].entry;
        trim->lists[count++] = (weir_bundling_list){g->of[begin].list, (uint32_t)(end - begin), trim->entries + begin};
    }
    WEIR_ASSERT(count == lists);
    return weir_bundling_vertex(&trim->bundling, g->vertex, g->named ? &g->name : NULL, trim->lists, count);
}

/* --- large vertices: bundle by bundle, as they are -------------------------------------------------------------- */

typedef struct trim_large {
    weir_trim *trim;
    uint32_t part;
    int64_t gone_us; /* of that part */
    int64_t unasked; /* notes of events up to this offset are never asked for */
    bool any;        /* bundles have gone */
    int64_t newest_us, oldest_us;
    bool has_put; /* one that stands for them, and is to be written at its place */
    uint8_t put_key[WEIR_BUNDLE_KEY_BYTES];
} trim_large;

static weir_err trim_large_put(trim_large *l, weir_vertex vertex) {
    weir_bundle_writer *bundle = &l->trim->bundling.bundle;
    const weir_entry newest = {.time_us = l->newest_us}, oldest = {.time_us = l->oldest_us};
    WEIR_ASSERT(l->any && l->oldest_us <= l->newest_us);
    weir_bundle_begin(bundle, l->newest_us, l->oldest_us);
    weir_bundle_put(bundle, WEIR_LIST_PUTS, &newest);
    if (l->oldest_us != l->newest_us) weir_bundle_put(bundle, WEIR_LIST_PUTS, &oldest);
    l->any = false;
    l->has_put = true;
    return weir_bundle_end(bundle, (weir_bundle_key){.vertex = vertex, .part = WEIR_BUNDLE_PART(WEIR_LIST_PUTS)},
                           l->put_key);
}

static weir_err trim_large_write_put(trim_large *l) {
    const weir_buf *value = &l->trim->bundling.bundle.value;
    l->has_put = false;
    return trim_add(l->trim, l->put_key, sizeof l->put_key, (const uint8_t *)value->bytes, value->length);
}

/* Lists of edges come before all others, and this knows once for each what may go. */
static weir_err trim_large_goes(trim_large *l, const weir_bundle_key *key, weir_bundle_reader *reader, bool *goesp) {
    weir_entry e;
    weir_err err = WEIR_OK;
    if (key->part == WEIR_BUNDLE_PART(WEIR_LIST_EVENTS)) {
        *goesp = key->newest_us <= l->unasked; /* it puts nothing */
        return WEIR_OK;
    }
    if (key->part != l->part) {
        l->part = key->part;
        err = weir_trimmer_gone_us(&l->trim->trimmer, key->vertex, key->part - 1u, &l->gone_us);
    }
    *goesp = !err && key->newest_us <= l->gone_us && l->gone_us != INT64_MIN;
    while (*goesp && weir_bundle_next(reader, &e) == WEIR_BUNDLE_ENTRY) {
        if (e.deletion) continue;
        if (!l->any || e.time_us > l->newest_us) l->newest_us = e.time_us;
        if (!l->any || e.time_us < l->oldest_us) l->oldest_us = e.time_us;
        l->any = true;
    }
    return err;
}

static weir_err trim_large_bundle(trim_large *l, const weir_bundle_key *key) {
    weir_bundle_reader reader;
    size_t key_length, length;
    bool goes, of_edges = WEIR_LIST_KIND(key->part - 1u) == WEIR_LIST_KIND_EDGES;
    const uint8_t *bytes = weir_engine_cursor_key(l->trim->cursor, &key_length);
    const void *value = weir_engine_cursor_value(l->trim->cursor, &length);
    l->trim->unpaced += key_length + length;
    if (!weir_bundle_check(key, value, length) || !weir_bundle_open(&reader, key, value, length))
        return weir_cold_damaged(key->vertex);
    weir_err err = trim_large_goes(l, key, &reader, &goes);
    if (err || goes) return err;
    if (l->any && !of_edges) err = trim_large_put(l, key->vertex);
    int order = l->has_put ? memcmp(l->put_key, bytes, sizeof l->put_key) : 1;
    if (!err && order < 0) err = trim_large_write_put(l);
    if (order == 0) l->has_put = false; /* this is the same */
    return err ? err : trim_add(l->trim, bytes, key_length, value, length);
}

static weir_err trim_large_vertex(weir_trim *trim) {
    const weir_cold_query notes = {.vertex = trim->gather.vertex, .before_us = INT64_MAX};
    trim_large l = {.trim = trim, .part = UINT32_MAX, .unasked = INT64_MIN};
    weir_bundle_key key = {.vertex = trim->gather.vertex, .newest_us = INT64_MAX};
    uint8_t first[WEIR_BUNDLE_KEY_BYTES];
    weir_entry note;
    weir_cold_page newest = {.list = WEIR_LIST_EVENTS, .capacity = 1, .entries = &note, .room = 1};
    bool there = false;
    weir_bundle_key_write(&key, first);
    weir_err err = weir_cold_list(trim->cursor, &notes, &newest); /* notes have no rows */
    if (!err && newest.count) l.unasked = newest.entries[0].time_us - trim->trimmer.rule.event_window - 1;
    weir_engine_cursor_seek(trim->cursor, first, sizeof first);
    if (!err) err = weir_gather_stands(&trim->gather, &key, &there);
    while (!err && there) {
        err = trim->unpaced >= LOOK_BYTES ? trim_check(trim) : WEIR_OK;
        if (!err) err = trim_large_bundle(&l, &key);
        weir_engine_cursor_next(trim->cursor);
        if (!err) err = weir_gather_stands(&trim->gather, &key, &there);
    }
    if (!err && l.any) err = trim_large_put(&l, trim->gather.vertex);
    return !err && l.has_put ? trim_large_write_put(&l) : err;
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

/* Deletions stay: an edge may come late. The rest of what the store keeps for itself is there already. */
static weir_err trim_step(weir_trim *trim) {
    size_t key_length, value_length;
    weir_bundle_key bundle;
    const uint8_t *key = weir_engine_cursor_key(trim->cursor, &key_length);
    const void *value = weir_engine_cursor_value(trim->cursor, &value_length);
    weir_err err = trim->unpaced >= LOOK_BYTES ? trim_check(trim) : WEIR_OK;
    if (err) return err;
    if (weir_bundle_key_read(key, key_length, &bundle)) {
        bool too_large;
        err = weir_gather_vertex(&trim->gather, bundle.vertex, &too_large);
        trim->unpaced += trim->gather.bytes;
        if (!err && too_large) return trim_large_vertex(trim);
        if (!err) err = weir_trimmer_vertex(&trim->trimmer, &trim->gather);
        return err ? err : trim_write_vertex(trim);
    }
    if (key_length && key[0] == WEIR_BUNDLE_KIND) return weir_cold_damaged(trim->gather.vertex);
    trim->unpaced += key_length;
    if (key_length && key[0] == 'T') err = trim_add(trim, key, key_length, value, value_length);
    weir_engine_cursor_next(trim->cursor);
    return err;
}

static weir_err trim_run(weir_trim *trim) {
    weir_err err = WEIR_OK;
    trim->bundling = (weir_bundling){.visit = trim_add, .context = trim};
    weir_engine_cursor_seek(trim->cursor, "", 0);
    while (!err && weir_engine_cursor_valid(trim->cursor))
        err = trim_step(trim);
    if (!err) err = weir_engine_cursor_err(trim->cursor);
    if (!err) err = trim_check(trim);
    trim_stop_reading(trim);
    if (!err && trim->writer) {
        err = weir_engine_writer_ingest(trim->writer);
        trim->writer = NULL;
    }
    weir_kill_point("trim.written");
    return err;
}

/* Files are read when they come in: as long as they are many, while seals go on. */
static weir_err trim_catch_up(weir_trim *trim) {
    for (;;) {
        weir_err err = weir_shard_hold(trim->shard);
        weir_engine_writer **sealed = trim->sealed;
        size_t count = trim->sealed_count;
        bool few = count <= HELD_FILES;
        if (!err && !few) {
            trim->sealed = NULL;
            trim->sealed_count = trim->sealed_capacity = 0;
        }
        weir_shard_release(trim->shard);
        if (err || few) return err;
        err = trim_take_in(sealed, &count);
        weir_free(sealed);
        if (err) return err;
    }
}

/* While the shard is held. An error leaves the shard as it is, and this one open. What the graph says of trims stays at
 * this one's time then: another shard's may rely on it, and as that is no later than what the sources have agreed on,
 * a reader is told less only if their time goes back. */
static weir_err trim_put_in_place(weir_trim *trim) {
    weir_err err = atomic_load(&trim->failed) ? weir_err_kept_get(&trim->seal_err) : WEIR_OK;
    if (!err) err = trim_take_in(trim->sealed, &trim->sealed_count);
    if (err) return err;
    weir_engine_close(trim->fresh);
    trim->fresh = NULL;
    weir_kill_point("trim.whole");
    weir_graph_set_trimmed(trim->graph, trim->trimmed.now_us); /* before a reader may miss anything */
    err = weir_shard_replace(trim->shard, trim->folder);
    weir_kill_point("trim.replaced");
    if (err) {
        weir_err open_err = trim_open_engine(trim, false); /* for what is sealed until it is tried again */
        return open_err ? open_err : err;
    }
    weir_mutex_lock(&trim->shard->mutex);
    WEIR_ASSERT(trim->trimmed.now_us >= trim->shard->trimmed.now_us); /* what was taken away does not come back */
    trim->shard->trimmed = trim->trimmed;
    weir_mutex_unlock(&trim->shard->mutex);
    trim->shard->trim = NULL;
    return WEIR_OK;
}

/* Each try keeps readers waiting for up to a second, and what was sealed meanwhile comes in by the next. */
static weir_err trim_exchange(weir_trim *trim) {
    for (uint32_t wait = 1;; wait *= 2) {
        weir_err err = trim_catch_up(trim);
        if (!err) err = weir_shard_hold(trim->shard);
        if (!err) err = trim_put_in_place(trim);
        weir_shard_release(trim->shard);
        if (!weir_err_is(err, WEIR_EBUSY) || wait > BUSY_WAIT_MAX) return err;
        for (uint32_t seconds = 0; seconds < wait; seconds++) {
            if (!trim->pace(trim->context, 0)) return trim_ended(trim);
            weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + WEIR_US_PER_S);
        }
    }
}

void weir_graph_set_trimmed(weir_graph *graph, int64_t trimmed_us) {
    int64_t latest_us = atomic_load(&graph->trimmed_us);
    while (trimmed_us > latest_us && !atomic_compare_exchange_weak(&graph->trimmed_us, &latest_us, trimmed_us)) {
    }
}

weir_err weir_graph_trim(weir_graph *graph, uint32_t shard, weir_graph_pace pace, void *context) {
    WEIR_ASSERT(shard < graph->shard_count);
    weir_shard *s = graph->shards[shard];
    if (graph->read_only || weir_graph_filling(graph))
        return WEIR_ERR(WEIR_EUNAVAILABLE, "a store that is only read, or is still being filled, is not trimmed");
    weir_trim *trim = weir_calloc(1, sizeof *trim);
    if (!trim) return WEIR_NOMEM("while trimming shard %u", shard);
    *trim = (weir_trim){.graph = graph, .shard = s, .blocks = graph->blocks, .pace = pace, .context = context};
    trim->trimmer.rule =
        (weir_trim_rule){graph->schema, graph->vertex_kinds, WEIR_EVENT_CLOCK_NONE, graph->event_window};
    trim->trimmer.look.deleted = s->deleted;

    weir_mutex_lock(&s->mutex);
    bool is_free = !s->trimming;
    s->trimming = true;
    weir_mutex_unlock(&s->mutex);
    if (!is_free) {
        weir_free(trim);
        return WEIR_ERR(WEIR_EBUSY, "shard %u is being trimmed", shard);
    }

    /* An empty store beside the shard, then the shard's records, then the exchange. */
    weir_err err = weir_graph_repair_path(graph, shard, WEIR_GRAPH_TRIM_SUFFIX, trim->folder);
    if (!err && weir_path_exists(trim->folder)) err = weir_folder_remove(trim->folder);
    if (!err) err = trim_needs_room(graph, trim);
    if (!err) err = trim_open_engine(trim, true);
    if (!err) err = weir_graph_identity_write(graph, shard, trim->folder);
    if (!err) err = weir_arena_open(DELETIONS_BYTES, &trim->trimmer.arena);
    if (err) goto done;
    err = weir_shard_hold(s);
    if (!err) err = trim_begin(trim);
    weir_shard_release(s);
    weir_kill_point("trim.begun");
    if (!err) err = trim_run(trim);
    if (!err) err = trim_exchange(trim);
    if (err && !weir_shard_hold(s)) s->trim = NULL;
    weir_shard_release(s);
done:
    trim_close(trim);
    weir_mutex_lock(&s->mutex);
    s->trimming = false;
    weir_mutex_unlock(&s->mutex);
    return err;
}

bool weir_graph_trim_due(const weir_graph *graph, uint32_t shard) {
    weir_shard *s = graph->shards[shard];
    weir_engine_stats stats;
    weir_mutex_lock(&s->mutex);
    int64_t now_us = s->sealed_us, trimmed_us = s->trimmed.now_us;
    weir_mutex_unlock(&s->mutex);
    if (graph->read_only || weir_graph_filling(graph) || now_us == WEIR_EVENT_CLOCK_NONE) return false;
    int64_t next_us = weir_trim_rule_next_us(graph->schema, trimmed_us == WEIR_TRIMMED_NEVER ? 0 : trimmed_us);
    if (next_us == INT64_MAX || now_us > weir_clock_wall_us(s->clock)) return false;
    if (trimmed_us != WEIR_TRIMMED_NEVER) return now_us >= next_us;
    weir_engine_stats_get(s->engine, &stats);
    return stats.keys_estimate >= FIRST_KEYS;
}

bool weir_graph_trims(const weir_graph *graph) {
    return weir_trim_rule_next_us(graph->schema, 0) != INT64_MAX;
}

int64_t weir_graph_whole_from_us(const weir_graph *graph, uint32_t shard) {
    weir_shard *s = graph->shards[shard];
    weir_mutex_lock(&s->mutex);
    int64_t whole_from_us = s->trimmed.whole_from_us;
    weir_mutex_unlock(&s->mutex);
    return whole_from_us;
}
