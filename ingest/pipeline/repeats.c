/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c - a ring of ids in the order of their offsets, and an index of open addressing into it; both grow with the
 * ids that the window really has. */
#include <stdbool.h>
#include <string.h>

#include <weir/ingest/pipeline/repeats.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define RING_MIN    64u /* a power of two */
#define FREE        UINT32_MAX
#define NOTES_A_GO  4096u
#define LOAD_BYTES  (4u << 20)
#define INDEX_TIMES 2u /* slots of the index for each entry of the ring */

typedef struct repeats_entry {
    uint64_t event, offset;
    uint32_t content;
    bool again; /* the index found an older one of the id, which no window reached any more */
} repeats_entry;

struct weir_repeats {
    uint32_t window;
    uint32_t capacity, count; /* of the ring: a power of two, or 0 */
    uint32_t oldest;          /* its place in the ring             */
    repeats_entry *ring;
    uint32_t *index; /* INDEX_TIMES the capacity: never full */
};

weir_err weir_repeats_open(uint32_t window, weir_repeats **repeatsp) {
    *repeatsp = NULL;
    if (window > WEIR_EVENT_WINDOW_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "event ids can be compared with those of %u records at most",
                        WEIR_EVENT_WINDOW_MAX);
    weir_repeats *repeats = weir_calloc(1, sizeof *repeats);
    if (!repeats) return WEIR_NOMEM("for the event ids of a partition");
    repeats->window = window;
    *repeatsp = repeats;
    return WEIR_OK;
}

void weir_repeats_close(weir_repeats *repeats) {
    if (!repeats) return;
    weir_free(repeats->ring);
    weir_free(repeats->index);
    weir_free(repeats);
}

/* Event ids are keyed hashes: no sender can choose where they stand. */
static uint32_t repeats_home(const weir_repeats *repeats, uint64_t event) {
    return (uint32_t)(event >> 16) & (repeats->capacity * INDEX_TIMES - 1);
}

/* Where the index has this id, or the free slot where it would. */
static uint32_t repeats_slot(const weir_repeats *repeats, uint64_t event) {
    uint32_t mask = repeats->capacity * INDEX_TIMES - 1, slot = repeats_home(repeats, event);
    while (repeats->index[slot] != FREE && repeats->ring[repeats->index[slot]].event != event)
        slot = (slot + 1) & mask;
    return slot;
}

static uint32_t repeats_place(const weir_repeats *repeats, uint32_t number) {
    return (repeats->oldest + number) & (repeats->capacity - 1);
}

/* Frees a slot, and moves up those after it that would no longer be found. */
static void repeats_unindex(weir_repeats *repeats, uint32_t hole) {
    uint32_t mask = repeats->capacity * INDEX_TIMES - 1;
    for (uint32_t i = (hole + 1) & mask; repeats->index[i] != FREE; i = (i + 1) & mask) {
        uint32_t home = repeats_home(repeats, repeats->ring[repeats->index[i]].event);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        repeats->index[hole] = repeats->index[i];
        hole = i;
    }
    repeats->index[hole] = FREE;
}

static weir_err repeats_grow(weir_repeats *repeats) {
    weir_repeats grown = *repeats;
    grown.capacity = repeats->capacity ? repeats->capacity * 2 : RING_MIN;
    grown.ring = weir_calloc(grown.capacity, sizeof *grown.ring);
    grown.index = weir_malloc((size_t)grown.capacity * INDEX_TIMES * sizeof *grown.index);
    if (!grown.ring || !grown.index) {
        weir_free(grown.ring);
        weir_free(grown.index);
        return WEIR_NOMEM("for the event ids of a partition; lower ingest.event_window");
    }
    memset(grown.index, 0xff, (size_t)grown.capacity * INDEX_TIMES * sizeof *grown.index);
    grown.oldest = 0;
    for (uint32_t i = 0; i < repeats->count; i++) { /* of two with one id the newer one comes later */
        grown.ring[i] = repeats->ring[repeats_place(repeats, i)];
        grown.index[repeats_slot(&grown, grown.ring[i].event)] = i;
    }
    WEIR_ASSERT((grown.capacity & (grown.capacity - 1)) == 0 && grown.capacity > grown.count);
    weir_free(repeats->ring);
    weir_free(repeats->index);
    *repeats = grown;
    return WEIR_OK;
}

