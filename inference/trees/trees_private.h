/* SPDX-License-Identifier: Apache-2.0 */
/* trees_private.h - what the files of this module share. */
#ifndef WEIR_INFERENCE_TREES_PRIVATE_H
#define WEIR_INFERENCE_TREES_PRIVATE_H

#include <weir/inference/trees/trees.h>

struct weir_trees {
    weir_trees_view view; /* of the three below */
    weir_trees_node *nodes;
    uint32_t *begins;
    float *covers;   /* NULL: not known */
    double expected; /* with covers */
};

/* contributions.c: checks covers, and finds what is expected by them. The rest of the trees was checked.  WEIR_EDATA,
 * WEIR_ELIMIT as of weir_trees_open; WEIR_ENOMEM. */
weir_err weir_trees_weigh(weir_trees *trees);

#endif /* WEIR_INFERENCE_TREES_PRIVATE_H */
