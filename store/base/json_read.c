/* SPDX-License-Identifier: Apache-2.0 */
/* json_read.c - JSON, value after value, where it stands. */
#include <weir/store/base/json.h>

#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/utf8.h>

weir_json_reader weir_json_reader_of(const char *text, size_t length, unsigned depth_max) {
    WEIR_ASSERT(depth_max <= WEIR_JSON_DEPTH_MAX);
    return (weir_json_reader){.begin = text, .next = text, .end = text + length, .depth_max = depth_max};
}

bool weir_json_fail(weir_json_reader *r, const char *at, const char *fault) {
    WEIR_ASSERT(at >= r->begin && at <= r->end);
    if (!r->fault) {
        r->next = at;
        r->fault = fault;
    }
    return false;
}

static bool json_fault(weir_json_reader *r, const char *fault) {
    return weir_json_fail(r, r->next, fault);
}

static inline void json_skip_blanks(weir_json_reader *r) {
    while (r->next < r->end && (*r->next == ' ' || *r->next == '\n' || *r->next == '\t' || *r->next == '\r'))
        r->next++;
}

/* Passes over one character, if it is the next one that is not blank. */
static inline bool json_accept(weir_json_reader *r, char c) {
    json_skip_blanks(r);
    if (r->next == r->end || *r->next != c) return false;
    r->next++;
    return true;
}

/* --- strings ---------------------------------------------------------------------------------------------------- */

/* The four digits behind "\u". */
static bool json_hex4(const char *p, const char *end, uint32_t *valuep) {
    *valuep = 0;
    if (end - p < 4) return false;
    for (int i = 0; i < 4; i++) {
        int digit = weir_hex_digit(p[i]);
        if (digit < 0) return false;
        *valuep = *valuep << 4 | (uint32_t)digit;
    }
    return true;
}

/* Reads what follows "\u" at p; returns how many bytes it took, 0 for a fault: two halves of a pair are one
 * character, and one half is none. */
static size_t json_unicode(const char *p, const char *end, uint32_t *codep) {
    uint32_t low;
    if (!json_hex4(p, end, codep)) return 0;
    if (*codep >= 0xdc00 && *codep <= 0xdfff) return 0;
    if (*codep < 0xd800 || *codep > 0xdbff) return 4;
    if (end - p < 10 || p[4] != '\\' || p[5] != 'u' || !json_hex4(p + 6, end, &low) || low < 0xdc00 || low > 0xdfff)
        return 0;
    *codep = 0x10000 + ((*codep - 0xd800) << 10) + (low - 0xdc00);
    return 10;
}

/* The byte that "\c" stands for, or 0. */
static char json_escape_byte(char c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = c ? strchr(from, c) : NULL;
    return found ? to[found - from] : 0;
}

#define JSON_EACH_BYTE(c) (0x0101010101010101ull * (c))
#define JSON_ZERO(word)   (((word)-JSON_EACH_BYTE(1)) & ~(word))

/* To the first quote, backslash, control character or byte beyond ASCII, eight bytes at a time while there are eight.
 * The lowest mark of a word is exact: a borrow can only set marks above a true one. */
