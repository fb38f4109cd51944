/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.c - append, group sync, roll and retention of one partition.
 *
 * Two buffers: appends fill one under the mutex while the other is written and synced without it.
 *
 *             weir_elog_partition_append               elog_partition_lead
 *   records ────────────────────────────► filling ──── swap ────────────► writing ──────────────► empty
 *                                                                            │ segment file, fdatasync, mark
 *   offset_end                                                        offset_written      offset_durable
 *
 * Whoever finds work and no thread at it (`busy`) leads: it swaps the buffers, leaves the mutex, writes and syncs all
 * that is there, and tells the others. Those wait, and find their records durable or lead the next group, which then
 * holds what all of them have appended. So N callers at once cost two syncs, not N, and an append waits for a sync only
 * when its buffer is full (ELOG_BUFFER_MAX_BYTES) before the disk has finished the other one.
 *
 * A failure keeps its sentence and sets `failed` (EVENTLOG-L4): from then on it is unknown what the file holds from
 * offset_synced on. A second write could leave a hole between records, and a second sync could report success for pages
 * that the kernel has dropped. What was to be written stays in memory, so that resume.c can cut the file and write it
 * anew.
 */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/metrics.h>

#include "eventlog_private.h"

void weir_elog_partition_init(weir_elog_partition *partition, weir_eventlog *log, uint32_t number) {
    partition->log = log;
    partition->origin = weir_elog_origin_of(log->folder, log->creation_id, number);
    weir_mutex_init(&partition->mutex, WEIR_RANK_EVENTLOG, "eventlog partition");
    weir_cond_init(&partition->changed);
}

void weir_elog_partition_free(weir_elog_partition *partition) {
    if (!partition->log) return;
    weir_elog_row_free(&partition->row);
    weir_free(partition->filling.bytes);
    weir_free(partition->writing.bytes);
    weir_cond_destroy(&partition->changed);
    weir_mutex_destroy(&partition->mutex);
    partition->log = NULL;
}

static weir_err elog_partition_poisoned(const weir_elog_partition *partition) {
    return WEIR_ERR(WEIR_EPOISONED,
                    "partition %u of topic %s stopped at offset %" PRIu64
                    " after a failure (%s); it goes on when its cause is removed",
                    partition->origin.partition, partition->log->topic, partition->offset_durable, partition->failure);
}

weir_err weir_elog_partition_health(weir_elog_partition *partition) {
    weir_mutex_lock(&partition->mutex);
    weir_err err = partition->failed ? elog_partition_poisoned(partition) : WEIR_OK;
    weir_mutex_unlock(&partition->mutex);
    return err;
}

/* --- the leader ------------------------------------------------------------------------------------------------- */

typedef struct elog_piece {
    size_t bytes;
    uint64_t records;
    int64_t time_newest;
} elog_piece;

/* The records from bytes on that still fit into `room`; at least one if `force`. They are our own encoding. */
static elog_piece elog_piece_of(const uint8_t *bytes, size_t length, uint64_t room, bool force) {
    elog_piece piece = {0};
    while (piece.bytes < length) {
        const uint8_t *record = bytes + piece.bytes;
        size_t record_bytes = weir_elog_record_length(record);
        WEIR_ASSERT(record_bytes && record_bytes <= length - piece.bytes);
        if (piece.bytes + record_bytes > room && !(force && piece.records == 0)) break;
        int64_t time = weir_elog_record_time(record);
        if (piece.records == 0 || time > piece.time_newest) piece.time_newest = time;
        piece.bytes += record_bytes;
        piece.records++;
    }
    return piece;
}

