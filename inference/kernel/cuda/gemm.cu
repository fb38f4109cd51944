/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.cu - products of matrices without a library, in tiles that a block holds in shared memory.
 *
 * Each thread has 4 x 4 numbers of a tile of 64 x 64, 16 apart, so that neighbours write neighbours. Where there are
 * few tiles and many terms, as in the gradient of weights, slices of the terms are blocks of their own; their products
 * are added up in the order of the slices, of which the sizes alone say how many there are (KERNEL-K1).
 */
#include "context.h"

#define GEMM_TILE      64u  /* rows and columns of C                               */
#define GEMM_DEPTH     16u  /* terms that are held at a time                       */
#define GEMM_SIDE      16u  /* threads: a block is a square of them                */
#define GEMM_EACH      4u   /* rows and columns of a thread                        */
#define GEMM_LD        65u  /* of a tile in shared memory: one more keeps banks apart */
#define GEMM_SLICE_MIN 512u /* terms                                               */
#define GEMM_BLOCKS    512u /* are enough to keep a device busy                    */

/* How the work is cut up. */
typedef struct gemm_cut {
    size_t tiles; /* of C */
    uint32_t tiles_across;
    uint32_t slices, terms; /* of each slice; the last has what is left */
} gemm_cut;

static uint32_t gemm_ceil(uint32_t count, uint32_t of) {
    return count / of + (count % of != 0);
}

static gemm_cut gemm_cut_of(const weir_gemm *g) {
    gemm_cut cut;
    cut.tiles_across = gemm_ceil(g->n, GEMM_TILE);
    cut.tiles = static_cast<size_t>(gemm_ceil(g->m, GEMM_TILE)) * cut.tiles_across;
    const size_t wanted = GEMM_BLOCKS / cut.tiles, most = g->k / GEMM_SLICE_MIN;
    const size_t slices = wanted < most ? wanted : most;
    cut.terms = gemm_ceil(g->k, slices > 1 ? static_cast<uint32_t>(slices) : 1);
    cut.slices = g->k == 0 ? 1 : gemm_ceil(g->k, cut.terms); /* without terms C is still written: KERNEL-K2 */
    return cut;
}

/* One operand's part of a tile: number `at` of the tile's rows or columns, of which there are `count`, by term. What is
 * outside is 0, and terms that are outside are so in both operands: no infinity meets such a 0 in a number that
 * counts. */
static __device__ __forceinline__ void gemm_hold(const weir_real *x, uint32_t ld, bool along_terms, uint32_t first,
                                                 uint32_t count, uint32_t term, uint32_t end, weir_real *held) {
    for (uint32_t e = threadIdx.x; e < GEMM_TILE * GEMM_DEPTH; e += CUDA_BLOCK) {
        const uint32_t depth = along_terms ? e % GEMM_DEPTH : e / GEMM_TILE,
                       at = along_terms ? e / GEMM_DEPTH : e % GEMM_TILE;
        const bool inside = at < count - first && depth < end - term;
        const size_t outer = along_terms ? first + at : term + depth, inner = along_terms ? term + depth : first + at;
        held[depth * GEMM_LD + at] = inside ? x[outer * ld + inner] : 0;
    }
}

/* What the terms held add to a thread's numbers. */
static __device__ __forceinline__ void gemm_multiply(const weir_real *a, const weir_real *b,
                                                     weir_real sums[GEMM_EACH][GEMM_EACH]) {
    const uint32_t row = threadIdx.x / GEMM_SIDE, col = threadIdx.x % GEMM_SIDE;
    for (uint32_t depth = 0; depth < GEMM_DEPTH; depth++) {
        weir_real of_a[GEMM_EACH], of_b[GEMM_EACH];
        for (uint32_t i = 0; i < GEMM_EACH; i++) {
            of_a[i] = a[depth * GEMM_LD + row + i * GEMM_SIDE];
            of_b[i] = b[depth * GEMM_LD + col + i * GEMM_SIDE];
        }
        for (uint32_t i = 0; i < GEMM_EACH; i++)
            for (uint32_t j = 0; j < GEMM_EACH; j++)
                sums[i][j] += of_a[i] * of_b[j];
    }
}

