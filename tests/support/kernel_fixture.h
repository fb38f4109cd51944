/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_fixture.h - random arrays for kernels, and checks that run over shapes with the loops of both builds. */
#ifndef WEIR_KERNEL_FIXTURE_H
#define WEIR_KERNEL_FIXTURE_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/rng.h>

#include "loops_table.h"
#include "weir_test.h"

#define TOLERANCE 1e-5
#define ROUNDS    60u

static weir_rng rng;

static inline uint32_t below(uint32_t bound) {
    return (uint32_t)weir_rng_below(&rng, bound);
}

static inline void *array(size_t count, size_t size) {
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

static inline weir_real *random_reals(size_t count) {
    weir_real *x = array(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (weir_real)weir_rng_normal(&rng);
    return x;
}

static inline double *doubles_of(const weir_real *x, size_t count) {
    double *y = array(count, sizeof *y);
    for (size_t i = 0; i < count; i++)
        y[i] = (double)x[i];
    return y;
}

static inline uint32_t *random_index(size_t count, uint32_t bound) {
    uint32_t *index = array(count, sizeof *index);
    for (size_t i = 0; i < count; i++)
        index[i] = below(bound);
    return index;
}

/* Frees both. */
static inline void assert_close(weir_real *actual, double *expected, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)actual[i] - expected[i]);
        if (!(error <= TOLERANCE * (1 + fabs(expected[i]))))
            fail_msg("%s[%zu] is %.9g, and should be %.9g", what, i, (double)actual[i], expected[i]);
    }
    free(actual);
    free(expected);
}

/* What a sum should be, and its size: what it would be if no term cancelled another. */
typedef struct naive_sum {
    double sum, size;
    uint32_t terms;
} naive_sum;

static inline void naive_add(naive_sum *s, double term) {
    s->sum += term;
    s->size += fabs(term);
    s->terms++;
}

static inline naive_sum *naive_sums_of(const weir_real *x, size_t count) {
    naive_sum *sums = array(count, sizeof *sums);
    for (size_t i = 0; i < count; i++)
        naive_add(&sums[i], (double)x[i]);
    return sums;
}

/* Each addition rounds by at most half a unit of what the sum is then, which is no more than its size; errors of random
 * sign add up as a random walk does, by the square root of their number. */
static inline double naive_rounding(double terms) {
    return 4 * sqrt(terms + 1) * (double)(FLT_EPSILON / 2);
}

/* Frees both. Rows that many others are added to are compared by this: `assert_close` knows only what is left. */
static inline void assert_sums(weir_real *actual, naive_sum *expected, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++) {
        const naive_sum *s = &expected[i];
        double error = fabs((double)actual[i] - s->sum);
        if (!(error <= naive_rounding(s->terms + 2.0) * s->size)) /* a term's two factors are rounded, too */
            fail_msg("%s[%zu] is %.9g, and should be %.9g", what, i, (double)actual[i], s->sum);
    }
    free(actual);
    free(expected);
}

/* Runs a check over shapes with both tables; the third and fourth rounds are of nothing. */
typedef void (*kernel_check)(const weir_kernels *k, uint32_t rows, uint32_t cols);

static inline void each_table(kernel_check check) {
    const weir_kernels *tables[] = {weir_kernels_cpu(), &weir_loops_plain};
    rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t rows = round == 2 ? 0 : 1 + below(40), cols = 1 + below(70);
        for (unsigned t = 0; t < 2; t++)
            check(tables[t], rows, cols);
    }
}

#endif /* WEIR_KERNEL_FIXTURE_H */
