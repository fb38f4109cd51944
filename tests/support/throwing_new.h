/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throwing_new.h - C++ finds no memory: from its nth allocation on, counted from now on and on this thread, there is
 * none, as far as operator new can tell. It does what it does in life: it asks the new-handler until that throws, in
 * the middle of whatever the memory is for. Who goes on waiting gets memory after ASKED_MAX times, and all others then.
 * No allocation of C is counted. The operator is in throwing_new.cc, which a test links (tests/CMakeLists.txt).
 */
#ifndef WEIR_TEST_THROWING_NEW_H
#define WEIR_TEST_THROWING_NEW_H

#include <stdbool.h>
#include <stdint.h>

/* Each time the engine's new-handler sleeps for 2 ms, and throws after a second. */
#define THROWING_NEW_ASKED_MAX 1000u

#ifdef __cplusplus
extern "C" {
#endif

void throwing_new_arm(uint64_t nth);
/* There is memory again; returns whether there was none for anything. */
bool throwing_new_disarm(void);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_THROWING_NEW_H */
