/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - a snapshot as a source: arrays for the sampler, of which nothing is copied but the table of where they
 * lie, and its columns as values. */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/snapshot/snapshot.h>

#include "sampler_private.h"

#define SNAPSHOT_LIVES 64u /* so many targets are asked about together */

/* Of a target whose aggregates were precomputed. */
typedef struct snapshot_life {
    uint64_t vertex, life;
    int64_t put_us;
    uint16_t type;
    bool there;
} snapshot_life;

/* What weir_sample_over_arrays borrows; it goes with the source. */
typedef struct snapshot_tables {
    const weir_snapshot *snapshot;
    uint32_t types, relations;
    weir_sample_ends *ends;
    weir_sample_csr *csrs;
    const uint64_t **ids; /* low halves */
    uint64_t *vertices;
    const float ***features; /* relation * 2 + direction */
    const int32_t ***codes;
    uint8_t **labelled; /* of a label: a bit a vertex that has any; NULL: it has not been asked for yet */
    uint32_t labels;
    snapshot_life lives[SNAPSHOT_LIVES]; /* of the targets that were asked about last, by their places */
} snapshot_tables;

static void snapshot_tables_free(void *tables) {
    snapshot_tables *t = tables;
    for (uint32_t i = 0; t->features && i < 2 * t->relations; i++)
        weir_free(t->features[i]);
    for (uint32_t i = 0; t->codes && i < 2 * t->relations; i++)
        weir_free(t->codes[i]);
    for (uint32_t i = 0; t->labelled && i < t->labels; i++)
        weir_free(t->labelled[i]);
    weir_free(t->labelled);
    weir_free(t->features);
    weir_free(t->codes);
    weir_free(t->ends);
    weir_free(t->csrs);
    weir_free(t->ids);
    weir_free(t->vertices);
    weir_free(t);
}

/* Where pairs were loaded, two columns are read with one stride. Without times no time is read. */
static weir_err snapshot_tables_fill_csr(snapshot_tables *t, const weir_snapshot *snapshot, uint32_t relation,
                                         weir_direction direction) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, relation, direction);
    const weir_sample_ends *ends = &t->ends[relation];
    const uint64_t *own = t->ids[direction == WEIR_OUT ? ends->from : ends->to];
    uint32_t at = 2 * relation + direction;
    const bool paired = e->vertex_pairs != NULL;
    t->csrs[at] = (weir_sample_csr){
        .indptr = paired ? e->vertex_pairs : e->indptr,
        .ids = paired ? (const uint64_t *)(e->vertex_pairs + 1) : own,
        .neighbors = paired ? e->edge_pairs : e->neighbors,
        .times = !e->has_times ? NULL
                 : paired      ? e->edge_pairs + 1
                               : e->times,
        .vertex_stride = paired ? 16 : 8,
        .id_stride = sizeof(weir_vertex_pair), /* also that of pairs */
        .edge_stride = paired && e->has_times ? 16 : 8,
        .events = e->events,
        .until_us = e->until_us,
        .feature_count = e->column_count,
        .vertices = e->vertices,
        .edges = e->edges,
        .newest_us = e->has_times ? e->newest_us : 0,
        .expire_us = e->expire_us,
    };
    t->csrs[at].features = t->features[at] = weir_calloc(e->column_count + 1, sizeof *t->features[at]);
    t->csrs[at].codes = t->codes[at] = weir_calloc(e->column_count + 1, sizeof *t->codes[at]);
    if (!t->features[at] || !t->codes[at]) return WEIR_NOMEM("for a source of samples");
    for (uint32_t i = 0; i < e->column_count; i++) {
        t->features[at][i] = e->columns[i].numbers;
        t->codes[at][i] = e->columns[i].codes;
    }
    return WEIR_OK;
}

static weir_err snapshot_tables_fill(snapshot_tables *t, const weir_snapshot *snapshot) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint32_t types = t->types, relations = t->relations;
    weir_err err = WEIR_OK;
    t->ends = weir_calloc(relations + 1, sizeof *t->ends);
    t->csrs = weir_calloc(2 * relations + 1, sizeof *t->csrs);
    t->ids = weir_calloc(types + 1, sizeof *t->ids);
    t->vertices = weir_calloc(types + 1, sizeof *t->vertices);
    t->features = weir_calloc(2 * relations + 1, sizeof *t->features);
    t->codes = weir_calloc(2 * relations + 1, sizeof *t->codes);
    t->labelled = weir_calloc(t->labels + 1, sizeof *t->labelled);
    if (!t->ends || !t->csrs || !t->ids || !t->vertices || !t->features || !t->codes || !t->labelled)
        return WEIR_NOMEM("for a source of samples");
    for (uint32_t i = 0; i < types; i++) {
        t->ids[i] = &weir_snapshot_vertices_of(snapshot, i)->ids->low;
        t->vertices[i] = weir_snapshot_vertices_of(snapshot, i)->count;
    }
    for (uint32_t i = 0; !err && i < relations; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(schema, i);
        t->ends[i] = (weir_sample_ends){(uint16_t)r->from, (uint16_t)r->to};
        err = snapshot_tables_fill_csr(t, snapshot, i, WEIR_OUT);
        if (!err) err = snapshot_tables_fill_csr(t, snapshot, i, WEIR_IN);
    }
    return err;
}

