/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_filters.h - how many seeks RocksDB's own reader of filters saves in a folder of files. */
#ifndef WEIR_TEST_ROCKS_FILTERS_H
#define WEIR_TEST_ROCKS_FILTERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seeks each of `count` keys of `length` bytes, whose first `prefix` bytes are what filters hold. *askedp: how often a
 * filter was asked; *savedp: how often it said no. Returns how many of the keys are there; -1: the folder cannot be
 * read, or a file of it is not as it was written. */
int64_t rocks_filters(const char *folder, size_t prefix, const uint8_t *keys, size_t length, size_t count,
                      uint64_t *askedp, uint64_t *savedp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_ROCKS_FILTERS_H */
