/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_test.c - random mutations into the store and into the naive graph; every kind of question, the same
 * answer.
 *
 * Times come late, events come twice, vertices and edges are deleted before and after what they delete, batches are of
 * any size and come again, the store is sealed, checkpointed and reopened in between. Windows and limits are small, so
 * that every path of a read (delta, frozen, window, cold, again with more, record by record) is walked often.
 *
 * Times are hostile too: single ones far ahead, bursts of them, partitions that are ahead or behind as a whole, fall
 * silent, and come back; the wall clock jumps. What has no time given is compared with naive_clock.h.
 *
 * Each store has a schema with other ages and histories, and histories change when it is opened again. Times asked for
 * lie around the bounds of these too.
 */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/row.h>
#include <weir/store/graph/graph.h>
#include <weir/store/graph/repair.h>

#include "naive_clock.h"
#include "naive_graph.h"

#define SHARDS          3u
#define PARTITIONS      5u
#define FUTURE_US       20000
#define STORES          10u   /* a case; a store's history stays short enough for an oracle that looks at all of it */
#define MUTATIONS       9600u /* a store; all cases together 400,000, and 8,000,000 in ops/check --long */
#define ANSWERS_A_ROUND 40u
#define LIMIT_MAX       300u
#define MANY_MAX        40u
#define UNDONE          2100u /* edges that are put, and then deleted: more than a read takes at once */
#define LATE_US         2000u
#define TRIM_LATE_US    200u
#define LONG_STEPS      UNDONE /* a read that takes as many has passed most of the deletions, or edges that they hide */
#define RELATIONS       4u
#define TEXT_BYTES      1024u

/* Each %s: nothing, or an age and a history. */
static const char schema_text[] =
    "version: 1\n"
    "name: random\n"
    "vertices:\n"
    "  a: {%sfeatures: {x: {kind: number}, y: {kind: number}}}\n"
    "relations:\n"
    "  lasting: {from: a, to: a, features: {w: {kind: number}}}\n"
    "  fading: {from: a, to: a, expire: 500us, features: {w: {kind: number}}}\n"
    "  bounded: {from: a, to: a, %sfeatures: {w: {kind: number}}}\n"
    "  any: {from: a, to: a, %sfeatures: {w: {kind: number}}}\n"
    "labels:\n"
    "  l: {vertex: a, values: [no, yes]}\n"
    "  e: {relation: bounded, values: [no, yes]}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: lasting, from: a, to: b, features: [w]}]}\n";

/* What kind of history: how many vertices; of a hundred events how many delete, and how many are about edges. */
typedef struct profile {
    uint64_t vertices;
    uint64_t deletions;
    uint64_t edges;
    bool undone; /* a store's history begins with many edges of one vertex, most of which are deleted then */
    bool trims;  /* shards are trimmed; histories stay as they are, and no event comes later than the shortest */
} profile;

typedef struct campaign {
    weir_rng rng;
    profile profile;
    weir_schema *schema;
    weir_graph *graph;
    naive_graph *naive;
    weir_arena *arena;
    naive_clock *times;
    weir_clock *clock;
    uint32_t source;
    uint64_t offsets[PARTITIONS];
    int64_t now_us;
    int64_t skew_us;   /* of the run in hand */
    uint32_t wild;     /* of a hundred events of the run in hand */
    uint64_t advances; /* of the watermark */
    uint64_t mutations, answers, reopened;
    uint64_t withheld; /* answers that a history has made empty */
    uint64_t trims, trims_refused, given_back;
    int64_t trimmed_us;   /* of the store in hand */
    int64_t watermark_us; /* as the sources agree on it */
    char vertex_age[32], relation_ages[2][32];
    uint64_t histories[3]; /* of a store that is trimmed */
    uint32_t undone;       /* events of the long run that were made */
    uint64_t undone_seed, steps_most;
    /* the last run of each partition, to be submitted again */
    weir_buf last[PARTITIONS][SHARDS];
} campaign;

static uint64_t below(campaign *c, uint64_t bound) {
    return weir_rng_below(&c->rng, bound);
}

static void choose_age(campaign *c, char age[32]) {
    static const char *const ages[] = {"", "", "expire: 200us, ", "expire: 700us, ", "expire: 3ms, "};
    snprintf(age, 32, "%s", ages[below(c, 5)]);
}

