/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - the loss of some pairs and its gradient, and how far it moves what is learnt.
 *
 *   parameters ─propagate─► vectors ─► loss of the pairs ─► gradient of vectors ─propagate─► gradient of parameters
 *
 * The pairs of a step are cut into parts of a fixed size, whose sums are added in their order (LEARN-L2).
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#include "recommend_private.h"

#define STEP_PAIRS     256u /* of a part */
#define STEP_CELLS     (1u << 16)
#define STEP_BETA1     0.9
#define STEP_BETA2     0.999
#define STEP_EPSILON   1e-8
#define STEP_SHORTEST  1e-12 /* of a vector whose direction counts */
#define STEP_NEGATIVES 0x6e656761u

/* Of one part of the pairs: rows of users, of their items, and of the items that all are compared with. */
typedef struct step_part {
    float *users, *items;           /* STEP_PAIRS x width, of length 1 where cosines count  */
    float *user_moves, *item_moves; /* their gradients                                      */
    float *negative_moves;          /* negatives x width; of BPR: STEP_PAIRS x width        */
    float user_lengths[STEP_PAIRS], item_lengths[STEP_PAIRS];
    double loss;
} step_part;

struct weir_recommend_step {
    const weir_recommend_opts *opts;
    const weir_recommend_pairs *pairs;
    weir_recommend_team *team;
    float *parameters, *vectors, *vector_moves, *gradient, *one, *other, *moment1, *moment2;
    size_t cells;                   /* of each of these */
    uint32_t *user_of, *task_items; /* of each pair its user; items of all pairs of the task */
    uint32_t *met_items;            /* that anybody has met                                  */
    uint32_t met_count;
    uint32_t negatives; /* that are drawn in a step */
    uint32_t *drawn;
    float *compared; /* their vectors, of length 1 where cosines count */
    float *compared_lengths;
    double offset; /* by which a drawn item counts more than itself, as log */
    step_part *parts;
    uint32_t part_count;
    float **scores; /* one a thread: STEP_PAIRS x negatives */
    /* of the step at hand */
    const uint32_t *chosen;
    uint32_t chosen_count;
    double rate; /* of the step at hand */
    uint64_t steps;
};

/* --- vectors ------------------------------------------------------------------------------------------------------ */

/* To length 1 where cosines count; returns the length that it had. */
static float step_unit(const weir_recommend_step *s, float *row) {
    const uint32_t width = s->opts->width;
    double square = 0;
    if (s->opts->loss != WEIR_RECOMMEND_SOFTMAX) return 1;
    for (uint32_t c = 0; c < width; c++)
        square += (double)row[c] * (double)row[c];
    const double length = sqrt(square) + STEP_SHORTEST;
    for (uint32_t c = 0; c < width; c++)
        row[c] = (float)((double)row[c] / length);
    return (float)length;
}

/* From the gradient of a unit vector to that of the vector that it was made of. */
static void step_unit_back(const weir_recommend_step *s, const float *unit, float length, float *move) {
    const uint32_t width = s->opts->width;
    double along = 0;
    if (s->opts->loss != WEIR_RECOMMEND_SOFTMAX) return;
    for (uint32_t c = 0; c < width; c++)
        along += (double)unit[c] * (double)move[c];
    for (uint32_t c = 0; c < width; c++)
        move[c] = (float)(((double)move[c] - along * (double)unit[c]) / (double)length);
}

static float step_product(uint32_t width, const float *a, const float *b) {
    float sum = 0;
    for (uint32_t c = 0; c < width; c++)
        sum += a[c] * b[c];
    return sum;
}

static const float *step_vector(const weir_recommend_step *s, bool of_item, uint32_t index) {
    return s->vectors + ((of_item ? (size_t)s->pairs->users : 0) + index) * s->opts->width;
}

static uint32_t step_item(const weir_recommend_step *s, uint32_t pair) {
    return s->pairs->user_items[s->chosen[pair]];
}

/* --- the loss of a part ------------------------------------------------------------------------------------------- */

/* Row by row of scores: the softmax of the pair's own item among the drawn ones. What is left in scores is the
 * gradient of each, and in *ownp that of the own item. */
