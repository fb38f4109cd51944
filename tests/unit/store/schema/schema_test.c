/* SPDX-License-Identifier: Apache-2.0 */
/* schema_test.c - what a valid schema says through its accessors, its canonical text and its hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/schema/schema.h>

#include "weir_test.h"

static const char *source_path(const char *relative, char *buffer, size_t size) {
    const char *root = getenv("WEIR_SOURCE_DIR");
    snprintf(buffer, size, "%s/%s", root ? root : ".", relative);
    return buffer;
}

static weir_schema *load(const char *relative) {
    char path[4096];
    weir_schema *schema = NULL;
    assert_ok(weir_schema_load(source_path(relative, path, sizeof path), &schema));
    return schema;
}

static weir_schema *parse(const char *text) {
    weir_schema *schema = NULL;
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    return schema;
}

/* --- golden -------------------------------------------------------------------------------------------------- */

/* Stored data and models carry these hashes: a change here makes strangers of them all. */
static const struct {
    const char *input, *canonical;
    uint64_t hash;
} goldens[] = {
    {"store/schema/schemas/payments.yaml", "tests/golden/schema/payments.canonical.yaml", 0x5895f89aaaadd00f},
    {"store/schema/schemas/clicks.yaml", "tests/golden/schema/clicks.canonical.yaml", 0x7cdfd54a14387773},
    {"tests/golden/schema/edges.yaml", "tests/golden/schema/edges.canonical.yaml", 0x4df31ed510566add},
    {"tests/golden/schema/labelled.yaml", "tests/golden/schema/labelled.canonical.yaml", 0x4ed0b4e11dedd806},
};

static void golden_canonical_texts_and_hashes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        char path[4096], *expected = NULL;
        size_t length = 0;
        weir_schema *schema = load(goldens[i].input);
        weir_buf text = {0};
        weir_schema_print(schema, &text);
        assert_ok(weir_buf_err(&text));
        assert_ok(weir_file_load(source_path(goldens[i].canonical, path, sizeof path), 1 << 20, &expected, &length));
        assert_string_equal(text.bytes, expected);
        assert_int_equal(text.length, length);
        assert_int_equal(weir_schema_hash(schema), weir_xxh3(expected, length, 0));
        assert_int_equal(weir_schema_hash(schema), goldens[i].hash);
        weir_free(expected);
        weir_buf_free(&text);
        weir_schema_free(schema);
    }
}

static void h1_canonical_text_is_a_fixed_point(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        weir_schema *first = load(goldens[i].input), *second = load(goldens[i].canonical);
        weir_buf a = {0}, b = {0};
        weir_schema_print(first, &a);
        weir_schema_print(second, &b);
        assert_string_equal(a.bytes, b.bytes);
        assert_int_equal(weir_schema_hash(first), weir_schema_hash(second));
        assert_ok(weir_schema_compatible(first, second));
        weir_buf_free(&a);
        weir_buf_free(&b);
        weir_schema_free(first);
        weir_schema_free(second);
    }
}

static const char plain[] = "version: 1\nname: t\nvertices: {a: {}, b: {}}\n"
                            "relations: {r: {from: a, to: b, features: {n: {kind: number}}}}\n";

static uint64_t hash_of(const char *text) {
    weir_schema *schema = parse(text);
    uint64_t hash = weir_schema_hash(schema);
    weir_schema_free(schema);
    return hash;
}

