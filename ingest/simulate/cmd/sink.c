/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - which sink a --to means, and the two simplest: files and stdout. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "sink.h"

/* --- a file of lines ---------------------------------------------------------------------------------------------- */

weir_err weir_simulate_lines_open(weir_simulate_lines *lines, const char *path) {
    *lines = (weir_simulate_lines){0};
    weir_err err = weir_file_open(path, WEIR_FILE_CREATE, &lines->file);
    if (weir_err_is(err, WEIR_EEXIST))
        return WEIR_ERR(WEIR_EEXIST, "%s is there already; remove it or choose another place", path);
    if (err) return err;
    lines->buffer = weir_malloc(WEIR_SIMULATE_LINES_BUFFER);
    if (!lines->buffer) return WEIR_NOMEM("while writing %s", path);
    return WEIR_OK;
}

weir_err weir_simulate_lines_flush(weir_simulate_lines *lines) {
    size_t length = lines->length;
    lines->length = 0;
    if (length == 0) return WEIR_OK;
    return lines->file ? weir_file_append(lines->file, lines->buffer, length) : weir_cli_output(lines->buffer, length);
}

weir_err weir_simulate_lines_put(weir_simulate_lines *lines, const char *bytes, size_t length) {
    WEIR_ASSERT(lines->buffer && length <= WEIR_SIMULATE_LINE_MAX && lines->length <= WEIR_SIMULATE_LINES_BUFFER);
    if (lines->length + length > WEIR_SIMULATE_LINES_BUFFER) {
        weir_err err = weir_simulate_lines_flush(lines);
        if (err) return err;
    }
    memcpy(lines->buffer + lines->length, bytes, length);
    lines->length += length;
    return WEIR_OK;
}

weir_err weir_simulate_lines_sync(weir_simulate_lines *lines) {
    weir_err err = weir_simulate_lines_flush(lines);
    return err ? err : weir_file_sync(lines->file);
}

weir_err weir_simulate_lines_close(weir_simulate_lines *lines) {
    weir_err err = weir_file_close(lines->file);
    weir_free(lines->buffer);
    *lines = (weir_simulate_lines){0};
    return err;
}