static double step_softmax_row(const weir_recommend_step *s, uint32_t item, float own, float *scores, float *ownp) {
    const double inverse = s->opts->loss == WEIR_RECOMMEND_SOFTMAX ? 1 / s->opts->temperature : 1;
    const double scale = inverse / s->chosen_count;
    double most = own * inverse, sum = 0;
    for (uint32_t n = 0; n < s->negatives; n++) {
        scores[n] = s->drawn[n] == item ? -INFINITY : (float)(scores[n] * inverse + s->offset);
        if (scores[n] > most) most = scores[n];
    }
    const float top = (float)most; /* for all alike: what is below is the gradient of this very sum */
    for (uint32_t n = 0; n < s->negatives; n++) {
        scores[n] = expf(scores[n] - top);
        sum += (double)scores[n];
    }
    const double of_own = exp(own * inverse - (double)top), all = sum + of_own;
    const float share = (float)(scale / all);
    for (uint32_t n = 0; n < s->negatives; n++)
        scores[n] *= share;
    *ownp = (float)((of_own / all - 1) * scale);
    return log(all) - (own * inverse - (double)top);
}

static void step_softmax_part(weir_recommend_step *s, step_part *p, uint32_t begin, uint32_t count, float *scores) {
    const weir_kernels *kernels = weir_kernels_cpu();
    const uint32_t width = s->opts->width, negatives = s->negatives;
    float own[STEP_PAIRS];
    for (uint32_t i = 0; i < count; i++) {
        p->user_lengths[i] = step_unit(s, p->users + (size_t)i * width);
        p->item_lengths[i] = step_unit(s, p->items + (size_t)i * width);
        own[i] = step_product(width, p->users + (size_t)i * width, p->items + (size_t)i * width);
    }
    kernels->gemm(kernels, &(weir_gemm){.m = count,
                                        .n = negatives,
                                        .k = width,
                                        .b_transposed = true,
                                        .a = p->users,
                                        .lda = width,
                                        .b = s->compared,
                                        .ldb = width,
                                        .c = scores,
                                        .ldc = negatives});
    for (uint32_t i = 0; i < count; i++)
        p->loss += step_softmax_row(s, step_item(s, begin + i), own[i], scores + (size_t)i * negatives, &own[i]);
    kernels->gemm(kernels, &(weir_gemm){.m = count,
                                        .n = width,
                                        .k = negatives,
                                        .a = scores,
                                        .lda = negatives,
                                        .b = s->compared,
                                        .ldb = width,
                                        .c = p->user_moves,
                                        .ldc = width});
    kernels->gemm(kernels, &(weir_gemm){.m = negatives,
                                        .n = width,
                                        .k = count,
                                        .a_transposed = true,
                                        .a = scores,
                                        .lda = negatives,
                                        .b = p->users,
                                        .ldb = width,
                                        .c = p->negative_moves,
                                        .ldc = width});
    for (uint32_t i = 0; i < count; i++) {
        float *users = p->users + (size_t)i * width, *items = p->items + (size_t)i * width;
        float *user_move = p->user_moves + (size_t)i * width, *item_move = p->item_moves + (size_t)i * width;
        for (uint32_t c = 0; c < width; c++) {
            user_move[c] += own[i] * items[c];
            item_move[c] = own[i] * users[c];
        }
        step_unit_back(s, users, p->user_lengths[i], user_move);
        step_unit_back(s, items, p->item_lengths[i], item_move);
    }
}

/* Each pair against the item that was drawn for it. */
static void step_bpr_part(weir_recommend_step *s, step_part *p, uint32_t begin, uint32_t count) {
    const uint32_t width = s->opts->width;
    for (uint32_t i = 0; i < count; i++) {
        const float *user = p->users + (size_t)i * width, *item = p->items + (size_t)i * width;
        const float *other = step_vector(s, true, s->drawn[begin + i]);
        const double ahead = (double)step_product(width, user, item) - (double)step_product(width, user, other);
        const float slope = (float)(-1 / (1 + exp(ahead)) / s->chosen_count);
        p->loss += ahead > 0 ? log1p(exp(-ahead)) : log1p(exp(ahead)) - ahead;
        for (uint32_t c = 0; c < width; c++) {
            p->user_moves[(size_t)i * width + c] = slope * (item[c] - other[c]);
            p->item_moves[(size_t)i * width + c] = slope * user[c];
            p->negative_moves[(size_t)i * width + c] = -slope * user[c];
        }
    }
}

