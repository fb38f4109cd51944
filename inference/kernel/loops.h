/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.h - the kernels that are loops. Compiled twice, for any processor and for AVX2 with FMA: the including file
 * names the table with WEIR_LOOP. Each has a naive twin in tests/unit/inference/kernel/kernel_test.c.
 *
 * Every sum runs over its rows in their order, on one thread; within a row the compiler may use lanes, always the same
 * (KERNEL-K1).
 */
#include <math.h>
#include <string.h>

#include <weir/inference/kernel/uncached.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#include "loops_table.h"

/* A loop needs nothing of its context. NOLINTBEGIN(misc-unused-parameters) */

#define LAYER_NORM_EPSILON ((weir_real)1e-5)

static const weir_real *kernel_row_of(const weir_real *x, size_t row, uint32_t ld) {
    return x + row * ld;
}

/* Rows are added in their order: KERNEL-K1. */
static void kernel_row_add(uint32_t cols, const weir_real *restrict x, weir_real *restrict out) {
    for (uint32_t c = 0; c < cols; c++)
        out[c] += x[c];
}

static weir_real kernel_real_sqrt(weir_real x) {
#ifdef WEIR_REAL_DOUBLE
    return sqrt(x);
#else
    return sqrtf(x);
#endif
}

static void kernel_row_scale(uint32_t cols, weir_real factor, weir_real *out) {
    for (uint32_t c = 0; c < cols; c++)
        out[c] *= factor;
}

static void kernel_row_scaled(uint32_t cols, weir_real factor, const weir_real *restrict x, weir_real *restrict out) {
    for (uint32_t c = 0; c < cols; c++)
        out[c] = factor * x[c];
}

static void kernel_row_add_scaled(uint32_t cols, weir_real factor, const weir_real *restrict x,
                                  weir_real *restrict out) {
    for (uint32_t c = 0; c < cols; c++)
        out[c] += factor * x[c];
}

