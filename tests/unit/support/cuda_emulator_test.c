/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_emulator_test.c - the emulator finds what is planted and nothing else: right programs for kernels have no
 * finding whatever is drawn, and each fault has one of its kind for every seed.
 */
#include "weir_test.h"

#include <stdio.h>
#include <string.h>

#include "cuda/emulator.h"
#include "cuda/planted.h"

static void right_programs_have_no_finding(void **state) {
    (void)state;
    size_t programs, count;
    const planted *right = planted_right(&programs);
    const uint64_t seed = weir_test_seed(), rounds = weir_test_rounds(200);
    for (uint64_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < programs; i++) {
            emu_reset(seed + round);
            const bool is_right = right[i].run();
            emu_findings(&count);
            emu_print_findings();
            if (!is_right || count > 0) fail_msg("%s, round %d", right[i].name, (int)round);
            assert_int_equal(emu_counts().live_bytes, 0);
        }
}

static void every_fault_is_found_with_every_seed(void **state) {
    (void)state;
    size_t programs;
    const planted *faults = planted_faults(&programs);
    const uint64_t seed = weir_test_seed(), rounds = weir_test_rounds(50);
    for (size_t i = 0; i < programs; i++) {
        uint64_t found = 0;
        for (uint64_t round = 0; round < rounds; round++) {
            emu_reset(seed + round);
            faults[i].run();
            found += emu_found(faults[i].kind);
        }
        emu_print_findings();
        printf("%s: %s %d times\n", faults[i].name, emu_kind_name(faults[i].kind), (int)found);
        if (found != rounds) fail_msg("%s was found %d times", faults[i].name, (int)found);
    }
}

static const planted *fault(const char *name) {
    size_t programs;
    const planted *faults = planted_faults(&programs);
    for (size_t i = 0; i < programs; i++)
        if (strcmp(faults[i].name, name) == 0) return &faults[i];
    fail_msg("no fault %s", name);
    return NULL;
}

/* What is said leads to the line: which kernel and thread, and where beside which allocation. */
static void a_finding_says_where(void **state) {
    (void)state;
    size_t count;
    emu_reset(weir_test_seed());
    fault("one past the end")->run();
    const emu_finding *found = emu_findings(&count);
    assert_int_equal(count, 1);
    assert_string_equal(found->name, "write_at");
    assert_string_equal(found->space, "device");
    assert_true(found->kind == EMU_OUT_OF_BOUNDS && found->writes);
    assert_true(found->block == 0 && found->thread == 3 && found->allocation == 1);
    assert_true(found->offset == 44 && found->bytes == 4);
    fault("one before the beginning")->run(); /* nothing runs any more */
    emu_findings(&count);
    assert_int_equal(count, 1);
    emu_reset(weir_test_seed());
    fault("one before the beginning")->run();
    found = emu_findings(&count);
    assert_true(count == 1 && found->offset == -4 && found->allocation == 1);
}

/* A fault that is only wrong in the values that come of it is wrong with some seeds: what the orders are drawn for. */
static void orders_differ_in_what_comes_of_them(void **state) {
    (void)state;
    static const char *const names[] = {"no barrier after the store", "no barrier between two uses of a tile",
                                        "a counter that is not atomic", "a kernel before the copy",
                                        "the host reads before the event"};
    const uint64_t seed = weir_test_seed();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsigned wrong = 0;
        for (unsigned round = 0; round < 50; round++) {
            emu_reset(seed + round);
            wrong += !fault(names[i])->run();
        }
        printf("%s: %u of 50 have wrong values\n", names[i], wrong);
        assert_true(wrong > 0);
    }
}

static void a_seed_repeats_an_order(void **state) {
    (void)state;
    const uint64_t seed = weir_test_seed();
    unsigned orders[4];
    for (unsigned i = 0; i < 4; i++) {
        emu_reset(seed + i / 2);
        orders[i] = planted_order();
    }
    assert_int_equal(orders[0], orders[1]);
    assert_int_equal(orders[2], orders[3]);
    assert_int_not_equal(orders[0], orders[2]);
}

static void after_a_fault_nothing_works(void **state) {
    (void)state;
    emu_reset(weir_test_seed());
    assert_true(planted_stays_broken());
    emu_reset(weir_test_seed());
    assert_true(planted_calls_are_refused());
    emu_reset(weir_test_seed());
    assert_true(planted_memory_ends());
}

static void work_is_counted(void **state) {
    (void)state;
    emu_reset(weir_test_seed());
    planted_order();
    const emu_counted counted = emu_counts();
    assert_true(counted.launches == 1 && counted.copies == 2 && counted.fills == 0);
    assert_true(counted.allocations == 2 && counted.frees == 2 && counted.live_bytes == 0);
    assert_true(counted.bytes_to_device == 4 && counted.bytes_to_host == 4 * 64 * 4 && counted.bytes_on_device == 0);
    assert_true(counted.syncs >= 2);
}

/* Operations have their numbers again after a reset: what those of before shared is not what these share. */
static void what_was_shared_is_forgotten(void **state) {
    (void)state;
    size_t count;
    for (uint64_t round = 0; round < 4; round++) {
        emu_reset(weir_test_seed() + round);
        assert_true(planted_shares_first());
        emu_findings(&count);
        emu_print_findings();
        assert_int_equal(count, 0);
    }
}

static void the_host_may_not_touch_device_memory(void **state) {
    (void)state;
    emu_reset(weir_test_seed());
    assert_dies(planted_host_touches, NULL, "the host touched device memory");
}

WEIR_TESTS(WEIR_CASE(right_programs_have_no_finding), WEIR_CASE(every_fault_is_found_with_every_seed),
           WEIR_CASE(a_finding_says_where), WEIR_CASE(orders_differ_in_what_comes_of_them),
           WEIR_CASE(a_seed_repeats_an_order), WEIR_CASE(after_a_fault_nothing_works), WEIR_CASE(work_is_counted),
           WEIR_CASE(what_was_shared_is_forgotten), WEIR_CASE(the_host_may_not_touch_device_memory))
