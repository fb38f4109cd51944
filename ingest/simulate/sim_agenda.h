/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_agenda.h - what will happen later, earliest first; room for a fixed number of items.
 *
 * Items of the same time leave in the order in which they came, so that the stream does not depend on how the heap
 * happens to be shaped.
 */
#ifndef WEIR_SIM_AGENDA_H
#define WEIR_SIM_AGENDA_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

typedef struct weir_sim_agenda_entry {
    int64_t time;
    uint64_t serial; /* of arrival, above the item's place: compared as one number */
} weir_sim_agenda_entry;

typedef struct weir_sim_agenda {
    weir_sim_agenda_entry *heap;
    uint32_t *vacant; /* places without an item, the last one is given first */
    unsigned char *items;
    size_t item_bytes;
    uint32_t count, capacity;
    uint64_t serial;
} weir_sim_agenda;

#define WEIR_SIM_AGENDA_MAX (1u << 28)

/* WEIR_ELIMIT capacity above WEIR_SIM_AGENDA_MAX; WEIR_ENOMEM; close works on a half-opened and on a zeroed one. */
weir_err weir_sim_agenda_open(weir_sim_agenda *agenda, uint64_t capacity, size_t item_bytes);
void weir_sim_agenda_close(weir_sim_agenda *agenda);

static inline uint32_t weir_sim_agenda_room(const weir_sim_agenda *agenda) {
    return agenda->capacity - agenda->count;
}

/* INT64_MAX when there is nothing. */
static inline int64_t weir_sim_agenda_next(const weir_sim_agenda *agenda) {
    return agenda->count ? agenda->heap[0].time : INT64_MAX;
}

/* Copies the item in; there must be room. */
void weir_sim_agenda_add(weir_sim_agenda *agenda, int64_t time, const void *item);
/* Copies the earliest out; there must be one. */
void weir_sim_agenda_take(weir_sim_agenda *agenda, void *item);

#endif /* WEIR_SIM_AGENDA_H */
