/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance_test.c - what a cutting's report says of balance, cut and what parts send each other, counted again from the
 * parts that were written; and the reasons it gives where more than was asked for could not be held.
 */
#include <math.h>

#include "parts_fixture.h"

/* --- counted from the parts -------------------------------------------------------------------------------------- */

/* Of a vertex, or of all that a part owns. */
typedef struct counted {
    uint64_t vertices, of_type[PARTS_TYPES], training, degree, in_edges, send;
} counted;

#define VERTICES_MAX 4096u

typedef struct recount {
    counted of[PARTS_MAX], each[VERTICES_MAX];
    uint64_t count; /* of all vertices */
    uint64_t cut, machine_cut, halo, halo_max;
} recount;

/* Of each own vertex how many targets it has: itself, and edges that start there. */
static void recount_targets(const weir_part *part, uint32_t label, counted *own) {
    const weir_snapshot_labels *labels = weir_snapshot_labels_of(weir_part_snapshot(part), label);
    const int64_t *starts = parts_edges_of(part, 0, WEIR_OUT)->indptr;
    for (uint64_t i = 0; i < labels->count; i++) {
        bool seen = false;
        uint64_t v = label == 0 ? (uint64_t)labels->targets[i] : 0;
        for (uint64_t j = 0; !seen && j < i; j++)
            seen = labels->targets[j] == labels->targets[i];
        while (label == 1 && starts[v + 1] <= labels->targets[i])
            v++;
        own[v].training += !seen;
    }
}

static void recount_edges(const weir_part *part, uint32_t relation, weir_direction direction, uint32_t parts_of_machine,
                          counted *const *own_of, recount *r) {
    const weir_schema_relation *of = weir_schema_relation_at(weir_snapshot_schema(weir_part_snapshot(part)), relation);
    const weir_snapshot_edges *e = parts_edges_of(part, relation, direction);
    const uint32_t p = weir_part_index(part), from = direction == WEIR_OUT ? of->from : of->to;
    for (uint64_t v = 0; v < parts_vertices_of(part, from)->own; v++) {
        own_of[from][v].degree += (uint64_t)(e->indptr[v + 1] - e->indptr[v]);
        own_of[from][v].in_edges += direction == WEIR_IN ? (uint64_t)(e->indptr[v + 1] - e->indptr[v]) : 0;
        for (int64_t at = e->indptr[v]; direction == WEIR_OUT && at < e->indptr[v + 1]; at++) {
            uint32_t other = weir_part_owner(part, of->to, weir_part_number(part, of->to, (uint64_t)e->neighbors[at]));
            r->cut += other != p;
            r->machine_cut += other / parts_of_machine != p / parts_of_machine;
        }
    }
}

/* Of a part of depth 0: who is here and not owned is a neighbour. */
static void recount_part(const weir_part *part, uint32_t parts_of_machine, recount *r) {
    counted *mine = &r->of[weir_part_index(part)], *own_of[PARTS_TYPES];
    const uint64_t before = r->count;
    uint64_t halo = 0;
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        const weir_snapshot_vertices *here = parts_vertices_of(part, type);
        own_of[type] = &r->each[r->count];
        assert_true(r->count + here->own <= VERTICES_MAX);
        for (uint64_t v = 0; v < here->own; v++)
            own_of[type][v] = (counted){.vertices = 1, .of_type = {type == 0, type == 1}};
        r->count += here->own;
        halo += here->count - here->own;
        for (uint64_t place = here->own; place < here->count; place++)
            r->of[weir_part_owner(part, type, weir_part_number(part, type, place))].send++;
    }
    for (uint32_t i = 0; i < 2 * PARTS_RELATIONS; i++)
        recount_edges(part, i / 2, i % 2, parts_of_machine, own_of, r);
    for (uint32_t label = 0; label < 2; label++)
        recount_targets(part, label, own_of[0]);
    for (uint64_t i = before; i < r->count; i++) {
        for (uint32_t type = 0; type < PARTS_TYPES; type++)
            mine->of_type[type] += r->each[i].of_type[type];
        mine->vertices += r->each[i].vertices;
        mine->training += r->each[i].training;
        mine->degree += r->each[i].degree;
        mine->in_edges += r->each[i].in_edges;
    }
    r->halo += halo;
    if (halo > r->halo_max) r->halo_max = halo;
}

