/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing_malloc.h - what a test and failing_malloc.c, preloaded into a program under test, have in common.
 *
 * $WEIR_TEST_MALLOC is a file of this struct, which both map, and $WEIR_TEST_MALLOC_COMMAND the command of weir that is
 * meant. A site is the calls that lead to an allocation, in the program, its libraries and glibc alike, as a number
 * that does not depend on where those are in memory.
 */
#ifndef WEIR_TEST_FAILING_MALLOC_H
#define WEIR_TEST_FAILING_MALLOC_H

#include <stdatomic.h>
#include <stdint.h>

#define FAILING_MALLOC_SITES (1u << 16) /* a power of two, far more than there are */

typedef struct failing_malloc {
    uint64_t frames;       /* so many calls make a site, the innermost first */
    _Atomic uint64_t site; /* its first allocation finds no memory; 0: all do, and their sites are kept */
    _Atomic uint64_t met;  /* how often that was; 0 or 1 */
    _Atomic uint64_t sites[FAILING_MALLOC_SITES]; /* a hash set; 0: free */
    uint64_t callers[FAILING_MALLOC_SITES];       /* the innermost call of each */
} failing_malloc;

#endif /* WEIR_TEST_FAILING_MALLOC_H */
