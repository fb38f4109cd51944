/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c - boosted trees learn from the rows that tree_rows.h reads, and are measured beside the network: of the
 * target by itself, and of that with its neighbourhood beside it.
 */
#include <math.h>
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/inputs/tree_rows.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/trainer/boost/boost.h>

#include "training_private.h"

#define BASELINE_NO_MEMORY "for the baselines; omit them by --no-baselines"
#define BASELINE_BYTES_MAX ((uint64_t)1 << 32) /* of all rows; trees copy them once more */
/* Learnings from the same rows, which differ by what each samples and when it stops: their mean errs less than any. */
#define BASELINE_BAGS 4u

typedef struct baseline_table {
    const weir_trained *trained;
    uint32_t hops; /* 0: the target by itself */
    size_t columns;
    weir_tree_rows *reader;
    float *rows;    /* of all targets               */
    double *scores; /* of targets behind the training part */
} baseline_table;

/* --- the table ---------------------------------------------------------------------------------------------------- */

static bool baseline_fits(const baseline_table *t) {
    return t->trained->targets->count <= BASELINE_BYTES_MAX / (t->columns * sizeof *t->rows);
}

static weir_err baseline_open_reader(baseline_table *t, uint32_t hops) {
    t->hops = hops;
    t->columns = weir_tree_columns_count(t->trained->shape, hops);
    if (!t->columns)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "'%s' has no feature and no aggregate that trees could learn from",
                        weir_nn_vertex(t->trained->shape, weir_nn_target_type(t->trained->shape))->name);
    if (!baseline_fits(t))
        return WEIR_ERR(WEIR_ELIMIT, "baselines of %llu targets need more than 4 GiB; omit them by --no-baselines",
                        (unsigned long long)t->trained->targets->count);
    const weir_train_opts *o = &t->trained->opts;
    return weir_tree_rows_open(t->trained->shape, o->snapshot, hops, o->sample_seed, &t->reader);
}

static weir_err baseline_fill(baseline_table *t) {
    const weir_targets *targets = t->trained->targets;
    weir_err err = WEIR_OK;
    for (uint64_t begin = 0; !err && begin < targets->count; begin += WEIR_TREE_ROWS_MAX) {
        const uint64_t left = targets->count - begin;
        err = weir_tree_rows_read(t->reader, targets->targets + begin,
                                  left < WEIR_TREE_ROWS_MAX ? (uint32_t)left : WEIR_TREE_ROWS_MAX,
                                  t->rows + begin * t->columns);
    }
    return err;
}

/* The second hop is left out where rows, or a block at worst, would become too large. */
static weir_err baseline_open(baseline_table *t, const weir_trained *trained, weir_train_baseline which) {
    const weir_targets *targets = trained->targets;
    t->trained = trained;
    weir_err err = baseline_open_reader(t, which == WEIR_TRAIN_GRAPH_TREES ? WEIR_TREE_COLUMNS_HOPS_MAX : 0);
    if (t->hops && weir_err_is(err, WEIR_ELIMIT)) err = baseline_open_reader(t, 1);
    if (err) return err;
    t->rows = weir_calloc(targets->count, t->columns * sizeof *t->rows);
    t->scores = weir_calloc(targets->count - targets->ends[WEIR_TARGETS_TRAIN], sizeof *t->scores);
    if (!t->rows || !t->scores) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    return baseline_fill(t);
}

static void baseline_close(baseline_table *t) {
    weir_tree_rows_close(t->reader);
    weir_free(t->rows);
    weir_free(t->scores);
    weir_free(t);
}

/* --- trees -------------------------------------------------------------------------------------------------------- */

static weir_boost_rows baseline_part(const baseline_table *t, const uint8_t *labels, weir_targets_part part) {
    const weir_targets *targets = t->trained->targets;
    uint64_t begin = weir_targets_begin(targets, part);
    return (weir_boost_rows){t->rows + begin * t->columns, labels + begin, targets->ends[part] - begin, t->columns};
}

/* What the trees say of a part with the network: the mean of the log odds of both, calibrated by validation, so that it
 * does not depend on how sure either of them is; then calibrated again. */
static weir_err baseline_measure_blend(const baseline_table *t, const double *scores, weir_targets_part part,
                                       weir_train_trees *treesp) {
    const weir_trained *trained = t->trained;
    const double *network = weir_training_scores(trained, part);
    const uint64_t count = trained->targets->ends[part] - weir_targets_begin(trained->targets, part);
    double *both = weir_calloc(count, sizeof *both);
    if (!both) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    treesp->blend = (weir_blend){trained->calibration.slope, trained->calibration.offset, treesp->calibration.slope,
                                 treesp->calibration.offset};
    for (size_t i = 0; i < count; i++)
        both[i] = weir_blend_of(&treesp->blend, network[i], scores[i]);
    weir_err err = weir_training_measure(trained, both, part, &treesp->with_network[part]);
    if (!err) err = weir_training_calibrate(trained, both, part, &treesp->blended, &treesp->with_network[part]);
    weir_free(both);
    return err;
}

