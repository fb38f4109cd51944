/* SPDX-License-Identifier: Apache-2.0 */
/* deleted.c - one open-addressing table of (vertex, time), several times of a vertex side by side. */
#include <pthread.h>
#include <stdatomic.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>

#include "deleted.h"

#define SLOTS_MIN 64u

typedef struct slot {
    weir_vertex vertex;
    int64_t time_us; /* WEIR_DELETED_NEVER: empty */
} slot;

struct weir_deleted {
    pthread_rwlock_t lock; /* innermost: nothing is taken under it */
    atomic_size_t count;
    size_t capacity;
    slot *slots;
};

static size_t place_of(weir_vertex vertex, size_t capacity) {
    return (size_t)(weir_vertex_fold(vertex) * 0x9e3779b97f4a7c15ull >> 20) & (capacity - 1);
}

static slot *slots_new(size_t capacity) {
    slot *slots = weir_malloc(capacity * sizeof *slots);
    for (size_t i = 0; slots && i < capacity; i++)
        slots[i] = (slot){0, WEIR_DELETED_NEVER};
    return slots;
}

weir_err weir_deleted_open(weir_deleted **deletedp) {
    *deletedp = NULL;
    weir_deleted *deleted = weir_calloc(1, sizeof *deleted);
    slot *slots = slots_new(SLOTS_MIN);
    if (!deleted || !slots) {
        weir_free(deleted);
        weir_free(slots);
        return WEIR_ERR(WEIR_ENOMEM, "no memory for the table of deleted vertices");
    }
    int error = pthread_rwlock_init(&deleted->lock, NULL);
    WEIR_ASSERT(error == 0);
    deleted->slots = slots;
    deleted->capacity = SLOTS_MIN;
    *deletedp = deleted;
    return WEIR_OK;
}

void weir_deleted_close(weir_deleted *deleted) {
    if (!deleted) return;
    pthread_rwlock_destroy(&deleted->lock);
    weir_free(deleted->slots);
    weir_free(deleted);
}

static bool insert(slot *slots, size_t capacity, weir_vertex vertex, int64_t time_us) {
    size_t at = place_of(vertex, capacity);
    for (; slots[at].time_us != WEIR_DELETED_NEVER; at = (at + 1) & (capacity - 1)) {
        if (slots[at].vertex == vertex && slots[at].time_us == time_us) return false;
    }
    slots[at] = (slot){vertex, time_us};
    return true;
}

static bool grow(weir_deleted *deleted) {
    size_t capacity = deleted->capacity * 2;
    slot *slots = slots_new(capacity);
    if (!slots) return false;
    for (size_t i = 0; i < deleted->capacity; i++) {
        const slot *old = &deleted->slots[i];
        if (old->time_us != WEIR_DELETED_NEVER) insert(slots, capacity, old->vertex, old->time_us);
    }
    weir_free(deleted->slots);
    deleted->slots = slots;
    deleted->capacity = capacity;
    return true;
}

weir_err weir_deleted_add(weir_deleted *deleted, weir_vertex vertex, int64_t time_us) {
    bool fits = true;
    if (time_us == WEIR_DELETED_NEVER) time_us++; /* nothing is older, so nothing more is hidden */
    pthread_rwlock_wrlock(&deleted->lock);
    size_t count = atomic_load_explicit(&deleted->count, memory_order_relaxed);
    if (count * 2 >= deleted->capacity) fits = grow(deleted);
    if (fits && insert(deleted->slots, deleted->capacity, vertex, time_us)) {
        atomic_store_explicit(&deleted->count, count + 1, memory_order_release);
    }
    pthread_rwlock_unlock(&deleted->lock);
    return fits ? WEIR_OK : WEIR_ERR(WEIR_ENOMEM, "no memory for the table of deleted vertices");
}

int64_t weir_deleted_time(weir_deleted *deleted, weir_vertex vertex, int64_t before_us) {
    int64_t newest = WEIR_DELETED_NEVER;
    if (atomic_load_explicit(&deleted->count, memory_order_acquire) == 0) return newest;
    pthread_rwlock_rdlock(&deleted->lock);
    for (size_t at = place_of(vertex, deleted->capacity); deleted->slots[at].time_us != WEIR_DELETED_NEVER;
         at = (at + 1) & (deleted->capacity - 1)) {
        const slot *s = &deleted->slots[at];
        if (s->vertex == vertex && s->time_us < before_us && s->time_us > newest) newest = s->time_us;
    }
    pthread_rwlock_unlock(&deleted->lock);
    return newest;
}

uint64_t weir_deleted_count(const weir_deleted *deleted) {
    return atomic_load_explicit(&deleted->count, memory_order_relaxed);
}
