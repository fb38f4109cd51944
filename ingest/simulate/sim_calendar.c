/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_calendar.h"

#include <weir/store/base/assert.h>

#include "sim_math.h"
#include "sim_world.h"

typedef struct calendar_date {
    int32_t year;
    uint32_t month, day; /* from 1 */
} calendar_date;

typedef struct calendar_feast {
    uint8_t month, day, kind;
} calendar_feast;

static const calendar_feast calendar_fixed[] = {
    {1, 1, WEIR_SIM_FEAST},  {1, 6, WEIR_SIM_FEAST},   {5, 1, WEIR_SIM_FEAST},   {8, 15, WEIR_SIM_FEAST},
    {11, 1, WEIR_SIM_FEAST}, {12, 25, WEIR_SIM_FEAST}, {12, 26, WEIR_SIM_FEAST}, {12, 20, WEIR_SIM_EVE},
    {12, 21, WEIR_SIM_EVE},  {12, 22, WEIR_SIM_EVE},   {12, 23, WEIR_SIM_EVE},   {12, 24, WEIR_SIM_EVE},
    {12, 30, WEIR_SIM_EVE},  {12, 31, WEIR_SIM_EVE},   {1, 2, WEIR_SIM_SALE},    {1, 3, WEIR_SIM_SALE},
};

/* By country, in the order of weir_sim_countries; month 0: none. */
static const calendar_feast calendar_national[WEIR_SIM_COUNTRIES] = {
    {10, 3, WEIR_SIM_FEAST},  {7, 14, WEIR_SIM_FEAST}, {0, 0, WEIR_SIM_PLAIN},   {6, 2, WEIR_SIM_FEAST},
    {10, 12, WEIR_SIM_FEAST}, {4, 27, WEIR_SIM_FEAST}, {11, 11, WEIR_SIM_FEAST}, {10, 26, WEIR_SIM_FEAST},
    {8, 1, WEIR_SIM_FEAST},   {6, 6, WEIR_SIM_FEAST},  {7, 4, WEIR_SIM_FEAST},   {10, 28, WEIR_SIM_FEAST},
};

/* --- dates -------------------------------------------------------------------------------------------------------- */

/* Of a day since 1970. Years begin in March here, so that the leap day is the last of one. */
static calendar_date calendar_date_of(int64_t day) {
    WEIR_ASSERT(day >= 0);
    uint64_t since = (uint64_t)day + 719468; /* days since March of the year 0 */
    uint32_t era = (uint32_t)(since / 146097), in_era = (uint32_t)(since % 146097);
    uint32_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    uint32_t in_year = in_era - (365 * year + year / 4 - year / 100);
    uint32_t month = (5 * in_year + 2) / 153;
    calendar_date date = {.day = in_year - (153 * month + 2) / 5 + 1, .month = month < 10 ? month + 3 : month - 9};
    date.year = (int32_t)(year + era * 400 + (date.month <= 2));
    return date;
}

/* Days from Easter Sunday to the date: negative before it. The Gregorian rule of 1876, whose author is not known. */
static int32_t calendar_after_easter(calendar_date date) {
    int32_t golden = date.year % 19, century = date.year / 100, rest = date.year % 100;
    int32_t correction = (century - (century + 8) / 25 + 1) / 3;
    int32_t moon = (19 * golden + century - century / 4 - correction + 15) % 30;
    int32_t weekday = (32 + 2 * (century % 4) + 2 * (rest / 4) - moon - rest % 4) % 7;
    int32_t late = (golden + 11 * moon + 22 * weekday) / 451;
    int32_t since_march = moon + weekday - 7 * late + 21; /* days from the first of March */
    if (date.month < 3 || date.month > 5) return -1000;
    static const int32_t month_begin[] = {0, 31, 61};
    return month_begin[date.month - 3] + (int32_t)date.day - 1 - since_march;
}