static weir_real kernel_row_product(uint32_t cols, const weir_real *x, const weir_real *y) {
    weir_real sum = 0;
    for (uint32_t c = 0; c < cols; c++)
        sum += x[c] * y[c];
    return sum;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

#define PREFETCH_AHEAD 12u /* entries: their rows lie anywhere, and each is some cache lines long */
#define LINE_REALS     (64u / sizeof(weir_real))

static void kernel_gather_rows(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *x,
                               const uint32_t *index, weir_real *out, uint32_t ldout) {
    for (size_t i = 0; i < rows; i++) {
        const uint32_t later = index && i + PREFETCH_AHEAD < rows ? index[i + PREFETCH_AHEAD] : WEIR_NO_SLOT;
        for (uint32_t c = 0; later != WEIR_NO_SLOT && c < cols; c += LINE_REALS)
            __builtin_prefetch(kernel_row_of(x, later, cols) + c);
        if (index && index[i] == WEIR_NO_SLOT) continue;
        memcpy(out + i * ldout, x + (index ? index[i] : i) * cols, cols * sizeof *x);
    }
}

static void kernel_scatter_add_rows(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *dout,
                                    const uint32_t *index, weir_real *dx) {
    for (size_t i = 0; i < rows; i++)
        kernel_row_add(cols, dout + i * cols, dx + (size_t)index[i] * cols);
}

static void kernel_embed(const weir_kernels *context, uint32_t rows, uint32_t cols, const uint32_t *slots,
                         uint32_t stride, const weir_real *table, weir_real *out) {
    for (size_t i = 0; i < rows; i++)
        if (slots[i * stride] != WEIR_NO_SLOT)
            kernel_row_add(cols, kernel_row_of(table, slots[i * stride], cols), out + i * cols);
}

static void kernel_embed_back(const weir_kernels *context, uint32_t rows, uint32_t cols, const uint32_t *slots,
                              uint32_t stride, const weir_real *dout, weir_real *dtable) {
    for (size_t i = 0; i < rows; i++)
        if (slots[i * stride] != WEIR_NO_SLOT)
            kernel_row_add(cols, dout + i * cols, dtable + (size_t)slots[i * stride] * cols);
}

static void kernel_row_products(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *x,
                                const weir_real *y, weir_real *out) {
    for (size_t i = 0; i < rows; i++)
        out[i] = kernel_row_product(cols, kernel_row_of(x, i, cols), y);
}

/* --- segments ---------------------------------------------------------------------------------------------------- */

static uint32_t kernel_entry_row(const weir_segments *s, uint32_t entry) {
    return s->index ? s->index[entry] : entry;
}

/* How many entries it counts as. */
static double kernel_segment_size(const weir_segments *s, size_t segment) {
    const double entries = (double)(s->offsets[segment + 1] - s->offsets[segment]);
    return s->each > 0 ? s->each * entries : entries;
}

/* Of the entry that comes so many after this one; the processor does not guess where a row begins. */
static void kernel_prefetch_entry(const weir_segments *s, uint32_t entry, uint32_t cols, const weir_real *x,
                                  uint32_t ldx) {
    if (entry + PREFETCH_AHEAD >= s->offsets[s->count]) return;
    const weir_real *row = kernel_row_of(x, kernel_entry_row(s, entry + PREFETCH_AHEAD), ldx);
    for (uint32_t c = 0; c < cols; c += LINE_REALS)
        __builtin_prefetch(row + c);
}

static void kernel_segment_mean(const weir_kernels *context, const weir_segments *s, uint32_t cols, const weir_real *x,
                                uint32_t ldx, weir_real *out, uint32_t ldout) {
    for (size_t i = 0; i < s->count; i++, out += ldout) {
        uint32_t begin = s->offsets[i], end = s->offsets[i + 1];
        if (begin == end) memset(out, 0, cols * sizeof *out);
        for (uint32_t e = begin; e < end; e++) {
            const weir_real *row = kernel_row_of(x, kernel_entry_row(s, e), ldx);
            kernel_prefetch_entry(s, e, cols, x, ldx);
            if (e == begin)
                memcpy(out, row, cols * sizeof *out);
            else
                kernel_row_add(cols, row, out);
        }
        if (end > begin + 1) kernel_row_scale(cols, 1 / (weir_real)(end - begin), out);
    }
}

static void kernel_segment_zero_empty(const weir_kernels *context, const weir_segments *s, uint32_t cols, weir_real *x,
                                      uint32_t ldx) {
    for (size_t i = 0; i < s->count; i++, x += ldx)
        if (s->offsets[i] == s->offsets[i + 1]) memset(x, 0, cols * sizeof *x);
}

static void kernel_segment_mean_back(const weir_kernels *context, const weir_segments *s, uint32_t cols,
                                     const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t lddx) {
    for (size_t i = 0; i < s->count; i++, dout += lddout) {
        uint32_t begin = s->offsets[i], end = s->offsets[i + 1];
        for (uint32_t e = begin; e < end; e++) {
            kernel_prefetch_entry(s, e, cols, dx, lddx);
            kernel_row_add_scaled(cols, 1 / (weir_real)(end - begin), dout, dx + (size_t)kernel_entry_row(s, e) * lddx);
        }
    }
}

/* A sampler numbers vertices as it meets them: so most rows are met in their order, and are zeros for no time. */
static void kernel_segment_mean_back_first(const weir_kernels *context, const weir_segments *s, uint32_t cols,
                                           const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t begin,
                                           uint32_t end) {
    const size_t bytes = cols * sizeof *dx;
    const bool uncached = weir_uncached_rows(dx, cols, (end - begin) * bytes);
    uint32_t next = begin; /* the rows from here on hold nothing yet */
    for (size_t i = 0; i < s->count; i++, dout += lddout) {
        const weir_real share = 1 / (weir_real)(s->offsets[i + 1] - s->offsets[i]);
        for (uint32_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            const uint32_t row = kernel_entry_row(s, e);
            weir_real *d = dx + (size_t)row * cols;
            WEIR_ASSERT(begin <= row && row < end);
            if (row < next) {
                kernel_row_add_scaled(cols, share, dout, d);
                continue;
            }
            memset(dx + (size_t)next * cols, 0, (row - next) * bytes);
            for (uint32_t c = 0; uncached && c < cols; c += WEIR_UNCACHED_LANES) {
                weir_real some[WEIR_UNCACHED_LANES];
                kernel_row_scaled(WEIR_UNCACHED_LANES, share, dout + c, some);
                weir_uncached_store(d + c, some);
            }
            if (!uncached) kernel_row_scaled(cols, share, dout, d);
            next = row + 1;
        }
    }
    if (next < end) memset(dx + (size_t)next * cols, 0, (end - next) * bytes);
    if (uncached) weir_uncached_end();
}

static void kernel_segment_sum(const weir_kernels *context, const weir_segments *s, const weir_real *weights,
                               uint32_t cols, const weir_real *x, uint32_t ldx, weir_real *out, uint32_t ldout) {
    const weir_real each = s->each > 0 ? (weir_real)s->each : 1;
    for (size_t i = 0; i < s->count; i++, out += ldout) {
        memset(out, 0, cols * sizeof *out);
        for (uint32_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            kernel_prefetch_entry(s, e, cols, x, ldx);
            kernel_row_add_scaled(cols, weights ? weights[e] : each, kernel_row_of(x, kernel_entry_row(s, e), ldx),
                                  out);
        }
    }
}

static void kernel_segment_sum_back(const weir_kernels *context, const weir_segments *s, const weir_real *weights,
                                    uint32_t cols, const weir_real *dout, weir_real *dx) {
    const weir_real each = s->each > 0 ? (weir_real)s->each : 1;
    for (size_t i = 0; i < s->count; i++, dout += cols) {
        for (uint32_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            kernel_prefetch_entry(s, e, cols, dx, cols);
            kernel_row_add_scaled(cols, weights ? weights[e] : each, dout, dx + (size_t)kernel_entry_row(s, e) * cols);
        }
    }
}

static void kernel_segment_degrees(const weir_kernels *context, const weir_segments *s, const uint32_t *of,
                                   uint32_t first, weir_real *weights, weir_real *own) {
    for (size_t i = 0; i < s->count; i++) {
        const double degree = 1.0 + (s->offsets[i + 1] - s->offsets[i]);
        own[i] = (weir_real)(1 / degree);
        for (uint32_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            const uint32_t row = kernel_entry_row(s, e) - first;
            weights[e] = (weir_real)(1 / sqrt(degree * (of ? 1.0 + (of[row + 1] - of[row]) : degree)));
        }
    }
}

static void kernel_segment_join(const weir_kernels *context, const weir_segments *s, uint32_t first, uint32_t *offsets,
                                uint32_t *index, uint32_t *origin) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        offsets[i] = at;
        for (uint32_t e = s->offsets[i]; e < s->offsets[i + 1]; e++, at++) {
            index[at] = kernel_entry_row(s, e);
            origin[at] = e;
        }
        index[at] = first + i;
        origin[at++] = WEIR_NO_SLOT;
    }
    offsets[s->count] = at;
}

