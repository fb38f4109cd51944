/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of the click generator, and what its stream is like. */
#include "sim_support.h"

#include <math.h>

#define DAY_US  86400000000ll
#define HOUR_US 3600000000ll

static int64_t start_us(void) {
    return weir_simulate_clicks_defaults().start_us;
}

/* --- promises ----------------------------------------------------------------------------------------------------- */

static void g1_same_options_same_bytes_for_ever(void **state) {
    (void)state;
    weir_simulate *sim = sim_clicks(2000, 5000, 42);
    sim_golden(sim, "clicks", 24, 60000);
    weir_simulate_close(sim);
}

static void g1_a_shorter_run_is_a_prefix(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    weir_simulate *a = sim_clicks(2000, 5000, seed);
    weir_simulate *b = sim_clicks(2000, 5000, seed);
    assert_true(sim_hash(a, 4000) == sim_hash(b, 4000));
    weir_simulate_close(a);
    assert_false(sim_hash(b, 4000) == 0);
    weir_simulate_close(b);
}

static void messages_keep_the_contract(void **state) {
    (void)state;
    static const char *const names[] = {"id", "time", "person", "item", "session", "kind", "category", "price"};
    weir_simulate *sim = sim_clicks(2000, 5000, weir_test_seed());
    for (uint64_t i = 1; i <= 30000; i++) {
        weir_simulate_message m;
        char text[WEIR_TIME_TEXT_MAX];
        sim_object o;
        weir_simulate_next(sim, &m);
        assert_int_equal(m.topic, WEIR_SIMULATE_CLICKS);
        assert_int_equal(m.fraud, WEIR_SIMULATE_HONEST);
        sim_read(&m, &o);
        assert_int_equal(o.count, sizeof names / sizeof names[0]);
        for (size_t j = 0; j < o.count; j++)
            assert_string_equal(o.fields[j].name, names[j]);
        assert_true(o.fields[0].text[0] == 'k' && sim_number(o.fields[0].text) == i);
        weir_time_format(m.time_us, text);
        assert_string_equal(o.fields[1].text, text);
        assert_true(o.fields[2].text[0] == 'u' && o.fields[3].text[0] == 'i' && o.fields[4].text[0] == 's');
        assert_memory_equal(m.key, o.fields[2].text, m.key_length);
        assert_int_equal(m.key_length, strlen(o.fields[2].text));
        assert_true(o.fields[6].text[0] == 'c' && strlen(o.fields[6].text) == 3);
        assert_false(o.fields[7].quoted);
    }
    weir_simulate_close(sim);
}

static void g2_times_never_go_back(void **state) {
    (void)state;
    weir_simulate *sim = sim_clicks(2000, 5000, weir_test_seed());
    sim_check_order(sim, start_us(), 100000);
    weir_simulate_close(sim);
}

static void g3_no_memory_is_taken_after_open(void **state) {
    (void)state;
    weir_simulate *sim = sim_clicks(2000, 5000, weir_test_seed());
    weir_alloc_stats before, after;
    weir_alloc_stats_get(&before);
    sim_hash(sim, 200000);
    weir_alloc_stats_get(&after);
    assert_int_equal(after.allocations, before.allocations);
    assert_int_equal(after.live_bytes, before.live_bytes);
    weir_simulate_stats stats;
    weir_simulate_stats_get(sim, &stats);
    assert_int_equal(stats.crowded_out, 0);
    assert_int_equal(stats.clicks, 200000);
    weir_simulate_close(sim);
}

