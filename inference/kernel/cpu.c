/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - the table for the host's processor: OpenBLAS, the loops that fit the processor, the host's memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "gemm.h"
#include "loops_table.h"
#include "losses.h"

#define GEMM_SMALL  1e6                 /* multiplications: up to here OpenBLAS copies nothing     */
#define GEMM_LONG   128u                /* rows: where B is transposed OpenBLAS copies it all the same */
#define GEMM_LEAST  16u                 /* rows, columns and terms: else most of a tile is in vain  */
#define PIECE_BYTES ((size_t)128 << 10) /* with what is read beside them they fit a core's own cache */

/* Nothing is kept, so that one serves all: KERNEL-K4. */
static weir_err cpu_open(const weir_kernels *context, const weir_kernels **otherp) {
    *otherp = context;
    return WEIR_OK;
}

static void cpu_close(const weir_kernels *context) {
    (void)context;
}

static weir_err cpu_alloc(const weir_kernels *context, size_t bytes, void **memoryp) {
    (void)context;
    *memoryp = weir_large_alloc(bytes);
    if (*memoryp) return WEIR_OK;
    return WEIR_NOMEM("for %zu bytes of the network; lower the batch or the fan-outs", bytes);
}

static void cpu_release(const weir_kernels *context, void *memory) {
    (void)context;
    weir_free(memory);
}

static void cpu_copy(const weir_kernels *context, void *to, const void *from, size_t bytes) {
    (void)context;
    if (bytes > 0) memcpy(to, from, bytes);
}

static void cpu_zero(const weir_kernels *context, void *memory, size_t bytes) {
    (void)context;
    if (bytes > 0) memset(memory, 0, bytes);
}

static weir_err cpu_finish(const weir_kernels *context) {
    (void)context;
    return WEIR_OK;
}

#ifdef WEIR_GEMM_AVX512
static bool cpu_has_avx512;

/* Where gemm_avx512.c is the faster one: measured, shape by shape. */
static bool cpu_gemm_is_own(const weir_gemm *g) {
    bool least = g->m >= GEMM_LEAST && g->n >= GEMM_LEAST * (g->a_transposed ? 2 : 1) && g->k >= GEMM_LEAST;
    bool large = (double)g->m * (double)g->n * (double)g->k > GEMM_SMALL;
    return cpu_has_avx512 && least && (large || (g->b_transposed && !g->a_transposed && g->m >= GEMM_LONG));
}
#endif

static void cpu_gemm(const weir_kernels *context, const weir_gemm *g) {
    (void)context;
    if (g->m == 0 || g->n == 0) return; /* KERNEL-K2 */
    if (g->k == 0) {                    /* not every BLAS scales C then */
        for (size_t row = 0; row < g->m; row++) {
            for (size_t col = 0; col < g->n; col++) {
                weir_real *c = g->c + row * g->ldc + col;
                *c = g->beta == 0 ? 0 : g->beta * *c;
            }
        }
        return;
    }
    enum CBLAS_TRANSPOSE a = g->a_transposed ? CblasTrans : CblasNoTrans,
                         b = g->b_transposed ? CblasTrans : CblasNoTrans;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    WEIR_ASSERT(m > 0 && n > 0 && k > 0); /* BLAS counts in int */
    WEIR_ASSERT(lda >= (g->a_transposed ? m : k) && ldb >= (g->b_transposed ? k : n) && ldc >= n);
#ifdef WEIR_GEMM_AVX512
    if (cpu_gemm_is_own(g)) {
        weir_gemm_avx512(g);
        return;
    }
#endif
#ifdef WEIR_REAL_DOUBLE
    cblas_dgemm(CblasRowMajor, a, b, m, n, k, 1, g->a, lda, g->b, ldb, g->beta, g->c, ldc);
#else
    cblas_sgemm(CblasRowMajor, a, b, m, n, k, 1, g->a, lda, g->b, ldb, g->beta, g->c, ldc);
#endif
}

static weir_kernels cpu;
static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

/* Ranks and workers are the parallelism: threads of BLAS beside them would only compete with them. */
static void cpu_prepare(void) {
    cpu = weir_loops_plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) cpu = weir_loops_avx2;
#endif
#ifdef WEIR_GEMM_AVX512
    cpu_has_avx512 = __builtin_cpu_supports("avx512f");
#endif
    cpu.name = "cpu";
    cpu.unified = true;
    cpu.piece_bytes = PIECE_BYTES;
    cpu.open = cpu_open;
    cpu.close = cpu_close;
    cpu.alloc = cpu_alloc;
    cpu.release = cpu_release;
    cpu.to_device = cpu.to_host = cpu_copy;
    cpu.zero = cpu_zero;
    cpu.copy = cpu_copy;
    cpu.loss = weir_cpu_loss;
    cpu.finish = cpu_finish;
    cpu.gemm = cpu_gemm;
    if (!getenv("OPENBLAS_NUM_THREADS")) openblas_set_num_threads(1);
}

const weir_kernels *weir_kernels_cpu(void) {
    pthread_once(&cpu_once, cpu_prepare);
    return &cpu;
}
