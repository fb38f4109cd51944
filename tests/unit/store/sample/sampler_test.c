/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_test.c - the sampler's promises over arrays: what a block holds is looked up in a plain list of edges. */
#include "weir_test.h"

#include <weir/store/base/alloc.h>
#include <weir/store/sample/sampler.h>

#include "arrays_fixture.h"

#define TIMES_US 1000u

static const weir_sample_step both_relations[] = {
    {.hop = 1, .fanout = 5, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 4, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 3, .relation = 1, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 2, .fanout = 4, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2,
     .fanout = 3,
     .relation = 1,
     .direction = WEIR_OUT,
     .strategy = WEIR_SAMPLE_WEIGHTED,
     .weight = WEIR_SCHEMA_NONE,
     .half_life_us = 100},
    {.hop = 3, .fanout = 2, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_WEIGHTED, .weight = 0},
    {.hop = 3, .fanout = 2, .relation = 1, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_FULL},
};

typedef struct bench {
    arrays_fixture fixture;
    weir_rng rng;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_sample_opts opts;
} bench;

static void bench_open(bench *b, uint64_t seed) {
    b->rng = weir_rng_stream(seed, 0, 0);
    fixture_random(&b->fixture, &b->rng, 60, 900, TIMES_US);
    assert_ok(weir_sample_over_arrays(&b->fixture.arrays, &b->source));
    if (!b->opts.steps) {
        b->opts.steps = both_relations;
        b->opts.step_count = sizeof both_relations / sizeof both_relations[0];
    }
    if (!b->opts.window) b->opts.window = 20;
    if (!b->opts.targets_max) b->opts.targets_max = 40;
    assert_ok(weir_sampler_open(&b->opts, b->source, &b->sampler));
    assert_ok(weir_block_open(b->sampler, &b->block));
}

static void bench_close(bench *b) {
    weir_block_close(b->block);
    weir_sampler_close(b->sampler);
    weir_sample_source_close(b->source);
    fixture_close(&b->fixture);
}

static weir_target some_target(bench *b) {
    return (weir_target){.vertex = weir_rng_below(&b->rng, b->fixture.vertices[0]),
                         .before_us = 1 + (int64_t)weir_rng_below(&b->rng, TIMES_US + 1)};
}

/* --- P2 --------------------------------------------------------------------------------------------------------------
 * */

static void edge_is_real(const arrays_fixture *f, const weir_sample_step *step, uint64_t parent, uint64_t child,
                         int64_t time_us, uint64_t ref) {
    uint64_t event = f->events[step->relation * 2u + step->direction][ref];
    size_t found = 0;
    for (size_t i = 0; i < f->plain_count[step->relation]; i++) {
        const plain_edge *e = &f->plain[step->relation][i];
        found += plain_end(e, step->direction) == parent && plain_other(e, step->direction) == child &&
                 e->time_us == time_us && e->event == event;
    }
    assert_int_equal(found, 1);
}

/* How many edges a parent has in its window. */
static uint32_t window_count(const arrays_fixture *f, const weir_sample_step *step, uint64_t parent, int64_t before_us,
                             uint32_t window) {
    uint32_t count = 0;
    for (size_t i = 0; i < f->plain_count[step->relation]; i++) {
        const plain_edge *e = &f->plain[step->relation][i];
        bool weightless = step->strategy == WEIR_SAMPLE_WEIGHTED && step->weight == 0;
        count += plain_end(e, step->direction) == parent && e->time_us < before_us && !weightless;
    }
    uint32_t most = step->strategy == WEIR_SAMPLE_FULL ? window : step->fanout;
    return count < most ? count : most;
}

static void check_parent(const bench *b, const weir_block_view *v, uint32_t s, uint32_t parent) {
    const weir_block_edges *edges = &v->edges[s];
    const weir_sample_step *step = &b->opts.steps[s];
    int64_t before_us = v->before_us[v->groups[parent]];
    uint32_t begin = edges->offsets[parent - edges->parent_begin];
    uint32_t end = edges->offsets[parent - edges->parent_begin + 1];
    bool weightless = step->strategy == WEIR_SAMPLE_WEIGHTED && step->weight == 0;
    uint32_t wanted = window_count(&b->fixture, step, v->vertices[parent], before_us, b->opts.window);
    if (!weightless) assert_int_equal(end - begin, wanted);
    for (uint32_t e = begin; e < end; e++) {
        assert_int_equal(edges->parents[e], parent);
        assert_true(edges->times[e] < before_us);
        assert_int_equal(v->groups[edges->children[e]], v->groups[parent]);
        assert_true(e == begin || edges->refs[e] > edges->refs[e - 1]); /* newest first, each once */
        edge_is_real(&b->fixture, step, v->vertices[parent], v->vertices[edges->children[e]], edges->times[e],
                     edges->refs[e]);
    }
}

