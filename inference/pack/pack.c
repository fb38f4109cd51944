/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - what answers, out of a model folder: the description first, then each tensor into its place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/json.h>

#include "pack_private.h"

#define PACK_DEPTH_MAX 32u

struct weir_pack {
    const weir_kernels *kernels;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_real *params;
    weir_trees *trees;
    weir_pack_family family;
    uint32_t hops;
    weir_blend blend;
    uint64_t sample_seed;
    double slope, offset;
};

/* --- the description ---------------------------------------------------------------------------------------------- */

static const char *const pack_families[WEIR_PACK_FAMILIES] = {"network", "trees", "blend"};

const char *weir_pack_family_name(weir_pack_family family) {
    return pack_families[family];
}

/* What each of the model's descriptions may have wrong, and what to do. */
static weir_err pack_advise(weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    if (!weir_err_is(err, WEIR_EDATA)) return err;
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_EDATA, "%s; train the model again, or serve an older one", sentence);
}

static weir_err pack_parse(const weir_model *model, weir_model_text which, const char *name, weir_arena *arena,
                           const weir_json_node **rootp) {
    size_t length;
    const char *text = weir_model_text_of(model, which, &length);
    return weir_json_parse(name, text, length, PACK_DEPTH_MAX, arena, rootp);
}

/* A word that a later version has is refused: what it means is not known here. */
static weir_err pack_read_family(const weir_json_node *root, weir_pack_family *familyp) {
    const weir_json_node *node = weir_json_find(root, "family");
    *familyp = WEIR_PACK_NETWORK; /* of models from before the word, too */
    if (!node) return WEIR_OK;
    while (*familyp < WEIR_PACK_FAMILIES && strcmp(weir_json_node_text(node), pack_families[*familyp]) != 0)
        ++*familyp;
    if (*familyp < WEIR_PACK_FAMILIES) return WEIR_OK;
    *familyp = WEIR_PACK_NETWORK;
    return WEIR_JSON_ERR(node, "the family is none of network, trees and blend");
}

static weir_err pack_read_line(const weir_json_node *object, double *slopep, double *offsetp) {
    const weir_json_node *node;
    weir_err err = weir_json_need(object, "slope", WEIR_JSON_NUMBER, &node);
    if (!err) err = weir_json_node_f64(node, slopep);
    if (!err) err = weir_json_need(object, "offset", WEIR_JSON_NUMBER, &node);
    return err ? err : weir_json_node_f64(node, offsetp);
}

static weir_err pack_read_architecture(weir_pack *pack, const weir_json_node *root) {
    const weir_json_node *node;
    int64_t seed = 0, hops = 0;
    weir_err err = pack_read_family(root, &pack->family);
    if (!err) err = weir_json_need_i64(root, "sample_seed", 0, INT64_MAX, &seed);
    if (!err && pack->family != WEIR_PACK_NETWORK) err = weir_json_need(root, "trees", WEIR_JSON_OBJECT, &node);
    if (!err && pack->family != WEIR_PACK_NETWORK)
        err = weir_json_need_i64(node, "hops", 1, WEIR_TREE_COLUMNS_HOPS_MAX, &hops);
    if (!err) err = weir_json_need(root, "network", WEIR_JSON_OBJECT, &node);
    if (!err) err = weir_nn_shape_read_node(node, &pack->shape);
    pack->sample_seed = (uint64_t)seed;
    pack->hops = (uint32_t)hops;
    return err;
}

static weir_err pack_read_calibration(weir_pack *pack, const weir_json_node *root) {
    const weir_json_node *node;
    weir_blend *b = &pack->blend;
    weir_err err = pack_read_line(root, &pack->slope, &pack->offset);
    if (err || pack->family != WEIR_PACK_BLEND) return err;
    err = weir_json_need(root, "network", WEIR_JSON_OBJECT, &node);
    if (!err) err = pack_read_line(node, &b->network_slope, &b->network_offset);
    if (!err) err = weir_json_need(root, "trees", WEIR_JSON_OBJECT, &node);
    return err ? err : pack_read_line(node, &b->trees_slope, &b->trees_offset);
}

