/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_filters.cc - the same by RocksDB alone: see rocks_filters.h. */
#include "rocks_filters.h"

#include <memory>

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>

int64_t rocks_filters(const char *folder, size_t prefix, const uint8_t *keys, size_t length, size_t count,
                      uint64_t *askedp, uint64_t *savedp) {
    rocksdb::Options options;
    rocksdb::BlockBasedTableOptions table;
    rocksdb::DB *opened = nullptr;
    rocksdb::ReadOptions read;
    int64_t found = 0;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.whole_key_filtering = false;
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(prefix));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.statistics = rocksdb::CreateDBStatistics();
    read.prefix_same_as_start = true;
    if (!rocksdb::DB::OpenForReadOnly(options, folder, &opened).ok()) return -1;
    const std::unique_ptr<rocksdb::DB> db(opened);
    if (!db->VerifyChecksum().ok()) return -1;
    const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(read));
    for (size_t i = 0; i < count; i++) {
        const rocksdb::Slice key(reinterpret_cast<const char *>(keys) + i * length, length);
        at->Seek(key);
        if (!at->status().ok()) return -1;
        found += at->Valid() && at->key() == key;
    }
    *askedp = options.statistics->getTickerCount(rocksdb::BLOOM_FILTER_PREFIX_CHECKED);
    *savedp = options.statistics->getTickerCount(rocksdb::BLOOM_FILTER_PREFIX_USEFUL);
    return found;
}
