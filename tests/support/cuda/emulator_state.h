/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator_state.h - what the files of the emulator share: who accesses memory, and what is kept of each byte.
 *
 *   emulator.cc         the calls of the host: streams, events, copies, launches
 *   emulator_memory.cc  allocations, what was written, who touched what last
 *   emulator_block.cc   the threads of a block and what they wait for
 *   emulator_hooks.cc   what the compiler calls at each access
 */
#ifndef WEIR_TEST_CUDA_EMULATOR_STATE_H
#define WEIR_TEST_CUDA_EMULATOR_STATE_H

#include <cstdint>
#include <vector>

#include "emulator.h"

namespace emu {

constexpr unsigned warp_lanes = 32, threads_max = 1024;
constexpr size_t shared_max = 48 * 1024;

/* Each stream, and the host, counts what it does; a clock says how far its owner knows each of them. */
typedef std::vector<uint32_t> clock_vector;

/* Something that touches memory: a launch, a copy, a fill, or what the host did between two calls. */
struct operation {
    uint32_t slot, turn; /* whose, and its count there */
    const char *name;
};

/* One thread of a kernel, or a copy, or the host. */
struct actor {
    uint32_t operation = 0;
    const clock_vector *clock = nullptr;
    bool in_kernel = false;
    uint32_t block = EMU_HOST, thread = EMU_HOST;
    uint32_t epoch = 0; /* how many barriers of its block it has passed */
    uint32_t time = 0;  /* which meeting of its warp it came from last */
    /* Of each lane of its warp: what was done there up to this time comes before what it does now. */
    const uint32_t *known = nullptr;
};

enum access : unsigned { READS = 1, WRITES = 2, ATOMIC = 4, UNCHECKED = 8 /* of whether it was written */ };

struct generator {
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }
    uint32_t below(uint32_t bound) {
        return static_cast<uint32_t>(((next() >> 32) * bound) >> 32);
    }
};

extern generator draw;

/* --- emulator_memory.cc --- */

enum space { DEVICE, PINNED, SHARED, SPACES };

struct block_of_memory {
    uintptr_t start;
    size_t bytes;
    bool freed;
};

void memory_reset();
uint32_t operation_new(const operation &made);
const operation &operation_of(uint32_t number);
/* 0 when the space has no room left. */
uintptr_t memory_take(space in, size_t bytes);
/* The bytes it had; false when nothing that lives begins there. */
bool memory_give(space in, uintptr_t start, size_t *bytesp);
/* SPACES: none of them. */
space space_of(uintptr_t address);
/* False, with a finding, when not all of it is live. What else is wrong is a finding and no more. */
bool touch(const actor &who, space in, uintptr_t address, size_t bytes, unsigned mode);
/* The bytes at to are written where those at from are. */
void carry_written(uintptr_t to, uintptr_t from, size_t bytes);
/* Kernels and copies reach device memory between the two; the calls nest. */
void device_open();
void device_close();
/* The arrays of a block that has ended are gone. */
void shared_begin();
uintptr_t shared_take(size_t bytes, size_t alignment);
bool is_constant(uintptr_t address, size_t bytes);
void tell(emu_kind kind, const actor &who, space in, uintptr_t address, size_t bytes, unsigned mode, uint32_t other);

/* --- emulator_block.cc --- */

struct launch {
    const char *name;
    uint32_t grid[3], block[3];
    size_t shared_bytes;
    void (*call)(const void *parameters);
    const void *parameters;
    size_t parameter_bytes;
};

/* False when it was abandoned. */
bool launch_run(const launch &wanted, uint32_t number, const clock_vector &clock);
void block_reset();

/* Where the code is that made the last access. */
extern thread_local const void *access_place __attribute__((tls_model("initial-exec")));
struct fibre;
extern thread_local fibre *running __attribute__((tls_model("initial-exec")));
/* An access of the thread that runs, which is told and abandoned with its launch when it may not be. */
void kernel_touch(uintptr_t address, size_t bytes, unsigned mode);
[[noreturn]] void kernel_misaligned(uintptr_t address, size_t bytes, unsigned mode);
bool on_own_stack(uintptr_t address, size_t bytes);

/* --- emulator.cc --- */

void host_touch(uintptr_t address, size_t bytes, unsigned mode);

} // namespace emu

#endif /* WEIR_TEST_CUDA_EMULATOR_STATE_H */
