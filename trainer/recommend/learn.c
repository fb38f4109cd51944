/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - epochs until the validation rises no more, then how much trends count, then the test. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>

#include "recommend_private.h"

#define LEARN_USERS      2000u /* of a horizon of the validation that an epoch is judged on */
#define LEARN_FIT_USERS  10000u /* … and that trends are fitted to, once, by each of 24 cells: by few, chance decides */
#define LEARN_FIT_SCORES 400e6 /* … users times items of all horizons: of more items there are fewer users */
#define LEARN_SCALE      0.1   /* of what nothing was learnt of yet */
#define LEARN_BEGIN      0x62656769u
#define LEARN_ORDER      0x6f726465u
#define LEARN_MIN_PAIRS  20u
#define LEARN_HALF_LIFE  4 /* horizons: what comes next is told by what came lately */
#define LEARN_TREND_GRID 5u

static const double learn_weights[LEARN_TREND_GRID] = {0, 0.25, 0.5, 0.75, 1};

struct weir_recommended {
    weir_recommend_opts opts;
    weir_recommend_team *team;
    weir_recommend_field field;
    weir_recommend_pairs pairs; /* that are learnt from, and then those of the end */
    weir_recommend_step *step;
    float *parameters, *best;
    size_t cells;
    uint32_t *order, best_epoch;
    weir_recommend_shape shape;
    weir_recommend_cell cell;
    int64_t popular_us; /* the half-life by which trends alone are best */
    weir_recommend_metrics validation, test;
    /* what goes into the register */
    weir_recommend_vectors vectors;
    weir_vertex_pair *user_ids, *item_ids;
    float *user_own, *item_own, *trends;
    uint64_t user_count;
};

weir_recommend_opts weir_recommend_defaults(const weir_snapshot *snapshot, uint32_t task) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    const uint32_t own = weir_schema_task_at(schema, task)->relation;
    const weir_schema_relation *first = weir_schema_relation_at(schema, own);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    weir_recommend_opts o = {.snapshot = snapshot,
                             .task = task,
                             .width = 64,
                             .layers = 2,
                             .epochs = 100,
                             .patience = 5,
                             .batch = 4096,
                             .negatives = 2048,
                             .horizons = 1,
                             .rate = 0.01,
                             .temperature = 0.15,
                             .seed = 1};
    o.threads = cores < 1 ? 1 : cores > WEIR_RECOMMEND_THREADS_MAX ? WEIR_RECOMMEND_THREADS_MAX : (uint32_t)cores;
    if (__builtin_mul_overflow(weir_schema_task_at(schema, task)->horizon_us, LEARN_HALF_LIFE, &o.rule.half_life_us))
        o.rule.half_life_us = 0;
    o.rule.relations[o.rule.relation_count++] = (weir_recommend_relation){own, 1};
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
        const weir_schema_relation *other = weir_schema_relation_at(schema, r);
        if (r == own || other->from != first->from || other->to != first->to) continue;
        if (o.rule.relation_count == WEIR_RECOMMEND_RELATIONS_MAX) break;
        o.rule.relations[o.rule.relation_count++] = (weir_recommend_relation){r, 1};
    }
    return o;
}

/* What is asked for when learning and when judging. */
static bool learn_can_judge(const weir_recommend_opts *o) {
    return o->threads > 0 && o->threads <= WEIR_RECOMMEND_THREADS_MAX && o->horizons > 0;
}

/* Whether the rule is of the task: its own relation first, and others only between the same types. */
static bool learn_rule_fits(const weir_schema *schema, uint32_t task, const weir_recommend_rule *rule) {
    const weir_schema_task *t = task < weir_schema_task_count(schema) ? weir_schema_task_at(schema, task) : NULL;
    if (!t || t->kind != WEIR_SCHEMA_RECOMMEND || rule->half_life_us < 0 || rule->relation_count == 0 ||
        rule->relation_count > WEIR_RECOMMEND_RELATIONS_MAX || rule->relations[0].relation != t->relation)
        return false;
    const weir_schema_relation *own = weir_schema_relation_at(schema, t->relation);
    for (uint32_t i = 0; i < rule->relation_count; i++) {
        const weir_recommend_relation *of = &rule->relations[i];
        if (of->relation >= weir_schema_relation_count(schema) ||
            !(of->weight >= WEIR_RECOMMEND_WEIGHT_MIN && of->weight <= WEIR_RECOMMEND_WEIGHT_MAX))
            return false;
        const weir_schema_relation *r = weir_schema_relation_at(schema, of->relation);
        if (r->from != own->from || r->to != own->to) return false;
    }
    return true;
}

