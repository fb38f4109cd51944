/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - one batch on its way through the stages: sample, ask, answer, encode and bring. Private to this folder. */
#ifndef WEIR_TRAINER_TRAIN_BATCH_H
#define WEIR_TRAINER_TRAIN_BATCH_H

#include "batches.h"

typedef struct weir_train_sampler weir_train_sampler; /* what the sample stage works with */
typedef struct weir_train_fetcher weir_train_fetcher; /* what the stages answer and encode work with */

/* opts are borrowed. channels: what the stages of one maker talk on; NULL where there is one rank. */
weir_err weir_train_sampler_open(const weir_batches_opts *opts, weir_comm *const *channels,
                                 weir_train_sampler **samplerp);
void weir_train_sampler_close(weir_train_sampler *sampler); /* NULL is allowed, here and below */
weir_err weir_train_fetcher_open(const weir_batches_opts *opts, weir_train_fetcher **fetcherp);
void weir_train_fetcher_close(weir_train_fetcher *fetcher);
/* What it has grown by since it was opened. */
uint64_t weir_train_fetcher_bytes(const weir_train_fetcher *fetcher);

/* Which targets a batch is of. A plain value. */
typedef struct weir_train_slice {
    uint32_t epoch;
    uint64_t number;      /* of its epoch's batches, from 0                     */
    uint64_t batches;     /* that its epoch has                                 */
    uint64_t nth;         /* of the stream's, from 0                            */
    uint64_t begin, end;  /* of the epoch's list: the whole global batch        */
    const uint32_t *list; /* from there: indices of targets; of the stream      */
    uint64_t seed;        /* of what is drawn for the epoch                     */
    bool last;            /* of its epoch                                       */
} weir_train_slice;

/* Memory for one batch after the other. */
weir_err weir_train_batch_open(const weir_batches_opts *opts, const weir_train_sampler *sampler,
                               weir_comm *const *channels, weir_train_batch **batchp);
void weir_train_batch_close(weir_train_batch *batch);
/* Tells the lookahead what the stream's nth batch will read, which is drawn in this one's memory; slice NULL: there is
 * no such batch. This one's own reads come back with the last of its horizon. All ranks together, as sampling.
 * [worker] */
weir_err weir_train_batch_foretell(weir_train_batch *batch, weir_train_sampler *sampler, uint64_t nth,
                                   const weir_train_slice *slice);
/* Block, keys, and whose the rows are; where the part ends, all ranks together.  [worker] */
weir_err weir_train_batch_sample(weir_train_batch *batch, weir_train_sampler *sampler, const weir_train_slice *slice);
/* Asks the owners of remote rows, and hears what others ask: all ranks together.  [worker] */
weir_err weir_train_batch_ask(weir_train_batch *batch);
/* Answers what others asked, and takes their answers: all ranks together.  [worker] */
weir_err weir_train_batch_answer(weir_train_batch *batch, weir_train_fetcher *fetcher);
/* What the batch asks this rank for, and what the answers would take, in bytes. Of a whole snapshot: so any process may
 * count what any rank would send.  [worker] */
weir_err weir_train_batch_expect(const weir_train_batch *batch, weir_train_fetcher *fetcher, uint32_t rank,
                                 uint64_t *askedp, uint64_t *answeredp);
/* Everything that is not there yet; where embeddings are shared, all ranks together tell which they read.  [worker] */
weir_err weir_train_batch_encode(weir_train_batch *batch, weir_train_fetcher *fetcher);

/* What a pass reads of it to opts->kernels.  [worker] */
weir_err weir_train_batch_bring(weir_train_batch *batch);

/* Which entries of a row's matrices a batch does not show. A plain value. */
typedef struct weir_train_entries {
    double rate;
    uint64_t seed, batch;
    uint64_t vertex;
    int64_t before_us;
} weir_train_entries;

/* numbers: the row's, of all its columns. What is kept grows by as much as is hidden. */
void weir_train_entries_hide(const weir_nn_inputs *inputs, const weir_train_entries *entries, weir_real *numbers);

#endif /* WEIR_TRAINER_TRAIN_BATCH_H */
