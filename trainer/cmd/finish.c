/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - what a training leaves: a report for people, the same as JSON, and a model. */
#include <inttypes.h>
#include <stdio.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/pack/pack.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

#include "train_private.h"

static const char *const part_names[WEIR_TARGETS_PARTS] = {"train", "validation", "test"};

/* What is written from. */
typedef struct report {
    const weir_cmd_train *c;
    weir_trained_view trained;
    weir_train_trees trees[WEIR_TRAIN_BASELINES];
    double *tree_scores[WEIR_TRAIN_BASELINES];                 /* one a target behind the training part */
    char why_not[WEIR_TRAIN_BASELINES][WEIR_ERR_SENTENCE_MAX]; /* "": there are trees */
    weir_train_model family;                                   /* what answers; never WEIR_TRAIN_BEST */
    const weir_train_metrics *metrics_of;                      /* of the model, one a part */
    weir_calibration calibration;                              /* of the model             */
    double *blended;                                           /* log odds of a blend; else NULL */
    weir_train_metrics served;                                 /* of the test, if there is --as-served */
    char why_not_served[WEIR_ERR_SENTENCE_MAX];                /* "": there is, or it was not wanted   */
    char id[WEIR_MODEL_ID_MAX];                                /* of the model in the register; "": it was not added */
    weir_buf metrics, provenance, text;
} report;

typedef struct baseline_name {
    const char *key, *text;
} baseline_name;

static const baseline_name baseline_names[WEIR_TRAIN_BASELINES] = {
    [WEIR_TRAIN_GRAPH_TREES] = {"graph_trees", "graph trees"},
    [WEIR_TRAIN_ROW_TREES] = {"row_trees", "row trees"},
};

static bool report_has(const report *f, weir_train_baseline b) {
    return f->c->baselines || (b == WEIR_TRAIN_GRAPH_TREES && f->c->opts.model != WEIR_TRAIN_NETWORK);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_put_ranking(weir_json *json, const weir_train_metrics *m) {
    weir_json_key_f64(json, "average_precision", m->average_precision);
    weir_json_key_f64(json, "average_precision_low", m->interval.low);
    weir_json_key_f64(json, "average_precision_high", m->interval.high);
    weir_json_key_f64(json, "auroc", m->auroc);
    weir_json_key_f64(json, "precision_at_budget", m->budget_precision);
    weir_json_key_f64(json, "recall_at_budget", m->budget_recall);
}

static void report_put_scores(weir_json *json, const report *f, const weir_train_metrics *m) {
    if (weir_nn_outputs(f->trained.shape) != 1) {
        weir_json_key_f64(json, "accuracy", m->accuracy);
        return;
    }
    weir_json_key_u64(json, "positives", m->positives);
    report_put_ranking(json, m);
    weir_json_key_f64(json, "log_loss", m->log_loss);
    weir_json_key_f64(json, "calibration_error", m->calibration_error);
}

static void report_put_metrics(weir_json *json, const report *f, weir_targets_part part) {
    const weir_targets *targets = f->trained.targets;
    weir_json_key(json, part_names[part]);
    weir_json_object(json);
    weir_json_key_u64(json, "targets", f->metrics_of[part].targets);
    weir_json_key_time(json, "from", targets->from_us[part]);
    weir_json_key_time(json, "to", targets->to_us[part]);
    report_put_scores(json, f, &f->metrics_of[part]);
    weir_json_object_end(json);
}

static void report_put_served(weir_json *json, const report *f) {
    const weir_cmd_served *served = &f->c->served;
    if (!f->c->as_served) return;
    weir_json_key(json, "as_served");
    weir_json_object(json);
    weir_json_key_time(json, "known", served->known_us);
    if (f->why_not_served[0]) {
        weir_json_key_string(json, "unavailable", f->why_not_served);
    } else {
        const weir_targets *targets = weir_trained_look(served->trained).targets;
        weir_json_key_u64(json, "known_targets", targets->ends[WEIR_TARGETS_VALIDATION]);
        weir_json_key_u64(json, "not_known_yet", targets->untold);
        weir_json_key_u64(json, "targets", f->served.targets);
        report_put_scores(json, f, &f->served);
    }
    weir_json_object_end(json);
}

/* What the network gets by itself, of another model. */
static void report_put_network(weir_json *json, const report *f) {
    weir_json_key(json, "network");
    weir_json_object(json);
    for (weir_targets_part part = WEIR_TARGETS_VALIDATION; part < WEIR_TARGETS_PARTS; part++) {
        weir_json_key(json, part_names[part]);
        weir_json_object(json);
        report_put_ranking(json, &f->trained.metrics[part]);
        weir_json_object_end(json);
    }
    weir_json_object_end(json);
}

static void report_put_baselines(weir_json *json, const report *f) {
    weir_json_key(json, "baselines");
    weir_json_object(json);
    if (f->trained.nn && f->family != WEIR_TRAIN_NETWORK) report_put_network(json, f);
    for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++) {
        if (!report_has(f, b)) continue;
        weir_json_key(json, baseline_names[b].key);
        weir_json_object(json);
        if (f->why_not[b][0]) {
            weir_json_key_string(json, "unavailable", f->why_not[b]);
            weir_json_object_end(json);
            continue;
        }
        weir_json_key_u64(json, "rounds", f->trees[b].rounds);
        for (weir_targets_part part = WEIR_TARGETS_VALIDATION; part < WEIR_TARGETS_PARTS; part++) {
            weir_json_key(json, part_names[part]);
            weir_json_object(json);
            report_put_ranking(json, &f->trees[b].metrics[part]);
            if (f->trained.nn) {
                weir_json_key(json, "with_network");
                weir_json_object(json);
                report_put_ranking(json, &f->trees[b].with_network[part]);
                weir_json_object_end(json);
            }
            weir_json_object_end(json);
        }
        weir_json_object_end(json);
    }
    weir_json_object_end(json);
}

