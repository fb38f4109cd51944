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

#define MOMENT_LEFT     1e-9 /* of a first moment: less does not move a float */
#define ADAGRAD_EPSILON 1e-10

/* Of one tensor that is looked up. */
typedef struct adamw_table {
    const weir_nn_tensor *tensor;
    uint64_t *moved; /* of each row the step that it is as of, in the kernels' memory */
} adamw_table;

struct weir_adamw {
    const weir_nn *nn;
    weir_adamw_opts opts;
    uint64_t steps;
    double share; /* of the rates, in the steps to come      */
    double rate;  /* of rows of embeddings, in the last step */
    uint64_t made_up_max;
    weir_real *moments[2];
    double *squares; /* of gradients, in the kernels' memory: of all but what a share has and no other, and of that */
    adamw_table *tables;
    uint32_t table_count;
    bool holds; /* a share has rows that no other has */
};

/* All rows of a table. */
static weir_row_list adamw_rows_of(const weir_nn_tensor *t) {
    return (weir_row_list){.count = t->rows, .cols = t->cols};
}

static weir_err adamw_open_tables(weir_adamw *adamw) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    uint32_t tensors;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &tensors);
    adamw->tables = weir_calloc(tensors + 1, sizeof *adamw->tables);
    if (!adamw->tables) return WEIR_NOMEM("for AdamW");
    for (uint32_t i = 0; i < tensors; i++) {
        if (!t[i].looked_up) continue;
        adamw_table *table = &adamw->tables[adamw->table_count++];
        table->tensor = &t[i];
        adamw->holds = adamw->holds || t[i].held;
        weir_err err = k->alloc(k, ((size_t)t[i].rows + 1) * sizeof *table->moved, (void **)&table->moved);
        if (err) return err;
    }
    weir_adamw_steps_set(adamw, 0);
    return WEIR_OK;
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
    if (!err) err = k->alloc(k, 2 * sizeof *adamw->squares, (void **)&adamw->squares);
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
    k->release(k, adamw->moments[0]);
    k->release(k, adamw->moments[1]);
    k->release(k, adamw->squares);
    for (uint32_t i = 0; adamw->tables && i < adamw->table_count; i++)
        k->release(k, adamw->tables[i].moved);
    weir_free(adamw->tables);
    weir_free(adamw);
}

/* --- rows that wait ---------------------------------------------------------------------------------------------- */

weir_err weir_adamw_bring(weir_adamw *adamw, weir_nn_rows *rows, weir_real *params) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    const weir_adamw_opts *o = &adamw->opts;
    const weir_adamw_wait wait = {.steps = adamw->steps,
                                  .one_by_one_max = adamw->made_up_max,
                                  .rate = adamw->rate,
                                  .beta1 = o->beta1,
                                  .beta2 = o->beta2,
                                  .epsilon = o->epsilon,
                                  .decay = o->decay};
    for (uint32_t i = 0; !o->adagrad && i < adamw->table_count; i++) { /* NN-B3 */
        const adamw_table *table = &adamw->tables[i];
        const weir_nn_tensor *t = table->tensor;
        weir_row_list list = adamw_rows_of(t);
        weir_err err = rows ? weir_nn_rows_list(rows, i, &t, &list) : WEIR_OK;
        if (err) return err;
        WEIR_ASSERT(t == table->tensor);
        if (list.count)
            k->adamw_bring(k, &list, &wait, table->moved, adamw->moments[0] + t->offset, adamw->moments[1] + t->offset,
                           params + t->offset);
    }
    return WEIR_OK;
}

/* --- a step ------------------------------------------------------------------------------------------------------ */

/* One call for each run of tensors that move alike; none of those that are looked up. */
static void adamw_step_tensors(weir_adamw *adamw, weir_adamw_step *step, const weir_real *gradients,
                               weir_real *params) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    uint32_t count;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &count);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i + 1 < count && t[i + 1].decays == t[first].decays && t[i + 1].looked_up == t[first].looked_up) continue;
        uint64_t begin = t[first].offset, end = t[i].offset + (uint64_t)t[i].rows * t[i].cols;
        WEIR_ASSERT(begin < end && end <= weir_nn_parameter_count(adamw->nn));
        step->decay = t[first].decays ? adamw->opts.decay : 0;
        step->l2 = t[first].decays ? adamw->opts.l2 : 0;
        if (!t[first].looked_up)
            k->adamw(k, end - begin, step, gradients + begin, adamw->moments[0] + begin, adamw->moments[1] + begin,
                     params + begin);
        first = i + 1;
    }
}

