/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorted_writer.hh - one sorted file as a database of ours wants it: what blocks_writer.h writes, with all that RocksDB
 * and sorted.hh look for in its properties.
 *
 * RocksDB's own writer takes twice as long. It writes what RocksDB merges or flushes itself.
 */
#ifndef WEIR_STORE_ENGINE_SORTED_WRITER_HH
#define WEIR_STORE_ENGINE_SORTED_WRITER_HH

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/table_properties.h>

#include <weir/store/base/err.h>

#include "blocks_writer.h"

/* Digits of base 36, as RocksDB names a session of a database; those of no other. */
std::string sorted_session_new();

class SortedWriter {
  public:
    enum Use {
        merged,        /* of a merge: index and filter are in parts           */
        taken,         /* to be taken in; its records get one number then     */
        taken_in_parts /* and it is large                                    */
    };
    /* options: those of the database, borrowed. */
    SortedWriter(const rocksdb::Options &options, Use use) : options_(options), use_(use) {}
    /* Calls and errors are those of blocks_writer.h. After finish, whatever comes of it, nothing is kept, and only
     * finish may be called again, which fails then. */
    weir_err open(const std::string &path);
    weir_err add(const rocksdb::Slice &key, uint64_t sequence, const rocksdb::Slice &value);
    uint64_t bytes() const {
        return weir_blocks_writer_bytes(writer_.get());
    }
    weir_err finish(uint64_t *bytes, uint32_t *crc);

  private:
    struct Close {
        void operator()(weir_blocks_writer *writer) const {
            weir_blocks_writer_close(writer);
        }
    };
    const rocksdb::Options &options_;
    const Use use_;
    std::unique_ptr<weir_blocks_writer, Close> writer_;
    std::vector<std::unique_ptr<rocksdb::TablePropertiesCollector>> collectors_;
};

#endif /* WEIR_STORE_ENGINE_SORTED_WRITER_HH */
