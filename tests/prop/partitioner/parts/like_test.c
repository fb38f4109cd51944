/* SPDX-License-Identifier: Apache-2.0 */
/*
 * like_test.c - a later snapshot in the parts of an earlier one: who was there stays, which is looked up by id in both
 * maps; and earlier parts that are damaged, of another number, schema or graph are refused.
 */
#include <string.h>
#include <unistd.h>

#include "parts_fixture.h"

/* The graph a while later: some vertices more, and more edges of those that are there. */
static void grow(parts_world *w, uint64_t events, uint64_t more, weir_snapshot **laterp) {
    const weir_snapshot_build_opts build = {.out = weir_test_path("later"), .as_of_us = WEIR_BEFORE_ALL, .seed = 7};
    weir_snapshot_stats stats;
    for (uint64_t i = 0; i < more; i++)
        parts_submit(w, events + i);
    assert_ok(weir_graph_drain(w->graph));
    assert_ok(weir_graph_seal(w->graph));
    assert_ok(weir_snapshot_build(w->graph, &build, &stats));
    assert_ok(weir_snapshot_open(build.out, &(weir_snapshot_opts){.verify = true}, laterp));
}

static weir_parts_opts opts_like(const char *out, uint32_t parts, const char *like) {
    return (weir_parts_opts){.out = weir_test_path(out),
                             .parts = parts,
                             .method = WEIR_PARTS_LIKE,
                             .like = weir_test_path(like),
                             .seed = 1,
                             .clock = weir_clock_system()};
}

static void open_parts(const char *name, uint32_t parts, weir_part **of) {
    for (uint32_t p = 0; p < parts; p++) {
        char path[64];
        snprintf(path, sizeof path, "%s/part-%u", name, p);
        assert_ok(weir_part_open(weir_test_path(path), &(weir_part_opts){.verify = true}, &of[p]));
    }
}

static void close_parts(weir_part **of, uint32_t parts) {
    for (uint32_t p = 0; p < parts; p++)
        weir_part_close(of[p]);
}

/* The part whose own ids have it, one after the other; -1: none. */
static int owner_of(weir_part *const *of, uint32_t parts, uint32_t type, weir_vertex id) {
    for (uint32_t p = 0; p < parts; p++) {
        const weir_snapshot_vertices *v = parts_vertices_of(of[p], type);
        for (uint64_t place = 0; place < v->own; place++)
            if (weir_vertex_of(v->ids[place]) == id) return (int)p;
    }
    return -1;
}

typedef struct moved {
    uint64_t stayed, came, gone;
} moved;

static moved who_was_there_stays(const weir_snapshot *before, const weir_snapshot *after, weir_part *const *was,
                                 weir_part *const *is, uint32_t parts) {
    moved m = {0};
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        const weir_snapshot_vertices *a = weir_snapshot_vertices_of(before, type),
                                     *b = weir_snapshot_vertices_of(after, type);
        m.gone += a->count;
        for (uint64_t v = 0; v < b->count; v++) {
            weir_vertex id = weir_vertex_of(b->ids[v]);
            int then = owner_of(was, parts, type, id), now = owner_of(is, parts, type, id);
            assert_true(now >= 0 && (then < 0 || then == now));
            m.stayed += then >= 0;
            m.came += then < 0;
        }
    }
    m.gone -= m.stayed;
    return m;
}

static void cut_by_metis(const weir_snapshot *snapshot, const char *out, uint32_t parts, weir_parts_report *report) {
    const weir_parts_opts opts = {.out = weir_test_path(out), .parts = parts, .seed = 1, .clock = weir_clock_system()};
    assert_ok(weir_parts_write(snapshot, &opts, report));
}

