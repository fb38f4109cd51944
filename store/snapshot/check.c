/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - every number of a snapshot, checked against SNAPSHOT-Z1 to SNAPSHOT-Z3.
 *
 * Whether out and in have the same edges is checked without sorting either: the sum of a hash of each edge is the same
 * in both, whatever the order. An attacker could make two sums agree; like the MANIFEST's hashes, this is against
 * accidents.
 */
#include <stdio.h>

#include <weir/store/base/hash.h>

#include "snapshot_private.h"

static weir_err snapshot_wrong_number(const weir_snapshot *s, const char *array, const char *what, uint64_t place) {
    return WEIR_ERR(WEIR_ECORRUPT, "%s/%s: number %llu %s; take another copy", s->folder, array,
                    (unsigned long long)place, what);
}

static weir_err snapshot_check_rising(const weir_snapshot *s, const char *array, const int64_t *offsets,
                                      uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (offsets[i] > offsets[i + 1])
            return snapshot_wrong_number(s, array, "is less than the one before it", i + 1);
    }
    return WEIR_OK;
}

/* --- features ---------------------------------------------------------------------------------------------------- */

static weir_err snapshot_check_columns(const weir_snapshot *s, const char *folder, const weir_snapshot_column *columns,
                                       uint32_t count, uint64_t rows) {
    char array[512];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        const weir_snapshot_column *c = &columns[i];
        if (c->kind != WEIR_VALUE_CATEGORY) continue;
        snprintf(array, sizeof array, "%s/feature.%s.npy", folder, c->name);
        for (uint64_t row = 0; row < rows; row++) {
            if (c->codes[row] < -1 || c->codes[row] >= (int64_t)c->texts)
                return snapshot_wrong_number(s, array, "has no text", row); /* SNAPSHOT-Z2 */
        }
        err = snapshot_check_rising(s, array, c->text_offsets, c->texts);
    }
    return err;
}

/* --- vertices ---------------------------------------------------------------------------------------------------- */

/* Of each vertex: ascending, each before its own end and, where `apart`, not before the end of the previous one. */
static weir_err snapshot_check_spans(const weir_snapshot *s, const char *folder, const char *times,
                                     const weir_snapshot_spans *spans, uint64_t vertices, bool apart) {
    char array[300], ends[300];
    snprintf(array, sizeof array, "%s/indptr.npy", folder);
    weir_err err = snapshot_check_rising(s, array, spans->indptr, vertices);
    snprintf(array, sizeof array, "%s/%s.npy", folder, times);
    snprintf(ends, sizeof ends, "%s/until.npy", folder);
    for (uint64_t v = 0; !err && v < vertices; v++) {
        for (int64_t i = spans->indptr[v]; i < spans->indptr[v + 1]; i++) {
            if (spans->times[i] >= s->description.as_of_us)
                return snapshot_wrong_number(s, array, "is not before as_of", (uint64_t)i); /* SNAPSHOT-Z3 */
            if (spans->until_us[i] <= spans->times[i])
                return snapshot_wrong_number(s, ends, "is not after its beginning", (uint64_t)i);
            if (i == spans->indptr[v]) continue;
            if (spans->times[i] < (apart ? spans->until_us[i - 1] : spans->times[i - 1] + 1))
                return snapshot_wrong_number(s, array, "is not after the one before it", (uint64_t)i);
        }
    }
    return err;
}

/* Each row belongs to a life: it begins within it and ends with it. */
static weir_err snapshot_check_rows_of_lives(const weir_snapshot *s, const char *folder,
                                             const weir_snapshot_vertices *v) {
    char array[300];
    snprintf(array, sizeof array, "%s/rows/until.npy", folder);
    for (uint64_t vertex = 0; vertex < v->count; vertex++) {
        int64_t life = v->lives.indptr[vertex], lives = v->lives.indptr[vertex + 1];
        for (int64_t i = v->rows.indptr[vertex]; i < v->rows.indptr[vertex + 1]; i++) {
            while (life < lives && v->lives.until_us[life] < v->rows.until_us[i])
                life++;
            if (life == lives || v->lives.until_us[life] != v->rows.until_us[i] ||
                v->rows.times[i] < v->lives.times[life])
                return snapshot_wrong_number(s, array, "is not the end of a life that has the row", (uint64_t)i);
        }
    }
    return WEIR_OK;
}

/* Whether a part may have labels, and with them lives, of vertices of this type that are not its own. */
static bool snapshot_has_labels_of_others(const weir_snapshot *s, uint32_t type) {
    const weir_schema *schema = s->description.schema;
    for (uint32_t i = 0; i < weir_schema_label_count(schema); i++) {
        const weir_schema_label *label = weir_schema_label_at(schema, i);
        if (!label->on_relation && label->target == type && weir_schema_label_counts(schema, i)) return true;
    }
    return false;
}