/* --- what is known of vertices and edges -------------------------------------------------------------------------- */

static const weir_snapshot *snapshot_of(weir_sample_source *source) {
    return ((const snapshot_tables *)weir_sample_arrays_owned(source))->snapshot;
}

static weir_value snapshot_value_at(const weir_snapshot_column *column, uint64_t row) {
    weir_value value = {0};
    if (column->kind == WEIR_VALUE_NUMBER) {
        value.number = (double)column->numbers[row];
        value.present = !isnan(value.number);
    } else if (column->kind == WEIR_VALUE_TIME) {
        value.time_us = column->times[row];
        value.present = value.time_us != WEIR_SNAPSHOT_NEVER;
    } else if (column->codes[row] >= 0 && (uint64_t)column->codes[row] < column->texts) {
        const int64_t *at = &column->text_offsets[column->codes[row]];
        value.text = (const char *)column->text_bytes + at[0];
        value.text_length = (uint8_t)(at[1] - at[0]);
        value.present = true;
    }
    return value;
}

/* Begins to fetch what the spans of all are found by, and then the newest of each, which is what most targets see: the
 * misses of many vertices overlap, where one after the other would wait for each. */
static void snapshot_prefetch_spans(const weir_snapshot_spans *spans, const weir_sample_vertices *of) {
    for (uint32_t i = 0; i < of->count; i++)
        __builtin_prefetch(&spans->indptr[of->vertices[i] + 1]);
    for (uint32_t i = 0; i < of->count; i++) {
        int64_t last = spans->indptr[of->vertices[i] + 1] - 1;
        if (last < 0 || last >= (int64_t)spans->count) continue;
        __builtin_prefetch(&spans->times[last]);
        __builtin_prefetch(&spans->until_us[last]);
    }
}

/* The same of the columns of rows. */
static void snapshot_prefetch_columns(const weir_snapshot_vertices *v, const weir_sample_vertices *of) {
    for (uint32_t i = 0; i < of->count; i++) {
        int64_t last = v->rows.indptr[of->vertices[i] + 1] - 1;
        if (last < 0 || last >= (int64_t)v->rows.count) continue;
        for (uint32_t c = 0; c < v->column_count; c++) {
            const weir_snapshot_column *column = &v->columns[c];
            if (column->numbers) __builtin_prefetch(&column->numbers[last]);
            if (column->codes) __builtin_prefetch(&column->codes[last]);
            if (column->times) __builtin_prefetch(&column->times[last]);
        }
    }
}

/* A target sees what was put up to its time, everyone else what was put before it. */
static int64_t snapshot_before_us(const weir_sample_vertices *of, uint32_t i) {
    return of->before_us[i] + (of->targets && of->before_us[i] < INT64_MAX);
}

static weir_err snapshot_features(weir_sample_source *source, const weir_sample_vertices *of, weir_value *values) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot_of(source), of->type);
    weir_err err = WEIR_OK;
    WEIR_ASSERT(v->column_count <= WEIR_ROW_FEATURES_MAX);
    /* The sampler checks a vertex when it looks up its edges; those of the last hop are looked up here first. */
    for (uint32_t i = 0; !err && i < of->count; i++)
        err = weir_snapshot_check_vertex(snapshot_of(source), of->type, of->vertices[i]);
    if (err || v->column_count == 0) return err;
    if (v->rows.count) {
        snapshot_prefetch_spans(&v->rows, of);
        snapshot_prefetch_columns(v, of);
    }
    for (uint32_t i = 0; i < of->count; i++, values += v->column_count) {
        uint64_t row;
        bool seen = weir_snapshot_span(&v->rows, of->vertices[i], snapshot_before_us(of, i), &row);
        WEIR_ASSERT(!seen || v->rows.times[row] <= of->before_us[i]);
        for (uint32_t c = 0; c < v->column_count; c++)
            values[c] = seen ? snapshot_value_at(&v->columns[c], row) : (weir_value){0};
    }
    return WEIR_OK;
}

