/* SPDX-License-Identifier: Apache-2.0 */
/* mutation.c - one item of a source's list: what is put or deleted, from which fields, under which conditions. */
#include <stdio.h>
#include <string.h>

#include "schema_private.h"

/* The features that a mutation can assign, and whose they are. */
typedef struct mutation_owner {
    const char *name;
    const weir_schema_feature *features;
    uint32_t count;
} mutation_owner;

/* --- conditions ---------------------------------------------------------------------------------------------- */

static weir_err condition_read(const weir_schema_def *mutation, const weir_yaml_node *node,
                               weir_schema_condition *condition) {
    static const char *const keys[] = {"has", "lacks", "field", "is", "is_not", NULL};
    static const char *const has_keys[] = {"has", NULL}, *const lacks_keys[] = {"lacks", NULL};
    static const char *const is_keys[] = {"field", "is", NULL}, *const is_not_keys[] = {"field", "is_not", NULL};
    weir_schema_def def = {.schema = mutation->schema, .place = node, .map = node, .fields = mutation->fields};
    snprintf(def.what, sizeof def.what, "'when' of %.200s", mutation->what);
    weir_err err = weir_yaml_only_keys(node, def.what, keys);
    if (err) return err;
    bool has = weir_schema_get(&def, "has") != NULL;
    if (!has && !weir_schema_get(&def, "lacks")) {
        const weir_yaml_node *field = NULL, *values = NULL;
        bool is = weir_schema_get(&def, "is") != NULL;
        const char *compared = is ? "is" : "is_not";
        condition->test = is ? WEIR_SCHEMA_IS : WEIR_SCHEMA_IS_NOT;
        err = weir_schema_only_keys(&def, is ? is_keys : is_not_keys);
        if (!err) err = weir_schema_need(&def, "field", &field);
        if (!err) err = weir_schema_read_field(&def, "field", field, &condition->field);
        if (!err) err = weir_schema_need(&def, compared, &values);
        if (!err) err = weir_schema_read_values(&def, compared, values, 1, WEIR_SCHEMA_VALUES_MAX, &condition->values);
        return err;
    }
    condition->test = has ? WEIR_SCHEMA_HAS : WEIR_SCHEMA_LACKS;
    const char *word = weir_schema_test_words[condition->test];
    err = weir_yaml_only_keys(node, def.what, has ? has_keys : lacks_keys);
    return err ? err : weir_schema_read_field(&def, word, weir_schema_get(&def, word), &condition->field);
}

static weir_err mutation_read_conditions(const weir_schema_def *def, weir_schema_mutation *mutation) {
    const weir_yaml_node *node = weir_schema_get(def, "when");
    if (!node) return WEIR_OK;
    bool list = weir_yaml_node_kind(node) == WEIR_YAML_SEQUENCE;
    size_t count = list ? weir_yaml_count(node) : 1;
    if (count > WEIR_SCHEMA_CONDITIONS_MAX)
        return WEIR_YAML_ERR(weir_yaml_item(node, WEIR_SCHEMA_CONDITIONS_MAX),
                             "%s: 'when' has %zu conditions; at most %u are allowed", def->what, count,
                             WEIR_SCHEMA_CONDITIONS_MAX);
    weir_schema_condition *conditions = weir_schema_calloc(def->schema, count, sizeof *conditions);
    if (!conditions) return weir_schema_no_memory();
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < count && !err; i++)
        err = condition_read(def, list ? weir_yaml_item(node, i) : node, &conditions[i]);
    mutation->conditions = conditions;
    mutation->condition_count = (uint32_t)count;
    return err;
}

/* --- assignments --------------------------------------------------------------------------------------------- */

/* The value of `default` or `constant`, by the kind of its feature. */
static weir_err assignment_read_constant(const weir_schema_def *def, const char *key,
                                         const weir_schema_feature *feature, weir_schema_assignment *assignment) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    if (feature->kind == WEIR_SCHEMA_TIME)
        return WEIR_YAML_ERR(node, "%s: a time has no '%s'; make it 'optional'", def->what, key);
    if (feature->kind == WEIR_SCHEMA_NUMBER) {
        weir_err err = weir_yaml_f64(node, &assignment->number);
        assignment->number += 0.0; // -0 becomes 0, which prints the same everywhere
        return err;
    }
    weir_err err =
        weir_schema_read_text(def->schema, node, key, def->what, WEIR_SCHEMA_TEXT_BYTES_MAX, &assignment->text);
    if (err) return err;
    uint32_t index = 0;
    if (!feature->buckets) err = weir_schema_read_listed(def, key, node, &feature->values, &index);
    assignment->slot = weir_schema_category(feature, assignment->text, strlen(assignment->text));
    return err;
}

