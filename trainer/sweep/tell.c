/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - what a sweep leaves: the table of trials, their curves, and how to train the best one again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "sweep_private.h"

#define TRIALS_ARENA_BYTES ((size_t)256 << 20)

/* --- which is best ------------------------------------------------------------------------------------------------ */

static double trials_figure(const weir_sweep_trial *trial) {
    return trial->rungs ? trial->results[trial->rungs - 1].validation : (double)NAN;
}

/* What failed is behind what did not. Who came further is before who did not: fewer epochs say less. Then by
 * validation, of equals the first (SWEEP-H3). */
static bool trials_before(const weir_sweep *s, uint32_t a, uint32_t b) {
    const weir_sweep_trial *x = &s->trials[a], *y = &s->trials[b];
    const double one = trials_figure(x), other = trials_figure(y);
    if (!x->same_as != !y->same_as) return !x->same_as;
    if (!x->failed[0] != !y->failed[0]) return !x->failed[0];
    if (x->rungs != y->rungs) return x->rungs > y->rungs;
    if (one > other || one < other) return one > other;
    return a < b;
}

uint32_t weir_sweep_best(const weir_sweep *s) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->trial_count; i++)
        if (trials_before(s, i, best)) best = i;
    return s->trials[best].rungs && !s->trials[best].failed[0] ? best + 1 : 0;
}

