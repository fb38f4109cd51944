/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - the last step of a training alone, with parameters from elsewhere. */
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/inputs/tree_rows.h>
#include <weir/store/base/alloc.h>
#include <weir/trainer/train/judge.h>

#include "training_private.h"

static weir_err judge_network_open(weir_trained *t, const weir_nn *nn) {
    t->logits = weir_calloc((size_t)t->opts.batch * weir_nn_outputs(t->shape), sizeof *t->logits);
    if (!t->logits) return WEIR_NOMEM("while judging a model; lower --batch");
    weir_err err = weir_nn_open(t->shape, weir_nn_kernels(nn), &t->nn);
    if (!err) err = weir_training_judge_channels(t);
    return err ? err : weir_nn_workspace_open(t->nn, false, &t->workspace);
}

static weir_err judge_open(weir_trained *t, const weir_judge_model *model) {
    const weir_schema *schema = weir_snapshot_schema(t->opts.snapshot);
    weir_targets_opts opts = {.cut = t->opts.cut, .comm = t->opts.part ? t->comm : NULL};
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);

    /* A shape of our own, through its text, which holds all of it but the known vertices: the caller's is read-only. */
    weir_nn_shape_print(model->shape, &json);
    weir_err err = weir_buf_err(&text);
    if (!err) err = weir_nn_shape_read("network", text.bytes, text.length, &t->shape);
    weir_buf_free(&text);
    for (uint32_t i = 0; !err && i < weir_nn_types(t->shape); i++) {
        const weir_nn_inputs *from = weir_nn_vertex(model->shape, i);
        if (from->known_count > 0)
            err = weir_nn_shape_know(t->shape, &(weir_nn_known){i, from->known, from->known_count});
    }
    if (!err && model->trees && t->opts.part)
        err =
            WEIR_ERR(WEIR_EINVAL, "the model has trees, which one rank judges, and that has only its part; judge it on "
                                  "the whole snapshot");
    if (err) return err;
    opts.task = t->opts.task = weir_schema_task_find(schema, weir_nn_task(t->shape));
    if (opts.task == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EVERSION, "the model answers task '%s', which the snapshot's schema does not have",
                        weir_nn_task(t->shape));
    err = weir_nn_shape_fits(t->shape, schema);
    if (!err) err = weir_targets_open(t->opts.snapshot, &opts, &t->targets);
    if (err) return err;
    size_t judged = (size_t)(t->targets->count - t->targets->ends[WEIR_TARGETS_TRAIN]);
    t->scores = weir_calloc(judged, sizeof *t->scores);
    if (!t->scores) return WEIR_NOMEM("while judging a model; take fewer targets");
    return model->nn ? judge_network_open(t, model->nn) : WEIR_OK;
}

/* What trees say of the test, in place of what the network has said, or together with it. */
static weir_err judge_trees(const weir_trained *t, const weir_judge_model *model) {
    const uint64_t begin = weir_targets_begin(t->targets, WEIR_TARGETS_TEST);
    const uint64_t count = t->targets->ends[WEIR_TARGETS_TEST] - begin;
    double *scores = weir_training_scores(t, WEIR_TARGETS_TEST);
    weir_tree_rows *reader = NULL;
    float margins[WEIR_TREE_ROWS_MAX],
        *rows = weir_calloc(WEIR_TREE_ROWS_MAX, weir_tree_columns_count(t->shape, model->hops) * sizeof *rows);
    weir_err err = rows ? WEIR_OK : WEIR_NOMEM("while judging a model");
    if (!err) err = weir_tree_rows_open(t->shape, t->opts.snapshot, model->hops, t->opts.sample_seed, &reader);
    for (uint64_t at = 0; !err && at < count; at += WEIR_TREE_ROWS_MAX) {
        const uint32_t some = count - at < WEIR_TREE_ROWS_MAX ? (uint32_t)(count - at) : WEIR_TREE_ROWS_MAX;
        err = weir_tree_rows_read(reader, t->targets->targets + begin + at, some, rows);
        if (!err) weir_trees_walk(model->trees, rows, some, margins);
        for (uint32_t i = 0; !err && i < some; i++)
            scores[at + i] =
                model->nn ? weir_blend_of(&model->blend, scores[at + i], (double)margins[i]) : (double)margins[i];
    }
    weir_tree_rows_close(reader);
    weir_free(rows);
    return err;
}

