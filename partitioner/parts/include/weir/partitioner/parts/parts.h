/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - a snapshot cut into parts, one for each rank, as folders of plain arrays.
 *
 *   OUT/report.json                  what it cost and how good it is, beside parts drawn at random and by hash
 *   OUT/map/TYPE.npy                 int64, the number of each vertex of the snapshot, in its order; map/MANIFEST
 *   OUT/part-P/                      a part of the snapshot, in the layout of one (snapshot.h): all that a rank reads
 *             /manifest.json         as a snapshot's, with `own` beside each `count` of vertices, and a section
 *                                    `part`: who owns which numbers and in which order, how far the part reaches,
 *                                    and how many have lists
 *             /numbers/TYPE.npy      int64, the number of each vertex that is here and not owned, in their order
 *             /MANIFEST              SHA-256 of every file
 *
 * Vertices are numbered anew within their type: part 0 owns the first numbers, part 1 the next, and so on; within a
 * part those that training reads most often come first (order.c; the manifest says so: `order` is `reads`). Whether a
 * vertex is of the most read share of its owner is one comparison of numbers, wherever it is known.
 *
 * In a part they are called by their place: first those that it owns, in the order of their numbers, so that the place
 * of one is its number minus the part's first; then those that these lead to, step by step, those of a step in the
 * order of their numbers. Its arrays hold places.
 *
 * INVARIANTS
 *   PARTS-P1  Each vertex is owned by exactly one part, and the numbers of a type are a bijection onto 0 … count - 1.
 *             Its keys, lives, rows, labels and lines of matrices are there, and nowhere else; but the labels that
 *             aggregates count by, and the lives of what has such a label, are in every part that the vertex is in.
 *   PARTS-P2  A part of depth d has both lists of edges, whole and with all their data, of each vertex that at most d
 *             steps over edges lead to from one that it owns; of others it has none.
 *   PARTS-P3  The vertices of a part are those that it owns and those that its lists name: no more, no less.
 *   PARTS-P4  The same snapshot and options give the same files, except for times and peak_bytes in report.json.
 *   PARTS-P5  Of two vertices of a type that a part owns, the one that a batch reads with the higher chance has the
 *             lower number, and of equals the one that comes first in the snapshot.
 *   PARTS-P6  An aggregate of ends that looks at edges more than the depth away from a vertex stands in the part, as it
 *             is when each vertex that the part owns is put: to the bit what the whole snapshot says. Not in the only
 *             part of one, which has all edges.
 */
#ifndef WEIR_PARTITIONER_PARTS_PARTS_H
#define WEIR_PARTITIONER_PARTS_PARTS_H

#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/snapshot/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PARTS_FORMAT    6u
#define WEIR_PARTS_COUNT_MAX 1024u
#define WEIR_PARTS_DEPTH_MAX 7u /* the layers that a sampler has, less one */

/* Whether so many parts of this depth have not the edges that an aggregate of ends looks at, and bring what it says:
 * PARTS-P6.  [any] */
bool weir_parts_bring(const weir_schema_aggregate *aggregate, uint32_t parts, uint32_t depth);

/* --- writing --------------------------------------------------------------------------------------------------- */

typedef enum weir_parts_method {
    WEIR_PARTS_METIS,  /* few cut edges, and each part its share of `balances`    */
    WEIR_PARTS_RANDOM, /* for comparison: by seed and vertex                       */
    WEIR_PARTS_HASH,   /* by the vertex's id: the same part whenever there are as many */
    WEIR_PARTS_LIKE,   /* as in earlier parts, and what is new by its neighbours   */
    WEIR_PARTS_METHODS
} weir_parts_method;

const char *weir_parts_method_name(weir_parts_method method);

/* What parts have their share of. */
typedef enum weir_parts_weight {
    WEIR_PARTS_VERTICES,   /* of all types together                                                           */
    WEIR_PARTS_TYPES,      /* of each type by itself                                                          */
    WEIR_PARTS_TRAINING,   /* targets: by a mask `train` of an import, else what a label is about             */
    WEIR_PARTS_VALIDATION, /* by a mask `val`, `valid` or `validation`                                        */
    WEIR_PARTS_TEST,       /* by a mask `test`; where opts->masks name others, all three are by those         */
    WEIR_PARTS_DEGREE,     /* entries of lists of edges, in both directions                                   */
    WEIR_PARTS_IN_EDGES,   /* edges that come in: of a graph with directions, what is summed up for a vertex  */
    WEIR_PARTS_WEIGHTS
} weir_parts_weight;

