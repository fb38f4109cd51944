/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - what models see and learn beside the raw features: aggregates, labels and tasks. */
#include <math.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "schema_private.h"

static const weir_schema_relation *learn_relation(const weir_schema_def *def, uint32_t id) {
    return weir_schema_relation_at(def->schema, id);
}

/* One of a label's values, or a list of some: their indices, rising. */
static weir_err learn_read_some(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                const weir_schema_label *label, size_t count_min, const uint32_t **indicesp,
                                uint32_t *countp) {
    bool marked[WEIR_SCHEMA_LABEL_VALUES_MAX] = {false};
    bool list = weir_yaml_node_kind(node) == WEIR_YAML_SEQUENCE;
    const size_t listed = list ? weir_yaml_count(node) : 1;
    if (listed < count_min)
        return WEIR_YAML_ERR(node, "%s: '%s' lists nothing; name at least one value of label '%s'", def->what, key,
                             label->name);
    for (size_t i = 0; i < listed; i++) {
        uint32_t index = 0;
        weir_err err = weir_schema_read_listed(def, key, list ? weir_yaml_item(node, i) : node, &label->values, &index);
        if (err) return err;
        WEIR_ASSERT(index < label->values.count); // SCHEMA-H3
        marked[index] = true;
    }
    uint32_t *indices = weir_schema_calloc(def->schema, label->values.count, sizeof *indices);
    if (!indices) return weir_schema_no_memory();
    *countp = 0;
    for (uint32_t i = 0; i < label->values.count; i++)
        if (marked[i]) indices[(*countp)++] = i;
    *indicesp = indices;
    return WEIR_OK;
}

/* --- aggregates ---------------------------------------------------------------------------------------------- */

/* Of the edges at a vertex of that type: the end at which it stands. */
static weir_err aggregate_read_direction(const weir_schema_def *def, uint32_t type, uint32_t relation_id,
                                         weir_schema_direction *directionp) {
    const weir_schema_relation *relation = learn_relation(def, relation_id);
    const char *vertex = weir_schema_vertex_at(def->schema, type)->name;
    bool out = relation->from == type, in = relation->to == type;
    if (!out && !in)
        return WEIR_YAML_ERR(def->map == NULL ? def->place : weir_schema_get(def, "relation"),
                             "%s: no edge of relation '%s' touches a '%s'; name a relation that begins or ends there",
                             def->what, relation->name, vertex);
    uint32_t direction = out ? WEIR_SCHEMA_OUT : WEIR_SCHEMA_IN;
    const weir_yaml_node *node = weir_schema_get(def, "direction");
    if (!node && out && in)
        return WEIR_YAML_ERR(def->place, "%s needs 'direction': relation '%s' begins and ends at a '%s'", def->what,
                             relation->name, vertex);
    weir_err err = weir_schema_read_choice(def, "direction", weir_schema_direction_words, &direction);
    if (err) return err;
    *directionp = (weir_schema_direction)direction;
    if (*directionp == WEIR_SCHEMA_OUT ? !out : !in)
        return WEIR_YAML_ERR(node, "%s: relation '%s' does not %s at a '%s'; leave 'direction' out", def->what,
                             relation->name, *directionp == WEIR_SCHEMA_OUT ? "begin" : "end", vertex);
    return WEIR_OK;
}

/* The type to which an edge of the relation leads from the vertex. It begins there: a target's own event is known by
 * edges that it has put from the target. */
static weir_err aggregate_read_end(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                   uint32_t vertex, uint32_t *relationp, uint32_t *typep) {
    const char *name = weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : "";
    *relationp = weir_schema_relation_find(def->schema, name);
    if (*relationp == WEIR_SCHEMA_NONE)
        return WEIR_YAML_ERR(node, "%s: '%s' names %s, and there is no relation '%s'", def->what, key,
                             strcmp(key, "end") == 0 ? "a relation" : "two relations", name);
    const weir_schema_relation *relation = learn_relation(def, *relationp);
    *typep = relation->to;
    if (relation->from == vertex) return WEIR_OK;
    return WEIR_YAML_ERR(node, "%s: no edge of relation '%s' begins at a '%s'; name a relation that does", def->what,
                         name, weir_schema_vertex_at(def->schema, vertex)->name);
}

