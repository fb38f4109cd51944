/* SPDX-License-Identifier: Apache-2.0 */
/* json_schema.h - as much of JSON Schema as openapi.json uses: what it does not know fails the test. */
#ifndef JSON_SCHEMA_H
#define JSON_SCHEMA_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

static bool schema_holds(json_t *document, json_t *schema, json_t *value, const char *path);

static bool schema_fault(const char *path, const char *what) {
    fprintf(stderr, "%s: %s\n", *path ? path : "(whole)", what);
    return false;
}

/* "#/components/schemas/Vertex" */
static json_t *schema_resolve(json_t *document, json_t *schema) {
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    if (!reference) return schema;
    char text[256];
    snprintf(text, sizeof text, "%s", reference + 2);
    json_t *found = document;
    char *rest = text;
    for (char *name; (name = strsep(&rest, "/"));)
        found = json_object_get(found, name);
    return found;
}

static bool schema_is_type(json_t *value, const char *type) {
    if (!strcmp(type, "object")) return json_is_object(value);
    if (!strcmp(type, "array")) return json_is_array(value);
    if (!strcmp(type, "string")) return json_is_string(value);
    if (!strcmp(type, "integer")) return json_is_integer(value);
    if (!strcmp(type, "number")) return json_is_number(value);
    if (!strcmp(type, "boolean")) return json_is_boolean(value);
    return !strcmp(type, "null") && json_is_null(value);
}

static bool schema_type_holds(json_t *type, json_t *value) {
    size_t i;
    json_t *one;
    if (!type) return true;
    if (json_is_string(type)) return schema_is_type(value, json_string_value(type));
    json_array_foreach(type, i, one) {
        if (schema_is_type(value, json_string_value(one))) return true;
    }
    return false;
}

static bool schema_enum_holds(json_t *schema, json_t *value) {
    json_t *constant = json_object_get(schema, "const"), *list = json_object_get(schema, "enum"), *one;
    size_t i;
    if (constant && !json_equal(constant, value)) return false;
    if (!list) return true;
    json_array_foreach(list, i, one) {
        if (json_equal(one, value)) return true;
    }
    return false;
}

static bool schema_members_hold(json_t *document, json_t *schema, json_t *value, const char *path) {
    json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
    json_t *additional = json_object_get(schema, "additionalProperties"), *member, *one;
    const char *name;
    size_t i;
    char below[512];
    json_array_foreach(required, i, one) {
        if (!json_object_get(value, json_string_value(one))) return schema_fault(path, json_string_value(one));
    }
    json_object_foreach(value, name, member) {
        json_t *of = json_object_get(properties, name);
        snprintf(below, sizeof below, "%s/%s", path, name);
        if (!of && json_is_false(additional)) return schema_fault(below, "is not documented");
        if (!of && json_is_object(additional)) of = additional;
        if (of && !schema_holds(document, of, member, below)) return false;
    }
    return true;
}

static bool schema_holds(json_t *document, json_t *schema, json_t *value, const char *path) {
    schema = schema_resolve(document, schema);
    if (!schema) return schema_fault(path, "its schema refers to nothing");
    if (!schema_type_holds(json_object_get(schema, "type"), value)) return schema_fault(path, "is of another type");
    if (!schema_enum_holds(schema, value)) return schema_fault(path, "is none of the values");
    if (json_is_object(value) && !schema_members_hold(document, schema, value, path)) return false;
    json_t *items = json_object_get(schema, "items"), *item;
    size_t i;
    if (!json_is_array(value) || !items) return true;
    json_array_foreach(value, i, item) {
        char below[512];
        snprintf(below, sizeof below, "%s/%zu", path, i);
        if (!schema_holds(document, items, item, below)) return false;
    }
    return true;
}

#endif /* JSON_SCHEMA_H */
