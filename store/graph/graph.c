/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the whole: opening and closing it, handing mutations to its shards, its sources, its time, what it
 * holds. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/log.h>
#include <weir/store/base/rng.h>

#include <weir/store/graph/repair.h>

#include "cold.h"
#include "graph_private.h"
#include "trim.h"

#define SHARDS_DEFAULT  2u
#define MEMORY_DEFAULT  ((uint64_t)1 << 30)
#define SEAL_US_DEFAULT (10 * WEIR_US_PER_S)
#define WINDOW_DEFAULT  128u

#define EVENT_WINDOW_DEFAULT 131072u

/* How the memory budget is shared: half for deltas (an active and a frozen one a shard, each with what it may have
 * beyond its seal size), a quarter for windows and deleted vertices, which have an eighth of that (half for the filter,
 * half for answers), an eighth for blocks of the cold store and filters of its files, an eighth for names. While
 * nothing is read, piles take some five eighths of the windows' memory, too. */
#define DELTAS_SHARE   2
#define WINDOWS_SHARE  4
#define BLOCKS_SHARE   8
#define NAMES_SHARE    8
#define DELETED_SHARE  32
#define DELTAS_A_SHARD 2

weir_err weir_graph_path(const char *folder, const char *name, char path[WEIR_GRAPH_PATH_MAX]) {
    int length = snprintf(path, WEIR_GRAPH_PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= (int)WEIR_GRAPH_PATH_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    return WEIR_OK;
}

weir_err weir_graph_shard_path(const char *folder, uint32_t shard, char path[WEIR_GRAPH_PATH_MAX]) {
    char name[16];
    snprintf(name, sizeof name, "shard-%03u", shard);
    return weir_graph_path(folder, name, path);
}

/* --- kinds ------------------------------------------------------------------------------------------------------ */

static weir_err graph_kinds_fill(weir_graph_kinds *kinds, const weir_schema_feature *features, uint32_t count) {
    kinds->kinds = weir_malloc(count * sizeof(weir_value_kind));
    if (!kinds->kinds) return WEIR_NOMEM("for the schema's features");
    kinds->count = count;
    for (uint32_t i = 0; i < count; i++)
        kinds->kinds[i] = features[i].kind == WEIR_SCHEMA_NUMBER ? WEIR_VALUE_NUMBER
                          : features[i].kind == WEIR_SCHEMA_TIME ? WEIR_VALUE_TIME
                                                                 : WEIR_VALUE_CATEGORY;
    return WEIR_OK;
}

static weir_err graph_kinds_open(weir_graph *graph) {
    uint32_t vertices = weir_schema_vertex_count(graph->schema), relations = weir_schema_relation_count(graph->schema);
    weir_err err = WEIR_OK;
    graph->vertex_kinds = weir_calloc(vertices, sizeof(weir_graph_kinds));
    graph->relation_kinds = weir_calloc(relations, sizeof(weir_graph_kinds));
    if (!graph->vertex_kinds || !graph->relation_kinds) return WEIR_NOMEM("for the schema's features");
    for (uint32_t i = 0; !err && i < vertices; i++) {
        const weir_schema_vertex *v = weir_schema_vertex_at(graph->schema, i);
        err = graph_kinds_fill(&graph->vertex_kinds[i], v->features, v->feature_count);
    }
    for (uint32_t i = 0; !err && i < relations; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(graph->schema, i);
        err = graph_kinds_fill(&graph->relation_kinds[i], r->features, r->feature_count);
    }
    return err;
}

static void graph_kinds_close(weir_graph_kinds *kinds, uint32_t count) {
    for (uint32_t i = 0; kinds && i < count; i++)
        weir_free(kinds[i].kinds);
    weir_free(kinds);
}

const weir_value_kind *weir_graph_vertex_kinds(const weir_graph *graph, uint32_t vertex_type, size_t *countp) {
    WEIR_ASSERT(vertex_type < weir_schema_vertex_count(graph->schema));
    *countp = graph->vertex_kinds[vertex_type].count;
    return graph->vertex_kinds[vertex_type].kinds;
}

const weir_value_kind *weir_graph_relation_kinds(const weir_graph *graph, uint32_t relation, size_t *countp) {
    WEIR_ASSERT(relation < weir_schema_relation_count(graph->schema));
    *countp = graph->relation_kinds[relation].count;
    return graph->relation_kinds[relation].kinds;
}

/* --- open and close --------------------------------------------------------------------------------------------- */

static weir_err graph_lock(weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX], pid[32];
    weir_err err = weir_graph_path(graph->folder, "LOCK", path);
    if (!err) err = weir_file_open(path, WEIR_FILE_OPEN_OR_CREATE, &graph->lock);
    if (!err) err = weir_file_lock(graph->lock);
    if (!err) err = weir_file_truncate(graph->lock, 0);
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (!err) err = weir_file_append(graph->lock, pid, (size_t)length);
    return err;
}

