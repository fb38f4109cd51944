/* SPDX-License-Identifier: Apache-2.0 */
/* gather_test.c - the kernels by which networks gather, each against a naive twin in double. */
#include "kernel_fixture.h"

/* --- degrees, most, deviation ------------------------------------------------------------------------------------- */

static void check_degrees(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t *offsets = array(rows + 1, sizeof *offsets), from = 1 + below(20), first = below(5);
    uint32_t *of = array(from + 1, sizeof *of);
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(6);
    for (uint32_t i = 0; i < from; i++)
        of[i + 1] = of[i] + below(6);
    const uint32_t entries = offsets[rows];
    uint32_t *index = random_index(entries, from);
    for (uint32_t e = 0; e < entries; e++)
        index[e] += first;
    const weir_segments s = {.count = rows, .offsets = offsets, .index = index};
    const bool known = below(4);
    weir_real *weights = random_reals(entries), *own = random_reals(rows), *x = random_reals(rows * cols);
    weir_real *dx = random_reals((from + first) * cols), *out = random_reals(rows * cols);
    double *expected = array(entries, sizeof *expected), *expected_own = array(rows, sizeof *expected_own);
    naive_sum *back = naive_sums_of(dx, (from + first) * cols);
    double *scaled = doubles_of(out, rows * cols);
    for (uint32_t i = 0; i < rows; i++) {
        const double degree = 1 + (double)offsets[i + 1] - (double)offsets[i];
        expected_own[i] = 1 / degree;
        for (uint32_t c = 0; c < cols; c++)
            scaled[i * cols + c] += (double)x[i * cols + c] / degree;
        for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++) {
            const uint32_t row = index[e] - first;
            expected[e] = 1 / sqrt(degree) / sqrt(known ? 1 + (double)of[row + 1] - (double)of[row] : degree);
            for (uint32_t c = 0; c < cols; c++)
                naive_add(&back[index[e] * cols + c], expected[e] * (double)x[i * cols + c]);
        }
    }
    k->segment_degrees(k, &s, known ? of : NULL, first, weights, own);
    k->segment_sum_back(k, &s, weights, cols, x, dx);
    k->add_scaled_rows(k, rows, cols, own, x, out);
    assert_sums(dx, back, (from + first) * cols, "dx");
    assert_close(out, scaled, rows * cols, "scaled");
    assert_close(weights, expected, entries, "weight");
    assert_close(own, expected_own, rows, "own");
    free(offsets), free(of), free(index), free(x);
}

static void degrees_normalise(void **state) {
    (void)state;
    each_table(check_degrees);
}

/* Each segment's entries, then the row that joins it. */
static void check_joined(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t *offsets = array(rows + 1, sizeof *offsets), first = below(1000), at = 0;
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(2 + cols % 5);
    const uint32_t entries = offsets[rows];
    uint32_t *index = random_index(entries, 50), *joined = array(rows + 1, sizeof *joined);
    uint32_t *all = array(entries + rows + 1, sizeof *all), *origin = array(entries + rows + 1, sizeof *origin);
    const weir_segments s = {.count = rows, .offsets = offsets, .index = below(4) ? index : NULL};
    all[entries + rows] = origin[entries + rows] = 77;
    k->segment_join(k, &s, first, joined, all, origin);
    assert_int_equal(joined[0], 0);
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++, at++) {
            assert_int_equal(all[at], s.index ? index[e] : e);
            assert_int_equal(origin[at], e);
        }
        assert_int_equal(all[at], first + i);
        assert_int_equal(origin[at++], WEIR_NO_SLOT);
        assert_int_equal(joined[i + 1], at);
    }
    assert_int_equal(at, entries + rows);
    assert_true(all[at] == 77 && origin[at] == 77);
    free(offsets), free(index), free(joined), free(all), free(origin);
}

static void segments_are_joined(void **state) {
    (void)state;
    each_table(check_joined);
}

