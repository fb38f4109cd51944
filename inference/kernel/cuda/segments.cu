/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.cu - what a segment makes of its entries, on the way forward: a thread has one column of one segment, or one
 * head, and goes over the entries in their order, as the loops of the processor do.
 *
 * Neighbouring threads have neighbouring columns, so that a warp reads whole lines of a row.
 */
#include <math.h>

#include "context.h"
#include "draws.h"

#define SEGMENT_LEAK              0.2f
#define SEGMENT_DEVIATION_EPSILON 1e-5f

/* The row of x that an entry is. */
static __device__ __forceinline__ size_t segment_row(const weir_segments *s, uint32_t entry) {
    return s->index ? s->index[entry] : entry;
}

static __device__ __forceinline__ double segment_size(const weir_segments *s, size_t segment) {
    const double entries = s->offsets[segment + 1] - s->offsets[segment];
    return s->each > 0 ? s->each * entries : entries;
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

static __global__ void segment_mean_cells(weir_segments s, uint32_t cols, const weir_real *x, uint32_t ldx,
                                          weir_real *out, uint32_t ldout) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols, col = i % cols;
        const uint32_t begin = s.offsets[segment], end = s.offsets[segment + 1];
        weir_real sum = 0;
        for (uint32_t e = begin; e < end; e++)
            sum += x[segment_row(&s, e) * ldx + col];
        out[segment * ldout + col] = end > begin + 1 ? sum * (1 / static_cast<weir_real>(end - begin)) : sum;
    }
}

static void cuda_segment_mean(const weir_kernels *k, const weir_segments *s, uint32_t cols, const weir_real *x,
                              uint32_t ldx, weir_real *out, uint32_t ldout) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_mean_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, cols, x, ldx, out, ldout);
    cuda_note(c, cudaGetLastError(), "segment_mean");
}

static __global__ void segment_sum_cells(weir_segments s, const weir_real *weights, uint32_t cols, const weir_real *x,
                                         uint32_t ldx, weir_real *out, uint32_t ldout) {
    const weir_real each = s.each > 0 ? static_cast<weir_real>(s.each) : 1;
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols, col = i % cols;
        weir_real sum = 0;
        for (uint32_t e = s.offsets[segment]; e < s.offsets[segment + 1]; e++)
            sum += (weights ? weights[e] : each) * x[segment_row(&s, e) * ldx + col];
        out[segment * ldout + col] = sum;
    }
}

static void cuda_segment_sum(const weir_kernels *k, const weir_segments *s, const weir_real *weights, uint32_t cols,
                             const weir_real *x, uint32_t ldx, weir_real *out, uint32_t ldout) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_sum_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, weights, cols, x, ldx, out,
                ldout);
    cuda_note(c, cudaGetLastError(), "segment_sum");
}

/* --- degrees, and a segment's own row ----------------------------------------------------------------------------- */

static __global__ void segment_degrees_each(weir_segments s, const uint32_t *of, uint32_t first, weir_real *weights,
                                            weir_real *own) {
    for (size_t i = cuda_first(); i < s.count; i += cuda_stride()) {
        const double degree = 1.0 + (s.offsets[i + 1] - s.offsets[i]);
        own[i] = static_cast<weir_real>(1 / degree);
        for (uint32_t e = s.offsets[i]; e < s.offsets[i + 1]; e++) {
            const size_t row = segment_row(&s, e) - first;
            weights[e] = static_cast<weir_real>(1 / sqrt(degree * (of ? 1.0 + (of[row + 1] - of[row]) : degree)));
        }
    }
}

static void cuda_segment_degrees(const weir_kernels *k, const weir_segments *s, const uint32_t *of, uint32_t first,
                                 weir_real *weights, weir_real *own) {
    weir_cuda_context *c = cuda_context_of(k);
    if (s->count == 0) return;
    WEIR_LAUNCH(segment_degrees_each, cuda_blocks_of(s->count), CUDA_BLOCK, 0, c->stream, *s, of, first, weights, own);
    cuda_note(c, cudaGetLastError(), "segment_degrees");
}

/* Segments lie one behind the other, so each knows where it begins among the joined ones. */
static __global__ void segment_join_each(weir_segments s, uint32_t first, uint32_t *offsets, uint32_t *index,
                                         uint32_t *origin) {
    for (size_t i = cuda_first(); i < s.count; i += cuda_stride()) {
        const uint32_t segment = static_cast<uint32_t>(i), begin = s.offsets[i], end = s.offsets[i + 1];
        uint32_t at = begin - s.offsets[0] + segment;
        offsets[i] = at;
        for (uint32_t e = begin; e < end; e++, at++) {
            index[at] = static_cast<uint32_t>(segment_row(&s, e));
            origin[at] = e;
        }
        index[at] = first + segment;
        origin[at] = WEIR_NO_SLOT;
        if (segment + 1 == s.count) offsets[s.count] = at + 1;
    }
}

