/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lift_test.c - edges that become vertices: the same snapshot, byte by byte, as of two files in which they are vertices
 * from the beginning; what is declared of them; events and times of labels through export and import.
 */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/snapshot/snapshot.h>

#define PEOPLE 9u
#define PLACES 4u
#define EDGES  60u

/* Two files as a user has them, and two as somebody would write who knows what is to come out. */
typedef struct books {
    FILE *nodes, *edges, *by_hand_nodes, *by_hand_edges;
} books;

static FILE *book(const char *name) {
    FILE *file = fopen(weir_test_path(name), "w");
    assert_non_null(file);
    return file;
}

static books open_books(void) {
    return (books){book("nodes.csv"), book("edges.csv"), book("hand_nodes.csv"), book("hand_edges.csv")};
}

static void close_books(const books *b) {
    assert_int_equal(fclose(b->nodes) | fclose(b->edges) | fclose(b->by_hand_nodes) | fclose(b->by_hand_edges), 0);
}

static void write_book(const char *name, const char *text) {
    FILE *file = book(name);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static weir_err import(const char *out, bool by_hand, const char *as_vertices, const char *declare) {
    char paths[4][256];
    weir_snapshot_stats stats;
    const char *names[] = {out, by_hand ? "hand_nodes.csv" : "nodes.csv", by_hand ? "hand_edges.csv" : "edges.csv",
                           declare ? declare : ""};
    for (size_t i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i], "%s", weir_test_path(names[i]));
    bool has_nodes = weir_path_exists(paths[1]);
    return weir_snapshot_import(&(weir_snapshot_import_opts){.out = paths[0],
                                                             .nodes = has_nodes ? paths[1] : NULL,
                                                             .edges = paths[2],
                                                             .as_vertices = as_vertices,
                                                             .declare = declare ? paths[3] : NULL,
                                                             .origin = "books"},
                                &stats);
}

/* The checksums of all files. */
static void same(const char *a, const char *b) {
    char *texts[2], path[64];
    size_t lengths[2];
    for (int side = 0; side < 2; side++) {
        snprintf(path, sizeof path, "%s/MANIFEST", side ? b : a);
        assert_ok(weir_file_load(weir_test_path(path), 1u << 20, &texts[side], &lengths[side]));
    }
    assert_string_equal(texts[0], texts[1]);
    weir_free(texts[0]);
    weir_free(texts[1]);
}

static weir_snapshot *opened(const char *name) {
    weir_snapshot *snapshot = NULL;
    assert_ok(weir_snapshot_open(weir_test_path(name), &(weir_snapshot_opts){.verify = true}, &snapshot));
    assert_ok(weir_snapshot_check(snapshot));
    return snapshot;
}

typedef struct fact {
    const char *id, *type, *age, *label, *stars, *kind, *time, *held;
} fact;

/* A line of nodes as somebody writes it who knows the order of columns. */
static void put_fact(FILE *file, bool timed, bool with_nodes, fact f) {
    fprintf(file, "%s,%s", f.id, f.type);
    if (with_nodes) fprintf(file, ",%s,%s,%s,%s", f.age, f.label, f.stars, f.kind);
    if (!with_nodes) fprintf(file, ",%s,%s,%s", f.stars, f.kind, f.label);
    if (timed) fprintf(file, ",%s", f.time);
    fprintf(file, ",%s\n", f.held);
}

static void begin_books(const books *b, bool timed, bool with_nodes) {
    fprintf(b->nodes, "id,type,age,label\n");
    put_fact(b->by_hand_nodes, timed, with_nodes,
             (fact){"id", "type", "age", "label", "stars", "kind", "timestamp", "mask.held"});
    fprintf(b->edges, "src,stars,dst,type,kind,label,src_type%s,mask.held,dst_type\n", timed ? ",timestamp" : "");
    fprintf(b->by_hand_edges, "src,dst,type,src_type,dst_type,timestamp,event_id,stars,kind,label,mask.held\n");
    for (uint32_t i = 0; with_nodes && i < PEOPLE + PLACES; i++) {
        const char *type = i < PEOPLE ? "person" : "place";
        char id[16], age[16];
        snprintf(id, sizeof id, "%u", i);
        snprintf(age, sizeof age, "%u", 3 * i);
        fprintf(b->nodes, "%s,%s,%s,%s\n", id, type, age, i % 3 == 2 ? "" : i % 3 ? "odd" : "even");
        put_fact(b->by_hand_nodes, timed, true,
                 (fact){id, type, age,
                        i % 3 == 2 ? ""
                        : i % 3    ? "odd"
                                   : "even",
                        "", "", "", ""});
    }
}

