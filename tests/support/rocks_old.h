/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_old.h - a database as it was when RocksDB wrote all files of a store. */
#ifndef WEIR_TEST_ROCKS_OLD_H
#define WEIR_TEST_ROCKS_OLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* false: this one is passed over. */
typedef bool (*rocks_old_record)(void *context, size_t at, const void **key, size_t *key_length, const void **value,
                                 size_t *value_length);
/* Adds the records [begin, end), which rise, to the database in the folder: of every third file by a memtable, of the
 * others by a file whose number is written into it. compressed: by LZ4. 0: well. */
int rocks_old(const char *folder, bool compressed, uint32_t file, size_t begin, size_t end, rocks_old_record record,
              void *context);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_ROCKS_OLD_H */
