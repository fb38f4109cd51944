/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_private.h - what the files of this module share: the handle, the six sections, and readers of YAML nodes.
 *
 * Everything that a schema holds lies in one arena; a section is an array of one struct of schema.h, each of which
 * begins with its name, so that finding, numbering and comparing are written once for all six.
 */
#ifndef WEIR_STORE_SCHEMA_PRIVATE_H
#define WEIR_STORE_SCHEMA_PRIVATE_H

#include <weir/store/base/arena.h>
#include <weir/store/conf/yaml.h>
#include <weir/store/schema/schema.h>

/* In the order of the canonical text. */
typedef enum weir_schema_section_id {
    WEIR_SCHEMA_VERTICES,
    WEIR_SCHEMA_RELATIONS,
    WEIR_SCHEMA_AGGREGATES,
    WEIR_SCHEMA_LABELS,
    WEIR_SCHEMA_TASKS,
    WEIR_SCHEMA_SOURCES,
    WEIR_SCHEMA_SECTIONS
} weir_schema_section_id;

typedef struct weir_schema_table {
    void *slots;
    uint32_t count;
} weir_schema_table;

struct weir_schema {
    weir_arena *arena;
    const char *name;
    uint64_t hash;
    weir_schema_table tables[WEIR_SCHEMA_SECTIONS];
};

/* The fields of one source, gathered while it is read. */
typedef struct weir_schema_fields {
    const weir_schema_values *columns; /* CSV; NULL for JSON */
    uint32_t count;
    weir_schema_field fields[WEIR_SCHEMA_FIELDS_MAX];
} weir_schema_fields;

#define WEIR_SCHEMA_WHAT_MAX 240u /* "feature 'NAME' of vertex type 'NAME'", both at their limit */

/* A definition being read. */
typedef struct weir_schema_def {
    weir_schema *schema;
    const weir_yaml_node *place; /* its name, where "something is missing" points */
    const weir_yaml_node *map;   /* NULL: nothing was written, all defaults       */
    weir_schema_fields *fields;  /* inside a source                               */
    char what[WEIR_SCHEMA_WHAT_MAX];
} weir_schema_def;

typedef weir_err (*weir_schema_read)(weir_schema_def *def, void *slot);

typedef struct weir_schema_section {
    const char *key;  /* "vertices"    */
    const char *noun; /* "vertex type" */
    uint32_t count_max;
    size_t slot_bytes;
    weir_schema_read read;
} weir_schema_section;

extern const weir_schema_section weir_schema_sections[WEIR_SCHEMA_SECTIONS];

/* Words of the language, indexed by their enum and ended by NULL. */
extern const char *const weir_schema_kind_words[];
extern const char *const weir_schema_normalise_words[];
extern const char *const weir_schema_key_words[];
extern const char *const weir_schema_direction_words[];
extern const char *const weir_schema_function_words[];
extern const char *const weir_schema_task_words[];
extern const char *const weir_schema_moment_words[];
extern const char *const weir_schema_format_words[];
extern const char *const weir_schema_separator_words[];
extern const char weir_schema_separators[];
extern const char *const weir_schema_time_words[];
extern const char *const weir_schema_test_words[];
extern const char *const weir_schema_verb_words[];
extern const weir_schema_section_id weir_schema_verb_sections[];

/* schema.c */
const char *weir_schema_slot_name(const weir_schema *schema, weir_schema_section_id section, uint32_t id);
uint32_t weir_schema_find(const weir_schema *schema, weir_schema_section_id section, const char *name);

/* read.c: one value. An optional reader keeps *valuep when the key is absent. All: WEIR_ECONFIG with the place,
 * WEIR_ENOMEM. */
/* Zeroed memory of the schema, never of size 0; NULL: return weir_schema_no_memory. */
void *weir_schema_calloc(weir_schema *schema, size_t count, size_t bytes);
weir_err weir_schema_no_memory(void);
/* Refuses keys that are not allowed; nothing written is an empty mapping. */
weir_err weir_schema_only_keys(weir_schema_def *def, const char *const *allowed);
const weir_yaml_node *weir_schema_get(const weir_schema_def *def, const char *key);
weir_err weir_schema_need(const weir_schema_def *def, const char *key, const weir_yaml_node **nodep);
/* Refuses the key, for this reason. */
weir_err weir_schema_refuse(const weir_schema_def *def, const char *key, const char *reason);
bool weir_schema_is_empty(const weir_yaml_node *node);
weir_err weir_schema_read_name(weir_schema *schema, const weir_yaml_node *node, const char *noun, const char **namep);
weir_err weir_schema_read_text(weir_schema *schema, const weir_yaml_node *node, const char *key, const char *what,
                               size_t bytes_max, const char **textp);
weir_err weir_schema_read_choice(const weir_schema_def *def, const char *key, const char *const *words,
                                 uint32_t *indexp);
weir_err weir_schema_read_bool(const weir_schema_def *def, const char *key, bool *valuep);
weir_err weir_schema_read_u32(const weir_schema_def *def, const char *key, uint32_t min, uint32_t max,
                              uint32_t *valuep);
/* zero_word: stands for 0, which is refused as a duration; NULL: 0 is a duration like another if zero_ok. */
weir_err weir_schema_read_duration(const weir_schema_def *def, const char *key, const char *zero_word, bool zero_ok,
                                   int64_t *usp);
/* Required. */
weir_err weir_schema_read_reference(const weir_schema_def *def, const char *key, weir_schema_section_id section,
                                    uint32_t *idp);

/* values.c: listed texts. */
/* A sequence of different texts, or one text alone. */
weir_err weir_schema_read_values(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                 uint32_t count_min, uint32_t count_max, weir_schema_values *valuesp);
/* The index of a scalar that must be one of them. */
weir_err weir_schema_read_listed(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                 const weir_schema_values *values, uint32_t *indexp);

/* graph.c, learn.c, source.c, mutation.c: the sections; read.c: the last, which two of them need. */
weir_err weir_schema_read_vertex(weir_schema_def *def, void *slot);
weir_err weir_schema_read_relation(weir_schema_def *def, void *slot);
weir_err weir_schema_read_aggregate(weir_schema_def *def, void *slot);
weir_err weir_schema_read_label(weir_schema_def *def, void *slot);
weir_err weir_schema_read_task(weir_schema_def *def, void *slot);
weir_err weir_schema_read_source(weir_schema_def *def, void *slot);
weir_err weir_schema_read_mutation(weir_schema_def *def, weir_schema_mutation *mutation);
weir_err weir_schema_read_feature_reference(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                            const char *owner, const weir_schema_feature *features, uint32_t count,
                                            uint32_t *indexp);

/* field.c */
weir_err weir_schema_read_field(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                uint32_t *fieldp);
weir_err weir_schema_read_key(const weir_schema_def *def, const char *key, bool required, weir_schema_key *keyp);

/* print.c */
void weir_schema_print_slot(const weir_schema *schema, weir_schema_section_id section, uint32_t id, weir_buf *out);
#define WEIR_SCHEMA_DURATION_BYTES 24u
/* In the largest unit that divides it; zero_word: what 0 is called; NULL: "0s". Returns buffer, or that of 0. */
const char *weir_schema_duration_text(int64_t us, const char *zero_word, char buffer[WEIR_SCHEMA_DURATION_BYTES]);

#endif /* WEIR_STORE_SCHEMA_PRIVATE_H */
