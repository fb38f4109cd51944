/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.h - which vertices were deleted, and when: asked for every neighbour of every window.
 *
 * Each shard has all deletions, because any may hold an edge to any vertex. They are few (a person asks to be
 * forgotten); when there are none, asking costs one load. A vertex may be deleted, put again and deleted again: all
 * times are kept, so that the past can be asked.
 */
#ifndef WEIR_STORE_DELETED_H
#define WEIR_STORE_DELETED_H

#include <stdint.h>

#include <weir/base/err.h>
#include <weir/store/id.h>

typedef struct weir_deleted weir_deleted;

#define WEIR_DELETED_NEVER INT64_MIN

weir_err weir_deleted_open(weir_deleted **deletedp); /* WEIR_ENOMEM */
void weir_deleted_close(weir_deleted *deleted);
/* Twice is once.  WEIR_ENOMEM.  [shard] */
weir_err weir_deleted_add(weir_deleted *deleted, weir_vertex vertex, int64_t time_us);
/* The newest deletion before before_us, or WEIR_DELETED_NEVER: what is of that time or older is hidden.  [any] */
int64_t weir_deleted_time(weir_deleted *deleted, weir_vertex vertex, int64_t before_us);
/* Every deletion, in no order.  What visit returns.  [any] */
typedef weir_err (*weir_deleted_visit)(void *context, weir_vertex vertex, int64_t time_us);
weir_err weir_deleted_each(weir_deleted *deleted, weir_deleted_visit visit, void *context);
uint64_t weir_deleted_count(const weir_deleted *deleted); /* [any] */

#endif /* WEIR_STORE_DELETED_H */
