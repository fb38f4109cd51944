/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_test.c - a snapshot of a random graph against the store and against the naive graph, before any time that it
 * tells of; and the sampler and the aggregates over it against those over the store.
 *
 * Vertices and edges are deleted before and after what they delete, and put again; both expire, labels name edges that
 * are gone, and the time as of which it is taken lies anywhere in the history or behind it. Each relation and each
 * vertex type may have a history of its own.
 */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>
#include <weir/store/snapshot/snapshot.h>

#include "naive_graph.h"
#include "submit.h"

#define ROUNDS    3u
#define EVENTS    1500u
#define SHARDS    3u
#define LIST_MAX  8192u
#define TYPES     2u
#define RELATIONS 2u
#define WINDOW    8u
#define MOMENTS   6u /* at which a vertex is asked for */

static const char schema_text[] =
    "version: 1\n"
    "name: random\n"
    "vertices:\n"
    "  a: {%s%sfeatures: {x: {kind: number}, c: {kind: category, buckets: 8}, t: {kind: time}}}\n"
    "  b: {%sfeatures: {}}\n"
    "relations:\n"
    "  lasting: {from: a, to: b, %sfeatures: {w: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "  fading: {from: a, to: a, expire: 500us, %sfeatures: {w: {kind: number}}}\n"
    "aggregates:\n"
    "  bad: {vertex: b, relation: lasting, function: count, label: l, is: yes, window: 3ms}\n"
    "  judged: {vertex: b, relation: lasting, function: since_last, label: l, is: [no, yes], window: 700us}\n"
    "  good: {vertex: a, relation: fading, direction: out, function: count, label: l, is: no, window: 500us}\n"
    "  met: {vertex: a, relation: fading, direction: in, function: distinct, label: l, is: [no, yes], window: 400us}\n"
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
    int64_t history_us, from_us;
    int64_t reach_us;    /* from when the schema's histories reach back           */
    int64_t all_from_us; /* from when on the snapshot tells all, as it says itself */
    bool default_as_of;
    bool without_deleted;
    weir_arena *arena;
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

static void next_event(world *w, uint64_t offset) {
    static uint8_t row[WEIR_ROW_BYTES_MAX];
    weir_mutation m[2];
    char key[24];
    w->now_us += (int64_t)below(w, 5);
    size_t count = some_event(w, m, row, key);
    for (size_t i = 0; i < count; i++) {
        m[i].offset = offset;
        if (below(w, 20) == 0) w->moments_us[m[i].kind] = m[i].time_us;
        naive_graph_apply(w->naive, &m[i]);
    }
    assert_ok(submit_event(w->graph, w->source, offset, m, count));
}

/* --- comparing --------------------------------------------------------------------------------------------------- */

