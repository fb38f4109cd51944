/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_test.c - every kernel against a naive twin in double, for the loops of both builds, with random shapes down to
 * nothing at all.
 */
#include <float.h>
#include <math.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/inference/kernel/uncached.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "kernel_fixture.h"

/* --- gemm -------------------------------------------------------------------------------------------------------- */

/* Computes c in double, and of each sum the size: what it would be if no term cancelled another. */
static void naive_gemm(const weir_gemm *g, double *c, double *size) {
    for (uint32_t i = 0; i < g->m; i++) {
        for (uint32_t j = 0; j < g->n; j++) {
            double sum = g->beta == 0 ? 0 : (double)g->beta * c[i * g->ldc + j], terms = fabs(sum);
            for (uint32_t k = 0; k < g->k; k++) {
                double a = (double)(g->a_transposed ? g->a[k * g->lda + i] : g->a[i * g->lda + k]);
                double b = (double)(g->b_transposed ? g->b[j * g->ldb + k] : g->b[k * g->ldb + j]);
                sum += a * b;
                terms += fabs(a * b);
            }
            c[i * g->ldc + j] = sum;
            size[i * g->ldc + j] = terms;
        }
    }
}

/* Runs the product and compares. Of 10^7 sums of random terms the worst reached a third of the bound. */
static void assert_product(const weir_gemm *g, weir_real *c, size_t count) {
    double *expected = doubles_of(c, count), *size = array(count, sizeof *size);
    if (g->beta == 0 && g->m && g->n) c[0] = NAN; /* is not read */
    naive_gemm(g, expected, size);
    weir_kernels_cpu()->gemm(weir_kernels_cpu(), g);
    const double bound = naive_rounding(g->k);
    for (size_t i = 0; i < count; i++) { /* what lies between the rows is of size 0, and stays */
        double error = fabs((double)c[i] - expected[i]);
        if (!(error <= bound * size[i])) fail_msg("c[%zu] is %.9g, and should be %.9g", i, (double)c[i], expected[i]);
    }
    free(expected);
    free(size);
}

static void gemm_is_its_sum(void **state) {
    (void)state;
    rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        weir_gemm g = {
            .m = below(30), .n = below(30), .k = below(30), .a_transposed = below(2), .b_transposed = below(2)};
        g.lda = (g.a_transposed ? g.m : g.k) + below(3) + 1;
        g.ldb = (g.b_transposed ? g.k : g.n) + below(3) + 1;
        g.ldc = g.n + below(3) + 1;
        g.beta = (weir_real)below(3);
        weir_real *a = random_reals(31 * g.lda), *b = random_reals(31 * g.ldb), *c = random_reals(31 * g.ldc);
        g.a = a;
        g.b = b;
        g.c = c;
        assert_product(&g, c, 31 * g.ldc);
        free(a);
        free(b);
        free(c);
    }
}

/* As those of a network are: long in one direction, and at every edge of the tiles that long ones are computed in;
 * what lies between the rows stays. */
static void long_gemm_is_its_sum(void **state) {
    (void)state;
    static const uint32_t ends[] = {255, 256, 257, 288, 289, 512, 544, 545};
    rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        weir_gemm g = {.n = 1 + below(70), .b_transposed = below(2), .a_transposed = below(2)};
        uint32_t length = 48 + below(g.a_transposed ? 3000 : 600); /* most are above what OpenBLAS is better at */
        g.m = g.a_transposed ? 1 + below(70) : length;
        g.k = g.a_transposed ? length : 1 + below(300);
        if (round % 8 == 0) g.n += 240; /* more than one block */
        if (round % 8 == 1 && g.a_transposed) g.m += 240;
        if (round % 8 == 2) g.k = ends[below(sizeof ends / sizeof ends[0])]; /* of blocks of terms */
        g.lda = (g.a_transposed ? g.m : g.k) + below(3);
        g.ldb = (g.b_transposed ? g.k : g.n) + below(3);
        g.ldc = g.n + below(3);
        g.beta = (weir_real)below(3);
        weir_real *a = random_reals((g.a_transposed ? g.k : g.m) * g.lda);
        weir_real *b = random_reals((g.b_transposed ? g.n : g.k) * g.ldb), *c = random_reals(g.m * g.ldc);
        g.a = a;
        g.b = b;
        g.c = c;
        assert_product(&g, c, g.m * g.ldc);
        free(a);
        free(b);
        free(c);
    }
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void check_rows(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t from = 1 + below(30), *index = random_index(rows, from);
    const uint32_t wide = cols + below(5);
    weir_real *x = random_reals(from * cols), *out = random_reals(rows * cols), *dx = random_reals(from * cols);
    weir_real *dout = random_reals(rows * cols), *beside = random_reals(rows * wide);
    double *expected = array(rows * cols, sizeof *expected), *expected_beside = array(rows * wide, sizeof *expected);
    naive_sum *back = naive_sums_of(dx, from * cols);
    for (uint32_t i = 0; i < rows * cols; i++)
        expected[i] = (double)x[index[i / cols] * cols + i % cols];
    for (uint32_t i = 0; i < rows * cols; i++)
        naive_add(&back[index[i / cols] * cols + i % cols], (double)dout[i]);
    for (uint32_t i = 0; i < rows * wide; i++)
        expected_beside[i] = (double)(i % wide < cols ? dout[i / wide * cols + i % wide] : beside[i]);
    k->gather_rows(k, rows, cols, x, index, out, cols);
    k->gather_rows(k, rows, cols, dout, NULL, beside, wide);
    k->scatter_add_rows(k, rows, cols, dout, index, dx);
    assert_close(out, expected, rows * cols, "gathered");
    assert_close(beside, expected_beside, rows * wide, "beside others");
    assert_sums(dx, back, from * cols, "scattered");
    free(index);
    free(dout);
    free(x);
}

