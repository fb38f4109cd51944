/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <math.h>
#include <string.h>

#include <weir/store/base/rng.h>

/* The vectors of philox4x32-10 that Random123 publishes (kat_vectors). */
static void philox_gives_the_published_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t out[4];
        weir_philox(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].out, sizeof out);
    }
}

/* What a stream is made of is a promise: samples are replayed years later. */
static void stream_is_these_blocks_in_this_order(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(0x0123456789abcdef, 0xfedcba9876543210, 77);
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    for (uint32_t block = 0; block < 100; block++) {
        const uint32_t counter[4] = {block, 77, 0x76543210, 0xfedcba98};
        uint32_t out[4];
        weir_philox(counter, key, out);
        for (int i = 0; i < 4; i++)
            assert_int_equal(weir_rng_u32(&rng), out[i]);
    }
}

static void draws_consume_the_stream_as_written(void **state) {
    (void)state;
    weir_rng words = weir_rng_stream(1, 2, 3), rng = words;
    uint64_t low = weir_rng_u32(&words), high = weir_rng_u32(&words);
    assert_true(weir_rng_u64(&rng) == (high << 32 | low));
    uint64_t word = weir_rng_u32(&words);
    assert_int_equal(weir_rng_below(&rng, 1000), word * 1000 >> 32);
    weir_rng_u32(&words),
        high = weir_rng_u32(&words); /* from 2^32 on a draw has 64 bits, of which these are the upper */
    assert_int_equal(weir_rng_below(&rng, UINT64_C(1) << 32), high);
    low = weir_rng_u32(&words), high = weir_rng_u32(&words);
    assert_true(weir_rng_double(&rng) == (double)((high << 32 | low) >> 11) / 9007199254740992.0);
    assert_int_equal(weir_rng_u32(&rng), weir_rng_u32(&words));
}

static void same_three_give_the_same_and_others_do_not(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    for (uint64_t i = 0; i < 64; i++) {
        weir_rng rng = weir_rng_stream(seed, i, 5), same = weir_rng_stream(seed, i, 5);
        weir_rng others[] = {weir_rng_stream(seed ^ UINT64_C(1) << i, i, 5),
                             weir_rng_stream(seed, i ^ UINT64_C(1) << i, 5),
                             weir_rng_stream(seed, i, 5 ^ 1u << i % 32)};
        uint64_t first = weir_rng_u64(&rng);
        assert_true(weir_rng_u64(&same) == first);
        for (int other = 0; other < 3; other++)
            assert_true(weir_rng_u64(&others[other]) != first);
    }
}

static void copy_forks_the_stream(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (int used = 0; used < 9; used++) {
        weir_rng fork = rng;
        uint32_t next = weir_rng_u32(&rng);
        assert_int_equal(weir_rng_u32(&fork), next);
    }
}

static void draw_past_the_end(void *context) {
    weir_rng_u32(context);
}

static void stream_ends_after_its_last_block(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(1, 2, 3);
    rng.counter[0] = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++)
        weir_rng_u32(&rng);
    assert_dies(draw_past_the_end, &rng, "assertion failed");
}

/* --- distributions ------------------------------------------------------------------------------------------ */

enum { BUCKETS_MAX = 1000 };

/* Fails where even counts would be this uneven about once in ten million runs (Wilson and Hilferty's approximation). */
static void assert_even(const uint64_t *counts, size_t buckets, uint64_t draws) {
    double expected = (double)draws / (double)buckets, chi2 = 0, free = (double)buckets - 1, spread = 2 / (9 * free);
    for (size_t i = 0; i < buckets; i++)
        chi2 += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    double limit = free * pow(1 - spread + 5.2 * sqrt(spread), 3);
    if (chi2 > limit) fail_msg("chi-square %.1f is over %.1f with %zu buckets", chi2, limit, buckets);
}

static void below_is_even_for_small_bounds(void **state) {
    (void)state;
    static const uint64_t bounds[] = {2, 3, 7, 10, 64, 100, 1000};
    uint64_t draws = weir_test_rounds(200000);
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        weir_rng rng = weir_rng_stream(weir_test_seed(), bounds[b], 0);
        uint64_t counts[BUCKETS_MAX] = {0};
        for (uint64_t i = 0; i < draws; i++) {
            uint64_t drawn = weir_rng_below(&rng, bounds[b]);
            assert_true(drawn < bounds[b]);
            counts[drawn]++;
        }
        assert_even(counts, (size_t)bounds[b], draws);
    }
}

/* Three quarters of the draw's width: without redrawing, a third of the values would come twice as often as the
 * others. */
