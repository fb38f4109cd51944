/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_test.c - random graphs cut into parts, beside what METIS gives by itself. What a part has and what is cut is
 * counted from an array of all pairs, or edge by edge; no code of the cutting is used for it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/partitioner/cut/cut.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

#define WEIGHTS_MAX 4u

/* --- graphs ------------------------------------------------------------------------------------------------------ */

typedef struct pair {
    uint64_t a, b;
} pair;

typedef struct world {
    weir_rng rng;
    pair *edges;
    size_t edge_count;
    int64_t *indptr, *vertex_weights;
    uint32_t *neighbors, *edge_weights;
    weir_metis_graph graph;
    double tolerance[WEIGHTS_MAX];
} world;

static uint64_t below(world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

static void world_open(world *w, uint64_t stream, size_t edges_max) {
    *w = (world){.rng = weir_rng_stream(weir_test_seed(), stream, 0)};
    w->edges = calloc(edges_max + 1, sizeof *w->edges);
    assert_non_null(w->edges);
}

static int by_ends(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* The lists of w->edges, of which none is a loop; a repeated edge weighs more. Weights are 1, or -1: the degree. */
static void world_link(world *w, uint64_t vertices, uint32_t weights, int64_t weight) {
    size_t count = 2 * w->edge_count, kept = 0;
    pair *ends = calloc(count + 1, sizeof *ends);
    for (size_t i = 0; i < w->edge_count; i++) {
        assert_true(w->edges[i].a != w->edges[i].b);
        ends[2 * i] = w->edges[i];
        ends[2 * i + 1] = (pair){w->edges[i].b, w->edges[i].a};
    }
    qsort(ends, count, sizeof *ends, by_ends);
    w->indptr = calloc(vertices + 1, sizeof *w->indptr);
    w->neighbors = calloc(count + 1, sizeof *w->neighbors);
    w->edge_weights = calloc(count + 1, sizeof *w->edge_weights);
    w->vertex_weights = calloc(vertices * weights + 1, sizeof *w->vertex_weights);
    for (size_t i = 0; i < count; i++) {
        if (i && by_ends(&ends[i], &ends[i - 1]) == 0) {
            w->edge_weights[kept - 1]++;
            continue;
        }
        w->neighbors[kept] = (uint32_t)ends[i].b;
        w->edge_weights[kept++] = 1;
        w->indptr[ends[i].a + 1]++;
    }
    free(ends);
    for (uint64_t v = 0; v < vertices; v++) {
        int64_t degree = w->indptr[v + 1];
        w->indptr[v + 1] += w->indptr[v];
        for (uint32_t c = 0; c < weights; c++)
            w->vertex_weights[v * weights + c] = weight < 0 ? degree : weight;
    }
    for (uint32_t c = 0; c < weights; c++)
        w->tolerance[c] = 1.03;
    w->graph = (weir_metis_graph){.vertices = vertices,
                                  .indptr = w->indptr,
                                  .neighbors = w->neighbors,
                                  .edge_weights = w->edge_weights,
                                  .constraints = weights,
                                  .vertex_weights = w->vertex_weights};
}

static void world_close(world *w) {
    free(w->edges);
    free(w->indptr);
    free(w->neighbors);
    free(w->edge_weights);
    free(w->vertex_weights);
}

static void add_edge(world *w, uint64_t a, uint64_t b) {
    if (a != b) w->edges[w->edge_count++] = (pair){a, b};
}

/* Clusters of any size, some hubs, some vertices without edges; each weight is of all vertices, of few, or lumpy. */
static void world_random(world *w, uint64_t stream) {
    world_open(w, stream, 20000);
    uint64_t n = 40 + below(w, 3000), linked = n - below(w, n / 3), clusters = 1 + below(w, 40);
    for (uint64_t i = 0, edges = below(w, 5 * n); i < edges; i++) {
        uint64_t a = below(w, 8) ? below(w, linked) : below(w, 1 + linked / 50), b = below(w, linked);
        if (below(w, 10)) b = (b / clusters * clusters + a % clusters) % linked;
        add_edge(w, a, b);
    }
    uint32_t weights = 1 + (uint32_t)below(w, WEIGHTS_MAX);
    world_link(w, n, weights, 1);
    for (uint32_t c = 0; c < weights; c++) {
        uint64_t kind = below(w, 4);
        w->tolerance[c] = 1.01 + (double)below(w, 10) / 100;
        for (uint64_t v = 0; v < n; v++) {
            int64_t degree = w->indptr[v + 1] - w->indptr[v];
            int64_t lump = below(w, 50) ? (int64_t)below(w, 4) : (int64_t)below(w, 200);
            int64_t few = !below(w, 10);
            w->vertex_weights[v * weights + c] = kind == 0 ? 1 : kind == 1 ? degree : kind == 2 ? few : lump;
        }
    }
}

/* --- counting ---------------------------------------------------------------------------------------------------- */

static int64_t cut_of(const world *w, const int32_t *part_of) {
    int64_t cut = 0;
    for (size_t i = 0; i < w->edge_count; i++)
        cut += part_of[w->edges[i].a] != part_of[w->edges[i].b];
    return cut;
}

static int64_t largest_of(const world *w, uint32_t c, uint32_t parts, const int32_t *part_of) {
    int64_t largest = 0;
    for (uint32_t p = 0; p < parts; p++) {
        int64_t sum = 0;
        for (uint64_t v = 0; v < w->graph.vertices; v++) {
            assert_in_range(part_of[v], 0, parts - 1);
            if (part_of[v] == (int32_t)p) sum += w->vertex_weights[v * w->graph.constraints + c];
        }
        if (sum > largest) largest = sum;
    }
    return largest;
}

static int64_t sum_of(const world *w, uint32_t c) {
    int64_t sum = 0;
    for (uint64_t v = 0; v < w->graph.vertices; v++)
        sum += w->vertex_weights[v * w->graph.constraints + c];
    return sum;
}

static int64_t least_of(const world *w, uint32_t c, uint32_t parts) {
    weir_cut_bound bound;
    int64_t least = 0;
    assert_ok(weir_cut_least(&w->graph, c, parts, w->tolerance[c], &least, &bound));
    return least;
}

static int64_t most_of(const world *w, uint32_t c, uint32_t parts) {
    int64_t most = (int64_t)floor((double)sum_of(w, c) / parts * w->tolerance[c]), least = least_of(w, c, parts);
    return most > least ? most : least;
}

/* What all parts have above what is allowed, as shares of a part. */
static double excess_of(const world *w, uint32_t parts, const int32_t *part_of) {
    double excess = 0;
    for (uint32_t c = 0; c < w->graph.constraints; c++) {
        double share = (double)sum_of(w, c) / parts;
        for (uint32_t p = 0; p < parts; p++) {
            int64_t sum = 0, most = most_of(w, c, parts);
            for (uint64_t v = 0; v < w->graph.vertices; v++)
                if (part_of[v] == (int32_t)p) sum += w->vertex_weights[v * w->graph.constraints + c];
            if (sum > most) excess += (double)(sum - most) / share;
        }
    }
    return excess;
}

static int32_t *parts_by(const world *w, const weir_cut_opts *opts) {
    int32_t *part_of = calloc(w->graph.vertices + 1, sizeof *part_of);
    assert_non_null(part_of);
    assert_ok(weir_cut(&w->graph, opts, part_of));
    return part_of;
}

static int32_t *parts_of(const world *w, uint32_t parts, uint32_t machines, uint64_t memory) {
    const weir_cut_opts opts = {
        .parts = parts, .machines = machines, .tolerance = w->tolerance, .seed = 7, .memory_bytes = memory};
    return parts_by(w, &opts);
}

/* --- cases ------------------------------------------------------------------------------------------------------- */

/* What a quick cut finds, the other one finds, too, and goes on. */
static void quick_is_never_better(void **state) {
    (void)state;
    uint64_t rounds = weir_test_rounds(10) / weir_test_part(5, 1);
    for (uint64_t round = 0; round < rounds; round++) {
        world w;
        world_random(&w, round);
        uint32_t parts = 2 + (uint32_t)below(&w, 11);
        const weir_cut_opts opts = {
            .parts = parts, .machines = 1, .tolerance = w.tolerance, .seed = 7, .memory_bytes = 0, .quick = true};
        int32_t *thorough = parts_of(&w, parts, 1, 0), *quick = parts_by(&w, &opts);
        double a = excess_of(&w, parts, thorough), b = excess_of(&w, parts, quick);
        assert_true(a <= b + 1e-6);
        if (b < 1e-6) assert_true(cut_of(&w, thorough) <= cut_of(&w, quick));
        free(thorough);
        free(quick);
        world_close(&w);
    }
}

/* Never worse than METIS: less above the limits, or no more and a cut that is no larger. */
static void never_worse_than_metis(void **state) {
    (void)state;
    uint64_t held = 0, rounds = weir_test_rounds(25) / weir_test_part(3, 1);
    for (uint64_t round = 0; round < rounds; round++) {
        world w;
        world_random(&w, round);
        uint32_t parts = 2 + (uint32_t)below(&w, 11);
        double tolerance[WEIGHTS_MAX];
        weir_metis_graph metis = w.graph;
        bool some = true;
        for (uint32_t c = 0; c < w.graph.constraints; c++)
            some = some && sum_of(&w, c) > 0;
        int32_t *ours = parts_of(&w, parts, 1, 0), *theirs = calloc(w.graph.vertices, sizeof *theirs);
        for (uint32_t c = 0; some && c < w.graph.constraints; c++)
            tolerance[c] = fmax((double)most_of(&w, c, parts) * parts / (double)sum_of(&w, c), 1.001);
        metis.tolerance = tolerance;
        if (some) {
            const size_t bytes = (size_t)w.indptr[w.graph.vertices] * sizeof *w.neighbors;
            uint32_t *before = calloc(2, bytes + 1);
            memcpy(before, w.neighbors, bytes);
            memcpy((char *)before + bytes, w.edge_weights, bytes);
            assert_ok(weir_metis_partition(&metis, parts, 7, theirs));
            assert_memory_equal(before, w.neighbors, bytes); /* METIS of 32 bits was given them, not a copy */
            assert_memory_equal((char *)before + bytes, w.edge_weights, bytes);
            free(before);
            double a = excess_of(&w, parts, ours), b = excess_of(&w, parts, theirs);
            assert_true(a <= b + 1e-6);
            if (b < 1e-6) assert_true(cut_of(&w, ours) <= cut_of(&w, theirs));
            held += a < 1e-6;
        }
        free(ours);
        free(theirs);
        world_close(&w);
    }
    printf("all weights held in %llu of %llu graphs\n", (unsigned long long)held, (unsigned long long)rounds);
    assert_true(held > rounds / 2);
}

static void same_arguments_same_parts(void **state) {
    (void)state;
    world w;
    world_random(&w, 1000);
    int32_t *a = parts_of(&w, 6, 2, 0), *b = parts_of(&w, 6, 2, 0);
    assert_memory_equal(a, b, w.graph.vertices * sizeof *a);
    free(a);
    free(b);
    world_close(&w);
}

/* Rings of ten, each joined to the next by one edge: as many parts as rings, or fewer, cut only those. */
static void rings(world *w, uint64_t count) {
    world_open(w, count, 23 * count);
    for (uint64_t ring = 0; ring < count; ring++) {
        for (uint64_t i = 0; i < 10; i++) {
            add_edge(w, 10 * ring + i, 10 * ring + (i + 1) % 10);
            add_edge(w, 10 * ring + i, 10 * ring + (i + 3) % 10);
        }
        if (ring) add_edge(w, 10 * ring, 10 * ring - 1);
    }
}

/* Nobody counts so far with 32 bits. */
static void weights_past_32_bits_are_cut(void **state) {
    (void)state;
    world w;
    rings(&w, 8);
    world_link(&w, 80, 2, INT64_C(1) << 40);
    for (uint64_t turn = 0; turn < 4; turn++) {
        const uint64_t memory = turn % 2;
        for (int64_t i = 0; i < w.indptr[80]; i++)
            w.edge_weights[i] = turn < 2 ? 1u << 26 : 1u << 31;
        int32_t *part_of = parts_of(&w, 4, 1, memory);
        assert_int_equal(cut_of(&w, part_of), 3);
        for (uint32_t c = 0; c < 2; c++)
            assert_true(largest_of(&w, c, 4, part_of) == INT64_C(20) << 40);
        free(part_of);
    }
    world_close(&w);
}

/* 480 rings, each joined to the next by two heavy edges and to some other by a light one, are coarsened. What the heavy
 * ones weigh together is more than 32 bits hold. Then it is as much as these do, and not what is left of it, which is
 * nothing: the light edges would decide. */
static void sums_past_32_bits_are_cut(void **state) {
    (void)state;
    enum { COUNT = 480, PARTS = 12 };
    world w;
    uint64_t heavy_cut = 0;
    rings(&w, COUNT);
    for (uint64_t ring = 1; ring < COUNT; ring++)
        add_edge(&w, 10 * ring + 1, 10 * ring - 2);
    const size_t heavy = w.edge_count;
    for (uint64_t ring = 0; ring < COUNT; ring++)
        add_edge(&w, 10 * ring + 5, 10 * (ring * 7 % COUNT) + 5);
    world_link(&w, 10 * COUNT, 1, 1);
    for (uint64_t v = 0; v < 10 * COUNT; v++)
        for (int64_t i = w.indptr[v]; i < w.indptr[v + 1]; i++)
            if (v % 10 != 5 || w.neighbors[i] % 10 != 5) w.edge_weights[i] = 1u << 31;
    int32_t *part_of = parts_of(&w, PARTS, 1, 1);
    assert_true(largest_of(&w, 0, PARTS, part_of) <= 10 * COUNT / PARTS * 103 / 100);
    for (size_t i = 0; i < heavy; i++)
        heavy_cut += part_of[w.edges[i].a] != part_of[w.edges[i].b];
    printf("%llu heavy edges cut\n", (unsigned long long)heavy_cut);
    assert_true(heavy_cut >= 2 * (PARTS - 1) && heavy_cut <= 10 * (PARTS - 1));
    free(part_of);
    world_close(&w);
}

/* 4,000 rings are coarsened; METIS never sees the whole graph. */
static void little_memory_finds_the_clusters(void **state) {
    (void)state;
    world w;
    rings(&w, 4000);
    world_link(&w, 40000, 1, 1);
    int32_t *part_of = parts_of(&w, 8, 1, 1);
    assert_true(largest_of(&w, 0, 8, part_of) <= 40000 / 8 * 103 / 100);
    assert_true(cut_of(&w, part_of) <= 200); /* of 83,999 edges; at random it would be seven of eight */
    free(part_of);
    world_close(&w);
}

static void machines_have_parts_one_after_the_other(void **state) {
    (void)state;
    world w;
    rings(&w, 480);
    world_link(&w, 4800, 1, 1);
    int32_t *part_of = parts_of(&w, 12, 3, 0);
    assert_true(largest_of(&w, 0, 12, part_of) <= 412);
    int64_t between_parts = cut_of(&w, part_of);
    for (uint64_t v = 0; v < 4800; v++)
        part_of[v] /= 4;
    assert_true(largest_of(&w, 0, 3, part_of) <= 1648);
    int64_t between_machines = cut_of(&w, part_of);
    assert_true(between_machines >= 2 && between_machines <= between_parts && between_parts <= 40);
    free(part_of);
    world_close(&w);
}

/* Of the two weights, that of vertices is held; and the part with the hub has no more leaves than the other parts have
 * no room for. */
static void a_star_has_its_hub_in_the_least_possible(void **state) {
    (void)state;
    world w;
    world_open(&w, 1, 1000);
    for (uint64_t leaf = 1; leaf <= 1000; leaf++)
        add_edge(&w, 0, leaf);
    world_link(&w, 1001, 2, -1);
    for (uint64_t v = 0; v <= 1000; v++)
        w.vertex_weights[2 * v] = 1;
    w.tolerance[1] = 1.05;
    weir_cut_bound bound;
    int64_t least = 0;
    assert_ok(weir_cut_least(&w.graph, 1, 4, 1.05, &least, &bound));
    assert_int_equal(bound, WEIR_CUT_HEAVIEST);
    assert_int_equal(least, 1000);
    int32_t *part_of = parts_of(&w, 4, 1, 0);
    int64_t room = 257; /* 1.03 × 1001 / 4 */
    assert_true(largest_of(&w, 0, 4, part_of) <= room);
    assert_int_equal(largest_of(&w, 1, 4, part_of), 1000 + (1001 - 3 * room) - 1);
    free(part_of);
    for (uint64_t v = 0; v <= 1000; v++) /* by degree alone, the hub is alone */
        w.vertex_weights[2 * v] = w.vertex_weights[2 * v + 1];
    w.tolerance[0] = 1.05;
    part_of = parts_of(&w, 4, 1, 0);
    assert_int_equal(largest_of(&w, 1, 4, part_of), 1000);
    free(part_of);
    world_close(&w);
}

/* Three hubs of two parts' share each and many leaves of little: each hub in a part of its own. */
static void hubs_have_parts_of_their_own(void **state) {
    (void)state;
    world w;
    world_open(&w, 2, 6000);
    for (uint64_t i = 0; i < 3000; i++)
        add_edge(&w, i % 3, 3 + i);
    world_link(&w, 4003, 2, -1);
    for (uint64_t v = 0; v < 4003; v++)
        w.vertex_weights[2 * v] = 1;
    w.tolerance[0] = 1.4; /* so much that parts of a hub need few leaves */
    int32_t *part_of = parts_of(&w, 12, 1, 0);
    assert_true(part_of[0] != part_of[1] && part_of[1] != part_of[2] && part_of[0] != part_of[2]);
    assert_int_equal(largest_of(&w, 1, 12, part_of), 1000);
    assert_true(largest_of(&w, 0, 12, part_of) <= 467);
    free(part_of);
    world_close(&w);
}

static int by_degree(const void *a, const void *b) {
    return -by_ends(a, b);
}

/* R-MAT of 2^bits vertices. */
static void hubs(world *w, uint64_t stream, unsigned bits, size_t edges) {
    world_open(w, stream, edges);
    for (size_t i = 0; i < edges; i++) {
        uint64_t a = 0, b = 0;
        for (unsigned bit = 0; bit < bits; bit++) {
            const uint64_t quadrant = below(w, 100);
            a |= (uint64_t)(quadrant >= 76) << bit;
            b |= (uint64_t)((quadrant >= 57 && quadrant < 76) || quadrant >= 95) << bit;
        }
        add_edge(w, a, b);
    }
}

/* What a few lines would do: vertices by degree, an equal number in each part. Of a graph of hubs that cuts less than
 * any search for clusters, and neither METIS on the whole graph nor clusters in little memory may be worse. */
static void hubs_lie_together(void **state) {
    (void)state;
    const uint64_t n = 1u << 12;
    world w;
    hubs(&w, 11, 12, 40000);
    world_link(&w, n, 1, 1);
    pair *order = calloc(n, sizeof *order);
    int32_t *filled = calloc(n, sizeof *filled);
    for (uint64_t v = 0; v < n; v++)
        order[v] = (pair){(uint64_t)(w.indptr[v + 1] - w.indptr[v]), v};
    qsort(order, n, sizeof *order, by_degree);
    for (uint32_t parts = 4; parts <= 64; parts *= 4) {
        for (uint64_t i = 0; i < n; i++)
            filled[order[i].b] = (int32_t)(i * parts / n);
        for (uint64_t memory = 0; memory < 2; memory++) {
            int32_t *part_of = parts_of(&w, parts, 1, memory);
            assert_true(largest_of(&w, 0, parts, part_of) <= most_of(&w, 0, parts));
            if (cut_of(&w, part_of) > cut_of(&w, filled) * 101 / 100)
                fail_msg("%u parts, memory %d: %lld edges are cut, and %lld where parts are filled by degree", parts,
                         (int)memory, (long long)cut_of(&w, part_of), (long long)cut_of(&w, filled));
            free(part_of);
        }
    }
    free(order);
    free(filled);
    world_close(&w);
}

/* Parts that no number divides, weights that few vertices have or none, and a hub above a share: to lie together must
 * not go so far that a part has nothing. */
static void hubs_leave_no_part_empty(void **state) {
    (void)state;
    static const struct {
        uint64_t vertices;
        uint32_t parts, machines;
    } cuts[] = {{130, 64, 1}, {1000, 64, 1}, {1000, 60, 4}, {1000, 7, 1}, {1000, 2, 1}};
    for (unsigned i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        for (unsigned kind = 0; kind < 4; kind++) {                /* alike; a few only; none; one above a share */
            const unsigned bits = cuts[i].vertices == 130 ? 7 : 9; /* who is beyond them knows nobody */
            const uint64_t n = cuts[i].vertices;
            world w;
            hubs(&w, 12 + i, bits, 4000);
            world_link(&w, n, 2, 1);
            for (uint64_t v = 0; v < n; v++)
                w.vertex_weights[2 * v + 1] = kind == 1 ? v % 37 == 0 : kind == 2 ? 0 : kind == 3 && v == 0 ? 5000 : 1;
            for (uint64_t memory = 0; memory < 2; memory++) {
                bool there[64] = {false};
                int32_t *part_of = parts_of(&w, cuts[i].parts, cuts[i].machines, memory);
                for (uint64_t v = 0; v < n; v++)
                    there[part_of[v]] = true;
                for (uint32_t p = 0; p < cuts[i].parts; p++)
                    if (!there[p]) fail_msg("cut %u, kind %u: part %u of %u is empty", i, kind, p, cuts[i].parts);
                free(part_of);
            }
            world_close(&w);
        }
    }
}

static void lonely_vertices_are_shared_out(void **state) {
    (void)state;
    world w;
    world_open(&w, 3, 2000);
    for (uint64_t i = 0; i < 1000; i++)
        add_edge(&w, i, (i + 1 + below(&w, 5)) % 1000);
    world_link(&w, 20000, 2, -1);
    for (uint64_t v = 0; v < 20000; v++)
        w.vertex_weights[2 * v] = 1;
    w.tolerance[1] = 1.05;
    for (uint32_t parts = 4; parts <= 64; parts *= 4) {
        int32_t *part_of = parts_of(&w, parts, 1, 0);
        assert_true(largest_of(&w, 0, parts, part_of) <= most_of(&w, 0, parts));
        assert_true(largest_of(&w, 1, parts, part_of) <= most_of(&w, 1, parts));
        free(part_of);
    }
    world_close(&w);
}

static void as_many_parts_as_vertices(void **state) {
    (void)state;
    world w;
    rings(&w, 1);
    world_link(&w, 10, 1, 1);
    int32_t *part_of = parts_of(&w, 10, 5, 0), unused[10];
    assert_int_equal(largest_of(&w, 0, 10, part_of), 1);
    free(part_of);
    part_of = parts_of(&w, 9, 1, 0);
    assert_int_equal(largest_of(&w, 0, 9, part_of), 2);
    free(part_of);
    weir_cut_opts opts = {.parts = 11, .machines = 1, .tolerance = w.tolerance, .seed = 1};
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_ELIMIT, "11 parts of 10 vertices would leave some empty");
    w.graph.vertices = (uint64_t)WEIR_METIS_VERTICES_MAX + 1;
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_ELIMIT, "more than the 4294967293 that can be cut");
    w.graph.vertices = 10;
    opts.parts = 4;
    opts.machines = 3;
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_EINVAL, "3 machines");
    opts.machines = 1;
    w.tolerance[0] = 0.99;
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_EINVAL, "a tolerance of 0.99");
    w.tolerance[0] = 1;
    w.graph.constraints = 0;
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_EINVAL, "0 weights");
    w.graph.constraints = 1;
    w.vertex_weights[4] = -1;
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_EINVAL, "negative weight");
    w.vertex_weights[4] = INT64_MAX / 4;
    assert_err(weir_cut(&w.graph, &opts, unused), WEIR_EINVAL, "add up to more than");
    world_close(&w);
}

