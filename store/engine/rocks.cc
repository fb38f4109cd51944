/* SPDX-License-Identifier: Apache-2.0 */
/* rocks.cc - a guard around each call of RocksDB. See rocks.h. What is C++ in the store is here, or in files that this
 * one includes. */
#include "rocks.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/hash.h>
#include <weir/store/engine/engine.h>

#include "blocks.h"
#include "merging.hh"
#include "sorted.hh"
#include "sorted_writer.hh"
#include "unfailing.h"

namespace {

constexpr size_t own_cache_bytes = 8u << 20;
constexpr size_t block_bytes = 4096;
constexpr size_t metadata_bytes = 8192;
constexpr double filter_bits = 10.0;
constexpr size_t ahead_files = 8;   /* whose filters are fetched at once */
constexpr uint64_t cache_share = 8; /* of a block cache's memory; the rest is for filters and indices of files */
constexpr size_t scrub_part = 1u << 20;
/* One after the other: a key has at most as many as there are files, and each search asks all of those. */
constexpr uint64_t versions_skipped = 1000;
constexpr int runs_max = 16;
constexpr int background_jobs = 4;
constexpr unsigned amplified_without_bound = 1000000;
constexpr size_t log_bytes_max = 1u << 20;
constexpr size_t log_files = 2;

/* --- out of memory ------------------------------------------------------------------------------------------------- */

/* RocksDB is not made for exceptions. One in a thread of its own ends the process, and so does one out of a destructor.
 * So before a std::bad_alloc is thrown a reserve is given back, and then memory is waited for: by RocksDB's own threads
 * and by what is in unfailing.h for as long as it takes, by a call of ours for patience_us. What leaves a call in spite
 * of that leaves behind
 *
 *   of a read    references, over which a destructor asserts: the database, its cache and its cursor are never
 *                destroyed (held), all else goes on
 *   of a write   a writer in a queue, too, for which the next one would wait for ever: RocksDB is only read from (torn)
 *   of a list    of files or of their properties, and of an opening for reading only, a locked mutex or a version that
 *                stays: they wait for as long as it takes
 *   of a file    that is read by itself nothing but its reader: that is not destroyed
 *
 * and the end of the process takes it away. */
constexpr size_t reserve_bytes = 4u << 20;
constexpr int64_t patience_us = 1000000;
constexpr timespec nap = {0, 2000000};

std::atomic<void *> reserve;
std::atomic<int> waiting;      /* threads */
std::atomic<bool> torn;        /* a write was thrown out of: no other is begun, and nothing is destroyed */
std::atomic<bool> held;        /* a read of any database was thrown out of: caches are not destroyed     */
thread_local int calls;        /* of ours that this thread is in: a listener may call again */
thread_local bool patient;     /* it waits for as long as it takes                          */
thread_local int64_t since_us; /* when they began to wait                         */
thread_local int64_t last_us;  /* when they waited last: long ago is another wait */

/* Once, for a load, a start or a stop, which have no /readyz to say so; needs no memory. */
void say_that_it_waits() {
    static const char sentence[] = "weir: RocksDB waits for memory, and goes on when there is some; stop other work, "
                                   "or end this process: the log has what was acknowledged\n";
    static std::atomic<bool> said;
    if (!said.exchange(true)) (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
}

void wait_for_memory() {
    void *kept = reserve.exchange(nullptr);
    if (kept) {
        free(kept);
        return;
    }
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    if (now_us - last_us > patience_us / 4) since_us = now_us;
    last_us = now_us;
    bool long_ago = now_us - since_us > patience_us;
    if (calls > 0 && !patient && long_ago) throw std::bad_alloc();
    if (long_ago) say_that_it_waits();
    waiting++;
    nanosleep(&nap, nullptr);
    waiting--;
}

/* Where nothing can be thrown. */
extern "C" void wait_and_return() {
    static thread_local int64_t own_since_us, own_last_us; /* what throws has a second of its own */
    bool was = patient;
    std::swap(since_us, own_since_us);
    std::swap(last_us, own_last_us);
    patient = true;
    wait_for_memory();
    patient = was;
    std::swap(since_us, own_since_us);
    std::swap(last_us, own_last_us);
}

void reserve_keep() {
    static const bool led = weir_unfailing_install(wait_and_return);
    (void)led; /* without a library of its own RocksDB is as it is */
    free(reserve.exchange(malloc(reserve_bytes)));
    std::set_new_handler(wait_for_memory);
}

class Inside {
  public:
    Inside() {
        calls++;
        if (!reserve.load(std::memory_order_relaxed)) reserve_keep();
    }
    ~Inside() {
        calls--;
    }
};

/* Around calls that must not be thrown out of. */
class Patient {
  public:
    explicit Patient(bool is) : was_(patient) {
        patient = is;
    }
    ~Patient() {
        patient = was_;
    }
    Patient(const Patient &) = delete;
    Patient &operator=(const Patient &) = delete;

  private:
    const bool was_;
};

/* Not destroyed by what is thrown: destructors need memory as well, and assert that no call was in the middle of it. */
template <typename T> struct UnlessThrown {
    void operator()(T *it) const {
        if (std::uncaught_exceptions() == 0) delete it;
    }
};
template <typename T> using Kept = std::unique_ptr<T, UnlessThrown<T>>;

/* --- the guard ---------------------------------------------------------------------------------------------------- */

void status_set(weir_rocks_status *status, weir_rocks_kind kind, const char *text) noexcept {
    status->kind = kind;
    snprintf(status->text, sizeof status->text, "%s", text);
}

bool ends_with(const std::string &text, const char *end) {
    const size_t length = strlen(end);
    return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

/* By RocksDB's own words where it has no other sign: a path may have any words in it. */
weir_rocks_kind status_kind_of(const rocksdb::Status &s, const std::string &text) {
    if (s.ok()) return WEIR_ROCKS_OK;
    if (s.IsCorruption()) return WEIR_ROCKS_CORRUPT;
    if (s.IsNoSpace() || ends_with(text, "No space left on device")) return WEIR_ROCKS_FULL;
    if (s.IsMemoryLimit()) return WEIR_ROCKS_MEMORY;
    if (text.rfind("IO error: While lock file", 0) == 0 || text.rfind("IO error: lock ", 0) == 0)
        return WEIR_ROCKS_LOCKED;
    if (text.find("does not exist (create_if_missing is false)") != std::string::npos) return WEIR_ROCKS_MISSING;
    return WEIR_ROCKS_FAILED;
}

bool status_take(weir_rocks_status *status, const rocksdb::Status &s) {
    if (s.ok()) { /* once a record: printing even nothing would cost a quarter of it */
        status->kind = WEIR_ROCKS_OK;
        status->text[0] = 0;
        return true;
    }
    const std::string text = s.ToString();
    status_set(status, status_kind_of(s, text), text.c_str());
    return false;
}

/* The failure that a test has armed for this path, if any; what is thrown is caught by the guard. */
rocksdb::Status fault_armed(const char *path) {
    int failure = weir_fault_check(WEIR_FAULT_ENGINE, path, nullptr);
    if (failure == 0) return rocksdb::Status::OK();
    if (failure == ENOMEM) throw std::bad_alloc();
    if (failure == ENOSPC) return rocksdb::Status::NoSpace(path, strerror(failure));
    return rocksdb::Status::IOError(path, strerror(failure));
}

rocksdb::Status status_of(weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    if (!err) return rocksdb::Status::OK();
    if (weir_err_is(err, WEIR_ENOMEM)) return rocksdb::Status::MemoryLimit(); /* which needs none */
    weir_err_sentence(err, sentence, sizeof sentence);
    if (weir_err_is(err, WEIR_EFULL)) return rocksdb::Status::NoSpace(sentence);
    return weir_err_is(err, WEIR_ECORRUPT) ? rocksdb::Status::Corruption(sentence) : rocksdb::Status::IOError(sentence);
}

/* Runs call, which returns a Status. Nothing is thrown out of here. Without a path no test can fail it. *left becomes
 * true if the call was thrown out of; NULL: what that leaves behind is in no other call's way. */
template <typename Call>
bool guarded(const char *path, weir_rocks_status *status, std::atomic<bool> *left, Call &&call) noexcept {
    Inside here;
    bool inside = false;
    try {
        rocksdb::Status s = path ? fault_armed(path) : rocksdb::Status::OK();
        inside = true;
        if (s.ok()) s = call();
        inside = false;
        return status_take(status, s);
    } catch (const std::bad_alloc &) {
        status_set(status, WEIR_ROCKS_MEMORY, "out of memory in RocksDB");
    } catch (const std::exception &e) {
        status_set(status, WEIR_ROCKS_FAILED, e.what());
    } catch (...) {
        status_set(status, WEIR_ROCKS_FAILED, "an exception of RocksDB without words");
    }
    if (inside && left) *left = true;
    return false;
}

rocksdb::Slice slice_of(const void *bytes, size_t length) {
    return rocksdb::Slice(static_cast<const char *>(bytes), length);
}

/* What came in and was merged since a database was opened, what merges took of the processor, and its files one by
 * one, as readers see them; null: those are not known. */
struct Work {
    std::atomic<uint64_t> taken_bytes{0}, compacted_bytes{0}, compaction_cpu_us{0};
    std::mutex mutex;         /* guards what looks for files */
    rocksdb::Options options; /* to read them with: a listener holds this, so it must not hold a listener */
    std::shared_ptr<FilterRoom> room;
    SortedFiles opened;
    std::shared_ptr<const SortedList> files; /* by std::atomic_load and _store */
    std::mutex publishing;                   /* guards what stands in `files`; no thread waits for memory in it */
    uint64_t given_up = 0;                   /* times that a list was missed; guarded by `publishing` */

    void look_at_files(rocksdb::DB *db) noexcept;

  private:
    bool lock() noexcept;
};

/* Another thread may have it and wait for memory: who takes a file in must not wait for that, too. */
bool Work::lock() noexcept {
    const int64_t until_us = weir_clock_mono_us(weir_clock_system()) + patience_us;
    while (!mutex.try_lock()) {
        if (weir_clock_mono_us(weir_clock_system()) > until_us) return false;
        nanosleep(&nap, nullptr);
    }
    return true;
}

rocksdb::Status rocks_check_end(const std::string &path);

/* Of all files, by their paths. What is thrown out of this leaves a version of the database referred to for ever. */
rocksdb::Status rocks_properties(rocksdb::DB *db, rocksdb::TablePropertiesCollection *properties) {
    Patient here(true);
    return db->GetPropertiesOfAllTables(properties);
}

/* What fails here fails no call: without the list readers ask the database, and the next file that comes in is another
 * try. */
void Work::look_at_files(rocksdb::DB *db) noexcept {
    std::shared_ptr<const SortedList> now;
    bool locked = lock();
    publishing.lock();
    const uint64_t given_up_before = given_up;
    publishing.unlock();
    try {
        rocksdb::TablePropertiesCollection properties;
        if (locked && rocks_properties(db, &properties).ok() &&
            sorted_files(db, properties, options, room, rocks_check_end, &opened).ok())
            now = std::make_shared<const SortedList>(opened);
    } catch (...) {
        now = nullptr;
    }
    publishing.lock(); /* a list that was begun before a file came in whose own look was given up does not have it */
    if (!locked) given_up++;
    if (given_up != given_up_before) now = nullptr;
    std::atomic_store(&files, now);
    publishing.unlock();
    if (locked) mutex.unlock();
}

uint64_t rocks_table_bytes(const rocksdb::TableProperties &table) {
    return table.data_size + table.index_size + table.filter_size;
}

class Listener : public rocksdb::EventListener {
  public:
    Listener(weir_rocks_alarm alarm, void *context, std::shared_ptr<Work> work, std::shared_ptr<Merging> merging)
        : alarm_(alarm), context_(context), work_(std::move(work)), merging_(std::move(merging)) {}
    void OnCompactionBegin(rocksdb::DB *db, const rocksdb::CompactionJobInfo &info) override {
        merging_->begin(db, info);
    }
    void OnExternalFileIngested(rocksdb::DB *, const rocksdb::ExternalFileIngestionInfo &info) override {
        work_->taken_bytes += rocks_table_bytes(info.table_properties);
    }
    void OnFlushCompleted(rocksdb::DB *, const rocksdb::FlushJobInfo &info) override {
        work_->taken_bytes += rocks_table_bytes(info.table_properties);
    }
    void OnCompactionCompleted(rocksdb::DB *db, const rocksdb::CompactionJobInfo &info) override {
        work_->compacted_bytes += info.stats.total_output_bytes;
        work_->compaction_cpu_us += info.stats.cpu_micros;
        work_->look_at_files(db);
    }
    void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status *bg_error) override {
        weir_rocks_status status;
        if (bg_error->ok()) return;
        guarded_alarm(*bg_error, &status);
    }

  private:
    void guarded_alarm(const rocksdb::Status &s, weir_rocks_status *status) noexcept {
        try {
            status_take(status, s);
        } catch (...) {
            status_set(status, WEIR_ROCKS_MEMORY, "out of memory in RocksDB's background");
        }
        alarm_(context_, status);
    }

    weir_rocks_alarm alarm_;
    void *context_;
    std::shared_ptr<Work> work_;
    std::shared_ptr<Merging> merging_;
};

/* --- the checksum of a file --------------------------------------------------------------------------------------- */

/* Each byte of a file is in it; this is for files that RocksDB writes itself. RocksDB's own, which has the same name and the same
 * value, is by a table in Debian's build: ten times as slow as the processor's instruction. */
constexpr char checksum_name[] = "FileChecksumCrc32c";

class Checksum : public rocksdb::FileChecksumGenerator {
  public:
    explicit Checksum(uint32_t crc = 0) : crc_(crc) {}
    void Update(const char *data, size_t n) override {
        crc_ = weir_crc32c(crc_, data, n);
    }
    void Finalize() override {}
    std::string GetChecksum() const override {
        std::string text;
        for (int shift = 24; shift >= 0; shift -= 8)
            text.push_back(static_cast<char>(crc_ >> shift));
        return text;
    }
    uint32_t value() const {
        return crc_;
    }
    const char *Name() const override {
        return checksum_name;
    }

  private:
    uint32_t crc_;
};

class Checksums : public rocksdb::FileChecksumGenFactory {
  public:
    std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
        const rocksdb::FileChecksumGenContext &) override {
        return std::make_unique<Checksum>();
    }
    const char *Name() const override {
        return "WeirChecksums";
    }
};

/* --- options ------------------------------------------------------------------------------------------------------ */

rocksdb::BlockBasedTableOptions rocks_table_options(const std::shared_ptr<rocksdb::Cache> &cache) {
    rocksdb::BlockBasedTableOptions table;
    table.block_size = block_bytes;
    table.format_version = 5;
    table.checksum = rocksdb::kXXH3;
    table.block_cache = cache ? cache : rocksdb::NewLRUCache(own_cache_bytes);
    table.cache_index_and_filter_blocks = true;
    table.pin_l0_filter_and_index_blocks_in_cache = true;
    /* The filters hold prefixes, which is what every read seeks by: names are their own prefix. In parts, like the
     * index: that of a large file would be larger than what a shard of the cache may hold, and be read for each
     * question. */
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(filter_bits, false));
    table.whole_key_filtering = false;
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.index_block_restart_interval = 1; /* each key whole, as blocks.c reads them */
    table.partition_filters = true;
    table.metadata_block_size = metadata_bytes;
    return table;
}

