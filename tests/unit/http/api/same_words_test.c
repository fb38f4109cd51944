/* SPDX-License-Identifier: Apache-2.0 */
/* What /v1/score takes as an event is what /v1/events takes: the same messages, refused in the same words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/store/base/rng.h>

#include "score_ask.h"
#include "weir_test.h"

#define MESSAGE_MAX (WEIR_MESSAGE_BYTES_MAX + 4096)
#define BODY_MAX    (8 * MESSAGE_MAX)

static const char schema_text[] =
    "version: 1\nname: both\nvertices:\n"
    "  p: {features: {n: {kind: number}, c: {kind: category, buckets: 16}}}\n  a: {}\n"
    "relations:\n  by: {from: p, to: a, features: {w: {kind: number}}}\n"
    "sources:\n"
    "  j: {id: id, time: t, mutations: [{put_vertex: p, key: id, features: [n, c]},\n"
    "    {put_edge: by, from: id, to: a, features: [w]}]}\n"
    "  l: {format: csv, columns: [id, t, a, n, c, w], id: id, time: t, mutations: [{put_vertex: p, key: id,\n"
    "    features: [n, c]}, {put_edge: by, from: id, to: a, features: [w]}]}\n";

static const char json_message[] =
    "{\"id\":\"p1\",\"t\":\"2026-01-05T10:00:00Z\",\"a\":\"a\\u00e91\",\"n\":-1.5e3,\"c\":\"x\",\"w\":7,"
    "\"more\":{\"deep\":[1,2,{\"x\":null}],\"true\":true}}";
static const char line_message[] = "p1,2026-01-05T10:00:00Z,\"a,\"\"1\",-1.5e3,x,7";

typedef struct both {
    weir_schema *schema;
    weir_arena *arena;
    weir_mapper *mappers[2];
    weir_rng rng;
    uint64_t taken, refused;
    char *body;
} both;

static void both_open(both *b) {
    *b = (both){.rng = weir_rng_stream(weir_test_seed(), 9, 0), .body = malloc(BODY_MAX)};
    assert_non_null(b->body);
    assert_ok(weir_schema_parse("both", schema_text, strlen(schema_text), &b->schema));
    assert_ok(weir_arena_open(256u << 20, &b->arena));
    for (size_t i = 0; i < 2; i++)
        assert_ok(weir_mapper_open(b->schema, i, &weir_id_key_public, &b->mappers[i]));
}

static void both_close(both *b) {
    for (size_t i = 0; i < 2; i++)
        weir_mapper_close(b->mappers[i]);
    weir_arena_close(b->arena);
    weir_schema_free(b->schema);
    free(b->body);
}

/* As events_take does.  The array form holds a message that begins with a bracket. */
static weir_err by_events(both *b, uint32_t source, const char *message, size_t length, bool array) {
    const weir_api_message *messages;
    weir_mapped mapped;
    size_t count, at = 0;
    if (array) b->body[at++] = '[';
    memcpy(b->body + at, message, length);
    at += length;
    if (array) b->body[at++] = ']';
    weir_err err = weir_api_split(source ? WEIR_API_LINES : WEIR_API_JSON, b->body, at, b->arena, &messages, &count);
    if (!err && count != 1) err = WEIR_ERR(WEIR_EUSAGE, "%zu messages", count);
    return err ? err : weir_api_event_map(b->mappers[source], &messages[0], 0, INT64_MAX, &mapped);
}

static size_t put_text(char *to, const char *text, size_t length) {
    size_t at = 0;
    to[at++] = '"';
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == '"' || c == '\\')
            at += (size_t)sprintf(to + at, "\\u%04x", c);
        else
            to[at++] = (char)c;
    }
    to[at++] = '"';
    return at;
}

