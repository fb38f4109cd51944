/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_test.c - what a rank of a training on parts takes: its share of the graph, and above a program that only talks
 * to other ranks a bound that no graph raises.
 */
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/trainer/comm/comm.h>

#include "learn_fixture.h"
#include "ranks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define RANKS       8u
#define PAYS        20000u
#define SHARE_MAX   (1.3 / RANKS) /* of the snapshot */
#define FIXED_BYTES (12.0 * (1 << 20))

/* What the most of each rank was, as mpi_watch.c has written it beside NAME. */
static void peaks_of(const char *name, double peaks[RANKS]) {
    for (unsigned rank = 0; rank < RANKS; rank++) {
        char path[4200], *text = NULL;
        size_t length;
        uint64_t numbers[3] = {0}; /* floats, bytes told, and the peak in KiB */
        snprintf(path, sizeof path, "%s.%u", weir_test_path(name), rank);
        assert_ok(weir_file_load(path, 4096, &text, &length));
        char *at = strstr(text, "sums ");
        assert_non_null(at);
        at += strlen("sums ");
        for (unsigned i = 0; i < 3; i++)
            numbers[i] = strtoull(at, &at, 10);
        assert_true(numbers[2] > 0);
        peaks[rank] = (double)numbers[2] * 1024;
        weir_free(text);
    }
}

/* What the case below starts to have something to compare with: a rank that does nothing. */
static void one_rank(void **state) {
    (void)state;
    weir_comm *comm = NULL;
    if (!getenv("MEMORY_TEST_RANK")) weir_test_skip("started by the other case");
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    weir_comm_barrier(comm);
    weir_comm_stop(comm);
}

/* Of what the store writes with, a rank needs nothing. One object of it that a program takes brings RocksDB along,
 * which costs each rank 8 MiB before it does anything. */
static void a_rank_brings_no_database(void **state) {
    (void)state;
    const char *const argv[] = {"/usr/bin/readelf", "-dW", ranks_train_program(), NULL};
    weir_test_output output;
    if (SANITIZED) weir_test_skip("one program is enough");
    weir_test_run(argv, NULL, &output);
    assert_int_equal(output.status, 0);
    assert_non_null(strstr(output.out, "[libmpi.so"));
    assert_null(strstr(output.out, "[librocksdb"));
    weir_test_output_free(&output);
}

static uint64_t cut_pays(const char *parts) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = 400, .bad = 0.3};
    const char *snapshot = weir_test_path("snapshot");
    weir_parts_report report;
    weir_snapshot *whole;
    learn_snapshot(&plan, snapshot);
    assert_ok(weir_snapshot_open(snapshot, &(weir_snapshot_opts){.verify = false}, &whole));
    const weir_parts_opts opts = {
        .out = parts, .parts = RANKS, .method = WEIR_PARTS_METIS, .seed = 1, .clock = weir_clock_system()};
    assert_ok(weir_parts_write(whole, &opts, &report));
    uint64_t bytes = weir_snapshot_bytes(whole);
    weir_snapshot_close(whole);
    return bytes;
}

static void a_rank_takes_its_share_and_a_fixed_part(void **state) {
    (void)state;
    char parts[4096];
    double idle[RANKS], trained[RANKS];
    weir_test_output output;
    if (SANITIZED) weir_test_skip("a sanitizer keeps memory of its own");
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts"));
    const double share = SHARE_MAX * (double)cut_pays(parts);
    const char *const arguments[] = {"--parts",   parts, "--task",  "bad", "--epochs",       "2", "--hidden", "16",
                                     "--fanouts", "6,6", "--batch", "64",  "--no-baselines", NULL};
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("MEMORY_TEST_RANK", "1", 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("idle"), 1), 0);
    ranks_again(RANKS);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("trained"), 1), 0);
    ranks_run(RANKS, ranks_train_program(), arguments, &output);
    unsetenv("LD_PRELOAD");
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    peaks_of("idle", idle);
    peaks_of("trained", trained);
    for (unsigned rank = 0; rank < RANKS; rank++) {
        double above = trained[rank] - idle[rank];
        if (above > share + FIXED_BYTES)
            fail_msg("rank %u took %.1f MiB more than an idle one, of which its share of the graph is %.1f", rank,
                     above / (1 << 20), share / (1 << 20));
    }
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(a_rank_brings_no_database),
           WEIR_CASE(a_rank_takes_its_share_and_a_fixed_part))