rocksdb::Options rocks_options_of(const weir_rocks_opts *opts, const std::shared_ptr<rocksdb::Cache> &cache,
                                  const std::shared_ptr<Work> &work) {
    rocksdb::Options options;
    options.create_if_missing = opts->create;
    options.paranoid_checks = true;
    /* Half of a bundle is ids, which are hashes: LZ4 made files a seventh to a fourth smaller, and merging and reading
     * dearer by a third and more (tests/bench/RESULTS.md). Blocks of an older version that have it are read. */
    options.compression = rocksdb::kNoCompression;
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(WEIR_ENGINE_PREFIX_BYTES));
    /* Sorted files are merged with others of their size, so that a record is written again each time that there are
     * some sixteen times as many, and not several times on each level. Readers look through some sixteen runs of files.
     * A record is hardly ever stored twice, which is therefore no reason to merge everything. While large runs are
     * merged, small ones are, too. */
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
    options.level0_file_num_compaction_trigger = runs_max;
    options.compaction_options_universal.max_size_amplification_percent = amplified_without_bound;
    options.disable_auto_compactions = !opts->compacts;
    options.max_background_jobs = background_jobs;
    options.max_sequential_skip_in_iterations = versions_skipped;
    options.max_file_opening_threads = 1; /* ours: what a damaged file makes it throw is caught */
    options.keep_log_file_num = log_files;
    options.max_log_file_size = log_bytes_max;
    options.info_log_level = rocksdb::WARN_LEVEL;
    options.stats_dump_period_sec = 0; /* it prints them with lengths that it does not look at */
    options.stats_persist_period_sec = 0;
    options.verify_sst_unique_id_in_manifest = true; /* of merged files it has none: a scrub compares their checksums */
    options.force_consistency_checks = true;
    options.file_checksum_gen_factory = std::make_shared<Checksums>();
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(rocks_table_options(cache)));
    options.table_properties_collector_factories.push_back(sorted_digests(work->room, opts->last_rank));
    /* Else RocksDB writes each file again that is 30 days old. And merging.hh has a use of its own for a file's age. */
    options.ttl = 0;
    options.periodic_compaction_seconds = 0;
    return options;
}

} // namespace

