/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate.c - the aggregates of a type are grouped by (relation, direction, ends, walk, label): each window is read
 * once, from its newest edge on, and each aggregate uses the part that its own window covers. Those with a label read
 * windows of their own, because theirs are long and need few edges.
 */
#include <math.h>
#include <string.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "walk.h"

#define ROWS_AT_ONCE 64u /* parents that a source takes at a time */
#define END_EDGES    16u /* of a target, among which the one to an end of a pair is */

/* Where the rows at hand lead along a relation, if they have been looked at for that. */
typedef struct aggregate_ends {
    uint64_t batch; /* of rows: other than the one at hand, if not */
    bool found[ROWS_AT_ONCE];
    weir_vertex vertices[ROWS_AT_ONCE];
} aggregate_ends;

typedef struct aggregate_column {
    uint64_t neighbor;
    int64_t time_us;
} aggregate_column;

/* Targets of which both ends are known: so many of the rows at hand. Only a schema with pairs has this. */
typedef struct aggregate_pairs {
    uint32_t count;
    uint32_t rows[ROWS_AT_ONCE];
    int64_t before_us[ROWS_AT_ONCE];
    uint64_t firsts[ROWS_AT_ONCE]; /* as a source over arrays calls them, or: */
    weir_vertex first_ids[ROWS_AT_ONCE];
    weir_vertex seconds[ROWS_AT_ONCE];
    float (*own)[ROWS_AT_ONCE]; /* of each aggregate with a ratio the number of the edge to the end */
    aggregate_ends ends[];      /* a relation: several pairs may share an end */
} aggregate_pairs;

/* What was told of the neighbours of a window. Only a schema with labelled aggregates has this. */
typedef struct aggregate_told {
    uint64_t vertices[WEIR_AGGREGATE_LABELLED]; /* as a source over arrays calls them, or: */
    weir_vertex ids[WEIR_AGGREGATE_LABELLED];
    int64_t before_us[WEIR_AGGREGATE_LABELLED];
    uint32_t values[WEIR_AGGREGATE_LABELLED];
} aggregate_told;

typedef struct aggregate_scratch {
    weir_aggregate_set set;
    /* Of the window at hand: aggregates of one feature share what was decoded of it, each its own part. */
    float numbers[WEIR_AGGREGATE_EDGES];
    uint32_t numbers_of, number_count; /* the feature, and how many of its edges */
    uint64_t codes[WEIR_AGGREGATE_EDGES];
    bool counts[WEIR_AGGREGATE_EDGES]; /* which edges of a window do */
    weir_sample_window windows[ROWS_AT_ONCE];
    int64_t since_us[ROWS_AT_ONCE];
    uint64_t batch; /* which rows are at hand */
} aggregate_scratch;

struct weir_aggregates {
    const weir_schema *schema;
    weir_sample_source *source;
    aggregate_scratch *scratch; /* NULL: nothing has been read yet */
    aggregate_pairs *pairs;     /* NULL: nothing of an end yet */
    aggregate_told *told;       /* NULL: nothing with a label yet */
    weir_walk *walk;            /* NULL: nothing through others yet */
    /* Of a window the edges that count: a weir_edge each, or of arrays a column and a place. */
    weir_buf edges;
    weir_buf places;
};

/* One read: a vertex's window, and where its aggregates' values go. */
typedef struct aggregate_reading {
    weir_aggregates *a;
    const weir_sample_ask *ask;
    const weir_sample_window *window;
    int64_t before_us;
    uint32_t steps; /* of a walk that met anybody */
    uint32_t row;   /* of those at hand */
} aggregate_reading;

uint32_t weir_aggregates_count(const weir_schema *schema, uint32_t vertex_type) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++)
        count += weir_schema_aggregate_at(schema, i)->vertex == vertex_type;
    return count;
}

const weir_schema_aggregate *weir_aggregates_of_ends(const weir_schema *schema, uint32_t vertex_type) {
    const weir_schema_aggregate *furthest = NULL;
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
        if (aggregate->vertex != vertex_type || aggregate->between[0] == WEIR_SCHEMA_NONE) continue;
        if (!furthest || aggregate->through_count > furthest->through_count) furthest = aggregate;
    }
    return furthest;
}

uint32_t weir_aggregates_hops(const weir_schema_aggregate *aggregate) {
    return aggregate->between[0] == WEIR_SCHEMA_NONE ? 0 : 1 + aggregate->through_count;
}

