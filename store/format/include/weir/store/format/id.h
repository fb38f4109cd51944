/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.h - a vertex is (type, key) outside and 128 bits inside.
 *
 * The id is SipHash-2-4 of the type's name, a 0 byte and the key, under a secret of the store: it depends on no order
 * of types in a schema, on no process and no run, and who does not have the secret cannot make two names collide. By
 * chance two of n names collide with a probability below n * n / 2^129: 1.5e-19 at 10^10 vertices. So names are not
 * compared to tell vertices apart.  Every function is [any].
 */
#ifndef WEIR_STORE_FORMAT_ID_H
#define WEIR_STORE_FORMAT_ID_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

__extension__ typedef unsigned __int128 weir_vertex;

#define WEIR_KEY_MAX      1024u /* bytes of a vertex's outside key or of an event's id */
#define WEIR_SHARDS_MAX   256u
#define WEIR_VERTEX_BYTES 16u

/* For printf: an id is 32 hexadecimal digits everywhere. */
#define WEIR_VERTEX_FORMAT   "%016llx%016llx"
#define WEIR_VERTEX_WORDS(v) (unsigned long long)weir_vertex_high(v), (unsigned long long)weir_vertex_low(v)

static inline uint64_t weir_vertex_high(weir_vertex vertex) {
    return (uint64_t)(vertex >> 64);
}
static inline uint64_t weir_vertex_low(weir_vertex vertex) {
    return (uint64_t)vertex;
}
static inline weir_vertex weir_vertex_make(uint64_t high, uint64_t low) {
    return (weir_vertex)high << 64 | low;
}
/* Both halves in 64 bits, for a place in a table. */
static inline uint64_t weir_vertex_fold(weir_vertex vertex) {
    return weir_vertex_high(vertex) ^ weir_vertex_low(vertex);
}
/* The same of an edge of a list, by its neighbour and its event. */
static inline uint64_t weir_edge_fold(weir_vertex neighbor, uint64_t event) {
    return weir_vertex_fold(neighbor) ^ event * 0xd6e8feb86659fd93ull;
}

/* An id as it stands in arrays: two columns, which sort as the ids do. */
typedef struct weir_vertex_pair {
    uint64_t high, low;
} weir_vertex_pair;

static inline weir_vertex weir_vertex_of(weir_vertex_pair pair) {
    return weir_vertex_make(pair.high, pair.low);
}

/* The secret that ids depend on. A plain value; it lies in graph.yaml, and is in no log, answer or metric. */
typedef struct weir_id_key {
    uint8_t bytes[16];
} weir_id_key;

/* Known to all: for ids that nobody gains by forging. Imports, which make the same bytes of the same data set; and
 * messages that are mapped only to see whether they can be. */
extern const weir_id_key weir_id_key_public;

#define WEIR_ID_KEY_DIGITS 32u

/* A new one, from the system's source of random numbers.  WEIR_EUNAVAILABLE. */
weir_err weir_id_key_draw(weir_id_key *id_keyp);
/* Of WEIR_ID_KEY_DIGITS lower-case hexadecimal digits, and nothing behind them.  false: they are not. */
bool weir_id_key_parse(const char *text, weir_id_key *id_keyp);
/* From a file of these digits, which only its owner may read, and which nobody else can change or replace.
 * WEIR_ENOTFOUND, WEIR_EIO, WEIR_ENOMEM; WEIR_EINVAL a pipe or a device; WEIR_ELIMIT a longer file by far; WEIR_EPERM,
 * WEIR_EDATA say what to do.  Blocks on the disk. */
weir_err weir_id_key_load(const char *path, weir_id_key *id_keyp);

weir_vertex weir_vertex_id(const weir_id_key *id_key, const char *type, const char *key, size_t key_length);
/* The identity of an event that names one; of one that does not, its source position stands for it. 64 bits under the
 * same secret: it tells apart the events of one vertex in one list. */
uint64_t weir_event_id(const weir_id_key *id_key, const char *source, const void *id, size_t id_length);
uint64_t weir_event_id_at(const weir_id_key *id_key, const char *source, uint32_t partition, uint64_t offset);
/* The owner of a vertex: high bits of a multiplication of its low half, so that small numbers spread too. Tables take
 * weir_vertex_fold, of which the other half is as good as independent. */
uint32_t weir_shard_of(weir_vertex vertex, uint32_t shards);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_ID_H */
