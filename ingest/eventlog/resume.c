/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.c - a poisoned partition goes on in place, once what stopped it has ended.
 *
 *   file     … records that were synced │ whatever a failed write or sync has left │
 *                                       ▲ offset_synced: cut here, and write again what memory still has:
 *   memory                              │ read back │ writing │ filling │
 *
 * After a failed sync the kernel may have dropped the pages and call them clean, so what the file holds after the last
 * sync that went well proves nothing, and a second sync would lie. So it is thrown away and written anew. Nothing that
 * was appended is lost by that, nor gets another offset, nor is there twice (EVENTLOG-L1): a caller that was told
 * "unknown" finds it there. The cut makes the page that it goes through dirty, so that the next sync writes that one
 * too; pages before it were synced. The segment is read again all the same before anything is added to it.
 *
 * Records that were written, but neither synced nor kept in memory, are read back first. If that cannot be, the
 * partition stays as it is: to open the log again is to look (EVENTLOG-L3).
 */
#include <inttypes.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/log.h>

#include "eventlog_private.h"

/* --- what memory no longer has ---------------------------------------------------------------------------------- */

/* Records of one segment from offset on, up to the end of the file or to limit. */
static weir_err elog_resume_read_segment(const weir_elog_origin *origin, uint64_t first, uint64_t position,
                                         uint64_t limit, uint64_t *offsetp, weir_buf *out) {
    char path[ELOG_PATH_MAX];
    weir_elog_window window = {0};
    weir_elog_found found = {.length = 1};
    weir_elog_segment_path(path, origin, first);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &window.file);
    while (!err && *offsetp < limit) {
        err = weir_elog_window_record(&window, origin, position, *offsetp, &found);
        if (!err && found.problem)
            err = WEIR_ERR(WEIR_ECORRUPT, "%s: byte %" PRIu64 " should be record %" PRIu64 ": %s", path, position,
                           *offsetp, found.problem);
        if (err || found.length == 0) break;
        weir_buf_append(out, found.bytes, found.length);
        position += found.length;
        ++*offsetp;
    }
    weir_err_keep(&err, weir_file_close(window.file));
    weir_elog_window_free(&window);
    return err ? err : weir_buf_err(out);
}

static weir_err elog_resume_read_back(const weir_elog_partition *partition, weir_buf *out) {
    bool has_segment = partition->synced_bytes > 0;
    uint64_t offset = partition->offset_synced, position = has_segment ? partition->synced_bytes : ELOG_SEGMENT_HEADER;
    uint64_t first = has_segment ? partition->synced_first : offset, before;
    weir_err err = WEIR_OK;
    while (!err && offset < partition->writing_first) {
        before = offset;
        err = elog_resume_read_segment(&partition->origin, first, position, partition->writing_first, &offset, out);
        if (!err && offset == before && first == offset)
            err = WEIR_ERR(WEIR_ECORRUPT, "record %" PRIu64 " of partition %u cannot be read back", offset,
                           partition->origin.partition);
        first = offset;
        position = ELOG_SEGMENT_HEADER;
    }
    return err;
}

/* --- the file --------------------------------------------------------------------------------------------------- */

/* Removes the segments that were begun since the last sync. */
static weir_err elog_resume_remove_newer(const weir_elog_partition *partition) {
    weir_elog_row row = {0};
    weir_err err = weir_elog_row_list(&row, &partition->origin);
    for (size_t i = row.count; !err && i > 0; i--) {
        char path[ELOG_PATH_MAX];
        uint64_t first = row.segments[i - 1].first;
        if (partition->synced_bytes && first <= partition->synced_first) break;
        weir_elog_segment_path(path, &partition->origin, first);
        err = weir_file_remove(path);
    }
    weir_elog_row_free(&row);
    return err;
}

/* The file after the cut: all that was synced must be there. */
static weir_err elog_resume_check(const weir_elog_partition *partition, weir_file *file) {
    weir_elog_segment segment = {.first = partition->synced_first};
    weir_elog_scan scan = {0};
    weir_err err = weir_elog_segment_check(file, &partition->origin, segment.first);
    if (!err) err = weir_elog_segment_scan(file, &partition->origin, &segment, UINT64_MAX, &scan);
    weir_elog_segment_free(&segment);
    if (err || (!scan.problem && scan.offset == partition->offset_synced)) return err;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "%s: byte %" PRIu64 " should be record %" PRIu64 ", and all below %" PRIu64
                    " were on the disk: %s; bring the file back from a copy",
                    weir_file_path(file), scan.position, scan.offset, partition->offset_synced,
                    scan.problem ? scan.problem : "the file ends");
}

