/* SPDX-License-Identifier: Apache-2.0 */
/* bytes_test.c - fields and hex digits, there and back. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/bytes.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

static void every_byte_as_a_hex_digit(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        const char text[] = {(char)c, 0};
        char *end;
        long value = strtol(text, &end, 16);
        bool digit = end != text;
        assert_int_equal(weir_hex_digit((char)c), digit ? value : -1);
    }
}

static void random_numbers_as_hex_digits_and_bytes(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t number = weir_rng_below(&rng, UINT64_MAX) >> i % 64;
        char text[17] = "";
        uint8_t bytes[8];
        weir_hex_put_u64(text, number);
        assert_int_equal(strlen(text), 16);
        assert_true(strtoull(text, NULL, 16) == number);
        weir_put_u64(bytes, number);
        assert_true(weir_get_u64(bytes) == number);
    }
}

WEIR_TESTS(WEIR_CASE(every_byte_as_a_hex_digit), WEIR_CASE(random_numbers_as_hex_digits_and_bytes))
