/* SPDX-License-Identifier: Apache-2.0 */
/* optimiser_test.c - kernels of rows of tables, steps that rows have waited for, and gradients that are too long. */
#include "kernel_fixture.h"

/* A table, and a random list of its rows, ascending. */
typedef struct listed {
    weir_row_list rows;
    uint32_t ids[64];
    bool has[64];
    uint32_t all; /* rows of the table */
    size_t cells;
} listed;

static listed random_list(uint32_t rows, uint32_t cols) {
    listed l = {.rows = {.cols = cols}, .all = rows, .cells = (size_t)rows * cols};
    for (uint32_t row = 0; row < rows; row++) {
        l.has[row] = below(3) > 0;
        if (l.has[row]) l.ids[l.rows.count++] = row;
    }
    return l;
}

/* Of the copy that is returned the ids are borrowed. */
static weir_row_list list_of(const listed *l) {
    return (weir_row_list){l->rows.count, l->rows.cols, l->ids};
}

static weir_real *copy_of(const weir_real *x, size_t count) {
    weir_real *y = array(count, sizeof *y);
    memcpy(y, x, count * sizeof *y);
    return y;
}

/* Of each cell: the row is one of those listed, or it is what it was, to the bit. */
static void assert_others_rest(const listed *l, const weir_real *now, const weir_real *before) {
    for (uint32_t row = 0; row < l->all; row++)
        if (!l->has[row])
            assert_memory_equal(now + (size_t)row * l->rows.cols, before + (size_t)row * l->rows.cols,
                                l->rows.cols * sizeof *now);
}

static void check_rows(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const listed l = random_list(rows, cols);
    const weir_row_list list = list_of(&l), first = {rows, cols, NULL};
    weir_real *x = random_reals(l.cells), *before = copy_of(x, l.cells);
    double squares = 0, found = 1, all = 0, expected_all = 0;
    for (size_t i = 0; i < l.cells; i++) {
        squares += l.has[i / cols] ? (double)x[i] * (double)x[i] : 0;
        expected_all += (double)x[i] * (double)x[i];
    }
    k->square_sum_rows(k, &list, x, &found);
    assert_true(fabs(found - 1 - squares) <= 1e-12 * (1 + squares));
    k->square_sum_rows(k, &first, x, &all);
    assert_true(fabs(all - expected_all) <= 1e-12 * (1 + expected_all));
    k->zero_rows(k, &list, x);
    assert_others_rest(&l, x, before);
    for (size_t i = 0; i < l.cells; i++)
        assert_true(!l.has[i / cols] || x[i] == 0);
    free(x), free(before);
}

static void rows_are_those_listed(void **state) {
    (void)state;
    each_table(check_rows);
}

/* What a step of AdamW makes of one number, in double. */
typedef struct cell {
    double m, v, p;
} cell;

static void cell_step(cell *c, const weir_adamw_step *s, double gradient) {
    c->m = s->beta1 * c->m + (1 - s->beta1) * gradient;
    c->v = s->beta2 * c->v + (1 - s->beta2) * gradient * gradient;
    c->p -= s->rate * (c->m / s->correction1 / (sqrt(c->v / s->correction2) + s->epsilon) + s->decay * c->p);
}

static weir_adamw_step step_of(uint64_t step) {
    return (weir_adamw_step){.rate = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .epsilon = 1e-8,
                             .decay = 0.1,
                             .correction1 = 1 - pow(0.9, (double)step),
                             .correction2 = 1 - pow(0.99, (double)step)};
}

/* Rows with a gradient step as all would; those whose gradients have all been 0 stay still. */
static void check_adamw_rows(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const listed l = random_list(rows, cols);
    const weir_row_list list = list_of(&l);
    weir_real *m = array(l.cells, sizeof *m), *v = array(l.cells, sizeof *v), *p = random_reals(l.cells),
              *g = random_reals(l.cells), *before = copy_of(p, l.cells);
    uint64_t *moved = array(rows, sizeof *moved);
    weir_adamw_step step = step_of(1);
    step.shortening = (weir_shortening){&(double){4}, 1};
    for (size_t i = 0; i < l.cells; i++)
        if (i / cols % 2) g[i] = 0;
    double *expected = doubles_of(p, l.cells);
    for (size_t i = 0; i < l.cells; i++) {
        cell c = {.p = expected[i]};
        cell_step(&c, &step, 0.5 * (double)g[i]);
        if (l.has[i / cols]) expected[i] = c.p;
    }
    k->adamw_rows(k, &list, &step, 1, g, moved, m, v, p);
    assert_others_rest(&l, p, before);
    for (uint32_t row = 0; row < rows; row++)
        assert_true(moved[row] == (!l.has[row] ? 0 : row % 2 ? (1 | WEIR_ROW_STILL) : 1));
    assert_close(p, expected, l.cells, "parameter");
    free(m), free(v), free(g), free(before), free(moved);
}

static void adamw_of_rows_is_that_of_all(void **state) {
    (void)state;
    each_table(check_adamw_rows);
}

