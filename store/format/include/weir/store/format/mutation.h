/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutation.h - what an event does to one shard, in memory and as bytes.
 *
 * An event becomes a few mutations, each belonging to the shard of `vertex`. An edge becomes two, one half at each
 * end; a vertex deletion goes to every shard, because any of them may hold an edge to it. All are idempotent: the
 * identity of what they put is (vertex, type, direction, time, neighbour, event, content), so applying one twice
 * changes nothing, and two messages with one event id take nothing from each other.
 *
 * BATCH: the mutations of one run of a source partition for one shard, little-endian; made so that a router can carry
 * it through a topic of its own.
 *
 *   header   offset size  meaning                     mutation offset size  meaning
 *              0     4    CRC-32C of all behind it               0     1    kind
 *              4     4    bytes of the whole batch               1     1    direction
 *              8     4    source, as the store numbers it        2     2    type, relation or label
 *             12     4    partition of the source                4     4    row bytes
 *             16     8    offset of the first event covered      8     2    key bytes
 *             24     8    offset behind the last covered        10     2    its event less the first, low 16 bits
 *             32     4    mutations                             12     4    the same, high 32 bits
 *             36     4    0                                     16    16    vertex
 *                                                               32    16    neighbour
 *                                                               48     8    time, us
 *                                                               56     8    event
 *                                                               64     4    content
 *                                                               68     …    row, key
 */
#ifndef WEIR_STORE_FORMAT_MUTATION_H
#define WEIR_STORE_FORMAT_MUTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/format/id.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_mutation_kind {
    WEIR_PUT_VERTEX = 1, /* name and feature row, each if there is one */
    WEIR_PUT_EDGE = 2,
    WEIR_PUT_LABEL = 3,
    WEIR_DELETE_VERTEX = 4, /* hides what is of its time or older, also what arrives later */
    WEIR_DELETE_EDGE = 5,   /* the same for the edges between two vertices in one relation, or that of `event` alone */
    WEIR_NOTE_EVENT = 6,    /* the first of its id in the event window: vertex is its partition's, time its offset */
} weir_mutation_kind;

typedef enum weir_direction { WEIR_OUT = 0, WEIR_IN = 1 } weir_direction;

/* A plain value; row and key are borrowed. */
typedef struct weir_mutation {
    weir_mutation_kind kind;
    weir_direction direction;
    uint16_t type; /* id of the vertex type, relation or label in the schema */
    uint16_t key_length;
    uint32_t row_length;
    uint64_t offset; /* of its event in the source partition */
    weir_vertex vertex;
    weir_vertex neighbor;
    int64_t time_us;
    uint64_t event;
    uint32_t content; /* of the event's message: weir_mapped */
    const uint8_t *row;
    const char *key; /* WEIR_PUT_VERTEX: the outside key */
} weir_mutation;

#define WEIR_BATCH_HEADER_BYTES    40u
#define WEIR_MUTATION_HEADER_BYTES 68u
#define WEIR_BATCH_BYTES_MAX       (64u << 20)
#define WEIR_BATCH_MUTATIONS_MAX   (1u << 20)
#define WEIR_EVENT_MUTATIONS_MAX   256u /* of one event, both halves of edges counted, but not its note */

/* A plain value: where a batch comes from. offset_end is behind the last event, mutations or not. */
typedef struct weir_batch_span {
    uint32_t source;
    uint32_t partition;
    uint64_t offset_begin;
    uint64_t offset_end;
} weir_batch_span;

/* begin leaves room for the header, add appends, end fills the header in. Failures are the buffer's.  [owner] */
void weir_batch_begin(weir_buf *buf);
void weir_batch_add(weir_buf *buf, const weir_mutation *mutation, uint64_t offset_begin);
void weir_batch_end(weir_buf *buf, const weir_batch_span *span, uint32_t mutations);

typedef struct weir_batch_cursor {
    const uint8_t *next;
    const uint8_t *end;
    weir_batch_span span;
    uint32_t left;
} weir_batch_cursor;

/* Checks CRC, lengths, kinds and directions of the whole batch, so that next cannot fail.  WEIR_ECORRUPT says
 * what is wrong.  [any] */
weir_err weir_batch_open(const void *batch, size_t length, weir_batch_cursor *cursorp);
/* false at the end. What it hands out is borrowed from the bytes.  [owner] */
bool weir_batch_next(weir_batch_cursor *cursor, weir_mutation *mutationp);

/* A plain value: when an event was, by its first mutation that is not a note. */
typedef struct weir_batch_event {
    uint64_t offset;
    int64_t time_us;
} weir_batch_event;

/* The next event, passing over all of its mutations: for a caller that wants the times alone, and does not pay for the
 * rest. An event of which there is only the note is skipped: a note does not say its time.  false at the end.  [owner]
 */
bool weir_batch_next_event(weir_batch_cursor *cursor, weir_batch_event *eventp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_MUTATION_H */