/* Everything before a new segment is durable before the segment exists: its name is a promise (EVENTLOG-L3). */
static weir_err elog_partition_roll(weir_elog_partition *partition) {
    weir_elog_segment segment = {.first = partition->offset_written, .bytes = ELOG_SEGMENT_HEADER};
    weir_file *file = NULL;
    weir_err err = partition->file ? weir_file_sync(partition->file) : WEIR_OK;
    weir_kill_point("eventlog.roll");
    if (!err) err = weir_elog_segment_create(&partition->origin, segment.first, &file);
    if (err) return err;
    err = weir_file_close(partition->file);
    partition->file = file;
    if (err) return err;
    weir_mutex_lock(&partition->mutex);
    err = weir_elog_row_insert(&partition->row, partition->row.count, &segment);
    weir_mutex_unlock(&partition->mutex);
    return err;
}

/* Writes the group, piece by piece into the last segment and those that it begins.  While `busy` is ours. */
static weir_err elog_partition_write(weir_elog_partition *partition) {
    const uint8_t *bytes = partition->writing.bytes;
    size_t length = partition->writing.length;
    uint64_t segment_bytes = partition->log->opts.segment_bytes;
    while (length) {
        uint64_t used = partition->file ? weir_file_length(partition->file) : segment_bytes;
        bool empty = partition->file && used == ELOG_SEGMENT_HEADER;
        elog_piece piece = elog_piece_of(bytes, length, segment_bytes > used ? segment_bytes - used : 0, empty);
        weir_err err =
            piece.bytes ? weir_file_append(partition->file, bytes, piece.bytes) : elog_partition_roll(partition);
        if (err) return err;
        if (piece.bytes == 0) continue;

        weir_mutex_lock(&partition->mutex);
        weir_elog_segment *last = &partition->row.segments[partition->row.count - 1];
        weir_elog_segment_note(last, partition->offset_written, last->bytes);
        if (!last->time_known || piece.time_newest > last->time_newest) last->time_newest = piece.time_newest;
        last->time_known = true;
        last->bytes += piece.bytes;
        WEIR_ASSERT(last->bytes == weir_file_length(partition->file));
        weir_mutex_unlock(&partition->mutex);
        partition->offset_written += piece.records;
        weir_metric_add(WEIR_METRIC_EVENTLOG_APPENDED_BYTES, piece.bytes);
        bytes += piece.bytes;
        length -= piece.bytes;
    }
    return WEIR_OK;
}

void weir_elog_partition_synced(weir_elog_partition *partition, uint64_t offset) {
    weir_mutex_lock(&partition->mutex);
    size_t count = partition->row.count;
    partition->offset_synced = offset;
    partition->synced_first = count ? partition->row.segments[count - 1].first : 0;
    partition->synced_bytes = partition->file ? weir_file_length(partition->file) : 0;
    weir_mutex_unlock(&partition->mutex);
}

/* Writes all that was appended, and makes it durable if asked. Called and left with the mutex held. */
static weir_err elog_partition_lead(weir_elog_partition *partition, bool durable) {
    WEIR_ASSERT(weir_mutex_held(&partition->mutex) && !partition->busy && partition->writing.length == 0);
    const weir_elog_buffer emptied = partition->writing;
    const uint64_t target = partition->offset_end;
    const int64_t time_end = partition->time_end;
    weir_clock *clock = partition->log->opts.clock;
    partition->writing = partition->filling;
    partition->filling = emptied;
    partition->writing_first = partition->offset_written;
    partition->busy = true;
    weir_mutex_unlock(&partition->mutex);

    weir_err err = elog_partition_write(partition);
    weir_kill_point("eventlog.written");
    WEIR_ASSERT(err || partition->offset_written == target); // EVENTLOG-L1
    if (!err && durable) {
        int64_t begin_us = weir_clock_mono_us(clock);
        err = weir_file_sync(partition->file);
        if (!err) {
            int64_t took_us = weir_clock_mono_us(clock) - begin_us;
            weir_metric_observe(WEIR_METRIC_EVENTLOG_SYNC_SECONDS, (uint64_t)took_us);
            weir_kill_point("eventlog.synced");
            weir_elog_partition_synced(partition, target);
            err = weir_elog_marks_put(&partition->log->marks, partition->origin.partition, target);
            weir_kill_point("eventlog.marked");
        }
    }

    weir_mutex_lock(&partition->mutex);
    if (!err && durable) {
        WEIR_ASSERT(target >= partition->offset_durable && target <= partition->offset_end);
        partition->offset_durable = target; // EVENTLOG-L2
        partition->time_last = time_end;
    }
    if (!err) partition->writing.length = 0;
    if (!err && partition->writing.capacity > 2 * ELOG_BUFFER_WRITE_BYTES) { /* a large one is given back */
        weir_free(partition->writing.bytes);
        partition->writing = (weir_elog_buffer){0};
    }
    if (err && !partition->failed) {
        partition->failed = true; // EVENTLOG-L4
        weir_err_sentence(err, partition->failure, sizeof partition->failure);
    }
    partition->busy = false;
    weir_cond_broadcast(&partition->changed);
    return err;
}