/* Where the walk goes next, from a vertex of *typep, and which type it meets there. */
static weir_err aggregate_read_walk(const weir_schema_def *def, const weir_yaml_node *node, uint32_t *typep,
                                    weir_schema_walk *walk) {
    static const char *const keys[] = {"relation", "direction", NULL};
    weir_schema_def step = {.schema = def->schema, .place = node};
    memcpy(step.what, def->what, sizeof step.what);
    weir_err err = WEIR_OK;
    if (weir_yaml_node_kind(node) == WEIR_YAML_MAPPING) {
        step.map = node;
        err = weir_schema_only_keys(&step, keys);
        if (!err) err = weir_schema_read_reference(&step, "relation", WEIR_SCHEMA_RELATIONS, &walk->relation);
    } else {
        const char *name = weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : "";
        walk->relation = weir_schema_relation_find(def->schema, name);
        if (walk->relation == WEIR_SCHEMA_NONE)
            return WEIR_YAML_ERR(node, "%s: 'through' names relations, and there is no relation '%s'", def->what, name);
    }
    if (err) return err;
    const weir_schema_relation *relation = learn_relation(def, walk->relation);
    if (!step.map && relation->from == relation->to && relation->from == *typep)
        return WEIR_YAML_ERR(node,
                             "%s: relation '%s' begins and ends at a '%s'; write {relation: %s, direction: out} here, "
                             "or in",
                             def->what, relation->name, weir_schema_vertex_at(def->schema, *typep)->name,
                             relation->name);
    err = aggregate_read_direction(&step, *typep, walk->relation, &walk->direction);
    if (err) return err;
    *typep = walk->direction == WEIR_SCHEMA_OUT ? relation->to : relation->from;
    return WEIR_OK;
}

/* The walk from the first end; *typep: the type of that end, then of where the walk ends. */
static weir_err aggregate_name_through(const weir_schema_def *def, weir_schema_aggregate *aggregate, uint32_t *typep) {
    const weir_yaml_node *node = weir_schema_get(def, "through");
    aggregate->through_count = 0;
    aggregate->crowd = 0;
    aggregate->ordered = false;
    if (!node) {
        weir_err err = weir_schema_refuse(def, "crowd", "without 'through', along which it is asked");
        if (!err) err = weir_schema_refuse(def, "ordered", "without 'through', whose steps it puts in order");
        return err ? err : weir_schema_refuse(def, "share", "without 'through', along which edges are compared");
    }
    if (aggregate->between[0] == WEIR_SCHEMA_NONE)
        return WEIR_YAML_ERR(
            node, "%s: 'through' begins at an end of the vertex; name that by 'end', or two by 'between'", def->what);
    const size_t count = weir_yaml_node_kind(node) == WEIR_YAML_SEQUENCE ? weir_yaml_count(node) : 0;
    if (count < 1 || count > WEIR_SCHEMA_THROUGH_MAX)
        return WEIR_YAML_ERR(node, "%s: 'through' is a list of 1 to %u relations", def->what, WEIR_SCHEMA_THROUGH_MAX);
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++)
        err = aggregate_read_walk(def, weir_yaml_item(node, i), typep, &aggregate->through[i]);
    aggregate->through_count = (uint32_t)count;
    aggregate->crowd = WEIR_SCHEMA_CROWD;
    if (!err) err = weir_schema_read_bool(def, "ordered", &aggregate->ordered);
    return err ? err : weir_schema_read_u32(def, "crowd", 1, WEIR_SCHEMA_CROWD_MAX, &aggregate->crowd);
}

/* Edges between what the walk meets, or the first end, and the second end: from the one to the other if such edges can
 * be, else from the other to the one. */
