/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_twins.h - runs a kernel of the host's table and its twin for CUDA, on an emulated device, with the same arrays,
 * and compares what both have written.
 */
#ifndef WEIR_TEST_CUDA_TWINS_H
#define WEIR_TEST_CUDA_TWINS_H

#include <weir/store/base/alloc.h>

#include "cuda.h"
#include "cuda/emulator.h"
#include "kernel_fixture.h"

#define SHAPES 1000u /* of each kernel */
#define ARRAYS 12u

/* How an array is compared: not at all, byte by byte, or by how far numbers are off. */
typedef enum twins_kind { READ, BYTES, REALS, SUMS } twins_kind;

/* One run of a kernel on each table. Arrays are filled once, and lie in the memory of both. */
typedef struct twins {
    const weir_kernels *cpu, *cuda;
    uint32_t count;
    void *here[ARRAYS], *there[ARRAYS];
    size_t bytes[ARRAYS];
    twins_kind kinds[ARRAYS];
    uint32_t terms[ARRAYS]; /* of about 1 each, that a number is the sum of; 0: as good as 1 */
    uint64_t bits;          /* what came of the second table, once closed: the same bits, the same number */
} twins;

static inline void twins_open(twins *t) {
    *t = (twins){.cpu = weir_kernels_cpu()};
    assert_ok(weir_cuda_open(0, &t->cuda));
}

/* Takes the array over. */
static inline uint32_t twins_add(twins *t, void *array, size_t bytes, twins_kind kind) {
    const uint32_t i = t->count++;
    assert_true(i < ARRAYS);
    t->here[i] = array;
    t->bytes[i] = bytes;
    t->kinds[i] = kind;
    assert_ok(t->cuda->alloc(t->cuda, bytes, &t->there[i]));
    t->cuda->to_device(t->cuda, t->there[i], array, bytes);
    return i;
}

static inline uint32_t twins_reals(twins *t, size_t count, twins_kind kind) {
    return twins_add(t, random_reals(count), count * sizeof(weir_real), kind);
}

static inline uint32_t twins_sum(twins *t, double value, twins_kind kind) {
    double *one = array(1, sizeof *one);
    *one = value;
    return twins_add(t, one, sizeof *one, kind);
}

/* Two orders of a sum differ by what is rounded off on the way. So much of n terms is a random walk of n steps, of
 * which each is half a unit of a sum that has itself walked to the root of n: some 2.4e-8 * n, of which the slack is
 * eight times. A NaN is one in both. */
static inline void twins_compare(const twins *t, uint32_t i, const void *got) {
    const bool sums = t->kinds[i] == SUMS;
    if (t->kinds[i] == BYTES) assert_memory_equal(got, t->here[i], t->bytes[i]);
    const double slack = 1 + t->terms[i] / 50.0;
    for (size_t n = 0; t->kinds[i] >= REALS && n < t->bytes[i] / (sums ? sizeof(double) : sizeof(weir_real)); n++) {
        const double expected = sums ? ((const double *)t->here[i])[n] : (double)((const weir_real *)t->here[i])[n],
                     is = sums ? ((const double *)got)[n] : (double)((const weir_real *)got)[n];
        if (isnan(expected)
                ? !isnan(is)
                : !(is == expected || fabs(is - expected) <= (sums ? 1e-9 : TOLERANCE) * (slack + fabs(expected))))
            fail_msg("array %u [%zu] is %.12g, and should be %.12g", i, n, is, expected);
    }
}

static inline void twins_hash(twins *t, const void *got, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        t->bits = (t->bits ^ ((const unsigned char *)got)[i]) * UINT64_C(0x100000001B3);
}

/* What was written is the same; nothing was accessed that should not be; all memory is given back. */
static inline void twins_close(twins *t) {
    size_t findings;
    assert_ok(t->cuda->finish(t->cuda));
    for (uint32_t i = 0; i < t->count; i++) {
        void *got = array(t->bytes[i] + 1, 1);
        t->cuda->to_host(t->cuda, got, t->there[i], t->bytes[i]);
        twins_compare(t, i, got);
        twins_hash(t, got, t->bytes[i]);
        t->cuda->release(t->cuda, t->there[i]);
        free(got);
        free(t->here[i]);
    }
    assert_ok(t->cuda->finish(t->cuda));
    t->cuda->close(t->cuda);
    emu_findings(&findings);
    emu_print_findings();
    assert_int_equal(findings, 0);
    assert_int_equal(emu_counts().live_bytes, 0);
}

/* Zero rows and one column among them. */
static inline void each_shape(void (*check)(twins *t, uint32_t rows, uint32_t cols)) {
    const uint64_t seed = weir_test_seed(), shapes = weir_test_rounds(SHAPES) / weir_test_part(10, 1);
    rng = weir_rng_stream(seed, 0, 0);
    for (uint64_t shape = 0; shape < shapes; shape++) {
        const uint32_t rows = shape % 10 == 0 ? 0 : 1 + below(30), cols = shape % 7 == 0 ? 1 : 1 + below(40);
        twins t;
        emu_reset(seed + shape);
        twins_open(&t);
        check(&t, rows, cols);
        twins_close(&t);
    }
}

static inline void twins_check(void (*check)(twins *t, uint32_t rows, uint32_t cols), uint32_t rows, uint32_t cols) {
    twins t;
    emu_reset(weir_test_seed());
    twins_open(&t);
    check(&t, rows, cols);
    twins_close(&t);
}

/* KERNEL-K1: whatever order threads and blocks take, the bits are the same. Shapes are large enough for some blocks. */
static inline void assert_same_bits(void (*check)(twins *t, uint32_t rows, uint32_t cols), uint32_t rows,
                                    uint32_t cols) {
    const weir_rng before = rng;
    twins of[2];
    for (unsigned i = 0; i < 2; i++) {
        rng = before;
        emu_reset(weir_test_seed() + i);
        twins_open(&of[i]);
        check(&of[i], rows, cols);
        twins_close(&of[i]);
    }
    assert_true(of[0].bits == of[1].bits);
}

#define BOTH(t, k, at)                                                         \
    for (unsigned both = 0; both < 2; both++)                                  \
        for (const weir_kernels *k = both ? (t)->cuda : (t)->cpu; k; k = NULL) \
            for (void *const *at = both ? (t)->there : (t)->here; at; at = NULL)

#endif /* WEIR_TEST_CUDA_TWINS_H */
