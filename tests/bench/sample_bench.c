/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_bench.c - the sampler over an R-MAT snapshot, against a bare loop over the same arrays.
 *
 * The limit is what a sampler costs that knows no times, types, windows or nodes: a tree of Floyd's draws from 64-bit
 * arrays with a cheap generator and prefetched lists. One core. Rates count sampled edges. Then how many nodes a batch
 * has, beside the sets that it could be: of each time a frontier shared hop by hop, and its distinct vertices.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>
#include <weir/store/snapshot/npy.h>

#include "bench.h"
#include "sample_bench.h"

#define EDGES_A_VERTEX 16u
#define BATCH          1024u
#define HOPS           3u
#define TIME_LAST_US   ((int64_t)1 << 40)
#define MOMENTS        49u /* as many as Elliptic has steps */
#define HUGE_BYTES     ((size_t)2 << 20)

static const uint32_t fanouts[HOPS] = {15, 10, 5};

typedef struct rmat {
    uint64_t vertices, edges;
    int64_t *indptr, *neighbors, *times;
    uint64_t *ids;
    int64_t *vertex_pairs, *edge_pairs; /* begin and id; neighbour and time */
} rmat;

typedef struct run_context {
    const rmat *graph;
    uint64_t batches;
    uint32_t window;
    bool shared, inputs, timed, apart, timeless;
    uint32_t moments; /* that targets have, where they are timed; 0: any */
    /* the bare loop's */
    uint32_t *level[HOPS + 1];
    uint64_t tree_max;
} run_context;

static volatile uint64_t sink; /* keeps the optimiser from dropping the work */

/* --- the graph --------------------------------------------------------------------------------------------------- */

