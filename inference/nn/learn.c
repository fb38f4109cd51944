/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - scales of the numbers, learnt in one pass (Welford) in double (NN-N3). */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "shape_private.h"

#define DEVIATION_MIN 1e-9 /* of the mean; below it a number counts as always the same */

struct weir_nn_learner {
    weir_nn_shape *shape;
    uint32_t *first; /* of each vertex type, then relation: its first moments */
    weir_nn_moments *moments;
    uint32_t count;
};

weir_err weir_nn_learner_open(weir_nn_shape *shape, weir_nn_learner **learnerp) {
    weir_nn_learner *learner = weir_calloc(1, sizeof *learner);
    uint32_t inputs = shape->types + shape->relations;
    *learnerp = NULL;
    if (!learner) goto err;
    learner->shape = shape;
    learner->first = weir_calloc(inputs + 1, sizeof *learner->first);
    if (!learner->first) goto err;
    for (uint32_t i = 0; i < inputs; i++) {
        learner->first[i] = learner->count;
        learner->count += weir_nn_inputs_at(shape, i)->number_count;
    }
    learner->moments = weir_calloc(learner->count + 1, sizeof *learner->moments);
    if (!learner->moments) goto err;
    *learnerp = learner;
    return WEIR_OK;
err:
    weir_nn_learner_close(learner);
    return WEIR_NOMEM("while learning the scales of the inputs");
}

void weir_nn_learner_close(weir_nn_learner *learner) {
    if (!learner) return;
    weir_free(learner->first);
    weir_free(learner->moments);
    weir_free(learner);
}

void weir_nn_learn(weir_nn_learner *learner, const weir_nn_inputs *inputs, const weir_value *values,
                   const double *aggregates, int64_t before_us) {
    const weir_nn_shape *shape = learner->shape;
    bool edge = inputs >= shape->edges && inputs < shape->edges + shape->relations;
    size_t index = (size_t)(edge ? shape->types + (inputs - shape->edges) : inputs - shape->vertices);
    WEIR_ASSERT(index < shape->types + shape->relations); /* the learner's own shape has these inputs */
    weir_nn_moments *moments = learner->moments + learner->first[index];
    WEIR_ASSERT(learner->first[index] + inputs->number_count <= learner->count);
    uint32_t aggregate = 0;
    for (uint32_t i = 0; i < inputs->number_count; i++) {
        const weir_nn_number *number = &inputs->numbers[i];
        double raw = weir_nn_number_raw(number, values, aggregates, aggregate, before_us);
        aggregate += number->kind == WEIR_NN_AGGREGATE;
        if (isnan(raw)) continue;
        weir_nn_moments *m = &moments[i];
        double distance = raw - m->mean;
        m->min = m->count > 0 ? fmin(m->min, raw) : raw;
        m->max = m->count > 0 ? fmax(m->max, raw) : raw;
        m->count += 1;
        m->mean += distance / m->count;
        m->squares += distance * (raw - m->mean);
    }
}

weir_nn_moments *weir_nn_learner_moments(weir_nn_learner *learner, uint32_t *countp) {
    *countp = learner->count;
    return learner->moments;
}

void weir_nn_moments_merge(weir_nn_moments *into, const weir_nn_moments *from) {
    if (from->count == 0) return;
    if (into->count == 0) {
        *into = *from;
        return;
    }
    double count = into->count + from->count, distance = from->mean - into->mean;
    into->mean += distance * from->count / count;
    into->squares += from->squares + distance * distance * into->count * from->count / count;
    into->count = count;
    into->min = fmin(into->min, from->min);
    into->max = fmax(into->max, from->max);
}

void weir_nn_learner_finish(weir_nn_learner *learner) {
    const weir_nn_shape *shape = learner->shape;
    for (uint32_t i = 0; i < shape->types + shape->relations; i++) {
        const weir_nn_inputs *inputs = weir_nn_inputs_at(shape, i);
        WEIR_ASSERT(learner->first[i] + inputs->number_count <= learner->count);
        for (uint32_t n = 0; n < inputs->number_count; n++) {
            const weir_nn_moments *m = &learner->moments[learner->first[i] + n];
            if (m->count == 0) continue;
            double deviation = sqrt(m->squares / m->count);
            bool varies = isfinite(deviation) && deviation > DEVIATION_MIN * fmax(1, fabs(m->mean));
            weir_nn_numbers_of(inputs)[n].scale =
                (weir_nn_scale){.mean = m->mean, .deviation = varies ? deviation : 1, .min = m->min, .max = m->max};
        }
    }
}
