/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_test.c - ranks that talk: each case starts this program again under mpirun, where every rank knows what each
 * other one must have sent, because all is a function of their numbers and a seed.
 */
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>
#include <weir/trainer/comm/comm.h>

#include "ranks.h"

#define ROUNDS  30u
#define NUMBERS 1000u
#define PIECE   5000u

/* What rank `from` tells rank `to` in a round. */
static uint64_t letter(uint64_t seed, uint32_t from, uint32_t to, uint32_t round, char *bytes) {
    weir_rng rng = weir_rng_stream(seed, from * 64 + to, round);
    uint64_t length = weir_rng_below(&rng, 3) ? weir_rng_below(&rng, PIECE) : 0;
    for (uint64_t i = 0; i < length; i++)
        bytes[i] = (char)weir_rng_below(&rng, 256);
    return length;
}

static void exchange_round(weir_comm *comm, uint64_t seed, uint32_t round) {
    uint32_t rank = weir_comm_rank(comm), ranks = weir_comm_ranks(comm);
    uint64_t lengths[8], received[8];
    char piece[PIECE];
    weir_buf out = {0}, in = {0};
    for (uint32_t to = 0; to < ranks; to++) {
        lengths[to] = letter(seed, rank, to, round, piece);
        weir_buf_append(&out, piece, lengths[to]);
    }
    weir_buf_append(&in, "kept", 4); /* what was there stays */
    assert_ok(weir_comm_exchange(comm, out.bytes, lengths, &in, received));
    const char *at = in.bytes + 4;
    assert_memory_equal(in.bytes, "kept", 4);
    for (uint32_t from = 0; from < ranks; from++) {
        assert_int_equal(received[from], letter(seed, from, rank, round, piece));
        if (received[from]) assert_memory_equal(at, piece, received[from]);
        at += received[from];
    }
    assert_true(at == in.bytes + in.length);
    weir_buf_free(&out);
    weir_buf_free(&in);
}

/* Everybody hears what each has told itself. */
static void gather_round(weir_comm *comm, uint64_t seed, uint32_t round) {
    uint32_t rank = weir_comm_rank(comm), ranks = weir_comm_ranks(comm);
    uint64_t lengths[8];
    char piece[PIECE];
    weir_buf in = {0};
    weir_buf_append(&in, "kept", 4);
    assert_ok(weir_comm_gather(comm, piece, letter(seed, rank, rank, round, piece), &in, lengths));
    const char *at = in.bytes + 4;
    assert_memory_equal(in.bytes, "kept", 4);
    for (uint32_t from = 0; from < ranks; from++) {
        assert_int_equal(lengths[from], letter(seed, from, from, round, piece));
        if (lengths[from]) assert_memory_equal(at, piece, lengths[from]);
        at += lengths[from];
    }
    assert_true(at == in.bytes + in.length);
    weir_buf_free(&in);
}

/* Small whole numbers: every order of a sum is exact. */
static void sum_round(weir_comm *comm, uint32_t round) {
    uint32_t rank = weir_comm_rank(comm), ranks = weir_comm_ranks(comm);
    static float floats[NUMBERS];
    static double doubles[NUMBERS];
    for (uint32_t i = 0; i < NUMBERS; i++)
        doubles[i] = floats[i] = (float)((rank + 1) * (i + round));
    weir_comm_sum_floats(comm, floats, NUMBERS);
    weir_comm_sum_doubles(comm, doubles, NUMBERS);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint32_t shares = ranks * (ranks + 1) / 2;
        double expected = (double)shares * (double)(i + round);
        assert_true((double)floats[i] == expected && doubles[i] == expected);
    }
}

/* Sums that round: everybody has rank 0's bits, and has them twice. */
static void m1_same_bits(weir_comm *comm) {
    static float one[NUMBERS], two[NUMBERS], first[NUMBERS];
    weir_rng rng = weir_rng_stream(9, weir_comm_rank(comm), 0);
    for (uint32_t i = 0; i < NUMBERS; i++)
        one[i] = two[i] = (float)weir_rng_normal(&rng);
    weir_comm_sum_floats(comm, one, NUMBERS);
    weir_comm_sum_floats(comm, two, NUMBERS);
    memcpy(first, one, sizeof first);
    weir_comm_broadcast(comm, first, sizeof first);
    assert_memory_equal(one, two, sizeof one);
    assert_memory_equal(one, first, sizeof one);
}

#define MANY 200000u /* more than what MPI sums in another way than a few */