/* What has been given back does not come back. */
static void choose_history(campaign *c, uint64_t of_ten, unsigned place, const char *age, char bounds[64]) {
    uint64_t *kept = &c->histories[place];
    if (c->profile.trims) {
        if (!*kept) *kept = below(c, 10) < of_ten ? TRIM_LATE_US + 1 + below(c, 600) : UINT64_MAX;
        if (*kept == UINT64_MAX) snprintf(bounds, 64, "%s", age);
        if (*kept < UINT64_MAX) snprintf(bounds, 64, "%shistory: %lluus, ", age, (unsigned long long)*kept);
        return;
    }
    if (below(c, 10) >= of_ten) {
        snprintf(bounds, 64, "%s", age);
        return;
    }
    snprintf(bounds, 64, "%shistory: %lluus, ", age, (unsigned long long)(1 + below(c, below(c, 2) ? 400 : 3000)));
}

/* Ages are the store's, because what is forgotten does not come back. */
static void choose_schema(campaign *c) {
    char vertex[64], bounded[64], any[64], text[TEXT_BYTES];
    choose_history(c, 5, 0, c->vertex_age, vertex);
    choose_history(c, 10, 1, c->relation_ages[0], bounded);
    choose_history(c, 5, 2, c->relation_ages[1], any);
    int length = snprintf(text, sizeof text, schema_text, vertex, bounded, any);
    weir_schema_free(c->schema);
    assert_ok(weir_schema_parse("random", text, (size_t)length, &c->schema));
}

static void store_open(campaign *c) {
    choose_schema(c);
    weir_graph_opts opts = {.shards = SHARDS, .memory_bytes = 4u << 20, .window = 16, .create = true};
    opts.clock = c->clock;
    opts.future_us = FUTURE_US;
    opts.seal_bytes = 20000 + below(c, 60000);
    assert_ok(weir_graph_open(weir_test_path("store"), c->schema, &opts, &c->graph));
    assert_ok(weir_graph_source(c->graph, "log:s", 1, &c->source));
}

static int64_t some_time(campaign *c) {
    int64_t late =
        below(c, 4) == 0 ? (int64_t)below(c, c->profile.trims ? TRIM_LATE_US : LATE_US) : (int64_t)below(c, 20);
    if (below(c, 100) < c->wild) late = -(int64_t)below(c, below(c, 3) ? FUTURE_US : 1000000000);
    return c->now_us + c->skew_us - late;
}

/* What kind of run it is: a good one; with a few wild times; mostly wild; of a partition that goes wrong as a whole. */
static void choose_times(campaign *c, uint32_t partition) {
    uint64_t dice = c->profile.trims ? 0 : below(c, 20);
    if (c->profile.trims) partition = 0;
    c->wild = dice < 12 ? 0 : dice < 19 ? 3 : 60;
    c->skew_us = partition == 3 ? -30000 : partition == 4 ? (int64_t)below(c, 4000) : 0;
}

static int64_t latest(const campaign *c) {
    return weir_clock_wall_us(c->clock) + FUTURE_US;
}

/* A few vertices have most of the edges. */
static weir_vertex some_vertex(campaign *c) {
    uint64_t n = below(c, 3) == 0 ? below(c, 3) : below(c, c->profile.vertices);
    return 1 + n * 0x9e3779b97f4a7c15ull;
}

static uint32_t some_row(campaign *c, size_t count, uint8_t *row) {
    static const weir_value_kind kinds[2] = {WEIR_VALUE_NUMBER, WEIR_VALUE_NUMBER};
    weir_value values[2] = {{.present = below(c, 3) > 0, .number = (double)below(c, 1000)},
                            {.present = below(c, 3) > 0, .number = (double)below(c, 1000)}};
    return (uint32_t)weir_row_write(kinds, values, count, row);
}

static uint32_t label_row(campaign *c, uint8_t *row) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    bool yes = below(c, 2);
    weir_value value = {.present = true, .text = yes ? "yes" : "no", .text_length = yes ? 3 : 2};
    return (uint32_t)weir_row_write(&kind, &value, 1, row);
}

