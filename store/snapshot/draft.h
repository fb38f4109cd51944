/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.h - a snapshot while it is being built; what scan.c, vertices.c, edges.c, labels.c, manifest.c and build.c
 * share.
 *
 *   scan      every shard once, in order ──► spills: edges by relation and direction, features, names, labels; puts
 *             that left no row, and those of edges, as lives (lives.h)
 *   deletions are known when the last shard ends: what follows reads through draft_hides
 *   vertices  the ids of each type out of all spills ──► ids.npy, mapped; keys, features
 *   edges     spills again ──► lists, neighbours as indices
 *   labels    spills again, against ids or out's events
 */
#ifndef WEIR_STORE_DRAFT_H
#define WEIR_STORE_DRAFT_H

#include <weir/base/buf.h>
#include <weir/store/snapshot.h>

#include "spill.h"

#define WEIR_DRAFT_PATH_MAX 4096u

typedef struct weir_draft_deletion {
    weir_vertex vertex;
    int64_t time_us;
} weir_draft_deletion;

typedef struct weir_draft_deletions {
    weir_draft_deletion *of; /* by vertex, the newest of each before as_of */
    size_t count, capacity;
} weir_draft_deletions;

typedef struct weir_draft_extra {
    char *name;
    uint32_t type;
    uint64_t columns; /* 0: a mask */
} weir_draft_extra;

typedef struct weir_draft_direction {
    uint64_t edges;
    int64_t oldest_us, newest_us;
    uint64_t sum; /* of a hash of each edge that was written */
} weir_draft_direction;

struct weir_snapshot_draft {
    weir_graph *graph;
    const weir_schema *schema;
    const weir_snapshot_build_opts *opts;
    int64_t as_of_us;
    int64_t age_us; /* from when what expires is as old as it is */
    uint32_t shards;
    char partial[WEIR_DRAFT_PATH_MAX]; /* what is renamed at the end   */
    char spill[WEIR_DRAFT_PATH_MAX];   /* what is removed at the end   */
    weir_draft_deletions deletions;
    weir_npy_map **id_maps; /* one a type */
    weir_npy_array *ids;
    weir_draft_direction *directions; /* relation * 2 + direction */
    uint64_t *label_counts;
    weir_draft_extra *extras;
    uint32_t extra_count;
    weir_snapshot_stats stats;
};

/* "PARTIAL/what" into path, in the manner of printf.  WEIR_ELIMIT. */
weir_err weir_draft_path(const weir_snapshot_draft *draft, char path[WEIR_DRAFT_PATH_MAX], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "OUT.what", beside it, with every link followed.  WEIR_EINVAL, WEIR_ENOTFOUND, WEIR_ELIMIT. */
weir_err weir_draft_beside(const char *out, const char *what, char path[WEIR_DRAFT_PATH_MAX]);

/* scan.c */
weir_err weir_draft_scan(weir_snapshot_draft *draft);
/* What is of this time or older, and expires so, is not seen by any target within the history; the least of int64: all
 * is seen. */
int64_t weir_draft_gone_us(const weir_snapshot_draft *draft, int64_t expire_us);
/* Whether a deletion before as_of hides what vertex had at this time. */
bool weir_draft_hides(const weir_snapshot_draft *draft, weir_vertex vertex, int64_t time_us);
/* The next record of a merge that is visible; for edges, the other end's deletion counts too. */
weir_err weir_draft_next(const weir_snapshot_draft *draft, weir_merge *merge, bool edges, weir_spill_record *recordp,
                         bool *foundp);

/* vertices.c: ids, keys, features of all types. */
weir_err weir_draft_vertices(weir_snapshot_draft *draft);
/* Place of a vertex, or false. */
bool weir_draft_find(const weir_snapshot_draft *draft, uint32_t type, weir_vertex id, uint64_t *indexp);

/* edges.c: both directions of all relations. */
weir_err weir_draft_edges(weir_snapshot_draft *draft);

/* labels.c */
weir_err weir_draft_labels(weir_snapshot_draft *draft);

/* manifest.c: manifest.json. */
weir_err weir_draft_manifest(weir_snapshot_draft *draft);

#endif /* WEIR_STORE_DRAFT_H */
