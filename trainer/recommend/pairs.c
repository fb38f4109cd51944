/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - who has met what before a time, as the reader of inference/recommend tells it, in both orders. */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>

#include "recommend_private.h"

#define PAIRS_MAX ((uint32_t)1 << 31)

void weir_recommend_pairs_free(weir_recommend_pairs *p) {
    weir_free(p->user_offsets);
    weir_free(p->user_items);
    weir_free(p->item_offsets);
    weir_free(p->item_users);
    weir_free(p->weights);
    weir_free(p->by_task);
    weir_free(p->user_weights);
    weir_free(p->item_weights);
    weir_free(p->item_degrees);
    *p = (weir_recommend_pairs){0};
}

typedef struct pairs_room {
    size_t items, weights, by_task;
} pairs_room;

static weir_err pairs_add(weir_recommend_pairs *p, pairs_room *room, const weir_recommend_met *met, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (p->count == PAIRS_MAX)
            return WEIR_ERR(WEIR_ELIMIT, "there are more than %u pairs of a user and an item; look less far back",
                            PAIRS_MAX);
        if (!WEIR_GROW(p->user_items, room->items, p->count) || !WEIR_GROW(p->weights, room->weights, p->count) ||
            !WEIR_GROW(p->by_task, room->by_task, p->count))
            return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
        p->user_items[p->count] = (uint32_t)met[i].item;
        p->weights[p->count] = met[i].weight;
        p->by_task[p->count++] = met[i].by_task;
        p->task_count += met[i].by_task;
    }
    return WEIR_OK;
}

static weir_err pairs_read_users(const weir_recommend_opts *opts, int64_t before_us, weir_recommend_pairs *p) {
    weir_sample_source *source = NULL;
    weir_recommend_reader *reader = NULL;
    pairs_room room = {0};
    weir_err err = weir_sample_over_snapshot(opts->snapshot, &source);
    if (!err) err = weir_recommend_reader_open(&opts->rule, weir_snapshot_schema(opts->snapshot), source, &reader);
    for (uint32_t u = 0; !err && u < p->users; u++) {
        const weir_recommend_met *met;
        uint32_t count;
        p->user_offsets[u] = p->count;
        err = weir_recommend_reader_read(reader, u, before_us, &met, &count);
        if (!err && count && met[count - 1].item >= p->items) /* they ascend, and no source has looked at them */
            err = WEIR_ERR(WEIR_ECORRUPT, "the snapshot leads to item %llu of %u; take another copy",
                           (unsigned long long)met[count - 1].item, p->items);
        if (!err) err = pairs_add(p, &room, met, count);
    }
    p->user_offsets[p->users] = p->count;
    weir_recommend_reader_close(reader);
    weir_sample_source_close(source);
    return err;
}

/* The other order, users ascending within an item; and each pair's weight among its user's and its item's. */
static weir_err pairs_turn(weir_recommend_pairs *p) {
    double *user_degrees = weir_calloc((size_t)p->users + 1, sizeof *user_degrees);
    uint32_t *at = weir_calloc((size_t)p->items + 1, sizeof *at);
    p->item_offsets = weir_calloc((size_t)p->items + 1, sizeof *p->item_offsets);
    p->item_degrees = weir_calloc((size_t)p->items + 1, sizeof *p->item_degrees);
    p->item_users = weir_calloc((size_t)p->count + 1, sizeof *p->item_users);
    p->user_weights = weir_calloc((size_t)p->count + 1, sizeof *p->user_weights);
    p->item_weights = weir_calloc((size_t)p->count + 1, sizeof *p->item_weights);
    const bool room =
        user_degrees && at && p->item_offsets && p->item_degrees && p->item_users && p->user_weights && p->item_weights;
    for (uint32_t u = 0; room && u < p->users; u++)
        for (uint32_t i = p->user_offsets[u]; i < p->user_offsets[u + 1]; i++) {
            user_degrees[u] += p->weights[i];
            p->item_degrees[p->user_items[i]] += p->weights[i];
            p->item_offsets[p->user_items[i] + 1]++;
        }
    for (uint32_t i = 0; room && i < p->items; i++) {
        p->item_offsets[i + 1] += p->item_offsets[i];
        at[i] = p->item_offsets[i];
    }
    for (uint32_t u = 0; room && u < p->users; u++)
        for (uint32_t i = p->user_offsets[u]; i < p->user_offsets[u + 1]; i++) {
            const uint32_t item = p->user_items[i], to = at[item]++;
            const double degrees = user_degrees[u] * p->item_degrees[item];
            p->user_weights[i] = degrees > 0 ? (float)(p->weights[i] / sqrt(degrees)) : 0;
            p->item_users[to] = u;
            p->item_weights[to] = p->user_weights[i];
        }
    weir_free(user_degrees);
    weir_free(at);
    return room ? WEIR_OK : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
}

weir_err weir_recommend_pairs_read(const weir_recommend_opts *opts, int64_t before_us, weir_recommend_pairs *p) {
    const weir_schema_relation *r =
        weir_schema_relation_at(weir_snapshot_schema(opts->snapshot), opts->rule.relations[0].relation);
    const uint64_t users = weir_snapshot_vertices_of(opts->snapshot, r->from)->count;
    const uint64_t items = weir_snapshot_vertices_of(opts->snapshot, r->to)->count;
    *p = (weir_recommend_pairs){0};
    if (users + items > PAIRS_MAX) return WEIR_ERR(WEIR_ELIMIT, "there are more than %u users and items", PAIRS_MAX);
    p->users = (uint32_t)users;
    p->items = (uint32_t)items;
    p->user_offsets = weir_calloc((size_t)users + 1, sizeof *p->user_offsets);
    weir_err err = p->user_offsets ? pairs_read_users(opts, before_us, p) : WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    if (!err) err = pairs_turn(p);
    if (err) weir_recommend_pairs_free(p);
    return err;
}

weir_err weir_recommend_trends_read(const weir_recommend_opts *opts, int64_t before_us, int64_t half_life_us,
                                    float *trends) {
    const uint32_t relation = opts->rule.relations[0].relation;
    const weir_snapshot_edges *e = weir_snapshot_edges_of(opts->snapshot, relation, WEIR_IN);
    const int64_t expire_us = e->expire_us;
    for (uint64_t item = 0; item < e->vertices; item++) {
        double sum = 0;
        const int64_t begin = e->indptr[item], end = e->indptr[item + 1];
        if (begin < 0 || begin > end || (uint64_t)end > e->edges)
            return WEIR_ERR(WEIR_ECORRUPT, "the snapshot says that item %llu has edges %lld to %lld; take another copy",
                            (unsigned long long)item, (long long)begin, (long long)end);
        for (int64_t i = begin; i < end; i++) {
            const int64_t time_us = e->has_times ? e->times[i] : 0;
            if (time_us >= before_us || (e->until_us && e->until_us[i] <= before_us)) continue;
            const double age_us = (double)before_us - (double)time_us;
            if (expire_us && age_us >= (double)expire_us) break; /* newest first */
            sum += half_life_us ? exp2(-age_us / (double)half_life_us) : 1;
        }
        trends[item] = (float)log(sum + 0.1);
    }
    return WEIR_OK;
}
