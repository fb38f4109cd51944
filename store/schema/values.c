/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - listed texts: their index is their number, and the slot of a category's text. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/suggest.h>

#include "schema_private.h"

/* By bytes, a prefix first, as strcmp does; a text from a message may hold a 0 byte. */
static int values_compare(const char *listed, const char *text, size_t length) {
    size_t listed_length = strlen(listed);
    int order = memcmp(listed, text, listed_length < length ? listed_length : length);
    return order ? order : (listed_length > length) - (listed_length < length);
}

static int values_compare_sorted(const void *a, const void *b, void *texts) {
    const char *const *all = texts;
    return strcmp(all[*(const uint32_t *)a], all[*(const uint32_t *)b]);
}

weir_err weir_schema_read_values(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                 uint32_t count_min, uint32_t count_max, weir_schema_values *valuesp) {
    weir_yaml_kind kind = weir_yaml_node_kind(node);
    if (kind == WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(node, "%s: '%s' is a list of texts; write it as [a, b]", def->what, key);
    bool single = kind == WEIR_YAML_SCALAR;
    size_t listed = single ? 1 : weir_yaml_count(node);
    if (listed < count_min)
        return WEIR_YAML_ERR(node, "%s: '%s' lists %zu; at least %u are needed", def->what, key, listed, count_min);
    if (listed > count_max)
        return WEIR_YAML_ERR(weir_yaml_item(node, count_max), "%s: '%s' lists %zu; at most %u are allowed", def->what,
                             key, listed, count_max);

    uint32_t count = (uint32_t)listed;
    weir_err err = WEIR_OK;
    const char **texts = weir_schema_calloc(def->schema, count, sizeof *texts);
    uint32_t *sorted = weir_schema_calloc(def->schema, count, sizeof *sorted);
    if (!texts || !sorted) return weir_schema_no_memory();
    for (uint32_t i = 0; i < count && !err; i++) {
        sorted[i] = i;
        err = weir_schema_read_text(def->schema, single ? node : weir_yaml_item(node, i), key, def->what,
                                    WEIR_SCHEMA_TEXT_BYTES_MAX, &texts[i]);
    }
    if (err) return err;
    WEIR_ASSERT(count > 0 && count <= count_max);
    qsort_r(sorted, count, sizeof *sorted, values_compare_sorted, texts);
    *valuesp = (weir_schema_values){texts, sorted, count};
    for (uint32_t i = 1; i < count; i++) {
        uint32_t a = sorted[i - 1], b = sorted[i];
        if (strcmp(texts[a], texts[b]) == 0)
            return WEIR_YAML_ERR(weir_yaml_item(node, a > b ? a : b), "%s: '%s' lists '%.64s' twice; remove one",
                                 def->what, key, texts[a]);
    }
    return WEIR_OK;
}

uint32_t weir_schema_values_find(const weir_schema_values *values, const char *text, size_t length) {
    uint32_t low = 0, high = values->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, index = values->sorted[middle];
        int order = values_compare(values->texts[index], text, length);
        if (order == 0) return index;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return WEIR_SCHEMA_NONE;
}

weir_err weir_schema_read_listed(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                 const weir_schema_values *values, uint32_t *indexp) {
    char nearest[WEIR_SCHEMA_TEXT_BYTES_MAX];
    const char *text = weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : "";
    *indexp = weir_schema_values_find(values, text, strlen(text));
    if (*indexp != WEIR_SCHEMA_NONE) return WEIR_OK;
    weir_suggest suggest = weir_suggest_for(text);
    for (uint32_t i = 0; i < values->count; i++)
        weir_suggest_offer(&suggest, values->texts[i]);
    return WEIR_YAML_ERR(node, "%s: '%s' is '%.64s', which is not one of the listed values%s", def->what, key, text,
                         weir_suggest_text(&suggest, nearest, sizeof nearest));
}

uint32_t weir_schema_category(const weir_schema_feature *feature, const char *text, size_t length) {
    if (feature->buckets) return 1 + (uint32_t)(weir_xxh3(text, length, 0) % feature->buckets);
    uint32_t index = weir_schema_values_find(&feature->values, text, length);
    return index == WEIR_SCHEMA_NONE ? 0 : 1 + index;
}

uint32_t weir_schema_category_slots(const weir_schema_feature *feature) {
    return 1 + (feature->buckets ? feature->buckets : feature->values.count);
}
