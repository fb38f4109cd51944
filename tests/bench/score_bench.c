/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score_bench.c - what a score costs: in the process on one core, alone, with reasons and in batches; then over HTTP.
 *
 * Payments of one busy day, a network of two layers with 64 columns and random weights: what a weight is does not
 * change what it costs. Each payment is scored again and again, so all of it is warm. --model trees: 300 complete trees
 * of depth 6 over what stands around a payment instead; blend: both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http/api/api.h>
#include <weir/inference/inputs/columns.h>
#include <weir/inference/pack/pack.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "bench.h"
#include "serve_load.h"

#define ACCOUNTS    2000u
#define PAYMENTS    20000u
#define BATCH       1000u
#define MERCHANTS   100u
#define BIG         2u /* of them, which have half of the payments */
#define STEPS_MAX   16u
#define CONNECTIONS 16u
#define TREES       300u
#define TREE_SPLITS 63u

typedef struct score_bench {
    char store[4096], eventlog[4096];
    weir_schema *schema;
    weir_eventlog *logs[2];
    weir_graph *graph;
    weir_pipeline *pipeline;
    weir_nn_shape *shape;
    weir_nn *nn;
    void *params;
    weir_pack_family family;
    weir_trees *trees;
    float *columns; /* of one row, to walk them by themselves */
    float walked;   /* what that gave: so that it is done */
    double *contributions;
    weir_score_model *model;
    weir_scorer *scorer;
    weir_scoring *scoring;
    weir_api *api;
    weir_http *http;
    weir_score_ask *asks;
    uint32_t scores;   /* of one run in the process */
    uint64_t requests; /* of one run over HTTP      */
    double rate;
    int64_t *spent_ns; /* of each score of the last run of one by one */
    uint64_t open_round;
    weir_load_result open;
} score_bench;

/* --- the graph -------------------------------------------------------------------------------------------------- */

static int write_payment(uint32_t n, char *text, size_t size) {
    weir_rng rng = weir_rng_stream(2, n, 0);
    return snprintf(text, size,
                    "{\"id\":\"p%u\",\"time\":\"2026-01-05T%02u:%02u:%02uZ\",\"account\":\"a%u\",\"card\":\"c%u\","
                    "\"device\":\"d%u\",\"merchant\":\"m%u\",\"amount\":%u.5,\"currency\":\"EUR\",\"channel\":\"web\","
                    "\"country\":\"DE\",\"mcc\":\"5814\"}",
                    n, n / 3600 % 24, n / 60 % 60, n % 60, (unsigned)weir_rng_below(&rng, ACCOUNTS),
                    (unsigned)weir_rng_below(&rng, ACCOUNTS), (unsigned)weir_rng_below(&rng, ACCOUNTS),
                    (unsigned)weir_rng_below(&rng, weir_rng_below(&rng, 2) ? BIG : MERCHANTS),
                    (unsigned)weir_rng_below(&rng, 500));
}

static weir_err append_payments(score_bench *b, uint32_t begin) {
    static char values[BATCH][512];
    weir_record records[BATCH];
    uint64_t first;
    for (uint32_t i = 0; i < BATCH; i++) {
        int length = write_payment(begin + i, values[i], sizeof values[i]);
        records[i] = (weir_record){.time_us = begin + i, .value = values[i], .value_length = (size_t)length};
    }
    return weir_eventlog_append(b->logs[0], 0, records, BATCH, &first);
}

static weir_err open_logs(score_bench *b) {
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    const weir_eventlog_opts opts = {.partitions = 1};
    const char *folder;
    weir_err err = weir_bench_folder(&folder);
    if (err) return err;
    snprintf(b->store, sizeof b->store, "%s/store", folder);
    snprintf(b->eventlog, sizeof b->eventlog, "%s/eventlog", folder);
    err = weir_folder_create(b->eventlog);
    if (!err) err = weir_schema_parse("payments", shipped->text, shipped->length, &b->schema);
    for (uint32_t i = 0; !err && i < 2; i++)
        err = weir_eventlog_open(b->eventlog, weir_schema_source_at(b->schema, i)->topic, &opts, &b->logs[i]);
    for (uint32_t done = 0; !err && done < PAYMENTS; done += BATCH)
        err = append_payments(b, done);
    return err ? err : weir_eventlog_sync(b->logs[0]);
}

