/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merging.hh - merges files of a database in the place of RocksDB.
 *
 * RocksDB decides which files are merged, and when; it takes what comes of it in and removes what it was made of, in
 * one step, as ever. Only the work between is done here, by blocks_merge.h and blocks_writer.h, which know what the
 * records of a store are: puts of short keys, uncompressed, of which the last one counts. RocksDB must expect anything,
 * and takes four times as long.
 *
 *     OnCompactionBegin ─► begin: what is to be merged ─► StartV2 ─► WaitForCompleteV2: new files     (one thread)
 *                                                            └─ anything unusual, or a failure: RocksDB does it
 *
 * So nothing that fails here fails anything: it is logged, and RocksDB meets the same damage, or the same full disk, and
 * stops. RocksDB made this hook for merging on other machines. Its answer has no field for a file's checksum, so we put
 * that where the time of the oldest data belongs: nothing reads that time (rocks.cc turns off what would).
 */
#ifndef WEIR_STORE_ENGINE_MERGING_HH
#define WEIR_STORE_ENGINE_MERGING_HH

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>

#include <weir/store/engine/engine.h>

/* How files that are not in the database yet are named; what a crash leaves of them is removed at the next opening. */
constexpr char merging_file_begin[] = "merge-", merging_file_end[] = ".tmp";

/* The CRC-32C of a file that was written here. false: it was not. */
bool merging_checksum(const rocksdb::LiveFileMetaData &file, uint32_t *crc);

class Merging : public rocksdb::CompactionService {
  public:
    /* options: those of the database, but for this. joining: null, records stay as they are. */
    Merging(const rocksdb::Options &options, const weir_engine_joining *joining);
    const char *Name() const override {
        return "WeirMerging";
    }
    /* By the thread that is to merge. */
    void begin(rocksdb::DB *db, const rocksdb::CompactionJobInfo &info) noexcept;
    /* What is under way ends soon, and RocksDB, which is to be closed, ends it. */
    void stop() {
        stopped_ = true;
    }
    uint64_t merges() const {
        return merges_;
    }
    rocksdb::CompactionServiceJobStatus StartV2(const rocksdb::CompactionServiceJobInfo &info,
                                                const std::string &input) override;
    rocksdb::CompactionServiceJobStatus WaitForCompleteV2(const rocksdb::CompactionServiceJobInfo &info,
                                                          std::string *result) override;

  private:
    const rocksdb::Options options_;
    const weir_engine_joining *const joining_;
    std::atomic<bool> stopped_{false};
    std::atomic<uint64_t> merges_{0};
};

#endif /* WEIR_STORE_ENGINE_MERGING_HH */