static weir_err learn_check(const weir_recommend_opts *o) {
    const bool right = o->width > 0 && o->width <= WEIR_RECOMMEND_WIDTH_MAX && o->layers > 0 &&
                       o->layers <= WEIR_RECOMMEND_LAYERS_MAX && o->epochs > 0 && o->epochs < UINT32_MAX &&
                       o->batch > 0 && o->batch <= (1u << 20) && o->negatives > 0 && o->negatives <= (1u << 20) &&
                       o->loss <= WEIR_RECOMMEND_BPR && o->rate > 0 && isfinite(o->rate) && o->decay >= 0 &&
                       isfinite(o->decay) && o->temperature >= 1e-3 && o->temperature <= 1e3 && learn_can_judge(o) &&
                       learn_rule_fits(weir_snapshot_schema(o->snapshot), o->task, &o->rule);
    return right ? WEIR_OK : WEIR_ERR(WEIR_EINVAL, "an option of the training is out of range");
}

/* --- epochs ------------------------------------------------------------------------------------------------------- */

/* Who met nothing begins at 0, and stays there: it is unknown. The rest begin by their ids: a place among all vertices
 * changes with those that come later (LEARN-L1). */
static void learn_begin_rows(weir_recommended *l, const weir_vertex_pair *ids, const uint32_t *offsets, uint32_t rows,
                             uint32_t first) {
    const uint32_t width = l->opts.width;
    for (uint32_t i = 0; i < rows; i++) {
        weir_rng rng = weir_rng_stream(l->opts.seed, ids[i].low, LEARN_BEGIN);
        if (offsets[i] == offsets[i + 1]) continue;
        for (uint32_t c = 0; c < width; c++)
            l->parameters[((size_t)first + i) * width + c] = (float)(LEARN_SCALE * weir_rng_normal(&rng));
    }
}

static weir_err learn_open(weir_recommended *l, int64_t before_us) {
    const weir_recommend_opts *o = &l->opts;
    const weir_schema_relation *r =
        weir_schema_relation_at(weir_snapshot_schema(o->snapshot), o->rule.relations[0].relation);
    weir_err err = weir_recommend_pairs_read(o, before_us, &l->pairs);
    if (err) return err;
    if (l->pairs.task_count < LEARN_MIN_PAIRS)
        return WEIR_ERR(WEIR_EDATA,
                        "there are %u pairs of a user and an item to learn from, before the validation and the test "
                        "(two times %u horizons of the task); build the snapshot of more, or judge fewer --horizons",
                        l->pairs.task_count, o->horizons);
    l->cells = ((size_t)l->pairs.users + l->pairs.items) * o->width;
    l->parameters = weir_calloc(l->cells, sizeof *l->parameters);
    l->best = weir_calloc(l->cells, sizeof *l->best);
    l->order = weir_calloc(l->pairs.task_count, sizeof *l->order);
    if (!l->parameters || !l->best || !l->order) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    learn_begin_rows(l, weir_snapshot_vertices_of(o->snapshot, r->from)->ids, l->pairs.user_offsets, l->pairs.users, 0);
    learn_begin_rows(l, weir_snapshot_vertices_of(o->snapshot, r->to)->ids, l->pairs.item_offsets, l->pairs.items,
                     l->pairs.users);
    return weir_recommend_step_open(o, &l->pairs, l->team, l->parameters, &l->step);
}

/* Pairs of the task in an order of the epoch's own: each once, or of those that have faded as large a share as they
 * still weigh. */
