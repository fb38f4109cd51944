/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventlog.c - the handle: opens a topic, and hands each call to the partition that it means.
 *
 * Why not a file per topic, or one log for all: a partition is the unit of order, of parallel reading and of retention,
 * and its offsets are what a shard keeps; one file per partition keeps those three independent. Why not a database: the
 * store is built from this log, so it must need nothing but a file system.
 *
 * The story that shaped the format: an append-only file whose last group was torn by a power cut looks the same, byte
 * for byte, as one whose last group was damaged after it had been acknowledged. Everything that is odd here (the lag in
 * each record, the file of marks, the order of roll) serves to tell the two apart. See WHAT EVENTLOG-L3 GOES BY in
 * eventlog.h.
 */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "eventlog_private.h"

/* --- open ----------------------------------------------------------------------------------------------------- */

static weir_err elog_fill_opts(const weir_eventlog_opts *given, weir_eventlog_opts *opts) {
    *opts = *given;
    if (!opts->segment_bytes) opts->segment_bytes = ELOG_SEGMENT_BYTES;
    if (!opts->clock) opts->clock = weir_clock_system();
    if (opts->partitions > WEIR_EVENTLOG_PARTITIONS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "%u partitions; a topic has at most %u", opts->partitions,
                        WEIR_EVENTLOG_PARTITIONS_MAX);
    }
    if (opts->segment_bytes < WEIR_EVENTLOG_SEGMENT_MIN || opts->segment_bytes > WEIR_EVENTLOG_SEGMENT_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "segments of %" PRIu64 " bytes; between %u and %llu are allowed",
                        opts->segment_bytes, WEIR_EVENTLOG_SEGMENT_MIN, WEIR_EVENTLOG_SEGMENT_MAX);
    }
    if (opts->retain_us < 0) return WEIR_ERR(WEIR_EINVAL, "the age to retain is negative");
    if (opts->read_only && opts->partitions) {
        return WEIR_ERR(WEIR_EINVAL, "a read-only log cannot create a topic: partitions must be 0");
    }
    return WEIR_OK;
}

static weir_err elog_no_topic(const weir_eventlog *log) {
    return WEIR_ERR(WEIR_ENOTFOUND, "there is no topic '%s': %s has no file 'topic'; 'weir log ls' lists the topics",
                    log->topic, log->folder);
}

/* The lock is taken before anything is read: what another process is about to change is not worth reading. */
static weir_err elog_open_topic(weir_eventlog *log) {
    char path[ELOG_PATH_MAX];
    uint32_t partitions = log->opts.partitions;
    weir_err err = weir_elog_path_join(path, log->folder, "topic");
    if (err) return err;
    if (!weir_path_exists(path) && partitions == 0) return elog_no_topic(log);
    if (!log->opts.read_only) {
        if (partitions) err = weir_folder_create(log->folder);
        if (!err) err = weir_elog_topic_lock(log->folder, &log->lock);
        if (err) return weir_err_prefix(err, "topic %s", log->topic);
    }
    if (weir_path_exists(path)) return weir_elog_topic_load(log->folder, &log->creation_id, &log->partition_count);
    if (partitions == 0) return elog_no_topic(log);
    log->partition_count = partitions;
    return weir_elog_topic_create(log->folder, partitions, &log->creation_id);
}

/* The marks are written anew last: until everything has been recovered and synced, the old ones are the witness. */
static weir_err elog_open_to_append(weir_eventlog *log) {
    weir_err err = weir_elog_marks_load(&log->marks);
    for (uint32_t i = 0; !err && i < log->partition_count; i++) {
        weir_elog_partition *partition = &log->partitions[i];
        err = weir_elog_partition_recover(partition, weir_elog_marks_get(&log->marks, i));
        if (!err) log->marks.durable[i] = partition->offset_durable;
    }
    return err ? err : weir_elog_marks_rewrite(&log->marks);
}

/* Beside a process that appends and removes: a file may go away between its listing and its opening. */
static weir_err elog_open_to_read(weir_eventlog *log) {
    weir_err err = weir_elog_marks_load(&log->marks);
    for (uint32_t i = 0; !err && i < log->partition_count; i++) {
        weir_elog_partition *partition = &log->partitions[i];
        unsigned attempt = 0;
        for (; attempt < ELOG_RETRIES_MAX; attempt++) {
            weir_elog_row_free(&partition->row);
            err = weir_elog_partition_view(partition, weir_elog_marks_get(&log->marks, i));
            if (!weir_err_is(err, WEIR_ENOTFOUND)) break;
            err = weir_elog_marks_load(&log->marks);
            if (err) return err;
        }
        if (attempt == ELOG_RETRIES_MAX)
            err =
                WEIR_ERR(WEIR_EBUSY, "retention removes segments of topic %s as fast as they can be listed; try again",
                         log->topic);
    }
    return err;
}

