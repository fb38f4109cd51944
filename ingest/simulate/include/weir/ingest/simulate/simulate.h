/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.h - made-up streams of payments and of clicks, with a known truth.
 *
 * A generator is a pure function of its options: no clock, no file, no floating point. It is endless; the caller
 * stops when it has enough, and a shorter run is a prefix of a longer one.
 *
 * INVARIANTS: each is cited by an assert or a test of the same name
 *
 *   SIMULATE-G1  Same options, same bytes: whatever the compiler, its options, the sink and the speed.
 *   SIMULATE-G2  Message times never go backwards, across all topics of a generator.
 *   SIMULATE-G3  No memory is allocated after open: it depends on the options, never on how long the run is.
 *   SIMULATE-G4  Whether a payment is fraud is told in its truth fields only, never in its bytes.
 *   SIMULATE-G5  What of a moving bank is off changes no byte.
 *
 * THREADS: every function is [any]; one handle belongs to one thread at a time.
 */
#ifndef WEIR_INGEST_SIMULATE_SIMULATE_H
#define WEIR_INGEST_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_simulate weir_simulate;

typedef enum weir_simulate_topic {
    WEIR_SIMULATE_PAYMENTS,
    WEIR_SIMULATE_CHARGEBACKS,
    WEIR_SIMULATE_CLICKS,
    WEIR_SIMULATE_TOPICS
} weir_simulate_topic;

typedef enum weir_simulate_fraud {
    WEIR_SIMULATE_HONEST,
    WEIR_SIMULATE_STOLEN_CARD, /* bursts of payments with cards that a crew has copied or bought       */
    WEIR_SIMULATE_RING,        /* accounts chained by pairwise shared devices, paying the same few     */
    WEIR_SIMULATE_COLLUSION,   /* a small merchant charges cards of a crew's list                      */
    WEIR_SIMULATE_TAKEOVER,    /* someone else enters an account and drains it                         */
    WEIR_SIMULATE_MULE,        /* money handed on from account to account, then taken out or spent     */
    WEIR_SIMULATE_FRAUDS
} weir_simulate_fraud;

#define WEIR_SIMULATE_NEVER     INT64_MAX
#define WEIR_SIMULATE_TRUTH_MAX 160u /* bytes of one truth line, its end included */

/* A plain value. Bytes are borrowed until the next call on the generator. */
typedef struct weir_simulate_message {
    weir_simulate_topic topic;
    int64_t time_us; /* of the event, since 1970 */
    const char *key;
    size_t key_length;
    const char *value; /* one JSON object, without a newline */
    size_t value_length;
    weir_simulate_fraud fraud; /* the truth; of payments only         */
    uint64_t campaign;         /* of the fraud; 0: honest             */
    int64_t chargeback_us;     /* when its label arrives, or _NEVER   */
} weir_simulate_message;

#define WEIR_SIMULATE_ACCOUNTS_MIN     100u
#define WEIR_SIMULATE_ACCOUNTS_MAX     5000000u
#define WEIR_SIMULATE_MERCHANTS_MIN    60u
#define WEIR_SIMULATE_MERCHANTS_MAX    500000u
#define WEIR_SIMULATE_PER_DAY_MIN      10u
#define WEIR_SIMULATE_PER_DAY_MAX      1000000000u
#define WEIR_SIMULATE_FRAUD_PPM_MAX    100000u
#define WEIR_SIMULATE_FRIENDLY_PPM_MAX 100000u
#define WEIR_SIMULATE_LABEL_DELAY_MIN  60000000ll           /* a minute */
#define WEIR_SIMULATE_LABEL_DELAY_MAX  (60ll * 86400000000) /* 60 days  */
#define WEIR_SIMULATE_START_MIN        946684800000000ll    /* 2000-01-01 */
#define WEIR_SIMULATE_START_MAX        4102444800000000ll   /* 2100-01-01 */