/* A store is there once graph.yaml is, which is written last: what a crash has left of a creation is removed. */
static weir_err graph_describe_or_read(weir_graph *graph, const weir_graph_opts *opts) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(graph->folder, "graph.yaml", path);
    if (err) return err;
    if (weir_path_exists(path)) return weir_graph_read_description(graph);
    if (!opts->create) {
        return WEIR_ERR(WEIR_ENOTFOUND, "there is no store in %s; give the folder that weir serve writes",
                        graph->folder);
    }
    graph->shard_count = opts->shards ? opts->shards : SHARDS_DEFAULT;
    graph->event_window = opts->event_window ? opts->event_window : EVENT_WINDOW_DEFAULT;
    if (opts->id_key) {
        graph->id_key = *opts->id_key;
    } else if (opts->id_key_path && *opts->id_key_path) {
        err = weir_id_key_load(opts->id_key_path, &graph->id_key);
    } else {
        err = weir_id_key_draw(&graph->id_key);
    }
    graph->is_new = true;
    return err ? err : weir_graph_creation_begin(graph);
}

/* What is new gets its identity; so does what an earlier version has made, once. */
static weir_err graph_identify(weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX];
    bool has_one = graph->identity != 0;
    weir_err err = WEIR_OK;
    if (graph->read_only || (has_one && !graph->is_new)) return WEIR_OK;
    while (!graph->identity)
        graph->identity = weir_rng_fresh_seed();
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        err = weir_graph_shard_path(graph->folder, i, path);
        if (!err) err = weir_graph_identity_write(graph, i, path);
    }
    return err ? err : weir_graph_describe(graph);
}

/* A shard's folder with nothing but its identity was emptied so that it is filled from the log; a folder that is gone
 * is refused. */
static bool graph_is_to_be_rebuilt(const weir_graph *graph, const char *shard_folder, uint32_t shard) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(shard_folder, "CURRENT", path);
    if (err || graph->read_only || !graph->identity || weir_path_exists(path)) return false;
    WEIR_LOG(WARN, "graph.rebuilds", "the shard's folder has its identity only; it is filled from the log",
             WEIR_U64("shard", shard));
    return true;
}

/* Whether readers find what comes only once it is sealed: until the store is filled they are not answered anyway. */
static bool graph_starts_piled(const weir_graph *graph, const weir_graph_opts *opts) {
    return !opts->read_only && (opts->piles || (opts->from_log && weir_graph_filling(graph)));
}

