/* SPDX-License-Identifier: Apache-2.0 */
/* recent.c - a ring of entries in the order of their arrival, and an index of open addressing into it. */
#include "recent.h"

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/hash.h>
#include <weir/base/rng.h>

#define CAPACITY_MAX (1u << 24)
#define FREE         UINT32_MAX

typedef struct entry {
    weir_recent_id id;
    weir_recent_place place;
} entry;

struct weir_recent {
    uint64_t key; /* of the second hash */
    uint32_t capacity, count;
    uint32_t next; /* of the ring */
    uint32_t mask;
    entry *ring;
    uint32_t *index; /* twice the capacity or more: never full */
};

weir_err weir_recent_open(uint32_t capacity, weir_recent **recentp) {
    *recentp = NULL;
    if (capacity > CAPACITY_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "at most %u recent events can be remembered", CAPACITY_MAX);
    uint32_t size = 2;
    while (size < capacity * 2)
        size *= 2;
    weir_recent *recent = weir_calloc(1, sizeof *recent);
    if (!recent) return WEIR_ERR(WEIR_ENOMEM, "no memory for the recent events");
    *recent = (weir_recent){.key = weir_rng_fresh_seed(), .capacity = capacity, .mask = size - 1};
    recent->ring = weir_calloc(capacity ? capacity : 1, sizeof *recent->ring);
    recent->index = weir_calloc(size, sizeof *recent->index);
    if (!recent->ring || !recent->index) {
        weir_recent_close(recent);
        return WEIR_ERR(WEIR_ENOMEM, "no memory for %u recent events; lower http.recent_events", capacity);
    }
    for (uint32_t i = 0; i < size; i++)
        recent->index[i] = FREE;
    *recentp = recent;
    return WEIR_OK;
}

weir_recent_id weir_recent_id_of(const weir_recent *recent, uint64_t event, const char *id, size_t length) {
    return (weir_recent_id){event, weir_xxh3(id, length, recent->key)};
}

/* Where the index has this id, or the free place where it would. */
static uint32_t slot_of(const weir_recent *recent, weir_recent_id id) {
    uint32_t slot = (uint32_t)id.check & recent->mask;
    for (; recent->index[slot] != FREE; slot = (slot + 1) & recent->mask) {
        const entry *here = &recent->ring[recent->index[slot]];
        if (here->id.check == id.check && here->id.event == id.event) break;
    }
    return slot;
}

weir_recent_place *weir_recent_find(weir_recent *recent, weir_recent_id id) {
    uint32_t slot = slot_of(recent, id);
    return recent->index[slot] == FREE ? NULL : &recent->ring[recent->index[slot]].place;
}

/* Takes the entry at a place of the ring out of the index, and moves up those that would no longer be found. */
static void forget(weir_recent *recent, uint32_t ring) {
    uint32_t hole = slot_of(recent, recent->ring[ring].id);
    WEIR_ASSERT(recent->index[hole] == ring);
    for (uint32_t i = (hole + 1) & recent->mask; recent->index[i] != FREE; i = (i + 1) & recent->mask) {
        uint32_t home = (uint32_t)recent->ring[recent->index[i]].id.check & recent->mask;
        if (((i - home) & recent->mask) < ((i - hole) & recent->mask)) continue;
        recent->index[hole] = recent->index[i];
        hole = i;
    }
    recent->index[hole] = FREE;
    recent->count--;
}

void weir_recent_put(weir_recent *recent, weir_recent_id id, weir_recent_place place) {
    if (!recent->capacity || weir_recent_find(recent, id)) return;
    if (recent->count == recent->capacity) forget(recent, recent->next);
    recent->ring[recent->next] = (entry){id, place};
    recent->index[slot_of(recent, id)] = recent->next;
    recent->next = (recent->next + 1) % recent->capacity;
    recent->count++;
}

void weir_recent_undo(weir_recent *recent) {
    if (!recent->count) return;
    recent->next = (recent->next + recent->capacity - 1) % recent->capacity;
    forget(recent, recent->next);
}

uint32_t weir_recent_count(const weir_recent *recent) {
    return recent->count;
}

void weir_recent_close(weir_recent *recent) {
    if (!recent) return;
    weir_free(recent->ring);
    weir_free(recent->index);
    weir_free(recent);
}

uint32_t weir_recent_capacity(const weir_recent *recent) {
    return recent->capacity;
}
