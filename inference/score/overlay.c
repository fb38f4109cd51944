/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlay.c - a source that shows a target what its own event says, which is not stored yet: its edges, and its row.
 *
 * Only the looks at a target with an event of its own (one parent, right behind its time) see them: the sampler's, and
 * those for the ends of its pairs. Everything else in its tree is older than the event, and other targets of the batch
 * must not see it (SCORE-C3).
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "score_private.h"

struct weir_score_overlay {
    weir_sample_source base; /* first: the handle is this */
    weir_sample_source *live;
    weir_graph *graph;
    weir_arena *windows; /* of one look */
    const weir_score_ask *const *asks;
    uint32_t count;
};

static weir_score_overlay *overlay_of(weir_sample_source *source) {
    return (weir_score_overlay *)(void *)source;
}

/* The ask whose event changes what is known of the vertex at that time, or NULL. */
static const weir_score_ask *overlay_find(const weir_score_overlay *overlay, weir_vertex vertex, int64_t time_us) {
    for (uint32_t i = 0; i < overlay->count; i++) {
        const weir_score_ask *ask = overlay->asks[i];
        if (ask->mutation_count && ask->vertex == vertex && ask->time_us == time_us) return ask;
    }
    return NULL;
}

/* --- one window --------------------------------------------------------------------------------------------------- */

/* Whether the mutation is an edge that the look would show if it were stored. */
static bool overlay_belongs(const weir_mutation *m, const weir_score_ask *ask, const weir_sample_ask *look) {
    return m->kind == WEIR_PUT_EDGE && m->vertex == ask->vertex && m->type == look->relation &&
           m->direction == look->direction && m->time_us < look->before_us[0];
}