static double learn_epoch(weir_recommended *l, uint32_t epoch) {
    const uint32_t batch = l->opts.batch;
    const double whole = l->opts.rule.relations[0].weight;
    weir_rng rng = weir_rng_stream(l->opts.seed, epoch, LEARN_ORDER);
    /* Each epoch learns something, the last one, too. */
    const double fallen = l->opts.falls ? (1 + cos(M_PI * (epoch - 1) / l->opts.epochs)) / 2 : 1;
    uint32_t count = 0;
    double loss = 0;
    for (uint32_t i = 0; i < l->pairs.count; i++)
        if (l->pairs.by_task[i] &&
            (l->pairs.weights[i] >= whole || weir_rng_double(&rng) * whole < l->pairs.weights[i]))
            l->order[count++] = i;
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = (uint32_t)weir_rng_below(&rng, i), kept = l->order[i - 1];
        l->order[i - 1] = l->order[other];
        l->order[other] = kept;
    }
    for (uint32_t begin = 0; begin < count; begin += batch) {
        const float *gradient;
        const uint32_t pairs = count - begin < batch ? count - begin : batch;
        const uint64_t draw = (uint64_t)epoch << 32 | begin;
        loss += weir_recommend_step_gradient(l->step, l->order + begin, pairs, draw, &gradient) * pairs;
        weir_recommend_step_move(l->step, fallen);
    }
    return count ? loss / count : 0;
}

static weir_err learn_validate(weir_recommended *l, const float *parameters, const weir_recommend_cell *cells,
                               uint32_t count, uint32_t users, weir_recommend_metrics *metrics) {
    const weir_recommend_judging j = {.field = &l->field,
                                      .shape = &l->shape,
                                      .parameters = parameters,
                                      .from_us = l->field.validation_us,
                                      .to_us = l->field.test_us,
                                      .users_max = users,
                                      .cells = cells,
                                      .cell_count = count};
    weir_err err = weir_recommend_judge_rows(&j, metrics);
    weir_free(metrics[0].recalls);
    metrics[0].recalls = NULL;
    return err;
}

/* The epoch is kept that is best where trends count as they suit it: they are fitted to the best one afterwards. */
static weir_err learn_epochs(weir_recommended *l) {
    const weir_recommend_cell cells[] = {
        {0, l->field.horizon_us, false}, {0.5, l->field.horizon_us, false}, {1, l->field.horizon_us, false}};
    enum { CELLS = sizeof cells / sizeof cells[0] };
    double best = -1;
    weir_err err = WEIR_OK;
    for (uint32_t epoch = 1; !err && epoch <= l->opts.epochs; epoch++) {
        weir_recommend_metrics metrics[CELLS];
        const int64_t begin_us = weir_clock_mono_us(weir_clock_system());
        weir_recommend_epoch said = {.number = epoch, .loss = learn_epoch(l, epoch)};
        if (!isfinite(said.loss))
            return WEIR_ERR(WEIR_EDATA, "the loss of epoch %u is no finite number; learn by a smaller --rate", epoch);
        err = learn_validate(l, l->parameters, cells, CELLS, LEARN_USERS, metrics);
        for (uint32_t c = 0; !err && c < CELLS; c++)
            if (metrics[c].recall > said.recall) {
                said.recall = metrics[c].recall;
                said.ndcg = metrics[c].ndcg;
            }
        if (err) return err;
        said.best = said.recall > best || metrics[0].users == 0; /* nobody to choose by: the last one */
        if (said.best) {
            best = said.recall;
            l->best_epoch = epoch;
            memcpy(l->best, l->parameters, l->cells * sizeof *l->best);
        }
        said.elapsed_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
        if (l->opts.on_epoch) err = l->opts.on_epoch(l->opts.context, &said);
        if (l->opts.patience && epoch - l->best_epoch >= l->opts.patience) break;
    }
    return err;
}

/* --- trends ------------------------------------------------------------------------------------------------------- */

static uint32_t learn_fit_users(const weir_recommended *l) {
    const double most = LEARN_FIT_SCORES / ((double)(l->field.items + 1) * l->opts.horizons);
    return most > LEARN_FIT_USERS ? LEARN_FIT_USERS : most < LEARN_USERS ? LEARN_USERS : (uint32_t)most;
}

