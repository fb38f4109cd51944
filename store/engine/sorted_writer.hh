/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorted_writer.hh - one sorted file as a database of ours wants it: what blocks_writer.h writes, with all that RocksDB
 * and sorted.hh look for in its properties.
 *
 * RocksDB's own writer takes twice as long; it still writes what RocksDB flushes or merges itself.
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

/* A name that nothing else has, of digits of base 36, as RocksDB names the sessions of its databases. */
std::string sorted_unique_name();

class SortedWriter {
  public:
    enum Use {
        merged,        /* of a merge: index and filter are in parts           */
        taken,         /* to be taken in; its records get one number then     */
        taken_in_parts /* and it is large                                    */
    };
    /* options: those of the database, borrowed. */
    SortedWriter(const rocksdb::Options &options, Use use) : options_(options), use_(use) {}
    /* Calls and errors are those of blocks_writer.h. After finish, whatever comes of it, nothing is kept: any other call
     * returns WEIR_EIO then. */
    weir_err open(const std::string &path);
    weir_err add(const rocksdb::Slice &key, uint64_t sequence, const rocksdb::Slice &value);
    uint64_t bytes() const {
        return writer_ ? weir_blocks_writer_bytes(writer_.get()) : 0;
    }
    weir_err finish(uint64_t *bytes, uint32_t *crc);

  private:
    weir_err ended() const;

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
