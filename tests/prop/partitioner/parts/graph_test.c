/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_test.c - random graphs of several types seen as one, against pairs that are sorted: each edge is put once for
 * either end, as the direction `out` has it. And the same in memory and in files: lists, and every cutting of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/partitioner/cut/cut.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "plan.h"
#include "weir_test.h"

#define HUB_ENDS 5000u /* above what is sorted in a small graph */

/* --- graphs ------------------------------------------------------------------------------------------------------ */

static uint32_t round_of;

static const char *path_of(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "%s-%u", name, round_of);
    return weir_test_path(path);
}

static void put_edge(weir_buf *edges, char from, uint64_t a, char to, uint64_t b, const char *type) {
    weir_buf_printf(edges, "%c%llu,%c%llu,%s,%llu\n", from, (unsigned long long)a, to, (unsigned long long)b, type,
                    1700000000 + (unsigned long long)(a * 7 + b) % 1000);
}

/* Types a, b and c, of which c has few edges; a relation of a with itself, with loops; repeated edges; and maybe a hub,
 * which has a loop and repeated edges too. */
static void open_random(weir_rng *rng, bool hub, weir_snapshot **snapshotp) {
    weir_buf nodes = {0}, edges = {0};
    weir_snapshot_stats stats;
    const uint64_t a = 2 + weir_rng_below(rng, 900), b = 1 + weir_rng_below(rng, 400),
                   near = 1 + weir_rng_below(rng, a);
    char out[4096], nodes_path[4096], edges_path[4096];
    weir_buf_text(&nodes, "id,type\n");
    weir_buf_text(&edges, "src,dst,type,timestamp\n");
    for (uint64_t i = 0; i < a; i++)
        weir_buf_printf(&nodes, "a%llu,first\n", (unsigned long long)i);
    for (uint64_t i = 0; i < b; i++)
        weir_buf_printf(&nodes, "b%llu,second\n", (unsigned long long)i);
    for (uint64_t i = 0; i < 5; i++)
        weir_buf_printf(&nodes, "c%llu,third\n", (unsigned long long)i);
    for (uint64_t i = 0, count = 3 + weir_rng_below(rng, 6 * a); i < count; i++) {
        const uint64_t v = weir_rng_below(rng, a), other = (v + weir_rng_below(rng, near)) % a;
        if (weir_rng_below(rng, 2))
            put_edge(&edges, 'a', v, 'a', other, "within");
        else
            put_edge(&edges, 'a', v, 'b', other % b, "across");
    }
    for (uint32_t i = 0; hub && i < HUB_ENDS; i++)
        put_edge(&edges, 'a', 0, 'a', i % 50 ? weir_rng_below(rng, a) : 0, "within");
    put_edge(&edges, 'b', 0, 'c', 0, "away");
    put_edge(&edges, 'a', 0, 'b', 0, "across");
    put_edge(&edges, 'a', 0, 'a', 0, "within");
    snprintf(nodes_path, sizeof nodes_path, "%s", path_of("nodes"));
    snprintf(edges_path, sizeof edges_path, "%s", path_of("edges"));
    snprintf(out, sizeof out, "%s", path_of("snapshot"));
    assert_ok(weir_buf_err(&nodes));
    assert_ok(weir_buf_err(&edges));
    assert_ok(weir_file_replace(nodes_path, nodes.bytes, nodes.length));
    assert_ok(weir_file_replace(edges_path, edges.bytes, edges.length));
    const weir_snapshot_import_opts import = {.out = out, .nodes = nodes_path, .edges = edges_path};
    assert_ok(weir_snapshot_import(&import, &stats));
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){.verify = true}, snapshotp));
    weir_buf_free(&nodes);
    weir_buf_free(&edges);
}

/* --- the same, naively ------------------------------------------------------------------------------------------- */

typedef struct pair {
    uint64_t a, b;
} pair;

static int by_ends(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static pair *pairs_of(const weir_snapshot *snapshot, size_t *countp) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint64_t first[WEIR_SCHEMA_VERTICES_MAX + 1] = {0};
    size_t count = 0, edges = 0;
    for (uint32_t type = 0; type < weir_schema_vertex_count(schema); type++)
        first[type + 1] = first[type] + weir_snapshot_vertices_of(snapshot, type)->count;
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++)
        edges += weir_snapshot_edges_of(snapshot, r, WEIR_OUT)->edges;
    pair *pairs = calloc(2 * edges + 1, sizeof *pairs);
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, r);
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, r, WEIR_OUT);
        for (uint64_t v = 0; v < e->vertices; v++) {
            for (int64_t i = e->indptr[v]; i < e->indptr[v + 1]; i++) {
                const uint64_t a = first[relation->from] + v, b = first[relation->to] + (uint64_t)e->neighbors[i];
                if (a == b) continue;
                pairs[count++] = (pair){a, b};
                pairs[count++] = (pair){b, a};
            }
        }
    }
    qsort(pairs, count, sizeof *pairs, by_ends);
    *countp = count;
    return pairs;
}

