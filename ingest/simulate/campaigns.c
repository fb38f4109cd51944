/* SPDX-License-Identifier: Apache-2.0 */
/*
 * campaigns.c - the plan of one campaign of each kind.
 *
 * A planned payment has the amount, the hour, the channel, the country and the merchant category that an honest one
 * could have: merchants are drawn by the same popularity, prices are the merchant's own, time is busy time. What is odd
 * is only who meets whom.
 */
#include <weir/store/base/assert.h>

#include "sim_payments.h"

#define CAMPAIGN_DAYS    8
#define RING_MEMBERS_MAX 15u
#define CARD_LIST        120u
#define LOCAL_TRIES      24u
#define REMOTE_TRIES     12u

static weir_sim_plan campaign_blank(const weir_sim_campaign *c, weir_sim_act act) {
    return (weir_sim_plan){.campaign = c->id,
                           .device = WEIR_SIM_NONE,
                           .act = (uint8_t)act,
                           .fraud = (uint8_t)c->fraud,
                           .crew = (uint16_t)c->crew,
                           .issue = WEIR_SIM_ANY_ISSUE};
}

/* Counted even when it lies before the start: its share of the budget was earned there. */
static void campaign_add_plan(weir_sim_campaign *c, int64_t busy_us, weir_sim_plan *payment) {
    if (c->count == WEIR_SIM_CAMPAIGN_MAX) return;
    c->count++;
    payment->turn = c->sim->crews[c->crew].turns[payment->asset];
    WEIR_ASSERT(payment->turn == 0 || c->sim->opts.adapt); // SIMULATE-G5
    if (busy_us >= c->sim->busy_begin) weir_sim_plan_add(c->sim, busy_us, payment);
}

/* At the pace of the phase. */
static int64_t campaign_minutes(weir_sim_campaign *c, int64_t low, int64_t high) {
    int64_t minute = WEIR_SIM_MINUTE * c->ways.pace / 100;
    return weir_sim_span(&c->rng, low * minute, high * minute);
}

/* One at least. */
static uint32_t campaign_scaled(weir_sim_campaign *c, uint32_t low, uint32_t high, uint32_t percent) {
    uint32_t least = low * percent / 100, most = high * percent / 100;
    return weir_sim_between(&c->rng, least ? least : 1, most ? most : 1);
}

/* Of cards, accounts or steps, as it is in the phase. */
static uint32_t campaign_count(weir_sim_campaign *c, uint32_t low, uint32_t high) {
    return campaign_scaled(c, low, high, c->ways.size);
}

/* Of the payments of one of them. */
static uint32_t campaign_uses(weir_sim_campaign *c, uint32_t low, uint32_t high) {
    return campaign_scaled(c, low, high, c->ways.uses);
}

static uint32_t campaign_device(const weir_sim_campaign *c, uint32_t which) {
    uint8_t turns = c->sim->crews[c->crew].turns[weir_sim_asset_of(WEIR_SIM_CREW_DEVICE, which)];
    return weir_sim_device_crew(&c->sim->world, c->crew, c->epoch + turns, which);
}

static uint32_t campaign_crew_device(weir_sim_campaign *c) {
    return campaign_device(c, weir_sim_below(&c->rng, WEIR_SIM_CREW_DEVICES));
}

static uint32_t campaign_home(const weir_sim_campaign *c, uint32_t slot) {
    return weir_sim_person_at(&c->sim->world, slot, c->day).country;
}

/* Whether one holder keeps the account for as long as any campaign lasts. */
static bool campaign_holder_stays(const weir_sim_campaign *c, uint32_t slot) {
    const weir_sim_world *world = &c->sim->world;
    return weir_sim_person_at(world, slot, c->day).generation ==
           weir_sim_person_at(world, slot, c->day + CAMPAIGN_DAYS).generation;
}

/* A slot of the campaign's country, if a few tries find one; else of another. */
static uint32_t campaign_local_slot(const weir_sim_campaign *c, weir_rng *rng) {
    const weir_sim_world *world = &c->sim->world;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < LOCAL_TRIES; i++) {
        uint32_t candidate = weir_sim_below(rng, world->slots);
        if (!campaign_holder_stays(c, candidate)) continue;
        slot = candidate;
        if (campaign_home(c, slot) == c->country) break;
    }
    return slot;
}

