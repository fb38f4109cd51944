/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - the canonical text: every default spelled out, one way to write each thing.
 *
 * The hash of a schema is the hash of this text, and stored data carries it: a change of a single byte here makes
 * every stored hash a stranger (tests/golden/schema holds what it looks like).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "schema_private.h"

/* Writers for one schema; all borrowed. */
typedef struct printer {
    const weir_schema *schema;
    weir_buf *out;
    const weir_schema_source *source; /* inside one */
} printer;

/* --- scalars ------------------------------------------------------------------------------------------------- */

/* What some YAML reader takes for a truth value or for nothing. */
static bool is_reserved(const char *text) {
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0) return true;
    return false;
}

static bool is_plain(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";
    return strspn(text, letters) > 0 && text[strspn(text, more)] == 0 && !is_reserved(text);
}

void weir_schema_print_text(weir_buf *out, const char *text) {
    if (is_plain(text)) {
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
    snprintf(buffer, WEIR_SCHEMA_DURATION_BYTES, "%" PRId64 "%s", us / units[i].us, units[i].unit);
    return buffer;
}

/* "KEY" and a text; KEY carries its indent and colon. */
static void text_line(const printer *p, const char *key, const char *text) {
    weir_buf_text(p->out, key);
    weir_schema_print_text(p->out, text);
    weir_buf_text(p->out, "\n");
}

static void duration_line(const printer *p, const char *key, int64_t us, const char *zero_word) {
    char text[WEIR_SCHEMA_DURATION_BYTES];
    weir_buf_printf(p->out, "%s%s\n", key, weir_schema_duration_text(us, zero_word, text));
}

/* The key is younger than the hashes: where it says nothing, it is not written. */
static void history_line(const printer *p, int64_t history_us) {
    if (history_us) duration_line(p, "    history: ", history_us, "all");
}

static void print_values(const printer *p, const weir_schema_values *values) {
    weir_buf_text(p->out, "[");
    for (uint32_t i = 0; i < values->count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        weir_schema_print_text(p->out, values->texts[i]);
    }
    weir_buf_text(p->out, "]");
}

/* --- graph --------------------------------------------------------------------------------------------------- */

static void print_feature(const printer *p, const weir_schema_feature *feature) {
    weir_buf_text(p->out, "      ");
    weir_schema_print_text(p->out, feature->name);
    weir_buf_printf(p->out, ": {kind: %s", weir_schema_kind_words[feature->kind]);
    if (feature->kind == WEIR_SCHEMA_NUMBER)
        weir_buf_printf(p->out, ", normalise: %s", weir_schema_normalise_words[feature->normalise]);
    if (feature->kind == WEIR_SCHEMA_CATEGORY && feature->buckets)
        weir_buf_printf(p->out, ", buckets: %" PRIu32, feature->buckets);
    if (feature->kind == WEIR_SCHEMA_CATEGORY && !feature->buckets) {
        weir_buf_text(p->out, ", values: ");
        print_values(p, &feature->values);
    }
    weir_buf_text(p->out, "}\n");
}

static void print_features(const printer *p, const weir_schema_feature *features, uint32_t count) {
    weir_buf_text(p->out, count ? "    features:\n" : "    features: {}\n");
    for (uint32_t i = 0; i < count; i++)
        print_feature(p, &features[i]);
}

static void print_vertex(const printer *p, uint32_t id) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(p->schema, id);
    text_line(p, "    key: ", weir_schema_key_words[vertex->key]);
    duration_line(p, "    expire: ", vertex->expire_us, "never");
    history_line(p, vertex->history_us);
    print_features(p, vertex->features, vertex->feature_count);
}

static void print_relation(const printer *p, uint32_t id) {
    const weir_schema_relation *relation = weir_schema_relation_at(p->schema, id);
    text_line(p, "    from: ", weir_schema_vertex_at(p->schema, relation->from)->name);
    text_line(p, "    to: ", weir_schema_vertex_at(p->schema, relation->to)->name);
    duration_line(p, "    expire: ", relation->expire_us, "never");
    history_line(p, relation->history_us);
    print_features(p, relation->features, relation->feature_count);
}

/* --- learning ------------------------------------------------------------------------------------------------ */

static void print_aggregate(const printer *p, uint32_t id) {
    const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(p->schema, id);
    const weir_schema_relation *relation = weir_schema_relation_at(p->schema, aggregate->relation);
    text_line(p, "    vertex: ", weir_schema_vertex_at(p->schema, aggregate->vertex)->name);
    text_line(p, "    relation: ", relation->name);
    text_line(p, "    direction: ", weir_schema_direction_words[aggregate->direction]);
    text_line(p, "    function: ", weir_schema_function_words[aggregate->function]);
    if (aggregate->of != WEIR_SCHEMA_NONE) text_line(p, "    of: ", relation->features[aggregate->of].name);
    duration_line(p, "    window: ", aggregate->window_us, NULL);
    duration_line(p, "    resolution: ", aggregate->resolution_us, "exact");
    text_line(p, "    normalise: ", weir_schema_normalise_words[aggregate->normalise]);
}

