/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts_test.c - parts of a random graph, held against its snapshot: number by number through the map, which is checked
 * to be a bijection first, and against a search that looks at every edge once a step. Vertices have few edges, so that
 * a few steps do not lead everywhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/fault.h>

#include "parts_fixture.h"

/* --- the whole --------------------------------------------------------------------------------------------------- */

/* Where vertex v of the snapshot is now; by walking the starts, not by the reader's own search. */
static weir_part *where(const parts_cutting *c, uint32_t type, uint64_t v, uint64_t *placep) {
    int64_t number = c->new_of[type][v];
    const int64_t *starts = weir_part_starts(c->of[0], type);
    uint32_t p = 0;
    while (number >= starts[p + 1])
        p++;
    assert_int_equal(weir_part_owner(c->of[0], type, number), p);
    *placep = (uint64_t)(number - starts[p]);
    return c->of[p];
}

static void numbers_are_a_bijection(const parts_world *w, const parts_cutting *c, uint32_t type) {
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
        owned += parts_vertices_of(c->of[p], type)->own;
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

static void same_vertices(const parts_world *w, const parts_cutting *c, uint32_t type) {
    const weir_snapshot_vertices *all = weir_snapshot_vertices_of(w->snapshot, type);
    for (uint64_t v = 0; v < all->count; v++) {
        uint64_t place = 0;
        const weir_snapshot_vertices *own = parts_vertices_of(where(c, type, v, &place), type);
        assert_true(place < own->own);
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

/* --- what is in a part ------------------------------------------------------------------------------------------- */

#define UNREACHED UINT32_MAX

/* The steps from a part's own vertices to each vertex of the snapshot, and those that are at most depth + 1 away, by
 * steps and then by their numbers. */
typedef struct reach {
    uint32_t *steps[PARTS_TYPES];
    uint64_t *wanted[PARTS_TYPES], wanted_count[PARTS_TYPES];
} reach;

static void step_over(uint32_t *to, uint32_t step) {
    if (*to == UNREACHED) *to = step + 1;
}

static void reach_step(const parts_world *w, reach *r, uint32_t step) {
    for (uint32_t relation = 0; relation < PARTS_RELATIONS; relation++) {
        const weir_schema_relation *schema = weir_schema_relation_at(w->schema, relation);
        const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, relation, WEIR_OUT);
        for (uint64_t v = 0; v < out->vertices; v++) {
            for (int64_t at = out->indptr[v]; at < out->indptr[v + 1]; at++) {
                uint32_t *a = &r->steps[schema->from][v], *b = &r->steps[schema->to][out->neighbors[at]];
                if (*a == step) step_over(b, step);
                if (*b == step) step_over(a, step);
            }
        }
    }
}

static void reach_open(const parts_world *w, const parts_cutting *c, uint32_t part, reach *r) {
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count, place = 0;
        r->steps[type] = calloc(count + 1, sizeof *r->steps[type]);
        r->wanted[type] = calloc(count + 1, sizeof *r->wanted[type]);
        for (uint64_t v = 0; v < count; v++)
            r->steps[type][v] = where(c, type, v, &place) == c->of[part] ? 0 : UNREACHED;
    }
    for (uint32_t step = 0; step <= c->depth; step++)
        reach_step(w, r, step);
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count,
                 *old_of = calloc(count + 1, sizeof *old_of);
        for (uint64_t v = 0; v < count; v++)
            old_of[c->new_of[type][v]] = v;
        r->wanted_count[type] = 0;
        for (uint32_t step = 0; step <= c->depth + 1; step++) {
            for (uint64_t n = 0; n < count; n++)
                if (r->steps[type][old_of[n]] == step) r->wanted[type][r->wanted_count[type]++] = old_of[n];
        }
        free(old_of);
    }
}

static void reach_close(reach *r) {
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        free(r->steps[type]);
        free(r->wanted[type]);
    }
}

