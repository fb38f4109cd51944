/* SPDX-License-Identifier: Apache-2.0 */
/*
 * honest.c - what people do of their own accord.
 *
 * Much of it is here because fraud looks like it at first sight: new phones, strangers' devices, journeys, shopping
 * trips with many payments in an hour, a merchant's day of promotion with nothing but new customers, accounts that many
 * pay to, money that is handed on.
 */
#include "sim_payments.h"

#define TRANSFER_PERCENT   12u
#define TRIP_PER_MILLE     90u
#define HAND_ON_PER_MILLE  90u
#define CASH_OUT_PER_MILLE 50u
#define HOLIDAY_TRIES      2u
#define OUTING_PER_MILLE   150u
#define CARDED_TRANSFER    150u /* per mille of transfers that name a card */

void weir_sim_plan_add(weir_sim_payments *sim, int64_t busy_us, const weir_sim_plan *plan) {
    if (weir_sim_agenda_room(&sim->plans) == 0) {
        sim->base.stats.crowded_out++;
        return;
    }
    weir_sim_agenda_add(&sim->plans, busy_us, plan);
}

uint32_t weir_sim_device_for(const weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng) {
    switch ((weir_sim_channel)payment->channel) {
    case WEIR_SIM_POS:
    case WEIR_SIM_ATM:
        return weir_sim_device_terminal(&sim->world, payment->merchant, rng);
    case WEIR_SIM_APP:
        return weir_sim_device_phone(&sim->world, &payment->payer);
    case WEIR_SIM_WEB:
    case WEIR_SIM_TRANSFER:
        break;
    }
    return weir_sim_device_browser(&sim->world, &payment->payer, rng);
}

/* The first card, or now and then the second. Draws in any case. */
static uint8_t honest_card(const weir_sim_person *person, weir_rng *rng) {
    uint32_t roll = weir_sim_below(rng, 100);
    return person->cards > 1 && roll < 25;
}

static uint32_t honest_merchant(const weir_sim_payments *sim, const weir_sim_person *person, weir_rng *rng) {
    const weir_sim_world *world = &sim->world;
    uint32_t abroad = weir_sim_travel(world, person);
    uint32_t roll = weir_sim_below(rng, 1000);
    if (abroad != WEIR_SIM_NONE && roll < 750)
        return weir_sim_merchant_popular(world, abroad, person->day, weir_rng_u32(rng));
    if (roll < 660) return weir_sim_favourite(world, person, rng);
    if (roll < 680) return weir_sim_promoted(world, person->country, person->day, rng);
    uint32_t country = roll < 720 ? weir_sim_any_country(rng) : person->country;
    return weir_sim_merchant_popular(world, country, person->day, weir_rng_u32(rng));
}

/* Whether a trade is what people look for on such a day. */
static bool honest_suits(weir_sim_holiday holiday, uint32_t code) {
    static const uint16_t wanted[WEIR_SIM_HOLIDAYS][8] = {
        [WEIR_SIM_FEAST] = {5812, 5814, 4111, 4121, 5541, 7011, 7832},
        [WEIR_SIM_EVE] = {5411, 5311, 5651, 5732, 5942, 5945, 5999},
        [WEIR_SIM_SALE] = {5311, 5651, 5732, 5945, 5999, 5816},
    };
    for (const uint16_t *trade = wanted[holiday]; *trade; trade++)
        if (*trade == code) return true;
    return false;
}

/* On a holiday many look elsewhere for what the day is about, and on a feast some of them in another country. */
static uint32_t honest_merchant_of_day(const weir_sim_payments *sim, const weir_sim_person *person, weir_rng *rng) {
    const weir_sim_world *world = &sim->world;
    uint32_t merchant = honest_merchant(sim, person, rng);
    if (!sim->opts.holidays) return merchant;
    weir_sim_holiday holiday = weir_sim_holiday_in(person->day, person->country);
    if (holiday == WEIR_SIM_PLAIN) return merchant;
    uint32_t country = world->merchants[merchant].country;
    if (holiday == WEIR_SIM_FEAST && weir_sim_chance(rng, OUTING_PER_MILLE)) country = weir_sim_any_country(rng);
    for (uint32_t i = 0; i < HOLIDAY_TRIES; i++) {
        if (honest_suits(holiday, weir_sim_trades[world->merchants[merchant].trade].code)) break;
        merchant = weir_sim_merchant_popular(world, country, person->day, weir_rng_u32(rng));
    }
    return merchant;
}

