/* SPDX-License-Identifier: Apache-2.0 */
/* inputs_test.c - what a row says as of a time, at the very microseconds around the moment when it came into force. */
#include <math.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/trainer/train/train.h>

#include "learn_fixture.h"

#define ROW_US  (LEARN_START_US + 100 * LEARN_SECOND)
#define EDGES   5u
#define NUMBERS 8u

typedef struct world {
    weir_snapshot *snapshot;
    weir_nn_shape *shape;
    weir_sample_source *source;
    weir_inputs *inputs;
} world;

/* who 0 has a row since ROW_US and pays at each second before it; pay 0 came with its row at ROW_US. */
static void world_open_of(world *w, const char *schema_text) {
    static const uint32_t fanouts[] = {4};
    const double hint = 3, x = 2;
    learn_world learn;
    weir_sample_step steps[8];
    learn_open(&learn, schema_text, 1);
    learn_put(&learn, LEARN_WHO, 0, ROW_US, &hint);
    learn_put(&learn, LEARN_PAY, 0, ROW_US, &x);
    for (uint64_t i = 0; i < EDGES; i++)
        learn_edge(&learn, i, 0, ROW_US - (int64_t)i * LEARN_SECOND, 1);
    const char *out = weir_test_path("snapshot");
    learn_build(&learn, out, ROW_US + LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &w->snapshot));
    const weir_schema *schema = weir_snapshot_schema(w->snapshot);
    const weir_nn_opts opts = {.task = 0, .hidden = 8, .steps = steps};
    weir_nn_opts with = opts;
    with.step_count = weir_train_steps(schema, 0, &(weir_train_reach){.fanouts = fanouts, .layers = 1}, NULL, steps, 8);
    assert_int_equal(with.step_count, 1);
    assert_ok(weir_nn_shape_open(schema, &with, &w->shape));
    assert_ok(weir_sample_over_snapshot(w->snapshot, &w->source));
    assert_ok(weir_inputs_open(w->shape, schema, w->source, &w->inputs));
}

static void world_open(world *w) {
    world_open_of(w, learn_schema_text);
}

static void world_close(world *w) {
    weir_inputs_close(w->inputs);
    weir_sample_source_close(w->source);
    weir_nn_shape_free(w->shape);
    weir_snapshot_close(w->snapshot);
}

static void row_of(world *w, uint32_t type, uint64_t n, int64_t before_us, weir_real numbers[NUMBERS]) {
    uint64_t index = 0;
    uint32_t slots[NUMBERS];
    assert_true(weir_nn_vertex(w->shape, type)->width <= NUMBERS);
    assert_true(weir_snapshot_find(w->snapshot, type, learn_vertex(type, n), &index));
    const weir_sample_vertices of = {.vertices = &index, .before_us = &before_us, .count = 1, .type = (uint16_t)type};
    assert_ok(weir_inputs_rows(w->inputs, &of, numbers, slots));
}

/* The first number and its flag: nothing was learnt, so the scale is that of mean 0 and deviation 1. */
static void shows(world *w, uint32_t type, int64_t before_us, double expected) {
    weir_real numbers[NUMBERS] = {0};
    const weir_nn_number *number = &weir_nn_vertex(w->shape, type)->numbers[0];
    row_of(w, type, 0, before_us, numbers);
    bool missing = isnan(expected);
    assert_true(numbers[number->column + 1] == (weir_real)missing);
    if (!missing) assert_true(fabs((double)numbers[number->column] - expected) < 1e-6);
    if (missing) assert_true(numbers[number->column] == 0);
}

static void i1_a_row_counts_from_its_own_time_on(void **state) {
    (void)state;
    world w;
    world_open(&w);
    shows(&w, LEARN_WHO, ROW_US - 1, NAN);
    shows(&w, LEARN_WHO, ROW_US, NAN); /* a neighbour's row of the very moment may be the outcome's own */
    shows(&w, LEARN_WHO, ROW_US + 1, 3);
    shows(&w, LEARN_PAY, ROW_US - 1, NAN);
    shows(&w, LEARN_PAY, ROW_US, 2); /* a target comes with its row */
    shows(&w, LEARN_PAY, ROW_US + 1, 2);
    world_close(&w);
}

/* As the living graph has it: until it is forgotten, and a target an instant less, for it is read
 * behind its own moment. */
static void a_row_counts_until_its_vertex_expires(void **state) {
    (void)state;
    static const char types[] = "  pay: {features", expiring[] = "  pay: {expire: 10s, features";
    const char *begin = strstr(learn_schema_text, types), *who = strstr(learn_schema_text, "  who: {");
    const int64_t until_us = ROW_US + 10 * LEARN_SECOND;
    char text[2 * sizeof learn_schema_text];
    world w;
    assert_true(begin && who);
    snprintf(text, sizeof text, "%.*s%s%.*s  who: {expire: 10s, %s", (int)(begin - learn_schema_text),
             learn_schema_text, expiring, (int)(who - begin - (ptrdiff_t)strlen(types)), begin + strlen(types),
             who + strlen("  who: {"));
    world_open_of(&w, text);
    shows(&w, LEARN_WHO, ROW_US, NAN);
    shows(&w, LEARN_WHO, ROW_US + 1, 3);
    shows(&w, LEARN_WHO, until_us - 1, 3);
    shows(&w, LEARN_WHO, until_us, NAN);
    shows(&w, LEARN_PAY, ROW_US, 2);
    shows(&w, LEARN_PAY, until_us - 2, 2);
    shows(&w, LEARN_PAY, until_us - 1, NAN);
    world_close(&w);
}

