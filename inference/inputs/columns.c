/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - a target's tree, told in one row of numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define COLUMNS_NO_MEMORY "for what trees read of a target"

/* How many edges the vertices have that a step of a block goes out from. */
typedef struct columns_edges {
    uint32_t *of;
    uint32_t room;
} columns_edges;

struct weir_tree_columns {
    const weir_nn_shape *shape;
    weir_sample_source *source;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]; /* of hop 1, then of hop 2 */
    uint32_t first_count, step_count;
    size_t count;
    columns_edges edges[WEIR_SAMPLE_STEPS_MAX];
    const uint32_t *edges_of[WEIR_SAMPLE_STEPS_MAX]; /* the same, as it is borrowed */
    double *sums;                                    /* of one vertex's neighbours  */
};

/* --- what a row has ----------------------------------------------------------------------------------------------- */

/* Without the vertex itself: no tree learns from the number that stands for one. */
static uint32_t columns_categories(const weir_nn_inputs *inputs) {
    return inputs->category_count - (inputs->known_count > 0);
}

static size_t columns_vertex_width(const weir_nn_inputs *inputs) {
    return inputs->width + columns_categories(inputs);
}

static const weir_nn_inputs *columns_child(const weir_nn_shape *shape, uint32_t step) {
    return weir_nn_vertex(shape, weir_nn_child_of(shape, step));
}

/* Columns of a step of hop 1; steps: of the shape, those that count. */
static size_t columns_step_width(const weir_nn_shape *shape, uint32_t first, uint32_t first_count, uint32_t steps) {
    size_t width = 1 + columns_child(shape, first)->width + columns_vertex_width(columns_child(shape, first));
    for (uint32_t step = first_count; step < steps; step++)
        if (weir_nn_parent_of(shape, step) == weir_nn_child_of(shape, first))
            width += 1 + columns_child(shape, step)->width;
    return width;
}

/* How many steps the shape has up to a hop. */
static uint32_t columns_steps_to(const weir_nn_shape *shape, uint32_t hops) {
    uint32_t count, to = 0;
    const weir_sample_step *steps = weir_nn_steps(shape, &count);
    while (to < count && steps[to].hop <= hops)
        to++;
    return to;
}

size_t weir_tree_columns_count(const weir_nn_shape *shape, uint32_t hops) {
    const uint32_t first_count = columns_steps_to(shape, hops < 1 ? hops : 1), steps = columns_steps_to(shape, hops);
    size_t count = columns_vertex_width(weir_nn_vertex(shape, weir_nn_target_type(shape)));
    WEIR_ASSERT(hops <= WEIR_TREE_COLUMNS_HOPS_MAX);
    for (uint32_t first = 0; first < first_count; first++)
        count += columns_step_width(shape, first, first_count, steps);
    return count;
}

uint32_t weir_tree_columns_steps(const weir_nn_shape *shape, uint32_t hops,
                                 weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]) {
    uint32_t all;
    const weir_sample_step *from = weir_nn_steps(shape, &all);
    const uint32_t count = columns_steps_to(shape, hops);
    WEIR_ASSERT(count <= WEIR_SAMPLE_STEPS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        steps[i] = from[i];
        steps[i].strategy = WEIR_SAMPLE_RECENT;
    }
    return count;
}

bool weir_tree_columns_share(const weir_nn_shape *shape, uint32_t hops) {
    uint32_t all;
    const weir_sample_step *steps = weir_nn_steps(shape, &all);
    bool share = true;
    for (uint32_t i = 0; i < columns_steps_to(shape, hops); i++)
        share = share && steps[i].strategy == WEIR_SAMPLE_RECENT;
    return share;
}

size_t weir_tree_columns_of_vertex(const weir_nn_inputs *inputs, const weir_real *numbers, const uint32_t *slots,
                                   float *columns) {
    for (uint32_t c = 0; c < inputs->width; c++)
        *columns++ = (float)numbers[c];
    for (uint32_t c = 0; c < columns_categories(inputs); c++)
        *columns++ = (float)slots[c];
    return columns_vertex_width(inputs);
}

/* --- what they are called ----------------------------------------------------------------------------------------- */

typedef struct columns_naming {
    const weir_nn_shape *shape;
    weir_arena *arena;
    weir_tree_column *columns;
    uint32_t count, at; /* names, and columns of the row that have one */
    bool starved;
} columns_naming;

