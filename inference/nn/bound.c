/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.c - whether a network's weights could bring some input to a logit that is not finite.
 *
 * Each weight may be finite and their sums not: 3e38 twice is infinite, and a layer norm of it is NaN. The inputs
 * have a bound (encode.c), and so has what a layer norm gives, whatever comes in; so each stage can be bounded by the
 * sums of its weights' absolute values alone. The bounds are coarse, by a factor of the number of steps perhaps, and
 * may be: the weights that training leaves lie ten orders of magnitude below them.
 */
#include <float.h>
#include <math.h>

#include <weir/store/base/assert.h>

#include "nn_private.h"

typedef struct nn_bound {
    const weir_nn *nn;
    const weir_real *params;
    double largest; /* sum of a tensor, since a layer norm of which nothing before it is left */
    const weir_nn_tensor *culprit;
} nn_bound;

static const weir_nn_tensor *bound_tensor_at(const weir_nn *nn, uint64_t offset) {
    for (uint32_t i = 0; i < nn->tensor_count; i++)
        if (nn->tensors[i].offset == offset) return &nn->tensors[i];
    return NULL;
}

static double bound_note(nn_bound *b, const weir_nn_tensor *tensor, double most) {
    if (!b->culprit || most > b->largest) {
        b->largest = most;
        b->culprit = tensor;
    }
    return most;
}

/* The largest sum of absolute values of a column, over rows from first to end: what a row of ones could become. */
static double bound_column_sum(nn_bound *b, uint64_t offset, uint32_t first, uint32_t end) {
    if (offset == WEIR_NN_NO_TENSOR) return 0;
    const weir_nn_tensor *tensor = bound_tensor_at(b->nn, offset);
    WEIR_ASSERT(tensor && end <= tensor->rows);
    double most = 0;
    for (uint32_t c = 0; c < tensor->cols; c++) {
        double sum = 0;
        for (uint32_t r = first; r < end; r++)
            sum += fabs((double)b->params[tensor->offset + (uint64_t)r * tensor->cols + c]);
        most = fmax(most, sum);
    }
    return bound_note(b, tensor, most);
}

/* Of a matrix whose row is chosen, and of a bias. */
static double bound_largest_entry(nn_bound *b, uint64_t offset) {
    if (offset == WEIR_NN_NO_TENSOR) return 0;
    const weir_nn_tensor *tensor = bound_tensor_at(b->nn, offset);
    WEIR_ASSERT(tensor != NULL);
    double most = 0;
    for (uint64_t i = 0; i < (uint64_t)tensor->rows * tensor->cols; i++)
        most = fmax(most, fabs((double)b->params[tensor->offset + i]));
    return bound_note(b, tensor, most);
}

static weir_err bound_check(const nn_bound *b, double reached, double limit) {
    if (reached <= limit) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA,
                    "the weights of '%s' are too large (%.3g): sums of them could pass what a number holds; train the "
                    "model again with a lower rate, or serve an older one",
                    b->culprit->name, b->largest);
}

static double bound_encode_most(nn_bound *b) {
    const weir_nn_shape *shape = b->nn->shape;
    double most = 0;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_encode_slots *at = &b->nn->plan.encode[t];
        if (shape->vertices[t].bare) continue;
        double own = WEIR_NN_SCALED_MAX * bound_column_sum(b, at->weight, 0, shape->vertices[t].width);
        for (uint32_t c = 0; c < shape->vertices[t].category_count; c++)
            own += bound_largest_entry(b, at->categories[c]);
        most = fmax(most, own + bound_largest_entry(b, at->bias));
    }
    return most;
}

/* What a row of a type could become by rows of a weight of so many columns below, each as large as it can be. */
static double bound_below_most(nn_bound *b, uint32_t layer, uint32_t type, double below, uint64_t weight,
                               uint32_t *colsp) {
    const bool bare = layer == 1 && b->nn->shape->vertices[type].bare;
    *colsp = layer == 1 ? weir_nn_below(b->nn->shape, type) : b->nn->shape->hidden;
    return (bare ? WEIR_NN_SCALED_MAX : below) * bound_column_sum(b, weight, 0, *colsp);
}

/* Before the layer norm. Every type is given the sum of all steps, though it has only its own. */
static double bound_layer_most(nn_bound *b, uint32_t layer, double below) {
    const weir_nn_shape *shape = b->nn->shape;
    double own = 0, neighbors = 0;
    uint32_t cols;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_type_slots *at = &b->nn->plan.types[(layer - 1) * shape->types + t];
        own = fmax(own, bound_below_most(b, layer, t, below, at->self, &cols) + bound_largest_entry(b, at->bias));
    }
    for (uint32_t s = 0; s < shape->step_count; s++) {
        uint64_t at = b->nn->plan.neighbors[(layer - 1) * shape->step_count + s];
        neighbors += bound_below_most(b, layer, weir_nn_child_of(shape, s), below, at, &cols);
        neighbors += WEIR_NN_SCALED_MAX * bound_column_sum(b, at, cols, cols + weir_nn_edge_cols(b->nn, s));
    }
    return own + neighbors;
}

/* After the layer norm: a number of a row of `hidden` is at most sqrt(hidden) deviations from the row's mean. */
static double bound_norm_most(nn_bound *b, uint32_t layer) {
    const weir_nn_shape *shape = b->nn->shape;
    double most = 0;
    if (!shape->residual || layer == 1) b->culprit = NULL;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_type_slots *at = &b->nn->plan.types[(layer - 1) * shape->types + t];
        most = fmax(most, sqrt(shape->hidden) * bound_largest_entry(b, at->gain) + bound_largest_entry(b, at->shift));
    }
    return most;
}

weir_err weir_nn_bound(const weir_nn *nn, const weir_real *params, double *logit_maxp) {
    nn_bound b = {.nn = nn, .params = params};
    /* A layer norm squares a row and sums it; half of that leaves room for rounding. */
    double row_max = sqrt((double)FLT_MAX / nn->shape->hidden) / 2;
    double most = bound_encode_most(&b);
    *logit_maxp = 0;
    weir_err err = bound_check(&b, most, row_max);
    for (uint32_t layer = 1; !err && layer <= nn->shape->layers; layer++) {
        err = bound_check(&b, bound_layer_most(&b, layer, most), row_max);
        if (!err) most = bound_norm_most(&b, layer) + (nn->shape->residual && layer > 1 ? most : 0);
        if (!err) err = bound_check(&b, most, row_max);
    }
    if (err) return err;
    *logit_maxp = most * bound_column_sum(&b, nn->plan.head_weight, 0, nn->shape->hidden) +
                  bound_largest_entry(&b, nn->plan.head_bias);
    return bound_check(&b, *logit_maxp, (double)FLT_MAX / 2); // NN-N7
}