static __device__ __forceinline__ void gemm_write(const weir_gemm *g, uint32_t first_row, uint32_t first_col,
                                                  const weir_real sums[GEMM_EACH][GEMM_EACH], weir_real *c) {
    for (uint32_t i = 0; i < GEMM_EACH; i++) {
        for (uint32_t j = 0; j < GEMM_EACH; j++) {
            const uint32_t row = threadIdx.x / GEMM_SIDE + i * GEMM_SIDE, col = threadIdx.x % GEMM_SIDE + j * GEMM_SIDE;
            if (row >= g->m - first_row || col >= g->n - first_col) continue;
            weir_real *to = c + static_cast<size_t>(first_row + row) * g->ldc + first_col + col;
            *to = g->beta == 0 ? sums[i][j] : sums[i][j] + g->beta * *to;
        }
    }
}

/* Slices follow each other in C, m * n numbers each, where there is more than one. */
static __global__ void __launch_bounds__(CUDA_BLOCK) gemm_tiles(weir_gemm g, gemm_cut cut) {
    WEIR_SHARED(weir_real, a, GEMM_DEPTH * GEMM_LD);
    WEIR_SHARED(weir_real, b, GEMM_DEPTH * GEMM_LD);
    for (size_t item = blockIdx.x; item < cut.tiles * cut.slices; item += gridDim.x) {
        const size_t slice = item / cut.tiles, tile = item % cut.tiles;
        const uint32_t row = static_cast<uint32_t>(tile / cut.tiles_across) * GEMM_TILE,
                       col = static_cast<uint32_t>(tile % cut.tiles_across) * GEMM_TILE,
                       begin = static_cast<uint32_t>(slice) * cut.terms,
                       end = g.k - begin < cut.terms ? g.k : begin + cut.terms;
        weir_real sums[GEMM_EACH][GEMM_EACH] = {};
        for (uint32_t held = 0; held < end - begin; held += GEMM_DEPTH) {
            __syncthreads();
            gemm_hold(g.a, g.lda, !g.a_transposed, row, g.m, begin + held, end, a);
            gemm_hold(g.b, g.ldb, g.b_transposed, col, g.n, begin + held, end, b);
            __syncthreads();
            gemm_multiply(a, b, sums);
        }
        gemm_write(&g, row, col, sums, g.c + slice * g.m * g.n);
    }
}

static __global__ void gemm_add_slices(weir_gemm g, uint32_t slices, const weir_real *of) {
    const size_t cells = static_cast<size_t>(g.m) * g.n;
    for (size_t i = cuda_first(); i < cells; i += cuda_stride()) {
        weir_real sum = 0;
        for (uint32_t slice = 0; slice < slices; slice++)
            sum += of[slice * cells + i];
        weir_real *to = g.c + i / g.n * g.ldc + i % g.n;
        *to = g.beta == 0 ? sum : sum + g.beta * *to;
    }
}

static void gemm_launch(weir_cuda_context *c, const weir_gemm *g, const gemm_cut *cut) {
    const size_t items = cut->tiles * cut->slices;
    const unsigned blocks = static_cast<unsigned>(items < CUDA_BLOCKS_MAX ? items : CUDA_BLOCKS_MAX);
    WEIR_LAUNCH(gemm_tiles, blocks, CUDA_BLOCK, 0, c->stream, *g, *cut);
    cuda_note(c, cudaGetLastError(), "gemm");
}

static void cuda_gemm(const weir_kernels *k, const weir_gemm *g) {
    weir_cuda_context *c = cuda_context_of(k);
    const size_t cells = static_cast<size_t>(g->m) * g->n;
    if (cells == 0) return;
    const gemm_cut cut = gemm_cut_of(g);
    if (cut.slices == 1) {
        gemm_launch(c, g, &cut);
        return;
    }
    weir_gemm slices = *g;
    slices.beta = 0;
    slices.ldc = g->n;
    slices.c = static_cast<weir_real *>(weir_cuda_scratch(c, cut.slices * cells * sizeof(weir_real)));
    if (!slices.c) return;
    gemm_launch(c, &slices, &cut);
    WEIR_LAUNCH(gemm_add_slices, cuda_blocks_of(cells), CUDA_BLOCK, 0, c->stream, *g, cut.slices, slices.c);
    cuda_note(c, cudaGetLastError(), "gemm");
}

void weir_cuda_gemm(weir_kernels *kernels) {
    kernels->gemm = cuda_gemm;
}
