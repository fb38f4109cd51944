/* SPDX-License-Identifier: Apache-2.0 */
/* eval_test.c - closed values, and naive twins that compare every pair. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/trainer/eval/eval.h>

#include "weir_test.h"

#define COUNT_MAX 200u

typedef struct data {
    double scores[COUNT_MAX];
    uint8_t labels[COUNT_MAX];
    int64_t days[COUNT_MAX];
    size_t count;
} data;

static weir_scored view(const data *d) {
    return (weir_scored){d->scores, d->labels, d->count};
}

/* Few different scores: most are ties. */
static data random_data(weir_rng *rng) {
    data d = {.count = 2 + weir_rng_below(rng, COUNT_MAX - 2)};
    uint64_t kinds = 1 + weir_rng_below(rng, 30);
    for (size_t i = 0; i < d.count; i++) {
        d.scores[i] = (double)weir_rng_below(rng, kinds) / 7 - 1;
        d.labels[i] = weir_rng_below(rng, 3) == 0;
        d.days[i] = (int64_t)weir_rng_below(rng, 4) - 2;
    }
    d.labels[0] = 1;
    d.labels[1] = 0;
    return d;
}

static double naive_auroc(const data *d) {
    double won = 0, pairs = 0;
    for (size_t i = 0; i < d->count; i++) {
        for (size_t j = 0; j < d->count; j++) {
            if (!d->labels[i] || d->labels[j]) continue;
            pairs++;
            won += d->scores[i] > d->scores[j] ? 1 : d->scores[i] == d->scores[j] ? 0.5 : 0;
        }
    }
    return won / pairs;
}

/* Each positive gains 1 / positives of recall at the precision of all that stand no lower. */
static double naive_average_precision(const data *d) {
    double sum = 0, positives = 0;
    for (size_t i = 0; i < d->count; i++) {
        double above = 0, found = 0;
        for (size_t j = 0; d->labels[i] && j < d->count; j++) {
            if (d->scores[j] < d->scores[i]) continue;
            above++;
            found += d->labels[j];
        }
        if (d->labels[i]) sum += found / above;
        positives += d->labels[i];
    }
    return sum / positives;
}

/* The share of each target that is looked at: what is left after the higher ones, dealt out to its equals. */
static double naive_found(const data *d, const double *worth, uint32_t alerts, double *givenp) {
    double found = 0;
    *givenp = 0;
    for (size_t i = 0; i < d->count; i++) {
        double higher = 0, equal = 0;
        for (size_t j = 0; j < d->count; j++) {
            if (d->days[j] != d->days[i]) continue;
            higher += d->scores[j] > d->scores[i];
            equal += d->scores[j] == d->scores[i];
        }
        double share = fmax(0, fmin(1, (alerts - higher) / equal));
        found += share * d->labels[i] * (worth ? worth[i] : 1);
        *givenp += share;
    }
    return found;
}

static void near(double actual, double expected) {
    if (!(fabs(actual - expected) < 1e-9)) fail_msg("%.12g should be %.12g", actual, expected);
}

static void ranks_are_those_of_named_pairs(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (unsigned round = 0; round < 200; round++) {
        data d = random_data(&rng);
        weir_scored s = view(&d);
        double value, given, positives = 0;
        weir_eval_budget budget;
        uint32_t alerts = 1 + (uint32_t)weir_rng_below(&rng, 40);
        for (size_t i = 0; i < d.count; i++)
            positives += d.labels[i];
        assert_ok(weir_eval_auroc(&s, &value));
        near(value, naive_auroc(&d));
        assert_ok(weir_eval_average_precision(&s, &value));
        near(value, naive_average_precision(&d));
        assert_ok(weir_eval_at_budget(&s, d.days, alerts, &budget));
        double found = naive_found(&d, NULL, alerts, &given);
        near((double)budget.alerts, given);
        near(budget.precision, found / given);
        near(budget.recall, found / positives);
        double amounts[COUNT_MAX];
        for (size_t i = 0; i < d.count; i++)
            amounts[i] = (double)weir_rng_below(&rng, 1000) - 100;
        assert_ok(weir_eval_amount_at_budget(&s, d.days, alerts, amounts, &value));
        near(value, naive_found(&d, amounts, alerts, &given));
    }
}

