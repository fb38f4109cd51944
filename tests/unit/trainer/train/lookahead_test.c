/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookahead_test.c - makers that share what stays, as threads of a rank of their own: whoever is late, each batch does
 * what one thread would, and finds in a place what was put there.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#include "learn_fixture.h"
#include "lookahead.h"

#define BATCHES    60u
#define MAKERS_MAX 16u
#define PERSON     0u
#define SHARE      0.3

typedef struct world {
    weir_snapshot *snapshot;
    weir_nn_shape *shape;
    weir_train_lookahead *ahead;
    uint32_t makers, vertices, width, slots;
    uint32_t batches;
    weir_buf lists[BATCHES]; /* uint32_t */
    weir_buf reads[BATCHES]; /* weir_train_read */
} world;

static const weir_targets still = {.one_time = true};

typedef struct maker {
    world *w;
    uint32_t number;
    weir_thread *thread;
} maker;

static void world_open(world *w, uint32_t makers, uint32_t batches) {
    static const uint32_t fanouts[] = {4};
    const learn_plan plan = {.seed = 3, .pays = 200, .people = 60, .bad = 0.3};
    weir_sample_step steps[8];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 21, makers);
    *w = (world){.snapshot = learn_snapshot_open(&plan), .makers = makers, .batches = batches};
    const weir_schema *schema = weir_snapshot_schema(w->snapshot);
    weir_nn_opts opts = {.task = LEARN_TASK_BAD, .hidden = 4, .steps = steps};
    opts.step_count =
        weir_train_steps(schema, LEARN_TASK_BAD, &(weir_train_reach){.fanouts = fanouts, .layers = 1}, NULL, steps, 8);
    assert_ok(weir_nn_shape_open(schema, &opts, &w->shape));
    const weir_train_cache_opts kept = {
        .shape = w->shape, .owners = {w->snapshot, NULL, 0, 2}, .share = SHARE, .targets = &still};
    assert_ok(weir_train_lookahead_open(&kept, makers, &w->ahead));
    w->vertices = (uint32_t)weir_snapshot_vertices_of(w->snapshot, PERSON)->count;
    w->width = weir_nn_vertex(w->shape, PERSON)->width;
    w->slots = weir_nn_vertex(w->shape, PERSON)->category_count;
    for (uint32_t b = 0; b < batches; b++) {
        for (uint32_t v = 0; v < w->vertices; v++) {
            const uint32_t row = weir_train_lookahead_row(w->ahead, PERSON, v);
            if (weir_rng_below(&rng, 3 + v) == 0) weir_buf_append(&w->lists[b], &row, sizeof row);
        }
        assert_ok(weir_buf_err(&w->lists[b]));
    }
}

static void world_close(world *w) {
    for (uint32_t b = 0; b < BATCHES; b++) {
        weir_buf_free(&w->lists[b]);
        weir_buf_free(&w->reads[b]);
    }
    weir_train_lookahead_close(w->ahead);
    weir_nn_shape_free(w->shape);
    weir_snapshot_close(w->snapshot);
}

/* Out of the places, and into them; every number of a row is the row. */
static void move(const world *w, const weir_buf *reads) {
    weir_real numbers[64];
    uint32_t slots[64];
    assert_true(w->width <= 64 && w->slots <= 64 && w->width + w->slots > 0);
    for (unsigned in = 0; in < 2; in++) {
        for (size_t at = 0; at < reads->length; at += sizeof(weir_train_read)) {
            weir_train_read read;
            memcpy(&read, reads->bytes + at, sizeof read);
            if (!in && read.there) {
                weir_train_lookahead_get(w->ahead, read.place, PERSON, numbers, slots);
                for (uint32_t i = 0; i < w->width; i++)
                    assert_true(numbers[i] == (weir_real)read.row);
                for (uint32_t i = 0; i < w->slots; i++)
                    assert_int_equal(slots[i], read.row);
            } else if (in && !read.there && read.place != WEIR_TRAIN_NO_PLACE) {
                for (uint32_t i = 0; i < w->width; i++)
                    numbers[i] = (weir_real)read.row;
                for (uint32_t i = 0; i < w->slots; i++)
                    slots[i] = read.row;
                weir_train_lookahead_put(w->ahead, read.place, PERSON, numbers, slots);
            }
        }
    }
}