/* As score_job_prepare does. */
static weir_err by_score(both *b, uint32_t source, const char *message, size_t length) {
    static weir_api_score_ask ask;
    weir_mapped mapped;
    memset(&ask, 0, sizeof ask);
    bool last = weir_rng_below(&b->rng, 2);
    size_t at = (size_t)sprintf(b->body, "{%s \"event\" : ", last ? "\"source\":\"" : "");
    if (last) at = (size_t)sprintf(b->body, "{\"reasons\":2,\"source\":\"%s\",\"event\" : ", source ? "l" : "j");
    if (source) {
        at += put_text(b->body + at, message, length);
    } else {
        memcpy(b->body + at, message, length);
        at += length;
    }
    at += (size_t)sprintf(b->body + at, last ? " }" : "\n, \"source\":\"%s\"}", source ? "l" : "j");
    weir_err err = weir_api_score_read(b->schema, b->body, at, b->arena, &ask);
    return err ? err : weir_api_event_map(b->mappers[source], &ask.event, 0, INT64_MAX, &mapped);
}

/* Whether it can be seen where the message ends, whatever stands around it. */
static bool ends_somewhere(const char *message, size_t length) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = message[i];
        if (quoted && c == '\\' && ++i >= length) return false;
        if (c == '"' && (!quoted || message[i] == '"')) quoted = !quoted;
        if (quoted) continue;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') {
            if (!depth) return false;
            depth--;
        }
        if (c == ',' && !depth) return false;
    }
    return !quoted && !depth;
}

/* What a body of JSON cannot hold at all: nothing, and in a text what is no UTF-8. */
static bool can_be_sent(uint32_t source, const char *message, size_t length) {
    size_t blanks = 0;
    while (blanks < length && strchr(" \t\r\n", message[blanks]) && message[blanks])
        blanks++;
    json_t *text = source ? json_stringn(message, length) : NULL; /* NULL unless it is UTF-8 */
    bool can = source ? text != NULL : blanks < length && ends_somewhere(message, length);
    json_decref(text);
    return can;
}

static void same(both *b, uint32_t source, const char *message, size_t length) {
    char events[WEIR_ERR_SENTENCE_MAX], score[WEIR_ERR_SENTENCE_MAX];
    weir_arena_reset(b->arena);
    weir_err a = by_events(b, source, message, length, !source);
    weir_err c = by_score(b, source, message, length);
    bool whole = can_be_sent(source, message, length);
    weir_err_sentence(a, events, sizeof events);
    weir_err_sentence(c, score, sizeof score);
    bool line = source && weir_err_is(a, WEIR_EUSAGE); /* two lines are two events, and one is judged */
    if (!a != !c || (whole && !line && a && (weir_err_code(a) != weir_err_code(c) || strcmp(events, score) != 0)))
        fail_msg("%s: %.*s\nevents: %s\nscore:  %s", source ? "line" : "JSON", length > 2000 ? 2000 : (int)length,
                 message, a ? events : "taken", c ? score : "taken");
    *(a ? &b->refused : &b->taken) += 1;
}

static void same_text(both *b, uint32_t source, const char *text) {
    same(b, source, text, strlen(text));
}

#define REST "\"n\":1,\"c\":\"x\",\"w\":1,"
#define T    "\"t\":\"2026-01-05T10:00:00Z\"," REST

/* --- hostile ------------------------------------------------------------------------------------------------------ */