/* Labels [begin, end) of a vertex, where they stand in the order of their targets. */
static uint64_t labels_from(const weir_snapshot_labels *l, uint64_t target, uint64_t *endp) {
    uint64_t begin = 0;
    while (begin < l->count && (uint64_t)l->targets[begin] < target)
        begin++;
    for (*endp = begin; *endp < l->count && (uint64_t)l->targets[*endp] == target;)
        ++*endp;
    return begin;
}

/* Where aggregates count by the label, a vertex that others own has its labels here, and with them its lives. */
static void has_what_was_told(const parts_world *w, const weir_part *part, uint32_t type, uint64_t place, uint64_t v) {
    const weir_snapshot_vertices *all = weir_snapshot_vertices_of(w->snapshot, type),
                                 *here = parts_vertices_of(part, type);
    const weir_snapshot_labels *of_all = weir_snapshot_labels_of(w->snapshot, 0),
                               *of_part = weir_snapshot_labels_of(weir_part_snapshot(part), 0);
    uint64_t end = 0, end_here = 0, begin = type == 0 ? labels_from(of_all, v, &end) : 0,
             begin_here = type == 0 ? labels_from(of_part, place, &end_here) : 0;
    const bool told = weir_schema_label_counts(w->schema, 0) && begin < end;
    assert_int_equal(end_here - begin_here, told ? end - begin : 0);
    for (uint64_t i = 0; told && i < end - begin; i++) {
        assert_true(of_part->times[begin_here + i] == of_all->times[begin + i]);
        assert_int_equal(of_part->values[begin_here + i], of_all->values[begin + i]);
    }
    if (told)
        same_spans(&here->lives, place, &all->lives, v);
    else
        assert_int_equal(here->lives.indptr[place + 1], here->lives.indptr[place]);
}

/* Also that of what others own there is an id, and nothing else but edges, and labels that aggregates ask for. */
static void has_the_wanted(const parts_world *w, const parts_cutting *c, const weir_part *part, const reach *r,
                           uint32_t type) {
    const weir_snapshot_vertices *all = weir_snapshot_vertices_of(w->snapshot, type),
                                 *here = parts_vertices_of(part, type);
    uint64_t listed = 0;
    assert_int_equal(here->count, r->wanted_count[type]);
    for (uint64_t v = 0; v < all->count; v++) {
        uint64_t place = UINT64_MAX;
        bool found = weir_part_find(part, type, c->new_of[type][v], &place);
        assert_true(found == (r->steps[type][v] != UNREACHED));
        assert_true(!found || (place < here->count && r->wanted[type][place] == v));
        listed += r->steps[type][v] <= c->depth;
    }
    assert_int_equal(weir_part_listed(part, type), listed);
    for (uint64_t place = 0; place < here->count; place++) {
        uint64_t v = r->wanted[type][place];
        assert_true(weir_vertex_of(here->ids[place]) == weir_vertex_of(all->ids[v]));
        assert_int_equal(weir_part_number(part, type, place), c->new_of[type][v]);
        assert_int_equal(place < here->own, r->steps[type][v] == 0);
        if (place < here->own) continue;
        has_what_was_told(w, part, type, place, v);
        assert_int_equal(here->rows.indptr[place + 1], here->rows.count);
        assert_int_equal(here->key_offsets[place + 1], here->key_offsets[here->own]);
    }
}

static void same_list(const parts_world *w, const weir_part *part, const weir_snapshot_edges *here, uint64_t place,
                      const weir_snapshot_edges *all, uint64_t v, uint32_t other) {
    const weir_vertex_pair *ids = parts_vertices_of(part, other)->ids;
    const weir_vertex_pair *all_ids = weir_snapshot_vertices_of(w->snapshot, other)->ids;
    int64_t length = all->indptr[v + 1] - all->indptr[v];
    assert_int_equal(here->indptr[place + 1] - here->indptr[place], length);
    for (int64_t i = 0; i < length; i++) {
        uint64_t at = (uint64_t)(here->indptr[place] + i), from = (uint64_t)(all->indptr[v] + i);
        assert_in_range(here->neighbors[at], 0, parts_vertices_of(part, other)->count - 1);
        assert_true(weir_vertex_of(ids[here->neighbors[at]]) == weir_vertex_of(all_ids[all->neighbors[from]]));
        assert_true(here->times[at] == all->times[from] && here->events[at] == all->events[from]);
        if (all->until_us) assert_true(here->until_us[at] == all->until_us[from]);
        same_values(here->columns, all->columns, all->column_count, at, from);
    }
}

