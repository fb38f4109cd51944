/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.h - a network learns a task from a snapshot, on one rank or many, the same either way.
 *
 *   snapshot ─► targets ─► scales ─► epoch: stream ─► forward ─► loss ─► backward ─► sum over ranks ─► AdamW ─┐
 *                                      ▲                                                                      │
 *                                      └── checkpoint ◄── best so far? ◄── judge on validation ◄──────────────┘
 *
 * INVARIANTS: each is cited where it is kept, and names its tests: r1_…
 *
 *   TRAIN-R1  For a seed and a global batch, the losses depend on the number of ranks only by the order of a sum. Not
 *             so of local batches, whose targets follow from who owns them, nor with another `wire` than floats.
 *   TRAIN-R2  Training that was ended and resumed by as many ranks gives the same bits as one that was not.
 *   TRAIN-R3  The parameters kept are those of the best validation; the test part is looked at once, with them.
 *   TRAIN-R4  Where there are several ranks, the embedding of a known vertex, its gradient and its moments are with the
 *             rank that owns the vertex alone, and those of a category with many buckets with one rank each. In each
 *             step they are what one rank with all of them would have, but for the order of a sum.
 *   TRAIN-R5  What is learnt again has learnt from training and validation alone, as many epochs as were best, and what
 *             is said of validation, its calibration among it, is of the first learning.
 */
#ifndef WEIR_TRAINER_TRAIN_TRAIN_H
#define WEIR_TRAINER_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/inference/nn/nn.h>
#include <weir/inference/trees/blend.h>
#include <weir/inference/trees/trees.h>
#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/err.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/eval/eval.h>
#include <weir/trainer/train/targets.h>
#include <weir/trainer/train/wire.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TRAIN_FANOUT_MAX 64u
#define WEIR_TRAIN_AHEAD_MAX  16u

typedef struct weir_trained weir_trained;

/* Microseconds of an epoch's batches on this rank, whatever epoch went on meanwhile. Batches are prepared side by side:
 * what that took in all may be more than what has passed. From `wait` on it is what the thread that computes
 * does, one after the other. */
typedef struct weir_train_times {
    int64_t sample, exchange, encode;
    int64_t bring; /* of batches to a device with a memory of its own */
    int64_t sum;   /* of gradients over the ranks, and of embeddings' to those that have them: hidden or not */
    int64_t wait;  /* preparation that compute did not hide */
    int64_t pull;  /* of embeddings from those that have them, as they are in the step */
    int64_t compute;
    int64_t sum_wait; /* of `sum`, what the way back did not hide */
    int64_t update;
} weir_train_times;

/* How scores of a part stand. Of a yes-or-no question; else accuracy alone, in `accuracy`. Of a test of one class,
 * auroc, average_precision and its interval are NaN. */
typedef struct weir_train_metrics {
    double auroc, average_precision;
    weir_interval interval;                 /* of the average precision; after training */
    double budget_precision, budget_recall; /* at `alerts` a day */
    double log_loss, calibration_error;     /* of calibrated probabilities; test and validation after training */
    double accuracy;
    uint64_t targets, positives;
} weir_train_metrics;

typedef struct weir_train_epoch {
    uint32_t number;   /* from 1 */
    double loss;       /* of training, per unit of weight   */
    double validation; /* average precision, or accuracy   */
    bool best;
    bool again;                              /* of what learns once more; then validation is NaN */
    double gradient_norm;                    /* mean of the steps'            */
    double rate;                             /* of its last step              */
    uint64_t edges, targets, handed;         /* on this rank, as the next three; handed: targets of others */
    uint64_t rows, remote_rows, cached_rows; /* input rows; of other ranks: asked for, and kept whole */
    double handed_share;                     /* of the targets of all ranks */
    double lag;                              /* of the slowest rank: its time to compute a target, by the median's */
    uint32_t slowest;                        /* which one that is */
    bool lags;                               /* clearly, as in the epoch before */
    uint32_t ready;                          /* batches that had been prepared when it began: its first, or, of
                                                an epoch of few, later epochs', too */
    weir_train_times times;
    int64_t elapsed_us, learning_us; /* both without saving; learning: without judging, too */
} weir_train_epoch;

