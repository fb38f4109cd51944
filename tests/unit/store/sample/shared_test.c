/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_test.c - targets of one time share what lies below them: over random graphs of two types and few times, by a
 * source of indices and by one of ids.
 *
 * The oracle takes the plain list of edges: for each time it spreads from the targets of that time, a hop at a time, as
 * sets of vertices. A block has to have those nodes and no other.
 */
#include "weir_test.h"

#include <weir/store/base/alloc.h>
#include <weir/store/sample/sampler.h>

#include "arrays_fixture.h"

#define VERTICES 300u
#define EDGES    3000u
#define TIMES_US 40u
#define MOMENTS  5u
#define TARGETS  90u
#define WINDOW   12u
#define HOPS     3u
#define STEPS    7u
#define TYPES    2u

/* Each place of a list is decided: by it the oracle can tell what is taken. */
static const weir_sample_step decided[STEPS] = {
    {.hop = 1, .fanout = 4, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 1, .fanout = 3, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 1, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_FULL},
    {.hop = 2, .fanout = 5, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 2, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_FULL},
    {.hop = 3, .fanout = 2, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 3, .fanout = 3, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_RECENT},
};

static const weir_sample_step drawn[STEPS] = {
    {.hop = 1, .fanout = 4, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 3, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 2, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_WEIGHTED, .weight = 0},
    {.hop = 2, .fanout = 5, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_FULL},
    {.hop = 3, .fanout = 2, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 3,
     .fanout = 3,
     .relation = 0,
     .direction = WEIR_IN,
     .strategy = WEIR_SAMPLE_WEIGHTED,
     .weight = WEIR_SCHEMA_NONE,
     .half_life_us = 5},
};

/* --- a source that calls vertices by ids -------------------------------------------------------------------------- */

/* Over the one of indices: an id is its vertex's index with a high half. */
typedef struct wide_source {
    weir_sample_source base; /* first: the handle is this */
    weir_sample_source *narrow;
    weir_vertex neighbors[WEIR_SAMPLE_ASK_MAX][WINDOW + 64u];
} wide_source;

static weir_vertex wide_of(uint64_t index) {
    return (weir_vertex)(index * 0x9E3779B97F4A7C15u) << 64 | index;
}

static weir_err wide_ids(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids) {
    weir_sample_source *narrow = ((wide_source *)(void *)source)->narrow;
    weir_target same[TARGETS];
    for (uint32_t i = 0; i < count; i++) {
        same[i] = targets[i];
        same[i].vertex = (uint64_t)targets[i].vertex;
    }
    return narrow->ids(narrow, same, count, ids);
}

static uint64_t wide_parents[WEIR_SAMPLE_ASK_MAX];

static weir_sample_ask wide_ask(const weir_sample_ask *ask) {
    weir_sample_ask same = *ask;
    for (uint32_t i = 0; i < ask->count; i++) {
        assert_true(ask->parent_ids[i] == wide_of((uint64_t)ask->parent_ids[i]));
        wide_parents[i] = (uint64_t)ask->parent_ids[i];
    }
    same.parents = wide_parents;
    same.parent_ids = NULL;
    return same;
}

static weir_err wide_windows(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows) {
    wide_source *s = (wide_source *)(void *)source;
    const weir_sample_ask same = wide_ask(ask);
    weir_err err = s->narrow->windows(s->narrow, &same, windows);
    for (uint32_t i = 0; !err && i < ask->count; i++) {
        assert_true(windows[i].count <= WINDOW + 64u);
        for (uint32_t n = 0; n < windows[i].count; n++) {
            uint64_t index;
            memcpy(&index, windows[i].neighbors + (size_t)n * windows[i].stride, sizeof index);
            s->neighbors[i][n] = wide_of(index);
        }
        windows[i].neighbors = (const uint8_t *)s->neighbors[i];
        windows[i].stride = sizeof(weir_vertex);
    }
    return err;
}

static weir_err wide_numbers(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                             uint32_t feature, float *numbers) {
    weir_sample_source *narrow = ((wide_source *)(void *)source)->narrow;
    return narrow->numbers(narrow, ask, window, feature, numbers); /* by the window's places alone */
}

static void wide_close(weir_sample_source *source) {
    weir_sample_source_close(((wide_source *)(void *)source)->narrow);
    weir_free(source);
}

