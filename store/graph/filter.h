/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - whether a vertex may have a name: a Bloom filter, of which one cache line is looked at.
 *
 * Most claims of a name that the table of names does not have are of vertices that nobody has ever put: a payment is
 * new each time. Asking the cold store for each of them costs more than mapping the payment. What was added is never
 * denied; what was not is denied but for about one in a hundred at ten bits each, and that only costs the look.
 */
#ifndef WEIR_STORE_FILTER_H
#define WEIR_STORE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/base/err.h>
#include <weir/store/id.h>

typedef struct weir_filter weir_filter;

weir_err weir_filter_open(size_t bytes_max, weir_filter **filterp); /* WEIR_ENOMEM */
void weir_filter_close(weir_filter *filter);
void weir_filter_add(weir_filter *filter, weir_vertex vertex);         /* [any] */
bool weir_filter_has(const weir_filter *filter, weir_vertex vertex);   /* false: was never added  [any] */
void weir_filter_ahead(const weir_filter *filter, weir_vertex vertex); /* begins to fetch the line  [any] */
/* Names that it is worth adding; above, it says yes too often. */
size_t weir_filter_capacity(const weir_filter *filter);

#endif /* WEIR_STORE_FILTER_H */
