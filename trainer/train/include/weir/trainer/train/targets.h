/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets.h - what a task asks about, from a snapshot: vertices with the time at which they are judged and the class
 * that became known later, in the order of their times; the first are learnt from, the last are only for judging.
 *
 *   warm-up ──────► train ──────────────────► validation ─────► test ─────► too young
 *   only a past     ◄─────────────── targets ────────────────────────────►   their labels may still come
 *
 * Cut by times, what was known at one moment is learnt from, as a training of that moment would have had it:
 *
 *   warm-up ──► train ──► validation ──► untold ──────► known_us ──► … ──► test_from_us ──► test ──► test_to_us
 *                                        their labels came later
 *
 * INVARIANTS
 *   TRAIN-T1  Cut by time: every target of a later part is later than every one of an earlier part.
 *   TRAIN-T2  A target's class depends on labels only. One that is judged as of its put is there only once its labels
 *             have had their time (the task's `maturity`); of a graph that stands still, also if it has one already.
 *   TRAIN-T3  Of a graph that stands still (an import without times): each target is in one part, and all are judged as
 *             of the snapshot's time, so that all edges are seen; a class is never an input.
 *   TRAIN-T4  No target is from before the history that the snapshot covers (weir_snapshot_from_us).
 *   TRAIN-T5  All ranks have the same targets in the same order, whether the snapshot is whole or in parts.
 *   TRAIN-T6  Of a target that another rank has, a rank keeps numbers of a few bytes: its class and who has it, and its
 *             day if it is only for judging.
 *   TRAIN-T7  Cut by times, training and validation have the targets, with the classes, that a snapshot as of
 *             `known_us` has: no label of that moment or later counts, nor a target whose label could still have come.
 *   TRAIN-T8  By draw, each target is in the test of one fold; a fold has as many as another, but for one, and where
 *             each class is drawn by itself so many of each, too.
 *
 * Of a task `at: put` a target is one life of a vertex: its time, its features and its labels are of that. What a later
 * message says of it (an update, a deletion, a second put) changes neither its time nor its class nor its features.
 * Of a task `at: label` each label of a vertex is a target, as of just before it, or as of the put that came with it.
 */
#ifndef WEIR_TRAINER_TRAIN_TARGETS_H
#define WEIR_TRAINER_TRAIN_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/sample/source.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/comm/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_targets_part {
    WEIR_TARGETS_TRAIN,
    WEIR_TARGETS_VALIDATION,
    WEIR_TARGETS_TEST,
    WEIR_TARGETS_PARTS
} weir_targets_part;

typedef enum weir_targets_split {
    WEIR_TARGETS_BY_TIME,
    WEIR_TARGETS_BY_MASKS, /* an import's masks say who is in which part                    */
    WEIR_TARGETS_BY_CLASS, /* so many of each class are drawn, and the rest is for the test */
    WEIR_TARGETS_BY_TIMES, /* what was known at a time is learnt from, a span behind it is the test */
    WEIR_TARGETS_BY_DRAW   /* shares of all, or of each class, are drawn                      */
} weir_targets_split;

/* How targets are cut into parts. A plain value; the names are borrowed. */
typedef struct weir_targets_cut {
    weir_targets_split split;
    double warm_up;                        /* by time: share of the range that is only past; 0 to 0.9 */
    double validation, test;               /* by time: shares of the targets behind it; by draw: of all */
    int64_t known_us;                      /* by times: warm_up and validation are shares of what was known before it */
    int64_t test_from_us, test_to_us;      /* by times: the first moment of the test, and the first behind it */
    const char *masks[WEIR_TARGETS_PARTS]; /* by masks: of the target's type                          */
    uint32_t each[2];                      /* by class: to learn from, for validation                 */
    uint64_t seed;                         /* by class, by draw: of the draw                          */
    bool stratified;                       /* by draw: of each class the same shares                  */
    /* By draw: the test is this one of so many, and validation a share of the others; 0: the test is a share. */
    uint32_t fold, folds;
} weir_targets_cut;

