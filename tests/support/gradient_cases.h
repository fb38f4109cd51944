/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient_cases.h - gradients against finite differences of the naive network, which is double in both builds: B1.
 *
 * A kink of a relu between the two ends of a difference makes the difference wrong, not the gradient. Whether there is
 * one is seen without the gradient: half the distance then gives another difference.
 */
#ifndef WEIR_GRADIENT_CASES_H
#define WEIR_GRADIENT_CASES_H

#include <float.h>

#include <weir/trainer/nn/nn.h>

#include "naive_network.h"

#ifdef WEIR_REAL_DOUBLE
#define GRADIENT_ERROR 1e-6
#define GRADIENT_NOISE 1e-10
#else
#define GRADIENT_ERROR 1e-3
#define GRADIENT_NOISE 1e-7
#endif
#define ENTRIES_A_TENSOR  6u
#define ENTRIES_OF_OTHERS 2u /* of networks other than means: they are many, and each entry is four ways forward */
#define DISTANCE          1e-5

typedef struct gradient_check {
    nn_fixture f;
    const weir_nn_drop *drop;
    uint32_t labels[NN_TARGETS];
    double weights[3], *params, loss;
    weir_real *gradients;
    uint32_t entries, checked, kinks;
    double worst;
} gradient_check;

/* Mean cross-entropy, written down from its definition. */
static inline double naive_loss(const gradient_check *g, const double *logits) {
    uint32_t outputs = weir_nn_outputs(g->f.shape);
    double sum = 0, total = 0;
    for (uint32_t i = 0; i < NN_TARGETS; i++) {
        const double *z = logits + i * outputs;
        double weight = g->weights[g->labels[i]], denominator = outputs == 1 ? 1 : 0;
        for (uint32_t c = 0; c < outputs; c++)
            denominator += exp(z[c]);
        double numerator = outputs == 1 ? (g->labels[i] ? exp(z[0]) : 1) : exp(z[g->labels[i]]);
        sum -= weight * log(numerator / denominator);
        total += weight;
    }
    return sum / total;
}

static inline double loss_at(gradient_check *g, uint64_t at, double distance) {
    double logits[NN_TARGETS * 3], kept = g->params[at];
    g->params[at] = kept + distance;
    naive_forward(&g->f, g->params, g->drop, logits);
    g->params[at] = kept;
    return naive_loss(g, logits);
}

/* By how much the slopes to either side differ: half as much at half the distance, unless a kink is just here. */
static inline double bend(double down, double here, double up, double distance) {
    return fabs(up - here - (here - down)) / distance;
}

/* Against the largest of the tensor where the entry itself is nearly none. */
static inline void check_entry(gradient_check *g, const weir_nn_tensor *tensor, uint64_t at, double largest) {
    const double gradient = (double)g->gradients[at], here = g->loss, half = DISTANCE / 2;
    const double down = loss_at(g, at, -DISTANCE), up = loss_at(g, at, DISTANCE);
    const double half_down = loss_at(g, at, -half), half_up = loss_at(g, at, half);
    const double wide = (up - down) / (2 * DISTANCE), narrow = (half_up - half_down) / (2 * half);
    const double scale = fmax(fmax(fabs(gradient), fabs(wide)), 1e-2 * largest);
    if (scale < GRADIENT_NOISE)
        return; /* nothing of the batch comes by here, or what adds up to 0, as where all scores
                                           of GAT move alike */
    const double bent = bend(down, here, up, DISTANCE);
    bool at_a_kink = bent > 0.2 * GRADIENT_ERROR * scale && bend(half_down, here, half_up, half) > 0.75 * bent;
    if (at_a_kink || fabs(wide - narrow) > 0.2 * GRADIENT_ERROR * scale) {
        g->kinks++;
        return;
    }
    /* What two losses are rounded to, divided by their distance: more where logits are large, as without norms. In
     * double that is 4e-11, so gradients below 4e-5 are held to less than a millionth of themselves. */
    const double places = nn_normless(g->f.encoders) ? 8 : 1;
    const double rounding = places * DBL_EPSILON * (1 + g->loss) / DISTANCE;
    double error = fmax(0, fabs(gradient - wide) - rounding) / scale;
    g->checked++;
    g->worst = fmax(g->worst, error);
    if (!(error < GRADIENT_ERROR))
        fail_msg("%s[%llu]: gradient %.9g, difference %.9g", tensor->name, (unsigned long long)(at - tensor->offset),
                 gradient, wide);
}