/* Scores one part as it will be served, and measures it: the trees alone, and with the network. Validation comes first.
 */
static weir_err baseline_measure_trees(baseline_table *t, weir_targets_part part, weir_train_trees *treesp) {
    const weir_trained *trained = t->trained;
    const uint64_t begin = weir_targets_begin(trained->targets, part), count = trained->targets->ends[part] - begin;
    double *scores = t->scores + (begin - trained->targets->ends[WEIR_TARGETS_TRAIN]);
    float *margins = weir_calloc(count, sizeof *margins);
    if (!margins) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    weir_trees_walk(treesp->trees, t->rows + begin * t->columns, count, margins);
    for (uint64_t i = 0; i < count; i++)
        scores[i] = (double)margins[i];
    weir_free(margins);
    weir_err err = weir_training_measure(trained, scores, part, &treesp->metrics[part]);
    if (!err) err = weir_training_calibrate(trained, scores, part, &treesp->calibration, &treesp->metrics[part]);
    return err || !trained->nn ? err : baseline_measure_blend(t, scores, part, treesp);
}

/* The mean of several learnings. rounds: of each, found by validation; where that is NULL they are known. */
static weir_err baseline_learn_bags(const baseline_table *t, const weir_boost_rows *train,
                                    const weir_boost_rows *validation, uint32_t rounds[BASELINE_BAGS],
                                    weir_trees **treesp) {
    weir_boost_opts opts = weir_boost_defaults();
    weir_trees *bags[BASELINE_BAGS] = {NULL};
    weir_err err = WEIR_OK;
    for (uint32_t bag = 0; !err && bag < BASELINE_BAGS; bag++) {
        weir_boost *boost = NULL;
        opts.seed = t->trained->opts.seed * BASELINE_BAGS + bag;
        if (!validation) opts.rounds = rounds[bag];
        err = weir_boost_learn(&opts, train, validation, &boost);
        if (!err) rounds[bag] = weir_boost_rounds(boost);
        if (!err) err = weir_boost_export(boost, &bags[bag]);
        weir_boost_close(boost);
    }
    if (!err) err = weir_trees_mean(bags, BASELINE_BAGS, treesp);
    for (uint32_t bag = 0; bag < BASELINE_BAGS; bag++)
        weir_trees_close(bags[bag]);
    return err;
}

/* Cut by time, what validation held back is the newest that was known: once it has said how many rounds are best, and
 * how sure the trees may be, trees of as many rounds learn from it, too, and these answer. Published sets, whose parts
 * somebody else has chosen, say what is learnt from. */
static weir_err baseline_learn_trees(baseline_table *t, weir_train_trees *treesp) {
    const weir_targets *targets = t->trained->targets;
    uint32_t rounds[BASELINE_BAGS];
    uint8_t *labels = weir_calloc(targets->count, sizeof *labels);
    if (!labels) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    for (uint64_t i = 0; i < targets->count; i++)
        labels[i] = targets->classes_of[i] != 0;
    weir_boost_rows train = baseline_part(t, labels, WEIR_TARGETS_TRAIN);
    const weir_boost_rows validation = baseline_part(t, labels, WEIR_TARGETS_VALIDATION);
    weir_err err = baseline_learn_bags(t, &train, &validation, rounds, &treesp->trees);
    if (!err) err = baseline_measure_trees(t, WEIR_TARGETS_VALIDATION, treesp);
    if (!err && t->trained->merged) { /* as a network beside them has */
        weir_train_trees_free(treesp);
        train.count += validation.count; /* which follow */
        err = baseline_learn_bags(t, &train, NULL, rounds, &treesp->trees);
    }
    if (!err) err = baseline_measure_trees(t, WEIR_TARGETS_TEST, treesp);
    treesp->hops = t->hops;
    if (treesp->trees) treesp->rounds = weir_trees_look(treesp->trees).trees;
    if (err || !t->hops) weir_train_trees_free(treesp);
    weir_free(labels);
    return err;
}

void weir_train_trees_free(weir_train_trees *trees) {
    weir_trees_close(trees->trees);
    trees->trees = NULL;
}

weir_err weir_train_trees_learn(const weir_trained *trained, weir_train_baseline which, weir_train_trees *treesp,
                                double *scores) {
    *treesp = (weir_train_trees){0};
    if (weir_nn_outputs(trained->shape) != 1)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "boosted trees answer yes-or-no questions only");
    if (trained->opts.part)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "not learnt: one rank learns the trees, and has only its part; train once "
                                           "on the whole snapshot to compare");
    if (!weir_boost_available())
        return WEIR_ERR(WEIR_EUNAVAILABLE, "XGBoost was not there when this program was built, or is not there now; "
                                           "install libxgboost-dev, and build again if that was not enough");
    baseline_table *t = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    weir_err err = baseline_open(t, trained, which);
    if (!err) err = baseline_learn_trees(t, treesp);
    const weir_targets *targets = trained->targets;
    if (!err && scores)
        memcpy(scores, t->scores, (targets->count - targets->ends[WEIR_TARGETS_TRAIN]) * sizeof *scores);
    baseline_close(t);
    return err;
}
