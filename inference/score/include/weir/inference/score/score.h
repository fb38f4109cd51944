/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.h - what a model says of a vertex of the living graph, and why: a network, boosted trees, or both.
 *
 *   asks ──► sample as of each one's time ──► rows, aggregates ─┬► forward ──┬─► calibrate ──► reasons
 *               ▲                                               └► columns ─► trees ┘
 *               └─ an event that is not stored yet: its edges and its row are laid over the graph, for its target alone
 *
 * The target of an ask sees what training would have shown: edges and other vertices' rows from before its time, its
 * own row up to it, and at the first hop the edges of its own event.
 *
 * INVARIANTS: each is named where the code keeps it, and names its tests: c1_…
 *
 *   SCORE-C1  An event scored before it is stored, and the same event after, are the same block and the same score.
 *   SCORE-C2  The block of an ask is the one that a snapshot of the same graph gives for the same seed: edge for edge.
 *   SCORE-C3  An ask's answer does not depend on who else is in the batch (up to the order in which a GEMM sums); but
 *             where asks have deadlines, its effort may.
 *   SCORE-C4  Every answer of a request comes from one model, whatever is swapped meanwhile.
 *   SCORE-C5  A change that a reason names is the logit less the logit of the same tree without that edge, and without
 *             what the target's row says of a pair that was known by it.
 *   SCORE-C6  Of a model with trees, what its columns contribute is exact (TREES-W4), of a value and its flag the sum
 *             of both: with the base, and of a blend with the network's part, it adds up to the logit, but for the
 *             rounding of floats.
 *
 * THREADS: a scorer belongs to one thread at a time; a model is read-only and counted, [any].
 */
#ifndef WEIR_INFERENCE_SCORE_SCORE_H
#define WEIR_INFERENCE_SCORE_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/inference/nn/nn.h>
#include <weir/inference/trees/blend.h>
#include <weir/inference/trees/trees.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>
#include <weir/store/format/mutation.h>
#include <weir/store/graph/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SCORE_BATCH_MAX   64u  /* asks of one forward pass, and of one request      */
#define WEIR_SCORE_REASONS_MAX 64u  /* that an ask may want                              */
#define WEIR_SCORE_EDGES_MAX   256u /* first edges of a target that are left out for it: of more, the newest */

/* --- the model ---------------------------------------------------------------------------------------------------- */

typedef struct weir_score_model weir_score_model;

/* What a scorer needs of a model. Everything but `name` and `version`, which are copied, of each at most 127 bytes, is
 * borrowed until `release`. */
typedef struct weir_score_model_opts {
    const char *name;
    const char *version;
    const weir_nn *nn;            /* NULL: trees alone                        */
    const weir_real *params;      /* in the memory of the network's kernels   */
    const weir_nn_shape *shape;   /* of trees alone; else the network's counts */
    const weir_trees *trees;      /* NULL: a network alone                    */
    uint32_t hops;                /* of the columns that they read            */
    weir_blend blend;             /* of network and trees                     */
    uint64_t seed;                /* of the sampler                           */
    double slope, offset;         /* probability = logistic(slope x + offset) */
    void (*release)(void *owner); /* with the last reference; NULL: nothing   */
    void *owner;
} weir_score_model_opts;

/* With one reference.  WEIR_EVERSION the schema means something else by what the network was made for, or the network
 * was made for matrices of an import; WEIR_ENOMEM. After an error `release` is not called.  [any] */
weir_err weir_score_model_open(const weir_score_model_opts *opts, const weir_schema *schema, weir_score_model **modelp);
/* One more reference; returns the model.  [any] */
weir_score_model *weir_score_model_share(weir_score_model *model);
/* Gives one reference back. NULL is allowed.  [any] */
void weir_score_model_drop(weir_score_model *model);
const char *weir_score_model_name(const weir_score_model *model);
const char *weir_score_model_version(const weir_score_model *model);
const weir_nn_shape *weir_score_model_shape(const weir_score_model *model);
/* Whether it is a network and trees.  [any] */
bool weir_score_model_blends(const weir_score_model *model);

/* --- what is asked ------------------------------------------------------------------------------------------------ */

/* A plain value. */
typedef struct weir_score_ask {
    weir_vertex vertex; /* of the network's target type */
    int64_t time_us;
    uint64_t event; /* its own, or 0 */
    /* Of its own event, where that is not stored yet; borrowed. Those about other vertices are ignored. */
    const weir_mutation *mutations;
    size_t mutation_count;
    uint32_t reasons; /* at most so many; 0: none                                                        */
    uint32_t columns; /* the same, of a model with trees: it costs about as much again; 0: none          */
    /* A larger tree is replaced by a smaller one, and `effort` says so; the smallest stays, however large. 0: none. */
    uint32_t nodes_max;
    /* Monotonic: as for nodes_max, when the whole run would not be done by then, or by an earlier deadline of an ask
     * that it goes with. 0: none, and it goes with no ask that has one. */
    int64_t deadline_us;
    bool embedding;
    /* The vertex is of this type instead, and is no target: it has an embedding, and no score. */
    bool inner;
    uint16_t type;
} weir_score_ask;

