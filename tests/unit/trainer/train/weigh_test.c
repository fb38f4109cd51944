/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh_test.c - what policies think of vertices, against a naive count: over the edges as they were drawn here, which
 * are remembered beside the CSV; chances are multiplied as they are, with no logarithms.
 *
 * Every rank has the whole snapshot, so that one process can be any of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/train/train.h>

#include "cache.h"
#include "weir_test.h"

#define NODES     240u
#define EDGES     900u
#define RANKS     3u
#define HOPS      3u
#define STEPS_MAX 8u
#define NEAR      1e-9
#define NO_WINDOW NODES /* no list is longer: the naive counts are over whole lists */

static const uint32_t fanouts[HOPS] = {4, 3, 2};

typedef struct world {
    unsigned from[EDGES], to[EDGES]; /* by the names of the vertices */
    unsigned edges;
    unsigned degree[2][NODES];
    bool train[NODES];
    unsigned vertex_of[NODES]; /* of each name, in the snapshot */
    weir_snapshot *snapshot;
    weir_targets *targets;
    weir_nn_shape *shape;
    bool out_only;
} world;

/* --- the world ---------------------------------------------------------------------------------------------------- */

static world *world_new(void) {
    world *w = calloc(1, sizeof *w);
    if (!w) abort();
    return w;
}

static void world_add(world *w, unsigned from, unsigned to) {
    assert_true(w->edges < EDGES);
    w->from[w->edges] = from;
    w->to[w->edges++] = to;
    w->degree[WEIR_OUT][from]++;
    w->degree[WEIR_IN][to]++;
}

/* Low names have most of the edges; no edge is there twice, which an import would take for one. */
static void world_draw(world *w, uint64_t seed) {
    weir_rng rng = weir_rng_stream(seed, 3, 0);
    static bool there[NODES][NODES];
    memset(there, 0, sizeof there);
    while (w->edges < EDGES) {
        unsigned from = (unsigned)(NODES * pow(weir_rng_double(&rng), 3)), to = (unsigned)weir_rng_below(&rng, NODES);
        if (from == to || there[from][to]) continue;
        there[from][to] = true;
        world_add(w, from, to);
    }
    for (unsigned i = 0; i < NODES; i++)
        w->train[i] = i < 3 || weir_rng_below(&rng, 4) == 0;
}

static void world_write(const world *w, const char *nodes, const char *edges) {
    FILE *file = fopen(nodes, "w");
    assert_non_null(file);
    fprintf(file, "id,label,mask.learn,mask.look,mask.judge\n");
    for (unsigned i = 0; i < NODES; i++)
        fprintf(file, "%u,%c,%d,%d,%d\n", i, i / 2 % 2 ? 'a' : 'b', w->train[i], !w->train[i] && i % 2,
                !w->train[i] && i % 2 == 0);
    assert_int_equal(fclose(file), 0);
    file = fopen(edges, "w");
    assert_non_null(file);
    fprintf(file, "src,dst\n");
    for (unsigned i = 0; i < w->edges; i++)
        fprintf(file, "%u,%u\n", w->from[i], w->to[i]);
    assert_int_equal(fclose(file), 0);
}

static void world_find_names(world *w) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, 0);
    assert_int_equal(v->count, NODES);
    for (unsigned i = 0; i < NODES; i++) {
        char key[24] = {0};
        size_t length = (size_t)(v->key_offsets[i + 1] - v->key_offsets[i]);
        assert_true(length < sizeof key);
        memcpy(key, v->key_bytes + v->key_offsets[i], length);
        w->vertex_of[strtoul(key, NULL, 10)] = i;
    }
}

