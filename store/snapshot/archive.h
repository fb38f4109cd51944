/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h - the arrays of an archive by what they mean; what direct.c and unpack.c share. */
#ifndef WEIR_STORE_ARCHIVE_H
#define WEIR_STORE_ARCHIVE_H

#include <weir/store/snapshot/npy.h>

#define WEIR_ARCHIVE_COLUMN_MAX 512u /* a name has at most 255 bytes */

/* What a member is, by its name and shape. */
typedef enum weir_archive_kind {
    WEIR_MEMBER_OTHER,
    WEIR_MEMBER_NODE,
    WEIR_MEMBER_EDGE,
    WEIR_MEMBER_MATRIX,
    WEIR_MEMBER_MASK
} weir_archive_kind;

typedef struct weir_archive_member {
    weir_archive_kind kind;
    const char *name; /* without the prefix that gives the kind */
    weir_npy_array array;
} weir_archive_member;

typedef struct weir_archive {
    weir_npz *npz;
    const char *path, *origin;   /* borrowed */
    uint64_t nodes, edges, rows; /* rows: lines of nodes and of edges */
    weir_npy_array src, dst;
    weir_npy_array ids, labels, node_times, edge_times; /* count 0: there is none */
    weir_archive_member *members;
    uint32_t member_count;
    int label_digits;
} weir_archive;

/* Unpacks all members into the folder. The ends of edges are not compared with the number of nodes yet.  WEIR_EDATA
 * says which array is not what it must be; WEIR_ENOTFOUND no edges; errors of weir_npz_open and weir_npz_array. */
weir_err weir_archive_open(const char *path, const char *folder, weir_archive *archivep);
void weir_archive_close(weir_archive *archive);
/* The name of the column that a member would be in a file of rows. */
void weir_archive_column(const weir_archive_member *member, char column[WEIR_ARCHIVE_COLUMN_MAX]);
/* WEIR_EDATA an edge ends at a node that is not there. */
weir_err weir_archive_wrong_end(const weir_archive *archive, int64_t end);

#endif /* WEIR_STORE_ARCHIVE_H */
