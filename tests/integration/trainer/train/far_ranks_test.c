/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far_ranks_test.c - two ranks with parts train in memory that is not the host's: rows of embeddings go between them,
 * gradients are added up, and all has the bits of the same ranks on the processor.
 */
#include "far_kernels.h"
#include "rank_fixture.h"
#include "ranks.h"
#include "train_fixture.h"

#define RANKS 2u

static weir_trained *rank_trains(weir_comm *comm, const weir_train_opts *opts, const weir_kernels *kernels) {
    weir_train_opts o = *opts;
    weir_trained *trained = NULL;
    o.kernels = kernels;
    assert_ok(weir_train_run(comm, &o, &trained));
    return trained;
}

static void one_rank(void **state) {
    (void)state;
    static const uint32_t embedded[] = {LEARN_WHO};
    const weir_kernels table = far_kernels();
    weir_comm *comm = NULL;
    rank_or_skip();
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    weir_part *part = rank_part(weir_comm_rank(comm));
    weir_train_opts opts = train_opts_of(weir_part_snapshot(part));
    opts.part = part;
    opts.epochs = 2;
    for (uint32_t i = 0; i < 2; i++) {
        opts.embedded = embedded;
        opts.embedded_count = i;
        opts.local = i == 1;
        opts.dropout = 0.1;
        weir_trained *here = rank_trains(comm, &opts, NULL), *there = rank_trains(comm, &opts, &table);
        const weir_trained_view a = weir_trained_look(here), b = weir_trained_look(there);
        const uint64_t judged = a.targets->count - a.targets->ends[WEIR_TARGETS_TRAIN];
        assert_memory_equal(a.scores, b.scores, judged * sizeof *a.scores);
        weir_trained_close(here);
        weir_trained_close(there);
    }
    assert_true(far.calls > 100);
    weir_part_close(part);
    weir_comm_stop(comm);
}

static void two_ranks_in_far_memory_have_the_same_bits(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 500, .people = 30, .bad = 0.3};
    rank_prepare(&plan, &(weir_parts_opts){.parts = RANKS, .method = WEIR_PARTS_RANDOM, .depth = 1, .seed = 1});
    ranks_again(RANKS);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(two_ranks_in_far_memory_have_the_same_bits))