/* A NaN is taken, and then nothing is above it. */
static void kernel_row_max(uint32_t cols, uint32_t row, const weir_real *restrict x, weir_real *restrict out,
                           uint32_t *restrict chosen) {
    for (uint32_t c = 0; c < cols; c++) {
        const bool taken = x[c] > out[c] || x[c] != x[c];
        out[c] = taken ? x[c] : out[c];
        chosen[c] = taken ? row : chosen[c];
    }
}

static void kernel_segment_max(const weir_kernels *context, const weir_segments *s, uint32_t cols, const weir_real *x,
                               uint32_t ldx, weir_real *out, uint32_t ldout, uint32_t *chosen) {
    for (size_t i = 0; i < s->count; i++, out += ldout, chosen += cols) {
        const uint32_t begin = s->offsets[i], end = s->offsets[i + 1];
        const uint32_t first = end > begin ? kernel_entry_row(s, begin) : WEIR_NO_SLOT;
        for (uint32_t c = 0; c < cols; c++) {
            out[c] = end > begin ? kernel_row_of(x, first, ldx)[c] : 0;
            chosen[c] = first;
        }
        for (uint32_t e = begin + 1; e < end; e++) {
            kernel_prefetch_entry(s, e, cols, x, ldx);
            kernel_row_max(cols, kernel_entry_row(s, e), kernel_row_of(x, kernel_entry_row(s, e), ldx), out, chosen);
        }
    }
}

