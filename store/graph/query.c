/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - the graph's questions, in terms of one shard's lists. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/stored.h>

#include "graph_private.h"
#include "trim.h"

#define ROWS_PER_LOOK 4u /* feature rows taken at first: most vertices have one */
#define ROWS_MAX      4096u
#define PUT_LISTS_MAX (2 * WEIR_SCHEMA_RELATIONS_MAX + 2)

#define AHEAD_SLOT   16u /* in windows: where one is found */
#define AHEAD_MIN    4u  /* with fewer there is nothing to fetch beside */
#define AHEAD_WINDOW 8u  /* and the window itself          */

static weir_shard *query_shard_of(const weir_graph *graph, weir_vertex vertex) {
    return graph->shards[weir_shard_of(vertex, graph->shard_count)];
}

/* Age is counted from the moment that is asked for; without one, from the time that the sources agree on: the newest
 * event alone would be whatever one sender writes. Should that time have gone back behind what a trim has kept, from
 * the first moment of which all is kept. */
static int64_t query_expired_at(const weir_graph *graph, int64_t expire_us, int64_t history_us, int64_t before_us) {
    int64_t now_us = before_us == WEIR_BEFORE_ALL ? weir_watermark_now(graph->watermark) : before_us;
    int64_t trimmed_us = atomic_load_explicit(&graph->trimmed_us, memory_order_relaxed);
    int64_t edge_us, untold_us;
    bool kept = history_us && !__builtin_sub_overflow(trimmed_us, history_us, &untold_us);
    if (kept && before_us == WEIR_BEFORE_ALL && now_us <= untold_us) now_us = untold_us + 1;
    if (expire_us == 0 || __builtin_sub_overflow(now_us, expire_us, &edge_us)) return INT64_MIN;
    return edge_us;
}

/* Whether a time lies within a `history`. That is counted from the time that the sources agree on, never from the one
 * that is asked for: what no such question reaches any more need not be kept. Should that time go back, a trim has not
 * kept what it reaches then. */
static bool query_is_told(const weir_graph *graph, int64_t history_us, int64_t before_us) {
    int64_t now_us = weir_watermark_now(graph->watermark), untold_us;
    int64_t trimmed_us = atomic_load_explicit(&graph->trimmed_us, memory_order_relaxed);
    if (trimmed_us > now_us) now_us = trimmed_us;
    return history_us == 0 || __builtin_sub_overflow(now_us, history_us, &untold_us) || before_us > untold_us;
}

static weir_err query_check_window(const weir_graph *graph, uint16_t relation, uint32_t limit) {
    if (relation < weir_schema_relation_count(graph->schema) && limit > 0 && limit <= WEIR_WINDOW_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "there is no relation %u, or the limit %u is not from 1 to %u", relation, limit,
                    WEIR_WINDOW_MAX);
}

/* All reads of edges come through here, those of samplers and aggregates too; only the search for the puts of a vertex
 * does not, because an edge counts as one, however far back it can be asked for. since_us: older edges are left out. */
static weir_err query_read_window(const weir_graph *graph, weir_delta *const deltas[2], weir_vertex vertex,
                                  int64_t before_us, int64_t since_us, const weir_graph_ask *ask,
                                  weir_graph_budget *budget, weir_arena *arena, const weir_edge **edgesp,
                                  uint32_t *countp) {
    *edgesp = NULL;
    *countp = 0;
    const weir_schema_relation *of = weir_schema_relation_at(graph->schema, ask->relation);
    if (!query_is_told(graph, of->history_us, before_us)) return WEIR_OK;
    int64_t newer_than_us = query_expired_at(graph, of->expire_us, of->history_us, before_us);
    if (since_us > newer_than_us) newer_than_us = since_us - 1;
    const weir_list_query query = {.vertex = vertex,
                                   .list = WEIR_LIST_EDGES(ask->relation, ask->direction),
                                   .before_us = before_us,
                                   .newer_than_us = newer_than_us,
                                   .limit = ask->limit,
                                   .beside = ask->beside,
                                   .beside_count = ask->beside_count,
                                   .scratch = ask->scratch,
                                   .budget = budget};
    return weir_shard_edges(query_shard_of(graph, vertex), deltas, &query, arena, edgesp, countp);
}

