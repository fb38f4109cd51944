/* SPDX-License-Identifier: Apache-2.0 */
/* draft.c - a network, trees or both as the texts and matrices of a model folder. */
#include <math.h>

#include <weir/inference/pack/pack.h>
#include <weir/store/base/alloc.h>

#include "pack_private.h"

struct weir_pack_draft {
    weir_model_write_opts opts;
    weir_model_tensor *tensors;
    char (*names)[WEIR_NN_TENSOR_NAME_MAX]; /* of those with ids, one a vertex type */
    weir_pack_tree_tensors trees;
    weir_buf architecture, calibration;
};

static const weir_nn_shape *pack_draft_shape(const weir_pack_opts *opts) {
    return opts->nn ? weir_nn_shape_of(opts->nn) : opts->shape;
}

static void pack_draft_line(weir_json *json, double slope, double offset) {
    weir_json_key_f64(json, "slope", slope);
    weir_json_key_f64(json, "offset", offset);
}

static void pack_draft_print(weir_pack_draft *draft, const weir_pack_opts *opts) {
    weir_json json = weir_json_begin(&draft->architecture);
    weir_json_object(&json);
    if (opts->trees) {
        weir_json_key_string(&json, "family", weir_pack_family_name(opts->nn ? WEIR_PACK_BLEND : WEIR_PACK_TREES));
        weir_json_key(&json, "trees");
        weir_json_object(&json);
        weir_json_key_u64(&json, "hops", opts->hops);
        weir_json_object_end(&json);
    }
    weir_json_key_u64(&json, "sample_seed", opts->sample_seed);
    weir_json_key(&json, "network");
    weir_nn_shape_print(pack_draft_shape(opts), &json);
    weir_json_object_end(&json);

    json = weir_json_begin(&draft->calibration);
    weir_json_object(&json);
    pack_draft_line(&json, opts->slope, opts->offset);
    if (opts->nn && opts->trees) {
        weir_json_key(&json, "network");
        weir_json_object(&json);
        pack_draft_line(&json, opts->blend.network_slope, opts->blend.network_offset);
        weir_json_object_end(&json);
        weir_json_key(&json, "trees");
        weir_json_object(&json);
        pack_draft_line(&json, opts->blend.trees_slope, opts->blend.trees_offset);
        weir_json_object_end(&json);
    }
    weir_json_object_end(&json);
}

/* First whole numbers, of known vertices and of trees, then the weights. */
static weir_err pack_draft_tensors(weir_pack_draft *draft, const weir_pack_opts *opts) {
    const weir_nn_shape *shape = pack_draft_shape(opts);
    uint32_t count = 0, types = weir_nn_types(shape);
    size_t at = 0;
    const weir_nn_tensor *from = opts->nn ? weir_nn_tensors(opts->nn, &count) : NULL;
    draft->tensors = weir_calloc((size_t)count + types + WEIR_PACK_TREE_TENSORS, sizeof *draft->tensors);
    draft->names = weir_calloc(types, sizeof *draft->names);
    if (!draft->tensors || !draft->names) return WEIR_NOMEM("while writing a model");
    for (uint32_t t = 0; t < types; t++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(shape, t);
        if (inputs->known_count == 0) continue;
        weir_pack_known_name(inputs, draft->names[t]);
        draft->tensors[at++] = (weir_model_tensor){
            .name = draft->names[t], .rows = inputs->known_count, .cols = 1, .words = inputs->known};
    }
    weir_err err = opts->trees ? weir_pack_trees_draw(opts->trees, &draft->trees) : WEIR_OK;
    for (uint32_t i = 0; opts->trees && i < WEIR_PACK_TREE_WORDS; i++)
        draft->tensors[at++] = draft->trees.tensors[i];
    for (uint32_t i = 0; i < count; i++)
        draft->tensors[at++] =
            (weir_model_tensor){.name = from[i].name,
                                .rows = from[i].rows,
                                .cols = from[i].cols,
                                .data = (const float *)(const void *)(opts->params + from[i].offset)};
    for (uint32_t i = WEIR_PACK_TREE_WORDS; opts->trees && i < draft->trees.count; i++)
        draft->tensors[at++] = draft->trees.tensors[i];
    draft->opts.tensors = draft->tensors;
    draft->opts.tensor_count = at;
    return err;
}

weir_err weir_pack_draft_open(const weir_pack_opts *opts, weir_pack_draft **draftp) {
    *draftp = NULL;
    const weir_blend *b = &opts->blend;
    const bool finite = isfinite(opts->slope) && isfinite(opts->offset) && isfinite(b->network_slope) &&
                        isfinite(b->network_offset) && isfinite(b->trees_slope) && isfinite(b->trees_offset);
    if (opts->sample_seed > INT64_MAX || !finite)
        return WEIR_ERR(WEIR_EINVAL, "the seed of a model is larger than 63 bits, or its calibration is not finite");
    weir_pack_draft *draft = weir_calloc(1, sizeof *draft);
    if (!draft) return WEIR_NOMEM("while writing a model");
    pack_draft_print(draft, opts);
    weir_err err = pack_draft_tensors(draft, opts);
    weir_err_keep(&err, weir_buf_err(&draft->architecture));
    weir_err_keep(&err, weir_buf_err(&draft->calibration));
    if (err) {
        weir_pack_draft_close(draft);
        return err;
    }
    draft->opts.schema_hash = opts->schema_hash;
    draft->opts.task = weir_nn_task(pack_draft_shape(opts));
    draft->opts.architecture = draft->architecture.bytes;
    draft->opts.normalisation = "{}";
    draft->opts.calibration = draft->calibration.bytes;
    draft->opts.metrics = opts->metrics ? opts->metrics : "{}";
    draft->opts.provenance = opts->provenance ? opts->provenance : "{}";
    draft->opts.key = opts->key;
    *draftp = draft;
    return WEIR_OK;
}

const weir_model_write_opts *weir_pack_draft_opts(const weir_pack_draft *draft) {
    return &draft->opts;
}

void weir_pack_draft_close(weir_pack_draft *draft) {
    if (!draft) return;
    weir_buf_free(&draft->architecture);
    weir_buf_free(&draft->calibration);
    weir_free(draft->trees.words);
    weir_free(draft->trees.values);
    weir_free(draft->tensors);
    weir_free(draft->names);
    weir_free(draft);
}