static void check_block(const bench *b, const weir_block_view *v) {
    for (uint32_t s = 0; s < v->steps; s++) {
        const weir_block_edges *edges = &v->edges[s];
        assert_int_equal(edges->offsets[0], 0);
        assert_int_equal(edges->offsets[edges->parent_end - edges->parent_begin], edges->count);
        for (uint32_t p = edges->parent_begin; p < edges->parent_end; p++)
            check_parent(b, v, s, p);
        for (uint32_t e = 0; e < edges->count; e++) {
            uint32_t hop = b->opts.steps[s].hop;
            assert_in_range(edges->parents[e], hop > 1 ? v->hop_end[hop - 2] : 0, v->hop_end[hop - 1] - 1);
            assert_in_range(edges->children[e], v->hop_end[hop - 1], v->hop_end[hop] - 1);
        }
    }
    assert_int_equal(v->hop_end[v->hops], v->nodes);
}

/* Nodes of one hop and type differ in target or vertex. */
static void check_nodes(const weir_block_view *v) {
    uint32_t at = 0;
    for (uint32_t hop = 0; hop <= v->hops; hop++) {
        for (uint32_t type = 0; type < v->types; type++) {
            weir_block_range range = v->ranges[hop * v->types + type];
            if (range.begin == range.end) continue;
            assert_int_equal(range.begin, at);
            at = range.end;
            for (uint32_t i = range.begin; hop > 0 && i < range.end; i++) {
                for (uint32_t j = range.begin; j < i; j++)
                    assert_false(v->vertices[i] == v->vertices[j] && v->groups[i] == v->groups[j]);
            }
        }
        assert_int_equal(v->hop_end[hop], at);
    }
}

static void p2_targets_first_and_every_edge_real_older_and_once(void **state) {
    (void)state;
    bench b = {.opts = {.seed = 5}};
    bench_open(&b, weir_test_seed());
    for (unsigned round = 0; round < 30; round++) {
        weir_target targets[40];
        uint32_t count = 1 + (uint32_t)weir_rng_below(&b.rng, 40);
        for (uint32_t i = 0; i < count; i++)
            targets[i] = some_target(&b);
        assert_ok(weir_sample(b.sampler, targets, count, b.block));
        const weir_block_view *v = weir_block_look(b.block);
        assert_int_equal(v->targets, count);
        for (uint32_t i = 0; i < count; i++)
            assert_true(v->vertices[i] == targets[i].vertex && v->before_us[v->groups[i]] == targets[i].before_us);
        check_block(&b, v);
        check_nodes(v);
    }
    bench_close(&b);
}

static void targets_of_both_types(void **state) {
    (void)state;
    bench b = {.opts = {.seed = 5}};
    bench_open(&b, weir_test_seed());
    weir_target targets[4] = {{.vertex = 1, .before_us = 900},
                              {.vertex = 2, .before_us = 800},
                              {.vertex = 1, .before_us = 900, .type = 1},
                              {.vertex = 1, .before_us = 900, .type = 1}};
    assert_ok(weir_sample(b.sampler, targets, 4, b.block));
    check_block(&b, weir_block_look(b.block));
    targets[1].type = 1;
    targets[2].type = 0;
    assert_err(weir_sample(b.sampler, targets, 4, b.block), WEIR_EINVAL, "give targets by type");
    assert_int_equal(weir_block_look(b.block)->nodes, 0);
    bench_close(&b);
}

/* --- P3 --------------------------------------------------------------------------------------------------------------
 * */

typedef struct path {
    uint64_t root, ref, child;
    uint32_t step;
} path;

static int path_order(const void *a, const void *b) {
    return memcmp(a, b, sizeof(path));
}

