/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlflow.c - runs to an MLflow tracking server, by its REST API 2.0.
 *
 *   experiment by name, made if there is none ─► a run with our tag? ─► ended: nothing to do
 *                                                    │ none: made        │ not ended: a sending was cut off
 *                                                    └───────────┬───────┘
 *                                     params, metrics by epoch (1000 a request) ─► ended
 *
 * What is sent is a function of the run's files, times too: sent twice, the server has it once.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/json.h>
#include <weir/store/cli/cli.h>

#include "runs_private.h"

#define MLFLOW_API             "/api/2.0/mlflow/"
#define MLFLOW_ANSWER_S        60u
#define MLFLOW_REPLY_BYTES_MAX ((size_t)16 << 20)
#define MLFLOW_METRICS_MAX     900u /* of a request; the API takes 1000 of all kinds together */
#define MLFLOW_PARAMS_MAX      100u
#define MLFLOW_VALUE_MAX       500u /* bytes of a param, which every version takes */
#define MLFLOW_NAME_MAX        250u /* of its name */
#define MLFLOW_ID_MAX          128u
#define MLFLOW_SAID_MAX        301u
#define MLFLOW_LETTERS         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define MLFLOW_TAG             "weir.run"
#define MLFLOW_BY_EPOCH        3u /* metrics of an epoch */

typedef struct mlflow {
    const weir_mlflow_opts *opts;
    weir_client *client;
    weir_arena *arena; /* of one answer */
    weir_buf reply;
    char experiment[MLFLOW_ID_MAX];
    bool refused; /* the last request, for what it was: others may go well */
} mlflow;

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* Whether such a refusal is of what was sent, so that the next run may go well: not of who asks, nor how often. */
static bool mlflow_is_of_one(long status) {
    return status >= 400 && status < 500 && status != 401 && status != 403 && status != 429;
}

/* Its answer as a tree; an error has the server's own message. statusp: what is asked for may not be there, which is
 * status 404; NULL: that is one, too. */
static weir_err mlflow_ask(mlflow *m, const char *what, const char *query, const weir_buf *body, long *statusp,
                           const weir_json_node **rootp) {
    char path[128], said[MLFLOW_SAID_MAX];
    long status = 0;
    snprintf(path, sizeof path, MLFLOW_API "%s", what);
    weir_err err = body ? weir_buf_err(body) : WEIR_OK;
    m->refused = false;
    if (!err) err = weir_client_ask(m->client, path, query, body ? body->bytes : NULL, &m->reply, &status);
    if (err) return err;
    weir_arena_reset(m->arena);
    weir_err odd = weir_json_parse("the answer of MLflow", m->reply.length ? m->reply.bytes : "", m->reply.length,
                                   WEIR_JSON_DEPTH_MAX, m->arena, rootp);
    if (statusp) *statusp = status;
    const char *code = odd ? "" : weir_json_node_text(weir_json_find(*rootp, "error_code"));
    if (status == 200) return odd;
    if (statusp && status == 404 && strcmp(code, "RESOURCE_DOES_NOT_EXIST") == 0) return WEIR_OK;
    snprintf(said, sizeof said, "%s", odd ? "" : weir_json_node_text(weir_json_find(*rootp, "message")));
    weir_client_plain(said);
    m->refused = mlflow_is_of_one(status);
    return WEIR_ERR(WEIR_EUNAVAILABLE, "MLflow at %s says to %s (status %ld): %s", weir_client_address(m->client), what,
                    status, *said ? said : "nothing that can be read; is it an MLflow server?");
}

/* A word at the end of a path of members, an id or a status, which goes back to the server and to a terminal. */
static weir_err mlflow_take(const weir_json_node *root, const char *object, const char *info, const char *name,
                            char text[MLFLOW_ID_MAX]) {
    const weir_json_node *node = root, *found;
    weir_err err = object ? weir_json_need(node, object, WEIR_JSON_OBJECT, &node) : WEIR_OK;
    if (!err && info) err = weir_json_need(node, info, WEIR_JSON_OBJECT, &node);
    if (!err) err = weir_json_need(node, name, WEIR_JSON_STRING, &found);
    if (!err && (!*found->text || strlen(found->text) >= MLFLOW_ID_MAX ||
                 strspn(found->text, MLFLOW_LETTERS) < strlen(found->text)))
        err = WEIR_JSON_ERR(found, "it has not 1 to %u letters, digits, - and _; is it an MLflow server?",
                            MLFLOW_ID_MAX - 1);
    if (!err) snprintf(text, MLFLOW_ID_MAX, "%s", found->text);
    return err;
}

