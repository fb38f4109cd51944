/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - the blocks of a ring: added in front, passed behind, and moved. */
#include "ring.h"

#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/poison.h>

void weir_ring_open(weir_ring *ring, void *memory, size_t bytes) {
    WEIR_ASSERT((uintptr_t)memory % WEIR_RING_ALIGNMENT == 0);
    *ring = (weir_ring){.memory = memory, .end = bytes - bytes % WEIR_RING_ALIGNMENT};
    WEIR_POISON(ring->memory, ring->end);
}

void weir_ring_close(weir_ring *ring) {
    WEIR_UNPOISON(ring->memory, ring->end);
    *ring = (weir_ring){0};
}

static bool ring_has_turned(const weir_ring *ring) {
    return ring->held > 0 && ring->to <= ring->from;
}

static weir_ring_block *ring_block_at(const weir_ring *ring, size_t at) {
    return (weir_ring_block *)(void *)(ring->memory + at);
}

/* --- one block -------------------------------------------------------------------------------------------------- */

/* So many bytes at the newest end, which are free or the oldest block's; *atp: where they begin. */
static bool ring_place(const weir_ring *ring, size_t bytes, size_t *atp) {
    bool turned = ring_has_turned(ring);
    size_t ahead = (turned ? ring->from : ring->end) - ring->to;
    *atp = bytes <= ahead ? ring->to : 0;
    return bytes <= ahead || (!turned && bytes <= ring->from);
}

static void ring_advance(weir_ring *ring, size_t at, size_t bytes) {
    if (at < ring->to) ring->turn = ring->to;
    ring->to = at + bytes;
    ring->held += bytes;
    if (ring->to > ring->reached) ring->reached = ring->to;
    WEIR_ASSERT(ring->to <= ring->end); // RING-1
}

/* The oldest block's bytes are the ring's again. */
static void ring_retreat(weir_ring *ring, size_t bytes) {
    bool turned = ring_has_turned(ring);
    ring->from += bytes;
    ring->held -= bytes;
    if (turned && ring->from == ring->turn) ring->from = 0;
    if (ring->held == 0) ring->from = ring->to = 0;
}

void *weir_ring_add(weir_ring *ring, size_t bytes) {
    size_t at, rounded = weir_ring_round(bytes);
    WEIR_ASSERT(bytes >= sizeof(weir_ring_block) && rounded <= UINT32_MAX);
    if (!ring_place(ring, rounded, &at)) return NULL;
    ring_advance(ring, at, rounded);
    ring->live += rounded;
    weir_ring_block *block = ring_block_at(ring, at);
    WEIR_UNPOISON(block, rounded);
    *block = (weir_ring_block){.bytes = (uint32_t)rounded, .live = true};
    return block;
}

void weir_ring_drop(weir_ring *ring, void *block) {
    weir_ring_block *dropped = block;
    WEIR_ASSERT(dropped->live && ring->live >= dropped->bytes);
    dropped->live = false;
    ring->live -= dropped->bytes;
    WEIR_POISON(dropped + 1, dropped->bytes - sizeof *dropped);
}

void weir_ring_pass(weir_ring *ring) {
    weir_ring_block *oldest = weir_ring_oldest(ring);
    WEIR_ASSERT(oldest && !oldest->live);
    ring_retreat(ring, oldest->bytes);
    WEIR_POISON(oldest, sizeof *oldest);
}

void *weir_ring_renew(weir_ring *ring) {
    weir_ring_block *oldest = weir_ring_oldest(ring);
    WEIR_ASSERT(oldest && oldest->live);
    const size_t bytes = oldest->bytes;
    size_t at;
    ring_retreat(ring, bytes);
    bool fits = ring_place(ring, bytes, &at);
    WEIR_ASSERT(fits); /* where it has lain, if nowhere else */
    ring_advance(ring, at, bytes);
    void *moved = ring_block_at(ring, at);
    WEIR_UNPOISON(moved, bytes);
    memmove(moved, oldest, bytes);
    WEIR_POISON(oldest, bytes);
    WEIR_UNPOISON(moved, bytes); /* which may begin within what it was */
    return moved;
}

/* --- all blocks ------------------------------------------------------------------------------------------------- */

void *weir_ring_oldest(const weir_ring *ring) {
    return ring->held ? ring_block_at(ring, ring->from) : NULL;
}

void *weir_ring_next(const weir_ring *ring, const void *block) {
    const size_t at = (size_t)((const uint8_t *)block - ring->memory);
    const size_t end = at + ((const weir_ring_block *)block)->bytes;
    if (ring_has_turned(ring) && at >= ring->from) return ring_block_at(ring, end == ring->turn ? 0 : end);
    return end == ring->to ? NULL : ring_block_at(ring, end);
}

/* Those from `at` to `end` that are live stand from `to` on, which is no further; where they end. */
static size_t ring_gather(const weir_ring *ring, size_t at, size_t end, size_t to) {
    while (at < end) {
        const weir_ring_block *block = ring_block_at(ring, at);
        const size_t bytes = block->bytes;
        if (block->live) {
            memmove(ring->memory + to, block, bytes);
            to += bytes;
        }
        at += bytes;
    }
    return to;
}

void weir_ring_shrink(weir_ring *ring, size_t bytes) {
    bool turned = ring_has_turned(ring);
    WEIR_ASSERT(bytes <= ring->end && bytes % WEIR_RING_ALIGNMENT == 0 && ring->live <= bytes);
    WEIR_UNPOISON(ring->memory, ring->end);
    size_t newer = ring_gather(ring, turned ? 0 : ring->from, ring->to, 0);
    size_t all = turned ? ring_gather(ring, ring->from, ring->turn, newer) : newer;
    WEIR_ASSERT(all == ring->live);
    ring->held = all;
    ring->turn = all;
    ring->from = newer < all ? newer : 0;
    ring->to = newer > 0 ? newer : all;
    ring->end = bytes;
    if (ring->reached > bytes) ring->reached = bytes;
    WEIR_POISON(ring->memory + all, bytes - all);
}
