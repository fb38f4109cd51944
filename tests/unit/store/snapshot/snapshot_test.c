/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_test.c - a folder that is whole or not there, and a reader that believes nothing. */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/snapshot/snapshot.h>

static const char schema_text[] = "version: 1\n"
                                  "name: tiny\n"
                                  "vertices:\n"
                                  "  a: {%s, features: {x: {kind: number}, c: {kind: category, buckets: 4}}}\n"
                                  "  b: {}\n"
                                  "relations:\n"
                                  "  r: {from: a, to: b, %sfeatures: {w: {kind: number}}}\n"
                                  "labels:\n"
                                  "  l: {vertex: a, values: [no, yes]}\n"
                                  "sources:\n"
                                  "  s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b, features: [w]}]}\n";

typedef struct fixture {
    weir_schema *schema;
    weir_graph *graph;
} fixture;

static void submit(weir_graph *graph, weir_mutation *mutations, uint32_t count) {
    weir_buf batch = {0};
    uint32_t source;
    assert_ok(weir_graph_source(graph, "log:s", 7, &source));
    weir_batch_span span = {source, 0, 0, count};
    weir_batch_begin(&batch);
    for (uint32_t i = 0; i < count; i++) {
        mutations[i].offset = i;
        weir_batch_add(&batch, &mutations[i], 0);
    }
    weir_batch_end(&batch, &span, count);
    assert_ok(weir_graph_submit(graph, &batch));
    weir_buf_free(&batch);
    assert_ok(weir_graph_drain(graph));
    assert_ok(weir_graph_seal(graph));
}

static weir_schema *schema_of(const char *vertex, const char *relation) {
    char text[2 * sizeof schema_text];
    weir_schema *schema;
    int length = snprintf(text, sizeof text, schema_text, vertex, relation);
    assert_ok(weir_schema_parse("tiny", text, (size_t)length, &schema));
    return schema;
}

/* The edge of 10 is deleted at 15. */
static uint32_t delete_edge(weir_mutation *m) {
    m[0] = (weir_mutation){
        .kind = WEIR_DELETE_EDGE, .direction = WEIR_OUT, .vertex = 1, .neighbor = 11, .time_us = 15, .event = 100};
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = 11;
    m[1].neighbor = 1;
    return 2;
}

/* Edges 1 -> 11 at 10 and 20, 2 -> 11 at 30; vertex 1 was put at 5 and labelled at 15 and 25. */
static void store_open_with(fixture *f, const char *vertex, const char *relation, bool deletion) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY};
    static const weir_value features[] = {{.present = true, .number = 1.5},
                                          {.present = true, .text = "t", .text_length = 1}};
    static const weir_value yes = {.present = true, .text = "yes", .text_length = 3};
    const weir_graph_opts opts = {.shards = 1, .memory_bytes = 8u << 20, .create = true};
    uint8_t row[64], label[64];
    uint32_t row_length = (uint32_t)weir_row_write(kinds, features, 2, row);
    uint32_t label_length = (uint32_t)weir_row_write(&kinds[1], &yes, 1, label);
    weir_mutation m[16];
    uint32_t count = 0;
    m[count++] = (weir_mutation){.kind = WEIR_PUT_VERTEX,
                                 .vertex = 1,
                                 .time_us = 5,
                                 .event = 1,
                                 .key = "one",
                                 .key_length = 3,
                                 .row = row,
                                 .row_length = row_length};
    for (uint32_t i = 0; i < 3; i++) {
        m[count] = (weir_mutation){.kind = WEIR_PUT_EDGE,
                                   .direction = WEIR_OUT,
                                   .vertex = i < 2 ? 1 : 2,
                                   .neighbor = 11,
                                   .time_us = 10 * (i + 1),
                                   .event = 100 + i};
        m[count + 1] = m[count];
        m[count + 1].direction = WEIR_IN;
        m[count + 1].vertex = m[count].neighbor;
        m[count + 1].neighbor = m[count].vertex;
        count += 2;
    }
    for (uint32_t i = 0; i < 2; i++)
        m[count++] = (weir_mutation){.kind = WEIR_PUT_LABEL,
                                     .vertex = 1,
                                     .time_us = 15 + 10 * i,
                                     .event = 200 + i,
                                     .row = label,
                                     .row_length = label_length};
    if (deletion) count += delete_edge(&m[count]);
    *f = (fixture){schema_of(vertex, relation), NULL};
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &opts, &f->graph));
    submit(f->graph, m, count);
}