static void closed_values(void **state) {
    (void)state;
    data d = {{0.1, 0.4, 0.35, 0.8}, {0, 0, 1, 1}, {0}, 4}; /* the example of scikit-learn's manual */
    weir_scored s = view(&d);
    double value;
    assert_ok(weir_eval_auroc(&s, &value));
    near(value, 0.75);
    assert_ok(weir_eval_average_precision(&s, &value));
    near(value, 0.8333333333333333);
    for (size_t i = 0; i < 4; i++)
        d.scores[i] = 0.5; /* all equal: chance, and the share of positives */
    assert_ok(weir_eval_auroc(&s, &value));
    near(value, 0.5);
    assert_ok(weir_eval_average_precision(&s, &value));
    near(value, 0.5);
    assert_ok(weir_eval_log_loss(&s, &value));
    near(value, log(2));
    memcpy(d.scores, (const double[]){1, 0, 0, 1}, 4 * sizeof(double));
    assert_ok(weir_eval_log_loss(&s, &value));
    near(value, -log(1e-15) / 2); /* two of four are sure and wrong */
}

static void wrong_input_is_refused(void **state) {
    (void)state;
    data d = {{0.1, NAN}, {0, 1}, {0}, 2};
    weir_scored s = view(&d);
    weir_eval_budget budget;
    weir_calibration calibration;
    double value;
    assert_err(weir_eval_auroc(&s, &value), WEIR_EDATA, "score 1");
    assert_err(weir_eval_average_precision(&s, &value), WEIR_EDATA, "score 1");
    assert_err(weir_eval_at_budget(&s, d.days, 1, &budget), WEIR_EDATA, "score 1");
    assert_err(weir_calibration_fit(&s, &calibration), WEIR_EDATA, "score 1");
    assert_err(weir_eval_log_loss(&s, &value), WEIR_EDATA, "calibrate");
    d.scores[1] = 1.5;
    assert_err(weir_eval_log_loss(&s, &value), WEIR_EDATA, "calibrate");
    d.labels[1] = 0;
    assert_err(weir_eval_auroc(&s, &value), WEIR_EDATA, "both classes");
    assert_err(weir_calibration_fit(&s, &calibration), WEIR_EDATA, "both classes");
    s.count = 0;
    assert_err(weir_eval_auroc(&s, &value), WEIR_EDATA, "both classes");
    assert_err(weir_eval_log_loss(&s, &value), WEIR_EDATA, "no targets");
    assert_err(weir_eval_at_budget(&s, d.days, 1, &budget), WEIR_EDATA, "at least 1");
}

/* --- calibration -------------------------------------------------------------------------------------------------- */

/* Two scores only: the fit can meet both of Platt's means, which are known. */
static void calibration_of_two_scores_is_closed(void **state) {
    (void)state;
    data d = {.count = 100};
    for (size_t i = 0; i < 100; i++) {
        d.scores[i] = i < 60 ? -2 : 5;
        d.labels[i] = i < 6 || (i >= 60 && i < 90);
    }
    weir_scored s = view(&d);
    weir_calibration c;
    assert_ok(weir_calibration_fit(&s, &c));
    double low = 1.0 / (64 + 2), high = 37.0 / 38; /* 36 positives of 100 */
    near(weir_calibrated(&c, -2), (6 * high + 54 * low) / 60);
    near(weir_calibrated(&c, 5), (30 * high + 10 * low) / 40);
}

static void calibration_finds_the_logistic_that_drew(void **state) {
    (void)state;
    enum { MANY = 20000 };
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    double *scores = calloc(MANY, sizeof *scores);
    uint8_t *labels = calloc(MANY, 1);
    if (!scores || !labels) abort();
    for (size_t i = 0; i < MANY; i++) {
        scores[i] = weir_rng_normal(&rng) * 3 + 1000;
        labels[i] = weir_rng_double(&rng) < 1 / (1 + exp(-(0.7 * (scores[i] - 1000) - 1)));
    }
    weir_calibration c, again;
    assert_ok(weir_calibration_fit(&(weir_scored){scores, labels, MANY}, &c));
    assert_ok(weir_calibration_fit(&(weir_scored){scores, labels, MANY}, &again));
    assert_memory_equal(&c, &again, sizeof c);
    assert_true(fabs(c.slope - 0.7) < 0.07); /* 6 deviations and more */
    assert_true(fabs(c.offset + 1000 * c.slope + 1) < 0.15);
    free(scores);
    free(labels);
}

