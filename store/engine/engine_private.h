/* SPDX-License-Identifier: Apache-2.0 */
/* engine_private.h - what engine.c and writer.c share. */
#ifndef WEIR_STORE_ENGINE_PRIVATE_H
#define WEIR_STORE_ENGINE_PRIVATE_H

#include <rocksdb/c.h>

#include <weir/store/engine.h>

struct weir_engine {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *point;
    char *folder;
    bool read_only;
    uint64_t next_file; /* [owner] number of the next sorted file */
};

/* Takes RocksDB's message over and makes an error of it; NULL is success. */
weir_err weir_engine_error(const weir_engine *engine, const char *what, char *message);

#endif /* WEIR_STORE_ENGINE_PRIVATE_H */