/* One of the crew's mules, who is noted on the payment to him. */
static uint32_t campaign_mule(weir_sim_campaign *c, uint8_t *asset) {
    uint32_t which = weir_sim_below(&c->rng, WEIR_SIM_MULES);
    weir_rng rng = weir_sim_crew_asset(c, WEIR_SIM_MULE_SLOT, which);
    *asset = weir_sim_asset_of(WEIR_SIM_MULE_SLOT, which);
    return campaign_local_slot(c, &rng);
}

/* A popular merchant of the country, as the crew likes them now. Places of a low number are popular more often. */
static uint32_t campaign_popular(const weir_sim_campaign *c, weir_rng *rng) {
    const weir_sim_world *world = &c->sim->world;
    uint32_t merchant = weir_sim_merchant_popular(world, c->country, c->day, weir_rng_u32(rng));
    if (c->ways.taste == WEIR_SIM_ANY_MERCHANT) return merchant;
    uint32_t other = weir_sim_merchant_popular(world, c->country, c->day, weir_rng_u32(rng));
    return (other < merchant) == (c->ways.taste == WEIR_SIM_BIG) ? other : merchant;
}

/* A popular merchant of the country that sells through the web. */
static uint32_t campaign_remote_merchant(const weir_sim_campaign *c, weir_rng *rng) {
    const weir_sim_world *world = &c->sim->world;
    uint32_t merchant = 0;
    for (uint32_t i = 0; i < REMOTE_TRIES; i++) {
        merchant = campaign_popular(c, rng);
        if (weir_sim_sells_remotely(world, merchant)) return merchant;
    }
    for (merchant = world->country_begin[c->country]; !weir_sim_sells_remotely(world, merchant); merchant++)
        WEIR_ASSERT(merchant + 1 < world->country_begin[c->country + 1]);
    return merchant;
}

/* One of the crew's fences, the same for as long as it has it. */
static uint32_t campaign_fence(weir_sim_campaign *c, uint8_t *asset) {
    uint32_t which = weir_sim_below(&c->rng, WEIR_SIM_FENCES);
    weir_rng rng = weir_sim_crew_asset(c, WEIR_SIM_FENCE, which);
    *asset = weir_sim_asset_of(WEIR_SIM_FENCE, which);
    int64_t since = (int64_t)c->epoch * WEIR_SIM_EPOCH_DAYS;
    return weir_sim_merchant_popular(&c->sim->world, c->country, since, weir_rng_u32(&rng));
}

/* In some phases many cards are used from a device that is thrown away. */
static uint32_t campaign_burner_or(weir_sim_campaign *c, uint32_t device) {
    if (c->ways.burner == 0 || !weir_sim_chance(&c->rng, c->ways.burner)) return device;
    return weir_sim_device_burner(&c->sim->world, c->id);
}

/* A handful of copied cards, each used for an hour or a few: at the crew's fences, or wherever people pay. */
static void campaign_stolen_card(weir_sim_campaign *c) {
    uint32_t cards = campaign_count(c, 3, 6);
    for (uint32_t i = 0; i < cards; i++) {
        weir_sim_loot loot = weir_sim_crew_loot(c);
        c->country = campaign_home(c, loot.slot);
        weir_sim_plan payment = campaign_blank(c, WEIR_SIM_PURCHASE);
        payment.slot = loot.slot;
        payment.card = loot.card;
        payment.issue = loot.issue;
        payment.device = campaign_burner_or(c, campaign_crew_device(c));
        int64_t when = c->begin + campaign_minutes(c, 0, 14 * 60);
        uint32_t uses = campaign_uses(c, 4, 9);
        for (uint32_t use = 0; use < uses; use++) {
            payment.asset = WEIR_SIM_NO_ASSET;
            payment.target = weir_sim_chance(&c->rng, c->ways.fence) ? campaign_fence(c, &payment.asset)
                                                                     : campaign_popular(c, &c->rng);
            campaign_add_plan(c, when, &payment);
            when += campaign_minutes(c, 3, 45);
        }
    }
}

static uint32_t campaign_phone(const weir_sim_campaign *c, uint32_t slot) {
    weir_sim_person holder = weir_sim_person_at(&c->sim->world, slot, c->day);
    return weir_sim_device_phone(&c->sim->world, &holder);
}

