/* SPDX-License-Identifier: Apache-2.0 */
/* payments.c - the clockwork of the payment generator, and the bytes of its messages; see sim_payments.h. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sim_payments.h"

/* Payments that follow from one spontaneous payment, on average, in thousandths; measured, and held by the test
 * rate_is_as_asked. */
#define FOLLOWERS_PER_MILLE 215u
#define PLANS_SPARE         16384u
#define CAMPAIGN_DAYS       16u

static const weir_sim_week payments_week = {
    .hours = {{2, 1, 1, 1, 1, 2, 5, 9, 11, 11, 12, 14, 15, 13, 12, 12, 13, 15, 16, 14, 11, 8, 5, 3},
              {3, 2, 2, 1, 1, 1, 2, 4, 8, 12, 15, 16, 15, 14, 14, 13, 13, 12, 12, 11, 9, 7, 6, 5},
              {4, 3, 2, 2, 1, 1, 2, 3, 6, 9, 11, 12, 13, 12, 12, 12, 12, 13, 14, 13, 10, 8, 5, 3}},
    .day_percent = {94, 95, 97, 102, 118, 120, 74},
};

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static char *payments_put_id(char *p, char letter, uint64_t number) {
    p = WEIR_SIM_PUT(p, "{\"id\":\"");
    *p++ = letter;
    p = weir_sim_put_digits(p, number, 16);
    return WEIR_SIM_PUT(p, "\",\"time\":\"");
}

static char *payments_put_account(char *p, const weir_sim_world *world, const weir_sim_person *person) {
    *p++ = 'a';
    return weir_sim_put_digits(p, weir_sim_account_number(world, person), world->accounts.digits);
}

static void payments_write(weir_sim_payments *sim, uint64_t number, weir_simulate_message *messagep) {
    static const char channels[][28] = {
        "\",\"channel\":\"web", "\",\"channel\":\"app",      "\",\"channel\":\"pos",
        "\",\"channel\":\"atm", "\",\"channel\":\"transfer",
    };
    const weir_sim_world *world = &sim->world;
    const weir_sim_payment *payment = &sim->payment;
    const weir_sim_country *country = &weir_sim_countries[payment->country];
    char *p = payments_put_id(sim->line, 'p', number);
    p = weir_sim_put_time(p, &sim->date, payment->time_us);
    /* who pays, and with what */
    p = WEIR_SIM_PUT(p, "\",\"account\":\"");
    messagep->key = p;
    p = payments_put_account(p, world, &payment->payer);
    messagep->key_length = (size_t)(p - messagep->key);
    if (payment->card != WEIR_SIM_NO_CARD) {
        p = WEIR_SIM_PUT(p, "\",\"card\":\"c");
        p = weir_sim_put_digits(p, weir_sim_card_number(world, &payment->payer, payment->card), world->cards.digits);
    }
    p = WEIR_SIM_PUT(p, "\",\"device\":\"d");
    p = weir_sim_put_digits(p, weir_sim_device_number(world, payment->device), world->devices.digits);
    /* to whom */
    if (payment->merchant == WEIR_SIM_NONE) {
        weir_sim_person payee = weir_sim_person_at(world, payment->payee, payment->payer.day);
        p = WEIR_SIM_PUT(p, "\",\"payee\":\"");
        p = payments_put_account(p, world, &payee);
    } else {
        p = WEIR_SIM_PUT(p, "\",\"merchant\":\"m");
        p = weir_sim_put_digits(p, world->merchants[payment->merchant].number, world->merchant_numbers.digits);
    }
    /* how much, and how */
    p = WEIR_SIM_PUT(p, "\",\"amount\":");
    p = weir_sim_put_cents(p, payment->cents);
    p = WEIR_SIM_PUT(p, ",\"currency\":\"");
    memcpy(p, country->currency, 3);
    size_t length = payment->channel == WEIR_SIM_TRANSFER ? 21 : 16;
    memcpy(p + 3, channels[payment->channel], length);
    p = WEIR_SIM_PUT(p + 3 + length, "\",\"country\":\"");
    memcpy(p, country->code, 2);
    p += 2;
    if (payment->merchant != WEIR_SIM_NONE) {
        p = WEIR_SIM_PUT(p, "\",\"mcc\":\"");
        p = weir_sim_put_digits(p, weir_sim_trades[world->merchants[payment->merchant].trade].code, 4);
    }
    p = WEIR_SIM_PUT(p, "\"}");
    messagep->value = sim->line;
    messagep->value_length = weir_sim_line_check(sim->line, p);
}

