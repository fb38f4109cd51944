/* SPDX-License-Identifier: Apache-2.0 */
/* bundling.h - what a vertex has, as the bundles of a sorted file: of a seal, of a shard that is written anew, of files
 * that are merged. */
#ifndef WEIR_STORE_BUNDLING_H
#define WEIR_STORE_BUNDLING_H

#include <stddef.h>

#include <weir/store/base/err.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/entry.h>

/* Rising by id in what a vertex has; one without entries has nothing to tell. */
typedef struct weir_bundling_list {
    weir_list id;
    uint32_t count;
    const weir_entry *entries; /* oldest first: the reverse of weir_entry_order */
} weir_bundling_list;

/* Keys and values of the cold store.  What it returns ends the walk. */
typedef weir_err (*weir_bundling_visit)(void *context, const uint8_t *key, size_t key_length, const uint8_t *value,
                                        size_t value_length);

typedef struct weir_bundling {
    weir_bundling_visit visit;
    void *context;
    weir_bundle_writer bundle; /* its value is the caller's to free, in the end */
} weir_bundling;

/* name: NULL if this does not name the vertex.  WEIR_ENOMEM; what visit returns. */
weir_err weir_bundling_vertex(weir_bundling *bundling, weir_vertex vertex, const weir_name *name,
                              const weir_bundling_list *lists, size_t count);

/* How many bundles a list is, without a name. */
uint32_t weir_bundling_count(const weir_bundling_list *list);

#endif /* WEIR_STORE_BUNDLING_H */
