/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_layers_test.c - products and layers for CUDA on a processor that plays the device, each against the one of the
 * host's table: see cuda_test.c.
 */
#include "cuda_twins.h"

#define PAST_COLS   5u    /* a leading dimension is up to so much more than the columns */
#define PARTS_BYTES 8192u /* of a context, while it is open */

/* Some numbers are none. */
static uint32_t twins_with_nan(twins *t, size_t count, twins_kind kind) {
    weir_real *x = random_reals(count);
    for (size_t i = 0; i < count; i++) {
        if (below(20) == 0) x[i] = (weir_real)NAN;
        if (below(20) == 0) x[i] = 0;
    }
    return twins_add(t, x, count * sizeof *x, kind);
}

static uint32_t twins_indices(twins *t, size_t count, uint32_t bound, twins_kind kind) {
    return twins_add(t, random_index(count, bound), count * sizeof(uint32_t), kind);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Without a beta C is not read, so that there may be anything: a NaN. Cells past the columns stay as they are. */
static void check_gemm_of(twins *t, uint32_t m, uint32_t n, uint32_t k_terms) {
    const weir_real betas[] = {0, 1, (weir_real)-0.5};
    weir_gemm g = {.m = m, .n = n, .k = k_terms, .a_transposed = below(2), .b_transposed = below(2)};
    g.beta = betas[below(3)];
    g.lda = (g.a_transposed ? m : k_terms) + below(PAST_COLS);
    g.ldb = (g.b_transposed ? k_terms : n) + below(PAST_COLS);
    g.ldc = n + below(PAST_COLS);
    const size_t cells = (size_t)m * g.ldc;
    weir_real *c = random_reals(cells);
    for (size_t i = 0; g.beta == 0 && i < cells; i++)
        c[i] = i % g.ldc < n ? (weir_real)NAN : c[i];
    const uint32_t a = twins_reals(t, (size_t)(g.a_transposed ? k_terms : m) * g.lda, READ),
                   b = twins_reals(t, (size_t)(g.b_transposed ? n : k_terms) * g.ldb, READ),
                   out = twins_add(t, c, cells * sizeof *c, REALS);
    t->terms[out] = k_terms;
    BOTH(t, k, at) {
        g.a = at[a];
        g.b = at[b];
        g.c = at[out];
        k->gemm(k, &g);
    }
}

static void check_tall(twins *t, uint32_t rows, uint32_t cols) {
    check_gemm_of(t, rows, cols, 1);
}

static void check_gemm(twins *t, uint32_t rows, uint32_t cols) {
    const uint32_t wide = below(20) == 0 ? 100 : 0;
    check_gemm_of(t, rows + wide, below(12) == 0 ? 0 : cols + wide, below(12) == 0 ? 0 : 1 + below(40));
}

static void products_of_matrices(void **state) {
    (void)state;
    each_shape(check_gemm);
}

static void check_row_products(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t x = twins_reals(t, n, READ), y = twins_reals(t, cols, READ), out = twins_reals(t, rows, REALS);
    t->terms[out] = cols;
    BOTH(t, k, at) k->row_products(k, rows, cols, at[x], at[y], at[out]);
}

static void products_of_rows(void **state) {
    (void)state;
    each_shape(check_row_products);
}

static void check_heads(twins *t, uint32_t rows, uint32_t width) {
    const uint32_t heads = 1 + below(4), cols = heads * width;
    const size_t n = (size_t)rows * cols;
    const uint32_t x = twins_reals(t, n, READ), w = twins_reals(t, cols, READ),
                   out = twins_reals(t, (size_t)rows * heads, REALS), d = twins_reals(t, (size_t)rows * heads, READ),
                   dx = twins_reals(t, n, REALS), dw = twins_reals(t, cols, REALS);
    t->terms[out] = width;
    t->terms[dw] = rows;
    BOTH(t, k, at) {
        k->head_products(k, rows, heads, cols, at[x], at[w], at[out]);
        k->head_products_back(k, rows, heads, cols, at[x], at[w], at[d], at[dx], at[dw]);
    }
}

static void products_of_heads(void **state) {
    (void)state;
    each_shape(check_heads);
}

/* --- number by number --------------------------------------------------------------------------------------------- */

static void check_embed(twins *t, uint32_t rows, uint32_t cols) {
    const uint32_t stride = 1 + below(3), table_rows = 1 + below(9), count = rows * stride;
    uint32_t *some = random_index(count, table_rows);
    for (uint32_t i = 0; i < count; i++)
        if (below(4) == 0) some[i] = WEIR_NO_SLOT;
    const uint32_t slots = twins_add(t, some, count * sizeof *some, READ),
                   table = twins_reals(t, (size_t)table_rows * cols, READ),
                   out = twins_reals(t, (size_t)rows * cols, REALS);
    BOTH(t, k, at) k->embed(k, rows, cols, at[slots], stride, at[table], at[out]);
}

static void embeddings(void **state) {
    (void)state;
    each_shape(check_embed);
}

/* Rebased into another array, and in place. */
static void check_indices(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t outer = twins_indices(t, cols, UINT32_MAX, READ), inner = twins_indices(t, n, cols, READ),
                   composed = twins_indices(t, n, 1, BYTES), other = twins_indices(t, n, 1, BYTES);
    BOTH(t, k, at) {
        k->compose(k, n, at[outer], at[inner], at[composed]);
        k->rebase(k, n, at[composed], 7, at[other]);
        k->rebase(k, n, at[composed], 3, at[composed]);
    }
}

static void indices(void **state) {
    (void)state;
    each_shape(check_indices);
}

static void check_bias(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t b = twins_reals(t, cols, READ), x = twins_with_nan(t, n, REALS), y = twins_with_nan(t, n, REALS),
                   dy = twins_with_nan(t, n, REALS), dx = twins_reals(t, n, READ), db = twins_reals(t, cols, REALS);
    t->terms[db] = rows;
    BOTH(t, k, at) {
        k->bias(k, rows, cols, at[b], at[x]);
        k->bias_relu(k, rows, cols, at[b], at[y]);
        k->relu_back(k, n, at[y], at[dy]);
        k->bias_back(k, rows, cols, at[dx], at[db]);
    }
}

static void biases(void **state) {
    (void)state;
    each_shape(check_bias);
}

/* Three arrays, of which some numbers are the same and some no numbers. */
static void check_most(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t x[] = {twins_with_nan(t, n, READ), twins_with_nan(t, n, READ), twins_with_nan(t, n, READ)},
                   out = twins_reals(t, n, REALS), chosen = twins_indices(t, n, 9, BYTES),
                   dout = twins_reals(t, n, READ), dx = twins_reals(t, n, REALS);
    BOTH(t, k, at) {
        for (uint32_t number = 0; number < 3; number++)
            k->take_most(k, n, number, at[x[number]], at[out], at[chosen]);
        k->take_most_back(k, n, 0, at[chosen], at[dout], at[dx]);
        k->take_most_back(k, n, 2, at[chosen], at[dout], at[dx]);
    }
}

static void the_most(void **state) {
    (void)state;
    each_shape(check_most);
}

/* The gradient of x is not always wanted. */
static void check_more(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const bool wanted = below(4);
    const uint32_t more = twins_reals(t, 1, READ), x = twins_reals(t, n, READ), out = twins_reals(t, n, REALS),
                   dout = twins_reals(t, n, READ), dmore = twins_reals(t, 1, REALS), dx = twins_reals(t, n, REALS),
                   factors = twins_reals(t, rows, READ), scaled = twins_reals(t, n, REALS);
    t->terms[dmore] = (uint32_t)n;
    BOTH(t, k, at) {
        k->add_more(k, n, at[more], at[x], at[out]);
        k->add_more_back(k, n, at[more], at[x], at[dout], at[dmore], wanted ? at[dx] : NULL);
        k->add_scaled_rows(k, rows, cols, at[factors], at[x], at[scaled]);
    }
}

static void what_is_added(void **state) {
    (void)state;
    each_shape(check_more);
}

/* Bit by bit: what is dropped, and what becomes of the rest. */
static void check_dropout(twins *t, uint32_t rows, uint32_t cols) {
    const double rates[] = {0, 0.1, 0.5, 0.999};
    const bool keyed = below(2);
    weir_dropout d = {.rate = rates[below(4)], .seed = weir_rng_u64(&rng), .stream = weir_rng_u32(&rng)};
    uint64_t *of_rows = array(rows, sizeof *of_rows);
    for (uint32_t i = 0; i < rows; i++)
        of_rows[i] = weir_rng_u64(&rng);
    const uint32_t keys = twins_add(t, of_rows, rows * sizeof *of_rows, READ),
                   x = twins_reals(t, (size_t)rows * cols, BYTES);
    BOTH(t, k, at) {
        d.keys = keyed ? at[keys] : NULL;
        k->dropout(k, rows, cols, &d, at[x]);
    }
}

static void dropouts(void **state) {
    (void)state;
    each_shape(check_dropout);
}

/* Ages of all sizes, below 0 and above 127 years among them. */
static void check_time(twins *t, uint32_t rows, uint32_t cols) {
    const uint32_t ldout = WEIR_TIME_CODE_COUNT + cols - 1, groups_count = 3;
    int64_t *of_edges = array(rows, sizeof *of_edges), *of_groups = array(groups_count, sizeof *of_groups);
    for (uint32_t i = 0; i < groups_count; i++)
        of_groups[i] = INT64_C(1700000000000000) + below(1000000);
    for (uint32_t i = 0; i < rows; i++)
        of_edges[i] = of_groups[below(groups_count)] - (int64_t)exp(40 * weir_rng_double(&rng)) * (below(9) ? 1 : -1);
    const uint32_t times = twins_add(t, of_edges, rows * sizeof *of_edges, READ),
                   before = twins_add(t, of_groups, groups_count * sizeof *of_groups, READ),
                   groups = twins_indices(t, cols, groups_count, READ), parents = twins_indices(t, rows, cols, READ),
                   out = twins_reals(t, (size_t)rows * ldout, REALS), own = twins_indices(t, rows, groups_count, READ),
                   out_of_one = twins_reals(t, (size_t)rows * ldout, REALS);
    BOTH(t, k, at) {
        const weir_ages ages = {at[before], at[groups], at[parents], at[times]};
        k->time_code(k, rows, &ages, at[out], ldout);
        const weir_ages of_one = {at[before], at[own], NULL, at[times]};
        if (rows > 0) k->time_code(k, rows, &of_one, at[out_of_one], ldout);
    }
}

static void codes_of_times(void **state) {
    (void)state;
    each_shape(check_time);
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

/* Neighbours in a row are 2 apart and more: where all are nearly the same, the norm makes what is rounded off of them
 * up to 300 times larger. */
static weir_real *reals_apart(uint32_t rows, uint32_t cols) {
    weir_real *x = random_reals((size_t)rows * cols);
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        x[i] = i % cols % 2 ? 1 + (weir_real)fabs((double)x[i]) : -1 - (weir_real)fabs((double)x[i]);
    return x;
}

static void check_norm(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t x = twins_add(t, reals_apart(rows, cols), n * sizeof(weir_real), READ),
                   gain = twins_reals(t, cols, READ), shift = twins_reals(t, cols, READ),
                   out = twins_reals(t, n, REALS), stats = twins_reals(t, (size_t)2 * rows, REALS);
    BOTH(t, k, at) k->layer_norm(k, rows, cols, at[x], at[gain], at[shift], 0, at[out], at[stats]);
}

/* The stats are the same for both tables. */
static void check_norm_back(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    const uint32_t x = twins_reals(t, n, READ), gain = twins_reals(t, cols, READ),
                   stats = twins_reals(t, (size_t)2 * rows, READ), d = twins_reals(t, n, REALS),
                   dgain = twins_reals(t, cols, REALS), dshift = twins_reals(t, cols, REALS);
    t->terms[dgain] = t->terms[dshift] = rows;
    t->terms[d] = cols;
    BOTH(t, k, at)
    k->layer_norm_back(k, rows, cols, at[x], at[stats], at[gain], rows % 2, at[d], at[dgain], at[dshift]);
}

static void norms(void **state) {
    (void)state;
    each_shape(check_norm);
}

static void gradients_of_norms(void **state) {
    (void)state;
    each_shape(check_norm_back);
}

/* A NaN in a row is in all of its row, and in no other. */
static void check_norm_of_nan(twins *t, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    weir_real *with = reals_apart(rows, cols);
    for (uint32_t row = 0; row < rows; row += 3)
        with[(size_t)row * cols + below(cols)] = (weir_real)NAN;
    const uint32_t x = twins_add(t, with, n * sizeof *with, READ), gain = twins_reals(t, cols, READ),
                   out = twins_reals(t, n, REALS), stats = twins_reals(t, (size_t)2 * rows, REALS);
    BOTH(t, k, at) k->layer_norm(k, rows, cols, at[x], at[gain], at[gain], 0, at[out], at[stats]);
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

typedef void (*check_of_a_shape)(twins *t, uint32_t rows, uint32_t cols);

/* More than a block or a part takes; and twice the same. */
static void large_arrays(void **state) {
    (void)state;
    static const check_of_a_shape checks[] = {
        check_row_products, check_heads,   check_embed, check_indices,   check_bias,        check_most,
        check_more,         check_dropout, check_time,  check_norm_back, check_norm_of_nan,
    };
    rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        assert_same_bits(checks[i], 1100, 70);
}

/* More than one launch's blocks take at once. */
static void more_than_a_launch(void **state) {
    (void)state;
    static const check_of_a_shape of_cells[] = {check_embed, check_indices, check_bias, check_most, check_more},
                                  of_rows[] = {check_row_products, check_heads, check_norm_back, check_norm_of_nan};
    rng = weir_rng_stream(weir_test_seed(), 4, 0);
    for (size_t i = 0; i < sizeof of_cells / sizeof of_cells[0]; i++)
        twins_check(of_cells[i], 2, 132000);
    for (size_t i = 0; i < sizeof of_rows / sizeof of_rows[0]; i++)
        twins_check(of_rows[i], 8200, 3);
    twins_check(check_dropout, 33000, 65);
    twins_check(check_time, 33000, 1);
    twins_check(check_tall, 65600, 1);
}

static void check_sliced(twins *t, uint32_t rows, uint32_t cols) {
    check_gemm_of(t, cols, cols + 1, rows);
}

/* Many terms and few numbers: in slices. */
static void products_of_many_terms(void **state) {
    (void)state;
    rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_same_bits(check_sliced, 1023 + 500 * i, 1 + 30 * i);
    assert_same_bits(check_gemm, 150, 90);
}

static void check_nothing(twins *t, uint32_t rows, uint32_t cols) {
    const uint32_t x = twins_reals(t, cols, READ), out = twins_reals(t, (size_t)rows + cols, BYTES);
    const weir_dropout d = {.rate = 0.5};
    const weir_kernels *k = t->cuda;
    void *const *at = t->there;
    k->bias(k, 0, cols, at[x], at[out]);
    k->bias_back(k, 0, cols, at[x], at[out]);
    k->bias_back(k, rows, 0, at[x], at[out]);
    k->row_products(k, rows, 0, at[x], at[x], at[out]);
    k->head_products_back(k, 0, 1, cols, at[x], at[x], at[x], at[out], at[out]);
    k->layer_norm_back(k, rows, 0, at[x], at[x], at[x], false, at[out], at[out], at[out]);
    k->dropout(k, rows, 0, &d, at[out]);
    k->add_more_back(k, 0, at[x], at[x], at[x], at[out], at[out]);
    assert_int_equal(emu_counts().launches, 0);
}

/* KERNEL-K2 */
static void nothing_launches_nothing(void **state) {
    (void)state;
    twins t;
    rng = weir_rng_stream(weir_test_seed(), 3, 0);
    emu_reset(1);
    twins_open(&t);
    check_nothing(&t, 3, 4);
    twins_close(&t);
}

/* It is told by `finish`, once, and nothing is written; what needs less still has it. */
static void a_device_without_scratch_memory(void **state) {
    (void)state;
    weir_real ones[4096], got = 0;
    void *x, *sums;
    const weir_kernels *k;
    for (size_t i = 0; i < 4096; i++)
        ones[i] = 1;
    emu_reset(weir_test_seed());
    assert_ok(weir_cuda_open(0, &k));
    assert_ok(k->alloc(k, sizeof ones, &x));
    assert_ok(k->alloc(k, sizeof ones, &sums));
    k->to_device(k, x, ones, sizeof ones);
    k->zero(k, sums, sizeof ones);
    emu_limit(2 * sizeof ones + PARTS_BYTES + 4096);
    k->bias_back(k, 1, 16, x, sums);
    k->bias_back(k, 1, 4096, x, sums);
    assert_err(k->finish(k), WEIR_ENOMEM, "on the GPU, for scratch memory");
    k->bias_back(k, 1, 16, x, sums);
    k->to_host(k, &got, sums, sizeof got);
    assert_ok(k->finish(k));
    assert_true(got == 2);
    k->release(k, x);
    k->release(k, sums);
    k->close(k);
    assert_int_equal(emu_counts().live_bytes, 0);
}

WEIR_TESTS(WEIR_CASE(products_of_matrices), WEIR_CASE(products_of_rows), WEIR_CASE(products_of_heads),
           WEIR_CASE(embeddings), WEIR_CASE(indices), WEIR_CASE(biases), WEIR_CASE(the_most), WEIR_CASE(what_is_added),
           WEIR_CASE(dropouts), WEIR_CASE(codes_of_times), WEIR_CASE(norms), WEIR_CASE(gradients_of_norms),
           WEIR_CASE(large_arrays), WEIR_CASE(more_than_a_launch), WEIR_CASE(products_of_many_terms),
           WEIR_CASE(nothing_launches_nothing), WEIR_CASE(a_device_without_scratch_memory))
