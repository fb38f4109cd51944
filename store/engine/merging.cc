/* SPDX-License-Identifier: Apache-2.0 */
/* merging.cc - see merging.hh. */
#include "merging.hh"

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include <unistd.h>

#include <rocksdb/table_properties.h>

#include <weir/store/base/bytes.h>
#include <weir/store/base/err.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>

#include "blocks.h"
#include "blocks_format.h"
#include "blocks_merge.h"
#include "sorted.hh"
#include "sorted_writer.hh"

namespace {

constexpr uint64_t checksum_mark = 0x77656972ull << 32; /* a year that no data is of */
constexpr size_t records_between_looks = 1024;
constexpr uint64_t memory_max = 64u << 20; /* for the indices and windows of the files that are open at once */

struct Input {
    std::string path;
    uint64_t bytes, open_bytes, sequence;
    bool in_parts, has_sequence;
    size_t run;
};

/* What a thread is to merge next. */
struct Plan {
    uint64_t job = 0;
    std::string folder;
    int output_level = 0;
    std::vector<Input> inputs;
};
/* One with a destructor would need memory to be registered, without which the C library ends the process. */
thread_local Plan *planned;

struct Output {
    std::string name, smallest, largest; /* keys as RocksDB has them, with the number of their write */
    uint64_t least_sequence = UINT64_MAX, greatest_sequence = 0, last_sequence = 0, bytes = 0;
    uint32_t crc = 0;
};

struct CloseMerge {
    void operator()(weir_blocks_merge *merge) const {
        weir_blocks_merge_close(merge);
    }
};

struct CloseJoiner {
    const weir_engine_joining *joining;
    void operator()(void *joiner) const {
        joining->close(joiner);
    }
};

/* A file that came in as a whole has one number, which is the database's to know: its records have none. */
bool input_of(const rocksdb::LiveFileMetaData &file, const rocksdb::TableProperties &properties, Input *input) {
    static const char came_in[] = "rocksdb.external_sst_file.version";
    input->path = file.db_path + file.name;
    input->bytes = file.size;
    input->open_bytes = properties.index_size * sorted_index_grows + WEIR_BLOCKS_WALK_BYTES;
    input->has_sequence = properties.user_collected_properties.count(came_in) > 0;
    input->sequence = file.largest_seqno;
    return sorted_has_our_blocks(properties, &input->in_parts) && properties.num_deletions == 0 &&
           properties.num_merge_operands == 0 && properties.num_range_deletions == 0 &&
           (!input->has_sequence || file.smallest_seqno == file.largest_seqno);
}

/* Of each run one file is open at a time. */
uint64_t memory_of(const std::vector<Input> &inputs) {
    uint64_t bytes = 0, largest = 0;
    for (size_t i = 0; i < inputs.size(); i++) {
        bool begins = i > 0 && inputs[i].run != inputs[i - 1].run;
        bytes += begins ? largest : 0;
        largest = begins ? inputs[i].open_bytes : std::max(largest, inputs[i].open_bytes);
    }
    return bytes + largest;
}

/* Null: RocksDB does it, and *why says why. Who reads as of a moment keeps older records alive, which are dropped
 * here. */
std::unique_ptr<Plan> plan_of(rocksdb::DB *db, const rocksdb::CompactionJobInfo &info, const char **why) {
    std::vector<rocksdb::LiveFileMetaData> live;
    auto made = std::make_unique<Plan>();
    uint64_t moments = 1;
    *why = "somebody reads as of a moment";
    if (!db->GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &moments) || moments > 0) return nullptr;
    *why = "a file is of another kind";
    db->GetLiveFilesMetaData(&live);
    made->job = static_cast<uint64_t>(info.job_id) << 32;
    made->folder = db->GetName();
    made->output_level = info.output_level;
    for (size_t i = 0; i < info.input_files.size(); i++) {
        const rocksdb::CompactionFileInfo &of = info.input_file_infos[i];
        const auto properties = info.table_properties.find(info.input_files[i]);
        Input input{};
        bool known = false;
        for (const auto &file : live)
            if (file.file_number == of.file_number && properties != info.table_properties.end())
                known = input_of(file, *properties->second, &input);
        if (!known) return nullptr;
        /* Its level counts from that of the first input. Files of a level begin behind each other, but at level 0. */
        bool beside = i > 0 && of.level == info.input_file_infos[i - 1].level && info.base_input_level + of.level > 0;
        input.run = i == 0 ? 0 : made->inputs[i - 1].run + !beside;
        made->inputs.push_back(std::move(input));
    }
    *why = "it would take too much memory";
    bool fits = !made->inputs.empty() && memory_of(made->inputs) <= memory_max;
    return fits ? std::move(made) : nullptr;
}

