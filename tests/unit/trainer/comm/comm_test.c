/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_test.c - ranks: each case is run alone, as one rank without MPI, and again by ranks_2 and ranks_4 under mpirun,
 * where this program runs it by its name. What must come out is worked out by each rank on its own, from all numbers.
 */
#include "weir_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base/alloc.h>
#include <weir/base/rng.h>
#include <weir/base/thread.h>
#include <weir/trainer/comm.h>

static weir_comm *comm_open(uint32_t *rankp, uint32_t *sizep) {
    weir_comm *comm = NULL;
    const char *wanted = getenv("WEIR_TEST_RANKS");
    assert_ok(weir_comm_open(&comm));
    *rankp = weir_comm_rank(comm);
    *sizep = weir_comm_size(comm);
    assert_int_equal(*sizep, wanted ? atoi(wanted) : 1);
    assert_true(*rankp < *sizep);
    return comm;
}

/* The i-th number of a rank: of any size, so that another order of adding gives other bits. */
static double number_of(uint32_t rank, uint64_t i) {
    weir_rng rng = weir_rng_stream(77, i, rank);
    return ldexp(weir_rng_double(&rng) - 0.5, (int)weir_rng_below(&rng, 40) - 20);
}

/* --- cases of every rank ----------------------------------------------------------------------------------------- */

static void c1_sums_are_taken_in_the_order_of_ranks(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 3, 1000, 100003};
    uint32_t rank, size;
    weir_comm *comm = comm_open(&rank, &size);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        float *singles = calloc(counts[c] + 1, sizeof *singles);
        double *doubles = calloc(counts[c] + 1, sizeof *doubles);
        for (size_t i = 0; i < counts[c]; i++) {
            doubles[i] = number_of(rank, i);
            singles[i] = (float)doubles[i];
        }
        assert_ok(weir_comm_sum_f32(comm, singles, counts[c]));
        assert_ok(weir_comm_sum_f64(comm, doubles, counts[c]));
        for (size_t i = 0; i < counts[c]; i++) {
            double of_singles = 0, of_doubles = 0;
            for (uint32_t r = 0; r < size; r++) {
                of_singles += (double)(float)number_of(r, i);
                of_doubles += number_of(r, i);
            }
            assert_true(singles[i] == (float)of_singles);
            assert_true(doubles[i] == of_doubles);
        }
        free(singles);
        free(doubles);
    }
    weir_comm_close(comm);
}

/* From rank a to rank b go as many bytes as both can work out; some pairs have none. */
static uint64_t length_of(uint32_t a, uint32_t b, uint32_t round) {
    weir_rng rng = weir_rng_stream(a * 100 + b, round, 0);
    return weir_rng_below(&rng, 3) == 0 ? 0 : weir_rng_below(&rng, 200000);
}

static void everybody_gets_what_was_sent(void **state) {
    (void)state;
    uint32_t rank, size;
    weir_comm *comm = comm_open(&rank, &size);
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t send_bytes[64], received_bytes[64], sum = 0;
        void *received = NULL;
        for (uint32_t r = 0; r < size; r++)
            sum += send_bytes[r] = length_of(rank, r, round);
        uint8_t *send = malloc(sum + 1), *to = send;
        for (uint32_t r = 0; r < size; to += send_bytes[r++])
            memset(to, (int)(1 + rank * size + r + round), send_bytes[r]);
        assert_ok(weir_comm_exchange(comm, send, send_bytes, &received, received_bytes));
        const uint8_t *at = received;
        for (uint32_t r = 0; r < size; at += received_bytes[r++]) {
            assert_int_equal(received_bytes[r], length_of(r, rank, round));
            for (uint64_t i = 0; i < received_bytes[r]; i++)
                assert_true(at[i] == (uint8_t)(1 + r * size + rank + round));
        }
        weir_free(received);
        free(send);
    }
    weir_comm_close(comm);
}

static void one_word_reaches_all(void **state) {
    (void)state;
    uint32_t rank, size;
    weir_comm *comm = comm_open(&rank, &size);
    for (uint32_t from = 0; from < size; from++) {
        uint32_t words[1000] = {0};
        if (rank == from) {
            for (uint32_t i = 0; i < 1000; i++)
                words[i] = from * 1000 + i;
        }
        assert_ok(weir_comm_broadcast(comm, from, words, sizeof words));
        for (uint32_t i = 0; i < 1000; i++)
            assert_int_equal(words[i], from * 1000 + i);
        int64_t most = rank == from ? 5 : -7;
        assert_ok(weir_comm_max_i64(comm, &most));
        assert_int_equal(most, 5);
        assert_ok(weir_comm_barrier(comm));
    }
    weir_comm_close(comm);
}

