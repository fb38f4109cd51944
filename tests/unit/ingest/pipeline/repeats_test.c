/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of a partition against a list of all events that is searched for each answer. */
#include <stdbool.h>
#include <stdlib.h>

#include <weir/ingest/pipeline/repeats.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/table.h>

#include "weir_test.h"

static weir_repeat ask_and_add(weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset,
                               uint64_t *firstp) {
    weir_repeat repeat = weir_repeats_ask(repeats, event, content, offset, firstp);
    if (repeat == WEIR_REPEAT_FIRST) assert_ok(weir_repeats_add(repeats, event, content, offset));
    return repeat;
}

static void r1_the_first_of_an_id_stands(void **state) {
    (void)state;
    weir_repeats *repeats;
    uint64_t first;
    assert_ok(weir_repeats_open(10, &repeats));
    assert_int_equal(ask_and_add(repeats, 7, 1, 100, &first), WEIR_REPEAT_FIRST);
    assert_int_equal(ask_and_add(repeats, 7, 1, 101, &first), WEIR_REPEAT_SAME);
    assert_int_equal(first, 100);
    assert_int_equal(ask_and_add(repeats, 7, 2, 102, &first), WEIR_REPEAT_OTHER);
    assert_int_equal(first, 100);
    assert_int_equal(ask_and_add(repeats, 8, 2, 103, &first), WEIR_REPEAT_FIRST);
    weir_repeats_close(repeats);
}

/* At the window's last offset, and one past it; what was refused in between does not make the window longer. */
static void r1_the_window_ends(void **state) {
    (void)state;
    weir_repeats *repeats;
    uint64_t first;
    assert_ok(weir_repeats_open(10, &repeats));
    assert_int_equal(ask_and_add(repeats, 7, 1, 100, &first), WEIR_REPEAT_FIRST);
    assert_int_equal(ask_and_add(repeats, 7, 2, 110, &first), WEIR_REPEAT_OTHER);
    assert_int_equal(ask_and_add(repeats, 7, 2, 111, &first), WEIR_REPEAT_FIRST);
    assert_int_equal(ask_and_add(repeats, 7, 1, 112, &first), WEIR_REPEAT_OTHER);
    assert_int_equal(first, 111);
    weir_repeats_close(repeats);
}

static void without_a_window_nothing_repeats(void **state) {
    (void)state;
    weir_repeats *repeats;
    uint64_t first;
    assert_ok(weir_repeats_open(0, &repeats));
    assert_int_equal(ask_and_add(repeats, 7, 1, 100, &first), WEIR_REPEAT_FIRST);
    assert_int_equal(ask_and_add(repeats, 7, 2, 101, &first), WEIR_REPEAT_FIRST);
    assert_int_equal(weir_repeats_count(repeats), 0);
    weir_repeats_close(repeats);
    assert_err(weir_repeats_open(WEIR_EVENT_WINDOW_MAX + 1, &repeats), WEIR_ELIMIT, NULL);
    assert_null(repeats);
}

/* --- against a list ------------------------------------------------------------------------------------------- */

enum { LOG_MAX = 100000 };

typedef struct logged {
    uint64_t event;
    uint32_t content;
    bool there, is_first; /* a log may have gaps */
} logged;

static weir_repeat judge(const logged *log, uint64_t offset, uint32_t window, uint64_t *firstp) {
    *firstp = offset;
    for (uint64_t back = 1; back <= window && back <= offset; back++) {
        const logged *before = &log[offset - back];
        if (!before->there || !before->is_first || before->event != log[offset].event) continue;
        *firstp = offset - back;
        return before->content == log[offset].content ? WEIR_REPEAT_SAME : WEIR_REPEAT_OTHER;
    }
    return WEIR_REPEAT_FIRST;
}

/* A reader that hands over now and then, and now and then begins again behind what it handed over last. */
static void r2_spans_that_are_read_again_are_judged_as_before(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    static logged log[LOG_MAX];
    for (uint64_t round = 0; round < weir_test_rounds(20); round++) {
        uint32_t window = (uint32_t)weir_rng_below(&rng, 200), ids = 1 + (uint32_t)weir_rng_below(&rng, 300);
        uint64_t handed = 0, length = 3000;
        weir_repeats *repeats;
        assert_ok(weir_repeats_open(window, &repeats));
        for (uint64_t i = 0; i < length; i++) {
            log[i] = (logged){.event = (weir_rng_below(&rng, ids) + 1) * 0x9E3779B97F4A7C15u,
                              .content = (uint32_t)weir_rng_below(&rng, 2),
                              .there = weir_rng_below(&rng, 10) != 0};
        }
        for (uint64_t at = 0; at < length; at++) {
            uint64_t first, expected_first;
            if (log[at].there) {
                weir_repeat expected = judge(log, at, window, &expected_first);
                log[at].is_first = expected == WEIR_REPEAT_FIRST;
                assert_int_equal(ask_and_add(repeats, log[at].event, log[at].content, at, &first), expected);
                assert_int_equal(first, expected_first);
            }
            if (weir_rng_below(&rng, 50) == 0) {
                handed = at + 1;
                weir_repeats_forget(repeats, handed);
                assert_true(weir_repeats_count(repeats) <= window + 1);
            } else if (weir_rng_below(&rng, 100) == 0) {
                weir_repeats_undo(repeats, handed);
                at = handed - 1;
            }
        }
        weir_repeats_close(repeats);
    }
}

static weir_err add_many(void *context) {
    weir_repeats *repeats;
    (void)context;
    weir_err err = weir_repeats_open(1000, &repeats);
    for (uint64_t i = 0; !err && i < 300; i++)
        err = weir_repeats_add(repeats, i * 0x9E3779B97F4A7C15u, 0, i);
    weir_repeats_close(repeats);
    return err;
}

static void every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(add_many, NULL);
}

static int compare_tags(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of so many, a few have one tag: they are other ids all the same. */
static void r1_ids_that_hash_alike_are_told_apart(void **state) {
    enum { IDS = 300000 };
    (void)state;
    weir_repeats *repeats;
    uint64_t first, alike = 0;
    static uint32_t tags[IDS];
    assert_ok(weir_repeats_open(IDS, &repeats));
    for (uint64_t event = 0; event < IDS; event++) {
        tags[event] = weir_table_tag(event);
        assert_int_equal(ask_and_add(repeats, event, 0, event, &first), WEIR_REPEAT_FIRST);
    }
    qsort(tags, IDS, sizeof tags[0], compare_tags);
    for (uint32_t i = 1; i < IDS; i++)
        alike += tags[i] == tags[i - 1];
    assert_true(alike > 0);
    for (uint64_t event = 1; event < IDS; event++) {
        assert_int_equal(weir_repeats_ask(repeats, event, 0, IDS, &first), WEIR_REPEAT_SAME);
        assert_int_equal(first, event);
    }
    weir_repeats_close(repeats);
}

WEIR_TESTS(WEIR_CASE(r1_ids_that_hash_alike_are_told_apart), WEIR_CASE(r1_the_first_of_an_id_stands),
           WEIR_CASE(r1_the_window_ends), WEIR_CASE(without_a_window_nothing_repeats),
           WEIR_CASE(r2_spans_that_are_read_again_are_judged_as_before), WEIR_CASE(every_allocation))