static void rows_gather_and_scatter(void **state) {
    (void)state;
    each_table(check_rows);
}

static void check_embed(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t slots_count = 1 + below(9), stride = 1 + below(3), *slots = random_index(rows * stride, slots_count);
    weir_real *table = random_reals(slots_count * cols), *out = random_reals(rows * cols);
    weir_real *dtable = random_reals(slots_count * cols), *dout = random_reals(rows * cols);
    double *expected = doubles_of(out, rows * cols);
    naive_sum *back = naive_sums_of(dtable, slots_count * cols);
    for (uint32_t i = 0; i < rows; i++)
        if (below(4) == 0) slots[i * stride] = WEIR_NO_SLOT;
    for (uint32_t i = 0; i < rows * cols; i++) {
        if (slots[i / cols * stride] == WEIR_NO_SLOT) continue;
        uint32_t at = slots[i / cols * stride] * cols + i % cols;
        expected[i] += (double)table[at];
        naive_add(&back[at], (double)dout[i]);
    }
    k->embed(k, rows, cols, slots, stride, table, out);
    k->embed_back(k, rows, cols, slots, stride, dout, dtable);
    assert_close(out, expected, rows * cols, "embedded");
    assert_sums(dtable, back, slots_count * cols, "table");
    free(slots);
    free(table);
    free(dout);
}

static void embed_adds_slots(void **state) {
    (void)state;
    each_table(check_embed);
}

static void check_row_products(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    weir_real *x = random_reals(rows * cols), *y = random_reals(cols), *out = random_reals(rows);
    double *expected = doubles_of(out, rows);
    for (uint32_t i = 0; i < rows; i++) {
        expected[i] = 0;
        for (uint32_t c = 0; c < cols; c++)
            expected[i] += (double)x[i * cols + c] * (double)y[c];
    }
    k->row_products(k, rows, cols, x, y, out);
    assert_close(out, expected, rows, "products");
    free(x);
    free(y);
}

static void rows_have_products(void **state) {
    (void)state;
    each_table(check_row_products);
}

static void check_compose(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t *outer = random_index(cols, 1000), *inner = random_index(rows, cols), *out = array(rows, sizeof *out);
    k->compose(k, rows, outer, inner, out);
    for (uint32_t i = 0; i < rows; i++)
        assert_int_equal(out[i], outer[inner[i]]);
    k->rebase(k, rows, out, cols, out);
    for (uint32_t i = 0; i < rows; i++)
        assert_int_equal(out[i], (uint32_t)(outer[inner[i]] - cols));
    free(outer);
    free(inner);
    free(out);
}

static void compose_looks_up_twice(void **state) {
    (void)state;
    each_table(check_compose);
}

/* --- segments ---------------------------------------------------------------------------------------------------- */

