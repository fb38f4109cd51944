/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops_optimiser.h - part of loops.h: steps of AdamW and Adagrad, of flat arrays and of rows of tables.
 *
 * Rows that had no gradient for some steps are brought up to them one by one, which gives the bits that steps over all
 * rows would have given; where they are so many that nothing is left of the first moment, the rest is decay, and is
 * made up for at once.
 */

/* A loop needs nothing of its context. NOLINTBEGIN(misc-unused-parameters) */

/* false: a step changes nothing. */
static bool kernel_shorten(const weir_shortening *s, weir_real *scalep) {
    const double norm = s->squares ? sqrt(*s->squares) : 0;
    *scalep = (weir_real)(s->norm_max > 0 && norm > s->norm_max ? s->norm_max / norm : 1);
    return isfinite(norm);
}

static void kernel_adamw_cells(size_t count, const weir_adamw_step *step, weir_real scale,
                               const weir_real *restrict gradients, weir_real *restrict moment1,
                               weir_real *restrict moment2, weir_real *restrict parameters) {
    weir_real beta1 = (weir_real)step->beta1, beta2 = (weir_real)step->beta2, l2 = (weir_real)step->l2;
    weir_real shrink = (weir_real)(1 - step->rate * step->decay), rate = (weir_real)(step->rate / step->correction1);
    weir_real inverse2 = (weir_real)(1 / step->correction2), epsilon = (weir_real)step->epsilon;
    for (size_t i = 0; i < count; i++) {
        weir_real g = gradients[i] * scale + l2 * parameters[i];
        moment1[i] = beta1 * moment1[i] + (1 - beta1) * g;
        moment2[i] = beta2 * moment2[i] + (1 - beta2) * g * g;
        parameters[i] =
            parameters[i] * shrink - rate * moment1[i] / (kernel_real_sqrt(moment2[i] * inverse2) + epsilon);
    }
}

static void kernel_adamw(const weir_kernels *context, size_t count, const weir_adamw_step *step,
                         const weir_real *gradients, weir_real *moment1, weir_real *moment2, weir_real *parameters) {
    weir_real scale;
    if (kernel_shorten(&step->shortening, &scale))
        kernel_adamw_cells(count, step, scale, gradients, moment1, moment2, parameters);
}

static void kernel_adagrad_cells(size_t count, const weir_adagrad_step *step, weir_real scale,
                                 const weir_real *restrict gradients, weir_real *restrict squares,
                                 weir_real *restrict parameters) {
    weir_real rate = (weir_real)step->rate, epsilon = (weir_real)step->epsilon;
    for (size_t i = 0; i < count; i++) {
        weir_real g = gradients[i] * scale;
        squares[i] += g * g;
        parameters[i] -= rate * g / (kernel_real_sqrt(squares[i]) + epsilon);
    }
}

static void kernel_adagrad(const weir_kernels *context, size_t count, const weir_adagrad_step *step,
                           const weir_real *gradients, weir_real *squares, weir_real *parameters) {
    weir_real scale;
    if (kernel_shorten(&step->shortening, &scale))
        kernel_adagrad_cells(count, step, scale, gradients, squares, parameters);
}

static size_t kernel_listed(const weir_row_list *rows, uint32_t i) {
    return rows->ids ? rows->ids[i] : i;
}

static void kernel_zero_rows(const weir_kernels *context, const weir_row_list *rows, weir_real *x) {
    for (uint32_t i = 0; i < rows->count; i++)
        memset(x + kernel_listed(rows, i) * rows->cols, 0, rows->cols * sizeof *x);
}

static void kernel_square_sum_rows(const weir_kernels *context, const weir_row_list *rows, const weir_real *x,
                                   double *sum) {
    for (uint32_t i = 0; i < rows->count; i++)
        *sum += kernel_cells_square_sum(rows->cols, x + kernel_listed(rows, i) * rows->cols);
}

static uint64_t kernel_moved(uint32_t cols, uint64_t steps, const weir_real *moment1) {
    return steps | (kernel_cells_square_sum(cols, moment1) == 0 ? WEIR_ROW_STILL : 0);
}

