/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows_bench.c - ten edges of a vertex: out of windows that are cached, and out of the cold store.
 *
 * The limit of the first is an array with ten edges of each vertex, copied from; that of the second the same edges in
 * sorted files of the same engine, a key each, found by a seek and ten steps. Both stores have as many files, and each
 * list is read cold once only. One thread reads: windows that are cached a thousand at once, and one after the other. A
 * sampler asks for at most 64 at once, and for up to 128 edges of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>
#include <weir/store/engine/engine.h>
#include <weir/store/format/key.h>
#include <weir/store/graph/graph.h>

#include "bench.h"

#define SEALS        8u
#define EDGES        10u
#define ASKED        1000u /* vertices at once */
#define HOT          20000u
#define BATCH        10000u
#define MEMORY_BYTES (256u << 20)
#define ARENA_BYTES  (16u << 20)

static const char schema_text[] = "version: 1\n"
                                  "name: windows\n"
                                  "vertices: {a: {}, b: {}}\n"
                                  "relations: {r: {from: a, to: b}}\n"
                                  "sources: {s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b}]}}\n";

typedef struct windows_context {
    uint64_t vertices, edges;
    weir_rng rng;
    weir_schema *schema;
    weir_graph *graph;
    weir_engine *raw;
    weir_arena *arena;
    weir_edge *array; /* EDGES of each of the first HOT vertices */
    uint32_t *order;  /* of the others: those that are read cold, each once */
    uint32_t raw_next, cold_next;
} windows_context;

static weir_vertex vertex_of(uint64_t n) {
    return weir_vertex_make((n + 1) * 0x9e3779b97f4a7c15ull, n);
}

/* The n-th edge, in the order of time. */
static weir_mutation edge_of(const windows_context *c, uint64_t n) {
    uint64_t drawn = (n + 1) * 0xd6e8feb86659fd93ull;
    drawn ^= drawn >> 32;
    return (weir_mutation){.kind = WEIR_PUT_EDGE,
                           .vertex = vertex_of(drawn % c->vertices),
                           .neighbor = vertex_of(c->vertices + n),
                           .time_us = 1700000000000000 + (int64_t)n * 1000,
                           .event = n + 1,
                           .offset = n};
}

/* --- the two stores ----------------------------------------------------------------------------------------------- */

static weir_err fill_graph(const windows_context *c, uint32_t source) {
    weir_buf batch = {0};
    weir_err err = WEIR_OK;
    for (uint64_t begin = 0; !err && begin < c->edges; begin += BATCH) {
        uint64_t end = begin + BATCH < c->edges ? begin + BATCH : c->edges;
        const weir_batch_span span = {source, 0, begin, end};
        weir_batch_begin(&batch);
        for (uint64_t n = begin; n < end; n++) {
            const weir_mutation m = edge_of(c, n);
            weir_batch_add(&batch, &m, begin);
        }
        weir_batch_end(&batch, &span, (uint32_t)(end - begin));
        err = weir_buf_err(&batch);
        if (!err) err = weir_graph_submit(c->graph, &batch);
        bool is_due = end * SEALS / c->edges != begin * SEALS / c->edges;
        if (!err && is_due) err = weir_graph_seal(c->graph);
        weir_buf_clear(&batch);
    }
    weir_buf_free(&batch);
    return err;
}

static int compare_keys(const void *a, const void *b) {
    return memcmp(a, b, WEIR_EDGE_KEY_BYTES);
}

static weir_err fill_raw_file(const windows_context *c, uint64_t begin, uint64_t end) {
    weir_engine_writer *writer;
    uint8_t(*keys)[WEIR_EDGE_KEY_BYTES] = weir_malloc((end - begin) * sizeof *keys);
    if (!keys) return WEIR_NOMEM("for the bench's edges");
    for (uint64_t n = begin; n < end; n++) {
        const weir_mutation m = edge_of(c, n);
        const weir_entry e = {.neighbor = m.neighbor, .time_us = m.time_us, .event = m.event};
        weir_record_key_write(m.vertex, WEIR_LIST_EDGES(0, WEIR_OUT), &e, keys[n - begin]);
    }
    qsort(keys, end - begin, sizeof *keys, compare_keys);
    weir_err err = weir_engine_writer_open(c->raw, &writer);
    for (uint64_t n = 0; !err && n < end - begin; n++)
        err = weir_engine_writer_add(writer, keys[n], sizeof keys[n], NULL, 0);
    weir_free(keys);
    if (!err) return weir_engine_writer_ingest(writer);
    weir_engine_writer_cancel(writer);
    return err;
}

/* --- what is measured --------------------------------------------------------------------------------------------- */

