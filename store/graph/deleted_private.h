/* SPDX-License-Identifier: Apache-2.0 */
/* deleted_private.h - what deleted.c and deleted_walk.c share. */
#ifndef WEIR_STORE_DELETED_PRIVATE_H
#define WEIR_STORE_DELETED_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "deleted.h"

typedef struct weir_deletion {
    weir_vertex vertex;
    int64_t time_us; /* WEIR_DELETED_NEVER: an empty place of a table */
} weir_deletion;

/* Open addressing, several times of a vertex in one run of places. */
typedef struct weir_deletion_table {
    weir_deletion *places;
    size_t count, capacity; /* a power of two, or 0 */
} weir_deletion_table;

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
    weir_deleted_answer *answers; /* each at the place that its vertex hashes to             */
    uint64_t seals;               /* what was looked up before one is not kept as an answer after it */
};

#endif /* WEIR_STORE_DELETED_PRIVATE_H */