static void check_segments(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t *offsets = array(rows + 1, sizeof *offsets), from = 1 + below(50), ldx = cols + below(3);
    uint32_t ldout = cols + 1 + below(3);
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(6);
    bool indexed = below(2);
    if (!indexed && from < offsets[rows]) from = offsets[rows];
    uint32_t *index = random_index(offsets[rows], from);
    weir_segments s = {.count = rows, .offsets = offsets, .index = indexed ? index : NULL};
    s.each = below(3) ? 0 : 1.6;
    const double each = s.each > 0 ? 1.6 : 1;
    weir_real *all = random_reals(rows * cols), *dall = random_reals(from * cols);
    weir_real *dall_out = random_reals(rows * cols);
    naive_sum *expected_all = array(rows * cols, sizeof *expected_all), *back_all = naive_sums_of(dall, from * cols);
    weir_real *x = random_reals(from * ldx), *out = random_reals(rows * ldout), *dx = random_reals(from * ldx);
    weir_real *dout = random_reals(rows * ldout), *weights = random_reals(offsets[rows]);
    weir_real *sums = random_reals(rows * ldout);
    naive_sum *expected = naive_sums_of(out, rows * ldout), *back = naive_sums_of(dx, from * ldx);
    naive_sum *expected_sums = naive_sums_of(sums, rows * ldout);
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t count = offsets[i + 1] - offsets[i];
        expected[i * ldout + cols] = (naive_sum){0};
        naive_add(&expected[i * ldout + cols], log(1 + each * count));
        for (uint32_t c = 0; c < cols; c++) {
            expected[i * ldout + c] = (naive_sum){0};
            expected_sums[i * ldout + c] = (naive_sum){0};
            for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++) {
                uint32_t at = (indexed ? index[e] : e) * ldx + c;
                naive_add(&expected[i * ldout + c], (double)x[at] / count);
                naive_add(&expected_sums[i * ldout + c], (double)weights[e] * (double)x[at]);
                naive_add(&back[at], (double)dout[i * ldout + c] / count);
                naive_add(&expected_all[i * cols + c], each * (double)x[at]);
                naive_add(&back_all[(indexed ? index[e] : e) * cols + c], each * (double)dall_out[i * cols + c]);
            }
        }
    }
    k->segment_mean(k, &s, cols, x, ldx, out, ldout);
    k->segment_log_count(k, &s, out + cols, ldout);
    k->segment_mean_back(k, &s, cols, dout, ldout, dx, ldx);
    k->segment_sum(k, &s, weights, cols, x, ldx, sums, ldout);
    k->segment_sum(k, &s, NULL, cols, x, ldx, all, cols);
    k->segment_sum_back(k, &s, NULL, cols, dall_out, dall);
    assert_sums(all, expected_all, rows * cols, "sum without weights");
    assert_sums(dall, back_all, from * cols, "dx of a sum");
    assert_sums(sums, expected_sums, rows * ldout, "sum");
    assert_sums(out, expected, rows * ldout, "mean");
    assert_sums(dx, back, from * ldx, "dx");
    free(offsets);
    free(index);
    free(x);
    free(dout);
    free(weights);
    free(dall_out);
}

/* Rows of segments without entries; and the way back to rows that held nothing. */
static void check_empty_and_first(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const uint32_t from = 1 + below(50), begin = below(3), ldx = cols + below(3), all = begin + from + below(3);
    uint32_t *offsets = array(rows + 1, sizeof *offsets);
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(6);
    uint32_t *index = random_index(offsets[rows], from);
    for (uint32_t e = 0; e < offsets[rows]; e++) /* as a sampler numbers them, for a while, and then any */
        index[e] = begin + (e < from && below(8) ? e : index[e]);
    const weir_segments s = {.count = rows, .offsets = offsets, .index = index};
    weir_real *x = random_reals(rows * ldx), *dout = random_reals(rows * ldx), *dx = random_reals(all * cols);
    double *expected = doubles_of(x, rows * ldx);
    naive_sum *back = naive_sums_of(dx, all * cols);
    for (uint32_t i = 0; i < from * cols; i++)
        back[begin * cols + i] = (naive_sum){0};
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t count = offsets[i + 1] - offsets[i];
        for (uint32_t c = 0; c < cols && count == 0; c++)
            expected[i * ldx + c] = 0;
        for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++)
            for (uint32_t c = 0; c < cols; c++)
                naive_add(&back[index[e] * cols + c], (double)dout[i * ldx + c] / count);
    }
    for (uint32_t i = 0; i < from * cols; i++)
        dx[begin * cols + i] = NAN; /* is not read */
    k->segment_zero_empty(k, &s, cols, x, ldx);
    k->segment_mean_back_first(k, &s, cols, dout, ldx, dx, begin, begin + from);
    assert_close(x, expected, rows * ldx, "rows of empty segments");
    assert_sums(dx, back, all * cols, "dx of a mean, first");
    free(offsets);
    free(index);
    free(dout);
}

static void empty_segments_and_first_gradients(void **state) {
    (void)state;
    each_table(check_empty_and_first);
}

static void segments_have_means_and_sums(void **state) {
    (void)state;
    each_table(check_segments);
}

