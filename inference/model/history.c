/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c - reading, writing and replaying the changes of a register.
 *
 * The whole file is signed, not its last line: which model a rollback leads to is said by the lines before. No byte of
 * it is interpreted before its signature fits, but the first word, which tells the versions apart.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>
#include <weir/store/base/rng.h>

#include "history.h"

#define HEAD_WORD      "weir-models "
#define HEAD           HEAD_WORD "1 "
#define UNSIGNED       "unsigned\n"
#define LINE_BYTES_MAX (WEIR_MODEL_REASON_MAX + WEIR_MODEL_TASK_MAX + WEIR_MODEL_MANIFEST_MAX + 128u)
#define FILE_BYTES_MAX ((WEIR_MODELS_HISTORY_MAX + 3) * LINE_BYTES_MAX)

static const char *const history_actions[] = {"promote", "rollback"};

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

static bool history_is_hex(const char *text, size_t length) {
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

bool weir_model_is_register(const char *text) {
    return history_is_hex(text, WEIR_MODELS_REGISTER_MAX - 1);
}

bool weir_model_is_manifest(const char *text) {
    return history_is_hex(text, WEIR_MODEL_MANIFEST_MAX - 1);
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

void weir_model_history_begin(weir_model_history *history) {
    history->count = 0;
    snprintf(history->register_id, sizeof history->register_id, "%016" PRIx64, weir_rng_fresh_seed());
}

weir_err weir_model_history_add(weir_model_history *history, const weir_models_entry *entry) {
    if (history->count == WEIR_MODELS_HISTORY_MAX) {
        memmove(history->entries, history->entries + 1, --history->count * sizeof *entry);
    }
    if (!WEIR_GROW(history->entries, history->capacity, history->count))
        return WEIR_NOMEM("for the history of %zu promotions", history->count + 1);
    WEIR_ASSERT(history->count < history->capacity && history->count < WEIR_MODELS_HISTORY_MAX);
    history->entries[history->count++] = *entry;
    return WEIR_OK;
}

/* --- the file -------------------------------------------------------------------------------------------------- */

weir_err weir_model_history_store(const char *path, const weir_model_history *history, const weir_secret_key *key,
                                  const weir_model_opts *opts) {
    weir_buf out = {0};
    char time[WEIR_TIME_TEXT_MAX], line[WEIR_SIGNATURE_LINE_MAX] = UNSIGNED;
    weir_buf_printf(&out, HEAD "%s\n", history->register_id);
    for (size_t i = 0; i < history->count; i++) {
        const weir_models_entry *entry = &history->entries[i];
        WEIR_ASSERT(i == 0 || entry->generation > entry[-1].generation);
        weir_time_format(entry->time_us, time);
        weir_buf_printf(&out, "%" PRIu64 " %s %s %s %s %s %s\n", entry->generation, time,
                        history_actions[entry->action], entry->id, *entry->manifest ? entry->manifest : "-",
                        *entry->task ? entry->task : "-", entry->reason);
    }
    weir_buf_printf(&out, "end %zu\n", history->count);
    weir_err err = weir_buf_err(&out);
    if (!err && key) weir_bytes_sign(out.bytes, out.length, key, line);
    /* A key that no server trusts would keep every server where it is. */
    if (!err && key && (opts->key_count || !opts->accept_unsigned))
        err = weir_bytes_verify(path, out.bytes, out.length, line, opts->keys, opts->key_count);
    weir_buf_text(&out, line);
    if (!err) err = weir_buf_err(&out);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* Cuts the next word off; NULL: there is none. */
static char *history_word(char **textp) {
    char *word = *textp, *end = word + strcspn(word, " ");
    if (end == word || !*end) return NULL;
    *end = '\0';
    *textp = end + 1;
    return word;
}

/* "-" where there was none to write. */
static bool history_text(char **textp, char *text, size_t size, bool (*fits)(const char *)) {
    const char *word = history_word(textp);
    if (!word || strlen(word) >= size) return false;
    if (strcmp(word, "-") == 0) return true;
    memcpy(text, word, strlen(word) + 1);
    return !fits || fits(text);
}

static bool history_parse_line(char *line, bool earlier, weir_models_entry *entry) {
    char *generation = history_word(&line), *time = history_word(&line), *action = history_word(&line),
         *id = history_word(&line);
    char *end = NULL;
    *entry = (weir_models_entry){0};
    if (!id || !weir_model_is_id(id)) return false;
    entry->generation = strtoull(generation, &end, 10);
    if (*end || !entry->generation || entry->generation > WEIR_MODELS_GENERATION_MAX) return false;
    if (*generation < '0' || *generation > '9') return false;
    weir_err err = weir_time_parse(time, strlen(time), &entry->time_us);
    if (err || (strcmp(action, history_actions[0]) != 0 && strcmp(action, history_actions[1]) != 0)) return false;
    entry->action = strcmp(action, history_actions[0]) == 0 ? WEIR_MODELS_PROMOTE : WEIR_MODELS_ROLLBACK;
    memcpy(entry->id, id, strlen(id) + 1);
    if (!earlier && !history_text(&line, entry->manifest, sizeof entry->manifest, weir_model_is_manifest)) return false;
    if (!earlier && !history_text(&line, entry->task, sizeof entry->task, NULL)) return false;
    if (strlen(line) >= WEIR_MODEL_REASON_MAX) return false;
    memcpy(entry->reason, line, strlen(line) + 1);
    return true;
}

static weir_err history_bad_line(const char *path, size_t number, const char *what) {
    return WEIR_ERR(WEIR_ECORRUPT, "%s:%zu: %s; put back a copy of it, or remove it and promote again", path, number,
                    what);
}

/* text: the lines of changes and the end; number: of its first line. */
static weir_err history_parse(const char *path, char *text, size_t number, weir_model_history *history) {
    bool earlier = history->signing == WEIR_MODEL_SIGNING_EARLIER;
    char end[32];
    for (char *line = text, *next = NULL; *line; line = next, number++) {
        weir_models_entry entry;
        next = line + strcspn(line, "\n");
        if (!*next) return history_bad_line(path, number, "the line is cut");
        *next++ = '\0';
        snprintf(end, sizeof end, "end %zu", history->count);
        if (strcmp(line, end) == 0 && !*next) return WEIR_OK;
        if (!history_parse_line(line, earlier, &entry))
            return history_bad_line(path, number, "this is not a promotion");
        if (history->count && entry.generation <= history->entries[history->count - 1].generation) {
            return history_bad_line(path, number, "its generation does not follow the one before");
        }
        if (history->count == WEIR_MODELS_HISTORY_MAX) return history_bad_line(path, number, "it is one too many");
        entry.is_signed = history->signing == WEIR_MODEL_SIGNING_SIGNED;
        memcpy(entry.register_id, history->register_id, sizeof entry.register_id);
        weir_err err = weir_model_history_add(history, &entry);
        if (err) return err;
    }
    return history_bad_line(path, number, "the end is missing");
}

/* Cuts the first line off, which names the register. */
static weir_err history_parse_head(const char *path, char **textp, weir_model_history *history) {
    char *line = *textp, *end = line + strcspn(line, "\n");
    if (strncmp(line, HEAD, strlen(HEAD)) != 0) {
        return WEIR_ERR(WEIR_EVERSION, "%s is of a later version; use the version that wrote it", path);
    }
    if (!*end) return history_bad_line(path, 1, "the line is cut");
    *end = '\0';
    line += strlen(HEAD);
    if (!weir_model_is_register(line)) return history_bad_line(path, 1, "this names no register");
    memcpy(history->register_id, line, sizeof history->register_id);
    *textp = end + 1;
    return WEIR_OK;
}

static weir_err history_not_signed(const char *path, const char *why) {
    return WEIR_ERR(WEIR_EPERM,
                    "%s is not signed%s: whoever can write it would say which model serves; sign it with `weir model "
                    "promote ID --key FILE`, or set models.require_signature: false",
                    path, why);
}

/* Which kind it is, and whether that will do; cuts the signature off. */
static weir_err history_verify(const char *path, char *text, size_t length, const weir_model_opts *opts,
                               weir_model_signing *signingp) {
    *signingp = WEIR_MODEL_SIGNING_EARLIER;
    if (strncmp(text, HEAD_WORD, strlen(HEAD_WORD)) != 0)
        return opts->accept_unsigned ? WEIR_OK : history_not_signed(path, ", as an earlier version wrote it");
    char *line = text + length; /* becomes the last line, if that is whole */
    weir_err err = WEIR_OK;
    if (length && line[-1] == '\n') {
        for (line--; line > text && line[-1] != '\n';)
            line--;
    }
    WEIR_ASSERT(line >= text && line <= text + length);
    *signingp = WEIR_MODEL_SIGNING_UNSIGNED;
    if (strcmp(line, UNSIGNED) == 0) {
        if (!opts->accept_unsigned) err = history_not_signed(path, "");
    } else if (opts->key_count || !opts->accept_unsigned) {
        *signingp = WEIR_MODEL_SIGNING_SIGNED;
        err = weir_bytes_verify(path, text, (size_t)(line - text), line, opts->keys, opts->key_count);
    }
    *line = '\0';
    return err;
}

weir_err weir_model_history_load(const char *path, const weir_model_opts *opts, weir_model_history *history) {
    char *text = NULL;
    size_t length = 0;
    *history = (weir_model_history){0};
    weir_err err = weir_file_load_as(path, WEIR_FILE_GUARDED | WEIR_FILE_NO_LINK, FILE_BYTES_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return WEIR_OK;
    if (err) return err;
    char *lines = text;
    err = history_verify(path, text, length, opts, &history->signing); // MODEL-M5
    weir_model_signing signing = history->signing;
    if (!err && signing == WEIR_MODEL_SIGNING_EARLIER) {
        WEIR_LOG(WARN, "models.earlier",
                 "was written by an earlier version and is not signed; the next promotion writes it anew",
                 WEIR_TEXT("file", path));
        err = history_parse(path, lines, 1, history);
    } else if (!err) {
        err = history_parse_head(path, &lines, history);
        if (!err) err = history_parse(path, lines, 2, history);
    }
    weir_free(text);
    if (err) weir_model_history_free(history);
    history->signing = signing;
    return err;
}

/* --- replaying ------------------------------------------------------------------------------------------------- */

weir_err weir_model_history_before(const weir_model_history *history, const char *folder,
                                   const weir_models_entry **entryp) {
    size_t depth = 0;
    *entryp = NULL;
    const weir_models_entry **stack = weir_calloc(history->count + 1, sizeof *stack);
    if (!stack) return WEIR_NOMEM("for the history of %s", folder);
    for (size_t i = 0; i < history->count; i++) { /* the top of the stack is what serves after entry i */
        const weir_models_entry *entry = &history->entries[i];
        if (entry->action == WEIR_MODELS_ROLLBACK) {
            while (depth && strcmp(stack[depth - 1]->id, entry->id) != 0)
                depth--;
        }
        if (!depth || strcmp(stack[depth - 1]->id, entry->id) != 0) stack[depth++] = entry;
    }
    WEIR_ASSERT(depth <= history->count);
    if (depth > 1) *entryp = stack[depth - 2];
    weir_free(stack);
    if (*entryp) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND, "no model served before this one in %s; promote one by its name", folder);
}
