/* SPDX-License-Identifier: Apache-2.0 */
/* blend.h - what a network and trees say of a yes-or-no question together. */
#ifndef WEIR_INFERENCE_TREES_BLEND_H
#define WEIR_INFERENCE_TREES_BLEND_H

#ifdef __cplusplus
extern "C" {
#endif

/* How the log odds of each are calibrated, so that their mean does not depend on how sure either of them is. A plain
 * value. */
typedef struct weir_blend {
    double network_slope, network_offset, trees_slope, trees_offset;
} weir_blend;

/* Log odds again. Training, judging and serving compute them here.  [any] */
static inline double weir_blend_of(const weir_blend *b, double network, double trees) {
    return (b->network_slope * network + b->network_offset + b->trees_slope * trees + b->trees_offset) / 2;
}

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_TREES_BLEND_H */
