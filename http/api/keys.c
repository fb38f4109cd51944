/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - who may do what.
 *
 * Only hashes of keys are kept, so that whoever reads the file gains no access by it. Plain SHA-256 is enough
 * for keys that are random and long, and only for those: see http/README.md for how to make one.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#include "private.h"

#define DIGEST_BYTES   32u
#define FILE_BYTES_MAX (1u << 20)

typedef struct key_row {
    uint8_t digest[DIGEST_BYTES];
    weir_http_caller caller;
} key_row;

typedef struct key_table {
    size_t count;
    key_row rows[WEIR_API_KEYS_MAX];
} key_table;

struct weir_api_keys {
    weir_mutex mutex; /* LEAF; guards which table it is */
    key_table *table;
};

typedef struct key_word {
    const char *text;
    size_t length;
} key_word;

static key_word key_next_word(const char **textp, const char *end) {
    const char *text = *textp;
    while (text < end && (*text == ' ' || *text == '\t' || *text == '\r'))
        text++;
    const char *begin = text;
    while (text < end && *text != ' ' && *text != '\t' && *text != '\r')
        text++;
    *textp = text;
    return (key_word){begin, (size_t)(text - begin)};
}

/* "reader,writer"; 0: not a list of roles. */
static unsigned key_read_roles(key_word roles) {
    static const struct {
        const char *name;
        unsigned role;
    } known[] = {{"reader", WEIR_HTTP_READER}, {"writer", WEIR_HTTP_WRITER}, {"admin", WEIR_HTTP_ADMIN}};
    unsigned all = 0;
    for (size_t begin = 0; begin <= roles.length;) {
        const char *text = roles.text + begin, *comma = memchr(text, ',', roles.length - begin);
        size_t length = comma ? (size_t)(comma - text) : roles.length - begin;
        unsigned role = 0;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strlen(known[i].name) == length && !memcmp(known[i].name, text, length)) role = known[i].role;
        if (!role) return 0;
        all |= role;
        begin += length + 1;
    }
    return all;
}

static bool key_read_digest(key_word hex, uint8_t digest[DIGEST_BYTES]) {
    if (hex.length != 2 * DIGEST_BYTES) return false;
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        int high = weir_hex_digit(hex.text[2 * i]), low = weir_hex_digit(hex.text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* The messages never repeat what stands in the line: it may be a key that was put there by mistake. */
static weir_err key_read_line(key_table *keys, const char *name, size_t line, const char *text, const char *end) {
    key_word roles = key_next_word(&text, end), digest = key_next_word(&text, end), who = key_next_word(&text, end);
    key_word more = key_next_word(&text, end);
    if (!roles.length || *roles.text == '#') return WEIR_OK;
    if (keys->count == WEIR_API_KEYS_MAX)
        return WEIR_ERR(WEIR_ECONFIG, "%s:%zu: there are more than %u keys; remove some", name, line,
                        WEIR_API_KEYS_MAX);
    key_row *row = &keys->rows[keys->count];
    row->caller.roles = key_read_roles(roles);
    if (!row->caller.roles)
        return WEIR_ERR(WEIR_ECONFIG,
                        "%s:%zu: the first word must be reader, writer or admin, or several of them separated by "
                        "commas",
                        name, line);
    if (!key_read_digest(digest, row->digest))
        return WEIR_ERR(WEIR_ECONFIG,
                        "%s:%zu: the second word must be the SHA-256 of a key, 64 hex digits: "
                        "`printf %%s KEY | sha256sum`",
                        name, line);
    if (!who.length || who.length >= sizeof row->caller.name)
        return WEIR_ERR(WEIR_ECONFIG, "%s:%zu: the third word must be a name of at most %zu characters", name, line,
                        sizeof row->caller.name - 1);
    if (more.length && *more.text != '#')
        return WEIR_ERR(WEIR_ECONFIG, "%s:%zu: there is more after the third word; a line is: ROLES SHA256 NAME", name,
                        line);
    memcpy(row->caller.name, who.text, who.length);
    row->caller.name[who.length] = 0;
    keys->count++;
    return WEIR_OK;
}

static weir_err key_table_read(const char *name, const char *text, size_t length, key_table **tablep) {
    key_table *table = weir_calloc(1, sizeof *table);
    *tablep = NULL;
    if (!table) return WEIR_NOMEM("for the keys");
    const char *end = text + length;
    weir_err err = WEIR_OK;
    for (size_t line = 1; !err && text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline ? newline : end;
        err = key_read_line(table, name, line, text, line_end);
        text = line_end + 1;
    }
    if (!err && !table->count)
        err = WEIR_ERR(WEIR_ECONFIG, "%s: the file has no key, so every request would be refused; add one", name);
    if (err)
        weir_free(table);
    else
        *tablep = table;
    return err;
}

weir_err weir_api_keys_parse(const char *name, const char *text, size_t length, weir_api_keys **keysp) {
    key_table *table;
    *keysp = NULL;
    weir_err err = key_table_read(name, text, length, &table);
    if (err) return err;
    weir_api_keys *keys = weir_calloc(1, sizeof *keys);
    if (!keys) {
        weir_free(table);
        return WEIR_NOMEM("for the keys");
    }
    weir_mutex_init(&keys->mutex, WEIR_RANK_LEAF, "keys");
    keys->table = table;
    *keysp = keys;
    return WEIR_OK;
}

weir_err weir_api_keys_load(const char *path, weir_api_keys **keysp) {
    char *text;
    size_t length;
    *keysp = NULL;
    weir_err err = weir_file_load_as(path, WEIR_FILE_GUARDED, FILE_BYTES_MAX, &text, &length);
    if (err) return err;
    err = weir_api_keys_parse(path, text, length, keysp);
    weir_free(text);
    return err;
}

weir_err weir_api_keys_reload(weir_api_keys *keys, const char *path) {
    weir_api_keys *anew;
    weir_err err = weir_api_keys_load(path, &anew);
    if (err) return err;
    weir_mutex_lock(&keys->mutex);
    key_table *before = keys->table;
    keys->table = anew->table;
    weir_mutex_unlock(&keys->mutex);
    anew->table = before;
    weir_api_keys_free(anew);
    return WEIR_OK;
}

bool weir_api_keys_find(weir_api_keys *keys, const char *key, size_t length, weir_http_caller *callerp) {
    uint8_t digest[DIGEST_BYTES];
    weir_sha256_bytes(key, length, digest);
    size_t found = SIZE_MAX;
    weir_mutex_lock(&keys->mutex);
    const key_table *table = keys->table;
    WEIR_ASSERT(table->count > 0 && table->count <= WEIR_API_KEYS_MAX);
    for (size_t i = 0; i < table->count; i++) { /* all of them, each to its end: the time tells nothing */
        unsigned differs = 0;
        for (size_t j = 0; j < DIGEST_BYTES; j++)
            differs |= (unsigned)(digest[j] ^ table->rows[i].digest[j]);
        if (!differs) found = i;
    }
    *callerp = (weir_http_caller){0};
    if (found != SIZE_MAX) *callerp = table->rows[found].caller;
    weir_mutex_unlock(&keys->mutex);
    return found != SIZE_MAX;
}

void weir_api_keys_free(weir_api_keys *keys) {
    if (!keys) return;
    weir_mutex_destroy(&keys->mutex);
    weir_free(keys->table);
    weir_free(keys);
}