static inline void json_skip_plain(weir_json_reader *r) {
    while (r->end - r->next >= 8) {
        uint64_t word;
        memcpy(&word, r->next, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        uint64_t control = (word - JSON_EACH_BYTE(0x20)) & ~word;
        uint64_t marks =
            JSON_ZERO(word ^ JSON_EACH_BYTE('"')) | JSON_ZERO(word ^ JSON_EACH_BYTE('\\')) | control | word;
        marks &= JSON_EACH_BYTE(0x80);
        if (marks) {
            r->next += __builtin_ctzll(marks) / 8;
            return;
        }
        r->next += 8;
    }
    for (; r->next < r->end; r->next++) {
        unsigned char c = (unsigned char)*r->next;
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') return;
    }
}

/* From behind the opening quote to behind the closing one. */
static bool json_string(weir_json_reader *r, weir_json_token *token) {
    const char *from = r->next;
    bool escaped = false, valid;
    uint32_t code;
    for (;;) {
        json_skip_plain(r);
        if (r->next == r->end) return json_fault(r, "a string without a closing quote");
        char c = *r->next;
        if (c == '"') break;
        size_t step = 2, left = (size_t)(r->end - r->next);
        if (c == '\\') {
            if (left < 2) return json_fault(r, "a string without a closing quote");
            if (r->next[1] == 'u') step = 2 + json_unicode(r->next + 2, r->end, &code);
            if (step == 2 && !json_escape_byte(r->next[1])) return json_fault(r, "an escape that JSON does not have");
            escaped = true;
        } else if ((unsigned char)c < 0x20) {
            return json_fault(r, "a control character in a string, not escaped");
        } else {
            step = weir_utf8_take(r->next, left, &valid);
            if (!valid) return json_fault(r, "bytes that are not UTF-8");
        }
        WEIR_ASSERT(step <= left);
        r->next += step;
    }
    *token = (weir_json_token){WEIR_JSON_STRING, escaped, (size_t)(r->next - from), from};
    r->next++;
    return true;
}

size_t weir_json_unescape(const weir_json_token *token, char *to) {
    const char *from = token->bytes, *end = from + token->length;
    char *begin = to;
    uint32_t code;
    while (from < end) {
        const char *escape = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((escape ? escape : end) - from);
        memcpy(to, from, plain);
        to += plain;
        from += plain;
        if (!escape) break;
        WEIR_ASSERT(end - from >= 2); /* the reader has checked it */
        if (from[1] == 'u') {
            from += 2 + json_unicode(from + 2, end, &code);
            to = weir_utf8_encode(to, code);
        } else {
            *to++ = json_escape_byte(from[1]);
            from += 2;
        }
    }
    WEIR_ASSERT((size_t)(to - begin) <= token->length);
    return (size_t)(to - begin);
}

bool weir_json_token_is(const weir_json_token *token, const char *text) {
    return token->kind == WEIR_JSON_STRING && !token->escaped && token->length == strlen(text) &&
           memcmp(token->bytes, text, token->length) == 0;
}

/* --- numbers and words ------------------------------------------------------------------------------------------ */

static inline bool json_digits(weir_json_reader *r) {
    const char *from = r->next;
    while (r->next < r->end && *r->next >= '0' && *r->next <= '9')
        r->next++;
    return r->next > from ? true : json_fault(r, "a number without digits where they belong");
}

static bool json_number(weir_json_reader *r, weir_json_token *token) {
    const char *from = r->next;
    if (*r->next == '-') r->next++;
    bool zero = r->next < r->end && *r->next == '0';
    if (!json_digits(r)) return false;
    if (zero && r->next - from > 1 + (*from == '-')) return json_fault(r, "a number that begins with 0");
    if (r->next < r->end && *r->next == '.') {
        r->next++;
        if (!json_digits(r)) return false;
    }
    if (r->next < r->end && (*r->next == 'e' || *r->next == 'E')) {
        r->next++;
        if (r->next < r->end && (*r->next == '+' || *r->next == '-')) r->next++;
        if (!json_digits(r)) return false;
    }
    *token = (weir_json_token){WEIR_JSON_NUMBER, false, (size_t)(r->next - from), from};
    return true;
}

bool weir_json_token_i64(const weir_json_token *token, int64_t min, int64_t max, int64_t *valuep) {
    uint64_t value = 0;
    bool negative = token->length && token->bytes[0] == '-';
    *valuep = 0;
    if (token->kind != WEIR_JSON_NUMBER) return false;
    for (size_t i = negative; i < token->length; i++) {
        unsigned digit = (unsigned)(unsigned char)token->bytes[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (value > (uint64_t)INT64_MAX + negative) return false;
    *valuep = negative ? (int64_t)(0 - value) : (int64_t)value;
    return *valuep >= min && *valuep <= max;
}

static bool json_word(weir_json_reader *r, const char *word, size_t length, weir_json_kind kind,
                      weir_json_token *token) {
    if ((size_t)(r->end - r->next) < length || memcmp(r->next, word, length) != 0)
        return json_fault(r, "not a JSON value");
    *token = (weir_json_token){kind, false, length, r->next};
    r->next += length;
    return true;
}

/* --- values ----------------------------------------------------------------------------------------------------- */

bool weir_json_read(weir_json_reader *r, weir_json_token *value) {
    if (r->fault) return false;
    json_skip_blanks(r);
    if (r->next == r->end) return json_fault(r, "the text ends where a value was expected");
    r->opened = false;
    char c = *r->next;
    switch (c) {
    case '"':
        r->next++;
        return json_string(r, value);
    case '{':
    case '[':
        if (r->depth == r->depth_max) return json_fault(r, "objects and arrays nested too deep");
        *value = (weir_json_token){c == '{' ? WEIR_JSON_OBJECT : WEIR_JSON_ARRAY, false, 1, r->next++};
        r->depth++;
        r->opened = true;
        return true;
    case 't':
        return json_word(r, "true", 4, WEIR_JSON_BOOL, value);
    case 'f':
        return json_word(r, "false", 5, WEIR_JSON_BOOL, value);
    case 'n':
        return json_word(r, "null", 4, WEIR_JSON_NULL, value);
    default:
        if (c == '-' || (c >= '0' && c <= '9')) return json_number(r, value);
        return json_fault(r, "not a JSON value");
    }
}

bool weir_json_enter(weir_json_reader *r, const char *fault) {
    weir_json_token object;
    json_skip_blanks(r);
    if (r->next < r->end && *r->next != '{') return json_fault(r, fault);
    return weir_json_read(r, &object);
}

/* Behind a bracket or a value: whether another member or item follows. */
static inline bool json_more(weir_json_reader *r, char close, const char *fault) {
    bool opened = r->opened;
    if (r->fault) return false;
    WEIR_ASSERT(r->depth > 0);
    r->opened = false;
    if (json_accept(r, close)) {
        r->depth--;
        return false;
    }
    return opened || json_accept(r, ',') ? true : json_fault(r, fault);
}

bool weir_json_read_name(weir_json_reader *r, weir_json_token *name) {
    if (!json_more(r, '}', "a comma or } was expected here")) return false;
    if (!json_accept(r, '"')) return json_fault(r, "a name in quotes was expected here");
    if (!json_string(r, name)) return false;
    return json_accept(r, ':') ? true : json_fault(r, "a colon was expected here");
}

bool weir_json_read_item(weir_json_reader *r) {
    return json_more(r, ']', "a comma or ] was expected here");
}

bool weir_json_skip(weir_json_reader *r, const weir_json_token *value) {
    weir_json_token inner;
    if (value->kind == WEIR_JSON_OBJECT) {
        while (weir_json_read_name(r, &inner) && weir_json_read(r, &inner) && weir_json_skip(r, &inner)) {
        }
    } else if (value->kind == WEIR_JSON_ARRAY) {
        while (weir_json_read_item(r) && weir_json_read(r, &inner) && weir_json_skip(r, &inner)) {
        }
    }
    return !r->fault;
}

bool weir_json_pass(weir_json_reader *r, char close) {
    bool quoted = false;
    for (size_t depth = 0; r->next < r->end; r->next++) {
        char c = *r->next;
        if (c == '"') {
            quoted = !quoted;
        } else if (quoted) {
            if (c == '\\' && ++r->next == r->end) break;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (!depth && (c == ',' || c == close)) {
            return true;
        } else if (depth && (c == ']' || c == '}')) {
            depth--;
        }
    }
    return false;
}

bool weir_json_read_end(weir_json_reader *r) {
    if (r->fault) return false;
    WEIR_ASSERT(r->depth == 0);
    json_skip_blanks(r);
    return r->next == r->end ? true : json_fault(r, "more text after the end of the value");
}
