/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator.h - what a test asks of the emulated CUDA: a seed before, and the findings and the counts after.
 *
 * A .cu file is compiled by the host's compiler with the cuda_runtime.h beside this file and with -fsanitize=thread,
 * whose hooks the emulator defines itself: so it sees each access of a kernel before it is done. Threads are fibres of
 * the calling thread, and work of streams waits until something asks for it; who goes next is drawn from the seed.
 *
 * What is looked for, of each kernel, copy and fill:
 *   - an access that is not wholly in live device memory, page-locked memory, the block's shared arrays, the thread's
 *     own stack or constants of the program, or not at a multiple of its size (as far as 8 bytes);
 *   - a read of device or shared bytes that nothing has written;
 *   - two accesses of the same bytes that nothing orders, one of them a write, not both atomic: by two threads of a
 *     block, two blocks of a launch, two streams, or a stream and the host;
 *   - a barrier that not all threads of the block reach, a warp's call with a mask that is not those who call.
 *
 * It is stricter than CUDA in this: a lane that the block does not have, or that has returned, does not answer a mask
 * that names it; a copy to the host reads, so what it copies has to be written; a warp's threads are ordered by nothing
 * but the calls that name them; what cudaMemcpy brought from memory that can be paged out is on the device when its own
 * stream goes on, not when the call returns, as CUDA's manual has it.
 *
 * What it does not see:
 *   - accesses of code that was compiled without the hooks, unless it says them by emu_host_reads and emu_host_writes;
 *     device memory, which the host cannot reach, is the exception: touching it ends the process;
 *   - order by __threadfence and flags: a right kernel that relies on it has a finding. Blocks run one after another,
 *     so one that waits for another does so for ever;
 *   - the older of two threads that used different bytes of the same 4, and of two streams that read: a race with it
 *     may be missed;
 *   - which of several threads of the host it was: they are one. With several, a seed does not repeat an order;
 *   - types of 16 bytes at a multiple of 8, which CUDA refuses.
 */
#ifndef WEIR_TEST_CUDA_EMULATOR_H
#define WEIR_TEST_CUDA_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum emu_kind {
    EMU_OUT_OF_BOUNDS,
    EMU_HOST_MEMORY,
    EMU_FREED_MEMORY,
    EMU_MISALIGNED,
    EMU_UNINITIALISED,
    EMU_RACE_IN_BLOCK,
    EMU_RACE_BETWEEN_BLOCKS,
    EMU_RACE_BETWEEN_STREAMS,
    EMU_RACE_WITH_HOST,
    EMU_WRONG_MASK,
    EMU_DIVERGENT_BARRIER,
    EMU_SHARED_TOO_LARGE,
    EMU_KINDS
} emu_kind;

#define EMU_HOST UINT32_MAX /* the block and the thread of what no kernel did */

/* The first of its kind in one launch or copy; those after it are not listed. */
typedef struct emu_finding {
    emu_kind kind;
    const char *name;       /* of the kernel or of the function that was called */
    const char *space;      /* "device", "pinned", "shared", or "" for memory of none of them */
    uint32_t block, thread; /* x is the fastest */
    uint32_t other;      /* of a race: the other's thread, block or stream, as the kind says; EMU_HOST: one of many */
    uint32_t allocation; /* the nearest one: from 1 in the order of allocation since emu_reset, 0 without one */
    int64_t offset;      /* of the access from its first byte */
    size_t bytes;
    bool writes;
    const void *place; /* in the code of the kernel */
} emu_finding;

typedef struct emu_counted {
    uint64_t launches, copies, fills;
    uint64_t syncs; /* the host waited: for a stream, an event, the device or a copy */
    uint64_t allocations, frees, live_bytes;
    uint64_t bytes_to_device, bytes_to_host, bytes_on_device; /* of copies */
} emu_counted;

/* Forgets all memory, streams, events, findings and counts. What is drawn from now on follows from seed. */
void emu_reset(uint64_t seed);
/* Live until the next emu_reset or finding. */
const emu_finding *emu_findings(size_t *count);
const char *emu_kind_name(emu_kind kind);
/* Of this kind there is at least one. */
bool emu_found(emu_kind kind);
/* Writes a line each to stderr. */
void emu_print_findings(void);
emu_counted emu_counts(void);
/* The memory that the device has; 1 GiB after emu_reset. */
void emu_limit(size_t bytes);
/* What code without hooks does with page-locked memory; elsewhere it is nothing to look at. */
void emu_host_reads(const void *memory, size_t bytes);
void emu_host_writes(const void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_CUDA_EMULATOR_H */
