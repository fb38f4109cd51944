/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.h - batches of one epoch after the other, made ahead of the caller that computes on them.
 *
 *   lists of epochs, cut into batches 0, 1, 2, …
 *      │
 *      ├─ 0, 6, … ──► maker 0: sample ─► ask ─► answer ─► encode ─┐
 *      ├─ 1, 7, … ──► maker 1: sample ─► ask ─► answer ─► encode ─┼─► next, in the order of the lists ─► done
 *      ⋮                                                          │                                       │
 *      └─ 5, 11, … ─► maker 5: sample ─► ask ─► answer ─► encode ─┘                                       │
 *                       ▲ one thread, its channels, memory of one batch                                   │
 *                       └──────────────── which is free for the maker's next batch ◄──────────────────────┘
 *
 * A global batch is `batch` targets of a list, the same on every rank; a rank takes those that it owns, or, of a list
 * that was dealt, those whose places are its turns (deal.h). What a batch needs of other ranks it asks in rounds that
 * follow one another. As many batches as there are makers have one under way at a time, so that a batch costs its
 * rounds divided by the makers. A maker's batches are the same on every rank, and so are the exchanges on its channels.
 * The end of an epoch is none for the makers: they go on with the next list.
 * Features are read by their owner alone. The edges that a block needs are in the rank's part, as far as that reaches;
 * further on the stage sample asks other ranks (remote.h). Without parts, every rank has those of the whole snapshot.
 *
 * INVARIANTS
 *   TRAIN-E1  Batches come in the order of the lists, each once, on every rank as many.
 *   TRAIN-E2  What a target gets depends neither on the number of ranks, nor on who owns what, nor on the other targets
 *             of its batch (what is hidden depends on the batch's number), but for the rounding of another `wire` than
 *             floats.
 *   TRAIN-E3  At most `ahead` batches are in memory.
 *   TRAIN-E4  A row of another rank is asked for once a batch at most, and what holds of it as of several times is sent
 *             once (answers.h). A rank's own rows are never sent. How far makers are apart changes nothing, and how
 *             many there are no batch: only, where rows stay for coming batches (lookahead.h), how many of those are
 *             looked at.
 *   TRAIN-E5  Of a stream that is closed before its end, every maker still makes the batch that it has memory for, so
 *             that ranks that close it after as many batches have taken part in the same exchanges.
 */
#ifndef WEIR_TRAINER_TRAIN_BATCHES_H
#define WEIR_TRAINER_TRAIN_BATCHES_H

#include <weir/inference/nn/nn.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/train/targets.h>
#include <weir/trainer/train/train.h>

#include "asks.h"
#include "resident.h"
#include "shares.h"
#include "trace.h"

#define WEIR_BATCHES_AHEAD 6u /* where opts name no number */

/* Of the stages that talk. */
enum { WEIR_TRAIN_CHANNEL_ASK, WEIR_TRAIN_CHANNEL_ANSWER, WEIR_TRAIN_CHANNEL_SAMPLE, WEIR_TRAIN_CHANNELS };

typedef struct weir_batches weir_batches;

typedef struct weir_batches_opts {
    const weir_nn_shape *shape;
    const weir_targets *targets;
    /* Either one epoch: indices of targets, in their order, borrowed; NULL: count targets from `first` on. */
    const uint32_t *list;
    uint64_t first, count;
    uint64_t seed; /* of the sampler */
    /* Or several: writes the list of an epoch, which has room for every target of the training part, and returns how
     * many, above 0. Called once an epoch, in their order, by a maker.  [worker] */
    uint64_t (*draw)(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp);
    const void *context;
    uint32_t epoch, epochs;   /* the first, and how many; without draw: the number of the one */
    bool dealt;               /* the lists are in the order of weir_train_deal */
    bool as_served;           /* what is drawn is drawn as serving does: by each target's name */
    const char *judged;       /* in errors, in place of the epoch: what is judged; NULL: none */
    uint32_t batch;           /* targets of a global batch */
    uint32_t ahead;           /* batches in memory: makers; at most WEIR_TRAIN_AHEAD_MAX; 0: WEIR_BATCHES_AHEAD */
    bool drops;               /* a pass drops something by the nodes' keys */
    double hidden;            /* share of the entries of matrices that a batch does not show; 0: none */
    double thinned;           /* share of the edges that a batch does not show; 0: none */
    double unknown;           /* share of known vertices that a batch shows as unknown; 0: none */
    weir_train_owners owners; /* and the snapshot                            */
    weir_train_kept kept;     /* of rows of other ranks; a lookahead is of one stream */
    const weir_train_residents *residents; /* NULL: batches bring all rows */
    const weir_kernels *kernels; /* with a memory of their own, to which batches are brought; NULL: a pass does that */
    weir_train_wire wire;        /* how rows go between ranks */
    const weir_train_shares *shares; /* of large embeddings; NULL: this rank has them all */
    const weir_nn *tells; /* ranks tell each other which rows of its other embeddings a batch reads; NULL: not */
    /* A row a maker; NULL where there is one rank. */
    weir_comm *const (*channels)[WEIR_TRAIN_CHANNELS];
    weir_train_trace *trace; /* NULL: none */
    uint32_t track;          /* of the trace: of maker 0; the others follow it */
} weir_batches_opts;

/* Microseconds. A plain value. */
typedef struct weir_batches_times {
    int64_t sample, exchange, encode; /* exchange: ask and answer, which wait for other ranks */
    int64_t bring;                    /* to a device with a memory of its own; else 0 */
    int64_t wait;                     /* of the caller that computes: preparation that was not hidden */
} weir_batches_times;

/* Owned by the stream; read-only to the caller that takes it. */
typedef struct weir_train_batch {
    uint32_t epoch;
    uint64_t number;               /* of its epoch's batches, from 0                      */
    uint64_t batches;              /* that its epoch has                                  */
    uint64_t begin, end;           /* of the epoch's list: the whole global batch         */
    const uint32_t *list;          /* from there: indices of targets, of all ranks        */
    uint64_t seed;                 /* of what was drawn for the epoch                     */
    const uint32_t *own;           /* indices of the targets that this rank computes;     */
                                   /* those that share stand by time, others as in the list */
    uint32_t own_count;            /* may be 0: then there is no block                    */
    uint32_t handed;               /* of them, those that another rank has                */
    weir_nn_batch nn;              /* what the network takes, but for what is brought     */
    const weir_train_wants *wants; /* of embeddings: where they are shared              */
    const weir_buf *heard; /* of others: rows that ranks read, as weir_nn_rows_write has them, one rank's behind */
    const uint64_t *heard_lengths; /* the other's; of one rank, or none told: NULL      */
    const uint64_t *keys;          /* of each node but the last hop's: for dropout        */
    uint64_t edges;                /* sampled                                             */
    uint64_t rows;                 /* input rows: own, and these two                      */
    uint64_t remote;               /* of other ranks, that were asked for                 */
    uint64_t cached;               /* of other ranks, of which all was kept here           */
    weir_batches_times times;      /* what it took, whatever epoch went on meanwhile      */
} weir_train_batch;

/* Starts the makers.  What opts points to is borrowed.  WEIR_ENOMEM, WEIR_EUNAVAILABLE; WEIR_ELIMIT blocks would be too
 * large: lower batch or fan-outs; WEIR_EVERSION the snapshot lacks a matrix that the shape reads.  [main] */
weir_err weir_batches_open(const weir_batches_opts *opts, weir_batches **streamp);
/* "epoch 3: doing batch 7 of 90: err", or what is judged in place of the epoch: of a training that takes days, its
 * reader wants to know where it was. WEIR_OK stays so. */
weir_err weir_batches_where(const weir_batches *stream, const char *doing, const weir_train_batch *batch, weir_err err);
/* *batchp is NULL once at the end of each epoch, where the next call goes on with the next one, and after the last; and
 * after an error, which says what a maker has failed with, and where. Where there are more ranks, that error has ended
 * them all. Blocks.  [main] */
weir_err weir_batches_next(weir_batches *stream, const weir_train_batch **batchp);
/* Its memory is used for another one. In the order in which they were taken.  [main] */
void weir_batches_done(weir_batches *stream, const weir_train_batch *batch);
/* How many are ready, and not taken.  [main] */
uint32_t weir_batches_ready(const weir_batches *stream);
/* May come before the end, after as many batches on every rank (TRAIN-E5).  NULL is allowed.  [main] */
void weir_batches_close(weir_batches *stream);

#endif /* WEIR_TRAINER_TRAIN_BATCHES_H */