/* What differs for the edges of one relation, in one direction. A plain value. */
typedef struct weir_train_along {
    uint16_t relation;
    weir_direction direction;
    const uint32_t *fanouts; /* one a layer, 0: not followed at that layer; NULL: as for the others */
    bool draws;              /* strategy, weight and half_life_us count                             */
    weir_strategy strategy;
    uint32_t weight; /* as in weir_sample_step */
    int64_t half_life_us;
} weir_train_along;

/* How far a network looks, and at what. A plain value. */
typedef struct weir_train_reach {
    const uint32_t *fanouts; /* one a layer */
    uint32_t layers;
    bool out_only; /* along edges from where they begin: of graphs whose edges stand both ways */
    /* How edges are chosen where no along says it: as here if `draws`; else the newest, or any where the edges of the
     * relation have no times that differ. */
    bool draws;
    weir_strategy strategy;
    int64_t half_life_us; /* weighted: by age */
    const weir_train_along *alongs;
    uint32_t along_count;
} weir_train_reach;

/* Which rows of other ranks a rank keeps: where targets have several times, what holds of them (cache.h). */
typedef enum weir_train_cached {
    WEIR_TRAIN_CACHED_NONE,
    WEIR_TRAIN_CACHED_VIP,       /* those that a batch reads with the highest chance             */
    WEIR_TRAIN_CACHED_PATHS,     /* those that most walks from its training targets lead to      */
    WEIR_TRAIN_CACHED_DEGREE,    /* those that its lists name most often                         */
    WEIR_TRAIN_CACHED_HALO,      /* those next to its own                                        */
    WEIR_TRAIN_CACHED_SIMULATED, /* those that the first epochs read most, which are drawn before       */
    WEIR_TRAIN_CACHED_AHEAD      /* at any time those that the coming batches of training read soonest  */
} weir_train_cached;

/* What is to answer in the end. */
typedef enum weir_train_model {
    WEIR_TRAIN_NETWORK,
    WEIR_TRAIN_TREES, /* no network is learnt: targets, and scales of inputs, alone */
    WEIR_TRAIN_BLEND, /* a network, and trees beside it                             */
    WEIR_TRAIN_BEST,  /* the same, and whichever of the three is best; the network where trees cannot be had */
    WEIR_TRAIN_MODELS
} weir_train_model;

/* How the rate goes on once it has risen. */
typedef enum weir_train_schedule { WEIR_TRAIN_CONSTANT, WEIR_TRAIN_COSINE, WEIR_TRAIN_SCHEDULES } weir_train_schedule;

