/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.c - the models of some days: learnt from what was known when these began, and what they say of the targets.
 *
 *   FOLDER/days/FIRST-DAY.json    {"made_of": hash, "scores": {"network": [one a target], …}, "check": …}
 *
 * It is there under its name whole or not at all, and scores stand in it as they are, to the last bit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "backtest_private.h"

#define SPAN_NO_MEMORY "for the scores of a backtest; take fewer days"
#define SPAN_BYTES_MAX ((size_t)1 << 30)

/* --- its file ----------------------------------------------------------------------------------------------------- */

static weir_err span_path(const weir_backtest *b, const weir_backtest_span *span, char path[WEIR_BACKTEST_PATH_MAX]) {
    char name[WEIR_BACKTEST_NAME_MAX], file[WEIR_BACKTEST_NAME_MAX + 16];
    weir_backtest_name(b->days[span->first].from_us, name);
    snprintf(file, sizeof file, "days/%s.json", name);
    return weir_path_join(path, WEIR_BACKTEST_PATH_MAX, b->opts.folder, file);
}

static void span_hash_text(const weir_backtest_span *span, char text[24]) {
    snprintf(text, 24, "%016llx", (unsigned long long)span->made_of);
}

static weir_err span_save(const weir_backtest *b, const weir_backtest_span *span) {
    const uint64_t begin = b->days[span->first].begin, end = b->days[span->end - 1].end;
    char path[WEIR_BACKTEST_PATH_MAX], made_of[24];
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);
    span_hash_text(span, made_of);
    weir_json_object(&json);
    weir_json_key_string(&json, "made_of", made_of);
    weir_json_key(&json, "scores");
    weir_json_object(&json);
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
        if (!b->scores[m]) continue;
        weir_json_key(&json, weir_backtest_models[m]);
        weir_json_array(&json);
        for (uint64_t i = begin; i < end; i++)
            weir_json_f64(&json, b->scores[m][i]);
        weir_json_array_end(&json);
    }
    weir_json_object_end(&json);
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(&text, '\n');
    weir_err err = weir_buf_err(&text);
    if (!err) err = span_path(b, span, path);
    if (!err) err = weir_file_replace(path, text.bytes, text.length);
    weir_buf_free(&text);
    return err;
}

/* false: they are not as many, or not numbers. */
static bool span_read_scores(weir_json_reader *r, double *scores, uint64_t count) {
    weir_json_token value;
    uint64_t at = 0;
    if (!weir_json_read(r, &value) || value.kind != WEIR_JSON_ARRAY) return false;
    while (weir_json_read_item(r)) {
        if (!weir_json_read(r, &value) || value.kind != WEIR_JSON_NUMBER || at == count) return false;
        scores[at] = strtod(value.bytes, NULL); /* a comma or a bracket stands behind it */
        if (!isfinite(scores[at++])) return false;
    }
    return !r->fault && at == count;
}

/* Whether it was made of the same, and has the scores of all models that are wanted. */
static bool span_read(const weir_backtest *b, const weir_backtest_span *span, const char *text, size_t length) {
    const uint64_t begin = b->days[span->first].begin, count = b->days[span->end - 1].end - begin;
    weir_json_reader r = weir_json_reader_of(text, length, WEIR_JSON_DEPTH_MAX);
    weir_json_token name, value;
    char made_of[24];
    bool same = false;
    uint32_t missing = 0;
    span_hash_text(span, made_of);
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        missing += b->scores[m] != NULL;
    weir_json_enter(&r, "no object");
    while (weir_json_read_name(&r, &name)) {
        const bool scores = weir_json_token_is(&name, "scores");
        if (!weir_json_read(&r, &value)) return false;
        if (weir_json_token_is(&name, "made_of")) same = weir_json_token_is(&value, made_of);
        if (!scores && !weir_json_skip(&r, &value)) return false;
        if (scores && !same) return false; /* it stands before them */
        for (; scores && weir_json_read_name(&r, &name); missing--) {
            weir_backtest_model m = 0;
            while (m < WEIR_BACKTEST_MODELS && !(b->scores[m] && weir_json_token_is(&name, weir_backtest_models[m])))
                m++;
            if (m == WEIR_BACKTEST_MODELS || !missing || !span_read_scores(&r, b->scores[m] + begin, count))
                return false;
        }
    }
    return !r.fault && same && !missing;
}

/* *keptp: the file is there, whole and of the same. What is damaged is learnt anew. */
static weir_err span_load(const weir_backtest *b, const weir_backtest_span *span, bool *keptp) {
    char path[WEIR_BACKTEST_PATH_MAX], *text = NULL;
    size_t length = 0;
    *keptp = false;
    weir_err err = span_path(b, span, path);
    if (err || !weir_path_exists(path)) return err;
    err = weir_file_load(path, SPAN_BYTES_MAX, &text, &length);
    if (!err) *keptp = weir_json_checked(text, length) > 0 && span_read(b, span, text, length); /* BACKTEST-D2 */
    weir_free(text);
    return err;
}

