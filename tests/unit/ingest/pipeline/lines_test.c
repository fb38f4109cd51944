/* SPDX-License-Identifier: Apache-2.0 */
/* lines_test.c - lines of every length, across the edges of the window. */
#include <stdio.h>
#include <string.h>

#include <weir/ingest/pipeline/lines.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

static weir_lines *open_text(const char *text, size_t length) {
    const char *path = weir_test_path("lines");
    weir_lines *lines;
    assert_ok(weir_file_replace(path, text, length));
    assert_ok(weir_lines_open(path, &lines));
    return lines;
}

static void check_lines(const char *text, const char *const *wanted, const uint64_t *numbers, size_t count) {
    for (size_t capacity = 1; capacity <= 3; capacity++) {
        weir_lines *lines = open_text(text, strlen(text));
        weir_line out[3];
        size_t seen = 0, got;
        do {
            assert_ok(weir_lines_next(lines, out, capacity, &got));
            for (size_t i = 0; i < got; i++, seen++) {
                assert_true(seen < count);
                assert_int_equal(out[i].number, numbers[seen]);
                assert_int_equal(out[i].length, strlen(wanted[seen]));
                assert_memory_equal(out[i].bytes, wanted[seen], out[i].length);
                assert_false(out[i].cut);
            }
        } while (got);
        assert_int_equal(seen, count);
        assert_ok(weir_lines_next(lines, out, capacity, &got)); /* the end stays the end */
        assert_int_equal(got, 0);
        weir_lines_close(lines);
    }
}

static void ends_and_empty_lines(void **state) {
    (void)state;
    static const char *const abc[] = {"a", "b", "c"};
    static const uint64_t plain[] = {0, 1, 2}, gaps[] = {1, 3, 6};
    check_lines("a\nb\nc\n", abc, plain, 3);
    check_lines("a\nb\nc", abc, plain, 3);
    check_lines("a\r\nb\nc\r\n", abc, plain, 3);
    check_lines("\na\n\nb\n\r\n\nc\n\n", abc, gaps, 3);
    check_lines("", NULL, NULL, 0);
    check_lines("\n\r\n\n", NULL, NULL, 0);
}

/* A line of `before` bytes, one of `length`, and a short one; the read that fails is tried again. */
static void check_long_line(size_t before, size_t length, const char *end, bool fails) {
    weir_buf text = {0};
    weir_line line;
    size_t got, end_length = strlen(end);
    assert_true(weir_buf_reserve(&text, before + length + 16));
    memset(text.bytes, 'b', before + 1 + length);
    text.bytes[before] = '\n';
    text.length = before + 1 + length;
    weir_buf_append(&text, end, end_length);
    weir_buf_append(&text, "next", 4);
    weir_lines *lines = open_text(text.bytes, text.length);
    const size_t wanted[] = {before, length, 4};
    for (uint64_t i = before ? 0 : 1; i < 3; i++) {
        if (fails) assert_ok(weir_fault_arm("read:1:EIO:once"));
        weir_err err = weir_lines_next(lines, &line, 1, &got);
        bool failed = fails && weir_fault_seen() > 0;
        assert_ok(weir_fault_arm(NULL));
        if (failed) assert_err(err, WEIR_EIO, NULL);
        if (err) err = weir_lines_next(lines, &line, 1, &got);
        assert_ok(err);
        assert_int_equal(got, 1);
        assert_int_equal(line.number, i);
        assert_int_equal(line.length, wanted[i] < WEIR_LINE_MAX ? wanted[i] : WEIR_LINE_MAX);
        assert_int_equal(line.cut, wanted[i] - line.length);
        assert_int_equal(line.bytes[line.length - 1], i < 2 ? 'b' : 't');
    }
    assert_ok(weir_lines_next(lines, &line, 1, &got));
    assert_int_equal(got, 0);
    weir_lines_close(lines);
    weir_buf_free(&text);
}

