/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.cu - what layers do number by number, a thread each: no sum is among it that needs an order.
 *
 * The arithmetic is that of loops.h, with what it says of a NaN.
 */
#include <math.h>

#include "context.h"
#include "draws.h"

/* --- indices ------------------------------------------------------------------------------------------------------ */

static __global__ void layer_compose(size_t count, const uint32_t *outer, const uint32_t *inner, uint32_t *out) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        out[i] = outer[inner[i]];
}

static void cuda_compose(const weir_kernels *k, size_t count, const uint32_t *outer, const uint32_t *inner,
                         uint32_t *out) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(layer_compose, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, outer, inner, out);
    cuda_note(c, cudaGetLastError(), "compose");
}

static __global__ void layer_rebase(size_t count, const uint32_t *index, uint32_t first, uint32_t *out) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        out[i] = index[i] - first;
}

static void cuda_rebase(const weir_kernels *k, size_t count, const uint32_t *index, uint32_t first, uint32_t *out) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(layer_rebase, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, index, first, out);
    cuda_note(c, cudaGetLastError(), "rebase");
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static __global__ void layer_embed(uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride,
                                   const weir_real *table, weir_real *out) {
    const size_t cells = static_cast<size_t>(rows) * cols;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const uint32_t slot = slots[i / cols * stride];
        if (slot != WEIR_NO_SLOT) out[i] += table[static_cast<size_t>(slot) * cols + i % cols];
    }
}

static void cuda_embed(const weir_kernels *k, uint32_t rows, uint32_t cols, const uint32_t *slots, uint32_t stride,
                       const weir_real *table, weir_real *out) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(layer_embed, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, rows, cols, slots, stride, table, out);
    cuda_note(c, cudaGetLastError(), "embed");
}

static __global__ void layer_bias(size_t cells, uint32_t cols, const weir_real *bias, weir_real *x) {
    for (size_t i = cuda_first(); i < cells; i += cuda_stride())
        x[i] += bias[i % cols];
}

static void cuda_bias(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *bias, weir_real *x) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(layer_bias, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, cells, cols, bias, x);
    cuda_note(c, cudaGetLastError(), "bias");
}

/* A NaN stays one: fmaxf would make it a 0. */
static __global__ void layer_bias_relu(size_t cells, uint32_t cols, const weir_real *bias, weir_real *x) {
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const weir_real sum = x[i] + bias[i % cols];
        x[i] = sum < 0 ? 0 : sum;
    }
}

static void cuda_bias_relu(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *bias, weir_real *x) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(layer_bias_relu, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, cells, cols, bias, x);
    cuda_note(c, cudaGetLastError(), "bias_relu");
}

static __global__ void layer_relu_back(size_t count, const weir_real *x, weir_real *dx) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        dx[i] = x[i] > 0 ? dx[i] : 0;
}

static void cuda_relu_back(const weir_kernels *k, size_t count, const weir_real *x, weir_real *dx) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(layer_relu_back, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, x, dx);
    cuda_note(c, cudaGetLastError(), "relu_back");
}

static __global__ void layer_add_scaled_rows(size_t cells, uint32_t cols, const weir_real *factors, const weir_real *x,
                                             weir_real *out) {
    for (size_t i = cuda_first(); i < cells; i += cuda_stride())
        out[i] += factors[i / cols] * x[i];
}

static void cuda_add_scaled_rows(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *factors,
                                 const weir_real *x, weir_real *out) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    if (cells == 0) return;
    WEIR_LAUNCH(layer_add_scaled_rows, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, cells, cols, factors, x, out);
    cuda_note(c, cudaGetLastError(), "add_scaled_rows");
}

/* --- arrays that are put together --------------------------------------------------------------------------------- */

/* A NaN is taken, and then nothing is above it. */
static __global__ void layer_take_most(size_t count, uint32_t number, const weir_real *x, weir_real *out,
                                       uint32_t *chosen) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride()) {
        if (number != 0 && !(x[i] > out[i]) && x[i] == x[i]) continue;
        out[i] = x[i];
        chosen[i] = number;
    }
}

static void cuda_take_most(const weir_kernels *k, size_t count, uint32_t number, const weir_real *x, weir_real *out,
                           uint32_t *chosen) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(layer_take_most, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, number, x, out, chosen);
    cuda_note(c, cudaGetLastError(), "take_most");
}

static __global__ void layer_take_most_back(size_t count, uint32_t number, const uint32_t *chosen,
                                            const weir_real *dout, weir_real *dx) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        if (chosen[i] == number) dx[i] += dout[i];
}