typedef struct weir_simulate_payments_opts {
    uint64_t seed;
    int64_t start_us;        /* event time of the beginning                                        */
    uint32_t accounts;       /* alive at any time; closed ones are followed by new ones            */
    uint32_t merchants;      /* 0: one for 20 accounts, 60 at least                                */
    uint32_t per_day;        /* payments in a day of event time; 0: 2.5 for each account           */
    uint32_t fraud_ppm;      /* fraudulent payments in a million                                   */
    int64_t label_delay_us;  /* median time from a fraud to its chargeback                         */
    uint32_t friendly_ppm;   /* honest purchases in a million that are charged back all the same  */
    uint32_t unreported_ppm; /* frauds in a million that are never charged back                   */
    /* A bank that moves; all false: one that stands still. */
    bool adapt;    /* each kind of fraud changes its ways every few weeks, crews replace what is burnt  */
    bool holidays; /* people pay more or less, and elsewhere, on days that the date tells               */
    bool moves;    /* merchants close, open, change country, trade and popularity; people move too      */
} weir_simulate_payments_opts;

#define WEIR_SIMULATE_PEOPLE_MIN 100u
#define WEIR_SIMULATE_PEOPLE_MAX 5000000u
#define WEIR_SIMULATE_ITEMS_MIN  480u
#define WEIR_SIMULATE_ITEMS_MAX  5000000u

typedef struct weir_simulate_clicks_opts {
    uint64_t seed;
    int64_t start_us;
    uint32_t people;
    uint32_t items;   /* in the catalogue at any time, less what is above a multiple of 24; they come and go */
    uint32_t per_day; /* clicks in a day of event time; 0: 12 for each person                                */
} weir_simulate_clicks_opts;

typedef struct weir_simulate_stats {
    uint64_t payments;    /* counter */
    uint64_t frauds;      /* counter: of the payments                                     */
    uint64_t chargebacks; /* counter: messages                                            */
    uint64_t friendly;    /* counter: chargebacks to come or sent of honest payments      */
    uint64_t clicks;      /* counter */
    uint64_t campaigns;   /* counter: of fraud, those begun before the start included     */
    uint64_t crowded_out; /* counter: campaigns, plans, labels and sessions for which an agenda had no room */
    int64_t time_us;      /* gauge:   event time of the last message; the start at first  */
} weir_simulate_stats;

weir_simulate_payments_opts weir_simulate_payments_defaults(void);
weir_simulate_clicks_opts weir_simulate_clicks_defaults(void);
/* Turns on all that moves, with more noise in the labels: 500 friendly and 200,000 unreported in a million. */
void weir_simulate_payments_moving(weir_simulate_payments_opts *opts);

/* WEIR_EINVAL an option out of its range: the sentence names it; WEIR_ELIMIT more events would wait for their time than
 * an agenda holds; WEIR_ENOMEM. */
weir_err weir_simulate_payments_open(const weir_simulate_payments_opts *opts, weir_simulate **simp);
weir_err weir_simulate_clicks_open(const weir_simulate_clicks_opts *opts, weir_simulate **simp);
/* The next message; never fails and never ends. */
void weir_simulate_next(weir_simulate *sim, weir_simulate_message *messagep);
void weir_simulate_stats_get(const weir_simulate *sim, weir_simulate_stats *statsp);
/* NULL is allowed. */
void weir_simulate_close(weir_simulate *sim);

/* "payments", "chargebacks", "clicks". */
const char *weir_simulate_topic_name(weir_simulate_topic topic);
/* "honest", "stolen_card", "ring", "collusion", "takeover", "mule". */
const char *weir_simulate_fraud_name(weir_simulate_fraud fraud);
/* The truth about a fraudulent payment as one JSON object with a newline; its length, or 0 for anything else. */
size_t weir_simulate_truth(const weir_simulate_message *message, char buffer[WEIR_SIMULATE_TRUTH_MAX]);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_SIMULATE_SIMULATE_H */
