/* SPDX-License-Identifier: Apache-2.0 */
/* losses.cu - cross-entropies and focal losses, a thread a target; the formulas are at the top of losses.c. */
#include <math.h>

#include "context.h"

/* What becomes of a cross-entropy; *factorp: of its gradient. */
static __device__ double cuda_loss_focal(double g, double entropy, double *factorp) {
    const double missing = -expm1(-entropy), share = missing > 0 ? entropy / missing : 1;
    const double counts = g > 0 ? pow(missing, g) : 1;
    *factorp = counts * (1 + g * exp(-entropy) * share);
    return counts * entropy;
}

static __device__ double cuda_loss_weight_of(const weir_loss *loss, uint32_t i) {
    const uint32_t label = loss->labels[i];
    return label == WEIR_LOSS_NO_LABEL ? 0 : (loss->weights ? loss->weights[label] : 1) / loss->divisor;
}

static __device__ double cuda_loss_binary(const weir_loss *loss, uint32_t i, weir_real *dlogits) {
    const double weight = cuda_loss_weight_of(loss, i), z = static_cast<double>(loss->logits[i]);
    double value = 0, slope = 0, factor = 0;
    if (weight > 0) {
        const double small = exp(-fabs(z)), y = loss->labels[i] == 1;
        slope = (z >= 0 ? 1 / (1 + small) : small / (1 + small)) - y;
        value = weight * cuda_loss_focal(loss->focal, fmax(z, 0.0) + log1p(small) - y * z, &factor);
    }
    if (dlogits) dlogits[i] = static_cast<weir_real>(weight * slope * factor);
    return value;
}

static __device__ double cuda_loss_softmax(const weir_loss *loss, uint32_t i, weir_real *dlogits) {
    const weir_real *z = loss->logits + static_cast<size_t>(i) * loss->classes;
    const double weight = cuda_loss_weight_of(loss, i);
    double value = 0, others = 0, factor = 0;
    uint32_t most = 0;
    for (uint32_t c = 1; c < loss->classes; c++)
        most = z[c] > z[most] ? c : most;
    for (uint32_t c = 0; c < loss->classes; c++)
        others += c == most ? 0 : exp(static_cast<double>(z[c] - z[most]));
    const double total = static_cast<double>(z[most]) + log1p(others);
    if (weight > 0)
        value = weight * cuda_loss_focal(loss->focal, total - static_cast<double>(z[loss->labels[i]]), &factor);
    for (uint32_t c = 0; dlogits && c < loss->classes; c++) {
        const double chance = exp(static_cast<double>(z[c]) - total);
        dlogits[static_cast<size_t>(i) * loss->classes + c] =
            static_cast<weir_real>(weight * factor * (chance - (loss->labels[i] == c)));
    }
    return value;
}

static __global__ void cuda_loss_targets(bool binary, weir_loss loss, weir_real *dlogits, double *parts) {
    double own = 0;
    for (size_t i = cuda_first(); i < loss.count; i += cuda_stride()) {
        const uint32_t target = static_cast<uint32_t>(i);
        own += binary ? cuda_loss_binary(&loss, target, dlogits) : cuda_loss_softmax(&loss, target, dlogits);
    }
    const double all = cuda_block_sum(own);
    if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

static void cuda_loss(const weir_kernels *k, uint32_t outputs, const weir_loss *loss, weir_real *dlogits, double *sum) {
    weir_cuda_context *c = cuda_context_of(k);
    const unsigned blocks = cuda_blocks_of(loss->count);
    if (loss->count == 0) return;
    WEIR_LAUNCH(cuda_loss_targets, blocks, CUDA_BLOCK, 0, c->stream, outputs == 1, *loss, dlogits, c->parts);
    cuda_note(c, cudaGetLastError(), "loss");
    weir_cuda_add_parts(c, blocks, sum);
}

void weir_cuda_losses(weir_kernels *kernels) {
    kernels->loss = cuda_loss;
}