/* All edges of a target's tree as (step, ref, child's vertex), sorted: a tree without its numbering. */
static size_t tree_of(const weir_block_view *v, uint32_t target, path *paths) {
    size_t count = 0;
    for (uint32_t s = 0; s < v->steps; s++) {
        for (uint32_t e = 0; e < v->edges[s].count; e++) {
            if (v->groups[v->edges[s].parents[e]] != target) continue;
            path p;
            memset(&p, 0, sizeof p);
            p.root = v->vertices[v->edges[s].parents[e]];
            p.ref = v->edges[s].refs[e];
            p.child = v->vertices[v->edges[s].children[e]];
            p.step = s;
            paths[count++] = p;
        }
    }
    qsort(paths, count, sizeof *paths, path_order);
    return count;
}

static void p3_a_tree_depends_on_no_batch(void **state) {
    (void)state;
    static path alone[4096], together[4096];
    bench b = {.opts = {.seed = 77}};
    bench_open(&b, weir_test_seed());
    weir_target targets[40];
    for (uint32_t i = 0; i < 40; i++)
        targets[i] = some_target(&b);
    targets[7] = targets[30]; /* the same twice: the same tree twice */
    for (uint32_t i = 0; i < 40; i++) {
        assert_ok(weir_sample(b.sampler, &targets[i], 1, b.block));
        size_t count = tree_of(weir_block_look(b.block), 0, alone);
        assert_ok(weir_sample(b.sampler, targets, 40, b.block));
        assert_int_equal(tree_of(weir_block_look(b.block), i, together), count);
        assert_memory_equal(alone, together, count * sizeof(path));
    }
    bench_close(&b);
}

static void p3_another_seed_another_tree(void **state) {
    (void)state;
    static path one[4096], other[4096];
    bench b = {.opts = {.seed = 1}}, c = {.opts = {.seed = 2}};
    bench_open(&b, 12345);
    bench_open(&c, 12345);
    weir_target target = {.vertex = 0, .before_us = TIMES_US};
    assert_ok(weir_sample(b.sampler, &target, 1, b.block));
    assert_ok(weir_sample(c.sampler, &target, 1, c.block));
    size_t count = tree_of(weir_block_look(b.block), 0, one);
    size_t other_count = tree_of(weir_block_look(c.block), 0, other);
    assert_true(count > 5);
    assert_false(count == other_count && memcmp(one, other, count * sizeof(path)) == 0);
    bench_close(&b);
    bench_close(&c);
}

/* --- P4 and limits ------------------------------------------------------------------------------------------------ */

static void p4_a_block_is_one_allocation_and_sampling_none(void **state) {
    (void)state;
    bench b = {.opts = {.seed = 3}};
    weir_alloc_stats before, after;
    bench_open(&b, 9);
    weir_block *block;
    weir_alloc_stats_get(&before);
    assert_ok(weir_block_open(b.sampler, &block));
    weir_alloc_stats_get(&after);
    assert_int_equal(after.allocations - before.allocations, 1);
    weir_target targets[40];
    for (uint32_t i = 0; i < 40; i++)
        targets[i] = (weir_target){.vertex = 0, .before_us = TIMES_US + 1}; /* the hub, at its fullest */
    assert_ok(weir_sample(b.sampler, targets, 40, block));
    weir_block_inputs(b.sampler, block, true);
    weir_alloc_stats_get(&before);
    assert_int_equal(after.allocations, before.allocations);
    weir_block_close(block);
    bench_close(&b);
}

static weir_err open_all(void *context) {
    const arrays_fixture *f = context;
    weir_sample_opts opts = {.steps = both_relations, .step_count = 3, .targets_max = 4};
    weir_sample_source *source = NULL;
    weir_sampler *sampler = NULL;
    weir_block *block = NULL;
    weir_err err = weir_sample_over_arrays(&f->arrays, &source);
    if (!err) err = weir_sampler_open(&opts, source, &sampler);
    if (!err) err = weir_block_open(sampler, &block);
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_sample_source_close(source);
    return err;
}

