/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - the only includer of mpi.h. Lengths that MPI takes as int are checked, large sums go in pieces. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/trainer/comm/comm.h>

#define COMM_SPINS     64u /* looks before the first nap */
#define COMM_NAP_US    20
#define COMM_PIECE_MAX ((size_t)1 << 28) /* numbers or bytes of one call */

struct weir_comm {
    MPI_Comm comm;
    int rank, size;
    int *counts, *places, *received_counts, *received_places; /* one a rank, in one piece of memory */
    bool alone;                                               /* MPI was not started */
};

/* Whether a launcher started this rank; without one an MPI_Init costs a second and may fail. */
static bool comm_was_launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (getenv(names[i])) return true;
    }
    return false;
}

static void comm_free(weir_comm *comm) {
    if (!comm) return;
    weir_free(comm->counts);
    weir_free(comm);
}

static weir_err comm_new(MPI_Comm of, bool alone, weir_comm **commp) {
    weir_comm *comm = *commp = weir_calloc(1, sizeof *comm);
    if (!comm) return WEIR_NOMEM("while talking to other ranks");
    *comm = (weir_comm){.comm = of, .size = 1, .alone = alone};
    if (!alone) MPI_Comm_rank(of, &comm->rank);
    if (!alone) MPI_Comm_size(of, &comm->size);
    WEIR_ASSERT(comm->size > 0 && comm->rank >= 0 && comm->rank < comm->size);
    comm->counts = weir_calloc((size_t)comm->size, 4 * sizeof *comm->counts);
    if (!comm->counts) {
        comm_free(comm);
        *commp = NULL;
        return WEIR_NOMEM("while talking to other ranks");
    }
    comm->places = comm->counts + comm->size;
    comm->received_counts = comm->places + comm->size;
    comm->received_places = comm->received_counts + comm->size;
    return WEIR_OK;
}

weir_err weir_comm_start(int *argcp, char ***argvp, weir_comm **commp) {
    int provided;
    *commp = NULL;
    if (!comm_was_launched()) return comm_new(MPI_COMM_NULL, true, commp);
    MPI_Init_thread(argcp, argvp, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this MPI supports one thread only; use one that was built with "
                                           "MPI_THREAD_MULTIPLE, as Debian's Open MPI is");
    }
    return comm_new(MPI_COMM_WORLD, false, commp);
}

void weir_comm_stop(weir_comm *comm) {
    if (comm && !comm->alone) MPI_Finalize();
    comm_free(comm);
}

weir_err weir_comm_channel(weir_comm *comm, weir_comm **channelp) {
    MPI_Comm copy = MPI_COMM_NULL;
    if (!comm->alone) MPI_Comm_dup(comm->comm, &copy);
    return comm_new(copy, comm->alone, channelp);
}

void weir_comm_channel_close(weir_comm *channel) {
    if (channel && !channel->alone) MPI_Comm_free(&channel->comm);
    comm_free(channel);
}

uint32_t weir_comm_rank(const weir_comm *comm) {
    return (uint32_t)comm->rank;
}

uint32_t weir_comm_ranks(const weir_comm *comm) {
    return (uint32_t)comm->size;
}

/* MPI's own waiting spins: beside threads that compute, on as many cores as there are ranks, it takes their time. */
static void comm_wait(MPI_Request *request) {
    weir_clock *clock = weir_clock_system();
    int done = 0;
    for (unsigned tries = 0; !done; tries++) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done && tries >= COMM_SPINS) weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + COMM_NAP_US);
    }
}

static void comm_sum(weir_comm *comm, void *numbers, size_t count, MPI_Datatype type, size_t size) {
    for (size_t begin = 0; !comm->alone && begin < count; begin += COMM_PIECE_MAX) {
        size_t piece = count - begin < COMM_PIECE_MAX ? count - begin : COMM_PIECE_MAX;
        MPI_Request request;
        MPI_Iallreduce(MPI_IN_PLACE, (char *)numbers + begin * size, (int)piece, type, MPI_SUM, comm->comm, &request);
        comm_wait(&request);
    }
}

void weir_comm_sum_floats(weir_comm *comm, float *numbers, size_t count) {
    comm_sum(comm, numbers, count, MPI_FLOAT, sizeof *numbers);
}

void weir_comm_sum_doubles(weir_comm *comm, double *numbers, size_t count) {
    comm_sum(comm, numbers, count, MPI_DOUBLE, sizeof *numbers);
}

