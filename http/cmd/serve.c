/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - `weir serve`: events in, the living graph out, one process.
 *
 *   logs or Kafka ─► pipeline ─► graph ◄─ api ◄─ http        opened from left to right, closed from right to left
 *
 * A stop is orderly: /readyz says no, then requests end, then events that were acknowledged are applied and sealed. One
 * that is not orderly loses nothing: after kill -9 the next start replays what was not sealed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <weir/http/api/api.h>
#include <weir/inference/kernel/device.h>
#include <weir/inference/score/scoring.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>
#include <weir/store/base/signals.h>
#include <weir/store/base/thread.h>
#include <weir/store/cli/cli.h>

#include "serve_private.h"

extern const weir_command weir_command_serve;

#define PATH_MAX_BYTES WEIR_SERVE_PATH_MAX
#define LOOK_US        20000 /* between two checks of how far the pipeline is */

#define DESCRIPTORS_MAX ((rlim_t)1 << 18)

typedef struct service {
    const weir_config *config;
    char store[PATH_MAX_BYTES], eventlog[PATH_MAX_BYTES], models[PATH_MAX_BYTES], data_keys[PATH_MAX_BYTES];
    char checkpoints[PATH_MAX_BYTES], nights[PATH_MAX_BYTES], seen[PATH_MAX_BYTES];
    const char *brokers; /* NULL: the built-in event log */
    weir_schema *schema;
    weir_eventlog *logs[WEIR_SCHEMA_SOURCES_MAX]; /* one a source; sources of one topic share theirs */
    weir_pipeline_source sources[WEIR_SCHEMA_SOURCES_MAX];
    int64_t retained_us[WEIR_SCHEMA_SOURCES_MAX];
    uint32_t source_count;
    weir_graph *graph;
    weir_pipeline *pipeline;
    weir_id_key id_key; /* of the store that was set aside */
    bool has_id_key;
    const char *key_file; /* NULL: every caller is an admin, from this machine only */
    weir_api_keys *keys;
    const weir_kernels *kernels; /* of scoring */
    weir_scoring *scoring;
    weir_scoring_watch *watch;
    weir_api *api;
    weir_http *http;
} service;

/* --- what is asked -------------------------------------------------------------------------------------------- */

/* FOLDER/NAME, or FOLDER where name is NULL. */
static weir_err serve_set_path(char path[PATH_MAX_BYTES], const char *folder, const char *name) {
    int length = snprintf(path, PATH_MAX_BYTES, "%s%s%s", folder, name ? "/" : "", name ? name : "");
    if (length > 0 && (unsigned)length < PATH_MAX_BYTES) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "the path of a data folder is empty or longer than %u bytes; use a shorter one",
                    PATH_MAX_BYTES);
}

static weir_err serve_read_arguments(service *serve, const weir_cli *cli) {
    const weir_config *config = serve->config = weir_cli_config(cli);
    const char *data = weir_cli_text(cli, "data"), *schema = weir_cli_text(cli, "schema");
    const char *models = weir_cli_text(cli, "models"), *keys = weir_cli_text(cli, "keys");
    if (!schema)
        return WEIR_ERR(WEIR_EUSAGE,
                        "--schema is missing; name a schema file, or a shipped schema of `weir schema list`");

    /* Store, log and models: in the folder of --data, or where the settings say. */
    weir_err err = data ? serve_set_path(serve->store, data, "store")
                        : serve_set_path(serve->store, weir_config_text(config, WEIR_CONFIG_STORE_PATH), NULL);
    if (!err)
        err = data ? serve_set_path(serve->eventlog, data, "eventlog")
                   : serve_set_path(serve->eventlog, weir_config_text(config, WEIR_CONFIG_EVENTLOG_PATH), NULL);
    if (!err)
        err = models ? serve_set_path(serve->models, models, NULL)
              : data ? serve_set_path(serve->models, data, "models")
                     : serve_set_path(serve->models, weir_config_text(config, WEIR_CONFIG_MODELS_PATH), NULL);
    if (!err && data) err = serve_set_path(serve->data_keys, data, "models.pub");
    if (err) return err;

    /* The store's siblings, two of them as `weir nightly` has them. */
    err = weir_path_beside(serve->checkpoints, sizeof serve->checkpoints, serve->store, "checkpoints");
    if (!err) err = weir_path_beside(serve->nights, sizeof serve->nights, serve->store, "nights");
    if (!err) err = weir_path_beside(serve->seen, sizeof serve->seen, serve->store, "models.seen");
    if (err) return err;

    if (weir_cli_given(cli, "kafka")) {
        const char *brokers = weir_cli_text(cli, "kafka");
        serve->brokers = brokers && *brokers ? brokers : weir_config_text(config, WEIR_CONFIG_KAFKA_BROKERS);
    }
    err = weir_schema_load_named(schema, &serve->schema);
    if (!keys) keys = weir_config_text(config, WEIR_CONFIG_HTTP_KEYS);
    if (err || !*keys) return err;
    serve->key_file = keys;
    return weir_api_keys_load(keys, &serve->keys);
}

