/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bank that moves: phases and what is burnt, noise of labels, holidays, merchants and people that move.
 *
 * What should be seen is written down beforehand, as a count with its deviation; bounds are five of these.
 */
#include "sim_support.h"

#include <math.h>

#include "sim_payments.h"

#define SMALL    2000u
#define NUMBERS  131072u
#define DECEMBER INT64_C(1796083200000000) /* 2026-12-01, a Tuesday */

#define COUNTS "counts very many messages, of which other cases make enough"

static weir_simulate_payments_opts moving(void) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    weir_simulate_payments_moving(&opts);
    opts.accounts = SMALL;
    opts.seed = weir_test_seed();
    return opts;
}

static weir_simulate *open_with(const weir_simulate_payments_opts *opts) {
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(opts, &sim));
    return sim;
}

/* The next payment before the end; chargebacks are passed over. False at the end. */
static bool next_payment(weir_simulate *sim, int64_t end_us, weir_simulate_message *m) {
    do {
        weir_simulate_next(sim, m);
    } while (m->topic != WEIR_SIMULATE_PAYMENTS);
    return m->time_us < end_us;
}

static bool within(double seen, double expected, double deviation) {
    if (fabs(seen - expected) <= 5 * deviation) return true;
    print_message("%.1f where %.1f is expected, five deviations are %.1f\n", seen, expected, 5 * deviation);
    return false;
}

/* So many of count things, each with the chance p. */
static bool within_binomial(double seen, double count, double p) {
    return within(seen, count * p, sqrt(count * p * (1 - p)) + 0.2);
}

/* --- the promises of any world ------------------------------------------------------------------------------------ */

static void g1_same_options_same_bytes_for_ever(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    opts.seed = 42;
    weir_simulate *sim = open_with(&opts);
    sim_golden(sim, "payments_moving", 24, 300000);
    weir_simulate_close(sim);
}

static void g1_a_shorter_run_is_a_prefix(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    weir_simulate *a = open_with(&opts), *b = open_with(&opts);
    assert_true(sim_hash(a, 100000) == sim_hash(b, 100000));
    uint64_t later = sim_hash(b, 50000);
    assert_true(sim_hash(a, 50000) == later);
    weir_simulate_close(a);
    weir_simulate_close(b);
}

/* Each switch alone changes the stream; one that has nothing to do yet does not. */
static void g5_what_is_off_changes_no_byte(void **state) {
    (void)state;
    weir_simulate_payments_opts still = weir_simulate_payments_defaults();
    still.accounts = SMALL;
    still.seed = weir_test_seed();
    still.start_us = 1769904000000000; /* 2026-02-01: no holiday until Easter, nor in the weeks before */
    weir_simulate_payments_opts opts[4] = {still, still, still, still};
    opts[1].holidays = true;
    opts[2].adapt = true;
    opts[3].moves = true;
    uint64_t hashes[4];
    for (size_t i = 0; i < 4; i++) {
        weir_simulate *sim = open_with(&opts[i]);
        hashes[i] = sim_hash(sim, 60000);
        weir_simulate_close(sim);
    }
    assert_true(hashes[1] == hashes[0]);
    assert_true(hashes[2] != hashes[0] && hashes[3] != hashes[0]);
}

static void g2_times_never_go_back(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    opts.start_us = DECEMBER + 18 * WEIR_SIM_DAY + 12345678901; /* holidays before, at and after it */
    weir_simulate *sim = open_with(&opts);
    sim_check_order(sim, opts.start_us, 200000);
    weir_simulate_close(sim);
}

static void g3_no_memory_is_taken_after_open(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    weir_simulate *sim = open_with(&opts);
    weir_alloc_stats before, late;
    weir_alloc_stats_get(&before);
    sim_hash(sim, 600000); /* four months */
    weir_alloc_stats_get(&late);
    assert_int_equal(late.allocations, before.allocations);
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(stats.crowded_out, 0);
    weir_simulate_close(sim);
}

static weir_err open_and_close(void *context) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    weir_simulate_payments_moving(&opts);
    opts.accounts = 300;
    weir_simulate *sim = NULL;
    weir_err err = weir_simulate_payments_open(&opts, &sim);
    assert_int_equal(err == WEIR_OK, sim != NULL);
    weir_simulate_close(sim);
    (void)context;
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_close, NULL);
}