static void print_label(const printer *p, uint32_t id) {
    const weir_schema_label *label = weir_schema_label_at(p->schema, id);
    if (label->on_relation) {
        text_line(p, "    relation: ", weir_schema_relation_at(p->schema, label->target)->name);
    } else {
        text_line(p, "    vertex: ", weir_schema_vertex_at(p->schema, label->target)->name);
    }
    weir_buf_text(p->out, "    values: ");
    print_values(p, &label->values);
    weir_buf_text(p->out, "\n");
    if (label->absent != WEIR_SCHEMA_NONE) text_line(p, "    absent: ", label->values.texts[label->absent]);
    duration_line(p, "    lag: ", label->lag_us, NULL);
}

static void print_classify(const printer *p, const weir_schema_task *task) {
    const weir_schema_label *label = weir_schema_label_at(p->schema, task->label);
    text_line(p, "    label: ", label->name);
    weir_buf_text(p->out, "    positive: [");
    for (uint32_t i = 0; i < task->positive_count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        weir_schema_print_text(p->out, label->values.texts[task->positive[i]]);
    }
    weir_buf_text(p->out, "]\n");
    text_line(p, "    at: ", weir_schema_moment_words[task->moment]);
    if (task->moment == WEIR_SCHEMA_AT_LABEL) return;
    duration_line(p, "    maturity: ", task->maturity_us, NULL);
    duration_line(p, "    horizon: ", task->horizon_us, NULL);
}

static void print_task(const printer *p, uint32_t id) {
    const weir_schema_task *task = weir_schema_task_at(p->schema, id);
    text_line(p, "    kind: ", weir_schema_task_words[task->kind]);
    if (task->kind == WEIR_SCHEMA_CLASSIFY) {
        print_classify(p, task);
        return;
    }
    text_line(p, "    relation: ", weir_schema_relation_at(p->schema, task->relation)->name);
    weir_buf_printf(p->out, "    repeat: %s\n", task->repeat ? "true" : "false");
    duration_line(p, "    horizon: ", task->horizon_us, NULL);
}

/* --- sources ------------------------------------------------------------------------------------------------- */

static void print_field(const printer *p, uint32_t field) {
    weir_schema_print_text(p->out, p->source->fields[field].path);
}

static void key_line(const printer *p, const char *word, const weir_schema_key *key) {
    if (key->count == 0) return;
    weir_buf_text(p->out, word);
    if (key->count > 1) weir_buf_text(p->out, "[");
    for (uint32_t i = 0; i < key->count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        print_field(p, key->fields[i]);
    }
    weir_buf_text(p->out, key->count > 1 ? "]\n" : "\n");
}

static void print_condition(const printer *p, const weir_schema_condition *condition) {
    const char *word = weir_schema_test_words[condition->test];
    if (condition->test == WEIR_SCHEMA_HAS || condition->test == WEIR_SCHEMA_LACKS) {
        weir_buf_printf(p->out, "{%s: ", word);
        print_field(p, condition->field);
    } else {
        weir_buf_text(p->out, "{field: ");
        print_field(p, condition->field);
        weir_buf_printf(p->out, ", %s: ", word);
        print_values(p, &condition->values);
    }
    weir_buf_text(p->out, "}");
}

static void print_conditions(const printer *p, const weir_schema_mutation *mutation) {
    weir_buf_text(p->out, "        when: [");
    for (uint32_t i = 0; i < mutation->condition_count; i++) {
        if (i > 0) weir_buf_text(p->out, ", ");
        print_condition(p, &mutation->conditions[i]);
    }
    weir_buf_text(p->out, "]\n");
}

static void print_constant(const printer *p, const weir_schema_feature *feature,
                           const weir_schema_assignment *assignment) {
    if (feature->kind == WEIR_SCHEMA_NUMBER) {
        weir_json json = weir_json_begin(p->out);
        weir_json_f64(&json, assignment->number);
    } else {
        weir_schema_print_text(p->out, assignment->text);
    }
}

static void print_assignment(const printer *p, const weir_schema_feature *feature,
                             const weir_schema_assignment *assignment) {
    weir_buf_text(p->out, "          ");
    weir_schema_print_text(p->out, feature->name);
    weir_buf_text(p->out, assignment->presence == WEIR_SCHEMA_CONSTANT ? ": {constant: " : ": {field: ");
    if (assignment->presence != WEIR_SCHEMA_CONSTANT) print_field(p, assignment->field);
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
        print_constant(p, feature, assignment);
        break;
    case WEIR_SCHEMA_CONSTANT:
        print_constant(p, feature, assignment);
        break;
    }
    weir_buf_text(p->out, "}\n");
}

static void print_assignments(const printer *p, const weir_schema_mutation *mutation) {
    const weir_schema_feature *features = mutation->verb == WEIR_SCHEMA_PUT_VERTEX
                                              ? weir_schema_vertex_at(p->schema, mutation->subject)->features
                                              : weir_schema_relation_at(p->schema, mutation->subject)->features;
    weir_buf_text(p->out, mutation->assignment_count ? "        features:\n" : "        features: {}\n");
    for (uint32_t i = 0; i < mutation->assignment_count; i++)
        print_assignment(p, &features[mutation->assignments[i].feature], &mutation->assignments[i]);
}

