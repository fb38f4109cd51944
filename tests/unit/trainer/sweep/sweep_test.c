/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_test.c - what is tried, by chance and by number; and who goes on to the next rung. */
#include "weir_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>

#include "sweep_private.h"

#define DRAWS 4000u

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void values_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        weir_sweep_kind kind;
        bool whole;
        uint32_t choices;
    } rows[] = {
        {"hidden=32|64|128", WEIR_SWEEP_CHOICE, false, 3},    {"fanouts=10,10|5,5", WEIR_SWEEP_CHOICE, false, 2},
        {"strategy=recent", WEIR_SWEEP_CHOICE, false, 1},     {"batch=64..512", WEIR_SWEEP_EVEN, true, 0},
        {"dropout=0..0.5", WEIR_SWEEP_EVEN, false, 0},        {"rate=log:1e-4..1e-2", WEIR_SWEEP_LOG, false, 0},
        {"negatives=log:1..1000", WEIR_SWEEP_LOG, true, 0},   {"decay=-1..1", WEIR_SWEEP_EVEN, false, 0},
        {"fanouts=5 by=1..2|3", WEIR_SWEEP_CHOICE, false, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_sweep_try try;
        assert_ok(weir_sweep_try_read(rows[i].text, &try));
        assert_int_equal(strncmp(try.name, rows[i].text, strlen(try.name)), 0);
        assert_int_equal(try.kind, rows[i].kind);
        assert_int_equal(try.choices, rows[i].choices);
        if (rows[i].kind != WEIR_SWEEP_CHOICE) assert_int_equal(try.whole, rows[i].whole);
    }
}

static void other_values_are_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"rate", "give NAME=VALUES"},       {"=1|2", "give NAME=VALUES"},    {"--rate=1|2", "give NAME=VALUES"},
        {"Rate=1", "give NAME=VALUES"},     {"rate=", "1 to 255 bytes"},     {"rate=1|", "1 to 255 bytes"},
        {"rate=|1", "1 to 255 bytes"},      {"rate=1||2", "1 to 255 bytes"}, {"rate=1..", "no range"},
        {"rate=..1", "no range"},           {"rate=a..b", "no range"},       {"rate=1..2..3", "no range"},
        {"rate=2..1", "does not rise"},     {"rate=1..1", "does not rise"},  {"rate=log:0..1", "no logarithm"},
        {"rate=log:-1..1", "no logarithm"}, {"rate=log:1", "no range"},      {"rate=0..1e999", "no range"},
        {"rate=nan..1", "no range"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_sweep_try try;
        assert_err(weir_sweep_try_read(rows[i][0], &try), WEIR_EUSAGE, rows[i][1]);
    }
}

