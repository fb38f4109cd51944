/* SPDX-License-Identifier: Apache-2.0 */
/* map_test.c - every rule of the schema language, seen from a message: what it becomes, or why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/format/row.h>

#include "weir_test.h"

#define GRAPH                                                                                           \
    "version: 1\n"                                                                                      \
    "name: t\n"                                                                                         \
    "vertices:\n"                                                                                       \
    "  acc: {features: {num: {kind: number}, cat: {kind: category, values: [x, y]}, at: {kind: time}, " \
    "hashed: {kind: category}}}\n"                                                                      \
    "  shop: {key: integer}\n"                                                                          \
    "  card: {}\n"                                                                                      \
    "relations:\n"                                                                                      \
    "  paid: {from: acc, to: shop, features: {sum: {kind: number}, note: {kind: category}}}\n"          \
    "  sent: {from: acc, to: acc}\n"                                                                    \
    "  pair: {from: card, to: card}\n"                                                                  \
    "labels:\n"                                                                                         \
    "  fraud: {vertex: acc, values: [no, yes]}\n"                                                       \
    "  odd: {relation: paid, values: [a, b]}\n"
#define SOURCE GRAPH "sources:\n  s:\n    id: id\n    time: {field: t, format: s}\n    mutations:\n"

/* --- printing a message's mutations ----------------------------------------------------------------------------- */

/* All the vertices that the cases speak of. */
static const struct {
    const char *type, *key;
} names[] = {{"acc", "a"},
             {"acc", "b"},
             {"acc", "true"},
             {"shop", "7"},
             {"shop", "-8"},
             {"card", "c"},
             {"card", "d"},
             {"card", "c|d"},
             {"card", "d|c"},
             {"card", "c\\|d|e\\\\"},
             {"acc", "1.50"},
             {"acc", "\xc3\xa9"},
             {"acc", "\xf0\x9f\x99\x82"},
             {"acc", "|"}};

static const char *name_of(weir_vertex vertex) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (weir_vertex_id(&weir_id_key_public, names[i].type, names[i].key, strlen(names[i].key)) == vertex)
            return names[i].key;
    }
    return "?";
}

static void print_values(weir_buf *out, const weir_value_kind *kinds, const char *const *labels, size_t count,
                         const weir_mutation *m) {
    weir_value values[8];
    assert_ok(weir_row_check(kinds, count, m->row, m->row_length));
    weir_row_read(kinds, count, m->row, m->row_length, values);
    for (size_t i = 0; i < count; i++) {
        if (!values[i].present) continue;
        weir_buf_printf(out, " %s=", labels[i]);
        if (kinds[i] == WEIR_VALUE_NUMBER) weir_buf_printf(out, "%g", values[i].number);
        if (kinds[i] == WEIR_VALUE_TIME) weir_buf_printf(out, "%lld", (long long)values[i].time_us);
        if (kinds[i] == WEIR_VALUE_CATEGORY) weir_buf_append(out, values[i].text, values[i].text_length);
    }
}

static void print_row(weir_buf *out, const weir_mutation *m) {
    static const weir_value_kind acc[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME, WEIR_VALUE_CATEGORY};
    static const char *const acc_names[] = {"num", "cat", "at", "hashed"};
    static const weir_value_kind paid[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY};
    static const char *const paid_names[] = {"sum", "note"}, *const label[] = {""};
    assert_int_equal(m->row == NULL, m->row_length == 0);
    if (!m->row) return;
    if (m->kind == WEIR_PUT_VERTEX) print_values(out, acc, acc_names, 4, m);
    if (m->kind == WEIR_PUT_EDGE) print_values(out, paid, paid_names, 2, m);
    if (m->kind == WEIR_PUT_LABEL) print_values(out, &acc[1], label, 1, m);
}

