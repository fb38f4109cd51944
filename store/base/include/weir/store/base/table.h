/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a hash table with open addressing, whose entries are the caller's structs, all of one size.
 *
 * An entry begins with a uint32_t, its tag: 0 in a free place, else 31 bits of its hash. So the table finds, moves and
 * removes entries without knowing their keys, and the caller compares keys with the few entries that have the tag:
 *
 *     typedef struct visit { uint32_t tag, count; uint64_t page; } visit;
 *     visit *v = weir_table_first(&table, page, sizeof *v);
 *     while (v && v->page != page)
 *         v = weir_table_next(&table, v, sizeof *v);
 *
 * A hash is any 64 bits that keys rarely share, small numbers too: the table mixes them. Where a stranger chooses the
 * keys, it depends on a secret (hash.h).
 *
 * INVARIANTS
 *   BASE-T1  At least a third of the places is free: every search ends, and soon.
 *   BASE-T2  From the place that its tag says to where an entry stands, no place is free: a search finds it.
 *
 * THREADS: one thread at a time; any number at once while none of them reserves, adds or removes.
 */
#ifndef WEIR_STORE_BASE_TABLE_H
#define WEIR_STORE_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/hash.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All zero: an empty one. Who walks over all entries passes over the places whose tag is 0. */
typedef struct weir_table {
    void *entries;
    size_t capacity;   /* places: a power of two, or 0 */
    size_t count;      /* entries                      */
    weir_arena *arena; /* where they lie, until it is reset; NULL: in memory of their own */
} weir_table;

static inline uint32_t weir_table_tag(uint64_t hash) {
    return (uint32_t)weir_hash_mix(hash) | 1u << 31;
}

/* The first entry of the tag from a place on, or NULL. */
static inline void *weir_table_search(const weir_table *table, size_t place, uint32_t tag, size_t entry_bytes) {
    for (;; place++) {
        char *entry = (char *)table->entries + (place & (table->capacity - 1)) * entry_bytes;
        uint32_t found = *(const uint32_t *)(const void *)entry;
        if (found == tag) return entry;
        if (!found) return NULL;
    }
}

/* An entry that may have the hash, or NULL; the next one after it. */
static inline void *weir_table_first(const weir_table *table, uint64_t hash, size_t entry_bytes) {
    uint32_t tag = weir_table_tag(hash);
    return table->count ? weir_table_search(table, tag, tag, entry_bytes) : NULL;
}
static inline void *weir_table_next(const weir_table *table, const void *entry, size_t entry_bytes) {
    size_t place = (size_t)((const char *)entry - (const char *)table->entries) / entry_bytes;
    return weir_table_search(table, place + 1, *(const uint32_t *)entry, entry_bytes);
}

/* What a search will meet first, if that may have the hash; else NULL: nothing behind it is looked at. */
static inline void *weir_table_home(const weir_table *table, uint64_t hash, size_t entry_bytes) {
    uint32_t tag = weir_table_tag(hash);
    if (!table->capacity) return NULL;
    char *entry = (char *)table->entries + (tag & (table->capacity - 1)) * entry_bytes;
    return *(const uint32_t *)(const void *)entry == tag ? entry : NULL;
}

/* A search for the hash follows soon: begins to fetch where it will look. */
static inline void weir_table_ahead(const weir_table *table, uint64_t hash, size_t entry_bytes) {
    if (table->capacity)
        __builtin_prefetch((const char *)table->entries + (weir_table_tag(hash) & (table->capacity - 1)) * entry_bytes);
}

/* Makes room for so many entries in all; those that are there may move.  false: no memory, or more than 2^31 places,
 * and it is as it was. */
bool weir_table_reserve(weir_table *table, size_t count, size_t entry_bytes);
/* An entry of the hash, all zero but for its tag. There is room for it, and the caller knows that its key is new. */
void *weir_table_add(weir_table *table, uint64_t hash, size_t entry_bytes);
/* Others may move into its place. */
void weir_table_remove(weir_table *table, void *entry, size_t entry_bytes);
/* It is empty then, and has forgotten its arena. */
void weir_table_free(weir_table *table);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_TABLE_H */
