/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookahead.h - rows of other ranks' vertices that stay as long as coming batches read them soonest. Private to this
 * folder. Of a graph that stands still only, as a cache (cache.h).
 *
 * What a batch reads is drawn from seed and epoch, so it can be known before: a maker samples a batch a first time
 * `horizon` batches before it makes it, keeps a list of the rows that others own, and drops the rest. Makers work side
 * by side, but in turns where it matters:
 *
 *   told     lists come in the order of the batches, and with the last of its horizon a batch is taken (soonest.h):
 *            what it asks for follows from the lists alone, never from who was faster
 *   entered  when its answers have come, a batch takes rows out of their places and puts others in, each batch behind
 *            the one before
 *
 * A turn waits for those of earlier batches of this rank alone, and what these exchange with other ranks waits for no
 * later batch anywhere: so no rank waits for itself. A maker that fails ends all ranks; no turn is given up.
 */
#ifndef WEIR_TRAINER_TRAIN_LOOKAHEAD_H
#define WEIR_TRAINER_TRAIN_LOOKAHEAD_H

#include <weir/store/sample/block.h>

#include "cache.h"
#include "soonest.h"

typedef struct weir_train_lookahead weir_train_lookahead;

/* With room for the rows that the share comes to. Of the stream's batches, by so many makers.  WEIR_ELIMIT 2^31 - 1
 * vertices of this rank's snapshot, or more; WEIR_ENOMEM. */
weir_err weir_train_lookahead_open(const weir_train_cache_opts *opts, uint32_t makers, weir_train_lookahead **aheadp);
void weir_train_lookahead_close(weir_train_lookahead *ahead); /* NULL is allowed, here and in horizon */
/* How many batches before it is made a batch has to be told: whole rounds of the makers. 0: ahead is NULL. */
uint32_t weir_train_lookahead_horizon(const weir_train_lookahead *ahead);
/* Adds the input rows that others own, as uint32_t, in the order of the block. Vertices that the part does not have are
 * left out: they have another name in each batch.  WEIR_ENOMEM. */
weir_err weir_train_lookahead_list(const weir_train_lookahead *ahead, const weir_block_view *view, weir_buf *rows);
/* Of a vertex that is in the lists. */
uint32_t weir_train_lookahead_row(const weir_train_lookahead *ahead, uint32_t type, uint64_t vertex);
/* The list of this batch of the stream, of none behind the last. reads: of the batch `horizon` before, if there is one.
 * Waits for the lists of all batches before.  WEIR_ENOMEM.  [worker] */
weir_err weir_train_lookahead_tell(weir_train_lookahead *ahead, uint64_t batch, const weir_buf *rows, weir_buf *reads);
/* Waits until all batches before have left. Between the two the batch has the places to itself.  [worker] */
void weir_train_lookahead_enter(weir_train_lookahead *ahead, uint64_t batch);
void weir_train_lookahead_leave(weir_train_lookahead *ahead);
/* A row of this type out of its place, or into it. */
void weir_train_lookahead_get(const weir_train_lookahead *ahead, uint32_t place, uint32_t type, weir_real *numbers,
                              uint32_t *slots);
void weir_train_lookahead_put(weir_train_lookahead *ahead, uint32_t place, uint32_t type, const weir_real *numbers,
                              const uint32_t *slots);

#endif /* WEIR_TRAINER_TRAIN_LOOKAHEAD_H */
