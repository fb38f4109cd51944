/* SPDX-License-Identifier: Apache-2.0 */
/* trees_fixture.h - random trees over columns of any number. */
#ifndef TREES_FIXTURE_H
#define TREES_FIXTURE_H

#include <stdlib.h>

#include <weir/inference/trees/trees.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

#define FOREST_LEVELS 5u

/* Complete trees. Thresholds are near 0 and 1, where scaled numbers and slots are; leaves add little. */
static inline weir_trees *forest_random(weir_rng *rng, uint32_t trees, uint32_t columns) {
    const uint32_t splits = (1u << FOREST_LEVELS) - 1, nodes = 2 * splits + 1;
    weir_trees_node *all = calloc((size_t)trees * nodes, sizeof *all);
    uint32_t *begins = calloc(trees + 1u, sizeof *begins);
    weir_trees *made;
    assert_true(all && begins);
    for (uint32_t t = 0; t < trees; t++) {
        weir_trees_node *tree = all + (size_t)t * nodes;
        begins[t + 1] = begins[t] + nodes;
        for (uint32_t at = 0; at < nodes; at++) {
            tree[at].value = (float)weir_rng_normal(rng) * (at < splits ? 1.0f : 0.1f);
            if (at >= splits) continue;
            tree[at].left = 2 * at + 1;
            tree[at].column = (uint32_t)weir_rng_below(rng, columns);
            tree[at].missing_right = weir_rng_below(rng, 2);
        }
    }
    const weir_trees_view view = {all, begins, trees, columns, -0.5f};
    assert_ok(weir_trees_open(&view, &made));
    free(all);
    free(begins);
    return made;
}

#endif /* TREES_FIXTURE_H */
