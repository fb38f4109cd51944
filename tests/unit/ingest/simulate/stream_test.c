/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the payment stream is like: how much, when, by whom, and what fraud looks like from outside and from inside.
 *
 * Bounds are far wider than what chance does; a seed that breaks one is a fault of the generator.
 */
#include "sim_support.h"

#include <math.h>

#define DAY_US  86400000000ll
#define HOUR_US 3600000000ll

/* --- counting by number ------------------------------------------------------------------------------------------- */

#define COUNTERS 65536u

/* Open addressing from a number to a count. */
typedef struct counters {
    uint64_t keys[COUNTERS]; /* number + 1; 0 is vacant */
    uint64_t values[COUNTERS];
    size_t count;
} counters;

static uint64_t *counter(counters *c, uint64_t key) {
    size_t at = (key * 0x9E3779B97F4A7C15u) >> 48;
    while (c->keys[at] && c->keys[at] != key + 1)
        at = (at + 1) % COUNTERS;
    if (!c->keys[at]) {
        assert_true(++c->count < COUNTERS / 2);
        c->keys[at] = key + 1;
    }
    return &c->values[at];
}

static int falling(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Share of the total that the first per cent of the counted things have. */
static double first_percent_share(counters *c) {
    uint64_t total = 0, first = 0;
    qsort(c->values, COUNTERS, sizeof c->values[0], falling);
    for (size_t i = 0; i < COUNTERS; i++) {
        total += c->values[i];
        if (i < c->count / 100) first += c->values[i];
    }
    return (double)first / (double)total;
}

static weir_simulate *open_with(uint32_t accounts, uint32_t per_day, uint32_t fraud_ppm) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = accounts;
    opts.per_day = per_day;
    opts.fraud_ppm = fraud_ppm;
    opts.seed = weir_test_seed();
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    return sim;
}

/* The next payment before the end; chargebacks are passed over. False at the end. */
static bool next_payment(weir_simulate *sim, int64_t end_us, weir_simulate_message *m) {
    do {
        weir_simulate_next(sim, m);
    } while (m->topic != WEIR_SIMULATE_PAYMENTS);
    return m->time_us < end_us;
}

static int64_t start_us(void) {
    return weir_simulate_payments_defaults().start_us;
}

/* --- how much ----------------------------------------------------------------------------------------------------- */

static void rate_is_as_asked(void **state) {
    (void)state;
    weir_simulate *sim = open_with(5000, 6000, 10000);
    weir_simulate_message m;
    uint64_t payments = 0, frauds = 0;
    while (next_payment(sim, start_us() + 28 * DAY_US, &m)) {
        payments++;
        frauds += m.fraud != WEIR_SIMULATE_HONEST;
    }
    assert_true(payments > 28 * 6000 * 97 / 100 && payments < 28 * 6000 * 103 / 100);
    assert_true(frauds > payments * 88 / 10000 && frauds < payments * 112 / 10000);
    weir_simulate_close(sim);
}

static void every_kind_of_fraud_has_its_share(void **state) {
    (void)state;
    static const double shares[WEIR_SIMULATE_FRAUDS] = {0, 0.35, 0.22, 0.20, 0.10, 0.13};
    weir_simulate *sim = open_with(5000, 6000, 20000);
    weir_simulate_message m;
    double counts[WEIR_SIMULATE_FRAUDS] = {0}, frauds = 0;
    while (next_payment(sim, start_us() + 28 * DAY_US, &m)) {
        counts[m.fraud]++;
        frauds += m.fraud != WEIR_SIMULATE_HONEST;
    }
    for (int fraud = 1; fraud < WEIR_SIMULATE_FRAUDS; fraud++)
        assert_true(fabs(counts[fraud] / frauds - shares[fraud]) < 0.05);
    weir_simulate_close(sim);
}

/* --- when --------------------------------------------------------------------------------------------------------- */

static void rhythm_of_day_and_week(void **state) {
    (void)state;
    weir_simulate *sim = open_with(5000, 6000, 10000);
    weir_simulate_message m;
    double hours[24] = {0}, days[7] = {0}, total = 0;
    while (next_payment(sim, start_us() + 28 * DAY_US, &m)) { /* begins on a Monday */
        hours[m.time_us / HOUR_US % 24]++;
        days[(m.time_us - start_us()) / DAY_US % 7]++;
        total++;
    }
    assert_true((hours[1] + hours[2] + hours[3]) / total < 0.03);
    assert_true((hours[12] + hours[17] + hours[18]) / total > 0.18);
    assert_true(days[4] > 1.1 * days[0] && days[5] > 1.1 * days[0]); /* Friday and Saturday over Monday */
    assert_true(days[6] < 0.9 * days[0]);                            /* Sunday under it                 */
    weir_simulate_close(sim);
}

