/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fanouts_test.c - `weir train --fanouts` and `--strategy` with what differs for a relation: the model that is left has
 * the steps that a reader of the words expects, and batches by it have the edges that these say, list by list of the
 * snapshot.
 */
#include <math.h>

#include <weir/inference/model/model.h>
#include <weir/inference/pack/pack.h>

#include "batches.h"
#include "learn_fixture.h"
#include "shell.h"

#define PAYS    500u
#define PEOPLE  10u
#define BATCH   50u
#define STEPS   16u
#define EDGES   1024u /* of a list, at most */
#define WINDOW  128u
#define CERTAIN 500u /* draws from which on a mean says something */

/* What is expected of one step. A plain value. */
typedef struct wanted {
    uint32_t hop, fanout;
    uint16_t relation;
    weir_direction direction;
    weir_strategy strategy;
} wanted;

static void same_steps(const weir_nn_shape *shape, const wanted *steps) {
    uint32_t count;
    const weir_sample_step *of = weir_nn_steps(shape, &count);
    for (uint32_t i = 0; i < count; i++)
        if (of[i].hop != steps[i].hop || of[i].fanout != steps[i].fanout || of[i].relation != steps[i].relation ||
            of[i].direction != steps[i].direction || of[i].strategy != steps[i].strategy)
            fail_msg("step %u: hop %u, relation %u, direction %u, fan-out %u, strategy %u", i, of[i].hop,
                     of[i].relation, of[i].direction, of[i].fanout, of[i].strategy);
    assert_int_equal(steps[count].hop, 0);
}

/* Edges of a vertex that are there before the target's time, or came with the target: positions in the order of the
 * list, which is that of their age. */
static uint32_t list_of(const weir_snapshot_edges *e, const weir_block_view *view, uint32_t node,
                        uint64_t list[EDGES]) {
    const uint32_t group = view->groups[node];
    const bool is_target = node < view->targets;
    const uint64_t vertex = view->vertices[node];
    uint32_t count = 0;
    for (int64_t i = e->indptr[vertex]; i < e->indptr[vertex + 1]; i++) {
        const bool own = is_target && view->events[node] && e->events[i] == view->events[node];
        if (e->times[i] >= view->before_us[group] && !own) continue;
        assert_true(count < EDGES);
        list[count++] = (uint64_t)i;
    }
    return count < WINDOW ? count : WINDOW;
}

typedef struct drawn {
    double places; /* of picks in their lists, from 0 to 1, where there was a choice by chance */
    uint64_t count, parents;
} drawn;

static void edges_are(const weir_snapshot *snapshot, const weir_block_view *view, uint32_t step, const wanted *want,
                      drawn *seen) {
    const weir_block_edges *edges = &view->edges[step];
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, want->relation, want->direction);
    for (uint32_t node = edges->parent_begin; node < edges->parent_end; node++) {
        uint64_t list[EDGES];
        bool taken[WINDOW] = {false};
        const uint32_t begin = edges->offsets[node - edges->parent_begin];
        const uint32_t count = edges->offsets[node - edges->parent_begin + 1] - begin;
        const uint32_t there = list_of(e, view, node, list);
        const bool all = want->strategy == WEIR_SAMPLE_FULL || there <= want->fanout;
        assert_int_equal(count, all ? there : want->fanout);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t place = 0;
            while (place < there && list[place] != edges->refs[begin + i])
                place++;
            assert_true(place < there && !taken[place]);
            taken[place] = true;
            if (want->strategy == WEIR_SAMPLE_RECENT) assert_true(place < count);
            if (all || want->strategy != WEIR_SAMPLE_UNIFORM) continue;
            seen->places += (place + 0.5) / there;
            seen->count++;
        }
        seen->parents += count > 0;
    }
}

static void blocks_are(const weir_nn_shape *shape, const weir_snapshot *snapshot, const wanted *steps) {
    const weir_targets_opts which = {.task = LEARN_TASK_BAD, .cut = {.warm_up = 0.05, .validation = 0.2, .test = 0.2}};
    weir_targets *targets;
    drawn seen[STEPS] = {{0}};
    const weir_train_batch *batch = NULL;
    weir_batches *stream;
    assert_ok(weir_targets_open(snapshot, &which, &targets));
    const weir_batches_opts opts = {.shape = shape,
                                    .targets = targets,
                                    .count = targets->count,
                                    .seed = weir_test_seed(),
                                    .batch = BATCH,
                                    .owners = {snapshot, NULL, 0, 1}};
    assert_ok(weir_batches_open(&opts, &stream));
    for (;;) {
        assert_ok(weir_batches_next(stream, &batch));
        if (!batch) break;
        for (uint32_t s = 0; steps[s].hop; s++)
            edges_are(snapshot, batch->nn.block, s, &steps[s], &seen[s]);
        weir_batches_done(stream, batch);
    }
    for (uint32_t s = 0; steps[s].hop; s++) {
        assert_true(seen[s].parents > 0);
        if (seen[s].count >= CERTAIN && !(fabs(seen[s].places / (double)seen[s].count - 0.5) < 0.1))
            fail_msg("step %u: %llu draws, on average at %g of their lists", s, (unsigned long long)seen[s].count,
                     seen[s].places / (double)seen[s].count);
    }
    weir_batches_close(stream);
    weir_targets_close(targets);
}