static void limits_work_and_more_is_refused(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    opts.accounts = 100;
    opts.per_day = WEIR_SIMULATE_PER_DAY_MIN;
    opts.fraud_ppm = WEIR_SIMULATE_FRAUD_PPM_MAX;
    opts.friendly_ppm = WEIR_SIMULATE_FRIENDLY_PPM_MAX;
    opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MAX;
    weir_simulate *sim = open_with(&opts);
    sim_hash(sim, 20000); /* years: Easters, leap days, every merchant replaced */
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(stats.crowded_out, 0);
    weir_simulate_close(sim);
    opts.start_us = WEIR_SIMULATE_START_MIN;
    sim = open_with(&opts);
    sim_hash(sim, 500);
    weir_simulate_close(sim);
    opts.friendly_ppm = WEIR_SIMULATE_FRIENDLY_PPM_MAX + 1;
    assert_err(weir_simulate_payments_open(&opts, &sim), WEIR_EINVAL, "friendly in a million");
    opts.friendly_ppm = 0;
    opts.unreported_ppm = 1000001;
    assert_err(weir_simulate_payments_open(&opts, &sim), WEIR_EINVAL, "unreported in a million");
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

static void check_noise(uint32_t friendly_ppm, uint32_t unreported_ppm) {
    weir_simulate_payments_opts opts = moving();
    opts.fraud_ppm = 20000;
    opts.friendly_ppm = friendly_ppm;
    opts.unreported_ppm = unreported_ppm;
    weir_simulate *sim = open_with(&opts);
    weir_simulate_message m;
    double purchases = 0, friendly = 0, frauds = 0, never = 0;
    while (next_payment(sim, opts.start_us + 60 * WEIR_SIM_DAY, &m)) {
        sim_object o;
        sim_read(&m, &o);
        bool charged_back = m.chargeback_us != WEIR_SIMULATE_NEVER;
        frauds += m.fraud != WEIR_SIMULATE_HONEST;
        never += m.fraud && !charged_back;
        purchases += !m.fraud && sim_field_of(&o, "merchant");
        friendly += !m.fraud && charged_back;
    }
    assert_true(frauds > 4000 && purchases > 200000);
    assert_true(within_binomial(friendly, purchases, friendly_ppm / 1e6));
    assert_true(within_binomial(never, frauds, unreported_ppm / 1e6));
    weir_simulate_close(sim);
}

static void labels_are_as_wrong_as_asked(void **state) {
    (void)state;
    weir_test_skip_under("address", COUNTS);
    check_noise(500, 200000);
    check_noise(20000, 500000);
    check_noise(0, 0);
    check_noise(150, 1000000);
}

/* --- holidays ----------------------------------------------------------------------------------------------------- */

/* "2026-04-05" as a day since 1970. */
static int64_t day_of(const char *date) {
    char text[32];
    int64_t time_us = 0;
    snprintf(text, sizeof text, "%sT00:00:00Z", date);
    assert_ok(weir_time_parse(text, strlen(text), &time_us));
    return time_us / WEIR_SIM_DAY;
}

static void the_calendar_knows_its_days(void **state) {
    (void)state;
    static const struct {
        const char *date;
        weir_sim_holiday holiday;
    } days[] = {
        {"2000-04-23", WEIR_SIM_FEAST}, {"2008-03-23", WEIR_SIM_FEAST}, {"2024-03-31", WEIR_SIM_FEAST},
        {"2025-04-20", WEIR_SIM_FEAST}, {"2026-04-05", WEIR_SIM_FEAST}, {"2026-04-03", WEIR_SIM_FEAST},
        {"2026-04-04", WEIR_SIM_EVE},   {"2026-04-06", WEIR_SIM_FEAST}, {"2026-04-07", WEIR_SIM_PLAIN},
        {"2038-04-25", WEIR_SIM_FEAST}, {"2076-04-19", WEIR_SIM_FEAST}, {"2026-12-24", WEIR_SIM_EVE},
        {"2026-12-25", WEIR_SIM_FEAST}, {"2026-12-27", WEIR_SIM_PLAIN}, {"2027-01-01", WEIR_SIM_FEAST},
        {"2027-01-02", WEIR_SIM_SALE},  {"2026-11-26", WEIR_SIM_PLAIN}, {"2026-11-27", WEIR_SIM_SALE},
        {"2026-11-30", WEIR_SIM_SALE},  {"2026-12-01", WEIR_SIM_PLAIN}, {"2025-12-01", WEIR_SIM_SALE},
        {"2029-11-23", WEIR_SIM_SALE},  {"2029-11-30", WEIR_SIM_PLAIN}, {"2024-02-29", WEIR_SIM_PLAIN},
        {"2100-12-25", WEIR_SIM_FEAST}, {"2026-10-03", WEIR_SIM_PLAIN},
    };
    for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
        if (weir_sim_holiday_on(day_of(days[i].date)) != days[i].holiday) fail_msg("%s", days[i].date);
    }
    assert_int_equal(weir_sim_holiday_in(day_of("2026-10-03"), 0), WEIR_SIM_FEAST); /* Germany's own */
    assert_int_equal(weir_sim_holiday_in(day_of("2026-10-03"), 1), WEIR_SIM_PLAIN);
    assert_int_equal(weir_sim_holiday_in(day_of("2026-07-14"), 1), WEIR_SIM_FEAST);
}

