/* SPDX-License-Identifier: Apache-2.0 */
/* log_field_test.c - one field out of a line of JSON. */
#include "log_private.h"

#include <stdio.h>
#include <string.h>

#include "weir_test.h"

typedef struct sample {
    const char *line, *expected; /* the value, or a part of the sentence */
} sample;

static void fields_that_are_found(void **state) {
    (void)state;
    static const sample samples[] = {
        {"{\"k\":\"v\"}", "v"},
        {" { \"k\" : \"v\" } ", "v"},
        {"{\"k\":\"\"}", ""},
        {"{\"k\":12.5e-3}", "12.5e-3"},
        {"{\"k\":true}", "true"},
        {"{\"k\":-0}", "-0"},
        {"{\"a\":1,\"k\":\"second\"}", "second"},
        {"{\"a\":{\"k\":\"inner\"},\"b\":[{\"k\":1},\"}\"],\"k\":\"outer\"}", "outer"},
        {"{\"k\":\"first\",\"k\":\"second\"}", "first"},
        {"{\"k\":\"v\", what follows is not read", "v"},
        {"{\"\\u006b\":\"escaped name\"}", "escaped name"},
        {"{\"k\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t"},
        {"{\"k\":\"\\u0041\\u00e4\\u20AC\\ud83d\\ude00\"}", "A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"{\"a\":null,\"b\":false,\"c\":[],\"d\":{},\"k\":1}", "1"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        weir_buf out = {0};
        assert_ok(weir_cmd_log_field(samples[i].line, strlen(samples[i].line), "k", &out));
        assert_int_equal(out.length, strlen(samples[i].expected));
        if (out.length) assert_memory_equal(out.bytes, samples[i].expected, out.length);
        weir_buf_free(&out);
    }
}

static void lines_that_are_refused(void **state) {
    (void)state;
    static const sample samples[] = {
        {"", "byte 1 of the line: the text ends"},
        {"[1]", "byte 1 of the line: each line must be one JSON object"},
        {"{}", "there is no field 'k'"},
        {"{\"a\":1}", "there is no field 'k'"},
        {"{\"k\":null}", "is null"},
        {"{\"k\":[1]}", "is an array or object"},
        {"{\"k\":{}}", "is an array or object"},
        {"{\"a\":1 \"k\":2}", "byte 8 of the line: a comma or }"},
        {"{\"a\" 1}", "a colon was expected"},
        {"{a:1}", "a name in quotes was expected"},
        {"{\"k\":\"v", "a string without a closing quote"},
        {"{\"k\":\"\\x\"}", "byte 7 of the line: an escape"},
        {"{\"k\":\"\\", "a string without a closing quote"},
        {"{\"k\":\"\\u12G4\"}", "an escape that JSON does not have"},
        {"{\"k\":\"\\ud83d\"}", "an escape that JSON does not have"},
        {"{\"k\":\"\\ud83d\\u0041\"}", "an escape that JSON does not have"},
        {"{\"k\":\"\\ude00\"}", "an escape that JSON does not have"},
        {"{\"k\":\"a\tb\"}", "a control character"},
        {"{\"k\":", "the text ends where a value"},
        {"{\"a\":,\"k\":1}", "not a JSON value"},
        {"{\"a\":[1,{\"k\":2}", "a comma or ]"},
        {"{\"a\":1,}", "a name in quotes"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        weir_buf out = {0};
        assert_err(weir_cmd_log_field(samples[i].line, strlen(samples[i].line), "k", &out), WEIR_EDATA,
                   samples[i].expected);
        weir_buf_free(&out);
    }
}

/* No byte of a line is read past its end, wherever it is cut. */
static void a_line_cut_at_every_length(void **state) {
    (void)state;
    static const char line[] = "{\"a\":[1,\"x\\u0041\\n\",{\"b\":null}],\"k\":\"\\ud83d\\ude00 value\"}";
    size_t whole = strlen(line) - 1; /* the brace behind the value is not needed */
    for (size_t length = 0; length <= strlen(line); length++) {
        char exact[sizeof line];
        weir_buf out = {0};
        memcpy(exact + sizeof exact - 1 - length, line, length);
        weir_err err = weir_cmd_log_field(exact + sizeof exact - 1 - length, length, "k", &out);
        assert_int_equal(err == WEIR_OK, length >= whole);
        weir_buf_free(&out);
    }
}

static void depth_at_and_past_its_limit(void **state) {
    (void)state;
    for (unsigned depth = WEIR_CMD_LOG_DEPTH_MAX; depth <= WEIR_CMD_LOG_DEPTH_MAX + 1; depth++) {
        char line[400];
        weir_buf out = {0};
        int at = snprintf(line, sizeof line, "{\"a\":");
        memset(line + at, '[', depth);
        memset(line + at + depth, ']', depth);
        snprintf(line + at + 2 * depth, sizeof line - (size_t)at - 2 * depth, ",\"k\":1}");
        weir_err err = weir_cmd_log_field(line, strlen(line), "k", &out);
        if (depth <= WEIR_CMD_LOG_DEPTH_MAX) {
            assert_ok(err);
        } else {
            assert_err(err, WEIR_EDATA, "too deep");
        }
        weir_buf_free(&out);
    }
}

WEIR_TESTS(WEIR_CASE(fields_that_are_found), WEIR_CASE(lines_that_are_refused), WEIR_CASE(a_line_cut_at_every_length),
           WEIR_CASE(depth_at_and_past_its_limit))
