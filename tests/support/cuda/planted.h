/* SPDX-License-Identifier: Apache-2.0 */
/* planted.h - small programs for the emulated CUDA: right ones, and ones with a fault that has to be found. */
#ifndef WEIR_TEST_CUDA_PLANTED_H
#define WEIR_TEST_CUDA_PLANTED_H

#include <stdbool.h>
#include <stddef.h>

#include "emulator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planted {
    const char *name;
    bool (*run)(void); /* true: what was computed is right; of one with a fault it says nothing */
    emu_kind kind;     /* of its fault */
} planted;

const planted *planted_right(size_t *count);
const planted *planted_faults(size_t *count);
/* True when each call returns what CUDA returns: after a fault, for wrong arguments, without memory. */
bool planted_stays_broken(void);
bool planted_calls_are_refused(void);
bool planted_memory_ends(void);
/* A number that follows from the order in which the threads of a launch came by. */
unsigned planted_order(void);
/* A right one, whose last launch shares nothing. */
bool planted_shares_first(void);
/* Ends the process. */
void planted_host_touches(void *unused);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_CUDA_PLANTED_H */
