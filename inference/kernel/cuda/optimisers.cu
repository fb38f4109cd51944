/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimisers.cu - AdamW and Adagrad, of flat arrays a thread a number, and of rows of tables a block a row.
 *
 * The arithmetic is that of loops_optimiser.h, but for pow, which a device may round otherwise: rows that waited are
 * within rounding of what all steps would have made of them. How far gradients are shortened each thread finds for
 * itself from the sum of their squares, which lies where it was added up: the host does not wait for it.
 */
#include <math.h>

#include "context.h"

/* false: a step changes nothing. */
static __device__ __forceinline__ bool optimiser_shorten(const weir_shortening *s, weir_real *scalep) {
    const double norm = s->squares ? sqrt(*s->squares) : 0;
    *scalep = static_cast<weir_real>(s->norm_max > 0 && norm > s->norm_max ? s->norm_max / norm : 1);
    return isfinite(norm);
}

/* What a step is to each number. */
typedef struct optimiser_adamw {
    weir_real beta1, beta2, shrink, rate, inverse2, epsilon, l2;
} optimiser_adamw;

static __host__ __device__ __forceinline__ optimiser_adamw optimiser_adamw_of(const weir_adamw_step *s) {
    optimiser_adamw a;
    a.beta1 = static_cast<weir_real>(s->beta1);
    a.beta2 = static_cast<weir_real>(s->beta2);
    a.shrink = static_cast<weir_real>(1 - s->rate * s->decay);
    a.rate = static_cast<weir_real>(s->rate / s->correction1);
    a.inverse2 = static_cast<weir_real>(1 / s->correction2);
    a.epsilon = static_cast<weir_real>(s->epsilon);
    a.l2 = static_cast<weir_real>(s->l2);
    return a;
}

static __device__ __forceinline__ void optimiser_adamw_cell(const optimiser_adamw *a, weir_real gradient,
                                                            weir_real *moment1, weir_real *moment2,
                                                            weir_real *parameter) {
    const weir_real g = gradient + a->l2 * *parameter;
    *moment1 = a->beta1 * *moment1 + (1 - a->beta1) * g;
    *moment2 = a->beta2 * *moment2 + (1 - a->beta2) * g * g;
    *parameter = *parameter * a->shrink - a->rate * *moment1 / (sqrtf(*moment2 * a->inverse2) + a->epsilon);
}

/* --- flat arrays -------------------------------------------------------------------------------------------------- */

static __global__ void optimiser_adamw_flat(size_t count, optimiser_adamw a, weir_shortening shortening,
                                            const weir_real *gradients, weir_real *moment1, weir_real *moment2,
                                            weir_real *parameters) {
    weir_real scale;
    if (!optimiser_shorten(&shortening, &scale)) return;
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        optimiser_adamw_cell(&a, gradients[i] * scale, &moment1[i], &moment2[i], &parameters[i]);
}

static void cuda_adamw(const weir_kernels *k, size_t count, const weir_adamw_step *step, const weir_real *gradients,
                       weir_real *moment1, weir_real *moment2, weir_real *parameters) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(optimiser_adamw_flat, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, optimiser_adamw_of(step),
                step->shortening, gradients, moment1, moment2, parameters);
    cuda_note(c, cudaGetLastError(), "adamw");
}

static __device__ __forceinline__ void optimiser_adagrad_cell(weir_real rate, weir_real epsilon, weir_real gradient,
                                                              weir_real *square, weir_real *parameter) {
    *square += gradient * gradient;
    *parameter -= rate * gradient / (sqrtf(*square) + epsilon);
}

static __global__ void optimiser_adagrad_flat(size_t count, weir_adagrad_step step, const weir_real *gradients,
                                              weir_real *squares, weir_real *parameters) {
    const weir_real rate = static_cast<weir_real>(step.rate), epsilon = static_cast<weir_real>(step.epsilon);
    weir_real scale;
    if (!optimiser_shorten(&step.shortening, &scale)) return;
    for (size_t i = cuda_first(); i < count; i += cuda_stride())
        optimiser_adagrad_cell(rate, epsilon, gradients[i] * scale, &squares[i], &parameters[i]);
}

static void cuda_adagrad(const weir_kernels *k, size_t count, const weir_adagrad_step *step, const weir_real *gradients,
                         weir_real *squares, weir_real *parameters) {
    weir_cuda_context *c = cuda_context_of(k);
    if (count == 0) return;
    WEIR_LAUNCH(optimiser_adagrad_flat, cuda_blocks_of(count), CUDA_BLOCK, 0, c->stream, count, *step, gradients,
                squares, parameters);
    cuda_note(c, cudaGetLastError(), "adagrad");
}

