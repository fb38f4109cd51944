/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend.h - what a vertex will meet next: a model of two tables of vectors, and its answer from the living graph.
 *
 *   a user's newest edges ──► weight of each item it has met ──► its vector ──► products with all items ──► the best k
 *
 * The model is LightGCN's (He et al. 2020). a(u, i) is the weight of what user u and item i have had: the sum over
 * their edges of the relation's weight, halved with each half-life of age, 30 times at most. With e(k) of a vertex
 * after k of K layers,
 *
 *   e(k+1)(u) = sum over i of a(u, i) / sqrt(d(u) d(i)) · e(k)(i)      and of items alike      d: sum of a vertex's a
 *   vector(u) = (e(0)(u) + … + e(K)(u)) / (K + 1)
 *
 * A user's vector is linear in its own edges, so it is computed anew for each answer, from the edges of that moment:
 * of an item the model has S(i) = (e(0)(i) + … + e(K-1)(i)) / sqrt(d(i)), and
 *
 *   vector(u) = (e(0)(u) + sum over i of a(u, i) / sqrt(d(u)) · S(i)) / (K + 1)
 *
 *   score(u, i) = vector(u) · item(i) + trend(i)
 *
 * A cosine model has vector(u) of length 1, and item(i) as well, but for one factor that all share. trend(i) says how
 * much i was met lately, whoever by; it alone ranks for a user of whom nothing is known.
 *
 * INVARIANTS: each is cited where the code keeps it and by a test of the same name: r1_…
 *
 *   RECOMMEND-R1  The same edges before t give the same vector, from a snapshot and from the living graph, bit for bit.
 *   RECOMMEND-R2  Nothing at or after t, and of a list no edge behind the `window` newest, changes an answer.
 *   RECOMMEND-R3  The best k are exact: no item that is allowed has a higher score; of equal ones the smaller id is
 *                 the better one. Where an index answers, scores are exact, and what it misses is measured
 *                 (weir_recommend_recall_permille).
 *   RECOMMEND-R4  Without `repeat` nothing that the user has an edge to along the task's relation is answered, by the
 *                 `window` newest edges.
 *   RECOMMEND-R5  What comes out of a model folder gives the same bits as what went in, and only finite numbers.
 *
 * THREADS: a model is read-only and counted, [any]; a reader and a recommender belong to one thread at a time.
 */
#ifndef WEIR_INFERENCE_RECOMMEND_RECOMMEND_H
#define WEIR_INFERENCE_RECOMMEND_RECOMMEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/inference/model/model.h>
#include <weir/store/base/err.h>
#include <weir/store/graph/graph.h>
#include <weir/store/sample/source.h>
#include <weir/store/schema/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_RECOMMEND_RELATIONS_MAX 16u
#define WEIR_RECOMMEND_WIDTH_MAX     1024u
#define WEIR_RECOMMEND_LAYERS_MAX    8u
#define WEIR_RECOMMEND_WINDOW        1024u /* newest edges of a user and relation that count */
#define WEIR_RECOMMEND_LIMIT_MAX     1000u
#define WEIR_RECOMMEND_INDEXED       65536u /* items from which on an index of them is made */
#define WEIR_RECOMMEND_WEIGHT_MIN    1e-6   /* of a relation: however old an edge, its item has been met */
#define WEIR_RECOMMEND_WEIGHT_MAX    1e6
#define WEIR_RECOMMEND_FAMILY        "recommend" /* in the architecture of model.json */

/* --- what a model counts of a user's edges ------------------------------------------------------------------------ */

/* All between the same two types. A plain value. */
typedef struct weir_recommend_relation {
    uint32_t relation; /* of the schema                                          */
    double weight;     /* WEIR_RECOMMEND_WEIGHT_MIN to WEIR_RECOMMEND_WEIGHT_MAX */
} weir_recommend_relation;

typedef struct weir_recommend_rule {
    weir_recommend_relation relations[WEIR_RECOMMEND_RELATIONS_MAX];
    uint32_t relation_count; /* the first is the task's */
    int64_t half_life_us;    /* 0: an edge of any age counts alike */
} weir_recommend_rule;

/* An item that a user has met, as the source calls it. */
typedef struct weir_recommend_met {
    weir_vertex item;
    double weight;
    bool by_task; /* along the task's relation */
} weir_recommend_met;

typedef struct weir_recommend_reader weir_recommend_reader;

