/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer writes is read back here by a reader of its own, strict as RFC 8259. */
#include "weir_test.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>

#include "json_reader.h"

/* --- text ------------------------------------------------------------------------------------------------------ */

/* Writes text, reads it back; returns what was read, in a buffer of the reader's. */
static const char *through_json(const char *text, size_t length, size_t *read_lengthp) {
    static char read_back[1 << 16];
    weir_buf buf = {0};
    weir_json json = weir_json_begin(&buf);
    weir_json_text(&json, text, length);
    assert_ok(weir_buf_err(&buf));
    assert_true(json_is_valid(buf.bytes, buf.length));
    *read_lengthp = json_unescape(buf.bytes, buf.length, read_back);
    weir_buf_free(&buf);
    return read_back;
}

static void check_text(const char *text, size_t length, const char *wanted, size_t wanted_length) {
    size_t read_length;
    const char *read_back = through_json(text, length, &read_length);
    assert_int_equal(read_length, wanted_length);
    assert_memory_equal(read_back, wanted, wanted_length);
}

static void every_byte_alone_and_in_every_place(void **state) {
    (void)state;
    char text[40], wanted[80];
    for (unsigned byte = 0; byte < 256; byte++) {
        for (size_t place = 0; place < 20; place++) {
            memset(text, 'a', 20);
            text[place] = (char)byte;
            size_t length = 0;
            for (size_t i = 0; i < 20; i++) {
                const char *character = i == place && byte >= 0x80 ? "\xEF\xBF\xBD" : (char[]){text[i], 0};
                size_t bytes = i == place && byte >= 0x80 ? 3 : 1;
                memcpy(wanted + length, character, bytes);
                length += bytes;
            }
            check_text(text, 20, wanted, length);
        }
    }
}

static void every_character_of_unicode_stays(void **state) {
    (void)state;
    char text[4];
    for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 37) {
        if (code >= 0xD800 && code < 0xE000) continue;
        size_t length = utf8_encode(code, text);
        check_text(text, length, text, length);
    }
}

#define REPLACED "\xEF\xBF\xBD"

/* One U+FFFD for each longest beginning of a character, as the Unicode standard's table 3-8 has it. */
static void malformed_utf8_becomes_replacement_characters(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"\x80", REPLACED},
        {"\xC0\xAF", REPLACED REPLACED},                           /* overlong '/'                   */
        {"\xE0\x80\xBF", REPLACED REPLACED REPLACED},              /* overlong                       */
        {"\xF0\x80\x80\x80", REPLACED REPLACED REPLACED REPLACED}, /* overlong                       */
        {"\xED\xA0\x80", REPLACED REPLACED REPLACED},              /* a surrogate                    */
        {"\xF4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED}, /* above U+10FFFF                 */
        {"\xF5\x80", REPLACED REPLACED},                           /* begins nothing                 */
        {"\xFE\xFF", REPLACED REPLACED},
        {"\xE2\x82", REPLACED},      /* cut off                        */
        {"\xE2\x82X", REPLACED "X"}, /* interrupted                    */
        {"\xF0\x9F\x98", REPLACED},
        {"\xF0\x9F\x98\xF0\x9F\x98\x80", REPLACED "\xF0\x9F\x98\x80"},
        {"\xC3\xA9\xC3", "\xC3\xA9" REPLACED},
        {"a\xF1\x80\x80\xE1\x80\xC2"
         "b\x80"
         "c\x80\xBF"
         "d",
         "a" REPLACED REPLACED REPLACED "b" REPLACED "c" REPLACED REPLACED "d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_text(cases[i].text, strlen(cases[i].text), cases[i].wanted, strlen(cases[i].wanted));
}

static void any_bytes_become_valid_json(void **state) {
    (void)state;
    char text[200];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = 0; round < weir_test_rounds(20000); round++) {
        size_t length = weir_rng_below(&rng, sizeof text), read_length;
        bool mild = weir_rng_below(&rng, 2); /* long plain stretches, or nothing but hostile bytes */
        for (size_t i = 0; i < length; i++)
            text[i] = (char)(mild && weir_rng_below(&rng, 20) ? 'a' + weir_rng_below(&rng, 26) : weir_rng_u32(&rng));
        const char *read_back = through_json(text, length, &read_length);
        assert_true(utf8_is_valid(read_back, read_length));
        if (utf8_is_valid(text, length)) {
            assert_int_equal(read_length, length);
            assert_memory_equal(read_back, text, length);
        }
    }
}

