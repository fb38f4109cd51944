/* SPDX-License-Identifier: Apache-2.0 */
/* sorted.cc - see sorted.hh. */
#include "sorted.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include <rocksdb/table.h>
#include <rocksdb/table_properties.h>

#include <weir/base/hash.h>
#include <weir/store/engine.h>

namespace {

constexpr char rank_name[] = "weir.rank", last_rank_name[] = "weir.last_rank", filter_name[] = "weir.prefixes";
constexpr size_t rank_bytes = 8, line_bytes = 64;
constexpr unsigned bits_a_prefix = 10, bits_set = 6;
constexpr size_t prefixes_max = 1500000; /* of a filter: less than two megabytes of properties */

/* --- a filter: lines of memory, in one of which a prefix has all of its bits ---------------------------------------- */

size_t filter_line(uint64_t hash, size_t bytes) {
    return static_cast<size_t>((hash >> 32) * (bytes / line_bytes) >> 32) * line_bytes;
}

/* The n-th bit in the line. */
unsigned filter_bit(uint64_t hash, unsigned n) {
    return static_cast<unsigned>((hash * 0x9e3779b97f4a7c15u) >> (9 * n)) & (line_bytes * 8 - 1);
}

std::string filter_of(const std::vector<uint64_t> &hashes) {
    size_t lines = hashes.size() * bits_a_prefix / (line_bytes * 8) + 1;
    std::string filter(lines * line_bytes, 0);
    for (uint64_t hash : hashes) {
        char *line = &filter[filter_line(hash, filter.size())];
        for (unsigned n = 0; n < bits_set; n++) {
            unsigned bit = filter_bit(hash, n);
            line[bit / 8] = static_cast<char>(line[bit / 8] | 1 << bit % 8);
        }
    }
    return filter;
}

bool filter_has(const rocksdb::Slice &filter, uint64_t hash) {
    const char *line = filter.data() + filter_line(hash, filter.size());
    for (unsigned n = 0; n < bits_set; n++) {
        unsigned bit = filter_bit(hash, n);
        if (!(line[bit / 8] >> bit % 8 & 1)) return false;
    }
    return true;
}

/* --- what a file says of itself ------------------------------------------------------------------------------------ */

uint64_t rank_read(const char *bytes) {
    uint64_t rank = 0;
    for (size_t i = 0; i < rank_bytes; i++)
        rank = rank << 8 | static_cast<unsigned char>(bytes[i]);
    return rank;
}

std::string rank_write(uint64_t rank) {
    std::string bytes(rank_bytes, 0);
    for (size_t i = rank_bytes; i > 0; i--, rank >>= 8)
        bytes[i - 1] = static_cast<char>(rank);
    return bytes;
}

/* What it does not say, or in another way, is `unsaid`. */
uint64_t rank_said(const rocksdb::UserCollectedProperties &said, const char *name, uint64_t unsaid) {
    const auto at = said.find(name);
    return at != said.end() && at->second.size() == rank_bytes ? rank_read(at->second.data()) : unsaid;
}

class Digest : public rocksdb::TablePropertiesCollector {
  public:
    Digest(std::shared_ptr<FilterRoom> room, weir_engine_last_rank last_rank)
        : room_(std::move(room)), last_rank_of_(last_rank) {}
    rocksdb::Status AddUserKey(const rocksdb::Slice &key, const rocksdb::Slice &, rocksdb::EntryType,
                               rocksdb::SequenceNumber, uint64_t) override {
        if (key.size() < WEIR_ENGINE_RANK_AT + rank_bytes) return rocksdb::Status::OK();
        rank_ = std::min(rank_, rank_read(key.data() + WEIR_ENGINE_RANK_AT));
        if (last_rank_of_) last_rank_ = std::max(last_rank_, last_rank_of_(key.data(), key.size()));
        if (memcmp(key.data(), last_, sizeof last_) == 0) return rocksdb::Status::OK();
        memcpy(last_, key.data(), sizeof last_);
        if (hashes_.size() <= prefixes_max) hashes_.push_back(sorted_hash(last_));
        return rocksdb::Status::OK();
    }
    rocksdb::Status Finish(rocksdb::UserCollectedProperties *properties) override {
        (*properties)[rank_name] = rank_write(rank_);
        if (last_rank_of_) (*properties)[last_rank_name] = rank_write(last_rank_);
        bool fits = room_->used + hashes_.size() * bits_a_prefix / 8 * 2 <= room_->max;
        if (fits && hashes_.size() <= prefixes_max) (*properties)[filter_name] = filter_of(hashes_);
        return rocksdb::Status::OK();
    }
    rocksdb::UserCollectedProperties GetReadableProperties() const override {
        return {};
    }
    const char *Name() const override {
        return "WeirDigest";
    }

