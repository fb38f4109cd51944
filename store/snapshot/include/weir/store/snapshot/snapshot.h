/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the graph as of one instant, as a folder of plain arrays.
 *
 *   OUT/manifest.json                      schema, counts, times, offsets, seed
 *   OUT/MANIFEST                           length and SHA-256 of every file, manifest.json too (trust.h)
 *   OUT/vertices/TYPE/ids.npy              uint64, rows of two, the high half first; ascending: a vertex's position
 *                                          here is its index
 *                    /key_offsets.npy, key_bytes.npy
 *                    /lives/indptr.npy     int64, vertices + 1
 *                          /first.npy      int64, ascending within a vertex: the oldest put of each life
 *                          /until.npy      int64, from when on the vertex does not exist: deleted or expired
 *                    /rows/indptr.npy      int64, vertices + 1
 *                         /times.npy       int64, ascending within a vertex: since when the features have these values,
 *                                          but not before what the type's `history` reaches
 *                         /until.npy       int64, the end of the life; a newer row replaces an older one without it
 *                    /feature.NAME.npy     one a row, not a vertex. Number float32 (NaN: missing); time int64
 *                                          (INT64_MIN: missing); category int32, an index into its texts (-1: missing)
 *                    /feature.NAME.text_offsets.npy, feature.NAME.text_bytes.npy
 *                    /matrix.NAME.npy, mask.NAME.npy       of imports, one a vertex: float32 rows × columns, bool
 *   OUT/relations/RELATION/out, in/indptr.npy              int64, vertices + 1
 *                                 /neighbors.npy           int64, index within the type at the other end
 *                                 /times.npy, events.npy   newest first within a vertex, then neighbour's id, event;
 *                                                          either may be left out: all are 0 (manifest: times, events)
 *                                 /until.npy               int64, from when on it is deleted; only if any edge is
 *                                 /feature.NAME.npy        as above, one an edge; texts once, beside out and in
 *   OUT/labels/LABEL/targets.npy           int64, index of the vertex, or position in out of the edge
 *                   /values.npy, times.npy int32 index of the schema's value; int64. Newest first within a vertex
 *
 * A PART of a snapshot (partitioner/parts) is such a folder, too, of a share of the graph: the first `own` vertices of
 * a type are those of the share, in any order: vertices/TYPE/by_id.npy, int64, has their indices ascending by id.
 * Behind them come others that these lead to, of which there is an id, and of some their edges, but no key, no life, no
 * row and no line of a matrix. An edge of which one end's list is not here stands in the other's only. What an
 * aggregate of ends says of a vertex as it is put may need more edges than are here: so it stands, float64 of each
 * life, in vertices/TYPE/lives/aggregate.NAME.npy.
 *
 * INVARIANTS: each is cited where the code keeps it and by a test of the same name
 *
 *   SNAPSHOT-Z1  Each edge stands once in out and once in in. For any time t from `from` to as_of, a reader sees what a
 *                reader of the store sees before t: edges, features, labels, whether a vertex exists and since when;
 *                but not what `without_deleted` has left out.
 *   SNAPSHOT-Z2  Every index is below the count of what it points into.
 *   SNAPSHOT-Z3  Everything is older than as_of: every edge, label, row and life.
 *   SNAPSHOT-Z4  A folder under its final name is complete: it was written under another name, synced, and renamed.
 *
 * AS OF A TIME: what has a time and an `until` is visible before t if time < t < until, or if time < t and `until` is
 * INT64_MAX: for good. An edge that has expired is still visible to a target that is old enough, because the sampler
 * counts its age from the target. So nothing that comes later for a vertex or an edge (an update, a deletion, a second
 * put) changes what an earlier target sees.
 * What a build's history discards is counted from as_of, or from the graph's watermark if no as_of is given and that is
 * earlier. What a `history` of the schema does not reach, neither the store nor a snapshot shows: that is counted from
 * the graph's watermark, or from as_of if one is given and that is later. `from` is the latest of them all, and later
 * than what trims of the store may have taken; it may be after as_of: then there is no time for which the snapshot is
 * complete.
 *
 * A LIFE of a vertex lasts from its oldest put to its deletion, or until no put has come for as long as its type's
 * expiry. Each put leaves a record: a row, an edge at it (deleted since or not), or one of its own. A row holds what
 * was put in its own life; a label belongs to the last life that began before it, or, if none did and no deletion
 * lies between, to the first.
 *
 * ERRORS: where a list has WEIR_EIO, all that a file may fail with (file.h) may come.
 */