/* Returns how many edges are in the lists of vertices that are at most depth steps away. */
static uint64_t has_the_lists(const parts_world *w, const weir_part *part, const reach *r, uint32_t relation,
                              weir_direction direction) {
    const weir_schema_relation *schema = weir_schema_relation_at(w->schema, relation);
    const weir_snapshot_edges *all = weir_snapshot_edges_of(w->snapshot, relation, direction);
    const weir_snapshot_edges *here = parts_edges_of(part, relation, direction);
    uint32_t type = direction == WEIR_OUT ? schema->from : schema->to;
    uint32_t other = direction == WEIR_OUT ? schema->to : schema->from;
    uint64_t seen = 0;
    assert_int_equal(here->vertices, r->wanted_count[type]);
    assert_int_equal(here->until_us != NULL, all->until_us != NULL);
    for (uint64_t place = 0; place < here->vertices; place++) {
        uint64_t v = r->wanted[type][place];
        if (r->steps[type][v] <= weir_part_depth(part)) {
            same_list(w, part, here, place, all, v, other);
            seen += (uint64_t)(all->indptr[v + 1] - all->indptr[v]);
        } else {
            assert_int_equal(here->indptr[place], here->indptr[place + 1]);
        }
    }
    assert_int_equal(seen, here->edges);
    return seen;
}

/* PARTS-P3, without the search: each vertex that is not owned is named by a list. */
static void has_what_is_named(const parts_world *w, const weir_part *part, uint32_t type) {
    const weir_snapshot_vertices *here = parts_vertices_of(part, type);
    bool *named = calloc(here->count + 1, sizeof *named);
    for (uint32_t i = 0; i < 2 * PARTS_RELATIONS; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(w->schema, i / 2);
        const weir_snapshot_edges *e = parts_edges_of(part, i / 2, i % 2);
        for (uint64_t at = 0; (i % 2 == WEIR_OUT ? r->to : r->from) == type && at < e->edges; at++)
            named[e->neighbors[at]] = true;
    }
    for (uint64_t place = here->own; place < here->count; place++)
        assert_true(named[place]);
    free(named);
}

/* The vertex of the snapshot that a label is about. */
static uint64_t vertex_of_label(const parts_world *w, uint32_t label, int64_t target) {
    const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT);
    uint64_t v = label == 0 ? (uint64_t)target : 0;
    while (label == 1 && out->indptr[v + 1] <= target)
        v++;
    return v;
}

/* The labels of a vertex stand beside each other, in the snapshot's order; vertices in that of their places. */
static void same_labels(const parts_world *w, const parts_cutting *c, uint32_t label) {
    const weir_snapshot_labels *all = weir_snapshot_labels_of(w->snapshot, label);
    const weir_snapshot_edges *out = weir_snapshot_edges_of(w->snapshot, 0, WEIR_OUT);
    uint64_t seen[PARTS_MAX] = {0};
    for (uint64_t i = 0, at = 0, before = UINT64_MAX; i < all->count; i++, at++) {
        uint64_t v = vertex_of_label(w, label, all->targets[i]), place = 0;
        const weir_part *part = where(c, 0, v, &place);
        const weir_snapshot_labels *own = weir_snapshot_labels_of(weir_part_snapshot(part), label);
        int64_t first = label == 0 ? (int64_t)place : parts_edges_of(part, 0, WEIR_OUT)->indptr[place];
        for (at = v == before ? at : 0; v != before && at < own->count && own->targets[at] < first;)
            at++;
        before = v;
        assert_true(at < own->count);
        assert_true(own->times[at] == all->times[i] && own->values[at] == all->values[i]);
        assert_true(own->targets[at] == (label == 0 ? first : first + all->targets[i] - out->indptr[v]));
        seen[weir_part_index(part)]++;
    }
    for (uint32_t p = 0; p < c->parts; p++) {
        const weir_snapshot_labels *own = weir_snapshot_labels_of(weir_part_snapshot(c->of[p]), label);
        uint64_t others = 0; /* has_what_was_told has looked at these */
        for (uint64_t i = 0; label == 0 && i < own->count; i++)
            others += (uint64_t)own->targets[i] >= parts_vertices_of(c->of[p], 0)->own;
        assert_true(others == 0 || weir_schema_label_counts(w->schema, label));
        assert_int_equal(own->count - others, seen[p]);
        for (uint64_t i = 1; i < own->count; i++)
            assert_true(label == 1 || own->targets[i - 1] <= own->targets[i]);
    }
}