/* Of all ways to share out few vertices none has less; and where nothing stands against the tolerance, that is what is
 * said. */
static void nothing_is_below_the_least(void **state) {
    (void)state;
    uint64_t sharp = 0;
    for (uint64_t round = 0; round < weir_test_rounds(300) / weir_test_part(3, 1); round++) {
        world w;
        world_open(&w, round, 1);
        uint64_t n = 1 + below(&w, 7), ways = 1;
        uint32_t parts = 1 + (uint32_t)below(&w, 3);
        int64_t best = INT64_MAX, least = 0;
        weir_cut_bound bound;
        world_link(&w, n, 1, 1);
        for (uint64_t v = 0; v < n; v++)
            w.vertex_weights[v] = (int64_t)below(&w, below(&w, 2) ? 10 : 3);
        for (uint64_t v = 0; v < n; v++)
            ways *= parts;
        for (uint64_t way = 0; way < ways; way++) {
            int32_t part_of[8];
            uint64_t rest = way;
            for (uint64_t v = 0; v < n; v++, rest /= parts)
                part_of[v] = (int32_t)(rest % parts);
            int64_t largest = largest_of(&w, 0, parts, part_of);
            if (largest < best) best = largest;
        }
        w.tolerance[0] = 1 + (double)below(&w, 60) / 100;
        assert_ok(weir_cut_least(&w.graph, 0, parts, w.tolerance[0], &least, &bound));
        assert_true(least <= best);
        int64_t most = (int64_t)floor((double)sum_of(&w, 0) / parts * w.tolerance[0]);
        assert_int_equal(bound == WEIR_CUT_SHARE, least <= most);
        sharp += bound != WEIR_CUT_SHARE && least == best;
        world_close(&w);
    }
    assert_true(sharp > 0);
}