static void report_write_metrics(report *f) {
    const weir_trained_view *trained = &f->trained;
    weir_json json = weir_json_begin(&f->metrics);
    weir_json_object(&json);
    weir_json_key_string(&json, "task", weir_nn_task(trained->shape));
    weir_json_key_u64(&json, "alerts_a_day", f->c->opts.alerts);
    if (f->family != WEIR_TRAIN_NETWORK) weir_json_key_string(&json, "family", weir_cmd_train_models[f->family]);
    if (trained->nn) weir_json_key_u64(&json, "best_epoch", trained->best_epoch);
    report_put_metrics(&json, f, WEIR_TARGETS_VALIDATION);
    report_put_metrics(&json, f, WEIR_TARGETS_TEST);
    report_put_served(&json, f);
    if (report_has(f, WEIR_TRAIN_GRAPH_TREES)) report_put_baselines(&json, f);
    weir_json_object_end(&json);
}

static void report_write_provenance(report *f) {
    const weir_cmd_train *c = f->c;
    weir_json json = weir_json_begin(&f->provenance);
    weir_json_object(&json);
    weir_json_key_string(&json, "program", "weir " WEIR_VERSION);
    weir_json_key_string(&json, c->part ? "parts" : "snapshot", c->part ? c->parts_folder : c->snapshot_folder);
    if (c->part) weir_json_key_string(&json, "cutting", weir_part_cutting(c->part));
    weir_json_key_time(&json, "as_of", weir_snapshot_as_of_us(c->opts.snapshot));
    weir_json_key_u64(&json, "seed", c->opts.seed);
    weir_json_key_u64(&json, "sample_seed", c->opts.sample_seed);
    weir_json_key_u64(&json, "ranks", weir_comm_ranks(c->comm));
    if (f->family == WEIR_TRAIN_TREES) { /* the rest is of a network */
        weir_json_key_u64(&json, "trees", f->trees[WEIR_TRAIN_GRAPH_TREES].rounds);
        weir_json_object_end(&json);
        return;
    }
    weir_json_key_u64(&json, "batch", c->opts.batch);
    weir_json_key_u64(&json, "negatives", c->opts.negatives);
    weir_json_key_bool(&json, "again", f->trained.again);
    weir_json_key_f64(&json, "rate", c->opts.rate);
    if (c->opts.schedule == WEIR_TRAIN_COSINE) weir_json_key_string(&json, "schedule", "cosine");
    if (c->opts.schedule == WEIR_TRAIN_COSINE) weir_json_key_f64(&json, "rate_end", c->opts.rate_end);
    if (c->opts.rate_rise) weir_json_key_u64(&json, "rate_rise", c->opts.rate_rise);
    weir_json_key_f64(&json, "decay", c->opts.decay);
    if (c->opts.l2 > 0) weir_json_key_f64(&json, "l2", c->opts.l2);
    weir_json_key_f64(&json, "dropout", c->opts.dropout);
    if (c->opts.edge_dropout > 0) weir_json_key_f64(&json, "edge_dropout", c->opts.edge_dropout);
    if (c->opts.attention_dropout > 0) weir_json_key_f64(&json, "attention_dropout", c->opts.attention_dropout);
    if (c->opts.average > 0) weir_json_key_f64(&json, "average", c->opts.average);
    if (c->opts.focal > 0) weir_json_key_f64(&json, "focal", c->opts.focal);
    weir_json_key_f64(&json, "positive_weight", c->opts.positive_weight);
    weir_json_key_string(&json, "embedding_optimizer", c->opts.adagrad ? "adagrad" : "adamw");
    weir_json_key_f64(&json, "embedding_rate", c->opts.embedding_rate > 0 ? c->opts.embedding_rate : c->opts.rate);
    if (c->opts.embedded_count) weir_json_key_f64(&json, "unknown", c->opts.unknown);
    weir_json_object_end(&json);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void report_write_row(weir_buf *out, const char *name, const weir_train_metrics *m, bool calibrated) {
    char interval[32];
    snprintf(interval, sizeof interval, "%.4f to %.4f", m->interval.low, m->interval.high);
    weir_buf_printf(out, "  %-12s %17.4f  %16s  %6.4f  %19.3f", name, m->average_precision, interval, m->auroc,
                    m->budget_precision);
    if (calibrated)
        weir_buf_printf(out, "  %8.4f  %17.4f\n", m->log_loss, m->calibration_error);
    else
        weir_buf_printf(out, "  %8s  %17s\n", "-", "-");
}

/* Below the model's own figures of the test. */
static void report_write_served(report *f) {
    if (!f->c->as_served) return;
    if (f->why_not_served[0])
        weir_buf_printf(&f->text, "  %-12s %s\n", "as served", f->why_not_served);
    else if (weir_nn_outputs(f->trained.shape) == 1)
        report_write_row(&f->text, "as served", &f->served, true);
    else
        weir_buf_printf(&f->text, "  %-12s accuracy %.4f\n", "as served", f->served.accuracy);
}

/* The network side by side with what it has to beat. */
static void report_write_ranking(report *f, weir_targets_part part) {
    const weir_train_model model = f->family;
    weir_buf_printf(&f->text, "\n  %-12s %17s  %16s  %6s  %19s  %8s  %17s\n", "", "average precision", "95 of 100",
                    "AUROC", "precision at budget", "log loss", "calibration error");
    if (f->trained.nn) report_write_row(&f->text, "network", &f->trained.metrics[part], model == WEIR_TRAIN_NETWORK);
    for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++) {
        const bool graph = b == WEIR_TRAIN_GRAPH_TREES;
        if (!report_has(f, b)) continue;
        if (f->why_not[b][0]) {
            weir_buf_printf(&f->text, "  %-12s %s\n", baseline_names[b].text, f->why_not[b]);
            continue;
        }
        report_write_row(&f->text, baseline_names[b].text, &f->trees[b].metrics[part],
                         graph && model == WEIR_TRAIN_TREES);
        if (f->trained.nn)
            report_write_row(&f->text, "  + network", &f->trees[b].with_network[part],
                             graph && model == WEIR_TRAIN_BLEND);
    }
}

