/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - a vertex, or an event, becomes an ask: at which time, and with which event of its own. */
#include "score_private.h"

/* The event that put the vertex: that of an edge which leaves it at its very time, of the first relation that has one.
 * None leaves the ask without an event of its own. */
static weir_err score_ask_own_event(weir_graph *graph, uint32_t type, weir_arena *arena, weir_score_ask *ask) {
    const weir_schema *schema = weir_graph_schema(graph);
    weir_err err = WEIR_OK;
    for (uint32_t r = 0; !err && !ask->event && r < weir_schema_relation_count(schema); r++) {
        const weir_edge *edges;
        uint32_t count;
        if (weir_schema_relation_at(schema, r)->from != type) continue;
        err =
            weir_graph_neighbors(graph, ask->vertex, (uint16_t)r, WEIR_OUT, ask->time_us + 1, 1, arena, &edges, &count);
        if (!err && count && edges[0].time_us == ask->time_us) ask->event = edges[0].event;
    }
    return err;
}

static weir_err score_ask_unknown(const weir_graph *graph, uint32_t type) {
    return WEIR_ERR(WEIR_ENOTFOUND, "no such %s: no event has named it yet, or it was deleted or has expired",
                    weir_schema_vertex_at(weir_graph_schema(graph), type)->name);
}

weir_err weir_score_ask_embedding(weir_graph *graph, const weir_score_model *model, uint16_t type, weir_vertex vertex,
                                  int64_t now_us, weir_arena *arena, weir_score_ask *askp) {
    const weir_nn_shape *shape = weir_score_model_shape(model);
    int64_t first_us;
    bool known;
    *askp = (weir_score_ask){.vertex = vertex, .time_us = now_us, .embedding = true, .inner = true, .type = type};
    if (!model->opts.nn)
        return WEIR_ERR(WEIR_ENOTFOUND, "the model has no embeddings: it is boosted trees; train one with `weir train "
                                        "--model network`, or blend");
    if (type == weir_nn_target_type(shape)) {
        weir_err err = weir_score_ask_vertex(graph, model, vertex, now_us, arena, askp);
        askp->embedding = true;
        return err;
    }
    if (type >= weir_nn_types(shape) || weir_nn_hop_of(shape, type) >= weir_nn_layers(shape))
        return WEIR_ERR(
            WEIR_ENOTFOUND,
            "the model has no embedding of a %s: its network meets that type at the last hop only, or never",
            weir_schema_vertex_at(weir_graph_schema(graph), type)->name);
    weir_err err = weir_graph_first_put(graph, vertex, WEIR_BEFORE_ALL, arena, &known, &first_us);
    return err || known ? err : score_ask_unknown(graph, type);
}

weir_err weir_score_ask_vertex(weir_graph *graph, const weir_score_model *model, weir_vertex vertex, int64_t now_us,
                               weir_arena *arena, weir_score_ask *askp) {
    uint32_t type = weir_nn_target_type(weir_score_model_shape(model));
    bool known;
    *askp = (weir_score_ask){.vertex = vertex, .time_us = now_us};
    weir_err err = weir_graph_first_put(graph, vertex, WEIR_BEFORE_ALL, arena, &known, &askp->time_us);
    if (err) return err;
    if (!known) return score_ask_unknown(graph, type);
    if (model->at_label || askp->time_us >= INT64_MAX - 1) {
        askp->time_us = now_us;
        return WEIR_OK;
    }
    return score_ask_own_event(graph, type, arena, askp);
}

weir_err weir_score_ask_event(const weir_score_model *model, const weir_mutation *mutations, size_t count,
                              weir_score_ask *askp) {
    const weir_nn_shape *shape = weir_score_model_shape(model);
    uint32_t type = weir_nn_target_type(shape);
    const weir_mutation *target = NULL;
    *askp = (weir_score_ask){0};
    for (size_t i = 0; i < count; i++) {
        const weir_mutation *m = &mutations[i];
        if (m->kind == WEIR_DELETE_VERTEX || m->kind == WEIR_DELETE_EDGE)
            return WEIR_ERR(WEIR_EDATA, "this event deletes something; store it first, then score what is left");
        if (!target && m->kind == WEIR_PUT_VERTEX && m->type == type) target = m;
    }
    if (!target)
        return WEIR_ERR(WEIR_EDATA,
                        "this event puts no %s, which is all that the model scores; send an event that puts one",
                        weir_nn_vertex(shape, type)->name);
    *askp = (weir_score_ask){.vertex = target->vertex,
                             .time_us = target->time_us,
                             .event = target->event,
                             .mutations = mutations,
                             .mutation_count = count};
    return WEIR_OK;
}