#ifndef WEIR_STORE_SNAPSHOT_SNAPSHOT_H
#define WEIR_STORE_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/graph/graph.h>
#include <weir/store/snapshot/npy.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SNAPSHOT_FORMAT       3u
#define WEIR_SNAPSHOT_FORMAT_WHOLE 2u        /* read too: without a word about times and events, it has both */
#define WEIR_SNAPSHOT_NEVER        INT64_MIN /* no time */

/* --- building -------------------------------------------------------------------------------------------------- */

typedef struct weir_snapshot_draft weir_snapshot_draft;

typedef struct weir_snapshot_build_opts {
    const char *out;       /* a folder that must not exist                                        */
    int64_t as_of_us;      /* WEIR_BEFORE_ALL: just after the newest event, or after weir_graph_latest */
    int64_t history_us;    /* keep what a target of that age or younger sees; 0: of any age       */
    bool without_deleted;  /* leave out what a deletion before as_of hides, for earlier targets too */
    bool without_events;   /* edges have none, but where labels name them                         */
    const bool *events_of; /* and of these relations; NULL: of no other                          */
    uint64_t seed;         /* recorded: of whatever was drawn for it                              */
    const char *origin;    /* one line about where it comes from; NULL: none                      */
    /* Adds arrays of its own before the manifest is written; may be NULL. */
    weir_err (*extend)(void *context, weir_snapshot_draft *draft);
    void *context;
} weir_snapshot_build_opts;

typedef struct weir_snapshot_stats {
    uint64_t vertices, edges, labels; /* written; an edge counts once                                    */
    uint64_t half_edges;              /* left out: one of their vertices is not in the snapshot          */
    uint64_t orphan_labels;           /* left out: their target is not visible                           */
    uint64_t bytes;
} weir_snapshot_stats;

/* From a graph that does not change: a checkpoint, or a stopped store; read-only is enough. One ordered scan a shard;
 * what it finds goes to files beside OUT first, so memory is bounded by buffers, the texts of categories, deletions of
 * vertices, and what one vertex has. What is there as OUT.partial or OUT.spill is removed.  WEIR_EEXIST out;
 * WEIR_ENOTFOUND the folder that out is to be in; WEIR_EUNAVAILABLE the store lacks part of its log; WEIR_EDATA an edge
 * has one end only, and both vertices are there; WEIR_ECORRUPT; WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM; WEIR_ELIMIT more
 * texts than fit, the schema, or the path; WEIR_EINVAL; errors of reads of the graph and of `extend`.  Blocks.  [owner]
 */
weir_err weir_snapshot_build(weir_graph *graph, const weir_snapshot_build_opts *opts, weir_snapshot_stats *statsp);

/* For `extend`: the order of the vertices, and more arrays. rows: one a vertex of the type, in that order.
 * WEIR_EDATA a name that a file cannot have; WEIR_EINVAL no column; WEIR_ELIMIT one too many; errors of a file. */
const weir_vertex_pair *weir_snapshot_draft_ids(const weir_snapshot_draft *draft, uint32_t type, uint64_t *countp);
weir_err weir_snapshot_draft_matrix(weir_snapshot_draft *draft, uint32_t type, const char *name, const float *rows,
                                    uint64_t columns);