static void check_adagrad_rows(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const listed l = random_list(rows, cols);
    const weir_row_list list = list_of(&l);
    weir_real *squares = array(l.cells, sizeof *squares), *p = random_reals(l.cells), *g = random_reals(l.cells),
              *before = copy_of(p, l.cells);
    double *expected = doubles_of(p, l.cells);
    for (size_t i = 0; i < l.cells; i++) {
        const double gradient = 0.5 * (double)g[i];
        if (l.has[i / cols]) expected[i] -= 0.01 * gradient / (fabs(gradient) + 1e-3);
    }
    const weir_adagrad_step step = {.rate = 0.01, .epsilon = 1e-3, .shortening = {&(double){4}, 1}};
    k->adagrad_rows(k, &list, &step, g, squares, p);
    assert_others_rest(&l, p, before);
    assert_close(p, expected, l.cells, "parameter");
    free(squares), free(g), free(before);
}

static void adagrad_of_rows_is_that_of_all(void **state) {
    (void)state;
    each_table(check_adagrad_rows);
}

/* Rows as of random steps, some of which never moved: brought up to one step, they are what steps with a gradient of 0
 * make of them, one after the other. */
static void check_bring(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const listed l = random_list(rows, cols);
    const weir_row_list list = list_of(&l);
    const weir_adamw_wait wait = {40 + below(500), 200, 0.01, 0.9, 0.99, 1e-8, 0.1};
    weir_real *m = random_reals(l.cells), *v = random_reals(l.cells), *p = random_reals(l.cells),
              *before = copy_of(p, l.cells);
    uint64_t *moved = array(rows, sizeof *moved), *since = array(rows, sizeof *since);
    for (size_t i = 0; i < l.cells; i++) {
        v[i] = v[i] * v[i] + (weir_real)0.01;
        if (i / cols % 3 == 0) m[i] = 0;
    }
    for (uint32_t row = 0; row < rows; row++) {
        since[row] = below((uint32_t)wait.steps + 1);
        moved[row] = since[row] | (row % 3 == 0 ? WEIR_ROW_STILL : 0);
    }
    double *expected = doubles_of(p, l.cells);
    for (size_t i = 0; i < l.cells; i++) {
        cell c = {(double)m[i], (double)v[i], expected[i]};
        for (uint64_t s = since[i / cols] + 1; l.has[i / cols] && s <= wait.steps; s++) {
            const weir_adamw_step step = step_of(s);
            cell_step(&c, &step, 0);
        }
        expected[i] = c.p;
    }
    k->adamw_bring(k, &list, &wait, moved, m, v, p);
    assert_others_rest(&l, p, before);
    for (uint32_t row = 0; row < rows; row++) {
        const uint64_t missing = wait.steps - since[row], still = row % 3 == 0 || missing > 200 ? WEIR_ROW_STILL : 0;
        assert_true(moved[row] == (l.has[row] ? wait.steps | still : (since[row] | (row % 3 ? 0 : WEIR_ROW_STILL))));
    }
    assert_close(p, expected, l.cells, "parameter");
    free(m), free(v), free(before), free(moved), free(since);
}

static void rows_that_waited_are_brought(void **state) {
    (void)state;
    each_table(check_bring);
}

static void check_moved(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    weir_real *m = random_reals((size_t)rows * cols);
    uint64_t *moved = array(rows, sizeof *moved);
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        if (i / cols % 2) m[i] = 0;
    const weir_row_list all = {rows, cols, NULL};
    k->adamw_moved(k, &all, 77, m, moved);
    for (uint32_t row = 0; row < rows; row++)
        assert_true(moved[row] == (row % 2 ? (77 | WEIR_ROW_STILL) : 77));
    free(m), free(moved);
}

static void a_row_without_a_moment_is_still(void **state) {
    (void)state;
    each_table(check_moved);
}

/* Gradients that are not finite numbers together move nothing, not even where they are. */
static void check_not_finite(const weir_kernels *k, uint32_t rows, uint32_t cols) {
    const size_t n = (size_t)rows * cols;
    weir_real *m = random_reals(n), *v = random_reals(n), *p = random_reals(n), *g = random_reals(n),
              *kept[] = {copy_of(m, n), copy_of(v, n), copy_of(p, n)};
    uint64_t *moved = array(rows, sizeof *moved);
    const weir_row_list all = {rows, cols, NULL};
    const double squares[] = {(double)NAN, INFINITY};
    for (unsigned i = 0; i < 2; i++) {
        weir_adamw_step step = step_of(1);
        step.shortening = (weir_shortening){&squares[i], i};
        const weir_adagrad_step adagrad = {.rate = 0.01, .epsilon = 1e-3, .shortening = step.shortening};
        k->adamw(k, n, &step, g, m, v, p);
        k->adagrad(k, n, &adagrad, g, v, p);
        k->adamw_rows(k, &all, &step, 5, g, moved, m, v, p);
        k->adagrad_rows(k, &all, &adagrad, g, v, p);
    }
    assert_memory_equal(m, kept[0], n * sizeof *m);
    assert_memory_equal(v, kept[1], n * sizeof *v);
    assert_memory_equal(p, kept[2], n * sizeof *p);
    for (uint32_t row = 0; row < rows; row++)
        assert_true(moved[row] == 0);
    free(m), free(v), free(p), free(g), free(moved), free(kept[0]), free(kept[1]), free(kept[2]);
}

static void what_is_not_finite_moves_nothing(void **state) {
    (void)state;
    each_table(check_not_finite);
}

WEIR_TESTS(WEIR_CASE(rows_are_those_listed), WEIR_CASE(adamw_of_rows_is_that_of_all),
           WEIR_CASE(adagrad_of_rows_is_that_of_all), WEIR_CASE(rows_that_waited_are_brought),
           WEIR_CASE(a_row_without_a_moment_is_still), WEIR_CASE(what_is_not_finite_moves_nothing))