void weir_comm_broadcast(weir_comm *comm, void *bytes, size_t length) {
    for (size_t begin = 0; !comm->alone && begin < length; begin += COMM_PIECE_MAX) {
        size_t piece = length - begin < COMM_PIECE_MAX ? length - begin : COMM_PIECE_MAX;
        MPI_Request request;
        MPI_Ibcast((char *)bytes + begin, (int)piece, MPI_BYTE, 0, comm->comm, &request);
        comm_wait(&request);
    }
}

void weir_comm_barrier(weir_comm *comm) {
    MPI_Request request;
    if (comm->alone) return;
    MPI_Ibarrier(comm->comm, &request);
    comm_wait(&request);
}

/* --- exchange --------------------------------------------------------------------------------------------------- */

/* Lengths and places as MPI takes them, in int.  WEIR_ELIMIT they are larger. */
static weir_err comm_lay_out(const uint64_t *lengths, int size, int *counts, int *places) {
    uint64_t sum = 0;
    for (int i = 0; i < size; i++) {
        if (lengths[i] > INT_MAX || sum + lengths[i] > INT_MAX)
            return WEIR_ERR(
                WEIR_ELIMIT,
                "ranks have more than %d bytes to tell each other at once; lower the batch, or train on fewer targets",
                INT_MAX);
        counts[i] = (int)lengths[i];
        places[i] = (int)sum;
        sum += lengths[i];
    }
    return WEIR_OK;
}

/* A rank that cannot take part leaves the others waiting: its caller ends them all by weir_comm_fail. */
weir_err weir_comm_exchange(weir_comm *comm, const void *bytes, const uint64_t *lengths, weir_buf *received,
                            uint64_t *received_lengths) {
    if (comm->alone) { /* COMM-M2 */
        received_lengths[0] = lengths[0];
        weir_buf_append(received, bytes, lengths[0]);
        return weir_buf_err(received);
    }
    weir_err err = comm_lay_out(lengths, comm->size, comm->counts, comm->places);
    if (err) return err;
    MPI_Request request;
    MPI_Ialltoall(lengths, 1, MPI_UINT64_T, received_lengths, 1, MPI_UINT64_T, comm->comm, &request);
    comm_wait(&request);
    err = comm_lay_out(received_lengths, comm->size, comm->received_counts, comm->received_places);
    if (err) return err;
    uint64_t length = 0;
    for (int i = 0; i < comm->size; i++)
        length += received_lengths[i];
    WEIR_ASSERT(length <= INT_MAX); /* or comm_lay_out had refused it */
    char *room = weir_buf_reserve(received, length + 1);
    if (!room) return weir_buf_err(received);
    MPI_Ialltoallv(bytes, comm->counts, comm->places, MPI_BYTE, room, comm->received_counts, comm->received_places,
                   MPI_BYTE, comm->comm, &request);
    comm_wait(&request);
    weir_buf_commit(received, length);
    return WEIR_OK;
}

weir_err weir_comm_gather(weir_comm *comm, const void *bytes, uint64_t length, weir_buf *received,
                          uint64_t *received_lengths) {
    received_lengths[0] = length;
    if (comm->alone) { /* COMM-M2 */
        weir_buf_append(received, bytes, length);
        return weir_buf_err(received);
    }
    MPI_Request request;
    MPI_Iallgather(&length, 1, MPI_UINT64_T, received_lengths, 1, MPI_UINT64_T, comm->comm, &request);
    comm_wait(&request);
    weir_err err = comm_lay_out(received_lengths, comm->size, comm->received_counts, comm->received_places);
    if (err) return err;
    uint64_t sum = 0;
    for (int i = 0; i < comm->size; i++)
        sum += received_lengths[i];
    char *room = weir_buf_reserve(received, sum + 1);
    if (!room) return weir_buf_err(received);
    MPI_Iallgatherv(bytes, (int)length, MPI_BYTE, room, comm->received_counts, comm->received_places, MPI_BYTE,
                    comm->comm, &request);
    comm_wait(&request);
    weir_buf_commit(received, sum);
    return WEIR_OK;
}

weir_err weir_comm_fail(const weir_comm *comm, weir_err err) {
    if (!err || comm->alone) return err;
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    fprintf(stderr, "weir train: rank %d of %d: %s\n", comm->rank, comm->size, sentence);
    MPI_Abort(comm->comm, weir_err_exit_status(err));
    return err;
}