/* Sums that round, of the whole, and of pieces of any length, several under way at a time. */
static void m3_pieces_have_the_bits_of_the_whole(weir_comm *comm, uint64_t seed) {
    static float whole[MANY], pieces[MANY];
    weir_rng rng = weir_rng_stream(seed, 5 + weir_comm_rank(comm), 0), cuts = weir_rng_stream(seed, 4, 0);
    for (uint32_t i = 0; i < MANY; i++)
        whole[i] = pieces[i] = (float)weir_rng_normal(&rng);
    weir_comm_sum_floats(comm, whole, MANY);
    for (size_t begin = 0; begin < MANY;) {
        size_t most = weir_rng_below(&cuts, 50) ? 1000 : MANY / 2, length = 1 + weir_rng_below(&cuts, most);
        if (length > MANY - begin) length = MANY - begin;
        if (weir_rng_below(&cuts, 4))
            weir_comm_sum_floats_begin(comm, pieces + begin, length); /* more of them than a channel has at a time */
        else
            weir_comm_sum_floats(comm, pieces + begin, length);
        begin += length;
    }
    while (weir_comm_sums_look(comm) > 0) {
    }
    assert_memory_equal(whole, pieces, sizeof whole);
}

static void rank_main(void) {
    weir_comm *comm = NULL, *channel = NULL;
    uint64_t seed = 0;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    assert_int_equal(weir_comm_ranks(comm), strtoul(getenv("COMM_TEST_RANKS"), NULL, 10));
    assert_int_equal(weir_comm_beside(comm), weir_comm_rank(comm)); /* all are on this machine */
    assert_ok(weir_comm_channel(comm, &channel));
    if (weir_comm_rank(comm) == 0) seed = strtoull(getenv("COMM_TEST_SEED"), NULL, 10);
    weir_comm_broadcast(comm, &seed, sizeof seed);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        exchange_round(channel, seed, round);
        gather_round(channel, seed, round);
        sum_round(comm, round);
    }
    m1_same_bits(comm);
    m3_pieces_have_the_bits_of_the_whole(comm, seed);
    weir_comm_barrier(comm);
    weir_comm_channel_close(channel);
    weir_comm_stop(comm);
}

static void ranks_talk(unsigned ranks) {
    char seed[24], number[8];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)weir_test_seed());
    snprintf(number, sizeof number, "%u", ranks);
    setenv("COMM_TEST_SEED", seed, 1);
    setenv("COMM_TEST_RANKS", number, 1);
    ranks_again(ranks);
}

/* Rank 1 is late; whoever waits for it names it, though it does not name itself. */
static void late_rank(void) {
    weir_clock *clock = weir_clock_system();
    weir_comm *comm;
    uint64_t lengths[3] = {1, 1, 1}, received[3];
    weir_buf in = {0};
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    weir_comm_say_silence(comm, 2000000);
    weir_comm_barrier(comm);
    if (weir_comm_rank(comm) == 1) weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + 6000000);
    assert_ok(weir_comm_exchange(comm, "abc", lengths, &in, received));
    assert_int_equal(in.length, 3);
    weir_buf_free(&in);
    weir_comm_stop(comm);
}

/* What the cases below start; by itself it has nothing to do. */
static void one_rank(void **state) {
    (void)state;
    const bool late = getenv("COMM_TEST_LATE") != NULL;
    if (!late && !getenv("COMM_TEST_RANKS")) weir_test_skip("started by the other cases");
    if (late)
        late_rank();
    else
        rank_main();
}

static void who_waits_says_for_whom(void **state) {
    (void)state;
    weir_test_output output;
    setenv("COMM_TEST_LATE", "1", 1);
    ranks_again_and_say(3, &output);
    unsetenv("COMM_TEST_LATE");
    for (unsigned waits = 0; waits < 3; waits += 2) {
        char line[64];
        snprintf(line, sizeof line, "weir train: rank %u of 3 on ", waits);
        const char *said = strstr(output.err, line), *end = said ? strchr(said, '\n') : NULL;
        const char *whom = said ? strstr(said, " s for rank 1, which is stopped or slow") : NULL;
        if (!whom || whom > end) fail_msg("%s", output.err);
    }
    weir_test_output_free(&output);
}

static void m2_one_rank_talks_to_nobody(void **state) {
    (void)state;
    ranks_talk(1);
}

static void m1_two_ranks(void **state) {
    (void)state;
    ranks_talk(2);
}

static void m1_four_ranks(void **state) {
    (void)state;
    ranks_talk(4);
}

static void m3_five_ranks(void **state) {
    (void)state;
    ranks_talk(5);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(who_waits_says_for_whom), WEIR_CASE(m2_one_rank_talks_to_nobody),
           WEIR_CASE(m1_two_ranks), WEIR_CASE(m1_four_ranks), WEIR_CASE(m3_five_ranks))
