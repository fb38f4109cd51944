/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - an open part, and what the section `part` of its manifest said. */
#ifndef WEIR_PARTITIONER_PARTS_PART_H
#define WEIR_PARTITIONER_PARTS_PART_H

#include <weir/partitioner/parts/parts.h>

#define WEIR_PART_PATH_MAX     4096u
#define WEIR_PART_MANIFEST_MAX (1u << 20) /* bytes: no more than a snapshot's */

/* Its numbers are checked against each other, but not against the schema. */
typedef struct weir_part_manifest {
    uint32_t part, parts, depth, types;
    char cutting[65];
    int64_t **starts; /* by type: parts + 1 */
    int64_t *listed;  /* by type: at least as many as the part owns */
} weir_part_manifest;

/* WEIR_ENOTFOUND, WEIR_EVERSION, WEIR_EDATA, WEIR_ELIMIT above WEIR_PART_MANIFEST_MAX, WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_part_manifest_read(const char *folder, weir_part_manifest *manifest);
/* The same of a text; name stands for the file. */
weir_err weir_part_manifest_parse(const char *name, const char *text, size_t length, weir_part_manifest *manifest);
void weir_part_manifest_free(weir_part_manifest *manifest);

struct weir_part {
    char folder[WEIR_PART_PATH_MAX];
    weir_part_manifest manifest;
    weir_snapshot *snapshot;
    weir_npy_folder *arrays;
    const int64_t **numbers; /* by type: of those that others own */
    uint64_t **rises;        /* by type: where among them each step begins, in which they rise; and their end */
    uint32_t *rise_counts;   /* steps */
};

#endif /* WEIR_PARTITIONER_PARTS_PART_H */