static weir_err open_graph(score_bench *b) {
    const weir_graph_opts graph_opts = {
        .shards = 2, .memory_bytes = 256u << 20, .create = true, .id_key = &weir_id_key_public};
    const weir_pipeline_source sources[] = {{.source = 0, .stream = WEIR_PIPELINE_EVENTLOG, .log = b->logs[0]},
                                            {.source = 1, .stream = WEIR_PIPELINE_EVENTLOG, .log = b->logs[1]}};
    weir_err err = weir_graph_open(b->store, b->schema, &graph_opts, &b->graph);
    const weir_pipeline_opts opts = {
        .graph = b->graph, .folder = b->store, .letter_folder = b->eventlog, .sources = sources, .source_count = 2};
    if (!err) err = weir_pipeline_open(&opts, &b->pipeline);
    if (!err) err = weir_pipeline_start(b->pipeline);
    if (!err) err = weir_pipeline_drain(b->pipeline, 60 * WEIR_US_PER_S);
    return err ? err : weir_graph_seal(b->graph);
}

/* --- the model -------------------------------------------------------------------------------------------------- */

/* Who paid with what and where; then what those did before. */
static uint32_t make_steps(const weir_schema *schema, weir_sample_step *steps) {
    static const char *const first[] = {"paid_by", "paid_with", "paid_from", "paid_at", "paid_to"};
    static const char *const second[] = {"paid_by", "paid_with", "paid_from", "paid_at", "paid_to", "seen_on"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizeof first / sizeof first[0]; i++)
        steps[count++] = (weir_sample_step){.hop = 1,
                                            .fanout = 1,
                                            .relation = (uint16_t)weir_schema_relation_find(schema, first[i]),
                                            .direction = WEIR_OUT};
    for (uint32_t i = 0; i < sizeof second / sizeof second[0]; i++)
        steps[count++] = (weir_sample_step){.hop = 2,
                                            .fanout = 10,
                                            .relation = (uint16_t)weir_schema_relation_find(schema, second[i]),
                                            .direction = WEIR_IN};
    return count;
}

static weir_err open_trees(score_bench *b) {
    const uint32_t nodes = 2 * TREE_SPLITS + 1;
    weir_rng rng = weir_rng_stream(3, 0, 0);
    weir_trees_node *all = weir_calloc((size_t)TREES * nodes, sizeof *all);
    float *covers = weir_calloc((size_t)TREES * nodes, sizeof *covers);
    uint32_t begins[TREES + 1] = {0};
    weir_trees_view view = {all, begins, TREES, 0, 0, covers};
    view.columns = (uint32_t)weir_tree_columns_count(b->shape, WEIR_TREE_COLUMNS_HOPS_MAX);
    b->columns = weir_calloc(view.columns, sizeof *b->columns);
    b->contributions = weir_calloc(view.columns, sizeof *b->contributions);
    if (!all || !covers || !b->columns || !b->contributions) {
        weir_free(all);
        weir_free(covers);
        return WEIR_NOMEM("for the bench");
    }
    for (uint32_t c = 0; c < view.columns; c++)
        b->columns[c] = (float)weir_rng_normal(&rng);
    for (uint32_t at = 0; at < TREES * nodes; at++) {
        const uint32_t own = at % nodes;
        all[at].value = (float)weir_rng_normal(&rng) / TREES;
        if (own == 0) begins[at / nodes + 1] = at + nodes;
        if (own == 0) covers[at] = 1e5f;
        if (own >= TREE_SPLITS) continue;
        covers[at + own + 1] = covers[at + own + 2] = covers[at] / 2;
        all[at] = (weir_trees_node){2 * own + 1, (uint32_t)weir_rng_below(&rng, view.columns),
                                    (float)weir_rng_normal(&rng), false};
    }
    weir_err err = weir_trees_open(&view, &b->trees);
    weir_free(all);
    weir_free(covers);
    return err;
}

