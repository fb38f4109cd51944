/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - what the generators have in common. */
#include <stdio.h>

#include <weir/store/base/clock.h>

#include "sim_private.h"

#define START_DEFAULT INT64_C(1767571200000000) /* 2026-01-05, a Monday */

weir_simulate_payments_opts weir_simulate_payments_defaults(void) {
    return (weir_simulate_payments_opts){.seed = 1,
                                         .start_us = START_DEFAULT,
                                         .accounts = 100000,
                                         .fraud_ppm = 5000,
                                         .label_delay_us = INT64_C(9) * 86400 * WEIR_US_PER_S,
                                         .friendly_ppm = 150,
                                         .unreported_ppm = 120000};
}

void weir_simulate_payments_moving(weir_simulate_payments_opts *opts) {
    opts->adapt = opts->holidays = opts->moves = true;
    opts->friendly_ppm = 500;
    opts->unreported_ppm = 200000;
}

weir_simulate_clicks_opts weir_simulate_clicks_defaults(void) {
    return (weir_simulate_clicks_opts){.seed = 1, .start_us = START_DEFAULT, .people = 50000, .items = 20000};
}

void weir_simulate_next(weir_simulate *sim, weir_simulate_message *messagep) {
    sim->next(sim, messagep);
    sim->stats.time_us = messagep->time_us;
}

void weir_simulate_stats_get(const weir_simulate *sim, weir_simulate_stats *statsp) {
    *statsp = sim->stats;
}

void weir_simulate_close(weir_simulate *sim) {
    if (sim) sim->close(sim);
}

weir_err weir_sim_check(const char *option, uint64_t value, uint64_t min, uint64_t max) {
    if (value >= min && value <= max) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "%s is %llu; it may be from %llu to %llu", option, (unsigned long long)value,
                    (unsigned long long)min, (unsigned long long)max);
}

weir_err weir_sim_check_start(int64_t start_us) {
    if (start_us >= WEIR_SIMULATE_START_MIN && start_us <= WEIR_SIMULATE_START_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "the start is outside of the years 2000 to 2099; choose one within");
}

const char *weir_simulate_topic_name(weir_simulate_topic topic) {
    static const char *const names[WEIR_SIMULATE_TOPICS] = {"payments", "chargebacks", "clicks"};
    return (unsigned)topic < WEIR_SIMULATE_TOPICS ? names[topic] : "unknown";
}

const char *weir_simulate_fraud_name(weir_simulate_fraud fraud) {
    static const char *const names[WEIR_SIMULATE_FRAUDS] = {"honest",    "stolen_card", "ring",
                                                            "collusion", "takeover",    "mule"};
    return (unsigned)fraud < WEIR_SIMULATE_FRAUDS ? names[fraud] : "unknown";
}

size_t weir_simulate_truth(const weir_simulate_message *message, char buffer[WEIR_SIMULATE_TRUTH_MAX]) {
    if (message->topic != WEIR_SIMULATE_PAYMENTS || message->fraud == WEIR_SIMULATE_HONEST) return 0;
    char when[WEIR_TIME_TEXT_MAX + 2] = "null";
    if (message->chargeback_us != WEIR_SIMULATE_NEVER) {
        size_t length = weir_time_format(message->chargeback_us, when + 1);
        when[0] = when[length + 1] = '"';
        when[length + 2] = '\0';
    }
    /* A message begins {"id":"p0000000000000001", */
    int length =
        snprintf(buffer, WEIR_SIMULATE_TRUTH_MAX,
                 "{\"payment\":\"%.17s\",\"kind\":\"%s\",\"campaign\":%llu,\"chargeback\":%s}\n", message->value + 7,
                 weir_simulate_fraud_name(message->fraud), (unsigned long long)message->campaign, when);
    return (size_t)length;
}
