/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trees.c - what boosted trees say of the targets of a pass, and of the variants that stand beside them for reasons.
 *
 * Columns are written from the wider block as they are from any. How many edges a vertex has is asked once, of the
 * block that was sampled: a variant has what its target has, but for the edge that it lacks.
 */
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
                            const weir_score_wide *wide, weir_arena *arena, float **marginsp) {
    const weir_trees *trees = model->opts.trees;
    const size_t targets = wide->view.targets, width = weir_trees_look(trees).columns;
    const uint32_t *const *edges, *widened[WEIR_SAMPLE_STEPS_MAX] = {NULL};
    uint32_t steps;
    const weir_sample_step *of = weir_nn_steps(weir_score_model_shape(model), &steps);
    float *rows = weir_arena_alloc(arena, targets * width * sizeof *rows);
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