/* "put 0 a num=1; edge 0 a>7; back 0 7>a; label 0 a =yes; delete 0 a; unedge 0 a>7" */
static void print_mutation(weir_buf *out, const weir_mutation *m, uint64_t event) {
    static const char *const words[] = {"", "put", "edge", "label", "delete", "unedge"};
    if (out->length) weir_buf_text(out, "; ");
    bool back = m->direction == WEIR_IN;
    weir_buf_printf(out, "%s%s %u %s", back ? "back " : "", words[m->kind], m->type, name_of(m->vertex));
    if (m->kind == WEIR_PUT_VERTEX) {
        assert_int_equal(strlen(name_of(m->vertex)), m->key_length);
        assert_memory_equal(name_of(m->vertex), m->key, m->key_length);
    } else {
        assert_int_equal(m->key_length, 0);
    }
    if (m->neighbor) weir_buf_printf(out, ">%s", name_of(m->neighbor));
    if (m->event == 0) weir_buf_text(out, " all");
    if (m->event && m->event != event) {
        assert_int_equal(m->event, weir_event_id(&weir_id_key_public, "event", "e7",
                                                 2)); /* the only other one that the cases name */
        weir_buf_text(out, " of e7");
    }
    print_row(out, m);
}

typedef struct rule_case {
    const char *message, *becomes;
} rule_case;

static void check_message(weir_mapper *mapper, const char *message, const char *becomes) {
    weir_mapped mapped;
    weir_buf out = {0};
    char *copy = weir_strndup(message, strlen(message)); /* so that reading past its end is seen */
    weir_err err = weir_mapper_map(mapper, 3, 77, copy, strlen(message), &mapped);
    if (err) {
        char sentence[WEIR_ERR_SENTENCE_MAX];
        weir_err_sentence(err, sentence, sizeof sentence);
        assert_int_equal(weir_err_code(err), WEIR_EDATA);
        assert_true(mapped.mutations == NULL && mapped.count == 0 && mapped.event_id == NULL);
        weir_buf_printf(&out, "! %s", sentence);
    } else {
        weir_buf_text(&out, "");
        for (size_t i = 0; i < mapped.count; i++) {
            assert_int_equal(mapped.mutations[i].offset, 77);
            assert_int_equal(mapped.mutations[i].time_us, mapped.time_us);
            print_mutation(&out, &mapped.mutations[i], mapped.event);
        }
    }
    if (strcmp(out.bytes ? out.bytes : "", becomes) != 0)
        fail_msg("%s\nbecame: %s\nwanted: %s", message, out.bytes, becomes);
    weir_buf_free(&out);
    weir_free(copy);
}

static void check_source(const char *source, const rule_case *cases, size_t count) {
    weir_schema *schema;
    weir_mapper *mapper;
    assert_ok(weir_schema_parse("t.yaml", source, strlen(source), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    for (size_t i = 0; i < count; i++)
        check_message(mapper, cases[i].message, cases[i].becomes);
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

#define CHECK(source, ...)                                             \
    do {                                                               \
        static const rule_case cases[] = {__VA_ARGS__};                \
        check_source((source), cases, sizeof cases / sizeof cases[0]); \
    } while (0)

/* --- mutations -------------------------------------------------------------------------------------------------- */

static void put_vertex_and_its_features(void **state) {
    (void)state;
    CHECK(SOURCE "      - {put_vertex: acc, key: k, features: {num: n, cat: {field: c, default: y}, "
                 "at: {field: w, format: ms, optional: true}, hashed: {constant: h}}}\n",
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"n\":1.5,\"c\":\"x\",\"w\":12}",
           "put 0 a num=1.5 cat=x at=12000 hashed=h"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"n\":-2e3}", "put 0 a num=-2000 cat=y hashed=h"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"n\":null,\"c\":\"x\"}", "! field 'n' (byte 29): missing"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"c\":\"x\"}", "! field 'n': missing"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"n\":1,\"c\":\"unlisted\",\"w\":null}",
           "put 0 a num=1 cat=unlisted hashed=h"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"n\":1,\"w\":\"soon\"}",
           "! field 'w' (byte 36): not a time in the schema's unit, or not of the years 0 to 9999"});
    CHECK(SOURCE "      - {put_vertex: acc, key: k, features: {num: {field: n, optional: true}}}\n"
                 "      - {put_vertex: acc, key: k}\n",
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\"}", "put 0 a"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"a\",\"n\":true}", "put 0 a num=1"});
}

static void put_edge_puts_both_ends_once(void **state) {
    (void)state;
    CHECK(SOURCE "      - {put_edge: paid, from: a, to: s, features: [sum]}\n"
                 "      - {put_edge: sent, from: a, to: b, when: {has: b}}\n"
                 "      - {put_vertex: acc, key: a, features: {num: {field: n, optional: true}}}\n",
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":7,\"sum\":2}",
           "put 0 a; put 1 7; edge 0 a>7 sum=2; back edge 0 7>a sum=2"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":\"007\",\"sum\":\"2\",\"b\":\"b\",\"n\":5}",
           "put 0 a; put 1 7; edge 0 a>7 sum=2; back edge 0 7>a sum=2; put 0 b; edge 1 a>b; back edge 1 b>a; put 0 a "
           "num=5"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":7,\"sum\":2,\"b\":\"a\"}",
           "put 0 a; put 1 7; edge 0 a>7 sum=2; back edge 0 7>a sum=2; put 0 a; edge 1 a>a; back edge 1 a>a"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":7}", "! field 'sum': missing"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"sum\":2}", "! field 's': not a whole number"},
          {"{\"id\":\"i\",\"t\":1,\"s\":1,\"sum\":2}", "! field 'a': missing"});
}

