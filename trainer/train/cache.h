/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - rows of other ranks' vertices that a rank keeps from the beginning, and does not ask for. Private
 * to this folder. What changes while batches come is in lookahead.h.
 *
 * Where targets have several times, what is kept of a row is what holds while nothing new is known of its vertex, with
 * the times between which that is so: it is a row's fixed part (form.h) as of those times alone. Ages and aggregates
 * are asked for as of each target's.
 */
#ifndef WEIR_TRAINER_TRAIN_CACHE_H
#define WEIR_TRAINER_TRAIN_CACHE_H

#include <weir/inference/nn/nn.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/train/train.h>

#include "asks.h"

#define WEIR_TRAIN_CACHE_MISS UINT32_MAX

typedef struct weir_train_cache weir_train_cache;

/* A plain value; all is borrowed. */
typedef struct weir_train_cache_opts {
    const weir_nn_shape *shape;
    weir_train_owners owners;
    const weir_targets *targets;
    uint32_t batch;     /* targets of a global batch                                              */
    uint32_t negatives; /* of class 0 for each other target in an epoch; 0: all, and no class matters */
    weir_train_cached policy;
    double share; /* rows that are kept, by the vertices that a rank owns on average */
    weir_train_wire wire;
    /* The list of an epoch, as in weir_batches_opts; called by weir_train_simulate alone. */
    uint64_t (*draw)(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp);
    const void *context;
} weir_train_cache_opts;

/* How many rows the share comes to. */
uint64_t weir_train_cache_rows(const weir_train_cache_opts *opts);
/* Chooses the rows and asks their owners for them: all ranks together. *cachep NULL: nothing is to be kept from the
 * beginning.
 * WEIR_EINVAL a lookahead where targets have several times; WEIR_ENOMEM; errors of the exchange and of the source.
 * [main] */
weir_err weir_train_cache_open(const weir_train_cache_opts *opts, weir_comm *comm, weir_train_cache **cachep);
void weir_train_cache_close(weir_train_cache *cache); /* NULL is allowed, here, in find, moves, ahead and bytes */
/* The place of what holds of the row of this vertex of the snapshot as of this time, or WEIR_TRAIN_CACHE_MISS. */
uint32_t weir_train_cache_find(const weir_train_cache *cache, uint32_t type, uint64_t vertex, int64_t before_us);
/* Whether rows of the type have a part that moves with time, which is not kept. */
bool weir_train_cache_moves(const weir_train_cache *cache, uint32_t type);
/* Fetches from memory what a find, or a copy, a few vertices later will read: they lie anywhere. */
void weir_train_cache_ahead(const weir_train_cache *cache, uint32_t type, uint64_t vertex);
void weir_train_cache_ahead_row(const weir_train_cache *cache, uint32_t type, uint32_t place);
/* Rows and places. */
uint64_t weir_train_cache_bytes(const weir_train_cache *cache);
/* Of the row: its columns that move are left as they are. */
void weir_train_cache_copy(const weir_train_cache *cache, uint32_t type, uint32_t place, weir_real *numbers,
                           uint32_t *slots);

/* What a policy thinks of the vertices of the snapshot that the rank has: weights[type][vertex]; the higher, the sooner
 * it is kept; 0: it is not. Chances, walks and draws are those of the rank's own targets, also where batches are dealt
 * (deal.h). Of VIP: with which chance a batch reads the vertex. The caller frees them, after an error too.
 * WEIR_ENOMEM; where batches are drawn, what the sampler reports. */
weir_err weir_train_weigh(const weir_train_cache_opts *opts, double **weights);
/* A vertex whose row may be kept. A plain value. */
typedef struct weir_train_candidate {
    double weight;
    uint64_t id, vertex;
    uint32_t type;
} weir_train_candidate;

/* For qsort: by weight, the highest first; equal ones by id, so that it is the same every time. */
int weir_train_by_weight(const void *a, const void *b);
/* Adds to the weight of each vertex how many batches of the first three epochs read it.  Errors as of
 * weir_train_weigh. */
weir_err weir_train_simulate(const weir_train_cache_opts *opts, double **weights);

#endif /* WEIR_TRAINER_TRAIN_CACHE_H */
