/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts_test.c - parts of a random graph, held against its snapshot: number by number through the map, which is checked
 * to be a bijection first. Vertices lie in clusters, so that a good cutting differs from a bad one.
 */
#include "submit.h"
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#define TYPES     2u
#define RELATIONS 2u
#define CLUSTERS  8u
#define PARTS_MAX 16u

static const char schema_text[] =
    "version: 1\n"
    "name: random\n"
    "vertices:\n"
    "  a: {expire: 400d, features: {x: {kind: number}, c: {kind: category, buckets: 8}, t: {kind: time}}}\n"
    "  b: {}\n"
    "relations:\n"
    "  lasting: {from: a, to: b, features: {w: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "  fading: {from: a, to: a, features: {w: {kind: number}}}\n"
    "labels:\n"
    "  l: {vertex: a, values: [no, yes]}\n"
    "  e: {relation: lasting, values: [no, yes]}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: fading, from: a, to: b, features: [w]}]}\n";

/* --- the snapshot ------------------------------------------------------------------------------------------------ */

typedef struct world {
    weir_rng rng;
    uint64_t vertices; /* of type a; b has half of them */
    weir_schema *schema;
    weir_graph *graph;
    weir_snapshot *snapshot;
    uint32_t source;
} world;

static uint64_t below(world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

static weir_vertex vertex_of(uint32_t type, uint64_t n) {
    return (1 + type + TYPES * n) * 0x9e3779b97f4a7c15ull;
}

/* Of the same cluster as n, nineteen times of twenty. */
static uint64_t near(world *w, uint64_t n, uint64_t count) {
    uint64_t cluster = below(w, 20) ? n % CLUSTERS : below(w, CLUSTERS);
    uint64_t picked = below(w, count / CLUSTERS) * CLUSTERS + cluster;
    return picked;
}

static uint32_t row_of(world *w, uint32_t columns, uint8_t *row) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME};
    static const char *const texts[] = {"", "a", "bb", "größer"};
    const char *text = texts[below(w, 4)];
    weir_value values[] = {
        {.present = below(w, 4) > 0, .number = (double)below(w, 1000) / 8},
        {.present = below(w, 4) > 0, .text = text, .text_length = (uint8_t)strlen(text)},
        {.present = below(w, 2), .time_us = (int64_t)below(w, 99)},
    };
    return (uint32_t)weir_row_write(kinds, values, columns, row);
}

static uint32_t label_row(world *w, uint8_t *row) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    bool yes = below(w, 2);
    weir_value value = {.present = true, .text = yes ? "yes" : "no", .text_length = yes ? 3 : 2};
    return (uint32_t)weir_row_write(&kind, &value, 1, row);
}

static size_t some_event(world *w, weir_mutation m[2], uint8_t *row, char key[24]) {
    uint64_t n = below(w, w->vertices), dice = below(w, 100);
    m[0] = (weir_mutation){.vertex = vertex_of(0, n), .row = row};
    if (dice < 15) {
        m[0].kind = WEIR_PUT_VERTEX;
        m[0].row_length = row_of(w, 3, row);
        m[0].key_length = (uint16_t)snprintf(key, 24, "key %llu", (unsigned long long)n);
        m[0].key = key;
        return 1;
    }
    m[0].type = (uint16_t)below(w, 2);
    if (dice < 30 && m[0].type == 0) {
        m[0].kind = WEIR_PUT_LABEL;
        m[0].row_length = label_row(w, row);
        return 1;
    }
    m[0].kind = WEIR_PUT_EDGE;
    m[0].neighbor = m[0].type == 0 ? vertex_of(1, near(w, n, w->vertices / 2)) : vertex_of(0, near(w, n, w->vertices));
    m[0].row_length = row_of(w, m[0].type == 0 ? 2 : 1, row);
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = m[0].neighbor;
    m[1].neighbor = m[0].vertex;
    return 2;
}

/* An edge of relation 0 is now and then labelled by its own event. */
static size_t with_label(world *w, weir_mutation *m, size_t count, uint8_t *row) {
    if (count != 2 || m[0].type != 0 || below(w, 3)) return count;
    m[2] = m[0];
    m[2].kind = WEIR_PUT_LABEL;
    m[2].type = 1;
    m[2].neighbor = 0;
    m[2].row = row;
    m[2].row_length = label_row(w, row);
    return 3;
}

