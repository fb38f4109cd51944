/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c - boosted trees as matrices of a model folder, and back. */
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "pack_private.h"

#define PACK_NODE_WORDS 3u /* left child, column, side of missing values */

/* --- in ----------------------------------------------------------------------------------------------------------- */

uint32_t weir_pack_trees_tensors(const weir_trees *trees) {
    return weir_trees_look(trees).covers ? WEIR_PACK_TREE_TENSORS : WEIR_PACK_TREE_TENSORS - 1;
}

weir_err weir_pack_trees_draw(const weir_trees *trees, weir_pack_tree_tensors *t) {
    const weir_trees_view v = weir_trees_look(trees);
    const size_t nodes = v.begins[v.trees];
    t->words = weir_calloc(v.trees + 1 + PACK_NODE_WORDS * nodes, sizeof *t->words);
    t->values = weir_calloc(1 + (v.covers ? 2 : 1) * nodes, sizeof *t->values);
    if (!t->words || !t->values) return WEIR_NOMEM("while writing a model");
    uint64_t *words = t->words;
    for (uint32_t i = 0; i <= v.trees; i++)
        *words++ = v.begins[i];
    t->values[0] = v.base;
    for (size_t i = 0; i < nodes; i++) {
        *words++ = v.nodes[i].left;
        *words++ = v.nodes[i].column;
        *words++ = v.nodes[i].missing_right;
        t->values[1 + i] = v.nodes[i].value;
    }
    t->tensors[0] = (weir_model_tensor){.name = "trees.begins", .rows = v.trees + 1u, .cols = 1, .words = t->words};
    t->tensors[1] = (weir_model_tensor){
        .name = "trees.nodes", .rows = nodes, .cols = PACK_NODE_WORDS, .words = t->words + v.trees + 1};
    t->tensors[2] = (weir_model_tensor){.name = "trees.base", .rows = 1, .cols = 1, .data = t->values};
    t->tensors[3] = (weir_model_tensor){.name = "trees.values", .rows = nodes, .cols = 1, .data = t->values + 1};
    t->count = weir_pack_trees_tensors(trees);
    if (!v.covers) return WEIR_OK;
    memcpy(t->values + 1 + nodes, v.covers, nodes * sizeof *v.covers);
    t->tensors[4] =
        (weir_model_tensor){.name = "trees.covers", .rows = nodes, .cols = 1, .data = t->values + 1 + nodes};
    return WEIR_OK;
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

/* rows: as many as it must have; 0: any. */
static weir_err pack_trees_find(const weir_model *model, const char *name, uint64_t rows, uint64_t cols, bool words,
                                const weir_model_tensor **tensorp) {
    const weir_model_tensor *t = *tensorp = weir_model_tensor_find(model, name);
    if (!t || words != (t->words != NULL))
        return WEIR_ERR(WEIR_EDATA, "the model's weights lack '%s', which its trees need; train it again", name);
    if (t->cols == cols && t->rows > 0 && (rows == 0 || t->rows == rows)) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "the model's '%s' is %llu x %llu, its trees need %llu x %llu; train it again", name,
                    (unsigned long long)t->rows, (unsigned long long)t->cols, (unsigned long long)rows,
                    (unsigned long long)cols);
}

/* Words that do not fit become what weir_trees_open refuses. */
static uint32_t pack_trees_word(uint64_t word) {
    return word < UINT32_MAX ? (uint32_t)word : UINT32_MAX;
}

/* Nodes and begins are the caller's to free, after an error, too. */
static weir_err pack_trees_gather(const weir_model *model, weir_trees_node **nodesp, uint32_t **beginsp,
                                  weir_trees_view *view) {
    const weir_model_tensor *begins, *words = NULL, *base = NULL, *values = NULL, *covers = NULL;
    weir_err err = pack_trees_find(model, "trees.begins", 0, 1, true, &begins);
    if (!err) err = pack_trees_find(model, "trees.nodes", 0, PACK_NODE_WORDS, true, &words);
    if (!err) err = pack_trees_find(model, "trees.base", 1, 1, false, &base);
    if (!err) err = pack_trees_find(model, "trees.values", words->rows, 1, false, &values);
    if (!err && weir_model_tensor_find(model, "trees.covers")) /* models from before contributions have none */
        err = pack_trees_find(model, "trees.covers", words->rows, 1, false, &covers);
    if (err) return err;
    const uint64_t trees = begins->rows - 1, count = words->rows;
    if (trees > WEIR_TREES_MAX || count > WEIR_TREES_NODES_MAX || begins->words[trees] != count)
        return WEIR_ERR(WEIR_EDATA, "the model's trees do not end where their %llu nodes do; train it again",
                        (unsigned long long)count);
    weir_trees_node *nodes = *nodesp = weir_calloc(count, sizeof *nodes);
    uint32_t *to = *beginsp = weir_calloc(begins->rows, sizeof *to);
    if (!nodes || !to) return WEIR_NOMEM("for the trees of a model");
    for (uint64_t i = 0; i < begins->rows; i++)
        to[i] = pack_trees_word(begins->words[i]);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t *of = words->words + PACK_NODE_WORDS * i;
        if (of[2] > 1)
            return WEIR_ERR(WEIR_EDATA,
                            "node %llu of the model's trees sends missing values to no side; train it again",
                            (unsigned long long)i);
        nodes[i] = (weir_trees_node){pack_trees_word(of[0]), pack_trees_word(of[1]), values->data[i], of[2] == 1};
    }
    *view = (weir_trees_view){nodes, to, (uint32_t)trees, 0, base->data[0], covers ? covers->data : NULL};
    return WEIR_OK;
}

static weir_err pack_trees_refuse(weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    if (!weir_err_is(err, WEIR_EDATA)) return err;
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_EDATA, "the model's trees cannot be walked: %s; train the model again, or serve an older one",
                    sentence);
}

weir_err weir_pack_trees_read(const weir_model *model, const weir_nn_shape *shape, uint32_t hops, weir_trees **treesp) {
    const size_t columns = weir_tree_columns_count(shape, hops);
    weir_trees_node *nodes = NULL;
    uint32_t *begins = NULL;
    weir_trees_view view = {.nodes = NULL};
    *treesp = NULL;
    if (weir_nn_outputs(shape) != 1 || !weir_tree_columns_share(shape, hops) || columns > WEIR_TREES_COLUMNS_MAX)
        return WEIR_ERR(WEIR_EDATA,
                        "the model has trees, which read the newest edges for a yes-or-no question, and its "
                        "steps or its task are others; train it again");
    weir_err err = pack_trees_gather(model, &nodes, &begins, &view);
    view.columns = (uint32_t)columns;
    if (!err) err = pack_trees_refuse(weir_trees_open(&view, treesp));
    weir_free(nodes);
    weir_free(begins);
    return err;
}