static weir_err pack_read(weir_pack *pack, const weir_model *model) {
    const weir_json_node *root;
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = pack_parse(model, WEIR_MODEL_ARCHITECTURE, "the model's architecture", arena, &root);
    if (!err) err = pack_read_architecture(pack, root);
    if (!err) err = pack_parse(model, WEIR_MODEL_CALIBRATION, "the model's calibration", arena, &root);
    if (!err) err = pack_read_calibration(pack, root);
    weir_arena_close(arena);
    return pack_advise(err);
}

weir_err weir_pack_family_of(const weir_model *model, weir_pack_family *familyp) {
    const weir_json_node *root;
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = pack_parse(model, WEIR_MODEL_ARCHITECTURE, "the model's architecture", arena, &root);
    if (!err) err = pack_read_family(root, familyp);
    weir_arena_close(arena);
    return pack_advise(err);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

void weir_pack_known_name(const weir_nn_inputs *inputs, char name[WEIR_NN_TENSOR_NAME_MAX]) {
    snprintf(name, WEIR_NN_TENSOR_NAME_MAX, "encode.%s.known", inputs->name);
}

/* Which vertices are known; how many lists of them there are is added to *listsp. */
static weir_err pack_copy_known(weir_pack *pack, const weir_model *model, size_t *listsp) {
    char name[WEIR_NN_TENSOR_NAME_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t t = 0; !err && t < weir_nn_types(pack->shape); t++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(pack->shape, t);
        if (inputs->known_count == 0) continue;
        ++*listsp;
        weir_pack_known_name(inputs, name);
        const weir_model_tensor *from = weir_model_tensor_find(model, name);
        if (!from || !from->words || from->cols != 1)
            return WEIR_ERR(WEIR_EDATA,
                            "the model's weights lack the list '%s', which its network needs; train it again", name);
        err = weir_nn_shape_know(pack->shape, &(weir_nn_known){t, from->words, from->rows});
    }
    return pack_advise(err);
}

static weir_err pack_copy_tensor(weir_real *params, const weir_nn_tensor *to, const weir_model *model) {
    const weir_model_tensor *from = weir_model_tensor_find(model, to->name);
    if (!from || !from->data)
        return WEIR_ERR(WEIR_EDATA, "the model's weights lack '%s', which its network needs; train it again", to->name);
    if (from->rows != to->rows || from->cols != to->cols) {
        return WEIR_ERR(WEIR_EDATA, "the model's '%s' is %llu x %llu, its network needs %u x %u; train it again",
                        to->name, (unsigned long long)from->rows, (unsigned long long)from->cols, to->rows, to->cols);
    }
    memcpy(params + to->offset, from->data, sizeof(float) * to->rows * to->cols); // PACK-V1
    return WEIR_OK;
}

/* PACK-V2: a score is a number whatever is asked, so what could overflow does not come to serve. */
static weir_err pack_check_weights(const weir_pack *pack, const weir_real *params) {
    const weir_blend *b = &pack->blend;
    double logit_max = 0, margin_max = pack->trees ? weir_trees_bound(pack->trees) : 0;
    weir_err err = pack->nn ? weir_nn_bound(pack->nn, params, &logit_max) : WEIR_OK;
    if (err) return err;
    if (!isfinite(margin_max))
        return WEIR_ERR(WEIR_EDATA, "the leaves of the model's trees are too large to be added up; train it again");
    double most = pack->nn ? logit_max : margin_max;
    if (pack->family == WEIR_PACK_BLEND)
        most = (fabs(b->network_slope) * logit_max + fabs(b->network_offset) + fabs(b->trees_slope) * margin_max +
                fabs(b->trees_offset)) /
               2;
    if (isfinite((float)most) && isfinite(fabs(pack->slope) * most + fabs(pack->offset))) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "the model's calibration (slope %g) is too large for its weights; train it again",
                    pack->slope);
}

