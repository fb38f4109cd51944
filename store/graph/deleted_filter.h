/* SPDX-License-Identifier: Apache-2.0 */
/* deleted_filter.h - which vertices may have been deleted: one for all shards, in memory that does not grow. */
#ifndef WEIR_STORE_DELETED_FILTER_H
#define WEIR_STORE_DELETED_FILTER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/store/base/err.h>
#include <weir/store/format/id.h>

typedef struct weir_deleted_filter weir_deleted_filter;

/* Memory is touched as it fills. At ten bits a deletion about one in a hundred other vertices may have been deleted, at
 * five about one in ten.  WEIR_ENOMEM */
weir_err weir_deleted_filter_open(size_t bytes, weir_deleted_filter **filterp);
void weir_deleted_filter_close(weir_deleted_filter *filter);
void weir_deleted_filter_add(weir_deleted_filter *filter, weir_vertex vertex); /* [any] */
/* false: never.  [any] */
bool weir_deleted_filter_may_have(const weir_deleted_filter *filter, weir_vertex vertex);
bool weir_deleted_filter_any(const weir_deleted_filter *filter); /* false: none was ever added  [any] */
/* Fetches what will be asked about the vertex.  [any] */
void weir_deleted_filter_ahead(const weir_deleted_filter *filter, weir_vertex vertex);

#endif /* WEIR_STORE_DELETED_FILTER_H */
