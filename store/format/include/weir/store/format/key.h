/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - what names a record, and the keys of the cold store: big-endian, so that bytes sort as the reader wants to
 * meet them.
 *
 *   'E' edge      vertex 16 | relation 2 | direction 1 | ~time 8 | kind 1 | neighbour 16 | event 8 | content 4 = 57
 *   'F' features  vertex 16 | ~time 8 | event 8 | content 4                                            = 37
 *   'I' event     vertex 16 | ~offset 8 | event 8 | content 4                                          = 37
 *   'K' put       vertex 16 | ~time 8                                                                 = 25
 *   'L' label     vertex 16 | label 2 | ~time 8 | event 8 | content 4                                  = 39
 *   'N' name      vertex 16                                                                           = 17
 *
 *   'O' offset    source 4 | partition 4 | 0 in 8 bytes                                               = 17
 *   'P' newest    0, 16                                                                               = 17
 *   'T' deleted   vertex 16 | ~time 8                                                                 = 25
 *   'V' bundle    see bundle.h                                                                        = 42
 *
 * The cold store has keys of the last four kinds. The records of the first six lie in bundles, several in each, and a
 * scan names them by these keys (graph.h). None is shorter than a kind and a vertex, because that is what the engine
 * compares where a reader looks past the last of them.
 * ~time is the complement of the time with its sign bit flipped: newest first. In an edge, kind 0 is a deletion and
 * sorts before the edges (kind 1) of its own time, which it hides: a reader that goes newest first meets a deletion
 * before everything that it deletes. It carries the neighbour: a deletion of an edge is of those between two vertices.
 * A deletion of a vertex is a 'T' and nothing else, and every shard has all of 'T'.
 * A put of a vertex is an 'F' if it has a row, else a 'K', left out where the same event puts an edge at the vertex: so
 * each put leaves a record with its time, and a deletion that comes late can be told from one after which the vertex
 * was put again. A trim takes records away and writes 'K's for so many of their puts as answers hang on.
 * `content` is a hash of all that the message said; of a deletion it is 0. Two messages with one event id are two
 * records each of 'E', 'F' and 'L', so what a store holds depends on which events it took and not on their order; an
 * event's id alone is what another message names. An 'I' is kept for each event that was the first of its id in the
 * window of event ids of its source partition, which stands for the vertex; a trim takes those that the window does not
 * reach any more. Every function is [any].
 */
#ifndef WEIR_STORE_FORMAT_KEY_H
#define WEIR_STORE_FORMAT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/format/entry.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_EDGE_KEY_BYTES    57u
#define WEIR_EDGE_PREFIX_BYTES 20u /* 'E', vertex, relation, direction */
#define WEIR_FEATURE_KEY_BYTES 37u
#define WEIR_EVENT_KEY_BYTES   37u
#define WEIR_PUT_KEY_BYTES     25u
#define WEIR_LABEL_KEY_BYTES   39u
#define WEIR_NAME_KEY_BYTES    17u
#define WEIR_OFFSET_KEY_BYTES  17u
#define WEIR_DELETED_KEY_BYTES 25u
#define WEIR_NEWEST_KEY_BYTES  17u

typedef struct weir_edge_key {
    weir_vertex vertex;
    uint16_t relation;
    weir_direction direction;
    bool deletion;
    int64_t time_us;
    weir_vertex neighbor;
    uint64_t event;
    uint32_t content;
} weir_edge_key;

void weir_edge_key_write(const weir_edge_key *key, uint8_t bytes[WEIR_EDGE_KEY_BYTES]);
/* false: not such a key. */
bool weir_edge_key_read(const void *bytes, size_t length, weir_edge_key *keyp);
/* Of a list's entry. Returns its length.  */
size_t weir_record_key_write(weir_vertex vertex, weir_list list, const weir_entry *entry,
                             uint8_t bytes[WEIR_EDGE_KEY_BYTES]);
/* A version of a vertex's features, a label, or the note of an event: what names it in its list. */
typedef struct weir_version_key {
    weir_vertex vertex;
    int64_t time_us; /* of an event's note: the offset */
    uint64_t event;
    uint32_t content;
} weir_version_key;

void weir_feature_key_write(const weir_version_key *key, uint8_t bytes[WEIR_FEATURE_KEY_BYTES]);
bool weir_feature_key_read(const void *bytes, size_t length, weir_version_key *keyp);
void weir_event_key_write(const weir_version_key *key, uint8_t bytes[WEIR_EVENT_KEY_BYTES]);
bool weir_event_key_read(const void *bytes, size_t length, weir_version_key *keyp);
void weir_label_key_write(const weir_version_key *key, uint16_t label, uint8_t bytes[WEIR_LABEL_KEY_BYTES]);
bool weir_label_key_read(const void *bytes, size_t length, weir_version_key *keyp, uint16_t *labelp);
void weir_put_key_write(weir_vertex vertex, int64_t time_us, uint8_t bytes[WEIR_PUT_KEY_BYTES]);
bool weir_put_key_read(const void *bytes, size_t length, weir_vertex *vertexp, int64_t *time_usp);
void weir_name_key_write(weir_vertex vertex, uint8_t bytes[WEIR_NAME_KEY_BYTES]);
bool weir_name_key_read(const void *bytes, size_t length, weir_vertex *vertexp);
void weir_newest_key_write(uint8_t bytes[WEIR_NEWEST_KEY_BYTES]);
bool weir_newest_key_read(const void *bytes, size_t length);
void weir_offset_key_write(uint32_t source, uint32_t partition, uint8_t bytes[WEIR_OFFSET_KEY_BYTES]);
bool weir_offset_key_read(const void *bytes, size_t length, uint32_t *sourcep, uint32_t *partitionp);
void weir_deleted_key_write(weir_vertex vertex, int64_t time_us, uint8_t bytes[WEIR_DELETED_KEY_BYTES]);
bool weir_deleted_key_read(const void *bytes, size_t length, weir_vertex *vertexp, int64_t *time_usp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_KEY_H */
