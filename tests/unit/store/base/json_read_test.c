/* SPDX-License-Identifier: Apache-2.0 */
/* json_read_test.c - JSON read back: what is taken, what is refused and at which byte; against a reader of its own. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/json.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/utf8.h>

#include "json_reader.h"
#include "weir_test.h"

static weir_err parse(weir_arena *arena, const char *text, size_t length, const weir_json_node **rootp) {
    weir_arena_reset(arena);
    return weir_json_parse("t.json", text, length, 8, arena, rootp);
}

static void values_of_a_tree(void **state) {
    (void)state;
    static const char text[] = " {\"a\":[1,-2,\"x\\u0041\"],\"b\":{\"c\":null, \"d\":true},\"e\":2.5e-1} ";
    const weir_json_node *root, *node;
    weir_arena *arena;
    int64_t number = 0;
    double real = 0;
    assert_ok(weir_arena_open(65536, &arena));
    assert_ok(parse(arena, text, strlen(text), &root));
    assert_int_equal(root->count, 3);
    assert_int_equal(root->span, strlen(text) - 2);
    const weir_json_node *list = weir_json_find(root, "a");
    assert_int_equal(list->count, 3);
    assert_int_equal(list->span, strlen("[1,-2,\"x\\u0041\"]"));
    assert_ok(weir_json_node_i64(list->first->next, -2, 0, &number));
    assert_int_equal(number, -2);
    assert_err(weir_json_node_i64(list->first, 2, 3, &number), WEIR_EDATA,
               "t.json, byte 8: 'the item' is not a whole number from 2 to 3");
    assert_string_equal(weir_json_node_text(list->first->next->next), "xA");
    assert_string_equal(weir_json_node_text(list->first), "");
    assert_ok(weir_json_node_f64(weir_json_find(root, "e"), &real));
    assert_true(real == 0.25);
    assert_ok(weir_json_need(weir_json_find(root, "b"), "c", WEIR_JSON_NULL, &node));
    assert_err(weir_json_need(root, "a", WEIR_JSON_OBJECT, &node), WEIR_EDATA, "t.json, byte 7: 'a' is not an object");
    assert_err(weir_json_need(root, "z", WEIR_JSON_OBJECT, &node), WEIR_EDATA, "t.json, byte 2: 'z' is missing");
    assert_err(weir_json_only(root, "it", (const char *const[]){"a", "b", NULL}), WEIR_EDATA, "unknown member 'e'");
    assert_ok(weir_json_only(root, "it", (const char *const[]){"b", "a", "e", NULL}));
    assert_null(weir_json_find(list, "a"));
    assert_null(weir_json_find(NULL, "a"));
    weir_arena_close(arena);
}

/* A value that another judges: where it ends, whatever is in it. */
static void values_are_passed_over_unread(void **state) {
    (void)state;
    static const struct {
        const char *text;
        char close;
        size_t ends; /* SIZE_MAX: it does not */
    } cases[] = {
        {"1,2", ']', 1},          {"]", ']', 0},         {" nonsense ]", ']', 10}, {"{\"a\":[1,2]},", ']', 11},
        {"\"],}\\\"\"}", '}', 7}, {"[}],", '}', 3},      {"]}", '}', 1},           {"{},", ']', 2},
        {"[1,2", ']', SIZE_MAX},  {"\"", ']', SIZE_MAX}, {"\"\\", ']', SIZE_MAX},  {"", '}', SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_json_reader r = weir_json_reader_of(cases[i].text, strlen(cases[i].text), 8);
        bool ends = weir_json_pass(&r, cases[i].close);
        if (ends != (cases[i].ends != SIZE_MAX) || r.next != (ends ? r.begin + cases[i].ends : r.end))
            fail_msg("%s ends at %zu", cases[i].text, (size_t)(r.next - r.begin));
    }
}

static void texts_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "t.json is not JSON: byte 1: the text ends"},
        {"[1,2", "byte 5: a comma or ]"},
        {"{\"a\":1} 2", "byte 9: more text after the end"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "byte 15: 'a' came before"},
        {"{\"a\":{\"b\":1,\"\\u0062\":2}}", "byte 14: 'b' came before"},
        {"[\"\\u0000\"]", "byte 3: a string with U+0000"},
        {"{\"\\u0000\":1}", "byte 3: a string with U+0000"},
        {"[[[[[[[[[]]]]]]]]]", "byte 9: objects and arrays nested too deep"},
        {"\xef\xbb\xbf{}", "byte 1: not a JSON value"},
    };
    const weir_json_node *root;
    weir_arena *arena;
    assert_ok(weir_arena_open(65536, &arena));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_err(parse(arena, cases[i].text, strlen(cases[i].text), &root), WEIR_EDATA, cases[i].says);
        assert_null(root);
    }
    assert_err(weir_json_check_object("t", "[]", 2, 8), WEIR_EDATA, "t is not a JSON object: byte 1");
    assert_err(weir_json_check_object("t", "{}x", 3, 8), WEIR_EDATA, "t is not a JSON object: byte 3");
    assert_ok(weir_json_check_object("t", " {\"a\":1,\"a\":2} ", 15, 8));
    weir_arena_close(arena);
}

