/* SPDX-License-Identifier: Apache-2.0 */
/* flat.cu - kernels of flat arrays, rows that are taken or zeroed, and sums. */
#include "context.h"

/* --- sums --------------------------------------------------------------------------------------------------------- */

static __global__ void flat_add_parts(unsigned parts, const double *of, double *sum) {
    double own = 0;
    for (unsigned i = threadIdx.x; i < parts; i += CUDA_BLOCK)
        own += of[i];
    const double all = cuda_block_sum(own);
    if (threadIdx.x == 0) *sum += all;
}

void weir_cuda_add_parts(weir_cuda_context *c, unsigned parts, double *sum) {
    WEIR_LAUNCH(flat_add_parts, 1, CUDA_BLOCK, 0, c->stream, parts, c->parts, sum);
    cuda_note(c, cudaGetLastError(), "sum");
}

static __global__ void flat_square_sum(size_t count, const weir_real *x, double *parts) {
    double own = 0;
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        own += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double all = cuda_block_sum(own);
    if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

static void cuda_square_sum(const weir_kernels *k, size_t count, const weir_real *x, double *sum) {
    weir_cuda_context *c = cuda_context_of(k);
    const unsigned blocks = cuda_blocks_of(count);
    if (count == 0) return;
    WEIR_LAUNCH(flat_square_sum, blocks, CUDA_BLOCK, 0, c->stream, count, x, c->parts);
    cuda_note(c, cudaGetLastError(), "square_sum");
    weir_cuda_add_parts(c, blocks, sum);
}

/* Where cell i of the rows listed stands in the table. */
static __device__ __forceinline__ size_t flat_cell(const weir_row_list *rows, size_t i) {
    const size_t row = i / rows->cols;
    return (rows->ids ? rows->ids[row] : row) * rows->cols + i % rows->cols;
}

static __global__ void flat_square_sum_rows(weir_row_list rows, const weir_real *x, double *parts) {
    const size_t cells = static_cast<size_t>(rows.count) * rows.cols;
    double own = 0;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const double cell = static_cast<double>(x[flat_cell(&rows, i)]);
        own += cell * cell;
    }
    const double all = cuda_block_sum(own);
    if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

static void cuda_square_sum_rows(const weir_kernels *k, const weir_row_list *rows, const weir_real *x, double *sum) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows->count) * rows->cols;
    const unsigned blocks = cuda_blocks_of(cells);
    if (cells == 0) return;
    WEIR_LAUNCH(flat_square_sum_rows, blocks, CUDA_BLOCK, 0, c->stream, *rows, x, c->parts);
    cuda_note(c, cudaGetLastError(), "square_sum_rows");
    weir_cuda_add_parts(c, blocks, sum);
}

/* --- cell by cell ------------------------------------------------------------------------------------------------- */

static __global__ void flat_add(size_t count, const weir_real *x, weir_real *y) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        y[i] += x[i];
}

static void cuda_add(const weir_kernels *k, size_t count, const weir_real *x, weir_real *y) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(flat_add, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, x, y);
    cuda_note(c, cudaGetLastError(), "add");
}

static __global__ void flat_approach(size_t count, weir_real share, const weir_real *x, weir_real *y) {
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        y[i] += share * (x[i] - y[i]);
}

static void cuda_approach(const weir_kernels *k, size_t count, weir_real share, const weir_real *x, weir_real *y) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(flat_approach, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, share, x, y);
    cuda_note(c, cudaGetLastError(), "approach");
}

static __global__ void flat_zero_rows(weir_row_list rows, weir_real *x) {
    const size_t cells = static_cast<size_t>(rows.count) * rows.cols;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride())
        x[flat_cell(&rows, i)] = 0;
}

static void cuda_zero_rows(const weir_kernels *k, const weir_row_list *rows, weir_real *x) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows->count) * rows->cols;
    if (cells == 0) return;
    WEIR_LAUNCH(flat_zero_rows, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *rows, x);
    cuda_note(c, cudaGetLastError(), "zero_rows");
}

/* --- rows that are taken ------------------------------------------------------------------------------------------ */

/* Four numbers at a time where rows are made of such; a warp then reads whole lines. */
static __global__ void flat_gather_rows(uint32_t rows, uint32_t cols, const weir_real *x, const uint32_t *index,
                                        weir_real *out, uint32_t ldout) {
    const size_t cells = static_cast<size_t>(rows) * cols;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const size_t row = i / cols;
        if (index && index[row] == WEIR_NO_SLOT) continue;
        out[row * ldout + i % cols] = x[(index ? index[row] : row) * cols + i % cols];
    }
}

static __global__ void flat_gather_rows_by_4(uint32_t rows, uint32_t quads, const float4 *x, const uint32_t *index,
                                             float4 *out, uint32_t ldout) {
    const size_t cells = static_cast<size_t>(rows) * quads;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        const size_t row = i / quads;
        if (index && index[row] == WEIR_NO_SLOT) continue;
        out[row * ldout + i % quads] = x[(index ? index[row] : row) * quads + i % quads];
    }
}

static bool flat_is_aligned(const void *memory) {
    return reinterpret_cast<uintptr_t>(memory) % sizeof(float4) == 0;
}

static void cuda_gather_rows(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x,
                             const uint32_t *index, weir_real *out, uint32_t ldout) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    if (cells == 0) return;
    if (cols % 4 == 0 && ldout % 4 == 0 && flat_is_aligned(x) && flat_is_aligned(out))
        WEIR_LAUNCH(flat_gather_rows_by_4, cuda_blocks_of(cells / 4), CUDA_BLOCK, 0, c->stream, rows, cols / 4,
                    reinterpret_cast<const float4 *>(x), index, reinterpret_cast<float4 *>(out), ldout / 4);
    else
        WEIR_LAUNCH(flat_gather_rows, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, rows, cols, x, index, out,
                    ldout);
    cuda_note(c, cudaGetLastError(), "gather_rows");
}

void weir_cuda_flat(weir_kernels *kernels) {
    kernels->square_sum = cuda_square_sum;
    kernels->square_sum_rows = cuda_square_sum_rows;
    kernels->add = cuda_add;
    kernels->approach = cuda_approach;
    kernels->zero_rows = cuda_zero_rows;
    kernels->gather_rows = cuda_gather_rows;
}