static void below_has_no_bias_for_large_bounds(void **state) {
    (void)state;
    static const uint64_t bounds[] = {UINT64_C(3) << 30, UINT64_C(3) << 62, UINT64_C(3) << 40,
                                      3 * UINT64_C(1431655765)};
    uint64_t draws = weir_test_rounds(200000);
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        weir_rng rng = weir_rng_stream(weir_test_seed(), b, 1);
        uint64_t residues[3] = {0}, thirds[3] = {0};
        for (uint64_t i = 0; i < draws; i++) {
            uint64_t drawn = weir_rng_below(&rng, bounds[b]);
            residues[drawn % 3]++;
            thirds[drawn / (bounds[b] / 3)]++;
        }
        assert_even(residues, 3, draws);
        assert_even(thirds, 3, draws);
    }
}

static void draw_below_zero(void *context) {
    weir_rng_below(context, 0);
}

static void below_at_its_limits(void **state) {
    (void)state;
    static const uint64_t bounds[] = {1, 2, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX - 1, UINT64_MAX};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 2);
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++)
        for (int i = 0; i < 1000; i++)
            assert_true(weir_rng_below(&rng, bounds[b]) < bounds[b]);
    assert_dies(draw_below_zero, &rng, "bound > 0");
}

/* The first draws of neighbouring streams are as even as those of one stream. */
static void neighbouring_streams_are_independent(void **state) {
    (void)state;
    uint64_t counts[256] = {0}, joint[256] = {0}, draws = weir_test_rounds(200000), seed = weir_test_seed();
    uint32_t before = 0;
    for (uint64_t i = 0; i < draws; i++) {
        weir_rng rng = weir_rng_stream(seed, i, 0);
        uint32_t drawn = weir_rng_u32(&rng);
        counts[drawn >> 24]++;
        joint[drawn >> 28 << 4 | before >> 28]++;
        before = drawn;
    }
    assert_even(counts, 256, draws);
    assert_even(joint, 256, draws);
}

enum { PARTS = 50 };

/* Draws are put through the distribution's own function, which makes them even if they follow it. */
static void assert_follows(double (*draw)(weir_rng *), double (*probability_below)(double)) {
    uint64_t counts[PARTS] = {0}, draws = weir_test_rounds(200000);
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 3);
    for (uint64_t i = 0; i < draws; i++) {
        double part = probability_below(draw(&rng)) * PARTS;
        assert_true(part >= 0 && part <= PARTS);
        counts[part < PARTS ? (size_t)part : PARTS - 1]++;
    }
    assert_even(counts, PARTS, draws);
}

static double identity(double x) {
    assert_true(x >= 0 && x < 1);
    return x;
}

static double exponential_of_mean_3(weir_rng *rng) {
    return weir_rng_exponential(rng, 3);
}

static double exponential_probability(double x) {
    assert_true(x >= 0 && isfinite(x));
    return 1 - exp(-x / 3);
}

static double normal_probability(double x) {
    assert_true(isfinite(x));
    return erfc(-x / sqrt(2)) / 2;
}

static void double_is_even(void **state) {
    (void)state;
    assert_follows(weir_rng_double, identity);
}

static void exponential_has_its_shape(void **state) {
    (void)state;
    assert_follows(exponential_of_mean_3, exponential_probability);
}

static void normal_has_its_shape(void **state) {
    (void)state;
    assert_follows(weir_rng_normal, normal_probability);
}

/* The smallest and the largest double that can be drawn, by blocks that are set by hand. */
static void extreme_draws_stay_finite(void **state) {
    (void)state;
    for (uint32_t word = 0; word <= 1; word++) {
        weir_rng rng = {.block = {-word, -word, -word, -word}};
        weir_rng again = rng, third = rng;
        double drawn = weir_rng_double(&rng);
        assert_true(drawn >= 0 && drawn < 1);
        assert_true(isfinite(weir_rng_exponential(&again, 1)) && weir_rng_exponential(&again, 1) >= 0);
        assert_true(isfinite(weir_rng_normal(&third)));
    }
}

static void fresh_seeds_differ(void **state) {
    (void)state;
    assert_true(weir_rng_fresh_seed() != weir_rng_fresh_seed());
}

WEIR_TESTS(WEIR_CASE(philox_gives_the_published_answers), WEIR_CASE(stream_is_these_blocks_in_this_order),
           WEIR_CASE(draws_consume_the_stream_as_written), WEIR_CASE(same_three_give_the_same_and_others_do_not),
           WEIR_CASE(copy_forks_the_stream), WEIR_CASE(stream_ends_after_its_last_block),
           WEIR_CASE(below_is_even_for_small_bounds), WEIR_CASE(below_has_no_bias_for_large_bounds),
           WEIR_CASE(below_at_its_limits), WEIR_CASE(neighbouring_streams_are_independent), WEIR_CASE(double_is_even),
           WEIR_CASE(exponential_has_its_shape), WEIR_CASE(normal_has_its_shape), WEIR_CASE(extreme_draws_stay_finite),
           WEIR_CASE(fresh_seeds_differ))