struct weir_rocks_cache {
    std::shared_ptr<rocksdb::Cache> cache;
    std::shared_ptr<FilterRoom> room;
};

using Moment = std::shared_ptr<rocksdb::ManagedSnapshot>;

struct weir_rocks {
    rocksdb::Options options;
    std::shared_ptr<Work> work = std::make_shared<Work>();
    std::shared_ptr<Merging> merging; /* null: opened for a look only */
    std::string folder;
    std::unique_ptr<rocksdb::DB> db;
    std::atomic<bool> held{false}; /* a read was thrown out of */
    Moment before; /* what readers see while a file comes in by a memtable; by std::atomic_load and _store */
    std::atomic<bool> has_before{false};
};

struct weir_rocks_cursor {
    ~weir_rocks_cursor() {
        weir_blocks_cursor_end(&blocks);
    }
    weir_rocks *db = nullptr;
    Moment before;
    std::shared_ptr<const SortedList> files; /* of which it takes one after the other; null: all at once */
    size_t next_file = 0;
    uint32_t ahead[ahead_files]; /* of the files before that one those whose filters are not asked yet */
    size_t ahead_count = 0, ahead_next = 0;
    SortedPrefix prefix;
    uint64_t from_rank = 0;
    weir_blocks_cursor blocks{}; /* in the file at hand, if that has blocks … */
    bool by_blocks = false;      /* … else the iterator is */
    std::string start;           /* the prefix                */
    std::string bound;           /* what it does not reach    */
    rocksdb::Slice bound_slice;
    rocksdb::ReadOptions options;
    std::unique_ptr<rocksdb::Iterator> iterator;
    weir_rocks_status status;      /* of a move that failed    */
    std::atomic<bool> held{false}; /* a move was thrown out of */
};

/* What readers may see; empty most of the time: everything. */
static Moment moment_of(const weir_rocks *db) {
    return db->has_before.load(std::memory_order_acquire) ? std::atomic_load(&db->before) : nullptr;
}

static void moment_forget(weir_rocks *db) {
    db->has_before.store(false, std::memory_order_release);
    std::atomic_store(&db->before, Moment());
}

/* A seal is small: its index and filter are whole, and those of a file of up to 96 MiB (one and a half write buffers)
 * stay in memory for as long as it is at level 0. Its pages stay in the page cache, where the readers of what is newest
 * find them, and the next merge. */
struct weir_rocks_writer {
    weir_rocks *db;
    std::string path;
    SortedWriter writer;
    uint64_t bytes = 0; /* once it is finished … */
    uint32_t crc = 0;   /* … with this checksum  */
    weir_rocks_writer(weir_rocks *of, const char *at, bool in_parts)
        : db(of), path(at), writer(of->options, in_parts ? SortedWriter::taken_in_parts : SortedWriter::taken) {}
};

