/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer_test.c - what one sampler draws for another: the edges that the other draws itself, which is the oracle, over
 * random graphs of two types, two relations and both directions at each hop, with deleted edges.
 */
#include <string.h>

#include <weir/store/sample/sampler.h>

#include "arrays_fixture.h"
#include "weir_test.h"

#define VERTICES 60u
#define EDGES    900u
#define TIMES    400u
#define TARGETS  12u
#define WINDOW   24u
#define STEPS    9u
#define HOPS     3u

static const weir_sample_step steps[STEPS] = {
    {.hop = 1, .fanout = 4, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 2, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 1, .fanout = 3, .relation = 1, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_WEIGHTED, .weight = 0},
    {.hop = 2, .fanout = 3, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .fanout = 2, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .fanout = 5, .relation = 1, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 3,
     .fanout = 2,
     .relation = 1,
     .direction = WEIR_OUT,
     .strategy = WEIR_SAMPLE_WEIGHTED,
     .weight = WEIR_SCHEMA_NONE,
     .half_life_us = 50},
    {.hop = 3, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_FULL},
    {.hop = 3, .fanout = 3, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_RECENT},
};

/* What a source was told of hops; the pointers live as long as the block is not filled again. */
static struct {
    weir_sample_hop hops[HOPS];
    weir_block_range parents[STEPS];
    uint32_t count, steps;
} told;

static weir_err hear(weir_sample_source *source, const weir_sample_hop *hop) {
    (void)source;
    assert_true(told.count < HOPS && hop->first_step == told.steps && hop->steps->hop == told.count + 1);
    told.hops[told.count++] = *hop;
    memcpy(told.parents + told.steps, hop->parents, hop->step_count * sizeof *hop->parents);
    told.steps += hop->step_count;
    return WEIR_OK;
}

typedef struct side {
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
} side;

static void side_open(side *s, const arrays_fixture *f, uint32_t targets, uint64_t seed, bool shared) {
    const weir_sample_opts opts = {
        .steps = steps, .step_count = STEPS, .window = WINDOW, .targets_max = targets, .seed = seed, .shared = shared};
    assert_ok(weir_sample_over_arrays(&f->arrays, &s->source));
    assert_ok(weir_sampler_open(&opts, s->source, &s->sampler));
    assert_ok(weir_block_open(s->sampler, &s->block));
}

static void side_close(side *s) {
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->source);
}

/* A third of all edges is deleted at some time. */
static void delete_some(arrays_fixture *f, weir_rng *rng, int64_t *until_us[4]) {
    for (unsigned at = 0; at < 4; at++) {
        until_us[at] = calloc(f->csrs[at].edges + 1, sizeof *until_us[at]);
        assert_non_null(until_us[at]);
        for (uint64_t i = 0; i < f->csrs[at].edges; i++)
            until_us[at][i] = weir_rng_below(rng, 3) ? INT64_MAX : (int64_t)weir_rng_below(rng, TIMES);
        f->csrs[at].until_us = until_us[at];
    }
}

/* The edges of a step, drawn again some parents at a time: the same neighbours, times and places. Returns how many. */
static uint64_t answer_step(const side *asks, side *draws, uint32_t step, uint32_t at_once) {
    const weir_block_view *view = weir_block_look(asks->block);
    const weir_block_edges *wanted = &view->edges[step];
    const weir_sample_hop *hop = &told.hops[steps[step].hop - 1];
    weir_block_range parents = told.parents[step];
    assert_int_equal(parents.begin, wanted->parent_begin);
    assert_int_equal(parents.end, wanted->parent_end);
    for (uint32_t begin = parents.begin; begin < parents.end; begin += at_once) {
        weir_sample_parent asked[TARGETS];
        const uint64_t *neighbors;
        uint32_t count = parents.end - begin < at_once ? parents.end - begin : at_once;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t group = hop->groups[begin + i];
            asked[i] = (weir_sample_parent){hop->vertices[begin + i], hop->before_us[group], hop->keys[group],
                                            hop->events ? hop->events[begin + i] : 0};
        }
        assert_ok(weir_sample_answer(draws->sampler, step, asked, count, draws->block, &neighbors));
        const weir_block_edges *drawn = &weir_block_look(draws->block)->edges[step];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t first = wanted->offsets[begin + i - parents.begin], at = drawn->offsets[i];
            assert_int_equal(drawn->offsets[i + 1] - at, wanted->offsets[begin + i - parents.begin + 1] - first);
            for (; at < drawn->offsets[i + 1]; at++, first++) {
                assert_int_equal(drawn->parents[at], i);
                assert_true(neighbors[at] == view->vertices[wanted->children[first]]);
                assert_true(drawn->times[at] == wanted->times[first] && drawn->refs[at] == wanted->refs[first]);
            }
        }
    }
    return wanted->count;
}

