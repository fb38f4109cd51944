/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - where simulated messages go: files, the event log, Kafka, stdout.
 *
 * THREADS: [main].
 */
#ifndef WEIR_SIMULATE_SINK_H
#define WEIR_SIMULATE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/err.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

typedef struct weir_simulate_sink weir_simulate_sink;

/* What every sink begins with. */
struct weir_simulate_sink {
    /* Takes a copy of the message. A reader of the place only ever sees whole messages. */
    weir_err (*put)(weir_simulate_sink *sink, const weir_simulate_message *message);
    /* A pause: readers will see soon what was taken. */
    weir_err (*rest)(weir_simulate_sink *sink);
    /* All that was taken is durable. */
    weir_err (*finish)(weir_simulate_sink *sink);
    /* Frees; what was not finished may be lost. */
    weir_err (*close)(weir_simulate_sink *sink);
};

typedef struct weir_simulate_sink_opts {
    const char *to;            /* "-", "file:FOLDER", "log:FOLDER", "kafka:BROKERS"; the latter two may name none */
    const weir_config *config; /* gives what `to` leaves out                                                      */
    uint32_t partitions;       /* of a topic that is created                                                      */
    bool topics[WEIR_SIMULATE_TOPICS]; /* that will come                                                            */
} weir_simulate_sink_opts;

/* WEIR_EUSAGE not a kind of place; WEIR_EEXIST a file is there already; and what the place itself says. */
weir_err weir_simulate_sink_open(const weir_simulate_sink_opts *opts, weir_simulate_sink **sinkp);

/* One for each kind of place; where is what follows the colon. */
weir_err weir_simulate_sink_stdout(weir_simulate_sink **sinkp);
weir_err weir_simulate_sink_files(const weir_simulate_sink_opts *opts, const char *where, weir_simulate_sink **sinkp);
weir_err weir_simulate_sink_log(const weir_simulate_sink_opts *opts, const char *where, weir_simulate_sink **sinkp);
weir_err weir_simulate_sink_kafka(const weir_simulate_sink_opts *opts, const char *where, weir_simulate_sink **sinkp);

/* A new file that is written in large pieces; whole lines go in, and whole lines come out. */
typedef struct weir_simulate_lines {
    weir_file *file; /* NULL: stdout */
    char *buffer;
    size_t length;
} weir_simulate_lines;

#define WEIR_SIMULATE_LINES_BUFFER (1u << 20)
#define WEIR_SIMULATE_LINE_MAX     1024u /* with its newline */

/* WEIR_EEXIST says how to go on; close works on one that was zeroed, or whose open failed. */
weir_err weir_simulate_lines_open(weir_simulate_lines *lines, const char *path);
weir_err weir_simulate_lines_put(weir_simulate_lines *lines, const char *bytes, size_t length);
weir_err weir_simulate_lines_flush(weir_simulate_lines *lines);
weir_err weir_simulate_lines_sync(weir_simulate_lines *lines);
weir_err weir_simulate_lines_close(weir_simulate_lines *lines);

#endif /* WEIR_SIMULATE_SINK_H */
