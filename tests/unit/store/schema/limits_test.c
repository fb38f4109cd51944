/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c - every limit of schema.h at its value and one past it. */
#include <stdio.h>
#include <string.h>

#include <weir/store/conf/yaml.h>
#include <weir/store/schema/schema.h>

#include "weir_test.h"

#define HEAD "version: 1\nname: t\n"
#define GRAPH \
    HEAD "vertices: {a: {features: {n: {kind: number}, c: {kind: category}}}}\nrelations: {r: {from: a, to: a}}\n"
#define SOURCE GRAPH "sources: {s: {id: id, time: t, mutations: ["
#define END    "]}}\n"

/* Writes a schema with so many of something. */
typedef void (*writer)(weir_buf *text, unsigned count);

static weir_err parse(writer write, unsigned count) {
    weir_buf text = {0};
    weir_schema *schema = NULL;
    write(&text, count);
    assert_ok(weir_buf_err(&text));
    weir_err err = weir_schema_parse("t.yaml", text.bytes, text.length, &schema);
    weir_schema_free(schema);
    weir_buf_free(&text);
    return err;
}

static void check_limit(writer write, unsigned limit, const char *says) {
    assert_ok(parse(write, limit));
    assert_err(parse(write, limit + 1), WEIR_ECONFIG, says);
}

/* before, so many of middle, after; an item is before its number, the number, and what is behind it. */
static void sequence(weir_buf *text, const char *before, unsigned count, const char *item, const char *behind,
                     const char *after) {
    weir_buf_text(text, before);
    for (unsigned i = 0; i < count; i++) {
        weir_buf_text(text, item);
        weir_buf_u64(text, i);
        weir_buf_text(text, behind);
    }
    weir_buf_text(text, after);
}

static void filled(weir_buf *text, const char *before, unsigned length, const char *after) {
    weir_buf_text(text, before);
    for (unsigned i = 0; i < length; i++)
        weir_buf_text(text, "n");
    weir_buf_text(text, after);
}

/* --- texts --------------------------------------------------------------------------------------------------- */

static void write_name(weir_buf *text, unsigned length) {
    filled(text, "version: 1\nname: ", length, "\nvertices: {a: {}}\n");
}

static void name_bytes(void **state) {
    (void)state;
    check_limit(write_name, WEIR_SCHEMA_NAME_BYTES_MAX, "t.yaml:2:7: the name of a schema has 65 bytes; at most 64");
}

static void write_value(weir_buf *text, unsigned length) {
    filled(text, HEAD "vertices: {a: {features: {c: {kind: category, values: [", length, "]}}}}\n");
}

static void text_bytes(void **state) {
    (void)state;
    check_limit(write_value, WEIR_SCHEMA_TEXT_BYTES_MAX,
                "t.yaml:3:56: feature 'c' of vertex type 'a': 'values' has 256 "
                "bytes; at most 255 are allowed");
}

static void write_topic(weir_buf *text, unsigned length) {
    filled(text, GRAPH "sources: {s: {topic: ", length, ", id: id, time: t, mutations: [{put_vertex: a, key: k}]}}\n");
}

static void topic_bytes(void **state) {
    (void)state;
    check_limit(write_topic, WEIR_SCHEMA_TOPIC_BYTES_MAX, "'topic' has 250 bytes; at most 249 are allowed");
}

/* A name in a nested sentence is at its limit too: nothing is cut, nothing overruns. */
static void long_names_in_a_sentence(void **state) {
    (void)state;
    weir_buf text = {0};
    weir_schema *schema = NULL;
    filled(&text, HEAD "vertices: {", WEIR_SCHEMA_NAME_BYTES_MAX, ": {features: {");
    filled(&text, "", WEIR_SCHEMA_NAME_BYTES_MAX, ": {}}}}\n");
    assert_err(weir_schema_parse("t.yaml", text.bytes, text.length, &schema), WEIR_ECONFIG,
               "nnn' needs 'kind'; add it");
    weir_buf_free(&text);
}

/* --- counts of the graph ------------------------------------------------------------------------------------- */

static void write_vertices(weir_buf *text, unsigned count) {
    sequence(text, HEAD "vertices: {", count, "v", ": {}, ", "}\n");
}

static void vertices(void **state) {
    (void)state;
    check_limit(write_vertices, WEIR_SCHEMA_VERTICES_MAX, "'vertices' has 257 entries; a schema has at most 256");
}

static void write_relations(weir_buf *text, unsigned count) {
    sequence(text, HEAD "vertices: {a: {}}\nrelations: {", count, "r", ": {from: a, to: a}, ", "}\n");
}

static void relations(void **state) {
    (void)state;
    check_limit(write_relations, WEIR_SCHEMA_RELATIONS_MAX, "'relations' has 257 entries; a schema has at most 256");
}

static void write_features(weir_buf *text, unsigned count) {
    sequence(text, HEAD "vertices: {a: {features: {", count, "f", ": {kind: number}, ", "}}}\n");
}