/* --- the next payment --------------------------------------------------------------------------------------------- */

/* The nearest cash machine: the first operator among a few popular merchants, or the country's first. */
static uint32_t payments_find_atm(const weir_sim_world *world, uint32_t country, int64_t day, weir_rng *rng) {
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t merchant = weir_sim_merchant_popular(world, country, day, weir_rng_u32(rng));
        if (weir_sim_is_atm(world, merchant)) return merchant;
    }
    for (uint32_t i = world->country_begin[country]; i < world->country_begin[country + 1]; i++)
        if (weir_sim_is_atm(world, i)) return i;
    return world->country_begin[country];
}

/* Makes the payment of a plan. False: the card has been replaced since it was copied, and is declined. */
static bool payments_carry_out(weir_sim_payments *sim, const weir_sim_plan *plan, weir_rng *rng,
                               weir_sim_payment *payment) {
    const weir_sim_world *world = &sim->world;
    if (plan->act == WEIR_SIM_ERRAND) {
        weir_sim_errand(sim, plan->slot, rng, payment);
        return true;
    }
    int64_t time_us = payment->time_us;
    *payment = (weir_sim_payment){.time_us = time_us, .campaign = plan->campaign, .fraud = plan->fraud};
    payment->friendly_roll = weir_rng_u32(rng);
    payment->payer = weir_sim_person_at(&sim->world, plan->slot, time_us / WEIR_SIM_DAY);
    payment->card = plan->card;
    payment->asset = plan->asset;
    payment->turn = plan->turn;
    payment->crew = plan->crew;
    if (plan->issue != WEIR_SIM_ANY_ISSUE &&
        plan->issue != weir_sim_card_issue(&sim->world, &payment->payer, plan->card))
        return false;
    if (plan->act == WEIR_SIM_SEND) {
        payment->merchant = WEIR_SIM_NONE;
        payment->payee = plan->target != plan->slot ? plan->target : (plan->target + 1) % world->slots;
        payment->channel = WEIR_SIM_TRANSFER;
        payment->country = payment->payer.country;
        payment->cents = plan->cents ? plan->cents : weir_sim_transfer_cents(world, payment->country, rng);
    } else {
        bool cash = plan->act == WEIR_SIM_CASH, remote = plan->act == WEIR_SIM_REMOTE;
        payment->merchant =
            cash ? payments_find_atm(world, payment->payer.country, payment->payer.day, rng) : plan->target;
        payment->channel = (uint8_t)(remote ? weir_sim_remote_channel(world, payment->merchant, rng)
                                            : weir_sim_usual_channel(world, payment->merchant, rng));
        payment->country = world->merchants[payment->merchant].country;
        payment->cents = weir_sim_usual_cents(world, payment->merchant, rng);
    }
    bool present = payment->channel == WEIR_SIM_POS || payment->channel == WEIR_SIM_ATM;
    payment->device = present || plan->device == WEIR_SIM_NONE ? weir_sim_device_for(sim, payment, rng) : plan->device;
    return true;
}

static int64_t payments_event_time(weir_sim_payments *sim, int64_t busy_us) {
    sim->busy_now = busy_us;
    int64_t time_us = weir_sim_calendar_time(&sim->calendar, busy_us);
    if (time_us < sim->opts.start_us) time_us = sim->opts.start_us;
    weir_sim_moves_until(&sim->world, time_us);
    return time_us;
}

