/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far_test.c - what tests/support/far_kernels.h would see: memory that the host touches, an array of the host's that a
 * kernel is given, a context that two threads use at once.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "far_kernels.h"
#include "weir_test.h"

static bool ends_badly(void (*act)(const weir_kernels *table, weir_real *far_row, weir_real *row)) {
    int status;
    const weir_kernels *table = far_kernels();
    void *memory = NULL;
    assert_ok(table->alloc(table, 64, &memory));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        weir_real row[4] = {0};
        if (!freopen("/dev/null", "w", stderr)) _exit(0);
        act(table, memory, row);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status != 0;
}

static void act_reads(const weir_kernels *table, weir_real *far_row, weir_real *row) {
    (void)table;
    row[0] = *(volatile weir_real *)far_row;
}

static void act_copies(const weir_kernels *table, weir_real *far_row, weir_real *row) {
    table->to_device(table, far_row, row, sizeof *row);
    table->add(table, 1, far_row, far_row);
    table->to_host(table, row, far_row, sizeof *row);
}

static void act_adds_its_own(const weir_kernels *table, weir_real *far_row, weir_real *row) {
    table->add(table, 1, row, far_row);
}

static void *add_elsewhere(void *context) {
    const weir_kernels *table = ((const void *const *)context)[0];
    weir_real *far_row = ((void *const *)context)[1];
    table->add(table, 1, far_row, far_row);
    return NULL;
}

static void act_shares(const weir_kernels *table, weir_real *far_row, const weir_kernels *of_thread) {
    const void *const context[] = {of_thread, far_row};
    pthread_t thread;
    table->add(table, 1, far_row, far_row);
    assert_int_equal(pthread_create(&thread, NULL, add_elsewhere, (void *)(uintptr_t)context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void act_adds_in_a_context_of_two(const weir_kernels *table, weir_real *far_row, weir_real *row) {
    (void)row;
    act_shares(table, far_row, table);
}

static void act_adds_in_two_contexts(const weir_kernels *table, weir_real *far_row, weir_real *row) {
    const weir_kernels *other;
    (void)row;
    assert_ok(table->open(table, &other));
    act_shares(table, far_row, other);
}

static void the_host_and_the_kernels_have_memory_of_their_own(void **state) {
    (void)state;
    assert_true(ends_badly(act_reads));
    assert_false(ends_badly(act_copies));
    assert_true(ends_badly(act_adds_its_own));
}

/* The table that all that follows runs on would see a context that two threads use at once. */
static void k4_a_context_is_one_threads(void **state) {
    (void)state;
    assert_true(ends_badly(act_adds_in_a_context_of_two));
    assert_false(ends_badly(act_adds_in_two_contexts));
}

WEIR_TESTS(WEIR_CASE(the_host_and_the_kernels_have_memory_of_their_own), WEIR_CASE(k4_a_context_is_one_threads))