static void features(void **state) {
    (void)state;
    check_limit(write_features, WEIR_SCHEMA_FEATURES_MAX, "vertex type 'a': 'features' has 257 entries; at most 256");
}

static void write_values(weir_buf *text, unsigned count) {
    sequence(text, HEAD "vertices: {a: {features: {c: {kind: category, values: [", count, "v", ", ", "]}}}}\n");
}

static void category_values(void **state) {
    (void)state;
    check_limit(write_values, WEIR_SCHEMA_VALUES_MAX, "'values' lists 4097; at most 4096 are allowed");
}

static void write_buckets(weir_buf *text, unsigned count) {
    weir_buf_printf(text, HEAD "vertices: {a: {features: {c: {kind: category, buckets: %u}}}}\n", count);
}

static void category_buckets(void **state) {
    (void)state;
    check_limit(write_buckets, WEIR_SCHEMA_CATEGORY_BUCKETS_MAX, "16777217");
}

/* --- counts of what is learnt -------------------------------------------------------------------------------- */

static void write_aggregates(weir_buf *text, unsigned count) {
    sequence(text, GRAPH "aggregates: {", count, "g",
             ": {vertex: a, relation: r, direction: in, function: count, window: 1h}, ", "}\n");
}

static void aggregates(void **state) {
    (void)state;
    check_limit(write_aggregates, WEIR_SCHEMA_AGGREGATES_MAX, "'aggregates' has 257 entries; a schema has at most 256");
}

static void write_window(weir_buf *text, unsigned buckets) {
    weir_buf_printf(text,
                    GRAPH "aggregates: {g: {vertex: a, relation: r, direction: in, function: count, window: %us, "
                          "resolution: 1s}}\n",
                    buckets);
}

static void window_buckets(void **state) {
    (void)state;
    check_limit(write_window, WEIR_SCHEMA_WINDOW_BUCKETS_MAX, "'window' is over 1024 times 'resolution'");
}

static void write_labels(weir_buf *text, unsigned count) {
    sequence(text, GRAPH "labels: {", count, "l", ": {vertex: a, values: [no, yes]}, ", "}\n");
}

static void labels(void **state) {
    (void)state;
    check_limit(write_labels, WEIR_SCHEMA_LABELS_MAX, "'labels' has 65 entries; a schema has at most 64");
}

static void write_label_values(weir_buf *text, unsigned count) {
    sequence(text, GRAPH "labels: {l: {vertex: a, values: [", count, "v", ", ", "]}}\n");
}

static void label_values(void **state) {
    (void)state;
    check_limit(write_label_values, WEIR_SCHEMA_LABEL_VALUES_MAX, "label 'l': 'values' lists 257; at most 256");
}

static void write_tasks(weir_buf *text, unsigned count) {
    sequence(text, GRAPH "tasks: {", count, "k", ": {kind: recommend, relation: r, horizon: 1d}, ", "}\n");
}

static void tasks(void **state) {
    (void)state;
    check_limit(write_tasks, WEIR_SCHEMA_TASKS_MAX, "'tasks' has 65 entries; a schema has at most 64");
}

/* The bound is inclusive: 36525 days and not a microsecond more. */
static void durations(void **state) {
    (void)state;
    static const char longest[] = HEAD "vertices: {a: {expire: 36525d}}\n";
    static const char longer[] = HEAD "vertices: {a: {expire: 3155760000000001us}}\n";
    weir_schema *schema = NULL;
    assert_ok(weir_schema_parse("t.yaml", longest, sizeof longest - 1, &schema));
    assert_int_equal(weir_schema_vertex_at(schema, 0)->expire_us, WEIR_SCHEMA_DURATION_US_MAX);
    weir_schema_free(schema);
    assert_err(weir_schema_parse("t.yaml", longer, sizeof longer - 1, &schema), WEIR_ECONFIG, "t.yaml:3:24: ");
}

/* --- counts of sources --------------------------------------------------------------------------------------- */

static void write_sources(weir_buf *text, unsigned count) {
    sequence(text, GRAPH "sources: {", count, "s", ": {id: id, time: t, mutations: [{put_vertex: a, key: k}]}, ",
             "}\n");
}

static void sources(void **state) {
    (void)state;
    check_limit(write_sources, WEIR_SCHEMA_SOURCES_MAX, "'sources' has 65 entries; a schema has at most 64");
}

static void write_mutations(weir_buf *text, unsigned count) {
    sequence(text, SOURCE, count, "{put_vertex: a, key: k", "}, ", END);
}

static void mutations(void **state) {
    (void)state;
    check_limit(write_mutations, WEIR_SCHEMA_MUTATIONS_MAX, "source 's': 'mutations' has 65 entries; at most 64");
}

/* `count` fields with id and t: conditions are the quickest way to name many. */
static void write_fields(weir_buf *text, unsigned count) {
    weir_buf_text(text, SOURCE);
    for (unsigned i = 0; i < count - 2; i++) {
        if (i % 8 == 0)
            weir_buf_text(text, i ? "]}, {put_vertex: a, key: id, when: [" : "{put_vertex: a, key: id, when: [");
        weir_buf_printf(text, "{has: f%u}, ", i);
    }
    weir_buf_text(text, "]}" END);
}

