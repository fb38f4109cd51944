/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate_sink.h - where simulated messages go: files, the event log, Kafka, stdout.
 *
 * THREADS: [main].
 */
#ifndef WEIR_CMD_SIMULATE_SINK_H
#define WEIR_CMD_SIMULATE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/err.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

typedef struct weir_cmd_sink weir_cmd_sink;

/* What every sink begins with. */
struct weir_cmd_sink {
    /* Takes a copy of the message; whole messages only ever reach the other side. */
    weir_err (*put)(weir_cmd_sink *sink, const weir_simulate_message *message);
    /* A pause: what was taken shall be seen by readers soon. */
    weir_err (*rest)(weir_cmd_sink *sink);
    /* All that was taken is durable. */
    weir_err (*finish)(weir_cmd_sink *sink);
    /* Frees; what was not finished may be lost. */
    weir_err (*close)(weir_cmd_sink *sink);
};

typedef struct weir_cmd_sink_opts {
    const char *to;            /* "-", "file:FOLDER", "log:FOLDER", "kafka:BROKERS"; the latter two may name none */
    const weir_config *config; /* gives what `to` leaves out                                                      */
    uint32_t partitions;       /* of a topic that is created                                                      */
    bool topics[WEIR_SIMULATE_TOPICS]; /* that will come                                                            */
} weir_cmd_sink_opts;

/* WEIR_EUSAGE another kind of place; WEIR_EEXIST a file is there already; and what the place itself says. */
weir_err weir_cmd_sink_open(const weir_cmd_sink_opts *opts, weir_cmd_sink **sinkp);

/* One for each kind of place; where is what follows the colon. */
weir_err weir_cmd_sink_stdout(weir_cmd_sink **sinkp);
weir_err weir_cmd_sink_files(const weir_cmd_sink_opts *opts, const char *where, weir_cmd_sink **sinkp);
weir_err weir_cmd_sink_log(const weir_cmd_sink_opts *opts, const char *where, weir_cmd_sink **sinkp);
weir_err weir_cmd_sink_kafka(const weir_cmd_sink_opts *opts, const char *where, weir_cmd_sink **sinkp);

/* A new file that is written in large pieces; whole lines go in, and whole lines come out. */
typedef struct weir_cmd_lines {
    weir_file *file;
    char *buffer;
    size_t length;
} weir_cmd_lines;

#define WEIR_CMD_LINES_BUFFER (1u << 20)
#define WEIR_CMD_LINE_MAX     1024u /* with its newline */

/* WEIR_EEXIST says how to go on; close works on a zeroed and on a half-opened one. */
weir_err weir_cmd_lines_open(weir_cmd_lines *lines, const char *path);
weir_err weir_cmd_lines_put(weir_cmd_lines *lines, const char *bytes, size_t length);
weir_err weir_cmd_lines_flush(weir_cmd_lines *lines);
weir_err weir_cmd_lines_sync(weir_cmd_lines *lines);
weir_err weir_cmd_lines_close(weir_cmd_lines *lines);

#endif /* WEIR_CMD_SIMULATE_SINK_H */
