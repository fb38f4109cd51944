/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.h - a snapshot while it is being built; what scan.c, vertices.c, rows.c, edges.c, labels.c, manifest.c and
 * build.c share.
 *
 *   deletions of vertices, all of them, are in memory
 *   scan      every shard once, in order ──► spills: edges by relation and direction, features, names, labels; the
 *             times of puts: those of edges and of rows as lives (lives.h), those that left neither one by one
 *   vertices  the ids of each type out of all spills ──► ids.npy, mapped
 *   rows      keys, lives and rows of each type
 *   edges     spills again ──► lists, neighbours as indices
 *   labels    spills again, against ids or out's events
 */
#ifndef WEIR_STORE_DRAFT_H
#define WEIR_STORE_DRAFT_H

#include <weir/store/base/buf.h>
#include <weir/store/snapshot/snapshot.h>

#include "spill.h"

#define WEIR_DRAFT_PATH_MAX 4096u

/* Those before as_of, by vertex, then ascending. */
typedef struct weir_draft_deletions {
    weir_vertex *vertices;
    int64_t *times;
    size_t count, capacity;
} weir_draft_deletions;

typedef struct weir_draft_extra {
    char *name;
    uint32_t type;
    uint64_t columns; /* 0: a mask */
} weir_draft_extra;

typedef struct weir_draft_direction {
    uint64_t edges, deleted; /* deleted: of those, the ones with an end */
    int64_t oldest_us, newest_us;
    uint64_t sum; /* of a hash of each edge that was written */
} weir_draft_direction;

struct weir_snapshot_draft {
    weir_graph *graph;    /* NULL: the arrays are those of an archive, or of plain rows */
    uint64_t import_rows; /* of that: nodes and edges                                   */
    const weir_schema *schema;
    const weir_snapshot_build_opts *opts;
    int64_t as_of_us;
    int64_t age_us;   /* ages count back from here                              */
    int64_t reach_us; /* a `history` of the schema counts back from here        */
    int64_t whole_us; /* the first time at which the trimmed store is complete; INT64_MIN: any */
    uint32_t shards;
    char partial[WEIR_DRAFT_PATH_MAX]; /* what is renamed at the end   */
    char spill[WEIR_DRAFT_PATH_MAX];   /* what is removed at the end   */
    weir_draft_deletions deletions;
    weir_npy_map **id_maps; /* one a type */
    weir_npy_array *ids;
    uint64_t *life_counts, *row_counts; /* one a type */
    weir_draft_direction *directions;   /* relation * 2 + direction */
    uint64_t *label_counts;
    weir_draft_extra *extras;
    uint32_t extra_count;
    weir_snapshot_stats stats;
};

/* "PARTIAL/what" into path, in the manner of printf.  WEIR_ELIMIT. */
weir_err weir_draft_path(const weir_snapshot_draft *draft, char path[WEIR_DRAFT_PATH_MAX], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new array there, as weir_npy_writer_open. */
weir_err weir_draft_array(const weir_snapshot_draft *draft, weir_npy_type type, uint64_t rows, uint64_t columns,
                          weir_npy_writer **writerp, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Beside the schema's arrays, one row a vertex of the type: a matrix of so many columns, or, where they are 0, a mask.
 * WEIR_EDATA the name; WEIR_ELIMIT one too many; errors of a file. */
weir_err weir_draft_extra_open(weir_snapshot_draft *draft, uint32_t type, const char *name, uint64_t columns,
                               weir_npy_writer **writerp);

/* build.c: OUT.partial and OUT.spill are made, `write` puts the arrays there, and OUT appears when all of it is whole
 * and durable. What the draft has by then besides its paths, `write` may use; schema and opts it must have. */
weir_err weir_draft_make(weir_snapshot_draft *draft, weir_err (*write)(weir_snapshot_draft *draft, void *context),
                         void *context);
/* Frees the draft's tables, not the draft. */
void weir_draft_close(weir_snapshot_draft *draft);

/* "OUT.what", beside it, with every link followed.  WEIR_EINVAL, WEIR_ENOTFOUND, WEIR_ELIMIT. */
weir_err weir_draft_beside(const char *out, const char *what, char path[WEIR_DRAFT_PATH_MAX]);

/* seen.c: the targets of a snapshot are those from `from` to as_of; what none of them sees is left out. */
weir_err weir_draft_deletions_read(weir_snapshot_draft *draft);
/* Of one vertex, ascending; *countp 0: none. Borrowed. */
const int64_t *weir_draft_deletions_of(const weir_snapshot_draft *draft, weir_vertex vertex, size_t *countp);
/* The first time for which the snapshot is complete for the vertices of a type, and for a relation's edges; INT64_MIN:
 * any. */
int64_t weir_draft_type_from_us(const weir_snapshot_draft *draft, uint32_t type);
int64_t weir_draft_relation_from_us(const weir_snapshot_draft *draft, uint32_t relation);
/* The same for all types and relations. It may be after as_of: then the snapshot is complete for no time. */
int64_t weir_draft_all_from_us(const weir_snapshot_draft *draft);
/* An edge of this time or older has expired for all targets; INT64_MIN: none has. */
int64_t weir_draft_gone_us(const weir_snapshot_draft *draft, uint32_t relation);
/* Whether any target from from_us on sees what begins at time_us and ends at until_us; deleted: by a deletion. */
bool weir_draft_sees(const weir_snapshot_draft *draft, int64_t from_us, int64_t time_us, int64_t until_us,
                     bool deleted);
/* The next edge of the relation that any target sees, with its end. */
weir_err weir_draft_next_edge(const weir_snapshot_draft *draft, uint32_t relation, weir_merge *merge,
                              weir_spill_record *recordp, bool *foundp);

/* scan.c */
weir_err weir_draft_scan(weir_snapshot_draft *draft);

/* vertices.c: ids of all types. */
weir_err weir_draft_vertices(weir_snapshot_draft *draft);
/* rows.c: keys, lives, rows of all types. */
weir_err weir_draft_rows(weir_snapshot_draft *draft);
/* Index of a vertex; false: it is not in the snapshot. */
bool weir_draft_find(const weir_snapshot_draft *draft, uint32_t type, weir_vertex id, uint64_t *indexp);

/* edges.c: both directions of all relations. */
weir_err weir_draft_edges(weir_snapshot_draft *draft);
/* Whether a relation has these arrays: no times if all are 0, no events if nobody asks for them. */
bool weir_draft_has_times(const weir_snapshot_draft *draft, uint32_t relation);
bool weir_draft_has_events(const weir_snapshot_draft *draft, uint32_t relation);

/* labels.c */
weir_err weir_draft_labels(weir_snapshot_draft *draft);

/* manifest.c: manifest.json. */
weir_err weir_draft_manifest(weir_snapshot_draft *draft);

#endif /* WEIR_STORE_DRAFT_H */