static weir_err aggregate_read_between(const weir_schema_def *def, const weir_yaml_node *between,
                                       weir_schema_aggregate *aggregate) {
    const weir_schema_relation *relation = learn_relation(def, aggregate->relation);
    uint32_t types[2];
    if (weir_yaml_node_kind(between) != WEIR_YAML_SEQUENCE || weir_yaml_count(between) != 2)
        return WEIR_YAML_ERR(between, "%s: 'between' is a list of two relations that join a '%s' to the two ends",
                             def->what, weir_schema_vertex_at(def->schema, aggregate->vertex)->name);
    weir_err err = weir_schema_refuse(def, "direction", "beside 'between', which says which end is the first");
    if (!err) err = weir_schema_refuse(def, "end", "beside 'between', which names two");
    for (size_t i = 0; !err && i < 2; i++)
        err = aggregate_read_end(def, "between", weir_yaml_item(between, i), aggregate->vertex, &aggregate->between[i],
                                 &types[i]);
    if (!err) err = aggregate_name_through(def, aggregate, &types[0]);
    if (err) return err;
    bool out = relation->from == types[0] && relation->to == types[1];
    aggregate->direction = out ? WEIR_SCHEMA_OUT : WEIR_SCHEMA_IN;
    if (out || (relation->from == types[1] && relation->to == types[0])) return WEIR_OK;
    return WEIR_YAML_ERR(weir_schema_get(def, "relation"),
                         "%s: relation '%s' does not join a '%s' and a '%s', to which '%s' leads; name one that does",
                         def->what, relation->name, weir_schema_vertex_at(def->schema, types[0])->name,
                         weir_schema_vertex_at(def->schema, types[1])->name,
                         aggregate->through_count ? "through" : "between");
}

/* Edges of the vertex itself, of where one relation leads from it, or of what a walk meets from there. */
static weir_err aggregate_read_edges(const weir_schema_def *def, weir_schema_aggregate *aggregate) {
    const weir_yaml_node *end = weir_schema_get(def, "end");
    uint32_t type = aggregate->vertex;
    weir_err err =
        end ? aggregate_read_end(def, "end", end, aggregate->vertex, &aggregate->between[0], &type) : WEIR_OK;
    if (!err) err = aggregate_name_through(def, aggregate, &type);
    return err ? err : aggregate_read_direction(def, type, aggregate->relation, &aggregate->direction);
}

static weir_err aggregate_read_of(const weir_schema_def *def, weir_schema_aggregate *aggregate) {
    const weir_schema_relation *relation = learn_relation(def, aggregate->relation);
    const weir_yaml_node *node = weir_schema_get(def, "of");
    bool distinct = aggregate->function == WEIR_SCHEMA_DISTINCT;
    aggregate->of = WEIR_SCHEMA_NONE;
    if (aggregate->function == WEIR_SCHEMA_COUNT) return weir_schema_refuse(def, "of", "for a count");
    if (aggregate->function == WEIR_SCHEMA_SINCE_LAST || aggregate->function == WEIR_SCHEMA_SINCE_FIRST)
        return weir_schema_refuse(def, "of", "for a time since an edge");
    if (aggregate->function == WEIR_SCHEMA_DEPTH && aggregate->through_count == 0)
        return WEIR_YAML_ERR(weir_schema_get(def, "function"),
                             "%s: 'depth' is of a walk; say by 'through' where it goes", def->what);
    if (aggregate->function == WEIR_SCHEMA_DEPTH) return weir_schema_refuse(def, "of", "for a depth");
    /* Of neighbours, of which a pair has one; through others, of these. */
    if (!node && distinct && (!weir_schema_get(def, "between") || aggregate->through_count > 0)) return WEIR_OK;
    weir_err err = weir_schema_need(def, "of", &node);
    if (!err)
        err = weir_schema_read_feature_reference(def, "of", node, relation->name, relation->features,
                                                 relation->feature_count, &aggregate->of);
    if (err) return err;
    weir_schema_feature_kind kind = relation->features[aggregate->of].kind;
    if (kind == (distinct ? WEIR_SCHEMA_CATEGORY : WEIR_SCHEMA_NUMBER)) return WEIR_OK;
    return WEIR_YAML_ERR(node, "%s: '%s' of relation '%s' is a %s; '%s' takes a %s", def->what,
                         relation->features[aggregate->of].name, relation->name, weir_schema_kind_words[kind],
                         weir_schema_function_words[aggregate->function], distinct ? "category" : "number");
}

