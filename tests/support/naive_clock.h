/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_clock.h - what time the sources agree on, worked out again from all events each time it is asked for.
 *
 * It shares nothing with the store's: it keeps every time that ever came, sorts, and counts.
 */
#ifndef WEIR_NAIVE_CLOCK_H
#define WEIR_NAIVE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct naive_clock naive_clock;

typedef enum naive_state { NAIVE_READING, NAIVE_WAITING, NAIVE_IDLE } naive_state; /* as weir_clock_state */

naive_clock *naive_clock_open(void);
void naive_clock_close(naive_clock *clock);
/* An event of a partition, by its number, of 64 at most, in the order of the log. latest_us: the latest that an event
 * may be just now; INT64_MAX: any. */
void naive_clock_event(naive_clock *clock, uint32_t number, int64_t time_us, int64_t latest_us);
/* All that came before is applied. */
void naive_clock_applied(naive_clock *clock, uint32_t number, int64_t latest_us);
/* As weir_graph_clock_state. */
void naive_clock_state(naive_clock *clock, uint32_t number, naive_state state, int64_t latest_us);
/* The store was closed and opened again. */
void naive_clock_restart(naive_clock *clock);
int64_t naive_clock_now(const naive_clock *clock); /* INT64_MIN: no event yet */

#endif /* WEIR_NAIVE_CLOCK_H */