static void open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    arrays_fixture f;
    fixture_star(&f, 5, NULL);
    weir_test_every_allocation(open_all, &f);
    fixture_close(&f);
}

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    arrays_fixture f;
    weir_sample_source *source;
    weir_sampler *sampler;
    fixture_star(&f, 5, NULL);
    assert_ok(weir_sample_over_arrays(&f.arrays, &source));
    const weir_sample_step good = {.hop = 1, .fanout = 3, .strategy = WEIR_SAMPLE_UNIFORM};
    static const struct {
        const char *says;
        weir_sample_step steps[2];
        weir_sample_opts opts;
    } rows[] = {
        {"0 steps", {{0}}, {.step_count = 0, .targets_max = 1}},
        {"0 targets", {{0}}, {.step_count = 1}},
        {"65537 targets", {{0}}, {.step_count = 1, .targets_max = 65537}},
        {"a window of 65537", {{0}}, {.step_count = 1, .targets_max = 1, .window = 65537}},
        {"hop 2", {{.hop = 2}}, {.step_count = 1, .targets_max = 1}},
        {"hop 3", {{.hop = 1, .fanout = 1}, {.hop = 3}}, {.step_count = 2, .targets_max = 1}},
        {"no relation 2", {{.hop = 1, .relation = 2}}, {.step_count = 1, .targets_max = 1}},
        {"takes 0 edges", {{.hop = 1}}, {.step_count = 1, .targets_max = 1}},
        {"takes 1025 edges", {{.hop = 1, .fanout = 1025}}, {.step_count = 1, .targets_max = 1}},
        {"join them", {{.hop = 1, .fanout = 1}, {.hop = 1, .fanout = 2}}, {.step_count = 2, .targets_max = 1}},
        {"no half life",
         {{.hop = 1, .fanout = 1, .strategy = WEIR_SAMPLE_WEIGHTED, .weight = WEIR_SCHEMA_NONE}},
         {.step_count = 1, .targets_max = 1}},
        {"share their trees",
         {{.hop = 1, .fanout = 1}},
         {.step_count = 1, .targets_max = 1, .edges_max = 5, .shared = true}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_sample_opts opts = rows[i].opts;
        opts.steps = rows[i].steps;
        assert_err(weir_sampler_open(&opts, source, &sampler), WEIR_EINVAL, rows[i].says);
    }
    weir_sample_step large[3] = {good, good, good};
    large[0].fanout = large[1].fanout = large[2].fanout = 1024;
    large[0].relation = large[1].relation = large[2].relation = 1;
    large[1].hop = 2;
    large[2].hop = 3;
    weir_sample_opts opts = {.steps = large, .step_count = 3, .targets_max = 65536};
    assert_err(weir_sampler_open(&opts, source, &sampler), WEIR_ELIMIT, "lower them");
    weir_sample_source_close(source);
    fixture_close(&f);
}

static void refuses_targets_that_make_no_sense(void **state) {
    (void)state;
    bench b = {.opts = {.targets_max = 2, .shared = true}};
    bench_open(&b, 4);
    weir_target targets[3] = {{.vertex = 0, .before_us = 10}, {.vertex = 1, .before_us = 11}};
    assert_err(weir_sample(b.sampler, targets, 0, b.block), WEIR_EINVAL, "0 targets");
    assert_err(weir_sample(b.sampler, targets, 3, b.block), WEIR_EINVAL, "3 targets");
    assert_ok(weir_sample(b.sampler, targets, 2, b.block));
    targets[1].before_us = 9;
    assert_err(weir_sample(b.sampler, targets, 2, b.block), WEIR_EINVAL, "target 1 is of an earlier time");
    targets[1] = (weir_target){.vertex = 60, .before_us = 10};
    assert_err(weir_sample(b.sampler, targets, 2, b.block), WEIR_EINVAL, "no vertex 60");
    targets[1].type = 9;
    assert_err(weir_sample(b.sampler, targets, 2, b.block), WEIR_EINVAL, "no vertex type 9");
    bench_close(&b);
}

