/* SPDX-License-Identifier: Apache-2.0 */
/* recommend.c - `weir train` of a task that recommends, and `--judge` of what it made. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/trainer/eval/eval.h>
#include <weir/trainer/recommend/learn.h>

#include "train_private.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Options of a network, which would be ignored silently. */
static weir_err recommend_refuse(const weir_cli *cli, const weir_cmd_train *c) {
    static const char *const others[] = {"trace",
                                         "parts",
                                         "masks",
                                         "per-class",
                                         "split",
                                         "fold",
                                         "warm-up",
                                         "validation",
                                         "test",
                                         "fanouts",
                                         "ahead",
                                         "strategy",
                                         "window",
                                         "out-only",
                                         "predictions",
                                         "embed-vertices",
                                         "embedding-optimizer",
                                         "residual",
                                         "wire",
                                         "cache",
                                         "encoder",
                                         "dropout",
                                         "input-dropout",
                                         "embedding-rate",
                                         "cache-policy",
                                         "alerts",
                                         "plan",
                                         "unit-rows",
                                         "unknown",
                                         "positive-weight",
                                         "model",
                                         "batches",
                                         "no-baselines",
                                         "as-served",
                                         "network",
                                         "heads",
                                         "rate-end",
                                         "rate-rise",
                                         "edge-dropout",
                                         "attention-dropout",
                                         "average",
                                         "focal",
                                         "jump",
                                         "head",
                                         "norm",
                                         "l2",
                                         "feed-forward",
                                         "load",
                                         "device",
                                         "resident"};
    const char *task = weir_schema_task_at(weir_snapshot_schema(c->opts.snapshot), c->opts.task)->name;
    const bool best = c->opts.model == WEIR_TRAIN_BEST; /* it is the only one */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (weir_cli_given(cli, others[i]) && !(best && strcmp(others[i], "model") == 0))
            return WEIR_ERR(WEIR_EUSAGE, "--%s is of a network that classifies, and task '%s' recommends; omit it",
                            others[i], task);
    if (weir_comm_ranks(c->comm) > 1)
        return WEIR_ERR(WEIR_EUSAGE, "task '%s' recommends, which is learnt by one process with --threads; omit mpirun",
                        task);
    return WEIR_OK;
}

/* "viewed=0.2,carted": what is looked at beside the task's own relation, which weighs 1 unless it is named. */
static weir_err recommend_read_relations(const weir_cli *cli, const weir_schema *schema, weir_recommend_rule *rule) {
    const char *rest = weir_cli_text(cli, "relations");
    const weir_schema_relation *own = weir_schema_relation_at(schema, rule->relations[0].relation);
    if (!rest) return WEIR_OK;
    rule->relation_count = 1;
    while (*rest) {
        char name[WEIR_SCHEMA_NAME_BYTES_MAX + 1], *end = NULL;
        const size_t length = strcspn(rest, ",");
        const int name_length = (int)strcspn(rest, "=,");
        double weight = 1;
        snprintf(name, sizeof name, "%.*s", name_length, rest);
        const bool whole = (size_t)name_length < sizeof name;
        const uint32_t found = whole ? weir_schema_relation_find(schema, name) : WEIR_SCHEMA_NONE;
        const weir_schema_relation *r = found == WEIR_SCHEMA_NONE ? NULL : weir_schema_relation_at(schema, found);
        if (!r || r->from != own->from || r->to != own->to)
            return WEIR_ERR(WEIR_EUSAGE, "--relations: the schema has no relation '%s' between the types of '%s'", name,
                            own->name);
        if (rest[name_length] == '=') weight = strtod(rest + name_length + 1, &end);
        if (!(weight >= WEIR_RECOMMEND_WEIGHT_MIN && weight <= WEIR_RECOMMEND_WEIGHT_MAX) ||
            (end && end != rest + length))
            return WEIR_ERR(WEIR_EUSAGE, "--relations: the weight of '%s' is a number from 0.000001 to 1,000,000",
                            name);
        uint32_t at = 0;
        while (at < rule->relation_count && rule->relations[at].relation != found)
            at++;
        if (at == WEIR_RECOMMEND_RELATIONS_MAX)
            return WEIR_ERR(WEIR_EUSAGE, "--relations names more than %u relations", WEIR_RECOMMEND_RELATIONS_MAX);
        rule->relations[at] = (weir_recommend_relation){found, weight};
        rule->relation_count += at == rule->relation_count;
        rest += length + (rest[length] == ',');
    }
    return WEIR_OK;
}

