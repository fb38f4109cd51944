/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fraud.c - when a campaign begins, who runs it, and with what.
 *
 * Each kind of fraud has a budget that every payment raises a little; when it is above zero, a campaign begins and
 * takes from it what it has planned. So the share of fraud is right whatever the sizes of campaigns are, and no size
 * has to be known beforehand.
 *
 * Campaigns are run by crews. For one epoch a crew has the same devices, mules, fences and list of copied cards, and
 * copies new cards at one merchant. A single campaign looks like an odd afternoon of some card or account; that the
 * same devices, mules and fences come back is only seen two or more steps away.
 */
#include <weir/store/base/alloc.h>

#include "sim_payments.h"

#define CREW_PER_DAY     60u /* frauds a day that keep one crew busy */
#define CREWS_MIN        3u
#define CREWS_MAX        4096u
#define WARM_UP          (12 * WEIR_SIM_DAY) /* campaigns that began before the start are still running at it */
#define WARM_UP_STEPS    1024
#define LAUNCH_SPREAD    WEIR_SIM_DAY
#define SKIM_PER_MILLE   160u
#define LOOT_MIN         16u
#define COPIED_PER_MILLE 700u
#define CREW_COUNTRY_TAG 0xFFu
#define TURNS_SHIFT      56 /* above the epoch */

uint64_t weir_sim_crew_epoch(const weir_sim_payments *sim, uint32_t crew, int64_t day) {
    weir_rng rng = weir_rng_stream(sim->world.seed, crew, WEIR_SIM_CREW | CREW_COUNTRY_TAG << 16);
    return ((uint64_t)day + weir_sim_below(&rng, WEIR_SIM_EPOCH_DAYS)) / WEIR_SIM_EPOCH_DAYS;
}

weir_rng weir_sim_crew_asset(const weir_sim_campaign *campaign, weir_sim_asset asset, uint32_t which) {
    uint64_t owner = campaign->epoch << 32 | (uint64_t)campaign->country << 24 | campaign->crew;
    if (asset != WEIR_SIM_CARD_LIST)
        owner |= (uint64_t)campaign->sim->crews[campaign->crew].turns[weir_sim_asset_of(asset, which)] << TURNS_SHIFT;
    return weir_rng_stream(campaign->sim->world.seed, owner, WEIR_SIM_CREW | (uint32_t)asset << 16 | which);
}

/* A card copied at the crew's merchant; or one that was bought, of any account. */
weir_sim_loot weir_sim_crew_loot(weir_sim_campaign *campaign) {
    weir_sim_payments *sim = campaign->sim;
    const weir_sim_crew *crew = &sim->crews[campaign->crew];
    if (crew->loot_count >= LOOT_MIN && weir_sim_chance(&campaign->rng, COPIED_PER_MILLE)) {
        uint32_t held = crew->loot_count < WEIR_SIM_LOOT ? crew->loot_count : WEIR_SIM_LOOT;
        return crew->loot[weir_sim_below(&campaign->rng, held)];
    }
    weir_sim_loot loot = {.slot = weir_sim_active_slot(&sim->world, &campaign->rng)};
    weir_sim_person holder = weir_sim_person_at(&sim->world, loot.slot, campaign->day);
    loot.issue = (uint8_t)weir_sim_card_issue(&sim->world, &holder, 0);
    return loot;
}

void weir_sim_fraud_witness(weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng) {
    uint32_t skimmer = sim->skimmers[payment->merchant];
    if (skimmer == 0 || !weir_sim_chance(rng, SKIM_PER_MILLE)) return;
    weir_sim_crew *crew = &sim->crews[skimmer - 1];
    weir_sim_loot *loot = &crew->loot[crew->loot_count++ % WEIR_SIM_LOOT];
    loot->slot = payment->payer.slot;
    loot->card = payment->card;
    loot->issue = (uint8_t)weir_sim_card_issue(&sim->world, &payment->payer, payment->card);
}

/* Where each crew copies cards. Neither at the biggest merchants, where everybody pays, nor at the smallest. */
static void fraud_place_skimmers(weir_sim_payments *sim, int64_t day) {
    for (uint32_t crew = 0; crew < sim->world.crews; crew++)
        sim->skimmers[sim->crews[crew].skimmed] = 0;
    for (uint32_t crew = 0; crew < sim->world.crews; crew++) {
        uint64_t epoch = weir_sim_crew_epoch(sim, crew, day);
        weir_rng rng =
            weir_rng_stream(sim->world.seed, epoch << 32 | crew, WEIR_SIM_CREW | (CREW_COUNTRY_TAG - 1) << 16);
        uint32_t country = weir_sim_any_country(&rng);
        uint32_t count = sim->world.country_begin[country + 1] - sim->world.country_begin[country];
        uint32_t rank = count / 20 + weir_sim_below(&rng, count / 4 + 1);
        int64_t since = (int64_t)epoch * WEIR_SIM_EPOCH_DAYS;
        sim->crews[crew].skimmed = weir_sim_merchant_at(&sim->world, country, rank, since);
        sim->skimmers[sim->crews[crew].skimmed] = crew + 1;
    }
}

