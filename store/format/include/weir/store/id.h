/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.h - a vertex is (type, key) outside and 64 bits inside.
 *
 * The id is XXH3 of the type's name, a 0 byte and the key: it depends on no order of types in a schema, on no process
 * and no run. Two names with one id are a collision; the store compares names when it writes them and refuses the
 * second, it never merges two accounts.  Every function is [any].
 */
#ifndef WEIR_STORE_ID_H
#define WEIR_STORE_ID_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t weir_vertex;

#define WEIR_KEY_MAX    1024u /* bytes of a vertex's outside key or of an event's id */
#define WEIR_SHARDS_MAX 256u

weir_vertex weir_vertex_id(const char *type, const char *key, size_t key_length);
/* A second hash of the same name, independent of the first: 128 bits together tell two names apart in memory. */
uint64_t weir_vertex_check(const char *type, const char *key, size_t key_length);
/* The identity of an event that names one; of one that does not, its source position stands for it. */
uint64_t weir_event_id(const char *source, const void *id, size_t id_length);
uint64_t weir_event_id_at(const char *source, uint32_t partition, uint64_t offset);
/* The owner of a vertex: high bits of a multiplication, so that it is independent of how tables use the low ones. */
uint32_t weir_shard_of(weir_vertex vertex, uint32_t shards);
/* Tests: keep only so many bits of weir_vertex_id, to make collisions; 64 restores it. */
void weir_vertex_id_bits(unsigned bits);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ID_H */
