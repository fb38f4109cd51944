/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_test.c - kernels for CUDA on a processor that plays the device: each against the one of the host's table, with
 * random shapes down to nothing, in orders drawn from a seed; and no access that a device would not forgive.
 */
#include "cuda_twins.h"

/* Some rows of the table, ascending; NULL: the first ones. */
static weir_row_list list_at(const twins *t, uint32_t ids, uint32_t count, uint32_t cols, bool there) {
    void *const *arrays = there ? t->there : t->here;
    return (weir_row_list){count, cols, ids == UINT32_MAX ? NULL : arrays[ids]};
}

static uint32_t twins_list(twins *t, uint32_t rows, uint32_t *countp) {
    uint32_t *ids = array(rows, sizeof *ids), count = 0;
    *countp = rows;
    for (uint32_t row = 0; row < rows; row++)
        if (below(3)) ids[count++] = row;
    const uint32_t list = twins_add(t, ids, rows * sizeof *ids, READ);
    if (below(5) == 0) return UINT32_MAX;
    *countp = count;
    return list;
}

static void check_flat(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t x = twins_reals(t, n, READ), y = twins_reals(t, n, REALS), z = twins_reals(t, n, REALS),
                   sum = twins_sum(t, 3, SUMS);
    BOTH(t, k, at) {
        k->add(k, n, at[x], at[y]);
        k->approach(k, n, (weir_real)0.3, at[y], at[z]);
        k->square_sum(k, n, at[x], at[sum]);
    }
}

static void flat_arrays(void **state) {
    (void)state;
    each_shape(check_flat);
}

static void check_rows(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    uint32_t count;
    const uint32_t more = below(2) ? 4 * below(3) : below(9);
    const uint32_t beside = twins_reals(t, (size_t)rows * (cols + more), REALS);
    const uint32_t x = twins_reals(t, n, REALS), out = twins_reals(t, (size_t)3 * rows * cols, REALS),
                   sum = twins_sum(t, 0, SUMS), ids = twins_list(t, rows, &count),
                   index = twins_add(t, random_index((size_t)3 * rows, rows ? rows : 1),
                                     (size_t)3 * rows * sizeof(uint32_t), READ);
    BOTH(t, k, at) {
        const weir_row_list list = list_at(t, ids, count, cols, both);
        k->gather_rows(k, 3 * rows, cols, at[x], at[index], at[out], cols);
        k->gather_rows(k, rows, cols, at[x], NULL, at[beside], cols + more);
        k->square_sum_rows(k, &list, at[x], at[sum]);
        k->zero_rows(k, &list, at[x]);
    }
}

static void rows_that_are_listed(void **state) {
    (void)state;
    each_shape(check_rows);
}

/* Gradients that are too long, short enough, or no numbers. */
static double squares_of_a_round(void) {
    const double some[] = {0.5, 1, 1000, INFINITY, (double)NAN};
    return some[below(5)];
}

static weir_adamw_step step_of_a_round(void) {
    const double step = 1 + below(300);
    return (weir_adamw_step){.rate = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .epsilon = 1e-8,
                             .decay = 0.1,
                             .l2 = below(2) ? 0.3 : 0,
                             .correction1 = 1 - pow(0.9, step),
                             .correction2 = 1 - pow(0.99, step)};
}

static uint32_t twins_squares(twins *t, size_t count) {
    weir_real *x = random_reals(count);
    for (size_t i = 0; i < count; i++)
        x[i] = x[i] * x[i] + (weir_real)0.01;
    return twins_add(t, x, count * sizeof *x, REALS);
}

/* Of some rows the first moment is nothing. */
static uint32_t twins_moments(twins *t, uint32_t rows, uint32_t cols) {
    weir_real *m = random_reals((size_t)rows * cols);
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        if (i / cols % 3 == 0) m[i] = 0;
    return twins_add(t, m, (size_t)rows * cols * sizeof *m, REALS);
}