/* Which vertices have a label at all: few have, and a bit says so of the others. */
static weir_err snapshot_see_labelled(snapshot_tables *t, uint32_t type, uint32_t label) {
    const weir_snapshot_labels *l = weir_snapshot_labels_of(t->snapshot, label);
    const uint64_t count = weir_snapshot_vertices_of(t->snapshot, type)->count;
    if (t->labelled[label]) return WEIR_OK;
    uint8_t *bits = t->labelled[label] = weir_calloc(count / 8 + 1, 1);
    if (!bits) return WEIR_NOMEM("for a source of samples");
    for (uint64_t i = 0; i < l->count; i++)
        if ((uint64_t)l->targets[i] < count) /* SNAPSHOT-Z2: the file is not trusted */
            bits[l->targets[i] / 8] |= (uint8_t)(1u << l->targets[i] % 8);
    return WEIR_OK;
}

/* The newest label of the life that the vertex has before the time. */
static weir_err snapshot_label_before(const weir_snapshot *snapshot, uint32_t label, uint64_t vertex, int64_t before_us,
                                      uint32_t *valuep) {
    const weir_schema_label *told = weir_schema_label_at(weir_snapshot_schema(snapshot), label);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, told->target);
    const weir_snapshot_labels *l = weir_snapshot_labels_of(snapshot, label);
    uint64_t begin = 0, end = l->count, life;
    *valuep = WEIR_SCHEMA_NONE;
    if (!weir_snapshot_span(&v->lives, vertex, before_us, &life)) return WEIR_OK;
    while (begin < end) {
        uint64_t middle = begin + (end - begin) / 2;
        if ((uint64_t)l->targets[middle] < vertex)
            begin = middle + 1;
        else
            end = middle;
    }
    while (end < l->count && (uint64_t)l->targets[end] == vertex)
        end++;
    weir_snapshot_labels_of_life(v, vertex, life, l, &begin, &end);
    while (begin < end && l->times[begin] >= before_us)
        begin++;
    if (begin == end) return WEIR_OK;
    WEIR_ASSERT(l->times[begin] < before_us); /* AGGREGATE-G4 */
    *valuep = (uint32_t)l->values[begin];
    if (*valuep < told->values.count) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the snapshot says that a vertex has value %u of label '%s', which has only %u; take "
                    "another copy",
                    *valuep, told->name, told->values.count);
}

static weir_err snapshot_labels(weir_sample_source *source, const weir_sample_vertices *of, uint32_t label,
                                uint32_t *values) {
    snapshot_tables *t = weir_sample_arrays_owned(source);
    weir_err err = snapshot_see_labelled(t, of->type, label);
    if (err) return err;
    const uint8_t *bits = t->labelled[label];
    const uint64_t count = weir_snapshot_vertices_of(t->snapshot, of->type)->count;
    for (uint32_t i = 0; i < of->count; i++)
        if (of->vertices[i] < count) __builtin_prefetch(&bits[of->vertices[i] / 8]);
    for (uint32_t i = 0; !err && i < of->count; i++) {
        const uint64_t vertex = of->vertices[i];
        values[i] = WEIR_SCHEMA_NONE;
        err = weir_snapshot_check_vertex(t->snapshot, of->type, vertex);
        if (err || !(bits[vertex / 8] >> vertex % 8 & 1)) continue;
        err = snapshot_label_before(t->snapshot, label, vertex, of->before_us[i], &values[i]);
    }
    return err;
}

/* The life that begins with the target's own put. One target is asked about for each aggregate in turn. */
static weir_err snapshot_life_of(snapshot_tables *t, const weir_sample_vertices *of, uint32_t i, uint64_t *lifep) {
    const uint64_t vertex = of->vertices[i];
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(t->snapshot, of->type);
    snapshot_life *last = &t->lives[i % SNAPSHOT_LIVES];
    if (last->there && last->type == of->type && last->vertex == vertex && last->put_us == of->before_us[i]) {
        *lifep = last->life;
        return WEIR_OK;
    }
    weir_err err = weir_snapshot_life_of_put(t->snapshot, of->type, vertex, of->before_us[i], lifep);
    if (!err && (vertex >= v->own || *lifep == v->lives.count))
        err = WEIR_ERR(
            WEIR_EDATA,
            "the part says what aggregates are when one of its own vertices is put, and vertex %llu is not asked about "
            "as of then; make parts that reach further, with `weir partition --depth`",
            (unsigned long long)vertex);
    if (!err) *last = (snapshot_life){vertex, *lifep, of->before_us[i], of->type, true};
    return err;
}

static weir_err snapshot_precomputed(weir_sample_source *source, const weir_sample_vertices *of, uint32_t aggregate,
                                     double *values, size_t stride, bool *therep) {
    snapshot_tables *t = weir_sample_arrays_owned(source);
    weir_err err = WEIR_OK;
    *therep = weir_snapshot_has_precomputed(t->snapshot, aggregate);
    for (uint32_t i = 0; *therep && !err && i < of->count; i++) {
        uint64_t life;
        values[i * stride] = (double)NAN;
        if (!of->events || of->events[i] == WEIR_SAMPLE_NO_TARGET) continue;
        err = snapshot_life_of(t, of, i, &life);
        if (!err) err = weir_snapshot_precomputed(t->snapshot, aggregate, life, &values[i * stride]);
    }
    return err;
}

