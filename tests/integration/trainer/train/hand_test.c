/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand_test.c - dealt batches, of which ranks compute targets that they do not have: each case starts this program
 * again under mpirun. Every rank learns its turns of the batches, and all of them by itself from the whole snapshot,
 * which is the oracle: losses, gradients and so the parameters stay those of one process.
 */
#include <math.h>
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/trainer/nn/nn.h>
#include <weir/trainer/train/train.h>

#include "batches.h"
#include "deal.h"
#include "rank_fixture.h"
#include "ranks.h"

#define BATCH  50u
#define AHEAD  3u
#define EPOCHS 2u
#define PAYS   700u
#define RATE   0.05f

typedef struct side {
    weir_targets *targets;
    weir_batches_opts opts;
    weir_batches *stream;
    weir_nn_workspace *workspace;
    weir_real *params, *gradients;
} side;

static struct {
    weir_comm *comm, *channels[AHEAD][WEIR_TRAIN_CHANNELS];
    weir_snapshot *snapshot;
    weir_part *part; /* NULL: each rank has the whole snapshot */
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_train_dealer dealer;
    uint32_t list[PAYS];
    uint64_t count;
} world;

static weir_real *reals(void) {
    void *memory;
    size_t bytes = weir_nn_parameter_count(world.nn) * sizeof(weir_real);
    assert_ok(weir_kernels_cpu()->alloc(weir_kernels_cpu(), bytes, &memory));
    weir_kernels_cpu()->zero(weir_kernels_cpu(), memory, bytes);
    return memory;
}

static void side_open(side *s, weir_comm *comm, weir_train_owners owners) {
    const weir_targets_opts which = {.task = LEARN_TASK_BAD,
                                     .cut = {.warm_up = 0.05, .validation = 0.2, .test = 0.2},
                                     .comm = owners.part ? comm : NULL};
    assert_ok(weir_targets_open(owners.snapshot, &which, &s->targets));
    assert_ok(weir_nn_workspace_open(world.nn, true, &s->workspace));
    s->params = reals();
    s->gradients = reals();
    weir_nn_init(world.nn, 1, s->params);
    s->opts = (weir_batches_opts){.shape = world.shape,
                                  .targets = s->targets,
                                  .batch = BATCH,
                                  .ahead = AHEAD,
                                  .dealt = owners.ranks > 1,
                                  .owners = owners,
                                  .channels = (weir_comm *const(*)[WEIR_TRAIN_CHANNELS])world.channels};
}

static void side_close(side *s) {
    weir_kernels_cpu()->release(weir_kernels_cpu(), s->gradients);
    weir_kernels_cpu()->release(weir_kernels_cpu(), s->params);
    weir_nn_workspace_close(s->workspace);
    weir_targets_close(s->targets);
}

/* The loss of what this side computes of its next batch, and its gradients. */
static double learn(side *s, uint64_t step, const weir_train_batch **batchp) {
    weir_real logits[BATCH], dlogits[BATCH];
    uint32_t labels[BATCH];
    const double weights[] = {1, 2};
    double weight = 0;
    assert_ok(weir_batches_next(s->stream, batchp));
    const weir_train_batch *b = *batchp;
    assert_non_null(b);
    memset(s->gradients, 0, weir_nn_parameter_count(world.nn) * sizeof *s->gradients);
    for (uint64_t i = 0; i < b->end - b->begin; i++)
        weight += weights[s->targets->classes_of[b->list[i]]];
    if (!b->own_count) return 0;
    for (uint32_t i = 0; i < b->own_count; i++)
        labels[i] = s->targets->classes_of[b->own[i]];
    const weir_nn_drop drop = {
        .rate = 0.3, .seed = 9, .step = step, .keys = b->keys}; /* what is dropped depends on every node's key */
    const weir_loss of = {logits, labels, weights, b->own_count, 2, weight, 0};
    assert_ok(weir_nn_forward(world.nn, s->params, &b->nn, &drop, s->workspace, logits, NULL));
    double loss = 0;
    weir_kernels_cpu()->loss(weir_kernels_cpu(), 1, &of, dlogits, &loss);
    assert_ok(weir_nn_backward(world.nn, s->params, s->workspace, dlogits, s->gradients, NULL));
    return loss;
}

static void descend(side *s) {
    for (uint64_t i = 0; i < weir_nn_parameter_count(world.nn); i++)
        s->params[i] -= (weir_real)RATE * s->gradients[i];
}