static weir_tree_column *columns_name(columns_naming *n, const char *prefix, const char *name, uint32_t type,
                                      uint32_t count) {
    weir_tree_column *column = &n->columns[n->count++];
    *column = (weir_tree_column){
        .name = weir_arena_printf(n->arena, "%s%s", prefix, name), .type = type, .begin = n->at, .count = count};
    n->starved = n->starved || !column->name;
    n->at += count;
    return column;
}

/* Of a vertex, or of a mean of some: shape.h has the order. */
static void columns_name_numbers(columns_naming *n, const char *prefix, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(n->shape, type);
    const uint32_t begin = n->at;
    for (uint32_t i = 0; i < inputs->number_count; i++) {
        const weir_nn_number *number = &inputs->numbers[i];
        WEIR_ASSERT(n->at == begin + number->column);
        columns_name(n, prefix, number->name, type, number->kind == WEIR_NN_AGGREGATE ? 1 : 2)->number = number;
    }
    for (uint32_t i = 0; i < inputs->matrix_count; i++)
        columns_name(n, prefix, inputs->matrices[i].name, type, inputs->matrices[i].columns);
    WEIR_ASSERT(n->at == begin + inputs->width);
}

static void columns_name_vertex(columns_naming *n, const char *prefix, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(n->shape, type);
    columns_name_numbers(n, prefix, type);
    for (uint32_t i = 0; i < columns_categories(inputs); i++)
        columns_name(n, prefix, inputs->categories[i].name, type, 1)->category = &inputs->categories[i];
}

/* "PREFIX RELATION.DIRECTION.WORD", without blanks. */
static const char *columns_prefix(columns_naming *n, const char *prefix, uint32_t step, const char *word) {
    static const char *const directions[] = {[WEIR_OUT] = "out", [WEIR_IN] = "in"};
    uint32_t steps;
    const weir_sample_step *of = &weir_nn_steps(n->shape, &steps)[step];
    const char *made = weir_arena_printf(n->arena, "%s%s.%s.%s", prefix, weir_nn_edge(n->shape, of->relation)->name,
                                         directions[of->direction], word);
    n->starved = n->starved || !made;
    return made ? made : "";
}

static void columns_name_means(columns_naming *n, const char *prefix, uint32_t step) {
    const uint32_t type = weir_nn_child_of(n->shape, step);
    columns_name(n, columns_prefix(n, prefix, step, ""), "edges", type, 1)->edges = true;
    columns_name_numbers(n, columns_prefix(n, prefix, step, "mean."), type);
}

/* In the order of columns_write_neighbors. */
static void columns_name_neighbors(columns_naming *n, uint32_t first, uint32_t first_count, uint32_t steps) {
    const uint32_t type = weir_nn_child_of(n->shape, first);
    columns_name_means(n, "", first);
    columns_name_vertex(n, columns_prefix(n, "", first, "newest."), type);
    for (uint32_t step = first_count; step < steps; step++)
        if (weir_nn_parent_of(n->shape, step) == type) columns_name_means(n, columns_prefix(n, "", first, ""), step);
}

weir_err weir_tree_columns_name(const weir_nn_shape *shape, uint32_t hops, weir_arena *arena,
                                const weir_tree_column **columnsp, uint32_t *countp) {
    const size_t count = weir_tree_columns_count(shape, hops);
    const uint32_t first_count = columns_steps_to(shape, hops < 1 ? hops : 1), steps = columns_steps_to(shape, hops);
    columns_naming n = {.shape = shape, .arena = arena};
    n.columns = weir_arena_alloc(arena, count * sizeof *n.columns);
    n.starved = !n.columns;
    if (n.columns) columns_name_vertex(&n, "", weir_nn_target_type(shape));
    for (uint32_t first = 0; n.columns && first < first_count; first++)
        columns_name_neighbors(&n, first, first_count, steps);
    if (n.starved) return WEIR_ARENA_ERR(arena, "the columns of the model's trees are too many to be named");
    WEIR_ASSERT(n.at == count);
    *columnsp = n.columns;
    *countp = n.count;
    return WEIR_OK;
}

/* Floats hold no more for certain. */
static double columns_six_digits(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return strtod(text, NULL);
}

double weir_tree_column_value(const weir_tree_column *column, const float *row) {
    const double value = (double)row[column->begin];
    if (column->category || isnan(value)) return value;
    if (column->edges) return columns_six_digits(expm1(value));
    if (!column->number) return NAN;
    /* Of a mean, the flag is the share of those without a value, which was taken for 0. */
    const double missing = column->count > 1 ? (double)row[column->begin + 1] : 0;
    /* An aggregate has no flag: where there is none it is told as the mean, which no edges add up to by chance. */
    if (column->count == 1 && value == 0) return NAN;
    return missing < 1 ? columns_six_digits(weir_nn_decode(column->number, value / (1 - missing))) : NAN;
}

