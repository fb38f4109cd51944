/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - chargebacks: days or weeks after the payment, never for some frauds, and for a few honest payments too.
 */
#include "sim_payments.h"

#define SPREAD_Q16     76000u /* of the delay: a deviation of 1.16 doublings */
#define DELAY_SHORTEST 12     /* the median over this                        */
#define DELAY_LONGEST  7      /* times the median                            */
#define PENDING_DELAYS 3u     /* room for the labels of so many median delays, twice over */

weir_err weir_sim_labels_open(weir_sim_payments *sim) {
    uint64_t labelled = (uint64_t)sim->opts.per_day * (sim->opts.fraud_ppm + sim->opts.friendly_ppm) / 1000000 + 1;
    uint64_t days = (uint64_t)(sim->opts.label_delay_us / WEIR_SIM_DAY) + 1;
    return weir_sim_agenda_open(&sim->labels, labelled * days * PENDING_DELAYS + 4096, sizeof(weir_sim_label));
}

int64_t weir_sim_label_decide(weir_sim_payments *sim, const weir_sim_payment *payment, uint64_t number) {
    bool friendly = (uint64_t)payment->friendly_roll * 1000000 >> 32 < sim->opts.friendly_ppm;
    if (!payment->fraud && !friendly) return WEIR_SIMULATE_NEVER;
    weir_rng rng = weir_rng_stream(sim->world.seed, number, WEIR_SIM_LABEL);
    bool labelled =
        payment->fraud ? weir_sim_below(&rng, 1000000) >= sim->opts.unreported_ppm : payment->merchant != WEIR_SIM_NONE;
    if (!labelled) return WEIR_SIMULATE_NEVER;
    if (weir_sim_agenda_room(&sim->labels) == 0) {
        sim->base.stats.crowded_out++;
        return WEIR_SIMULATE_NEVER;
    }
    weir_sim_label label = {.payment = number,
                            .slot = payment->payer.slot,
                            .card = WEIR_SIM_NO_CARD,
                            .device = payment->device,
                            .asset = payment->asset,
                            .turn = payment->turn,
                            .crew = payment->crew};
    if (payment->fraud && payment->card != WEIR_SIM_NO_CARD) {
        label.card = payment->card;
        label.issue = (uint8_t)weir_sim_card_issue(&sim->world, &payment->payer, payment->card);
    }
    int64_t median_ms = sim->opts.label_delay_us / 1000;
    int64_t ms = (int64_t)weir_sim_lognormal(&sim->world.math, &rng, (uint64_t)median_ms, SPREAD_Q16);
    if (ms < median_ms / DELAY_SHORTEST) ms = median_ms / DELAY_SHORTEST;
    if (ms > median_ms * DELAY_LONGEST) ms = median_ms * DELAY_LONGEST;
    int64_t when = payment->time_us + ms * 1000 + (int64_t)weir_sim_below(&rng, 1000);
    weir_sim_agenda_add(&sim->labels, when, &label);
    sim->base.stats.friendly += !payment->fraud;
    return when;
}
