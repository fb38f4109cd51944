/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.c - graph.yaml and schema.yaml: what a store folder is, for the program and for people who look into it.
 *
 *     format: 4
 *     shards: 2
 *     id_key: "0f1e2d3c…"      # 32 digits, the secret of this store's ids: so the file is its owner's alone
 *     event_window: 131072     # how far back an event's id is compared
 *     store: "8c1d…"           # the store's identity, which each shard's folder repeats (identity.c)
 *     sources:                 # in the order of their numbers, for ever
 *       - {name: "log:payments", identity: "9f31c2d4e5f60718"}
 *     check: "6a09e667f3bcc908"  # XXH3 of all that stands above it: a flipped bit would be another number of shards
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/hash.h>
#include <weir/store/conf/yaml.h>

#include "graph_private.h"

/* --- graph.yaml ------------------------------------------------------------------------------------------------- */

#define CHECK_BYTES 26u /* check: "6a09e667f3bcc908", and a newline */

static void description_check_line(const char *text, size_t length, char line[CHECK_BYTES + 1]) {
    snprintf(line, CHECK_BYTES + 1, "check: \"%016llx\"\n", (unsigned long long)weir_xxh3(text, length, 0));
}

weir_err weir_graph_describe(const weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX], key[WEIR_ID_KEY_DIGITS + 1], line[CHECK_BYTES + 1];
    weir_buf out = {0};
    weir_err err = weir_graph_path(graph->folder, "graph.yaml", path);
    if (err) return err;
    for (size_t i = 0; i < sizeof graph->id_key.bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", graph->id_key.bytes[i]);
    weir_buf_printf(&out, "format: %u\nshards: %u\nid_key: \"%s\"\nevent_window: %u\nstore: \"%016llx\"\nsources:%s\n",
                    WEIR_GRAPH_FORMAT, graph->shard_count, key, graph->event_window,
                    (unsigned long long)graph->identity, graph->source_count ? "" : " []");
    for (uint32_t i = 0; i < graph->source_count; i++) {
        weir_buf_printf(&out, "  - {name: \"%s\", identity: \"%016llx\"}\n", graph->sources[i].name,
                        (unsigned long long)graph->sources[i].identity);
    }
    err = weir_buf_err(&out);
    if (!err) {
        description_check_line(out.bytes, out.length, line);
        weir_buf_append(&out, line, CHECK_BYTES);
        err = weir_buf_err(&out);
    }
    if (!err) err = weir_file_replace_secret(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* NULL: it is not there, or no text. */
static const char *description_text(const weir_yaml_node *map, const char *key) {
    const weir_yaml_node *node = weir_yaml_node_kind(map) == WEIR_YAML_MAPPING ? weir_yaml_find(map, key) : NULL;
    return node && weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : NULL;
}

static weir_err description_read_source(weir_graph *graph, const weir_yaml_node *node) {
    const char *name = description_text(node, "name"), *identity = description_text(node, "identity");
    char *end = NULL;
    if (!name || !identity || graph->source_count == WEIR_GRAPH_SOURCES_MAX || strlen(name) > WEIR_SOURCE_NAME_MAX)
        return WEIR_YAML_ERR(node, "this source of the store cannot be read; restore a checkpoint");
    weir_graph_source_row *row = &graph->sources[graph->source_count++];
    strcpy(row->name, name);
    row->identity = strtoull(identity, &end, 16);
    return *end ? WEIR_YAML_ERR(node, "'identity' is not a number; restore a checkpoint") : WEIR_OK;
}

static weir_err description_read_number(const weir_yaml_node *root, const char *key, int64_t max, int64_t *valuep) {
    const weir_yaml_node *node = weir_yaml_find(root, key);
    *valuep = 0;
    if (!node) return WEIR_YAML_ERR(root, "'%s' is missing; restore a checkpoint", key);
    return weir_yaml_i64(node, 1, max, valuep);
}

static weir_err description_version_err(const char *path, int64_t format) {
    if (format > WEIR_GRAPH_FORMAT)
        return WEIR_ERR(WEIR_EVERSION, "%s says format %lld, this program reads %u; use the program that wrote it",
                        path, (long long)format, WEIR_GRAPH_FORMAT);
    return WEIR_ERR(
        WEIR_EVERSION,
        "%s says format %lld, of an older program, and this one reads %u; move the folder away and start again, "
        "and the log fills a new one",
        path, (long long)format, WEIR_GRAPH_FORMAT);
}

static weir_err description_read_root(weir_graph *graph, const char *path, const weir_yaml_node *root) {
    static const char *const keys[] = {"format", "shards", "id_key", "event_window", "store", "sources", "check", NULL};
    int64_t format, shards, window = 0;
    if (!root || weir_yaml_node_kind(root) != WEIR_YAML_MAPPING)
        return WEIR_ERR(WEIR_ECORRUPT, "%s does not describe a store; restore a checkpoint", path);
    weir_err err = description_read_number(root, "format", INT32_MAX, &format);
    if (err) return err;
    if (format != WEIR_GRAPH_FORMAT) return description_version_err(path, format);
    err = weir_yaml_only_keys(root, "graph.yaml", keys);
    if (!err) err = description_read_number(root, "shards", WEIR_SHARDS_MAX, &shards);
    const char *id_key = description_text(root, "id_key"), *store = description_text(root, "store");
    if (!err && (!id_key || !weir_id_key_parse(id_key, &graph->id_key)))
        err = WEIR_YAML_ERR(root, "'id_key', the key of ids, is not 32 digits; restore a checkpoint");
    if (!err) err = description_read_number(root, "event_window", WEIR_EVENT_WINDOW_MAX, &window);
    if (err) return err;
    graph->shard_count = (uint32_t)shards;
    graph->event_window = (uint32_t)window;
    char *end = NULL;
    graph->identity = store ? strtoull(store, &end, 16) : 0;
    if (store ? *end != 0 : weir_yaml_find(root, "store") != NULL)
        return WEIR_YAML_ERR(root, "'store' is not a number; restore a checkpoint");
    const weir_yaml_node *sources = weir_yaml_find(root, "sources");
    if (sources && weir_yaml_node_kind(sources) != WEIR_YAML_SEQUENCE)
        return WEIR_YAML_ERR(sources, "'sources' is not a list; restore a checkpoint");
    for (size_t i = 0; !err && sources && i < weir_yaml_count(sources); i++)
        err = description_read_source(graph, weir_yaml_item(sources, i));
    return err;
}

weir_err weir_graph_read_description(weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX], line[CHECK_BYTES + 1];
    weir_yaml *yaml = NULL;
    char *text = NULL;
    size_t length = 0;
    weir_err err = weir_graph_path(graph->folder, "graph.yaml", path);
    if (!err) err = weir_file_load(path, WEIR_GRAPH_DESCRIPTION_MAX, &text, &length);
    if (!err) {
        size_t above = length > CHECK_BYTES ? length - CHECK_BYTES : 0;
        description_check_line(text, above, line);
        if (!above || memcmp(text + above, line, CHECK_BYTES) != 0)
            err = WEIR_ERR(WEIR_ECORRUPT, "%s is damaged; restore a checkpoint, or fill a new data folder from the log",
                           path);
    }
    if (!err) err = weir_yaml_parse(path, text, length, &yaml);
    if (!err) err = description_read_root(graph, path, weir_yaml_root(yaml));
    weir_yaml_free(yaml);
    weir_free(text);
    return err;
}

weir_err weir_graph_id_key_of(const char *folder, weir_id_key *id_keyp) {
    weir_graph *graph = weir_calloc(1, sizeof *graph);
    if (!graph) return WEIR_NOMEM("while looking at %s", folder);
    graph->folder = weir_strdup(folder);
    weir_err err = graph->folder ? WEIR_OK : WEIR_NOMEM("while looking at %s", folder);
    if (!err) err = weir_graph_read_description(graph);
    if (!err) *id_keyp = graph->id_key;
    weir_free(graph->folder);
    weir_free(graph);
    return err;
}

/* --- the schema ------------------------------------------------------------------------------------------------- */

static weir_err description_write_schema(const weir_graph *graph, const char *path) {
    weir_buf text = {0};
    weir_schema_print(graph->schema, &text);
    weir_err err = weir_buf_err(&text);
    if (!err) err = weir_file_replace(path, text.bytes, text.length);
    weir_buf_free(&text);
    return err;
}

/* A user's schema with a fault is a matter of configuration; this one the program wrote. */
static weir_err description_load_schema(const char *path, weir_schema **schemap) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err err = weir_schema_load(path, schemap);
    if (!weir_err_is(err, WEIR_ECONFIG)) return err;
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the schema that the store keeps cannot be read: %s; bring it back from a copy, restore a "
                    "checkpoint, or fill a new data folder from the log",
                    sentence);
}