weir_repeat weir_repeats_ask(const weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset,
                             uint64_t *firstp) {
    *firstp = offset;
    if (repeats->count == 0) return WEIR_REPEAT_FIRST;
    uint32_t slot = repeats_slot(repeats, event);
    if (repeats->index[slot] == FREE) return WEIR_REPEAT_FIRST;
    const repeats_entry *first = &repeats->ring[repeats->index[slot]];
    WEIR_ASSERT(first->event == event && first->offset < offset);
    if (offset - first->offset > repeats->window) return WEIR_REPEAT_FIRST; // PIPELINE-R1
    *firstp = first->offset;
    return first->content == content ? WEIR_REPEAT_SAME : WEIR_REPEAT_OTHER;
}

weir_err weir_repeats_add(weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset) {
    if (repeats->window == 0) return WEIR_OK;
    weir_err err = repeats->count == repeats->capacity ? repeats_grow(repeats) : WEIR_OK;
    if (err) return err;
    WEIR_ASSERT(repeats->count < repeats->capacity);
    WEIR_ASSERT(repeats->count == 0 || repeats->ring[repeats_place(repeats, repeats->count - 1)].offset < offset);
    uint32_t slot = repeats_slot(repeats, event), place = repeats_place(repeats, repeats->count);
    repeats->ring[place] = (repeats_entry){event, offset, content, repeats->index[slot] != FREE};
    repeats->index[slot] = place;
    repeats->count++;
    return WEIR_OK;
}

void weir_repeats_undo(weir_repeats *repeats, uint64_t offset) {
    while (repeats->count) {
        uint32_t place = repeats_place(repeats, repeats->count - 1);
        const repeats_entry undone = repeats->ring[place];
        if (undone.offset < offset) return; // PIPELINE-R2
        repeats->count--;
        uint32_t slot = repeats_slot(repeats, undone.event), older = repeats->count;
        while (undone.again && older && repeats->ring[repeats_place(repeats, older - 1)].event != undone.event)
            older--;
        if (undone.again && older)
            repeats->index[slot] = repeats_place(repeats, older - 1);
        else
            repeats_unindex(repeats, slot);
    }
}

void weir_repeats_forget(weir_repeats *repeats, uint64_t offset) {
    while (repeats->count) {
        const repeats_entry *oldest = &repeats->ring[repeats->oldest];
        if (oldest->offset >= offset || offset - oldest->offset <= repeats->window) return;
        uint32_t slot = repeats_slot(repeats, oldest->event);
        if (repeats->index[slot] == repeats->oldest) repeats_unindex(repeats, slot);
        repeats->oldest = repeats_place(repeats, 1);
        repeats->count--;
    }
}

/* The graph gives the newest first, so it is asked for one stretch of the window after the other, the oldest first. */
weir_err weir_repeats_load(weir_repeats *repeats, weir_graph *graph, uint32_t source, uint32_t partition,
                           uint64_t before) {
    uint64_t from = before > repeats->window ? before - repeats->window : 0;
    weir_arena *arena;
    weir_err err = weir_arena_open(LOAD_BYTES, &arena);
    if (err) return err;
    WEIR_ASSERT(repeats->count == 0);
    while (!err && from < before) {
        uint64_t to = before - from > NOTES_A_GO ? from + NOTES_A_GO : before;
        const weir_event_note *notes;
        uint32_t count;
        err = weir_graph_events(graph, source, partition, from, to, arena, &notes, &count);
        while (!err && count--)
            err = weir_repeats_add(repeats, notes[count].event, notes[count].content, notes[count].offset);
        weir_arena_reset(arena);
        from = to;
    }
    weir_arena_close(arena);
    return err;
}

uint32_t weir_repeats_count(const weir_repeats *repeats) {
    return repeats->count;
}
