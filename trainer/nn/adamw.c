/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.c - AdamW (Loshchilov and Hutter): decay apart from the gradient, on weights and embeddings alone. */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/trainer/nn/nn.h>

struct weir_adamw {
    const weir_nn *nn;
    weir_adamw_opts opts;
    uint64_t steps;
    weir_real *moments[2];
};

weir_err weir_adamw_open(const weir_nn *nn, const weir_adamw_opts *opts, weir_adamw **adamwp) {
    const weir_kernels *k = weir_nn_kernels(nn);
    size_t bytes = weir_nn_parameter_count(nn) * sizeof(weir_real);
    weir_err err = WEIR_OK;
    *adamwp = NULL;
    if (!(opts->beta1 >= 0 && opts->beta1 < 1 && opts->beta2 >= 0 && opts->beta2 < 1 && opts->epsilon >= 0 &&
          opts->decay >= 0 && opts->norm_max >= 0))
        return WEIR_ERR(WEIR_EINVAL,
                        "AdamW's betas must be in [0, 1), and its epsilon, decay and norm must not be negative");
    weir_adamw *adamw = weir_calloc(1, sizeof *adamw);
    if (!adamw) return WEIR_NOMEM("for AdamW");
    *adamw = (weir_adamw){.nn = nn, .opts = *opts};
    if (adamw->opts.beta1 == 0) adamw->opts.beta1 = 0.9;
    if (adamw->opts.beta2 == 0) adamw->opts.beta2 = 0.999;
    if (adamw->opts.epsilon == 0) adamw->opts.epsilon = 1e-8;
    for (unsigned i = 0; !err && i < 2; i++) {
        err = k->alloc(bytes, (void **)&adamw->moments[i]);
        if (!err) k->zero(adamw->moments[i], bytes);
    }
    if (err) {
        weir_adamw_close(adamw);
        return err;
    }
    *adamwp = adamw;
    return WEIR_OK;
}

void weir_adamw_close(weir_adamw *adamw) {
    if (!adamw) return;
    for (unsigned i = 0; i < 2; i++) {
        if (adamw->moments[i]) weir_nn_kernels(adamw->nn)->release(adamw->moments[i]);
    }
    weir_free(adamw);
}

/* One call for each run of tensors that decay alike. */
static void adamw_step_tensors(weir_adamw *adamw, weir_adamw_step *step, const weir_real *gradients,
                               weir_real *params) {
    uint32_t count;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &count);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i + 1 < count && t[i + 1].decays == t[first].decays) continue;
        uint64_t begin = t[first].offset, end = t[i].offset + (uint64_t)t[i].rows * t[i].cols;
        WEIR_ASSERT(begin < end && end <= weir_nn_parameter_count(adamw->nn));
        step->decay = t[first].decays ? adamw->opts.decay : 0;
        weir_nn_kernels(adamw->nn)->adamw(end - begin, step, gradients + begin, adamw->moments[0] + begin,
                                          adamw->moments[1] + begin, params + begin);
        first = i + 1;
    }
}

weir_err weir_adamw_step_take(weir_adamw *adamw, double rate, const weir_real *gradients, weir_real *params,
                              double *normp) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    const weir_adamw_opts *o = &adamw->opts;
    double norm = sqrt(k->square_sum(weir_nn_parameter_count(adamw->nn), gradients));
    if (normp) *normp = norm;
    if (!isfinite(norm))
        return WEIR_ERR(WEIR_EDATA, "the gradients are no longer finite numbers; lower the learning rate, or look for "
                                    "inputs that are not numbers");
    adamw->steps++;
    weir_adamw_step step = {
        .rate = rate,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = o->epsilon,
        .correction1 = 1 - pow(o->beta1, (double)adamw->steps),
        .correction2 = 1 - pow(o->beta2, (double)adamw->steps),
        .scale = o->norm_max > 0 && norm > o->norm_max ? o->norm_max / norm : 1,
    };
    adamw_step_tensors(adamw, &step, gradients, params);
    return k->finish();
}

weir_real *weir_adamw_moments(weir_adamw *adamw, unsigned which) {
    WEIR_ASSERT(which < 2);
    return adamw->moments[which];
}

uint64_t weir_adamw_steps(const weir_adamw *adamw) {
    return adamw->steps;
}

void weir_adamw_steps_set(weir_adamw *adamw, uint64_t steps) {
    adamw->steps = steps;
}
