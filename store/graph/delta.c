/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta.c - stripes of tables over one arena.
 *
 * A vertex with a million edges in one seal interval must not make an insert slow: entries arrive nearly in time order,
 * so the place is looked for from the newest end, by doubling steps and then by halves.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/stored.h>

#include "delta_private.h"

#define PILED_MIN      64u
#define DELETION_BYTES 192u /* of one here and in the table that readers ask (deleted.h), at most */
#define PILED_BYTES    72u  /* of a node: where it stands, and its places while it is sorted (delta_walk.c) */

/* --- life ------------------------------------------------------------------------------------------------------- */

weir_err weir_delta_open(size_t bytes_max, bool pile, weir_delta **deltap) {
    *deltap = NULL;
    weir_delta *delta = weir_aligned_alloc(_Alignof(weir_delta), sizeof *delta);
    if (!delta) return WEIR_NOMEM("for a delta");
    memset(delta, 0, sizeof *delta);
    weir_err err = weir_arena_open(bytes_max, &delta->arena);
    if (err) {
        weir_free(delta);
        return err;
    }
    delta->pile = pile;
    atomic_init(&delta->references, 1);
    for (size_t i = 0; i < STRIPES; i++)
        weir_mutex_init(&delta->stripes[i].mutex, WEIR_RANK_LEAF, "delta stripe");
    *deltap = delta;
    return WEIR_OK;
}

weir_delta *weir_delta_keep(weir_delta *delta) {
    if (delta) atomic_fetch_add_explicit(&delta->references, 1, memory_order_relaxed);
    return delta;
}