static const char *const recommend_losses[] = {
    [WEIR_RECOMMEND_SOFTMAX] = "softmax", [WEIR_RECOMMEND_PRODUCTS] = "products", [WEIR_RECOMMEND_BPR] = "bpr"};

static weir_err recommend_read(const weir_cli *cli, const weir_cmd_train *c, weir_recommend_opts *o) {
    const char *loss = weir_cli_text(cli, "loss"), *drawn = weir_cli_text(cli, "drawn");
    *o = weir_recommend_defaults(c->opts.snapshot, c->opts.task);
    o->seed = c->opts.seed;
    o->again = weir_cli_given(cli, "learn") && c->opts.again;
    o->falls = c->opts.schedule == WEIR_TRAIN_COSINE;
    for (unsigned l = 0; loss && l < sizeof recommend_losses / sizeof recommend_losses[0]; l++)
        if (strcmp(loss, recommend_losses[l]) == 0) o->loss = (weir_recommend_loss)l;
    if (o->loss == WEIR_RECOMMEND_BPR && weir_cli_given(cli, "negatives"))
        return WEIR_ERR(WEIR_EUSAGE, "--negatives is of --loss softmax and products; omit it with bpr");
    if (o->loss != WEIR_RECOMMEND_SOFTMAX && weir_cli_given(cli, "temperature"))
        return WEIR_ERR(WEIR_EUSAGE, "--temperature is of --loss softmax; products have a scale of their own: omit it");
    if (o->loss == WEIR_RECOMMEND_BPR) o->decay = 1e-4;
    if (o->loss == WEIR_RECOMMEND_PRODUCTS) o->decay = 0.1; /* they would grow without an end */
    weir_err err = weir_cmd_train_u32(cli, "epochs", 1, 100000, &o->epochs);
    if (!err) err = weir_cmd_train_u32(cli, "batch", 1, 1u << 20, &o->batch);
    if (!err) err = weir_cmd_train_u32(cli, "hidden", 1, WEIR_RECOMMEND_WIDTH_MAX, &o->width);
    if (!err) err = weir_cmd_train_u32(cli, "patience", 0, 100000, &o->patience);
    if (!err) err = weir_cmd_train_u32(cli, "negatives", 1, 1u << 20, &o->negatives);
    if (!err) err = weir_cmd_train_u32(cli, "layers", 1, WEIR_RECOMMEND_LAYERS_MAX, &o->layers);
    if (!err) err = weir_cmd_train_u32(cli, "horizons", 1, 1000, &o->horizons);
    if (!err) err = weir_cmd_train_u32(cli, "threads", 1, WEIR_RECOMMEND_THREADS_MAX, &o->threads);
    if (!err) err = weir_cli_f64(cli, "rate", 1e-9, 10, &o->rate);
    if (!err) err = weir_cli_f64(cli, "decay", 0, 10, &o->decay);
    if (!err) err = weir_cli_f64(cli, "temperature", 0.001, 1000, &o->temperature);
    if (!err) err = weir_cli_us(cli, "half-life", &o->rule.half_life_us);
    /* Where edges do not fade, what is popular does not change, and vectors can say it. */
    o->uniform = drawn ? strcmp(drawn, "evenly") == 0 : o->loss == WEIR_RECOMMEND_BPR || o->rule.half_life_us == 0;
    return err ? err : recommend_read_relations(cli, weir_snapshot_schema(o->snapshot), &o->rule);
}

/* --- the report --------------------------------------------------------------------------------------------------- */

static void recommend_put_metrics(weir_json *json, const char *name, const weir_recommend_metrics *m, bool interval) {
    weir_json_key(json, name);
    weir_json_object(json);
    weir_json_key_u64(json, "users", m->users);
    weir_json_key_u64(json, "unknown_users", m->unknown);
    weir_json_key_u64(json, "items", m->items);
    weir_json_key_time(json, "from", m->from_us);
    weir_json_key_time(json, "to", m->to_us);
    weir_json_key_f64(json, "recall_at_20", m->recall);
    if (interval) weir_json_key_f64(json, "recall_at_20_low", m->low);
    if (interval) weir_json_key_f64(json, "recall_at_20_high", m->high);
    weir_json_key_f64(json, "ndcg_at_20", m->ndcg);
    weir_json_key_f64(json, "trend_recall_at_20", m->trend_recall);
    weir_json_key_f64(json, "trend_ndcg_at_20", m->trend_ndcg);
    weir_json_object_end(json);
}

