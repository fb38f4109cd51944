/* SPDX-License-Identifier: Apache-2.0 */
/* json_test.c - what is JSON and what is not, at which byte; and that a field is found wherever it stands. */
#include <stdio.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>

#include "message.h"
#include "weir_test.h"

/* Fields 0 to 5: a, b.c, b.d, e\.f, b, and a name with an escape in it. */
static const char schema_text[] =
    "version: 1\n"
    "name: t\n"
    "vertices: {v: {features: {n: {kind: category}}}}\n"
    "sources:\n"
    "  s:\n"
    "    id: a\n"
    "    time: b.c\n"
    "    mutations:\n"
    "      - {put_vertex: v, key: b.d, when: [{has: 'e\\.f'}, {has: b}, {has: \"n\\\"q\"}]}\n";

typedef struct reader {
    weir_schema *schema;
    weir_paths *paths;
    weir_arena *arena;
    const weir_schema_source *source;
    weir_cell cells[16];
} reader;

static reader reader_open(void) {
    reader r = {0};
    assert_ok(weir_schema_parse("t.yaml", schema_text, strlen(schema_text), &r.schema));
    r.source = weir_schema_source_at(r.schema, 0);
    assert_int_equal(r.source->field_count, 6);
    assert_ok(weir_paths_open(r.source, &r.paths));
    assert_ok(weir_arena_open(8u << 20, &r.arena));
    return r;
}

static void reader_close(reader *r) {
    weir_arena_close(r->arena);
    weir_paths_close(r->paths);
    weir_schema_free(r->schema);
}

static weir_err read_bytes(reader *r, const char *bytes, size_t length) {
    weir_arena_reset(r->arena);
    return weir_message_json(r->paths, bytes, length, r->arena, r->cells, r->source->field_count);
}

/* From a copy without an end, so that a byte behind it is seen by the sanitizer. */
static weir_err read_text(reader *r, const char *text) {
    static char *copy;
    weir_free(copy);
    size_t length = strlen(text);
    copy = weir_malloc(length ? length : 1);
    memcpy(copy, text, length);
    return read_bytes(r, copy, length);
}

static const weir_cell *cell_of(const reader *r, const char *path) {
    for (uint32_t i = 0; i < r->source->field_count; i++) {
        if (strcmp(r->source->fields[i].path, path) == 0) return &r->cells[i];
    }
    fail_msg("no field %s", path);
    return NULL;
}

static void check_cell(const reader *r, const char *path, weir_cell_kind kind, const char *text, size_t at) {
    const weir_cell *cell = cell_of(r, path);
    assert_int_equal(cell->kind, kind);
    assert_int_equal(cell->at, at);
    if (!text) return;
    assert_int_equal(cell->length, strlen(text));
    assert_memory_equal(cell->text, text, cell->length);
}

static void fields_are_found_where_they_stand(void **state) {
    (void)state;
    reader r = reader_open();
    assert_ok(read_text(
        &r, " {\"x\" : [1, {\"a\": 2}], \"b\":{\"d\":\"y\",\"x\":{\"c\":1},\"c\":-1.5e3} , \"e.f\":true,\"a\":\"z\","
            "\"n\\\"q\":null}\n"));
    check_cell(&r, "a", WEIR_CELL_TEXT, "z", 79);
    check_cell(&r, "b.c", WEIR_CELL_NUMBER, "-1.5e3", 53);
    check_cell(&r, "b.d", WEIR_CELL_TEXT, "y", 34);
    check_cell(&r, "b", WEIR_CELL_NESTED, NULL, 28);
    check_cell(&r, "e\\.f", WEIR_CELL_TRUTH, "true", 69);
    check_cell(&r, "n\"q", WEIR_CELL_ABSENT, NULL, 89);
    /* What is not in the next message does not stay from the last one; the order of names does not matter. */
    assert_ok(read_text(&r, "{\"a\":\"q\"}"));
    check_cell(&r, "a", WEIR_CELL_TEXT, "q", 7);
    check_cell(&r, "b.c", WEIR_CELL_ABSENT, NULL, 0);
    check_cell(&r, "b", WEIR_CELL_ABSENT, NULL, 0);
    assert_ok(read_text(&r, "{\"b\":5,\"a\":false}"));
    check_cell(&r, "b", WEIR_CELL_NUMBER, "5", 6);
    check_cell(&r, "a", WEIR_CELL_TRUTH, "false", 12);
    assert_ok(read_text(&r, "{}"));
    reader_close(&r);
}