static void print_label_value(const printer *p, const weir_schema_assignment *value) {
    bool constant = value->presence == WEIR_SCHEMA_CONSTANT;
    weir_buf_text(p->out, constant ? "        value: {constant: " : "        value: ");
    if (constant) {
        weir_schema_print_text(p->out, value->text);
    } else {
        print_field(p, value->field);
    }
    weir_buf_text(p->out, constant ? "}\n" : "\n");
}

static const char *subject_name(const printer *p, const weir_schema_mutation *mutation) {
    static const weir_schema_section_id sections[] = {
        [WEIR_SCHEMA_PUT_VERTEX] = WEIR_SCHEMA_VERTICES,   [WEIR_SCHEMA_PUT_EDGE] = WEIR_SCHEMA_RELATIONS,
        [WEIR_SCHEMA_PUT_LABEL] = WEIR_SCHEMA_LABELS,      [WEIR_SCHEMA_DELETE_VERTEX] = WEIR_SCHEMA_VERTICES,
        [WEIR_SCHEMA_DELETE_EDGE] = WEIR_SCHEMA_RELATIONS,
    };
    return weir_schema_slot_name(p->schema, sections[mutation->verb], mutation->subject);
}

/* Keys, value, conditions, features: the order in which mutation.c numbers their fields. */
static void print_mutation(const printer *p, const weir_schema_mutation *mutation) {
    weir_buf_printf(p->out, "      - %s: ", weir_schema_verb_words[mutation->verb]);
    text_line(p, "", subject_name(p, mutation));
    key_line(p, "        key: ", &mutation->key);
    key_line(p, "        from: ", &mutation->from);
    key_line(p, "        to: ", &mutation->to);
    key_line(p, "        event: ", &mutation->event);
    if (mutation->verb == WEIR_SCHEMA_PUT_LABEL) print_label_value(p, &mutation->value);
    print_conditions(p, mutation);
    if (mutation->verb == WEIR_SCHEMA_PUT_VERTEX || mutation->verb == WEIR_SCHEMA_PUT_EDGE)
        print_assignments(p, mutation);
}

static const char *separator_word(char separator) {
    size_t i = 0;
    while (weir_schema_separators[i] != separator)
        i++;
    return weir_schema_separator_words[i];
}

static void print_source(const printer *outer, uint32_t id) {
    const weir_schema_source *source = weir_schema_source_at(outer->schema, id);
    const printer inner = {.schema = outer->schema, .out = outer->out, .source = source}, *p = &inner;
    text_line(p, "    topic: ", source->topic);
    text_line(p, "    format: ", weir_schema_format_words[source->format]);
    if (source->format == WEIR_SCHEMA_CSV) {
        text_line(p, "    separator: ", separator_word(source->separator));
        weir_buf_text(p->out, "    columns: ");
        print_values(p, &source->columns);
        weir_buf_text(p->out, "\n");
    }
    key_line(p, "    id: ", &source->id);
    weir_buf_text(p->out, "    time: {field: ");
    print_field(p, source->time_field);
    weir_buf_printf(p->out, ", format: %s}\n    mutations:\n", weir_schema_time_words[source->time_format]);
    for (uint32_t i = 0; i < source->mutation_count; i++)
        print_mutation(p, &source->mutations[i]);
    if (source->tombstone == WEIR_SCHEMA_NONE) return;
    weir_buf_text(p->out, "    tombstone: {delete_vertex: ");
    weir_schema_print_text(p->out, weir_schema_slot_name(p->schema, WEIR_SCHEMA_VERTICES, source->tombstone));
    weir_buf_text(p->out, "}\n");
}

/* --- all of it ----------------------------------------------------------------------------------------------- */

void weir_schema_print_slot(const weir_schema *schema, weir_schema_section_id section, uint32_t id, weir_buf *out) {
    static void (*const print[WEIR_SCHEMA_SECTIONS])(const printer *, uint32_t) = {
        print_vertex, print_relation, print_aggregate, print_label, print_task, print_source};
    const printer p = {.schema = schema, .out = out};
    weir_buf_text(out, "  ");
    weir_schema_print_text(out, weir_schema_slot_name(schema, section, id));
    weir_buf_text(out, ":\n");
    print[section](&p, id);
}

void weir_schema_print(const weir_schema *schema, weir_buf *out) {
    weir_buf_printf(out, "version: %u\n", WEIR_SCHEMA_LANGUAGE);
    text_line(&(printer){.schema = schema, .out = out}, "name: ", schema->name);
    for (uint32_t i = 0; i < WEIR_SCHEMA_SECTIONS; i++) {
        weir_schema_section_id section = (weir_schema_section_id)i;
        uint32_t count = schema->tables[section].count;
        weir_buf_printf(out, count ? "%s:\n" : "%s: {}\n", weir_schema_sections[section].key);
        for (uint32_t id = 0; id < count; id++)
            weir_schema_print_slot(schema, section, id, out);
    }
}
