/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - what was learnt, asked at the beginning of each horizon of everybody who then met something in it.
 *
 *   edges before t ─► pairs ─► vectors of items ─┐
 *   edges in [t, t + horizon) ─► to be found     ├─► the best 20 of each user, by each cell ─► recall, NDCG
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "recommend_private.h"

#define JUDGE_AT_ONCE 32u /* users */

weir_err weir_recommend_field_of(const weir_recommend_opts *opts, weir_recommend_team *team, weir_recommend_field *f) {
    const weir_schema *schema = weir_snapshot_schema(opts->snapshot);
    const weir_schema_task *task = weir_schema_task_at(schema, opts->task);
    const weir_schema_relation *r = weir_schema_relation_at(schema, task->relation);
    const int64_t as_of_us = weir_snapshot_as_of_us(opts->snapshot);
    int64_t parts_us;
    *f = (weir_recommend_field){.opts = opts, .team = team, .end_us = as_of_us, .horizon_us = task->horizon_us};
    if (__builtin_mul_overflow(task->horizon_us, (int64_t)opts->horizons, &parts_us) ||
        __builtin_sub_overflow(as_of_us, parts_us, &f->test_us) ||
        __builtin_sub_overflow(f->test_us, parts_us, &f->validation_us) ||
        f->validation_us < weir_snapshot_from_us(opts->snapshot))
        return WEIR_ERR(WEIR_EDATA,
                        "the snapshot's history is shorter than two times %u horizons of task '%s'; build it of more, "
                        "or judge fewer --horizons",
                        opts->horizons, task->name);
    f->users = weir_snapshot_vertices_of(opts->snapshot, r->from)->count;
    f->items = weir_snapshot_vertices_of(opts->snapshot, r->to)->count;
    return WEIR_OK;
}

/* --- vectors ------------------------------------------------------------------------------------------------------ */

void weir_recommend_vectors_free(weir_recommend_vectors *v) {
    weir_free(v->items);
    weir_free(v->places);
    weir_free(v->vectors);
    weir_free(v->sums);
    *v = (weir_recommend_vectors){0};
}

/* Of an item: what answers score by, and what a user's vector is made of. */
static void vectors_finish(const weir_recommend_shape *shape, double degree, const float *mean, const float *sum,
                           float *vector, float *item_sum) {
    double square = 0;
    for (uint32_t c = 0; c < shape->width; c++)
        square += (double)mean[c] * (double)mean[c];
    const double scale = !shape->cosine ? 1 : square > 1e-30 ? 1 / (sqrt(square) * shape->temperature) : 0;
    for (uint32_t c = 0; c < shape->width; c++) {
        vector[c] = (float)((double)mean[c] * scale);
        item_sum[c] = (float)((double)sum[c] / sqrt(degree));
    }
}

weir_err weir_recommend_vectors_make(const weir_recommend_field *f, const weir_recommend_shape *shape,
                                     const float *parameters, const weir_recommend_pairs *pairs,
                                     weir_recommend_vectors *v) {
    const uint32_t width = shape->width;
    const size_t cells = ((size_t)pairs->users + pairs->items) * width, item_cells = (size_t)pairs->items * width + 1;
    float *out = weir_calloc(cells, sizeof *out), *one = weir_calloc(cells, sizeof *one);
    float *other = weir_calloc(cells, sizeof *other), *sums = weir_calloc(item_cells, sizeof *sums);
    *v = (weir_recommend_vectors){.items = weir_calloc((size_t)pairs->items + 1, sizeof *v->items),
                                  .places = weir_calloc((size_t)pairs->items + 1, sizeof *v->places),
                                  .vectors = weir_calloc(item_cells, sizeof *v->vectors),
                                  .sums = weir_calloc(item_cells, sizeof *v->sums)};
    const bool room = out && one && other && sums && v->items && v->places && v->vectors && v->sums;
    if (room) {
        weir_recommend_propagate(&(weir_recommend_propagation){.pairs = pairs,
                                                               .team = f->team,
                                                               .width = width,
                                                               .layers = shape->layers,
                                                               .x = parameters,
                                                               .out = out,
                                                               .one = one,
                                                               .other = other,
                                                               .sums = sums});
        for (uint32_t i = 0; i < pairs->items; i++) {
            v->places[i] = UINT32_MAX;
            if (pairs->item_offsets[i] == pairs->item_offsets[i + 1] || !(pairs->item_degrees[i] > 0)) continue;
            v->places[i] = v->count;
            v->items[v->count] = i;
            vectors_finish(shape, pairs->item_degrees[i], out + ((size_t)pairs->users + i) * width,
                           sums + (size_t)i * width, v->vectors + (size_t)v->count * width,
                           v->sums + (size_t)v->count * width);
            v->count++;
        }
    }
    weir_free(out);
    weir_free(one);
    weir_free(other);
    weir_free(sums);
    if (room) return WEIR_OK;
    weir_recommend_vectors_free(v);
    return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
}

