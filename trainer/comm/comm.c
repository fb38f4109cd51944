/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - the only file that knows MPI.
 *
 * MPI's own sums may choose another order for another size of message, and a receive counts in int. So sums go by way
 * of owners: rank r gets everybody's r-th slice, adds them up in the order of the ranks, and hands the slice out; as
 * much is sent as by the best of MPI's own ways. And long messages go in pieces; both ends know how many there are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/trainer/comm.h>

#define PIECE_BYTES ((uint64_t)1 << 30)
#define TAG         1

struct weir_comm {
    MPI_Comm mpi; /* MPI_COMM_NULL: alone, and MPI was not started */
    uint32_t rank, size;
    bool first; /* what weir_comm_open gave */
};

static weir_err check(int status, const char *what) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (status == MPI_SUCCESS) return WEIR_OK;
    MPI_Error_string(status, text, &length);
    return WEIR_ERR(WEIR_EIO, "MPI cannot %s: %.300s; look at the other ranks", what, text);
}

static weir_err no_memory(uint64_t bytes) {
    return WEIR_ERR(WEIR_ENOMEM, "no memory for %llu bytes of other ranks; use smaller batches",
                    (unsigned long long)bytes);
}

/* --- open, close ----------------------------------------------------------------------------------------------- */

/* What Open MPI's, MPICH's and Slurm's launchers tell a rank. A start of MPI without any takes a second, a daemon and a
 * network that nobody needs. */
static bool was_launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (getenv(names[i])) return true;
    }
    return false;
}

static weir_err join(weir_comm *comm) {
    int provided = 0, rank = 0, size = 1;
    weir_err err = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided), "start");
    if (!err && provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this MPI allows one thread only; use one that was built with threads");
    }
    if (!err) err = check(MPI_Comm_dup(MPI_COMM_WORLD, &comm->mpi), "open a channel");
    if (!err) err = check(MPI_Comm_set_errhandler(comm->mpi, MPI_ERRORS_RETURN), "open a channel");
    if (!err) err = check(MPI_Comm_rank(comm->mpi, &rank), "name a rank");
    if (!err) err = check(MPI_Comm_size(comm->mpi, &size), "count ranks");
    comm->rank = (uint32_t)rank;
    comm->size = (uint32_t)size;
    return err;
}

static weir_err comm_new(weir_comm **commp) {
    *commp = weir_calloc(1, sizeof **commp);
    if (!*commp) return WEIR_ERR(WEIR_ENOMEM, "no memory for a channel between ranks");
    **commp = (weir_comm){.mpi = MPI_COMM_NULL, .size = 1};
    return WEIR_OK;
}

weir_err weir_comm_open(weir_comm **commp) {
    weir_comm *comm = NULL;
    *commp = NULL;
    weir_err err = comm_new(&comm);
    if (!err && was_launched()) err = join(comm);
    if (err) {
        weir_free(comm);
        return err;
    }
    comm->first = true;
    *commp = comm;
    return WEIR_OK;
}

weir_err weir_comm_channel(weir_comm *comm, weir_comm **channelp) {
    weir_comm *channel = NULL;
    *channelp = NULL;
    weir_err err = comm_new(&channel);
    if (err) return err;
    channel->rank = comm->rank;
    channel->size = comm->size;
    if (comm->mpi != MPI_COMM_NULL) err = check(MPI_Comm_dup(comm->mpi, &channel->mpi), "open a channel");
    if (err) {
        weir_free(channel);
        return err;
    }
    *channelp = channel;
    return WEIR_OK;
}

void weir_comm_close(weir_comm *comm) {
    if (!comm) return;
    bool started = comm->mpi != MPI_COMM_NULL;
    if (started) MPI_Comm_free(&comm->mpi);
    if (started && comm->first) MPI_Finalize();
    weir_free(comm);
}

uint32_t weir_comm_rank(const weir_comm *comm) {
    return comm->rank;
}

uint32_t weir_comm_size(const weir_comm *comm) {
    return comm->size;
}

/* --- messages -------------------------------------------------------------------------------------------------- */

/* What is on its way. */
typedef struct flight {
    MPI_Request *requests;
    int count, capacity;
} flight;

