/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - the last step of a training alone, with parameters from elsewhere. */
#include <weir/store/base/alloc.h>
#include <weir/trainer/train/judge.h>

#include "training_private.h"

static weir_err judge_open(weir_trained *t, const weir_nn *nn) {
    const weir_schema *schema = weir_snapshot_schema(t->opts.snapshot);
    weir_targets_opts opts = {.cut = t->opts.cut};
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);

    /* A shape of our own, through its text, which holds all of it: the caller's is read-only. */
    weir_nn_shape_print(weir_nn_shape_of(nn), &json);
    weir_err err = weir_buf_err(&text);
    if (!err) err = weir_nn_shape_read("network", text.bytes, text.length, &t->shape);
    weir_buf_free(&text);
    if (err) return err;
    opts.task = t->opts.task = weir_schema_task_find(schema, weir_nn_task(t->shape));
    if (opts.task == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EVERSION, "the model answers task '%s', which the snapshot's schema does not have",
                        weir_nn_task(t->shape));
    err = weir_nn_shape_fits(t->shape, schema);

    if (!err) err = weir_targets_open(t->opts.snapshot, &opts, &t->targets);
    if (err) return err;
    t->logits = weir_calloc((size_t)t->opts.batch * weir_nn_outputs(t->shape), sizeof *t->logits);
    t->scores = weir_calloc(t->targets->count, sizeof *t->scores);
    t->list = weir_calloc(t->targets->count, sizeof *t->list);
    if (!t->logits || !t->scores || !t->list) return WEIR_NOMEM("while judging a model; lower --batch");
    err = weir_nn_open(t->shape, weir_nn_kernels(nn), &t->nn);
    for (uint32_t i = 0; !err && i < 2; i++)
        err = weir_comm_channel(t->comm, &t->channels[i]);
    return err ? err : weir_nn_workspace_open(t->nn, false, &t->judge_workspace);
}

weir_err weir_train_judge(weir_comm *comm, const weir_train_opts *opts, const weir_nn *nn, const weir_real *params,
                          weir_train_metrics *metricsp, weir_judged_example *examplep) {
    *metricsp = (weir_train_metrics){0};
    *examplep = (weir_judged_example){.found = false};
    weir_trained *t = weir_calloc(1, sizeof *t);
    if (!t) return weir_comm_fail(comm, WEIR_NOMEM("while judging a model; lower --batch"));
    t->opts = *opts;
    t->comm = comm;
    weir_err err = weir_comm_fail(comm, judge_open(t, nn));
    if (!err) err = weir_training_judge(t, WEIR_TARGETS_TEST, params);
    if (!err) err = weir_comm_fail(comm, weir_training_measure(t, t->scores, WEIR_TARGETS_TEST, metricsp));

    /* The example is what the network saw best of what was there to see. */
    uint64_t end = err ? 0 : t->targets->ends[WEIR_TARGETS_TEST];
    for (uint64_t i = err ? 0 : weir_targets_begin(t->targets, WEIR_TARGETS_TEST); i < end; i++) {
        if (t->targets->classes_of[i] != 1 || (examplep->found && t->scores[i] <= examplep->score)) continue;
        *examplep = (weir_judged_example){true, weir_nn_target_type(t->shape), (uint64_t)t->targets->targets[i].vertex,
                                          t->scores[i]};
    }
    weir_trained_close(t);
    return err;
}
