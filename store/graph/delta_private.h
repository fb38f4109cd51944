/* SPDX-License-Identifier: Apache-2.0 */
/* delta_private.h - how a delta is laid out: delta.c fills it, delta_walk.c empties it. */
#ifndef WEIR_STORE_DELTA_PRIVATE_H
#define WEIR_STORE_DELTA_PRIVATE_H

#include <weir/store/base/table.h>

#include "delta.h"

#define STRIPES 64u

/* Oldest first: the reverse of weir_entry_order. Most lists never have more than the one entry that lies in them. */
typedef struct delta_list {
    struct delta_list *next;
    weir_list id;
    uint32_t count, capacity;
    weir_entry *entries;
    weir_entry first[1];
} delta_list;

typedef struct delta_node {
    weir_vertex vertex;
    delta_list *lists; /* rising by id */
    bool named;
    weir_name name;
} delta_node;

typedef struct delta_slot {
    uint32_t tag;
    delta_node *node;
} delta_slot;

typedef struct delta_stripe {
    _Alignas(64) weir_mutex mutex; /* guards slots and the nodes in them */
    weir_table slots;
} delta_stripe;

typedef struct delta_deletion {
    weir_vertex vertex;
    int64_t time_us;
} delta_deletion;

struct weir_delta {
    atomic_uint references;
    atomic_bool frozen;
    bool pile; /* all nodes are piled as they came, each of one weir_delta_apply, and none is in a stripe */
    atomic_size_t bytes, records;
    weir_arena *arena;  /* [owner] */
    delta_node **piled; /* [owner] then frozen */
    size_t piled_count, piled_capacity;
    delta_deletion *deletions; /* [owner] then frozen */
    size_t deletion_count, deletion_capacity;
    delta_stripe stripes[STRIPES];
};

#endif /* WEIR_STORE_DELTA_PRIVATE_H */