/* --- opening -------------------------------------------------------------------------------------------------- */

/* The log of this source's topic, if an earlier source has it open already. */
static weir_eventlog *serve_shared_log(const service *serve, uint32_t source) {
    WEIR_ASSERT(source < serve->source_count);
    const char *topic = weir_schema_source_at(serve->schema, source)->topic;
    for (uint32_t i = 0; i < source; i++)
        if (!strcmp(weir_schema_source_at(serve->schema, i)->topic, topic)) return serve->logs[i];
    return NULL;
}

static weir_err serve_open_sources(service *serve) {
    const weir_config *config = serve->config;
    const weir_eventlog_opts opts = {
        .partitions = (uint32_t)weir_config_u64(config, WEIR_CONFIG_EVENTLOG_PARTITIONS),
        .segment_bytes = weir_config_u64(config, WEIR_CONFIG_EVENTLOG_SEGMENT_BYTES),
        .retain_bytes = weir_config_u64(config, WEIR_CONFIG_EVENTLOG_RETAIN_BYTES),
        .retain_us = weir_config_us(config, WEIR_CONFIG_EVENTLOG_RETAIN_AGE),
    };
    weir_err err = weir_folder_create(serve->eventlog);
    if (!err) err = weir_folder_guarded(serve->eventlog);
    serve->source_count = weir_schema_source_count(serve->schema);
    WEIR_ASSERT(serve->source_count <= WEIR_SCHEMA_SOURCES_MAX);
    if (!err && !serve->source_count)
        err = WEIR_ERR(WEIR_ECONFIG, "schema %s has no source, so no events can arrive; add a source to it",
                       weir_schema_name(serve->schema));
    for (uint32_t i = 0; !err && i < serve->source_count; i++) {
        const char *topic = weir_schema_source_at(serve->schema, i)->topic;
        if (!serve->brokers) serve->logs[i] = serve_shared_log(serve, i);
        if (!serve->brokers && !serve->logs[i])
            err = weir_eventlog_open(serve->eventlog, topic, &opts, &serve->logs[i]);
        serve->sources[i] = (weir_pipeline_source){
            .source = i,
            .stream = serve->brokers ? WEIR_PIPELINE_KAFKA : WEIR_PIPELINE_EVENTLOG,
            .log = serve->logs[i],
        };
    }
    return err;
}

/* STORE.aside-20261122T080000Z: nothing is ever removed. No other process may have it open. The new store takes over
 * the key of ids, so that it puts equal times in the same order. */
static weir_err serve_set_store_aside(service *serve) {
    char aside[PATH_MAX_BYTES + 32], lock_path[PATH_MAX_BYTES + 8], stamp[32];
    weir_file *lock = NULL;
    if (!weir_path_exists(serve->store)) return WEIR_OK;
    weir_err err = weir_graph_id_key_of(serve->store, &serve->id_key);
    serve->has_id_key = !err && !*weir_config_text(serve->config, WEIR_CONFIG_STORE_ID_KEY);
    if (err) weir_log_error("serve.id_key", weir_err_prefix(err, "--rebuild: the new store gets a new key of ids"));
    time_t now = (time_t)(weir_clock_wall_us(weir_clock_system()) / WEIR_US_PER_S);
    struct tm tm;
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    snprintf(aside, sizeof aside, "%s.aside-%s", serve->store, stamp);
    snprintf(lock_path, sizeof lock_path, "%s/LOCK", serve->store);
    err = weir_file_open(lock_path, WEIR_FILE_OPEN_OR_CREATE, &lock);
    if (!err) err = weir_file_lock(lock);
    if (!err && weir_path_exists(aside)) err = WEIR_ERR(WEIR_EEXIST, "%s exists already; try again", aside);
    if (!err) err = weir_file_rename(serve->store, aside);
    if (lock) weir_err_keep(&err, weir_file_close(lock));
    if (!err)
        WEIR_LOG(WARN, "serve.rebuild", "the store was moved aside; a new one is filled from the log",
                 WEIR_TEXT("aside", aside), WEIR_TEXT("store", serve->store));
    return weir_err_prefix(err, "--rebuild");
}