static weir_err open_and_close(void *context) {
    weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
    opts.people = 200;
    opts.items = 1000;
    weir_simulate *sim = NULL;
    weir_err err = weir_simulate_clicks_open(&opts, &sim);
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

static void refuses(weir_simulate_clicks_opts opts, const char *text) {
    weir_simulate *sim = (weir_simulate *)&opts; /* must become NULL */
    assert_err(weir_simulate_clicks_open(&opts, &sim), WEIR_EINVAL, text);
    assert_null(sim);
}

static void options_out_of_range_are_refused(void **state) {
    (void)state;
    const weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
#define REFUSES(field, wrong, text)               \
    do {                                          \
        weir_simulate_clicks_opts changed = opts; \
        changed.field = (wrong);                  \
        refuses(changed, (text));                 \
    } while (0)
    REFUSES(people, WEIR_SIMULATE_PEOPLE_MIN - 1, "people is 99");
    REFUSES(people, WEIR_SIMULATE_PEOPLE_MAX + 1, "people");
    REFUSES(items, WEIR_SIMULATE_ITEMS_MIN - 1, "items");
    REFUSES(items, WEIR_SIMULATE_ITEMS_MAX + 1, "items");
    REFUSES(per_day, WEIR_SIMULATE_PER_DAY_MIN - 1, "clicks a day");
    REFUSES(per_day, WEIR_SIMULATE_PER_DAY_MAX + 1, "clicks a day");
    REFUSES(start_us, WEIR_SIMULATE_START_MIN - 1, "start");
    REFUSES(start_us, WEIR_SIMULATE_START_MAX + 1, "start");
#undef REFUSES
}

static void accepts(uint32_t people, uint32_t items, uint32_t per_day) {
    weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
    opts.people = people;
    opts.items = items;
    opts.per_day = per_day;
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_clicks_open(&opts, &sim));
    sim_hash(sim, 500);
    weir_simulate_close(sim);
}

static void options_at_their_limits_work(void **state) {
    (void)state;
    accepts(WEIR_SIMULATE_PEOPLE_MIN, WEIR_SIMULATE_ITEMS_MIN, WEIR_SIMULATE_PER_DAY_MIN);
    accepts(WEIR_SIMULATE_PEOPLE_MAX, WEIR_SIMULATE_ITEMS_MAX, 0);
    accepts(WEIR_SIMULATE_PEOPLE_MIN, WEIR_SIMULATE_ITEMS_MIN, WEIR_SIMULATE_PER_DAY_MAX);
}

/* --- what the stream is like -------------------------------------------------------------------------------------- */

static void clicks_rate_is_as_asked(void **state) {
    (void)state;
    weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
    opts.people = 5000;
    opts.per_day = 20000;
    opts.seed = weir_test_seed();
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_clicks_open(&opts, &sim));
    double hours[24] = {0}, total = 0;
    weir_simulate_message m;
    for (weir_simulate_next(sim, &m); m.time_us < opts.start_us + 14 * DAY_US; weir_simulate_next(sim, &m)) {
        hours[m.time_us / HOUR_US % 24]++;
        total++;
    }
    assert_true(fabs(total / 14 / 20000 - 1) < 0.03);
    assert_true((hours[2] + hours[3] + hours[4] + hours[5]) / total < 0.04);
    assert_true((hours[19] + hours[20] + hours[21]) / total > 0.20);
    weir_simulate_close(sim);
}

#define SESSIONS 4096u
#define SEEN     64u

/* What a session has viewed and what is in its cart, under its number. */
typedef struct visit {
    uint64_t session, person;
    uint64_t viewed[SEEN], cart[SEEN];
    size_t view_count, cart_count;
} visit;

static bool take(uint64_t *list, size_t *countp, uint64_t value) {
    for (size_t i = 0; i < *countp; i++) {
        if (list[i] != value) continue;
        list[i] = list[--*countp];
        return true;
    }
    return false;
}

static bool has(const uint64_t *list, size_t count, uint64_t value) {
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found = found || list[i] == value;
    return found;
}

static void purchases_follow_views_of_the_same_session(void **state) {
    (void)state;
    static visit visits[SESSIONS];
    weir_simulate *sim = sim_clicks(3000, 5000, weir_test_seed());
    double views = 0, carts = 0, buys = 0, from_cart = 0;
    for (int i = 0; i < 150000; i++) {
        weir_simulate_message m;
        sim_object o;
        weir_simulate_next(sim, &m);
        sim_read(&m, &o);
        uint64_t session = sim_number(sim_field_of(&o, "session")), item = sim_number(sim_field_of(&o, "item"));
        uint64_t person = sim_number(sim_field_of(&o, "person"));
        visit *v = &visits[session % SESSIONS];
        if (v->session != session) *v = (visit){.session = session, .person = person};
        assert_int_equal(v->person, person);
        const char *kind = sim_field_of(&o, "kind");
        if (strcmp(kind, "view") == 0) {
            assert_true(v->view_count < SEEN);
            v->viewed[v->view_count++] = item;
            views++;
        } else if (strcmp(kind, "cart") == 0) {
            assert_true(has(v->viewed, v->view_count, item));
            v->cart[v->cart_count++] = item;
            carts++;
        } else {
            assert_string_equal(kind, "buy");
            bool carted = take(v->cart, &v->cart_count, item);
            assert_true(carted || has(v->viewed, v->view_count, item));
            from_cart += carted;
            buys++;
        }
    }
    assert_true(carts / views > 0.04 && carts / views < 0.20);
    assert_true(buys / views > 0.02 && buys / views < 0.12);
    assert_true(from_cart / buys > 0.5);
    weir_simulate_close(sim);
}