/* --- rows of tables ----------------------------------------------------------------------------------------------- */

static unsigned optimiser_blocks_of(const weir_row_list *rows) {
    return rows->count < CUDA_BLOCKS_MAX ? rows->count : CUDA_BLOCKS_MAX;
}

static __device__ __forceinline__ size_t optimiser_listed(const weir_row_list *rows, uint32_t i) {
    return rows->ids ? rows->ids[i] : i;
}

/* All threads of a block together: the row is as of the step, and still if no number of its first moment is anything.
 * Whoever reads moved[row] has done so. */
static __device__ __forceinline__ void optimiser_set_moved(bool moves, uint64_t steps, uint64_t *moved) {
    const int any = __syncthreads_or(moves);
    if (threadIdx.x == 0) *moved = steps | (any ? 0 : WEIR_ROW_STILL);
}

static __global__ void optimiser_moved_rows(weir_row_list rows, uint64_t steps, const weir_real *moment1,
                                            uint64_t *moved) {
    for (uint32_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
        const size_t row = optimiser_listed(&rows, i);
        bool moves = false;
        for (uint32_t col = threadIdx.x; col < rows.cols; col += blockDim.x)
            moves = moves || !(moment1[row * rows.cols + col] == 0);
        optimiser_set_moved(moves, steps, &moved[row]);
    }
}

static void cuda_adamw_moved(const weir_kernels *k, const weir_row_list *rows, uint64_t steps, const weir_real *moment1,
                             uint64_t *moved) {
    weir_cuda_context *c = cuda_context_of(k);
    if (rows->count == 0) return;
    WEIR_LAUNCH(optimiser_moved_rows, optimiser_blocks_of(rows), CUDA_BLOCK, 0, c->stream, *rows, steps, moment1,
                moved);
    cuda_note(c, cudaGetLastError(), "adamw_moved");
}

static __global__ void optimiser_adamw_rows(weir_row_list rows, optimiser_adamw a, weir_shortening shortening,
                                            uint64_t steps, const weir_real *gradients, uint64_t *moved,
                                            weir_real *moment1, weir_real *moment2, weir_real *parameters) {
    weir_real scale;
    if (!optimiser_shorten(&shortening, &scale)) return;
    for (uint32_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
        const size_t row = optimiser_listed(&rows, i);
        bool moves = false;
        for (uint32_t col = threadIdx.x; col < rows.cols; col += blockDim.x) {
            const size_t at = row * rows.cols + col;
            optimiser_adamw_cell(&a, gradients[at] * scale, &moment1[at], &moment2[at], &parameters[at]);
            moves = moves || !(moment1[at] == 0);
        }
        optimiser_set_moved(moves, steps, &moved[row]);
    }
}

static void cuda_adamw_rows(const weir_kernels *k, const weir_row_list *rows, const weir_adamw_step *step,
                            uint64_t steps, const weir_real *gradients, uint64_t *moved, weir_real *moment1,
                            weir_real *moment2, weir_real *parameters) {
    weir_cuda_context *c = cuda_context_of(k);
    if (rows->count == 0) return;
    WEIR_LAUNCH(optimiser_adamw_rows, optimiser_blocks_of(rows), CUDA_BLOCK, 0, c->stream, *rows,
                optimiser_adamw_of(step), step->shortening, steps, gradients, moved, moment1, moment2, parameters);
    cuda_note(c, cudaGetLastError(), "adamw_rows");
}

static __global__ void optimiser_adagrad_rows(weir_row_list rows, weir_adagrad_step step, const weir_real *gradients,
                                              weir_real *squares, weir_real *parameters) {
    const weir_real rate = static_cast<weir_real>(step.rate), epsilon = static_cast<weir_real>(step.epsilon);
    weir_real scale;
    if (!optimiser_shorten(&step.shortening, &scale)) return;
    for (uint32_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
        const size_t begin = optimiser_listed(&rows, i) * rows.cols;
        for (uint32_t col = threadIdx.x; col < rows.cols; col += blockDim.x)
            optimiser_adagrad_cell(rate, epsilon, gradients[begin + col] * scale, &squares[begin + col],
                                   &parameters[begin + col]);
    }
}