static weir_err snapshot_edge_features(weir_sample_source *source, const weir_sample_step *step,
                                       const weir_block_edges *edges, uint32_t begin, uint32_t count,
                                       weir_value *values) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot_of(source), step->relation, step->direction);
    WEIR_ASSERT(e->column_count <= WEIR_ROW_FEATURES_MAX && begin + count <= edges->count);
    for (uint32_t i = begin; i < begin + count; i++, values += e->column_count) {
        WEIR_ASSERT(edges->refs[i] < e->edges);
        for (uint32_t c = 0; c < e->column_count; c++)
            values[c] = snapshot_value_at(&e->columns[c], edges->refs[i]);
    }
    return WEIR_OK;
}

static const float *snapshot_matrix(weir_sample_source *source, uint32_t type, const char *name, uint32_t columns) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot_of(source), type);
    for (uint32_t i = 0; i < v->extra_count; i++)
        if (v->extras[i].matrix && v->extras[i].columns == columns && strcmp(v->extras[i].name, name) == 0)
            return v->extras[i].matrix;
    return NULL;
}

static void snapshot_there(weir_sample_source *source, const weir_sample_vertices *of, bool *there) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot_of(source), of->type);
    uint64_t life;
    if (weir_snapshot_lives_alike(snapshot_of(source), of->type)) { /* nothing has to be looked up */
        for (uint32_t i = 0; i < of->count; i++)
            there[i] = v->lives.times[0] < snapshot_before_us(of, i);
        return;
    }
    snapshot_prefetch_spans(&v->lives, of);
    for (uint32_t i = 0; i < of->count; i++)
        there[i] = weir_snapshot_span(&v->lives, of->vertices[i], snapshot_before_us(of, i), &life);
}

static weir_err snapshot_spans(weir_sample_source *source, const weir_sample_vertices *of, int64_t *since_us,
                               int64_t *until_us) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot_of(source), of->type);
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < of->count; i++)
        err = weir_snapshot_check_vertex(snapshot_of(source), of->type, of->vertices[i]);
    if (err) return err;
    if (v->rows.count) snapshot_prefetch_spans(&v->rows, of);
    for (uint32_t i = 0; i < of->count; i++) {
        const int64_t before_us = snapshot_before_us(of, i), later = before_us - of->before_us[i];
        since_us[i] = INT64_MIN;
        until_us[i] = INT64_MAX;
        if (v->column_count)
            weir_snapshot_span_bounds(&v->rows, of->vertices[i], before_us, &since_us[i], &until_us[i]);
        if (v->extra_count)
            weir_snapshot_span_bounds(&v->lives, of->vertices[i], before_us, &since_us[i], &until_us[i]);
        if (since_us[i] > INT64_MIN) since_us[i] -= later;
        if (until_us[i] < INT64_MAX) until_us[i] -= later;
        WEIR_ASSERT(since_us[i] <= of->before_us[i]);
    }
    return WEIR_OK;
}

/* --- the handle --------------------------------------------------------------------------------------------------- */

weir_err weir_sample_over_snapshot(const weir_snapshot *snapshot, weir_sample_source **sourcep) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    *sourcep = NULL;
    snapshot_tables *t = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM("for a source of samples");
    t->snapshot = snapshot;
    t->types = weir_schema_vertex_count(schema);
    t->relations = weir_schema_relation_count(schema);
    t->labels = weir_schema_label_count(schema);
    weir_err err = snapshot_tables_fill(t, snapshot);
    const weir_sample_arrays arrays = {.types = t->types,
                                       .relations = t->relations,
                                       .ends = t->ends,
                                       .csrs = t->csrs,
                                       .ids = t->ids,
                                       .vertices = t->vertices,
                                       .id_stride = sizeof(weir_vertex_pair)};
    if (!err) err = weir_sample_over_arrays(&arrays, sourcep);
    if (err) {
        snapshot_tables_free(t);
        return err;
    }
    weir_sample_arrays_own(*sourcep, t, snapshot_tables_free);
    (*sourcep)->features = snapshot_features;
    (*sourcep)->spans = snapshot_spans;
    (*sourcep)->labels = snapshot_labels;
    (*sourcep)->precomputed = snapshot_precomputed;
    (*sourcep)->edge_features = snapshot_edge_features;
    (*sourcep)->matrix = snapshot_matrix;
    (*sourcep)->there = snapshot_there;
    return WEIR_OK;
}
