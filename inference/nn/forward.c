/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - a batch on its way to logits. A node's row depends on its own and its children's rows alone (NN-N5).
 *
 * A layer's nodes lie hop after hop and within a hop by type, so each (hop, type) is one range of rows and one GEMM:
 * nothing is gathered but what layer 0 has once a vertex. Means and edges are two GEMMs on two parts of one weight
 * instead of one on a copy of both: what a step's edges say is computed once and serves every layer.
 */
#include <string.h>

#include <weir/store/base/assert.h>

#include "gather.h"

typedef struct forward_pass {
    const weir_nn *nn;
    const weir_nn_shape *shape;
    const weir_kernels *k;
    const weir_real *params;
    const weir_nn_batch *batch;
    const weir_block_view *block;
    weir_nn_workspace *w;
    weir_nn_tape *tape;
    weir_real *logits;
    bool starved; /* some allocation failed */
} forward_pass;

static void *forward_alloc(forward_pass *p, size_t count, size_t size) {
    void *memory = weir_nn_workspace_alloc(p->w, count, size);
    if (!memory) p->starved = true;
    return memory;
}

static weir_real *forward_reals(forward_pass *p, size_t rows, size_t cols) {
    return forward_alloc(p, rows * cols, sizeof(weir_real));
}

static const void *forward_bring_array(forward_pass *p, const void *host, size_t count, size_t size) {
    const void *memory = weir_nn_workspace_bring(p->w, host, count, size);
    if (!memory) p->starved = true;
    return memory;
}

/* x (rows x k) · weight (k x cols), onto or over out. */
static void forward_apply(const forward_pass *p, uint32_t rows, uint32_t k, const weir_real *x, uint64_t weight,
                          uint32_t cols, weir_real beta, weir_real *out) {
    p->k->gemm(p->k, &(weir_gemm){.m = rows,
                                  .n = cols,
                                  .k = k,
                                  .a = x,
                                  .lda = k,
                                  .b = p->params + weight,
                                  .ldb = cols,
                                  .beta = beta,
                                  .c = out,
                                  .ldc = cols});
}

/* --- what the batch brings --------------------------------------------------------------------------------------- */

/* hop: how far its first nodes stand from targets; 0: they are these. */
static weir_err forward_check_batch(const forward_pass *p, uint32_t hop) {
    const weir_block_view *b = p->block;
    const weir_nn_shape *s = p->shape;
    if (b->hops != s->layers || b->types != s->types || b->steps != s->step_count)
        return WEIR_ERR(WEIR_EINVAL,
                        "a block of %u hops, %u types and %u steps for a network of %u, %u and %u; sample with the "
                        "network's own steps",
                        b->hops, b->types, b->steps, s->layers, s->types, s->step_count);
    if (b->inputs == 0) return WEIR_ERR(WEIR_EINVAL, "a block without input rows; call weir_block_inputs first");
    if (p->nn->shared != (p->batch->brought != NULL))
        return WEIR_ERR(WEIR_EINVAL, "embeddings that are shared out come with the batch where the network is a share, "
                                     "and else are its own; give those that belong to it");
    weir_block_range targets = b->ranges[s->target_type];
    if (hop == 0 && targets.end - targets.begin != b->targets)
        return WEIR_ERR(WEIR_EINVAL,
                        "a block with targets that are not of type '%s'; the network answers for these alone",
                        s->vertices[s->target_type].name);
    return WEIR_OK;
}

/* Rows of inputs: of some types they come with the batch, of others a part of them is there already. */
static const weir_real *forward_bring_numbers(forward_pass *p, uint32_t type, uint32_t rows) {
    const weir_nn_resident *r = p->batch->resident ? &p->batch->resident[type] : NULL;
    const uint32_t width = p->shape->vertices[type].width;
    const bool some = r && r->table;
    const weir_real *brought = forward_bring_array(p, p->batch->numbers[type],
                                                   (size_t)(some ? r->brought_count : rows) * width, sizeof(weir_real));
    if (!some) return brought;
    weir_real *numbers = forward_reals(p, rows, width);
    const uint32_t *places = forward_bring_array(p, r->places, rows, sizeof *places);
    const uint32_t *others = r->brought_count ? forward_bring_array(p, r->brought, rows, sizeof *others) : NULL;
    if (p->starved) return NULL;
    p->k->gather_rows(p->k, rows, width, r->table, places, numbers, width);
    if (others) p->k->gather_rows(p->k, rows, width, brought, others, numbers, width);
    return numbers;
}