static void recount_all(const char *name, uint32_t parts, uint32_t machines, recount *r) {
    *r = (recount){0};
    for (uint32_t p = 0; p < parts; p++) {
        char path[64];
        weir_part *part;
        snprintf(path, sizeof path, "%s/part-%u", name, p);
        assert_ok(weir_part_open(weir_test_path(path), &(weir_part_opts){.verify = true}, &part));
        assert_int_equal(weir_part_count(part), parts);
        recount_part(part, parts / machines, r);
        weir_part_close(part);
    }
}

static uint64_t count_of(const counted *c, const char *name) {
    if (strcmp(name, "vertices") == 0) return c->vertices;
    if (strcmp(name, "a") == 0) return c->of_type[0];
    if (strcmp(name, "b") == 0) return c->of_type[1];
    if (strcmp(name, "training") == 0) return c->training;
    if (strcmp(name, "in-edges") == 0) return c->in_edges;
    assert_string_equal(name, "degree");
    return c->degree;
}

/* By name of a weight, and 0 where there is nothing. */
static double balance_of(const recount *r, uint32_t parts, const char *name, uint64_t *totalp) {
    uint64_t largest = 0;
    *totalp = 0;
    for (uint32_t p = 0; p < parts; p++) {
        uint64_t count = count_of(&r->of[p], name);
        *totalp += count;
        if (count > largest) largest = count;
    }
    return *totalp ? (double)largest * parts / (double)*totalp : 0;
}

static int count_descending(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* What some part has at the least, whoever cuts: the share, and of the n * parts + 1 heaviest vertices n + 1, of which
 * the lightest are counted. */
static uint64_t naive_least(const recount *r, uint32_t parts, const char *name, uint64_t total) {
    static uint64_t heavy[VERTICES_MAX];
    uint64_t least = (total + parts - 1) / parts;
    for (uint64_t v = 0; v < r->count; v++)
        heavy[v] = count_of(&r->each[v], name);
    qsort(heavy, r->count, sizeof heavy[0], count_descending);
    for (uint64_t n = 0; n * parts < r->count; n++) {
        uint64_t together = 0;
        for (uint64_t i = n * parts - n; i <= n * parts; i++)
            together += heavy[i];
        if (together > least) least = together;
    }
    return least;
}

/* What is asked for is held, or the least of all cuttings is reached, and the report says which. Returns how many are
 * not held. */
static uint32_t held_or_the_least(const weir_parts_report *report, const recount *r) {
    uint32_t not_held = 0;
    for (uint32_t i = 0; i < report->balance_count; i++) {
        const weir_parts_held *held = &report->balances[i];
        uint64_t total = 0;
        double reached = balance_of(r, report->parts, held->name, &total), share = (double)total / report->parts;
        double least = (double)naive_least(r, report->parts, held->name, total) / share;
        const bool is_held = reached <= held->asked + 1e-9;
        char says[256];
        assert_true(held->least <= least + 1e-9);
        if (!is_held && reached > least + 1e-9)
            fail_msg("%s of %u parts: %.4f of at most %.4f, and %.4f is not known to be impossible", held->name,
                     report->parts, reached, held->asked, least);
        snprintf(says, sizeof says, "balance of %s: %.3f of at most %.3f: %s", held->name, reached, held->asked,
                 is_held ? "held\n" : "the least, as ");
        parts_report_says(report, says, false);
        not_held += !is_held;
    }
    return not_held;
}

static void report_is_what_was_written(const weir_parts_report *report, const recount *r) {
    const weir_parts_quality *q = &report->rows[0];
    uint64_t total = 0, send_max = 0, send = 0;
    for (uint32_t p = 0; p < report->parts; p++) {
        send += r->of[p].send;
        if (r->of[p].send > send_max) send_max = r->of[p].send;
    }
    assert_int_equal(q->cut_edges, r->cut);
    assert_int_equal(q->machine_cut_edges, r->machine_cut);
    assert_int_equal(q->halo, r->halo);
    assert_int_equal(q->halo, send);
    assert_int_equal(q->halo_max, r->halo_max);
    assert_int_equal(q->send_max, send_max);
    assert_true(fabs(q->vertex_balance - balance_of(r, report->parts, "vertices", &total)) < 1e-9);
    assert_true(fabs(q->training_balance - balance_of(r, report->parts, "training", &total)) < 1e-9);
    assert_true(fabs(q->degree_balance - balance_of(r, report->parts, "degree", &total)) < 1e-9);
    for (uint32_t i = 0; i < report->balance_count; i++) {
        const weir_parts_held *held = &report->balances[i];
        double reached = balance_of(r, report->parts, held->name, &total);
        assert_int_equal(held->total, total);
        assert_true(fabs(held->reached - reached) < 1e-9);
        assert_int_equal(held->reason == WEIR_PARTS_HELD, reached <= held->asked + 1e-9);
        assert_true(held->reached >= held->least - 1e-9);
    }
}

/* --- cases ------------------------------------------------------------------------------------------------------- */

static void write_parts(const weir_snapshot *snapshot, const char *name, uint32_t parts, uint32_t machines,
                        const char *balances, const char *tolerances, weir_parts_report *report) {
    weir_parts_opts opts = {
        .out = weir_test_path(name), .parts = parts, .machines = machines, .seed = 3, .clock = weir_clock_system()};
    assert_ok(weir_parts_read_balances(balances, tolerances, &opts));
    assert_ok(weir_parts_write(snapshot, &opts, report));
}

typedef struct balance_case {
    const char *balances, *tolerances; /* NULL: the default */
    uint32_t parts, machines;
} balance_case;

static uint32_t reports_are_what_was_written(uint64_t vertices, uint64_t events, const balance_case *cases,
                                             size_t count) {
    static recount r;
    uint32_t not_held = 0;
    parts_world w;
    weir_parts_report report;
    parts_world_open(&w, vertices, events);
    for (size_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "case-%zu", i);
        write_parts(w.snapshot, name, cases[i].parts, cases[i].machines, cases[i].balances, cases[i].tolerances,
                    &report);
        recount_all(name, cases[i].parts, cases[i].machines, &r);
        if (cases[i].balances && strncmp(cases[i].balances, "validation", 10) == 0) {
            /* There are no masks, so nothing of this is counted. */
            assert_string_equal(report.balances[0].name, "validation");
            assert_int_equal(report.balances[0].total, 0);
            report.balances[0] = report.balances[--report.balance_count];
        }
        report_is_what_was_written(&report, &r);
        not_held += held_or_the_least(&report, &r);
    }
    parts_world_close(&w);
    return not_held;
}