static void report_write_text(report *f) {
    bool binary = weir_nn_outputs(f->trained.shape) == 1;
    uint64_t old = f->trained.targets->old;
    if (f->family != WEIR_TRAIN_TREES)
        weir_buf_printf(&f->text, "best of epoch %u%s\n", f->trained.best_epoch,
                        f->trained.again ? "; learnt again, from validation, too" : "");
    else
        weir_buf_printf(&f->text, "best of %u trees\n", f->trees[WEIR_TRAIN_GRAPH_TREES].rounds);
    if (old)
        weir_buf_printf(&f->text, "excluded: %" PRIu64 " targets from before the history that the snapshot covers\n",
                        old);
    for (weir_targets_part part = WEIR_TARGETS_VALIDATION; part < WEIR_TARGETS_PARTS; part++) {
        const weir_train_metrics *m = &f->metrics_of[part];
        weir_buf_printf(&f->text, "%s: %" PRIu64 " targets", part_names[part], m->targets);
        if (binary) {
            weir_buf_printf(&f->text, ", %" PRIu64 " positive", m->positives);
            report_write_ranking(f, part);
        } else {
            weir_buf_printf(&f->text, ", accuracy %.4f\n", m->accuracy);
        }
        if (part == WEIR_TARGETS_TEST) report_write_served(f);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static weir_pack_opts report_pack_opts(const report *f) {
    const weir_cmd_train *c = f->c;
    const weir_train_trees *trees = &f->trees[WEIR_TRAIN_GRAPH_TREES];
    weir_pack_opts opts = {
        .nn = f->family == WEIR_TRAIN_TREES ? NULL : f->trained.nn,
        .shape = f->trained.shape,
        .sample_seed = c->opts.sample_seed,
        .slope = f->calibration.slope,
        .offset = f->calibration.offset,
        .schema_hash = weir_schema_hash(weir_snapshot_schema(c->opts.snapshot)),
        .metrics = f->metrics.bytes,
        .provenance = f->provenance.bytes,
    };
    if (f->family == WEIR_TRAIN_NETWORK) return opts;
    opts.trees = trees->trees;
    opts.hops = trees->hops;
    opts.blend = trees->blend;
    return opts;
}

static weir_err report_add_model(report *f, const weir_trained *trained) {
    const weir_cmd_train *c = f->c;
    const weir_nn *nn = f->trained.nn;
    weir_pack_opts opts = report_pack_opts(f);
    weir_secret_key *key = NULL;
    weir_pack_draft *draft = NULL;
    weir_models *models = NULL;
    weir_real *host = nn ? weir_malloc(weir_nn_parameter_count(nn) * sizeof *host) : NULL;
    weir_err err = host || !nn ? WEIR_OK : WEIR_NOMEM("for a model");
    if (!err && c->key) err = weir_secret_key_load(c->key, &key);
    if (!err && nn) err = weir_trained_params(trained, host); /* with all ranks, whatever will answer */
    opts.params = host;
    opts.key = key;
    double logit_max;
    if (!err && nn) err = weir_err_prefix(weir_nn_bound(nn, host, &logit_max), "nobody could serve this model");
    if (!err) err = weir_pack_draft_open(&opts, &draft);
    if (!err) err = weir_models_open(c->models, weir_clock_system(), &models);
    if (!err) err = weir_models_add(models, weir_pack_draft_opts(draft), f->id);
    if (!err) weir_buf_printf(&f->text, "model %s\n", f->id);
    weir_models_close(models);
    weir_pack_draft_close(draft);
    weir_free(host);
    weir_secret_key_free(key);
    return err;
}

/* Trees that cannot be had are no reason to lose the network, unless they are the model, or a part of it. */
static weir_err report_learn_trees(report *f, const weir_trained *trained) {
    const weir_targets *targets = f->trained.targets;
    for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++) {
        if (!report_has(f, b)) continue;
        f->tree_scores[b] = weir_calloc(targets->count - targets->ends[WEIR_TARGETS_TRAIN], sizeof(double));
        weir_err missing = f->tree_scores[b] ? weir_train_trees_learn(trained, b, &f->trees[b], f->tree_scores[b])
                                             : WEIR_NOMEM("for the scores of trees");
        if (missing && b == WEIR_TRAIN_GRAPH_TREES &&
            (f->c->opts.model == WEIR_TRAIN_TREES || f->c->opts.model == WEIR_TRAIN_BLEND))
            return missing;
        if (missing) weir_err_sentence(missing, f->why_not[b], sizeof f->why_not[b]);
    }
    return WEIR_OK;
}

/* Whether it can be had of this training. */
static bool report_can_be(const report *f, weir_train_model family) {
    const weir_train_opts *o = &f->c->opts;
    if (family == WEIR_TRAIN_NETWORK) return true;
    if (!f->trees[WEIR_TRAIN_GRAPH_TREES].trees) return false;
    if (!weir_tree_columns_share(f->trained.shape, WEIR_TREE_COLUMNS_HOPS_MAX)) return false;
    return family == WEIR_TRAIN_BLEND || (o->reach.layers <= WEIR_TREE_COLUMNS_HOPS_MAX && !o->embedded_count);
}

/* Of --model best: by validation, since what the test would choose it could not measure. Of equals the simpler one. */
static void report_choose_family(report *f) {
    const weir_train_trees *trees = &f->trees[WEIR_TRAIN_GRAPH_TREES];
    const double got[] = {
        [WEIR_TRAIN_NETWORK] = f->trained.metrics[WEIR_TARGETS_VALIDATION].average_precision,
        [WEIR_TRAIN_TREES] = trees->metrics[WEIR_TARGETS_VALIDATION].average_precision,
        [WEIR_TRAIN_BLEND] = trees->with_network[WEIR_TARGETS_VALIDATION].average_precision,
    };
    f->family = f->c->opts.model;
    if (f->family != WEIR_TRAIN_BEST) return;
    f->family = WEIR_TRAIN_NETWORK;
    for (weir_train_model m = WEIR_TRAIN_TREES; m <= WEIR_TRAIN_BLEND; m++)
        if (report_can_be(f, m) && got[m] > got[f->family]) f->family = m;
    weir_buf_printf(&f->text, "best on validation: %s", weir_cmd_train_models[f->family]);
    for (weir_train_model m = WEIR_TRAIN_NETWORK; m <= WEIR_TRAIN_BLEND; m++)
        if (report_can_be(f, m) && m != f->family)
            weir_buf_printf(&f->text, ", %.4f above %s", got[f->family] - got[m], weir_cmd_train_models[m]);
    weir_buf_byte(&f->text, '\n');
}

/* What the model gets and says, whichever it is. */
static weir_err report_choose(report *f) {
    const weir_train_trees *trees = &f->trees[WEIR_TRAIN_GRAPH_TREES];
    report_choose_family(f);
    const double *tree_scores = f->tree_scores[WEIR_TRAIN_GRAPH_TREES];
    const weir_targets *targets = f->trained.targets;
    const uint64_t count = targets->count - targets->ends[WEIR_TARGETS_TRAIN];
    f->metrics_of = f->trained.metrics;
    f->calibration = f->trained.calibration;
    if (f->family == WEIR_TRAIN_TREES) {
        f->metrics_of = trees->metrics;
        f->calibration = trees->calibration;
    }
    if (f->family != WEIR_TRAIN_BLEND) return WEIR_OK;
    f->metrics_of = trees->with_network;
    f->calibration = trees->blended;
    f->blended = weir_calloc(count, sizeof *f->blended);
    if (!f->blended) return WEIR_NOMEM("for the scores of a blend");
    for (uint64_t i = 0; i < count; i++)
        f->blended[i] = weir_blend_of(&trees->blend, f->trained.scores[i], tree_scores[i]);
    return WEIR_OK;
}

/* What --as-served gets on the test, by a model of the same kind. */
static weir_err report_judge_served(report *f) {
    const weir_cmd_served *served = &f->c->served;
    weir_train_trees trees;
    snprintf(f->why_not_served, sizeof f->why_not_served, "%s", served->why_not);
    if (!served->trained) return WEIR_OK;
    const weir_trained_view view = weir_trained_look(served->trained);
    f->served = view.metrics[WEIR_TARGETS_TEST];
    if (f->family == WEIR_TRAIN_NETWORK) return WEIR_OK;
    weir_err err = weir_train_trees_learn(served->trained, WEIR_TRAIN_GRAPH_TREES, &trees, NULL);
    f->served = (f->family == WEIR_TRAIN_BLEND ? trees.with_network : trees.metrics)[WEIR_TARGETS_TEST];
    weir_train_trees_free(&trees);
    if (err) weir_err_sentence(err, f->why_not_served, sizeof f->why_not_served);
    return WEIR_OK;
}

static weir_err report_write_predictions(const report *f) {
    const weir_schema *schema = weir_snapshot_schema(f->c->opts.snapshot);
    const weir_schema_label *label = weir_schema_label_at(schema, weir_schema_task_at(schema, f->c->opts.task)->label);
    weir_cmd_predictions p = {.trained = f->trained,
                              .scores = f->trained.scores,
                              .calibration = f->calibration,
                              .values = weir_nn_outputs(f->trained.shape) == 1 ? NULL : &label->values};
    if (f->family == WEIR_TRAIN_TREES) p.scores = f->tree_scores[WEIR_TRAIN_GRAPH_TREES];
    if (f->blended) {
        p.scores = f->blended;
        p.network = f->trained.scores;
    }
    for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++)
        p.trees[b] = f->why_not[b][0] ? NULL : f->tree_scores[b];
    return weir_cmd_train_predictions(f->c->predictions, &p, f->c->opts.snapshot);
}