weir_err weir_graph_neighbors_within(weir_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                                     int64_t before_us, uint32_t limit, weir_graph_budget *budget, weir_arena *arena,
                                     const weir_edge **edgesp, uint32_t *countp) {
    const weir_graph_ask ask = {.relation = relation, .direction = direction, .limit = limit};
    weir_delta *deltas[2];
    *edgesp = NULL;
    *countp = 0;
    weir_err err = query_check_window(graph, relation, limit);
    if (err) return err;
    weir_shard_version(query_shard_of(graph, vertex), deltas);
    err = query_read_window(graph, deltas, vertex, before_us, INT64_MIN, &ask, budget, arena, edgesp, countp);
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}

/* One list of many vertices, and the deltas of the shards that have them. */
typedef struct query_many {
    const weir_vertex *vertices;
    uint32_t count;
    weir_list list;
    uint32_t limit;
    weir_delta *deltas[WEIR_SHARDS_MAX][2];
    bool held[WEIR_SHARDS_MAX];
} query_many;

static void query_many_begin(query_many *m, const weir_vertex *vertices, uint32_t count, weir_list list,
                             uint32_t limit) {
    m->vertices = vertices;
    m->count = count;
    m->list = list;
    m->limit = limit;
    memset(m->held, 0, sizeof m->held); /* of the others, deltas are not looked at */
}

static void query_fetch_one(const weir_graph *graph, const query_many *m, size_t at, weir_cache_stage stage) {
    if (at < m->count)
        weir_cache_ahead(query_shard_of(graph, m->vertices[at])->cache, m->vertices[at], m->list, m->limit, stage);
}

/* Before the one at `at` is read; before the first, what the following steps take for granted. */
static void query_fetch_ahead(const weir_graph *graph, const query_many *m, size_t at) {
    if (m->count < AHEAD_MIN) return;
    for (size_t i = at ? AHEAD_SLOT : 0; i <= AHEAD_SLOT; i++)
        query_fetch_one(graph, m, at + i, WEIR_CACHE_SLOT);
    for (size_t i = at ? AHEAD_WINDOW : 0; i <= AHEAD_WINDOW; i++)
        query_fetch_one(graph, m, at + i, WEIR_CACHE_WINDOW);
}

/* The deltas of the shard that has the vertex at `at`, which is read next. */
static weir_delta *const *query_hold(const weir_graph *graph, query_many *m, size_t at) {
    const uint32_t shard = weir_shard_of(m->vertices[at], graph->shard_count);
    WEIR_ASSERT(shard < graph->shard_count && graph->shard_count <= WEIR_SHARDS_MAX);
    query_fetch_ahead(graph, m, at);
    if (!m->held[shard]) weir_shard_version(graph->shards[shard], m->deltas[shard]);
    m->held[shard] = true;
    return m->deltas[shard];
}

static void query_let_go(const weir_graph *graph, const query_many *m) {
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        if (!m->held[i]) continue;
        weir_delta_release(m->deltas[i][0]);
        weir_delta_release(m->deltas[i][1]);
    }
}

weir_err weir_graph_neighbors_of_many(weir_graph *graph, const weir_vertex *vertices, const int64_t *before_us,
                                      uint32_t count, const weir_graph_ask *ask, weir_arena *arena,
                                      weir_graph_window *windows) {
    query_many m;
    query_many_begin(&m, vertices, count, WEIR_LIST_EDGES(ask->relation, ask->direction), ask->limit);
    weir_err err = query_check_window(graph, ask->relation, ask->limit);
    WEIR_ASSERT(ask->beside_count <= WEIR_GRAPH_BESIDE_MAX);
    for (uint32_t i = 0; !err && i < count; i++) {
        weir_delta *const *deltas = query_hold(graph, &m, i);
        int64_t since_us = ask->since_us ? ask->since_us[i] : INT64_MIN;
        err = query_read_window(graph, deltas, vertices[i], before_us[i], since_us, ask, NULL, arena, &windows[i].edges,
                                &windows[i].count);
    }
    query_let_go(graph, &m);
    return err;
}

weir_err weir_graph_neighbors(weir_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                              int64_t before_us, uint32_t limit, weir_arena *arena, const weir_edge **edgesp,
                              uint32_t *countp) {
    return weir_graph_neighbors_within(graph, vertex, relation, direction, before_us, limit, NULL, arena, edgesp,
                                       countp);
}

