/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays_fixture.h - a small random graph as arrays: two vertex types, relation 0 from a to b, relation 1 from a to a.
 * Edges are first a plain list, which is what the tests compare with.
 */
#ifndef WEIR_ARRAYS_FIXTURE_H
#define WEIR_ARRAYS_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/store/sample/source.h>

typedef struct plain_edge {
    uint64_t from, to;
    int64_t time_us;
    uint64_t event;
    float weight;
} plain_edge;

typedef struct arrays_fixture {
    plain_edge *plain[2]; /* by relation */
    size_t plain_count[2];
    uint64_t vertices[2];
    uint64_t *ids[2];
    int64_t *indptr[4], *neighbors[4], *times[4];
    uint64_t *events[4];
    float *weights[4];
    const float *columns[4][1];
    weir_sample_csr csrs[4];
    weir_sample_ends ends[2];
    weir_sample_arrays arrays;
} arrays_fixture;

static inline void *fixture_array(size_t count, size_t size) {
    void *array = calloc(count + 1, size);
    if (!array) abort();
    return array;
}

static inline uint64_t plain_end(const plain_edge *e, weir_direction direction) {
    return direction == WEIR_OUT ? e->from : e->to;
}

static inline uint64_t plain_other(const plain_edge *e, weir_direction direction) {
    return direction == WEIR_OUT ? e->to : e->from;
}

static weir_direction fixture_direction;
static const uint64_t *fixture_ids;

/* By vertex; within one: newest first, then neighbour by its id, then event. */
static int fixture_order(const void *x, const void *y) {
    const plain_edge *a = x, *b = y;
    uint64_t va = plain_end(a, fixture_direction), vb = plain_end(b, fixture_direction);
    uint64_t na = fixture_ids[plain_other(a, fixture_direction)], nb = fixture_ids[plain_other(b, fixture_direction)];
    if (va != vb) return va < vb ? -1 : 1;
    if (a->time_us != b->time_us) return a->time_us > b->time_us ? -1 : 1;
    if (na != nb) return na < nb ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

static void fixture_csr(arrays_fixture *f, unsigned relation, weir_direction direction) {
    unsigned at = relation * 2 + direction, own = direction == WEIR_OUT ? f->ends[relation].from : f->ends[relation].to;
    unsigned other = direction == WEIR_OUT ? f->ends[relation].to : f->ends[relation].from;
    size_t count = f->plain_count[relation];
    plain_edge *sorted = fixture_array(count, sizeof *sorted);
    memcpy(sorted, f->plain[relation], count * sizeof *sorted);
    fixture_direction = direction;
    fixture_ids = f->ids[other];
    qsort(sorted, count, sizeof *sorted, fixture_order);
    f->indptr[at] = fixture_array(f->vertices[own] + 1, sizeof(int64_t));
    f->neighbors[at] = fixture_array(count, sizeof(int64_t));
    f->times[at] = fixture_array(count, sizeof(int64_t));
    f->events[at] = fixture_array(count, sizeof(uint64_t));
    f->weights[at] = fixture_array(count, sizeof(float));
    for (size_t i = 0; i < count; i++) {
        f->indptr[at][plain_end(&sorted[i], direction) + 1]++;
        f->neighbors[at][i] = (int64_t)plain_other(&sorted[i], direction);
        f->times[at][i] = sorted[i].time_us;
        f->events[at][i] = sorted[i].event;
        f->weights[at][i] = sorted[i].weight;
    }
    for (uint64_t v = 0; v < f->vertices[own]; v++)
        f->indptr[at][v + 1] += f->indptr[at][v];
    f->columns[at][0] = f->weights[at];
    f->csrs[at] = (weir_sample_csr){
        .indptr = f->indptr[at],
        .ids = f->ids[own],
        .neighbors = f->neighbors[at],
        .times = f->times[at],
        .events = f->events[at],
        .features = f->columns[at],
        .feature_count = 1,
        .vertices = f->vertices[own],
        .edges = count,
        .newest_us = INT64_MAX,
    };
    free(sorted);
}

/* The lists are in f->plain and its counts already. */
static void fixture_close_lists(arrays_fixture *f) {
    f->ends[0] = (weir_sample_ends){0, 1};
    f->ends[1] = (weir_sample_ends){0, 0};
    for (unsigned type = 0; type < 2; type++) {
        f->ids[type] = fixture_array(f->vertices[type], sizeof(uint64_t));
        for (uint64_t v = 0; v < f->vertices[type]; v++)
            f->ids[type][v] = ((uint64_t)type + 1) * 1000000007ull + v * 7919;
    }
    for (unsigned relation = 0; relation < 2; relation++) {
        fixture_csr(f, relation, WEIR_OUT);
        fixture_csr(f, relation, WEIR_IN);
    }
    f->arrays = (weir_sample_arrays){2, 2, f->ends, f->csrs, (const uint64_t *const *)f->ids, f->vertices, 0};
}

/* Times 1 to times_us; a few vertices have most of the edges. */
static inline void fixture_random_from(arrays_fixture *f, weir_rng *rng, uint64_t vertices, size_t edges,
                                       int64_t first_us, uint64_t times_us) {
    *f = (arrays_fixture){.vertices = {vertices, vertices / 2 + 1}};
    for (unsigned relation = 0; relation < 2; relation++) {
        f->plain[relation] = fixture_array(edges, sizeof(plain_edge));
        f->plain_count[relation] = edges;
        for (size_t i = 0; i < edges; i++) {
            uint64_t few = weir_rng_below(rng, 3) == 0 ? 3 : vertices;
            f->plain[relation][i] = (plain_edge){
                .from = weir_rng_below(rng, few),
                .to = weir_rng_below(rng, f->vertices[relation == 0]),
                .time_us = first_us + (int64_t)weir_rng_below(rng, times_us),
                .event = i + 1,
                .weight = (float)weir_rng_below(rng, 5),
            };
        }
    }
    fixture_close_lists(f);
}

static inline void fixture_random(arrays_fixture *f, weir_rng *rng, uint64_t vertices, size_t edges,
                                  uint64_t times_us) {
    fixture_random_from(f, rng, vertices, edges, 1, times_us);
}

/* One vertex 0 of type a with `degree` edges of relation 0 at times degree, …, 1. */
static inline void fixture_star(arrays_fixture *f, size_t degree, const float *weights) {
    *f = (arrays_fixture){.vertices = {1, degree}};
    f->plain[0] = fixture_array(degree, sizeof(plain_edge));
    f->plain[1] = fixture_array(0, sizeof(plain_edge));
    f->plain_count[0] = degree;
    for (size_t i = 0; i < degree; i++)
        f->plain[0][i] = (plain_edge){0, i, (int64_t)(degree - i), i + 1, weights ? weights[i] : 1};
    fixture_close_lists(f);
}

static inline void fixture_close(arrays_fixture *f) {
    for (unsigned i = 0; i < 2; i++) {
        free(f->plain[i]);
        free(f->ids[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        free(f->indptr[i]);
        free(f->neighbors[i]);
        free(f->times[i]);
        free(f->events[i]);
        free(f->weights[i]);
    }
}

#endif /* WEIR_ARRAYS_FIXTURE_H */
