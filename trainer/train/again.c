/* SPDX-License-Identifier: Apache-2.0 */
/*
 * again.c - a second learning, from the targets of training and validation, for as many epochs as were best.
 *
 *   first    train ──────────────► validation ──► how many epochs, calibration
 *   second   train ──────────────────────────► ──────────────────► test
 *
 * What is newest is most like what comes, and a first learning sees of it only when to stop. Nothing else changes:
 * options, draws and first parameters are the same, so that the epochs are a fair guess. Where trees alone are wanted,
 * the scales of their columns are learnt again, so that they are the ones that a network has beside it.
 */
#include <weir/store/base/alloc.h>

#include "training_private.h"

/* What is left of a first learning, besides its targets. */
typedef struct again_first {
    double *scores;
    weir_train_metrics validation;
    weir_calibration calibration;
    weir_training_state state;
} again_first;

static weir_train_opts again_opts(const weir_train_opts *opts, uint32_t epochs) {
    weir_train_opts o = *opts;
    o.folder = o.trace =
        NULL; /* they have the first one's; a training that is resumed learns again from the beginning */
    o.resume = o.again = false;
    o.patience = 0;
    o.fall_epochs = opts->epochs;  /* as the first one's rates fell */
    if (epochs) o.epochs = epochs; /* of trees alone there are none */
    return o;
}

/* The test is judged while validation is a part of training; then parts and scores are the first one's, and the test's
 * are put there. */
static weir_err again_adopt(weir_trained *t, again_first *first) {
    weir_err err = WEIR_OK;
    t->calibration = first->calibration;
    if (t->nn) err = weir_comm_fail(t->comm, weir_training_finish_part(t, WEIR_TARGETS_TEST));
    if (err) return err;
    double *second = t->scores;
    const double *test = weir_training_scores(t, WEIR_TARGETS_TEST);
    const uint64_t count = t->targets->count - weir_targets_begin(t->targets, WEIR_TARGETS_TEST);
    const uint64_t validated = t->targets->merged;
    for (uint64_t i = 0; i < count; i++)
        first->scores[validated + i] = test[i];
    weir_targets_unmerge(t->targets);
    t->scores = first->scores;
    t->metrics[WEIR_TARGETS_VALIDATION] = first->validation;
    t->state = first->state;
    first->scores = second; /* to be freed */
    return WEIR_OK;
}

bool weir_train_learns_again(const weir_train_opts *opts) {
    return opts->again && (opts->cut.split == WEIR_TARGETS_BY_TIME || opts->cut.split == WEIR_TARGETS_BY_TIMES);
}

weir_err weir_train_run(weir_comm *comm, const weir_train_opts *opts, weir_trained **trainedp) {
    weir_train_opts o = *opts;
    weir_trained *t = NULL;
    *trainedp = NULL;
    o.again = weir_train_learns_again(opts);
    weir_err err = weir_training_run(comm, &o, NULL, &t);
    if (err || !o.again) {
        *trainedp = t;
        return err;
    }
    again_first first = {t->scores, t->metrics[WEIR_TARGETS_VALIDATION], t->calibration, t->state};
    weir_targets *targets = t->targets;
    t->targets = NULL;
    t->scores = NULL;
    weir_trained_close(t);       /* its network makes room for the second */
    weir_targets_merge(targets); // TRAIN-R5
    const weir_train_opts second = again_opts(&o, first.state.best_epoch);
    err = weir_err_prefix(weir_training_run(comm, &second, targets, &t), "while it learns again");
    if (!err) err = again_adopt(t, &first);
    weir_free(first.scores);
    if (err) weir_trained_close(t);
    if (!err) *trainedp = t;
    return err;
}
