/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_bench.c - ten edges of a vertex that has very many, as of any moment: what they cost must not depend on how many
 * there are.
 *
 * Four vertices get their edges side by side, so that each seal has some of all. The limit is the one that has the
 * fewest: 100,000, and 1,000 under --quick. No moment is asked for twice but in the last three lines, and no window
 * reaches so far. Of one vertex the newest half of the edges were deleted one by one, and it is asked for as of moments
 * in the midst of those deletions. The last three lines ask as of behind all that happened, again and again: what the
 * first of them has read is in the memory then.
 */
#include <stdio.h>

#include <weir/store/base/rng.h>
#include <weir/store/graph/graph.h>

#include "bench.h"

#define SEALS        8u /* fewer than are merged: nothing else is at work */
#define EDGES        10u
#define ASKED        100u
#define BATCH        10000u
#define STEP_US      1000
#define FIRST_US     1700000000000000
#define MEMORY_BYTES (2ull << 30)
#define ARENA_BYTES  (64u << 20) /* what a request has */

static const char schema_text[] = "version: 1\n"
                                  "name: hubs\n"
                                  "vertices: {a: {}, b: {}}\n"
                                  "relations: {r: {from: a, to: b}}\n"
                                  "sources: {s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b}]}}\n";

/* Of so many edges in turn, each hub has these. */
typedef enum hub { SMALL, MIDDLE, DELETED, LARGE, HUBS } hub;
static const uint32_t shares[HUBS] = {1, 10, 2, 100};
#define TURN 113u

typedef struct hub_context {
    uint64_t turns; /* edges of the least hub */
    uint64_t edges; /* of all                 */
    weir_schema *schema;
    weir_graph *graph;
    weir_arena *arena;
} hub_context;

typedef struct hub_line {
    hub_context *c;
    hub hub;
    int64_t from_us, to_us; /* the moments */
} hub_line;

static weir_vertex vertex_of(uint64_t n) {
    return weir_vertex_make((n + 1) * 0x9e3779b97f4a7c15ull, n);
}

static int64_t time_of(uint64_t n) {
    return FIRST_US + (int64_t)n * STEP_US;
}

/* The n-th of all: an edge, or, behind the last of them, the deletion of one. */
static weir_mutation mutation_of(const hub_context *c, uint64_t n) {
    uint64_t of = n;
    if (n >= c->edges) { /* of the hub's edges, two in each turn, the newest comes first */
        uint64_t back = n - c->edges;
        of = (c->turns - 1 - back / 2) * TURN + shares[SMALL] + shares[MIDDLE] + 1 - back % 2;
    }
    uint32_t place = (uint32_t)(of % TURN), which = 0;
    while (place >= shares[which])
        place -= shares[which++];
    return (weir_mutation){.kind = n < c->edges ? WEIR_PUT_EDGE : WEIR_DELETE_EDGE,
                           .vertex = vertex_of(which),
                           .neighbor = vertex_of(HUBS + of),
                           .time_us = time_of(n),
                           .event = n + 1,
                           .offset = n};
}

static weir_err fill(const hub_context *c, uint32_t source, uint64_t total) {
    weir_buf batch = {0};
    weir_err err = WEIR_OK;
    for (uint64_t begin = 0; !err && begin < total; begin += BATCH) {
        uint64_t end = begin + BATCH < total ? begin + BATCH : total;
        const weir_batch_span span = {source, 0, begin, end};
        weir_batch_begin(&batch);
        for (uint64_t n = begin; n < end; n++) {
            const weir_mutation m = mutation_of(c, n);
            weir_batch_add(&batch, &m, begin);
        }
        weir_batch_end(&batch, &span, (uint32_t)(end - begin));
        err = weir_buf_err(&batch);
        if (!err) err = weir_graph_submit(c->graph, &batch);
        if (!err && end * SEALS / total != begin * SEALS / total) err = weir_graph_seal(c->graph);
        weir_buf_clear(&batch);
    }
    weir_buf_free(&batch);
    return err;
}