weir_err weir_snapshot_draft_mask(weir_snapshot_draft *draft, uint32_t type, const char *name, const uint8_t *rows);

/* --- reading --------------------------------------------------------------------------------------------------- */

typedef struct weir_snapshot weir_snapshot;

typedef struct weir_snapshot_opts {
    bool load;   /* copies what a sampler reads, and matrices, into large pages; else files are mapped */
    bool verify; /* checks the SHA-256 of every file before it is mapped                          */
    bool part;   /* a part of a snapshot is wanted, not a whole one                               */
} weir_snapshot_opts;

/* Plain values, borrowed from the snapshot. */
typedef struct weir_snapshot_column {
    const char *name;
    weir_value_kind kind;
    const float *numbers; /* one of the three, by kind */
    const int64_t *times;
    const int32_t *codes;
    uint64_t texts; /* category: code c is text_bytes from text_offsets[c] to the next */
    const int64_t *text_offsets;
    const uint8_t *text_bytes;
} weir_snapshot_column;

typedef struct weir_snapshot_extra {
    const char *name;
    uint64_t columns; /* 0: a mask */
    const float *matrix;
    const uint8_t *mask;
    const float *loaded; /* after `load`: the matrix, else NULL */
} weir_snapshot_extra;

/* What vertex v has from indptr[v] up to indptr[v + 1], oldest first; the last of those older than t is in force before
 * t, if t < until, or until is INT64_MAX: for good. */
typedef struct weir_snapshot_spans {
    uint64_t count;
    const int64_t *indptr; /* vertices + 1 */
    const int64_t *times, *until_us;
} weir_snapshot_spans;

typedef struct weir_snapshot_vertices {
    uint64_t count;
    uint64_t own; /* of a part: the first so many are its own; else all */
    const weir_vertex_pair *ids;
    const int64_t *by_id;      /* of a part: its own, ascending by id; NULL: ids ascend */
    weir_snapshot_spans lives; /* times: the oldest put of each */
    weir_snapshot_spans rows;
    const int64_t *key_offsets;
    const uint8_t *key_bytes;
    const weir_snapshot_column *columns; /* one number a row */
    uint32_t column_count;
    const weir_snapshot_extra *extras; /* one line a vertex of its own */
    uint32_t extra_count;
} weir_snapshot_vertices;

typedef struct weir_snapshot_edges {
    uint64_t vertices, edges;
    const int64_t *indptr, *neighbors, *times;
    const int64_t *until_us; /* NULL: none was deleted */
    const uint64_t *events;
    bool has_times, has_events; /* false: all are 0, and take neither disk nor memory */
    const weir_snapshot_column *columns;
    uint32_t column_count;
    int64_t newest_us;
    int64_t expire_us;
    const int64_t *vertex_pairs; /* after `load`: indptr beside the low half of the id, vertices + 1; else NULL */
    const int64_t *edge_pairs;   /* neighbour and time; without times neighbours alone                        */
} weir_snapshot_edges;

typedef struct weir_snapshot_labels {
    uint64_t count;
    const int64_t *targets, *times;
    const int32_t *values;
} weir_snapshot_labels;

/* WEIR_ENOTFOUND; WEIR_EVERSION; WEIR_EDATA a part where a snapshot is wanted, or the other way round; WEIR_ECORRUPT,
 * WEIR_EDATA name the file: a missing one, a wrong length, an end that leads outside; WEIR_ELIMIT the path; WEIR_EIO,
 * WEIR_ENOMEM. Lists and neighbours are checked where they are followed, or all of them by weir_snapshot_check.  [any]
 */
weir_err weir_snapshot_open(const char *folder, const weir_snapshot_opts *opts, weir_snapshot **snapshotp);
void weir_snapshot_close(weir_snapshot *snapshot); /* NULL is allowed */
/* Walks all lists, neighbours, times and labels.  WEIR_ECORRUPT says where.  [any] */
weir_err weir_snapshot_check(const weir_snapshot *snapshot);

