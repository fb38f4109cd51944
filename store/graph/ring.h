/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - blocks of any size, one behind the other in memory of a fixed size; the oldest makes room for the newest.
 *
 *         0        to      from             turn   end
 *         ├──newer─┤░░░░░░░├──────older─────┤░░░░░░┤        once the newest have begun at the front again
 *
 *         0       from                 to          end
 *         ├░░░░░░░├──────older─newer───┤░░░░░░░░░░░┤        before
 *
 * A heap whose blocks come and go in all sizes keeps holes between them, in nobody's budget. Here a block that is
 * dropped before it is the oldest is the only hole, until it is passed; `held - live` says how much of that there is.
 * Who wants to keep a block that has become the oldest renews it: it moves to the newest end, so no pointer to it
 * lasts. What is free or dropped is poisoned under the address sanitizer.
 *
 * INVARIANTS
 *   RING-1  Blocks lie within the first `end` bytes, and none over another.
 *   RING-2  Oldest first they are in the order in which they were added or renewed.
 *   RING-3  A block is added that is no larger than what is free behind the newest, or, while the ring has not turned,
 *           before the oldest. So what was passed is free again, and all of it once nothing is held.
 *
 * THREADS: one at a time.
 */
#ifndef WEIR_STORE_RING_H
#define WEIR_STORE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RING_ALIGNMENT 16u

/* What a block, which is a void * here, begins with; the rest is the caller's. */
typedef struct weir_ring_block {
    uint32_t bytes; /* with this, rounded up to the alignment */
    bool live;      /* not dropped */
} weir_ring_block;

typedef struct weir_ring {
    uint8_t *memory; /* borrowed */
    size_t end;
    size_t from, to, turn; /* turn: only where the newest have begun at the front again */
    size_t held, live;     /* bytes of all blocks, and of those that were not dropped */
    size_t reached;        /* the farthest that a block has ended: what lies behind was never written */
} weir_ring;

static inline size_t weir_ring_round(size_t bytes) {
    return (bytes + WEIR_RING_ALIGNMENT - 1) / WEIR_RING_ALIGNMENT * WEIR_RING_ALIGNMENT;
}

/* memory, of so many bytes, is aligned; until weir_ring_close it is the ring's. */
void weir_ring_open(weir_ring *ring, void *memory, size_t bytes);
void weir_ring_close(weir_ring *ring);
/* The newest block, at most UINT32_MAX bytes with its beginning; NULL: what is free in one piece does not hold it, and
 * the oldest must make room. An empty ring holds any that is no larger than itself. */
void *weir_ring_add(weir_ring *ring, size_t bytes);
/* From the oldest to the newest, those that were dropped too; NULL: there are no more. Of one that was dropped nothing
 * may be read but its beginning. */
void *weir_ring_oldest(const weir_ring *ring);
void *weir_ring_next(const weir_ring *ring, const void *block);
/* Nobody wants it any more. Its memory is free once it is passed. */
void weir_ring_drop(weir_ring *ring, void *block);
/* The oldest, which was dropped, is gone. */
void weir_ring_pass(weir_ring *ring);
/* The oldest becomes the newest, and lies where it says now. Never fails: it needs no more room than it leaves. */
void *weir_ring_renew(weir_ring *ring);
/* Only the first `bytes` are the ring's from now on, which hold all that is live. All blocks move together, in their
 * order, and what was dropped is gone. */
void weir_ring_shrink(weir_ring *ring, size_t bytes);

#endif /* WEIR_STORE_RING_H */
