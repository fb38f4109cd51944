/* SPDX-License-Identifier: Apache-2.0 */
/* sim_people.c - account holders and what they own, computed on demand; see sim_world.h. */
#include <weir/store/base/assert.h>

#include "sim_world.h"

#define HOUSEHOLD_SLOTS 4u
#define CARD_DAYS       1095u /* a card is valid for three years */
#define HABITS          8u
#define CONTACTS        6u
#define TURN_SHIFT      44   /* of a habit's turn above a person's key */
#define COLLECTOR_SLOTS 400u /* one account in so many is a landlord, a club, a charity: many pay to it */

enum { PHONE, LAPTOP, TABLET };

weir_sim_person weir_sim_person_at(const weir_sim_world *world, uint32_t slot, int64_t day) {
    WEIR_ASSERT(slot < world->slots && day >= 0);
    weir_rng rng = weir_rng_stream(world->seed, slot, WEIR_SIM_PERSON);
    uint32_t life_days = weir_sim_between(&rng, 800, 2400);
    uint32_t phase = weir_sim_below(&rng, life_days);
    uint32_t kind = weir_rng_u32(&rng);
    weir_sim_person person = {.slot = slot, .day = day};
    person.generation = (uint32_t)((uint64_t)day + phase) / life_days;
    person.key = (uint64_t)person.generation << 32 | slot;
    person.country = world->community_country[slot / WEIR_SIM_COMMUNITY_SLOTS];
    if (world->moves.raw) {
        uint32_t lived = (uint32_t)((uint64_t)day + phase) % life_days;
        person.country = weir_sim_home(world, person.key, person.country, life_days, lived);
    }
    person.laptop = (kind & 0xFFu) < 180;
    person.cards = (uint8_t)(1 + ((kind >> 8 & 0xFFu) < 110));
    return person;
}

uint32_t weir_sim_active_slot(const weir_sim_world *world, weir_rng *rng) {
    return weir_sim_alias_pick(world->slot_alias, world->slots, weir_rng_u32(rng));
}

uint64_t weir_sim_account_number(const weir_sim_world *world, const weir_sim_person *person) {
    uint64_t raw = (uint64_t)(person->generation % WEIR_SIM_ACCOUNT_HOLDERS) * world->slots + person->slot;
    return weir_sim_scrambled(&world->accounts, raw);
}

/* --- cards -------------------------------------------------------------------------------------------------------- */

uint32_t weir_sim_card_issue(const weir_sim_world *world, const weir_sim_person *person, uint32_t card) {
    WEIR_ASSERT(card < WEIR_SIM_SLOT_CARDS);
    uint32_t phase = (uint32_t)((person->slot * 2 + card) * 2654435761u >> 16) % CARD_DAYS;
    uint32_t expired = (uint32_t)((uint64_t)person->day + phase) / CARD_DAYS;
    /* None of the three ever falls, so that a changed sum is a card that was never seen before. */
    return (expired + person->generation + world->reissued[person->slot * 2 + card]) % WEIR_SIM_GENERATIONS;
}

uint64_t weir_sim_card_number(const weir_sim_world *world, const weir_sim_person *person, uint32_t card) {
    uint64_t raw =
        ((uint64_t)person->slot * 2 + card) * WEIR_SIM_GENERATIONS + weir_sim_card_issue(world, person, card);
    return weir_sim_scrambled(&world->cards, raw);
}

void weir_sim_card_replace(weir_sim_world *world, const weir_sim_person *person, uint32_t card, uint32_t issue) {
    if (weir_sim_card_issue(world, person, card) == issue) world->reissued[person->slot * 2 + card]++;
}

/* --- devices ------------------------------------------------------------------------------------------------------ */

static uint32_t people_own_device(const weir_sim_world *world, uint32_t slot, uint32_t holder, int64_t day,
                                  uint32_t which) {
    weir_rng rng = weir_rng_stream(world->seed, slot, WEIR_SIM_DEVICE | which);
    uint32_t life_days = weir_sim_between(&rng, 350, 900);
    uint32_t phase = weir_sim_below(&rng, life_days);
    uint32_t bought = (uint32_t)((uint64_t)day + phase) / life_days;
    return (slot * WEIR_SIM_SLOT_DEVICES + which) * WEIR_SIM_GENERATIONS + (bought + holder) % WEIR_SIM_GENERATIONS;
}

uint32_t weir_sim_device_phone(const weir_sim_world *world, const weir_sim_person *person) {
    return people_own_device(world, person->slot, person->generation, person->day, PHONE);
}

/* Four slots are four singles, two pairs, or a family; the first of a household owns its tablet. Returns the slot of
 * the owner, or NONE for a single. */