static void kernel_segment_max_back(const weir_kernels *context, uint32_t rows, uint32_t cols, const uint32_t *chosen,
                                    const weir_real *dout, uint32_t lddout, weir_real *dx, uint32_t lddx) {
    for (size_t i = 0; i < rows; i++, dout += lddout, chosen += cols)
        for (uint32_t c = 0; c < cols; c++)
            if (chosen[c] != WEIR_NO_SLOT) dx[(size_t)chosen[c] * lddx + c] += dout[c];
}

static void kernel_take_most(const weir_kernels *context, size_t count, uint32_t number, const weir_real *restrict x,
                             weir_real *restrict out, uint32_t *restrict chosen) {
    for (size_t i = 0; i < count; i++) {
        const bool taken = number == 0 || x[i] > out[i] || x[i] != x[i];
        out[i] = taken ? x[i] : out[i];
        chosen[i] = taken ? number : chosen[i];
    }
}

static void kernel_take_most_back(const weir_kernels *context, size_t count, uint32_t number, const uint32_t *chosen,
                                  const weir_real *restrict dout, weir_real *restrict dx) {
    for (size_t i = 0; i < count; i++)
        dx[i] += chosen[i] == number ? dout[i] : 0;
}

#define DEVIATION_EPSILON ((weir_real)1e-5)

static void kernel_row_add_squares(uint32_t cols, const weir_real *restrict x, const weir_real *restrict means,
                                   weir_real *restrict out) {
    for (uint32_t c = 0; c < cols; c++)
        out[c] += (x[c] - means[c]) * (x[c] - means[c]);
}

static void kernel_segment_deviation(const weir_kernels *context, const weir_segments *s, uint32_t cols,
                                     const weir_real *x, uint32_t ldx, const weir_real *means, weir_real *out,
                                     uint32_t ldout) {
    for (size_t i = 0; i < s->count; i++, out += ldout, means += ldout) {
        const uint32_t begin = s->offsets[i], end = s->offsets[i + 1];
        memset(out, 0, cols * sizeof *out);
        for (uint32_t e = begin; e < end; e++) {
            kernel_prefetch_entry(s, e, cols, x, ldx);
            kernel_row_add_squares(cols, kernel_row_of(x, kernel_entry_row(s, e), ldx), means, out);
        }
        for (uint32_t c = 0; end > begin && c < cols; c++)
            out[c] = kernel_real_sqrt(out[c] / (weir_real)(end - begin) + DEVIATION_EPSILON);
    }
}

/* The derivative by x is (x - mean) / (entries * deviation): what goes by the mean adds up to 0. */
static void kernel_segment_deviation_back(const weir_kernels *context, const weir_segments *s, uint32_t cols,
                                          const weir_real *x, uint32_t ldx, const weir_real *means,
                                          const weir_real *deviations, const weir_real *dout, uint32_t lddout,
                                          weir_real *dx, uint32_t lddx) {
    for (size_t i = 0; i < s->count; i++, means += lddout, deviations += lddout, dout += lddout) {
        const uint32_t begin = s->offsets[i], end = s->offsets[i + 1];
        for (uint32_t e = begin; e < end; e++) {
            const size_t row = kernel_entry_row(s, e);
            for (uint32_t c = 0; c < cols; c++)
                dx[row * lddx + c] +=
                    dout[c] * (x[row * ldx + c] - means[c]) / ((weir_real)(end - begin) * deviations[c]);
        }
    }
}

static void kernel_segment_amplify(const weir_kernels *context, const weir_segments *s, uint32_t cols, weir_real *x) {
    for (size_t i = 0; i < s->count; i++, x += 3 * (size_t)cols) {
        const weir_real scale = (weir_real)log1p(kernel_segment_size(s, i));
        for (uint32_t c = 0; c < cols; c++) {
            x[cols + c] = x[c] * scale;
            x[2 * cols + c] = scale > 0 ? x[c] / scale : 0;
        }
    }
}

