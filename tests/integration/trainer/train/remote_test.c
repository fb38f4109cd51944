/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_test.c - blocks that reach beyond a part: each case starts this program again under mpirun, a rank a part.
 * Every rank samples its own targets from its part, then those that the next rank has and its part need not have, and
 * both from the whole snapshot, which is the oracle: the blocks are the same node for node and edge for edge, and so
 * are the numbers of their edges.
 */
#include <string.h>

#include <weir/store/sample/sampler.h>

#include "rank_fixture.h"
#include "ranks.h"
#include "remote.h"

#define BATCH  24u
#define WINDOW 20u
#define HOPS   6u
#define PAYS   900u
#define PEOPLE 25u

static const weir_sample_step steps[HOPS] = {
    {.hop = 1, .fanout = 3, .relation = LEARN_BY, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .relation = LEARN_BY, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_FULL},
    {.hop = 3, .fanout = 2, .relation = LEARN_BY, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 4, .fanout = 4, .relation = LEARN_BY, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 5, .fanout = 1, .relation = LEARN_BY, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 6,
     .fanout = 3,
     .relation = LEARN_BY,
     .direction = WEIR_IN,
     .strategy = WEIR_SAMPLE_WEIGHTED,
     .weight = WEIR_SCHEMA_NONE,
     .half_life_us = 600 * LEARN_SECOND},
};

typedef struct side {
    const weir_snapshot *snapshot;
    weir_nn_shape *shape;
    weir_sample_source *source, *here; /* to sample from, and of what is here */
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_real *numbers;
    size_t room;
} side;

/* owners: of a part; NULL: the whole snapshot. handed: its targets are another rank's. */
static void side_open(side *s, const weir_snapshot *snapshot, const weir_train_owners *owners, weir_comm *comm,
                      bool shared, bool handed, uint64_t seed) {
    const weir_nn_opts opts = {
        .task = LEARN_TASK_BAD, .hidden = 8, .steps = steps, .step_count = HOPS, .window = WINDOW};
    const weir_sample_opts sample = {
        .steps = steps, .step_count = HOPS, .targets_max = BATCH, .seed = seed, .window = WINDOW, .shared = shared};
    *s = (side){.snapshot = snapshot};
    assert_ok(weir_nn_shape_open(weir_snapshot_schema(snapshot), &opts, &s->shape));
    assert_ok(weir_sample_over_snapshot(snapshot, &s->here));
    s->source = s->here;
    if (owners && weir_train_remote_needed(owners, s->shape, handed)) {
        const weir_train_remote_opts remote = {.owners = *owners, .shape = s->shape, .batch = BATCH, .comm = comm};
        assert_ok(weir_train_remote_source(&remote, &s->source));
    }
    assert_ok(weir_sampler_open(&sample, s->source, &s->sampler));
    assert_ok(weir_block_open(s->sampler, &s->block));
    assert_ok(weir_inputs_open(s->shape, weir_snapshot_schema(snapshot), s->here, &s->inputs));
}

static void side_close(side *s) {
    weir_inputs_close(s->inputs);
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    if (s->source != s->here) weir_sample_source_close(s->source);
    weir_sample_source_close(s->here);
    weir_nn_shape_free(s->shape);
    free(s->numbers);
}

/* The numbers of all edges of a step: here, or from who drew them. */
static const weir_real *numbers_of(side *s, const weir_train_remote *remote, uint32_t step) {
    const weir_block_view *view = weir_block_look(s->block);
    const weir_block_edges *edges = &view->edges[step];
    size_t width = weir_nn_edge(s->shape, LEARN_BY)->width;
    assert_true(width > 0);
    s->numbers = realloc(s->numbers, (edges->count + 1) * width * sizeof *s->numbers);
    assert_non_null(s->numbers);
    for (uint32_t begin = 0, end; begin < edges->count; begin = end) {
        end = weir_train_remote_run_end(edges, begin);
        if (edges->refs[begin] & WEIR_TRAIN_REMOTE) {
            uint64_t first = edges->refs[begin] & ~WEIR_TRAIN_REMOTE;
            assert_true(remote && first + (end - begin) <= remote->edges[step]);
            memcpy(s->numbers + begin * width,
                   (const weir_real *)(const void *)remote->numbers[step].bytes + first * width,
                   (end - begin) * width * sizeof *s->numbers);
        } else {
            assert_ok(weir_inputs_edges(s->inputs, view, step, begin, end, s->numbers + begin * width));
        }
    }
    return s->numbers;
}