/* Every array of the batch, as the kernels see it. */
static void forward_bring(forward_pass *p) {
    weir_nn_workspace *w = p->w;
    const weir_nn_shape *shape = p->shape;
    weir_nn_drop *drop = &p->tape->drop;
    p->tape->input_of = forward_bring_array(p, p->block->input_of, p->block->nodes, sizeof(uint32_t));
    if (drop->keys)
        drop->keys = forward_bring_array(p, drop->keys, p->block->hop_end[shape->layers - 1], sizeof(uint64_t));

    for (uint32_t t = 0; t < shape->types && !p->starved; t++) {
        const weir_nn_inputs *inputs = &shape->vertices[t];
        size_t rows = p->block->input_ranges[t].end - p->block->input_ranges[t].begin;
        if (rows > 0 && inputs->width > 0) w->numbers[t] = forward_bring_numbers(p, t, (uint32_t)rows);
        if (rows > 0 && inputs->category_count > 0)
            w->slots[t] = forward_bring_array(p, p->batch->slots[t], rows * inputs->category_count, sizeof(uint32_t));
    }

    for (uint32_t s = 0; s < shape->step_count && !p->starved; s++) {
        const weir_block_edges *e = &p->block->edges[s];
        uint32_t parents = e->parent_end - e->parent_begin;
        WEIR_ASSERT(e->parent_begin <= e->parent_end && (parents == 0 || e->offsets[parents] == e->count));
        w->offsets[s] = forward_bring_array(p, e->offsets, parents + 1u, sizeof(uint32_t));
        w->children[s] = forward_bring_array(p, e->children, e->count, sizeof(uint32_t));
        uint32_t *rows = forward_alloc(p, e->count, sizeof *rows);
        if (p->starved) return;
        p->k->compose(p->k, e->count, p->tape->input_of, w->children[s], rows);
        const uint32_t child = weir_nn_child_of(shape, s);
        if (shape->vertices[child].bare) p->k->rebase(p->k, e->count, rows, p->block->input_ranges[child].begin, rows);
        w->input_children[s] = rows;
    }
    p->tape->input_children = w->input_children;
    p->tape->offsets = w->offsets;
    p->tape->children = w->children;
    p->tape->edge_means = w->edge_means;
    p->tape->edge_numbers = w->edge_numbers;
    p->tape->edge_codes = w->edge_codes;
    p->tape->degree_weights = w->degree_weights;
    p->tape->degree_own = w->degree_own;
    p->tape->numbers = w->numbers;
    p->tape->slots = w->slots;
    p->tape->brought = p->batch->brought;
}

/* --- layer 0 ----------------------------------------------------------------------------------------------------- */

static void forward_encode_rows(forward_pass *p, uint32_t type, uint32_t first, uint32_t rows) {
    const weir_nn_inputs *inputs = &p->shape->vertices[type];
    const weir_nn_encode_slots *at = &p->nn->plan.encode[type];
    uint32_t hidden = p->shape->hidden, categories = inputs->category_count;
    weir_real *out = p->tape->h0 + ((size_t)p->block->input_ranges[type].begin + first) * hidden;
    if (inputs->width > 0)
        forward_apply(p, rows, inputs->width, p->tape->numbers[type] + (size_t)first * inputs->width, at->weight,
                      hidden, 0, out);
    else
        p->k->zero(p->k, out, (size_t)rows * hidden * sizeof *out);
    for (uint32_t c = 0; c < categories; c++) {
        const uint32_t *slots = p->tape->slots[type] + (size_t)first * categories + c;
        p->k->embed(p->k, rows, hidden, slots, categories,
                    at->brought[c] ? p->tape->brought->rows : p->params + at->categories[c], out);
    }
    p->k->bias_relu(p->k, rows, hidden, p->params + at->bias, out);
}

/* Layer 0 is the longest by far, and little is done to each row: it pays to do all of it while the row is near. Of
 * types without an encoder it has nothing: layer 1 takes what the batch brings. */
