/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_bench.c - the HTTP server against the least that a server can do, on the same sockets under the same load.
 *
 * Three servers: a raw epoll loop that writes an answer made before, as long as the null route's; Weir's null route
 * (/livez: all of the server, nothing of the graph); Weir's neighbours of one account, ten of them, each with its name.
 * First their greatest rates, then their latencies in an open loop, all at one rate: half of what the slowest can do.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http/api/api.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "bench.h"
#include "serve_load.h"

#define ACCOUNTS    2000u
#define PAYMENTS    20000u
#define CONNECTIONS 32u
#define BATCH       1000u
#define ANSWER_MAX  1024u

typedef enum serve_kind { SERVE_RAW, SERVE_NULL, SERVE_NEIGHBORS, SERVE_KINDS } serve_kind;

typedef struct serve_context {
    char folder[PATH_MAX], store[PATH_MAX + 16], eventlog[PATH_MAX + 16];
    weir_schema *schema;
    weir_eventlog *logs[2];
    weir_graph *graph;
    weir_pipeline *pipeline;
    weir_api *api;
    weir_http *http;
    weir_raw_server *raw;
    char answer[ANSWER_MAX];
    uint64_t requests; /* of one run */
    double rate;       /* of the open loop */
} serve_context;

/* One of the three, and what its open loop of a round gave. */
typedef struct serve_target {
    serve_context *c;
    serve_kind kind;
    uint64_t round; /* UINT64_MAX: none yet */
    weir_load_result result;
} serve_target;

/* --- requests ------------------------------------------------------------------------------------------------- */

