/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - the tape from its end to its beginning: inference/nn/forward.c, each line turned around (NN-B1).
 *
 * The gradient of what a layer sees has a row for each node that the layer looks at; it begins as zeros, and the
 * layer's own rows and the children's means add to it.
 */
#include <weir/inference/nn/tape.h>
#include <weir/store/base/assert.h>
#include <weir/trainer/nn/nn.h>

typedef struct back {
    const weir_nn *nn;
    const weir_nn_plan *plan;
    const weir_nn_tape *tape;
    const weir_block_view *block;
    const weir_nn_shape *shape;
    const weir_kernels *k;
    const weir_real *params;
    weir_real *gradients;
    weir_nn_workspace *w;
    uint32_t hidden, layers, types;
    bool starved;
} back;

static weir_real *back_reals(back *b, size_t rows, size_t cols) {
    weir_real *reals = weir_nn_workspace_alloc(b->w, rows * cols, sizeof *reals);
    if (!reals) b->starved = true;
    return reals;
}

static weir_real *back_zeros(back *b, size_t rows, size_t cols) {
    weir_real *zeros = back_reals(b, rows, cols);
    if (zeros) b->k->zero(zeros, rows * cols * sizeof *zeros);
    return zeros;
}

/* Of y = x · weight: the weight's gradient grows by x^T · dy. x: rows x in, dy: rows x out. */
static void weight_back(const back *b, uint32_t rows, uint32_t in, uint32_t out, const weir_real *x,
                        const weir_real *dy, uint64_t weight) {
    b->k->gemm(&(weir_gemm){.m = in,
                            .n = out,
                            .k = rows,
                            .a_transposed = true,
                            .a = x,
                            .lda = in,
                            .b = dy,
                            .ldb = out,
                            .beta = 1,
                            .c = b->gradients + weight,
                            .ldc = out});
}

/* … and dx = dy · weight^T + beta · dx. */
static void input_back(const back *b, uint32_t rows, uint32_t in, uint32_t out, const weir_real *dy, uint64_t weight,
                       weir_real beta, weir_real *dx) {
    b->k->gemm(&(weir_gemm){.m = rows,
                            .n = in,
                            .k = out,
                            .b_transposed = true,
                            .a = dy,
                            .lda = out,
                            .b = b->params + weight,
                            .ldb = out,
                            .beta = beta,
                            .c = dx,
                            .ldc = in});
}

/* --- head -------------------------------------------------------------------------------------------------------- */

static weir_real *head_back(back *b, const weir_real *dlogits) {
    uint32_t rows = b->block->targets, outputs = weir_nn_outputs(b->shape);
    weir_real *dy = back_reals(b, rows, outputs), *dout = back_reals(b, rows, b->hidden);
    if (b->starved) return NULL;
    b->k->to_device(dy, dlogits, (size_t)rows * outputs * sizeof *dy);
    weight_back(b, rows, b->hidden, outputs, b->tape->layers[b->layers - 1].out, dy, b->plan->head_weight);
    b->k->bias_back(rows, outputs, dy, b->gradients + b->plan->head_bias);
    input_back(b, rows, b->hidden, outputs, dy, b->plan->head_weight, 0, dout);
    return dout;
}

/* --- a layer ----------------------------------------------------------------------------------------------------- */

/* One type of one hop: through the norm, relu and bias to dsum, and through the layer's own weight to dbelow. */
static void range_back(const back *b, uint32_t layer, uint32_t type, weir_block_range range, const weir_real *dout,
                       weir_real *dsum, weir_real *dbelow) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    const weir_nn_type_slots *at = &b->plan->types[(layer - 1) * b->types + type];
    uint32_t rows = range.end - range.begin, hidden = b->hidden;
    size_t first = (size_t)range.begin * hidden;
    b->k->layer_norm_back(rows, hidden, t->relu + first, t->stats + (size_t)range.begin * 2, b->params + at->gain,
                          dout + first, dsum + first, b->gradients + at->gain, b->gradients + at->shift);
    b->k->relu_back((size_t)rows * hidden, t->relu + first, dsum + first);
    b->k->bias_back(rows, hidden, dsum + first, b->gradients + at->bias);
    weight_back(b, rows, hidden, hidden, t->below + first, dsum + first, at->self);
    input_back(b, rows, hidden, hidden, dsum + first, at->self, 1, dbelow + first);
}

static void ranges_back(const back *b, uint32_t layer, const weir_real *dout, weir_real *dsum, weir_real *dbelow) {
    for (uint32_t hop = 0; hop <= b->layers - layer; hop++) {
        for (uint32_t type = 0; type < b->types; type++) {
            weir_block_range range = b->block->ranges[(size_t)hop * b->types + type];
            if (range.begin < range.end) range_back(b, layer, type, range, dout, dsum, dbelow);
        }
    }
}