static uint64_t pieces_of(uint64_t bytes) {
    return (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
}

static weir_err flight_open(flight *f, uint64_t pieces) {
    *f = (flight){.capacity = (int)pieces};
    if (pieces > INT32_MAX) return no_memory(pieces * PIECE_BYTES);
    f->requests = weir_calloc(pieces + 1, sizeof *f->requests);
    return f->requests ? WEIR_OK : no_memory(pieces * sizeof *f->requests);
}

static weir_err start_send(weir_comm *comm, flight *f, const uint8_t *bytes, uint64_t length, uint32_t to) {
    weir_err err = WEIR_OK;
    for (uint64_t at = 0; !err && at < length; at += PIECE_BYTES) {
        uint64_t piece = length - at < PIECE_BYTES ? length - at : PIECE_BYTES;
        WEIR_ASSERT(f->count < f->capacity);
        err = check(MPI_Isend(bytes + at, (int)piece, MPI_BYTE, (int)to, TAG, comm->mpi, &f->requests[f->count++]),
                    "send");
    }
    return err;
}

static weir_err start_receive(weir_comm *comm, flight *f, uint8_t *bytes, uint64_t length, uint32_t from) {
    weir_err err = WEIR_OK;
    for (uint64_t at = 0; !err && at < length; at += PIECE_BYTES) {
        uint64_t piece = length - at < PIECE_BYTES ? length - at : PIECE_BYTES;
        WEIR_ASSERT(f->count < f->capacity);
        err = check(MPI_Irecv(bytes + at, (int)piece, MPI_BYTE, (int)from, TAG, comm->mpi, &f->requests[f->count++]),
                    "receive");
    }
    return err;
}

static weir_err finish(flight *f) {
    return check(MPI_Waitall(f->count, f->requests, MPI_STATUSES_IGNORE), "bring messages to their ends");
}

/* Lengths of both sides are known: everything is put on its way at once, receives first. */
static weir_err swap_bytes(weir_comm *comm, const uint8_t *send, const uint64_t *send_bytes, uint8_t *received,
                           const uint64_t *received_bytes) {
    flight f = {0};
    uint64_t pieces = 0;
    for (uint32_t r = 0; r < comm->size; r++)
        pieces += pieces_of(send_bytes[r]) + pieces_of(received_bytes[r]);
    weir_err err = flight_open(&f, pieces);
    for (uint32_t r = 0; !err && r < comm->size; r++) {
        err = start_receive(comm, &f, received, received_bytes[r], r);
        received += received_bytes[r];
    }
    for (uint32_t r = 0; !err && r < comm->size; r++) {
        err = start_send(comm, &f, send, send_bytes[r], r);
        send += send_bytes[r];
    }
    if (!err) err = finish(&f);
    weir_free(f.requests);
    return err;
}

weir_err weir_comm_exchange(weir_comm *comm, const void *send, const uint64_t *send_bytes, void **receivedp,
                            uint64_t *received_bytes) {
    uint64_t sum = 0;
    weir_err err = WEIR_OK;
    *receivedp = NULL;
    if (comm->mpi == MPI_COMM_NULL) {
        received_bytes[0] = send_bytes[0];
    } else {
        err = check(MPI_Alltoall(send_bytes, 1, MPI_UINT64_T, received_bytes, 1, MPI_UINT64_T, comm->mpi),
                    "exchange lengths");
    }
    if (err) return err;
    for (uint32_t r = 0; r < comm->size; r++)
        sum += received_bytes[r];
    *receivedp = weir_malloc(sum + 1);
    if (!*receivedp) return no_memory(sum);
    if (comm->mpi == MPI_COMM_NULL) {
        if (sum) memcpy(*receivedp, send, sum);
    } else {
        err = swap_bytes(comm, send, send_bytes, *receivedp, received_bytes);
    }
    if (!err) return WEIR_OK;
    weir_free(*receivedp);
    *receivedp = NULL;
    return err;
}

weir_err weir_comm_broadcast(weir_comm *comm, uint32_t from, void *bytes, size_t length) {
    weir_err err = WEIR_OK;
    for (uint64_t at = 0; comm->mpi != MPI_COMM_NULL && !err && at < length; at += PIECE_BYTES) {
        uint64_t piece = length - at < PIECE_BYTES ? length - at : PIECE_BYTES;
        err = check(MPI_Bcast((uint8_t *)bytes + at, (int)piece, MPI_BYTE, (int)from, comm->mpi), "broadcast");
    }
    return err;
}

weir_err weir_comm_barrier(weir_comm *comm) {
    return comm->mpi == MPI_COMM_NULL ? WEIR_OK : check(MPI_Barrier(comm->mpi), "wait for all ranks");
}

weir_err weir_comm_max_i64(weir_comm *comm, int64_t *number) {
    if (comm->mpi == MPI_COMM_NULL) return WEIR_OK;
    return check(MPI_Allreduce(MPI_IN_PLACE, number, 1, MPI_INT64_T, MPI_MAX, comm->mpi), "agree on a number");
}

/* --- sums ------------------------------------------------------------------------------------------------------ */

/* Numbers of one size, either float or double. */
typedef struct sum {
    weir_comm *comm;
    uint8_t *numbers;
    size_t count, size; /* bytes of one */
    uint8_t *slices;    /* everybody's slice that is ours, in the order of the ranks */
    int *counts, *starts;
    uint64_t *send_bytes, *own_bytes;
} sum;

static size_t slice_start(const sum *s, uint32_t rank) {
    return (size_t)((uint64_t)s->count * rank / s->comm->size);
}

static double number_at(const sum *s, const uint8_t *numbers, size_t i) {
    float single = 0;
    double number = 0;
    if (s->size == sizeof number) {
        memcpy(&number, numbers + i * sizeof number, sizeof number);
        return number;
    }
    memcpy(&single, numbers + i * sizeof single, sizeof single);
    return (double)single;
}

static void put_number(const sum *s, uint8_t *numbers, size_t i, double number) {
    float single = (float)number;
    if (s->size == sizeof number)
        memcpy(numbers + i * sizeof number, &number, sizeof number);
    else
        memcpy(numbers + i * sizeof single, &single, sizeof single);
}

/* C1: rank after rank, in double. */
static void add_slices(const sum *s) {
    uint32_t own = s->comm->rank;
    size_t begin = slice_start(s, own), count = slice_start(s, own + 1) - begin;
    for (size_t i = 0; i < count; i++) {
        double total = 0;
        for (uint32_t r = 0; r < s->comm->size; r++)
            total += number_at(s, s->slices + r * count * s->size, i);
        put_number(s, s->numbers, begin + i, total);
    }
}

static weir_err sum_open(sum *s) {
    uint32_t size = s->comm->size, own = s->comm->rank;
    size_t mine = slice_start(s, own + 1) - slice_start(s, own);
    s->slices = weir_calloc(mine * size + 1, s->size);
    s->counts = weir_calloc(size, sizeof *s->counts);
    s->starts = weir_calloc(size, sizeof *s->starts);
    s->send_bytes = weir_calloc(size, sizeof *s->send_bytes);
    s->own_bytes = weir_calloc(size, sizeof *s->own_bytes);
    if (!s->slices || !s->counts || !s->starts || !s->send_bytes || !s->own_bytes) return no_memory(mine * size);
    for (uint32_t r = 0; r < size; r++) {
        s->starts[r] = (int)slice_start(s, r);
        s->counts[r] = (int)(slice_start(s, r + 1) - slice_start(s, r));
        s->send_bytes[r] = (uint64_t)s->counts[r] * s->size;
        s->own_bytes[r] = mine * s->size;
    }
    return WEIR_OK;
}

static void sum_close(sum *s) {
    weir_free(s->slices);
    weir_free(s->counts);
    weir_free(s->starts);
    weir_free(s->send_bytes);
    weir_free(s->own_bytes);
}

static weir_err sum_all(sum *s) {
    MPI_Datatype type = s->size == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
    if (s->comm->mpi == MPI_COMM_NULL || s->count == 0) return WEIR_OK;
    if (s->count > INT32_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "%zu numbers are more than one sum of ranks takes; sum them in two", s->count);
    }
    weir_err err = sum_open(s);
    if (!err) err = swap_bytes(s->comm, s->numbers, s->send_bytes, s->slices, s->own_bytes);
    if (!err) {
        add_slices(s);
        err = check(MPI_Allgatherv(MPI_IN_PLACE, 0, type, s->numbers, s->counts, s->starts, type, s->comm->mpi),
                    "hand out sums");
    }
    sum_close(s);
    return err;
}

weir_err weir_comm_sum_f32(weir_comm *comm, float *numbers, size_t count) {
    sum s = {.comm = comm, .numbers = (uint8_t *)numbers, .count = count, .size = sizeof *numbers};
    return sum_all(&s);
}

weir_err weir_comm_sum_f64(weir_comm *comm, double *numbers, size_t count) {
    sum s = {.comm = comm, .numbers = (uint8_t *)numbers, .count = count, .size = sizeof *numbers};
    return sum_all(&s);
}

/* --- failing --------------------------------------------------------------------------------------------------- */

weir_err weir_comm_fail(weir_comm *comm, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    err = weir_err_prefix(err, "rank %u of %u", comm->rank, comm->size);
    if (!err || comm->mpi == MPI_COMM_NULL) return err;
    weir_err_sentence(err, sentence, sizeof sentence);
    fprintf(stderr, "weir train: %s\n", sentence); /* MPI_Abort leaves no time for the caller's own words */
    fflush(stderr);
    MPI_Abort(comm->mpi, weir_err_exit_status(err));
    return err;
}