static weir_sample_source *wide_open(weir_sample_source *narrow) {
    wide_source *s = weir_aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    assert_non_null(s);
    s->base = (weir_sample_source){.types = narrow->types,
                                   .relations = narrow->relations,
                                   .ends = narrow->ends,
                                   .wide = true,
                                   .ids = wide_ids,
                                   .windows = wide_windows,
                                   .numbers = wide_numbers,
                                   .close = wide_close};
    s->narrow = narrow;
    return &s->base;
}

/* --- worlds ------------------------------------------------------------------------------------------------------- */

typedef struct shared_world {
    arrays_fixture fixture;
    weir_rng rng;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    const weir_sample_step *steps;
    bool wide;
    weir_target targets[TARGETS];
    uint32_t count;
    int64_t moments[MOMENTS];
} shared_world;

static weir_sampler *sampler_of(const shared_world *w, bool shared, bool own_rows) {
    const weir_sample_opts opts = {.steps = w->steps,
                                   .step_count = STEPS,
                                   .window = WINDOW,
                                   .targets_max = TARGETS,
                                   .seed = 7,
                                   .shared = shared,
                                   .own_rows = own_rows};
    weir_sampler *sampler;
    assert_ok(weir_sampler_open(&opts, w->source, &sampler));
    return sampler;
}

static void shared_world_open(shared_world *w, const weir_sample_step *steps, bool wide, uint32_t round) {
    *w = (shared_world){.steps = steps, .wide = wide, .rng = weir_rng_stream(weir_test_seed(), 21, round)};
    fixture_random(&w->fixture, &w->rng, VERTICES, EDGES, TIMES_US);
    assert_ok(weir_sample_over_arrays(&w->fixture.arrays, &w->source));
    if (wide) w->source = wide_open(w->source);
    w->sampler = sampler_of(w, true, false);
    assert_ok(weir_block_open(w->sampler, &w->block));
    for (unsigned m = 0; m < MOMENTS; m++)
        w->moments[m] = 2 + (int64_t)weir_rng_below(&w->rng, TIMES_US + 1);
}

static void shared_world_close(shared_world *w) {
    weir_block_close(w->block);
    weir_sampler_close(w->sampler);
    weir_sample_source_close(w->source);
    fixture_close(&w->fixture);
}

static int by_type_and_time(const void *a, const void *b) {
    const weir_target *x = a, *y = b;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    return x->before_us < y->before_us ? -1 : x->before_us > y->before_us;
}

/* Of both types, as of few moments; some of type 0 as of their own event, and some are there twice. */
static void choose_targets(shared_world *w) {
    w->count = 1 + (uint32_t)weir_rng_below(&w->rng, TARGETS);
    for (uint32_t i = 0; i < w->count; i++) {
        const plain_edge *put_with = &w->fixture.plain[0][weir_rng_below(&w->rng, EDGES)];
        const uint16_t type = weir_rng_below(&w->rng, 3) == 0;
        const uint64_t vertex = weir_rng_below(&w->rng, weir_rng_below(&w->rng, 2) ? 5 : w->fixture.vertices[type]);
        weir_target *t = &w->targets[i];
        *t = (weir_target){vertex, w->moments[weir_rng_below(&w->rng, MOMENTS)], 0, type};
        if (weir_rng_below(&w->rng, 3) == 0) *t = (weir_target){put_with->from, put_with->time_us, put_with->event, 0};
        if (w->wide) t->vertex = wide_of((uint64_t)t->vertex);
    }
    qsort(w->targets, w->count, sizeof *w->targets, by_type_and_time);
}

static uint64_t vertex_at(const weir_block_view *view, uint32_t node) {
    return view->ids ? (uint64_t)view->ids[node] : view->vertices[node];
}

static int64_t time_of(const weir_block_view *view, uint32_t node) {
    assert_true(view->groups[node] < view->targets);
    return view->before_us[view->groups[node]];
}

/* --- the oracle --------------------------------------------------------------------------------------------------- */

/* By time, hop, type and vertex: who is there. */
typedef struct frontier {
    bool of[TIMES_US + 3][HOPS + 1][TYPES][VERTICES];
    uint64_t count;
} frontier;

static uint32_t parent_type(const shared_world *w, const weir_sample_step *s) {
    const weir_sample_ends *ends = &w->fixture.ends[s->relation];
    return s->direction == WEIR_OUT ? ends->from : ends->to;
}