/* Edges are put, and then deleted by their events; of some the neighbour is, a few are kept. */
static size_t undone_event(campaign *c, weir_mutation m[2], uint8_t *row) {
    uint32_t i = c->undone++ % UNDONE;
    bool deletion = c->undone > UNDONE;
    weir_rng edge = weir_rng_stream(c->undone_seed, i, 0);
    m[0] = (weir_mutation){.kind = deletion ? WEIR_DELETE_EDGE : WEIR_PUT_EDGE, .vertex = 1, .time_us = c->now_us};
    m[0].neighbor = 1 + weir_rng_below(&edge, c->profile.vertices) * 0x9e3779b97f4a7c15ull;
    m[0].event = (1u << 20) + 1 + i;
    if (deletion && below(c, 100) == 0) m[0].event = below(c, 3) ? m[0].event + UNDONE : 0;
    if (!deletion) m[0].row = row, m[0].row_length = some_row(c, 1, row);
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = m[0].neighbor;
    m[1].neighbor = m[0].vertex;
    return 2;
}

/* Mutations of one event into m; rows[i] are their bytes. Returns how many. */
static size_t some_event(campaign *c, weir_mutation m[2], uint8_t rows[64], char key[24]) {
    if (c->undone < 2 * UNDONE) return undone_event(c, m, rows);
    uint64_t dice = below(c, 100);
    bool deletion = below(c, 100) < c->profile.deletions;
    m[0] = (weir_mutation){.vertex = some_vertex(c), .time_us = some_time(c), .event = 1 + below(c, 1u << 20)};
    if (dice < c->profile.edges) {
        m[0].kind = deletion ? WEIR_DELETE_EDGE : WEIR_PUT_EDGE;
        m[0].type = (uint16_t)below(c, RELATIONS);
        m[0].neighbor = some_vertex(c);
        if (deletion && below(c, 2)) m[0].event = 0;
        if (!deletion) m[0].row = rows, m[0].row_length = some_row(c, 1, rows);
        m[1] = m[0];
        m[1].direction = WEIR_IN;
        m[1].vertex = m[0].neighbor;
        m[1].neighbor = m[0].vertex;
        return 2;
    }
    if (dice < c->profile.edges + (100 - c->profile.edges) / 2) {
        m[0].kind = WEIR_PUT_VERTEX;
        m[0].key_length = (uint16_t)snprintf(key, 24, "%llx", (unsigned long long)m[0].vertex);
        m[0].key = key;
        if (below(c, 4)) m[0].row = rows, m[0].row_length = some_row(c, 2, rows);
    } else if (!deletion) {
        m[0].kind = WEIR_PUT_LABEL;
        m[0].type = (uint16_t)below(c, 2);
        m[0].row = rows;
        m[0].row_length = label_row(c, rows);
    } else {
        m[0].kind = WEIR_DELETE_VERTEX;
    }
    return 1;
}

/* As a mapper does it: an edge puts both of its ends, so that who relies on their names claims them. */
static size_t put_ends(weir_mutation m[4], char keys[2][24]) {
    for (size_t i = 0; i < 2; i++) {
        m[2 + i] = (weir_mutation){.kind = WEIR_PUT_VERTEX, .vertex = m[i].vertex, .time_us = m[i].time_us};
        m[2 + i].event = m[i].event;
        m[2 + i].key_length = (uint16_t)snprintf(keys[i], 24, "%llx", (unsigned long long)m[i].vertex);
        m[2 + i].key = keys[i];
    }
    return 2;
}

static void run_begin(weir_buf batches[SHARDS], uint32_t counts[SHARDS]) {
    for (uint32_t s = 0; s < SHARDS; s++) {
        weir_batch_begin(&batches[s]);
        counts[s] = 0;
    }
}

static void run_add(weir_buf batches[SHARDS], uint32_t counts[SHARDS], const weir_mutation *m, uint64_t begin) {
    for (uint32_t s = 0; s < SHARDS; s++) {
        if (m->kind != WEIR_DELETE_VERTEX && weir_shard_of(m->vertex, SHARDS) != s) continue;
        weir_batch_add(&batches[s], m, begin);
        counts[s]++;
    }
}

/* As ingest does it: a name is carried when the graph wants it. The oracle hears it with each put. */
static void leave_out_known_name(campaign *c, weir_mutation *m) {
    if (m->kind == WEIR_PUT_VERTEX && !weir_graph_name_claim(c->graph, m)) m->key_length = 0;
}

