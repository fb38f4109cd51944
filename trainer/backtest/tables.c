/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - what a backtest leaves for other programs: each target with its scores, each day, and all days. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "backtest_private.h"

static weir_err tables_write(const weir_backtest *b, const char *name, weir_buf *text) {
    char path[WEIR_BACKTEST_PATH_MAX];
    weir_err err = weir_buf_err(text);
    if (!err) err = weir_path_join(path, sizeof path, b->opts.folder, name);
    if (!err) err = weir_file_replace(path, text->bytes, text->length);
    weir_buf_free(text);
    return err;
}

/* With all its digits: who computes from the table gets our figures (BACKTEST-D4). */
weir_err weir_backtest_write_predictions(const weir_backtest *b) {
    const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(b->snapshot, b->type);
    char time[WEIR_TIME_TEXT_MAX];
    weir_buf out = {0};
    weir_err err = WEIR_OK;
    weir_buf_text(&out, "key,time,label");
    if (b->opts.amount != WEIR_SCHEMA_NONE) weir_buf_text(&out, ",amount");
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        if (b->scores[m]) weir_buf_printf(&out, ",%s", weir_backtest_models[m]);
    weir_buf_byte(&out, '\n');
    for (size_t i = 0; !err && i < b->count; i++) {
        err = weir_snapshot_csv_key(vertices, (uint64_t)b->targets[i].vertex, &out);
        weir_time_format(b->targets[i].before_us, time);
        weir_buf_printf(&out, ",%s,%u", time, b->labels[i]);
        if (b->opts.amount != WEIR_SCHEMA_NONE) weir_buf_printf(&out, ",%.17g", b->amounts[i]);
        for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
            if (b->scores[m]) weir_buf_printf(&out, ",%.17g", b->scores[m][i]);
        weir_buf_byte(&out, '\n');
    }
    weir_err unwritten = tables_write(b, "predictions.csv", &out);
    return err ? err : unwritten;
}

/* --- each day ----------------------------------------------------------------------------------------------------- */

static void tables_put_number(weir_buf *out, double value) {
    weir_buf_byte(out, ',');
    if (isfinite(value)) weir_buf_printf(out, "%.10g", value);
}

weir_err weir_backtest_write_days(const weir_backtest *b, const weir_backtest_results *r) {
    const bool amounts = b->opts.amount != WEIR_SCHEMA_NONE;
    char name[WEIR_BACKTEST_NAME_MAX];
    weir_buf out = {0};
    weir_buf_printf(&out,
                    "day,model,targets,positives,unripe,average_precision,auroc,alerts,precision_at_budget,"
                    "recall_at_budget%s\n",
                    amounts ? ",amount_caught,amount_of_positives" : "");
    for (uint32_t day = 0; day < b->opts.days; day++) {
        weir_backtest_name(b->days[day].from_us, name);
        for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
            const weir_backtest_figures *f = &r->of_days[day * WEIR_BACKTEST_MODELS + m];
            if (!b->scores[m]) continue;
            weir_buf_printf(&out, "%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64, name, weir_backtest_models[m], f->targets,
                            f->positives, b->days[day].unripe);
            tables_put_number(&out, f->average_precision);
            tables_put_number(&out, f->auroc);
            weir_buf_printf(&out, ",%" PRIu64, f->alerts);
            tables_put_number(&out, f->precision);
            tables_put_number(&out, f->recall);
            if (amounts) tables_put_number(&out, f->caught);
            if (amounts) tables_put_number(&out, f->amount);
            weir_buf_byte(&out, '\n');
        }
    }
    return tables_write(b, "backtest.csv", &out);
}

/* --- all days ----------------------------------------------------------------------------------------------------- */

static void tables_put_interval(weir_json *json, double value, weir_interval interval) {
    weir_json_key_f64(json, "average_precision", value);
    weir_json_key_f64(json, "low", interval.low);
    weir_json_key_f64(json, "high", interval.high);
}

static void tables_put_models(weir_json *json, const weir_backtest *b, const weir_backtest_results *r) {
    weir_json_key(json, "models");
    weir_json_object(json);
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
        const weir_backtest_figures *f = &r->all[m];
        if (!b->scores[m]) continue;
        weir_json_key(json, weir_backtest_models[m]);
        weir_json_object(json);
        tables_put_interval(json, f->average_precision, f->interval);
        weir_json_key_f64(json, "auroc", f->auroc);
        weir_json_key_u64(json, "alerts", f->alerts);
        weir_json_key_f64(json, "precision_at_budget", f->precision);
        weir_json_key_f64(json, "recall_at_budget", f->recall);
        if (b->opts.amount != WEIR_SCHEMA_NONE) weir_json_key_f64(json, "amount_caught", f->caught);
        weir_json_object_end(json);
    }
    weir_json_object_end(json);
}

