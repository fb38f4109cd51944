/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_blas.c - loaded before OpenBLAS (LD_PRELOAD): makes a rank slow to compute, and leaves the processor to others
 * meanwhile.
 *
 *   WEIR_TEST_BLAS_US=N      before each product of matrices it sleeps for N microseconds
 *   WEIR_TEST_BLAS_RANK=R    of the rank that mpirun gave this number alone; else of all
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cblas.h>

typedef __typeof__(cblas_sgemm) *slow_gemm;

static void slow_sleep(void) {
    const char *us = getenv("WEIR_TEST_BLAS_US"), *slow = getenv("WEIR_TEST_BLAS_RANK");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const int64_t ns = us ? strtoll(us, NULL, 10) * 1000 : 0;
    const struct timespec time = {ns / 1000000000, (long)(ns % 1000000000)};
    if (ns > 0 && (!slow || (rank && strcmp(rank, slow) == 0))) nanosleep(&time, NULL);
}

void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transa, enum CBLAS_TRANSPOSE transb, blasint m, blasint n,
                 blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb, float beta, float *c,
                 blasint ldc) {
    void *found = dlsym(RTLD_NEXT, "cblas_sgemm");
    slow_gemm gemm;
    if (!found) abort();
    memcpy(&gemm, &found, sizeof gemm); /* ISO C knows no way from a pointer to a function */
    slow_sleep();
    gemm(order, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
