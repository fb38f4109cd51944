/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - the tape from its end to its beginning: inference/nn/forward.c, each line turned around (NN-B1).
 *
 * The gradient of what a layer sees has a row for each node that the layer looks at. Rows of nodes that it has itself
 * begin as zeros, to which its own rows and what is gathered from the children add; those behind them, by far the most,
 * are written by the first step that comes to their type.
 */
#include <weir/store/base/assert.h>
#include <weir/trainer/nn/nn.h>

#include "gather_back.h"

typedef struct backward_pass {
    const weir_nn *nn;
    const weir_nn_plan *plan;
    const weir_nn_tape *tape;
    const weir_block_view *block;
    const weir_nn_shape *shape;
    const weir_kernels *k;
    const weir_real *params;
    weir_real *gradients;
    const weir_real *dhead; /* of the logits; of what the head sees, where that is the most of all layers */
    weir_real *dstream; /* of what the layers below have added up, as the layer above left it; NULL: there is none */
    weir_nn_workspace *w;
    weir_nn_norm norm;
    const weir_sample_step *steps;
    uint32_t hidden, layers, types, step_count;
    uint32_t last_hop;                        /* whose rows no layer of its own adds to; 0: all rows began as zeros */
    bool untouched[WEIR_SCHEMA_VERTICES_MAX]; /* of each type: those of that hop hold nothing yet */
    bool starved;
} backward_pass;

static weir_real *backward_reals(backward_pass *b, size_t rows, size_t cols) {
    weir_real *reals = weir_nn_back_reals(b->w, rows, cols);
    if (!reals) b->starved = true;
    return reals;
}

static weir_real *backward_zeros(backward_pass *b, size_t rows, size_t cols) {
    weir_real *zeros = weir_nn_back_zeros(b->k, b->w, rows, cols);
    if (!zeros) b->starved = true;
    return zeros;
}

static void backward_zero(const backward_pass *b, weir_block_range range, weir_real *rows) {
    const size_t first = (size_t)range.begin * b->hidden, cells = (size_t)(range.end - range.begin) * b->hidden;
    if (cells > 0) b->k->zero(b->k, rows + first, cells * sizeof *rows);
}

static void backward_dweight(const backward_pass *b, uint32_t rows, uint32_t in, uint32_t out, const weir_real *x,
                             const weir_real *dy, uint64_t weight) {
    weir_nn_back_weight(b->k, rows, in, out, x, dy, b->gradients + weight);
}

static void backward_dx(const backward_pass *b, uint32_t rows, uint32_t in, uint32_t out, const weir_real *dy,
                        uint64_t weight, weir_real beta, weir_real *dx) {
    weir_nn_back_input(b->k, rows, in, out, dy, b->params + weight, beta, dx);
}

/* --- head -------------------------------------------------------------------------------------------------------- */

/* What the head's gradient is to a layer's rows of targets: becomes d, beta 0, or is added to it. */
static void backward_head_of(const backward_pass *b, uint32_t layer, weir_real beta, weir_real *d) {
    const uint32_t rows = b->block->targets, outputs = weir_nn_outputs(b->shape);
    const weir_nn_jump jump = weir_nn_jump_of(b->shape);
    const uint64_t first = jump == WEIR_NN_JUMP_CONCAT ? (uint64_t)(layer - 1) * b->hidden * outputs : 0;
    if (jump != WEIR_NN_JUMP_MAX) {
        backward_dx(b, rows, b->hidden, outputs, b->dhead, b->plan->head_weight + first, beta, d);
        return;
    }
    if (beta == 0) b->k->zero(b->k, d, (size_t)rows * b->hidden * sizeof *d);
    b->k->take_most_back(b->k, (size_t)rows * b->hidden, layer - 1, b->tape->most_of, b->dhead, d);
}

