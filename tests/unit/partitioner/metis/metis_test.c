/* SPDX-License-Identifier: Apache-2.0 */
/* metis_test.c - a graph whose best cut is known, and what METIS is not asked. */
#include "weir_test.h"

#include <limits.h>

#include <weir/partitioner/metis/metis.h>

/* Two rings of five, joined by one edge from 4 to 5. */
#define RING 5
typedef struct rings {
    int64_t indptr[2 * RING + 1], vertex_weights[4 * RING];
    uint32_t neighbors[4 * RING + 2], edge_weights[4 * RING + 2];
    weir_metis_graph graph;
} rings;

static void rings_make(rings *r) {
    int64_t at = 0;
    for (uint32_t v = 0; v < 2 * RING; v++) {
        uint32_t first = v / RING * RING;
        r->indptr[v] = at;
        r->neighbors[at++] = first + (v - first + 1) % RING;
        r->neighbors[at++] = first + (v - first + RING - 1) % RING;
        if (v == RING - 1) r->neighbors[at++] = RING;
        if (v == RING) r->neighbors[at++] = RING - 1;
        r->vertex_weights[2 * v] = 1;
        r->vertex_weights[2 * v + 1] = 1;
    }
    r->indptr[2 * RING] = at;
    for (int64_t i = 0; i < at; i++)
        r->edge_weights[i] = 1;
    r->graph = (weir_metis_graph){2 * RING, r->indptr, r->neighbors, r->edge_weights, 2, r->vertex_weights, NULL};
}

static void two_rings_are_two_parts(void **state) {
    (void)state;
    rings r;
    int32_t part_of[2 * RING], again[2 * RING];
    rings_make(&r);
    assert_ok(weir_metis_partition(&r.graph, 2, 3, part_of));
    for (int v = 0; v < 2 * RING; v++)
        assert_int_equal(part_of[v], v < RING ? part_of[0] : 1 - part_of[0]);
    assert_ok(weir_metis_partition(&r.graph, 2, 3, again));
    assert_memory_equal(part_of, again, sizeof part_of);
    assert_ok(weir_metis_partition(&r.graph, 1, 3, part_of));
    for (int v = 0; v < 2 * RING; v++)
        assert_int_equal(part_of[v], 0);
}

static void what_does_not_fit_is_refused_before(void **state) {
    (void)state;
    rings r;
    int32_t part_of[2 * RING];
    rings_make(&r);
    assert_err(weir_metis_partition(&r.graph, 11, 1, part_of), WEIR_ELIMIT, "11 parts of 10 vertices");
    r.graph.constraints = 0;
    assert_err(weir_metis_partition(&r.graph, 2, 1, part_of), WEIR_EINVAL, "0 constraints");
    r.graph.constraints = WEIR_METIS_CONSTRAINTS_MAX + 1;
    assert_err(weir_metis_partition(&r.graph, 2, 1, part_of), WEIR_EINVAL, "17 constraints");
    rings_make(&r);
    r.vertex_weights[3] = -1;
    assert_err(weir_metis_partition(&r.graph, 2, 1, part_of), WEIR_EINVAL, "negative weight");
    r.vertex_weights[3] = INT64_MAX;
    r.vertex_weights[5] = INT64_MAX;
    r.vertex_weights[7] = INT64_MAX;
    assert_err(weir_metis_partition(&r.graph, 2, 1, part_of), WEIR_ELIMIT, "use --method hash");
    rings_make(&r);
    r.edge_weights[0] = INT32_MAX; /* a METIS of 32 bits cannot add one to it */
    weir_err err = weir_metis_partition(&r.graph, 2, 1, part_of);
    if (err) assert_err(err, WEIR_ELIMIT, "METIS counts in 32 bits here");
}

WEIR_TESTS(WEIR_CASE(two_rings_are_two_parts), WEIR_CASE(what_does_not_fit_is_refused_before))
