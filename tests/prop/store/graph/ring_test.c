/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_test.c - blocks of any size that are added, dropped, passed, renewed and gathered, beside a list of what there
 * should be: each has its content and its turn, none lies over another, and none lies outside.
 */
#include "weir_test.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "ring.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define WATCHED true
static bool is_poisoned(const void *byte) {
    return __asan_address_is_poisoned(byte);
}
#else
#define WATCHED false
static bool is_poisoned(const void *byte) {
    return !byte;
}
#endif

enum { ROUNDS = 40, STEPS = 4000, BYTES_MIN = 4096, MORE = 60 << 10, BLOCKS_MAX = (BYTES_MIN + MORE) / 16 };

typedef struct model_block {
    weir_ring_block *block;
    size_t bytes;
    uint8_t fill;
    bool live;
} model_block;

typedef struct model {
    weir_rng rng;
    weir_ring ring;
    uint8_t *memory;
    size_t bytes;                                          /* of it that are the ring's */
    enum { FREE, DROPPED, READABLE } is[BYTES_MIN + MORE]; /* each byte of it */
    model_block blocks[BLOCKS_MAX]; /* oldest first, those that were dropped and not yet passed, too */
    size_t count;
    uint8_t fills;
    uint64_t refused, renewed, turned, shrunk;
} model;

static uint64_t below(model *m, uint64_t bound) {
    return weir_rng_below(&m->rng, bound);
}

/* What is free in one piece from the newest block's end on, and from the front to the oldest. */
static void gaps(const model *m, size_t *aheadp, size_t *behindp) {
    *aheadp = m->bytes;
    *behindp = 0;
    if (m->count == 0) return;
    const model_block *newest = &m->blocks[m->count - 1];
    *behindp = (size_t)((uint8_t *)m->blocks[0].block - m->memory);
    size_t end = (size_t)((uint8_t *)newest->block - m->memory) + newest->bytes;
    *aheadp = (newest->block < m->blocks[0].block ? *behindp : m->bytes) - end;
}

static void look(model *m) {
    const weir_ring_block *b = weir_ring_oldest(&m->ring);
    size_t held = 0, live = 0;
    memset(m->is, 0, sizeof m->is);
    for (size_t i = 0; i < m->count; i++, b = weir_ring_next(&m->ring, b)) {
        const model_block *known = &m->blocks[i];
        assert_ptr_equal(b, known->block); /* RING-2 */
        assert_true(b->bytes == known->bytes && b->live == known->live);
        const size_t at = (size_t)((const uint8_t *)b - m->memory), end = at + b->bytes;
        assert_true((const uint8_t *)b >= m->memory && end <= m->bytes && end <= m->ring.reached); /* RING-1 */
        for (size_t k = at; k < end; k++) {
            assert_int_equal(m->is[k], FREE);
            m->is[k] = known->live || k < at + sizeof *b ? READABLE : DROPPED;
            if (known->live && k >= at + sizeof *b) assert_int_equal(m->memory[k], known->fill);
        }
        held += known->bytes;
        live += known->live ? known->bytes : 0;
    }
    assert_null(b);
    for (size_t k = 0; WATCHED && k < m->bytes; k++)
        assert_int_equal(is_poisoned(m->memory + k), m->is[k] != READABLE);
    assert_true(m->ring.held == held && m->ring.live == live && m->ring.reached <= m->bytes);
}

/* --- steps ------------------------------------------------------------------------------------------------------ */

static void add(model *m) {
    const size_t bytes = sizeof(weir_ring_block) + below(m, below(m, 20) ? 400 : m->bytes / 2);
    const size_t rounded = (bytes + WEIR_RING_ALIGNMENT - 1) / WEIR_RING_ALIGNMENT * WEIR_RING_ALIGNMENT;
    const bool turned = m->count && m->blocks[m->count - 1].block < m->blocks[0].block;
    size_t ahead, behind;
    gaps(m, &ahead, &behind);
    weir_ring_block *block = weir_ring_add(&m->ring, bytes);
    /* RING-3: what is free behind a turn has been passed over, and comes back when the ring begins at its front. */
    assert_int_equal(block != NULL, rounded <= ahead || (!turned && rounded <= behind));
    m->refused += !block;
    if (!block) return;
    m->turned += (uint8_t *)block == m->memory && m->count > 0;
    model_block *b = &m->blocks[m->count++];
    *b = (model_block){.block = block, .bytes = rounded, .fill = ++m->fills, .live = true};
    memset(block + 1, b->fill, b->bytes - sizeof *block);
}