static void forward_encode(forward_pass *p) {
    uint32_t piece = weir_kernels_piece(p->k, p->shape->hidden), encoded = 0;
    for (uint32_t t = 0; t < p->shape->types; t++)
        if (p->nn->plan.encode[t].bias != WEIR_NN_NO_TENSOR) encoded = p->block->input_ranges[t].end;
    p->tape->h0 = forward_reals(p, encoded, p->shape->hidden);
    for (uint32_t t = 0; t < p->shape->types && !p->starved; t++) {
        weir_block_range range = p->block->input_ranges[t];
        uint32_t rows = range.end - range.begin;
        WEIR_ASSERT(range.begin <= range.end && range.end <= p->block->inputs);
        if (p->shape->vertices[t].bare) continue;
        WEIR_ASSERT(rows == 0 || p->nn->plan.encode[t].bias != WEIR_NN_NO_TENSOR); /* sampled with these steps */
        WEIR_ASSERT(rows == 0 || range.end <= encoded);
        for (uint32_t first = 0, count; first < rows; first += count) {
            count = rows - first < piece ? rows - first : piece;
            forward_encode_rows(p, t, first, count);
        }
    }
}

/* --- what edges say: once for all layers ------------------------------------------------------------------------- */

static weir_segments forward_segments_of(const forward_pass *p, uint32_t step, const uint32_t *index) {
    const weir_block_edges *e = &p->block->edges[step];
    return (weir_segments){.count = e->parent_end - e->parent_begin,
                           .offsets = p->tape->offsets[step],
                           .index = index,
                           .entries = e->count,
                           .each = weir_nn_drop_each(&p->tape->drop)};
}

/* Means over the edges of a parent; a way that looks at single edges finds what they are of on the tape. */
static void forward_edge_means(forward_pass *p) {
    const weir_block_view *b = p->block;
    const bool sees_edges = weir_nn_way_of(p->shape)->sees_edges;
    for (uint32_t s = 0; s < p->shape->step_count; s++) {
        const weir_block_edges *e = &b->edges[s];
        const bool alike = e->alike && !sees_edges;
        const uint32_t parents = e->parent_end - e->parent_begin, times = alike ? 1 : e->count;
        uint32_t width = p->shape->edges[p->shape->steps[s].relation].width, cols = weir_nn_edge_cols(p->nn, s);
        weir_real *out = forward_reals(p, parents, cols);
        size_t mark = weir_nn_workspace_mark(p->w);
        weir_real *codes = alike ? NULL : forward_reals(p, e->count, WEIR_TIME_CODE_COUNT);
        weir_ages ages = {.before_us = forward_bring_array(p, b->before_us, b->targets, sizeof(int64_t)),
                          .groups = forward_bring_array(p, b->groups, b->nodes, sizeof(uint32_t)),
                          .times = forward_bring_array(p, e->times, times, sizeof(int64_t))};
        if (!alike) ages.parents = forward_bring_array(p, e->parents, e->count, sizeof(uint32_t));
        const weir_real *numbers =
            width ? forward_bring_array(p, p->batch->edges[s], (size_t)e->count * width, sizeof *out) : NULL;
        if (p->starved) return;
        weir_segments segments = forward_segments_of(p, s, NULL);
        if (width > 0) p->k->segment_mean(p->k, &segments, width, numbers, width, out, cols);
        if (alike) { /* so are the ages of a parent's edges, and the mean of their codes is one of them */
            ages.groups += e->parent_begin;
            p->k->time_code(p->k, parents, &ages, out + width, cols);
            p->k->segment_zero_empty(p->k, &segments, WEIR_TIME_CODE_COUNT, out + width, cols);
        } else {
            p->k->time_code(p->k, e->count, &ages, codes, WEIR_TIME_CODE_COUNT);
            p->k->segment_mean(p->k, &segments, WEIR_TIME_CODE_COUNT, codes, WEIR_TIME_CODE_COUNT, out + width, cols);
        }
        p->k->segment_log_count(p->k, &segments, out + width + WEIR_TIME_CODE_COUNT, cols);
        if (!sees_edges) weir_nn_workspace_back(p->w, mark);
        p->w->edge_means[s] = out;
        p->w->edge_numbers[s] = sees_edges ? numbers : NULL;
        p->w->edge_codes[s] = sees_edges ? codes : NULL;
    }
}

/* --- degrees: once for all layers -------------------------------------------------------------------------------- */

/* The step by which the children of this one have found their neighbours along the same relation: back, or, where it
 * joins a type with itself and is not followed back, once more. They count as degrees are counted. step_count: none. */
