/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - which days there are, the targets of each, and which models are learnt for them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "backtest_private.h"

#define PLAN_NO_MEMORY "for the targets of a backtest; take fewer days"

void weir_backtest_name(int64_t time_us, char name[WEIR_BACKTEST_NAME_MAX]) {
    weir_time_format(time_us, name);
    char *midnight = strstr(name, "T00:00:00.000000Z");
    if (midnight) *midnight = 0;
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

static weir_err plan_reserve(weir_backtest *b, uint64_t more) {
    const size_t count = b->count + (size_t)more;
    if (count <= b->capacity) return WEIR_OK;
    const size_t capacity = count > 2 * b->capacity ? count : 2 * b->capacity;
    weir_target *targets = weir_realloc_array(b->targets, capacity, sizeof *targets);
    if (targets) b->targets = targets;
    uint8_t *labels = weir_realloc_array(b->labels, capacity, sizeof *labels);
    if (labels) b->labels = labels;
    int64_t *day_of = weir_realloc_array(b->day_of, capacity, sizeof *day_of);
    if (day_of) b->day_of = day_of;
    double *amounts = weir_realloc_array(b->amounts, capacity, sizeof *amounts);
    if (amounts) b->amounts = amounts;
    if (!targets || !labels || !day_of || !amounts) return WEIR_NOMEM(PLAN_NO_MEMORY);
    b->capacity = capacity;
    return WEIR_OK;
}

/* What the feature was at the target's time, or came with it. */
static double plan_amount(const weir_backtest *b, const weir_target *target) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(b->snapshot, b->type);
    uint64_t row;
    if (b->opts.amount == WEIR_SCHEMA_NONE || target->before_us == INT64_MAX) return 0;
    if (!weir_snapshot_span(&v->rows, (uint64_t)target->vertex, target->before_us + 1, &row)) return 0;
    const double amount = (double)v->columns[b->opts.amount].numbers[row];
    return isfinite(amount) ? amount : 0;
}

static weir_err plan_take(weir_backtest *b, uint32_t number, const weir_targets *targets) {
    weir_backtest_day *day = &b->days[number];
    const uint64_t begin = weir_targets_begin(targets, WEIR_TARGETS_TEST);
    weir_err err = plan_reserve(b, targets->count - begin + 1);
    day->begin = b->count;
    day->unripe = targets->young; /* BACKTEST-D3 */
    for (uint64_t i = begin; !err && i < targets->count; i++) {
        const weir_target *target = &targets->targets[i];
        WEIR_ASSERT(target->before_us >= day->from_us && target->before_us < day->from_us + WEIR_BACKTEST_DAY_US);
        b->targets[b->count] = *target;
        b->labels[b->count] = targets->classes_of[i] != 0;
        b->day_of[b->count] = number;
        b->amounts[b->count++] = plan_amount(b, target);
    }
    day->end = b->count;
    return err;
}

/* --- days and spans ----------------------------------------------------------------------------------------------- */

/* What the day's targets are, and what was known when its span began. */
static weir_err plan_day(weir_backtest *b, uint32_t number, weir_backtest_span *span) {
    weir_backtest_day *day = &b->days[number];
    weir_targets_opts opts = {.task = b->opts.train.task, .cut = b->opts.train.cut};
    weir_targets *targets = NULL;
    char name[WEIR_BACKTEST_NAME_MAX];
    day->from_us = b->opts.from_us + (int64_t)number * WEIR_BACKTEST_DAY_US;
    opts.cut.split = WEIR_TARGETS_BY_TIMES;
    opts.cut.known_us = b->days[span->first].from_us;
    opts.cut.test_from_us = day->from_us;
    opts.cut.test_to_us = day->from_us + WEIR_BACKTEST_DAY_US;
    weir_backtest_name(opts.cut.known_us, name);
    weir_err err = weir_err_prefix(weir_targets_open(b->snapshot, &opts, &targets), "what was known on %s", name);
    if (!err) err = plan_take(b, number, targets);
    if (!err) {
        span->learnt = targets->ends[WEIR_TARGETS_VALIDATION];
        span->validation = span->learnt - targets->ends[WEIR_TARGETS_TRAIN];
        span->untold = targets->untold;
        span->made_of = weir_xxh3(&targets->digest, sizeof targets->digest, span->made_of);
    }
    weir_targets_close(targets);
    return err;
}

/* All that the models of a span depend on, but for its targets. */
static uint64_t plan_made_of(const weir_backtest *b, const weir_backtest_span *span) {
    const weir_schema *schema = weir_snapshot_schema(b->snapshot);
    const int64_t numbers[] = {b->opts.from_us + (int64_t)span->first * WEIR_BACKTEST_DAY_US, span->end - span->first,
                               weir_snapshot_as_of_us(b->snapshot), (int64_t)weir_snapshot_bytes(b->snapshot),
                               b->opts.train.task};
    const uint64_t hash = weir_schema_hash(schema);
    uint64_t made_of = weir_xxh3(b->opts.made_of, strlen(b->opts.made_of), hash);
    made_of = weir_xxh3(b->opts.models, sizeof b->opts.models, made_of);
    return weir_xxh3(numbers, sizeof numbers, made_of);
}

static weir_err plan_spans(weir_backtest *b) {
    const uint32_t days = b->opts.days, every = b->opts.every;
    weir_err err = WEIR_OK;
    b->span_count = (days + every - 1) / every;
    b->days = weir_calloc(days, sizeof *b->days);
    b->spans = weir_calloc(b->span_count, sizeof *b->spans);
    if (!b->days || !b->spans) return WEIR_NOMEM(PLAN_NO_MEMORY);
    for (uint32_t s = 0; !err && s < b->span_count; s++) {
        weir_backtest_span *span = &b->spans[s];
        span->first = s * every;
        span->end = days - span->first < every ? days : span->first + every;
        span->made_of = plan_made_of(b, span);
        for (uint32_t day = span->first; !err && day < span->end; day++)
            err = plan_day(b, day, span);
    }
    return err;
}

weir_err weir_backtest_plan(weir_backtest *b) {
    weir_err err = plan_spans(b);
    uint64_t unripe = 0;
    for (uint32_t day = 0; !err && day < b->opts.days; day++)
        unripe += b->days[day].unripe;
    if (!err && b->count == 0)
        err =
            WEIR_ERR(WEIR_EDATA,
                     "these %u days have no target whose label had its time (%llu may still get theirs); take earlier "
                     "days",
                     b->opts.days, (unsigned long long)unripe);
    for (weir_backtest_model m = 0; !err && m < WEIR_BACKTEST_MODELS; m++) {
        if (!b->opts.models[m]) continue;
        b->scores[m] = weir_calloc(b->count, sizeof *b->scores[m]);
        if (!b->scores[m]) err = WEIR_NOMEM(PLAN_NO_MEMORY);
    }
    return err;
}