/* What is decided once a day. */
static void fraud_begin_day(weir_sim_payments *sim, int64_t day) {
    sim->crews_day = day;
    fraud_place_skimmers(sim, day);
    weir_sim_shares_set(sim, day);
}

static void fraud_begin_campaign(weir_sim_payments *sim, weir_simulate_fraud fraud, int64_t busy_us) {
    weir_sim_campaign campaign = {.sim = sim, .id = ++sim->base.stats.campaigns, .fraud = fraud};
    campaign.rng = weir_rng_stream(sim->world.seed, campaign.id, WEIR_SIM_CAMPAIGN);
    campaign.crew = weir_sim_below(&campaign.rng, sim->world.crews);
    campaign.country = weir_sim_any_country(&campaign.rng);
    campaign.begin = busy_us + weir_sim_span(&campaign.rng, 0, LAUNCH_SPREAD);
    campaign.day = weir_sim_calendar_time(&sim->calendar, campaign.begin) / WEIR_SIM_DAY;
    campaign.epoch = weir_sim_crew_epoch(sim, campaign.crew, campaign.day);
    campaign.ways = weir_sim_ways_of(sim, fraud, campaign.day);
    weir_sim_campaign_plan(&campaign);
    sim->budget[fraud] -= WEIR_SIM_ONE_PAYMENT * campaign.count;
}

/* So many payments raise the budgets; where one is above zero, campaigns begin. */
static void fraud_earn_and_spend(weir_sim_payments *sim, int64_t payments, int64_t busy_us) {
    for (int fraud = WEIR_SIMULATE_HONEST + 1; fraud < WEIR_SIMULATE_FRAUDS; fraud++) {
        sim->budget[fraud] += payments * sim->opts.fraud_ppm * (int64_t)sim->shares[fraud] / 1000;
        while (sim->budget[fraud] > 0) {
            if (weir_sim_agenda_room(&sim->plans) >= WEIR_SIM_CAMPAIGN_MAX) {
                fraud_begin_campaign(sim, (weir_simulate_fraud)fraud, busy_us);
            } else {
                sim->base.stats.crowded_out++;
                sim->budget[fraud] = 0;
            }
        }
    }
}

void weir_sim_fraud_accrue(weir_sim_payments *sim) {
    int64_t day = sim->payment.time_us / WEIR_SIM_DAY;
    if (day != sim->crews_day) fraud_begin_day(sim, day);
    fraud_earn_and_spend(sim, 1, sim->busy_now);
}

weir_err weir_sim_fraud_open(weir_sim_payments *sim) {
    sim->crews = weir_calloc(sim->world.crews, sizeof *sim->crews);
    sim->skimmers = weir_calloc(sim->world.merchant_count, sizeof *sim->skimmers);
    if (!sim->crews || !sim->skimmers) return WEIR_NOMEM("for %u crews; simulate fewer accounts", sim->world.crews);
    fraud_begin_day(sim, sim->opts.start_us / WEIR_SIM_DAY);
    /* Campaigns of the days before the start, as if payments had been made then at the same rate. What they would have
     * done before the start is dropped by the planner, but paid for. */
    for (int64_t step = 0; step < WARM_UP_STEPS; step++) {
        int64_t payments = (int64_t)sim->opts.per_day * (WARM_UP / WEIR_SIM_DAY) / WARM_UP_STEPS;
        fraud_earn_and_spend(sim, payments, sim->busy_begin - WARM_UP + WARM_UP * step / WARM_UP_STEPS);
    }
    return WEIR_OK;
}

void weir_sim_fraud_close(weir_sim_payments *sim) {
    weir_free(sim->crews);
    weir_free(sim->skimmers);
}

uint32_t weir_sim_crews_for(uint32_t per_day, uint32_t fraud_ppm) {
    uint64_t crews = (uint64_t)per_day * fraud_ppm / 1000000 / CREW_PER_DAY;
    if (crews < CREWS_MIN) return CREWS_MIN;
    return crews > CREWS_MAX ? CREWS_MAX : (uint32_t)crews;
}
