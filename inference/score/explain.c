/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - which of a target's first edges made the score: each is left out once, in a variant of the target.
 *
 *   target ─┬─ as it is             The variants stand beside the target as targets of their own, over the same tree
 *           ├─ without edge 1       below: what an edge leads to does not depend on the target, so only the rows of
 *           ├─ …                    targets are computed again. One forward pass answers all of it.
 *           └─ without its own row
 *
 * What the target's row says of a pair came by two of these edges: a variant that lacks one of them knows nothing of
 * the pair either, so it has a row of its own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "score_private.h"

typedef struct explain_widening {
    const weir_nn_shape *shape;
    const weir_schema *schema;
    const weir_block_view *from;
    const weir_score_inputs *inputs;
    const bool *explain;
    weir_arena *arena;
    weir_score_wide *wide;
    uint32_t target_type;
    uint32_t targets; /* of the wider block             */
    uint32_t shift;   /* of nodes behind the targets    */
    uint32_t blanks;  /* input rows that variants have of their own, in which something is missing */
    struct explain_blank *blank_rows;
    bool starved; /* some allocation failed         */
} explain_widening;

#define EXPLAIN_NONE UINT32_MAX
#define EXPLAIN_ALL  (UINT32_MAX - 1)

/* The row of a target, of the block, without what an edge of the step has told, or without anything. */
typedef struct explain_blank {
    uint32_t row;
    uint32_t step; /* EXPLAIN_ALL: nothing is left */
} explain_blank;

static void *explain_grab(explain_widening *w, size_t count, size_t size) {
    void *memory = weir_arena_alloc(w->arena, count * size);
    if (!memory) w->starved = true;
    return memory;
}

/* Steps of the first hop stand first. */
static uint32_t explain_first_steps(const weir_nn_shape *shape) {
    uint32_t count, first = 0;
    const weir_sample_step *steps = weir_nn_steps(shape, &count);
    while (first < count && steps[first].hop == 1)
        first++;
    return first;
}

static bool explain_has_parents(const weir_block_edges *e) {
    return e->parent_end > e->parent_begin;
}

/* Whether the number says something of a pair to which an edge of the step leads. */
static bool explain_is_told_by(const explain_widening *w, const weir_nn_number *number, uint32_t step) {
    uint32_t steps;
    const weir_sample_step *s = &weir_nn_steps(w->shape, &steps)[step];
    if (number->kind != WEIR_NN_AGGREGATE) return false;
    const weir_schema_aggregate *of = weir_schema_aggregate_at(w->schema, number->source);
    return s->direction == WEIR_OUT && (of->between[0] == s->relation || of->between[1] == s->relation);
}

/* The edge of the step by which a target knows of pairs: its newest one. EXPLAIN_NONE: the step tells nothing of any,
 * or only some of many edges were drawn, and that one need not be among them. */
static uint32_t explain_telling_edge(const explain_widening *w, uint32_t step, uint32_t target) {
    const weir_nn_inputs *inputs = weir_nn_vertex(w->shape, w->target_type);
    const weir_block_edges *e = &w->from->edges[step];
    bool tells = false;
    for (uint32_t i = 0; i < inputs->number_count; i++)
        tells = tells || explain_is_told_by(w, &inputs->numbers[i], step);
    uint32_t steps, drawn = e->offsets[target + 1] - e->offsets[target];
    const weir_sample_step *of = &weir_nn_steps(w->shape, &steps)[step];
    bool chosen = of->strategy == WEIR_SAMPLE_UNIFORM || of->strategy == WEIR_SAMPLE_WEIGHTED;
    if (!tells || drawn == 0 || (chosen && drawn >= of->fanout)) return EXPLAIN_NONE;
    uint32_t newest = e->offsets[target];
    for (uint32_t i = newest; i < e->offsets[target + 1]; i++)
        if (e->times[i] > e->times[newest]) newest = i;
    return newest;
}

/* A first edge of a target: which of them it is, in the order of the steps, and when it came to be. */
typedef struct explain_edge {
    int64_t time_us;
    uint32_t nth;
    uint32_t step; /* if it tells of pairs, else EXPLAIN_NONE */
} explain_edge;