/* One run of one partition, into both. */
static void submit_run(campaign *c) {
    uint32_t partition = (uint32_t)below(c, PARTITIONS), counts[SHARDS];
    uint64_t begin = c->offsets[partition], events = 1 + below(c, 40);
    weir_buf *batches = c->last[partition];
    choose_times(c, partition);
    run_begin(batches, counts);
    for (uint64_t e = 0; e < events; e++) {
        weir_mutation m[4];
        uint8_t rows[64];
        char key[24], keys[2][24];
        c->now_us += (int64_t)below(c, 5);
        size_t count = some_event(c, m, rows, key);
        if (c->profile.trims && m[0].kind == WEIR_PUT_EDGE) count += put_ends(m, keys);
        naive_clock_event(c->times, partition, m[0].time_us, latest(c));
        for (size_t i = 0; i < count; i++) {
            m[i].offset = begin + e;
            naive_graph_apply(c->naive, &m[i]);
            leave_out_known_name(c, &m[i]);
            run_add(batches, counts, &m[i], begin);
            c->mutations++;
        }
    }
    c->offsets[partition] = begin + events;
    weir_batch_span span = {c->source, partition, begin, begin + events};
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_batch_end(&batches[s], &span, counts[s]);
    assert_ok(weir_graph_submit(c->graph, batches));
    naive_clock_applied(c->times, partition, latest(c));
}

static void same_edges(const weir_edge *got, const naive_edge *wanted, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(got[i].neighbor == wanted[i].neighbor && got[i].time_us == wanted[i].time_us);
        assert_true(got[i].event == wanted[i].event && got[i].row_length == wanted[i].row_length);
        if (wanted[i].row_length) assert_memory_equal(got[i].row, wanted[i].row, wanted[i].row_length);
    }
}

/* Whether so far back anything is told; there: there would be something to tell. */
static bool is_told(campaign *c, int64_t history_us, int64_t before_us, bool there) {
    bool told = naive_graph_told(c->naive, history_us, before_us);
    if (c->trimmed_us && history_us)
        told = told && before_us > c->trimmed_us - history_us; /* the time went back since */
    c->withheld += !told && there;
    return told;
}

/* From when age is counted, where no time is given: now, or since the time went back, the first moment that is told. */
static int64_t told_now(const campaign *c, int64_t history_us) {
    int64_t first_us = c->trimmed_us - history_us + 1;
    return c->trimmed_us && history_us && first_us > c->watermark_us ? first_us : c->watermark_us;
}

/* Now, not long ago, or where a history ends. */
static int64_t some_before(campaign *c) {
    int64_t now_us = naive_graph_now(c->naive), history_us = weir_schema_vertex_at(c->schema, 0)->history_us;
    uint64_t dice = below(c, 8);
    if (dice < 2) return WEIR_BEFORE_ALL;
    if (dice < 6 || now_us == INT64_MIN) return c->now_us - (int64_t)below(c, 3000) + 100;
    if (below(c, 3)) history_us = weir_schema_relation_at(c->schema, 2 + (uint32_t)below(c, 2))->history_us;
    return now_us - history_us + (int64_t)below(c, 3) - 1;
}

typedef struct ask {
    uint16_t relation;
    weir_direction direction;
    uint32_t limit;
} ask;

static ask some_ask(campaign *c) {
    uint16_t relation = (uint16_t)below(c, RELATIONS);
    weir_direction direction = below(c, 2) ? WEIR_IN : WEIR_OUT;
    return (ask){relation, direction, 1 + (uint32_t)below(c, below(c, 2) ? 5 : LIMIT_MAX - 1)};
}

static void compare_edges(campaign *c, const ask *a, weir_vertex vertex, int64_t before_us, int64_t since_us,
                          const weir_edge *got, size_t count) {
    naive_edge wanted[LIMIT_MAX];
    const weir_schema_relation *of = weir_schema_relation_at(c->schema, a->relation);
    size_t wanted_count = naive_graph_neighbors(c->naive, vertex, a->relation, a->direction, before_us, of->expire_us,
                                                told_now(c, of->history_us), a->limit, wanted);
    if (!is_told(c, of->history_us, before_us, wanted_count > 0)) wanted_count = 0;
    while (wanted_count && wanted[wanted_count - 1].time_us < since_us)
        wanted_count--;
    assert_int_equal(count, wanted_count);
    same_edges(got, wanted, count);
}

