/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_test.c - a snapshot of a random graph against the naive graph before the same time; and the sampler over it
 * against the sampler over the store.
 *
 * Vertices and edges are deleted before and after what they delete, both expire, labels name edges that are gone, and
 * the time as of which it is taken lies anywhere in the history or behind it. What a target of an earlier time takes
 * of a vertex is held against the store's own answer before that time.
 */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base/buf.h>
#include <weir/base/file.h>
#include <weir/base/rng.h>
#include <weir/store/sample.h>
#include <weir/store/snapshot.h>

#include "naive_graph.h"

#define ROUNDS    3u
#define EVENTS    1500u
#define SHARDS    3u
#define LIST_MAX  8192u
#define TYPES     2u
#define RELATIONS 2u
#define WINDOW    8u

static const char schema_text[] =
    "version: 1\n"
    "name: random\n"
    "vertices:\n"
    "  a: {%sfeatures: {x: {kind: number}, c: {kind: category, buckets: 8}, t: {kind: time}}}\n"
    "  b: {}\n"
    "relations:\n"
    "  lasting: {from: a, to: b, features: {w: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "  fading: {from: a, to: a, expire: 500us, features: {w: {kind: number}}}\n"
    "labels:\n"
    "  l: {vertex: a, values: [no, yes]}\n"
    "  e: {relation: lasting, values: [no, yes]}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: fading, from: a, to: b, features: [w]}]}\n";

typedef struct world {
    weir_rng rng;
    uint64_t vertices; /* of each type */
    uint64_t deletions;
    weir_schema *schema;
    weir_graph *graph;
    naive_graph *naive;
    weir_snapshot *snapshot;
    uint32_t source;
    int64_t now_us, as_of_us;
    int64_t history_us;
    int64_t moments_us[WEIR_DELETE_EDGE + 1]; /* of each kind of mutation, the time of one */
    naive_edge *wanted;                       /* LIST_MAX */
} world;

static uint64_t below(world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

static weir_vertex vertex_of(uint32_t type, uint64_t n) {
    return (1 + type + TYPES * n) * 0x9e3779b97f4a7c15ull;
}

static weir_vertex some_vertex(world *w, uint32_t type) {
    return vertex_of(type, below(w, 3) == 0 ? below(w, 3) : below(w, w->vertices));
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static weir_value some_number(world *w) {
    return (weir_value){.present = below(w, 4) > 0, .number = (double)below(w, 1000) / 8};
}

static weir_value some_text(world *w) {
    static const char *const texts[] = {"", "a", "bb", "größer", "bba"};
    const char *text = texts[below(w, 5)];
    return (weir_value){.present = below(w, 4) > 0, .text = text, .text_length = (uint8_t)strlen(text)};
}

static uint32_t vertex_row(world *w, uint8_t *row) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME};
    weir_value values[] = {some_number(w), some_text(w), {.present = below(w, 2), .time_us = (int64_t)below(w, 99)}};
    return (uint32_t)weir_row_write(kinds, values, 3, row);
}

static uint32_t edge_row(world *w, uint16_t relation, uint8_t *row) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY};
    weir_value values[] = {some_number(w), some_text(w)};
    return below(w, 5) == 0 ? 0 : (uint32_t)weir_row_write(kinds, values, relation == 0 ? 2 : 1, row);
}

static uint32_t label_row(world *w, uint8_t *row) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    bool yes = below(w, 2);
    weir_value value = {.present = true, .text = yes ? "yes" : "no", .text_length = yes ? 3 : 2};
    return (uint32_t)weir_row_write(&kind, &value, 1, row);
}

static size_t some_edge(world *w, weir_mutation m[2], uint8_t *row) {
    bool deletion = below(w, 100) < w->deletions;
    m[0].type = (uint16_t)below(w, RELATIONS);
    m[0].kind = deletion ? WEIR_DELETE_EDGE : WEIR_PUT_EDGE;
    m[0].neighbor = some_vertex(w, m[0].type == 0 ? 1 : 0);
    if (deletion && below(w, 2)) m[0].event = 0;
    if (!deletion) m[0].row = row, m[0].row_length = edge_row(w, m[0].type, row);
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = m[0].neighbor;
    m[1].neighbor = m[0].vertex;
    return 2;
}