static weir_err run_moments(void *context, uint64_t round, weir_bench_sample *samplep) {
    const hub_line *line = context;
    weir_rng rng = weir_rng_stream(5, round, line->hub);
    uint64_t sum = 0;
    weir_err err = WEIR_OK;
    weir_bench_start(samplep);
    for (size_t i = 0; !err && i < ASKED; i++) {
        const weir_edge *edges;
        uint32_t count;
        int64_t at_us = line->from_us + (int64_t)weir_rng_below(&rng, (uint64_t)(line->to_us - line->from_us));
        err = weir_graph_neighbors(line->c->graph, vertex_of(line->hub), 0, WEIR_OUT, at_us, EDGES, line->c->arena,
                                   &edges, &count);
        for (uint32_t k = 0; !err && k < count; k++)
            sum += edges[k].event;
        weir_arena_reset(line->c->arena);
    }
    weir_bench_stop(samplep, ASKED);
    return err || sum ? err : WEIR_ERR(WEIR_EINTERNAL, "the hub has no edges");
}

static weir_err open_store(hub_context *c, const char *folder) {
    const weir_graph_opts opts = {.shards = 1, .memory_bytes = MEMORY_BYTES, .seal_us = 3600000000, .create = true};
    char path[1024];
    uint32_t source;
    weir_err err = weir_schema_parse("hubs", schema_text, sizeof schema_text - 1, &c->schema);
    snprintf(path, sizeof path, "%s/store", folder);
    if (!err) err = weir_graph_open(path, c->schema, &opts, &c->graph);
    if (!err) err = weir_graph_source(c->graph, "log:s", 1, &source);
    return err ? err : fill(c, source, c->edges + c->turns);
}

static weir_err run(weir_cli *cli) {
    const char *folder;
    hub_context c = {.turns = weir_bench_quick(cli) ? 1000 : 100000};
    c.edges = c.turns * TURN;
    const int64_t from_us = time_of(c.edges / 10), to_us = time_of(c.edges), end_us = time_of(c.edges + c.turns);
    hub_line small = {&c, SMALL, from_us, to_us}, middle = {&c, MIDDLE, from_us, to_us},
             large = {&c, LARGE, from_us, to_us}, whole = {&c, DELETED, from_us, to_us},
             hidden = {&c, DELETED, to_us, end_us}, behind = {&c, DELETED, end_us, end_us + STEP_US},
             newest = {&c, SMALL, end_us, end_us + STEP_US}, newest_large = {&c, LARGE, end_us, end_us + STEP_US};
    const char *limit = "limit: ten edges of a hub", *newest_limit = "limit: the newest ten edges of a hub";
    const weir_bench_line lines[] = {
        {limit, "k/s", 1e-3, NULL, run_moments, &small},
        {"of one ten times as large", "k/s", 1e-3, limit, run_moments, &middle},
        {"of one a hundred times as large", "k/s", 1e-3, limit, run_moments, &large},
        {"of one twice as large, before half were deleted", "k/s", 1e-3, limit, run_moments, &whole},
        {"while they were deleted", "k/s", 1e-3, limit, run_moments, &hidden},
        {newest_limit, "k/s", 1e-3, NULL, run_moments, &newest},
        {"of one a hundred times as large, the newest", "k/s", 1e-3, newest_limit, run_moments, &newest_large},
        {"after half of one were deleted, the newest", "k/s", 1e-3, newest_limit, run_moments, &behind},
    };
    weir_err err = weir_bench_folder(&folder);
    if (!err) err = weir_arena_open(ARENA_BYTES, &c.arena);
    if (!err) err = open_store(&c, folder);
    if (!err) err = weir_bench_run(cli, "hub", lines, sizeof lines / sizeof lines[0]);
    if (c.graph) weir_err_keep(&err, weir_graph_close(c.graph));
    weir_schema_free(c.schema);
    weir_arena_close(c.arena);
    return err;
}

const weir_command weir_bench_hub = {
    .name = "hub",
    .summary = "ten edges of a vertex that has up to ten million, as of any moment",
    .example = "weir bench hub --rounds 5",
    .options = weir_bench_options,
    .run = run,
};
