/* SPDX-License-Identifier: Apache-2.0 */
/* sorter_test.c - what was added comes out in order, as qsort has it: of any width, in memory and by way of runs. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "sorter.h"

#define MEMORY_LEAST 65536u
#define RECORDS_MAX  40000u

static uint32_t compared_words;

static int by_words(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    for (uint32_t w = 0; w < compared_words; w++) {
        if (x[w] != y[w]) return x[w] < y[w] ? -1 : 1;
    }
    return 0;
}

static weir_err visit_nothing(void *context, const char *name) {
    (void)name;
    ++*(int *)context;
    return WEIR_OK;
}

/* `added` is one after another in pieces of any length, and is sorted by the oracle in place. */
static void sorts(uint64_t *added, size_t count, uint32_t words, weir_rng *rng) {
    weir_sorter *sorter;
    const uint64_t *records;
    size_t got = 1, at = 0;
    int left = 0;
    assert_ok(weir_sorter_open(weir_test_folder(), words, count, MEMORY_LEAST, &sorter));
    for (size_t i = 0; i < count;) {
        size_t part = 1 + weir_rng_below(rng, 700);
        if (part > count - i) part = count - i;
        assert_ok(weir_sorter_add(sorter, added + i * words, part));
        i += part;
    }
    assert_ok(weir_sorter_end(sorter));
    compared_words = words;
    qsort(added, count, words * sizeof *added, by_words);
    while (got > 0) {
        assert_ok(weir_sorter_next(sorter, &records, &got));
        assert_true(got <= count - at);
        assert_memory_equal(records, added + at * words, got * words * sizeof *added);
        at += got;
    }
    assert_int_equal(at, count);
    weir_sorter_close(sorter);
    assert_ok(weir_folder_list(weir_test_folder(), visit_nothing, &left));
    assert_int_equal(left, 0); /* no run stays */
}

static void random_records_come_in_order(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    uint64_t *added = calloc(RECORDS_MAX * WEIR_SORTER_WORDS_MAX, sizeof *added);
    (void)state;
    assert_non_null(added);
    for (uint64_t round = 0; round < weir_test_rounds(24); round++) {
        uint32_t words = 1 + (uint32_t)weir_rng_below(&rng, WEIR_SORTER_WORDS_MAX);
        size_t count = weir_rng_below(&rng, round % 3 ? 2000 : RECORDS_MAX);
        uint64_t masks[WEIR_SORTER_WORDS_MAX]; /* which bits differ: few make many equal ones */
        for (uint32_t w = 0; w < words; w++)
            masks[w] = weir_rng_below(&rng, 3) ? weir_rng_u64(&rng) & weir_rng_u64(&rng) & weir_rng_u64(&rng) : 0;
        for (size_t i = 0; i < count * words; i++)
            added[i] = weir_rng_u64(&rng) & masks[i % words];
        sorts(added, count, words, &rng);
    }
    free(added);
}

/* Runs that end where memory does, one before and one behind; and none at all. */
static void lengths_about_the_memory(void **state) {
    weir_rng rng = weir_rng_stream(1, 0, 0);
    const size_t room = MEMORY_LEAST / 2 / sizeof(uint64_t),
                 counts[] = {0, 1, 2, room - 1, room, room + 1, 2 * room, 2 * room + 1, 7 * room};
    uint64_t *added = calloc(7 * room, sizeof *added);
    (void)state;
    assert_non_null(added);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t k = 0; k < counts[i]; k++)
            added[k] = weir_rng_u64(&rng);
        sorts(added, counts[i], 1, &rng);
    }
    free(added);
}

WEIR_TESTS(WEIR_CASE(random_records_come_in_order), WEIR_CASE(lengths_about_the_memory))