static void fields(void **state) {
    (void)state;
    check_limit(write_fields, WEIR_SCHEMA_FIELDS_MAX, "'has' is one field too many; a source reads at most 512");
}

static void write_path(weir_buf *text, unsigned depth) {
    weir_buf_text(text, SOURCE "{put_vertex: a, key: n");
    for (unsigned i = 1; i < depth; i++)
        weir_buf_text(text, ".n");
    weir_buf_text(text, "}" END);
}

static void path_names(void **state) {
    (void)state;
    check_limit(write_path, WEIR_SCHEMA_PATH_NAMES_MAX, "which is too deep; at most 8 names are allowed");
}

static void write_key(weir_buf *text, unsigned parts) {
    sequence(text, SOURCE "{put_vertex: a, key: [", parts, "k", ", ", "]}" END);
}

static void key_parts(void **state) {
    (void)state;
    check_limit(write_key, WEIR_SCHEMA_KEY_PARTS_MAX, "'key' has 5 parts; a key has 1 to 4");
}

static void write_conditions(weir_buf *text, unsigned count) {
    sequence(text, SOURCE "{put_vertex: a, key: k, when: [", count, "{has: f", "}, ", "]}" END);
}

static void conditions(void **state) {
    (void)state;
    check_limit(write_conditions, WEIR_SCHEMA_CONDITIONS_MAX, "'when' has 9 conditions; at most 8 are allowed");
}

static void write_compared(weir_buf *text, unsigned count) {
    sequence(text, SOURCE "{put_vertex: a, key: k, when: {field: f, is: [", count, "v", ", ", "]}}" END);
}

static void compared_values(void **state) {
    (void)state;
    check_limit(write_compared, WEIR_SCHEMA_VALUES_MAX, "'is' lists 4097; at most 4096 are allowed");
}

static void write_columns(weir_buf *text, unsigned count) {
    sequence(text, GRAPH "sources: {s: {format: csv, columns: [id, t, ", count - 2, "c", ", ",
             "], id: id, time: t, mutations: [{put_vertex: a, key: id}]}}\n");
}

static void columns(void **state) {
    (void)state;
    check_limit(write_columns, WEIR_SCHEMA_VALUES_MAX, "'columns' lists 4097; at most 4096 are allowed");
}

/* --- the whole ----------------------------------------------------------------------------------------------- */

/* Small as written, too large with its defaults spelled out: refused, or it could be stored and never read back. */
static void canonical_form_stays_readable(void **state) {
    (void)state;
    weir_buf text = {0};
    weir_schema *schema = NULL;
    sequence(&text, HEAD "vertices: {a: {features: {", 256, "f", ": {kind: number}, ", "}}}\nsources:\n");
    for (unsigned source = 0; source < 2; source++) {
        weir_buf_printf(&text, "  s%u:\n    id: id\n    time: t\n    mutations:\n", source);
        for (unsigned i = 0; i < WEIR_SCHEMA_MUTATIONS_MAX; i++)
            sequence(&text, "      - {put_vertex: a, key: id, features: [", 256, "f", ", ", "]}\n");
    }
    assert_true(text.length < WEIR_YAML_BYTES_MAX);
    assert_err(weir_schema_parse("t.yaml", text.bytes, text.length, &schema), WEIR_ECONFIG,
               "t.yaml: the schema is too large once its defaults are spelled out; shorten it: ");
    assert_null(schema);
    weir_buf_free(&text);
}

static void hostile_nesting(void **state) {
    (void)state;
    static const char *const opens[] = {"[", "{a: ", "- ", "? "};
    for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
        weir_buf text = {0};
        weir_schema *schema = NULL;
        for (unsigned depth = 0; depth < 10000; depth++)
            weir_buf_text(&text, opens[i]);
        assert_err(weir_schema_parse("t.yaml", text.bytes, text.length, &schema), WEIR_ECONFIG, "t.yaml:");
        assert_null(schema);
        weir_buf_free(&text);
    }
}

WEIR_TESTS(WEIR_CASE(name_bytes), WEIR_CASE(text_bytes), WEIR_CASE(topic_bytes), WEIR_CASE(long_names_in_a_sentence),
           WEIR_CASE(vertices), WEIR_CASE(relations), WEIR_CASE(features), WEIR_CASE(category_values),
           WEIR_CASE(category_buckets), WEIR_CASE(aggregates), WEIR_CASE(window_buckets), WEIR_CASE(labels),
           WEIR_CASE(label_values), WEIR_CASE(tasks), WEIR_CASE(durations), WEIR_CASE(sources), WEIR_CASE(mutations),
           WEIR_CASE(fields), WEIR_CASE(path_names), WEIR_CASE(key_parts), WEIR_CASE(conditions),
           WEIR_CASE(compared_values), WEIR_CASE(columns), WEIR_CASE(canonical_form_stays_readable),
           WEIR_CASE(hostile_nesting))