static uint32_t child_type(const shared_world *w, const weir_sample_step *s) {
    const weir_sample_ends *ends = &w->fixture.ends[s->relation];
    return s->direction == WEIR_OUT ? ends->to : ends->from;
}

/* Puts those that a parent reaches by a decided step into the next hop. event: the parent's own, or 0. */
static void reach(const shared_world *w, const weir_sample_step *s, uint64_t parent, int64_t before_us, uint64_t event,
                  frontier *f) {
    const unsigned at = s->relation * 2u + s->direction;
    const weir_sample_csr *csr = &w->fixture.csrs[at]; /* newest first, which is all that is taken from it */
    const uint32_t most = s->strategy == WEIR_SAMPLE_FULL || s->fanout > WINDOW ? WINDOW : s->fanout;
    uint32_t looked = 0, taken = 0;
    for (int64_t e = csr->indptr[parent]; e < csr->indptr[parent + 1] && looked < WINDOW && taken < most; e++) {
        const int64_t time_us = csr->times[e];
        const bool own = event && time_us == before_us && csr->events[e] == event;
        if (time_us > before_us || (time_us == before_us && !event)) continue;
        looked++;
        if (time_us == before_us && !own) continue;
        taken++;
        bool *there = &f->of[before_us][s->hop][child_type(w, s)][csr->neighbors[e]];
        f->count += !*there;
        *there = true;
    }
}

static void spread(const shared_world *w, frontier *f) {
    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < w->count; i++) {
        const weir_target *t = &w->targets[i];
        for (uint32_t s = 0; s < STEPS; s++)
            if (w->steps[s].hop == 1 && parent_type(w, &w->steps[s]) == t->type)
                reach(w, &w->steps[s], (uint64_t)t->vertex, t->before_us, t->event, f);
    }
    for (uint32_t hop = 2; hop <= HOPS; hop++)
        for (uint32_t s = 0; s < STEPS; s++)
            for (int64_t us = 0; w->steps[s].hop == hop && us < (int64_t)TIMES_US + 3; us++)
                for (uint64_t v = 0; v < VERTICES; v++)
                    if (f->of[us][hop - 1][parent_type(w, &w->steps[s])][v]) reach(w, &w->steps[s], v, us, 0, f);
}

/* Each node beyond the targets is one of the oracle's, and no two are the same: with as many they are the same sets. */
static void nodes_are(const weir_block_view *view, frontier *f) {
    assert_int_equal(view->nodes, view->targets + f->count);
    for (uint32_t i = view->types; i < (view->hops + 1) * view->types; i++) {
        for (uint32_t n = view->ranges[i].begin; n < view->ranges[i].end; n++) {
            bool *there = &f->of[time_of(view, n)][i / view->types][i % view->types][vertex_at(view, n)];
            assert_true(*there);
            *there = false;
            assert_true(n == view->ranges[i].begin || view->groups[n] >= view->groups[n - 1]);
        }
    }
}

static void p3_nodes_are_those_of_frontiers_that_each_time_shares(void **state) {
    (void)state;
    static frontier f;
    uint64_t shared = 0, apart = 0;
    for (unsigned round = 0; round < 20; round++) {
        shared_world w;
        shared_world_open(&w, decided, round % 2, round);
        weir_sampler *sampler = sampler_of(&w, false, false);
        weir_block *block;
        assert_ok(weir_block_open(sampler, &block));
        for (unsigned batch = 0; batch < 4; batch++) {
            choose_targets(&w);
            assert_ok(weir_sample(w.sampler, w.targets, w.count, w.block));
            assert_ok(weir_sample(sampler, w.targets, w.count, block));
            spread(&w, &f);
            nodes_are(weir_block_look(w.block), &f);
            assert_true(weir_block_look(w.block)->nodes <= weir_block_look(block)->nodes);
            shared += weir_block_look(w.block)->nodes;
            apart += weir_block_look(block)->nodes;
        }
        weir_block_close(block);
        weir_sampler_close(sampler);
        shared_world_close(&w);
    }
    if (shared >= apart - apart / 4) /* else the case has shown little */
        fail_msg("%llu nodes, without sharing %llu", (unsigned long long)shared, (unsigned long long)apart);
}

/* --- company ------------------------------------------------------------------------------------------------------ */

