/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_private.h - what import.c, survey.c, tabulate.c, direct.c, unpack.c and feed.c share.
 *
 *   lift      first, where edges are to become vertices: both files anew
 *   survey    both files once: what each column is, which types, relations and label values there are ──► a schema
 *   tabulate  both files again, where rows are as plain as arrays: columns of numbers
 *   direct    those, or an archive's arrays, become those of a snapshot; archives that need a store are unpacked
 *             into the two files
 *   feed      else both files again: rows become mutations of a store beside OUT, of which a snapshot is built
 *   extend    then the nodes again, once a matrix or mask: arrays beside the snapshot's vertices
 */
#ifndef WEIR_STORE_IMPORT_PRIVATE_H
#define WEIR_STORE_IMPORT_PRIVATE_H

#include "archive.h"
#include "columns.h"
#include "csv.h"
#include "draft.h"

#define WEIR_IMPORT_NAME_MAX   64u
#define WEIR_IMPORT_OWNERS_MAX 256u

typedef enum weir_import_role {
    WEIR_IMPORT_SKIP,
    WEIR_IMPORT_ID,
    WEIR_IMPORT_TYPE,
    WEIR_IMPORT_TIME,
    WEIR_IMPORT_SRC,
    WEIR_IMPORT_DST,
    WEIR_IMPORT_SRC_TYPE,
    WEIR_IMPORT_DST_TYPE,
    WEIR_IMPORT_EVENT,
    WEIR_IMPORT_LABEL,
    WEIR_IMPORT_LABEL_TIME,
    WEIR_IMPORT_BITS,
    WEIR_IMPORT_MATRIX,
    WEIR_IMPORT_MASK,
    WEIR_IMPORT_SPLIT,   /* one of the parts of a split; each is a mask of its own, behind the file's columns */
    WEIR_IMPORT_FEATURE, /* a number, unless any value is not one */
    WEIR_IMPORT_TEXT,
    WEIR_IMPORT_MOMENT
} weir_import_role;

typedef struct weir_import_column {
    weir_import_role role;
    char name[WEIR_IMPORT_NAME_MAX + 1];
    uint64_t width; /* of a matrix; of bits: one more than the largest that was seen, or what was given */
    uint32_t field; /* of the file: the column's own place, but for a mask that is a part of a split */
    uint32_t part;  /* of such a mask: which of weir_import_parts; else WEIR_SCHEMA_NONE */
} weir_import_column;

/* Of a split, as published data sets name them. */
#define WEIR_IMPORT_PARTS 3u
extern const char *const weir_import_parts[WEIR_IMPORT_PARTS];

typedef enum weir_import_seen { WEIR_IMPORT_NOTHING, WEIR_IMPORT_NUMBERS, WEIR_IMPORT_TEXTS } weir_import_seen;

/* A vertex type or a relation: what was seen of it in each column of its file. */
typedef struct weir_import_owner {
    char name[WEIR_IMPORT_NAME_MAX + 1];
    uint32_t from, to; /* of a relation */
    weir_import_seen *seen;
    weir_texts *values; /* of label columns */
    uint32_t *features; /* column of each feature */
    uint32_t feature_count;
    uint32_t *labels; /* label of the schema, one a column; WEIR_SCHEMA_NONE */
} weir_import_owner;

typedef struct weir_import_table {
    weir_csv *csv; /* NULL: there is none */
    weir_import_column *columns;
    uint32_t column_count;
    weir_import_owner *owners; /* WEIR_IMPORT_OWNERS_MAX */
    uint32_t owner_count;
} weir_import_table;

typedef struct weir_import {
    const weir_snapshot_import_opts *opts;
    weir_import_table nodes, edges;
    weir_texts ids;   /* every key of a vertex */
    uint32_t *types;  /* one a key: its type, or WEIR_SCHEMA_NONE where several types have the key */
    int64_t *last_us; /* the same: the time of its last line */
    size_t key_room;  /* of both */
    bool repeated;    /* a key has several lines */
    weir_schema *schema;
} weir_import;

/* What the manifest says that it was made of. */
static inline const char *weir_import_origin(const weir_snapshot_import_opts *opts) {
    return opts->origin ? opts->origin : opts->nodes ? opts->nodes : opts->edges;
}

