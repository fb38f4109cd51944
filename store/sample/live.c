/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - windows of a living graph: read together, kept until the next call; rows of sampled edges until the next
 * block.
 *
 * What is asked of a type once is asked again: the sampler's lists, those of aggregates, the row. So the graph is told
 * of all of them with each window, because to look for a vertex in the files of a cold store costs more than to read
 * all that it has there. Hops share what is noted; it is noted anew after some blocks, for a model that comes later.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "sampler_private.h"

/* What has been asked of the vertices of a type, rising. */
typedef struct live_lists {
    weir_graph_list of[WEIR_GRAPH_BESIDE_MAX];
    size_t count;
} live_lists;

#define LIVE_NOTED_BLOCKS 1024u
#define LIVE_BESIDE_BYTES (16u << 20)

typedef struct live_source {
    weir_sample_source base; /* first: the handle is this */
    weir_graph *graph;       /* borrowed                  */
    weir_sample_ends *ends;
    live_lists *lists;    /* a type           */
    uint32_t blocks;      /* since these were noted anew */
    weir_arena *beside;   /* what is read beside a window */
    weir_arena *windows;  /* of the batch at hand */
    weir_arena *rows;     /* of the block         */
    weir_arena *features; /* of the vertices at hand */
    weir_arena *labels;   /* of the vertices at hand */
} live_source;

static live_source *live_of(weir_sample_source *source) {
    return (live_source *)(void *)source;
}

static void live_begin(weir_sample_source *source) {
    live_source *s = live_of(source);
    weir_arena_reset(s->rows);
    if (++s->blocks < LIVE_NOTED_BLOCKS) return;
    s->blocks = 0;
    for (uint32_t type = 0; type < s->base.types; type++)
        s->lists[type].count = 0;
}

static weir_err live_ids(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids) {
    (void)source;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = weir_vertex_low(targets[i].vertex);
    return WEIR_OK;
}

static void live_note(live_source *s, uint16_t type, const weir_graph_list *asked) {
    live_lists *lists = &s->lists[type];
    size_t at = 0;
    while (at < lists->count && lists->of[at].list < asked->list)
        at++;
    bool known = at < lists->count && lists->of[at].list == asked->list;
    if (known) {
        weir_graph_list *of = &lists->of[at];
        if (of->least < asked->least) of->least = asked->least;
        if (of->limit < asked->limit) of->limit = asked->limit;
        if (of->window_us < asked->window_us) of->window_us = asked->window_us;
    }
    if (known || lists->count == WEIR_GRAPH_BESIDE_MAX) return;
    memmove(&lists->of[at + 1], &lists->of[at], (lists->count - at) * sizeof lists->of[0]);
    lists->of[at] = *asked;
    lists->count++;
}

/* How far back the ask goes, at most: as many edges of any age as it wants, or those of a window. */
static weir_graph_list live_asked(const weir_sample_ask *ask) {
    weir_graph_list asked = {.list = WEIR_LIST_EDGES(ask->relation, ask->direction), .limit = ask->limit};
    for (uint32_t i = 0; i < ask->count; i++) {
        int64_t window_us;
        if (!ask->since_us || __builtin_sub_overflow(ask->before_us[i], ask->since_us[i], &window_us))
            asked.least = ask->limit;
        else if (window_us > asked.window_us)
            asked.window_us = window_us;
    }
    return asked;
}

static weir_err live_windows(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows) {
    live_source *s = live_of(source);
    WEIR_ASSERT(ask->parent_ids && ask->count <= WEIR_SAMPLE_BATCH);
    weir_arena_reset(s->windows);
    weir_graph_window *found = weir_arena_alloc(s->windows, ask->count * sizeof *found);
    if (!found) return WEIR_ARENA_ERR(s->windows, "a sample's windows have no room; give it fewer targets");
    const weir_graph_list asked = live_asked(ask);
    live_note(s, ask->type, &asked);
    const live_lists *lists = &s->lists[ask->type];
    const weir_graph_ask of_graph = {.relation = ask->relation,
                                     .direction = ask->direction,
                                     .limit = ask->limit,
                                     .since_us = ask->since_us,
                                     .beside = lists->of,
                                     .beside_count = lists->count,
                                     .scratch = s->beside};
    weir_err err = weir_graph_neighbors_of_many(s->graph, ask->parent_ids, ask->before_us, ask->count, &of_graph,
                                                s->windows, found);
    for (uint32_t i = 0; !err && i < ask->count; i++) {
        const uint8_t *bytes = (const uint8_t *)found[i].edges;
        WEIR_ASSERT(found[i].count <= ask->limit);
        windows[i] = (weir_sample_window){
            .neighbors = bytes + offsetof(weir_edge, neighbor),
            .times = bytes + offsetof(weir_edge, time_us),
            .edges = found[i].edges,
            .id = weir_vertex_low(ask->parent_ids[i]),
            .stride = sizeof(weir_edge),
            .times_stride = sizeof(weir_edge),
            .count = found[i].count,
        };
    }
    return err;
}