typedef struct edge_of {
    uint64_t parent, child, ref;
    int64_t time_us;
    uint32_t step;
} edge_of;

static int edge_order(const void *a, const void *b) {
    return memcmp(a, b, sizeof(edge_of));
}

/* The edges that a target leads to, hop after hop: each once, sorted. */
static size_t edges_below(const weir_block_view *view, uint32_t target, edge_of *edges) {
    bool *reached = calloc(view->nodes, sizeof *reached);
    size_t count = 0;
    assert_non_null(reached);
    reached[target] = true;
    for (uint32_t s = 0; s < view->steps; s++) { /* they stand by hop */
        const weir_block_edges *e = &view->edges[s];
        for (uint32_t i = 0; i < e->count; i++) {
            if (!reached[e->parents[i]]) continue;
            reached[e->children[i]] = true;
            edge_of *to = memset(&edges[count++], 0, sizeof *to);
            to->parent = vertex_at(view, e->parents[i]);
            to->child = vertex_at(view, e->children[i]);
            to->ref = e->refs[i];
            to->time_us = e->times[i];
            to->step = s;
        }
    }
    qsort(edges, count, sizeof *edges, edge_order);
    free(reached);
    return count;
}

/* SAMPLE-P2 of groups, whatever is drawn. */
static void nothing_is_newer(const shared_world *w, const weir_block_view *view) {
    for (uint32_t s = 0; s < view->steps; s++) {
        const weir_block_edges *e = &view->edges[s];
        const weir_sample_csr *csr = &w->fixture.csrs[w->steps[s].relation * 2u + w->steps[s].direction];
        for (uint32_t i = 0; i < e->count; i++) {
            const uint32_t parent = e->parents[i];
            const int64_t before_us = time_of(view, parent);
            const bool own = parent < view->targets && view->events[parent] && e->times[i] == before_us &&
                             csr->events[e->refs[i]] == view->events[parent];
            assert_true(csr->times[e->refs[i]] == e->times[i] && (e->times[i] < before_us || own));
            assert_true((uint64_t)csr->neighbors[e->refs[i]] == vertex_at(view, e->children[i]));
            assert_true(time_of(view, e->children[i]) == before_us);
        }
    }
}

static void company(const weir_sample_step *steps, bool wide, uint32_t round) {
    static edge_of alone[1u << 16], together[1u << 16];
    shared_world w;
    shared_world_open(&w, steps, wide, round);
    weir_block *block;
    assert_ok(weir_block_open(w.sampler, &block));
    choose_targets(&w);
    assert_ok(weir_sample(w.sampler, w.targets, w.count, w.block));
    const weir_block_view *view = weir_block_look(w.block);
    nothing_is_newer(&w, view);
    for (uint32_t i = 0; i < w.count; i++) {
        assert_true(vertex_at(view, i) == (uint64_t)w.targets[i].vertex);
        assert_true(time_of(view, i) == w.targets[i].before_us && view->events[i] == w.targets[i].event);
        assert_ok(weir_sample(w.sampler, &w.targets[i], 1, block));
        const size_t count = edges_below(weir_block_look(block), 0, alone);
        assert_int_equal(edges_below(view, i, together), count);
        assert_memory_equal(alone, together, count * sizeof *alone);
    }
    weir_block_close(block);
    shared_world_close(&w);
}

static void p3_p2_a_target_sees_the_same_in_any_company(void **state) {
    (void)state;
    for (unsigned round = 0; round < 12; round++)
        company(round % 3 ? drawn : decided, round % 2, round);
}

/* Whichever way each calls its vertices. */
static void same_block(const weir_block_view *a, const weir_block_view *b) {
    assert_true(a->nodes == b->nodes && a->inputs == b->inputs && a->targets == b->targets);
    for (uint32_t n = 0; n < a->nodes; n++) {
        assert_true(vertex_at(a, n) == vertex_at(b, n) && time_of(a, n) == time_of(b, n));
        assert_true(a->groups[n] == b->groups[n] && a->input_of[n] == b->input_of[n]);
    }
    assert_memory_equal(a->input_nodes, b->input_nodes, a->inputs * sizeof(uint32_t));
    for (uint32_t s = 0; s < STEPS; s++) {
        assert_int_equal(a->edges[s].count, b->edges[s].count);
        assert_memory_equal(a->edges[s].children, b->edges[s].children, a->edges[s].count * sizeof(uint32_t));
        assert_memory_equal(a->edges[s].parents, b->edges[s].parents, a->edges[s].count * sizeof(uint32_t));
        assert_memory_equal(a->edges[s].refs, b->edges[s].refs, a->edges[s].count * sizeof(uint64_t));
    }
}