static int explain_by_newest(const void *a, const void *b) {
    const explain_edge *x = a, *y = b;
    if (x->time_us != y->time_us) return x->time_us > y->time_us ? -1 : 1;
    return (x->nth > y->nth) - (x->nth < y->nth);
}

/* --- where everything goes ---------------------------------------------------------------------------------------- */

/* Which first edges of a target are left out once: all of them, or the newest WEIR_SCORE_EDGES_MAX. */
static void explain_choose_edges(explain_widening *w, uint32_t target, weir_score_place *place) {
    uint32_t steps = explain_first_steps(w->shape), count = 0, nth = 0;
    for (uint32_t s = 0; s < steps; s++) {
        const weir_block_edges *e = &w->from->edges[s];
        if (explain_has_parents(e)) count += e->offsets[target + 1] - e->offsets[target];
    }
    explain_edge *edges = explain_grab(w, count, sizeof *edges);
    place->variant_of = explain_grab(w, count, sizeof *place->variant_of);
    if (w->starved) return;
    for (uint32_t s = 0; s < steps; s++) {
        const weir_block_edges *e = &w->from->edges[s];
        if (!explain_has_parents(e)) continue;
        const uint32_t telling = explain_telling_edge(w, s, target);
        for (uint32_t i = e->offsets[target]; i < e->offsets[target + 1]; i++, nth++)
            edges[nth] = (explain_edge){e->times[i], nth, i == telling ? s : EXPLAIN_NONE};
    }
    WEIR_ASSERT(nth == count);
    if (count > WEIR_SCORE_EDGES_MAX) qsort(edges, count, sizeof *edges, explain_by_newest);
    for (uint32_t i = 0; i < count; i++)
        place->variant_of[edges[i].nth] = i < WEIR_SCORE_EDGES_MAX ? i : UINT32_MAX;
    uint32_t tried = count < WEIR_SCORE_EDGES_MAX ? count : WEIR_SCORE_EDGES_MAX;
    place->untried = count - tried;
    place->variants = tried + 1;
    place->steps = explain_grab(w, tried, sizeof *place->steps);
    for (uint32_t i = 0; i < tried && !w->starved; i++) {
        place->steps[i] = edges[i].step;
        w->blanks += edges[i].step != EXPLAIN_NONE;
    }
}

/* Each target with its variants behind it: one a first edge that is tried, and one without its row. */
static void explain_place_targets(explain_widening *w) {
    for (uint32_t i = 0; i < w->from->targets && !w->starved; i++) {
        weir_score_place *place = &w->wide->places[i];
        *place = (weir_score_place){.base = w->targets};
        if (w->explain[i]) explain_choose_edges(w, i, place);
        w->targets += 1 + place->variants;
        w->blanks += w->explain[i];
    }
    WEIR_ASSERT(w->starved || w->targets >= w->from->targets);
    w->shift = w->targets - w->from->targets;
}

/* Rows of variants stand behind those of the target's type, and push the rows behind them on. */
static uint32_t explain_row_of(const explain_widening *w, uint32_t row) {
    return row < w->from->input_ranges[w->target_type].end ? row : row + w->blanks;
}

static void explain_widen_nodes(explain_widening *w) {
    const weir_block_view *from = w->from;
    uint32_t nodes = from->nodes + w->shift, blanks = 0, first_blank = from->input_ranges[w->target_type].end;
    uint32_t *groups = explain_grab(w, nodes, sizeof *groups), *input_of = explain_grab(w, nodes, sizeof *input_of);
    int64_t *before_us = explain_grab(w, w->targets, sizeof *before_us);
    w->blank_rows = explain_grab(w, w->blanks, sizeof *w->blank_rows);
    if (w->starved) return;
    for (uint32_t i = 0; i < from->targets; i++) {
        weir_score_place place = w->wide->places[i];
        for (uint32_t at = place.base; at <= place.base + place.variants; at++) {
            const uint32_t variant = at - place.base;
            uint32_t step = variant == 0 ? EXPLAIN_NONE : EXPLAIN_ALL;
            if (variant && variant < place.variants) step = place.steps[variant - 1];
            groups[at] = at;
            input_of[at] = explain_row_of(w, from->input_of[i]);
            before_us[at] = from->before_us[i];
            if (step == EXPLAIN_NONE) continue;
            WEIR_ASSERT(blanks < w->blanks);
            w->blank_rows[blanks] = (explain_blank){from->input_of[i] - from->input_ranges[w->target_type].begin, step};
            input_of[at] = first_blank + blanks++;
        }
    }
    WEIR_ASSERT(blanks == w->blanks);
    for (uint32_t n = from->targets; n < from->nodes; n++) {
        groups[n + w->shift] = w->wide->places[from->groups[n]].base;
        input_of[n + w->shift] = explain_row_of(w, from->input_of[n]);
    }
    w->wide->view.groups = groups;
    w->wide->view.input_of = input_of;
    w->wide->view.before_us = before_us;
}

