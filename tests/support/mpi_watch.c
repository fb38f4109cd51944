/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_watch.c - loaded before MPI (LD_PRELOAD): counts what is exchanged, summed and told between ranks, and makes
 * exchanges slow.
 *
 *   WEIR_TEST_MPI=FILE            at the end each rank writes FILE.RANK: a line a kind of channel, "calls messages
 *                                 bytes own"
 *   WEIR_TEST_MPI_DELAY_US=N      an exchange is not seen to be done until N microseconds after it began
 *
 * Makers of batches have a channel each of every kind, made in the order of kinds. Kinds are numbered as they first
 * exchange something; `own` are bytes that a rank sends itself. What is exchanged on the first channel once batches
 * exchange something is rows of embeddings and gradients, of judging, too: a line "embeddings calls messages bytes
 * own". Then comes
 * "sums floats rows peak calls": how many floats were summed over the ranks, how many bytes each rank told all others
 * since batches exchange something, the most memory that this one had, in KiB, and how many sums and tellings that
 * were. Behind it stands what makers exchanged by what a channel is for: "to NAME calls", and the bytes to each
 * rank.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <mpi.h>

#define CHANNELS 256
#define KINDS    3 /* of a maker's channels */
#define REQUESTS 1024
#define RANKS    64

typedef struct channel {
    int kind;
    uint64_t calls, messages, bytes, own;
} channel;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm made[CHANNELS];
static int made_count;
enum { BEFORE = KINDS, EMBEDDINGS, ALL_KINDS }; /* of the first channel */
static channel channels[ALL_KINDS];             /* one a kind */
static int channel_count;
static uint64_t floats, told, tellings;
static const char *const kind_names[KINDS] = {"ask", "answer", "sample"};
static uint64_t bytes_to[KINDS][RANKS], calls_of[KINDS];
static struct {
    MPI_Request request;
    int64_t until_us; /* 0: free */
} slow[REQUESTS];

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Of the channels, that of the time before the batches is the first. */
static bool batches_began(void) {
    return channel_count > 1 || (channel_count == 1 && channels[0].kind != BEFORE);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    int status = PMPI_Comm_dup(comm, copy);
    pthread_mutex_lock(&mutex);
    if (made_count == CHANNELS) abort();
    made[made_count++] = *copy;
    pthread_mutex_unlock(&mutex);
    return status;
}

/* An exchange is a message to each rank, of whatever length. */
int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    const char *delay = getenv("WEIR_TEST_MPI_DELAY_US");
    int rank, size, of = 0, at = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int status = PMPI_Isend(bytes, count, type, to, tag, comm, request);
    pthread_mutex_lock(&mutex);
    while (of < made_count && made[of] != comm)
        of++;
    int kind = of < made_count ? of % KINDS : batches_began() ? EMBEDDINGS : BEFORE;
    while (at < channel_count && channels[at].kind != kind)
        at++;
    if (at == channel_count) channels[channel_count++].kind = kind;
    channel *c = &channels[at];
    if (to == rank) c->own += (uint64_t)count;
    if (to != rank) c->bytes += (uint64_t)count;
    c->messages += to != rank && count > 0;
    c->calls += to + 1 == size;
    if (kind < KINDS && to < RANKS) {
        bytes_to[kind][to] += (uint64_t)count;
        calls_of[kind] += to + 1 == size;
    }
    for (int i = 0; delay && i < REQUESTS; i++) {
        if (slow[i].until_us) continue;
        slow[i].request = *request;
        slow[i].until_us = now_us() + strtoll(delay, NULL, 10);
        break;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

int MPI_Iallreduce(const void *bytes, void *received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
    pthread_mutex_lock(&mutex);
    if (type == MPI_FLOAT) floats += (uint64_t)count;
    tellings += batches_began();
    pthread_mutex_unlock(&mutex);
    return PMPI_Iallreduce(bytes, received, count, type, op, comm, request);
}

int MPI_Iallgatherv(const void *bytes, int count, MPI_Datatype type, void *received, const int received_counts[],
                    const int received_places[], MPI_Datatype received_type, MPI_Comm comm, MPI_Request *request) {
    int size;
    MPI_Comm_size(comm, &size);
    pthread_mutex_lock(&mutex);
    for (int i = 0; batches_began() && i < size; i++)
        told += (uint64_t)received_counts[i];
    tellings += batches_began();
    pthread_mutex_unlock(&mutex);
    return PMPI_Iallgatherv(bytes, count, type, received, received_counts, received_places, received_type, comm,
                            request);
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
    int64_t until_us = 0;
    int at;
    pthread_mutex_lock(&mutex);
    for (at = 0; at < REQUESTS && !(slow[at].until_us && slow[at].request == *request); at++) {
    }
    if (at < REQUESTS) until_us = slow[at].until_us;
    pthread_mutex_unlock(&mutex);
    *done = 0;
    if (until_us > now_us()) return MPI_SUCCESS;
    int err = PMPI_Test(request, done, status);
    pthread_mutex_lock(&mutex);
    if (at < REQUESTS && *done) slow[at].until_us = 0;
    pthread_mutex_unlock(&mutex);
    return err;
}

int MPI_Finalize(void) {
    const char *path = getenv("WEIR_TEST_MPI");
    char name[4096];
    struct rusage usage;
    int rank, size;
    getrusage(RUSAGE_SELF, &usage);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "%s.%d", path ? path : "", rank);
    FILE *file = path ? fopen(name, "w") : NULL;
    for (int pass = 0; file && pass < 2; pass++)
        for (int i = 0; i < channel_count; i++)
            if ((channels[i].kind == EMBEDDINGS) == pass)
                fprintf(file, "%s%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", pass ? "embeddings " : "",
                        channels[i].calls, channels[i].messages, channels[i].bytes, channels[i].own);
    if (file) fprintf(file, "sums %" PRIu64 " %" PRIu64 " %ld %" PRIu64 "\n", floats, told, usage.ru_maxrss, tellings);
    for (int kind = 0; file && kind < KINDS; kind++) {
        fprintf(file, "to %s %" PRIu64, kind_names[kind], calls_of[kind]);
        for (int to = 0; to < size && to < RANKS; to++)
            fprintf(file, " %" PRIu64, bytes_to[kind][to]);
        fprintf(file, "\n");
    }
    if (file && fclose(file)) abort();
    return PMPI_Finalize();
}