/* What a damaged file says is an error, never a read beyond it. */
static void damaged_arrays_are_an_error(void **state) {
    (void)state;
    bench b = {.opts = {.seed = 1}};
    bench_open(&b, 4);
    weir_target target = {.vertex = 0, .before_us = TIMES_US + 1};
    int64_t *indptr = b.fixture.indptr[0], *neighbors = b.fixture.neighbors[0], *times = b.fixture.times[0];
    int64_t kept = indptr[1];
    indptr[1] = 901;
    assert_err(weir_sample(b.sampler, &target, 1, b.block), WEIR_ECORRUPT, "has edges");
    indptr[1] = -1;
    assert_err(weir_sample(b.sampler, &target, 1, b.block), WEIR_ECORRUPT, "has edges");
    indptr[1] = kept;
    for (int64_t i = 0; i < kept; i++)
        neighbors[i] = 1 << 20;
    assert_err(weir_sample(b.sampler, &target, 1, b.block), WEIR_ECORRUPT, "a neighbour is vertex");
    for (int64_t i = 0; i < kept; i++) {
        neighbors[i] = 0;
        if (i > 0) times[i] = TIMES_US + 5;
    }
    assert_err(weir_sample(b.sampler, &target, 1, b.block), WEIR_ECORRUPT, "not newest first");
    bench_close(&b);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static void a_targets_limit_cuts_its_tree_alone(void **state) {
    (void)state;
    static path alone[4096], together[4096];
    bench b = {.opts = {.seed = 8, .edges_max = 17}};
    bench_open(&b, 4);
    weir_target targets[3] = {{.vertex = 0, .before_us = TIMES_US + 1},
                              {.vertex = 20, .before_us = 2},
                              {.vertex = 1, .before_us = TIMES_US + 1}};
    assert_ok(weir_sample(b.sampler, targets + 2, 1, b.block));
    size_t count = tree_of(weir_block_look(b.block), 0, alone);
    assert_ok(weir_sample(b.sampler, targets, 3, b.block));
    const weir_block_view *v = weir_block_look(b.block);
    assert_int_equal(tree_of(v, 0, together), 17);
    assert_true(v->cut[0]);
    assert_false(v->cut[1]);
    assert_int_equal(tree_of(v, 2, together), count);
    assert_memory_equal(alone, together, count * sizeof(path));
    bench_close(&b);
}

/* A vertex that two targets reach at one hop is one node, and has the edges it would have for either. */
static void shared_targets_share_nodes(void **state) {
    (void)state;
    static path alone[4096];
    bench b = {.opts = {.seed = 8, .shared = true}};
    bench_open(&b, 4);
    weir_target targets[40];
    for (uint32_t i = 0; i < 40; i++)
        targets[i] = (weir_target){.vertex = i, .before_us = 700};
    assert_ok(weir_sample(b.sampler, &targets[3], 1, b.block));
    size_t count = tree_of(weir_block_look(b.block), 0, alone);
    assert_ok(weir_sample(b.sampler, targets, 40, b.block));
    const weir_block_view *v = weir_block_look(b.block);
    check_block(&b, v);
    check_nodes(v);
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        for (uint32_t e = 0; e < v->edges[alone[i].step].count; e++) {
            const weir_block_edges *edges = &v->edges[alone[i].step];
            found += edges->refs[e] == alone[i].ref && v->vertices[edges->parents[e]] == alone[i].root;
        }
        assert_int_equal(found, 1);
    }
    bench_close(&b);
}

/* As of when it is seen, and, if rows are their own, whether as a target, which has its own event's word of a pair. */
static bool same_moment(const weir_block_view *v, bool own_rows, uint32_t x, uint32_t y) {
    const uint64_t none = WEIR_SAMPLE_NO_TARGET;
    if (v->before_us[v->groups[x]] != v->before_us[v->groups[y]]) return false;
    return !own_rows || (x < v->targets ? v->events[x] : none) == (y < v->targets ? v->events[y] : none);
}

static uint32_t inputs_are_distinct(bool own_rows) {
    bench b = {.opts = {.seed = 8, .own_rows = own_rows}};
    uint32_t inputs;
    bench_open(&b, 4);
    weir_target targets[40];
    for (uint32_t i = 0; i < 40; i++)
        targets[i] = some_target(&b);
    assert_ok(weir_sample(b.sampler, targets, 40, b.block));
    const weir_block_view *v = weir_block_look(b.block);
    for (int per_time = 0; per_time < 2; per_time++) {
        weir_block_inputs(b.sampler, b.block, per_time);
        for (uint32_t type = 0; type < v->types; type++) {
            for (uint32_t hop = 0; hop <= v->hops; hop++) {
                weir_block_range nodes = v->ranges[hop * v->types + type];
                for (uint32_t n = nodes.begin; n < nodes.end; n++) {
                    uint32_t row = v->input_of[n], of = v->input_nodes[row];
                    assert_in_range(row, v->input_ranges[type].begin, v->input_ranges[type].end - 1);
                    assert_true(v->vertices[of] == v->vertices[n]);
                    assert_true(!per_time || same_moment(v, own_rows, of, n));
                }
            }
            for (uint32_t r = v->input_ranges[type].begin; r < v->input_ranges[type].end; r++) {
                assert_int_equal(v->input_of[v->input_nodes[r]], r);
                for (uint32_t q = v->input_ranges[type].begin; q < r; q++) {
                    uint32_t x = v->input_nodes[r], y = v->input_nodes[q];
                    assert_false(v->vertices[x] == v->vertices[y] && (!per_time || same_moment(v, own_rows, x, y)));
                }
            }
        }
    }
    inputs = v->inputs;
    bench_close(&b);
    return inputs;
}

