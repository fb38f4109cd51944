/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - RFC 8259 in one pass, keeping only what the source names.
 *
 * Strict: UTF-8 is checked, escapes and surrogates are checked, numbers have JSON's grammar, a name that we need and
 * that comes twice is refused (which of the two counts is what two programs disagree about). Depth is limited; nothing
 * recurses deeper than WEIR_MESSAGE_DEPTH_MAX.
 */
#include <string.h>

#include <weir/ingest/map/map.h>

#include "paths.h"

typedef struct json {
    const char *start, *next, *end;
    weir_arena *arena;
    weir_cell *cells;
    uint64_t message;
    unsigned depth;
    const char *fault; /* NULL: none yet */
    bool no_memory;
} json;

static bool fail(json *j, const char *fault) {
    if (!j->fault) j->fault = fault;
    return false;
}

/* The first byte of a message is 1. */
static size_t place_of(const json *j, const char *p) {
    return (size_t)(p - j->start) + 1;
}

static void skip_space(json *j) {
    while (j->next < j->end && (*j->next == ' ' || *j->next == '\n' || *j->next == '\t' || *j->next == '\r'))
        j->next++;
}

static bool take(json *j, char c) {
    skip_space(j);
    if (j->next == j->end || *j->next != c) return false;
    j->next++;
    return true;
}

/* --- strings --------------------------------------------------------------------------------------------------- */

static int hex_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The four digits behind "\u"; false when they are not. */
static bool hex4(const char *p, const char *end, uint32_t *valuep) {
    *valuep = 0;
    if (end - p < 4) return false;
    for (int i = 0; i < 4; i++) {
        int digit = hex_of(p[i]);
        if (digit < 0) return false;
        *valuep = *valuep << 4 | (uint32_t)digit;
    }
    return true;
}

/* Reads what follows "\u" at p; returns how many bytes it took, 0 for a fault. */
static size_t escape_code(const char *p, const char *end, uint32_t *codep) {
    uint32_t low;
    if (!hex4(p, end, codep)) return 0;
    if (*codep >= 0xdc00 && *codep <= 0xdfff) return 0;
    if (*codep < 0xd800 || *codep > 0xdbff) return 4;
    if (end - p < 10 || p[4] != '\\' || p[5] != 'u' || !hex4(p + 6, end, &low) || low < 0xdc00 || low > 0xdfff)
        return 0;
    *codep = 0x10000 + ((*codep - 0xd800) << 10) + (low - 0xdc00);
    return 10;
}

