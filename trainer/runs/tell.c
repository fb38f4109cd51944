/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - runs as a table, two of them side by side, and all of them as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runs_private.h"

#define TELL_CELL_MAX    64u  /* of a number and its interval             */
#define TELL_NAME_MAX    120u /* columns of a name at most                */
#define TELL_COLUMNS_MAX 24   /* of a word of a run                       */

void weir_runs_put_number(weir_buf *out, double value) {
    if (isfinite(value))
        weir_buf_printf(out, "%.4f", value);
    else
        weir_buf_byte(out, '-');
}

/* "0.1234 (0.1000 to 0.1500)" */
static void tell_figure(const weir_run_figure *f, bool interval, char cell[TELL_CELL_MAX]) {
    const int length = snprintf(cell, TELL_CELL_MAX, isfinite(f->value) ? "%.4f" : "-", f->value);
    const size_t used = length > 0 && (size_t)length < TELL_CELL_MAX ? (size_t)length : TELL_CELL_MAX - 1;
    if (interval && isfinite(f->low) && isfinite(f->high))
        snprintf(cell + used, TELL_CELL_MAX - used, " (%.4f to %.4f)", f->low, f->high);
}

static void tell_seconds(double seconds, char cell[TELL_CELL_MAX]) {
    snprintf(cell, TELL_CELL_MAX, isfinite(seconds) ? "%.1f" : "-", seconds);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static int tell_widest_name(const weir_runs_shown *shown) {
    size_t widest = 4;
    for (size_t i = 0; i < shown->count; i++)
        if (strlen(shown->runs[i]->name) > widest) widest = strlen(shown->runs[i]->name);
    return (int)(widest < TELL_NAME_MAX ? widest : TELL_NAME_MAX);
}

/* What is the same in all of them stands above the table once. */
static bool tell_same_measure(const weir_runs_shown *shown) {
    for (size_t i = 1; i < shown->count; i++)
        if (strcmp(shown->runs[i]->measure, shown->runs[0]->measure) != 0) return false;
    return true;
}

static void tell_differing(const weir_runs_shown *shown, const weir_run *run, weir_buf *out) {
    for (size_t i = 0; i < shown->differing_count; i++) {
        const char *value = weir_run_option_find(run, shown->differing[i]);
        if (value) weir_buf_printf(out, "  %s=%s", shown->differing[i], value);
    }
}

static void tell_row(const weir_runs_shown *shown, const weir_run *run, int width, bool measure, weir_buf *out) {
    char validation[TELL_CELL_MAX], test[TELL_CELL_MAX], seconds[TELL_CELL_MAX];
    tell_figure(&run->validation, false, validation);
    tell_figure(&run->test, true, test);
    tell_seconds(run->seconds, seconds);
    weir_buf_printf(out, "%-*s  %-16.16s  %-12.*s  %-9.*s", width, run->name, run->ended, TELL_COLUMNS_MAX, run->task,
                    TELL_COLUMNS_MAX, run->family);
    if (measure) weir_buf_printf(out, "  %-17s", run->measure);
    weir_buf_printf(out, "  %10s  %-25s  %8s", validation, test, seconds);
    tell_differing(shown, run, out);
    weir_buf_byte(out, '\n');
}

void weir_runs_tell(const weir_runs_shown *shown, weir_buf *out) {
    const bool same = tell_same_measure(shown);
    const int width = tell_widest_name(shown);
    if (same) weir_buf_printf(out, "figures: %s\n", shown->runs[0]->measure);
    weir_buf_printf(out, "%-*s  %-16s  %-12s  %-9s", width, "run", "ended", "task", "kind");
    if (!same) weir_buf_printf(out, "  %-17s", "figure");
    weir_buf_printf(out, "  %10s  %-25s  %8s%s\n", "validation", "test (95 of 100)", "seconds",
                    shown->differing_count ? "  options that differ" : "");
    for (size_t i = 0; i < shown->count; i++)
        tell_row(shown, shown->runs[i], width, !same, out);
}

/* --- two of them -------------------------------------------------------------------------------------------------- */

/* A row of what differs; of figures any. */
static void tell_pair(weir_buf *out, const char *name, const char *a, const char *b, int width) {
    weir_buf_printf(out, "%-20s  %-*s  %s\n", name, width, *a ? a : "-", *b ? b : "-");
}

static void tell_words(const weir_run *a, const weir_run *b, int width, weir_buf *out) {
    const struct {
        const char *name, *a, *b;
    } words[] = {
        {"task", a->task, b->task},          {"kind", a->family, b->family},
        {"figure", a->measure, b->measure},  {"snapshot", a->snapshot, b->snapshot},
        {"program", a->program, b->program}, {"model", a->model, b->model},
        {"ended", a->ended, b->ended},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].a, words[i].b) != 0) tell_pair(out, words[i].name, words[i].a, words[i].b, width);
}