/* Enough members that they are sorted; the later one is named. */
static void a_name_twice_among_many(void **state) {
    (void)state;
    const weir_json_node *root;
    weir_arena *arena;
    char text[4096];
    assert_ok(weir_arena_open(1u << 20, &arena));
    for (int twice = -1; twice < 99; twice++) {
        size_t length = 1;
        text[0] = '{';
        for (int i = 0; i < 100; i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "\"m%d\":%d,", i, i);
        if (twice >= 0) length += (size_t)snprintf(text + length, sizeof text - length, "\"m%d\":0,", twice);
        text[length - 1] = '}';
        weir_err err = parse(arena, text, length, &root);
        if (twice < 0) {
            assert_ok(err);
            assert_int_equal(root->count, 100);
        } else {
            char says[96];
            snprintf(says, sizeof says, "byte %zu: 'm%d' came before",
                     (size_t)(strrchr(text, '"') - text) - 1 - (twice > 9), twice);
            assert_err(err, WEIR_EDATA, says);
        }
    }
    weir_arena_close(arena);
}

static void an_arena_that_is_too_small(void **state) {
    (void)state;
    const weir_json_node *root;
    weir_arena *arena;
    char text[4001];
    text[0] = '[';
    for (size_t i = 1; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "1,", 2);
    text[sizeof text - 2] = ']';
    assert_ok(weir_arena_open(8192, &arena));
    assert_err(parse(arena, text, sizeof text - 1, &root), WEIR_ELIMIT, "t.json holds more values than can be read");
    assert_null(root);
    weir_arena_close(arena);
}

static weir_err parse_some(void *context) {
    static const char text[] = "{\"a\":[1,{\"b\":\"x\"}]}";
    const weir_json_node *root;
    weir_arena *arena = NULL;
    (void)context;
    weir_err err = weir_arena_open(65536, &arena);
    if (!err) err = weir_json_parse("t", text, strlen(text), 8, arena, &root);
    weir_arena_close(arena);
    return err;
}

static void no_memory_is_said(void **state) {
    (void)state;
    weir_test_every_allocation(parse_some, NULL);
}

static void whole_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"-0", true, 0},
                 {"9223372036854775807", true, INT64_MAX},
                 {"-9223372036854775808", true, INT64_MIN},
                 {"9223372036854775808", false, 0},
                 {"-9223372036854775809", false, 0},
                 {"99999999999999999999999", false, 0},
                 {"1e2", false, 0},
                 {"1.0", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_json_token token;
        int64_t value = 0;
        weir_json_reader r = weir_json_reader_of(cases[i].text, strlen(cases[i].text), 0);
        assert_true(weir_json_read(&r, &token) && weir_json_read_end(&r));
        assert_int_equal(weir_json_token_i64(&token, INT64_MIN, INT64_MAX, &value), cases[i].whole);
        if (cases[i].whole) assert_true(value == cases[i].value);
    }
}