static void a_long_line_is_cut_and_the_next_is_whole(void **state) {
    (void)state;
    static const size_t befores[] = {0, 100, WEIR_LINE_MAX - 1, WEIR_LINE_MAX};
    static const size_t lengths[] = {WEIR_LINE_MAX - 1,     WEIR_LINE_MAX,     WEIR_LINE_MAX + 1,
                                     2 * WEIR_LINE_MAX - 1, 2 * WEIR_LINE_MAX, 2 * WEIR_LINE_MAX + (64u << 10),
                                     5 * WEIR_LINE_MAX + 3};
    for (size_t b = 0; b < sizeof befores / sizeof befores[0]; b++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            for (unsigned variant = 0; variant < 4; variant++)
                check_long_line(befores[b], lengths[i], variant & 1 ? "\r\n" : "\n", variant & 2);
}

/* Its newline is the first byte that the window has not. */
static void a_line_as_long_as_allowed_is_whole_at_the_end_of_the_window(void **state) {
    (void)state;
    size_t length = 2 * WEIR_LINE_MAX + 1, got;
    char *text = weir_malloc(length);
    weir_line line;
    memset(text, 'x', length);
    text[WEIR_LINE_MAX - 1] = text[length - 1] = '\n';
    weir_lines *lines = open_text(text, length);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(weir_lines_next(lines, &line, 1, &got));
        assert_int_equal(got, 1);
        assert_int_equal(line.length, WEIR_LINE_MAX - 1 + i);
        assert_false(line.cut);
    }
    assert_ok(weir_lines_next(lines, &line, 1, &got));
    assert_int_equal(got, 0);
    weir_lines_close(lines);
    weir_free(text);
}

/* Larger than the window, against a plain walk over the bytes. */
static void random_lines_across_the_window(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_buf text = {0};
    static weir_line out[256];
    size_t at = 0, got;
    uint64_t number = 0;
    while (text.length < 20u << 20) {
        uint64_t length = weir_rng_below(&rng, 100) ? weir_rng_below(&rng, 300) : weir_rng_below(&rng, 400000);
        for (uint64_t i = 0; i < length; i++)
            weir_buf_byte(&text, (char)('a' + i % 26));
        weir_buf_byte(&text, '\n');
    }
    weir_lines *lines = open_text(text.bytes, text.length);
    do {
        assert_ok(weir_lines_next(lines, out, 1 + weir_rng_below(&rng, 256), &got));
        for (size_t i = 0; i < got; i++, number++) {
            for (; text.bytes[at] == '\n'; at++)
                number++;
            const char *newline = memchr(text.bytes + at, '\n', text.length - at);
            assert_int_equal(out[i].number, number);
            assert_int_equal(out[i].length, newline - (text.bytes + at));
            assert_memory_equal(out[i].bytes, text.bytes + at, out[i].length);
            at += out[i].length + 1;
        }
    } while (got);
    for (; at < text.length; at++)
        assert_int_equal(text.bytes[at], '\n');
    weir_lines_close(lines);
    weir_buf_free(&text);
}

static void a_first_line_that_names_the_columns(void **state) {
    (void)state;
    static const char text[] = "version: 1\nname: t\nvertices: {v: {}}\n"
                               "sources: {s: {format: csv, separator: semicolon, columns: [id, t], id: id, time: t, "
                               "mutations: [{put_vertex: v, key: id}]}}\n";
    static const struct {
        const char *line;
        uint64_t number;
        bool names;
    } cases[] = {{"id;t", 0, true}, {"id;t", 1, false}, {"id,t", 0, false},  {"id;t;", 0, false},
                 {"id", 0, false},  {"id;", 0, false},  {"id;tt", 0, false}, {"1;2", 0, false}};
    weir_schema *schema;
    assert_ok(weir_schema_parse("t", text, strlen(text), &schema));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const weir_line line = {cases[i].number, cases[i].line, strlen(cases[i].line), 0};
        assert_int_equal(weir_line_names_columns(&line, weir_schema_source_at(schema, 0)), cases[i].names);
    }
    weir_schema_free(schema);
}

static void a_file_that_is_not_there(void **state) {
    (void)state;
    weir_lines *lines;
    assert_err(weir_lines_open(weir_test_path("none"), &lines), WEIR_ENOTFOUND, "none");
    assert_null(lines);
}

WEIR_TESTS(WEIR_CASE(ends_and_empty_lines), WEIR_CASE(a_long_line_is_cut_and_the_next_is_whole),
           WEIR_CASE(a_line_as_long_as_allowed_is_whole_at_the_end_of_the_window),
           WEIR_CASE(random_lines_across_the_window), WEIR_CASE(a_first_line_that_names_the_columns),
           WEIR_CASE(a_file_that_is_not_there))
