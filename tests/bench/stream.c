/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - payments into an event log, a thousand at a time. */
#include "stream.h"

#include <string.h>

#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>

#include "foreign.h"

#define APPEND_RECORDS 1000u
#define SEED           1u

struct weir_bench_stream {
    weir_simulate *simulated; /* one of the two */
    weir_bench_foreign *foreign;
    weir_buf bytes; /* of the records that are not appended yet */
    weir_record records[APPEND_RECORDS];
};

weir_err weir_bench_stream_open(const char *name, uint32_t per_day, weir_bench_stream **streamp) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    weir_bench_stream *stream = weir_calloc(1, sizeof *stream);
    *streamp = NULL;
    if (!stream) return WEIR_NOMEM("for a stream of payments");
    if (per_day) opts.per_day = per_day;
    weir_err err = strcmp(name, "foreign") == 0 ? weir_bench_foreign_open(SEED, &stream->foreign)
                                                : weir_simulate_payments_open(&opts, &stream->simulated);
    if (err)
        weir_free(stream);
    else
        *streamp = stream;
    return err;
}

weir_err weir_bench_stream_schema(const weir_bench_stream *stream, weir_schema **schemap) {
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    if (stream->simulated) return weir_schema_parse(shipped->name, shipped->text, shipped->length, schemap);
    return weir_schema_parse("foreign", weir_bench_foreign_schema, strlen(weir_bench_foreign_schema), schemap);
}

const char *weir_bench_stream_source(const weir_bench_stream *stream) {
    return stream->simulated ? "payments" : WEIR_BENCH_FOREIGN_SOURCE;
}

void weir_bench_stream_next(weir_bench_stream *stream, weir_record *recordp) {
    weir_simulate_message m = {.topic = WEIR_SIMULATE_TOPICS};
    *recordp = (weir_record){0};
    if (stream->foreign) {
        const char *value;
        weir_bench_foreign_next(stream->foreign, &value, &recordp->value_length, &recordp->time_us);
        recordp->value = value;
        return;
    }
    while (m.topic != WEIR_SIMULATE_PAYMENTS)
        weir_simulate_next(stream->simulated, &m);
    *recordp = (weir_record){.time_us = m.time_us, .value = m.value, .value_length = m.value_length};
}

static weir_err append_held(weir_bench_stream *stream, weir_eventlog *log, size_t count) {
    uint64_t offset;
    size_t at = 0;
    weir_err err = weir_buf_err(&stream->bytes);
    for (size_t i = 0; !err && i < count; i++) {
        stream->records[i].value = stream->bytes.bytes + at;
        at += stream->records[i].value_length;
    }
    if (!err) err = weir_eventlog_append(log, 0, stream->records, count, &offset);
    weir_buf_clear(&stream->bytes);
    return err;
}

weir_err weir_bench_stream_append(weir_bench_stream *stream, weir_eventlog *log, uint64_t count,
                                  weir_bench_stream_visit visit, void *context) {
    weir_err err = WEIR_OK;
    while (!err && count) {
        size_t held = count < APPEND_RECORDS ? (size_t)count : APPEND_RECORDS;
        for (size_t i = 0; i < held; i++) {
            weir_record *record = &stream->records[i];
            weir_bench_stream_next(stream, record);
            if (visit) visit(context, record);
            weir_buf_append(&stream->bytes, record->value, record->value_length);
        }
        err = append_held(stream, log, held);
        count -= held;
    }
    return err ? err : weir_eventlog_sync(log);
}

void weir_bench_stream_close(weir_bench_stream *stream) {
    if (!stream) return;
    weir_simulate_close(stream->simulated);
    weir_bench_foreign_close(stream->foreign);
    weir_buf_free(&stream->bytes);
    weir_free(stream);
}
