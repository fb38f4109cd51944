/* SPDX-License-Identifier: Apache-2.0 */
/* RocksDB's own calls wait for memory. They are made by functions of its library that do little else. */
#include "unfailing.h"

#include <setjmp.h>
#include <stdint.h>

#include <weir/store/base/thread.h>

#include "weir_test.h"

#define WAITS 3

/* Of RocksDB: memory at an address that is a multiple of 64, and what a thread keeps. */
extern void *cacheline_aligned_alloc(size_t bytes) __asm__("_ZN7rocksdb4port23cacheline_aligned_allocEm");
extern void cacheline_aligned_free(void *memory) __asm__("_ZN7rocksdb4port22cacheline_aligned_freeEPv");
extern void *get_perf_context(void) __asm__("_ZN7rocksdb16get_perf_contextEv");

static int waited;
static jmp_buf enough;

static void wait(void) {
    if (++waited == WAITS) longjmp(enough, 1);
}

static void each_call_is_led(void **state) {
    (void)state;
    assert_true(weir_unfailing_install(wait));
    void *memory = cacheline_aligned_alloc(1000);
    assert_non_null(memory);
    cacheline_aligned_free(memory);
    assert_int_equal(waited, 0);
}

static void without_memory_it_waits_again_and_again(void **state) {
    (void)state;
    assert_true(weir_unfailing_install(wait));
    if (setjmp(enough) == 0) {
        (void)cacheline_aligned_alloc(SIZE_MAX / 4);
        fail_msg("more memory than there is was found");
    }
    assert_int_equal(waited, WAITS);
}

static void keep_counters(void *ownp) {
    *(void **)ownp = get_perf_context();
}

/* What is left behind, or given back twice, the sanitizers see. */
static void a_thread_ends_with_what_it_kept(void **state) {
    (void)state;
    assert_true(weir_unfailing_install(wait));
    for (int i = 0; i < 3; i++) {
        weir_thread *thread;
        void *own = NULL;
        assert_ok(weir_thread_start("counts", WEIR_ROLE_TEST, keep_counters, &own, &thread));
        weir_thread_join(thread);
        assert_non_null(own);
    }
}

WEIR_TESTS(WEIR_CASE(each_call_is_led), WEIR_CASE(without_memory_it_waits_again_and_again),
           WEIR_CASE(a_thread_ends_with_what_it_kept))