/* --- placing ----------------------------------------------------------------------------------------------------- */

/* Some vertices have a part, of a cutting or at random, and the rest are new. */
static int32_t *some_placed(world *w, uint32_t parts) {
    static const uint64_t shares[] = {0, 2, 20, 60, 100}; /* new ones in a hundred */
    uint64_t share = shares[below(w, 5)];
    bool random = below(w, 2);
    int32_t *part_of = parts_of(w, parts, 1, 0);
    for (uint64_t v = 0; v < w->graph.vertices; v++) {
        if (random) part_of[v] = (int32_t)below(w, parts);
        if (below(w, 100) < share) part_of[v] = WEIR_CUT_NOWHERE;
    }
    return part_of;
}

static double fullness_of(const world *w, uint32_t parts, const int32_t *part_of, uint64_t v, int32_t part) {
    double fullest = 0;
    for (uint32_t c = 0; c < w->graph.constraints; c++) {
        int64_t load = w->vertex_weights[v * w->graph.constraints + c];
        if (!load) continue;
        for (uint64_t u = 0; u < w->graph.vertices; u++)
            if (part_of[u] == part) load += w->vertex_weights[u * w->graph.constraints + c];
        fullest = fmax(fullest, (double)load / (double)most_of(w, c, parts));
    }
    return fullest;
}