/* --- how many edges ----------------------------------------------------------------------------------------------- */

/* Of parents [begin, begin + count) of a step. What the source shows is older than the target, whatever the graph has
 * by now; edges of the target's own event are as old as it is, and are there besides. */
static weir_err columns_ask_edges(const weir_tree_columns *c, const weir_block_view *view, uint32_t step,
                                  uint32_t begin, uint32_t count, uint32_t *of) {
    const weir_block_edges *edges = &view->edges[step];
    const uint32_t node = edges->parent_begin + begin;
    weir_sample_window windows[WEIR_SAMPLE_ASK_MAX];
    int64_t before_us[WEIR_SAMPLE_ASK_MAX];
    const weir_sample_ask ask = {.parents = view->vertices ? view->vertices + node : NULL,
                                 .parent_ids = view->ids ? view->ids + node : NULL,
                                 .before_us = before_us,
                                 .count = count,
                                 .limit = WEIR_TREE_COLUMNS_EDGES_MAX,
                                 .relation = c->steps[step].relation,
                                 .type = (uint16_t)weir_nn_parent_of(c->shape, step),
                                 .direction = c->steps[step].direction};
    WEIR_ASSERT(count <= WEIR_SAMPLE_ASK_MAX);
    for (uint32_t i = 0; i < count; i++)
        before_us[i] = view->before_us[view->groups[node + i]]; // INPUTS-I2
    weir_err err = c->source->windows(c->source, &ask, windows);
    for (uint32_t i = 0; !err && i < count; i++) {
        of[i] = windows[i].count;
        for (uint32_t e = edges->offsets[begin + i]; e < edges->offsets[begin + i + 1]; e++)
            of[i] += edges->times[e] >= before_us[i];
    }
    return err;
}