static void backward_head_weight(const backward_pass *b, const weir_real *dy) {
    const uint32_t rows = b->block->targets, outputs = weir_nn_outputs(b->shape);
    const weir_nn_jump jump = weir_nn_jump_of(b->shape);
    const uint32_t first = jump == WEIR_NN_JUMP_CONCAT ? 1 : b->layers;
    for (uint32_t layer = first; layer <= b->layers; layer++)
        backward_dweight(b, rows, b->hidden, outputs,
                         jump == WEIR_NN_JUMP_MAX ? b->tape->most : b->tape->layers[layer - 1].out, dy,
                         b->plan->head_weight + (uint64_t)(layer - first) * b->hidden * outputs);
}

static weir_real *backward_head(backward_pass *b, const weir_real *dlogits) {
    uint32_t rows = b->block->targets, outputs = weir_nn_outputs(b->shape);
    if (weir_nn_answers(b->shape, b->layers)) {
        weir_real *dlast = backward_reals(b, rows, outputs);
        if (dlast) b->k->copy(b->k, dlast, dlogits, (size_t)rows * outputs * sizeof *dlast);
        return dlast;
    }
    const bool most = weir_nn_jump_of(b->shape) == WEIR_NN_JUMP_MAX;
    weir_real *dout = backward_reals(b, rows, b->hidden), *dmost = most ? backward_reals(b, rows, b->hidden) : NULL;
    if (b->starved) return NULL;
    backward_head_weight(b, dlogits);
    b->k->bias_back(b->k, rows, outputs, dlogits, b->gradients + b->plan->head_bias);
    if (most) backward_dx(b, rows, b->hidden, outputs, dlogits, b->plan->head_weight, 0, dmost);
    b->dhead = most ? dmost : dlogits;
    backward_head_of(b, b->layers, 0, dout);
    return dout;
}

/* --- a layer ----------------------------------------------------------------------------------------------------- */

/* Whether nothing lies behind what the layer saw of the type: it has no encoder, or the network does not see it. */
static bool backward_ends_at(const backward_pass *b, uint32_t layer, uint32_t type) {
    return layer == 1 && b->plan->encode[type].bias == WEIR_NN_NO_TENSOR;
}

/* The gradient of a layer's rows at two places, one array where no second dense layer stands between them. */
typedef struct backward_rows {
    weir_real *out; /* of what the layer made; the norm's way back turns it in place */
    weir_real *sum; /* of the layer's sums, before their relu */
} backward_rows;

/* The rows of one type from `row` on, through what stands behind the layer's sums. */
static void backward_finish_rows(const backward_pass *b, const weir_nn_layer_tape *t, const weir_nn_type_slots *at,
                                 const backward_rows *d, size_t row, uint32_t count) {
    const uint32_t hidden = b->hidden;
    const size_t from = row * hidden;
    weir_real *gradients = b->gradients;
    const bool through_relu = b->norm == WEIR_NN_NORM_LAYER && !t->dense; /* the norm's way back goes on through it */
    if (b->norm == WEIR_NN_NORM_LAYER)
        b->k->layer_norm_back(b->k, count, hidden, (t->dense ? t->dense : t->relu) + from, t->stats + row * 2,
                              b->params + at->gain, through_relu, d->out + from, gradients + at->gain,
                              gradients + at->shift);
    if (at->dense != WEIR_NN_NO_TENSOR) {
        b->k->bias_back(b->k, count, hidden, d->out + from, gradients + at->dense_bias);
        backward_dweight(b, count, hidden, hidden, t->relu + from, d->out + from, at->dense);
        backward_dx(b, count, hidden, hidden, d->out + from, at->dense, 0, d->sum + from);
    }
    if (!through_relu) b->k->relu_back(b->k, (size_t)count * hidden, t->relu + from, d->sum + from);
    b->k->bias_back(b->k, count, hidden, d->sum + from, gradients + at->bias);
}

/* One type of one hop, in pieces that stay in a cache, to d->sum, and through the layer's own weight to dbelow. below:
 * what the layer saw of the range. */
