/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - a network, boosted trees, or both go into a model folder and come out again: training and serving agree on
 * the form here.
 *
 *   weights.safetensors   one matrix a tensor of the network, by its name; and "encode.TYPE.known", uint64: the ids of
 *                         known vertices (low halves), ascending, one a row of "encode.TYPE.embedding"
 *                         of trees "trees.begins", uint64: where each one's nodes begin, and where the last one ends;
 *                         "trees.nodes", uint64, a row a node: its left child, counted from its tree's root, 0: a leaf;
 *                         its column; 1: missing values go right; "trees.values": thresholds, and what leaves add;
 *                         "trees.base": where sums begin; "trees.covers": of each node (trees.h), which models lack
 *                         that were written before columns had contributions: they serve, and no column is a reason
 *   architecture          {"sample_seed": 7, "network": {…}}        network: as shape.h prints it, scales and all
 *                         of trees, too: "family": "trees" or "blend", "trees": {"hops": 2}: of their columns; trees
 *                         alone have the network's shape, which says how columns are made, and no weights of it
 *   normalisation         {}                                        the network has the scales
 *   calibration           {"slope": 1.2, "offset": -3.4}            probability = logistic(slope · logit + offset)
 *                         of a blend "network" and "trees", too: the same of each, whose mean the logit is
 *
 * INVARIANTS
 *   PACK-V1  What comes out gives the same bits as what went in.
 *   PACK-V2  What comes out gives a finite score for any input that is finite: no weight, and no sum of weights, is too
 *       large.
 *
 * THREADS: read-only after open, [any].
 */
#ifndef WEIR_INFERENCE_PACK_PACK_H
#define WEIR_INFERENCE_PACK_PACK_H

#include <stdint.h>

#include <weir/inference/model/model.h>
#include <weir/inference/nn/nn.h>
#include <weir/inference/trees/blend.h>
#include <weir/inference/trees/trees.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What answers. */
typedef enum weir_pack_family {
    WEIR_PACK_NETWORK,
    WEIR_PACK_TREES,
    WEIR_PACK_BLEND, /* both: the mean of their calibrated log odds */
    WEIR_PACK_FAMILIES
} weir_pack_family;
const char *weir_pack_family_name(weir_pack_family family); /* "network", "trees", "blend" */
/* Of a model that was verified, by its architecture alone; one without the word is a network.  WEIR_EDATA it is another
 * word; WEIR_ENOMEM.  [any] */
weir_err weir_pack_family_of(const weir_model *model, weir_pack_family *familyp);

/* --- in --------------------------------------------------------------------------------------------------------- */

typedef struct weir_pack_draft weir_pack_draft;

typedef struct weir_pack_opts {
    const weir_nn *nn;          /* NULL: trees alone    */
    const weir_real *params;    /* in the host's memory */
    const weir_nn_shape *shape; /* of trees alone; else the network's counts */
    const weir_trees *trees;    /* NULL: a network alone */
    uint32_t hops;              /* of the columns that trees read */
    weir_blend blend;           /* of network and trees */
    uint64_t sample_seed;       /* at most INT64_MAX    */
    double slope, offset;
    uint64_t schema_hash;
    const char *metrics, *provenance; /* JSON objects; NULL: {}    */
    const weir_secret_key *key;       /* NULL: not signed          */
} weir_pack_opts;

/* Everything is borrowed.  WEIR_EINVAL the seed is too large, or the calibration not finite; WEIR_ENOMEM.  [any] */
weir_err weir_pack_draft_open(const weir_pack_opts *opts, weir_pack_draft **draftp);
/* For weir_model_write and weir_models_add. */
const weir_model_write_opts *weir_pack_draft_opts(const weir_pack_draft *draft);
void weir_pack_draft_close(weir_pack_draft *draft); /* NULL is allowed */

/* --- out -------------------------------------------------------------------------------------------------------- */

typedef struct weir_pack weir_pack;

/* What a model that was verified answers with; nothing of the model is kept. The kernels are borrowed.  WEIR_EDATA its
 * description cannot be read, a tensor is missing, of another size or one too many, trees could not be walked
 * (trees.h), or the weights, the leaves or the calibration could overflow (PACK-V2): says which; WEIR_ELIMIT its
 * description is too long; WEIR_ENOMEM; what the kernels report.  [any] */
weir_err weir_pack_open(const weir_model *model, const weir_kernels *kernels, weir_pack **packp);
void weir_pack_close(weir_pack *pack); /* NULL is allowed */

/* What is in it, borrowed. A plain value. */
typedef struct weir_pack_contents {
    weir_pack_family family;
    const weir_nn_shape *shape;
    const weir_nn *nn;       /* NULL: trees alone                 */
    const weir_real *params; /* in the kernels' memory; NULL as nn */
    const weir_trees *trees; /* NULL: a network alone             */
    uint32_t hops;           /* of the columns that trees read    */
    weir_blend blend;        /* of network and trees              */
    uint64_t sample_seed;
    double slope, offset;
} weir_pack_contents;
weir_pack_contents weir_pack_look(const weir_pack *pack);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_PACK_PACK_H */