namespace {

/* As guarded; a read that is thrown out of has left references of the database behind. */
template <typename Call>
bool read_guarded(weir_rocks *db, const char *path, weir_rocks_status *status, Call &&call) noexcept {
    bool done = guarded(path, status, &db->held, call);
    if (db->held) held = true;
    return done;
}

/* call returns a Status, which becomes the cursor's. */
template <typename Call> bool cursor_guarded(weir_rocks_cursor *cursor, Call &&call) noexcept {
    bool done = guarded(cursor->db->folder.c_str(), &cursor->status, &cursor->held, call);
    if (cursor->held) cursor->db->held = held = true;
    return done;
}

/* A write is refused once one was thrown out of. */
template <typename Call> bool write_guarded(weir_rocks *db, weir_rocks_status *status, Call &&call) noexcept {
    if (!torn) return guarded(db->folder.c_str(), status, &torn, call);
    status_set(status, WEIR_ROCKS_MEMORY, "RocksDB ran out of memory in the middle of a call; restart the process");
    return false;
}

} // namespace

/* --- the ends of files -------------------------------------------------------------------------------------------- */

namespace {

/* The end of a sorted file says where a block lies that names others, and the properties among them. Behind a block is
 * how it is compressed, and its checksum. */
constexpr char properties_name[] = "rocksdb.properties";
constexpr char sequence_name[] = "external_sst_file.global_seqno"; /* 8 bytes, changed when a file is taken in */

bool block_is_as_written(const std::string &block) {
    WEIR_ASSERT(block.size() >= WEIR_BLOCKS_TRAILER_BYTES);
    return weir_blocks_is_as_written(reinterpret_cast<const uint8_t *>(block.data()),
                                     block.size() - WEIR_BLOCKS_TRAILER_BYTES);
}

rocksdb::Status footer_read_meta_block(const rocksdb::RandomAccessFile &file, const std::string &path,
                                       const weir_blocks_place &place, std::string *block) {
    if (place.bytes > sorted_meta_block_max)
        return rocksdb::Status::Corruption("names or properties are too long in", path);
    std::string bytes(place.bytes + WEIR_BLOCKS_TRAILER_BYTES, 0);
    rocksdb::Slice got;
    rocksdb::Status s = file.Read(place.offset, bytes.size(), &got, &bytes[0]);
    if (s.ok() && got.size() < bytes.size())
        s = rocksdb::Status::Corruption("names or properties are cut short in", path);
    block->assign(got.data(), got.size());
    return s;
}

bool block_properties_are_as_written(std::string *block) {
    if (block_is_as_written(*block)) return true;
    size_t at = block->find(sequence_name), length = sizeof sequence_name - 1;
    if (at == std::string::npos || block->size() - at - length < 8 + WEIR_BLOCKS_TRAILER_BYTES) return false;
    block->replace(at + length, 8, 8, 0);
    return block_is_as_written(*block);
}

rocksdb::Status footer_check_meta_blocks(const rocksdb::RandomAccessFile &file, const std::string &path,
                                         uint64_t file_bytes, const weir_blocks_footer &footer) {
    rocksdb::Status damaged = rocksdb::Status::Corruption("footer or properties are not as they were written in", path);
    weir_blocks_place properties;
    std::string block;
    if (!footer.is_whole) return damaged;
    rocksdb::Status s = footer_read_meta_block(file, path, footer.names, &block);
    if (!s.ok() || !block_is_as_written(block)) return s.ok() ? damaged : s;
    size_t named = block.find(properties_name);
    if (named == std::string::npos) return s;
    const auto *begin = reinterpret_cast<const uint8_t *>(block.data()),
               *at = begin + named + sizeof properties_name - 1;
    if (!weir_blocks_take_place(&at, begin + block.size() - WEIR_BLOCKS_TRAILER_BYTES, file_bytes, &properties))
        return damaged;
    s = footer_read_meta_block(file, path, properties, &block);
    return s.ok() && !block_properties_are_as_written(&block) ? damaged : s;
}

/* What an opening reads and trusts: it has no checksum, or is used before that is compared. RocksDB asks for as much
 * memory as a footer says: what that throws out of an opening for reading only is a mutex that it destroys locked, and waits
 * for. And of damaged properties it may write where they say, or end the process by an assertion. Any other damage
 * RocksDB finds itself. Also of a file that a crash has left and the database does not have: which it has is known only
 * once it is open. */
rocksdb::Status rocks_check_end(const std::string &path) {
    rocksdb::Env *env = rocksdb::Env::Default();
    std::unique_ptr<rocksdb::RandomAccessFile> file;
    char bytes[WEIR_BLOCKS_FOOTER_BYTES];
    rocksdb::Slice end;
    weir_blocks_footer footer;
    uint64_t size = 0;
    if (!env->GetFileSize(path, &size).ok() || size < sizeof bytes) return rocksdb::Status::OK();
    if (!env->NewRandomAccessFile(path, &file, rocksdb::EnvOptions()).ok()) return rocksdb::Status::OK();
    if (!file->Read(size - sizeof bytes, sizeof bytes, &end, bytes).ok() || end.size() < sizeof bytes)
        return rocksdb::Status::OK();
    if (!weir_blocks_take_footer(reinterpret_cast<const uint8_t *>(end.data()), size, &footer))
        return rocksdb::Status::OK();
    return footer_check_meta_blocks(*file, path, size, footer);
}

rocksdb::Status rocks_check_ends(const std::string &folder) {
    std::vector<std::string> names;
    rocksdb::Status s;
    if (!rocksdb::Env::Default()->GetChildren(folder, &names).ok()) return s;
    for (size_t i = 0; s.ok() && i < names.size(); i++) {
        bool sorted = names[i].size() > 4 && names[i].compare(names[i].size() - 4, 4, ".sst") == 0;
        if (sorted) s = rocks_check_end(folder + "/" + names[i]);
    }
    return s;
}

} // namespace

/* --- opening and closing ------------------------------------------------------------------------------------------ */

/* What merges that a crash has ended have left in a folder. */
static std::vector<std::string> rocks_left_by_merges(const std::string &folder) {
    std::vector<std::string> names, left;
    (void)rocksdb::Env::Default()->GetChildren(folder, &names); /* an opening says what is wrong */
    for (const auto &name : names)
        if (name.rfind(merging_file_begin, 0) == 0 && ends_with(name, merging_file_end))
            left.push_back(std::string(folder).append("/").append(name));
    return left;
}

bool weir_rocks_cache_open(uint64_t bytes, weir_rocks_cache **cachep, weir_rocks_status *status) {
    *cachep = nullptr;
    return guarded("cache", status, nullptr, [&] {
        uint64_t of_cache = bytes / cache_share;
        *cachep = new weir_rocks_cache{rocksdb::NewLRUCache(of_cache), std::make_shared<FilterRoom>(bytes - of_cache)};
        return rocksdb::Status::OK();
    });
}

