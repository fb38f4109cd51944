/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c - a ring of ids in the order of their offsets, and a table that finds an id in it; both grow with the ids
 * that the window really has. */
#include <stdbool.h>

#include <weir/ingest/pipeline/repeats.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/table.h>

#define RING_MIN   64u /* a power of two */
#define NOTES_A_GO 4096u
#define LOAD_BYTES (4u << 20)

typedef struct repeats_entry {
    uint64_t event, offset;
    uint32_t content;
    bool again; /* the index found an older one of the id, which no window reached any more */
} repeats_entry;

/* An id, by the newest entry that has it. */
typedef struct repeats_id {
    uint32_t tag, number;
} repeats_id;

/* Entries are numbered as they come, beyond 2^32 from 0 again: the capacity divides that, so the last bits of a number
 * are its place in the ring. */
struct weir_repeats {
    uint32_t window;
    uint32_t capacity, count; /* of the ring: a power of two, or 0 */
    uint32_t oldest;          /* its number                        */
    repeats_entry *ring;
    weir_table ids;
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
    weir_table_free(&repeats->ids);
    weir_free(repeats);
}

static repeats_entry *repeats_at(const weir_repeats *repeats, uint32_t number) {
    return &repeats->ring[number & (repeats->capacity - 1)];
}

/* Event ids are keyed hashes: no sender can choose where they stand. */
static repeats_id *repeats_find(const weir_repeats *repeats, uint64_t event) {
    repeats_id *id = weir_table_first(&repeats->ids, event, sizeof *id);
    while (id && repeats_at(repeats, id->number)->event != event)
        id = weir_table_next(&repeats->ids, id, sizeof *id);
    return id;
}

/* Of the table a half is free then, more than it would see to by itself: most ids are new, and found to be so at the
 * first place. */
static bool repeats_grow(weir_repeats *repeats) {
    uint32_t capacity = repeats->capacity ? repeats->capacity * 2 : RING_MIN;
    if (!weir_table_reserve(&repeats->ids, capacity, sizeof(repeats_id))) return false;
    repeats_entry *ring = weir_calloc(capacity, sizeof *ring);
    if (!ring) return false;
    for (uint32_t i = 0; i < repeats->count; i++)
        ring[(repeats->oldest + i) & (capacity - 1)] = *repeats_at(repeats, repeats->oldest + i);
    weir_free(repeats->ring);
    repeats->ring = ring;
    repeats->capacity = capacity;
    return true;
}

weir_repeat weir_repeats_ask(const weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset,
                             uint64_t *firstp) {
    const repeats_id *id = repeats_find(repeats, event);
    *firstp = offset;
    if (!id) return WEIR_REPEAT_FIRST;
    const repeats_entry *first = repeats_at(repeats, id->number);
    WEIR_ASSERT(id->number - repeats->oldest < repeats->count && first->offset < offset);
    if (offset - first->offset > repeats->window) return WEIR_REPEAT_FIRST; // PIPELINE-R1
    *firstp = first->offset;
    return first->content == content ? WEIR_REPEAT_SAME : WEIR_REPEAT_OTHER;
}

weir_err weir_repeats_add(weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset) {
    if (repeats->window == 0) return WEIR_OK;
    if (repeats->count == repeats->capacity && !repeats_grow(repeats))
        return WEIR_NOMEM("for the event ids of a partition; lower ingest.event_window");
    uint32_t number = repeats->oldest + repeats->count;
    WEIR_ASSERT(repeats->count < repeats->capacity);
    WEIR_ASSERT(repeats->count == 0 || repeats_at(repeats, number - 1)->offset < offset);
    repeats_id *id = repeats_find(repeats, event);
    *repeats_at(repeats, number) = (repeats_entry){event, offset, content, id != NULL};
    if (!id) id = weir_table_add(&repeats->ids, event, sizeof *id);
    id->number = number;
    repeats->count++;
    return WEIR_OK;
}

void weir_repeats_undo(weir_repeats *repeats, uint64_t offset) {
    while (repeats->count) {
        uint32_t number = repeats->oldest + repeats->count - 1;
        const repeats_entry *undone = repeats_at(repeats, number);
        if (undone->offset < offset) return; // PIPELINE-R2
        repeats_id *id = repeats_find(repeats, undone->event);
        bool older = false;
        WEIR_ASSERT(id && id->number == number);
        while (undone->again && !older && number-- != repeats->oldest)
            older = repeats_at(repeats, number)->event == undone->event;
        if (older) {
            id->number = number;
        } else {
            weir_table_remove(&repeats->ids, id, sizeof *id);
        }
        repeats->count--;
    }
}

void weir_repeats_forget(weir_repeats *repeats, uint64_t offset) {
    while (repeats->count) {
        const repeats_entry *oldest = repeats_at(repeats, repeats->oldest);
        if (oldest->offset >= offset || offset - oldest->offset <= repeats->window) return;
        repeats_id *id = repeats_find(repeats, oldest->event);
        WEIR_ASSERT(id);
        if (id->number == repeats->oldest) weir_table_remove(&repeats->ids, id, sizeof *id);
        repeats->oldest++;
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