static void i1_an_aggregate_counts_what_is_older(void **state) {
    (void)state;
    world w;
    world_open(&w);
    const weir_nn_number *number = &weir_nn_vertex(w.shape, LEARN_WHO)->numbers[1];
    for (uint64_t i = 0; i <= EDGES; i++) {
        weir_real numbers[NUMBERS] = {0};
        row_of(&w, LEARN_WHO, 0, ROW_US - (int64_t)i * LEARN_SECOND, numbers);
        double older = (double)(EDGES - 1) - (double)i; /* pay i stands at this very time, and is not older */
        assert_true(fabs((double)numbers[number->column] - log1p(older > 0 ? older : 0)) < 1e-6);
    }
    world_close(&w);
}

#define TIMES 600u /* more than are read at once */

/* A model of before the schema got more aggregates: behind its own it reads nothing, and each row's are the row's. */
static void a_schema_with_more_aggregates_changes_no_row(void **state) {
    (void)state;
    static const char first[] = "  pays_1d:";
    static const char more[] =
        "  s%u: {vertex: who, relation: by, function: sum, of: w, window: %ud, normalise: none}\n";
    const char *begin = strstr(learn_schema_text, first);
    char text[2 * sizeof learn_schema_text + 512];
    weir_schema *old;
    world w;
    assert_non_null(begin);
    const char *end = strchr(begin, '\n') + 1;
    size_t length = (size_t)snprintf(text, sizeof text, "%.*s", (int)(end - learn_schema_text), learn_schema_text);
    for (unsigned i = 1; i <= 4; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, more, i, i);
    snprintf(text + length, sizeof text - length, "%s", end);
    world_open_of(&w, text);
    weir_inputs_close(w.inputs);
    weir_nn_shape_free(w.shape);
    assert_ok(weir_schema_parse("old", learn_schema_text, strlen(learn_schema_text), &old));
    static const uint32_t fanouts[] = {4};
    weir_sample_step steps[8];
    weir_nn_opts opts = {.task = 0, .hidden = 8, .steps = steps};
    opts.step_count = weir_train_steps(old, 0, &(weir_train_reach){.fanouts = fanouts, .layers = 1}, NULL, steps, 8);
    assert_ok(weir_nn_shape_open(old, &opts, &w.shape));
    assert_ok(weir_nn_shape_fits(w.shape, weir_snapshot_schema(w.snapshot)));
    assert_ok(weir_inputs_open(w.shape, weir_snapshot_schema(w.snapshot), w.source, &w.inputs));
    const weir_nn_inputs *inputs = weir_nn_vertex(w.shape, LEARN_WHO);
    assert_int_equal(inputs->aggregate_count, 1);
    static uint64_t vertices[TIMES];
    static int64_t before_us[TIMES];
    static weir_real numbers[TIMES * NUMBERS];
    uint64_t index;
    uint32_t slots[1];
    assert_true(weir_snapshot_find(w.snapshot, LEARN_WHO, learn_vertex(LEARN_WHO, 0), &index));
    for (uint32_t i = 0; i < TIMES; i++) {
        vertices[i] = index;
        before_us[i] = ROW_US - (int64_t)(i % (EDGES + 1)) * LEARN_SECOND;
    }
    const weir_sample_vertices of = {.vertices = vertices, .before_us = before_us, .count = TIMES, .type = LEARN_WHO};
    assert_ok(weir_inputs_rows(w.inputs, &of, numbers, slots));
    for (uint32_t i = 0; i < TIMES; i++) {
        double older = (double)(EDGES - 1) - (double)(i % (EDGES + 1));
        double found = (double)numbers[(size_t)i * inputs->width + inputs->numbers[1].column];
        assert_true(fabs(found - log1p(older > 0 ? older : 0)) < 1e-6);
    }
    weir_schema_free(old);
    world_close(&w);
}

static weir_err open_and_close(void *context) {
    const world *w = context;
    weir_inputs *inputs;
    weir_err err = weir_inputs_open(w->shape, weir_snapshot_schema(w->snapshot), w->source, &inputs);
    weir_inputs_close(inputs);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world w;
    world_open(&w);
    weir_test_every_allocation(open_and_close, &w);
    world_close(&w);
}

/* A neighbour of the last hop is looked up here for the first time: it was read wherever the file said. */
static void rows_of_what_is_not_there_are_refused(void **state) {
    (void)state;
    static const uint64_t wild[] = {1, 1000000000, UINT64_MAX};
    const int64_t before_us = ROW_US;
    weir_real numbers[NUMBERS];
    uint32_t slots[NUMBERS];
    world w;
    world_open(&w);
    for (uint32_t i = 0; i < 2 * sizeof wild / sizeof wild[0]; i++) { /* with aggregates, and of a type without */
        const uint64_t vertex = i % 2 ? wild[i / 2] | 64 : wild[i / 2];
        const weir_sample_vertices of = {
            .vertices = &vertex, .before_us = &before_us, .count = 1, .type = i % 2 ? LEARN_PAY : LEARN_WHO};
        assert_err(weir_inputs_rows(w.inputs, &of, numbers, slots), WEIR_ECORRUPT, "a neighbour is vertex");
    }
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(rows_of_what_is_not_there_are_refused), WEIR_CASE(i1_a_row_counts_from_its_own_time_on),
           WEIR_CASE(a_row_counts_until_its_vertex_expires), WEIR_CASE(i1_an_aggregate_counts_what_is_older),
           WEIR_CASE(a_schema_with_more_aggregates_changes_no_row), WEIR_CASE(every_allocation_may_fail))