/* By the validation alone; of equals the one that remembers longest. The last cell of each half-life is the trend
 * without the user. */
static weir_err learn_fit_trend(weir_recommended *l) {
    static const double shares[] = {0.25, 1, 4, 16}; /* of a horizon */
    enum { SHARES = sizeof shares / sizeof shares[0], EACH = LEARN_TREND_GRID + 1 };
    weir_recommend_cell cells[SHARES * EACH];
    weir_recommend_metrics metrics[SHARES * EACH];
    uint32_t best = 1, alone = LEARN_TREND_GRID;
    for (uint32_t s = 0; s < SHARES; s++) {
        const double half_life_us = fmin(shares[s] * (double)l->field.horizon_us + 1, 9e18);
        for (uint32_t w = 0; w < EACH; w++)
            cells[s * EACH + w] = (weir_recommend_cell){w < LEARN_TREND_GRID ? learn_weights[w] : 1,
                                                        (int64_t)half_life_us, w == LEARN_TREND_GRID};
    }
    weir_err err = learn_validate(l, l->best, cells, SHARES * EACH, learn_fit_users(l), metrics);
    if (err) return err;
    for (uint32_t c = 0; c < SHARES * EACH; c++) {
        if (cells[c].alone && metrics[c].recall >= metrics[alone].recall) alone = c;
        if (!cells[c].alone && metrics[c].recall >= metrics[best].recall) best = c;
    }
    if (metrics[best].users == 0) best = 0;
    l->cell = cells[best];
    l->popular_us = cells[alone].half_life_us;
    if (l->cell.weight == 0) l->cell.half_life_us = cells[alone].half_life_us; /* it still ranks for the unknown */
    l->shape.trend_weight = l->cell.weight;
    l->shape.trend_half_life_us = l->cell.half_life_us;
    l->validation = metrics[best];
    l->validation.trend_recall = metrics[alone].recall;
    l->validation.trend_ndcg = metrics[alone].ndcg;
    return WEIR_OK;
}

static void learn_close(weir_recommended *l) {
    weir_recommend_step_close(l->step);
    weir_recommend_pairs_free(&l->pairs);
    weir_free(l->parameters);
    weir_free(l->best);
    weir_free(l->order);
    l->step = NULL;
    l->parameters = l->best = NULL;
    l->order = NULL;
}

/* From the beginning, with the validation's edges, and as many epochs as were best. How trends count stays as it was
 * fitted, and what is said of the validation is of the first learning. */
static weir_err learn_again(weir_recommended *l) {
    learn_close(l);
    weir_err err = learn_open(l, l->field.test_us); // LEARN-L1
    for (uint32_t epoch = 1; !err && epoch <= l->best_epoch; epoch++) {
        const int64_t begin_us = weir_clock_mono_us(weir_clock_system());
        weir_recommend_epoch said = {.number = epoch, .loss = learn_epoch(l, epoch), .again = true};
        if (!isfinite(said.loss))
            err = WEIR_ERR(WEIR_EDATA,
                           "the loss of epoch %u, learnt again, is no finite number; learn by a smaller "
                           "--rate",
                           epoch);
        said.elapsed_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
        if (!err && l->opts.on_epoch) err = l->opts.on_epoch(l->opts.context, &said);
    }
    if (!err) memcpy(l->best, l->parameters, l->cells * sizeof *l->best);
    return err;
}

/* Of what was learnt and of a finished model: the test as the shape answers it, and by trends alone. */
static weir_err learn_test(const weir_recommend_field *field, const weir_recommend_shape *shape,
                           const float *parameters, int64_t popular_us, weir_recommend_metrics *metricsp) {
    const weir_recommend_cell cells[2] = {{shape->trend_weight, shape->trend_half_life_us, false},
                                          {1, popular_us, true}};
    weir_recommend_metrics metrics[2] = {{0}, {0}};
    const weir_recommend_judging j = {.field = field,
                                      .shape = shape,
                                      .parameters = parameters,
                                      .from_us = field->test_us,
                                      .to_us = field->end_us,
                                      .cells = cells,
                                      .cell_count = 2};
    weir_err err = weir_recommend_judge_rows(&j, metrics);
    *metricsp = metrics[0];
    metricsp->trend_recall = metrics[1].recall;
    metricsp->trend_ndcg = metrics[1].ndcg;
    if (!err && metricsp->users == 0)
        err = WEIR_ERR(WEIR_EDATA,
                       "nobody met anything new in the last %u horizons, so there is no test; build the "
                       "snapshot as of a later time, or judge more --horizons",
                       field->opts->horizons);
    return err;
}