static void submit(world *w, uint64_t offset) {
    uint8_t row[WEIR_ROW_BYTES_MAX], second[64];
    weir_mutation m[3];
    char key[24];
    size_t count = with_label(w, m, some_event(w, m, row, key), second);
    for (size_t i = 0; i < count; i++) {
        m[i].time_us = 1000000 + (int64_t)below(w, 5000);
        if (i) m[i].time_us = m[0].time_us;
        m[i].event = offset + 1;
    }
    assert_ok(submit_event(w->graph, w->source, offset, m, count));
}

static void world_open(world *w, uint64_t vertices, uint64_t events) {
    const weir_graph_opts opts = {.shards = 1, .memory_bytes = 64u << 20, .window = 16, .create = true};
    const weir_snapshot_build_opts build = {.out = weir_test_path("snapshot"), .as_of_us = WEIR_BEFORE_ALL, .seed = 7};
    weir_snapshot_stats stats;
    *w = (world){.vertices = vertices, .rng = weir_rng_stream(weir_test_seed(), vertices, 0)};
    assert_ok(weir_schema_parse("random", schema_text, sizeof schema_text - 1, &w->schema));
    assert_ok(weir_graph_open(weir_test_path("store"), w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "log:s", 1, &w->source));
    for (uint64_t i = 0; i < events; i++)
        submit(w, i);
    assert_ok(weir_graph_drain(w->graph));
    assert_ok(weir_graph_seal(w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_true(stats.labels > 0);
    assert_ok(weir_snapshot_open(build.out, &(weir_snapshot_opts){.verify = true}, &w->snapshot));
}

static void world_close(world *w) {
    weir_snapshot_close(w->snapshot);
    assert_ok(weir_graph_close(w->graph));
    weir_schema_free(w->schema);
}

/* --- the parts --------------------------------------------------------------------------------------------------- */

typedef struct cutting {
    weir_parts_report report;
    uint32_t parts;
    weir_part *of[PARTS_MAX];
    weir_npy_map *maps[TYPES];
    const int64_t *new_of[TYPES];
} cutting;

static void cut(world *w, const char *name, uint32_t parts, weir_parts_method method, uint64_t seed, cutting *c) {
    const weir_parts_opts opts = {.out = weir_test_path(name),
                                  .parts = parts,
                                  .method = method,
                                  .seed = seed,
                                  .snapshot = weir_test_path("snapshot"),
                                  .clock = weir_clock_system()};
    char path[128];
    *c = (cutting){.parts = parts};
    assert_ok(weir_parts_write(w->snapshot, &opts, &c->report));
    for (uint32_t p = 0; p < parts; p++) {
        snprintf(path, sizeof path, "%s/part-%u", name, p);
        assert_ok(weir_part_open(weir_test_path(path), &(weir_part_opts){.verify = true}, &c->of[p]));
        assert_int_equal(weir_part_index(c->of[p]), p);
        assert_int_equal(weir_part_count(c->of[p]), parts);
        assert_string_equal(weir_part_cutting(c->of[p]), weir_part_cutting(c->of[0]));
    }
    for (uint32_t type = 0; type < TYPES; type++) {
        weir_npy_array array;
        snprintf(path, sizeof path, "%s/map/%s.npy", name, type ? "b" : "a");
        assert_ok(weir_npy_map_open(weir_test_path(path), &c->maps[type], &array));
        assert_int_equal(array.count, weir_snapshot_vertices_of(w->snapshot, type)->count);
        c->new_of[type] = array.data;
    }
}

static void uncut(cutting *c) {
    for (uint32_t p = 0; p < c->parts; p++)
        weir_part_close(c->of[p]);
    for (uint32_t type = 0; type < TYPES; type++)
        weir_npy_map_close(c->maps[type]);
}

/* Where vertex v of the snapshot is now; by walking the starts, not by the reader's own search. */
static weir_part *where(const cutting *c, uint32_t type, uint64_t v, uint64_t *placep) {
    int64_t number = c->new_of[type][v];
    const int64_t *starts = weir_part_starts(c->of[0], type);
    uint32_t p = 0;
    while (number >= starts[p + 1])
        p++;
    assert_int_equal(weir_part_owner(c->of[0], type, number), p);
    *placep = (uint64_t)(number - starts[p]);
    return c->of[p];
}

static void numbers_are_a_bijection(const world *w, const cutting *c, uint32_t type) {
    uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count, owned = 0;
    bool *seen = calloc(count + 1, sizeof *seen);
    for (uint64_t v = 0; v < count; v++) {
        assert_in_range(c->new_of[type][v], 0, count - 1);
        assert_false(seen[c->new_of[type][v]]);
        seen[c->new_of[type][v]] = true;
    }
    free(seen);
    for (uint32_t p = 0; p < c->parts; p++) {
        assert_memory_equal(weir_part_starts(c->of[p], type), weir_part_starts(c->of[0], type),
                            (c->parts + 1) * sizeof(int64_t));
        owned += weir_part_vertices_of(c->of[p], type)->count;
    }
    assert_int_equal(owned, count);
    assert_int_equal(weir_part_starts(c->of[0], type)[c->parts], count);
}

static void same_bytes(const int64_t *offsets_a, const uint8_t *bytes_a, uint64_t a, const int64_t *offsets_b,
                       const uint8_t *bytes_b, uint64_t b) {
    int64_t length = offsets_a[a + 1] - offsets_a[a];
    assert_int_equal(length, offsets_b[b + 1] - offsets_b[b]);
    if (length) assert_memory_equal(bytes_a + offsets_a[a], bytes_b + offsets_b[b], (size_t)length);
}

static void same_values(const weir_snapshot_column *a, const weir_snapshot_column *b, uint32_t columns, uint64_t at_a,
                        uint64_t at_b) {
    for (uint32_t i = 0; i < columns; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].kind, b[i].kind);
        if (a[i].numbers) assert_memory_equal(a[i].numbers + at_a, b[i].numbers + at_b, sizeof(float));
        if (a[i].times) assert_true(a[i].times[at_a] == b[i].times[at_b]);
        if (!a[i].codes) continue;
        assert_int_equal(a[i].codes[at_a], b[i].codes[at_b]);
        if (a[i].codes[at_a] < 0) continue;
        same_bytes(a[i].text_offsets, a[i].text_bytes, (uint64_t)a[i].codes[at_a], b[i].text_offsets, b[i].text_bytes,
                   (uint64_t)b[i].codes[at_b]);
    }
}