/* The ask for a vertex that the graph has: as of the first put of its life, with the event of the edges it was put
 * with; or, of a task that judges at labels, as of now_us.  WEIR_ENOTFOUND the graph does not know it; what the graph
 * reports.  [any] */
weir_err weir_score_ask_vertex(weir_graph *graph, const weir_score_model *model, weir_vertex vertex, int64_t now_us,
                               weir_arena *arena, weir_score_ask *askp);
/* The ask for the embedding of a vertex of any type, as of now_us where it is not what the model scores.
 * WEIR_ENOTFOUND the graph does not know it, no layer of the model has the type, or the model is trees; what the graph
 * reports.  [any] */
weir_err weir_score_ask_embedding(weir_graph *graph, const weir_score_model *model, uint16_t type, weir_vertex vertex,
                                  int64_t now_us, weir_arena *arena, weir_score_ask *askp);
/* The ask for the target that an event puts, of several the first. mutations are borrowed.  WEIR_EDATA the event puts
 * none, or deletes something.  [any] */
weir_err weir_score_ask_event(const weir_score_model *model, const weir_mutation *mutations, size_t count,
                              weir_score_ask *askp);

/* --- what is answered --------------------------------------------------------------------------------------------- */

typedef enum weir_score_effort {
    WEIR_SCORE_WHOLE, /* the neighbourhood that the network was trained on               */
    WEIR_SCORE_LESS,  /* a quarter of each fan-out, rounded up                           */
    WEIR_SCORE_LEAST  /* the newest edge of each step                                    */
} weir_score_effort;

/* An edge of the target, and what it did to the logit. A plain value. */
typedef struct weir_score_reason {
    weir_vertex neighbor;
    int64_t time_us;
    uint64_t event;
    double change; /* SCORE-C5 */
    uint16_t relation, neighbor_type;
    weir_direction direction;
} weir_score_reason;

/* What trees read of the target, and what it did to the logit. A plain value; it lives as long as the score. */
typedef struct weir_score_column {
    const char *name;    /* weir_tree_column has them */
    const char *text;    /* of a category that is one of a list; else NULL */
    double value;        /* weir_tree_column_value; NaN: missing, or a category that the schema does not list */
    double contribution; /* SCORE-C6; of a blend weighed as its trees are */
} weir_score_column;

/* A plain value; what it points to lives until the scorer's next run. */
typedef struct weir_score {
    double logit;          /* of the yes; of several classes, of the likeliest */
    double score;          /* logistic(logit); of several classes, softmax     */
    double probability;    /* logistic(slope logit + offset); of several classes, the score */
    uint32_t label;        /* of several classes: the likeliest; else 0 */
    uint64_t decision;     /* the same for the same model, target, time, event and seed */
    uint32_t nodes, edges; /* of its tree */
    weir_score_effort effort;
    const weir_score_reason *reasons; /* the largest change first */
    uint32_t reason_count;
    uint32_t untried; /* first edges that were not left out, because they are more than WEIR_SCORE_EDGES_MAX */
    /* Of the target's own row, aggregates and embedding of its own; 0 when no reasons were wanted. */
    double own_change;
    /* When columns were wanted, of a model with trees that have covers; else NULL. */
    const weir_score_column *columns; /* the largest contribution first: as many as were wanted, at most */
    uint32_t column_count;
    double base;          /* what is expected of trees before any column is known */
    double other_columns; /* the contributions of those that are not among them, together */
    double network;       /* of a blend: the network's part of the logit; else 0 */
    const weir_real *embedding;
    uint32_t embedding_width;
} weir_score;

typedef struct weir_scorer weir_scorer;

/* The graph is borrowed.  WEIR_ENOMEM.  [owner] */
weir_err weir_scorer_open(weir_graph *graph, weir_scorer **scorerp);
void weir_scorer_close(weir_scorer *scorer); /* NULL is allowed */
/* Answers count asks (1 to WEIR_SCORE_BATCH_MAX) by one model; scores: count. Inner ones come last, each by itself, and
 * have no deadline. A model that is new to the scorer costs some allocations.
 * WEIR_EINVAL the count, an inner type of which the network has no layer, or an embedding of trees; WEIR_EUNAVAILABLE
 * what the model says of one of them is not a finite number; WEIR_ELIMIT the asks need too much memory together;
 * WEIR_ENOMEM; whatever graph, sampler and network report. After an error no score may be read.  [owner] */
weir_err weir_scorer_run(weir_scorer *scorer, weir_score_model *model, const weir_score_ask *asks, uint32_t count,
                         weir_score *scores);
/* For tests: deadlines are by this manual clock (borrowed), and each vertex of a pass moves it on by node_ns. */
void weir_scorer_pace_set(weir_scorer *scorer, weir_clock *clock, double node_ns);
/* For tests: the block of the last pass, borrowed until the next run; NULL: there was none. */
const weir_block_view *weir_scorer_block(const weir_scorer *scorer);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_SCORE_SCORE_H */