static void is_as_the_pairs_are(const weir_parts_graph *g, const pair *pairs, size_t count) {
    uint64_t at = 0;
    size_t i = 0;
    for (uint64_t v = 0; v < g->vertices; v++) {
        assert_int_equal(g->indptr[v], at);
        for (; i < count && pairs[i].a == v; at++) {
            size_t begin = i;
            while (i < count && by_ends(&pairs[i], &pairs[begin]) == 0)
                i++;
            assert_true(at < g->lists.count);
            assert_int_equal(g->lists.neighbors[at], pairs[begin].b);
            assert_int_equal(g->lists.edge_weights[at], i - begin);
        }
    }
    assert_int_equal(g->indptr[g->vertices], at);
    assert_int_equal(g->lists.count, at);
}

/* --- cases ------------------------------------------------------------------------------------------------------- */

static const weir_parts_opts no_masks = {.parts = 0};

static weir_parts_budget budget_in(bool file) {
    weir_parts_budget budget = {.edges_in_file = file};
    snprintf(budget.scratch, sizeof budget.scratch, "%s", weir_test_path("scratch"));
    return budget;
}

static void lists_are_those_of_sorted_pairs(void **state) {
    (void)state;
    for (uint64_t rounds = weir_test_rounds(24); round_of < rounds; round_of++) {
        weir_rng rng = weir_rng_stream(weir_test_seed(), round_of, 0);
        weir_snapshot *snapshot;
        size_t count;
        open_random(&rng, round_of % 3 == 0, &snapshot);
        pair *pairs = pairs_of(snapshot, &count);
        for (int file = 0; file < 2; file++) {
            const weir_parts_budget budget = budget_in(file);
            weir_parts_graph graph;
            assert_ok(weir_parts_graph_open(snapshot, &no_masks, &budget, &graph));
            assert_true((graph.lists.memory[0] == NULL) == (file == 1));
            is_as_the_pairs_are(&graph, pairs, count);
            weir_parts_graph_close(&graph);
        }
        free(pairs);
        weir_snapshot_close(snapshot);
    }
}

/* METIS on the whole graph (memory 0) or on clusters alone (1), between machines or not. */
static void cut_both(const weir_parts_graph *memory, const weir_parts_graph *file, const int64_t *weights,
                     uint32_t machines, uint64_t memory_bytes) {
    static const double tolerance[2] = {1.03, 1.1};
    const weir_parts_graph *graphs[2] = {memory, file};
    int32_t *part_of[2];
    for (int f = 0; f < 2; f++) {
        const weir_parts_graph *g = graphs[f];
        const weir_metis_graph weighed = {.vertices = g->vertices,
                                          .indptr = g->indptr,
                                          .neighbors = g->lists.neighbors,
                                          .edge_weights = g->lists.edge_weights,
                                          .constraints = 2,
                                          .vertex_weights = weights};
        const weir_cut_opts opts = {.parts = 4,
                                    .machines = machines,
                                    .tolerance = tolerance,
                                    .seed = 3,
                                    .memory_bytes = memory_bytes,
                                    .scratch = f ? weir_test_path("levels") : NULL};
        part_of[f] = calloc(g->vertices, sizeof *part_of[f]);
        assert_ok(weir_cut(&weighed, &opts, part_of[f]));
    }
    assert_memory_equal(part_of[0], part_of[1], memory->vertices * sizeof *part_of[0]);
    free(part_of[0]);
    free(part_of[1]);
}

static void files_do_not_change_a_cutting(void **state) {
    (void)state;
    for (uint64_t rounds = weir_test_rounds(12); round_of < rounds; round_of++) {
        weir_rng rng = weir_rng_stream(weir_test_seed(), 1000 + round_of, 0);
        const weir_parts_budget in_memory = budget_in(false), in_file = budget_in(true);
        weir_parts_graph memory, file;
        weir_snapshot *snapshot;
        open_random(&rng, round_of % 4 == 0, &snapshot);
        assert_ok(weir_parts_graph_open(snapshot, &no_masks, &in_memory, &memory));
        assert_ok(weir_parts_graph_open(snapshot, &no_masks, &in_file, &file));
        int64_t *weights = calloc(2 * memory.vertices, sizeof *weights);
        for (uint64_t v = 0; v < memory.vertices; v++) {
            weights[2 * v] = 1;
            weights[2 * v + 1] = memory.indptr[v + 1] - memory.indptr[v];
        }
        for (uint32_t machines = 1; machines <= 2; machines++) {
            cut_both(&memory, &file, weights, machines, 0);
            cut_both(&memory, &file, weights, machines, 1);
        }
        free(weights);
        weir_parts_graph_close(&memory);
        weir_parts_graph_close(&file);
        weir_snapshot_close(snapshot);
    }
}

/* --- the option -------------------------------------------------------------------------------------------------- */

static weir_parts_opts opts_of(const char *out, uint64_t memory_bytes) {
    return (weir_parts_opts){.out = out,
                             .parts = 2,
                             .method = WEIR_PARTS_METIS,
                             .seed = 1,
                             .memory_bytes = memory_bytes,
                             .clock = weir_clock_system()};
}

