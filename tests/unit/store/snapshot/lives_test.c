/* SPDX-License-Identifier: Apache-2.0 */
/* lives_test.c - puts become lives: at an expiry exactly apart, one short of it, in any order, at the ends of time. */
#include "weir_test.h"

#include <string.h>

#include <weir/store/base/rng.h>

#include "lives.h"

#define EXPIRE 5
#define PUTS   64u
#define MOMENT 400u

static void add(weir_lives *lives, int64_t time_us) {
    assert_ok(weir_lives_add(lives, (weir_life){time_us, time_us}));
}

static void same(const weir_lives *lives, size_t at, int64_t first_us, int64_t last_us) {
    assert_true(at < lives->count);
    assert_true(lives->of[at].first_us == first_us && lives->of[at].last_us == last_us);
}

static void an_expiry_parts_two_lives(void **state) {
    weir_lives lives = {.of = NULL};
    (void)state;
    weir_lives_begin(&lives, EXPIRE, NULL, 0);
    add(&lives, 10);
    add(&lives, 15);
    add(&lives, 15);
    add(&lives, 24);
    assert_int_equal(lives.count, 3);
    add(&lives, 19);
    assert_int_equal(lives.count, 3); /* 24 - 19 is an expiry, 19 - 15 is one less: */
    same(&lives, 0, 10, 10);
    same(&lives, 1, 15, 19);
    same(&lives, 2, 24, 24);
    add(&lives, 11);
    add(&lives, 20);
    assert_int_equal(lives.count, 1);
    same(&lives, 0, 10, 24);
    weir_lives_free(&lives);
}

static void without_an_expiry_there_is_one(void **state) {
    weir_lives lives = {.of = NULL};
    (void)state;
    weir_lives_begin(&lives, 0, NULL, 0);
    add(&lives, 0);
    add(&lives, INT64_MAX);
    add(&lives, INT64_MIN);
    assert_int_equal(lives.count, 1);
    same(&lives, 0, INT64_MIN, INT64_MAX);
    weir_lives_begin(&lives, INT64_MAX, NULL, 0);
    assert_int_equal(lives.count, 0);
    add(&lives, INT64_MAX);
    add(&lives, INT64_MIN);
    assert_int_equal(lives.count, 2); /* farther apart than a number can say */
    weir_lives_free(&lives);
}

static void a_deletion_parts_two_lives_and_takes_what_is_of_its_time(void **state) {
    static const int64_t deletions[] = {12, 20};
    weir_lives lives = {.of = NULL};
    (void)state;
    weir_lives_begin(&lives, 0, deletions, 2);
    add(&lives, 21);
    add(&lives, 12);
    add(&lives, 20);
    assert_int_equal(lives.count, 1);
    add(&lives, 13);
    add(&lives, 11);
    add(&lives, 10);
    assert_int_equal(lives.count, 3);
    same(&lives, 0, 10, 11);
    same(&lives, 1, 13, 13);
    same(&lives, 2, 21, 21);
    assert_true(weir_lives_until_us(&lives, &lives.of[0]) == 13 && weir_lives_until_us(&lives, &lives.of[1]) == 21);
    assert_true(weir_lives_until_us(&lives, &lives.of[2]) == INT64_MAX);
    assert_true(weir_lives_find(&lives, 9) == 3 && weir_lives_find(&lives, 12) == 0 &&
                weir_lives_find(&lives, 13) == 1);
    lives.expire_us = EXPIRE;
    assert_true(weir_lives_until_us(&lives, &lives.of[1]) == 13 + EXPIRE); /* forgotten before it was deleted */
    weir_lives_free(&lives);
}

/* Against a line of moments, each with a put or not, and with a deletion or not. */
static void lives_of_random_puts(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_lives lives = {.of = NULL};
    bool put[MOMENT] = {false};
    int64_t deletions[MOMENT];
    size_t life = 0, deletion_count = 0;
    (void)state;
    for (int64_t t = 0; t < MOMENT; t++) {
        if (weir_rng_below(&rng, 40) == 0) deletions[deletion_count++] = t;
    }
    weir_lives_begin(&lives, EXPIRE, deletions, deletion_count);
    for (uint32_t i = 0; i < PUTS; i++) {
        uint64_t time_us = weir_rng_below(&rng, MOMENT);
        put[time_us] = true;
        add(&lives, (int64_t)time_us);
    }
    for (int64_t t = 0, last_us = -1; t < MOMENT; t++) {
        bool deleted = weir_lives_deleted_us(&lives, t) == t;
        if (deleted && last_us >= 0) assert_true(lives.of[life++].last_us == last_us);
        if (deleted) last_us = -1;
        if (!put[t] || deleted) continue;
        if (last_us < 0 || t - last_us >= EXPIRE) {
            if (last_us >= 0) assert_true(lives.of[life++].last_us == last_us);
            assert_true(life < lives.count && lives.of[life].first_us == t);
        }
        last_us = t;
        if (t + 1 == MOMENT) life++;
    }
    assert_true(life == lives.count || life + 1 == lives.count);
    weir_lives_free(&lives);
}

WEIR_TESTS(WEIR_CASE(an_expiry_parts_two_lives), WEIR_CASE(without_an_expiry_there_is_one),
           WEIR_CASE(a_deletion_parts_two_lives_and_takes_what_is_of_its_time), WEIR_CASE(lives_of_random_puts))
