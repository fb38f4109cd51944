/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - what export.c, export_npz.c and unpack.c share: numbers as text, and a file that is written row by row. */
#ifndef WEIR_STORE_EXPORT_H
#define WEIR_STORE_EXPORT_H

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/snapshot/snapshot.h>

typedef struct weir_export_file {
    weir_file *file;
    weir_buf text; /* not yet written */
} weir_export_file;

weir_err weir_export_open(const char *folder, const char *name, weir_export_file *filep);
/* Writes the text if there is much of it. */
weir_err weir_export_flush(weir_export_file *file);
/* Writes the rest and syncs, unless err is set already; closes either way. */
weir_err weir_export_close(weir_export_file *file, weir_err err);

/* The fewest digits that read back as the same float; nothing for NaN. */
void weir_export_number(weir_buf *out, float number);
/* Seconds with six digits behind the point; nothing for WEIR_SNAPSHOT_NEVER. */
void weir_export_seconds(weir_buf *out, int64_t time_us);

/* Of each target the position of its newest label, -1: none; NULL: no memory. vertices: for labels of vertices, so that
 * only labels of the life as of the snapshot count; else NULL. */
int64_t *weir_export_newest(const weir_snapshot *snapshot, const weir_snapshot_labels *labels, uint64_t targets,
                            const weir_snapshot_vertices *vertices);
/* Whether an edge is visible as of the snapshot: an export has no other. */
bool weir_export_sees(const weir_snapshot *snapshot, const weir_snapshot_edges *edges, int64_t edge);
/* Of each vertex of a type whether it exists, or is at an end of a visible edge; NULL: no memory. */
uint8_t *weir_export_there(const weir_snapshot *snapshot, uint32_t type);

/* export_npz.c */
weir_err weir_export_npz(const weir_snapshot *snapshot, const char *out);

#endif /* WEIR_STORE_EXPORT_H */