/* --- the puts of a vertex --------------------------------------------------------------------------------------- */

/* Each put of a vertex leaves a record of its time (key.h): a row, an edge of its event, or one of its own. These are
 * the ones that a reader is told of: newer than the vertex's deletion, and of the span. */
typedef struct query_puts {
    const weir_graph *graph;
    weir_vertex vertex;
    uint32_t type;
    int64_t deleted_us, before_us, newer_than_us;
    weir_arena *arena; /* where any put will do; NULL: the oldest is looked for, in all lists */
    weir_graph_budget *budget;
    bool found;
    int64_t oldest_us;
} query_puts;

/* Those that are not forgotten before a time, whatever was deleted. */
static query_puts query_puts_before(const weir_graph *graph, weir_vertex vertex, uint32_t type, int64_t before_us,
                                    weir_graph_budget *budget) {
    const weir_schema_vertex *of = weir_schema_vertex_at(graph->schema, type);
    return (query_puts){.graph = graph,
                        .vertex = vertex,
                        .type = type,
                        .deleted_us = WEIR_DELETED_NEVER,
                        .before_us = before_us,
                        .newer_than_us = query_expired_at(graph, of->expire_us, of->history_us, before_us),
                        .budget = budget};
}

static weir_err query_deleted_before(const weir_graph *graph, weir_vertex vertex, int64_t before_us,
                                     weir_graph_budget *budget, int64_t *time_usp) {
    weir_deleted_look look = {.deleted = query_shard_of(graph, vertex)->deleted, .budget = budget};
    weir_err err = weir_deleted_time(&look, vertex, before_us, time_usp);
    weir_deleted_look_end(&look);
    return err;
}

/* The lists that a put of a vertex may stand in, rising. */
static size_t query_put_lists(const weir_schema *schema, uint32_t type, weir_list lists[PUT_LISTS_MAX]) {
    size_t count = 0;
    for (uint32_t i = 0; i < weir_schema_relation_count(schema); i++) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, i);
        if (relation->from == type) lists[count++] = WEIR_LIST_EDGES(i, WEIR_OUT);
        if (relation->to == type) lists[count++] = WEIR_LIST_EDGES(i, WEIR_IN);
    }
    if (weir_schema_vertex_at(schema, type)->feature_count) lists[count++] = WEIR_LIST_FEATURES;
    lists[count++] = WEIR_LIST_PUTS;
    WEIR_ASSERT(count <= PUT_LISTS_MAX);
    return count;
}

/* In all lists at once the oldest; or, one list after the other, any: most vertices have a row, and hardly one has a
 * record of the put alone. */
static weir_err query_look_for_puts(query_puts *p) {
    weir_list lists[PUT_LISTS_MAX];
    size_t count = query_put_lists(p->graph->schema, p->type, lists);
    weir_shard *shard = query_shard_of(p->graph, p->vertex);
    weir_list_query query = {.vertex = p->vertex,
                             .before_us = p->before_us,
                             .newer_than_us = p->newer_than_us > p->deleted_us ? p->newer_than_us : p->deleted_us,
                             .limit = 1,
                             .hidden_too = true,
                             .budget = p->budget};
    weir_err err = WEIR_OK;
    p->found = false;
    if (!p->arena) {
        int64_t oldest_us;
        err = weir_shard_oldest(shard, &query, lists, count, &p->found, &oldest_us);
        if (!err && p->found) p->oldest_us = oldest_us;
        return err;
    }
    for (size_t i = 0; !err && !p->found && i < count; i++) {
        const weir_entry *entries;
        uint32_t met;
        query.list = lists[(2 * count - 2 - i) % count]; /* the row's, those before it, and last the last */
        err = weir_shard_list(shard, &query, p->arena, &entries, &met);
        p->found = !err && met > 0;
    }
    return err;
}

/* Whether the vertex was put after its newest deletion, and within the age at which its type is forgotten. The name's
 * own time says nothing of that: it is carried once only, by whichever put came first. The records of puts are the same
 * in whatever order puts and deletions come, and however often. Only vertices that were deleted, or whose type expires,
 * pay for the looks. */
