/* SPDX-License-Identifier: Apache-2.0 */
/* batches_test.c - batches made ahead: their order, their bound, and that company changes nothing of a target. */
#include <math.h>

#include <weir/store/base/clock.h>
#include <weir/trainer/train/train.h>

#include "batches.h"
#include "learn_fixture.h"

#define HIDDEN 8u

typedef struct world {
    weir_snapshot *snapshot;
    weir_targets *targets;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_nn_workspace *workspace;
    weir_comm *comm;
    weir_real *params;
    uint64_t *list;
    weir_batches_opts opts;
} world;

static void world_open(world *w) {
    static const uint32_t fanouts[] = {4, 4};
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 300, .people = 12, .bad = 0.3};
    weir_sample_step steps[8];
    void *memory;
    *w = (world){.snapshot = learn_snapshot_open(&plan)};
    const weir_schema *schema = weir_snapshot_schema(w->snapshot);
    weir_nn_opts opts = {.task = LEARN_TASK_BAD, .hidden = HIDDEN, .steps = steps};
    opts.step_count =
        weir_train_steps(schema, LEARN_TASK_BAD, &(weir_train_reach){.fanouts = fanouts, .layers = 2}, NULL, steps, 8);
    const weir_targets_opts which = {.task = LEARN_TASK_BAD, .cut = {.warm_up = 0.1, .validation = 0.2, .test = 0.2}};
    assert_ok(weir_targets_open(w->snapshot, &which, &w->targets));
    assert_ok(weir_nn_shape_open(schema, &opts, &w->shape));
    assert_ok(weir_nn_open(w->shape, weir_kernels_cpu(), &w->nn));
    assert_ok(weir_nn_workspace_open(w->nn, false, &w->workspace));
    assert_ok(weir_kernels_cpu()->alloc(weir_nn_parameter_count(w->nn) * sizeof *w->params, &memory));
    w->params = memory;
    weir_nn_init(w->nn, 1, w->params);
    assert_ok(weir_comm_start(NULL, NULL, &w->comm));
    w->list = calloc(w->targets->count, sizeof *w->list);
    assert_non_null(w->list);
    for (uint64_t i = 0; i < w->targets->count; i++)
        w->list[i] = w->targets->count - 1 - i;
    w->opts = (weir_batches_opts){.shape = w->shape,
                                  .targets = w->targets,
                                  .list = w->list,
                                  .count = w->targets->count,
                                  .batch = 7,
                                  .seed = 5,
                                  .owners = {w->snapshot, NULL, 0, 1},
                                  .channels = {w->comm, w->comm}};
}

static void world_close(world *w) {
    free(w->list);
    weir_comm_stop(w->comm);
    weir_kernels_cpu()->release(w->params);
    weir_nn_workspace_close(w->workspace);
    weir_nn_close(w->nn);
    weir_nn_shape_free(w->shape);
    weir_targets_close(w->targets);
    weir_snapshot_close(w->snapshot);
}

static void e1_each_once_in_order(void **state) {
    (void)state;
    world w;
    weir_batches *stream = NULL;
    const weir_train_batch *batch = NULL;
    uint64_t at = 0, number = 0;
    world_open(&w);
    assert_ok(weir_batches_open(&w.opts, &stream));
    for (;;) {
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        assert_int_equal(batch->number, number++);
        assert_int_equal(batch->begin, at);
        for (uint32_t i = 0; i < batch->own_count; i++)
            assert_int_equal(batch->own[i], w.list[at++]);
        assert_int_equal(batch->end, at);
        weir_batches_done(stream, batch);
    }
    assert_int_equal(at, w.targets->count);
    weir_batches_close(stream);
    world_close(&w);
}

