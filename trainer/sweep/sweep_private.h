/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_private.h - what the files of `weir sweep` share.
 *
 *   FOLDER/lock               held while a sweep runs, by its trainings too
 *   FOLDER/sweep.json         the plan, and what each trial got; replaced as one file when a training has ended
 *   FOLDER/trials/007         what `weir train --folder` leaves, and rung-1.log: what it printed
 *   FOLDER/trials.csv, sweep.svg
 *
 * INVARIANTS
 *   SWEEP-H1  What a trial tries depends on the seed, its number and an option's name alone: not on how many trials or
 *             other options there are.
 *   SWEEP-H2  Killed at any moment and begun again, a sweep comes to what it would have come to: a training that
 *             sweep.json does not know of is gone on with, one that it knows of is not done again. So it is where
 *             a training alone was killed, or had no memory or disk.
 *   SWEEP-H3  What goes on to the next rung, and what is best, is chosen by validation alone.
 */
#ifndef WEIR_TRAINER_SWEEP_PRIVATE_H
#define WEIR_TRAINER_SWEEP_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/json.h>
#include <weir/store/cli/cli.h>
#include <weir/trainer/child/child.h>
#include <weir/trainer/runs/runs.h>

#define WEIR_SWEEP_PATH_MAX    4096u
#define WEIR_SWEEP_TRIES_MAX   16u  /* options that are tried             */
#define WEIR_SWEEP_NAME_MAX    64u  /* bytes of an option's name, its end included */
#define WEIR_SWEEP_VALUE_MAX   256u /* of a value, its end included       */
#define WEIR_SWEEP_TRIALS_MAX  1000u
#define WEIR_SWEEP_RUNGS_MAX   8u
#define WEIR_SWEEP_KEEP_MAX    100u
#define WEIR_SWEEP_RANKS_MAX   1024u
#define WEIR_SWEEP_WORDS_MAX   64u /* that all trials share */
#define WEIR_SWEEP_MEASURE_MAX 32u

/* --- draw.c: options and what they may be ------------------------------------------------------------------------ */

typedef enum weir_sweep_kind { WEIR_SWEEP_CHOICE, WEIR_SWEEP_EVEN, WEIR_SWEEP_LOG } weir_sweep_kind;

typedef struct weir_sweep_try {
    char name[WEIR_SWEEP_NAME_MAX]; /* "rate" */
    const char *values;             /* as they were given */
    weir_sweep_kind kind;
    bool whole; /* numbers without a fraction */
    double low, high;
    uint32_t choices;
} weir_sweep_try;

/* "hidden=32|64", "dropout=0..0.5", "rate=log:1e-4..1e-2".  WEIR_EUSAGE. */
weir_err weir_sweep_try_read(const char *text, weir_sweep_try *try);
/* What a trial tries (SWEEP-H1), trials counting from 1. */
void weir_sweep_draw(const weir_sweep_try *try, uint64_t seed, uint32_t trial, char value[WEIR_SWEEP_VALUE_MAX]);

/* --- halving.c --------------------------------------------------------------------------------------------------- */

/* What a training of a trial got. */
typedef struct weir_sweep_result {
    double validation, low, high; /* NaN: no number */
    uint32_t best_epoch, epochs;  /* epochs: that it had in all */
    double seconds;               /* of all of them             */
} weir_sweep_result;

/* Epochs that a trial has in all when rung (from 0) has ended: epochs / keep^(rungs - 1 - rung), rounded up. */
uint32_t weir_sweep_epochs(uint32_t epochs, uint32_t keep, uint32_t rungs, uint32_t rung);
/* The trials of the next rung, of `count` in this one, whose validation is given, NaN of what failed: at most a
 * keep-th, rounded up, best first, of equals the first. Their places go to chosen; returns how many (SWEEP-H3). */
uint32_t weir_sweep_promote(const double *validation, uint32_t count, uint32_t keep, uint32_t *chosen);

/* --- the sweep --------------------------------------------------------------------------------------------------- */

