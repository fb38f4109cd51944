/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the generators are made of, against closed formulas and naive models. */
#include "sim_support.h"

#include <math.h>

#include "sim_agenda.h"
#include "sim_alias.h"
#include "sim_math.h"
#include "sim_rhythm.h"

static weir_rng fresh_rng(void) {
    return weir_rng_stream(weir_test_seed(), 0, 0);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void tables_are_the_functions(void **state) {
    (void)state;
    static weir_sim_math math;
    weir_sim_math_init(&math);
    for (int i = 0; i <= 256; i++) {
        assert_true(fabs(math.ln[i] / 0x1p24 - log1p(i / 256.0)) < 1e-6);
        assert_true(fabs(math.exp2[i] / 0x1p24 - exp2(i / 256.0)) < 1e-6);
    }
}

static void exponential_has_its_moments(void **state) {
    (void)state;
    static weir_sim_math math;
    weir_sim_math_init(&math);
    weir_rng rng = fresh_rng();
    enum { DRAWS = 400000 };
    double sum = 0, squares = 0, above = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = (double)weir_sim_exponential(&math, &rng, 1000000) / 1e6;
        sum += x;
        squares += x * x;
        above += x > 2;
    }
    assert_true(fabs(sum / DRAWS - 1) < 0.01);
    assert_true(fabs(squares / DRAWS - 2) < 0.06);
    assert_true(fabs(above / DRAWS - exp(-2)) < 0.004);
    assert_true(weir_sim_exponential(&math, &rng, WEIR_SIM_MEAN_MAX - 1) > 0);
    assert_true(weir_sim_exponential(&math, &rng, 1) >= 1);
}

static void lognormal_has_its_median_and_spread(void **state) {
    (void)state;
    static weir_sim_math math;
    weir_sim_math_init(&math);
    weir_rng rng = fresh_rng();
    enum { DRAWS = 200000 };
    double below = 0, sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t x = weir_sim_lognormal(&math, &rng, 1000000, 65536); /* one doubling is one deviation */
        double z = log2((double)x / 1e6);
        assert_true(fabs(z) < 3.5);
        below += x < 1000000;
        sum += z;
        squares += z * z;
    }
    assert_true(fabs(below / DRAWS - 0.5) < 0.01);
    assert_true(fabs(sum / DRAWS) < 0.01);
    assert_true(fabs(squares / DRAWS - 1) < 0.02);
    assert_int_equal(weir_sim_lognormal(&math, &rng, 1, 0), 1);
    assert_int_equal(weir_sim_lognormal(&math, &rng, 777, 0), 777);
}

static void uniform_draws_stay_inside(void **state) {
    (void)state;
    weir_rng rng = fresh_rng();
    int64_t lowest = INT64_MAX, highest = 0;
    for (int i = 0; i < 100000; i++) {
        assert_true(weir_sim_below(&rng, 7) < 7);
        uint32_t x = weir_sim_between(&rng, 3, 5);
        assert_true(x >= 3 && x <= 5);
        int64_t span = weir_sim_span(&rng, WEIR_SIM_HOUR, 12 * WEIR_SIM_DAY);
        assert_true(span >= WEIR_SIM_HOUR && span < 12 * WEIR_SIM_DAY);
        if (span < lowest) lowest = span;
        if (span > highest) highest = span;
    }
    assert_true(lowest < 2 * WEIR_SIM_HOUR && highest > 12 * WEIR_SIM_DAY - 2 * WEIR_SIM_HOUR);
    assert_false(weir_sim_chance(&rng, 0));
    assert_true(weir_sim_chance(&rng, 1000));
}

static void scrambles_are_bijections(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    for (uint32_t count = 1; count < 300; count++) {
        bool seen[300] = {false};
        weir_sim_scramble scramble = weir_sim_scramble_make(seed, count, count, 2);
        for (uint64_t raw = 0; raw < count; raw++) {
            uint64_t number = weir_sim_scrambled(&scramble, raw);
            assert_true(number < count && !seen[number]);
            seen[number] = true;
        }
        assert_int_equal(scramble.digits, count > 100 ? 3 : 2);
    }
    weir_sim_scramble large = weir_sim_scramble_make(seed, 1, UINT32_MAX, 7);
    assert_int_equal(large.digits, 10);
    assert_true(weir_sim_scrambled(&large, UINT32_MAX - 1) < UINT32_MAX);
}

