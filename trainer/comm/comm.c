/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - the only includer of mpi.h. Lengths that MPI takes as int are checked, large sums go in pieces. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/comm/pace.h>

#include "ended.h"

#define COMM_PIECE_MAX ((size_t)1 << 28) /* numbers or bytes of one call */
#define COMM_SUMS_MAX  32u               /* under way on a channel       */
#define COMM_SILENT_US 60000000          /* a batch takes seconds        */
#define COMM_SPEAKERS  2                 /* ranks that say where they were ended */

/* What is under way with one rank. */
typedef struct comm_peer {
    MPI_Request sent, received;
    MPI_Message message;
} comm_peer;

typedef struct comm_sum_begun {
    MPI_Request request;
    int64_t until_us; /* it has ended, and a delay has not; else 0 */
} comm_sum_begun;

struct weir_comm {
    MPI_Comm comm;
    int rank, size;
    int *counts, *places, *received_counts, *received_places; /* one a rank, in one piece of memory */
    comm_peer *peers;                                         /* one a rank */
    comm_sum_begun sums[COMM_SUMS_MAX];
    uint32_t sum_count;
    bool alone; /* MPI was not started */
    weir_comm_delays delays;
    int64_t link_free_us; /* of delays.sums_queue: when the last of its sums will have gone over */
    int64_t silent_us;    /* of another rank, before that is said */
    weir_comm_traffic traffic;
};

static void comm_who(const weir_comm *comm, char who[COMM_WHO]) {
    char host[256] = "an unknown machine";
    gethostname(host, sizeof host - 1);
    snprintf(who, COMM_WHO, "rank %d of %d on %s", comm->rank, comm->size, host);
}

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
    weir_free(comm->peers);
    weir_free(comm);
}

/* like: what the new one is a channel of; NULL: it is the first. */
static weir_err comm_new(MPI_Comm of, bool alone, const weir_comm *like, weir_comm **commp) {
    weir_comm *comm = *commp = weir_calloc(1, sizeof *comm);
    if (!comm) return WEIR_NOMEM("while talking to other ranks");
    *comm = (weir_comm){.comm = of, .size = 1, .alone = alone, .silent_us = COMM_SILENT_US};
    if (like) {
        comm->delays = like->delays;
        comm->silent_us = like->silent_us;
    }
    if (!alone) MPI_Comm_rank(of, &comm->rank);
    if (!alone) MPI_Comm_size(of, &comm->size);
    WEIR_ASSERT(comm->size > 0 && comm->rank >= 0 && comm->rank < comm->size);
    comm->counts = weir_calloc((size_t)comm->size, 4 * sizeof *comm->counts);
    comm->peers = weir_calloc((size_t)comm->size, sizeof *comm->peers);
    if (!comm->counts || !comm->peers) {
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
    if (!comm_was_launched()) return comm_new(MPI_COMM_NULL, true, NULL, commp);
    MPI_Init_thread(argcp, argvp, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this MPI supports one thread only; use one that was built with "
                                           "MPI_THREAD_MULTIPLE, as Debian's Open MPI is");
    }
    weir_err err = comm_new(MPI_COMM_WORLD, false, NULL, commp);
    if (!err && (*commp)->size > 1 && (*commp)->rank < COMM_SPEAKERS) {
        char who[COMM_WHO];
        comm_who(*commp, who);
        weir_comm_say_end(who);
    }
    return err;
}

void weir_comm_stop(weir_comm *comm) {
    if (comm && !comm->alone) MPI_Finalize();
    comm_free(comm);
}

