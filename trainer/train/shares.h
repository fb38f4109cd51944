/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - large embeddings where there are several ranks: each row is with one rank (TRAIN-R4). That of a known
 * vertex is with the vertex's owner; those of a category's buckets are dealt out. Private to this folder.
 *
 *   maker:  encoded batch ─► which rows it reads ─► told to their owners ─┐       ahead, as all that is asked
 *   main:   what others read, brought up to this step ◄───────────────────┘
 *              └─► exchange ─► way forward and back ─► exchange ─► gradients of all ranks added, in their order ─► step
 *
 * Rows change in every step: they are exchanged when all steps before have been taken, and none is kept. Which rows
 * these will be is known before.
 */
#ifndef WEIR_TRAINER_TRAIN_SHARES_H
#define WEIR_TRAINER_TRAIN_SHARES_H

#include <weir/inference/kernel/room.h>
#include <weir/inference/nn/nn.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/nn/nn.h>

#include "asks.h"

/* Slots from which on a category is shared out. Fewer are with every rank, and ranks sum the rows that a step reads: at
 * --hidden 64 that is less than 168 MB with gradients and moments, and what goes to owners and back is waited for. An
 * import gives each of its categories half as many, most of which stay empty. */
#define WEIR_TRAIN_SHARED_SLOTS_MIN 131072u

/* An embedding that is shared out: of known vertices, or of a category with many slots. */
typedef struct weir_train_shares_table {
    uint32_t type, category; /* as in weir_nn_held                                                        */
    uint32_t slots;          /* rows of all ranks                                                         */
    uint16_t *owner_of;      /* of each slot                                                              */
    uint32_t *own;           /* slots of this rank's, ascending: the place of one is its row of the share */
    uint32_t own_count;
} weir_train_shares_table;

typedef struct weir_train_shares {
    const weir_nn_shape *shape;
    uint32_t rank, ranks;
    weir_train_shares_table *tables; /* by type, then by category */
    uint32_t table_count;
    /* [main], of what is exchanged. In the kernels' memory: rows that a batch reads and their gradients, rows that
     * others get, the list of a batch. */
    weir_kernel_room brought, gradients, packed, rows;
    weir_buf sent; /* a copy for MPI, where that cannot read the kernels' memory */
    weir_buf received;
    uint64_t *served, *wanted, *received_bytes; /* one a rank: of rows that it has from this one, and this from it */
} weir_train_shares;

/* Whose each row is: of a part all ranks together, on comm, which may be NULL where there is none. A vertex that two
 * ranks have by the low half of its id is the first one's. *sharesp NULL: the network has nothing to share out.
 * WEIR_ENOMEM; WEIR_ELIMIT too many vertices to tell, or ranks; WEIR_ECORRUPT another rank has other vertices.
 * [main] */
weir_err weir_train_shares_open(const weir_train_owners *owners, const weir_nn_shape *shape, weir_comm *comm,
                                weir_train_shares **sharesp);
void weir_train_shares_close(weir_train_shares *shares); /* NULL is allowed */
/* Rows of the table that a rank has. */
uint32_t weir_train_shares_count(const weir_train_shares_table *table, uint32_t rank);
/* The first row of this rank's whose slot is `slot` or a later one. */
uint32_t weir_train_shares_row(const weir_train_shares_table *table, uint32_t slot);
/* The network with this rank's rows; it borrows shares.  WEIR_ENOMEM. */
weir_err weir_train_shares_network(const weir_train_shares *shares, const weir_kernels *kernels, weir_nn **nnp);

/* --- which rows a batch reads ------------------------------------------------------------------------------------- */

/* Rows that this rank has of one table, which a batch of a rank reads. A plain value. */
typedef struct weir_train_served {
    uint32_t rank, table;
    uint32_t begin, end; /* of the list of rows */
} weir_train_served;

/* Of one batch of each rank. Memory grows to the largest and stays. */
typedef struct weir_train_wants {
    weir_buf keys;   /* uint64_t, of each row that this rank reads: the place of one is its row of what is brought */
    uint32_t remote; /* the first of them are other ranks', in the order of these                                  */
    uint64_t *bytes; /* of them, to each rank                                                                      */
    weir_buf heard;  /* keys of the others */
    uint64_t *heard_bytes;
    weir_buf rows; /* uint32_t: rows of this rank's share, that any rank reads */
    weir_buf runs; /* weir_train_served, of these: by rank, then by table         */
} weir_train_wants;

weir_err weir_train_wants_open(uint32_t ranks, weir_train_wants *wants);
void weir_train_wants_close(weir_train_wants *wants);
/* Lists what this rank's batch reads; view NULL: nothing. slots: one a type, as weir_nn_batch has them.
 * WEIR_ECORRUPT a slot that there is not; WEIR_ENOMEM.  [worker] */
weir_err weir_train_wants_list(weir_train_wants *wants, const weir_train_shares *shares, uint32_t rank,
                               const weir_block_view *view, const uint32_t *const *slots);
/* Slots of what is shared out, which were listed, become rows of what is brought. */
void weir_train_wants_place(const weir_train_wants *wants, const weir_train_shares *shares, const weir_block_view *view,
                            uint32_t *const *slots);
/* Tells the owners, and hears what the others read: all ranks together.  WEIR_ECORRUPT another rank wants a row that
 * is not this one's; errors of the exchange.  [worker] */
weir_err weir_train_wants_tell(weir_train_wants *wants, const weir_train_shares *shares, weir_comm *comm);

/* --- exchanged by all ranks together.  [main] --------------------------------------------------------------------- */

/* Adds the rows of this share that any rank reads.  WEIR_ENOMEM. */
weir_err weir_train_shares_mark(const weir_train_shares *shares, const weir_train_wants *wants, weir_nn_rows *rows);
/* What this rank's batch reads, until the next call; gradients are 0. nn is a share's, params are its parameters.
 * WEIR_ECORRUPT it is not as much as was asked for; errors of the exchange and of the kernels. */
weir_err weir_train_shares_pull(weir_train_shares *shares, const weir_nn *nn, const weir_real *params,
                                const weir_train_wants *wants, weir_comm *comm, weir_nn_brought *broughtp);
/* Adds to gradients, which are laid out as the parameters of the share, what all ranks have come to, one after the
 * other.  Errors as of the pull. */
weir_err weir_train_shares_push(weir_train_shares *shares, const weir_nn *nn, const weir_train_wants *wants,
                                weir_comm *comm, weir_real *gradients);

/* Where a flat array of all embeddings goes to, piece after piece. */
typedef struct weir_train_sink {
    weir_err (*put)(void *context, const weir_real *numbers, uint64_t count);
    void *context;
} weir_train_sink;
/* A flat array of this share's (parameters, moments) together with those of the others, in the layout of the network
 * with all rows, to the sink of rank 0; the other ranks' is not used. shares, comm NULL: this rank has all, and asks
 * nobody.  Errors of the sink and of the exchange; WEIR_ECORRUPT another rank gives too little; WEIR_ENOMEM. */
weir_err weir_train_shares_gather(const weir_train_shares *shares, const weir_nn *nn, const weir_real *flat,
                                  weir_comm *comm, const weir_train_sink *sink);
/* From such an array of all, in the host's memory, to this share's. */
void weir_train_shares_take(const weir_train_shares *shares, const weir_nn *nn, const weir_real *all, weir_real *flat);

#endif /* WEIR_TRAINER_TRAIN_SHARES_H */
