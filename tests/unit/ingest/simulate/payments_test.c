/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of the payment generator: bytes, order, memory, truth. What the stream is like: stream_test.c. */
#include "sim_support.h"

#include "sim_payments.h"

#define SMALL 2000u

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static void g1_same_options_same_bytes_for_ever(void **state) {
    (void)state;
    weir_simulate *sim = sim_payments(SMALL, 42);
    sim_golden(sim, "payments", 24, 60000);
    weir_simulate_close(sim);
}

static void g1_a_shorter_run_is_a_prefix(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    weir_simulate *a = sim_payments(SMALL, seed);
    weir_simulate *b = sim_payments(SMALL, seed);
    assert_true(sim_hash(a, 3000) == sim_hash(b, 3000));
    sim_hash(b, 5000);
    sim_hash(a, 5000);
    assert_true(sim_hash(a, 3000) == sim_hash(b, 3000));
    weir_simulate_close(a);
    weir_simulate_close(b);
}

static void another_seed_other_bytes(void **state) {
    (void)state;
    weir_simulate *a = sim_payments(SMALL, 1);
    weir_simulate *b = sim_payments(SMALL, 2);
    assert_false(sim_hash(a, 1000) == sim_hash(b, 1000));
    weir_simulate_close(a);
    weir_simulate_close(b);
}

/* The contract that the shipped schema maps: names, their order, letters of ids, and which of them stand together. */
static void check_payment(const sim_object *o, uint64_t number) {
    static const char *const channels[] = {"web", "app", "pos", "atm", "transfer", NULL};
    assert_string_equal(o->fields[0].name, "id");
    assert_true(o->fields[0].text[0] == 'p' && strlen(o->fields[0].text) == 17);
    assert_int_equal(sim_number(o->fields[0].text), number);
    assert_true(sim_field_of(o, "account")[0] == 'a' && sim_field_of(o, "device")[0] == 'd');
    const char *channel = sim_field_of(o, "channel");
    size_t known = 0;
    while (channels[known] && strcmp(channels[known], channel) != 0)
        known++;
    assert_non_null(channels[known]);
    assert_int_equal(strlen(sim_field_of(o, "currency")), 3);
    assert_int_equal(strlen(sim_field_of(o, "country")), 2);
    assert_non_null(strchr(sim_field_of(o, "amount"), '.'));
    bool transfer = strcmp(channel, "transfer") == 0;
    assert_int_equal(transfer, sim_field_of(o, "payee") != NULL);
    assert_int_equal(!transfer, sim_field_of(o, "merchant") != NULL);
    assert_int_equal(!transfer, sim_field_of(o, "mcc") != NULL);
    assert_true(transfer || sim_field_of(o, "card")[0] == 'c');
    if (transfer) assert_string_not_equal(sim_field_of(o, "payee"), sim_field_of(o, "account"));
    assert_int_equal(strcmp(channel, "atm") == 0, !transfer && strcmp(sim_field_of(o, "mcc"), "6011") == 0);
    size_t fields = 9 + (transfer ? 0 : 1) + (sim_field_of(o, "card") != NULL);
    assert_int_equal(o->count, fields);
}

static void check_message(const weir_simulate_message *m, uint64_t payments, uint64_t chargebacks) {
    char text[WEIR_TIME_TEXT_MAX];
    sim_object object;
    sim_read(m, &object);
    weir_time_format(m->time_us, text);
    assert_string_equal(sim_field_of(&object, "time"), text);
    const char *key = sim_field_of(&object, m->topic == WEIR_SIMULATE_PAYMENTS ? "account" : "payment");
    assert_int_equal(m->key_length, strlen(key));
    assert_memory_equal(m->key, key, m->key_length);
    assert_true(m->key >= m->value && m->key + m->key_length <= m->value + m->value_length);
    if (m->topic == WEIR_SIMULATE_PAYMENTS) {
        check_payment(&object, payments);
        return;
    }
    assert_int_equal(object.count, 4);
    assert_string_equal(sim_field_of(&object, "label"), "fraud");
    assert_int_equal(object.fields[0].text[0], 'b');
    assert_int_equal(sim_number(object.fields[0].text), chargebacks);
}