/* rows: NULL: all. */
static weir_err adamw_step_rows(weir_adamw *adamw, const weir_adamw_step *step, const weir_real *gradients,
                                weir_nn_rows *rows, weir_real *params) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    const weir_adagrad_step adagrad = {step->rate, ADAGRAD_EPSILON, step->shortening};
    for (uint32_t i = 0; i < adamw->table_count; i++) {
        const weir_nn_tensor *t = adamw->tables[i].tensor;
        weir_row_list list = adamw_rows_of(t);
        weir_err err = rows ? weir_nn_rows_list(rows, i, &t, &list) : WEIR_OK;
        if (err) return err;
        weir_real *squares = adamw->moments[1] + t->offset;
        if (list.count && adamw->opts.adagrad)
            k->adagrad_rows(k, &list, &adagrad, gradients + t->offset, squares, params + t->offset);
        else if (list.count)
            k->adamw_rows(k, &list, step, adamw->steps, gradients + t->offset, adamw->tables[i].moved,
                          adamw->moments[0] + t->offset, squares, params + t->offset);
    }
    return WEIR_OK;
}

/* Of what has gradients, into squares[0]. */
static weir_err adamw_square_sum(weir_adamw *adamw, const weir_real *gradients, weir_nn_rows *rows) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    uint32_t tensors;
    const weir_nn_tensor *t = weir_nn_tensors(adamw->nn, &tensors);
    k->zero(k, adamw->squares, 2 * sizeof *adamw->squares);
    if (!rows) {
        k->square_sum(k, weir_nn_parameter_count(adamw->nn), gradients, adamw->squares);
        return WEIR_OK;
    }
    for (uint32_t i = 0; i < tensors; i++)
        if (!t[i].looked_up) k->square_sum(k, (size_t)t[i].rows * t[i].cols, gradients + t[i].offset, adamw->squares);
    for (uint32_t i = 0; i < adamw->table_count; i++) {
        weir_row_list list;
        weir_err err = weir_nn_rows_list(rows, i, &t, &list);
        if (err) return err;
        if (list.count) k->square_sum_rows(k, &list, gradients + t->offset, &adamw->squares[t->held]);
    }
    if (adamw->holds || adamw->opts.sum) {
        double squares[2] = {(double)NAN, (double)NAN}; /* what a copy that fails leaves */
        k->to_host(k, squares, adamw->squares, sizeof squares);
        squares[0] += adamw->opts.sum ? adamw->opts.sum(adamw->opts.context, squares[1]) : squares[1];
        k->to_device(k, adamw->squares, squares, sizeof *squares);
    }
    return WEIR_OK;
}

weir_err weir_adamw_step_take(weir_adamw *adamw, double rate, const weir_real *gradients, weir_nn_rows *rows,
                              weir_real *params, double *normp) {
    const weir_kernels *k = weir_nn_kernels(adamw->nn);
    const weir_adamw_opts *o = &adamw->opts;
    double squares = (double)NAN; /* what a copy that fails leaves */
    weir_err err = adamw_square_sum(adamw, gradients, rows);
    /* What waits, waits for steps of the rate that they had. */
    double row_rate = adamw->share * (o->row_rate > 0 ? o->row_rate : rate);
    if (!err) err = weir_adamw_bring(adamw, adamw->rate == row_rate ? rows : NULL, params);
    if (err) return err;
    adamw->rate = row_rate;
    adamw->steps++;
    weir_adamw_step step = {.rate = adamw->share * rate,
                            .beta1 = o->beta1,
                            .beta2 = o->beta2,
                            .epsilon = o->epsilon,
                            .decay = o->decay,
                            .correction1 = 1 - pow(o->beta1, (double)adamw->steps),
                            .correction2 = 1 - pow(o->beta2, (double)adamw->steps),
                            .shortening = {adamw->squares, o->norm_max}};
    weir_adamw_step of_rows = step;
    of_rows.rate = row_rate;
    err = adamw_step_rows(adamw, &of_rows, gradients, rows, params);
    if (!err) {
        adamw_step_tensors(adamw, &step, gradients, params);
        k->to_host(k, &squares, adamw->squares, sizeof squares);
        err = k->finish(k);
    }
    if (normp) *normp = sqrt(squares);
    if (!err && isfinite(sqrt(squares))) return WEIR_OK;
    adamw->steps--; /* nothing has moved */
    if (err) return err;
    return WEIR_ERR(WEIR_EDATA, "the gradients are no longer finite numbers; lower the learning rate, or look for "
                                "inputs that are not numbers");
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
        const weir_row_list all = adamw_rows_of(t);
        k->adamw_moved(k, &all, steps, adamw->moments[0] + t->offset, adamw->tables[i].moved);
    }
}
