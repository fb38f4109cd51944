/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_payments.h - what the parts of the payment generator share.
 *
 *   payments.c   the clockwork: the next payment or chargeback, and its bytes
 *   honest.c     what people do of their own accord
 *   fraud.c      when a campaign begins, who runs it, and with what
 *   campaigns.c  the plan of one campaign of each kind
 *   adapt.c      what fraud is like now, and what a crew gives up
 *   labels.c     chargebacks
 *
 * Spontaneous payments come one after the other at random gaps of busy time. Whatever follows from something else (an
 * errand after an errand, every fraud) waits in an agenda of plans; chargebacks wait in another.
 */
#ifndef WEIR_SIM_PAYMENTS_H
#define WEIR_SIM_PAYMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_agenda.h"
#include "sim_calendar.h"
#include "sim_private.h"
#include "sim_text.h"
#include "sim_world.h"

#define WEIR_SIM_LOOT         64u
#define WEIR_SIM_CAMPAIGN_MAX 128u             /* payments of one campaign */
#define WEIR_SIM_ONE_PAYMENT  INT64_C(1000000) /* in a budget */
#define WEIR_SIM_NO_CARD      0xFFu
#define WEIR_SIM_ANY_ISSUE    0xFFu
#define WEIR_SIM_EPOCH_DAYS   24u
#define WEIR_SIM_FENCES       12u /* of a crew, in an epoch and a country */
#define WEIR_SIM_MULES        24u
#define WEIR_SIM_NO_ASSET     0u
#define WEIR_SIM_ASSETS       (1 + WEIR_SIM_FENCES + WEIR_SIM_MULES + WEIR_SIM_CREW_DEVICES)

#define WEIR_SIM_RING_MERCHANTS 8u /* at most */

typedef enum weir_sim_act {
    WEIR_SIM_ERRAND,   /* whatever the holder would do, but no transfer        */
    WEIR_SIM_PURCHASE, /* at the target, through any channel that it has       */
    WEIR_SIM_REMOTE,   /* at the target, web or app                            */
    WEIR_SIM_SEND,     /* to the target                                        */
    WEIR_SIM_CASH      /* at some cash machine of the holder's country         */
} weir_sim_act;

typedef struct weir_sim_plan {
    uint64_t campaign; /* 0: honest                                                       */
    uint32_t slot;
    uint32_t target; /* merchant, or the payee's slot                                   */
    uint32_t device; /* raw; NONE: the holder's own, as usual                           */
    uint32_t cents;  /* 0: as usual                                                     */
    uint8_t act;     /* weir_sim_act                                                    */
    uint8_t fraud;   /* weir_simulate_fraud                                             */
    uint8_t card;
    uint8_t issue;       /* of the card that was copied: once replaced, it pays no more */
    uint8_t asset, turn; /* the crew's fence or mule, or WEIR_SIM_NO_ASSET; how often it had been replaced */
    uint16_t crew;
} weir_sim_plan;

typedef struct weir_sim_payment {
    weir_sim_person payer;
    int64_t time_us;
    uint64_t campaign;
    uint32_t merchant; /* NONE: a transfer */
    uint32_t payee;    /* slot             */
    uint32_t device;   /* raw              */
    uint32_t cents;
    uint8_t channel, country, card, fraud;
    uint8_t asset, turn; /* as in the plan */
    uint16_t crew;
    uint32_t friendly_roll; /* decides whether an honest payment is charged back */
} weir_sim_payment;

typedef struct weir_sim_label {
    uint64_t payment;
    uint32_t slot;
    uint32_t device;     /* raw */
    uint8_t card, issue; /* to be replaced, or WEIR_SIM_NO_CARD */
    uint8_t asset, turn;
    uint16_t crew;
} weir_sim_label;

typedef struct weir_sim_loot {
    uint32_t slot;
    uint8_t card, issue;
} weir_sim_loot;

typedef struct weir_sim_crew {
    uint32_t skimmed; /* the merchant where it copies cards now */
    uint32_t loot_count;
    weir_sim_loot loot[WEIR_SIM_LOOT];
    uint8_t burnt[WEIR_SIM_ASSETS]; /* chargebacks that have come in for each */
    uint8_t turns[WEIR_SIM_ASSETS]; /* how often it was replaced, modulo 256 */
} weir_sim_crew;

