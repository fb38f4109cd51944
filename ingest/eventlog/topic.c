/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topic.c - the folder of a topic: its name, its lock, its version.
 *
 * A topic exists once the file `topic` does: it is written last, so that a creation which is cut short leaves a folder
 * that the next one takes over. Partition folders come later still, with the first record of each.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/rng.h>

#include "eventlog_private.h"

bool weir_eventlog_topic_valid(const char *topic) {
    size_t length = strspn(topic, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return length > 0 && length <= WEIR_EVENTLOG_TOPIC_MAX && !topic[length] && strcmp(topic, ".") != 0 &&
           strcmp(topic, "..") != 0;
}

weir_err weir_elog_topic_check(const char *topic) {
    if (weir_eventlog_topic_valid(topic)) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL,
                    "'%.40s' cannot be the name of a topic: it has 1 to %u of a-z, A-Z, 0-9, '.', '_', '-'", topic,
                    WEIR_EVENTLOG_TOPIC_MAX);
}

weir_err weir_elog_path_join(char path[ELOG_PATH_MAX], const char *folder, const char *name) {
    int length = snprintf(path, ELOG_PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= (int)(ELOG_PATH_MAX - 64)) {
        path[0] = 0;
        return WEIR_ERR(WEIR_ELIMIT, "the path of '%s' is longer than %u bytes; choose a folder nearer to the root",
                        name, ELOG_PATH_MAX - 64);
    }
    return WEIR_OK;
}

weir_err weir_elog_topic_lock(const char *topic_folder, weir_file **lockp) {
    char path[ELOG_PATH_MAX], pid[32];
    *lockp = NULL;
    weir_err err = weir_elog_path_join(path, topic_folder, "LOCK");
    if (!err) err = weir_file_open(path, WEIR_FILE_OPEN_OR_CREATE, lockp);
    if (err) return err;
    err = weir_file_lock(*lockp); // EVENTLOG-L5
    if (err) goto done;
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    err = weir_file_truncate(*lockp, 0);
    if (!err) err = weir_file_append(*lockp, pid, (size_t)length);
done:
    if (err) {
        weir_err_keep(&err, weir_file_close(*lockp));
        *lockp = NULL;
    }
    return err;
}

/* --- load ----------------------------------------------------------------------------------------------------- */

weir_err weir_elog_topic_load(const char *topic_folder, uint64_t *creation_idp, uint32_t *partitionsp) {
    char path[ELOG_PATH_MAX], *bytes = NULL;
    size_t length;
    *creation_idp = 0;
    *partitionsp = 0;
    weir_err err = weir_elog_path_join(path, topic_folder, "topic");
    if (!err) err = weir_file_load(path, ELOG_PATH_MAX, &bytes, &length);
    if (err) goto done;
    /* Another version's file may have another length. */
    weir_elog_header header = ELOG_HEADER_BAD;
    if (length >= 8 && (length == ELOG_TOPIC_BYTES || bytes[7] != '0' + ELOG_VERSION)) {
        uint8_t whole[ELOG_TOPIC_BYTES] = {0};
        memcpy(whole, bytes, length < sizeof whole ? length : sizeof whole);
        header = weir_elog_topic_decode(whole, creation_idp, partitionsp);
    }
    if (header == ELOG_HEADER_VERSION)
        err = WEIR_ERR(WEIR_EVERSION,
                       "%s: written in version %c of the log's format, and this program knows version %u; use the weir "
                       "that wrote it to copy the topic with 'weir log cat', or install that version",
                       path, bytes[7], ELOG_VERSION);
    else if (header != ELOG_HEADER_OURS)
        err = WEIR_ERR(WEIR_ECORRUPT, "%s: damaged (%zu bytes, not a whole topic file); bring it back from a copy",
                       path, length);
done:
    weir_free(bytes);
    return err;
}

/* --- create --------------------------------------------------------------------------------------------------- */

/* A partition without a topic file is a topic that has lost it, not a new one. */
static weir_err elog_topic_refuse_partition(void *context, const char *name) {
    const char *const *topic_folder = context;
    if (strspn(name, "0123456789") != strlen(name)) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "%s has partition %s but no file 'topic'; bring that back from a copy, or move the folder away",
                    *topic_folder, name);
}

weir_err weir_elog_topic_create(const char *topic_folder, uint32_t partitions, uint64_t *creation_idp) {
    char path[ELOG_PATH_MAX];
    uint8_t bytes[ELOG_TOPIC_BYTES];
    weir_elog_marks marks = {0};
    *creation_idp = weir_rng_fresh_seed();
    weir_err err = weir_elog_path_join(path, topic_folder, "topic");
    if (!err) err = weir_folder_list(topic_folder, elog_topic_refuse_partition, &topic_folder);
    if (!err) err = weir_elog_marks_init(&marks, topic_folder, *creation_idp, partitions);
    if (!err) err = weir_elog_marks_rewrite(&marks);
    weir_err_keep(&err, weir_elog_marks_close(&marks));
    if (err) return err;
    weir_kill_point("eventlog.create.marked");
    weir_elog_topic_encode(bytes, *creation_idp, partitions);
    err = weir_file_replace(path, bytes, sizeof bytes);
    weir_kill_point("eventlog.create.done");
    return err;
}

/* --- list ----------------------------------------------------------------------------------------------------- */

typedef struct elog_topics {
    const char *folder;
    weir_eventlog_topic_visit visit;
    void *context;
} elog_topics;

static weir_err elog_topics_visit(void *context, const char *name) {
    const elog_topics *topics = context;
    char folder[ELOG_PATH_MAX], path[ELOG_PATH_MAX];
    if (!weir_eventlog_topic_valid(name)) return WEIR_OK;
    weir_err err = weir_elog_path_join(folder, topics->folder, name);
    if (!err) err = weir_elog_path_join(path, folder, "topic");
    if (err || !weir_path_exists(path)) return err;
    return topics->visit(topics->context, name);
}

weir_err weir_eventlog_topics(const char *folder, weir_eventlog_topic_visit visit, void *context) {
    elog_topics topics = {folder, visit, context};
    if (!weir_path_exists(folder)) return WEIR_OK;
    return weir_folder_list(folder, elog_topics_visit, &topics);
}