static void backward_range(const backward_pass *b, uint32_t layer, uint32_t type, weir_block_range range,
                           const weir_real *below, const backward_rows *d, weir_real *dbelow) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    const weir_nn_type_slots *at = &b->plan->types[(layer - 1) * b->types + type];
    const uint32_t rows = range.end - range.begin, hidden = b->hidden, width = weir_nn_width(b->shape, layer);
    const uint32_t piece = weir_kernels_piece(b->k, hidden);
    const bool answers = weir_nn_answers(b->shape, layer);
    const weir_real *dsum = d->sum + (size_t)range.begin * width;
    if (answers) b->k->bias_back(b->k, rows, width, dsum, b->gradients + at->bias);
    for (uint32_t done = 0, count; done < rows && !answers; done += count) {
        count = rows - done < piece ? rows - done : piece;
        backward_finish_rows(b, t, at, d, (size_t)range.begin + done, count);
    }
    if (at->self == WEIR_NN_NO_TENSOR) return;
    const bool ends = backward_ends_at(b, layer, type);
    backward_dweight(b, rows, ends ? weir_nn_below(b->shape, type) : hidden, width, below, dsum, at->self);
    if (!ends) backward_dx(b, rows, hidden, width, dsum, at->self, 1, dbelow + (size_t)range.begin * hidden);
}

/* What is gathered along one step. dbelow: rows of what the children's are of; dself: one row a node, of what the layer
 * saw of it. */
static void backward_step(backward_pass *b, uint32_t layer, uint32_t step, const weir_real *dsum, weir_real *dbelow,
                          weir_real *dself) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    const weir_block_edges *e = &b->block->edges[step];
    const uint32_t rows = e->parent_end - e->parent_begin, width = weir_nn_width(b->shape, layer);
    const size_t sums = (size_t)e->parent_begin * width, own = (size_t)e->parent_begin * b->hidden;
    const uint64_t weight = b->plan->neighbors[(layer - 1) * b->step_count + step];
    const uint32_t hop = b->steps[step].hop, child = weir_nn_child_of(b->shape, step);
    const weir_nn_network network = weir_nn_network_of(b->shape);
    if (rows == 0 || weight == WEIR_NN_NO_TENSOR) return;
    WEIR_ASSERT(e->parent_end <= t->nodes);
    const bool first = hop == b->last_hop && b->untouched[child], writes = weir_nn_way_back_writes(network);
    if (first) b->untouched[child] = false;
    if (first && !writes) backward_zero(b, b->block->ranges[(size_t)hop * b->types + child], dbelow);
    const weir_nn_gather_back back = {
        .g = weir_nn_gather_of(b->nn, b->params, b->tape, layer, step),
        .kept = t->kept[step],
        .w = b->w,
        .dout = dsum + sums,
        .dx = backward_ends_at(b, layer, child) ? NULL : dbelow,
        .dparents = backward_ends_at(b, layer, weir_nn_parent_of(b->shape, step)) ? NULL : dself + own,
        .first = first && writes,
        .gradients = b->gradients};
    b->starved = !weir_nn_way_back_of(network)(&back);
    if (b->starved || weir_nn_gather_joins_edges(b->nn)) return;
    backward_dweight(b, rows, weir_nn_edge_cols(b->nn, step), width, b->tape->edge_means[step], dsum + sums,
                     weight + (uint64_t)weir_nn_gather_rows(b->nn, layer, step) * width);
}

/* From the gradient of what a layer has normed to that of what it has added to the stream, in place; what it is to the
 * layers below, too, stays behind in b->dstream. False: no memory. */