/* In any order of questions the same answers, and later never before earlier. */
static void holidays_bend_busy_time_and_back(void **state) {
    (void)state;
    static const weir_sim_week week = {
        .hours = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8}, {1}, {2, 3}},
        .day_percent = {100, 100, 100, 100, 100, 100, 100}};
    weir_sim_week full = week;
    memset(full.hours[1], 3, sizeof full.hours[1]);
    memset(full.hours[2], 2, sizeof full.hours[2]);
    weir_sim_calendar rising, leaping;
    int64_t start = DECEMBER + 12345678;
    weir_sim_calendar_init(&rising, &full, start, true);
    weir_sim_calendar_init(&leaping, &full, start, true);
    int64_t begin = weir_sim_calendar_begin(&rising, start), last = 0;
    assert_true(llabs(weir_sim_calendar_time(&rising, begin) - start) < 100000);
    for (int64_t step = -12 * 24; step < 60 * 24; step++) {
        int64_t busy = begin + step * WEIR_SIM_HOUR + step * 17;
        int64_t time = weir_sim_calendar_time(&rising, busy);
        weir_sim_calendar_time(&leaping, begin + (int64_t)((uint64_t)(step + 999) * 7919 % 1000) * WEIR_SIM_HOUR);
        assert_true(time >= last);
        assert_int_equal(weir_sim_calendar_time(&leaping, busy), time);
        last = time;
    }
}

/* A day has its weekday's payments times its percentage: chi-square over six weeks. Payments come in small trips, which
 * makes counts deviate by up to half more than Poisson's. */
static void holidays_have_their_rates(void **state) {
    (void)state;
    weir_test_skip_under("address", COUNTS);
    enum { DAYS = 42 };
    static const double weekdays[7] = {94, 95, 97, 102, 118, 120, 74};
    weir_simulate_payments_opts opts = moving();
    opts.fraud_ppm = 0;
    opts.per_day = 20000;
    opts.start_us = DECEMBER;
    weir_simulate *sim = open_with(&opts);
    weir_simulate_message m;
    double seen[DAYS] = {0}, expected[DAYS], total = 0, all = 0, chi_square = 0;
    while (next_payment(sim, DECEMBER + DAYS * WEIR_SIM_DAY, &m)) {
        seen[(m.time_us - DECEMBER) / WEIR_SIM_DAY]++;
        total++;
    }
    int64_t first = DECEMBER / WEIR_SIM_DAY;
    for (int64_t day = 0; day < DAYS; day++) {
        expected[day] = weekdays[(first + day + 3) % 7] * weir_sim_holiday_percent(weir_sim_holiday_on(first + day));
        all += expected[day];
    }
    for (int64_t day = 0; day < DAYS; day++) {
        expected[day] *= total / all;
        chi_square += (seen[day] - expected[day]) * (seen[day] - expected[day]) / expected[day];
    }
    assert_true(within(total, 20000 * all / 10000, 20000 * all / 10000 * 0.006)); /* per day as asked, to 3 % */
    if (chi_square > 1.5 * (DAYS + 5 * sqrt(2 * DAYS))) fail_msg("chi-square is %.1f over %d days", chi_square, DAYS);
    weir_simulate_close(sim);
}

static bool is_of_feast(const sim_object *o) {
    static const char *const codes[] = {"5812", "5814", "4111", "4121", "5541", "7011", "7832", NULL};
    size_t i = 0;
    while (codes[i] && strcmp(codes[i], sim_field_of(o, "mcc")) != 0)
        i++;
    return codes[i] != NULL;
}