static void compare_neighbors(campaign *c, weir_vertex vertex, int64_t before_us, ask a) {
    const weir_edge *got;
    uint32_t count;
    weir_graph_budget budget = {.steps = UINT64_MAX};
    assert_ok(weir_graph_neighbors_within(c->graph, vertex, a.relation, a.direction, before_us, a.limit, &budget,
                                          c->arena, &got, &count));
    if (UINT64_MAX - budget.steps > c->steps_most) c->steps_most = UINT64_MAX - budget.steps;
    compare_edges(c, &a, vertex, before_us, INT64_MIN, got, count);
}

/* The newest edges of the list whose edges are undone: the first read passes its deletions, the next one may know of
 * the first. */
static void compare_undone(campaign *c) {
    for (unsigned i = 0; i < 3; i++)
        compare_neighbors(c, 1, WEIR_BEFORE_ALL, (ask){.relation = 0, .direction = WEIR_OUT, .limit = 1 + i});
}

static void compare_many(campaign *c) {
    const ask a = some_ask(c);
    weir_vertex vertices[MANY_MAX];
    int64_t before_us[MANY_MAX], since_us[MANY_MAX];
    weir_graph_window windows[MANY_MAX];
    uint32_t count = (uint32_t)below(c, MANY_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        vertices[i] = some_vertex(c);
        before_us[i] = some_before(c);
        since_us[i] = below(c, 4) ? some_before(c) : INT64_MIN;
    }
    weir_graph_list beside[2 * RELATIONS + 1];
    weir_arena *scratch;
    assert_ok(weir_arena_open(below(c, 4) ? 1u << 20 : 512, &scratch)); /* sometimes with too little room */
    weir_graph_ask many = {.relation = a.relation,
                           .direction = a.direction,
                           .limit = a.limit,
                           .since_us = below(c, 2) ? since_us : NULL,
                           .beside = beside,
                           .scratch = scratch};
    for (weir_list list = 0; list < 2 * RELATIONS; list++)
        if (below(c, 2))
            beside[many.beside_count++] =
                (weir_graph_list){list, (uint32_t)below(c, LIMIT_MAX), 1 + (uint32_t)below(c, LIMIT_MAX),
                                  below(c, 4) ? (int64_t)below(c, 4000) : INT64_MAX};
    if (below(c, 2)) beside[many.beside_count++] = (weir_graph_list){WEIR_LIST_FEATURES, 1, 1, 0};
    assert_ok(weir_graph_neighbors_of_many(c->graph, vertices, before_us, count, &many, c->arena, windows));
    weir_arena_close(scratch);
    for (uint32_t i = 0; i < count; i++)
        compare_edges(c, &a, vertices[i], before_us[i], many.since_us ? since_us[i] : INT64_MIN, windows[i].edges,
                      windows[i].count);
    c->answers += count;
}

static int64_t expire_us(const campaign *c) {
    return weir_schema_vertex_at(c->schema, 0)->expire_us;
}

static bool vertex_is_told(campaign *c, int64_t before_us, bool there) {
    return is_told(c, weir_schema_vertex_at(c->schema, 0)->history_us, before_us, there);
}

static void compare_features(campaign *c, weir_vertex vertex, int64_t before_us) {
    static const weir_value_kind kinds[2] = {WEIR_VALUE_NUMBER, WEIR_VALUE_NUMBER};
    naive_edge *rows = calloc(8192, sizeof *rows);
    weir_value wanted[2] = {{0}}, got[2] = {{0}};
    weir_row_view view;
    size_t count = naive_graph_features(c->naive, vertex, before_us, expire_us(c), 8192, rows);
    if (!vertex_is_told(c, before_us, count > 0)) count = 0;
    for (size_t i = 0; i < count; i++)
        weir_row_fill(kinds, 2, rows[i].row, rows[i].row_length, wanted);
    assert_ok(weir_graph_features(c->graph, vertex, before_us, c->arena, &view));
    assert_int_equal(view.row != NULL, count > 0);
    if (view.row) weir_row_read(kinds, 2, view.row, view.row_length, got);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(got[i].present, wanted[i].present);
        assert_true(!got[i].present || got[i].number == wanted[i].number);
    }
    free(rows);
}