static weir_err mlflow_find_experiment(mlflow *m) {
    const weir_json_node *root;
    weir_buf query = {0}, body = {0};
    long status = 0;
    weir_buf_text(&query, "experiment_name=");
    weir_client_escape(&query, m->opts->experiment);
    weir_err err = weir_buf_err(&query);
    if (!err) err = mlflow_ask(m, "experiments/get-by-name", query.bytes, NULL, &status, &root);
    if (!err && status == 200) {
        err = mlflow_take(root, "experiment", NULL, "experiment_id", m->experiment);
        if (!err && strcmp(weir_json_node_text(weir_json_find(weir_json_find(root, "experiment"), "lifecycle_stage")),
                           "deleted") == 0)
            err = WEIR_ERR(WEIR_EUSAGE,
                           "experiment '%s' of MLflow is deleted; restore it there, or name another with "
                           "--experiment",
                           m->opts->experiment);
    } else if (!err) {
        weir_json json = weir_json_begin(&body);
        weir_json_object(&json);
        weir_json_key_string(&json, "name", m->opts->experiment);
        weir_json_object_end(&json);
        err = mlflow_ask(m, "experiments/create", NULL, &body, NULL, &root);
        if (!err) err = mlflow_take(root, NULL, NULL, "experiment_id", m->experiment);
    }
    weir_buf_free(&query);
    weir_buf_free(&body);
    return err;
}

/* --- one run ------------------------------------------------------------------------------------------------------ */

static void mlflow_put_pair(weir_json *json, const char *key, const char *value) {
    char cut[MLFLOW_VALUE_MAX + 1];
    snprintf(cut, sizeof cut, "%s", value);
    weir_json_object(json);
    weir_json_key_string(json, "key", key);
    weir_json_key_string(json, "value", cut);
    weir_json_object_end(json);
}

/* "run_id": "" there is none; *endedp: it has all that we sent. */
static weir_err mlflow_find_run(mlflow *m, const weir_run *run, char run_id[MLFLOW_ID_MAX], bool *endedp) {
    const weir_json_node *root, *runs;
    char filter[128], status[MLFLOW_ID_MAX];
    weir_buf body = {0};
    weir_json json = weir_json_begin(&body);
    run_id[0] = 0;
    snprintf(filter, sizeof filter, "tags.`" MLFLOW_TAG "` = '%s'", run->id);
    weir_json_object(&json);
    weir_json_key(&json, "experiment_ids");
    weir_json_array(&json);
    weir_json_string(&json, m->experiment);
    weir_json_array_end(&json);
    weir_json_key_string(&json, "filter", filter);
    weir_json_key_u64(&json, "max_results", 1);
    weir_json_object_end(&json);
    weir_err err = mlflow_ask(m, "runs/search", NULL, &body, NULL, &root);
    weir_buf_free(&body);
    runs = err ? NULL : weir_json_find(root, "runs");
    if (!runs || runs->token.kind != WEIR_JSON_ARRAY || !runs->first) return err;
    err = mlflow_take(runs->first, "info", NULL, "run_id", run_id);
    if (!err) err = mlflow_take(runs->first, "info", NULL, "status", status);
    *endedp = !err && strcmp(status, "FINISHED") == 0;
    return err;
}

/* When it began in milliseconds: what it took, before it ended. */
static int64_t mlflow_began_ms(const weir_run *run) {
    int64_t began_us;
    if (weir_time_parse(run->began, strlen(run->began), &began_us) == WEIR_OK) return began_us / 1000;
    return run->ended_us / 1000 - (int64_t)(isfinite(run->seconds) ? run->seconds * 1000 : 0);
}