static void messages_keep_the_contract(void **state) {
    (void)state;
    weir_simulate *sim = sim_payments(SMALL, weir_test_seed());
    uint64_t counts[WEIR_SIMULATE_TOPICS] = {0};
    for (int i = 0; i < 120000; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        counts[m.topic]++;
        check_message(&m, counts[WEIR_SIMULATE_PAYMENTS], counts[WEIR_SIMULATE_CHARGEBACKS]);
    }
    assert_true(counts[WEIR_SIMULATE_PAYMENTS] > 100000 && counts[WEIR_SIMULATE_CHARGEBACKS] > 100);
    assert_int_equal(counts[WEIR_SIMULATE_CLICKS], 0);
    weir_simulate_close(sim);
}

/* --- order -------------------------------------------------------------------------------------------------------- */

static void g2_times_never_go_back(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = SMALL;
    opts.seed = weir_test_seed();
    opts.start_us += 123456789012; /* in the middle of an hour */
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    sim_check_order(sim, opts.start_us, 100000);
    weir_simulate_close(sim);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void g3_no_memory_is_taken_after_open(void **state) {
    (void)state;
    weir_simulate *sim = sim_payments(SMALL, weir_test_seed());
    weir_alloc_stats before, soon, late;
    weir_alloc_stats_get(&before);
    sim_hash(sim, 15000);
    weir_alloc_stats_get(&soon);
    sim_hash(sim, 135000); /* ten times as long: past the longest label delay */
    weir_alloc_stats_get(&late);
    assert_int_equal(soon.allocations, before.allocations);
    assert_int_equal(late.allocations, before.allocations);
    assert_int_equal(late.live_bytes, soon.live_bytes);
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(stats.crowded_out, 0);
    weir_simulate_close(sim);
}

static weir_err open_and_close(void *context) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = 300;
    weir_simulate *sim = NULL;
    weir_err err = weir_simulate_payments_open(&opts, &sim);
    assert_int_equal(err == WEIR_OK, sim != NULL);
    if (!err) sim_hash(sim, 100);
    weir_simulate_close(sim);
    (void)context;
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_close, NULL);
}

/* Few payments, most of them planned: campaigns and labels wait in agendas that are sized for the average. */
static void room_suffices_at_the_limits(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = 100;
    opts.per_day = WEIR_SIMULATE_PER_DAY_MIN;
    opts.fraud_ppm = WEIR_SIMULATE_FRAUD_PPM_MAX;
    opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MAX;
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    sim_hash(sim, 20000);
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(stats.crowded_out, 0);
    assert_int_equal(stats.payments + stats.chargebacks, 20000);
    weir_simulate_close(sim);
}

/* --- truth -------------------------------------------------------------------------------------------------------- */

/* What the truth said of a payment, until its chargeback comes. */
typedef struct promise {
    uint64_t payment;
    int64_t time_us;
} promise;

static void g4_truth_agrees_with_the_stream(void **state) {
    (void)state;
    enum { PROMISES = 4096 };
    static promise promises[PROMISES];
    size_t count = 0, kept = 0, friendly = 0;
    weir_simulate *sim = sim_payments(SMALL, weir_test_seed());
    for (int i = 0; i < 120000; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        sim_object object;
        sim_read(&m, &object);
        if (m.topic == WEIR_SIMULATE_PAYMENTS) {
            assert_int_equal(m.fraud != WEIR_SIMULATE_HONEST, m.campaign != 0);
            if (m.chargeback_us == WEIR_SIMULATE_NEVER) continue;
            assert_true(m.chargeback_us > m.time_us && count < PROMISES);
            friendly += m.fraud == WEIR_SIMULATE_HONEST;
            promises[count++] = (promise){sim_number(sim_field_of(&object, "id")), m.chargeback_us};
            continue;
        }
        uint64_t payment = sim_number(sim_field_of(&object, "payment"));
        for (size_t j = 0; j < count; j++) {
            if (promises[j].payment != payment) continue;
            assert_true(promises[j].time_us == m.time_us);
            promises[j] = promises[--count];
            kept++;
            break;
        }
    }
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(kept, stats.chargebacks);
    assert_int_equal(friendly, stats.friendly);
    for (size_t i = 0; i < count; i++) /* the rest is still to come */
        assert_true(promises[i].time_us >= stats.time_us);
    weir_simulate_close(sim);
}