static weir_err assignment_read_map(const weir_schema_def *mutation, const weir_yaml_node *node,
                                    const weir_schema_feature *feature, weir_schema_assignment *assignment) {
    static const char *const keys[] = {"field", "optional", "default", "format", "constant", NULL};
    static const char *const constant_keys[] = {"constant", NULL};
    weir_schema_def def = {.schema = mutation->schema, .place = node, .map = node, .fields = mutation->fields};
    const weir_yaml_node *field = NULL;
    snprintf(def.what, sizeof def.what, "'%s' in %.160s", feature->name, mutation->what);
    weir_err err = weir_yaml_only_keys(node, def.what, keys);
    if (err) return err;
    if (weir_schema_get(&def, "constant")) {
        assignment->presence = WEIR_SCHEMA_CONSTANT;
        err = weir_yaml_only_keys(node, def.what, constant_keys);
        return err ? err : assignment_read_constant(&def, "constant", feature, assignment);
    }
    err = weir_schema_need(&def, "field", &field);
    if (!err) err = weir_schema_read_field(&def, "field", field, &assignment->field);
    if (!err && feature->kind != WEIR_SCHEMA_TIME)
        err = weir_schema_refuse(&def, "format", "for a feature that is not a time");
    uint32_t format = WEIR_SCHEMA_RFC3339;
    if (!err) err = weir_schema_read_choice(&def, "format", weir_schema_time_words, &format);
    assignment->time_format = (weir_schema_time_format)format;
    bool optional = false;
    if (!err) err = weir_schema_read_bool(&def, "optional", &optional);
    if (err) return err;
    if (weir_schema_get(&def, "default")) {
        err = optional ? weir_schema_refuse(&def, "default", "beside 'optional: true'") : WEIR_OK;
        assignment->presence = WEIR_SCHEMA_DEFAULT;
        return err ? err : assignment_read_constant(&def, "default", feature, assignment);
    }
    assignment->presence = optional ? WEIR_SCHEMA_OPTIONAL : WEIR_SCHEMA_REQUIRED;
    return WEIR_OK;
}

/* The entry for one feature: its value in a mapping, itself in a list; NULL if it is not assigned. */
static const weir_yaml_node *mutation_find_assigned(const weir_yaml_node *node, const char *name) {
    if (weir_yaml_node_kind(node) == WEIR_YAML_MAPPING) return weir_yaml_find(node, name);
    for (size_t i = 0; i < weir_yaml_count(node); i++) {
        const weir_yaml_node *item = weir_yaml_item(node, i);
        if (strcmp(weir_yaml_text(item), name) == 0) return item;
    }
    return NULL;
}

static weir_err mutation_check_assigned(const weir_schema_def *def, const weir_yaml_node *node,
                                        const mutation_owner *owner) {
    bool seen[WEIR_SCHEMA_FEATURES_MAX] = {false};
    bool map = weir_yaml_node_kind(node) == WEIR_YAML_MAPPING;
    for (size_t i = 0; i < weir_yaml_count(node); i++) {
        const weir_yaml_node *item = map ? weir_yaml_entry_key_node(node, i) : weir_yaml_item(node, i);
        uint32_t index = 0;
        weir_err err = weir_schema_read_feature_reference(def, "features", item, owner->name, owner->features,
                                                          owner->count, &index);
        if (err) return err;
        if (seen[index])
            return WEIR_YAML_ERR(item, "%s: 'features' lists '%s' twice; remove one", def->what,
                                 owner->features[index].name);
        seen[index] = true;
    }
    return WEIR_OK;
}