/* The means of the children along one step; dchildren: rows of what the means were of. */
static void step_back(back *b, uint32_t layer, uint32_t step, uint32_t steps, const weir_real *dsum,
                      weir_real *dchildren) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    const weir_block_edges *e = &b->block->edges[step];
    uint32_t rows = e->parent_end - e->parent_begin, hidden = b->hidden;
    const weir_real *dy = dsum + (size_t)e->parent_begin * hidden;
    uint64_t weight = b->plan->neighbors[(layer - 1) * steps + step];
    if (rows == 0 || weight == WEIR_NN_NO_TENSOR) return;
    weir_real *dmean = back_reals(b, rows, hidden);
    if (b->starved) return;
    weight_back(b, rows, hidden, hidden, t->means[step], dy, weight);
    weight_back(b, rows, weir_nn_edge_cols(b->nn, step), hidden, b->tape->edge_means[step], dy,
                weight + (uint64_t)hidden * hidden);
    input_back(b, rows, hidden, hidden, dy, weight, 0, dmean);
    weir_segments segments = {.count = rows,
                              .offsets = b->tape->offsets[step],
                              .index = (layer == 1 ? b->tape->input_children : b->tape->children)[step]};
    b->k->segment_mean_back(&segments, hidden, dmean, hidden, dchildren, hidden);
}

/* Layer 1 took its own rows out of layer 0's, once a node. */
static weir_real *inputs_back(back *b, const weir_real *dself) {
    weir_real *dinputs = back_zeros(b, b->block->inputs, b->hidden);
    if (b->starved) return NULL;
    b->k->scatter_add_rows(b->tape->layers[0].nodes, b->hidden, dself, b->tape->input_of, dinputs);
    return dinputs;
}

/* Returns the gradient of what the layer saw; dout is used up. NN-B1 rests on the order: what was done last is undone
 * first. */
static weir_real *layer_back(back *b, uint32_t layer, weir_real *dout) {
    const weir_nn_layer_tape *t = &b->tape->layers[layer - 1];
    uint32_t steps, seen = layer == 1 ? t->nodes : b->tape->layers[layer - 2].nodes;
    weir_nn_steps(b->shape, &steps);
    weir_dropout dropout = weir_nn_dropout_of(&b->tape->drop, layer);
    weir_real *dsum = back_reals(b, t->nodes, b->hidden), *dbelow = back_zeros(b, seen, b->hidden);
    if (b->starved) return NULL;
    if (dropout.rate > 0) b->k->dropout(t->nodes, b->hidden, &dropout, dout);
    ranges_back(b, layer, dout, dsum, dbelow);
    if (layer == 1) dbelow = inputs_back(b, dbelow);
    for (uint32_t s = 0; s < steps && !b->starved; s++)
        step_back(b, layer, s, steps, dsum, dbelow);
    return dbelow;
}

/* --- layer 0 ----------------------------------------------------------------------------------------------------- */

static void encode_rows_back(const back *b, uint32_t type, uint32_t first, uint32_t rows, weir_real *dh0) {
    const weir_nn_inputs *inputs = weir_nn_vertex(b->shape, type);
    const weir_nn_encode_slots *at = &b->plan->encode[type];
    uint32_t width = inputs->width, categories = inputs->category_count;
    size_t begin = ((size_t)b->block->input_ranges[type].begin + first) * b->hidden;
    b->k->relu_back((size_t)rows * b->hidden, b->tape->h0 + begin, dh0 + begin);
    b->k->bias_back(rows, b->hidden, dh0 + begin, b->gradients + at->bias);
    if (width > 0) {
        const weir_real *numbers = b->tape->numbers[type] + (size_t)first * width;
        weight_back(b, rows, width, b->hidden, numbers, dh0 + begin, at->weight);
    }
    for (uint32_t c = 0; c < categories; c++) {
        const uint32_t *slots = b->tape->slots[type] + (size_t)first * categories + c;
        b->k->embed_back(rows, b->hidden, slots, categories, dh0 + begin, b->gradients + at->categories[c]);
    }
}

static void encode_back(const back *b, uint32_t type, weir_real *dh0) {
    weir_block_range range = b->block->input_ranges[type];
    uint32_t rows = range.end - range.begin, piece = weir_kernels_piece(b->k, b->hidden);
    for (uint32_t first = 0; first < rows; first += piece) {
        encode_rows_back(b, type, first, rows - first < piece ? rows - first : piece, dh0);
        if (rows - first <= piece) break;
    }
}

weir_err weir_nn_backward(const weir_nn *nn, const weir_real *params, weir_nn_workspace *workspace,
                          const weir_real *dlogits, weir_real *gradients) {
    const weir_nn_tape *tape = weir_nn_tape_of(workspace);
    if (!tape)
        return WEIR_ERR(WEIR_EINVAL, "there is no tape to go back on; open the workspace with one, and go forward");
    const weir_nn_shape *shape = weir_nn_shape_of(nn);
    back b = {.nn = nn, .tape = tape, .block = tape->block, .shape = shape, .k = weir_nn_kernels(nn), .w = workspace};
    b.plan = weir_nn_plan_of(nn);
    b.params = params;
    b.gradients = gradients;
    b.hidden = weir_nn_hidden(shape);
    b.layers = weir_nn_layers(shape);
    b.types = weir_nn_types(shape);
    weir_real *d = head_back(&b, dlogits);
    for (uint32_t layer = b.layers; layer > 0 && !b.starved; layer--)
        d = layer_back(&b, layer, d);
    for (uint32_t type = 0; type < b.types && !b.starved; type++)
        encode_back(&b, type, d);
    if (b.starved)
        return WEIR_NOMEM("for the gradients of a batch of %u nodes; lower the batch or the "
                          "fan-outs",
                          b.block->nodes);
    return b.k->finish();
}