/* Who finds nothing of the day looks twice more: 1 - (1 - p)^3, where p is what any day has. */
static void people_pay_elsewhere_on_a_feast(void **state) {
    (void)state;
    weir_test_skip_under("address", COUNTS);
    weir_simulate_payments_opts opts = moving();
    opts.fraud_ppm = 0;
    opts.accounts = 20000;
    opts.per_day = 30000;
    opts.start_us = DECEMBER;
    weir_simulate *sim = open_with(&opts);
    weir_simulate_message m;
    double all[2] = {0}, suited[2] = {0};
    while (next_payment(sim, DECEMBER + 27 * WEIR_SIM_DAY, &m)) {
        weir_sim_holiday holiday = weir_sim_holiday_on(m.time_us / WEIR_SIM_DAY);
        sim_object o;
        sim_read(&m, &o);
        if ((holiday != WEIR_SIM_PLAIN && holiday != WEIR_SIM_FEAST) || !sim_field_of(&o, "merchant")) continue;
        bool feast = holiday == WEIR_SIM_FEAST;
        all[feast]++;
        suited[feast] += is_of_feast(&o);
    }
    double usual = suited[0] / all[0];
    assert_true(fabs(suited[1] / all[1] - (1 - pow(1 - usual, 3))) < 0.06);
    weir_simulate_close(sim);
}

/* --- fraud adapts ------------------------------------------------------------------------------------------------- */

static void phases_last_two_to_six_weeks(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    weir_simulate *sim = open_with(&opts);
    const weir_sim_payments *inside = (const weir_sim_payments *)sim;
    int64_t first = opts.start_us / WEIR_SIM_DAY;
    for (int kind = WEIR_SIMULATE_STOLEN_CARD; kind < WEIR_SIMULATE_FRAUDS; kind++) {
        uint64_t phase = weir_sim_phase(inside, (weir_simulate_fraud)kind, first);
        int64_t begun = first - 14, changed = 0;
        for (int64_t day = first; day < first + 1000; day++) {
            uint64_t now = weir_sim_phase(inside, (weir_simulate_fraud)kind, day);
            if (now == phase) continue;
            assert_int_equal(now, phase + 1);
            assert_true(changed == 0 || (day - begun >= 14 && day - begun <= 42));
            begun = day;
            phase = now;
            changed++;
        }
        assert_true(changed >= 34 && changed <= 37); /* every four weeks */
    }
    weir_simulate_close(sim);
}

/* Ways that hold in one phase hold no more 45 days later: no two phases have the same, and their numbers are apart. */
static void ways_differ_between_phases(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = moving();
    weir_simulate *sim = open_with(&opts);
    const weir_sim_payments *inside = (const weir_sim_payments *)sim;
    double apart = 0, count = 0;
    for (int kind = WEIR_SIMULATE_STOLEN_CARD; kind < WEIR_SIMULATE_FRAUDS; kind++) {
        for (int64_t day = 20000; day < 24000; day += 5) {
            count++;
            weir_sim_ways a = weir_sim_ways_of(inside, (weir_simulate_fraud)kind, day);
            weir_sim_ways b = weir_sim_ways_of(inside, (weir_simulate_fraud)kind, day + 45);
            assert_true(memcmp(&a, &b, sizeof a) != 0);
            apart += fabs((double)a.size - (double)b.size);
        }
    }
    /* Of two numbers drawn evenly from 81, the mean distance is a third, and their deviation a quarter nearly. Days
     * five apart share a phase, so there are about a sixth as many draws. */
    assert_true(within(apart / count, 81 / 3.0, 19 / sqrt(count / 6)));
    opts.adapt = false;
    weir_simulate *still = open_with(&opts);
    weir_sim_ways a = weir_sim_ways_of((const weir_sim_payments *)still, WEIR_SIMULATE_RING, 20000);
    weir_sim_ways b = weir_sim_ways_of((const weir_sim_payments *)still, WEIR_SIMULATE_RING, 20045);
    assert_memory_equal(&a, &b, sizeof a);
    weir_simulate_close(still);
    weir_simulate_close(sim);
}

