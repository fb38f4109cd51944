/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - what a partition is, from what lies on the disk.
 *
 * Only the last segment is read: a new one is created when all before it has been synced, so its name alone promises
 * that everything below it is durable. What is found at the end of the last one:
 *
 *   whole records up to the end        kept, and synced, because they may have been in the page cache only
 *   a tear, nothing speaks against     cut, synced, logged
 *   a tear, and a witness              WEIR_ECORRUPT, nothing is touched: a mark or a later record says that
 *                                      what the cut would take has been acknowledged
 *   no whole header, at most as long   the process died while it created the file: nothing was ever in it, the
 *   as a header, no mark above it      header is written again
 */
#include <inttypes.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "eventlog_private.h"

static weir_elog_segment *elog_row_last(weir_elog_row *row) {
    return row->count ? &row->segments[row->count - 1] : NULL;
}

static weir_err elog_recover_no_segments(const weir_elog_origin *origin, uint64_t mark) {
    char path[ELOG_PATH_MAX];
    weir_elog_partition_path(path, origin);
    return WEIR_ERR(WEIR_ECORRUPT,
                    "%s: no segments, but records below offset %" PRIu64
                    " were acknowledged; bring the folder back from "
                    "a copy",
                    path, mark);
}

/* Scans the segment before the last. Its end must be where the next one begins. */
static weir_err elog_recover_previous(weir_elog_partition *partition, weir_elog_scan *scanp) {
    weir_elog_row *row = &partition->row;
    weir_elog_segment *previous = &row->segments[row->count - 2];
    uint64_t next_first = row->segments[row->count - 1].first;
    char path[ELOG_PATH_MAX];
    weir_file *file = NULL;
    weir_elog_segment_path(path, &partition->origin, previous->first);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &file);
    if (err) return err;
    err = weir_elog_segment_scan(file, &partition->origin, previous, next_first, scanp);
    weir_err_keep(&err, weir_file_close(file));
    if (!err && scanp->offset != next_first) {
        err = WEIR_ERR(WEIR_ECORRUPT,
                       "%s: byte %" PRIu64 " should be record %" PRIu64 ", and the next segment begins at %" PRIu64
                       ": %s; bring the file back from a copy",
                       path, scanp->position, scanp->offset, next_first,
                       scanp->problem ? scanp->problem : "the file ends");
    }
    if (!err) {
        previous->time_newest = scanp->time_newest;
        previous->time_known = true;
    }
    return err;
}

/* Takes over what a scan of the last segment has found; an empty one asks the segment before it for the last time. */
static weir_err elog_recover_take(weir_elog_partition *partition, const weir_elog_scan *scan) {
    weir_elog_segment *last = elog_row_last(&partition->row);
    weir_elog_scan previous = {0};
    partition->offset_durable = partition->offset_end = partition->offset_written = scan->offset;
    if (scan->records) {
        last->time_newest = scan->time_newest;
        last->time_known = true;
        partition->time_last = scan->time_last;
    } else if (partition->row.count > 1) {
        weir_err err = elog_recover_previous(partition, &previous);
        if (err) return err;
        partition->time_last = previous.time_last;
    }
    partition->time_end = partition->time_last;
    return WEIR_OK;
}

/* --- to append ------------------------------------------------------------------------------------------------ */

/* A file that died before its header was synced. Records follow only after that, so it has none. */
static bool elog_is_newborn(const weir_elog_segment *segment, uint64_t mark) {
    return segment->bytes <= ELOG_SEGMENT_HEADER && mark <= segment->first;
}

static weir_err elog_recover_newborn(weir_elog_partition *partition, weir_elog_segment *segment) {
    weir_elog_scan previous, none = {.offset = segment->first};
    uint8_t header[ELOG_SEGMENT_HEADER];
    char folder[ELOG_PATH_MAX];
    weir_err err = partition->row.count > 1 ? elog_recover_previous(partition, &previous) : WEIR_OK;
    weir_elog_segment_header_encode(header, &partition->origin, segment->first);
    if (!err) err = weir_file_truncate(partition->file, 0);
    if (!err) err = weir_file_append(partition->file, header, sizeof header);
    if (!err) err = weir_file_sync(partition->file);
    weir_elog_partition_path(folder, &partition->origin);
    if (!err) err = weir_folder_sync(folder);
    if (err) return err;
    segment->bytes = sizeof header;
    return elog_recover_take(partition, &none);
}

