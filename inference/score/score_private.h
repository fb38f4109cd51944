/* SPDX-License-Identifier: Apache-2.0 */
/* score_private.h - what the files of the scorer share. */
#ifndef WEIR_INFERENCE_SCORE_PRIVATE_H
#define WEIR_INFERENCE_SCORE_PRIVATE_H

#include <stdatomic.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/score/score.h>
#include <weir/store/sample/source.h>

#define WEIR_SCORE_EFFORTS    3u
#define WEIR_SCORE_NAME_MAX   128u
#define WEIR_SCORE_BYTES_MAX  ((size_t)256 << 20) /* of one batch's rows, and of one call's windows */
#define WEIR_SCORE_EVENTS_MAX WEIR_SCORE_BATCH_MAX

struct weir_score_model {
    atomic_uint references;
    char name[WEIR_SCORE_NAME_MAX], version[WEIR_SCORE_NAME_MAX];
    weir_score_model_opts opts;
    bool at_label; /* the task judges at labels, not at puts */
    /* What its trees read, where they tell what that contributes; else NULL. */
    const weir_tree_column *columns;
    uint32_t column_count;
    weir_arena *names; /* in which they live */
};

/* --- overlay.c: a living graph, and for some of its vertices an event that it does not have yet ------------------- */

typedef struct weir_score_overlay weir_score_overlay;

/* Both are borrowed; live is the graph's source.  WEIR_ENOMEM. */
weir_err weir_score_overlay_open(weir_graph *graph, weir_sample_source *live, weir_score_overlay **overlayp);
void weir_score_overlay_close(weir_score_overlay *overlay);
weir_sample_source *weir_score_overlay_source(weir_score_overlay *overlay);
/* From now on, the events of these asks are seen; they are borrowed until the next call. */
void weir_score_overlay_show(weir_score_overlay *overlay, const weir_score_ask *const *asks, uint32_t count);

/* A block's vertices and edges in floats. */
typedef struct weir_score_inputs {
    const weir_real *numbers[WEIR_SCHEMA_VERTICES_MAX];
    const uint32_t *slots[WEIR_SCHEMA_VERTICES_MAX];
    const weir_real *edges[WEIR_SAMPLE_STEPS_MAX];
} weir_score_inputs;

/* --- explain.c: a block in which some targets stand several times, each time with one thing missing --------------- */

/* The targets of one ask among those of the wider block. */
typedef struct weir_score_place {
    uint32_t base;        /* as it is                                                                      */
    uint32_t variants;    /* behind it: one for each first edge that is tried; then one without its own row */
    uint32_t *variant_of; /* of each first edge, by the steps: which variant lacks it; UINT32_MAX: none     */
    uint32_t *steps;      /* of each of these: the edge's step, if the edge tells of pairs; else UINT32_MAX       */
    uint32_t untried;     /* first edges that are too many: the oldest                                      */
} weir_score_place;

typedef struct weir_score_wide {
    weir_block_view view;
    weir_score_inputs inputs;
    weir_score_place places[WEIR_SCORE_BATCH_MAX];
} weir_score_wide;

/* explain[i]: whether target i gets variants. Borrows view and inputs; what is new lives in the arena.  WEIR_ELIMIT,
 * WEIR_ENOMEM. */
weir_err weir_score_widen(const weir_nn_shape *shape, const weir_block_view *view, const weir_score_inputs *inputs,
                          const bool *explain, const weir_schema *schema, weir_arena *arena, weir_score_wide *wide);
/* The reasons of one target, by the logits of the wider block, and how much its own row changed.  WEIR_ELIMIT,
 * WEIR_ENOMEM. */
weir_err weir_score_reasons_of(const weir_nn_shape *shape, const weir_sample_source *source,
                               const weir_block_view *view, const weir_score_wide *wide, const weir_real *logits,
                               uint32_t target, uint32_t wanted, weir_arena *arena, weir_score *score);

/* --- trees.c ------------------------------------------------------------------------------------------------------ */

/* The log odds that the model's trees give each target of the wider block, made of view by weir_score_widen, and the
 * rows by which they do; columns are over the source from which view was sampled. Both live in the arena.  WEIR_ELIMIT,
 * WEIR_ENOMEM; errors of the source. */
weir_err weir_score_margins(const weir_score_model *model, weir_tree_columns *columns, const weir_block_view *view,
                            const weir_score_wide *wide, weir_arena *arena, float **marginsp, float **rowsp);
/* What the columns of one target's row contribute, of a model that has names for them. network: the logit of the
 * model's network for the target.  WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_score_columns_of(const weir_score_model *model, const weir_schema *schema, const float *row,
                               double network, uint32_t wanted, weir_arena *arena, weir_score *score);

#endif /* WEIR_INFERENCE_SCORE_PRIVATE_H */
