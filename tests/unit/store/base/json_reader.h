/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_reader.h - a strict reader of JSON (RFC 8259) and UTF-8 (RFC 3629) that shares nothing with the writer: it works
 * on code points where the writer works on bytes. For json_test.c and log_test.c.
 */
#ifndef WEIR_TEST_JSON_READER_H
#define WEIR_TEST_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- UTF-8 ----------------------------------------------------------------------------------------------------- */

static inline size_t utf8_encode(uint32_t code, char *out) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> length & 0xFFu) | code);
    return length;
}

/* The character's bytes, or 0: decoded loosely, then held against its own encoding, which is the shortest. */
static inline size_t utf8_decode(const char *text, size_t length, uint32_t *codep) {
    uint8_t first = (uint8_t)text[0];
    size_t bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    char again[4];
    if (bytes == 0 || bytes > length) return 0;
    *codep = bytes == 1 ? first : first & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        *codep = *codep << 6 | ((uint8_t)text[i] & 0x3Fu);
    bool exists = *codep < 0xD800 || (*codep >= 0xE000 && *codep <= 0x10FFFF);
    return exists && utf8_encode(*codep, again) == bytes && memcmp(again, text, bytes) == 0 ? bytes : 0;
}

static inline bool utf8_is_valid(const char *text, size_t length) {
    uint32_t code;
    for (size_t bytes; length > 0; text += bytes, length -= bytes) {
        bytes = utf8_decode(text, length, &code);
        if (bytes == 0) return false;
    }
    return true;
}

/* --- JSON ------------------------------------------------------------------------------------------------------ */

typedef struct json_cursor {
    const char *at, *end;
    char *out; /* where the characters of a string go; may be NULL */
    size_t out_length;
} json_cursor;

static inline bool json_take(json_cursor *c, const char *text) {
    size_t length = strlen(text);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0) return false;
    c->at += length;
    return true;
}

static inline bool json_hex4(json_cursor *c, uint32_t *codep) {
    *codep = 0;
    for (unsigned i = 0; i < 4; i++, c->at++) {
        const char *digits = "0123456789abcdefABCDEF";
        const char *found = c->at < c->end && *c->at ? strchr(digits, *c->at) : NULL;
        if (!found) return false;
        *codep = *codep << 4 | (uint32_t)(found - digits < 16 ? found - digits : found - digits - 6);
    }
    return true;
}

/* What stands behind a backslash. */
static inline bool json_escape(json_cursor *c, uint32_t *codep) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t low;
    if (json_take(c, "u")) {
        if (!json_hex4(c, codep)) return false;
        if (*codep >= 0xDC00 && *codep < 0xE000) return false;
        if (*codep < 0xD800 || *codep >= 0xE000) return true;
        if (!json_take(c, "\\u") || !json_hex4(c, &low) || low < 0xDC00 || low >= 0xE000) return false;
        *codep = 0x10000 + ((*codep - 0xD800) << 10) + (low - 0xDC00);
        return true;
    }
    const char *found = c->at < c->end && *c->at ? strchr(names, *c->at) : NULL;
    if (!found) return false;
    *codep = (uint32_t)values[found - names];
    c->at++;
    return true;
}

static inline bool json_string(json_cursor *c) {
    if (!json_take(c, "\"")) return false;
    while (c->at < c->end && *c->at != '"') {
        uint32_t code;
        char text[4];
        if (json_take(c, "\\")) {
            if (!json_escape(c, &code)) return false;
        } else {
            size_t bytes = utf8_decode(c->at, (size_t)(c->end - c->at), &code);
            if (bytes == 0 || code < 0x20) return false;
            c->at += bytes;
        }
        size_t bytes = utf8_encode(code, text);
        if (c->out) memcpy(c->out + c->out_length, text, bytes);
        c->out_length += bytes;
    }
    return json_take(c, "\"");
}

static inline bool json_digits(json_cursor *c) {
    const char *begin = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > begin;
}

static inline bool json_number(json_cursor *c) {
    json_take(c, "-");
    if (!json_take(c, "0") && !json_digits(c)) return false;
    if (json_take(c, ".") && !json_digits(c)) return false;
    if (json_take(c, "e") || json_take(c, "E")) {
        if (!json_take(c, "-")) json_take(c, "+");
        return json_digits(c);
    }
    return true;
}

static inline bool json_value(json_cursor *c);

static inline bool json_members(json_cursor *c, bool keyed, const char *close) {
    if (json_take(c, close)) return true;
    do {
        if (keyed && !(json_string(c) && json_take(c, ":"))) return false;
        if (!json_value(c)) return false;
    } while (json_take(c, ","));
    return json_take(c, close);
}

/* White space is allowed by the RFC, but never written by us: it is refused. */
static inline bool json_value(json_cursor *c) {
    if (json_take(c, "{")) return json_members(c, true, "}");
    if (json_take(c, "[")) return json_members(c, false, "]");
    if (json_take(c, "true") || json_take(c, "false") || json_take(c, "null")) return true;
    return c->at < c->end && *c->at == '"' ? json_string(c) : json_number(c);
}

static inline bool json_is_valid(const char *text, size_t length) {
    json_cursor c = {.at = text, .end = text + length};
    return json_value(&c) && c.at == c.end;
}

/* The characters of one string; out must have room for as many bytes as length. */
static inline size_t json_unescape(const char *text, size_t length, char *out) {
    json_cursor c = {.at = text, .end = text + length, .out = out};
    return json_string(&c) ? c.out_length : 0;
}

#endif /* WEIR_TEST_JSON_READER_H */