/* window: of a longer list, 0 is as usual. */
static void world_shape(world *w, bool out_only, uint32_t window) {
    const weir_train_reach reach = {.fanouts = fanouts, .layers = HOPS, .out_only = out_only};
    const bool timeless[] = {true};
    weir_sample_step steps[STEPS_MAX];
    weir_nn_opts opts = {.steps = steps, .window = window};
    const weir_schema *schema = weir_snapshot_schema(w->snapshot);
    weir_nn_shape_free(w->shape);
    w->out_only = out_only;
    opts.step_count = weir_train_steps(schema, 0, &reach, timeless, steps, STEPS_MAX);
    assert_int_equal(opts.step_count, out_only ? HOPS : 2 * HOPS);
    assert_ok(weir_nn_shape_open(schema, &opts, &w->shape));
}

static void world_import(world *w) {
    char nodes[4096], edges[4096];
    const char *out = weir_test_path("snapshot");
    weir_snapshot_stats stats;
    const weir_targets_opts by_masks = {.cut = {.split = WEIR_TARGETS_BY_MASKS, .masks = {"learn", "look", "judge"}}};
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    world_write(w, nodes, edges);
    assert_ok(weir_snapshot_import(&(weir_snapshot_import_opts){.out = out, .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &w->snapshot));
    assert_int_equal(weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT)->edges, w->edges);
    assert_ok(weir_targets_open(w->snapshot, &by_masks, &w->targets));
    world_find_names(w);
    world_shape(w, true, 0);
}

static void world_free(world *w) {
    weir_nn_shape_free(w->shape);
    weir_targets_close(w->targets);
    weir_snapshot_close(w->snapshot);
    free(w);
}

static weir_train_cache_opts opts_of(const world *w, weir_train_cached policy, uint32_t rank, uint32_t batch) {
    return (weir_train_cache_opts){.shape = w->shape,
                                   .owners = {w->snapshot, NULL, rank, RANKS},
                                   .targets = w->targets,
                                   .batch = batch,
                                   .policy = policy};
}

/* By the names of the vertices. */
static void weigh(const world *w, const weir_train_cache_opts *opts, double weights[NODES]) {
    double *by_vertex = NULL;
    assert_ok(weir_train_weigh(opts, &by_vertex));
    for (unsigned i = 0; i < NODES; i++) {
        weights[i] = by_vertex[w->vertex_of[i]];
        assert_true(isfinite(weights[i]) && weights[i] >= 0);
    }
    weir_free(by_vertex);
}

/* --- the naive count ---------------------------------------------------------------------------------------------- */

static unsigned rank_of(const world *w, unsigned name) {
    return (unsigned)(weir_snapshot_vertices_of(w->snapshot, 0)->ids[w->vertex_of[name]].low % RANKS);
}

static bool learns(const world *w, unsigned name, uint32_t rank) {
    return w->train[name] && rank_of(w, name) == rank;
}

/* The chance that a parent at this hop draws this one of its edges. */
static double drawn(const world *w, unsigned parent, weir_direction direction, unsigned hop) {
    double chance = (double)fanouts[hop] / w->degree[direction][parent];
    return chance < 1 ? chance : 1;
}

static void naive_vip(const world *w, uint32_t rank, uint32_t batch, double weights[NODES]) {
    double now[NODES], spared[NODES]; /* with which chance no parent of this hop draws it */
    double chance = (double)batch / (double)w->targets->ends[WEIR_TARGETS_TRAIN];
    for (unsigned i = 0; i < NODES; i++) {
        now[i] = !learns(w, i, rank) ? 0 : chance < 1 ? chance : 1;
        weights[i] = 1; /* that no hop reads it */
    }
    for (unsigned hop = 0; hop < HOPS; hop++) {
        for (unsigned i = 0; i < NODES; i++)
            spared[i] = 1;
        for (unsigned e = 0; e < w->edges; e++) {
            unsigned from = w->from[e], to = w->to[e];
            spared[to] *= 1 - drawn(w, from, WEIR_OUT, hop) * now[from];
            if (!w->out_only) spared[from] *= 1 - drawn(w, to, WEIR_IN, hop) * now[to];
        }
        for (unsigned i = 0; i < NODES; i++) {
            now[i] = 1 - spared[i];
            weights[i] *= spared[i];
        }
    }
    for (unsigned i = 0; i < NODES; i++)
        weights[i] = 1 - weights[i];
}

