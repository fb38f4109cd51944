/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adamw.c - AdamW (Loshchilov and Hutter): decay apart from the gradient, on weights and embeddings alone.
 *
 * A row of an embedding that no batch of a step has read has a gradient of 0: it moves by its moments and by decay
 * alone (NN-B3). That can wait until it is read, so each row has the step up to which it was moved. Steps that are made
 * up for one by one give the same bits; when they are so many that nothing is left of the first moment, the rest is
 * decay, and is made up for at once.
 *
 * An L2 penalty is part of the gradient, which the moments divide by its size: it moves a weight of which the loss asks
 * little as fast as any other, and so ends more of them than decay. Embeddings have none: rows that no batch has read
 * would have gradients.
 *
 * Adagrad (Duchi, Hazan and Singer) for these rows, where it is wanted, has neither moments nor decay: a row without a
 * gradient stays where it is, and nothing waits. Its sums of squares lie where AdamW has the second moment.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/trainer/nn/nn.h>

#define MOMENT_LEFT 1e-9                /* of a first moment: less does not move a float */
#define STILL       ((uint64_t)1 << 63) /* of a row whose first moment is 0 */

#define ADAGRAD_EPSILON 1e-10

/* Of one tensor that is looked up. */
typedef struct adamw_table {
    const weir_nn_tensor *tensor;
    uint64_t *moved; /* of each row: the step that it is as of, and STILL */
} adamw_table;

struct weir_adamw {
    const weir_nn *nn;
    weir_adamw_opts opts;
    uint64_t steps;
    double share; /* of the rates, in the steps to come      */
    double rate;  /* of rows of embeddings, in the last step */
    uint64_t made_up_max;
    weir_real *moments[2];
    weir_real *zeros; /* the gradient of a row that has none */
    adamw_table *tables;
    uint32_t table_count;
};

static weir_err adamw_open_tables(weir_adamw *adamw) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    uint32_t tensors, cols = 1;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &tensors);
    adamw->tables = weir_calloc(tensors + 1, sizeof *adamw->tables);
    if (!adamw->tables) return WEIR_NOMEM("for AdamW");
    for (uint32_t i = 0; i < tensors; i++) {
        if (!t[i].looked_up) continue;
        adamw_table *table = &adamw->tables[adamw->table_count++];
        table->tensor = &t[i];
        table->moved = weir_calloc((size_t)t[i].rows + 1, sizeof *table->moved);
        if (!table->moved) return WEIR_NOMEM("for AdamW");
        for (uint32_t row = 0; row < t[i].rows; row++)
            table->moved[row] = STILL;
        cols = t[i].cols > cols ? t[i].cols : cols;
    }
    weir_err err = k->alloc(k, cols * sizeof *adamw->zeros, (void **)&adamw->zeros);
    if (!err) k->zero(k, adamw->zeros, cols * sizeof *adamw->zeros);
    return err;
}

weir_err weir_adamw_open(const weir_nn *nn, const weir_adamw_opts *opts, weir_adamw **adamwp) {
    const weir_kernels *k = weir_nn_kernels(nn);
    size_t bytes = weir_nn_parameter_count(nn) * sizeof(weir_real);
    weir_err err = WEIR_OK;
    *adamwp = NULL;
    if (!(opts->beta1 >= 0 && opts->beta1 < 1 && opts->beta2 >= 0 && opts->beta2 < 1 && opts->epsilon >= 0 &&
          opts->decay >= 0 && opts->l2 >= 0 && opts->norm_max >= 0 && opts->row_rate >= 0))
        return WEIR_ERR(
            WEIR_EINVAL,
            "AdamW's betas must be in [0, 1), and its epsilon, decay, L2, norm and rate of rows must not be negative");
    weir_adamw *adamw = weir_calloc(1, sizeof *adamw);
    if (!adamw) return WEIR_NOMEM("for AdamW");
    *adamw = (weir_adamw){.nn = nn, .opts = *opts, .share = 1};
    if (adamw->opts.beta1 == 0) adamw->opts.beta1 = 0.9;
    if (adamw->opts.beta2 == 0) adamw->opts.beta2 = 0.999;
    if (adamw->opts.epsilon == 0) adamw->opts.epsilon = 1e-8;
    if (adamw->opts.beta2 < adamw->opts.beta1 * adamw->opts.beta1) { /* what waits would move the more, the longer */
        weir_adamw_close(adamw);
        return WEIR_ERR(WEIR_EINVAL, "AdamW's second beta must be at least the square of the first");
    }
    adamw->made_up_max = (uint64_t)ceil(log(MOMENT_LEFT) / log(adamw->opts.beta1));
    for (unsigned i = 0; !err && i < 2; i++) {
        err = k->alloc(k, bytes, (void **)&adamw->moments[i]);
        if (!err) k->zero(k, adamw->moments[i], bytes);
    }
    if (!err) err = adamw_open_tables(adamw);
    if (err) {
        weir_adamw_close(adamw);
        return err;
    }
    *adamwp = adamw;
    return WEIR_OK;
}