/* As a trainer holds a snapshot that fits into memory: in large pages where the system has them. */
static void *huge_array(uint64_t count, size_t size) {
    size_t bytes = (count * size + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    void *array = weir_aligned_alloc(HUGE_BYTES, bytes);
    if (array) madvise(array, bytes, MADV_HUGEPAGE);
    return array;
}

static uint64_t rmat_end(weir_rng *rng, unsigned scale, uint64_t *top) {
    uint64_t from = 0, to = 0;
    for (unsigned bit = 0; bit < scale; bit++) {
        uint32_t draw = weir_rng_u32(rng);
        unsigned quadrant = draw < 0.57 * 0x1p32 ? 0 : draw < 0.76 * 0x1p32 ? 1 : draw < 0.95 * 0x1p32 ? 2 : 3;
        from |= (uint64_t)(quadrant >> 1) << bit;
        to |= (uint64_t)(quadrant & 1) << bit;
    }
    *top = to;
    return from;
}

/* Twice the same stream: once for the counts, once for the places. */
static void rmat_fill(rmat *g, unsigned scale) {
    weir_rng rng = weir_rng_stream(20, 0, 0);
    uint64_t to;
    memset(g->indptr, 0, (g->vertices + 1) * sizeof *g->indptr);
    for (uint64_t e = 0; e < g->edges; e++)
        g->indptr[rmat_end(&rng, scale, &to) + 1]++;
    for (uint64_t v = 0; v < g->vertices; v++) {
        g->indptr[v + 1] += g->indptr[v];
        g->ids[v] = v * 0x9E3779B97F4A7C15ull;
    }
    rng = weir_rng_stream(20, 0, 0);
    for (uint64_t e = 0; e < g->edges; e++) {
        uint64_t from = rmat_end(&rng, scale, &to);
        int64_t at = g->indptr[from]++; /* becomes the end of the list, and is moved back below */
        g->neighbors[at] = (int64_t)to;
    }
    memmove(g->indptr + 1, g->indptr, g->vertices * sizeof *g->indptr);
    g->indptr[0] = 0;
}

static int newer_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static void rmat_times(rmat *g) {
    weir_rng rng = weir_rng_stream(21, 0, 0);
    for (uint64_t e = 0; e < g->edges; e++)
        g->times[e] = (int64_t)weir_rng_below(&rng, TIME_LAST_US);
    for (uint64_t v = 0; v < g->vertices; v++)
        qsort(g->times + g->indptr[v], (size_t)(g->indptr[v + 1] - g->indptr[v]), sizeof *g->times, newer_first);
}

static void rmat_close(rmat *g) {
    weir_free(g->indptr);
    weir_free(g->neighbors);
    weir_free(g->times);
    weir_free(g->ids);
    weir_free(g->vertex_pairs);
    weir_free(g->edge_pairs);
}

static weir_err rmat_open(rmat *g, unsigned scale) {
    *g = (rmat){.vertices = (uint64_t)1 << scale, .edges = (uint64_t)EDGES_A_VERTEX << scale};
    g->indptr = huge_array(g->vertices + 1, sizeof *g->indptr);
    g->neighbors = huge_array(g->edges, sizeof *g->neighbors);
    g->times = huge_array(g->edges, sizeof *g->times);
    g->ids = huge_array(g->vertices, sizeof *g->ids);
    g->vertex_pairs = huge_array(g->vertices + 1, 2 * sizeof *g->vertex_pairs);
    g->edge_pairs = huge_array(g->edges, 2 * sizeof *g->edge_pairs);
    if (!g->indptr || !g->neighbors || !g->times || !g->ids || !g->vertex_pairs || !g->edge_pairs) {
        return WEIR_NOMEM("for the bench's graph of %llu edges", (unsigned long long)g->edges);
    }
    rmat_fill(g, scale);
    rmat_times(g);
    for (uint64_t v = 0; v <= g->vertices; v++) {
        g->vertex_pairs[2 * v] = g->indptr[v];
        g->vertex_pairs[2 * v + 1] = v < g->vertices ? (int64_t)g->ids[v] : 0;
    }
    for (uint64_t e = 0; e < g->edges; e++) {
        g->edge_pairs[2 * e] = g->neighbors[e];
        g->edge_pairs[2 * e + 1] = g->times[e];
    }
    return WEIR_OK;
}

/* For others, to sample the same. */
static weir_err rmat_write_array(const char *folder, const char *name, const int64_t *numbers, uint64_t count) {
    char path[PATH_MAX];
    weir_npy_writer *writer = NULL;
    weir_err err = weir_path_join(path, sizeof path, folder, name);
    if (err || weir_path_exists(path)) return err;
    err = weir_npy_writer_open(path, WEIR_NPY_I64, count, 0, &writer);
    if (!err) err = weir_npy_write(writer, numbers, count);
    return weir_npy_writer_end(writer, err);
}

static weir_err rmat_write(const rmat *g, const char *folder) {
    weir_err err = weir_folder_create(folder);
    if (!err) err = rmat_write_array(folder, "indptr.npy", g->indptr, g->vertices + 1);
    return err ? err : rmat_write_array(folder, "neighbors.npy", g->neighbors, g->edges);
}

/* --- the bare loop ----------------------------------------------------------------------------------------------- */

static uint64_t cheap_draw(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15ull;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    return z ^ (z >> 27);
}

static uint32_t bare_one(const rmat *g, uint32_t vertex, uint32_t k, uint64_t *state, uint32_t *out) {
    int64_t begin = g->indptr[vertex];
    uint32_t n = (uint32_t)(g->indptr[vertex + 1] - begin), picks[16];
    if (n <= k) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = (uint32_t)g->neighbors[begin + i];
        return n;
    }
    for (uint32_t count = 0, j = n - k; j < n; j++) {
        uint32_t t = (uint32_t)(((cheap_draw(state) >> 32) * (j + 1)) >> 32);
        for (uint32_t i = 0; i < count; i++) {
            if (picks[i] == t) t = j;
        }
        picks[count++] = t;
    }
    for (uint32_t i = 0; i < k; i++)
        out[i] = (uint32_t)g->neighbors[begin + picks[i]];
    return k;
}