static weir_err graph_open_shards(weir_graph *graph, const weir_graph_opts *opts) {
    uint64_t memory = opts->memory_bytes ? opts->memory_bytes : MEMORY_DEFAULT;
    uint64_t windows = memory / WINDOWS_SHARE - memory / DELETED_SHARE;
    uint64_t delta_share = memory / DELTAS_SHARE / graph->shard_count / DELTAS_A_SHARD;
    uint64_t seal_share = delta_share / (WEIR_SHARD_SPARE_SHARE + 1) * WEIR_SHARD_SPARE_SHARE;
    uint64_t seal_bytes = opts->seal_bytes && opts->seal_bytes < seal_share ? opts->seal_bytes : seal_share;
    /* Nothing is read meanwhile: most of the windows' memory is free. */
    uint64_t pile_bytes =
        opts->seal_bytes ? seal_bytes : seal_bytes + windows / 2 / graph->shard_count / DELTAS_A_SHARD;
    char path[WEIR_GRAPH_PATH_MAX];
    weir_shard_opts shard = {
        .folder = path,
        .shards = graph->shard_count,
        .seal_bytes = seal_bytes,
        .seal_us = opts->seal_us ? opts->seal_us : SEAL_US_DEFAULT,
        .cache_bytes = windows / graph->shard_count,
        .deleted_bytes = memory / DELETED_SHARE / 2 / graph->shard_count,
        .window = opts->window ? opts->window : WINDOW_DEFAULT,
        .read_only = opts->read_only,
        .clock = graph->clock,
        .watermark = graph->watermark,
    };
    weir_err err = weir_engine_cache_open(memory / BLOCKS_SHARE, &graph->blocks);
    if (!err) err = weir_names_open(memory / NAMES_SHARE, weir_graph_trims(graph), &graph->names);
    if (!err) err = weir_deleted_filter_open(memory / DELETED_SHARE / 2, &graph->deleted);
    shard.blocks = graph->blocks;
    shard.deleted = graph->deleted;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        shard.index = i;
        err = weir_graph_shard_path(graph->folder, i, path);
        if (!err && !graph->is_new && graph->identity) err = weir_graph_identity_check(graph, i);
        shard.create = graph->is_new || (!err && graph_is_to_be_rebuilt(graph, path, i));
        if (!err && shard.create && (opts->from_log || !graph->is_new)) err = weir_graph_filling_begin(graph);
        shard.pile_bytes = graph_starts_piled(graph, opts) ? pile_bytes : 0;
        if (!err) err = weir_shard_open(&shard, &graph->shards[i]);

        /* A folder that is gone is lost, not damaged: it may be brought back. */
        bool is_damaged = weir_err_is(err, WEIR_ECORRUPT) && weir_path_exists(path);
        if (is_damaged && opts->repairs && !opts->read_only && graph->identity) {
            weir_log_error("graph.shard_damaged", err);
            err = weir_graph_filling_begin(graph);
            shard.pile_bytes = graph_starts_piled(graph, opts) ? pile_bytes : 0;
            if (!err) err = weir_graph_repair_set_aside(graph, i, opts->checkpoints, &shard.create);
            if (!err) err = weir_shard_open(&shard, &graph->shards[i]);
        }
    }
    return err;
}

/* The clock of a partition is that of the shard from which it is read on. */
static weir_err graph_load_clock(void *context, uint32_t source, uint32_t partition, uint64_t offset,
                                 const weir_event_clock *clock) {
    weir_graph *graph = context;
    weir_event_clock least = *clock;
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        uint64_t of_shard;
        weir_offsets_get(graph->shards[i]->applied, source, partition, &of_shard);
        if (of_shard >= offset) continue;
        offset = of_shard;
        weir_offsets_clock(graph->shards[i]->applied, source, partition, &least);
    }
    return weir_watermark_load(graph->watermark, source, partition, offset, &least);
}

/* A shard that was never trimmed says a time before all. */
static void graph_say_if_time_went_back(const weir_graph *graph) {
    int64_t trimmed_us = atomic_load(&graph->trimmed_us), now_us = weir_watermark_now(graph->watermark);
    if (trimmed_us <= now_us) return;
    WEIR_LOG(
        WARN, "graph.time_went_back",
        "shards were trimmed at a later time than the sources agree on: reads are told nothing older than that trim's "
        "history until the time has come as far again; weir serve --rebuild makes the store anew",
        WEIR_I64("trimmed_us", trimmed_us), WEIR_I64("now_us", now_us));
}