static void honest_purchase(weir_sim_payments *sim, weir_rng *rng, weir_sim_payment *payment) {
    payment->merchant = honest_merchant_of_day(sim, &payment->payer, rng);
    payment->channel = (uint8_t)weir_sim_usual_channel(&sim->world, payment->merchant, rng);
    payment->country = sim->world.merchants[payment->merchant].country;
    payment->card = honest_card(&payment->payer, rng);
    payment->device = weir_sim_device_for(sim, payment, rng);
    payment->cents = weir_sim_usual_cents(&sim->world, payment->merchant, rng);
    weir_sim_fraud_witness(sim, payment, rng);
}

static void honest_begin(const weir_sim_payments *sim, uint32_t slot, weir_rng *rng, weir_sim_payment *payment) {
    int64_t time_us = payment->time_us;
    *payment = (weir_sim_payment){.time_us = time_us, .friendly_roll = weir_rng_u32(rng)};
    payment->payer = weir_sim_person_at(&sim->world, slot, time_us / WEIR_SIM_DAY);
}

void weir_sim_errand(weir_sim_payments *sim, uint32_t slot, weir_rng *rng, weir_sim_payment *payment) {
    honest_begin(sim, slot, rng, payment);
    honest_purchase(sim, rng, payment);
}

void weir_sim_honest(weir_sim_payments *sim, uint32_t slot, weir_rng *rng, weir_sim_payment *payment) {
    honest_begin(sim, slot, rng, payment);
    if (weir_sim_below(rng, 100) >= TRANSFER_PERCENT) {
        honest_purchase(sim, rng, payment);
        return;
    }
    payment->merchant = WEIR_SIM_NONE;
    payment->payee = weir_sim_contact(&sim->world, &payment->payer, rng);
    payment->channel = WEIR_SIM_TRANSFER;
    payment->country = payment->payer.country;
    payment->card = weir_sim_chance(rng, CARDED_TRANSFER) ? honest_card(&payment->payer, rng) : WEIR_SIM_NO_CARD;
    payment->device = weir_sim_device_for(sim, payment, rng);
    payment->cents = weir_sim_transfer_cents(&sim->world, payment->country, rng);
}

/* The payee passes most of it on to one of his own, or takes it out as cash. */
static void honest_hand_on(weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng) {
    uint32_t roll = weir_sim_below(rng, 1000);
    if (roll >= HAND_ON_PER_MILLE + CASH_OUT_PER_MILLE) return;
    weir_sim_plan plan = {.slot = payment->payee, .device = WEIR_SIM_NONE, .act = WEIR_SIM_CASH};
    if (roll < HAND_ON_PER_MILLE) {
        weir_sim_person payee = weir_sim_person_at(&sim->world, payment->payee, payment->payer.day);
        plan.act = WEIR_SIM_SEND;
        plan.target = weir_sim_contact(&sim->world, &payee, rng);
        plan.card = WEIR_SIM_NO_CARD;
        plan.cents = 100 + (uint32_t)((uint64_t)payment->cents * weir_sim_between(rng, 50, 100) / 100);
    }
    plan.issue = WEIR_SIM_ANY_ISSUE;
    weir_sim_plan_add(sim, sim->busy_now + weir_sim_span(rng, 10 * WEIR_SIM_MINUTE, 8 * WEIR_SIM_HOUR), &plan);
}

void weir_sim_follow(weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng) {
    if (payment->merchant == WEIR_SIM_NONE) {
        honest_hand_on(sim, payment, rng);
        return;
    }
    if (!weir_sim_chance(rng, TRIP_PER_MILLE)) return;
    /* A shopping trip: some more errands within the hours that follow. */
    const weir_sim_plan plan = {.slot = payment->payer.slot, .device = WEIR_SIM_NONE, .act = WEIR_SIM_ERRAND};
    uint32_t stops = weir_sim_between(rng, 1, 4);
    int64_t when = sim->busy_now;
    for (uint32_t i = 0; i < stops; i++) {
        when += weir_sim_span(rng, 4 * WEIR_SIM_MINUTE, 60 * WEIR_SIM_MINUTE);
        weir_sim_plan_add(sim, when, &plan);
    }
}
