/* SPDX-License-Identifier: Apache-2.0 */
/* That a build with a sanitizer ends what it is there for: planted faults, one of each kind. */
#include <weir_test.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>

static void needs(const char *sanitizer) {
    if (strcmp(weir_test_sanitizer(), sanitizer) != 0) weir_test_skip("only its sanitizer sees it");
}

static void read_freed(void *context) {
    (void)context;
    volatile char *block = weir_malloc(10);
    weir_free((void *)(uintptr_t)block);
    exit(block[3] == 1);
}

static void read_past_the_end(void *context) {
    volatile char *block = weir_malloc(10);
    exit(block[*(const size_t *)context] == 1);
}

/* A call, so that the undefined behaviour sanitizer does not know the size and say it first. */
static __attribute__((noinline)) void write_to(volatile char *byte) {
    *byte = 1;
}

static void write_past_a_variable(void *context) {
    char bytes[10] = {0};
    write_to(bytes + *(const size_t *)context);
    exit(0);
}

static volatile uintptr_t left_behind; /* a number: a compiler warns of such a pointer */

static __attribute__((noinline)) void leave(void) {
    volatile char byte = 1;
    left_behind = (uintptr_t)&byte;
}

static void read_what_was_left(void *context) {
    (void)context;
    leave();
    exit(*(volatile char *)left_behind == 2);
}

/* Many of them: the last one's address may still lie on the stack, where the sanitizer finds it and is content. */
static void lose_blocks(void *context) {
    (void)context;
    for (int i = 0; i < 100; i++)
        left_behind = (uintptr_t)weir_malloc(10);
    left_behind = 0;
    exit(0);
}

static void overflow(void *context) {
    volatile int sum = INT32_MAX;
    sum = sum + (int)*(const size_t *)context;
    exit(0);
}

static void faults_of_memory_end_it(void **state) {
    (void)state;
    size_t ten = 10;
    needs("address");
    assert_dies(read_freed, NULL, "heap-use-after-free");
    assert_dies(read_past_the_end, &ten, "heap-buffer-overflow");
    assert_dies(write_past_a_variable, &ten, "stack-buffer-overflow");
    assert_dies(lose_blocks, NULL, "detected memory leaks");
    assert_dies(overflow, &ten, "signed integer overflow");
}

/* Seen only with detect_stack_use_after_return, which ops/check sets. */
static void what_a_function_left_behind_is_not_read(void **state) {
    (void)state;
    const char *options = getenv("ASAN_OPTIONS");
    needs("address");
    if (!options || !strstr(options, "detect_stack_use_after_return=1"))
        weir_test_skip("ASAN_OPTIONS do not ask for it");
    assert_dies(read_what_was_left, NULL, "stack-use-after-return");
}

static int counted;

static void *count(void *context) {
    (void)context;
    for (int i = 0; i < 1000; i++)
        counted++;
    return NULL;
}

static void count_on_two_threads(void *context) {
    pthread_t threads[2];
    (void)context;
    for (size_t i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, count, NULL) != 0) exit(0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    exit(0);
}

static void a_race_ends_it(void **state) {
    (void)state;
    needs("thread");
    assert_dies(count_on_two_threads, NULL, "data race");
}

WEIR_TESTS(WEIR_CASE(faults_of_memory_end_it), WEIR_CASE(what_a_function_left_behind_is_not_read),
           WEIR_CASE(a_race_ends_it))
