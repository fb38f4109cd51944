/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - the graph's questions, in terms of one shard's lists. */
#include <string.h>

#include <weir/base/assert.h>
#include <weir/base/bytes.h>
#include <weir/store/stored.h>

#include "graph_private.h"

#define ROWS_PER_LOOK 4u /* feature rows taken at first: most vertices have one */
#define ROWS_MAX      4096u

static weir_shard *shard_of(const weir_graph *graph, weir_vertex vertex) {
    return graph->shards[weir_shard_of(vertex, graph->shard_count)];
}

static int64_t last_event_time(const weir_graph *graph) {
    int64_t last = INT64_MIN;
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        int64_t of_shard = atomic_load_explicit(&graph->shards[i]->event_time_last_us, memory_order_relaxed);
        if (of_shard > last) last = of_shard;
    }
    return last;
}

/* Age is counted from the moment that is asked for; without one, from the newest event. */
static int64_t expired_at(const weir_graph *graph, int64_t expire_us, int64_t before_us) {
    int64_t now_us = before_us == WEIR_BEFORE_ALL ? last_event_time(graph) : before_us, edge_us;
    if (expire_us == 0 || __builtin_sub_overflow(now_us, expire_us, &edge_us)) return INT64_MIN;
    return edge_us;
}

weir_err weir_graph_neighbors(weir_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                              int64_t before_us, uint32_t limit, weir_arena *arena, const weir_edge **edgesp,
                              uint32_t *countp) {
    const weir_entry *entries;
    *edgesp = NULL;
    *countp = 0;
    if (relation >= weir_schema_relation_count(graph->schema) || limit == 0 || limit > WEIR_WINDOW_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "no relation %u, or a limit of %u that is not 1 to %u", relation, limit,
                        WEIR_WINDOW_MAX);
    }
    int64_t expire_us = weir_schema_relation_at(graph->schema, relation)->expire_us;
    weir_list_query query = {.vertex = vertex,
                             .list = WEIR_LIST_EDGES(relation, direction),
                             .before_us = before_us,
                             .newer_than_us = expired_at(graph, expire_us, before_us),
                             .limit = limit};
    weir_err err = weir_shard_list(shard_of(graph, vertex), &query, arena, &entries, countp);
    if (err) return err;
    weir_edge *edges = weir_arena_alloc(arena, *countp * sizeof *edges);
    if (!edges) return WEIR_ERR(WEIR_ELIMIT, "the request's memory is used up; ask for fewer neighbours");
    for (uint32_t i = 0; i < *countp; i++) {
        edges[i] = (weir_edge){entries[i].neighbor, entries[i].time_us, entries[i].event, entries[i].row,
                               entries[i].row_length};
    }
    *edgesp = edges;
    return WEIR_OK;
}

/* --- whether a vertex is there ---------------------------------------------------------------------------------- */

/* What counts as a put of a vertex: of this time before, and newer than that. */
typedef struct put_span {
    int64_t before_us, newer_than_us;
} put_span;

/* No list has what is as old as the newest deletion of its vertex, or older. */
static weir_err list_has(const weir_graph *graph, weir_vertex vertex, weir_list list, const put_span *span,
                         weir_arena *arena, bool *hasp) {
    const weir_list_query query = {.vertex = vertex,
                                   .list = list,
                                   .before_us = span->before_us,
                                   .newer_than_us = span->newer_than_us,
                                   .limit = 1,
                                   .hidden_too = true};
    const weir_entry *entries;
    uint32_t count;
    weir_err err = weir_shard_list(shard_of(graph, vertex), &query, arena, &entries, &count);
    *hasp = !err && count > 0;
    return err;
}

static weir_err edges_have(const weir_graph *graph, weir_vertex vertex, uint16_t type, const put_span *span,
                           weir_arena *arena, bool *hasp) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && !*hasp && i < weir_schema_relation_count(graph->schema); i++) {
        const weir_schema_relation *relation = weir_schema_relation_at(graph->schema, i);
        if (relation->from == type) err = list_has(graph, vertex, WEIR_LIST_EDGES(i, WEIR_OUT), span, arena, hasp);
        if (err || *hasp || relation->to != type) continue;
        err = list_has(graph, vertex, WEIR_LIST_EDGES(i, WEIR_IN), span, arena, hasp);
    }
    return err;
}

/* Whether the vertex was put after its newest deletion, and within the age at which its type is forgotten. The name's
 * own time says nothing of that: it is carried once only, by whichever put came first. But each put leaves a record of
 * its time (key.h): a row, an edge of its event, or one of its own; and those are the same in whatever order puts and
 * deletions come, and however often. Only vertices that were deleted, or whose type expires, pay for the looks. */
