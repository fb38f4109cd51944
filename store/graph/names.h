/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - which vertices have been named not long ago: so that most puts need not carry a name.
 *
 * A name's record says the same each time that it is written (a name is its vertex: id.h), so writing one again is
 * never wrong: it costs its bytes. Looking into the cold store whether it is there costs a read from the disk for each
 * vertex that is new, and payments are new each time; a filter in front of that has room for so many and no more. So
 * the cold store is not asked: what the table has forgotten, and all after a start, is named once more. What a name
 * costs does not depend on how many there are.
 *
 * Of a type that is forgotten names go, too, once nothing else is left of the vertex (trim.h). So a put of such a type
 * relies on a name for a while only, by the times of both: what relies on an old name is old itself.
 */
#ifndef WEIR_STORE_NAMES_H
#define WEIR_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/store/base/err.h>
#include <weir/store/format/id.h>

typedef struct weir_names weir_names;

/* timed: there are claims that are to be renewed.  WEIR_ENOMEM */
weir_err weir_names_open(size_t bytes_max, bool timed, weir_names **namesp);
void weir_names_close(weir_names *names);
/* A claim of this vertex follows soon: begins to fetch what it will look at.  [any] */
void weir_names_ahead(weir_names *names, weir_vertex vertex);
/* Whether the put of this time is to carry the vertex's name; from then on others are not whose times are less than
 * renew_us apart from it. 0: any.  [any] */
bool weir_names_claim(weir_names *names, weir_vertex vertex, int64_t time_us, int64_t renew_us);

#endif /* WEIR_STORE_NAMES_H */
