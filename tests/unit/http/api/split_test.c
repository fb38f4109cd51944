/* SPDX-License-Identifier: Apache-2.0 */
/* How a body is cut into messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "private.h"
#include "weir_test.h"

/* The messages, each between angle brackets; or "!" and the sentence. */
static const char *split(weir_api_format format, const char *body) {
    static char text[4096];
    weir_arena *arena;
    const weir_api_message *messages;
    size_t count;
    text[0] = 0;
    assert_ok(weir_arena_open(64 << 20, &arena));
    weir_err err = weir_api_split(format, body, strlen(body), arena, &messages, &count);
    if (err) {
        text[0] = '!';
        weir_err_sentence(err, text + 1, sizeof text - 1);
        assert_null(messages);
    }
    for (size_t i = 0; !err && i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "<%.*s>", (int)messages[i].length, messages[i].bytes);
    }
    weir_arena_close(arena);
    return text;
}

static void json_values_and_arrays(void **state) {
    (void)state;
    assert_string_equal(split(WEIR_API_JSON, " {\"a\":1}\n"), "<{\"a\":1}>");
    assert_string_equal(split(WEIR_API_JSON, "[{\"a\":[1,2]} , {\"b\":\"],\\\"\"}]"),
                        "<{\"a\":[1,2]}><{\"b\":\"],\\\"\"}>");
    assert_string_equal(split(WEIR_API_JSON, "\t[ 1,\"x\" , null ] "), "<1><\"x\"><null>");
    assert_string_equal(split(WEIR_API_JSON, "nonsense"), "<nonsense>"); /* the mapper's to refuse */
}

static void json_that_cannot_be_cut(void **state) {
    (void)state;
    assert_string_equal(split(WEIR_API_JSON, ""), "!the body is empty; send an event or an array of events");
    assert_string_equal(split(WEIR_API_JSON, " \n"), "!the body is empty; send an event or an array of events");
    assert_string_equal(split(WEIR_API_JSON, "[]"), "!the array of events is empty; send at least one event");
    assert_string_equal(split(WEIR_API_JSON, "[1,]"),
                        "!an event is missing before byte 3 of the body; remove the comma");
    assert_string_equal(split(WEIR_API_JSON, "[,1]"),
                        "!an event is missing before byte 1 of the body; remove the comma");
    assert_string_equal(split(WEIR_API_JSON, "[1] x"),
                        "!more data follows the array at byte 4 of the body; send a single array");
    assert_string_equal(split(WEIR_API_JSON, "[{\"a\":1"),
                        "!the array of events has no end: event 0 is cut off at byte 7");
    assert_string_equal(split(WEIR_API_JSON, "[\"\\"), "!the array of events has no end: event 0 is cut off at byte 3");
    assert_string_equal(split(WEIR_API_JSON, "["), "!the array of events has no end: event 0 is cut off at byte 1");
}

static void lines(void **state) {
    (void)state;
    assert_string_equal(split(WEIR_API_LINES, "a\nb"), "<a><b>");
    assert_string_equal(split(WEIR_API_LINES, "\n a \r\n\n\nb\n"), "<a><b>");
    assert_string_equal(split(WEIR_API_LINES, ""), "!the body has no events; send one event per line");
    assert_string_equal(split(WEIR_API_LINES, "\n \n"), "!the body has no events; send one event per line");
}

static void as_many_as_are_allowed_and_one_more(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        size_t count = WEIR_API_EVENTS_MAX + over, messages_count;
        char *body = malloc(2 * count + 2);
        weir_arena *arena;
        const weir_api_message *messages;
        assert_non_null(body);
        assert_ok(weir_arena_open(64 << 20, &arena));
        body[0] = '[';
        for (size_t i = 0; i < count; i++)
            memcpy(body + 1 + 2 * i, i + 1 < count ? "7," : "7]", 2);
        weir_err err = weir_api_split(WEIR_API_JSON, body, 2 * count + 1, arena, &messages, &messages_count);
        if (over)
            assert_err(err, WEIR_ELIMIT, "more than 10000 events");
        else
            assert_ok(err);
        assert_int_equal(messages_count, over ? 0 : count);
        weir_arena_close(arena);
        free(body);
    }
}

WEIR_TESTS(WEIR_CASE(json_values_and_arrays), WEIR_CASE(json_that_cannot_be_cut), WEIR_CASE(lines),
           WEIR_CASE(as_many_as_are_allowed_and_one_more))