static void drop(model *m, size_t at) {
    model_block *b = &m->blocks[at];
    if (b->live) weir_ring_drop(&m->ring, b->block);
    b->live = false;
}

static void pass(model *m) {
    drop(m, 0);
    weir_ring_pass(&m->ring);
    memmove(&m->blocks[0], &m->blocks[1], --m->count * sizeof m->blocks[0]);
}

static void renew(model *m) {
    model_block b = m->blocks[0];
    if (!b.live) return;
    b.block = weir_ring_renew(&m->ring);
    memmove(&m->blocks[0], &m->blocks[1], (m->count - 1) * sizeof m->blocks[0]);
    m->blocks[m->count - 1] = b;
    m->renewed++;
}

/* What is behind it belongs to another from then on, who writes to it. */
static void shrink(model *m) {
    const size_t live = m->ring.live, kept_of = m->count;
    const size_t bytes = weir_ring_round(live + below(m, m->bytes - live + 1));
    if (bytes < BYTES_MIN) return;
    weir_ring_shrink(&m->ring, bytes);
    memset(m->memory + bytes, 0xee, m->bytes - bytes);
    m->bytes = bytes;
    m->count = 0;
    for (size_t i = 0; i < kept_of; i++)
        if (m->blocks[i].live) m->blocks[m->count++] = m->blocks[i];
    weir_ring_block *b = weir_ring_oldest(&m->ring);
    for (size_t i = 0; i < m->count; i++, b = weir_ring_next(&m->ring, b))
        m->blocks[i].block = b;
    assert_int_equal(m->ring.held, m->ring.live);
    m->shrunk++;
}

static void step(model *m) {
    uint64_t drawn = below(m, 1000);
    if (drawn < 500) add(m);
    if (m->count && drawn >= 500 && drawn < 700) drop(m, below(m, m->count));
    if (m->count && drawn >= 700 && drawn < 850) pass(m);
    if (m->count && drawn >= 850 && drawn < 998) renew(m);
    if (m->count && drawn >= 998) shrink(m);
}

static void blocks_keep_their_content_their_turn_and_their_place(void **state) {
    static model m;
    (void)state;
    for (uint64_t round = 0; round < weir_test_rounds(ROUNDS); round++) {
        m = (model){.rng = weir_rng_stream(weir_test_seed(), round, 0)};
        m.bytes = WEIR_RING_ALIGNMENT * (BYTES_MIN / WEIR_RING_ALIGNMENT + below(&m, MORE / WEIR_RING_ALIGNMENT));
        m.memory = weir_aligned_alloc(WEIR_RING_ALIGNMENT, m.bytes);
        assert_non_null(m.memory);
        weir_ring_open(&m.ring, m.memory, m.bytes);
        for (unsigned i = 0; i < STEPS; i++) {
            step(&m);
            if (i % 16 == 0) look(&m);
        }
        printf("%zu bytes: %llu refused, %llu renewed, turned %llu times, shrunk %llu times\n", m.bytes,
               (unsigned long long)m.refused, (unsigned long long)m.renewed, (unsigned long long)m.turned,
               (unsigned long long)m.shrunk);
        assert_true(m.refused > 0 && m.renewed > 0 && m.turned > 0);
        while (m.count)
            pass(&m);
        look(&m);
        assert_non_null(weir_ring_add(&m.ring, m.bytes)); /* all that was freed is free, in one piece */
        weir_ring_close(&m.ring);
        weir_free(m.memory);
    }
}

WEIR_TESTS(WEIR_CASE(blocks_keep_their_content_their_turn_and_their_place))