/* A model of these words has these steps, and its batches those edges. */
static void model_of(const char *fanouts, const char *strategy, const wanted *steps) {
    const weir_model_opts unsigned_too = {.accept_unsigned = true};
    char line[1024];
    weir_snapshot *snapshot;
    weir_model *model;
    weir_pack *pack;
    snprintf(line, sizeof line,
             "cd $folder && rm -rf models && $weir train snapshot --task bad --fanouts '%s' --strategy '%s' --hidden 8 "
             "--epochs 1 --warm-up 0.05 --validation 0.2 --test 0.2 --no-baselines --learn once --models models >out "
             "&& mv models/2* models/one",
             fanouts, strategy);
    shell(line);
    assert_ok(weir_model_open(weir_test_path("models/one"), &unsigned_too, &model));
    assert_ok(weir_pack_open(model, weir_kernels_cpu(), &pack));
    assert_ok(weir_snapshot_open(weir_test_path("snapshot"), &(weir_snapshot_opts){0}, &snapshot));
    const weir_nn_shape *shape = weir_pack_look(pack).shape;
    same_steps(shape, steps);
    blocks_are(shape, snapshot, steps);
    weir_snapshot_close(snapshot);
    weir_pack_close(pack);
    weir_model_close(model);
}

static void make(void) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = PEOPLE, .bad = 0.3, .pairs = true};
    learn_snapshot(&plan, weir_test_path("snapshot"));
}

/* A pay is by somebody at somebody; they have pays and know each other. */
static void a_relation_has_what_differs_for_it(void **state) {
    (void)state;
    static const wanted steps[] = {{1, 20, LEARN_BY, WEIR_OUT, WEIR_SAMPLE_UNIFORM},
                                   {1, 10, LEARN_AT, WEIR_OUT, WEIR_SAMPLE_RECENT},
                                   {2, 4, LEARN_BY, WEIR_IN, WEIR_SAMPLE_UNIFORM},
                                   {2, 10, LEARN_AT, WEIR_IN, WEIR_SAMPLE_RECENT},
                                   {2, 10, LEARN_KNOWS, WEIR_OUT, WEIR_SAMPLE_RECENT},
                                   {2, 10, LEARN_KNOWS, WEIR_IN, WEIR_SAMPLE_RECENT},
                                   {0}};
    make();
    model_of("10,10 by=20,5 by.in=0,4", "recent by=uniform", steps);
}

/* What is said of a direction counts more than what is said of its relation, and 0 leaves it out. */
static void a_direction_has_what_differs_for_it(void **state) {
    (void)state;
    static const wanted steps[] = {
        {1, 3, LEARN_BY, WEIR_OUT, WEIR_SAMPLE_RECENT},     {1, 6, LEARN_AT, WEIR_OUT, WEIR_SAMPLE_UNIFORM},
        {2, 5, LEARN_BY, WEIR_IN, WEIR_SAMPLE_RECENT},      {2, 6, LEARN_AT, WEIR_IN, WEIR_SAMPLE_FULL},
        {2, 7, LEARN_KNOWS, WEIR_OUT, WEIR_SAMPLE_UNIFORM}, {0}};
    make();
    model_of("6,6 by=3,5 knows=7,7 knows.in=0,0", "uniform by=recent at.in=full", steps);
}

static void of_three_layers(void **state) {
    (void)state;
    static const wanted steps[] = {
        {1, 2, LEARN_BY, WEIR_OUT, WEIR_SAMPLE_RECENT},    {1, 4, LEARN_AT, WEIR_OUT, WEIR_SAMPLE_UNIFORM},
        {2, 3, LEARN_BY, WEIR_IN, WEIR_SAMPLE_RECENT},     {2, 3, LEARN_AT, WEIR_IN, WEIR_SAMPLE_UNIFORM},
        {2, 3, LEARN_KNOWS, WEIR_OUT, WEIR_SAMPLE_RECENT}, {3, 1, LEARN_BY, WEIR_OUT, WEIR_SAMPLE_RECENT},
        {3, 2, LEARN_AT, WEIR_OUT, WEIR_SAMPLE_UNIFORM},   {3, 2, LEARN_AT, WEIR_IN, WEIR_SAMPLE_UNIFORM},
        {3, 2, LEARN_KNOWS, WEIR_OUT, WEIR_SAMPLE_RECENT}, {0}};
    make();
    model_of("4,3,2 by=2,2,1 by.in=0,3,0 knows.in=0,0,0", "recent at=uniform", steps);
}

WEIR_TESTS(WEIR_CASE(a_relation_has_what_differs_for_it), WEIR_CASE(a_direction_has_what_differs_for_it),
           WEIR_CASE(of_three_layers))