static void inputs_are_the_distinct_vertices(void **state) {
    (void)state;
    assert_true(inputs_are_distinct(true) >= inputs_are_distinct(false));
}

/* The most or the fewest edges that a vertex of type 0 has along relation 0. */
static uint64_t of_degree(const bench *b, bool most) {
    const weir_sample_csr *csr = &b->fixture.csrs[WEIR_OUT];
    uint64_t found = 0;
    for (uint64_t v = 1; v < csr->vertices; v++) {
        const int64_t degree = csr->indptr[v + 1] - csr->indptr[v];
        const int64_t best = csr->indptr[found + 1] - csr->indptr[found];
        if (most ? degree > best : degree < best) found = v;
    }
    return found;
}

/* A table that finds nodes is emptied by counting, once a target and hop, and the count begins anew after 2^20: what
 * large tables have left in its first round, and small ones have not overwritten, must not be met in its second. */
static void a_table_emptied_a_million_times_is_empty(void **state) {
    (void)state;
    static const weir_sample_step step = {.hop = 1, .fanout = 60, .strategy = WEIR_SAMPLE_UNIFORM};
    bench b = {.opts = {.seed = 9, .steps = &step, .step_count = 1, .window = 60}};
    bench_open(&b, 5);
    const uint64_t hub = of_degree(&b, true), leaf = of_degree(&b, false);
    const weir_block_view *v = weir_block_look(b.block);
    const weir_target large = {.vertex = hub, .before_us = INT64_MAX}, small = {.vertex = leaf, .before_us = INT64_MAX};
    assert_ok(weir_sample(b.sampler, &large, 1, b.block));
    const uint32_t nodes = v->nodes, edges = v->edges[0].count;
    assert_true(nodes > 16); /* a table of more than the least number of places */
    for (uint32_t count = 1; count < (1u << 20) - 1; count++)
        assert_ok(weir_sample(b.sampler, &small, 1, b.block));
    assert_true(v->nodes < 9);
    assert_ok(weir_sample(b.sampler, &large, 1, b.block));
    assert_int_equal(v->nodes, nodes);
    assert_int_equal(v->edges[0].count, edges);
    bench_close(&b);
}

/* A payment that is a vertex is put with its edges at its own time. */
static void its_own_event_counts_at_the_first_hop(void **state) {
    (void)state;
    arrays_fixture f = {.vertices = {2, 6}};
    static const plain_edge edges[] = {{0, 0, 50, 9, 1}, {0, 1, 50, 7, 1}, {0, 2, 50, 9, 1},
                                       {0, 3, 40, 3, 1}, {0, 4, 60, 9, 1}, {0, 5, 50, 8, 1}};
    weir_sample_step step = {.hop = 1, .fanout = 10};
    weir_sample_opts opts = {.steps = &step, .step_count = 1, .targets_max = 3};
    weir_sample_source *source;
    f.plain[0] = fixture_array(6, sizeof(plain_edge));
    f.plain[1] = fixture_array(0, sizeof(plain_edge));
    memcpy(f.plain[0], edges, sizeof edges);
    f.plain_count[0] = 6;
    fixture_close_lists(&f);
    assert_ok(weir_sample_over_arrays(&f.arrays, &source));
    static const weir_strategy strategies[] = {WEIR_SAMPLE_RECENT, WEIR_SAMPLE_UNIFORM, WEIR_SAMPLE_WEIGHTED,
                                               WEIR_SAMPLE_FULL};
    for (size_t i = 0; i < 4; i++) {
        weir_sampler *sampler;
        weir_block *block;
        step.strategy = strategies[i];
        assert_ok(weir_sampler_open(&opts, source, &sampler));
        assert_ok(weir_block_open(sampler, &block));
        weir_target targets[3] = {{.vertex = 0, .before_us = 50, .event = 9},
                                  {.vertex = 0, .before_us = 50},
                                  {.vertex = 0, .before_us = 50, .event = 1234}};
        assert_ok(weir_sample(sampler, targets, 3, block));
        const weir_block_edges *e = &weir_block_look(block)->edges[0];
        const uint64_t *vertices = weir_block_look(block)->vertices;
        assert_int_equal(e->offsets[1], 3);
        assert_int_equal(vertices[e->children[0]], 0);
        assert_int_equal(vertices[e->children[1]], 2);
        assert_int_equal(vertices[e->children[2]], 3);
        assert_int_equal(e->offsets[2], 4);
        assert_int_equal(e->offsets[3], 5);
        assert_int_equal(vertices[e->children[4]], 3);
        weir_block_close(block);
        weir_sampler_close(sampler);
    }
    weir_sample_source_close(source);
    fixture_close(&f);
}

