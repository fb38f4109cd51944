/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - the sections of manifest.json, and the arrays of features, imports, edges and labels.
 *
 * The manifest agrees with the schema that it contains: its sections have a row for each type, relation or label, in
 * the schema's order. Arrays are mapped, and their lengths checked; the numbers in them are the caller's to check.
 * OWNERSHIP: arrays are borrowed from the weir_npy_folder; names from what they were read of.  THREADS: [owner].
 */
#ifndef WEIR_STORE_SNAPSHOT_FILES_H
#define WEIR_STORE_SNAPSHOT_FILES_H

#include <weir/store/base/json.h>
#include <weir/store/snapshot/npy.h>
#include <weir/store/snapshot/snapshot.h>

#define WEIR_SNAPSHOT_EXTRA_NAME_MAX 64u
#define WEIR_SNAPSHOT_EXTRAS_MAX     256u /* of one vertex type */

/* An array of an import, as the manifest has it. */
typedef struct weir_snapshot_described {
    char name[WEIR_SNAPSHOT_EXTRA_NAME_MAX + 1];
    uint64_t columns; /* 0: a mask */
} weir_snapshot_described;

/* --- manifest.json.  WEIR_EDATA says what is wrong, and where; WEIR_ENOMEM --------------------------------------- */

/* No more than can be multiplied by the bytes of a row. */
weir_err weir_snapshot_read_count(const weir_json_node *object, const char *key, uint64_t *valuep);
/* A section of so many rows. */
weir_err weir_snapshot_read_section(const weir_json_node *root, const char *key, size_t rows,
                                    const weir_json_node **sectionp);
/* A row is that of this name. */
weir_err weir_snapshot_read_name(const weir_json_node *row, const char *wanted);
/* The caller frees *extrasp, also after an error. */
weir_err weir_snapshot_read_extras(const weir_json_node *row, weir_snapshot_described **extrasp, uint32_t *countp);
/* Letters, digits, _ and -: no path. */
bool weir_snapshot_extra_name(const char *name);

/* --- arrays below `folder`, a name within `arrays`.  Errors of weir_npy_folder_map; WEIR_ENOMEM ------------------ */

/* Name, kind and values of a column, but not the texts of a category. */
weir_err weir_snapshot_map_feature(weir_npy_folder *arrays, const char *folder, const weir_schema_feature *feature,
                                   uint64_t rows, weir_snapshot_column *column);
/* *extrasp is the caller's: weir_snapshot_free_lent. */
weir_err weir_snapshot_map_extras(weir_npy_folder *arrays, const char *folder, uint64_t rows,
                                  const weir_snapshot_described *described, uint32_t count,
                                  const weir_snapshot_extra **extrasp);
/* Neighbours, times and events, or zeros where the edges have none, and where there are `deleted` ones their ends:
 * edges->edges of each. */
weir_err weir_snapshot_map_edges(weir_npy_folder *arrays, const char *folder, bool deleted, weir_snapshot_edges *edges);
/* labels->count of each array. */
weir_err weir_snapshot_map_labels(weir_npy_folder *arrays, const char *label, weir_snapshot_labels *labels);
/* Columns and extras are lent out as read-only by who allocated them. NULL is allowed. */
void weir_snapshot_free_lent(const void *lent);

#endif /* WEIR_STORE_SNAPSHOT_FILES_H */