/* --- what goes into the register ---------------------------------------------------------------------------------- */

static weir_err learn_make_tables(weir_recommended *l) {
    const weir_schema *schema = weir_snapshot_schema(l->opts.snapshot);
    const weir_schema_relation *r = weir_schema_relation_at(schema, l->opts.rule.relations[0].relation);
    const weir_vertex_pair *users = weir_snapshot_vertices_of(l->opts.snapshot, r->from)->ids;
    const weir_vertex_pair *items = weir_snapshot_vertices_of(l->opts.snapshot, r->to)->ids;
    const size_t row = l->opts.width * sizeof(float);
    weir_recommend_step_close(l->step);
    l->step = NULL;
    weir_recommend_pairs_free(&l->pairs);
    weir_err err = weir_recommend_pairs_read(&l->opts, l->field.end_us, &l->pairs);
    if (!err) err = weir_recommend_vectors_make(&l->field, &l->shape, l->best, &l->pairs, &l->vectors);
    if (err) return err;
    const uint32_t count = l->vectors.count;
    float *trends = weir_calloc((size_t)l->pairs.items + 1, sizeof *trends);
    l->user_ids = weir_calloc((size_t)l->pairs.users + 1, sizeof *l->user_ids);
    l->user_own = weir_calloc((size_t)l->pairs.users + 1, row);
    l->item_ids = weir_calloc((size_t)count + 1, sizeof *l->item_ids);
    l->item_own = weir_calloc((size_t)count + 1, row);
    l->trends = weir_calloc((size_t)count + 1, sizeof *l->trends);
    if (!trends || !l->user_ids || !l->user_own || !l->item_ids || !l->item_own || !l->trends)
        err = WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    if (!err) err = weir_recommend_trends_read(&l->opts, l->field.end_us, l->cell.half_life_us, trends);
    for (uint32_t u = 0; !err && u < l->pairs.users; u++) {
        if (l->pairs.user_offsets[u] == l->pairs.user_offsets[u + 1]) continue;
        l->user_ids[l->user_count] = users[u];
        memcpy(l->user_own + l->user_count++ * l->opts.width, l->best + (size_t)u * l->opts.width, row);
    }
    for (uint32_t i = 0; !err && i < count; i++) {
        const uint32_t from = l->vectors.items[i];
        l->item_ids[i] = items[from];
        l->trends[i] = trends[from];
        memcpy(l->item_own + (size_t)i * l->opts.width, l->best + ((size_t)l->pairs.users + from) * l->opts.width, row);
    }
    weir_free(trends);
    return err;
}

weir_err weir_recommend_learn(const weir_recommend_opts *opts, weir_recommended **learntp) {
    *learntp = NULL;
    weir_err err = learn_check(opts);
    if (err) return err;
    weir_recommended *l = weir_calloc(1, sizeof *l);
    if (!l) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    l->opts = *opts;
    l->shape = (weir_recommend_shape){.rule = opts->rule,
                                      .task = opts->task,
                                      .width = opts->width,
                                      .layers = opts->layers,
                                      .cosine = opts->loss == WEIR_RECOMMEND_SOFTMAX,
                                      .temperature = opts->temperature};
    err = weir_recommend_team_open(opts->threads, &l->team);
    if (!err) err = weir_recommend_field_of(&l->opts, l->team, &l->field);
    if (!err) err = learn_open(l, l->field.validation_us); // LEARN-L1
    if (!err) err = learn_epochs(l);
    if (!err) err = learn_fit_trend(l);
    if (!err && opts->again) err = learn_again(l);
    if (!err) err = learn_test(&l->field, &l->shape, l->best, l->popular_us, &l->test);
    if (!err) err = learn_make_tables(l);
    if (err) {
        weir_recommended_free(l);
        return err;
    }
    *learntp = l;
    return WEIR_OK;
}

