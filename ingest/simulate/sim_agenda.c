/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_agenda.h"

#include <stdbool.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define PLACE_BITS 32u

weir_err weir_sim_agenda_open(weir_sim_agenda *agenda, uint64_t capacity, size_t item_bytes) {
    WEIR_ASSERT(capacity > 0 && item_bytes > 0);
    *agenda = (weir_sim_agenda){.item_bytes = item_bytes};
    if (capacity > WEIR_SIM_AGENDA_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%llu events would wait at a time, above %u; simulate fewer a day",
                        (unsigned long long)capacity, WEIR_SIM_AGENDA_MAX);
    agenda->capacity = (uint32_t)capacity;
    agenda->heap = weir_calloc(capacity, sizeof *agenda->heap);
    agenda->vacant = weir_calloc(capacity, sizeof *agenda->vacant);
    agenda->items = weir_calloc(capacity, item_bytes);
    if (!agenda->heap || !agenda->vacant || !agenda->items) {
        weir_sim_agenda_close(agenda);
        return WEIR_NOMEM("for an agenda of %u items; simulate fewer accounts or payments a day", (uint32_t)capacity);
    }
    for (uint32_t i = 0; i < agenda->capacity; i++)
        agenda->vacant[i] = agenda->capacity - 1 - i;
    return WEIR_OK;
}

void weir_sim_agenda_close(weir_sim_agenda *agenda) {
    weir_free(agenda->heap);
    weir_free(agenda->vacant);
    weir_free(agenda->items);
    *agenda = (weir_sim_agenda){0};
}

static bool agenda_is_earlier(const weir_sim_agenda_entry *a, const weir_sim_agenda_entry *b) {
    return a->time != b->time ? a->time < b->time : a->serial < b->serial;
}

void weir_sim_agenda_add(weir_sim_agenda *agenda, int64_t time, const void *item) {
    WEIR_ASSERT(agenda->count < agenda->capacity); // SIMULATE-G3
    uint32_t place = agenda->vacant[agenda->capacity - 1 - agenda->count];
    memcpy(agenda->items + place * agenda->item_bytes, item, agenda->item_bytes);
    weir_sim_agenda_entry entry = {time, agenda->serial++ << PLACE_BITS | place};
    uint32_t at = agenda->count++;
    while (at > 0 && agenda_is_earlier(&entry, &agenda->heap[(at - 1) / 2])) {
        agenda->heap[at] = agenda->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->heap[at] = entry;
}

void weir_sim_agenda_take(weir_sim_agenda *agenda, void *item) {
    weir_sim_agenda_entry *heap = agenda->heap;
    WEIR_ASSERT(agenda->count > 0);
    uint32_t place = (uint32_t)heap[0].serial, at = 0;
    WEIR_ASSERT(place < agenda->capacity);
    memcpy(item, agenda->items + place * agenda->item_bytes, agenda->item_bytes);
    agenda->count--;
    agenda->vacant[agenda->capacity - 1 - agenda->count] = place;
    /* The last entry sinks from the top to where it belongs. */
    weir_sim_agenda_entry entry = heap[agenda->count];
    for (uint32_t child = 1; child < agenda->count; child = 2 * at + 1) {
        if (child + 1 < agenda->count && agenda_is_earlier(&heap[child + 1], &heap[child])) child++;
        if (!agenda_is_earlier(&heap[child], &entry)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}