static uint32_t people_tablet_owner(const weir_sim_world *world, uint32_t slot) {
    weir_rng rng = weir_rng_stream(world->seed, slot / HOUSEHOLD_SLOTS, WEIR_SIM_HOUSEHOLD);
    uint32_t roll = weir_sim_below(&rng, 100);
    if (roll < 35) return WEIR_SIM_NONE;
    uint32_t size = roll < 70 ? 2 : 4;
    return slot - slot % size;
}

static uint32_t people_strange_device(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng) {
    uint32_t roll = weir_sim_below(rng, 100);
    if (roll < 55) return world->device_publics + weir_sim_below(rng, world->publics);
    uint32_t community = person->slot - person->slot % WEIR_SIM_COMMUNITY_SLOTS;
    uint32_t friend = (community + weir_sim_below(rng, WEIR_SIM_COMMUNITY_SLOTS)) % world->slots;
    weir_sim_person owner = weir_sim_person_at(world, friend, person->day);
    return weir_sim_device_phone(world, &owner);
}

uint32_t weir_sim_device_browser(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng) {
    uint32_t roll = weir_sim_below(rng, 1000);
    if (roll < 15) return people_strange_device(world, person, rng);
    if (roll < 165) {
        uint32_t owner = people_tablet_owner(world, person->slot);
        if (owner != WEIR_SIM_NONE) return people_own_device(world, owner, 0, person->day, TABLET);
    }
    if (roll < 750 && person->laptop)
        return people_own_device(world, person->slot, person->generation, person->day, LAPTOP);
    return weir_sim_device_phone(world, person);
}

uint32_t weir_sim_device_terminal(const weir_sim_world *world, uint32_t merchant, weir_rng *rng) {
    WEIR_ASSERT(merchant < world->merchant_count);
    return world->device_terminals + merchant * WEIR_SIM_TERMINALS_MAX +
           weir_sim_below(rng, world->merchants[merchant].terminals);
}

uint32_t weir_sim_device_crew(const weir_sim_world *world, uint32_t crew, uint64_t epoch, uint32_t which) {
    WEIR_ASSERT(crew < world->crews && which < WEIR_SIM_CREW_DEVICES);
    uint32_t row = crew * world->crew_epochs + (uint32_t)(epoch % world->crew_epochs);
    return world->device_crews + row * WEIR_SIM_CREW_DEVICES + which;
}

uint32_t weir_sim_device_burner(const weir_sim_world *world, uint64_t campaign) {
    return world->device_burners + (uint32_t)(campaign % WEIR_SIM_BURNERS);
}

uint64_t weir_sim_device_number(const weir_sim_world *world, uint32_t device) {
    return weir_sim_scrambled(&world->devices, device);
}

/* --- habits ------------------------------------------------------------------------------------------------------- */

uint32_t weir_sim_favourite(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng) {
    uint32_t a = weir_sim_below(rng, HABITS);
    uint32_t b = weir_sim_below(rng, HABITS);
    uint32_t which = a < b ? a : b;
    weir_sim_pattern pattern = weir_sim_pattern_of(world, person, which);
    weir_rng habit = weir_rng_stream(world->seed, person->key | pattern.turn << TURN_SHIFT, WEIR_SIM_HABIT | which);
    return weir_sim_merchant_popular(world, person->country, pattern.since, weir_rng_u32(&habit));
}

uint32_t weir_sim_travel(const weir_sim_world *world, const weir_sim_person *person) {
    weir_rng rng = weir_rng_stream(world->seed, person->key, WEIR_SIM_TRAVEL | (uint32_t)(person->day / 7));
    if (!weir_sim_chance(&rng, 35)) return WEIR_SIM_NONE;
    return weir_sim_any_country(&rng);
}

static uint32_t people_draw_contact(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng) {
    uint32_t roll = weir_sim_below(rng, 100);
    if (roll < 55)
        return person->slot - person->slot % WEIR_SIM_COMMUNITY_SLOTS + weir_sim_below(rng, WEIR_SIM_COMMUNITY_SLOTS);
    if (roll < 80) return weir_sim_below(rng, world->slots / COLLECTOR_SLOTS + 1) * COLLECTOR_SLOTS;
    return weir_sim_below(rng, world->slots);
}

uint32_t weir_sim_contact(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng) {
    uint32_t slot;
    if (weir_sim_chance(rng, 850)) {
        uint32_t which = weir_sim_below(rng, CONTACTS);
        weir_sim_pattern pattern = weir_sim_pattern_of(world, person, HABITS + which);
        uint64_t owner = person->key | pattern.turn << TURN_SHIFT;
        weir_rng fixed = weir_rng_stream(world->seed, owner, WEIR_SIM_CONTACT | which);
        slot = people_draw_contact(world, person, &fixed);
    } else {
        slot = people_draw_contact(world, person, rng);
    }
    slot %= world->slots;
    return slot != person->slot ? slot : (slot + 1) % world->slots;
}
