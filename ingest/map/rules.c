/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - compiling a source: what a message would otherwise have to look up. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "map_private.h"

/* The end of this key and vertex type: one for all rules that speak of it. */
static weir_end *rules_end(weir_mapper *mapper, const weir_schema_key *key, uint32_t type) {
    for (uint32_t i = 0; i < mapper->end_count; i++) {
        weir_end *end = &mapper->ends[i];
        if (end->type == type && end->parts->count == key->count &&
            memcmp(end->parts->fields, key->fields, key->count * sizeof key->fields[0]) == 0)
            return end;
    }
    WEIR_ASSERT(mapper->end_count < WEIR_RULES_ENDS_MAX);
    const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, type);
    weir_end *added = &mapper->ends[mapper->end_count++];
    *added = (weir_end){.parts = key,
                        .type_name = vertex->name,
                        .type = (uint16_t)type,
                        .integer = vertex->key == WEIR_SCHEMA_KEY_INTEGER};
    return added;
}

static void rules_set_ends(weir_mapper *mapper, weir_rule *rule) {
    const weir_schema_mutation *m = rule->schema;
    uint32_t vertex = WEIR_SCHEMA_NONE, relation = WEIR_SCHEMA_NONE;
    const weir_schema_label *label;
    switch (m->verb) {
    case WEIR_SCHEMA_PUT_VERTEX:
    case WEIR_SCHEMA_DELETE_VERTEX:
        vertex = m->subject;
        break;
    case WEIR_SCHEMA_PUT_EDGE:
    case WEIR_SCHEMA_DELETE_EDGE:
        relation = m->subject;
        break;
    case WEIR_SCHEMA_PUT_LABEL:
        label = weir_schema_label_at(mapper->schema, m->subject);
        *(label->on_relation ? &relation : &vertex) = label->target;
        break;
    }
    if (relation != WEIR_SCHEMA_NONE) {
        const weir_schema_relation *r = weir_schema_relation_at(mapper->schema, relation);
        rule->from = rules_end(mapper, &m->from, r->from);
        rule->to = rules_end(mapper, &m->to, r->to);
    } else {
        rule->from = rules_end(mapper, &m->key, vertex);
    }
}

static weir_err rules_set_kinds(weir_rule *rule, const weir_schema_feature *features, uint32_t count) {
    rule->kinds = weir_malloc(count * sizeof *rule->kinds);
    if (!rule->kinds) return weir_map_no_memory();
    rule->kind_count = count;
    for (uint32_t i = 0; i < count; i++) {
        rule->kinds[i] = features[i].kind == WEIR_SCHEMA_NUMBER ? WEIR_VALUE_NUMBER
                         : features[i].kind == WEIR_SCHEMA_TIME ? WEIR_VALUE_TIME
                                                                : WEIR_VALUE_CATEGORY;
    }
    return WEIR_OK;
}

weir_err weir_map_rules_open(weir_mapper *mapper) {
    const weir_schema_source *source = mapper->source;
    uint32_t widest = 1;
    mapper->rules = weir_calloc(source->mutation_count, sizeof *mapper->rules);
    if (!mapper->rules) return weir_map_no_memory();
    for (uint32_t i = 0; i < source->mutation_count; i++) {
        weir_rule *rule = &mapper->rules[i];
        const weir_schema_mutation *m = rule->schema = &source->mutations[i];
        weir_err err = WEIR_OK;
        rules_set_ends(mapper, rule);
        if (m->verb == WEIR_SCHEMA_PUT_VERTEX) {
            const weir_schema_vertex *vertex = weir_schema_vertex_at(mapper->schema, m->subject);
            err = rules_set_kinds(rule, vertex->features, vertex->feature_count);
        } else if (m->verb == WEIR_SCHEMA_PUT_EDGE) {
            const weir_schema_relation *relation = weir_schema_relation_at(mapper->schema, m->subject);
            err = rules_set_kinds(rule, relation->features, relation->feature_count);
        }
        if (err) return err;
        if (rule->kind_count > widest) widest = rule->kind_count;
    }
    mapper->values = weir_calloc(widest, sizeof *mapper->values);
    return mapper->values ? WEIR_OK : weir_map_no_memory();
}

void weir_map_rules_close(weir_mapper *mapper) {
    for (uint32_t i = 0; mapper->rules && i < mapper->source->mutation_count; i++)
        weir_free(mapper->rules[i].kinds);
    weir_free(mapper->rules);
    weir_free(mapper->values);
}