/* Names with what CSV must quote; an edge of another type stays one. */
static void draw_books(weir_rng *rng, bool timed, bool with_nodes) {
    static const char *const kinds[] = {"plain", "\"a,b\"", "\"x \"\"y\"\"\"", ""};
    bool met[PEOPLE + PLACES] = {false};
    books b = open_books();
    begin_books(&b, timed, with_nodes);
    for (uint32_t i = 1; i <= EDGES; i++) {
        const uint64_t ends[] = {weir_rng_below(rng, PEOPLE), PEOPLE + weir_rng_below(rng, PLACES)};
        const bool judged = weir_rng_below(rng, 4) > 0;
        const char *kind = kinds[weir_rng_below(rng, 4)], *held = weir_rng_below(rng, 2) ? "1" : "0";
        const char *label = judged ? (const char *[]){"", "0", "1"}[weir_rng_below(rng, 3)] : "";
        char time[32] = "", event[16] = "", stars[16], key[32], id[16];
        if (timed) snprintf(time, sizeof time, "%u.5", 1000 + i / 3);
        if (timed) snprintf(event, sizeof event, "%u", i);
        snprintf(stars, sizeof stars, "%u", (unsigned)weir_rng_below(rng, 6));
        snprintf(key, sizeof key, "review/%u", i);
        fprintf(b.edges, "%u,%s,%u,%s,%s,%s,person%s%s,%s,place\n", (unsigned)ends[0], stars, (unsigned)ends[1],
                judged ? "review" : "visit", kind, label, timed ? "," : "", time, held);
        for (uint32_t end = 0; end < 2 && !with_nodes; end++) {
            snprintf(id, sizeof id, "%u", (unsigned)ends[end]);
            if (!met[ends[end]])
                put_fact(b.by_hand_nodes, timed, false, (fact){id, end ? "place" : "person", "", "", "", "", "", ""});
            met[ends[end]] = true;
        }
        if (!judged) {
            fprintf(b.by_hand_edges, "%u,%u,visit,person,place,%s,,%s,%s,,%s\n", (unsigned)ends[0], (unsigned)ends[1],
                    time, stars, kind, held);
            continue;
        }
        put_fact(b.by_hand_nodes, timed, with_nodes, (fact){key, "review", "", label, stars, kind, time, held});
        for (uint32_t end = 0; end < 2; end++)
            fprintf(b.by_hand_edges, "%s,%u,review_%s,review,%s,%s,%s,%s,%s,,\n", key, (unsigned)ends[end],
                    end ? "dst" : "src", end ? "place" : "person", time, event, stars, kind);
    }
    close_books(&b);
    if (!with_nodes) assert_int_equal(remove(weir_test_path("nodes.csv")), 0);
}

static void edges_as_vertices_are_as_by_hand(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    (void)state;
    for (uint64_t round = 0; round < weir_test_rounds(12); round++) {
        draw_books(&rng, round & 1, round & 2);
        assert_ok(import("lifted", false, "review", NULL));
        assert_ok(import("hand", true, NULL, NULL));
        same("lifted", "hand");
        assert_false(weir_path_exists(weir_test_path("lifted.lift")));
        assert_ok(weir_folder_remove(weir_test_path("lifted")));
        assert_ok(weir_folder_remove(weir_test_path("hand")));
        remove(weir_test_path("nodes.csv"));
    }
}

/* A vertex that was an edge sees its own two edges, though they are as old as it is: after an export, too. */
static void own_edges_come_with_one_event(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    (void)state;
    draw_books(&rng, true, true);
    assert_ok(import("one", false, "review", NULL));
    weir_snapshot *snapshot = opened("one");
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    const uint32_t type = weir_schema_vertex_find(schema, "review");
    assert_int_not_equal(type, WEIR_SCHEMA_NONE);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, type);
    assert_true(v->count > 0);
    for (uint64_t i = 0; i < v->count; i++) {
        uint64_t event;
        char key[32];
        assert_ok(weir_snapshot_event_of_put(snapshot, type, i, v->lives.times[v->lives.indptr[i]], &event));
        snprintf(key, sizeof key, "review/%llu", (unsigned long long)event);
        assert_memory_equal(v->key_bytes + v->key_offsets[i], key, strlen(key));
    }
    assert_ok(weir_snapshot_export(snapshot, WEIR_SNAPSHOT_CSV, weir_test_path("csv")));
    weir_snapshot_close(snapshot);
    for (size_t i = 0; i < 2; i++) {
        char from[32], to[300];
        snprintf(from, sizeof from, i ? "csv/edges.csv" : "csv/nodes.csv");
        snprintf(to, sizeof to, "%s", weir_test_path(i ? "edges.csv" : "nodes.csv"));
        assert_int_equal(rename(weir_test_path(from), to), 0);
    }
    assert_ok(import("two", false, NULL, NULL));
    snapshot = opened("two");
    schema = weir_snapshot_schema(snapshot);
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++)
        assert_int_equal(weir_snapshot_edges_of(snapshot, r, WEIR_OUT)->has_events,
                         strcmp(weir_schema_relation_at(schema, r)->name, "visit") != 0);
    weir_snapshot_close(snapshot);
    same("one", "two");
}