static void same_spans(const weir_snapshot_spans *own, uint64_t place, const weir_snapshot_spans *all, uint64_t v) {
    int64_t length = all->indptr[v + 1] - all->indptr[v];
    assert_int_equal(own->indptr[place + 1] - own->indptr[place], length);
    for (int64_t i = 0; i < length; i++) {
        assert_true(own->times[own->indptr[place] + i] == all->times[all->indptr[v] + i]);
        assert_true(own->until_us[own->indptr[place] + i] == all->until_us[all->indptr[v] + i]);
    }
}

static void same_vertices(const world *w, const cutting *c, uint32_t type) {
    const weir_snapshot_vertices *all = weir_snapshot_vertices_of(w->snapshot, type);
    for (uint64_t v = 0; v < all->count; v++) {
        uint64_t place = 0;
        const weir_snapshot_vertices *own = weir_part_vertices_of(where(c, type, v, &place), type);
        assert_true(weir_vertex_of(own->ids[place]) == weir_vertex_of(all->ids[v]));
        same_spans(&own->lives, place, &all->lives, v);
        same_spans(&own->rows, place, &all->rows, v);
        assert_int_equal(own->column_count, all->column_count);
        same_bytes(own->key_offsets, own->key_bytes, place, all->key_offsets, all->key_bytes, v);
        for (int64_t i = 0; i < all->rows.indptr[v + 1] - all->rows.indptr[v]; i++)
            same_values(own->columns, all->columns, all->column_count, (uint64_t)(own->rows.indptr[place] + i),
                        (uint64_t)(all->rows.indptr[v] + i));
    }
}