static void check_steps(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    weir_adamw_step step = step_of_a_round();
    weir_adagrad_step adagrad = {.rate = 0.01, .epsilon = 1e-3};
    const uint32_t g = twins_reals(t, n, READ), m = twins_reals(t, n, REALS), v = twins_squares(t, n),
                   p = twins_reals(t, n, REALS), s = twins_squares(t, n),
                   squares = twins_sum(t, squares_of_a_round(), READ);
    BOTH(t, k, at) {
        step.shortening = adagrad.shortening = (weir_shortening){at[squares], 1};
        k->adamw(k, n, &step, at[g], at[m], at[v], at[p]);
        k->adagrad(k, n, &adagrad, at[g], at[s], at[p]);
    }
}

static void steps_of_flat_arrays(void **state) {
    (void)state;
    each_shape(check_steps);
}

static void check_steps_of_rows(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const bool adagrad = below(3) == 0;
    uint32_t count;
    weir_adamw_step step = step_of_a_round();
    weir_adagrad_step other = {.rate = 0.01, .epsilon = 1e-3};
    weir_real *gradients = random_reals(n);
    for (size_t i = 0; i < n; i++)
        if (i / cols % 2) gradients[i] = 0;
    step.l2 = 0;
    const uint32_t g = twins_add(t, gradients, n * sizeof *gradients, READ), m = twins_moments(t, rows, cols),
                   v = twins_squares(t, n), p = twins_reals(t, n, REALS), ids = twins_list(t, rows, &count),
                   moved = twins_add(t, array(rows, sizeof(uint64_t)), rows * sizeof(uint64_t), BYTES),
                   squares = twins_sum(t, squares_of_a_round(), READ);
    BOTH(t, k, at) {
        const weir_row_list list = list_at(t, ids, count, cols, both), all = {rows, cols, NULL};
        step.shortening = other.shortening = (weir_shortening){at[squares], 1};
        k->adamw_moved(k, &all, 3, at[m], at[moved]);
        if (adagrad)
            k->adagrad_rows(k, &list, &other, at[g], at[v], at[p]);
        else
            k->adamw_rows(k, &list, &step, 7, at[g], at[moved], at[m], at[v], at[p]);
    }
}

static void steps_of_rows(void **state) {
    (void)state;
    each_shape(check_steps_of_rows);
}

static void check_bring(twins *t, uint32_t rows, uint32_t cols) {
    const weir_adamw_wait wait = {20 + below(100), 60, below(4) ? 0.01 : 0, 0.9, 0.99, 1e-8, 0.1};
    uint32_t count;
    uint64_t *since = array(rows, sizeof *since);
    for (uint32_t row = 0; row < rows; row++)
        since[row] = below((uint32_t)wait.steps + 1) | (row % 3 == 0 ? WEIR_ROW_STILL : 0);
    const uint32_t m = twins_moments(t, rows, cols), v = twins_squares(t, (size_t)rows * cols),
                   p = twins_reals(t, (size_t)rows * cols, REALS), ids = twins_list(t, rows, &count),
                   moved = twins_add(t, since, rows * sizeof *since, BYTES);
    BOTH(t, k, at) {
        const weir_row_list list = list_at(t, ids, count, cols, both);
        k->adamw_bring(k, &list, &wait, at[moved], at[m], at[v], at[p]);
    }
}

static void rows_that_waited(void **state) {
    (void)state;
    each_shape(check_bring);
}

/* One output or some, with weights or without, some targets without a label; the gradient is not always wanted. */
static void check_loss(twins *t, uint32_t rows, uint32_t cols) {
    const uint32_t outputs = cols % 3 == 0 ? 1 : 2 + cols % 5, classes = outputs == 1 ? 2 : outputs;
    uint32_t *labels = random_index(rows, classes);
    double *of_class = array(classes, sizeof *of_class);
    for (uint32_t i = 0; i < rows; i++)
        if (below(8) == 0) labels[i] = WEIR_LOSS_NO_LABEL;
    for (uint32_t i = 0; i < classes; i++)
        of_class[i] = 0.5 + below(4);
    const uint32_t z = twins_reals(t, (size_t)rows * outputs, READ), d = twins_reals(t, (size_t)rows * outputs, REALS),
                   y = twins_add(t, labels, rows * sizeof *labels, READ),
                   w = twins_add(t, of_class, classes * sizeof *of_class, READ), sum = twins_sum(t, 1, SUMS);
    const bool weighted = below(2), wanted = below(4);
    const double focal = below(2) ? 0 : 0.5 * below(5);
    BOTH(t, k, at) {
        const weir_loss loss = {at[z], at[y], weighted ? at[w] : NULL, rows, classes, 3, focal};
        k->loss(k, outputs, &loss, wanted ? at[d] : NULL, at[sum]);
    }
}

