/* SPDX-License-Identifier: Apache-2.0 */
/* offsets.h - how far each source partition has come, and its clock there: a small sorted table, read by any thread. */
#ifndef WEIR_STORE_OFFSETS_H
#define WEIR_STORE_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#include "event_clock.h"

typedef struct weir_offsets weir_offsets;

#define WEIR_OFFSETS_MAX 65536u /* source partitions of one store */

weir_err weir_offsets_open(weir_offsets **offsetsp); /* WEIR_ENOMEM */
void weir_offsets_close(weir_offsets *offsets);
/* false: never seen.  [any] */
bool weir_offsets_get(weir_offsets *offsets, uint32_t source, uint32_t partition, uint64_t *offsetp);
/* The clock of a partition; unset for one never seen.  [any] */
void weir_offsets_clock(weir_offsets *offsets, uint32_t source, uint32_t partition, weir_event_clock *clockp);
/* Offsets never go back: a lower one is kept out by assertion (GRAPH-S1).  WEIR_ENOMEM, WEIR_ELIMIT.  [any] */
weir_err weir_offsets_set(weir_offsets *offsets, uint32_t source, uint32_t partition, uint64_t offset,
                          const weir_event_clock *clock);
/* to becomes what from is.  WEIR_ENOMEM: to is as it was.  [any] */
weir_err weir_offsets_copy(weir_offsets *to, weir_offsets *from);
/* A copy of this moment, rising by source, then partition, so that visit may use the table. Until visit returns an
 * error, which is passed on; WEIR_ENOMEM.  [any] */
typedef weir_err (*weir_offsets_visit)(void *context, uint32_t source, uint32_t partition, uint64_t offset,
                                       const weir_event_clock *clock);
weir_err weir_offsets_walk(weir_offsets *offsets, weir_offsets_visit visit, void *context);

#endif /* WEIR_STORE_OFFSETS_H */
