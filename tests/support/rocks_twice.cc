/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_twice.cc - see rocks_twice.h. */
#include "rocks_twice.h"

#include <cstdio>
#include <memory>
#include <string>

#include <rocksdb/db.h>
#include <rocksdb/table.h>

unsigned rocks_twice_key(unsigned number, char *key) {
    return static_cast<unsigned>(snprintf(key, 32, "K%016u%06u", 7u, number));
}

static bool put_all(rocksdb::DB *db, unsigned count, const char *first, const char *others) {
    rocksdb::WriteOptions no_log;
    char key[32];
    no_log.disableWAL = true;
    for (unsigned i = first ? 0 : 1; i < count; i++) {
        const rocksdb::Slice name(key, rocks_twice_key(i, key));
        if (!db->Put(no_log, name, i ? others : first).ok()) return false;
    }
    return true;
}

int rocks_twice(const char *folder, unsigned count) {
    rocksdb::Options options;
    rocksdb::BlockBasedTableOptions table;
    rocksdb::DB *opened = nullptr;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    table.format_version = 5;
    table.block_size = 65536;
    table.checksum = rocksdb::kXXH3;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    if (!rocksdb::DB::Open(options, folder, &opened).ok()) return -1;
    const std::unique_ptr<rocksdb::DB> db(opened);
    if (!put_all(opened, count, "only", "old")) return -1;
    const rocksdb::Snapshot *between = db->GetSnapshot();
    bool done = put_all(opened, count, nullptr, "new") && db->Flush(rocksdb::FlushOptions()).ok();
    db->ReleaseSnapshot(between);
    rocksdb::TablePropertiesCollection files;
    if (!done || !db->GetPropertiesOfAllTables(&files).ok() || files.size() != 1) return -1;
    const rocksdb::TableProperties &file = *files.begin()->second;
    return file.num_data_blocks == 1 ? static_cast<int>(file.num_entries) : -1;
}