static size_t some_event(world *w, weir_mutation m[2], uint8_t *row, char key[24]) {
    uint64_t dice = below(w, 100);
    int64_t late = below(w, 4) == 0 ? (int64_t)below(w, 2000) : (int64_t)below(w, 20);
    m[0] = (weir_mutation){.vertex = some_vertex(w, 0), .time_us = w->now_us - late, .event = 1 + below(w, 400)};
    if (dice < 60) return some_edge(w, m, row);
    if (dice < 80) {
        m[0].type = (uint16_t)below(w, TYPES);
        m[0].vertex = some_vertex(w, m[0].type);
        m[0].kind = WEIR_PUT_VERTEX;
        m[0].key_length = (uint16_t)snprintf(key, 24, "%llx", (unsigned long long)m[0].vertex);
        m[0].key = key;
        if (m[0].type == 0 && below(w, 4)) m[0].row = row, m[0].row_length = vertex_row(w, row);
    } else if (below(w, 100) >= w->deletions) {
        m[0].kind = WEIR_PUT_LABEL;
        m[0].type = (uint16_t)below(w, 2);
        m[0].row = row;
        m[0].row_length = label_row(w, row);
    } else {
        m[0].kind = WEIR_DELETE_VERTEX;
        m[0].vertex = some_vertex(w, (uint32_t)below(w, TYPES));
    }
    return 1;
}

static void submit_event(world *w, uint64_t offset) {
    static uint8_t row[WEIR_ROW_BYTES_MAX];
    weir_buf batches[SHARDS] = {{0}};
    uint32_t counts[SHARDS] = {0};
    weir_batch_span span = {w->source, 0, offset, offset + 1};
    weir_mutation m[2];
    char key[24];
    w->now_us += (int64_t)below(w, 5);
    size_t count = some_event(w, m, row, key);
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_batch_begin(&batches[s]);
    for (size_t i = 0; i < count; i++) {
        m[i].offset = offset;
        if (below(w, 20) == 0) w->moments_us[m[i].kind] = m[i].time_us;
        naive_graph_apply(w->naive, &m[i]);
        for (uint32_t s = 0; s < SHARDS; s++) {
            if (m[i].kind != WEIR_DELETE_VERTEX && weir_shard_of(m[i].vertex, SHARDS) != s) continue;
            weir_batch_add(&batches[s], &m[i], offset);
            counts[s]++;
        }
    }
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_batch_end(&batches[s], &span, counts[s]);
    assert_ok(weir_graph_submit(w->graph, batches));
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_buf_free(&batches[s]);
}

/* --- comparing --------------------------------------------------------------------------------------------------- */

static size_t wanted_edges(world *w, weir_vertex vertex, uint32_t relation, weir_direction direction) {
    int64_t expire_us = weir_schema_relation_at(w->schema, relation)->expire_us;
    if (expire_us) expire_us += w->history_us;
    return naive_graph_neighbors(w->naive, vertex, (uint16_t)relation, direction, w->as_of_us, expire_us, 0, LIST_MAX,
                                 w->wanted);
}

/* Before this time, for targets that are so much older. */
static bool is_forgotten(const world *w, uint32_t type, weir_vertex vertex, int64_t before_us, int64_t history_us) {
    int64_t expire_us = weir_schema_vertex_at(w->schema, type)->expire_us;
    return expire_us && naive_graph_is_forgotten(w->naive, vertex, before_us, expire_us + history_us);
}

static void same_value(const weir_snapshot_column *c, uint64_t at, const weir_value *v) {
    switch (c->kind) {
    case WEIR_VALUE_NUMBER:
        assert_true(v->present ? c->numbers[at] == (float)v->number : c->numbers[at] != c->numbers[at]);
        break;
    case WEIR_VALUE_TIME:
        assert_true(c->times[at] == (v->present ? v->time_us : WEIR_SNAPSHOT_NEVER));
        break;
    case WEIR_VALUE_CATEGORY:
        if (!v->present) {
            assert_int_equal(c->codes[at], -1);
            break;
        }
        assert_in_range(c->codes[at], 0, c->texts - 1);
        int64_t begin = c->text_offsets[c->codes[at]], end = c->text_offsets[c->codes[at] + 1];
        assert_int_equal(end - begin, v->text_length);
        if (v->text_length) assert_memory_equal(c->text_bytes + begin, v->text, v->text_length);
        break;
    }
}