static uint32_t forward_step_behind(const weir_nn_shape *shape, uint32_t step) {
    const weir_sample_step *s = &shape->steps[step];
    const bool loops = shape->ends[s->relation].from == shape->ends[s->relation].to;
    uint32_t found = shape->step_count;
    for (uint32_t i = step + 1; i < shape->step_count; i++) {
        const weir_sample_step *other = &shape->steps[i];
        if (other->hop != s->hop + 1 || other->relation != s->relation) continue;
        if (other->direction != s->direction) return i;
        if (loops) found = i;
    }
    return found;
}

static void forward_degrees(forward_pass *p) {
    if (!weir_nn_way_of(p->shape)->sees_degrees) return;
    for (uint32_t s = 0; s < p->shape->step_count && !p->starved; s++) {
        const weir_block_edges *e = &p->block->edges[s];
        const uint32_t behind = forward_step_behind(p->shape, s);
        const bool known = behind < p->shape->step_count && e->count > 0;
        weir_real *weights = forward_reals(p, e->count, 1);
        weir_real *own = forward_reals(p, e->parent_end - e->parent_begin, 1);
        p->w->degree_weights[s] = weights;
        p->w->degree_own[s] = own;
        if (p->starved) return;
        const weir_segments segments = forward_segments_of(p, s, p->tape->children[s]);
        p->k->segment_degrees(p->k, &segments, known ? p->tape->offsets[behind] : NULL,
                              known ? p->block->edges[behind].parent_begin : 0, weights, own);
    }
}

/* --- a layer ----------------------------------------------------------------------------------------------------- */

static weir_block_range forward_range_at(const forward_pass *p, uint32_t hop, uint32_t type) {
    return p->block->ranges[(size_t)hop * p->shape->types + type];
}

/* What layer 1 sees of its own nodes, range after range: rows of layer 0, or of the batch. */
static const weir_real *forward_gather(forward_pass *p, uint32_t nodes) {
    const uint32_t *input_of = p->tape->input_of;
    const uint32_t hops = p->shape->layers, types = p->shape->types;
    uint32_t seen = 0;
    size_t reals = 0, at = 0;
    for (uint32_t i = 0; i < hops * types; i++)
        reals += (size_t)(p->block->ranges[i].end - p->block->ranges[i].begin) * weir_nn_below(p->shape, i % types);
    weir_real *below = forward_alloc(p, reals, sizeof *below);
    uint32_t *own = forward_alloc(p, nodes, sizeof *own);
    for (uint32_t i = 0; i < hops * types && !p->starved; i++) {
        weir_block_range range = p->block->ranges[i];
        const uint32_t type = i % types, rows = range.end - range.begin, cols = weir_nn_below(p->shape, type);
        const bool bare = p->shape->vertices[type].bare;
        WEIR_ASSERT(range.begin <= range.end && range.end <= nodes);
        WEIR_ASSERT(rows == 0 || range.begin == seen); /* backwards, too, they are met in this order */
        seen += rows;
        if (bare) p->k->rebase(p->k, rows, input_of + range.begin, p->block->input_ranges[type].begin, own);
        if (rows)
            p->k->gather_rows(p->k, rows, cols, bare ? p->tape->numbers[type] : p->tape->h0,
                              bare ? own : input_of + range.begin, below + at, cols);
        at += (size_t)rows * cols;
    }
    return below;
}

static void forward_layer_self(forward_pass *p, uint32_t layer) {
    const weir_nn_layer_tape *t = &p->tape->layers[layer - 1];
    const weir_nn_type_slots *slots = &p->nn->plan.types[(layer - 1) * p->shape->types];
    const weir_real *below = t->below;
    const uint32_t width = weir_nn_width(p->shape, layer);
    for (uint32_t hop = 0; hop <= p->shape->layers - layer; hop++) {
        for (uint32_t type = 0; type < p->shape->types; type++) {
            weir_block_range range = forward_range_at(p, hop, type);
            uint32_t rows = range.end - range.begin,
                     cols = layer == 1 ? weir_nn_below(p->shape, type) : p->shape->hidden;
            if (rows == 0) continue;
            weir_real *out = t->relu + (size_t)range.begin * width;
            WEIR_ASSERT(range.end <= t->nodes && slots[type].bias != WEIR_NN_NO_TENSOR);
            if (slots[type].self == WEIR_NN_NO_TENSOR)
                p->k->zero(p->k, out, (size_t)rows * width * sizeof *out);
            else
                forward_apply(p, rows, cols, below, slots[type].self, width, 0, out);
            below += (size_t)rows * cols;
        }
    }
}