static weir_err serve_open_graph(service *serve) {
    const weir_graph_opts opts = {
        .shards = (uint32_t)weir_config_u64(serve->config, WEIR_CONFIG_STORE_SHARDS),
        .memory_bytes = weir_config_u64(serve->config, WEIR_CONFIG_STORE_MEMORY),
        .seal_us = weir_config_us(serve->config, WEIR_CONFIG_STORE_SEAL_INTERVAL),
        .window = (uint32_t)weir_config_u64(serve->config, WEIR_CONFIG_STORE_WINDOW),
        .event_window = (uint32_t)weir_config_u64(serve->config, WEIR_CONFIG_INGEST_EVENT_WINDOW),
        .future_us = weir_config_us(serve->config, WEIR_CONFIG_INGEST_FUTURE_MAX),
        .id_key_path = weir_config_text(serve->config, WEIR_CONFIG_STORE_ID_KEY),
        .id_key = serve->has_id_key ? &serve->id_key : NULL,
        .create = true,
        .from_log = true,
        .repairs = weir_config_bool(serve->config, WEIR_CONFIG_STORE_REPAIR),
        .checkpoints = serve->checkpoints,
    };
    return weir_graph_open(serve->store, serve->schema, &opts, &serve->graph);
}

static weir_err serve_open_pipeline(service *serve) {
    const weir_pipeline_opts opts = {
        .graph = serve->graph,
        .folder = serve->store,
        .letter_folder = serve->eventlog,
        .sources = serve->sources,
        .source_count = serve->source_count,
        .brokers = serve->brokers,
        .kafka_timeout_us = weir_config_us(serve->config, WEIR_CONFIG_KAFKA_TIMEOUT),
        .idle_us = weir_config_us(serve->config, WEIR_CONFIG_INGEST_IDLE),
        .checkpoints = serve->checkpoints,
        .repairs = weir_config_bool(serve->config, WEIR_CONFIG_STORE_REPAIR),
        .scrub_us = weir_config_us(serve->config, WEIR_CONFIG_STORE_SCRUB_INTERVAL),
    };
    weir_kill_point("serve.opened"); /* what was sealed is there, nothing is replayed */
    weir_err err = weir_pipeline_open(&opts, &serve->pipeline);
    return err ? err : weir_pipeline_start(serve->pipeline);
}

/* What a server computes on decides how long it takes, and not whether it answers. */
static weir_err serve_open_device(service *serve) {
    weir_err missing;
    weir_err err = weir_kernels_open_or_cpu(weir_config_text(serve->config, WEIR_CONFIG_INFERENCE_DEVICE), 0,
                                            &serve->kernels, &missing);
    if (!err && missing) weir_log_error("inference.device", missing);
    return err;
}

static weir_err serve_open_scoring(service *serve) {
    weir_err err = serve_open_device(serve);
    const weir_scoring_opts scoring = {
        .graph = serve->graph,
        .threads = (uint32_t)weir_config_u64(serve->config, WEIR_CONFIG_SCORE_THREADS),
        .delay_us = weir_config_us(serve->config, WEIR_CONFIG_SCORE_DELAY),
    };
    if (!err) err = weir_scoring_open(&scoring, &serve->scoring);
    const weir_scoring_watch_opts watch = {
        .scoring = serve->scoring,
        .schema = serve->schema,
        .folder = serve->models,
        .data_keys = serve->data_keys[0] ? serve->data_keys : NULL,
        .public_keys = weir_config_text(serve->config, WEIR_CONFIG_MODELS_PUBLIC_KEYS),
        .seen = serve->seen,
        .accept_unsigned = !weir_config_bool(serve->config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE),
        .kernels = serve->kernels,
    };
    if (!err) err = weir_scoring_watch_open(&watch, &serve->watch);
    if (!err) weir_scoring_watch_look(serve->watch, true);
    return err;
}

