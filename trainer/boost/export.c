/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - the model that XGBoost writes as JSON, read into trees that are served without it.
 *
 *   {"learner": {"gradient_booster": {"model": {"trees": [{"left_children": [1, -1, …], "right_children": […],
 *                "split_indices": […], "split_conditions": […], "default_left": [0, …],
 *                "sum_hessian": […], …}, …]}},
 *                "learner_model_param": {"base_score": "5E-1"}}}
 *
 * There a node may have any number; here children stand side by side behind their parent, so nodes are numbered anew,
 * level after level. Numbers are read as floats at once: XGBoost writes what reads back as the same float.
 */
#include <math.h>
#include <stdlib.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/json.h>

#include "export.h"

#define EXPORT_DEPTH_MAX 16u
#define EXPORT_NO_MEMORY "for the trees of a model"

/* The arrays of one tree that count. */
enum { EXPORT_LEFT, EXPORT_RIGHT, EXPORT_COLUMN, EXPORT_DEFAULT, EXPORT_ARRAYS };

typedef struct export_array {
    int64_t *items;
    size_t count, room;
} export_array;

/* Those of floats. */
enum { EXPORT_CONDITION, EXPORT_COVER, EXPORT_NUMBERS };

typedef struct export_numbers {
    float *items;
    size_t count, room;
} export_numbers;

typedef struct export_reading {
    weir_json_reader json;
    export_array arrays[EXPORT_ARRAYS];
    export_numbers numbers[EXPORT_NUMBERS];
    uint32_t *order; /* the old number of each new one */
    size_t order_count, order_room;
    weir_trees_node *nodes;
    float *covers; /* one a node */
    size_t node_count, node_room, cover_room;
    uint32_t *ends; /* of each tree; the first is 0, of none */
    size_t tree_count, tree_room;
} export_reading;

static weir_err export_not_understood(const char *what) {
    return WEIR_ERR(WEIR_EINTERNAL,
                    "the model that XGBoost has written cannot be read: %s; another version of it may "
                    "be installed than 1.7",
                    what);
}

/* --- one tree ----------------------------------------------------------------------------------------------------- */

static weir_err export_read_array(export_reading *x, export_array *array) {
    weir_json_token item;
    array->count = 0;
    while (weir_json_read_item(&x->json)) {
        int64_t value = 0;
        if (!WEIR_GROW(array->items, array->room, array->count)) return WEIR_NOMEM(EXPORT_NO_MEMORY);
        if (!weir_json_read(&x->json, &item) || !weir_json_token_i64(&item, INT32_MIN, INT32_MAX, &value))
            return export_not_understood("a child, a column or a side is no whole number");
        array->items[array->count++] = value;
    }
    return WEIR_OK;
}

static weir_err export_read_numbers(export_reading *x, export_numbers *numbers) {
    weir_json_token item;
    numbers->count = 0;
    while (weir_json_read_item(&x->json)) {
        if (!WEIR_GROW(numbers->items, numbers->room, numbers->count)) return WEIR_NOMEM(EXPORT_NO_MEMORY);
        if (!weir_json_read(&x->json, &item) || item.kind != WEIR_JSON_NUMBER)
            return export_not_understood("a threshold, a leaf or a sum of hessians is no number");
        numbers->items[numbers->count++] = strtof(item.bytes, NULL); /* a comma or a bracket stands behind it */
    }
    return WEIR_OK;
}

/* One more node of the tree at hand: which it was, and what it says; a split is filled in when its turn comes. */
static bool export_take(export_reading *x, int64_t old) {
    if (!WEIR_GROW(x->order, x->order_room, x->order_count) || !WEIR_GROW(x->nodes, x->node_room, x->node_count) ||
        !WEIR_GROW(x->covers, x->cover_room, x->node_count))
        return false;
    x->order[x->order_count++] = (uint32_t)old;
    x->covers[x->node_count] = x->numbers[EXPORT_COVER].items[old];
    x->nodes[x->node_count++] = (weir_trees_node){.value = x->numbers[EXPORT_CONDITION].items[old]};
    return true;
}

/* The nodes that were read, level after level. */
static weir_err export_add_tree(export_reading *x) {
    const int64_t *left = x->arrays[EXPORT_LEFT].items, *right = x->arrays[EXPORT_RIGHT].items;
    const int64_t *columns = x->arrays[EXPORT_COLUMN].items;
    const int64_t count = (int64_t)x->numbers[EXPORT_CONDITION].count;
    const size_t begin = x->node_count;
    bool same = count > 0 && x->numbers[EXPORT_COVER].count == (size_t)count;
    for (size_t i = 0; i < EXPORT_ARRAYS; i++)
        same = same && x->arrays[i].count == (size_t)count;
    if (!same) return export_not_understood("the arrays of a tree differ in length");
    x->order_count = 0;
    if (!export_take(x, 0)) return WEIR_NOMEM(EXPORT_NO_MEMORY);
    for (size_t at = 0; at < x->order_count; at++) {
        const uint32_t old = x->order[at];
        weir_trees_node *node = &x->nodes[begin + at];
        if (left[old] < 0) continue;
        if (left[old] >= count || right[old] < 0 || right[old] >= count || columns[old] < 0 ||
            x->order_count + 2 > (size_t)count)
            return export_not_understood("a node is not in its tree, or in it twice");
        node->left = (uint32_t)x->order_count;
        node->column = (uint32_t)columns[old];
        node->missing_right = x->arrays[EXPORT_DEFAULT].items[old] == 0;
        if (!export_take(x, left[old]) || !export_take(x, right[old])) return WEIR_NOMEM(EXPORT_NO_MEMORY);
    }
    if (x->node_count > WEIR_TREES_NODES_MAX) return export_not_understood("it has too many nodes");
    if (!WEIR_GROW(x->ends, x->tree_room, x->tree_count)) return WEIR_NOMEM(EXPORT_NO_MEMORY);
    x->ends[x->tree_count++] = (uint32_t)x->node_count;
    return WEIR_OK;
}