weir_err weir_comm_channel(weir_comm *comm, weir_comm **channelp) {
    MPI_Comm copy = MPI_COMM_NULL;
    if (!comm->alone) MPI_Comm_dup(comm->comm, &copy);
    return comm_new(copy, comm->alone, comm, channelp);
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

uint32_t weir_comm_beside(const weir_comm *comm) {
    MPI_Comm machine;
    int number = 0;
    if (comm->alone) return 0;
    MPI_Comm_split_type(comm->comm, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &number);
    MPI_Comm_free(&machine);
    return (uint32_t)number;
}

void weir_comm_delay(weir_comm *comm, const weir_comm_delays *delays) {
    comm->delays = *delays;
}

void weir_comm_say_silence(weir_comm *comm, int64_t after_us) {
    comm->silent_us = after_us;
}

/* --- waiting ---------------------------------------------------------------------------------------------------- */

typedef struct comm_waiting {
    weir_comm_pace pace;
    int64_t look_us;  /* when the look that is under way began; 0: it is the first */
    int64_t since_us; /* of comm_look_for: when the first began */
} comm_waiting;

/* MPI's own waiting spins: beside threads that compute, on as many cores as there are ranks, it takes their time. Many
 * threads wait here, some of them long. */
static void comm_look_later(comm_waiting *w) {
    weir_clock *clock = weir_clock_system();
    int64_t now_us = weir_clock_mono_us(clock);
    int64_t nap_us = weir_comm_pace_nap(&w->pace, w->look_us ? now_us - w->look_us : INT64_MAX, now_us);
    if (nap_us) weir_clock_sleep_until(clock, now_us + nap_us);
    w->look_us = nap_us ? weir_clock_mono_us(clock) : now_us;
}

/* A line on stderr about this rank. */
static void comm_say(const weir_comm *comm, const char *rest) {
    char who[COMM_WHO];
    comm_who(comm, who);
    fprintf(stderr, "weir train: %s%s\n", who, rest);
}

/* MPI itself waits for a rank that is stopped, or whose machine is gone, as long as it takes, and says nothing. The one
 * that is named may itself wait, for the next one: it says so, too. Many makers of batches may wait for the same one:
 * one line each time. */
static void comm_look_for(comm_waiting *w, const weir_comm *comm, int from) {
    static _Atomic int64_t said_us; /* when a line was last written, on the clock of waiting */
    const int64_t now_us = weir_clock_mono_us(weir_clock_system());
    if (!w->since_us) w->since_us = now_us;
    int64_t said = atomic_load_explicit(&said_us, memory_order_relaxed);
    if (now_us - w->since_us >= comm->silent_us && (!said || now_us - said >= comm->silent_us) &&
        atomic_compare_exchange_strong_explicit(&said_us, &said, now_us, memory_order_relaxed, memory_order_relaxed)) {
        char rest[160];
        snprintf(rest, sizeof rest,
                 " has waited %.0f s for rank %d, which is stopped or slow, or whose machine cannot be reached; it "
                 "waits on",
                 (double)(now_us - w->since_us) * 1e-6, from);
        comm_say(comm, rest);
    }
    comm_look_later(w);
}

static void comm_wait(MPI_Request *request) {
    comm_waiting w = {0};
    for (int done = 0;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) break;
        comm_look_later(&w);
    }
}

/* As if the network were so slow. */
static void comm_wait_longer(int64_t delay_us) {
    weir_clock *clock = weir_clock_system();
    if (delay_us > 0) weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + delay_us);
}

/* --- sums ------------------------------------------------------------------------------------------------------- */

/* COMM-M3: with MPI_IN_PLACE Open MPI adds along a tree of ranks, which is the same for every number; what it does with
 * two buffers, and much of it, depends on where in them a number is. */
static void comm_sum_begin(weir_comm *comm, void *numbers, size_t count, MPI_Datatype type, size_t size) {
    for (size_t begin = 0; !comm->alone && begin < count; begin += COMM_PIECE_MAX) {
        size_t piece = count - begin < COMM_PIECE_MAX ? count - begin : COMM_PIECE_MAX;
        comm_waiting w = {0};
        while (comm->sum_count == COMM_SUMS_MAX && weir_comm_sums_look(comm) == COMM_SUMS_MAX)
            comm_look_later(&w);
        comm_sum_begun *begun = &comm->sums[comm->sum_count++];
        begun->until_us = 0;
        MPI_Iallreduce(MPI_IN_PLACE, (char *)numbers + begin * size, (int)piece, type, MPI_SUM, comm->comm,
                       &begun->request);
    }
}

void weir_comm_sum_floats_begin(weir_comm *comm, float *numbers, size_t count) {
    comm_sum_begin(comm, numbers, count, MPI_FLOAT, sizeof *numbers);
}

void weir_comm_sum_doubles_begin(weir_comm *comm, double *numbers, size_t count) {
    comm_sum_begin(comm, numbers, count, MPI_DOUBLE, sizeof *numbers);
}

/* When a sum that would have ended now ends. */
static int64_t comm_sum_delayed(weir_comm *comm, int64_t now_us) {
    int64_t from_us = comm->delays.sums_queue && comm->link_free_us > now_us ? comm->link_free_us : now_us;
    return comm->link_free_us = from_us + comm->delays.sum_us;
}

