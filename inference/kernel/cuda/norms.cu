/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norms.cu - sums over rows and over columns: products of rows, layer norm, and gradients of what all rows share.
 *
 * A row is a warp's, whose lanes take every 32nd column and then add up by halves. Sums over rows are made in parts, of
 * which there are as many as the number of rows says; then a warp a column adds up the parts (KERNEL-K1).
 */
#include <math.h>

#include "context.h"

#define NORM_LANES     32u
#define NORM_ALL       0xFFFFFFFFU /* lanes of a warp */
#define NORM_EPSILON   static_cast<weir_real>(1e-5)
#define NORM_TOGETHER  (CUDA_BLOCK / NORM_LANES) /* rows that a block adds up at once */
#define NORM_PART_ROWS 64u                       /* at least                          */
#define NORM_PARTS_MAX 512u

/* --- warps -------------------------------------------------------------------------------------------------------- */

/* Of all lanes, in each of them the same bits. */
static __device__ __forceinline__ weir_real norm_warp_sum(weir_real own) {
    for (int lanes = static_cast<int>(NORM_LANES / 2); lanes > 0; lanes /= 2)
        own += __shfl_xor_sync(NORM_ALL, own, lanes);
    return own;
}

static __device__ __forceinline__ uint32_t norm_lane() {
    return threadIdx.x % NORM_LANES;
}

/* Each warp's first item, and the way to its next one. */
static __device__ __forceinline__ size_t norm_first() {
    return cuda_first() / NORM_LANES;
}

static __device__ __forceinline__ size_t norm_stride() {
    return cuda_stride() / NORM_LANES;
}

static unsigned norm_blocks_of(size_t warps) {
    return cuda_blocks_of(warps < CUDA_BLOCKS_MAX * NORM_TOGETHER ? warps * NORM_LANES : CUDA_BLOCKS_MAX * CUDA_BLOCK);
}

/* --- products of rows --------------------------------------------------------------------------------------------- */

/* Of row i / heads, the columns of head i % heads. */
static __global__ void norm_products(size_t items, uint32_t heads, uint32_t cols, const weir_real *x,
                                     const weir_real *y, weir_real *out) {
    const uint32_t width = cols / heads;
    for (size_t i = norm_first(); i < items; i += norm_stride()) {
        const size_t begin = i % heads * width;
        const weir_real *row = x + i / heads * cols + begin;
        weir_real own = 0;
        for (uint32_t c = norm_lane(); c < width; c += NORM_LANES)
            own += row[c] * y[begin + c];
        const weir_real sum = norm_warp_sum(own);
        if (norm_lane() == 0) out[i] = sum;
    }
}

static void cuda_head_products(const weir_kernels *k, uint32_t rows, uint32_t heads, uint32_t cols, const weir_real *x,
                               const weir_real *weights, weir_real *out) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t items = static_cast<size_t>(rows) * heads;
    if (items == 0 || cols == 0) return;
    WEIR_LAUNCH(norm_products, norm_blocks_of(items), CUDA_BLOCK, 0, c->stream, items, heads, cols, x, weights, out);
    cuda_note(c, cudaGetLastError(), "products of rows");
}

static void cuda_row_products(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x,
                              const weir_real *y, weir_real *out) {
    cuda_head_products(k, rows, 1, cols, x, y, out);
}

/* --- sums over rows ----------------------------------------------------------------------------------------------- */

/* What a row adds to a column's sums, of which there may be two: x is added to the first, y to the second. Each kind of
 * sum has such a type. */
typedef struct norm_rows {
    const weir_real *x;
    uint32_t cols;
    __device__ __forceinline__ float2 operator()(size_t row, uint32_t col) const {
        return make_float2(x[row * cols + col], 0);
    }
} norm_rows;

typedef struct norm_gains {
    const weir_real *x, *stats, *dout;
    uint32_t cols;
    __device__ __forceinline__ float2 operator()(size_t row, uint32_t col) const {
        const weir_real d = dout[row * cols + col];
        return make_float2(d * ((x[row * cols + col] - stats[2 * row]) * stats[2 * row + 1]), d);
    }
} norm_gains;

typedef struct norm_heads {
    const weir_real *x, *dout;
    uint32_t cols, heads;
    __device__ __forceinline__ float2 operator()(size_t row, uint32_t col) const {
        return make_float2(dout[row * heads + col / (cols / heads)] * x[row * cols + col], 0);
    }
} norm_heads;

/* Rows from begin to end, by 32 columns: the first row of a block's threads has their sums. */
template <typename Terms>
static __device__ __forceinline__ float2 norm_part(const Terms &terms, size_t begin, size_t end, uint32_t cols,
                                                   uint32_t col) {
    WEIR_SHARED(float2, sums, CUDA_BLOCK);
    float2 own = make_float2(0, 0);
    for (size_t row = begin + threadIdx.x / NORM_LANES; col < cols && row < end; row += NORM_TOGETHER) {
        const float2 term = terms(row, col);
        own.x += term.x;
        own.y += term.y;
    }
    __syncthreads();
    sums[threadIdx.x] = own;
    __syncthreads();
    for (uint32_t i = 1; threadIdx.x < NORM_LANES && i < NORM_TOGETHER; i++) {
        own.x += sums[threadIdx.x + i * NORM_LANES].x;
        own.y += sums[threadIdx.x + i * NORM_LANES].y;
    }
    return own;
}