static void cuda_segment_join(const weir_kernels *k, const weir_segments *s, uint32_t first, uint32_t *offsets,
                              uint32_t *index, uint32_t *origin) {
    weir_cuda_context *c = cuda_context_of(k);
    if (s->count == 0)
        cuda_note(c, cudaMemsetAsync(offsets, 0, sizeof *offsets, c->stream), "segment_join");
    else
        WEIR_LAUNCH(segment_join_each, cuda_blocks_of(s->count), CUDA_BLOCK, 0, c->stream, *s, first, offsets, index,
                    origin);
    cuda_note(c, cudaGetLastError(), "segment_join");
}

/* --- the most, and how far the entries differ --------------------------------------------------------------------- */

static __global__ void segment_max_cells(weir_segments s, uint32_t cols, const weir_real *x, uint32_t ldx,
                                         weir_real *out, uint32_t ldout, uint32_t *chosen) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols, col = i % cols;
        const uint32_t begin = s.offsets[segment], end = s.offsets[segment + 1];
        size_t row = end > begin ? segment_row(&s, begin) : WEIR_NO_SLOT;
        weir_real most = end > begin ? x[row * ldx + col] : 0;
        for (uint32_t e = begin + 1; e < end; e++) {
            const weir_real value = x[segment_row(&s, e) * ldx + col];
            const bool taken = value > most || value != value; /* a NaN is the most */
            row = taken ? segment_row(&s, e) : row;
            most = taken ? value : most;
        }
        out[segment * ldout + col] = most;
        chosen[i] = static_cast<uint32_t>(row);
    }
}

static void cuda_segment_max(const weir_kernels *k, const weir_segments *s, uint32_t cols, const weir_real *x,
                             uint32_t ldx, weir_real *out, uint32_t ldout, uint32_t *chosen) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_max_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, cols, x, ldx, out, ldout,
                chosen);
    cuda_note(c, cudaGetLastError(), "segment_max");
}

static __global__ void segment_deviation_cells(weir_segments s, uint32_t cols, const weir_real *x, uint32_t ldx,
                                               const weir_real *means, weir_real *out, uint32_t ldout) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols, col = i % cols, at = segment * ldout + col;
        const uint32_t begin = s.offsets[segment], end = s.offsets[segment + 1];
        weir_real sum = 0;
        for (uint32_t e = begin; e < end; e++) {
            const weir_real off = x[segment_row(&s, e) * ldx + col] - means[at];
            sum += off * off;
        }
        out[at] = end > begin ? sqrtf(sum / static_cast<weir_real>(end - begin) + SEGMENT_DEVIATION_EPSILON) : 0;
    }
}

static void cuda_segment_deviation(const weir_kernels *k, const weir_segments *s, uint32_t cols, const weir_real *x,
                                   uint32_t ldx, const weir_real *means, weir_real *out, uint32_t ldout) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_deviation_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, cols, x, ldx, means, out,
                ldout);
    cuda_note(c, cudaGetLastError(), "segment_deviation");
}

static __global__ void segment_amplify_cells(weir_segments s, uint32_t cols, weir_real *x, bool back) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols;
        weir_real *row = x + segment * 3 * cols + i % cols;
        const weir_real scale = static_cast<weir_real>(log1p(segment_size(&s, segment)));
        if (back) {
            row[0] += scale * row[cols] + (scale > 0 ? row[2 * cols] / scale : 0);
        } else {
            row[cols] = row[0] * scale;
            row[2 * cols] = scale > 0 ? row[0] / scale : 0;
        }
    }
}

static void segment_amplify_launch(const weir_kernels *k, const weir_segments *s, uint32_t cols, weir_real *x,
                                   bool back) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_amplify_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, cols, x, back);
    cuda_note(c, cudaGetLastError(), "segment_amplify");
}

static void cuda_segment_amplify(const weir_kernels *k, const weir_segments *s, uint32_t cols, weir_real *x) {
    segment_amplify_launch(k, s, cols, x, false);
}

static void cuda_segment_amplify_back(const weir_kernels *k, const weir_segments *s, uint32_t cols, weir_real *dx) {
    segment_amplify_launch(k, s, cols, dx, true);
}

