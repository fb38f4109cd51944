/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - reads a whole topic and tells what is damaged.
 *
 * Damage ends the reading of its segment, not of the partition: the next segment says by its name where it begins. Only
 * what lies below the mark is judged; above it a process may be writing at this moment.
 */
#include <inttypes.h>

#include <weir/store/base/alloc.h>

#include "eventlog_private.h"

typedef struct elog_verify {
    weir_eventlog_damage_visit visit;
    void *context;
    weir_eventlog_verify_stats *stats;
} elog_verify;

static weir_err elog_verify_tell(elog_verify *verify, weir_err damage) {
    verify->stats->damages++;
    return verify->visit(verify->context, damage);
}

/* Damage is told, anything else ends the reading. */
static weir_err elog_verify_tell_damage(elog_verify *verify, weir_err err) {
    bool damage = weir_err_is(err, WEIR_ECORRUPT) || weir_err_is(err, WEIR_EVERSION);
    return damage ? elog_verify_tell(verify, err) : err;
}

/* --- one segment ---------------------------------------------------------------------------------------------- */

typedef struct elog_verify_segment {
    uint64_t first;
    uint64_t end; /* its records are those below */
    bool last;    /* more bytes may follow       */
} elog_verify_segment;

static weir_err elog_verify_judge(elog_verify *verify, weir_file *file, const elog_verify_segment *segment,
                                  const weir_elog_scan *scan) {
    uint64_t length = weir_file_length(file);
    const char *path = weir_file_path(file);
    verify->stats->segments++;
    verify->stats->records += scan->records;
    verify->stats->bytes += length;
    if (scan->offset < segment->end) {
        return elog_verify_tell(verify, WEIR_ERR(WEIR_ECORRUPT,
                                                 "%s: byte %" PRIu64 " should be record %" PRIu64
                                                 " of those below %" PRIu64 ": %s",
                                                 path, scan->position, scan->offset, segment->end,
                                                 scan->problem ? scan->problem : "the file ends"));
    }
    if (scan->position < length && !segment->last) {
        return elog_verify_tell(verify, WEIR_ERR(WEIR_ECORRUPT,
                                                 "%s: %" PRIu64 " bytes too many from byte %" PRIu64
                                                 " on; the next segment begins with record %" PRIu64,
                                                 path, length - scan->position, scan->position, segment->end));
    }
    if (scan->position < length) verify->stats->tail_bytes += length - scan->position;
    return WEIR_OK;
}

/* A segment that went away meanwhile was removed by retention. */
static weir_err elog_verify_file(elog_verify *verify, const weir_elog_origin *origin,
                                 const elog_verify_segment *segment) {
    char path[ELOG_PATH_MAX];
    weir_file *file = NULL;
    weir_elog_segment note = {.first = segment->first};
    weir_elog_scan scan;
    weir_elog_segment_path(path, origin, segment->first);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &file);
    if (err) return weir_err_is(err, WEIR_ENOTFOUND) ? WEIR_OK : err;
    bool unborn = segment->last && segment->first == segment->end && weir_file_length(file) <= ELOG_SEGMENT_HEADER;
    err = unborn ? WEIR_OK : weir_elog_segment_check(file, origin, segment->first);
    if (err) {
        err = elog_verify_tell_damage(verify, err);
        goto done;
    }
    err = weir_elog_segment_scan(file, origin, &note, segment->end, &scan);
    if (!err) err = elog_verify_judge(verify, file, segment, &scan);
done:
    weir_elog_segment_free(&note);
    weir_err_keep(&err, weir_file_close(file));
    return err;
}

/* --- one partition -------------------------------------------------------------------------------------------- */

/* What is there, and the mark up to which it is judged. All that the mark speaks of may be gone because a process has
 * gone on since the mark was read, and retention with it: then there is a higher one. */
static weir_err elog_verify_list(weir_elog_marks *marks, const weir_elog_origin *origin, weir_elog_row *row,
                                 uint64_t *markp) {
    char path[ELOG_PATH_MAX];
    weir_elog_partition_path(path, origin);
    for (unsigned attempt = 0; attempt < ELOG_RETRIES_MAX; attempt++) {
        *markp = weir_elog_marks_get(marks, origin->partition);
        weir_elog_row_free(row);
        weir_err err = weir_elog_row_list(row, origin);
        if (err || !*markp || (row->count > 0 && row->segments[0].first <= *markp)) return err;
        err = weir_elog_marks_load(marks);
        if (err) return err;
        if (weir_elog_marks_get(marks, origin->partition) == *markp)
            return WEIR_ERR(WEIR_ECORRUPT, "%s: no segment with the records below %" PRIu64 ", which were acknowledged",
                            path, *markp);
    }
    return WEIR_ERR(WEIR_EBUSY, "retention removes segments of %s as fast as they can be listed; try again", path);
}

static weir_err elog_verify_partition(elog_verify *verify, const weir_elog_origin *origin, weir_elog_marks *marks) {
    weir_elog_row row = {0};
    uint64_t mark;
    weir_err err = elog_verify_list(marks, origin, &row, &mark);
    size_t count = err ? 0 : row.count;
    if (err) err = elog_verify_tell_damage(verify, err);
    for (size_t i = 0; !err && i < count; i++) {
        bool last = i + 1 == count || row.segments[i + 1].first > mark;
        elog_verify_segment segment = {row.segments[i].first, last ? mark : row.segments[i + 1].first, last};
        if (segment.first <= mark) err = elog_verify_file(verify, origin, &segment);
    }
    weir_elog_row_free(&row);
    verify->stats->partitions++;
    return err;
}

weir_err weir_eventlog_verify(const char *folder, const char *topic, weir_eventlog_damage_visit visit, void *context,
                              weir_eventlog_verify_stats *statsp) {
    elog_verify verify = {visit, context, statsp};
    char topic_folder[ELOG_PATH_MAX];
    weir_elog_marks marks = {0};
    uint64_t creation_id = 0;
    uint32_t partitions = 0;
    *statsp = (weir_eventlog_verify_stats){0};
    weir_err err = weir_elog_topic_check(topic);
    if (!err) err = weir_elog_path_join(topic_folder, folder, topic);
    if (!err) err = weir_elog_topic_load(topic_folder, &creation_id, &partitions);
    if (!err) err = weir_elog_marks_init(&marks, topic_folder, creation_id, partitions);
    if (!err) err = weir_elog_marks_load(&marks);
    for (uint32_t i = 0; !err && i < partitions; i++) {
        weir_elog_origin origin = weir_elog_origin_of(topic_folder, creation_id, i);
        err = elog_verify_partition(&verify, &origin, &marks);
    }
    weir_err_keep(&err, weir_elog_marks_close(&marks));
    return err;
}