/* Up to a factor, which changes no order: each walk counts as much as its target is in a batch. */
static void naive_paths(const world *w, uint32_t rank, uint32_t batch, double weights[NODES]) {
    double now[NODES], next[NODES], chance = (double)batch / (double)w->targets->ends[WEIR_TARGETS_TRAIN];
    for (unsigned i = 0; i < NODES; i++) {
        now[i] = learns(w, i, rank) ? chance : 0;
        weights[i] = 0;
    }
    for (unsigned hop = 0; hop < HOPS; hop++) {
        memset(next, 0, sizeof next);
        for (unsigned e = 0; e < w->edges; e++) {
            next[w->to[e]] += now[w->from[e]];
            if (!w->out_only) next[w->from[e]] += now[w->to[e]];
        }
        memcpy(now, next, sizeof now);
        for (unsigned i = 0; i < NODES; i++)
            weights[i] += now[i];
    }
}

static bool near(double a, double b) {
    return fabs(a - b) <= NEAR * (1 + fabs(b));
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static void vip_is_the_product_over_all_parents(void **state) {
    (void)state;
    static const uint32_t batches[] = {1, 7, 30};
    world *w = world_new();
    double weights[NODES], naive[NODES];
    world_draw(w, weir_test_seed());
    world_import(w);
    for (unsigned both = 0; both < 2; both++) {
        world_shape(w, !both, NO_WINDOW);
        for (uint32_t at = 0; at < RANKS * 3; at++) {
            unsigned reached = 0;
            const weir_train_cache_opts opts = opts_of(w, WEIR_TRAIN_CACHED_VIP, at % RANKS, batches[at / RANKS]);
            weigh(w, &opts, weights);
            naive_vip(w, at % RANKS, opts.batch, naive);
            for (unsigned i = 0; i < NODES; i++) {
                if (!near(weights[i], naive[i])) fail_msg("vertex %u: %.15g, naive %.15g", i, weights[i], naive[i]);
                reached += naive[i] > 0;
            }
            assert_true(reached > 0);
        }
    }
    world_free(w);
}

static void paths_are_walks_and_degrees_are_names(void **state) {
    (void)state;
    world *w = world_new();
    double weights[NODES], naive[NODES];
    world_draw(w, weir_test_seed());
    world_import(w);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        weir_train_cache_opts opts = opts_of(w, WEIR_TRAIN_CACHED_PATHS, rank, 7);
        for (unsigned both = 0; both < 2; both++) {
            world_shape(w, !both, NO_WINDOW);
            opts.shape = w->shape;
            weigh(w, &opts, weights);
            naive_paths(w, rank, opts.batch, naive);
            for (unsigned i = 0; i < NODES; i++)
                assert_true(near(weights[i], naive[i]));
        }
        opts.policy = WEIR_TRAIN_CACHED_DEGREE;
        weigh(w, &opts, weights);
        for (unsigned i = 0; i < NODES; i++)
            assert_true(near(weights[i], w->degree[WEIR_OUT][i] + w->degree[WEIR_IN][i]));
        opts.policy = WEIR_TRAIN_CACHED_HALO;
        weigh(w, &opts, weights);
        memset(naive, 0, sizeof naive);
        for (unsigned e = 0; e < w->edges; e++) {
            if (rank_of(w, w->from[e]) == rank) naive[w->to[e]] = 1;
            if (rank_of(w, w->to[e]) == rank) naive[w->from[e]] = 1;
        }
        for (unsigned i = 0; i < NODES; i++)
            assert_true(weights[i] == naive[i]);
    }
    world_free(w);
}

/* All targets are in every batch, and the edges of most of them are all drawn: the logarithm of what is left is none.
 */
