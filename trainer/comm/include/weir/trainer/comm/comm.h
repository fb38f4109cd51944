/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - ranks that work on one thing together: MPI, or one rank alone where no launcher started it.
 *
 *   weir_comm_start ──► the first channel ──weir_comm_channel──► one more for each thread that talks
 *
 * All ranks call the same functions of a channel in the same order. A channel belongs to one thread; threads with
 * channels of their own do not wait for each other's calls.
 *
 * INVARIANTS
 *   COMM-M1  A sum is the same bits on every rank, and the same from run to run with as many ranks.
 *   COMM-M2  Without a launcher, as mpirun is, there is one rank and no MPI is started: every function works and sends
 *            nothing.
 *   COMM-M3  What is summed in pieces, whichever they are, has the bits of the sum of the whole.
 *
 * ERRORS: what goes wrong between ranks ends all of them (that is MPI's default, and there is nothing to go on with); a
 * rank that fails by itself calls weir_comm_fail, which says its number and ends the others.
 */
#ifndef WEIR_TRAINER_COMM_COMM_H
#define WEIR_TRAINER_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_comm weir_comm;

/* Once a process, before its threads.  WEIR_EUNAVAILABLE this MPI cannot be used by several threads; WEIR_ENOMEM. */
weir_err weir_comm_start(int *argcp, char ***argvp, weir_comm **commp);
/* All channels but the first are closed.  Waits for the others.  NULL is allowed.  [main] */
void weir_comm_stop(weir_comm *comm);
/* Waits for the others.  WEIR_ENOMEM.  [main] */
weir_err weir_comm_channel(weir_comm *comm, weir_comm **channelp);
void weir_comm_channel_close(weir_comm *channel); /* NULL is allowed */

/* For benches: how much longer each round between ranks takes: of exchanges, and of sums and gathers. Broadcasts and
 * barriers are not delayed. A plain value. */
typedef struct weir_comm_delays {
    int64_t exchange_us, sum_us;
    bool sums_queue; /* one sum of a channel takes that long after the other: each fills the network */
} weir_comm_delays;
/* Of this channel, and of those that are made of it afterwards.  [main] */
void weir_comm_delay(weir_comm *comm, const weir_comm_delays *delays);
/* Whoever has waited so long for what a rank sends in an exchange says so on stderr, and again each time that it is as
 * long: a minute, if nothing else is said. Of this channel, and of those that are made of it afterwards.  [main] */
void weir_comm_say_silence(weir_comm *comm, int64_t after_us);

/* What this process is doing ("computing", a text that stays), to be said where the launcher ends it because another
 * rank was killed. epoch 0: of none; doing NULL: nothing that has batches.  [any] */
void weir_comm_at(const char *doing, uint32_t epoch, uint64_t batch, uint64_t batches);

uint32_t weir_comm_rank(const weir_comm *comm);
uint32_t weir_comm_ranks(const weir_comm *comm);
/* This rank's number among those of its machine, from 0. All ranks together, on the first channel.  [main] */
uint32_t weir_comm_beside(const weir_comm *comm);

/* Each number becomes its sum over the ranks (COMM-M1). */
void weir_comm_sum_floats(weir_comm *comm, float *numbers, size_t count);
void weir_comm_sum_doubles(weir_comm *comm, double *numbers, size_t count);
/* The same, while the caller does something else: the numbers are the channel's until weir_comm_sums_look returns 0,
 * which says how many sums have not ended, and is what makes them go on. */
void weir_comm_sum_floats_begin(weir_comm *comm, float *numbers, size_t count);
void weir_comm_sum_doubles_begin(weir_comm *comm, double *numbers, size_t count);
uint32_t weir_comm_sums_look(weir_comm *comm);
/* Rank 0's bytes become every rank's. */
void weir_comm_broadcast(weir_comm *comm, void *bytes, size_t length);
void weir_comm_barrier(weir_comm *comm);
/* Sends lengths[r] bytes to rank r, one after the other in bytes; appends what came, in the order of the ranks, to
 * received, and puts how much came from each into received_lengths. One round: each rank waits for the slowest
 * message alone.  WEIR_ELIMIT 2 GiB or more; WEIR_ENOMEM. */
weir_err weir_comm_exchange(weir_comm *comm, const void *bytes, const uint64_t *lengths, weir_buf *received,
                            uint64_t *received_lengths);
/* Bytes of the exchanges of a channel so far, to and from other ranks. A plain value. */
typedef struct weir_comm_traffic {
    uint64_t sent, received;
} weir_comm_traffic;
weir_comm_traffic weir_comm_traffic_of(const weir_comm *comm);
/* Appends every rank's bytes, in the order of the ranks, to received, on all of them, and puts how many each had into
 * received_lengths.  WEIR_ELIMIT 2 GiB or more; WEIR_ENOMEM. */
weir_err weir_comm_gather(weir_comm *comm, const void *bytes, uint64_t length, weir_buf *received,
                          uint64_t *received_lengths);

/* Passes err on. Where MPI was started (one rank under mpirun, too), an error ends all ranks instead: it is said with
 * this rank's number and machine on stderr, and the process ends with its exit status. */
weir_err weir_comm_fail(const weir_comm *comm, weir_err err);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_COMM_COMM_H */
