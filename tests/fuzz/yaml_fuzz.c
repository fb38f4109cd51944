/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes become a tree or one sentence; every node of a tree can be read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/conf/yaml.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t nodes;

static void must(int condition) {
    if (!condition) abort();
}

static void read_scalar(const weir_yaml_node *node) {
    int64_t whole;
    double number;
    bool truth;
    (void)strlen(weir_yaml_text(node));
    (void)weir_yaml_quoted(node);
    if (!weir_yaml_i64(node, -10, 10, &whole)) must(whole >= -10 && whole <= 10);
    (void)weir_yaml_f64(node, &number);
    (void)weir_yaml_bool(node, &truth);
}

static void read_node(const weir_yaml_node *node, unsigned depth);

static void read_mapping(const weir_yaml_node *node, unsigned depth) {
    static const char *const allowed[] = {"a", "key", "types", NULL};
    (void)weir_yaml_only_keys(node, "it", allowed);
    for (size_t i = 0; i < weir_yaml_count(node); i++) {
        must(weir_yaml_find(node, weir_yaml_text(weir_yaml_entry_key_node(node, i))) == weir_yaml_entry_value(node, i));
        read_node(weir_yaml_entry_key_node(node, i), depth);
        read_node(weir_yaml_entry_value(node, i), depth);
    }
}

static void read_node(const weir_yaml_node *node, unsigned depth) {
    must(depth <= WEIR_YAML_DEPTH_MAX && ++nodes <= WEIR_YAML_NODES_MAX && weir_yaml_line(node) > 0);
    switch (weir_yaml_node_kind(node)) {
    case WEIR_YAML_SCALAR:
        read_scalar(node);
        break;
    case WEIR_YAML_MAPPING:
        read_mapping(node, depth + 1);
        break;
    case WEIR_YAML_SEQUENCE:
        for (size_t i = 0; i < weir_yaml_count(node); i++)
            read_node(weir_yaml_item(node, i), depth + 1);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_yaml *yaml;
    weir_err err = weir_yaml_parse("fuzz.yaml", (const char *)data, size, &yaml);
    must(err ? yaml == NULL : yaml != NULL);
    nodes = 0;
    if (!err && weir_yaml_root(yaml)) read_node(weir_yaml_root(yaml), 0);
    weir_yaml_free(yaml);
    return 0;
}