static void store_open(fixture *f) {
    store_open_with(f, "expire: never", "", false);
}

static void store_close(fixture *f) {
    assert_ok(weir_graph_close(f->graph));
    weir_schema_free(f->schema);
}

static void build(int64_t as_of_us, weir_snapshot_stats *stats) {
    fixture f;
    weir_snapshot_build_opts opts = {.out = weir_test_path("out"), .as_of_us = as_of_us, .origin = "a \"test\"\n"};
    store_open(&f);
    assert_ok(weir_snapshot_build(f.graph, &opts, stats));
    store_close(&f);
}

static weir_err reopen(weir_snapshot **snapshotp) {
    const weir_snapshot_opts opts = {.verify = false};
    return weir_snapshot_open(weir_test_path("out"), &opts, snapshotp);
}

/* --- SNAPSHOT-Z1 to SNAPSHOT-Z4 ----------------------------------------------------------------------------------- */

static void z3_nothing_is_as_new_as_as_of(void **state) {
    weir_snapshot_stats stats;
    weir_snapshot *s;
    (void)state;
    build(20, &stats);
    assert_true(stats.edges == 1 && stats.labels == 1 && stats.vertices == 2 && stats.bytes > 0);
    assert_ok(reopen(&s));
    const weir_snapshot_edges *in = weir_snapshot_edges_of(s, 0, WEIR_IN);
    assert_true(in->edges == 1 && in->times[0] == 10 && in->neighbors[0] == 0 && in->newest_us == 10);
    assert_true(weir_snapshot_labels_of(s, 0)->values[0] == 1 && weir_snapshot_labels_of(s, 0)->times[0] == 15);
    weir_snapshot_close(s);
}

static void the_newest_event_is_in_by_itself(void **state) {
    weir_snapshot_stats stats;
    weir_snapshot *s;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    assert_true(stats.edges == 3 && stats.labels == 2 && stats.vertices == 3);
    assert_ok(reopen(&s));
    assert_true(weir_snapshot_as_of_us(s) == 31);
    const weir_snapshot_vertices *a = weir_snapshot_vertices_of(s, 0);
    assert_true(weir_vertex_of(a->ids[0]) == 1 && a->lives.times[0] == 5 &&
                a->lives.times[1] == 30); /* put by its edge */
    assert_true(a->lives.until_us[0] == INT64_MAX && a->rows.count == 1 && a->rows.times[0] == 5);
    assert_memory_equal(a->key_bytes, "one", 3);
    assert_true(a->columns[0].numbers[0] == 1.5f && a->columns[1].codes[0] == 0);
    assert_ok(weir_snapshot_check(s));
    weir_snapshot_close(s);
}