static void labels(void **state) {
    (void)state;
    CHECK(
        SOURCE "      - {put_label: fraud, key: a, when: {has: v}, value: v}\n"
               "      - {put_label: odd, from: a, to: s, event: e, when: {has: e}, value: {constant: b}}\n",
        {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"v\":\"yes\"}", "label 0 a =yes"},
        {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"v\":\"maybe\"}", "! field 'v' (byte 30): not one of the label's values"},
        {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":7,\"e\":\"e7\"}", "label 1 a>7 of e7 =b"},
        {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":7,\"e\":\"\"}", "! field 'e' (byte 36): the key is empty"});
}

static void deletions(void **state) {
    (void)state;
    CHECK(SOURCE "      - {delete_vertex: acc, key: a, when: {lacks: s}}\n"
                 "      - {delete_edge: paid, from: a, to: s, when: [{has: s}, {lacks: e}]}\n"
                 "      - {delete_edge: paid, from: a, to: s, event: e, when: {has: e}}\n",
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\"}", "delete 0 a"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":-8}", "unedge 0 a>-8 all; back unedge 0 -8>a all"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"s\":7,\"e\":\"e7\"}", "unedge 0 a>7 of e7; back unedge 0 7>a of e7"});
}

static void tombstone_is(const char *tail, const char *key, uint16_t type, const char *vertex_key) {
    char text[4096];
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    snprintf(text, sizeof text, "%s      - {put_vertex: acc, key: a}\n%s", SOURCE, tail);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    assert_ok(weir_mapper_tombstone(mapper, 3, 17, 5000, key, key ? strlen(key) : 0, &mapped));
    assert_int_equal(mapped.count, vertex_key ? 1 : 0);
    if (vertex_key) {
        const weir_mutation *m = &mapped.mutations[0];
        assert_int_equal(m->kind, WEIR_DELETE_VERTEX);
        assert_int_equal(m->type, type);
        assert_int_equal(m->time_us, 5000);
        assert_int_equal(m->offset, 17);
        assert_string_equal(name_of(m->vertex), vertex_key);
    }
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

/* Two tombstones of one key are two events: each deletes as of its own time. */
static void tombstones(void **state) {
    (void)state;
    tombstone_is("", "a", 0, NULL);
    tombstone_is("    tombstone: {delete_vertex: acc}\n", "a", 0, "a");
    tombstone_is("    tombstone: {delete_vertex: acc}\n", "", 0, NULL);
    tombstone_is("    tombstone: {delete_vertex: acc}\n", NULL, 0, NULL);
    tombstone_is("    tombstone: {delete_vertex: shop}\n", "007", 1, "7");
    tombstone_is("    tombstone: {delete_vertex: card}\n", "c|d", 2, "c|d");
}

static void tombstones_that_name_nothing(void **state) {
    static const char text[] = SOURCE "      - {put_vertex: acc, key: a}\n    tombstone: {delete_vertex: shop}\n";
    static char longest[WEIR_KEY_MAX + 1];
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    (void)state;
    memset(longest, '1', sizeof longest);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    assert_err(weir_mapper_tombstone(mapper, 0, 0, 1, "seven", 5, &mapped), WEIR_EDATA, NULL);
    assert_err(weir_mapper_tombstone(mapper, 0, 0, 1, "\xff", 1, &mapped), WEIR_EDATA, "UTF-8");
    assert_err(weir_mapper_tombstone(mapper, 0, 0, 1, longest, sizeof longest, &mapped), WEIR_EDATA, "1 to 1024 bytes");
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

static void conditions(void **state) {
    (void)state;
    CHECK(SOURCE "      - {put_vertex: acc, key: a, when: {field: c, is: [u, \"7\", \"true\"]}}\n"
                 "      - {put_vertex: card, key: d, when: {field: c, is_not: [u, \"7\"]}}\n",
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":\"u\"}", "put 0 a"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":7}", "put 0 a"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":7.0}", "put 2 d"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":true}", "put 0 a; put 2 d"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\"}", "put 2 d"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":null}", "put 2 d"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":{}}", "put 2 d"});
    CHECK(SOURCE "      - {put_vertex: acc, key: a, when: {has: c}}\n"
                 "      - {put_vertex: card, key: d, when: {lacks: c}}\n",
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":[]}", "put 0 a"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":\"\"}", "put 0 a"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\",\"c\":null}", "put 2 d"},
          {"{\"id\":\"i\",\"t\":1,\"a\":\"a\",\"d\":\"d\"}", "put 2 d"});
}

