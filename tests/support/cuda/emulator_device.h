/* SPDX-License-Identifier: Apache-2.0 */
/* emulator_device.h - what cuda_runtime.h makes the words of a kernel of. Only a thread of a kernel may call these. */
#ifndef WEIR_TEST_CUDA_EMULATOR_DEVICE_H
#define WEIR_TEST_CUDA_EMULATOR_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All threads of the block, or all lanes of the mask, make the same call. */
enum { EMU_BARRIER, EMU_BARRIER_OR, EMU_BARRIER_AND, EMU_BARRIER_COUNT };
enum { EMU_WARP_SYNC = 8, EMU_WARP_BALLOT, EMU_WARP_ANY, EMU_WARP_ALL, EMU_WARP_SHUFFLE };
enum { EMU_SHUFFLE_FROM, EMU_SHUFFLE_UP, EMU_SHUFFLE_DOWN, EMU_SHUFFLE_XOR };
enum {
    EMU_ATOMIC_ADD,
    EMU_ATOMIC_ADD_FLOAT,
    EMU_ATOMIC_ADD_DOUBLE,
    EMU_ATOMIC_MAX,
    EMU_ATOMIC_MIN,
    EMU_ATOMIC_MAX_SIGNED, /* of 4 bytes */
    EMU_ATOMIC_MIN_SIGNED,
    EMU_ATOMIC_OR,
    EMU_ATOMIC_AND,
    EMU_ATOMIC_EXCHANGE,
    EMU_ATOMIC_COMPARE
};

typedef struct emu_index {
    uint32_t x, y, z;
} emu_index;

emu_index emu_thread_index(void);
emu_index emu_block_index(void);
emu_index emu_block_size(void);
emu_index emu_grid_size(void);

uint64_t emu_barrier(int call, uint64_t offer);
uint64_t emu_warp(int call, uint32_t mask, uint64_t offer);
uint64_t emu_shuffle(int how, uint32_t mask, uint64_t offer, int argument, int width);
uint32_t emu_active_mask(void);
/* The array that belongs to site, an address that stands for one place in one kernel. */
void *emu_shared(const void *site, size_t bytes, size_t alignment);
void *emu_shared_dynamic(void);
/* What was there before, in the low bytes. */
uint64_t emu_atomic(int how, void *memory, size_t bytes, uint64_t value, uint64_t compare);

/* Looked at as what they are made of: a call of the C library has no hooks. */
void *emu_memcpy(void *to, const void *from, size_t bytes);
void *emu_memmove(void *to, const void *from, size_t bytes);
void *emu_memset(void *to, int value, size_t bytes);

/* The host's. parameters are had by the emulator, which calls destroy when the kernel has run. */
struct emu_stream;
void emu_launch(const char *name, const uint32_t grid[3], const uint32_t block[3], size_t shared_bytes,
                struct emu_stream *stream, void (*call)(const void *parameters),
                void (*destroy)(const void *parameters), const void *parameters, size_t parameter_bytes);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_CUDA_EMULATOR_DEVICE_H */
