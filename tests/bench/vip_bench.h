/* SPDX-License-Identifier: Apache-2.0 */
/* vip_bench.h - parts of a graph on a ring, and what the batches of one part read. Private to the bench `vip`. */
#ifndef WEIR_VIP_BENCH_H
#define WEIR_VIP_BENCH_H

#include <weir/inference/nn/nn.h>
#include <weir/partitioner/parts/parts.h>
#include <weir/trainer/train/targets.h>

/* --- the graph --------------------------------------------------------------------------------------------------- */

/* Vertices stand on a ring. Of an edge, one end is drawn in proportion to a weight that falls off as a power; the
 * other is drawn so too with chance `far`, else it stands at a distance d that is drawn in proportion to d^-gamma. */
typedef struct vip_ring {
    const char *name;
    uint64_t vertices;
    uint32_t parts;
    double far, gamma;
    double degree; /* on average, before repeated edges are taken out */
    double train;  /* share of the vertices */
    uint64_t seed;
} vip_ring;

#define VIP_RING_SEED 1234567u /* of the rings that published figures are of */

/* folder/ring: a snapshot with a task and a mask `train`. */
weir_err weir_vip_ring_make(const vip_ring *ring, const char *folder, weir_snapshot **snapshotp);

typedef enum vip_cut { VIP_METIS, VIP_ARCS, VIP_CUTS } vip_cut; /* arcs: as long pieces of the ring */

/* out/part-P, with the edges that three hops need. *sharep: of the edges, those that are cut. */
weir_err weir_vip_ring_cut(const weir_snapshot *snapshot, const vip_ring *ring, vip_cut cut, const char *out,
                           double *sharep);

/* --- what a part reads ------------------------------------------------------------------------------------------- */

typedef struct vip_sampling {
    const weir_nn_shape *shape;
    const weir_target *targets; /* of one part */
    uint64_t count;
    uint32_t batch, epochs;
} vip_sampling;

/* Vertices of other parts are called by their place less the number of own ones. */
typedef struct vip_reads {
    uint64_t rows;    /* in all, own and others' */
    uint32_t foreign; /* vertices of other parts that are here */
    uint32_t *log;    /* which of them were read, batch after batch: each once a batch */
    size_t count, capacity;
    size_t *ends;     /* of each batch, in log */
    uint32_t batches; /* of all epochs */
    double *times;    /* of each: how often it was read */
    double *own;      /* of each vertex of its own: how often it was read */
} vip_reads;

weir_err weir_vip_reads_make(const weir_part *part, const vip_sampling *sampling, vip_reads *reads);
void weir_vip_reads_free(vip_reads *reads);
/* Rows that are asked for where the batches to come are known, and after each batch those `size` rows are kept that are
 * needed next: no other choice asks for fewer. It begins with nothing. */
weir_err weir_vip_reads_ahead(const vip_reads *reads, uint64_t size, uint64_t *askedp);

#endif /* WEIR_VIP_BENCH_H */