/* Returns how many edges were seen. */
static uint64_t same_lists(const world *w, const cutting *c, uint32_t relation, weir_direction direction) {
    const weir_schema_relation *r = weir_schema_relation_at(w->schema, relation);
    const weir_snapshot_edges *all = weir_snapshot_edges_of(w->snapshot, relation, direction);
    uint32_t own_type = direction == WEIR_OUT ? r->from : r->to, other = direction == WEIR_OUT ? r->to : r->from;
    uint64_t seen = 0;
    for (uint64_t v = 0; v < all->vertices; v++) {
        uint64_t place = 0;
        const weir_snapshot_edges *own = weir_part_edges_of(where(c, own_type, v, &place), relation, direction);
        int64_t length = all->indptr[v + 1] - all->indptr[v];
        assert_int_equal(own->indptr[place + 1] - own->indptr[place], length);
        for (int64_t i = 0; i < length; i++, seen++) {
            uint64_t at = (uint64_t)(own->indptr[place] + i), from = (uint64_t)(all->indptr[v] + i);
            assert_true(own->neighbors[at] == c->new_of[other][all->neighbors[from]]);
            assert_true(own->times[at] == all->times[from] && own->events[at] == all->events[from]);
            assert_int_equal(own->until_us != NULL, all->until_us != NULL);
            if (all->until_us) assert_true(own->until_us[at] == all->until_us[from]);
            same_values(own->columns, all->columns, all->column_count, at, from);
        }
    }
    return seen;
}

static void same_relation(const world *w, const cutting *c, uint32_t relation) {
    uint64_t out = 0, in = 0, edges = weir_snapshot_edges_of(w->snapshot, relation, WEIR_OUT)->edges;
    assert_int_equal(same_lists(w, c, relation, WEIR_OUT), edges);
    assert_int_equal(same_lists(w, c, relation, WEIR_IN), edges);
    for (uint32_t p = 0; p < c->parts; p++) {
        out += weir_part_edges_of(c->of[p], relation, WEIR_OUT)->edges;
        in += weir_part_edges_of(c->of[p], relation, WEIR_IN)->edges;
    }
    assert_int_equal(out, edges);
    assert_int_equal(in, edges);
}

/* The next label of each part is the next of the snapshot that the part owns. */
static void same_labels(const world *w, const cutting *c, uint32_t label) {
    const weir_snapshot_labels *all = weir_snapshot_labels_of(w->snapshot, label);
    const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT);
    uint64_t next[PARTS_MAX] = {0};
    for (uint64_t i = 0; i < all->count; i++) {
        uint64_t v = (uint64_t)all->targets[i], place = 0;
        if (label == 1) {
            for (v = 0; out->indptr[v + 1] <= all->targets[i];)
                v++;
        }
        const weir_part *part = where(c, 0, v, &place);
        const weir_snapshot_labels *own = weir_part_labels_of(part, label);
        uint64_t at = next[weir_part_index(part)]++;
        assert_true(at < own->count);
        assert_true(own->times[at] == all->times[i] && own->values[at] == all->values[i]);
        int64_t wanted = label == 0
                             ? (int64_t)place
                             : weir_part_edges_of(part, 0, WEIR_OUT)->indptr[place] + all->targets[i] - out->indptr[v];
        assert_true(own->targets[at] == wanted);
    }
    for (uint32_t p = 0; p < c->parts; p++)
        assert_int_equal(weir_part_labels_of(c->of[p], label)->count, next[p]);
}

static void halo_is_what_is_named(const world *w, const weir_part *part, uint32_t type) {
    uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count, halo_count = 0, named = 0;
    const int64_t *starts = weir_part_starts(part, type), *halo = weir_part_halo(part, type, &halo_count);
    bool *remote = calloc(count + 1, sizeof *remote);
    for (uint32_t i = 0; i < 2 * RELATIONS; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(w->schema, i / 2);
        const weir_snapshot_edges *e = weir_part_edges_of(part, i / 2, i % 2);
        for (uint64_t at = 0; (i % 2 == WEIR_OUT ? r->to : r->from) == type && at < e->edges; at++)
            remote[e->neighbors[at]] = true;
    }
    uint32_t own = weir_part_index(part);
    for (uint64_t v = 0; v < count; v++) {
        if (!remote[v] || ((int64_t)v >= starts[own] && (int64_t)v < starts[own + 1])) continue;
        assert_true(named < halo_count && halo[named] == (int64_t)v);
        named++;
    }
    assert_int_equal(named, halo_count);
    free(remote);
}