/* Parts of a column follow each other. */
template <typename Terms>
static __global__ void norm_sum_parts(uint32_t rows, uint32_t cols, uint32_t parts, Terms terms, float2 *sums) {
    const size_t across = cols / NORM_LANES + (cols % NORM_LANES != 0), each = (rows + parts - 1ULL) / parts;
    for (size_t item = blockIdx.x; item < across * parts; item += gridDim.x) {
        const size_t part = item / across, begin = part * each, end = begin + each < rows ? begin + each : rows;
        const uint32_t col = static_cast<uint32_t>(item % across) * NORM_LANES + norm_lane();
        const float2 sum = norm_part(terms, begin, end, cols, col);
        if (threadIdx.x < NORM_LANES && col < cols) sums[static_cast<size_t>(col) * parts + part] = sum;
    }
}

static __global__ void norm_add_parts(uint32_t cols, uint32_t parts, const float2 *sums, weir_real *first,
                                      weir_real *second) {
    for (size_t col = norm_first(); col < cols; col += norm_stride()) {
        float2 own = make_float2(0, 0);
        for (uint32_t part = norm_lane(); part < parts; part += NORM_LANES) {
            own.x += sums[col * parts + part].x;
            own.y += sums[col * parts + part].y;
        }
        const weir_real x = norm_warp_sum(own.x), y = norm_warp_sum(own.y);
        if (norm_lane() == 0) first[col] += x;
        if (norm_lane() == 0 && second) second[col] += y;
    }
}

/* second: NULL where there is one sum a column. */
template <typename Terms>
static void norm_add_columns(weir_cuda_context *c, uint32_t rows, uint32_t cols, const Terms &terms, weir_real *first,
                             weir_real *second, const char *what) {
    const uint32_t wanted = rows / NORM_PART_ROWS, parts = wanted < 1                ? 1
                                                           : wanted < NORM_PARTS_MAX ? wanted
                                                                                     : NORM_PARTS_MAX;
    const size_t items = (cols / NORM_LANES + (cols % NORM_LANES != 0)) * static_cast<size_t>(parts);
    float2 *sums = static_cast<float2 *>(weir_cuda_scratch(c, static_cast<size_t>(cols) * parts * sizeof *sums));
    if (!sums) return;
    WEIR_LAUNCH(norm_sum_parts<Terms>, cuda_blocks_of(items * CUDA_BLOCK), CUDA_BLOCK, 0, c->stream, rows, cols, parts,
                terms, sums);
    cuda_note(c, cudaGetLastError(), what);
    WEIR_LAUNCH(norm_add_parts, norm_blocks_of(cols), CUDA_BLOCK, 0, c->stream, cols, parts, sums, first, second);
    cuda_note(c, cudaGetLastError(), what);
}

static void cuda_bias_back(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dx, weir_real *dbias) {
    const norm_rows terms = {dx, cols};
    if (rows == 0 || cols == 0) return;
    norm_add_columns(cuda_context_of(k), rows, cols, terms, dbias, NULL, "bias_back");
}

static __global__ void norm_head_products_back(size_t cells, uint32_t heads, uint32_t cols, const weir_real *weights,
                                               const weir_real *dout, weir_real *dx) {
    const uint32_t width = cols / heads;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride())
        dx[i] += dout[i / width] * weights[i % cols];
}

static void cuda_head_products_back(const weir_kernels *k, uint32_t rows, uint32_t heads, uint32_t cols,
                                    const weir_real *x, const weir_real *weights, const weir_real *dout, weir_real *dx,
                                    weir_real *dweights) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(rows) * cols;
    const norm_heads terms = {x, dout, cols, heads};
    if (cells == 0) return;
    WEIR_LAUNCH(norm_head_products_back, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, cells, heads, cols, weights,
                dout, dx);
    cuda_note(c, cudaGetLastError(), "head_products_back");
    norm_add_columns(c, rows, cols, terms, dweights, NULL, "head_products_back");
}

/* --- one sum over all --------------------------------------------------------------------------------------------- */