/* --- the order ---------------------------------------------------------------------------------------------------- */

/* The chance that a batch of 512 targets reads no such vertex, two hops of 10 edges a list, multiplied edge by edge. */
typedef struct naive_reads {
    double *now[PARTS_TYPES], *spared[PARTS_TYPES], *never[PARTS_TYPES];
} naive_reads;

static void naive_targets(const parts_world *w, uint64_t training, naive_reads *n) {
    for (uint32_t label = 0; label < 2; label++) {
        const weir_snapshot_labels *all = weir_snapshot_labels_of(w->snapshot, label);
        for (uint64_t i = 0; i < all->count; i++) {
            bool again = false;
            for (uint64_t j = i; !again && j-- > 0 && all->targets[j] == all->targets[i];)
                again = true;
            if (!again) n->now[0][vertex_of_label(w, label, all->targets[i])] += 512.0 / (double)training;
        }
    }
}

static void naive_hop(const parts_world *w, naive_reads *n) {
    for (uint32_t i = 0; i < 2 * PARTS_RELATIONS; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(w->schema, i / 2);
        const weir_snapshot_edges *e = weir_snapshot_edges_of(w->snapshot, i / 2, i % 2);
        uint32_t from = i % 2 == WEIR_OUT ? r->from : r->to, to = i % 2 == WEIR_OUT ? r->to : r->from;
        for (uint64_t v = 0; v < e->vertices; v++) {
            double degree = (double)(e->indptr[v + 1] - e->indptr[v]), drawn = degree > 10 ? 10 / degree : 1;
            for (int64_t at = e->indptr[v]; at < e->indptr[v + 1]; at++)
                n->spared[to][e->neighbors[at]] *= 1 - drawn * n->now[from][v];
        }
    }
}

static void naive_open(const parts_world *w, uint64_t training, naive_reads *n) {
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count;
        n->now[type] = calloc(count + 1, sizeof(double));
        n->spared[type] = calloc(count + 1, sizeof(double));
        n->never[type] = calloc(count + 1, sizeof(double));
    }
    naive_targets(w, training, n);
    for (uint32_t hop = 0; hop <= 2; hop++) {
        if (hop) naive_hop(w, n);
        for (uint32_t type = 0; type < PARTS_TYPES; type++) {
            for (uint64_t v = 0; v < weir_snapshot_vertices_of(w->snapshot, type)->count; v++) {
                double *now = &n->now[type][v], *never = &n->never[type][v];
                *now = hop ? 1 - n->spared[type][v] : fmin(1, *now);
                *never = hop ? *never * n->spared[type][v] : 1 - *now;
                n->spared[type][v] = 1;
            }
        }
    }
}

static void naive_close(naive_reads *n) {
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        free(n->now[type]);
        free(n->spared[type]);
        free(n->never[type]);
    }
}

