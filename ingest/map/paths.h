/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - the fields of a source as a tree of names, which the JSON reader walks as it descends. */
#ifndef WEIR_INGEST_PATHS_H
#define WEIR_INGEST_PATHS_H

#include "message.h"

typedef struct weir_path_node {
    const char *name; /* borrowed from the schema */
    uint32_t length;
    uint32_t field; /* WEIR_SCHEMA_NONE: only a step on the way */
    uint64_t seen;  /* the message that had the name last       */
    struct weir_path_node *child, *sibling;
    struct weir_path_node *hint; /* the child that is likely to come next: messages of a source keep their order */
} weir_path_node;

struct weir_paths {
    weir_path_node root;
    weir_arena *arena;
    uint64_t message; /* counts them, for seen */
};

#endif /* WEIR_INGEST_PATHS_H */
