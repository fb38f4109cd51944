/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - what a .cu file of ours writes where CUDA has words that are not C++: the start of a kernel and the memory
 * that the threads of a block share.
 *
 * nvcc gets the words. A compiler for the host gets macros of the same names from the cuda_runtime.h that it finds,
 * which is the one of the emulator in the tests: there is no other that could be meant.
 *
 *     WEIR_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments…)
 *     WEIR_SHARED(type, name, count)     an array of the block, uninitialised
 *     WEIR_SHARED_DYNAMIC(type, name)    the bytes that the launch asked for, as a pointer
 *     WEIR_HOST_WROTE(memory, bytes)     tells whoever watches page-locked memory what the host has written there
 *
 * A kernel has at least one argument; one whose name has a comma, as a template's may, stands in parentheses.
 */
#ifndef WEIR_INFERENCE_KERNEL_CUDA_LAUNCH_H
#define WEIR_INFERENCE_KERNEL_CUDA_LAUNCH_H

#include <cuda_runtime.h>

#ifdef __CUDACC__
#define WEIR_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#define WEIR_SHARED(type, name, count) __shared__ type name[count]
/* One name and one type for all kernels of a file, which is what an extern array has to have. */
#define WEIR_SHARED_DYNAMIC(type, name)                                \
    extern __shared__ __align__(16) unsigned char weir_shared_bytes[]; \
    type *name = reinterpret_cast<type *>(weir_shared_bytes)
#define WEIR_HOST_WROTE(memory, bytes) ((void)0)
#elif !defined(WEIR_LAUNCH) || !defined(WEIR_SHARED) || !defined(WEIR_SHARED_DYNAMIC) || !defined(WEIR_HOST_WROTE)
#error "this file is compiled by nvcc, or with the cuda_runtime.h of tests/support/cuda"
#endif

#endif /* WEIR_INFERENCE_KERNEL_CUDA_LAUNCH_H */
