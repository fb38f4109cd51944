/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - `weir load`: files of JSON lines or CSV into a store, or into the event log that feeds one.
 *
 * Into a store a file goes through the same pipeline as a topic: a file is known by its bytes, so an interrupted load
 * goes on where it was, and a file that was loaded is not loaded twice. One file after the other: what one deletes,
 * the next may put again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/ingest/map/map.h>
#include <weir/ingest/pipeline/lines.h>
#include <weir/ingest/pipeline/pipeline.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/progress.h>
#include <weir/store/base/signals.h>
#include <weir/store/cmd/store.h>

#include "dlq_private.h"

#define PATH_BYTES 4096u
#define LINES_MAX  4096u
#define LOOK_US    100000

extern const weir_command weir_command_load;

typedef struct cmd_load {
    const weir_cli *cli;
    char store[PATH_BYTES], eventlog[PATH_BYTES];
    weir_schema *schema;
    uint32_t source; /* NONE: by each file's name, or the only one */
    weir_graph *graph;
    weir_progress *progress;
    uint64_t records, letters, files;
} cmd_load;

static weir_err cmd_load_stopped(const cmd_load *load) {
    if (!weir_signals_stop_asked()) return WEIR_OK;
    return WEIR_ERR(WEIR_ECANCELLED,
                    "interrupted after %" PRIu64 " records, which stay; load the same files again to go on",
                    load->records);
}

/* --- which source ----------------------------------------------------------------------------------------------- */

static weir_err cmd_load_no_source(const cmd_load *load, const char *path) {
    weir_buf names = {0};
    for (uint32_t i = 0; i < weir_schema_source_count(load->schema); i++)
        weir_buf_printf(&names, "%s%s", i ? ", " : "", weir_schema_source_at(load->schema, i)->name);
    weir_err err = WEIR_ERR(WEIR_EUSAGE, "which source is %.200s? Give --source, one of: %s", path,
                            names.bytes ? names.bytes : "(the schema has none)");
    weir_buf_free(&names);
    return err;
}

/* --source, the schema's only one, or the one that the file is called after: payments.jsonl, payments-2026.csv. */
static weir_err cmd_load_source_of(const cmd_load *load, const char *path, uint32_t *sourcep) {
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    uint32_t best = WEIR_SCHEMA_NONE;
    size_t best_length = 0;
    if (load->source == WEIR_SCHEMA_NONE && weir_schema_source_count(load->schema) == 1) best = 0;
    for (uint32_t i = 0; load->source == WEIR_SCHEMA_NONE && i < weir_schema_source_count(load->schema); i++) {
        const char *name = weir_schema_source_at(load->schema, i)->name;
        size_t length = strlen(name);
        bool called = strncmp(base, name, length) == 0 && (base[length] == '\0' || strchr(".-_", base[length]));
        if (!called || length <= best_length) continue;
        best = i;
        best_length = length;
    }
    *sourcep = load->source != WEIR_SCHEMA_NONE ? load->source : best;
    return *sourcep == WEIR_SCHEMA_NONE ? cmd_load_no_source(load, path) : WEIR_OK;
}

/* --- into a store ----------------------------------------------------------------------------------------------- */

static weir_err cmd_load_run_pipeline(cmd_load *load, weir_pipeline *pipeline) {
    weir_pipeline_source_stats stats;
    uint64_t told = 0;
    weir_err err = weir_pipeline_start(pipeline);
    do {
        if (!err) err = weir_pipeline_drain(pipeline, LOOK_US);
        weir_pipeline_source_stats_get(pipeline, 0, &stats);
        weir_progress_add(load->progress, stats.records - told);
        told = stats.records;
        if (!weir_err_is(err, WEIR_ETIMEOUT)) break;
        err = cmd_load_stopped(load);
    } while (!err);
    load->records += stats.records;
    load->letters += stats.dead_letters;
    return err;
}

/* What a record came to is in the store when every shard has sealed its offset, and not before. */
static weir_err cmd_load_check_sealed(void *context, const weir_pipeline_partition_stats *stats) {
    (void)context;
    if (stats->offset_sealed >= stats->offset_read && stats->offset_read >= stats->offset_end) return WEIR_OK;
    return WEIR_ERR(WEIR_EIO,
                    "only %" PRIu64 " of the lines below %" PRIu64
                    " are in the store; remove the cause and load the same files again to go on",
                    stats->offset_sealed, stats->offset_end);
}

static weir_err cmd_load_into_store(cmd_load *load, const char *path, uint32_t source) {
    const weir_pipeline_source from = {.source = source, .stream = WEIR_PIPELINE_FILE, .path = path};
    const weir_pipeline_opts opts = {.graph = load->graph,
                                     .folder = load->store,
                                     .letter_folder = load->eventlog,
                                     .sources = &from,
                                     .source_count = 1};
    weir_pipeline *pipeline;
    weir_err err = weir_pipeline_open(&opts, &pipeline);
    if (err) return err;
    err = cmd_load_run_pipeline(load, pipeline);
    if (!err) err = weir_graph_seal(load->graph);
    if (!err) err = weir_graph_health(load->graph);
    if (!err) err = weir_pipeline_partitions(pipeline, cmd_load_check_sealed, NULL);
    weir_err_keep(&err, weir_pipeline_close(pipeline));
    return err;
}

