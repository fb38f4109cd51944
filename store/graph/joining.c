/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joining.c - the bundles of one list wait until its last one has come; those of long lists, which are full as they
 * are, go on as they come.
 */
#include "joining.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>

#include "bundling.h"

#define WAITING_MAX       2048u                         /* bundles of a list … */
#define WAITING_BYTES_MAX (128u << 10)                  /* … and their bytes: a longer one is let through */
#define PART_END          (1u + WEIR_VERTEX_BYTES + 4u) /* what keys of a list have in common: kind, vertex, part */

typedef struct joining_record {
    size_t key_at; /* the value lies behind it */
    uint32_t key_length, value_length;
    uint64_t sequence;
} joining_record;

typedef struct joiner {
    weir_engine_emit emit;
    void *context;
    weir_buf bytes; /* of those that wait */
    joining_record waiting[WAITING_MAX];
    size_t count;
    uint8_t part[PART_END]; /* whose they are, or which is let through */
    bool in_part, lets_through;
    weir_entry *entries;
    size_t entry_count, entry_room;
    weir_bundling bundling;
    uint64_t sequence; /* of what is bundled anew: the newest of what is in it */
} joiner;

static weir_engine_record joining_record_at(const joiner *j, size_t at) {
    const joining_record *r = &j->waiting[at];
    const uint8_t *key = (const uint8_t *)j->bytes.bytes + r->key_at;
    return (weir_engine_record){key, key + r->key_length, r->key_length, r->value_length, r->sequence};
}

/* What waits, as it came. */
static weir_err joining_let_through(joiner *j) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < j->count; i++) {
        const weir_engine_record record = joining_record_at(j, i);
        err = j->emit(j->context, &record);
    }
    j->count = 0;
    weir_buf_clear(&j->bytes);
    return err;
}

/* false: one of them is damaged, or there was no memory; then nothing is joined. */
static bool joining_take_apart(joiner *j, weir_bundle_key *keyp) {
    j->entry_count = 0;
    for (size_t i = 0; i < j->count; i++) {
        const weir_engine_record record = joining_record_at(j, i);
        weir_bundle_reader reader;
        weir_bundle_step step = WEIR_BUNDLE_ENTRY;
        if (!weir_bundle_key_read(record.key, record.key_length, keyp) ||
            !weir_bundle_open(&reader, keyp, record.value, record.value_length))
            return false;
        while (step == WEIR_BUNDLE_ENTRY) {
            if (!WEIR_GROW(j->entries, j->entry_room, j->entry_count)) return false;
            step = weir_bundle_next(&reader, &j->entries[j->entry_count]);
            j->entry_count += step == WEIR_BUNDLE_ENTRY;
        }
        if (step == WEIR_BUNDLE_DAMAGED) return false;
        if (record.sequence > j->sequence) j->sequence = record.sequence;
    }
    return true;
}

/* JOIN-J2: what is written anew gets a hash of its own, and would look as if it were right. */
static bool joining_are_as_written(const joiner *j) {
    bool are = true;
    for (size_t i = 0; are && i < j->count; i++) {
        const weir_engine_record record = joining_record_at(j, i);
        weir_bundle_key key;
        are = weir_bundle_key_read(record.key, record.key_length, &key) &&
              weir_bundle_is_as_written(&key, record.value, record.value_length);
    }
    return are;
}

static int joining_compare(const void *a, const void *b) {
    return weir_entry_order(b, a);
}

/* Oldest first, as bundling takes them. Seals follow one another, so most lists come newest first and need no more than
 * to be turned round. */
static void joining_put_in_order(joiner *j) {
    bool in_order = true;
    for (size_t low = 0, high = j->entry_count; low + 1 < high; low++) {
        const weir_entry first = j->entries[low];
        j->entries[low] = j->entries[--high];
        j->entries[high] = first;
    }
    for (size_t i = 1; in_order && i < j->entry_count; i++)
        in_order = joining_compare(&j->entries[i - 1], &j->entries[i]) <= 0;
    if (!in_order) qsort(j->entries, j->entry_count, sizeof *j->entries, joining_compare);
}