static weir_err trials_order(const weir_sweep *s, uint32_t **orderp) {
    uint32_t *order = *orderp = weir_calloc(s->trial_count, sizeof *order);
    if (!order) return WEIR_NOMEM("for the table of trials");
    for (uint32_t i = 0; i < s->trial_count; i++) {
        uint32_t at = i;
        for (; at > 0 && trials_before(s, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return WEIR_OK;
}

/* --- command lines ------------------------------------------------------------------------------------------------ */

/* As a shell reads it. */
static void trials_put_word(weir_buf *out, const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.,:=/+@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        weir_buf_text(out, word);
        return;
    }
    weir_buf_byte(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            weir_buf_text(out, "'\\''");
        else
            weir_buf_byte(out, *word);
    }
    weir_buf_byte(out, '\'');
}

void weir_sweep_put_command(const weir_sweep *s, const weir_sweep_trial *trial, weir_buf *out) {
    char word[WEIR_SWEEP_NAME_MAX + WEIR_SWEEP_VALUE_MAX + 4];
    if (s->ranks > 1)
        weir_buf_printf(out, "mpirun -n %u weir-train ", s->ranks);
    else
        weir_buf_text(out, "weir train ");
    if (s->parts) weir_buf_text(out, "--parts ");
    trials_put_word(out, s->parts ? s->parts : s->snapshot);
    for (uint32_t i = 0; i < s->word_count; i++) {
        weir_buf_byte(out, ' ');
        trials_put_word(out, s->words[i]);
    }
    for (uint32_t t = 0; t < s->try_count; t++) {
        const char *value = trial->values[t];
        if (strcmp(value, "off") == 0) continue;
        const bool on = strcmp(value, "on") == 0;
        snprintf(word, sizeof word, "--%s%s%s", s->tries[t].name, on ? "" : "=", on ? "" : value);
        weir_buf_byte(out, ' ');
        trials_put_word(out, word);
    }
    const uint32_t last = trial->rungs ? trial->rungs - 1 : 0;
    weir_buf_printf(out, " --epochs %u", weir_sweep_epochs(s->epochs, s->keep, s->rungs, last));
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static weir_err trials_write(const weir_sweep *s, const char *name, weir_buf *text) {
    char path[WEIR_SWEEP_PATH_MAX];
    weir_err err = weir_buf_err(text);
    if (!err) err = weir_path_join(path, sizeof path, s->folder, name);
    if (!err) err = weir_file_replace(path, text->bytes, text->length);
    weir_buf_free(text);
    return err;
}

static void trials_put_cell(weir_buf *out, double value) {
    weir_buf_byte(out, ',');
    if (isfinite(value)) weir_buf_printf(out, "%.10g", value);
}

static const char *trials_outcome(const weir_sweep *s, uint32_t number) {
    const weir_sweep_trial *trial = &s->trials[number];
    if (trial->same_as) return "repeats";
    if (trial->failed[0]) return "failed";
    if (number + 1 == weir_sweep_best(s)) return "best";
    return trial->rungs < s->rungs ? "stopped" : "ended";
}

static weir_err trials_write_csv(const weir_sweep *s, const uint32_t *order) {
    weir_buf out = {0};
    weir_buf_text(&out, "trial,outcome,repeats,rungs,epochs,best_epoch,validation,validation_low,validation_high");
    for (uint32_t t = 0; t < s->try_count; t++) {
        weir_buf_byte(&out, ',');
        weir_buf_csv(&out, s->tries[t].name, strlen(s->tries[t].name));
    }
    weir_buf_text(&out, ",message,seconds\n");
    for (uint32_t i = 0; i < s->trial_count; i++) {
        const weir_sweep_trial *trial = &s->trials[order[i]];
        const weir_sweep_result none = {(double)NAN, (double)NAN, (double)NAN, 0, 0, (double)NAN};
        const weir_sweep_result *r = trial->rungs ? &trial->results[trial->rungs - 1] : &none;
        weir_buf_printf(&out, "%u,%s,", order[i] + 1, trials_outcome(s, order[i]));
        if (trial->same_as) weir_buf_printf(&out, "%u", trial->same_as);
        weir_buf_printf(&out, ",%u,%u,%u", trial->rungs, r->epochs, r->best_epoch);
        trials_put_cell(&out, r->validation);
        trials_put_cell(&out, r->low);
        trials_put_cell(&out, r->high);
        for (uint32_t t = 0; t < s->try_count; t++) {
            weir_buf_byte(&out, ',');
            weir_buf_csv(&out, trial->values[t], strlen(trial->values[t]));
        }
        weir_buf_byte(&out, ',');
        weir_buf_csv(&out, trial->failed, strlen(trial->failed));
        trials_put_cell(&out, r->seconds);
        weir_buf_byte(&out, '\n');
    }
    return trials_write(s, "trials.csv", &out);
}

/* A trial whose curve cannot be read has none; its figures stand in the table. */
static weir_err trials_write_picture(const weir_sweep *s) {
    char folder[WEIR_SWEEP_PATH_MAX], what[WEIR_SWEEP_MEASURE_MAX + 32];
    uint32_t count = 0;
    weir_arena *arena = NULL;
    weir_buf svg = {0};
    weir_runs_line *lines = weir_calloc(s->trial_count, sizeof *lines);
    weir_err err = lines ? weir_arena_open(TRIALS_ARENA_BYTES, &arena) : WEIR_NOMEM("for the picture of a sweep");
    for (uint32_t i = 0; !err && i < s->trial_count; i++) {
        weir_run *run;
        char *name = weir_arena_printf(arena, "trial %u", i + 1);
        if (!s->trials[i].rungs || !name) continue;
        err = weir_sweep_trial_folder(s, i, folder);
        if (err || weir_run_read(arena, folder, folder, &run)) continue;
        lines[count++] =
            (weir_runs_line){name, run->epochs, run->epoch_count, run->best_epoch, i + 1 == weir_sweep_best(s)};
    }
    snprintf(what, sizeof what, "%s of validation", *s->measure ? s->measure : "figure");
    if (!err) weir_runs_draw(&svg, lines, count, what);
    if (!err) err = trials_write(s, "sweep.svg", &svg);
    weir_buf_free(&svg);
    weir_arena_close(arena);
    weir_free(lines);
    return err;
}

weir_err weir_sweep_write(const weir_sweep *s, const weir_run *best) {
    uint32_t *order = NULL;
    weir_err err = trials_order(s, &order);
    if (!err) err = trials_write_csv(s, order);
    if (!err) err = trials_write_picture(s);
    if (!err) err = weir_sweep_save(s, best);
    weir_free(order);
    return err;
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static void trials_put_row(const weir_sweep *s, uint32_t number, weir_buf *out) {
    const weir_sweep_trial *trial = &s->trials[number];
    weir_buf_printf(out, "%5u  ", number + 1);
    if (trial->same_as) {
        weir_buf_printf(out, "%10s  %-16s  %6s  %6s  %8s ", "-", "", "", "", "");
    } else if (!trial->rungs) {
        weir_buf_printf(out, "%10s  %-16s  %6s  %6s  %8s ", "-", "", "-", "-", "-");
    } else {
        const weir_sweep_result *r = &trial->results[trial->rungs - 1];
        char interval[32] = "-";
        if (isfinite(r->low)) snprintf(interval, sizeof interval, "%.4f to %.4f", r->low, r->high);
        weir_buf_printf(out, "%10.4f  %-16s  %6u  %6u  ", r->validation, interval, r->epochs, r->best_epoch);
        if (isfinite(r->seconds))
            weir_buf_printf(out, "%8.1f ", r->seconds);
        else
            weir_buf_printf(out, "%8s ", "-");
    }
    weir_sweep_put_tried(s, trial, out);
    if (trial->same_as) weir_buf_printf(out, "  as trial %u", trial->same_as);
    if (trial->failed[0]) weir_buf_printf(out, "  failed: %s", trial->failed);
    weir_buf_byte(out, '\n');
}

/* The figure is that of the trial. A task whose targets are cut by time is learnt again by the command line. */
static void trials_put_best(const weir_sweep *s, const weir_run *best, weir_buf *out) {
    const uint32_t number = weir_sweep_best(s);
    uint32_t trained = 0;
    for (uint32_t i = 0; i < s->trial_count; i++)
        trained += s->trials[i].rungs && !s->trials[i].same_as;
    weir_buf_printf(out, "\nbest on validation: trial %u. ", number);
    if (trained > 1) weir_buf_printf(out, "Being the best of %u, its figure there says too much; on", trained);
    weir_buf_printf(out, "%s the test, by which nothing was chosen, it has %.4f", trained > 1 ? "" : "On",
                    best->test.value);
    if (isfinite(best->test.low)) weir_buf_printf(out, " (95 of 100: %.4f to %.4f)", best->test.low, best->test.high);
    weir_buf_text(out,
                  ", learnt once\ntrain it again, which learns a second time, from validation, too, where targets are "
                  "cut by time, and add that model to a register:\n  ");
    weir_sweep_put_command(s, &s->trials[number - 1], out);
    weir_buf_text(out, " --models models\n");
}

void weir_sweep_tell(const weir_sweep *s, const weir_run *best, weir_buf *out) {
    uint32_t *order = NULL;
    if (trials_order(s, &order)) {
        out->failed = WEIR_ENOMEM;
        return;
    }
    weir_buf_printf(out, "\ntrials, by %s of validation:\n%5s  %10s  %-16s  %6s  %6s  %8s  options\n",
                    *s->measure ? s->measure : "the figure", "trial", "validation", "95 of 100", "epochs", "best",
                    "seconds");
    for (uint32_t i = 0; i < s->trial_count; i++)
        trials_put_row(s, order[i], out);
    weir_free(order);
    if (!best) return;
    trials_put_best(s, best, out);
}

void weir_sweep_tell_plan(const weir_sweep *s, weir_buf *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->trial_count; i++)
        count += !s->trials[i].same_as;
    for (uint32_t r = 0; r < s->rungs; r++) {
        weir_buf_printf(out, "rung %u of %u: %u trials, each to epoch %u\n", r + 1, s->rungs, count,
                        weir_sweep_epochs(s->epochs, s->keep, s->rungs, r));
        count = (count + s->keep - 1) / s->keep;
    }
    for (uint32_t i = 0; i < s->trial_count; i++) {
        weir_buf_printf(out, "trial %-4u", i + 1);
        weir_sweep_put_tried(s, &s->trials[i], out);
        if (s->trials[i].same_as) weir_buf_printf(out, "  as trial %u: not trained", s->trials[i].same_as);
        weir_buf_byte(out, '\n');
    }
}