static void cuda_adagrad_rows(const weir_kernels *k, const weir_row_list *rows, const weir_adagrad_step *step,
                              const weir_real *gradients, weir_real *squares, weir_real *parameters) {
    weir_cuda_context *c = cuda_context_of(k);
    if (rows->count == 0) return;
    WEIR_LAUNCH(optimiser_adagrad_rows, optimiser_blocks_of(rows), CUDA_BLOCK, 0, c->stream, *rows, *step, gradients,
                squares, parameters);
    cuda_note(c, cudaGetLastError(), "adagrad_rows");
}

/* --- rows that waited --------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ weir_adamw_step optimiser_step_of(const weir_adamw_wait *w, uint64_t step) {
    weir_adamw_step s = {};
    s.rate = w->rate;
    s.beta1 = w->beta1;
    s.beta2 = w->beta2;
    s.epsilon = w->epsilon;
    s.decay = w->decay;
    s.correction1 = 1 - pow(w->beta1, static_cast<double>(step));
    s.correction2 = 1 - pow(w->beta2, static_cast<double>(step));
    return s;
}

/* One number of a row, by all the steps that the row has missed. */
static __device__ void optimiser_bring_cell(const weir_adamw_wait *w, uint64_t since, uint64_t one_by_one,
                                            uint64_t rest, weir_real *moment1, weir_real *moment2,
                                            weir_real *parameter) {
    for (uint64_t s = 1; s <= one_by_one; s++) {
        const weir_adamw_step step = optimiser_step_of(w, since + s);
        const optimiser_adamw a = optimiser_adamw_of(&step);
        optimiser_adamw_cell(&a, 0, moment1, moment2, parameter);
    }
    if (rest > 0 && w->rate > 0) { /* with a first moment of 0, a step only shrinks */
        const weir_real once = static_cast<weir_real>(1 - w->rate * w->decay);
        weir_adamw_step step = optimiser_step_of(w, w->steps);
        step.decay = (1 - pow(static_cast<double>(once), static_cast<double>(rest))) / w->rate;
        step.beta1 = 0;
        step.beta2 = pow(w->beta2, static_cast<double>(rest));
        const optimiser_adamw a = optimiser_adamw_of(&step);
        optimiser_adamw_cell(&a, 0, moment1, moment2, parameter);
    }
}

static __global__ void optimiser_bring_rows(weir_row_list rows, weir_adamw_wait w, uint64_t *moved, weir_real *moment1,
                                            weir_real *moment2, weir_real *parameters) {
    for (uint32_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
        const size_t row = optimiser_listed(&rows, i);
        const uint64_t as_of = moved[row], since = as_of & ~WEIR_ROW_STILL, missing = w.steps - since;
        const bool still = as_of & WEIR_ROW_STILL;
        if (missing == 0) continue; /* in all threads of the block alike */
        const uint64_t one_by_one = still ? 0 : missing > w.one_by_one_max ? w.one_by_one_max : missing;
        const uint64_t rest = missing - one_by_one;
        bool moves = false;
        for (uint32_t col = threadIdx.x; col < rows.cols; col += blockDim.x) {
            const size_t at = row * rows.cols + col;
            optimiser_bring_cell(&w, since, one_by_one, rest, &moment1[at], &moment2[at], &parameters[at]);
            moves = moves || !(moment1[at] == 0);
        }
        optimiser_set_moved(moves && rest == 0 && !still, w.steps, &moved[row]);
    }
}

static void cuda_adamw_bring(const weir_kernels *k, const weir_row_list *rows, const weir_adamw_wait *wait,
                             uint64_t *moved, weir_real *moment1, weir_real *moment2, weir_real *parameters) {
    weir_cuda_context *c = cuda_context_of(k);
    if (rows->count == 0) return;
    WEIR_LAUNCH(optimiser_bring_rows, optimiser_blocks_of(rows), CUDA_BLOCK, 0, c->stream, *rows, *wait, moved, moment1,
                moment2, parameters);
    cuda_note(c, cudaGetLastError(), "adamw_bring");
}

void weir_cuda_optimisers(weir_kernels *kernels) {
    kernels->adamw = cuda_adamw;
    kernels->adagrad = cuda_adagrad;
    kernels->adamw_rows = cuda_adamw_rows;
    kernels->adagrad_rows = cuda_adagrad_rows;
    kernels->adamw_bring = cuda_adamw_bring;
    kernels->adamw_moved = cuda_adamw_moved;
}
