/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - the canonical text: defaults spelled out, one way to write each thing.
 *
 * The hash of a schema is the hash of this text, and stored data carries it: a change of a single byte here makes
 * every stored hash a stranger (tests/golden/schema holds what it looks like).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weir/store/base/assert.h>

#include "schema_private.h"

/* Writers for one schema; all borrowed. */
typedef struct schema_printer {
    const weir_schema *schema;
    weir_buf *out;
    const weir_schema_source *source; /* inside one */
} schema_printer;

/* --- scalars ------------------------------------------------------------------------------------------------- */

static bool schema_is_plain(const char *text) {
    /* What some YAML reader takes for a truth value or for nothing. */
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0) return false;
    return strspn(text, letters) > 0 && text[strspn(text, more)] == 0;
}

static void schema_print_text(weir_buf *out, const char *text) {
    if (schema_is_plain(text)) {
        weir_buf_text(out, text);
        return;
    }
    weir_buf_text(out, "\"");
    for (const char *at = text; *at; at++) {
        if (*at == '"' || *at == '\\') weir_buf_text(out, "\\");
        weir_buf_append(out, at, 1);
    }
    weir_buf_text(out, "\"");
}

const char *weir_schema_duration_text(int64_t us, const char *zero_word, char buffer[WEIR_SCHEMA_DURATION_BYTES]) {
    static const struct {
        int64_t us;
        const char *unit;
    } units[] = {{86400000000, "d"}, {3600000000, "h"}, {60000000, "m"}, {1000000, "s"}, {1000, "ms"}, {1, "us"}};
    if (us == 0) return zero_word ? zero_word : "0s";
    size_t i = 0;
    while (us % units[i].us != 0)
        i++;
    int length = snprintf(buffer, WEIR_SCHEMA_DURATION_BYTES, "%" PRId64 "%s", us / units[i].us, units[i].unit);
    WEIR_ASSERT(length > 0 && length < (int)WEIR_SCHEMA_DURATION_BYTES);
    return buffer;
}

/* "KEY" and a text; KEY carries its indent and colon. */
static void schema_text_line(const schema_printer *p, const char *key, const char *text) {
    weir_buf_text(p->out, key);
    schema_print_text(p->out, text);
    weir_buf_text(p->out, "\n");
}

static void schema_duration_line(const schema_printer *p, const char *key, int64_t us, const char *zero_word) {
    char text[WEIR_SCHEMA_DURATION_BYTES];
    weir_buf_printf(p->out, "%s%s\n", key, weir_schema_duration_text(us, zero_word, text));
}

/* The key is younger than the hashes: where it says nothing, it is not written. */
static void schema_history_line(const schema_printer *p, int64_t history_us) {
    if (history_us) schema_duration_line(p, "    history: ", history_us, "all");
}

static void schema_print_values(const schema_printer *p, const weir_schema_values *values) {
    weir_buf_text(p->out, "[");
    for (uint32_t i = 0; i < values->count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        schema_print_text(p->out, values->texts[i]);
    }
    weir_buf_text(p->out, "]");
}

/* --- graph --------------------------------------------------------------------------------------------------- */

static void schema_print_features(const schema_printer *p, const weir_schema_feature *features, uint32_t count) {
    weir_buf_text(p->out, count ? "    features:\n" : "    features: {}\n");
    for (uint32_t i = 0; i < count; i++) {
        const weir_schema_feature *feature = &features[i];
        weir_buf_text(p->out, "      ");
        schema_print_text(p->out, feature->name);
        weir_buf_printf(p->out, ": {kind: %s", weir_schema_kind_words[feature->kind]);
        if (feature->kind == WEIR_SCHEMA_NUMBER)
            weir_buf_printf(p->out, ", normalise: %s", weir_schema_normalise_words[feature->normalise]);
        if (feature->kind == WEIR_SCHEMA_CATEGORY && feature->buckets)
            weir_buf_printf(p->out, ", buckets: %" PRIu32, feature->buckets);
        if (feature->kind == WEIR_SCHEMA_CATEGORY && !feature->buckets) {
            weir_buf_text(p->out, ", values: ");
            schema_print_values(p, &feature->values);
        }
        weir_buf_text(p->out, "}\n");
    }
}