static void escapes_are_undone(void **state) {
    (void)state;
    static const struct {
        const char *written, *text;
    } cases[] = {{"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
                 {"\\u0041\\u00e9\\u20AC\\ud83d\\uDE42", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"},
                 {"\\uFFFF\\ud800\\udc00\\udbff\\udfff", "\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
                 {"\xc3\xa9 plain text that is longer than eight bytes \\n",
                  "\xc3\xa9 plain text that is longer than eight bytes \n"}};
    reader r = reader_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[256];
        snprintf(message, sizeof message, "{\"a\":\"%s\"}", cases[i].written);
        assert_ok(read_text(&r, message));
        check_cell(&r, "a", WEIR_CELL_TEXT, cases[i].text, 7);
        snprintf(message, sizeof message, "{\"%s\":1,\"\\u0061\":2}", cases[i].written);
        assert_ok(read_text(&r, message));
        assert_int_equal(cell_of(&r, "a")->kind, WEIR_CELL_NUMBER);
    }
    assert_ok(read_text(&r, "{\"a\":\"x\\u0000y\"}"));
    assert_int_equal(cell_of(&r, "a")->length, 3);
    assert_memory_equal(cell_of(&r, "a")->text, "x\0y", 3);
    reader_close(&r);
}

static void what_is_no_json_is_refused_at_its_byte(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "byte 1: the text ends where a value"},
        {"  ", "byte 3: the text ends where a value"},
        {"[]", "byte 1: the message is not a JSON object"},
        {"7", "byte 1: the message is not a JSON object"},
        {"\"{}\"", "byte 1: the message is not a JSON object"},
        {"null", "byte 1: the message is not a JSON object"},
        {"{", "byte 2: a name in quotes was expected"},
        {"{a:1}", "byte 2: a name in quotes was expected"},
        {"{'a':1}", "byte 2: a name in quotes was expected"},
        {"{\"a\" 1}", "byte 6: a colon"},
        {"{\"a\":}", "byte 6: not a JSON value"},
        {"{\"a\":1,}", "byte 8: a name in quotes was expected"},
        {"{\"a\":1 \"b\":2}", "byte 8: a comma or }"},
        {"{\"a\":1", "byte 7: a comma or }"},
        {"{\"x\":[1 2]}", "byte 9: a comma or ]"},
        {"{\"x\":[1,]}", "byte 9: not a JSON value"},
        {"{\"x\":[", "byte 7: the text ends where a value"},
        {"{}{}", "byte 3: something behind the end"},
        {"{} x", "byte 4: something behind the end"},
        {"{\"a\":tru}", "byte 6: not a JSON value"},
        {"{\"a\":nul", "byte 6: not a JSON value"},
        {"{\"a\":NaN}", "byte 6: not a JSON value"},
        {"{\"a\":01}", "byte 8: a number that begins with 0"},
        {"{\"a\":-01}", "byte 9: a number that begins with 0"},
        {"{\"a\":-}", "byte 7: a number without digits"},
        {"{\"a\":1.}", "byte 8: a number without digits"},
        {"{\"a\":1e}", "byte 8: a number without digits"},
        {"{\"a\":1e+}", "byte 9: a number without digits"},
        {"{\"a\":+1}", "byte 6: not a JSON value"},
        {"{\"a\":.5}", "byte 6: not a JSON value"},
        {"{\"a\":\"x", "byte 8: a string without a closing quote"},
        {"{\"a\":\"x\\", "byte 8: a string without a closing quote"},
        {"{\"a\":\"\\x41\"}", "byte 7: an escape that JSON does not have"},
        {"{\"a\":\"\\u12g4\"}", "byte 7: an escape that JSON does not have"},
        {"{\"a\":\"\\u12\"}", "byte 7: an escape that JSON does not have"},
        {"{\"a\":\"\\ud800\"}", "byte 7: an escape that JSON does not have"},
        {"{\"a\":\"\\ud800\\u0041\"}", "byte 7: an escape that JSON does not have"},
        {"{\"a\":\"\\udc00\"}", "byte 7: an escape that JSON does not have"},
        {"{\"a\":\"tab\there\"}", "byte 10: a control character"},
        {"{\"ignored and long\":\"eight by\n\"}", "byte 30: a control character"},
        {"{\"a\":\"\xff\"}", "byte 7: bytes that are not UTF-8"},
        {"{\"a\":\"\xc0\x80\"}", "byte 7: bytes that are not UTF-8"},
        {"{\"a\":\"\xed\xa0\x80\"}", "byte 7: bytes that are not UTF-8"},
        {"{\"a\":\"\xf4\x90\x80\x80\"}", "byte 7: bytes that are not UTF-8"},
        {"{\"a\":\"\xe2\x82\"}", "byte 7: bytes that are not UTF-8"},
        {"{\"a\":\"12345678\x80\"}", "byte 15: bytes that are not UTF-8"},
        {"\xef\xbb\xbf{}", "byte 1: the message is not a JSON object"},
        {"{\"a\":1,\"a\":2}", "byte 9: a name that came before"},
        {"{\"a\":null,\"\\u0061\":2}", "byte 12: a name that came before"},
        {"{\"b\":{\"c\":1},\"b\":{\"d\":1}}", "byte 15: a name that came before"},
        {"{\"b\":{\"c\":1,\"c\":1}}", "byte 14: a name that came before"},
        {"{\"a\":1}\x01", "byte 8: something behind the end"},
    };
    reader r = reader_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_err err = read_text(&r, cases[i].text);
        if (!err) fail_msg("taken: %s", cases[i].text);
        assert_err(err, WEIR_EDATA, cases[i].says);
    }
    assert_ok(read_text(&r, "{\"x\":1,\"x\":2}")); /* nobody asks for x: it is not our business which of them counts */
    reader_close(&r);
}

