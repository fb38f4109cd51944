/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling_test.c - what a training looks at: which edges, by the strategy that it was given or that fits the snapshot,
 * and each vertex below a batch once, where the graph stands still.
 *
 * The graph is an import: PARENTS labelled vertices with DEGREE edges each, to vertices that several of them share.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/store/base/hash.h>
#include <weir/trainer/train/train.h>

#include "batches.h"
#include "learn_fixture.h"
#include "subsets.h"

#define PARENTS    300u
#define DEGREE     24u
#define SHARED     200u
#define PASSES     8u
#define BATCH      100u
#define FIXED_SEED 1u

static weir_snapshot *star_open(bool timed, unsigned degree, unsigned shared) {
    char nodes[4096], edges[4096];
    const char *out = weir_test_path(timed ? "timed" : "snapshot");
    weir_snapshot_stats stats;
    weir_snapshot *snapshot;
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    FILE *file = fopen(nodes, "w");
    assert_non_null(file);
    fprintf(file, "id,label\n");
    for (unsigned i = 0; i < PARENTS; i++)
        fprintf(file, "p%u,%c\n", i, i % 2 ? 'a' : 'b');
    for (unsigned i = 0; i < shared; i++)
        fprintf(file, "s%u,\n", i);
    assert_int_equal(fclose(file), 0);
    file = fopen(edges, "w");
    assert_non_null(file);
    fprintf(file, timed ? "src,dst,timestamp\n" : "src,dst\n");
    for (unsigned i = 0; i < PARENTS; i++)
        for (unsigned j = 0; j < degree; j++)
            if (timed)
                fprintf(file, "p%u,s%u,%u\n", i, (i * 31 + j * 7) % shared, 10 + j);
            else
                fprintf(file, "p%u,s%u\n", i, (i * 31 + j * 7) % shared);
    assert_int_equal(fclose(file), 0);
    assert_ok(weir_snapshot_import(&(weir_snapshot_import_opts){.out = out, .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    return snapshot;
}

static weir_trained *star_train(const weir_snapshot *snapshot, const weir_train_reach *reach) {
    weir_train_opts opts = weir_train_defaults();
    weir_comm *comm = NULL;
    weir_trained *trained = NULL;
    opts.snapshot = snapshot;
    opts.reach = *reach;
    opts.hidden = 4;
    opts.epochs = 1;
    opts.cut = (weir_targets_cut){.split = WEIR_TARGETS_BY_CLASS, .each = {50, 20}, .seed = 1};
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    assert_ok(weir_train_run(comm, &opts, &trained));
    weir_comm_stop(comm);
    return trained;
}

/* Of a block over a graph that stands still: nodes of a hop and a type are distinct vertices. */
static void each_vertex_is_there_once(const weir_block_view *view) {
    for (uint32_t i = 0; i < (view->hops + 1) * view->types; i++) {
        bool seen[PARENTS + SHARED] = {false};
        for (uint32_t node = view->ranges[i].begin; node < view->ranges[i].end; node++) {
            assert_true(view->vertices[node] < PARENTS + SHARED);
            assert_false(seen[view->vertices[node]]);
            seen[view->vertices[node]] = true;
        }
    }
}

static void count_batches(const weir_batches_opts *opts, const weir_snapshot *snapshot, uint32_t fanout,
                          subset_counts *counts) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, 0, WEIR_OUT);
    weir_batches *stream = NULL;
    const weir_train_batch *batch = NULL;
    assert_ok(weir_batches_open(opts, &stream));
    for (;;) {
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        const weir_block_view *view = batch->nn.block;
        const weir_block_edges *edges = &view->edges[0];
        each_vertex_is_there_once(view);
        for (uint32_t t = 0; t < view->targets; t++) {
            uint32_t picks[DEGREE], k = edges->offsets[t + 1] - edges->offsets[t];
            assert_int_equal(k, fanout);
            for (uint32_t i = 0; i < k; i++)
                picks[i] = (uint32_t)((int64_t)edges->refs[edges->offsets[t] + i] - e->indptr[view->vertices[t]]);
            subset_count(counts, picks, k);
        }
        weir_batches_done(stream, batch);
    }
    weir_batches_close(stream);
}

/* How often each place of the lists is drawn; returns how many draws there were. */
static uint64_t long_list_count(const weir_batches_opts *opts, const weir_snapshot *snapshot, uint64_t *drawn) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, 0, WEIR_OUT);
    weir_batches *stream = NULL;
    const weir_train_batch *batch = NULL;
    uint64_t all = 0;
    assert_ok(weir_batches_open(opts, &stream));
    for (;;) {
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        const weir_block_view *view = batch->nn.block;
        for (uint32_t t = 0; t < view->targets; t++)
            for (uint32_t i = view->edges[0].offsets[t]; i < view->edges[0].offsets[t + 1]; i++, all++)
                drawn[(int64_t)view->edges[0].refs[i] - e->indptr[view->vertices[t]]]++;
        weir_batches_done(stream, batch);
    }
    weir_batches_close(stream);
    return all;
}