/* EVENTLOG-L3: what would be lost, by the two witnesses. */
static weir_err elog_recover_judge(weir_elog_partition *partition, const weir_elog_scan *scan, uint64_t mark) {
    const char *path = weir_file_path(partition->file);
    const char *problem = scan->problem ? scan->problem : "the file ends";
    uint64_t claim = 0, claim_position = 0;
    if (scan->offset < mark) {
        return WEIR_ERR(WEIR_ECORRUPT,
                        "%s: byte %" PRIu64 " should be record %" PRIu64 ", and all below %" PRIu64
                        " were acknowledged: %s; nothing was changed, bring the file back from a copy",
                        path, scan->position, scan->offset, mark, problem);
    }
    if (!scan->problem) return WEIR_OK;
    weir_err err = weir_elog_segment_witness(partition->file, &partition->origin, scan->position, scan->offset, &claim,
                                             &claim_position);
    if (!err && claim) {
        err = WEIR_ERR(WEIR_ECORRUPT,
                       "%s: byte %" PRIu64 " should be record %" PRIu64 ": %s; the record at byte %" PRIu64
                       " shows that all below %" PRIu64
                       " were acknowledged; nothing was changed, bring the file back from a copy",
                       path, scan->position, scan->offset, problem, claim_position, claim);
    }
    return err;
}

static weir_err elog_recover_last(weir_elog_partition *partition, uint64_t mark) {
    weir_elog_segment *last = elog_row_last(&partition->row);
    weir_file *file = partition->file;
    weir_elog_scan scan;
    weir_err err = weir_elog_segment_check(file, &partition->origin, last->first);
    if (weir_err_is(err, WEIR_ECORRUPT) && elog_is_newborn(last, mark)) return elog_recover_newborn(partition, last);
    if (err) return err;
    err = weir_elog_segment_scan(file, &partition->origin, last, UINT64_MAX, &scan);
    if (!err) err = elog_recover_judge(partition, &scan, mark);
    if (err) return err;
    if (scan.problem) { /* a torn tail: cut it */
        uint64_t cut = weir_file_length(file) - scan.position;
        WEIR_ASSERT(scan.position >= ELOG_SEGMENT_HEADER && scan.position <= weir_file_length(file));
        err = weir_file_truncate(file, scan.position);
        weir_kill_point("eventlog.cut");
        if (err) return err;
        partition->tail_cut_bytes += cut;
        last->bytes = scan.position;
        weir_metric_add(WEIR_METRIC_EVENTLOG_TAIL_CUT_BYTES, cut);
        WEIR_LOG(WARN, "eventlog.tail_cut", "cut a torn tail that was never acknowledged",
                 WEIR_TEXT("file", weir_file_path(file)), WEIR_U64("position", scan.position), WEIR_U64("bytes", cut),
                 WEIR_TEXT("problem", scan.problem));
    }
    if (scan.problem || scan.offset > mark) err = weir_file_sync(file);
    if (!err) err = elog_recover_take(partition, &scan);
    WEIR_ASSERT(err || partition->offset_durable >= mark); // EVENTLOG-L3
    return err;
}

weir_err weir_elog_partition_recover(weir_elog_partition *partition, uint64_t mark) {
    char path[ELOG_PATH_MAX];
    weir_err err = weir_elog_row_load(&partition->row, &partition->origin);
    if (err) return err;
    const weir_elog_segment *last = elog_row_last(&partition->row);
    if (!last) return mark ? elog_recover_no_segments(&partition->origin, mark) : WEIR_OK;
    weir_elog_segment_path(path, &partition->origin, last->first);
    err = weir_file_open(path, WEIR_FILE_READ_WRITE, &partition->file);
    if (!err) err = elog_recover_last(partition, mark);
    if (!err) weir_elog_partition_synced(partition, partition->offset_durable);
    return err;
}

