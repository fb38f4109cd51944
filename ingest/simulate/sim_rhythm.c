/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_rhythm.h"

#include <weir/store/base/assert.h>

#include "sim_math.h"

/* 1970-01-01 was a Thursday. */
#define FIRST_MONDAY  (4 * WEIR_SIM_DAY)
#define EARLIER_WEEKS 4 /* before the start there is time for what began then */

static uint64_t rhythm_hour_weight(const weir_sim_week *week, uint32_t hour) {
    uint32_t day = hour / 24;
    uint32_t curve = day < 5 ? 0 : day - 4;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 24; i++)
        sum += week->hours[curve][i];
    return (uint64_t)week->hours[curve][hour % 24] * week->day_percent[day] * 100000 / sum;
}

void weir_sim_rhythm_init(weir_sim_rhythm *rhythm, const weir_sim_week *week, int64_t start_us) {
    WEIR_ASSERT(start_us >= FIRST_MONDAY + EARLIER_WEEKS * WEIR_SIM_WEEK);
    int64_t monday = start_us - (start_us - FIRST_MONDAY) % WEIR_SIM_WEEK;
    *rhythm = (weir_sim_rhythm){.origin_us = monday - EARLIER_WEEKS * WEIR_SIM_WEEK};
    uint64_t total = 0;
    for (uint32_t hour = 0; hour < WEIR_SIM_WEEK_HOURS; hour++)
        total += rhythm_hour_weight(week, hour);
    uint64_t sum = 0;
    for (uint32_t hour = 0; hour < WEIR_SIM_WEEK_HOURS; hour++) {
        rhythm->begin[hour] = (int64_t)(WEIR_SIM_WEEK / 1000 * sum / total * 1000);
        sum += rhythm_hour_weight(week, hour);
    }
    rhythm->begin[WEIR_SIM_WEEK_HOURS] = WEIR_SIM_WEEK;
    for (uint32_t hour = 0; hour < WEIR_SIM_WEEK_HOURS; hour++) {
        uint64_t width = (uint64_t)(rhythm->begin[hour + 1] - rhythm->begin[hour]);
        rhythm->scale[hour] = ((uint64_t)WEIR_SIM_HOUR << 20) / width;
    }
}

int64_t weir_sim_busy_of(const weir_sim_rhythm *rhythm, int64_t time_us) {
    int64_t since = time_us - rhythm->origin_us;
    int64_t in_week = since % WEIR_SIM_WEEK;
    uint32_t hour = (uint32_t)(in_week / WEIR_SIM_HOUR);
    int64_t width = rhythm->begin[hour + 1] - rhythm->begin[hour];
    int64_t in_hour = in_week % WEIR_SIM_HOUR / 1000; /* milliseconds, so that the product stays within 64 bits */
    return since - in_week + rhythm->begin[hour] + width * in_hour / (WEIR_SIM_HOUR / 1000);
}

int64_t weir_sim_time_of(weir_sim_rhythm *rhythm, int64_t busy_us) {
    WEIR_ASSERT(busy_us >= 0);
    int64_t in_week = busy_us % WEIR_SIM_WEEK;
    uint32_t hour = rhythm->hour;
    if (in_week < rhythm->begin[hour] || in_week >= rhythm->begin[hour + 1]) {
        uint32_t high = WEIR_SIM_WEEK_HOURS - 1;
        for (hour = 0; hour < high;) {
            uint32_t middle = (hour + high + 1) / 2;
            if (rhythm->begin[middle] <= in_week)
                hour = middle;
            else
                high = middle - 1;
        }
        rhythm->hour = hour;
    }
    WEIR_ASSERT(rhythm->begin[hour] <= in_week && in_week < rhythm->begin[hour + 1]);
    uint64_t in_hour = (uint64_t)(in_week - rhythm->begin[hour]) * rhythm->scale[hour] >> 20;
    return rhythm->origin_us + busy_us - in_week + (int64_t)hour * WEIR_SIM_HOUR + (int64_t)in_hour;
}