/* Windows of four weeks by kinds: what homogeneous shares would make of them, and how far that is from it. */
static double chi_square_of_shares(bool adapt, double wanted[WEIR_SIMULATE_FRAUDS], double seen[WEIR_SIMULATE_FRAUDS]) {
    enum { WINDOWS = 5 };
    weir_simulate_payments_opts opts = moving();
    opts.adapt = adapt;
    opts.per_day = 10000;
    opts.fraud_ppm = 20000;
    weir_simulate *sim = open_with(&opts);
    const weir_sim_payments *inside = (const weir_sim_payments *)sim;
    double counts[WINDOWS][WEIR_SIMULATE_FRAUDS] = {{0}}, windows[WINDOWS] = {0}, total = 0, chi_square = 0;
    weir_simulate_message m;
    while (next_payment(sim, opts.start_us + WINDOWS * 28 * WEIR_SIM_DAY, &m)) {
        for (int kind = WEIR_SIMULATE_STOLEN_CARD; kind < WEIR_SIMULATE_FRAUDS; kind++)
            wanted[kind] += (double)inside->shares[kind] * 0.02 / 1000;
        if (!m.fraud) continue;
        size_t window = (size_t)((m.time_us - opts.start_us) / (28 * WEIR_SIM_DAY));
        counts[window][m.fraud]++;
        windows[window]++;
        seen[m.fraud]++;
        total++;
    }
    for (size_t window = 0; window < WINDOWS; window++)
        for (int kind = WEIR_SIMULATE_STOLEN_CARD; kind < WEIR_SIMULATE_FRAUDS; kind++) {
            double expected = windows[window] * seen[kind] / total;
            chi_square += (counts[window][kind] - expected) * (counts[window][kind] - expected) / expected;
        }
    weir_simulate_close(sim);
    return chi_square;
}

/* Sixteen degrees of freedom; payments come by campaigns of up to thirty, so a still bank may have some times that. */
static void kinds_come_and_go_in_their_shares(void **state) {
    (void)state;
    weir_test_skip_under("address", COUNTS);
    double wanted[2][WEIR_SIMULATE_FRAUDS] = {{0}}, seen[2][WEIR_SIMULATE_FRAUDS] = {{0}};
    double still = chi_square_of_shares(false, wanted[0], seen[0]);
    double adapting = chi_square_of_shares(true, wanted[1], seen[1]);
    if (still > 16 * 8 || adapting < 16 * 30) fail_msg("chi-square: still %.0f, adapting %.0f", still, adapting);
    for (int kind = WEIR_SIMULATE_STOLEN_CARD; kind < WEIR_SIMULATE_FRAUDS; kind++)
        assert_true(fabs(seen[1][kind] / wanted[1][kind] - 1) < 0.10);
}

/* By number as it is shown: chargebacks, and the last campaign that had begun when it was burnt. */
typedef struct device_past {
    uint32_t chargebacks, burnt_at;
} device_past;

static bool watch_device(const weir_sim_payments *inside, device_past *past, const weir_simulate_message *m) {
    if (m->topic == WEIR_SIMULATE_PAYMENTS) {
        if (past->burnt_at) assert_true(m->campaign <= past->burnt_at);
        return false;
    }
    if (++past->chargebacks != 3) return false;
    past->burnt_at = (uint32_t)inside->base.stats.campaigns;
    return true;
}

/* After its third chargeback no campaign begins that uses a crew's device, while those that have begun go on. */
static void crews_replace_what_is_burnt(void **state) {
    (void)state;
    weir_test_skip_under("address", COUNTS);
    enum { PAYMENTS = 1u << 20 };
    static uint32_t device_of[PAYMENTS]; /* raw plus 1, of frauds with a device of their crew */
    static uint32_t raw_of[NUMBERS];     /* by the number shown, plus 1; crews' only */
    static device_past pasts[NUMBERS];
    memset(device_of, 0, sizeof device_of);
    weir_simulate_payments_opts opts = moving();
    opts.accounts = 500;
    opts.per_day = 4000;
    opts.fraud_ppm = 20000;
    weir_simulate *sim = open_with(&opts);
    const weir_sim_payments *inside = (const weir_sim_payments *)sim;
    const weir_sim_world *world = &inside->world;
    assert_true(world->devices.count <= NUMBERS);
    for (uint32_t raw = world->device_crews; raw < world->device_burners; raw++)
        raw_of[weir_sim_device_number(world, raw)] = raw + 1;
    size_t burnt = 0;
    weir_simulate_message m;
    do {
        weir_simulate_next(sim, &m);
        sim_object o;
        sim_read(&m, &o);
        if (m.topic == WEIR_SIMULATE_CHARGEBACKS) {
            uint32_t device = device_of[sim_number(sim_field_of(&o, "payment"))];
            burnt += device && watch_device(inside, &pasts[device - 1], &m);
            continue;
        }
        uint64_t device = sim_number(sim_field_of(&o, "device"));
        if (!m.fraud || !raw_of[device]) continue;
        uint64_t number = sim_number(sim_field_of(&o, "id"));
        assert_true(number < PAYMENTS);
        device_of[number] = (uint32_t)device + 1;
        watch_device(inside, &pasts[device], &m);
    } while (m.time_us < opts.start_us + 150 * WEIR_SIM_DAY);
    uint32_t turned[3] = {0};
    for (uint32_t crew = 0; crew < world->crews; crew++)
        for (uint32_t asset = 1; asset < WEIR_SIM_ASSETS; asset++)
            turned[(asset > WEIR_SIM_FENCES) + (asset > WEIR_SIM_FENCES + WEIR_SIM_MULES)] +=
                inside->crews[crew].turns[asset];
    assert_true(burnt > 50 && turned[0] > 20 && turned[1] > 20 && turned[2] > 50);
    weir_simulate_close(sim);
}

