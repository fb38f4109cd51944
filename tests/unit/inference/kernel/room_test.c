/* SPDX-License-Identifier: Apache-2.0 */
/* room_test.c - memory of kernels that grows, on a table that reads the host's memory and on one that cannot. */
#include <weir/inference/kernel/room.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "far_kernels.h"
#include "weir_test.h"

/* The kernels' own copy is what was brought, however often the room grew in between. */
static void what_is_brought_can_be_read(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    const weir_kernels *kernels = far_kernels();
    weir_kernel_room room = {0};
    uint32_t host[300], back[300];
    size_t most = 0;
    for (unsigned round = 0; round < 1000; round++) {
        const void *place = NULL;
        const size_t count = weir_rng_below(&rng, 301), bytes = count * sizeof *host;
        for (size_t i = 0; i < count; i++)
            host[i] = (uint32_t)weir_rng_u32(&rng);
        assert_ok(weir_kernel_room_bring(&room, kernels, host, bytes, &place));
        most = bytes > most ? bytes : most;
        assert_true(room.bytes == most && place == room.memory);
        kernels->to_host(kernels, back, place, bytes);
        assert_memory_equal(back, host, bytes);
    }
    weir_kernel_room_release(&room);
    assert_true(!room.memory && room.bytes == 0);
}

static void what_kernels_can_read_stays(void **state) {
    (void)state;
    weir_kernel_room room = {0};
    const uint32_t host[3] = {1, 2, 3};
    const void *place = NULL;
    assert_ok(weir_kernel_room_bring(&room, weir_kernels_cpu(), host, sizeof host, &place));
    assert_true(place == host && !room.memory);
    weir_kernel_room_release(&room);
}

static weir_err no_alloc(const weir_kernels *k, size_t bytes, void **memoryp) {
    (void)k;
    *memoryp = (void *)1; /* whatever it leaves there */
    return WEIR_NOMEM("for %zu bytes", bytes);
}

/* A room that could not grow is empty, and grows again. */
static void a_room_outlives_a_failure(void **state) {
    (void)state;
    weir_kernels kernels = *weir_kernels_cpu();
    weir_kernel_room room = {0};
    assert_ok(weir_kernel_room_grow(&room, &kernels, 100));
    memset(room.memory, 1, 100);
    kernels.alloc = no_alloc;
    assert_ok(weir_kernel_room_grow(&room, &kernels, 100));
    assert_err(weir_kernel_room_grow(&room, &kernels, 101), WEIR_ENOMEM, "101 bytes");
    assert_true(!room.memory && room.bytes == 0);
    kernels.alloc = weir_kernels_cpu()->alloc;
    assert_ok(weir_kernel_room_grow(&room, &kernels, 1));
    memset(room.memory, 1, 1);
    weir_kernel_room_release(&room);
    weir_kernel_room_release(&room);
}

WEIR_TESTS(WEIR_CASE(what_is_brought_can_be_read), WEIR_CASE(what_kernels_can_read_stays),
           WEIR_CASE(a_room_outlives_a_failure))
