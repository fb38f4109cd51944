/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - `weir sweep`: trainings with options that are drawn, and the best of them by validation.
 *
 *   all trials, few epochs ─► the best third goes on, three times the epochs ─► … ─► the best one
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/signals.h>

#include "sweep_private.h"

extern const weir_command weir_command_sweep;

#define SWEEP_ARENA_BYTES ((size_t)64 << 20)

static weir_err sweep_print(weir_buf *out) {
    weir_err err = weir_buf_err(out);
    if (!err) err = weir_cli_output(out->bytes, out->length);
    weir_buf_free(out);
    return err;
}

/* What a trial got in a rung, now or before. */
static weir_err sweep_say(const weir_sweep *s, uint32_t rung, uint32_t number, bool kept) {
    const weir_sweep_trial *trial = &s->trials[number];
    weir_buf out = {0};
    weir_buf_printf(&out, "rung %u/%u  trial %-4u  ", rung + 1, s->rungs, number + 1);
    if (trial->rungs <= rung) {
        weir_buf_printf(&out, "failed: %s", trial->failed);
    } else {
        const weir_sweep_result *r = &trial->results[rung];
        weir_buf_printf(&out, "%.4f, best of epoch %u of %u", r->validation, r->best_epoch, r->epochs);
        if (isfinite(r->seconds)) weir_buf_printf(&out, "  (%.1f s)", r->seconds);
        if (kept) weir_buf_text(&out, ", was there");
    }
    weir_buf_text(&out, " ");
    weir_sweep_put_tried(s, trial, &out);
    weir_buf_byte(&out, '\n');
    return sweep_print(&out);
}

static weir_err sweep_trial(weir_sweep *s, uint32_t rung, uint32_t number) {
    weir_sweep_trial *trial = &s->trials[number];
    const bool kept = trial->rungs > rung || trial->failed[0];
    weir_err err = WEIR_OK;
    if (!kept) {
        err = weir_sweep_train(s, number);
        if (!err) err = weir_sweep_save(s, NULL); /* SWEEP-H2 */
    }
    return err ? err : sweep_say(s, rung, number, kept);
}

/* Which of those in a rung go on; there: their numbers, which become those of the next. */
static weir_err sweep_choose(const weir_sweep *s, uint32_t rung, uint32_t *there, uint32_t *countp) {
    double *figures = weir_calloc(*countp + 1, sizeof *figures);
    uint32_t *chosen = weir_calloc(*countp + 1, sizeof *chosen);
    weir_err err = figures && chosen ? WEIR_OK : WEIR_NOMEM("to choose among the trials");
    for (uint32_t i = 0; !err && i < *countp; i++) {
        const weir_sweep_trial *trial = &s->trials[there[i]];
        figures[i] = trial->rungs > rung ? trial->results[rung].validation : (double)NAN;
    }
    if (!err) {
        *countp = weir_sweep_promote(figures, *countp, s->keep, chosen);
        for (uint32_t i = 0; i < *countp; i++)
            chosen[i] = there[chosen[i]];
        memcpy(there, chosen, *countp * sizeof *there);
    }
    weir_free(figures);
    weir_free(chosen);
    return err;
}

static weir_err sweep_go(weir_sweep *s) {
    uint32_t count = 0;
    uint32_t *there = weir_calloc(s->trial_count, sizeof *there);
    weir_err err = there ? WEIR_OK : WEIR_NOMEM("for the trials of a rung");
    for (uint32_t i = 0; !err && i < s->trial_count; i++)
        if (!s->trials[i].same_as) there[count++] = i;
    for (uint32_t rung = 0; !err && rung < s->rungs; rung++) {
        for (uint32_t i = 0; !err && i < count; i++)
            err = sweep_trial(s, rung, there[i]);
        if (!err && rung + 1 < s->rungs) err = sweep_choose(s, rung, there, &count);
    }
    weir_free(there);
    return err;
}

/* How many failed is the last thing that is said. */
static weir_err sweep_judge(const weir_sweep *s) {
    uint32_t failed = 0, first = 0;
    for (uint32_t i = s->trial_count; i > 0; i--) {
        if (!s->trials[i - 1].failed[0]) continue;
        failed++;
        first = i;
    }
    if (!failed) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%u of %u trials failed, the first of them trial %u: %.300s; --retry tries them again",
                    failed, s->trial_count, first, s->trials[first - 1].failed);
}