static void explain_widen_ranges(explain_widening *w) {
    const weir_block_view *from = w->from;
    weir_block_range *ranges = explain_grab(w, (from->hops + 1) * from->types, sizeof *ranges);
    weir_block_range *rows = explain_grab(w, from->types, sizeof *rows);
    uint32_t *hop_end = explain_grab(w, from->hops + 1, sizeof *hop_end);
    if (w->starved) return;
    for (uint32_t hop = 0; hop <= from->hops; hop++)
        hop_end[hop] = from->hop_end[hop] + w->shift;
    for (uint32_t i = 0; i < (from->hops + 1) * from->types; i++) {
        weir_block_range r = from->ranges[i];
        ranges[i] =
            r.begin == r.end ? (weir_block_range){0, 0} : (weir_block_range){r.begin + w->shift, r.end + w->shift};
    }
    ranges[w->target_type] = (weir_block_range){0, w->targets};
    for (uint32_t type = 0; type < from->types; type++) {
        uint32_t before = type > w->target_type ? w->blanks : 0, within = type == w->target_type ? w->blanks : 0;
        rows[type] =
            (weir_block_range){from->input_ranges[type].begin + before, from->input_ranges[type].end + before + within};
    }
    w->wide->view.ranges = ranges;
    w->wide->view.input_ranges = rows;
    w->wide->view.hop_end = hop_end;
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

/* The columns of one step that a forward pass reads. */
typedef struct explain_columns {
    uint32_t *offsets, *parents, *children;
    int64_t *times;
    weir_real *numbers;
    uint32_t width, count;
    size_t room;
} explain_columns;

static void explain_copy_edge(const explain_widening *w, explain_columns *c, uint32_t step, uint32_t edge,
                              uint32_t parent) {
    const weir_block_edges *e = &w->from->edges[step];
    WEIR_ASSERT(c->count < c->room && edge < e->count);
    c->parents[c->count] = parent;
    c->children[c->count] = e->children[edge] + w->shift;
    c->times[c->count] = e->times[edge];
    if (c->width) {
        memcpy(c->numbers + (size_t)c->count * c->width, w->inputs->edges[step] + (size_t)edge * c->width,
               c->width * sizeof *c->numbers);
    }
    c->count++;
}

/* One step from the targets: each variant has all edges of its target but the one that it lacks.
 * seen: how many first edges of each target the steps before had. */
static void explain_widen_first(explain_widening *w, uint32_t step, uint32_t *seen, weir_block_edges *edges) {
    const weir_block_edges *e = &w->from->edges[step];
    uint32_t steps;
    explain_columns c = {.width = weir_nn_edge(w->shape, weir_nn_steps(w->shape, &steps)[step].relation)->width};
    for (uint32_t i = 0; i < w->from->targets; i++)
        c.room += (size_t)(e->offsets[i + 1] - e->offsets[i]) * (1 + w->wide->places[i].variants);
    c.offsets = explain_grab(w, (size_t)w->targets + 1, sizeof *c.offsets);
    c.parents = explain_grab(w, c.room, sizeof *c.parents);
    c.children = explain_grab(w, c.room, sizeof *c.children);
    c.times = explain_grab(w, c.room, sizeof *c.times);
    c.numbers = c.width ? explain_grab(w, c.room * c.width, sizeof *c.numbers) : NULL;
    if (w->starved) return;

    c.offsets[0] = 0;
    for (uint32_t i = 0; i < w->from->targets; i++) {
        weir_score_place place = w->wide->places[i];
        for (uint32_t at = place.base; at <= place.base + place.variants; at++) {
            for (uint32_t edge = e->offsets[i]; edge < e->offsets[i + 1]; edge++) {
                bool missing =
                    at > place.base && place.variant_of[seen[i] + edge - e->offsets[i]] == at - place.base - 1;
                if (!missing) explain_copy_edge(w, &c, step, edge, at); // SCORE-C5
            }
            c.offsets[at + 1] = c.count;
        }
        seen[i] += e->offsets[i + 1] - e->offsets[i];
    }
    edges[step] = (weir_block_edges){
        .parent_begin = 0,
        .parent_end = w->targets,
        .count = c.count,
        .offsets = c.offsets,
        .parents = c.parents,
        .children = c.children,
        .times = c.times,
    };
    w->wide->inputs.edges[step] = c.numbers;
}

/* One step from nodes behind the targets: the same edges, their ends moved. */
static void explain_widen_deep(explain_widening *w, uint32_t step, weir_block_edges *edges) {
    const weir_block_edges *e = &w->from->edges[step];
    uint32_t *parents = explain_grab(w, e->count, sizeof *parents),
             *children = explain_grab(w, e->count, sizeof *children);
    if (w->starved) return;
    edges[step] = *e;
    edges[step].parents = parents;
    edges[step].children = children;
    w->wide->inputs.edges[step] = w->inputs->edges[step];
    if (!explain_has_parents(e)) return;
    edges[step].parent_begin += w->shift;
    edges[step].parent_end += w->shift;
    for (uint32_t i = 0; i < e->count; i++) {
        parents[i] = e->parents[i] + w->shift;
        children[i] = e->children[i] + w->shift;
    }
}

/* The rows of the target's type, and behind them those of variants, in which some values are missing or all. */
static void explain_widen_rows(explain_widening *w) {
    const weir_nn_inputs *inputs = weir_nn_vertex(w->shape, w->target_type);
    const weir_schema_feature *features = weir_schema_vertex_at(w->schema, w->target_type)->features;
    weir_block_range range = w->from->input_ranges[w->target_type];
    size_t rows = range.end - range.begin, all = rows + w->blanks;
    weir_real *numbers = explain_grab(w, all * inputs->width, sizeof *numbers);
    uint32_t *slots = explain_grab(w, all * inputs->category_count, sizeof *slots);
    if (w->starved) return;
    memcpy(numbers, w->inputs->numbers[w->target_type], rows * inputs->width * sizeof *numbers);
    memcpy(slots, w->inputs->slots[w->target_type], rows * inputs->category_count * sizeof *slots);
    for (size_t i = rows; i < all; i++) {
        const explain_blank *blank = &w->blank_rows[i - rows];
        weir_real *row = numbers + i * inputs->width;
        uint32_t *row_slots = slots + i * inputs->category_count;
        WEIR_ASSERT(blank->row < rows);
        if (blank->step == EXPLAIN_ALL) {
            weir_nn_encode(inputs, features, NULL, NULL, 0, row, row_slots);
            continue;
        }
        memcpy(row, numbers + (size_t)blank->row * inputs->width, inputs->width * sizeof *row);
        memcpy(row_slots, slots + (size_t)blank->row * inputs->category_count,
               inputs->category_count * sizeof *row_slots);
        for (uint32_t n = 0; n < inputs->number_count; n++)
            if (explain_is_told_by(w, &inputs->numbers[n], blank->step))
                row[inputs->numbers[n].column] = 0; /* missing */
    }
    w->wide->inputs.numbers[w->target_type] = numbers;
    w->wide->inputs.slots[w->target_type] = slots;
}

weir_err weir_score_widen(const weir_nn_shape *shape, const weir_block_view *view, const weir_score_inputs *inputs,
                          const bool *explain, const weir_schema *schema, weir_arena *arena, weir_score_wide *wide) {
    explain_widening w = {.shape = shape,
                          .schema = schema,
                          .from = view,
                          .inputs = inputs,
                          .explain = explain,
                          .arena = arena,
                          .wide = wide,
                          .target_type = weir_nn_target_type(shape)};
    uint32_t first = explain_first_steps(shape), seen[WEIR_SCORE_BATCH_MAX] = {0};
    WEIR_ASSERT(view->targets <= WEIR_SCORE_BATCH_MAX);
    wide->view = *view;
    wide->inputs = *inputs;
    explain_place_targets(&w);
    if (w.starved) goto starved;
    if (w.shift == 0) return WEIR_OK;
    wide->view.targets = w.targets;
    wide->view.nodes = view->nodes + w.shift;
    wide->view.inputs = view->inputs + w.blanks;
    wide->view.input_nodes = NULL;
    wide->view.vertices = NULL;
    wide->view.ids = NULL;
    wide->view.events = NULL;
    wide->view.cut = NULL;
    explain_widen_nodes(&w);
    if (!w.starved) explain_widen_ranges(&w);
    weir_block_edges *edges = explain_grab(&w, view->steps, sizeof *edges);
    wide->view.edges = edges;
    for (uint32_t s = 0; s < view->steps && !w.starved; s++) {
        if (s < first && explain_has_parents(&view->edges[s]))
            explain_widen_first(&w, s, seen, edges);
        else
            explain_widen_deep(&w, s, edges);
    }
    if (!w.starved) explain_widen_rows(&w);
    if (!w.starved) return WEIR_OK;
starved:
    return WEIR_ARENA_ERR(w.arena, "the reasons need more memory than a batch may use; ask for fewer targets at once");
}

/* --- the reasons -------------------------------------------------------------------------------------------------- */

static int explain_by_change(const void *a, const void *b) {
    const weir_score_reason *x = a, *y = b;
    double p = fabs(x->change), q = fabs(y->change);
    if (p != q) return p > q ? -1 : 1;
    if (x->relation != y->relation) return x->relation < y->relation ? -1 : 1;
    if (x->direction != y->direction) return x->direction < y->direction ? -1 : 1;
    if (x->time_us != y->time_us) return x->time_us > y->time_us ? -1 : 1;
    if (x->neighbor != y->neighbor) return x->neighbor < y->neighbor ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

weir_err weir_score_reasons_of(const weir_nn_shape *shape, const weir_sample_source *source,
                               const weir_block_view *view, const weir_score_wide *wide, const weir_real *logits,
                               uint32_t target, uint32_t wanted, weir_arena *arena, weir_score *score) {
    uint32_t step_count, outputs = weir_nn_outputs(shape), at = 0, nth = 0;
    const weir_sample_step *steps = weir_nn_steps(shape, &step_count);
    weir_score_place place = wide->places[target];
    weir_score_reason *reasons = weir_arena_alloc(arena, (size_t)place.variants * sizeof *reasons);
    if (!reasons) return WEIR_ARENA_ERR(arena, "no memory for the reasons of a score; ask for fewer targets at once");
    const weir_real *variants = logits + (size_t)(place.base + 1) * outputs + score->label;
    for (uint32_t s = 0; s < explain_first_steps(shape); s++) {
        const weir_block_edges *e = &view->edges[s];
        const weir_sample_ends *ends = &source->ends[steps[s].relation];
        if (!explain_has_parents(e)) continue;
        for (uint32_t i = e->offsets[target]; i < e->offsets[target + 1]; i++) {
            uint32_t variant = place.variant_of[nth++];
            if (variant == UINT32_MAX) continue;
            WEIR_ASSERT(at + 1 < place.variants && variant + 1 < place.variants);
            reasons[at++] = (weir_score_reason){
                .neighbor = view->ids[e->children[i]],
                .time_us = e->times[i],
                .event = e->refs[i],
                .change = score->logit - (double)variants[(size_t)variant * outputs], // SCORE-C5
                .relation = steps[s].relation,
                .neighbor_type = steps[s].direction == WEIR_OUT ? ends->to : ends->from,
                .direction = steps[s].direction,
            };
        }
    }
    WEIR_ASSERT(at + 1 == place.variants && nth == at + place.untried);
    score->own_change = score->logit - (double)variants[(size_t)at * outputs];
    qsort(reasons, at, sizeof *reasons, explain_by_change);
    score->reasons = reasons;
    score->reason_count = at < wanted ? at : wanted;
    score->untried = place.untried;
    return WEIR_OK;
}
