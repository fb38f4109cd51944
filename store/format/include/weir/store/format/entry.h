/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - one record of a vertex's list, and the order of lists: what delta, cache, cold store and merge share. */
#ifndef WEIR_STORE_FORMAT_ENTRY_H
#define WEIR_STORE_FORMAT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/format/id.h>
#include <weir/store/format/mutation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which list of a vertex: the kind of its records in the high byte. */
typedef uint32_t weir_list;

#define WEIR_LIST_EDGES(relation, direction) ((weir_list)((uint32_t)(relation) << 1 | (uint32_t)(direction)))
#define WEIR_LIST_FEATURES                   ((weir_list)0x01000000u)
#define WEIR_LIST_PUTS                       ((weir_list)0x03000000u)
#define WEIR_LIST_LABEL(label)               ((weir_list)(0x02000000u | (uint32_t)(label)))
#define WEIR_LIST_EVENTS                     ((weir_list)0x04000000u) /* of a source partition; by offset */
#define WEIR_LIST_KIND(list)                 ((list) >> 24)

enum {
    WEIR_LIST_KIND_EDGES = 0,
    WEIR_LIST_KIND_FEATURES = 1,
    WEIR_LIST_KIND_LABEL = 2,
    WEIR_LIST_KIND_PUTS = 3,
    WEIR_LIST_KIND_EVENTS = 4
};

#define WEIR_LIST_KINDS 5u

typedef struct weir_entry {
    weir_vertex neighbor; /* edges; 0 else */
    int64_t time_us;
    uint64_t event; /* of a deletion and of an edge's label: the one that is meant; 0: all, and in WEIR_LIST_PUTS */
    const uint8_t *row;
    uint32_t content; /* of the message that said so; of a deletion and in WEIR_LIST_PUTS 0 */
    uint32_t row_length : 31, deletion : 1;
} weir_entry;

typedef struct weir_name {
    uint16_t vertex_type;
    uint16_t key_length;
    int64_t time_us;
    const char *key;
} weir_name;

/* < 0: a is met before b by a reader that goes newest first. 0: the same record. The order of key.h. */
static inline int weir_entry_order(const weir_entry *a, const weir_entry *b) {
    if (a->time_us != b->time_us) return a->time_us > b->time_us ? -1 : 1;
    if (a->deletion != b->deletion) return a->deletion ? -1 : 1;
    if (a->neighbor != b->neighbor) return a->neighbor < b->neighbor ? -1 : 1;
    if (a->event != b->event) return a->event < b->event ? -1 : 1;
    if (a->content != b->content) return a->content < b->content ? -1 : 1;
    return 0;
}

/* Of two that are the same record, whose row counts: they differ only where a schema has grown in between, and the one
 * that says more is the newer. */
static inline bool weir_entry_says_more(const weir_entry *a, const weir_entry *b) {
    if (a->row_length != b->row_length) return a->row_length > b->row_length;
    return a->row_length && memcmp(a->row, b->row, a->row_length) > 0;
}

static inline size_t weir_entries_row_bytes(const weir_entry *entries, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += entries[i].row_length;
    return bytes;
}

/* The entries get rows of their own, one behind the other from `rows` on. */
static inline void weir_entries_own_rows(weir_entry *entries, size_t count, uint8_t *rows) {
    for (size_t i = 0; i < count; i++) {
        weir_entry *e = &entries[i];
        e->row = e->row_length ? (const uint8_t *)memcpy(rows, e->row, e->row_length) : NULL;
        rows += e->row_length;
    }
}

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_ENTRY_H */