static void forward_layer_neighbors(forward_pass *p, uint32_t layer, uint32_t step) {
    const weir_nn_layer_tape *t = &p->tape->layers[layer - 1];
    const weir_block_edges *e = &p->block->edges[step];
    const uint32_t rows = e->parent_end - e->parent_begin, width = weir_nn_width(p->shape, layer);
    weir_real *out = t->relu + (size_t)e->parent_begin * width;
    if (rows == 0) return;
    const weir_nn_gather g = weir_nn_gather_of(p->nn, p->params, p->tape, layer, step);
    WEIR_ASSERT(g.weight != WEIR_NN_NO_TENSOR && e->parent_end <= t->nodes);
    p->starved = !weir_nn_way_of(p->shape)->forward(&g, p->w, &p->w->kept[layer - 1][step], out);
    if (p->starved || weir_nn_way_of(p->shape)->joins_edges) return;
    forward_apply(p, rows, weir_nn_edge_cols(p->nn, step), p->tape->edge_means[step],
                  g.weight + (uint64_t)weir_nn_way_rows(p->shape, layer, step) * width, width, 1, out);
}

/* The layer that answers has logits now, for targets alone. */
static void forward_layer_bias(forward_pass *p, uint32_t layer) {
    const weir_nn_type_slots *at = &p->nn->plan.types[(layer - 1) * p->shape->types + p->shape->target_type];
    p->k->bias(p->k, p->block->targets, p->shape->outputs, p->params + at->bias, p->tape->layers[layer - 1].out);
}

/* What a layer makes before anything is dropped of it or added to it. */
static weir_real *forward_made(const weir_nn_layer_tape *t) {
    return t->stream ? t->stream : t->out;
}

/* What stands behind a layer's sums, of the rows of one type from `row` on. */
static void forward_finish_rows(const forward_pass *p, const weir_nn_layer_tape *t, const weir_nn_type_slots *at,
                                size_t row, uint32_t count) {
    const uint32_t hidden = p->shape->hidden;
    const size_t from = row * hidden;
    const weir_real *rows = t->relu + from;
    p->k->bias_relu(p->k, count, hidden, p->params + at->bias, t->relu + from);
    if (t->dense) {
        forward_apply(p, count, hidden, rows, at->dense, hidden, 0, t->dense + from);
        p->k->bias(p->k, count, hidden, p->params + at->dense_bias, t->dense + from);
        rows = t->dense + from;
    }
    if (p->shape->norm == WEIR_NN_NORM_LAYER) {
        p->k->layer_norm(p->k, count, hidden, rows, p->params + at->gain, p->params + at->shift,
                         (size_t)t->nodes * hidden * sizeof *rows, t->out + from, t->stats + row * 2);
    } else if (!t->dense) {
        weir_real *made = forward_made(t) + from;
        p->k->zero(p->k, made, (size_t)count * hidden * sizeof *made);
        p->k->add(p->k, (size_t)count * hidden, rows, made);
    }
}

/* In pieces, so that each line above finds in a cache what the one before it has left. */
static void forward_layer_finish(forward_pass *p, uint32_t layer) {
    const weir_nn_layer_tape *t = &p->tape->layers[layer - 1];
    uint32_t piece = weir_kernels_piece(p->k, p->shape->hidden);
    for (uint32_t hop = 0; hop <= p->shape->layers - layer; hop++) {
        for (uint32_t type = 0; type < p->shape->types; type++) {
            weir_block_range range = forward_range_at(p, hop, type);
            const weir_nn_type_slots *at = &p->nn->plan.types[(layer - 1) * p->shape->types + type];
            uint32_t rows = range.end - range.begin;
            for (uint32_t done = 0, count; done < rows; done += count) {
                count = rows - done < piece ? rows - done : piece;
                forward_finish_rows(p, t, at, (size_t)range.begin + done, count);
            }
        }
    }
}