static weir_err serve_open_api(service *serve) {
    const weir_api_opts opts = {
        .graph = serve->graph,
        .pipeline = serve->pipeline,
        .logs = serve->logs,
        .scoring = serve->scoring,
        .watch = serve->watch,
        .keys = serve->keys,
        .checkpoints = serve->checkpoints,
        .nights = serve->nights,
        .nightly_every_us = weir_config_us(serve->config, WEIR_CONFIG_NIGHTLY_EVERY),
        .loops = (uint32_t)weir_config_u64(serve->config, WEIR_CONFIG_HTTP_THREADS),
        .stale_max_us = weir_config_us(serve->config, WEIR_CONFIG_INGEST_STALE_MAX),
        .behind_max = weir_config_u64(serve->config, WEIR_CONFIG_INGEST_BEHIND_MAX),
    };
    return weir_api_open(&opts, &serve->api);
}

/* As many open files as the system allows: the usual soft limit of 1024 is for programs that use select(), which Weir
 * does not. Children inherit the limit, and some close every number up to it, so there is a maximum. */
static void serve_raise_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    rlim_t wanted = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    if (limit.rlim_cur >= wanted) return;
    limit.rlim_cur = wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* if it fails, clients get half of what there is */
}

/* Half of the descriptors are kept for the store, the log, the broker and the models: clients must not take them. */
static uint32_t serve_connections(const weir_config *config) {
    uint64_t connections = weir_config_u64(config, WEIR_CONFIG_HTTP_CONNECTIONS);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur / 2 >= connections) return (uint32_t)connections;
    WEIR_LOG(
        WARN, "serve.descriptors",
        "fewer connections than http.connections are allowed; raise the limit of open files (ulimit -n, LimitNOFILE=)",
        WEIR_U64("connections", limit.rlim_cur / 2), WEIR_U64("limit", limit.rlim_cur));
    return limit.rlim_cur > 2 ? (uint32_t)(limit.rlim_cur / 2) : 1;
}

static weir_err serve_open_http(service *serve, const weir_cli *cli) {
    const weir_config *config = serve->config;
    const char *listen = weir_cli_text(cli, "listen");
    weir_http_opts opts = {
        .listen = listen ? listen : weir_config_text(config, WEIR_CONFIG_HTTP_LISTEN),
        .loops = (uint32_t)weir_config_u64(config, WEIR_CONFIG_HTTP_THREADS),
        .connections = serve_connections(config),
        .connections_per_ip = (uint32_t)weir_config_u64(config, WEIR_CONFIG_HTTP_CONNECTIONS_PER_IP),
        .header_bytes = (uint32_t)weir_config_u64(config, WEIR_CONFIG_HTTP_HEADER_BYTES),
        .memory_bytes = weir_config_u64(config, WEIR_CONFIG_HTTP_MEMORY),
        .idle_us = weir_config_us(config, WEIR_CONFIG_HTTP_IDLE_TIMEOUT),
        .request_us = weir_config_us(config, WEIR_CONFIG_HTTP_REQUEST_TIMEOUT),
        .context = serve->api,
        .authenticate = serve->keys ? weir_api_authenticate : NULL,
    };
    opts.routes = weir_api_routes(&opts.route_count);
    return weir_http_open(&opts, &serve->http);
}

static weir_err serve_open(service *serve, const weir_cli *cli) {
    weir_err err = serve_read_arguments(serve, cli);
    if (!err) err = serve_open_sources(serve);
    if (!err && weir_cli_given(cli, "rebuild")) err = serve_set_store_aside(serve);
    if (!err) err = serve_open_graph(serve);
    if (!err) err = serve_open_pipeline(serve);
    if (!err) err = serve_open_scoring(serve);
    if (!err) err = serve_open_api(serve);
    return err ? err : serve_open_http(serve, cli);
}

/* --- running -------------------------------------------------------------------------------------------------- */

/* A key that is no longer in the file is refused from here on. A file that cannot be read leaves the keys as they were:
 * else a typing error would lock everyone out. */
static void serve_reload_keys(service *serve) {
    if (!serve->keys) return;
    weir_err err = weir_api_keys_reload(serve->keys, serve->key_file);
    if (err)
        weir_log_error("serve.keys_refused", weir_err_prefix(err, "the API keys stay as they were"));
    else
        WEIR_LOG(INFO, "serve.keys", "the API keys were reloaded", WEIR_TEXT("file", serve->key_file));
}

