/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - what ranks say to each other. One rank, started without mpirun, speaks to itself and never starts MPI.
 *
 * All calls but those marked otherwise are collective: each rank makes the same ones on the same channel in the same
 * order, with the same counts where it says so, and waits for the others. A call that fails on one rank leaves the
 * others waiting: after an error the only way on is weir_comm_fail.
 *
 * INVARIANTS
 *   C1  A sum is taken in the order of the ranks, in double: the same numbers on the same number of ranks give the same
 *       bits, on every rank.
 *
 * THREADS: a channel belongs to one thread at a time; two channels may be used at once.
 */
#ifndef WEIR_TRAINER_COMM_H
#define WEIR_TRAINER_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_comm weir_comm;

/* Joins the ranks that mpirun started; once a process.  WEIR_EUNAVAILABLE MPI does not start, or allows no threads;
 * WEIR_ENOMEM.  [main] */
weir_err weir_comm_open(weir_comm **commp);
/* Another channel between the same ranks, for another thread.  [main] */
weir_err weir_comm_channel(weir_comm *comm, weir_comm **channelp);
/* Leaves; channels first, what weir_comm_open gave last. NULL is allowed.  [main] */
void weir_comm_close(weir_comm *comm);

uint32_t weir_comm_rank(const weir_comm *comm); /* not collective */
uint32_t weir_comm_size(const weir_comm *comm); /* not collective */

/* Each number becomes its sum over the ranks (C1). count: the same on all.  WEIR_ENOMEM; WEIR_ELIMIT 2^31 numbers or
 * more.  Blocks. */
weir_err weir_comm_sum_f32(weir_comm *comm, float *numbers, size_t count);
weir_err weir_comm_sum_f64(weir_comm *comm, double *numbers, size_t count);
/* The largest over the ranks: for agreeing on whether there is more to do, or whether one has failed. */
weir_err weir_comm_max_i64(weir_comm *comm, int64_t *number);
/* send holds what goes to rank 0, then to rank 1, …: send_bytes[rank] each. *receivedp, one block that is the caller's
 * (weir_free), holds what came from rank 0, then from rank 1, …: received_bytes[rank] each. Of any size.  WEIR_ENOMEM.
 * Blocks. */
weir_err weir_comm_exchange(weir_comm *comm, const void *send, const uint64_t *send_bytes, void **receivedp,
                            uint64_t *received_bytes);
/* bytes of rank `from` everywhere. length: the same on all. */
weir_err weir_comm_broadcast(weir_comm *comm, uint32_t from, void *bytes, size_t length);
weir_err weir_comm_barrier(weir_comm *comm);

/* The error with "rank N of M: " before it. With other ranks: writes it to stderr and ends them all, by the exit status
 * of the error, and does not come back. Not collective.  [any] */
weir_err weir_comm_fail(weir_comm *comm, weir_err err);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_COMM_H */
