/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - uniform by Floyd's method, weighted by exponential keys.
 *
 * Floyd: for j = n - k, …, n - 1 take t from [0, j]; if t was taken before, take j instead. Drawing t from [0, j - 1]
 * looks as good and is wrong: the last position of a window of one more than k would never be taken. Since j is larger
 * than all taken before it, the picks can be kept in order: t goes where it belongs, j at the end.
 *
 * Weighted: each position gets E / w with E exponential, and the k smallest are the picks; that is drawing one after
 * the other, each time in proportion to the weights that are left (Efraimidis and Spirakis 2006). Keys are kept as
 * logarithms: weights that halve with age pass below what a double can hold.
 */
#include "draw.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

/* How uniform picks are put in order: few of a wide window by comparing them with each other; others by a bit for each,
 * which takes a walk over the words of the window at the end. */
#define FEW_PICKS_MAX    32u
#define WIDE_WINDOW_MIN  513u
#define RANKED_PICKS_MAX 16u /* of more, two are equal too often: of 16 out of WIDE_WINDOW_MIN one time in five */

typedef int32_t draw_four __attribute__((vector_size(16)));

weir_err weir_draw_open(weir_draw *draw, uint32_t window, uint32_t k_max) {
    draw->bits = weir_calloc(window / 64 + 1, sizeof *draw->bits);
    draw->keys = weir_calloc(k_max, sizeof *draw->keys);
    draw->log_weights = weir_calloc(window, sizeof *draw->log_weights);
    draw->weights = weir_calloc(window, sizeof *draw->weights);
    if (draw->bits && draw->keys && draw->log_weights && draw->weights) return WEIR_OK;
    weir_draw_close(draw);
    return WEIR_NOMEM("while drawing from windows of %u edges", window);
}

void weir_draw_close(weir_draw *draw) {
    weir_free(draw->bits);
    weir_free(draw->keys);
    weir_free(draw->log_weights);
    weir_free(draw->weights);
    *draw = (weir_draw){0};
}

uint32_t weir_draw_recent(uint32_t n, uint32_t k, uint32_t *picks) {
    uint32_t count = k < n ? k : n;
    for (uint32_t i = 0; i < count; i++)
        picks[i] = i;
    return count;
}

/* --- a bit a position: a set that gives itself back in order ------------------------------------------------------ */

static void draw_mark(weir_draw *draw, uint32_t position) {
    draw->bits[position / 64] |= (uint64_t)1 << position % 64;
}

static uint32_t draw_drain(weir_draw *draw, uint32_t n, uint32_t *picks) {
    uint32_t count = 0;
    for (uint32_t word = 0; word * 64 < n; word++) {
        for (uint64_t left = draw->bits[word]; left; left &= left - 1)
            picks[count++] = word * 64 + (uint32_t)__builtin_ctzll(left);
        draw->bits[word] = 0;
    }
    return count;
}

/* --- uniform ------------------------------------------------------------------------------------------------------ */

/* drawn: t of each j, in their order. */
static void draw_floyd_linear(const int32_t *drawn, uint32_t n, uint32_t k, uint32_t *picks) {
    for (uint32_t count = 0; count < k; count++) {
        const uint32_t t = (uint32_t)drawn[count];
        uint32_t at = count;
        while (at > 0 && picks[at - 1] > t)
            at--;
        if (at > 0 && picks[at - 1] == t) {
            picks[count] = n - k + count;
            continue;
        }
        for (uint32_t i = count; i > at; i--)
            picks[i] = picks[i - 1];
        picks[at] = t;
    }
}

/* A pick's rank is the number of picks below it. All pairs are compared, without branches: sorting by insertion
 * mispredicts one at nearly every pick. false: some picks are equal, and nothing is written. */