static void step_part_run(void *context, uint32_t part, uint32_t thread) {
    weir_recommend_step *s = context;
    step_part *p = &s->parts[part];
    const uint32_t width = s->opts->width, begin = part * STEP_PAIRS;
    const uint32_t count = s->chosen_count - begin < STEP_PAIRS ? s->chosen_count - begin : STEP_PAIRS;
    p->loss = 0;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(p->users + (size_t)i * width, step_vector(s, false, s->user_of[s->chosen[begin + i]]),
               width * sizeof *p->users);
        memcpy(p->items + (size_t)i * width, step_vector(s, true, step_item(s, begin + i)), width * sizeof *p->items);
    }
    if (s->opts->loss == WEIR_RECOMMEND_BPR)
        step_bpr_part(s, p, begin, count);
    else
        step_softmax_part(s, p, begin, count, s->scores[thread]);
}

/* --- the gradient ------------------------------------------------------------------------------------------------- */

/* Items to compare with: each as often as it is met, or evenly. One that nobody has met yet is no draw: it would be
 * moved from 0, which says that nothing is known of it, and would tell of what comes later (LEARN-L1). */
static void step_draw(weir_recommend_step *s, uint64_t draw) {
    weir_rng rng = weir_rng_stream(s->opts->seed, draw, STEP_NEGATIVES);
    const bool bpr = s->opts->loss == WEIR_RECOMMEND_BPR;
    const bool all = !bpr && s->opts->uniform && s->negatives == s->met_count;
    const uint32_t count = bpr ? s->chosen_count : s->negatives;
    for (uint32_t n = 0; n < count; n++) {
        s->drawn[n] = all                ? s->met_items[n]
                      : s->opts->uniform ? s->met_items[weir_rng_below(&rng, s->met_count)]
                                         : s->task_items[weir_rng_below(&rng, s->pairs->task_count)];
        if (bpr) continue;
        float *row = s->compared + (size_t)n * s->opts->width;
        memcpy(row, step_vector(s, true, s->drawn[n]), s->opts->width * sizeof *row);
        s->compared_lengths[n] = step_unit(s, row);
    }
}

/* Adds all parts' gradients of vectors, in their order. */
static void step_gather(weir_recommend_step *s, uint32_t parts) {
    const weir_kernels *kernels = weir_kernels_cpu();
    const uint32_t width = s->opts->width;
    const bool bpr = s->opts->loss == WEIR_RECOMMEND_BPR;
    const size_t items_at = (size_t)s->pairs->users * width;
    for (uint32_t part = 0; part < parts; part++) {
        const step_part *p = &s->parts[part];
        const uint32_t begin = part * STEP_PAIRS;
        for (uint32_t i = begin; i < s->chosen_count && i < begin + STEP_PAIRS; i++) {
            const size_t row = (size_t)(i - begin) * width;
            kernels->add(kernels, width, p->user_moves + row,
                         s->vector_moves + (size_t)s->user_of[s->chosen[i]] * width);
            kernels->add(kernels, width, p->item_moves + row,
                         s->vector_moves + items_at + (size_t)step_item(s, i) * width);
            if (bpr)
                kernels->add(kernels, width, p->negative_moves + row,
                             s->vector_moves + items_at + (size_t)s->drawn[i] * width);
        }
        if (!bpr && part > 0)
            kernels->add(kernels, (size_t)s->negatives * width, p->negative_moves, s->parts[0].negative_moves);
    }
    for (uint32_t n = 0; !bpr && n < s->negatives; n++) {
        float *move = s->parts[0].negative_moves + (size_t)n * width;
        step_unit_back(s, s->compared + (size_t)n * width, s->compared_lengths[n], move);
        kernels->add(kernels, width, move, s->vector_moves + items_at + (size_t)s->drawn[n] * width);
    }
}

