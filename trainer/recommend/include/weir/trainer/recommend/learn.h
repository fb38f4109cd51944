/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn.h - learns a task that recommends: LightGCN over the whole graph, as inference/recommend answers with it.
 *
 *   edges before the validation ──► learn ──► each epoch is judged on the validation ──► the best, judged on the test
 *
 *   ─────────────── learnt from ───────────────┬─ validation ─┬──── test ────┤ as_of      each so many horizons long
 *
 * Each horizon is judged as a server would have answered at its beginning: vectors follow from what was learnt and from
 * all edges before that time. What goes into the register has what was learnt, and vectors as of the snapshot's end.
 *
 * INVARIANTS: each is cited where the code keeps it and by a test of the same name: l1_…
 *
 *   LEARN-L1  Nothing at or after the validation's beginning changes what an epoch learns, and nothing of the test
 *             which epoch is kept, nor what is learnt again.
 *   LEARN-L2  The same snapshot, options and seed give the same bits, for any number of threads.
 *   LEARN-L3  The gradient of an epoch's loss is that of finite differences.
 *
 * THREADS: [owner] all; a call works on `threads` threads.
 */
#ifndef WEIR_TRAINER_RECOMMEND_LEARN_H
#define WEIR_TRAINER_RECOMMEND_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/inference/recommend/recommend.h>
#include <weir/store/base/err.h>
#include <weir/store/snapshot/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_RECOMMEND_CUT         20u /* recall and NDCG are of so many */
#define WEIR_RECOMMEND_THREADS_MAX 64u

typedef enum weir_recommend_loss {
    WEIR_RECOMMEND_SOFTMAX,  /* of cosines, against sampled items that all pairs of a batch share */
    WEIR_RECOMMEND_PRODUCTS, /* the same of products                                            */
    WEIR_RECOMMEND_BPR       /* of products, against one item for each pair                       */
} weir_recommend_loss;

/* A plain value. */
typedef struct weir_recommend_epoch {
    uint32_t number;
    double loss, recall, ndcg; /* of the validation; 0 where it has nobody */
    bool best;
    bool again; /* of what learns once more: nothing is judged */
    int64_t elapsed_us;
} weir_recommend_epoch;

typedef struct weir_recommend_opts {
    const weir_snapshot *snapshot;
    uint32_t task; /* of its schema */
    weir_recommend_rule rule;
    uint32_t width, layers, epochs, patience, batch, negatives, threads;
    uint32_t horizons; /* of validation, and of test */
    weir_recommend_loss loss;
    bool again;   /* what is kept learns once more, with the validation's edges, as many epochs as were best */
    bool falls;   /* the rate, along half a cosine from epoch to epoch, to 0 behind the last one */
    bool uniform; /* items to compare with are drawn evenly, and not as often as they are met */
    double rate, decay;
    double temperature; /* of cosines */
    uint64_t seed;
    weir_err (*on_epoch)(void *context, const weir_recommend_epoch *epoch); /* NULL: nobody is told */
    void *context;
} weir_recommend_opts;

/* Of the task: the first relation is its own, and all others between the same types are looked at, too. */
weir_recommend_opts weir_recommend_defaults(const weir_snapshot *snapshot, uint32_t task);

/* What a model gets in one part. A plain value but for `recalls`. */
typedef struct weir_recommend_metrics {
    uint64_t users, unknown; /* with something to be found; of them not known to the model          */
    uint64_t items;          /* to be found by all of them                                          */
    double recall, ndcg;     /* means over users                                                    */
    double low, high;        /* 95 % interval of recall, of the test; of the validation: no wider   */
    /* Of what was met most lately, the same for all: by the half-life that suits this best, of a finished model by its
     * own. */
    double trend_recall, trend_ndcg;
    float *recalls; /* one a user, in an order that is the same for each model of the task; to be freed */
    int64_t from_us, to_us;
} weir_recommend_metrics;

typedef struct weir_recommended weir_recommended;

/* WEIR_EDATA too little to learn from or to judge by; WEIR_EINVAL options out of range; WEIR_ENOMEM; WEIR_ECORRUPT the
 * snapshot; what on_epoch returns. */
weir_err weir_recommend_learn(const weir_recommend_opts *opts, weir_recommended **learntp);
void weir_recommended_free(weir_recommended *learnt); /* NULL is allowed */

/* Borrowed. */
typedef struct weir_recommended_view {
    weir_recommend_shape shape;
    weir_recommend_tables tables; /* as of the snapshot's end: what goes into the register */
    weir_recommend_metrics validation, test;
    uint32_t best_epoch;
    int64_t trend_half_life_us;
} weir_recommended_view;
weir_recommended_view weir_recommended_look(const weir_recommended *learnt);

/* What a finished model gets on the test of this snapshot, whose schema it was opened with; of opts, snapshot, threads
 * and horizons count. It is the figure of the training's own test, exactly, where all that was learnt of has edges that
 * count to the end: the model keeps no rows of the rest. metricsp's recalls are to be freed.  Errors as above;
 * WEIR_EVERSION the model is of another task. */
weir_err weir_recommend_judge(const weir_recommend_opts *opts, const weir_recommend_model *model,
                              weir_recommend_metrics *metricsp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_RECOMMEND_LEARN_H */