static void keys(void **state) {
    (void)state;
    CHECK(
        SOURCE "      - {put_edge: pair, from: [x, y], to: [y, x]}\n",
        {"{\"id\":\"i\",\"t\":1,\"x\":\"c\",\"y\":\"d\"}", "put 2 c|d; put 2 d|c; edge 2 c|d>d|c; back edge 2 d|c>c|d"},
        {"{\"id\":\"i\",\"t\":1,\"x\":\"c\"}", "! field 'y': missing"},
        {"{\"id\":\"i\",\"t\":1,\"x\":\"c\",\"y\":[1]}",
         "! field 'y' (byte 29): an object or array, not a plain value"});
    CHECK(SOURCE "      - {put_vertex: card, key: [x, y]}\n",
          {"{\"id\":\"i\",\"t\":1,\"x\":\"c|d\",\"y\":\"e\\\\\"}", "put 2 c\\|d|e\\\\"});
    CHECK(SOURCE "      - {put_vertex: acc, key: k}\n", {"{\"id\":\"i\",\"t\":1,\"k\":true}", "put 0 true"},
          {"{\"id\":\"i\",\"t\":1,\"k\":1.50}", "put 0 1.50"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"\"}", "! field 'k' (byte 22): the key is empty"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"\\u00e9\"}", "put 0 \xc3\xa9"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"\\ud83d\\ude42\"}", "put 0 \xf0\x9f\x99\x82"});
    CHECK(SOURCE "      - {put_vertex: shop, key: k}\n", {"{\"id\":\"i\",\"t\":1,\"k\":7}", "put 1 7"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"007\"}", "put 1 7"}, {"{\"id\":\"i\",\"t\":1,\"k\":\"-0008\"}", "put 1 -8"},
          {"{\"id\":\"i\",\"t\":1,\"k\":7.0}", "! field 'k' (byte 21): not a whole number of 64 bits"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\" 7\"}", "! field 'k' (byte 22): not a whole number of 64 bits"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"+7\"}", "! field 'k' (byte 22): not a whole number of 64 bits"},
          {"{\"id\":\"i\",\"t\":1,\"k\":\"7\\u0000x\"}", "! field 'k' (byte 22): not a whole number of 64 bits"},
          {"{\"id\":\"i\",\"t\":1,\"k\":9223372036854775808}", "! field 'k' (byte 21): not a whole number of 64 bits"},
          {"{\"id\":\"i\",\"t\":1,\"k\":false}", "! field 'k' (byte 21): not a whole number"});
}