static weir_err cmd_load_open_graph(cmd_load *load) {
    const weir_config *config = weir_cli_config(load->cli);
    const weir_graph_opts opts = {
        .create = true,
        .piles = true,
        .shards = (uint32_t)weir_config_u64(config, WEIR_CONFIG_STORE_SHARDS),
        .memory_bytes = weir_config_u64(config, WEIR_CONFIG_STORE_MEMORY),
        .seal_us = weir_config_us(config, WEIR_CONFIG_STORE_SEAL_INTERVAL),
        .window = (uint32_t)weir_config_u64(config, WEIR_CONFIG_STORE_WINDOW),
        .event_window = (uint32_t)weir_config_u64(config, WEIR_CONFIG_INGEST_EVENT_WINDOW),
        .future_us = weir_config_us(config, WEIR_CONFIG_INGEST_FUTURE_MAX),
        .id_key_path = weir_config_text(config, WEIR_CONFIG_STORE_ID_KEY),
    };
    weir_err err = weir_graph_open(load->store, load->schema, &opts, &load->graph);
    if (!weir_err_is(err, WEIR_EBUSY)) return err;
    return weir_err_prefix(err, "the server has the store: stop it, or append to its log with POST /v1/events");
}

/* --- into the event log ----------------------------------------------------------------------------------------- */

typedef struct cmd_load_log {
    cmd_load *load;
    const weir_schema_source *source;
    weir_eventlog *log;
    weir_mapper *mapper;
    weir_lines *lines;
    weir_line line[LINES_MAX];
    weir_record records[LINES_MAX];
    uint32_t partition[LINES_MAX];
} cmd_load_log;

/* By the event's id; what has none that can be read becomes a dead letter later, wherever it stands. */
static uint32_t cmd_load_partition_of(const cmd_load_log *c, const weir_line *line) {
    weir_mapped mapped;
    weir_err err = weir_mapper_map(c->mapper, 0, 0, line->bytes, line->length, &mapped);
    return err || !mapped.event_id ? 0 : weir_eventlog_partition_of(c->log, mapped.event_id, mapped.event_id_length);
}

/* A line that only names the columns is left out, one that is too long is an error: a log takes whole messages only. */
static weir_err cmd_load_append_lines(cmd_load_log *c, size_t count) {
    int64_t now_us = weir_clock_wall_us(weir_clock_system());
    size_t taken = 0;
    WEIR_ASSERT(count <= LINES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (weir_line_names_columns(&c->line[i], c->source)) continue;
        if (c->line[i].cut > 0) {
            return WEIR_ERR(WEIR_ELIMIT, "line %" PRIu64 " is longer than %u bytes", c->line[i].number + 1,
                            WEIR_LINE_MAX);
        }
        c->line[taken] = c->line[i];
        c->partition[taken] = cmd_load_partition_of(c, &c->line[taken]);
        taken++;
    }
    weir_err err = WEIR_OK;
    for (uint32_t p = 0; !err && p < weir_eventlog_partitions(c->log); p++) {
        size_t records = 0;
        uint64_t offset;
        for (size_t i = 0; i < taken; i++) {
            if (c->partition[i] != p) continue;
            c->records[records++] =
                (weir_record){.time_us = now_us, .value = c->line[i].bytes, .value_length = c->line[i].length};
        }
        if (records) err = weir_eventlog_append(c->log, p, c->records, records, &offset);
    }
    if (!err) err = weir_eventlog_sync(c->log);
    if (err) return err;
    c->load->records += taken;
    weir_progress_add(c->load->progress, taken);
    return WEIR_OK;
}

static weir_err cmd_load_into_log(cmd_load *load, const char *path, uint32_t source) {
    const weir_config *config = weir_cli_config(load->cli);
    const weir_eventlog_opts opts = {
        .partitions = (uint32_t)weir_config_u64(config, WEIR_CONFIG_EVENTLOG_PARTITIONS),
        .segment_bytes = weir_config_u64(config, WEIR_CONFIG_EVENTLOG_SEGMENT_BYTES),
    };
    cmd_load_log *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("while loading %s", path);
    c->load = load;
    c->source = weir_schema_source_at(load->schema, source);
    weir_err err = weir_mapper_open(load->schema, source, &weir_id_key_public, &c->mapper);
    if (!err) err = weir_eventlog_open(load->eventlog, c->source->topic, &opts, &c->log);
    if (!err) err = weir_err_prefix(weir_lines_open(path, &c->lines), "%s", path);
    for (size_t count = 1; !err && count;) {
        err = weir_lines_next(c->lines, c->line, LINES_MAX, &count);
        if (!err && count) err = cmd_load_append_lines(c, count);
        if (!err) err = cmd_load_stopped(c->load);
        err = weir_err_prefix(err, "%s", path);
    }
    weir_lines_close(c->lines);
    weir_err_keep(&err, weir_eventlog_close(c->log));
    weir_mapper_close(c->mapper);
    weir_free(c);
    return err;
}