static char *utf8_put(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* The byte that "\c" stands for, or 0. */
static char escape_byte(char c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = c ? strchr(from, c) : NULL;
    return found ? to[found - from] : 0;
}

#define EACH_BYTE(c)   (0x0101010101010101ull * (c))
#define HAS_ZERO(word) (((word)-EACH_BYTE(1)) & ~(word)&EACH_BYTE(0x80))

/* Passes over eight bytes at a time while none of them is a quote, a backslash, a control character or beyond ASCII. */
static void skip_plain(json *j) {
    while (j->end - j->next >= 8) {
        uint64_t word;
        memcpy(&word, j->next, 8);
        uint64_t below_space = (word - EACH_BYTE(0x20)) & ~word;
        uint64_t special = HAS_ZERO(word ^ EACH_BYTE('"')) | HAS_ZERO(word ^ EACH_BYTE('\\'));
        if ((special | below_space | word) & EACH_BYTE(0x80)) return;
        j->next += 8;
    }
}

/* One character that may need a look. */
static bool char_scan(json *j, bool *escapedp) {
    unsigned char c = (unsigned char)*j->next;
    size_t left = (size_t)(j->end - j->next), step = 1;
    uint32_t code;
    if (c < 0x20) return fail(j, "a control character in a text");
    if (c == '\\') {
        *escapedp = true;
        if (left < 2) return fail(j, "a text without an end");
        step = j->next[1] == 'u' ? 2 + escape_code(j->next + 2, j->end, &code) : 2;
        if (step == 2 && !escape_byte(j->next[1])) return fail(j, "an escape that JSON does not have");
    } else if (c >= 0x80) {
        step = weir_message_utf8_char(j->next, left);
        if (step == 0) return fail(j, "bytes that are not UTF-8");
    }
    j->next += step;
    return true;
}

/* From behind the opening quote to the closing one; *escapedp: it has escapes. */
static bool string_scan(json *j, bool *escapedp) {
    *escapedp = false;
    for (skip_plain(j); j->next < j->end && *j->next != '"';) {
        if (!char_scan(j, escapedp)) return false;
    }
    return j->next < j->end ? true : fail(j, "a text without an end");
}

/* Undoes the escapes of a scanned text; never longer than it was. */
static bool string_unescape(json *j, const char *from, size_t length, weir_cell *cell) {
    char *text = weir_arena_alloc_aligned(j->arena, 1, length ? length : 1), *to = text;
    const char *end = from + length;
    if (!text) {
        j->no_memory = true;
        return fail(j, "no memory");
    }
    while (from < end) {
        uint32_t code;
        if (*from != '\\') {
            *to++ = *from++;
        } else if (from[1] == 'u') {
            from += 2 + escape_code(from + 2, end, &code);
            to = utf8_put(to, code);
        } else {
            *to++ = escape_byte(from[1]);
            from += 2;
        }
    }
    cell->text = text;
    cell->length = (uint32_t)(to - text);
    return true;
}

/* j->next stands behind the opening quote. */
static bool string_read(json *j, weir_cell *cell) {
    bool escaped;
    const char *from = j->next;
    if (!string_scan(j, &escaped)) return false;
    *cell = (weir_cell){WEIR_CELL_TEXT, (uint32_t)(j->next - from), place_of(j, from), from};
    j->next++;
    return !escaped || string_unescape(j, from, cell->length, cell);
}

/* --- values ---------------------------------------------------------------------------------------------------- */

static bool digits(json *j) {
    const char *from = j->next;
    while (j->next < j->end && *j->next >= '0' && *j->next <= '9')
        j->next++;
    return j->next > from ? true : fail(j, "a number without digits where they belong");
}

static bool number_read(json *j, weir_cell *cell) {
    const char *from = j->next;
    if (*j->next == '-') j->next++;
    bool zero = j->next < j->end && *j->next == '0';
    if (!digits(j)) return false;
    if (zero && j->next - from > 1 + (*from == '-')) return fail(j, "a number that begins with 0");
    if (j->next < j->end && *j->next == '.') {
        j->next++;
        if (!digits(j)) return false;
    }
    if (j->next < j->end && (*j->next == 'e' || *j->next == 'E')) {
        j->next++;
        if (j->next < j->end && (*j->next == '+' || *j->next == '-')) j->next++;
        if (!digits(j)) return false;
    }
    *cell = (weir_cell){WEIR_CELL_NUMBER, (uint32_t)(j->next - from), place_of(j, from), from};
    return true;
}

static bool word_read(json *j, const char *word, weir_cell_kind kind, weir_cell *cell) {
    size_t length = strlen(word);
    if ((size_t)(j->end - j->next) < length || memcmp(j->next, word, length) != 0) {
        return fail(j, "something that is no JSON value");
    }
    *cell = (weir_cell){kind, (uint32_t)length, place_of(j, j->next), j->next};
    j->next += length;
    return true;
}

static bool value_read(json *j, weir_path_node *node, weir_cell *cell);

static weir_path_node *node_among(weir_path_node *from, const weir_path_node *to, const weir_cell *name) {
    for (; from != to; from = from->sibling) {
        if (from->length == name->length && memcmp(from->name, name->text, from->length) == 0) return from;
    }
    return NULL;
}

/* The node of this name below parent, or NULL. */
static weir_path_node *node_find(weir_path_node *parent, const weir_cell *name) {
    if (!parent) return NULL;
    weir_path_node *node = node_among(parent->hint, NULL, name);
    if (!node) node = node_among(parent->child, parent->hint, name);
    if (node) parent->hint = node->sibling;
    return node;
}

static bool member_read(json *j, weir_path_node *parent) {
    weir_cell name, cell;
    if (!take(j, '"')) return fail(j, "a name was expected here");
    const char *at = j->next;
    if (!string_read(j, &name)) return false;
    weir_path_node *node = node_find(parent, &name);
    if (node && node->seen == j->message) {
        j->next = at;
        return fail(j, "a name that came before in the same object");
    }
    if (node) node->seen = j->message;
    if (!take(j, ':')) return fail(j, "a colon was expected here");
    if (!value_read(j, node, &cell)) return false;
    if (node && node->field != WEIR_SCHEMA_NONE) j->cells[node->field] = cell;
    return true;
}

static bool object_read(json *j, weir_path_node *node) {
    if (take(j, '}')) return true;
    do {
        if (!member_read(j, node)) return false;
    } while (take(j, ','));
    return take(j, '}') ? true : fail(j, "a comma or } was expected here");
}

static bool array_read(json *j) {
    weir_cell ignored;
    if (take(j, ']')) return true;
    do {
        if (!value_read(j, NULL, &ignored)) return false;
    } while (take(j, ','));
    return take(j, ']') ? true : fail(j, "a comma or ] was expected here");
}

static bool nested_read(json *j, weir_path_node *node, weir_cell *cell) {
    *cell = (weir_cell){.kind = WEIR_CELL_NESTED, .at = place_of(j, j->next)};
    if (++j->depth > WEIR_MESSAGE_DEPTH_MAX) return fail(j, "objects and arrays too deep in each other");
    bool object = *j->next++ == '{';
    bool well = object ? object_read(j, node) : array_read(j);
    j->depth--;
    return well;
}

/* node: where the value stands in the tree of wanted names, or NULL. */
static bool value_read(json *j, weir_path_node *node, weir_cell *cell) {
    skip_space(j);
    if (j->next == j->end) return fail(j, "the message ends too early");
    switch (*j->next) {
    case '"':
        j->next++;
        return string_read(j, cell);
    case '{':
    case '[':
        return nested_read(j, node, cell);
    case 't':
        return word_read(j, "true", WEIR_CELL_TRUTH, cell);
    case 'f':
        return word_read(j, "false", WEIR_CELL_TRUTH, cell);
    case 'n':
        return word_read(j, "null", WEIR_CELL_ABSENT, cell);
    default:
        if (*j->next == '-' || (*j->next >= '0' && *j->next <= '9')) return number_read(j, cell);
        return fail(j, "something that is no JSON value");
    }
}

/* The whole message is one object. */
static bool message_read(json *j, weir_path_node *root) {
    weir_cell whole;
    skip_space(j);
    if (j->next < j->end && *j->next != '{') return fail(j, "the message is no JSON object");
    if (!value_read(j, root, &whole)) return false;
    skip_space(j);
    return j->next == j->end ? true : fail(j, "something behind the end of the object");
}

weir_err weir_message_json(weir_paths *paths, const char *bytes, size_t length, weir_arena *arena, weir_cell *cells,
                           size_t cell_count) {
    json j = {.start = bytes,
              .next = bytes,
              .end = bytes + length,
              .arena = arena,
              .cells = cells,
              .message = ++paths->message};
    memset(cells, 0, cell_count * sizeof *cells);
    if (length > WEIR_MESSAGE_BYTES_MAX) {
        return WEIR_ERR(WEIR_EDATA, "the message has %zu bytes, at most %u are taken", length, WEIR_MESSAGE_BYTES_MAX);
    }
    if (message_read(&j, &paths->root)) return WEIR_OK;
    if (j.no_memory) return WEIR_NOMEM("for a message of %zu bytes", length);
    return WEIR_ERR(WEIR_EDATA, "byte %zu: %s", place_of(&j, j.next), j.fault);
}