void weir_adamw_close(weir_adamw *adamw) {
    if (!adamw) return;
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    for (unsigned i = 0; i < 2; i++) {
        if (adamw->moments[i]) k->release(k, adamw->moments[i]);
    }
    if (adamw->zeros) k->release(k, adamw->zeros);
    for (uint32_t i = 0; adamw->tables && i < adamw->table_count; i++)
        weir_free(adamw->tables[i].moved);
    weir_free(adamw->tables);
    weir_free(adamw);
}

/* --- rows that wait ---------------------------------------------------------------------------------------------- */

static weir_adamw_step adamw_step_of(const weir_adamw *adamw, uint64_t step, double rate) {
    const weir_adamw_opts *o = &adamw->opts;
    return (weir_adamw_step){.rate = rate,
                             .beta1 = o->beta1,
                             .beta2 = o->beta2,
                             .epsilon = o->epsilon,
                             .decay = o->decay,
                             .correction1 = 1 - pow(o->beta1, (double)step),
                             .correction2 = 1 - pow(o->beta2, (double)step),
                             .scale = 1};
}

/* So many elements from `at` on, of embeddings. */
static void adamw_row_step(const weir_adamw *adamw, const weir_adamw_step *step, uint64_t at, size_t count,
                           const weir_real *gradients, weir_real *params) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    const weir_adagrad_step adagrad = {.rate = step->rate, .epsilon = ADAGRAD_EPSILON, .scale = step->scale};
    if (adamw->opts.adagrad)
        k->adagrad(k, count, &adagrad, gradients, adamw->moments[1] + at, params + at);
    else
        k->adamw(k, count, step, gradients, adamw->moments[0] + at, adamw->moments[1] + at, params + at);
}

static void adamw_bring_row(weir_adamw *adamw, const adamw_table *table, uint32_t row, weir_real *params) {
    const weir_nn_tensor *t = table->tensor;
    uint64_t moved = table->moved[row] & ~STILL, missing = adamw->steps - moved,
             at = t->offset + (uint64_t)row * t->cols;
    WEIR_ASSERT(moved <= adamw->steps); /* NN-B3 */
    uint64_t one_by_one = table->moved[row] & STILL ? 0 : missing > adamw->made_up_max ? adamw->made_up_max : missing;
    if (missing == 0) return;
    for (uint64_t i = 1; i <= one_by_one; i++) {
        const weir_adamw_step step = adamw_step_of(adamw, moved + i, adamw->rate);
        adamw_row_step(adamw, &step, at, t->cols, adamw->zeros, params);
    }
    uint64_t rest = missing - one_by_one;
    if (rest > 0 && adamw->rate > 0) { /* with a first moment of 0, a step only shrinks */
        weir_real once = (weir_real)(1 - adamw->rate * adamw->opts.decay); /* as a step rounds it */
        double shrink = pow((double)once, (double)rest);
        weir_adamw_step step = adamw_step_of(adamw, adamw->steps, adamw->rate);
        step.decay = (1 - shrink) / adamw->rate;
        step.beta1 = 0;
        step.beta2 = pow(adamw->opts.beta2, (double)rest);
        adamw_row_step(adamw, &step, at, t->cols, adamw->zeros, params);
    }
    bool still =
        rest > 0 || (table->moved[row] & STILL) ||
        weir_nn_kernels(adamw->nn)->square_sum(weir_nn_kernels(adamw->nn), t->cols, adamw->moments[0] + at) == 0;
    table->moved[row] = adamw->steps | (still ? STILL : 0);
}

void weir_adamw_bring(weir_adamw *adamw, const weir_nn_rows *rows, weir_real *params) {
    for (uint32_t i = 0; !adamw->opts.adagrad && i < adamw->table_count; i++) {
        const adamw_table *table = &adamw->tables[i];
        const weir_nn_tensor *tensor = table->tensor;
        uint32_t count = tensor->rows;
        const uint32_t *ids = rows ? weir_nn_rows_look(rows, i, &tensor, &count) : NULL;
        WEIR_ASSERT(tensor == table->tensor);
        for (uint32_t n = 0; n < count; n++)
            adamw_bring_row(adamw, table, ids ? ids[n] : n, params);
    }
}

/* --- a step ------------------------------------------------------------------------------------------------------ */

/* One call for each run of tensors that move alike. of_rows: NULL: none that is looked up. */
static void adamw_step_tensors(weir_adamw *adamw, weir_adamw_step *step, const weir_adamw_step *of_rows,
                               const weir_real *gradients, weir_real *params) {
    uint32_t count;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &count);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i + 1 < count && t[i + 1].decays == t[first].decays && t[i + 1].looked_up == t[first].looked_up) continue;
        uint64_t begin = t[first].offset, end = t[i].offset + (uint64_t)t[i].rows * t[i].cols;
        WEIR_ASSERT(begin < end && end <= weir_nn_parameter_count(adamw->nn));
        step->decay = t[first].decays ? adamw->opts.decay : 0;
        step->l2 = t[first].decays ? adamw->opts.l2 : 0;
        if (!t[first].looked_up)
            weir_nn_kernels(adamw->nn)->adamw(weir_nn_kernels(adamw->nn), end - begin, step, gradients + begin,
                                              adamw->moments[0] + begin, adamw->moments[1] + begin, params + begin);
        else if (of_rows)
            adamw_row_step(adamw, of_rows, begin, end - begin, gradients + begin, params);
        first = i + 1;
    }
}

