/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - a sorted file in RocksDB's format, read block by block without it.
 *
 * A reader of one vertex visits dozens of files for a few records each. RocksDB makes an iterator for each visit, looks
 * for the block in its cache, and gives the new block a place there, which throws out another one. That takes several
 * times as long as it takes to read the block out of the kernel's page cache and to check it. So the index of a file,
 * which is the last key of each block or a little more, is kept in memory, and a cursor reads blocks into memory of its
 * own. What many readers want is in the window cache already.
 *
 *     file   block, its trailer │ block, its trailer │ … │ index │ footer       trailer: how it is compressed, checksum
 *     block  entries, each with what its key does not share with the one before │ where whole keys are │ how many
 *
 * It is for files whose properties say that they are not compressed, that the keys of the index are users' keys, and
 * that its values have no length before them (sorted.cc looks). Files of another version or checksum are refused.
 *
 * INVARIANTS
 *   BLOCKS-B1  A block is used only if its checksum is right (ENGINE-N3), and nothing outside of it is read, whatever
 *              it says.
 *   BLOCKS-B2  A cursor stands where RocksDB's iterator over the same file would, or the call returns an error.
 *
 * THREADS: an opened file is [any]; a cursor belongs to one thread.
 */
#ifndef WEIR_STORE_ENGINE_BLOCKS_H
#define WEIR_STORE_ENGINE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/base/err.h>
#include <weir/store/engine/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BLOCKS_KEY_MAX       64u
#define WEIR_BLOCKS_TRAILER_BYTES 5u

typedef struct weir_blocks weir_blocks;

/* Where a block lies, without its trailer. */
typedef struct weir_blocks_place {
    uint64_t offset, bytes;
} weir_blocks_place;

/* In the order of a file. */
static inline int weir_blocks_compare(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : a_length < b_length ? -1 : a_length > b_length;
}
/* The first eight bytes of a key as a number, in the same order. */
static inline uint64_t weir_blocks_begin_of(const uint8_t *key, size_t length) {
    uint64_t begin = 0;
    if (length >= sizeof begin)
        memcpy(&begin, key, sizeof begin); /* so many bytes as the compiler knows */
    else
        memcpy(&begin, key, length);
    return __builtin_bswap64(begin);
}

/* Whether a block, with its trailer behind it, has the checksum that it was written with. bytes: without the
 * trailer. */
bool weir_blocks_is_as_written(const uint8_t *block, size_t bytes);
/* Out of a footer or an index; false: it is cut short, or lies outside a file of so many bytes. */
bool weir_blocks_take_place(const uint8_t **atp, const uint8_t *end, uint64_t file_bytes, weir_blocks_place *placep);

/* The end of a sorted file. */
#define WEIR_BLOCKS_FOOTER_BYTES 53u
typedef struct weir_blocks_footer {
    bool is_read_here; /* the version and the kind of checksum are those of blocks.c */
    bool is_whole;     /* the places lie in the file */
    weir_blocks_place names, index;
} weir_blocks_footer;
/* false: it is that of another kind of file. */
bool weir_blocks_take_footer(const uint8_t footer[WEIR_BLOCKS_FOOTER_BYTES], uint64_t file_bytes,
                             weir_blocks_footer *footerp);

/* in_parts: the index is an index of parts, as the file's properties say.  WEIR_EVERSION: another
 * version or checksum, or larger than can be read here; WEIR_ECORRUPT; WEIR_ENOMEM; errors of a file. */
weir_err weir_blocks_open(const char *path, bool in_parts, weir_blocks **blocksp);
void weir_blocks_close(weir_blocks *blocks); /* NULL is allowed */
/* Of memory. */
uint64_t weir_blocks_bytes(const weir_blocks *blocks);

/* Over all keys that begin with the prefix. The fields are blocks.c's but for what is read here. All 0 is one that
 * stands in no file. */
typedef struct weir_blocks_cursor {
    bool valid; /* it stands at a key; key and value are borrowed until it moves */
    const uint8_t *value;
    uint32_t key_length, value_length;
    uint8_t key[WEIR_BLOCKS_KEY_MAX + 8]; /* and 8 bytes of RocksDB's behind it */

    const weir_blocks *blocks;
    const uint8_t *prefix; /* WEIR_ENGINE_PREFIX_BYTES, borrowed */
    uint8_t *room;         /* with the block in it */
    size_t room_bytes;
    size_t block; /* which one that is; SIZE_MAX: none yet */
    const uint8_t *at, *end;
    uint32_t restarts;
} weir_blocks_cursor;

/* Stands nowhere in this file until it seeks. */
void weir_blocks_cursor_enter(weir_blocks_cursor *cursor, const weir_blocks *blocks, const uint8_t *prefix);
/* At the first key that is not less than this one, which begins with the prefix (an assertion); not valid: none of the
 * prefix is left. After an error it is not valid, and may seek again.  WEIR_ECORRUPT, which names the file;
 * WEIR_ENOMEM; errors of a file. */
weir_err weir_blocks_cursor_seek(weir_blocks_cursor *cursor, const void *key, size_t length);
weir_err weir_blocks_cursor_next(weir_blocks_cursor *cursor);
/* At the last key that is not greater than this one, which begins with the prefix (an assertion); not valid: the prefix
 * has none. Errors as above. */
weir_err weir_blocks_cursor_seek_last(weir_blocks_cursor *cursor, const void *key, size_t length);
weir_err weir_blocks_cursor_previous(weir_blocks_cursor *cursor);
void weir_blocks_cursor_end(weir_blocks_cursor *cursor);

/* Over all records of a file, in their order and many blocks at a time, for who merges files: the first call of next
 * stands at the first record. All 0 is one that stands in no file; its window of WEIR_BLOCKS_WALK_BYTES, or of a larger
 * block, it keeps from one file to the next. */
#define WEIR_BLOCKS_WALK_BYTES (256u << 10)
typedef struct weir_blocks_walk {
    weir_blocks_cursor at; /* valid, key and value are to be read, and the 8 bytes behind the key */
    uint8_t *window;       /* what was read of the file last */
    size_t window_bytes, window_room;
    uint64_t window_at;
} weir_blocks_walk;

void weir_blocks_walk_enter(weir_blocks_walk *walk, const weir_blocks *blocks);
/* at.valid: there was one.  WEIR_ECORRUPT, which names the file, also for a record that is no put; WEIR_ENOMEM; errors
 * of a file. */
weir_err weir_blocks_walk_next(weir_blocks_walk *walk);
void weir_blocks_walk_end(weir_blocks_walk *walk);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ENGINE_BLOCKS_H */
