/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - a model as scorers share it: counted, never changed. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "score_private.h"

#define MODEL_NAMES_BYTES_MAX ((size_t)64 << 20)

static void model_free(weir_score_model *model) {
    weir_arena_close(model->names);
    weir_free(model);
}

static weir_err model_name_columns(weir_score_model *model) {
    const weir_score_model_opts *of = &model->opts;
    if (!of->trees || !weir_trees_look(of->trees).covers) return WEIR_OK;
    weir_err err = weir_arena_open(MODEL_NAMES_BYTES_MAX, &model->names);
    if (err) return err;
    return weir_tree_columns_name(of->shape, of->hops, model->names, &model->columns, &model->column_count);
}

weir_err weir_score_model_open(const weir_score_model_opts *opts, const weir_schema *schema,
                               weir_score_model **modelp) {
    const weir_nn_shape *shape = opts->nn ? weir_nn_shape_of(opts->nn) : opts->shape;
    *modelp = NULL;
    weir_err err = weir_nn_shape_serves(shape);
    if (!err) err = weir_nn_shape_fits(shape, schema);
    if (err) return err;
    weir_score_model *model = weir_calloc(1, sizeof *model);
    if (!model) return WEIR_NOMEM("for a model");
    snprintf(model->name, sizeof model->name, "%s", opts->name);
    snprintf(model->version, sizeof model->version, "%s", opts->version);
    model->opts = *opts;
    model->opts.shape = shape;
    WEIR_ASSERT(opts->nn || opts->trees);
    WEIR_ASSERT(!opts->trees || weir_trees_look(opts->trees).columns == weir_tree_columns_count(shape, opts->hops));
    uint32_t task = weir_schema_task_find(schema, weir_nn_task(shape));
    model->at_label = task != WEIR_SCHEMA_NONE && weir_schema_task_at(schema, task)->moment == WEIR_SCHEMA_AT_LABEL;
    atomic_init(&model->references, 1);
    err = model_name_columns(model);
    if (err) {
        model_free(model);
        return err;
    }
    *modelp = model;
    return WEIR_OK;
}

weir_score_model *weir_score_model_share(weir_score_model *model) {
    unsigned before = atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    WEIR_ASSERT(before > 0);
    return model;
}

void weir_score_model_drop(weir_score_model *model) {
    if (!model) return;
    unsigned before = atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel);
    WEIR_ASSERT(before > 0);
    if (before > 1) return;
    if (model->opts.release) model->opts.release(model->opts.owner);
    model_free(model);
}

const char *weir_score_model_name(const weir_score_model *model) {
    return model->name;
}

const char *weir_score_model_version(const weir_score_model *model) {
    return model->version;
}

const weir_nn_shape *weir_score_model_shape(const weir_score_model *model) {
    return model->opts.shape;
}

bool weir_score_model_blends(const weir_score_model *model) {
    return model->opts.nn && model->opts.trees;
}