static inline void check_tensor(gradient_check *g, const weir_nn_tensor *tensor) {
    uint64_t size = (uint64_t)tensor->rows * tensor->cols;
    double largest = 0;
    for (uint64_t i = 0; i < size; i++)
        largest = fmax(largest, fabs((double)g->gradients[tensor->offset + i]));
    for (uint32_t i = 0; i < g->entries; i++)
        check_entry(g, tensor, tensor->offset + weir_rng_below(&g->f.rng, size), largest);
}

static inline void gradient_forward_back(gradient_check *g) {
    weir_real logits[NN_TARGETS * 3], dlogits[NN_TARGETS * 3];
    double naive[NN_TARGETS * 3];
    uint32_t outputs = weir_nn_outputs(g->f.shape);
    weir_nn_workspace *workspace = NULL;
    assert_ok(weir_nn_workspace_open(g->f.nn, true, &workspace));
    assert_ok(weir_nn_forward(g->f.nn, g->f.params, &g->f.batch, g->drop, workspace, logits, NULL));
    weir_loss loss = {.logits = logits, .labels = g->labels, .weights = g->weights, .count = NN_TARGETS};
    loss.classes = outputs == 1 ? 2 : outputs;
    for (uint32_t i = 0; i < NN_TARGETS; i++)
        loss.divisor += g->weights[g->labels[i]];
    double value = nn_loss(outputs, &loss, dlogits);
    naive_forward(&g->f, g->params, g->drop, naive);
    const double expected = g->loss = naive_loss(g, naive);
    if (!(fabs(value - expected) < 1e-2 * GRADIENT_ERROR)) fail_msg("a loss of %.9g is %.9g", expected, value);
    assert_ok(weir_nn_backward(g->f.nn, g->f.params, workspace, dlogits, g->gradients, NULL));
    weir_nn_workspace_close(workspace);
}

static inline void gradient_run_network(const char *task, const weir_nn_drop *drop, nn_encoders encoders,
                                        weir_nn_network network) {
    gradient_check g = {.drop = drop, .weights = {1, 2.5, 0.5}};
    g.entries = network == WEIR_NN_MEAN ? ENTRIES_A_TENSOR : ENTRIES_OF_OTHERS;
    nn_open_network(&g.f, weir_test_seed(), task, 12, encoders, network, weir_nn_network_has_heads(network) ? 3 : 0);
    if (drop) g.f.each = weir_nn_drop_each(drop);
    g.f.drop = drop;
    nn_random_batch(&g.f);
    uint64_t count = weir_nn_parameter_count(g.f.nn);
    g.params = fixture_array(count, sizeof *g.params);
    g.gradients = fixture_array(count, sizeof *g.gradients);
    for (uint64_t i = 0; i < count; i++)
        g.params[i] = (double)g.f.params[i];
    for (uint32_t i = 0; i < NN_TARGETS; i++)
        g.labels[i] = (uint32_t)weir_rng_below(&g.f.rng, weir_nn_outputs(g.f.shape) == 1 ? 2 : 3);
    gradient_forward_back(&g);
    uint32_t tensors;
    const weir_nn_tensor *tensor = weir_nn_tensors(g.f.nn, &tensors);
    const uint32_t part = (uint32_t)weir_test_part(4, 1); /* the oracle takes as long in a build with a sanitizer */
    for (uint32_t i = (uint32_t)weir_rng_below(&g.f.rng, part); i < tensors; i += part)
        check_tensor(&g, &tensor[i]);
    print_message("%u entries of %u tensors, %u at a kink, worst error %.2g\n", g.checked, tensors, g.kinks, g.worst);
    assert_true(part > 1 || g.checked > tensors * g.entries / 2);
    free(g.params);
    free(g.gradients);
    nn_close(&g.f);
}

static inline void gradient_run(const char *task, const weir_nn_drop *drop, nn_encoders encoders) {
    gradient_run_network(task, drop, encoders, WEIR_NN_MEAN);
}

/* With a type that has no encoder, and with layers that add. */
static inline void gradient_run_both(weir_nn_network network) {
    weir_nn_drop drop = {.rate = 0.3, .shares = 0.5, .edges = 0.4, .seed = 5, .step = 9};
    gradient_run_network("find", NULL, NN_OF_CATEGORIES, network);
    gradient_run_network("sort", &drop, NN_RESIDUAL, network);
}

#endif /* WEIR_GRADIENT_CASES_H */