static void same_row(world *w, uint32_t relation, const weir_snapshot_edges *e, uint64_t at, const naive_edge *wanted) {
    size_t count;
    const weir_value_kind *kinds = weir_graph_relation_kinds(w->graph, relation, &count);
    weir_value values[WEIR_ROW_FEATURES_MAX] = {{0}};
    if (wanted->row_length) weir_row_read(kinds, count, wanted->row, wanted->row_length, values);
    assert_int_equal(e->column_count, count);
    for (uint32_t i = 0; i < count; i++)
        same_value(&e->columns[i], at, &values[i]);
}

/* What the snapshot has of a vertex in one list; returns how many there ought to be. */
static size_t same_list(world *w, weir_vertex vertex, uint64_t index, bool found, uint32_t relation,
                        weir_direction direction) {
    const weir_schema_relation *r = weir_schema_relation_at(w->schema, relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(w->snapshot, relation, direction);
    const weir_vertex_pair *others =
        weir_snapshot_vertices_of(w->snapshot, direction == WEIR_OUT ? r->to : r->from)->ids;
    size_t count = wanted_edges(w, vertex, relation, direction);
    if (!found) return count;
    int64_t begin = e->indptr[index];
    assert_int_equal(e->indptr[index + 1] - begin, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)begin + i;
        assert_true(weir_vertex_of(others[e->neighbors[at]]) == w->wanted[i].neighbor);
        assert_true(e->times[at] == w->wanted[i].time_us && e->events[at] == w->wanted[i].event);
        same_row(w, relation, e, at, &w->wanted[i]);
    }
    return count;
}

static size_t same_lists(world *w, uint32_t type, weir_vertex vertex, uint64_t index, bool found) {
    size_t count = 0;
    for (uint32_t relation = 0; relation < RELATIONS; relation++) {
        const weir_schema_relation *r = weir_schema_relation_at(w->schema, relation);
        if (r->from == type) count += same_list(w, vertex, index, found, relation, WEIR_OUT);
        if (r->to == type) count += same_list(w, vertex, index, found, relation, WEIR_IN);
    }
    return count;
}

static size_t same_features(world *w, uint32_t type, weir_vertex vertex, uint64_t index, bool found) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(w->graph, type, &kind_count);
    weir_value values[WEIR_ROW_FEATURES_MAX] = {{0}};
    size_t rows = naive_graph_rows(w->naive, vertex, WEIR_PUT_VERTEX, 0, w->as_of_us, LIST_MAX, w->wanted);
    if (is_forgotten(w, type, vertex, w->as_of_us, w->history_us)) rows = 0;
    for (size_t i = 0; i < rows; i++)
        weir_row_fill(kinds, kind_count, w->wanted[i].row, w->wanted[i].row_length, values);
    assert_int_equal(v->column_count, kind_count);
    for (uint32_t i = 0; found && i < v->column_count; i++)
        same_value(&v->columns[i], index, &values[i]);
    return rows;
}

static void same_key(world *w, uint32_t type, weir_vertex vertex, uint64_t index, bool found) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    bool behind_all = w->as_of_us > w->now_us, forgotten = is_forgotten(w, type, vertex, w->as_of_us, w->history_us);
    char key[24];
    size_t length;
    const char *known = naive_graph_name(w->naive, vertex, &length);
    if (forgotten) known = NULL;
    if (behind_all && known) assert_true(found);
    if (!found) return;
    if (forgotten) assert_true(v->first_us[index] == WEIR_SNAPSHOT_NEVER);
    int64_t begin = v->key_offsets[index], end = v->key_offsets[index + 1];
    if (behind_all || forgotten) assert_true((end > begin) == (known != NULL));
    if (end == begin) return;
    assert_int_equal(end - begin, snprintf(key, sizeof key, "%llx", (unsigned long long)vertex));
    assert_memory_equal(v->key_bytes + begin, key, (size_t)(end - begin));
}

