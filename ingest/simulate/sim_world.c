/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_world.h"

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define SLOTS_FOR_A_PUBLIC 2000u
#define SLOT_FLAT_SHARE    100u
#define MERCHANT_FLAT      2u
#define DRIFT_GROWTH       4u   /* a block of ranks is so many times as large as the one before */
#define DRIFT_DAYS         300u /* in which a merchant passes through all ranks of its block    */

uint32_t weir_sim_any_country(weir_rng *rng) {
    uint32_t rest = weir_sim_below(rng, 1000);
    uint32_t country = 0;
    while (rest >= weir_sim_countries[country].weight)
        rest -= weir_sim_countries[country++].weight;
    return country;
}

/* Which trade a merchant has does not depend on how popular he is: a golden-ratio walk through the weights gives every
 * stretch of ranks nearly the same mix, so that neither the biggest nor the smallest are all of one kind. */
static uint8_t world_trade_of_rank(uint32_t rank, uint32_t country) {
    uint32_t total = 0;
    for (const weir_sim_trade *trade = weir_sim_trades; trade->weight; trade++)
        total += trade->weight;
    uint32_t place = (rank + 7 * country) * 0x9E3779B1u;
    uint32_t rest = (uint32_t)((uint64_t)place * total >> 32);
    uint8_t trade = 0;
    while (rest >= weir_sim_trades[trade].weight)
        rest -= weir_sim_trades[trade++].weight;
    return trade;
}

static void world_fill_merchants(weir_sim_world *world, uint64_t *weights, uint32_t *stack) {
    /* Country by country, in proportion to its weight, but none so small that it lacks a trade. */
    uint32_t least = WEIR_SIMULATE_MERCHANTS_MIN / WEIR_SIM_COUNTRIES;
    uint32_t rest = world->merchant_count - least * WEIR_SIM_COUNTRIES;
    uint64_t weight = 0;
    for (uint32_t country = 0; country < WEIR_SIM_COUNTRIES; country++) {
        weight += weir_sim_countries[country].weight;
        world->country_begin[country + 1] = least * (country + 1) + (uint32_t)(rest * weight / 1000);
    }
    WEIR_ASSERT(world->country_begin[WEIR_SIM_COUNTRIES] == world->merchant_count);
    for (uint32_t country = 0; country < WEIR_SIM_COUNTRIES; country++) {
        uint32_t begin = world->country_begin[country];
        uint32_t count = world->country_begin[country + 1] - begin;
        for (uint32_t rank = 0; rank < count; rank++) {
            weir_sim_merchant *m = &world->merchants[begin + rank];
            weir_rng rng = weir_rng_stream(world->seed, begin + rank, WEIR_SIM_MERCHANT);
            m->number = (uint32_t)weir_sim_scrambled(&world->merchant_numbers, begin + rank);
            m->country = (uint8_t)country;
            m->trade = world_trade_of_rank(rank, country);
            uint64_t euro = weir_sim_lognormal(&world->math, &rng, weir_sim_trades[m->trade].median_cents, 65536 / 3);
            m->median_cents = (uint32_t)(euro * weir_sim_countries[country].price_percent / 100);
            m->terminals = (uint8_t)(1 + (WEIR_SIM_TERMINALS_MAX - 1) * 4 / (4 + rank * 64 / count));
        }
        weir_sim_zipf_weights(weights, count, MERCHANT_FLAT);
        weir_sim_alias_fill(world->merchant_alias + begin, weights, stack, count);
    }
}

static void world_fill_slots(weir_sim_world *world, uint64_t *weights, uint32_t *stack) {
    /* Neighbours in slots live in one household: who is busy must be spread over all of them. The multiplier is a prime
     * above the number of slots, so that every slot gets one rank. */
    for (uint32_t rank = 0; rank < world->slots; rank++) {
        uint64_t slot = (uint64_t)rank * 2654435761u % world->slots;
        weights[slot] = weir_sim_zipf_weight(rank, 1 + world->slots / SLOT_FLAT_SHARE);
    }
    weir_sim_alias_fill(world->slot_alias, weights, stack, world->slots);
    for (uint32_t i = 0; i <= world->slots / WEIR_SIM_COMMUNITY_SLOTS; i++) {
        weir_rng rng = weir_rng_stream(world->seed, i, WEIR_SIM_COMMUNITY);
        world->community_country[i] = (uint8_t)weir_sim_any_country(&rng);
    }
}

