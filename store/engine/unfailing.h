/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unfailing.h - calls of RocksDB that never return without memory.
 *
 * RocksDB makes its caches and their entries by posix_memalign and malloc, and has LZ4 make its state, and uses what
 * comes of it without a look. glibc ends the process if it finds no memory to remember what RocksDB wants destroyed at
 * the end of a thread. Nothing can be thrown through either. So the calls out of RocksDB's library, and only those, are
 * led here.
 */
#ifndef WEIR_STORE_ENGINE_UNFAILING_H
#define WEIR_STORE_ENGINE_UNFAILING_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* wait: called while there is no memory, until there is. False: not all of them are led here. Mostly none is, because
 * RocksDB is not a library of its own in this process, or the processor's kind is not known. Once, before RocksDB is
 * called. */
bool weir_unfailing_install(void (*wait)(void));

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ENGINE_UNFAILING_H */
