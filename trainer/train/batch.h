/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - one batch on its way through the stages: sampled, then fetched and encoded. Private to this folder. */
#ifndef WEIR_TRAINER_TRAIN_BATCH_H
#define WEIR_TRAINER_TRAIN_BATCH_H

#include "batches.h"

typedef struct weir_train_sampler weir_train_sampler; /* of the sample stage */
typedef struct weir_train_fetcher weir_train_fetcher; /* of the fetch stage  */
typedef struct weir_making weir_making;

/* opts are borrowed. */
weir_err weir_train_sampler_open(const weir_batches_opts *opts, weir_train_sampler **samplerp);
void weir_train_sampler_close(weir_train_sampler *sampler); /* NULL is allowed, here and below */
weir_err weir_train_fetcher_open(const weir_batches_opts *opts, weir_train_fetcher **fetcherp);
void weir_train_fetcher_close(weir_train_fetcher *fetcher);

weir_err weir_making_open(const weir_batches_opts *opts, const weir_train_sampler *sampler, weir_making **makingp);
void weir_making_close(weir_making *making);
/* Block, keys, and whose the rows are. */
weir_err weir_making_sample(weir_making *making, weir_train_sampler *sampler, uint64_t number);
/* Asks the owners of remote rows, answers what others ask: all ranks together. */
weir_err weir_making_exchange(weir_making *making, weir_train_fetcher *fetcher);
/* Everything that is not there yet. */
weir_err weir_making_encode(weir_making *making, weir_train_fetcher *fetcher);
const weir_train_batch *weir_making_batch(const weir_making *making);
weir_making *weir_making_of(const weir_train_batch *batch);

/* entries.c: which entries of a row's matrices a batch does not show. A plain value. */
typedef struct weir_entries {
    double rate;
    uint64_t seed, batch;
    uint64_t vertex;
    int64_t before_us;
} weir_entries;

/* numbers: the row's, of all its columns. What is kept grows by as much as is hidden. */
void weir_entries_hide(const weir_nn_inputs *inputs, const weir_entries *entries, weir_real *numbers);

#endif /* WEIR_TRAINER_TRAIN_BATCH_H */