void weir_rocks_cache_close(weir_rocks_cache *cache) {
    if (!torn && !held) delete cache;
}

bool weir_rocks_open(const char *folder, const weir_rocks_opts *opts, weir_rocks **dbp, weir_rocks_status *status) {
    *dbp = nullptr;
    Patient here(opts->read_only); /* OpenForReadOnly locks by hand, and then destroys what it has locked */
    return guarded(folder, status, &held, [&] {
        auto db = std::make_unique<weir_rocks>();
        rocksdb::DB *opened = nullptr;
        rocksdb::Status s = rocks_check_ends(folder);
        if (!s.ok()) return s;
        db->work->room = opts->cache ? opts->cache->room
                                     : std::make_shared<FilterRoom>(own_cache_bytes - own_cache_bytes / cache_share);
        db->options = rocks_options_of(opts, opts->cache ? opts->cache->cache : nullptr, db->work);
        db->work->options = sorted_options(db->options);
        if (opts->alarm) {
            db->merging = std::make_shared<Merging>(db->options, opts->joining);
            db->options.listeners.push_back(
                std::make_shared<Listener>(opts->alarm, opts->context, db->work, db->merging));
            db->options.compaction_service = db->merging;
        }
        db->folder = folder;
        std::vector<std::string> left = rocks_left_by_merges(folder);
        s = opts->read_only ? rocksdb::DB::OpenForReadOnly(db->options, folder, &opened)
                            : rocksdb::DB::Open(db->options, folder, &opened);
        if (!s.ok()) return s;
        db->db.reset(opened);
        for (const auto &path : left) /* those of whoever had it open before */
            if (!opts->read_only) unlink(path.c_str());
        if (opts->alarm) db->work->look_at_files(opened);
        *dbp = db.release();
        return s;
    });
}

void weir_rocks_close(weir_rocks *db) {
    Inside here;
    if (db && db->merging) db->merging->stop();
    if (!torn && !(db && db->held)) delete db;
}

bool weir_rocks_torn(void) {
    return torn;
}

bool weir_rocks_held(const weir_rocks *db) {
    return torn || db->held;
}

bool weir_rocks_waits(void) {
    return waiting > 0;
}

bool weir_rocks_resume(weir_rocks *db, weir_rocks_status *status) {
    return write_guarded(db, status, [&] { return db->db->Resume(); });
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static std::unique_ptr<weir_rocks_cursor> cursor_new(weir_rocks *db, bool total) {
    auto cursor = std::make_unique<weir_rocks_cursor>();
    cursor->db = db;
    cursor->status.kind = WEIR_ROCKS_OK;
    cursor->options.verify_checksums = true; /* ENGINE-N3 */
    cursor->options.total_order_seek = total;
    cursor->options.prefix_same_as_start = !total;
    return cursor;
}

static void cursor_over_all_files(weir_rocks_cursor *cursor) {
    cursor->before = moment_of(cursor->db);
    cursor->options.snapshot = cursor->before ? cursor->before->snapshot() : nullptr;
    cursor->iterator.reset(cursor->db->db->NewIterator(cursor->options));
}

bool weir_rocks_cursor_open(weir_rocks *db, bool total, bool keeps, weir_rocks_cursor **cursorp,
                            weir_rocks_status *status) {
    *cursorp = nullptr;
    return read_guarded(db, db->folder.c_str(), status, [&] {
        auto cursor = cursor_new(db, total);
        cursor->options.fill_cache = keeps; /* RocksDB reads ahead by itself, and only where a read goes on and on */
        cursor_over_all_files(cursor.get());
        *cursorp = cursor.release();
        return rocksdb::Status::OK();
    });
}

/* --- file by file ------------------------------------------------------------------------------------------------- */

/* The first key behind all that begin with the prefix; empty: there is none. */
static std::string prefix_end(std::string prefix) {
    while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff)
        prefix.pop_back();
    if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
    return prefix;
}

static void cursor_look_ahead(weir_rocks_cursor *cursor) {
    cursor->ahead_next = 0;
    cursor->ahead_count =
        cursor->files->ahead(&cursor->next_file, cursor->prefix, cursor->from_rank, cursor->ahead, ahead_files);
}

bool weir_rocks_cursor_open_files(weir_rocks *db, const void *prefix, uint64_t from_rank, weir_rocks_cursor **cursorp,
                                  weir_rocks_status *status) {
    *cursorp = nullptr;
    return read_guarded(db, db->folder.c_str(), status, [&] {
        auto cursor = cursor_new(db, false);
        cursor->prefix = SortedPrefix(prefix);
        cursor->start.assign(static_cast<const char *>(prefix), WEIR_ENGINE_PREFIX_BYTES);
        cursor->bound = prefix_end(cursor->start);
        cursor->bound_slice = cursor->bound;
        if (!cursor->bound.empty()) cursor->options.iterate_upper_bound = &cursor->bound_slice;
        cursor->from_rank = from_rank;
        /* The list may have a file that put_file has not come to the end of. */
        cursor->files = db->has_before.load(std::memory_order_acquire) ? nullptr : std::atomic_load(&db->work->files);
        if (cursor->files) cursor_look_ahead(cursor.get());
        *cursorp = cursor.release();
        return rocksdb::Status::OK();
    });
}

/* Without a list all files are one. */
static bool cursor_stand_before_next(weir_rocks_cursor *cursor, uint64_t *rankp) {
    *rankp = 0;
    if (!cursor->files && cursor->next_file == 0) {
        cursor->next_file = 1;
        cursor_over_all_files(cursor);
        return true;
    }
    while (cursor->files) {
        if (cursor->ahead_next == cursor->ahead_count) {
            if (cursor->next_file == cursor->files->size()) break;
            cursor_look_ahead(cursor);
            continue;
        }
        const size_t at = cursor->ahead[cursor->ahead_next++];
        if (!cursor->files->may_have(at, cursor->prefix)) continue;
        const SortedFile &file = (*cursor->files)[at];
        *rankp = file.rank();
        cursor->iterator.reset(); /* else the next one would be there beside it */
        cursor->by_blocks = file.blocks() != nullptr;
        if (cursor->by_blocks)
            weir_blocks_cursor_enter(&cursor->blocks, file.blocks(),
                                     reinterpret_cast<const uint8_t *>(cursor->start.data()));
        else
            cursor->iterator.reset(file.iterator(cursor->options));
        return true;
    }
    return false;
}

/* What ended in an error in one file does not go on in the next. */
bool weir_rocks_cursor_next_file(weir_rocks_cursor *cursor, uint64_t *rankp) {
    bool found = false;
    if (cursor->status.kind != WEIR_ROCKS_OK) return false;
    return cursor_guarded(cursor,
                          [&] {
                              rocksdb::Status s = cursor->iterator ? cursor->iterator->status() : rocksdb::Status::OK();
                              found = s.ok() && cursor_stand_before_next(cursor, rankp);
                              return s;
                          }) &&
           found;
}