/* The least that is not refused. */
static uint64_t least_of(const weir_snapshot *snapshot) {
    uint64_t low = 1, high = UINT64_C(1) << 40;
    weir_parts_budget budget;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const weir_parts_opts opts = opts_of("x", middle);
        if (weir_parts_budget_of(snapshot, &opts, &budget))
            low = middle;
        else
            high = middle;
    }
    return high;
}

static bool same_map(const char *a, const char *b, const char *type) {
    char path[2][4096], *bytes[2];
    size_t length[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/map/%s.npy", i ? b : a, type);
        assert_ok(weir_file_load(path[i], 1u << 24, &bytes[i], &length[i]));
    }
    bool same = length[0] == length[1] && memcmp(bytes[0], bytes[1], length[0]) == 0;
    weir_free(bytes[0]);
    weir_free(bytes[1]);
    return same;
}

static void a_budget_moves_edges_into_files(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2000, 0);
    weir_snapshot *snapshot;
    weir_parts_budget budget;
    weir_parts_report report;
    open_random(&rng, true, &snapshot);
    const uint64_t least = least_of(snapshot), bytes[] = {0, UINT64_C(1) << 30, least, least - 1};
    const bool in_file[] = {false, false, true};
    static const char *const outs[] = {"o0", "o1", "new/o2"}; /* the folder comes with the scratch file */
    for (int i = 0; i < 3; i++) {
        const weir_parts_opts opts = opts_of(weir_test_path(outs[i]), bytes[i]);
        assert_ok(weir_parts_budget_of(snapshot, &opts, &budget));
        assert_int_equal(budget.edges_in_file, in_file[i]);
        assert_ok(weir_parts_write(snapshot, &opts, &report));
    }
    assert_true(same_map(weir_test_path("o0"), weir_test_path("o1"), "first"));
    assert_false(weir_path_exists(weir_test_path("new/o2.scratch")));

    const weir_parts_opts refused = opts_of(weir_test_path("o3"), bytes[3]);
    assert_err(weir_parts_write(snapshot, &refused, &report), WEIR_ELIMIT,
               "weights to balance: 3, take 17 MiB of memory");
    const weir_parts_opts full = opts_of(weir_test_path("o4"), least);
    assert_ok(weir_fault_arm("write:1:ENOSPC:scratch"));
    assert_err(weir_parts_write(snapshot, &full, &report), WEIR_EFULL, "free space on that disk");
    assert_ok(weir_fault_arm(NULL));
    assert_false(weir_path_exists(weir_test_path("o3")) || weir_path_exists(weir_test_path("o4.new")) ||
                 weir_path_exists(weir_test_path("o4.scratch")));
    weir_snapshot_close(snapshot);
}

/* Where METIS fits only beside edges in files, these lie there: fewer edges are cut so. */
static void metis_comes_before_edges_in_memory(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2000, 0);
    weir_snapshot *snapshot;
    bool whole_in_file = false, whole_in_memory = false;
    open_random(&rng, true, &snapshot);
    const weir_parts_budget none = budget_in(false);
    weir_parts_graph graph;
    assert_ok(weir_parts_graph_open(snapshot, &no_masks, &none, &graph));
    const weir_metis_graph whole = {.vertices = graph.vertices, .constraints = 3};
    const uint64_t metis = weir_cut_metis_bytes(&whole, graph.lists.count), least = least_of(snapshot);
    uint64_t ends = 0; /* before they are merged */
    for (uint32_t i = 0; i < weir_schema_relation_count(weir_snapshot_schema(snapshot)); i++)
        ends += 2 * weir_snapshot_edges_of(snapshot, i, WEIR_OUT)->edges;
    const uint64_t all = weir_cut_metis_bytes(&whole, ends) + ends * WEIR_CUT_END_BYTES;
    for (uint64_t bytes = least; bytes < least + 2 * all; bytes += all / 64) {
        weir_parts_budget budget;
        const weir_parts_opts opts = opts_of("x", bytes);
        assert_ok(weir_parts_budget_of(snapshot, &opts, &budget));
        graph.budget = &budget;
        const bool fits = metis <= weir_parts_budget_of_metis(&graph, 3);
        assert_true(fits || !whole_in_file); /* and more memory never takes METIS away */
        whole_in_file = whole_in_file || (fits && budget.edges_in_file);
        whole_in_memory = whole_in_memory || (fits && !budget.edges_in_file);
    }
    assert_true(whole_in_file && whole_in_memory);
    weir_parts_graph_close(&graph);
    weir_snapshot_close(snapshot);
}

static weir_err open_without_memory(void *context) {
    const weir_parts_budget budget = budget_in(true);
    weir_parts_graph graph;
    weir_err err = weir_parts_graph_open(context, &no_masks, &budget, &graph);
    if (!err) weir_parts_graph_close(&graph);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3000, 0);
    weir_snapshot *snapshot;
    open_random(&rng, true, &snapshot);
    weir_test_every_allocation(open_without_memory, snapshot);
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(lists_are_those_of_sorted_pairs), WEIR_CASE(files_do_not_change_a_cutting),
           WEIR_CASE(a_budget_moves_edges_into_files), WEIR_CASE(metis_comes_before_edges_in_memory),
           WEIR_CASE(every_allocation_may_fail))
