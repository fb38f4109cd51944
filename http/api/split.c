/* SPDX-License-Identifier: Apache-2.0 */
/* split.c - cuts a body into messages, without a copy. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/json.h>

#include "private.h"

typedef struct splitter {
    weir_api_message *messages;
    size_t count, capacity;
    weir_arena *arena;
} splitter;

static bool split_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What stands between two places, without the blanks around it. */
static weir_api_message split_trim(const char *begin, const char *end) {
    WEIR_ASSERT(begin <= end);
    while (begin < end && split_is_blank(*begin))
        begin++;
    while (begin < end && split_is_blank(end[-1]))
        end--;
    return (weir_api_message){begin, (size_t)(end - begin)};
}

static weir_err split_add(splitter *split, weir_api_message message) {
    if (split->count == WEIR_API_EVENTS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the body has more than %u events; send them in several requests",
                        WEIR_API_EVENTS_MAX);
    if (split->count == split->capacity) {
        size_t capacity = split->capacity ? split->capacity * 4 : 16;
        weir_api_message *messages = weir_arena_calloc(split->arena, capacity, sizeof *messages);
        if (!messages) return WEIR_NOMEM("for the events of a request");
        if (split->count) memcpy(messages, split->messages, split->count * sizeof *messages);
        split->messages = messages;
        split->capacity = capacity;
    }
    split->messages[split->count++] = message;
    return WEIR_OK;
}

/* The reader stands at the opening bracket. */
static weir_err split_array(splitter *split, weir_json_reader *r) {
    for (char c = ','; c == ',';) {
        const char *begin = ++r->next;
        if (!weir_json_pass(r, ']'))
            return WEIR_ERR(WEIR_EDATA, "the array of events has no end: event %zu is cut off at byte %zu",
                            split->count, (size_t)(r->end - r->begin));
        weir_api_message message = split_trim(begin, r->next);
        c = *r->next;
        if (!message.length && !split->count && c == ']')
            return WEIR_ERR(WEIR_EDATA, "the array of events is empty; send at least one event");
        if (!message.length)
            return WEIR_ERR(WEIR_EDATA, "an event is missing before byte %zu of the body; remove the comma",
                            (size_t)(r->next - r->begin));
        weir_err err = split_add(split, message);
        if (err) return err;
    }
    r->next++;
    if (weir_json_read_end(r)) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "more data follows the array at byte %zu of the body; send a single array",
                    (size_t)(r->next - r->begin));
}

static weir_err split_lines(splitter *split, const char *body, size_t length) {
    weir_err err = WEIR_OK;
    for (const char *line = body, *end = body + length; !err && line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line)), *line_end = newline ? newline : end;
        weir_api_message message = split_trim(line, line_end);
        if (message.length) err = split_add(split, message);
        line = newline ? newline + 1 : end;
    }
    if (err || split->count) return err;
    return WEIR_ERR(WEIR_EDATA, "the body has no events; send one event per line");
}

bool weir_api_cut(const char *body, size_t length, const char *name, weir_api_message *valuep) {
    weir_json_reader r = weir_json_reader_of(body, length, WEIR_JSON_DEPTH_MAX);
    weir_json_token token;
    bool found = false;
    *valuep = (weir_api_message){NULL, 0};
    if (!weir_json_enter(&r, "the body is not an object")) return false;
    while (!found && weir_json_read_name(&r, &token)) {
        found = weir_json_token_is(&token, name);
        if (!found && (!weir_json_read(&r, &token) || !weir_json_skip(&r, &token))) return false;
    }
    const char *begin = r.next;
    if (!found || !weir_json_pass(&r, '}')) return false;
    weir_api_message value = split_trim(begin, r.next);
    if (value.length) *valuep = value;
    return value.length > 0;
}

weir_err weir_api_split(weir_api_format format, const char *body, size_t length, weir_arena *arena,
                        const weir_api_message **messagesp, size_t *countp) {
    *messagesp = NULL;
    *countp = 0;
    splitter split = {.arena = arena};
    weir_api_message all = split_trim(body, body + length);
    weir_err err;
    if (format == WEIR_API_LINES) {
        err = split_lines(&split, body, length);
    } else if (!all.length) {
        err = WEIR_ERR(WEIR_EDATA, "the body is empty; send an event or an array of events");
    } else if (*all.bytes == '[') {
        weir_json_reader r = weir_json_reader_of(body, length, WEIR_JSON_DEPTH_MAX);
        r.next = all.bytes;
        err = split_array(&split, &r);
    } else {
        err = split_add(&split, all);
    }
    if (err) return err;
    *messagesp = split.messages;
    *countp = split.count;
    return WEIR_OK;
}