/* --- merchants and people ----------------------------------------------------------------------------------------- */

static weir_sim_world *open_world(uint32_t merchants, bool moves) {
    static weir_sim_world world;
    weir_sim_world_opts opts = {.seed = weir_test_seed(),
                                .start_us = DECEMBER,
                                .slots = 20000,
                                .merchants = merchants,
                                .crews = 3,
                                .moves = moves};
    assert_ok(weir_sim_world_open(&world, &opts));
    return &world;
}

/* Every day the ranks of a country have each of its merchants once; in time a merchant sees all ranks of its block. */
static void popularity_drifts(void **state) {
    (void)state;
    weir_sim_world *world = open_world(2000, true);
    uint32_t begin = world->country_begin[1], count = world->country_begin[2] - begin;
    assert_true(count > 100);
    bool *held = weir_calloc(count, sizeof *held);
    assert_non_null(held);
    for (int64_t day = 20000; day < 20400; day += 37) {
        memset(held, 0, count);
        for (uint32_t rank = 0; rank < count; rank++) {
            uint32_t place = weir_sim_merchant_at(world, 1, rank, day) - begin;
            assert_true(place < count && !held[place]);
            held[place] = true;
        }
    }
    memset(held, 0, count);
    for (int64_t day = 20000; day < 20300; day++)
        held[weir_sim_merchant_at(world, 1, 30, day) - begin] = true;
    for (uint32_t rank = 0; rank < 90; rank++)
        assert_int_equal(held[rank], rank >= 21 && rank < 85); /* blocks of 1, 4, 16, 64 */
    weir_free(held);
    weir_sim_world_close(world);
    world = open_world(2000, false);
    assert_int_equal(weir_sim_merchant_at(world, 1, 30, 20123), begin + 30);
    weir_sim_world_close(world);
}

/* After a year, of 20,000 merchants: a fifth have closed, less those that came and went at one place; who moved abroad
 * took the trade along, who changed the trade stayed in the country. No number is there twice. */
static void merchants_close_and_move_in_a_year(void **state) {
    (void)state;
    enum { COUNT = 20000, ALL = COUNT * 16 };
    static uint32_t was[ALL + 1]; /* by number: its first place plus 1 */
    static bool now[ALL + 1];
    memset(was, 0, sizeof was);
    memset(now, 0, sizeof now);
    weir_sim_world *world = open_world(COUNT, true);
    for (uint32_t place = 0; place < COUNT; place++)
        was[world->merchants[place].number] = place + 1;
    weir_sim_moves_until(world, DECEMBER + 365 * WEIR_SIM_DAY);
    double opened = 0, abroad = 0, other_trade = 0;
    for (uint32_t place = 0; place < COUNT; place++) {
        const weir_sim_merchant *m = &world->merchants[place];
        assert_true(m->number < ALL && !now[m->number]);
        now[m->number] = true;
        if (!was[m->number]) opened++;
        if (!was[m->number] || was[m->number] == place + 1) continue;
        const weir_sim_merchant *before = &world->merchants[was[m->number] - 1];
        abroad += m->country != before->country;
        other_trade += m->trade != before->trade;
    }
    assert_true(within_binomial(opened, COUNT, 1 - exp(-0.2)));
    /* A hundred in a thousand go abroad in a year and each takes another one with it, but for cash machines, which are
     * 6.4 in 100; a change of trade likewise. Those that closed are not seen, and of a rare trade a partner is not
     * always found. */
    double moved = exp(-0.2) * (1 - exp(-0.2 * 0.936));
    assert_true(abroad / COUNT > moved - 0.035 && within_binomial(fmax(abroad, moved * COUNT), COUNT, moved));
    assert_true(within_binomial(other_trade, COUNT, moved));
    weir_sim_world_close(world);
}