/* Also the other way round: of the earlier snapshot in the parts of the later one some vertices are gone. */
static void who_has_a_part_stays_in_it(void **state) {
    (void)state;
    parts_world w;
    weir_snapshot *later = NULL;
    weir_part *first[4], *grown[4], *shrunk[4];
    weir_parts_report metis, like, back;
    parts_world_open(&w, 1200, 1500);
    grow(&w, 1500, 300, &later);
    cut_by_metis(w.snapshot, "first", 4, &metis);
    weir_parts_opts opts = opts_like("grown", 4, "first");
    assert_ok(weir_parts_write(later, &opts, &like));
    opts = opts_like("shrunk", 4, "grown");
    assert_ok(weir_parts_write(w.snapshot, &opts, &back));
    open_parts("first", 4, first);
    open_parts("grown", 4, grown);
    open_parts("shrunk", 4, shrunk);
    moved there = who_was_there_stays(w.snapshot, later, first, grown, 4);
    moved again = who_was_there_stays(later, w.snapshot, grown, shrunk, 4);
    assert_true(there.stayed > 0 && there.came > 0 && there.gone == 0);
    assert_true(again.stayed == there.stayed && again.came == 0 && again.gone == there.came);
    assert_true(like.like_stayed == there.stayed && like.like_new == there.came && like.like_gone == 0);
    assert_true(back.like_stayed == again.stayed && back.like_new == 0 && back.like_gone == again.gone);
    assert_true(back.rows[0].cut_edges == metis.rows[0].cut_edges); /* everyone is where he was at first */
    assert_int_equal(like.rows[0].method, WEIR_PARTS_LIKE);
    assert_int_equal(like.row_count, 3);
    assert_true(like.rows[0].cut_edges < like.rows[1].cut_edges / 2);
    close_parts(first, 4);
    close_parts(grown, 4);
    close_parts(shrunk, 4);
    weir_snapshot_close(later);
    parts_world_close(&w);
}

/* A cutting that was allowed much cannot be held to little: it says so, and what to do. */
static void what_the_earlier_parts_do_not_hold_is_said(void **state) {
    (void)state;
    parts_world w;
    weir_parts_report report;
    parts_world_open(&w, 400, 1500);
    const weir_parts_opts random = {.out = weir_test_path("random"),
                                    .parts = 5,
                                    .method = WEIR_PARTS_RANDOM,
                                    .seed = 1,
                                    .clock = weir_clock_system()};
    assert_ok(weir_parts_write(w.snapshot, &random, &report));
    weir_parts_opts opts = opts_like("strict", 5, "random");
    assert_ok(weir_parts_read_balances("degree", "1", &opts));
    assert_ok(weir_parts_write(w.snapshot, &opts, &report));
    assert_int_equal(report.balances[0].reason, WEIR_PARTS_STAYED);
    parts_report_says(&report, "not held, as what was there stays; cut anew, without --like", false);
    parts_report_says(&report, "vertices stay in their part, 0 are new, 0 are gone", false);
    parts_report_says(&report, "\"new\":0,\"gone\":0", true);
    parts_world_close(&w);
}

/* --- earlier parts that are none --------------------------------------------------------------------------------- */

static void refused(const weir_snapshot *snapshot, uint32_t parts, const char *like, weir_code code, const char *text) {
    weir_parts_report report;
    weir_parts_opts opts = opts_like("out", parts, like);
    assert_err(weir_parts_write(snapshot, &opts, &report), code, text);
    assert_false(weir_path_exists(opts.out) || weir_path_exists(weir_test_path("out.new")));
}

static void swap(const char *a, const char *b) {
    assert_ok(weir_folder_swap(weir_test_path(a), weir_test_path(b)));
}

/* The first id of part 1 is that of part 0, until it is put back. */
static void refused_with_an_id_twice(const weir_snapshot *snapshot) {
    enum { HEAD = 128, ID = 16 }; /* bytes: of an array's header, of an id */
    size_t length = 0;
    char *one = parts_slurp(weir_test_path("p/part-0/vertices/a/ids.npy"), &length);
    char *kept = parts_slurp(weir_test_path("p/part-1/vertices/a/ids.npy"), &length), *bytes = weir_malloc(length);
    assert_non_null(bytes);
    memcpy(bytes, kept, length);
    memcpy(bytes + HEAD, one + HEAD, ID);
    assert_ok(weir_file_replace(weir_test_path("p/part-1/vertices/a/ids.npy"), bytes, length));
    refused(snapshot, 3, "p", WEIR_ECORRUPT, "part-1: vertex 0 of type 'a' is owned twice");
    assert_ok(weir_file_replace(weir_test_path("p/part-1/vertices/a/ids.npy"), kept, length));
    weir_free(one);
    weir_free(kept);
    weir_free(bytes);
}

