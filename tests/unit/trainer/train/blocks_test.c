/* SPDX-License-Identifier: Apache-2.0 */
/* blocks_test.c - the block of a target is the same edge for edge, sampled from the whole snapshot or from a part. */
#include <weir/partitioner/parts/parts.h>
#include <weir/store/sample/sampler.h>

#include "learn_fixture.h"

#define BATCH 32u
#define PARTS 8u

static const weir_sample_step steps[] = {
    {.hop = 1, .fanout = 5, .relation = LEARN_BY, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .fanout = 7, .relation = LEARN_BY, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
};

typedef struct side {
    const weir_snapshot *snapshot;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
} side;

static void side_open(side *s, const weir_snapshot *snapshot, uint64_t seed) {
    const weir_sample_opts opts = {.steps = steps, .step_count = 2, .targets_max = BATCH, .seed = seed, .window = 24};
    s->snapshot = snapshot;
    assert_ok(weir_sample_over_snapshot(snapshot, &s->source));
    assert_ok(weir_sampler_open(&opts, s->source, &s->sampler));
    assert_ok(weir_block_open(s->sampler, &s->block));
}

static void side_close(side *s) {
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->source);
}

static weir_vertex id_of(const side *s, uint32_t type, uint64_t vertex) {
    return weir_vertex_of(weir_snapshot_vertices_of(s->snapshot, type)->ids[vertex]);
}

/* Nodes by their ids, in the same order; edges by their ends, times and events. */
static uint64_t same_blocks(const side *a, const side *b) {
    const weir_block_view *x = weir_block_look(a->block), *y = weir_block_look(b->block);
    uint64_t seen = 0;
    assert_int_equal(x->nodes, y->nodes);
    for (uint32_t i = 0; i < (x->hops + 1) * x->types; i++) {
        assert_int_equal(x->ranges[i].begin, y->ranges[i].begin);
        assert_int_equal(x->ranges[i].end, y->ranges[i].end);
        for (uint32_t n = x->ranges[i].begin; n < x->ranges[i].end; n++)
            assert_true(id_of(a, i % x->types, x->vertices[n]) == id_of(b, i % x->types, y->vertices[n]));
    }
    for (uint32_t step = 0; step < x->steps; step++) {
        const weir_block_edges *e = &x->edges[step], *f = &y->edges[step];
        const weir_snapshot_edges *in_a = weir_snapshot_edges_of(a->snapshot, LEARN_BY, steps[step].direction);
        const weir_snapshot_edges *in_b = weir_snapshot_edges_of(b->snapshot, LEARN_BY, steps[step].direction);
        assert_int_equal(e->count, f->count);
        for (uint32_t i = 0; i < e->count; i++, seen++) {
            assert_true(e->parents[i] == f->parents[i] && e->children[i] == f->children[i]);
            assert_true(e->times[i] == f->times[i] && in_a->events[e->refs[i]] == in_b->events[f->refs[i]]);
        }
    }
    return seen;
}

/* The targets of a part: its own pays, each as of when it was put. */
static uint64_t compare_part(const side *whole, const side *here, const weir_part *part) {
    const weir_snapshot_vertices *own = weir_snapshot_vertices_of(here->snapshot, LEARN_PAY);
    weir_target of_part[BATCH], of_whole[BATCH];
    uint64_t edges = 0;
    assert_int_equal(weir_part_count(part), PARTS);
    for (uint64_t begin = 0; begin < own->own; begin += BATCH) {
        uint32_t count = 0;
        for (uint64_t v = begin; v < own->own && count < BATCH; v++, count++) {
            uint64_t index;
            assert_true(weir_snapshot_find(whole->snapshot, LEARN_PAY, weir_vertex_of(own->ids[v]), &index));
            of_part[count] =
                (weir_target){v, own->lives.times[own->lives.indptr[v]] + 3600 * LEARN_SECOND, 0, LEARN_PAY};
            of_whole[count] = of_part[count];
            of_whole[count].vertex = index;
        }
        assert_ok(weir_sample(whole->sampler, of_whole, count, whole->block));
        assert_ok(weir_sample(here->sampler, of_part, count, here->block));
        edges += same_blocks(whole, here);
    }
    return edges;
}

static void a_part_gives_the_same_blocks(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 1500, .people = 40, .bad = 0.3};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    side whole;
    side_open(&whole, snapshot, weir_test_seed());
    for (weir_parts_method method = 0; method < WEIR_PARTS_METHODS; method++) {
        char name[32], path[4096];
        uint64_t edges = 0;
        weir_parts_report report;
        snprintf(name, sizeof name, "parts%u", (unsigned)method);
        const weir_parts_opts opts = {.out = weir_test_path(name),
                                      .parts = PARTS,
                                      .depth = 1,
                                      .method = method,
                                      .like = weir_test_path("parts0"), /* the first method's */
                                      .seed = 1,
                                      .clock = weir_clock_system()};
        assert_ok(weir_parts_write(snapshot, &opts, &report));
        for (unsigned p = 0; p < PARTS; p++) {
            weir_part *part;
            side here;
            snprintf(path, sizeof path, "%s/part-%u", opts.out, p);
            assert_ok(weir_part_open(path, &(weir_part_opts){.verify = true}, &part));
            side_open(&here, weir_part_snapshot(part), weir_test_seed());
            edges += compare_part(&whole, &here, part);
            side_close(&here);
            weir_part_close(part);
        }
        assert_true(edges > plan.pays * 5); /* a pay's own edge, and some of its person's */
    }
    side_close(&whole);
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(a_part_gives_the_same_blocks))
