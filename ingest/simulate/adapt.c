/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapt.c - how each kind of fraud goes about, and what a crew does when its chargebacks come in.
 *
 * Where fraud adapts, each kind has phases of two to six weeks, and in each of them other sizes, another pace, another
 * share of all fraud, other devices and another taste in merchants. What a payment's row says stays as it is: all of
 * this is about who meets whom, how often and how fast.
 *
 * A device, a fence or a mule with a few chargebacks is burnt: the crew takes another one in its place.
 */
#include <weir/store/base/assert.h>

#include "sim_payments.h"

#define PHASE_DAYS   28u
#define PHASE_JITTER 15u /* a phase begins up to so many days late, so the shortest has 14 days and the longest 42 */
#define BURNT_AT     3u  /* chargebacks */

/* Per mille of all fraudulent payments. */
static const uint32_t adapt_usual_shares[WEIR_SIMULATE_FRAUDS] = {
    [WEIR_SIMULATE_STOLEN_CARD] = 350, [WEIR_SIMULATE_RING] = 220, [WEIR_SIMULATE_COLLUSION] = 200,
    [WEIR_SIMULATE_TAKEOVER] = 100,    [WEIR_SIMULATE_MULE] = 130,
};

/* The slowest that a campaign may be and still end in time, in per cent of the usual. */
static const uint32_t adapt_slowest[WEIR_SIMULATE_FRAUDS] = {
    [WEIR_SIMULATE_STOLEN_CARD] = 500, [WEIR_SIMULATE_RING] = 110, [WEIR_SIMULATE_COLLUSION] = 150,
    [WEIR_SIMULATE_TAKEOVER] = 500,    [WEIR_SIMULATE_MULE] = 250,
};

/* What a kind's weight may become in a phase, in per cent: kinds come and go. */
static const uint32_t adapt_weights[] = {25, 60, 100, 160, 250};

/* --- phases ------------------------------------------------------------------------------------------------------- */

uint64_t weir_sim_phase(const weir_sim_payments *sim, weir_simulate_fraud fraud, int64_t day) {
    uint64_t phase = (uint64_t)day / PHASE_DAYS;
    weir_rng rng = weir_rng_stream(sim->world.seed, phase << 8 | fraud, WEIR_SIM_WAYS);
    return (uint64_t)day % PHASE_DAYS < weir_sim_below(&rng, PHASE_JITTER) ? phase - 1 : phase;
}

static weir_rng adapt_stream(const weir_sim_payments *sim, weir_simulate_fraud fraud, int64_t day, uint32_t what) {
    uint64_t phase = weir_sim_phase(sim, fraud, day);
    return weir_rng_stream(sim->world.seed, phase << 8 | fraud, WEIR_SIM_WAYS | what);
}

weir_sim_ways weir_sim_ways_of(const weir_sim_payments *sim, weir_simulate_fraud fraud, int64_t day) {
    weir_sim_ways ways = {.size = 100, .uses = 100, .pace = 100, .fence = 450, .partner = 650, .merchants = 5};
    if (fraud == WEIR_SIMULATE_TAKEOVER) ways.burner = 300;
    if (!sim->opts.adapt) return ways;
    weir_rng rng = adapt_stream(sim, fraud, day, 1);
    ways.size = weir_sim_between(&rng, 50, 130);
    ways.uses = weir_sim_between(&rng, 25, fraud == WEIR_SIMULATE_RING ? 115 : 180);
    ways.pace = weir_sim_between(&rng, 30, adapt_slowest[fraud]);
    ways.burner = weir_sim_chance(&rng, 500) ? weir_sim_between(&rng, 0, 100) : weir_sim_between(&rng, 500, 900);
    ways.fence = weir_sim_between(&rng, 50, 850);
    ways.partner = weir_sim_between(&rng, 350, 850);
    ways.merchants = weir_sim_between(&rng, 3, WEIR_SIM_RING_MERCHANTS);
    ways.taste = (weir_sim_taste)weir_sim_below(&rng, WEIR_SIM_TASTES);
    return ways;
}

void weir_sim_shares_set(weir_sim_payments *sim, int64_t day) {
    uint32_t weights[WEIR_SIMULATE_FRAUDS] = {0}, total = 0;
    for (int fraud = WEIR_SIMULATE_HONEST + 1; fraud < WEIR_SIMULATE_FRAUDS; fraud++) {
        uint32_t percent = 100;
        if (sim->opts.adapt) {
            weir_rng rng = adapt_stream(sim, (weir_simulate_fraud)fraud, day, 2);
            percent = adapt_weights[weir_sim_below(&rng, sizeof adapt_weights / sizeof *adapt_weights)];
        }
        weights[fraud] = adapt_usual_shares[fraud] * percent;
        total += weights[fraud];
    }
    /* What rounding leaves goes to the kind that is first. */
    sim->shares[WEIR_SIMULATE_STOLEN_CARD] = 1000;
    for (int fraud = WEIR_SIMULATE_STOLEN_CARD + 1; fraud < WEIR_SIMULATE_FRAUDS; fraud++) {
        sim->shares[fraud] = (uint64_t)weights[fraud] * 1000 / total;
        sim->shares[WEIR_SIMULATE_STOLEN_CARD] -= sim->shares[fraud];
    }
}

/* --- what is burnt ------------------------------------------------------------------------------------------------ */

uint8_t weir_sim_asset_of(weir_sim_asset kind, uint32_t which) {
    static const uint8_t begin[] = {[WEIR_SIM_FENCE] = 1,
                                    [WEIR_SIM_MULE_SLOT] = 1 + WEIR_SIM_FENCES,
                                    [WEIR_SIM_CREW_DEVICE] = 1 + WEIR_SIM_FENCES + WEIR_SIM_MULES};
    WEIR_ASSERT(kind != WEIR_SIM_CARD_LIST && begin[kind] + which < WEIR_SIM_ASSETS);
    return (uint8_t)(begin[kind] + which);
}

static void adapt_count(weir_sim_crew *crew, uint8_t asset) {
    if (++crew->burnt[asset] < BURNT_AT) return;
    crew->burnt[asset] = 0;
    crew->turns[asset]++;
}

/* A chargeback for something that was replaced already says nothing of what came in its place. */
static void adapt_count_device(weir_sim_payments *sim, uint32_t device, int64_t day) {
    const weir_sim_world *world = &sim->world;
    if (device < world->device_crews || device >= world->device_burners) return;
    uint32_t row = (device - world->device_crews) / WEIR_SIM_CREW_DEVICES;
    uint32_t which = (device - world->device_crews) % WEIR_SIM_CREW_DEVICES;
    uint32_t number = row / world->crew_epochs;
    weir_sim_crew *crew = &sim->crews[number];
    uint8_t asset = weir_sim_asset_of(WEIR_SIM_CREW_DEVICE, which);
    uint64_t epoch = weir_sim_crew_epoch(sim, number, day) + crew->turns[asset];
    if (weir_sim_device_crew(world, number, epoch, which) == device) adapt_count(crew, asset);
}

void weir_sim_fraud_burn(weir_sim_payments *sim, const weir_sim_label *label, int64_t day) {
    if (!sim->opts.adapt) return;
    adapt_count_device(sim, label->device, day);
    weir_sim_crew *crew = &sim->crews[label->crew];
    if (label->asset != WEIR_SIM_NO_ASSET && crew->turns[label->asset] == label->turn) adapt_count(crew, label->asset);
}
