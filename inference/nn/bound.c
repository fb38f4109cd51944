/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.c - whether a network's weights could bring some input to a logit that is not finite.
 *
 * Each weight may be finite and their sums not: 3e38 twice is infinite, and a layer norm of it is NaN. The inputs
 * have a bound (encode.c), and so has what a layer norm gives, whatever comes in; so each stage can be bounded by the
 * sums of its weights' absolute values alone. The bounds are coarse, by a factor of the number of steps perhaps, and
 * may be: the weights that training leaves lie ten orders of magnitude below them. Without layer norms they multiply
 * from layer to layer; ten layers and more can then be refused as they begin.
 */
#include <float.h>
#include <math.h>

#include <weir/store/base/assert.h>

#include "gather.h"

struct weir_nn_bounds {
    const weir_nn *nn;
    const weir_real *params;
    double largest; /* sum of a tensor, since a layer norm of which nothing before it is left */
    const weir_nn_tensor *culprit;
    bool beyond; /* what arises while a step is gathered is above its limit */
};

static const weir_nn_tensor *bound_tensor_at(const weir_nn *nn, uint64_t offset) {
    for (uint32_t i = 0; i < nn->tensor_count; i++)
        if (nn->tensors[i].offset == offset) return &nn->tensors[i];
    return NULL;
}

static double bound_note(weir_nn_bounds *b, const weir_nn_tensor *tensor, double most) {
    if (!b->culprit || most > b->largest) {
        b->largest = most;
        b->culprit = tensor;
    }
    return most;
}

double weir_nn_bounds_column_sum(weir_nn_bounds *b, uint64_t offset, uint32_t first, uint32_t end) {
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

double weir_nn_bounds_largest_entry(weir_nn_bounds *b, uint64_t offset) {
    if (offset == WEIR_NN_NO_TENSOR) return 0;
    const weir_nn_tensor *tensor = bound_tensor_at(b->nn, offset);
    WEIR_ASSERT(tensor != NULL);
    double most = 0;
    for (uint64_t i = 0; i < (uint64_t)tensor->rows * tensor->cols; i++)
        most = fmax(most, fabs((double)b->params[tensor->offset + i]));
    return bound_note(b, tensor, most);
}

void weir_nn_bounds_check(weir_nn_bounds *b, double reached, double limit) {
    b->beyond = b->beyond || !(reached <= limit);
}

static weir_err bound_check(const weir_nn_bounds *b, double reached, double limit) {
    if (reached <= limit) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA,
                    "the weights of '%s' are too large (%.3g): sums of them could pass what a number holds; train the "
                    "model again with a lower rate%s, or serve an older one",
                    b->culprit->name, b->largest,
                    b->nn->shape->norm == WEIR_NN_NORM_NONE ? ", with layer norms, or with fewer layers" : "");
}

static double bound_encode_most(weir_nn_bounds *b) {
    const weir_nn_shape *shape = b->nn->shape;
    double most = 0;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_encode_slots *at = &b->nn->plan.encode[t];
        if (shape->vertices[t].bare) continue;
        double own = WEIR_NN_SCALED_MAX * weir_nn_bounds_column_sum(b, at->weight, 0, shape->vertices[t].width);
        for (uint32_t c = 0; c < shape->vertices[t].category_count; c++)
            own += weir_nn_bounds_largest_entry(b, at->categories[c]);
        most = fmax(most, own + weir_nn_bounds_largest_entry(b, at->bias));
    }
    return most;
}

/* What a layer sees of a type, where rows of the layer below can be so large: of a bare one its numbers. */
static double bound_below_of(const weir_nn_bounds *b, uint32_t layer, uint32_t type, double below) {
    return layer == 1 && b->nn->shape->vertices[type].bare ? WEIR_NN_SCALED_MAX : below;
}

/* Of one step of a layer, by what its network gathers and what its edges say. */
static double bound_step_most(weir_nn_bounds *b, uint32_t layer, uint32_t step, double below) {
    const weir_nn_shape *shape = b->nn->shape;
    const weir_sample_step *s = &shape->steps[step];
    const uint32_t at = (layer - 1) * shape->step_count + step, rows = weir_nn_way_rows(shape, layer, step);
    const uint32_t fanout = s->strategy == WEIR_SAMPLE_FULL ? shape->window : s->fanout;
    const weir_nn_reach reach = {.widths = weir_nn_widths_of(shape, layer, step),
                                 .child = bound_below_of(b, layer, weir_nn_child_of(shape, step), below),
                                 .parent = bound_below_of(b, layer, weir_nn_parent_of(shape, step), below),
                                 .edge = WEIR_NN_SCALED_MAX,
                                 .children = fanout,
                                 .weight = b->nn->plan.neighbors[at],
                                 .extra = b->nn->plan.extras[at].at};
    if (reach.weight == WEIR_NN_NO_TENSOR) return 0;
    return weir_nn_way_of(shape)->bound(b, &reach) +
           WEIR_NN_SCALED_MAX * weir_nn_bounds_column_sum(b, reach.weight, rows, rows + weir_nn_edge_cols(b->nn, step));
}

