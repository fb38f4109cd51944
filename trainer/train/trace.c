/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - spans of stages, kept as the text that the file will have. */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/thread.h>

#include "trace.h"

#define TRACE_BYTES_MAX ((size_t)64 << 20)   /* of a rank */
#define TRACE_BYTES_ALL ((size_t)2000 << 20) /* of all: one exchange takes no 2 GiB */
#define TRACE_HEAD      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
#define TRACE_TAIL      "]}\n"
#define TRACE_NO_MEMORY "for a trace"

struct weir_train_trace {
    weir_comm *comm;
    const char *path;
    size_t bytes_max;
    weir_mutex mutex;
    weir_buf spans;
    uint64_t omitted; /* spans that had no room */
    int64_t zero_us;
};

static const char *const trace_names[WEIR_STAGES] = {"sample", "ask",     "answer", "encode", "bring", "wait",
                                                     "pull",   "compute", "sum",    "update", "reduce"};

weir_err weir_train_trace_open(weir_comm *comm, const char *path, uint32_t makers, weir_train_trace **tracep) {
    weir_train_trace *t = *tracep = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM(TRACE_NO_MEMORY);
    weir_mutex_init(&t->mutex, WEIR_RANK_LEAF, "train trace");
    t->comm = comm;
    t->path = path;
    t->bytes_max = TRACE_BYTES_ALL / weir_comm_ranks(comm) - 4096;
    if (t->bytes_max > TRACE_BYTES_MAX) t->bytes_max = TRACE_BYTES_MAX;
    uint32_t rank = weir_comm_rank(comm);
    weir_buf_printf(&t->spans, "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"rank %u\"}},\n",
                    rank, rank);
    for (uint32_t track = 0; track <= weir_train_trace_sums(makers); track++) {
        const char *name = track == 0                               ? "compute"
                           : track <= makers                        ? "learning, maker"
                           : track == weir_train_trace_sums(makers) ? "sums"
                                                                    : "judging, maker";
        weir_buf_printf(&t->spans,
                        "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\","
                        "\"args\":{\"name\":\"%s %u\"}},\n",
                        rank, track, name, track ? (track - 1) % makers : 0);
    }
    weir_err err = rank == 0 ? weir_file_replace(path, TRACE_HEAD TRACE_TAIL, strlen(TRACE_HEAD TRACE_TAIL)) : WEIR_OK;
    err = weir_comm_fail(comm, err);
    if (err) return err;
    weir_comm_barrier(comm);
    t->zero_us = weir_clock_mono_us(weir_clock_system());
    return weir_buf_err(&t->spans);
}

uint32_t weir_train_trace_sums(uint32_t makers) {
    return 1 + 2 * makers;
}

void weir_train_trace_add(weir_train_trace *trace, const weir_train_span *span) {
    if (!trace) return;
    WEIR_ASSERT(span->stage < WEIR_STAGES && span->begin_us <= span->end_us);
    weir_mutex_lock(&trace->mutex);
    if (trace->spans.length < trace->bytes_max)
        weir_buf_printf(&trace->spans,
                        "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"ts\":%" PRId64 ",\"dur\":%" PRId64
                        ",\"args\":{\"epoch\":%u,\"batch\":%" PRIu64 "}},\n",
                        weir_comm_rank(trace->comm), span->track, trace_names[span->stage],
                        span->begin_us - trace->zero_us, span->end_us - span->begin_us, span->epoch, span->batch);
    else
        trace->omitted++;
    weir_mutex_unlock(&trace->mutex);
}

weir_err weir_train_trace_write(weir_train_trace *trace) {
    uint32_t ranks = weir_comm_ranks(trace->comm);
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths), *received = weir_calloc(ranks, sizeof *received);
    weir_buf all = {0};
    weir_err err = lengths && received ? weir_buf_err(&trace->spans) : WEIR_NOMEM(TRACE_NO_MEMORY);

    /* Every span's line ends with a comma; what a rank says last does, too, and is there for the file to be JSON. */
    weir_buf_printf(&trace->spans,
                    "{\"ph\":\"i\",\"pid\":%u,\"tid\":0,\"ts\":0,\"s\":\"p\",\"name\":\"spans that had no room\","
                    "\"args\":{\"count\":%" PRIu64 "}}%s\n",
                    weir_comm_rank(trace->comm), trace->omitted, weir_comm_rank(trace->comm) + 1 < ranks ? "," : "");
    weir_buf_append(&all, TRACE_HEAD, strlen(TRACE_HEAD));
    if (!err) err = weir_buf_err(&trace->spans);
    err = weir_comm_fail(trace->comm, err);
    if (!err) {
        lengths[0] = trace->spans.length;
        err = weir_comm_exchange(trace->comm, trace->spans.bytes, lengths, &all, received);
        err = weir_comm_fail(trace->comm, err); /* others wait until what they tell has been heard */
    }
    weir_buf_append(&all, TRACE_TAIL, strlen(TRACE_TAIL));
    if (!err && weir_comm_rank(trace->comm) == 0) err = weir_buf_err(&all);
    if (!err && weir_comm_rank(trace->comm) == 0) err = weir_file_replace(trace->path, all.bytes, all.length);
    weir_buf_free(&all);
    weir_free(lengths);
    weir_free(received);
    return err;
}

void weir_train_trace_close(weir_train_trace *trace) {
    if (!trace) return;
    weir_buf_free(&trace->spans);
    weir_mutex_destroy(&trace->mutex);
    weir_free(trace);
}