/* By number as shown: the country and trade seen last, and how often that has changed. */
typedef struct merchant_past {
    uint16_t country, trade;
    uint32_t changes;
} merchant_past;

/* Seen from outside: a merchant is in one place at a time. Its new country comes after the move and never before, so
 * no more changes are seen than have happened. */
static void a_merchant_has_one_country_at_a_time(void **state) {
    (void)state;
    static merchant_past pasts[NUMBERS];
    weir_simulate_payments_opts opts = moving();
    opts.merchants = 1000;
    weir_simulate *sim = open_with(&opts);
    weir_simulate_message m;
    double changes = 0, changed = 0, born = 0;
    int64_t later = opts.start_us + 20 * WEIR_SIM_DAY;
    while (next_payment(sim, opts.start_us + 360 * WEIR_SIM_DAY, &m)) {
        sim_object o;
        sim_read(&m, &o);
        const char *number = sim_field_of(&o, "merchant");
        if (!number) continue;
        assert_true(sim_number(number) < NUMBERS);
        merchant_past *past = &pasts[sim_number(number)];
        const char *country = sim_field_of(&o, "country");
        uint16_t here = (uint16_t)(country[0] << 8 | country[1]);
        uint16_t trade = (uint16_t)strtoul(sim_field_of(&o, "mcc"), NULL, 10);
        if (past->country && (past->country != here || past->trade != trade)) past->changes++;
        born += !past->country && m.time_us > later;
        past->country = here;
        past->trade = trade;
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        changes += pasts[i].changes;
        changed += pasts[i].changes > 0;
    }
    /* Of a thousand, two hundred sides of a move and two hundred of a change of trade, less cash machines, partners not
     * found and those whom nobody pays between two moves. Sides come in pairs, which doubles their variance. */
    double year = 1000 * 360 / 365.0;
    assert_true(changes > 0.2 * year && changes < 0.4 * 0.936 * year + 5 * sqrt(0.8 * year));
    assert_true(changed > 0.15 * year && changed <= changes);
    assert_true(born > 0.12 * year && born < 0.2 * year + 5 * sqrt(0.2 * year));
    weir_simulate_close(sim);
}

/* Of those who keep the account for a year, with lives of 800 to 2400 days of which 35 in 100 have a move, to a country
 * that is the old one in 15 of 100. */
static void people_move(void **state) {
    (void)state;
    weir_sim_world *world = open_world(1000, true);
    double weight = 0, chance = 0, stayed = 0, moved = 0;
    for (int days = 800; days <= 2400; days++) {
        const double life = days;
        weight += (life - 365) / life;
        chance += (life - 365) / life * 0.35 * 365 / life * 0.854;
    }
    int64_t day = DECEMBER / WEIR_SIM_DAY;
    for (uint32_t slot = 0; slot < world->slots; slot++) {
        weir_sim_person before = weir_sim_person_at(world, slot, day);
        weir_sim_person middle = weir_sim_person_at(world, slot, day + 180);
        weir_sim_person after = weir_sim_person_at(world, slot, day + 365);
        if (before.key != after.key) continue;
        stayed++;
        moved += before.country != after.country;
        assert_true(middle.country == before.country || middle.country == after.country);
    }
    assert_true(stayed > 10000);
    assert_true(within_binomial(moved, stayed, chance / weight));
    weir_sim_world_close(world);
}