/* Rule and source are borrowed.  WEIR_ENOMEM.  [owner] */
weir_err weir_recommend_reader_open(const weir_recommend_rule *rule, const weir_schema *schema,
                                    weir_sample_source *source, weir_recommend_reader **readerp);
void weir_recommend_reader_close(weir_recommend_reader *reader); /* NULL is allowed */
/* What a user has met before a time, ascending by item, each once; borrowed until the next read. Errors of the source;
 * WEIR_ENOMEM.  [owner] */
weir_err weir_recommend_reader_read(weir_recommend_reader *reader, weir_vertex user, int64_t before_us,
                                    const weir_recommend_met **metp, uint32_t *countp);

/* --- a model ------------------------------------------------------------------------------------------------------ */

/* Rows by ascending id. Borrowed. */
typedef struct weir_recommend_tables {
    const weir_vertex_pair *user_ids, *item_ids;
    uint64_t user_count, item_count;
    const float *user_own, *item_own; /* e(0), width columns each: what was learnt; the rest follows from it */
    const float *item_sums;           /* S                                                                  */
    const float *items;               /* of scores                                                          */
    const float *trends;              /* one an item                                                        */
} weir_recommend_tables;

/* A plain value. */
typedef struct weir_recommend_shape {
    weir_recommend_rule rule;
    uint32_t task; /* of the schema: what is recommended to whom, and whether it may be what it has */
    uint32_t width, layers;
    bool cosine;
    double temperature;         /* cosine: vectors of items are 1 / temperature long */
    double trend_weight;        /* what trends are multiplied with; 0: they rank only where nothing else does */
    int64_t trend_half_life_us; /* log(count + 0.1), of edges that count half after so long */
} weir_recommend_shape;

typedef struct weir_recommend_model weir_recommend_model;

/* What goes into a model folder, for weir_models_add; opts->metrics, provenance and key are the caller's. Everything is
 * borrowed until the draft is closed.  WEIR_ENOMEM.  [any] */
typedef struct weir_recommend_draft weir_recommend_draft;
weir_err weir_recommend_draft_open(const weir_recommend_shape *shape, const weir_recommend_tables *tables,
                                   const weir_schema *schema, weir_recommend_draft **draftp);
weir_model_write_opts weir_recommend_draft_opts(const weir_recommend_draft *draft);
void weir_recommend_draft_close(weir_recommend_draft *draft); /* NULL is allowed */

/* Whether a model that was verified is one of these.  [any] */
bool weir_recommend_is_of(const weir_model *model);
/* Takes the model over, whatever comes of it. schema: NULL: only to see whether all else is right, and not to be asked.
 * version is copied, at most 127 bytes.  WEIR_EDATA its description or a table is not right: says which; WEIR_EVERSION
 * the schema means something else by what it was trained for; WEIR_ENOMEM.  [any] */
weir_err weir_recommend_model_open(weir_model *model, const char *version, const weir_schema *schema,
                                   weir_recommend_model **modelp);
/* One more reference; returns the model.  [any] */
weir_recommend_model *weir_recommend_model_share(weir_recommend_model *model);
/* Gives one reference back. NULL is allowed. The last one ends what is being made of an index, and waits for that, for
 * about as long as a look at all items.  Blocks.  [any] */
void weir_recommend_model_drop(weir_recommend_model *model);
const char *weir_recommend_model_version(const weir_recommend_model *model);
const weir_recommend_shape *weir_recommend_model_shape(const weir_recommend_model *model);
const weir_recommend_tables *weir_recommend_model_tables(const weir_recommend_model *model);

/* Begins to make an index of the items on a thread of its own, if they are at least `least`; answers are exact until it
 * is there, and come from it then. Once a model.  WEIR_EUNAVAILABLE, WEIR_ENOMEM.  [owner] */
weir_err weir_recommend_model_index(weir_recommend_model *model, uint64_t least);
/* Of the best 20 items of some users, how many of a thousand the index finds; 0: there is none yet.  [any] */
int64_t weir_recommend_model_recall(const weir_recommend_model *model);
/* Waits until it is there, or cannot be had; for tests and benches.  Blocks. */
bool weir_recommend_model_is_indexed(weir_recommend_model *model);

/* The row of an id; false: the model does not know it.  [any] */
bool weir_recommend_find(const weir_vertex_pair *ids, uint64_t count, weir_vertex id, uint64_t *placep);

/* --- an answer ---------------------------------------------------------------------------------------------------- */