static weir_err query_is_there(const weir_graph *graph, weir_vertex vertex, uint32_t type, int64_t before_us,
                               weir_graph_budget *budget, weir_arena *arena, bool *therep) {
    query_puts p = query_puts_before(graph, vertex, type, before_us, budget);
    weir_err err = query_deleted_before(graph, vertex, before_us, budget, &p.deleted_us);
    *therep = !err && p.deleted_us == WEIR_DELETED_NEVER && p.newer_than_us == INT64_MIN;
    if (err || *therep) return err;
    p.arena = arena;
    err = query_look_for_puts(&p);
    *therep = p.found;
    return err;
}

/* --- lives ------------------------------------------------------------------------------------------------------ */

/* The life that a vertex has before a time: the puts that are not forgotten by then, also those ahead of the time that
 * the sources agree on, and back from these the ones that are less than an expiry apart. *therep false: none, or the
 * type's history does not reach so far back. *firstp is its oldest put; or, if that is older than reach_us, one that
 * is. */
static weir_err query_find_life(const weir_graph *graph, weir_vertex vertex, uint32_t type, int64_t before_us,
                                int64_t reach_us, weir_graph_budget *budget, bool *therep, int64_t *firstp) {
    const weir_schema_vertex *of = weir_schema_vertex_at(graph->schema, type);
    query_puts p = query_puts_before(graph, vertex, type, before_us, budget);
    *therep = false;
    *firstp = p.oldest_us;
    if (!query_is_told(graph, of->history_us, before_us)) return WEIR_OK;
    weir_err err = query_deleted_before(graph, vertex, before_us, budget, &p.deleted_us);
    if (!err) err = query_look_for_puts(&p);
    *therep = p.found;
    /* Back in leaps: to the oldest put within an expiry before the last one met. Two leaps pass an expiry at least. */
    while (!err && of->expire_us && p.found && p.oldest_us > reach_us) {
        p.before_us = p.oldest_us;
        if (__builtin_sub_overflow(p.before_us, of->expire_us, &p.newer_than_us)) p.newer_than_us = INT64_MIN;
        err = query_look_for_puts(&p);
    }
    *firstp = p.oldest_us;
    return err;
}

/* --- features: each at its newest value ------------------------------------------------------------------------- */

static weir_err query_damaged(weir_vertex vertex) {
    return WEIR_ERR(WEIR_ECORRUPT, "a feature row of vertex " WEIR_VERTEX_FORMAT " is damaged; restore a checkpoint",
                    WEIR_VERTEX_WORDS(vertex));
}

/* The rows are merged, the newest first. One of another type than the newest row's, which only colliding ids can bring,
 * is left out. */
static weir_err query_fill(const weir_graph_kinds *kinds, weir_vertex vertex, const weir_entry *entries, uint32_t count,
                           weir_value *values, size_t *presentp) {
    uint16_t type = weir_get_u16(entries[0].row);
    *presentp = 0;
    for (uint32_t i = 0; i < count && (i == 0 || *presentp < kinds->count); i++) {
        const weir_entry *e = &entries[i];
        if (e->row_length < WEIR_STORED_FEATURES_PREFIX) return query_damaged(vertex);
        if (weir_get_u16(e->row) != type) continue;
        const uint8_t *row = e->row + WEIR_STORED_FEATURES_PREFIX;
        size_t length = e->row_length - WEIR_STORED_FEATURES_PREFIX;
        weir_err err = weir_row_check(kinds->kinds, kinds->count, row, length);
        if (err) return err;
        *presentp = weir_row_fill(kinds->kinds, kinds->count, row, length, values);
    }
    return WEIR_OK;
}

static weir_err query_view_rows(const weir_graph *graph, weir_vertex vertex, const weir_entry *entries, uint32_t count,
                                weir_arena *arena, bool *enoughp, weir_row_view *viewp) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    size_t present;
    if (entries[0].row_length < WEIR_STORED_FEATURES_PREFIX) return query_damaged(vertex);
    uint16_t type = weir_get_u16(entries[0].row);
    if (type >= weir_schema_vertex_count(graph->schema)) return query_damaged(vertex);
    const weir_graph_kinds *kinds = &graph->vertex_kinds[type];
    WEIR_ASSERT(kinds->count <= WEIR_ROW_FEATURES_MAX);
    memset(values, 0, kinds->count * sizeof values[0]);
    weir_err err = query_fill(kinds, vertex, entries, count, values, &present);
    if (err) return err;
    *enoughp = present == kinds->count;
    size_t size = weir_row_size(kinds->kinds, values, kinds->count);
    uint8_t *row = weir_arena_alloc_aligned(arena, 1, size);
    if (!row) return WEIR_ARENA_ERR(arena, "the request's memory is used up; ask for fewer features");
    uint32_t length = (uint32_t)weir_row_write(kinds->kinds, values, kinds->count, row);
    WEIR_ASSERT(length == size);
    *viewp = (weir_row_view){.row = row, .row_length = length, .vertex_type = type, .time_us = entries[0].time_us};
    return WEIR_OK;
}

