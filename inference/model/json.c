/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a grammar check in one pass, and walking what passed it. */
#include <string.h>

#include "json.h"

typedef struct reader {
    const char *start, *at, *end;
    unsigned depth;
} reader;

static void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool take(reader *r, char c) {
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* --- strings --------------------------------------------------------------------------------------------------- */

/* The least character of a sequence of so many bytes, so that no character has two spellings. */
static bool take_utf8(reader *r) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*r->at;
    int length = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF8 ? 4 : 0;
    if (length == 0 || r->end - r->at < length) return false;
    uint32_t character = length == 1 ? first : first & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        unsigned char next = (unsigned char)r->at[i];
        if ((next & 0xC0) != 0x80) return false;
        character = character << 6 | (next & 0x3F);
    }
    r->at += length;
    return character >= least[length] && character <= 0x10FFFF && (character & 0xFFFFF800u) != 0xD800;
}

static bool take_escape(reader *r) {
    if (r->at == r->end) return false;
    char c = *r->at++;
    if (c != 'u') return c && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end || !*r->at || !strchr("0123456789abcdefABCDEF", *r->at)) return false;
    }
    return true;
}

static bool take_string(reader *r) {
    if (!take(r, '"')) return false;
    while (r->at < r->end && *r->at != '"') {
        if ((unsigned char)*r->at < 0x20) return false;
        bool escape = *r->at == '\\';
        if (escape) r->at++;
        if (escape ? !take_escape(r) : !take_utf8(r)) return false;
    }
    return take(r, '"');
}

/* --- values ---------------------------------------------------------------------------------------------------- */

static bool take_digits(reader *r) {
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from;
}

static bool take_here(reader *r, char c) {
    bool found = r->at < r->end && *r->at == c;
    if (found) r->at++;
    return found;
}

static bool take_number(reader *r) {
    take_here(r, '-');
    if (!take_here(r, '0') && !take_digits(r)) return false;
    if (take_here(r, '.') && !take_digits(r)) return false;
    if (!take_here(r, 'e') && !take_here(r, 'E')) return true;
    if (!take_here(r, '+')) take_here(r, '-');
    return take_digits(r);
}

static bool take_word(reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static bool take_value(reader *r);

static bool take_members(reader *r) {
    if (take(r, '}')) return true;
    do {
        if (!take_string(r) || !take(r, ':') || !take_value(r)) return false;
    } while (take(r, ','));
    return take(r, '}');
}

static bool take_items(reader *r) {
    if (take(r, ']')) return true;
    do {
        if (!take_value(r)) return false;
    } while (take(r, ','));
    return take(r, ']');
}

static bool take_nested(reader *r, bool (*inside)(reader *)) {
    r->at++;
    if (++r->depth > WEIR_MODEL_JSON_DEPTH_MAX) return false;
    bool taken = inside(r);
    r->depth--;
    return taken;
}

static bool take_value(reader *r) {
    skip_space(r);
    if (r->at == r->end) return false;
    switch (*r->at) {
    case '{':
        return take_nested(r, take_members);
    case '[':
        return take_nested(r, take_items);
    case '"':
        return take_string(r);
    case 't':
        return take_word(r, "true");
    case 'f':
        return take_word(r, "false");
    case 'n':
        return take_word(r, "null");
    default:
        return take_number(r);
    }
}

weir_err weir_model_json_check(const char *name, weir_span text) {
    reader r = {.start = text.bytes, .at = text.bytes, .end = text.bytes + text.length};
    skip_space(&r);
    bool fine = r.at < r.end && *r.at == '{' && take_value(&r);
    if (fine) skip_space(&r);
    if (fine && r.at == r.end) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s is no JSON object: byte %zu is out of place", name, (size_t)(r.at - r.start) + 1);
}

/* --- walking --------------------------------------------------------------------------------------------------- */

/* The next value behind an opening bracket, a comma or a colon; the reader stands behind it. */
static bool next_value(reader *r, weir_span *valuep) {
    skip_space(r);
    const char *from = r->at;
    if (!take_value(r)) return false;
    *valuep = (weir_span){from, (size_t)(r->at - from)};
    return true;
}

/* Onto the first byte of the next member or item; the bracket stands only before the first. */
static bool step_in(reader *r, char open) {
    if (!take(r, open) && !take(r, ',')) return false;
    skip_space(r);
    return r->at < r->end && *r->at != '}' && *r->at != ']';
}

static void keep_rest(weir_span *span, const reader *r) {
    *span = (weir_span){r->at, (size_t)(r->end - r->at)};
}

bool weir_model_json_member(weir_span *object, weir_span *namep, weir_span *valuep) {
    reader r = {.start = object->bytes, .at = object->bytes, .end = object->bytes + object->length};
    if (!step_in(&r, '{')) return false;
    const char *from = r.at + 1;
    if (!take_string(&r)) return false;
    *namep = (weir_span){from, (size_t)(r.at - from) - 1};
    if (!take(&r, ':') || !next_value(&r, valuep)) return false;
    keep_rest(object, &r);
    return true;
}

bool weir_model_json_item(weir_span *array, weir_span *valuep) {
    reader r = {.start = array->bytes, .at = array->bytes, .end = array->bytes + array->length};
    if (!step_in(&r, '[') || !next_value(&r, valuep)) return false;
    keep_rest(array, &r);
    return true;
}

bool weir_model_json_find(weir_span object, const char *name, weir_span *valuep) {
    weir_span found;
    while (weir_model_json_member(&object, &found, valuep)) {
        if (weir_span_is(found, name)) return true;
    }
    *valuep = (weir_span){"", 0};
    return false;
}

bool weir_model_json_text(weir_span value, weir_span *textp) {
    *textp = (weir_span){"", 0};
    if (value.length < 2 || value.bytes[0] != '"' || memchr(value.bytes, '\\', value.length)) return false;
    *textp = (weir_span){value.bytes + 1, value.length - 2};
    return true;
}

bool weir_model_json_u64(weir_span value, uint64_t *numberp) {
    *numberp = 0;
    if (value.length == 0 || value.length > 19) return false;
    for (size_t i = 0; i < value.length; i++) {
        unsigned digit = (unsigned)(unsigned char)value.bytes[i] - '0';
        if (digit > 9) return false;
        *numberp = *numberp * 10 + digit;
    }
    return *numberp <= INT64_MAX;
}

bool weir_span_is(weir_span span, const char *text) {
    return span.length == strlen(text) && memcmp(span.bytes, text, span.length) == 0;
}