/* The number of the edge to the (first) end that is divided by what the function says: of numbers, as it is one. */
static weir_err aggregate_read_ratio(const weir_schema_def *def, weir_schema_aggregate *aggregate) {
    const weir_yaml_node *node = weir_schema_get(def, "ratio");
    aggregate->ratio = WEIR_SCHEMA_NONE;
    if (!node) return WEIR_OK;
    if (aggregate->between[0] == WEIR_SCHEMA_NONE)
        return WEIR_YAML_ERR(node,
                             "%s: 'ratio' names a number of the edge to an end; name that by 'end', or two by "
                             "'between'",
                             def->what);
    if (aggregate->of == WEIR_SCHEMA_NONE || aggregate->function == WEIR_SCHEMA_DISTINCT)
        return WEIR_YAML_ERR(node, "%s: 'ratio' divides by a number of edges; '%s' is of none, 'mean' is of one",
                             def->what, weir_schema_function_words[aggregate->function]);
    const weir_schema_relation *end = learn_relation(def, aggregate->between[0]);
    weir_err err = weir_schema_read_feature_reference(def, "ratio", node, end->name, end->features, end->feature_count,
                                                      &aggregate->ratio);
    if (err || end->features[aggregate->ratio].kind == WEIR_SCHEMA_NUMBER) return err;
    return WEIR_YAML_ERR(node, "%s: '%s' of relation '%s' is a %s; 'ratio' takes a number", def->what,
                         end->features[aggregate->ratio].name, end->name,
                         weir_schema_kind_words[end->features[aggregate->ratio].kind]);
}

