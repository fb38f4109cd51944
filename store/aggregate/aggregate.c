/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate.c - the aggregates of a type are grouped by (relation, direction): each window is read once, from its
 * newest edge to the oldest that any of the group wants, and each aggregate looks at the part that is its own.
 */
#include <math.h>
#include <string.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define ROWS_AT_ONCE 64u                         /* a source takes so many parents at a time */
#define SET_SLOTS    (WEIR_AGGREGATE_EDGES * 2u) /* a power of two */

/* Which values were seen; a slot counts only in its own round, so that nothing has to be cleared. */
typedef struct value_set {
    weir_vertex values[SET_SLOTS];
    uint32_t rounds[SET_SLOTS];
    uint32_t round;
} value_set;

typedef struct scratch {
    value_set set;
    float numbers[WEIR_AGGREGATE_EDGES];
    uint64_t codes[WEIR_AGGREGATE_EDGES];
    weir_sample_window windows[ROWS_AT_ONCE];
} scratch;

struct weir_aggregates {
    const weir_schema *schema;
    weir_sample_source *source;
    scratch scratch;
};

/* One read: a vertex's window, and where its aggregates' values go. */
typedef struct reading {
    weir_aggregates *a;
    const weir_sample_ask *ask;
    const weir_sample_window *window;
    int64_t before_us;
} reading;

uint32_t weir_aggregates_count(const weir_schema *schema, uint32_t vertex_type) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++)
        count += weir_schema_aggregate_at(schema, i)->vertex == vertex_type;
    return count;
}

static int64_t time_at(const weir_sample_window *window, uint32_t i) {
    int64_t time_us;
    memcpy(&time_us, window->times + (size_t)i * window->stride, sizeof time_us);
    return time_us;
}

/* Rounds towards the past, before 1970 too. */
static int64_t floor_to(int64_t time_us, int64_t resolution_us) {
    int64_t rest = time_us % resolution_us;
    if (rest < 0) rest += resolution_us;
    int64_t floored;
    return __builtin_sub_overflow(time_us, rest, &floored) ? INT64_MIN : floored;
}

static int64_t window_begin(const weir_schema_aggregate *aggregate, int64_t before_us) {
    int64_t begin_us;
    if (__builtin_sub_overflow(before_us, aggregate->window_us, &begin_us)) return INT64_MIN;
    return aggregate->resolution_us ? floor_to(begin_us, aggregate->resolution_us) : begin_us;
}

/* How many of the window's edges are not older than `begin_us`: times fall. */
static uint32_t edges_since(const weir_sample_window *window, int64_t begin_us) {
    uint32_t low = 0, high = window->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (time_at(window, middle) >= begin_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WEIR_ASSERT(low == 0 || time_at(window, low - 1) >= begin_us); /* G1 */
    return low;
}

/* --- functions ------------------------------------------------------------------------------------------------ */

static void set_begin(value_set *set) {
    if (++set->round) return;
    memset(set->rounds, 0, sizeof set->rounds);
    set->round = 1;
}

/* Whether it is new. There is room: a window has half as many edges as there are slots. */
static bool set_add(value_set *set, weir_vertex value) {
    uint64_t slot = (weir_vertex_fold(value) * 0x9E3779B97F4A7C15u) >> 32;
    for (;; slot++) {
        slot &= SET_SLOTS - 1;
        if (set->rounds[slot] != set->round) break;
        if (set->values[slot] == value) return false;
    }
    set->values[slot] = value;
    set->rounds[slot] = set->round;
    return true;
}

static weir_vertex neighbor_at(const reading *r, uint32_t i) {
    const uint8_t *at = r->window->neighbors + (size_t)i * r->window->stride;
    weir_vertex id;
    uint64_t index;
    if (r->a->source->wide) {
        memcpy(&id, at, sizeof id);
        return id;
    }
    memcpy(&index, at, sizeof index);
    return index;
}

static double distinct_neighbors(const reading *r, uint32_t count) {
    value_set *set = &r->a->scratch.set;
    uint32_t different = 0;
    set_begin(set);
    for (uint32_t i = 0; i < count; i++)
        different += set_add(set, neighbor_at(r, i));
    return different;
}

static double distinct_codes(const reading *r, uint32_t count) {
    value_set *set = &r->a->scratch.set;
    const uint64_t *codes = r->a->scratch.codes;
    uint32_t different = 0;
    set_begin(set);
    for (uint32_t i = 0; i < count; i++)
        different += codes[i] && set_add(set, codes[i]);
    return different;
}

/* From the newest to the oldest in doubles: the same order, so the same bits, in every source. */
static double of_numbers(weir_schema_function function, const float *numbers, uint32_t count) {
    double sum = 0;
    double largest = -INFINITY;
    uint32_t present = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(numbers[i])) continue;
        present++;
        sum += (double)numbers[i];
        if ((double)numbers[i] > largest) largest = (double)numbers[i];
    }
    if (function == WEIR_SCHEMA_SUM) return sum;
    if (!present) return (double)NAN;
    return function == WEIR_SCHEMA_MAX ? largest : sum / present;
}