/* In the order of the features, not of the file: the numbers of fields follow the canonical text (SCHEMA-H3). */
static weir_err mutation_read_assignments(const weir_schema_def *def, const mutation_owner *owner,
                                          weir_schema_mutation *mutation) {
    const weir_yaml_node *node = weir_schema_get(def, "features");
    if (!node || weir_schema_is_empty(node)) return WEIR_OK;
    if (weir_yaml_node_kind(node) == WEIR_YAML_SCALAR)
        return WEIR_YAML_ERR(node,
                             "%s: 'features' is a mapping of features to fields, or a list of features that are "
                             "fields of the same name",
                             def->what);
    weir_err err = mutation_check_assigned(def, node, owner);
    if (err) return err;
    weir_schema_assignment *assignments = weir_schema_calloc(def->schema, weir_yaml_count(node), sizeof *assignments);
    if (!assignments) return weir_schema_no_memory();
    for (uint32_t i = 0; i < owner->count && !err; i++) {
        const weir_yaml_node *value = mutation_find_assigned(node, owner->features[i].name);
        if (!value) continue;
        WEIR_ASSERT(mutation->assignment_count <
                    weir_yaml_count(node)); /* each is there once: mutation_check_assigned */
        weir_schema_assignment *assignment = &assignments[mutation->assignment_count++];
        *assignment = (weir_schema_assignment){.feature = i, .field = WEIR_SCHEMA_NONE};
        err = weir_yaml_node_kind(value) == WEIR_YAML_MAPPING
                  ? assignment_read_map(def, value, &owner->features[i], assignment)
                  : weir_schema_read_field(def, owner->features[i].name, value, &assignment->field);
    }
    mutation->assignments = assignments;
    return err;
}

static weir_err mutation_read_features(const weir_schema_def *def, weir_schema_mutation *mutation) {
    if (mutation->verb == WEIR_SCHEMA_PUT_VERTEX) {
        const weir_schema_vertex *vertex = weir_schema_vertex_at(def->schema, mutation->subject);
        return mutation_read_assignments(def, &(mutation_owner){vertex->name, vertex->features, vertex->feature_count},
                                         mutation);
    }
    const weir_schema_relation *relation = weir_schema_relation_at(def->schema, mutation->subject);
    return mutation_read_assignments(
        def, &(mutation_owner){relation->name, relation->features, relation->feature_count}, mutation);
}

/* --- verbs --------------------------------------------------------------------------------------------------- */

/* What names a vertex of this type. An integer has one spelling only where it is the whole key. */
static weir_err mutation_read_name(const weir_schema_def *def, const char *key, uint32_t type, weir_schema_key *keyp) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(def->schema, type);
    weir_err err = weir_schema_read_key(def, key, true, keyp);
    if (err || keyp->count == 1 || vertex->key == WEIR_SCHEMA_KEY_TEXT) return err;
    return WEIR_YAML_ERR(weir_schema_get(def, key),
                         "%s: '%s' has %u parts, and vertex type '%s' has 'key: integer'; give one field, or make the "
                         "type's 'key' text",
                         def->what, key, keyp->count, vertex->name);
}

static weir_err mutation_read_vertex(weir_schema_def *def, weir_schema_mutation *mutation) {
    static const char *const put_keys[] = {"put_vertex", "key", "when", "features", NULL};
    static const char *const delete_keys[] = {"delete_vertex", "key", "when", NULL};
    bool put = mutation->verb == WEIR_SCHEMA_PUT_VERTEX;
    weir_err err = weir_schema_only_keys(def, put ? put_keys : delete_keys);
    if (!err) err = mutation_read_name(def, "key", mutation->subject, &mutation->key);
    if (!err) err = mutation_read_conditions(def, mutation);
    return err || !put ? err : mutation_read_features(def, mutation);
}

static weir_err mutation_read_ends(const weir_schema_def *def, uint32_t relation, weir_schema_mutation *mutation) {
    const weir_schema_relation *r = weir_schema_relation_at(def->schema, relation);
    weir_err err = mutation_read_name(def, "from", r->from, &mutation->from);
    return err ? err : mutation_read_name(def, "to", r->to, &mutation->to);
}

static weir_err mutation_read_edge(weir_schema_def *def, weir_schema_mutation *mutation) {
    static const char *const put_keys[] = {"put_edge", "from", "to", "when", "features", NULL};
    static const char *const delete_keys[] = {"delete_edge", "from", "to", "event", "when", NULL};
    bool put = mutation->verb == WEIR_SCHEMA_PUT_EDGE;
    weir_err err = weir_schema_only_keys(def, put ? put_keys : delete_keys);
    if (!err) err = mutation_read_ends(def, mutation->subject, mutation);
    if (!err && !put) err = weir_schema_read_key(def, "event", false, &mutation->event);
    if (!err) err = mutation_read_conditions(def, mutation);
    return err || !put ? err : mutation_read_features(def, mutation);
}