static weir_err export_read_tree(export_reading *x) {
    static const char *const names[EXPORT_ARRAYS] = {"left_children", "right_children", "split_indices",
                                                     "default_left"};
    static const char *const number_names[EXPORT_NUMBERS] = {"split_conditions", "sum_hessian"};
    weir_json_token name, value;
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < EXPORT_ARRAYS; i++)
        x->arrays[i].count = 0;
    for (size_t i = 0; i < EXPORT_NUMBERS; i++)
        x->numbers[i].count = 0;
    while (!err && weir_json_read_name(&x->json, &name)) {
        int which = 0, number = 0;
        while (which < EXPORT_ARRAYS && !weir_json_token_is(&name, names[which]))
            which++;
        while (number < EXPORT_NUMBERS && !weir_json_token_is(&name, number_names[number]))
            number++;
        if (!weir_json_read(&x->json, &value)) break;
        if (value.kind == WEIR_JSON_ARRAY && which < EXPORT_ARRAYS)
            err = export_read_array(x, &x->arrays[which]);
        else if (value.kind == WEIR_JSON_ARRAY && number < EXPORT_NUMBERS)
            err = export_read_numbers(x, &x->numbers[number]);
        else
            weir_json_skip(&x->json, &value);
    }
    return err ? err : export_add_tree(x);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* From the object that the reader is in, by the names of members, each in the one before. *value: the last one's. */
static bool export_find(weir_json_reader *json, const char *const *path, weir_json_token *value) {
    weir_json_token name;
    for (; *path; path++) {
        bool found = false;
        while (!found && weir_json_read_name(json, &name)) {
            found = weir_json_token_is(&name, *path);
            if (!weir_json_read(json, value) || (!found && !weir_json_skip(json, value))) return false;
        }
        if (!found || (path[1] && value->kind != WEIR_JSON_OBJECT)) return false;
    }
    return true;
}

/* Of a probability, as margins begin with it. */
static bool export_find_base(const char *text, size_t length, float *basep) {
    static const char *const path[] = {"learner", "learner_model_param", "base_score", NULL};
    weir_json_reader json = weir_json_reader_of(text, length, EXPORT_DEPTH_MAX);
    weir_json_token value;
    if (!weir_json_enter(&json, "it is no object") || !export_find(&json, path, &value)) return false;
    const float score = value.kind == WEIR_JSON_STRING ? strtof(value.bytes, NULL) : 0; /* a quote stands behind it */
    *basep = -logf(1 / score - 1);
    return score > 0 && score < 1;
}

weir_err weir_boost_read_model(const char *text, size_t length, uint32_t rounds, uint32_t columns,
                               weir_trees **treesp) {
    static const char *const path[] = {"learner", "gradient_booster", "model", "trees", NULL};
    export_reading x = {.json = weir_json_reader_of(text, length, EXPORT_DEPTH_MAX)};
    weir_json_token value;
    float base = 0;
    weir_err err = WEIR_OK;
    *treesp = NULL;
    if (!export_find_base(text, length, &base)) err = export_not_understood("it has no base score");
    if (!err && (!weir_json_enter(&x.json, "it is no object") || !export_find(&x.json, path, &value) ||
                 value.kind != WEIR_JSON_ARRAY))
        err = export_not_understood("it has no trees");
    if (!err && !WEIR_GROW(x.ends, x.tree_room, x.tree_count)) err = WEIR_NOMEM(EXPORT_NO_MEMORY);
    if (!err) x.ends[x.tree_count++] = 0;
    while (!err && x.tree_count <= rounds && weir_json_read_item(&x.json)) {
        if (!weir_json_read(&x.json, &value) || value.kind != WEIR_JSON_OBJECT)
            err = export_not_understood("a tree is no object");
        else
            err = export_read_tree(&x);
    }
    if (!err && x.json.fault) err = export_not_understood(x.json.fault);
    if (!err && x.tree_count != (size_t)rounds + 1) err = export_not_understood("it has fewer trees than rounds");
    const weir_trees_view view = {x.nodes, x.ends, rounds, columns, base, x.covers};
    if (!err) err = weir_trees_open(&view, treesp);
    for (size_t i = 0; i < EXPORT_ARRAYS; i++)
        weir_free(x.arrays[i].items);
    for (size_t i = 0; i < EXPORT_NUMBERS; i++)
        weir_free(x.numbers[i].items);
    weir_free(x.order);
    weir_free(x.nodes);
    weir_free(x.covers);
    weir_free(x.ends);
    return err;
}
