/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_world.h - who lives in the simulation: account holders with devices and cards, merchants, neighbourhoods.
 *
 * Nearly everything is computed on demand from (seed, who, when) and not stored: a holder's favourite merchants, his
 * contacts, the day on which he buys a new phone. A slot is a place for an account; when its holder leaves, the next
 * one opens an account there, with another number, other habits, another phone. So accounts open and close for ever in
 * the memory of a constant number of slots.
 */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/err.h>

#include "sim_alias.h"
#include "sim_math.h"

#define WEIR_SIM_COUNTRIES       12u
#define WEIR_SIM_NONE            UINT32_MAX
#define WEIR_SIM_COMMUNITY_SLOTS 64u /* neighbours: one country, much of each other's transfers */
#define WEIR_SIM_GENERATIONS     16u /* numbers of one device or card before the first comes again  */
#define WEIR_SIM_ACCOUNT_HOLDERS 8u  /* numbers of one slot's account before the first comes again  */
#define WEIR_SIM_SLOT_DEVICES    3u  /* phone, laptop, tablet                                       */
#define WEIR_SIM_SLOT_CARDS      2u
#define WEIR_SIM_TERMINALS_MAX   16u
#define WEIR_SIM_CREW_DEVICES    12u
#define WEIR_SIM_BURNERS         65536u /* after so many campaigns a burner phone comes again */
#define WEIR_SIM_CREW_EPOCHS     8u     /* after so many epochs a crew digs out its old devices            */
#define WEIR_SIM_CREW_TURNS      64u    /* where fraud adapts, after so many epochs and replacements of one */
#define WEIR_SIM_ATM_CODE        6011u

typedef enum weir_sim_channel {
    WEIR_SIM_WEB,
    WEIR_SIM_APP,
    WEIR_SIM_POS,
    WEIR_SIM_ATM,
    WEIR_SIM_TRANSFER
} weir_sim_channel;

/* A merchant category: how dear, and through which channels it sells, in per cent. */
typedef struct weir_sim_trade {
    uint16_t code;
    uint16_t weight;
    uint32_t median_cents;
    uint32_t sigma_q16;
    uint8_t pos, web, app, atm;
} weir_sim_trade;

typedef struct weir_sim_country {
    char code[3];
    char currency[4];
    uint16_t weight;
    uint16_t price_percent; /* of a euro price, in its own currency */
} weir_sim_country;

extern const weir_sim_trade weir_sim_trades[];
extern const weir_sim_country weir_sim_countries[WEIR_SIM_COUNTRIES];

typedef struct weir_sim_merchant {
    uint32_t number;
    uint32_t median_cents;
    uint8_t trade, country, terminals;
} weir_sim_merchant;

typedef struct weir_sim_person {
    uint32_t slot;
    uint32_t generation; /* how many holders the slot has had; wraps in the account number only */
    int64_t day;         /* of the question, since 1970                                         */
    uint64_t key;        /* slot and generation: names the habits                               */
    uint8_t country;
    uint8_t cards; /* 1 or 2 */
    bool laptop;
} weir_sim_person;

/* Which merchant is where, in a world where they move. A merchant is known by a raw number; places stand still. */
typedef struct weir_sim_moves {
    uint32_t *raw; /* by place; NULL: nobody moves */
    weir_rng rng;
    int64_t next_us; /* event time of the next one */
    int64_t gap_mean;
} weir_sim_moves;

typedef struct weir_sim_world_opts {
    uint64_t seed;
    int64_t start_us;
    uint32_t slots, merchants, crews;
    bool adapt, moves;
} weir_sim_world_opts;

typedef struct weir_sim_world {
    uint64_t seed;
    weir_sim_math math;
    weir_sim_moves moves;
    uint32_t slots, merchant_count, publics, crews, crew_epochs;
    weir_sim_alias_entry *slot_alias;
    weir_sim_alias_entry *merchant_alias; /* each country's entries stand where its merchants stand */
    weir_sim_merchant *merchants;         /* country by country, the most popular first             */
    uint8_t *community_country;           /* of 64 slots */
    uint8_t *reissued;                    /* two a slot: how often a card was replaced after a fraud */
    uint32_t country_begin[WEIR_SIM_COUNTRIES + 1];
    uint32_t device_terminals, device_publics, device_crews, device_burners; /* where each kind begins */
    weir_sim_scramble accounts, cards, devices, merchant_numbers;
} weir_sim_world;

