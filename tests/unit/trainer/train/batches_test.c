/* SPDX-License-Identifier: Apache-2.0 */
/* batches_test.c - batches made ahead: their order, their bound, and that company changes nothing of a target. */
#include <math.h>
#include <sched.h>

#include <weir/store/base/clock.h>
#include <weir/trainer/nn/nn.h>
#include <weir/trainer/train/train.h>

#include "batches.h"
#include "learn_fixture.h"

#define HIDDEN 8u
#define EPOCHS 5u

typedef struct world {
    weir_snapshot *snapshot;
    weir_targets *targets;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_nn_workspace *workspace;
    weir_comm *comm;
    weir_real *params;
    uint32_t *list;
    weir_batches_opts opts;
} world;

static void world_open_of(world *w, uint64_t at_once, weir_strategy strategy) {
    static const uint32_t fanouts[] = {4, 4};
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 300, .people = 12, .bad = 0.3, .at_once = at_once};
    const weir_train_reach reach = {.fanouts = fanouts, .layers = 2, .draws = true, .strategy = strategy};
    weir_sample_step steps[8];
    void *memory;
    *w = (world){.snapshot = learn_snapshot_open(&plan)};
    const weir_schema *schema = weir_snapshot_schema(w->snapshot);
    weir_nn_opts opts = {.task = LEARN_TASK_BAD, .hidden = HIDDEN, .steps = steps};
    opts.step_count = weir_train_steps(schema, LEARN_TASK_BAD, &reach, NULL, steps, 8);
    const weir_targets_opts which = {.task = LEARN_TASK_BAD, .cut = {.warm_up = 0.1, .validation = 0.2, .test = 0.2}};
    assert_ok(weir_targets_open(w->snapshot, &which, &w->targets));
    assert_ok(weir_nn_shape_open(schema, &opts, &w->shape));
    assert_ok(weir_nn_open(w->shape, weir_kernels_cpu(), &w->nn));
    assert_ok(weir_nn_workspace_open(w->nn, true, &w->workspace));
    assert_ok(
        weir_kernels_cpu()->alloc(weir_kernels_cpu(), weir_nn_parameter_count(w->nn) * sizeof *w->params, &memory));
    w->params = memory;
    weir_nn_init(w->nn, 1, w->params);
    assert_ok(weir_comm_start(NULL, NULL, &w->comm));
    w->list = calloc(w->targets->count, sizeof *w->list);
    assert_non_null(w->list);
    for (uint64_t i = 0; i < w->targets->count; i++)
        w->list[i] = (uint32_t)(w->targets->count - 1 - i);
    w->opts = (weir_batches_opts){.shape = w->shape,
                                  .targets = w->targets,
                                  .list = w->list,
                                  .count = w->targets->count,
                                  .batch = 7,
                                  .seed = 5,
                                  .owners = {w->snapshot, NULL, 0, 1}};
}

static void world_open(world *w) {
    world_open_of(w, 1, WEIR_SAMPLE_RECENT);
}

static void world_close(world *w) {
    free(w->list);
    weir_comm_stop(w->comm);
    weir_kernels_cpu()->release(weir_kernels_cpu(), w->params);
    weir_nn_workspace_close(w->workspace);
    weir_nn_close(w->nn);
    weir_nn_shape_free(w->shape);
    weir_targets_close(w->targets);
    weir_snapshot_close(w->snapshot);
}

/* A batch's targets are those of its place in the list, by time, and those of one time as the list has them. */
static void own_are(const world *w, const weir_train_batch *batch) {
    uint32_t own[512];
    const uint32_t count = (uint32_t)(batch->end - batch->begin);
    assert_true(count <= 512 && batch->own_count == count);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t before_us = w->targets->targets[batch->list[i]].before_us;
        uint32_t at = i;
        for (; at > 0 && w->targets->targets[own[at - 1]].before_us > before_us; at--)
            own[at] = own[at - 1];
        own[at] = batch->list[i];
    }
    assert_memory_equal(batch->own, own, count * sizeof *own);
    for (uint32_t i = 0; i < count; i++) {
        const weir_block_view *view = batch->nn.block;
        const weir_target *target = &w->targets->targets[own[i]];
        assert_true(view->vertices[i] == target->vertex && view->events[i] == target->event);
        assert_true(view->before_us[view->groups[i]] == target->before_us);
    }
}