/* BPR's own regularisation: of the rows of its pairs, before any layer. */
static double step_decay(weir_recommend_step *s) {
    const uint32_t width = s->opts->width;
    const double decay = s->opts->decay / s->chosen_count;
    double square = 0;
    for (uint32_t i = 0; i < s->chosen_count; i++) {
        const size_t rows[3] = {s->user_of[s->chosen[i]], (size_t)s->pairs->users + step_item(s, i),
                                (size_t)s->pairs->users + s->drawn[i]};
        for (unsigned r = 0; r < 3; r++)
            for (size_t c = rows[r] * width; c < (rows[r] + 1) * width; c++) {
                square += (double)s->parameters[c] * (double)s->parameters[c];
                s->gradient[c] += (float)(decay * (double)s->parameters[c]);
            }
    }
    return decay * square / 2;
}

double weir_recommend_step_gradient(weir_recommend_step *s, const uint32_t *pairs, uint32_t count, uint64_t draw,
                                    const float **gradientp) {
    const uint32_t parts = (count + STEP_PAIRS - 1) / STEP_PAIRS;
    double loss = 0;
    WEIR_ASSERT(count > 0 && parts <= s->part_count);
    weir_recommend_propagation p = {.pairs = s->pairs,
                                    .team = s->team,
                                    .width = s->opts->width,
                                    .layers = s->opts->layers,
                                    .x = s->parameters,
                                    .out = s->vectors,
                                    .one = s->one,
                                    .other = s->other};
    weir_recommend_propagate(&p);
    s->chosen = pairs;
    s->chosen_count = count;
    step_draw(s, draw);
    weir_recommend_team_run(s->team, parts, step_part_run, s);
    for (uint32_t part = 0; part < parts; part++)
        loss += s->parts[part].loss / count;
    memset(s->vector_moves, 0, s->cells * sizeof *s->vector_moves);
    step_gather(s, parts);
    p.x = s->vector_moves;
    p.out = s->gradient;
    weir_recommend_propagate(&p); // LEARN-L3
    if (s->opts->loss == WEIR_RECOMMEND_BPR) loss += step_decay(s);
    *gradientp = s->gradient;
    return loss;
}

static void step_move_part(void *context, uint32_t part, uint32_t thread) {
    weir_recommend_step *s = context;
    const size_t begin = (size_t)part * STEP_CELLS, left = s->cells - begin;
    const double steps = (double)s->steps;
    const weir_adamw_step step = {.rate = s->rate,
                                  .beta1 = STEP_BETA1,
                                  .beta2 = STEP_BETA2,
                                  .epsilon = STEP_EPSILON,
                                  .decay = s->opts->loss == WEIR_RECOMMEND_BPR ? 0 : s->opts->decay,
                                  .correction1 = 1 - pow(STEP_BETA1, steps),
                                  .correction2 = 1 - pow(STEP_BETA2, steps)};
    (void)thread;
    weir_kernels_cpu()->adamw(weir_kernels_cpu(), left < STEP_CELLS ? left : STEP_CELLS, &step, s->gradient + begin,
                              s->moment1 + begin, s->moment2 + begin, s->parameters + begin);
}