static const char *const texts[] = {
    "",
    "{}",
    "[]",
    "[{}]",
    "null",
    "true",
    "7",
    "\"x\"",
    "{\"id\":\"p\",\"id\":\"q\"," T "\"a\":\"a\"}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":1,\"z\":2}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":{\"y\":1,\"y\":2}}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":123456789012345678901234567890}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":1e999}",
    "{\"id\":\"p\",\"t\":\"2026-01-05T10:00:00Z\",\"c\":\"x\",\"w\":1,\"a\":\"a\",\"n\":1e999}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":\"\\u0000\"}",
    "{\"id\":\"p\\u0000\"," T "\"a\":\"a\"}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"z\\u0000\":1}",
    "{\"id\":\"p\"," T "\"a\":\"a\",\"\":1}",
    "{\"id\":\"p\"," T "\"a\":\"\\ud800\"}",
    "{\"id\":\"p\"," T "\"a\":\"\xff\"}",
    "{\"id\":\"p\"," T "\"a\":\"a\tb\"}",
    "{\"i\\u0064\":\"p\"," T "\"a\":\"a\"}",
    "{\"id\":\"p\"," T "\"a\":\"a\",}",
    "{\"id\":\"p\"," T "\"a\":\"a\"} x",
    "{\"id\":\"p\"," T "\"a\":\"a\"} /**/",
    "{\"id\":\"p\" \"t\":1}",
    "{\"id\":1.0," T "\"a\":-0}",
    "{\"id\":{}," T "\"a\":[]}",
    "{\"event\":{},\"source\":\"x\",\"id\":\"p\"," T "\"a\":\"a\"}",
    "{\"id\":\"\",\"t\":\"\",\"a\":\"\"}",
    "{\"id\":\"p\",\"t\":\"9999-01-05T10:00:00Z\"," REST "\"a\":\"a\"}",
    "{",
    "{\"id\":\"p",
    "]",
    "}",
    "{]",
    "[}",
    "{\"a\":]}",
    "\\",
    "\"\\",
    ",",
    "1,2",
    "{},{}",
    "'",
    "NaN",
    "-",
    "0x1",
};
static const char *const lines[] = {
    "",
    " ",
    "p",
    "p,2026-01-05T10:00:00Z,a,1,x,1",
    " p,2026-01-05T10:00:00Z,a,1,x,1 ",
    "p,2026-01-05T10:00:00Z,a,1,x,1,1",
    "p,2026-01-05T10:00:00Z,a,1,x,1\np,2026-01-05T10:00:00Z,a,1,x,1",
    "\n\np,2026-01-05T10:00:00Z,a,1,x,1\r\n\n",
    "p,2026-01-05T10:00:00Z,\"a\nb\",1,x,1",
    "p,2026-01-05T10:00:00Z,\"a,1,x,1",
    "p,2026-01-05T10:00:00Z,a\"b,1,x,1",
    "p,never,a,1,x,1",
    "p,2026-01-05T10:00:00Z,a,many,x,1",
    ",,,,,",
};

static void hostile_messages(void **state) {
    (void)state;
    both b;
    both_open(&b);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        same_text(&b, 0, texts[i]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        same_text(&b, 1, lines[i]);
    same(&b, 1, "p,2026-01-05T10:00:00Z,a\0b,1,x,1", 32);
    static const char in_text[] = "{\"id\":\"p\0q\"," T "\"a\":\"a\"}";
    static const char between[] = "{\"id\":\"p\"," T "\0\"a\":\"a\"}";
    same(&b, 0, in_text, sizeof in_text - 1);
    same(&b, 0, between, sizeof between - 1);
    assert_true(b.taken >= 8 && b.refused >= 40);
    both_close(&b);
}

/* What stands behind the event was told of as if the event had four bytes. */
static void a_refusal_names_the_byte_that_was_sent(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "{\"event\":{\"id\":\"a long one\",\"n\":[1,2,3]},\"source\":\"j\",\"odd\":7}",
        "{\"event\":7,\"source\":\"j\",\"odd\":7}",
        "{\"source\":\"j\",\"odd\":7,\"event\":{}}",
    };
    static weir_api_score_ask ask;
    both b;
    both_open(&b);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char says[96];
        memset(&ask, 0, sizeof ask);
        size_t byte = (size_t)(strstr(bodies[i], "\"odd\":") - bodies[i]) + strlen("\"odd\":") + 1;
        snprintf(says, sizeof says, "the body, byte %zu: it has an unknown member 'odd'", byte);
        assert_err(weir_api_score_read(b.schema, bodies[i], strlen(bodies[i]), b.arena, &ask), WEIR_EDATA, says);
    }
    memset(&ask, 0, sizeof ask);
    static const char bad[] = "{\"event\":{\"id\":1},?}";
    assert_err(weir_api_score_read(b.schema, bad, strlen(bad), b.arena, &ask), WEIR_EDATA,
               "the body is not JSON: byte 19");
    both_close(&b);
}

