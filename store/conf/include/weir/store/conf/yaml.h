/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - a YAML document as a tree of nodes that know their line.
 *
 * A subset on purpose: mappings, sequences and scalars; one document; no anchors, aliases or tags (they make a
 * small file explode or change its meaning), no duplicate keys. Hostile input ends in WEIR_ECONFIG with
 * "file:line:column: what; what to do".  THREADS: a tree is read-only after load, then [any].
 */
#ifndef WEIR_STORE_CONF_YAML_H
#define WEIR_STORE_CONF_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_YAML_BYTES_MAX (1u << 20)
#define WEIR_YAML_NODES_MAX 65536u
#define WEIR_YAML_DEPTH_MAX 32u

typedef struct weir_yaml weir_yaml;
typedef struct weir_yaml_node weir_yaml_node;
typedef enum weir_yaml_kind { WEIR_YAML_SCALAR, WEIR_YAML_MAPPING, WEIR_YAML_SEQUENCE } weir_yaml_kind;

/* name stands for the file in messages.  WEIR_ECONFIG; WEIR_ENOMEM.  [any] */
weir_err weir_yaml_parse(const char *name, const char *text, size_t length, weir_yaml **yamlp);
/* WEIR_ENOTFOUND and the like from file.h besides.  [any] */
weir_err weir_yaml_load(const char *path, weir_yaml **yamlp);
void weir_yaml_free(weir_yaml *yaml);

/* NULL for an empty document. */
const weir_yaml_node *weir_yaml_root(const weir_yaml *yaml);
weir_yaml_kind weir_yaml_node_kind(const weir_yaml_node *node);
/* Number of entries or items; 0 for a scalar. */
size_t weir_yaml_count(const weir_yaml_node *node);
const weir_yaml_node *weir_yaml_item(const weir_yaml_node *sequence, size_t index);
const weir_yaml_node *weir_yaml_entry_key_node(const weir_yaml_node *mapping, size_t index);
const weir_yaml_node *weir_yaml_entry_value(const weir_yaml_node *mapping, size_t index);
/* NULL if absent. */
const weir_yaml_node *weir_yaml_find(const weir_yaml_node *mapping, const char *key);
/* The text of a scalar, ended by 0 ("" for null); a scalar with a 0 byte inside is refused at parse. */
const char *weir_yaml_text(const weir_yaml_node *scalar);
bool weir_yaml_quoted(const weir_yaml_node *scalar);

/* Typed reads of a scalar; WEIR_ECONFIG with the place and what was expected. */
weir_err weir_yaml_i64(const weir_yaml_node *node, int64_t min, int64_t max, int64_t *valuep);
weir_err weir_yaml_f64(const weir_yaml_node *node, double *valuep);
weir_err weir_yaml_bool(const weir_yaml_node *node, bool *valuep); /* true or false, nothing else */
/* Refuses every key of the mapping that is not in allowed (NULL-ended), naming the nearest, or what is allowed.
 * Also refuses a node that is not a mapping. what names the thing: "relation 'paid'". */
weir_err weir_yaml_only_keys(const weir_yaml_node *mapping, const char *what, const char *const *allowed);

/* WEIR_ECONFIG about a node: "name:line:column: sentence".  [any] */
#define WEIR_YAML_ERR(node, ...) WEIR_ERR_BY(weir_yaml_err_make, (node), __VA_ARGS__)
weir_err weir_yaml_err_make(const weir_err_site *site, const weir_yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* An error from elsewhere, with this node's place before its sentence; 0 stays 0.  [any] */
weir_err weir_yaml_err_at(const weir_yaml_node *node, weir_err err);
unsigned weir_yaml_line(const weir_yaml_node *node); /* from 1 */

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_CONF_YAML_H */
