/* SPDX-License-Identifier: Apache-2.0 */
/* deleted_private.h - what deleted.c, deleted_table.c and deleted_walk.c share. */
#ifndef WEIR_STORE_DELETED_PRIVATE_H
#define WEIR_STORE_DELETED_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/store/base/table.h>

#include "deleted.h"

/* A vertex and the times that it was deleted at, rising: a producer that deletes one vertex again and again costs no
 * more than one that deletes many, as long as its times rise. */
typedef struct weir_deletion_place {
    uint32_t tag;
    uint32_t count; /* of times; many have room up to the next power of two */
    union {
        int64_t one; /* if the count is 1 */
        int64_t *many;
    } times;
    weir_vertex vertex;
} weir_deletion_place;

typedef struct weir_deletion_table {
    weir_table places;
    size_t count; /* of times, of all vertices */
} weir_deletion_table;

/* Twice is once: *newp.  false: no memory. */
bool weir_deletion_table_insert(weir_deletion_table *table, weir_vertex vertex, int64_t time_us, bool *newp);
int64_t weir_deletion_table_newest(const weir_deletion_table *table, weir_vertex vertex, int64_t before_us);
const int64_t *weir_deletion_times(const weir_deletion_place *place);
void weir_deletion_table_free(weir_deletion_table *table);

/* Of a vertex the newest deletion that is sealed, or WEIR_DELETED_NEVER. */
typedef struct weir_deleted_answer {
    weir_vertex vertex;
    int64_t time_us;
    bool known;
} weir_deleted_answer;

struct weir_deleted {
    weir_engine *engine;
    weir_deleted_filter *filter;
    atomic_uint_fast64_t count;
    pthread_rwlock_t lock; /* innermost, guards the rest: nothing is taken under it */
    weir_deletion_table young, old;
    weir_deleted_answer *answers; /* each at the place that its vertex hashes to */
    size_t answer_count;          /* a power of two */
    uint64_t seals;               /* what was looked up before one is not kept as an answer after it */
};

/* What a key of the cold store says; a deletion at the least of times is one at the time behind it, because nothing is
 * older that it could hide.  false: it is no deletion. */
bool weir_deletion_read(const void *key, size_t length, weir_vertex *vertexp, int64_t *time_usp);

#endif /* WEIR_STORE_DELETED_PRIVATE_H */