/* The order of a window: newest first, then by neighbour, then by event. */
static int overlay_order(const weir_edge *a, const weir_edge *b) {
    if (a->time_us != b->time_us) return a->time_us > b->time_us ? -1 : 1;
    if (a->neighbor != b->neighbor) return a->neighbor < b->neighbor ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

/* Puts an edge where it belongs; one that is there already is replaced, as the store would. Returns the new count. */
static uint32_t overlay_insert(weir_edge *edges, uint32_t count, const weir_edge *edge) {
    uint32_t at = 0;
    while (at < count && overlay_order(&edges[at], edge) < 0)
        at++;
    bool there = at < count && overlay_order(&edges[at], edge) == 0;
    if (!there) memmove(&edges[at + 1], &edges[at], (count - at) * sizeof *edges);
    edges[at] = *edge;
    return there ? count : count + 1;
}

static weir_err overlay_lay_over(weir_score_overlay *o, const weir_score_ask *ask, const weir_sample_ask *look,
                                 weir_sample_window *window) {
    weir_arena_reset(o->windows);
    weir_edge *edges = weir_arena_alloc(o->windows, (window->count + ask->mutation_count) * sizeof *edges);
    if (!edges) return WEIR_ARENA_ERR(o->windows, "no memory for the edges of an event; send fewer at once");
    uint32_t count = window->count;
    if (count) memcpy(edges, window->edges, count * sizeof *edges);
    for (size_t i = 0; i < ask->mutation_count; i++) {
        const weir_mutation *m = &ask->mutations[i];
        if (!overlay_belongs(m, ask, look)) continue;
        weir_edge edge = {m->neighbor, m->time_us, m->event, m->row, m->row_length};
        count = overlay_insert(edges, count, &edge); // SCORE-C1
    }
    WEIR_ASSERT(count <= window->count + ask->mutation_count);
    const uint8_t *bytes = (const uint8_t *)edges;
    window->neighbors = bytes + offsetof(weir_edge, neighbor);
    window->times = bytes + offsetof(weir_edge, time_us);
    window->edges = edges;
    window->count = count < look->limit ? count : look->limit;
    return WEIR_OK;
}

static weir_err overlay_windows(weir_sample_source *source, const weir_sample_ask *look, weir_sample_window *windows) {
    weir_score_overlay *o = overlay_of(source);
    weir_err err = o->live->windows(o->live, look, windows);
    if (err || look->count != 1 || look->before_us[0] == INT64_MIN) return err;
    const weir_score_ask *ask = overlay_find(o, look->parent_ids[0], look->before_us[0] - 1);
    return ask ? overlay_lay_over(o, ask, look, windows) : WEIR_OK;
}

/* --- features ----------------------------------------------------------------------------------------------------- */

/* What the event puts, the last row first: each feature takes its newest value, and before all that the graph has. */
static weir_err overlay_put_features(const weir_score_ask *ask, const weir_value_kind *kinds, size_t count,
                                     weir_value *values) {
    weir_value put[WEIR_ROW_FEATURES_MAX] = {{0}};
    for (size_t i = ask->mutation_count; i--;) {
        const weir_mutation *m = &ask->mutations[i];
        if (m->kind != WEIR_PUT_VERTEX || m->vertex != ask->vertex || !m->row_length) continue;
        weir_err err = weir_row_check(kinds, count, m->row, m->row_length);
        if (err) return err;
        weir_row_fill(kinds, count, m->row, m->row_length, put);
    }
    for (size_t i = 0; i < count; i++) {
        if (!put[i].present) continue;
        values[i] = put[i];
        values[i].number = (double)(float)put[i].number;
    }
    return WEIR_OK;
}

static weir_err overlay_features(weir_sample_source *source, const weir_sample_vertices *of, weir_value *values) {
    weir_score_overlay *o = overlay_of(source);
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(o->graph, of->type, &kind_count);
    weir_err err = o->live->features(o->live, of, values);
    for (uint32_t i = 0; !err && of->targets && i < of->count; i++) {
        const weir_score_ask *event = overlay_find(o, of->ids[i], of->before_us[i]);
        if (event) err = overlay_put_features(event, kinds, kind_count, values + i * kind_count);
    }
    return err;
}

/* --- everything else is the graph's ------------------------------------------------------------------------------- */

static void overlay_begin(weir_sample_source *source) {
    weir_sample_source *live = overlay_of(source)->live;
    live->begin(live);
}

static weir_err overlay_ids(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids) {
    weir_sample_source *live = overlay_of(source)->live;
    return live->ids(live, targets, count, ids);
}

static weir_err overlay_numbers(weir_sample_source *source, const weir_sample_ask *look,
                                const weir_sample_window *window, uint32_t feature, float *numbers) {
    weir_sample_source *live = overlay_of(source)->live;
    return live->numbers(live, look, window, feature, numbers);
}

static weir_err overlay_codes(weir_sample_source *source, const weir_sample_ask *look, const weir_sample_window *window,
                              uint32_t feature, uint64_t *codes) {
    weir_sample_source *live = overlay_of(source)->live;
    return live->codes(live, look, window, feature, codes);
}

/* What the event itself tells has the target's time, and so is not before it. */
static weir_err overlay_labels(weir_sample_source *source, const weir_sample_vertices *of, uint32_t label,
                               uint32_t *values) {
    weir_sample_source *live = overlay_of(source)->live;
    return live->labels(live, of, label, values);
}

static weir_err overlay_keep(weir_sample_source *source, const uint8_t *row, uint32_t length, const uint8_t **keptp) {
    weir_sample_source *live = overlay_of(source)->live;
    return live->keep(live, row, length, keptp);
}

static weir_err overlay_edge_features(weir_sample_source *source, const weir_sample_step *step,
                                      const weir_block_edges *edges, uint32_t begin, uint32_t count,
                                      weir_value *values) {
    weir_sample_source *live = overlay_of(source)->live;
    return live->edge_features(live, step, edges, begin, count, values);
}

static void overlay_close(weir_sample_source *source) {
    weir_score_overlay_close(overlay_of(source));
}

/* --- the handle --------------------------------------------------------------------------------------------------- */

weir_err weir_score_overlay_open(weir_graph *graph, weir_sample_source *live, weir_score_overlay **overlayp) {
    weir_score_overlay *o = *overlayp = weir_calloc(1, sizeof *o);
    if (!o) return WEIR_NOMEM("for a source of samples");
    weir_err err = weir_arena_open(WEIR_SCORE_BYTES_MAX, &o->windows);
    if (err) {
        weir_free(o);
        *overlayp = NULL;
        return err;
    }
    o->graph = graph;
    o->live = live;
    o->base = (weir_sample_source){
        .types = live->types,
        .relations = live->relations,
        .ends = live->ends,
        .rows = true,
        .wide = live->wide,
        .begin = overlay_begin,
        .ids = overlay_ids,
        .windows = overlay_windows,
        .numbers = overlay_numbers,
        .codes = overlay_codes,
        .features = overlay_features,
        .labels = overlay_labels,
        .edge_features = overlay_edge_features,
        .keep = overlay_keep,
        .close = overlay_close,
    };
    return WEIR_OK;
}

void weir_score_overlay_close(weir_score_overlay *overlay) {
    if (!overlay) return;
    weir_arena_close(overlay->windows);
    weir_free(overlay);
}

weir_sample_source *weir_score_overlay_source(weir_score_overlay *overlay) {
    return &overlay->base;
}

void weir_score_overlay_show(weir_score_overlay *overlay, const weir_score_ask *const *asks, uint32_t count) {
    WEIR_ASSERT(count <= WEIR_SCORE_EVENTS_MAX && (!count || asks));
    overlay->asks = asks;
    overlay->count = count;
}