/* Counts views by item in a stretch of time; items are small numbers here. */
#define ITEM_NUMBERS 20000u

static uint64_t popular_item(weir_simulate *sim, int64_t until_us, double *shares_of_top) {
    static uint32_t counts[ITEM_NUMBERS];
    memset(counts, 0, sizeof counts);
    weir_simulate_message m;
    sim_object o;
    double total = 0;
    for (weir_simulate_next(sim, &m); m.time_us < until_us; weir_simulate_next(sim, &m)) {
        sim_read(&m, &o);
        uint64_t item = sim_number(sim_field_of(&o, "item"));
        assert_true(item < ITEM_NUMBERS);
        counts[item]++;
        total++;
    }
    uint64_t best = 0;
    for (uint64_t i = 0; i < ITEM_NUMBERS; i++)
        if (counts[i] > counts[best]) best = i;
    *shares_of_top = counts[best] / total;
    return best;
}

static void popularity_is_skewed_and_drifts(void **state) {
    (void)state;
    weir_simulate *sim = sim_clicks(500, 1200, weir_test_seed());
    double early_share, late_share;
    uint64_t early = popular_item(sim, start_us() + 3 * DAY_US, &early_share);
    double unused;
    popular_item(sim, start_us() + 45 * DAY_US, &unused);
    uint64_t late = popular_item(sim, start_us() + 48 * DAY_US, &late_share);
    assert_true(early_share > 5.0 / 1200 && late_share > 5.0 / 1200);
    assert_true(early != late);
    weir_simulate_close(sim);
}

/* A person's clicks fall into few categories; those of all people into all. */
static void people_have_tastes(void **state) {
    (void)state;
    enum { PEOPLE = 400, CATEGORIES = 24 };
    static double counts[PEOPLE][CATEGORIES];
    double all[CATEGORIES] = {0};
    weir_simulate *sim = sim_clicks(PEOPLE, 5000, weir_test_seed());
    for (int i = 0; i < 40000; i++) {
        weir_simulate_message m;
        sim_object o;
        weir_simulate_next(sim, &m);
        sim_read(&m, &o);
        size_t category = strtoul(sim_field_of(&o, "category") + 1, NULL, 10);
        assert_true(category < CATEGORIES);
        counts[sim_number(sim_field_of(&o, "person"))][category]++;
        all[category]++;
    }
    double first = 0, total = 0;
    for (size_t person = 0; person < PEOPLE; person++) {
        double most = 0;
        for (size_t category = 0; category < CATEGORIES; category++) {
            most = fmax(most, counts[person][category]);
            total += counts[person][category];
        }
        first += most;
    }
    assert_true(first / total > 0.35);
    for (size_t category = 0; category < CATEGORIES; category++)
        assert_true(all[category] / total < 0.20);
    weir_simulate_close(sim);
}

WEIR_TESTS(WEIR_CASE(g1_same_options_same_bytes_for_ever), WEIR_CASE(g1_a_shorter_run_is_a_prefix),
           WEIR_CASE(messages_keep_the_contract), WEIR_CASE(g2_times_never_go_back),
           WEIR_CASE(g3_no_memory_is_taken_after_open), WEIR_CASE(every_allocation_may_fail),
           WEIR_CASE(options_out_of_range_are_refused), WEIR_CASE(options_at_their_limits_work),
           WEIR_CASE(clicks_rate_is_as_asked), WEIR_CASE(purchases_follow_views_of_the_same_session),
           WEIR_CASE(popularity_is_skewed_and_drifts), WEIR_CASE(people_have_tastes))
