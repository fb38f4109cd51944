/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - what a training leaves: a report for people, the same as JSON, and a model. */
#include <inttypes.h>
#include <stdio.h>

#include <weir/base/alloc.h>
#include <weir/base/clock.h>
#include <weir/base/file.h>
#include <weir/cli/cli.h>
#include <weir/inference/pack.h>

#include "train_private.h"

static const char *const part_names[WEIR_TARGETS_PARTS] = {"train", "validation", "test"};

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void put_f64(weir_json *json, const char *key, double value) {
    weir_json_key(json, key);
    weir_json_f64(json, value);
}

static void put_u64(weir_json *json, const char *key, uint64_t value) {
    weir_json_key(json, key);
    weir_json_u64(json, value);
}

static void put_time(weir_json *json, const char *key, int64_t wall_us) {
    char text[WEIR_TIME_TEXT_MAX];
    weir_time_format(wall_us, text);
    weir_json_key(json, key);
    weir_json_string(json, text);
}

static void put_metrics(weir_json *json, const weir_trained *trained, weir_targets_part part) {
    const weir_train_metrics *m = weir_trained_metrics(trained, part);
    const weir_targets *targets = weir_trained_targets(trained);
    weir_json_key(json, part_names[part]);
    weir_json_object(json);
    put_u64(json, "targets", m->targets);
    put_u64(json, "positives", m->positives);
    put_time(json, "from", targets->targets[weir_targets_begin(targets, part)].before_us);
    put_time(json, "to", targets->targets[targets->ends[part] - 1].before_us);
    if (weir_nn_outputs(weir_trained_shape(trained)) == 1) {
        put_f64(json, "average_precision", m->average_precision);
        put_f64(json, "auroc", m->auroc);
        put_f64(json, "precision_at_budget", m->budget_precision);
        put_f64(json, "recall_at_budget", m->budget_recall);
        put_f64(json, "log_loss", m->log_loss);
    } else {
        put_f64(json, "accuracy", m->accuracy);
    }
    weir_json_object_end(json);
}

static void write_metrics(const weir_cmd_train *c, const weir_trained *trained, weir_buf *out) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "task");
    weir_json_string(&json, weir_nn_task(weir_trained_shape(trained)));
    put_u64(&json, "alerts_a_day", c->opts.alerts);
    put_u64(&json, "best_epoch", weir_trained_best_epoch(trained));
    put_metrics(&json, trained, WEIR_TARGETS_VALIDATION);
    put_metrics(&json, trained, WEIR_TARGETS_TEST);
    weir_json_object_end(&json);
}

static void write_provenance(const weir_cmd_train *c, weir_buf *out) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "program");
    weir_json_string(&json, "weir " WEIR_VERSION);
    weir_json_key(&json, "snapshot");
    weir_json_string(&json, c->snapshot_folder);
    put_time(&json, "as_of", weir_snapshot_as_of_us(c->snapshot));
    put_u64(&json, "seed", c->opts.seed);
    put_u64(&json, "sample_seed", c->opts.sample_seed);
    put_u64(&json, "ranks", weir_comm_ranks(c->comm));
    put_u64(&json, "batch", c->opts.batch);
    put_u64(&json, "negatives", c->opts.negatives);
    put_f64(&json, "rate", c->opts.rate);
    put_f64(&json, "decay", c->opts.decay);
    put_f64(&json, "dropout", c->opts.dropout);
    put_f64(&json, "positive_weight", c->opts.positive_weight);
    weir_json_object_end(&json);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void write_text(const weir_trained *trained, weir_buf *out) {
    bool binary = weir_nn_outputs(weir_trained_shape(trained)) == 1;
    weir_buf_printf(out, "best of epoch %u\n", weir_trained_best_epoch(trained));
    for (weir_targets_part part = WEIR_TARGETS_VALIDATION; part < WEIR_TARGETS_PARTS; part++) {
        const weir_train_metrics *m = weir_trained_metrics(trained, part);
        weir_buf_printf(out, "%-10s  %" PRIu64 " targets, %" PRIu64 " positive: ", part_names[part], m->targets,
                        m->positives);
        if (binary)
            weir_buf_printf(out, "average precision %.4f, AUROC %.4f, precision at budget %.3f, log loss %.4f\n",
                            m->average_precision, m->auroc, m->budget_precision, m->log_loss);
        else
            weir_buf_printf(out, "accuracy %.4f\n", m->accuracy);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static weir_err write_report(const weir_cmd_train *c, const weir_buf *metrics) {
    char path[4096];
    if (!c->opts.folder) return WEIR_OK;
    snprintf(path, sizeof path, "%s/report.json", c->opts.folder);
    return weir_file_replace(path, metrics->bytes, metrics->length);
}

static weir_err add_packed(const weir_cmd_train *c, const weir_pack_opts *opts, weir_buf *text) {
    weir_pack_draft *draft = NULL;
    weir_models *models = NULL;
    char id[WEIR_MODEL_ID_MAX];
    weir_err err = weir_pack_draft_open(opts, &draft);
    if (!err) err = weir_models_open(c->models, weir_clock_system(), &models);
    if (!err) err = weir_models_add(models, weir_pack_draft_opts(draft), id);
    if (!err) weir_buf_printf(text, "model %s\n", id);
    weir_models_close(models);
    weir_pack_draft_close(draft);
    return err;
}

static weir_err add_model(const weir_cmd_train *c, const weir_trained *trained, const char *metrics,
                          const char *provenance, weir_buf *text) {
    const weir_nn *nn = weir_trained_nn(trained);
    uint64_t bytes = weir_nn_parameter_count(nn) * sizeof(weir_real);
    weir_pack_opts opts = {
        .nn = nn,
        .sample_seed = c->opts.sample_seed,
        .slope = weir_trained_calibration(trained)->slope,
        .offset = weir_trained_calibration(trained)->offset,
        .schema_hash = weir_schema_hash(weir_snapshot_schema(c->snapshot)),
        .metrics = metrics,
        .provenance = provenance,
    };
    weir_secret_key *key = NULL;
    weir_real *host = weir_malloc(bytes);
    weir_err err = host ? WEIR_OK : WEIR_ERR(WEIR_ENOMEM, "no memory for a model");
    if (!err && c->key) err = weir_secret_key_load(c->key, &key);
    if (!err) weir_nn_kernels(nn)->to_host(host, weir_trained_params(trained), bytes);
    opts.params = host;
    opts.key = key;
    if (!err) err = add_packed(c, &opts, text);
    weir_free(host);
    weir_secret_key_free(key);
    return err;
}

weir_err weir_cmd_train_finish(const weir_cmd_train *c, const weir_trained *trained) {
    weir_buf metrics = {0}, provenance = {0}, text = {0};
    write_metrics(c, trained, &metrics);
    write_provenance(c, &provenance);
    write_text(trained, &text);
    weir_err err = weir_buf_err(&metrics);
    if (!err) err = weir_buf_err(&provenance);
    if (!err) err = write_report(c, &metrics);
    if (!err && c->models) err = add_model(c, trained, metrics.bytes, provenance.bytes, &text);
    if (!err) err = weir_buf_err(&text);
    if (!err) err = weir_cli_output(text.bytes, text.length);
    weir_buf_free(&metrics);
    weir_buf_free(&provenance);
    weir_buf_free(&text);
    return err;
}
