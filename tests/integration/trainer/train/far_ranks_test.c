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
#define PAYS  500u

/* Pays also have a word of few: a table of embeddings that all ranks have. */
static void snapshot_with_words(uint64_t seed) {
    static const char plain[] = "{x: {kind: number, normalise: standard}}";
    static const char worded[] = "{x: {kind: number, normalise: standard}, c: {kind: category, buckets: 16}}";
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY};
    const char *const at = strstr(learn_schema_text, plain);
    char schema[sizeof learn_schema_text + sizeof worded];
    learn_world w;
    assert_non_null(at);
    snprintf(schema, sizeof schema, "%.*s%s%s", (int)(at - learn_schema_text), learn_schema_text, worded,
             at + strlen(plain));
    learn_open(&w, schema, seed);
    for (uint64_t n = 0; n < PAYS; n++) {
        const int64_t t = LEARN_START_US + (int64_t)n * 60 * LEARN_SECOND;
        const char word[] = {(char)('a' + weir_rng_below(&w.rng, 6)), 0};
        const weir_value values[] = {{.present = true, .number = weir_rng_normal(&w.rng)},
                                     {.present = true, .text = word, .text_length = 1}};
        uint8_t row[64];
        learn_put_row(&w, LEARN_PAY, n, t, row, (uint32_t)weir_row_write(kinds, values, 2, row));
        learn_edge_of(&w, n, weir_rng_below(&w.rng, 30), t, weir_rng_normal(&w.rng), w.offset);
        learn_label(&w, LEARN_BAD, n, word[0] < 'c' ? "yes" : "no", t + 30 * LEARN_SECOND);
    }
    learn_build(&w, weir_test_path("snapshot"), LEARN_START_US + (int64_t)PAYS * 60 * LEARN_SECOND + LEARN_RIPE_US / 2);
}

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
    const weir_kernels *table = far_kernels();
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
        weir_trained *here = rank_trains(comm, &opts, NULL), *there = rank_trains(comm, &opts, table);
        const weir_trained_view a = weir_trained_look(here), b = weir_trained_look(there);
        const uint64_t judged = a.targets->count - a.targets->ends[WEIR_TARGETS_TRAIN];
        assert_memory_equal(a.scores, b.scores, judged * sizeof *a.scores);
        weir_trained_close(here);
        weir_trained_close(there);
    }
    assert_true(far.calls > 100 && far.copied_in > 0 && far.copied_out > 0);
    weir_part_close(part);
    weir_comm_stop(comm);
}

static void two_ranks_in_far_memory_have_the_same_bits(void **state) {
    (void)state;
    snapshot_with_words(weir_test_seed());
    rank_hand_out(&(weir_parts_opts){.parts = RANKS, .method = WEIR_PARTS_RANDOM, .depth = 1, .seed = 1});
    ranks_again(RANKS);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(two_ranks_in_far_memory_have_the_same_bits))
