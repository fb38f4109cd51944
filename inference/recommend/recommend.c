/* SPDX-License-Identifier: Apache-2.0 */
/* recommend.c - one answer: what the user has met, its vector, and the best items for it. */
#include <stdlib.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "model_private.h"

#define RECOMMEND_MET_MAX   (WEIR_RECOMMEND_RELATIONS_MAX * WEIR_RECOMMEND_WINDOW)
#define RECOMMEND_NEAR_MAX  512u /* items that an index names; where more are wanted, all are looked at */
#define RECOMMEND_READ_MAX  ((size_t)8 << 20)
#define RECOMMEND_NO_MEMORY "to recommend something"

struct weir_recommender {
    weir_graph *graph;
    weir_sample_source *source;
    uint64_t items[RECOMMEND_MET_MAX], skipped[RECOMMEND_MET_MAX];
    double weights[RECOMMEND_MET_MAX];
    double sums[WEIR_RECOMMEND_WIDTH_MAX];
    float query[WEIR_RECOMMEND_WIDTH_MAX];
    float scores[WEIR_RECOMMEND_PIECE];
    weir_recommend_best best[WEIR_RECOMMEND_LIMIT_MAX];
    uint64_t near[RECOMMEND_NEAR_MAX]; /* rows that an index names */
    weir_near_searcher *searcher;
    uint32_t searched_items; /* of the index that the searcher was opened for */
};

weir_err weir_recommender_open(weir_graph *graph, weir_recommender **recommenderp) {
    *recommenderp = NULL;
    weir_recommender *r = weir_calloc(1, sizeof *r);
    if (!r) return WEIR_NOMEM(RECOMMEND_NO_MEMORY);
    r->graph = graph;
    weir_err err = weir_sample_over_graph(graph, RECOMMEND_READ_MAX, &r->source);
    if (err) {
        weir_recommender_close(r);
        return err;
    }
    *recommenderp = r;
    return WEIR_OK;
}

void weir_recommender_close(weir_recommender *recommender) {
    if (!recommender) return;
    weir_sample_source_close(recommender->source);
    weir_near_searcher_close(recommender->searcher);
    weir_free(recommender);
}

static int recommend_by_row(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The search as of a few rows alone, which an index has named: `search` is of all items. false: there is no memory for
 * it, or it names too few. */
static bool recommend_search_near(weir_recommender *r, const weir_near *near, const weir_recommend_search *search,
                                  uint32_t *countp) {
    const weir_kernels *kernels = weir_kernels_cpu();
    const uint32_t skipped_count = search->skipped_counts[0], width = search->width;
    if (r->searched_items != search->item_count) {
        weir_near_searcher_close(r->searcher);
        r->searched_items = 0;
        if (weir_near_searcher_open((uint32_t)search->item_count, RECOMMEND_NEAR_MAX, &r->searcher)) return false;
        r->searched_items = (uint32_t)search->item_count;
    }
    const uint32_t named = weir_near_search(near, r->searcher, search->queries, search->limit + skipped_count, r->near);
    uint32_t count = 0;
    qsort(r->near, named, sizeof *r->near, recommend_by_row);
    for (uint32_t i = 0; i < named; i++) {
        const uint64_t row = r->near[i];
        if (bsearch(&row, search->skipped[0], skipped_count, sizeof row, recommend_by_row)) continue; // RECOMMEND-R4
        weir_recommend_best one = {.item = row};
        kernels->row_products(kernels, 1, width, search->items + row * width, search->queries, &one.score);
        one.score += search->trend_weights[0] * search->trends[row];
        weir_recommend_top_offer(r->best, search->limit, &count, &one);
    }
    weir_recommend_top_sort(r->best, count);
    *countp = count;
    return count == search->limit || count + skipped_count >= search->item_count;
}

weir_err weir_recommender_run(weir_recommender *r, const weir_recommend_model *model, weir_vertex vertex,
                              int64_t before_us, uint32_t limit, weir_recommend_answer *answerp) {
    const weir_recommend_shape *shape = weir_recommend_model_shape(model);
    const weir_recommend_tables *t = weir_recommend_model_tables(model);
    const weir_schema *schema = weir_graph_schema(r->graph);
    const bool repeat = weir_schema_task_at(schema, shape->task)->repeat;
    const weir_recommend_met *met;
    weir_recommend_reader *reader = NULL;
    weir_recommend_user user = {.items = r->items, .weights = r->weights};
    uint32_t met_count, skipped_count = 0;
    uint64_t place;
    WEIR_ASSERT(limit > 0 && limit <= WEIR_RECOMMEND_LIMIT_MAX);
    *answerp = (weir_recommend_answer){.best = r->best};
    weir_err err = weir_recommend_reader_open(&shape->rule, schema, r->source, &reader);
    if (!err) err = weir_recommend_reader_read(reader, vertex, before_us, &met, &met_count);
    for (uint32_t i = 0; !err && i < met_count; i++) {
        if (!weir_recommend_find(t->item_ids, t->item_count, met[i].item, &place)) continue;
        r->items[user.count] = place;
        r->weights[user.count++] = met[i].weight;
        if (met[i].by_task && !repeat) r->skipped[skipped_count++] = place; // RECOMMEND-R4
    }
    weir_recommend_reader_close(reader);
    if (err) return err;

    if (weir_recommend_find(t->user_ids, t->user_count, vertex, &place)) user.own = t->user_own + place * shape->width;
    answerp->met = user.count;
    answerp->by_trend = !weir_recommend_query(shape, t, &user, r->sums, r->query);
    const uint64_t *skipped = r->skipped;
    const float trend_weight = answerp->by_trend ? 1 : (float)shape->trend_weight;
    const weir_recommend_search search = {.items = t->items,
                                          .trends = t->trends,
                                          .item_count = t->item_count,
                                          .width = shape->width,
                                          .trend_weights = &trend_weight,
                                          .queries = r->query,
                                          .count = 1,
                                          .limit = limit,
                                          .skipped = &skipped,
                                          .skipped_counts = &skipped_count,
                                          .scores = r->scores};
    const weir_near *near = answerp->by_trend ? NULL : weir_recommend_model_near(model);
    answerp->indexed =
        near && limit + skipped_count <= RECOMMEND_NEAR_MAX && recommend_search_near(r, near, &search, &answerp->count);
    if (!answerp->indexed) weir_recommend_top(&search, r->best, &answerp->count);
    return WEIR_OK;
}

weir_err weir_recommender_vector(weir_recommender *r, const weir_recommend_model *model, weir_vertex user,
                                 int64_t before_us, float *vector) {
    weir_recommend_maker *maker = NULL;
    weir_err err = weir_recommend_maker_open(model, weir_graph_schema(r->graph), r->source, NULL, &maker);
    if (!err) err = weir_recommend_maker_run(maker, user, before_us, vector);
    weir_recommend_maker_close(maker);
    return err;
}