static void calibration_of_parted_classes_stays_finite(void **state) {
    (void)state;
    data d = {{-1, -2, 3, 4}, {0, 0, 1, 1}, {0}, 4};
    weir_scored s = view(&d);
    weir_calibration c;
    assert_ok(weir_calibration_fit(&s, &c));
    assert_true(c.slope > 0 && isfinite(c.slope) && isfinite(c.offset));
    assert_true(weir_calibrated(&c, 4) > 0.5 && weir_calibrated(&c, -2) < 0.5);
    d.scores[0] = d.scores[1] = d.scores[2] = d.scores[3] = 2; /* nothing to tell apart: the share of positives */
    assert_ok(weir_calibration_fit(&s, &c));
    near(weir_calibrated(&c, 2), 0.5);
    near(weir_calibrated(&(weir_calibration){1, 0}, -1e4), 0);
}

/* Of many samples of one kind, about 95 of 100 intervals hold what an average precision of that kind is on average. */
static void an_interval_holds_the_expectation(void **state) {
    (void)state;
    enum { SAMPLES = 200 };
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_interval intervals[SAMPLES];
    double mean = 0, width = 0;
    unsigned holds = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        data d = {.count = COUNT_MAX};
        double precision;
        for (size_t t = 0; t < d.count; t++) {
            d.labels[t] = t < 2 ? t == 0 : weir_rng_below(&rng, 5) == 0;
            d.scores[t] = weir_rng_normal(&rng) + (d.labels[t] ? 1 : 0);
        }
        const weir_scored s = view(&d);
        assert_ok(weir_eval_average_precision(&s, &precision));
        assert_ok(weir_eval_average_precision_interval(&s, i, &intervals[i]));
        mean += precision / SAMPLES;
        width += (intervals[i].high - intervals[i].low) / SAMPLES;
    }
    for (unsigned i = 0; i < SAMPLES; i++)
        holds += intervals[i].low <= mean && mean <= intervals[i].high;
    printf("%u of %u hold %.3f, %.3f wide\n", holds, (unsigned)SAMPLES, mean, width);
    assert_in_range(holds, SAMPLES * 85 / 100, SAMPLES);
    assert_true(width > 0.05 && width < 0.4);
}

static void intervals_that_are_known(void **state) {
    (void)state;
    data d = {.count = 40};
    weir_interval a, b, none;
    for (size_t i = 0; i < d.count; i++) {
        d.labels[i] = i < 10;
        d.scores[i] = i < 10 ? 2 : 1;
    }
    weir_scored s = view(&d);
    assert_ok(weir_eval_average_precision_interval(&s, 1, &a));
    assert_true(a.low == 1 && a.high == 1); /* whatever is drawn */
    for (size_t i = 0; i < d.count; i++)
        d.scores[i] = (double)(i % 7);
    assert_ok(weir_eval_average_precision_interval(&s, 1, &a));
    assert_ok(weir_eval_average_precision_interval(&s, 1, &b));
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.low < a.high);
    memset(d.labels, 0, sizeof d.labels);
    assert_err(weir_eval_average_precision_interval(&s, 1, &none), WEIR_EDATA, "no target is positive");
    d.scores[3] = NAN;
    assert_err(weir_eval_average_precision_interval(&s, 1, &none), WEIR_EDATA, "not a number");
}

/* --- which of two is better -------------------------------------------------------------------------------------- */

