/* SPDX-License-Identifier: Apache-2.0 */
/* id.c - names become numbers. */
#include <string.h>

#include <weir/base/assert.h>
#include <weir/base/hash.h>
#include <weir/store/id.h>

#define CHECK_SEED 0x9e3779b97f4a7c15ull
#define TYPE_MAX   64u

static uint64_t id_mask = UINT64_MAX;

/* The 0 byte parts type and key, so that ("ab", "c") and ("a", "bc") differ. */
static uint64_t hash_pair(const char *type, const void *key, size_t key_length, uint64_t seed) {
    char bytes[TYPE_MAX + 1 + WEIR_KEY_MAX];
    size_t type_length = strlen(type);
    WEIR_ASSERT(type_length <= TYPE_MAX && key_length <= WEIR_KEY_MAX);
    memcpy(bytes, type, type_length + 1);
    memcpy(bytes + type_length + 1, key, key_length);
    return weir_xxh3(bytes, type_length + 1 + key_length, seed);
}

weir_vertex weir_vertex_id(const char *type, const char *key, size_t key_length) {
    return hash_pair(type, key, key_length, 0) & id_mask;
}

uint64_t weir_vertex_check(const char *type, const char *key, size_t key_length) {
    return hash_pair(type, key, key_length, CHECK_SEED);
}

uint64_t weir_event_id(const char *source, const void *id, size_t id_length) {
    return hash_pair(source, id, id_length, 0);
}

uint64_t weir_event_id_at(const char *source, uint32_t partition, uint64_t offset) {
    uint64_t position[2] = {partition, offset};
    return hash_pair(source, position, sizeof position, CHECK_SEED);
}

uint32_t weir_shard_of(weir_vertex vertex, uint32_t shards) {
    WEIR_ASSERT(shards > 0 && shards <= WEIR_SHARDS_MAX);
    uint64_t mixed = vertex * 0x9e3779b97f4a7c15ull;
    return (uint32_t)((mixed >> 32) * shards >> 32);
}

void weir_vertex_id_bits(unsigned bits) {
    WEIR_ASSERT(bits >= 1 && bits <= 64);
    id_mask = UINT64_MAX >> (64 - bits);
}