/* Ids and indices of the same graph: node for node and edge for edge. */
static void p3_by_ids_as_by_indices(void **state) {
    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        shared_world w[2];
        for (unsigned i = 0; i < 2; i++) {
            shared_world_open(&w[i], drawn, i, round);
            choose_targets(&w[i]);
            assert_ok(weir_sample(w[i].sampler, w[i].targets, w[i].count, w[i].block));
            weir_block_inputs(w[i].sampler, w[i].block, true);
        }
        const weir_block_view *x = weir_block_look(w[0].block), *y = weir_block_look(w[1].block);
        same_block(x, y);
        for (uint32_t n = 0; n < x->nodes; n++)
            assert_true(y->ids[n] == wide_of(x->vertices[n]));
        shared_world_close(&w[0]);
        shared_world_close(&w[1]);
    }
}

/* Layer 0 reads each vertex of a time once, whichever hops and targets lead to it. */
static void rows_are_the_distinct_vertices_of_each_time(void **state) {
    (void)state;
    static bool there[TIMES_US + 3][TYPES][VERTICES];
    for (unsigned round = 0; round < 6; round++) {
        shared_world w;
        uint64_t distinct = 0;
        shared_world_open(&w, drawn, round % 2, round);
        choose_targets(&w);
        assert_ok(weir_sample(w.sampler, w.targets, w.count, w.block));
        weir_block_inputs(w.sampler, w.block, true);
        const weir_block_view *view = weir_block_look(w.block);
        memset(there, 0, sizeof there);
        for (uint32_t i = 0; i < (view->hops + 1) * view->types; i++) {
            for (uint32_t n = view->ranges[i].begin; n < view->ranges[i].end; n++) {
                const uint32_t of = view->input_nodes[view->input_of[n]];
                bool *seen = &there[time_of(view, n)][i % view->types][vertex_at(view, n)];
                assert_true(vertex_at(view, of) == vertex_at(view, n) && time_of(view, of) == time_of(view, n));
                distinct += !*seen;
                *seen = true;
            }
        }
        assert_int_equal(view->inputs, distinct);
        shared_world_close(&w);
    }
}

/* Whether layer 0 reads the same of two nodes of one type and time: a target has a row by its event, if it is asked. */
static bool read_alike(const weir_block_view *view, bool own_rows, uint32_t x, uint32_t y) {
    const uint64_t none = WEIR_SAMPLE_NO_TARGET;
    if (vertex_at(view, x) != vertex_at(view, y)) return false;
    return !own_rows || (x < view->targets ? view->events[x] : none) == (y < view->targets ? view->events[y] : none);
}

/* Rows stand by type, in the order in which nodes ask for them. */
static void rows_are_what_nodes_ask_for(const weir_block_view *view, bool own_rows) {
    uint32_t rows = 0;
    for (uint32_t type = 0; type < view->types; type++) {
        assert_true(view->input_ranges[type].begin == rows);
        const uint32_t begin = rows;
        for (uint32_t hop = 0; hop <= view->hops; hop++) {
            const weir_block_range range = view->ranges[hop * view->types + type];
            for (uint32_t n = range.begin; n < range.end; n++) {
                uint32_t row = begin;
                while (row < rows && !read_alike(view, own_rows, view->input_nodes[row], n))
                    row++;
                assert_int_equal(view->input_of[n], row);
                if (row == rows) assert_int_equal(view->input_nodes[rows++], n);
            }
        }
        assert_true(view->input_ranges[type].end == rows);
    }
    assert_int_equal(view->inputs, rows);
}

/* Where all targets have one time, hops number rows on the way, and whoever asks again has them numbered by a pass over
 * all nodes. */