/* --- at the limits ------------------------------------------------------------------------------------------------ */

static void limits_and_one_past_them(void **state) {
    (void)state;
    static char message[MESSAGE_MAX];
    both b;
    both_open(&b);
    for (size_t deep = WEIR_MESSAGE_DEPTH_MAX - 3; deep <= WEIR_MESSAGE_DEPTH_MAX + 3; deep++) {
        size_t at = (size_t)sprintf(message, "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":");
        memset(message + at, '[', deep);
        memset(message + at + deep, ']', deep);
        strcpy(message + at + 2 * deep, "}");
        same_text(&b, 0, message);
    }
    for (size_t length = WEIR_MESSAGE_BYTES_MAX - 1; length <= WEIR_MESSAGE_BYTES_MAX + 1; length++) {
        size_t at = (size_t)sprintf(message, "{\"id\":\"p\"," T "\"a\":\"a\",\"z\":\"");
        memset(message + at, 'z', length - at - 2);
        strcpy(message + length - 2, "\"}");
        same(&b, 0, message, length);
        memset(message, 'z', length);
        memcpy(message, "p,2026-01-05T10:00:00Z,a,1,", 27);
        strcpy(message + length - 2, ",1");
        same(&b, 1, message, length);
        same(&b, 1, message, length - 1);
    }
    if (b.taken < 4 || b.refused < 4)
        fail_msg("%llu taken, %llu refused", (unsigned long long)b.taken, (unsigned long long)b.refused);
    both_close(&b);
}

/* --- random ------------------------------------------------------------------------------------------------------ */

static size_t mutate(both *b, char *message, size_t length) {
    static const char odd[] = "{}[]\",:\\\n\t \0u0\xff\xc3.-+eE19ntf";
    for (uint64_t edits = 1 + weir_rng_below(&b->rng, 4); edits > 0; edits--) {
        size_t at = weir_rng_below(&b->rng, length + 1), from = weir_rng_below(&b->rng, length + 1);
        size_t count = weir_rng_below(&b->rng, 12);
        char c = odd[weir_rng_below(&b->rng, sizeof odd - 1)];
        switch (weir_rng_below(&b->rng, 4)) {
        case 0: /* another byte */
            if (at < length) message[at] = c;
            break;
        case 1: /* one more */
            memmove(message + at + 1, message + at, length - at);
            message[at] = c;
            length++;
            break;
        case 2: /* some less */
            if (count > length - at) count = length - at;
            memmove(message + at, message + at + count, length - at - count);
            length -= count;
            break;
        default: /* some of it once more: names come twice */
            count *= 3;
            if (count > length - from) count = length - from;
            char copy[64];
            memcpy(copy, message + from, count);
            memmove(message + at + count, message + at, length - at);
            memcpy(message + at, copy, count);
            length += count;
            break;
        }
    }
    return length;
}

static void random_messages(void **state) {
    (void)state;
    static char message[4096];
    both b;
    both_open(&b);
    for (uint64_t round = weir_test_rounds(20000); round > 0; round--) {
        uint32_t source = (uint32_t)weir_rng_below(&b.rng, 2);
        const char *from = source ? line_message : json_message;
        size_t length = strlen(from);
        memcpy(message, from, length);
        if (round % 16) length = mutate(&b, message, length);
        same(&b, source, message, length);
    }
    assert_true(b.taken > 1000 && b.refused > 1000);
    both_close(&b);
}

WEIR_TESTS(WEIR_CASE(hostile_messages), WEIR_CASE(a_refusal_names_the_byte_that_was_sent),
           WEIR_CASE(limits_and_one_past_them), WEIR_CASE(random_messages))