/* One range of raw numbers a kind of device, all through one scramble. */
static void world_number_things(weir_sim_world *world) {
    world->device_terminals = world->slots * WEIR_SIM_SLOT_DEVICES * WEIR_SIM_GENERATIONS;
    world->device_publics = world->device_terminals + world->merchant_count * WEIR_SIM_TERMINALS_MAX;
    world->device_crews = world->device_publics + world->publics;
    world->device_burners = world->device_crews + world->crews * world->crew_epochs * WEIR_SIM_CREW_DEVICES;
    uint64_t devices = (uint64_t)world->device_burners + WEIR_SIM_BURNERS;
    world->accounts = weir_sim_scramble_make(world->seed, 1, (uint64_t)world->slots * WEIR_SIM_ACCOUNT_HOLDERS, 7);
    world->cards =
        weir_sim_scramble_make(world->seed, 2, (uint64_t)world->slots * WEIR_SIM_SLOT_CARDS * WEIR_SIM_GENERATIONS, 7);
    world->devices = weir_sim_scramble_make(world->seed, 3, devices, 7);
    world->merchant_numbers = weir_sim_scramble_make(world->seed, 4, world->merchant_count, 6);
}

weir_err weir_sim_world_open(weir_sim_world *world, const weir_sim_world_opts *opts) {
    uint32_t slots = opts->slots, merchants = opts->merchants;
    uint32_t most = slots > merchants ? slots : merchants;
    uint64_t *weights = weir_calloc(most, sizeof *weights);
    uint32_t *stack = weir_calloc(most, sizeof *stack);
    weir_err err = WEIR_OK;
    *world = (weir_sim_world){.seed = opts->seed, .slots = slots, .merchant_count = merchants, .crews = opts->crews};
    world->crew_epochs = opts->adapt ? WEIR_SIM_CREW_TURNS : WEIR_SIM_CREW_EPOCHS;
    world->publics = slots / SLOTS_FOR_A_PUBLIC + 1;
    weir_sim_math_init(&world->math);
    world_number_things(world);
    world->slot_alias = weir_calloc(slots, sizeof *world->slot_alias);
    world->merchant_alias = weir_calloc(merchants, sizeof *world->merchant_alias);
    world->merchants = weir_calloc(merchants, sizeof *world->merchants);
    world->community_country = weir_calloc(slots / WEIR_SIM_COMMUNITY_SLOTS + 1, 1);
    world->reissued = weir_calloc(slots, 2);
    if (!weights || !stack || !world->slot_alias || !world->merchant_alias || !world->merchants ||
        !world->community_country || !world->reissued) {
        err = WEIR_NOMEM("for %u accounts and %u merchants; simulate fewer", slots, merchants);
        weir_sim_world_close(world);
        goto done;
    }
    world_fill_merchants(world, weights, stack);
    world_fill_slots(world, weights, stack);
    if (opts->moves) err = weir_sim_moves_open(world, opts->start_us);
    if (err) weir_sim_world_close(world);
done:
    weir_free(weights);
    weir_free(stack);
    return err;
}

void weir_sim_world_close(weir_sim_world *world) {
    weir_sim_moves_close(world);
    weir_free(world->slot_alias);
    weir_free(world->merchant_alias);
    weir_free(world->merchants);
    weir_free(world->community_country);
    weir_free(world->reissued);
    *world = (weir_sim_world){0};
}

/* --- merchants ---------------------------------------------------------------------------------------------------- */

/* Where merchants move, the ranks are in blocks; through those of its block a merchant rises to the first and then
 * falls to the last. A block has all trades in their proportions, so no trade becomes more popular by that. */