/* *filep: the last segment, open to append after the last sync; NULL: there is none. */
static weir_err elog_resume_cut(const weir_elog_partition *partition, weir_file **filep) {
    char path[ELOG_PATH_MAX];
    *filep = NULL;
    weir_err err = elog_resume_remove_newer(partition);
    if (err || !partition->synced_bytes) return err;
    weir_elog_segment_path(path, &partition->origin, partition->synced_first);
    err = weir_file_open(path, WEIR_FILE_READ_WRITE, filep);
    if (!err) err = weir_file_truncate(*filep, partition->synced_bytes);
    if (!err) err = weir_file_sync(*filep);
    if (!err) err = elog_resume_check(partition, *filep);
    if (err) {
        weir_err_keep(&err, weir_file_close(*filep));
        *filep = NULL;
    }
    return err;
}

/* --- the partition ---------------------------------------------------------------------------------------------- */

/* While `busy` is ours. */
static weir_err elog_resume_rewind(weir_elog_partition *partition) {
    weir_elog_row *row = &partition->row;
    weir_buf unsynced = {0}; /* in order: what the file is to get again */
    weir_file *file = NULL;
    weir_err err = elog_resume_read_back(partition, &unsynced);
    if (err) goto done;
    /* A group that was synced, and could not be marked, is on the disk. */
    if (partition->offset_synced <= partition->writing_first)
        weir_buf_append(&unsynced, partition->writing.bytes, partition->writing.length);
    weir_buf_append(&unsynced, partition->filling.bytes, partition->filling.length);
    err = weir_buf_err(&unsynced);
    if (err) goto done;
    weir_file_close(partition->file); /* what it failed to write is in memory */
    partition->file = NULL;

    /* The row as it was at the last sync; before the files, so that no reader is sent to one that is about to go. */
    weir_mutex_lock(&partition->mutex);
    while (row->count && (!partition->synced_bytes || row->segments[row->count - 1].first > partition->synced_first)) {
        weir_elog_segment taken = weir_elog_row_take(row, row->count - 1);
        weir_elog_segment_free(&taken);
    }
    if (row->count) {
        weir_elog_segment *last = &row->segments[row->count - 1];
        last->bytes = partition->synced_bytes;
        while (last->index_count && last->index[last->index_count - 1].position >= last->bytes)
            last->index_count--;
    }
    weir_mutex_unlock(&partition->mutex);

    err = weir_elog_marks_resume(&partition->log->marks);
    if (!err) err = elog_resume_cut(partition, &file);
    if (err) goto done;
    weir_mutex_lock(&partition->mutex);
    WEIR_ASSERT(!file || weir_file_length(file) == partition->synced_bytes);
    partition->file = file;
    partition->offset_written = partition->writing_first = partition->offset_synced;
    weir_free(partition->writing.bytes);
    weir_free(partition->filling.bytes);
    partition->writing = (weir_elog_buffer){0};
    partition->filling = (weir_elog_buffer){(uint8_t *)unsynced.bytes, unsynced.length, unsynced.capacity};
    unsynced = (weir_buf){0};
    partition->failed = false;
    partition->failure[0] = 0;
    weir_mutex_unlock(&partition->mutex);
    WEIR_LOG(INFO, "eventlog.resumed", "the log can be written again", WEIR_TEXT("topic", partition->log->topic),
             WEIR_U64("partition", partition->origin.partition), WEIR_U64("offset", partition->offset_synced));
done:
    weir_buf_free(&unsynced);
    return err;
}

weir_err weir_elog_partition_resume(weir_elog_partition *partition) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&partition->mutex);
    while (partition->busy)
        weir_cond_wait(&partition->changed, &partition->mutex);
    if (!partition->failed) goto done;
    partition->busy = true;
    weir_mutex_unlock(&partition->mutex);
    err = elog_resume_rewind(partition);
    weir_mutex_lock(&partition->mutex);
    partition->busy = false;
    weir_cond_broadcast(&partition->changed);
done:
    weir_mutex_unlock(&partition->mutex);
    return err ? err : weir_elog_partition_sync(partition);
}
