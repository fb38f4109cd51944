/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h - what stands behind a context of the table for CUDA, and the shapes of its launches.
 *
 * Kernels of a context run on its stream, one after the other. Each sum has a fixed order, which depends on how many
 * terms it has alone (KERNEL-K1): every block adds up its part, and a last block adds up the blocks.
 */
#ifndef WEIR_INFERENCE_KERNEL_CUDA_CONTEXT_H
#define WEIR_INFERENCE_KERNEL_CUDA_CONTEXT_H

#include <weir/inference/kernel/kernel.h>

#include "launch.h"

#define CUDA_BLOCK      256u  /* threads                                            */
#define CUDA_BLOCKS_MAX 1024u /* of one launch: from there on each thread does more */

#define CUDA_STAGE_PIECES 4u
#define CUDA_STAGE_BYTES  (static_cast<size_t>(1) << 20)

typedef struct weir_cuda_context {
    weir_kernels kernels; /* first: this is what callers hold */
    int device;
    cudaStream_t stream;
    double *parts; /* of a sum, one a block: CUDA_BLOCKS_MAX */
    void *scratch; /* of one kernel at a time                */
    size_t scratch_bytes;
    /* Page-locked memory that copies to the device go through, piece after piece, so that none has to be waited for:
     * an event says when what was copied out of a piece has ended. */
    uint8_t *stage; /* CUDA_STAGE_PIECES of CUDA_STAGE_BYTES */
    cudaEvent_t staged[CUDA_STAGE_PIECES];
    unsigned stage_piece;
    size_t stage_used; /* of that piece */
    cudaError_t error; /* the first one since `finish` */
    const char *what;  /* of which kernel              */
} weir_cuda_context;

/* A thread begins with device 0, whatever the context's is. */
static inline weir_cuda_context *cuda_context_of(const weir_kernels *k) {
    weir_cuda_context *c = reinterpret_cast<weir_cuda_context *>(const_cast<weir_kernels *>(k));
    (void)cudaSetDevice(c->device);
    return c;
}

/* Keeps what went wrong for `finish` (KERNEL-K3). */
static inline void cuda_note(weir_cuda_context *c, cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    (void)cudaGetLastError(); /* else the next kernel of this thread, in any context, would be blamed */
    if (c->error != cudaSuccess) return;
    c->error = error;
    c->what = what;
}

static inline unsigned cuda_blocks_of(size_t items) {
    const size_t blocks = (items + CUDA_BLOCK - 1) / CUDA_BLOCK;
    return static_cast<unsigned>(blocks < CUDA_BLOCKS_MAX ? blocks : CUDA_BLOCKS_MAX);
}

/* Each thread's first item, and the way to its next one. */
static __device__ __forceinline__ size_t cuda_first() {
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ size_t cuda_stride() {
    return static_cast<size_t>(gridDim.x) * blockDim.x;
}

/* Of all threads of a block, in each of them. It may be called again at once. */
static __device__ __forceinline__ double cuda_block_sum(double own) {
    WEIR_SHARED(double, sums, CUDA_BLOCK);
    __syncthreads();
    sums[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = CUDA_BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

/* The parts of a table that other files have; each fills its own kernels in. */
void weir_cuda_flat(weir_kernels *kernels);
void weir_cuda_optimisers(weir_kernels *kernels);
void weir_cuda_losses(weir_kernels *kernels);
void weir_cuda_gemm(weir_kernels *kernels);
void weir_cuda_layers(weir_kernels *kernels);
void weir_cuda_norms(weir_kernels *kernels);
void weir_cuda_segments(weir_kernels *kernels);
void weir_cuda_turned(weir_kernels *kernels);

/* *sum += the parts, of which there are so many. */
void weir_cuda_add_parts(weir_cuda_context *c, unsigned parts, double *sum);

/* Memory of so many bytes on the device, which the next call may take again: what a kernel leaves for the next one on
 * the stream. NULL: there is none, which is noted, and the caller does nothing. */
void *weir_cuda_scratch(weir_cuda_context *c, size_t bytes);

#endif /* WEIR_INFERENCE_KERNEL_CUDA_CONTEXT_H */