/* Returns how many edges other ranks have drawn. */
static uint64_t same_blocks(side *whole, side *part, const weir_train_owners *owners, const weir_train_remote *remote) {
    const weir_block_view *x = weir_block_look(whole->block), *y = weir_block_look(part->block);
    uint64_t drawn = 0;
    assert_int_equal(x->nodes, y->nodes);
    for (uint32_t i = 0; i < (x->hops + 1) * x->types; i++) {
        uint32_t type = i % x->types;
        assert_int_equal(x->ranges[i].begin, y->ranges[i].begin);
        assert_int_equal(x->ranges[i].end, y->ranges[i].end);
        for (uint32_t n = x->ranges[i].begin; n < x->ranges[i].end; n++) {
            weir_train_name name;
            assert_ok(weir_train_name_of(owners, remote, type, y->vertices[n], &name));
            assert_true(weir_snapshot_vertices_of(whole->snapshot, type)->ids[x->vertices[n]].low == name.id);
            assert_int_equal(x->groups[n], y->groups[n]);
        }
    }
    for (uint32_t step = 0; step < x->steps; step++) {
        const weir_block_edges *e = &x->edges[step], *f = &y->edges[step];
        size_t bytes = e->count * weir_nn_edge(whole->shape, LEARN_BY)->width * sizeof(weir_real);
        assert_int_equal(e->count, f->count);
        for (uint32_t i = 0; i < e->count; i++) {
            assert_true(e->parents[i] == f->parents[i] && e->children[i] == f->children[i]);
            assert_true(e->times[i] == f->times[i]);
            drawn += f->refs[i] >> 63;
        }
        assert_memory_equal(numbers_of(whole, NULL, step), numbers_of(part, remote, step), bytes);
    }
    return drawn;
}

/* A target of the whole snapshot: every other one as of when its own event put it, which it sees; of those that share,
 * some at a time. at: of its batch. */
static weir_target target_of(const side *whole, weir_vertex id, bool shared, uint32_t at) {
    const int64_t some_us = (1 + at / 7) * (PAYS / 4 * 60 * LEARN_SECOND);
    const weir_snapshot_vertices *pays = weir_snapshot_vertices_of(whole->snapshot, LEARN_PAY);
    const weir_snapshot_edges *by = weir_snapshot_edges_of(whole->snapshot, LEARN_BY, WEIR_OUT);
    uint64_t index;
    assert_true(weir_snapshot_find(whole->snapshot, LEARN_PAY, id, &index));
    int64_t put_us = pays->lives.times[pays->lives.indptr[index]];
    if (shared)
        return (weir_target){index, LEARN_START_US + some_us, at % 2 ? 0 : by->events[by->indptr[index]], LEARN_PAY};
    if (index % 2) return (weir_target){index, put_us + 3600 * LEARN_SECOND, 0, LEARN_PAY};
    return (weir_target){index, put_us, by->events[by->indptr[index]], LEARN_PAY};
}

/* The pays of a part, this rank's or another's, a batch after the other, and then as many batches of none as other
 * ranks have more. */