static void kernel_segment_amplify_back(const weir_kernels *context, const weir_segments *s, uint32_t cols,
                                        weir_real *dx) {
    for (size_t i = 0; i < s->count; i++, dx += 3 * (size_t)cols) {
        const weir_real scale = (weir_real)log1p(kernel_segment_size(s, i));
        for (uint32_t c = 0; c < cols; c++)
            dx[c] += scale * dx[cols + c] + (scale > 0 ? dx[2 * cols + c] / scale : 0);
    }
}

static void kernel_add_more(const weir_kernels *context, size_t count, const weir_real *more,
                            const weir_real *restrict x, weir_real *restrict out) {
    const weir_real factor = 1 + *more;
    for (size_t i = 0; i < count; i++)
        out[i] += factor * x[i];
}

static void kernel_add_more_back(const weir_kernels *context, size_t count, const weir_real *more,
                                 const weir_real *restrict x, const weir_real *restrict dout, weir_real *dmore,
                                 weir_real *restrict dx) {
    const weir_real factor = 1 + *more;
    weir_real sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * dout[i];
    *dmore += sum;
    for (size_t i = 0; dx && i < count; i++)
        dx[i] += factor * dout[i];
}

static void kernel_add_scaled_rows(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *factors,
                                   const weir_real *x, weir_real *out) {
    for (size_t i = 0; i < rows; i++)
        kernel_row_add_scaled(cols, factors[i], x + i * cols, out + i * cols);
}

static void kernel_segment_log_count(const weir_kernels *context, const weir_segments *s, weir_real *out,
                                     uint32_t ldout) {
    for (size_t i = 0; i < s->count; i++)
        out[i * ldout] = (weir_real)log1p(kernel_segment_size(s, i));
}

/* --- time -------------------------------------------------------------------------------------------------------- */

#define FIRST_CENTRE 0.69314718055994531 /* log(1 + 1 s)        */
#define LAST_CENTRE  17.358207530835315  /* log(1 + 400 days)   */
#define SPACING      ((LAST_CENTRE - FIRST_CENTRE) / (WEIR_TIME_CODE_COUNT - 1))

#ifdef WEIR_REAL_DOUBLE
static double kernel_exp_below_0(double x) {
    return exp(x);
}
#else
/* Of x from -87 to 0, to 2 units of the last place: Cephes' polynomial, as a loop that takes eight at once. libm's is a
 * call; and a comparison that kept smaller x away would be a branch. */
static float kernel_exp_below_0(float x) {
    int32_t power = (int32_t)(x * 1.44269504f - 0.5f); /* rounds to the nearest, since x <= 0 */
    float r = x - (float)power * 0.693359375f + (float)power * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    union {
        int32_t bits;
        float value;
    } scale = {(power + 127) * (1 << 23)};
    return p * scale.value;
}
#endif

#define AGES_AT_ONCE    64u
#define AGE_SECONDS_MAX 4e9 /* 127 years: 9 places from the first bump, and exp(-81) is still a float */

#ifdef WEIR_REAL_DOUBLE
static double kernel_log_of_1_and(double seconds) {
    return log1p(seconds);
}
#else
/* Of 1 + seconds, to 1e-7 of an absolute error, which is what a place in the code needs: Cephes' logf without its
 * branches, again for eight at once. */
static float kernel_log_of_1_and(double seconds) {
    union {
        float value;
        int32_t bits;
    } x = {(float)(1 + seconds)};
    int32_t high = (x.bits & 0x7fffff) > 0x3504f3; /* a mantissa above the root of 2 is halved */
    float exponent = (float)((x.bits >> 23) - 127 + high);
    x.bits = (x.bits & 0x7fffff) | (127 - high) << 23;
    float m = x.value - 1, square = m * m, p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    return m - 0.5f * square + square * m * p + exponent * 0.69314718f;
}
#endif

static double kernel_age_seconds(const weir_ages *a, size_t i) {
    const size_t parent = a->parents ? a->parents[i] : i;
    double us = (double)a->before_us[a->groups[parent]] - (double)a->times[a->parents ? i : 0];
    double seconds = us > 0 ? us * 1e-6 : 0;
    return seconds < AGE_SECONDS_MAX ? seconds : AGE_SECONDS_MAX;
}

