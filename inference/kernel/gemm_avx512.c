/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_avx512.c - a product whose B, or a block of it, stays in a core's second cache.
 *
 *   block of B, DEPTH or some more x WIDTH ──► panels of COLS columns, copied once for all rows of A
 *   ROWS rows of A  x  a panel ──► a tile of C, summed in registers
 *
 * A network's products are long in one direction and a few hundred in the others. So A is read where it lies, while
 * OpenBLAS copies it, and C is written once, while OpenBLAS zeroes it first. A transposed A, of which each term lies in
 * another row, is copied block by block. At the edges a tile has fewer rows, and only what C has is
 * written.
 *
 * An element of C is the sum of its terms in their order, a block at a time, wherever in C it lies: KERNEL-K1.
 */
#include "gemm.h"

#ifdef WEIR_GEMM_AVX512
#include <immintrin.h>
#include <string.h>

#define ROWS   10u /* even, of two vectors each: 20 sums in registers, more than the processor adds to at once */
#define COLS   32u
#define LINE   16u /* floats of a cache line, and of a vector */
#define DEPTH  256u
#define MORE   32u /* up to so many terms beyond a block join it: one of their own would go over all of C again */
#define WIDTH  256u
#define HEIGHT 290u /* rows of A that are copied at a time: 256 and MORE of a layer's input are one piece */

_Static_assert(HEIGHT % ROWS == 0 && HEIGHT >= WIDTH + MORE, "tiles are whole, and have room");

/* Element (row, k) of A at a[row * row_step + k * k_step]. */
typedef struct gemm_rows {
    const float *a;
    size_t row_step, k_step;
} gemm_rows;

/* Where in C a tile is, how many rows it has, and which columns of its last vector. */
typedef struct gemm_place {
    float *c;
    size_t ldc, height;
    __mmask16 last;
} gemm_place;

/* C = rows · panel + beta · C. The compiler knows how many rows and vectors are computed, so that all sums lie in
 * registers; of an odd height, one row is computed for nothing. */
__attribute__((always_inline)) static inline void gemm_sums(const size_t even, const size_t vectors, gemm_rows rows,
                                                            const float *panel, size_t depth, float beta,
                                                            gemm_place place) {
    __m512 sums[ROWS][2];
#pragma GCC unroll 10
    for (size_t i = 0; i < even; i++) {
        sums[i][0] = sums[i][1] = _mm512_setzero_ps();
        _mm_prefetch((const char *)(place.c + i * place.ldc), _MM_HINT_T0);
        if (vectors == 2) _mm_prefetch((const char *)(place.c + i * place.ldc + LINE), _MM_HINT_T0);
    }
    for (size_t k = 0; k < depth; k++, panel += COLS, rows.a += rows.k_step) {
        __m512 left = _mm512_load_ps(panel), right = vectors == 2 ? _mm512_load_ps(panel + LINE) : left;
#pragma GCC unroll 10
        for (size_t i = 0; i < even; i++) {
            __m512 a = _mm512_set1_ps(rows.a[i * rows.row_step]);
            sums[i][0] = _mm512_fmadd_ps(a, left, sums[i][0]);
            if (vectors == 2) sums[i][1] = _mm512_fmadd_ps(a, right, sums[i][1]);
        }
    }
    const __m512 kept = _mm512_set1_ps(beta);
    const __mmask16 first = vectors == 2 ? 0xffff : place.last;
#pragma GCC unroll 10
    for (size_t i = 0; i < even; i++, place.c += place.ldc) {
        if (i == place.height) break;
        if (beta != 0) {
            sums[i][0] = _mm512_fmadd_ps(kept, _mm512_maskz_loadu_ps(first, place.c), sums[i][0]);
            if (vectors == 2)
                sums[i][1] = _mm512_fmadd_ps(kept, _mm512_maskz_loadu_ps(place.last, place.c + LINE), sums[i][1]);
        }
        _mm512_mask_storeu_ps(place.c, first, sums[i][0]);
        if (vectors == 2) _mm512_mask_storeu_ps(place.c + LINE, place.last, sums[i][1]);
    }
}

static void gemm_tile(bool both, gemm_rows rows, const float *panel, size_t depth, float beta, gemm_place place) {
    switch ((place.height + 1) / 2) {
#define PAIRS(COUNT)                                                         \
    case COUNT:                                                              \
        if (both) gemm_sums(2 * COUNT, 2, rows, panel, depth, beta, place);  \
        if (!both) gemm_sums(2 * COUNT, 1, rows, panel, depth, beta, place); \
        break
        PAIRS(1);
        PAIRS(2);
        PAIRS(3);
        PAIRS(4);
        PAIRS(5);
#undef PAIRS
    }
}