static void serve_wait_for_stop(service *serve) {
    WEIR_ON_ROLE(MAIN);
    bool ready = false;
    while (!weir_signals_wait(ready ? WEIR_US_PER_S : LOOK_US)) {
        bool again = weir_signals_hung_up();
        if (again) serve_reload_keys(serve);
        weir_scoring_watch_look(serve->watch, again);
        for (uint32_t i = 0; !serve->brokers && i < serve->source_count; i++) {
            const char *topic = weir_schema_source_at(serve->schema, i)->topic;
            if (!serve_shared_log(serve, i))
                weir_serve_retain(serve->graph, serve->logs[i], topic, &serve->retained_us[i]);
        }
        weir_api_nightly_look(serve->api);
        if (ready || !weir_api_look(serve->api)) continue;
        ready = true;
        weir_kill_point("serve.ready");
        WEIR_LOG(INFO, "serve.ready", "caught up and ready", WEIR_TEXT("url", weir_http_url(serve->http)));
    }
}

/* The API's threads finish what is deferred, so they outlive the loops; the loops' memory outlives both. */
static void serve_close(service *serve, weir_err *errp) {
    if (serve->http) weir_http_stop(serve->http, 0);
    weir_scoring_watch_close(serve->watch);
    weir_scoring_close(serve->scoring);
    weir_api_close(serve->api);
    weir_http_close(serve->http);
    if (serve->kernels) serve->kernels->close(serve->kernels); /* the last model is gone */
    weir_err_keep(errp, weir_pipeline_close(serve->pipeline));
    if (serve->graph) weir_err_keep(errp, weir_graph_close(serve->graph));
    for (uint32_t i = 0; serve->schema && i < WEIR_SCHEMA_SOURCES_MAX; i++)
        if (serve->logs[i] && !(i && serve_shared_log(serve, i)))
            weir_err_keep(errp, weir_eventlog_close(serve->logs[i]));
    weir_api_keys_free(serve->keys);
    weir_schema_free(serve->schema);
}

static weir_err serve_run(weir_cli *cli) {
    weir_buf out = {0};
    service *serve = weir_calloc(1, sizeof *serve);
    if (!serve) return WEIR_NOMEM("for the server");
    weir_alloc_return_large();
    serve_raise_descriptors();
    weir_signals_take_hangups();
    weir_err err = weir_signals_install();
    if (!err) err = serve_open(serve, cli);
    if (!err) {
        weir_buf_printf(&out, "%s serves schema %s from %s, events from %s\n", weir_http_url(serve->http),
                        weir_schema_name(serve->schema), serve->store,
                        serve->brokers ? serve->brokers : serve->eventlog);
        err = weir_buf_err(&out);
    }
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    if (!err) {
        serve_wait_for_stop(serve);
        weir_api_stopping(serve->api);
        weir_kill_point("serve.stopping");
        WEIR_LOG(INFO, "serve.stopping", "stopping; requests in flight may end, then the store is sealed");
        int64_t delay_us = weir_config_us(serve->config, WEIR_CONFIG_HTTP_STOP_DELAY);
        if (delay_us) weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + delay_us);
        weir_http_stop(serve->http, weir_config_us(serve->config, WEIR_CONFIG_HTTP_STOP_TIMEOUT));
    }
    serve_close(serve, &err);
    weir_free(serve);
    return err;
}

static const weir_option serve_options[] = {
    {"schema", 's', "FILE|NAME", "schema of the graph: a file, or the name of a shipped schema", NULL},
    {"data", 'd', "DIR", "folder of store and event log (default: store.path and eventlog.path)", NULL},
    {"kafka", 'k', "[BROKERS]", "read events from Kafka (default: kafka.brokers) instead of the built-in log", NULL},
    {"listen", 'l', "HOST:PORT", "address to listen on (default: http.listen)", NULL},
    {"models", 'm', "DIR", "folder of trained models (default: models in the data folder, or models.path)", NULL},
    {"keys", 'K', "FILE", "file of API keys (default: http.keys); without one only this machine is served", NULL},
    {"rebuild", 0, NULL, "move the store to a dated folder beside it and fill a new one from the log", NULL},
    {0},
};

const weir_command weir_command_serve = {
    .name = "serve",
    .summary = "accept events and answer queries about the living graph over HTTP",
    .description =
        "Prints its address once it accepts connections; /readyz answers 200 once all events in the log are applied. "
        "SIGTERM and SIGINT stop it cleanly. SIGHUP makes it reload the API keys and check at once whether another "
        "model was promoted, which it also does once a second. /openapi.json describes the API.",
    .example = "weir serve --schema payments --data weir-data\n"
               "curl -s localhost:8080/v1/neighbors/account/a17",
    .options = serve_options,
    .run = serve_run,
};