static weir_err open_model(score_bench *b) {
    weir_sample_step steps[STEPS_MAX];
    const weir_nn_opts opts = {.hidden = 64, .steps = steps, .step_count = make_steps(b->schema, steps)};
    const weir_kernels *cpu = weir_kernels_cpu();
    weir_err err = weir_nn_shape_open(b->schema, &opts, &b->shape);
    if (!err) err = weir_nn_open(b->shape, cpu, &b->nn);
    if (!err) err = cpu->alloc(cpu, weir_nn_parameter_count(b->nn) * sizeof(weir_real), &b->params);
    if (err) return err;
    weir_nn_init(b->nn, 1, b->params);
    err = open_trees(b);
    if (err) return err;
    const weir_score_model_opts model = {.name = "bench",
                                         .version = "1",
                                         .nn = b->family == WEIR_PACK_TREES ? NULL : b->nn,
                                         .params = b->params,
                                         .shape = b->shape,
                                         .trees = b->family == WEIR_PACK_NETWORK ? NULL : b->trees,
                                         .hops = WEIR_TREE_COLUMNS_HOPS_MAX,
                                         .blend = {1, 0, 1, 0},
                                         .seed = 1,
                                         .slope = 1};
    return weir_score_model_open(&model, b->schema, &b->model);
}