/* --- what a target of an earlier time takes ---------------------------------------------------------------------- */

static bool same_text(const weir_value *a, const weir_value *b) {
    return a->text_length == b->text_length && (!a->text_length || memcmp(a->text, b->text, a->text_length) == 0);
}

/* Since when one feature has had the value of its newest row. */
static int64_t since_of(world *w, uint32_t type, size_t rows, size_t feature) {
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(w->graph, type, &kind_count);
    weir_value newest = {0};
    int64_t since_us = WEIR_SNAPSHOT_NEVER;
    for (size_t i = 0; i < rows; i++) {
        weir_value row[WEIR_ROW_FEATURES_MAX] = {{0}};
        weir_row_read(kinds, kind_count, w->wanted[i].row, w->wanted[i].row_length, row);
        const weir_value *value = &row[feature];
        if (!value->present) continue;
        if (since_us == WEIR_SNAPSHOT_NEVER) newest = *value;
        if (value->number != newest.number || value->time_us != newest.time_us || !same_text(value, &newest)) break;
        since_us = w->wanted[i].time_us;
    }
    return since_us;
}

static int64_t rows_since(world *w, uint32_t type, weir_vertex vertex) {
    size_t kind_count;
    int64_t since_us = WEIR_SNAPSHOT_NEVER;
    weir_graph_vertex_kinds(w->graph, type, &kind_count);
    size_t rows = naive_graph_rows(w->naive, vertex, WEIR_PUT_VERTEX, 0, w->as_of_us, LIST_MAX, w->wanted);
    for (size_t feature = 0; feature < kind_count; feature++) {
        int64_t of_feature = since_of(w, type, rows, feature);
        if (of_feature > since_us) since_us = of_feature;
    }
    return since_us;
}

/* What counts for a target before this time is what the store says then; of what has ended, the store says nothing. */
static void same_before(world *w, uint32_t type, weir_vertex vertex, uint64_t index, int64_t before_us) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    bool ended = v->until_us && before_us >= v->until_us[index];
    weir_value values[WEIR_ROW_FEATURES_MAX] = {{0}};
    weir_row_view view;
    weir_arena *arena;
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(w->graph, type, &kind_count);
    if (v->since_us[index] == WEIR_SNAPSHOT_NEVER || v->since_us[index] >= before_us) return;
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_graph_features(w->graph, vertex, before_us, arena, &view));
    assert_int_equal(view.row != NULL, !ended);
    if (view.row) weir_row_read(kinds, kind_count, view.row, view.row_length, values);
    for (uint32_t i = 0; view.row && i < v->column_count; i++)
        same_value(&v->columns[i], index, &values[i]);
    weir_arena_close(arena);
}

/* From when until when the features count: no sooner than the rows allow, or than a time when it was forgotten; and as
 * long as it is not. */
static void same_span(world *w, uint32_t type, weir_vertex vertex, uint64_t index) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    bool forgotten = is_forgotten(w, type, vertex, w->as_of_us, w->history_us);
    int64_t since_us = v->since_us[index], wanted_us = forgotten ? WEIR_SNAPSHOT_NEVER : rows_since(w, type, vertex);
    if (since_us != wanted_us) {
        assert_true(wanted_us != WEIR_SNAPSHOT_NEVER && since_us > wanted_us);
        assert_true(is_forgotten(w, type, vertex, since_us, 0));
    }
    assert_int_equal(v->until_us != NULL, weir_schema_vertex_at(w->schema, type)->expire_us != 0);
    if (v->until_us) {
        int64_t until_us = v->until_us[index];
        assert_int_equal(until_us == WEIR_SNAPSHOT_NEVER, forgotten);
        assert_int_equal(until_us <= w->as_of_us, is_forgotten(w, type, vertex, w->as_of_us, 0));
        if (!forgotten && until_us <= w->as_of_us) {
            assert_true(is_forgotten(w, type, vertex, until_us, 0));
            assert_false(is_forgotten(w, type, vertex, until_us - 1, 0));
        }
    }
    for (int i = 0; i < 4; i++)
        same_before(w, type, vertex, index, w->as_of_us - (int64_t)below(w, 1000));
}

