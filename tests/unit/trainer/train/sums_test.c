/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums_test.c - the thread that sums beside the way back: whatever the two of them do when, a step comes to its end;
 * and what is finished is being summed however long the way back takes for the rest.
 */
#include <sched.h>
#include <stdatomic.h>

#include <weir/store/base/rng.h>

#include "nn_fixture.h"
#include "sums.h"

#define STEPS 300u

typedef struct world {
    nn_fixture f;
    weir_comm *comm;
    weir_real *gradients;
} world;

static void world_open(world *w) {
    nn_open(&w->f, weir_test_seed(), "find", 16);
    nn_random_batch(&w->f);
    w->gradients = fixture_array(weir_nn_parameter_count(w->f.nn), sizeof *w->gradients);
    assert_ok(weir_comm_start(NULL, NULL, &w->comm));
}

static void world_close(world *w) {
    weir_comm_stop(w->comm);
    free(w->gradients);
    nn_close(&w->f);
}

static void yield_some(weir_rng *rng) {
    for (uint64_t times = weir_rng_below(rng, 4); times > 0; times--)
        sched_yield();
}

/* One rank's sums are what it has; gradients are finished from anywhere on. */
static weir_err go_through(world *w, unsigned steps, weir_rng *rng) {
    weir_train_sums *sums;
    uint64_t count = weir_nn_parameter_count(w->f.nn);
    int64_t busy_us = 0;
    weir_err err = weir_train_sums_open(w->f.nn, w->gradients, w->comm, &sums);
    for (unsigned step = 0; !err && step < steps; step++) {
        double loss = 0;
        weir_train_sums_begin(sums, 1, step);
        yield_some(rng);
        weir_train_sums_loss(sums, step);
        for (uint64_t from = count; from > 0;) {
            yield_some(rng);
            from = weir_rng_below(rng, 3) ? weir_rng_below(rng, from) : 0;
            weir_train_sums_reach(sums, from);
        }
        assert_ok(weir_train_sums_wait(sums, &loss, &busy_us));
        assert_true(loss == step && busy_us >= 0);
    }
    weir_train_sums_close(sums);
    return err;
}

static void a_step_comes_to_its_end(void **state) {
    (void)state;
    world w;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    world_open(&w);
    for (uint64_t i = 0; i < weir_nn_parameter_count(w.f.nn); i++)
        w.gradients[i] = (weir_real)i;
    assert_ok(go_through(&w, STEPS, &rng));
    for (uint64_t i = 0; i < weir_nn_parameter_count(w.f.nn); i++)
        assert_true(w.gradients[i] == (weir_real)i);
    world_close(&w);
}

/* Kernels with memory of their own: a sum begins with its copy for MPI. */
static struct {
    const weir_real *gradients;
    _Atomic uint64_t from;   /* finished from here on */
    _Atomic uint64_t copied; /* numbers, of the step at hand */
    _Atomic bool early;      /* some were copied before they were finished */
} told;

static void to_host_and_tell(const weir_kernels *k, void *host, const void *from, size_t bytes) {
    const weir_real *numbers = from;
    if ((uint64_t)(numbers - told.gradients) < told.from) told.early = true;
    weir_kernels_cpu()->to_host(k, host, from, bytes);
    told.copied += bytes / sizeof *numbers;
}

static uint64_t numbers_to_sum(const weir_nn *nn, uint64_t from) {
    uint32_t tensors;
    uint64_t numbers = 0;
    const weir_nn_tensor *of = weir_nn_tensors(nn, &tensors);
    for (uint32_t i = 0; i < tensors; i++)
        if (!of[i].looked_up && of[i].offset >= from) numbers += (uint64_t)of[i].rows * of[i].cols;
    return numbers;
}

/* A way back that goes on only once the sum of all that it has finished is under way. It never would if sums waited for
 * its end, or for anything but the loss. */
static void each_layer_is_summed_before_the_next_is_finished(void **state) {
    (void)state;
    world w;
    weir_nn *nn;
    weir_train_sums *sums;
    weir_kernels kernels = *weir_kernels_cpu();
    int64_t busy_us = 0;
    world_open(&w);
    kernels.unified = false;
    kernels.to_host = to_host_and_tell;
    told.gradients = w.gradients;
    assert_ok(weir_nn_open(w.f.shape, &kernels, &nn));
    assert_ok(weir_train_sums_open(nn, w.gradients, w.comm, &sums));
    const uint64_t *begins = weir_nn_plan_of(nn)->begins;
    const uint32_t layers = weir_nn_layers(w.f.shape);
    for (unsigned step = 0; step < STEPS; step++) {
        double loss = 0;
        told.from = UINT64_MAX;
        told.copied = 0;
        weir_train_sums_begin(sums, 1, step);
        weir_train_sums_loss(sums, step);
        for (uint32_t layer = layers + 1; layer > 0; layer--) {
            assert_true(begins[layer] > 0 && begins[layer] < told.from); /* a head, layers and encoders */
            told.from = begins[layer];
            weir_train_sums_reach(sums, begins[layer]);
            while (told.copied < numbers_to_sum(nn, begins[layer]))
                sched_yield();
        }
        told.from = 0;
        weir_train_sums_reach(sums, 0);
        assert_ok(weir_train_sums_wait(sums, &loss, &busy_us));
        assert_true(loss == step && !told.early);
        assert_int_equal(told.copied, numbers_to_sum(nn, 0));
    }
    weir_train_sums_close(sums);
    weir_nn_close(nn);
    world_close(&w);
}

static weir_err open_and_step(void *context) {
    weir_rng rng = weir_rng_stream(1, 1, 0);
    return go_through(context, 2, &rng);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world w;
    world_open(&w);
    weir_test_every_allocation(open_and_step, &w);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(a_step_comes_to_its_end), WEIR_CASE(each_layer_is_summed_before_the_next_is_finished),
           WEIR_CASE(every_allocation_may_fail))