/* What the model makes of what a user has met. */
typedef struct weir_recommend_user {
    const float *own; /* e(0); NULL: the model does not know the user */
    const uint64_t *items;
    const double *weights; /* one an item that the model knows */
    uint32_t count;
} weir_recommend_user;

/* query: width floats; false: nothing is known of the user, and it is zeros. Double sums in the order of the items
 * (RECOMMEND-R1).  [any] */
bool weir_recommend_query(const weir_recommend_shape *shape, const weir_recommend_tables *tables,
                          const weir_recommend_user *user, double *sums, float *query);

/* --- vectors for another search ----------------------------------------------------------------------------------- */

/* Of width + 1 numbers each, so that score(u, i) is the product of two of them and nothing else: of a user vector(u)
 * and what trends weigh for it, of an item item(i) and trend(i). A user of whom nothing is known is zeros and a 1. */
typedef struct weir_recommend_maker weir_recommend_maker;

/* The ids of what a narrow source calls by its places. A plain value, borrowed. */
typedef struct weir_recommend_names {
    const weir_vertex_pair *users, *items;
    uint64_t user_count, item_count;
} weir_recommend_names;

/* Over any source (RECOMMEND-R1), both borrowed; names: NULL: it calls vertices by their ids.  WEIR_ENOMEM.  [owner] */
weir_err weir_recommend_maker_open(const weir_recommend_model *model, const weir_schema *schema,
                                   weir_sample_source *source, const weir_recommend_names *names,
                                   weir_recommend_maker **makerp);
void weir_recommend_maker_close(weir_recommend_maker *maker); /* NULL is allowed */
/* Of a user as the source calls it.  WEIR_ECORRUPT an edge that leads nowhere; errors of the source; WEIR_ENOMEM.
 * [owner] */
weir_err weir_recommend_maker_run(weir_recommend_maker *maker, weir_vertex user, int64_t before_us, float *vector);
/* false: the model does not know the item.  [any] */
bool weir_recommend_item_vector(const weir_recommend_model *model, weir_vertex item, float *vector);

/* --- the best of all items ---------------------------------------------------------------------------------------- */

typedef struct weir_recommend_best {
    uint64_t item; /* its row */
    float score;
} weir_recommend_best;

/* The best of all items for each of count queries, the best first. trend_weights: what trends are multiplied with, one
 * a query. skipped: of each query the rows that are not allowed, ascending, each once. best: limit for each query,
 * best_counts[i] of which are set. scores: room for count · WEIR_RECOMMEND_PIECE floats.  [any] */
#define WEIR_RECOMMEND_PIECE 4096u
typedef struct weir_recommend_search {
    const float *items, *trends;
    uint64_t item_count;
    uint32_t width;
    const float *trend_weights;
    const float *queries; /* count x width */
    uint32_t count, limit;
    const uint64_t *const *skipped;
    const uint32_t *skipped_counts;
    float *scores;
} weir_recommend_search;
void weir_recommend_top(const weir_recommend_search *search, weir_recommend_best *best, uint32_t *best_counts);

typedef struct weir_recommender weir_recommender;

/* The graph is borrowed.  WEIR_ENOMEM.  [owner] */
weir_err weir_recommender_open(weir_graph *graph, weir_recommender **recommenderp);
void weir_recommender_close(weir_recommender *recommender); /* NULL is allowed */

typedef struct weir_recommend_answer {
    const weir_recommend_best *best; /* borrowed until the next run */
    uint32_t count;
    uint32_t met;  /* items that the user has met and the model knows */
    bool by_trend; /* nothing is known of the user: what is met most lately */
    bool indexed;  /* an index told where to look */
} weir_recommend_answer;

/* vertex: the user. limit: 1 to WEIR_RECOMMEND_LIMIT_MAX; fewer are answered where there are no more.  WEIR_ENOMEM;
 * what the graph reports.  [owner] */
weir_err weir_recommender_run(weir_recommender *recommender, const weir_recommend_model *model, weir_vertex vertex,
                              int64_t before_us, uint32_t limit, weir_recommend_answer *answerp);
/* The vector of a user, as weir_recommend_maker_run makes it: width + 1 floats.  WEIR_ENOMEM; what the graph reports.
 * [owner] */
weir_err weir_recommender_vector(weir_recommender *recommender, const weir_recommend_model *model, weir_vertex user,
                                 int64_t before_us, float *vector);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_RECOMMEND_RECOMMEND_H */
