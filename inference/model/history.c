/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - reading, writing and replaying the changes of a register. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/buf.h>
#include <weir/base/file.h>

#include "history.h"

#define LINE_BYTES_MAX (WEIR_MODEL_REASON_MAX + 128u)
#define FILE_BYTES_MAX ((WEIR_MODELS_HISTORY_MAX + 1) * LINE_BYTES_MAX)

static const char *const actions[] = {"promote", "rollback"};

/* "20261121T101500Z-1a2b3c4d" */
bool weir_model_is_id(const char *text) {
    static const char shape[] = "ddddddddTddddddZ-xxxxxxxx";
    if (strlen(text) != sizeof shape - 1) return false;
    for (const char *s = shape, *at = text; *s; s++, at++) {
        bool digit = *at >= '0' && *at <= '9';
        bool fits = *s == 'd' ? digit : *s == 'x' ? digit || (*at >= 'a' && *at <= 'f') : *at == *s;
        if (!fits) return false;
    }
    return true;
}

void weir_model_history_reason(char reason[WEIR_MODEL_REASON_MAX], const char *text) {
    snprintf(reason, WEIR_MODEL_REASON_MAX, "%s", text && *text ? text : "-");
    for (char *at = reason; *at; at++) {
        if ((unsigned char)*at < ' ') *at = ' ';
    }
}

void weir_model_history_free(weir_model_history *history) {
    weir_free(history->entries);
    *history = (weir_model_history){0};
}

weir_err weir_model_history_add(weir_model_history *history, const weir_models_entry *entry) {
    if (history->count == WEIR_MODELS_HISTORY_MAX) {
        memmove(history->entries, history->entries + 1, --history->count * sizeof *entry);
    }
    if (history->count == history->capacity) {
        size_t capacity = history->capacity ? 2 * history->capacity : 16;
        weir_models_entry *entries = weir_realloc_array(history->entries, capacity, sizeof *entries);
        if (!entries) return WEIR_ERR(WEIR_ENOMEM, "no memory for the history of %zu promotions", capacity);
        history->entries = entries;
        history->capacity = capacity;
    }
    history->entries[history->count++] = *entry;
    return WEIR_OK;
}

/* --- the file -------------------------------------------------------------------------------------------------- */

weir_err weir_model_history_store(const char *path, const weir_model_history *history) {
    weir_buf out = {0};
    char time[WEIR_TIME_TEXT_MAX];
    for (size_t i = 0; i < history->count; i++) {
        const weir_models_entry *entry = &history->entries[i];
        weir_time_format(entry->time_us, time);
        weir_buf_printf(&out, "%" PRIu64 " %s %s %s %s\n", entry->generation, time, actions[entry->action], entry->id,
                        entry->reason);
    }
    weir_buf_printf(&out, "end %zu\n", history->count);
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* Cuts the next word off; NULL: there is none. */
static char *take_word(char **textp) {
    char *word = *textp, *end = word + strcspn(word, " ");
    if (end == word || !*end) return NULL;
    *end = '\0';
    *textp = end + 1;
    return word;
}

static bool parse_line(char *line, weir_models_entry *entry) {
    char *generation = take_word(&line), *time = take_word(&line), *action = take_word(&line), *id = take_word(&line);
    char *end = NULL;
    *entry = (weir_models_entry){0};
    if (!id || !weir_model_is_id(id) || strlen(line) >= WEIR_MODEL_REASON_MAX) return false;
    entry->generation = strtoull(generation, &end, 10);
    if (*end || !entry->generation || *generation < '0' || *generation > '9') return false;
    weir_err err = weir_time_parse(time, strlen(time), &entry->time_us);
    if (err || (strcmp(action, actions[0]) != 0 && strcmp(action, actions[1]) != 0)) return false;
    entry->action = strcmp(action, actions[0]) == 0 ? WEIR_MODELS_PROMOTE : WEIR_MODELS_ROLLBACK;
    memcpy(entry->id, id, strlen(id) + 1);
    memcpy(entry->reason, line, strlen(line) + 1);
    return true;
}

static weir_err bad_line(const char *path, size_t number, const char *what) {
    return WEIR_ERR(WEIR_ECORRUPT, "%s:%zu: %s; put back a copy of it, or remove it and promote again", path, number,
                    what);
}

static bool is_end(const char *line, const char *rest, size_t count) {
    char end[32];
    snprintf(end, sizeof end, "end %zu", count);
    return strcmp(line, end) == 0 && !*rest;
}

static weir_err parse(const char *path, char *text, weir_model_history *history) {
    for (char *line = text, *next = NULL; *line; line = next) {
        weir_models_entry entry;
        next = line + strcspn(line, "\n");
        if (!*next) return bad_line(path, history->count + 1, "the line is cut");
        *next++ = '\0';
        if (is_end(line, next, history->count)) return WEIR_OK;
        if (!parse_line(line, &entry)) return bad_line(path, history->count + 1, "this is no promotion");
        if (history->count && entry.generation != history->entries[history->count - 1].generation + 1) {
            return bad_line(path, history->count + 1, "its generation does not follow the one before");
        }
        if (history->count == WEIR_MODELS_HISTORY_MAX) return bad_line(path, history->count + 1, "it is one too many");
        weir_err err = weir_model_history_add(history, &entry);
        if (err) return err;
    }
    return bad_line(path, history->count + 1, "the end is missing");
}

weir_err weir_model_history_load(const char *path, weir_model_history *history) {
    char *text = NULL;
    size_t length = 0;
    *history = (weir_model_history){0};
    weir_err err = weir_file_load_as(path, WEIR_FILE_GUARDED | WEIR_FILE_NO_LINK, FILE_BYTES_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return WEIR_OK;
    if (err) return err;
    err = parse(path, text, history);
    if (err) weir_model_history_free(history);
    weir_free(text);
    return err;
}

/* --- replaying ------------------------------------------------------------------------------------------------- */

/* The stack after entry i: its top is what serves then. */
static size_t replay(const weir_model_history *history, size_t i, const weir_models_entry **stack, size_t depth) {
    const weir_models_entry *entry = &history->entries[i];
    if (entry->action == WEIR_MODELS_ROLLBACK) {
        while (depth && strcmp(stack[depth - 1]->id, entry->id) != 0)
            depth--;
    }
    if (!depth || strcmp(stack[depth - 1]->id, entry->id) != 0) stack[depth++] = entry;
    return depth;
}

weir_err weir_model_history_before(const weir_model_history *history, const char *folder, const char **idp) {
    size_t depth = 0;
    *idp = NULL;
    const weir_models_entry **stack = weir_calloc(history->count + 1, sizeof *stack);
    if (!stack) return WEIR_ERR(WEIR_ENOMEM, "no memory for the history of %s", folder);
    for (size_t i = 0; i < history->count; i++)
        depth = replay(history, i, stack, depth);
    if (depth > 1) *idp = stack[depth - 2]->id;
    weir_free(stack);
    if (*idp) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND, "no model served before this one in %s; promote one by its name", folder);
}