static void what_is_certain_has_a_weight_of_one(void **state) {
    (void)state;
    world *w = world_new();
    double weights[NODES], naive[NODES];
    for (unsigned i = 0; i < NODES; i++) {
        w->train[i] = i < NODES / 2;
        if (i < NODES / 2 && i != 1)
            world_add(w, i, i + NODES / 2); /* the only edge of a target, and the only parent */
        if (i < 100 && i > 1) world_add(w, i + NODES / 2, NODES - 1); /* many certain ones have one child */
    }
    world_import(w);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        unsigned certain = 0;
        const weir_train_cache_opts opts = opts_of(w, WEIR_TRAIN_CACHED_VIP, rank, 10 * NODES);
        weigh(w, &opts, weights);
        naive_vip(w, rank, opts.batch, naive);
        for (unsigned i = 0; i < NODES; i++) {
            assert_true(weights[i] <= 1 && near(weights[i], naive[i]));
            certain += naive[i] == 1;
        }
        for (unsigned i = 0; i < NODES / 2; i++)
            assert_true(near(weights[i + NODES / 2], i == NODES / 2 - 1 || (i != 1 && learns(w, i, rank))));
        assert_true(certain > NODES / 2 / RANKS / 2);
    }
    world_free(w);
}

static weir_err weigh_once(void *context) {
    const weir_train_cache_opts *opts = context;
    double *weights = NULL;
    weir_err err = weir_train_weigh(opts, &weights);
    weir_free(weights);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world *w = world_new();
    world_draw(w, 1);
    world_import(w);
    weir_train_cache_opts vip = opts_of(w, WEIR_TRAIN_CACHED_VIP, 0, 7),
                          halo = opts_of(w, WEIR_TRAIN_CACHED_HALO, 0, 7);
    weir_test_every_allocation(weigh_once, &vip);
    weir_test_every_allocation(weigh_once, &halo);
    world_free(w);
}

/* --- against what is sampled -------------------------------------------------------------------------------------- */

/* times[name]: how many of so many batches of this rank read the vertex. */
static void sample(const world *w, uint32_t rank, uint32_t batch, uint32_t batches, double times[NODES]) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 5, 0);
    unsigned name_of[NODES];
    memset(times, 0, NODES * sizeof *times);
    for (unsigned i = 0; i < NODES; i++)
        name_of[w->vertex_of[i]] = i;
    for (uint32_t b = 0; b < batches; b++) {
        weir_sample_source *source;
        weir_sampler *sampler;
        weir_block *block;
        weir_target own[NODES];
        uint32_t count = 0;
        /* A draw of the batch from all targets, of which the rank's are taken. */
        uint64_t left = batch, of = w->targets->ends[WEIR_TARGETS_TRAIN];
        for (uint64_t i = 0; i < w->targets->ends[WEIR_TARGETS_TRAIN]; i++, of--) {
            if (weir_rng_below(&rng, of) >= left) continue;
            left--;
            if (rank_of(w, name_of[w->targets->targets[i].vertex]) == rank) own[count++] = w->targets->targets[i];
        }
        if (!count) continue;
        weir_sample_opts opts = {.targets_max = NODES, .seed = weir_rng_u64(&rng), .shared = true};
        opts.window = weir_nn_window(w->shape);
        opts.steps = weir_nn_steps(w->shape, &opts.step_count);
        assert_ok(weir_sample_over_snapshot(w->snapshot, &source));
        assert_ok(weir_sampler_open(&opts, source, &sampler));
        assert_ok(weir_block_open(sampler, &block));
        assert_ok(weir_sample(sampler, own, count, block));
        weir_block_inputs(sampler, block, true);
        const weir_block_view *view = weir_block_look(block);
        for (uint32_t row = 0; row < view->inputs; row++)
            times[name_of[view->vertices[view->input_nodes[row]]]]++;
        weir_block_close(block);
        weir_sampler_close(sampler);
        weir_sample_source_close(source);
    }
}

/* Where no two draws lead to one vertex, they are independent, and the chance is exact: each within 6 standard
 * deviations. */