/* wanted: how many tensors there are besides those of the network. */
static weir_err pack_copy_tensors(weir_pack *pack, const weir_model *model, size_t wanted) {
    uint32_t count;
    const weir_nn_tensor *tensors = weir_nn_tensors(pack->nn, &count);
    size_t size = weir_nn_parameter_count(pack->nn) * sizeof *pack->params;
    void *memory = NULL;
    weir_real *host = weir_malloc(size);
    weir_err err = host ? WEIR_OK : WEIR_NOMEM("for the weights of a model");
    if (!err && weir_model_tensor_count(model) != wanted + count)
        err = WEIR_ERR(WEIR_EDATA, "the model has %zu tensors, its network %zu; train it again",
                       weir_model_tensor_count(model), wanted + count);
    for (uint32_t i = 0; !err && i < count; i++) {
        WEIR_ASSERT((tensors[i].offset + (uint64_t)tensors[i].rows * tensors[i].cols) * sizeof *host <= size);
        err = pack_copy_tensor(host, &tensors[i], model);
    }
    if (!err) err = pack_check_weights(pack, host);
    if (!err) err = pack->kernels->alloc(pack->kernels, size, &memory);
    pack->params = memory;
    if (!err) {
        pack->kernels->to_device(pack->kernels, pack->params, host, size);
        err = pack->kernels->finish(pack->kernels);
    }
    weir_free(host);
    return err;
}

/* Lists of known vertices, trees, and weights; no tensor is left over. */
static weir_err pack_take(weir_pack *pack, const weir_model *model) {
    size_t wanted = 0;
    weir_err err = pack_copy_known(pack, model, &wanted);
    if (!err && pack->family != WEIR_PACK_NETWORK)
        err = weir_pack_trees_read(model, pack->shape, pack->hops, &pack->trees);
    if (!err && pack->trees) wanted += weir_pack_trees_tensors(pack->trees);
    if (err || pack->nn) return err ? err : pack_copy_tensors(pack, model, wanted);
    if (weir_model_tensor_count(model) != wanted)
        return WEIR_ERR(WEIR_EDATA, "the model has %zu tensors, its trees %zu; train it again",
                        weir_model_tensor_count(model), wanted);
    return pack_check_weights(pack, NULL);
}

weir_err weir_pack_open(const weir_model *model, const weir_kernels *kernels, weir_pack **packp) {
    *packp = NULL;
    weir_pack *pack = weir_calloc(1, sizeof *pack);
    if (!pack) return WEIR_NOMEM("for a model");
    pack->kernels = kernels;
    weir_err err = pack_read(pack, model);
    if (!err && pack->family != WEIR_PACK_TREES) err = weir_nn_open(pack->shape, kernels, &pack->nn);
    if (!err) err = pack_take(pack, model);
    if (err) {
        weir_pack_close(pack);
        return err;
    }
    *packp = pack;
    return WEIR_OK;
}

void weir_pack_close(weir_pack *pack) {
    if (!pack) return;
    weir_trees_close(pack->trees);
    if (pack->params) pack->kernels->release(pack->kernels, pack->params);
    weir_nn_close(pack->nn);
    weir_nn_shape_free(pack->shape);
    weir_free(pack);
}

weir_pack_contents weir_pack_look(const weir_pack *pack) {
    return (weir_pack_contents){.family = pack->family,
                                .shape = pack->shape,
                                .nn = pack->nn,
                                .params = pack->params,
                                .trees = pack->trees,
                                .hops = pack->hops,
                                .blend = pack->blend,
                                .sample_seed = pack->sample_seed,
                                .slope = pack->slope,
                                .offset = pack->offset};
}
