/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nightly_private.h - what the files of `weir nightly` share.
 *
 *   NIGHTS/lock              held while a night runs, by its steps too
 *   NIGHTS/NAME/night.json   how far it is; replaced as one file when a step has ended
 *   NIGHTS/NAME/NN-STEP.log  what the step has printed
 *   NIGHTS/NAME/snapshot, parts, train
 *
 * INVARIANTS
 *   NIGHTLY-G1  A step that night.json counts as done is not done again; one that it does not may have been half done,
 *               and doing it again is safe.
 *   NIGHTLY-G2  Nothing but the last step changes what serves, and only to a model that was judged in this night.
 *   NIGHTLY-G3  Of two models that are equally good, the new one is promoted in at most 5 of 100 nights.
 */
#ifndef WEIR_TRAINER_NIGHTLY_PRIVATE_H
#define WEIR_TRAINER_NIGHTLY_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/inference/model/model.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>
#include <weir/store/cli/cli.h>
#include <weir/trainer/child/child.h>

#define WEIR_NIGHT_PATH_MAX     4096u
#define WEIR_NIGHT_NAME_MAX     64u
#define WEIR_NIGHT_RANKS_MAX    1024u
#define WEIR_NIGHT_KEEP_MAX     10000u
#define WEIR_NIGHT_SENTENCE_MAX 1024u
#define WEIR_NIGHT_PREFIX       "night-" /* how the names of our own checkpoints begin */

/* X(step, its name) in the order in which they are done. */
#define WEIR_NIGHT_STEPS(X)           \
    X(CHECKPOINT, "checkpoint")       \
    X(SNAPSHOT, "snapshot")           \
    X(PARTITION, "partition")         \
    X(TRAIN, "train")                 \
    X(JUDGE, "judge")                 \
    X(JUDGE_SERVING, "judge-serving") \
    X(DECIDE, "decide")

typedef enum weir_night_step {
#define WEIR_NIGHT_ENUM(step, name) WEIR_NIGHT_##step,
    WEIR_NIGHT_STEPS(WEIR_NIGHT_ENUM)
#undef WEIR_NIGHT_ENUM
        WEIR_NIGHT_STEP_COUNT
} weir_night_step;

/* What a judgement says. */
typedef struct weir_night_figure {
    char measure[32]; /* "average precision" */
    double value;
    uint64_t targets, positives;
    char example_type[128], example_key[512]; /* a positive with a high score; empty: none */
} weir_night_figure;

/* How far the new model is above the one that serves, 95 times of 100 that such targets are drawn. */
typedef struct weir_night_difference {
    bool known; /* false: they were not compared */
    double low, high;
} weir_night_difference;

/* night.json. */
typedef struct weir_night_state {
    uint32_t done; /* steps */
    char checkpoint[WEIR_NIGHT_PATH_MAX];
    char begun[WEIR_TIME_TEXT_MAX], ended[WEIR_TIME_TEXT_MAX];
    char candidate[WEIR_MODEL_ID_MAX], serving[WEIR_MODEL_ID_MAX];
    weir_night_figure candidate_figure, serving_figure;
    weir_night_difference difference;
    char outcome[16]; /* "": not ended; promoted, kept, failed */
    char sentence[WEIR_NIGHT_SENTENCE_MAX];
} weir_night_state;

typedef struct weir_night {
    /* what was asked */
    const weir_cli *cli;
    const char *server, *server_key_file;
    char store[WEIR_NIGHT_PATH_MAX], checkpoints[WEIR_NIGHT_PATH_MAX], models[WEIR_NIGHT_PATH_MAX];
    char nights[WEIR_NIGHT_PATH_MAX], public_keys[WEIR_NIGHT_PATH_MAX], key[WEIR_NIGHT_PATH_MAX];
    uint64_t ranks, parts, depth, keep;
    double tolerance;
    bool force, dry_run, accept_unsigned;
    /* this night */
    char name[WEIR_NIGHT_NAME_MAX], folder[WEIR_NIGHT_PATH_MAX];
    char snapshot_folder[WEIR_NIGHT_PATH_MAX], parts_folder[WEIR_NIGHT_PATH_MAX], train_folder[WEIR_NIGHT_PATH_MAX];
    weir_night_state state;
    int lock; /* a descriptor; the steps inherit it */
} weir_night;

const char *weir_night_step_name(weir_night_step step);
weir_err weir_night_path(char path[WEIR_NIGHT_PATH_MAX], const char *folder, const char *name);

/* --- night.c: the folder ----------------------------------------------------------------------------------------- */

/* Takes the lock and finds or makes the folder.  name NULL: a new one by the time, or with resume the newest that has
 * not ended, if no later one has; a folder without a night.json counts as one if its name is a time.  WEIR_EUSAGE the
 * name; WEIR_EBUSY another night runs; WEIR_EEXIST the named one was promoted or kept (one that failed continues);
 * WEIR_ECORRUPT its night.json. */
weir_err weir_night_open(weir_night *night, const char *name, bool resume);
/* Where a night of this name has its files. */
weir_err weir_night_place(weir_night *night);
weir_err weir_night_save(const weir_night *night);
/* Removes the nights beyond the newest --keep, and all checkpoints of nights but the newest. */
weir_err weir_night_prune(const weir_night *night);
void weir_night_close(weir_night *night);
/* The figure that an object holds, where it has a `value`. */
weir_err weir_night_figure_read(const weir_json_node *object, weir_night_figure *figure);
/* The member `difference`, if there is one. */
weir_err weir_night_difference_read(const weir_json_node *object, weir_night_difference *differencep);
/* The member `example`, if there is one. */
void weir_night_example_read(const weir_json_node *object, weir_night_figure *figure);

/* --- ask.c ------------------------------------------------------------------------------------------------------- */

/* Has the server of --server write a checkpoint of this name; path is where it lies.  Blocks, for 10 minutes at most.
 * WEIR_EUSAGE the address; WEIR_EUNAVAILABLE the server cannot be asked, or says why it wrote none; WEIR_EDATA its
 * answer; what --api-key-file's file reports; WEIR_ENOMEM. */
weir_err weir_night_ask_checkpoint(const weir_night *night, const char *name, char path[WEIR_NIGHT_PATH_MAX]);

/* --- compare.c --------------------------------------------------------------------------------------------------- */

/* The newest model that was trained on this night's snapshot; id empty: none. */
weir_err weir_night_find_candidate(const weir_night *night, char id[WEIR_MODEL_ID_MAX]);
/* What serves now; id empty: nothing. */
weir_err weir_night_find_serving(const weir_night *night, char id[WEIR_MODEL_ID_MAX]);
/* What `weir train --judge` has printed; name: of the step. other and differencep: of `--against`, or NULL.  WEIR_EDATA
 * one of them is not in it. */
weir_err weir_night_figure_parse(const char *name, const char *text, weir_night_figure *figurep,
                                 weir_night_figure *otherp, weir_night_difference *differencep);
/* From the figures in the state: whether to promote, and the sentence. */
bool weir_night_decide(const weir_night *night, char *sentence, size_t size);
weir_err weir_night_promote(const weir_night *night, const char *reason);

/* --- steps.c ----------------------------------------------------------------------------------------------------- */

/* All that is left of the night, each step with its line on stdout. */
weir_err weir_night_go(weir_night *night);

#endif /* WEIR_TRAINER_NIGHTLY_PRIVATE_H */