/* Friday after the fourth Thursday of November, to Monday. */
static bool calendar_is_autumn_sale(int64_t day, calendar_date date) {
    uint32_t weekday = (uint32_t)((day + 3) % 7); /* Monday first; 1970 began on a Thursday */
    uint32_t since = (weekday + 3) % 7;           /* from Friday */
    if (since > 3) return false;
    int32_t friday = (int32_t)date.day - (int32_t)since + (date.month == 12 ? 30 : 0);
    return (date.month == 11 || date.month == 12) && friday >= 23 && friday <= 29;
}

weir_sim_holiday weir_sim_holiday_on(int64_t day) {
    calendar_date date = calendar_date_of(day);
    for (size_t i = 0; i < sizeof calendar_fixed / sizeof *calendar_fixed; i++)
        if (date.month == calendar_fixed[i].month && date.day == calendar_fixed[i].day)
            return (weir_sim_holiday)calendar_fixed[i].kind;
    int32_t after_easter = calendar_after_easter(date);
    if (after_easter == -2 || after_easter == 0 || after_easter == 1) return WEIR_SIM_FEAST;
    if (after_easter == -3 || after_easter == -1) return WEIR_SIM_EVE;
    return calendar_is_autumn_sale(day, date) ? WEIR_SIM_SALE : WEIR_SIM_PLAIN;
}

weir_sim_holiday weir_sim_holiday_in(int64_t day, uint32_t country) {
    WEIR_ASSERT(country < WEIR_SIM_COUNTRIES);
    calendar_date date = calendar_date_of(day);
    const calendar_feast *own = &calendar_national[country];
    return date.month == own->month && date.day == own->day ? WEIR_SIM_FEAST : weir_sim_holiday_on(day);
}

uint32_t weir_sim_holiday_percent(weir_sim_holiday holiday) {
    static const uint8_t percents[WEIR_SIM_HOLIDAYS] = {
        [WEIR_SIM_PLAIN] = 100, [WEIR_SIM_FEAST] = 60, [WEIR_SIM_EVE] = 135, [WEIR_SIM_SALE] = 150};
    WEIR_ASSERT((unsigned)holiday < WEIR_SIM_HOLIDAYS);
    return percents[holiday];
}

/* --- busy time ---------------------------------------------------------------------------------------------------- */

/* All but where the day begins. */
static void calendar_turn_to(weir_sim_calendar *calendar, int64_t day) {
    calendar->day = day;
    calendar->percent = weir_sim_holiday_percent(weir_sim_holiday_on(day));
    calendar->even_begin = weir_sim_busy_of(&calendar->rhythm, day * WEIR_SIM_DAY);
    int64_t even_end = weir_sim_busy_of(&calendar->rhythm, (day + 1) * WEIR_SIM_DAY);
    calendar->width = (even_end - calendar->even_begin) * calendar->percent / 100;
}

void weir_sim_calendar_init(weir_sim_calendar *calendar, const weir_sim_week *week, int64_t start_us, bool holidays) {
    *calendar = (weir_sim_calendar){.holidays = holidays};
    weir_sim_rhythm_init(&calendar->rhythm, week, start_us);
    calendar_turn_to(calendar, start_us / WEIR_SIM_DAY);
    calendar->begin = calendar->even_begin;
}

int64_t weir_sim_calendar_begin(const weir_sim_calendar *calendar, int64_t start_us) {
    int64_t even = weir_sim_busy_of(&calendar->rhythm, start_us);
    if (!calendar->holidays) return even;
    WEIR_ASSERT(calendar->day == start_us / WEIR_SIM_DAY);
    return calendar->begin + (even - calendar->even_begin) * calendar->percent / 100;
}

int64_t weir_sim_calendar_time(weir_sim_calendar *calendar, int64_t busy_us) {
    if (!calendar->holidays) return weir_sim_time_of(&calendar->rhythm, busy_us);
    while (busy_us >= calendar->begin + calendar->width) {
        calendar->begin += calendar->width;
        calendar_turn_to(calendar, calendar->day + 1);
    }
    while (busy_us < calendar->begin) {
        calendar_turn_to(calendar, calendar->day - 1);
        calendar->begin -= calendar->width;
    }
    int64_t even = calendar->even_begin + (busy_us - calendar->begin) * 100 / calendar->percent;
    return weir_sim_time_of(&calendar->rhythm, even);
}
