/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - the items that score highest, without a look at all of them: a graph of near items in layers, HNSW (Malkov
 * and Yashunin 2018).
 *
 * An item's score for a query is query · item + trend. With one number more, of which the query has none, all items are
 * as long as the longest of them; so near items have large products, and a walk to nearer and nearer ones finds those
 * that score highest.
 *
 * THREADS: an index is read-only once it is built, [any]; a searcher belongs to one thread at a time.
 */
#ifndef WEIR_INFERENCE_RECOMMEND_NEAR_H
#define WEIR_INFERENCE_RECOMMEND_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/err.h>

/* Borrowed: rows of items x width. */
typedef struct weir_near_items {
    const float *items, *trends;
    uint32_t count, width;
    float trend_weight;
} weir_near_items;

typedef struct weir_near weir_near;

/* Looks at stopped now and then: true ends it with WEIR_ECANCELLED. The same items, the same index.  WEIR_ENOMEM. */
weir_err weir_near_build(const weir_near_items *items, bool (*stopped)(void *context), void *context,
                         weir_near **nearp);
void weir_near_free(weir_near *near); /* NULL is allowed */

typedef struct weir_near_searcher weir_near_searcher;
/* For an index of so many items, that is looked at for up to wanted_max of them.  WEIR_ENOMEM. */
weir_err weir_near_searcher_open(uint32_t items, uint32_t wanted_max, weir_near_searcher **searcherp);
void weir_near_searcher_close(weir_near_searcher *searcher); /* NULL is allowed */
/* Rows of about the best `wanted` items, in no order; returns how many, which may be fewer. query: width floats. */
uint32_t weir_near_search(const weir_near *near, weir_near_searcher *searcher, const float *query, uint32_t wanted,
                          uint64_t *rows);

#endif /* WEIR_INFERENCE_RECOMMEND_NEAR_H */
