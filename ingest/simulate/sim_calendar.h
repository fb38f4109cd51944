/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_calendar.h - the days on which people pay more or less than usual, and a busy time that knows them.
 *
 * The rhythm of the week makes an even busy time of event time; on a holiday that runs faster or slower. Fraud is
 * planned in the same busy time, so that neither the hour nor the day gives it away. Which day is what follows from its
 * date alone. Without holidays a calendar is its rhythm.
 */
#ifndef WEIR_SIM_CALENDAR_H
#define WEIR_SIM_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_rhythm.h"

typedef enum weir_sim_holiday {
    WEIR_SIM_PLAIN,
    WEIR_SIM_FEAST, /* shops are shut: restaurants, journeys          */
    WEIR_SIM_EVE,   /* the shopping before a feast                    */
    WEIR_SIM_SALE,  /* prices are cut: shops, above all in the web    */
    WEIR_SIM_HOLIDAYS
} weir_sim_holiday;

/* Of a day since 1970, for everybody. */
weir_sim_holiday weir_sim_holiday_on(int64_t day);
/* The same, and a feast on the country's own day. */
weir_sim_holiday weir_sim_holiday_in(int64_t day, uint32_t country);
/* Payments of such a day, in per cent of what its weekday has. */
uint32_t weir_sim_holiday_percent(weir_sim_holiday holiday);

typedef struct weir_sim_calendar {
    weir_sim_rhythm rhythm;
    bool holidays;
    /* The day into which the last question fell, and where it begins in busy time, with and without holidays. */
    int64_t day, begin, width, even_begin;
    uint32_t percent;
} weir_sim_calendar;

void weir_sim_calendar_init(weir_sim_calendar *calendar, const weir_sim_week *week, int64_t start_us, bool holidays);
/* Busy time of the start. */
int64_t weir_sim_calendar_begin(const weir_sim_calendar *calendar, int64_t start_us);
/* Monotone; quick when days are asked for in rising order. busy_us lies at most some weeks before the start. */
int64_t weir_sim_calendar_time(weir_sim_calendar *calendar, int64_t busy_us);

#endif /* WEIR_SIM_CALENDAR_H */