__attribute__((always_inline)) static inline bool draw_ranked(const int32_t *drawn, uint32_t k, uint32_t fours,
                                                              uint32_t *picks) {
    draw_four of[RANKED_PICKS_MAX / 4], ranks[RANKED_PICKS_MAX / 4] = {{0}};
    int32_t rank[RANKED_PICKS_MAX];
    uint32_t sum = 0;
    memcpy(of, drawn, fours * sizeof *of);
    for (uint32_t i = 0; i < k; i++) {
        const draw_four one = {drawn[i], drawn[i], drawn[i], drawn[i]};
#pragma GCC unroll 4
        for (uint32_t f = 0; f < fours; f++)
            ranks[f] -= of[f] > one; /* true is -1 */
    }
    memcpy(rank, ranks, fours * sizeof *ranks);
    for (uint32_t i = 0; i < k; i++)
        sum += (uint32_t)rank[i];
    if (sum != k * (k - 1) / 2) return false;
    for (uint32_t i = 0; i < k; i++)
        picks[rank[i]] = (uint32_t)drawn[i];
    return true;
}

/* If all draws differ, Floyd's method keeps them all, and only sorting is left. */
static void draw_floyd_few(weir_rng_lane *stream, uint32_t n, uint32_t k, uint32_t *picks) {
    int32_t drawn[FEW_PICKS_MAX];
    bool ranked = false;
    WEIR_ASSERT(k <= FEW_PICKS_MAX && n <= INT32_MAX);
    for (uint32_t i = 0; i < RANKED_PICKS_MAX; i++)
        drawn[i] = INT32_MAX; /* above all picks */
    for (uint32_t i = 0; i < k; i++)
        drawn[i] = (int32_t)weir_rng_lane_below(stream, n - k + i + 1); /* SAMPLE-P1: j itself too */
    if (k <= 8)
        ranked = draw_ranked(drawn, k, 2, picks);
    else if (k <= 12)
        ranked = draw_ranked(drawn, k, 3, picks);
    else if (k <= RANKED_PICKS_MAX)
        ranked = draw_ranked(drawn, k, 4, picks);
    if (!ranked) draw_floyd_linear(drawn, n, k, picks);
}

static void draw_floyd_bits(weir_draw *draw, weir_rng_lane *stream, uint32_t n, uint32_t k, uint32_t *picks) {
    for (uint32_t j = n - k; j < n; j++) {
        uint32_t t = weir_rng_lane_below(stream, j + 1); /* SAMPLE-P1 */
        bool taken = draw->bits[t / 64] >> t % 64 & 1;
        draw_mark(draw, taken ? j : t);
    }
    uint32_t count = draw_drain(draw, n, picks);
    WEIR_ASSERT(count == k);
}

uint32_t weir_draw_uniform(weir_draw *draw, weir_rng_lane *stream, uint32_t n, uint32_t k, uint32_t *picks) {
    if (k >= n) return weir_draw_recent(n, k, picks);
    if (k <= FEW_PICKS_MAX && n >= WIDE_WINDOW_MIN) {
        draw_floyd_few(stream, n, k, picks);
    } else {
        draw_floyd_bits(draw, stream, n, k, picks);
    }
    return k;
}

/* --- weighted ----------------------------------------------------------------------------------------------------- */

/* A heap with the largest key on top: what is drawn next must be smaller than that. */
static void draw_heap_sink(weir_draw_key *heap, uint32_t count, uint32_t at) {
    weir_draw_key moving = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].key > heap[child].key) child++;
        if (heap[child].key <= moving.key) break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

static void draw_heap_add(weir_draw_key *heap, uint32_t count, weir_draw_key added) {
    uint32_t at = count;
    for (; at > 0 && heap[(at - 1) / 2].key < added.key; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = added;
}

uint32_t weir_draw_weighted(weir_draw *draw, weir_rng *rng, uint32_t n, uint32_t k, uint32_t *picks) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        double log_weight = draw->log_weights[i];
        if (!(log_weight > -INFINITY)) continue;
        weir_draw_key drawn = {log(weir_rng_exponential(rng, 1.0)) - log_weight, i};
        if (count < k) {
            draw_heap_add(draw->keys, count++, drawn);
        } else if (drawn.key < draw->keys[0].key) {
            draw->keys[0] = drawn;
            draw_heap_sink(draw->keys, count, 0);
        }
    }
    WEIR_ASSERT(count <= k && count <= n);
    for (uint32_t i = 0; i < count; i++)
        draw_mark(draw, draw->keys[i].position);
    return draw_drain(draw, n, picks);
}