/* What the model saw best of what was there to see. Its key is known to the rank that has it. */
static weir_err judge_find_example(const weir_trained *t, weir_judged_example *example) {
    const weir_train_owners owners = weir_training_owners(t);
    const weir_targets *targets = t->targets;
    const double *scores = weir_training_scores(t, WEIR_TARGETS_TEST);
    uint64_t begin = weir_targets_begin(targets, WEIR_TARGETS_TEST), best = targets->count;
    for (uint64_t i = begin; i < targets->ends[WEIR_TARGETS_TEST]; i++)
        if (targets->classes_of[i] == 1 && (best == targets->count || scores[i - begin] > scores[best - begin]))
            best = i;
    if (best == targets->count) return WEIR_OK;

    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(t->opts.snapshot, weir_nn_target_type(t->shape));
    const uint8_t *key = NULL;
    uint64_t length = 0, *lengths = weir_calloc(owners.ranks, sizeof *lengths);
    weir_buf told = {0};
    if (weir_train_target_owner(&owners, targets, best) == owners.rank) {
        uint64_t vertex = (uint64_t)targets->targets[weir_targets_place(targets, best)].vertex;
        int64_t from = v->key_offsets[vertex], to = v->key_offsets[vertex + 1];
        bool fits = from >= 0 && from <= to && to <= v->key_offsets[v->count] &&
                    to - from <= WEIR_JUDGED_KEY_BYTES_MAX; /* the file is not trusted */
        key = v->key_bytes + (fits ? from : 0);
        length = fits ? (uint64_t)(to - from) : 0;
    }
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM("while judging a model; lower --batch");
    if (!err) err = weir_comm_gather(t->comm, key, length, &told, lengths);
    *example = (weir_judged_example){.found = !err && told.length > 0 && told.length <= sizeof example->key,
                                     .type = weir_nn_target_type(t->shape),
                                     .score = scores[best - begin]};
    if (example->found) memcpy(example->key, told.bytes, example->key_length = told.length);
    weir_free(lengths);
    weir_buf_free(&told);
    return err;
}

static weir_err judge_copy_scores(const weir_trained *t, weir_judged *judged) {
    const uint64_t begin = weir_targets_begin(t->targets, WEIR_TARGETS_TEST);
    const uint64_t count = t->targets->ends[WEIR_TARGETS_TEST] - begin;
    judged->scores = weir_calloc(count + 1, sizeof *judged->scores);
    judged->classes = weir_malloc(count + 1);
    if (!judged->scores || !judged->classes) return WEIR_NOMEM("while judging a model; take fewer test targets");
    memcpy(judged->scores, weir_training_scores(t, WEIR_TARGETS_TEST), count * sizeof *judged->scores);
    memcpy(judged->classes, t->targets->classes_of + begin, count);
    judged->count = count;
    return WEIR_OK;
}

weir_err weir_train_judge(weir_comm *comm, const weir_train_opts *opts, const weir_judge_model *model,
                          weir_judged *judgedp) {
    *judgedp = (weir_judged){.count = 0};
    weir_trained *t = weir_calloc(1, sizeof *t);
    if (!t) return weir_comm_fail(comm, WEIR_NOMEM("while judging a model; lower --batch"));
    t->opts = *opts;
    t->comm = comm;
    weir_err err = weir_comm_fail(comm, weir_training_as_usage(judge_open(t, model)));
    if (!err && model->nn) err = weir_training_judge(t, WEIR_TARGETS_TEST, model->params);
    if (!err && model->trees) err = weir_comm_fail(comm, judge_trees(t, model));
    if (!err)
        err = weir_comm_fail(comm, weir_training_measure(t, weir_training_scores(t, WEIR_TARGETS_TEST),
                                                         WEIR_TARGETS_TEST, &judgedp->metrics));

    if (!err) err = weir_comm_fail(comm, judge_find_example(t, &judgedp->example));
    if (!err && weir_comm_rank(comm) == 0) err = weir_comm_fail(comm, judge_copy_scores(t, judgedp));
    weir_trained_close(t);
    return err;
}

void weir_judged_free(weir_judged *judged) {
    weir_free(judged->scores);
    weir_free(judged->classes);
    *judged = (weir_judged){.count = 0};
}
