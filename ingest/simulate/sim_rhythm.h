/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_rhythm.h - between event time and busy time.
 *
 * Busy time runs fast in busy hours and slowly at night, so that what is even in it follows the day and the week in
 * event time. A week of one is a week of the other. Everything, fraud too, is planned in busy time: otherwise the hour
 * of a payment would give fraud away.
 */
#ifndef WEIR_SIM_RHYTHM_H
#define WEIR_SIM_RHYTHM_H

#include <stdint.h>

#define WEIR_SIM_WEEK_HOURS 168u

typedef struct weir_sim_week {
    uint8_t hours[3][24];   /* weight of each hour on a working day, on Saturday, on Sunday */
    uint8_t day_percent[7]; /* Monday first */
} weir_sim_week;

typedef struct weir_sim_rhythm {
    int64_t origin_us;                      /* a Monday some weeks before the start; busy time 0 */
    int64_t begin[WEIR_SIM_WEEK_HOURS + 1]; /* busy time of each hour's begin                 */
    uint64_t scale[WEIR_SIM_WEEK_HOURS];    /* event time for one busy microsecond, Q20       */
    uint32_t hour;                          /* where the last question fell                   */
} weir_sim_rhythm;

void weir_sim_rhythm_init(weir_sim_rhythm *rhythm, const weir_sim_week *week, int64_t start_us);
int64_t weir_sim_busy_of(const weir_sim_rhythm *rhythm, int64_t time_us);
/* Monotone; quick when asked in rising order. busy_us is not negative. */
int64_t weir_sim_time_of(weir_sim_rhythm *rhythm, int64_t busy_us);

#endif /* WEIR_SIM_RHYTHM_H */