/* Rounded down to the resolution: towards the past, before 1970 too. */
static int64_t aggregate_window_begin(const weir_schema_aggregate *aggregate, int64_t before_us) {
    int64_t begin_us, floored_us;
    if (__builtin_sub_overflow(before_us, aggregate->window_us, &begin_us)) return INT64_MIN;
    if (!aggregate->resolution_us) return begin_us;
    int64_t rest = begin_us % aggregate->resolution_us;
    if (rest < 0) rest += aggregate->resolution_us;
    return __builtin_sub_overflow(begin_us, rest, &floored_us) ? INT64_MIN : floored_us;
}

/* How many of the window's edges are not older than `begin_us`: times fall. */
static uint32_t aggregate_edges_since(const weir_sample_window *window, int64_t begin_us) {
    uint32_t low = 0, high = window->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (weir_sample_window_time(window, middle) >= begin_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WEIR_ASSERT(low == 0 || weir_sample_window_time(window, low - 1) >= begin_us); /* AGGREGATE-G1 */
    return low;
}

/* --- functions ------------------------------------------------------------------------------------------------ */

static double aggregate_distinct_neighbors(const aggregate_reading *r, uint32_t count) {
    weir_aggregate_set *set = &r->a->scratch->set;
    uint32_t different = 0;
    weir_aggregate_set_begin(set, count);
    for (uint32_t i = 0; i < count; i++)
        different += weir_aggregate_set_add(set, weir_aggregate_neighbor_at(r->a->source, r->window, i));
    return different;
}

static double aggregate_distinct_codes(const aggregate_reading *r, uint32_t count) {
    weir_aggregate_set *set = &r->a->scratch->set;
    const uint64_t *codes = r->a->scratch->codes;
    uint32_t different = 0;
    weir_aggregate_set_begin(set, count);
    for (uint32_t i = 0; i < count; i++)
        different += codes[i] && weir_aggregate_set_add(set, codes[i]);
    return different;
}

/* The feature's numbers of the newest `count` edges of the window. */
static weir_err aggregate_decode(const aggregate_reading *r, uint32_t feature, uint32_t count) {
    aggregate_scratch *s = r->a->scratch;
    if (s->numbers_of != feature) s->number_count = 0;
    s->numbers_of = feature;
    if (s->number_count >= count) return WEIR_OK;
    weir_sample_window more = weir_sample_window_part(r->window, s->number_count, count);
    weir_err err = r->a->source->numbers(r->a->source, r->ask, &more, feature, s->numbers + s->number_count);
    s->number_count = err ? 0 : count;
    return err;
}

static double aggregate_deviation(const float *numbers, uint32_t count, double mean, uint32_t present) {
    double squares = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!isnan(numbers[i])) squares += ((double)numbers[i] - mean) * ((double)numbers[i] - mean);
    return sqrt(squares / present);
}

/* From the newest to the oldest in doubles: the same order, so the same bits, in every source. */
static double aggregate_of_numbers(weir_schema_function function, const float *numbers, uint32_t count) {
    double sum = 0, largest = -INFINITY, least = INFINITY;
    uint32_t present = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(numbers[i])) continue;
        present++;
        sum += (double)numbers[i];
        if ((double)numbers[i] > largest) largest = (double)numbers[i];
        if ((double)numbers[i] < least) least = (double)numbers[i];
    }
    if (function == WEIR_SCHEMA_SUM) return sum;
    if (!present) return (double)NAN;
    if (function == WEIR_SCHEMA_MAX) return largest;
    if (function == WEIR_SCHEMA_MIN) return least;
    return function == WEIR_SCHEMA_MEAN ? sum / present : aggregate_deviation(numbers, count, sum / present, present);
}

/* Of the newest edge that has a number. Times fall, but for edges that a walk has met. */
static double aggregate_newest(const aggregate_reading *r, uint32_t count) {
    const float *numbers = r->a->scratch->numbers;
    double newest = (double)NAN;
    int64_t newest_us = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t time_us = weir_sample_window_time(r->window, i);
        if (isnan(numbers[i]) || (!isnan(newest) && time_us <= newest_us)) continue;
        newest = (double)numbers[i];
        newest_us = time_us;
    }
    return newest;
}

/* In seconds. Where there is no edge, the last one was before the window and the first one is yet to come. Times fall,
 * but for edges that a walk has met. */
