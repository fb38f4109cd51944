/* SPDX-License-Identifier: Apache-2.0 */
/* sorted.cc - see sorted.hh. */
#include "sorted.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include <rocksdb/table_properties.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/hash.h>
#include <weir/store/engine/engine.h>

namespace {

constexpr char rank_name[] = "weir.rank", last_rank_name[] = "weir.last_rank", filter_name[] = "weir.prefixes";
constexpr size_t rank_bytes = 8, line_bytes = 64;
constexpr unsigned bits_a_prefix = 10, bits_set = 6;
constexpr size_t prefixes_max = 3200000; /* of a filter */
constexpr uint64_t kept_for_filters = 8; /* of the room that part: files that come in have filters first */
constexpr int64_t promise_us = 3600 * WEIR_US_PER_S;
constexpr size_t looks_at_once = 32; /* a list may end with the first of them */
static_assert(prefixes_max * bits_a_prefix / 8 < sorted_meta_block_max * 3 / 4, "properties with a filter are opened");

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

uint64_t sorted_hash(const void *prefix) {
    return weir_xxh3(prefix, WEIR_ENGINE_PREFIX_BYTES, 0);
}

/* --- what a file says of itself ------------------------------------------------------------------------------------ */

uint64_t sorted_rank_read(const char *bytes) {
    uint64_t rank = 0;
    for (size_t i = 0; i < rank_bytes; i++)
        rank = rank << 8 | static_cast<unsigned char>(bytes[i]);
    return rank;
}

std::string sorted_rank_write(uint64_t rank) {
    std::string bytes(rank_bytes, 0);
    for (size_t i = rank_bytes; i > 0; i--, rank >>= 8)
        bytes[i - 1] = static_cast<char>(rank);
    return bytes;
}

/* What is shorter ends in zeros: no key comes before or behind another only because it is longer. */
void sorted_begin(const rocksdb::Slice &key, uint64_t begin[2]) {
    char bytes[2 * rank_bytes] = {0};
    memcpy(bytes, key.data(), std::min(key.size(), sizeof bytes));
    begin[0] = sorted_rank_read(bytes);
    begin[1] = sorted_rank_read(bytes + rank_bytes);
}

/* What it does not say, or in another way, is `unsaid`. */
uint64_t sorted_rank_said(const rocksdb::UserCollectedProperties &said, const char *name, uint64_t unsaid) {
    const auto at = said.find(name);
    return at != said.end() && at->second.size() == rank_bytes ? sorted_rank_read(at->second.data()) : unsaid;
}

class Digest : public rocksdb::TablePropertiesCollector {
  public:
    Digest(std::shared_ptr<FilterRoom> room, weir_engine_last_rank last_rank)
        : room_(std::move(room)), filters_(!room_->is_full()), last_rank_of_(last_rank) {}
    rocksdb::Status AddUserKey(const rocksdb::Slice &key, const rocksdb::Slice &value, rocksdb::EntryType,
                               rocksdb::SequenceNumber, uint64_t) override {
        if (key.size() < WEIR_ENGINE_RANK_AT + rank_bytes) return rocksdb::Status::OK();
        rank_ = std::min(rank_, sorted_rank_read(key.data() + WEIR_ENGINE_RANK_AT));
        if (last_rank_of_)
            last_rank_ = std::max(last_rank_, last_rank_of_(key.data(), key.size(), value.data(), value.size()));
        bool again = !hashes_.empty() && memcmp(key.data(), last_, sizeof last_) == 0;
        if (!filters_ || again) return rocksdb::Status::OK();
        memcpy(last_, key.data(), sizeof last_);
        hashes_.push_back(sorted_hash(last_));
        filters_ = hashes_.size() <= prefixes_max;
        if (!filters_) std::vector<uint64_t>().swap(hashes_);
        return rocksdb::Status::OK();
    }
    rocksdb::Status Finish(rocksdb::UserCollectedProperties *properties) override {
        (*properties)[rank_name] = sorted_rank_write(rank_);
        if (last_rank_of_) (*properties)[last_rank_name] = sorted_rank_write(last_rank_);
        if (!filters_ || hashes_.empty()) return rocksdb::Status::OK();
        std::string filter = filter_of(hashes_);
        if (room_->promise(filter)) (*properties)[filter_name] = std::move(filter);
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
    bool filters_; /* it is to have a filter */
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

class InParts : public rocksdb::TableFactory {
  public:
    explicit InParts(const rocksdb::BlockBasedTableOptions &options)
        : blocks_(rocksdb::NewBlockBasedTableFactory(options)) {}
    const char *Name() const override {
        return blocks_->Name();
    }
    using rocksdb::TableFactory::NewTableReader;
    rocksdb::Status NewTableReader(const rocksdb::ReadOptions &ro, const rocksdb::TableReaderOptions &options,
                                   std::unique_ptr<rocksdb::RandomAccessFileReader> &&file, uint64_t bytes,
                                   std::unique_ptr<rocksdb::TableReader> *reader, bool) const override {
        return blocks_->NewTableReader(ro, options, std::move(file), bytes, reader, false);
    }
    rocksdb::TableBuilder *NewTableBuilder(const rocksdb::TableBuilderOptions &options,
                                           rocksdb::WritableFileWriter *file) const override {
        return blocks_->NewTableBuilder(options, file);
    }

  private:
    std::unique_ptr<rocksdb::TableFactory> blocks_;
};

} // namespace

rocksdb::TableFactory *sorted_table_factory(const rocksdb::BlockBasedTableOptions &options) {
    return new InParts(options);
}

/* --- room --------------------------------------------------------------------------------------------------------- */

uint64_t FilterRoom::used_locked() {
    const int64_t now_us = weir_clock_mono_us(weir_clock_system());
    uint64_t bytes = taken_;
    for (auto at = promises_.begin(); at != promises_.end();) {
        bool ended = now_us - at->second.since_us > promise_us;
        bytes += ended ? 0 : at->second.bytes;
        at = ended ? promises_.erase(at) : std::next(at);
    }
    return bytes;
}

uint64_t FilterRoom::used() {
    std::lock_guard<std::mutex> here(mutex_);
    return used_locked();
}

bool FilterRoom::is_full() {
    return used() >= max_;
}

bool FilterRoom::promise(const rocksdb::Slice &filter) {
    std::lock_guard<std::mutex> here(mutex_);
    if (used_locked() + filter.size() > max_) return false;
    promises_[weir_xxh3(filter.data(), filter.size(), 0)] =
        Promise{filter.size(), weir_clock_mono_us(weir_clock_system())};
    return true;
}

void FilterRoom::take(const rocksdb::Slice &filter) {
    std::lock_guard<std::mutex> here(mutex_);
    promises_.erase(weir_xxh3(filter.data(), filter.size(), 0));
    taken_ += filter.size();
}

void FilterRoom::take_again(const rocksdb::Slice &filter) {
    std::lock_guard<std::mutex> here(mutex_);
    taken_ += filter.size();
}

bool FilterRoom::has_index_room_locked(uint64_t bytes) {
    return used_locked() + bytes <= max_ - max_ / kept_for_filters;
}

bool FilterRoom::has_index_room(uint64_t bytes) {
    std::lock_guard<std::mutex> here(mutex_);
    return has_index_room_locked(bytes);
}

bool FilterRoom::change_index(uint64_t from, uint64_t to) {
    std::lock_guard<std::mutex> here(mutex_);
    WEIR_ASSERT(taken_ >= from);
    taken_ -= from;
    bool fits = has_index_room_locked(to);
    if (fits) taken_ += to;
    return fits;
}

void FilterRoom::give_back(uint64_t bytes) {
    std::lock_guard<std::mutex> here(mutex_);
    WEIR_ASSERT(taken_ >= bytes);
    taken_ -= bytes;
}

rocksdb::Options sorted_options(rocksdb::Options options) {
    rocksdb::BlockBasedTableOptions table = *options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    options.table_factory.reset(sorted_table_factory(table));
    options.listeners.clear();
    return options;
}

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> sorted_digests(std::shared_ptr<FilterRoom> room,
                                                                         weir_engine_last_rank last_rank) {
    return std::make_shared<Digests>(std::move(room), last_rank);
}

SortedPrefix::SortedPrefix(const void *prefix) : hash(sorted_hash(prefix)) {
    sorted_begin(rocksdb::Slice(static_cast<const char *>(prefix), WEIR_ENGINE_PREFIX_BYTES), begin);
}

/* --- a file -------------------------------------------------------------------------------------------------------- */

SortedFile::~SortedFile() {
    room_->give_back(taken_);
}

/* An index in one block or of parts, whose keys are ours and whose values have no length before them (that is what the
 * flag of deltas means where each key is whole). */
bool sorted_has_our_blocks(const rocksdb::TableProperties &properties, bool *in_parts) {
    const auto &said = properties.user_collected_properties;
    const auto type = said.find(rocksdb::BlockBasedTablePropertyNames::kIndexType);
    if (type == said.end() || type->second.size() != sizeof(uint32_t)) return false;
    const uint32_t kind = weir_get_u32(reinterpret_cast<const uint8_t *>(type->second.data()));
    *in_parts = kind == rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    return (*in_parts || kind == rocksdb::BlockBasedTableOptions::kBinarySearch) &&
           properties.compression_name == "NoCompression" && properties.index_key_is_user_key == 1 &&
           properties.index_value_is_delta_encoded == 1;
}

uint64_t SortedFile::index_guess() const {
    return properties_->index_size * sorted_index_grows;
}

bool SortedFile::may_have_blocks_now() const {
    bool in_parts;
    return !blocks_ && is_filtered() && sorted_has_our_blocks(*properties_, &in_parts) &&
           room_->has_index_room(index_guess());
}

/* A file without a filter would be read for each vertex that it does not have. What fails here leaves the file to
 * RocksDB, which says what is wrong to whoever reads it. */
void SortedFile::open_blocks(const std::string &path) {
    weir_blocks *blocks = nullptr;
    bool in_parts;
    if (!is_filtered() || !sorted_has_our_blocks(*properties_, &in_parts) || !room_->change_index(0, index_guess()))
        return;
    weir_err err = weir_blocks_open(path.c_str(), in_parts, &blocks);
    const uint64_t bytes = err ? 0 : weir_blocks_bytes(blocks);
    if (!room_->change_index(index_guess(), bytes) || err) {
        weir_blocks_close(blocks);
        return;
    }
    blocks_.reset(blocks);
    taken_ += bytes;
}

/* A file of an older version says nothing: it is the first that is asked, always. */
SortedFile::SortedFile(std::shared_ptr<FilterRoom> room, const rocksdb::LiveFileMetaData &file,
                       std::shared_ptr<const rocksdb::TableProperties> properties)
    : room_(std::move(room)), properties_(std::move(properties)), number_(file.file_number),
      smallest_(file.smallestkey), largest_(file.largestkey) {
    const auto &said = properties_->user_collected_properties;
    const auto filter = said.find(filter_name);
    rank_ = sorted_rank_said(said, rank_name, 0);
    last_rank_ = sorted_rank_said(said, last_rank_name, UINT64_MAX);
    if (filter == said.end() || filter->second.empty() || filter->second.size() % line_bytes) return;
    room_->take(filter->second);
    filter_ = filter->second;
    taken_ = filter_.size();
}

rocksdb::Status SortedFile::open(const rocksdb::Options &options, const std::string &path) {
    open_blocks(path);
    if (blocks_) return rocksdb::Status::OK();
    reader_ = std::make_unique<rocksdb::SstFileReader>(options);
    room_->take_again(filter_); /* it has the properties, too */
    taken_ += filter_.size();
    return reader_->Open(path);
}

/* Who has asked the filter here needs no other. */
rocksdb::Iterator *SortedFile::iterator(const rocksdb::ReadOptions &options) const {
    rocksdb::ReadOptions own = options;
    WEIR_ASSERT(reader_);
    own.total_order_seek = is_filtered();
    own.prefix_same_as_start = !is_filtered();
    return reader_->NewIterator(own);
}

/* --- a list of them ------------------------------------------------------------------------------------------------ */

SortedList::SortedList(SortedFiles files) : files_(std::move(files)) {
    looks_.resize(files_.size());
    for (size_t at = 0; at < files_.size(); at++) {
        Look &look = looks_[at];
        sorted_begin(files_[at]->smallest_, look.smallest);
        sorted_begin(files_[at]->largest_, look.largest);
        look.last_rank = files_[at]->last_rank_;
        look.filter = files_[at]->filter_;
    }
}

size_t SortedList::ahead(size_t *atp, const SortedPrefix &prefix, uint64_t from_rank, uint32_t *files,
                         size_t max) const {
    size_t count = 0, at = *atp;
    const size_t end = std::min(at + looks_at_once, looks_.size());
    for (; at < end && count < max; at++) {
        const Look &look = looks_[at];
        if (look.last_rank < from_rank) continue;
        if (std::lexicographical_compare(prefix.begin, prefix.begin + 2, look.smallest, look.smallest + 2)) continue;
        if (std::lexicographical_compare(look.largest, look.largest + 2, prefix.begin, prefix.begin + 2)) continue;
        if (!look.filter.empty()) __builtin_prefetch(look.filter.data() + filter_line(prefix.hash, look.filter.size()));
        files[count++] = static_cast<uint32_t>(at);
    }
    *atp = at;
    return count;
}

bool SortedList::may_have(size_t at, const SortedPrefix &prefix) const {
    const rocksdb::Slice &filter = looks_[at].filter;
    return filter.empty() || filter_has(filter, prefix.hash);
}

/* --- all of them --------------------------------------------------------------------------------------------------- */

rocksdb::Status sorted_files(rocksdb::DB *db, const rocksdb::TablePropertiesCollection &properties,
                             const rocksdb::Options &options, const std::shared_ptr<FilterRoom> &room,
                             rocksdb::Status (*check)(const std::string &path), SortedFiles *files) {
    std::vector<rocksdb::LiveFileMetaData> live;
    std::vector<std::pair<std::string, std::shared_ptr<SortedFile>>> fresh; /* and their paths */
    SortedFiles found;
    rocksdb::Status s;
    db->GetLiveFilesMetaData(&live);
    for (const auto &file : live) /* before any file takes room */
        if (properties.find(file.db_path + file.name) == properties.end())
            return rocksdb::Status::TryAgain("came in meanwhile", file.name);
    for (const auto &file : live) {
        const std::string path = file.db_path + file.name;
        const auto known = std::find_if(files->begin(), files->end(),
                                        [&](const auto &one) { return one->number() == file.file_number; });
        if (known != files->end() && !(*known)->may_have_blocks_now())
            found.push_back(*known);
        else
            fresh.emplace_back(path, std::make_shared<SortedFile>(room, file, properties.at(path)));
    }
    for (const auto &file : fresh) {
        rocksdb::Status opened = check(file.first);
        if (opened.ok()) opened = file.second->open(options, file.first);
        if (opened.ok())
            found.push_back(file.second);
        else
            s = opened;
    }
    std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a->rank() < b->rank(); });
    files->swap(found);
    return s;
}