weir_err weir_graph_open(const char *folder, const weir_schema *schema, const weir_graph_opts *opts,
                         weir_graph **graphp) {
    *graphp = NULL;
    if (opts->shards > WEIR_SHARDS_MAX || opts->window > WEIR_WINDOW_MAX ||
        opts->event_window > WEIR_EVENT_WINDOW_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "a store has at most %u shards, windows of %u edges and of %u event ids",
                        WEIR_SHARDS_MAX, WEIR_WINDOW_MAX, WEIR_EVENT_WINDOW_MAX);
    }
    weir_graph *graph = weir_calloc(1, sizeof *graph);
    if (!graph) return WEIR_NOMEM("while opening the store %s", folder);
    weir_mutex_init(&graph->mutex, WEIR_RANK_GRAPH, "graph");
    graph->schema = schema;
    graph->read_only = opts->read_only;
    graph->clock = opts->clock ? opts->clock : weir_clock_system();
    graph->folder = weir_strdup(folder);
    weir_err err = graph->folder ? WEIR_OK : WEIR_NOMEM("while opening the store %s", folder);
    if (!err && opts->create) err = weir_folder_create(folder);
    if (!err) err = graph_kinds_open(graph);
    if (!err && !opts->read_only && (opts->create || weir_path_exists(folder))) err = graph_lock(graph);
    if (!err) err = graph_describe_or_read(graph, opts);
    if (!err) err = weir_graph_check_schema(graph);
    if (!err) err = weir_watermark_open(graph->clock, opts->future_us, &graph->watermark);
    if (!err) err = weir_graph_filling_read(graph);
    if (!err) err = graph_open_shards(graph, opts);
    if (!err) err = graph_identify(graph);
    if (!err && !opts->read_only) err = weir_graph_creation_end(graph);
    if (!err && !opts->read_only) err = weir_graph_repair_clean(graph);
    if (!err) err = weir_offsets_walk(graph->shards[0]->applied, graph_load_clock, graph);
    atomic_init(&graph->trimmed_us, WEIR_TRIMMED_NEVER);
    for (uint32_t i = 0; !err && i < graph->shard_count; i++)
        weir_graph_set_trimmed(graph, graph->shards[i]->trimmed.now_us);
    if (!err) graph_say_if_time_went_back(graph);
    if (err) {
        weir_err_keep(&err, weir_graph_close(graph));
        return err;
    }
    graph->opened = true;
    *graphp = graph;
    return WEIR_OK;
}

weir_err weir_graph_close(weir_graph *graph) {
    weir_err err = WEIR_OK;
    if (!graph) return WEIR_OK;
    if (graph->opened && !graph->read_only) err = weir_graph_seal(graph);
    for (uint32_t i = 0; i < graph->shard_count; i++)
        weir_shard_close(graph->shards[i]);
    weir_watermark_close(graph->watermark);
    weir_names_close(graph->names);
    weir_deleted_filter_close(graph->deleted);
    weir_engine_cache_close(graph->blocks);
    graph_kinds_close(graph->vertex_kinds, weir_schema_vertex_count(graph->schema));
    graph_kinds_close(graph->relation_kinds, weir_schema_relation_count(graph->schema));
    weir_err_keep(&err, weir_file_close(graph->lock));
    weir_mutex_destroy(&graph->mutex);
    weir_free(graph->folder);
    weir_free(graph);
    return err;
}

uint32_t weir_graph_shards(const weir_graph *graph) {
    return graph->shard_count;
}

const weir_schema *weir_graph_schema(const weir_graph *graph) {
    return graph->schema;
}

uint32_t weir_graph_event_window(const weir_graph *graph) {
    return graph->event_window;
}