static void every_beginning_of_a_message_is_refused(void **state) {
    (void)state;
    static const char message[] =
        "{\"a\":\"\\ud83d\\ude42\xf0\x9f\x99\x82\",\"b\":{\"c\":-12.5e-3,\"d\":[true,false,null,{}]},\"e.f\":\"\\n\"}";
    char part[sizeof message];
    reader r = reader_open();
    for (size_t length = 0; length < strlen(message); length++) {
        memcpy(part, message, length);
        part[length] = '\0';
        assert_err(read_text(&r, part), WEIR_EDATA, "byte ");
    }
    assert_ok(read_text(&r, message));
    reader_close(&r);
}

static void depth_and_length_at_the_limit_and_one_past_it(void **state) {
    (void)state;
    char text[128];
    reader r = reader_open();
    for (unsigned depth = WEIR_MESSAGE_DEPTH_MAX; depth <= WEIR_MESSAGE_DEPTH_MAX + 1; depth++) {
        weir_buf out = {0};
        weir_buf_text(&out, "{\"x\":");
        for (unsigned i = 1; i < depth; i++)
            weir_buf_byte(&out, '[');
        for (unsigned i = 1; i < depth; i++)
            weir_buf_byte(&out, ']');
        weir_buf_text(&out, "}");
        weir_err err = read_text(&r, out.bytes);
        snprintf(text, sizeof text, "byte %u: objects and arrays too deep", depth + 5);
        if (depth == WEIR_MESSAGE_DEPTH_MAX) assert_ok(err);
        if (depth > WEIR_MESSAGE_DEPTH_MAX) assert_err(err, WEIR_EDATA, "too deep");
        weir_buf_free(&out);
    }
    char *big = weir_malloc(WEIR_MESSAGE_BYTES_MAX + 1);
    memset(big, ' ', WEIR_MESSAGE_BYTES_MAX + 1);
    memcpy(big, "{}", 2);
    assert_ok(read_bytes(&r, big, WEIR_MESSAGE_BYTES_MAX));
    assert_err(read_bytes(&r, big, WEIR_MESSAGE_BYTES_MAX + 1), WEIR_EDATA, "1048577 bytes");
    weir_free(big);
    reader_close(&r);
}

/* A text of any length, with each special byte at each place: the way of eight bytes at a time must see all of them. */
static void every_place_of_every_special_byte(void **state) {
    (void)state;
    static const char special[] = {'"', '\\', 0x1f, 0, (char)0x80, (char)0xff, '\n'};
    reader r = reader_open();
    for (size_t length = 1; length < 40; length++) {
        for (size_t at = 0; at < length; at++) {
            for (size_t s = 0; s < sizeof special; s++) {
                char text[64] = "{\"a\":\"";
                memset(text + 6, 'x', length);
                text[6 + at] = special[s];
                memcpy(text + 6 + length, "\"}", 2);
                assert_err(read_bytes(&r, text, length + 8), WEIR_EDATA, NULL);
                text[6 + at] = 0x7f;
                assert_ok(read_bytes(&r, text, length + 8));
                assert_int_equal(cell_of(&r, "a")->length, length);
            }
        }
    }
    reader_close(&r);
}

WEIR_TESTS(WEIR_CASE(fields_are_found_where_they_stand), WEIR_CASE(escapes_are_undone),
           WEIR_CASE(what_is_no_json_is_refused_at_its_byte), WEIR_CASE(every_beginning_of_a_message_is_refused),
           WEIR_CASE(depth_and_length_at_the_limit_and_one_past_it), WEIR_CASE(every_place_of_every_special_byte))
