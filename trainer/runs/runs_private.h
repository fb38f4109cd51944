/* SPDX-License-Identifier: Apache-2.0 */
/* runs_private.h - what the files of `weir runs` share. */
#ifndef WEIR_TRAINER_RUNS_RUNS_PRIVATE_H
#define WEIR_TRAINER_RUNS_RUNS_PRIVATE_H

#include <weir/trainer/client/client.h>
#include <weir/trainer/runs/runs.h>

/* What is shown: some runs of a list, in an order of their own. */
typedef struct weir_runs_shown {
    const weir_run **runs;
    size_t count;
    const char *const *differing; /* names of options, sorted */
    size_t differing_count;
} weir_runs_shown;

/* "0.1234", or "-". */
void weir_runs_put_number(weir_buf *out, double value);

/* differ.c: the options that are not the same in all of them; all is the arena's.  WEIR_ENOMEM, WEIR_ELIMIT. */
weir_err weir_runs_find_differing(weir_arena *arena, weir_runs_shown *shown);

/* tell.c: for people, and for machines. */
void weir_runs_tell(const weir_runs_shown *shown, weir_buf *out);
void weir_runs_tell_both(const weir_runs_shown *shown, weir_buf *out); /* of two: side by side */
void weir_runs_tell_json(const weir_runs_shown *shown, const weir_runs *list, weir_buf *out);

/* mlflow.c */
typedef struct weir_mlflow_opts {
    const char *url, *key_file, *experiment;
} weir_mlflow_opts;
/* Sends each run that the server does not have yet, with a line on stdout.  WEIR_EUNAVAILABLE it cannot be asked, or
 * what it says; WEIR_EUSAGE the address; WEIR_EDATA its answer; WEIR_ENOMEM; errors of stdout. */
weir_err weir_mlflow_send(const weir_mlflow_opts *opts, const weir_runs_shown *shown);
/* The body of the batch that begins at metric `from`, which is moved behind it; params: how many of them are sent. For
 * tests, too.  false: nothing is left. */
bool weir_mlflow_batch(const weir_run *run, const char *run_id, size_t *from, size_t *params, weir_buf *body);

#endif /* WEIR_TRAINER_RUNS_RUNS_PRIVATE_H */