static weir_err snapshot_check_vertices(const weir_snapshot *s, uint32_t type) {
    const weir_snapshot_vertices *v = &s->vertices[type];
    char folder[256], array[300];
    snprintf(folder, sizeof folder, "vertices/%s", weir_schema_vertex_at(s->description.schema, type)->name);
    snprintf(array, sizeof array, "%s/ids.npy", folder);
    for (uint64_t i = 0, before = 0; i < v->own; i++) {
        uint64_t vertex = v->by_id ? (uint64_t)v->by_id[i] : i;
        if (vertex >= v->own) {
            snprintf(array, sizeof array, "%s/by_id.npy", folder);
            return snapshot_wrong_number(s, array, "is not a vertex of the part's own", i); /* SNAPSHOT-Z2 */
        }
        if (i && weir_vertex_of(v->ids[before]) >= weir_vertex_of(v->ids[vertex]))
            return snapshot_wrong_number(s, array, "is not above the one before it", vertex);
        before = vertex;
    }
    snprintf(array, sizeof array, "%s/lives", folder);
    weir_err err = snapshot_check_spans(s, array, "first", &v->lives, v->count, true);
    snprintf(array, sizeof array, "%s/rows", folder);
    if (!err) err = snapshot_check_spans(s, array, "times", &v->rows, v->count, false);
    if (!err) err = snapshot_check_rows_of_lives(s, folder, v);
    snprintf(array, sizeof array, "%s/key_offsets.npy", folder);
    if (!err) err = snapshot_check_rising(s, array, v->key_offsets, v->count);
    const bool with_lives = snapshot_has_labels_of_others(s, type); /* PARTS-P1 */
    if (!err &&
        ((!with_lives && v->lives.indptr[v->own] != (int64_t)v->lives.count) ||
         v->rows.indptr[v->own] != (int64_t)v->rows.count || v->key_offsets[v->own] != v->key_offsets[v->count]))
        err = snapshot_wrong_number(s, folder, "is not a vertex of the part, but has more than edges", v->own);
    return err ? err : snapshot_check_columns(s, folder, v->columns, v->column_count, v->rows.count);
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

typedef struct direction_check {
    const weir_snapshot *s;
    const weir_snapshot_edges *edges;
    const weir_snapshot_vertices *other;
    weir_direction direction;
    char folder[512];
    uint64_t sum; /* of the hashes of all edges */
} direction_check;

static weir_err snapshot_wrong_edge(const direction_check *c, const char *name, const char *what, uint64_t place) {
    char array[600];
    snprintf(array, sizeof array, "%s/%s.npy", c->folder, name);
    return snapshot_wrong_number(c->s, array, what, place);
}

/* Newest first, then by the neighbour's id (of a whole snapshot its index rises with it), then by event, if edges have
 * any. */
static bool snapshot_edge_in_order(const direction_check *c, int64_t at) {
    const weir_snapshot_edges *e = c->edges;
    int64_t before = e->neighbors[at - 1], here = e->neighbors[at];
    if (e->times[at - 1] != e->times[at]) return e->times[at - 1] > e->times[at];
    if (before == here) return !e->has_events || e->events[at - 1] < e->events[at];
    if (!c->s->description.part) return before < here;
    return weir_vertex_of(c->other->ids[before]) < weir_vertex_of(c->other->ids[here]);
}

static weir_err snapshot_check_list(direction_check *c, uint64_t vertex) {
    const weir_snapshot_edges *e = c->edges;
    int64_t begin = e->indptr[vertex], end = e->indptr[vertex + 1];
    bool out = c->direction == WEIR_OUT;
    if (begin < 0 || end < begin || (uint64_t)end > e->edges) /* SNAPSHOT-Z2 */
        return snapshot_wrong_edge(c, "indptr", "is less than the one before it", vertex + 1);
    for (int64_t at = begin; at < end; at++) {
        uint64_t other = (uint64_t)e->neighbors[at], until = (uint64_t)(e->until_us ? e->until_us[at] : INT64_MAX);
        if (e->neighbors[at] < 0 || other >= c->other->count)
            return snapshot_wrong_edge(c, "neighbors", "is not a vertex", (uint64_t)at); /* SNAPSHOT-Z2 */
        if (e->times[at] >= c->s->description.as_of_us)
            return snapshot_wrong_edge(c, "times", "is not before as_of", (uint64_t)at); /* SNAPSHOT-Z3 */
        if (e->until_us && e->until_us[at] <= e->times[at])
            return snapshot_wrong_edge(c, "until", "is not after its beginning", (uint64_t)at);
        if (e->times[at] > e->newest_us)
            return snapshot_wrong_edge(c, "times", "is newer than the manifest's newest", (uint64_t)at);
        if (at > begin && !snapshot_edge_in_order(c, at))
            return snapshot_wrong_edge(c, "times", "is out of order", (uint64_t)at);
        uint64_t words[] = {out ? vertex : other, out ? other : vertex, (uint64_t)e->times[at], e->events[at], until};
        c->sum += weir_xxh3(words, sizeof words, 0);
    }
    return WEIR_OK;
}

static weir_err snapshot_check_direction(const weir_snapshot *s, uint32_t relation, weir_direction direction,
                                         uint64_t *sump) {
    const weir_schema_relation *r = weir_schema_relation_at(s->description.schema, relation);
    const weir_snapshot_vertices *from = &s->vertices[r->from], *to = &s->vertices[r->to];
    direction_check c = {.s = s, .edges = &s->edges[2 * relation + direction], .direction = direction};
    c.other = direction == WEIR_OUT ? to : from;
    snprintf(c.folder, sizeof c.folder, "relations/%s/%s", r->name, direction == WEIR_OUT ? "out" : "in");
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < c.edges->vertices; i++)
        err = snapshot_check_list(&c, i);
    *sump = c.sum;
    return err ? err : snapshot_check_columns(s, c.folder, c.edges->columns, c.edges->column_count, c.edges->edges);
}