/* Any bytes are values or refused, and what is read can be drawn. */
static void any_text_is_read_or_refused(void **state) {
    static const char letters[] = "ab=|.0123456789log:e-+,";
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    uint64_t good = 0;
    (void)state;
    for (uint64_t round = 0; round < weir_test_rounds(20000); round++) {
        char text[24], value[WEIR_SWEEP_VALUE_MAX];
        const size_t length = weir_rng_below(&rng, sizeof text);
        weir_sweep_try try;
        for (size_t i = 0; i < length; i++)
            text[i] = letters[weir_rng_below(&rng, sizeof letters - 1)];
        text[length] = 0;
        if (length > 2 && weir_rng_below(&rng, 2)) memcpy(text, "a=", 2);
        weir_err err = weir_sweep_try_read(text, &try);
        if (err) {
            assert_err(err, WEIR_EUSAGE, NULL);
            continue;
        }
        good++;
        weir_sweep_draw(&try, 1, (uint32_t)round, value);
        assert_true(*value);
    }
    assert_true(good > 100);
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

static weir_sweep_try try_of(const char *text) {
    weir_sweep_try try;
    assert_ok(weir_sweep_try_read(text, &try));
    return try;
}

static double drawn(const weir_sweep_try *try, uint64_t seed, uint32_t trial) {
    char value[WEIR_SWEEP_VALUE_MAX], *end;
    weir_sweep_draw(try, seed, trial, value);
    const double number = strtod(value, &end);
    assert_true(!*end);
    return number;
}

/* Chi-square of counts that should be equal, whose deviation is the root of twice its degrees: eight of them are not
 * chance. */
static void are_even(const uint32_t *counts, size_t count) {
    double chi = 0, each = 0;
    for (size_t i = 0; i < count; i++)
        each += (double)counts[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        chi += (counts[i] - each) * (counts[i] - each) / each;
    const double degrees = (double)count - 1, most = degrees + 8 * sqrt(2 * degrees);
    if (chi > most) fail_msg("chi-square %.1f with %.0f degrees", chi, degrees);
}

static void choices_are_even(void **state) {
    const weir_sweep_try try = try_of("hidden=0|1|2|3|4");
    uint32_t counts[5] = {0};
    (void)state;
    const uint64_t seed = weir_test_seed();
    for (uint32_t trial = 1; trial <= DRAWS; trial++)
        counts[(size_t)drawn(&try, seed, trial)]++;
    are_even(counts, 5);
}

static void ranges_are_even(void **state) {
    const weir_sweep_try even = try_of("dropout=0.25..0.75"), whole = try_of("batch=3..12");
    uint32_t counts[2][10] = {{0}};
    (void)state;
    const uint64_t seed = weir_test_seed();
    for (uint32_t trial = 1; trial <= DRAWS; trial++) {
        const double share = (drawn(&even, seed, trial) - 0.25) / 0.5, number = drawn(&whole, seed, trial);
        assert_true(share >= 0 && share <= 1 && number >= 3 && number <= 12 && number == floor(number));
        counts[0][share < 1 ? (size_t)(share * 10) : 9]++;
        counts[1][(size_t)number - 3]++;
    }
    are_even(counts[0], 10);
    are_even(counts[1], 10);
}

/* As many below 1e-3 as above it. */
static void a_log_range_is_even_in_its_logarithm(void **state) {
    const weir_sweep_try real = try_of("rate=log:1e-5..1e-1"), whole = try_of("negatives=log:1..4095");
    uint32_t counts[2][12] = {{0}};
    (void)state;
    const uint64_t seed = weir_test_seed();
    for (uint32_t trial = 1; trial <= DRAWS; trial++) {
        const double rate = drawn(&real, seed, trial), number = drawn(&whole, seed, trial);
        assert_true(rate >= 1e-5 && rate <= 1e-1 && number >= 1 && number <= 4095 && number == floor(number));
        const double place = (log10(rate) + 5) * 3;
        counts[0][place < 0 ? 0 : place < 12 ? (size_t)place : 11]++;
        counts[1][(size_t)log2(number)]++; /* 1, 2 to 3, 4 to 7, … */
    }
    are_even(counts[0], 12);
    are_even(counts[1], 12);
}

/* Trial 7 is the same whatever else there is, and two options of one trial have nothing to do with each other. */
static void h1_a_draw_is_of_seed_trial_and_name_alone(void **state) {
    const weir_sweep_try rate = try_of("rate=0.0..1.0"), dropout = try_of("dropout=0.0..1.0");
    double product = 0;
    char again[WEIR_SWEEP_VALUE_MAX], known[WEIR_SWEEP_VALUE_MAX];
    (void)state;
    for (uint32_t trial = DRAWS; trial > 0; trial--) {
        weir_sweep_draw(&rate, 5, trial, known);
        weir_sweep_draw(&rate, 5, trial, again);
        assert_string_equal(known, again);
        product += (drawn(&rate, 5, trial) - 0.5) * (drawn(&dropout, 5, trial) - 0.5) * 12 / DRAWS;
    }
    assert_true(fabs(product) < 0.1); /* six deviations of a correlation of 4000 pairs */
    /* What was written down once holds for ever: a sweep that goes on with a newer version tries the same. */
    weir_sweep_draw(&rate, 1, 7, known);
    assert_string_equal(known, "0.440301");
    assert_true(drawn(&rate, 1, 7) != drawn(&rate, 2, 7) && drawn(&rate, 1, 7) != drawn(&rate, 1, 8));
}

/* --- rungs -------------------------------------------------------------------------------------------------------- */

static void rungs_have_their_epochs(void **state) {
    (void)state;
    static const uint32_t rows[][5] = {
        /* epochs, keep, rungs, rung, wanted */
        {100, 3, 1, 0, 100}, {100, 3, 3, 0, 12}, {100, 3, 3, 1, 34}, {100, 3, 3, 2, 100},
        {81, 3, 4, 0, 3},    {81, 3, 4, 1, 9},   {5, 10, 3, 0, 1},   {1, 100, 8, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(weir_sweep_epochs(rows[i][0], rows[i][1], rows[i][2], rows[i][3]), rows[i][4]);
}

/* Against sorting all of them. */
static void h3_the_best_by_validation_go_on(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    (void)state;
    for (uint64_t round = 0; round < weir_test_rounds(3000); round++) {
        const uint32_t count = 1 + (uint32_t)weir_rng_below(&rng, 30), keep = 2 + (uint32_t)weir_rng_below(&rng, 4);
        double figures[30];
        uint32_t chosen[30], wanted = 0;
        bool taken[30] = {false};
        for (uint32_t i = 0; i < count; i++)
            figures[i] = weir_rng_below(&rng, 4) ? (double)weir_rng_below(&rng, 10) / 10 : (double)NAN;
        const uint32_t got = weir_sweep_promote(figures, count, keep, chosen);
        for (; wanted < (count + keep - 1) / keep; wanted++) {
            uint32_t best = count;
            for (uint32_t i = 0; i < count; i++)
                if (!taken[i] && isfinite(figures[i]) && (best == count || figures[i] > figures[best])) best = i;
            if (best == count) break;
            taken[best] = true;
            assert_true(wanted < got);
            assert_int_equal(chosen[wanted], best);
        }
        assert_int_equal(got, wanted);
    }
}

WEIR_TESTS(WEIR_CASE(values_are_read), WEIR_CASE(other_values_are_refused), WEIR_CASE(any_text_is_read_or_refused),
           WEIR_CASE(choices_are_even), WEIR_CASE(ranges_are_even), WEIR_CASE(a_log_range_is_even_in_its_logarithm),
           WEIR_CASE(h1_a_draw_is_of_seed_trial_and_name_alone), WEIR_CASE(rungs_have_their_epochs),
           WEIR_CASE(h3_the_best_by_validation_go_on))