static void recommend_put_report(weir_buf *out, const weir_schema *schema, const weir_recommended_view *v) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key_string(&json, "task", weir_schema_task_at(schema, v->shape.task)->name);
    weir_json_key_u64(&json, "best_epoch", v->best_epoch);
    weir_json_key_f64(&json, "trend_weight", v->shape.trend_weight);
    weir_json_key_f64(&json, "trend_half_life_seconds", (double)v->trend_half_life_us * 1e-6);
    recommend_put_metrics(&json, "validation", &v->validation, false);
    recommend_put_metrics(&json, "test", &v->test, true);
    weir_json_object_end(&json);
}

static void recommend_put_provenance(weir_buf *out, const weir_cmd_train *c, const weir_recommend_opts *o) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key_string(&json, "program", "weir " WEIR_VERSION);
    weir_json_key_string(&json, "snapshot", c->snapshot_folder);
    weir_json_key_time(&json, "as_of", weir_snapshot_as_of_us(o->snapshot));
    weir_json_key_u64(&json, "seed", o->seed);
    weir_json_key_string(&json, "loss", recommend_losses[o->loss]);
    weir_json_key_string(&json, "drawn", o->uniform ? "evenly" : "as-met");
    weir_json_key_u64(&json, "batch", o->batch);
    weir_json_key_u64(&json, "negatives", o->negatives);
    weir_json_key_u64(&json, "horizons", o->horizons);
    if (o->loss == WEIR_RECOMMEND_SOFTMAX) weir_json_key_f64(&json, "temperature", o->temperature);
    weir_json_key_f64(&json, "rate", o->rate);
    if (o->falls) weir_json_key_string(&json, "schedule", "cosine");
    weir_json_key_f64(&json, "decay", o->decay);
    weir_json_object_end(&json);
}

static void recommend_print_part(weir_buf *out, const char *name, const weir_recommend_metrics *m, bool interval) {
    weir_buf_printf(out, "%s: %" PRIu64 " users, %" PRIu64 " of them unknown, %" PRIu64 " items to be found\n", name,
                    m->users, m->unknown, m->items);
    weir_buf_printf(out, "  %-12s %9s  %16s  %7s\n", "", "recall@20", "95 of 100", "NDCG@20");
    weir_buf_printf(out, "  %-12s %9.4f  ", "model", m->recall);
    if (interval)
        weir_buf_printf(out, "%6.4f to %6.4f", m->low, m->high);
    else
        weir_buf_printf(out, "%16s", "-");
    weir_buf_printf(out, "  %7.4f\n  %-12s %9.4f  %16s  %7.4f\n", m->ndcg, "popularity", m->trend_recall, "-",
                    m->trend_ndcg);
}

static weir_err recommend_add_model(const weir_cmd_train *c, const weir_recommended_view *v, const char *metrics,
                                    const char *provenance, char id[WEIR_MODEL_ID_MAX]) {
    weir_secret_key *key = NULL;
    weir_recommend_draft *draft = NULL;
    weir_models *models = NULL;
    weir_err err = c->key ? weir_secret_key_load(c->key, &key) : WEIR_OK;
    if (!err) err = weir_recommend_draft_open(&v->shape, &v->tables, weir_snapshot_schema(c->opts.snapshot), &draft);
    if (!err) err = weir_models_open(c->models, weir_clock_system(), &models);
    if (!err) {
        weir_model_write_opts opts = weir_recommend_draft_opts(draft);
        opts.metrics = metrics;
        opts.provenance = provenance;
        opts.key = key;
        err = weir_models_add(models, &opts, id);
    }
    weir_models_close(models);
    weir_recommend_draft_close(draft);
    weir_secret_key_free(key);
    return err;
}

static weir_err recommend_finish(const weir_cmd_train *c, const weir_recommend_opts *o,
                                 const weir_recommended *learnt) {
    const weir_recommended_view v = weir_recommended_look(learnt);
    weir_buf metrics = {0}, provenance = {0}, text = {0};
    char id[WEIR_MODEL_ID_MAX] = "";
    recommend_put_report(&metrics, weir_snapshot_schema(o->snapshot), &v);
    recommend_put_provenance(&provenance, c, o);
    weir_buf_printf(&text, "best of epoch %u; what is met lately ", v.best_epoch);
    if (v.shape.trend_weight > 0)
        weir_buf_printf(&text, "weighs %.2f, half of it after %.3g h\n", v.shape.trend_weight,
                        (double)v.trend_half_life_us / 3.6e9);
    else
        weir_buf_text(&text, "does not count\n");
    recommend_print_part(&text, "validation", &v.validation, false);
    recommend_print_part(&text, "test", &v.test, true);
    weir_err err = weir_buf_err(&metrics);
    if (!err) err = weir_buf_err(&provenance);
    if (!err) err = weir_cmd_train_write_report(c, &metrics);
    if (!err && c->models) err = recommend_add_model(c, &v, metrics.bytes, provenance.bytes, id);
    if (!err && *id) weir_buf_printf(&text, "model %s\n", id);
    if (!err) err = weir_cmd_train_write_run(c, id);
    if (!err) err = weir_buf_err(&text);
    if (!err) err = weir_cli_output(text.bytes, text.length);
    weir_buf_free(&metrics);
    weir_buf_free(&provenance);
    weir_buf_free(&text);
    return err;
}

