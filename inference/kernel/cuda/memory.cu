/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.cu - contexts of a device, and its memory. A copy to the device goes through page-locked memory, at the bus's
 * speed and without a wait; one to the host waits for the stream, so that it has ended on return.
 */
#include <string.h>

#include <weir/store/base/alloc.h>

#include "context.h"
#include "cuda.h"

#define CUDA_ALIGNMENT 64u /* of what is staged */

/* The next kernel of this thread is not to be blamed for it. */
static weir_err memory_err(cudaError_t error, const char *what) {
    (void)cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
        return WEIR_NOMEM("on the GPU, for %s; lower the batch or the fan-outs", what);
    return WEIR_ERR(WEIR_EIO, "the GPU failed in %s: %s", what, cudaGetErrorString(error));
}

static weir_err cuda_alloc(const weir_kernels *k, size_t bytes, void **memoryp) {
    (void)cuda_context_of(k);
    *memoryp = NULL;
    const cudaError_t error = cudaMalloc(memoryp, bytes ? bytes : 1);
    if (error == cudaSuccess) return WEIR_OK;
    *memoryp = NULL;
    if (error != cudaErrorMemoryAllocation) return memory_err(error, "an allocation");
    (void)cudaGetLastError();
    return WEIR_NOMEM("on the GPU for %zu bytes of the network; lower the batch or the fan-outs", bytes);
}

/* By any thread, so that the context keeps nothing of it: what fails here fails in the kernels that follow, too. */
static void cuda_release(const weir_kernels *k, void *memory) {
    (void)cuda_context_of(k);
    if (memory && cudaFree(memory) != cudaSuccess) (void)cudaGetLastError();
}

/* The next piece, once what was copied out of it has ended. */
static void memory_turn_stage(weir_cuda_context *c) {
    cuda_note(c, cudaEventRecord(c->staged[c->stage_piece], c->stream), "a copy to the GPU");
    c->stage_piece = (c->stage_piece + 1) % CUDA_STAGE_PIECES;
    c->stage_used = 0;
    const cudaError_t ended = cudaEventQuery(c->staged[c->stage_piece]);
    if (ended != cudaErrorNotReady) {
        cuda_note(c, ended, "a copy to the GPU");
        return;
    }
    (void)cudaGetLastError();
    cuda_note(c, cudaEventSynchronize(c->staged[c->stage_piece]), "a copy to the GPU");
}

static void cuda_to_device(const weir_kernels *k, void *to, const void *host, size_t bytes) {
    weir_cuda_context *c = cuda_context_of(k);
    for (size_t done = 0, some; done < bytes; done += some) {
        if (c->stage_used >= CUDA_STAGE_BYTES) memory_turn_stage(c);
        const size_t room = CUDA_STAGE_BYTES - c->stage_used;
        uint8_t *stage = c->stage + c->stage_piece * CUDA_STAGE_BYTES + c->stage_used;
        some = bytes - done < room ? bytes - done : room;
        memcpy(stage, static_cast<const uint8_t *>(host) + done, some);
        WEIR_HOST_WROTE(stage, some);
        cuda_note(c, cudaMemcpyAsync(static_cast<uint8_t *>(to) + done, stage, some, cudaMemcpyHostToDevice, c->stream),
                  "a copy to the GPU");
        c->stage_used += (some + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
    }
}

static void cuda_to_host(const weir_kernels *k, void *host, const void *from, size_t bytes) {
    weir_cuda_context *c = cuda_context_of(k);
    if (bytes == 0) return;
    cuda_note(c, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, c->stream), "a copy from the GPU");
    cuda_note(c, cudaStreamSynchronize(c->stream), "a copy from the GPU");
}

static void cuda_zero(const weir_kernels *k, void *memory, size_t bytes) {
    weir_cuda_context *c = cuda_context_of(k);
    if (bytes) cuda_note(c, cudaMemsetAsync(memory, 0, bytes, c->stream), "zero");
}

static void cuda_copy(const weir_kernels *k, void *to, const void *from, size_t bytes) {
    weir_cuda_context *c = cuda_context_of(k);
    if (bytes) cuda_note(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c->stream), "copy");
}

