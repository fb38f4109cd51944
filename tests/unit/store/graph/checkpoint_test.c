/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_test.c - a checkpoint is what is gone back to after a power cut: all of it is on the disk before it bears
 * its name. No file can tell later whether it was synced, so the calls are watched.
 */
#include "trouble.h"

#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#define MEMORY     (64u << 20)
#define CALLS_MAX  256u
#define PATH_BYTES 256u

/* What was synced, and what got a name, in order: below the case's folder, without the ends of temporary names. */
typedef struct disk_log {
    char paths[CALLS_MAX][PATH_BYTES];
    bool synced[CALLS_MAX]; /* or else named */
    size_t count;
    const char *folder;
} disk_log;

static void cut(char *path, const char *end) {
    size_t length = strlen(path), cut_off = strlen(end);
    if (length > cut_off && strcmp(path + length - cut_off, end) == 0) path[length - cut_off] = 0;
}

static void note(void *context, weir_fault_op op, const char *path) {
    disk_log *log = context;
    size_t length = strlen(log->folder);
    bool of_the_case = strncmp(path, log->folder, length) == 0;
    if (!of_the_case || (op != WEIR_FAULT_SYNC && op != WEIR_FAULT_RENAME)) return;
    assert_true(log->count < CALLS_MAX);
    char *noted = log->paths[log->count];
    snprintf(noted, PATH_BYTES, "%s", path + length);
    cut(noted, ".tmp");
    cut(noted, ".copy");
    log->synced[log->count++] = op == WEIR_FAULT_SYNC;
}

/* The number of the last such call among the first `count`, from 1 on; 0: none. */
static size_t last(const disk_log *log, size_t count, bool synced, const char *path) {
    for (size_t i = count; i > 0; i--)
        if (log->synced[i - 1] == synced && strcmp(log->paths[i - 1], path) == 0) return i;
    return 0;
}

typedef struct looked_at {
    const disk_log *log;
    size_t before; /* the call that gave the whole its name */
    char folder[PATH_BYTES];
} looked_at;

static weir_err is_on_the_disk(void *context, const char *name) {
    const looked_at *l = context;
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", l->folder, name);
    size_t content = last(l->log, l->before, true, path), named = last(l->log, l->before, false, path);
    size_t folder = last(l->log, l->before, true, l->folder);
    if (!content) fail_msg("%s is not synced", path);
    if (named && named < content) fail_msg("%s has its name before its content", path);
    if (folder < (named ? named : content)) fail_msg("%s is synced, and the folder that names it is not", path);
    return WEIR_OK;
}

/* /NAME was written as /NAME.partial. */
static void all_is_on_the_disk(const disk_log *log, const char *name) {
    static const char *const folders[] = {"", "/shard-000", "/shard-001"};
    looked_at l = {.log = log, .before = last(log, log->count, false, name)};
    char whole[2 * PATH_BYTES];
    assert_true(l.before > 0);
    assert_true(last(log, log->count, true, "") > l.before); /* the name itself */
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(l.folder, sizeof l.folder, "%s.partial%s", name, folders[i]);
        snprintf(whole, sizeof whole, "%s%s%s", log->folder, name, folders[i]);
        assert_ok(weir_folder_list(whole, is_on_the_disk, &l));
    }
}

static void it_is_on_the_disk_before_it_bears_its_name(void **state) {
    (void)state;
    static disk_log made, restored;
    trouble_store s = {0};
    char *folder = strdup(weir_test_folder());
    made.folder = restored.folder = folder;
    assert_ok(trouble_open(&s, MEMORY, 0));
    for (uint64_t n = 0; n < 50; n++)
        assert_ok(trouble_edge(&s, 1 + n, 100 + n, (int64_t)n));
    assert_ok(weir_graph_seal(s.graph));
    weir_fault_watch(note, &made);
    assert_ok(weir_graph_checkpoint(s.graph, weir_test_path("point")));
    weir_fault_watch(NULL, NULL);
    all_is_on_the_disk(&made, "/point");
    assert_ok(trouble_close(&s));
    weir_fault_watch(note, &restored);
    assert_ok(weir_graph_restore(weir_test_path("point"), weir_test_path("again")));
    weir_fault_watch(NULL, NULL);
    all_is_on_the_disk(&restored, "/again");
    trouble_free(&s);
    free(folder);
}

WEIR_TESTS(WEIR_CASE(it_is_on_the_disk_before_it_bears_its_name))