/* By looking at every edge. */
static void report_is_right(const world *w, const cutting *c) {
    uint64_t crossing = 0, halo = 0, edges = 0;
    for (uint32_t p = 0; p < c->parts; p++) {
        for (uint32_t relation = 0; relation < RELATIONS; relation++) {
            const weir_snapshot_edges *e = weir_part_edges_of(c->of[p], relation, WEIR_OUT);
            uint32_t to = weir_schema_relation_at(w->schema, relation)->to;
            edges += e->edges;
            for (uint64_t i = 0; i < e->edges; i++)
                crossing += weir_part_owner(c->of[p], to, e->neighbors[i]) != p;
        }
        for (uint32_t type = 0; type < TYPES; type++) {
            uint64_t count = 0;
            weir_part_halo(c->of[p], type, &count);
            halo += count;
        }
    }
    assert_int_equal(c->report.rows[0].cut_edges, crossing);
    assert_int_equal(c->report.rows[0].halo, halo);
    assert_int_equal(c->report.edges, edges);
}

static void is_the_snapshot(const world *w, const cutting *c) {
    for (uint32_t type = 0; type < TYPES; type++) {
        numbers_are_a_bijection(w, c, type);
        same_vertices(w, c, type);
        for (uint32_t p = 0; p < c->parts; p++)
            halo_is_what_is_named(w, c->of[p], type);
    }
    for (uint32_t relation = 0; relation < RELATIONS; relation++)
        same_relation(w, c, relation);
    for (uint32_t label = 0; label < 2; label++)
        same_labels(w, c, label);
    report_is_right(w, c);
}

/* --- cases ------------------------------------------------------------------------------------------------------- */

/* Every file is synced, so a case has few parts. */
static void parts_are_the_snapshot(weir_parts_method method, uint32_t parts) {
    world w;
    cutting c;
    world_open(&w, 200, 3000);
    cut(&w, "p", parts, method, below(&w, 1000), &c);
    is_the_snapshot(&w, &c);
    uncut(&c);
    world_close(&w);
}

static void p1_p2_p3_parts_of_metis_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_METIS, 5);
}

static void p1_p2_p3_random_parts_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_RANDOM, 6);
}

static void p1_p2_p3_hashed_parts_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_HASH, 2);
}

static void one_part_keeps_the_numbers(void **state) {
    (void)state;
    world w;
    cutting c;
    world_open(&w, 64, 800);
    cut(&w, "one", 1, WEIR_PARTS_METIS, 1, &c);
    is_the_snapshot(&w, &c);
    for (uint32_t type = 0; type < TYPES; type++) {
        uint64_t count = 1;
        for (uint64_t v = 0; v < weir_snapshot_vertices_of(w.snapshot, type)->count; v++)
            assert_int_equal(c.new_of[type][v], v);
        weir_part_halo(c.of[0], type, &count);
        assert_int_equal(count, 0);
    }
    assert_int_equal(c.report.rows[0].cut_edges, 0);
    uncut(&c);
    world_close(&w);
}

static void metis_finds_the_clusters(void **state) {
    (void)state;
    world w;
    cutting c;
    world_open(&w, 400, 6000);
    for (uint32_t parts = 2; parts <= 4; parts *= 2) {
        char name[16];
        snprintf(name, sizeof name, "m%u", parts);
        cut(&w, name, parts, WEIR_PARTS_METIS, below(&w, 1000), &c);
        assert_int_equal(c.report.row_count, 3);
        assert_int_equal(c.report.rows[1].method, WEIR_PARTS_RANDOM);
        for (uint32_t i = 1; i < 3; i++)
            assert_true(c.report.rows[0].cut_edges < c.report.rows[i].cut_edges / 2);
        assert_true(c.report.rows[0].training_balance < 1.15 && c.report.rows[0].degree_balance < 1.15);
        uncut(&c);
    }
    world_close(&w);
}

