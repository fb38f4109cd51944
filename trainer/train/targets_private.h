/* SPDX-License-Identifier: Apache-2.0 */
/* targets_private.h - candidates for targets on their way, between the two ways to cut them into parts. */
#ifndef WEIR_TRAINER_TRAIN_TARGETS_PRIVATE_H
#define WEIR_TRAINER_TRAIN_TARGETS_PRIVATE_H

#include <weir/trainer/train/targets.h>

/* One target on its way: sorted before it is split into arrays. */
typedef struct weir_target_candidate {
    weir_target target;
    weir_vertex id; /* of its vertex: what all ranks call it */
    uint32_t class_of;
    uint32_t rank;          /* that has it */
    weir_targets_part part; /* WEIR_TARGETS_PARTS: in none, or cut by time later */
} weir_target_candidate;

typedef struct weir_target_collector {
    const weir_snapshot *snapshot;
    const weir_schema_task *task;
    const weir_schema_label *label;
    const weir_snapshot_labels *labels;
    weir_targets *out;
    weir_target_candidate *candidates;
    size_t count, capacity;
} weir_target_collector;

weir_err weir_target_candidate_add(weir_target_collector *c, const weir_target *target, uint32_t class_of);
/* The class of a label's value: of a yes-or-no question whether the value is among the positive ones. */
uint32_t weir_target_class(const weir_schema_task *task, uint32_t value);
/* Whether the label of a target of this time may still come (TRAIN-T2). */
bool weir_target_is_young(const weir_target_collector *c, int64_t time_us);

/* Whether it was ever put: what only edges name is no target, in the store neither. */
bool weir_target_has_name(const weir_snapshot_vertices *v, uint64_t vertex);

/* Calls take with each vertex that the label is about, and with its labels [begin, end), newest first. */
typedef weir_err (*weir_target_take)(weir_target_collector *c, uint64_t vertex, uint64_t begin, uint64_t end);
weir_err weir_targets_collect(weir_target_collector *c, weir_target_take take);
/* gather.c: the candidates of all ranks, on each of them, in the order of their vertices' ids (TRAIN-T5); of those of
 * other ranks only what all have to know. All ranks together.  WEIR_ELIMIT, WEIR_ENOMEM, WEIR_ECORRUPT. */
weir_err weir_targets_gather(weir_target_collector *c, weir_comm *comm);

/* still.c: every vertex whose class is known, as of the snapshot's own time, in the part that a mask or the draw says
 * (TRAIN-T3); those in none are left out.  WEIR_EDATA the snapshot is not an import, a mask is not there, two overlap,
 * or a class is too small. */
weir_err weir_targets_still(weir_target_collector *c, const weir_targets_opts *opts);

#endif /* WEIR_TRAINER_TRAIN_TARGETS_PRIVATE_H */
