/* SPDX-License-Identifier: Apache-2.0 */
/* split.c - cuts a body into messages, without a copy. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/json.h>

#include "private.h"

typedef struct splitter {
    const char *body;
    size_t length, next;
    weir_api_message *messages;
    size_t count, capacity;
    weir_arena *arena;
} splitter;

static bool split_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Adds a message, without the blanks around it; an empty one is the caller's to refuse. */
static weir_err split_add(splitter *split, size_t begin, size_t end) {
    WEIR_ASSERT(begin <= end && end <= split->length);
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
    while (begin < end && split_is_blank(split->body[begin]))
        begin++;
    while (begin < end && split_is_blank(split->body[end - 1]))
        end--;
    split->messages[split->count++] = (weir_api_message){split->body + begin, end - begin};
    return WEIR_OK;
}

/* --- JSON ----------------------------------------------------------------------------------------------------- */

static void split_skip_blanks(splitter *split) {
    while (split->next < split->length && split_is_blank(split->body[split->next]))
        split->next++;
}

/* From the opening quote to behind the closing one, or to the end of the body and at most one further. */
static void split_skip_string(splitter *split) {
    for (split->next++; split->next < split->length; split->next++) {
        char c = split->body[split->next];
        if (c == '\\') {
            split->next++;
        } else if (c == '"') {
            split->next++;
            return;
        }
    }
}

/* To the comma or bracket that ends this element of an array, or member of an object.  false: there is none. */
static bool split_skip_value(splitter *split, char close) {
    for (size_t depth = 0; split->next < split->length;) {
        char c = split->body[split->next];
        if (c == '"') {
            split_skip_string(split);
            continue;
        }
        if (!depth && (c == ',' || c == close)) return true;
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && depth) depth--;
        split->next++;
    }
    return false;
}

static weir_err split_array(splitter *split) {
    split->next++;
    split_skip_blanks(split);
    if (split->next < split->length && split->body[split->next] == ']')
        return WEIR_ERR(WEIR_EDATA, "the array of events is empty; send at least one event");
    for (char c = ','; c == ','; split->next++) {
        size_t begin = split->next;
        if (!split_skip_value(split, ']'))
            return WEIR_ERR(WEIR_EDATA, "the array of events has no end: event %zu is cut off at byte %zu",
                            split->count, split->length);
        weir_err err = split_add(split, begin, split->next);
        if (err) return err;
        if (!split->messages[split->count - 1].length)
            return WEIR_ERR(WEIR_EDATA, "an event is missing before byte %zu of the body; remove the comma",
                            split->next);
        c = split->body[split->next];
    }
    split_skip_blanks(split);
    if (split->next < split->length)
        return WEIR_ERR(WEIR_EDATA, "more data follows the array at byte %zu of the body; send a single array",
                        split->next);
    return WEIR_OK;
}

/* --- one member ---------------------------------------------------------------------------------------------- */

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
    splitter split = {.body = body, .length = length, .next = (size_t)(r.next - body)};
    split_skip_blanks(&split);
    size_t begin = split.next;
    if (!found || !split_skip_value(&split, '}')) return false;
    size_t end = split.next;
    while (end > begin && split_is_blank(body[end - 1]))
        end--;
    if (end > begin) *valuep = (weir_api_message){body + begin, end - begin};
    return end > begin;
}

/* --- lines ---------------------------------------------------------------------------------------------------- */

static weir_err split_lines(splitter *split) {
    while (split->next < split->length) {
        const char *begin = split->body + split->next;
        const char *newline = memchr(begin, '\n', split->length - split->next);
        size_t end = newline ? (size_t)(newline - split->body) : split->length;
        weir_err err = split_add(split, split->next, end);
        if (err) return err;
        if (!split->messages[split->count - 1].length) split->count--;
        split->next = end + 1;
    }
    if (!split->count) return WEIR_ERR(WEIR_EDATA, "the body has no events; send one event per line");
    return WEIR_OK;
}

weir_err weir_api_split(weir_api_format format, const char *body, size_t length, weir_arena *arena,
                        const weir_api_message **messagesp, size_t *countp) {
    *messagesp = NULL;
    *countp = 0;
    splitter split = {.body = body, .length = length, .arena = arena};
    weir_err err;
    if (format == WEIR_API_JSON) {
        split_skip_blanks(&split);
        if (split.next == length) return WEIR_ERR(WEIR_EDATA, "the body is empty; send an event or an array of events");
        err = body[split.next] == '[' ? split_array(&split) : split_add(&split, split.next, length);
    } else {
        err = split_lines(&split);
    }
    if (err) return err;
    *messagesp = split.messages;
    *countp = split.count;
    return WEIR_OK;
}