/* Nothing may be left of its earlier lives: then a label that came before this one is that of its first. */
static bool may_seem_new(campaign *c, weir_vertex vertex, int64_t before_us, int64_t label_us) {
    int64_t first_us, history_us = weir_schema_vertex_at(c->schema, 0)->history_us;
    if (!c->profile.trims || !history_us) return false;
    if (!naive_graph_life(c->naive, vertex, before_us, expire_us(c), &first_us) || label_us > first_us) return false;
    return !naive_graph_was_put(c->naive, vertex, naive_graph_now(c->naive) - history_us, first_us);
}

/* Of the vertex, or of an edge that begins at it: then of no life. */
static void compare_label(campaign *c, weir_vertex vertex, int64_t before_us) {
    naive_edge wanted;
    weir_row_view view;
    uint16_t label = (uint16_t)below(c, 2);
    bool known = label == 0 ? naive_graph_label(c->naive, vertex, 0, before_us, expire_us(c), &wanted)
                            : naive_graph_rows(c->naive, vertex, WEIR_PUT_LABEL, 1, before_us, 1, &wanted) > 0;
    const weir_schema_label *of = weir_schema_label_at(c->schema, label);
    int64_t history_us = of->on_relation ? weir_schema_relation_at(c->schema, of->target)->history_us
                                         : weir_schema_vertex_at(c->schema, of->target)->history_us;
    if (!is_told(c, history_us, before_us, known)) known = false;
    assert_ok(weir_graph_label(c->graph, vertex, label, before_us, c->arena, &view));
    if (view.row && !known && label == 0 && may_seem_new(c, vertex, before_us, view.time_us)) return;
    assert_int_equal(view.row != NULL, known);
    if (!known) return;
    assert_true(view.time_us == wanted.time_us && view.row_length == wanted.row_length);
    assert_memory_equal(view.row, wanted.row, wanted.row_length);
}

static void compare_name(campaign *c, weir_vertex vertex, int64_t before_us) {
    size_t wanted_length;
    const char *wanted = naive_graph_name(c->naive, vertex, &wanted_length), *got;
    uint16_t type;
    uint32_t length;
    int64_t first_us, wanted_us;
    bool known, there = naive_graph_life(c->naive, vertex, WEIR_BEFORE_ALL, expire_us(c), &wanted_us);
    bool was_there = naive_graph_life(c->naive, vertex, before_us, expire_us(c), &wanted_us);
    if (!vertex_is_told(c, before_us, was_there)) was_there = false;
    assert_ok(weir_graph_name(c->graph, vertex, c->arena, &type, &got, &length));
    assert_int_equal(got != NULL, wanted != NULL && there);
    if (got) assert_memory_equal(got, wanted, wanted_length);
    assert_ok(weir_graph_first_put(c->graph, vertex, before_us, c->arena, &known, &first_us));
    if (got) assert_int_equal(known, was_there); /* else nothing may have named it yet */
    if (known) assert_true(was_there && first_us == wanted_us);
}

static void compare_some(campaign *c) {
    int64_t before = c->watermark_us;
    naive_graph_now_set(c->naive, naive_clock_now(c->times));
    assert_int_equal(weir_graph_watermark(c->graph), naive_graph_now(c->naive));
    c->advances += naive_graph_now(c->naive) != before;
    c->watermark_us = naive_graph_now(c->naive);
    naive_graph_now_set(c->naive, told_now(c, weir_schema_vertex_at(c->schema, 0)->history_us));
    for (unsigned i = 0; i < ANSWERS_A_ROUND; i++) {
        weir_vertex vertex = some_vertex(c);
        int64_t before_us = some_before(c);
        compare_neighbors(c, vertex, before_us, some_ask(c));
        compare_features(c, vertex, before_us);
        compare_label(c, vertex, before_us);
        compare_name(c, vertex, before_us);
        weir_arena_reset(c->arena);
        c->answers += 4;
    }
    if (c->profile.undone) compare_undone(c);
    compare_many(c);
    weir_arena_reset(c->arena);
}

/* What a client that did not hear the answer does, and what a replay does: the same run again. */
static void submit_again(campaign *c) {
    uint32_t partition = (uint32_t)below(c, PARTITIONS);
    if (c->last[partition][0].length) assert_ok(weir_graph_submit(c->graph, c->last[partition]));
    assert_ok(weir_graph_drain(c->graph));
}

