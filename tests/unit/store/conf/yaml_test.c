/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/conf/yaml.h>

static weir_yaml *parse(const char *text) {
    weir_yaml *yaml;
    assert_ok(weir_yaml_parse("a.yaml", text, strlen(text), &yaml));
    return yaml;
}

static void refused(const char *text, const char *sentence) {
    weir_yaml *yaml;
    assert_err(weir_yaml_parse("a.yaml", text, strlen(text), &yaml), WEIR_ECONFIG, sentence);
    assert_null(yaml);
}

static void tree_of_nested_collections(void **state) {
    (void)state;
    weir_yaml *yaml = parse("types:\n  card: {key: text, count: 3}\n  'shop': []\nhops: [10, 5]\n");
    const weir_yaml_node *root = weir_yaml_root(yaml);
    assert_int_equal(weir_yaml_node_kind(root), WEIR_YAML_MAPPING);
    assert_int_equal(weir_yaml_count(root), 2);
    assert_string_equal(weir_yaml_text(weir_yaml_entry_key_node(root, 0)), "types");
    assert_int_equal(weir_yaml_line(weir_yaml_entry_key_node(root, 1)), 4);
    const weir_yaml_node *card = weir_yaml_find(weir_yaml_find(root, "types"), "card");
    assert_string_equal(weir_yaml_text(weir_yaml_find(card, "key")), "text");
    assert_null(weir_yaml_find(card, "kex"));
    const weir_yaml_node *hops = weir_yaml_entry_value(root, 1);
    assert_int_equal(weir_yaml_node_kind(hops), WEIR_YAML_SEQUENCE);
    assert_int_equal(weir_yaml_count(hops), 2);
    assert_string_equal(weir_yaml_text(weir_yaml_item(hops, 1)), "5");
    assert_int_equal(weir_yaml_count(weir_yaml_find(weir_yaml_find(root, "types"), "shop")), 0);
    weir_yaml_free(yaml);
}

static void empty_documents_have_no_root(void **state) {
    (void)state;
    static const char *const empty[] = {"", "\n\n", "# only a comment\n", "---\n", "~\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        weir_yaml *yaml = parse(empty[i]);
        assert_null(weir_yaml_root(yaml));
        weir_yaml_free(yaml);
    }
    weir_yaml_free(NULL);
}

static void null_is_empty_and_quotes_are_remembered(void **state) {
    (void)state;
    weir_yaml *yaml = parse("a: ~\nb: null\nc:\nd: 'null'\ne: \"\"\nf: |\n  null\n");
    const weir_yaml_node *root = weir_yaml_root(yaml);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(weir_yaml_text(weir_yaml_entry_value(root, i)), "");
        assert_false(weir_yaml_quoted(weir_yaml_entry_value(root, i)));
    }
    assert_string_equal(weir_yaml_text(weir_yaml_find(root, "d")), "null");
    assert_true(weir_yaml_quoted(weir_yaml_find(root, "e")));
    assert_string_equal(weir_yaml_text(weir_yaml_find(root, "f")), "null\n");
    weir_yaml_free(yaml);
}

static void what_expands_or_changes_meaning_is_refused(void **state) {
    (void)state;
    refused("a: &x 1\n", "a.yaml:1:4: anchors (&x) are not read");
    refused("a: &x [1]\n", "a.yaml:1:4: anchors (&x)");
    refused("a: *x\n", "a.yaml:1:4: aliases (*x) are not read");
    refused("a: !!str 1\n", "a.yaml:1:4: tags (tag:yaml.org,2002:str) are not read");
    refused("a: ! 1\n", "a.yaml:1:4: tags (!)");
    refused("a: !!map {}\n", "a.yaml:1:4: tags");
    refused("a: 1\n---\nb: 2\n", "a.yaml:2:1: a second document begins here");
    refused("%YAML 1.1\n---\na: 1\n", "directives");
    refused("%TAG ! tag:x,2000:\n---\na: 1\n", "directives");
    refused("{a: 1}: b\n", "a.yaml:1:1: a key may not be a list or a mapping");
    refused("? [a]\n: b\n", "a.yaml:1:3: a key may not be a list");
    refused("'': b\n", "a.yaml:1:1: a key is empty");
    refused("~: b\n", "a key is empty");
}

