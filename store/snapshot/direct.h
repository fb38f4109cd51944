/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.h - an archive, or plain rows as one, on the way to a snapshot; what direct.c, direct_nodes.c and
 * direct_edges.c share.
 *
 * A ROW is a node as the archive numbers it, a VERTEX the same in the order of ids. An archive has one vertex type and
 * one relation, each the first of the schema.
 */
#ifndef WEIR_STORE_DIRECT_H
#define WEIR_STORE_DIRECT_H

#include "import_private.h"

#define WEIR_DIRECT_BLOCK 4096u        /* edges that are read at a time          */
#define WEIR_DIRECT_SORT  (256u << 20) /* bytes of memory of a sorter: of records half */
#define WEIR_DIRECT_PLAIN 3u /* columns that are no members, of either table: id, timestamp, label; src, … */

typedef struct weir_direct_block {
    size_t count;
    int64_t src[WEIR_DIRECT_BLOCK], dst[WEIR_DIRECT_BLOCK], times_us[WEIR_DIRECT_BLOCK];
} weir_direct_block;

typedef struct weir_direct {
    const weir_archive *archive;
    const char *folder;                                       /* for runs of what is sorted */
    weir_import *import;                                      /* columns, owners, schema */
    const weir_archive_member **node_members, **edge_members; /* of each column; NULL: it has no array */
    weir_npy_array node_times, edge_times, labels;            /* count 0: there is none, or it is skipped */
    uint32_t label_column;
    const weir_texts *keys; /* of each row, and labels are codes of that column's values; NULL: both are numbers */
    weir_snapshot_draft draft;
    uint64_t *row_of;    /* of each vertex */
    uint64_t *vertex_of; /* of each row    */
    int64_t *first_us;   /* of each row: its oldest put, or that of an edge at it */
    int64_t newest_us;   /* of all puts */
    uint64_t loops;
    int64_t oldest_edge_us, newest_edge_us;
    weir_direct_block block;
} weir_direct;

/* direct_nodes.c: columns, owners and label values of an archive; since when nodes exist; keys in the order of their
 * ids.  *repeatedp: a key stands in two rows, and vertices have no order. */
weir_err weir_direct_survey_nodes(weir_direct *direct);
weir_err weir_direct_see_node_times(weir_direct *direct);
weir_err weir_direct_order(weir_direct *direct, bool *repeatedp);
/* All of vertices/TYPE, and labels. */
weir_err weir_direct_write_nodes(weir_direct *direct);

/* direct_edges.c: columns of an archive; ends, times, and who has edges since when. */
weir_err weir_direct_survey_edges(weir_direct *direct);
weir_err weir_direct_see_edges(weir_direct *direct);
/* All of relations/RELATION. */
weir_err weir_direct_write_edges(weir_direct *direct);

/* direct.c: columns of one table of an archive: the plain ones, then a column for each member that is one of its. */
weir_err weir_direct_columns(weir_direct *direct, bool nodes, const char *const plain[WEIR_DIRECT_PLAIN],
                             const weir_archive_member ***membersp);
/* Whether a feature has any value.  WEIR_EDATA one is infinite. */
weir_err weir_direct_see_numbers(const weir_direct *direct, const weir_archive_member *member, bool *anyp);
/* Times of an archive as of a file of rows: none is 0; all are 0 where there is no array.  WEIR_EDATA it is beyond what
 * a time may be. */
weir_err weir_direct_times(const weir_direct *direct, const weir_npy_array *array, uint64_t first, size_t count,
                           int64_t *times_us);

#endif /* WEIR_STORE_DIRECT_H */
