/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <string.h>

#include <weir/store/base/alloc.h>

/* --- manifest.json ----------------------------------------------------------------------------------------------- */

weir_err weir_snapshot_read_count(const weir_json_node *object, const char *key, uint64_t *valuep) {
    int64_t value;
    weir_err err = weir_json_need_i64(object, key, 0, INT64_MAX / 64, &value);
    *valuep = (uint64_t)value;
    return err;
}

weir_err weir_snapshot_read_section(const weir_json_node *root, const char *key, size_t rows,
                                    const weir_json_node **sectionp) {
    weir_err err = weir_json_need(root, key, WEIR_JSON_ARRAY, sectionp);
    if (err || (*sectionp)->count == rows) return err;
    return WEIR_JSON_ERR(*sectionp, "'%s' does not have the schema's %zu rows; take another copy", key, rows);
}

weir_err weir_snapshot_read_name(const weir_json_node *row, const char *wanted) {
    const weir_json_node *node;
    weir_err err = weir_json_need(row, "name", WEIR_JSON_STRING, &node);
    if (err || strcmp(node->text, wanted) == 0) return err;
    return WEIR_JSON_ERR(node, "'%.64s' is where the schema has '%s'; take another copy", node->text, wanted);
}

bool weir_snapshot_extra_name(const char *name) {
    size_t length = strlen(name);
    return length > 0 && length <= WEIR_SNAPSHOT_EXTRA_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == length;
}

weir_err weir_snapshot_read_extras(const weir_json_node *row, weir_snapshot_described **extrasp, uint32_t *countp) {
    const weir_json_node *list, *name;
    *extrasp = NULL;
    *countp = 0;
    weir_err err = weir_json_need(row, "extras", WEIR_JSON_ARRAY, &list);
    if (err) return err;
    if (list->count > WEIR_SNAPSHOT_EXTRAS_MAX)
        return WEIR_JSON_ERR(list, "'extras' has more than %u arrays", WEIR_SNAPSHOT_EXTRAS_MAX);
    weir_snapshot_described *extra = *extrasp = weir_calloc(list->count + 1, sizeof *extra);
    if (!extra) return WEIR_NOMEM("while reading a manifest");
    *countp = (uint32_t)list->count;
    for (const weir_json_node *item = list->first; !err && item; item = item->next, extra++) {
        err = weir_json_need(item, "name", WEIR_JSON_STRING, &name);
        if (err) break;
        if (!weir_snapshot_extra_name(name->text))
            return WEIR_JSON_ERR(name, "'%.64s' is not the name of an array", name->text);
        memcpy(extra->name, name->text, strlen(name->text) + 1);
        err = weir_snapshot_read_count(item, "columns", &extra->columns);
    }
    return err;
}

/* --- arrays ------------------------------------------------------------------------------------------------------ */

weir_err weir_snapshot_map_feature(weir_npy_folder *arrays, const char *folder, const weir_schema_feature *feature,
                                   uint64_t rows, weir_snapshot_column *column) {
    static const weir_npy_type types[] = {
        [WEIR_SCHEMA_NUMBER] = WEIR_NPY_F32, [WEIR_SCHEMA_CATEGORY] = WEIR_NPY_I32, [WEIR_SCHEMA_TIME] = WEIR_NPY_I64};
    weir_npy_array array;
    weir_err err =
        weir_npy_folder_map(arrays, types[feature->kind], rows, 0, &array, "%s/feature.%s.npy", folder, feature->name);
    column->name = feature->name;
    switch (feature->kind) {
    case WEIR_SCHEMA_NUMBER:
        column->kind = WEIR_VALUE_NUMBER;
        column->numbers = array.data;
        break;
    case WEIR_SCHEMA_TIME:
        column->kind = WEIR_VALUE_TIME;
        column->times = array.data;
        break;
    default:
        column->kind = WEIR_VALUE_CATEGORY;
        column->codes = array.data;
    }
    return err;
}

weir_err weir_snapshot_map_extras(weir_npy_folder *arrays, const char *folder, uint64_t rows,
                                  const weir_snapshot_described *described, uint32_t count,
                                  const weir_snapshot_extra **extrasp) {
    weir_err err = WEIR_OK;
    weir_snapshot_extra *extras = weir_calloc((size_t)count + 1, sizeof *extras);
    *extrasp = extras;
    if (!extras) return WEIR_NOMEM("for the arrays of %s", folder);
    for (uint32_t i = 0; !err && i < count; i++) {
        const weir_snapshot_described *d = &described[i];
        weir_npy_array array;
        err = weir_npy_folder_map(arrays, d->columns ? WEIR_NPY_F32 : WEIR_NPY_BOOL, rows, d->columns, &array,
                                  "%s/%s.%s.npy", folder, d->columns ? "matrix" : "mask", d->name);
        extras[i] = (weir_snapshot_extra){.name = d->name,
                                          .columns = d->columns,
                                          .matrix = d->columns ? array.data : NULL,
                                          .mask = d->columns ? NULL : array.data};
    }
    return err;
}

weir_err weir_snapshot_map_edges(weir_npy_folder *arrays, const char *folder, bool deleted,
                                 weir_snapshot_edges *edges) {
    weir_npy_array array;
    weir_err err = weir_npy_folder_map(arrays, WEIR_NPY_I64, edges->edges, 0, &array, "%s/neighbors.npy", folder);
    edges->neighbors = array.data;
    if (err) return err;
    err = edges->has_times ? weir_npy_folder_map(arrays, WEIR_NPY_I64, edges->edges, 0, &array, "%s/times.npy", folder)
                           : weir_npy_folder_zeros(arrays, WEIR_NPY_I64, edges->edges, &array.data);
    edges->times = array.data;
    if (err) return err;
    err = edges->has_events
              ? weir_npy_folder_map(arrays, WEIR_NPY_U64, edges->edges, 0, &array, "%s/events.npy", folder)
              : weir_npy_folder_zeros(arrays, WEIR_NPY_U64, edges->edges, &array.data);
    edges->events = array.data;
    if (!err && deleted)
        err = weir_npy_folder_map(arrays, WEIR_NPY_I64, edges->edges, 0, &array, "%s/until.npy", folder);
    edges->until_us = !err && deleted ? array.data : NULL;
    return err;
}

weir_err weir_snapshot_map_labels(weir_npy_folder *arrays, const char *label, weir_snapshot_labels *labels) {
    weir_npy_array array;
    weir_err err = weir_npy_folder_map(arrays, WEIR_NPY_I64, labels->count, 0, &array, "labels/%s/targets.npy", label);
    labels->targets = array.data;
    if (!err) err = weir_npy_folder_map(arrays, WEIR_NPY_I32, labels->count, 0, &array, "labels/%s/values.npy", label);
    labels->values = array.data;
    if (!err) err = weir_npy_folder_map(arrays, WEIR_NPY_I64, labels->count, 0, &array, "labels/%s/times.npy", label);
    labels->times = array.data;
    return err;
}

void weir_snapshot_free_lent(const void *lent) {
    union {
        const void *lent;
        void *block;
    } whole = {lent};
    weir_free(whole.block);
}