static void same_vertex(world *w, uint32_t type, weir_vertex vertex) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    uint64_t index = 0;
    bool found = weir_snapshot_find(w->snapshot, type, vertex, &index);
    if (found) assert_true(weir_vertex_of(v->ids[index]) == vertex);
    size_t seen = same_lists(w, type, vertex, index, found) + same_features(w, type, vertex, index, found);
    same_key(w, type, vertex, index, found);
    if (seen) assert_true(found);
    /* An edge that is not seen any more is a put of its ends, but its time is nobody's first put. */
    bool keyed = found && v->key_offsets[index + 1] > v->key_offsets[index];
    if (found && !seen) assert_true(keyed || v->first_us[index] != WEIR_SNAPSHOT_NEVER);
    if (found) same_span(w, type, vertex, index);
}

/* --- labels ------------------------------------------------------------------------------------------------------ */

static int32_t value_of(const naive_edge *row) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    weir_value value = {0};
    weir_row_read(&kind, 1, row->row, row->row_length, &value);
    return value.text_length == 3;
}

static bool has_event(world *w, weir_vertex vertex, uint64_t event) {
    naive_edge *kept = w->wanted;
    bool found = false;
    w->wanted = calloc(LIST_MAX, sizeof *w->wanted);
    size_t count = wanted_edges(w, vertex, 0, WEIR_OUT);
    for (size_t i = 0; i < count; i++)
        found = found || w->wanted[i].event == event;
    free(w->wanted);
    w->wanted = kept;
    return found;
}

/* Whether entry `at` is of this vertex, or of an edge that begins at it. */
static bool label_is_of(const world *w, uint32_t label, uint64_t at, uint64_t index) {
    const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT);
    int64_t target = weir_snapshot_labels_of(w->snapshot, label)->targets[at];
    if (label == 0) return (uint64_t)target == index;
    return target >= out->indptr[index] && target < out->indptr[index + 1];
}

static uint64_t same_labels_of(world *w, uint32_t label, weir_vertex vertex) {
    const weir_snapshot_labels *l = weir_snapshot_labels_of(w->snapshot, label);
    const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT);
    uint64_t index = 0, at = 0, seen = 0;
    if (!weir_snapshot_find(w->snapshot, 0, vertex, &index)) return 0;
    if (label == 0 && is_forgotten(w, 0, vertex, w->as_of_us, w->history_us)) return 0;
    size_t rows = naive_graph_rows(w->naive, vertex, WEIR_PUT_LABEL, (uint16_t)label, w->as_of_us, LIST_MAX, w->wanted);
    for (size_t i = 0; i < rows; i++) {
        const naive_edge *row = &w->wanted[i];
        if (label == 1 && !has_event(w, vertex, row->event)) continue;
        while (at < l->count && !label_is_of(w, label, at, index))
            at++;
        assert_true(at < l->count);
        assert_true(l->times[at] == row->time_us && l->values[at] == value_of(row));
        if (label == 1) assert_true(out->events[l->targets[at]] == row->event);
        at++;
        seen++;
    }
    return seen;
}

static void same_labels(world *w) {
    for (uint32_t label = 0; label < 2; label++) {
        uint64_t seen = 0;
        for (uint64_t n = 0; n < w->vertices; n++)
            seen += same_labels_of(w, label, vertex_of(0, n));
        assert_int_equal(seen, weir_snapshot_labels_of(w->snapshot, label)->count);
    }
}

/* --- the sampler over both --------------------------------------------------------------------------------------- */

typedef struct side {
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
} side;

static void side_open(side *s, const weir_sample_opts *opts) {
    assert_ok(weir_sampler_open(opts, s->source, &s->sampler));
    assert_ok(weir_block_open(s->sampler, &s->block));
}

static void side_close(side *s) {
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->source);
}