/* What is dropped, what the layers below have added up, and the norm of that where it stands there. */
static void forward_layer_add(forward_pass *p, uint32_t layer) {
    const weir_nn_layer_tape *t = &p->tape->layers[layer - 1];
    const weir_dropout dropout = weir_nn_dropout_of(&p->tape->drop, layer);
    const uint32_t hidden = p->shape->hidden;
    weir_real *made = forward_made(t);
    if (dropout.rate > 0) p->k->dropout(p->k, t->nodes, hidden, &dropout, made);
    if (p->shape->residual && layer > 1)
        p->k->add(p->k, (size_t)t->nodes * hidden, t->stream ? t[-1].stream : t->below, made);
    for (uint32_t i = 0; t->stream && i < (p->shape->layers - layer + 1) * p->shape->types; i++) {
        const weir_block_range range = p->block->ranges[i];
        const weir_nn_type_slots *at = &p->nn->plan.types[(layer - 1) * p->shape->types + i % p->shape->types];
        const size_t from = (size_t)range.begin * hidden;
        if (range.begin < range.end)
            p->k->layer_norm(p->k, range.end - range.begin, hidden, t->stream + from, p->params + at->gain,
                             p->params + at->shift, (size_t)t->nodes * hidden * sizeof *made, t->out + from,
                             t->stats + (size_t)range.begin * 2);
    }
}

double weir_nn_drop_each(const weir_nn_drop *drop) {
    return 1 / (1 - drop->edges);
}

weir_dropout weir_nn_dropout_of(const weir_nn_drop *drop, uint32_t layer) {
    return (weir_dropout){
        .rate = drop->rate,
        .seed = drop->seed ^ drop->step * 0x9E3779B97F4A7C15ull,
        .stream = layer,
        .keys = drop->keys,
    };
}