static void the_report_is_what_was_written(void **state) {
    (void)state;
    static const balance_case cases[] = {{NULL, NULL, 4, 1},
                                         {"types,degree", NULL, 6, 1},
                                         {"training", "1.1", 5, 5},
                                         {"vertices,training,degree", "1.03,1.05,1.1", 12, 3},
                                         {"validation,degree", NULL, 16, 4},
                                         {"in-edges", NULL, 8, 1},
                                         {"vertices,types,training,degree,in-edges", "1.1", 4, 1}};
    reports_are_what_was_written(2000, 6000, cases, sizeof cases / sizeof cases[0]);
}

/* By the usual tolerances: 1.03, and 1.05 of edges. */
static const char *const typed_balances[] = {NULL, "types,training,degree", "types,training,in-edges"};

static void of_types_all_is_held_or_the_least(uint32_t parts, size_t first, size_t count) {
    balance_case cases[3];
    for (size_t i = 0; i < count; i++)
        cases[i] = (balance_case){typed_balances[first + i], NULL, parts, 1};
    reports_are_what_was_written(2000, 6000, cases, count);
}

static void in_4_parts_of_types_all_is_held_or_the_least(void **state) {
    (void)state;
    of_types_all_is_held_or_the_least(4, 0, 3);
}

static void in_16_parts_of_types_all_is_held_or_the_least(void **state) {
    (void)state;
    of_types_all_is_held_or_the_least(16, 0, 3);
}

/* Every file of 64 parts is synced, so a case has one cutting. */
static void in_64_parts_of_types_what_is_usual_is_held_or_the_least(void **state) {
    (void)state;
    of_types_all_is_held_or_the_least(64, 0, 1);
}

static void in_64_parts_of_types_degree_is_held_or_the_least(void **state) {
    (void)state;
    of_types_all_is_held_or_the_least(64, 1, 1);
}

static void in_64_parts_of_types_in_edges_are_held_or_the_least(void **state) {
    (void)state;
    of_types_all_is_held_or_the_least(64, 2, 1);
}