static void cuda_take_most_back(const weir_kernels *k, size_t count, uint32_t number, const uint32_t *chosen,
                                const weir_real *dout, weir_real *dx) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(layer_take_most_back, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, number, chosen, dout, dx);
    cuda_note(c, cudaGetLastError(), "take_most_back");
}

static __global__ void layer_add_more(size_t count, const weir_real *more, const weir_real *x, weir_real *out) {
    const weir_real factor = 1 + *more;
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        out[i] += factor * x[i];
}

static void cuda_add_more(const weir_kernels *k, size_t count, const weir_real *more, const weir_real *x,
                          weir_real *out) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(layer_add_more, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, more, x, out);
    cuda_note(c, cudaGetLastError(), "add_more");
}

/* --- dropout ------------------------------------------------------------------------------------------------------ */

static __global__ void layer_dropout(uint32_t rows, uint32_t cols, weir_dropout d, uint32_t limit, weir_real kept,
                                     weir_real *x) {
    const uint32_t blocks = cols / CUDA_DRAWS + (cols % CUDA_DRAWS != 0);
    const size_t items = static_cast<size_t>(rows) * blocks;
    for (size_t i = cuda_first(); i < items; i += cuda_stride()) {
        const size_t row = i / blocks;
        const uint32_t block = static_cast<uint32_t>(i % blocks), first = block * CUDA_DRAWS;
        cuda_drop_block(&d, d.keys ? d.keys[row] : row, block, limit, kept, cols - first, x + row * cols + first);
    }
}

static void cuda_dropout(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_dropout *d, weir_real *x) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    const uint32_t limit = cuda_drop_limit(d);
    if (cells == 0) return;
    WEIR_LAUNCH(layer_dropout, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, rows, cols, *d, limit,
                cuda_drop_kept(limit), x);
    cuda_note(c, cudaGetLastError(), "dropout");
}

/* --- time --------------------------------------------------------------------------------------------------------- */

#define LAYER_FIRST_CENTRE    0.69314718055994531 /* log(1 + 1 s)      */
#define LAYER_LAST_CENTRE     17.358207530835315  /* log(1 + 400 days) */
#define LAYER_SPACING         ((LAYER_LAST_CENTRE - LAYER_FIRST_CENTRE) / (WEIR_TIME_CODE_COUNT - 1))
#define LAYER_AGE_SECONDS_MAX 4e9 /* 127 years */

static __device__ __forceinline__ double layer_age_seconds(const weir_ages *a, size_t i) {
    const size_t parent = a->parents ? a->parents[i] : i;
    const double us =
        static_cast<double>(a->before_us[a->groups[parent]]) - static_cast<double>(a->times[a->parents ? i : 0]);
    const double seconds = us > 0 ? us * 1e-6 : 0;
    return seconds < LAYER_AGE_SECONDS_MAX ? seconds : LAYER_AGE_SECONDS_MAX;
}

/* A thread a bump: the logarithm is worked out again for each, and what is written then lies together. */
static __global__ void layer_time_code(uint32_t rows, weir_ages ages, weir_real *out, uint32_t ldout) {
    const size_t cells = static_cast<size_t>(rows) * WEIR_TIME_CODE_COUNT;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const size_t row = i / WEIR_TIME_CODE_COUNT, bump = i % WEIR_TIME_CODE_COUNT;
        const weir_real log = logf(static_cast<weir_real>(1 + layer_age_seconds(&ages, row))),
                        place =
                            (log - static_cast<weir_real>(LAYER_FIRST_CENTRE)) / static_cast<weir_real>(LAYER_SPACING),
                        distance = place - static_cast<weir_real>(bump);
        out[row * ldout + bump] = expf(-distance * distance);
    }
}

static void cuda_time_code(const weir_kernels *k, uint32_t rows, const weir_ages *ages, weir_real *out,
                           uint32_t ldout) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * WEIR_TIME_CODE_COUNT;
    if (cells == 0) return;
    WEIR_LAUNCH(layer_time_code, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, rows, *ages, out, ldout);
    cuda_note(c, cudaGetLastError(), "time_code");
}

void weir_cuda_layers(weir_kernels *kernels) {
    kernels->compose = cuda_compose;
    kernels->rebase = cuda_rebase;
    kernels->embed = cuda_embed;
    kernels->bias = cuda_bias;
    kernels->bias_relu = cuda_bias_relu;
    kernels->relu_back = cuda_relu_back;
    kernels->add_scaled_rows = cuda_add_scaled_rows;
    kernels->take_most = cuda_take_most;
    kernels->take_most_back = cuda_take_most_back;
    kernels->add_more = cuda_add_more;
    kernels->dropout = cuda_dropout;
    kernels->time_code = cuda_time_code;
}
