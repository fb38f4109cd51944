/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the names that are known to be taken: so that most events need no look into the cold store.
 *
 * A name is its vertex: two names have no id in common (id.h). A claim must also see names that are on their way
 * through a queue: it is this table that has them, so it forgets only what has been there longest. What it has
 * forgotten, or never met, a filter may know to be nobody's (filter.h): that is most of what is new.
 */
#ifndef WEIR_STORE_NAMES_H
#define WEIR_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/base/err.h>
#include <weir/store/id.h>

typedef struct weir_names weir_names;
typedef enum weir_names_answer {
    WEIR_NAMES_UNKNOWN, /* only the store can tell */
    WEIR_NAMES_KNOWN,
    WEIR_NAMES_NEW /* nobody has had it; taken by this question */
} weir_names_answer;

weir_err weir_names_open(size_t bytes_max, weir_names **namesp); /* WEIR_ENOMEM */
void weir_names_close(weir_names *names);
/* The next question is about this vertex: begins to fetch what it will look at.  [any] */
void weir_names_ahead(weir_names *names, weir_vertex vertex);
weir_names_answer weir_names_ask(weir_names *names, weir_vertex vertex); /* [any] */
/* The store has a name for the vertex. After all that it has, complete: from then on the filter is believed.  [any] */
void weir_names_stored(weir_names *names, weir_vertex vertex);
void weir_names_filter_complete(weir_names *names);
size_t weir_names_filter_capacity(const weir_names *names);
/* Remembers; false: it was remembered before.  [any] */
bool weir_names_take(weir_names *names, weir_vertex vertex);

#endif /* WEIR_STORE_NAMES_H */