/* What a column's entries are, of segments over rows of ldx. */
static void check_spread(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t *offsets = array(rows + 1, sizeof *offsets), from = 1 + below(20), ldx = cols + below(3), ld = cols + 2;
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(6);
    uint32_t *index = random_index(offsets[rows], from), *chosen = array(rows * cols, sizeof *chosen);
    const weir_segments s = {.count = rows, .offsets = offsets, .index = index};
    weir_real *x = random_reals(from * ldx), *means = random_reals(rows * ld), *most = random_reals(rows * ld);
    weir_real *spread = random_reals(rows * ld), *d = random_reals(rows * ld), *dx = random_reals(from * ldx);
    double *top = doubles_of(most, rows * ld), *wide = doubles_of(spread, rows * ld);
    naive_sum *back = naive_sums_of(dx, from * ldx);
    for (uint32_t n = 0; n < rows * cols; n++) {
        const uint32_t i = n / cols, c = n % cols, count = offsets[i + 1] - offsets[i];
        double mean = 0, size = 0, squares = 0, best = count ? -INFINITY : 0;
        uint32_t row = WEIR_NO_SLOT;
        for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++) {
            const double value = (double)x[index[e] * ldx + c];
            mean += value / count;
            size += fabs(value) / count;
            if (value > best) row = index[e];
            best = fmax(best, value);
        }
        for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++)
            squares += pow((double)x[index[e] * ldx + c] - mean, 2) / count;
        top[i * ld + c] = best;
        wide[i * ld + c] = count ? sqrt(squares + 1e-5) : 0;
        if (count) naive_add(&back[row * ldx + c], (double)d[i * ld + c]);
        for (uint32_t e = offsets[i]; e < offsets[i + 1]; e++) {
            const double value = (double)x[index[e] * ldx + c], by = (double)d[i * ld + c] / (count * wide[i * ld + c]);
            naive_sum *at = &back[index[e] * ldx + c];
            naive_add(at, by * (value - mean));
            at->size += fabs(by) * (fabs(value) + size); /* the mean is rounded at its entries' size */
        }
    }
    k->segment_mean(k, &s, cols, x, ldx, means, ld);
    k->segment_max(k, &s, cols, x, ldx, most, ld, chosen);
    k->segment_deviation(k, &s, cols, x, ldx, means, spread, ld);
    k->segment_max_back(k, rows, cols, chosen, d, ld, dx, ldx);
    k->segment_deviation_back(k, &s, cols, x, ldx, means, spread, d, ld, dx, ldx);
    assert_close(most, top, rows * ld, "most");
    for (uint32_t n = 0; n < rows * ld; n++) { /* of entries that are nearly equal, rounding is most of the variance */
        wide[n] *= wide[n];
        spread[n] *= spread[n];
    }
    assert_close(spread, wide, rows * ld, "variance");
    assert_sums(dx, back, from * ldx, "dx");
    free(offsets), free(index), free(chosen), free(x), free(means), free(d);
}

static void segments_have_most_and_deviation(void **state) {
    (void)state;
    each_table(check_spread);
}

static void the_most_of_no_number_is_none(void **state) {
    (void)state;
    const uint32_t offsets[] = {0, 3};
    const weir_segments s = {.count = 1, .offsets = offsets};
    const weir_kernels *tables[] = {weir_kernels_cpu(), &weir_loops_plain};
    for (unsigned t = 0; t < 2; t++) {
        for (unsigned at = 0; at < 3; at++) {
            weir_real x[] = {1, 2, 3}, out;
            uint32_t chosen;
            x[at] = (weir_real)NAN;
            tables[t]->segment_max(tables[t], &s, 1, x, 1, &out, 1, &chosen);
            assert_true(isnan(out) && chosen == at);
        }
    }
}

