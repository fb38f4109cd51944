/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>

static void empty_buffer_is_a_plain_zero(void **state) {
    (void)state;
    weir_buf buf = {0};
    assert_ok(weir_buf_err(&buf));
    weir_buf_append(&buf, NULL, 0);
    assert_non_null(buf.bytes);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf.bytes, "");
    weir_buf_free(&buf);
    weir_buf_free(&buf);
    assert_null(buf.bytes);
    weir_buf_clear(&buf);
}

/* Against one large array that is simply written behind. */
static void growing_equals_a_large_array(void **state) {
    (void)state;
    enum { BYTES = 1 << 18 };
    static char model[BYTES + 1];
    size_t length = 0;
    weir_buf buf = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    while (length < BYTES) {
        size_t part = weir_rng_below(&rng, 1000);
        if (part > BYTES - length) part = BYTES - length;
        for (size_t i = 0; i < part; i++)
            model[length + i] = (char)weir_rng_u32(&rng);
        if (part == 1) {
            weir_buf_byte(&buf, model[length]);
        } else {
            weir_buf_append(&buf, model + length, part);
        }
        length += part;
        assert_int_equal(buf.length, length);
        assert_int_equal(buf.bytes[length], 0);
    }
    assert_memory_equal(buf.bytes, model, BYTES);
    weir_buf_free(&buf);
}

static void printf_of_any_length(void **state) {
    (void)state;
    char wanted[3000];
    for (int width = 1; width < 2000; width += width < 300 ? 1 : 97) {
        weir_buf buf = {0};
        weir_buf_text(&buf, "<");
        weir_buf_printf(&buf, "%*d>", width, 7);
        assert_int_equal(snprintf(wanted, sizeof wanted, "<%*d>", width, 7), buf.length);
        assert_string_equal(buf.bytes, wanted);
        weir_buf_free(&buf);
    }
}

static void check_u64(weir_buf *buf, uint64_t value) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%" PRIu64, value);
    weir_buf_clear(buf);
    weir_buf_u64(buf, value);
    assert_string_equal(buf->bytes, wanted);
    snprintf(wanted, sizeof wanted, "%" PRId64, (int64_t)value);
    weir_buf_clear(buf);
    weir_buf_i64(buf, (int64_t)value);
    assert_string_equal(buf->bytes, wanted);
}

static void fields_are_quoted_where_they_must_be(void **state) {
    static const char *const fields[][2] = {
        {"", ""},        {"a b", "a b"}, {"a,b", "\"a,b\""}, {"say \"x\"", "\"say \"\"x\"\"\""}, {"a\nb", "\"a\nb\""},
        {"\r", "\"\r\""}};
    (void)state;
    weir_buf buf = {0};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        weir_buf_clear(&buf);
        weir_buf_csv(&buf, fields[i][0], strlen(fields[i][0]));
        assert_string_equal(buf.length ? buf.bytes : "", fields[i][1]);
    }
    weir_buf_free(&buf);
}

static void decimals_equal_those_of_printf(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (uint64_t value = 0; value < 20000; value++)
        check_u64(&buf, value);
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10) {
        check_u64(&buf, power - 1);
        check_u64(&buf, power);
        check_u64(&buf, power + 1);
        check_u64(&buf, (uint64_t)0 - power);
    }
    check_u64(&buf, UINT64_MAX);
    check_u64(&buf, (uint64_t)INT64_MAX);
    check_u64(&buf, (uint64_t)INT64_MIN);
    for (uint64_t round = 0; round < weir_test_rounds(20000); round++)
        check_u64(&buf, weir_rng_u64(&rng) >> weir_rng_below(&rng, 64));
    weir_buf_free(&buf);
}