uint32_t weir_sim_merchant_at(const weir_sim_world *world, uint32_t country, uint32_t rank, int64_t day) {
    WEIR_ASSERT(country < WEIR_SIM_COUNTRIES && day >= 0);
    uint32_t begin = world->country_begin[country];
    uint32_t count = world->country_begin[country + 1] - begin;
    WEIR_ASSERT(rank < count);
    if (!world->moves.raw) return begin + rank;
    uint32_t first = 0, size = 1;
    for (; rank >= first + size; size *= DRIFT_GROWTH)
        first += size;
    if (size > count - first) size = count - first;
    uint32_t turned = (uint32_t)((uint64_t)day * size / DRIFT_DAYS % size);
    return begin + first + (rank - first + turned) % size;
}

uint32_t weir_sim_merchant_popular(const weir_sim_world *world, uint32_t country, int64_t day, uint32_t draw) {
    WEIR_ASSERT(country < WEIR_SIM_COUNTRIES);
    uint32_t begin = world->country_begin[country];
    uint32_t count = world->country_begin[country + 1] - begin;
    uint32_t rank = weir_sim_alias_pick(world->merchant_alias + begin, count, draw);
    return weir_sim_merchant_at(world, country, rank, day);
}

static const weir_sim_trade *world_trade(const weir_sim_world *world, uint32_t merchant) {
    return &weir_sim_trades[world->merchants[merchant].trade];
}

bool weir_sim_is_atm(const weir_sim_world *world, uint32_t merchant) {
    return world_trade(world, merchant)->atm > 0;
}

bool weir_sim_sells_remotely(const weir_sim_world *world, uint32_t merchant) {
    return world_trade(world, merchant)->web + world_trade(world, merchant)->app > 0;
}

weir_sim_channel weir_sim_usual_channel(const weir_sim_world *world, uint32_t merchant, weir_rng *rng) {
    const weir_sim_trade *trade = world_trade(world, merchant);
    uint32_t roll = weir_sim_below(rng, 100);
    if (roll < trade->pos) return WEIR_SIM_POS;
    roll -= trade->pos;
    if (roll < trade->web) return WEIR_SIM_WEB;
    return trade->atm ? WEIR_SIM_ATM : WEIR_SIM_APP;
}

weir_sim_channel weir_sim_remote_channel(const weir_sim_world *world, uint32_t merchant, weir_rng *rng) {
    const weir_sim_trade *trade = world_trade(world, merchant);
    WEIR_ASSERT(trade->web + trade->app > 0);
    return weir_sim_below(rng, trade->web + trade->app) < trade->web ? WEIR_SIM_WEB : WEIR_SIM_APP;
}

uint32_t weir_sim_usual_cents(const weir_sim_world *world, uint32_t merchant, weir_rng *rng) {
    const weir_sim_merchant *m = &world->merchants[merchant];
    const weir_sim_trade *trade = &weir_sim_trades[m->trade];
    uint32_t cents = (uint32_t)weir_sim_lognormal(&world->math, rng, m->median_cents, trade->sigma_q16);
    if (trade->atm) return (cents / 1000 + 1) * 1000;
    uint32_t habit = weir_sim_below(rng, 10);
    if (habit < 2) return cents / 100 * 100 + 99;
    if (habit < 3) return (cents / 100 + 1) * 100;
    return cents + 50;
}

uint32_t weir_sim_transfer_cents(const weir_sim_world *world, uint32_t country, weir_rng *rng) {
    uint64_t median = 6500u * weir_sim_countries[country].price_percent / 100;
    uint32_t cents = (uint32_t)weir_sim_lognormal(&world->math, rng, median, 3 * 65536 / 2);
    if (weir_sim_below(rng, 10) < 6) return (cents / 500 + 1) * 500;
    return cents + 100;
}

uint32_t weir_sim_promoted(const weir_sim_world *world, uint32_t country, int64_t day, weir_rng *rng) {
    uint32_t which = weir_sim_below(rng, 3);
    weir_rng offers = weir_rng_stream(world->seed, (uint64_t)day, WEIR_SIM_OFFER | country << 4 | which);
    uint32_t begin = world->country_begin[country];
    return begin + weir_sim_below(&offers, world->country_begin[country + 1] - begin);
}
