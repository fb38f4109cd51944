/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - `weir train --judge`: what a finished model gets on the test targets of a snapshot, and `--against` which
 * other one. */
#include <string.h>

#include <weir/inference/pack/pack.h>
#include <weir/trainer/train/judge.h>

#include "train_private.h"

/* A model and what it gets. */
typedef struct judge_one {
    weir_pack *pack;
    const weir_nn_shape *shape;
    weir_judged judged;
} judge_one;

static void judge_put_example(weir_json *json, const weir_snapshot *snapshot, const weir_judged_example *example) {
    if (!example->found) return;
    weir_json_key(json, "example");
    weir_json_object(json);
    weir_json_key_string(json, "type", weir_schema_vertex_at(weir_snapshot_schema(snapshot), example->type)->name);
    weir_json_key_text(json, "key", example->key, example->key_length);
    weir_json_object_end(json);
}

static double judge_value(const judge_one *one) {
    return weir_nn_outputs(one->shape) == 1 ? one->judged.metrics.average_precision : one->judged.metrics.accuracy;
}

static void judge_put_figures(weir_json *json, const judge_one *one) {
    const bool binary = weir_nn_outputs(one->shape) == 1;
    weir_json_key_u64(json, "targets", one->judged.metrics.targets);
    weir_json_key_u64(json, "positives", one->judged.metrics.positives);
    weir_json_key_string(json, "measure", binary ? "average precision" : "accuracy");
    weir_json_key_f64(json, "value", judge_value(one));
    if (!binary) return;
    weir_json_key_f64(json, "auroc", one->judged.metrics.auroc);
    weir_json_key_f64(json, "precision_at_budget", one->judged.metrics.budget_precision);
}

/* other: NULL: there is none. */
static weir_err judge_print(const weir_cmd_train *c, const judge_one *one, const judge_one *other,
                            weir_interval difference) {
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    weir_json_object(&json);
    weir_json_key_string(&json, "task", weir_nn_task(one->shape));
    judge_put_figures(&json, one);
    if (!other) judge_put_example(&json, c->opts.snapshot, &one->judged.example);
    if (other) {
        weir_json_key(&json, "against");
        weir_json_object(&json);
        judge_put_figures(&json, other);
        weir_json_object_end(&json);
        weir_json_key(&json, "difference");
        weir_json_object(&json);
        weir_json_key_f64(&json, "value", judge_value(one) - judge_value(other));
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

static weir_err judge_open_model(const weir_cli *cli, const char *folder, judge_one *one) {
    const weir_config *config = weir_cli_config(cli);
    weir_model_trust trust;
    weir_model *model = NULL;
    weir_err err = weir_model_trust_load(weir_config_text(config, WEIR_CONFIG_MODELS_PUBLIC_KEYS),
                                         !weir_config_bool(config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE), &trust);
    if (!err) err = weir_model_open(folder, &trust.opts, &model);
    if (!err) err = weir_pack_open(model, weir_kernels_cpu(), &one->pack);
    weir_model_close(model);
    if (!err) one->shape = weir_pack_look(one->pack).shape;
    return err;
}

static weir_err judge_run(weir_cmd_train *c, judge_one *one) {
    const weir_pack_contents of = weir_pack_look(one->pack);
    c->opts.sample_seed = of.sample_seed;
    const weir_judge_model model = {of.shape, of.nn, of.params, of.trees, of.hops, of.blend};
    return weir_train_judge(c->comm, &c->opts, &model, &one->judged);
}

static weir_err judge_compare(const judge_one *one, const judge_one *other, weir_interval *differencep) {
    const weir_judged *a = &one->judged, *b = &other->judged;
    const bool binary = weir_nn_outputs(one->shape) == 1;
    if (a->count != b->count || memcmp(a->classes, b->classes, a->count) != 0)
        return WEIR_ERR(WEIR_EINTERNAL, "two models of one task were judged on other targets");
    if (!binary) return weir_eval_accuracy_difference(a->scores, b->scores, a->classes, a->count, differencep);
    for (uint64_t i = 0; i < a->count; i++)
        a->classes[i] = a->classes[i] != 0;
    const weir_scored scored = {a->scores, a->classes, a->count};
    return weir_eval_average_precision_difference(&scored, b->scores, 0, differencep);
}

weir_err weir_cmd_train_judge(const weir_cli *cli, weir_cmd_train *c) {
    const char *against = weir_cli_text(cli, "against");
    judge_one one = {.pack = NULL}, other = {.pack = NULL};
    weir_interval difference = {0, 0};
    weir_err err = judge_open_model(cli, weir_cli_text(cli, "judge"), &one);
    if (!err && against) err = judge_open_model(cli, against, &other);
    if (!err && against && strcmp(weir_nn_task(one.shape), weir_nn_task(other.shape)) != 0)
        err = WEIR_ERR(WEIR_EVERSION, "the models answer tasks '%s' and '%s', so no figure of one is one of the other",
                       weir_nn_task(one.shape), weir_nn_task(other.shape));
    err = weir_comm_fail(c->comm, err);
    if (!err) err = judge_run(c, &one);
    if (!err && against) err = judge_run(c, &other);
    if (!err && weir_comm_rank(c->comm) == 0) {
        if (against) err = judge_compare(&one, &other, &difference);
        if (!err) err = judge_print(c, &one, against ? &other : NULL, difference);
    }
    weir_judged_free(&one.judged);
    weir_judged_free(&other.judged);
    weir_pack_close(one.pack);
    weir_pack_close(other.pack);
    return err;
}