/* One bump of many places: along the places, since eight bumps of one place are too few for a loop. */
static void kernel_time_code_bump(weir_real centre, const weir_real *restrict places, weir_real *restrict bumps) {
    for (uint32_t i = 0; i < AGES_AT_ONCE; i++) {
        weir_real distance = places[i] - centre;
        bumps[i] = kernel_exp_below_0(-distance * distance);
    }
}

static void kernel_time_code(const weir_kernels *context, uint32_t rows, const weir_ages *ages, weir_real *out,
                             uint32_t ldout) {
    double seconds[AGES_AT_ONCE] = {0};
    weir_real places[AGES_AT_ONCE], bumps[AGES_AT_ONCE];
    for (size_t first = 0; first < rows; first += AGES_AT_ONCE, out += (size_t)AGES_AT_ONCE * ldout) {
        size_t count = rows - first < AGES_AT_ONCE ? rows - first : AGES_AT_ONCE;
        bool same = first > 0; /* each age is that of so many rows before, as in a graph without times */
        for (size_t i = 0; i < count; i++) {
            const double age = kernel_age_seconds(ages, first + i);
            same = same && !(age < seconds[i]) && !(age > seconds[i]);
            seconds[i] = age;
        }
        for (size_t i = 0; same && i < count; i++)
            memcpy(out + i * ldout, out + i * ldout - (size_t)AGES_AT_ONCE * ldout, WEIR_TIME_CODE_COUNT * sizeof *out);
        if (same) continue;
        for (size_t i = 0; i < AGES_AT_ONCE; i++)
            places[i] = (kernel_log_of_1_and(seconds[i]) - (weir_real)FIRST_CENTRE) / (weir_real)SPACING;
        for (uint32_t k = 0; k < WEIR_TIME_CODE_COUNT; k++) {
            kernel_time_code_bump((weir_real)k, places, bumps);
            for (size_t i = 0; i < count; i++)
                out[i * ldout + k] = bumps[i];
        }
    }
}

static void kernel_compose(const weir_kernels *context, size_t count, const uint32_t *outer, const uint32_t *inner,
                           uint32_t *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = outer[inner[i]];
}

static void kernel_rebase(const weir_kernels *context, size_t count, const uint32_t *index, uint32_t first,
                          uint32_t *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = index[i] - first;
}

/* --- bias, relu, norm -------------------------------------------------------------------------------------------- */

static void kernel_bias(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *b, weir_real *x) {
    for (size_t i = 0; i < rows; i++)
        kernel_row_add(cols, b, x + i * cols);
}

static void kernel_bias_back(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *dx,
                             weir_real *dbias) {
    for (size_t i = 0; i < rows; i++)
        kernel_row_add(cols, dx + i * cols, dbias);
}

static void kernel_bias_relu(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *restrict b,
                             weir_real *restrict x) {
    for (size_t i = 0; i < rows; i++, x += cols) {
        for (uint32_t c = 0; c < cols; c++) {
            weir_real sum = x[c] + b[c];
            x[c] = sum < 0 ? 0 : sum; /* NaN stays NaN: a broken input must not look like a 0 */
        }
    }
}

static void kernel_relu_back(const weir_kernels *context, size_t count, const weir_real *restrict x,
                             weir_real *restrict dx) {
    for (size_t i = 0; i < count; i++)
        dx[i] = x[i] > 0 ? dx[i] : 0;
}

static weir_real kernel_row_sum(uint32_t cols, const weir_real *x) {
    weir_real sum = 0;
    for (uint32_t c = 0; c < cols; c++)
        sum += x[c];
    return sum;
}

static weir_real kernel_row_squares(uint32_t cols, const weir_real *x, weir_real mean) {
    weir_real sum = 0;
    for (uint32_t c = 0; c < cols; c++)
        sum += (x[c] - mean) * (x[c] - mean);
    return sum;
}