/* Four or five of type b are a part's share: five are above 1.03 times that. */
static void in_64_parts_of_few_vertices_the_least_has_a_reason(void **state) {
    (void)state;
    const balance_case few = {"types", NULL, 64, 1};
    assert_true(reports_are_what_was_written(600, 3000, &few, 1) > 0);
}

/* What is there stays, and the rest is counted as of any other cutting. */
static void the_report_of_placed_parts_is_what_was_written(void **state) {
    (void)state;
    const weir_snapshot_build_opts build = {.out = weir_test_path("later"), .as_of_us = WEIR_BEFORE_ALL, .seed = 7};
    weir_snapshot_stats stats;
    weir_snapshot *later;
    static recount r;
    parts_world w;
    weir_parts_report report;
    parts_world_open(&w, 2000, 5000);
    write_parts(w.snapshot, "before", 6, 1, NULL, NULL, &report);
    for (uint64_t i = 5000; i < 6000; i++)
        parts_submit(&w, i);
    assert_ok(weir_graph_drain(w.graph));
    assert_ok(weir_graph_seal(w.graph));
    assert_ok(weir_snapshot_build(w.graph, &build, &stats));
    assert_ok(weir_snapshot_open(build.out, &(weir_snapshot_opts){.verify = true}, &later));
    weir_parts_opts opts = {.out = weir_test_path("after"),
                            .parts = 6,
                            .machines = 2,
                            .method = WEIR_PARTS_LIKE,
                            .like = weir_test_path("before"),
                            .clock = weir_clock_system()};
    assert_ok(weir_parts_write(later, &opts, &report));
    recount_all("after", 6, 2, &r);
    report_is_what_was_written(&report, &r);
    assert_int_equal(report.like_stayed + report.like_new, report.vertices);
    assert_true(report.like_new > 0 && report.like_gone == 0);
    weir_snapshot_close(later);
    parts_world_close(&w);
}