static void what_is_not_yaml_names_line_and_column(void **state) {
    (void)state;
    refused("a: 1\n\tb: 2\n", "a.yaml:2:1: not valid YAML");
    refused("a: 1\n\tb: 2\n", "indent with spaces, not tabs");
    refused("a: b: c\n", "a.yaml:1:5: not valid YAML");
    refused("a: [1, 2\nb: 3\n", "a.yaml:2:2: not valid YAML");
    refused("a: 'open\n", "close the quote");
    refused("a: 1\n  b: 2\n", "a.yaml:2:4: not valid YAML");
    refused(
        "- a\nb\n",
        "a.yaml:3:1: not valid YAML: could not find expected ':' while scanning a simple key that begins on line 2");
    refused("a: 1\nb: \xff\n", "a.yaml:2:4: not a text file in UTF-8");
    refused("a: \x01\n", "not a text file in UTF-8");
    refused("\xff\xfe"
            "a",
            "not a text file in UTF-8");
}

static void nul_bytes_are_refused(void **state) {
    (void)state;
    weir_yaml *yaml;
    assert_err(weir_yaml_parse("a.yaml", "a: 1\nb\0c", 8, &yaml), WEIR_ECONFIG, "a.yaml:2:2: not a text file");
    refused("a: \"x\\0y\"\n", "a.yaml:1:4: a value contains a NUL character");
}

static void bytes_at_the_limit_and_past_it(void **state) {
    (void)state;
    char *text = malloc(WEIR_YAML_BYTES_MAX + 1);
    assert_non_null(text);
    memset(text, 'x', WEIR_YAML_BYTES_MAX + 1);
    text[0] = '#';
    weir_yaml *yaml;
    assert_ok(weir_yaml_parse("a.yaml", text, WEIR_YAML_BYTES_MAX, &yaml));
    weir_yaml_free(yaml);
    assert_err(weir_yaml_parse("a.yaml", text, WEIR_YAML_BYTES_MAX + 1, &yaml), WEIR_ECONFIG,
               "a.yaml:1:1: the file has 1048577 bytes");
    const char *path = weir_test_path("large.yaml");
    assert_ok(weir_file_replace(path, text, WEIR_YAML_BYTES_MAX));
    assert_ok(weir_yaml_load(path, &yaml));
    weir_yaml_free(yaml);
    assert_ok(weir_file_replace(path, text, WEIR_YAML_BYTES_MAX + 1));
    assert_err(weir_yaml_load(path, &yaml), WEIR_ECONFIG, "large.yaml:1:1: the file has more than the 1048576 bytes");
    assert_null(yaml);
    free(text);
}

/* "[[[…]]]" with depth brackets. */
static weir_err parse_brackets(unsigned depth, weir_yaml **yamlp) {
    weir_buf text = {0};
    for (unsigned i = 0; i < depth; i++)
        weir_buf_text(&text, "[");
    for (unsigned i = 0; i < depth; i++)
        weir_buf_text(&text, "]");
    weir_err err = weir_yaml_parse("a.yaml", text.bytes, text.length, yamlp);
    weir_buf_free(&text);
    return err;
}

static void y1_depth_at_the_limit_and_past_it(void **state) {
    (void)state;
    weir_yaml *yaml;
    assert_ok(parse_brackets(WEIR_YAML_DEPTH_MAX, &yaml));
    weir_yaml_free(yaml);
    assert_err(parse_brackets(WEIR_YAML_DEPTH_MAX + 1, &yaml), WEIR_ECONFIG,
               "a.yaml:1:33: nested deeper than 32 levels");
    assert_err(parse_brackets(200000, &yaml), WEIR_ECONFIG, "nested deeper");
}

/* A list of count - 1 items: count nodes with the list itself. */
static weir_err parse_nodes(size_t count, weir_yaml **yamlp) {
    weir_buf text = {0};
    for (size_t i = 1; i < count; i++)
        weir_buf_text(&text, "- 1\n");
    weir_err err = weir_yaml_parse("a.yaml", text.bytes, text.length, yamlp);
    weir_buf_free(&text);
    return err;
}

static void y1_nodes_at_the_limit_and_past_it(void **state) {
    (void)state;
    weir_yaml *yaml;
    assert_ok(parse_nodes(WEIR_YAML_NODES_MAX, &yaml));
    assert_int_equal(weir_yaml_count(weir_yaml_root(yaml)), WEIR_YAML_NODES_MAX - 1);
    weir_yaml_free(yaml);
    assert_err(parse_nodes(WEIR_YAML_NODES_MAX + 1, &yaml), WEIR_ECONFIG,
               "a.yaml:65536:3: more than 65536 keys and values");
}

static void y2_keys_and_values_alternate(void **state) {
    (void)state;
    weir_yaml *yaml = parse("{a: {b: [c, {d: e}]}, f: g, h}\n");
    const weir_yaml_node *root = weir_yaml_root(yaml);
    assert_int_equal(weir_yaml_count(root), 3);
    static const char *const keys[] = {"a", "f", "h"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(weir_yaml_text(weir_yaml_entry_key_node(root, i)), keys[i]);
        assert_ptr_equal(weir_yaml_find(root, keys[i]), weir_yaml_entry_value(root, i));
    }
    assert_string_equal(weir_yaml_text(weir_yaml_find(root, "h")), "");
    weir_yaml_free(yaml);
}