/* --- numbers --------------------------------------------------------------------------------------------------- */

static const char *number_text(double value) {
    static char text[64];
    weir_buf buf = {0};
    weir_json json = weir_json_begin(&buf);
    weir_json_f64(&json, value);
    assert_true(buf.length < sizeof text);
    assert_true(json_is_valid(buf.bytes, buf.length));
    memcpy(text, buf.bytes, buf.length + 1);
    weir_buf_free(&buf);
    return text;
}

/* How many digits a text spends before its exponent, not counting zeros that only place the point. */
static size_t significant_digits(const char *text) {
    char digits[64];
    size_t count = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0')) digits[count++] = *text;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

/* The fewest digits of any decimal that reads as value: for each count the nearest decimal and its two neighbours. */
static size_t fewest_digits(double value) {
    for (int digits = 1; digits <= 17; digits++) {
        char text[64];
        snprintf(text, sizeof text, "%.*e", digits - 1, fabs(value));
        int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
        uint64_t mantissa = 0;
        for (const char *p = text; *p != 'e'; p++) {
            if (*p != '.') mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        }
        for (int step = -1; step <= 1; step++) {
            snprintf(text, sizeof text, "%" PRIu64 "e%d", mantissa + (uint64_t)(int64_t)step, exponent - digits + 1);
            if (strtod(text, NULL) == fabs(value)) return (size_t)digits;
        }
    }
    return 99;
}

static void check_number(double value) {
    const char *text = number_text(value);
    double read_back = strtod(text, NULL);
    if (read_back != value || signbit(read_back) != signbit(value)) fail_msg("%.17g became %s", value, text);
    if (value != 0 && significant_digits(text) != fewest_digits(value))
        fail_msg("%.17g became %s, but %zu digits are enough", value, text, fewest_digits(value));
}

static void f64_known_texts(void **state) {
    (void)state;
    assert_string_equal(number_text(0), "0");
    assert_string_equal(number_text(-0.0), "-0");
    assert_string_equal(number_text(1), "1");
    assert_string_equal(number_text(-12.34), "-12.34");
    assert_string_equal(number_text(0.1), "0.1");
    assert_string_equal(number_text(0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(number_text(1.0 / 3), "0.3333333333333333");
    assert_string_equal(number_text(999999999999999), "999999999999999");
    assert_string_equal(number_text(1e15), "1e15");
    assert_string_equal(number_text(1e21), "1e21");
    assert_string_equal(number_text(1e-7), "1e-7");
    assert_string_equal(number_text(5e-324), "5e-324");
    assert_string_equal(number_text(DBL_MAX), "1.7976931348623157e308");
    assert_string_equal(number_text(DBL_MIN), "2.2250738585072014e-308");
    assert_string_equal(number_text(0x1p-44), "5.684341886080802e-14");
    assert_string_equal(number_text(NAN), "null");
    assert_string_equal(number_text(INFINITY), "null");
    assert_string_equal(number_text(-INFINITY), "null");
}

static void f64_shortest_at_every_power_of_two(void **state) {
    (void)state;
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        double power = ldexp(1, exponent);
        check_number(power);
        check_number(-power);
        check_number(nextafter(power, 0));
        check_number(nextafter(power, INFINITY));
    }
}

static void f64_shortest_of_any_bits(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (uint64_t round = 0; round < weir_test_rounds(20000); round++) {
        uint64_t bits = weir_rng_u64(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) check_number(value);
        check_number((double)(int64_t)weir_rng_below(&rng, 1000000000) / 100); /* an amount of money */
        check_number(weir_rng_double(&rng));
        check_number((double)(int64_t)(bits >> weir_rng_below(&rng, 64)));
        check_number((float)weir_rng_double(&rng));
    }
}

/* --- structure ------------------------------------------------------------------------------------------------- */

static void document_reads_as_written(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_json json = weir_json_begin(&buf);
    weir_json_object(&json);
    weir_json_key(&json, "a\"b");
    weir_json_array(&json);
    weir_json_u64(&json, UINT64_MAX);
    weir_json_i64(&json, INT64_MIN);
    weir_json_array(&json);
    weir_json_array_end(&json);
    weir_json_object(&json);
    weir_json_object_end(&json);
    weir_json_bool(&json, true);
    weir_json_bool(&json, false);
    weir_json_null(&json);
    weir_json_array_end(&json);
    weir_json_key(&json, "s");
    weir_json_string(&json, "t\te\nx\x1F");
    weir_json_key(&json, "n");
    weir_json_string(&json, NULL);
    weir_json_object_end(&json);
    weir_buf_byte(&buf, '\n');
    weir_json_f64(&json, 1.5);
    assert_string_equal(buf.bytes, "{\"a\\\"b\":[18446744073709551615,-9223372036854775808,[],{},true,false,null],"
                                   "\"s\":\"t\\te\\nx\\u001f\",\"n\":null}\n1.5");
    weir_buf_free(&buf);
}

/* A random tree; every value is preceded by a key where one is due. */
static void write_tree(weir_json *json, weir_rng *rng, unsigned depth) {
    uint64_t kind = weir_rng_below(rng, depth > 0 ? 8 : 6);
    uint64_t children = weir_rng_below(rng, 5);
    switch (kind) {
    case 0:
        weir_json_u64(json, weir_rng_u64(rng));
        return;
    case 1:
        weir_json_i64(json, (int64_t)weir_rng_u64(rng));
        return;
    case 2:
        weir_json_f64(json, weir_rng_normal(rng));
        return;
    case 3:
        weir_json_bool(json, children & 1);
        return;
    case 4:
        weir_json_null(json);
        return;
    case 5:
        weir_json_text(json, "\xFF\"\\\n", children);
        return;
    case 6:
        weir_json_array(json);
        while (children-- > 0)
            write_tree(json, rng, depth - 1);
        weir_json_array_end(json);
        return;
    default:
        weir_json_object(json);
        while (children-- > 0) {
            weir_json_key(json, "k\x01");
            write_tree(json, rng, depth - 1);
        }
        weir_json_object_end(json);
    }
}

static void random_trees_are_valid(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (uint64_t round = 0; round < weir_test_rounds(3000); round++) {
        weir_json json = weir_json_begin(&buf);
        weir_buf_clear(&buf);
        write_tree(&json, &rng, 7);
        assert_ok(weir_buf_err(&buf));
        if (!json_is_valid(buf.bytes, buf.length)) fail_msg("not valid: %s", buf.bytes);
    }
    weir_buf_free(&buf);
}

static void depth_63_is_the_last(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_json json = weir_json_begin(&buf);
    for (unsigned i = 0; i < 63; i++)
        weir_json_array(&json);
    weir_json_u64(&json, 1);
    weir_json_u64(&json, 2);
    for (unsigned i = 0; i < 63; i++)
        weir_json_array_end(&json);
    assert_true(json_is_valid(buf.bytes, buf.length));
    assert_int_equal(buf.length, 63 + 3 + 63);
    weir_buf_free(&buf);
}

/* The signal that ends a child that opens so many levels and closes so many. */
static int death_of_levels(unsigned opened, unsigned closed) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        weir_buf buf = {0};
        weir_json json = weir_json_begin(&buf);
        fclose(stderr);
        for (unsigned i = 0; i < opened; i++)
            weir_json_array(&json);
        for (unsigned i = 0; i < closed; i++)
            weir_json_array_end(&json);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void wrong_depth_is_our_own_mistake(void **state) {
    (void)state;
    assert_int_equal(death_of_levels(63, 63), 0);
    assert_int_equal(death_of_levels(64, 0), SIGABRT);
    assert_int_equal(death_of_levels(1, 2), SIGABRT);
}

static void the_reader_refuses_what_is_not_json(void **state) {
    (void)state;
    static const char *const wrong[] = {"",    "{",     "[1,]", "{\"a\"}",     "{\"a\":1,}", "01",      "1.", "+1",
                                        ".5",  "1e",    "nul",  "\"\x01\"",    "\"\xFF\"",   "\"\\x\"", "\"", "[1 2]",
                                        "1 2", "{1:2}", "[]]",  "\"\\ud800\"", "NaN",        "-",       "tru"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (json_is_valid(wrong[i], strlen(wrong[i]))) fail_msg("the reader took %s", wrong[i]);
}

/* --- a check ---------------------------------------------------------------------------------------------------- */

/* Two lines, the last of which covers both. */
static void lines_with_check(weir_buf *buf) {
    for (int line = 0; line < 2; line++) {
        weir_json json = weir_json_begin(buf);
        weir_json_object(&json);
        weir_json_key(&json, "loss");
        weir_json_f64(&json, 0.25 + line);
        if (line == 0) weir_json_object_end(&json);
        if (line == 1) weir_json_object_end_checked(&json, 0);
        weir_buf_byte(buf, '\n');
    }
    assert_ok(weir_buf_err(buf));
}

static void a_check_finds_every_flipped_bit_and_every_cut(void **state) {
    weir_buf buf = {0};
    (void)state;
    lines_with_check(&buf);
    const char *tail = strstr(buf.bytes, ",\"check\":\"");
    assert_non_null(tail);
    assert_int_equal(weir_json_checked(buf.bytes, buf.length), tail - buf.bytes);
    assert_int_equal(weir_json_checked(buf.bytes, buf.length - 1), tail - buf.bytes); /* without the newline */
    for (size_t cut = 0; cut < buf.length - 1; cut++)
        assert_int_equal(weir_json_checked(buf.bytes, cut), 0);
    for (size_t bit = 0; bit < (buf.length - 1) * 8; bit++) {
        buf.bytes[bit / 8] = (char)(buf.bytes[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(weir_json_checked(buf.bytes, buf.length), 0);
        buf.bytes[bit / 8] = (char)(buf.bytes[bit / 8] ^ 1 << bit % 8);
    }
    weir_buf_free(&buf);
}

static void a_check_of_a_failed_buffer_is_none(void **state) {
    weir_buf buf = {.length_max = 8};
    (void)state;
    weir_json json = weir_json_begin(&buf);
    weir_json_object(&json);
    weir_json_key(&json, "a key that is too long");
    weir_json_null(&json);
    weir_json_object_end_checked(&json, 0);
    assert_err(weir_buf_err(&buf), WEIR_ELIMIT, NULL);
    weir_buf_free(&buf);
}

WEIR_TESTS(WEIR_CASE(the_reader_refuses_what_is_not_json), WEIR_CASE(every_byte_alone_and_in_every_place),
           WEIR_CASE(every_character_of_unicode_stays), WEIR_CASE(malformed_utf8_becomes_replacement_characters),
           WEIR_CASE(any_bytes_become_valid_json), WEIR_CASE(f64_known_texts),
           WEIR_CASE(f64_shortest_at_every_power_of_two), WEIR_CASE(f64_shortest_of_any_bits),
           WEIR_CASE(document_reads_as_written), WEIR_CASE(random_trees_are_valid), WEIR_CASE(depth_63_is_the_last),
           WEIR_CASE(wrong_depth_is_our_own_mistake), WEIR_CASE(a_check_finds_every_flipped_bit_and_every_cut),
           WEIR_CASE(a_check_of_a_failed_buffer_is_none))