static void reopen(campaign *c) {
    assert_ok(weir_graph_close(c->graph));
    store_open(c);
    naive_clock_restart(c->times);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        assert_int_equal(weir_graph_offset_sealed(c->graph, c->source, p), c->offsets[p]);
    c->reopened++;
}

/* Meanwhile the graph grows. */
static bool grow(void *context, uint64_t bytes) {
    campaign *c = context;
    (void)bytes;
    submit_run(c);
    if (below(c, 2)) assert_ok(weir_graph_seal(c->graph));
    return true;
}

static weir_err count_record(void *count, const void *key, size_t key_length, const void *value, size_t value_length) {
    (void)key, (void)key_length, (void)value, (void)value_length;
    ++*(uint64_t *)count;
    return WEIR_OK;
}

/* The watermark of the latest trim: of what has the shortest history everything is there that is newer. */
static void see_trimmed(campaign *c, uint32_t shard) {
    int64_t least_us = INT64_MAX, from_us = weir_graph_whole_from_us(c->graph, shard);
    for (size_t i = 0; i < 3; i++)
        if ((int64_t)c->histories[i] > 0 && (int64_t)c->histories[i] < least_us) least_us = (int64_t)c->histories[i];
    if (least_us < INT64_MAX && from_us + least_us > c->trimmed_us) c->trimmed_us = from_us + least_us;
}

static void trim(campaign *c) {
    uint32_t shard = (uint32_t)below(c, SHARDS);
    uint64_t before = 0, after = 0;
    if (below(c, 4)) assert_ok(weir_graph_seal(c->graph)); /* a trim counts from what is sealed of the time */
    assert_ok(weir_graph_scan(c->graph, shard, count_record, &before));
    weir_err err = weir_graph_trim(c->graph, shard, grow, c);
    assert_ok(weir_graph_drain(c->graph));
    if (weir_err_is(err, WEIR_EUNAVAILABLE)) {
        c->trims_refused++;
        return;
    }
    assert_ok(err);
    assert_ok(weir_graph_scan(c->graph, shard, count_record, &after));
    see_trimmed(c, shard);
    c->trims++;
    c->given_back += after < before ? before - after : 0;
}

/* A partition falls silent, is at its end, or has more to come; also one that never had an event. */
static void say_state(campaign *c) {
    static const weir_clock_state states[] = {WEIR_CLOCK_IDLE, WEIR_CLOCK_IDLE, WEIR_CLOCK_WAITING, WEIR_CLOCK_READING};
    weir_clock_state state = states[below(c, 4)];
    uint32_t partition = (uint32_t)below(c, PARTITIONS + 1);
    if (partition == PARTITIONS) state = WEIR_CLOCK_IDLE; /* nothing would ever be heard of it */
    assert_ok(weir_graph_clock_state(c->graph, c->source, partition, state));
    naive_clock_state(c->times, partition, (naive_state)state, latest(c));
}

/* Behind the events or ahead of them, by little or for a while by much. */
static void move_wall(campaign *c, bool jump) {
    int64_t ahead_us = !jump ? (int64_t)below(c, 1000) : below(c, 2) ? 5000000000 : -1000000;
    weir_clock_manual_set_wall(c->clock, c->now_us + ahead_us);
}

static void run_store(campaign *c) {
    uint64_t wanted = c->mutations + MUTATIONS;
    c->now_us = 1000000;
    c->undone = c->profile.undone ? 0 : 2 * UNDONE;
    c->undone_seed = below(c, UINT32_MAX);
    memset(c->offsets, 0, sizeof c->offsets);
    for (size_t i = 0; i < PARTITIONS * SHARDS; i++)
        weir_buf_clear(&c->last[i / SHARDS][i % SHARDS]);
    c->naive = naive_graph_open();
    c->times = naive_clock_open();
    weir_clock_manual_set_wall(c->clock, c->now_us);
    memset(c->histories, 0, sizeof c->histories);
    c->trimmed_us = 0;
    choose_age(c, c->vertex_age);
    choose_age(c, c->relation_ages[0]);
    choose_age(c, c->relation_ages[1]);
    store_open(c);
    while (c->mutations < wanted) {
        for (uint64_t runs = 1 + below(c, c->profile.trims ? 6 : 30); runs > 0; runs--)
            submit_run(c);
        assert_ok(weir_graph_drain(c->graph)); /* events and what is said of them, in one order for both */
        uint64_t dice = below(c, 40);
        if (dice < 6) assert_ok(weir_graph_seal(c->graph));
        if (dice == 7) reopen(c);
        if (dice == 8) submit_again(c);
        if (c->profile.trims && dice >= 9 && dice < 20) trim(c);
        if (!c->profile.trims && dice > 8 && dice < 20) say_state(c);
        move_wall(c, below(c, 12) == 0);
        compare_some(c);
    }
    assert_ok(weir_graph_close(c->graph));
    assert_ok(weir_folder_remove(weir_test_path("store")));
    naive_clock_close(c->times);
    naive_graph_close(c->naive);
}

