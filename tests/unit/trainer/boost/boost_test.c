/* SPDX-License-Identifier: Apache-2.0 */
/* boost_test.c - trees find a rule that one column hides, again the same, and stop where validation says. */
#include "weir_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/trainer/boost/boost.h>
#include <weir/trainer/eval/eval.h>

#define ROWS    2000u
#define COLUMNS 5u

typedef struct made {
    float rows[ROWS * COLUMNS];
    uint8_t labels[ROWS];
} made;

/* Yes where the product of two columns is above 0, seldom the other way; every seventh number is missing. */
static made *make(weir_rng *rng, bool noise_only) {
    made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (unsigned i = 0; i < ROWS; i++) {
        float *row = m->rows + i * COLUMNS;
        for (unsigned c = 0; c < COLUMNS; c++)
            row[c] = (float)weir_rng_normal(rng);
        bool yes = noise_only ? weir_rng_below(rng, 2) : row[1] * row[3] > 0;
        m->labels[i] = weir_rng_below(rng, 10) ? yes : !yes;
        if (i % 7 == 0) row[4] = NAN;
    }
    return m;
}

static weir_boost_rows rows_of(const made *m) {
    return (weir_boost_rows){m->rows, m->labels, ROWS, COLUMNS};
}

static double precision_of(const weir_boost *boost, const made *m, double *scores) {
    const weir_boost_rows rows = rows_of(m);
    const weir_scored scored = {scores, m->labels, ROWS};
    double precision = 0;
    assert_ok(weir_boost_score(boost, &rows, scores));
    assert_ok(weir_eval_average_precision(&scored, &precision));
    return precision;
}

static void needs_the_library(void) {
    if (!weir_boost_available()) weir_test_skip("XGBoost was not found at configure time");
}

static void x1_the_same_again(void **state) {
    (void)state;
    needs_the_library();
    static double one[ROWS], two[ROWS];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    made *train = make(&rng, false), *validation = make(&rng, false), *test = make(&rng, false);
    const weir_boost_rows a = rows_of(train), b = rows_of(validation);
    weir_boost_opts opts = weir_boost_defaults();
    weir_boost *first = NULL, *second = NULL;
    opts.rounds = 40;
    assert_ok(weir_boost_learn(&opts, &a, &b, &first));
    assert_ok(weir_boost_learn(&opts, &a, &b, &second));
    /* Half are yes, a tenth is noise: 60 seeds gave 0.836 to 0.900, with a deviation of 0.013. */
    assert_true(precision_of(first, test, one) > 0.8);
    precision_of(second, test, two);
    assert_memory_equal(one, two, sizeof one);
    weir_boost_close(first);
    weir_boost_close(second);
    free(train);
    free(validation);
    free(test);
}

/* The rounds kept score what no shorter training does. */
static void x2_the_best_rounds_are_kept(void **state) {
    (void)state;
    needs_the_library();
    static double scores[ROWS];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    made *train = make(&rng, true), *validation = make(&rng, true);
    const weir_boost_rows a = rows_of(train), b = rows_of(validation);
    weir_boost_opts opts = weir_boost_defaults();
    weir_boost *best = NULL, *other = NULL;
    opts.rounds = 12;
    opts.patience = 0;
    assert_ok(weir_boost_learn(&opts, &a, &b, &best));
    double kept = precision_of(best, validation, scores);
    assert_in_range(weir_boost_rounds(best), 1, 12);
    for (opts.rounds = 1; opts.rounds <= 12; opts.rounds++) {
        assert_ok(weir_boost_learn(&opts, &a, &b, &other));
        assert_true(precision_of(other, validation, scores) <= kept);
        assert_true(opts.rounds < weir_boost_rounds(best) || weir_boost_rounds(other) == weir_boost_rounds(best));
        weir_boost_close(other);
    }
    weir_boost_close(best);
    free(train);
    free(validation);
}

static void rows_that_cannot_be_learnt_from(void **state) {
    (void)state;
    needs_the_library();
    weir_rng rng = weir_rng_stream(1, 0, 0);
    made *m = make(&rng, false);
    const weir_boost_opts opts = weir_boost_defaults();
    const weir_boost_rows rows = rows_of(m), none = {m->rows, m->labels, 0, COLUMNS},
                          narrow = {m->rows, m->labels, 9, 2};
    weir_boost *boost = NULL;
    assert_err(weir_boost_learn(&opts, &none, &rows, &boost), WEIR_EINVAL, "no rows");
    assert_err(weir_boost_learn(&opts, &rows, &narrow, &boost), WEIR_EINVAL, "2 columns; they need 5");
    memset(m->labels, 1, sizeof m->labels);
    assert_err(weir_boost_learn(&opts, &rows, &rows, &boost), WEIR_EDATA, NULL);
    assert_null(boost);
    free(m);
}

WEIR_TESTS(WEIR_CASE(x1_the_same_again), WEIR_CASE(x2_the_best_rounds_are_kept),
           WEIR_CASE(rows_that_cannot_be_learnt_from))