/* A list of the epoch, dealt by who has what: the same on all ranks. */
static void draw(const side *s, uint64_t seed, uint32_t epoch) {
    weir_rng rng = weir_rng_stream(seed, epoch, 3);
    world.count = 0;
    for (uint32_t i = 0; i < s->targets->ends[WEIR_TARGETS_TRAIN]; i++)
        if (weir_rng_below(&rng, 4)) world.list[world.count++] = i;
    for (uint64_t i = world.count; i > 1; i--) {
        uint64_t other = weir_rng_below(&rng, i);
        uint32_t last = world.list[i - 1];
        world.list[i - 1] = world.list[other];
        world.list[other] = last;
    }
    for (uint64_t i = 0; i < world.count; i++)
        world.dealer.owner_of[i] = weir_train_target_owner(&s->opts.owners, s->targets, world.list[i]);
    weir_train_deal(&world.dealer, world.list, world.count);
}

/* Of one batch: who computes how many, and that all together are it. Returns how many were handed over. */
static double shares(const weir_train_batch *batch, uint32_t rank, uint32_t ranks) {
    double counts[16] = {0}, handed = batch->handed, all = 0;
    counts[rank] = batch->own_count;
    weir_comm_sum_doubles(world.comm, counts, ranks);
    weir_comm_sum_doubles(world.comm, &handed, 1);
    for (uint32_t i = 0; i < ranks; i++) {
        assert_true(fabs(counts[i] - counts[0]) <= 1);
        all += counts[i];
    }
    assert_true(all == (double)(batch->end - batch->begin));
    return handed;
}

/* Both sides add up the same numbers in another order: by 6e-7 of their norm at most, as was seen in 3,343 steps. That
 * no node falls to the other side of a kink is because each one's numbers are added in the same order on both. */
static void same_gradients(const side *one, const side *many) {
    double apart = 0, norm = 0;
    for (uint64_t i = 0; i < weir_nn_parameter_count(world.nn); i++) {
        apart += pow((double)many->gradients[i] - (double)one->gradients[i], 2);
        norm += pow((double)one->gradients[i], 2);
    }
    if (!(sqrt(apart) <= 1e-5 * sqrt(norm))) fail_msg("gradients of norm %g are %g apart", sqrt(norm), sqrt(apart));
}

/* Each step begins with the same parameters on both sides: else rounding grows from step to step. Returns how many
 * targets were handed over. */
static double learn_epoch(side *one, side *many, uint64_t seed, uint32_t epoch) {
    const weir_train_owners *owners = &many->opts.owners;
    double handed = 0;
    draw(many, seed, epoch);
    side *const sides[] = {one, many};
    for (unsigned i = 0; i < 2; i++) {
        sides[i]->opts.list = world.list;
        sides[i]->opts.count = world.count;
        sides[i]->opts.seed = seed + epoch;
        assert_ok(weir_batches_open(&sides[i]->opts, &sides[i]->stream));
    }
    for (uint64_t at = 0, step = epoch * PAYS; at < world.count; at += BATCH, step++) {
        const weir_train_batch *alone, *batch;
        double loss = learn(one, step, &alone), sum = learn(many, step, &batch);
        weir_comm_sum_doubles(world.comm, &sum, 1);
        weir_comm_sum_floats(world.comm, many->gradients, weir_nn_parameter_count(world.nn));
        if (!(fabs(sum - loss) <= 1e-5 * fabs(loss)))
            fail_msg("epoch %u, from target %llu on: losses %.9g and %.9g", epoch, (unsigned long long)at, loss, sum);
        same_gradients(one, many);
        handed += shares(batch, owners->rank, owners->ranks);
        descend(one);
        memcpy(many->params, one->params, weir_nn_parameter_count(world.nn) * sizeof *one->params);
        weir_batches_done(one->stream, alone);
        weir_batches_done(many->stream, batch);
    }
    weir_batches_close(one->stream);
    weir_batches_close(many->stream);
    return handed;
}

static void world_open(void) {
    static const uint32_t fanouts[] = {4, 3};
    weir_sample_step steps[8];
    weir_nn_opts opts = {.task = LEARN_TASK_BAD, .hidden = 8, .steps = steps};
    assert_ok(weir_comm_start(NULL, NULL, &world.comm));
    world.snapshot = rank_snapshot();
    world.part = rank_part(weir_comm_rank(world.comm));
    const weir_schema *schema = weir_snapshot_schema(world.snapshot);
    const weir_train_reach reach = {.fanouts = fanouts, .layers = 2, .draws = true, .strategy = WEIR_SAMPLE_UNIFORM};
    opts.step_count = weir_train_steps(schema, LEARN_TASK_BAD, &reach, NULL, steps, 8);
    assert_ok(weir_nn_shape_open(schema, &opts, &world.shape));
    assert_ok(weir_nn_open(world.shape, weir_kernels_cpu(), &world.nn));
    assert_ok(weir_train_dealer_open(PAYS, weir_comm_ranks(world.comm), &world.dealer));
    for (unsigned i = 0; i < AHEAD * WEIR_TRAIN_CHANNELS; i++)
        assert_ok(weir_comm_channel(world.comm, &world.channels[i / WEIR_TRAIN_CHANNELS][i % WEIR_TRAIN_CHANNELS]));
}