weir_err weir_elog_partition_sync(weir_elog_partition *partition) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&partition->mutex);
    uint64_t target = partition->offset_end;
    while (!err && partition->offset_durable < target) {
        if (partition->failed) {
            err = elog_partition_poisoned(partition);
        } else if (partition->busy) {
            weir_cond_wait(&partition->changed, &partition->mutex);
        } else {
            err = elog_partition_lead(partition, true);
        }
    }
    weir_mutex_unlock(&partition->mutex);
    return err;
}

/* --- append ----------------------------------------------------------------------------------------------------- */

static weir_err elog_buffer_reserve(weir_elog_buffer *buffer, size_t bytes) {
    size_t want = buffer->length + bytes, capacity = buffer->capacity ? buffer->capacity : 64u << 10;
    if (want <= buffer->capacity) return WEIR_OK;
    while (capacity < want)
        capacity *= 2;
    uint8_t *grown = weir_realloc_array(buffer->bytes, capacity, 1);
    if (!grown) return WEIR_NOMEM("while buffering %zu bytes of records", want);
    buffer->bytes = grown;
    buffer->capacity = capacity;
    return WEIR_OK;
}

weir_err weir_elog_partition_append(weir_elog_partition *partition, const weir_record *records, size_t count,
                                    size_t bytes, uint64_t *first_offsetp) {
    weir_elog_buffer *filling = &partition->filling;
    weir_err err = WEIR_OK;
    weir_mutex_lock(&partition->mutex);
    /* Waits, or writes, until the batch fits; a batch that is larger than the buffer will be alone in it. */
    while (!err && !partition->failed && filling->length && filling->length + bytes > ELOG_BUFFER_MAX_BYTES) {
        if (partition->busy) {
            weir_cond_wait(&partition->changed, &partition->mutex);
        } else {
            err = elog_partition_lead(partition, false);
        }
    }
    if (!err && partition->failed) err = elog_partition_poisoned(partition);
    if (!err) err = elog_buffer_reserve(filling, bytes);
    if (err) goto done;

    const size_t length = filling->length;
    for (size_t i = 0; i < count; i++) {
        weir_elog_record_encode(filling->bytes + filling->length, &partition->origin, &records[i],
                                partition->offset_end + i, partition->offset_durable);
        filling->length += weir_elog_record_bytes(&records[i]);
    }
    WEIR_ASSERT(filling->length == length + bytes && filling->length <= filling->capacity);
    *first_offsetp = partition->offset_end;
    partition->offset_end += count; // EVENTLOG-L1
    partition->time_end = records[count - 1].time_us;
    weir_metric_add(WEIR_METRIC_EVENTLOG_APPENDED_RECORDS, count);
    /* They are appended: what fails from here on, the next sync tells. */
    if (filling->length >= ELOG_BUFFER_WRITE_BYTES && !partition->busy) (void)elog_partition_lead(partition, false);
done:
    weir_mutex_unlock(&partition->mutex);
    return err;
}