static double aggregate_age(const aggregate_reading *r, const weir_schema_aggregate *aggregate, uint32_t count) {
    bool last = aggregate->function == WEIR_SCHEMA_SINCE_LAST;
    if (!count) return last ? (double)aggregate->window_us * 1e-6 : 0;
    int64_t time_us = weir_sample_window_time(r->window, last ? 0 : count - 1);
    for (uint32_t i = 0; aggregate->through_count > 0 && i < count; i++) {
        const int64_t other_us = weir_sample_window_time(r->window, i);
        if (last ? other_us > time_us : other_us < time_us) time_us = other_us;
    }
    WEIR_ASSERT(time_us < r->before_us); /* AGGREGATE-G1 */
    return (double)((uint64_t)r->before_us - (uint64_t)time_us) * 1e-6;
}

static weir_err aggregate_evaluate(const aggregate_reading *r, const weir_schema_aggregate *aggregate, double *valuep) {
    aggregate_scratch *s = r->a->scratch;
    const uint32_t count = aggregate->through_count > 0 /* then the window has what counts, and nothing else */
                               ? r->window->count
                               : aggregate_edges_since(r->window, aggregate_window_begin(aggregate, r->before_us));
    weir_sample_window part;
    weir_err err = WEIR_OK;
    switch (aggregate->function) {
    case WEIR_SCHEMA_COUNT:
        *valuep = count;
        break;
    case WEIR_SCHEMA_DEPTH:
        *valuep = r->steps + (count > 0);
        break;
    case WEIR_SCHEMA_SINCE_LAST:
    case WEIR_SCHEMA_SINCE_FIRST:
        *valuep = aggregate_age(r, aggregate, count);
        break;
    case WEIR_SCHEMA_DISTINCT:
        if (aggregate->of == WEIR_SCHEMA_NONE) {
            *valuep = aggregate_distinct_neighbors(r, count);
            break;
        }
        part = weir_sample_window_part(r->window, 0, count);
        err = r->a->source->codes(r->a->source, r->ask, &part, aggregate->of, s->codes);
        if (!err) *valuep = aggregate_distinct_codes(r, count);
        break;
    case WEIR_SCHEMA_SUM:
    case WEIR_SCHEMA_MEAN:
    case WEIR_SCHEMA_MAX:
    case WEIR_SCHEMA_MIN:
    case WEIR_SCHEMA_DEVIATION:
        err = aggregate_decode(r, aggregate->of, count);
        if (!err) *valuep = aggregate_of_numbers(aggregate->function, s->numbers, count);
        break;
    case WEIR_SCHEMA_NEWEST:
        err = aggregate_decode(r, aggregate->of, count);
        if (!err) *valuep = aggregate_newest(r, count);
        break;
    }
    return err;
}

/* The number of the edge to the end, as a multiple of what was found there. */
static double aggregate_ratio(float own, double found) {
    return found > 0 ? (double)own / found : (double)NAN;
}

/* --- groups --------------------------------------------------------------------------------------------------- */

static bool aggregate_shares_alike(const weir_schema_aggregate *x, const weir_schema_aggregate *y) {
    const weir_schema_share *a = &x->share, *b = &y->share;
    return a->of == b->of && a->least >= b->least && a->least <= b->least && a->most >= b->most && a->most <= b->most;
}

/* Whether two meet the same vertices, which depend on the window. */
static bool aggregate_walks_alike(const weir_schema_aggregate *x, const weir_schema_aggregate *y) {
    if (x->through_count != y->through_count) return false;
    for (uint32_t i = 0; i < x->through_count; i++)
        if (x->through[i].relation != y->through[i].relation || x->through[i].direction != y->through[i].direction)
            return false;
    return x->through_count == 0 || (x->crowd == y->crowd && x->ordered == y->ordered && x->window_us == y->window_us &&
                                     x->resolution_us == y->resolution_us && aggregate_shares_alike(x, y));
}

/* Whether two are read from the same windows. */
static bool aggregate_shares(const weir_schema_aggregate *x, const weir_schema_aggregate *y) {
    return x->vertex == y->vertex && x->relation == y->relation && x->direction == y->direction &&
           x->between[0] == y->between[0] && x->between[1] == y->between[1] && x->label == y->label &&
           aggregate_walks_alike(x, y);
}

static weir_direction aggregate_direction(weir_schema_direction direction) {
    return direction == WEIR_SCHEMA_OUT ? WEIR_OUT : WEIR_IN;
}