/* What comes first: a planned payment, or the next spontaneous one. */
static void payments_make(weir_sim_payments *sim) {
    while (!sim->pending) {
        if (weir_sim_agenda_next(&sim->plans) <= sim->busy_base) {
            weir_rng rng = weir_rng_stream(sim->world.seed, sim->planned++, WEIR_SIM_PLANNED);
            weir_sim_plan plan;
            sim->payment.time_us = payments_event_time(sim, weir_sim_agenda_next(&sim->plans));
            weir_sim_agenda_take(&sim->plans, &plan);
            sim->pending = payments_carry_out(sim, &plan, &rng, &sim->payment);
            if (!sim->pending) sim->budget[plan.fraud] += WEIR_SIM_ONE_PAYMENT;
        } else {
            weir_rng rng = weir_rng_stream(sim->world.seed, sim->spontaneous++, WEIR_SIM_BASE);
            sim->payment.time_us = payments_event_time(sim, sim->busy_base);
            sim->busy_base += weir_sim_exponential(&sim->world.math, &sim->gaps, sim->gap_mean);
            weir_sim_honest(sim, weir_sim_active_slot(&sim->world, &rng), &rng, &sim->payment);
            weir_sim_follow(sim, &sim->payment, &rng);
            sim->pending = true;
        }
    }
}

/* --- the next message --------------------------------------------------------------------------------------------- */

static void payments_give(weir_sim_payments *sim, weir_simulate_message *messagep) {
    const weir_sim_payment *payment = &sim->payment;
    uint64_t number = ++sim->base.stats.payments;
    *messagep = (weir_simulate_message){.topic = WEIR_SIMULATE_PAYMENTS,
                                        .time_us = payment->time_us,
                                        .fraud = (weir_simulate_fraud)payment->fraud,
                                        .campaign = payment->campaign};
    payments_write(sim, number, messagep); // SIMULATE-G4: reads no field that tells the truth
    messagep->chargeback_us = weir_sim_label_decide(sim, payment, number);
    sim->base.stats.frauds += payment->fraud != WEIR_SIMULATE_HONEST;
    sim->pending = false;
    weir_sim_fraud_accrue(sim);
}

static void payments_give_chargeback(weir_sim_payments *sim, weir_simulate_message *messagep) {
    weir_sim_label label;
    int64_t time_us = weir_sim_agenda_next(&sim->labels);
    weir_sim_agenda_take(&sim->labels, &label);
    WEIR_ASSERT(label.payment > 0 && label.payment <= sim->base.stats.payments);
    char *p = payments_put_id(sim->line, 'b', ++sim->base.stats.chargebacks);
    p = weir_sim_put_time(p, &sim->date, time_us);
    p = WEIR_SIM_PUT(p, "\",\"payment\":\"");
    const char *key = p;
    *p++ = 'p';
    p = weir_sim_put_digits(p, label.payment, 16);
    *messagep = (weir_simulate_message){.topic = WEIR_SIMULATE_CHARGEBACKS,
                                        .time_us = time_us,
                                        .key = key,
                                        .key_length = (size_t)(p - key),
                                        .value = sim->line,
                                        .chargeback_us = WEIR_SIMULATE_NEVER};
    p = WEIR_SIM_PUT(p, "\",\"label\":\"fraud\"}");
    messagep->value_length = weir_sim_line_check(sim->line, p);
    weir_sim_fraud_burn(sim, &label, time_us / WEIR_SIM_DAY);
    if (label.card == WEIR_SIM_NO_CARD) return;
    weir_sim_person holder = weir_sim_person_at(&sim->world, label.slot, time_us / WEIR_SIM_DAY);
    weir_sim_card_replace(&sim->world, &holder, label.card, label.issue);
}