static weir_err evaluate(const reading *r, const weir_schema_aggregate *aggregate, double *valuep) {
    weir_sample_window part = *r->window;
    scratch *s = &r->a->scratch;
    weir_err err = WEIR_OK;
    part.count = edges_since(r->window, window_begin(aggregate, r->before_us));
    if (aggregate->function == WEIR_SCHEMA_COUNT) {
        *valuep = part.count;
    } else if (aggregate->function == WEIR_SCHEMA_DISTINCT && aggregate->of == WEIR_SCHEMA_NONE) {
        *valuep = distinct_neighbors(r, part.count);
    } else if (aggregate->function == WEIR_SCHEMA_DISTINCT) {
        err = r->a->source->codes(r->a->source, r->ask, &part, aggregate->of, s->codes);
        if (!err) *valuep = distinct_codes(r, part.count);
    } else {
        err = r->a->source->numbers(r->a->source, r->ask, &part, aggregate->of, s->numbers);
        if (!err) *valuep = of_numbers(aggregate->function, s->numbers, part.count);
    }
    return err;
}

/* --- groups --------------------------------------------------------------------------------------------------- */

static bool of_group(const weir_schema_aggregate *aggregate, const weir_sample_ask *ask) {
    return aggregate->vertex == ask->type && aggregate->relation == ask->relation &&
           (aggregate->direction == WEIR_SCHEMA_OUT) == (ask->direction == WEIR_OUT);
}

/* The aggregates of one relation and direction, for the vertices that were asked for. */
static weir_err read_group(weir_aggregates *a, const weir_sample_ask *ask, uint32_t columns, double *values) {
    weir_sample_window *windows = a->scratch.windows;
    weir_err err = a->source->windows(a->source, ask, windows);
    for (uint32_t row = 0; !err && row < ask->count; row++) {
        reading r = {a, ask, &windows[row], ask->before_us[row]};
        uint32_t column = 0;
        WEIR_ASSERT(windows[row].count <= WEIR_AGGREGATE_EDGES); /* G2 */
        for (uint32_t i = 0; !err && i < weir_schema_aggregate_count(a->schema); i++) {
            const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
            if (of_group(aggregate, ask)) err = evaluate(&r, aggregate, &values[row * columns + column]);
            column += aggregate->vertex == ask->type;
        }
    }
    return err;
}

/* Whether this aggregate is the first of its group. */
static bool leads(const weir_schema *schema, uint32_t id, const weir_sample_ask *ask) {
    for (uint32_t i = 0; i < id; i++) {
        if (of_group(weir_schema_aggregate_at(schema, i), ask)) return false;
    }
    return true;
}

static weir_err read_rows(weir_aggregates *a, weir_sample_ask *ask, uint32_t columns, double *values) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_aggregate_count(a->schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(a->schema, i);
        if (aggregate->vertex != ask->type) continue;
        ask->relation = (uint16_t)aggregate->relation;
        ask->direction = aggregate->direction == WEIR_SCHEMA_OUT ? WEIR_OUT : WEIR_IN;
        if (leads(a->schema, i, ask)) err = read_group(a, ask, columns, values);
    }
    return err;
}

weir_err weir_aggregates_read(weir_aggregates *aggregates, uint32_t vertex_type, const uint64_t *vertices,
                              const weir_vertex *ids, const int64_t *before_us, uint32_t rows, double *values) {
    uint32_t columns = weir_aggregates_count(aggregates->schema, vertex_type);
    weir_err err = WEIR_OK;
    WEIR_ASSERT(aggregates->source->wide ? ids && !vertices : vertices && !ids);
    for (uint32_t begin = 0; !err && columns && begin < rows; begin += ROWS_AT_ONCE) {
        uint32_t left = rows - begin;
        weir_sample_ask ask = {
            .parents = vertices ? vertices + begin : NULL,
            .parent_ids = ids ? ids + begin : NULL,
            .before_us = before_us + begin,
            .count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE,
            .limit = WEIR_AGGREGATE_EDGES,
            .type = (uint16_t)vertex_type,
        };
        err = read_rows(aggregates, &ask, columns, values + (size_t)begin * columns);
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
    weir_free(aggregates);
}