typedef struct weir_sweep_trial {
    char values[WEIR_SWEEP_TRIES_MAX][WEIR_SWEEP_VALUE_MAX];
    uint32_t same_as; /* a trial before it that tries the same; 0: none. It is not trained */
    uint32_t rungs;   /* that it has ended */
    weir_sweep_result results[WEIR_SWEEP_RUNGS_MAX];
    char failed[WEIR_ERR_SENTENCE_MAX]; /* "": it has not */
} weir_sweep_trial;

typedef struct weir_sweep {
    /* what was asked */
    const char *folder;
    const char *snapshot, *parts; /* one of them */
    weir_sweep_try tries[WEIR_SWEEP_TRIES_MAX];
    uint32_t try_count, trial_count, rungs, keep, epochs, ranks;
    uint64_t seed;
    const char *words[WEIR_SWEEP_WORDS_MAX]; /* that all trials share */
    uint32_t word_count;
    uint64_t sums;        /* of the snapshot's or the parts' files */
    bool baselines_known; /* the task is one that has some, which are left out */
    /* how far it is */
    weir_sweep_trial *trials;
    char measure[WEIR_SWEEP_MEASURE_MAX]; /* "": nothing has ended yet */
    int lock;                             /* a descriptor; trainings inherit it */
} weir_sweep;

/* plan.c: from the command line; s begins as {0}. What the trials are is drawn.  WEIR_EUSAGE, WEIR_ENOTFOUND,
 * WEIR_ENOMEM, what a file reports. */
weir_err weir_sweep_plan(const weir_cli *cli, weir_sweep *s);
void weir_sweep_free(weir_sweep *s);
/* Has weir-train look at the options of each trial, before any is trained.  WEIR_EUSAGE names the trial;
 * WEIR_EUNAVAILABLE. */
weir_err weir_sweep_check(weir_sweep *s);
/* " --hidden=32 --residual" */
void weir_sweep_put_tried(const weir_sweep *s, const weir_sweep_trial *trial, weir_buf *out);

/* state.c: the folder's lock, and sweep.json: that of an earlier start of the same sweep, or a new one. again: what has
 * failed is as if it had not been begun.  WEIR_EBUSY; WEIR_EEXIST another sweep is there, and how it differs;
 * WEIR_ECORRUPT; errors of a file. */
weir_err weir_sweep_open(weir_sweep *s, bool again);
/* Whether an open would find another sweep: nothing is written, and no lock is taken.  As an open says, but for the
 * lock. */
weir_err weir_sweep_look(weir_sweep *s, bool again);
weir_err weir_sweep_save(const weir_sweep *s, const weir_run *best); /* best NULL: it has not ended */

/* trial.c */
weir_err weir_sweep_trial_folder(const weir_sweep *s, uint32_t trial, char path[WEIR_SWEEP_PATH_MAX]);
/* Trains it to the end of its next rung, and leaves in the trial what it got or how it failed.  WEIR_ECANCELLED a stop
 * was asked for; what is not the trial's own. */
weir_err weir_sweep_train(weir_sweep *s, uint32_t number);
/* The words of a command line, from the program on, which borrow from text. epochs 0: no training, but --check. */
weir_err weir_sweep_words(const weir_sweep *s, const weir_sweep_trial *trial, const char *folder, uint32_t epochs,
                          weir_buf *text, weir_child_words *words);

/* tell.c: trials.csv and sweep.svg into the folder; the table and the best one to out. */
uint32_t weir_sweep_best(const weir_sweep *s); /* its number; 0: none has ended */
weir_err weir_sweep_write(const weir_sweep *s, const weir_run *best);
void weir_sweep_tell(const weir_sweep *s, const weir_run *best, weir_buf *out);
/* The command line that trains the best one again. */
void weir_sweep_put_command(const weir_sweep *s, const weir_sweep_trial *trial, weir_buf *out);
/* Of --dry-run. */
void weir_sweep_tell_plan(const weir_sweep *s, weir_buf *out);

#endif /* WEIR_TRAINER_SWEEP_PRIVATE_H */
