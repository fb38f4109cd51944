/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - reads durable records of one partition.
 *
 * A reader has its own file and its own window, and asks the partition only how far it may go (EVENTLOG-L2). It goes
 * from one segment to the next by name: the next one is called after the offset that follows (EVENTLOG-L1), so it needs
 * no list that another thread, or another process, might be changing. A segment that retention removes stays readable
 * while it is open; the step to one that is gone is an error that says so.
 */
#include <inttypes.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "eventlog_private.h"

struct weir_eventlog_reader {
    weir_eventlog *log;             /* borrowed */
    weir_elog_partition *partition; /* of log   */
    weir_file *file;                /* NULL: the segment called `offset` is to be opened */
    weir_elog_window window;
    uint64_t segment_first;
    uint64_t position; /* in file, of record `offset` */
    uint64_t offset;   /* of the next record          */
    uint64_t durable;  /* how far it may go           */
    uint64_t noted;    /* position of the last note   */
};

/* --- from segment to segment ---------------------------------------------------------------------------------- */

/* A segment is not there: was it retention, or damage? */
static weir_err elog_reader_missing(const weir_eventlog_reader *reader, const char *path) {
    const weir_elog_origin *origin = &reader->partition->origin;
    weir_elog_row row = {0};
    weir_err err = weir_elog_row_list(&row, origin);
    uint64_t begin = row.count ? row.segments[0].first : UINT64_MAX;
    weir_elog_row_free(&row);
    if (err) return err;
    if (begin != UINT64_MAX && reader->offset < begin) {
        return WEIR_ERR(WEIR_ENOTFOUND,
                        "offset %" PRIu64
                        " of partition %u of topic %s is gone: retention has removed all below %" PRIu64
                        "; read on from there",
                        reader->offset, origin->partition, reader->log->topic, begin);
    }
    return WEIR_ERR(WEIR_ECORRUPT,
                    "%s: missing, and record %" PRIu64 " was acknowledged; bring the file back from a copy", path,
                    reader->offset);
}

static void elog_reader_leave(weir_eventlog_reader *reader) {
    weir_file_close(reader->file); /* read only: nothing can be lost */
    reader->file = NULL;
}

static weir_err elog_reader_enter(weir_eventlog_reader *reader, uint64_t first) {
    char path[ELOG_PATH_MAX];
    WEIR_ASSERT(!reader->file);
    weir_elog_segment_path(path, &reader->partition->origin, first);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &reader->file);
    if (weir_err_is(err, WEIR_ENOTFOUND))
        err = elog_reader_missing(reader, path);
    else if (!err)
        err = weir_elog_segment_check(reader->file, &reader->partition->origin, first);
    if (err) {
        elog_reader_leave(reader);
        /* Who appends holds the topic: what it lacks is damage, whatever else has gone with it. */
        return reader->log->opts.read_only ? weir_elog_or_gone(reader->log, err) : err;
    }
    weir_elog_window_reset(&reader->window, reader->file);
    reader->segment_first = first;
    reader->position = reader->noted = ELOG_SEGMENT_HEADER;
    return WEIR_OK;
}

static weir_err elog_reader_damaged(const weir_eventlog_reader *reader, const char *problem) {
    return WEIR_ERR(WEIR_ECORRUPT,
                    "%s: byte %" PRIu64 " should be record %" PRIu64 ": %s; bring the file back from a copy",
                    weir_file_path(reader->file), reader->position, reader->offset, problem);
}

/* The record reader->offset, which is durable: in this segment, or first in the next. The window may move. */
static weir_err elog_reader_find(weir_eventlog_reader *reader, weir_elog_found *foundp) {
    for (;;) {
        weir_err err = reader->file ? WEIR_OK : elog_reader_enter(reader, reader->offset);
        if (err) return err;
        err = weir_elog_window_record(&reader->window, &reader->partition->origin, reader->position, reader->offset,
                                      foundp);
        if (err) return err;
        if (foundp->problem) return elog_reader_damaged(reader, foundp->problem);
        if (foundp->length) return WEIR_OK;
        if (reader->segment_first == reader->offset) return elog_reader_damaged(reader, "the file ends");
        elog_reader_leave(reader);
    }
}

static void elog_reader_pass(weir_eventlog_reader *reader, const weir_elog_found *found) {
    WEIR_ASSERT(found->record.offset == reader->offset); // EVENTLOG-L1
    reader->offset++;
    reader->position += found->length;
}

/* --- open ----------------------------------------------------------------------------------------------------- */