/* PARTS-P5. Those that are never read keep the snapshot's order. Returns how many are read less than the one before. */
static uint64_t p5_most_read_come_first(const parts_world *w, const parts_cutting *c) {
    naive_reads n;
    uint64_t falls = 0;
    naive_open(w, c->report.training, &n);
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count, place = 0;
        uint64_t *old_of = calloc(count + 1, sizeof *old_of);
        for (uint64_t v = 0; v < count; v++)
            old_of[c->new_of[type][v]] = v;
        for (uint64_t number = 1; number < count; number++) {
            uint64_t a = old_of[number - 1], b = old_of[number];
            if (where(c, type, a, &place) != where(c, type, b, &place)) continue;
            double first = n.never[type][a], second = n.never[type][b];
            assert_true(first <= second + 1e-9);
            assert_true(a < b || first < 1);
            falls += first < second - 1e-6;
        }
        free(old_of);
    }
    naive_close(&n);
    return falls;
}

/* What the report should say, by looking at every vertex and edge of the parts. */
typedef struct tally {
    uint64_t crossing, halo, edges, here_vertices, here_vertices_max, here_edges, here_edges_max;
    uint64_t elsewhere, without_lists; /* that a part does not have; that it has without edges */
    uint64_t falls;                    /* of p5_most_read_come_first */
} tally;

static void tally_part(const parts_world *w, const parts_cutting *c, uint32_t p, tally *t) {
    uint64_t vertices = 0, edges = 0;
    reach r;
    reach_open(w, c, p, &r);
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        uint64_t count = weir_snapshot_vertices_of(w->snapshot, type)->count;
        has_the_wanted(w, c, c->of[p], &r, type);
        has_what_is_named(w, c->of[p], type);
        vertices += r.wanted_count[type];
        t->elsewhere += count - r.wanted_count[type];
        for (uint64_t v = 0; v < count; v++) {
            t->halo += r.steps[type][v] == 1;
            t->without_lists += r.steps[type][v] == c->depth + 1;
        }
    }
    for (uint32_t relation = 0; relation < PARTS_RELATIONS; relation++) {
        const weir_snapshot_edges *e = parts_edges_of(c->of[p], relation, WEIR_OUT);
        uint32_t from = weir_schema_relation_at(w->schema, relation)->from;
        uint32_t to = weir_schema_relation_at(w->schema, relation)->to;
        edges += has_the_lists(w, c->of[p], &r, relation, WEIR_OUT);
        edges += has_the_lists(w, c->of[p], &r, relation, WEIR_IN);
        int64_t of_own = e->indptr[parts_vertices_of(c->of[p], from)->own];
        t->edges += (uint64_t)of_own;
        for (int64_t i = 0; i < of_own; i++)
            t->crossing += (uint64_t)e->neighbors[i] >= parts_vertices_of(c->of[p], to)->own;
    }
    t->here_vertices += vertices;
    t->here_edges += edges;
    if (vertices > t->here_vertices_max) t->here_vertices_max = vertices;
    if (edges > t->here_edges_max) t->here_edges_max = edges;
    reach_close(&r);
}

static tally is_the_snapshot(const parts_world *w, const parts_cutting *c) {
    tally t = {0};
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        numbers_are_a_bijection(w, c, type);
        same_vertices(w, c, type);
    }
    t.falls = p5_most_read_come_first(w, c);
    for (uint32_t p = 0; p < c->parts; p++) {
        assert_ok(weir_snapshot_check(weir_part_snapshot(c->of[p])));
        tally_part(w, c, p, &t);
    }
    for (uint32_t label = 0; label < 2; label++)
        same_labels(w, c, label);
    assert_int_equal(c->report.rows[0].cut_edges, t.crossing);
    assert_int_equal(c->report.rows[0].halo, t.halo);
    assert_int_equal(c->report.edges, t.edges);
    assert_int_equal(c->report.depth, c->depth);
    assert_int_equal(c->report.here_vertices, t.here_vertices);
    assert_int_equal(c->report.here_vertices_max, t.here_vertices_max);
    assert_int_equal(c->report.here_edges, t.here_edges);
    assert_int_equal(c->report.here_edges_max, t.here_edges_max);
    return t;
}

/* --- cases ------------------------------------------------------------------------------------------------------- */

/* Every file is synced, so a case has few parts, or one depth. Of each depth, some vertex is not in each part, and some
 * is there without edges. */
