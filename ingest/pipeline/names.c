/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - an open-addressing table of vertices whose next put carries the name. */
#include <stdatomic.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/thread.h>

#include "names.h"

#define CAPACITY_MIN 64u

typedef struct owed {
    weir_vertex vertex;
    bool used;
} owed;

struct weir_names_claimed {
    weir_graph *graph;
    atomic_size_t count;
    weir_mutex mutex; /* LEAF; guards the fields below, and changes of count */
    owed *slots;
    size_t capacity;
};

weir_err weir_names_claimed_open(weir_graph *graph, weir_names_claimed **namesp) {
    *namesp = NULL;
    weir_names_claimed *names = weir_calloc(1, sizeof *names);
    if (!names) return WEIR_ERR(WEIR_ENOMEM, "no memory for the table of claimed names");
    names->graph = graph;
    weir_mutex_init(&names->mutex, WEIR_RANK_LEAF, "claimed names");
    *namesp = names;
    return WEIR_OK;
}

void weir_names_claimed_close(weir_names_claimed *names) {
    if (!names) return;
    weir_mutex_destroy(&names->mutex);
    weir_free(names->slots);
    weir_free(names);
}

/* --- the table, under the mutex --------------------------------------------------------------------------------- */

static size_t home(const weir_names_claimed *names, weir_vertex vertex) {
    return (size_t)(vertex * 0x9e3779b97f4a7c15ull >> 32) & (names->capacity - 1);
}

/* The vertex's slot, or the empty one where it belongs. */
static owed *find(const weir_names_claimed *names, weir_vertex vertex) {
    size_t at = home(names, vertex);
    while (names->slots[at].used && names->slots[at].vertex != vertex)
        at = (at + 1) & (names->capacity - 1);
    return &names->slots[at];
}

static weir_err make_room(weir_names_claimed *names) {
    size_t count = atomic_load_explicit(&names->count, memory_order_relaxed), old_capacity = names->capacity;
    if (old_capacity && count * 4 < old_capacity * 3) return WEIR_OK;
    size_t capacity = old_capacity ? old_capacity * 2 : CAPACITY_MIN;
    owed *slots = weir_calloc(capacity, sizeof *slots), *old = names->slots;
    if (!slots) return WEIR_ERR(WEIR_ENOMEM, "no memory for %zu names that are owed", capacity);
    names->slots = slots;
    names->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].used) *find(names, old[i].vertex) = old[i];
    }
    weir_free(old);
    return WEIR_OK;
}

/* Moves up what stands behind the gap and would not be found across it. */
static void take_out(weir_names_claimed *names, owed *slot) {
    size_t mask = names->capacity - 1, gap = (size_t)(slot - names->slots);
    for (size_t at = (gap + 1) & mask; names->slots[at].used; at = (at + 1) & mask) {
        size_t from_home = (at - home(names, names->slots[at].vertex)) & mask;
        if (from_home < ((at - gap) & mask)) continue;
        names->slots[gap] = names->slots[at];
        gap = at;
    }
    names->slots[gap].used = false;
    atomic_fetch_sub_explicit(&names->count, 1, memory_order_relaxed);
}

/* --- the interface ---------------------------------------------------------------------------------------------- */

static bool none(weir_names_claimed *names) {
    return atomic_load_explicit(&names->count, memory_order_relaxed) == 0;
}

static bool is_owed(weir_names_claimed *names, weir_vertex vertex) {
    if (none(names)) return false;
    weir_mutex_lock(&names->mutex);
    bool found = names->capacity && find(names, vertex)->used;
    weir_mutex_unlock(&names->mutex);
    return found;
}

weir_err weir_names_claim(weir_names_claimed *names, const weir_mutation *put, bool *freep, bool *newp, bool *wantedp) {
    WEIR_ASSERT(put->kind == WEIR_PUT_VERTEX);
    *wantedp = false;
    weir_err err = weir_graph_name_claim(names->graph, put->vertex, put->type, put->key, put->key_length, freep, newp);
    if (!err) *wantedp = *freep && (*newp || is_owed(names, put->vertex));
    return err;
}

weir_err weir_names_owe(weir_names_claimed *names, weir_vertex vertex) {
    weir_mutex_lock(&names->mutex);
    weir_err err = make_room(names);
    if (!err) {
        owed *slot = find(names, vertex);
        if (!slot->used) atomic_fetch_add_explicit(&names->count, 1, memory_order_relaxed);
        *slot = (owed){vertex, true};
    }
    weir_mutex_unlock(&names->mutex);
    return err;
}

void weir_names_put(weir_names_claimed *names, weir_vertex vertex) {
    if (none(names)) return;
    weir_mutex_lock(&names->mutex);
    owed *slot = names->capacity ? find(names, vertex) : NULL;
    if (slot && slot->used) take_out(names, slot);
    weir_mutex_unlock(&names->mutex);
}