/* logits and the targets' keys, by target. */
static void pass(world *w, uint32_t size, weir_real *logits, uint64_t *keys) {
    weir_batches *stream = NULL;
    const weir_train_batch *batch = NULL;
    weir_real out[64];
    w->opts.batch = size;
    assert_ok(weir_batches_open(&w->opts, &stream));
    for (;;) {
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        assert_ok(weir_nn_forward(w->nn, w->params, &batch->nn, NULL, w->workspace, out, NULL));
        for (uint32_t i = 0; i < batch->own_count; i++) {
            logits[batch->own[i]] = out[i];
            keys[batch->own[i]] = batch->keys[i];
        }
        weir_batches_done(stream, batch);
    }
    weir_batches_close(stream);
}

static void e2_company_changes_nothing(void **state) {
    (void)state;
    world w;
    static weir_real alone[512], together[512];
    static uint64_t keys_alone[512], keys_together[512];
    world_open(&w);
    assert_true(w.targets->count <= 512);
    pass(&w, 1, alone, keys_alone);
    pass(&w, 60, together, keys_together);
    assert_memory_equal(keys_alone, keys_together, w.targets->count * sizeof *keys_alone);
    for (uint64_t i = 0; i < w.targets->count; i++)
        assert_true(fabs((double)(alone[i] - together[i])) <= 1e-5 * (1 + fabs((double)alone[i])));
    world_close(&w);
}

/* Whoever takes and gives nothing back gets as many as there is memory for, and no more are made. */
static void e3_no_more_than_ahead(void **state) {
    (void)state;
    world w;
    weir_batches *stream = NULL;
    const weir_train_batch *taken[WEIR_BATCHES_AHEAD] = {NULL};
    world_open(&w);
    assert_ok(weir_batches_open(&w.opts, &stream));
    for (uint32_t i = 0; i < WEIR_BATCHES_AHEAD; i++) {
        assert_ok(weir_batches_next(stream, &taken[i]));
        for (uint32_t j = 0; j < i; j++)
            assert_ptr_not_equal(taken[i], taken[j]);
    }
    weir_batches_done(stream, taken[2]);
    const weir_train_batch *next = NULL;
    assert_ok(weir_batches_next(stream, &next));
    assert_ptr_equal(next, taken[2]); /* its memory is all that there was */
    weir_batches_close(stream);       /* before the end */
    world_close(&w);
}

/* The rows of those that nothing is sampled from were looked for wherever the file said. */
static void neighbours_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const arrays[] = {"relations/by/out/neighbors", "relations/by/in/neighbors"};
    static const int64_t wild[] = {-1, 1000000000, INT64_MAX};
    world w;
    world_open(&w);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(w.snapshot, 0, WEIR_OUT);
    for (size_t i = 0; i < 2 * sizeof wild / sizeof wild[0]; i++) {
        weir_batches *stream = NULL;
        const weir_train_batch *batch = NULL;
        weir_err err = WEIR_OK;
        for (uint64_t edge = 0; edge < e->edges; edge++)
            learn_spoil(arrays[i % 2], edge, wild[i / 2]);
        assert_ok(weir_batches_open(&w.opts, &stream));
        while (!(err = weir_batches_next(stream, &batch)) && batch)
            weir_batches_done(stream, batch);
        assert_err(err, WEIR_ECORRUPT, "a neighbour is vertex");
        weir_batches_close(stream);
        for (uint64_t edge = 0; i % 2 == 0 && edge < e->edges; edge++)
            learn_spoil(arrays[0], edge, 0); /* so that the others are reached */
    }
    world_close(&w);
}

static weir_err open_and_close(void *context) {
    const world *w = context;
    weir_batches *stream;
    const weir_train_batch *batch = NULL;
    weir_err err = weir_batches_open(&w->opts, &stream);
    if (!err) err = weir_batches_next(stream, &batch);
    weir_batches_close(stream);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world w;
    world_open(&w);
    w.opts.count = 5;
    weir_test_every_allocation(open_and_close, &w);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(e1_each_once_in_order), WEIR_CASE(e2_company_changes_nothing), WEIR_CASE(e3_no_more_than_ahead),
           WEIR_CASE(neighbours_that_are_none_are_refused), WEIR_CASE(every_allocation_may_fail))