static weir_err aggregate_read_share(const weir_schema_def *def, weir_schema_aggregate *aggregate) {
    static const char *const keys[] = {"of", "least", "most", NULL};
    const weir_yaml_node *node = weir_schema_get(def, "share"), *of = NULL, *least = NULL, *most = NULL;
    const weir_schema_relation *relation = learn_relation(def, aggregate->relation);
    weir_schema_share *share = &aggregate->share;
    *share = (weir_schema_share){.of = WEIR_SCHEMA_NONE};
    if (!node) return WEIR_OK;
    if (!aggregate->ordered)
        return weir_schema_refuse(def, "share", "without 'ordered: true', which says what comes before what");
    bool along = false; /* the relation whose edges are compared */
    for (uint32_t i = 0; i < aggregate->through_count; i++)
        along = along || aggregate->through[i].relation == aggregate->relation;
    if (!along)
        return WEIR_YAML_ERR(node,
                             "%s: 'share' compares edges of relation '%s' with each other, along which 'through' "
                             "does not go",
                             def->what, relation->name);
    if (weir_yaml_node_kind(node) != WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(node, "%s: 'share' is {of: NUMBER, least: X, most: Y}", def->what);
    weir_schema_def inner = {.schema = def->schema, .place = node, .map = node};
    memcpy(inner.what, def->what, sizeof inner.what);
    weir_err err = weir_schema_only_keys(&inner, keys);
    if (!err) err = weir_schema_need(&inner, "of", &of);
    if (!err) err = weir_schema_need(&inner, "least", &least);
    if (!err) err = weir_schema_need(&inner, "most", &most);
    if (!err) err = weir_yaml_f64(least, &share->least);
    if (!err) err = weir_yaml_f64(most, &share->most);
    if (!err)
        err = weir_schema_read_feature_reference(&inner, "of", of, relation->name, relation->features,
                                                 relation->feature_count, &share->of);
    if (err) return err;
    if (relation->features[share->of].kind != WEIR_SCHEMA_NUMBER)
        return WEIR_YAML_ERR(of, "%s: '%s' of relation '%s' is a %s; 'share' takes a number", def->what,
                             relation->features[share->of].name, relation->name,
                             weir_schema_kind_words[relation->features[share->of].kind]);
    if (share->least >= 0 && share->least <= share->most && isfinite(share->most)) return WEIR_OK;
    return WEIR_YAML_ERR(least, "%s: 'least' of a 'share' is 0 or more, and 'most' not less than that", def->what);
}

/* Which of the edges count: those whose neighbour was told to be one of these values. Of a pair all edges lead to one
 * and the same neighbour, which there is nothing to choose from. */
static weir_err aggregate_read_label(const weir_schema_def *def, weir_schema_aggregate *aggregate) {
    const weir_yaml_node *node = weir_schema_get(def, "label"), *is = NULL;
    const weir_schema_relation *relation = learn_relation(def, aggregate->relation);
    aggregate->label = WEIR_SCHEMA_NONE;
    if (!node) return weir_schema_refuse(def, "is", "without 'label', whose values it lists");
    weir_err err = weir_schema_read_reference(def, "label", WEIR_SCHEMA_LABELS, &aggregate->label);
    if (!err)
        err = weir_schema_refuse(def, "between", "beside 'label', which chooses among the neighbours of a vertex");
    if (!err) err = weir_schema_refuse(def, "end", "beside 'label', which chooses among the neighbours of a vertex");
    if (err) return err;
    const weir_schema_label *label = weir_schema_label_at(def->schema, aggregate->label);
    uint32_t type = aggregate->direction == WEIR_SCHEMA_OUT ? relation->to : relation->from;
    const char *neighbor = weir_schema_vertex_at(def->schema, type)->name;
    if (label->on_relation)
        return WEIR_YAML_ERR(node, "%s: label '%s' is on a relation; name one that is on vertex type '%s'", def->what,
                             label->name, neighbor);
    if (label->target != type)
        return WEIR_YAML_ERR(
            node, "%s: label '%s' is on a '%s', but relation '%s' leads to a '%s'; name a label of that", def->what,
            label->name, weir_schema_vertex_at(def->schema, label->target)->name, relation->name, neighbor);
    err = weir_schema_need(def, "is", &is);
    return err ? err : learn_read_some(def, "is", is, label, 1, &aggregate->is, &aggregate->is_count);
}

static weir_err aggregate_read_window(const weir_schema_def *def, weir_schema_aggregate *aggregate) {
    const weir_yaml_node *window = NULL;
    weir_err err = weir_schema_need(def, "window", &window);
    if (!err) err = weir_schema_read_duration(def, "window", NULL, false, &aggregate->window_us);
    if (!err) err = weir_schema_read_duration(def, "resolution", "exact", false, &aggregate->resolution_us);
    if (err) return err;
    if (aggregate->ordered && aggregate->resolution_us)
        return weir_schema_refuse(def, "resolution", "beside 'ordered', where each edge has a window of its own");
    for (uint32_t i = 0; i <= aggregate->through_count; i++) {
        const weir_schema_relation *relation =
            learn_relation(def, i < aggregate->through_count ? aggregate->through[i].relation : aggregate->relation);
        const int64_t steps = aggregate->ordered ? i + 1 : 1; /* each is looked for a window further back */
        if (relation->expire_us && aggregate->window_us > relation->expire_us / steps)
            return WEIR_YAML_ERR(window,
                                 "%s: 'window' is longer than edges of relation '%s' live%s; shorten it, or raise "
                                 "their 'expire'",
                                 def->what, relation->name, steps > 1 ? ", as every step goes as far back" : "");
    }
    int64_t resolution_us = aggregate->resolution_us;
    if (resolution_us == 0) return WEIR_OK;
    const weir_yaml_node *node = weir_schema_get(def, "resolution");
    if (aggregate->window_us % resolution_us != 0)
        return WEIR_YAML_ERR(node, "%s: 'window' is not a multiple of 'resolution'; make it one", def->what);
    if (aggregate->window_us / resolution_us > WEIR_SCHEMA_WINDOW_BUCKETS_MAX)
        return WEIR_YAML_ERR(node, "%s: 'window' is over %u times 'resolution'; make 'resolution' coarser, or 'exact'",
                             def->what, WEIR_SCHEMA_WINDOW_BUCKETS_MAX);
    return WEIR_OK;
}

weir_err weir_schema_read_aggregate(weir_schema_def *def, void *slot) {
    static const char *const keys[] = {"vertex", "between",  "end",       "through",    "crowd",     "ordered",
                                       "share",  "relation", "direction", "function",   "of",        "ratio",
                                       "label",  "is",       "window",    "resolution", "normalise", NULL};
    weir_schema_aggregate *aggregate = slot;
    const weir_yaml_node *node = NULL;
    uint32_t function = 0, normalise = WEIR_SCHEMA_NORMALISE_STANDARD;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = weir_schema_read_reference(def, "vertex", WEIR_SCHEMA_VERTICES, &aggregate->vertex);
    if (!err) err = weir_schema_read_reference(def, "relation", WEIR_SCHEMA_RELATIONS, &aggregate->relation);
    if (err) return err;
    /* An aggregate is an input of the model beside the features of its vertex, under its own name. */
    const weir_schema_vertex *vertex = weir_schema_vertex_at(def->schema, aggregate->vertex);
    if (weir_schema_feature_find(vertex->features, vertex->feature_count, aggregate->name) != WEIR_SCHEMA_NONE)
        return WEIR_YAML_ERR(def->place, "%s: vertex type '%s' has a feature of this name; choose another", def->what,
                             vertex->name);
    aggregate->between[0] = aggregate->between[1] = WEIR_SCHEMA_NONE;
    const weir_yaml_node *between = weir_schema_get(def, "between");
    err = between ? aggregate_read_between(def, between, aggregate) : aggregate_read_edges(def, aggregate);
    if (!err) err = weir_schema_need(def, "function", &node);
    if (!err) err = weir_schema_read_choice(def, "function", weir_schema_function_words, &function);
    aggregate->function = (weir_schema_function)function;
    if (!err) err = aggregate_read_of(def, aggregate);
    if (!err) err = aggregate_read_ratio(def, aggregate);
    if (!err) err = aggregate_read_share(def, aggregate);
    if (!err) err = aggregate_read_label(def, aggregate);
    if (!err) err = aggregate_read_window(def, aggregate);
    if (!err) err = weir_schema_read_choice(def, "normalise", weir_schema_normalise_words, &normalise);
    aggregate->normalise = (weir_schema_normalise)normalise;
    return err;
}

/* --- labels -------------------------------------------------------------------------------------------------- */

weir_err weir_schema_read_label(weir_schema_def *def, void *slot) {
    static const char *const keys[] = {"vertex", "relation", "values", "absent", "lag", NULL};
    weir_schema_label *label = slot;
    const weir_yaml_node *node = NULL;
    weir_err err = weir_schema_only_keys(def, keys);
    if (err) return err;
    label->on_relation = weir_schema_get(def, "relation") != NULL;
    label->absent = WEIR_SCHEMA_NONE;
    if (label->on_relation) {
        err = weir_schema_refuse(def, "vertex", "beside 'relation'");
        if (!err) err = weir_schema_read_reference(def, "relation", WEIR_SCHEMA_RELATIONS, &label->target);
    } else if (weir_schema_get(def, "vertex")) {
        err = weir_schema_read_reference(def, "vertex", WEIR_SCHEMA_VERTICES, &label->target);
    } else {
        err = WEIR_YAML_ERR(def->place, "%s needs 'vertex' or 'relation': what it is put on", def->what);
    }
    if (!err) err = weir_schema_need(def, "values", &node);
    if (!err) err = weir_schema_read_values(def, "values", node, 2, WEIR_SCHEMA_LABEL_VALUES_MAX, &label->values);
    if (!err && (node = weir_schema_get(def, "absent")))
        err = weir_schema_read_listed(def, "absent", node, &label->values, &label->absent);
    return err ? err : weir_schema_read_duration(def, "lag", NULL, true, &label->lag_us);
}

/* --- tasks --------------------------------------------------------------------------------------------------- */

static weir_err task_read_positive(const weir_schema_def *def, weir_schema_task *task) {
    const weir_yaml_node *node = weir_schema_get(def, "positive");
    if (!node) return WEIR_OK;
    const weir_schema_label *label = weir_schema_label_at(def->schema, task->label);
    weir_err err = learn_read_some(def, "positive", node, label, 0, &task->positive, &task->positive_count);
    if (err) return err;
    if (task->positive_count == label->values.count)
        return WEIR_YAML_ERR(node, "%s: 'positive' lists every value of label '%s'; leave at least one negative",
                             def->what, label->name);
    return WEIR_OK;
}

/* A target that is trained on before its label can have come would be taken for a negative. */
static weir_err task_read_maturity(const weir_schema_def *def, weir_schema_task *task) {
    if (task->moment == WEIR_SCHEMA_AT_LABEL) {
        weir_err err = weir_schema_refuse(def, "maturity", "with 'at: label'");
        return err ? err : weir_schema_refuse(def, "horizon", "with 'at: label'");
    }
    task->maturity_us = weir_schema_label_at(def->schema, task->label)->lag_us;
    weir_err err = weir_schema_read_duration(def, "maturity", NULL, true, &task->maturity_us);
    task->horizon_us = task->maturity_us;
    if (!err) err = weir_schema_read_duration(def, "horizon", NULL, true, &task->horizon_us);
    if (err || task->horizon_us <= task->maturity_us) return err;
    const weir_yaml_node *node = weir_schema_get(def, "horizon");
    return WEIR_YAML_ERR(node,
                         "%s: 'horizon' is longer than 'maturity', so a label could still come after training; "
                         "raise 'maturity'",
                         def->what);
}

static weir_err task_read_classify(weir_schema_def *def, weir_schema_task *task) {
    static const char *const keys[] = {"kind", "label", "positive", "at", "maturity", "horizon", NULL};
    uint32_t moment = WEIR_SCHEMA_AT_PUT;
    task->relation = WEIR_SCHEMA_NONE;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = weir_schema_read_reference(def, "label", WEIR_SCHEMA_LABELS, &task->label);
    if (!err) err = task_read_positive(def, task);
    if (!err) err = weir_schema_read_choice(def, "at", weir_schema_moment_words, &moment);
    task->moment = (weir_schema_moment)moment;
    return err ? err : task_read_maturity(def, task);
}

static weir_err task_read_recommend(weir_schema_def *def, weir_schema_task *task) {
    static const char *const keys[] = {"kind", "relation", "repeat", "horizon", NULL};
    const weir_yaml_node *node = NULL;
    task->label = WEIR_SCHEMA_NONE;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = weir_schema_read_reference(def, "relation", WEIR_SCHEMA_RELATIONS, &task->relation);
    if (!err) err = weir_schema_read_bool(def, "repeat", &task->repeat);
    if (!err) err = weir_schema_need(def, "horizon", &node);
    return err ? err : weir_schema_read_duration(def, "horizon", NULL, false, &task->horizon_us);
}

weir_err weir_schema_read_task(weir_schema_def *def, void *slot) {
    static const char *const keys[] = {"kind",    "label",    "positive", "at", "maturity",
                                       "horizon", "relation", "repeat",   NULL};
    weir_schema_task *task = slot;
    const weir_yaml_node *node = NULL;
    uint32_t kind = 0;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = weir_schema_need(def, "kind", &node);
    if (!err) err = weir_schema_read_choice(def, "kind", weir_schema_task_words, &kind);
    task->kind = (weir_schema_task_kind)kind;
    if (err) return err;
    return task->kind == WEIR_SCHEMA_CLASSIFY ? task_read_classify(def, task) : task_read_recommend(def, task);
}