static void expired_edges_are_not_seen(void **state) {
    (void)state;
    arrays_fixture f;
    weir_sample_step step = {.hop = 1, .strategy = WEIR_SAMPLE_FULL};
    weir_sample_opts opts = {.steps = &step, .step_count = 1, .targets_max = 1, .window = 100};
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    fixture_star(&f, 50, NULL);
    f.csrs[0].expire_us = 10;
    assert_ok(weir_sample_over_arrays(&f.arrays, &source));
    assert_ok(weir_sampler_open(&opts, source, &sampler));
    assert_ok(weir_block_open(sampler, &block));
    for (int64_t t = 1; t < 70; t++) {
        weir_target target = {.vertex = 0, .before_us = t};
        assert_ok(weir_sample(sampler, &target, 1, block));
        uint32_t wanted = 0;
        for (int64_t at = 1; at <= 50; at++)
            wanted += at < t && at > t - 10;
        assert_int_equal(weir_block_look(block)->edges[0].count, wanted);
    }
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_sample_source_close(source);
    fixture_close(&f);
}

/* Every third is deleted, at some time behind its own; and who asks for all sees what is not deleted at the end. */
static void deleted_edges_are_not_seen(void **state) {
    (void)state;
    arrays_fixture f;
    int64_t until_us[50];
    weir_sample_step step = {.hop = 1, .strategy = WEIR_SAMPLE_FULL};
    weir_sample_opts opts = {.steps = &step, .step_count = 1, .targets_max = 1, .window = 100};
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    fixture_star(&f, 50, NULL);
    for (int64_t i = 0; i < 50; i++)
        until_us[i] = i % 3 ? INT64_MAX : f.times[0][i] + 1 + i;
    f.csrs[0].until_us = until_us;
    assert_ok(weir_sample_over_arrays(&f.arrays, &source));
    assert_ok(weir_sampler_open(&opts, source, &sampler));
    assert_ok(weir_block_open(sampler, &block));
    for (int64_t round = 1; round < 120; round++) {
        weir_target target = {.vertex = 0, .before_us = round < 118 ? round : INT64_MAX - (119 - round)};
        assert_ok(weir_sample(sampler, &target, 1, block));
        uint32_t wanted = 0;
        for (int64_t i = 0; i < 50; i++)
            wanted += f.times[0][i] < target.before_us && (i % 3 || target.before_us < until_us[i]);
        assert_int_equal(weir_block_look(block)->edges[0].count, wanted);
    }
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_sample_source_close(source);
    fixture_close(&f);
}

/* --- arrays without times ---------------------------------------------------------------------------------------- */

/* One over arrays whose edges have all one time, one over the same arrays without it. */
typedef struct timed_pair {
    weir_sample_source *source[2];
    weir_sampler *sampler[2];
    weir_block *block[2];
} timed_pair;

static void timed_pair_open(timed_pair *p, bench *b, int64_t one_us) {
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned at = 0; at < 4; at++) {
            b->fixture.csrs[at].newest_us = one_us;
            if (i) b->fixture.csrs[at].times = NULL;
        }
        assert_ok(weir_sample_over_arrays(&b->fixture.arrays, &p->source[i]));
        assert_ok(weir_sampler_open(&b->opts, p->source[i], &p->sampler[i]));
        assert_ok(weir_block_open(p->sampler[i], &p->block[i]));
    }
}

static void timed_pair_close(timed_pair *p) {
    for (unsigned i = 0; i < 2; i++) {
        weir_block_close(p->block[i]);
        weir_sampler_close(p->sampler[i]);
        weir_sample_source_close(p->source[i]);
    }
}