/* Leaves a note in the index for those who come after, once a step. */
static void elog_reader_note(weir_eventlog_reader *reader) {
    if (!reader->file || reader->position < reader->noted + ELOG_INDEX_STEP_BYTES) return;
    reader->noted = reader->position;
    weir_mutex_lock(&reader->partition->mutex);
    weir_elog_segment *segment = weir_elog_row_find(&reader->partition->row, reader->segment_first);
    if (segment && segment->first == reader->segment_first) {
        weir_elog_segment_note(segment, reader->offset, reader->position);
    }
    weir_mutex_unlock(&reader->partition->mutex);
}

/* Goes to offset from the nearest place that is known. */
static weir_err elog_reader_seek(weir_eventlog_reader *reader, uint64_t offset) {
    weir_elog_partition *partition = reader->partition;
    weir_elog_index_entry place = {offset, 0};
    weir_elog_found found;
    weir_mutex_lock(&partition->mutex);
    uint64_t durable = partition->offset_durable;
    uint64_t begin = partition->row.count ? partition->row.segments[0].first : durable;
    const weir_elog_segment *segment = weir_elog_row_find(&partition->row, offset);
    /* One that begins after all that is durable may be thrown away yet (resume.c): it is entered by name, later. */
    if (segment && segment->first >= durable) segment = NULL;
    uint64_t first = segment ? segment->first : 0;
    if (segment) place = weir_elog_segment_seek(segment, offset);
    weir_mutex_unlock(&partition->mutex);

    reader->offset = place.offset;
    reader->durable = durable;
    if (offset < begin)
        return WEIR_ERR(WEIR_ENOTFOUND,
                        "offset %" PRIu64
                        " of partition %u of topic %s is gone: retention has removed all below %" PRIu64
                        "; read from there",
                        offset, partition->origin.partition, reader->log->topic, begin);
    if (offset > durable)
        return WEIR_ERR(WEIR_EINVAL,
                        "offset %" PRIu64 " is beyond the end of partition %u of topic %s, which is %" PRIu64, offset,
                        partition->origin.partition, reader->log->topic, durable);
    if (place.position == 0) return WEIR_OK;
    weir_err err = elog_reader_enter(reader, first);
    if (!err) reader->position = reader->noted = place.position;
    while (!err && reader->offset < offset) {
        err = elog_reader_find(reader, &found);
        if (!err) elog_reader_pass(reader, &found);
        elog_reader_note(reader);
    }
    return err;
}

weir_err weir_eventlog_reader_open(weir_eventlog *log, uint32_t partition, uint64_t offset,
                                   weir_eventlog_reader **readerp) {
    *readerp = NULL;
    weir_err err = weir_elog_check_partition(log, partition);
    if (!err && log->opts.read_only) err = weir_elog_refresh(log);
    if (!err && log->opts.read_only) err = weir_elog_partition_relist(&log->partitions[partition]);
    if (err) return err;
    weir_eventlog_reader *reader = weir_calloc(1, sizeof *reader);
    if (!reader) return WEIR_NOMEM("for a reader of topic %s", log->topic);
    reader->log = log;
    reader->partition = &log->partitions[partition];
    err = elog_reader_seek(reader, offset);
    if (err) {
        weir_eventlog_reader_close(reader);
        return err;
    }
    *readerp = reader;
    return WEIR_OK;
}

/* --- next ----------------------------------------------------------------------------------------------------- */

weir_err weir_eventlog_reader_next(weir_eventlog_reader *reader, weir_record *records, size_t capacity,
                                   size_t *countp) {
    *countp = 0;
    weir_elog_partition *partition = reader->partition;
    weir_err err = WEIR_OK;
    if (reader->offset == reader->durable) {
        /* How far it may go now. What the window has beyond the old end is forgotten: it was still changing. */
        if (reader->log->opts.read_only) err = weir_elog_refresh(reader->log);
        weir_mutex_lock(&partition->mutex);
        WEIR_ASSERT(partition->offset_durable >= reader->durable);
        reader->durable = partition->offset_durable;
        weir_mutex_unlock(&partition->mutex);
        weir_elog_window_reset(&reader->window, reader->file);
    }
    while (!err && *countp < capacity && reader->offset < reader->durable) { // EVENTLOG-L2
        weir_elog_found found;
        /* What was handed out must not move: after the first, only what the window already has. */
        if (*countp && !(reader->file && weir_elog_window_holds(&reader->window, reader->position))) break;
        err = elog_reader_find(reader, &found);
        if (err) break;
        records[(*countp)++] = found.record;
        elog_reader_pass(reader, &found);
    }
    elog_reader_note(reader);
    return *countp ? WEIR_OK : err; /* an error after good records is met again by the next call */
}

void weir_eventlog_reader_close(weir_eventlog_reader *reader) {
    if (!reader) return;
    elog_reader_leave(reader);
    weir_elog_window_free(&reader->window);
    weir_free(reader);
}
