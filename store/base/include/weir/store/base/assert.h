/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assert.h - assertions that stay on in every build.
 *
 * For our own mistakes only, never for what a file, a network peer or a user says. Cite the invariant, by its module:
 *     WEIR_ASSERT(count <= queue->capacity); // BASE-Q2
 *
 * The only assertion of the product: assert(3) would be gone from a release build.
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
