/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the table of a device by its name. No program links CUDA: its kernels are a library, libweir_cuda.so,
 * which is loaded when somebody asks for them, and which a machine without a GPU need not have.
 */
#ifndef WEIR_INFERENCE_KERNEL_DEVICE_H
#define WEIR_INFERENCE_KERNEL_DEVICE_H

#include <weir/inference/kernel/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "cpu", or "cuda", of which programs of one machine that have different numbers share the devices evenly. The library
 * is looked for beside the program: in ../lib, as in a build folder, and where an installation has it. The table is
 * closed by its own `close`.
 * WEIR_EINVAL no such device; WEIR_EUNAVAILABLE no library, one of another build, or no GPU; WEIR_ENOMEM.  [any] */
weir_err weir_kernels_open(const char *device, uint32_t number, const weir_kernels **kernelsp);
/* The same, and where the device is not available the processor's table: *whyp is why, and else WEIR_OK. Whoever is
 * given that says so: the same is computed, only slower.  WEIR_EINVAL, WEIR_ENOMEM as above.  [any] */
weir_err weir_kernels_open_or_cpu(const char *device, uint32_t number, const weir_kernels **kernelsp, weir_err *whyp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_KERNEL_DEVICE_H */
