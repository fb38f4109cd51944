/* SPDX-License-Identifier: Apache-2.0 */
/* rocks_checksums.cc - the same by RocksDB alone: see rocks_checksums.h. */
#include "rocks_checksums.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/file_checksum.h>

int rocks_checksums(const char *folder) {
    rocksdb::Options options;
    rocksdb::DB *opened = nullptr;
    std::vector<rocksdb::LiveFileMetaData> files;
    options.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
    if (!rocksdb::DB::OpenForReadOnly(options, folder, &opened).ok()) return -1;
    const std::unique_ptr<rocksdb::DB> db(opened);
    db->GetLiveFilesMetaData(&files);
    for (const auto &file : files) {
        std::string bytes(file.size, '\0');
        std::ifstream from(folder + file.name, std::ios::binary);
        if (!from.read(&bytes[0], static_cast<std::streamsize>(bytes.size())) || from.get() != EOF) return -1;
        auto sum = options.file_checksum_gen_factory->CreateFileChecksumGenerator({});
        sum->Update(bytes.data(), bytes.size());
        sum->Finalize();
        bool of_merge = file.file_checksum_func_name == rocksdb::kUnknownFileChecksumFuncName;
        std::string kept = file.file_checksum;
        for (int shift = 24; of_merge && shift >= 0; shift -= 8)
            kept.push_back(static_cast<char>(file.oldest_ancester_time >> shift));
        if (bytes.empty() || sum->GetChecksum() != kept) return -1;
        if (!of_merge && sum->Name() != file.file_checksum_func_name) return -1;
    }
    return static_cast<int>(files.size());
}