static void key_lengths_at_the_limit(void **state) {
    (void)state;
    char key[WEIR_KEY_MAX + 2], message[WEIR_KEY_MAX + 64];
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    static const char text[] = SOURCE "      - {put_vertex: acc, key: k}\n      - {put_vertex: card, key: [k, l], "
                                      "when: {has: l}}\n";
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    for (size_t length = WEIR_KEY_MAX - 2; length <= WEIR_KEY_MAX + 1; length++) {
        memset(key, '|', length);
        key[length] = '\0';
        for (int joined = 0; joined < 2; joined++) {
            int size = snprintf(message, sizeof message, "{\"id\":\"i\",\"t\":1,\"k\":\"%s\"%s}",
                                joined ? key + length / 2 : key, joined ? ",\"l\":\"l\"" : "");
            weir_err err = weir_mapper_map(mapper, 0, 0, message, (size_t)size, &mapped);
            size_t whole = joined ? 2 * (length - length / 2) + 2 : length; /* each '|' of a part is escaped */
            if (whole <= WEIR_KEY_MAX) {
                assert_ok(err);
                assert_int_equal(mapped.mutations[joined].key_length, whole);
            } else {
                assert_err(err, WEIR_EDATA, "field 'k' (byte 22): the key is longer than 1024 bytes");
            }
        }
    }
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

/* --- times and numbers ------------------------------------------------------------------------------------------ */

static int64_t time_of(const char *format, const char *time, weir_err *errp) {
    char text[sizeof SOURCE + 128], message[256];
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    snprintf(text, sizeof text,
             "%ssources: {s: {id: id, time: {field: t, format: %s}, mutations: [{put_vertex: acc, key: id}]}}\n", GRAPH,
             format);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    int length = snprintf(message, sizeof message, "{\"id\":\"i\",\"t\":%s}", time);
    *errp = weir_mapper_map(mapper, 0, 0, message, (size_t)length, &mapped);
    weir_mapper_close(mapper);
    weir_schema_free(schema);
    return *errp ? 0 : mapped.time_us;
}

static void times(void **state) {
    (void)state;
    static const struct {
        const char *format, *time;
        int64_t us;
    } good[] = {{"s", "0", 0},
                {"s", "1.5", 1500000},
                {"s", "\"1700000000.123456789\"", 1700000000123456},
                {"s", "-1.25", -1250000},
                {"s", "253402300799.999999", 253402300799999999},
                {"s", "-62167219200", -62167219200000000},
                {"ms", "1700000000123", 1700000000123000},
                {"ms", "0.0015", 1},
                {"us", "1700000000123456", 1700000000123456},
                {"us", "7.9", 7},
                {"rfc3339", "\"2023-11-14T22:13:20.5Z\"", 1700000000500000},
                {"rfc3339", "\"2023-11-14T23:13:20+01:00\"", 1700000000000000}};
    static const struct {
        const char *format, *time;
    } bad[] = {{"s", "253402300800"}, {"s", "-62167219200.000001"},
               {"s", "1e3"},          {"s", "\"\""},
               {"s", "\"1.\""},       {"s", "\".5\""},
               {"s", "true"},         {"s", "{}"},
               {"s", "null"},         {"s", "99999999999999999999"},
               {"ms", "\"1 \""},      {"us", "\"--1\""},
               {"rfc3339", "7"},      {"rfc3339", "\"yesterday\""},
               {"s", "\"\\u0000\""}};
    weir_err err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t us = time_of(good[i].format, good[i].time, &err);
        assert_ok(err);
        if (us != good[i].us) fail_msg("%s %s is %lld", good[i].format, good[i].time, (long long)us);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        time_of(bad[i].format, bad[i].time, &err);
        if (!err && strcmp(bad[i].time, "\"1.\"") == 0) continue; /* a fraction without digits is none */
        if (!err) fail_msg("%s %s was taken", bad[i].format, bad[i].time);
        assert_err(err, WEIR_EDATA, "field 't'");
    }
}

static void numbers(void **state) {
    (void)state;
    static const char *const good[] = {"0",      "-0",        "1",       "123456789012345",  "1234567890123456789",
                                       "0.1",    "1e22",      "-1.5E-7", "9007199254740993", "1.7976931348623157e308",
                                       "5e-324", "\"3.25\"",  "\"1e5\"", "\"-12\"",          "0.30000000000000004",
                                       "\"+5\"", "123456.789"};
    static const char *const bad[] = {"1e309",  "-1e400", "\"\"",    "\"0x10\"",    "\"inf\"", "\"nan\"",
                                      "\" 1\"", "\"1 \"", "\"1,5\"", "\"--1\"",     "\"1e\"",  "[]",
                                      "{}",     "\".\"",  "\"-\"",   "\"1\\u0000\""};
    static const char text[] = SOURCE "      - {put_vertex: acc, key: id, features: {num: n}}\n";
    static const weir_value_kind kinds[4] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME,
                                             WEIR_VALUE_CATEGORY};
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    char message[256];
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        weir_value values[4];
        int length = snprintf(message, sizeof message, "{\"id\":\"i\",\"t\":1,\"n\":%s}", good[i]);
        assert_ok(weir_mapper_map(mapper, 0, 0, message, (size_t)length, &mapped));
        weir_row_read(kinds, 4, mapped.mutations[0].row, mapped.mutations[0].row_length, values);
        double wanted = strtod(good[i] + (good[i][0] == '"'), NULL);
        assert_memory_equal(&values[0].number, &wanted, sizeof wanted);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int length = snprintf(message, sizeof message, "{\"id\":\"i\",\"t\":1,\"n\":%s}", bad[i]);
        assert_err(weir_mapper_map(mapper, 0, 0, message, (size_t)length, &mapped), WEIR_EDATA, "field 'n' (byte ");
    }
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