/* What has been said of the epochs so far. */
typedef struct recommend_log {
    const char *folder; /* NULL: none is wanted */
    weir_buf lines;
} recommend_log;

/* As a network's epochs.jsonl: the last line has a check of the whole file. It begins anew with each training. */
static weir_err recommend_log_epoch(recommend_log *log, const weir_recommend_epoch *e) {
    char path[4096];
    weir_buf *lines = &log->lines;
    if (!log->folder) return WEIR_OK;
    weir_json json = weir_json_begin(lines);
    weir_json_object(&json);
    weir_json_key_u64(&json, "epoch", e->number);
    weir_json_key_f64(&json, "loss", e->loss);
    weir_json_key_f64(&json, "validation", e->recall);
    weir_json_key_f64(&json, "ndcg_at_20", e->ndcg);
    weir_json_key_f64(&json, "seconds", (double)e->elapsed_us * 1e-6);
    weir_json_key_bool(&json, "best", e->best);
    const size_t length = lines->length;
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(lines, '\n');
    weir_err err = weir_buf_err(lines);
    if (!err) err = weir_folder_create(log->folder);
    if (!err) err = weir_path_join(path, sizeof path, log->folder, "epochs.jsonl");
    if (!err) err = weir_file_replace(path, lines->bytes, lines->length);
    if (err) return err;
    lines->length = length; /* a line that is followed by others has no check */
    weir_buf_text(lines, "}\n");
    return weir_buf_err(lines);
}

static weir_err recommend_print_epoch(void *context, const weir_recommend_epoch *e) {
    char line[128];
    if (e->again) { /* it has no validation, and no place in the curve */
        const int again = snprintf(line, sizeof line, "again %-3u loss %.4f  %.1f s\n", e->number, e->loss,
                                   (double)e->elapsed_us * 1e-6);
        return weir_cli_output(line, (size_t)again);
    }
    const int length =
        snprintf(line, sizeof line, "epoch %-3u loss %.4f  validation recall@20 %.4f, NDCG@20 %.4f%s  %.1f s\n",
                 e->number, e->loss, e->recall, e->ndcg, e->best ? " *" : "  ", (double)e->elapsed_us * 1e-6);
    weir_err err = recommend_log_epoch(context, e);
    return err ? err : weir_cli_output(line, (size_t)length);
}