void weir_recommend_step_move(weir_recommend_step *s, double share) {
    s->steps++;
    s->rate = s->opts->rate * share;
    weir_recommend_team_run(s->team, (uint32_t)((s->cells + STEP_CELLS - 1) / STEP_CELLS), step_move_part, s);
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static void step_list_pairs(weir_recommend_step *s) {
    uint32_t at = 0;
    for (uint32_t u = 0; u < s->pairs->users; u++)
        for (uint32_t i = s->pairs->user_offsets[u]; i < s->pairs->user_offsets[u + 1]; i++) {
            s->user_of[i] = u;
            if (s->pairs->by_task[i]) s->task_items[at++] = s->pairs->user_items[i];
        }
    WEIR_ASSERT(at == s->pairs->task_count);
}

static weir_err step_list_items(weir_recommend_step *s) {
    const uint32_t *offsets = s->pairs->item_offsets;
    s->met_items = weir_calloc((size_t)s->pairs->items + 1, sizeof *s->met_items);
    if (!s->met_items) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    for (uint32_t i = 0; i < s->pairs->items; i++)
        if (offsets[i] < offsets[i + 1]) s->met_items[s->met_count++] = i;
    return WEIR_OK;
}

static weir_err step_open_parts(weir_recommend_step *s) {
    const uint32_t width = s->opts->width, threads = weir_recommend_team_size(s->team);
    const bool bpr = s->opts->loss == WEIR_RECOMMEND_BPR;
    const size_t rows = (size_t)STEP_PAIRS * width;
    bool room = true;
    s->part_count = (s->opts->batch + STEP_PAIRS - 1) / STEP_PAIRS;
    s->parts = weir_calloc(s->part_count, sizeof *s->parts);
    s->scores = weir_calloc(threads, sizeof *s->scores);
    if (!s->parts || !s->scores) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    for (uint32_t i = 0; room && i < s->part_count; i++) {
        step_part *p = &s->parts[i];
        p->users = weir_calloc(rows, sizeof *p->users);
        p->items = weir_calloc(rows, sizeof *p->items);
        p->user_moves = weir_calloc(rows, sizeof *p->user_moves);
        p->item_moves = weir_calloc(rows, sizeof *p->item_moves);
        p->negative_moves = weir_calloc(bpr ? rows : (size_t)s->negatives * width, sizeof *p->negative_moves);
        room = p->users && p->items && p->user_moves && p->item_moves && p->negative_moves;
    }
    for (uint32_t i = 0; room && !bpr && i < threads; i++) {
        s->scores[i] = weir_calloc((size_t)STEP_PAIRS * s->negatives, sizeof **s->scores);
        room = s->scores[i] != NULL;
    }
    return room ? WEIR_OK : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
}

weir_err weir_recommend_step_open(const weir_recommend_opts *opts, const weir_recommend_pairs *pairs,
                                  weir_recommend_team *team, float *parameters, weir_recommend_step **stepp) {
    *stepp = NULL;
    weir_recommend_step *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    s->opts = opts;
    s->pairs = pairs;
    s->team = team;
    s->parameters = parameters;
    s->cells = ((size_t)pairs->users + pairs->items) * opts->width;
    weir_err err = step_list_items(s);
    if (err) {
        weir_recommend_step_close(s);
        return err;
    }
    s->negatives = opts->uniform && opts->negatives > s->met_count ? s->met_count : opts->negatives;
    /* So the sum over drawn items stands for that over all. */
    if (opts->uniform) s->offset = log((double)s->met_count / s->negatives);
    float **arrays[] = {&s->vectors, &s->vector_moves, &s->gradient, &s->one, &s->other, &s->moment1, &s->moment2};
    bool room = true;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        room &= (*arrays[i] = weir_calloc(s->cells, sizeof(float))) != NULL;
    const uint32_t drawn = s->negatives > opts->batch ? s->negatives : opts->batch;
    s->user_of = weir_calloc((size_t)pairs->count + 1, sizeof *s->user_of);
    s->task_items = weir_calloc((size_t)pairs->task_count + 1, sizeof *s->task_items);
    s->drawn = weir_calloc(drawn, sizeof *s->drawn);
    s->compared = weir_calloc((size_t)s->negatives * opts->width, sizeof *s->compared);
    s->compared_lengths = weir_calloc(s->negatives, sizeof *s->compared_lengths);
    room = room && s->user_of && s->task_items && s->drawn && s->compared && s->compared_lengths;
    err = room ? step_open_parts(s) : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    if (err) {
        weir_recommend_step_close(s);
        return err;
    }
    step_list_pairs(s);
    *stepp = s;
    return WEIR_OK;
}

void weir_recommend_step_close(weir_recommend_step *s) {
    if (!s) return;
    for (uint32_t i = 0; s->parts && i < s->part_count; i++) {
        weir_free(s->parts[i].users);
        weir_free(s->parts[i].items);
        weir_free(s->parts[i].user_moves);
        weir_free(s->parts[i].item_moves);
        weir_free(s->parts[i].negative_moves);
    }
    for (uint32_t i = 0; s->scores && i < weir_recommend_team_size(s->team); i++)
        weir_free(s->scores[i]);
    void *const arrays[] = {s->parts,      s->scores, s->vectors,  s->vector_moves,     s->gradient,
                            s->one,        s->other,  s->moment1,  s->moment2,          s->user_of,
                            s->task_items, s->drawn,  s->compared, s->compared_lengths, s->met_items};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        weir_free(arrays[i]);
    weir_free(s);
}
