/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - compiling a source: what a message would otherwise have to look up. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "map_private.h"

static bool same_key(const weir_schema_key *a, const weir_schema_key *b) {
    return a->count == b->count && memcmp(a->fields, b->fields, a->count * sizeof a->fields[0]) == 0;
}

static weir_end *end_of(weir_mapper *mapper, const weir_schema_key *key, uint32_t type) {
    for (uint32_t i = 0; i < mapper->end_count; i++) {
        weir_end *end = &mapper->ends[i];
        if (end->type == type && same_key(end->parts, key)) return end;
    }
    WEIR_ASSERT(mapper->end_count < WEIR_RULES_ENDS_MAX);
    const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, type);
    weir_end *added = &mapper->ends[mapper->end_count++];
    *added = (weir_end){.parts = key,
                        .type_name = vertex->name,
                        .type = (uint16_t)type,
                        .integer = vertex->key == WEIR_SCHEMA_KEY_INTEGER && key->count == 1};
    return added;
}

static void ends_of_relation(weir_mapper *mapper, weir_rule *rule, uint32_t relation) {
    const weir_schema_relation *r = weir_schema_relation_at(mapper->schema, relation);
    rule->from = end_of(mapper, &rule->schema->from, r->from);
    rule->to = end_of(mapper, &rule->schema->to, r->to);
}

static void resolve_ends(weir_mapper *mapper, weir_rule *rule) {
    const weir_schema_mutation *m = rule->schema;
    const weir_schema_label *label = NULL;
    switch (m->verb) {
    case WEIR_SCHEMA_PUT_VERTEX:
    case WEIR_SCHEMA_DELETE_VERTEX:
        rule->from = end_of(mapper, &m->key, m->subject);
        break;
    case WEIR_SCHEMA_PUT_EDGE:
    case WEIR_SCHEMA_DELETE_EDGE:
        ends_of_relation(mapper, rule, m->subject);
        break;
    case WEIR_SCHEMA_PUT_LABEL:
        label = weir_schema_label_at(mapper->schema, m->subject);
        if (label->on_relation) {
            ends_of_relation(mapper, rule, label->target);
        } else {
            rule->from = end_of(mapper, &m->key, label->target);
        }
        break;
    }
}

static weir_value_kind kind_of(weir_schema_feature_kind kind) {
    return kind == WEIR_SCHEMA_NUMBER ? WEIR_VALUE_NUMBER
           : kind == WEIR_SCHEMA_TIME ? WEIR_VALUE_TIME
                                      : WEIR_VALUE_CATEGORY;
}

static weir_err resolve_kinds(weir_rule *rule, const weir_schema_feature *features, uint32_t count) {
    rule->kinds = weir_malloc(count * sizeof *rule->kinds);
    if (!rule->kinds) return weir_map_no_memory();
    rule->kind_count = count;
    for (uint32_t i = 0; i < count; i++)
        rule->kinds[i] = kind_of(features[i].kind);
    return WEIR_OK;
}

static weir_err resolve_row(weir_mapper *mapper, weir_rule *rule) {
    const weir_schema_mutation *m = rule->schema;
    if (m->verb == WEIR_SCHEMA_PUT_VERTEX) {
        const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, m->subject);
        return resolve_kinds(rule, vertex->features, vertex->feature_count);
    }
    if (m->verb == WEIR_SCHEMA_PUT_EDGE) {
        const weir_schema_relation *relation = weir_schema_relation_at(mapper->schema, m->subject);
        return resolve_kinds(rule, relation->features, relation->feature_count);
    }
    return WEIR_OK;
}

static weir_err check_constant(const weir_mapper *mapper, const weir_schema_assignment *a) {
    if (!a->text || strlen(a->text) <= WEIR_ROW_TEXT_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ECONFIG, "source '%s' of the schema has the constant '%.32s…', which is longer than %u bytes",
                    mapper->source->name, a->text, WEIR_ROW_TEXT_MAX);
}

/* The schema allows a byte more than a row can hold. */
static weir_err check_constants(const weir_mapper *mapper, const weir_schema_mutation *m) {
    weir_err err = m->verb == WEIR_SCHEMA_PUT_LABEL ? check_constant(mapper, &m->value) : WEIR_OK;
    for (uint32_t i = 0; !err && i < m->assignment_count; i++)
        err = check_constant(mapper, &m->assignments[i]);
    return err;
}

weir_err weir_map_rules_open(weir_mapper *mapper) {
    const weir_schema_source *source = mapper->source;
    uint32_t widest = 1;
    weir_err err = WEIR_OK;
    mapper->rules = weir_calloc(source->mutation_count, sizeof *mapper->rules);
    if (!mapper->rules) return weir_map_no_memory();
    for (uint32_t i = 0; !err && i < source->mutation_count; i++) {
        weir_rule *rule = &mapper->rules[i];
        rule->schema = &source->mutations[i];
        err = check_constants(mapper, rule->schema);
        resolve_ends(mapper, rule);
        if (!err) err = resolve_row(mapper, rule);
        if (rule->kind_count > widest) widest = rule->kind_count;
    }
    mapper->values = weir_calloc(widest, sizeof *mapper->values);
    if (!err && !mapper->values) err = weir_map_no_memory();
    return err;
}

void weir_map_rules_close(weir_mapper *mapper) {
    for (uint32_t i = 0; mapper->rules && i < mapper->source->mutation_count; i++)
        weir_free(mapper->rules[i].kinds);
    weir_free(mapper->rules);
    weir_free(mapper->values);
}