static int64_t expiry_of(const world *w, uint32_t type) {
    return weir_schema_vertex_at(w->schema, type)->expire_us;
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

/* Whether a snapshot without deleted things has nothing of this time: a deletion before as_of hides it. */
static bool is_erased(const world *w, weir_vertex vertex, int64_t time_us) {
    return w->without_deleted && time_us <= naive_graph_deleted(w->naive, vertex, w->as_of_us);
}

/* Before a time from which on it tells all, the store says the same as the snapshot. */
static void same_as_stored(world *w, weir_vertex vertex, uint32_t relation, weir_direction direction, int64_t before_us,
                           size_t count) {
    const weir_edge *stored;
    uint32_t stored_count;
    assert_ok(weir_graph_neighbors(w->graph, vertex, (uint16_t)relation, direction, before_us, (uint32_t)count + 1,
                                   w->arena, &stored, &stored_count));
    assert_int_equal(stored_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(stored[i].neighbor == w->wanted[i].neighbor && stored[i].event == w->wanted[i].event);
        assert_true(stored[i].time_us == w->wanted[i].time_us);
    }
}

/* What is hidden as of as_of has no place in a snapshot without deleted things. */
static size_t leave_out_erased(world *w, weir_vertex vertex, uint32_t relation, weir_direction direction,
                               size_t count) {
    naive_edge *kept = calloc(LIST_MAX, sizeof *kept);
    size_t left = 0, seen = naive_graph_neighbors(w->naive, vertex, (uint16_t)relation, direction, w->as_of_us, 0, 0,
                                                  LIST_MAX, kept);
    for (size_t i = 0, at = 0; i < count; i++) {
        const naive_edge *e = &w->wanted[i];
        while (at < seen &&
               (kept[at].time_us != e->time_us || kept[at].neighbor != e->neighbor || kept[at].event != e->event))
            at++;
        if (at == seen)
            at = 0; /* it is not there: the next is looked for from the begin on */
        else
            w->wanted[left++] = *e;
    }
    free(kept);
    return left;
}

/* Of how long ago what has this history is told, and a snapshot was asked to tell. */
static int64_t told_from(const world *w, int64_t history_us) {
    int64_t told_us = history_us && w->reach_us != INT64_MIN ? w->reach_us - history_us : INT64_MIN;
    return told_us > w->from_us ? told_us : w->from_us;
}

/* Whether there is a time that is told of and sees the edge. */
static bool is_needed(const world *w, const weir_schema_relation *r, const weir_snapshot_edges *e, int64_t at) {
    int64_t from_us = told_from(w, r->history_us);
    if (from_us == INT64_MIN) return true;
    if (e->until_us && e->until_us[at] <= from_us) return false;
    return !r->expire_us || e->times[at] > from_us - r->expire_us;
}

/* What the snapshot has of a vertex in one list before a time. */
static void same_list(world *w, weir_vertex vertex, uint64_t index, bool found, uint32_t relation,
                      weir_direction direction, int64_t before_us) {
    const weir_schema_relation *r = weir_schema_relation_at(w->schema, relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(w->snapshot, relation, direction);
    const weir_vertex_pair *others =
        weir_snapshot_vertices_of(w->snapshot, direction == WEIR_OUT ? r->to : r->from)->ids;
    size_t seen = 0, count = naive_graph_neighbors(w->naive, vertex, (uint16_t)relation, direction, before_us,
                                                   r->expire_us, 0, LIST_MAX, w->wanted);
    same_as_stored(w, vertex, relation, direction, before_us, count);
    if (w->without_deleted) count = leave_out_erased(w, vertex, relation, direction, count);
    if (!found) {
        assert_int_equal(count, 0);
        return;
    }
    for (int64_t at = e->indptr[index]; at < e->indptr[index + 1]; at++) {
        assert_true(e->times[at] < w->as_of_us);
        assert_true(is_needed(w, r, e, at));
        if (e->times[at] >= before_us || (e->until_us && e->until_us[at] <= before_us)) continue;
        if (r->expire_us && e->times[at] <= before_us - r->expire_us) continue;
        assert_true(seen < count);
        const naive_edge *wanted = &w->wanted[seen++];
        assert_true(weir_vertex_of(others[e->neighbors[at]]) == wanted->neighbor);
        assert_true(e->times[at] == wanted->time_us && e->events[at] == wanted->event);
        same_row(w, relation, e, (uint64_t)at, wanted);
    }
    assert_int_equal(seen, count);
}

static void same_lists(world *w, uint32_t type, weir_vertex vertex, uint64_t index, bool found, int64_t before_us) {
    for (uint32_t relation = 0; relation < RELATIONS; relation++) {
        const weir_schema_relation *r = weir_schema_relation_at(w->schema, relation);
        if (r->from == type) same_list(w, vertex, index, found, relation, WEIR_OUT, before_us);
        if (r->to == type) same_list(w, vertex, index, found, relation, WEIR_IN, before_us);
    }
}

/* Whether it is there, and since when: in the snapshot, in the store, and by all that was ever put. */
static bool same_life(world *w, uint32_t type, weir_vertex vertex, uint64_t index, bool found, int64_t before_us,
                      uint64_t *lifep) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    int64_t wanted_us = 0, first_us;
    size_t length;
    bool known, there = naive_graph_life(w->naive, vertex, before_us, expiry_of(w, type), &wanted_us);
    assert_ok(weir_graph_first_put(w->graph, vertex, before_us, w->arena, &known, &first_us));
    if (known) assert_true(there && first_us == wanted_us);
    if (naive_graph_name(w->naive, vertex, &length)) assert_int_equal(known, there);
    if (there && is_erased(w, vertex, wanted_us)) there = false;
    bool told = found && weir_snapshot_span(&v->lives, index, before_us, lifep);
    if (told) assert_true(there && v->lives.times[*lifep] == wanted_us);
    if (known && there) assert_true(told);
    if (told && known) assert_true(v->key_offsets[index] < v->key_offsets[index + 1]);
    return told;
}

static void same_features(world *w, uint32_t type, weir_vertex vertex, uint64_t index, bool found, int64_t before_us) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(w->graph, type, &kind_count);
    weir_value wanted[WEIR_ROW_FEATURES_MAX] = {{0}}, stored[WEIR_ROW_FEATURES_MAX] = {{0}};
    weir_row_view view;
    uint64_t row = 0;
    size_t rows = naive_graph_features(w->naive, vertex, before_us, expiry_of(w, type), LIST_MAX, w->wanted);
    if (type != 0) rows = 0; /* has no features: a row of it does not stand in the store */
    for (size_t i = 0; i < rows; i++)
        weir_row_fill(kinds, kind_count, w->wanted[i].row, w->wanted[i].row_length, wanted);
    assert_ok(weir_graph_features(w->graph, vertex, before_us, w->arena, &view));
    int64_t history_us = weir_schema_vertex_at(w->schema, type)->history_us;
    bool stands = rows > 0 && naive_graph_told(w->naive, history_us, before_us);
    if (before_us < told_from(w, history_us)) rows = 0;
    assert_int_equal(view.row != NULL, stands);
    if (view.row) weir_row_read(kinds, kind_count, view.row, view.row_length, stored);
    bool told = found && weir_snapshot_span(&v->rows, index, before_us, &row);
    bool erased = rows && is_erased(w, vertex, w->wanted[0].time_us);
    assert_int_equal(told, rows > 0 && !erased);
    assert_int_equal(v->column_count, kind_count);
    for (uint32_t i = 0; told && i < v->column_count; i++) {
        same_value(&v->columns[i], row, &wanted[i]);
        if (view.row) same_value(&v->columns[i], row, &stored[i]);
    }
}