/* What is left of a list with deleted edges is put together, with times. */
static void check_timed_pair(timed_pair *p, weir_target target, bool deleted) {
    for (unsigned i = 0; i < 2; i++)
        assert_ok(weir_sample(p->sampler[i], &target, 1, p->block[i]));
    const weir_block_view *with = weir_block_look(p->block[0]), *without = weir_block_look(p->block[1]);
    assert_int_equal(with->nodes, without->nodes);
    assert_memory_equal(with->vertices, without->vertices, with->nodes * sizeof *with->vertices);
    for (uint32_t s = 0; s < with->steps; s++) {
        const weir_block_edges *a = &with->edges[s], *b = &without->edges[s];
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->parents, b->parents, a->count * sizeof *a->parents);
        assert_memory_equal(a->children, b->children, a->count * sizeof *a->children);
        assert_memory_equal(a->times, b->times, a->count * sizeof *a->times);
        assert_memory_equal(a->refs, b->refs, a->count * sizeof *a->refs);
        assert_false(a->alike);
        if (!deleted) assert_int_equal(b->alike, b->count > 0);
    }
}

/* Seen from before that time, from just behind it, from when they have expired, and by who asks for all. */
static void no_time_is_read_of_edges_that_have_all_one(void **state) {
    (void)state;
    enum { ONE_US = 500, MOMENTS = 7 };
    const int64_t moments_us[MOMENTS] = {1, ONE_US, ONE_US + 1, ONE_US + 100, ONE_US + 101, 700, WEIR_BEFORE_ALL};
    for (unsigned kind = 0; kind < 4; kind++) {
        bench b = {0};
        timed_pair pair;
        int64_t *until_us[4];
        const bool expires = kind & 1, deleted = kind & 2;
        uint64_t seen = 0;
        bench_open(&b, weir_test_seed() + kind);
        for (unsigned at = 0; at < 4; at++) {
            weir_sample_csr *csr = &b.fixture.csrs[at];
            until_us[at] = fixture_array(csr->edges, sizeof *until_us[at]);
            for (uint64_t e = 0; e < csr->edges; e++) {
                b.fixture.times[at][e] = ONE_US;
                until_us[at][e] =
                    weir_rng_below(&b.rng, 3) ? INT64_MAX : ONE_US + 1 + (int64_t)weir_rng_below(&b.rng, 99);
            }
            if (expires) csr->expire_us = 100;
            if (deleted) csr->until_us = until_us[at];
        }
        timed_pair_open(&pair, &b, ONE_US);
        for (unsigned i = 0; i < 60; i++) {
            weir_target target = some_target(&b);
            target.before_us = moments_us[weir_rng_below(&b.rng, MOMENTS)];
            check_timed_pair(&pair, target, deleted);
            const uint32_t count = weir_block_look(pair.block[1])->edges[0].count;
            assert_true(count == 0 || target.before_us > ONE_US);
            seen += count;
        }
        assert_true(seen > 0);
        timed_pair_close(&pair);
        for (unsigned at = 0; at < 4; at++)
            free(until_us[at]);
        bench_close(&b);
    }
}

WEIR_TESTS(WEIR_CASE(p2_targets_first_and_every_edge_real_older_and_once), WEIR_CASE(targets_of_both_types),
           WEIR_CASE(p3_a_tree_depends_on_no_batch), WEIR_CASE(p3_another_seed_another_tree),
           WEIR_CASE(p4_a_block_is_one_allocation_and_sampling_none), WEIR_CASE(open_fails_cleanly_at_every_allocation),
           WEIR_CASE(refuses_what_makes_no_sense), WEIR_CASE(refuses_targets_that_make_no_sense),
           WEIR_CASE(damaged_arrays_are_an_error), WEIR_CASE(a_targets_limit_cuts_its_tree_alone),
           WEIR_CASE(shared_targets_share_nodes), WEIR_CASE(inputs_are_the_distinct_vertices),
           WEIR_CASE(a_table_emptied_a_million_times_is_empty), WEIR_CASE(its_own_event_counts_at_the_first_hop),
           WEIR_CASE(expired_edges_are_not_seen), WEIR_CASE(deleted_edges_are_not_seen),
           WEIR_CASE(no_time_is_read_of_edges_that_have_all_one))
