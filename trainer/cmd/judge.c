/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - `weir train --judge`: what a finished model gets on the test targets of a snapshot. */
#include <weir/inference/pack/pack.h>
#include <weir/trainer/train/judge.h>

#include "train_private.h"

static void judge_put_example(weir_json *json, const weir_snapshot *snapshot, const weir_judged_example *example) {
    if (!example->found) return;
    weir_json_key(json, "example");
    weir_json_object(json);
    weir_json_key_string(json, "type", weir_schema_vertex_at(weir_snapshot_schema(snapshot), example->type)->name);
    weir_json_key_text(json, "key", example->key, example->key_length);
    weir_json_object_end(json);
}

static weir_err judge_print(const weir_cmd_train *c, const weir_train_metrics *m, const weir_judged_example *example,
                            const weir_nn_shape *shape) {
    bool binary = weir_nn_outputs(shape) == 1;
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    weir_json_object(&json);
    weir_json_key_string(&json, "task", weir_nn_task(shape));
    weir_json_key_u64(&json, "targets", m->targets);
    weir_json_key_u64(&json, "positives", m->positives);
    weir_json_key_string(&json, "measure", binary ? "average precision" : "accuracy");
    weir_json_key_f64(&json, "value", binary ? m->average_precision : m->accuracy);
    if (binary) {
        weir_json_key_f64(&json, "auroc", m->auroc);
        weir_json_key_f64(&json, "precision_at_budget", m->budget_precision);
    }
    judge_put_example(&json, c->opts.snapshot, example);
    weir_json_object_end(&json);
    weir_buf_byte(&out, '\n');
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

weir_err weir_cmd_train_judge(const weir_cli *cli, weir_cmd_train *c) {
    const weir_config *config = weir_cli_config(cli);
    weir_model_trust trust;
    weir_model *model = NULL;
    weir_pack *pack = NULL;
    weir_train_metrics metrics;
    weir_judged_example example;
    weir_err err = weir_model_trust_load(weir_config_text(config, WEIR_CONFIG_MODELS_PUBLIC_KEYS),
                                         !weir_config_bool(config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE), &trust);
    if (!err) err = weir_model_open(weir_cli_text(cli, "judge"), &trust.opts, &model);
    if (!err) err = weir_pack_open(model, weir_kernels_cpu(), &pack);
    weir_model_close(model);
    err = weir_comm_fail(c->comm, err);
    if (err) return err;

    const weir_pack_contents of = weir_pack_look(pack);
    c->opts.sample_seed = of.sample_seed;
    err = weir_train_judge(c->comm, &c->opts, of.nn, of.params, &metrics, &example);
    if (!err && weir_comm_rank(c->comm) == 0) err = judge_print(c, &metrics, &example, weir_nn_shape_of(of.nn));
    weir_pack_close(pack);
    return err;
}
