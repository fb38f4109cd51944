/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - a snapshot cut into parts, one for each rank, as folders of plain arrays.
 *
 *   OUT/report.json                        what it cost and how good it is, beside parts drawn at random and by hash
 *   OUT/map/TYPE.npy                       int64, the number of each vertex of the snapshot, in its order; map/MANIFEST
 *   OUT/part-P/manifest.json, MANIFEST     schema, who owns which numbers, counts; SHA-256 of every file
 *             /vertices/TYPE/              ids, keys, lives, rows with their features, matrices and masks of owned
 *                                          vertices, as in a snapshot (snapshot.h)
 *             /halo/TYPE.npy               int64, ascending: vertices of other parts that owned ones are adjacent to
 *             /relations/RELATION/out, in/ indptr, neighbors, times, events, until, features of the edges of owned
 *                                          vertices
 *             /labels/LABEL/               targets, values, times: of owned vertices, and of edges from owned vertices
 *
 * Vertices are numbered anew within their type: part 0 owns the first numbers, part 1 the next, and so on; in the
 * order of the snapshot within a part. `neighbors` and `halo` are such numbers; targets of labels are positions within
 * the part: number minus the part's first, or position in its `out`.
 *
 * INVARIANTS
 *   PARTS-P1  Each vertex is owned by exactly one part, and the numbers of a type are a bijection onto 0 … count - 1.
 *   PARTS-P2  Each edge is once in `out` of its from-end's part and once in `in` of its to-end's, with all its data.
 *   PARTS-P3  The halo of a part is what its lists name and it does not own: no more, no less.
 *   PARTS-P4  The same snapshot, method, number of parts and seed give the same files, except for times in report.json.
 */
#ifndef WEIR_PARTITIONER_PARTS_PARTS_H
#define WEIR_PARTITIONER_PARTS_PARTS_H

#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/snapshot/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PARTS_FORMAT    2u
#define WEIR_PARTS_COUNT_MAX 1024u

/* --- writing --------------------------------------------------------------------------------------------------- */

typedef enum weir_parts_method {
    WEIR_PARTS_METIS,  /* few cut edges, training vertices and degrees shared out  */
    WEIR_PARTS_RANDOM, /* for comparison: by seed and vertex                       */
    WEIR_PARTS_HASH,   /* by the vertex's id: the same part in every snapshot      */
    WEIR_PARTS_METHODS
} weir_parts_method;

const char *weir_parts_method_name(weir_parts_method method);

typedef struct weir_parts_opts {
    const char *out; /* a folder that must not exist */
    uint32_t parts;
    weir_parts_method method;
    uint64_t seed;
    const char *snapshot; /* its folder: the parts remember the digest of its MANIFEST; NULL: nothing */
    weir_clock *clock;
} weir_parts_opts;

/* How good one way of cutting is. Balance is the largest part over the mean: 1 is perfect, 0 where there is nothing. */
typedef struct weir_parts_quality {
    weir_parts_method method;
    uint64_t cut_edges;
    double vertex_balance, training_balance, degree_balance;
    uint64_t halo, halo_max; /* over all parts, and of the worst */
    double seconds;
} weir_parts_quality;

typedef struct weir_parts_report {
    uint32_t parts;
    uint64_t seed, vertices, edges, training;
    weir_parts_quality rows[WEIR_PARTS_METHODS]; /* the method that was asked for comes first */
    uint32_t row_count;
    double write_seconds;
    uint64_t peak_bytes; /* of the process */
} weir_parts_report;

/* Checks the whole snapshot first.  WEIR_EEXIST out; WEIR_ELIMIT no parts, more than WEIR_PARTS_COUNT_MAX or than
 * vertices, a path that is too long, or METIS cannot count so far; WEIR_ECORRUPT the snapshot; WEIR_ENOTFOUND the
 * MANIFEST of opts->snapshot; WEIR_EINTERNAL METIS refused; WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM.  Blocks.  [main] */
weir_err weir_parts_write(const weir_snapshot *snapshot, const weir_parts_opts *opts, weir_parts_report *reportp);
void weir_parts_report_text(const weir_parts_report *report, weir_buf *out);
void weir_parts_report_json(const weir_parts_report *report, weir_buf *out);

/* --- reading --------------------------------------------------------------------------------------------------- */

typedef struct weir_part weir_part;

typedef struct weir_part_opts {
    bool verify; /* checks the SHA-256 of every file first */
} weir_part_opts;

/* Maps a folder part-P and walks every list: indices may be followed without a check afterwards.
 * WEIR_ENOTFOUND; WEIR_EVERSION; WEIR_ECORRUPT, WEIR_EDATA name the file; WEIR_ELIMIT a path that is too long;
 * WEIR_EIO; WEIR_ENOMEM.  [any] */
weir_err weir_part_open(const char *folder, const weir_part_opts *opts, weir_part **partp);
void weir_part_close(weir_part *part); /* NULL is allowed */

/* All that follow are [any]; what they return is borrowed from the part. */

const weir_schema *weir_part_schema(const weir_part *part);
int64_t weir_part_as_of_us(const weir_part *part);
int64_t weir_part_from_us(const weir_part *part); /* as weir_snapshot_from_us */
uint32_t weir_part_index(const weir_part *part);
uint32_t weir_part_count(const weir_part *part); /* of all parts */
/* 64 hex digits: parts of one cutting have the same. */
const char *weir_part_cutting(const weir_part *part);
/* Part p owns the numbers from starts[p] to before starts[p + 1]; count + 1 of them. */
const int64_t *weir_part_starts(const weir_part *part, uint32_t type);
/* The part that owns this number, which must exist. */
uint32_t weir_part_owner(const weir_part *part, uint32_t type, int64_t number);
const int64_t *weir_part_halo(const weir_part *part, uint32_t type, uint64_t *countp);
/* As in a snapshot; `vertices` are the owned ones, `neighbors` are numbers over all parts. */
const weir_snapshot_vertices *weir_part_vertices_of(const weir_part *part, uint32_t type);
const weir_snapshot_edges *weir_part_edges_of(const weir_part *part, uint32_t relation, weir_direction direction);
const weir_snapshot_labels *weir_part_labels_of(const weir_part *part, uint32_t label);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_PARTITIONER_PARTS_PARTS_H */
