/* SPDX-License-Identifier: Apache-2.0 */
/* targets_private.h - candidates for targets on their way, between the two ways to cut them into parts. */
#ifndef WEIR_TRAINER_TRAIN_TARGETS_PRIVATE_H
#define WEIR_TRAINER_TRAIN_TARGETS_PRIVATE_H

#include <weir/trainer/train/targets.h>

/* What ranks tell each other of a target: its place in the order, its class and its part. */
typedef struct weir_target_told {
    weir_vertex_pair id; /* of its vertex: what all ranks call it */
    int64_t before_us;
    uint32_t class_of;
    uint32_t part; /* weir_targets_part; WEIR_TARGETS_PARTS: not known yet */
} weir_target_told;

/* One that this rank has: sorted before it is split into arrays. */
typedef struct weir_target_candidate {
    weir_target_told told; /* first: what compares two of these compares two of those */
    uint64_t vertex;       /* of the snapshot */
    uint64_t event;        /* as in weir_target */
} weir_target_candidate;

typedef struct weir_target_collector {
    const weir_snapshot *snapshot;
    const weir_schema_task *task;
    const weir_schema_label *label;
    const weir_snapshot_labels *labels;
    const weir_targets_cut *cut;
    weir_comm *comm; /* NULL: the snapshot is whole */
    weir_targets *out;
    weir_target_candidate *candidates; /* of this rank */
    size_t count, capacity;
    /* Of all ranks, in the order in which they are told. The first two become the targets'. */
    uint8_t *classes_of;
    void *owners; /* NULL: the snapshot is whole */
    uint64_t taken;
    uint64_t *counts; /* of each rank: how many it tells */
} weir_target_collector;

/* value: of the label.  WEIR_ECORRUPT the label has no such value; WEIR_ENOMEM. */
weir_err weir_target_candidate_add(weir_target_collector *c, const weir_target *target, uint32_t value);
/* Whether the label of a target of this time may still come (TRAIN-T2). */
bool weir_target_is_young(const weir_target_collector *c, int64_t time_us);

/* Of UTC, from 1970 on. */
int32_t weir_target_day(int64_t time_us);

/* Whether it was ever put: what only edges name is no target, in the store neither. */
bool weir_target_has_name(const weir_snapshot_vertices *v, uint64_t vertex);

/* Calls take with each own vertex of the snapshot that is of the label's type, and with its labels [begin, end), newest
 * first. */
typedef weir_err (*weir_target_take)(weir_target_collector *c, uint64_t vertex, uint64_t begin, uint64_t end);
weir_err weir_targets_collect(weir_target_collector *c, weir_target_take take);

/* --- from this rank's candidates to what is known of all (gather.c) ----------------------------------------------- */

/* Of two weir_target_told, as qsort has it. */
typedef int (*weir_target_order)(const void *a, const void *b);

/* Lists of several ranks, each in the order, that come in pieces and leave as one list. */
typedef struct weir_target_merger weir_target_merger;

/* counts: how many each rank's list has; room: of how many of each there is memory for, above 0.  WEIR_ENOMEM. */
weir_err weir_target_merger_open(const uint64_t *counts, uint32_t ranks, size_t room, weir_target_order order,
                                 weir_target_merger **mergerp);
void weir_target_merger_close(weir_target_merger *merger); /* NULL is allowed */
/* How many of the rank's next it has room for; 0, too, when it has had all. */
size_t weir_target_merger_wants(const weir_target_merger *merger, uint32_t rank);
/* As many targets as it wants of the rank. */
void weir_target_merger_feed(weir_target_merger *merger, uint32_t rank, const char *told);
/* The first of those that are left, of equal ones that of the lowest rank; NULL: all have left, or none can before each
 * rank has told as many as are wanted of it. Valid until the next feed. */
const weir_target_told *weir_target_merger_next(weir_target_merger *merger, uint32_t *rankp);
bool weir_target_merger_done(const weir_target_merger *merger); /* all have left */

/* Counts the candidates of all ranks, and makes room for what is kept of each; adds up what was excluded. All ranks
 * together.  WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_targets_count(weir_target_collector *c);
/* Calls hear with each candidate of all ranks in the order, which this rank's have already: on all ranks the same
 * calls. A rank has memory for its own and for 32768 in all, or, of more than 512 ranks, 64 of each (TRAIN-T6). All
 * ranks together.  WEIR_ENOMEM; WEIR_ECORRUPT another rank tells what cannot be. */
typedef void (*weir_target_hear)(void *context, const weir_target_told *told, uint32_t rank);
weir_err weir_targets_gather(weir_target_collector *c, weir_target_order order, weir_target_hear hear, void *context);
/* targets.c. owners: the targets', or what becomes them. rank: fits in owner_bytes. */
void weir_targets_owner_put(const weir_targets *targets, void *owners, uint64_t target, uint32_t rank);
/* What is kept of one that was told, behind those before it. */
void weir_targets_put(weir_target_collector *c, const weir_target_told *told, uint32_t rank);

/* --- targets of a graph that stands still (still.c) --------------------------------------------------------------- */

/* Every vertex whose class is known, as of the snapshot's own time, in the part that a mask or the draw says
 * (TRAIN-T3); those in none are left out.  WEIR_EDATA the snapshot is not an import, a mask is not there, two overlap,
 * or a class is too small. */
weir_err weir_targets_cut_still(weir_target_collector *c, const weir_targets_cut *cut);

#endif /* WEIR_TRAINER_TRAIN_TARGETS_PRIVATE_H */
