/* SPDX-License-Identifier: Apache-2.0 */
/* The recent events against a list that is searched from its end. */
#include "recent.h"

#include <stdlib.h>

#include <weir/base/rng.h>

#include "weir_test.h"

static weir_recent_id id_of(uint64_t number) {
    return (weir_recent_id){number, number * 0x9E3779B97F4A7C15u};
}

static void the_last_n_are_known(void **state) {
    (void)state;
    weir_recent *recent;
    assert_ok(weir_recent_open(3, &recent));
    for (uint64_t i = 0; i < 10; i++) {
        weir_recent_put(recent, id_of(i), (weir_recent_place){i, 1});
        assert_int_equal(weir_recent_count(recent), i < 3 ? i + 1 : 3);
        for (uint64_t j = 0; j < 10; j++)
            assert_int_equal(weir_recent_find(recent, id_of(j)) != NULL, j <= i && j + 3 > i);
    }
    weir_recent_close(recent);
}

static void the_first_place_stays(void **state) {
    (void)state;
    weir_recent *recent;
    assert_ok(weir_recent_open(3, &recent));
    weir_recent_put(recent, id_of(1), (weir_recent_place){10, 1});
    weir_recent_put(recent, id_of(1), (weir_recent_place){20, 2});
    assert_int_equal(weir_recent_find(recent, id_of(1))->offset, 10);
    assert_int_equal(weir_recent_count(recent), 1);
    weir_recent_close(recent);
}

static void none_are_remembered_without_room(void **state) {
    (void)state;
    weir_recent *recent;
    assert_ok(weir_recent_open(0, &recent));
    weir_recent_put(recent, id_of(1), (weir_recent_place){10, 1});
    assert_null(weir_recent_find(recent, id_of(1)));
    weir_recent_undo(recent);
    weir_recent_close(recent);
    assert_err(weir_recent_open((1u << 24) + 1, &recent), WEIR_ELIMIT, NULL);
    assert_null(recent);
}

/* --- against a list ------------------------------------------------------------------------------------------- */

enum { MODEL_MAX = 200000 };

typedef struct recent_model {
    uint64_t numbers[MODEL_MAX], offsets[MODEL_MAX];
    size_t begin, end; /* those in between are known */
} recent_model;

static size_t model_find(const recent_model *model, uint64_t number) {
    for (size_t i = model->begin; i < model->end; i++)
        if (model->numbers[i] == number) return i;
    return SIZE_MAX;
}

static void random_puts_and_undos(void **state) {
    (void)state;
    static recent_model known;
    uint64_t seed = weir_test_seed();
    weir_rng rng = weir_rng_stream(seed, 0, 0);
    uint32_t capacity = 1 + (uint32_t)weir_rng_below(&rng, 50);
    weir_recent *recent;
    assert_ok(weir_recent_open(capacity, &recent));
    for (uint64_t step = 0; step < weir_test_rounds(20000) && known.end < MODEL_MAX; step++) {
        uint64_t number = weir_rng_below(&rng, 100);
        if (weir_rng_below(&rng, 4) == 0 && known.end > known.begin) {
            known.end--;
            weir_recent_undo(recent);
        } else if (model_find(&known, number) == SIZE_MAX) {
            if (known.end - known.begin == capacity) known.begin++;
            known.numbers[known.end] = number;
            known.offsets[known.end++] = step;
            weir_recent_put(recent, id_of(number), (weir_recent_place){step, 0});
        } else {
            weir_recent_put(recent, id_of(number), (weir_recent_place){step, 0});
        }
        size_t place = model_find(&known, number);
        const weir_recent_place *found = weir_recent_find(recent, id_of(number));
        assert_int_equal(found != NULL, place != SIZE_MAX);
        if (found) assert_int_equal(found->offset, known.offsets[place]);
        assert_int_equal(weir_recent_count(recent), known.end - known.begin);
    }
    weir_recent_close(recent);
}

static weir_err open_and_close(void *context) {
    weir_recent *recent;
    (void)context;
    weir_err err = weir_recent_open(100, &recent);
    if (!err) weir_recent_close(recent);
    return err;
}

static void every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_close, NULL);
}

WEIR_TESTS(WEIR_CASE(the_last_n_are_known), WEIR_CASE(the_first_place_stays),
           WEIR_CASE(none_are_remembered_without_room), WEIR_CASE(random_puts_and_undos), WEIR_CASE(every_allocation))