static bool backward_stream(backward_pass *b, uint32_t layer, weir_real *d) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    const uint32_t hidden = b->hidden;
    const size_t count = (size_t)t->nodes * hidden;
    const bool goes_on = weir_nn_residual(b->shape) && layer > 1;
    weir_real *dbelow = goes_on ? backward_zeros(b, t->nodes, hidden) : NULL;
    if (b->starved) return false;
    for (uint32_t i = 0; i < (b->layers - layer + 1) * b->types; i++) {
        const weir_block_range range = b->block->ranges[i];
        const weir_nn_type_slots *at = &b->plan->types[(layer - 1) * b->types + i % b->types];
        const size_t from = (size_t)range.begin * hidden;
        if (range.begin < range.end)
            b->k->layer_norm_back(b->k, range.end - range.begin, hidden, t->stream + from,
                                  t->stats + (size_t)range.begin * 2, b->params + at->gain, false, d + from,
                                  b->gradients + at->gain, b->gradients + at->shift);
    }
    if (b->dstream)
        b->k->add(b->k, (size_t)t[1].nodes * hidden, b->dstream, d); /* a layer above has the first nodes alone */
    if (goes_on) b->k->add(b->k, count, d, dbelow);
    b->dstream = dbelow;
    return true;
}

/* Returns the gradient of what the layer saw; dout is used up. NN-B1 rests on the order: what was done last is undone
 * first. */
static weir_real *backward_layer(backward_pass *b, uint32_t layer, weir_real *dout) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    const uint32_t seen = layer == 1 ? t->nodes : b->tape->layers[layer - 2].nodes;
    const weir_real *below = t->below;
    bool all_end = true;
    for (uint32_t type = 0; type < b->types; type++)
        all_end = all_end && backward_ends_at(b, layer, type);
    weir_dropout dropout = weir_nn_dropout_of(&b->tape->drop, layer);
    const bool answers = weir_nn_answers(b->shape, layer);
    if (t->stream && !backward_stream(b, layer, dout)) return NULL;
    const backward_rows d = {.out = dout, .sum = t->dense ? backward_reals(b, t->nodes, b->hidden) : dout};
    weir_real *dself = all_end ? NULL : backward_reals(b, seen, b->hidden), *dbelow = dself;
    if (layer == 1 && !all_end) dbelow = backward_zeros(b, b->block->inputs, b->hidden);
    if (b->starved) return NULL;
    if (dself) backward_zero(b, (weir_block_range){0, t->nodes}, dself);
    b->last_hop = layer == 1 ? 0 : b->layers - layer + 1;
    for (uint32_t type = 0; type < b->types; type++)
        b->untouched[type] = layer > 1;
    if (weir_nn_residual(b->shape) && layer > 1 && !answers && !t->stream)
        b->k->add(b->k, (size_t)t->nodes * b->hidden, dout, dbelow);
    if (dropout.rate > 0 && !answers) b->k->dropout(b->k, t->nodes, b->hidden, &dropout, dout);
    for (uint32_t hop = 0; hop <= b->layers - layer; hop++) {
        for (uint32_t type = 0; type < b->types; type++) {
            weir_block_range range = b->block->ranges[(size_t)hop * b->types + type];
            WEIR_ASSERT(range.begin <= range.end && range.end <= t->nodes);
            if (range.begin == range.end) continue;
            backward_range(b, layer, type, range, below, &d, dself);
            below += (size_t)(range.end - range.begin) * (layer == 1 ? weir_nn_below(b->shape, type) : b->hidden);
        }
    }
    for (uint32_t s = 0; s < b->step_count && !b->starved; s++)
        backward_step(b, layer, s, d.sum, dbelow, dself);
    for (uint32_t type = 0; type < b->types && !b->starved; type++)
        if (b->untouched[type]) backward_zero(b, b->block->ranges[(size_t)b->last_hop * b->types + type], dbelow);
    if (dself != dbelow) /* layer 1 took its own rows out of layer 0's, once a node */
        b->k->scatter_add_rows(b->k, t->nodes, b->hidden, dself, b->tape->input_of, dbelow);
    return dbelow;
}

/* --- layer 0 ----------------------------------------------------------------------------------------------------- */

