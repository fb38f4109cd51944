/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lives.h - when a vertex existed. Puts are of one life if no deletion lies between them and each is less than the
 * type's expiry after the one before it.
 *
 *   puts      x x  x          x x   d x                            expire: as long as ------, d: a deletion
 *   lives     first..last     f..l  first=last
 *   exists     ---------------  ----  ------    at a time, if a put lies within the expiry before it
 */
#ifndef WEIR_STORE_LIVES_H
#define WEIR_STORE_LIVES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

/* From its oldest put to its newest. A plain value. */
typedef struct weir_life {
    int64_t first_us, last_us;
} weir_life;

/* Ascending, each apart from the next. Zeroed, it is empty; a plain value but for its memory. */
typedef struct weir_lives {
    int64_t expire_us;        /* 0: never                      */
    const int64_t *deletions; /* of the vertex, ascending; borrowed */
    size_t deletion_count;
    weir_life *of;
    size_t count, capacity;
} weir_lives;

/* Forgets all; the memory is kept. */
void weir_lives_begin(weir_lives *lives, int64_t expire_us, const int64_t *deletions, size_t deletion_count);
/* Joins lives that are not apart any more. A put at the time of a deletion is never visible, and left out.
 * WEIR_ENOMEM. */
weir_err weir_lives_add(weir_lives *lives, weir_life life);
/* The oldest deletion of this time or newer; INT64_MAX: none. */
int64_t weir_lives_deleted_us(const weir_lives *lives, int64_t time_us);
/* From when on the vertex does not exist; INT64_MAX: it does to the end. */
int64_t weir_lives_until_us(const weir_lives *lives, const weir_life *life);
/* The newest life that began at this time or before; lives->count: none. */
size_t weir_lives_find(const weir_lives *lives, int64_t time_us);
void weir_lives_free(weir_lives *lives);

#endif /* WEIR_STORE_LIVES_H */
