/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_world.h - a graph that stands still, made from a seed: other programs read the arrays of its snapshot. */
#ifndef WEIR_EPOCH_WORLD_H
#define WEIR_EPOCH_WORLD_H

#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/cli/cli.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/comm/comm.h>

#define EPOCH_JUDGED 64u /* vertices of validation, and of the test */

/* A plain value. */
typedef struct epoch_world {
    uint64_t vertices, edges, features, targets;
    uint32_t batch;
} epoch_world;

#define EPOCH_WORLD_OPTIONS                                                                                            \
    {"vertices", 'v', "N", "of the graph (default 1000000; quick: 2000)", NULL},                                       \
        {"edges", 'e', "N", "of the graph (default 25000000; quick: 20000)", NULL},                                    \
        {"features", 'f', "N", "numbers of a vertex (default 100; quick: 10)", NULL},                                  \
        {"targets", 't', "N", "to learn from in an epoch, of a graph that is made (default 20480; quick: 128)", NULL}, \
        {"batch", 'b', "N", "targets of a batch (default 1024; quick: 32)", NULL}, {                                   \
        "graph", 'g', "FOLDER", "where the graph is made, and stays; one that is there is used", NULL                  \
    }

/* What those options say. */
weir_err weir_epoch_world_read(const weir_cli *cli, epoch_world *world);
/* The graph of the folder that --graph names, or of the bench's own: vertices with a matrix, one relation, and two
 * classes of targets that can be learnt from the matrix. Rank 0 makes it, unless it is there from another run; a graph
 * that was there may have other targets than were asked for, which the world then has.  Blocks. */
weir_err weir_epoch_world_open(const weir_cli *cli, weir_comm *comm, epoch_world *world, weir_snapshot **snapshotp);

/* A sum that other programs can form, too: over all edges, and over all bits of the matrix. */
uint64_t weir_epoch_world_sum(const weir_snapshot *snapshot);

#endif /* WEIR_EPOCH_WORLD_H */
