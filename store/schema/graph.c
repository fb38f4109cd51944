/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - vertex types, relations and their features. */
#include <stdio.h>
#include <string.h>

#include "schema_private.h"

#define CATEGORY_BUCKETS_DEFAULT 1024u

/* --- features ------------------------------------------------------------------------------------------------ */

static weir_err feature_read(const weir_schema_def *owner, const weir_yaml_node *map, size_t index,
                             weir_schema_feature *feature) {
    static const char *const keys[] = {"kind", "normalise", "buckets", "values", NULL};
    weir_schema_def def = {.schema = owner->schema,
                           .place = weir_yaml_entry_key_node(map, index),
                           .map = weir_yaml_entry_value(map, index)};
    weir_err err = weir_schema_read_name(def.schema, def.place, "feature", &feature->name);
    if (err) return err;
    snprintf(def.what, sizeof def.what, "feature '%s' of %.150s", feature->name, owner->what);

    const weir_yaml_node *node = NULL;
    uint32_t kind = 0, normalise = WEIR_SCHEMA_NORMALISE_STANDARD;
    err = weir_schema_only_keys(&def, keys);
    if (!err) err = weir_schema_need(&def, "kind", &node);
    if (!err) err = weir_schema_read_choice(&def, "kind", weir_schema_kind_words, &kind);
    if (err) return err;
    feature->kind = (weir_schema_feature_kind)kind;
    switch (feature->kind) {
    case WEIR_SCHEMA_CATEGORY:
        err = weir_schema_refuse(&def, "normalise", "for a category");
        node = weir_schema_get(&def, "values");
        if (err) return err;
        if (node) {
            err = weir_schema_refuse(&def, "buckets", "beside 'values'");
            return err ? err
                       : weir_schema_read_values(&def, "values", node, 1, WEIR_SCHEMA_VALUES_MAX, &feature->values);
        }
        feature->buckets = CATEGORY_BUCKETS_DEFAULT;
        return weir_schema_read_u32(&def, "buckets", 1, WEIR_SCHEMA_CATEGORY_BUCKETS_MAX, &feature->buckets);
    case WEIR_SCHEMA_NUMBER:
        err = weir_schema_refuse(&def, "buckets", "for a number");
        if (!err) err = weir_schema_refuse(&def, "values", "for a number");
        if (!err) err = weir_schema_read_choice(&def, "normalise", weir_schema_normalise_words, &normalise);
        feature->normalise = (weir_schema_normalise)normalise;
        return err;
    case WEIR_SCHEMA_TIME:
        err = weir_schema_refuse(&def, "buckets", "for a time");
        if (!err) err = weir_schema_refuse(&def, "values", "for a time");
        if (!err) err = weir_schema_refuse(&def, "normalise", "for a time");
        return err;
    }
    return WEIR_OK;
}

static weir_err features_read(const weir_schema_def *def, const weir_schema_feature **featuresp, uint32_t *countp) {
    const weir_yaml_node *map = weir_schema_get(def, "features");
    if (!map || weir_schema_is_empty(map)) return WEIR_OK;
    if (weir_yaml_node_kind(map) != WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(map, "%s: 'features' holds features by their names; write it as a mapping", def->what);
    size_t count = weir_yaml_count(map);
    if (count > WEIR_SCHEMA_FEATURES_MAX)
        return WEIR_YAML_ERR(weir_yaml_entry_key_node(map, WEIR_SCHEMA_FEATURES_MAX),
                             "%s: 'features' has %zu entries; at most %u are allowed", def->what, count,
                             WEIR_SCHEMA_FEATURES_MAX);
    weir_schema_feature *features = weir_schema_calloc(def->schema, count, sizeof *features);
    if (!features) return weir_schema_no_memory();
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < count && !err; i++)
        err = feature_read(def, map, i, &features[i]);
    *featuresp = features;
    *countp = (uint32_t)count;
    return err;
}

/* --- their owners -------------------------------------------------------------------------------------------- */

weir_err weir_schema_read_vertex(weir_schema_def *def, void *slot) {
    static const char *const keys[] = {"key", "expire", "history", "features", NULL};
    weir_schema_vertex *vertex = slot;
    uint32_t key = WEIR_SCHEMA_KEY_TEXT;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = weir_schema_read_choice(def, "key", weir_schema_key_words, &key);
    if (!err) err = weir_schema_read_duration(def, "expire", "never", false, &vertex->expire_us);
    if (!err) err = weir_schema_read_duration(def, "history", "all", false, &vertex->history_us);
    if (!err) err = features_read(def, &vertex->features, &vertex->feature_count);
    vertex->key = (weir_schema_key_kind)key;
    return err;
}

weir_err weir_schema_read_relation(weir_schema_def *def, void *slot) {
    static const char *const keys[] = {"from", "to", "expire", "history", "features", NULL};
    weir_schema_relation *relation = slot;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = weir_schema_read_reference(def, "from", WEIR_SCHEMA_VERTICES, &relation->from);
    if (!err) err = weir_schema_read_reference(def, "to", WEIR_SCHEMA_VERTICES, &relation->to);
    if (!err) err = weir_schema_read_duration(def, "expire", "never", false, &relation->expire_us);
    if (!err) err = weir_schema_read_duration(def, "history", "all", false, &relation->history_us);
    return err ? err : features_read(def, &relation->features, &relation->feature_count);
}
