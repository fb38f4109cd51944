/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts_fixture.h - a snapshot of a random graph, and parts of it. Vertices lie in clusters, so that a good cutting
 * differs from a bad one.
 */
#ifndef PARTS_FIXTURE_H
#define PARTS_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "submit.h"
#include "weir_test.h"

#define PARTS_TYPES     2u
#define PARTS_RELATIONS 2u
#define PARTS_CLUSTERS  8u
#define PARTS_MAX       64u

#define PARTS_SCHEMA_WITH(aggregates)                                                                        \
    "version: 1\n"                                                                                           \
    "name: random\n"                                                                                         \
    "vertices:\n"                                                                                            \
    "  a: {expire: 400d, features: {x: {kind: number}, c: {kind: category, buckets: 8}, t: {kind: time}}}\n" \
    "  b: {}\n"                                                                                              \
    "relations:\n"                                                                                           \
    "  lasting: {from: a, to: b, features: {w: {kind: number}, c: {kind: category, buckets: 8}}}\n"          \
    "  fading: {from: a, to: a, features: {w: {kind: number}}}\n" aggregates "labels:\n"                     \
    "  l: {vertex: a, values: [no, yes]}\n"                                                                  \
    "  e: {relation: lasting, values: [no, yes]}\n"                                                          \
    "sources:\n"                                                                                             \
    "  s: {id: id, time: t, mutations: [{put_edge: fading, from: a, to: b, features: [w]}]}\n"

static const char parts_schema_text[] = PARTS_SCHEMA_WITH("");

/* An aggregate asks for a label: so parts have it of vertices that are not their own. */
static const char parts_told_schema_text[] = PARTS_SCHEMA_WITH(
    "aggregates: {yes: {vertex: b, relation: lasting, function: count, label: l, is: yes, window: 1ms}}\n");

/* --- the snapshot ------------------------------------------------------------------------------------------------ */

typedef struct parts_world {
    weir_rng rng;
    uint64_t vertices; /* of type a; b has half of them */
    weir_schema *schema;
    weir_graph *graph;
    weir_snapshot *snapshot;
    uint32_t source;
    weir_mutation fading; /* an end of the last edge of relation 1 */
} parts_world;

static inline uint64_t parts_below(parts_world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

static inline weir_vertex parts_vertex_of(uint32_t type, uint64_t n) {
    return (1 + type + PARTS_TYPES * n) * 0x9e3779b97f4a7c15ull;
}

/* Of the same cluster as n, nineteen times of twenty. */
static inline uint64_t parts_near(parts_world *w, uint64_t n, uint64_t count) {
    uint64_t cluster = parts_below(w, 20) ? n % PARTS_CLUSTERS : parts_below(w, PARTS_CLUSTERS);
    uint64_t picked = parts_below(w, count / PARTS_CLUSTERS) * PARTS_CLUSTERS + cluster;
    return picked;
}

static inline uint32_t parts_row_of(parts_world *w, uint32_t columns, uint8_t *row) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME};
    static const char *const texts[] = {"", "a", "bb", "größer"};
    const char *text = texts[parts_below(w, 4)];
    weir_value values[] = {
        {.present = parts_below(w, 4) > 0, .number = (double)parts_below(w, 1000) / 8},
        {.present = parts_below(w, 4) > 0, .text = text, .text_length = (uint8_t)strlen(text)},
        {.present = parts_below(w, 2), .time_us = (int64_t)parts_below(w, 99)},
    };
    return (uint32_t)weir_row_write(kinds, values, columns, row);
}

static inline uint32_t parts_label_row(parts_world *w, uint8_t *row) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    bool yes = parts_below(w, 2);
    weir_value value = {.present = true, .text = yes ? "yes" : "no", .text_length = yes ? 3 : 2};
    return (uint32_t)weir_row_write(&kind, &value, 1, row);
}

static inline size_t parts_some_event(parts_world *w, weir_mutation m[2], uint8_t *row, char key[24]) {
    uint64_t n = parts_below(w, w->vertices), dice = parts_below(w, 100);
    m[0] = (weir_mutation){.vertex = parts_vertex_of(0, n), .row = row};
    if (dice < 15) {
        m[0].kind = WEIR_PUT_VERTEX;
        m[0].row_length = parts_row_of(w, 3, row);
        m[0].key_length = (uint16_t)snprintf(key, 24, "key %llu", (unsigned long long)n);
        m[0].key = key;
        return 1;
    }
    m[0].type = (uint16_t)parts_below(w, 2);
    if (dice < 30 && m[0].type == 0) {
        m[0].kind = WEIR_PUT_LABEL;
        m[0].row_length = parts_label_row(w, row);
        return 1;
    }
    if (dice >= 93 && w->fading.vertex) {
        m[0] = w->fading;
        m[0].kind = WEIR_DELETE_EDGE;
        m[0].row_length = 0;
    } else {
        m[0].kind = WEIR_PUT_EDGE;
        m[0].neighbor = m[0].type == 0 ? parts_vertex_of(1, parts_near(w, n, w->vertices / 2))
                                       : parts_vertex_of(0, parts_near(w, n, w->vertices));
        m[0].row_length = parts_row_of(w, m[0].type == 0 ? 2 : 1, row);
        if (m[0].type == 1) w->fading = m[0];
    }
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = m[0].neighbor;
    m[1].neighbor = m[0].vertex;
    return 2;
}

/* An edge of relation 0 is now and then labelled by its own event. */
static inline size_t parts_with_label(parts_world *w, weir_mutation *m, size_t count, uint8_t *row) {
    if (count != 2 || m[0].type != 0 || parts_below(w, 3)) return count;
    m[2] = m[0];
    m[2].kind = WEIR_PUT_LABEL;
    m[2].type = 1;
    m[2].neighbor = 0;
    m[2].row = row;
    m[2].row_length = parts_label_row(w, row);
    return 3;
}