static void check_time_code(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    rows *= 8; /* more than are computed at once */
    int64_t before[3] = {(int64_t)1 << 50, (int64_t)1 << 49, 1000}, *times = array(rows, sizeof *times);
    uint32_t *groups = random_index(cols, 3), *parents = random_index(rows, cols);
    weir_real *out = random_reals(rows * 9);
    double *expected = doubles_of(out, rows * 9), first = log(2), space = (log(1 + 400.0 * 86400) - log(2)) / 7;
    const int64_t of_all = (int64_t)exp(weir_rng_double(&rng) * log(1e15));
    const uint32_t alike = below(2) ? below(rows + 1) : 0; /* so many first ones are of one age */
    for (uint32_t i = 0; i < rows; i++) {                  /* others of all sizes, one in five below 0 */
        int64_t age = i < alike ? of_all : (int64_t)exp(weir_rng_double(&rng) * log(1e15)) * (below(5) ? 1 : -1);
        times[i] = before[groups[parents[i]]] - age;
        double place = (log(1 + (age > 0 ? (double)age : 0) / 1e6) - first) / space;
        for (uint32_t c = 0; c < 8; c++)
            expected[i * 9 + c] = exp(-(place - c) * (place - c));
    }
    k->time_code(k, rows, &(weir_ages){before, groups, parents, times}, out, 9);
    assert_close(out, expected, rows * 9, "time code");
    uint32_t *own = array(rows, sizeof *own); /* without parents: of one time, and each row's own group */
    for (uint32_t i = 0; i < rows; i++) {
        own[i] = groups[parents[i]];
        times[i] = times[0];
    }
    weir_real *again = random_reals(rows * 9);
    k->time_code(k, rows, &(weir_ages){before, groups, parents, times}, again, 9);
    double *same = doubles_of(again, rows * 9);
    k->time_code(k, rows, &(weir_ages){before, own, NULL, times}, again, 9);
    assert_close(again, same, rows * 9, "time code of one time");
    free(own);
    free(times);
    free(groups);
    free(parents);
}

static void time_code_is_bumps(void **state) {
    (void)state;
    each_table(check_time_code);
}

/* --- bias, relu, norm -------------------------------------------------------------------------------------------- */

static void check_bias(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    size_t n = rows * cols;
    weir_real *b = random_reals(cols), *x = random_reals(n), *y = array(n, sizeof *y), *d = random_reals(n);
    weir_real *db = random_reals(cols);
    memcpy(y, x, n * sizeof *y);
    double *sum = doubles_of(x, n), *cut = doubles_of(x, n), *dcut = doubles_of(d, n), *back = doubles_of(db, cols);
    for (size_t i = 0; i < n; i++) {
        sum[i] += (double)b[i % cols];
        cut[i] = fmax(0, sum[i]);
        back[i % cols] += (double)d[i];
        if (cut[i] <= 0) dcut[i] = 0;
    }
    k->bias(k, rows, cols, b, x);
    k->bias_relu(k, rows, cols, b, y);
    k->bias_back(k, rows, cols, d, db);
    k->relu_back(k, n, y, d);
    assert_close(x, sum, n, "x + bias");
    assert_close(y, cut, n, "relu");
    assert_close(db, back, cols, "dbias");
    assert_close(d, dcut, n, "drelu");
    free(b);
}

static void bias_and_relu(void **state) {
    (void)state;
    each_table(check_bias);
}

static void relu_keeps_nan(void **state) {
    (void)state;
    weir_real x[3] = {(weir_real)NAN, -1, 2}, zeros[3] = {0};
    weir_loops_plain.bias_relu(&weir_loops_plain, 1, 3, zeros, x);
    assert_true(isnan(x[0]) && x[1] == 0 && x[2] == 2);
    x[0] = (weir_real)NAN;
    weir_kernels_cpu()->bias_relu(weir_kernels_cpu(), 1, 3, zeros, x);
    assert_true(isnan(x[0]));
}

static double naive_mean(uint32_t cols, const double *x) {
    double mean = 0;
    for (uint32_t c = 0; c < cols; c++)
        mean += x[c] / cols;
    return mean;
}

static double naive_deviation(uint32_t cols, const double *x) {
    double mean = naive_mean(cols, x), variance = 0;
    for (uint32_t c = 0; c < cols; c++)
        variance += (x[c] - mean) * (x[c] - mean) / cols;
    return sqrt(variance + 1e-5);
}

/* One row's norm; what a weighted sum of its outputs is, for differences. */
static double naive_norm_sum(uint32_t cols, const double *x, const double *gain, const double *shift, const double *w,
                             double *out) {
    const double mean = naive_mean(cols, x), deviation = naive_deviation(cols, x);
    double sum = 0;
    for (uint32_t c = 0; c < cols; c++) {
        double y = (x[c] - mean) / deviation * gain[c] + shift[c];
        if (out) out[c] = y;
        sum += w[c] * y;
    }
    return sum;
}

static double norm_difference(uint32_t cols, double *at, const double *x, const double *gain, const double *shift,
                              const double *w) {
    double kept = *at, distance = 1e-5;
    *at = kept + distance;
    double up = naive_norm_sum(cols, x, gain, shift, w, NULL);
    *at = kept - distance;
    double down = naive_norm_sum(cols, x, gain, shift, w, NULL);
    *at = kept;
    return (up - down) / (2 * distance);
}