static void g4_truth_is_in_no_byte(void **state) {
    (void)state;
    weir_simulate *sim = sim_payments(SMALL, weir_test_seed());
    for (int i = 0; i < 50000; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        if (m.topic != WEIR_SIMULATE_PAYMENTS) continue;
        for (int fraud = 0; fraud < WEIR_SIMULATE_FRAUDS; fraud++) {
            const char *name = weir_simulate_fraud_name((weir_simulate_fraud)fraud);
            assert_null(memmem(m.value, m.value_length, name, strlen(name)));
        }
        assert_null(memmem(m.value, m.value_length, "fraud", 5));
    }
    weir_simulate_close(sim);
}

static void truth_lines_are_json(void **state) {
    (void)state;
    weir_simulate *sim = sim_payments(SMALL, weir_test_seed());
    size_t lines = 0, never = 0;
    for (int i = 0; i < 60000; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        char line[WEIR_SIMULATE_TRUTH_MAX];
        size_t length = weir_simulate_truth(&m, line);
        assert_int_equal(length > 0, m.topic == WEIR_SIMULATE_PAYMENTS && m.fraud != WEIR_SIMULATE_HONEST);
        if (!length) continue;
        char id[64];
        snprintf(id, sizeof id, "{\"payment\":\"%.17s\",\"kind\":\"%s\",\"campaign\":", m.value + 7,
                 weir_simulate_fraud_name(m.fraud));
        assert_memory_equal(line, id, strlen(id));
        assert_true(length < sizeof line && strcmp(line + length - 2, "}\n") == 0);
        assert_int_equal(m.chargeback_us == WEIR_SIMULATE_NEVER, strstr(line, ":null}") != NULL);
        never += m.chargeback_us == WEIR_SIMULATE_NEVER;
        lines++;
    }
    assert_true(lines > 150 && never > 0 && never < lines / 3);
    weir_simulate_close(sim);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static void refuses(weir_simulate_payments_opts opts, weir_code code, const char *text) {
    weir_simulate *sim = (weir_simulate *)&opts; /* must become NULL */
    assert_err(weir_simulate_payments_open(&opts, &sim), code, text);
    assert_null(sim);
}

static void options_out_of_range_are_refused(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
#define REFUSES(field, wrong, code, text)           \
    do {                                            \
        weir_simulate_payments_opts changed = opts; \
        changed.field = (wrong);                    \
        refuses(changed, (code), (text));           \
    } while (0)
    REFUSES(accounts, WEIR_SIMULATE_ACCOUNTS_MIN - 1, WEIR_EINVAL, "accounts is 99");
    REFUSES(accounts, WEIR_SIMULATE_ACCOUNTS_MAX + 1, WEIR_EINVAL, "accounts");
    REFUSES(merchants, WEIR_SIMULATE_MERCHANTS_MIN - 1, WEIR_EINVAL, "merchants");
    REFUSES(merchants, WEIR_SIMULATE_MERCHANTS_MAX + 1, WEIR_EINVAL, "merchants");
    REFUSES(per_day, WEIR_SIMULATE_PER_DAY_MIN - 1, WEIR_EINVAL, "payments a day");
    REFUSES(per_day, WEIR_SIMULATE_PER_DAY_MAX + 1, WEIR_EINVAL, "payments a day");
    REFUSES(fraud_ppm, WEIR_SIMULATE_FRAUD_PPM_MAX + 1, WEIR_EINVAL, "fraud in a million");
    REFUSES(label_delay_us, WEIR_SIMULATE_LABEL_DELAY_MIN - 1, WEIR_EINVAL, "label delay");
    REFUSES(label_delay_us, WEIR_SIMULATE_LABEL_DELAY_MAX + 1, WEIR_EINVAL, "label delay");
    REFUSES(label_delay_us, -1, WEIR_EINVAL, "label delay");
    REFUSES(start_us, WEIR_SIMULATE_START_MIN - 1, WEIR_EINVAL, "start");
    REFUSES(start_us, WEIR_SIMULATE_START_MAX + 1, WEIR_EINVAL, "start");
    opts.per_day = WEIR_SIMULATE_PER_DAY_MAX;
    REFUSES(label_delay_us, WEIR_SIMULATE_LABEL_DELAY_MAX, WEIR_ELIMIT, "would wait at a time");
    opts = weir_simulate_payments_defaults();
    opts.accounts = 20 * WEIR_SIMULATE_MERCHANTS_MIN - 1; /* so few that 0 stands for the least */
    REFUSES(merchants, 1, WEIR_EINVAL, "merchants is 1");
    REFUSES(merchants, WEIR_SIMULATE_MERCHANTS_MIN - 1, WEIR_EINVAL, "merchants");
#undef REFUSES
}

static void accepts(weir_simulate_payments_opts opts) {
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    sim_hash(sim, 500);
    weir_simulate_close(sim);
}

static void options_at_their_limits_work(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = WEIR_SIMULATE_ACCOUNTS_MIN;
    accepts(opts);
    opts.start_us = WEIR_SIMULATE_START_MIN;
    opts.merchants = WEIR_SIMULATE_MERCHANTS_MIN;
    opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MIN;
    accepts(opts);
    opts.start_us = WEIR_SIMULATE_START_MAX;
    opts.per_day = WEIR_SIMULATE_PER_DAY_MIN;
    opts.fraud_ppm = WEIR_SIMULATE_FRAUD_PPM_MAX;
    opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MAX;
    accepts(opts);
    opts.merchants = WEIR_SIMULATE_MERCHANTS_MAX;
    opts.seed = UINT64_MAX;
    accepts(opts);
}

static void the_largest_simulation_works(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = WEIR_SIMULATE_ACCOUNTS_MAX;
    opts.merchants = WEIR_SIMULATE_MERCHANTS_MAX;
    opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MIN;
    accepts(opts);
}

/* However many campaigns the days before the start have earned, all have begun: otherwise the rest would begin in the
 * first minute. */
static void a_large_simulation_begins_without_debt(void **state) {
    (void)state;
    weir_simulate *sim = sim_payments(1000000, weir_test_seed());
    const weir_sim_payments *inside = (const weir_sim_payments *)sim;
    for (int fraud = WEIR_SIMULATE_HONEST + 1; fraud < WEIR_SIMULATE_FRAUDS; fraud++) {
        assert_true(inside->budget[fraud] <= 0);
        assert_true(inside->budget[fraud] > -WEIR_SIM_ONE_PAYMENT * (int64_t)WEIR_SIM_CAMPAIGN_MAX);
    }
    weir_simulate_close(sim);
}

static void no_fraud_when_none_is_asked_for(void **state) {
    (void)state;
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = SMALL;
    opts.fraud_ppm = 0;
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    sim_hash(sim, 50000);
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(stats.frauds, 0);
    assert_int_equal(stats.campaigns, 0);
    weir_simulate_close(sim);
}

static void names_are_known_and_others_are_not(void **state) {
    (void)state;
    assert_string_equal(weir_simulate_topic_name(WEIR_SIMULATE_CHARGEBACKS), "chargebacks");
    assert_string_equal(weir_simulate_topic_name(WEIR_SIMULATE_TOPICS), "unknown");
    assert_string_equal(weir_simulate_fraud_name(WEIR_SIMULATE_MULE), "mule");
    assert_string_equal(weir_simulate_fraud_name(WEIR_SIMULATE_FRAUDS), "unknown");
    weir_simulate_close(NULL);
}

WEIR_TESTS(WEIR_CASE(g1_same_options_same_bytes_for_ever), WEIR_CASE(g1_a_shorter_run_is_a_prefix),
           WEIR_CASE(another_seed_other_bytes), WEIR_CASE(messages_keep_the_contract),
           WEIR_CASE(g2_times_never_go_back), WEIR_CASE(g3_no_memory_is_taken_after_open),
           WEIR_CASE(every_allocation_may_fail), WEIR_CASE(room_suffices_at_the_limits),
           WEIR_CASE(g4_truth_agrees_with_the_stream), WEIR_CASE(g4_truth_is_in_no_byte),
           WEIR_CASE(truth_lines_are_json), WEIR_CASE(options_out_of_range_are_refused),
           WEIR_CASE(options_at_their_limits_work), WEIR_CASE(the_largest_simulation_works),
           WEIR_CASE(a_large_simulation_begins_without_debt), WEIR_CASE(no_fraud_when_none_is_asked_for),
           WEIR_CASE(names_are_known_and_others_are_not))
