/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assert.h - assertions that stay on in every build.
 *
 * For our own mistakes only, never for a file, a network peer or a user. Cite the invariant:
 *     WEIR_ASSERT(offset >= log->offset_next); // I1
 */
#ifndef WEIR_STORE_BASE_ASSERT_H
#define WEIR_STORE_BASE_ASSERT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Prints the failed condition with its place to stderr and aborts.  [any] */
void weir_assert_fail(const char *condition, const char *file, int line, const char *function)
    __attribute__((noreturn, cold));

#define WEIR_ASSERT(condition) ((condition) ? (void)0 : weir_assert_fail(#condition, __FILE__, __LINE__, __func__))

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_ASSERT_H */