static uint64_t bare_batch(run_context *c, uint64_t *state) {
    const rmat *g = c->graph;
    uint64_t count = BATCH, edges = 0;
    for (uint32_t i = 0; i < BATCH; i++)
        c->level[0][i] = (uint32_t)(cheap_draw(state) % g->vertices);
    for (uint32_t hop = 0; hop < HOPS; hop++) {
        const uint32_t *parents = c->level[hop];
        uint64_t children = 0;
        for (uint64_t p = 0; p < count; p++) {
            if (p + 16 < count) __builtin_prefetch(&g->indptr[parents[p + 16]]);
            if (p + 8 < count) __builtin_prefetch(&g->neighbors[g->indptr[parents[p + 8]]]);
            children += bare_one(g, parents[p], fanouts[hop], state, c->level[hop + 1] + children);
        }
        edges += children;
        count = children;
    }
    return edges;
}

static weir_err run_bare(void *context, uint64_t round, weir_bench_sample *samplep) {
    run_context *c = context;
    uint64_t state = round, edges = 0;
    weir_bench_start(samplep);
    for (uint64_t b = 0; b < c->batches; b++)
        edges += bare_batch(c, &state);
    weir_bench_stop(samplep, (double)edges);
    sink = edges;
    return WEIR_OK;
}

/* --- the sampler ------------------------------------------------------------------------------------------------- */

typedef struct handles {
    weir_sample_csr csrs[2]; /* of relation 0: out; there is no in */
    const uint64_t *ids[1];
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_target targets[BATCH];
} handles;

static weir_err handles_open(const run_context *c, uint64_t round, handles *h) {
    static const weir_sample_ends ends = {0, 0};
    const rmat *g = c->graph;
    weir_sample_arrays arrays = {1, 1, &ends, h->csrs, h->ids, &g->vertices, 0};
    weir_sample_step steps[HOPS];
    weir_sample_opts opts = {.steps = steps,
                             .step_count = HOPS,
                             .window = c->window,
                             .targets_max = BATCH,
                             .seed = round,
                             .shared = c->shared};
    for (uint32_t i = 0; i < HOPS; i++)
        steps[i] = (weir_sample_step){.hop = i + 1, .fanout = fanouts[i], .strategy = WEIR_SAMPLE_UNIFORM};
    h->ids[0] = g->ids;
    h->csrs[0] = (weir_sample_csr){.indptr = c->apart ? g->indptr : g->vertex_pairs,
                                   .ids = c->apart ? g->ids : (const uint64_t *)(g->vertex_pairs + 1),
                                   .neighbors = c->apart ? g->neighbors : g->edge_pairs,
                                   .times = c->apart ? g->times : g->edge_pairs + 1,
                                   .vertex_stride = c->apart ? 8 : 16,
                                   .edge_stride = c->apart ? 8 : 16,
                                   .vertices = g->vertices,
                                   .edges = g->edges,
                                   .newest_us = TIME_LAST_US - 1};
    if (c->timeless) { /* all edges have newest_us */
        h->csrs[0].neighbors = g->neighbors;
        h->csrs[0].times = NULL;
        h->csrs[0].edge_stride = 8;
    }
    weir_err err = weir_sample_over_arrays(&arrays, &h->source);
    if (!err) err = weir_sampler_open(&opts, h->source, &h->sampler);
    if (!err) err = weir_block_open(h->sampler, &h->block);
    return err;
}

static void handles_close(handles *h) {
    weir_block_close(h->block);
    weir_sampler_close(h->sampler);
    weir_sample_source_close(h->source);
}

static int earlier_first(const void *a, const void *b) {
    const weir_target *x = a, *y = b;
    return (x->before_us > y->before_us) - (x->before_us < y->before_us);
}

static weir_err sample_batch(const run_context *c, handles *h, weir_rng *rng, uint64_t *edgesp) {
    const uint64_t moments = c->moments ? c->moments : TIME_LAST_US / 4;
    for (uint32_t i = 0; i < BATCH; i++) {
        h->targets[i] = (weir_target){.vertex = weir_rng_below(rng, c->graph->vertices), .before_us = TIME_LAST_US};
        if (c->timed) h->targets[i].before_us -= (int64_t)(weir_rng_below(rng, moments) * (TIME_LAST_US / 4 / moments));
    }
    if (c->shared && c->timed) qsort(h->targets, BATCH, sizeof *h->targets, earlier_first); /* as the sampler needs */
    weir_err err = weir_sample(h->sampler, h->targets, BATCH, h->block);
    if (!err && c->inputs) weir_block_inputs(h->sampler, h->block, false);
    const weir_block_view *view = weir_block_look(h->block);
    for (uint32_t s = 0; s < view->steps; s++)
        *edgesp += view->edges[s].count;
    return err;
}