typedef struct weir_sim_payments {
    weir_simulate base;
    weir_simulate_payments_opts opts;
    weir_sim_world world;
    weir_sim_calendar calendar;
    weir_sim_agenda plans;
    weir_sim_agenda labels;
    weir_sim_crew *crews;
    uint32_t *skimmers;                    /* by merchant: the crew that copies cards there, plus 1 */
    int64_t budget[WEIR_SIMULATE_FRAUDS];  /* millionths of a payment that each kind may still commit */
    uint64_t shares[WEIR_SIMULATE_FRAUDS]; /* of the day: per mille of all fraudulent payments */
    weir_rng gaps;
    int64_t gap_mean; /* busy microseconds between spontaneous payments */
    int64_t busy_begin, busy_base, busy_now;
    int64_t crews_day; /* for which skimmers and shares hold */
    uint64_t spontaneous, planned;
    bool pending; /* payment is made and waits for earlier chargebacks to leave */
    weir_sim_payment payment;
    weir_sim_date date;
    char line[WEIR_SIM_LINE_MAX];
} weir_sim_payments;

/* honest.c */
void weir_sim_honest(weir_sim_payments *sim, uint32_t slot, weir_rng *rng, weir_sim_payment *payment);
void weir_sim_errand(weir_sim_payments *sim, uint32_t slot, weir_rng *rng, weir_sim_payment *payment);
/* What follows from a spontaneous payment. */
void weir_sim_follow(weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng);
uint32_t weir_sim_device_for(const weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng);
/* Adds a plan; without room it is counted and dropped. */
void weir_sim_plan_add(weir_sim_payments *sim, int64_t busy_us, const weir_sim_plan *plan);

/* fraud.c */
uint32_t weir_sim_crews_for(uint32_t per_day, uint32_t fraud_ppm);
/* Counts the spans for which a crew keeps what it has. */
uint64_t weir_sim_crew_epoch(const weir_sim_payments *sim, uint32_t crew, int64_t day);
weir_err weir_sim_fraud_open(weir_sim_payments *sim);
void weir_sim_fraud_close(weir_sim_payments *sim);
/* One more payment has been made: begins the campaigns that have become due. */
void weir_sim_fraud_accrue(weir_sim_payments *sim);
/* An honest purchase at a merchant where cards are copied. */
void weir_sim_fraud_witness(weir_sim_payments *sim, const weir_sim_payment *payment, weir_rng *rng);

/* Among merchants of which popularity a crew looks for its own. */
typedef enum weir_sim_taste { WEIR_SIM_ANY_MERCHANT, WEIR_SIM_BIG, WEIR_SIM_LITTLE, WEIR_SIM_TASTES } weir_sim_taste;

/* How a kind of fraud goes about in a phase. */
typedef struct weir_sim_ways {
    uint32_t size, uses, pace;       /* in per cent of the usual: with how many cards, accounts or steps, how
                                        many payments each, how slowly                                */
    uint32_t burner, fence, partner; /* per mille: with a device of its own, at the crew's fences, on the
                                        phone of the ring's next member                               */
    uint32_t merchants;              /* of a ring */
    weir_sim_taste taste;
} weir_sim_ways;

/* What a campaign works with. */
typedef struct weir_sim_campaign {
    weir_sim_payments *sim;
    uint64_t id;
    weir_simulate_fraud fraud;
    uint32_t crew;
    uint64_t epoch;
    int64_t begin, day; /* busy time; day since 1970 */
    uint32_t country;
    weir_sim_ways ways;
    weir_rng rng;
    uint32_t count; /* payments planned */
} weir_sim_campaign;

typedef enum weir_sim_asset {
    WEIR_SIM_FENCE,
    WEIR_SIM_MULE_SLOT,
    WEIR_SIM_CARD_LIST,
    WEIR_SIM_CREW_DEVICE
} weir_sim_asset;

/* The same for all campaigns of a crew in one epoch: that is what links them. */
weir_rng weir_sim_crew_asset(const weir_sim_campaign *campaign, weir_sim_asset asset, uint32_t which);
weir_sim_loot weir_sim_crew_loot(weir_sim_campaign *campaign);

/* campaigns.c */
void weir_sim_campaign_plan(weir_sim_campaign *campaign);

/* adapt.c */
/* Which of the phases of this kind of fraud the day is in. */
uint64_t weir_sim_phase(const weir_sim_payments *sim, weir_simulate_fraud fraud, int64_t day);
weir_sim_ways weir_sim_ways_of(const weir_sim_payments *sim, weir_simulate_fraud fraud, int64_t day);
/* Sets how much of the day's fraud is of which kind. */
void weir_sim_shares_set(weir_sim_payments *sim, int64_t day);
/* A number for the device, fence or mule in a crew's counts. */
uint8_t weir_sim_asset_of(weir_sim_asset kind, uint32_t which);
/* A chargeback has come in: the crew replaces what has had too many. */
void weir_sim_fraud_burn(weir_sim_payments *sim, const weir_sim_label *label, int64_t day);

/* labels.c */
weir_err weir_sim_labels_open(weir_sim_payments *sim);
/* Decides whether and when the payment's label arrives; NEVER if not. */
int64_t weir_sim_label_decide(weir_sim_payments *sim, const weir_sim_payment *payment, uint64_t number);

#endif /* WEIR_SIM_PAYMENTS_H */