const weir_schema *weir_snapshot_schema(const weir_snapshot *snapshot);
int64_t weir_snapshot_as_of_us(const weir_snapshot *snapshot);
uint64_t weir_snapshot_bytes(const weir_snapshot *snapshot);      /* of its arrays' files, as far as they are mapped */
uint64_t weir_snapshot_load_bytes(const weir_snapshot *snapshot); /* that `load` takes besides, or would take */
/* Gives the memory of what was read of these files back to the kernel; what is read again comes back.  [any] */
void weir_snapshot_give_back(const weir_snapshot *snapshot);
const weir_snapshot_vertices *weir_snapshot_vertices_of(const weir_snapshot *snapshot, uint32_t type);
const weir_snapshot_edges *weir_snapshot_edges_of(const weir_snapshot *snapshot, uint32_t relation,
                                                  weir_direction direction);
const weir_snapshot_labels *weir_snapshot_labels_of(const weir_snapshot *snapshot, uint32_t label);
/* Of a part: whether it says what an aggregate is of its own vertices as they are put, because its edges do not suffice
 * for that.  [any] */
bool weir_snapshot_has_precomputed(const weir_snapshot *snapshot, uint32_t aggregate);
/* Of such an aggregate, and of a life: the place of its time among those of its type. These numbers are read one by one
 * and not mapped: a training asks once an epoch for each, and all of them would stay in the memory of each rank.
 * WEIR_ECORRUPT; errors of a file.  [any] */
weir_err weir_snapshot_precomputed(const weir_snapshot *snapshot, uint32_t aggregate, uint64_t life, double *valuep);
/* Of a type that such an aggregate is of, and read in the same way: the life that begins with this put of the vertex;
 * as many as there are lives: none does.  WEIR_ECORRUPT; errors of a file.  [any] */
weir_err weir_snapshot_life_of_put(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, int64_t put_us,
                                   uint64_t *lifep);
/* For targets before this time the snapshot is not complete: what only they see was left out when it was built.
 * INT64_MIN: nothing was. What `without_deleted` leaves out is not counted here.  [any] */
int64_t weir_snapshot_from_us(const weir_snapshot *snapshot);

/* --- as of a time: of snapshots and of parts.  [any] --- */

/* WEIR_ECORRUPT an array leads to a vertex that is not there. */
weir_err weir_snapshot_check_vertex(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex);
/* The position of what a vertex has in force before this time; false: nothing. */
/* Whether every vertex of the type has one life, which begins with all others and never ends, as of an import without
 * times. Found out once, by a walk over all lives that ends at the first that is otherwise.  [any] */
bool weir_snapshot_lives_alike(const weir_snapshot *snapshot, uint32_t type);
bool weir_snapshot_span(const weir_snapshot_spans *spans, uint64_t vertex, int64_t before_us, uint64_t *placep);
/* Narrows [since_us, until_us) to those times before which the same is in force as before this one. */
void weir_snapshot_span_bounds(const weir_snapshot_spans *spans, uint64_t vertex, int64_t before_us, int64_t *since_us,
                               int64_t *until_us);
/* Of the labels [begin, end) of one vertex, newest first, those of the life at this position of `lives`. */
void weir_snapshot_labels_of_life(const weir_snapshot_vertices *vertices, uint64_t vertex, uint64_t life,
                                  const weir_snapshot_labels *labels, uint64_t *beginp, uint64_t *endp);

/* WEIR_ECORRUPT a vertex's list [indptr[vertex], indptr[vertex + 1]) is not within count entries; `of` says of what. */
weir_err weir_snapshot_check_list(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, const char *of,
                                  const int64_t *indptr, uint64_t count);
/* The event that put a vertex at this time: its edges of that very moment carry it. 0: it came without edges.
 * WEIR_ECORRUPT as above. */
