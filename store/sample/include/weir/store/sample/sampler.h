/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.h - one sampler for training and serving, over any source.
 *
 * A target has a time, and everything below it is seen as of that time. The random numbers are a function of (seed,
 * target, hop, relation, direction, vertex), with the target's time in place of the target under `shared`. So a sample
 * depends on no thread, no rank and no batch, and a decision can be replayed.
 *
 * INVARIANTS: each is cited where it is kept, and proven by tests with p1 to p4 in their names
 *
 *   SAMPLE-P1  Each k-subset of a vertex's window is equally likely under `uniform` (Floyd, each draw from [0, j]
 *              inclusive).
 *   SAMPLE-P2  The targets come first; every edge exists in the source and occurs once a parent; it is older than its
 *              target's time, or, at hop 1, of that time and of the target's own event.
 *   SAMPLE-P3  The same (source, opts, target) gives the same tree of edges, whatever else is in the batch
 *              and whichever thread asks. Under `shared` a vertex has the same edges below all targets of one time,
 *              but for those of a target's own event.
 *   SAMPLE-P4  A block is one allocation, sized for the worst case before the first hop.
 *
 * THREADS: a sampler and a block belong to one thread at a time.
 */
#ifndef WEIR_STORE_SAMPLE_SAMPLER_H
#define WEIR_STORE_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/sample/block.h>
#include <weir/store/sample/source.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BLOCK_BYTES_MAX ((uint64_t)1 << 34)
#define WEIR_BLOCK_EDGES_MAX ((uint64_t)1 << 28) /* the worst case of one block */

typedef struct weir_sampler weir_sampler;

typedef struct weir_sample_opts {
    const weir_sample_step *steps; /* copied */
    uint32_t step_count;
    uint32_t window;      /* W; 0: WEIR_SAMPLE_WINDOW                                               */
    uint32_t targets_max; /* of a block                                                             */
    uint32_t edges_max;   /* of one target: then its tree is cut, and says so; 0: no such limit     */
    uint64_t seed;
    /* Targets of one time share what lies below them, whatever their types: a vertex that several reach at a hop is one
     * node there. Their trees are then drawn by the time alone, without their names; edges of a target's own event stay
     * its own. Targets of a type stand by time, rising. Not with edges_max. */
    bool shared;
    /* The input row of a target is not that of the same vertex below another one: what is said of a target's pairs is
     * the target's alone. */
    bool own_rows;
} weir_sample_opts;

/* The source is borrowed.  WEIR_EINVAL says which step or which of the other options, and why; WEIR_ELIMIT the worst
 * case of a block is too large: says how large and what to lower; WEIR_ENOMEM.  [owner] */
weir_err weir_sampler_open(const weir_sample_opts *opts, weir_sample_source *source, weir_sampler **samplerp);
/* NULL is allowed. */
void weir_sampler_close(weir_sampler *sampler);
/* What is sampled from now on is drawn with this seed.  [owner] */
void weir_sampler_seed(weir_sampler *sampler, uint64_t seed);
/* A block for what this sampler samples, and no other fills, to be used again and again (SAMPLE-P4).  WEIR_ENOMEM. */
weir_err weir_block_open(const weir_sampler *sampler, weir_block **blockp);
/* A block for weir_sample_answer alone, smaller by far: it has room for one step at a time.  WEIR_ENOMEM. */
weir_err weir_block_open_answers(const weir_sampler *sampler, weir_block **blockp);
void weir_block_close(weir_block *block);
/* What one block takes of memory at most. */
uint64_t weir_block_bytes(const weir_sampler *sampler);

/* Fills the block: what it held is gone.  Targets stand by type, rising.  [owner]
 * WEIR_EINVAL no target, more than targets_max, types that fall or are not there, under `shared` times that fall within
 * a type, over arrays a vertex that is not there; whatever the source reports. After an error the block is empty. */
weir_err weir_sample(weir_sampler *sampler, const weir_target *targets, uint32_t count, weir_block *block);

/* A parent of another sampler, which has the same steps and window but not the edges of this vertex. A plain value. */
typedef struct weir_sample_parent {
    uint64_t vertex; /* as this source calls it           */
    int64_t before_us;
    uint64_t key;   /* what it draws by: weir_sample_hop */
    uint64_t event; /* at the first hop: as of its target; else 0 */
} weir_sample_parent;

/* Draws the edges that the other sampler would have drawn (SAMPLE-P3), over arrays, without a limit of edges a target:
 * edges[step] of the block has them, each parent a node and a group of its own; *neighborsp is one vertex an edge,
 * until the block is filled again.  WEIR_EINVAL more parents than targets_max, or no block of these steps has one
 * there; whatever the source reports. After an error the block is empty.  [owner] */
weir_err weir_sample_answer(weir_sampler *sampler, uint32_t step, const weir_sample_parent *parents, uint32_t count,
                            weir_block *block, const uint64_t **neighborsp);

/* Numbers the distinct vertices of the block, by type: the rows that layer 0 reads. per_time: a vertex seen at two
 * times is two rows, for features that change.  [owner] */
void weir_block_inputs(weir_sampler *sampler, weir_block *block, bool per_time);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SAMPLE_SAMPLER_H */