/* --- the command ------------------------------------------------------------------------------------------------ */

static weir_err cmd_load_folder(const cmd_load *load, const char *name, weir_config_key key, char path[PATH_BYTES]) {
    const char *data = weir_cli_text(load->cli, "data");
    int length = data ? snprintf(path, PATH_BYTES, "%s/%s", data, name)
                      : snprintf(path, PATH_BYTES, "%s", weir_config_text(weir_cli_config(load->cli), key));
    if (length < 0 || length >= (int)PATH_BYTES)
        return WEIR_ERR(WEIR_EUSAGE, "the path of the data folder is too long");
    return WEIR_OK;
}

static weir_err cmd_load_read_options(cmd_load *load) {
    const char *name = weir_cli_text(load->cli, "source"), *schema = weir_cli_text(load->cli, "schema");
    char stored[PATH_BYTES + 16];
    weir_err err = cmd_load_folder(load, "store", WEIR_CONFIG_STORE_PATH, load->store);
    if (!err) err = cmd_load_folder(load, "eventlog", WEIR_CONFIG_EVENTLOG_PATH, load->eventlog);
    if (err) return err;
    snprintf(stored, sizeof stored, "%s/schema.yaml", load->store); /* the one that the store was written under */
    if (schema) {
        err = weir_schema_load_named(schema, &load->schema);
    } else if (weir_path_exists(stored)) {
        err = weir_graph_schema_of(load->store, &load->schema);
    } else {
        err = WEIR_ERR(WEIR_EUSAGE, "there is no store in %s to take the schema from; give --schema", load->store);
    }
    if (err || !name) return err;
    load->source = weir_schema_source_find(load->schema, name);
    return load->source == WEIR_SCHEMA_NONE ? cmd_load_no_source(load, name) : WEIR_OK;
}

/* Every argument is checked before the first is loaded. */
static weir_err cmd_load_check_files(const cmd_load *load) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < weir_cli_positional_count(load->cli); i++) {
        const char *path = weir_cli_positional(load->cli, i);
        uint32_t source;
        err = cmd_load_source_of(load, path, &source);
        if (!err && !weir_path_exists(path)) err = WEIR_ERR(WEIR_ENOTFOUND, "there is no file %.400s", path);
    }
    return err;
}

static weir_err cmd_load_run(weir_cli *cli) {
    cmd_load load = {.cli = cli, .source = WEIR_SCHEMA_NONE};
    weir_buf line = {0};
    const char *to = weir_cli_text(cli, "to");
    bool to_log = to && strcmp(to, "log") == 0;
    const weir_progress_opts progress = {.what = "records", .fd = STDERR_FILENO};
    weir_err err = cmd_load_read_options(&load);
    if (!err) err = cmd_load_check_files(&load);
    if (!err) err = weir_signals_install();
    if (!err) err = weir_progress_open(&progress, &load.progress);
    if (!err && !to_log) err = cmd_load_open_graph(&load);
    for (size_t i = 0; !err && i < weir_cli_positional_count(cli); i++) {
        const char *path = weir_cli_positional(cli, i);
        uint32_t source;
        err = cmd_load_source_of(&load, path, &source);
        if (!err) err = to_log ? cmd_load_into_log(&load, path, source) : cmd_load_into_store(&load, path, source);
        if (!err) load.files++;
    }
    weir_err_keep(&err, weir_graph_close(load.graph)); /* seals */
    weir_progress_close(load.progress);
    if (!err) {
        weir_buf_printf(&line, "%" PRIu64 " records of %" PRIu64 " %s", load.records, load.files,
                        load.files == 1 ? "file" : "files");
        if (load.letters) weir_buf_printf(&line, ", %" PRIu64 " of them set aside: weir ingest dlq list", load.letters);
        weir_buf_byte(&line, '\n');
        err = weir_cmd_print(&line);
    }
    weir_schema_free(load.schema);
    return err;
}

static const weir_option cmd_load_options[] = {
    {"schema", 'S', "FILE|NAME", "how the files become a graph (default: the schema of the store)", NULL},
    {"source", 's', "NAME", "of the schema (default: its only one, or the one that the file is called after)", NULL},
    {"to", 't', "PLACE",
     "store: now, while no server uses it; log: into its topic, for the server to read (default: store)", "store|log"},
    {"data", 'd', "DIR", "folder of store and event log (default: store.path and eventlog.path)", NULL},
    {0},
};

const weir_command weir_command_load = {
    .name = "load",
    .summary = "load files of JSON lines or CSV",
    .positional = "FILE...",
    .positional_min = 1,
    .positional_max = 256,
    .description =
        "A line is a message, in the format that the schema's source says; a first line that only names the columns "
        "is passed over. Into a store, a file is known by its bytes: loading it again adds nothing, and after an "
        "interruption it goes on. Messages that cannot be taken are set aside: weir ingest dlq list.",
    .example = "weir load payments.jsonl --schema payments\nweir load --source clicks --to log clicks-2026-*.csv",
    .options = cmd_load_options,
    .run = cmd_load_run,
};