/* Columns [col, col + width) of B, terms [k, k + depth), in panels; what the last has beyond B is 0. */
static void gemm_pack_b(const weir_gemm *g, size_t k, size_t depth, size_t col, size_t width, float *panels) {
    if (width % COLS) memset(panels + width / COLS * COLS * depth, 0, COLS * depth * sizeof *panels);
    for (size_t d = 0; d < depth && !g->b_transposed; d++) {
        const float *from = g->b + (k + d) * g->ldb + col;
        float *to = panels + d * COLS;
        size_t j = 0;
        for (; j + COLS <= width; j += COLS, to += depth * COLS)
            memcpy(to, from + j, COLS * sizeof *to);
        memcpy(to, from + j, (width - j) * sizeof *to);
    }
    for (size_t j = 0; j < width && g->b_transposed; j++)
        for (size_t d = 0; d < depth; d++)
            panels[j / COLS * COLS * depth + d * COLS + j % COLS] = g->b[(col + j) * g->ldb + k + d];
}

/* Rows [row, row + height) of op(A), terms [k, k + depth), in tiles of ROWS; what the last has beyond A is 0. */
static void gemm_pack_a(const weir_gemm *g, size_t row, size_t height, size_t k, size_t depth, float *tiles) {
    if (height % ROWS) memset(tiles + height / ROWS * ROWS * depth, 0, ROWS * depth * sizeof *tiles);
    for (size_t d = 0; d < depth && g->a_transposed; d++) {
        const float *from = g->a + (k + d) * g->lda + row;
        float *to = tiles + d * ROWS;
        size_t i = 0;
        for (; i + ROWS <= height; i += ROWS, to += depth * ROWS)
            memcpy(to, from + i, ROWS * sizeof *to);
        memcpy(to, from + i, (height - i) * sizeof *to);
    }
    for (size_t i = 0; i < height && !g->a_transposed; i++)
        for (size_t d = 0; d < depth; d++)
            tiles[i / ROWS * ROWS * depth + d * ROWS + i % ROWS] = g->a[(row + i) * g->lda + k + d];
}

/* A tile of rows times all panels. */
static void gemm_tiles(const weir_gemm *g, gemm_rows rows, size_t height, const float *panels, size_t depth, float beta,
                       size_t width, float *c) {
    gemm_place place = {c, g->ldc, height, 0xffff};
    for (; width > 0; panels += depth * COLS, place.c += COLS) {
        size_t cols = width < COLS ? width : COLS;
        if (cols % LINE) place.last = (__mmask16)((1u << cols % LINE) - 1);
        gemm_tile(cols > LINE, rows, panels, depth, beta, place);
        width -= cols;
    }
}

/* All rows of A times one block of B. Of a tile's rows, those of the next are asked for: they begin far apart. */
static void gemm_block(const weir_gemm *g, size_t k, size_t depth, size_t col, size_t width) {
    _Alignas(64) float panels[(DEPTH + MORE) * WIDTH], tiles[(DEPTH + MORE) * HEIGHT];
    float beta = k == 0 ? g->beta : 1;
    gemm_pack_b(g, k, depth, col, width, panels);
    size_t direct = g->a_transposed ? 0 : g->m / ROWS * ROWS;
    for (size_t row = 0; row < direct; row += ROWS) {
        gemm_rows rows = {g->a + row * g->lda + k, g->lda, 1};
        for (size_t i = ROWS; i < 2 * ROWS && row + i < direct; i++)
            for (size_t d = 0; d < depth; d += LINE)
                _mm_prefetch((const char *)(rows.a + i * g->lda + d), _MM_HINT_T1);
        gemm_tiles(g, rows, ROWS, panels, depth, beta, width, g->c + row * g->ldc + col);
    }
    for (size_t first = direct; first < g->m; first += HEIGHT) {
        size_t all = g->m - first < HEIGHT ? g->m - first : HEIGHT;
        gemm_pack_a(g, first, all, k, depth, tiles);
        for (size_t i = 0; i < all; i += ROWS)
            gemm_tiles(g, (gemm_rows){tiles + i * depth, 1, ROWS}, all - i < ROWS ? all - i : ROWS, panels, depth, beta,
                       width, g->c + (first + i) * g->ldc + col);
    }
}

void weir_gemm_avx512(const weir_gemm *gemm) {
    for (size_t col = 0; col < gemm->n; col += WIDTH) {
        size_t width = gemm->n - col < WIDTH ? gemm->n - col : WIDTH;
        for (size_t k = 0, depth; k < gemm->k; k += depth) {
            depth = gemm->k - k > DEPTH + MORE ? DEPTH : gemm->k - k;
            gemm_block(gemm, k, depth, col, width);
        }
    }
}
#else
typedef int gemm_avx512_is_for_others; /* a file of nothing is not C */
#endif
