/* SPDX-License-Identifier: Apache-2.0 */
/* recommend_private.h - what the files of trainer/recommend share. */
#ifndef WEIR_TRAINER_RECOMMEND_PRIVATE_H
#define WEIR_TRAINER_RECOMMEND_PRIVATE_H

#include <weir/inference/kernel/kernel.h>
#include <weir/trainer/recommend/learn.h>

#define RECOMMEND_NO_MEMORY "to learn what to recommend"

/* --- team.c: threads that share out numbered parts of a piece of work --------------------------------------------- */

typedef struct weir_recommend_team weir_recommend_team;
typedef void (*weir_recommend_work)(void *context, uint32_t part, uint32_t thread);

weir_err weir_recommend_team_open(uint32_t threads, weir_recommend_team **teamp);
/* Every part once; which thread does which one is chance, so a part depends on nothing but its number (LEARN-L2). */
void weir_recommend_team_run(weir_recommend_team *team, uint32_t parts, weir_recommend_work work, void *context);
uint32_t weir_recommend_team_size(const weir_recommend_team *team);
void weir_recommend_team_close(weir_recommend_team *team);

/* --- pairs.c: who has met what, as of a time ---------------------------------------------------------------------- */

/* Users and items by their index in the snapshot. */
typedef struct weir_recommend_pairs {
    uint32_t users, items;
    uint32_t *user_offsets, *user_items; /* items ascend within a user */
    uint32_t *item_offsets, *item_users;
    double *weights; /* of a user's items: a(u, i)                         */
    uint8_t *by_task;
    float *user_weights, *item_weights; /* a / sqrt(d(u) d(i)), in either order */
    double *item_degrees;               /* d(i)                                 */
    uint32_t count, task_count;
} weir_recommend_pairs;

weir_err weir_recommend_pairs_read(const weir_recommend_opts *opts, int64_t before_us, weir_recommend_pairs *pairs);
void weir_recommend_pairs_free(weir_recommend_pairs *pairs);
/* log(count + 0.1) of each item: edges of the task before the time, each halved with each half-life of its age. */
weir_err weir_recommend_trends_read(const weir_recommend_opts *opts, int64_t before_us, int64_t half_life_us,
                                    float *trends);

/* --- propagate.c -------------------------------------------------------------------------------------------------- */

/* Rows of users, then of items. out is the mean of x and of what its layers make of it; one and other are room. The way
 * back is the same: the matrix is symmetric. sums: of items alone, the sum without the last layer; NULL: not wanted. */
typedef struct weir_recommend_propagation {
    const weir_recommend_pairs *pairs;
    weir_recommend_team *team;
    uint32_t width, layers;
    const float *x;
    float *out, *one, *other, *sums;
} weir_recommend_propagation;
void weir_recommend_propagate(const weir_recommend_propagation *p);

/* --- step.c: one step of learning --------------------------------------------------------------------------------- */

typedef struct weir_recommend_step weir_recommend_step;

/* parameters: what is learnt, rows of users and then of items; borrowed, as the rest. */
weir_err weir_recommend_step_open(const weir_recommend_opts *opts, const weir_recommend_pairs *pairs,
                                  weir_recommend_team *team, float *parameters, weir_recommend_step **stepp);
void weir_recommend_step_close(weir_recommend_step *step);
/* The loss of these pairs (positions among the pairs of users), and its gradient, which is the step's. */
double weir_recommend_step_gradient(weir_recommend_step *step, const uint32_t *pairs, uint32_t count, uint64_t draw,
                                    const float **gradientp);
/* By so much of the rate. */
void weir_recommend_step_move(weir_recommend_step *step, double share);

/* --- judge.c ------------------------------------------------------------------------------------------------------ */

/* What all judging of one snapshot shares. */
typedef struct weir_recommend_field {
    const weir_recommend_opts *opts;
    weir_recommend_team *team;
    int64_t validation_us, test_us, end_us, horizon_us;
    uint64_t users, items;
} weir_recommend_field;

weir_err weir_recommend_field_of(const weir_recommend_opts *opts, weir_recommend_team *team,
                                 weir_recommend_field *field);

/* Vectors as of a time of what was learnt, of the items that anybody has met by then. */
typedef struct weir_recommend_vectors {
    uint32_t *items;  /* rising: their index in the snapshot */
    uint32_t *places; /* of each item of the snapshot; UINT32_MAX: nobody has met it */
    float *vectors, *sums;
    uint32_t count;
} weir_recommend_vectors;

weir_err weir_recommend_vectors_make(const weir_recommend_field *field, const weir_recommend_shape *shape,
                                     const float *parameters, const weir_recommend_pairs *pairs,
                                     weir_recommend_vectors *vectors);
void weir_recommend_vectors_free(weir_recommend_vectors *vectors);

/* How much trends weigh, and of how long ago they tell. alone: they rank without the user's vector. */
typedef struct weir_recommend_cell {
    double weight;
    int64_t half_life_us;
    bool alone;
} weir_recommend_cell;

#define RECOMMEND_CELLS_MAX 32u

/* Judges what was learnt in [from, to), horizon by horizon, by each cell; cells of one half-life stand together. */
typedef struct weir_recommend_judging {
    const weir_recommend_field *field;
    const weir_recommend_shape *shape;
    const float *parameters;
    int64_t from_us, to_us;
    uint32_t users_max; /* of a horizon; 0: all */
    const weir_recommend_cell *cells;
    uint32_t cell_count;
} weir_recommend_judging;
/* metrics: one a cell, of which the first has recalls; trend_recall and trend_ndcg are left 0. */
weir_err weir_recommend_judge_rows(const weir_recommend_judging *judging, weir_recommend_metrics *metrics);

#endif /* WEIR_TRAINER_RECOMMEND_PRIVATE_H */