/* Of some arrays the most, number by number; the first of equals has it. */
static void check_take_most(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const uint32_t count = rows * cols, arrays = 1 + below(4);
    weir_real *x[4], *dx[4], *out = random_reals(count), *d = random_reals(count);
    uint32_t *chosen = array(count, sizeof *chosen);
    for (uint32_t a = 0; a < arrays; a++) {
        x[a] = random_reals(count);
        dx[a] = random_reals(count);
        for (uint32_t i = 0; a > 0 && i < count; i += 3)
            x[a][i] = x[a - 1][i];
        k->take_most(k, count, a, x[a], out, chosen);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t best = 0;
        for (uint32_t a = 1; a < arrays; a++)
            best = x[a][i] > x[best][i] ? a : best;
        assert_true(out[i] == x[best][i]);
        assert_int_equal(chosen[i], best);
    }
    for (uint32_t a = 0; a < arrays; a++) {
        double *back = doubles_of(dx[a], count);
        for (uint32_t i = 0; i < count; i++)
            back[i] += chosen[i] == a ? (double)d[i] : 0;
        k->take_most_back(k, count, a, chosen, d, dx[a]);
        assert_close(dx[a], back, count, "dx");
        free(x[a]);
    }
    const weir_real nan[] = {NAN, 1}, one[] = {1, 1};
    weir_real of_nan[2];
    uint32_t who[2];
    k->take_most(k, 2, 0, one, of_nan, who);
    k->take_most(k, 2, 1, nan, of_nan, who);
    k->take_most(k, 2, 2, one, of_nan, who);
    assert_true(isnan(of_nan[0]) && who[0] == 1 && of_nan[1] == 1 && who[1] == 0);
    free(d), free(out), free(chosen);
}

static void arrays_have_a_most(void **state) {
    (void)state;
    each_table(check_take_most);
}

static void check_amplify(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    uint32_t *offsets = array(rows + 1, sizeof *offsets);
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(4);
    const weir_segments s = {.count = rows, .offsets = offsets, .each = below(3) ? 0 : 2.5};
    weir_real *x = random_reals(3 * rows * cols), *d = random_reals(3 * rows * cols);
    double *expected = doubles_of(x, 3 * rows * cols), *back = doubles_of(d, 3 * rows * cols);
    for (uint32_t n = 0; n < rows * cols; n++) {
        const uint32_t i = n / cols, at = 3 * i * cols + n % cols;
        const double scale = log(1 + (s.each > 0 ? s.each : 1) * ((double)offsets[i + 1] - (double)offsets[i]));
        expected[at + cols] = scale * expected[at];
        expected[at + 2 * cols] = scale > 0 ? expected[at] / scale : 0;
        back[at] += scale * back[at + cols] + (scale > 0 ? back[at + 2 * cols] / scale : 0);
    }
    k->segment_amplify(k, &s, cols, x);
    k->segment_amplify_back(k, &s, cols, d);
    assert_close(x, expected, 3 * rows * cols, "amplified");
    assert_close(d, back, 3 * rows * cols, "dx");
    free(offsets);
}

static void segments_are_amplified(void **state) {
    (void)state;
    each_table(check_amplify);
}

static void check_more(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const size_t n = rows * cols;
    weir_real *x = random_reals(n), *out = random_reals(n), *d = random_reals(n), *dx = random_reals(n);
    weir_real more = (weir_real)weir_rng_normal(&rng), *dmore = random_reals(1);
    double *expected = doubles_of(out, n), *back = doubles_of(dx, n), *sum = doubles_of(dmore, 1);
    for (size_t i = 0; i < n; i++) {
        expected[i] += (1 + (double)more) * (double)x[i];
        back[i] += (1 + (double)more) * (double)d[i];
        *sum += (double)x[i] * (double)d[i];
    }
    k->add_more(k, n, &more, x, out);
    k->add_more_back(k, n, &more, x, d, dmore, dx);
    assert_close(out, expected, n, "more");
    assert_close(dx, back, n, "dx");
    *sum /= 100; /* of 2,800 terms: what is rounded is measured by their sizes, not by what they add up to */
    *dmore /= 100;
    assert_close(dmore, sum, 1, "dmore");
    free(x), free(d);
}