static void same_step(world *w, const weir_sample_step *step, const weir_block_view *live, const weir_block_view *flat,
                      uint32_t at) {
    const weir_block_edges *l = &live->edges[at], *f = &flat->edges[at];
    const weir_snapshot_edges *e = weir_snapshot_edges_of(w->snapshot, step->relation, step->direction);
    assert_int_equal(l->count, f->count);
    assert_int_equal(l->parent_begin, f->parent_begin);
    assert_int_equal(l->parent_end, f->parent_end);
    for (uint32_t i = 0; i < l->count; i++) {
        assert_int_equal(l->parents[i], f->parents[i]);
        assert_int_equal(l->children[i], f->children[i]);
        assert_true(l->times[i] == f->times[i]);
        assert_true(l->refs[i] == e->events[f->refs[i]]);
    }
}

static void same_blocks(world *w, const weir_sample_step *steps, uint32_t step_count, const weir_block_view *live,
                        const weir_block_view *flat) {
    assert_int_equal(live->nodes, flat->nodes);
    for (uint32_t hop = 0; hop <= live->hops; hop++) {
        for (uint32_t type = 0; type < TYPES; type++) {
            weir_block_range range = live->ranges[hop * TYPES + type];
            assert_memory_equal(&range, &flat->ranges[hop * TYPES + type], sizeof range);
            for (uint32_t node = range.begin; node < range.end; node++)
                assert_true(live->ids[node] ==
                            weir_vertex_of(weir_snapshot_vertices_of(w->snapshot, type)->ids[flat->vertices[node]]));
        }
    }
    for (uint32_t i = 0; i < step_count; i++)
        same_step(w, &steps[i], live, flat, i);
}

static uint32_t targets_of(const world *w, weir_target *live, weir_target *flat, uint32_t max) {
    uint32_t count = 0;
    for (uint16_t type = 0; type < TYPES; type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
        for (uint64_t i = 0; i < v->count && count < max; i++, count++) {
            live[count] = (weir_target){.vertex = weir_vertex_of(v->ids[i]), .before_us = w->as_of_us, .type = type};
            flat[count] = (weir_target){.vertex = i, .before_us = w->as_of_us, .type = type};
        }
    }
    return count;
}

static void same_samples(world *w) {
    static const weir_sample_step steps[] = {
        {1, 3, 0, WEIR_OUT, WEIR_SAMPLE_UNIFORM, WEIR_SCHEMA_NONE, 0},
        {1, 3, 1, WEIR_IN, WEIR_SAMPLE_WEIGHTED, 0, 0},
        {2, 2, 0, WEIR_IN, WEIR_SAMPLE_WEIGHTED, WEIR_SCHEMA_NONE, 100},
        {2, 2, 1, WEIR_OUT, WEIR_SAMPLE_RECENT, WEIR_SCHEMA_NONE, 0},
    };
    weir_target live_targets[64], flat_targets[64];
    uint32_t count = targets_of(w, live_targets, flat_targets, 64);
    const weir_sample_opts opts = {
        .steps = steps, .step_count = 4, .window = WINDOW, .targets_max = 64, .seed = below(w, 1u << 20)};
    side live = {.source = NULL}, flat = {.source = NULL};
    if (count == 0) return;
    assert_ok(weir_sample_over_graph(w->graph, 16u << 20, &live.source));
    assert_ok(weir_sample_over_snapshot(w->snapshot, &flat.source));
    side_open(&live, &opts);
    side_open(&flat, &opts);
    assert_ok(weir_sample(live.sampler, live_targets, count, live.block));
    assert_ok(weir_sample(flat.sampler, flat_targets, count, flat.block));
    same_blocks(w, steps, 4, weir_block_look(live.block), weir_block_look(flat.block));
    side_close(&live);
    side_close(&flat);
}

/* --- one round --------------------------------------------------------------------------------------------------- */

/* Vertices expire in two stores of three. */
static void schema_read(world *w) {
    char text[2 * sizeof schema_text];
    int length = snprintf(text, sizeof text, schema_text, below(w, 3) ? "expire: 300us, " : "");
    assert_ok(weir_schema_parse("random", text, (size_t)length, &w->schema));
}