uint32_t weir_comm_sums_look(weir_comm *comm) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < comm->sum_count; i++) {
        comm_sum_begun *sum = &comm->sums[i];
        int ended = sum->until_us > 0;
        if (!ended) MPI_Test(&sum->request, &ended, MPI_STATUS_IGNORE);
        if (ended && comm->delays.sum_us > 0) {
            int64_t now_us = weir_clock_mono_us(weir_clock_system());
            if (!sum->until_us) sum->until_us = comm_sum_delayed(comm, now_us);
            ended = sum->until_us <= now_us;
        }
        if (!ended) comm->sums[left++] = *sum;
    }
    return comm->sum_count = left;
}

static void comm_sums_wait(weir_comm *comm) {
    comm_waiting w = {0};
    while (weir_comm_sums_look(comm) > 0)
        comm_look_later(&w);
}

void weir_comm_sum_floats(weir_comm *comm, float *numbers, size_t count) {
    weir_comm_sum_floats_begin(comm, numbers, count);
    comm_sums_wait(comm);
}

void weir_comm_sum_doubles(weir_comm *comm, double *numbers, size_t count) {
    weir_comm_sum_doubles_begin(comm, numbers, count);
    comm_sums_wait(comm);
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

/* The next message of this rank, to be received when all lengths are known. */
static uint64_t comm_expect(weir_comm *comm, int from) {
    comm_waiting w = {0};
    MPI_Status status;
    for (int there = 0, length = 0;;) {
        MPI_Improbe(from, 0, comm->comm, &there, &comm->peers[from].message, &status);
        if (!there) {
            comm_look_for(&w, comm, from);
            continue;
        }
        MPI_Get_count(&status, MPI_BYTE, &length);
        WEIR_ASSERT(length >= 0); /* bytes that lay_out let pass */
        return (uint64_t)length;
    }
}

/* One message to each rank and one from each, which brings its length: one round. MPI keeps what one rank tells another
 * on a channel in its order. A rank that cannot take part leaves the others waiting: its caller ends them all by
 * weir_comm_fail. */
weir_err weir_comm_exchange(weir_comm *comm, const void *bytes, const uint64_t *lengths, weir_buf *received,
                            uint64_t *received_lengths) {
    if (comm->alone) { /* COMM-M2 */
        received_lengths[0] = lengths[0];
        weir_buf_append(received, bytes, lengths[0]);
        return weir_buf_err(received);
    }
    weir_err err = comm_lay_out(lengths, comm->size, comm->counts, comm->places);
    if (err) return err;
    for (int i = 0; i < comm->size; i++)
        MPI_Isend(bytes ? (const char *)bytes + comm->places[i] : NULL, comm->counts[i], MPI_BYTE, i, 0, comm->comm,
                  &comm->peers[i].sent);
    for (int i = 0; i < comm->size; i++)
        received_lengths[i] = comm_expect(comm, i);
    err = comm_lay_out(received_lengths, comm->size, comm->received_counts, comm->received_places);
    if (err) return err;
    uint64_t length = 0;
    for (int i = 0; i < comm->size; i++)
        length += received_lengths[i];
    WEIR_ASSERT(length <= INT_MAX); /* or comm_lay_out had refused it */
    char *room = weir_buf_reserve(received, length + 1);
    if (!room) return weir_buf_err(received);
    for (int i = 0; i < comm->size; i++)
        MPI_Imrecv(room + comm->received_places[i], comm->received_counts[i], MPI_BYTE, &comm->peers[i].message,
                   &comm->peers[i].received);
    for (int i = 0; i < comm->size; i++) {
        comm_wait(&comm->peers[i].received);
        comm_wait(&comm->peers[i].sent);
    }
    comm_wait_longer(comm->delays.exchange_us);
    weir_buf_commit(received, length);
    for (int i = 0; i < comm->size; i++)
        comm->traffic.sent += i == comm->rank ? 0 : lengths[i];
    comm->traffic.received += length - received_lengths[comm->rank];
    return WEIR_OK;
}

weir_comm_traffic weir_comm_traffic_of(const weir_comm *comm) {
    return comm->traffic;
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
    comm_wait_longer(2 * comm->delays.sum_us); /* two rounds */
    weir_buf_commit(received, sum);
    return WEIR_OK;
}

weir_err weir_comm_fail(const weir_comm *comm, weir_err err) {
    if (!err || comm->alone) return err;
    char sentence[2 + WEIR_ERR_SENTENCE_MAX] = ": ";
    weir_err_sentence(err, sentence + 2, WEIR_ERR_SENTENCE_MAX);
    comm_say(comm, sentence);
    MPI_Abort(comm->comm, weir_err_exit_status(err));
    return err;
}