static char *slurp(const char *path, size_t *lengthp) {
    char *bytes = NULL;
    assert_ok(weir_file_load(path, 1u << 22, &bytes, lengthp));
    return bytes;
}

/* Whether two cuttings have the same MANIFEST in the map and in each part. */
static bool same_files(const char *a, const char *b, uint32_t parts) {
    bool same = true;
    for (uint32_t p = 0; p <= parts; p++) {
        char name[2][128];
        size_t length[2];
        for (int i = 0; i < 2; i++) {
            if (p == parts)
                snprintf(name[i], sizeof name[i], "%s/map/MANIFEST", i ? b : a);
            else
                snprintf(name[i], sizeof name[i], "%s/part-%u/MANIFEST", i ? b : a, p);
        }
        char *x = slurp(weir_test_path(name[0]), &length[0]), *y = slurp(weir_test_path(name[1]), &length[1]);
        same = same && length[0] == length[1] && memcmp(x, y, length[0]) == 0;
        weir_free(x);
        weir_free(y);
    }
    return same;
}

static void p4_same_seed_same_files(void **state) {
    (void)state;
    world w;
    cutting c;
    world_open(&w, 200, 3000);
    for (int i = 0; i < 2; i++) {
        cut(&w, i ? "b" : "a", 3, WEIR_PARTS_METIS, 5, &c);
        uncut(&c);
    }
    assert_true(same_files("a", "b", 3));
    world_close(&w);
}

static void p4_a_seed_counts(void **state) {
    (void)state;
    world w;
    cutting c;
    world_open(&w, 200, 3000);
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"a", "b", "other"};
        cut(&w, names[i], 2, WEIR_PARTS_RANDOM, i == 2 ? 6 : 5, &c);
        uncut(&c);
    }
    assert_true(same_files("a", "b", 2));
    assert_false(same_files("a", "other", 2)); /* the comparison can see it */
    world_close(&w);
}

static void what_cannot_be_cut_is_said(void **state) {
    (void)state;
    world w;
    weir_parts_report report;
    world_open(&w, 64, 800);
    weir_parts_opts opts = {.out = weir_test_path("out"), .parts = 0, .clock = weir_clock_system()};
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "0 parts are not 1 to 1024");
    opts.parts = WEIR_PARTS_COUNT_MAX + 1;
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "1025 parts are not 1 to 1024");
    for (opts.method = 0; opts.method < WEIR_PARTS_METHODS; opts.method++) {
        opts.parts = 200;
        assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "would leave some empty; ask for fewer");
    }
    opts.parts = 2;
    opts.method = WEIR_PARTS_HASH;
    opts.out = weir_test_path("snapshot");
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_EEXIST, "is there already");
    assert_false(weir_path_exists(weir_test_path("out")));
    world_close(&w);
}

static void whole_or_not_there_after_a_failure(void **state) {
    (void)state;
    world w;
    weir_parts_report report;
    world_open(&w, 64, 800);
    const weir_parts_opts opts = {
        .out = weir_test_path("out"), .parts = 2, .method = WEIR_PARTS_HASH, .clock = weir_clock_system()};
    for (unsigned n = 1;; n *= 3) {
        char spec[32];
        snprintf(spec, sizeof spec, "any:%u:EIO:once", n);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_parts_write(w.snapshot, &opts, &report);
        bool reached = weir_fault_seen() >= n;
        assert_ok(weir_fault_arm(NULL));
        if (!err) assert_true(weir_path_exists(opts.out));
        if (weir_path_exists(opts.out)) assert_ok(weir_folder_remove(opts.out));
        if (!reached) break;
    }
    world_close(&w);
}

/* --- hostile parts ----------------------------------------------------------------------------------------------- */

/* Changes the 8 bytes at `back` from the end of a file of part 0. */
static void patch(const char *file, size_t back, uint64_t number) {
    char path[128];
    size_t length = 0;
    snprintf(path, sizeof path, "p/part-0/%s", file);
    char *bytes = slurp(weir_test_path(path), &length);
    assert_true(length >= back);
    weir_put_u64((uint8_t *)bytes + length - back, number);
    assert_ok(weir_file_replace(weir_test_path(path), bytes, length));
    weir_free(bytes);
}

