/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest.h - how a task would have gone, day after day: what was known at a day's start is learnt from, and the day's
 * targets are scored, each as of its own time, as a server would have.
 *
 *   known at a day's start ─► learn ─► score the day ─► days/DAY.json ──┐
 *   known at the next one's ─► learn ─► score it ─────► days/DAY.json ──┴─► backtest.csv, .json, .svg, predictions.csv
 *
 * A day is 24 hours from `from_us` on. With `every` K a model is learnt for K days, when the first begins.
 *
 * INVARIANTS
 *   BACKTEST-D1  A model sees nothing of its first day or later: it is, bit for bit, that of a snapshot in which
 *                nothing of it has happened yet.
 *   BACKTEST-D2  What was killed and begun again leaves the same bytes as what was not; models that are in the folder
 *                are not learnt again, unless what they depend on has changed.
 *   BACKTEST-D3  Targets are judged by labels that had their time until the snapshot's end; others are left out, and
 *                counted as unripe.
 *   BACKTEST-D4  All figures can be computed from predictions.csv, whose scores are those that were compared.
 */
#ifndef WEIR_TRAINER_BACKTEST_BACKTEST_H
#define WEIR_TRAINER_BACKTEST_BACKTEST_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/trainer/train/train.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BACKTEST_DAYS_MAX 3660u
#define WEIR_BACKTEST_DAY_US   ((int64_t)86400 * 1000000)

/* What is learnt of each day. */
typedef enum weir_backtest_model {
    WEIR_BACKTEST_NETWORK,
    WEIR_BACKTEST_TREES, /* over what stands around a target        */
    WEIR_BACKTEST_BLEND, /* of both                                 */
    WEIR_BACKTEST_ROW,   /* trees on the row of the target alone    */
    WEIR_BACKTEST_MODELS
} weir_backtest_model;

extern const char *const weir_backtest_models[WEIR_BACKTEST_MODELS]; /* "network", "trees", "blend", "row" */

/* What has been learnt, or was there, and what comes next. A plain value. */
typedef struct weir_backtest_step {
    int64_t from_us, to_us;     /* of the days that it is for    */
    uint64_t targets;           /* of these days                 */
    uint64_t learnt_from;       /* targets, with validation      */
    bool kept;                  /* it was there                  */
    uint32_t number, of_number; /* which of how many, from 1     */
} weir_backtest_step;

typedef struct weir_backtest_opts {
    weir_train_opts train; /* how a model learns; model, folder, trace, resume, on_epoch and alerts do not count, and of
                              the cut warm_up and validation alone, as shares of what was known               */
    const char *made_of;   /* what else a model depends on: one that was made of another text is learnt anew  */
    const char *folder;
    bool models[WEIR_BACKTEST_MODELS]; /* which are wanted */
    int64_t from_us;
    uint32_t days, every;
    uint32_t budget; /* of alerts a day */
    uint32_t amount; /* feature of the task's vertex type, a number: what a positive costs; WEIR_SCHEMA_NONE: none */
    weir_err (*on_step)(void *context, const weir_backtest_step *step); /* may be NULL; an error ends it */
    void *context;
} weir_backtest_opts;

/* text: what is left for people. One rank, with a whole snapshot.
 * WEIR_EUSAGE the days are not in the snapshot, no model is wanted, more than one rank, or what weir_train_run says of
 * the options; WEIR_ECONFIG the task is not a yes-or-no question; WEIR_EDATA too little was known on a day, or no day
 * has a target whose label had its time; WEIR_ECORRUPT lists or keys of the snapshot; WEIR_EUNAVAILABLE trees are
 * wanted, and XGBoost is not there; WEIR_ENOMEM; what a training, the files and on_step report.  [main] */
weir_err weir_backtest_run(weir_comm *comm, const weir_backtest_opts *opts, weir_buf *text);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_BACKTEST_BACKTEST_H */
