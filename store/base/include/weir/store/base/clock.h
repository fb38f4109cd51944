/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - monotonic and wall time behind one handle that a test can drive.
 *
 * Durations come from the monotonic clock, dates from the wall clock, both in microseconds. Nothing else in the product
 * calls clock_gettime. What a test must drive takes a weir_clock; waits for other threads (thread.h, queue.h), and most
 * intervals between tries, go by the system's all the same.
 */
#ifndef WEIR_STORE_BASE_CLOCK_H
#define WEIR_STORE_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_clock weir_clock;

#define WEIR_US_PER_S 1000000ll

/* The machine's own; closing it does nothing.  [any] */
weir_clock *weir_clock_system(void);

/* A clock that stands still until it is set or advanced. mono starts at 0.  WEIR_ENOMEM.  [any] */
weir_err weir_clock_manual_open(int64_t wall_us, weir_clock **clockp);
/* Moves both; wakes sleepers whose time has come.  [any] */
void weir_clock_manual_advance(weir_clock *clock, int64_t us);
/* Sets the wall clock alone, backwards too.  [any] */
void weir_clock_manual_set_wall(weir_clock *clock, int64_t wall_us);
/* Frees a manual clock; NULL and the system clock are allowed.  [owner] */
void weir_clock_close(weir_clock *clock);

int64_t weir_clock_mono_us(weir_clock *clock); /* never goes backwards  [any] */
int64_t weir_clock_mono_ns(weir_clock *clock); /* the same, in ns        [any] */
int64_t weir_clock_wall_us(weir_clock *clock); /* since 1970, UTC        [any] */

/* Returns at mono_us or later (on a manual clock: when it has been advanced that far).  Blocks.  [any] */
void weir_clock_sleep_until(weir_clock *clock, int64_t mono_us);

#define WEIR_TIME_TEXT_MAX 32u /* "2026-11-21T10:00:00.123456Z" and its end */

/* RFC 3339, UTC, microseconds; years 0 to 9999, others are clamped.  Returns the length.  [any] */
size_t weir_time_format(int64_t wall_us, char buffer[WEIR_TIME_TEXT_MAX]);
/* Accepts "2026-11-21", "2026-11-21T10:00:00Z", fractions up to 9 digits, offsets +hh:mm.  WEIR_EDATA.  [any] */
weir_err weir_time_parse(const char *text, size_t length, int64_t *wall_usp);
/* "90s", "15m", "36h", "7d", "250ms", "10us" to microseconds.  WEIR_EDATA.  [any] */
weir_err weir_duration_parse(const char *text, int64_t *usp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_CLOCK_H */