/* survey.c */
weir_err weir_import_survey(weir_import *import);
/* Whether a list by commas, or NULL, has the name. */
bool weir_import_is_listed(const char *list, const char *name);
/* What a column of this name is; WEIR_IMPORT_SKIP: it is left out.  WEIR_EDATA its width is missing. */
weir_err weir_import_classify(const weir_import *import, const char *name, bool nodes, weir_import_column *column);
/* Index of the owner of this name, made if it is new; "" is called `otherwise`. */
weir_err weir_import_owner_of(weir_import_table *table, const char *text, const char *otherwise, bool *newp,
                              uint32_t *indexp);
void weir_import_table_close(weir_import_table *table);
/* The column of this role, or WEIR_SCHEMA_NONE. */
uint32_t weir_import_find(const weir_import_table *table, weir_import_role role);
/* The field of the row at hand in the column of this role;"" where there is no such column. */
const char *weir_import_field(const weir_import_table *table, weir_import_role role);
/* Whether the row at hand is in this mask. */
bool weir_import_in_mask(const weir_import_table *table, uint32_t column);
/* Calls visit at each row. */
weir_err weir_import_walk(weir_import_table *table, weir_err (*visit)(void *context), void *context);
/* The vertex type of the row at hand. */
weir_err weir_import_node(const weir_import *import, uint32_t *typep);
typedef struct weir_import_edge {
    uint32_t relation, from, to;
    const char *src, *dst;
} weir_import_edge;
/* The edge of the row at hand; without nodes, its ends become known.  WEIR_EDATA a key that no node has. */
weir_err weir_import_ends(weir_import *import, weir_import_edge *edgep);
/* Seconds since 1970 with a fraction, "" is 0; to the microsecond, without rounding through a float.  false: it is
 * not one. */
bool weir_import_seconds(const char *text, int64_t *usp);
/* As a schema allows: a letter first, then letters, digits, _ and -. */
void weir_import_clean_name(const char *from, char name[WEIR_IMPORT_NAME_MAX + 1]);
bool weir_import_number(const char *text, double *valuep);
/* A whole number above 0 that 64 bits hold. */
bool weir_import_event(const char *text, uint64_t *eventp);
/* The next number of a list separated by blanks; false at its end or at what is not a number: *textp stays there. */
bool weir_import_list(const char **textp, double *valuep);

/* import_schema.c: the text of the schema that the survey found. */
weir_err weir_import_schema(weir_import *import);

/* lift.c: the two files into the folder, with edges of the types in opts->as_vertices as vertices. */
weir_err weir_import_lift(const weir_snapshot_import_opts *opts, const char *folder);

/* survey.c: whether --skip names a column that says what a row is. */
bool weir_import_skips_structure(const weir_snapshot_import_opts *opts);

/* feed.c */
weir_err weir_import_feed(weir_import *import, weir_graph *graph);
weir_err weir_import_extend(void *context, weir_snapshot_draft *draft);

/* tabulate.c: rows of text as an archive; of those that need no store: one vertex type and one relation, each key once,
 * numbers but no texts and times as features, at most one label, of vertices. */
typedef struct weir_tabulated {
    weir_archive archive; /* without an archive's file */
    weir_npy_folder *arrays;
    uint32_t *columns; /* of each member: its column */
    uint32_t label_column;
} weir_tabulated;

bool weir_import_is_flat(const weir_import *import);
/* Arrays in files of the folder. They hold codes of keys and of label values.  WEIR_EDATA a bit beyond the columns, or
 * the files have changed since the survey. */
weir_err weir_import_tabulate(weir_import *import, const char *folder, weir_tabulated *rowsp);
void weir_import_tabulated_close(weir_tabulated *rows);
/* direct.c: a snapshot of them. */
weir_err weir_import_direct_rows(weir_import *import, const weir_tabulated *rows, const char *folder,
                                 weir_snapshot_stats *statsp);

/* unpack.c: FOLDER/nodes.csv and edges.csv of an archive. */
weir_err weir_import_unpack(const weir_archive *archive, const char *folder);

/* direct.c: a snapshot of an archive, array by array; the folder is for what is sorted. *donep false, without an error:
 * the archive has several rows of one vertex, which a store must put in order, a column is to become bits, or a store
 * is asked for; nothing was made. */
weir_err weir_import_direct(const weir_snapshot_import_opts *opts, const weir_archive *archive, const char *folder,
                            bool *donep, weir_snapshot_stats *statsp);

#endif /* WEIR_STORE_IMPORT_PRIVATE_H */