/* Compiled for rows and for lanes, which have the same bits: a test holds the compiler to it (KERNEL-K1). */
static void kernel_row_norm(uint32_t cols, weir_real mean, weir_real factor, const weir_real *restrict x,
                            const weir_real *restrict gain, const weir_real *restrict shift, weir_real *restrict out) {
    for (uint32_t c = 0; c < cols; c++)
        out[c] = (x[c] - mean) * factor * gain[c] + shift[c];
}

static void kernel_layer_norm(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_real *restrict x,
                              const weir_real *restrict gain, const weir_real *restrict shift, size_t bytes,
                              weir_real *restrict out, weir_real *restrict stats) {
    const bool uncached = weir_uncached_rows(out, cols, bytes);
    for (size_t i = 0; i < rows; i++, x += cols, out += cols, stats += 2) {
        weir_real mean = kernel_row_sum(cols, x) / (weir_real)cols;
        weir_real variance = kernel_row_squares(cols, x, mean) / (weir_real)cols;
        weir_real factor = (weir_real)(1 / sqrt((double)(variance + LAYER_NORM_EPSILON)));
        for (uint32_t c = 0; uncached && c < cols; c += WEIR_UNCACHED_LANES) {
            weir_real some[WEIR_UNCACHED_LANES];
            kernel_row_norm(WEIR_UNCACHED_LANES, mean, factor, x + c, gain + c, shift + c, some);
            weir_uncached_store(out + c, some);
        }
        if (!uncached) kernel_row_norm(cols, mean, factor, x, gain, shift, out);
        stats[0] = mean;
        stats[1] = factor;
    }
    if (uncached) weir_uncached_end();
}

/* With n = (x - mean) * factor and g = d * gain:  dx = factor * (g - mean(g) - n * mean(g * n)). */
static void kernel_layer_norm_back(const weir_kernels *context, uint32_t rows, uint32_t cols,
                                   const weir_real *restrict x, const weir_real *restrict stats,
                                   const weir_real *restrict gain, bool relu, weir_real *restrict d,
                                   weir_real *restrict dgain, weir_real *restrict dshift) {
    for (size_t i = 0; i < rows; i++, x += cols, d += cols, stats += 2) {
        weir_real mean = stats[0], factor = stats[1], sum = 0, product = 0;
        for (uint32_t c = 0; c < cols; c++) {
            weir_real n = (x[c] - mean) * factor, g = d[c] * gain[c];
            sum += g;
            product += g * n;
            dgain[c] += d[c] * n;
            dshift[c] += d[c];
        }
        sum /= (weir_real)cols;
        product /= (weir_real)cols;
        for (uint32_t c = 0; c < cols; c++) {
            const weir_real dx = factor * (d[c] * gain[c] - sum - (x[c] - mean) * factor * product);
            d[c] = x[c] > 0 || !relu ? dx : 0;
        }
    }
}

/* --- dropout ----------------------------------------------------------------------------------------------------- */

#define DRAWS     8u /* of 16 bits, from one block of the generator */
#define DRAW_ENDS 65536.0

/* 16 bits a draw are enough: a rate that is off by 1/131072 trains the same network. */
static void kernel_dropout_block(const weir_dropout *d, uint64_t key, uint32_t block, uint16_t draws[DRAWS]) {
    uint32_t counter[4] = {(uint32_t)key, (uint32_t)(key >> 32), block, d->stream};
    uint32_t seed[2] = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)}, bits[4];
    weir_philox(counter, seed, bits);
    for (uint32_t i = 0; i < DRAWS; i++)
        draws[i] = (uint16_t)(bits[i / 2] >> 16 * (i % 2));
}

static void kernel_dropout_row(uint32_t cols, const weir_dropout *d, uint64_t key, weir_real *x) {
    uint32_t limit = (uint32_t)(d->rate * DRAW_ENDS + 0.5);
    WEIR_ASSERT(d->rate >= 0 && d->rate < 1);
    weir_real kept = (weir_real)(DRAW_ENDS / (DRAW_ENDS - limit));
    uint16_t draws[DRAWS];
    for (uint32_t c = 0; c < cols; c++) {
        if (c % DRAWS == 0) kernel_dropout_block(d, key, c / DRAWS, draws);
        x[c] = draws[c % DRAWS] < limit ? 0 : x[c] * kept;
    }
}