/* As a maker of batches.c, which is late at random. */
static void make(void *context) {
    const maker *m = context;
    world *w = m->w;
    const weir_buf none = {0};
    weir_rng rng = weir_rng_stream(m->number, 22, 0);
    uint32_t horizon = weir_train_lookahead_horizon(w->ahead), told = m->number;
    for (uint32_t n = m->number; n < w->batches || n == m->number; n += w->makers) {
        weir_buf rest = {0}; /* of a batch behind the end */
        weir_buf *reads = n < w->batches ? &w->reads[n] : &rest;
        for (; told <= n + horizon; told += w->makers)
            assert_ok(weir_train_lookahead_tell(w->ahead, told, told < w->batches ? &w->lists[told] : &none, reads));
        for (uint64_t i = weir_rng_below(&rng, 8); i > 0; i--)
            sched_yield();
        weir_buf_free(&rest);
        if (n >= w->batches) break;
        weir_train_lookahead_enter(w->ahead, n);
        move(w, reads);
        weir_train_lookahead_leave(w->ahead);
    }
}

static void as_one_thread(uint32_t makers, uint32_t batches) {
    static world w;
    maker of[MAKERS_MAX];
    weir_train_soonest *alone;
    world_open(&w, makers, batches);
    for (uint32_t i = 0; i < makers; i++) {
        of[i] = (maker){.w = &w, .number = i};
        assert_ok(weir_thread_start("maker", WEIR_ROLE_WORKER, make, &of[i], &of[i].thread));
    }
    for (uint32_t i = 0; i < makers; i++)
        weir_thread_join(of[i].thread);

    const weir_train_cache_opts kept = {
        .shape = w.shape, .owners = {w.snapshot, NULL, 0, 2}, .share = SHARE, .targets = &still};
    uint32_t horizon = weir_train_lookahead_horizon(w.ahead), rows = 0;
    uint64_t places = weir_train_cache_rows(&kept);
    assert_true(horizon % makers == 0 && places > 0);
    for (uint32_t type = 0; type < weir_nn_types(w.shape); type++)
        rows += (uint32_t)weir_snapshot_vertices_of(w.snapshot, type)->count;
    assert_ok(weir_train_soonest_open(rows, (uint32_t)places, horizon, &alone));
    uint64_t there = 0;
    for (uint32_t b = 0; b < batches + horizon; b++) {
        weir_buf reads = {0};
        const weir_buf *list = b < batches ? &w.lists[b] : &reads;
        assert_ok(weir_train_soonest_list(alone, (const uint32_t *)(const void *)list->bytes,
                                          list->length / sizeof(uint32_t)));
        if (b >= horizon) {
            assert_ok(weir_train_soonest_take(alone, &reads));
            assert_int_equal(reads.length, w.reads[b - horizon].length);
            for (size_t at = 0; at < reads.length; at += sizeof(weir_train_read)) {
                weir_train_read read, done;
                memcpy(&read, reads.bytes + at, sizeof read);
                memcpy(&done, w.reads[b - horizon].bytes + at, sizeof done);
                assert_true(done.row == read.row && done.place == read.place && done.there == read.there);
                there += read.there;
            }
        }
        weir_buf_free(&reads);
    }
    assert_true(batches < BATCHES || there > 0);
    weir_train_soonest_close(alone);
    world_close(&w);
}

static void makers_do_as_one_thread(void **state) {
    (void)state;
    static const uint32_t makers[] = {1, 2, 6, MAKERS_MAX};
    for (unsigned i = 0; i < sizeof makers / sizeof *makers; i++)
        as_one_thread(makers[i], BATCHES);
}

/* Fewer batches than makers, and than they look ahead. */
static void a_stream_may_end_before_the_horizon(void **state) {
    (void)state;
    as_one_thread(6, 4);
    as_one_thread(MAKERS_MAX, 1);
    as_one_thread(2, 5);
}

static weir_err open_once(void *context) {
    const world *w = context;
    weir_train_lookahead *ahead;
    const weir_train_cache_opts kept = {
        .shape = w->shape, .owners = {w->snapshot, NULL, 0, 2}, .share = SHARE, .targets = &still};
    weir_err err = weir_train_lookahead_open(&kept, 2, &ahead);
    weir_train_lookahead_close(ahead);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static world w;
    world_open(&w, 2, 1);
    weir_test_every_allocation(open_once, &w);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(makers_do_as_one_thread), WEIR_CASE(a_stream_may_end_before_the_horizon),
           WEIR_CASE(every_allocation_may_fail))
