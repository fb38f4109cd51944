/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - metrics of an order: a group of equal scores is one step, so no order of the input shows (ties). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "eval_private.h"

static int rank_by_day_then_highest(const void *x, const void *y) {
    const weir_ranked *a = x, *b = y;
    if (a->day != b->day) return a->day < b->day ? -1 : 1;
    return (a->score < b->score) - (a->score > b->score);
}

weir_err weir_eval_rank(const weir_scored *scored, const int64_t *days, weir_ranked **rankedp, size_t *positivesp) {
    *rankedp = NULL;
    *positivesp = 0;
    WEIR_ASSERT(scored->count <= UINT32_MAX); /* lists of targets have no more */
    weir_ranked *ranked = weir_calloc(scored->count + 1, sizeof *ranked);
    if (!ranked) return WEIR_NOMEM("while ranking %zu scores", scored->count);
    for (size_t i = 0; i < scored->count; i++) {
        if (!isfinite(scored->scores[i])) {
            weir_free(ranked);
            return WEIR_ERR(WEIR_EDATA, "score %zu is not a number; look for inputs that are not", i);
        }
        ranked[i] = (weir_ranked){scored->scores[i], days ? days[i] : 0, (uint32_t)i, scored->labels[i] != 0};
        *positivesp += ranked[i].label;
    }
    qsort(ranked, scored->count, sizeof *ranked, rank_by_day_then_highest);
    *rankedp = ranked;
    return WEIR_OK;
}

size_t weir_eval_group(const weir_ranked *ranked, size_t count, size_t begin, size_t *positivesp) {
    size_t end = begin;
    WEIR_ASSERT(begin < count);
    *positivesp = 0;
    do
        *positivesp += ranked[end++].label;
    while (end < count && ranked[end].score == ranked[begin].score && ranked[end].day == ranked[begin].day);
    return end;
}

static weir_err rank_both_classes(const weir_scored *scored, weir_ranked **rankedp, size_t *positivesp) {
    weir_err err = weir_eval_rank(scored, NULL, rankedp, positivesp);
    if (err || (*positivesp > 0 && *positivesp < scored->count)) return err;
    weir_free(*rankedp);
    *rankedp = NULL;
    return WEIR_ERR(WEIR_EDATA,
                    "%zu targets, of which %zu are positive: a metric of ranks needs both classes; take a "
                    "longer range of time",
                    scored->count, *positivesp);
}

weir_err weir_eval_auroc(const weir_scored *scored, double *valuep) {
    weir_ranked *ranked = NULL;
    size_t positives = 0, above = 0, in_group = 0;
    double won = 0;
    *valuep = 0;
    weir_err err = rank_both_classes(scored, &ranked, &positives);
    if (err) return err;
    for (size_t begin = 0, end; begin < scored->count; begin = end) { /* above: positives over this group */
        end = weir_eval_group(ranked, scored->count, begin, &in_group);
        won += (double)(end - begin - in_group) * ((double)above + (double)in_group / 2);
        above += in_group;
    }
    WEIR_ASSERT(above == positives);
    *valuep = won / ((double)positives * (double)(scored->count - positives));
    weir_free(ranked);
    return WEIR_OK;
}

weir_err weir_eval_average_precision(const weir_scored *scored, double *valuep) {
    weir_ranked *ranked = NULL;
    size_t positives = 0, found = 0, in_group = 0;
    *valuep = 0;
    weir_err err = rank_both_classes(scored, &ranked, &positives);
    if (err) return err;
    for (size_t begin = 0, end; begin < scored->count; begin = end) {
        end = weir_eval_group(ranked, scored->count, begin, &in_group);
        found += in_group;
        *valuep += (double)in_group / (double)positives * ((double)found / (double)end);
    }
    WEIR_ASSERT(found == positives);
    weir_free(ranked);
    return WEIR_OK;
}

/* What the alerts find, of which a positive is worth so much; worth NULL: 1 each. */
static double rank_found(const weir_ranked *ranked, size_t count, uint32_t alerts, const double *worth,
                         weir_eval_budget *budgetp) {
    double found = 0;
    for (size_t at = 0; at < count; budgetp->days++) {
        int64_t day = ranked[at].day;
        uint64_t left = alerts;
        while (at < count && ranked[at].day == day) {
            size_t in_group, end = weir_eval_group(ranked, count, at, &in_group), size = end - at;
            uint64_t taken = size < left ? size : left;
            double group = worth ? 0 : (double)in_group;
            for (size_t i = at; worth && i < end; i++)
                group += ranked[i].label ? worth[ranked[i].at] : 0;
            found += group * (double)taken / (double)size;
            budgetp->alerts += taken;
            left -= taken;
            at = end;
        }
    }
    WEIR_ASSERT(budgetp->days > 0 && budgetp->alerts > 0); /* each day has a target at least */
    return found;
}

static weir_err rank_by_days(const weir_scored *scored, const int64_t *days, uint32_t alerts, weir_ranked **rankedp,
                             size_t *positivesp) {
    if (scored->count == 0 || alerts == 0)
        return WEIR_ERR(WEIR_EDATA, "%zu targets and %u alerts a day; both have to be at least 1", scored->count,
                        alerts);
    return weir_eval_rank(scored, days, rankedp, positivesp);
}

weir_err weir_eval_at_budget(const weir_scored *scored, const int64_t *days, uint32_t alerts,
                             weir_eval_budget *budgetp) {
    weir_ranked *ranked = NULL;
    size_t positives = 0;
    *budgetp = (weir_eval_budget){0};
    weir_err err = rank_by_days(scored, days, alerts, &ranked, &positives);
    if (err) return err;
    const double found = rank_found(ranked, scored->count, alerts, NULL, budgetp);
    budgetp->precision = found / (double)budgetp->alerts;
    budgetp->recall = positives > 0 ? found / (double)positives : 0;
    weir_free(ranked);
    return WEIR_OK;
}

weir_err weir_eval_amount_at_budget(const weir_scored *scored, const int64_t *days, uint32_t alerts,
                                    const double *amounts, double *amountp) {
    weir_ranked *ranked = NULL;
    weir_eval_budget budget = {0};
    size_t positives = 0;
    *amountp = 0;
    weir_err err = rank_by_days(scored, days, alerts, &ranked, &positives);
    if (!err) *amountp = rank_found(ranked, scored->count, alerts, amounts, &budget);
    weir_free(ranked);
    return err;
}