static weir_err report_write(report *f, const weir_trained *trained) {
    const weir_cmd_train *c = f->c;
    report_write_metrics(f);
    report_write_provenance(f);
    report_write_text(f);
    weir_err err = weir_buf_err(&f->metrics);
    if (!err) err = weir_buf_err(&f->provenance);
    if (!err) err = weir_cmd_train_write_report(c, &f->metrics);
    if (!err && c->models) err = report_add_model(f, trained);
    if (!err) err = weir_cmd_train_write_run(c, f->id);
    if (!err) err = weir_buf_err(&f->text);
    if (!err) err = weir_cli_output(f->text.bytes, f->text.length);
    if (!err && c->predictions) err = report_write_predictions(f); /* last: it is no reason to lose the model */
    return err;
}

weir_err weir_cmd_train_finish(const weir_cmd_train *c, const weir_trained *trained) {
    const bool whole = c->opts.model == WEIR_TRAIN_TREES; /* all that there is, is on rank 0 */
    if (weir_comm_rank(c->comm) != 0) return c->models && !whole ? weir_trained_params(trained, NULL) : WEIR_OK;
    report *f = weir_calloc(1, sizeof *f);
    if (!f) return WEIR_NOMEM("for the report of a training");
    f->c = c;
    f->trained = weir_trained_look(trained);
    weir_err err = report_learn_trees(f, trained);
    if (!err) err = report_choose(f);
    if (!err) err = report_judge_served(f);
    if (!err) err = report_write(f, trained);
    weir_buf_free(&f->metrics);
    weir_buf_free(&f->provenance);
    weir_buf_free(&f->text);
    for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++) {
        weir_free(f->tree_scores[b]);
        weir_train_trees_free(&f->trees[b]);
    }
    weir_free(f->blended);
    weir_free(f);
    return err;
}