static void refused(const char *text) {
    weir_part *part = NULL;
    assert_err(weir_part_open(weir_test_path("p/part-0"), &(weir_part_opts){.verify = false}, &part), WEIR_ECORRUPT,
               text);
    assert_null(part);
}

/* Patched, refused, and put back. */
static void refused_with(const char *file, size_t back, uint64_t number, const char *text) {
    char path[128];
    size_t length = 0;
    snprintf(path, sizeof path, "p/part-0/%s", file);
    char *kept = slurp(weir_test_path(path), &length);
    patch(file, back, number);
    refused(text);
    assert_ok(weir_file_replace(weir_test_path(path), kept, length));
    weir_free(kept);
}

static void hostile_parts_are_refused_by_name(void **state) {
    (void)state;
    world w;
    cutting c;
    weir_part *part;
    world_open(&w, 200, 3000);
    cut(&w, "p", 2, WEIR_PARTS_RANDOM, 1, &c);
    uncut(&c);
    refused_with("relations/lasting/out/neighbors.npy", 8, UINT64_MAX, "neighbors.npy: number");
    refused_with("relations/lasting/out/neighbors.npy", 8, 1u << 30, "points outside");
    refused_with("relations/fading/in/indptr.npy", 8, 7, "is less than the one before it");
    refused_with("relations/fading/in/indptr.npy", 8, 1u << 30, "is not the length of the array that it indexes");
    refused_with("halo/b.npy", 8, 1u << 30, "points outside");
    refused_with("halo/b.npy", 8, 0, "is owned, or not above the one before it");
    refused_with("labels/l/targets.npy", 8, 1u << 30, "points outside");
    refused_with("labels/l/values.npy", 8, 9, "is not a value of the label");
    refused_with("vertices/a/ids.npy", 8, 0, "is not above the one before it");
    refused_with("vertices/a/rows/indptr.npy", 8, 1u << 30, "is not the length of the array that it indexes");
    refused_with("vertices/a/lives/indptr.npy", 16, 1u << 30, "is less than the one before it");
    refused_with("vertices/a/key_offsets.npy", 8, 1u << 30, "is not the length of the array that it indexes");
    refused_with("vertices/a/feature.c.npy", 8, 0x7000000070000000ull, "has no text");
    refused_with("vertices/a/feature.c.text_offsets.npy", 8, 1u << 20,
                 "is not the length of the array that it indexes");
    assert_int_equal(truncate(weir_test_path("p/part-0/vertices/b/lives/first.npy"), 130), 0);
    assert_err(weir_part_open(weir_test_path("p/part-0"), &(weir_part_opts){.verify = false}, &part), WEIR_EDATA,
               "first.npy: ");
    assert_ok(weir_file_remove(weir_test_path("p/part-0/vertices/b/lives/first.npy")));
    refused("first.npy is missing");
    assert_err(weir_part_open(weir_test_path("p"), &(weir_part_opts){.verify = false}, &part), WEIR_ENOTFOUND,
               "is not a part");
    patch("relations/lasting/out/times.npy", 8, 1);
    assert_err(weir_part_open(weir_test_path("p/part-0"), &(weir_part_opts){.verify = true}, &part), WEIR_ECORRUPT,
               "MANIFEST");
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(p1_p2_p3_parts_of_metis_are_the_snapshot), WEIR_CASE(p1_p2_p3_random_parts_are_the_snapshot),
           WEIR_CASE(p1_p2_p3_hashed_parts_are_the_snapshot), WEIR_CASE(one_part_keeps_the_numbers),
           WEIR_CASE(metis_finds_the_clusters), WEIR_CASE(p4_same_seed_same_files), WEIR_CASE(p4_a_seed_counts),
           WEIR_CASE(what_cannot_be_cut_is_said), WEIR_CASE(whole_or_not_there_after_a_failure),
           WEIR_CASE(hostile_parts_are_refused_by_name))
