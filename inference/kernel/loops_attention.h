/* SPDX-License-Identifier: Apache-2.0 */
/* loops_attention.h - part of loops.h: scores of entries, their softmax within a segment, and rows mixed by that. */

/* A loop needs nothing of its context. NOLINTBEGIN(misc-unused-parameters) */

#define LEAK           ((weir_real)0.2)
#define EXPONENT_LEAST (-87) /* from here on kernel_exp_below_0 has no number */

static void kernel_segment_scores(const weir_kernels *context, const weir_segments *s, const weir_attention *p,
                                  weir_real *scores) {
    const uint32_t heads = p->heads, cols = p->cols, width = cols / heads;
    for (size_t i = 0; i < s->count; i++) {
        const weir_real *query = p->queries + i * cols;
        for (size_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            kernel_prefetch_entry(s, (uint32_t)e, cols, p->keys, cols);
            const weir_real *key = kernel_row_of(p->keys, kernel_entry_row(s, (uint32_t)e), cols);
            const weir_real *edge = p->edges + e * cols;
            for (uint32_t h = 0, first = 0; h < heads; h++, first += width) {
                weir_real sum = 0;
                for (uint32_t c = first; c < first + width; c++) {
                    weir_real z = key[c] + query[c] + edge[c];
                    sum += p->weights[c] * (z > 0 ? z : LEAK * z);
                }
                scores[e * heads + h] = sum;
            }
        }
    }
}

/* Of one entry and head; the arrays begin at its columns. */
static void kernel_score_back(uint32_t width, weir_real d, const weir_real *key, const weir_real *query,
                              const weir_real *edge, const weir_real *weights, weir_real *restrict dkey,
                              weir_real *restrict dquery, weir_real *restrict dedge, weir_real *restrict dweights) {
    for (uint32_t c = 0; c < width; c++) {
        weir_real z = key[c] + query[c] + edge[c], slope = z > 0 ? 1 : LEAK, dz = d * weights[c] * slope;
        dkey[c] += dz;
        dquery[c] += dz;
        dedge[c] = dz;
        dweights[c] += d * slope * z;
    }
}

static void kernel_segment_scores_back(const weir_kernels *context, const weir_segments *s, const weir_attention *p,
                                       const weir_real *dscores, const weir_attention_back *back) {
    const uint32_t heads = p->heads, cols = p->cols, width = cols / heads;
    for (size_t i = 0; i < s->count; i++) {
        for (size_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            const size_t row = (size_t)kernel_entry_row(s, (uint32_t)e) * cols;
            for (uint32_t h = 0, first = 0; h < heads; h++, first += width)
                kernel_score_back(width, dscores[e * heads + h], p->keys + row + first, p->queries + i * cols + first,
                                  p->edges + e * cols + first, p->weights + first, back->keys + row + first,
                                  back->queries + i * cols + first, back->edges + e * cols + first,
                                  back->weights + first);
        }
    }
}

/* The scores of one segment and head, `heads` apart, become distances from the best one. A NaN is passed over in the
 * search, and stays one. */
static void kernel_scores_from_best(size_t count, uint32_t heads, weir_real *scores) {
    weir_real best = scores[0];
    for (size_t e = 1; e < count; e++)
        best = scores[e * heads] > best ? scores[e * heads] : best;
    for (size_t e = 0; e < count; e++)
        scores[e * heads] -= best;
}

/* A NaN stays one, so that its segment's sum shows it. */
static weir_real kernel_exp_of_distance(weir_real x) {
    weir_real power = kernel_exp_below_0(x > EXPONENT_LEAST ? x : EXPONENT_LEAST);
    return x != x ? x : power;
}