/* Accounts in a closed chain: each is used from its holder's phone and from the next one's, as a couple would. No phone
 * is new, and none ever sees more than two of them. They pay at the same few merchants, a little every day. */
static void campaign_ring(weir_sim_campaign *c) {
    uint32_t merchants[WEIR_SIM_RING_MERCHANTS], slots[RING_MEMBERS_MAX];
    for (uint32_t i = 0; i < c->ways.merchants; i++)
        merchants[i] = campaign_remote_merchant(c, &c->rng);
    uint32_t members = campaign_count(c, 6, 12);
    WEIR_ASSERT(members <= RING_MEMBERS_MAX);
    for (uint32_t member = 0; member < members; member++)
        slots[member] = campaign_local_slot(c, &c->rng);
    for (uint32_t member = 0; member < members; member++) {
        uint32_t uses = campaign_uses(c, 3, 7);
        for (uint32_t use = 0; use < uses; use++) {
            weir_sim_plan payment =
                campaign_blank(c, weir_sim_chance(&c->rng, 350) ? WEIR_SIM_PURCHASE : WEIR_SIM_REMOTE);
            payment.slot = slots[member];
            payment.device = campaign_phone(c, slots[(member + weir_sim_chance(&c->rng, c->ways.partner)) % members]);
            payment.target = merchants[weir_sim_below(&c->rng, c->ways.merchants)];
            campaign_add_plan(c, c->begin + campaign_minutes(c, 0, 6 * 24 * 60), &payment);
        }
    }
}

/* A small merchant charges cards from the crew's list; the crew's next such merchant will charge some of the same. */
static void campaign_collusion(weir_sim_campaign *c) {
    const weir_sim_world *world = &c->sim->world;
    uint32_t begin = world->country_begin[c->country];
    uint32_t count = world->country_begin[c->country + 1] - begin;
    uint32_t rank = count * 2 / 5 + weir_sim_below(&c->rng, count - count * 2 / 5);
    uint32_t merchant = weir_sim_merchant_at(world, c->country, rank, c->day);
    while (weir_sim_is_atm(world, merchant))
        merchant = merchant > begin ? merchant - 1 : begin + count - 1;
    uint32_t cards = campaign_count(c, 14, 34);
    for (uint32_t i = 0; i < cards; i++) {
        uint32_t which = weir_sim_below(&c->rng, CARD_LIST);
        weir_rng list = weir_sim_crew_asset(c, WEIR_SIM_CARD_LIST, which);
        weir_sim_plan payment = campaign_blank(c, WEIR_SIM_PURCHASE);
        payment.slot = campaign_local_slot(c, &list);
        weir_sim_person holder = weir_sim_person_at(world, payment.slot, c->day);
        payment.issue = (uint8_t)weir_sim_card_issue(world, &holder, payment.card);
        payment.target = merchant;
        payment.device = campaign_burner_or(c, campaign_device(c, which % WEIR_SIM_CREW_DEVICES));
        campaign_add_plan(c, c->begin + campaign_minutes(c, 0, 4 * 24 * 60), &payment);
    }
}

/* A device of his own, one of the crew's, or the victim's phone, which he has talked him into handing over. */
static uint32_t campaign_intruder_device(weir_sim_campaign *c, uint32_t victim) {
    uint32_t roll = weir_sim_below(&c->rng, 1000);
    if (roll < c->ways.burner) return weir_sim_device_burner(&c->sim->world, c->id);
    return roll < c->ways.burner + (1000 - c->ways.burner) * 5 / 7 ? campaign_crew_device(c)
                                                                   : campaign_phone(c, victim);
}

