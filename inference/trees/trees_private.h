/* SPDX-License-Identifier: Apache-2.0 */
/* trees_private.h - what the files of this module share. */
#ifndef WEIR_INFERENCE_TREES_PRIVATE_H
#define WEIR_INFERENCE_TREES_PRIVATE_H

#include <weir/inference/trees/trees.h>

#define WEIR_TREES_POINTS_MAX (WEIR_TREES_DEPTH_MAX / 2)

/* By which an integral from 0 to 1 is a sum. */
typedef struct weir_trees_rule {
    uint32_t count;
    double at[WEIR_TREES_POINTS_MAX];
    double unknown[WEIR_TREES_POINTS_MAX]; /* 1 - at */
    double weights[WEIR_TREES_POINTS_MAX];
} weir_trees_rule;

struct weir_trees {
    weir_trees_view view; /* of the three below */
    weir_trees_node *nodes;
    uint32_t *begins;
    float *covers;   /* NULL: not known */
    double expected; /* with covers, as the next one */
    weir_trees_rule rule;
};

/* contributions.c: checks covers, and finds what is expected by them. The rest of the trees was checked.  WEIR_EDATA,
 * WEIR_ELIMIT as of weir_trees_open; WEIR_ENOMEM. */
weir_err weir_trees_weigh(weir_trees *trees);

#endif /* WEIR_INFERENCE_TREES_PRIVATE_H */