void weir_delta_release(weir_delta *delta) {
    if (!delta || atomic_fetch_sub_explicit(&delta->references, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < STRIPES; i++) {
        weir_mutex_destroy(&delta->stripes[i].mutex);
        weir_table_free(&delta->stripes[i].slots);
    }
    weir_free(delta->piled);
    weir_free(delta->deletions);
    weir_arena_close(delta->arena);
    weir_free(delta);
}

void weir_delta_freeze(weir_delta *delta) {
    atomic_store_explicit(&delta->frozen, true, memory_order_release);
}

bool weir_delta_is_pile(const weir_delta *delta) {
    return delta->pile;
}

void weir_delta_unpile(weir_delta *delta) {
    WEIR_ASSERT(delta->piled_count == 0);
    delta->pile = false;
}

size_t weir_delta_bytes(const weir_delta *delta) {
    return atomic_load_explicit(&delta->bytes, memory_order_relaxed);
}

size_t weir_delta_records(const weir_delta *delta) {
    return atomic_load_explicit(&delta->records, memory_order_relaxed);
}

/* --- finding ---------------------------------------------------------------------------------------------------- */

/* By the upper half of the bits: the table of a stripe takes the lower one. */
static size_t delta_stripe_number(weir_vertex vertex) {
    return (weir_hash_mix(weir_vertex_fold(vertex)) >> 32) % STRIPES;
}

/* In a pile nothing is found. */
static delta_node *delta_node_find(const delta_stripe *s, weir_vertex vertex) {
    const delta_slot *slot = weir_table_first(&s->slots, weir_vertex_fold(vertex), sizeof *slot);
    while (slot && slot->node->vertex != vertex)
        slot = weir_table_next(&s->slots, slot, sizeof *slot);
    return slot ? slot->node : NULL;
}

/* --- applying --------------------------------------------------------------------------------------------------- */

static bool delta_pile_reserve(weir_delta *delta) {
    if (delta->piled_count < delta->piled_capacity) return true;
    size_t capacity = delta->piled_capacity ? delta->piled_capacity * 2 : PILED_MIN;
    delta_node **piled = weir_realloc_array(delta->piled, capacity, sizeof *piled);
    if (!piled) return false;
    delta->piled = piled;
    delta->piled_capacity = capacity;
    return true;
}

static delta_node *delta_node_get(weir_delta *delta, delta_stripe *s, weir_vertex vertex) {
    delta_node *n = delta_node_find(s, vertex);
    if (n) return n;
    bool room =
        delta->pile ? delta_pile_reserve(delta) : weir_table_reserve(&s->slots, s->slots.count + 1, sizeof(delta_slot));
    if (room) n = weir_arena_calloc(delta->arena, 1, sizeof *n);
    if (!n) return NULL;
    n->vertex = vertex;
    if (delta->pile) {
        delta->piled[delta->piled_count++] = n;
    } else {
        delta_slot *slot = weir_table_add(&s->slots, weir_vertex_fold(vertex), sizeof *slot);
        slot->node = n;
    }
    return n;
}

static delta_list *delta_list_get(weir_delta *delta, delta_node *n, weir_list id) {
    delta_list **at = &n->lists;
    for (; *at && (*at)->id <= id; at = &(*at)->next) {
        if ((*at)->id == id) return *at;
    }
    delta_list *added = weir_arena_calloc(delta->arena, 1, sizeof *added);
    if (!added) return NULL;
    added->id = id;
    added->entries = added->first;
    added->capacity = 1;
    added->next = *at;
    *at = added;
    return added;
}

/* First index whose entry is met by readers no later than `wanted`: where it stands, or where it belongs. */
static uint32_t delta_list_place(const delta_list *l, const weir_entry *wanted) {
    uint32_t high = l->count, step = 1, low;
    while (high > 0 && weir_entry_order(&l->entries[high - 1], wanted) <= 0) {
        high = high > step ? high - step : 0;
        step *= 2;
    }
    low = high;
    high = l->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (weir_entry_order(&l->entries[middle], wanted) > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Puts an entry where it belongs. The same record again takes the newer row: the log's order decides. */
static bool delta_list_insert(weir_delta *delta, delta_list *l, const weir_entry *entry) {
    uint32_t at = delta_list_place(l, entry);
    if (at < l->count && weir_entry_order(&l->entries[at], entry) == 0) {
        l->entries[at] = *entry;
        return true;
    }
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity * 2;
        weir_entry *entries = weir_arena_alloc(delta->arena, capacity * sizeof *entries);
        if (!entries) return false;
        memcpy(entries, l->entries, l->count * sizeof *entries);
        l->entries = entries;
        l->capacity = capacity;
    }
    WEIR_ASSERT(at <= l->count && l->count < l->capacity);
    memmove(&l->entries[at + 1], &l->entries[at], (l->count - at) * sizeof l->entries[0]);
    l->entries[at] = *entry;
    l->count++;
    atomic_fetch_add_explicit(&delta->records, 1, memory_order_relaxed);
    return true;
}

static uint8_t *delta_bytes_copy(weir_delta *delta, const void *bytes, size_t length, size_t prefix_length) {
    uint8_t *copy = weir_arena_alloc_aligned(delta->arena, 1, prefix_length + length);
    if (copy && length) memcpy(copy + prefix_length, bytes, length);
    return copy;
}

static bool delta_put_entry(weir_delta *delta, delta_node *n, weir_list id, const weir_mutation *m, bool deletion) {
    weir_entry entry = {
        .time_us = m->time_us, .event = m->event, .content = deletion ? 0 : m->content, .deletion = deletion};
    delta_list *l = delta_list_get(delta, n, id);
    if (!l) return false;
    if (WEIR_LIST_KIND(id) == WEIR_LIST_KIND_EDGES) entry.neighbor = m->neighbor;
    uint32_t prefix = WEIR_LIST_KIND(id) == WEIR_LIST_KIND_FEATURES ? WEIR_STORED_FEATURES_PREFIX : 0;
    if (prefix + m->row_length) {
        uint8_t *copy = delta_bytes_copy(delta, m->row, m->row_length, prefix);
        if (!copy) return false;
        if (prefix) weir_put_u16(copy, m->type);
        entry.row = copy;
        entry.row_length = (prefix + m->row_length) & INT32_MAX;
    }
    return delta_list_insert(delta, l, &entry);
}

/* A vertex has one name for ever: what was claimed for its id. */
static bool delta_put_name(weir_delta *delta, delta_node *n, const weir_mutation *m) {
    if (n->named && m->time_us > n->name.time_us) n->name.time_us = m->time_us;
    if (n->named) return true;
    const uint8_t *key = delta_bytes_copy(delta, m->key, m->key_length, 0);
    if (!key) return false;
    atomic_fetch_add_explicit(&delta->records, 1, memory_order_relaxed);
    n->name = (weir_name){m->type, m->key_length, m->time_us, (const char *)key};
    n->named = true;
    return true;
}

/* group: all that the event brings for the vertex. Each put leaves a record of its time (key.h): a row, an edge of the
 * same event, or one of its own. */
static bool delta_apply_one(weir_delta *delta, delta_node *n, const weir_mutation *m, const weir_mutation *group,
                            size_t count) {
    switch (m->kind) {
    case WEIR_PUT_VERTEX:
        if (m->key_length && !delta_put_name(delta, n, m)) return false;
        if (m->row_length) return delta_put_entry(delta, n, WEIR_LIST_FEATURES, m, false);
        for (size_t i = 0; i < count; i++)
            if (group[i].kind == WEIR_PUT_EDGE && group[i].time_us == m->time_us) return true;
        return delta_put_entry(delta, n, WEIR_LIST_PUTS, &(weir_mutation){.time_us = m->time_us}, false);
    case WEIR_PUT_EDGE:
    case WEIR_DELETE_EDGE:
        return delta_put_entry(delta, n, WEIR_LIST_EDGES(m->type, m->direction), m, m->kind == WEIR_DELETE_EDGE);
    case WEIR_PUT_LABEL:
        return delta_put_entry(delta, n, WEIR_LIST_LABEL(m->type), m, false);
    case WEIR_NOTE_EVENT:
        return delta_put_entry(delta, n, WEIR_LIST_EVENTS, m, false);
    case WEIR_DELETE_VERTEX:
        return true; /* weir_delta_put_deletion keeps it */
    }
    return true;
}

/* The owner alone changes slots and nodes, so it may look at them without the lock. It does not search: to wait for
 * places on the way would cost more than is gained where a vertex stands further on. */
void weir_delta_ahead(const weir_delta *delta, weir_vertex vertex, weir_delta_stage stage) {
    const weir_table *slots = &delta->stripes[delta_stripe_number(vertex)].slots;
    if (stage == WEIR_DELTA_SLOT) {
        weir_table_ahead(slots, weir_vertex_fold(vertex), sizeof(delta_slot));
    } else {
        const delta_slot *slot = weir_table_home(slots, weir_vertex_fold(vertex), sizeof *slot);
        if (slot) __builtin_prefetch(stage == WEIR_DELTA_NODE ? (const void *)slot->node : slot->node->lists);
    }
}

weir_err weir_delta_apply(weir_delta *delta, const weir_mutation *mutations, size_t count) {
    WEIR_ASSERT(count > 0 && !atomic_load_explicit(&delta->frozen, memory_order_relaxed));
    delta_stripe *s = &delta->stripes[delta_stripe_number(mutations[0].vertex)];
    weir_mutex_lock(&s->mutex); /* GRAPH-S2: all of the event at this vertex, or nothing of it */
    size_t records = weir_delta_records(delta);
    delta_node *n = delta_node_get(delta, s, mutations[0].vertex);
    bool fits = n != NULL;
    for (size_t i = 0; fits && i < count; i++) {
        WEIR_ASSERT(mutations[i].vertex == mutations[0].vertex && mutations[i].offset == mutations[0].offset);
        fits = delta_apply_one(delta, n, &mutations[i], mutations, count);
    }
    if (n && !fits && delta->pile) { /* what is tried again comes as a node of its own: this one need not be sorted */
        delta->piled_count--;
        atomic_store_explicit(&delta->records, records, memory_order_relaxed);
    }
    weir_mutex_unlock(&s->mutex);
    size_t bytes =
        weir_arena_used(delta->arena) + delta->deletion_count * DELETION_BYTES + delta->piled_count * PILED_BYTES;
    atomic_store_explicit(&delta->bytes, bytes, memory_order_relaxed);
    return fits ? WEIR_OK : WEIR_NOMEM("for the delta; raise store.memory");
}

weir_err weir_delta_put_deletion(weir_delta *delta, weir_vertex vertex, int64_t time_us) {
    WEIR_ASSERT(!atomic_load_explicit(&delta->frozen, memory_order_relaxed));
    if (delta->deletion_count == delta->deletion_capacity) {
        size_t capacity = delta->deletion_capacity ? delta->deletion_capacity * 2 : 16;
        delta_deletion *grown = weir_realloc_array(delta->deletions, capacity, sizeof *grown);
        if (!grown) return WEIR_NOMEM("for the delta; raise store.memory");
        delta->deletions = grown;
        delta->deletion_capacity = capacity;
    }
    delta->deletions[delta->deletion_count++] = (delta_deletion){vertex, time_us};
    atomic_fetch_add_explicit(&delta->records, 1, memory_order_relaxed);
    return WEIR_OK;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* A frozen delta is read without its locks; the freeze was published with the version that the reader holds. */
static bool delta_lock_unless_frozen(weir_delta *delta, delta_stripe *s) {
    if (atomic_load_explicit(&delta->frozen, memory_order_acquire)) return false;
    weir_mutex_lock(&s->mutex);
    return true;
}

static const delta_list *delta_list_told(const delta_stripe *s, weir_vertex vertex, weir_list id) {
    const delta_node *n = delta_node_find(s, vertex);
    const delta_list *l = n ? n->lists : NULL;
    while (l && l->id < id)
        l = l->next;
    return l && l->id == id ? l : NULL;
}

/* How many entries are older than before_us: those that stand first. */
static uint32_t delta_list_count_before(const delta_list *l, int64_t before_us) {
    uint32_t low = 0, high = l->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->entries[middle].time_us < before_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t weir_delta_collect(weir_delta *delta, weir_vertex vertex, weir_list id, int64_t before_us, weir_entry *entries,
                          size_t capacity, bool *completep) {
    delta_stripe *s = &delta->stripes[delta_stripe_number(vertex)];
    size_t count = 0;
    *completep = true;
    if (weir_delta_records(delta) == 0) return 0; /* as while nothing comes in: not even a lock is taken */
    bool locked = delta_lock_unless_frozen(delta, s);
    const delta_list *l = delta_list_told(s, vertex, id);
    if (l) {
        uint32_t older = delta_list_count_before(l, before_us);
        count = older < capacity ? older : capacity;
        for (size_t i = 0; i < count; i++)
            entries[i] = l->entries[older - 1 - i];
        *completep = count == older;
    }
    if (locked) weir_mutex_unlock(&s->mutex);
    return count;
}

size_t weir_delta_count(weir_delta *delta, weir_vertex vertex, weir_list id, int64_t before_us) {
    delta_stripe *s = &delta->stripes[delta_stripe_number(vertex)];
    bool locked = delta_lock_unless_frozen(delta, s);
    const delta_list *l = delta_list_told(s, vertex, id);
    size_t count = l ? delta_list_count_before(l, before_us) : 0;
    if (locked) weir_mutex_unlock(&s->mutex);
    return count;
}

/* Of the entries of a span, which stand oldest first, the first that is no deletion. */
static bool delta_list_oldest(const delta_list *l, int64_t newer_than_us, int64_t before_us, int64_t *time_usp) {
    uint32_t low = 0, high = newer_than_us == INT64_MIN ? 0 : l->count;
    while (low < high) { /* entries below low are as old as newer_than_us, or older */
        uint32_t middle = low + (high - low) / 2;
        if (l->entries[middle].time_us <= newer_than_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low < l->count && l->entries[low].deletion && l->entries[low].time_us < before_us)
        low++;
    if (low == l->count || l->entries[low].time_us >= before_us) return false;
    *time_usp = l->entries[low].time_us;
    return true;
}

bool weir_delta_oldest(weir_delta *delta, weir_vertex vertex, weir_list id, int64_t newer_than_us, int64_t before_us,
                       int64_t *time_usp) {
    delta_stripe *s = &delta->stripes[delta_stripe_number(vertex)];
    bool locked = delta_lock_unless_frozen(delta, s);
    const delta_list *l = delta_list_told(s, vertex, id);
    bool found = l && delta_list_oldest(l, newer_than_us, before_us, time_usp);
    if (locked) weir_mutex_unlock(&s->mutex);
    return found;
}

bool weir_delta_name(weir_delta *delta, weir_vertex vertex, weir_name *namep) {
    delta_stripe *s = &delta->stripes[delta_stripe_number(vertex)];
    bool locked = delta_lock_unless_frozen(delta, s);
    const delta_node *n = delta_node_find(s, vertex);
    bool named = n && n->named;
    if (named) *namep = n->name;
    if (locked) weir_mutex_unlock(&s->mutex);
    return named;
}
