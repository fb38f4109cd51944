/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metis.h - METIS behind one function.
 *
 * METIS ends its process when memory is short, so weir-partition is a program of its own: no server and no rank is
 * linked with METIS. Its integers have 32 or 64 bits, depending on its build: what does not fit is refused before it
 * starts.
 */
#ifndef WEIR_PARTITIONER_METIS_METIS_H
#define WEIR_PARTITIONER_METIS_METIS_H

#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_METIS_CONSTRAINTS_MAX 16u

/* Numbers of vertices have 32 bits, of which cut/coarsen.c takes the two highest for itself. */
#define WEIR_METIS_VERTICES_MAX (UINT32_MAX - 2)

/* Borrowed; each edge stands in the lists of both its ends, with the same weight, and no vertex beside itself. These
 * lists are most of the memory that a cutting takes, so they have 32 bits. */
typedef struct weir_metis_graph {
    uint64_t vertices; /* at most WEIR_METIS_VERTICES_MAX */
    const int64_t *indptr;
    const uint32_t *neighbors, *edge_weights;
    uint32_t constraints;          /* weights a vertex; each part gets its share of each weight */
    const int64_t *vertex_weights; /* vertices × constraints                                    */
    const double *tolerance;       /* how many times its share a part may have; NULL: 1.03, then 1.05 */
} weir_metis_graph;

/* part_of[v] for each vertex, from 0 to parts - 1. The same seed gives the same parts.  WEIR_ELIMIT too large for this
 * METIS, or more parts than vertices; WEIR_EINVAL constraints or weights; WEIR_EINTERNAL METIS refused; WEIR_ENOMEM.
 * Blocks.  [main] */
weir_err weir_metis_partition(const weir_metis_graph *graph, uint32_t parts, uint64_t seed, int32_t *part_of);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_PARTITIONER_METIS_METIS_H */