/* No vertex type has an empty name. */
weir_vertex weir_graph_source_vertex(const weir_graph *graph, uint32_t source, uint32_t partition) {
    const uint32_t place[2] = {source, partition};
    return weir_vertex_id(&graph->id_key, "", (const char *)place, sizeof place);
}

const weir_id_key *weir_graph_id_key(const weir_graph *graph) {
    return &graph->id_key;
}

/* --- submitting ------------------------------------------------------------------------------------------------- */

weir_err weir_graph_submit(weir_graph *graph, const weir_buf *batches) {
    if (graph->read_only) return WEIR_ERR(WEIR_EPERM, "the store %s is open for reading only", graph->folder);
    weir_batch_cursor cursors[WEIR_SHARDS_MAX];
    weir_clock_note *note = NULL;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(graph->shard_count > 0 && graph->shard_count <= WEIR_SHARDS_MAX);

    /* All batches are looked at before the first is handed over: a run is taken whole or not at all. */
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        err = weir_batch_open(batches[i].bytes, batches[i].length, &cursors[i]);
        if (!err && memcmp(&cursors[0].span, &cursors[i].span, sizeof cursors[i].span) != 0)
            err = WEIR_ERR(WEIR_EINVAL, "the batches of one run cover different offsets");
    }
    if (!err) err = weir_watermark_submit(graph->watermark, cursors, graph->shard_count, &note);
    if (err) return err;

    int64_t start_us = weir_clock_mono_us(weir_clock_system());
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        err = weir_shard_push(graph->shards[i], batches[i].bytes, batches[i].length, note);
        if (err) weir_watermark_give_back(graph->watermark, note, graph->shard_count - i, false);
    }
    atomic_fetch_add_explicit(&graph->submit_wait_us, (uint64_t)(weir_clock_mono_us(weir_clock_system()) - start_us),
                              memory_order_relaxed);
    return err;
}

void weir_graph_interrupt(weir_graph *graph, bool on) {
    for (uint32_t i = 0; i < graph->shard_count; i++)
        weir_queue_interrupt(graph->shards[i]->queue, on);
}

/* All are asked before the first answers: shards work, and fail, side by side. */
weir_err weir_graph_drain(weir_graph *graph) {
    weir_shard_ticket tickets[WEIR_SHARDS_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < graph->shard_count; i++)
        tickets[i] = weir_shard_ask(graph->shards[i]);
    for (uint32_t i = 0; i < graph->shard_count; i++)
        weir_err_keep(&err, weir_shard_drained(graph->shards[i], &tickets[i]));
    return err;
}

weir_err weir_graph_seal(weir_graph *graph) {
    weir_shard_ticket tickets[WEIR_SHARDS_MAX];
    weir_err err = WEIR_OK;
    if (graph->read_only) return WEIR_ERR(WEIR_EPERM, "the store %s is open for reading only", graph->folder);
    for (uint32_t i = 0; i < graph->shard_count; i++)
        tickets[i] = weir_shard_ask_seal(graph->shards[i]);
    for (uint32_t i = 0; i < graph->shard_count; i++)
        weir_err_keep(&err, weir_shard_sealed(graph->shards[i], &tickets[i]));
    return err;
}

/* --- sources ---------------------------------------------------------------------------------------------------- */