void weir_runs_tell_both(const weir_runs_shown *shown, weir_buf *out) {
    const weir_run *a = shown->runs[0], *b = shown->runs[1];
    const int named = (int)strlen(a->name), width = named > 27 ? named : 27;
    char one[TELL_CELL_MAX], other[TELL_CELL_MAX];
    tell_pair(out, "", a->name, b->name, width);
    tell_figure(&a->validation, true, one);
    tell_figure(&b->validation, true, other);
    tell_pair(out, "validation", one, other, width);
    tell_figure(&a->test, true, one);
    tell_figure(&b->test, true, other);
    tell_pair(out, "test", one, other, width);
    snprintf(one, sizeof one, "%u of %zu", a->best_epoch, a->epoch_count);
    snprintf(other, sizeof other, "%u of %zu", b->best_epoch, b->epoch_count);
    tell_pair(out, "best epoch", a->epoch_count ? one : "", b->epoch_count ? other : "", width);
    tell_seconds(a->seconds, one);
    tell_seconds(b->seconds, other);
    tell_pair(out, "seconds", one, other, width);
    tell_words(a, b, width, out);
    for (size_t i = 0; i < shown->differing_count; i++) {
        char name[TELL_CELL_MAX];
        const char *first = weir_run_option_find(a, shown->differing[i]);
        const char *second = weir_run_option_find(b, shown->differing[i]);
        snprintf(name, sizeof name, "--%s", shown->differing[i]);
        tell_pair(out, name, first ? first : "", second ? second : "", width);
    }
    if (!shown->differing_count) weir_buf_text(out, "the options are the same\n");
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void tell_json_figure(weir_json *json, const char *name, const weir_run_figure *f) {
    weir_json_key(json, name);
    weir_json_object(json);
    weir_json_key_f64(json, "value", f->value);
    weir_json_key_f64(json, "low", f->low);
    weir_json_key_f64(json, "high", f->high);
    weir_json_key_u64(json, "targets", f->targets);
    weir_json_object_end(json);
}

static void tell_json_run(weir_json *json, const weir_run *run) {
    weir_json_object(json);
    weir_json_key_string(json, "name", run->name);
    weir_json_key_string(json, "id", run->id);
    weir_json_key_string(json, "began", *run->began ? run->began : NULL);
    weir_json_key_string(json, "ended", *run->ended ? run->ended : NULL);
    weir_json_key_string(json, "task", run->task);
    weir_json_key_string(json, "kind", run->family);
    weir_json_key_string(json, "figure", run->measure);
    weir_json_key_string(json, "snapshot", *run->snapshot ? run->snapshot : NULL);
    weir_json_key_string(json, "model", *run->model ? run->model : NULL);
    weir_json_key(json, "options");
    weir_json_object(json);
    for (size_t i = 0; i < run->option_count; i++)
        weir_json_key_string(json, run->options[i].name, run->options[i].value);
    weir_json_object_end(json);
    tell_json_figure(json, "validation", &run->validation);
    tell_json_figure(json, "test", &run->test);
    weir_json_key_f64(json, "seconds", run->seconds);
    weir_json_key_u64(json, "best_epoch", run->best_epoch);
    weir_json_key(json, "validation_by_epoch");
    weir_json_array(json);
    for (size_t i = 0; i < run->epoch_count; i++)
        weir_json_f64(json, run->epochs[i].validation);
    weir_json_array_end(json);
    weir_json_object_end(json);
}

void weir_runs_tell_json(const weir_runs_shown *shown, const weir_runs *list, weir_buf *out) {
    const char *folder, *why;
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "runs");
    weir_json_array(&json);
    for (size_t i = 0; i < shown->count; i++)
        tell_json_run(&json, shown->runs[i]);
    weir_json_array_end(&json);
    weir_json_key(&json, "skipped");
    weir_json_array(&json);
    for (size_t i = 0; (folder = weir_runs_skipped(list, i, &why)); i++) {
        weir_json_object(&json);
        weir_json_key_string(&json, "folder", folder);
        weir_json_key_string(&json, "why", why);
        weir_json_object_end(&json);
    }
    weir_json_array_end(&json);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}
