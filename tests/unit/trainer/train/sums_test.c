/* SPDX-License-Identifier: Apache-2.0 */
/* sums_test.c - the thread that sums beside the way back: whatever the two of them do when, a step comes to its end. */
#include <sched.h>

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

WEIR_TESTS(WEIR_CASE(a_step_comes_to_its_end), WEIR_CASE(every_allocation_may_fail))