weir_err weir_snapshot_event_of_put(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, int64_t time_us,
                                    uint64_t *eventp);
/* A vertex's key as a field of CSV; '#' and its id, in hexadecimal digits, where no message has said the key.
 * WEIR_ECORRUPT the keys' offsets; a failure of the buffer is in its own error. */
weir_err weir_snapshot_csv_key(const weir_snapshot_vertices *vertices, uint64_t vertex, weir_buf *out);

/* Index of a vertex within its type; false: it does not exist, or of a part: it is not one of its own.  [any] */
bool weir_snapshot_find(const weir_snapshot *snapshot, uint32_t type, weir_vertex id, uint64_t *indexp);

#define WEIR_SNAPSHOT_MASKS_BYTES 512
/* "train,val,test", or the name of a split, whose masks an import calls so: of training, validation and test. They
 * point into text.  WEIR_EUSAGE neither, or too long; it is said of the option --masks.  [any] */
weir_err weir_snapshot_read_masks(const char *given, char text[WEIR_SNAPSHOT_MASKS_BYTES], const char *masks[3]);

/* --- from and to other worlds ----------------------------------------------------------------------------------- */

typedef struct weir_snapshot_import_opts {
    const char *out;
    const char *nodes, *edges; /* CSV; nodes may be NULL                                       */
    const char *npz;           /* instead of both                                              */
    const char *bits;          /* NULL, or a node column that holds numbers of set bits        */
    uint64_t bit_count;        /* columns of its matrix; 0: one more than the largest          */
    const char *splits;        /* NULL, or node columns that say train, val or test, by commas */
    const char *skip;          /* NULL, or columns to leave out, separated by commas             */
    const char *as_vertices;   /* NULL, or types of edges that become vertices, by commas: lift.c */
    const char *declare;       /* NULL, or a file with `aggregates` and `tasks` of the schema    */
    const char *origin;        /* NULL, or what the manifest is to name in place of the files    */
    const char *recommend;     /* NULL, or a relation that becomes a task to recommend           */
    int64_t horizon_us;        /* of that task                                                   */
    bool undirected;           /* each edge is stored in both directions, loops once            */
    uint64_t seed;
    bool by_store; /* as if rows had histories: the same snapshot, by the way that a store's takes */
} weir_snapshot_import_opts;
/* Makes a snapshot of a CSV or npz data set: README.md says which columns and arrays, and what memory an archive takes.
 * An archive is unpacked in OUT.csv; rows, and archives that become rows, work in OUT.store. Both are removed.
 * WEIR_EEXIST OUT is there, or the one that is needed of the two; WEIR_EDATA file, line and column, or archive and
 * array; WEIR_ECONFIG a schema cannot hold what it has; WEIR_ENOTFOUND a file, or an archive has no edges; WEIR_EINVAL
 * neither edges nor npz; WEIR_EUSAGE `undirected`, and edges lead to another type; errors of files, of a store and of a
 * build.  Blocks. */
weir_err weir_snapshot_import(const weir_snapshot_import_opts *opts, weir_snapshot_stats *statsp);

typedef enum weir_snapshot_export_format { WEIR_SNAPSHOT_CSV, WEIR_SNAPSHOT_NPZ } weir_snapshot_export_format;

/* CSV: a folder with nodes.csv and edges.csv. NPZ: one file, of one vertex type and one relation whose features are
 * numbers; it is packed in a folder OUT.partial first, and what is there of that name is removed. OUT must not exist;
 * an import reads either back: README.md.  WEIR_EEXIST; WEIR_EINVAL what an archive cannot hold, or no name;
 * WEIR_ELIMIT the path; WEIR_ECORRUPT; WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM: of CSV, what was begun is left there.
 * Blocks. */
weir_err weir_snapshot_export(const weir_snapshot *snapshot, weir_snapshot_export_format format, const char *out);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SNAPSHOT_SNAPSHOT_H */
