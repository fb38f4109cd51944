/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.c - merchants close, open and move, and so do people; see sim_world.h.
 *
 * A place has a country, a rank of popularity, a trade and a price, and keeps them; which merchant has it changes. So
 * two merchants that exchange their places have moved, and neither a country nor a trade gets more or fewer of them.
 */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sim_world.h"

#define GENERATIONS       16u /* merchants of one chain before the first number comes again */
#define YEAR              (365 * WEIR_SIM_DAY)
#define YEARLY_PER_MILLE  400u /* events in a year for a thousand merchants */
#define CLOSES_IN_A_YEAR  200u /* of those: the merchant closes, and another one opens in its place   */
#define ABROAD_IN_A_YEAR  100u /* goes to another country, where one of its trade comes back for it   */
#define TRIES             64u
#define GAP_SHIFT         8    /* means are longer than weir_sim_exponential takes */
#define HOLDERS_PER_MILLE 350u /* move to another country at some time */
#define HABIT_DAYS_MIN    60u
#define HABIT_DAYS_MAX    240u

/* --- merchants ---------------------------------------------------------------------------------------------------- */

static void moves_show(weir_sim_world *world, uint32_t place) {
    world->merchants[place].number = (uint32_t)weir_sim_scrambled(&world->merchant_numbers, world->moves.raw[place]);
}

static void moves_wait(weir_sim_world *world) {
    weir_sim_moves *moves = &world->moves;
    moves->next_us += weir_sim_exponential(&world->math, &moves->rng, moves->gap_mean) << GAP_SHIFT;
}

weir_err weir_sim_moves_open(weir_sim_world *world, int64_t start_us) {
    weir_sim_moves *moves = &world->moves;
    moves->raw = weir_calloc(world->merchant_count, sizeof *moves->raw);
    if (!moves->raw) return WEIR_NOMEM("for %u merchants that move; simulate fewer", world->merchant_count);
    uint64_t numbers = (uint64_t)world->merchant_count * GENERATIONS;
    world->merchant_numbers = weir_sim_scramble_make(world->seed, 5, numbers, 6);
    for (uint32_t place = 0; place < world->merchant_count; place++) {
        moves->raw[place] = place;
        moves_show(world, place);
    }
    moves->rng = weir_rng_stream(world->seed, 0, WEIR_SIM_MOVE);
    moves->gap_mean = YEAR * 1000 / ((int64_t)world->merchant_count * YEARLY_PER_MILLE) >> GAP_SHIFT;
    moves->next_us = start_us;
    moves_wait(world);
    return WEIR_OK;
}

void weir_sim_moves_close(weir_sim_world *world) {
    weir_free(world->moves.raw);
    world->moves.raw = NULL;
}

/* A chain of numbers has one merchant at a time, wherever it is, so no two ever have the same. */
static void moves_replace(weir_sim_world *world, uint32_t place) {
    uint32_t *raw = &world->moves.raw[place];
    *raw = (uint32_t)(((uint64_t)*raw + world->merchant_count) % world->merchant_numbers.count);
    moves_show(world, place);
}

/* Of the same trade in another country, or of another trade in the same; the place itself if a few tries find none. */
static uint32_t moves_partner(const weir_sim_world *world, uint32_t place, bool abroad, weir_rng *rng) {
    const weir_sim_merchant *own = &world->merchants[place];
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t country = abroad ? weir_sim_any_country(rng) : own->country;
        uint32_t begin = world->country_begin[country], count = world->country_begin[country + 1] - begin;
        uint32_t other = begin + weir_sim_below(rng, count);
        bool same_trade = world->merchants[other].trade == own->trade;
        if ((country != own->country) == abroad && same_trade == abroad && !weir_sim_is_atm(world, other)) return other;
    }
    return place;
}

static void moves_happen(weir_sim_world *world) {
    weir_rng *rng = &world->moves.rng;
    uint32_t place = weir_sim_below(rng, world->merchant_count);
    uint32_t roll = weir_sim_below(rng, YEARLY_PER_MILLE);
    if (roll < CLOSES_IN_A_YEAR) {
        moves_replace(world, place);
        return;
    }
    if (weir_sim_is_atm(world, place)) return; /* nobody else runs cash machines */
    uint32_t other = moves_partner(world, place, roll < CLOSES_IN_A_YEAR + ABROAD_IN_A_YEAR, rng);
    uint32_t raw = world->moves.raw[place];
    world->moves.raw[place] = world->moves.raw[other];
    world->moves.raw[other] = raw;
    moves_show(world, place);
    moves_show(world, other);
}

void weir_sim_moves_until(weir_sim_world *world, int64_t time_us) {
    if (!world->moves.raw) return;
    while (world->moves.next_us <= time_us) {
        moves_happen(world);
        moves_wait(world);
    }
}

/* --- people ------------------------------------------------------------------------------------------------------- */

uint8_t weir_sim_home(const weir_sim_world *world, uint64_t person_key, uint8_t country, uint32_t life_days,
                      uint32_t lived_days) {
    weir_rng rng = weir_rng_stream(world->seed, person_key, WEIR_SIM_HOME);
    if (!weir_sim_chance(&rng, HOLDERS_PER_MILLE) || lived_days < weir_sim_below(&rng, life_days)) return country;
    return (uint8_t)weir_sim_any_country(&rng);
}

weir_sim_pattern weir_sim_pattern_of(const weir_sim_world *world, const weir_sim_person *person, uint32_t which) {
    if (!world->moves.raw) return (weir_sim_pattern){.since = person->day};
    weir_rng rng = weir_rng_stream(world->seed, person->key, WEIR_SIM_PATTERN | which);
    uint32_t days = weir_sim_between(&rng, HABIT_DAYS_MIN, HABIT_DAYS_MAX);
    uint32_t phase = weir_sim_below(&rng, days);
    weir_sim_pattern pattern = {.turn = ((uint64_t)person->day + phase) / days};
    pattern.since = (int64_t)(pattern.turn * days) - phase;
    if (pattern.since < 0) pattern.since = 0;
    return pattern;
}
