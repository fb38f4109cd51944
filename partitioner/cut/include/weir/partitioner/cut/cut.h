/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.h - a weighted graph cut into parts: few edges between parts, and of each weight a part has at most what is
 * allowed, if that can be.
 *
 * METIS cuts well by one weight, and by several it neither holds them nor keeps the cut low. So what it gives is mended
 * and improved here, on a hierarchy of coarser graphs (coarsen.c): to move a cluster costs less of the cut than to move
 * its vertices one by one. At each level vertices leave parts that have too much, where that costs least (balance.c),
 * and then the boundary is searched for moves that lower the cut and leave the balance (refine.c).
 */
#ifndef WEIR_PARTITIONER_CUT_CUT_H
#define WEIR_PARTITIONER_CUT_CUT_H

#include <stdbool.h>

#include <weir/partitioner/metis/metis.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_cut_opts {
    uint32_t parts;
    uint32_t machines;       /* divides parts; first between machines, then within each; 1: one level      */
    const double *tolerance; /* by weight: how many times its share a part may have; at least 1            */
    uint64_t seed;
    uint64_t memory_bytes; /* METIS sees the whole graph only if it needs no more, about; 0: no limit    */
    /* NULL: all that is made here is in memory. Else edges of a coarser graph beside which the process would have more
     * than live_bytes (alloc.h) lie in files that have this name until they are open. The parts are the same. */
    const char *scratch;
    uint64_t live_bytes;
    /* METIS once, mended and improved once; where it cannot have the whole graph, several times on a coarse one. Or
     * placed, not mended nor refined. */
    bool quick;
} weir_cut_opts;

/* Why no cutting into these parts gives every part at most tolerance × share of a weight. */
typedef enum weir_cut_bound {
    WEIR_CUT_SHARE,    /* no reason was found; there may be one                              */
    WEIR_CUT_WHOLE,    /* the sum is no multiple of the parts: some part has one more        */
    WEIR_CUT_HEAVIEST, /* one vertex has more than that                                      */
    WEIR_CUT_HEAVY     /* so many heavy vertices that several must share a part              */
} weir_cut_bound;

/* No cutting has less than this of weight c in its largest part.  WEIR_EINVAL a weight below 0, or weights too large to
 * be added up; WEIR_ENOMEM.  [any] */
weir_err weir_cut_least(const weir_metis_graph *graph, uint32_t c, uint32_t parts, double tolerance, int64_t *leastp,
                        weir_cut_bound *boundp);

/* About the most that METIS was seen to take beside such a graph, of which vertices and constraints are read.  [any] */
uint64_t weir_cut_metis_bytes(const weir_metis_graph *graph, uint64_t ends);

/* part_of[v] for each vertex, from 0 to parts - 1; those of machine m are the m-th parts / machines of them. Where not
 * all weights can be held, what is above the limits, as shares of a part, is little in sum. The same arguments give the
 * same parts.  WEIR_EINVAL constraints, weights, machines, a tolerance below 1; WEIR_ELIMIT more parts than vertices,
 * more than WEIR_METIS_VERTICES_MAX of these, or the graph is still too large for METIS when it is coarse;
 * WEIR_EINTERNAL METIS refused; errors of scratch files; WEIR_ENOMEM.  Blocks.  [main] */
weir_err weir_cut(const weir_metis_graph *graph, const weir_cut_opts *opts, int32_t *part_of);

#define WEIR_CUT_NOWHERE INT32_C(-1)

/* part_of[v] says where v stays; where it is WEIR_CUT_NOWHERE, v is put beside its neighbours, within the limits if
 * that can be (place.c). Of opts count parts, tolerance and quick; machines must divide parts, and does not change
 * where v goes. The same arguments give the same parts.  WEIR_EINVAL as weir_cut; WEIR_ELIMIT more parts than vertices,
 * or too many of these; WEIR_ENOMEM.  Blocks.  [main] */
weir_err weir_cut_place(const weir_metis_graph *graph, const weir_cut_opts *opts, int32_t *part_of);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_PARTITIONER_CUT_CUT_H */
