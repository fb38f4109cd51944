/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_field.c - one field out of a line of JSON, without reading the rest.
 *
 * Takes only what it needs: the fields before the wanted one must be JSON, what follows is not looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "log_private.h"

typedef struct log_field_cursor {
    const char *begin, *at, *end;
} log_field_cursor;

static weir_err log_field_wrong(const log_field_cursor *c, const char *expected) {
    return WEIR_ERR(WEIR_EDATA, "byte %zu of the line: expected %s", (size_t)(c->at - c->begin) + 1, expected);
}

static void log_field_skip_blanks(log_field_cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r' || *c->at == '\n'))
        c->at++;
}

static bool log_field_take(log_field_cursor *c, char wanted) {
    log_field_skip_blanks(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

/* --- strings -------------------------------------------------------------------------------------------------- */

static bool log_field_take_hex4(log_field_cursor *c, uint32_t *valuep) {
    char digits[5] = {0}, *end;
    if (c->end - c->at < 4) return false;
    memcpy(digits, c->at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) return false;
    *valuep = (uint32_t)strtoul(digits, &end, 16);
    c->at += 4;
    return true;
}

static void log_field_put_utf8(weir_buf *out, uint32_t point) {
    char bytes[4];
    if (point < 0x80) {
        bytes[0] = (char)point;
        weir_buf_append(out, bytes, 1);
    } else if (point < 0x800) {
        bytes[0] = (char)(0xC0 | point >> 6);
        bytes[1] = (char)(0x80 | (point & 0x3F));
        weir_buf_append(out, bytes, 2);
    } else if (point < 0x10000) {
        bytes[0] = (char)(0xE0 | point >> 12);
        bytes[1] = (char)(0x80 | (point >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (point & 0x3F));
        weir_buf_append(out, bytes, 3);
    } else {
        bytes[0] = (char)(0xF0 | point >> 18);
        bytes[1] = (char)(0x80 | (point >> 12 & 0x3F));
        bytes[2] = (char)(0x80 | (point >> 6 & 0x3F));
        bytes[3] = (char)(0x80 | (point & 0x3F));
        weir_buf_append(out, bytes, 4);
    }
}

/* Behind "\u". Two halves of a pair are one character. */
static weir_err log_field_take_unicode(log_field_cursor *c, weir_buf *out) {
    uint32_t high, low;
    if (!log_field_take_hex4(c, &high)) return log_field_wrong(c, "four hex digits");
    if (high >= 0xDC00 && high < 0xE000) return log_field_wrong(c, "the first half of a surrogate pair");
    if (high >= 0xD800 && high < 0xDC00) {
        bool pair = c->end - c->at >= 6 && c->at[0] == '\\' && c->at[1] == 'u';
        if (pair) c->at += 2;
        if (!pair || !log_field_take_hex4(c, &low) || low < 0xDC00 || low >= 0xE000) {
            return log_field_wrong(c, "the second half of a surrogate pair");
        }
        high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    log_field_put_utf8(out, high);
    return WEIR_OK;
}

static weir_err log_field_take_escape(log_field_cursor *c, weir_buf *out) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (c->at == c->end) return log_field_wrong(c, "a letter behind '\\'");
    if (*c->at == 'u') {
        c->at++;
        return log_field_take_unicode(c, out);
    }
    const char *letter = *c->at ? strchr(letters, *c->at) : NULL;
    if (!letter) return log_field_wrong(c, "one of \"\\/bfnrtu behind '\\'");
    weir_buf_append(out, &meanings[letter - letters], 1);
    c->at++;
    return WEIR_OK;
}

/* A string with its quotes; out gets what it means. */
static weir_err log_field_take_string(log_field_cursor *c, weir_buf *out) {
    if (!log_field_take(c, '"')) return log_field_wrong(c, "'\"'");
    while (c->at < c->end && *c->at != '"') {
        const char *plain = c->at;
        while (c->at < c->end && *c->at != '"' && *c->at != '\\' && (unsigned char)*c->at >= ' ')
            c->at++;
        weir_buf_append(out, plain, (size_t)(c->at - plain));
        if (c->at == c->end || *c->at == '"') break;
        if (*c->at != '\\') return log_field_wrong(c, "no control character inside a string");
        c->at++;
        weir_err err = log_field_take_escape(c, out);
        if (err) return err;
    }
    return log_field_take(c, '"') ? WEIR_OK : log_field_wrong(c, "'\"' at the end of the string");
}

/* --- values --------------------------------------------------------------------------------------------------- */

/* A number, true, false or null: everything up to what cannot belong to it. */
static weir_err log_field_take_word(log_field_cursor *c, weir_buf *out) {
    static const char letters[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzE";
    log_field_skip_blanks(c);
    const char *word = c->at;
    while (c->at < c->end && *c->at && strchr(letters, *c->at))
        c->at++;
    if (c->at == word) return log_field_wrong(c, "a value");
    weir_buf_append(out, word, (size_t)(c->at - word));
    return WEIR_OK;
}

/* Objects and arrays are skipped by their brackets; scratch takes what their strings mean. */
static weir_err log_field_skip_value(log_field_cursor *c, weir_buf *scratch) {
    unsigned depth = 0;
    do {
        weir_err err = WEIR_OK;
        log_field_skip_blanks(c);
        char next = c->at < c->end ? *c->at : 0;
        if (next == '"') {
            err = log_field_take_string(c, scratch);
        } else if (next == '{' || next == '[') {
            if (++depth > WEIR_CMD_LOG_DEPTH_MAX) return log_field_wrong(c, "at most 64 levels of brackets");
            c->at++;
        } else if (depth && (next == '}' || next == ']')) {
            depth--;
            c->at++;
        } else if (depth && (next == ',' || next == ':')) {
            c->at++;
        } else {
            err = log_field_take_word(c, scratch);
        }
        if (err) return err;
        weir_buf_clear(scratch);
    } while (depth);
    return WEIR_OK;
}

static weir_err log_field_take_value(log_field_cursor *c, const char *name, weir_buf *out) {
    log_field_skip_blanks(c);
    char next = c->at < c->end ? *c->at : 0;
    if (next == '"') return log_field_take_string(c, out);
    if (next == '{' || next == '[') {
        return WEIR_ERR(WEIR_EDATA, "the field '%s' is neither text nor a number, so it cannot be a key", name);
    }
    size_t before = out->length;
    weir_err err = log_field_take_word(c, out);
    bool null = !err && out->length - before == 4 && !out->failed && memcmp(out->bytes + before, "null", 4) == 0;
    return null ? WEIR_ERR(WEIR_EDATA, "the field '%s' is null, so it cannot be a key", name) : err;
}

static weir_err log_field_find(log_field_cursor *c, const char *name, weir_buf *scratch, weir_buf *out) {
    if (!log_field_take(c, '{')) return log_field_wrong(c, "'{': each line must be one JSON object");
    for (bool first = true; !log_field_take(c, '}'); first = false) {
        if (!first && !log_field_take(c, ',')) return log_field_wrong(c, "',' or '}'");
        weir_buf_clear(scratch);
        log_field_skip_blanks(c);
        weir_err err = log_field_take_string(c, scratch);
        if (!err) err = weir_buf_err(scratch);
        if (err) return err;
        if (!log_field_take(c, ':')) return log_field_wrong(c, "':'");
        bool found = scratch->length == strlen(name) && memcmp(scratch->bytes, name, scratch->length) == 0;
        if (found) return log_field_take_value(c, name, out);
        err = log_field_skip_value(c, scratch);
        if (err) return err;
    }
    return WEIR_ERR(WEIR_EDATA, "there is no field '%s' in the line", name);
}

weir_err weir_cmd_log_field(const char *line, size_t length, const char *name, weir_buf *out) {
    log_field_cursor c = {line, line, line + length};
    weir_buf scratch = {0};
    weir_err err = log_field_find(&c, name, &scratch, out);
    weir_buf_free(&scratch);
    return err ? err : weir_buf_err(out);
}