/* How many rows, from the newest on, are of the life that the vertex has before the time. Those that are less than an
 * expiry apart need no look at other puts. */
static weir_err query_rows_of_life(const weir_graph *graph, weir_vertex vertex, uint32_t type, int64_t before_us,
                                   const weir_entry *entries, weir_graph_budget *budget, uint32_t *countp) {
    int64_t first_us;
    bool there;
    weir_err err =
        query_find_life(graph, vertex, type, before_us, entries[*countp - 1].time_us, budget, &there, &first_us);
    while (!err && *countp && (!there || entries[*countp - 1].time_us < first_us))
        --*countp;
    return err;
}

static uint32_t query_rows_together(const weir_entry *entries, uint32_t count, int64_t expire_us) {
    uint32_t together = 1;
    while (expire_us && together < count) {
        int64_t apart_us;
        if (__builtin_sub_overflow(entries[together - 1].time_us, entries[together].time_us, &apart_us)) break;
        if (apart_us >= expire_us) break;
        together++;
    }
    return expire_us ? together : count;
}

/* *enoughp: older rows would change nothing. */
static weir_err query_view_life(const weir_graph *graph, weir_vertex vertex, int64_t before_us,
                                const weir_entry *entries, uint32_t count, weir_graph_budget *budget, weir_arena *arena,
                                bool *enoughp, weir_row_view *viewp) {
    if (entries[0].row_length < WEIR_STORED_FEATURES_PREFIX) return query_damaged(vertex);
    uint32_t type = weir_get_u16(entries[0].row);
    if (type >= weir_schema_vertex_count(graph->schema)) return query_damaged(vertex);
    const weir_schema_vertex *of = weir_schema_vertex_at(graph->schema, type);
    *enoughp = !query_is_told(graph, of->history_us, before_us);
    if (*enoughp) return WEIR_OK;
    uint32_t of_life = query_rows_together(entries, count, of->expire_us);
    int64_t expired_us = query_expired_at(graph, of->expire_us, of->history_us, before_us);
    bool old = of->expire_us && entries[0].time_us <= expired_us;
    weir_err err = WEIR_OK;
    if (!old) err = query_view_rows(graph, vertex, entries, of_life, arena, enoughp, viewp);
    if (err || (!old && (*enoughp || of_life == count))) return err;
    of_life = count;
    err = query_rows_of_life(graph, vertex, type, before_us, entries, budget, &of_life);
    if (!err && of_life) err = query_view_rows(graph, vertex, entries, of_life, arena, enoughp, viewp);
    *enoughp = *enoughp || of_life < count;
    return err;
}

weir_err weir_graph_features_within(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_graph_budget *budget,
                                    weir_arena *arena, weir_row_view *viewp) {
    const weir_entry *entries;
    uint32_t count;
    bool enough = false;
    weir_err err = WEIR_OK;
    *viewp = (weir_row_view){0};
    for (uint32_t limit = ROWS_PER_LOOK; !err && !enough; limit *= 8) {
        weir_list_query query = {.vertex = vertex,
                                 .list = WEIR_LIST_FEATURES,
                                 .before_us = before_us,
                                 .newer_than_us = INT64_MIN,
                                 .limit = limit,
                                 .budget = budget};
        err = weir_shard_list(query_shard_of(graph, vertex), &query, arena, &entries, &count);
        if (err || count == 0) break;
        err = query_view_life(graph, vertex, before_us, entries, count, budget, arena, &enough, viewp);
        enough = enough || count < limit || limit >= ROWS_MAX;
    }
    if (err) *viewp = (weir_row_view){0};
    return err;
}