static weir_err ask(const windows_context *c, uint64_t vertex, const weir_edge **edgesp, uint32_t *countp) {
    return weir_graph_neighbors(c->graph, vertex_of(vertex), 0, WEIR_OUT, WEIR_BEFORE_ALL, EDGES, c->arena, edgesp,
                                countp);
}

/* So that nobody leaves the copies out. */
static uint64_t sum_of(const weir_edge *edges, uint32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += edges[i].event;
    return sum;
}

static weir_err run_array(void *context, uint64_t round, weir_bench_sample *samplep) {
    windows_context *c = context;
    static weir_edge out[ASKED][EDGES];
    weir_rng rng = weir_rng_stream(3, round, 0);
    uint64_t sum = 0;
    for (unsigned turn = 0; turn < 20; turn++) {
        uint32_t wanted[ASKED];
        for (size_t i = 0; i < ASKED; i++)
            wanted[i] = (uint32_t)weir_rng_below(&rng, HOT);
        weir_bench_start(samplep);
        for (size_t i = 0; i < ASKED; i++)
            memcpy(out[i], &c->array[(size_t)wanted[i] * EDGES], sizeof out[i]);
        weir_bench_stop(samplep, ASKED);
        sum += sum_of(out[turn], EDGES);
    }
    return sum ? WEIR_OK : WEIR_ERR(WEIR_EINTERNAL, "the array has no edges");
}

static weir_err run_cached(void *context, uint64_t round, weir_bench_sample *samplep) {
    const windows_context *c = context;
    weir_rng rng = weir_rng_stream(3, round, 0);
    weir_err err = WEIR_OK;
    for (unsigned turn = 0; !err && turn < 20; turn++) {
        weir_vertex wanted[ASKED];
        int64_t before_us[ASKED];
        weir_graph_window found[ASKED];
        const weir_graph_ask ask = {.relation = 0, .direction = WEIR_OUT, .limit = EDGES};
        for (size_t i = 0; i < ASKED; i++) {
            wanted[i] = vertex_of(weir_rng_below(&rng, HOT));
            before_us[i] = WEIR_BEFORE_ALL;
        }
        weir_bench_start(samplep);
        err = weir_graph_neighbors_of_many(c->graph, wanted, before_us, ASKED, &ask, c->arena, found);
        weir_bench_stop(samplep, ASKED);
        weir_arena_reset(c->arena);
    }
    return err;
}

static weir_err run_cached_each(void *context, uint64_t round, weir_bench_sample *samplep) {
    const windows_context *c = context;
    weir_rng rng = weir_rng_stream(3, round, 0);
    weir_err err = WEIR_OK;
    for (unsigned turn = 0; !err && turn < 20; turn++) {
        uint32_t wanted[ASKED], count = 0;
        const weir_edge *edges;
        for (size_t i = 0; i < ASKED; i++)
            wanted[i] = (uint32_t)weir_rng_below(&rng, HOT);
        weir_bench_start(samplep);
        for (size_t i = 0; !err && i < ASKED; i++)
            err = ask(c, wanted[i], &edges, &count);
        weir_bench_stop(samplep, ASKED);
        weir_arena_reset(c->arena);
    }
    return err;
}

static weir_err run_raw(void *context, uint64_t round, weir_bench_sample *samplep) {
    windows_context *c = context;
    weir_err err = WEIR_OK;
    uint64_t sum = 0;
    (void)round;
    weir_bench_start(samplep);
    for (size_t i = 0; !err && i < ASKED; i++) {
        uint8_t key[WEIR_EDGE_KEY_BYTES] = {0};
        weir_engine_cursor *cursor;
        weir_vertex vertex = vertex_of(c->order[c->raw_next++ % (c->vertices - HOT)]);
        const weir_entry newest = {.time_us = INT64_MAX, .deletion = 1};
        weir_record_key_write(vertex, WEIR_LIST_EDGES(0, WEIR_OUT), &newest, key);
        err = weir_engine_cursor_open(c->raw, WEIR_ENGINE_POINT, &cursor);
        if (err) break;
        weir_engine_cursor_seek(cursor, key, sizeof key);
        for (unsigned k = 0; k < EDGES && weir_engine_cursor_valid(cursor); k++, weir_engine_cursor_next(cursor)) {
            size_t length;
            weir_edge_key read;
            const void *found = weir_engine_cursor_key(cursor, &length);
            if (weir_edge_key_read(found, length, &read)) sum += read.event;
        }
        err = weir_engine_cursor_err(cursor);
        weir_engine_cursor_close(cursor);
    }
    weir_bench_stop(samplep, ASKED);
    return err || sum ? err : WEIR_ERR(WEIR_EINTERNAL, "the sorted files have no edges");
}

