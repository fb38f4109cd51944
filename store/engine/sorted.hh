/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorted.hh - the sorted files of a database one by one, for who wants what is newest of one vertex.
 *
 * An iterator over the database asks every file at each seek, and a store has dozens. Of one vertex most files have
 * nothing, and of a large one the newest file has all that is wanted. So each file says of itself, in its properties,
 * the least and the greatest rank that it has (engine.h), and a filter of the prefixes of its long keys. A reader takes
 * the files in the order of their ranks, passes over those whose filter says no, or whose ranks end before his begin,
 * and ends where the rest can have nothing that he wants.
 *
 * RocksDB keeps the properties of open files in memory, so filters have a share of it, whatever the store's size: a
 * file that finds no room in it, or has more than 3.2 million prefixes, has none, and is asked by RocksDB's own filter,
 * which is read in parts where the file is large. The indices of blocks.h have what filters leave of that share, but
 * for an eighth, which is for filters of files that come in. A file without a filter, or whose blocks are of another
 * kind, is read by RocksDB, and so is one whose index finds no room, until there is some.
 *
 * A list of files is as good as the database was when it was made: files never change, and one that was merged away
 * stays readable while a list has it. Nothing here is guarded: rocks.cc is.
 */
#ifndef WEIR_STORE_ENGINE_SORTED_HH
#define WEIR_STORE_ENGINE_SORTED_HH

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>

#include <weir/store/engine/engine.h>

#include "blocks.h"

/* Bytes of a file's properties, at most; our filter is one of them. A file that says it has more is damaged. */
constexpr uint64_t sorted_meta_block_max = 8u << 20;

/* An index in memory, as blocks.h has it, is about so many times as long as in the file. */
constexpr uint64_t sorted_index_grows = 2;

/* Memory for the filters and the indices of all open files. A file that is written is promised room for its filter, and
 * takes it when it is opened; or never, if the writing fails, so promises end after an hour. */
class FilterRoom {
  public:
    explicit FilterRoom(uint64_t bytes) : max_(bytes) {}
    bool is_full();
    bool promise(const rocksdb::Slice &filter); /* false: there is no room */
    void take(const rocksdb::Slice &filter);    /* it is there, whether there is room or not */
    void take_again(const rocksdb::Slice &filter);
    bool has_index_room(uint64_t bytes);
    bool change_index(uint64_t from, uint64_t to); /* false: there is no such room, and nothing of it is left */
    void give_back(uint64_t bytes);
    uint64_t used(); /* promises among it */

  private:
    struct Promise {
        uint64_t bytes;
        int64_t since_us;
    };
    uint64_t used_locked();
    bool has_index_room_locked(uint64_t bytes);

    const uint64_t max_;
    std::mutex mutex_; /* guards what follows */
    uint64_t taken_ = 0;
    std::map<uint64_t, Promise> promises_; /* by a hash of the filter */
};

/* Opens a file without reading all parts of its index and its filter: large ones have many, and some may be damaged. */
rocksdb::TableFactory *sorted_table_factory(const rocksdb::BlockBasedTableOptions &options);

/* What writes them into the properties of each file that is made. */
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> sorted_digests(std::shared_ptr<FilterRoom> room,
                                                                         weir_engine_last_rank last_rank);

/* Whether a file's blocks are what blocks.h reads. *in_parts: its index is. */
bool sorted_has_our_blocks(const rocksdb::TableProperties &properties, bool *in_parts);

/* Those of the database, for who reads its files: without its listeners. */
rocksdb::Options sorted_options(rocksdb::Options options);

/* A prefix as files are asked for it. */
struct SortedPrefix {
    SortedPrefix() = default;
    explicit SortedPrefix(const void *prefix);
    uint64_t begin[2] = {0, 0}; /* its first 16 bytes, as numbers that are in the same order */
    uint64_t hash = 0;          /* for filters */
};

class SortedFile {
  public:
    ~SortedFile();
    SortedFile(const SortedFile &) = delete;
    SortedFile &operator=(const SortedFile &) = delete;
    SortedFile(std::shared_ptr<FilterRoom> room, const rocksdb::LiveFileMetaData &file,
               std::shared_ptr<const rocksdb::TableProperties> properties);
    /* Once all filters have found room. */
    rocksdb::Status open(const rocksdb::Options &options, const std::string &path);

    uint64_t number() const {
        return number_;
    }
    uint64_t rank() const {
        return rank_;
    }
    bool is_filtered() const {
        return !filter_.empty();
    }
    /* Its blocks, to be read without RocksDB; null: RocksDB reads it. */
    const weir_blocks *blocks() const {
        return blocks_.get();
    }
    /* It has no blocks only because their index found no room, and there is room now. */
    bool may_have_blocks_now() const;
    /* Of a file without blocks. options: bounded by the prefix. */
    rocksdb::Iterator *iterator(const rocksdb::ReadOptions &options) const;

  private:
    struct CloseBlocks {
        void operator()(weir_blocks *blocks) const {
            weir_blocks_close(blocks);
        }
    };
    void open_blocks(const std::string &path);
    uint64_t index_guess() const;

    friend class SortedList;
    std::unique_ptr<rocksdb::SstFileReader> reader_; /* null: it has blocks */
    std::shared_ptr<FilterRoom> room_;
    std::shared_ptr<const rocksdb::TableProperties> properties_; /* those that the database has */
    rocksdb::Slice filter_;                                      /* of the properties */
    std::unique_ptr<weir_blocks, CloseBlocks> blocks_;
    uint64_t taken_ = 0; /* of the room */
    uint64_t number_ = 0, rank_ = 0, last_rank_ = UINT64_MAX;
    std::string smallest_, largest_; /* keys */
};

using SortedFiles = std::vector<std::shared_ptr<const SortedFile>>; /* their ranks rise */

/* What a reader asks first of each file, side by side: most files have nothing of what he wants, and to fetch the file
 * itself from memory takes longer than to be told so. */
class SortedList {
  public:
    explicit SortedList(SortedFiles files);
    size_t size() const {
        return files_.size();
    }
    const SortedFile &operator[](size_t at) const {
        return *files_[at];
    }
    /* Of the next files from *atp on, at most `max` in whose range the prefix lies and which end at from_rank or behind
     * it; fetches what may_have will look at. *atp: where to go on, if there are more. */
    size_t ahead(size_t *atp, const SortedPrefix &prefix, uint64_t from_rank, uint32_t *files, size_t max) const;
    /* Of one of those: what its filter says. */
    bool may_have(size_t at, const SortedPrefix &prefix) const;

  private:
    struct alignas(64) Look {
        uint64_t smallest[2], largest[2]; /* of keys, their first 16 bytes */
        uint64_t last_rank;
        rocksdb::Slice filter; /* borrowed from the file */
    };
    static_assert(sizeof(Look) == 64, "a line of memory each");
    SortedFiles files_;
    std::vector<Look> looks_;
};

/* *files becomes those that the database has now. What it had already is not opened again; after an error it is what it
 * was, or lacks what could not be opened. properties: of all files, by their paths. A file that came in after they were
 * asked for is an error, too: who has brought it lists the files anew. options: those of sorted_options; check: what is
 * looked at before a file is opened. */
rocksdb::Status sorted_files(rocksdb::DB *db, const rocksdb::TablePropertiesCollection &properties,
                             const rocksdb::Options &options, const std::shared_ptr<FilterRoom> &room,
                             rocksdb::Status (*check)(const std::string &path), SortedFiles *files);

#endif /* WEIR_STORE_ENGINE_SORTED_HH */
