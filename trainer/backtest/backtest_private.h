/* SPDX-License-Identifier: Apache-2.0 */
/* backtest_private.h - what the files of a backtest share. */
#ifndef WEIR_TRAINER_BACKTEST_BACKTEST_PRIVATE_H
#define WEIR_TRAINER_BACKTEST_BACKTEST_PRIVATE_H

#include <weir/store/base/clock.h>
#include <weir/trainer/backtest/backtest.h>

#define WEIR_BACKTEST_PATH_MAX 4096u

typedef struct weir_backtest_day {
    int64_t from_us;
    uint64_t begin, end; /* its targets, among all */
    uint64_t unripe;     /* left out: BACKTEST-D3  */
} weir_backtest_day;

/* Days that one training is for. */
typedef struct weir_backtest_span {
    uint32_t first, end;         /* days */
    uint64_t made_of;            /* a hash of all that its models depend on         */
    uint64_t learnt, validation; /* targets that were known at its start            */
    uint64_t untold;             /* targets before it whose labels were not         */
} weir_backtest_span;

typedef struct weir_backtest {
    weir_backtest_opts opts;
    weir_comm *comm;
    const weir_snapshot *snapshot;
    uint32_t type; /* of the task's vertices */
    weir_backtest_day *days;
    weir_backtest_span *spans;
    uint32_t span_count;
    /* Of all targets, in the order of days and, within, of time. */
    size_t count, capacity;
    weir_target *targets;
    uint8_t *labels;
    int64_t *day_of;
    double *amounts;                      /* 0 where the feature is missing */
    double *scores[WEIR_BACKTEST_MODELS]; /* calibrated log odds; NULL: not wanted */
} weir_backtest;

/* "2026-02-18" of a midnight, else with the time. */
#define WEIR_BACKTEST_NAME_MAX WEIR_TIME_TEXT_MAX
void weir_backtest_name(int64_t time_us, char name[WEIR_BACKTEST_NAME_MAX]);

/* plan.c: days, spans and targets, before anything is learnt. */
weir_err weir_backtest_plan(weir_backtest *b);

/* span.c: the scores of a span's targets: from its file, if that was made of the same; else of models that are learnt
 * now, and then left in its file. */
weir_err weir_backtest_span_score(weir_backtest *b, const weir_backtest_span *span, bool *keptp);

/* How a model stands on some targets. NaN where there is nothing to tell: the first three and their intervals with one
 * class alone. */
typedef struct weir_backtest_figures {
    uint64_t targets, positives, alerts;
    double average_precision, auroc;
    double precision, recall; /* of the alerts; recall NaN without a positive */
    double caught, amount;    /* of the positives: of those that alerts find, of all */
    weir_interval interval;   /* of the average precision; of all days alone */
} weir_backtest_figures;

/* How far the average precision of one model over all days is above that of another. */
typedef struct weir_backtest_difference {
    weir_backtest_model model, against;
    double value;
    weir_interval interval;
} weir_backtest_difference;
#define WEIR_BACKTEST_DIFFERENCES_MAX (WEIR_BACKTEST_MODELS * (WEIR_BACKTEST_MODELS - 1) / 2)
typedef struct weir_backtest_results {
    weir_backtest_figures *of_days; /* [day * WEIR_BACKTEST_MODELS + model]; owned */
    weir_backtest_figures all[WEIR_BACKTEST_MODELS];
    weir_backtest_difference differences[WEIR_BACKTEST_DIFFERENCES_MAX];
    uint32_t difference_count; /* 0: the targets are of one class */
} weir_backtest_results;
/* measure.c. *r is to be freed, after an error too.  WEIR_ENOMEM. */
weir_err weir_backtest_results_make(const weir_backtest *b, weir_backtest_results *r);
void weir_backtest_results_free(weir_backtest_results *r);

/* tables.c: predictions.csv, backtest.csv and backtest.json; and what is left for people. */
weir_err weir_backtest_write_predictions(const weir_backtest *b);
weir_err weir_backtest_write_days(const weir_backtest *b, const weir_backtest_results *r);
weir_err weir_backtest_write_json(const weir_backtest *b, const weir_backtest_results *r);
void weir_backtest_tell(const weir_backtest *b, const weir_backtest_results *r, weir_buf *text);

/* picture.c: backtest.svg: the precision of the alerts by day, a line a model. */
weir_err weir_backtest_write_picture(const weir_backtest *b, const weir_backtest_results *r);

#endif /* WEIR_TRAINER_BACKTEST_BACKTEST_PRIVATE_H */