static void schema_print_vertex(const schema_printer *p, uint32_t id) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(p->schema, id);
    schema_text_line(p, "    key: ", weir_schema_key_words[vertex->key]);
    schema_duration_line(p, "    expire: ", vertex->expire_us, "never");
    schema_history_line(p, vertex->history_us);
    schema_print_features(p, vertex->features, vertex->feature_count);
}

static void schema_print_relation(const schema_printer *p, uint32_t id) {
    const weir_schema_relation *relation = weir_schema_relation_at(p->schema, id);
    schema_text_line(p, "    from: ", weir_schema_vertex_at(p->schema, relation->from)->name);
    schema_text_line(p, "    to: ", weir_schema_vertex_at(p->schema, relation->to)->name);
    schema_duration_line(p, "    expire: ", relation->expire_us, "never");
    schema_history_line(p, relation->history_us);
    schema_print_features(p, relation->features, relation->feature_count);
}

/* --- learning ------------------------------------------------------------------------------------------------ */

/* Some of a label's values, by their indices. */
static void schema_print_some(const schema_printer *p, const weir_schema_label *label, const uint32_t *indices,
                              uint32_t count) {
    weir_buf_text(p->out, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        schema_print_text(p->out, label->values.texts[indices[i]]);
    }
    weir_buf_text(p->out, "]\n");
}

static void schema_print_through(const schema_printer *p, const weir_schema_aggregate *aggregate) {
    weir_buf_text(p->out, "    through: [");
    for (uint32_t i = 0; i < aggregate->through_count; i++) {
        const weir_schema_walk *walk = &aggregate->through[i];
        weir_buf_text(p->out, i > 0 ? ", {relation: " : "{relation: ");
        schema_print_text(p->out, weir_schema_relation_at(p->schema, walk->relation)->name);
        weir_buf_text(p->out, ", direction: ");
        weir_buf_text(p->out, weir_schema_direction_words[walk->direction]);
        weir_buf_text(p->out, "}");
    }
    weir_buf_text(p->out, "]\n");
    weir_buf_printf(p->out, "    crowd: %u\n", aggregate->crowd);
    if (aggregate->ordered) weir_buf_text(p->out, "    ordered: true\n");
    const weir_schema_share *share = &aggregate->share;
    if (share->of == WEIR_SCHEMA_NONE) return;
    weir_buf_text(p->out, "    share: {of: ");
    schema_print_text(p->out, weir_schema_relation_at(p->schema, aggregate->relation)->features[share->of].name);
    weir_buf_text(p->out, ", least: ");
    weir_json least = weir_json_begin(p->out), most = least;
    weir_json_f64(&least, share->least);
    weir_buf_text(p->out, ", most: ");
    weir_json_f64(&most, share->most);
    weir_buf_text(p->out, "}\n");
}

