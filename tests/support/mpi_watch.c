/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_watch.c - loaded before MPI (LD_PRELOAD): counts what is exchanged, summed and told between ranks, and makes
 * exchanges slow.
 *
 *   WEIR_TEST_MPI=FILE            at the end each rank writes FILE.RANK: a line a channel, "calls messages bytes own"
 *   WEIR_TEST_MPI_DELAY_US=N      an exchange is not seen to be done until N microseconds after it began
 *
 * Channels are numbered as they first exchange something; `own` are bytes that a rank sends itself. The last line is
 * "sums floats rows peak": how many floats were summed over the ranks, how many bytes each rank told all others, and
 * the most memory that this one had, in KiB.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <mpi.h>

#define CHANNELS 16
#define REQUESTS 64

typedef struct channel {
    MPI_Comm comm;
    uint64_t calls, messages, bytes, own;
} channel;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static channel channels[CHANNELS];
static int channel_count;
static uint64_t floats, told;
static struct {
    MPI_Request request; /* NULL: free */
    int64_t until_us;
} slow[REQUESTS];

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int MPI_Ialltoallv(const void *bytes, const int counts[], const int places[], MPI_Datatype type, void *received,
                   const int received_counts[], const int received_places[], MPI_Datatype received_type, MPI_Comm comm,
                   MPI_Request *request) {
    const char *delay = getenv("WEIR_TEST_MPI_DELAY_US");
    int rank, size, at = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int status = PMPI_Ialltoallv(bytes, counts, places, type, received, received_counts, received_places, received_type,
                                 comm, request);
    pthread_mutex_lock(&mutex);
    while (at < channel_count && channels[at].comm != comm)
        at++;
    if (at == channel_count && at < CHANNELS) channels[channel_count++].comm = comm;
    if (at == CHANNELS) abort();
    channels[at].calls++;
    for (int i = 0; i < size; i++) {
        if (i == rank) channels[at].own += (uint64_t)counts[i];
        if (i != rank) channels[at].bytes += (uint64_t)counts[i];
        channels[at].messages += i != rank && counts[i] > 0;
    }
    for (int i = 0; delay && i < REQUESTS; i++) {
        if (slow[i].request) continue;
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
    pthread_mutex_unlock(&mutex);
    return PMPI_Iallreduce(bytes, received, count, type, op, comm, request);
}

int MPI_Iallgatherv(const void *bytes, int count, MPI_Datatype type, void *received, const int received_counts[],
                    const int received_places[], MPI_Datatype received_type, MPI_Comm comm, MPI_Request *request) {
    int size;
    MPI_Comm_size(comm, &size);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < size; i++)
        told += (uint64_t)received_counts[i];
    pthread_mutex_unlock(&mutex);
    return PMPI_Iallgatherv(bytes, count, type, received, received_counts, received_places, received_type, comm,
                            request);
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
    int64_t until_us = 0;
    int at;
    pthread_mutex_lock(&mutex);
    for (at = 0; at < REQUESTS && slow[at].request != *request; at++) {
    }
    if (at < REQUESTS) until_us = slow[at].until_us;
    pthread_mutex_unlock(&mutex);
    *done = 0;
    if (until_us > now_us()) return MPI_SUCCESS;
    int err = PMPI_Test(request, done, status);
    pthread_mutex_lock(&mutex);
    if (at < REQUESTS && *done) slow[at].request = NULL;
    pthread_mutex_unlock(&mutex);
    return err;
}

int MPI_Finalize(void) {
    const char *path = getenv("WEIR_TEST_MPI");
    char name[4096];
    struct rusage usage;
    int rank;
    getrusage(RUSAGE_SELF, &usage);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s.%d", path ? path : "", rank);
    FILE *file = path ? fopen(name, "w") : NULL;
    for (int i = 0; file && i < channel_count; i++)
        fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", channels[i].calls, channels[i].messages,
                channels[i].bytes, channels[i].own);
    if (file) fprintf(file, "sums %" PRIu64 " %" PRIu64 " %ld\n", floats, told, usage.ru_maxrss);
    if (file && fclose(file)) abort();
    return PMPI_Finalize();
}