static void payments_next(weir_simulate *base, weir_simulate_message *messagep) {
    weir_sim_payments *sim = (weir_sim_payments *)base;
    payments_make(sim);
    if (weir_sim_agenda_next(&sim->labels) <= sim->payment.time_us)
        payments_give_chargeback(sim, messagep);
    else
        payments_give(sim, messagep);
    WEIR_ASSERT(messagep->time_us >= sim->base.stats.time_us); // SIMULATE-G2
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static void payments_close(weir_simulate *base) {
    weir_sim_payments *sim = (weir_sim_payments *)base;
    weir_sim_fraud_close(sim);
    weir_sim_agenda_close(&sim->plans);
    weir_sim_agenda_close(&sim->labels);
    weir_sim_world_close(&sim->world);
    weir_free(sim);
}

/* Fills in what 0 stands for. */
static weir_err payments_check_options(weir_simulate_payments_opts *opts) {
    weir_err err = weir_sim_check("accounts", opts->accounts, WEIR_SIMULATE_ACCOUNTS_MIN, WEIR_SIMULATE_ACCOUNTS_MAX);
    if (err) return err;
    if (opts->merchants == 0) {
        opts->merchants = opts->accounts / 20;
        if (opts->merchants < WEIR_SIMULATE_MERCHANTS_MIN) opts->merchants = WEIR_SIMULATE_MERCHANTS_MIN;
    }
    if (opts->per_day == 0) opts->per_day = opts->accounts / 2 * 5;
    err = weir_sim_check("merchants", opts->merchants, WEIR_SIMULATE_MERCHANTS_MIN, WEIR_SIMULATE_MERCHANTS_MAX);
    if (!err)
        err = weir_sim_check("payments a day", opts->per_day, WEIR_SIMULATE_PER_DAY_MIN, WEIR_SIMULATE_PER_DAY_MAX);
    if (!err) err = weir_sim_check("fraud in a million", opts->fraud_ppm, 0, WEIR_SIMULATE_FRAUD_PPM_MAX);
    if (!err) err = weir_sim_check("friendly in a million", opts->friendly_ppm, 0, WEIR_SIMULATE_FRIENDLY_PPM_MAX);
    if (!err) err = weir_sim_check("unreported in a million", opts->unreported_ppm, 0, 1000000);
    if (!err)
        err = weir_sim_check("label delay in microseconds", (uint64_t)opts->label_delay_us,
                             WEIR_SIMULATE_LABEL_DELAY_MIN, WEIR_SIMULATE_LABEL_DELAY_MAX);
    if (!err) err = weir_sim_check_start(opts->start_us);
    return err;
}

weir_err weir_simulate_payments_open(const weir_simulate_payments_opts *opts, weir_simulate **simp) {
    *simp = NULL;
    weir_simulate_payments_opts own = *opts;
    weir_err err = payments_check_options(&own);
    if (err) return err;
    weir_sim_payments *sim = weir_calloc(1, sizeof *sim);
    if (!sim) return WEIR_NOMEM("for a payment generator; free some");
    sim->base = (weir_simulate){.next = payments_next, .close = payments_close, .stats.time_us = own.start_us};
    sim->opts = own;
    sim->date.day = -1;
    uint32_t crews = weir_sim_crews_for(own.per_day, own.fraud_ppm);
    uint64_t per_day = own.per_day;
    uint64_t plans = per_day / 32 + per_day * own.fraud_ppm / 1000000 * CAMPAIGN_DAYS + PLANS_SPARE;
    const weir_sim_world_opts world = {.seed = own.seed,
                                       .start_us = own.start_us,
                                       .slots = own.accounts,
                                       .merchants = own.merchants,
                                       .crews = crews,
                                       .adapt = own.adapt,
                                       .moves = own.moves};
    err = weir_sim_world_open(&sim->world, &world);
    if (!err) err = weir_sim_agenda_open(&sim->plans, plans, sizeof(weir_sim_plan));
    if (!err) err = weir_sim_labels_open(sim);
    if (err) goto failed;

    uint64_t spontaneous = per_day * (1000000 - own.fraud_ppm) / 1000000 * 1000 / (1000 + FOLLOWERS_PER_MILLE) + 1;
    sim->gap_mean = (int64_t)((uint64_t)WEIR_SIM_DAY / spontaneous) + 1;
    weir_sim_calendar_init(&sim->calendar, &payments_week, own.start_us, own.holidays);
    sim->busy_begin = weir_sim_calendar_begin(&sim->calendar, own.start_us);
    sim->gaps = weir_rng_stream(own.seed, 0, WEIR_SIM_GAP);
    sim->busy_base = sim->busy_begin + weir_sim_exponential(&sim->world.math, &sim->gaps, sim->gap_mean);
    err = weir_sim_fraud_open(sim);
    if (err) goto failed;
    *simp = &sim->base;
    return WEIR_OK;
failed:
    payments_close(&sim->base);
    return err;
}
