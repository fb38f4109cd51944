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
    double calls, bytes, flops;
    double timed, us; /* so many of the calls took so long */
} gpu_count;

typedef struct gpu_counts {
    gpu_count of[GPU_KERNELS];     /* of the first context, since the last time and up to the last step of AdamW */
    gpu_count beside[GPU_KERNELS]; /* of contexts that were opened beside it, of all time: they prepare batches */
    double allocations;
    double until_us; /* when the last step ended, on the monotonic clock */
} gpu_counts;

const char *weir_gpu_kernel_name(gpu_kernel kernel);
/* Over `inner`, which is borrowed. As a device would it has a memory of its own, to which all is copied, and works on
 * rows all at once. The table is closed by its `close`.  WEIR_ENOMEM. */
weir_err weir_gpu_count_open(const weir_kernels *inner, const weir_kernels **kernelsp);
/* From now on each call waits until it has ended, and is timed. */
void weir_gpu_count_time(bool timed);
/* What has been counted: of the first context what led to steps, and so not what judging takes.  [any] */
void weir_gpu_count_take(gpu_counts *countsp);

#endif /* WEIR_GPU_COUNT_H */