/* --- what comes of it --------------------------------------------------------------------------------------------- */

rocksdb::Slice slice_of(const void *bytes, size_t length) {
    return rocksdb::Slice(static_cast<const char *>(bytes), length);
}

std::string key_with(const rocksdb::Slice &key, uint64_t sequence) {
    uint8_t suffix[WEIR_BLOCKS_SUFFIX_BYTES];
    weir_put_u64(suffix, sequence << 8 | WEIR_BLOCKS_KIND_PUT);
    return key.ToString() + slice_of(suffix, sizeof suffix).ToString();
}

/* Writes one file after the other. */
class Outputs {
  public:
    Outputs(const rocksdb::Options &options, const Plan &plan)
        : options_(options), folder_(plan.folder),
          bytes_max_(plan.output_level > 0 ? options.target_file_size_base : UINT64_MAX) {}
    ~Outputs() {
        for (const Output &one : all_)
            if (!taken_) unlink((folder_ + "/" + one.name).c_str());
    }
    weir_err add(const weir_engine_record &record);
    weir_err finish();
    uint64_t records() const {
        return records_;
    }
    void taken() {
        taken_ = true;
    }
    const std::vector<Output> &all() const {
        return all_;
    }

  private:
    weir_err begin(const weir_engine_record &record);

    const rocksdb::Options &options_;
    const std::string folder_;
    const uint64_t bytes_max_;
    std::unique_ptr<SortedWriter> writer_; /* null: between two files */
    std::vector<Output> all_;
    std::string last_key_;
    uint64_t records_ = 0;
    bool taken_ = false;
};

weir_err Outputs::begin(const weir_engine_record &record) {
    Output output;
    /* A name that never comes again: an opening removes those that it has found before. */
    output.name = merging_file_begin + sorted_unique_name() + merging_file_end;
    output.smallest = key_with(slice_of(record.key, record.key_length), record.sequence);
    all_.push_back(output);
    weir_kill_point("engine.merging");
    writer_ = std::make_unique<SortedWriter>(options_, SortedWriter::merged);
    return writer_->open(folder_ + "/" + output.name);
}

weir_err Outputs::add(const weir_engine_record &record) {
    const rocksdb::Slice key = slice_of(record.key, record.key_length);
    weir_err err = WEIR_OK;
    if (records_ > 0 && key.compare(last_key_) <= 0)
        return WEIR_ERR(WEIR_EORDER, "records that were joined are not in the order of their keys");
    if (writer_ && writer_->bytes() >= bytes_max_) err = finish();
    if (!err && !writer_) err = begin(record);
    if (err) return err;
    Output &output = all_.back();
    output.least_sequence = std::min(output.least_sequence, record.sequence);
    output.greatest_sequence = std::max(output.greatest_sequence, record.sequence);
    last_key_.assign(key.data(), key.size());
    output.last_sequence = record.sequence;
    records_++;
    return writer_->add(key, record.sequence, slice_of(record.value, record.value_length));
}

weir_err Outputs::finish() {
    if (!writer_) return WEIR_OK;
    Output &output = all_.back();
    output.largest = key_with(last_key_, output.last_sequence);
    weir_err err = writer_->finish(&output.bytes, &output.crc);
    writer_.reset();
    return err;
}

/* --- what RocksDB is told ----------------------------------------------------------------------------------------- */

std::string hex(const std::string &bytes) {
    return rocksdb::Slice(bytes).ToString(true);
}

std::string member(const char *name, uint64_t number) {
    return std::string(name) + "=" + std::to_string(number) + ";";
}

std::string said_of(const Output &output, uint64_t now_s) {
    return "{file_name=" + hex(output.name) + ";smallest_internal_key=" + hex(output.smallest) +
           ";largest_internal_key=" + hex(output.largest) + ";" + member("smallest_seqno", output.least_sequence) +
           member("largest_seqno", output.greatest_sequence) +
           member("oldest_ancester_time", checksum_mark | output.crc) + member("file_creation_time", now_s) +
           member("paranoid_hash", 0) + "marked_for_compaction=false;unique_id={0:0}}";
}