/* --- to read -------------------------------------------------------------------------------------------------- */

/* Segments that begin after the mark were created after it was read: the writer is ahead of us. */
static void elog_row_trim(weir_elog_row *row, uint64_t mark) {
    while (row->count && row->segments[row->count - 1].first > mark) {
        weir_elog_segment taken = weir_elog_row_take(row, row->count - 1);
        weir_elog_segment_free(&taken);
    }
}

static weir_err elog_view_last(weir_elog_partition *partition, weir_file *file, uint64_t mark) {
    weir_elog_segment *last = elog_row_last(&partition->row);
    weir_elog_scan scan = {.offset = last->first};
    weir_err err = weir_elog_segment_check(file, &partition->origin, last->first);
    if (weir_err_is(err, WEIR_ECORRUPT) && elog_is_newborn(last, mark)) return elog_recover_take(partition, &scan);
    if (!err) err = weir_elog_segment_scan(file, &partition->origin, last, mark, &scan);
    if (err) return err;
    if (scan.offset < mark) {
        return WEIR_ERR(WEIR_ECORRUPT,
                        "%s: byte %" PRIu64 " should be record %" PRIu64 ", and all below %" PRIu64
                        " were acknowledged: %s; bring the file back from a copy",
                        weir_file_path(file), scan.position, scan.offset, mark,
                        scan.problem ? scan.problem : "the file ends");
    }
    return elog_recover_take(partition, &scan);
}

weir_err weir_elog_partition_view(weir_elog_partition *partition, uint64_t mark) {
    char path[ELOG_PATH_MAX];
    weir_file *file = NULL;
    weir_err err = weir_elog_row_load(&partition->row, &partition->origin);
    if (err) return err;
    bool segments = partition->row.count > 0;
    elog_row_trim(&partition->row, mark);
    const weir_elog_segment *last = elog_row_last(&partition->row);
    if (!last && segments) {
        return WEIR_ERR(WEIR_ENOTFOUND, "partition %u: retention has removed every segment below offset %" PRIu64,
                        partition->origin.partition, mark);
    }
    if (!last) return mark ? elog_recover_no_segments(&partition->origin, mark) : WEIR_OK;
    weir_elog_segment_path(path, &partition->origin, last->first);
    err = weir_file_open(path, WEIR_FILE_READ, &file);
    if (!err) err = elog_view_last(partition, file, mark);
    weir_err_keep(&err, weir_file_close(file));
    return err;
}

/* --- to read on ----------------------------------------------------------------------------------------------- */

/* Moves what is known of a segment (size, index) from the old row; sizes those that are new or still grow. */
static weir_err elog_row_merge(weir_elog_row *row, weir_elog_row *old, const weir_elog_origin *origin) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < row->count; i++) {
        weir_elog_segment *segment = &row->segments[i], *known = weir_elog_row_find(old, segment->first);
        bool same = known && known->first == segment->first;
        bool grows = !same || known == &old->segments[old->count - 1];
        if (same) {
            *segment = *known;
            known->index = NULL; /* moved */
            known->index_count = known->index_capacity = 0;
        }
        if (!grows) continue;
        char path[ELOG_PATH_MAX];
        weir_file *file = NULL;
        weir_elog_segment_path(path, origin, segment->first);
        err = weir_file_open(path, WEIR_FILE_READ, &file);
        if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK; /* removed meanwhile; it shows in the next list */
        if (file) segment->bytes = weir_file_length(file);
        weir_err_keep(&err, weir_file_close(file));
    }
    return err;
}

weir_err weir_elog_partition_relist(weir_elog_partition *partition) {
    weir_elog_row row = {0};
    weir_err err = weir_elog_row_list(&row, &partition->origin);
    if (err) goto done;
    weir_mutex_lock(&partition->mutex);
    elog_row_trim(&row, partition->offset_durable);
    err = elog_row_merge(&row, &partition->row, &partition->origin);
    weir_elog_row old = partition->row;
    partition->row = row;
    row = old;
    weir_mutex_unlock(&partition->mutex);
done:
    weir_elog_row_free(&row);
    return err;
}