static void y3_duplicate_keys_are_refused_at_the_second(void **state) {
    (void)state;
    refused("a: 1\nb: 2\na: 3\n", "a.yaml:3:1: key 'a' is given twice, first on line 1");
    refused("x: {a: 1, 'a': 2}\n", "a.yaml:1:11: key 'a' is given twice");
    weir_yaml_free(parse("a: {x: 1}\nb: {x: 1}\n"));
}

/* Against the naive scan: every key of a shuffled mapping is found, and no other. */
static void y3_find_equals_a_scan(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = weir_test_rounds(50); round > 0; round--) {
        bool used[200] = {false};
        weir_buf text = {0};
        weir_buf_text(&text, "{");
        for (unsigned i = 0; i < 60; i++) {
            unsigned key = (unsigned)weir_rng_below(&rng, 200);
            if (!used[key]) weir_buf_printf(&text, "k%u: %u, ", key, key);
            used[key] = true;
        }
        weir_buf_text(&text, "}");
        weir_yaml *yaml = parse(text.bytes);
        for (unsigned key = 0; key < 200; key++) {
            char name[16];
            snprintf(name, sizeof name, "k%u", key);
            const weir_yaml_node *found = weir_yaml_find(weir_yaml_root(yaml), name);
            assert_int_equal(found != NULL, used[key]);
            if (found) assert_string_equal(weir_yaml_text(found), name + 1);
        }
        weir_yaml_free(yaml);
        weir_buf_free(&text);
    }
}

static void whole_numbers(void **state) {
    (void)state;
    weir_yaml *yaml =
        parse("[0, -9223372036854775808, 9223372036854775807, +7, 9223372036854775808, '5', 1.5, 0x10, ten, '', 1_0]");
    const weir_yaml_node *root = weir_yaml_root(yaml);
    static const int64_t values[] = {0, INT64_MIN, INT64_MAX, 7};
    int64_t value;
    for (size_t i = 0; i < 4; i++) {
        assert_ok(weir_yaml_i64(weir_yaml_item(root, i), INT64_MIN, INT64_MAX, &value));
        assert_true(value == values[i]);
    }
    for (size_t i = 4; i < weir_yaml_count(root); i++)
        assert_err(weir_yaml_i64(weir_yaml_item(root, i), INT64_MIN, INT64_MAX, &value), WEIR_ECONFIG,
                   "this item must be a whole number");
    weir_yaml_free(yaml);
}

static void whole_numbers_at_and_past_their_bounds(void **state) {
    (void)state;
    weir_yaml *yaml = parse("window: 64\nhops: [1]\n");
    const weir_yaml_node *window = weir_yaml_find(weir_yaml_root(yaml), "window");
    int64_t value;
    assert_ok(weir_yaml_i64(window, 64, 64, &value));
    assert_err(weir_yaml_i64(window, 1, 63, &value), WEIR_ECONFIG,
               "a.yaml:1:9: 'window' must be a whole number from 1 to 63; it is '64'");
    assert_err(weir_yaml_i64(window, 65, 99, &value), WEIR_ECONFIG, "from 65 to 99");
    assert_err(weir_yaml_i64(weir_yaml_find(weir_yaml_root(yaml), "hops"), 1, 63, &value), WEIR_ECONFIG,
               "a.yaml:2:7: 'hops' must be a whole number from 1 to 63; it is a list");
    weir_yaml_free(yaml);
}

static void numbers_and_truths(void **state) {
    (void)state;
    weir_yaml *yaml = parse("[0.5, -1e-3, 7, .5, .inf, nan, 0x1p3, 1e999, '1', {a: 1}]");
    const weir_yaml_node *root = weir_yaml_root(yaml);
    static const double values[] = {0.5, -1e-3, 7};
    double value;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(weir_yaml_f64(weir_yaml_item(root, i), &value));
        assert_true(value == values[i]);
    }
    for (size_t i = 3; i < weir_yaml_count(root); i++)
        assert_err(weir_yaml_f64(weir_yaml_item(root, i), &value), WEIR_ECONFIG, "must be a number such as");
    weir_yaml_free(yaml);

    yaml = parse("[true, false, yes, True, 'true', 1]");
    bool truth;
    assert_ok(weir_yaml_bool(weir_yaml_item(weir_yaml_root(yaml), 0), &truth));
    assert_true(truth);
    assert_ok(weir_yaml_bool(weir_yaml_item(weir_yaml_root(yaml), 1), &truth));
    assert_false(truth);
    for (size_t i = 2; i < 6; i++)
        assert_err(weir_yaml_bool(weir_yaml_item(weir_yaml_root(yaml), i), &truth), WEIR_ECONFIG,
                   "must be true or false");
    weir_yaml_free(yaml);
}