/* The formula at the head of place.c, with everything counted again for each vertex and part. */
static void place_naively(const world *w, uint32_t parts, int32_t *part_of) {
    for (uint64_t v = 0; v < w->graph.vertices; v++) {
        int64_t shared[16] = {0};
        int32_t best = -1, emptiest = 0;
        double full[16], highest = -1;
        if (part_of[v] != WEIR_CUT_NOWHERE) continue;
        for (size_t e = 0; e < w->edge_count; e++) {
            uint64_t other = w->edges[e].a == v ? w->edges[e].b : w->edges[e].a;
            if ((w->edges[e].a == v || w->edges[e].b == v) && part_of[other] >= 0) shared[part_of[other]]++;
        }
        for (int32_t p = 0; p < (int32_t)parts; p++) {
            full[p] = fullness_of(w, parts, part_of, v, p);
            if (full[p] < full[emptiest]) emptiest = p;
            double score = (double)shared[p] * (1 - full[p]);
            if (!shared[p] || full[p] > 1 || score <= highest) continue;
            best = p;
            highest = score;
        }
        part_of[v] = best >= 0 ? best : emptiest;
    }
}

/* Whoever has a part stays there; by itself placing is what the formula says; and what comes behind it makes the cut
 * smaller or what is above the limits less. */