/* --- labels ------------------------------------------------------------------------------------------------------ */

/* Vertex by vertex, and newest first within one: readers look no further. */
static weir_err snapshot_check_label_order(const weir_snapshot *s, const char *array, const weir_snapshot_labels *l,
                                           const weir_snapshot_edges *out) {
    uint64_t before = 0, vertex = 0;
    for (uint64_t i = 0; i < l->count; i++, before = vertex) {
        if (!out) vertex = (uint64_t)l->targets[i];
        while (out && l->targets[i] >= out->indptr[vertex + 1])
            vertex++;
        if (vertex < before || (out && l->targets[i] < out->indptr[vertex]))
            return snapshot_wrong_number(s, array, "has a target before that of the label before it", i);
        if (i > 0 && vertex == before && l->times[i] > l->times[i - 1])
            return snapshot_wrong_number(s, array, "is newer than the one before it", i);
    }
    return WEIR_OK;
}

static weir_err snapshot_check_labels(const weir_snapshot *s, uint32_t label) {
    const weir_schema_label *schema = weir_schema_label_at(s->description.schema, label);
    const weir_snapshot_labels *l = &s->labels[label];
    uint64_t targets; /* of a part: of its own vertices, whose lists are the first; or any, if aggregates ask for it */
    if (schema->on_relation) {
        uint32_t from = weir_schema_relation_at(s->description.schema, schema->target)->from;
        targets = (uint64_t)s->edges[2 * schema->target + WEIR_OUT].indptr[s->vertices[from].own];
    } else {
        const weir_snapshot_vertices *v = &s->vertices[schema->target];
        targets = weir_schema_label_counts(s->description.schema, label) ? v->count : v->own;
    }
    char array[512];
    snprintf(array, sizeof array, "labels/%s/", schema->name);
    for (uint64_t i = 0; i < l->count; i++) {
        if (l->targets[i] < 0 || (uint64_t)l->targets[i] >= targets)
            return snapshot_wrong_number(s, array, "has no target", i); /* SNAPSHOT-Z2 */
        if (l->values[i] < 0 || (uint32_t)l->values[i] >= schema->values.count)
            return snapshot_wrong_number(s, array, "has no value of the schema", i); /* SNAPSHOT-Z2 */
        if (l->times[i] >= s->description.as_of_us)
            return snapshot_wrong_number(s, array, "is not before as_of", i); /* SNAPSHOT-Z3 */
    }
    return snapshot_check_label_order(s, array, l,
                                      schema->on_relation ? &s->edges[2 * schema->target + WEIR_OUT] : NULL);
}

weir_err weir_snapshot_check(const weir_snapshot *s) {
    const weir_schema *schema = s->description.schema;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_vertex_count(schema); i++) {
        err = snapshot_check_vertices(s, i);
        weir_snapshot_give_back(s);
    }
    for (uint32_t i = 0; !err && i < weir_schema_relation_count(schema); i++) {
        uint64_t out = 0, in = 0;
        err = snapshot_check_direction(s, i, WEIR_OUT, &out);
        weir_snapshot_give_back(s);
        if (!err) err = snapshot_check_direction(s, i, WEIR_IN, &in);
        weir_snapshot_give_back(s);
        if (!err && out != in && !s->description.part) /* SNAPSHOT-Z1 */
            err = WEIR_ERR(WEIR_ECORRUPT, "%s/relations/%s: out and in do not have the same edges; take another copy",
                           s->folder, weir_schema_relation_at(schema, i)->name);
    }
    for (uint32_t i = 0; !err && i < weir_schema_label_count(schema); i++)
        err = snapshot_check_labels(s, i);
    weir_snapshot_give_back(s);
    return err;
}