static weir_err run_cold(void *context, uint64_t round, weir_bench_sample *samplep) {
    windows_context *c = context;
    weir_err err = WEIR_OK;
    uint64_t sum = 0;
    (void)round;
    weir_bench_start(samplep);
    for (size_t i = 0; !err && i < ASKED; i++) {
        const weir_edge *edges;
        uint32_t count;
        err = ask(c, c->order[c->cold_next++ % (c->vertices - HOT)], &edges, &count);
        if (!err) sum += sum_of(edges, count);
    }
    weir_bench_stop(samplep, ASKED);
    weir_arena_reset(c->arena);
    return err || sum ? err : WEIR_ERR(WEIR_EINTERNAL, "the store has no edges");
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static weir_err open_stores(windows_context *c, const char *folder) {
    const weir_graph_opts graph_opts = {
        .shards = 1, .memory_bytes = MEMORY_BYTES, .seal_us = 3600000000, .create = true};
    const weir_engine_opts raw_opts = {.create = true};
    char path[1024];
    uint32_t source;
    weir_err err = weir_schema_parse("windows", schema_text, sizeof schema_text - 1, &c->schema);
    snprintf(path, sizeof path, "%s/store", folder);
    if (!err) err = weir_graph_open(path, c->schema, &graph_opts, &c->graph);
    if (!err) err = weir_graph_source(c->graph, "log:s", 1, &source);
    if (!err) err = fill_graph(c, source);
    snprintf(path, sizeof path, "%s/raw", folder);
    if (!err) err = weir_engine_open(path, &raw_opts, &c->raw);
    for (uint64_t i = 0; !err && i < SEALS; i++)
        err = fill_raw_file(c, c->edges * i / SEALS, c->edges * (i + 1) / SEALS);
    return err;
}

/* Those that are read from windows are read once; the others are put in any order. */
static weir_err choose(windows_context *c) {
    c->array = weir_calloc((size_t)HOT * EDGES, sizeof *c->array);
    c->order = weir_malloc((c->vertices - HOT) * sizeof *c->order);
    if (!c->array || !c->order) return WEIR_NOMEM("for the bench's windows");
    for (uint32_t i = 0; i < c->vertices - HOT; i++) {
        uint32_t other = (uint32_t)weir_rng_below(&c->rng, i + 1);
        c->order[i] = c->order[other];
        c->order[other] = HOT + i;
    }
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < HOT; i++) {
        const weir_edge *edges;
        uint32_t count;
        err = ask(c, i, &edges, &count);
        if (!err && count) memcpy(&c->array[(size_t)i * EDGES], edges, count * sizeof *edges);
        weir_arena_reset(c->arena);
    }
    return err;
}

static weir_err run_lines(weir_cli *cli, windows_context *c) {
    const weir_bench_line lines[] = {
        {"limit: 1,000 times 10 edges out of an array", "M/s", 1e-6, NULL, run_array, c},
        {"1,000 cached windows of 10, at once", "M/s", 1e-6, "limit: 1,000 times 10 edges out of an array", run_cached,
         c},
        {"the same, one after the other", "M/s", 1e-6, "limit: 1,000 times 10 edges out of an array", run_cached_each,
         c},
        {"limit: a raw scan of 10", "k/s", 1e-3, NULL, run_raw, c},
        {"10 of the cold store", "k/s", 1e-3, "limit: a raw scan of 10", run_cold, c},
    };
    return weir_bench_run(cli, "windows", lines, sizeof lines / sizeof lines[0]);
}

static weir_err run(weir_cli *cli) {
    const char *folder;
    bool quick = weir_bench_quick(cli);
    windows_context c = {.vertices = quick ? 2 * HOT : 400000, .edges = quick ? 200000 : 8000000};
    c.rng = weir_rng_stream(3, 0, 0);
    weir_err err = weir_bench_folder(&folder);
    if (!err) err = weir_arena_open(ARENA_BYTES, &c.arena);
    if (!err) err = open_stores(&c, folder);
    if (!err) err = choose(&c);
    if (!err) err = run_lines(cli, &c);
    weir_engine_close(c.raw);
    if (c.graph) weir_err_keep(&err, weir_graph_close(c.graph));
    weir_schema_free(c.schema);
    weir_arena_close(c.arena);
    weir_free(c.array);
    weir_free(c.order);
    return err;
}

const weir_command weir_bench_windows = {
    .name = "windows",
    .summary = "ten edges of a vertex: cached against an array, cold against a raw scan",
    .example = "weir bench windows --rounds 5",
    .options = weir_bench_options,
    .run = run,
};
