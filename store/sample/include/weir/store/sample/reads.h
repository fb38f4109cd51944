/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reads.h - how often a sampler reads each vertex of a snapshot or of a part: from its targets outwards, a hop at a
 * time, over the lists that it will draw from.
 *
 * VIP (vertex inclusion probability): a parent at hop h - 1 draws each of its d edges with chance t = min(1, fanout /
 * d), as if weights were alike; with RECENT its newest `fanout` edges and with FULL all with t = 1. So a vertex u is
 * reached at hop h unless no parent draws it, 1 - p(u) = prod (1 - t p(parent)), as if draws did not depend on each
 * other.
 */
#ifndef WEIR_STORE_SAMPLE_READS_H
#define WEIR_STORE_SAMPLE_READS_H

#include <stdbool.h>

#include <weir/store/base/err.h>
#include <weir/store/sample/block.h>
#include <weir/store/snapshot/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_sample_reads {
    const weir_snapshot *snapshot;
    const weir_sample_step *steps;
    uint32_t step_count;
    int64_t window; /* of longer lists the sampler draws from so many edges */
    bool walks;     /* not chances: how many walks of the targets lead there, each edge of a list being one */
} weir_sample_reads;

/* By type and vertex. first: the chance that a batch has the vertex as a target, or where walks are counted how many
 * begin there; it is written over. weights: grow by what the hops after that come to; of chances, that is the logarithm
 * of 1 - p over all hops together. Lists are not trusted.  WEIR_ENOMEM.  [any] */
weir_err weir_sample_reads_add(const weir_sample_reads *reads, double **first, double **weights);
/* A chance of 1 stays a little below: its logarithm is finite.  [any] */
double weir_sample_log_spared(double chance);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SAMPLE_READS_H */
