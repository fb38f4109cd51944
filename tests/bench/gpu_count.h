/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_count.h - a table of kernels that counts what it passes on to another: calls, bytes and operations of each
 * kernel, copies to the device and back, and, if wanted, how long each took.
 */
#ifndef WEIR_GPU_COUNT_H
#define WEIR_GPU_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/inference/kernel/kernel.h>

typedef enum gpu_kernel {
#define GPU_COUNTED(name, parameters, arguments, bytes, flops) GPU_KERNEL_##name,
#include "gpu_counts.def"
#undef GPU_COUNTED
    GPU_KERNEL_zero,
    GPU_KERNEL_copy,
    GPU_KERNEL_to_device,
    GPU_KERNEL_to_host,
    GPU_KERNELS
} gpu_kernel;

/* A plain value. */
typedef struct gpu_count {
    double calls, bytes, flops, us; /* us: 0 where calls are not timed */
} gpu_count;

typedef struct gpu_counts {
    /* Of each kernel, and of those whose context was opened beside the first one: they may run beside it. */
    gpu_count of[GPU_KERNELS], beside[GPU_KERNELS];
    double allocations;
    double until_us; /* when the last step ended, on the monotonic clock */
} gpu_counts;

const char *weir_gpu_kernel_name(gpu_kernel kernel);
/* Over `inner`, which is borrowed. As a device would it has a memory of its own, to which all is copied, and works on
 * rows all at once. The table is closed by its `close`.  WEIR_ENOMEM. */
weir_err weir_gpu_count_open(const weir_kernels *inner, const weir_kernels **kernelsp);
/* From now on each call waits until it has ended, and is timed. */
void weir_gpu_count_time(bool timed);
/* Of all contexts since the last time, as far as a step of AdamW came after it: what judging takes does not count. */
void weir_gpu_count_take(gpu_counts *countsp);

#endif /* WEIR_GPU_COUNT_H */
