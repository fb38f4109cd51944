/* SPDX-License-Identifier: Apache-2.0 */
/* lag.c - which rank the others wait for, and how many targets were handed around, of an epoch that has ended. */
#include <stdlib.h>

#include <weir/store/base/alloc.h>

#include "training_private.h"

#define LAG_MAX 1.25 /* of the median rank's time: more is said */

static int lag_by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double weir_training_lag(double *micros, uint32_t ranks, uint32_t *slowestp) {
    uint32_t idle = 0;
    *slowestp = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (micros[rank] > micros[*slowestp]) *slowestp = rank;
        idle += micros[rank] <= 0;
    }
    qsort(micros, ranks, sizeof *micros, lag_by_time);
    return idle == ranks ? 1 : micros[ranks - 1] / micros[idle + (ranks - idle - 1) / 2];
}

weir_err weir_training_compare(weir_trained *t, weir_train_epoch *epoch) {
    uint32_t ranks = weir_comm_ranks(t->comm);
    double *micros = weir_calloc(ranks, sizeof *micros);
    double targets[] = {(double)epoch->targets, (double)epoch->handed};
    if (!micros) return WEIR_NOMEM("to compare the ranks");
    if (epoch->targets) micros[weir_comm_rank(t->comm)] = (double)epoch->times.compute / targets[0];
    weir_comm_sum_doubles(t->comm, micros, ranks);
    weir_comm_sum_doubles(t->comm, targets, 2);
    epoch->lag = weir_training_lag(micros, ranks, &epoch->slowest);
    /* Twice one after the other: of short epochs on a machine that others use, too, some rank lags each time. */
    bool lags = epoch->lag > LAG_MAX;
    epoch->lags = lags && t->lagged == epoch->slowest + 1;
    t->lagged = lags ? epoch->slowest + 1 : 0;
    epoch->handed_share = targets[1] / targets[0];
    weir_free(micros);
    return WEIR_OK;
}
