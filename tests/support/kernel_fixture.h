/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_fixture.h - random arrays for kernels, and checks that run over shapes with the loops of both builds. */
#ifndef WEIR_KERNEL_FIXTURE_H
#define WEIR_KERNEL_FIXTURE_H

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