/* Two models that see the same of a target, and each something of its own; `signal`: how far apart the classes are. */
static void draw_two(weir_rng *rng, double signal, double other_signal, data *d, double *others) {
    d->count = COUNT_MAX / 2;
    const size_t positives = 10 + weir_rng_below(rng, 30);
    for (size_t t = 0; t < d->count; t++) {
        double both = weir_rng_normal(rng);
        d->labels[t] = t < positives;
        d->scores[t] = both + 0.7 * weir_rng_normal(rng) + (d->labels[t] ? signal : 0);
        others[t] = both + 0.7 * weir_rng_normal(rng) + (d->labels[t] ? other_signal : 0);
    }
}

static double share_surely_better(double signal, double other_signal, unsigned nights) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), nights, 1);
    double others[COUNT_MAX];
    unsigned better = 0;
    for (unsigned night = 0; night < nights; night++) {
        data d;
        weir_interval difference;
        draw_two(&rng, signal, other_signal, &d, others);
        const weir_scored s = view(&d);
        assert_ok(weir_eval_average_precision_difference(&s, others, night, &difference));
        better += difference.low > 0;
    }
    printf("of %.1f against %.1f: %.3f surely better\n", signal, other_signal, (double)better / nights);
    return (double)better / nights;
}

/* 1 in 40 would be expected of many positives; of 10 to 40 it is 0.034, so that 1,000 nights have more than 0.05 once
 * in 400 times. Then 4,000 others decide, where that is six standard deviations away. */
static void g3_an_equal_model_is_seldom_surely_better(void **state) {
    (void)state;
    if (share_surely_better(1.5, 1.5, 1000) > 0.05) assert_true(share_surely_better(1.5, 1.5, 4000) <= 0.05);
    assert_true(share_surely_better(3, 0.5, 40) > 0.9);
    assert_true(share_surely_better(0.5, 3, 40) == 0);
}

/* As good on average, in another way: one ranks each positive a little above the negatives, the other a quarter of them
 * above all and the rest nowhere. With as few positives as count. 0.0777: four standard deviations above 0.05. */
static void g3_nor_is_one_that_is_as_good_otherwise(void **state) {
    enum { NIGHTS = 1000, POSITIVES = 10 };
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 4);
    unsigned even_better = 0, uneven_better = 0;
    for (unsigned night = 0; night < NIGHTS; night++) {
        data d = {.count = COUNT_MAX};
        double others[COUNT_MAX];
        weir_interval difference;
        for (size_t t = 0; t < d.count; t++) {
            d.labels[t] = t < POSITIVES;
            d.scores[t] = weir_rng_normal(&rng) + (d.labels[t] ? 1.323 : 0); /* an average precision of 0.327 */
            others[t] = weir_rng_normal(&rng) + (d.labels[t] && weir_rng_below(&rng, 4) == 0 ? 6 : 0); /* too */
        }
        const weir_scored s = view(&d);
        assert_ok(weir_eval_average_precision_difference(&s, others, night, &difference));
        even_better += difference.low > 0;
        uneven_better += difference.high < 0;
    }
    printf("%u and %u of %u surely better\n", even_better, uneven_better, (unsigned)NIGHTS);
    assert_true(even_better < 0.0777 * NIGHTS && uneven_better < 0.0777 * NIGHTS);
}

static void differences_that_are_known(void **state) {
    (void)state;
    data d;
    weir_interval of, back;
    double others[COUNT_MAX];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 2);
    draw_two(&rng, 1, 1, &d, others);
    const weir_scored s = view(&d), other = {others, d.labels, d.count};
    assert_ok(weir_eval_average_precision_difference(&s, d.scores, 1, &of));
    assert_true(of.low == 0 && of.high == 0); /* a model against itself, whatever is drawn */
    assert_ok(weir_eval_average_precision_difference(&s, others, 1, &of));
    assert_ok(weir_eval_average_precision_difference(&other, d.scores, 1, &back));
    assert_true(of.low < of.high && fabs(of.low + back.high) < 1e-12 && fabs(of.high + back.low) < 1e-12);
    for (size_t t = 9; t < d.count; t++)
        d.labels[t] = 0;
    assert_ok(weir_eval_average_precision_difference(&s, others, 1, &of));
    assert_true(of.low == -1 && of.high == 1); /* so few positives tell nothing */
    others[5] = INFINITY;
    assert_err(weir_eval_average_precision_difference(&s, others, 1, &of), WEIR_EDATA, "not a number");
}