static void damaged_parts_are_refused(void **state) {
    (void)state;
    parts_world w;
    weir_parts_report report;
    size_t length = 0;
    parts_world_open(&w, 300, 900);
    cut_by_metis(w.snapshot, "p", 3, &report);
    const weir_parts_opts hash = {
        .out = weir_test_path("other"), .parts = 3, .method = WEIR_PARTS_HASH, .seed = 1, .clock = weir_clock_system()};
    assert_ok(weir_parts_write(w.snapshot, &hash, &report));
    refused(w.snapshot, 4, "p", WEIR_EINVAL, "has 3 parts, and 4 are asked for");
    refused(w.snapshot, 2, "p", WEIR_EINVAL, "has 3 parts, and 2 are asked for");
    refused(w.snapshot, 3, "nowhere", WEIR_ENOTFOUND, "is not a part: it has no manifest.json");
    refused(w.snapshot, 3, "snapshot", WEIR_ENOTFOUND, "is not a part: it has no manifest.json");
    swap("p/part-1", "p/part-2");
    refused(w.snapshot, 3, "p", WEIR_ECORRUPT, "p/part-1 does not belong beside the others");
    swap("p/part-1", "p/part-2");
    swap("p/part-1", "other/part-1");
    refused(w.snapshot, 3, "p", WEIR_ECORRUPT, "p/part-1 does not belong beside the others");
    swap("p/part-1", "other/part-1");

    refused_with_an_id_twice(w.snapshot);
    char *manifest = parts_slurp(weir_test_path("p/part-2/manifest.json"), &length);
    assert_ok(weir_file_replace(weir_test_path("p/part-2/manifest.json"), manifest, length / 2));
    refused(w.snapshot, 3, "p", WEIR_EDATA, "part-2/manifest.json");
    assert_ok(weir_file_replace(weir_test_path("p/part-2/manifest.json"), manifest, length));
    weir_free(manifest);
    assert_int_equal(truncate(weir_test_path("p/part-0/vertices/b/ids.npy"), 130), 0);
    refused(w.snapshot, 3, "p", WEIR_EDATA, "ids.npy: ");
    parts_world_close(&w);
}

/* An import of a path of nodes whose keys begin with this letter. */
static void import(const char *out, char letter, const char *column, weir_snapshot **snapshotp) {
    char nodes[4096], edges[4096];
    weir_snapshot_stats stats;
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    FILE *node_file = fopen(nodes, "w"), *edge_file = fopen(edges, "w");
    assert_true(node_file && edge_file);
    fprintf(node_file, "id,%s\n", column);
    fprintf(edge_file, "src,dst\n");
    for (unsigned i = 0; i < 40; i++) {
        fprintf(node_file, "%c%u,%u.5\n", letter, i, i);
        if (i) fprintf(edge_file, "%c%u,%c%u\n", letter, i, letter, i - 1);
    }
    assert_int_equal(fclose(node_file), 0);
    assert_int_equal(fclose(edge_file), 0);
    assert_ok(weir_snapshot_import(
        &(weir_snapshot_import_opts){.out = weir_test_path(out), .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(weir_test_path(out), &(weir_snapshot_opts){0}, snapshotp));
}

static void parts_of_another_graph_are_refused(void **state) {
    (void)state;
    weir_snapshot *mine, *other, *schema;
    weir_parts_report report;
    import("mine", 'm', "x", &mine);
    import("other", 'o', "x", &other);
    import("schema", 'm', "y", &schema);
    cut_by_metis(mine, "p", 2, &report);
    refused(other, 2, "p", WEIR_EINVAL, "have no vertex of the snapshot, as of another graph; cut anew");
    refused(schema, 2, "p", WEIR_EINVAL, "are of another schema than the snapshot");
    weir_parts_opts opts = opts_like("again", 2, "p");
    assert_ok(weir_parts_write(mine, &opts, &report));
    assert_int_equal(report.rows[0].cut_edges, 1);
    opts = opts_like("out", 2, "p");
    opts.like = NULL;
    assert_err(weir_parts_write(mine, &opts, &report), WEIR_EINVAL, "no earlier parts are named");
    weir_snapshot_close(mine);
    weir_snapshot_close(other);
    weir_snapshot_close(schema);
}

WEIR_TESTS(WEIR_CASE(who_has_a_part_stays_in_it), WEIR_CASE(what_the_earlier_parts_do_not_hold_is_said),
           WEIR_CASE(damaged_parts_are_refused), WEIR_CASE(parts_of_another_graph_are_refused))
