/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_clock.h - what time it is at a source partition, by the events that came from it.
 *
 * The clock is the lower median of the times of its newest WEIR_EVENT_CLOCK_EVENTS events: wild times move it only when
 * they are more than half of them. From that many events on it never goes back; before, one event may still be the
 * majority, and the next ones correct it. The times themselves are kept, and sealed with the offset that they belong
 * to: with the median alone, the first event after each start would be the majority again.
 *
 * All is counted event by event, so that the clock does not depend on how events were batched.
 */
#ifndef WEIR_STORE_EVENT_CLOCK_H
#define WEIR_STORE_EVENT_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_EVENT_CLOCK_EVENTS    63u /* odd */
#define WEIR_EVENT_CLOCK_MAJORITY  32u
#define WEIR_EVENT_CLOCK_NONE      INT64_MIN
#define WEIR_EVENT_CLOCK_BYTES_MAX (8u + 8u * WEIR_EVENT_CLOCK_EVENTS)

/* A plain value. */
typedef struct weir_event_clock {
    int64_t now_us; /* WEIR_EVENT_CLOCK_NONE: no event yet */
    uint32_t count, oldest;
    int64_t times[WEIR_EVENT_CLOCK_EVENTS]; /* a ring, in the order of arrival */
} weir_event_clock;

/* The same while it is wound: the times in their order too. */
typedef struct weir_event_median {
    weir_event_clock clock;
    int64_t sorted[WEIR_EVENT_CLOCK_EVENTS];
} weir_event_median;

/* Of events among which only more than half may decide: 1 of 1, 2 of 2 or 3, 32 of 63, never more. */
uint32_t weir_event_clock_majority(uint64_t count);
weir_event_clock weir_event_clock_unset(void);
void weir_event_median_begin(weir_event_median *median, const weir_event_clock *clock);
/* latest_us: no right wall clock would let events be later. A clock that is has followed a wrong one, and may go back.
 */
void weir_event_median_add(weir_event_median *median, int64_t time_us, int64_t latest_us);

/* Little-endian: the clock 8, then each time 8, oldest first; nothing at all without an event. Returns the length. */
size_t weir_event_clock_write(const weir_event_clock *clock, uint8_t bytes[WEIR_EVENT_CLOCK_BYTES_MAX]);
/* false: these are not the bytes of a clock. */
bool weir_event_clock_read(const uint8_t *bytes, size_t length, weir_event_clock *clockp);

#endif /* WEIR_STORE_EVENT_CLOCK_H */