static void what_is_declared_is_in_the_schema(void **state) {
    (void)state;
    write_book("nodes.csv", "id,type\na,person\nb,place\n");
    write_book("edges.csv", "src,dst,type,timestamp,label,label_time\na,b,review,10,1,17.25\na,b,review,11,0,\n");
    write_book("good.yaml",
               "tasks:\n  spam: {kind: classify, label: review_label, positive: \"1\"}\n"
               "aggregates:\n  known: {vertex: person, relation: review_src, function: count, window: 1d,\n"
               "          label: review_label, is: \"1\"}\n");
    assert_ok(import("good", false, "review", "good.yaml"));
    weir_snapshot *snapshot = opened("good");
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    assert_int_equal(weir_schema_task_count(schema), 1);
    assert_string_equal(weir_schema_task_at(schema, 0)->name, "spam");
    assert_int_equal(weir_schema_aggregate_count(schema), 1);
    const weir_snapshot_labels *labels = weir_snapshot_labels_of(snapshot, 0);
    assert_int_equal(labels->count, 2);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(labels->times[i], labels->values[i] == 1 ? 17250000 : 11000000);
    weir_snapshot_close(snapshot);
    write_book("wrong.yaml",
               "aggregates:\n  known: {vertex: person, relation: nothing, function: count, window: 1d}\n");
    assert_err(import("wrong", false, "review", "wrong.yaml"), WEIR_ECONFIG, "wrong.yaml:2:");
    write_book("other.yaml", "vertices:\n  person: {}\n");
    assert_err(import("wrong", false, "review", "other.yaml"), WEIR_ECONFIG, "vertices");
    assert_err(import("wrong", false, "review", "none.yaml"), WEIR_ENOTFOUND, "none.yaml");
    weir_snapshot_stats stats;
    char out[256], edges[256], good[256];
    snprintf(out, sizeof out, "%s", weir_test_path("wrong"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    snprintf(good, sizeof good, "%s", weir_test_path("good.yaml"));
    const weir_snapshot_import_opts both = {.out = out,
                                            .edges = edges,
                                            .as_vertices = "review",
                                            .declare = good,
                                            .recommend = "review_src",
                                            .horizon_us = 1};
    assert_err(weir_snapshot_import(&both, &stats), WEIR_EUSAGE, "--recommend");
    assert_false(weir_path_exists(weir_test_path("wrong")));
    assert_false(weir_path_exists(weir_test_path("wrong.lift")));
}

static void what_cannot_become_vertices_is_refused(void **state) {
    (void)state;
    const weir_snapshot_import_opts none = {.out = "x", .edges = "x", .as_vertices = "review", .undirected = true};
    weir_snapshot_stats stats;
    assert_err(weir_snapshot_import(&none, &stats), WEIR_EUSAGE, "direction");
    write_book("nodes.csv", "id,type\na,review\nb,place\n");
    write_book("edges.csv", "src,dst,type\na,b,review\n");
    assert_err(import("out", false, "review", NULL), WEIR_EDATA, "nodes.csv:2: 'review' is a type of vertices already");
    write_book("nodes.csv", "id,type\na,person\nb,place\n");
    assert_err(import("out", false, "review,reviews", NULL), WEIR_ENOTFOUND, "no edge is of type 'reviews'");
    assert_err(import("out", false, "", NULL), WEIR_EUSAGE, "names no type of edges");
    write_book("edges.csv", "src,to,type\na,b,review\n");
    assert_err(import("out", false, "review", NULL), WEIR_EDATA, "lacks the columns 'src' and 'dst'");
    write_book("edges.csv", "src,dst,type,event_id\na,b,visit,0\n");
    assert_err(import("out", false, NULL, NULL), WEIR_EDATA, "is not a whole number above 0");
    write_book("edges.csv", "src,dst,type,event_id\na,b,visit,18446744073709551616\n");
    assert_err(import("out", false, NULL, NULL), WEIR_EDATA, "is not a whole number above 0");
    write_book("edges.csv", "src,dst,type,id\na,b,review,twice\nb,a,review,twice\n");
    assert_err(import("out", false, "review", NULL), WEIR_EDATA, "edges.csv:3: an earlier edge has the id 'twice'");
    write_book("edges.csv", "src,dst,type,timestamp,label,label_time\na,b,review,5,1,4\na,b,review,6,0,6\n");
    assert_err(import("out", false, "review", NULL), WEIR_EDATA, "is before the row's timestamp");
    write_book("nodes.csv", "id,type\na,a_b\nb,place\n");
    write_book("edges.csv", "src,dst,type\na,b,a.b\n");
    assert_err(import("out", false, "a.b", NULL), WEIR_EDATA, "is a type of vertices already");
    assert_int_equal(remove(weir_test_path("nodes.csv")), 0);
    write_book("edges.csv", "src,dst,type,dst_type\na,b,review,review\n");
    assert_err(import("out", false, "review", NULL), WEIR_EDATA, "is a type of vertices already");
    assert_err(import("out", false, "node,review", NULL), WEIR_EDATA, "'node' is a type of vertices already");
    const weir_snapshot_import_opts skips = {.out = "x", .edges = "x", .as_vertices = "review", .skip = "a,event_id"};
    assert_err(weir_snapshot_import(&skips, &stats), WEIR_EUSAGE, "--skip leaves out a column");
    assert_false(weir_path_exists(weir_test_path("out")));
    assert_false(weir_path_exists(weir_test_path("out.lift")));
}

/* Where only some edges have a time, and where events are given: an edge that becomes a vertex has one of its own. */
static void events_are_drawn_where_there_are_none(void **state) {
    (void)state;
    write_book("nodes.csv", "id,type\na,person\nb,place\n");
    write_book("edges.csv", "src,dst,type,timestamp,event_id\na,b,review,,\na,b,review,7,\na,b,review,9,1\n"
                            "a,b,visit,9,50\n");
    assert_ok(import("some", false, "review", NULL));
    weir_snapshot *snapshot = opened("some");
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    const weir_snapshot_edges *src = weir_snapshot_edges_of(snapshot, weir_schema_relation_find(schema, "review_src"),
                                                            WEIR_OUT),
                              *dst = weir_snapshot_edges_of(snapshot, weir_schema_relation_find(schema, "review_dst"),
                                                            WEIR_OUT);
    assert_int_equal(src->edges, 3);
    for (uint64_t i = 0; i < 3; i++) {
        const uint64_t drawn = src->times[i] == 9000000 ? 1 : src->times[i] == 7000000 ? 52 : 51;
        assert_int_equal(src->events[i], drawn);
        assert_int_equal(dst->events[i], drawn);
    }
    weir_snapshot_close(snapshot);
}

static void memory_may_end_anywhere_in_a_lift(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_alloc_stats before, after;
    (void)state;
    draw_books(&rng, true, false);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth += 1 + weir_rng_below(&rng, 40)) {
        weir_alloc_stats_get(&before);
        weir_alloc_fail_nth(nth);
        weir_err err = import("out", false, "review", NULL);
        failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        weir_alloc_stats_get(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
        if (!failed || !err) assert_ok(err); /* a store does without a little of what it asks for */
        if (err) assert_err(err, WEIR_ENOMEM, NULL);
        bool whole = weir_path_exists(weir_test_path("out")); /* or not there; the last to fail is to tidy up */
        if (!err) assert_true(whole);
        if (whole) weir_snapshot_close(opened("out"));
        static const char *const folders[] = {"out", "out.lift", "out.store"};
        for (size_t i = 0; i < 3; i++)
            if (weir_path_exists(weir_test_path(folders[i]))) assert_ok(weir_folder_remove(weir_test_path(folders[i])));
    }
}

WEIR_TESTS(WEIR_CASE(edges_as_vertices_are_as_by_hand), WEIR_CASE(own_edges_come_with_one_event),
           WEIR_CASE(what_is_declared_is_in_the_schema), WEIR_CASE(what_cannot_become_vertices_is_refused),
           WEIR_CASE(events_are_drawn_where_there_are_none), WEIR_CASE(memory_may_end_anywhere_in_a_lift))