typedef struct weir_targets_opts {
    uint32_t task; /* of the schema */
    weir_targets_cut cut;
    weir_comm *comm; /* NULL: the snapshot is a whole one; else each rank has a part, and all of them call together */
} weir_targets_opts;

/* Plain values, in the order of parts and, within, of time and vertex; owned by the handle. */
typedef struct weir_targets {
    uint64_t count;                    /* of all ranks                                                        */
    uint64_t ends[WEIR_TARGETS_PARTS]; /* of each part, where it ends                                         */
    uint32_t classes;                  /* of a yes-or-no question 2, else one a value of the label            */
    const uint8_t *classes_of;         /* one a target                                                        */
    const void *owners;                /* one a target: the rank that has it; NULL: the snapshot is whole     */
    uint32_t owner_bytes;              /* of one of them: 1, of more than 256 ranks 2                         */
    const int32_t *days;               /* one a target behind the training part: days of UTC from 1970 on     */
    const uint64_t *class_counts;      /* [part * classes + class]                                            */
    int64_t from_us[WEIR_TARGETS_PARTS], to_us[WEIR_TARGETS_PARTS]; /* times of each part's first and last     */
    bool one_time;                                                  /* all are judged as of one time          */
    uint64_t digest; /* of ids, times and classes of all; not cut by time, of their parts, too */
    /* Those whose vertices are own ones of this rank's snapshot, in the same order. */
    uint32_t held;
    const uint32_t *numbers;    /* of each, which target it is, ascending; NULL: all are held              */
    const weir_target *targets; /* vertices are indices of this rank's snapshot                            */
    const uint64_t *ids;        /* the low half of each one's vertex's                                     */
    uint64_t young;             /* excluded, of all ranks: their labels may still come                     */
    uint64_t untold;            /* excluded by times: before known_us, but their labels were not known then */
    uint64_t old;               /* excluded: TRAIN-T4                                                      */
    uint64_t unlabelled;        /* excluded: no label in time, and the schema gives no `absent`            */
    uint64_t merged;            /* of the training part: those that were for validation                    */
    int64_t unmerged_us;        /* where there are: the time of the last of the others                     */
} weir_targets;

#define WEIR_TARGETS_ELSEWHERE UINT32_MAX

/* WEIR_EINVAL shares or times out of range; WEIR_ECONFIG the task cannot be trained; WEIR_EDATA too few targets, or one
 * class only, in the part that is named (a test by times may have none, or one class), or masks, classes or times that
 * do not fit the cut, and what to do; WEIR_ECORRUPT a list of the snapshot leads outside, a label has a value that is
 * none, or another rank tells what cannot be; WEIR_ENOMEM; WEIR_ELIMIT 2^32 - 1 targets or more, or 2^16 ranks with
 * parts.  The snapshot is only read.  [any] */
weir_err weir_targets_open(const weir_snapshot *snapshot, const weir_targets_opts *opts, weir_targets **targetsp);
void weir_targets_close(weir_targets *targets); /* NULL is allowed */
/* Those for validation are learnt from, too, and none are left for it, until they are parted again: then all is as it
 * was. */
void weir_targets_merge(weir_targets *targets);
void weir_targets_unmerge(weir_targets *targets);
uint64_t weir_targets_begin(const weir_targets *targets, weir_targets_part part);
/* Where among the held ones the target is; WEIR_TARGETS_ELSEWHERE: another rank has it. */
uint32_t weir_targets_place(const weir_targets *targets, uint64_t target);
/* Which target the place is of. */
uint64_t weir_targets_number(const weir_targets *targets, uint32_t place);
/* Which rank has a target of a snapshot in parts.  [any] */
uint32_t weir_targets_owner(const weir_targets *targets, uint64_t target);
/* Of memory. */
uint64_t weir_targets_bytes(const weir_targets *targets);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_TRAIN_TARGETS_H */