static void rows_where_all_targets_have_one_time(void **state) {
    (void)state;
    for (unsigned round = 0; round < 24; round++) {
        const bool own_rows = round % 4 == 3;
        shared_world w;
        weir_block *block;
        shared_world_open(&w, round % 3 ? drawn : decided, round % 2, round);
        weir_sampler *sampler = sampler_of(&w, true, own_rows);
        assert_ok(weir_block_open(sampler, &block));
        const weir_block_view *view = weir_block_look(block);
        choose_targets(&w);
        for (uint32_t i = 0; i < w.count; i++)
            w.targets[i].before_us = 1 + round % TIMES_US;
        for (unsigned again = 0; again < 4; again++) { /* sampled and asked, asked again, and the same once more */
            if (again % 2 == 0) assert_ok(weir_sample(sampler, w.targets, w.count, block));
            weir_block_inputs(sampler, block, again < 3);
            rows_are_what_nodes_ask_for(view, own_rows && again < 3);
        }
        weir_block_close(block);
        weir_sampler_close(sampler);
        shared_world_close(&w);
    }
}

/* Of one group, behind the targets. */
static void no_vertex_twice_in_a_range(const weir_block_view *view) {
    for (uint32_t i = view->types; i < (view->hops + 1) * view->types; i++) {
        bool there[VERTICES] = {false};
        for (uint32_t n = view->ranges[i].begin; n < view->ranges[i].end; n++) {
            assert_false(there[vertex_at(view, n)]);
            there[vertex_at(view, n)] = true;
        }
    }
}

/* The table of vertices is kept from batch to batch: what an earlier one left there is no node of this one. */
static void a_batch_does_not_depend_on_those_before(void **state) {
    (void)state;
    for (unsigned round = 0; round < 24; round++) {
        shared_world w;
        shared_world_open(&w, round % 3 ? drawn : decided, round % 2, round);
        choose_targets(&w);
        const bool one_time = round % 4 != 3;
        for (uint32_t i = 0; one_time && i < w.count; i++)
            w.targets[i].before_us = 1 + round % TIMES_US;
        for (unsigned batch = 0; batch < 6; batch++) {
            weir_sampler *fresh = sampler_of(&w, true, false);
            weir_block *block;
            const uint32_t count = batch % 2 ? w.count : 1 + (uint32_t)weir_rng_below(&w.rng, w.count);
            assert_ok(weir_block_open(fresh, &block));
            assert_ok(weir_sample(w.sampler, w.targets, count, w.block));
            assert_ok(weir_sample(fresh, w.targets, count, block));
            if (one_time) no_vertex_twice_in_a_range(weir_block_look(w.block));
            weir_block_inputs(w.sampler, w.block, false);
            weir_block_inputs(fresh, block, false);
            rows_are_what_nodes_ask_for(weir_block_look(w.block), false);
            same_block(weir_block_look(w.block), weir_block_look(block));
            weir_block_close(block);
            weir_sampler_close(fresh);
        }
        shared_world_close(&w);
    }
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* By rank of their time, over all types: so one time is one group, and groups rise within each type. */
static void groups_are_the_ranks_of_times(void **state) {
    (void)state;
    static const int64_t times_us[7] = {5, 5, 9, 3, 3, 5, INT64_MAX};
    static const uint32_t groups[7] = {1, 1, 2, 0, 0, 1, 3};
    shared_world w;
    shared_world_open(&w, decided, false, 0);
    for (uint32_t i = 0; i < 7; i++)
        w.targets[i] = (weir_target){i, times_us[i], 0, i >= 3};
    assert_ok(weir_sample(w.sampler, w.targets, 7, w.block));
    const weir_block_view *view = weir_block_look(w.block);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(view->groups[i], groups[i]);
        assert_true(view->before_us[groups[i]] == times_us[i]);
    }
    w.targets[4].before_us = 2; /* earlier than one of its own type; than one of another it may be */
    assert_err(weir_sample(w.sampler, w.targets, 7, w.block), WEIR_EINVAL,
               "target 4 is of an earlier time than the one before; give targets that share by type");
    assert_int_equal(weir_block_look(w.block)->nodes, 0);
    shared_world_close(&w);
}

WEIR_TESTS(WEIR_CASE(p3_nodes_are_those_of_frontiers_that_each_time_shares),
           WEIR_CASE(p3_p2_a_target_sees_the_same_in_any_company), WEIR_CASE(p3_by_ids_as_by_indices),
           WEIR_CASE(rows_are_the_distinct_vertices_of_each_time), WEIR_CASE(rows_where_all_targets_have_one_time),
           WEIR_CASE(a_batch_does_not_depend_on_those_before), WEIR_CASE(groups_are_the_ranks_of_times))