static weir_err run_sampler(void *context, uint64_t round, weir_bench_sample *samplep) {
    const run_context *c = context;
    handles h = {0};
    weir_rng rng = weir_rng_stream(round, 1, 0);
    uint64_t edges = 0;
    weir_err err = handles_open(c, round, &h);
    if (!err) err = sample_batch(c, &h, &rng, &edges); /* the block's pages are there from then on */
    edges = 0;
    weir_bench_start(samplep);
    for (uint64_t b = 0; !err && b < c->batches; b++)
        err = sample_batch(c, &h, &rng, &edges);
    weir_bench_stop(samplep, (double)edges);
    handles_close(&h);
    return err;
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

typedef struct node_key {
    int64_t before_us;
    uint64_t vertex;
} node_key;

static int node_key_order(const void *a, const void *b) {
    const node_key *x = a, *y = b;
    if (x->before_us != y->before_us) return x->before_us < y->before_us ? -1 : 1;
    return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

static uint64_t count_distinct(node_key *keys, uint64_t count) {
    uint64_t distinct = 0;
    qsort(keys, (size_t)count, sizeof *keys, node_key_order);
    for (uint64_t i = 0; i < count; i++)
        distinct += i == 0 || node_key_order(&keys[i - 1], &keys[i]) != 0;
    return distinct;
}

/* Of a block, by its edges alone, which name vertices: how many are met a hop and time, and at all. */
typedef struct node_counts {
    uint64_t nodes, frontier, vertices;
} node_counts;

static node_counts count_nodes(const weir_block_view *view, node_key *keys) {
    node_counts counts = {view->nodes, view->targets, 0};
    uint64_t all = 0;
    for (uint32_t s = 0; s < view->steps; s++) { /* one a hop */
        const weir_block_edges *e = &view->edges[s];
        for (uint32_t i = 0; i < e->count; i++)
            keys[i] =
                (node_key){view->before_us[view->groups[e->parents[i]]], (uint64_t)view->vertices[e->children[i]]};
        counts.frontier += count_distinct(keys, e->count);
    }
    for (uint32_t node = 0; node < view->nodes; node++)
        keys[all++] = (node_key){0, view->vertices[node]};
    counts.vertices = count_distinct(keys, all);
    return counts;
}

static weir_err count_batches(const run_context *c, node_counts *countsp) {
    handles h = {0};
    weir_rng rng = weir_rng_stream(1, 1, 0);
    uint64_t edges = 0, room = BATCH, level = BATCH;
    for (uint32_t hop = 0; hop < HOPS; hop++)
        room += level *= fanouts[hop];
    node_key *keys = weir_calloc(room, sizeof *keys);
    weir_err err = keys ? handles_open(c, 1, &h) : WEIR_NOMEM("for the nodes of the bench's batches");
    *countsp = (node_counts){0};
    for (uint64_t b = 0; !err && b < c->batches; b++) {
        err = sample_batch(c, &h, &rng, &edges);
        if (err) break;
        const node_counts one = count_nodes(weir_block_look(h.block), keys);
        countsp->nodes += one.nodes;
        countsp->frontier += one.frontier;
        countsp->vertices += one.vertices;
    }
    handles_close(&h);
    weir_free(keys);
    return err;
}

static weir_err print_nodes(const weir_cli *cli, const char *what, const run_context *c, weir_buf *out) {
    node_counts all;
    weir_err err = count_batches(c, &all);
    if (err) return err;
    const double nodes = (double)all.nodes / (double)c->batches;
    const double of_frontier = (double)all.nodes / (double)all.frontier;
    const double of_vertices = (double)all.nodes / (double)all.vertices;
    if (weir_cli_given(cli, "json")) {
        weir_buf_printf(out, "{\"bench\":\"sample\",\"what\":\"%s\",\"unit\":\"nodes a batch\",\"batches\":%" PRIu64,
                        what, c->batches);
        weir_buf_printf(out, ",\"nodes\":%.9g,\"of_frontier\":%.6g,\"of_vertices\":%.6g}\n", nodes, of_frontier,
                        of_vertices);
    } else {
        weir_buf_printf(
            out, "sample     %-44s %12.0f nodes      %.3f of a frontier shared by time, %.3f of distinct vertices\n",
            what, nodes, of_frontier, of_vertices);
    }
    return weir_buf_err(out);
}

/* --- the command ------------------------------------------------------------------------------------------------- */

static weir_err levels_open(run_context *c) {
    uint64_t size = BATCH;
    for (uint32_t hop = 0; hop <= HOPS; hop++) {
        c->level[hop] = weir_malloc(size * sizeof *c->level[hop]);
        if (!c->level[hop]) return WEIR_NOMEM("for the bench's batches");
        if (hop < HOPS) size *= fanouts[hop];
    }
    return WEIR_OK;
}

weir_err weir_sample_bench_run(weir_cli *cli) {
    bool quick = weir_bench_quick(cli);
    uint64_t scale = quick ? 10 : 20, batches = quick ? 2 : 30;
    rmat graph = {0};
    weir_err err = weir_cli_u64(cli, "scale", 6, 26, &scale);
    if (!err) err = rmat_open(&graph, (unsigned)scale);
    run_context bare = {.graph = &graph, .batches = batches}, last = bare;
    last.window = WEIR_WINDOW_MAX; /* as good as the whole list, which is what the bare loop draws from */
    run_context timed = last, apart = last, shared = last, inputs = last, narrow = last, both, timeless, few, few_apart;
    timed.timed = apart.timed = inputs.timed = narrow.timed = true;
    apart.apart = shared.shared = inputs.inputs = true;
    both = shared;
    both.inputs = true;
    timeless = both;
    timeless.timeless = true;
    narrow.window = WEIR_SAMPLE_WINDOW;
    few_apart = inputs;
    few_apart.moments = MOMENTS;
    few = few_apart;
    few.shared = true;
    const char *limit = "bare uniform loop";
    const weir_bench_line lines[] = {
        {limit, "M edges/s", 1e-6, NULL, run_bare, &bare},
        {"all targets at the last moment", "M edges/s", 1e-6, limit, run_sampler, &last},
        {"each target at its own time", "M edges/s", 1e-6, limit, run_sampler, &timed},
        {"the same, of the newest 128", "M edges/s", 1e-6, limit, run_sampler, &narrow},
        {"the same, times and ids in arrays apart", "M edges/s", 1e-6, limit, run_sampler, &apart},
        {"the same, and distinct input rows", "M edges/s", 1e-6, limit, run_sampler, &inputs},
        {"targets at the last moment share nodes", "M edges/s", 1e-6, limit, run_sampler, &shared},
        {"the same, and distinct input rows of them", "M edges/s", 1e-6, limit, run_sampler, &both},
        {"the same of a graph without times", "M edges/s", 1e-6, limit, run_sampler, &timeless},
        {"targets at 49 moments, and input rows", "M edges/s", 1e-6, limit, run_sampler, &few_apart},
        {"those of one moment share nodes, and rows", "M edges/s", 1e-6, limit, run_sampler, &few},
    };
    const struct {
        const char *what;
        const run_context *of;
    } counted[] = {{"all at the last moment, shared", &both},
                   {"at 49 moments, shared", &few},
                   {"at 49 moments, each its own tree", &few_apart}};
    weir_buf nodes = {0};
    if (!err && weir_cli_text(cli, "graph")) err = rmat_write(&graph, weir_cli_text(cli, "graph"));
    if (!err) err = levels_open(&bare);
    if (!err) err = weir_bench_run(cli, "sample", lines, sizeof lines / sizeof lines[0]);
    for (size_t i = 0; !err && i < sizeof counted / sizeof counted[0]; i++)
        err = print_nodes(cli, counted[i].what, counted[i].of, &nodes);
    if (!err) err = weir_cli_output(nodes.bytes, nodes.length);
    weir_buf_free(&nodes);
    for (uint32_t hop = 0; hop <= HOPS; hop++)
        weir_free(bare.level[hop]);
    rmat_close(&graph);
    return err;
}