static void h2_hash_ignores_what_has_no_meaning(void **state) {
    (void)state;
    static const char *const same[] = {
        "# a comment\nversion: 1 # another\nname: t\nvertices: {a: {}, b: {}}\n"
        "relations: {r: {from: a, to: b, features: {n: {kind: number}}}}\n",
        "relations:\n  r:\n    features:\n      n:\n        kind: number\n    to: b\n    from: a\n"
        "vertices:\n  a:\n  b: {}\n'name': \"t\"\nversion: 1\n",
        "version: 1\nname: t\nvertices: {a: {key: text, expire: never}, b: {features: {}}}\n"
        "relations: {r: {to: b, from: a, features: {n: {normalise: standard, kind: number}}}}\nlabels:\nsources: {}\n",
        "version: 1\nname: t\nvertices: {a: {history: all}, b: {}}\n"
        "relations: {r: {from: a, to: b, history: all, features: {n: {kind: number}}}}\n",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_int_equal(hash_of(same[i]), hash_of(plain));
}

static void h2_hash_sees_what_has(void **state) {
    (void)state;
    static const char *const other[] = {
        "version: 1\nname: u\nvertices: {a: {}, b: {}}\nrelations: {r: {from: a, to: b, features: {n: {kind: "
        "number}}}}\n",
        "version: 1\nname: t\nvertices: {b: {}, a: {}}\nrelations: {r: {from: a, to: b, features: {n: {kind: "
        "number}}}}\n",
        "version: 1\nname: t\nvertices: {a: {}, b: {}}\nrelations: {r: {from: b, to: a, features: {n: {kind: "
        "number}}}}\n",
        "version: 1\nname: t\nvertices: {a: {}, b: {}}\nrelations: {r: {from: a, to: b, features: {m: {kind: "
        "number}}}}\n",
        "version: 1\nname: t\nvertices: {a: {}, b: {}}\nrelations: {r: {from: a, to: b, features: {n: {kind: "
        "time}}}}\n",
        "version: 1\nname: t\nvertices: {a: {history: 9d}, b: {}}\nrelations: {r: {from: a, to: b, features: {n: "
        "{kind: "
        "number}}}}\n",
        "version: 1\nname: t\nvertices: {a: {}, b: {}}\nrelations: {r: {from: a, to: b, history: 9d, features: {n: "
        "{kind: number}}}}\n",
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        assert_int_not_equal(hash_of(other[i]), hash_of(plain));
}

/* Written only where it says something: stored hashes are older than the key. */
static void h1_a_history_is_printed_where_it_is_not_all(void **state) {
    (void)state;
    static const struct {
        const char *vertex, *relation, *lines[2];
        int64_t vertex_us, relation_us;
    } rows[] = {
        {"", "", {NULL, NULL}, 0, 0},
        {"history: all", ", history: all", {NULL, NULL}, 0, 0},
        {"history: 48h",
         "",
         {"    expire: never\n    history: 2d\n    features: {}\nrelations", NULL},
         172800000000,
         0},
        {"",
         ", history: 90m, expire: 1d",
         {NULL, "    to: a\n    expire: 1d\n    history: 90m\n    features"},
         0,
         5400000000},
        {"history: 1us",
         ", history: 36525d",
         {"    history: 1us\n", "    expire: never\n    history: 36525d\n"},
         1,
         WEIR_SCHEMA_DURATION_US_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        weir_buf printed = {0}, again = {0};
        snprintf(text, sizeof text, "version: 1\nname: t\nvertices: {a: {%s}}\nrelations: {r: {from: a, to: a%s}}\n",
                 rows[i].vertex, rows[i].relation);
        weir_schema *schema = parse(text);
        assert_int_equal(weir_schema_vertex_at(schema, 0)->history_us, rows[i].vertex_us);
        assert_int_equal(weir_schema_relation_at(schema, 0)->history_us, rows[i].relation_us);
        weir_schema_print(schema, &printed);
        weir_schema *second = parse(printed.bytes);
        weir_schema_print(second, &again);
        assert_string_equal(printed.bytes, again.bytes);
        for (size_t line = 0; line < 2; line++)
            if (rows[i].lines[line]) assert_non_null(strstr(printed.bytes, rows[i].lines[line]));
        if (!rows[i].vertex_us && !rows[i].relation_us) assert_null(strstr(printed.bytes, "history"));
        weir_schema_free(second);
        weir_schema_free(schema);
        weir_buf_free(&printed);
        weir_buf_free(&again);
    }
}

/* Nor were `label` and `is` of an aggregate there before the hashes. The values stand in the label's order. */
static void h1_a_label_is_printed_where_there_is_one(void **state) {
    (void)state;
    static const struct {
        const char *written, *printed;
        uint32_t count, is[2];
    } rows[] = {{"", NULL, 0, {0}},
                {", label: l, is: bad", "    label: l\n    is: [bad]\n    window: 1h\n", 1, {1}},
                {", is: [worse, bad], label: l", "    label: l\n    is: [bad, worse]\n    window: 1h\n", 2, {1, 2}},
                {", label: l, is: [worse, worse]", "    label: l\n    is: [worse]\n    window: 1h\n", 1, {2}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        weir_buf printed = {0}, again = {0};
        snprintf(text, sizeof text,
                 "version: 1\nname: t\nvertices: {a: {}, b: {}}\nrelations: {r: {from: a, to: b}}\n"
                 "aggregates: {g: {vertex: b, relation: r, function: count, window: 1h%s}}\n"
                 "labels: {l: {vertex: a, values: [good, bad, worse]}}\n",
                 rows[i].written);
        weir_schema *schema = parse(text);
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, 0);
        assert_int_equal(aggregate->label, rows[i].printed ? 0 : WEIR_SCHEMA_NONE);
        assert_int_equal(aggregate->is_count, rows[i].count);
        for (uint32_t is = 0; is < rows[i].count; is++)
            assert_int_equal(aggregate->is[is], rows[i].is[is]);
        weir_schema_print(schema, &printed);
        weir_schema *second = parse(printed.bytes);
        weir_schema_print(second, &again);
        assert_string_equal(printed.bytes, again.bytes);
        assert_int_equal(weir_schema_hash(schema), weir_schema_hash(second));
        if (rows[i].printed) assert_non_null(strstr(printed.bytes, rows[i].printed));
        if (!rows[i].printed) assert_null(strstr(printed.bytes, "    is:"));
        weir_schema_free(second);
        weir_schema_free(schema);
        weir_buf_free(&printed);
        weir_buf_free(&again);
    }
}

/* What is said of an end, or through others, is printed where it is said: in full, so that it needs no types. */
static void h1_a_walk_is_printed_where_there_is_one(void **state) {
    (void)state;
    static const struct {
        const char *written, *printed;
    } rows[] = {
        {"relation: r", "    vertex: a\n    relation: r\n"},
        {"end: r, relation: r", "    vertex: a\n    end: r\n    relation: r\n    direction: in\n"},
        {"end: r, through: [r], relation: r", "    end: r\n    through: [{relation: r, direction: in}]\n    crowd: "
                                              "16\n    relation: r\n    direction: out\n"},
        {"end: r, through: [r], ordered: true, relation: r", "    crowd: 16\n    ordered: true\n    relation: r\n"},
        {"end: r, through: [r], ordered: true, share: {of: x, least: 0.1, most: 1}, relation: r",
         "    ordered: true\n    share: {of: x, least: 0.1, most: 1}\n    relation: r\n"},
        {"end: r, through: [r], ordered: true, share: {most: 2, of: x, least: 0.1}, relation: r",
         "    share: {of: x, least: 0.1, most: 2}\n"},
        {"end: r, through: [r], ordered: true, share: {most: 2, of: y, least: 0.1}, relation: r",
         "    share: {of: \"y\", least: 0.1, most: 2}\n"},
        {"end: s, through: [{relation: s, direction: in}, r], crowd: 7, relation: r",
         "    end: s\n    through: [{relation: s, direction: in}, {relation: r, direction: out}]\n    crowd: 7\n"},
        {"between: [s, r], through: [{direction: out, relation: s}], relation: r",
         "    between: [s, r]\n    through: [{relation: s, direction: out}]\n    crowd: 16\n    relation: r\n    "
         "function"},
    };
    uint64_t hashes[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        weir_buf printed = {0}, again = {0};
        snprintf(
            text, sizeof text,
            "version: 1\nname: t\nvertices: {a: {}, b: {}}\n"
            "relations: {r: {from: a, to: b, features: {x: {kind: number}, y: {kind: number}}}, s: {from: a, to: a}}\n"
            "aggregates: {g: {vertex: a, function: count, window: 1h, %s}}\n",
            rows[i].written);
        weir_schema *schema = parse(text);
        weir_schema_print(schema, &printed);
        weir_schema *second = parse(printed.bytes);
        weir_schema_print(second, &again);
        assert_string_equal(printed.bytes, again.bytes);
        hashes[i] = weir_schema_hash(schema);
        assert_int_equal(hashes[i], weir_schema_hash(second));
        for (size_t before = 0; before < i; before++)
            assert_true(hashes[before] != hashes[i]);
        if (!strstr(printed.bytes, rows[i].printed)) fail_msg("%s", printed.bytes);
        weir_schema_free(second);
        weir_schema_free(schema);
        weir_buf_free(&printed);
        weir_buf_free(&again);
    }
}

/* --- accessors ----------------------------------------------------------------------------------------------- */

static void h3_ids_are_places_in_the_text(void **state) {
    (void)state;
    weir_schema *schema = load("tests/golden/schema/edges.yaml");
    assert_string_equal(weir_schema_name(schema), "edges");
    assert_int_equal(weir_schema_vertex_count(schema), 3);
    assert_int_equal(weir_schema_relation_count(schema), 2);
    assert_int_equal(weir_schema_aggregate_count(schema), 3);
    assert_int_equal(weir_schema_label_count(schema), 2);
    assert_int_equal(weir_schema_task_count(schema), 3);
    assert_int_equal(weir_schema_source_count(schema), 3);
    assert_int_equal(weir_schema_vertex_find(schema, "account"), 0);
    assert_int_equal(weir_schema_vertex_find(schema, "merchant"), 1);
    assert_int_equal(weir_schema_vertex_find(schema, "place"), 2);
    assert_int_equal(weir_schema_vertex_find(schema, "paid"), WEIR_SCHEMA_NONE);
    assert_int_equal(weir_schema_relation_find(schema, "refers"), 1);
    assert_int_equal(weir_schema_aggregate_find(schema, "payers"), 2);
    assert_int_equal(weir_schema_label_find(schema, "flag"), 1);
    assert_int_equal(weir_schema_task_find(schema, "next"), 2);
    assert_int_equal(weir_schema_source_find(schema, "disputes"), 2);
    assert_int_equal(weir_schema_source_find(schema, ""), WEIR_SCHEMA_NONE);
    const weir_schema_vertex *account = weir_schema_vertex_at(schema, 0);
    assert_int_equal(weir_schema_feature_find(account->features, account->feature_count, "tier"), 4);
    assert_int_equal(weir_schema_feature_find(account->features, account->feature_count, "ties"), WEIR_SCHEMA_NONE);
    weir_schema_free(schema);
}

static void graph(void **state) {
    (void)state;
    weir_schema *schema = load("tests/golden/schema/edges.yaml");
    const weir_schema_vertex *account = weir_schema_vertex_at(schema, 0), *merchant = weir_schema_vertex_at(schema, 1);
    assert_int_equal(account->key, WEIR_SCHEMA_KEY_TEXT);
    assert_int_equal(account->expire_us, 0);
    assert_int_equal(account->feature_count, 6);
    assert_int_equal(account->features[0].kind, WEIR_SCHEMA_TIME);
    assert_int_equal(account->features[1].normalise, WEIR_SCHEMA_NORMALISE_STANDARD);
    assert_int_equal(account->features[2].normalise, WEIR_SCHEMA_NORMALISE_MIN_MAX);
    assert_int_equal(account->features[3].normalise, WEIR_SCHEMA_NORMALISE_NONE);
    assert_int_equal(account->features[4].values.count, 2);
    assert_int_equal(account->features[5].buckets, 1024);
    assert_int_equal(merchant->key, WEIR_SCHEMA_KEY_INTEGER);
    assert_int_equal(merchant->expire_us, 48 * 3600ll * 1000000);
    const weir_schema_relation *paid = weir_schema_relation_at(schema, 0);
    assert_int_equal(paid->from, 0);
    assert_int_equal(paid->to, 1);
    assert_int_equal(paid->expire_us, 1095ll * 86400 * 1000000);
    assert_string_equal(paid->features[1].name, "mcc");
    weir_schema_free(schema);
}

static void aggregates_and_tasks(void **state) {
    (void)state;
    weir_schema *schema = load("tests/golden/schema/edges.yaml");
    const weir_schema_aggregate *codes = weir_schema_aggregate_at(schema, 0);
    assert_int_equal(codes->vertex, 1);
    assert_int_equal(codes->direction, WEIR_SCHEMA_IN);
    assert_int_equal(codes->function, WEIR_SCHEMA_DISTINCT);
    assert_int_equal(codes->of, 1);
    assert_int_equal(codes->window_us, 90000000);
    assert_int_equal(codes->resolution_us, 1500000);
    assert_int_equal(weir_schema_aggregate_at(schema, 1)->of, WEIR_SCHEMA_NONE);
    const weir_schema_label *dispute = weir_schema_label_at(schema, 0), *flag = weir_schema_label_at(schema, 1);
    assert_true(dispute->on_relation);
    assert_int_equal(dispute->absent, 0);
    assert_false(flag->on_relation);
    assert_int_equal(flag->absent, WEIR_SCHEMA_NONE);
    assert_int_equal(flag->lag_us, 0);
    const weir_schema_task *bad = weir_schema_task_at(schema, 0), *which = weir_schema_task_at(schema, 1);
    assert_int_equal(bad->positive_count, 2);
    assert_int_equal(bad->positive[0], 1);
    assert_int_equal(bad->positive[1], 2);
    assert_int_equal(bad->horizon_us, 20ll * 86400 * 1000000);
    assert_int_equal(bad->maturity_us, 30ll * 86400 * 1000000);
    assert_int_equal(which->moment, WEIR_SCHEMA_AT_LABEL);
    assert_int_equal(which->positive_count, 0);
    assert_int_equal(weir_schema_task_at(schema, 2)->kind, WEIR_SCHEMA_RECOMMEND);
    assert_int_equal(weir_schema_task_at(schema, 2)->relation, 0);
    assert_false(weir_schema_task_at(schema, 2)->repeat);
    weir_schema_free(schema);
}

static void fields_and_keys(void **state) {
    (void)state;
    weir_schema *schema = load("tests/golden/schema/edges.yaml");
    const weir_schema_source *csv = weir_schema_source_at(schema, 0), *json = weir_schema_source_at(schema, 1);
    assert_string_equal(csv->topic, "payments");
    assert_int_equal(csv->separator, ';');
    assert_int_equal(csv->columns.count, 6);
    assert_int_equal(csv->time_format, WEIR_SCHEMA_MS);
    assert_int_equal(csv->fields[csv->time_field].column, 0);
    assert_int_equal(csv->fields[csv->id.fields[0]].column, 1);
    assert_int_equal(csv->fields[csv->mutations[0].from.fields[0]].name_count, 1);
    assert_string_equal(csv->fields[csv->mutations[0].from.fields[0]].names[0], "account.id");
    assert_string_equal(json->topic, "acc.ounts_v2");
    assert_int_equal(json->id.count, 2);
    assert_string_equal(json->fields[json->id.fields[1]].names[0], "meta");
    assert_string_equal(json->fields[json->id.fields[1]].names[1], "part");
    assert_int_equal(json->fields[0].column, WEIR_SCHEMA_NONE);
    const weir_schema_mutation *deletion = &json->mutations[0];
    assert_int_equal(deletion->verb, WEIR_SCHEMA_DELETE_VERTEX);
    assert_int_equal(deletion->conditions[1].test, WEIR_SCHEMA_LACKS);
    assert_int_equal(json->fields[deletion->conditions[1].field].name_count, 1);
    assert_string_equal(json->fields[deletion->conditions[1].field].names[0], "keep.me");
    assert_int_equal(deletion->key.fields[0], json->mutations[1].key.fields[1]); // one field, one number
    weir_schema_free(schema);
}

static void mutations(void **state) {
    (void)state;
    weir_schema *schema = load("tests/golden/schema/edges.yaml");
    const weir_schema_source *json = weir_schema_source_at(schema, 1);
    const weir_schema_mutation *put = &json->mutations[1], *label = &json->mutations[2];
    assert_int_equal(put->conditions[0].test, WEIR_SCHEMA_IS_NOT);
    assert_int_equal(weir_schema_values_find(&put->conditions[0].values, "null", 4), 1);
    assert_int_equal(put->assignment_count, 6);
    for (uint32_t i = 0; i < put->assignment_count; i++)
        assert_int_equal(put->assignments[i].feature, i);
    assert_int_equal(put->assignments[0].time_format, WEIR_SCHEMA_S);
    assert_int_equal(put->assignments[1].presence, WEIR_SCHEMA_REQUIRED);
    assert_int_equal(put->assignments[2].presence, WEIR_SCHEMA_OPTIONAL);
    assert_int_equal(put->assignments[3].presence, WEIR_SCHEMA_CONSTANT);
    assert_int_equal(put->assignments[3].field, WEIR_SCHEMA_NONE);
    assert_true(put->assignments[3].number == 0.0);
    assert_int_equal(put->assignments[4].presence, WEIR_SCHEMA_DEFAULT);
    assert_int_equal(put->assignments[4].slot, 1);
    const weir_schema_feature *branch = &weir_schema_vertex_at(schema, 0)->features[5];
    assert_int_equal(put->assignments[5].slot, weir_schema_category(branch, "K\xc3\xb6ln", 5));
    assert_int_equal(label->verb, WEIR_SCHEMA_PUT_LABEL);
    assert_int_equal(label->subject, 1);
    assert_int_equal(label->value.presence, WEIR_SCHEMA_CONSTANT);
    assert_int_equal(label->value.slot, 1);
    const weir_schema_source *disputes = weir_schema_source_at(schema, 2);
    assert_int_equal(disputes->mutations[0].event.count, 1);
    assert_int_equal(disputes->mutations[0].key.count, 0);
    assert_int_equal(disputes->mutations[1].event.count, 1);
    assert_int_equal(disputes->mutations[2].event.count, 0);
    weir_schema_free(schema);
}

/* --- categories ---------------------------------------------------------------------------------------------- */

static void looked_up_categories(void **state) {
    (void)state;
    weir_schema *schema = parse("version: 1\nname: t\nvertices: {a: {features: {c: {kind: category, values: [b, ab, a, "
                                "abc, \"\xc3\xa4\"]}}}}\n");
    const weir_schema_feature *feature = &weir_schema_vertex_at(schema, 0)->features[0];
    assert_int_equal(weir_schema_category(feature, "b", 1), 1);
    assert_int_equal(weir_schema_category(feature, "ab", 2), 2);
    assert_int_equal(weir_schema_category(feature, "a", 1), 3);
    assert_int_equal(weir_schema_category(feature, "abc", 3), 4);
    assert_int_equal(weir_schema_category(feature, "\xc3\xa4", 2), 5);
    assert_int_equal(weir_schema_category(feature, "abcd", 3), 4);
    assert_int_equal(weir_schema_category(feature, "abcd", 4), 0);
    assert_int_equal(weir_schema_category(feature, "a\0c", 3), 0); // a message may hold a 0 byte, a schema may not
    assert_int_equal(weir_schema_category(feature, "", 0), 0);
    assert_int_equal(weir_schema_category_slots(feature), 6);
    weir_schema_free(schema);
}

/* Written down, because a model learns an embedding for each slot. */
static void hashed_categories(void **state) {
    (void)state;
    weir_schema *schema = parse("version: 1\nname: t\nvertices: {a: {features: {c: {kind: category, buckets: 7}}}}\n");
    const weir_schema_feature *feature = &weir_schema_vertex_at(schema, 0)->features[0];
    static const char *const texts[] = {"EUR", "", "a\tb"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(weir_schema_category(feature, texts[i], strlen(texts[i])),
                         1 + weir_xxh3(texts[i], strlen(texts[i]), 0) % 7);
    assert_int_equal(weir_schema_category_slots(feature), 8);
    weir_schema_free(schema);
}

/* --- shipped ------------------------------------------------------------------------------------------------- */

static void shipped_schemas_are_the_files(void **state) {
    (void)state;
    static const char *const names[] = {"clicks", "payments"};
    assert_int_equal(weir_schema_shipped_count(), 2);
    for (size_t i = 0; i < 2; i++) {
        char relative[64], path[4096], *bytes = NULL;
        size_t length = 0;
        const weir_schema_shipped *shipped = weir_schema_shipped_at(i);
        assert_string_equal(shipped->name, names[i]);
        assert_ptr_equal(shipped, weir_schema_shipped_find(names[i]));
        snprintf(relative, sizeof relative, "store/schema/schemas/%s.yaml", names[i]);
        assert_ok(weir_file_load(source_path(relative, path, sizeof path), 1 << 20, &bytes, &length));
        assert_int_equal(shipped->length, length);
        assert_string_equal(shipped->text, bytes);
        weir_free(bytes);
    }
    assert_null(weir_schema_shipped_find("payment"));
}

/* An operand is a shipped name, or a file, or neither: then the nearest shipped name is offered. */
static void an_operand_is_a_shipped_name_or_a_file(void **state) {
    (void)state;
    char path[4096];
    weir_schema *schema = NULL, *file = NULL;
    assert_ok(weir_schema_load_named("payments", &schema));
    assert_ok(weir_schema_load_named(source_path("store/schema/schemas/payments.yaml", path, sizeof path), &file));
    assert_true(weir_schema_hash(schema) == weir_schema_hash(file));
    weir_schema_free(schema);
    weir_schema_free(file);
    assert_err(weir_schema_load_named("paymants", &schema), WEIR_ENOTFOUND, "did you mean 'payments'?");
    assert_null(schema);
}

/* The user's reference begins with a whole schema; it must be one. */
static void example_of_the_readme_is_valid(void **state) {
    (void)state;
    char path[4096], *text = NULL;
    size_t length = 0;
    weir_schema *schema = NULL;
    assert_ok(weir_file_load(source_path("store/schema/README.md", path, sizeof path), 1 << 20, &text, &length));
    char *begin = strstr(text, "```yaml\n");
    assert_non_null(begin);
    begin += strlen("```yaml\n");
    char *end = strstr(begin, "```");
    assert_non_null(end);
    assert_ok(weir_schema_parse("README.md", begin, (size_t)(end - begin), &schema));
    assert_string_equal(weir_schema_name(schema), "cards");
    weir_schema_free(schema);
    weir_free(text);
}

/* --- failures ------------------------------------------------------------------------------------------------ */

static void missing_file_is_named(void **state) {
    (void)state;
    weir_schema *schema = NULL;
    assert_err(weir_schema_load("/nowhere/at/all.yaml", &schema), WEIR_ENOTFOUND, "/nowhere/at/all.yaml");
    assert_null(schema);
    weir_schema_free(NULL);
}

static weir_err parse_once(void *context) {
    (void)context;
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    weir_schema *schema = NULL;
    weir_err err = weir_schema_parse(shipped->name, shipped->text, shipped->length, &schema);
    assert_true((schema != NULL) == (err == WEIR_OK));
    weir_schema_free(schema);
    return err;
}

static void parse_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(parse_once, NULL);
}

static weir_err print_once(void *context) {
    weir_buf text = {0};
    weir_schema_print(context, &text);
    weir_err err = weir_buf_err(&text);
    weir_buf_free(&text);
    return err;
}

static weir_err compare_once(void *context) {
    return weir_schema_compatible(context, context);
}

static void print_and_compare_fail_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_schema *schema = load("tests/golden/schema/edges.yaml");
    weir_test_every_allocation(print_once, schema);
    weir_test_every_allocation(compare_once, schema);
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(golden_canonical_texts_and_hashes), WEIR_CASE(h1_canonical_text_is_a_fixed_point),
           WEIR_CASE(h1_a_history_is_printed_where_it_is_not_all), WEIR_CASE(h1_a_label_is_printed_where_there_is_one),
           WEIR_CASE(h1_a_walk_is_printed_where_there_is_one), WEIR_CASE(h2_hash_ignores_what_has_no_meaning),
           WEIR_CASE(h2_hash_sees_what_has), WEIR_CASE(h3_ids_are_places_in_the_text), WEIR_CASE(graph),
           WEIR_CASE(aggregates_and_tasks), WEIR_CASE(fields_and_keys), WEIR_CASE(mutations),
           WEIR_CASE(looked_up_categories), WEIR_CASE(hashed_categories), WEIR_CASE(shipped_schemas_are_the_files),
           WEIR_CASE(an_operand_is_a_shipped_name_or_a_file), WEIR_CASE(example_of_the_readme_is_valid),
           WEIR_CASE(missing_file_is_named), WEIR_CASE(parse_fails_cleanly_at_every_allocation),
           WEIR_CASE(print_and_compare_fail_cleanly_at_every_allocation))
