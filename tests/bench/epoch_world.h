/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_world.h - a graph that stands still, made from a seed: other programs read the arrays of its snapshot. */
#ifndef WEIR_EPOCH_WORLD_H
#define WEIR_EPOCH_WORLD_H

#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/snapshot/snapshot.h>

#define EPOCH_JUDGED 64u /* vertices of validation, and of the test */

/* A plain value. */
typedef struct epoch_world {
    uint64_t vertices, edges, features, targets;
} epoch_world;

/* A snapshot: vertices "node" with a matrix "x", of which two classes of targets (label "side", masks "train",
 * "validation" and "test") can be learnt, and relation "edge", whose list of a vertex is what it looks at. Edges begin
 * anywhere; few vertices are the end of many.  Blocks. */
weir_err weir_epoch_world_make(const epoch_world *world, const char *out);

/* A sum that other programs can form, too: over all edges, and over all bits of the matrix. */
uint64_t weir_epoch_world_sum(const weir_snapshot *snapshot);

#endif /* WEIR_EPOCH_WORLD_H */