/* Ten targets of 100 are right for one alone, two for the other alone: 8 more, and 1.96 √12 + 1 either way. */
static void differences_of_accuracies(void **state) {
    (void)state;
    double scores[100], others[100];
    uint8_t classes[100];
    weir_interval of;
    for (size_t i = 0; i < 100; i++) {
        classes[i] = (uint8_t)(i % 3);
        scores[i] = classes[i] + (i >= 10 && i < 12 ? 1 : 0);
        others[i] = classes[i] + (i < 10 ? 1 : 0);
    }
    assert_ok(weir_eval_accuracy_difference(scores, others, classes, 100, &of));
    near(of.low, 0.08 - (1.96 * sqrt(12) + 1) / 100);
    near(of.high, 0.08 + (1.96 * sqrt(12) + 1) / 100);
    assert_true(of.low > 0);
    assert_ok(weir_eval_accuracy_difference(scores, scores, classes, 100, &of));
    assert_true(of.low == 0 && of.high == 0);
    assert_err(weir_eval_accuracy_difference(scores, others, classes, 0, &of), WEIR_EDATA, "no targets");
}

/* Of two that are right as often, and about other targets. */
static void g3_an_equal_accuracy_is_seldom_surely_better(void **state) {
    enum { NIGHTS = 2000 };
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 3);
    unsigned better = 0;
    for (unsigned night = 0; night < NIGHTS; night++) {
        double scores[COUNT_MAX], others[COUNT_MAX];
        uint8_t classes[COUNT_MAX] = {0};
        weir_interval difference;
        const uint64_t wrong_in_100 = 1 + weir_rng_below(&rng, 40);
        for (size_t t = 0; t < COUNT_MAX; t++) {
            scores[t] = weir_rng_below(&rng, 100) < wrong_in_100;
            others[t] = weir_rng_below(&rng, 100) < wrong_in_100;
        }
        assert_ok(weir_eval_accuracy_difference(scores, others, classes, COUNT_MAX, &difference));
        better += difference.low > 0;
    }
    printf("%u of %u surely better\n", better, (unsigned)NIGHTS);
    assert_true(better <= NIGHTS / 20);
}

static void calibration_errors_that_are_known(void **state) {
    (void)state;
    data d = {.count = 100};
    weir_scored s = view(&d);
    double error;
    for (size_t i = 0; i < d.count; i++) {
        d.scores[i] = 0.3;
        d.labels[i] = i < 30;
    }
    assert_ok(weir_eval_calibration_error(&s, &error));
    near(error, 0);
    memset(d.labels, 0, sizeof d.labels);
    assert_ok(weir_eval_calibration_error(&s, &error));
    near(error, 0.3);
    for (size_t i = 0; i < d.count; i++) { /* half of them sure and right, half sure and wrong */
        d.scores[i] = i % 2 ? 1 : 0;
        d.labels[i] = 1;
    }
    assert_ok(weir_eval_calibration_error(&s, &error));
    near(error, 0.5);
    d.scores[0] = 1.5;
    assert_err(weir_eval_calibration_error(&s, &error), WEIR_EDATA, "calibrate");
}

WEIR_TESTS(WEIR_CASE(an_interval_holds_the_expectation), WEIR_CASE(intervals_that_are_known),
           WEIR_CASE(g3_an_equal_model_is_seldom_surely_better), WEIR_CASE(g3_nor_is_one_that_is_as_good_otherwise),
           WEIR_CASE(differences_that_are_known), WEIR_CASE(differences_of_accuracies),
           WEIR_CASE(g3_an_equal_accuracy_is_seldom_surely_better), WEIR_CASE(calibration_errors_that_are_known),
           WEIR_CASE(ranks_are_those_of_named_pairs), WEIR_CASE(closed_values), WEIR_CASE(wrong_input_is_refused),
           WEIR_CASE(calibration_of_two_scores_is_closed), WEIR_CASE(calibration_finds_the_logistic_that_drew),
           WEIR_CASE(calibration_of_parted_classes_stays_finite))
