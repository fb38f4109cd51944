/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - how models stand on each day, on all days together, and beside each other. */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "backtest_private.h"

#define MEASURE_NO_MEMORY "for the figures of a backtest; take fewer days"
#define MEASURE_UNKNOWN   ((double)NAN)

static bool measure_has_both(const weir_backtest_figures *f) {
    return f->positives > 0 && f->positives < f->targets;
}

/* Of the targets [begin, end). */
static weir_err measure_figures(const weir_backtest *b, weir_backtest_model model, uint64_t begin, uint64_t end,
                                weir_backtest_figures *figures) {
    const weir_scored scored = {b->scores[model] + begin, b->labels + begin, (size_t)(end - begin)};
    const weir_interval unknown = {MEASURE_UNKNOWN, MEASURE_UNKNOWN};
    weir_backtest_figures f = {.targets = end - begin, .interval = unknown};
    weir_eval_budget budget = {.precision = MEASURE_UNKNOWN};
    weir_err err = WEIR_OK;
    f.average_precision = f.auroc = MEASURE_UNKNOWN;
    for (uint64_t i = begin; i < end; i++) {
        f.positives += b->labels[i];
        f.amount += b->labels[i] ? b->amounts[i] : 0;
    }
    if (measure_has_both(&f)) err = weir_eval_average_precision(&scored, &f.average_precision);
    if (!err && measure_has_both(&f)) err = weir_eval_auroc(&scored, &f.auroc);
    if (!err && f.targets) err = weir_eval_at_budget(&scored, b->day_of + begin, b->opts.budget, &budget);
    if (!err && f.targets)
        err = weir_eval_amount_at_budget(&scored, b->day_of + begin, b->opts.budget, b->amounts + begin, &f.caught);
    f.alerts = budget.alerts;
    f.precision = budget.precision;
    f.recall = f.positives ? budget.recall : MEASURE_UNKNOWN;
    *figures = f;
    return err;
}

/* Every model beside every one before it. */
static weir_err measure_compare(const weir_backtest *b, weir_backtest_results *r) {
    weir_err err = WEIR_OK;
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
        const weir_scored scored = {b->scores[m], b->labels, b->count};
        if (!b->scores[m] || !measure_has_both(&r->all[m])) continue;
        if (!err) err = weir_eval_average_precision_interval(&scored, b->opts.train.seed, &r->all[m].interval);
        for (weir_backtest_model against = 0; !err && against < m; against++) {
            if (!b->scores[against]) continue;
            WEIR_ASSERT(r->difference_count < WEIR_BACKTEST_DIFFERENCES_MAX);
            weir_backtest_difference *d = &r->differences[r->difference_count++];
            *d = (weir_backtest_difference){.model = m, .against = against};
            d->value = r->all[m].average_precision - r->all[against].average_precision;
            err = weir_eval_average_precision_difference(&scored, b->scores[against], b->opts.train.seed, &d->interval);
        }
    }
    return err;
}

weir_err weir_backtest_results_make(const weir_backtest *b, weir_backtest_results *r) {
    *r = (weir_backtest_results){.difference_count = 0};
    r->of_days = weir_calloc((size_t)b->opts.days * WEIR_BACKTEST_MODELS, sizeof *r->of_days);
    weir_err err = r->of_days ? WEIR_OK : WEIR_NOMEM(MEASURE_NO_MEMORY);
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
        if (!b->scores[m]) continue;
        for (uint32_t day = 0; !err && day < b->opts.days; day++)
            err = measure_figures(b, m, b->days[day].begin, b->days[day].end,
                                  &r->of_days[day * WEIR_BACKTEST_MODELS + m]);
        if (!err) err = measure_figures(b, m, 0, b->count, &r->all[m]);
    }
    return err ? err : measure_compare(b, r);
}

void weir_backtest_results_free(weir_backtest_results *r) {
    weir_free(r->of_days);
    r->of_days = NULL;
}