/* --- identity --------------------------------------------------------------------------------------------------- */

static void an_event_is_its_id_wherever_it_stands(void **state) {
    (void)state;
    static const char text[] = SOURCE "      - {put_vertex: acc, key: k}\n";
    static const char message[] = "{\"id\":\"e7\",\"t\":1,\"k\":\"a\"}", other[] = "{\"id\":7,\"t\":1,\"k\":\"a\"}";
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped first, second;
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    assert_ok(weir_mapper_map(mapper, 0, 0, message, strlen(message), &first));
    assert_int_equal(first.event, weir_event_id(&weir_id_key_public, "event", "e7", 2));
    assert_int_equal(first.event_id_length, 2);
    assert_memory_equal(first.event_id, "e7", 2);
    assert_int_equal(first.time_us, 1000000);
    assert_ok(weir_mapper_map(mapper, 5, 99, message, strlen(message), &second));
    assert_int_equal(second.event, first.event);
    assert_int_equal(second.mutations[0].offset, 99);
    assert_ok(weir_mapper_map(mapper, 5, 99, other, strlen(other), &second));
    assert_int_equal(second.event, weir_event_id(&weir_id_key_public, "event", "7", 1));
    assert_err(weir_mapper_map(mapper, 0, 0, "{\"t\":1,\"k\":\"a\"}", 15, &second), WEIR_EDATA, "field 'id': missing");
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

/* --- limits and memory ------------------------------------------------------------------------------------------ */

static void the_longest_constant_of_a_schema_fits_into_a_row(void **state) {
    (void)state;
    char text[sizeof SOURCE + 1024], constant[WEIR_SCHEMA_TEXT_BYTES_MAX + 1] = {0};
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    memset(constant, 'c', sizeof constant - 1);
    snprintf(text, sizeof text, "%s      - {put_vertex: acc, key: id, features: {hashed: {constant: %s}}}\n", SOURCE,
             constant);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    assert_ok(weir_mapper_map(mapper, 0, 0, "{\"id\":\"i\",\"t\":1}", 16, &mapped));
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

static void a_category_of_255_bytes_and_one_more(void **state) {
    (void)state;
    static const char text[] = SOURCE "      - {put_vertex: acc, key: id, features: {hashed: h}}\n";
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    char message[400];
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    for (int length = 255; length <= 256; length++) {
        int size = snprintf(message, sizeof message, "{\"id\":\"i\",\"t\":1,\"h\":\"%0*d\"}", length, 0);
        weir_err err = weir_mapper_map(mapper, 0, 0, message, (size_t)size, &mapped);
        if (length == 255) assert_ok(err);
        if (length == 256) assert_err(err, WEIR_EDATA, "field 'h' (byte 22): longer than 255 bytes");
    }
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

/* 64 edges between long keys with escapes: what a message can make the mapper remember has a bound that always fits. */
static void the_largest_message_does_not_run_out_of_memory(void **state) {
    (void)state;
    weir_buf text = {0}, message = {0};
    weir_schema *schema;
    weir_mapper *mapper;
    weir_mapped mapped;
    weir_buf_text(&text, SOURCE);
    for (int i = 0; i < 64; i++)
        weir_buf_printf(&text, "      - {put_edge: pair, from: [k%d, l], to: [l, k%d]}\n", i, i);
    assert_ok(weir_schema_parse("t.yaml", text.bytes, text.length, &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    weir_buf_text(&message, "{\"id\":\"i\",\"t\":1,\"l\":\"\\u006c\"");
    for (int i = 0; i < 64; i++) {
        weir_buf_printf(&message, ",\"k%d\":\"\\u0041%d", i, i);
        for (int j = 0; j < 1000; j++)
            weir_buf_byte(&message, 'k');
        weir_buf_text(&message, "\"");
    }
    weir_buf_text(&message, ",\"rest\":\"\\n");
    while (message.length < WEIR_MESSAGE_BYTES_MAX - 2)
        weir_buf_byte(&message, 'r');
    weir_buf_text(&message, "\"}");
    assert_int_equal(message.length, WEIR_MESSAGE_BYTES_MAX);
    assert_ok(weir_mapper_map(mapper, 0, 0, message.bytes, message.length, &mapped));
    assert_int_equal(mapped.count, WEIR_MAP_MUTATIONS_MAX);
    weir_buf_byte(&message, ' ');
    assert_err(weir_mapper_map(mapper, 0, 0, message.bytes, message.length, &mapped), WEIR_EDATA, "at most 1048576");
    weir_mapper_close(mapper);
    weir_schema_free(schema);
    weir_buf_free(&text);
    weir_buf_free(&message);
}

static weir_err open_and_map(void *context) {
    static const char message[] = "{\"id\":\"\\u0041\",\"t\":1,\"a\":\"a\",\"s\":7,\"sum\":1}";
    weir_mapper *mapper;
    weir_mapped mapped;
    weir_err err = weir_mapper_open(context, 0, &weir_id_key_public, &mapper);
    if (!err) err = weir_mapper_map(mapper, 0, 0, message, strlen(message), &mapped);
    weir_mapper_close(mapper);
    return err;
}

static void fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    static const char text[] = SOURCE "      - {put_edge: paid, from: a, to: s, features: [sum]}\n";
    weir_schema *schema;
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    weir_test_every_allocation(open_and_map, schema);
    weir_schema_free(schema);
}

/* --- what is shipped -------------------------------------------------------------------------------------------- */

static weir_simulate *simulation(const char *schema) {
    weir_simulate *sim;
    if (strcmp(schema, "payments") == 0) {
        weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
        opts.accounts = 500;
        opts.fraud_ppm = WEIR_SIMULATE_FRAUD_PPM_MAX;
        opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MIN;
        assert_ok(weir_simulate_payments_open(&opts, &sim));
    } else {
        weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
        opts.people = 500;
        assert_ok(weir_simulate_clicks_open(&opts, &sim));
    }
    return sim;
}

static void the_shipped_schemas_take_what_is_simulated(void **state) {
    (void)state;
    static const char *const shipped[] = {"payments", "clicks"};
    for (size_t s = 0; s < 2; s++) {
        weir_schema *schema;
        weir_mapper *mappers[2] = {NULL, NULL};
        size_t met[2] = {0, 0};
        const weir_schema_shipped *file = weir_schema_shipped_find(shipped[s]);
        assert_ok(weir_schema_parse(file->name, file->text, file->length, &schema));
        for (uint32_t i = 0; i < weir_schema_source_count(schema); i++)
            assert_ok(weir_mapper_open(schema, i, &weir_id_key_public, &mappers[i]));
        weir_simulate *sim = simulation(shipped[s]);
        for (int i = 0; i < 20000; i++) {
            weir_simulate_message m;
            weir_mapped mapped;
            weir_simulate_next(sim, &m);
            uint32_t source = weir_schema_source_find(schema, weir_simulate_topic_name(m.topic));
            assert_ok(weir_mapper_map(mappers[source], 0, 0, m.value, m.value_length, &mapped));
            assert_int_equal(mapped.time_us, m.time_us);
            assert_true(mapped.count > 0);
            met[source]++;
        }
        for (uint32_t i = 0; i < weir_schema_source_count(schema); i++) {
            assert_true(met[i] > 0);
            weir_mapper_close(mappers[i]);
        }
        weir_simulate_close(sim);
        weir_schema_free(schema);
    }
}

WEIR_TESTS(WEIR_CASE(put_vertex_and_its_features), WEIR_CASE(put_edge_puts_both_ends_once), WEIR_CASE(labels),
           WEIR_CASE(deletions), WEIR_CASE(tombstones), WEIR_CASE(tombstones_that_name_nothing), WEIR_CASE(conditions),
           WEIR_CASE(keys), WEIR_CASE(key_lengths_at_the_limit), WEIR_CASE(times), WEIR_CASE(numbers),
           WEIR_CASE(an_event_is_its_id_wherever_it_stands),
           WEIR_CASE(the_longest_constant_of_a_schema_fits_into_a_row), WEIR_CASE(a_category_of_255_bytes_and_one_more),
           WEIR_CASE(the_largest_message_does_not_run_out_of_memory), WEIR_CASE(fails_cleanly_at_every_allocation),
           WEIR_CASE(the_shipped_schemas_take_what_is_simulated))