void weir_rocks_cursor_seek(weir_rocks_cursor *cursor, const void *key, size_t length) {
    cursor_guarded(cursor, [&] {
        if (cursor->by_blocks) return status_of(weir_blocks_cursor_seek(&cursor->blocks, key, length));
        cursor->iterator->Seek(slice_of(key, length));
        return rocksdb::Status::OK();
    });
}

void weir_rocks_cursor_seek_last(weir_rocks_cursor *cursor, const void *key, size_t length) {
    cursor_guarded(cursor, [&] {
        if (cursor->by_blocks) return status_of(weir_blocks_cursor_seek_last(&cursor->blocks, key, length));
        cursor->iterator->SeekForPrev(slice_of(key, length));
        return rocksdb::Status::OK();
    });
}

void weir_rocks_cursor_previous(weir_rocks_cursor *cursor) {
    cursor_guarded(cursor, [&] {
        if (cursor->by_blocks) return status_of(weir_blocks_cursor_previous(&cursor->blocks));
        cursor->iterator->Prev();
        return rocksdb::Status::OK();
    });
}

void weir_rocks_cursor_next(weir_rocks_cursor *cursor) {
    cursor_guarded(cursor, [&] {
        if (cursor->by_blocks) return status_of(weir_blocks_cursor_next(&cursor->blocks));
        cursor->iterator->Next();
        return rocksdb::Status::OK();
    });
}

bool weir_rocks_cursor_valid(const weir_rocks_cursor *cursor) {
    if (cursor->status.kind != WEIR_ROCKS_OK) return false;
    return cursor->by_blocks ? cursor->blocks.valid : cursor->iterator && cursor->iterator->Valid();
}

const void *weir_rocks_cursor_key(const weir_rocks_cursor *cursor, size_t *lengthp) {
    if (cursor->by_blocks) {
        *lengthp = cursor->blocks.key_length;
        return cursor->blocks.key;
    }
    rocksdb::Slice key = cursor->iterator->key();
    *lengthp = key.size();
    return key.data();
}

const void *weir_rocks_cursor_value(const weir_rocks_cursor *cursor, size_t *lengthp) {
    if (cursor->by_blocks) {
        *lengthp = cursor->blocks.value_length;
        return cursor->blocks.value;
    }
    rocksdb::Slice value = cursor->iterator->value();
    *lengthp = value.size();
    return value.data();
}

bool weir_rocks_cursor_status(const weir_rocks_cursor *cursor, weir_rocks_status *status) {
    Inside here;
    *status = cursor->status;
    if (status->kind != WEIR_ROCKS_OK) return false;
    if (!cursor->iterator) return true;
    try {
        return status_take(status, cursor->iterator->status());
    } catch (...) {
        status_set(status, WEIR_ROCKS_MEMORY, "out of memory in RocksDB");
        return false;
    }
}