static void schema_print_aggregate(const schema_printer *p, uint32_t id) {
    const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(p->schema, id);
    const weir_schema_relation *relation = weir_schema_relation_at(p->schema, aggregate->relation);
    schema_text_line(p, "    vertex: ", weir_schema_vertex_at(p->schema, aggregate->vertex)->name);
    const bool pair = aggregate->between[1] != WEIR_SCHEMA_NONE;
    if (!pair && aggregate->between[0] != WEIR_SCHEMA_NONE)
        schema_text_line(p, "    end: ", weir_schema_relation_at(p->schema, aggregate->between[0])->name);
    if (pair) {
        const char *const ends[2] = {weir_schema_relation_at(p->schema, aggregate->between[0])->name,
                                     weir_schema_relation_at(p->schema, aggregate->between[1])->name};
        weir_buf_text(p->out, "    between: ");
        schema_print_values(p, &(weir_schema_values){.texts = ends, .count = 2});
        weir_buf_text(p->out, "\n");
    }
    if (aggregate->through_count > 0) schema_print_through(p, aggregate);
    schema_text_line(p, "    relation: ", relation->name);
    if (!pair) schema_text_line(p, "    direction: ", weir_schema_direction_words[aggregate->direction]);
    schema_text_line(p, "    function: ", weir_schema_function_words[aggregate->function]);
    if (aggregate->of != WEIR_SCHEMA_NONE) schema_text_line(p, "    of: ", relation->features[aggregate->of].name);
    if (aggregate->ratio != WEIR_SCHEMA_NONE)
        schema_text_line(p, "    ratio: ",
                         weir_schema_relation_at(p->schema, aggregate->between[0])->features[aggregate->ratio].name);
    if (aggregate->label != WEIR_SCHEMA_NONE) {
        const weir_schema_label *label = weir_schema_label_at(p->schema, aggregate->label);
        schema_text_line(p, "    label: ", label->name);
        weir_buf_text(p->out, "    is: ");
        schema_print_some(p, label, aggregate->is, aggregate->is_count);
    }
    schema_duration_line(p, "    window: ", aggregate->window_us, NULL);
    schema_duration_line(p, "    resolution: ", aggregate->resolution_us, "exact");
    schema_text_line(p, "    normalise: ", weir_schema_normalise_words[aggregate->normalise]);
}

static void schema_print_label(const schema_printer *p, uint32_t id) {
    const weir_schema_label *label = weir_schema_label_at(p->schema, id);
    if (label->on_relation) {
        schema_text_line(p, "    relation: ", weir_schema_relation_at(p->schema, label->target)->name);
    } else {
        schema_text_line(p, "    vertex: ", weir_schema_vertex_at(p->schema, label->target)->name);
    }
    weir_buf_text(p->out, "    values: ");
    schema_print_values(p, &label->values);
    weir_buf_text(p->out, "\n");
    if (label->absent != WEIR_SCHEMA_NONE) schema_text_line(p, "    absent: ", label->values.texts[label->absent]);
    schema_duration_line(p, "    lag: ", label->lag_us, NULL);
}

static void schema_print_task(const schema_printer *p, uint32_t id) {
    const weir_schema_task *task = weir_schema_task_at(p->schema, id);
    schema_text_line(p, "    kind: ", weir_schema_task_words[task->kind]);
    if (task->kind == WEIR_SCHEMA_CLASSIFY) {
        const weir_schema_label *label = weir_schema_label_at(p->schema, task->label);
        schema_text_line(p, "    label: ", label->name);
        weir_buf_text(p->out, "    positive: ");
        schema_print_some(p, label, task->positive, task->positive_count);
        schema_text_line(p, "    at: ", weir_schema_moment_words[task->moment]);
        if (task->moment == WEIR_SCHEMA_AT_LABEL) return;
        schema_duration_line(p, "    maturity: ", task->maturity_us, NULL);
        schema_duration_line(p, "    horizon: ", task->horizon_us, NULL);
        return;
    }
    schema_text_line(p, "    relation: ", weir_schema_relation_at(p->schema, task->relation)->name);
    weir_buf_printf(p->out, "    repeat: %s\n", task->repeat ? "true" : "false");
    schema_duration_line(p, "    horizon: ", task->horizon_us, NULL);
}

/* --- sources ------------------------------------------------------------------------------------------------- */

static void schema_print_field(const schema_printer *p, uint32_t field) {
    schema_print_text(p->out, p->source->fields[field].path);
}

