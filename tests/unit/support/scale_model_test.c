/* SPDX-License-Identifier: Apache-2.0 */
/* scale_model_test.c - what the model of `weir bench scale` says of a rank's memory, held against sums by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scale_bench.h"
#include "weir_test.h"

#define GIB 1073741824.0

/* 10^10 edges with 3 * 10^9 targets, of which 3 * 10^8 are for judging. */
static const scale_model typical = {.latency_us = 2,
                                    .overhead_us = 0.3,
                                    .gigabits = 100,
                                    .ahead = 4,
                                    .edges = 1e10,
                                    .compute_ms = 1.4,
                                    .rounds = 4,
                                    .remote_bytes = 100 * 1024,
                                    .sums = 8,
                                    .sum_bytes = 255 * 1024,
                                    .part_bytes_edge = 128,
                                    .targets_edge = 0.3,
                                    .judged_edge = 0.03,
                                    .memory_gib = 64};

static void is_near(double is, double wanted) {
    if (fabs(is - wanted) > 1e-9 * wanted) fail_msg("%.12g is not %.12g", is, wanted);
}

static void what_is_known_of_all_targets_does_not_shrink(void **state) {
    (void)state;
    for (uint32_t ranks = 2; ranks <= 1024; ranks *= 2) {
        scale_memory memory = scale_memory_of(&typical, ranks);
        is_near(memory.part, (128e10 + 3e9 * (48 + 8 + 4)) / ranks / GIB); /* its own targets, their ids, numbers */
        is_near(memory.targets, (3e9 * (ranks > 256 ? 7 : 6) + 3e8 * 12) / GIB);
        is_near(memory.target_count, 3e9);
    }
}

static void the_largest_graph_just_fits(void **state) {
    (void)state;
    static const struct {
        uint32_t ranks;
        double memory_gib;
        const char *end;
    } cases[] = {{2, 64, "memory"}, {1024, 64, "targets"}, {1024, 24, "memory"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scale_model m = typical;
        m.memory_gib = cases[i].memory_gib;
        scale_memory memory = scale_memory_of(&m, cases[i].ranks);
        assert_string_equal(scale_end(&memory), cases[i].end);
        const bool by_memory = strcmp(cases[i].end, "memory") == 0;
        double most = by_memory ? memory.edges_memory : memory.edges_targets;
        assert_true(scale_fits(&m, &memory) == (m.edges < most));
        m.edges = most * 0.999;
        memory = scale_memory_of(&m, cases[i].ranks);
        assert_true(scale_fits(&m, &memory));
        m.edges = most;
        memory = scale_memory_of(&m, cases[i].ranks);
        assert_false(scale_fits(&m, &memory));
        if (by_memory)
            is_near(memory.part + memory.targets, m.memory_gib);
        else
            is_near(memory.target_count, 4294967295.0);
    }
}

static void the_verdict_names_time_memory_and_the_end(void **state) {
    (void)state;
    scale_model m = typical;
    char lines[SCALE_VERDICT][160];
    scale_verdict(&m, 1024, lines);
    assert_string_equal(lines[0], "1e+10 edges on 1024 ranks: the time of a step is bound by compute");
    assert_string_equal(lines[1],
                        "a rank needs 24.24 GiB; 22.91 of them, of all 3e+09 targets, do not shrink with more ranks");
    assert_string_equal(lines[2], "the limit of targets ends it first: 64 GiB of a rank hold 2.64e+10 edges, the limit "
                                  "of 2^32 targets allows 1.43e+10");
    m.edges = 2e10;
    scale_verdict(&m, 1024, lines);
    assert_non_null(strstr(lines[2], "allows 1.43e+10; this graph is too large"));
    m.memory_gib = 16;
    scale_verdict(&m, 1024, lines);
    assert_ptr_equal(strstr(lines[2], "memory ends it first: 16 GiB of a rank hold 6.6e+09 edges"), lines[2]);
}

static void the_picture_has_the_verdict(void **state) {
    (void)state;
    const scale_row measured = {.ranks = 1, .step_ms = 1.5};
    char lines[SCALE_VERDICT][160];
    weir_buf svg = {0};
    scale_plot(&typical, 1024, &measured, 1, &svg);
    weir_buf_byte(&svg, '\0');
    assert_ok(weir_buf_err(&svg));
    scale_verdict(&typical, 1024, lines);
    for (unsigned i = 0; i < SCALE_VERDICT; i++)
        assert_non_null(strstr((const char *)svg.bytes, lines[i]));
    weir_buf_free(&svg);
}

WEIR_TESTS(WEIR_CASE(what_is_known_of_all_targets_does_not_shrink), WEIR_CASE(the_largest_graph_just_fits),
           WEIR_CASE(the_verdict_names_time_memory_and_the_end), WEIR_CASE(the_picture_has_the_verdict))
