/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - a trained network as a model folder, and back: what training writes and serving reads.
 *
 *   architecture    the network's shape with its scales, as weir_nn_shape_print prints it
 *   normalisation   {"sample_seed": N}: the seed by which serving draws neighbours, the one that validation used
 *   calibration     {"slope": a, "offset": b}: probability = 1 / (1 + exp(-(a * score + b)))
 *
 * THREADS: a pack is read-only once it is open, then [any].
 */
#ifndef WEIR_INFERENCE_PACK_H
#define WEIR_INFERENCE_PACK_H

#include <weir/inference/model.h>
#include <weir/inference/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_pack_content {
    const weir_nn *nn;
    const weir_real *params; /* in the memory of the network's kernels */
    const weir_schema *schema;
    uint64_t sample_seed;
    double slope, offset;
    const char *metrics, *provenance; /* JSON objects                */
    const weir_secret_key *key;       /* NULL: it is not signed      */
} weir_pack_content;

/* Adds a model to the register.  Errors of weir_models_add.  [owner] */
weir_err weir_pack_add(weir_models *models, const weir_pack_content *content, char id[WEIR_MODEL_ID_MAX]);

typedef struct weir_pack weir_pack;

/* Verifies the folder, then makes the network of it.  Errors of weir_model_open; WEIR_ECONFIG, WEIR_EDATA what it says
 * does not go together; WEIR_EVERSION the schema means something else.  schema may be NULL: it is not held against one.
 * Blocks.  [any] */
weir_err weir_pack_open(const char *folder, const weir_model_opts *opts, const weir_schema *schema, weir_pack **packp);
void weir_pack_close(weir_pack *pack); /* NULL is allowed */
const weir_nn *weir_pack_nn(const weir_pack *pack);
const weir_real *weir_pack_params(const weir_pack *pack);
uint64_t weir_pack_sample_seed(const weir_pack *pack);
double weir_pack_slope(const weir_pack *pack);
double weir_pack_offset(const weir_pack *pack);
/* {"…"} of metrics.json or provenance.json, ended by 0. */
const char *weir_pack_text(const weir_pack *pack, weir_model_text which);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_PACK_H */