/* --- one horizon -------------------------------------------------------------------------------------------------- */

/* What a thread needs to itself. */
typedef struct judge_room {
    uint64_t *met, *skipped; /* JUDGE_AT_ONCE lists of `longest` */
    double *sums;
    float *queries, *scores;
    weir_recommend_best *best;
} judge_room;

typedef struct judge_horizon {
    const weir_recommend_judging *of;
    weir_recommend_pairs pairs;
    weir_recommend_vectors vectors;
    float *trends; /* of the half-life at hand, one a known item */
    /* Users with something to be found, and what: items as the snapshot counts them. */
    uint32_t *users, *offsets, *wanted;
    uint32_t user_count, longest; /* longest: list that anybody has met */
    bool repeat;
    judge_room rooms[WEIR_RECOMMEND_THREADS_MAX];
    const weir_recommend_cell *cell;
    float *recalls, *ndcgs; /* of the cell at hand, one a user */
} judge_horizon;

static bool judge_has_met(const weir_recommend_pairs *p, uint32_t user, uint32_t item) {
    uint32_t low = p->user_offsets[user], high = p->user_offsets[user + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->user_items[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->user_offsets[user + 1] && p->user_items[low] == item && p->by_task[low];
}

static int judge_by_number(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Appends what a user met in the horizon, each once, and not what it had if that may not be answered. */
static weir_err judge_list_user(judge_horizon *h, uint32_t user, int64_t from_us, int64_t to_us, size_t *roomp,
                                uint32_t *countp) {
    const weir_recommend_opts *opts = h->of->field->opts;
    const weir_snapshot_edges *e = weir_snapshot_edges_of(opts->snapshot, opts->rule.relations[0].relation, WEIR_OUT);
    const int64_t begin = e->indptr[user], end = e->indptr[user + 1];
    const uint32_t first = *countp;
    if (begin < 0 || begin > end || (uint64_t)end > e->edges)
        return WEIR_ERR(WEIR_ECORRUPT, "the snapshot says that vertex %u has edges %lld to %lld; take another copy",
                        user, (long long)begin, (long long)end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t time_us = e->has_times ? e->times[i] : 0, item = e->neighbors[i];
        if (time_us < from_us) break; /* newest first */
        if (time_us >= to_us || (e->until_us && e->until_us[i] <= to_us)) continue;
        if (item < 0 || (uint64_t)item >= h->of->field->items)
            return WEIR_ERR(WEIR_ECORRUPT, "the snapshot leads to item %lld, which is not there; take another copy",
                            (long long)item);
        if (!h->repeat && judge_has_met(&h->pairs, user, (uint32_t)item)) continue;
        if (*countp == UINT32_MAX)
            return WEIR_ERR(WEIR_ELIMIT, "more than %u items are to be found; judge fewer --horizons", UINT32_MAX);
        if (!WEIR_GROW(h->wanted, *roomp, *countp)) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
        h->wanted[(*countp)++] = (uint32_t)item;
    }
    if (*countp == first) return WEIR_OK; /* the list may not be there yet */
    qsort(h->wanted + first, *countp - first, sizeof *h->wanted, judge_by_number);
    uint32_t kept = first;
    for (uint32_t i = first; i < *countp; i++)
        if (kept == first || h->wanted[kept - 1] != h->wanted[i]) h->wanted[kept++] = h->wanted[i];
    *countp = kept;
    return WEIR_OK;
}

static weir_err judge_list(judge_horizon *h, int64_t from_us, int64_t to_us) {
    const uint64_t users = h->of->field->users;
    size_t room = 0;
    uint32_t count = 0;
    h->users = weir_calloc(users + 1, sizeof *h->users);
    h->offsets = weir_calloc(users + 1, sizeof *h->offsets);
    weir_err err = h->users && h->offsets ? WEIR_OK : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    for (uint32_t u = 0; !err && u < users; u++) {
        const uint32_t before = count, met = h->pairs.user_offsets[u + 1] - h->pairs.user_offsets[u];
        err = judge_list_user(h, u, from_us, to_us, &room, &count);
        if (err || count == before) continue;
        h->users[h->user_count] = u;
        h->offsets[++h->user_count] = count;
        if (met > h->longest) h->longest = met;
    }
    return err;
}

/* Evenly, so that those who are left are like all. */
static void judge_thin_out(judge_horizon *h) {
    const uint32_t most = h->of->users_max;
    uint32_t kept = 0, at = 0;
    if (!most || h->user_count <= most) return;
    for (uint32_t i = 0; i < most; i++) {
        const uint32_t from = (uint32_t)((uint64_t)i * h->user_count / most);
        const uint32_t begin = h->offsets[from], end = h->offsets[from + 1];
        memmove(h->wanted + at, h->wanted + begin, (end - begin) * sizeof *h->wanted);
        at += end - begin;
        h->users[kept] = h->users[from];
        h->offsets[++kept] = at;
    }
    h->user_count = kept;
}

/* --- users -------------------------------------------------------------------------------------------------------- */

/* The user's query, what trends weigh for it, and what may not be answered; returns how many these are. */
static uint32_t judge_ask(const judge_horizon *h, const judge_room *room, uint32_t user, uint32_t at,
                          float *trend_weightp) {
    const weir_recommend_pairs *p = &h->pairs;
    const weir_recommend_shape *shape = h->of->shape;
    uint64_t *met = room->met + (size_t)at * h->longest, *skipped = room->skipped + (size_t)at * h->longest;
    const uint32_t begin = p->user_offsets[user], end = p->user_offsets[user + 1];
    const weir_recommend_tables tables = {.item_sums = h->vectors.sums};
    uint32_t skipped_count = 0;
    for (uint32_t i = begin; i < end; i++) {
        met[i - begin] = h->vectors.places[p->user_items[i]];
        if (p->by_task[i] && !h->repeat) skipped[skipped_count++] = met[i - begin];
    }
    const weir_recommend_user of = {.own = h->of->parameters + (size_t)user * shape->width,
                                    .items = met,
                                    .weights = p->weights + begin,
                                    .count = end - begin};
    float *query = room->queries + (size_t)at * shape->width;
    const bool known = weir_recommend_query(shape, &tables, &of, room->sums, query);
    if (h->cell->alone) memset(query, 0, shape->width * sizeof *query);
    *trend_weightp = h->cell->alone || !known ? 1 : (float)h->cell->weight; /* as a server answers */
    return skipped_count;
}

static void judge_count(judge_horizon *h, uint32_t at, const weir_recommend_best *best, uint32_t count) {
    const uint32_t begin = h->offsets[at], wanted = h->offsets[at + 1] - begin;
    double gain = 0, most = 0;
    uint32_t hits = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t item = h->vectors.items[best[i].item];
        if (!bsearch(&item, h->wanted + begin, wanted, sizeof item, judge_by_number)) continue;
        hits++;
        gain += 1 / log2(i + 2);
    }
    for (uint32_t i = 0; i < wanted && i < WEIR_RECOMMEND_CUT; i++)
        most += 1 / log2(i + 2);
    h->recalls[at] = (float)hits / (float)wanted;
    h->ndcgs[at] = (float)(gain / most);
}

static void judge_part(void *context, uint32_t part, uint32_t thread) {
    judge_horizon *h = context;
    const judge_room *room = &h->rooms[thread];
    const uint32_t begin = part * JUDGE_AT_ONCE, left = h->user_count - begin;
    const uint32_t count = left < JUDGE_AT_ONCE ? left : JUDGE_AT_ONCE;
    uint32_t skipped_counts[JUDGE_AT_ONCE], best_counts[JUDGE_AT_ONCE];
    float trend_weights[JUDGE_AT_ONCE];
    const uint64_t *skipped[JUDGE_AT_ONCE];
    for (uint32_t i = 0; i < count; i++) {
        skipped[i] = room->skipped + (size_t)i * h->longest;
        skipped_counts[i] = judge_ask(h, room, h->users[begin + i], i, &trend_weights[i]);
    }
    const weir_recommend_search search = {.items = h->vectors.vectors,
                                          .trends = h->trends,
                                          .item_count = h->vectors.count,
                                          .width = h->of->shape->width,
                                          .trend_weights = trend_weights,
                                          .queries = room->queries,
                                          .count = count,
                                          .limit = WEIR_RECOMMEND_CUT,
                                          .skipped = skipped,
                                          .skipped_counts = skipped_counts,
                                          .scores = room->scores};
    weir_recommend_top(&search, room->best, best_counts);
    for (uint32_t i = 0; i < count; i++)
        judge_count(h, begin + i, room->best + (size_t)i * WEIR_RECOMMEND_CUT, best_counts[i]);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static weir_err judge_open_rooms(judge_horizon *h) {
    const uint32_t width = h->of->shape->width;
    bool room = true;
    for (uint32_t t = 0; room && t < weir_recommend_team_size(h->of->field->team); t++) {
        judge_room *r = &h->rooms[t];
        r->met = weir_calloc((size_t)JUDGE_AT_ONCE * h->longest + 1, sizeof *r->met);
        r->skipped = weir_calloc((size_t)JUDGE_AT_ONCE * h->longest + 1, sizeof *r->skipped);
        r->sums = weir_calloc(width, sizeof *r->sums);
        r->queries = weir_calloc((size_t)JUDGE_AT_ONCE * width, sizeof *r->queries);
        r->scores = weir_calloc((size_t)JUDGE_AT_ONCE * WEIR_RECOMMEND_PIECE, sizeof *r->scores);
        r->best = weir_calloc((size_t)JUDGE_AT_ONCE * WEIR_RECOMMEND_CUT, sizeof *r->best);
        room = r->met && r->skipped && r->sums && r->queries && r->scores && r->best;
    }
    return room ? WEIR_OK : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
}

static weir_err judge_read_trends(judge_horizon *h, int64_t before_us, int64_t half_life_us) {
    float *all = weir_calloc(h->of->field->items + 1, sizeof *all);
    weir_err err = all ? weir_recommend_trends_read(h->of->field->opts, before_us, half_life_us, all)
                       : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    for (uint32_t i = 0; !err && i < h->vectors.count; i++)
        h->trends[i] = all[h->vectors.items[i]];
    weir_free(all);
    return err;
}

/* Adds one horizon's users to the metrics of a cell. */
static weir_err judge_add(const judge_horizon *h, const float *parameters, bool keep, weir_recommend_metrics *m) {
    const uint32_t width = h->of->shape->width;
    for (uint32_t i = 0; i < h->user_count; i++) {
        const float *own = parameters + (size_t)h->users[i] * width;
        bool known = false;
        for (uint32_t c = 0; c < width; c++)
            known |= own[c] != 0;
        m->unknown += !known;
        m->recall += (double)h->recalls[i];
        m->ndcg += (double)h->ndcgs[i];
    }
    if (keep && h->user_count) {
        float *recalls = weir_realloc_array(m->recalls, m->users + h->user_count, sizeof *recalls);
        if (!recalls) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
        m->recalls = recalls;
        memcpy(recalls + m->users, h->recalls, h->user_count * sizeof *recalls);
    }
    m->users += h->user_count;
    m->items += h->offsets[h->user_count];
    return WEIR_OK;
}

static weir_err judge_run_horizon(judge_horizon *h, int64_t from_us, weir_recommend_metrics *metrics) {
    const weir_recommend_judging *j = h->of;
    weir_err err = weir_recommend_pairs_read(j->field->opts, from_us, &h->pairs); // LEARN-L1
    if (!err) err = weir_recommend_vectors_make(j->field, j->shape, j->parameters, &h->pairs, &h->vectors);
    if (!err) err = judge_list(h, from_us, from_us + j->field->horizon_us);
    if (err) return err;
    judge_thin_out(h);
    h->trends = weir_calloc((size_t)h->vectors.count + 1, sizeof *h->trends);
    h->recalls = weir_calloc((size_t)h->user_count + 1, sizeof *h->recalls);
    h->ndcgs = weir_calloc((size_t)h->user_count + 1, sizeof *h->ndcgs);
    err = h->trends && h->recalls && h->ndcgs ? judge_open_rooms(h) : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    for (uint32_t c = 0; !err && c < j->cell_count && h->vectors.count > 0; c++) {
        h->cell = &j->cells[c];
        if (c == 0 || h->cell->half_life_us != j->cells[c - 1].half_life_us)
            err = judge_read_trends(h, from_us, h->cell->half_life_us);
        if (err) break;
        weir_recommend_team_run(j->field->team, (h->user_count + JUDGE_AT_ONCE - 1) / JUDGE_AT_ONCE, judge_part, h);
        err = judge_add(h, j->parameters, c == 0, &metrics[c]);
    }
    return err;
}

static void judge_free_horizon(judge_horizon *h) {
    weir_recommend_pairs_free(&h->pairs);
    weir_recommend_vectors_free(&h->vectors);
    for (uint32_t t = 0; t < WEIR_RECOMMEND_THREADS_MAX; t++) {
        judge_room *r = &h->rooms[t];
        void *const arrays[] = {r->met, r->skipped, r->sums, r->queries, r->scores, r->best};
        for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
            weir_free(arrays[i]);
    }
    void *const arrays[] = {h->trends, h->users, h->offsets, h->wanted, h->recalls, h->ndcgs};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        weir_free(arrays[i]);
    weir_free(h);
}

/* Means over users, and how far the recall may be off. */
static void judge_finish(const weir_recommend_judging *j, weir_recommend_metrics *m) {
    const double users = (double)m->users;
    double square = 0;
    m->from_us = j->from_us;
    m->to_us = j->to_us;
    if (!m->users) return;
    m->recall /= users;
    m->ndcg /= users;
    for (uint64_t i = 0; m->recalls && i < m->users; i++)
        square += ((double)m->recalls[i] - m->recall) * ((double)m->recalls[i] - m->recall);
    const double error = m->users > 1 ? 1.96 * sqrt(square / (users - 1) / users) : 0;
    m->low = m->recall - error;
    m->high = m->recall + error;
}

weir_err weir_recommend_judge_rows(const weir_recommend_judging *j, weir_recommend_metrics *metrics) {
    weir_err err = WEIR_OK;
    WEIR_ASSERT(j->cell_count > 0 && j->cell_count <= RECOMMEND_CELLS_MAX);
    memset(metrics, 0, j->cell_count * sizeof *metrics);
    for (int64_t from_us = j->from_us; !err && from_us < j->to_us; from_us += j->field->horizon_us) {
        judge_horizon *h = weir_calloc(1, sizeof *h);
        if (!h) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
        h->of = j;
        h->repeat = weir_schema_task_at(weir_snapshot_schema(j->field->opts->snapshot), j->field->opts->task)->repeat;
        err = judge_run_horizon(h, from_us, metrics);
        judge_free_horizon(h);
    }
    for (uint32_t c = 0; !err && c < j->cell_count; c++)
        judge_finish(j, &metrics[c]);
    return err;
}
