/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what a training would take, before it is begun: memory of each rank, disk, bytes between ranks, steps, time.
 *
 *   counted    steps, targets, parameters, files           exact; files but for their heads and small ones beside them
 *   sampled    rows of other ranks, memory of a batch      from some batches of the first epoch and of validation
 *   measured   seconds of a step                           the same batches, each stage by itself
 *
 * A plan does all that comes before the first epoch, and then those batches, as a training would; what they teach is
 * thrown away, and no file is written.
 */
#ifndef WEIR_TRAINER_TRAIN_PLAN_H
#define WEIR_TRAINER_TRAIN_PLAN_H

#include <weir/store/base/err.h>
#include <weir/trainer/train/train.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TRAIN_PLAN_BATCHES   32u /* of each kind, spread over all that there are */
#define WEIR_TRAIN_PLAN_RANKS_MAX 4096u

/* What a rank needs memory for. */
typedef enum weir_train_memory {
    WEIR_MEMORY_PROGRAM,    /* with its libraries, as it began                                             */
    WEIR_MEMORY_FILES,      /* of the snapshot, which ranks of a machine share, or of the part: mapped     */
    WEIR_MEMORY_LOADED,     /* copies of them in large pages                                               */
    WEIR_MEMORY_TARGETS,    /* with their scores and their order                                           */
    WEIR_MEMORY_PARAMETERS, /* and the best, gradients, embeddings too                                     */
    WEIR_MEMORY_OPTIMIZER,  /* moments                                                                     */
    WEIR_MEMORY_BATCHES,    /* that are under way                                                          */
    WEIR_MEMORY_PASSES,     /* layers on the way forward and back                                          */
    WEIR_MEMORY_READERS,    /* what batches are sampled and read by                                        */
    WEIR_MEMORY_CACHE,      /* rows of other ranks                                                         */
    WEIR_MEMORIES
} weir_train_memory;

typedef struct weir_train_plan_rank {
    uint64_t memory[WEIR_MEMORIES];               /* bytes */
    uint64_t sorting;                             /* for a while, before there are batches: candidates for targets */
    uint64_t peak;                                /* the most at one time                                          */
    double rows, remote_rows, cached_rows, edges; /* a step of training                                      */
    /* Bytes that it sends for rows and asks, for embeddings and their gradients, and for edges where parts end; of an
     * epoch with its validation, and its embeddings for the checkpoint. */
    double sent_step, sent_epoch;
} weir_train_plan_rank;

/* Of one step. least: its longest stage alone, preparation or not, which hides all others; most: nothing is prepared
 * ahead. Each the mean of the batches' slowest ranks, without the first of several batches; spread: the standard
 * deviation of most. */
typedef struct weir_train_plan_seconds {
    double least, most, spread;
} weir_train_plan_seconds;

typedef struct weir_train_plan {
    uint32_t ranks;
    bool pretended; /* by one process: time between ranks is not in the seconds */
    uint32_t epochs;
    uint64_t targets[WEIR_TARGETS_PARTS];
    uint64_t first_steps, steps;      /* of training: of the first epoch, and of all epochs */
    uint64_t validation, test;        /* batches to judge each once */
    uint64_t parameters, embeddings;  /* numbers; embeddings are among them */
    uint64_t checkpoint_bytes;        /* twice while it is replaced */
    uint64_t model_bytes;             /* of its weights and shape, and of the ids of known vertices                  */
    double summed_floats;             /* gradients of a step, which are summed over the ranks                      */
    double told_bytes;                /* of a step: which rows of embeddings they are of, by all ranks to all      */
    uint32_t sampled, sampled_judged; /* batches of the plan */
    weir_train_plan_seconds step, judge;
    double set_up_seconds;
    weir_train_plan_rank *of; /* one a rank, owned by the plan */
} weir_train_plan;

/* All ranks together, with equal opts, as weir_train_run; folder, trace and resume do not count. pretend: 0, or so many
 * ranks instead of the one that there is, which has the whole snapshot; then there is no cache, and batches are not
 * local. Of WEIR_TRAIN_CACHED_AHEAD all is counted as without a cache, since the batches do not follow each other.
 * Errors of weir_train_run, but none of a checkpoint, a file or on_epoch; WEIR_EINVAL pretend does not fit.  [main] */
weir_err weir_train_plan_make(weir_comm *comm, const weir_train_opts *opts, uint32_t pretend, weir_train_plan **planp);
void weir_train_plan_free(weir_train_plan *plan); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_TRAIN_PLAN_H */
