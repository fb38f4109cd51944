/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c - the file `durable`: how far each partition has been acknowledged.
 *
 * A row of marks, the highest of a partition counts. A mark is appended after the sync of a group and before its caller
 * is told, and is not synced itself. Why that is enough:
 *   kill -9     the kernel has the bytes: no acknowledged group is without its mark;
 *   power cut   the newest marks may be missing or torn; an older one is too low, which is safe. One that is too high
 *               cannot be, because it is written after what it speaks of has been synced.
 * After ELOG_MARKS_SPARE marks the file is replaced by a synced one with one mark a partition: never in place,
 * because a reader in another process, or a kill, would then meet a file without marks.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>

#include "eventlog_private.h"

weir_err weir_elog_marks_init(weir_elog_marks *marks, const char *topic_folder, uint64_t creation_id,
                              uint32_t partitions) {
    weir_err err = weir_elog_path_join(marks->path, topic_folder, "durable");
    if (err) return err;
    marks->creation_id = creation_id;
    marks->partitions = partitions;
    marks->durable = weir_calloc(partitions, sizeof *marks->durable);
    if (!marks->durable) return WEIR_NOMEM("for the marks of %u partitions", partitions);
    weir_mutex_init(&marks->mutex, WEIR_RANK_EVENTLOG, "eventlog marks");
    return WEIR_OK;
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static size_t elog_marks_bytes_max(const weir_elog_marks *marks) {
    return ((size_t)marks->partitions + ELOG_MARKS_SPARE) * ELOG_MARK_BYTES;
}

weir_err weir_elog_marks_load(weir_elog_marks *marks) {
    char *bytes = NULL;
    size_t length;
    bool *seen = weir_calloc(marks->partitions, sizeof *seen);
    if (!seen) return WEIR_NOMEM("while reading %s", marks->path);
    weir_err err = weir_file_load(marks->path, elog_marks_bytes_max(marks), &bytes, &length);
    if (err) goto done;
    /* A mark that is not whole is skipped: the last one may be torn, or on its way while another process reads. */
    weir_mutex_lock(&marks->mutex);
    for (size_t at = 0; at + ELOG_MARK_BYTES <= length; at += ELOG_MARK_BYTES) {
        uint32_t partition;
        uint64_t durable;
        if (!weir_elog_mark_decode((const uint8_t *)bytes + at, marks->creation_id, marks->partitions, &partition,
                                   &durable))
            continue;
        seen[partition] = true;
        if (durable > marks->durable[partition]) marks->durable[partition] = durable;
    }
    weir_mutex_unlock(&marks->mutex);
    for (uint32_t i = 0; !err && i < marks->partitions; i++)
        if (!seen[i])
            err = WEIR_ERR(WEIR_ECORRUPT,
                           "%s: no whole mark of partition %u, so it is not known how far it was acknowledged; bring "
                           "the file back from a copy of the topic",
                           marks->path, i);
done:
    weir_free(seen);
    weir_free(bytes);
    return err;
}

uint64_t weir_elog_marks_get(weir_elog_marks *marks, uint32_t partition) {
    weir_mutex_lock(&marks->mutex);
    uint64_t durable = marks->durable[partition];
    weir_mutex_unlock(&marks->mutex);
    return durable;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

/* Under the mutex. */
static weir_err elog_marks_rewrite(weir_elog_marks *marks) {
    WEIR_ASSERT(weir_mutex_held(&marks->mutex));
    size_t length = (size_t)marks->partitions * ELOG_MARK_BYTES;
    uint8_t *bytes = weir_malloc(length);
    if (!bytes) return WEIR_NOMEM("while writing %s", marks->path);
    for (uint32_t i = 0; i < marks->partitions; i++) {
        weir_elog_origin origin = weir_elog_origin_of(NULL, marks->creation_id, i);
        weir_elog_mark_encode(bytes + (size_t)i * ELOG_MARK_BYTES, &origin, marks->durable[i]);
    }
    weir_err err = weir_file_replace(marks->path, bytes, length);
    weir_free(bytes);
    if (err) return err;
    weir_kill_point("eventlog.marks.replaced");
    err = weir_file_close(marks->file);
    marks->file = NULL;
    if (!err) err = weir_file_open(marks->path, WEIR_FILE_READ_WRITE, &marks->file);
    return err;
}

weir_err weir_elog_marks_rewrite(weir_elog_marks *marks) {
    weir_mutex_lock(&marks->mutex);
    weir_err err = elog_marks_rewrite(marks);
    weir_mutex_unlock(&marks->mutex);
    return err;
}

weir_err weir_elog_marks_put(weir_elog_marks *marks, uint32_t partition, uint64_t durable) {
    uint8_t mark[ELOG_MARK_BYTES];
    weir_elog_origin origin = weir_elog_origin_of(NULL, marks->creation_id, partition);
    weir_elog_mark_encode(mark, &origin, durable);
    weir_mutex_lock(&marks->mutex);
    WEIR_ASSERT(partition < marks->partitions && durable >= marks->durable[partition]); // EVENTLOG-L2
    weir_err err = WEIR_OK;
    if (marks->failed) {
        err = WEIR_ERR(WEIR_EPOISONED, "%s could not be written earlier; close the log and open it again", marks->path);
        goto done;
    }
    marks->durable[partition] = durable;
    if (weir_file_length(marks->file) + ELOG_MARK_BYTES > elog_marks_bytes_max(marks))
        err = elog_marks_rewrite(marks);
    else
        err = weir_file_append(marks->file, mark, sizeof mark);
    if (err) marks->failed = true; // EVENTLOG-L4
done:
    weir_mutex_unlock(&marks->mutex);
    return err;
}

weir_err weir_elog_marks_resume(weir_elog_marks *marks) {
    weir_mutex_lock(&marks->mutex);
    weir_err err = marks->failed ? elog_marks_rewrite(marks) : WEIR_OK;
    if (!err) marks->failed = false;
    weir_mutex_unlock(&marks->mutex);
    return err;
}

weir_err weir_elog_marks_close(weir_elog_marks *marks) {
    weir_err err = WEIR_OK;
    if (!marks->durable) return WEIR_OK;
    if (marks->file && !marks->failed) err = weir_file_sync(marks->file);
    weir_err_keep(&err, weir_file_close(marks->file));
    weir_mutex_destroy(&marks->mutex);
    weir_free(marks->durable);
    marks->durable = NULL;
    marks->file = NULL;
    return err;
}