static int32_t value_of(const uint8_t *row, uint32_t length) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    weir_value value = {0};
    weir_row_read(&kind, 1, row, length, &value);
    return value.text_length == 3;
}

/* Labels of a vertex, [begin, end) of the snapshot's. */
static void labels_of(const world *w, uint64_t index, uint64_t *beginp, uint64_t *endp) {
    const weir_snapshot_labels *l = weir_snapshot_labels_of(w->snapshot, 0);
    *beginp = 0;
    while (*beginp < l->count && (uint64_t)l->targets[*beginp] < index)
        ++*beginp;
    *endp = *beginp;
    while (*endp < l->count && (uint64_t)l->targets[*endp] == index)
        ++*endp;
}

static void same_label(world *w, weir_vertex vertex, uint64_t index, bool told, uint64_t life, int64_t before_us) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, 0);
    const weir_snapshot_labels *l = weir_snapshot_labels_of(w->snapshot, 0);
    uint64_t begin = 0, end = 0;
    naive_edge wanted;
    weir_row_view view;
    int64_t first_us;
    bool known = naive_graph_label(w->naive, vertex, 0, before_us, expiry_of(w, 0), &wanted);
    assert_ok(weir_graph_label(w->graph, vertex, 0, before_us, w->arena, &view));
    assert_int_equal(view.row != NULL, known);
    if (known) assert_true(view.time_us == wanted.time_us);
    if (!told) known = false; /* it is not there, or was never put: same_life has seen to that */
    if (known) assert_true(naive_graph_life(w->naive, vertex, before_us, expiry_of(w, 0), &first_us));
    if (known && (is_erased(w, vertex, first_us) || is_erased(w, vertex, wanted.time_us))) known = false;
    if (told) labels_of(w, index, &begin, &end);
    if (told) weir_snapshot_labels_of_life(v, index, life, l, &begin, &end);
    while (begin < end && l->times[begin] >= before_us)
        begin++;
    assert_int_equal(begin < end, known);
    if (!known) return;
    assert_true(l->times[begin] == wanted.time_us);
    assert_int_equal(l->values[begin], value_of(wanted.row, wanted.row_length));
}

/* The edge labels that name an edge of the snapshot are there, each once. */
static void same_edge_labels(world *w) {
    const weir_snapshot_labels *l = weir_snapshot_labels_of(w->snapshot, 1);
    const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, 0);
    uint64_t at = 0;
    for (uint64_t index = 0; index < v->count; index++) {
        size_t rows = naive_graph_rows(w->naive, weir_vertex_of(v->ids[index]), WEIR_PUT_LABEL, 1, w->as_of_us,
                                       LIST_MAX, w->wanted);
        if (!w->without_deleted) rows = 0; /* else those that a deletion hides from the naive graph stand there too */
        for (size_t i = 0; i < rows; i++) {
            bool names = false;
            for (int64_t e = out->indptr[index]; e < out->indptr[index + 1]; e++)
                names = names || out->events[e] == w->wanted[i].event;
            if (!names) continue;
            assert_true(at < l->count && l->times[at] == w->wanted[i].time_us);
            assert_true(l->targets[at] >= out->indptr[index] && l->targets[at] < out->indptr[index + 1]);
            assert_true(out->events[l->targets[at]] == w->wanted[i].event);
            assert_int_equal(l->values[at], value_of(w->wanted[i].row, w->wanted[i].row_length));
            at++;
        }
    }
    if (w->without_deleted) assert_int_equal(at, l->count);
}