static void kernel_adamw_moved(const weir_kernels *context, const weir_row_list *rows, uint64_t steps,
                               const weir_real *moment1, uint64_t *moved) {
    for (uint32_t i = 0; i < rows->count; i++) {
        const size_t row = kernel_listed(rows, i);
        moved[row] = kernel_moved(rows->cols, steps, moment1 + row * rows->cols);
    }
}

static void kernel_adamw_rows(const weir_kernels *context, const weir_row_list *rows, const weir_adamw_step *step,
                              uint64_t steps, const weir_real *gradients, uint64_t *moved, weir_real *moment1,
                              weir_real *moment2, weir_real *parameters) {
    weir_real scale;
    if (!kernel_shorten(&step->shortening, &scale)) return;
    for (uint32_t i = 0; i < rows->count; i++) {
        const size_t row = kernel_listed(rows, i), at = row * rows->cols;
        kernel_adamw_cells(rows->cols, step, scale, gradients + at, moment1 + at, moment2 + at, parameters + at);
        moved[row] = kernel_moved(rows->cols, steps, moment1 + at);
    }
}

static void kernel_adagrad_rows(const weir_kernels *context, const weir_row_list *rows, const weir_adagrad_step *step,
                                const weir_real *gradients, weir_real *squares, weir_real *parameters) {
    weir_real scale;
    if (!kernel_shorten(&step->shortening, &scale)) return;
    for (uint32_t i = 0; i < rows->count; i++) {
        const size_t at = kernel_listed(rows, i) * rows->cols;
        kernel_adagrad_cells(rows->cols, step, scale, gradients + at, squares + at, parameters + at);
    }
}

/* A step of a row without a gradient. */
static void kernel_adamw_idle(uint32_t cols, const weir_adamw_step *step, weir_real *moment1, weir_real *moment2,
                              weir_real *parameters) {
    static const weir_real none[256];
    for (uint32_t begin = 0, count; begin < cols; begin += count) {
        count = cols - begin < 256 ? cols - begin : 256;
        kernel_adamw_cells(count, step, 1, none, moment1 + begin, moment2 + begin, parameters + begin);
    }
}

static weir_adamw_step kernel_adamw_step_of(const weir_adamw_wait *w, uint64_t step) {
    return (weir_adamw_step){.rate = w->rate,
                             .beta1 = w->beta1,
                             .beta2 = w->beta2,
                             .epsilon = w->epsilon,
                             .decay = w->decay,
                             .correction1 = 1 - pow(w->beta1, (double)step),
                             .correction2 = 1 - pow(w->beta2, (double)step)};
}

static void kernel_adamw_bring(const weir_kernels *context, const weir_row_list *rows, const weir_adamw_wait *w,
                               uint64_t *moved, weir_real *moment1, weir_real *moment2, weir_real *parameters) {
    for (uint32_t i = 0; i < rows->count; i++) {
        const size_t row = kernel_listed(rows, i), at = row * rows->cols;
        const uint64_t since = moved[row] & ~WEIR_ROW_STILL, missing = w->steps - since;
        const bool still = moved[row] & WEIR_ROW_STILL;
        WEIR_ASSERT(since <= w->steps);
        if (missing == 0) continue;
        const uint64_t one_by_one = still ? 0 : missing > w->one_by_one_max ? w->one_by_one_max : missing;
        for (uint64_t s = 1; s <= one_by_one; s++) {
            const weir_adamw_step step = kernel_adamw_step_of(w, since + s);
            kernel_adamw_idle(rows->cols, &step, moment1 + at, moment2 + at, parameters + at);
        }
        const uint64_t rest = missing - one_by_one;
        if (rest > 0 && w->rate > 0) { /* with a first moment of 0, a step only shrinks */
            const weir_real once = (weir_real)(1 - w->rate * w->decay); /* as a step rounds it */
            weir_adamw_step step = kernel_adamw_step_of(w, w->steps);
            step.decay = (1 - pow((double)once, (double)rest)) / w->rate;
            step.beta1 = 0;
            step.beta2 = pow(w->beta2, (double)rest);
            kernel_adamw_idle(rows->cols, &step, moment1 + at, moment2 + at, parameters + at);
        }
        moved[row] = rest > 0 || still ? w->steps | WEIR_ROW_STILL : kernel_moved(rows->cols, w->steps, moment1 + at);
    }
}

/* NOLINTEND(misc-unused-parameters) */
