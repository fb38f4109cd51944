/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - trainings that have ended, by the folders that they left: what they were told and what they got.
 *
 *   FOLDER/report.json    task, figures of validation and test; without it a folder is no run
 *   FOLDER/run.json       options, when, model; missing from a training of an earlier version
 *   FOLDER/epochs.jsonl   validation by epoch; missing where there are no epochs
 *
 * A model of a register is one, too: its metrics.json is the report, its provenance.json says what it was told.
 *
 * INVARIANTS
 *   RUNS-V1  Whatever the bytes of such files are, each folder is a run or is named with what is wrong; none is lost.
 *   RUNS-V2  What has control characters in a file has none in a run.
 *
 * THREADS: [owner].
 */
#ifndef WEIR_TRAINER_RUNS_RUNS_H
#define WEIR_TRAINER_RUNS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_RUNS_DEPTH_MAX 4u     /* folders below one that is named    */
#define WEIR_RUNS_MAX       10000u /* runs of one list                   */
#define WEIR_RUN_EPOCHS_MAX 100000u

/* NaN: not known. */
typedef struct weir_run_figure {
    double value, low, high; /* low, high: 95 of 100 */
    uint64_t targets;
} weir_run_figure;

typedef struct weir_run_option {
    const char *name, *value;
} weir_run_option;

typedef struct weir_run_epoch {
    uint32_t number;
    double loss, validation, seconds; /* NaN: what was no finite number */
} weir_run_epoch;

/* Texts are "" where they are not known, and one line. */
typedef struct weir_run {
    const char *name; /* as its folder was reached */
    const char *folder;
    const char *task, *family, *measure; /* "fraud", "network", "average precision" */
    const char *snapshot, *program, *model;
    const char *began, *ended; /* RFC 3339 */
    int64_t ended_us;          /* 0: not known */
    char id[33];               /* of what it was told and got, and when it began: the same wherever it lies */
    weir_run_figure validation, test;
    double seconds; /* of all epochs; NaN */
    uint32_t best_epoch;
    const weir_run_option *options; /* by name */
    size_t option_count;
    const weir_run_epoch *epochs; /* by number */
    size_t epoch_count;
    bool registered; /* a model of a register */
} weir_run;

/* The run that a folder is; all of it is the arena's. name: what it shall be called.  WEIR_ENOTFOUND it is none;
 * WEIR_EDATA, WEIR_ECORRUPT, WEIR_ELIMIT its files are wrong; WEIR_ENOMEM; errors of a file. */
weir_err weir_run_read(weir_arena *arena, const char *folder, const char *name, weir_run **runp);
/* NULL: it was not given. */
const char *weir_run_option_find(const weir_run *run, const char *name);

typedef struct weir_runs weir_runs;

weir_err weir_runs_open(weir_runs **runsp); /* WEIR_ENOMEM */
void weir_runs_close(weir_runs *runs);      /* NULL is allowed */
/* The folder if it is a run, else those below it, by name; no link is followed.  WEIR_ENOTFOUND there is no folder;
 * WEIR_ELIMIT too many; WEIR_ENOMEM; errors of a folder. */
weir_err weir_runs_add(weir_runs *runs, const char *folder);
size_t weir_runs_count(const weir_runs *runs);
const weir_run *weir_runs_at(const weir_runs *runs, size_t index);
/* What would have been a run (RUNS-V1): its folder and a sentence; NULL: there are no more. */
const char *weir_runs_skipped(const weir_runs *runs, size_t index, const char **whyp);

/* Of a picture: a line a run. */
typedef struct weir_runs_line {
    const char *name;
    const weir_run_epoch *epochs;
    size_t epoch_count;
    uint32_t best_epoch; /* where the dot is; 0: none */
    bool best;           /* is marked                 */
} weir_runs_line;

/* Validation by epoch, as SVG for light and dark pages. what: of the axis, "average precision of validation". */
void weir_runs_draw(weir_buf *svg, const weir_runs_line *lines, size_t count, const char *what);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_RUNS_RUNS_H */