/* Its newline needs room too, or a reader could meet a line without an end. */
static weir_err sink_put_line(weir_simulate_lines *lines, const weir_simulate_message *message) {
    bool room = lines->length + message->value_length < WEIR_SIMULATE_LINES_BUFFER;
    weir_err err = room ? WEIR_OK : weir_simulate_lines_flush(lines);
    if (!err) err = weir_simulate_lines_put(lines, message->value, message->value_length);
    return err ? err : weir_simulate_lines_put(lines, "\n", 1);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct sink_files {
    weir_simulate_sink base;
    char *folder;
    weir_simulate_lines topics[WEIR_SIMULATE_TOPICS]; /* opened for the topics that will come */
} sink_files;

static weir_err sink_files_put(weir_simulate_sink *sink, const weir_simulate_message *message) {
    return sink_put_line(&((sink_files *)sink)->topics[message->topic], message);
}

static weir_err sink_files_each(weir_simulate_sink *sink, weir_err (*act)(weir_simulate_lines *)) {
    sink_files *files = (sink_files *)sink;
    weir_err err = WEIR_OK;
    for (int topic = 0; topic < WEIR_SIMULATE_TOPICS; topic++)
        if (files->topics[topic].file) weir_err_keep(&err, act(&files->topics[topic]));
    return err;
}

static weir_err sink_files_rest(weir_simulate_sink *sink) {
    return sink_files_each(sink, weir_simulate_lines_flush);
}

/* The new files are durable when their folder is, too. */
static weir_err sink_files_finish(weir_simulate_sink *sink) {
    weir_err err = sink_files_each(sink, weir_simulate_lines_sync);
    return err ? err : weir_folder_sync(((sink_files *)sink)->folder);
}

static weir_err sink_files_close(weir_simulate_sink *sink) {
    weir_err err = sink_files_each(sink, weir_simulate_lines_close);
    weir_free(((sink_files *)sink)->folder);
    weir_free(sink);
    return err;
}

weir_err weir_simulate_sink_files(const weir_simulate_sink_opts *opts, const char *where, weir_simulate_sink **sinkp) {
    *sinkp = NULL;
    if (!*where) return WEIR_ERR(WEIR_EUSAGE, "--to file: names no folder; write file:FOLDER");
    sink_files *files = weir_calloc(1, sizeof *files);
    if (!files) return WEIR_NOMEM("for the files");
    files->base = (weir_simulate_sink){sink_files_put, sink_files_rest, sink_files_finish, sink_files_close};
    files->folder = weir_strdup(where);
    weir_err err = files->folder ? weir_folder_create(where) : WEIR_NOMEM("for the files");
    for (int topic = 0; !err && topic < WEIR_SIMULATE_TOPICS; topic++) {
        char path[4096];
        if (!opts->topics[topic]) continue;
        int length = snprintf(path, sizeof path, "%s/%s.jsonl", where, weir_simulate_topic_name(topic));
        err =
            length > 0 && (size_t)length < sizeof path
                ? weir_simulate_lines_open(&files->topics[topic], path)
                : WEIR_ERR(WEIR_EUSAGE, "--to names a path of more than %zu bytes; choose a shorter one", sizeof path);
    }
    if (err) {
        weir_err_keep(&err, sink_files_close(&files->base));
        return err;
    }
    *sinkp = &files->base;
    return WEIR_OK;
}

/* --- stdout ------------------------------------------------------------------------------------------------------- */

typedef struct sink_stdout {
    weir_simulate_sink base;
    weir_simulate_lines lines; /* without a file */
} sink_stdout;

static weir_err sink_stdout_rest(weir_simulate_sink *sink) {
    return weir_simulate_lines_flush(&((sink_stdout *)sink)->lines);
}

static weir_err sink_stdout_put(weir_simulate_sink *sink, const weir_simulate_message *message) {
    return sink_put_line(&((sink_stdout *)sink)->lines, message);
}

static weir_err sink_stdout_close(weir_simulate_sink *sink) {
    weir_free(((sink_stdout *)sink)->lines.buffer);
    weir_free(sink);
    return WEIR_OK;
}

weir_err weir_simulate_sink_stdout(weir_simulate_sink **sinkp) {
    *sinkp = NULL;
    sink_stdout *out = weir_calloc(1, sizeof *out);
    if (!out) return WEIR_NOMEM("for the output");
    out->base = (weir_simulate_sink){sink_stdout_put, sink_stdout_rest, sink_stdout_rest, sink_stdout_close};
    out->lines.buffer = weir_malloc(WEIR_SIMULATE_LINES_BUFFER);
    if (!out->lines.buffer) {
        sink_stdout_close(&out->base);
        return WEIR_NOMEM("for the output");
    }
    *sinkp = &out->base;
    return WEIR_OK;
}

/* --- which -------------------------------------------------------------------------------------------------------- */

static const char *sink_after(const char *to, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(to, prefix, length) == 0 ? to + length : NULL;
}

weir_err weir_simulate_sink_open(const weir_simulate_sink_opts *opts, weir_simulate_sink **sinkp) {
    const char *where;
    WEIR_ON_ROLE(MAIN);
    *sinkp = NULL;
    if (strcmp(opts->to, "-") == 0) return weir_simulate_sink_stdout(sinkp);
    if ((where = sink_after(opts->to, "file:"))) return weir_simulate_sink_files(opts, where, sinkp);
    if ((where = sink_after(opts->to, "log:"))) return weir_simulate_sink_log(opts, where, sinkp);
    if ((where = sink_after(opts->to, "kafka:"))) return weir_simulate_sink_kafka(opts, where, sinkp);
    return WEIR_ERR(WEIR_EUSAGE, "--to is '%.60s'; it must be -, file:FOLDER, log:FOLDER or kafka:BROKERS", opts->to);
}