/* Before the layer norm, if there is one. Every type is given the sum of all steps, though it has only its own. */
static double bound_layer_most(weir_nn_bounds *b, uint32_t layer, double below) {
    const weir_nn_shape *shape = b->nn->shape;
    double own = 0, neighbors = 0;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_type_slots *at = &b->nn->plan.types[(layer - 1) * shape->types + t];
        const uint32_t cols = layer == 1 ? weir_nn_below(shape, t) : shape->hidden;
        const double most = bound_below_of(b, layer, t, below) * weir_nn_bounds_column_sum(b, at->self, 0, cols);
        own = fmax(own, most + weir_nn_bounds_largest_entry(b, at->bias));
    }
    for (uint32_t s = 0; s < shape->step_count; s++)
        neighbors += bound_step_most(b, layer, s, below);
    return b->beyond ? INFINITY : own + neighbors;
}

/* Behind the second dense layer, of rows that can be so large. */
static double bound_dense_most(weir_nn_bounds *b, uint32_t layer, double rows) {
    const weir_nn_shape *shape = b->nn->shape;
    double most = 0;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_type_slots *at = &b->nn->plan.types[(layer - 1) * shape->types + t];
        most = fmax(most, rows * weir_nn_bounds_column_sum(b, at->dense, 0, shape->hidden) +
                              weir_nn_bounds_largest_entry(b, at->dense_bias));
    }
    return most;
}

/* After the layer norm: a number of a row of `hidden` is at most sqrt(hidden) deviations from the row's mean. */
static double bound_norm_most(weir_nn_bounds *b, uint32_t layer) {
    const weir_nn_shape *shape = b->nn->shape;
    double most = 0;
    if ((!shape->residual && !shape->jump) || layer == 1) b->culprit = NULL;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_type_slots *at = &b->nn->plan.types[(layer - 1) * shape->types + t];
        most = fmax(most, sqrt(shape->hidden) * weir_nn_bounds_largest_entry(b, at->gain) +
                              weir_nn_bounds_largest_entry(b, at->shift));
    }
    return most;
}

/* What a layer adds to the rows that it gives: its sums, and what stands behind them. */
static weir_err bound_made_most(weir_nn_bounds *b, uint32_t layer, double below, double limit, double *madep) {
    *madep = bound_layer_most(b, layer, below);
    weir_err err = bound_check(b, *madep, limit);
    if (err || weir_nn_answers(b->nn->shape, layer) || !b->nn->shape->feed_forward) return err;
    *madep = bound_dense_most(b, layer, *madep);
    return bound_check(b, *madep, limit);
}

weir_err weir_nn_bound(const weir_nn *nn, const weir_real *params, double *logit_maxp) {
    const weir_nn_shape *shape = nn->shape;
    weir_nn_bounds b = {.nn = nn, .params = params};
    const bool norms = shape->norm != WEIR_NN_NORM_NONE;
    /* A layer norm squares a row and sums it, and a mean sums its children; half of that leaves room for rounding. */
    const double row_max =
        (norms ? sqrt((double)FLT_MAX / shape->hidden) : (double)FLT_MAX / WEIR_SAMPLE_WINDOW_MAX) / 2;
    double most = bound_encode_most(&b), head = 0, stream = 0;
    *logit_maxp = 0;
    weir_err err = bound_check(&b, most, row_max);
    for (uint32_t layer = 1; !err && layer <= shape->layers; layer++) {
        const bool answers = weir_nn_answers(shape, layer), adds = shape->residual && layer > 1;
        double made;
        err = bound_made_most(&b, layer, most, answers ? (double)FLT_MAX / 2 : row_max, &made);
        if (!err && answers) *logit_maxp = made; // NN-N7
        if (err || answers) return err;
        if (shape->norm == WEIR_NN_NORM_STREAM) {
            stream = made + (adds ? stream : 0);
            err = bound_check(&b, stream, row_max);
            most = bound_norm_most(&b, layer);
        } else {
            most = (norms ? bound_norm_most(&b, layer) : made) + (adds ? most : 0);
        }
        if (!err) err = bound_check(&b, most, row_max);
        head = shape->jump ? fmax(head, most) : most;
    }
    if (err) return err;
    *logit_maxp = head * weir_nn_bounds_column_sum(&b, nn->plan.head_weight, 0, weir_nn_head_rows(shape)) +
                  weir_nn_bounds_largest_entry(&b, nn->plan.head_bias);
    return bound_check(&b, *logit_maxp, (double)FLT_MAX / 2); // NN-N7
}