const char *weir_parts_weight_name(weir_parts_weight weight);

#define WEIR_PARTS_BALANCES_MAX 16u /* each type counts by itself */

typedef struct weir_parts_balance {
    weir_parts_weight weight;
    double tolerance; /* how many times its share a part may have; 0: 1.03, and 1.05 of edges */
} weir_parts_balance;

typedef struct weir_parts_opts {
    const char *out; /* a folder that must not exist */
    uint32_t parts;
    uint32_t machines; /* of which each has as many parts, one after the other; 0: 1; only METIS cuts by them */
    weir_parts_balance balances[WEIR_PARTS_BALANCES_MAX];
    uint32_t balance_count; /* 0: vertices, training, degree */
    bool quick;             /* less of an effort: more cut edges, in a fraction of the time */
    /* About what is allocated at most, but for METIS on a graph of clusters (cut.h), which takes what it takes: edges
     * lie in OUT.scratch where they do not fit beside what is by vertex, and METIS sees the whole graph only if that
     * fits. What is mapped does not count. 0: no limit. */
    uint64_t memory_bytes;
    /* Of training, validation and test, which count instead of the usual names; NULL: those. All three, or none. */
    const char *masks[3];
    uint32_t depth; /* how many steps from its own vertices a part has edges: PARTS-P2 */
    weir_parts_method method;
    const char *like; /* of WEIR_PARTS_LIKE: the folder of those parts, as many, of a snapshot of the same schema */
    uint64_t seed;
    const char *snapshot; /* its folder: the digest of its MANIFEST goes into weir_part_cutting; NULL: none does */
    weir_clock *clock;
} weir_parts_opts;

/* How good one way of cutting is. Balance is the largest part over the mean: 1 is perfect, 0 where there is nothing. */
typedef struct weir_parts_quality {
    weir_parts_method method;
    uint64_t cut_edges;
    double vertex_balance, training_balance, degree_balance;
    uint64_t machine_cut_edges; /* between machines; 0 of one */
    uint64_t halo, halo_max;    /* vertices of others next to own ones: over all parts, and of the worst */
    /* The other way round: for each own vertex the other parts that have a neighbour of it, of the worst part. Over all
     * parts it is the halo, too. */
    uint64_t send_max;
    double seconds;
} weir_parts_quality;

/* Why a part has more of a weight than was asked for. */
typedef enum weir_parts_reason {
    WEIR_PARTS_HELD,     /* it has not                                                      */
    WEIR_PARTS_WHOLE,    /* the sum is no multiple of the parts, so one part has more       */
    WEIR_PARTS_HEAVIEST, /* a vertex alone has more                                         */
    WEIR_PARTS_HEAVY,    /* heavy vertices are so many that some part has several           */
    WEIR_PARTS_BESIDE,   /* beside the other weights no better cutting was found            */
    WEIR_PARTS_STAYED,   /* what was in the part before stays there, as WEIR_PARTS_LIKE is  */
    WEIR_PARTS_UNASKED   /* the method does not look at weights                             */
} weir_parts_reason;

/* Of the method that was asked for. */
typedef struct weir_parts_held {
    char name[96];         /* of the weight, or of the type whose vertices count */
    uint64_t total;        /* 0: there is nothing to share out */
    double asked, reached; /* the largest part over the mean */
    double least;          /* no cutting at all is below this; 1 unless a reason is known; 0 of a total of 0 */
    weir_parts_reason reason;
} weir_parts_held;

typedef struct weir_parts_report {
    uint32_t parts, machines, depth;
    uint64_t seed, vertices, edges, training;
    weir_parts_quality rows[WEIR_PARTS_METHODS]; /* the method that was asked for comes first */
    uint32_t row_count;
    weir_parts_held balances[WEIR_PARTS_BALANCES_MAX];
    uint32_t balance_count;
    /* Of WEIR_PARTS_LIKE: vertices that stay in their part, new ones, and those of the earlier parts that are gone. */
    uint64_t like_stayed, like_new, like_gone;
    /* What the parts of that method have, owned or not: over all, and the most of one. An edge counts in each list that
     * names it. */
    uint64_t here_vertices, here_vertices_max, here_edges, here_edges_max;
    double write_seconds;
    uint64_t peak_bytes; /* of the process */
} weir_parts_report;

