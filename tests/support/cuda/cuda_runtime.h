/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_runtime.h - the part of CUDA that our kernels use, for a compiler of the host: see emulator.h.
 *
 * Found in place of NVIDIA's by the include path. What is not here does not compile, which is how a kernel that needs
 * more of CUDA says so. __shared__ and <<<>>> are never here: launch.h has the words for both.
 */
#ifndef WEIR_TEST_CUDA_RUNTIME_H
#define WEIR_TEST_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "emulator.h"
#include "emulator_device.h"

/* Names that are CUDA's. NOLINTBEGIN(bugprone-reserved-identifier) */
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

/* --- the words of launch.h ------------------------------------------------------------------------------------ */

/* The stream is the first of the rest, so that no list is empty. */
#define WEIR_LAUNCH(kernel, grid, block, shared_bytes, ...) \
    emu_launch_kernel(#kernel, kernel, grid, block, shared_bytes, __VA_ARGS__)
#define WEIR_SHARED(type, name, count) \
    static const char name##_site = 0; \
    type(&name)[count] =               \
        *static_cast<emu_array_of<type, (count)> *>(emu_shared(&name##_site, sizeof(type) * (count), alignof(type)))
#define WEIR_SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(emu_shared_dynamic())
#define WEIR_HOST_WROTE(memory, bytes)  emu_host_writes((memory), (bytes))

template <typename Element, size_t count> using emu_array_of = Element[count];

/* --- types ---------------------------------------------------------------------------------------------------- */

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

inline int2 make_int2(int x, int y) {
    return {x, y};
}
inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}

/* --- where a thread is ---------------------------------------------------------------------------------------- */

#define threadIdx (emu_thread_index())
#define blockIdx  (emu_block_index())
#define blockDim  (emu_block_size())
#define gridDim   (emu_grid_size())
constexpr int warpSize = 32;

/* --- what threads do together --------------------------------------------------------------------------------- */

inline void __syncthreads() {
    emu_barrier(EMU_BARRIER, 0);
}
inline int __syncthreads_or(int predicate) {
    return static_cast<int>(emu_barrier(EMU_BARRIER_OR, predicate != 0));
}
inline int __syncthreads_and(int predicate) {
    return static_cast<int>(emu_barrier(EMU_BARRIER_AND, predicate != 0));
}
inline int __syncthreads_count(int predicate) {
    return static_cast<int>(emu_barrier(EMU_BARRIER_COUNT, predicate != 0));
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU) {
    emu_warp(EMU_WARP_SYNC, mask, 0);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return static_cast<unsigned>(emu_warp(EMU_WARP_BALLOT, mask, predicate != 0));
}
inline int __any_sync(unsigned mask, int predicate) {
    return static_cast<int>(emu_warp(EMU_WARP_ANY, mask, predicate != 0));
}
inline int __all_sync(unsigned mask, int predicate) {
    return static_cast<int>(emu_warp(EMU_WARP_ALL, mask, predicate != 0));
}
inline unsigned __activemask() {
    return emu_active_mask();
}
inline void __threadfence() {}
inline void __threadfence_block() {}

/* The bits of a number of 4 or 8 bytes, and the number that has them. */
template <size_t bytes> struct emu_word { typedef uint32_t type; };
template <> struct emu_word<8> { typedef uint64_t type; };
template <typename Number> uint64_t emu_bits(Number value) {
    static_assert(std::is_arithmetic<Number>::value && (sizeof value == 4 || sizeof value == 8), "a number");
    return __builtin_bit_cast(typename emu_word<sizeof(Number)>::type, value);
}
template <typename Number> Number emu_number(uint64_t bits) {
    return __builtin_bit_cast(Number, static_cast<typename emu_word<sizeof(Number)>::type>(bits));
}

template <typename Number> Number __shfl_sync(unsigned mask, Number value, int lane, int width = warpSize) {
    return emu_number<Number>(emu_shuffle(EMU_SHUFFLE_FROM, mask, emu_bits(value), lane, width));
}
template <typename Number> Number __shfl_up_sync(unsigned mask, Number value, unsigned delta, int width = warpSize) {
    return emu_number<Number>(emu_shuffle(EMU_SHUFFLE_UP, mask, emu_bits(value), static_cast<int>(delta & 63), width));
}
template <typename Number> Number __shfl_down_sync(unsigned mask, Number value, unsigned delta, int width = warpSize) {
    return emu_number<Number>(
        emu_shuffle(EMU_SHUFFLE_DOWN, mask, emu_bits(value), static_cast<int>(delta & 63), width));
}
template <typename Number> Number __shfl_xor_sync(unsigned mask, Number value, int lanes, int width = warpSize) {
    return emu_number<Number>(emu_shuffle(EMU_SHUFFLE_XOR, mask, emu_bits(value), lanes & 31, width));
}

/* --- arithmetic ----------------------------------------------------------------------------------------------- */

inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}
inline int __popcll(unsigned long long bits) {
    return __builtin_popcountll(bits);
}
inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}
inline int __clz(int bits) {
    return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits));
}
template <typename Value> Value __ldg(const Value *memory) {
    return *memory;
}
inline int __float_as_int(float value) {
    return __builtin_bit_cast(int, value);
}
inline unsigned __float_as_uint(float value) {
    return __builtin_bit_cast(unsigned, value);
}
inline float __int_as_float(int bits) {
    return __builtin_bit_cast(float, bits);
}
inline float __uint_as_float(unsigned bits) {
    return __builtin_bit_cast(float, bits);
}
inline float rsqrtf(float value) {
    return 1.0F / sqrtf(value);
}