/* A path, or a mapping with a constant. */
static weir_err mutation_read_label_value(const weir_schema_def *def, const weir_schema_label *label,
                                          weir_schema_assignment *value) {
    static const char *const keys[] = {"constant", NULL};
    const weir_yaml_node *node = NULL;
    *value = (weir_schema_assignment){.feature = WEIR_SCHEMA_NONE, .field = WEIR_SCHEMA_NONE};
    weir_err err = weir_schema_need(def, "value", &node);
    if (err) return err;
    if (weir_yaml_node_kind(node) != WEIR_YAML_MAPPING)
        return weir_schema_read_field(def, "value", node, &value->field);
    weir_schema_def own = {.schema = def->schema, .place = node, .map = node, .fields = def->fields};
    snprintf(own.what, sizeof own.what, "'value' of %.200s", def->what);
    err = weir_schema_only_keys(&own, keys);
    if (!err) err = weir_schema_need(&own, "constant", &node);
    if (!err) err = weir_schema_read_listed(&own, "constant", node, &label->values, &value->slot);
    if (err) return err;
    value->presence = WEIR_SCHEMA_CONSTANT;
    value->text = label->values.texts[value->slot];
    return WEIR_OK;
}

static weir_err mutation_read_label(weir_schema_def *def, weir_schema_mutation *mutation) {
    static const char *const vertex_keys[] = {"put_label", "key", "value", "when", NULL};
    static const char *const edge_keys[] = {"put_label", "from", "to", "event", "value", "when", NULL};
    const weir_schema_label *label = weir_schema_label_at(def->schema, mutation->subject);
    weir_err err = weir_schema_only_keys(def, label->on_relation ? edge_keys : vertex_keys);
    if (!err && label->on_relation) {
        err = mutation_read_ends(def, label->target, mutation);
        if (!err) err = weir_schema_read_key(def, "event", true, &mutation->event);
    } else if (!err) {
        err = mutation_read_name(def, "key", label->target, &mutation->key);
    }
    if (!err) err = mutation_read_label_value(def, label, &mutation->value);
    return err ? err : mutation_read_conditions(def, mutation);
}

/* Exactly one of the keys is a verb. */
static weir_err mutation_read_verb(const weir_schema_def *def, weir_schema_verb *verbp) {
    static const char *const keys[] = {"put_vertex", "put_edge", "put_label", "delete_vertex", "delete_edge",
                                       "key",        "from",     "to",        "event",         "value",
                                       "when",       "features", NULL};
    const char *found = NULL;
    weir_err err = weir_yaml_only_keys(def->map, def->what, keys);
    for (uint32_t i = 0; weir_schema_verb_words[i] && !err; i++) {
        const char *word = weir_schema_verb_words[i];
        if (!weir_yaml_find(def->map, word)) continue;
        if (found)
            return WEIR_YAML_ERR(weir_yaml_find(def->map, word), "%s has '%s' and '%s'; make it two mutations",
                                 def->what, found, word);
        found = word;
        *verbp = (weir_schema_verb)i;
    }
    if (!err && !found)
        err = WEIR_YAML_ERR(def->place,
                            "%s does not say what it does; begin it with put_vertex, put_edge, put_label, "
                            "delete_vertex or delete_edge",
                            def->what);
    return err;
}

weir_err weir_schema_read_mutation(weir_schema_def *def, weir_schema_mutation *mutation) {
    weir_err err = mutation_read_verb(def, &mutation->verb);
    if (err) return err;
    err = weir_schema_read_reference(def, weir_schema_verb_words[mutation->verb],
                                     weir_schema_verb_sections[mutation->verb], &mutation->subject);
    if (err) return err;
    switch (mutation->verb) {
    case WEIR_SCHEMA_PUT_VERTEX:
    case WEIR_SCHEMA_DELETE_VERTEX:
        return mutation_read_vertex(def, mutation);
    case WEIR_SCHEMA_PUT_EDGE:
    case WEIR_SCHEMA_DELETE_EDGE:
        return mutation_read_edge(def, mutation);
    default:
        return mutation_read_label(def, mutation);
    }
}