void weir_recommended_free(weir_recommended *l) {
    if (!l) return;
    learn_close(l);
    weir_recommend_vectors_free(&l->vectors);
    weir_recommend_team_close(l->team);
    void *const arrays[] = {l->test.recalls, l->user_ids, l->item_ids, l->user_own, l->item_own, l->trends};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        weir_free(arrays[i]);
    weir_free(l);
}

weir_recommended_view weir_recommended_look(const weir_recommended *l) {
    return (weir_recommended_view){.shape = l->shape,
                                   .tables = {.user_ids = l->user_ids,
                                              .item_ids = l->item_ids,
                                              .user_count = l->user_count,
                                              .item_count = l->vectors.count,
                                              .user_own = l->user_own,
                                              .item_own = l->item_own,
                                              .item_sums = l->vectors.sums,
                                              .items = l->vectors.vectors,
                                              .trends = l->trends},
                                   .validation = l->validation,
                                   .test = l->test,
                                   .best_epoch = l->best_epoch,
                                   .trend_half_life_us = l->cell.half_life_us};
}

/* --- a finished model --------------------------------------------------------------------------------------------- */

/* What the model has learnt of the vertices of this snapshot; of others it knows nothing. */
static void learn_place_rows(const weir_snapshot_vertices *of, const weir_vertex_pair *ids, uint64_t count,
                             const float *rows, uint32_t width, float *parameters) {
    for (uint64_t i = 0, at = 0; i < of->count; i++) {
        while (at < count && weir_vertex_of(ids[at]) < weir_vertex_of(of->ids[i]))
            at++;
        if (at < count && weir_vertex_of(ids[at]) == weir_vertex_of(of->ids[i]))
            memcpy(parameters + i * width, rows + at * width, width * sizeof *rows);
    }
}

weir_err weir_recommend_judge(const weir_recommend_opts *opts, const weir_recommend_model *model,
                              weir_recommend_metrics *metricsp) {
    const weir_recommend_shape *shape = weir_recommend_model_shape(model);
    const weir_recommend_tables *t = weir_recommend_model_tables(model);
    const weir_schema *schema = weir_snapshot_schema(opts->snapshot);
    weir_recommend_opts own = *opts;
    weir_recommend_field field;
    weir_recommend_team *team = NULL;
    own.task = shape->task;
    own.rule = shape->rule;
    *metricsp = (weir_recommend_metrics){0};
    if (!learn_can_judge(opts)) return WEIR_ERR(WEIR_EINVAL, "an option of the judging is out of range");
    if (!learn_rule_fits(schema, own.task, &own.rule))
        return WEIR_ERR(WEIR_EVERSION, "the model is of another task than the snapshot has; train a new model");
    weir_err err = weir_recommend_team_open(own.threads, &team);
    if (!err) err = weir_recommend_field_of(&own, team, &field);
    if (err) {
        weir_recommend_team_close(team);
        return err;
    }
    const weir_schema_relation *r = weir_schema_relation_at(schema, own.rule.relations[0].relation);
    const weir_snapshot_vertices *users = weir_snapshot_vertices_of(own.snapshot, r->from);
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(own.snapshot, r->to);
    float *parameters = weir_calloc((users->count + items->count) * shape->width + 1, sizeof *parameters);
    if (!parameters) err = WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    if (!err) {
        learn_place_rows(users, t->user_ids, t->user_count, t->user_own, shape->width, parameters);
        learn_place_rows(items, t->item_ids, t->item_count, t->item_own, shape->width,
                         parameters + users->count * shape->width);
        err = learn_test(&field, shape, parameters, shape->trend_half_life_us, metricsp);
    }
    if (err) {
        weir_free(metricsp->recalls);
        metricsp->recalls = NULL;
    }
    weir_free(parameters);
    weir_recommend_team_close(team);
    return err;
}