/* --- retention ------------------------------------------------------------------------------------------------ */

/* The newest time of the oldest segment. Only retain removes segments, so it stays where it is without the mutex. */
static weir_err elog_retain_time(weir_elog_partition *partition, uint64_t first, uint64_t next_first,
                                 int64_t *newestp) {
    weir_elog_segment segment = {.first = first};
    weir_elog_scan scan;
    char path[ELOG_PATH_MAX];
    weir_file *file = NULL;
    weir_elog_segment_path(path, &partition->origin, first);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &file);
    if (err) return err;
    err = weir_elog_segment_scan(file, &partition->origin, &segment, next_first, &scan);
    if (!err && scan.offset != next_first) {
        err = WEIR_ERR(WEIR_ECORRUPT, "%s: byte %" PRIu64 " should be record %" PRIu64 ": %s; its age is not known",
                       path, scan.position, scan.offset, scan.problem ? scan.problem : "the file ends");
    }
    *newestp = scan.time_newest;
    weir_elog_segment_free(&segment);
    weir_err_keep(&err, weir_file_close(file));
    return err;
}

/* Whether the oldest segment may go: *removep. */
static weir_err elog_retain_may_remove(weir_elog_partition *partition, uint64_t keep_from, bool *removep) {
    const weir_eventlog_opts *opts = &partition->log->opts;
    int64_t newest = 0;
    weir_err err = WEIR_OK;
    *removep = false;
    weir_mutex_lock(&partition->mutex);
    if (partition->row.count < 2 || partition->row.segments[1].first > keep_from) {
        weir_mutex_unlock(&partition->mutex);
        return WEIR_OK;
    }
    weir_elog_segment oldest = partition->row.segments[0];
    uint64_t next_first = partition->row.segments[1].first;
    uint64_t bytes = weir_elog_row_bytes(&partition->row);
    weir_mutex_unlock(&partition->mutex);

    *removep = opts->retain_bytes && bytes > opts->retain_bytes;
    if (*removep || !opts->retain_us) return WEIR_OK;
    newest = oldest.time_newest;
    if (!oldest.time_known) err = elog_retain_time(partition, oldest.first, next_first, &newest);
    if (err) return err;
    weir_mutex_lock(&partition->mutex);
    partition->row.segments[0].time_newest = newest;
    partition->row.segments[0].time_known = true;
    weir_mutex_unlock(&partition->mutex);
    *removep = newest < weir_clock_wall_us(opts->clock) - opts->retain_us;
    return WEIR_OK;
}

/* Out of the row first: no reader must be sent to a file that is about to go. Back into it if the file stays, because
 * to go on with the next one would tear a hole into the partition. */
static weir_err elog_retain_remove(weir_elog_partition *partition) {
    char path[ELOG_PATH_MAX];
    weir_mutex_lock(&partition->mutex);
    weir_elog_segment oldest = weir_elog_row_take(&partition->row, 0);
    weir_mutex_unlock(&partition->mutex);
    weir_elog_segment_path(path, &partition->origin, oldest.first);
    weir_err err = weir_file_remove(path);
    weir_kill_point("eventlog.retained");
    if (err && weir_path_exists(path)) {
        weir_mutex_lock(&partition->mutex);
        weir_err_keep(&err, weir_elog_row_insert(&partition->row, 0, &oldest));
        weir_mutex_unlock(&partition->mutex);
        return err;
    }
    weir_elog_segment_free(&oldest);
    weir_metric_add(WEIR_METRIC_EVENTLOG_SEGMENTS_REMOVED, 1);
    return err;
}

weir_err weir_elog_partition_retain(weir_elog_partition *partition, uint64_t keep_from, uint64_t *removedp) {
    for (;;) {
        bool remove;
        weir_err err = elog_retain_may_remove(partition, keep_from, &remove);
        if (err || !remove) return err;
        err = elog_retain_remove(partition);
        if (err) return err;
        (*removedp)++;
    }
}
