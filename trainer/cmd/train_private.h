/* SPDX-License-Identifier: Apache-2.0 */
/* train_private.h - what the files of `weir train` share. */
#ifndef WEIR_TRAINER_CMD_TRAIN_PRIVATE_H
#define WEIR_TRAINER_CMD_TRAIN_PRIVATE_H

#include <weir/store/cli/cli.h>
#include <weir/store/schema/schema.h>
#include <weir/trainer/train/plan.h>
#include <weir/trainer/train/train.h>

/* What --fanouts, --strategy and --out-only say. `reach` points into it. */
typedef struct weir_cmd_reach {
    weir_train_reach reach;
    uint32_t fanouts[WEIR_SAMPLE_HOPS_MAX];
    weir_train_along alongs[2 * WEIR_SCHEMA_RELATIONS_MAX];
    uint32_t along_fanouts[2 * WEIR_SCHEMA_RELATIONS_MAX][WEIR_SAMPLE_HOPS_MAX];
} weir_cmd_reach;

extern const char *const weir_cmd_train_models[WEIR_TRAIN_MODELS]; /* "network", "trees", "blend" */

/* What --as-served has come to. */
typedef struct weir_cmd_served {
    int64_t known_us;                    /* up to when its labels were known              */
    weir_trained *trained;               /* NULL: there is none                            */
    char why_not[WEIR_ERR_SENTENCE_MAX]; /* "": it was not wanted, or there is one         */
} weir_cmd_served;

typedef struct weir_cmd_train {
    const weir_cli *cli;
    int64_t begun_us;
    const char *snapshot_folder, *parts_folder; /* one of them   */
    const char *models, *key, *predictions;     /* NULL, not wanted */
    bool baselines;
    bool as_served;
    weir_cmd_served served;
    bool plan;
    uint32_t pretend; /* with plan: so many ranks; 0: those that there are */
    weir_train_opts opts;
    weir_cmd_reach reach;
    uint32_t embedded[WEIR_SCHEMA_VERTICES_MAX]; /* opts.embedded points to it */
    char masks[WEIR_SNAPSHOT_MASKS_BYTES];       /* the names in opts.cut point into it */
    weir_comm *comm;
    weir_snapshot *whole; /* opts.snapshot is this one, or the part's */
    weir_part *part;
} weir_cmd_train;

/* reach begins with the defaults.  WEIR_EUSAGE. */
weir_err weir_cmd_reach_read(const weir_cli *cli, const weir_schema *schema, weir_cmd_reach *reach);
/* Leaves *valuep where the option is not given.  WEIR_EUSAGE. */
/* Options that only a network heeds; why: there is none.  WEIR_EUSAGE one is given. */
weir_err weir_cmd_train_refuse_network(const weir_cli *cli, const char *why);
weir_err weir_cmd_train_u32(const weir_cli *cli, const char *name, uint32_t least, uint32_t most, uint32_t *valuep);
/* "10,5": numbers from least to most, separated by commas; false: it is not such a list. */
bool weir_cmd_train_list(const char *text, uint32_t least, uint32_t most, uint32_t room, uint32_t *numbers,
                         uint32_t *countp);

/* learning.c: what learning.def has, for opts that begin with the defaults: numbers and switches; then, of an open
 * snapshot, whose vertices have embeddings and which edges are looked at; and the task.  WEIR_EUSAGE; of the task
 * WEIR_ECONFIG, too: the schema has none. */
weir_err weir_cmd_learning_numbers(const weir_cli *cli, weir_train_opts *opts);
weir_err weir_cmd_learning_places(const weir_cli *cli, weir_cmd_train *c);
weir_err weir_cmd_learning_task(const weir_cli *cli, weir_train_opts *opts);

/* All ranks together. On rank 0: the report to stdout and into the folder, the model into the register. */
weir_err weir_cmd_train_finish(const weir_cmd_train *c, const weir_trained *trained);

/* run.c, all of the folder, if there is one. What is left there by an earlier training goes, which this one would be
 * taken for; going on: nothing, since it is the same one.  Errors of a file. */
weir_err weir_cmd_train_begin_run(const weir_cmd_train *c, bool going_on);
/* report.json, before which an earlier run.json goes: there is never one training's report beside another's options.
 * WEIR_ENOMEM; errors of a file. */
weir_err weir_cmd_train_write_report(const weir_cmd_train *c, const weir_buf *report);
/* run.json. model: the id of what it added to the register; "", NULL: nothing.
 * WEIR_ENOMEM; errors of a file. */
weir_err weir_cmd_train_write_run(const weir_cmd_train *c, const char *model);

/* served.c: trains again, of what was known when the test of the training begins. served begins as 0. All ranks
 * together.  What weir_train_run says, but too few known targets are no error. */
weir_err weir_cmd_train_served(const weir_cmd_train *c, const weir_trained *trained, weir_cmd_served *served);

/* What is known of the targets behind the training part. */
typedef struct weir_cmd_predictions {
    weir_trained_view trained;
    const double *scores; /* of the model, as of weir_trained_view; it is calibrated by the next */
    weir_calibration calibration;
    const double *network;                     /* log odds of a blend's; else NULL */
    const double *trees[WEIR_TRAIN_BASELINES]; /* log odds, one a target; NULL: there are none             */
    const weir_schema_values *values;          /* of the label; NULL: a yes-or-no question                 */
} weir_cmd_predictions;

/* The table of --predictions, of a whole snapshot.  WEIR_ECORRUPT its keys; WEIR_ENOMEM; errors of a file. */
weir_err weir_cmd_train_predictions(const char *path, const weir_cmd_predictions *p, const weir_snapshot *snapshot);

/* Instead of a training: the figures of --judge's model on the test targets, to stdout.  WEIR_EPERM, WEIR_ECORRUPT, …
 * what is wrong with the model; what the targets say. */
weir_err weir_cmd_train_judge(const weir_cli *cli, weir_cmd_train *c);

/* A training of a task that recommends, with its report and its model; of --check the options alone.  WEIR_EUSAGE, and
 * what the training says. */
weir_err weir_cmd_train_recommend(const weir_cli *cli, const weir_cmd_train *c);
/* Of --judge, where its model recommends: what weir_cmd_train_judge prints of one that classifies. *itsp: it does. */
weir_err weir_cmd_train_recommend_judge(const weir_cli *cli, const weir_cmd_train *c, bool *itsp);

/* Of --check: which task it is and what that does, to stdout. */
weir_err weir_cmd_train_say_checked(const weir_cmd_train *c);

/* Instead of a training: what it would take, to stdout. */
weir_err weir_cmd_train_plan(const weir_cli *cli, const weir_cmd_train *c);

#endif /* WEIR_TRAINER_CMD_TRAIN_PRIVATE_H */