static void parts_are_the_snapshot(weir_parts_method method, uint32_t parts, uint32_t depth, uint32_t deepest,
                                   uint64_t events, const char *schema) {
    parts_world w;
    parts_cutting c;
    parts_world_open_with(&w, schema, 4000, events);
    for (; depth <= deepest; depth++) {
        char name[16];
        snprintf(name, sizeof name, "d%u", depth);
        parts_cut(&w, name, parts, depth, method, parts_below(&w, 1000), &c);
        tally t = is_the_snapshot(&w, &c);
        assert_true(t.elsewhere > 0 && t.without_lists > 0 && t.falls > 0);
        assert_non_null(parts_edges_of(c.of[0], 1, WEIR_IN)->until_us);
        assert_null(parts_edges_of(c.of[0], 0, WEIR_IN)->until_us);
        parts_uncut(&c);
    }
    parts_world_close(&w);
}

static void p1_p2_p3_parts_of_metis_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_METIS, 4, 0, 2, 8000, parts_schema_text);
}

static void p1_p2_p3_sixteen_parts_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_METIS, 16, 1, 1, 8000, parts_schema_text);
}

static void p1_p2_p3_sixty_four_parts_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_METIS, 64, 1, 1, 4000, parts_schema_text);
}

static void p1_p2_p3_random_parts_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_RANDOM, 5, 0, 2, 4000, parts_schema_text);
}

static void p1_p2_p3_hashed_parts_are_the_snapshot(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_HASH, 2, 0, 2, 4000, parts_schema_text);
}

static void p1_labels_that_aggregates_ask_for_are_where_they_are_read(void **state) {
    (void)state;
    parts_are_the_snapshot(WEIR_PARTS_RANDOM, 4, 0, 2, 4000, parts_told_schema_text);
}

static void one_part_is_all_of_it(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    parts_world_open(&w, 64, 800);
    parts_cut(&w, "one", 1, 1, WEIR_PARTS_METIS, 1, &c);
    tally t = is_the_snapshot(&w, &c);
    assert_int_equal(t.elsewhere, 0);
    for (uint32_t type = 0; type < PARTS_TYPES; type++) {
        assert_int_equal(parts_vertices_of(c.of[0], type)->own, parts_vertices_of(c.of[0], type)->count);
    }
    assert_int_equal(c.report.rows[0].cut_edges, 0);
    parts_uncut(&c);
    parts_world_close(&w);
}

/* So far that each part has what it can reach at all: then it has the edges of everything that it has. */
static void the_deepest_part_has_all_lists(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    parts_world_open(&w, 100, 2000);
    parts_cut(&w, "deep", 2, WEIR_PARTS_DEPTH_MAX, WEIR_PARTS_HASH, 1, &c);
    tally t = is_the_snapshot(&w, &c);
    assert_int_equal(t.without_lists, 0);
    parts_uncut(&c);
    parts_world_close(&w);
}

/* --- matrices of an import --------------------------------------------------------------------------------------- */

#define NODES 60u