static void forward_layer_run(forward_pass *p, uint32_t layer) {
    weir_nn_layer_tape *t = &p->tape->layers[layer - 1];
    const uint32_t nodes = p->block->hop_end[p->shape->layers - layer], width = weir_nn_width(p->shape, layer);
    const bool answers = weir_nn_answers(p->shape, layer);
    WEIR_ASSERT(layer >= 1 && layer <= p->shape->layers && nodes >= p->block->targets && nodes <= p->block->nodes);
    *t = (weir_nn_layer_tape){.nodes = nodes, .kept = p->w->kept[layer - 1]};
    t->out = forward_reals(p, nodes, width); /* first: without a tape, all that comes after these is given back */
    if (p->shape->norm == WEIR_NN_NORM_STREAM && !answers) t->stream = forward_reals(p, nodes, width);
    size_t mark = weir_nn_workspace_mark(p->w);
    t->relu = answers ? t->out : forward_reals(p, nodes, width);
    if (p->shape->feed_forward && !answers)
        t->dense = p->shape->norm == WEIR_NN_NORM_LAYER ? forward_reals(p, nodes, width) : forward_made(t);
    if (p->shape->norm != WEIR_NN_NORM_NONE && !answers) t->stats = forward_reals(p, nodes, 2);
    t->below = layer > 1 ? t[-1].out : forward_gather(p, nodes);
    if (p->starved) return;

    forward_layer_self(p, layer);
    for (uint32_t s = 0; s < p->shape->step_count && !p->starved; s++)
        if (weir_nn_layer_steps(p->shape, layer, s)) forward_layer_neighbors(p, layer, s);
    if (p->starved) return;
    if (answers) {
        forward_layer_bias(p, layer);
    } else {
        forward_layer_finish(p, layer);
        forward_layer_add(p, layer);
    }
    if (!p->w->keeps_tape) weir_nn_workspace_back(p->w, mark); /* the one thing that a tape changes: NN-N4 */
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

/* rows x hidden times as many rows of the head's weight, from `first` on. */
static void forward_head_apply(forward_pass *p, const weir_real *x, uint32_t first, weir_real beta) {
    const weir_nn_shape *s = p->shape;
    p->k->gemm(p->k, &(weir_gemm){.m = p->block->targets,
                                  .n = s->outputs,
                                  .k = s->hidden,
                                  .a = x,
                                  .lda = s->hidden,
                                  .b = p->params + p->nn->plan.head_weight + (size_t)first * s->outputs,
                                  .ldb = s->outputs,
                                  .beta = beta,
                                  .c = p->logits,
                                  .ldc = s->outputs});
}

/* The most of each column over the layers' rows of targets, which are the first of each. */
static const weir_real *forward_most(forward_pass *p) {
    const size_t count = (size_t)p->block->targets * p->shape->hidden;
    weir_nn_tape *t = p->tape;
    t->most = forward_reals(p, p->block->targets, p->shape->hidden);
    t->most_of = forward_alloc(p, count, sizeof *t->most_of);
    for (uint32_t layer = 0; !p->starved && layer < p->shape->layers; layer++)
        p->k->take_most(p->k, count, layer, t->layers[layer].out, t->most, t->most_of);
    return t->most;
}

static void forward_head(forward_pass *p) {
    const weir_nn_shape *s = p->shape;
    p->logits = s->headless ? p->tape->layers[s->layers - 1].out : forward_reals(p, p->block->targets, s->outputs);
    if (s->headless) return;
    const weir_real *x = s->jump == WEIR_NN_JUMP_MAX ? forward_most(p) : p->tape->layers[s->layers - 1].out;
    if (p->starved) return;
    if (s->jump == WEIR_NN_JUMP_CONCAT)
        for (uint32_t layer = 0; layer < s->layers; layer++)
            forward_head_apply(p, p->tape->layers[layer].out, layer * s->hidden, layer > 0);
    else
        forward_head_apply(p, x, 0, 0);
    p->k->bias(p->k, p->block->targets, s->outputs, p->params + p->nn->plan.head_bias, p->logits);
}

/* From the batch to the last layer that has its first nodes, so many hops from targets; of targets to the logits. */
static weir_err forward_run(const weir_nn *nn, const weir_real *params, const weir_nn_batch *batch,
                            const weir_nn_drop *drop, uint32_t hop, weir_nn_workspace *workspace, forward_pass *p) {
    *p = (forward_pass){.nn = nn,
                        .shape = nn->shape,
                        .k = workspace->kernels,
                        .params = params,
                        .batch = batch,
                        .block = batch->block,
                        .w = workspace,
                        .tape = &workspace->tape};
    WEIR_ASSERT(workspace->nn == nn && hop < nn->shape->layers);
    weir_err err = weir_nn_workspace_begin(workspace); /* first: what is refused leaves no tape either */
    if (!err) err = forward_check_batch(p, hop);
    if (err) return err;
    workspace->arrival = batch->arrival;
    *p->tape = (weir_nn_tape){.kernels = p->k, .block = p->block, .drop = drop ? *drop : (weir_nn_drop){0}};

    forward_bring(p);
    if (!p->starved) forward_encode(p);
    if (!p->starved) forward_edge_means(p);
    if (!p->starved) forward_degrees(p);
    for (uint32_t layer = 1; layer <= nn->shape->layers - hop && !p->starved; layer++)
        forward_layer_run(p, layer);
    if (!p->starved && hop == 0) forward_head(p);
    if (!p->starved) return WEIR_OK;
    return WEIR_NOMEM("for a batch of %u targets and %u nodes; lower the batch or the fan-outs", p->block->targets,
                      p->block->nodes);
}

/* Of the first nodes, their rows of the last layer that has been run and does not answer, to the host's memory. */
static void forward_give_rows(const forward_pass *p, uint32_t hop, weir_real *rows) {
    const uint32_t last = p->shape->layers - hop, layer = weir_nn_answers(p->shape, last) ? last - 1 : last;
    p->k->to_host(p->k, rows, p->tape->layers[layer - 1].out,
                  (size_t)p->block->targets * p->shape->hidden * sizeof *rows);
}

weir_err weir_nn_forward(const weir_nn *nn, const weir_real *params, const weir_nn_batch *batch,
                         const weir_nn_drop *drop, weir_nn_workspace *workspace, weir_real *logits,
                         weir_real *embeddings) {
    forward_pass p;
    weir_err err = forward_run(nn, params, batch, drop, 0, workspace, &p);
    if (err) return err;
    p.tape->logits = p.logits;
    if (logits) p.k->to_host(p.k, logits, p.logits, (size_t)p.block->targets * p.shape->outputs * sizeof *logits);
    if (embeddings) forward_give_rows(&p, 0, embeddings);
    if (logits || embeddings) err = p.k->finish(p.k);
    workspace->taped = !err && workspace->keeps_tape;
    return err;
}

weir_err weir_nn_embed(const weir_nn *nn, const weir_real *params, const weir_nn_batch *batch, uint32_t hop,
                       weir_nn_workspace *workspace, weir_real *embeddings) {
    forward_pass p;
    weir_err err = forward_run(nn, params, batch, NULL, hop, workspace, &p);
    if (err) return err;
    WEIR_ASSERT(p.block->hop_end[hop] == p.block->targets);
    forward_give_rows(&p, hop, embeddings);
    return p.k->finish(p.k);
}