static void world_close(void) {
    for (unsigned i = 0; i < AHEAD * WEIR_TRAIN_CHANNELS; i++)
        weir_comm_channel_close(world.channels[i / WEIR_TRAIN_CHANNELS][i % WEIR_TRAIN_CHANNELS]);
    weir_train_dealer_close(&world.dealer);
    weir_nn_close(world.nn);
    weir_nn_shape_free(world.shape);
    weir_part_close(world.part);
    weir_snapshot_close(world.snapshot);
    weir_comm_stop(world.comm);
}

static void rank_main(void) {
    side one = {0}, many = {0};
    double handed = 0;
    uint64_t seed = rank_seed();
    world_open();
    const weir_snapshot *own = world.part ? weir_part_snapshot(world.part) : world.snapshot;
    side_open(&one, world.comm, (weir_train_owners){world.snapshot, NULL, 0, 1});
    side_open(&many, world.comm,
              (weir_train_owners){own, world.part, weir_comm_rank(world.comm), weir_comm_ranks(world.comm)});
    assert_int_equal(one.targets->count, many.targets->count);
    for (uint32_t epoch = 1; epoch <= EPOCHS; epoch++)
        handed += learn_epoch(&one, &many, seed, epoch);
    assert_true(handed > 0); /* else the case has shown nothing */
    side_close(&many);
    side_close(&one);
    world_close();
}

/* What the cases below start; by itself it has nothing to do. */
static void one_rank(void **state) {
    (void)state;
    rank_or_skip();
    rank_main();
}

/* depth below 0: each rank has the whole snapshot. */
static void as_one_process_of(const learn_plan *plan, unsigned ranks, int depth) {
    const weir_parts_opts parts = {.parts = ranks,
                                   .depth = depth < 0 ? 0 : (uint32_t)depth,
                                   .method = WEIR_PARTS_RANDOM,
                                   .seed = weir_test_seed()};
    rank_prepare(plan, depth < 0 ? NULL : &parts);
    ranks_again(ranks);
}

static void as_one_process(unsigned ranks, int depth, bool pairs) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = 23, .bad = 0.3, .pairs = pairs};
    as_one_process_of(&plan, ranks, depth);
}

/* Targets of one time share what lies below them on the rank that has them, and with those that were handed to it. */
static void few_times(unsigned ranks, int depth, bool pairs) {
    const learn_plan plan = {
        .seed = weir_test_seed(), .pays = PAYS, .people = 23, .bad = 0.3, .pairs = pairs, .at_once = 60};
    as_one_process_of(&plan, ranks, depth);
}

static void r1_few_times_of_four_parts(void **state) {
    (void)state;
    few_times(4, 0, false);
}

static void r1_few_times_and_pairs_of_three_parts(void **state) {
    (void)state;
    few_times(3, 1, true);
}

static void r1_few_times_of_two_ranks_with_the_whole_snapshot(void **state) {
    (void)state;
    few_times(2, -1, false);
}

static void r1_three_parts_without_edges_of_others(void **state) {
    (void)state;
    as_one_process(3, 0, false);
}

static void r1_four_parts_that_reach_as_far_as_trees_do(void **state) {
    (void)state;
    as_one_process(4, 1, false);
}

static void r1_seven_parts(void **state) {
    (void)state;
    as_one_process(7, 0, false);
}

static void r1_three_ranks_with_the_whole_snapshot(void **state) {
    (void)state;
    as_one_process(3, -1, false);
}

/* What a target knows of a pair goes with it, to whoever computes it. */
static void r1_pairs_of_parts(void **state) {
    (void)state;
    as_one_process(3, 1, true);
}

static void r1_pairs_of_the_whole_snapshot(void **state) {
    (void)state;
    as_one_process(3, -1, true);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(r1_pairs_of_parts), WEIR_CASE(r1_pairs_of_the_whole_snapshot),
           WEIR_CASE(r1_three_parts_without_edges_of_others), WEIR_CASE(r1_four_parts_that_reach_as_far_as_trees_do),
           WEIR_CASE(r1_seven_parts), WEIR_CASE(r1_three_ranks_with_the_whole_snapshot),
           WEIR_CASE(r1_few_times_of_four_parts), WEIR_CASE(r1_few_times_and_pairs_of_three_parts),
           WEIR_CASE(r1_few_times_of_two_ranks_with_the_whole_snapshot))