static void new_vertices_are_placed_as_the_formula_says(void **state) {
    (void)state;
    uint64_t placed = 0, better = 0;
    for (uint64_t round = 0; round < weir_test_rounds(20) / weir_test_part(2, 1); round++) {
        world w;
        world_open(&w, 5000 + round, 2000);
        uint64_t n = 20 + below(&w, 200);
        uint32_t parts = 2 + (uint32_t)below(&w, 11), weights = 1 + (uint32_t)below(&w, 3);
        for (uint64_t i = 0, edges = below(&w, 8 * n); i < edges; i++) {
            uint64_t a = below(&w, n);
            add_edge(&w, a, below(&w, 4) ? a / 10 * 10 + below(&w, 10) % (n - a / 10 * 10) : below(&w, n));
        }
        world_link(&w, n, weights, 1);
        for (uint64_t i = 0; i < n * weights; i++)
            if (i % weights) w.vertex_weights[i] = (int64_t)below(&w, 4);
        for (uint32_t c = 0; c < weights; c++)
            w.tolerance[c] = 1.01 + (double)below(&w, 30) / 100;
        int32_t *was = some_placed(&w, parts), *wanted = calloc(n, sizeof *wanted), *got = calloc(n, sizeof *got);
        weir_cut_opts opts = {.parts = parts, .machines = 1, .tolerance = w.tolerance, .quick = true};
        memcpy(wanted, was, n * sizeof *was);
        memcpy(got, was, n * sizeof *was);
        place_naively(&w, parts, wanted);
        assert_ok(weir_cut_place(&w.graph, &opts, got));
        assert_memory_equal(got, wanted, n * sizeof *got);

        memcpy(got, was, n * sizeof *was);
        opts.quick = false;
        assert_ok(weir_cut_place(&w.graph, &opts, got));
        for (uint64_t v = 0; v < n; v++) {
            assert_true(was[v] == WEIR_CUT_NOWHERE || got[v] == was[v]);
            placed += was[v] == WEIR_CUT_NOWHERE;
        }
        double a = excess_of(&w, parts, got), b = excess_of(&w, parts, wanted);
        assert_true(a <= b + 1e-6);
        if (b < 1e-6) assert_true(cut_of(&w, got) <= cut_of(&w, wanted));
        better += a < b - 1e-6 || cut_of(&w, got) < cut_of(&w, wanted);
        free(was);
        free(wanted);
        free(got);
        world_close(&w);
    }
    assert_true(placed > 0 && better > 0);
}

