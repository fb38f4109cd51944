/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_private.h - an open snapshot; what describe.c, open.c, load.c and check.c share. */
#ifndef WEIR_STORE_SNAPSHOT_PRIVATE_H
#define WEIR_STORE_SNAPSHOT_PRIVATE_H

#include <stdatomic.h>

#include <weir/store/base/file.h>

#include "files.h"

#define WEIR_SNAPSHOT_PATH_MAX     4096u
#define WEIR_SNAPSHOT_MANIFEST_MAX (1u << 20) /* bytes */

/* What manifest.json says, checked against its own schema. */
typedef struct weir_snapshot_description {
    weir_schema *schema;
    int64_t as_of_us, from_us;
    bool part;
    uint64_t *vertices, *own, *lives, *rows; /* one a type */
    weir_snapshot_described **extras;
    uint32_t *extra_counts;
    bool *precomputed;            /* one an aggregate: of a part */
    uint64_t *edges;              /* relation * 2 + direction */
    uint64_t *deleted;            /* of those, one a relation */
    bool *has_times, *has_events; /* one a relation */
    int64_t *newest_us;
    uint64_t *labels; /* one a label */
} weir_snapshot_description;

/* describe.c.  WEIR_EVERSION, WEIR_EDATA, WEIR_ENOMEM; name stands for the file in messages. */
weir_err weir_snapshot_describe(const char *name, const char *text, size_t length,
                                weir_snapshot_description *descriptionp);
void weir_snapshot_description_free(weir_snapshot_description *description);

/* The numbers of a file, at its end. */
typedef struct weir_snapshot_numbers {
    weir_file *file; /* NULL: there are none */
    uint64_t begin, count;
} weir_snapshot_numbers;

struct weir_snapshot {
    char *folder;
    weir_snapshot_description description;
    weir_npy_folder *arrays;
    weir_snapshot_vertices *vertices;   /* one a type                */
    weir_snapshot_edges *edges;         /* relation * 2 + direction  */
    weir_snapshot_labels *labels;       /* one a label               */
    weir_snapshot_numbers *precomputed; /* one an aggregate          */
    _Atomic uint8_t *alike;             /* one a type: weir_snapshot_lives_alike */
    /* One a type of which an aggregate is precomputed: where each vertex's lives are, and the puts they began with. */
    weir_snapshot_numbers *life_lists, *life_times;
};

/* load.c: edges of all relations and matrices of all types, in large pages.  WEIR_ENOMEM. */
weir_err weir_snapshot_load(weir_snapshot *snapshot);
void weir_snapshot_unload(weir_snapshot *snapshot);

#endif /* WEIR_STORE_SNAPSHOT_PRIVATE_H */