static void losses(void **state) {
    (void)state;
    each_shape(check_loss);
}

/* More than one launch's blocks take, with a row that is more than a block. */
static void large_arrays(void **state) {
    (void)state;
    static void (*const checks[])(twins *, uint32_t, uint32_t) = {check_flat, check_rows, check_steps,
                                                                  check_steps_of_rows, check_bring};
    rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        twins_check(checks[i], i < 3 ? 1100 : 1030, i < 3 ? 300 : 5);
}

/* Nothing of the table is missing. */
static void the_table_is_whole(void **state) {
    (void)state;
    const weir_kernels *k;
    emu_reset(weir_test_seed());
    assert_ok(weir_cuda_open(0, &k));
    void (*functions[(sizeof *k - offsetof(weir_kernels, open)) / sizeof(void (*)(void))])(void);
    memcpy(functions, (const char *)k + offsetof(weir_kernels, open), sizeof functions);
    assert_true(sizeof functions / sizeof functions[0] > 60 && !k->unified);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!functions[i]) fail_msg("function %zu of the table is missing", i);
    k->close(k);
}

/* Copies of all sizes, to more memory than is staged at a time; what they are of changes as soon as each has returned.
 * A few of them fit without a wait. */
static void copies_to_the_device(void **state) {
    (void)state;
    enum { ROOM = 11 << 20, FEW = 1 << 20 };
    uint8_t *expected = array(ROOM, 1), *got = array(ROOM, 1), *piece = array(ROOM, 1);
    const weir_kernels *k;
    void *memory;
    emu_reset(weir_test_seed());
    rng = weir_rng_stream(weir_test_seed(), 5, 0);
    assert_ok(weir_cuda_open(0, &k));
    assert_ok(k->alloc(k, ROOM, &memory));
    for (size_t at = 0, some; at < ROOM; at += some) {
        const bool few = at < FEW;
        some = 1 + below(few ? 5000 : below(4) ? 100000 : 3 << 20);
        if (some > ROOM - at) some = ROOM - at;
        for (size_t i = 0; i < some; i++)
            expected[at + i] = piece[i] = (uint8_t)(at + 7 * i);
        k->to_device(k, (uint8_t *)memory + at, piece, some);
        memset(piece, 0xee, some);
        if (few) assert_int_equal(emu_counts().syncs, 0);
    }
    k->to_host(k, got, memory, ROOM);
    assert_ok(k->finish(k));
    assert_memory_equal(got, expected, ROOM);
    k->release(k, memory);
    k->close(k);
    size_t findings;
    emu_findings(&findings);
    emu_print_findings();
    assert_int_equal(findings, 0);
    free(expected);
    free(got);
    free(piece);
}

static void what_a_device_lacks_is_told(void **state) {
    (void)state;
    const weir_kernels *k;
    void *memory;
    emu_reset(weir_test_seed());
    emu_limit(1 << 20);
    assert_ok(weir_cuda_open(0, &k));
    assert_err(k->alloc(k, 1 << 21, &memory), WEIR_ENOMEM, "on the GPU for 2097152 bytes");
    assert_null(memory);
    assert_ok(k->finish(k));
    k->close(k);
}

WEIR_TESTS(WEIR_CASE(flat_arrays), WEIR_CASE(rows_that_are_listed), WEIR_CASE(steps_of_flat_arrays),
           WEIR_CASE(steps_of_rows), WEIR_CASE(rows_that_waited), WEIR_CASE(losses), WEIR_CASE(large_arrays),
           WEIR_CASE(the_table_is_whole), WEIR_CASE(copies_to_the_device), WEIR_CASE(what_a_device_lacks_is_told))