/* --- its models --------------------------------------------------------------------------------------------------- */

static weir_train_opts span_train_opts(const weir_backtest *b, const weir_backtest_span *span) {
    const bool network = b->opts.models[WEIR_BACKTEST_NETWORK] || b->opts.models[WEIR_BACKTEST_BLEND];
    weir_train_opts o = b->opts.train;
    o.model = b->opts.models[WEIR_BACKTEST_BLEND] ? WEIR_TRAIN_BLEND : network ? WEIR_TRAIN_NETWORK : WEIR_TRAIN_TREES;
    o.folder = o.trace = NULL;
    o.resume = false;
    o.on_epoch = NULL;
    o.alerts = b->opts.budget;
    o.cut.split = WEIR_TARGETS_BY_TIMES;
    o.cut.known_us = o.cut.test_from_us = b->days[span->first].from_us; /* BACKTEST-D1 */
    o.cut.test_to_us = b->days[span->end - 1].from_us + WEIR_BACKTEST_DAY_US;
    return o;
}

/* Scores as a server would answer, so that those of different days can be compared: calibrated log odds. */
static void span_put(double *to, const double *scores, uint64_t count, weir_calibration calibration) {
    for (uint64_t i = 0; to && i < count; i++)
        to[i] = calibration.slope * scores[i] + calibration.offset;
}

/* What is learnt, and its scores of all targets behind the training part. */
typedef struct span_learnt {
    weir_trained *trained;
    weir_trained_view view;
    weir_train_trees trees, row;
    double *tree_scores, *row_scores;
} span_learnt;

static weir_err span_learn(const weir_backtest *b, const weir_backtest_span *span, span_learnt *l) {
    const weir_train_opts opts = span_train_opts(b, span);
    weir_err err = weir_train_run(b->comm, &opts, &l->trained);
    if (err) return err;
    l->view = weir_trained_look(l->trained);
    const weir_targets *targets = l->view.targets;
    const uint64_t behind = targets->count - targets->ends[WEIR_TARGETS_TRAIN];
    l->tree_scores = weir_calloc(behind, sizeof *l->tree_scores);
    l->row_scores = weir_calloc(behind, sizeof *l->row_scores);
    if (!l->tree_scores || !l->row_scores) return WEIR_NOMEM(SPAN_NO_MEMORY);
    if (b->opts.models[WEIR_BACKTEST_TREES] || b->opts.models[WEIR_BACKTEST_BLEND])
        err = weir_train_trees_learn(l->trained, WEIR_TRAIN_GRAPH_TREES, &l->trees, l->tree_scores);
    if (!err && b->opts.models[WEIR_BACKTEST_ROW])
        err = weir_train_trees_learn(l->trained, WEIR_TRAIN_ROW_TREES, &l->row, l->row_scores);
    return err;
}

static void span_take_scores(weir_backtest *b, const weir_backtest_span *span, span_learnt *l) {
    const weir_targets *targets = l->view.targets;
    const uint64_t begin = b->days[span->first].begin, end = b->days[span->end - 1].end, count = end - begin;
    const uint64_t test = targets->ends[WEIR_TARGETS_VALIDATION] - targets->ends[WEIR_TARGETS_TRAIN];
    double *to[WEIR_BACKTEST_MODELS];
    WEIR_ASSERT(targets->count - targets->ends[WEIR_TARGETS_VALIDATION] == count);
    for (uint64_t i = 0; i < count; i++)
        WEIR_ASSERT(targets->targets[targets->ends[WEIR_TARGETS_VALIDATION] + i].vertex ==
                    b->targets[begin + i].vertex);
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        to[m] = b->scores[m] ? b->scores[m] + begin : NULL;
    span_put(to[WEIR_BACKTEST_NETWORK], l->view.scores + test, count, l->view.calibration);
    span_put(to[WEIR_BACKTEST_TREES], l->tree_scores + test, count, l->trees.calibration);
    span_put(to[WEIR_BACKTEST_ROW], l->row_scores + test, count, l->row.calibration);
    for (uint64_t i = 0; to[WEIR_BACKTEST_BLEND] && i < count; i++)
        l->tree_scores[test + i] = weir_blend_of(&l->trees.blend, l->view.scores[test + i], l->tree_scores[test + i]);
    span_put(to[WEIR_BACKTEST_BLEND], l->tree_scores + test, count, l->trees.blended);
}

weir_err weir_backtest_span_score(weir_backtest *b, const weir_backtest_span *span, bool *keptp) {
    span_learnt l = {.trained = NULL};
    weir_err err = span_load(b, span, keptp);
    if (err || *keptp || b->days[span->first].begin == b->days[span->end - 1].end) return err;
    err = span_learn(b, span, &l);
    if (!err) span_take_scores(b, span, &l);
    if (!err) err = span_save(b, span);
    weir_train_trees_free(&l.trees);
    weir_train_trees_free(&l.row);
    weir_free(l.tree_scores);
    weir_free(l.row_scores);
    weir_trained_close(l.trained);
    return err;
}