static void limit_and_one_past_it(void **state) {
    (void)state;
    weir_buf buf = {.length_max = 10};
    weir_buf_text(&buf, "0123456789");
    assert_ok(weir_buf_err(&buf));
    weir_buf_byte(&buf, 'x');
    assert_string_equal(buf.bytes, "0123456789");
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, "longer than the 10 bytes");
    weir_buf_clear(&buf);
    assert_ok(weir_buf_err(&buf));
    weir_buf_text(&buf, "12345678901");
    weir_buf_text(&buf, "1"); /* would fit, but something is missing before it */
    assert_int_equal(buf.length, 0);
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, NULL);
    assert_null(weir_buf_reserve(&buf, 1));
    weir_buf_clear(&buf);
    weir_buf_printf(&buf, "%d", 1234567890);
    weir_buf_printf(&buf, "%s", "");
    assert_ok(weir_buf_err(&buf));
    weir_buf_printf(&buf, "%300d", 1);
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, NULL);
    weir_buf_free(&buf);
    assert_int_equal(buf.length_max, 10);
}

/* Cleared and given another limit from time to time, as a server's buffers are from request to request. */
static void a_limit_holds_whatever_memory_is_kept(void **state) {
    (void)state;
    static const char piece[300];
    weir_buf buf = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (uint64_t round = 0; round < weir_test_rounds(2000); round++) {
        size_t length = 0;
        bool failed = false;
        weir_buf_clear(&buf);
        if (weir_rng_below(&rng, 20) == 0) weir_buf_free(&buf);
        buf.length_max = weir_rng_below(&rng, 3) ? 1 + weir_rng_below(&rng, 2000) : 0;
        for (uint64_t pieces = weir_rng_below(&rng, 20); pieces > 0; pieces--) {
            size_t more = weir_rng_below(&rng, sizeof piece);
            weir_buf_append(&buf, piece, more);
            failed = failed || (buf.length_max && length + more > buf.length_max);
            length += failed ? 0 : more;
            assert_int_equal(buf.length, length);
            assert_int_equal(buf.failed, failed ? WEIR_ELIMIT : WEIR_CODE_OK);
        }
    }
    weir_buf_free(&buf);
}

static void a_limit_below_what_is_written_refuses_all_more(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_buf_text(&buf, "0123456789");
    buf.length_max = 4;
    weir_buf_printf(&buf, "%300d", 1);
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, "longer than the 4 bytes");
    assert_string_equal(buf.bytes, "0123456789");
    weir_buf_free(&buf);
}

static void sizes_that_overflow_are_a_limit(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_buf_byte(&buf, 'x');
    assert_null(weir_buf_reserve(&buf, SIZE_MAX));
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, NULL);
    weir_buf_free(&buf);
}

static void out_of_memory_keeps_what_is_there(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_buf_text(&buf, "kept");
    weir_alloc_fail_nth(1);
    weir_buf_printf(&buf, "%1000d", 1);
    weir_buf_text(&buf, "!");
    assert_err(weir_buf_err(&buf), WEIR_ENOMEM, "out of memory");
    assert_string_equal(buf.bytes, "kept");
    weir_buf_clear(&buf);
    weir_buf_printf(&buf, "%1000d", 1);
    assert_ok(weir_buf_err(&buf));
    weir_buf_free(&buf);
}

static void reserved_room_is_committed(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_buf_text(&buf, "a");
    for (size_t i = 0; i < 300; i++) {
        char *room = weir_buf_reserve(&buf, i);
        assert_ptr_equal(room, buf.bytes + buf.length);
        memset(room, 'b', i);
        weir_buf_commit(&buf, i / 2);
    }
    assert_int_equal(buf.length, strspn(buf.bytes, "ab"));
    weir_buf_free(&buf);
}

static weir_err write_much(void *context) {
    (void)context;
    weir_buf buf = {0};
    for (unsigned i = 0; i < 1000; i++)
        weir_buf_u64(&buf, i);
    weir_buf_printf(&buf, "%5000d", 1);
    weir_err err = weir_buf_err(&buf);
    if (!err) assert_int_equal(buf.length, 10 + 180 + 2700 + 5000);
    weir_buf_free(&buf);
    return err;
}