weir_err weir_graph_features(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_arena *arena,
                             weir_row_view *viewp) {
    return weir_graph_features_within(graph, vertex, before_us, NULL, arena, viewp);
}

/* --- labels ----------------------------------------------------------------------------------------------------- */

/* Whether a label of this time is of the life that its vertex has before before_us. */
static weir_err query_label_is_of_life(const weir_graph *graph, weir_vertex vertex, uint32_t type, int64_t label_us,
                                       int64_t before_us, weir_graph_budget *budget, bool *isp) {
    int64_t first_us, deleted_us, reach_us = label_us == INT64_MIN ? label_us : label_us - 1;
    weir_err err = query_deleted_before(graph, vertex, before_us, budget, &deleted_us);
    *isp = !err && deleted_us == WEIR_DELETED_NEVER && !weir_schema_vertex_at(graph->schema, type)->expire_us;
    if (err || *isp) return err;
    err = query_find_life(graph, vertex, type, before_us, reach_us, budget, isp, &first_us);
    if (err || !*isp || first_us < label_us) return err;
    query_puts earlier = query_puts_before(graph, vertex, type, first_us, budget); /* in whatever life */
    earlier.newer_than_us = INT64_MIN;
    err = query_look_for_puts(&earlier);
    *isp = !earlier.found;
    return err;
}

static weir_err query_check_label(const weir_graph *graph, uint16_t label) {
    if (label < weir_schema_label_count(graph->schema)) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "there is no label %u", label);
}

static weir_err query_read_label(const weir_graph *graph, weir_delta *const deltas[2], weir_vertex vertex,
                                 uint16_t label, int64_t before_us, weir_graph_budget *budget, weir_arena *arena,
                                 weir_row_view *viewp) {
    const weir_entry *entries;
    uint32_t count;
    const weir_list_query query = {.vertex = vertex,
                                   .list = WEIR_LIST_LABEL(label),
                                   .before_us = before_us,
                                   .newer_than_us = INT64_MIN,
                                   .limit = 1,
                                   .budget = budget};
    const weir_schema_label *schema = weir_schema_label_at(graph->schema, label);
    int64_t history_us = schema->on_relation ? weir_schema_relation_at(graph->schema, schema->target)->history_us
                                             : weir_schema_vertex_at(graph->schema, schema->target)->history_us;
    *viewp = (weir_row_view){0};
    if (!query_is_told(graph, history_us, before_us)) return WEIR_OK;
    bool counts = true;
    weir_err err = weir_shard_list_in(query_shard_of(graph, vertex), deltas, &query, arena, &entries, &count);
    if (!err && count && !schema->on_relation)
        err = query_label_is_of_life(graph, vertex, schema->target, entries[0].time_us, before_us, budget, &counts);
    if (!err && count && counts) *viewp = (weir_row_view){entries[0].row, entries[0].row_length, 0, entries[0].time_us};
    return err;
}

weir_err weir_graph_label_within(weir_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us,
                                 weir_graph_budget *budget, weir_arena *arena, weir_row_view *viewp) {
    weir_delta *deltas[2];
    *viewp = (weir_row_view){0};
    weir_err err = query_check_label(graph, label);
    if (err) return err;
    weir_shard_version(query_shard_of(graph, vertex), deltas);
    err = query_read_label(graph, deltas, vertex, label, before_us, budget, arena, viewp);
    weir_delta_release(deltas[0]);
    weir_delta_release(deltas[1]);
    return err;
}

weir_err weir_graph_labels_of_many(weir_graph *graph, const weir_vertex *vertices, const int64_t *before_us,
                                   uint32_t count, uint16_t label, weir_arena *arena, weir_row_view *views) {
    query_many m;
    query_many_begin(&m, vertices, count, WEIR_LIST_LABEL(label), 1);
    weir_err err = query_check_label(graph, label);
    for (uint32_t i = 0; !err && i < count; i++) {
        weir_delta *const *deltas = query_hold(graph, &m, i);
        err = query_read_label(graph, deltas, vertices[i], label, before_us[i], NULL, arena, &views[i]);
    }
    query_let_go(graph, &m);
    return err;
}