/* All targets, PASSES times: the scores of single members and of pairs must be below score_max. */
static void subsets_are_alike(weir_batches_opts *opts, const weir_snapshot *snapshot, uint32_t k, uint64_t seed,
                              double score_max) {
    static subset_counts counts;
    memset(&counts, 0, sizeof counts);
    for (opts->seed = seed; opts->seed < seed + PASSES; opts->seed++)
        count_batches(opts, snapshot, k, &counts);
    assert_int_equal(counts.trials, PARENTS * PASSES);
    assert_true(subset_single_score(&counts, DEGREE, k) < score_max);
    if (k > 1) assert_true(subset_pair_score(&counts, DEGREE, k) < score_max);
}

/* As --strategy uniform says, of edges with times, which are looked at newest first if nothing is said; and of edges
 * without, if nothing is said. */
static void p1_a_training_draws_every_subset_alike(void **state) {
    (void)state;
    uint32_t list[PARENTS];
    for (uint32_t i = 0; i < PARENTS; i++)
        list[i] = i;
    for (unsigned timed = 0; timed < 2; timed++) {
        weir_snapshot *snapshot = star_open(timed, DEGREE, SHARED);
        for (uint32_t k = 1; k <= 20; k++) {
            const weir_train_reach reach = {
                .fanouts = &k, .layers = 1, .out_only = true, .draws = timed, .strategy = WEIR_SAMPLE_UNIFORM};
            weir_trained *trained = star_train(snapshot, &reach);
            const weir_targets *targets = weir_trained_look(trained).targets;
            assert_int_equal(targets->count, PARENTS);
            weir_batches_opts opts = {.shape = weir_trained_look(trained).shape,
                                      .targets = targets,
                                      .list = list,
                                      .count = targets->count,
                                      .batch = BATCH,
                                      .owners = {snapshot, NULL, 0, 1}};
            subsets_are_alike(&opts, snapshot, k, FIXED_SEED, SUBSETS_SCORE_MAX_FIXED);
            subsets_are_alike(&opts, snapshot, k, weir_test_seed(), SUBSETS_SCORE_MAX);
            weir_trained_close(trained);
        }
        weir_snapshot_close(snapshot);
    }
}