static void import(const char *out, weir_snapshot **snapshotp) {
    char nodes[4096], edges[4096];
    weir_snapshot_stats stats;
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    FILE *node_file = fopen(nodes, "w"), *edge_file = fopen(edges, "w");
    assert_true(node_file && edge_file);
    fprintf(node_file, "id,label,matrix.words.2,mask.train\n");
    fprintf(edge_file, "src,dst,timestamp\n");
    for (unsigned i = 0; i < NODES; i++) {
        fprintf(node_file, "%u,%s,%u %u.5,%d\n", i, i % 2 ? "odd" : "even", i, i * 3, i % 3 == 0);
        if (i) fprintf(edge_file, "%u,%u,%u\n", i, i - 1, i);
    }
    assert_int_equal(fclose(node_file), 0);
    assert_int_equal(fclose(edge_file), 0);
    assert_ok(weir_snapshot_import(&(weir_snapshot_import_opts){.out = out, .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, snapshotp));
}

static void has_own_lines(const weir_snapshot_vertices *all, const weir_part *part, const int64_t *starts) {
    const weir_snapshot_vertices *here = parts_vertices_of(part, 0);
    assert_int_equal(here->extra_count, 2);
    for (uint32_t x = 0; x < here->extra_count; x++) {
        const weir_snapshot_extra *a = &here->extras[x], *b = &all->extras[x];
        char path[256];
        weir_npy_map *map;
        weir_npy_array array;
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->columns, b->columns);
        snprintf(path, sizeof path, "still/part-%u/vertices/node/%s.%s.npy", weir_part_index(part),
                 a->columns ? "matrix" : "mask", a->name);
        assert_ok(weir_npy_map_open(weir_test_path(path), &map, &array));
        assert_int_equal(array.shape[0], here->own);
        weir_npy_map_close(map);
        for (uint64_t place = 0; place < here->own; place++) {
            uint64_t v = 0, found = UINT64_MAX;
            while (weir_vertex_of(all->ids[v]) != weir_vertex_of(here->ids[place]))
                v++;
            assert_true(weir_snapshot_find(weir_part_snapshot(part), 0, weir_vertex_of(all->ids[v]), &found));
            assert_int_equal(found, place);
            if (a->columns)
                assert_memory_equal(a->matrix + place * a->columns, b->matrix + v * a->columns, a->columns * 4);
            else
                assert_int_equal(a->mask[place], b->mask[v]);
        }
    }
    assert_int_equal(here->own, starts[weir_part_index(part) + 1] - starts[weir_part_index(part)]);
}

static void p1_matrices_have_lines_of_own_vertices_alone(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_parts_report report;
    weir_part *part;
    import(weir_test_path("import"), &snapshot);
    const weir_parts_opts opts = {.out = weir_test_path("still"),
                                  .parts = 3,
                                  .depth = 1,
                                  .method = WEIR_PARTS_RANDOM,
                                  .seed = 1,
                                  .clock = weir_clock_system()};
    assert_ok(weir_parts_write(snapshot, &opts, &report));
    assert_int_equal(report.training, NODES / 3);
    for (uint32_t p = 0; p < 3; p++) {
        char name[32];
        snprintf(name, sizeof name, "still/part-%u", p);
        assert_ok(weir_part_open(weir_test_path(name), &(weir_part_opts){.verify = true}, &part));
        assert_true(parts_vertices_of(part, 0)->count > parts_vertices_of(part, 0)->own);
        has_own_lines(weir_snapshot_vertices_of(snapshot, 0), part, weir_part_starts(part, 0));
        weir_part_close(part);
    }
    weir_snapshot_close(snapshot);
}

/* --- how it is cut ----------------------------------------------------------------------------------------------- */

static void metis_finds_the_clusters(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    parts_world_open(&w, 400, 6000);
    for (uint32_t parts = 2; parts <= 4; parts *= 2) {
        char name[16];
        snprintf(name, sizeof name, "m%u", parts);
        parts_cut(&w, name, parts, 0, WEIR_PARTS_METIS, parts_below(&w, 1000), &c);
        assert_int_equal(c.report.row_count, 3);
        assert_int_equal(c.report.rows[1].method, WEIR_PARTS_RANDOM);
        for (uint32_t i = 1; i < 3; i++)
            assert_true(c.report.rows[0].cut_edges < c.report.rows[i].cut_edges / 2);
        assert_true(c.report.rows[0].training_balance < 1.15 && c.report.rows[0].degree_balance < 1.15);
        parts_uncut(&c);
    }
    parts_world_close(&w);
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
        char *x = parts_slurp(weir_test_path(name[0]), &length[0]),
             *y = parts_slurp(weir_test_path(name[1]), &length[1]);
        same = same && length[0] == length[1] && memcmp(x, y, length[0]) == 0;
        weir_free(x);
        weir_free(y);
    }
    return same;
}

static void p4_same_seed_same_files(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    parts_world_open(&w, 200, 3000);
    for (int i = 0; i < 2; i++) {
        parts_cut(&w, i ? "b" : "a", 3, 1, WEIR_PARTS_METIS, 5, &c);
        parts_uncut(&c);
    }
    assert_true(same_files("a", "b", 3));
    parts_world_close(&w);
}

