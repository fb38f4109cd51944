/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_test.c - what a rank of a training on parts takes more of a large graph than of a small one: its share of it,
 * and a few bytes for each target that another rank has.
 */
#include <string.h>
#include <unistd.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "learn_fixture.h"
#include "ranks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define RANKS       8u
#define PAYS        150000u
#define PAYS_FEW    10000u
#define EPOCHS_FEW  "15"          /* of the fewer: as many batches as one of the others */
#define SHARE_MAX   (1.3 / RANKS) /* of the snapshot */
#define KNOWN_BYTES 24.0          /* of each target  */
#define SPARE_BYTES (4.0 * (1 << 20))

/* What the most of each rank was, as mpi_watch.c has written it beside the name. */
static void peaks_of(const char *name, double peaks[RANKS]) {
    for (unsigned rank = 0; rank < RANKS; rank++) {
        char path[4200], *text = NULL;
        size_t length;
        uint64_t numbers[3] = {0}; /* floats, bytes told, and the peak in KiB */
        snprintf(path, sizeof path, "%s.%u", name, rank);
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

/* Of what the store writes with, a rank needs nothing. One object of it that a program takes brings RocksDB along,
 * which costs each rank 8 MiB before it does anything. */
static void a_rank_brings_no_database(void **state) {
    (void)state;
    const char *const argv[] = {"/usr/bin/readelf", "-dW", ranks_train_program(), NULL};
    weir_test_output output;
    if (SANITIZED) weir_test_skip("one program is enough");
    if (access(argv[0], X_OK) != 0) weir_test_skip("there is no readelf; install binutils");
    weir_test_run(argv, NULL, &output);
    assert_int_equal(output.status, 0);
    assert_non_null(strstr(output.out, "[libmpi.so"));
    assert_null(strstr(output.out, "[librocksdb"));
    weir_test_output_free(&output);
}

/* Trains ranks on parts of so many pays, without the snapshot: what each took at most, and the bytes of the whole. */
static double train_pays(const char *name, uint64_t pays, const char *epochs, double peaks[RANKS]) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = pays, .people = pays / 50, .bad = 0.3};
    char parts[4096], snapshot[4096];
    weir_parts_report report;
    weir_snapshot *whole;
    weir_test_output output;
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path(name));
    snprintf(parts, sizeof parts, "%s-parts", snapshot);
    learn_snapshot(&plan, snapshot);
    assert_ok(weir_snapshot_open(snapshot, &(weir_snapshot_opts){.verify = false}, &whole));
    const weir_parts_opts opts = {
        .out = parts, .parts = RANKS, .method = WEIR_PARTS_METIS, .seed = 1, .clock = weir_clock_system()};
    assert_ok(weir_parts_write(whole, &opts, &report));
    const double bytes = (double)weir_snapshot_bytes(whole);
    weir_snapshot_close(whole);
    assert_ok(weir_folder_remove(snapshot));
    const char *const arguments[] = {"--parts",  parts, "--task",    "bad", "--epochs", epochs, "--no-baselines",
                                     "--hidden", "16",  "--fanouts", "6,6", "--batch",  "512",  "--patience",
                                     "0",        NULL};
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", snapshot, 1), 0);
    ranks_run(RANKS, ranks_train_program(), arguments, &output);
    unsetenv("LD_PRELOAD");
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    peaks_of(snapshot, peaks);
    return bytes;
}

/* As many batches are made of each graph, so that what does not depend on its size is the same. */
static void a_rank_takes_its_share(void **state) {
    (void)state;
    double few[RANKS], many[RANKS];
    if (SANITIZED) weir_test_skip("a sanitizer keeps memory of its own");
    const double small = train_pays("small", PAYS_FEW, EPOCHS_FEW, few), large = train_pays("large", PAYS, "1", many);
    const double share = SHARE_MAX * (large - small), known = KNOWN_BYTES * (PAYS - PAYS_FEW);
    for (unsigned rank = 0; rank < RANKS; rank++) {
        const double more = many[rank] - few[rank];
        if (more > share + known + SPARE_BYTES)
            fail_msg(
                "rank %u took %.1f MiB more than on a small graph, of which its share is %.1f and what it knows of "
                "all targets %.1f",
                rank, more / (1 << 20), share / (1 << 20), known / (1 << 20));
    }
    assert_true(share + known + SPARE_BYTES < (large - small) / 2); /* whoever reads half of it is found */
}

WEIR_TESTS(WEIR_CASE(a_rank_brings_no_database), WEIR_CASE(a_rank_takes_its_share))
