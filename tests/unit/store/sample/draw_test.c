/* SPDX-License-Identifier: Apache-2.0 */
/* draw_test.c - picks drawn side by side against Floyd's method as it is written down, one after the other. */
#include "weir_test.h"

#include <stdlib.h>

#include "draw.h"

#define WINDOW 70000u
#define K_MAX  48u

static int rising(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Returns how many made way for their j. */
static uint32_t naive(weir_rng *rng, uint32_t n, uint32_t k, uint32_t *picks) {
    uint32_t equal = 0;
    for (uint32_t count = 0; count < k; count++) {
        const uint32_t j = n - k + count;
        picks[count] = (uint32_t)weir_rng_below(rng, j + 1);
        for (uint32_t i = 0; i < count; i++) {
            if (picks[i] != picks[count]) continue;
            picks[count] = j;
            equal++;
            break;
        }
    }
    qsort(picks, k, sizeof *picks, rising);
    return equal;
}

/* Windows on both sides of where the way of drawing changes, and those of which nearly all are taken. */
static uint32_t some_window(weir_rng *rng, uint32_t k) {
    static const uint32_t sizes[] = {63, 64, 65, 511, 512, 513, 514, 600, 1000, 4096, WINDOW};
    const uint32_t of = (uint32_t)weir_rng_below(rng, 2 + sizeof sizes / sizeof *sizes);
    if (of == 0) return k + 1 + (uint32_t)weir_rng_below(rng, 3);
    return of == 1 ? k + 1 + (uint32_t)weir_rng_below(rng, WINDOW - k) : sizes[of - 2];
}

static void p1_uniform_picks_are_those_of_floyd(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 31, 0);
    weir_draw draw;
    uint32_t equal[3] = {0}; /* by way of drawing: by rank, by insertion, by bits */
    assert_ok(weir_draw_open(&draw, WINDOW, K_MAX));
    for (unsigned round = 0; round < weir_test_rounds(40000); round++) {
        uint32_t picks[K_MAX], expected[K_MAX];
        const uint32_t k = round % (K_MAX + 1), n = some_window(&rng, k);
        const weir_rng stream = weir_rng_stream(weir_rng_u64(&rng), weir_rng_u64(&rng), 3);
        weir_rng one = stream;
        weir_rng_lane lane = {.rest = stream};
        equal[n < 513 || k > 32 ? 2 : k > 16] += naive(&one, n, k, expected);
        assert_int_equal(weir_draw_uniform(&draw, &lane, n, k, picks), k);
        assert_memory_equal(picks, expected, k * sizeof *picks);
        assert_int_equal(weir_rng_lane_u32(&lane), weir_rng_u32(&one)); /* as many numbers were taken */
    }
    assert_true(equal[0] > 0 && equal[1] > 0 && equal[2] > 0);
    weir_draw_close(&draw);
}

static void p1_where_all_are_picked_none_is_drawn(void **state) {
    (void)state;
    weir_draw draw;
    const weir_rng stream = weir_rng_stream(1, 2, 3);
    weir_rng_lane lane = {.rest = stream};
    weir_rng untouched = stream;
    uint32_t picks[K_MAX];
    assert_ok(weir_draw_open(&draw, K_MAX, K_MAX));
    for (uint32_t n = 0; n <= K_MAX; n++) {
        assert_int_equal(weir_draw_uniform(&draw, &lane, n, K_MAX, picks), n);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(picks[i], i);
    }
    assert_int_equal(weir_rng_lane_u32(&lane), weir_rng_u32(&untouched));
    weir_draw_close(&draw);
}

WEIR_TESTS(WEIR_CASE(p1_uniform_picks_are_those_of_floyd), WEIR_CASE(p1_where_all_are_picked_none_is_drawn))