static weir_err is_there(const weir_graph *graph, weir_vertex vertex, uint16_t type, int64_t before_us,
                         weir_arena *arena, bool *therep) {
    const weir_schema_vertex *schema = weir_schema_vertex_at(graph->schema, type);
    const put_span span = {before_us, expired_at(graph, schema->expire_us, before_us)};
    int64_t deleted_us = weir_deleted_time(shard_of(graph, vertex)->deleted, vertex, before_us);
    weir_err err = WEIR_OK;
    *therep = deleted_us == WEIR_DELETED_NEVER && span.newer_than_us == INT64_MIN;
    if (!*therep && schema->feature_count) err = list_has(graph, vertex, WEIR_LIST_FEATURES, &span, arena, therep);
    if (!err && !*therep) err = edges_have(graph, vertex, type, &span, arena, therep);
    if (!err && !*therep) err = list_has(graph, vertex, WEIR_LIST_PUTS, &span, arena, therep);
    return err;
}

static weir_err is_forgotten(const weir_graph *graph, weir_vertex vertex, uint32_t type, int64_t before_us,
                             weir_arena *arena, bool *forgottenp) {
    bool there = true;
    weir_err err = WEIR_OK;
    if (weir_schema_vertex_at(graph->schema, type)->expire_us)
        err = is_there(graph, vertex, (uint16_t)type, before_us, arena, &there);
    *forgottenp = !there;
    return err;
}

/* Whether a put of this time is not enough for the vertex to be there. */
static bool is_old(const weir_graph *graph, uint32_t type, int64_t time_us, int64_t before_us) {
    int64_t expire_us = weir_schema_vertex_at(graph->schema, type)->expire_us;
    return expire_us && time_us <= expired_at(graph, expire_us, before_us);
}

/* --- features: each at its newest value ------------------------------------------------------------------------- */

static weir_err damaged(weir_vertex vertex) {
    return WEIR_ERR(WEIR_ECORRUPT, "a feature row of vertex " WEIR_VERTEX_FORMAT " is damaged; restore a checkpoint",
                    WEIR_VERTEX_WORDS(vertex));
}

/* Rows that follow the newest one may belong to another type only if the schema's names collide: they are left out. */
static weir_err fill(const weir_graph_kinds *kinds, weir_vertex vertex, const weir_entry *entries, uint32_t count,
                     weir_value *values, size_t *presentp) {
    uint16_t type = weir_get_u16(entries[0].row);
    *presentp = 0;
    for (uint32_t i = 0; i < count && (i == 0 || *presentp < kinds->count); i++) {
        const weir_entry *e = &entries[i];
        if (e->row_length < WEIR_STORED_FEATURES_PREFIX) return damaged(vertex);
        if (weir_get_u16(e->row) != type) continue;
        const uint8_t *row = e->row + WEIR_STORED_FEATURES_PREFIX;
        size_t length = e->row_length - WEIR_STORED_FEATURES_PREFIX;
        weir_err err = weir_row_check(kinds->kinds, kinds->count, row, length);
        if (err) return err;
        *presentp = weir_row_fill(kinds->kinds, kinds->count, row, length, values);
    }
    return WEIR_OK;
}

static weir_err row_of_values(const weir_graph_kinds *kinds, const weir_value *values, weir_arena *arena,
                              weir_row_view *viewp) {
    size_t size = weir_row_size(kinds->kinds, values, kinds->count);
    uint8_t *row = weir_arena_alloc_aligned(arena, 1, size);
    if (!row) return WEIR_ERR(WEIR_ELIMIT, "the request's memory is used up; ask for fewer features");
    viewp->row_length = (uint32_t)weir_row_write(kinds->kinds, values, kinds->count, row);
    viewp->row = row;
    return WEIR_OK;
}

static weir_err view_rows(const weir_graph *graph, weir_vertex vertex, const weir_entry *entries, uint32_t count,
                          weir_arena *arena, bool *enoughp, weir_row_view *viewp) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    size_t present;
    if (entries[0].row_length < WEIR_STORED_FEATURES_PREFIX) return damaged(vertex);
    uint16_t type = weir_get_u16(entries[0].row);
    if (type >= weir_schema_vertex_count(graph->schema)) return damaged(vertex);
    const weir_graph_kinds *kinds = &graph->vertex_kinds[type];
    memset(values, 0, kinds->count * sizeof values[0]);
    weir_err err = fill(kinds, vertex, entries, count, values, &present);
    if (err) return err;
    *enoughp = present == kinds->count;
    viewp->vertex_type = type;
    viewp->time_us = entries[0].time_us;
    return row_of_values(kinds, values, arena, viewp);
}

weir_err weir_graph_features(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_arena *arena,
                             weir_row_view *viewp) {
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
                                 .limit = limit};
        err = weir_shard_list(shard_of(graph, vertex), &query, arena, &entries, &count);
        if (err || count == 0) break;
        err = view_rows(graph, vertex, entries, count, arena, &enough, viewp);
        enough = enough || count < limit || limit >= ROWS_MAX;
    }
    bool gone = false;
    if (!err && viewp->row && is_old(graph, viewp->vertex_type, viewp->time_us, before_us))
        err = is_forgotten(graph, vertex, viewp->vertex_type, before_us, arena, &gone);
    if (err || gone) *viewp = (weir_row_view){0};
    return err;
}