/* Rows of one type, in pieces that stay in a cache. */
static void backward_encode(const backward_pass *b, uint32_t type, weir_real *dh0) {
    const weir_nn_inputs *inputs = weir_nn_vertex(b->shape, type);
    const weir_nn_encode_slots *at = &b->plan->encode[type];
    weir_block_range range = b->block->input_ranges[type];
    uint32_t width = inputs->width, categories = inputs->category_count;
    uint32_t all = range.end - range.begin, piece = weir_kernels_piece(b->k, b->hidden);
    WEIR_ASSERT(range.begin <= range.end && range.end <= b->block->inputs);
    if (inputs->bare) return;
    for (uint32_t first = 0; first < all; first += piece) {
        uint32_t rows = all - first < piece ? all - first : piece;
        weir_real *d = dh0 + ((size_t)range.begin + first) * b->hidden;
        b->k->relu_back(b->k, (size_t)rows * b->hidden, b->tape->h0 + (d - dh0), d);
        b->k->bias_back(b->k, rows, b->hidden, d, b->gradients + at->bias);
        if (width > 0) {
            const weir_real *numbers = b->tape->numbers[type] + (size_t)first * width;
            backward_dweight(b, rows, width, b->hidden, numbers, d, at->weight);
        }
        for (uint32_t c = 0; c < categories; c++) {
            const uint32_t *slots = b->tape->slots[type] + (size_t)first * categories + c;
            b->k->embed_back(b->k, rows, b->hidden, slots, categories, d,
                             at->brought[c] ? b->tape->brought->gradients : b->gradients + at->categories[c]);
        }
        if (all - first <= piece) break; /* the next first would be past 32 bits where a piece is everything */
    }
}

/* What has the kernels' attention may still be on its way: listeners hear of what is in memory. */
static weir_err backward_tell(const backward_pass *b, const weir_nn_listener *listener, uint64_t from) {
    if (!listener || b->starved || from == 0) return WEIR_OK; /* without encoders that is the end */
    weir_err err = b->k->finish(b->k);
    if (!err) listener->finished(listener->context, from);
    return err;
}

/* All that is written to gradients is added, so that parts of a batch come to the whole: NN-B2. */
weir_err weir_nn_backward(const weir_nn *nn, const weir_real *params, weir_nn_workspace *workspace,
                          const weir_real *dlogits, weir_real *gradients, const weir_nn_listener *listener) {
    const weir_nn_tape *tape = weir_nn_tape_of(workspace);
    if (!tape)
        return WEIR_ERR(WEIR_EINVAL, "there is no tape to go back on; open the workspace with one, and go forward");
    const weir_nn_shape *shape = weir_nn_shape_of(nn);
    backward_pass b = {
        .nn = nn, .tape = tape, .block = tape->block, .shape = shape, .k = tape->kernels, .w = workspace};
    b.plan = weir_nn_plan_of(nn);
    b.params = params;
    b.gradients = gradients;
    b.hidden = weir_nn_hidden(shape);
    b.norm = weir_nn_norm_of(shape);
    b.layers = weir_nn_layers(shape);
    b.types = weir_nn_types(shape);
    b.steps = weir_nn_steps(shape, &b.step_count);
    weir_real *d = backward_head(&b, dlogits);
    const bool head = !weir_nn_answers(shape, b.layers);
    weir_err err = head ? backward_tell(&b, listener, b.plan->begins[b.layers + 1]) : WEIR_OK;
    for (uint32_t layer = b.layers; layer > 0 && !err && !b.starved; layer--) {
        d = backward_layer(&b, layer, d);
        if (layer > 1 && !b.starved && weir_nn_jump_of(shape)) backward_head_of(&b, layer - 1, 1, d);
        err = backward_tell(&b, listener, b.plan->begins[layer]);
    }
    for (uint32_t type = 0; type < b.types && !err && !b.starved; type++)
        backward_encode(&b, type, d);
    if (b.starved)
        return WEIR_NOMEM("for the gradients of a batch of %u nodes; lower the batch or the "
                          "fan-outs",
                          b.block->nodes);
    return err || !listener ? err : b.k->finish(b.k);
}