/* Half of each ring has a part; the other half finds it. Then a part has more than its share before anyone comes. */
static void a_placed_vertex_finds_its_cluster(void **state) {
    (void)state;
    world w;
    int32_t part_of[400];
    rings(&w, 40);
    world_link(&w, 400, 1, 1);
    weir_cut_opts opts = {.parts = 4, .machines = 1, .tolerance = w.tolerance};
    for (uint64_t v = 0; v < 400; v++)
        part_of[v] = v % 2 ? (int32_t)(v / 100) : WEIR_CUT_NOWHERE;
    assert_ok(weir_cut_place(&w.graph, &opts, part_of));
    assert_int_equal(cut_of(&w, part_of), 3);
    assert_int_equal(largest_of(&w, 0, 4, part_of), 100);

    for (uint64_t v = 0; v < 400; v++)
        part_of[v] = v < 200 ? 0 : WEIR_CUT_NOWHERE;
    assert_ok(weir_cut_place(&w.graph, &opts, part_of));
    assert_int_equal(largest_of(&w, 0, 4, part_of), 200); /* of nobody more than that */
    for (uint64_t v = 0; v < 400; v++)
        assert_true((part_of[v] == 0) == (v < 200));
    w.tolerance[0] = 0.5;
    assert_err(weir_cut_place(&w.graph, &opts, part_of), WEIR_EINVAL, "a tolerance of 0.5");
    world_close(&w);
}

