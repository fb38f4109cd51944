/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - what the benches of ingest feed on: the simulator's payments, or foreign ones, by one handle. */
#ifndef WEIR_BENCH_STREAM_H
#define WEIR_BENCH_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/err.h>
#include <weir/store/schema/schema.h>

#define WEIR_BENCH_STREAMS "simulated|foreign"

typedef struct weir_bench_stream weir_bench_stream;

/* "simulated" or "foreign". per_day: simulated payments; the fewer, the longer the time of so many; 0: as many as the
 * simulator makes.  WEIR_EINVAL, WEIR_ENOMEM. */
weir_err weir_bench_stream_open(const char *name, uint32_t per_day, weir_bench_stream **streamp);
weir_err weir_bench_stream_schema(const weir_bench_stream *stream, weir_schema **schemap);
/* The schema's source that it feeds. */
const char *weir_bench_stream_source(const weir_bench_stream *stream);
/* The next payment, borrowed until the next call. */
void weir_bench_stream_next(weir_bench_stream *stream, weir_record *recordp);
/* Appends the next payments to partition 0, each after visit has seen it (NULL: nobody wants to), and makes all of them
 * durable at once. */
typedef void (*weir_bench_stream_visit)(void *context, const weir_record *record);
weir_err weir_bench_stream_append(weir_bench_stream *stream, weir_eventlog *log, uint64_t count,
                                  weir_bench_stream_visit visit, void *context);
void weir_bench_stream_close(weir_bench_stream *stream);

#endif /* WEIR_BENCH_STREAM_H */