static void tables_put_differences(weir_json *json, const weir_backtest_results *r) {
    weir_json_key(json, "differences");
    weir_json_array(json);
    for (uint32_t i = 0; i < r->difference_count; i++) {
        const weir_backtest_difference *d = &r->differences[i];
        weir_json_object(json);
        weir_json_key_string(json, "model", weir_backtest_models[d->model]);
        weir_json_key_string(json, "against", weir_backtest_models[d->against]);
        tables_put_interval(json, d->value, d->interval);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void tables_put_trainings(weir_json *json, const weir_backtest *b) {
    weir_json_key(json, "trainings");
    weir_json_array(json);
    for (uint32_t s = 0; s < b->span_count; s++) {
        const weir_backtest_span *span = &b->spans[s];
        weir_json_object(json);
        weir_json_key_time(json, "known", b->days[span->first].from_us);
        weir_json_key_u64(json, "days", span->end - span->first);
        weir_json_key_u64(json, "train", span->learnt - span->validation);
        weir_json_key_u64(json, "validation", span->validation);
        weir_json_key_u64(json, "not_known_yet", span->untold);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static const weir_backtest_figures *tables_any(const weir_backtest *b, const weir_backtest_results *r) {
    weir_backtest_model m = 0;
    while (!b->scores[m])
        m++;
    return &r->all[m];
}

static uint64_t tables_unripe(const weir_backtest *b) {
    uint64_t unripe = 0;
    for (uint32_t day = 0; day < b->opts.days; day++)
        unripe += b->days[day].unripe;
    return unripe;
}

weir_err weir_backtest_write_json(const weir_backtest *b, const weir_backtest_results *r) {
    const weir_schema *schema = weir_snapshot_schema(b->snapshot);
    const weir_backtest_figures *any = tables_any(b, r);
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    weir_json_object(&json);
    weir_json_key_string(&json, "task", weir_schema_task_at(schema, b->opts.train.task)->name);
    weir_json_key_time(&json, "labels_until", weir_snapshot_as_of_us(b->snapshot));
    weir_json_key_time(&json, "from", b->opts.from_us);
    weir_json_key_time(&json, "to", b->opts.from_us + (int64_t)b->opts.days * WEIR_BACKTEST_DAY_US);
    weir_json_key_u64(&json, "days", b->opts.days);
    weir_json_key_u64(&json, "every", b->opts.every);
    weir_json_key_u64(&json, "alerts_a_day", b->opts.budget);
    weir_json_key_u64(&json, "targets", b->count);
    weir_json_key_u64(&json, "positives", any->positives);
    weir_json_key_u64(&json, "unripe", tables_unripe(b));
    if (b->opts.amount != WEIR_SCHEMA_NONE) {
        const weir_schema_vertex *vertex = weir_schema_vertex_at(schema, b->type);
        weir_json_key_string(&json, "amount", vertex->features[b->opts.amount].name);
        weir_json_key_f64(&json, "amount_of_positives", any->amount);
    }
    tables_put_models(&json, b, r);
    tables_put_differences(&json, r);
    tables_put_trainings(&json, b);
    weir_json_object_end(&json);
    weir_buf_byte(&out, '\n');
    return tables_write(b, "backtest.json", &out);
}

/* --- for people --------------------------------------------------------------------------------------------------- */

void weir_backtest_tell(const weir_backtest *b, const weir_backtest_results *r, weir_buf *text) {
    const bool amounts = b->opts.amount != WEIR_SCHEMA_NONE;
    const weir_backtest_figures *any = tables_any(b, r);
    char from[WEIR_BACKTEST_NAME_MAX], interval[32];
    weir_backtest_name(b->opts.from_us, from);
    weir_buf_printf(text, "%u days from %s: %zu targets, %" PRIu64 " positive", b->opts.days, from, b->count,
                    any->positives);
    if (tables_unripe(b))
        weir_buf_printf(text, "; %" PRIu64 " left out, whose labels may still come", tables_unripe(b));
    weir_buf_printf(text, "\n  %-9s %17s  %16s  %6s  %19s  %16s", "", "average precision", "95 of 100", "AUROC",
                    "precision at budget", "recall at budget");
    weir_buf_text(text, amounts ? "  amount caught\n" : "\n");
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
        const weir_backtest_figures *f = &r->all[m];
        if (!b->scores[m]) continue;
        snprintf(interval, sizeof interval, "%.4f to %.4f", f->interval.low, f->interval.high);
        weir_buf_printf(text, "  %-9s %17.4f  %16s  %6.4f  %19.3f  %16.3f", weir_backtest_models[m],
                        f->average_precision, interval, f->auroc, f->precision, f->recall);
        if (amounts) weir_buf_printf(text, "  %13.2f", f->caught);
        weir_buf_byte(text, '\n');
    }
    if (amounts) weir_buf_printf(text, "  amount of all positives: %.2f\n", any->amount);
}
