/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - a topic, how its messages are read, and the list of mutations that they become. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "schema_private.h"

static weir_err source_read_topic(const weir_schema_def *def, weir_schema_source *source) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const weir_yaml_node *node = weir_schema_get(def, "topic");
    const char *topic = source->name;
    if (node) {
        weir_err err =
            weir_schema_read_text(def->schema, node, "topic", def->what, WEIR_SCHEMA_TOPIC_BYTES_MAX, &topic);
        if (err) return err;
        /* Kafka's rule, which the built-in event log shares. */
        if (topic[strspn(topic, letters)] || strcmp(topic, ".") == 0 || strcmp(topic, "..") == 0)
            return WEIR_YAML_ERR(node, "%s: '%.64s' cannot name a topic; use letters, digits, '.', '_' and '-'",
                                 def->what, topic);
    }
    for (uint32_t id = 0; id < weir_schema_source_count(def->schema); id++) {
        const weir_schema_source *other = weir_schema_source_at(def->schema, id);
        if (!other->topic || strcmp(other->topic, topic) != 0) continue; /* source itself has none yet */
        return WEIR_YAML_ERR(node ? node : def->place,
                             "%s: source '%s' reads topic '%.64s' already; put the mutations there, under 'when'",
                             def->what, other->name, topic);
    }
    source->topic = topic;
    return WEIR_OK;
}

static weir_err source_read_format(const weir_schema_def *def, weir_schema_source *source) {
    uint32_t format = WEIR_SCHEMA_JSON;
    weir_err err = weir_schema_read_choice(def, "format", weir_schema_format_words, &format);
    if (err) return err;
    source->format = (weir_schema_format)format;
    if (source->format == WEIR_SCHEMA_CSV) {
        const weir_yaml_node *node = NULL;
        uint32_t separator = 0;
        err = weir_schema_read_choice(def, "separator", weir_schema_separator_words, &separator);
        if (!err) err = weir_schema_need(def, "columns", &node);
        if (!err) err = weir_schema_read_values(def, "columns", node, 1, WEIR_SCHEMA_VALUES_MAX, &source->columns);
        source->separator = weir_schema_separators[separator];
        def->fields->columns = &source->columns;
        return err;
    }
    err = weir_schema_refuse(def, "columns", "for JSON");
    return err ? err : weir_schema_refuse(def, "separator", "for JSON");
}

static weir_err source_read_time(const weir_schema_def *def, weir_schema_source *source) {
    static const char *const keys[] = {"field", "format", NULL};
    const weir_yaml_node *node = NULL;
    weir_err err = weir_schema_need(def, "time", &node);
    if (err) return err;
    source->time_format = WEIR_SCHEMA_RFC3339;
    if (weir_yaml_node_kind(node) != WEIR_YAML_MAPPING)
        return weir_schema_read_field(def, "time", node, &source->time_field);
    weir_schema_def time = {.schema = def->schema, .place = node, .map = node, .fields = def->fields};
    const weir_yaml_node *field = NULL;
    uint32_t format = WEIR_SCHEMA_RFC3339;
    snprintf(time.what, sizeof time.what, "'time' of %.200s", def->what);
    err = weir_schema_only_keys(&time, keys);
    if (!err) err = weir_schema_need(&time, "field", &field);
    if (!err) err = weir_schema_read_field(&time, "field", field, &source->time_field);
    if (!err) err = weir_schema_read_choice(&time, "format", weir_schema_time_words, &format);
    source->time_format = (weir_schema_time_format)format;
    return err;
}

static weir_err source_read_mutations(const weir_schema_def *def, weir_schema_source *source) {
    const weir_yaml_node *list = NULL;
    weir_err err = weir_schema_need(def, "mutations", &list);
    if (err) return err;
    if (weir_yaml_node_kind(list) != WEIR_YAML_SEQUENCE || weir_yaml_count(list) == 0)
        return WEIR_YAML_ERR(list,
                             "%s: 'mutations' is a list of at least one; begin each with '- put_edge: NAME' or "
                             "its like",
                             def->what);
    size_t count = weir_yaml_count(list);
    if (count > WEIR_SCHEMA_MUTATIONS_MAX)
        return WEIR_YAML_ERR(weir_yaml_item(list, WEIR_SCHEMA_MUTATIONS_MAX),
                             "%s: 'mutations' has %zu entries; at most %u are allowed", def->what, count,
                             WEIR_SCHEMA_MUTATIONS_MAX);
    weir_schema_mutation *mutations = weir_schema_calloc(def->schema, count, sizeof *mutations);
    if (!mutations) return weir_schema_no_memory();
    for (size_t i = 0; i < count && !err; i++) {
        const weir_yaml_node *item = weir_yaml_item(list, i);
        weir_schema_def mutation = {.schema = def->schema, .place = item, .map = item, .fields = def->fields};
        snprintf(mutation.what, sizeof mutation.what, "mutation %zu of %.150s", i + 1, def->what);
        err = weir_schema_read_mutation(&mutation, &mutations[i]);
    }
    source->mutations = mutations;
    source->mutation_count = (uint32_t)count;
    return err;
}

static weir_err source_read_tombstone(const weir_schema_def *def, weir_schema_source *source) {
    static const char *const keys[] = {"delete_vertex", NULL};
    const weir_yaml_node *node = weir_schema_get(def, "tombstone");
    source->tombstone = WEIR_SCHEMA_NONE;
    if (!node) return WEIR_OK;
    weir_schema_def own = {.schema = def->schema, .place = node, .map = node, .fields = def->fields};
    snprintf(own.what, sizeof own.what, "'tombstone' of %.200s", def->what);
    if (weir_yaml_node_kind(node) != WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(node, "%s is a mapping: {delete_vertex: TYPE}", own.what);
    weir_err err = weir_schema_only_keys(&own, keys);
    return err ? err : weir_schema_read_reference(&own, "delete_vertex", WEIR_SCHEMA_VERTICES, &source->tombstone);
}

weir_err weir_schema_read_source(weir_schema_def *def, void *slot) {
    static const char *const keys[] = {"topic", "format",    "separator", "columns", "id",
                                       "time",  "mutations", "tombstone", NULL};
    weir_schema_source *source = slot;
    weir_schema_fields fields = {.columns = NULL};
    def->fields = &fields;
    weir_err err = weir_schema_only_keys(def, keys);
    if (!err) err = source_read_topic(def, source);
    if (!err) err = source_read_format(def, source);
    if (!err) err = weir_schema_read_key(def, "id", true, &source->id);
    if (!err) err = source_read_time(def, source);
    if (!err) err = source_read_mutations(def, source);
    if (!err) err = source_read_tombstone(def, source);
    def->fields = NULL;
    if (err) return err;
    WEIR_ASSERT(fields.count <= WEIR_SCHEMA_FIELDS_MAX && source->time_field < fields.count); // SCHEMA-H3
    weir_schema_field *kept = weir_schema_calloc(def->schema, fields.count, sizeof *kept);
    if (!kept) return weir_schema_no_memory();
    memcpy(kept, fields.fields, fields.count * sizeof *kept);
    source->fields = kept;
    source->field_count = fields.count;
    return WEIR_OK;
}
