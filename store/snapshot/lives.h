/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lives.h - when a vertex was there: its puts, those in one life that are less than its type's expiry apart.
 *
 *   puts      x x  x          x x                                 expire: as long as ------
 *   lives     [first..last]   [first..last]
 *   is there   ---------------  -----------     before a time, if a put lies within the expiry before that
 */
#ifndef WEIR_STORE_LIVES_H
#define WEIR_STORE_LIVES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>

/* From its oldest put to its newest. A plain value. */
typedef struct weir_life {
    int64_t first_us, last_us;
} weir_life;

/* Rising, each apart from the next. Zeroed, it is empty; a plain value but for its memory. */
typedef struct weir_lives {
    int64_t expire_us; /* 0: never, and there is one life */
    weir_life *of;
    size_t count, capacity;
} weir_lives;

/* None any more; the memory is kept. */
void weir_lives_begin(weir_lives *lives, int64_t expire_us);
/* Joins what is not apart any more.  WEIR_ENOMEM. */
weir_err weir_lives_add(weir_lives *lives, weir_life life);
void weir_lives_free(weir_lives *lives);

#endif /* WEIR_STORE_LIVES_H */
