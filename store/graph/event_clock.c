/* SPDX-License-Identifier: Apache-2.0 */
/* event_clock.c - the median of a window of times, kept sorted beside its order of arrival. */
#include "event_clock.h"

#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>

uint32_t weir_event_clock_majority(uint64_t count) {
    return count >= WEIR_EVENT_CLOCK_EVENTS ? WEIR_EVENT_CLOCK_MAJORITY : (uint32_t)(count / 2 + 1);
}

weir_event_clock weir_event_clock_unset(void) {
    return (weir_event_clock){.now_us = WEIR_EVENT_CLOCK_NONE};
}

/* The first of the sorted times that is not below this one. */
static uint32_t event_clock_place(const weir_event_median *median, uint32_t count, int64_t time_us) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (median->sorted[middle] < time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void event_clock_insert(weir_event_median *median, uint32_t count, int64_t time_us) {
    WEIR_ASSERT(count < WEIR_EVENT_CLOCK_EVENTS);
    uint32_t at = event_clock_place(median, count, time_us);
    memmove(&median->sorted[at + 1], &median->sorted[at], (count - at) * sizeof median->sorted[0]);
    median->sorted[at] = time_us;
}

void weir_event_median_begin(weir_event_median *median, const weir_event_clock *clock) {
    median->clock = *clock;
    for (uint32_t i = 0; i < clock->count; i++)
        event_clock_insert(median, i, clock->times[i]);
}

/* The oldest one goes when there is no room. */
static void event_clock_slide(weir_event_median *median, int64_t time_us) {
    weir_event_clock *clock = &median->clock;
    if (clock->count < WEIR_EVENT_CLOCK_EVENTS) {
        clock->times[clock->count] = time_us;
        event_clock_insert(median, clock->count++, time_us);
        return;
    }
    uint32_t at = event_clock_place(median, clock->count, clock->times[clock->oldest]), left = clock->count - 1;
    WEIR_ASSERT(median->sorted[at] == clock->times[clock->oldest]);
    memmove(&median->sorted[at], &median->sorted[at + 1], (left - at) * sizeof median->sorted[0]);
    WEIR_ASSERT(clock->oldest < WEIR_EVENT_CLOCK_EVENTS && left == WEIR_EVENT_CLOCK_EVENTS - 1);
    clock->times[clock->oldest] = time_us;
    clock->oldest = (clock->oldest + 1) % WEIR_EVENT_CLOCK_EVENTS;
    event_clock_insert(median, left, time_us);
}

void weir_event_median_add(weir_event_median *median, int64_t time_us, int64_t latest_us) {
    weir_event_clock *clock = &median->clock;
    event_clock_slide(median, time_us);
    WEIR_ASSERT(clock->count > 0);
    int64_t middle_us = median->sorted[(clock->count - 1) / 2];
    bool settled = clock->count == WEIR_EVENT_CLOCK_EVENTS && clock->now_us <= latest_us;
    if (!settled || middle_us > clock->now_us) clock->now_us = middle_us;
}

size_t weir_event_clock_write(const weir_event_clock *clock, uint8_t bytes[WEIR_EVENT_CLOCK_BYTES_MAX]) {
    WEIR_ASSERT(clock->count <= WEIR_EVENT_CLOCK_EVENTS);
    if (!clock->count) return 0;
    weir_put_u64(bytes, (uint64_t)clock->now_us);
    for (uint32_t i = 0; i < clock->count; i++)
        weir_put_u64(bytes + 8 + 8 * i, (uint64_t)clock->times[(clock->oldest + i) % clock->count]);
    return 8 + 8 * (size_t)clock->count;
}

bool weir_event_clock_read(const uint8_t *bytes, size_t length, weir_event_clock *clockp) {
    *clockp = weir_event_clock_unset();
    if (length == 0) return true;
    if (length % 8 || length < 16 || length > WEIR_EVENT_CLOCK_BYTES_MAX) return false;
    clockp->now_us = (int64_t)weir_get_u64(bytes);
    clockp->count = (uint32_t)(length / 8 - 1);
    for (uint32_t i = 0; i < clockp->count; i++)
        clockp->times[i] = (int64_t)weir_get_u64(bytes + 8 + 8 * (size_t)i);
    return true;
}
