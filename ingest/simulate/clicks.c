/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clicks.c - people who look around in a shop.
 *
 * A person has three tastes among the categories, and in each a niche; a taste lasts for weeks and then becomes another
 * one. A session is a walk: the next item belongs to a taste, or goes well with the last one. What was viewed may go
 * into the cart, what is in the cart may be bought.
 *
 * The catalogue turns like a wheel: in each category a new item enters at the most popular rank every so often, and
 * moves every other one a rank down; the last one leaves. So popularity drifts, and there are always items that nobody
 * has bought yet, in the memory of a constant number of places.
 */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sim_agenda.h"
#include "sim_alias.h"
#include "sim_private.h"
#include "sim_rhythm.h"
#include "sim_text.h"

#define CATEGORIES         24u
#define ITEM_DAYS          200 /* from the first rank to the last             */
#define ITEM_GENERATIONS   16u /* numbers of one place before the first again */
#define RANK_FLAT          4u
#define PERSON_FLAT_SHARE  50u
#define TASTES             3u
#define TASTE_DAYS         60u
#define NICHES             4u
#define NICHE_TRIES        3u
#define PARTNERS           3u /* items that go well with one */
#define CART_MAX           4u
#define SESSION_MEAN       8
#define SESSION_MAX        60
#define CLICKS_PER_SESSION 783u /* in hundredths, on average; measured, and held by the test clicks_rate_is_as_asked */
#define PAUSE_MEDIAN       (18 * WEIR_SIM_SECOND)
#define PAUSE_SIGMA_Q16    98304u
#define NO_ITEM            UINT32_MAX

typedef enum click_kind { CLICK_VIEW, CLICK_CART, CLICK_BUY } click_kind;

/* An item is its place in the catalogue times ITEM_GENERATIONS plus its generation. */
typedef struct clicks_session {
    uint64_t number;
    uint32_t person, steps, left; /* left: clicks that are still to come */
    uint32_t last;                /* item viewed last, or NO_ITEM        */
    uint32_t cart[CART_MAX];
    uint8_t cart_count;
    bool checkout; /* only what is in the cart is bought now */
} clicks_session;

typedef struct weir_sim_clicks {
    weir_simulate base;
    weir_simulate_clicks_opts opts;
    weir_sim_math math;
    weir_sim_rhythm rhythm;
    weir_sim_agenda sessions;
    weir_sim_alias_entry *person_alias;
    weir_sim_alias_entry *rank_alias;
    weir_sim_scramble people, items;
    uint32_t places; /* of one category */
    int64_t turn_us; /* the wheel moves by one place in this time */
    weir_rng gaps;
    int64_t gap_mean;
    int64_t busy_arrival; /* of the next session */
    uint64_t session_count;
    weir_sim_date date;
    char line[WEIR_SIM_LINE_MAX];
} weir_sim_clicks;

static const weir_sim_week clicks_week = {
    .hours = {{3, 2, 1, 1, 1, 1, 2, 4, 6, 7, 8, 9, 11, 10, 9, 9, 10, 11, 13, 16, 19, 19, 14, 7},
              {5, 3, 2, 1, 1, 1, 1, 2, 5, 8, 11, 13, 13, 13, 13, 13, 13, 12, 12, 13, 14, 14, 11, 8},
              {6, 4, 2, 1, 1, 1, 1, 2, 4, 8, 11, 13, 13, 14, 15, 15, 15, 15, 16, 18, 20, 18, 12, 6}},
    .day_percent = {104, 98, 96, 97, 92, 101, 112},
};

/* --- items -------------------------------------------------------------------------------------------------------- */

static uint32_t clicks_category(const weir_sim_clicks *sim, uint32_t item) {
    return item / ITEM_GENERATIONS / sim->places;
}

/* The item that stands at a place at this time: its generation is how often the wheel has passed the place. */
static uint32_t clicks_item_at(const weir_sim_clicks *sim, uint32_t category, uint32_t place, int64_t time_us) {
    uint64_t turns = (uint64_t)(time_us / sim->turn_us);
    uint32_t generation = (uint32_t)((place + turns) / sim->places % ITEM_GENERATIONS);
    return (category * sim->places + place) * ITEM_GENERATIONS + generation;
}

/* --- people ------------------------------------------------------------------------------------------------------- */