/* One that was thrown out of is left as it is. */
void weir_rocks_cursor_close(weir_rocks_cursor *cursor) {
    Inside here;
    if (cursor && !cursor->held) delete cursor;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

bool weir_rocks_writer_open(weir_rocks *db, const char *path, bool in_parts, weir_rocks_writer **writerp,
                            weir_rocks_status *status) {
    *writerp = nullptr;
    return guarded(path, status, nullptr, [&] {
        auto writer = std::make_unique<weir_rocks_writer>(db, path, in_parts);
        rocksdb::Status s = status_of(writer->writer.open(path));
        if (s.ok()) *writerp = writer.release();
        return s;
    });
}

bool weir_rocks_writer_add(weir_rocks_writer *writer, const void *key, size_t key_length, const void *value,
                           size_t value_length, weir_rocks_status *status) {
    return guarded(writer->db->folder.c_str(), status, nullptr, [&] {
        return status_of(writer->writer.add(slice_of(key, key_length), 0, slice_of(value, value_length)));
    });
}

uint64_t weir_rocks_writer_bytes(const weir_rocks_writer *writer) {
    return writer->bytes ? writer->bytes : writer->writer.bytes();
}

bool weir_rocks_writer_finish(weir_rocks_writer *writer, weir_rocks_status *status) {
    return guarded(writer->db->folder.c_str(), status, nullptr,
                   [&] { return status_of(writer->writer.finish(&writer->bytes, &writer->crc)); });
}

void weir_rocks_writer_close(weir_rocks_writer *writer) {
    Inside here;
    delete writer;
}

/* RocksDB would read all of the file for its checksum, and once more after it has written a number into it; without
 * that its manifest has both. */
bool weir_rocks_ingest(weir_rocks_writer *writer, weir_rocks_status *status) {
    weir_rocks *db = writer->db;
    return write_guarded(db, status, [&] {
        rocksdb::IngestExternalFileArg file;
        file.column_family = db->db->DefaultColumnFamily();
        file.external_files = {writer->path};
        file.options.move_files = true;
        file.options.write_global_seqno = false;
        file.options.verify_file_checksum = false;
        file.files_checksums = {Checksum(writer->crc).GetChecksum()};
        file.files_checksum_func_names = {checksum_name};
        rocksdb::Status s = db->db->IngestExternalFiles({file});
        if (s.ok()) moment_forget(db);
        if (s.ok()) db->work->look_at_files(db->db.get());
        return s;
    });
}

bool weir_rocks_put_file(weir_rocks *db, const char *path, weir_rocks_status *status) {
    return write_guarded(db, status, [&] {
        Kept<rocksdb::SstFileReader> reader(new rocksdb::SstFileReader(db->options));
        rocksdb::WriteBatch batch;
        rocksdb::Status s = reader->Open(path);
        if (!s.ok()) return s;
        rocksdb::ReadOptions all;
        all.total_order_seek = true;
        Kept<rocksdb::Iterator> record(reader->NewIterator(all));
        for (record->SeekToFirst(); s.ok() && record->Valid(); record->Next())
            s = batch.Put(record->key(), record->value());
        if (s.ok()) s = record->status();
        rocksdb::WriteOptions no_log; /* one batch is in one memtable, so that its file has all of it (GRAPH-S3) */
        no_log.disableWAL = true;
        if (s.ok() && !db->has_before) {
            std::atomic_store(&db->before, std::make_shared<rocksdb::ManagedSnapshot>(db->db.get()));
            db->has_before.store(true, std::memory_order_release);
        }
        if (s.ok()) s = db->db->Write(no_log, &batch);
        if (s.ok()) s = fault_armed(path);
        if (s.ok()) s = db->db->Flush(rocksdb::FlushOptions());
        if (s.ok()) moment_forget(db);
        if (s.ok()) db->work->look_at_files(db->db.get());
        return s;
    });
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

/* No file is removed while it is there. A read-only database removes none, and does not know how to be asked. */
class Pinned {
  public:
    explicit Pinned(rocksdb::DB *db) : status_(db->DisableFileDeletions()), db_(db) {}
    ~Pinned() {
        if (status_.ok()) (void)db_->EnableFileDeletions(false);
    }
    Pinned(const Pinned &) = delete;
    Pinned &operator=(const Pinned &) = delete;
    const rocksdb::Status &status() const {
        return status_;
    }

  private:
    rocksdb::Status status_;
    rocksdb::DB *db_;
};

bool weir_rocks_live_files(weir_rocks *db, weir_rocks_take_file take, void *context, weir_rocks_status *status) {
    Patient here(true); /* GetLiveFiles locks by hand */
    return read_guarded(db, db->folder.c_str(), status, [&] {
        std::vector<std::string> names;
        uint64_t manifest_bytes = 0;
        Pinned pinned(db->db.get());
        if (!pinned.status().ok() && !pinned.status().IsNotSupported()) return pinned.status();
        rocksdb::Status s = db->db->GetLiveFiles(names, &manifest_bytes, false);
        for (size_t i = 0; s.ok() && i < names.size(); i++) {
            const char *name = names[i].c_str() + (names[i][0] == '/');
            bool grows = strncmp(name, "MANIFEST-", 9) == 0;
            if (!take(context, name, grows ? manifest_bytes : UINT64_MAX)) break;
        }
        return s;
    });
}

bool weir_rocks_compact(weir_rocks *db, weir_rocks_status *status) {
    return write_guarded(db, status,
                         [&] { return db->db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr); });
}

namespace {

/* A search for a key in the index of a file compares it with the last keys of blocks. The least of those that are
 * not before it is that of the block in which the key lies, or would: so it is known where a block ends that cannot be
 * read. */
class BlockEnds : public rocksdb::Comparator {
  public:
    void look_for(const std::string &key) {
        wanted_ = key;
        met_ = false;
    }
    bool met() const {
        return met_;
    }
    const std::string &end() const {
        return end_;
    }
    int Compare(const rocksdb::Slice &a, const rocksdb::Slice &b) const override {
        if (a == wanted_)
            meet(b);
        else if (b == wanted_)
            meet(a);
        return bytewise_->Compare(a, b);
    }
    const char *Name() const override {
        return bytewise_->Name();
    }
    void FindShortestSeparator(std::string *start, const rocksdb::Slice &limit) const override {
        bytewise_->FindShortestSeparator(start, limit);
    }
    void FindShortSuccessor(std::string *key) const override {
        bytewise_->FindShortSuccessor(key);
    }

  private:
    void meet(const rocksdb::Slice &key) const {
        if (bytewise_->Compare(key, wanted_) < 0 || (met_ && bytewise_->Compare(key, end_) >= 0)) return;
        end_ = key.ToString();
        met_ = true;
    }

    const rocksdb::Comparator *bytewise_ = rocksdb::BytewiseComparator();
    std::string wanted_;
    mutable std::string end_;
    mutable bool met_ = false;
};

struct Salvage {
    rocksdb::ReadOptions options;
    const weir_engine_range *ranges;
    size_t count;
    weir_rocks_take_record take;
    void *context;
    bool ended;
};

} // namespace

/* Each iterator ends at the first block that cannot be read, and the next begins behind it. */
static rocksdb::Status salvage_range(rocksdb::SstFileReader *reader, BlockEnds *blocks, const weir_engine_range &range,
                                     Salvage *salvage) {
    const rocksdb::Slice to = slice_of(range.to, range.to_length);
    std::string place = slice_of(range.from, range.from_length).ToString();
    while (!salvage->ended && to.compare(place) > 0) {
        Kept<rocksdb::Iterator> at(reader->NewIterator(salvage->options));
        bool moved_on = false;
        blocks->look_for(place);
        for (at->Seek(place); at->Valid() && at->key().compare(to) < 0 && !salvage->ended; at->Next()) {
            const rocksdb::Slice key = at->key(), value = at->value();
            salvage->ended = !salvage->take(salvage->context, key.data(), key.size(), value.data(), value.size());
            place.assign(key.data(), key.size()).push_back(0);
            moved_on = true;
        }
        if (at->Valid() || at->status().ok()) break;
        if (!at->status().IsCorruption()) return at->status();
        if (moved_on) continue;
        if (!blocks->met()) break; /* nor can the index */
        place.assign(blocks->end()).push_back(0);
    }
    return rocksdb::Status::OK();
}

static bool salvage_lies_in(const rocksdb::LiveFileMetaData &file, const weir_engine_range &range) {
    return slice_of(range.to, range.to_length).compare(file.smallestkey) > 0 &&
           slice_of(range.from, range.from_length).compare(file.largestkey) <= 0;
}

/* A reader of its own: what the database keeps of the file may have been read before it was damaged. */
static rocksdb::Status salvage_file(const weir_rocks *db, const rocksdb::LiveFileMetaData &file, Salvage *salvage) {
    bool wanted = false;
    for (size_t i = 0; i < salvage->count; i++)
        wanted = wanted || salvage_lies_in(file, salvage->ranges[i]);
    if (!wanted) return rocksdb::Status::OK();
    BlockEnds blocks;
    const std::string path = db->folder + file.name;
    rocksdb::Options options = db->options;
    rocksdb::BlockBasedTableOptions table = rocks_table_options(nullptr);
    table.filter_policy.reset(); /* it is not asked */
    options.listeners.clear();
    options.comparator = &blocks;
    options.table_factory.reset(sorted_table_factory(table));
    Kept<rocksdb::SstFileReader> reader(new rocksdb::SstFileReader(options));
    rocksdb::Status s = rocks_check_end(path);
    if (s.ok()) s = reader->Open(path);
    for (size_t i = 0; s.ok() && !salvage->ended && i < salvage->count; i++)
        if (salvage_lies_in(file, salvage->ranges[i]))
            s = salvage_range(reader.get(), &blocks, salvage->ranges[i], salvage);
    return s.IsCorruption() || s.IsPathNotFound() ? rocksdb::Status::OK() : s;
}

/* The moment is taken after the list: a file that comes in between is not looked at. */
bool weir_rocks_salvage(weir_rocks *db, const weir_engine_range *ranges, size_t count, weir_rocks_take_record take,
                        void *context, weir_rocks_status *status) {
    std::vector<rocksdb::LiveFileMetaData> files;
    Salvage salvage{{}, ranges, count, take, context, false};
    std::unique_ptr<Pinned> pinned;
    bool listed = read_guarded(db, nullptr, status, [&] {
        Patient here(true);
        pinned = std::make_unique<Pinned>(db->db.get());
        if (!pinned->status().ok() && !pinned->status().IsNotSupported()) return pinned->status();
        db->db->GetLiveFilesMetaData(&files);
        return rocksdb::Status::OK();
    });
    const Moment before = moment_of(db);
    salvage.options.total_order_seek = true;
    salvage.options.snapshot = before ? before->snapshot() : nullptr;
    return listed && guarded(db->folder.c_str(), status, nullptr, [&] {
               rocksdb::Status s;
               for (size_t i = 0; s.ok() && !salvage.ended && i < files.size(); i++)
                   s = salvage_file(db, files[i], &salvage);
               return s;
           });
}

/* The blocks of a file of which no checksum is known. */
static rocksdb::Status rocks_check_blocks(const weir_rocks *db, const std::string &path, bool direct) {
    rocksdb::Options options = db->options;
    options.listeners.clear();
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(rocks_table_options(nullptr)));
    options.use_direct_reads = direct;
    Kept<rocksdb::SstFileReader> reader(new rocksdb::SstFileReader(options));
    rocksdb::Status s = rocks_check_end(path);
    if (s.ok()) s = reader->Open(path);
    return s.ok() ? reader->VerifyChecksum() : s;
}