static void elog_discard(weir_eventlog *log) {
    for (uint32_t i = 0; log->partitions && i < log->partition_count; i++) {
        weir_file_close(log->partitions[i].file);
        weir_elog_partition_free(&log->partitions[i]);
    }
    weir_elog_marks_close(&log->marks);
    weir_file_close(log->lock);
    weir_free(log->partitions);
    weir_free(log);
}

weir_err weir_eventlog_open(const char *folder, const char *topic, const weir_eventlog_opts *opts,
                            weir_eventlog **logp) {
    *logp = NULL;
    weir_err err = weir_elog_topic_check(topic);
    if (err) return err;
    weir_eventlog *log = weir_calloc(1, sizeof *log);
    if (!log) return WEIR_NOMEM("while opening topic %s", topic);
    strcpy(log->topic, topic);
    err = elog_fill_opts(opts, &log->opts);
    if (!err) err = weir_elog_path_join(log->folder, folder, topic);
    if (!err) err = elog_open_topic(log);
    if (!err) err = weir_elog_marks_init(&log->marks, log->folder, log->creation_id, log->partition_count);
    if (err) goto done;
    log->partitions = weir_calloc(log->partition_count, sizeof *log->partitions);
    if (!log->partitions) {
        err = WEIR_NOMEM("for %u partitions", log->partition_count);
        goto done;
    }
    for (uint32_t i = 0; i < log->partition_count; i++)
        weir_elog_partition_init(&log->partitions[i], log, i);
    err = log->opts.read_only ? elog_open_to_read(log) : elog_open_to_append(log);
done:
    if (err)
        elog_discard(log);
    else
        *logp = log;
    return err;
}

/* --- the rest ------------------------------------------------------------------------------------------------- */

uint32_t weir_eventlog_partitions(const weir_eventlog *log) {
    return log->partition_count;
}

uint64_t weir_eventlog_creation_id(const weir_eventlog *log) {
    return log->creation_id;
}

uint32_t weir_eventlog_partition_of(const weir_eventlog *log, const void *key, size_t key_length) {
    return (uint32_t)(weir_xxh3(key, key_length, 0) % log->partition_count);
}

weir_err weir_elog_check_partition(const weir_eventlog *log, uint32_t partition) {
    if (partition < log->partition_count) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "topic %s has no partition %u; it has 0 to %u", log->topic, partition,
                    log->partition_count - 1);
}

static weir_err elog_check_writable(const weir_eventlog *log) {
    if (!log->opts.read_only) return WEIR_OK;
    return WEIR_ERR(WEIR_EPERM, "topic %s was opened read-only", log->topic);
}

/* The whole batch, before a byte is copied. */
static weir_err elog_check_batch(const weir_record *records, size_t count, size_t *bytesp) {
    *bytesp = 0;
    if (count == 0 || count > WEIR_EVENTLOG_BATCH_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "%zu records in one append; 1 to %u are allowed", count, WEIR_EVENTLOG_BATCH_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const weir_record *record = &records[i];
        if ((!record->key && record->key_length) || (!record->value && record->value_length)) {
            return WEIR_ERR(WEIR_EINVAL, "record %zu of the batch has a length but no bytes", i);
        }
        uint64_t room = WEIR_EVENTLOG_RECORD_MAX - ELOG_RECORD_HEADER;
        if (record->key_length > room || record->value_length > room - record->key_length) {
            return WEIR_ERR(WEIR_ELIMIT,
                            "record %zu of the batch has a key of %zu and a value of %zu bytes; at most %" PRIu64
                            " together are allowed",
                            i, record->key_length, record->value_length, room);
        }
        *bytesp += weir_elog_record_bytes(record);
        if (*bytesp > WEIR_EVENTLOG_BATCH_BYTES_MAX) {
            return WEIR_ERR(WEIR_ELIMIT,
                            "the batch is larger than %u bytes from record %zu on; append it in smaller batches",
                            WEIR_EVENTLOG_BATCH_BYTES_MAX, i);
        }
    }
    return WEIR_OK;
}

weir_err weir_eventlog_append(weir_eventlog *log, uint32_t partition, const weir_record *records, size_t count,
                              uint64_t *first_offsetp) {
    size_t bytes;
    *first_offsetp = 0;
    weir_err err = elog_check_writable(log);
    if (!err) err = weir_elog_check_partition(log, partition);
    if (!err) err = elog_check_batch(records, count, &bytes);
    return err ? err : weir_elog_partition_append(&log->partitions[partition], records, count, bytes, first_offsetp);
}