static weir_err make_asks(score_bench *b) {
    weir_arena *arena;
    weir_err err = weir_arena_open(16u << 20, &arena);
    b->asks = weir_calloc(b->scores, sizeof *b->asks);
    b->spent_ns = weir_calloc(b->scores, sizeof *b->spent_ns);
    if (!err && (!b->asks || !b->spent_ns)) err = WEIR_NOMEM("for the bench");
    for (uint32_t i = 0; !err && i < b->scores; i++) {
        char key[16];
        int length = snprintf(key, sizeof key, "p%u", PAYMENTS - 1 - i);
        weir_arena_reset(arena);
        err = weir_score_ask_vertex(b->graph, b->model,
                                    weir_vertex_id(&weir_id_key_public, "payment", key, (size_t)length), 0, arena,
                                    &b->asks[i]);
    }
    weir_arena_close(arena);
    return err;
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

static weir_err score_all(score_bench *b, uint32_t together, uint32_t reasons, weir_bench_sample *samplep) {
    weir_score scores[WEIR_SCORE_BATCH_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < b->scores; i++)
        b->asks[i].reasons = reasons;
    weir_bench_start(samplep);
    for (uint32_t i = 0; !err && i + together <= b->scores; i += together) {
        int64_t start_ns = weir_clock_mono_ns(weir_clock_system());
        err = weir_scorer_run(b->scorer, b->model, &b->asks[i], together, scores);
        b->spent_ns[i] = weir_clock_mono_ns(weir_clock_system()) - start_ns;
    }
    uint32_t batches = b->scores / together;
    weir_bench_stop(samplep, batches * together);
    return err;
}

static weir_err run_alone(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return score_all(context, 1, 0, samplep);
}

static weir_err run_reasons(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return score_all(context, 1, 5, samplep);
}

static weir_err run_batch(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return score_all(context, WEIR_SCORE_BATCH_MAX, 0, samplep);
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* With reasons, as the route gives them when nothing else is said. */
static weir_err run_quantile(score_bench *b, double quantile, weir_bench_sample *samplep) {
    weir_bench_sample ignored = {0};
    weir_err err = score_all(b, 1, 5, &ignored);
    qsort(b->spent_ns, b->scores, sizeof *b->spent_ns, by_size);
    samplep->elapsed_ns += WEIR_US_PER_S * 1000; /* so that the line's rate is the latency itself */
    samplep->units += (double)b->spent_ns[(uint32_t)(quantile * (b->scores - 1))] / 1000;
    return err;
}

static weir_err run_p50(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return run_quantile(context, 0.5, samplep);
}

static weir_err run_p99(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return run_quantile(context, 0.99, samplep);
}

/* One row after the other, as one score walks them. */
static weir_err run_walk(void *context, uint64_t round, weir_bench_sample *samplep) {
    score_bench *b = context;
    weir_bench_start(samplep);
    for (uint32_t i = 0; i < b->scores; i++) {
        float margin;
        b->columns[i % 8] = (float)(i + round) / (float)b->scores;
        weir_trees_walk(b->trees, b->columns, 1, &margin);
        b->walked += margin;
    }
    weir_bench_stop(samplep, (double)b->scores * TREES);
    return WEIR_OK;
}

/* What each column of one row contributes. */
static weir_err run_contribute(void *context, uint64_t round, weir_bench_sample *samplep) {
    score_bench *b = context;
    weir_bench_start(samplep);
    for (uint32_t i = 0; i < b->scores; i++) {
        b->columns[i % 8] = (float)(i + round) / (float)b->scores;
        weir_trees_contribute(b->trees, b->columns, b->contributions);
        b->walked += (float)b->contributions[0];
    }
    weir_bench_stop(samplep, (double)b->scores * TREES);
    return WEIR_OK;
}

/* --- over HTTP -------------------------------------------------------------------------------------------------- */

static size_t request_score(void *context, uint64_t n, char *buffer, size_t size) {
    const score_bench *b = context;
    char body[128];
    int length = snprintf(body, sizeof body, "{\"targets\":[{\"type\":\"payment\",\"key\":\"p%u\"}]}",
                          PAYMENTS - 1 - (uint32_t)(n % b->scores));
    return (size_t)snprintf(buffer, size,
                            "POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                            "Content-Length: %d\r\n\r\n%s",
                            length, body);
}

static weir_err load(score_bench *b, uint32_t connections, uint64_t requests, double rate, weir_load_result *resultp) {
    const weir_load_opts opts = {.port = weir_http_port(b->http),
                                 .connections = connections,
                                 .requests = requests,
                                 .rate = rate,
                                 .request = request_score,
                                 .context = b};
    return weir_load_run(&opts, resultp);
}

static weir_err run_http(void *context, uint64_t round, weir_bench_sample *samplep) {
    score_bench *b = context;
    weir_load_result result = {0};
    (void)round;
    weir_err err = load(b, CONNECTIONS, b->requests, 0, &result);
    samplep->elapsed_ns += result.elapsed_ns;
    samplep->units += (double)b->requests;
    return err;
}

static weir_err run_open(score_bench *b, uint64_t round) {
    if (b->open_round == round) return WEIR_OK;
    b->open_round = round;
    return load(b, CONNECTIONS, b->requests / 4, b->rate, &b->open);
}

static weir_err run_http_p50(void *context, uint64_t round, weir_bench_sample *samplep) {
    score_bench *b = context;
    weir_err err = run_open(b, round);
    samplep->elapsed_ns += WEIR_US_PER_S * 1000;
    samplep->units += b->open.p50_us;
    return err;
}

static weir_err run_http_p99(void *context, uint64_t round, weir_bench_sample *samplep) {
    score_bench *b = context;
    weir_err err = run_open(b, round);
    samplep->elapsed_ns += WEIR_US_PER_S * 1000;
    samplep->units += b->open.p99_us;
    return err;
}

static weir_err open_http(score_bench *b) {
    const weir_scoring_opts scoring = {.graph = b->graph, .threads = 1};
    weir_err err = weir_scoring_open(&scoring, &b->scoring);
    if (err) return err;
    weir_scoring_swap(b->scoring, b->model);
    const weir_api_opts api = {
        .graph = b->graph, .pipeline = b->pipeline, .logs = b->logs, .loops = 1, .scoring = b->scoring};
    err = weir_api_open(&api, &b->api);
    weir_http_opts opts = {.listen = "127.0.0.1:0", .loops = 1, .connections_per_ip = 1000, .context = b->api};
    opts.routes = weir_api_routes(&opts.route_count);
    return err ? err : weir_http_open(&opts, &b->http);
}

static void close_all(score_bench *b, weir_err *errp) {
    if (b->http) weir_http_stop(b->http, 0);
    weir_scoring_close(b->scoring);
    weir_api_close(b->api);
    weir_http_close(b->http);
    weir_scorer_close(b->scorer);
    weir_score_model_drop(b->model);
    if (b->params) weir_kernels_cpu()->release(weir_kernels_cpu(), b->params);
    weir_trees_close(b->trees);
    weir_free(b->columns);
    weir_free(b->contributions);
    weir_nn_close(b->nn);
    weir_nn_shape_free(b->shape);
    weir_err_keep(errp, weir_pipeline_close(b->pipeline));
    if (b->graph) weir_err_keep(errp, weir_graph_close(b->graph));
    for (size_t i = 0; i < 2; i++)
        if (b->logs[i]) weir_err_keep(errp, weir_eventlog_close(b->logs[i]));
    weir_schema_free(b->schema);
    weir_free(b->asks);
    weir_free(b->spent_ns);
}

static weir_err measure(const weir_cli *cli, score_bench *b) {
    char p50[64], p99[64];
    snprintf(p50, sizeof p50, "over HTTP, p50 at %.0f/s", b->rate);
    snprintf(p99, sizeof p99, "over HTTP, p99 at %.0f/s", b->rate);
    const weir_bench_line lines[] = {
        {.what = "one payment", .unit = "scores/s", .scale = 1, .run = run_alone, .context = b},
        {.what = "one payment and why",
         .unit = "scores/s",
         .scale = 1,
         .run = run_reasons,
         .context = b,
         .against = "one payment"},
        {.what = "64 payments together",
         .unit = "scores/s",
         .scale = 1,
         .run = run_batch,
         .context = b,
         .against = "one payment"},
        {.what = "one payment and why, p50", .unit = "us", .scale = 1, .run = run_p50, .context = b},
        {.what = "one payment and why, p99", .unit = "us", .scale = 1, .run = run_p99, .context = b},
        {.what = "trees that are walked", .unit = "M trees/s", .scale = 1e-6, .run = run_walk, .context = b},
        {.what = "trees that columns contribute to",
         .unit = "M trees/s",
         .scale = 1e-6,
         .run = run_contribute,
         .context = b},
        {.what = "over HTTP, 16 clients",
         .unit = "scores/s",
         .scale = 1,
         .run = run_http,
         .context = b,
         .against = "one payment and why"},
        {.what = p50, .unit = "us", .scale = 1, .run = run_http_p50, .context = b},
        {.what = p99, .unit = "us", .scale = 1, .run = run_http_p99, .context = b},
    };
    return weir_bench_run(cli, "score", lines, sizeof lines / sizeof lines[0]);
}

static weir_err run(weir_cli *cli) {
    score_bench *b = weir_calloc(1, sizeof *b);
    if (!b) return WEIR_NOMEM("for the bench");
    b->scores = weir_bench_quick(cli) ? WEIR_SCORE_BATCH_MAX : 2048;
    b->requests = weir_bench_quick(cli) ? 200 : 4000;
    b->rate = 100;
    b->open_round = UINT64_MAX;
    const char *family = weir_cli_text(cli, "model");
    while (family && strcmp(family, weir_pack_family_name(b->family)) != 0)
        b->family++;
    weir_err err = open_logs(b);
    if (!err) err = open_graph(b);
    if (!err) err = open_model(b);
    if (!err) err = make_asks(b);
    if (!err) err = weir_scorer_open(b->graph, &b->scorer);
    if (!err) err = open_http(b);
    if (!err) err = weir_cli_f64(cli, "rate", 1, 1e6, &b->rate);
    if (!err) err = measure(cli, b);
    close_all(b, &err);
    weir_free(b);
    return err;
}

static const weir_option score_options[] = {
    WEIR_BENCH_OPTIONS,
    {"rate", 'R', "N", "requests a second of the open loop (default 100)", NULL},
    {"model", 0, "KIND", "what answers (default network)", "network|trees|blend"},
    {0},
};

const weir_command weir_bench_score = {
    .name = "score",
    .summary = "scores of a payment: in the process on one core, and over HTTP",
    .example = "weir bench score --rounds 5",
    .options = score_options,
    .run = run,
};