/* --- alias -------------------------------------------------------------------------------------------------------- */

static void check_alias(uint32_t count, uint32_t flat) {
    uint64_t *weights = weir_calloc(count, sizeof *weights);
    uint32_t *stack = weir_calloc(count, sizeof *stack);
    weir_sim_alias_entry *entries = weir_calloc(count, sizeof *entries);
    double *share = weir_calloc(count, sizeof *share);
    double total = 0;
    weir_sim_zipf_weights(weights, count, flat);
    for (uint32_t i = 0; i < count; i++)
        total += 1.0 / (i + flat);
    weir_sim_alias_fill(entries, weights, stack, count);
    /* The exact probability of each outcome, as the table has it. */
    for (uint32_t i = 0; i < count; i++) {
        double own = entries[i].threshold == UINT32_MAX ? 1 : entries[i].threshold / 0x1p32;
        share[i] += own / count;
        assert_true(entries[i].other < count);
        share[entries[i].other] += (1 - own) / count;
    }
    for (uint32_t i = 0; i < count; i++)
        assert_true(fabs(share[i] - 1.0 / (i + flat) / total) < 1e-6);
    weir_free(weights);
    weir_free(stack);
    weir_free(entries);
    weir_free(share);
}

static void alias_tables_hold_the_weights(void **state) {
    (void)state;
    check_alias(1, 1);
    check_alias(2, 1);
    check_alias(5, 2);
    check_alias(1000, 2);
    check_alias(20000, 200);
}

static void alias_picks_follow_the_table(void **state) {
    (void)state;
    weir_sim_alias_entry entries[4];
    uint64_t weights[4] = {1, 0, 5, 2};
    uint32_t stack[4];
    double counts[4] = {0};
    weir_sim_alias_fill(entries, weights, stack, 4);
    weir_rng rng = fresh_rng();
    for (int i = 0; i < 200000; i++)
        counts[weir_sim_alias_pick(entries, 4, weir_rng_u32(&rng))]++;
    const double expected[4] = {0.125, 0, 0.625, 0.25};
    for (int i = 0; i < 4; i++)
        assert_true(fabs(counts[i] / 200000 - expected[i]) < 0.01);
}

/* --- agenda ------------------------------------------------------------------------------------------------------- */

typedef struct item {
    int64_t time;
    uint64_t serial;
} item;

/* Against a list that is searched for its earliest, and of those its first. */
static void agenda_equals_a_sorted_list(void **state) {
    (void)state;
    enum { CAPACITY = 50 };
    item list[CAPACITY];
    size_t count = 0;
    uint64_t serial = 0;
    weir_rng rng = fresh_rng();
    weir_sim_agenda agenda;
    assert_ok(weir_sim_agenda_open(&agenda, CAPACITY, sizeof(item)));
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(weir_sim_agenda_room(&agenda), CAPACITY - count);
        if (count < CAPACITY && (count == 0 || weir_sim_below(&rng, 100) < 52)) {
            list[count] = (item){(int64_t)weir_sim_below(&rng, 30), serial++};
            weir_sim_agenda_add(&agenda, list[count].time, &list[count]);
            count++;
            continue;
        }
        size_t best = 0;
        for (size_t j = 1; j < count; j++)
            if (list[j].time < list[best].time ||
                (list[j].time == list[best].time && list[j].serial < list[best].serial))
                best = j;
        item taken;
        assert_int_equal(weir_sim_agenda_next(&agenda), list[best].time);
        weir_sim_agenda_take(&agenda, &taken);
        assert_int_equal(taken.time, list[best].time);
        assert_int_equal(taken.serial, list[best].serial);
        list[best] = list[--count];
    }
    weir_sim_agenda_close(&agenda);
    weir_sim_agenda_close(&agenda);
}