static void drawn_for(bool shared) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 11, shared);
    uint64_t edges[STEPS] = {0};
    for (unsigned round = 0; round < 6; round++) {
        arrays_fixture f;
        int64_t *until_us[4];
        weir_target targets[TARGETS];
        side asks, draws;
        uint32_t at_once = 1 + (uint32_t)weir_rng_below(&rng, TARGETS);
        fixture_random_from(&f, &rng, VERTICES, EDGES, 1, TIMES);
        delete_some(&f, &rng, until_us);
        side_open(&asks, &f, TARGETS, weir_test_seed(), shared);
        side_open(&draws, &f, at_once, 0, false); /* its own seed says nothing */
        if (round % 2) {                          /* one with room for a step at a time answers alike */
            weir_block_close(draws.block);
            assert_ok(weir_block_open_answers(draws.sampler, &draws.block));
        }
        asks.source->hop = hear;
        told.count = told.steps = 0;
        for (uint32_t i = 0; i < TARGETS; i++) {
            const plain_edge *put_with = &f.plain[0][weir_rng_below(&rng, EDGES)];
            targets[i] =
                (weir_target){weir_rng_below(&rng, VERTICES),
                              shared ? (1 + i / 3) * (TIMES / 4) : (int64_t)weir_rng_below(&rng, TIMES + 2), 0, 0};
            if (!shared && weir_rng_below(&rng, 2))
                targets[i] = (weir_target){put_with->from, put_with->time_us, put_with->event, 0};
        }
        assert_ok(weir_sample(asks.sampler, targets, TARGETS, asks.block));
        assert_int_equal(told.steps, STEPS);
        for (uint32_t step = 0; step < STEPS; step++)
            edges[step] += answer_step(&asks, &draws, step, at_once);
        side_close(&draws);
        side_close(&asks);
        for (unsigned at = 0; at < 4; at++)
            free(until_us[at]);
        fixture_close(&f);
    }
    for (uint32_t step = 0; step < STEPS; step++)
        assert_true(edges[step] > 0);
}

static void p3_an_answer_is_what_would_have_been_drawn(void **state) {
    (void)state;
    drawn_for(false);
}

static void p3_of_shared_trees_too(void **state) {
    (void)state;
    drawn_for(true);
}

static void what_cannot_be_asked_is_said(void **state) {
    (void)state;
    arrays_fixture f;
    side s;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 12, 0);
    weir_sample_parent asked[TARGETS + 1] = {{.vertex = 0}};
    const uint64_t *neighbors;
    fixture_random_from(&f, &rng, VERTICES, EDGES, 1, TIMES);
    side_open(&s, &f, TARGETS, 1, false);
    assert_err(weir_sample_answer(s.sampler, 0, asked, TARGETS + 1, s.block, &neighbors), WEIR_EINVAL, "13 parents");
    asked[1].vertex = VERTICES;
    assert_err(weir_sample_answer(s.sampler, 0, asked, 2, s.block, &neighbors), WEIR_ECORRUPT, "there are only 60");
    assert_int_equal(weir_block_look(s.block)->nodes, 0);
    side_close(&s);

    /* Of a type that no tree has at that hop nobody can have a parent. */
    const weir_sample_step two[] = {
        {.hop = 1, .fanout = 2, .relation = 0, .direction = WEIR_OUT},
        {.hop = 2, .fanout = 2, .relation = 1, .direction = WEIR_OUT}, /* hop 1 led to b alone */
    };
    weir_sample_opts opts = {.steps = two, .step_count = 2, .targets_max = TARGETS, .edges_max = 0};
    assert_ok(weir_sample_over_arrays(&f.arrays, &s.source));
    assert_ok(weir_sampler_open(&opts, s.source, &s.sampler));
    assert_ok(weir_block_open(s.sampler, &s.block));
    assert_err(weir_sample_answer(s.sampler, 1, asked, 1, s.block, &neighbors), WEIR_EINVAL, "at most 0");
    side_close(&s);

    /* A source that asks elsewhere, and a limit that only who draws could keep. */
    assert_ok(weir_sample_over_arrays(&f.arrays, &s.source));
    s.source->hop = hear;
    opts.edges_max = 5;
    assert_err(weir_sampler_open(&opts, s.source, &s.sampler), WEIR_EINVAL, "where others draw");
    weir_sample_source_close(s.source);
    fixture_close(&f);
}

WEIR_TESTS(WEIR_CASE(p3_an_answer_is_what_would_have_been_drawn), WEIR_CASE(p3_of_shared_trees_too),
           WEIR_CASE(what_cannot_be_asked_is_said))