static void p4_seed_and_depth_count(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    char first[65] = "";
    parts_world_open(&w, 200, 3000);
    for (int i = 0; i < 4; i++) {
        const char *const names[] = {"a", "b", "other", "deeper"};
        parts_cut(&w, names[i], 2, i == 3 ? 1 : 0, WEIR_PARTS_RANDOM, i == 2 ? 6 : 5, &c);
        if (!i) memcpy(first, weir_part_cutting(c.of[0]), sizeof first);
        assert_int_equal(strcmp(first, weir_part_cutting(c.of[1])) == 0, i < 2);
        parts_uncut(&c);
    }
    assert_true(same_files("a", "b", 2));
    assert_false(same_files("a", "other", 2)); /* the comparison can see it */
    parts_world_close(&w);
}

static void what_cannot_be_cut_is_said(void **state) {
    (void)state;
    parts_world w;
    weir_parts_report report;
    parts_world_open(&w, 64, 800);
    weir_parts_opts opts = {.out = weir_test_path("out"), .parts = 0, .clock = weir_clock_system()};
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "0 parts are not 1 to 1024");
    opts.parts = WEIR_PARTS_COUNT_MAX + 1;
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "1025 parts are not 1 to 1024");
    opts.parts = 2;
    opts.depth = WEIR_PARTS_DEPTH_MAX + 1;
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "a depth of 8 is not 0 to 7");
    opts.depth = 0;
    for (opts.method = 0; opts.method < WEIR_PARTS_METHODS; opts.method++) {
        opts.parts = 200;
        assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_ELIMIT, "would leave some empty; ask for fewer");
    }
    opts.parts = 2;
    opts.method = WEIR_PARTS_HASH;
    opts.out = weir_test_path("snapshot");
    assert_err(weir_parts_write(w.snapshot, &opts, &report), WEIR_EEXIST, "is there already");
    assert_false(weir_path_exists(weir_test_path("out")));
    parts_world_close(&w);
}

/* Under a name of one component, as somebody in the folder types it. */
static void what_a_crash_left_is_removed(void **state) {
    (void)state;
    parts_world w;
    weir_parts_report report;
    const weir_parts_opts opts = {.out = "parts", .parts = 2, .method = WEIR_PARTS_HASH, .clock = weir_clock_system()};
    parts_world_open(&w, 64, 800);
    assert_int_equal(chdir(weir_test_folder()), 0);
    assert_ok(weir_folder_create("parts.new/left"));
    assert_ok(weir_parts_write(w.snapshot, &opts, &report));
    assert_true(weir_path_exists("parts") && !weir_path_exists("parts.new") && !weir_path_exists("parts/left"));
    parts_world_close(&w);
}

static void whole_or_not_there_after_a_failure(void **state) {
    (void)state;
    parts_world w;
    weir_parts_report report;
    parts_world_open(&w, 64, 800);
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
    parts_world_close(&w);
}

WEIR_TESTS(WEIR_CASE(p1_p2_p3_parts_of_metis_are_the_snapshot), WEIR_CASE(p1_p2_p3_sixteen_parts_are_the_snapshot),
           WEIR_CASE(p1_p2_p3_sixty_four_parts_are_the_snapshot), WEIR_CASE(p1_p2_p3_random_parts_are_the_snapshot),
           WEIR_CASE(p1_p2_p3_hashed_parts_are_the_snapshot),
           WEIR_CASE(p1_labels_that_aggregates_ask_for_are_where_they_are_read), WEIR_CASE(one_part_is_all_of_it),
           WEIR_CASE(the_deepest_part_has_all_lists), WEIR_CASE(p1_matrices_have_lines_of_own_vertices_alone),
           WEIR_CASE(metis_finds_the_clusters), WEIR_CASE(p4_same_seed_same_files), WEIR_CASE(p4_seed_and_depth_count),
           WEIR_CASE(what_cannot_be_cut_is_said), WEIR_CASE(what_a_crash_left_is_removed),
           WEIR_CASE(whole_or_not_there_after_a_failure))
