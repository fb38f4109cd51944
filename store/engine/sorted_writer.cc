/* SPDX-License-Identifier: Apache-2.0 */
/* sorted_writer.cc - see sorted_writer.hh. */
#include "sorted_writer.hh"

#include <utility>

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <weir/store/base/bytes.h>

std::string sorted_unique_name() {
    constexpr size_t length = 24; /* at most */
    std::string session;
    for (char digit : rocksdb::Env::Default()->GenerateUniqueId())
        if (weir_hex_digit(digit) >= 0 && session.size() < length)
            session.push_back("0123456789ABCDEF"[weir_hex_digit(digit)]);
    return session;
}

namespace {

/* What RocksDB asks for in a file that comes in: how old it is as a kind of file, and room for its records' number,
 * which stays 0 there. */
void say_that_it_comes_in(rocksdb::UserCollectedProperties *said) {
    constexpr char version = 2;
    (*said)["rocksdb.external_sst_file.version"] = std::string(1, version) + std::string(sizeof(uint32_t) - 1, 0);
    (*said)["rocksdb.external_sst_file.global_seqno"] = std::string(sizeof(uint64_t), 0);
}

} // namespace

weir_err SortedWriter::open(const std::string &path) {
    weir_blocks_writer *writer = nullptr;
    weir_err err = weir_blocks_writer_open(path.c_str(), use_ != taken, &writer);
    writer_.reset(writer);
    for (const auto &factory : options_.table_properties_collector_factories)
        collectors_.emplace_back(factory->CreateTablePropertiesCollector({}));
    return err;
}

weir_err SortedWriter::ended() const {
    return WEIR_ERR(WEIR_EIO, "a sorted file that was ended, or never begun, takes nothing more");
}

weir_err SortedWriter::add(const rocksdb::Slice &key, uint64_t sequence, const rocksdb::Slice &value) {
    if (!writer_) return ended();
    for (const auto &collector : collectors_)
        (void)collector->AddUserKey(key, value, rocksdb::kEntryPut, sequence, 0);
    return weir_blocks_writer_add(writer_.get(), key.data(), key.size(), sequence, value.data(), value.size());
}

weir_err SortedWriter::finish(uint64_t *bytes, uint32_t *crc) {
    using Names = rocksdb::TablePropertiesNames;
    const auto *table = options_.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    rocksdb::UserCollectedProperties said;
    weir_err err = WEIR_OK;
    if (!writer_) return ended();
    const auto writer = std::move(writer_);
    const auto collectors = std::move(collectors_);
    for (const auto &collector : collectors)
        (void)collector->Finish(&said);
    said[Names::kComparator] = options_.comparator->Name();
    said[Names::kPrefixExtractorName] = options_.prefix_extractor->AsString();
    said[Names::kFilterPolicy] = table->filter_policy->Name();
    said[Names::kCompression] = "NoCompression";
    said[Names::kColumnFamilyName] = rocksdb::kDefaultColumnFamilyName;
    said[Names::kColumnFamilyId] = std::string(1, 0);
    /* RocksDB tells blocks in its cache apart by the session that has written a file, and the file's number in that. A
     * reader of single files has neither, and takes all for one. So each file is of a session of its own. */
    said[Names::kDbId] = "Weir";
    said[Names::kDbSessionId] = sorted_unique_name();
    said[Names::kOriginalFileNumber] = std::string(1, 1);
    if (use_ != merged) say_that_it_comes_in(&said);
    for (const auto &one : said)
        if (!err)
            err = weir_blocks_writer_property(writer.get(), one.first.c_str(), one.second.data(), one.second.size());
    return err ? err : weir_blocks_writer_finish(writer.get(), bytes, crc);
}