static void check_norm(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    cols += 3; /* with few columns the variance comes near 0, and differences say nothing */
    size_t n = rows * cols;
    weir_real *x = random_reals(n), *gain = random_reals(cols), *shift = random_reals(cols), *w = random_reals(n);
    weir_real *out = random_reals(n), *stats = random_reals(2 * rows), *dx = random_reals(n);
    weir_real *dgain = array(cols, sizeof *dgain), *dshift = array(cols, sizeof *dshift);
    double *xd = doubles_of(x, n), *gd = doubles_of(gain, cols), *sd = doubles_of(shift, cols), *wd = doubles_of(w, n);
    double *y = array(n, sizeof *y), *bx = array(n, sizeof *bx), *bg = array(cols, sizeof *bg);
    double *bs = array(cols, sizeof *bs);
    for (uint32_t i = 0; i < rows; i++) {
        double *row = xd + i * cols, *wr = wd + i * cols;
        naive_norm_sum(cols, row, gd, sd, wr, y + i * cols);
        for (uint32_t c = 0; c < cols; c++) {
            bx[i * cols + c] = norm_difference(cols, &row[c], row, gd, sd, wr);
            bg[c] += norm_difference(cols, &gd[c], row, gd, sd, wr);
            bs[c] += norm_difference(cols, &sd[c], row, gd, sd, wr);
        }
    }
    k->layer_norm(k, rows, cols, x, gain, shift, 0, out, stats);
    memcpy(dx, w, n * sizeof *dx);
    k->layer_norm_back(k, rows, cols, x, stats, gain, false, dx, dgain, dshift);
    for (uint32_t i = 0; i < rows; i++) { /* rounding, too, is divided by a row's deviation, which may be near 0 */
        const double deviation = naive_deviation(cols, xd + i * cols);
        for (uint32_t c = 0; c < cols && deviation < 1; c++) {
            bx[i * cols + c] *= deviation;
            dx[i * cols + c] = (weir_real)((double)dx[i * cols + c] * deviation);
        }
    }
    assert_close(out, y, n, "norm");
    assert_close(dx, bx, n, "dx");
    assert_close(dgain, bg, cols, "dgain");
    assert_close(dshift, bs, cols, "dshift");
    free(x), free(gain), free(shift), free(w), free(stats), free(xd), free(gd), free(sd), free(wd);
}

static void layer_norm_and_back(void **state) {
    (void)state;
    each_table(check_norm);
}

/* Of a norm of a relu's output, the two ways back are one. */
static void check_norm_of_relu(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols, all = n + 2 * (size_t)cols; /* d, and the gradients of gain and shift */
    weir_real *x = random_reals(n), *gain = random_reals(cols), *stats = random_reals(2 * (size_t)rows);
    weir_real *one = random_reals(all), *two = array(all, sizeof *two);
    if (n) x[below((uint32_t)n)] = NAN;
    memcpy(two, one, all * sizeof *two);
    k->layer_norm_back(k, rows, cols, x, stats, gain, true, one, one + n, one + n + cols);
    k->layer_norm_back(k, rows, cols, x, stats, gain, false, two, two + n, two + n + cols);
    k->relu_back(k, n, x, two);
    assert_memory_equal(one, two, all * sizeof *one);
    free(x), free(gain), free(stats), free(one), free(two);
}

static void norm_of_relu_and_back(void **state) {
    (void)state;
    each_table(check_norm_of_relu);
}

/* --- past the caches ---------------------------------------------------------------------------------------------- */

static weir_real *aligned_reals(size_t count) {
    return aligned_alloc(64, (count * sizeof(weir_real) / 64 + 1) * 64);
}

static void only_many_aligned_rows_go_past_the_caches(void **state) {
    (void)state;
    weir_real *rows = aligned_reals(64);
    assert_int_equal(weir_uncached_rows(rows, 64, WEIR_UNCACHED_BYTES), WEIR_UNCACHED_LANES > 1);
    assert_false(weir_uncached_rows(rows, 64, WEIR_UNCACHED_BYTES - 1));
    assert_false(weir_uncached_rows(rows, 7, WEIR_UNCACHED_BYTES));
    assert_false(weir_uncached_rows(rows + 1, 64, WEIR_UNCACHED_BYTES));
    free(rows);
}

/* The same rows, as few and as many, where such stores can be used and a float further, where they cannot. */
static void check_uncached_norm(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    weir_real *x = random_reals(n), *gain = random_reals(cols), *shift = random_reals(cols);
    weir_real *few = array(n, sizeof *few), *many = aligned_reals(n + 1), *stats = array(rows, 2 * sizeof *stats);
    k->layer_norm(k, rows, cols, x, gain, shift, 0, few, stats);
    for (unsigned further = 0; further < 2; further++) {
        k->layer_norm(k, rows, cols, x, gain, shift, WEIR_UNCACHED_BYTES, many + further, stats);
        assert_memory_equal(few, many + further, n * sizeof *few);
    }
    free(x), free(gain), free(shift), free(stats), free(few), free(many);
}

/* Of six children in seven, each is the first in its turn; the seventh is one that was, or is just before its turn; and
 * the last have no parent. */