/* WEIR_ENOMEM; close works on a half-opened one. */
weir_err weir_sim_world_open(weir_sim_world *world, const weir_sim_world_opts *opts);
void weir_sim_world_close(weir_sim_world *world);

weir_sim_person weir_sim_person_at(const weir_sim_world *world, uint32_t slot, int64_t day);
uint32_t weir_sim_active_slot(const weir_sim_world *world, weir_rng *rng);
uint64_t weir_sim_account_number(const weir_sim_world *world, const weir_sim_person *person);

/* How often card (0 or 1) has been issued up to now, and its number. */
uint32_t weir_sim_card_issue(const weir_sim_world *world, const weir_sim_person *person, uint32_t card);
uint64_t weir_sim_card_number(const weir_sim_world *world, const weir_sim_person *person, uint32_t card);
/* The bank replaces the card, unless that issue is gone already. */
void weir_sim_card_replace(weir_sim_world *world, const weir_sim_person *person, uint32_t card, uint32_t issue);

/* Devices are raw numbers; weir_sim_device_number is what a message shows. */
uint32_t weir_sim_device_phone(const weir_sim_world *world, const weir_sim_person *person);
/* What the holder would use in a browser: laptop, phone, the household's tablet, now and then a stranger's. */
uint32_t weir_sim_device_browser(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng);
uint32_t weir_sim_device_terminal(const weir_sim_world *world, uint32_t merchant, weir_rng *rng);
uint32_t weir_sim_device_crew(const weir_sim_world *world, uint32_t crew, uint64_t epoch, uint32_t which);
uint32_t weir_sim_device_burner(const weir_sim_world *world, uint64_t campaign);
uint64_t weir_sim_device_number(const weir_sim_world *world, uint32_t device);

/* The merchant at a rank of popularity within a country: others with time, where merchants move. */
uint32_t weir_sim_merchant_at(const weir_sim_world *world, uint32_t country, uint32_t rank, int64_t day);
/* By popularity on a day within a country; draw is 32 random bits. */
uint32_t weir_sim_merchant_popular(const weir_sim_world *world, uint32_t country, int64_t day, uint32_t draw);
uint32_t weir_sim_favourite(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng);
/* One of the day's promoted merchants of the country. */
uint32_t weir_sim_promoted(const weir_sim_world *world, uint32_t country, int64_t day, weir_rng *rng);
/* The country of this week's journey, or WEIR_SIM_NONE at home. */
uint32_t weir_sim_travel(const weir_sim_world *world, const weir_sim_person *person);
uint32_t weir_sim_any_country(weir_rng *rng);
/* Whom the holder sends money to; a slot, never his own. */
uint32_t weir_sim_contact(const weir_sim_world *world, const weir_sim_person *person, weir_rng *rng);

/* moves.c: the rest of a world that moves. WEIR_ENOMEM. */
weir_err weir_sim_moves_open(weir_sim_world *world, int64_t start_us);
void weir_sim_moves_close(weir_sim_world *world);
/* Merchants close, open and move as they have until then; time never goes back. */
void weir_sim_moves_until(weir_sim_world *world, int64_t time_us);
/* Where the holder lives on the day; his neighbourhood's country until he moves. */
uint8_t weir_sim_home(const weir_sim_world *world, uint64_t person_key, uint8_t country, uint32_t life_days,
                      uint32_t lived_days);
/* A habit of a holder: its number among those that he has had, and since when he has it. */
typedef struct weir_sim_pattern {
    uint64_t turn;
    int64_t since;
} weir_sim_pattern;
weir_sim_pattern weir_sim_pattern_of(const weir_sim_world *world, const weir_sim_person *person, uint32_t which);

/* Channel and price as they are usual at a merchant. */
weir_sim_channel weir_sim_usual_channel(const weir_sim_world *world, uint32_t merchant, weir_rng *rng);
/* web or app in the merchant's own proportion; it must sell there at all. */
weir_sim_channel weir_sim_remote_channel(const weir_sim_world *world, uint32_t merchant, weir_rng *rng);
bool weir_sim_sells_remotely(const weir_sim_world *world, uint32_t merchant);
bool weir_sim_is_atm(const weir_sim_world *world, uint32_t merchant);
uint32_t weir_sim_usual_cents(const weir_sim_world *world, uint32_t merchant, weir_rng *rng);
uint32_t weir_sim_transfer_cents(const weir_sim_world *world, uint32_t country, weir_rng *rng);

#endif /* WEIR_SIM_WORLD_H */