/* --- by whom ------------------------------------------------------------------------------------------------------ */

static void activity_and_popularity_are_skewed(void **state) {
    (void)state;
    static counters accounts, merchants;
    weir_simulate *sim = open_with(10000, 25000, 5000);
    weir_simulate_message m;
    sim_object object;
    for (int i = 0; i < 200000; i++) {
        assert_true(next_payment(sim, INT64_MAX, &m));
        sim_read(&m, &object);
        ++*counter(&accounts, sim_number(sim_field_of(&object, "account")));
        const char *merchant = sim_field_of(&object, "merchant");
        if (merchant) ++*counter(&merchants, sim_number(merchant));
    }
    assert_true(accounts.count > 9000 && merchants.count > 400);
    double share = first_percent_share(&accounts);
    assert_true(share > 0.10 && share < 0.22); /* ln 2 / ln 101 = 0.15 */
    share = first_percent_share(&merchants);
    assert_true(share > 0.08 && share < 0.40);
    weir_simulate_close(sim);
}

/* Over a year, some holders leave and others open an account; what one has left is seen no more. */
static void accounts_open_over_time(void **state) {
    (void)state;
    static counters first, last;
    weir_simulate *sim = open_with(200, 600, 5000);
    weir_simulate_message m;
    sim_object object;
    while (next_payment(sim, start_us() + 400 * DAY_US, &m)) {
        sim_read(&m, &object);
        uint64_t account = sim_number(sim_field_of(&object, "account"));
        uint64_t *seen = counter(&first, account);
        if (!*seen) *seen = (uint64_t)m.time_us;
        *counter(&last, account) = (uint64_t)m.time_us;
    }
    uint64_t late = (uint64_t)(start_us() + 60 * DAY_US), opened = 0, closed = 0;
    for (size_t i = 0; i < COUNTERS; i++) {
        opened += first.keys[i] && first.values[i] > late;
        closed += last.keys[i] && last.values[i] < (uint64_t)(start_us() + 340 * DAY_US);
    }
    assert_true(first.count >= 200 + opened && first.count < 240 + opened); /* some opened in the first weeks */
    assert_true(opened > 15 && opened < 90);
    assert_true(closed > 15 && closed < 90);
    weir_simulate_close(sim);
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

static int rising_f64(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void labels_come_after_days_or_weeks(void **state) {
    (void)state;
    enum { DELAYS = 8192 };
    static double delays[DELAYS];
    weir_simulate *sim = open_with(5000, 12000, 20000);
    weir_simulate_message m;
    size_t count = 0, never = 0, honest = 0, friendly = 0;
    while (next_payment(sim, start_us() + 20 * DAY_US, &m)) {
        honest += !m.fraud;
        friendly += !m.fraud && m.chargeback_us != WEIR_SIMULATE_NEVER;
        never += m.fraud && m.chargeback_us == WEIR_SIMULATE_NEVER;
        if (!m.fraud || m.chargeback_us == WEIR_SIMULATE_NEVER) continue;
        assert_true(count < DELAYS);
        delays[count++] = (double)(m.chargeback_us - m.time_us) / (double)DAY_US;
    }
    qsort(delays, count, sizeof delays[0], rising_f64);
    assert_true(count > 2000);
    assert_true(delays[0] > 0.7 && delays[count - 1] <= 63.1);
    assert_true(fabs(delays[count / 2] - 9) < 1);
    assert_true(delays[count / 10] > 2 && delays[count / 10] < 4.5);
    assert_true(delays[count * 9 / 10] > 18 && delays[count * 9 / 10] < 34);
    assert_true(never * 100 > count * 10 && never * 100 < count * 18);  /* 12 in 100, of all */
    assert_true(friendly * 20000 > honest && friendly * 3000 < honest); /* about 0.13 in 1000 */
    weir_simulate_close(sim);
}

/* A chargeback blocks the card: whatever is paid later is paid with another. */
static void blocked_cards_pay_no_more(void **state) {
    (void)state;
    enum { LATEST = 1u << 18 };
    static uint32_t card_of[LATEST]; /* of the payment with this number, plus 1; frauds only */
    static counters blocked;
    weir_simulate *sim = open_with(2000, 6000, 20000);
    sim_object object;
    uint64_t blocks = 0;
    for (int i = 0; i < 120000; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        sim_read(&m, &object);
        if (m.topic == WEIR_SIMULATE_CHARGEBACKS) {
            uint32_t card = card_of[sim_number(sim_field_of(&object, "payment"))];
            if (card) ++*counter(&blocked, card), blocks++;
            continue;
        }
        const char *card = sim_field_of(&object, "card");
        if (!card) continue;
        assert_int_equal(*counter(&blocked, sim_number(card) + 1), 0);
        if (m.fraud) card_of[sim_number(sim_field_of(&object, "id"))] = (uint32_t)sim_number(card) + 1;
    }
    assert_true(blocks > 500);
    weir_simulate_close(sim);
}

/* --- fraud from outside: no field of the row gives it away -------------------------------------------------------- */

static size_t channel_bin(const char *channel) {
    return *channel == 'w' ? 0 : *channel == 'p' ? 1 : *channel == 't' ? 2 : channel[1] == 'p' ? 3 : 4;
}

/* Bins of half a doubling. */
static size_t amount_bin(const char *amount) {
    double value = log2(strtod(amount, NULL)) * 2 + 10;
    return value < 0 ? 0 : value > 63 ? 63 : (size_t)value;
}

static void g4_fraud_has_the_marginals_of_honest_payments(void **state) {
    (void)state;
    static double hours[2][168], amounts[2][64], channels[2][5], trades[2][100], countries[2][676];
    weir_simulate *sim = open_with(20000, 9000, 30000);
    weir_simulate_message m;
    sim_object o;
    while (next_payment(sim, start_us() + 14 * DAY_US, &m)) {
        bool fraud = m.fraud != WEIR_SIMULATE_HONEST;
        sim_read(&m, &o);
        hours[fraud][(m.time_us - start_us()) / HOUR_US % 168]++;
        channels[fraud][channel_bin(sim_field_of(&o, "channel"))]++;
        const char *country = sim_field_of(&o, "country");
        countries[fraud][(country[0] - 'A') * 26 + country[1] - 'A']++;
        if (strcmp(sim_field_of(&o, "currency"), "EUR") == 0) amounts[fraud][amount_bin(sim_field_of(&o, "amount"))]++;
        if (sim_field_of(&o, "mcc")) trades[fraud][strtoul(sim_field_of(&o, "mcc"), NULL, 10) / 100]++;
    }
    assert_true(sim_distance(hours[0], hours[1], 168) < 0.06);
    assert_true(sim_distance(amounts[0], amounts[1], 64) < 0.10);
    assert_true(sim_distance(channels[0], channels[1], 5) < 0.20);
    assert_true(sim_distance(trades[0], trades[1], 100) < 0.15);
    assert_true(sim_distance(countries[0], countries[1], 676) < 0.15);
    weir_simulate_close(sim);
}

/* --- fraud from inside: who meets whom ---------------------------------------------------------------------------- */

#define MEMBERS 160u

/* What was seen of one campaign: its payments in order. */
typedef struct member {
    uint64_t account, device, merchant, payee;
    bool remote;
} member;
typedef struct group {
    uint64_t campaign;
    weir_simulate_fraud fraud;
    member members[MEMBERS];
    size_t count;
} group;

#define GROUPS 512u
static group groups[GROUPS];

static size_t distinct(const group *g, size_t offset, bool remote_only) {
    uint64_t seen[MEMBERS];
    size_t count = 0;
    for (size_t i = 0; i < g->count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&g->members[i] + offset, sizeof value);
        bool known = value == UINT64_MAX || (remote_only && !g->members[i].remote);
        for (size_t j = 0; !known && j < count; j++)
            known = seen[j] == value;
        if (!known) seen[count++] = value;
    }
    return count;
}
#define DISTINCT(g, field) distinct((g), offsetof(member, field), false)

static uint64_t number_or_none(const sim_object *o, const char *name) {
    const char *text = sim_field_of(o, name);
    return text ? sim_number(text) : UINT64_MAX;
}

static group *group_of(const weir_simulate_message *m) {
    group *g = &groups[m->campaign % GROUPS];
    if (g->campaign != m->campaign) {
        g->campaign = m->campaign;
        g->fraud = m->fraud;
        g->count = 0;
    }
    return g;
}

/* Fills the groups with whole campaigns, and returns the first number of one that began after the start. */
static uint64_t watch_campaigns(void) {
    weir_simulate *sim = open_with(20000, 20000, 10000);
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    uint64_t first = stats.campaigns + 1;
    weir_simulate_message m;
    sim_object o;
    while (next_payment(sim, start_us() + 14 * DAY_US, &m)) {
        if (!m.fraud) continue;
        sim_read(&m, &o);
        group *g = group_of(&m);
        assert_true(g->fraud == m.fraud && g->count < MEMBERS);
        const char *channel = sim_field_of(&o, "channel");
        g->members[g->count++] =
            (member){sim_number(sim_field_of(&o, "account")), sim_number(sim_field_of(&o, "device")),
                     number_or_none(&o, "merchant"), number_or_none(&o, "payee"),
                     strcmp(channel, "pos") != 0 && strcmp(channel, "atm") != 0};
    }
    weir_simulate_close(sim);
    return first;
}

static size_t accounts_on(const group *g, uint64_t device) {
    group users = {.count = 0};
    for (size_t i = 0; i < g->count; i++)
        if (g->members[i].remote && g->members[i].device == device) users.members[users.count++] = g->members[i];
    return DISTINCT(&users, account);
}

/* Many accounts, and no device that more than two of them use (chance may make two members neighbours twice). */
static void check_ring(const group *g) {
    assert_true(DISTINCT(g, merchant) <= 5);
    assert_true(DISTINCT(g, account) <= 12);
    for (size_t i = 0; i < g->count; i++)
        if (g->members[i].remote) assert_true(accounts_on(g, g->members[i].device) <= 3);
}

/* Whoever sends, and is not the victim, was paid before. */
static void check_chain(const group *g) {
    for (size_t i = 1; i < g->count; i++) {
        bool paid = g->members[i].account == g->members[0].account;
        for (size_t j = 0; !paid && j < i; j++)
            paid = g->members[j].payee == g->members[i].account;
        assert_true(paid);
    }
}

static void campaigns_are_made_of_relations(void **state) {
    (void)state;
    uint64_t first = watch_campaigns();
    size_t seen[WEIR_SIMULATE_FRAUDS] = {0};
    for (size_t i = 0; i < GROUPS; i++) {
        const group *g = &groups[i];
        if (g->campaign < first || g->count == 0) continue;
        seen[g->fraud]++;
        switch (g->fraud) {
        case WEIR_SIMULATE_RING:
            check_ring(g);
            break;
        case WEIR_SIMULATE_COLLUSION:
            assert_int_equal(DISTINCT(g, merchant), 1);
            break;
        case WEIR_SIMULATE_TAKEOVER:
            assert_int_equal(DISTINCT(g, account), 1);
            assert_int_equal(DISTINCT(g, device), 1);
            break;
        case WEIR_SIMULATE_MULE:
            check_chain(g);
            break;
        case WEIR_SIMULATE_STOLEN_CARD:
            assert_true(DISTINCT(g, account) <= 6);
            break;
        case WEIR_SIMULATE_HONEST:
        case WEIR_SIMULATE_FRAUDS:
            fail();
        }
    }
    for (int fraud = 1; fraud < WEIR_SIMULATE_FRAUDS; fraud++)
        assert_true(seen[fraud] >= 3);
}

/* A crew's devices and mules come back: that is the second hop. */
static void crews_link_their_campaigns(void **state) {
    (void)state;
    static counters campaigns_of_device;
    uint64_t first = watch_campaigns();
    size_t shared = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        const group *g = &groups[i];
        if (g->campaign < first || g->fraud != WEIR_SIMULATE_STOLEN_CARD) continue;
        for (size_t j = 0; j < g->count; j++) {
            if (!g->members[j].remote) continue;
            uint64_t *campaign = counter(&campaigns_of_device, g->members[j].device);
            shared += *campaign && *campaign != g->campaign;
            *campaign = g->campaign;
        }
    }
    assert_true(shared > 20);
}

WEIR_TESTS(WEIR_CASE(rate_is_as_asked), WEIR_CASE(every_kind_of_fraud_has_its_share), WEIR_CASE(rhythm_of_day_and_week),
           WEIR_CASE(activity_and_popularity_are_skewed), WEIR_CASE(accounts_open_over_time),
           WEIR_CASE(labels_come_after_days_or_weeks), WEIR_CASE(blocked_cards_pay_no_more),
           WEIR_CASE(g4_fraud_has_the_marginals_of_honest_payments), WEIR_CASE(campaigns_are_made_of_relations),
           WEIR_CASE(crews_link_their_campaigns))