weir_err weir_graph_label(weir_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us, weir_arena *arena,
                          weir_row_view *viewp) {
    return weir_graph_label_within(graph, vertex, label, before_us, NULL, arena, viewp);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

weir_err weir_graph_name_within(weir_graph *graph, weir_vertex vertex, weir_graph_budget *budget, weir_arena *arena,
                                uint16_t *vertex_typep, const char **keyp, uint32_t *key_lengthp) {
    weir_name name = {0};
    bool there;
    *vertex_typep = 0;
    *keyp = NULL;
    *key_lengthp = 0;
    weir_err err = weir_shard_name(query_shard_of(graph, vertex), vertex, budget, arena, &name, &there);
    if (!err && there) err = query_is_there(graph, vertex, name.vertex_type, WEIR_BEFORE_ALL, budget, arena, &there);
    if (err || !there) return err;
    *vertex_typep = name.vertex_type;
    *keyp = name.key;
    *key_lengthp = name.key_length;
    return WEIR_OK;
}

weir_err weir_graph_name(weir_graph *graph, weir_vertex vertex, weir_arena *arena, uint16_t *vertex_typep,
                         const char **keyp, uint32_t *key_lengthp) {
    return weir_graph_name_within(graph, vertex, NULL, arena, vertex_typep, keyp, key_lengthp);
}

weir_err weir_graph_first_put(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_arena *arena, bool *knownp,
                              int64_t *time_usp) {
    weir_name name = {0};
    weir_err err = weir_shard_name(query_shard_of(graph, vertex), vertex, NULL, arena, &name, knownp);
    if (err || !*knownp) return err;
    return query_find_life(graph, vertex, name.vertex_type, before_us, INT64_MIN, NULL, knownp, time_usp);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

/* Ingest asks for notes while a store is being filled, too: then some of them may lie in a pile. */
static weir_err query_seal_notes(weir_shard *shard, uint32_t source, uint32_t partition, uint64_t from, uint64_t to) {
    uint64_t sealed = 0, applied = 0;
    if (!weir_shard_is_piled(shard)) return WEIR_OK;
    (void)weir_offsets_get(shard->sealed, source, partition, &sealed); /* of one that is not known: 0 */
    (void)weir_offsets_get(shard->applied, source, partition, &applied);
    if (sealed >= to || applied <= sealed || applied <= from) return WEIR_OK;
    const weir_shard_ticket ticket = weir_shard_ask_seal(shard);
    return weir_shard_sealed(shard, &ticket);
}

weir_err weir_graph_events(weir_graph *graph, uint32_t source, uint32_t partition, uint64_t from, uint64_t to,
                           weir_arena *arena, const weir_event_note **notesp, uint32_t *countp) {
    const weir_entry *entries;
    *notesp = NULL;
    *countp = 0;
    if (to > INT64_MAX || from >= to || to - from > WEIR_WINDOW_MAX)
        return WEIR_ERR(WEIR_EINVAL, "the notes of offsets %llu to %llu cannot be read at once",
                        (unsigned long long)from, (unsigned long long)to);
    weir_list_query query = {.vertex = weir_graph_source_vertex(graph, source, partition),
                             .list = WEIR_LIST_EVENTS,
                             .before_us = (int64_t)to,
                             .newer_than_us = (int64_t)from - 1,
                             .limit = (uint32_t)(to - from)};
    weir_shard *shard = query_shard_of(graph, query.vertex);
    weir_err err = query_seal_notes(shard, source, partition, from, to);
    if (!err) err = weir_shard_list(shard, &query, arena, &entries, countp);
    if (err) return err;
    weir_event_note *notes = weir_arena_alloc(arena, *countp * sizeof *notes);
    if (!notes) return WEIR_ARENA_ERR(arena, "the request's memory is used up; ask for fewer events");
    for (uint32_t i = 0; i < *countp; i++)
        notes[i] = (weir_event_note){(uint64_t)entries[i].time_us, entries[i].event, entries[i].content};
    *notesp = notes;
    return WEIR_OK;
}

/* --- claims ----------------------------------------------------------------------------------------------------- */

void weir_graph_name_ahead(weir_graph *graph, weir_vertex vertex) {
    weir_names_ahead(graph->names, vertex);
}

bool weir_graph_name_claim(weir_graph *graph, const weir_mutation *put) {
    int64_t renew_us = weir_trim_rule_renew_us(weir_schema_vertex_at(graph->schema, put->type));
    return weir_names_claim(graph->names, put->vertex, put->time_us, renew_us);
}