weir_err weir_graph_source(weir_graph *graph, const char *name, uint64_t identity, uint32_t *sourcep) {
    weir_err err = WEIR_OK;
    uint32_t i = 0;
    *sourcep = 0;
    weir_mutex_lock(&graph->mutex);
    while (i < graph->source_count && strcmp(graph->sources[i].name, name) != 0)
        i++;
    if (i < graph->source_count) {
        if (graph->sources[i].identity != identity)
            err = WEIR_ERR(WEIR_EDATA,
                           "'%s' is not what this store was fed from: it has been recreated since, and its offsets "
                           "mean something else now. Start an empty store, or bring the old one back",
                           name);
    } else if (graph->read_only) {
        err = WEIR_ERR(WEIR_ENOTFOUND, "the store %s was never fed from '%.64s'", graph->folder, name);
    } else if (i == WEIR_GRAPH_SOURCES_MAX) {
        err = WEIR_ERR(WEIR_ELIMIT, "the store cannot take the source '%.64s': it has %u already", name, i);
    } else if (strlen(name) > WEIR_SOURCE_NAME_MAX || strpbrk(name, "\"\\\n")) {
        err = WEIR_ERR(WEIR_ELIMIT,
                       "the store cannot take the source '%.64s': its name has more than %u bytes, or a quote, a "
                       "backslash or a newline",
                       name, WEIR_SOURCE_NAME_MAX);
    } else {
        strcpy(graph->sources[i].name, name);
        graph->sources[i].identity = identity;
        graph->source_count++;
        err = weir_graph_describe(graph);
        if (err) graph->source_count--;
    }
    if (!err) *sourcep = i;
    weir_mutex_unlock(&graph->mutex);
    return err;
}

/* Its row never moves, so the name may be read without the mutex. */
static const char *graph_source_name(weir_graph *graph, uint32_t source) {
    weir_mutex_lock(&graph->mutex);
    const char *name = source < graph->source_count ? graph->sources[source].name : "?";
    weir_mutex_unlock(&graph->mutex);
    return name;
}

static uint64_t graph_least_offset(weir_graph *graph, bool sealed, uint32_t source, uint32_t partition) {
    uint64_t least = UINT64_MAX, offset;
    WEIR_ASSERT(graph->shard_count > 0);
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        weir_offsets *offsets = sealed ? graph->shards[i]->sealed : graph->shards[i]->applied;
        weir_offsets_get(offsets, source, partition, &offset);
        if (offset < least) least = offset;
    }
    return least;
}

uint64_t weir_graph_offset_sealed(weir_graph *graph, uint32_t source, uint32_t partition) {
    return graph_least_offset(graph, true, source, partition);
}

uint64_t weir_graph_offset_applied(weir_graph *graph, uint32_t source, uint32_t partition) {
    return graph_least_offset(graph, false, source, partition);
}

typedef struct graph_offsets_walk {
    weir_graph *graph;
    weir_graph_offset_visit visit;
    void *context;
} graph_offsets_walk;

static weir_err graph_visit_offset(void *context, uint32_t source, uint32_t partition, uint64_t offset,
                                   const weir_event_clock *clock) {
    const graph_offsets_walk *w = context;
    (void)offset, (void)clock;
    return w->visit(w->context, graph_source_name(w->graph, source), partition,
                    weir_graph_offset_sealed(w->graph, source, partition),
                    weir_graph_offset_applied(w->graph, source, partition));
}

weir_err weir_graph_offsets(weir_graph *graph, weir_graph_offset_visit visit, void *context) {
    graph_offsets_walk w = {graph, visit, context};
    return weir_offsets_walk(graph->shards[0]->applied, graph_visit_offset, &w);
}

typedef struct graph_uneven_walk {
    weir_graph *graph;
    weir_graph_uneven_visit visit;
    void *context;
    uint32_t shard; /* whose offsets are walked */
} graph_uneven_walk;

/* Told once: at the first shard that has most. */
static weir_err graph_visit_uneven(void *context, uint32_t source, uint32_t partition, uint64_t offset,
                                   const weir_event_clock *clock) {
    const graph_uneven_walk *w = context;
    weir_graph *graph = w->graph;
    uint64_t least = offset;
    uint32_t shard = w->shard;
    (void)clock;
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        uint64_t other = 0;
        weir_offsets_get(graph->shards[i]->applied, source, partition, &other);
        if (other > offset || (other == offset && i < w->shard)) return WEIR_OK;
        if (other >= least) continue;
        least = other;
        shard = i;
    }
    if (least == offset) return WEIR_OK;
    return w->visit(w->context, graph_source_name(graph, source), partition, shard, least, offset);
}