/* Where the longest of the group's windows begins, for each time. */
static void aggregate_see_begins(const weir_aggregates *a, const weir_schema_aggregate *first, const int64_t *before_us,
                                 uint32_t count) {
    int64_t *since_us = a->scratch->since_us;
    for (uint32_t row = 0; row < count; row++)
        since_us[row] = INT64_MAX;
    for (uint32_t i = 0; i < weir_schema_aggregate_count(a->schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
        if (!aggregate_shares(aggregate, first)) continue;
        for (uint32_t row = 0; row < count; row++) {
            int64_t begin_us = aggregate_window_begin(aggregate, before_us[row]);
            if (begin_us < since_us[row]) since_us[row] = begin_us;
        }
    }
}

static void aggregate_keep_begin(weir_aggregates *a) {
    weir_buf_clear(&a->edges);
    weir_buf_clear(&a->places);
}

/* One more edge that counts, which leads to that neighbour. */
static void aggregate_keep_edge(weir_aggregates *a, const weir_sample_window *window, uint32_t i,
                                weir_vertex neighbor) {
    if (window->edges) {
        weir_edge edge = window->edges[i];
        edge.neighbor = neighbor;
        weir_buf_append(&a->edges, &edge, sizeof edge);
        return;
    }
    const aggregate_column column = {(uint64_t)neighbor, weir_sample_window_time(window, i)};
    const uint64_t place = window->places ? window->places[i] : window->first + i;
    weir_buf_append(&a->edges, &column, sizeof column);
    weir_buf_append(&a->places, &place, sizeof place);
}

/* Those that were kept, in their order: a window like any other, until the next. wide: edges of a graph. */
static weir_err aggregate_kept(const weir_aggregates *a, bool wide, weir_sample_window *kept) {
    weir_err err = weir_buf_err(&a->edges);
    if (!err) err = weir_buf_err(&a->places);
    if (err) return err;
    const uint8_t *edges = (const uint8_t *)a->edges.bytes;
    *kept = (weir_sample_window){0};
    if (a->edges.length == 0) return WEIR_OK;
    if (wide) {
        kept->edges = (const weir_edge *)(const void *)edges;
        kept->neighbors = edges + offsetof(weir_edge, neighbor);
        kept->times = edges + offsetof(weir_edge, time_us);
        kept->stride = kept->times_stride = sizeof(weir_edge);
    } else {
        kept->places = (const uint64_t *)(const void *)a->places.bytes;
        kept->neighbors = edges + offsetof(aggregate_column, neighbor);
        kept->times = edges + offsetof(aggregate_column, time_us);
        kept->stride = kept->times_stride = sizeof(aggregate_column);
    }
    kept->count = (uint32_t)(a->edges.length / kept->stride);
    return WEIR_OK;
}

/* Of a window the edges that count (scratch->counts). */
static weir_err aggregate_keep(weir_aggregates *a, const weir_sample_window *window, weir_sample_window *kept) {
    aggregate_keep_begin(a);
    for (uint32_t i = 0; i < window->count; i++)
        if (a->scratch->counts[i]) aggregate_keep_edge(a, window, i, weir_aggregate_neighbor_at(a->source, window, i));
    return aggregate_kept(a, window->edges != NULL, kept);
}

/* What was told of the neighbours of a window before its time (AGGREGATE-G4): asked for once, for all aggregates of the
 * group. */
static weir_err aggregate_find_told(const aggregate_reading *r, const weir_schema_aggregate *first) {
    weir_sample_source *source = r->a->source;
    const weir_schema_relation *relation = weir_schema_relation_at(r->a->schema, first->relation);
    if (!source->labels)
        return WEIR_ERR(WEIR_EINVAL, "aggregate '%s' counts by a label, and this graph has none; leave it out",
                        first->name);
    if (!r->a->told) r->a->told = weir_calloc(1, sizeof *r->a->told);
    aggregate_told *told = r->a->told;
    if (!told) return WEIR_NOMEM("for aggregates with a label");
    WEIR_ASSERT(r->window->count <= WEIR_AGGREGATE_LABELLED); /* AGGREGATE-G4 */
    for (uint32_t i = 0; i < r->window->count; i++) {
        told->ids[i] = weir_aggregate_neighbor_at(r->a->source, r->window, i);
        told->vertices[i] = (uint64_t)told->ids[i];
        told->before_us[i] = r->before_us;
    }
    const weir_sample_vertices of = {
        .vertices = source->wide ? NULL : told->vertices,
        .ids = source->wide ? told->ids : NULL,
        .before_us = told->before_us,
        .count = r->window->count,
        .type = (uint16_t)(first->direction == WEIR_SCHEMA_OUT ? relation->to : relation->from)};
    return of.count ? source->labels(source, &of, first->label, told->values) : WEIR_OK;
}

/* Over those edges of the window whose neighbour was told to be one of the values. */
static weir_err aggregate_evaluate_told(const aggregate_reading *r, const weir_schema_aggregate *aggregate,
                                        double *valuep) {
    aggregate_scratch *s = r->a->scratch;
    weir_sample_window kept;
    for (uint32_t i = 0; i < r->window->count; i++) {
        s->counts[i] = false;
        for (uint32_t is = 0; is < aggregate->is_count; is++)
            s->counts[i] = s->counts[i] || r->a->told->values[i] == aggregate->is[is];
    }
    s->numbers_of = WEIR_SCHEMA_NONE; /* what was decoded was of another window */
    weir_err err = aggregate_keep(r->a, r->window, &kept);
    const aggregate_reading some = {r->a, r->ask, &kept, r->before_us, r->steps, r->row};
    return err ? err : aggregate_evaluate(&some, aggregate, valuep);
}

/* All aggregates of the group of one vertex, to their columns among values. */
static weir_err aggregate_evaluate_group(const aggregate_reading *r, const weir_schema_aggregate *first,
                                         double *values) {
    const weir_schema *schema = r->a->schema;
    const bool labelled = first->label != WEIR_SCHEMA_NONE;
    weir_err err = labelled ? aggregate_find_told(r, first) : WEIR_OK;
    r->a->scratch->numbers_of = WEIR_SCHEMA_NONE;
    WEIR_ASSERT(r->window->count <= WEIR_AGGREGATE_EDGES); /* AGGREGATE-G2 */
    for (uint32_t i = 0, column = 0; !err && i < weir_schema_aggregate_count(schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
        if (aggregate_shares(aggregate, first))
            err = labelled ? aggregate_evaluate_told(r, aggregate, &values[column])
                           : aggregate_evaluate(r, aggregate, &values[column]);
        if (!err && aggregate_shares(aggregate, first) && aggregate->ratio != WEIR_SCHEMA_NONE)
            values[column] = aggregate_ratio(r->a->pairs->own[i][r->row], values[column]);
        column += aggregate->vertex == first->vertex;
    }
    return err;
}

/* The aggregates of one relation and direction, of the vertices themselves. */
static weir_err aggregate_read_group(weir_aggregates *a, const weir_schema_aggregate *first,
                                     const weir_sample_vertices *of, uint32_t columns, double *values) {
    weir_sample_window *windows = a->scratch->windows;
    const weir_sample_ask ask = {.parents = of->vertices,
                                 .parent_ids = of->ids,
                                 .before_us = of->before_us,
                                 .since_us = a->scratch->since_us,
                                 .count = of->count,
                                 .limit =
                                     first->label == WEIR_SCHEMA_NONE ? WEIR_AGGREGATE_EDGES : WEIR_AGGREGATE_LABELLED,
                                 .relation = (uint16_t)first->relation,
                                 .type = of->type,
                                 .direction = aggregate_direction(first->direction)};
    aggregate_see_begins(a, first, of->before_us, of->count);
    weir_err err = a->source->windows(a->source, &ask, windows);
    for (uint32_t row = 0; !err && row < of->count; row++) {
        const aggregate_reading r = {a, &ask, &windows[row], of->before_us[row], 0, row};
        err = aggregate_evaluate_group(&r, first, values + (size_t)row * columns);
    }
    return err;
}

/* --- pairs ---------------------------------------------------------------------------------------------------- */

/* What ratios divide: numbers of the edge to the end. */
static weir_err aggregate_read_own(const weir_aggregates *a, const weir_sample_ask *ask,
                                   const weir_sample_window *window, uint32_t edge, uint32_t row) {
    const weir_sample_window part = weir_sample_window_part(window, edge, edge + 1);
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_aggregate_count(a->schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
        if (aggregate->ratio == WEIR_SCHEMA_NONE || aggregate->vertex != ask->type ||
            aggregate->between[0] != ask->relation)
            continue;
        err = a->source->numbers(a->source, ask, &part, aggregate->ratio, &a->pairs->own[i][row]);
    }
    return err;
}

/* Where the newest edge leads that a target sees along the relation to one of the ends (AGGREGATE-G3). */
static weir_err aggregate_find_end(const weir_aggregates *a, uint32_t relation, const weir_sample_vertices *of,
                                   uint32_t row, bool *foundp, weir_vertex *vertexp) {
    const uint64_t event = of->events[row];
    const int64_t own_us = of->before_us[row], before_us = event && own_us < INT64_MAX ? own_us + 1 : own_us;
    const weir_sample_ask ask = {.parents = of->vertices ? of->vertices + row : NULL,
                                 .parent_ids = of->ids ? of->ids + row : NULL,
                                 .before_us = &before_us,
                                 .count = 1,
                                 .limit = END_EDGES,
                                 .relation = (uint16_t)relation,
                                 .type = of->type,
                                 .direction = WEIR_OUT};
    weir_sample_window window;
    *foundp = false;
    if (event == WEIR_SAMPLE_NO_TARGET) return WEIR_OK;
    weir_err err = a->source->windows(a->source, &ask, &window);
    for (uint32_t i = 0; !err && !*foundp && i < window.count; i++) {
        *foundp = weir_sample_window_time(&window, i) < own_us || weir_sample_window_event(&window, i) == event;
        if (!*foundp) continue;
        *vertexp = weir_aggregate_neighbor_at(a->source, &window, i);
        err = aggregate_read_own(a, &ask, &window, i, row);
    }
    return err;
}

static weir_err aggregate_find_ends(const weir_aggregates *a, uint32_t relation, const weir_sample_vertices *of,
                                    const aggregate_ends **endsp) {
    aggregate_ends *ends = &a->pairs->ends[relation];
    weir_err err = WEIR_OK;
    WEIR_ASSERT(relation < weir_schema_relation_count(a->schema) && of->count <= ROWS_AT_ONCE);
    *endsp = ends;
    if (ends->batch == a->scratch->batch) return WEIR_OK;
    for (uint32_t row = 0; !err && row < of->count; row++)
        err = aggregate_find_end(a, relation, of, row, &ends->found[row], &ends->vertices[row]);
    if (!err) ends->batch = a->scratch->batch;
    return err;
}

/* The ends of those vertices that are targets and have both, or the one that is asked for. */
static weir_err aggregate_find_pairs(weir_aggregates *a, const weir_schema_aggregate *first,
                                     const weir_sample_vertices *of) {
    const size_t ends = weir_schema_relation_count(a->schema) * sizeof(aggregate_ends);
    const aggregate_ends *one, *other;
    if (!a->pairs) a->pairs = weir_calloc(1, sizeof *a->pairs + ends);
    aggregate_pairs *pairs = a->pairs;
    if (pairs && !pairs->own) pairs->own = weir_calloc(weir_schema_aggregate_count(a->schema), sizeof *pairs->own);
    if (!pairs || !pairs->own) return WEIR_NOMEM("for aggregates of pairs");
    pairs->count = 0;
    if (!of->events) return WEIR_OK;
    const uint32_t second = first->between[1] == WEIR_SCHEMA_NONE ? first->between[0] : first->between[1];
    weir_err err = aggregate_find_ends(a, first->between[0], of, &one);
    if (!err) err = aggregate_find_ends(a, second, of, &other);
    for (uint32_t row = 0; !err && row < of->count; row++) {
        if (!one->found[row] || !other->found[row]) continue;
        pairs->rows[pairs->count] = row;
        pairs->before_us[pairs->count] = of->before_us[row];
        pairs->firsts[pairs->count] = (uint64_t)one->vertices[row];
        pairs->first_ids[pairs->count] = one->vertices[row];
        pairs->seconds[pairs->count++] = other->vertices[row];
    }
    return err;
}

/* NaN, until it is known that a vertex is a target and has the ends. */
static void aggregate_clear_group(const weir_aggregates *a, const weir_schema_aggregate *first, uint32_t rows,
                                  uint32_t columns, double *values) {
    for (uint32_t i = 0, column = 0; i < weir_schema_aggregate_count(a->schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
        for (uint32_t row = 0; row < rows && aggregate_shares(aggregate, first); row++)
            values[(size_t)row * columns + column] = (double)NAN;
        column += aggregate->vertex == first->vertex;
    }
}

/* The aggregates of one end, or of one pair of them. */
static weir_err aggregate_read_pairs(weir_aggregates *a, const weir_schema_aggregate *first, uint32_t columns,
                                     double *values) {
    const weir_schema_relation *relation = weir_schema_relation_at(a->schema, first->relation);
    const weir_direction direction = aggregate_direction(first->direction);
    const bool both = first->between[1] != WEIR_SCHEMA_NONE;
    weir_sample_window *windows = a->scratch->windows;
    const aggregate_pairs *pairs = a->pairs;
    const weir_sample_ask ask = {.parents = a->source->wide ? NULL : pairs->firsts,
                                 .parent_ids = a->source->wide ? pairs->first_ids : NULL,
                                 .before_us = pairs->before_us,
                                 .since_us = a->scratch->since_us,
                                 .count = pairs->count,
                                 .limit = WEIR_AGGREGATE_EDGES,
                                 .relation = (uint16_t)first->relation,
                                 .type = (uint16_t)(direction == WEIR_OUT ? relation->from : relation->to),
                                 .direction = direction};
    aggregate_see_begins(a, first, pairs->before_us, pairs->count);
    weir_err err = a->source->windows(a->source, &ask, windows);
    for (uint32_t i = 0; !err && i < pairs->count; i++) {
        weir_sample_window kept = windows[i];
        for (uint32_t e = 0; both && e < windows[i].count; e++)
            a->scratch->counts[e] = weir_aggregate_neighbor_at(a->source, &windows[i], e) == pairs->seconds[i];
        if (both) err = aggregate_keep(a, &windows[i], &kept);
        const aggregate_reading r = {a, &ask, &kept, pairs->before_us[i], 0, pairs->rows[i]};
        if (!err) err = aggregate_evaluate_group(&r, first, values + (size_t)pairs->rows[i] * columns);
    }
    return err;
}

/* --- through others ------------------------------------------------------------------------------------------- */

/* Of the windows of those whom a walk has met one window: the edges since then, of a pair those to its second end, as
 * they are met. What counts as the neighbour of such an edge is the one met. */
static weir_err aggregate_join(weir_aggregates *a, const weir_schema_share *share, const weir_sample_ask *ask,
                               const weir_walk_met *met, const weir_vertex *second, weir_sample_window *joined) {
    const weir_sample_window *windows = a->scratch->windows;
    const bool compared = share->of != WEIR_SCHEMA_NONE;
    float *numbers = a->scratch->numbers;
    weir_err err = WEIR_OK;
    aggregate_keep_begin(a);
    for (uint32_t i = 0; !err && i < met->count; i++) {
        const weir_vertex who = met->ids ? met->ids[i] : met->vertices[i];
        if (compared) err = a->source->numbers(a->source, ask, &windows[i], share->of, numbers);
        for (uint32_t e = 0; !err && e < windows[i].count; e++) {
            const int64_t time_us = weir_sample_window_time(&windows[i], e);
            WEIR_ASSERT(time_us < met->before_us[i]); /* AGGREGATE-G1 */
            if (time_us < met->since_us[i]) break;
            if (time_us > met->upto_us[i]) continue;
            if (compared && !weir_walk_leads(share, met->numbers[i], numbers[e])) continue;
            if (second && weir_aggregate_neighbor_at(a->source, &windows[i], e) != *second) continue;
            aggregate_keep_edge(a, &windows[i], e, who);
        }
    }
    return err ? err : aggregate_kept(a, a->source->wide, joined);
}

/* Of each target's end the walk, and the aggregates of the edges of those whom it meets (AGGREGATE-G5). */
static weir_err aggregate_read_through(weir_aggregates *a, const weir_schema_aggregate *first, uint32_t columns,
                                       double *values) {
    const aggregate_pairs *pairs = a->pairs;
    const bool both = first->between[1] != WEIR_SCHEMA_NONE;
    weir_err err = a->walk ? WEIR_OK : weir_walk_open(a->schema, a->source, &a->scratch->set, &a->walk);
    for (uint32_t i = 0; !err && i < pairs->count; i++) {
        const int64_t before_us = pairs->before_us[i], since_us = aggregate_window_begin(first, before_us);
        const weir_vertex from = a->source->wide ? pairs->first_ids[i] : pairs->firsts[i];
        weir_walk_met met;
        weir_sample_window joined;
        err = weir_walk_go(a->walk, first, from, since_us, before_us, &met);
        const uint32_t share = WEIR_AGGREGATE_EDGES / (met.count > 0 ? met.count : 1);
        const weir_sample_ask ask = {.parents = met.vertices,
                                     .parent_ids = met.ids,
                                     .before_us = met.before_us,
                                     .since_us = met.since_us,
                                     .count = met.count,
                                     .limit = share < WEIR_AGGREGATE_WALK_EDGES ? share : WEIR_AGGREGATE_WALK_EDGES,
                                     .relation = (uint16_t)first->relation,
                                     .type = met.type,
                                     .direction = aggregate_direction(first->direction)};
        if (!err && met.count > 0) err = a->source->windows(a->source, &ask, a->scratch->windows);
        if (!err) err = aggregate_join(a, &first->share, &ask, &met, both ? &pairs->seconds[i] : NULL, &joined);
        const aggregate_reading r = {a, &ask, &joined, before_us, met.steps, pairs->rows[i]};
        if (!err) err = aggregate_evaluate_group(&r, first, values + (size_t)pairs->rows[i] * columns);
    }
    return err;
}

/* All of the group, or none: they look equally far. */
static weir_err aggregate_read_precomputed(weir_aggregates *a, const weir_schema_aggregate *first,
                                           const weir_sample_vertices *of, uint32_t columns, double *values,
                                           bool *therep) {
    weir_err err = WEIR_OK;
    *therep = a->source->precomputed != NULL;
    for (uint32_t i = 0, column = 0; *therep && !err && i < weir_schema_aggregate_count(a->schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
        if (aggregate_shares(aggregate, first))
            err = a->source->precomputed(a->source, of, i, values + column, columns, therep);
        column += aggregate->vertex == first->vertex;
    }
    return err;
}

/* What is said of a target's ends; NaN where a vertex is no target, or lacks an end. */
static weir_err aggregate_read_ends(weir_aggregates *a, const weir_schema_aggregate *first,
                                    const weir_sample_vertices *of, uint32_t columns, double *values) {
    bool there;
    weir_err err = aggregate_read_precomputed(a, first, of, columns, values, &there);
    if (err || there) return err;
    aggregate_clear_group(a, first, of->count, columns, values);
    err = aggregate_find_pairs(a, first, of);
    if (err || a->pairs->count == 0) return err;
    return first->through_count > 0 ? aggregate_read_through(a, first, columns, values)
                                    : aggregate_read_pairs(a, first, columns, values);
}

/* --- all of a type -------------------------------------------------------------------------------------------- */

/* Whether this aggregate is the first of its group. */
static bool aggregate_leads(const weir_schema *schema, uint32_t id) {
    for (uint32_t i = 0; i < id; i++)
        if (aggregate_shares(weir_schema_aggregate_at(schema, i), weir_schema_aggregate_at(schema, id))) return false;
    return true;
}

static weir_err aggregate_read_rows(weir_aggregates *a, const weir_sample_vertices *of, uint32_t columns,
                                    double *values) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_aggregate_count(a->schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
        if (aggregate->vertex != of->type || !aggregate_leads(a->schema, i)) continue;
        err = aggregate->between[0] == WEIR_SCHEMA_NONE ? aggregate_read_group(a, aggregate, of, columns, values)
                                                        : aggregate_read_ends(a, aggregate, of, columns, values);
    }
    return err;
}

weir_err weir_aggregates_read(weir_aggregates *aggregates, const weir_sample_vertices *of, double *values) {
    uint32_t columns = weir_aggregates_count(aggregates->schema, of->type);
    weir_err err = WEIR_OK;
    WEIR_ASSERT(aggregates->source->wide ? of->ids && !of->vertices : of->vertices && !of->ids);
    if (columns && !aggregates->scratch) {
        aggregates->scratch = weir_calloc(1, sizeof *aggregates->scratch);
        if (!aggregates->scratch) return WEIR_NOMEM("for aggregates");
    }
    for (uint32_t begin = 0; !err && columns && begin < of->count; begin += ROWS_AT_ONCE) {
        weir_sample_vertices some = *of;
        some.count = of->count - begin < ROWS_AT_ONCE ? of->count - begin : ROWS_AT_ONCE;
        some.vertices = of->vertices ? of->vertices + begin : NULL;
        some.ids = of->ids ? of->ids + begin : NULL;
        some.before_us = of->before_us + begin;
        some.events = of->events ? of->events + begin : NULL;
        aggregates->scratch->batch++;
        err = aggregate_read_rows(aggregates, &some, columns, values + (size_t)begin * columns);
    }
    return err;
}

weir_err weir_aggregates_open(const weir_schema *schema, weir_sample_source *source, weir_aggregates **aggregatesp) {
    weir_aggregates *a = *aggregatesp = weir_calloc(1, sizeof *a);
    if (!a) return WEIR_NOMEM("for aggregates");
    a->schema = schema;
    a->source = source;
    return WEIR_OK;
}

void weir_aggregates_close(weir_aggregates *aggregates) {
    if (!aggregates) return;
    weir_buf_free(&aggregates->places);
    weir_buf_free(&aggregates->edges);
    weir_walk_close(aggregates->walk);
    weir_free(aggregates->told);
    if (aggregates->pairs) weir_free(aggregates->pairs->own);
    weir_free(aggregates->pairs);
    weir_free(aggregates->scratch);
    weir_free(aggregates);
}