static size_t request_livez(void *context, uint64_t n, char *buffer, size_t size) {
    (void)context;
    (void)n;
    return (size_t)snprintf(buffer, size, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

static size_t request_neighbors(void *context, uint64_t n, char *buffer, size_t size) {
    weir_rng rng = weir_rng_stream(1, n, 0);
    (void)context;
    return (size_t)snprintf(buffer, size,
                            "GET /v1/neighbors/account/a%llu?relation=paid_by&direction=in&limit=10 HTTP/1.1\r\n"
                            "Host: localhost\r\n\r\n",
                            (unsigned long long)weir_rng_below(&rng, ACCOUNTS));
}

static weir_err load_target(const serve_target *target, uint64_t requests, double rate, weir_load_result *resultp) {
    const serve_context *c = target->c;
    const weir_load_opts opts = {
        .port = target->kind == SERVE_RAW ? weir_raw_server_port(c->raw) : weir_http_port(c->http),
        .connections = CONNECTIONS,
        .requests = requests,
        .rate = rate,
        .request = target->kind == SERVE_NEIGHBORS ? request_neighbors : request_livez,
    };
    return weir_load_run(&opts, resultp);
}

/* --- lines ---------------------------------------------------------------------------------------------------- */

static weir_err run_closed(void *context, uint64_t round, weir_bench_sample *samplep) {
    serve_target *target = context;
    weir_load_result result;
    (void)round;
    weir_err err = load_target(target, target->c->requests, 0, &result);
    samplep->elapsed_ns += result.elapsed_ns;
    samplep->units += (double)target->c->requests;
    return err;
}

/* One open loop a round gives both of its lines. */
static weir_err run_open(serve_target *target, uint64_t round) {
    if (target->round == round) return WEIR_OK;
    target->round = round;
    return load_target(target, target->c->requests, target->c->rate, &target->result);
}

static weir_err run_p50(void *context, uint64_t round, weir_bench_sample *samplep) {
    serve_target *target = context;
    weir_err err = run_open(target, round);
    samplep->elapsed_ns += WEIR_US_PER_S * 1000; /* so that the line's rate is the latency itself */
    samplep->units += target->result.p50_us;
    return err;
}

static weir_err run_p99(void *context, uint64_t round, weir_bench_sample *samplep) {
    serve_target *target = context;
    weir_err err = run_open(target, round);
    samplep->elapsed_ns += WEIR_US_PER_S * 1000;
    samplep->units += target->result.p99_us;
    return err;
}

/* --- the servers ---------------------------------------------------------------------------------------------- */

static weir_err make_folders(serve_context *c) {
    weir_err err = weir_bench_folder_make(c->folder);
    if (!err) err = weir_path_join(c->store, sizeof c->store, c->folder, "store");
    if (!err) err = weir_path_join(c->eventlog, sizeof c->eventlog, c->folder, "eventlog");
    return err ? err : weir_folder_create(c->eventlog);
}

static weir_err append_payments(serve_context *c, uint32_t begin) {
    static char values[BATCH][256];
    weir_record records[BATCH];
    uint64_t first;
    for (uint32_t i = 0; i < BATCH; i++) {
        weir_rng rng = weir_rng_stream(2, begin + i, 0);
        int length =
            snprintf(values[i], sizeof values[i],
                     "{\"id\":\"p%u\",\"time\":\"2026-01-05T%02u:%02u:%02uZ\",\"account\":\"a%u\",\"card\":\"c%u\","
                     "\"merchant\":\"m%u\",\"amount\":%u.5,\"currency\":\"EUR\",\"channel\":\"web\"}",
                     begin + i, (begin + i) / 3600 % 24, (begin + i) / 60 % 60, (begin + i) % 60,
                     (unsigned)weir_rng_below(&rng, ACCOUNTS), (unsigned)weir_rng_below(&rng, ACCOUNTS),
                     (unsigned)weir_rng_below(&rng, 100), (unsigned)weir_rng_below(&rng, 500));
        records[i] = (weir_record){.time_us = begin + i, .value = values[i], .value_length = (size_t)length};
    }
    return weir_eventlog_append(c->logs[0], 0, records, BATCH, &first);
}

static weir_err open_logs(serve_context *c) {
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    const weir_eventlog_opts opts = {.partitions = 1};
    weir_err err = weir_schema_parse("payments", shipped->text, shipped->length, &c->schema);
    for (uint32_t i = 0; !err && i < 2; i++)
        err = weir_eventlog_open(c->eventlog, weir_schema_source_at(c->schema, i)->topic, &opts, &c->logs[i]);
    for (uint32_t done = 0; !err && done < PAYMENTS; done += BATCH)
        err = append_payments(c, done);
    return err ? err : weir_eventlog_sync(c->logs[0]);
}

static weir_err open_graph(serve_context *c) {
    const weir_graph_opts graph_opts = {.shards = 1, .memory_bytes = 256u << 20, .create = true};
    const weir_pipeline_source sources[] = {{.source = 0, .stream = WEIR_PIPELINE_EVENTLOG, .log = c->logs[0]},
                                            {.source = 1, .stream = WEIR_PIPELINE_EVENTLOG, .log = c->logs[1]}};
    weir_err err = weir_graph_open(c->store, c->schema, &graph_opts, &c->graph);
    const weir_pipeline_opts opts = {
        .graph = c->graph, .folder = c->store, .letter_folder = c->eventlog, .sources = sources, .source_count = 2};
    if (!err) err = weir_pipeline_open(&opts, &c->pipeline);
    if (!err) err = weir_pipeline_start(c->pipeline);
    if (!err) err = weir_pipeline_drain(c->pipeline, 60 * WEIR_US_PER_S);
    return err ? err : weir_graph_seal(c->graph);
}

static weir_err open_http(serve_context *c) {
    const weir_api_opts api_opts = {.graph = c->graph, .pipeline = c->pipeline, .logs = c->logs, .loops = 1};
    weir_err err = weir_api_open(&api_opts, &c->api);
    weir_http_opts opts = {.listen = "127.0.0.1:0", .loops = 1, .connections_per_ip = 1000, .context = c->api};
    opts.routes = weir_api_routes(&opts.route_count);
    return err ? err : weir_http_open(&opts, &c->http);
}

/* As long as the null route's answer. */
static weir_err open_raw(serve_context *c) {
    static const char body[] = "{\"alive\":true}\n";
    int length =
        snprintf(c->answer, sizeof c->answer,
                 "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 13:28:17 GMT\r\nContent-Type: application/json\r\n"
                 "X-Request-Id: cc836126c69925c8\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                 "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 sizeof body - 1, body);
    return weir_raw_server_open(c->answer, (size_t)length, &c->raw);
}

static void close_all(serve_context *c, weir_err *errp) {
    weir_raw_server_close(c->raw);
    if (c->http) weir_http_stop(c->http, 0);
    weir_api_close(c->api);
    weir_http_close(c->http);
    weir_err_keep(errp, weir_pipeline_close(c->pipeline));
    if (c->graph) weir_err_keep(errp, weir_graph_close(c->graph));
    for (size_t i = 0; i < 2; i++)
        weir_err_keep(errp, weir_eventlog_close(c->logs[i]));
    weir_schema_free(c->schema);
    if (*c->folder && weir_path_exists(c->folder)) weir_err_keep(errp, weir_folder_remove(c->folder));
}

/* --- the bench ------------------------------------------------------------------------------------------------ */

static weir_err find_rate(const weir_cli *cli, serve_context *c, serve_target *slowest) {
    weir_load_result result;
    weir_err err = load_target(slowest, c->requests, 0, &result);
    c->rate = (double)c->requests / ((double)result.elapsed_ns / 1e9) / 2;
    return err ? err : weir_cli_f64(cli, "rate", 1, 1e7, &c->rate);
}

static weir_err measure(const weir_cli *cli, serve_context *c) {
    serve_target targets[SERVE_KINDS];
    static const char *const names[] = {"raw epoll", "null route", "neighbours"};
    char p50[SERVE_KINDS][64], p99[SERVE_KINDS][64];
    weir_bench_line lines[3 * SERVE_KINDS];
    for (int i = 0; i < SERVE_KINDS; i++)
        targets[i] = (serve_target){.c = c, .kind = (serve_kind)i, .round = UINT64_MAX};
    weir_err err = find_rate(cli, c, &targets[SERVE_NEIGHBORS]);
    if (err) return err;
    for (int i = 0; i < SERVE_KINDS; i++) {
        snprintf(p50[i], sizeof p50[i], "%s, p50 at %.0f/s", names[i], c->rate);
        snprintf(p99[i], sizeof p99[i], "%s, p99 at %.0f/s", names[i], c->rate);
        lines[i] = (weir_bench_line){names[i], "req/s", 1, i ? names[0] : NULL, run_closed, &targets[i]};
        lines[3 + i] = (weir_bench_line){p50[i], "us", 1, i ? p50[0] : NULL, run_p50, &targets[i]};
        lines[6 + i] = (weir_bench_line){p99[i], "us", 1, i ? p99[0] : NULL, run_p99, &targets[i]};
    }
    return weir_bench_run(cli, "serve", lines, sizeof lines / sizeof lines[0]);
}

static weir_err run(weir_cli *cli) {
    serve_context *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("for the bench");
    c->requests = weir_bench_quick(cli) ? 200 : 30000;
    weir_err err = make_folders(c);
    if (!err) err = open_logs(c);
    if (!err) err = open_graph(c);
    if (!err) err = open_http(c);
    if (!err) err = open_raw(c);
    if (!err) err = measure(cli, c);
    close_all(c, &err);
    weir_free(c);
    return err;
}

static const weir_option serve_options[] = {
    WEIR_BENCH_OPTIONS,
    {"rate", 'R', "N", "requests a second of the open loop (default half of what the neighbours route can do)", NULL},
    {0},
};

const weir_command weir_bench_serve = {
    .name = "serve",
    .summary = "the HTTP server against a raw epoll loop: rates, and latencies in an open loop",
    .example = "weir bench serve --rounds 5",
    .options = serve_options,
    .run = run,
};
