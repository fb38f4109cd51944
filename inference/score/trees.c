/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trees.c - what boosted trees say of the targets of a pass, and of the variants that stand beside them for reasons.
 *
 * Columns are written from the wider block as they are from any. How many edges a vertex has is asked once, of the
 * block that was sampled: a variant has what its target has, but for the edge that it lacks.
 *
 * What columns contribute is told of the target itself, once for each ask that wants them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "score_private.h"

#define TREES_NO_ROOM "what trees read needs more memory than a batch may use; ask for fewer targets at once"

/* Of the targets of the wider block, along a step of the first hop. */
static const uint32_t *trees_widen_edges(const weir_block_view *view, const weir_score_wide *wide, uint32_t step,
                                         const uint32_t *edges, weir_arena *arena) {
    const uint32_t *narrow = view->edges[step].offsets, *offsets = wide->view.edges[step].offsets;
    uint32_t *widened = weir_arena_alloc(arena, wide->view.targets * sizeof *widened);
    for (uint32_t i = 0; widened && i < view->targets; i++) {
        const weir_score_place *place = &wide->places[i];
        for (uint32_t at = place->base; at <= place->base + place->variants; at++) {
            const uint32_t missing = narrow[i + 1] - narrow[i] - (offsets[at + 1] - offsets[at]);
            WEIR_ASSERT(missing <= (at > place->base) && missing <= edges[i]);
            widened[at] = edges[i] - missing; // SCORE-C5
        }
    }
    return widened;
}

weir_err weir_score_margins(const weir_score_model *model, weir_tree_columns *columns, const weir_block_view *view,
                            const weir_score_wide *wide, weir_arena *arena, float **marginsp, float **rowsp) {
    const weir_trees *trees = model->opts.trees;
    const size_t targets = wide->view.targets, width = weir_trees_look(trees).columns;
    const uint32_t *const *edges, *widened[WEIR_SAMPLE_STEPS_MAX] = {NULL};
    uint32_t steps;
    const weir_sample_step *of = weir_nn_steps(weir_score_model_shape(model), &steps);
    float *rows = *rowsp = weir_arena_alloc(arena, targets * width * sizeof *rows);
    float *margins = *marginsp = weir_arena_alloc(arena, targets * sizeof *margins);
    if (!rows || !margins) return WEIR_ARENA_ERR(arena, TREES_NO_ROOM);
    weir_err err = weir_tree_columns_edges(columns, view, &edges);
    for (uint32_t step = 0; !err && step < steps && of[step].hop <= model->opts.hops; step++) {
        const bool grows = of[step].hop == 1 && view->edges[step].parent_end > view->edges[step].parent_begin;
        widened[step] = grows ? trees_widen_edges(view, wide, step, edges[step], arena) : edges[step];
        if (grows && !widened[step]) err = WEIR_ARENA_ERR(arena, TREES_NO_ROOM);
    }
    if (err) return err;
    const weir_tree_columns_block block = {&wide->view, wide->inputs.numbers, wide->inputs.slots, widened};
    weir_tree_columns_write(columns, &block, rows);
    weir_trees_walk(trees, rows, targets, margins);
    return WEIR_OK;
}

/* --- what columns contribute -------------------------------------------------------------------------------------- */

/* Of all columns, of which few are told. */
typedef struct trees_part {
    const weir_tree_column *of;
    double contribution;
} trees_part;

static int trees_by_contribution(const void *a, const void *b) {
    const trees_part *x = a, *y = b;
    const double p = fabs(x->contribution), q = fabs(y->contribution);
    if (p != q) return p > q ? -1 : 1;
    return strcmp(x->of->name, y->of->name);
}

/* Of a list of categories the word; of buckets their number; nothing of a value that is missing or not in the list. */
static void trees_fill_column(const weir_schema *schema, const trees_part *part, const float *row,
                              weir_score_column *column) {
    const weir_tree_column *of = part->of;
    *column = (weir_score_column){
        .name = of->name, .value = weir_tree_column_value(of, row), .contribution = part->contribution};
    if (!of->category || isnan(column->value)) return;
    const weir_schema_feature *feature = &weir_schema_vertex_at(schema, of->type)->features[of->category->feature];
    const uint32_t slot = (uint32_t)column->value;
    if (slot > 0 && slot <= feature->values.count) column->text = feature->values.texts[slot - 1];
    if (slot == 0 || feature->buckets == 0) column->value = NAN;
}

weir_err weir_score_columns_of(const weir_score_model *model, const weir_schema *schema, const float *row,
                               double network, uint32_t wanted, weir_arena *arena, weir_score *score) {
    const weir_trees *trees = model->opts.trees;
    const weir_blend *blend = &model->opts.blend;
    const bool blends = weir_score_model_blends(model);
    const double weight = blends ? blend->trees_slope / 2 : 1;
    double *contributions = weir_arena_alloc(arena, weir_trees_look(trees).columns * sizeof *contributions);
    trees_part *parts = weir_arena_calloc(arena, model->column_count, sizeof *parts);
    weir_score_column *columns = weir_arena_alloc(arena, wanted * sizeof *columns);
    if (!contributions || !parts || !columns) return WEIR_ARENA_ERR(arena, TREES_NO_ROOM);
    weir_trees_contribute(trees, row, contributions);
    for (uint32_t i = 0; i < model->column_count; i++) {
        const weir_tree_column *of = &model->columns[i];
        parts[i].of = of;
        for (uint32_t c = of->begin; c < of->begin + of->count; c++)
            parts[i].contribution += weight * contributions[c];
    }
    qsort(parts, model->column_count, sizeof *parts, trees_by_contribution);
    score->columns = columns;
    for (uint32_t i = 0; i < model->column_count; i++) {
        if (i < wanted && parts[i].contribution != 0)
            trees_fill_column(schema, &parts[i], row, &columns[score->column_count++]);
        else
            score->other_columns += parts[i].contribution;
    }
    score->base = weight * weir_trees_expected(trees) + (blends ? blend->trees_offset / 2 : 0);
    if (blends) score->network = (blend->network_slope * network + blend->network_offset) / 2;
    return WEIR_OK;
}