static void fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(write_much, NULL);
}

typedef struct budget {
    uint64_t left, held_most, held;
} budget;

static bool spend(void *context, uint64_t more, uint64_t less) {
    budget *b = context;
    if (more > less && more - less > b->left) return false;
    b->left -= more - less;
    b->held += more - less;
    if (b->held > b->held_most) b->held_most = b->held;
    return true;
}

/* What is counted is what is held, while it moves too; where there is no room nothing is lost or counted. */
static void a_meter_counts_what_is_held(void **state) {
    (void)state;
    enum { ALL = 96 << 10 };
    budget b = {.left = ALL};
    weir_buf buf = {.meter = spend, .meter_context = &b};
    while (buf.length < 40000)
        weir_buf_text(&buf, "0123456789");
    assert_ok(weir_buf_err(&buf));
    assert_int_equal(b.held, buf.capacity);
    assert_int_equal(b.held_most, buf.capacity + buf.capacity / 2);
    while (!buf.failed)
        weir_buf_text(&buf, "0123456789");
    assert_err(weir_buf_err(&buf), WEIR_EBUSY, "no room");
    assert_int_equal(b.held, buf.capacity);
    assert_memory_equal(buf.bytes + 65520, "0123456789", 10);
    weir_buf_clear(&buf);
    weir_buf_text(&buf, "short");
    weir_buf_shrink(&buf);
    assert_int_equal(b.held, sizeof "short");
    assert_string_equal(buf.bytes, "short");
    weir_buf_free(&buf);
    assert_int_equal(b.left, ALL);
    weir_buf_text(&buf, "again");
    assert_int_equal(b.held, buf.capacity);
    weir_buf_clear(&buf);
    weir_buf_shrink(&buf);
    assert_int_equal(b.left, ALL);
}

/* What did not fit was all that there was. */
static void shrinking_hides_no_failure(void **state) {
    (void)state;
    weir_buf buf = {.length_max = 4};
    weir_buf_text(&buf, "fits");
    weir_buf_clear(&buf);
    weir_buf_text(&buf, "does not");
    weir_buf_shrink(&buf);
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, "longer than the 4 bytes");
    assert_null(buf.bytes);
    weir_buf_text(&buf, "late");
    assert_int_equal(buf.length, 0);
    weir_buf_clear(&buf);
    assert_ok(weir_buf_err(&buf));
    weir_buf_free(&buf);
}

static weir_err write_metered(void *context) {
    (void)context;
    budget b = {.left = 1 << 20};
    weir_buf buf = {.meter = spend, .meter_context = &b};
    for (int i = 0; i < 20; i++)
        weir_buf_printf(&buf, "%0200d", i);
    weir_err err = weir_buf_err(&buf);
    assert_int_equal(b.held, buf.capacity);
    weir_buf_free(&buf);
    assert_int_equal(b.held, 0);
    return err;
}

static void a_meter_counts_no_failed_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(write_metered, NULL);
}

WEIR_TESTS(WEIR_CASE(empty_buffer_is_a_plain_zero), WEIR_CASE(growing_equals_a_large_array),
           WEIR_CASE(printf_of_any_length), WEIR_CASE(fields_are_quoted_where_they_must_be),
           WEIR_CASE(decimals_equal_those_of_printf), WEIR_CASE(limit_and_one_past_it),
           WEIR_CASE(a_limit_holds_whatever_memory_is_kept), WEIR_CASE(a_limit_below_what_is_written_refuses_all_more),
           WEIR_CASE(sizes_that_overflow_are_a_limit), WEIR_CASE(out_of_memory_keeps_what_is_there),
           WEIR_CASE(reserved_room_is_committed), WEIR_CASE(fails_cleanly_at_every_allocation),
           WEIR_CASE(a_meter_counts_what_is_held), WEIR_CASE(shrinking_hides_no_failure),
           WEIR_CASE(a_meter_counts_no_failed_allocation))