/* One feature of an edge; absent where the edge has no row. */
static weir_err live_value_of(const weir_value_kind *kinds, size_t count, const weir_edge *edge, uint32_t feature,
                              weir_value *valuep) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    *valuep = (weir_value){0};
    if (edge->row_length == 0) return WEIR_OK;
    weir_err err = weir_row_check(kinds, count, edge->row, edge->row_length);
    if (err) return err;
    weir_row_read(kinds, count, edge->row, edge->row_length, values);
    *valuep = values[feature];
    return WEIR_OK;
}

static weir_err live_kinds_of(weir_sample_source *source, const weir_sample_ask *ask, uint32_t feature,
                              weir_value_kind wanted, const weir_value_kind **kindsp, size_t *countp) {
    *kindsp = weir_graph_relation_kinds(live_of(source)->graph, ask->relation, countp);
    if (feature < *countp && (*kindsp)[feature] == wanted) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "relation %u has no %s feature %u", ask->relation,
                    wanted == WEIR_VALUE_NUMBER ? "number" : "category", feature);
}

/* As floats, because that is what snapshots have: the same draw in both. */
static weir_err live_numbers(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                             uint32_t feature, float *numbers) {
    const weir_value_kind *kinds;
    size_t count;
    weir_value value;
    weir_err err = live_kinds_of(source, ask, feature, WEIR_VALUE_NUMBER, &kinds, &count);
    for (uint32_t i = 0; !err && i < window->count; i++) {
        err = live_value_of(kinds, count, &window->edges[i], feature, &value);
        numbers[i] = value.present ? (float)value.number : NAN;
    }
    return err;
}

static weir_err live_codes(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                           uint32_t feature, uint64_t *codes) {
    const weir_value_kind *kinds;
    size_t count;
    weir_value value;
    weir_err err = live_kinds_of(source, ask, feature, WEIR_VALUE_CATEGORY, &kinds, &count);
    for (uint32_t i = 0; !err && i < window->count; i++) {
        err = live_value_of(kinds, count, &window->edges[i], feature, &value);
        codes[i] = value.present ? weir_xxh3(value.text, value.text_length, 0) | 1 : 0;
    }
    return err;
}

/* --- what is known of vertices and edges -------------------------------------------------------------------------- */

static void live_round_numbers(const weir_value_kind *kinds, size_t count, weir_value *values) {
    for (size_t i = 0; i < count; i++)
        if (kinds[i] == WEIR_VALUE_NUMBER) values[i].number = (double)(float)values[i].number;
}

static weir_err live_features(weir_sample_source *source, const weir_sample_vertices *of, weir_value *values) {
    live_source *s = live_of(source);
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(s->graph, of->type, &kind_count);
    weir_err err = WEIR_OK;
    WEIR_ASSERT(kind_count <= WEIR_ROW_FEATURES_MAX);
    weir_arena_reset(s->features);
    if (kind_count) live_note(s, of->type, &(weir_graph_list){WEIR_LIST_FEATURES, 1, 1, 0});
    memset(values, 0, of->count * kind_count * sizeof *values);
    for (uint32_t i = 0; !err && i < of->count && kind_count > 0; i++, values += kind_count) {
        int64_t before_us = of->before_us[i] + (of->targets && of->before_us[i] < INT64_MAX);
        weir_row_view view = {0};
        err = weir_graph_features(s->graph, of->ids[i], before_us, s->features, &view);
        if (err) break;
        if (view.row && view.vertex_type == of->type)
            weir_row_fill(kinds, kind_count, view.row, view.row_length, values);
        live_round_numbers(kinds, kind_count, values);
    }
    return err;
}