static __global__ void segment_log_count_each(weir_segments s, weir_real *out, uint32_t ldout) {
    for (size_t i = cuda_first(); i < s.count; i += cuda_stride())
        out[i * ldout] = static_cast<weir_real>(log1p(segment_size(&s, i)));
}

static void cuda_segment_log_count(const weir_kernels *k, const weir_segments *s, weir_real *out, uint32_t ldout) {
    weir_cuda_context *c = cuda_context_of(k);
    if (s->count == 0) return;
    WEIR_LAUNCH(segment_log_count_each, cuda_blocks_of(s->count), CUDA_BLOCK, 0, c->stream, *s, out, ldout);
    cuda_note(c, cudaGetLastError(), "segment_log_count");
}

static __global__ void segment_zero_empty_cells(weir_segments s, uint32_t cols, weir_real *x, uint32_t ldx) {
    const size_t cells = static_cast<size_t>(s.count) * cols;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const size_t segment = i / cols;
        if (s.offsets[segment] == s.offsets[segment + 1]) x[segment * ldx + i % cols] = 0;
    }
}

static void cuda_segment_zero_empty(const weir_kernels *k, const weir_segments *s, uint32_t cols, weir_real *x,
                                    uint32_t ldx) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_zero_empty_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, cols, x, ldx);
    cuda_note(c, cudaGetLastError(), "segment_zero_empty");
}

/* --- attention ---------------------------------------------------------------------------------------------------- */

/* A thread an entry and head. Which segment an entry is in is found by halving, as the list has no other way there. */
static __device__ uint32_t segment_of(const weir_segments *s, uint32_t entry) {
    uint32_t low = 0, high = s->count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->offsets[middle + 1] > entry)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static __global__ void segment_scores_cells(weir_segments s, weir_attention p, weir_real *scores) {
    const uint32_t width = p.cols / p.heads, begin = s.offsets[0];
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.entries - begin) * p.heads; i += cuda_stride()) {
        const uint32_t entry = begin + static_cast<uint32_t>(i / p.heads), head = static_cast<uint32_t>(i % p.heads);
        const weir_real *key = p.keys + segment_row(&s, entry) * p.cols;
        const weir_real *query = p.queries + static_cast<size_t>(segment_of(&s, entry)) * p.cols;
        const weir_real *edge = p.edges + static_cast<size_t>(entry) * p.cols;
        weir_real sum = 0;
        for (uint32_t col = head * width; col < (head + 1) * width; col++) {
            const weir_real z = key[col] + query[col] + edge[col];
            sum += p.weights[col] * (z > 0 ? z : SEGMENT_LEAK * z);
        }
        scores[static_cast<size_t>(entry) * p.heads + head] = sum;
    }
}

static void cuda_segment_scores(const weir_kernels *k, const weir_segments *s, const weir_attention *p,
                                weir_real *scores) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->entries) * p->heads;
    if (s->count == 0 || cells == 0) return;
    WEIR_LAUNCH(segment_scores_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, *p, scores);
    cuda_note(c, cudaGetLastError(), "segment_scores");
}

/* A share of an entry as far as it is from the best one, which exp(-87) bounds from below. A NaN stays one. */
static __device__ __forceinline__ weir_real segment_share(weir_real score, weir_real best) {
    const weir_real off = score - best;
    return off != off ? off : expf(off > -87.0f ? off : -87.0f);
}

static __global__ void segment_softmax_heads(weir_segments s, uint32_t heads, weir_real *scores) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * heads; i += cuda_stride()) {
        const size_t segment = i / heads, head = i % heads;
        const size_t begin = s.offsets[segment], end = s.offsets[segment + 1];
        if (begin == end) continue;
        weir_real best = scores[begin * heads + head], sum = 0;
        for (size_t e = begin + 1; e < end; e++)
            best = scores[e * heads + head] > best ? scores[e * heads + head] : best;
        for (size_t e = begin; e < end; e++) {
            const weir_real share = segment_share(scores[e * heads + head], best);
            scores[e * heads + head] = share;
            sum += share;
        }
        for (size_t e = begin; e < end; e++)
            scores[e * heads + head] /= sum;
    }
}

static void cuda_segment_softmax(const weir_kernels *k, const weir_segments *s, uint32_t heads, weir_real *scores) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * heads;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_softmax_heads, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, heads, scores);
    cuda_note(c, cudaGetLastError(), "segment_softmax");
}

