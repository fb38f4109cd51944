/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_checksums.h - whether the checksums that a database keeps of its files are those of RocksDB's own generator. */
#ifndef WEIR_TEST_ROCKS_CHECKSUMS_H
#define WEIR_TEST_ROCKS_CHECKSUMS_H

#ifdef __cplusplus
extern "C" {
#endif

/* So many files have the one that RocksDB computes of them; -1: one has not, or the folder cannot be read. */
int rocks_checksums(const char *folder);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TEST_ROCKS_CHECKSUMS_H */
