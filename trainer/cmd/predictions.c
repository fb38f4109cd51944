/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predictions.c - what a training says of each target of validation and test, as a table for other programs.
 *
 *   part,key,time,label,score,probability,graph_trees,row_trees    a yes-or-no question: label 1 or 0; log odds
 *                                                                  of a blend behind its probability: network
 *   part,key,time,label,predicted                                  several classes: their texts
 *
 * Columns of trees are there if these were learnt. Targets stand in the order of their parts, and there of time.
 */
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "train_private.h"

/* What is said of the target at this place of those behind the training part. */
static void predictions_put_scores(weir_buf *out, const weir_cmd_predictions *p, uint32_t class_of, uint64_t place) {
    const double score = p->scores[place];
    if (!p->values) {
        weir_buf_printf(out, ",%u,%.9g,%.9g", class_of != 0, score, weir_calibrated(&p->calibration, score));
        if (p->network) weir_buf_printf(out, ",%.9g", p->network[place]);
        for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++)
            if (p->trees[b]) weir_buf_printf(out, ",%.9g", p->trees[b][place]);
        return;
    }
    const char *const texts[2] = {p->values->texts[class_of], p->values->texts[(uint32_t)score]};
    for (unsigned i = 0; i < 2; i++) {
        weir_buf_byte(out, ',');
        weir_buf_csv(out, texts[i], strlen(texts[i]));
    }
}

weir_err weir_cmd_train_predictions(const char *path, const weir_cmd_predictions *p, const weir_snapshot *snapshot) {
    static const char *const parts[WEIR_TARGETS_PARTS] = {"train", "validation", "test"};
    static const char *const trees[WEIR_TRAIN_BASELINES] = {",graph_trees", ",row_trees"};
    const weir_targets *targets = p->trained.targets;
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, weir_nn_target_type(p->trained.shape));
    const uint64_t first = targets->ends[WEIR_TARGETS_TRAIN];
    char time[WEIR_TIME_TEXT_MAX];
    weir_buf out = {0};
    weir_err err = WEIR_OK;
    weir_buf_printf(&out, "part,key,time,label,%s", p->values ? "predicted" : "score,probability");
    if (p->network) weir_buf_text(&out, ",network");
    for (weir_train_baseline b = 0; b < WEIR_TRAIN_BASELINES; b++)
        if (p->trees[b]) weir_buf_text(&out, trees[b]);
    weir_buf_byte(&out, '\n');
    for (uint64_t i = first; !err && i < targets->count; i++) {
        const weir_target *target = &targets->targets[weir_targets_place(targets, i)];
        weir_buf_printf(
            &out, "%s,",
            parts[i < targets->ends[WEIR_TARGETS_VALIDATION] ? WEIR_TARGETS_VALIDATION : WEIR_TARGETS_TEST]);
        err = weir_snapshot_csv_key(v, (uint64_t)target->vertex, &out);
        weir_time_format(target->before_us, time);
        weir_buf_printf(&out, ",%s", time);
        predictions_put_scores(&out, p, targets->classes_of[i], i - first);
        weir_buf_byte(&out, '\n');
    }
    if (!err) err = weir_buf_err(&out);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}