static void more_is_added(void **state) {
    (void)state;
    each_table(check_more);
}

/* --- attention --------------------------------------------------------------------------------------------------- */

/* Segments of up to five entries, some empty, among `from` rows. */
static weir_segments random_segments(uint32_t rows, uint32_t from) {
    uint32_t *offsets = array(rows + 1, sizeof *offsets);
    for (uint32_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + below(6);
    return (weir_segments){.count = rows, .offsets = offsets, .index = random_index(offsets[rows], from)};
}

static void free_segments(weir_segments *s) {
    free((void *)(uintptr_t)s->offsets);
    free((void *)(uintptr_t)s->index);
}

/* Segment of an entry. */
static uint32_t segment_of(const weir_segments *s, uint32_t entry) {
    uint32_t i = 0;
    while (s->offsets[i + 1] <= entry)
        i++;
    return i;
}

static void check_scores(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const uint32_t heads = 1 + below(4), width = 1 + cols / 4, from = 1 + below(9);
    weir_segments s = random_segments(rows, from);
    const uint32_t entries = s.offsets[rows];
    cols = heads * width;
    weir_real *x = random_reals(from * cols), *q = random_reals(rows * cols), *ed = random_reals(entries * cols);
    weir_real *w = random_reals(cols), *scores = random_reals(entries * heads), *d = random_reals(entries * heads);
    weir_real *dx = random_reals(from * cols), *dq = random_reals(rows * cols), *de = random_reals(entries * cols);
    weir_real *dw = random_reals(cols);
    double *expected = array(entries * heads, sizeof *expected), *bx = doubles_of(dx, from * cols);
    double *bq = doubles_of(dq, rows * cols), *be = array(entries * cols, sizeof *be), *bw = doubles_of(dw, cols);
    for (uint32_t n = 0; n < entries * cols; n++) {
        const uint32_t e = n / cols, c = n % cols, i = segment_of(&s, e), at = e * heads + c / width;
        double z = (double)x[s.index[e] * cols + c] + (double)q[i * cols + c] + (double)ed[n];
        if (fabs(z) < 1e-3) { /* rounding would decide on which side of the kink it is */
            ed[n] += 1;
            z = (double)x[s.index[e] * cols + c] + (double)q[i * cols + c] + (double)ed[n];
        }
        const double slope = z > 0 ? 1 : 0.2;
        expected[at] += (double)w[c] * slope * z;
        bx[s.index[e] * cols + c] += (double)d[at] * (double)w[c] * slope;
        bq[i * cols + c] += (double)d[at] * (double)w[c] * slope;
        be[n] = (double)d[at] * (double)w[c] * slope;
        bw[c] += (double)d[at] * slope * z;
    }
    const weir_attention p = {.heads = heads, .cols = cols, .keys = x, .queries = q, .edges = ed, .weights = w};
    k->segment_scores(k, &s, &p, scores);
    k->segment_scores_back(k, &s, &p, d, &(weir_attention_back){dx, dq, de, dw});
    assert_close(scores, expected, entries * heads, "score");
    assert_close(dx, bx, from * cols, "dkeys");
    assert_close(dq, bq, rows * cols, "dqueries");
    assert_close(de, be, entries * cols, "dedges");
    assert_close(dw, bw, cols, "dweights");
    free(x), free(q), free(ed), free(w), free(d);
    free_segments(&s);
}

static void entries_have_scores(void **state) {
    (void)state;
    each_table(check_scores);
}

/* Also of scores so far from each other that all but the best have none. */
static void check_softmax(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const uint32_t heads = 1 + cols % 4;
    weir_segments s = random_segments(rows, 1);
    const uint32_t entries = s.offsets[rows];
    weir_real *scores = random_reals(entries * heads), *d = random_reals(entries * heads);
    const double scale = below(4) ? 1 : 1e4;
    for (uint32_t n = 0; n < entries * heads; n++)
        scores[n] *= (weir_real)scale;
    double *expected = array(entries * heads, sizeof *expected), *back = array(entries * heads, sizeof *back);
    for (uint32_t n = 0; n < entries * heads; n++) {
        const uint32_t i = segment_of(&s, n / heads), h = n % heads;
        double sum = 0;
        for (uint32_t e = s.offsets[i]; e < s.offsets[i + 1]; e++)
            sum += exp((double)scores[e * heads + h] - (double)scores[n]);
        expected[n] = 1 / sum;
    }
    for (uint32_t n = 0; n < entries * heads; n++) { /* the derivative of share m by score n is m * ((m is n) - n) */
        const uint32_t i = segment_of(&s, n / heads), h = n % heads;
        for (uint32_t e = s.offsets[i]; e < s.offsets[i + 1]; e++) {
            const uint32_t m = e * heads + h;
            back[n] += (double)d[m] * expected[m] * ((m == n) - expected[n]);
        }
    }
    k->segment_softmax(k, &s, heads, scores);
    k->segment_softmax_back(k, &s, heads, scores, d);
    assert_close(scores, expected, entries * heads, "share");
    assert_close(d, back, entries * heads, "dscore");
    free_segments(&s);
}

static void scores_become_shares(void **state) {
    (void)state;
    each_table(check_softmax);
}

static void a_share_of_no_number_is_none(void **state) {
    (void)state;
    const uint32_t offsets[] = {0, 2, 4};
    const weir_segments s = {.count = 2, .offsets = offsets};
    const weir_kernels *tables[] = {weir_kernels_cpu(), &weir_loops_plain};
    for (unsigned t = 0; t < 2; t++) {
        weir_real scores[] = {1, (weir_real)NAN, 3, 3};
        tables[t]->segment_softmax(tables[t], &s, 1, scores);
        assert_true(isnan(scores[0]) && isnan(scores[1]) && scores[2] == (weir_real)0.5 && scores[3] == scores[2]);
    }
}

static void check_mix(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const uint32_t heads = 1 + below(4), width = 1 + cols / 4, from = 1 + below(9);
    weir_segments s = random_segments(rows, from);
    const uint32_t entries = s.offsets[rows];
    cols = heads * width;
    weir_real *x = random_reals(from * cols), *shares = random_reals(entries * heads), *out = random_reals(rows * cols);
    weir_real *dout = random_reals(rows * cols), *dx = random_reals(from * cols), *ds = random_reals(entries * heads);
    double *expected = doubles_of(out, rows * cols), *bx = doubles_of(dx, from * cols);
    double *bs = array(entries * heads, sizeof *bs);
    for (uint32_t n = 0; n < entries * cols; n++) {
        const uint32_t e = n / cols, c = n % cols, i = segment_of(&s, e), at = e * heads + c / width;
        expected[i * cols + c] += (double)shares[at] * (double)x[s.index[e] * cols + c];
        bx[s.index[e] * cols + c] += (double)shares[at] * (double)dout[i * cols + c];
        bs[at] += (double)x[s.index[e] * cols + c] * (double)dout[i * cols + c];
    }
    k->segment_mix(k, &s, heads, shares, cols, x, out);
    k->segment_mix_back(k, &s, heads, shares, cols, x, dout, ds, dx);
    assert_close(out, expected, rows * cols, "mixed");
    assert_close(ds, bs, entries * heads, "dshare");
    assert_close(dx, bx, from * cols, "dx");
    free(x), free(shares), free(dout);
    free_segments(&s);
}

static void entries_are_mixed(void **state) {
    (void)state;
    each_table(check_mix);
}

static void check_heads(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const uint32_t heads = 1 + below(4), width = 1 + cols / 4;
    cols = heads * width;
    weir_real *x = random_reals(rows * cols), *w = random_reals(cols), *out = random_reals(rows * heads);
    weir_real *d = random_reals(rows * heads), *dx = random_reals(rows * cols), *dw = random_reals(cols);
    double *expected = array(rows * heads, sizeof *expected), *bx = doubles_of(dx, rows * cols);
    double *bw = doubles_of(dw, cols);
    for (uint32_t n = 0; n < rows * cols; n++) {
        const uint32_t c = n % cols, at = n / cols * heads + c / width;
        expected[at] += (double)x[n] * (double)w[c];
        bx[n] += (double)d[at] * (double)w[c];
        bw[c] += (double)d[at] * (double)x[n];
    }
    k->head_products(k, rows, heads, cols, x, w, out);
    k->head_products_back(k, rows, heads, cols, x, w, d, dx, dw);
    assert_close(out, expected, rows * heads, "product");
    assert_close(dx, bx, rows * cols, "dx");
    assert_close(dw, bw, cols, "dweights");
    free(x), free(w), free(d);
}

static void heads_have_products(void **state) {
    (void)state;
    each_table(check_heads);
}

/* Not a byte is read or written: the arrays are not there. */
static void k2_nothing_touches_nothing(void **state) {
    (void)state;
    const uint32_t begin = 0;
    const weir_kernels *k = weir_kernels_cpu();
    k->segment_scores(k, &(weir_segments){.count = 0, .offsets = &begin}, &(weir_attention){.heads = 1, .cols = 5},
                      NULL);
    k->segment_scores_back(k, &(weir_segments){.count = 0, .offsets = &begin}, &(weir_attention){.heads = 1, .cols = 5},
                           NULL, &(weir_attention_back){0});
    k->segment_softmax(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL);
    k->segment_softmax_back(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, NULL);
    k->segment_mix(k, &(weir_segments){.count = 0, .offsets = &begin}, 1, NULL, 5, NULL, NULL);
    k->segment_mix_back(k, &(weir_segments){.count = 0, .offsets = &begin}, 1, NULL, 5, NULL, NULL, NULL, NULL);
    k->head_products(k, 0, 1, 5, NULL, NULL, NULL);
    k->head_products_back(k, 0, 1, 5, NULL, NULL, NULL, NULL, NULL);
    k->segment_sum_back(k, &(weir_segments){.count = 0, .offsets = &begin}, NULL, 5, NULL, NULL);
    k->segment_degrees(k, &(weir_segments){.count = 0, .offsets = &begin}, NULL, 0, NULL, NULL);
    k->add_scaled_rows(k, 0, 5, NULL, NULL, NULL);
    k->segment_max(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5, NULL, 5, NULL);
    k->segment_max_back(k, 0, 5, NULL, NULL, 5, NULL, 5);
    k->segment_deviation(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5, NULL, NULL, 5);
    k->segment_deviation_back(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL, 5, NULL, NULL, NULL, 5, NULL,
                              5);
    k->take_most(k, 0, 1, NULL, NULL, NULL);
    k->take_most_back(k, 0, 1, NULL, NULL, NULL);
    k->segment_amplify(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL);
    k->segment_amplify_back(k, &(weir_segments){.count = 0, .offsets = &begin}, 5, NULL);
}

WEIR_TESTS(WEIR_CASE(degrees_normalise), WEIR_CASE(segments_are_joined), WEIR_CASE(arrays_have_a_most),
           WEIR_CASE(segments_have_most_and_deviation), WEIR_CASE(the_most_of_no_number_is_none),
           WEIR_CASE(segments_are_amplified), WEIR_CASE(more_is_added), WEIR_CASE(entries_have_scores),
           WEIR_CASE(scores_become_shares), WEIR_CASE(a_share_of_no_number_is_none), WEIR_CASE(entries_are_mixed),
           WEIR_CASE(heads_have_products), WEIR_CASE(k2_nothing_touches_nothing))