static weir_err place_without_memory(void *context) {
    const world *w = context;
    int32_t part_of[4800];
    const weir_cut_opts opts = {.parts = 4, .machines = 1, .tolerance = w->tolerance};
    for (uint64_t v = 0; v < 4800; v++)
        part_of[v] = v % 7 ? (int32_t)(v / 1200) : WEIR_CUT_NOWHERE;
    return weir_cut_place(&w->graph, &opts, part_of);
}

static weir_err cut_without_memory(void *context) {
    const world *w = context;
    int32_t part_of[4800];
    const weir_cut_opts opts = {.parts = 4, .machines = 2, .tolerance = w->tolerance, .seed = 7};
    return weir_cut(&w->graph, &opts, part_of);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world w;
    rings(&w, 480);
    world_link(&w, 4800, 2, 1);
    const uint64_t step = weir_test_part(16, 1); /* cuts are long */
    weir_test_some_allocations(cut_without_memory, &w, step);
    weir_test_some_allocations(place_without_memory, &w, step);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(quick_is_never_better), WEIR_CASE(never_worse_than_metis), WEIR_CASE(same_arguments_same_parts),
           WEIR_CASE(weights_past_32_bits_are_cut), WEIR_CASE(sums_past_32_bits_are_cut),
           WEIR_CASE(little_memory_finds_the_clusters), WEIR_CASE(machines_have_parts_one_after_the_other),
           WEIR_CASE(a_star_has_its_hub_in_the_least_possible), WEIR_CASE(hubs_have_parts_of_their_own),
           WEIR_CASE(hubs_lie_together), WEIR_CASE(hubs_leave_no_part_empty), WEIR_CASE(lonely_vertices_are_shared_out),
           WEIR_CASE(as_many_parts_as_vertices), WEIR_CASE(nothing_is_below_the_least),
           WEIR_CASE(new_vertices_are_placed_as_the_formula_says), WEIR_CASE(a_placed_vertex_finds_its_cluster),
           WEIR_CASE(every_allocation_may_fail))