/* From then on, and not behind as_of. */
static int64_t some_moment(world *w, int64_t from_us) {
    int64_t span_us = w->as_of_us - (from_us == INT64_MIN ? 995000 : from_us);
    if (span_us <= 0 || below(w, 4) == 0) return w->as_of_us;
    int64_t moment_us = w->as_of_us - (below(w, 8) ? (int64_t)below(w, (uint64_t)span_us + 1) : span_us);
    if (below(w, 2)) return moment_us;
    moment_us = w->moments_us[WEIR_PUT_VERTEX + below(w, WEIR_DELETE_EDGE)] + (int64_t)below(w, 3);
    return moment_us > w->as_of_us || moment_us < from_us ? w->as_of_us : moment_us;
}

static void same_vertex(world *w, uint32_t type, weir_vertex vertex) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    uint64_t index = 0, life = 0;
    bool found = weir_snapshot_find(w->snapshot, type, vertex, &index);
    if (found) assert_true(weir_vertex_of(v->ids[index]) == vertex);
    int64_t told_us = told_from(w, weir_schema_vertex_at(w->schema, type)->history_us);
    for (int64_t at = v->lives.indptr[index]; found && at < v->lives.indptr[index + 1]; at++)
        assert_true(v->lives.until_us[at] > told_us);
    for (unsigned i = 0; i < MOMENTS; i++) {
        int64_t before_us = some_moment(w, below(w, 2) ? w->from_us : w->all_from_us);
        weir_arena_reset(w->arena);
        same_features(w, type, vertex, index, found, before_us);
        if (before_us < w->all_from_us) continue; /* rows are cut there, the others reach back a while */
        same_lists(w, type, vertex, index, found, before_us);
        bool told = same_life(w, type, vertex, index, found, before_us, &life);
        if (type == 0) same_label(w, vertex, index, told, life, before_us);
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

static uint32_t targets_of(world *w, weir_target *live, weir_target *flat, uint32_t max) {
    uint32_t count = 0;
    for (uint16_t type = 0; type < TYPES; type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
        for (uint64_t i = 0; i < v->count && count < max; i++, count++) {
            int64_t before_us = some_moment(w, w->all_from_us);
            live[count] = (weir_target){.vertex = weir_vertex_of(v->ids[i]), .before_us = before_us, .type = type};
            flat[count] = (weir_target){.vertex = i, .before_us = before_us, .type = type};
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

/* --- aggregates over both ---------------------------------------------------------------------------------------- */

/* By all that was ever put: of the newest edges of a window those whose neighbour was told to be one of the values. */
static double naive_aggregate(world *w, const weir_schema_aggregate *a, weir_vertex vertex, int64_t before_us) {
    const weir_schema_relation *r = weir_schema_relation_at(w->schema, a->relation);
    const weir_direction direction = a->direction == WEIR_SCHEMA_OUT ? WEIR_OUT : WEIR_IN;
    const size_t count = naive_graph_neighbors(w->naive, vertex, (uint16_t)a->relation, direction, before_us,
                                               r->expire_us, 0, WEIR_AGGREGATE_LABELLED, w->wanted);
    weir_vertex met[WEIR_AGGREGATE_LABELLED];
    size_t matches = 0, different = 0;
    int64_t newest_us = before_us - a->window_us;
    for (size_t i = 0; i < count; i++) {
        const naive_edge *e = &w->wanted[i];
        naive_edge label;
        if (e->time_us < before_us - a->window_us) continue;
        if (!naive_graph_label(w->naive, e->neighbor, 0, before_us, expiry_of(w, 0), &label)) continue;
        const uint32_t value = value_of(label.row, label.row_length) ? 1 : 0;
        if (a->is_count == 1 && a->is[0] != value) continue;
        if (matches++ == 0) newest_us = e->time_us;
        size_t at = 0;
        while (at < different && met[at] != e->neighbor)
            at++;
        if (at == different) met[different++] = e->neighbor;
    }
    if (a->function == WEIR_SCHEMA_SINCE_LAST) return (double)(before_us - newest_us) * 1e-6;
    return (double)(a->function == WEIR_SCHEMA_COUNT ? matches : different);
}

typedef struct counting {
    weir_aggregates *live, *flat;
} counting;

static void same_values_of(world *w, const counting *c, uint16_t type, uint64_t index, int64_t before_us) {
    const weir_vertex id = weir_vertex_of(weir_snapshot_vertices_of(w->snapshot, type)->ids[index]);
    weir_sample_vertices of = {.ids = &id, .before_us = &before_us, .count = 1, .type = type};
    double stored[2], kept[2];
    assert_int_equal(weir_aggregates_count(w->schema, type), 2);
    assert_ok(weir_aggregates_read(c->live, &of, stored));
    of.ids = NULL;
    of.vertices = &index;
    assert_ok(weir_aggregates_read(c->flat, &of, kept));
    for (uint32_t i = 0; i < 2; i++) {
        const weir_schema_aggregate *a = weir_schema_aggregate_at(w->schema, type == 1 ? i : 2 + i);
        const double wanted = naive_aggregate(w, a, id, before_us);
        if (stored[i] != wanted || kept[i] != wanted)
            fail_msg("%s before %lld: %g stored, %g kept, not %g", a->name, (long long)before_us, stored[i], kept[i],
                     wanted);
    }
}

/* For how long the source says that a vertex's row stays: as of any time in between it is this one, as of any other it
 * is another, or there is none. */
static void same_within_span(world *w, weir_sample_source *flat, uint16_t type, uint64_t index) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w->snapshot, type);
    const int64_t at_us = some_moment(w, w->all_from_us), other_us = some_moment(w, w->all_from_us);
    const weir_sample_vertices of = {
        .vertices = &index, .before_us = &at_us, .count = 1, .type = type, .targets = below(w, 2) > 0};
    uint64_t row = 0, other = 0;
    int64_t since_us, until_us;
    assert_ok(flat->spans(flat, &of, &since_us, &until_us));
    assert_true(since_us <= at_us && at_us < until_us);
    const bool seen = weir_snapshot_span(&v->rows, index, at_us + of.targets, &row);
    const int64_t moments_us[] = {other_us, since_us, since_us - (since_us > INT64_MIN), until_us - 1, until_us};
    for (size_t i = 0; v->column_count && i < sizeof moments_us / sizeof *moments_us; i++) {
        const int64_t t = moments_us[i];
        if (t == INT64_MIN || t >= INT64_MAX - 1) continue;
        const bool there = weir_snapshot_span(&v->rows, index, t + of.targets, &other), same = there && other == row;
        if (since_us <= t && t < until_us ? there != seen || (seen && !same) : seen && same)
            fail_msg("vertex %llu of type %u before %lld, from %lld until %lld: as of %lld it is otherwise",
                     (unsigned long long)index, type, (long long)at_us, (long long)since_us, (long long)until_us,
                     (long long)t);
    }
}

/* Also in the very moment of a label, of whatever vertex. */
static int64_t moment_of_a_label(world *w) {
    const weir_snapshot_labels *l = weir_snapshot_labels_of(w->snapshot, 0);
    const int64_t label_us = l->count ? l->times[below(w, l->count)] : w->as_of_us;
    return label_us >= w->all_from_us && below(w, 2) ? label_us : some_moment(w, w->all_from_us);
}

static void same_aggregates(world *w) {
    weir_sample_source *live, *flat;
    counting c;
    assert_ok(weir_sample_over_graph(w->graph, 16u << 20, &live));
    assert_ok(weir_sample_over_snapshot(w->snapshot, &flat));
    assert_ok(weir_aggregates_open(w->schema, live, &c.live));
    assert_ok(weir_aggregates_open(w->schema, flat, &c.flat));
    for (uint16_t type = 0; type < TYPES; type++)
        for (uint64_t i = 0; i < weir_snapshot_vertices_of(w->snapshot, type)->count; i++)
            for (unsigned moment = 0; moment < MOMENTS; moment++) {
                same_values_of(w, &c, type, i, moment_of_a_label(w));
                same_within_span(w, flat, type, i);
            }
    weir_aggregates_close(c.live);
    weir_aggregates_close(c.flat);
    weir_sample_source_close(live);
    weir_sample_source_close(flat);
}

/* --- one round --------------------------------------------------------------------------------------------------- */

static const char *some_history(world *w) {
    static const char *const histories[] = {"history: 300us, ", "history: 900us, ", "history: 2ms, "};
    return below(w, 3) ? "" : histories[below(w, 3)];
}

/* Vertices expire in two stores of three. */
static void schema_read(world *w) {
    char text[2 * sizeof schema_text];
    const char *expire = below(w, 3) ? "expire: 300us, " : "", *a = some_history(w), *b = some_history(w);
    const char *lasting = some_history(w), *fading = some_history(w);
    int length = snprintf(text, sizeof text, schema_text, expire, a, b, lasting, fading);
    assert_ok(weir_schema_parse("random", text, (size_t)length, &w->schema));
}

static void store_open(world *w) {
    const weir_graph_opts opts = {.shards = SHARDS, .memory_bytes = 4u << 20, .window = 16, .create = true};
    assert_ok(weir_graph_open(weir_test_path("store"), w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "log:s", 1, &w->source));
}

/* From when on it tells what; where no time as of which is given, all is counted from what the sources agree on. */
static void find_bounds(world *w) {
    int64_t now_us = naive_graph_now(w->naive), age_us = w->default_as_of ? now_us : w->as_of_us;
    w->from_us = w->history_us ? age_us - w->history_us : INT64_MIN;
    w->reach_us = w->default_as_of || now_us >= w->as_of_us ? now_us + 1 : w->as_of_us;
    w->all_from_us = w->from_us;
    for (uint32_t i = 0; i < TYPES; i++) {
        int64_t type_us = told_from(w, weir_schema_vertex_at(w->schema, i)->history_us);
        if (type_us > w->all_from_us) w->all_from_us = type_us;
    }
    for (uint32_t i = 0; i < RELATIONS; i++) {
        int64_t relation_us = told_from(w, weir_schema_relation_at(w->schema, i)->history_us);
        if (relation_us > w->all_from_us) w->all_from_us = relation_us;
    }
}

static void take_snapshot(world *w, bool load) {
    const weir_snapshot_build_opts build = {.out = weir_test_path("snapshot"),
                                            .as_of_us = w->default_as_of ? WEIR_BEFORE_ALL : w->as_of_us,
                                            .history_us = w->history_us,
                                            .without_deleted = w->without_deleted,
                                            .seed = 7};
    const weir_snapshot_opts opts = {.load = load, .verify = true};
    weir_snapshot_stats stats;
    weir_graph_stats graph_stats;
    assert_ok(weir_graph_drain(w->graph));
    weir_graph_stats_get(w->graph, &graph_stats);
    if (w->default_as_of) w->as_of_us = graph_stats.event_time_last_us + 1;
    naive_graph_now_set(w->naive, weir_graph_watermark(w->graph));
    assert_ok(weir_graph_seal(w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_int_equal(stats.half_edges, 0);
    assert_ok(weir_snapshot_open(build.out, &opts, &w->snapshot));
    assert_true(weir_snapshot_as_of_us(w->snapshot) == w->as_of_us);
    find_bounds(w);
    assert_true(weir_snapshot_from_us(w->snapshot) == w->all_from_us);
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
        next_event(w, i);
        if (below(w, 300) == 0) assert_ok(weir_graph_seal(w->graph));
    }
    w->default_as_of = below(w, 4) == 0;
    w->as_of_us = some_as_of(w);
    w->history_us = below(w, 2) ? 1 + (int64_t)below(w, 1500) : 0;
    w->without_deleted = below(w, 3) == 0;
    take_snapshot(w, below(w, 2));
    assert_ok(weir_snapshot_check(w->snapshot));
    for (uint32_t type = 0; type < TYPES; type++) {
        for (uint64_t n = 0; n < w->vertices; n++)
            same_vertex(w, type, vertex_of(type, n));
        assert_in_range(weir_snapshot_vertices_of(w->snapshot, type)->count, 0, w->vertices);
    }
    same_edge_labels(w);
    if (!w->without_deleted && w->all_from_us <= w->as_of_us) {
        same_samples(w);
        same_aggregates(w); /* AGGREGATE-G4 */
    }
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
    assert_ok(weir_arena_open(4u << 20, &w.arena));
    for (uint64_t rounds = weir_test_rounds(ROUNDS); rounds > 0; rounds--)
        run_round(&w);
    free(w.wanted);
    weir_arena_close(w.arena);
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
