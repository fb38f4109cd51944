/* SPDX-License-Identifier: Apache-2.0 */
/* trees_fixture.h - random trees over columns of any number. */
#ifndef TREES_FIXTURE_H
#define TREES_FIXTURE_H

#include <stdlib.h>

#include <weir/inference/trees/trees.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

#define FOREST_LEVELS 5u

/* Complete trees. Thresholds are near 0 and 1, where scaled numbers and slots are; leaves add little. Of some thousand
 * rows, random shares went left and right. */
static inline weir_trees *forest_random(weir_rng *rng, uint32_t trees, uint32_t columns) {
    const uint32_t splits = (1u << FOREST_LEVELS) - 1, nodes = 2 * splits + 1;
    weir_trees_node *all = calloc((size_t)trees * nodes, sizeof *all);
    uint32_t *begins = calloc(trees + 1u, sizeof *begins);
    float *covers = calloc((size_t)trees * nodes, sizeof *covers);
    weir_trees *made;
    assert_true(all && begins && covers);
    for (uint32_t t = 0; t < trees; t++) {
        weir_trees_node *tree = all + (size_t)t * nodes;
        float *cover = covers + (size_t)t * nodes;
        begins[t + 1] = begins[t] + nodes;
        cover[0] = 5000;
        for (uint32_t at = 0; at < nodes; at++) {
            tree[at].value = (float)weir_rng_normal(rng) * (at < splits ? 1.0f : 0.1f);
            if (at >= splits) continue;
            tree[at].left = 2 * at + 1;
            tree[at].column = (uint32_t)weir_rng_below(rng, columns);
            tree[at].missing_right = weir_rng_below(rng, 2);
            cover[2 * at + 1] = cover[at] * (float)(1 + weir_rng_below(rng, 99)) / 100;
            cover[2 * at + 2] = cover[at] - cover[2 * at + 1];
        }
    }
    const weir_trees_view view = {all, begins, trees, columns, -0.5f, covers};
    assert_ok(weir_trees_open(&view, &made));
    free(all);
    free(begins);
    free(covers);
    return made;
}

/* The same trees as a model has them that was written before covers were. Closes those that are given. */
static inline weir_trees *forest_without_covers(weir_trees *trees) {
    weir_trees_view view = weir_trees_look(trees);
    weir_trees *made;
    view.covers = NULL;
    assert_ok(weir_trees_open(&view, &made));
    weir_trees_close(trees);
    return made;
}

#endif /* TREES_FIXTURE_H */