static void a_weight_is_how_often_a_batch_reads_a_vertex(void **state) {
    (void)state;
    enum { TREES = 24, CHILDREN = 9, BATCH = 9, BATCHES = 3000 };
    world *w = world_new();
    double weights[NODES], times[NODES];
    for (unsigned i = 0; i < TREES; i++) {
        w->train[i] = true;
        for (unsigned c = 0; c < CHILDREN; c++)
            world_add(w, i, TREES + i * CHILDREN + c);
    }
    world_import(w);
    for (uint32_t window = 0; window <= 6; window += 6) { /* one that a list is longer than, too */
        world_shape(w, true, window);
        const weir_train_cache_opts opts = opts_of(w, WEIR_TRAIN_CACHED_VIP, 0, BATCH);
        weigh(w, &opts, weights);
        sample(w, 0, BATCH, BATCHES, times);
        for (unsigned i = TREES; i < NODES; i++) {
            double mean = BATCHES * weights[i], deviation = sqrt(mean * (1 - weights[i]));
            if (fabs(times[i] - mean) > 6 * deviation) fail_msg("vertex %u: %g times, not %g", i, times[i], mean);
        }
    }
    world_free(w);
}

typedef struct ranked {
    double weight;
    unsigned name;
} ranked;

static int by_weight(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* misses[size]: rows of others that batches ask for, if so many are kept. */
static void count_misses(const world *w, uint32_t rank, const double weights[NODES], const double times[NODES],
                         double misses[NODES + 1]) {
    ranked order[NODES];
    unsigned count = 0;
    misses[0] = 0;
    for (unsigned i = 0; i < NODES; i++) {
        if (rank_of(w, i) == rank) continue;
        misses[0] += times[i];
        if (weights[i] > 0) order[count++] = (ranked){weights[i], i};
    }
    qsort(order, count, sizeof order[0], by_weight);
    for (unsigned size = 1; size <= NODES; size++)
        misses[size] = misses[size - 1] - (size <= count ? times[order[size - 1].name] : 0);
}

static void the_more_is_kept_the_less_is_asked_for(void **state) {
    (void)state;
    enum { BATCH = 12, BATCHES = 60 };
    static const weir_train_cached policies[] = {WEIR_TRAIN_CACHED_VIP, WEIR_TRAIN_CACHED_PATHS,
                                                 WEIR_TRAIN_CACHED_DEGREE, WEIR_TRAIN_CACHED_HALO};
    world *w = world_new();
    double weights[NODES], times[NODES], misses[NODES + 1], least[NODES + 1];
    world_draw(w, weir_test_seed());
    world_import(w);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        sample(w, rank, BATCH, BATCHES, times);
        count_misses(w, rank, times, times, least);
        assert_true(least[0] > 0 && least[NODES] == 0);
        for (unsigned p = 0; p < sizeof policies / sizeof policies[0]; p++) {
            const weir_train_cache_opts opts = opts_of(w, policies[p], rank, BATCH);
            weigh(w, &opts, weights);
            count_misses(w, rank, weights, times, misses);
            for (unsigned size = 0; size <= NODES; size++) {
                assert_true(misses[size] >= least[size]);
                assert_true(size == 0 || misses[size] <= misses[size - 1]);
            }
            /* What a batch may read has a weight; halo knows only what is a step away. */
            if (policies[p] != WEIR_TRAIN_CACHED_HALO) assert_true(misses[NODES] == 0);
        }
    }
    world_free(w);
}

WEIR_TESTS(WEIR_CASE(vip_is_the_product_over_all_parents), WEIR_CASE(paths_are_walks_and_degrees_are_names),
           WEIR_CASE(what_is_certain_has_a_weight_of_one), WEIR_CASE(every_allocation_may_fail),
           WEIR_CASE(a_weight_is_how_often_a_batch_reads_a_vertex), WEIR_CASE(the_more_is_kept_the_less_is_asked_for))