weir_err weir_graph_label(weir_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us, weir_arena *arena,
                          weir_row_view *viewp) {
    const weir_entry *entries;
    uint32_t count;
    *viewp = (weir_row_view){0};
    if (label >= weir_schema_label_count(graph->schema)) return WEIR_ERR(WEIR_EINVAL, "no label %u", label);
    weir_list_query query = {.vertex = vertex,
                             .list = WEIR_LIST_LABEL(label),
                             .before_us = before_us,
                             .newer_than_us = INT64_MIN,
                             .limit = 1};
    const weir_schema_label *schema = weir_schema_label_at(graph->schema, label);
    bool gone = false;
    weir_err err = weir_shard_list(shard_of(graph, vertex), &query, arena, &entries, &count);
    if (!err && count && !schema->on_relation)
        err = is_forgotten(graph, vertex, schema->target, before_us, arena, &gone);
    if (!err && count && !gone) *viewp = (weir_row_view){entries[0].row, entries[0].row_length, 0, entries[0].time_us};
    return err;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

weir_err weir_graph_name(weir_graph *graph, weir_vertex vertex, weir_arena *arena, uint16_t *vertex_typep,
                         const char **keyp, uint32_t *key_lengthp) {
    weir_name name = {0};
    bool there;
    *vertex_typep = 0;
    *keyp = NULL;
    *key_lengthp = 0;
    weir_err err = weir_shard_name(shard_of(graph, vertex), vertex, arena, &name, &there);
    if (!err && there) err = is_there(graph, vertex, name.vertex_type, WEIR_BEFORE_ALL, arena, &there);
    if (err || !there) return err;
    *vertex_typep = name.vertex_type;
    *keyp = name.key;
    *key_lengthp = name.key_length;
    return WEIR_OK;
}

/* The oldest visible record of a list. */
static weir_err oldest_of(weir_shard *shard, weir_vertex vertex, weir_list list, weir_arena *arena, bool *knownp,
                          int64_t *time_usp) {
    const weir_entry *rows;
    uint32_t count;
    weir_list_query query = {.vertex = vertex,
                             .list = list,
                             .before_us = WEIR_BEFORE_ALL,
                             .newer_than_us = INT64_MIN,
                             .limit = ROWS_PER_LOOK};
    weir_err err = weir_shard_list(shard, &query, arena, &rows, &count);
    if (!err && count == query.limit) {
        query.limit = WEIR_WINDOW_MAX;
        err = weir_shard_list(shard, &query, arena, &rows, &count);
    }
    if (err || !count) return err;
    if (!*knownp || rows[count - 1].time_us < *time_usp) *time_usp = rows[count - 1].time_us;
    *knownp = true;
    return WEIR_OK;
}

/* As a snapshot dates a vertex: by its name's put where no deletion has overtaken it, by its rows, and by puts that
 * left nothing else; none that has expired. */
weir_err weir_graph_first_put(weir_graph *graph, weir_vertex vertex, weir_arena *arena, bool *knownp,
                              int64_t *time_usp) {
    weir_shard *shard = shard_of(graph, vertex);
    weir_name name = {0};
    weir_err err = weir_shard_name(shard, vertex, arena, &name, knownp);
    if (err || !*knownp) return err;
    *knownp = name.time_us > weir_deleted_time(shard->deleted, vertex, WEIR_BEFORE_ALL);
    *time_usp = name.time_us;
    bool gone = false;
    err = oldest_of(shard, vertex, WEIR_LIST_FEATURES, arena, knownp, time_usp);
    if (!err) err = oldest_of(shard, vertex, WEIR_LIST_PUTS, arena, knownp, time_usp);
    if (!err) err = is_forgotten(graph, vertex, name.vertex_type, WEIR_BEFORE_ALL, arena, &gone);
    if (gone) *knownp = false;
    return err;
}

/* The table has not heard of it: the store itself is asked. */
static weir_err claim_unknown(weir_graph *graph, weir_vertex vertex, bool *newp) {
    weir_arena *arena;
    weir_name name = {0};
    bool found;
    weir_err err = weir_arena_open(4 * WEIR_KEY_MAX, &arena);
    if (err) return err;
    err = weir_shard_name(shard_of(graph, vertex), vertex, arena, &name, &found);
    if (!err) *newp = weir_names_take(graph->names, vertex) && !found; /* another may have been faster */
    weir_arena_close(arena);
    return err;
}

void weir_graph_name_ahead(weir_graph *graph, weir_vertex vertex) {
    weir_names_ahead(graph->names, vertex);
}

weir_err weir_graph_name_claim(weir_graph *graph, weir_vertex vertex, bool *newp) {
    *newp = false;
    weir_names_answer known = weir_names_ask(graph->names, vertex);
    if (known == WEIR_NAMES_UNKNOWN) return claim_unknown(graph, vertex, newp);
    *newp = known == WEIR_NAMES_NEW;
    return WEIR_OK;
}