static void run_campaign(profile p) {
    campaign *c = calloc(1, sizeof *c);
    c->rng = weir_rng_stream(weir_test_seed(), p.vertices, (uint32_t)p.deletions);
    c->profile = p;
    assert_ok(weir_arena_open(64u << 20, &c->arena));
    assert_ok(weir_clock_manual_open(0, &c->clock));
    /* Of a few stores it may be that none has a history that an answer is withheld by, or gives records back. */
    const uint64_t stores = weir_test_rounds(STORES) / weir_test_part(5, 1), most = stores + 10 * STORES;
    bool met = false;
    for (uint64_t i = 0; i < stores || (i < most && !met); i++) {
        run_store(c);
        met = c->advances > 0 && c->withheld > 0 && (!p.trims || c->given_back > 0);
    }
    printf(
        "%llu mutations, %llu answers, %llu withheld, %llu times reopened, %llu moves of the watermark, at most %llu "
        "steps\n",
        (unsigned long long)c->mutations, (unsigned long long)c->answers, (unsigned long long)c->withheld,
        (unsigned long long)c->reopened, (unsigned long long)c->advances, (unsigned long long)c->steps_most);
    assert_true(c->advances > 0 && c->withheld > 0);
    if (p.undone && c->steps_most < LONG_STEPS)
        fail_msg("at most %llu steps a read", (unsigned long long)c->steps_most);
    if (p.trims)
        printf("%llu trims gave %llu records back, %llu were refused\n", (unsigned long long)c->trims,
               (unsigned long long)c->given_back, (unsigned long long)c->trims_refused);
    assert_true(!p.trims || (c->trims > 0 && c->given_back > 0));
    for (size_t i = 0; i < PARTITIONS * SHARDS; i++)
        weir_buf_free(&c->last[i / SHARDS][i % SHARDS]);
    weir_arena_close(c->arena);
    weir_clock_close(c->clock);
    weir_schema_free(c->schema);
    free(c);
}

static void s4_s5_few_vertices(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 12, .deletions = 3, .edges = 70});
}

static void s4_s5_many_vertices(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 500, .deletions = 3, .edges = 70});
}

static void s4_s5_mostly_deleted(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 30, .deletions = 40, .edges = 70});
}

/* Times wander by more than lies between a vertex's puts: deletions come before and behind puts of either side. */
static void s4_vertices_put_again_and_deletions_late(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 200, .deletions = 30, .edges = 10});
}

/* The newest thousands of records of a vertex are deletions and what they hide. */
static void s4_s5_long_runs_of_deletions(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 400, .deletions = 10, .edges = 30, .undone = true});
}

/* What a trim takes out nobody is told anyway. */
static void trimmed_few_vertices(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 12, .deletions = 3, .edges = 70, .trims = true});
}

static void trimmed_many_vertices(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 500, .deletions = 10, .edges = 50, .trims = true});
}

static void trimmed_put_again_and_deleted(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 200, .deletions = 30, .edges = 30, .trims = true});
}

static void trimmed_long_runs_of_deletions(void **state) {
    (void)state;
    run_campaign((profile){.vertices = 400, .deletions = 10, .edges = 30, .undone = true, .trims = true});
}

WEIR_TESTS(WEIR_CASE(trimmed_few_vertices), WEIR_CASE(trimmed_many_vertices), WEIR_CASE(trimmed_put_again_and_deleted),
           WEIR_CASE(trimmed_long_runs_of_deletions), WEIR_CASE(s4_s5_few_vertices), WEIR_CASE(s4_s5_many_vertices),
           WEIR_CASE(s4_s5_mostly_deleted), WEIR_CASE(s4_vertices_put_again_and_deletions_late),
           WEIR_CASE(s4_s5_long_runs_of_deletions))
