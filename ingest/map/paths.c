/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - building the tree of names. */
#include <string.h>

#include <weir/store/base/alloc.h>

#include "paths.h"

#define PATHS_BYTES_MAX (1u << 20)

static weir_path_node *path_child(weir_paths *paths, weir_path_node *parent, const char *name) {
    weir_path_node **at = &parent->child;
    for (; *at; at = &(*at)->sibling) {
        if (strcmp((*at)->name, name) == 0) return *at;
    }
    weir_path_node *added = weir_arena_calloc(paths->arena, 1, sizeof *added);
    if (!added) return NULL;
    added->name = name;
    added->length = (uint32_t)strlen(name);
    added->field = WEIR_SCHEMA_NONE;
    *at = added;
    return added;
}

weir_err weir_paths_open(const weir_schema_source *source, weir_paths **pathsp) {
    *pathsp = NULL;
    weir_paths *paths = weir_calloc(1, sizeof *paths);
    if (!paths) return WEIR_NOMEM("for the fields of source '%s'", source->name);
    weir_err err = weir_arena_open(PATHS_BYTES_MAX, &paths->arena);
    paths->root.field = WEIR_SCHEMA_NONE;
    for (uint32_t i = 0; !err && i < source->field_count; i++) {
        const weir_schema_field *field = &source->fields[i];
        weir_path_node *node = &paths->root;
        for (uint32_t name = 0; node && name < field->name_count; name++)
            node = path_child(paths, node, field->names[name]);
        if (node) node->field = i;
        if (!node) err = WEIR_NOMEM("for the fields of source '%s'", source->name);
    }
    if (err) {
        weir_paths_close(paths);
        return err;
    }
    *pathsp = paths;
    return WEIR_OK;
}

void weir_paths_close(weir_paths *paths) {
    if (!paths) return;
    weir_arena_close(paths->arena);
    weir_free(paths);
}