/* A vertex of more edges than the newest that are looked at where edges have times. */
static void p1_of_a_long_list_every_edge_is_drawn(void **state) {
    (void)state;
    enum { LENGTH = 1000, FANOUT = 10 };
    static const uint32_t fanout = FANOUT;
    uint64_t drawn[LENGTH] = {0}, all = 0;
    weir_snapshot *snapshot = star_open(false, LENGTH, LENGTH);
    weir_trained *trained =
        star_train(snapshot, &(weir_train_reach){.fanouts = &fanout, .layers = 1, .out_only = true});
    const weir_targets *targets = weir_trained_look(trained).targets;
    uint32_t list[PARENTS];
    for (uint32_t i = 0; i < PARENTS; i++)
        list[i] = i;
    weir_batches_opts opts = {.shape = weir_trained_look(trained).shape,
                              .targets = targets,
                              .list = list,
                              .count = PARENTS,
                              .batch = BATCH,
                              .owners = {snapshot, NULL, 0, 1}};
    const uint64_t seed = weir_test_seed();
    for (opts.seed = seed; opts.seed < seed + PASSES; opts.seed++)
        all += long_list_count(&opts, snapshot, drawn);
    assert_int_equal(all, (uint64_t)PARENTS * PASSES * FANOUT);
    double chi = 0, each = (double)all / LENGTH;
    for (unsigned i = 0; i < LENGTH; i++)
        chi += ((double)drawn[i] - each) * ((double)drawn[i] - each) / each;
    assert_true(chi < LENGTH - 1 + 6 * sqrt(2.0 * (LENGTH - 1))); /* draws without replacement vary less */
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

static void strategy_is(const weir_trained *trained, uint32_t at, weir_direction direction, uint32_t fanout,
                        weir_strategy strategy) {
    uint32_t count;
    const weir_sample_step *steps = weir_nn_steps(weir_trained_look(trained).shape, &count);
    assert_true(at < count);
    assert_int_equal(steps[at].direction, direction);
    assert_int_equal(steps[at].fanout, fanout);
    assert_int_equal(steps[at].strategy, strategy);
}

static void edges_with_times_are_looked_at_newest_first(void **state) {
    (void)state;
    static const uint32_t fanouts[] = {5, 3};
    weir_snapshot *snapshot = star_open(true, DEGREE, SHARED);
    weir_trained *trained = star_train(snapshot, &(weir_train_reach){.fanouts = fanouts, .layers = 2});
    strategy_is(trained, 0, WEIR_OUT, 5, WEIR_SAMPLE_RECENT);
    strategy_is(trained, 1, WEIR_IN, 5, WEIR_SAMPLE_RECENT);
    strategy_is(trained, 2, WEIR_OUT, 3, WEIR_SAMPLE_RECENT);
    assert_int_equal(weir_nn_window(weir_trained_look(trained).shape), WEIR_SAMPLE_WINDOW);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

static void a_relation_may_be_looked_at_otherwise(void **state) {
    (void)state;
    static const uint32_t fanouts[] = {5, 3}, of_in[] = {0, 2};
    const weir_train_along alongs[] = {{.direction = WEIR_IN, .fanouts = of_in},
                                       {.direction = WEIR_OUT, .draws = true, .strategy = WEIR_SAMPLE_FULL}};
    const weir_train_reach reach = {.fanouts = fanouts,
                                    .layers = 2,
                                    .draws = true,
                                    .strategy = WEIR_SAMPLE_RECENT,
                                    .alongs = alongs,
                                    .along_count = 2};
    weir_snapshot *snapshot = star_open(false, DEGREE, SHARED);
    weir_trained *trained = star_train(snapshot, &reach);
    strategy_is(trained, 0, WEIR_OUT, 5, WEIR_SAMPLE_FULL);
    strategy_is(trained, 1, WEIR_OUT, 3, WEIR_SAMPLE_FULL); /* nothing looks against the edges at the first hop */
    strategy_is(trained, 2, WEIR_IN, 2, WEIR_SAMPLE_RECENT);
    assert_int_equal(weir_nn_window(weir_trained_look(trained).shape), WEIR_SAMPLE_WINDOW); /* all of what is full */
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(p1_a_training_draws_every_subset_alike), WEIR_CASE(p1_of_a_long_list_every_edge_is_drawn),
           WEIR_CASE(edges_with_times_are_looked_at_newest_first), WEIR_CASE(a_relation_may_be_looked_at_otherwise))
