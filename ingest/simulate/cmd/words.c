/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - the commands and options of `weir simulate`, without the code behind them. */
#include "words.h"

#define SIMULATE_COMMON_OPTIONS                                                                                      \
    {"days", 'd', "D", "stop after D days of event time", NULL}, {"count", 'n', "N", "stop after N messages", NULL}, \
        {"endless", 0, NULL, "go on until a signal stops it", NULL},                                                 \
        {"start", 0, "TIME", "event time of the beginning, or 'now' (default: 2026-01-05T00:00:00Z)", NULL},         \
        {"seed", 's', "N", "same seed and options, same bytes (default: 1)", NULL},                                  \
        {"to", 't', "PLACE", "file:FOLDER, log:FOLDER, kafka:BROKERS, or - for stdout (default: -)", NULL},          \
        {"partitions", 'p', "N", "of a topic that is created (default: eventlog.partitions of the configuration)",   \
         NULL},                                                                                                      \
        {"rate", 'r', "N[/s]", "send no faster than so many a second of real time", NULL}, {                         \
        "speed", 0, "X", "let event time run X times as fast as real time", NULL                                     \
    }

/* --- payments ----------------------------------------------------------------------------------------------------- */

static const weir_option simulate_payments_options[] = {
    SIMULATE_COMMON_OPTIONS,
    {"accounts", 'a', "N", "accounts that are open at a time (default: 100000)", NULL},
    {"merchants", 0, "N", "merchants (default: one for 20 accounts)", NULL},
    {"per-day", 0, "N", "payments in a day of event time (default: 2.5 for each account)", NULL},
    {"fraud-rate", 0, "SHARE", "share of payments that are fraud (default: 0.005)", NULL},
    {"label-delay", 0, "TIME", "median time from a fraud to its chargeback (default: 9d)", NULL},
    {"world", 0, "WHICH", "a bank that stands still, or one with all that follows (default: still)", "still|moving"},
    {"adapt", 0, NULL, "fraud changes its ways every few weeks, and replaces what chargebacks have burnt", NULL},
    {"holidays", 0, NULL, "people pay more or less, and elsewhere, on feasts and days of sale", NULL},
    {"moves", 0, NULL, "merchants close, open, change country, trade and popularity; people move too", NULL},
    {"friendly-rate", 0, "SHARE", "honest purchases charged back all the same (default: 0.00015; moving: 0.0005)",
     NULL},
    {"unreported-rate", 0, "SHARE", "frauds that are never charged back (default: 0.12; moving: 0.2)", NULL},
    {"truth", 0, "FILE", "write what is fraud, as JSON lines; never part of the stream", NULL},
    {"only", 0, "TOPIC", "send this topic alone (default: both)", "payments|chargebacks"},
    {0},
};

const weir_command weir_simulate_words_payments = {
    .name = "payments",
    .summary = "payments with planted fraud, and the chargebacks that follow",
    .description =
        "Accounts with cards, devices, habits and journeys pay at merchants and to each other, by day and week. Fraud "
        "is planted among them: bursts of stolen cards, rings that share devices, colluding merchants, account "
        "take-overs, mule chains. A fraudulent payment looks like any other; only who meets whom gives it away.\n\n"
        "Chargebacks arrive days to weeks later, some frauds never get one, and a few honest payments do. Topics are "
        "payments (key: account) and chargebacks (key: payment), in event-time order. The same options give the same "
        "bytes at any speed and into any place, and a shorter run is the beginning of a longer one.\n\n"
        "By default the bank stands still: who is honest, what fraud is like and when people pay is the same for ever. "
        "In one that moves, what was learnt some weeks ago fits less today; each of its parts has a switch of its own.",
    .example = "weir simulate payments --days 2 --seed 7 --to log:build/data --truth truth.jsonl\n"
               "weir simulate payments --count 100000 --to kafka:127.0.0.1:9092 --rate 5000/s\n"
               "weir simulate payments --endless --start now --speed 1 --to log:\n"
               "weir simulate payments --days 120 --world moving --to file:out --truth truth.jsonl\n"
               "weir simulate payments --count 1000 | weir log append payments --key-field account",
    .options = simulate_payments_options,
};

/* --- clicks ------------------------------------------------------------------------------------------------------- */

static const weir_option simulate_clicks_options[] = {
    SIMULATE_COMMON_OPTIONS,
    {"people", 0, "N", "people (default: 50000)", NULL},
    {"items", 0, "N", "items in the catalogue at a time (default: 20000)", NULL},
    {"per-day", 0, "N", "clicks in a day of event time (default: 12 for each person)", NULL},
    {0},
};

const weir_command weir_simulate_words_clicks = {
    .name = "clicks",
    .summary = "views, carts and purchases of people with changing tastes",
    .description =
        "People with tastes among the categories walk through a catalogue in sessions: they view items, put some into "
        "the cart and buy some of those. New items enter at the top of their category and fade; tastes change after "
        "weeks. Topic clicks (key: person), in event-time order; the same options give the same bytes.",
    .example = "weir simulate clicks --days 7 --to log:build/data\n"
               "weir simulate clicks --count 1000",
    .options = simulate_clicks_options,
};

const weir_command *const weir_simulate_words[] = {&weir_simulate_words_payments, &weir_simulate_words_clicks, NULL};