/* Whether weir_parts_write may be asked for this, as far as numbers of vertices and edges tell; no array is read.
 * WEIR_EEXIST, WEIR_EINVAL, WEIR_ELIMIT as that says; WEIR_EDATA a mask that the snapshot lacks.  [main] */
weir_err weir_parts_check(const weir_snapshot *snapshot, const weir_parts_opts *opts);
/* Checks that, and then the whole snapshot, before it cuts.  WEIR_EEXIST out; WEIR_ELIMIT no parts, more than
 * WEIR_PARTS_COUNT_MAX or than vertices, a depth above WEIR_PARTS_DEPTH_MAX, more weights than WEIR_PARTS_BALANCES_MAX,
 * more vertices than WEIR_METIS_VERTICES_MAX, a graph that is too large for METIS even when it is coarse, less memory
 * than what is by vertex takes, a manifest above 1 MiB, a path that is too long; WEIR_EINVAL an out that ends in '/',
 * machines that do not divide parts, a tolerance below 1, no earlier parts named, or such of another number, schema or
 * graph; WEIR_ECORRUPT the snapshot, or earlier parts that do not belong together; WEIR_ENOTFOUND the MANIFEST of
 * opts->snapshot; what weir_part_open says of an earlier part; what weir_folder_remove says of an OUT.new that is left;
 * WEIR_EINTERNAL METIS refused; errors of a file; WEIR_ENOMEM.  Blocks.  [main] */
weir_err weir_parts_write(const weir_snapshot *snapshot, const weir_parts_opts *opts, weir_parts_report *reportp);
/* A list like "vertices,degree", NULL: the default; and "1.03" or, one for each, "1.03,1.1", NULL: the default.
 * WEIR_EUSAGE says what is wrong.  [any] */
weir_err weir_parts_read_balances(const char *balances, const char *tolerances, weir_parts_opts *opts);
void weir_parts_report_text(const weir_parts_report *report, weir_buf *out);
void weir_parts_report_json(const weir_parts_report *report, weir_buf *out);

/* --- reading --------------------------------------------------------------------------------------------------- */

typedef struct weir_part weir_part;

typedef struct weir_part_opts {
    bool verify; /* checks the SHA-256 of every file, then every number (weir_snapshot_check) and who has lists */
    bool load;   /* as of a snapshot */
} weir_part_opts;

/* Maps a folder part-P. Its lists are checked where they are followed, as a snapshot's are.
 * WEIR_ENOTFOUND; WEIR_EVERSION; WEIR_ECORRUPT, WEIR_EDATA name the file, or the part; WEIR_ELIMIT a path that is too
 * long, or a manifest above 1 MiB; errors of a file; WEIR_ENOMEM.  [any] */
weir_err weir_part_open(const char *folder, const weir_part_opts *opts, weir_part **partp);
void weir_part_close(weir_part *part); /* NULL is allowed */

/* All that follow are [any]; what they return is borrowed from the part. */

/* What is here, as a snapshot of which the first `own` vertices of each type are the part's own. */
const weir_snapshot *weir_part_snapshot(const weir_part *part);
uint32_t weir_part_index(const weir_part *part);
uint32_t weir_part_count(const weir_part *part); /* of all parts */
uint32_t weir_part_depth(const weir_part *part);
/* 64 hex digits: parts of one cutting have the same. */
const char *weir_part_cutting(const weir_part *part);
/* Part p owns the numbers from starts[p] to before starts[p + 1]; count + 1 of them. */
const int64_t *weir_part_starts(const weir_part *part, uint32_t type);
/* The first so many vertices of the type have their lists of edges here (PARTS-P2), the others none. */
uint64_t weir_part_listed(const weir_part *part, uint32_t type);
/* The number of the vertex at this place, which must exist. */
int64_t weir_part_number(const weir_part *part, uint32_t type, uint64_t place);
/* Fetches from memory what that will read: places lie anywhere. */
void weir_part_number_ahead(const weir_part *part, uint32_t type, uint64_t place);
/* The place of the vertex with this number, which must exist; false: it is not in this part. */
bool weir_part_find(const weir_part *part, uint32_t type, int64_t number, uint64_t *placep);
/* The part that owns this number, which must exist. */
uint32_t weir_part_owner(const weir_part *part, uint32_t type, int64_t number);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_PARTITIONER_PARTS_PARTS_H */
