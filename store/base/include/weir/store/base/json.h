/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - the one reader of JSON (RFC 8259); buf.h has the writer.
 *
 * Strict: UTF-8, escapes, surrogate pairs and the grammar of numbers are checked, depth is limited, and each fault has
 * its byte, the first being 1. Nothing is read past the end of the text, which needs no 0 behind it.
 *
 *   pull   weir_json_reader: value after value over the caller's bytes; it allocates nothing and copies nothing. For
 *          messages, and for whoever keeps spans of the text.
 *   tree   weir_json_parse: all of a text as nodes in the caller's arena, for requests and files. Two members of one
 *          name are refused (two programs disagree about which of them counts), and so is U+0000 in a string.
 *
 * WHY OUR OWN. One core, payments of 216 bytes, nine fields wanted, nanoseconds a message in one process: this 292, the
 * reader that the mapper had before 315, jansson 3968, simdjson 3.0 275 (DOM) and 258 (on demand). The last two need a
 * copy with room behind it, name no byte, and leave a name that comes twice to the caller; on demand does not look at
 * what nobody asks for, and took two of the ten messages of tests/fuzz/corpus/map_json that are not JSON as a whole.
 *
 * THREADS: all functions are [any]; a tree is read-only.
 */
#ifndef WEIR_STORE_BASE_JSON_H
#define WEIR_STORE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_JSON_DEPTH_MAX  128u
#define WEIR_JSON_FILE_ARENA (64u << 20) /* for the tree of a file of ours: some 100 bytes a value */

typedef enum weir_json_kind {
    WEIR_JSON_NULL,
    WEIR_JSON_BOOL,
    WEIR_JSON_NUMBER,
    WEIR_JSON_STRING,
    WEIR_JSON_ARRAY,
    WEIR_JSON_OBJECT
} weir_json_kind;

/* --- pull ------------------------------------------------------------------------------------------------------- */

/* A value, or the name of a member. bytes are those of the text as they are written: a string's without its quotes, an
 * array's or object's only the opening bracket. */
typedef struct weir_json_token {
    weir_json_kind kind;
    bool escaped; /* a string with escapes in it: weir_json_unescape */
    size_t length;
    const char *bytes;
} weir_json_token;

typedef struct weir_json_reader {
    const char *begin, *next, *end;
    const char *fault; /* NULL: none; else what is wrong at next, for good */
    unsigned depth, depth_max;
    bool opened; /* a bracket was opened just now: no comma stands before what comes */
} weir_json_reader;

/* depth_max: at most WEIR_JSON_DEPTH_MAX. */
weir_json_reader weir_json_reader_of(const char *text, size_t length, unsigned depth_max);
/* Into the object that the text is; else this fault is at its first byte that is not blank.  false: that, or another
 * fault (the text is empty). */
bool weir_json_enter(weir_json_reader *r, const char *fault);
/* The next value. Of an array or object only the bracket: weir_json_read_item or _name goes on inside, or
 * weir_json_skip behind it.  false: a fault. */
bool weir_json_read(weir_json_reader *r, weir_json_token *value);
/* The name of the next member, whose value is next; false: the object has ended, or a fault. */
bool weir_json_read_name(weir_json_reader *r, weir_json_token *name);
/* An item of the array is next; false: the array has ended, or a fault. */
bool weir_json_read_item(weir_json_reader *r);
/* From behind what was read last, to the end of the array or object if it is one.  false: a fault. */
bool weir_json_skip(weir_json_reader *r, const weir_json_token *value);
/* To the comma or bracket behind a value that another will judge: no more of it is looked at than shows where it ends.
 * close: ']' in an array, '}' in an object.  false: it has no end. */
bool weir_json_pass(weir_json_reader *r, char close);
/* Nothing but blanks is left; else that is the fault. */
bool weir_json_read_end(weir_json_reader *r);
/* The caller's own fault, at a place in the text. Always false. */
bool weir_json_fail(weir_json_reader *r, const char *at, const char *fault);
/* The byte of a place in the text, from 1. */
static inline size_t weir_json_byte(const weir_json_reader *r, const char *at) {
    return (size_t)(at - r->begin) + 1;
}

/* What a string means, at most token->length bytes; returns how many. */
size_t weir_json_unescape(const weir_json_token *token, char *to);
/* A string or name that is this text, spelt without escapes. */
bool weir_json_token_is(const weir_json_token *token, const char *text);
/* false: not a whole number from min to max, in plain digits with or without '-'. */
bool weir_json_token_i64(const weir_json_token *token, int64_t min, int64_t max, int64_t *valuep);

/* --- tree ------------------------------------------------------------------------------------------------------- */

typedef struct weir_json_node {
    weir_json_token token; /* as it is written, in the caller's text */
    const char *name_at;   /* where the name of a member is written */
    size_t span;           /* bytes of the whole value from token.bytes, for an array or object */
    const char *name;      /* of a member, ended by 0; NULL: an item or the root */
    const char *text;      /* what a string means, ended by 0; "" for another kind */
    size_t count;          /* members or items */
    struct weir_json_node *first, *next;
    const struct weir_json_document *document;
} weir_json_node;

/* name stands for the text in messages; both outlive the tree.
 * WEIR_EDATA "NAME is not JSON: …"; WEIR_ELIMIT it does not fit into the arena; WEIR_ENOMEM. */
weir_err weir_json_parse(const char *name, const char *text, size_t length, unsigned depth_max, weir_arena *arena,
                         const weir_json_node **rootp);
/* Whether a text is one object, and nothing else; members of the same name are not looked for.  WEIR_EDATA. */
weir_err weir_json_check_object(const char *name, const char *text, size_t length, unsigned depth_max);

/* NULL: there is none, or it is not an object. */
const weir_json_node *weir_json_find(const weir_json_node *object, const char *name);
/* "" for what is not a string. */
const char *weir_json_node_text(const weir_json_node *node);

/* The rest has sentences of its own, which begin with the name of the text and the node's byte.  WEIR_EDATA. */
weir_err weir_json_need(const weir_json_node *object, const char *name, weir_json_kind kind,
                        const weir_json_node **nodep);
weir_err weir_json_node_i64(const weir_json_node *node, int64_t min, int64_t max, int64_t *valuep);
weir_err weir_json_node_f64(const weir_json_node *node, double *valuep);
weir_err weir_json_need_i64(const weir_json_node *object, const char *name, int64_t min, int64_t max, int64_t *valuep);
/* It is an object and has no member but those, which end with NULL. what: "a step". */
weir_err weir_json_only(const weir_json_node *object, const char *what, const char *const *names);
#define WEIR_JSON_ERR(node, ...) WEIR_ERR_BY(weir_json_err_make, (node), __VA_ARGS__)
weir_err weir_json_err_make(const weir_err_site *site, const weir_json_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_JSON_H */