static void check_uncached_gradients(const weir_kernels *k, uint32_t cols) {
    const uint32_t children = (uint32_t)(WEIR_UNCACHED_BYTES / cols / sizeof(weir_real)) + 40, begin = 8;
    const uint32_t parents = children / 3;
    const size_t all = ((size_t)begin + children) * cols;
    uint32_t *index = array((size_t)3 * parents, sizeof *index), *offsets = array(parents + 1u, sizeof *offsets);
    for (uint32_t e = 0; e < 3 * parents; e++)
        index[e] = begin + (e % 7 == 3 ? below(1 + e - e / 7) : e - e / 7);
    for (uint32_t i = 0; i <= parents; i++)
        offsets[i] = 3 * i;
    const weir_segments s = {.count = parents, .offsets = offsets, .index = index};
    weir_real *dout = random_reals((size_t)parents * cols), *added = array(all, sizeof *added);
    weir_real *written = aligned_reals(all);
    memset(written, 0, (size_t)begin * cols * sizeof *written);
    k->segment_mean_back(k, &s, cols, dout, cols, added, cols);
    k->segment_mean_back_first(k, &s, cols, dout, cols, written, begin, begin + children);
    for (size_t i = 0; i < all; i++)
        written[i] += 0; /* -0 */
    assert_memory_equal(added, written, all * sizeof *added);
    free(index), free(offsets), free(dout), free(added), free(written);
}

static void same_bits_past_the_caches(void **state) {
    (void)state;
    const weir_kernels *tables[] = {&weir_loops_plain, weir_kernels_cpu()};
    rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (uint32_t cols = 4; cols < 80; cols += 1 + below(8))
            check_uncached_norm(tables[i], 40, cols);
        check_uncached_gradients(tables[i], 64);
        check_uncached_gradients(tables[i], 20);
    }
}

/* --- dropout ----------------------------------------------------------------------------------------------------- */

static void dropout_drops_its_share_by_key_alone(void **state) {
    (void)state;
    enum { ROWS = 2000, COLS = 19 };
    uint64_t seed = weir_test_seed(), *keys = array(ROWS, sizeof *keys), *swapped = array(ROWS, sizeof *swapped);
    weir_real *x = array(ROWS * COLS, sizeof *x), *y = array(ROWS * COLS, sizeof *y);
    double rate = 0.3, sum = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        keys[i] = i * 77777777777ull;
        swapped[ROWS - 1 - i] = keys[i];
    }
    for (uint32_t i = 0; i < ROWS * COLS; i++)
        x[i] = y[i] = 1;
    weir_kernels_cpu()->dropout(weir_kernels_cpu(), ROWS, COLS, &(weir_dropout){rate, seed, 1, keys}, x);
    weir_loops_plain.dropout(&weir_loops_plain, ROWS, COLS, &(weir_dropout){rate, seed, 1, swapped}, y);
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t c = 0; c < COLS; c++) {
            double kept = (double)x[i * COLS + c];
            assert_true(kept == 0 || fabs(kept - 1 / 0.7) < 1e-4);
            assert_true(x[i * COLS + c] == y[(ROWS - 1 - i) * COLS + c]);
            sum += kept;
        }
    }
    double deviation = sqrt(rate / (1 - rate) * ROWS * COLS);
    assert_true(fabs(sum - ROWS * COLS) < 5 * deviation); /* unbiased: one in two million runs is farther off */
    free(keys), free(swapped), free(x), free(y);
}

static void dropout_of_another_step_differs(void **state) {
    (void)state;
    weir_real x[256], y[256];
    unsigned same = 0;
    for (unsigned i = 0; i < 256; i++)
        x[i] = y[i] = 1;
    weir_kernels_cpu()->dropout(weir_kernels_cpu(), 1, 256, &(weir_dropout){0.5, 1, 1, NULL}, x);
    weir_kernels_cpu()->dropout(weir_kernels_cpu(), 1, 256, &(weir_dropout){0.5, 1, 2, NULL}, y);
    for (unsigned i = 0; i < 256; i++)
        same += x[i] == y[i];
    assert_in_range(same, 80, 176); /* 6 deviations */
}