static void kernel_segment_softmax(const weir_kernels *context, const weir_segments *s, uint32_t heads,
                                   weir_real *scores) {
    for (size_t i = 0; i < s->count; i++) {
        const size_t count = s->offsets[i + 1] - s->offsets[i];
        weir_real *segment = scores + (size_t)s->offsets[i] * heads;
        for (uint32_t h = 0; count > 0 && h < heads; h++)
            kernel_scores_from_best(count, heads, segment + h);
        for (size_t n = 0; n < count * heads; n++)
            segment[n] = kernel_exp_of_distance(segment[n]);
        for (uint32_t h = 0; h < heads; h++) {
            weir_real sum = 0;
            for (size_t e = 0; e < count; e++)
                sum += segment[e * heads + h];
            for (size_t e = 0; e < count; e++)
                segment[e * heads + h] /= sum;
        }
    }
}

/* With d the gradient of a share:  share * (d - sum of share * d over the segment). */
static void kernel_segment_softmax_back(const weir_kernels *context, const weir_segments *s, uint32_t heads,
                                        const weir_real *shares, weir_real *dshares) {
    for (size_t i = 0; i < s->count; i++) {
        for (uint32_t h = 0; h < heads; h++) {
            weir_real sum = 0;
            for (size_t e = s->offsets[i]; e < s->offsets[i + 1]; e++)
                sum += shares[e * heads + h] * dshares[e * heads + h];
            for (size_t e = s->offsets[i]; e < s->offsets[i + 1]; e++)
                dshares[e * heads + h] = shares[e * heads + h] * (dshares[e * heads + h] - sum);
        }
    }
}

static void kernel_segment_mix(const weir_kernels *context, const weir_segments *s, uint32_t heads,
                               const weir_real *shares, uint32_t cols, const weir_real *x, weir_real *out) {
    const uint32_t width = cols / heads;
    for (size_t i = 0; i < s->count; i++, out += cols) {
        for (size_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            kernel_prefetch_entry(s, (uint32_t)e, cols, x, cols);
            const weir_real *row = kernel_row_of(x, kernel_entry_row(s, (uint32_t)e), cols);
            for (uint32_t h = 0; h < heads; h++)
                kernel_row_add_scaled(width, shares[e * heads + h], row + h * width, out + h * width);
        }
    }
}

static void kernel_segment_mix_back(const weir_kernels *context, const weir_segments *s, uint32_t heads,
                                    const weir_real *shares, uint32_t cols, const weir_real *x, const weir_real *dout,
                                    weir_real *dshares, weir_real *dx) {
    const uint32_t width = cols / heads;
    for (size_t i = 0; i < s->count; i++, dout += cols) {
        for (size_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            const size_t row = (size_t)kernel_entry_row(s, (uint32_t)e) * cols;
            for (uint32_t h = 0; h < heads; h++) {
                dshares[e * heads + h] = kernel_row_product(width, dout + h * width, x + row + h * width);
                kernel_row_add_scaled(width, shares[e * heads + h], dout + h * width, dx + row + h * width);
            }
        }
    }
}

static void kernel_head_products(const weir_kernels *context, uint32_t rows, uint32_t heads, uint32_t cols,
                                 const weir_real *x, const weir_real *weights, weir_real *out) {
    const uint32_t width = cols / heads;
    for (size_t i = 0; i < rows; i++, x += cols)
        for (uint32_t h = 0; h < heads; h++)
            out[i * heads + h] = kernel_row_product(width, x + h * width, weights + h * width);
}

static void kernel_head_products_back(const weir_kernels *context, uint32_t rows, uint32_t heads, uint32_t cols,
                                      const weir_real *x, const weir_real *weights, const weir_real *dout,
                                      weir_real *dx, weir_real *dweights) {
    const uint32_t width = cols / heads;
    for (size_t i = 0; i < rows; i++, x += cols, dx += cols) {
        for (uint32_t h = 0; h < heads; h++) {
            kernel_row_add_scaled(width, dout[i * heads + h], weights + h * width, dx + h * width);
            kernel_row_add_scaled(width, dout[i * heads + h], x + h * width, dweights + h * width);
        }
    }
}

/* NOLINTEND(misc-unused-parameters) */
