/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - an open part, and what its manifest said. */
#ifndef WEIR_PARTITIONER_PARTS_PART_H
#define WEIR_PARTITIONER_PARTS_PART_H

#include <weir/partitioner/parts/parts.h>
#include <weir/store/snapshot/files.h>

#define WEIR_PART_PATH_MAX     4096u
#define WEIR_PART_MANIFEST_MAX (1u << 20) /* bytes */

/* manifest.json, checked against its own schema and its numbers against each other. */
typedef struct weir_part_manifest {
    weir_schema *schema;
    uint32_t part, parts;
    int64_t as_of_us, from_us;
    char cutting[65];
    int64_t **starts; /* by type: parts + 1 */
    uint64_t *halos;  /* by type            */
    weir_snapshot_described **extras;
    uint32_t *extra_counts;
    uint64_t *edges;    /* relation * 2 + direction */
    int64_t *newest_us; /* by relation              */
    uint64_t *deleted;  /* by relation: 1: its edges have ends */
    uint64_t *labels;   /* by label                 */
} weir_part_manifest;

/* WEIR_ENOTFOUND, WEIR_EVERSION, WEIR_EDATA, WEIR_ENOMEM. */
weir_err weir_part_manifest_read(const char *folder, weir_part_manifest *manifest);
/* The same of a text; name stands for the file. */
weir_err weir_part_manifest_parse(const char *name, const char *text, size_t length, weir_part_manifest *manifest);
void weir_part_manifest_free(weir_part_manifest *manifest);

struct weir_part {
    char folder[WEIR_PART_PATH_MAX];
    weir_part_manifest manifest;
    weir_npy_folder *arrays;
    weir_snapshot_vertices *vertices;
    const int64_t **halos;
    weir_snapshot_edges *edges;
    weir_snapshot_labels *labels;
};

bool weir_part_in_halo(const weir_part *part, uint32_t type, int64_t number);

#endif /* WEIR_PARTITIONER_PARTS_PART_H */