static weir_err mlflow_make_run(mlflow *m, const weir_run *run, char run_id[MLFLOW_ID_MAX]) {
    const weir_json_node *root;
    weir_buf body = {0};
    weir_json json = weir_json_begin(&body);
    weir_json_object(&json);
    weir_json_key_string(&json, "experiment_id", m->experiment);
    weir_json_key_string(&json, "run_name", run->name);
    weir_json_key_i64(&json, "start_time", mlflow_began_ms(run));
    weir_json_key(&json, "tags");
    weir_json_array(&json);
    mlflow_put_pair(&json, MLFLOW_TAG, run->id);
    mlflow_put_pair(&json, "mlflow.runName", run->name);
    mlflow_put_pair(&json, "weir.folder", run->folder);
    mlflow_put_pair(&json, "weir.task", run->task);
    mlflow_put_pair(&json, "weir.kind", run->family);
    mlflow_put_pair(&json, "weir.figure", run->measure);
    if (*run->snapshot) mlflow_put_pair(&json, "weir.snapshot", run->snapshot);
    if (*run->program) mlflow_put_pair(&json, "weir.program", run->program);
    if (*run->model) mlflow_put_pair(&json, "weir.model", run->model);
    weir_json_array_end(&json);
    weir_json_object_end(&json);
    weir_err err = mlflow_ask(m, "runs/create", NULL, &body, NULL, &root);
    if (!err) err = mlflow_take(root, "run", "info", "run_id", run_id);
    weir_buf_free(&body);
    return err;
}

/* --- what it got -------------------------------------------------------------------------------------------------- */

typedef struct mlflow_metric {
    const char *key;
    double value;
    uint32_t step;
    int64_t time_ms;
} mlflow_metric;

/* Metrics are numbered: those of all epochs, then those of the whole run. false: there are no more; a value that is not
 * finite is none, and left out. */
static bool mlflow_metric_at(const weir_run *run, size_t number, mlflow_metric *metric) {
    const struct {
        const char *key;
        double value;
    } whole[] = {{"best_validation", run->validation.value},
                 {"validation_low", run->validation.low},
                 {"validation_high", run->validation.high},
                 {"test", run->test.value},
                 {"test_low", run->test.low},
                 {"test_high", run->test.high},
                 {"seconds", run->seconds}};
    const size_t by_epoch = run->epoch_count * MLFLOW_BY_EPOCH;
    if (number >= by_epoch + sizeof whole / sizeof whole[0]) return false;
    if (number >= by_epoch) {
        *metric = (mlflow_metric){whole[number - by_epoch].key, whole[number - by_epoch].value, run->best_epoch,
                                  run->ended_us / 1000};
        return true;
    }
    const weir_run_epoch *e = &run->epochs[number / MLFLOW_BY_EPOCH];
    const mlflow_metric of_epoch[MLFLOW_BY_EPOCH] = {{"validation", e->validation, e->number, 0},
                                                     {"loss", e->loss, e->number, 0},
                                                     {"epoch_seconds", e->seconds, e->number, 0}};
    *metric = of_epoch[number % MLFLOW_BY_EPOCH];
    metric->time_ms = mlflow_began_ms(run) + e->number; /* rising, as pages that go by time want it */
    return true;
}

static void mlflow_put_metric(weir_json *json, const mlflow_metric *metric) {
    weir_json_object(json);
    weir_json_key_string(json, "key", metric->key);
    weir_json_key_f64(json, "value", metric->value);
    weir_json_key_i64(json, "timestamp", metric->time_ms);
    weir_json_key_u64(json, "step", metric->step);
    weir_json_object_end(json);
}

/* Where the next option is whose name each version takes, from this one on; option_count: there is none. */
static size_t mlflow_param_from(const weir_run *run, size_t number) {
    for (; number < run->option_count; number++) {
        const char *name = run->options[number].name;
        const size_t length = strlen(name);
        if (length > 0 && length <= MLFLOW_NAME_MAX && strspn(name, MLFLOW_LETTERS) == length) break;
    }
    return number;
}