/* Of records that are the same, the one that says more. */
static void joining_leave_out_same(joiner *j) {
    size_t kept = 0;
    for (size_t i = 0; i < j->entry_count; i++) {
        weir_entry *last = kept ? &j->entries[kept - 1] : NULL;
        if (!last || weir_entry_order(last, &j->entries[i]) != 0)
            j->entries[kept++] = j->entries[i];
        else if (weir_entry_says_more(&j->entries[i], last))
            *last = j->entries[i];
    }
    WEIR_ASSERT(kept <= j->entry_count); /* JOIN-J1 */
    j->entry_count = kept;
}

static weir_err joining_emit_bundle(void *context, const uint8_t *key, size_t key_length, const uint8_t *value,
                                    size_t value_length) {
    joiner *j = context;
    const weir_engine_record record = {key, value, key_length, value_length, j->sequence};
    return j->emit(j->context, &record);
}

/* What waits, as few bundles where it becomes half as many: where they are full, or wide, nothing is gained. */
static weir_err joining_end_part(joiner *j) {
    weir_bundle_key key;
    weir_err err = WEIR_OK;
    j->sequence = 0;
    if (j->count > 1 && joining_take_apart(j, &key)) {
        joining_put_in_order(j);
        joining_leave_out_same(j);
        const weir_bundling_list list = {key.part - 1u, (uint32_t)j->entry_count, j->entries};
        if (2 * weir_bundling_count(&list) <= j->count && joining_are_as_written(j)) {
            err = weir_bundling_vertex(&j->bundling, key.vertex, NULL, &list, 1);
            j->count = 0;
        }
    }
    return err ? err : joining_let_through(j);
}

/* Notes of events are found by their keys, and a name has one bundle, or a few. */
static bool joining_may_join(const weir_engine_record *record) {
    weir_bundle_key key;
    return weir_bundle_key_read(record->key, record->key_length, &key) && key.part != WEIR_BUNDLE_NAMED &&
           key.part != WEIR_BUNDLE_PART(WEIR_LIST_EVENTS);
}

static weir_err joining_wait(joiner *j, const weir_engine_record *record) {
    j->waiting[j->count] = (joining_record){j->bytes.length, (uint32_t)record->key_length,
                                            (uint32_t)record->value_length, record->sequence};
    weir_buf_append(&j->bytes, record->key, record->key_length);
    weir_buf_append(&j->bytes, record->value, record->value_length);
    if (weir_buf_err(&j->bytes)) return WEIR_NOMEM("to join bundles");
    j->count++;
    return WEIR_OK;
}

static weir_err joining_add(void *state, const weir_engine_record *record) {
    joiner *j = state;
    const bool goes_on =
        j->in_part && record->key_length == WEIR_BUNDLE_KEY_BYTES && memcmp(j->part, record->key, PART_END) == 0;
    weir_err err = goes_on ? WEIR_OK : joining_end_part(j);
    if (err) return err;
    if (!goes_on) {
        j->in_part = joining_may_join(record);
        j->lets_through = !j->in_part;
        if (j->in_part) memcpy(j->part, record->key, PART_END);
    }
    const size_t bytes = j->bytes.length + record->key_length + record->value_length;
    if (!j->lets_through && (j->count == WAITING_MAX || bytes > WAITING_BYTES_MAX)) {
        err = joining_let_through(j);
        j->lets_through = true;
    }
    if (err) return err;
    return j->lets_through ? j->emit(j->context, record) : joining_wait(j, record);
}

static weir_err joining_end(void *state) {
    return joining_end_part(state);
}

static weir_err joining_open(weir_engine_emit emit, void *context, void **statep) {
    joiner *j = weir_calloc(1, sizeof *j);
    *statep = j;
    if (!j) return WEIR_NOMEM("to join bundles");
    j->emit = emit;
    j->context = context;
    j->bundling = (weir_bundling){.visit = joining_emit_bundle, .context = j};
    return WEIR_OK;
}

static void joining_close(void *state) {
    joiner *j = state;
    if (!j) return;
    weir_buf_free(&j->bundling.bundle.value);
    weir_buf_free(&j->bytes);
    weir_free(j->entries);
    weir_free(j);
}

const weir_engine_joining weir_joining = {joining_open, joining_add, joining_end, joining_close};
