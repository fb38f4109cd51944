/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - stripes of two generations of open-addressing tables.
 *
 * When the young table is full it becomes the old one, and the old one is emptied: what has not been asked for during a
 * whole generation is forgotten. What is asked for is moved to the young. No weir_table: with a tag each id would take
 * half as much again of the bytes that it was given, and it would remember fewer.
 */
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "names.h"

#define STRIPES   64u
#define SLOTS_MIN 64u

/* An empty slot is 0. Should a vertex have that id, it is never remembered, and named each time. */
typedef weir_vertex names_slot;

typedef struct names_stripe {
    _Alignas(64) weir_mutex mutex; /* guards the rest */
    names_slot *_Atomic young;     /* these two are atomic for weir_names_ahead, which takes no lock */
    names_slot *_Atomic old;
    int64_t *young_us, *old_us; /* the times of their names; NULL: not timed */
    size_t count;               /* in young */
} names_stripe;

struct weir_names {
    bool timed;
    size_t capacity; /* of each table; a power of two */
    names_stripe stripes[STRIPES];
};

weir_err weir_names_open(size_t bytes_max, bool timed, weir_names **namesp) {
    const size_t slot_bytes = sizeof(names_slot) + (timed ? sizeof(int64_t) : 0);
    *namesp = NULL;
    weir_names *names = weir_aligned_alloc(_Alignof(weir_names), sizeof *names);
    if (!names) return WEIR_NOMEM("for the table of names");
    memset(names, 0, sizeof *names);
    names->timed = timed;
    names->capacity = SLOTS_MIN;
    while (names->capacity * 2 * 2 * STRIPES * slot_bytes <= bytes_max)
        names->capacity *= 2;
    bool fits = true;
    for (names_stripe *s = names->stripes; s < names->stripes + STRIPES; s++) {
        weir_mutex_init(&s->mutex, WEIR_RANK_LEAF, "names stripe");
        s->young = weir_calloc(names->capacity, sizeof(names_slot));
        s->old = weir_calloc(names->capacity, sizeof(names_slot));
        fits = fits && s->young && s->old;
        if (!timed) continue;
        s->young_us = weir_calloc(names->capacity, sizeof(int64_t));
        s->old_us = weir_calloc(names->capacity, sizeof(int64_t));
        fits = fits && s->young_us && s->old_us;
    }
    if (!fits) {
        weir_names_close(names);
        return WEIR_NOMEM("for the table of names");
    }
    *namesp = names;
    return WEIR_OK;
}

void weir_names_close(weir_names *names) {
    if (!names) return;
    for (size_t i = 0; i < STRIPES; i++) {
        weir_free(names->stripes[i].young);
        weir_free(names->stripes[i].old);
        weir_free(names->stripes[i].young_us);
        weir_free(names->stripes[i].old_us);
        weir_mutex_destroy(&names->stripes[i].mutex);
    }
    weir_free(names);
}

static uint64_t names_mix(weir_vertex vertex) {
    uint64_t h = weir_vertex_fold(vertex) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static names_stripe *names_stripe_of(weir_names *names, weir_vertex vertex) {
    return &names->stripes[names_mix(vertex) >> 58];
}

/* The vertex's slot, or the empty one where it belongs. */
static names_slot *names_find(const weir_names *names, names_slot *table, weir_vertex vertex) {
    size_t at = (size_t)names_mix(vertex) & (names->capacity - 1);
    while (table[at] && table[at] != vertex)
        at = (at + 1) & (names->capacity - 1);
    return &table[at];
}

static void names_insert(const weir_names *names, names_stripe *s, weir_vertex vertex, int64_t time_us) {
    if (s->count * 4 >= names->capacity * 3) {
        names_slot *emptied = s->old;
        int64_t *emptied_us = s->old_us;
        s->old = s->young;
        s->old_us = s->young_us;
        s->young = memset(emptied, 0, names->capacity * sizeof(names_slot));
        s->young_us = emptied_us;
        s->count = 0;
    }
    WEIR_ASSERT(s->count < names->capacity); /* else a search would not end */
    names_slot *at = names_find(names, s->young, vertex);
    *at = vertex;
    if (names->timed) s->young_us[at - s->young] = time_us;
    s->count++;
}

/* Whether either table has it; the young one has it from then on. */
static bool names_known(const weir_names *names, names_stripe *s, weir_vertex vertex) {
    if (*names_find(names, s->young, vertex)) return true;
    const names_slot *old = names_find(names, s->old, vertex);
    if (!*old) return false;
    names_insert(names, s, vertex, names->timed ? s->old_us[old - s->old] : 0);
    return true;
}

/* Both tables, because a vertex that is new, as most are, is looked for in both. If they are swapped in between, this
 * fetches in vain: their addresses are read without the lock, and not followed. */
void weir_names_ahead(weir_names *names, weir_vertex vertex) {
    const names_stripe *s = names_stripe_of(names, vertex);
    const size_t at = (size_t)names_mix(vertex) & (names->capacity - 1);
    __builtin_prefetch(atomic_load_explicit(&s->young, memory_order_relaxed) + at);
    __builtin_prefetch(atomic_load_explicit(&s->old, memory_order_relaxed) + at);
}

bool weir_names_claim(weir_names *names, weir_vertex vertex, int64_t time_us, int64_t renew_us) {
    names_stripe *s = names_stripe_of(names, vertex);
    weir_mutex_lock(&s->mutex);
    bool wanted = !names_known(names, s, vertex);
    if (wanted) {
        names_insert(names, s, vertex, time_us);
    } else if (renew_us && names->timed) {
        int64_t *named_us = &s->young_us[names_find(names, s->young, vertex) - s->young], apart_us;
        bool later = time_us > *named_us;
        wanted = __builtin_sub_overflow(later ? time_us : *named_us, later ? *named_us : time_us, &apart_us) ||
                 apart_us >= renew_us;
        if (wanted && later) *named_us = time_us; /* a name that is newer than the put stays what others rely on */
    }
    weir_mutex_unlock(&s->mutex);
    return wanted;
}