/* Someone else enters the account and drains it: money to mules, goods to fences. */
static void campaign_takeover(weir_sim_campaign *c) {
    uint32_t slot = weir_sim_active_slot(&c->sim->world, &c->rng);
    for (uint32_t i = 0; i < LOCAL_TRIES && !campaign_holder_stays(c, slot); i++)
        slot = weir_sim_active_slot(&c->sim->world, &c->rng);
    c->country = campaign_home(c, slot);
    uint32_t device = campaign_intruder_device(c, slot);
    uint32_t uses = campaign_uses(c, 3, 6);
    int64_t when = c->begin;
    for (uint32_t use = 0; use < uses; use++) {
        bool send = weir_sim_chance(&c->rng, 400);
        weir_sim_plan payment = campaign_blank(c, send ? WEIR_SIM_SEND : WEIR_SIM_REMOTE);
        payment.slot = slot;
        payment.device = device;
        payment.card = send ? WEIR_SIM_NO_CARD : 0;
        payment.target = send ? campaign_mule(c, &payment.asset) : campaign_remote_merchant(c, &c->rng);
        campaign_add_plan(c, when, &payment);
        when += campaign_minutes(c, 3, 60);
    }
}

/* One step of money along a chain of mules. */
typedef struct campaign_leg {
    uint32_t to, cents;
    uint8_t asset; /* the mule's */
} campaign_leg;

static void campaign_hand_over(weir_sim_campaign *c, int64_t when, uint32_t from, const campaign_leg *leg) {
    weir_sim_plan payment = campaign_blank(c, WEIR_SIM_SEND);
    payment.slot = from;
    payment.target = leg->to;
    payment.asset = leg->asset;
    payment.cents = leg->cents;
    payment.card = WEIR_SIM_NO_CARD;
    if (weir_sim_chance(&c->rng, 350)) payment.device = campaign_crew_device(c);
    campaign_add_plan(c, when, &payment);
}

/* As cash, or as goods that sell well. */
static void campaign_take_out(weir_sim_campaign *c, int64_t when, uint32_t slot) {
    weir_sim_plan payment = campaign_blank(c, weir_sim_chance(&c->rng, 400) ? WEIR_SIM_CASH : WEIR_SIM_PURCHASE);
    payment.slot = slot;
    payment.target = campaign_fence(c, &payment.asset);
    campaign_add_plan(c, when, &payment);
}

/* A victim is talked into a transfer. Each mule keeps a little and hands the rest on within hours, sometimes split in
 * two; the last ones take it out. One step of it is what any flat-share does at the end of the month. */
static void campaign_mule_chain(weir_sim_campaign *c) {
    uint32_t from = campaign_local_slot(c, &c->rng);
    campaign_leg leg = {0};
    leg.to = campaign_mule(c, &leg.asset);
    leg.cents = weir_sim_transfer_cents(&c->sim->world, c->country, &c->rng) * 2;
    int64_t when = c->begin;
    campaign_hand_over(c, when, from, &leg);
    uint32_t steps = campaign_count(c, 2, 4);
    for (uint32_t step = 0; step < steps; step++) {
        from = leg.to;
        leg.cents = (uint32_t)((uint64_t)leg.cents * weir_sim_between(&c->rng, 82, 97) / 100);
        if (weir_sim_chance(&c->rng, 400)) {
            leg.cents = leg.cents / 2 + 100;
            campaign_leg side = {.cents = leg.cents};
            side.to = campaign_mule(c, &side.asset);
            campaign_hand_over(c, when + campaign_minutes(c, 10, 300), from, &side);
            campaign_take_out(c, when + campaign_minutes(c, 320, 900), side.to);
        }
        leg.to = campaign_mule(c, &leg.asset);
        when += campaign_minutes(c, 10, 300);
        campaign_hand_over(c, when, from, &leg);
    }
    uint32_t visits = campaign_uses(c, 1, 3);
    for (uint32_t visit = 0; visit < visits; visit++)
        campaign_take_out(c, when + campaign_minutes(c, 10, 400), leg.to);
}

void weir_sim_campaign_plan(weir_sim_campaign *c) {
    static void (*const plans[WEIR_SIMULATE_FRAUDS])(weir_sim_campaign *) = {
        [WEIR_SIMULATE_STOLEN_CARD] = campaign_stolen_card, [WEIR_SIMULATE_RING] = campaign_ring,
        [WEIR_SIMULATE_COLLUSION] = campaign_collusion,     [WEIR_SIMULATE_TAKEOVER] = campaign_takeover,
        [WEIR_SIMULATE_MULE] = campaign_mule_chain,
    };
    WEIR_ASSERT(c->fraud > WEIR_SIMULATE_HONEST && c->fraud < WEIR_SIMULATE_FRAUDS);
    plans[c->fraud](c);
}
