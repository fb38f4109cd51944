/* SPDX-License-Identifier: Apache-2.0 */
/* lanes_test.c - streams filled side by side against the generator they stand for. */
#include "weir_test.h"

#include "lanes.h"

#define COUNT_MAX  64u
#define BLOCKS_MAX 16u

static void filled_streams_are_the_streams(void **state) {
    (void)state;
    static uint32_t fast[COUNT_MAX * BLOCKS_MAX * 4], naive[COUNT_MAX * BLOCKS_MAX * 4];
    uint64_t keys[COUNT_MAX];
    uint64_t ids[COUNT_MAX];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (unsigned round = 0; round < 2000; round++) {
        weir_rng_lanes streams = {keys, ids, weir_rng_u32(&rng), 1 + (uint32_t)weir_rng_below(&rng, COUNT_MAX)};
        uint32_t blocks = 1 + (uint32_t)weir_rng_below(&rng, BLOCKS_MAX);
        for (uint32_t i = 0; i < COUNT_MAX; i++) {
            keys[i] = weir_rng_u64(&rng);
            ids[i] = weir_rng_u64(&rng);
        }
        weir_rng_lanes_fill(&streams, blocks, fast);
        weir_rng_lanes_fill_naive(&streams, blocks, naive);
        assert_memory_equal(fast, naive, (size_t)streams.count * blocks * 16);
    }
}

/* What is filled in and what comes behind it, bounded and not, is one stream. */
static void a_stream_goes_on_behind_what_was_filled(void **state) {
    (void)state;
    uint64_t key = 42;
    uint64_t id = 4711;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint32_t blocks = 0; blocks < 4; blocks++) {
        uint32_t draws[4 * 4 * WEIR_RNG_LANES];
        uint64_t keys[WEIR_RNG_LANES] = {key};
        uint64_t ids[WEIR_RNG_LANES] = {id};
        weir_rng_lanes streams = {keys, ids, 7, 1};
        weir_rng_lanes_fill_naive(&streams, blocks, draws);
        weir_rng_lane stream = {.next = draws, .end = draws + 4 * blocks, .rest = weir_rng_stream(key, id, 7)};
        stream.rest.counter[0] = blocks;
        weir_rng whole = weir_rng_stream(key, id, 7);
        for (unsigned i = 0; i < 200; i++) {
            uint32_t bound = i % 3 ? 1 + weir_rng_u32(&rng) % 1000 : 0xC0000000u + weir_rng_u32(&rng) % 1000;
            assert_int_equal(weir_rng_lane_below(&stream, bound), weir_rng_below(&whole, bound));
        }
    }
}

WEIR_TESTS(WEIR_CASE(filled_streams_are_the_streams), WEIR_CASE(a_stream_goes_on_behind_what_was_filled))