weir_err weir_graph_uneven(weir_graph *graph, weir_graph_uneven_visit visit, void *context) {
    graph_uneven_walk w = {graph, visit, context, 0};
    weir_err err = WEIR_OK;
    for (; !err && w.shard < graph->shard_count; w.shard++)
        err = weir_offsets_walk(graph->shards[w.shard]->applied, graph_visit_uneven, &w);
    return err;
}

/* --- what time it is -------------------------------------------------------------------------------------------- */

weir_err weir_graph_clock_state(weir_graph *graph, uint32_t source, uint32_t partition, weir_clock_state state) {
    return weir_watermark_state(graph->watermark, source, partition, state);
}

int64_t weir_graph_watermark(const weir_graph *graph) {
    return weir_watermark_now(graph->watermark);
}

int64_t weir_graph_latest(weir_graph *graph, int64_t arrived_us) {
    return weir_watermark_latest(graph->watermark, arrived_us);
}

weir_err weir_graph_clocks(weir_graph *graph, weir_graph_clock_visit visit, void *context) {
    weir_graph_clock clock;
    uint32_t source;
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && weir_watermark_clock_at(graph->watermark, i, &source, &clock); i++) {
        clock.source = graph_source_name(graph, source);
        err = visit(context, &clock);
    }
    return err;
}

/* --- what it holds ----------------------------------------------------------------------------------------------- */

weir_err weir_graph_scan(weir_graph *graph, uint32_t shard, weir_graph_visit visit, void *context) {
    weir_engine_cursor *cursor;
    if (shard >= graph->shard_count) return WEIR_ERR(WEIR_EINVAL, "there is no shard %u", shard);
    weir_err err = weir_engine_cursor_open(graph->shards[shard]->engine, WEIR_ENGINE_SCAN, &cursor);
    if (err) return err;
    err = weir_cold_scan(cursor, visit, context);
    weir_engine_cursor_close(cursor);
    return err;
}

void weir_graph_stats_get(weir_graph *graph, weir_graph_stats *statsp) {
    *statsp =
        (weir_graph_stats){.submit_wait_us = atomic_load(&graph->submit_wait_us), .event_time_last_us = INT64_MIN};
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        weir_shard *s = graph->shards[i];
        weir_cache_stats cache;
        weir_engine_stats engine;
        weir_delta *deltas[2];
        weir_cache_stats_get(s->cache, &cache);
        weir_engine_stats_get(s->engine, &engine);
        weir_shard_version(s, deltas);
        for (size_t d = 0; d < 2; d++) {
            if (deltas[d]) statsp->delta_bytes += weir_delta_bytes(deltas[d]);
            weir_delta_release(deltas[d]);
        }
        statsp->applied_mutations += atomic_load(&s->applied_mutations);
        statsp->skipped_mutations += atomic_load(&s->skipped_mutations);
        statsp->sealed_records += atomic_load(&s->sealed_records);
        weir_mutex_lock(&s->mutex);
        statsp->seals += s->seals_done;
        statsp->seal_failures += s->seal_failures;
        weir_mutex_unlock(&s->mutex);
        statsp->cache_bytes += cache.bytes;
        statsp->cache_hits += cache.hits;
        statsp->cache_misses += cache.misses;
        statsp->cold_bytes += engine.live_bytes;
        statsp->cold_files += engine.live_files;
        statsp->level0_files += engine.level0_files;
        statsp->compaction_bytes += engine.compaction_bytes;
        statsp->compactions += engine.jobs;
        statsp->taken_bytes += engine.taken_bytes;
        statsp->compacted_bytes += engine.compacted_bytes;
        statsp->compaction_cpu_us += engine.compaction_cpu_us;
        int64_t last = atomic_load(&s->event_time_last_us);
        if (last > statsp->event_time_last_us) statsp->event_time_last_us = last;
    }
    statsp->deleted_vertices = weir_deleted_count(graph->shards[0]->deleted);
}
