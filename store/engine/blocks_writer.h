/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_writer.h - writes a sorted file as RocksDB writes one, without it.
 *
 *     data blocks │ filter │ index │ properties │ names │ footer        in_parts: both are several blocks
 *
 * RocksDB, and blocks.h, read it: blocks of 4 KiB that are not compressed, an index of users' keys, and a filter of
 * the prefixes (WEIR_ENGINE_PREFIX_BYTES) of all keys that are as long as that. What it is told to is written as
 * properties, beside those that say how the file is made.
 *
 * A writer belongs to one thread.
 */
#ifndef WEIR_STORE_ENGINE_BLOCKS_WRITER_H
#define WEIR_STORE_ENGINE_BLOCKS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_blocks_writer weir_blocks_writer;

/* RocksDB looks for a filter of prefixes under the name of what makes it. */
#define WEIR_BLOCKS_FILTER_NAME "rocksdb.BuiltinBloomFilter"

/* An old file of that path is overwritten. in_parts: index and filter are, so that a reader of a large file needs not
 * have all of both in memory.  WEIR_ENOMEM; errors of a file. */
weir_err weir_blocks_writer_open(const char *path, bool in_parts, weir_blocks_writer **writerp);
/* A key of 1 to WEIR_BLOCKS_KEY_MAX bytes (an assertion), which is greater than the one before: the caller sees to
 * that.  WEIR_ENOMEM; errors of a file. */
weir_err weir_blocks_writer_add(weir_blocks_writer *writer, const void *key, size_t key_length, uint64_t sequence,
                                const void *value, size_t value_length);
/* Of the file so far; index and filter, which come last, are not among them. */
uint64_t weir_blocks_writer_bytes(const weir_blocks_writer *writer);
/* Before the end; names differ.  WEIR_ENOMEM. */
weir_err weir_blocks_writer_property(weir_blocks_writer *writer, const char *name, const void *value, size_t length);
/* With at least one record. The file is whole and on the disk, and has this CRC-32C. Its folder is not synced.
 * WEIR_ENOMEM; errors of a file. */
weir_err weir_blocks_writer_finish(weir_blocks_writer *writer, uint64_t *bytesp, uint32_t *crcp);
/* NULL is allowed. What is not finished stays as it is. */
void weir_blocks_writer_close(weir_blocks_writer *writer);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ENGINE_BLOCKS_WRITER_H */
