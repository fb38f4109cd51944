/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - where in a message something is: "user.address.country" in JSON, a column in CSV.
 *
 * A source's fields are numbered by their first use, and each is there once, so that ingest reads a message in one
 * pass and everything else names a field by its number.
 */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/suggest.h>

#include "schema_private.h"

#define SUGGEST_BYTES (WEIR_SCHEMA_TEXT_BYTES_MAX + 32u)

/* Copies one name without its escapes and returns what is behind it: the dot, or the end; NULL: a wrong escape. */
static const char *field_copy_name(const char *at, char *name) {
    for (; *at && *at != '.'; at++) {
        if (*at == '\\' && *++at != '.' && *at != '\\') return NULL;
        *name++ = *at;
    }
    *name = 0;
    return at;
}

static weir_err field_wrong_path(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                 const char *why) {
    return WEIR_YAML_ERR(node, "%s: '%s' is the path '%.64s', %s", def->what, key, weir_yaml_text(node), why);
}

static weir_err field_split_path(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                 weir_schema_field *field) {
    char name[WEIR_SCHEMA_TEXT_BYTES_MAX + 1];
    const char **names = weir_schema_calloc(def->schema, WEIR_SCHEMA_PATH_NAMES_MAX, sizeof *names);
    if (!names) return weir_schema_no_memory();
    WEIR_ASSERT(strlen(field->path) < sizeof name);
    const char *at = field->path;
    for (bool more = true; more; at++) {
        at = field_copy_name(at, name);
        if (!at) return field_wrong_path(def, key, node, "where \\ stands before neither a dot nor a \\; double it");
        if (!name[0]) return field_wrong_path(def, key, node, "which has an empty name; write a.b");
        if (field->name_count == WEIR_SCHEMA_PATH_NAMES_MAX)
            return field_wrong_path(def, key, node, "which is too deep; at most 8 names are allowed");
        names[field->name_count] = weir_arena_strndup(def->schema->arena, name, strlen(name));
        if (!names[field->name_count++]) return weir_schema_no_memory();
        more = *at == '.';
    }
    field->names = names;
    return WEIR_OK;
}

static weir_err field_find_column(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                  weir_schema_field *field) {
    const weir_schema_values *columns = def->fields->columns;
    field->column = weir_schema_values_find(columns, field->path, strlen(field->path));
    if (field->column != WEIR_SCHEMA_NONE) {
        field->names = &columns->texts[field->column];
        field->name_count = 1;
        return WEIR_OK;
    }
    char nearest[SUGGEST_BYTES];
    weir_suggest suggest = weir_suggest_for(field->path);
    for (uint32_t i = 0; i < columns->count; i++)
        weir_suggest_offer(&suggest, columns->texts[i]);
    return WEIR_YAML_ERR(node, "%s: '%s' is '%.64s', which is not one of 'columns'%s", def->what, key, field->path,
                         weir_suggest_text(&suggest, nearest, sizeof nearest));
}

weir_err weir_schema_read_field(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                uint32_t *fieldp) {
    weir_schema_fields *fields = def->fields;
    weir_schema_field field = {.column = WEIR_SCHEMA_NONE};
    weir_err err = weir_schema_read_text(def->schema, node, key, def->what, WEIR_SCHEMA_TEXT_BYTES_MAX, &field.path);
    if (err) return err;
    for (*fieldp = 0; *fieldp < fields->count; ++*fieldp)
        if (strcmp(fields->fields[*fieldp].path, field.path) == 0) return WEIR_OK;
    err = fields->columns ? field_find_column(def, key, node, &field) : field_split_path(def, key, node, &field);
    if (err) return err;
    if (fields->count == WEIR_SCHEMA_FIELDS_MAX)
        return WEIR_YAML_ERR(node, "%s: '%s' is one field too many; a source reads at most %u of its messages",
                             def->what, key, WEIR_SCHEMA_FIELDS_MAX);
    WEIR_ASSERT(*fieldp == fields->count);
    fields->fields[fields->count++] = field;
    return WEIR_OK;
}

weir_err weir_schema_read_key(const weir_schema_def *def, const char *key, bool required, weir_schema_key *keyp) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    *keyp = (weir_schema_key){.count = 0};
    if (!node) return required ? weir_schema_need(def, key, &node) : WEIR_OK;
    if (weir_yaml_node_kind(node) != WEIR_YAML_SEQUENCE) {
        keyp->count = 1;
        return weir_schema_read_field(def, key, node, &keyp->fields[0]);
    }
    size_t count = weir_yaml_count(node);
    if (count == 0 || count > WEIR_SCHEMA_KEY_PARTS_MAX)
        return WEIR_YAML_ERR(node, "%s: '%s' has %zu parts; a key has 1 to %u", def->what, key, count,
                             WEIR_SCHEMA_KEY_PARTS_MAX);
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < count && !err; i++)
        err = weir_schema_read_field(def, key, weir_yaml_item(node, i), &keyp->fields[i]);
    keyp->count = (uint32_t)count;
    return err;
}