static weir_err live_labels(weir_sample_source *source, const weir_sample_vertices *of, uint32_t label,
                            uint32_t *values) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    live_source *s = live_of(source);
    const weir_schema_label *told = weir_schema_label_at(weir_graph_schema(s->graph), label);
    weir_arena_reset(s->labels);
    weir_row_view *views = weir_arena_alloc(s->labels, of->count * sizeof *views);
    if (!views)
        return WEIR_ARENA_ERR(s->labels, "the labels of neighbours have no room; ask for fewer targets at once");
    weir_err err =
        weir_graph_labels_of_many(s->graph, of->ids, of->before_us, of->count, (uint16_t)label, s->labels, views);
    for (uint32_t i = 0; !err && i < of->count; i++) {
        weir_value value = {0};
        values[i] = WEIR_SCHEMA_NONE;
        if (!views[i].row) continue;
        WEIR_ASSERT(views[i].time_us < of->before_us[i]); /* AGGREGATE-G4 */
        err = weir_row_check(&kind, 1, views[i].row, views[i].row_length);
        if (err) continue;
        weir_row_read(&kind, 1, views[i].row, views[i].row_length, &value);
        if (value.present) values[i] = weir_schema_values_find(&told->values, value.text, value.text_length);
    }
    return err;
}

static weir_err live_edge_features(weir_sample_source *source, const weir_sample_step *step,
                                   const weir_block_edges *edges, uint32_t begin, uint32_t count, weir_value *values) {
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_relation_kinds(live_of(source)->graph, step->relation, &kind_count);
    WEIR_ASSERT(kind_count <= WEIR_ROW_FEATURES_MAX && begin + count <= edges->count);
    memset(values, 0, count * kind_count * sizeof *values);
    for (uint32_t i = begin; i < begin + count; i++, values += kind_count) {
        if (edges->row_lengths[i] == 0) continue;
        weir_err err = weir_row_check(kinds, kind_count, edges->rows[i], edges->row_lengths[i]);
        if (err) return err;
        weir_row_read(kinds, kind_count, edges->rows[i], edges->row_lengths[i], values);
        live_round_numbers(kinds, kind_count, values);
    }
    return WEIR_OK;
}

static weir_err live_keep(weir_sample_source *source, const uint8_t *row, uint32_t length, const uint8_t **keptp) {
    weir_arena *rows = live_of(source)->rows;
    uint8_t *kept = weir_arena_alloc_aligned(rows, 1, length);
    if (!kept)
        return WEIR_ARENA_ERR(rows, "the rows of the sampled edges need more memory than the request may use; ask for "
                                    "fewer neighbours");
    *keptp = memcpy(kept, row, length);
    return WEIR_OK;
}

/* --- the handle --------------------------------------------------------------------------------------------------- */

static void live_close(weir_sample_source *source) {
    live_source *s = live_of(source);
    weir_arena_close(s->windows);
    weir_arena_close(s->rows);
    weir_arena_close(s->features);
    weir_arena_close(s->labels);
    weir_arena_close(s->beside);
    weir_free(s->ends);
    weir_free(s->lists);
    weir_free(s);
}

weir_err weir_sample_over_graph(weir_graph *graph, size_t bytes_max, weir_sample_source **sourcep) {
    const weir_schema *schema = weir_graph_schema(graph);
    *sourcep = NULL;
    live_source *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a source of samples");
    uint32_t relations = weir_schema_relation_count(schema);
    s->ends = weir_calloc(relations, sizeof *s->ends);
    s->lists = weir_calloc(weir_schema_vertex_count(schema), sizeof *s->lists);
    weir_err err =
        s->ends && s->lists ? weir_arena_open(bytes_max, &s->windows) : WEIR_NOMEM("for a source of samples");
    if (!err) err = weir_arena_open(bytes_max, &s->rows);
    if (!err) err = weir_arena_open(bytes_max, &s->features);
    if (!err) err = weir_arena_open(bytes_max, &s->labels);
    if (!err) err = weir_arena_open(LIVE_BESIDE_BYTES, &s->beside);
    if (err) {
        live_close(&s->base);
        return err;
    }
    for (uint32_t i = 0; i < relations; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(schema, i);
        s->ends[i] = (weir_sample_ends){(uint16_t)r->from, (uint16_t)r->to};
    }
    s->graph = graph;
    s->base = (weir_sample_source){
        .types = weir_schema_vertex_count(schema),
        .relations = relations,
        .ends = s->ends,
        .rows = true,
        .wide = true,
        .begin = live_begin,
        .ids = live_ids,
        .windows = live_windows,
        .numbers = live_numbers,
        .codes = live_codes,
        .features = live_features,
        .labels = live_labels,
        .edge_features = live_edge_features,
        .keep = live_keep,
        .close = live_close,
    };
    *sourcep = &s->base;
    return WEIR_OK;
}