  private:
    std::shared_ptr<FilterRoom> room_;
    std::vector<uint64_t> hashes_;
    weir_engine_last_rank last_rank_of_;
    uint64_t rank_ = UINT64_MAX, last_rank_ = 0;
    char last_[WEIR_ENGINE_PREFIX_BYTES] = {0};
};

class Digests : public rocksdb::TablePropertiesCollectorFactory {
  public:
    Digests(std::shared_ptr<FilterRoom> room, weir_engine_last_rank last_rank)
        : room_(std::move(room)), last_rank_(last_rank) {}
    rocksdb::TablePropertiesCollector *CreateTablePropertiesCollector(
        rocksdb::TablePropertiesCollectorFactory::Context) override {
        return new Digest(room_, last_rank_);
    }
    const char *Name() const override {
        return "WeirDigests";
    }

  private:
    std::shared_ptr<FilterRoom> room_;
    weir_engine_last_rank last_rank_;
};

} // namespace

/* Index and filter of a file that has them whole stay in memory, as the database's own do while it is new. */
rocksdb::Options sorted_options(rocksdb::Options options) {
    rocksdb::BlockBasedTableOptions table = *options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    table.metadata_cache_options.unpartitioned_pinning = rocksdb::PinningTier::kAll;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.listeners.clear();
    return options;
}

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> sorted_digests(std::shared_ptr<FilterRoom> room,
                                                                         weir_engine_last_rank last_rank) {
    return std::make_shared<Digests>(std::move(room), last_rank);
}

uint64_t sorted_hash(const void *prefix) {
    return weir_xxh3(prefix, WEIR_ENGINE_PREFIX_BYTES, 0);
}

/* --- a file -------------------------------------------------------------------------------------------------------- */

SortedFile::SortedFile(const rocksdb::Options &options, std::shared_ptr<FilterRoom> room)
    : reader_(options), room_(std::move(room)) {}

SortedFile::~SortedFile() {
    room_->used -= filter_.size() * 2;
}

/* A file of an older version says nothing: it is the first that is asked, always. */
rocksdb::Status SortedFile::open(const std::string &path, const rocksdb::LiveFileMetaData &file) {
    rocksdb::Status s = reader_.Open(path);
    if (!s.ok()) return s;
    properties_ = reader_.GetTableProperties();
    number_ = file.file_number;
    smallest_ = file.smallestkey;
    largest_ = file.largestkey;
    const auto &said = properties_->user_collected_properties;
    const auto filter = said.find(filter_name);
    rank_ = rank_said(said, rank_name, 0);
    last_rank_ = rank_said(said, last_rank_name, UINT64_MAX);
    if (filter != said.end() && filter->second.size() % line_bytes == 0) filter_ = filter->second;
    room_->used += filter_.size() * 2;
    return s;
}

void SortedFile::ahead(uint64_t hash) const {
    if (is_filtered()) __builtin_prefetch(filter_.data() + filter_line(hash, filter_.size()));
}

bool SortedFile::may_have(const rocksdb::Slice &prefix, uint64_t hash) const {
    size_t low = std::min(prefix.size(), smallest_.size());
    if (memcmp(smallest_.data(), prefix.data(), low) > 0) return false;
    if (prefix.compare(largest_) > 0) return false;
    return !is_filtered() || filter_has(filter_, hash);
}

/* Who has asked the filter here needs no other. */
rocksdb::Iterator *SortedFile::iterator(const rocksdb::ReadOptions &options) const {
    rocksdb::ReadOptions own = options;
    own.total_order_seek = is_filtered();
    own.prefix_same_as_start = !is_filtered();
    return reader_.NewIterator(own);
}

/* --- all of them --------------------------------------------------------------------------------------------------- */

static std::shared_ptr<const SortedFile> file_of(const SortedFiles *files, uint64_t number) {
    for (size_t i = 0; files && i < files->size(); i++)
        if ((*files)[i]->number() == number) return (*files)[i];
    return nullptr;
}

rocksdb::Status sorted_files(rocksdb::DB *db, const rocksdb::Options &options, std::shared_ptr<FilterRoom> room,
                             const SortedFiles *before, std::shared_ptr<const SortedFiles> *files) {
    std::vector<rocksdb::LiveFileMetaData> live;
    auto found = std::make_shared<SortedFiles>();
    rocksdb::Status s;
    db->GetLiveFilesMetaData(&live);
    for (size_t i = 0; s.ok() && i < live.size(); i++) {
        std::shared_ptr<const SortedFile> known = file_of(before, live[i].file_number);
        if (!known) {
            auto opened = std::make_shared<SortedFile>(options, room);
            s = opened->open(live[i].db_path + live[i].name, live[i]);
            known = opened;
        }
        if (s.ok()) found->push_back(known);
    }
    std::stable_sort(found->begin(), found->end(), [](const auto &a, const auto &b) { return a->rank() < b->rank(); });
    if (s.ok()) *files = found;
    return s;
}