/* Of a list, or, without one, of all targets from one on. */
static void each_once_in_order(bool listed, uint64_t at_once) {
    world w;
    weir_batches *stream = NULL;
    const weir_train_batch *batch = NULL;
    uint64_t at = 0, number = 0;
    world_open_of(&w, at_once, WEIR_SAMPLE_RECENT);
    if (!listed) {
        w.opts.list = NULL;
        w.opts.first = 5;
        w.opts.count = w.targets->count - 8;
    }
    assert_ok(weir_batches_open(&w.opts, &stream));
    for (;;) {
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        assert_int_equal(batch->number, number++);
        assert_int_equal(batch->begin, at);
        own_are(&w, batch);
        for (uint32_t i = 0; i < batch->own_count; i++, at++)
            assert_int_equal(batch->list[i], listed ? w.list[at] : at + w.opts.first);
        assert_int_equal(batch->end, at);
        weir_batches_done(stream, batch);
    }
    assert_int_equal(at, w.opts.count);
    weir_batches_close(stream);
    world_close(&w);
}

static void e1_each_once_in_order(void **state) {
    (void)state;
    for (uint64_t at_once = 1; at_once <= 50; at_once += 49) {
        each_once_in_order(true, at_once);
        each_once_in_order(false, at_once);
    }
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

static void company_changes_nothing(uint64_t at_once, weir_strategy strategy, bool as_served) {
    world w;
    static weir_real alone[512], together[512];
    static uint64_t keys_alone[512], keys_together[512];
    world_open_of(&w, at_once, strategy);
    w.opts.as_served = as_served;
    assert_true(w.targets->count <= 512);
    pass(&w, 1, alone, keys_alone);
    pass(&w, 60, together, keys_together);
    assert_memory_equal(keys_alone, keys_together, w.targets->count * sizeof *keys_alone);
    for (uint64_t i = 0; i < w.targets->count; i++)
        assert_true(fabs((double)(alone[i] - together[i])) <= 1e-5 * (1 + fabs((double)alone[i])));
    world_close(&w);
}

static void e2_company_changes_nothing(void **state) {
    (void)state;
    company_changes_nothing(1, WEIR_SAMPLE_RECENT, false);
}

static void e2_company_of_the_same_time_changes_nothing(void **state) {
    (void)state;
    company_changes_nothing(50, WEIR_SAMPLE_RECENT, false);
    company_changes_nothing(50, WEIR_SAMPLE_UNIFORM, false);
    company_changes_nothing(50, WEIR_SAMPLE_UNIFORM, true);
}

/* --- targets of one time ------------------------------------------------------------------------------------------ */

/* Nodes of a hop and a type that are one vertex as of one time, beside targets. */
static uint64_t count_twins(const weir_block_view *view) {
    uint64_t twins = 0;
    for (uint32_t i = view->types; i < (view->hops + 1) * view->types; i++)
        for (uint32_t n = view->ranges[i].begin; n < view->ranges[i].end; n++)
            for (uint32_t other = view->ranges[i].begin; other < n; other++)
                twins += view->vertices[n] == view->vertices[other] &&
                         view->before_us[view->groups[n]] == view->before_us[view->groups[other]];
    return twins;
}

/* Only where serving draws, each target by its name, do targets of one time that are judged share nothing. */
static void what_is_judged_is_drawn_as_served(void **state) {
    (void)state;
    static const weir_strategy strategies[] = {WEIR_SAMPLE_RECENT, WEIR_SAMPLE_UNIFORM, WEIR_SAMPLE_FULL};
    for (unsigned i = 0; i < 6; i++) {
        const bool draws = strategies[i / 2] == WEIR_SAMPLE_UNIFORM;
        world w;
        weir_batches *stream = NULL;
        const weir_train_batch *batch = NULL;
        uint64_t twins = 0;
        world_open_of(&w, 50, strategies[i / 2]);
        w.opts.as_served = i % 2;
        w.opts.batch = 60;
        assert_ok(weir_batches_open(&w.opts, &stream));
        for (;;) {
            assert_ok(weir_batches_next(stream, &batch));
            if (!batch) break;
            twins += count_twins(batch->nn.block);
            weir_batches_done(stream, batch);
        }
        assert_int_equal(twins > 0, draws && w.opts.as_served);
        weir_batches_close(stream);
        world_close(&w);
    }
}

/* Adds up what a pass in batches of this size learns of all targets; returns the loss. */
static double learn_all(world *w, uint32_t size, weir_real *gradients) {
    weir_batches *stream = NULL;
    const weir_train_batch *batch = NULL;
    const double weights[] = {1, 3};
    double sum = 0;
    w->opts.batch = size;
    assert_ok(weir_batches_open(&w->opts, &stream));
    for (;;) {
        weir_real logits[64], dlogits[64];
        uint32_t labels[64];
        double loss = 0;
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        assert_true(batch->own_count <= 64);
        for (uint32_t i = 0; i < batch->own_count; i++)
            labels[i] = w->targets->classes_of[batch->own[i]];
        const weir_loss of = {logits, labels, weights, batch->own_count, 2, (double)w->opts.count, 0};
        assert_ok(weir_nn_forward(w->nn, w->params, &batch->nn, NULL, w->workspace, logits, NULL));
        weir_kernels_cpu()->loss(weir_kernels_cpu(), 1, &of, dlogits, &loss);
        assert_ok(weir_nn_backward(w->nn, w->params, w->workspace, dlogits, gradients, NULL));
        sum += loss;
        weir_batches_done(stream, batch);
    }
    weir_batches_close(stream);
    return sum;
}

/* One by one there is nobody to share with. */
static void e2_sharing_learns_the_same(void **state) {
    (void)state;
    world w;
    world_open_of(&w, 50, WEIR_SAMPLE_RECENT);
    const uint64_t count = weir_nn_parameter_count(w.nn);
    weir_real *gradients[2] = {calloc(count, sizeof(weir_real)), calloc(count, sizeof(weir_real))};
    double apart = 0, norm = 0;
    assert_true(gradients[0] && gradients[1]);
    double alone = learn_all(&w, 1, gradients[0]), together = learn_all(&w, 60, gradients[1]);
    for (uint64_t i = 0; i < count; i++) {
        apart += pow((double)gradients[1][i] - (double)gradients[0][i], 2);
        norm += pow((double)gradients[0][i], 2);
    }
    assert_true(norm > 0 && alone > 0);
    if (!(fabs(together - alone) <= 1e-5 * alone)) fail_msg("losses %.9g and %.9g", alone, together);
    if (!(sqrt(apart) <= 1e-4 * sqrt(norm))) fail_msg("gradients of norm %g are %g apart", sqrt(norm), sqrt(apart));
    free(gradients[0]);
    free(gradients[1]);
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
    weir_batches_done(stream, taken[0]);
    const weir_train_batch *next = NULL;
    assert_ok(weir_batches_next(stream, &next));
    assert_ptr_equal(next, taken[0]); /* its memory is all that there was */
    weir_batches_close(stream);       /* before the end */
    world_close(&w);
}

/* --- epochs ------------------------------------------------------------------------------------------------------- */

/* What the stream was asked to draw, by one maker or another. */
typedef struct drawing {
    const world *w;
    uint64_t counts[EPOCHS]; /* of the lists, by epoch from 1 on */
    uint32_t drawn;
} drawing;

/* Another piece of the list each epoch. */
static uint64_t draw(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp) {
    drawing *d = (drawing *)(uintptr_t)context;
    uint64_t count = d->counts[(epoch - 1) % EPOCHS];
    assert_int_equal(epoch, ++d->drawn); /* each once, in their order */
    for (uint64_t i = 0; i < count; i++)
        list[i] = d->w->list[(epoch + i) % d->w->targets->count];
    *seedp = 100 + epoch;
    return count;
}

static void draw_epochs(world *w, drawing *d, uint32_t epochs) {
    *d = (drawing){.w = w, .counts = {40, 1, 7, 8, 60}};
    w->opts.draw = draw;
    w->opts.context = d;
    w->opts.epoch = 1;
    w->opts.epochs = epochs;
}

static void e1_one_epoch_after_the_other(void **state) {
    (void)state;
    world w;
    drawing d;
    world_open(&w);
    for (uint32_t ahead = 1; ahead <= WEIR_TRAIN_AHEAD_MAX; ahead += 3) {
        weir_batches *stream = NULL;
        const weir_train_batch *batch = NULL;
        draw_epochs(&w, &d, EPOCHS);
        w.opts.ahead = ahead;
        assert_ok(weir_batches_open(&w.opts, &stream));
        for (uint32_t epoch = 1; epoch <= EPOCHS; epoch++) {
            uint64_t number = 0, at = 0;
            for (;;) {
                assert_ok(weir_batches_next(stream, &batch));
                if (!batch) break;
                assert_int_equal(batch->epoch, epoch);
                assert_int_equal(batch->number, number++);
                assert_int_equal(batch->begin, at);
                assert_int_equal(batch->own_count, batch->end - batch->begin);
                assert_int_equal(batch->seed, 100 + epoch);
                assert_true(batch->times.sample >= 0 && batch->times.wait >= 0);
                own_are(&w, batch);
                for (; at < batch->end; at++)
                    assert_int_equal(batch->list[at - batch->begin], w.list[(epoch + at) % w.targets->count]);
                weir_batches_done(stream, batch);
            }
            assert_int_equal(at, d.counts[epoch - 1]);
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_ok(weir_batches_next(stream, &batch));
            assert_null(batch);
        }
        weir_batches_close(stream);
    }
    world_close(&w);
}

/* What a target gets is a function of its epoch: that of a stream of this epoch alone. */
static void e4_an_epoch_is_what_it_is_alone(void **state) {
    (void)state;
    world w;
    drawing d;
    static weir_real alone[EPOCHS][512], together[EPOCHS][512];
    static uint32_t list[512];
    world_open(&w);
    for (uint32_t run = 0; run <= EPOCHS; run++) {
        weir_batches *stream = NULL;
        const weir_train_batch *batch = NULL;
        weir_real out[64];
        draw_epochs(&w, &d, EPOCHS);
        weir_batches_opts opts = w.opts;
        d.drawn = run;
        if (run < EPOCHS) {
            opts.count = draw(&d, run + 1, list, &opts.seed);
            opts.list = list;
            opts.draw = NULL;
            opts.epoch = run + 1;
        }
        d.drawn = 0;
        assert_ok(weir_batches_open(&opts, &stream));
        for (uint32_t ends = 0; ends < (run < EPOCHS ? 1 : EPOCHS);) {
            assert_ok(weir_batches_next(stream, &batch));
            ends += !batch;
            if (!batch) continue;
            assert_ok(weir_nn_forward(w.nn, w.params, &batch->nn, NULL, w.workspace, out, NULL));
            for (uint32_t i = 0; i < batch->own_count; i++)
                (run < EPOCHS ? alone : together)[batch->epoch - 1][batch->own[i]] = out[i];
            weir_batches_done(stream, batch);
        }
        weir_batches_close(stream);
    }
    assert_memory_equal(alone, together, sizeof alone);
    assert_true(alone[0][w.list[5]] != 0);
    world_close(&w);
}

/* Who has taken all of an epoch, and does something else, finds as much of the next one as there is memory for. Makers
 * that stopped at an epoch's end would never come so far. */
static void e1_no_maker_stops_at_the_end_of_an_epoch(void **state) {
    (void)state;
    world w;
    drawing d;
    weir_batches *stream = NULL, *judged = NULL;
    const weir_train_batch *batch = NULL;
    world_open(&w);
    const weir_batches_opts judging = w.opts;
    draw_epochs(&w, &d, EPOCHS);
    assert_ok(weir_batches_open(&w.opts, &stream));
    for (uint32_t epoch = 1; epoch < EPOCHS; epoch++) {
        while (!weir_batches_next(stream, &batch) && batch)
            weir_batches_done(stream, batch);
        assert_ok(weir_batches_open(&judging, &judged));
        while (!weir_batches_next(judged, &batch) && batch)
            weir_batches_done(judged, batch);
        weir_batches_close(judged);
        uint64_t left = 0;
        for (uint32_t later = epoch; later < EPOCHS; later++)
            left += (d.counts[later] + w.opts.batch - 1) / w.opts.batch;
        while (weir_batches_ready(stream) < (left < WEIR_BATCHES_AHEAD ? left : WEIR_BATCHES_AHEAD))
            sched_yield();
    }
    weir_batches_close(stream);
    world_close(&w);
}

/* However early, each maker makes the one batch that it has memory for, and no more: so all ranks agree on the last. */
static void e5_an_early_end_is_after_the_same_batch(void **state) {
    (void)state;
    world w;
    drawing d;
    world_open(&w);
    for (unsigned run = 0; run < 50; run++) {
        weir_batches *stream = NULL;
        const weir_train_batch *batch = NULL;
        uint64_t taken = 0, wanted = run % 20;
        draw_epochs(&w, &d, 100);
        for (uint32_t i = 0; i < EPOCHS; i++)
            d.counts[i] = 1; /* one draw a batch */
        w.opts.ahead = 1 + run % WEIR_TRAIN_AHEAD_MAX;
        assert_ok(weir_batches_open(&w.opts, &stream));
        while (taken < wanted) {
            assert_ok(weir_batches_next(stream, &batch));
            if (!batch) continue;
            weir_batches_done(stream, batch);
            taken++;
        }
        weir_batches_close(stream);
        assert_int_equal(d.drawn, wanted + w.opts.ahead);
    }
    world_close(&w);
}

/* --- what goes wrong ---------------------------------------------------------------------------------------------- */

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
        assert_err(err, WEIR_ECORRUPT, "ing batch 1 of "); /* sampling, or encoding */
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

static weir_err go_through(void *context) {
    world *w = context;
    drawing d;
    weir_batches *stream;
    const weir_train_batch *batch = NULL;
    draw_epochs(w, &d, 3);
    w->opts.ahead = 2;
    weir_err err = weir_batches_open(&w->opts, &stream);
    for (uint32_t ends = 0; !err && ends < 3; ends += !batch) {
        err = weir_batches_next(stream, &batch);
        if (batch) weir_batches_done(stream, batch);
    }
    weir_batches_close(stream);
    return err;
}

static void every_allocation_of_three_epochs_may_fail(void **state) {
    (void)state;
    world w;
    world_open(&w);
    weir_test_every_allocation(go_through, &w);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(e1_each_once_in_order), WEIR_CASE(e1_one_epoch_after_the_other),
           WEIR_CASE(e1_no_maker_stops_at_the_end_of_an_epoch), WEIR_CASE(e4_an_epoch_is_what_it_is_alone),
           WEIR_CASE(e5_an_early_end_is_after_the_same_batch), WEIR_CASE(every_allocation_of_three_epochs_may_fail),
           WEIR_CASE(e2_company_changes_nothing), WEIR_CASE(e2_company_of_the_same_time_changes_nothing),
           WEIR_CASE(e2_sharing_learns_the_same), WEIR_CASE(what_is_judged_is_drawn_as_served),
           WEIR_CASE(e3_no_more_than_ahead), WEIR_CASE(neighbours_that_are_none_are_refused),
           WEIR_CASE(every_allocation_may_fail))