/* false: none is known. */
static bool rocks_checksum_of(const rocksdb::LiveFileMetaData &file, uint32_t *crc) {
    if (file.file_checksum_func_name != checksum_name) return merging_checksum(file, crc);
    *crc = 0;
    for (char byte : file.file_checksum)
        *crc = *crc << 8 | static_cast<unsigned char>(byte);
    return true;
}

/* Every byte: also those of a footer that are never read, and a field that RocksDB leaves out of a block's checksum. */
static rocksdb::Status rocks_check_bytes(uint32_t crc, const std::string &path, bool direct) {
    constexpr size_t alignment = 4096;
    std::unique_ptr<rocksdb::RandomAccessFile> from;
    std::unique_ptr<char, decltype(&free)> part(static_cast<char *>(aligned_alloc(alignment, scrub_part)), free);
    if (!part) throw std::bad_alloc();
    rocksdb::EnvOptions options;
    options.use_direct_reads = direct;
    options.use_mmap_reads = false;
    rocksdb::Status s = rocksdb::Env::Default()->NewRandomAccessFile(path, &from, options);
    Checksum sum;
    uint64_t at = 0;
    for (rocksdb::Slice got("more"); s.ok() && !got.empty(); at += got.size()) {
        s = from->Read(at, scrub_part, &got, part.get());
        if (s.ok()) sum.Update(got.data(), got.size());
        if (s.ok() && got.size() % alignment) break; /* its end: what is behind it cannot be asked for directly */
    }
    if (!s.ok()) return s;
    if (sum.value() == crc) return s;
    return rocksdb::Status::Corruption("the checksum of the file is not the one that it was written with", path);
}

/* From the disk: what the kernel remembers may be better. Some file systems have no other way. */
static rocksdb::Status rocks_check_one(const weir_rocks *db, const rocksdb::LiveFileMetaData *file,
                                       const std::string &path) {
    uint32_t crc = 0;
    bool known = file && rocks_checksum_of(*file, &crc);
    rocksdb::Status s = known ? rocks_check_bytes(crc, path, true) : rocks_check_blocks(db, path, true);
    if (s.ok() || s.IsCorruption()) return s;
    return known ? rocks_check_bytes(crc, path, false) : rocks_check_blocks(db, path, false);
}

static bool rocks_list_files(weir_rocks *db, std::vector<rocksdb::LiveFileMetaData> *files, weir_rocks_status *status) {
    return read_guarded(db, db->folder.c_str(), status, [&] {
        db->db->GetLiveFilesMetaData(files);
        return rocksdb::Status::OK();
    });
}

bool weir_rocks_check_file(weir_rocks *db, const char *path, weir_rocks_status *status) {
    std::vector<rocksdb::LiveFileMetaData> files;
    if (!rocks_list_files(db, &files, status)) return false;
    /* Readers of their own: a damaged file may ask for more memory than there is in the world. */
    return guarded(path ? path : db->folder.c_str(), status, nullptr, [&] {
        std::string wanted = path ? path : "";
        rocksdb::Status s;
        bool met = false;
        for (size_t i = 0; s.ok() && i < files.size(); i++) {
            const std::string one = db->folder + files[i].name;
            if (path && one != wanted) continue;
            met = true;
            s = rocks_check_one(db, &files[i], one);
        }
        return path && !met ? rocks_check_one(db, nullptr, wanted) : s;
    });
}

bool weir_rocks_check_copy(weir_rocks *db, const char *name, const char *path, weir_rocks_status *status) {
    std::vector<rocksdb::LiveFileMetaData> files;
    if (!rocks_list_files(db, &files, status)) return false;
    return guarded(path, status, nullptr, [&] {
        uint32_t crc;
        for (const auto &file : files)
            if (rocks_checksum_of(file, &crc) && file.name == std::string("/") + name)
                return rocks_check_one(db, &file, path);
        return rocksdb::Status::NotFound("no checksum is known of", name);
    });
}

void weir_rocks_numbers_get(weir_rocks *db, weir_rocks_numbers *numbersp) {
    weir_rocks_status status;
    weir_rocks_numbers numbers{};
    read_guarded(db, nullptr, &status, [&] {
        std::vector<rocksdb::LiveFileMetaData> files;
        db->db->GetIntProperty(rocksdb::DB::Properties::kLiveSstFilesSize, &numbers.live_bytes);
        db->db->GetIntProperty(rocksdb::DB::Properties::kEstimateNumKeys, &numbers.keys_estimate);
        db->db->GetIntProperty(rocksdb::DB::Properties::kEstimatePendingCompactionBytes, &numbers.compaction_bytes);
        db->db->GetLiveFilesMetaData(&files);
        numbers.live_files = files.size();
        std::set<int> levels;
        for (const auto &file : files)
            if (file.level == 0)
                numbers.level0_files++;
            else
                levels.insert(file.level);
        /* At exactly runs_max runs RocksDB says that a compaction is due; where each run is larger than all newer ones it
         * never does it. What is due is asked first: what begins meanwhile is counted as running. */
        uint64_t due = 0;
        db->db->GetIntProperty(rocksdb::DB::Properties::kCompactionPending, &due);
        if (numbers.level0_files + levels.size() > runs_max) numbers.jobs += due;
        for (const auto &name :
             {rocksdb::DB::Properties::kMemTableFlushPending, rocksdb::DB::Properties::kNumRunningFlushes,
              rocksdb::DB::Properties::kNumRunningCompactions}) {
            uint64_t jobs = 0;
            db->db->GetIntProperty(name, &jobs);
            numbers.jobs += jobs;
        }
        return rocksdb::Status::OK();
    });
    numbers.taken_bytes = db->work->taken_bytes;
    numbers.compacted_bytes = db->work->compacted_bytes;
    numbers.compaction_cpu_us = db->work->compaction_cpu_us;
    numbers.merges = db->merging ? db->merging->merges() : 0;
    *numbersp = numbers;
}