/* An import with masks: 61 nodes of two types in a star, from node 0 to each other one. */
static void import_star(weir_snapshot **snapshotp) {
    char nodes[4096], edges[4096];
    weir_snapshot_stats stats;
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    FILE *node_file = fopen(nodes, "w"), *edge_file = fopen(edges, "w");
    assert_true(node_file && edge_file);
    fprintf(node_file, "id,type,mask.train,mask.val,mask.test\n");
    fprintf(edge_file, "src,dst\n");
    for (unsigned i = 0; i <= 60; i++) {
        fprintf(node_file, "%u,%s,%d,%d,%d\n", i, i ? "leaf" : "hub", i % 3 == 1, i % 6 == 2, i % 10 == 3);
        if (i) fprintf(edge_file, "0,%u\n", i);
    }
    assert_int_equal(fclose(node_file), 0);
    assert_int_equal(fclose(edge_file), 0);
    assert_ok(weir_snapshot_import(
        &(weir_snapshot_import_opts){.out = weir_test_path("star"), .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(weir_test_path("star"), &(weir_snapshot_opts){0}, snapshotp));
}

static void what_cannot_be_held_has_a_reason(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_parts_report report;
    import_star(&snapshot);
    write_parts(snapshot, "degree", 4, 1, "degree", NULL, &report); /* 60 of 120 are the hub's */
    assert_int_equal(report.balances[0].reason, WEIR_PARTS_HEAVIEST);
    assert_true(report.balances[0].reached == 2 && report.balances[0].least == 2);
    parts_report_says(&report, "balance of degree: 2.000 of at most 1.050: the least, as one vertex has as much",
                      false);
    parts_report_says(&report,
                      "\"of\":\"degree\",\"total\":120,\"asked\":1.05,\"reached\":2,\"least\":2,\"held\":false", true);

    write_parts(snapshot, "masks", 3, 1, "training,validation,test", "1", &report); /* 20, 10 and 6 */
    assert_int_equal(report.balances[0].total, 20);
    assert_int_equal(report.balances[0].reason, WEIR_PARTS_WHOLE);
    assert_true(fabs(report.balances[0].reached - 7 * 3 / 20.0) < 1e-9);
    assert_int_equal(report.balances[1].total, 10);
    assert_int_equal(report.balances[1].reason, WEIR_PARTS_WHOLE);
    assert_int_equal(report.balances[2].total, 6);
    assert_int_equal(report.balances[2].reason, WEIR_PARTS_HELD);
    parts_report_says(&report, "balance of training: 1.050 of at most 1.000: the least, as the sum is no multiple",
                      false);

    write_parts(snapshot, "both", 4, 1, "vertices,degree", "1.05", &report); /* 61: three parts of 16 leave 13 */
    assert_int_equal(report.balances[0].reason, WEIR_PARTS_HELD);
    assert_int_equal(report.balances[1].reason, WEIR_PARTS_BESIDE);
    assert_true(fabs(report.balances[1].reached - (60 + 12) / 30.0) < 1e-9);
    parts_report_says(&report, "not held beside the other weights, and by itself at least 2.000", false);
    write_parts(snapshot, "machines", 4, 2, "vertices", "1.05", &report);
    parts_report_says(&report, "2 machines of 2 parts: ", false);

    write_parts(snapshot, "types", 4, 1, "types", NULL, &report);
    assert_string_equal(report.balances[0].name, "hub");
    assert_string_equal(report.balances[1].name, "leaf");
    assert_true(report.balances[1].reached == 1);
    weir_snapshot_close(snapshot);
}

static void options_that_are_wrong_are_said(void **state) {
    (void)state;
    weir_parts_opts opts = {0};
    assert_err(weir_parts_read_balances("vertices,edges", NULL, &opts), WEIR_EUSAGE, "'edges' is nothing to balance");
    assert_err(weir_parts_read_balances("", NULL, &opts), WEIR_EUSAGE, "'' is nothing to balance");
    assert_err(weir_parts_read_balances("test,", NULL, &opts), WEIR_EUSAGE, "'' is nothing to balance");
    assert_err(weir_parts_read_balances("test,test", NULL, &opts), WEIR_EUSAGE, "'test' is there twice");
    assert_err(weir_parts_read_balances("test", "0.9", &opts), WEIR_EUSAGE, "the tolerance '0.9' is not a number");
    assert_err(weir_parts_read_balances("test", "1.1x", &opts), WEIR_EUSAGE, "the tolerance '1.1x' is not a number");
    assert_err(weir_parts_read_balances("test", "nan", &opts), WEIR_EUSAGE, "the tolerance 'nan' is not a number");
    assert_err(weir_parts_read_balances("test", "", &opts), WEIR_EUSAGE, "the tolerance '' is not a number");
    assert_err(weir_parts_read_balances("test", "1.1,1.2", &opts), WEIR_EUSAGE, "2 tolerances for 1 weights");
    assert_err(weir_parts_read_balances(NULL, "1.1,1.2", &opts), WEIR_EUSAGE, "2 tolerances for 3 weights");
    assert_ok(weir_parts_read_balances(NULL, "1.1", &opts));
    assert_int_equal(opts.balance_count, 3);
    assert_true(opts.balances[2].weight == WEIR_PARTS_DEGREE && opts.balances[2].tolerance == 1.1);
    assert_ok(weir_parts_read_balances("types,test", "1.1,2", &opts));
    assert_int_equal(opts.balance_count, 2);
    assert_true(opts.balances[1].weight == WEIR_PARTS_TEST && opts.balances[1].tolerance == 2);
}

static void machines_that_do_not_divide_parts_are_refused(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_parts_report report;
    import_star(&snapshot);
    const weir_parts_opts opts = {
        .out = weir_test_path("out"), .parts = 6, .machines = 4, .clock = weir_clock_system()};
    assert_err(weir_parts_write(snapshot, &opts, &report), WEIR_EINVAL,
               "6 parts cannot be shared out among 4 machines");
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(the_report_is_what_was_written), WEIR_CASE(in_4_parts_of_types_all_is_held_or_the_least),
           WEIR_CASE(in_16_parts_of_types_all_is_held_or_the_least),
           WEIR_CASE(in_64_parts_of_types_what_is_usual_is_held_or_the_least),
           WEIR_CASE(in_64_parts_of_types_degree_is_held_or_the_least),
           WEIR_CASE(in_64_parts_of_types_in_edges_are_held_or_the_least),
           WEIR_CASE(in_64_parts_of_few_vertices_the_least_has_a_reason),
           WEIR_CASE(the_report_of_placed_parts_is_what_was_written), WEIR_CASE(what_cannot_be_held_has_a_reason),
           WEIR_CASE(options_that_are_wrong_are_said), WEIR_CASE(machines_that_do_not_divide_parts_are_refused))