static void store_open(world *w) {
    const weir_graph_opts opts = {.shards = SHARDS, .memory_bytes = 4u << 20, .window = 16, .create = true};
    assert_ok(weir_graph_open(weir_test_path("store"), w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "log:s", 1, &w->source));
}

static void take_snapshot(world *w, bool load) {
    const weir_snapshot_build_opts build = {
        .out = weir_test_path("snapshot"), .as_of_us = w->as_of_us, .history_us = w->history_us, .seed = 7};
    const weir_snapshot_opts opts = {.load = load, .verify = true};
    weir_snapshot_stats stats;
    assert_ok(weir_graph_drain(w->graph));
    assert_ok(weir_graph_seal(w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_int_equal(stats.half_edges, 0);
    assert_ok(weir_snapshot_open(build.out, &opts, &w->snapshot));
    assert_true(weir_snapshot_as_of_us(w->snapshot) == w->as_of_us);
    assert_true(weir_schema_hash(weir_snapshot_schema(w->snapshot)) == weir_schema_hash(w->schema));
}

/* Behind all, anywhere, or exactly when something was put or deleted. */
static int64_t some_as_of(world *w) {
    switch (below(w, 4)) {
    case 0:
        return w->now_us + 1;
    case 1:
        return w->now_us - (int64_t)below(w, 3000);
    default:
        return w->moments_us[WEIR_PUT_VERTEX + below(w, WEIR_DELETE_EDGE)];
    }
}

static void run_round(world *w) {
    w->now_us = 1000000;
    for (size_t i = 0; i <= WEIR_DELETE_EDGE; i++)
        w->moments_us[i] = w->now_us + 100;
    w->naive = naive_graph_open();
    schema_read(w);
    store_open(w);
    for (uint64_t i = 0; i < EVENTS; i++) {
        submit_event(w, i);
        if (below(w, 300) == 0) assert_ok(weir_graph_seal(w->graph));
    }
    w->as_of_us = some_as_of(w);
    w->history_us = below(w, 2) ? (int64_t)below(w, 1500) : 0;
    take_snapshot(w, below(w, 2));
    assert_ok(weir_snapshot_check(w->snapshot));
    for (uint32_t type = 0; type < TYPES; type++) {
        for (uint64_t n = 0; n < w->vertices; n++)
            same_vertex(w, type, vertex_of(type, n));
        assert_in_range(weir_snapshot_vertices_of(w->snapshot, type)->count, 0, w->vertices);
    }
    same_labels(w);
    same_samples(w);
    weir_snapshot_close(w->snapshot);
    assert_ok(weir_graph_close(w->graph));
    assert_ok(weir_folder_remove(weir_test_path("store")));
    assert_ok(weir_folder_remove(weir_test_path("snapshot")));
    naive_graph_close(w->naive);
    weir_schema_free(w->schema);
}

static void run_rounds(uint64_t vertices, uint64_t deletions) {
    world w = {.vertices = vertices, .deletions = deletions};
    w.rng = weir_rng_stream(weir_test_seed(), vertices, (uint32_t)deletions);
    w.wanted = calloc(LIST_MAX, sizeof *w.wanted);
    for (uint64_t rounds = weir_test_rounds(ROUNDS); rounds > 0; rounds--)
        run_round(&w);
    free(w.wanted);
}

static void z1_z2_z3_few_vertices(void **state) {
    (void)state;
    run_rounds(8, 3);
}

static void z1_z2_z3_many_vertices(void **state) {
    (void)state;
    run_rounds(200, 5);
}

static void z1_z2_z3_mostly_deleted(void **state) {
    (void)state;
    run_rounds(20, 40);
}

static void z1_z2_z3_long_lists(void **state) {
    (void)state;
    run_rounds(4, 10);
}

static void z1_z2_z3_some_deleted(void **state) {
    (void)state;
    run_rounds(60, 20);
}

WEIR_TESTS(WEIR_CASE(z1_z2_z3_few_vertices), WEIR_CASE(z1_z2_z3_many_vertices), WEIR_CASE(z1_z2_z3_mostly_deleted),
           WEIR_CASE(z1_z2_z3_long_lists), WEIR_CASE(z1_z2_z3_some_deleted))