static void kernel_dropout(const weir_kernels *context, uint32_t rows, uint32_t cols, const weir_dropout *d,
                           weir_real *x) {
    for (size_t i = 0; i < rows; i++)
        kernel_dropout_row(cols, d, d->keys ? d->keys[i] : i, x + i * cols);
}

static void kernel_segment_dropout(const weir_kernels *context, const weir_segments *s, uint32_t cols,
                                   const weir_dropout *d, weir_real *x) {
    for (size_t i = 0; i < s->count; i++)
        kernel_dropout_row((s->offsets[i + 1] - s->offsets[i]) * cols, d, d->keys ? d->keys[i] : i,
                           x + (size_t)s->offsets[i] * cols);
}

/* --- flat arrays ------------------------------------------------------------------------------------------------- */

static void kernel_add(const weir_kernels *context, size_t count, const weir_real *restrict x, weir_real *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

static void kernel_approach(const weir_kernels *context, size_t count, weir_real share, const weir_real *restrict x,
                            weir_real *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += share * (x[i] - y[i]);
}

static double kernel_cells_square_sum(size_t count, const weir_real *x) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static void kernel_square_sum(const weir_kernels *context, size_t count, const weir_real *x, double *sum) {
    *sum += kernel_cells_square_sum(count, x);
}

#include "loops_attention.h"
#include "loops_optimiser.h"

/* NOLINTEND(misc-unused-parameters) */

const weir_loops WEIR_LOOP = {
    .row_products = kernel_row_products,
    .gather_rows = kernel_gather_rows,
    .scatter_add_rows = kernel_scatter_add_rows,
    .segment_mean = kernel_segment_mean,
    .segment_mean_back = kernel_segment_mean_back,
    .segment_mean_back_first = kernel_segment_mean_back_first,
    .segment_sum = kernel_segment_sum,
    .segment_sum_back = kernel_segment_sum_back,
    .segment_degrees = kernel_segment_degrees,
    .segment_join = kernel_segment_join,
    .segment_max = kernel_segment_max,
    .segment_max_back = kernel_segment_max_back,
    .take_most = kernel_take_most,
    .take_most_back = kernel_take_most_back,
    .segment_deviation = kernel_segment_deviation,
    .segment_deviation_back = kernel_segment_deviation_back,
    .segment_amplify = kernel_segment_amplify,
    .segment_amplify_back = kernel_segment_amplify_back,
    .add_more = kernel_add_more,
    .add_more_back = kernel_add_more_back,
    .add_scaled_rows = kernel_add_scaled_rows,
    .segment_scores = kernel_segment_scores,
    .segment_scores_back = kernel_segment_scores_back,
    .segment_softmax = kernel_segment_softmax,
    .segment_softmax_back = kernel_segment_softmax_back,
    .segment_mix = kernel_segment_mix,
    .segment_mix_back = kernel_segment_mix_back,
    .head_products = kernel_head_products,
    .head_products_back = kernel_head_products_back,
    .segment_log_count = kernel_segment_log_count,
    .segment_zero_empty = kernel_segment_zero_empty,
    .time_code = kernel_time_code,
    .compose = kernel_compose,
    .rebase = kernel_rebase,
    .embed = kernel_embed,
    .embed_back = kernel_embed_back,
    .bias = kernel_bias,
    .bias_back = kernel_bias_back,
    .bias_relu = kernel_bias_relu,
    .relu_back = kernel_relu_back,
    .layer_norm = kernel_layer_norm,
    .layer_norm_back = kernel_layer_norm_back,
    .dropout = kernel_dropout,
    .segment_dropout = kernel_segment_dropout,
    .add = kernel_add,
    .approach = kernel_approach,
    .square_sum = kernel_square_sum,
    .adamw = kernel_adamw,
    .adagrad = kernel_adagrad,
    .zero_rows = kernel_zero_rows,
    .square_sum_rows = kernel_square_sum_rows,
    .adamw_rows = kernel_adamw_rows,
    .adagrad_rows = kernel_adagrad_rows,
    .adamw_bring = kernel_adamw_bring,
    .adamw_moved = kernel_adamw_moved,
};