/* What the entries of a segment lose follows from its key and their places in it, wherever the segment stands. */
static void dropout_of_segments_goes_by_their_keys(void **state) {
    (void)state;
    enum { COUNT = 400, COLS = 3, MOST = 9 };
    rng = weir_rng_stream(weir_test_seed(), 7, 0);
    uint32_t offsets[COUNT + 1] = {0}, turned[COUNT + 1] = {0}, dropped = 0;
    uint64_t keys[COUNT], backwards[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        offsets[i + 1] = offsets[i] + (uint32_t)weir_rng_below(&rng, MOST + 1);
        keys[i] = backwards[COUNT - 1 - i] = weir_rng_below(&rng, UINT64_MAX);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        turned[i + 1] = turned[i] + offsets[COUNT - i] - offsets[COUNT - i - 1];
    const uint32_t entries = offsets[COUNT] * COLS;
    weir_real *x = array(entries, sizeof *x), *y = array(entries, sizeof *y);
    for (uint32_t e = 0; e < entries; e++)
        x[e] = y[e] = 1;
    weir_kernels_cpu()->segment_dropout(weir_kernels_cpu(), &(weir_segments){.count = COUNT, .offsets = offsets}, COLS,
                                        &(weir_dropout){0.25, 3, 1u << 16 | 1, keys}, x);
    weir_loops_plain.segment_dropout(&weir_loops_plain, &(weir_segments){.count = COUNT, .offsets = turned}, COLS,
                                     &(weir_dropout){0.25, 3, 1u << 16 | 1, backwards}, y);
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t n = 0; n < (offsets[i + 1] - offsets[i]) * COLS; n++) {
            const double kept = (double)x[offsets[i] * COLS + n];
            assert_true(kept == (double)y[turned[COUNT - 1 - i] * COLS + n]);
            assert_true(kept == 0 || fabs(kept - 1 / 0.75) < 1e-4);
            dropped += kept == 0;
        }
    assert_true(fabs(dropped - 0.25 * entries) < 5 * sqrt(0.25 * 0.75 * entries));
    free(x), free(y);
}

/* --- flat arrays ------------------------------------------------------------------------------------------------- */