static __global__ void segment_softmax_back_heads(weir_segments s, uint32_t heads, const weir_real *shares,
                                                  weir_real *dshares) {
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * heads; i += cuda_stride()) {
        const size_t segment = i / heads, head = i % heads;
        weir_real sum = 0;
        for (size_t e = s.offsets[segment]; e < s.offsets[segment + 1]; e++)
            sum += shares[e * heads + head] * dshares[e * heads + head];
        for (size_t e = s.offsets[segment]; e < s.offsets[segment + 1]; e++)
            dshares[e * heads + head] = shares[e * heads + head] * (dshares[e * heads + head] - sum);
    }
}

static void cuda_segment_softmax_back(const weir_kernels *k, const weir_segments *s, uint32_t heads,
                                      const weir_real *shares, weir_real *dshares) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * heads;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_softmax_back_heads, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, heads, shares,
                dshares);
    cuda_note(c, cudaGetLastError(), "segment_softmax_back");
}

static __global__ void segment_mix_cells(weir_segments s, uint32_t heads, const weir_real *shares, uint32_t cols,
                                         const weir_real *x, weir_real *out) {
    const uint32_t width = cols / heads;
    for (size_t i = cuda_first(); i < static_cast<size_t>(s.count) * cols; i += cuda_stride()) {
        const size_t segment = i / cols, col = i % cols, head = col / width;
        weir_real sum = out[i];
        for (uint32_t e = s.offsets[segment]; e < s.offsets[segment + 1]; e++)
            sum += shares[static_cast<size_t>(e) * heads + head] * x[segment_row(&s, e) * cols + col];
        out[i] = sum;
    }
}

static void cuda_segment_mix(const weir_kernels *k, const weir_segments *s, uint32_t heads, const weir_real *shares,
                             uint32_t cols, const weir_real *x, weir_real *out) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(s->count) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(segment_mix_cells, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *s, heads, shares, cols, x, out);
    cuda_note(c, cudaGetLastError(), "segment_mix");
}

/* A segment is one row, whose columns are those of its entries: a thread has a block of draws of one segment. */
static __global__ void segment_dropout_blocks(weir_segments s, uint32_t cols, weir_dropout d, uint32_t limit,
                                              weir_real kept, weir_real *x) {
    for (size_t i = blockIdx.x; i < s.count; i += gridDim.x) {
        const size_t begin = static_cast<size_t>(s.offsets[i]) * cols,
                     end = static_cast<size_t>(s.offsets[i + 1]) * cols;
        for (size_t at = threadIdx.x * static_cast<size_t>(CUDA_DRAWS); begin + at < end;
             at += static_cast<size_t>(CUDA_BLOCK) * CUDA_DRAWS) {
            const size_t left = end - begin - at;
            cuda_drop_block(&d, d.keys ? d.keys[i] : i, static_cast<uint32_t>(at / CUDA_DRAWS), limit, kept,
                            static_cast<uint32_t>(left < CUDA_DRAWS ? left : CUDA_DRAWS), x + begin + at);
        }
    }
}

static void cuda_segment_dropout(const weir_kernels *k, const weir_segments *s, uint32_t cols, const weir_dropout *d,
                                 weir_real *x) {
    weir_cuda_context *c = cuda_context_of(k);
    const uint32_t limit = cuda_drop_limit(d);
    if (s->count == 0 || cols == 0) return;
    WEIR_LAUNCH(segment_dropout_blocks, s->count < CUDA_BLOCKS_MAX ? s->count : CUDA_BLOCKS_MAX, CUDA_BLOCK, 0,
                c->stream, *s, cols, *d, limit, cuda_drop_kept(limit), x);
    cuda_note(c, cudaGetLastError(), "segment_dropout");
}

void weir_cuda_segments(weir_kernels *kernels) {
    kernels->segment_mean = cuda_segment_mean;
    kernels->segment_sum = cuda_segment_sum;
    kernels->segment_degrees = cuda_segment_degrees;
    kernels->segment_join = cuda_segment_join;
    kernels->segment_max = cuda_segment_max;
    kernels->segment_deviation = cuda_segment_deviation;
    kernels->segment_amplify = cuda_segment_amplify;
    kernels->segment_amplify_back = cuda_segment_amplify_back;
    kernels->segment_log_count = cuda_segment_log_count;
    kernels->segment_zero_empty = cuda_segment_zero_empty;
    kernels->segment_scores = cuda_segment_scores;
    kernels->segment_softmax = cuda_segment_softmax;
    kernels->segment_softmax_back = cuda_segment_softmax_back;
    kernels->segment_mix = cuda_segment_mix;
    kernels->segment_dropout = cuda_segment_dropout;
}
