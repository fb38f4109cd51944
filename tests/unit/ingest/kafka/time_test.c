/* SPDX-License-Identifier: Apache-2.0 */
/* The time header, against the C library's own reader and writer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/rng.h>

#include "client.h"
#include "weir_test.h"

static void check(int64_t time_us) {
    char text[WEIR_KAFKA_TIME_MAX], expected[32];
    int64_t back = 0;
    size_t length = weir_kafka_time_write(time_us, text);
    assert_int_equal(length, snprintf(expected, sizeof expected, "%" PRId64, time_us));
    assert_memory_equal(text, expected, length);
    assert_true(weir_kafka_time_read(text, length, &back));
    assert_true(back == time_us);
}

static void written_and_read_back(void **state) {
    (void)state;
    static const int64_t edges[] = {0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        check(edges[i]);
    for (uint64_t i = 0; i < weir_test_rounds(10000); i++)
        check((int64_t)((weir_rng_u64(&rng) >> weir_rng_below(&rng, 64)) * (i % 2 ? 1 : UINT64_MAX)));
}

static void what_is_no_time_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "-",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1x",
                                        "0x1",
                                        "--1",
                                        "1-",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t time_us = 7;
        assert_false(weir_kafka_time_read(texts[i], strlen(texts[i]), &time_us));
        assert_true(time_us == 7);
    }
}

WEIR_TESTS(WEIR_CASE(written_and_read_back), WEIR_CASE(what_is_no_time_is_refused))