static inline void parts_submit(parts_world *w, uint64_t offset) {
    uint8_t row[WEIR_ROW_BYTES_MAX], second[64];
    weir_mutation m[3];
    char key[24];
    size_t count = parts_with_label(w, m, parts_some_event(w, m, row, key), second);
    for (size_t i = 0; i < count; i++) {
        m[i].time_us = 1000000 + (int64_t)parts_below(w, 5000);
        if (i) m[i].time_us = m[0].time_us;
        m[i].event = m[i].kind == WEIR_DELETE_EDGE ? 0 : offset + 1; /* 0: all that there are between the two */
    }
    assert_ok(submit_event(w->graph, w->source, offset, m, count));
}

static inline void parts_world_open_with(parts_world *w, const char *schema_text, uint64_t vertices, uint64_t events) {
    const weir_graph_opts opts = {.shards = 1, .memory_bytes = 64u << 20, .window = 16, .create = true};
    const weir_snapshot_build_opts build = {.out = weir_test_path("snapshot"), .as_of_us = WEIR_BEFORE_ALL, .seed = 7};
    weir_snapshot_stats stats;
    *w = (parts_world){.vertices = vertices, .rng = weir_rng_stream(weir_test_seed(), vertices, 0)};
    assert_ok(weir_schema_parse("random", schema_text, strlen(schema_text), &w->schema));
    assert_ok(weir_graph_open(weir_test_path("store"), w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "log:s", 1, &w->source));
    for (uint64_t i = 0; i < events; i++)
        parts_submit(w, i);
    assert_ok(weir_graph_drain(w->graph));
    assert_ok(weir_graph_seal(w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_true(stats.labels > 0);
    assert_ok(weir_snapshot_open(build.out, &(weir_snapshot_opts){.verify = true}, &w->snapshot));
}

static inline void parts_world_open(parts_world *w, uint64_t vertices, uint64_t events) {
    parts_world_open_with(w, parts_schema_text, vertices, events);
}

static inline void parts_world_close(parts_world *w) {
    weir_snapshot_close(w->snapshot);
    assert_ok(weir_graph_close(w->graph));
    weir_schema_free(w->schema);
}

/* --- the parts --------------------------------------------------------------------------------------------------- */

typedef struct parts_cutting {
    weir_parts_report report;
    uint32_t parts, depth;
    weir_part *of[PARTS_MAX];
    weir_npy_map *maps[PARTS_TYPES];
    const int64_t *new_of[PARTS_TYPES];
} parts_cutting;

static inline void parts_cut(parts_world *w, const char *name, uint32_t parts, uint32_t depth, weir_parts_method method,
                             uint64_t seed, parts_cutting *c) {
    const weir_parts_opts opts = {.out = weir_test_path(name),
                                  .parts = parts,
                                  .depth = depth,
                                  .method = method,
                                  .seed = seed,
                                  .snapshot = weir_test_path("snapshot"),
                                  .clock = weir_clock_system()};
    char path[128];
    *c = (parts_cutting){.parts = parts, .depth = depth};
    assert_ok(weir_parts_write(w->snapshot, &opts, &c->report));
    for (uint32_t p = 0; p < parts; p++) {
        snprintf(path, sizeof path, "%s/part-%u", name, p);
        assert_ok(weir_part_open(weir_test_path(path), &(weir_part_opts){.verify = true}, &c->of[p]));
        assert_int_equal(weir_part_index(c->of[p]), p);
        assert_int_equal(weir_part_count(c->of[p]), parts);
        assert_int_equal(weir_part_depth(c->of[p]), depth);
        assert_string_equal(weir_part_cutting(c->of[p]), weir_part_cutting(c->of[0]));
    }
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        weir_npy_array array;
        snprintf(path, sizeof path, "%s/map/%s.npy", name, type ? "b" : "a");
        assert_ok(weir_npy_map_open(weir_test_path(path), &c->maps[type], &array));
        assert_int_equal(array.count, weir_snapshot_vertices_of(w->snapshot, type)->count);
        c->new_of[type] = array.data;
    }
}

static inline void parts_uncut(parts_cutting *c) {
    for (uint32_t p = 0; p < c->parts; p++)
        weir_part_close(c->of[p]);
    for (uint32_t type = 0; type < PARTS_TYPES; type++)
        weir_npy_map_close(c->maps[type]);
}

static inline const weir_snapshot_vertices *parts_vertices_of(const weir_part *part, uint32_t type) {
    return weir_snapshot_vertices_of(weir_part_snapshot(part), type);
}

static inline const weir_snapshot_edges *parts_edges_of(const weir_part *part, uint32_t relation,
                                                        weir_direction direction) {
    return weir_snapshot_edges_of(weir_part_snapshot(part), relation, direction);
}

static inline char *parts_slurp(const char *path, size_t *lengthp) {
    char *bytes = NULL;
    assert_ok(weir_file_load(path, 1u << 22, &bytes, lengthp));
    return bytes;
}

/* The report has this, as text or as JSON. */
static inline void parts_report_says(const weir_parts_report *report, const char *text, bool json) {
    weir_buf out = {0};
    (json ? weir_parts_report_json : weir_parts_report_text)(report, &out);
    weir_buf_byte(&out, '\0');
    assert_ok(weir_buf_err(&out));
    if (!strstr((const char *)out.bytes, text)) fail_msg("no '%s' in %s", text, (const char *)out.bytes);
    weir_buf_free(&out);
}

#endif /* PARTS_FIXTURE_H */