/* Vertex 1, put at 5 with a row, and at 10 and 20 by its edges; labels of 15 and 25. */
static void z1_a_vertex_expires_to_the_microsecond(void **state) {
    static const struct {
        const char *expire;
        int64_t as_of_us, history_us;
        int64_t lives, first_us[2], until_us[2];
        uint64_t rows, labels;
    } rows[] = {
        {"11us", 30, 0, 1, {5}, {31}, 1, 2},
        {"11us", 32, 0, 1, {5}, {31}, 1, 2}, /* forgotten, but an earlier target sees it */
        {"11us", 31, 1, 1, {5}, {31}, 1, 2},
        {"11us", 32, 1, 0, {0}, {0}, 0, 0},
        {"10us", 29, 0, 2, {5, 20}, {20, 30}, 1, 2}, /* between 10 and 20 it was forgotten */
        {"10us", 29, 9, 1, {20}, {30}, 0, 1},
        {"36525d", 31, 0, 1, {5}, {36525ll * 86400 * 1000000 + 20}, 1, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const weir_snapshot_build_opts opts = {
            .out = weir_test_path("out"), .as_of_us = rows[i].as_of_us, .history_us = rows[i].history_us};
        weir_snapshot_stats stats;
        weir_snapshot *s;
        fixture f;
        char expire[32];
        snprintf(expire, sizeof expire, "expire: %s", rows[i].expire);
        store_open_with(&f, expire, "", false);
        assert_ok(weir_snapshot_build(f.graph, &opts, &stats));
        store_close(&f);
        assert_ok(reopen(&s));
        assert_ok(weir_snapshot_check(s));
        const weir_snapshot_vertices *a = weir_snapshot_vertices_of(s, 0);
        assert_true(weir_vertex_of(a->ids[0]) == 1 && weir_snapshot_edges_of(s, 0, WEIR_OUT)->indptr[1] == 2);
        assert_int_equal(a->lives.indptr[1], rows[i].lives);
        for (int64_t life = 0; life < rows[i].lives; life++) {
            assert_true(a->lives.times[life] == rows[i].first_us[life]);
            assert_true(a->lives.until_us[life] == rows[i].until_us[life]);
        }
        assert_int_equal(a->rows.indptr[1], rows[i].rows);
        if (rows[i].rows) assert_true(a->columns[0].numbers[0] == 1.5f && a->rows.until_us[0] == rows[i].until_us[0]);
        assert_int_equal(a->key_offsets[1], rows[i].lives ? 3 : 0);
        assert_true(stats.labels == rows[i].labels && stats.labels + stats.orphan_labels == 2);
        weir_snapshot_close(s);
        assert_ok(weir_folder_remove(weir_test_path("out")));
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

/* The sources agree on 20, so a history of 8 reaches back to 13, whatever earlier time the snapshot is of; of a later
 * one it is counted from there. Two lists of edges of 10, 20, 30; the vertex's row is of 5. */
static void z1_a_history_reaches_back_to_the_microsecond(void **state) {
    static const struct {
        const char *vertex, *relation;
        int64_t as_of_us, history_us, from_us;
        uint64_t edges;
        int64_t row_us; /* WEIR_SNAPSHOT_NEVER: it has none */
        bool deletion;
    } rows[] = {
        {"expire: never", "history: 8us, ", WEIR_BEFORE_ALL, 0, 13, 3, 5, false},
        {"expire: never", "history: 8us, expire: 2us, ", WEIR_BEFORE_ALL, 0, 13, 2, 5, false},
        {"expire: never", "history: 8us, expire: 3us, ", WEIR_BEFORE_ALL, 0, 13, 2, 5, false},
        {"expire: never", "history: 8us, expire: 4us, ", WEIR_BEFORE_ALL, 0, 13, 3, 5, false},
        {"expire: never", "history: 8us, expire: 3us, ", 31, 0, 23, 1, 5, false}, /* 20 is gone at 23 */
        {"expire: never", "history: 8us, expire: 4us, ", 31, 0, 23, 2, 5, false},
        {"expire: never", "history: 8us, expire: 4us, ", 31, 5, 26, 1, 5, false}, /* the build keeps less */
        {"expire: never", "history: 8us, expire: 4us, ", 31, 20, 23, 2, 5, false},
        {"expire: never", "history: 8us, expire: 3us, ", 15, 0, 13, 0, 5, false},
        {"expire: never", "history: 8us, expire: 4us, ", 15, 0, 13, 1, 5, false},
        {"expire: never", "history: 8us, expire: 4us, ", 12, 0, 13, 1, 5, false}, /* no time is told of */
        {"history: 3us", "", WEIR_BEFORE_ALL, 0, 18, 3, 17, false},
        {"history: 3us", "", 31, 0, 28, 3, 27, false},
        {"history: 3us", "", 18, 0, 18, 1, 17, false},
        {"history: 3us", "", 17, 0, 18, 1, WEIR_SNAPSHOT_NEVER, false},
        {"history: 3us", "history: 8us, expire: 9us, ", WEIR_BEFORE_ALL, 0, 18, 3, 17, false},
        /* It lives from 5 to 17, and from 20 on. */
        {"history: 3us, expire: 7us", "", WEIR_BEFORE_ALL, 0, 18, 3, WEIR_SNAPSHOT_NEVER, false},
        {"expire: never", "history: 16us, ", 31, 0, 15, 3, 5, true}, /* 15 sees it last */
        {"expire: never", "history: 15us, ", 31, 0, 16, 2, 5, true},
        {"history: 15us", "", 31, 0, 16, 3, 15, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const weir_snapshot_build_opts opts = {
            .out = weir_test_path("out"), .as_of_us = rows[i].as_of_us, .history_us = rows[i].history_us};
        weir_snapshot_stats stats;
        weir_snapshot *s;
        fixture f;
        store_open_with(&f, rows[i].vertex, rows[i].relation, rows[i].deletion);
        assert_int_equal(weir_graph_watermark(f.graph), rows[i].deletion ? 15 : 20);
        assert_ok(weir_snapshot_build(f.graph, &opts, &stats));
        store_close(&f);
        assert_ok(reopen(&s));
        assert_ok(weir_snapshot_check(s));
        assert_int_equal(weir_snapshot_from_us(s), rows[i].from_us);
        assert_int_equal(stats.edges, rows[i].edges);
        const weir_snapshot_vertices *a = weir_snapshot_vertices_of(s, 0);
        bool has_row = a->rows.count == 1;
        assert_true(a->rows.count < 2 && has_row == (rows[i].row_us != WEIR_SNAPSHOT_NEVER));
        if (has_row) assert_true(a->rows.times[0] == rows[i].row_us);
        weir_snapshot_close(s);
        assert_ok(weir_folder_remove(weir_test_path("out")));
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

static void folder_is(const char *name, bool there) {
    assert_true(weir_path_exists(weir_test_path(name)) == there);
}

static void z4_a_failed_build_leaves_nothing(void **state) {
    fixture f;
    weir_snapshot_stats stats;
    char spec[64];
    char out[4096];
    bool failed = true;
    weir_snapshot_build_opts opts = {.out = out, .as_of_us = WEIR_BEFORE_ALL};
    (void)state;
    snprintf(out, sizeof out, "%s", weir_test_path("out"));
    store_open(&f);
    for (unsigned nth = 1; failed; nth += nth < 40 ? 1 : 7) {
        snprintf(spec, sizeof spec, "write:%u:ENOSPC:once:/out.", nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_snapshot_build(f.graph, &opts, &stats);
        failed = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        if (failed) assert_err(err, WEIR_EFULL, "out.");
        folder_is("out", !failed);
        folder_is("out.partial", false);
        folder_is("out.spill", false);
    }
    assert_err(weir_snapshot_build(f.graph, &opts, &stats), WEIR_EEXIST, "name a new folder");
    store_close(&f);
}

/* One number of an array is changed; what check says of it. */
static void wrong_number(const char *array, uint64_t place, const void *number, size_t size, const char *why) {
    char path[256];
    char *bytes;
    size_t length, at = 128; /* a multiple of 64: where this array's numbers begin */
    weir_snapshot *s;
    snprintf(path, sizeof path, "out/%s.npy", array);
    assert_ok(weir_file_load(weir_test_path(path), 1u << 20, &bytes, &length));
    while (bytes[at - 1] != '\n')
        at -= 64;
    char kept[8];
    memcpy(kept, bytes + at + place * size, size);
    memcpy(bytes + at + place * size, number, size);
    assert_ok(weir_file_replace(weir_test_path(path), bytes, length));
    weir_err err = reopen(&s);
    if (!err) {
        err = weir_snapshot_check(s);
        weir_snapshot_close(s);
    }
    assert_err(err, WEIR_ECORRUPT, why);
    memcpy(bytes + at + place * size, kept, size);
    assert_ok(weir_file_replace(weir_test_path(path), bytes, length));
    weir_free(bytes);
}

static void z1_z2_every_kind_of_wrong_number_is_found(void **state) {
    const int64_t many = 99, minus = -1, one = 1, two = 2, hundred = 100, eleven = 11;
    const int32_t code = 7, minus_code = -2;
    const uint64_t event = 5;
    weir_snapshot_stats stats;
    weir_snapshot *s;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    wrong_number("relations/r/out/neighbors", 1, &many, 8, "is not a vertex");
    wrong_number("relations/r/out/neighbors", 1, &minus, 8, "is not a vertex");
    wrong_number("relations/r/out/indptr", 1, &many, 8, "is less than");
    wrong_number("relations/r/out/indptr", 0, &two, 8, "does not lead from 0");
    wrong_number("relations/r/in/times", 0, &hundred, 8, "is not before as_of");
    wrong_number("relations/r/in/times", 1, &two, 8, "out of order");
    wrong_number("relations/r/in/times", 2, &eleven, 8, "out and in do not have the same");
    wrong_number("relations/r/out/events", 0, &event, 8, "out and in do not have the same");
    wrong_number("vertices/a/ids", 0, &two, 8, "is not above");
    wrong_number("vertices/a/lives/first", 0, &hundred, 8, "is not before as_of");
    wrong_number("vertices/a/lives/until", 0, &two, 8, "is not after its beginning");
    wrong_number("vertices/a/lives/indptr", 1, &many, 8, "is less than");
    wrong_number("vertices/a/lives/indptr", 0, &two, 8, "does not lead from 0");
    wrong_number("vertices/a/rows/until", 0, &eleven, 8, "is not the end of a life");
    wrong_number("vertices/a/rows/times", 0, &two, 8, "is not the end of a life");
    wrong_number("vertices/a/key_offsets", 1, &minus, 8, "is less than");
    wrong_number("vertices/a/key_offsets", 0, &minus, 8, "does not begin at 0");
    wrong_number("vertices/a/feature.c", 0, &code, 4, "has no text");
    wrong_number("vertices/a/feature.c", 0, &minus_code, 4, "has no text");
    wrong_number("labels/l/targets", 0, &many, 8, "has no target");
    wrong_number("labels/l/targets", 0, &one, 8, "has a target before that of the label before it");
    wrong_number("labels/l/values", 0, &code, 4, "has no value");
    wrong_number("labels/l/times", 0, &hundred, 8, "is not before as_of");
    wrong_number("labels/l/times", 0, &two, 8, "is newer than the one before it");
    assert_ok(reopen(&s));
    assert_ok(weir_snapshot_check(s));
    weir_snapshot_close(s);
}

/* Training looks no number up before it follows it: the offsets of texts are sound as soon as a snapshot is open. */
static void wild_offsets_of_texts_are_refused_at_opening(void **state) {
    static const int64_t wild[] = {INT64_MIN, -1, 2, 255, 256, 1 << 20, INT64_MAX};
    weir_snapshot_stats stats;
    weir_snapshot *s;
    char path[4096], *bytes;
    size_t length;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    snprintf(path, sizeof path, "%s", weir_test_path("out/vertices/a/feature.c.text_offsets.npy"));
    assert_ok(weir_file_load(path, 1u << 20, &bytes, &length));
    size_t end =
        length - 8; /* {0, 1}: one more text in the middle is as many numbers as the header says and one more */
    char *more = weir_malloc(length + 8);
    assert_non_null(more);
    memcpy(more, bytes, length);
    char *count = strstr(more + 10, "(2,)");
    assert_non_null(count);
    count[1] = '3';
    memcpy(more + end + 8, bytes + end, 8);
    int64_t one = 1;
    memcpy(more + end, &one, 8);
    assert_ok(weir_file_replace(path, more, length + 8));
    assert_ok(reopen(&s)); /* the change by itself is none */
    weir_snapshot_close(s);
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        memcpy(more + end, &wild[i], 8);
        assert_ok(weir_file_replace(path, more, length + 8));
        assert_err(reopen(&s), WEIR_ECORRUPT, "feature.c.text_offsets.npy");
    }
    weir_free(more);
    weir_free(bytes);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static void every_missing_file_is_named(void **state) {
    static const char *const files[] = {
        "vertices/a/ids",        "vertices/a/lives/first",   "vertices/a/rows/indptr",
        "vertices/a/rows/until", "vertices/a/key_offsets",   "vertices/b/key_bytes",
        "vertices/a/feature.x",  "vertices/a/feature.c",     "relations/r/out/indptr",
        "relations/r/in/events", "relations/r/in/feature.w", "vertices/a/feature.c.text_bytes",
        "labels/l/values"};
    weir_snapshot_stats stats;
    weir_snapshot *s;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[256], away[512];
        snprintf(path, sizeof path, "out/%s.npy", files[i]);
        snprintf(away, sizeof away, "%s.away", weir_test_path(path));
        assert_ok(weir_file_rename(weir_test_path(path), away));
        assert_err(reopen(&s), WEIR_ECORRUPT, files[i]);
        assert_ok(weir_file_rename(away, weir_test_path(path)));
    }
}

static void manifest_with(const char *from, const char *to) {
    char *text, *place;
    size_t length;
    weir_buf out = {0};
    assert_ok(weir_file_load(weir_test_path("out/manifest.json"), 1u << 20, &text, &length));
    place = strstr(text, from);
    assert_non_null(place);
    weir_buf_append(&out, text, (size_t)(place - text));
    weir_buf_text(&out, to);
    weir_buf_text(&out, place + strlen(from));
    assert_ok(weir_file_replace(weir_test_path("out/manifest.json"), out.bytes, out.length));
    weir_buf_free(&out);
    weir_free(text);
}

static void manifests_that_lie(void **state) {
    static const struct {
        const char *from, *to;
        weir_code code;
        const char *why;
    } rows[] = {
        {"\"format\":3", "\"format\":1", WEIR_EVERSION, "build it again with weir snapshot build"},
        {"\"format\":3", "\"format\":4", WEIR_EVERSION, "has format 4"},
        {"\"rows\":1", "\"rows\":2", WEIR_ECORRUPT, "indptr"},
        {"\"deleted\":0", "\"deleted\":1", WEIR_ECORRUPT, "until.npy"},
        {"\"times\":true", "\"times\":7", WEIR_EDATA, "'times' is not true or false"},
        {"\"events\":true", "\"even\":true", WEIR_EDATA, "'events' is missing"},
        {"\"edges\":3", "\"edges\":4", WEIR_ECORRUPT, "indptr"},
        {"\"edges\":3", "\"edges\":-1", WEIR_EDATA, "whole number"},
        {"\"edges\":3", "\"edges\":[]", WEIR_EDATA, "is not a number"},
        {"\"count\":2", "\"count\":9223372036854775807", WEIR_EDATA, "whole number"},
        {"{\"name\":\"a\"", "{\"name\":{}", WEIR_EDATA, "is not a string"},
        {"{\"name\":\"a\"", "{\"name\":\"b\"", WEIR_EDATA, "is where the schema has 'a'"},
        {"\"extras\":[]", "\"extras\":[{\"name\":\"../ids\",\"columns\":1}]", WEIR_EDATA,
         "is not the name of an array"},
        {"\"extras\":[]", "\"extras\":[{\"name\":\"m\",\"columns\":1}]", WEIR_ECORRUPT, "matrix.m.npy"},
        {"\"extras\":[]", "\"extras\":7", WEIR_EDATA, "is not an array"},
        {"\"vertices\":[", "\"vertices\":[7,", WEIR_EDATA, "does not have the schema's 2 rows"},
        {"\"labels\"", "\"lables\"", WEIR_EDATA, "'labels' is missing"},
        {"\"schema\":\"", "\"schema\":\"x", WEIR_EDATA, "the snapshot's schema"},
    };
    weir_snapshot_stats stats;
    weir_snapshot *s;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        manifest_with(rows[i].from, rows[i].to);
        assert_err(reopen(&s), rows[i].code, rows[i].why);
        manifest_with(rows[i].to, rows[i].from);
    }
    assert_ok(reopen(&s));
    weir_snapshot_close(s);
}

/* One that does not say so has both; where it says that all are 0, what lies there is not looked at. */
static void times_and_events_may_be_none(void **state) {
    weir_snapshot_stats stats;
    weir_snapshot *s;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    manifest_with("\"format\":3", "\"format\":2");
    manifest_with("\"times\":true,\"events\":true,", "");
    assert_ok(reopen(&s));
    assert_ok(weir_snapshot_check(s));
    const weir_snapshot_edges *e = weir_snapshot_edges_of(s, 0, WEIR_OUT);
    assert_true(e->has_times && e->has_events && e->times[0] != 0 && e->events[0] != 0);
    weir_snapshot_close(s);

    manifest_with("\"format\":2", "\"format\":3");
    manifest_with("\"deleted\":0,", "\"deleted\":0,\"times\":false,\"events\":false,");
    assert_ok(weir_file_remove(weir_test_path("out/relations/r/out/times.npy")));
    assert_ok(weir_file_remove(weir_test_path("out/relations/r/in/events.npy")));
    assert_ok(reopen(&s));
    for (int direction = WEIR_OUT; direction <= WEIR_IN; direction++) {
        e = weir_snapshot_edges_of(s, 0, (weir_direction)direction);
        assert_true(e->edges > 0 && !e->has_times && !e->has_events);
        for (uint64_t i = 0; i < e->edges; i++)
            assert_true(e->times[i] == 0 && e->events[i] == 0);
    }
    weir_snapshot_close(s);
}

static weir_err open_and_close(void *context) {
    const weir_snapshot_opts opts = {.load = true, .verify = true};
    weir_snapshot *snapshot;
    weir_err err = weir_snapshot_open(context, &opts, &snapshot);
    if (!err) weir_snapshot_close(snapshot);
    return err;
}

static void every_allocation_of_open(void **state) {
    weir_snapshot_stats stats;
    (void)state;
    build(WEIR_BEFORE_ALL, &stats);
    weir_test_every_allocation(open_and_close, (void *)(uintptr_t)weir_test_path("out"));
}

/* Of random lives with gaps between them, the last of which may have no end. */
static void what_is_in_force_before_each_time(void **state) {
    (void)state;
    enum { MOST = 6, TIMES = 40 };
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    for (uint64_t round = 0; round < weir_test_rounds(200); round++) {
        int64_t times[MOST], until_us[MOST], indptr[2] = {0, (int64_t)weir_rng_below(&rng, MOST + 1)}, at = 0;
        for (int64_t i = 0; i < indptr[1]; i++) {
            times[i] = at += (int64_t)weir_rng_below(&rng, 5);
            until_us[i] = at += 1 + (int64_t)weir_rng_below(&rng, 5);
        }
        if (indptr[1] && weir_rng_below(&rng, 2)) until_us[indptr[1] - 1] = INT64_MAX;
        const weir_snapshot_spans spans = {(uint64_t)indptr[1], indptr, times, until_us};
        for (int64_t t = 0; t < TIMES + 2; t++) {
            int64_t before_us = t < TIMES ? t : INT64_MAX - (TIMES + 1 - t), wanted = -1;
            uint64_t place;
            for (int64_t i = 0; i < indptr[1]; i++)
                if (times[i] < before_us) wanted = before_us < until_us[i] || until_us[i] == INT64_MAX ? i : -1;
            assert_int_equal(weir_snapshot_span(&spans, 0, before_us, &place), wanted >= 0);
            if (wanted >= 0) assert_int_equal(place, wanted);
        }
    }
}

WEIR_TESTS(WEIR_CASE(z3_nothing_is_as_new_as_as_of), WEIR_CASE(the_newest_event_is_in_by_itself),
           WEIR_CASE(z4_a_failed_build_leaves_nothing), WEIR_CASE(z1_z2_every_kind_of_wrong_number_is_found),
           WEIR_CASE(wild_offsets_of_texts_are_refused_at_opening), WEIR_CASE(every_missing_file_is_named),
           WEIR_CASE(manifests_that_lie), WEIR_CASE(times_and_events_may_be_none), WEIR_CASE(every_allocation_of_open),
           WEIR_CASE(z1_a_vertex_expires_to_the_microsecond), WEIR_CASE(z1_a_history_reaches_back_to_the_microsecond),
           WEIR_CASE(what_is_in_force_before_each_time))