weir_err weir_eventlog_sync_partition(weir_eventlog *log, uint32_t partition) {
    weir_err err = elog_check_writable(log);
    if (!err) err = weir_elog_check_partition(log, partition);
    return err ? err : weir_elog_partition_sync(&log->partitions[partition]);
}

weir_err weir_eventlog_sync(weir_eventlog *log) {
    weir_err err = elog_check_writable(log);
    if (err) return err;
    for (uint32_t i = 0; i < log->partition_count; i++)
        weir_err_keep(&err, weir_elog_partition_sync(&log->partitions[i]));
    return err;
}

weir_err weir_eventlog_health(weir_eventlog *log) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < log->partition_count; i++)
        err = weir_elog_partition_health(&log->partitions[i]);
    return err;
}

weir_err weir_eventlog_resume(weir_eventlog *log) {
    weir_err err = elog_check_writable(log);
    if (err) return err;
    for (uint32_t i = 0; i < log->partition_count; i++) /* one that cannot go on keeps no other from it */
        weir_err_keep(&err, weir_elog_partition_resume(&log->partitions[i]));
    return err;
}

weir_err weir_eventlog_retain(weir_eventlog *log, uint64_t *segments_removedp) {
    return weir_eventlog_retain_from(log, NULL, segments_removedp);
}

weir_err weir_eventlog_retain_from(weir_eventlog *log, const uint64_t *keep_from, uint64_t *segments_removedp) {
    *segments_removedp = 0;
    weir_err err = elog_check_writable(log);
    if (err) return err;
    for (uint32_t i = 0; i < log->partition_count; i++)
        weir_err_keep(&err, weir_elog_partition_retain(&log->partitions[i], keep_from ? keep_from[i] : UINT64_MAX,
                                                       segments_removedp));
    return err;
}

weir_err weir_eventlog_stats_get(weir_eventlog *log, uint32_t partition, weir_eventlog_partition_stats *statsp) {
    *statsp = (weir_eventlog_partition_stats){0};
    weir_err err = weir_elog_check_partition(log, partition);
    if (err) return err;
    weir_elog_partition *p = &log->partitions[partition];
    if (log->opts.read_only) err = weir_elog_refresh(log);
    if (!err && log->opts.read_only) err = weir_elog_partition_relist(p);
    if (err) return err;
    weir_mutex_lock(&p->mutex);
    *statsp = (weir_eventlog_partition_stats){
        .offset_begin = p->row.count ? p->row.segments[0].first : p->offset_durable,
        .offset_durable = p->offset_durable,
        .offset_end = p->offset_end,
        .bytes = weir_elog_row_bytes(&p->row),
        .segments = p->row.count,
        .tail_cut_bytes = p->tail_cut_bytes,
        .time_last_us = p->time_last,
    };
    weir_mutex_unlock(&p->mutex);
    return WEIR_OK;
}

weir_err weir_elog_or_gone(const weir_eventlog *log, weir_err err) {
    uint64_t creation_id;
    uint32_t partitions;
    weir_err topic_err = weir_elog_topic_load(log->folder, &creation_id, &partitions);
    if (!weir_err_is(topic_err, WEIR_ENOTFOUND) && (topic_err || creation_id == log->creation_id)) return err;
    return WEIR_ERR(WEIR_ENOTFOUND,
                    "topic %s was removed or created anew while it was read; open it again and "
                    "read from its first offset",
                    log->topic);
}

/* Marks salted with another creation id are unreadable to us; that is how a topic created anew shows first. */
weir_err weir_elog_refresh(weir_eventlog *log) {
    weir_err err = weir_elog_marks_load(&log->marks);
    if (err) return weir_elog_or_gone(log, err);
    for (uint32_t i = 0; i < log->partition_count; i++) {
        weir_elog_partition *partition = &log->partitions[i];
        uint64_t durable = weir_elog_marks_get(&log->marks, i);
        weir_mutex_lock(&partition->mutex);
        if (durable > partition->offset_durable) partition->offset_durable = partition->offset_end = durable;
        weir_mutex_unlock(&partition->mutex);
    }
    return WEIR_OK;
}

weir_err weir_eventlog_close(weir_eventlog *log) {
    if (!log) return WEIR_OK;
    weir_err err = log->opts.read_only ? WEIR_OK : weir_eventlog_sync(log);
    for (uint32_t i = 0; i < log->partition_count; i++) {
        weir_err_keep(&err, weir_file_close(log->partitions[i].file));
        log->partitions[i].file = NULL;
    }
    weir_err_keep(&err, weir_elog_marks_close(&log->marks));
    weir_err_keep(&err, weir_file_close(log->lock));
    log->lock = NULL;
    elog_discard(log);
    return err;
}
