/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_old.cc - by RocksDB alone: see rocks_old.h. */
#include "rocks_old.h"

#include <memory>
#include <string>

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

namespace {

constexpr size_t prefix_bytes = 17, block_bytes = 4096;

rocksdb::Options options_of(bool compressed) {
    rocksdb::Options options;
    rocksdb::BlockBasedTableOptions table;
    table.block_size = block_bytes;
    table.format_version = 5;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.whole_key_filtering = false;
    options.create_if_missing = true;
    options.compression = compressed ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
    options.disable_auto_compactions = true;
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(prefix_bytes));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    return options;
}

template <typename Put>
rocksdb::Status put_all(size_t begin, size_t end, rocks_old_record record, void *context, Put &&put) {
    rocksdb::Status s;
    for (size_t at = begin; s.ok() && at < end; at++) {
        const void *key, *value;
        size_t key_length, value_length;
        if (!record(context, at, &key, &key_length, &value, &value_length) && at > begin) continue;
        s = put(rocksdb::Slice(static_cast<const char *>(key), key_length),
                rocksdb::Slice(static_cast<const char *>(value), value_length));
    }
    return s;
}

} // namespace

int rocks_old(const char *folder, bool compressed, uint32_t file, size_t begin, size_t end, rocks_old_record record,
              void *context) {
    const rocksdb::Options options = options_of(compressed);
    rocksdb::DB *opened = nullptr;
    rocksdb::Status s = rocksdb::DB::Open(options, folder, &opened);
    const std::unique_ptr<rocksdb::DB> db(opened);
    if (!s.ok()) return 1;
    if (file % 3 == 2) {
        s = put_all(begin, end, record, context, [&](const rocksdb::Slice &key, const rocksdb::Slice &value) {
            return db->Put(rocksdb::WriteOptions(), key, value);
        });
        if (s.ok()) s = db->Flush(rocksdb::FlushOptions());
    } else {
        const std::string path = std::string(folder) + "/old.tmp";
        rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
        rocksdb::IngestExternalFileOptions how;
        how.move_files = true;
        s = writer.Open(path);
        if (s.ok())
            s = put_all(begin, end, record, context,
                        [&](const rocksdb::Slice &key, const rocksdb::Slice &value) { return writer.Put(key, value); });
        if (s.ok()) s = writer.Finish();
        if (s.ok()) s = db->IngestExternalFile({path}, how);
    }
    return s.ok() ? 0 : 1;
}