bool weir_mlflow_batch(const weir_run *run, const char *run_id, size_t *from, size_t *params, weir_buf *body) {
    mlflow_metric metric;
    *params = mlflow_param_from(run, *params);
    if (!mlflow_metric_at(run, *from, &metric) && *params >= run->option_count) return false;
    weir_json json = weir_json_begin(body);
    weir_json_object(&json);
    weir_json_key_string(&json, "run_id", run_id);
    weir_json_key(&json, "metrics");
    weir_json_array(&json);
    for (size_t sent = 0; sent < MLFLOW_METRICS_MAX && mlflow_metric_at(run, *from, &metric); ++*from) {
        if (!isfinite(metric.value)) continue;
        mlflow_put_metric(&json, &metric);
        sent++;
    }
    weir_json_array_end(&json);
    weir_json_key(&json, "params");
    weir_json_array(&json);
    for (size_t sent = 0; sent < MLFLOW_PARAMS_MAX && *params < run->option_count; sent++) {
        mlflow_put_pair(&json, run->options[*params].name, run->options[*params].value);
        *params = mlflow_param_from(run, *params + 1);
    }
    weir_json_array_end(&json);
    weir_json_object_end(&json);
    return true;
}

static weir_err mlflow_send_figures(mlflow *m, const weir_run *run, const char *run_id) {
    const weir_json_node *root;
    weir_buf body = {0};
    weir_err err = WEIR_OK;
    for (size_t from = 0, params = 0; !err && weir_mlflow_batch(run, run_id, &from, &params, &body);) {
        err = mlflow_ask(m, "runs/log-batch", NULL, &body, NULL, &root);
        weir_buf_clear(&body);
    }
    weir_buf_free(&body);
    return err;
}

static weir_err mlflow_end_run(mlflow *m, const weir_run *run, const char *run_id) {
    const weir_json_node *root;
    weir_buf body = {0};
    weir_json json = weir_json_begin(&body);
    weir_json_object(&json);
    weir_json_key_string(&json, "run_id", run_id);
    weir_json_key_string(&json, "status", "FINISHED");
    weir_json_key_i64(&json, "end_time", run->ended_us / 1000);
    weir_json_object_end(&json);
    weir_err err = mlflow_ask(m, "runs/update", NULL, &body, NULL, &root);
    weir_buf_free(&body);
    return err;
}

static weir_err mlflow_send_run(mlflow *m, const weir_run *run) {
    char run_id[MLFLOW_ID_MAX];
    bool ended = false;
    weir_buf line = {0};
    weir_err err = mlflow_find_run(m, run, run_id, &ended);
    const bool there = !err && *run_id;
    if (!err && !there) err = mlflow_make_run(m, run, run_id);
    if (!err && !ended) err = mlflow_send_figures(m, run, run_id);
    if (!err && !ended) err = mlflow_end_run(m, run, run_id);
    if (err) return weir_err_prefix(err, "%s", run->name);
    weir_buf_printf(&line, "%s: %s as run %s\n", run->name,
                    ended   ? "was there"
                    : there ? "was begun there, and is whole now"
                            : "sent",
                    run_id);
    err = weir_buf_err(&line);
    if (!err) err = weir_cli_output(line.bytes, line.length);
    weir_buf_free(&line);
    return err;
}

/* What the server refuses of one run leaves the others; how many is the last thing that is said. */
static weir_err mlflow_send_all(mlflow *m, const weir_runs_shown *shown) {
    char first[WEIR_ERR_SENTENCE_MAX] = "";
    size_t refused = 0;
    for (size_t i = 0; i < shown->count; i++) {
        weir_err err = mlflow_send_run(m, shown->runs[i]);
        if (err && !m->refused) return err;
        if (err && !refused++) weir_err_sentence(err, first, sizeof first);
    }
    if (!refused) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE, "%zu of %zu runs were refused, the first of them %s", refused, shown->count,
                    first);
}

weir_err weir_mlflow_send(const weir_mlflow_opts *opts, const weir_runs_shown *shown) {
    const weir_client_opts client = {.server = opts->url,
                                     .option = "--mlflow",
                                     .key_file = opts->key_file,
                                     .start = "start `mlflow server`, or name another with --mlflow",
                                     .below = true,
                                     .answer_s = MLFLOW_ANSWER_S,
                                     .reply_bytes_max = MLFLOW_REPLY_BYTES_MAX};
    mlflow m = {.opts = opts};
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &m.arena);
    if (!err) err = weir_client_open(&client, &m.client);
    if (!err) err = mlflow_find_experiment(&m);
    if (!err) err = mlflow_send_all(&m, shown);
    weir_client_close(m.client);
    weir_arena_close(m.arena);
    weir_buf_free(&m.reply);
    return err;
}
