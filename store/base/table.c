/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - linear probing; what is removed leaves no mark, because what stands behind it moves up. */
#include <weir/store/base/table.h>

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define PLACES_MIN 16u
#define PLACES_MAX ((size_t)1 << 31) /* a tag tells no more apart */

static uint32_t *table_entry_at(const weir_table *table, size_t place, size_t entry_bytes) {
    return (void *)((char *)table->entries + (place & (table->capacity - 1)) * entry_bytes);
}

/* How many entries so many places take. */
static size_t table_room(size_t capacity) {
    return capacity * 2 / 3; // BASE-T1
}

/* The free place where an entry of the tag belongs. */
static uint32_t *table_free_place(const weir_table *table, uint32_t tag, size_t entry_bytes) {
    size_t place = tag;
    while (*table_entry_at(table, place, entry_bytes))
        place++;
    return table_entry_at(table, place, entry_bytes); // BASE-T2
}

bool weir_table_reserve(weir_table *table, size_t count, size_t entry_bytes) {
    weir_table grown = {.capacity = PLACES_MIN, .count = table->count, .arena = table->arena};
    if (count <= table_room(table->capacity)) return true;
    while (table_room(grown.capacity) < count && grown.capacity <= PLACES_MAX)
        grown.capacity *= 2;
    if (grown.capacity > PLACES_MAX) return false;
    grown.entries = grown.arena ? weir_arena_calloc(grown.arena, grown.capacity, entry_bytes)
                                : weir_calloc(grown.capacity, entry_bytes);
    if (!grown.entries) return false;
    for (size_t place = 0; place < table->capacity; place++) {
        const uint32_t *entry = table_entry_at(table, place, entry_bytes);
        if (*entry) memcpy(table_free_place(&grown, *entry, entry_bytes), entry, entry_bytes);
    }
    weir_table_free(table);
    *table = grown;
    return true;
}

void *weir_table_add(weir_table *table, uint64_t hash, size_t entry_bytes) {
    WEIR_ASSERT(table->count < table_room(table->capacity)); // BASE-T1
    uint32_t *entry = table_free_place(table, weir_table_tag(hash), entry_bytes);
    *entry = weir_table_tag(hash);
    table->count++;
    return entry;
}

void weir_table_remove(weir_table *table, void *entry, size_t entry_bytes) {
    const size_t mask = table->capacity - 1;
    size_t hole = (size_t)((char *)entry - (char *)table->entries) / entry_bytes;
    WEIR_ASSERT(hole < table->capacity && *table_entry_at(table, hole, entry_bytes));
    for (size_t place = hole + 1; *table_entry_at(table, place, entry_bytes); place++) {
        const uint32_t *behind = table_entry_at(table, place, entry_bytes);
        if (((place - *behind) & mask) < ((place - hole) & mask)) continue;    /* its search does not pass the hole */
        memcpy(table_entry_at(table, hole, entry_bytes), behind, entry_bytes); // BASE-T2
        hole = place;
    }
    memset(table_entry_at(table, hole, entry_bytes), 0, entry_bytes);
    table->count--;
}

void weir_table_free(weir_table *table) {
    if (!table->arena) weir_free(table->entries);
    *table = (weir_table){0};
}