static void agenda_has_a_largest_size(void **state) {
    (void)state;
    weir_sim_agenda agenda;
    assert_err(weir_sim_agenda_open(&agenda, UINT64_C(1) + WEIR_SIM_AGENDA_MAX, 8), WEIR_ELIMIT, "268435457 events");
    assert_ok(weir_sim_agenda_open(&agenda, 1, 8));
    assert_true(weir_sim_agenda_next(&agenda) == INT64_MAX);
    weir_sim_agenda_close(&agenda);
}

/* --- rhythm ------------------------------------------------------------------------------------------------------- */

static const weir_sim_week week = {
    .hours = {{1, 1, 1, 1, 1, 1, 3, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 5, 3, 2, 1},
              {4, 3, 2, 1, 1, 1, 1, 2, 4, 6, 8, 9, 9, 9, 9, 9, 9, 9, 9, 8, 8, 7, 6, 5},
              {5, 4, 3, 2, 1, 1, 1, 1, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 8, 7, 6, 5, 3, 2}},
    .day_percent = {90, 90, 95, 100, 130, 120, 75},
};

static void busy_time_and_back(void **state) {
    (void)state;
    int64_t start_us = INT64_C(1767571200000000) + (int64_t)(weir_test_seed() % (uint64_t)WEIR_SIM_WEEK);
    weir_sim_rhythm rhythm;
    weir_sim_rhythm_init(&rhythm, &week, start_us);
    int64_t last = INT64_MIN;
    for (int64_t busy = 0; busy < 5 * WEIR_SIM_WEEK; busy += 97 * WEIR_SIM_SECOND) {
        int64_t time = weir_sim_time_of(&rhythm, busy);
        assert_true(time >= last);
        last = time;
        int64_t back = weir_sim_busy_of(&rhythm, time);
        assert_true(back <= busy && busy - back < 10000); /* an hour's milliseconds, at most ten times as dense */
    }
    /* Asked in no order, the answers are the same. */
    int64_t there = weir_sim_time_of(&rhythm, 3 * WEIR_SIM_WEEK + 5);
    assert_true(weir_sim_time_of(&rhythm, 5) < there);
    assert_int_equal(weir_sim_time_of(&rhythm, 3 * WEIR_SIM_WEEK + 5), there);
    /* A week of one is a week of the other. */
    assert_int_equal(weir_sim_time_of(&rhythm, WEIR_SIM_WEEK + 12345678) - weir_sim_time_of(&rhythm, 12345678),
                     WEIR_SIM_WEEK);
}

static void busy_hours_are_wide(void **state) {
    (void)state;
    weir_sim_rhythm rhythm;
    int64_t monday = INT64_C(1767571200000000);
    weir_sim_rhythm_init(&rhythm, &week, monday);
    int64_t night =
        weir_sim_busy_of(&rhythm, monday + 4 * WEIR_SIM_HOUR) - weir_sim_busy_of(&rhythm, monday + 3 * WEIR_SIM_HOUR);
    int64_t noon =
        weir_sim_busy_of(&rhythm, monday + 13 * WEIR_SIM_HOUR) - weir_sim_busy_of(&rhythm, monday + 12 * WEIR_SIM_HOUR);
    assert_true(fabs((double)noon / (double)night - 9) < 0.01);
    int64_t first = weir_sim_busy_of(&rhythm, monday + WEIR_SIM_DAY) - weir_sim_busy_of(&rhythm, monday);
    int64_t friday =
        weir_sim_busy_of(&rhythm, monday + 5 * WEIR_SIM_DAY) - weir_sim_busy_of(&rhythm, monday + 4 * WEIR_SIM_DAY);
    assert_true(fabs((double)friday / (double)first - 130.0 / 90) < 0.01);
}

WEIR_TESTS(WEIR_CASE(tables_are_the_functions), WEIR_CASE(exponential_has_its_moments),
           WEIR_CASE(lognormal_has_its_median_and_spread), WEIR_CASE(uniform_draws_stay_inside),
           WEIR_CASE(scrambles_are_bijections), WEIR_CASE(alias_tables_hold_the_weights),
           WEIR_CASE(alias_picks_follow_the_table), WEIR_CASE(agenda_equals_a_sorted_list),
           WEIR_CASE(agenda_has_a_largest_size), WEIR_CASE(busy_time_and_back), WEIR_CASE(busy_hours_are_wide))