static uint64_t compare(side *whole, side *part, const weir_train_owners *owners, const weir_part *from, bool shared,
                        uint64_t batches) {
    const weir_snapshot_vertices *own = weir_snapshot_vertices_of(weir_part_snapshot(from), LEARN_PAY);
    weir_train_remote remote;
    uint64_t drawn = 0;
    bool handed = from != owners->part, asks = weir_train_remote_needed(owners, part->shape, handed);
    assert_ok(weir_train_remote_open(part->shape, &remote));
    for (uint64_t batch = 0; batch < batches; batch++) {
        weir_target of_part[BATCH], of_whole[BATCH];
        uint32_t count = 0;
        if (asks) weir_train_remote_begin(part->source, &remote, handed);
        for (uint64_t v = batch * BATCH; v < own->own && count < BATCH; v++, count++) {
            const weir_train_name name = {(uint64_t)weir_part_number(from, LEARN_PAY, v), own->ids[v].low};
            uint64_t vertex = v;
            of_part[count] = of_whole[count] = target_of(whole, weir_vertex_of(own->ids[v]), shared, count);
            if (handed) assert_ok(weir_train_remote_add(part->source, LEARN_PAY, &name, &vertex));
            of_part[count].vertex = vertex;
        }
        if (!count && asks) assert_ok(weir_train_remote_idle(part->source));
        if (!count) continue;
        assert_ok(weir_sample(part->sampler, of_part, count, part->block));
        assert_ok(weir_sample(whole->sampler, of_whole, count, whole->block));
        drawn += same_blocks(whole, part, owners, &remote);
    }
    weir_train_remote_close(&remote);
    return drawn;
}

static void rank_main(void) {
    weir_comm *comm = NULL;
    uint64_t seed = rank_seed();
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    weir_part *part = rank_part(weir_comm_rank(comm));
    weir_part *next = rank_part((weir_comm_rank(comm) + 1) % weir_comm_ranks(comm));
    weir_snapshot *snapshot = rank_snapshot();
    const weir_train_owners owners = {weir_part_snapshot(part), part, weir_comm_rank(comm), weir_comm_ranks(comm)};
    double drawn[2] = {0, 0}; /* of own targets, and of those of the next rank */
    for (unsigned i = 0; i < (owners.ranks > 1 ? 4 : 2); i++) {
        const bool shared = i % 2, handed = i / 2;
        side whole, here;
        side_open(&whole, snapshot, NULL, NULL, shared, handed, seed);
        side_open(&here, owners.snapshot, &owners, comm, shared, handed, seed);
        drawn[handed] +=
            (double)compare(&whole, &here, &owners, handed ? next : part, shared, (PAYS + BATCH - 1) / BATCH);
        side_close(&here);
        side_close(&whole);
    }
    weir_comm_sum_doubles(comm, drawn, 2);
    bool far = owners.ranks > 1 && weir_part_depth(part) + 1 < HOPS;
    if (far != (drawn[0] > 0)) fail_msg("%g edges were drawn by other ranks", drawn[0]);
    if (far && drawn[1] <= drawn[0]) fail_msg("of targets handed over %g, of others %g", drawn[1], drawn[0]);
    weir_snapshot_close(snapshot);
    weir_part_close(next);
    weir_part_close(part);
    weir_comm_stop(comm);
}

/* What the cases below start; by itself it has nothing to do. */
static void one_rank(void **state) {
    (void)state;
    rank_or_skip();
    rank_main();
}

static void same_for(unsigned ranks, unsigned depth, weir_parts_method method) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = PEOPLE, .bad = 0.3};
    rank_prepare(&plan, &(weir_parts_opts){.parts = ranks, .depth = depth, .method = method, .seed = 1});
    ranks_again(ranks);
}

static void e2_one_rank(void **state) {
    (void)state;
    same_for(1, 0, WEIR_PARTS_METIS);
}

static void e2_two_ranks(void **state) {
    (void)state;
    same_for(2, 0, WEIR_PARTS_RANDOM);
}

static void e2_four_ranks(void **state) {
    (void)state;
    same_for(4, 1, WEIR_PARTS_RANDOM);
}

static void e2_eight_ranks(void **state) {
    (void)state;
    same_for(8, 0, WEIR_PARTS_HASH);
}

static void e2_parts_that_reach_ask_for_none(void **state) {
    (void)state;
    same_for(3, HOPS - 1, WEIR_PARTS_RANDOM);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(e2_one_rank), WEIR_CASE(e2_two_ranks), WEIR_CASE(e2_four_ranks),
           WEIR_CASE(e2_eight_ranks), WEIR_CASE(e2_parts_that_reach_ask_for_none))