static void schema_key_line(const schema_printer *p, const char *word, const weir_schema_key *key) {
    if (key->count == 0) return;
    weir_buf_text(p->out, word);
    if (key->count > 1) weir_buf_text(p->out, "[");
    for (uint32_t i = 0; i < key->count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        schema_print_field(p, key->fields[i]);
    }
    weir_buf_text(p->out, key->count > 1 ? "]\n" : "\n");
}

static void schema_print_condition(const schema_printer *p, const weir_schema_condition *condition) {
    const char *word = weir_schema_test_words[condition->test];
    if (condition->test == WEIR_SCHEMA_HAS || condition->test == WEIR_SCHEMA_LACKS) {
        weir_buf_printf(p->out, "{%s: ", word);
        schema_print_field(p, condition->field);
    } else {
        weir_buf_text(p->out, "{field: ");
        schema_print_field(p, condition->field);
        weir_buf_printf(p->out, ", %s: ", word);
        schema_print_values(p, &condition->values);
    }
    weir_buf_text(p->out, "}");
}

static void schema_print_constant(const schema_printer *p, const weir_schema_feature *feature,
                                  const weir_schema_assignment *assignment) {
    if (feature->kind == WEIR_SCHEMA_NUMBER) {
        weir_json json = weir_json_begin(p->out);
        weir_json_f64(&json, assignment->number);
    } else {
        schema_print_text(p->out, assignment->text);
    }
}

static void schema_print_assignment(const schema_printer *p, const weir_schema_feature *feature,
                                    const weir_schema_assignment *assignment) {
    weir_buf_text(p->out, "          ");
    schema_print_text(p->out, feature->name);
    weir_buf_text(p->out, assignment->presence == WEIR_SCHEMA_CONSTANT ? ": {constant: " : ": {field: ");
    if (assignment->presence != WEIR_SCHEMA_CONSTANT) schema_print_field(p, assignment->field);
    if (feature->kind == WEIR_SCHEMA_TIME)
        weir_buf_printf(p->out, ", format: %s", weir_schema_time_words[assignment->time_format]);
    switch (assignment->presence) {
    case WEIR_SCHEMA_REQUIRED:
        weir_buf_text(p->out, ", optional: false");
        break;
    case WEIR_SCHEMA_OPTIONAL:
        weir_buf_text(p->out, ", optional: true");
        break;
    case WEIR_SCHEMA_DEFAULT:
        weir_buf_text(p->out, ", default: ");
        schema_print_constant(p, feature, assignment);
        break;
    case WEIR_SCHEMA_CONSTANT:
        schema_print_constant(p, feature, assignment);
        break;
    }
    weir_buf_text(p->out, "}\n");
}

/* Keys, value, conditions, features: the order in which mutation.c numbers their fields. */
static void schema_print_mutation(const schema_printer *p, const weir_schema_mutation *mutation) {
    weir_buf_printf(p->out, "      - %s: ", weir_schema_verb_words[mutation->verb]);
    schema_text_line(p, "",
                     weir_schema_slot_name(p->schema, weir_schema_verb_sections[mutation->verb], mutation->subject));
    schema_key_line(p, "        key: ", &mutation->key);
    schema_key_line(p, "        from: ", &mutation->from);
    schema_key_line(p, "        to: ", &mutation->to);
    schema_key_line(p, "        event: ", &mutation->event);
    if (mutation->verb == WEIR_SCHEMA_PUT_LABEL && mutation->value.presence == WEIR_SCHEMA_CONSTANT) {
        weir_buf_text(p->out, "        value: {constant: ");
        schema_print_text(p->out, mutation->value.text);
        weir_buf_text(p->out, "}\n");
    } else if (mutation->verb == WEIR_SCHEMA_PUT_LABEL) {
        weir_buf_text(p->out, "        value: ");
        schema_print_field(p, mutation->value.field);
        weir_buf_text(p->out, "\n");
    }
    weir_buf_text(p->out, "        when: [");
    for (uint32_t i = 0; i < mutation->condition_count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        schema_print_condition(p, &mutation->conditions[i]);
    }
    weir_buf_text(p->out, "]\n");
    if (mutation->verb != WEIR_SCHEMA_PUT_VERTEX && mutation->verb != WEIR_SCHEMA_PUT_EDGE) return;
    const weir_schema_feature *features = mutation->verb == WEIR_SCHEMA_PUT_VERTEX
                                              ? weir_schema_vertex_at(p->schema, mutation->subject)->features
                                              : weir_schema_relation_at(p->schema, mutation->subject)->features;
    weir_buf_text(p->out, mutation->assignment_count ? "        features:\n" : "        features: {}\n");
    for (uint32_t i = 0; i < mutation->assignment_count; i++)
        schema_print_assignment(p, &features[mutation->assignments[i].feature], &mutation->assignments[i]);
}