/* Text made by chance out of what JSON is made of: both readers say the same of it. */
static void random_texts_against_another_reader(void **state) {
    (void)state;
    static const char *const pieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\"a\"",
                                         "\"\\u00e9\"",
                                         "\"\\ud83d\\ude00\"",
                                         "1",
                                         "-0.5e3",
                                         "true",
                                         "null",
                                         "\"\xc3\xa9\"",
                                         "\"",
                                         "\\",
                                         "01",
                                         "\xff",
                                         "false"};
    static char text[512];
    weir_rng rng = weir_rng_stream(41, 0, 0);
    size_t taken = 0;
    for (int round = 0; round < 200000; round++) {
        size_t length = 0, count = 1 + weir_rng_below(&rng, 9);
        for (size_t i = 0; i < count; i++) {
            const char *piece = pieces[weir_rng_below(&rng, sizeof pieces / sizeof pieces[0])];
            memcpy(text + length, piece, strlen(piece));
            length += strlen(piece);
        }
        weir_json_token value;
        weir_json_reader r = weir_json_reader_of(text, length, WEIR_JSON_DEPTH_MAX);
        bool valid = weir_json_read(&r, &value) && weir_json_skip(&r, &value) && weir_json_read_end(&r);
        if (valid != json_is_valid(text, length)) fail_msg("'%.*s'", (int)length, text);
        taken += valid;
    }
    assert_true(taken > 1000);
}

/* All sequences of up to three bytes, and of four where the first two are of interest. */
static void utf8_against_another_decoder(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 1u << 24; i++) {
        const char text[4] = {(char)(i >> 16), (char)(i >> 8), (char)i, (char)0x80};
        uint32_t code = 0, other = 0;
        size_t bytes = weir_utf8_decode(text, sizeof text, &code), wanted = utf8_decode(text, sizeof text, &other);
        if (bytes != wanted || (bytes && code != other)) fail_msg("%06x: %zu, %zu", i, bytes, wanted);
        char again[WEIR_UTF8_BYTES_MAX];
        if (bytes && ((size_t)(weir_utf8_encode(again, code) - again) != bytes || memcmp(again, text, bytes) != 0))
            fail_msg("%06x is encoded as another", i);
    }
    assert_true(weir_utf8_valid("", 0));
    assert_true(weir_utf8_valid("a\0\xc3\xa9", 4));
    assert_false(weir_utf8_valid("a\xc3", 2));
}

static void printable_texts(void **state) {
    (void)state;
    static const char *const right[] = {"", "abc ~", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x9f"};
    static const char *const wrong[] = {"\n",
                                        "\x7f",
                                        "\x1b[m",
                                        "\xc2\x85",
                                        "\x80",
                                        "\xc3",
                                        "\xc0\xaf",
                                        "\xe0\x80\xaf",
                                        "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xff",
                                        "\xe2\x80\xa8",
                                        "\xef\xbb\xbf",
                                        "\xe2\x82",
                                        "\xef\xbf\xbe",
                                        "\xf0\x9f\xbf\xbe"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_true(weir_utf8_printable(right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(weir_utf8_printable(wrong[i]));
}

WEIR_TESTS(WEIR_CASE(values_of_a_tree), WEIR_CASE(values_are_passed_over_unread), WEIR_CASE(texts_that_are_refused),
           WEIR_CASE(a_name_twice_among_many), WEIR_CASE(an_arena_that_is_too_small), WEIR_CASE(no_memory_is_said),
           WEIR_CASE(whole_numbers), WEIR_CASE(random_texts_against_another_reader),
           WEIR_CASE(utf8_against_another_decoder), WEIR_CASE(printable_texts))