static weir_err sweep_end(const weir_sweep *s) {
    char folder[WEIR_SWEEP_PATH_MAX];
    const uint32_t number = weir_sweep_best(s);
    weir_buf out = {0};
    weir_run *best = NULL;
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(SWEEP_ARENA_BYTES, &arena);
    if (!err && number) err = weir_sweep_trial_folder(s, number - 1, folder);
    if (!err && number) err = weir_run_read(arena, folder, folder, &best);
    if (!err) err = weir_sweep_write(s, best);
    if (!err) weir_sweep_tell(s, best, &out);
    if (!err) err = sweep_print(&out);
    weir_buf_free(&out);
    weir_arena_close(arena);
    return err ? err : sweep_judge(s);
}

static weir_err sweep_run(weir_cli *cli) {
    weir_buf out = {0};
    weir_sweep *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a sweep");
    weir_err err = weir_sweep_plan(cli, s);
    if (!err) err = weir_signals_install();
    if (!err) err = weir_sweep_check(s);
    const bool retry = weir_cli_given(cli, "retry");
    if (!err && weir_cli_given(cli, "dry-run")) {
        err = weir_sweep_look(s, retry);
        if (!err) weir_sweep_tell_plan(s, &out);
        if (!err) err = sweep_print(&out);
    } else if (!err) {
        err = weir_sweep_open(s, retry);
        if (!err) err = sweep_go(s);
        if (!err) err = sweep_end(s);
    }
    if (s->lock >= 0) close(s->lock);
    weir_sweep_free(s);
    weir_free(s);
    return err;
}

static const weir_option options[] = {
    {"out", 'o', "DIR", "write sweep.json, trials.csv, sweep.svg and a folder for each trial there", NULL},
    {"try", 't', "NAME=VALUES",
     "an option of weir train and what it may be: 'a|b|c', LOW..HIGH, or log:LOW..HIGH; whole numbers if both ends "
     "are; "
     "on and off for a switch; may be repeated",
     NULL},
    {"trials", 'n', "N", "how many are drawn (default: 20)", NULL},
    {"rungs", 0, "R", "rungs of successive halving (default: 1, all trials are trained to their end)", NULL},
    {"keep", 'k', "K", "the best K-th of a rung goes on to the next, with K times the epochs (default: 3)", NULL},
    {"epochs", 'e', "E", "epochs of the last rung at most (default: 100)", NULL},
    {"ranks", 0, "N", "train each with N ranks, by mpirun (default: 1)", NULL},
    {"parts", 'p', "DIR", "instead of a snapshot: parts made by weir partition, one a rank", NULL},
    {"seed", 's', "N", "seed of what is tried (default: 1); what a training draws is weir train's own --seed", NULL},
    {"retry", 0, NULL, "try again what has failed", NULL},
    {"dry-run", 0, NULL, "check everything and print what would be tried, and do nothing", NULL},
    {0}};

const weir_command weir_command_sweep = {
    .name = "sweep",
    .summary = "train with many options, and find the best of them by validation",
    .positional = "[SNAPSHOT] [-- OPTION...]",
    .positional_max = WEIR_SWEEP_WORDS_MAX + 1,
    .description =
        "Draws values of some options of weir train, trains with each, and says which are best by validation; the test "
        "chooses nothing. With several rungs all trials begin with few epochs, and only the best go on. What follows "
        "-- is for all of them. Killed at any moment and begun again, it goes on where it was.",
    .example = "weir sweep tonight --out sweep --try rate=log:1e-4..3e-2 --try 'hidden=32|64|128' --dry-run\n"
               "weir sweep tonight --out sweep --trials 27 --rungs 3 --try rate=log:1e-4..3e-2 --try dropout=0..0.5\n"
               "weir sweep tonight --out sweep --try 'fanouts=5,5|10,10|20,5' --try 'residual=on|off' -- --batch 1024",
    .options = options,
    .run = sweep_run,
};