typedef struct weir_train_opts {
    weir_train_model model; /* trees are learnt afterwards, by weir_train_trees_learn */
    const weir_snapshot *snapshot;
    const weir_part *part; /* this rank's, whose snapshot that is; NULL: each rank has the whole snapshot  */
    bool loaded;           /* the snapshot is, or, of a plan, is to be                                     */
    const char *folder;    /* checkpoint, epochs.jsonl, curve.svg; NULL: none of these is written         */
    const char *trace;     /* file for when each stage of each batch was; NULL: none                      */
    uint32_t task;
    uint32_t hidden;   /* width of the layers                          */
    bool bare;         /* no encoder where none is needed (shape.h)    */
    bool residual;     /* layers add to what they saw (shape.h)        */
    bool feed_forward; /* layers have a second dense layer (shape.h) */
    bool headless;     /* the last layer says the logits (shape.h) */
    weir_nn_norm norm; /* where layer norms stand (shape.h) */
    weir_nn_jump jump; /* what the head sees of a target (shape.h) */
    weir_nn_network network;
    uint32_t heads; /* of a network with attention; 0: as shape.h says */
    weir_train_reach reach;
    /* So many newest edges of a vertex along a relation are looked at. 0: 128; where no edge has a time and each is
     * drawn by chance, none is the newest, and all are looked at, up to WEIR_SAMPLE_WINDOW_MAX. */
    uint32_t window;
    uint32_t epochs, batch, patience; /* patience: epochs without a better validation; 0: never stop early */
    bool local;                       /* batches that all ranks share evenly, give or take a target       */
    uint32_t ahead;                   /* batches prepared ahead: changes no result                         */
    uint32_t negatives;               /* of class 0 for each other target in an epoch; 0: all              */
    uint32_t alerts;                  /* a day, for the budget                                             */
    double rate, decay, dropout, norm_max, l2;
    weir_train_schedule schedule; /* of the rate, and of embeddings' */
    uint32_t rate_rise;           /* steps in which it rises to what it is; 0: none */
    double rate_end;              /* of a cosine: towards what share of it the last epochs fall */
    uint32_t fall_epochs;         /* … over so many; 0: over those of the training         */
    double average;               /* an epoch is a mean of those up to it, each X of the next one; 0: itself */
    double input_dropout;         /* of the entries of an import's matrices */
    double attention_dropout;     /* of shares of attention */
    double edge_dropout;          /* of the edges that a step would see */
    const uint32_t *embedded;     /* vertex types, each once: their vertices have embeddings of their own */
    uint32_t embedded_count;
    double unknown;         /* share of these vertices that a step sees as unknown ones */
    bool adagrad;           /* embeddings move by Adagrad, not AdamW */
    double embedding_rate;  /* 0: rate */
    double positive_weight; /* of class 1; 0: 1 */
    double focal;           /* of the loss: what is nearly certain counts less; 0: all alike */
    weir_targets_cut cut;   /* into parts */
    bool unit_rows;         /* of an import's matrices: each is divided by its length */
    weir_train_cached cached;
    double cache_share;   /* rows that are kept, by the vertices that a rank owns on average */
    weir_train_wire wire; /* how rows go between ranks                                       */
    double resident;      /* share of the rank's own rows that stay in the kernels' memory; below 0: all, where that is
                           * not the host's and the graph stands still */
    /* Of a cut by time: what is kept learns once more from its beginning, from validation's targets, too, and as many
     * epochs as were best. */
    bool again;
    uint64_t seed, sample_seed; /* sample_seed: of judging and serving */
    bool resume;
    const weir_kernels *kernels; /* NULL: those of the processor */
    /* Called after each epoch, on every rank; may be NULL. An error ends the training. */
    weir_err (*on_epoch)(void *context, const weir_train_epoch *epoch);
    void *context;
} weir_train_opts;

/* opts with what has a default; all else is 0, or NULL. */
weir_train_opts weir_train_defaults(void);
/* What weir_train_run looks at first: the ranges of opts, and whether trees that they want can be learnt.  WEIR_EUSAGE,
 * WEIR_EUNAVAILABLE as there.  [any] */
weir_err weir_train_check(const weir_train_opts *opts);

/* Whether what is kept learns once more: wanted, and of a cut by time.  [any] */
bool weir_train_learns_again(const weir_train_opts *opts);
/* All ranks with equal opts, but for the part.  WEIR_EUSAGE an option, no relation is followed, or the task, the steps
 * or a part are not what trees can be learnt of; WEIR_ELIMIT network or batch are too large; WEIR_EDATA too little to
 * learn, gradients or scores that are not finite, or a rank with another schema, or that would resume from another
 * checkpoint; WEIR_EVERSION a checkpoint of other options or another snapshot; WEIR_ECORRUPT a file of folder, lists of
 * the snapshot, or what another rank tells; WEIR_ECONFIG, WEIR_ECORRUPT, WEIR_ELIMIT as weir_targets_open;
 * WEIR_EUNAVAILABLE no thread could be started, or trees are wanted and XGBoost is not there; WEIR_ENOMEM; what the
 * files and on_epoch report. Where there are more ranks, an error ends them all.  [main] */