static __global__ void norm_add_more_back(size_t count, const weir_real *more, const weir_real *x,
                                          const weir_real *dout, double *parts, weir_real *dx) {
    const weir_real factor = 1 + *more;
    double own = 0;
    for (size_t i = cuda_first(); i < count; i += cuda_stride()) {
        own += static_cast<double>(x[i]) * static_cast<double>(dout[i]);
        if (dx) dx[i] += factor * dout[i];
    }
    const double all = cuda_block_sum(own);
    if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

static __global__ void norm_add_more_parts(unsigned parts, const double *of, weir_real *sum) {
    double own = 0;
    for (unsigned i = threadIdx.x; i < parts; i += CUDA_BLOCK)
        own += of[i];
    const double all = cuda_block_sum(own);
    if (threadIdx.x == 0) *sum += static_cast<weir_real>(all);
}

static void cuda_add_more_back(const weir_kernels *k, size_t count, const weir_real *more, const weir_real *x,
                               const weir_real *dout, weir_real *dmore, weir_real *dx) {
    weir_cuda_context *c = cuda_context_of(k);
    const unsigned blocks = cuda_blocks_of(count);
    if (count == 0) return;
    WEIR_LAUNCH(norm_add_more_back, blocks, CUDA_BLOCK, 0, c->stream, count, more, x, dout, c->parts, dx);
    cuda_note(c, cudaGetLastError(), "add_more_back");
    WEIR_LAUNCH(norm_add_more_parts, 1, CUDA_BLOCK, 0, c->stream, blocks, c->parts, dmore);
    cuda_note(c, cudaGetLastError(), "add_more_back");
}

/* --- layer norm --------------------------------------------------------------------------------------------------- */

static __global__ void norm_layer(uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *gain,
                                  const weir_real *shift, weir_real *out, weir_real *stats) {
    for (size_t row = norm_first(); row < rows; row += norm_stride()) {
        const size_t begin = row * cols;
        weir_real sum = 0, squares = 0;
        for (uint32_t c = norm_lane(); c < cols; c += NORM_LANES)
            sum += x[begin + c];
        const weir_real mean = norm_warp_sum(sum) / static_cast<weir_real>(cols);
        for (uint32_t c = norm_lane(); c < cols; c += NORM_LANES)
            squares += (x[begin + c] - mean) * (x[begin + c] - mean);
        const weir_real variance = norm_warp_sum(squares) / static_cast<weir_real>(cols);
        const weir_real factor = static_cast<weir_real>(1 / sqrt(static_cast<double>(variance + NORM_EPSILON)));
        for (uint32_t c = norm_lane(); c < cols; c += NORM_LANES)
            out[begin + c] = (x[begin + c] - mean) * factor * gain[c] + shift[c];
        if (norm_lane() == 0) {
            stats[2 * row] = mean;
            stats[2 * row + 1] = factor;
        }
    }
}

/* Rows without columns have stats all the same (KERNEL-K2). */
static void cuda_layer_norm(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x,
                            const weir_real *gain, const weir_real *shift, size_t bytes, weir_real *out,
                            weir_real *stats) {
    weir_cuda_context *c = cuda_context_of(k);
    (void)bytes;
    if (rows == 0) return;
    WEIR_LAUNCH(norm_layer, norm_blocks_of(rows), CUDA_BLOCK, 0, c->stream, rows, cols, x, gain, shift, out, stats);
    cuda_note(c, cudaGetLastError(), "layer_norm");
}

/* With n = (x - mean) * factor and g = d * gain:  dx = factor * (g - mean(g) - n * mean(g * n)). */
static __global__ void norm_layer_back(uint32_t rows, uint32_t cols, const weir_real *x, const weir_real *stats,
                                       const weir_real *gain, bool relu, weir_real *d) {
    for (size_t row = norm_first(); row < rows; row += norm_stride()) {
        const size_t begin = row * cols;
        const weir_real mean = stats[2 * row], factor = stats[2 * row + 1];
        weir_real sum = 0, product = 0;
        for (uint32_t c = norm_lane(); c < cols; c += NORM_LANES) {
            const weir_real g = d[begin + c] * gain[c];
            sum += g;
            product += g * ((x[begin + c] - mean) * factor);
        }
        sum = norm_warp_sum(sum) / static_cast<weir_real>(cols);
        product = norm_warp_sum(product) / static_cast<weir_real>(cols);
        for (uint32_t c = norm_lane(); c < cols; c += NORM_LANES) {
            const weir_real dx = factor * (d[begin + c] * gain[c] - sum - (x[begin + c] - mean) * factor * product);
            d[begin + c] = x[begin + c] > 0 || !relu ? dx : 0;
        }
    }
}

/* Columns are summed first, since the second kernel overwrites d. */
static void cuda_layer_norm_back(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *x,
                                 const weir_real *stats, const weir_real *gain, bool relu, weir_real *d,
                                 weir_real *dgain, weir_real *dshift) {
    weir_cuda_context *c = cuda_context_of(k);
    const norm_gains terms = {x, stats, d, cols};
    if (rows == 0 || cols == 0) return;
    norm_add_columns(c, rows, cols, terms, dgain, dshift, "layer_norm_back");
    WEIR_LAUNCH(norm_layer_back, norm_blocks_of(rows), CUDA_BLOCK, 0, c->stream, rows, cols, x, stats, gain, relu, d);
    cuda_note(c, cudaGetLastError(), "layer_norm_back");
}

void weir_cuda_norms(weir_kernels *kernels) {
    kernels->row_products = cuda_row_products;
    kernels->head_products = cuda_head_products;
    kernels->head_products_back = cuda_head_products_back;
    kernels->bias_back = cuda_bias_back;
    kernels->add_more_back = cuda_add_more_back;
    kernels->layer_norm = cuda_layer_norm;
    kernels->layer_norm_back = cuda_layer_norm_back;
}