#define EMU_LEAST_AND_MOST(type)                \
    inline type min(type first, type second) {  \
        return second < first ? second : first; \
    }                                           \
    inline type max(type first, type second) {  \
        return first < second ? second : first; \
    }
EMU_LEAST_AND_MOST(int)
EMU_LEAST_AND_MOST(unsigned)
EMU_LEAST_AND_MOST(long)
EMU_LEAST_AND_MOST(unsigned long)
EMU_LEAST_AND_MOST(long long)
EMU_LEAST_AND_MOST(unsigned long long)
#undef EMU_LEAST_AND_MOST

/* --- atomics -------------------------------------------------------------------------------------------------- */

#define EMU_ATOMIC(name, type, how)                                                         \
    inline type name(type *memory, type value) {                                            \
        return emu_number<type>(emu_atomic(how, memory, sizeof value, emu_bits(value), 0)); \
    }
#define EMU_ATOMIC_COMPARE_OF(type)                                                                    \
    inline type atomicCAS(type *memory, type compare, type value) {                                    \
        return emu_number<type>(                                                                       \
            emu_atomic(EMU_ATOMIC_COMPARE, memory, sizeof value, emu_bits(value), emu_bits(compare))); \
    }
EMU_ATOMIC(atomicAdd, int, EMU_ATOMIC_ADD)
EMU_ATOMIC(atomicAdd, unsigned, EMU_ATOMIC_ADD)
EMU_ATOMIC(atomicAdd, unsigned long long, EMU_ATOMIC_ADD)
EMU_ATOMIC(atomicAdd, float, EMU_ATOMIC_ADD_FLOAT)
EMU_ATOMIC(atomicAdd, double, EMU_ATOMIC_ADD_DOUBLE)
EMU_ATOMIC(atomicMax, int, EMU_ATOMIC_MAX_SIGNED)
EMU_ATOMIC(atomicMax, unsigned, EMU_ATOMIC_MAX)
EMU_ATOMIC(atomicMax, unsigned long long, EMU_ATOMIC_MAX)
EMU_ATOMIC(atomicMin, int, EMU_ATOMIC_MIN_SIGNED)
EMU_ATOMIC(atomicMin, unsigned, EMU_ATOMIC_MIN)
EMU_ATOMIC(atomicMin, unsigned long long, EMU_ATOMIC_MIN)
EMU_ATOMIC(atomicOr, int, EMU_ATOMIC_OR)
EMU_ATOMIC(atomicOr, unsigned, EMU_ATOMIC_OR)
EMU_ATOMIC(atomicOr, unsigned long long, EMU_ATOMIC_OR)
EMU_ATOMIC(atomicAnd, int, EMU_ATOMIC_AND)
EMU_ATOMIC(atomicAnd, unsigned, EMU_ATOMIC_AND)
EMU_ATOMIC(atomicExch, int, EMU_ATOMIC_EXCHANGE)
EMU_ATOMIC(atomicExch, unsigned, EMU_ATOMIC_EXCHANGE)
EMU_ATOMIC(atomicExch, unsigned long long, EMU_ATOMIC_EXCHANGE)
EMU_ATOMIC(atomicExch, float, EMU_ATOMIC_EXCHANGE)
EMU_ATOMIC_COMPARE_OF(int)
EMU_ATOMIC_COMPARE_OF(unsigned)
EMU_ATOMIC_COMPARE_OF(unsigned long long)
#undef EMU_ATOMIC
#undef EMU_ATOMIC_COMPARE_OF

/* --- the host's calls ----------------------------------------------------------------------------------------- */

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719
} cudaError_t;

typedef enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
} cudaMemcpyKind;

enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };

typedef struct emu_stream *cudaStream_t;
typedef struct emu_event *cudaEvent_t;

struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock;
    size_t totalGlobalMem, sharedMemPerBlock;
};

extern "C" {
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaMalloc(void **memoryp, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memoryp, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *streamp, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *eventp, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *countp);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaMemGetInfo(size_t *freep, size_t *totalp);
}

/* As NVIDIA's header has it: a pointer of any type may be filled. */
template <typename Value> cudaError_t cudaMalloc(Value **memoryp, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void **>(memoryp), bytes);
}
template <typename Value> cudaError_t cudaMallocHost(Value **memoryp, size_t bytes) {
    return cudaMallocHost(reinterpret_cast<void **>(memoryp), bytes);
}

template <typename... Parameters, typename... Arguments>
void emu_launch_kernel(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                       cudaStream_t stream, Arguments &&...arguments) {
    typedef std::tuple<void (*)(Parameters...), std::decay_t<Parameters>...> called;
    const called *made = new called(kernel, static_cast<Parameters>(arguments)...);
    const uint32_t grid_sizes[3] = {grid.x, grid.y, grid.z}, block_sizes[3] = {block.x, block.y, block.z};
    emu_launch(
        name, grid_sizes, block_sizes, shared_bytes, stream,
        [](const void *parameters) {
            std::apply([](auto *function, const auto &...values) { function(values...); },
                       *static_cast<const called *>(parameters));
        },
        [](const void *parameters) { delete static_cast<const called *>(parameters); }, made, sizeof *made);
}

#ifndef EMU_INSIDE
#define memcpy(to, from, bytes)  emu_memcpy(to, from, bytes)
#define memmove(to, from, bytes) emu_memmove(to, from, bytes)
#define memset(to, value, bytes) emu_memset(to, value, bytes)
#ifdef __clang__
/* It copies a struct by a call that has no hook; gcc has hooks before the copy. */
asm(".set memcpy, emu_memcpy\n.set memmove, emu_memmove\n.set memset, emu_memset");
#endif
#endif

/* NOLINTEND(bugprone-reserved-identifier) */

#endif /* WEIR_TEST_CUDA_RUNTIME_H */
