/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive.h - what a shard ought to hold: one row for each thing that any event of the log says, in one sorted array.
 *
 * Written apart from the store, to be compared with it: no delta, no merge, no keys, no names that are left out. All of
 * a shard's records are in memory.
 */
#ifndef WEIR_CMD_NAIVE_H
#define WEIR_CMD_NAIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/format/mutation.h>

/* Where a thing was said. */
typedef struct weir_naive_place {
    uint32_t source, partition;
    uint64_t offset;
    bool doubtful; /* the event is a dead letter too: it may have been taken or not */
} weir_naive_place;

/* What is said, and of what: two records are the same thing when all but row and place are equal. */
typedef struct weir_naive_record {
    char kind; /* E edge, D deletion of an edge, F features, I event, K put, L label, N name, T deletion of a vertex */
    uint16_t list;
    weir_direction direction;
    weir_vertex vertex, neighbor;
    int64_t time_us; /* 0: names; events: the offset */
    uint64_t event;
    uint32_t content;
    size_t row; /* where it begins among all rows */
    uint32_t row_length;
    bool seen;
    weir_naive_place place;
} weir_naive_record;

typedef struct weir_naive {
    weir_naive_record *records;
    size_t count, capacity;
    weir_buf rows;
    uint32_t shard, shards;
} weir_naive;

/* Adds what an event says about vertices of the shard, and which vertices of any shard it deletes.  WEIR_ENOMEM. */
weir_err weir_naive_add(weir_naive *naive, const weir_mutation *mutations, size_t count, const weir_naive_place *place);
/* Adds that an event was the first of its id.  WEIR_ENOMEM. */
weir_err weir_naive_add_event(weir_naive *naive, weir_vertex source_vertex, uint64_t event, uint32_t content,
                              const weir_naive_place *place);
/* Once all is added. */
void weir_naive_sort(weir_naive *naive);
/* The records of the same thing; NULL: no event said so. */
weir_naive_record *weir_naive_find(weir_naive *naive, const weir_naive_record *like, size_t *countp);
/* Whether a put of the vertex that is newer was said: itself, or by an edge. */
bool weir_naive_put_after(const weir_naive *naive, weir_vertex vertex, int64_t time_us);
/* Behind the last record of the same thing as that at begin. */
size_t weir_naive_group_end(const weir_naive *naive, size_t begin);
bool weir_naive_row_is(const weir_naive *naive, const weir_naive_record *record, const void *row, size_t length);
void weir_naive_free(weir_naive *naive);

#endif /* WEIR_CMD_NAIVE_H */