weir_err weir_train_run(weir_comm *comm, const weir_train_opts *opts, weir_trained **trainedp);
void weir_trained_close(weir_trained *trained); /* NULL is allowed */

/* What a training has come to, borrowed; of trees without a network nn is NULL and scores and metrics mean nothing. A
 * plain value. */
typedef struct weir_trained_view {
    const weir_nn *nn;
    const weir_nn_shape *shape;
    const weir_targets *targets;
    /* One a target behind the training part, in their order: the logit of a yes-or-no question, else the most likely
     * class. */
    const double *scores;
    const weir_train_metrics *metrics; /* one a part */
    weir_calibration calibration;
    uint32_t best_epoch;
    bool again; /* it has learnt from validation, too */
} weir_trained_view;
weir_trained_view weir_trained_look(const weir_trained *trained);
/* The parameters of the best epoch, as the view's network has them, into rank 0's params (in the host's memory; NULL on
 * the others): all ranks together, each with what it has.  WEIR_ECORRUPT what another rank gives; WEIR_ENOMEM;
 * errors of the exchange.  [main] */
weir_err weir_trained_params(const weir_trained *trained, weir_real *params);

/* --- baselines ------------------------------------------------------------------------------------------------- */

typedef enum weir_train_baseline {
    WEIR_TRAIN_GRAPH_TREES, /* as row trees, and of each step of hop 1: how many edges, and the newest neighbour's */
    WEIR_TRAIN_ROW_TREES,   /* features, aggregates and matrices of the target                                     */
    WEIR_TRAIN_BASELINES
} weir_train_baseline;

typedef struct weir_train_trees {
    weir_train_metrics metrics[WEIR_TARGETS_PARTS]; /* of validation and test */
    /* The same of the mean of both calibrated log odds, the network's and theirs: what each sees that the other does
     * not. 0 without a network. */
    weir_train_metrics with_network[WEIR_TARGETS_PARTS];
    uint32_t rounds;              /* of all learnings whose mean these trees are */
    weir_trees *trees;            /* of the graph; else NULL */
    uint32_t hops;                /* of their columns        */
    weir_calibration calibration; /* of their log odds       */
    weir_blend blend;             /* with the network        */
    weir_calibration blended;     /* of what that gives      */
} weir_train_trees;
void weir_train_trees_free(weir_train_trees *trees);

/* Boosted trees learn from the training targets, stop by validation and score the test, as the network did. scores:
 * their log odds, one a target behind the training part; NULL: not wanted. This rank alone reads the snapshot.
 * *treesp is to be freed, after an error too.
 * WEIR_EUNAVAILABLE it has a part only, no library, no inputs, or not a yes-or-no question; WEIR_EDATA the validation
 * part is of one class; WEIR_EINTERNAL what the library reports; WEIR_ELIMIT more than 4 GiB of rows; WEIR_ECORRUPT
 * lists of the snapshot; WEIR_ENOMEM.  [main] */
weir_err weir_train_trees_learn(const weir_trained *trained, weir_train_baseline which, weir_train_trees *treesp,
                                double *scores);

/* The steps of the sampler for a task: at each hop all relations, in both directions, of the types that are reached,
 * but for what `reach` does not follow. timeless: of each relation, whether its edges have no times that differ; NULL:
 * all have. Returns how many: 0 none is followed from the task's type; steps_max + 1 they are more.  [any] */
uint32_t weir_train_steps(const weir_schema *schema, uint32_t task, const weir_train_reach *reach, const bool *timeless,
                          weir_sample_step *steps, uint32_t steps_max);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_TRAIN_TRAIN_H */