static void schema_print_source(const schema_printer *outer, uint32_t id) {
    const weir_schema_source *source = weir_schema_source_at(outer->schema, id);
    const schema_printer inner = {.schema = outer->schema, .out = outer->out, .source = source}, *p = &inner;
    schema_text_line(p, "    topic: ", source->topic);
    schema_text_line(p, "    format: ", weir_schema_format_words[source->format]);
    if (source->format == WEIR_SCHEMA_CSV) {
        size_t separator = 0;
        while (weir_schema_separator_words[separator] && weir_schema_separators[separator] != source->separator)
            separator++;
        WEIR_ASSERT(weir_schema_separator_words[separator]);
        schema_text_line(p, "    separator: ", weir_schema_separator_words[separator]);
        weir_buf_text(p->out, "    columns: ");
        schema_print_values(p, &source->columns);
        weir_buf_text(p->out, "\n");
    }
    schema_key_line(p, "    id: ", &source->id);
    weir_buf_text(p->out, "    time: {field: ");
    schema_print_field(p, source->time_field);
    weir_buf_printf(p->out, ", format: %s}\n    mutations:\n", weir_schema_time_words[source->time_format]);
    for (uint32_t i = 0; i < source->mutation_count; i++)
        schema_print_mutation(p, &source->mutations[i]);
    if (source->tombstone == WEIR_SCHEMA_NONE) return;
    weir_buf_text(p->out, "    tombstone: {delete_vertex: ");
    schema_print_text(p->out, weir_schema_slot_name(p->schema, WEIR_SCHEMA_VERTICES, source->tombstone));
    weir_buf_text(p->out, "}\n");
}

/* --- all of it ----------------------------------------------------------------------------------------------- */

void weir_schema_print_slot(const weir_schema *schema, weir_schema_section_id section, uint32_t id, weir_buf *out) {
    static void (*const print[WEIR_SCHEMA_SECTIONS])(const schema_printer *, uint32_t) = {
        schema_print_vertex, schema_print_relation, schema_print_aggregate,
        schema_print_label,  schema_print_task,     schema_print_source};
    const schema_printer p = {.schema = schema, .out = out};
    weir_buf_text(out, "  ");
    schema_print_text(out, weir_schema_slot_name(schema, section, id));
    weir_buf_text(out, ":\n");
    print[section](&p, id);
}

void weir_schema_print(const weir_schema *schema, weir_buf *out) {
    weir_buf_printf(out, "version: %u\n", WEIR_SCHEMA_LANGUAGE);
    schema_text_line(&(schema_printer){.schema = schema, .out = out}, "name: ", schema->name);
    for (uint32_t i = 0; i < WEIR_SCHEMA_SECTIONS; i++) {
        weir_schema_section_id section = (weir_schema_section_id)i;
        uint32_t count = schema->tables[section].count;
        weir_buf_printf(out, count ? "%s:\n" : "%s: {}\n", weir_schema_sections[section].key);
        for (uint32_t id = 0; id < count; id++)
            weir_schema_print_slot(schema, section, id, out);
    }
}