weir_err weir_tree_columns_edges(weir_tree_columns *c, const weir_block_view *view, const uint32_t *const **edgesp) {
    weir_err err = WEIR_OK;
    WEIR_ASSERT(view->steps >= c->step_count);
    for (uint32_t step = 0; !err && step < c->step_count; step++) {
        const uint32_t parents = view->edges[step].parent_end - view->edges[step].parent_begin;
        columns_edges *edges = &c->edges[step];
        if (parents > edges->room) {
            uint32_t *of = weir_realloc_array(edges->of, parents, sizeof *of);
            if (!of) return WEIR_NOMEM(COLUMNS_NO_MEMORY);
            edges->of = of;
            edges->room = parents;
        }
        for (uint32_t begin = 0; !err && begin < parents; begin += WEIR_SAMPLE_ASK_MAX) {
            const uint32_t left = parents - begin;
            err = columns_ask_edges(c, view, step, begin, left < WEIR_SAMPLE_ASK_MAX ? left : WEIR_SAMPLE_ASK_MAX,
                                    edges->of + begin);
        }
        c->edges_of[step] = edges->of;
    }
    *edgesp = c->edges_of;
    return err;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* The place of a node among the input rows of its type. */
static size_t columns_row_of(const weir_tree_columns_block *b, uint32_t type, uint32_t node) {
    return b->view->input_of[node] - b->view->input_ranges[type].begin;
}

static size_t columns_write_vertex(const weir_tree_columns *c, const weir_tree_columns_block *b, uint32_t type,
                                   uint32_t node, float *at) {
    const weir_nn_inputs *inputs = weir_nn_vertex(c->shape, type);
    const size_t row = columns_row_of(b, type, node);
    return weir_tree_columns_of_vertex(inputs, b->numbers[type] + row * inputs->width,
                                       b->slots[type] + row * inputs->category_count, at);
}

/* Adds the means of a vertex's neighbours along the step to the sums, which begin with how many there are. Returns
 * whether it has any in the block. */
static bool columns_add_means(const weir_tree_columns *c, const weir_tree_columns_block *b, uint32_t step,
                              uint32_t node) {
    const weir_block_edges *edges = &b->view->edges[step];
    const uint32_t type = weir_nn_child_of(c->shape, step), width = weir_nn_vertex(c->shape, type)->width;
    const uint32_t *offsets = &edges->offsets[node - edges->parent_begin];
    WEIR_ASSERT(node >= edges->parent_begin && node < edges->parent_end);
    c->sums[0] += (double)log1pf((float)b->edges[step][node - edges->parent_begin]);
    for (uint32_t i = offsets[0]; i < offsets[1]; i++) {
        const weir_real *numbers = b->numbers[type] + columns_row_of(b, type, edges->children[i]) * width;
        for (uint32_t n = 0; n < width; n++)
            c->sums[1 + n] += (double)numbers[n] / (offsets[1] - offsets[0]);
    }
    return offsets[1] > offsets[0];
}

/* Means over the neighbours of a target along `first`: of these themselves where step is the same, else of what their
 * own neighbours along the step are on average. Returns the columns that they take. */
static size_t columns_write_means(const weir_tree_columns *c, const weir_tree_columns_block *b, uint32_t first,
                                  uint32_t step, uint32_t node, float *at) {
    const weir_block_edges *edges = &b->view->edges[first];
    const uint32_t *offsets = &edges->offsets[node - edges->parent_begin];
    const uint32_t width = columns_child(c->shape, step)->width;
    uint32_t vertices = 0, with = 0; /* … and of them those that have neighbours */
    memset(c->sums, 0, (1 + width) * sizeof *c->sums);
    if (step == first) {
        with = columns_add_means(c, b, first, node);
        vertices = 1;
    }
    for (uint32_t i = offsets[0]; step != first && i < offsets[1]; i++, vertices++)
        with += columns_add_means(c, b, step, edges->children[i]);
    if (vertices) at[0] = (float)(c->sums[0] / vertices);
    for (uint32_t n = 0; with && n < width; n++)
        at[1 + n] = (float)(c->sums[1 + n] / with);
    return 1 + width;
}

/* Of each target, along a step of hop 1: how many neighbours it has and their means, the newest of them, which is the
 * first edge of a parent, and what their own neighbours are. */
static void columns_write_neighbors(const weir_tree_columns *c, const weir_tree_columns_block *b, uint32_t first,
                                    float *rows) {
    const weir_block_edges *edges = &b->view->edges[first];
    const uint32_t type = weir_nn_child_of(c->shape, first);
    WEIR_ASSERT(edges->parent_end <= b->view->targets); /* hop 1 goes out from targets, which are the first nodes */
    for (uint32_t node = edges->parent_begin; node < edges->parent_end; node++) {
        const uint32_t *offsets = &edges->offsets[node - edges->parent_begin];
        float *begin = rows + node * c->count, *at = begin;
        at += columns_write_means(c, b, first, first, node, at);
        if (offsets[0] < offsets[1]) columns_write_vertex(c, b, type, edges->children[offsets[0]], at);
        at += columns_vertex_width(weir_nn_vertex(c->shape, type));
        for (uint32_t step = c->first_count; step < c->step_count; step++)
            if (weir_nn_parent_of(c->shape, step) == type) at += columns_write_means(c, b, first, step, node, at);
        WEIR_ASSERT(at == begin + columns_step_width(c->shape, first, c->first_count, c->step_count));
    }
}

void weir_tree_columns_write(weir_tree_columns *c, const weir_tree_columns_block *b, float *rows) {
    const uint32_t type = weir_nn_target_type(c->shape);
    size_t column = columns_vertex_width(weir_nn_vertex(c->shape, type));
    for (size_t i = 0; i < b->view->targets * c->count; i++)
        rows[i] = NAN;
    for (uint32_t i = 0; i < b->view->targets; i++)
        columns_write_vertex(c, b, type, i, rows + i * c->count);
    for (uint32_t step = 0; step < c->first_count; step++) {
        columns_write_neighbors(c, b, step, rows + column);
        column += columns_step_width(c->shape, step, c->first_count, c->step_count);
    }
    WEIR_ASSERT(column == c->count);
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

weir_err weir_tree_columns_open(const weir_nn_shape *shape, uint32_t hops, weir_sample_source *source,
                                weir_tree_columns **columnsp) {
    *columnsp = NULL;
    weir_tree_columns *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM(COLUMNS_NO_MEMORY);
    c->shape = shape;
    c->source = source;
    c->step_count = weir_tree_columns_steps(shape, hops, c->steps);
    c->first_count = columns_steps_to(shape, hops < 1 ? hops : 1);
    c->count = weir_tree_columns_count(shape, hops);
    c->sums = weir_calloc(c->count + 1, sizeof *c->sums);
    if (!c->sums) {
        weir_tree_columns_close(c);
        return WEIR_NOMEM(COLUMNS_NO_MEMORY);
    }
    *columnsp = c;
    return WEIR_OK;
}

void weir_tree_columns_close(weir_tree_columns *c) {
    if (!c) return;
    for (uint32_t step = 0; step < WEIR_SAMPLE_STEPS_MAX; step++)
        weir_free(c->edges[step].of);
    weir_free(c->sums);
    weir_free(c);
}
