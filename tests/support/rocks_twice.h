/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_twice.h - a sorted file of RocksDB's that has keys twice, because somebody reads as of a moment between. */
#ifndef WEIR_TEST_ROCKS_TWICE_H
#define WEIR_TEST_ROCKS_TWICE_H

#ifdef __cplusplus
extern "C" {
#endif

/* In a new database in this folder: of so many keys, which rocks_twice_key writes, the first has the value "only", and
 * all others "old" and "new". Returns how many entries its one block has; -1: it failed, or there are more blocks. */
int rocks_twice(const char *folder, unsigned count);
/* Returns its length; 32 bytes are enough. */
unsigned rocks_twice_key(unsigned number, char *key);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_ROCKS_TWICE_H */