/* Habits last 60 to 240 days: after 45, 1 - 45 ln 4 / 180 of them are the same. */
static void habits_change(void **state) {
    (void)state;
    weir_sim_world *world = open_world(1000, true);
    double kept = 0, count = 0;
    int64_t day = DECEMBER / WEIR_SIM_DAY;
    for (uint32_t slot = 0; slot < world->slots; slot++) {
        weir_sim_person before = weir_sim_person_at(world, slot, day);
        weir_sim_person after = weir_sim_person_at(world, slot, day + 45);
        if (before.key != after.key) continue;
        weir_sim_pattern old = weir_sim_pattern_of(world, &before, slot % 8);
        weir_sim_pattern new = weir_sim_pattern_of(world, &after, slot % 8);
        assert_true(old.since <= day && new.since <= day + 45);
        kept += old.turn == new.turn;
        count++;
    }
    assert_true(within_binomial(kept, count, 1 - 45 * log(4) / 180));
    weir_sim_world_close(world);
}

/* --- fraud from outside ------------------------------------------------------------------------------------------- */

static size_t amount_bin(const char *amount) {
    double value = log2(strtod(amount, NULL)) * 2 + 10;
    return value < 0 ? 0 : value > 63 ? 63 : (size_t)value;
}

/* Over fourteen weeks around the turn of the year. The days too: fraud follows the holidays. */
static void g4_fraud_has_the_marginals_of_honest_payments(void **state) {
    (void)state;
    weir_test_skip_under("address", COUNTS);
    static double days[2][98], hours[2][168], amounts[2][64], channels[2][128], trades[2][100], countries[2][676];
    weir_simulate_payments_opts opts = moving();
    opts.accounts = 20000;
    opts.per_day = 9000;
    opts.fraud_ppm = 30000;
    opts.start_us = DECEMBER - 14 * WEIR_SIM_DAY;
    weir_simulate *sim = open_with(&opts);
    weir_simulate_message m;
    while (next_payment(sim, opts.start_us + 98 * WEIR_SIM_DAY, &m)) {
        bool fraud = m.fraud != WEIR_SIMULATE_HONEST;
        sim_object o;
        sim_read(&m, &o);
        days[fraud][(m.time_us - opts.start_us) / WEIR_SIM_DAY]++;
        hours[fraud][(m.time_us - opts.start_us) / WEIR_SIM_HOUR % 168]++;
        channels[fraud][(size_t)sim_field_of(&o, "channel")[1]]++; /* e, p, o, t, r */
        const char *country = sim_field_of(&o, "country");
        countries[fraud][(country[0] - 'A') * 26 + country[1] - 'A']++;
        if (strcmp(sim_field_of(&o, "currency"), "EUR") == 0) amounts[fraud][amount_bin(sim_field_of(&o, "amount"))]++;
        if (sim_field_of(&o, "mcc")) trades[fraud][strtoul(sim_field_of(&o, "mcc"), NULL, 10) / 100]++;
    }
    assert_true(sim_distance(days[0], days[1], 98) < 0.06);
    assert_true(sim_distance(hours[0], hours[1], 168) < 0.06);
    assert_true(sim_distance(amounts[0], amounts[1], 64) < 0.10);
    assert_true(sim_distance(channels[0], channels[1], 128) < 0.20);
    assert_true(sim_distance(trades[0], trades[1], 100) < 0.15);
    assert_true(sim_distance(countries[0], countries[1], 676) < 0.15);
    weir_simulate_close(sim);
}

WEIR_TESTS(WEIR_CASE(g1_same_options_same_bytes_for_ever), WEIR_CASE(g1_a_shorter_run_is_a_prefix),
           WEIR_CASE(g5_what_is_off_changes_no_byte), WEIR_CASE(g2_times_never_go_back),
           WEIR_CASE(g3_no_memory_is_taken_after_open), WEIR_CASE(every_allocation_may_fail),
           WEIR_CASE(limits_work_and_more_is_refused), WEIR_CASE(labels_are_as_wrong_as_asked),
           WEIR_CASE(the_calendar_knows_its_days), WEIR_CASE(holidays_bend_busy_time_and_back),
           WEIR_CASE(holidays_have_their_rates), WEIR_CASE(people_pay_elsewhere_on_a_feast),
           WEIR_CASE(phases_last_two_to_six_weeks), WEIR_CASE(ways_differ_between_phases),
           WEIR_CASE(kinds_come_and_go_in_their_shares), WEIR_CASE(crews_replace_what_is_burnt),
           WEIR_CASE(popularity_drifts), WEIR_CASE(merchants_close_and_move_in_a_year),
           WEIR_CASE(a_merchant_has_one_country_at_a_time), WEIR_CASE(people_move), WEIR_CASE(habits_change),
           WEIR_CASE(g4_fraud_has_the_marginals_of_honest_payments))