weir_err weir_cmd_train_recommend(const weir_cli *cli, const weir_cmd_train *c) {
    weir_recommend_opts o;
    weir_recommended *learnt = NULL;
    recommend_log log = {.folder = c->opts.folder};
    weir_err err = recommend_refuse(cli, c);
    if (!err) err = recommend_read(cli, c, &o);
    if (err) return err;
    if (weir_cli_given(cli, "check")) return weir_cmd_train_say_checked(c);
    o.on_epoch = recommend_print_epoch;
    o.context = &log;
    err = weir_cmd_train_begin_run(c, false); /* it has no checkpoint to go on from */
    if (!err) err = weir_recommend_learn(&o, &learnt);
    if (!err) err = recommend_finish(c, &o, learnt);
    weir_recommended_free(learnt);
    weir_buf_free(&log.lines);
    return err;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static void recommend_put_figures(weir_json *json, const weir_recommend_metrics *m) {
    weir_json_key_u64(json, "targets", m->users);
    weir_json_key_u64(json, "positives", m->items);
    weir_json_key_string(json, "measure", "recall@20");
    weir_json_key_f64(json, "value", m->recall);
    weir_json_key_f64(json, "ndcg_at_20", m->ndcg);
    weir_json_key_f64(json, "trend_recall_at_20", m->trend_recall);
}

/* The 95 % interval of the mean of what each user gains, by the normal distribution: users are hundreds. */
static weir_interval recommend_difference(const weir_recommend_metrics *a, const weir_recommend_metrics *b) {
    const double users = (double)a->users, mean = a->recall - b->recall;
    double square = 0;
    for (uint64_t i = 0; i < a->users; i++) {
        const double off = (double)a->recalls[i] - (double)b->recalls[i] - mean;
        square += off * off;
    }
    const double error = a->users > 1 ? 1.96 * sqrt(square / (users - 1) / users) : INFINITY;
    return (weir_interval){mean - error, mean + error};
}

static weir_err recommend_print_judged(const char *task, const weir_recommend_metrics *one,
                                       const weir_recommend_metrics *other) {
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    weir_json_object(&json);
    weir_json_key_string(&json, "task", task);
    recommend_put_figures(&json, one);
    if (other) {
        const weir_interval difference = recommend_difference(one, other);
        weir_json_key(&json, "against");
        weir_json_object(&json);
        recommend_put_figures(&json, other);
        weir_json_object_end(&json);
        weir_json_key(&json, "difference");
        weir_json_object(&json);
        weir_json_key_f64(&json, "value", one->recall - other->recall);
        weir_json_key_f64(&json, "low", difference.low);
        weir_json_key_f64(&json, "high", difference.high);
        weir_json_object_end(&json);
    }
    weir_json_object_end(&json);
    weir_buf_byte(&out, '\n');
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err recommend_open_judged(const weir_cli *cli, const char *folder, weir_model **modelp) {
    const weir_config *config = weir_cli_config(cli);
    weir_model_trust trust;
    weir_err err = weir_model_trust_load(weir_config_text(config, WEIR_CONFIG_MODELS_PUBLIC_KEYS),
                                         !weir_config_bool(config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE), &trust);
    return err ? err : weir_model_open(folder, &trust.opts, modelp);
}

/* one, other: of one task; other may be NULL. */
static weir_err recommend_judge_models(const weir_cli *cli, const weir_cmd_train *c, const weir_recommend_model *one,
                                       const weir_recommend_model *other) {
    const weir_recommend_model *models[2] = {one, other};
    const uint32_t task = weir_recommend_model_shape(one)->task;
    weir_recommend_metrics metrics[2] = {{0}, {0}};
    weir_recommend_opts o = weir_recommend_defaults(c->opts.snapshot, task);
    if (other && weir_recommend_model_shape(other)->task != task)
        return WEIR_ERR(WEIR_EVERSION, "the models answer different tasks, so no figure of one is one of the other");
    weir_err err = weir_cmd_train_u32(cli, "horizons", 1, 1000, &o.horizons);
    if (!err) err = weir_cmd_train_u32(cli, "threads", 1, WEIR_RECOMMEND_THREADS_MAX, &o.threads);
    for (unsigned i = 0; !err && i < 2 && models[i]; i++)
        err = weir_recommend_judge(&o, models[i], &metrics[i]);
    if (!err && other && metrics[0].users != metrics[1].users)
        err = WEIR_ERR(WEIR_EINTERNAL, "two models of one task were judged by other users");
    if (!err)
        err = recommend_print_judged(weir_schema_task_at(weir_snapshot_schema(c->opts.snapshot), task)->name,
                                     &metrics[0], other ? &metrics[1] : NULL);
    weir_free(metrics[0].recalls);
    weir_free(metrics[1].recalls);
    return err;
}

weir_err weir_cmd_train_recommend_judge(const weir_cli *cli, const weir_cmd_train *c, bool *itsp) {
    const char *const names[2] = {weir_cli_text(cli, "judge"), weir_cli_text(cli, "against")};
    const weir_schema *schema = weir_snapshot_schema(c->opts.snapshot);
    weir_model *folders[2] = {NULL, NULL};
    weir_recommend_model *models[2] = {NULL, NULL};
    *itsp = false;
    weir_err err = recommend_open_judged(cli, names[0], &folders[0]);
    if (!err && names[1]) err = recommend_open_judged(cli, names[1], &folders[1]);
    if (!err) *itsp = weir_recommend_is_of(folders[0]);
    if (!err && names[1] && weir_recommend_is_of(folders[1]) != *itsp)
        err = WEIR_ERR(WEIR_EVERSION, "one of the models recommends and the other classifies, so no figure of one is "
                                      "one of the other");
    for (unsigned i = 0; !err && *itsp && i < 2 && folders[i]; i++) {
        err = weir_recommend_model_open(folders[i], "", schema, &models[i]);
        folders[i] = NULL; /* it was given away */
    }
    if (!err && *itsp && weir_comm_ranks(c->comm) > 1)
        err = WEIR_ERR(WEIR_EUSAGE, "a model that recommends is judged by one process; omit mpirun");
    if (!err && *itsp) err = recommend_judge_models(cli, c, models[0], models[1]);
    for (unsigned i = 0; i < 2; i++) {
        weir_model_close(folders[i]);
        weir_recommend_model_drop(models[i]);
    }
    return err;
}