typedef struct beside {
    weir_comm *comm;
    uint32_t rank, size;
    bool right;
} beside;

static void sum_beside(void *context) {
    beside *b = context;
    b->right = true;
    for (int i = 0; i < 200; i++) {
        float numbers[7];
        for (int k = 0; k < 7; k++)
            numbers[k] = (float)(b->rank + 1);
        weir_err err = weir_comm_sum_f32(b->comm, numbers, 7);
        b->right = b->right && !err && numbers[6] == (float)(b->size * (b->size + 1)) / 2;
    }
}

static void channels_do_not_mix(void **state) {
    (void)state;
    beside b = {0};
    weir_thread *thread = NULL;
    weir_comm *comm = comm_open(&b.rank, &b.size);
    assert_ok(weir_comm_channel(comm, &b.comm));
    assert_ok(weir_thread_start("sums", WEIR_ROLE_TEST, sum_beside, &b, &thread));
    for (int i = 0; i < 200; i++) {
        double number = 1;
        assert_ok(weir_comm_sum_f64(comm, &number, 1));
        assert_true(number == b.size);
    }
    weir_thread_join(thread);
    assert_true(b.right);
    weir_comm_close(b.comm);
    weir_comm_close(comm);
}

/* Alone there is nobody to end: the error comes back with the rank's name. */
static void a_failing_rank_is_named(void **state) {
    (void)state;
    uint32_t rank, size;
    weir_comm *comm = comm_open(&rank, &size);
    if (rank == size - 1) {
        weir_err err = weir_comm_fail(comm, WEIR_ERR(WEIR_EFULL, "the disk is full; free some space"));
        assert_err(err, WEIR_EFULL, "rank 0 of 1: the disk is full");
    } else {
        assert_ok(weir_comm_barrier(comm)); /* never ends by itself */
    }
    weir_comm_close(comm);
}

/* --- under mpirun ------------------------------------------------------------------------------------------------ */

static void run_ranks(const char *count, const char *name, weir_test_output *output) {
    char self[4096], ranks[64];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    snprintf(ranks, sizeof ranks, "WEIR_TEST_RANKS=%s", count);
    /* Open MPI keeps what it took until the process ends, which a sanitizer calls a leak. */
    const char *const environment[] = {ranks,
                                       "ASAN_OPTIONS=detect_leaks=0",
                                       "OMPI_MCA_rmaps_base_oversubscribe=1",
                                       "OMPI_ALLOW_RUN_AS_ROOT=1",
                                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                       NULL};
    const char *const argv[] = {"mpirun", "--oversubscribe", "-n", count, self, name, NULL};
    if (system("command -v mpirun >/dev/null") != 0) weir_test_skip("there is no mpirun here");
    if (strcmp(weir_test_sanitizer(), "thread") == 0) weir_test_skip("Open MPI is not built for the thread sanitizer");
    weir_test_run(argv, environment, output);
}

static void passes_with(const char *count, const char *name) {
    weir_test_output output;
    run_ranks(count, name, &output);
    if (output.status)
        print_error("%s ranks, %s: status %d\n%s\n%s\n", count, name, output.status, output.out, output.err);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
}

static void ranks_pass(const char *count) {
    passes_with(count, "c1_sums_are_taken_in_the_order_of_ranks");
    passes_with(count, "everybody_gets_what_was_sent");
    passes_with(count, "one_word_reaches_all");
    passes_with(count, "channels_do_not_mix");
}

static void ranks_2(void **state) {
    (void)state;
    ranks_pass("2");
}

static void ranks_4(void **state) {
    (void)state;
    ranks_pass("4");
}

static void a_rank_that_fails_ends_all_and_is_named(void **state) {
    (void)state;
    weir_test_output output;
    run_ranks("4", "a_failing_rank_is_named", &output);
    assert_int_equal(output.status, 69);
    assert_non_null(strstr(output.err, "weir train: rank 3 of 4: the disk is full; free some space\n"));
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(c1_sums_are_taken_in_the_order_of_ranks), WEIR_CASE(everybody_gets_what_was_sent),
           WEIR_CASE(one_word_reaches_all), WEIR_CASE(channels_do_not_mix), WEIR_CASE(a_failing_rank_is_named),
           WEIR_CASE(ranks_2), WEIR_CASE(ranks_4), WEIR_CASE(a_rank_that_fails_ends_all_and_is_named))