/* Half of a person's interest goes to the first taste, a quarter to the second; now and then it is anything. */
static uint32_t clicks_choose_category(const weir_sim_clicks *sim, uint32_t person, int64_t day, weir_rng *rng) {
    static const uint32_t share[TASTES] = {500, 250, 150};
    uint32_t roll = weir_sim_below(rng, 1000);
    for (uint32_t taste = 0; taste < TASTES; taste++) {
        if (roll >= share[taste]) {
            roll -= share[taste];
            continue;
        }
        weir_rng phase = weir_rng_stream(sim->opts.seed, person, WEIR_SIM_TASTE | taste);
        uint64_t epoch = ((uint64_t)day + weir_sim_below(&phase, TASTE_DAYS)) / TASTE_DAYS;
        weir_rng liking = weir_rng_stream(sim->opts.seed, epoch << 32 | person, WEIR_SIM_TASTE | 1u << 8 | taste);
        uint32_t a = weir_sim_below(&liking, CATEGORIES);
        uint32_t b = weir_sim_below(&liking, CATEGORIES);
        return a < b ? a : b;
    }
    return weir_sim_below(rng, CATEGORIES);
}

static uint32_t clicks_choose_item(const weir_sim_clicks *sim, const clicks_session *s, int64_t time_us,
                                   weir_rng *rng) {
    if (s->last != NO_ITEM && weir_sim_chance(rng, 300)) {
        uint32_t which = weir_sim_below(rng, PARTNERS), place = s->last / ITEM_GENERATIONS;
        weir_rng partner = weir_rng_stream(sim->opts.seed, place, WEIR_SIM_ITEM | 1u << 8 | which);
        return clicks_item_at(sim, clicks_category(sim, s->last), weir_sim_below(&partner, sim->places), time_us);
    }
    uint32_t category = clicks_choose_category(sim, s->person, time_us / WEIR_SIM_DAY, rng);
    weir_rng liking = weir_rng_stream(sim->opts.seed, s->person, WEIR_SIM_TASTE | 2u << 8 | category);
    uint32_t niche = weir_sim_below(&liking, NICHES), item = NO_ITEM;
    uint32_t turned = (uint32_t)((uint64_t)(time_us / sim->turn_us) % sim->places);
    for (uint32_t i = 0; i < NICHE_TRIES; i++) {
        uint32_t rank = weir_sim_alias_pick(sim->rank_alias, sim->places, weir_rng_u32(rng));
        item = clicks_item_at(sim, category, (rank + sim->places - turned) % sim->places, time_us);
        weir_rng of_item = weir_rng_stream(sim->opts.seed, item, WEIR_SIM_ITEM | 2u << 8);
        if (weir_sim_below(&of_item, NICHES) == niche) break;
    }
    return item;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

/* One click of the session; the item is what it is about. */
static click_kind session_click(const weir_sim_clicks *sim, clicks_session *s, int64_t time_us, weir_rng *rng,
                                uint32_t *itemp) {
    uint32_t roll = weir_sim_below(rng, 1000);
    bool free_to_cart = s->last != NO_ITEM && s->cart_count < CART_MAX;
    WEIR_ASSERT(s->cart_count <= CART_MAX && (!s->checkout || s->cart_count > 0));
    for (uint32_t i = 0; i < s->cart_count; i++)
        free_to_cart = free_to_cart && s->cart[i] != s->last;
    if (s->checkout || (s->cart_count && roll < 60)) {
        *itemp = s->cart[--s->cart_count];
        return CLICK_BUY;
    }
    if (free_to_cart && roll >= 60 && roll < 160) {
        *itemp = s->cart[s->cart_count++] = s->last;
        return CLICK_CART;
    }
    if (free_to_cart && roll >= 160 && roll < 175) {
        *itemp = s->last;
        s->last = NO_ITEM;
        return CLICK_BUY;
    }
    *itemp = s->last = clicks_choose_item(sim, s, time_us, rng);
    return CLICK_VIEW;
}

/* Whether the session goes on. At its end a full cart is bought as often as it is left standing. */
static bool session_goes_on(clicks_session *s, weir_rng *rng) {
    s->steps++;
    if (s->left > 1) {
        s->left--;
        return true;
    }
    if (s->checkout || s->cart_count == 0 || !weir_sim_chance(rng, 500)) return false;
    s->checkout = true;
    s->left = s->cart_count;
    return true;
}

static void clicks_begin_session(weir_sim_clicks *sim) {
    clicks_session s = {.number = ++sim->session_count, .last = NO_ITEM};
    int64_t begin = sim->busy_arrival;
    sim->busy_arrival += weir_sim_exponential(&sim->math, &sim->gaps, sim->gap_mean);
    if (weir_sim_agenda_room(&sim->sessions) == 0) {
        sim->base.stats.crowded_out++;
        return;
    }
    weir_rng rng = weir_rng_stream(sim->opts.seed, s.number, WEIR_SIM_SESSION | 0xFFFFu);
    uint32_t rank = weir_sim_alias_pick(sim->person_alias, sim->opts.people, weir_rng_u32(&rng));
    s.person = rank;
    s.left = (uint32_t)weir_sim_exponential(&sim->math, &rng, SESSION_MEAN);
    if (s.left > SESSION_MAX) s.left = SESSION_MAX;
    weir_sim_agenda_add(&sim->sessions, begin, &s);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static void clicks_write(weir_sim_clicks *sim, const clicks_session *s, click_kind kind, uint32_t item,
                         weir_simulate_message *messagep) {
    static const char kinds[][18] = {"\",\"kind\":\"view\"", "\",\"kind\":\"cart\"", "\",\"kind\":\"buy\""};
    WEIR_ASSERT(item < CATEGORIES * sim->places * ITEM_GENERATIONS);
    weir_rng of_item = weir_rng_stream(sim->opts.seed, item, WEIR_SIM_ITEM | 3u << 8);
    uint32_t category = clicks_category(sim, item);
    uint64_t cents = weir_sim_lognormal(&sim->math, &of_item, 500 * (1 + category % 11), 65536);
    char *p = WEIR_SIM_PUT(sim->line, "{\"id\":\"k");
    p = weir_sim_put_digits(p, sim->base.stats.clicks, 16);
    p = WEIR_SIM_PUT(p, "\",\"time\":\"");
    p = weir_sim_put_time(p, &sim->date, messagep->time_us);
    p = WEIR_SIM_PUT(p, "\",\"person\":\"");
    messagep->key = p;
    *p++ = 'u';
    p = weir_sim_put_digits(p, weir_sim_scrambled(&sim->people, s->person), sim->people.digits);
    messagep->key_length = (size_t)(p - messagep->key);
    p = WEIR_SIM_PUT(p, "\",\"item\":\"i");
    p = weir_sim_put_digits(p, weir_sim_scrambled(&sim->items, item), sim->items.digits);
    p = WEIR_SIM_PUT(p, "\",\"session\":\"s");
    p = weir_sim_put_digits(p, s->number, 12);
    size_t length = kind == CLICK_BUY ? 14 : 15;
    memcpy(p, kinds[kind], length);
    p = WEIR_SIM_PUT(p + length, ",\"category\":\"c");
    p = weir_sim_put_pair(p, category);
    p = WEIR_SIM_PUT(p, "\",\"price\":");
    p = weir_sim_put_cents(p, cents / 100 * 100 + 99);
    *p++ = '}';
    messagep->value = sim->line;
    messagep->value_length = weir_sim_line_check(sim->line, p);
}

static void clicks_next(weir_simulate *base, weir_simulate_message *messagep) {
    weir_sim_clicks *sim = (weir_sim_clicks *)base;
    while (sim->busy_arrival <= weir_sim_agenda_next(&sim->sessions))
        clicks_begin_session(sim);
    clicks_session s;
    int64_t busy_us = weir_sim_agenda_next(&sim->sessions);
    int64_t time_us = weir_sim_time_of(&sim->rhythm, busy_us);
    weir_sim_agenda_take(&sim->sessions, &s);
    *messagep = (weir_simulate_message){.topic = WEIR_SIMULATE_CLICKS,
                                        .time_us = time_us > sim->opts.start_us ? time_us : sim->opts.start_us,
                                        .chargeback_us = WEIR_SIMULATE_NEVER};
    weir_rng rng = weir_rng_stream(sim->opts.seed, s.number, WEIR_SIM_SESSION | s.steps);
    uint32_t item = NO_ITEM;
    click_kind kind = session_click(sim, &s, messagep->time_us, &rng, &item);
    sim->base.stats.clicks++;
    clicks_write(sim, &s, kind, item, messagep);
    uint64_t pause = weir_sim_lognormal(&sim->math, &rng, PAUSE_MEDIAN, PAUSE_SIGMA_Q16);
    if (session_goes_on(&s, &rng)) weir_sim_agenda_add(&sim->sessions, busy_us + (int64_t)pause, &s);
    WEIR_ASSERT(messagep->time_us >= sim->base.stats.time_us); // SIMULATE-G2
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static void clicks_close(weir_simulate *base) {
    weir_sim_clicks *sim = (weir_sim_clicks *)base;
    weir_sim_agenda_close(&sim->sessions);
    weir_free(sim->person_alias);
    weir_free(sim->rank_alias);
    weir_free(sim);
}

static weir_err clicks_open_tables(weir_sim_clicks *sim) {
    uint32_t people = sim->opts.people;
    uint32_t most = people > sim->places ? people : sim->places;
    uint64_t *weights = weir_calloc(most, sizeof *weights);
    uint32_t *stack = weir_calloc(most, sizeof *stack);
    sim->person_alias = weir_calloc(people, sizeof *sim->person_alias);
    sim->rank_alias = weir_calloc(sim->places, sizeof *sim->rank_alias);
    weir_err err = WEIR_OK;
    if (!weights || !stack || !sim->person_alias || !sim->rank_alias) {
        err = WEIR_NOMEM("for %u people and %u items; simulate fewer", people, sim->opts.items);
    } else {
        weir_sim_zipf_weights(weights, people, 1 + people / PERSON_FLAT_SHARE);
        weir_sim_alias_fill(sim->person_alias, weights, stack, people);
        weir_sim_zipf_weights(weights, sim->places, RANK_FLAT);
        weir_sim_alias_fill(sim->rank_alias, weights, stack, sim->places);
    }
    weir_free(weights);
    weir_free(stack);
    return err;
}

static weir_err clicks_start(weir_sim_clicks *sim) {
    uint64_t sessions = (uint64_t)sim->opts.per_day * 100 / CLICKS_PER_SESSION + 1;
    sim->gap_mean = WEIR_SIM_DAY / (int64_t)sessions + 1;
    sim->people = weir_sim_scramble_make(sim->opts.seed, 5, sim->opts.people, 7);
    sim->items = weir_sim_scramble_make(sim->opts.seed, 6, (uint64_t)CATEGORIES * sim->places * ITEM_GENERATIONS, 6);
    sim->turn_us = ITEM_DAYS * WEIR_SIM_DAY / sim->places;
    weir_sim_rhythm_init(&sim->rhythm, &clicks_week, sim->opts.start_us);
    sim->gaps = weir_rng_stream(sim->opts.seed, 1, WEIR_SIM_GAP);
    sim->busy_arrival = weir_sim_busy_of(&sim->rhythm, sim->opts.start_us);
    sim->busy_arrival += weir_sim_exponential(&sim->math, &sim->gaps, sim->gap_mean);
    sim->base.stats.time_us = sim->opts.start_us;
    sim->date.day = -1;
    /* A session lasts some minutes: room for those of a whole hour, and then some. */
    return weir_sim_agenda_open(&sim->sessions, sessions / 12 + 1024, sizeof(clicks_session));
}

weir_err weir_simulate_clicks_open(const weir_simulate_clicks_opts *opts, weir_simulate **simp) {
    *simp = NULL;
    weir_simulate_clicks_opts own = *opts;
    if (own.per_day == 0) own.per_day = own.people * 12;
    weir_err err = weir_sim_check("people", own.people, WEIR_SIMULATE_PEOPLE_MIN, WEIR_SIMULATE_PEOPLE_MAX);
    if (!err) err = weir_sim_check("items", own.items, WEIR_SIMULATE_ITEMS_MIN, WEIR_SIMULATE_ITEMS_MAX);
    if (!err) err = weir_sim_check("clicks a day", own.per_day, WEIR_SIMULATE_PER_DAY_MIN, WEIR_SIMULATE_PER_DAY_MAX);
    if (!err) err = weir_sim_check_start(own.start_us);
    if (err) return err;
    weir_sim_clicks *sim = weir_calloc(1, sizeof *sim);
    if (!sim) return WEIR_NOMEM("for a click generator; free some");
    sim->base.next = clicks_next;
    sim->base.close = clicks_close;
    sim->opts = own;
    sim->places = own.items / CATEGORIES;
    weir_sim_math_init(&sim->math);
    err = clicks_open_tables(sim);
    if (!err) err = clicks_start(sim);
    if (err) {
        clicks_close(&sim->base);
        return err;
    }
    *simp = &sim->base;
    return WEIR_OK;
}