static weir_err cuda_finish(const weir_kernels *k) {
    weir_cuda_context *c = cuda_context_of(k);
    cuda_note(c, cudaStreamSynchronize(c->stream), "finish");
    const cudaError_t error = c->error;
    c->error = cudaSuccess;
    return error == cudaSuccess ? WEIR_OK : memory_err(error, c->what);
}

/* What is on the stream may still work on the old one. */
void *weir_cuda_scratch(weir_cuda_context *c, size_t bytes) {
    if (bytes <= c->scratch_bytes) return c->scratch;
    if (c->scratch) {
        cuda_note(c, cudaStreamSynchronize(c->stream), "scratch memory");
        cuda_note(c, cudaFree(c->scratch), "scratch memory");
    }
    c->scratch = NULL;
    c->scratch_bytes = 0;
    const cudaError_t error = cudaMalloc(&c->scratch, bytes);
    cuda_note(c, error, "scratch memory");
    if (error == cudaSuccess)
        c->scratch_bytes = bytes;
    else
        c->scratch = NULL;
    return c->scratch;
}

static void cuda_close(const weir_kernels *k) {
    weir_cuda_context *c = cuda_context_of(k);
    if (c->stream) {
        (void)cudaStreamSynchronize(c->stream);
        (void)cudaStreamDestroy(c->stream);
    }
    if (c->parts) (void)cudaFree(c->parts);
    if (c->scratch) (void)cudaFree(c->scratch);
    for (unsigned i = 0; i < CUDA_STAGE_PIECES; i++)
        if (c->staged[i]) (void)cudaEventDestroy(c->staged[i]);
    if (c->stage) (void)cudaFreeHost(c->stage);
    weir_free(c);
}

static weir_err memory_open(const weir_kernels *table, int device, const weir_kernels **kernelsp) {
    *kernelsp = NULL;
    weir_cuda_context *c = static_cast<weir_cuda_context *>(weir_calloc(1, sizeof *c));
    if (!c) return WEIR_NOMEM("for a context of the GPU");
    c->kernels = *table;
    c->device = device;
    cudaError_t error = cudaSetDevice(device);
    void *parts = NULL, *stage = NULL;
    if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaMalloc(&parts, CUDA_BLOCKS_MAX * sizeof(double));
    c->parts = static_cast<double *>(parts);
    if (error == cudaSuccess) error = cudaMallocHost(&stage, CUDA_STAGE_PIECES * CUDA_STAGE_BYTES);
    c->stage = static_cast<uint8_t *>(stage);
    for (unsigned i = 0; error == cudaSuccess && i < CUDA_STAGE_PIECES; i++)
        error = cudaEventCreateWithFlags(&c->staged[i], cudaEventDisableTiming);
    if (error != cudaSuccess) {
        cuda_close(&c->kernels);
        return memory_err(error, "a context");
    }
    *kernelsp = &c->kernels;
    return WEIR_OK;
}

static weir_err cuda_open(const weir_kernels *k, const weir_kernels **otherp) {
    return memory_open(k, cuda_context_of(k)->device, otherp);
}

const char *const weir_cuda_sum = WEIR_KERNELS_SUM;

weir_err weir_cuda_open(uint32_t number, const weir_kernels **kernelsp) {
    weir_kernels table = {};
    table.name = "cuda";
    table.open = cuda_open;
    table.close = cuda_close;
    table.alloc = cuda_alloc;
    table.release = cuda_release;
    table.to_device = cuda_to_device;
    table.to_host = cuda_to_host;
    table.zero = cuda_zero;
    table.copy = cuda_copy;
    table.finish = cuda_finish;
    weir_cuda_flat(&table);
    weir_cuda_optimisers(&table);
    weir_cuda_losses(&table);
    weir_cuda_gemm(&table);
    weir_cuda_layers(&table);
    weir_cuda_norms(&table);
    weir_cuda_segments(&table);
    weir_cuda_turned(&table);
    int devices = 0;
    *kernelsp = NULL;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0) {
        (void)cudaGetLastError();
        return WEIR_ERR(WEIR_EUNAVAILABLE, "CUDA finds no GPU: %s",
                        found == cudaSuccess ? "there is none" : cudaGetErrorString(found));
    }
    return memory_open(&table, static_cast<int>(number % static_cast<uint32_t>(devices)), kernelsp);
}