static void unknown_keys_name_the_nearest(void **state) {
    (void)state;
    static const char *const allowed[] = {"source", "target", "window", NULL};
    weir_yaml *yaml = parse("source: a\ntargte: b\n");
    assert_err(weir_yaml_only_keys(weir_yaml_root(yaml), "relation 'paid'", allowed), WEIR_ECONFIG,
               "a.yaml:2:1: relation 'paid' has no key 'targte'; did you mean 'target'?");
    weir_yaml_free(yaml);
    yaml = parse("source: a\nzzz: b\n");
    assert_err(weir_yaml_only_keys(weir_yaml_root(yaml), "relation 'paid'", allowed), WEIR_ECONFIG,
               "has no key 'zzz'; it may have: source, target, window");
    weir_yaml_free(yaml);
    yaml = parse("window: 1\ntarget: b\n");
    assert_ok(weir_yaml_only_keys(weir_yaml_root(yaml), "relation 'paid'", allowed));
    assert_err(weir_yaml_only_keys(weir_yaml_find(weir_yaml_root(yaml), "target"), "relation 'paid'", allowed),
               WEIR_ECONFIG, "a.yaml:2:9: relation 'paid' must be a mapping");
    weir_yaml_free(yaml);
}

static void messages_hold_no_control_characters(void **state) {
    (void)state;
    static const char *const allowed[] = {"a", NULL};
    weir_yaml *yaml = parse("\"\\e[31m\\nred\": 1\n");
    assert_err(weir_yaml_only_keys(weir_yaml_root(yaml), "it", allowed), WEIR_ECONFIG, "'?[31m?red'");
    weir_yaml_free(yaml);
}

static void errors_from_elsewhere_get_a_place(void **state) {
    (void)state;
    weir_yaml *yaml = parse("\n  a: 1\n");
    const weir_yaml_node *value = weir_yaml_find(weir_yaml_root(yaml), "a");
    assert_err(weir_yaml_err_at(value, WEIR_ERR(WEIR_EDATA, "wrong")), WEIR_EDATA, "a.yaml:2:6: wrong");
    assert_ok(weir_yaml_err_at(value, WEIR_OK));
    weir_yaml_free(yaml);
}

static void files_are_loaded_or_named(void **state) {
    (void)state;
    weir_yaml *yaml;
    assert_err(weir_yaml_load(weir_test_path("absent.yaml"), &yaml), WEIR_ENOTFOUND, "absent.yaml");
    const char *path = weir_test_path("bad.yaml");
    assert_ok(weir_file_replace(path, "a: [\n", 5));
    assert_err(weir_yaml_load(path, &yaml), WEIR_ECONFIG, "bad.yaml:2:1: not valid YAML");
    assert_null(yaml);
}

static weir_err attempt(void *context) {
    (void)context;
    static const char text[] = "a: {b: [1, 2], c: d}\ne: f\n";
    weir_yaml *yaml;
    weir_err err = weir_yaml_parse("a.yaml", text, strlen(text), &yaml);
    if (!err) weir_yaml_free(yaml);
    return err;
}

static void every_allocation_failed_once(void **state) {
    (void)state;
    weir_test_every_allocation(attempt, NULL);
}

WEIR_TESTS(WEIR_CASE(tree_of_nested_collections), WEIR_CASE(empty_documents_have_no_root),
           WEIR_CASE(null_is_empty_and_quotes_are_remembered), WEIR_CASE(what_expands_or_changes_meaning_is_refused),
           WEIR_CASE(what_is_not_yaml_names_line_and_column), WEIR_CASE(nul_bytes_are_refused),
           WEIR_CASE(bytes_at_the_limit_and_past_it), WEIR_CASE(y1_depth_at_the_limit_and_past_it),
           WEIR_CASE(y1_nodes_at_the_limit_and_past_it), WEIR_CASE(y2_keys_and_values_alternate),
           WEIR_CASE(y3_duplicate_keys_are_refused_at_the_second), WEIR_CASE(y3_find_equals_a_scan),
           WEIR_CASE(whole_numbers), WEIR_CASE(whole_numbers_at_and_past_their_bounds), WEIR_CASE(numbers_and_truths),
           WEIR_CASE(unknown_keys_name_the_nearest), WEIR_CASE(messages_hold_no_control_characters),
           WEIR_CASE(errors_from_elsewhere_get_a_place), WEIR_CASE(files_are_loaded_or_named),
           WEIR_CASE(every_allocation_failed_once))