static void adamw_step_rows(weir_adamw *adamw, const weir_adamw_step *step, const weir_real *gradients,
                            const weir_nn_rows *rows, weir_real *params) {
    for (uint32_t i = 0; i < adamw->table_count; i++) {
        const weir_nn_tensor *t;
        uint32_t count;
        const uint32_t *ids = weir_nn_rows_look(rows, i, &t, &count);
        for (uint32_t n = 0; n < count; n++) {
            uint64_t at = t->offset + (uint64_t)ids[n] * t->cols;
            adamw_row_step(adamw, step, at, t->cols, gradients + at, params);
            bool still = weir_nn_kernels(adamw->nn)->square_sum(weir_nn_kernels(adamw->nn), t->cols,
                                                                adamw->moments[0] + at) == 0;
            adamw->tables[i].moved[ids[n]] = adamw->steps | (still ? STILL : 0);
        }
    }
}

/* Of what has gradients. */
static double adamw_square_sum(const weir_adamw *adamw, const weir_real *gradients, const weir_nn_rows *rows) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    uint32_t tensors, count;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &tensors);
    double sum = 0, held = 0; /* of rows that a share has, and no other */
    if (!rows) return k->square_sum(k, weir_nn_parameter_count(adamw->nn), gradients);
    for (uint32_t i = 0; i < tensors; i++)
        if (!t[i].looked_up) sum += k->square_sum(k, (size_t)t[i].rows * t[i].cols, gradients + t[i].offset);
    for (uint32_t i = 0; i < adamw->table_count; i++) {
        const uint32_t *ids = weir_nn_rows_look(rows, i, &t, &count);
        for (uint32_t n = 0; n < count; n++)
            *(t->held ? &held : &sum) += k->square_sum(k, t->cols, gradients + t->offset + (size_t)ids[n] * t->cols);
    }
    return sum + (adamw->opts.sum ? adamw->opts.sum(adamw->opts.context, held) : held);
}

weir_err weir_adamw_step_take(weir_adamw *adamw, double rate, const weir_real *gradients, const weir_nn_rows *rows,
                              weir_real *params, double *normp) {
    const weir_adamw_opts *o = &adamw->opts;
    double norm = sqrt(adamw_square_sum(adamw, gradients, rows));
    if (normp) *normp = norm;
    if (!isfinite(norm))
        return WEIR_ERR(WEIR_EDATA, "the gradients are no longer finite numbers; lower the learning rate, or look for "
                                    "inputs that are not numbers");
    /* What waits, waits for steps of the rate that they had. */
    double row_rate = adamw->share * (o->row_rate > 0 ? o->row_rate : rate);
    weir_adamw_bring(adamw, adamw->rate == row_rate ? rows : NULL, params);
    adamw->rate = row_rate;
    adamw->steps++;
    weir_adamw_step step = adamw_step_of(adamw, adamw->steps, adamw->share * rate);
    if (o->norm_max > 0 && norm > o->norm_max) step.scale = o->norm_max / norm;
    weir_adamw_step of_rows = step;
    of_rows.rate = row_rate;
    if (rows) {
        adamw_step_rows(adamw, &of_rows, gradients, rows, params);
    } else {
        for (uint32_t i = 0; i < adamw->table_count; i++)
            for (uint32_t row = 0; row < adamw->tables[i].tensor->rows; row++)
                adamw->tables[i].moved[row] = adamw->steps;
    }
    adamw_step_tensors(adamw, &step, rows ? NULL : &of_rows, gradients, params);
    return weir_nn_kernels(adamw->nn)->finish(weir_nn_kernels(adamw->nn));
}

void weir_adamw_share_set(weir_adamw *adamw, double share) {
    adamw->share = share;
}

weir_real *weir_adamw_moments(weir_adamw *adamw, unsigned which) {
    WEIR_ASSERT(which < 2);
    return adamw->moments[which];
}

uint64_t weir_adamw_steps(const weir_adamw *adamw) {
    return adamw->steps;
}

void weir_adamw_steps_set(weir_adamw *adamw, uint64_t steps) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    adamw->steps = steps;
    for (uint32_t i = 0; i < adamw->table_count; i++) {
        const weir_nn_tensor *t = adamw->tables[i].tensor;
        for (uint32_t row = 0; row < t->rows; row++) {
            bool still = k->square_sum(k, t->cols, adamw->moments[0] + t->offset + (size_t)row * t->cols) == 0;
            adamw->tables[i].moved[row] = steps | (still ? STILL : 0);
        }
    }
}
