/* SPDX-License-Identifier: Apache-2.0 */
/* losses.h - the losses of the host's processor. */
#ifndef WEIR_INFERENCE_LOSSES_H
#define WEIR_INFERENCE_LOSSES_H

#include <weir/inference/kernel/kernel.h>

void weir_cpu_loss(const weir_kernels *context, uint32_t outputs, const weir_loss *loss, weir_real *dlogits,
                   double *sum);

#endif /* WEIR_INFERENCE_LOSSES_H */