/* In the words of RocksDB's options, behind the version of this format. */
std::string answer(const Plan &plan, const std::vector<Output> &outputs, uint64_t records, uint64_t cpu_us) {
    uint64_t read = 0, written = 0;
    std::string files;
    for (const Input &input : plan.inputs)
        read += input.bytes;
    for (const Output &output : outputs) {
        written += output.bytes;
        files += (files.empty() ? "" : ":") + said_of(output, static_cast<uint64_t>(time(nullptr)));
    }
    return std::string("\1\0\0\0", 4) + "output_files={" + files + "};output_path=" + hex(plan.folder) + ";" +
           member("output_level", static_cast<uint64_t>(plan.output_level)) + member("num_output_records", records) +
           member("total_bytes", written) + member("bytes_read", read) + member("bytes_written", written) + "stats={" +
           member("cpu_micros", cpu_us) + member("num_output_records", records) + "};";
}

uint64_t cpu_now_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

/* Called by C, through which nothing may be thrown. */
weir_err emit(void *context, const weir_engine_record *record) noexcept {
    try {
        return static_cast<Outputs *>(context)->add(*record);
    } catch (...) {
        return WEIR_NOMEM("while merging files");
    }
}

weir_err merge_all(const Plan &plan, const weir_engine_joining *joining, const std::atomic<bool> &stopped,
                   Outputs *outputs) {
    std::vector<weir_blocks_merge_file> files;
    weir_blocks_merge *opened = nullptr;
    weir_engine_record record{};
    void *joiner = nullptr;
    uint64_t records = 0;
    bool found = true;
    for (const Input &input : plan.inputs)
        files.push_back({input.path.c_str(), input.in_parts, input.has_sequence, input.sequence, input.run});
    weir_err err = weir_blocks_merge_open(files.data(), files.size(), &opened);
    std::unique_ptr<weir_blocks_merge, CloseMerge> merge(opened);
    if (!err && joining) err = joining->open(emit, outputs, &joiner);
    std::unique_ptr<void, CloseJoiner> closed(joiner, CloseJoiner{joining});
    while (!err && found) {
        if (records++ % records_between_looks == 0 && stopped)
            return WEIR_ERR(WEIR_ECLOSED, "%s is being closed", plan.folder.c_str());
        err = weir_blocks_merge_next(merge.get(), &record, &found);
        if (!err && found) err = joiner ? joining->add(joiner, &record) : outputs->add(record);
    }
    if (!err && joiner) err = joining->end(joiner);
    return err ? err : outputs->finish();
}

} // namespace

bool merging_checksum(const rocksdb::LiveFileMetaData &file, uint32_t *crc) {
    *crc = static_cast<uint32_t>(file.oldest_ancester_time);
    return file.oldest_ancester_time >> 32 << 32 == checksum_mark;
}

Merging::Merging(const rocksdb::Options &options, const weir_engine_joining *joining)
    : options_(options), joining_(joining) {}

void Merging::begin(rocksdb::DB *db, const rocksdb::CompactionJobInfo &info) noexcept {
    const char *why = "memory is short";
    delete planned;
    planned = nullptr;
    if (stopped_) return;
    try {
        planned = plan_of(db, info, &why).release();
    } catch (...) {
        planned = nullptr;
    }
    if (!planned)
        weir_log_write(WEIR_LOG_INFO, "engine.merge_left", nullptr, 0, "RocksDB merges %zu files itself: %s",
                       info.input_files.size(), why);
}

/* A part of a job is not for here: it begins or ends at a key. */
rocksdb::CompactionServiceJobStatus Merging::StartV2(const rocksdb::CompactionServiceJobInfo &info,
                                                     const std::string &input) {
    bool whole = input.find("has_begin=false") != std::string::npos && input.find("has_end=false") != std::string::npos;
    bool ours = planned && planned->job == info.job_id && planned->folder == info.db_name && whole;
    return ours ? rocksdb::CompactionServiceJobStatus::kSuccess : rocksdb::CompactionServiceJobStatus::kUseLocal;
}

rocksdb::CompactionServiceJobStatus Merging::WaitForCompleteV2(const rocksdb::CompactionServiceJobInfo &,
                                                               std::string *result) {
    const std::unique_ptr<Plan> own(planned);
    const uint64_t begin_us = cpu_now_us();
    planned = nullptr;
    try {
        Outputs outputs(options_, *own);
        weir_err err = merge_all(*own, joining_, stopped_, &outputs);
        if (!err) {
            *result = answer(*own, outputs.all(), outputs.records(), cpu_now_us() - begin_us);
            outputs.taken();
            weir_kill_point("engine.merged");
            merges_++;
            return rocksdb::CompactionServiceJobStatus::kSuccess;
        }
        if (!stopped_) weir_log_error("engine.not_merged", err);
    } catch (...) {
        result->clear();
    }
    return rocksdb::CompactionServiceJobStatus::kUseLocal;
}