static void check_flat(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    size_t n = rows * cols;
    weir_real *x = random_reals(n), *y = random_reals(n), *z = random_reals(n);
    double *sum = doubles_of(y, n), *nearer = doubles_of(z, n), squares = 0, found = 7;
    for (size_t i = 0; i < n; i++) {
        sum[i] += (double)x[i];
        nearer[i] = 0.7 * nearer[i] + 0.3 * (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    k->square_sum(k, n, x, &found);
    assert_true(fabs(found - 7 - squares) <= 1e-12 * (1 + squares));
    k->add(k, n, x, y);
    assert_close(y, sum, n, "y + x");
    k->approach(k, n, (weir_real)0.3, x, z);
    assert_close(z, nearer, n, "z + 0.3 (x - z)");
    free(x);
}

static void flat_arrays(void **state) {
    (void)state;
    each_table(check_flat);
}

/* As Loshchilov and Hutter write it: algorithm 2 of "Decoupled Weight Decay Regularization". */
static void check_adamw(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    size_t n = rows * cols;
    weir_real *m = random_reals(n), *v = random_reals(n), *p = random_reals(n), *g = random_reals(n);
    weir_adamw_step s = {.rate = 0.01, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .decay = 0.1};
    s.shortening = (weir_shortening){&(double){36}, 3}; /* of a length of 6 to one of 3 */
    s.l2 = 0.3;
    s.correction1 = 1 - pow(0.9, 3);
    s.correction2 = 1 - pow(0.99, 3);
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] * v[i] + (weir_real)0.01;
    double *md = doubles_of(m, n), *vd = doubles_of(v, n), *pd = doubles_of(p, n);
    for (size_t i = 0; i < n; i++) {
        double gradient = 0.5 * (double)g[i] + 0.3 * pd[i];
        md[i] = 0.9 * md[i] + 0.1 * gradient;
        vd[i] = 0.99 * vd[i] + 0.01 * gradient * gradient;
        pd[i] -= 0.01 * (md[i] / s.correction1 / (sqrt(vd[i] / s.correction2) + 1e-8) + 0.1 * pd[i]);
    }
    k->adamw(k, n, &s, g, m, v, p);
    assert_close(m, md, n, "first moment");
    assert_close(v, vd, n, "second moment");
    assert_close(p, pd, n, "parameter");
    free(g);
}

static void adamw_is_algorithm_2(void **state) {
    (void)state;
    each_table(check_adamw);
}

/* As Duchi, Hazan and Singer write it, with a diagonal matrix. */
static void check_adagrad(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    size_t n = rows * cols;
    weir_real *squares = random_reals(n), *p = random_reals(n), *g = random_reals(n);
    for (size_t i = 0; i < n; i++)
        squares[i] = squares[i] * squares[i];
    double *sums = doubles_of(squares, n), *pd = doubles_of(p, n);
    for (size_t i = 0; i < n; i++) {
        double gradient = 0.5 * (double)g[i];
        sums[i] += gradient * gradient;
        pd[i] -= 0.01 * gradient / (sqrt(sums[i]) + 1e-3);
    }
    k->adagrad(k, n, &(weir_adagrad_step){.rate = 0.01, .epsilon = 1e-3, .shortening = {&(double){36}, 3}}, g, squares,
               p);
    assert_close(squares, sums, n, "sum of squares");
    assert_close(p, pd, n, "parameter");
    free(g);
}

static void adagrad_divides_by_all_squares(void **state) {
    (void)state;
    each_table(check_adagrad);
}

/* A large product and a mean, before and after other work has warmed caches and buffers. */
static void k1_same_arguments_same_bits(void **state) {
    (void)state;
    enum { N = 150 };
    const weir_kernels *k = weir_kernels_cpu();
    rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_real *a = random_reals(N * N), *b = random_reals(N * N), *first = random_reals(N * N);
    weir_real *again = random_reals(N * N);
    double sums[2] = {0};
    weir_gemm g = {.m = N, .n = N, .k = N, .a = a, .lda = N, .b = b, .ldb = N, .c = first, .ldc = N};
    k->gemm(k, &g);
    k->square_sum(k, N * N, first, &sums[0]);
    for (unsigned i = 0; i < 20; i++)
        check_segments(k, 1 + below(40), 1 + below(70));
    g.c = again;
    k->gemm(k, &g);
    k->square_sum(k, N * N, again, &sums[1]);
    assert_memory_equal(first, again, N * N * sizeof *first);
    assert_memory_equal(&sums[0], &sums[1], sizeof sums[0]);
    free(a), free(b), free(first), free(again);
}

/* Not a byte is read or written: the arrays are not there. */
static void k2_nothing_touches_nothing(void **state) {
    (void)state;
    const uint32_t begin = 0;
    const weir_kernels *k = weir_kernels_cpu();
    k->gemm(k, &(weir_gemm){.m = 0, .n = 5, .k = 5, .lda = 5, .ldb = 5, .ldc = 5});
    k->gather_rows(k, 0, 5, NULL, NULL, NULL, 5);
    k->scatter_add_rows(k, 0, 5, NULL, NULL, NULL);
    k->embed(k, 0, 5, NULL, 1, NULL, NULL);
    k->embed_back(k, 0, 5, NULL, 1, NULL, NULL);
    k->segment_mean(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5, NULL, 5);
    k->segment_mean_back(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5, NULL, 5);
    k->segment_zero_empty(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5);
    k->segment_mean_back_first(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5, NULL, 0, 0);
    k->segment_sum(k, &(weir_segments){.count = 0, .offsets = &begin}, NULL, 5, NULL, 5, NULL, 5);
    k->segment_dropout(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, &(weir_dropout){.rate = 0.5}, NULL);
    k->approach(k, 0, 1, NULL, NULL);
    k->time_code(k, 0, &(weir_ages){0}, NULL, 8);
    k->bias_relu(k, 0, 5, NULL, NULL);
    k->relu_back(k, 0, NULL, NULL);
    k->layer_norm(k, 0, 5, NULL, NULL, NULL, 0, NULL, NULL);
    k->dropout(k, 0, 5, &(weir_dropout){.rate = 0.5}, NULL);
    k->to_host(k, NULL, NULL, 0);
    k->zero(k, NULL, 0);
    double sum = 5;
    k->square_sum(k, 0, NULL, &sum);
    assert_true(sum == 5);
}

static void k3_memory_is_all_that_can_fail(void **state) {
    (void)state;
    const weir_kernels *k = weir_kernels_cpu();
    void *memory = NULL, *nothing = NULL;
    assert_ok(k->alloc(k, 100, &memory));
    assert_ok(k->alloc(k, 0, &nothing));
    assert_int_equal((uintptr_t)memory % 64, 0);
    k->zero(k, memory, 100);
    char copy[100];
    memset(copy, 1, sizeof copy);
    k->to_host(k, copy, memory, 100);
    assert_int_equal(copy[99], 0);
    k->release(k, memory);
    k->release(k, nothing);
    assert_ok(k->finish(k));
    weir_alloc_fail_nth(1);
    assert_err(k->alloc(k, 100, &memory), WEIR_ENOMEM, "lower the batch");
    assert_null(memory);
}

WEIR_TESTS(WEIR_CASE(gemm_is_its_sum), WEIR_CASE(long_gemm_is_its_sum), WEIR_CASE(rows_gather_and_scatter),
           WEIR_CASE(embed_adds_slots), WEIR_CASE(rows_have_products), WEIR_CASE(compose_looks_up_twice),
           WEIR_CASE(segments_have_means_and_sums), WEIR_CASE(empty_segments_and_first_gradients),
           WEIR_CASE(time_code_is_bumps), WEIR_CASE(bias_and_relu), WEIR_CASE(relu_keeps_nan),
           WEIR_CASE(layer_norm_and_back), WEIR_CASE(norm_of_relu_and_back),
           WEIR_CASE(only_many_aligned_rows_go_past_the_caches), WEIR_CASE(same_bits_past_the_caches),
           WEIR_CASE(dropout_drops_its_share_by_key_alone), WEIR_CASE(dropout_of_another_step_differs),
           WEIR_CASE(dropout_of_segments_goes_by_their_keys), WEIR_CASE(flat_arrays), WEIR_CASE(adamw_is_algorithm_2),
           WEIR_CASE(adagrad_divides_by_all_squares), WEIR_CASE(k1_same_arguments_same_bits),
           WEIR_CASE(k2_nothing_touches_nothing), WEIR_CASE(k3_memory_is_all_that_can_fail))