weir_err weir_graph_schema_of(const char *folder, weir_schema **schemap) {
    char path[WEIR_GRAPH_PATH_MAX];
    *schemap = NULL;
    weir_err err = weir_graph_path(folder, "schema.yaml", path);
    return err ? err : description_load_schema(path, schemap);
}

weir_err weir_graph_check_schema(weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX], sentence[WEIR_ERR_SENTENCE_MAX];
    weir_schema *stored = NULL;
    weir_err err = weir_graph_path(graph->folder, "schema.yaml", path);
    if (err) return err;
    if (!weir_path_exists(path)) {
        if (graph->is_new) return description_write_schema(graph, path);
        return WEIR_ERR(
            WEIR_ECORRUPT,
            "%s is missing, so it is not known under which schema the data was stored; bring it back from a "
            "copy, restore a checkpoint, or fill a new data folder from the log",
            path);
    }
    err = description_load_schema(path, &stored);
    if (err) return err;
    weir_err difference = weir_schema_compatible(stored, graph->schema);
    bool same = weir_schema_hash(stored) == weir_schema_hash(graph->schema);
    weir_schema_free(stored);
    if (weir_err_is(difference, WEIR_EVERSION)) {
        weir_err_sentence(difference, sentence, sizeof sentence);
        return WEIR_ERR(WEIR_EDATA, "the data in %s was stored under another schema: %s", graph->folder, sentence);
    }
    if (difference) return difference;
    return same || graph->read_only ? WEIR_OK : description_write_schema(graph, path);
}
