/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power_cut_test.c - EVENTLOG-L2 and EVENTLOG-L3 against a disk that loses what was not synced.
 *
 * A model disk watches every operation of the file layer. It knows what is durable: the content of a file at its last
 * sync, the names in a folder at the folder's last sync. At random operations it builds what a power cut could leave at
 * that moment: of every file any length between the durable and the present one, each 4 KiB page either durable or
 * present (in no order), each name either durable or present. The log is opened from that image: every record that was
 * acknowledged at that moment must be there, in order, and appending must go on.
 */
#include "eventlog_private.h"

#include <dirent.h>
#include <stdlib.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/rng.h>

#include "eventlog_fixture.h"

enum { FILES_MAX = 512, NAMES_MAX = 512, PAGE = 4096, PARTITIONS = 2, CONTENT_MAX = 1 << 20 };

/* --- the model disk ------------------------------------------------------------------------------------------- */

/* Our own descriptor keeps the number from being used again, and the content of a file that has lost its name. */
typedef struct disk_file {
    ino_t number;
    int fd;
    uint8_t *durable;
    size_t durable_length;
} disk_file;

typedef struct disk_name {
    char path[512];
    ino_t number; /* 0: a folder */
} disk_name;

typedef struct disk {
    char root[256], image[256];
    disk_file files[FILES_MAX];
    size_t file_count;
    disk_name names[NAMES_MAX]; /* the durable ones */
    size_t name_count;
    weir_rng rng;
    uint64_t acknowledged[PARTITIONS];
    uint64_t images, refused, operations;
    uint64_t one_in; /* images are taken at one in so many operations */
    bool off;
} disk;

static disk the_disk; /* large; one case uses it */

static bool coin(disk *d) {
    return weir_rng_below(&d->rng, 2) == 1;
}

static disk_file *file_of(disk *d, const char *path, ino_t number) {
    for (size_t i = 0; i < d->file_count; i++)
        if (d->files[i].number == number) return &d->files[i];
    assert_true(d->file_count < FILES_MAX);
    disk_file *file = &d->files[d->file_count++];
    *file = (disk_file){.number = number, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    assert_true(file->fd >= 0);
    return file;
}

static size_t present_content(const disk_file *file, uint8_t *bytes) {
    ssize_t got = pread(file->fd, bytes, CONTENT_MAX, 0);
    assert_true(got >= 0 && got < CONTENT_MAX);
    return (size_t)got;
}

static void file_synced(disk_file *file) {
    uint8_t *bytes = malloc(CONTENT_MAX);
    assert_non_null(bytes);
    file->durable_length = present_content(file, bytes);
    free(file->durable);
    file->durable = bytes;
}

static bool in_folder(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

/* Calls visit for each present name in a folder. */
static void each_present(disk *d, const char *folder, void (*visit)(disk *d, const char *path, ino_t number)) {
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        char path[512];
        struct stat status;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_int_equal(stat(path, &status), 0);
        visit(d, path, S_ISDIR(status.st_mode) ? 0 : status.st_ino);
    }
    closedir(list);
}

static void see(disk *d, const char *path, ino_t number) {
    if (number) {
        file_of(d, path, number);
    } else {
        each_present(d, path, see);
    }
}

static void name_synced(disk *d, const char *path, ino_t number) {
    assert_true(d->name_count < NAMES_MAX);
    disk_name *name = &d->names[d->name_count++];
    snprintf(name->path, sizeof name->path, "%s", path);
    name->number = number;
}

static void folder_synced(disk *d, const char *folder) {
    size_t kept = 0;
    for (size_t i = 0; i < d->name_count; i++)
        if (!in_folder(d->names[i].path, folder)) d->names[kept++] = d->names[i];
    d->name_count = kept;
    each_present(d, folder, name_synced);
}

/* --- an image ------------------------------------------------------------------------------------------------- */

static void image_path(const disk *d, const char *path, char out[512]) {
    snprintf(out, 512, "%s%s", d->image, path + strlen(d->root));
}

/* Any length between, each page the old one or the new one. */
static void image_file(disk *d, const char *path, ino_t number) {
    static uint8_t present[CONTENT_MAX], mixed[CONTENT_MAX];
    char to[512];
    const disk_file *file = file_of(d, path, number);
    size_t present_length = present_content(file, present), durable_length = file->durable_length;
    size_t low = present_length < durable_length ? present_length : durable_length;
    size_t high = present_length + durable_length - low, length = high;
    if (coin(d)) length = coin(d) ? low : low + (size_t)weir_rng_below(&d->rng, high - low + 1);
    memset(mixed, 0, length);
    for (size_t at = 0; at < length; at += PAGE) {
        bool take_present = coin(d);
        const uint8_t *from = take_present ? present : file->durable;
        size_t from_length = take_present ? present_length : durable_length,
               end = at + PAGE < length ? at + PAGE : length;
        if (from_length < end) end = from_length;
        if (end > at) memcpy(mixed + at, from + at, end - at);
    }
    image_path(d, path, to);
    fixture_store(to, mixed, length);
}

static const disk_name *durable_name(const disk *d, const char *path) {
    for (size_t i = 0; i < d->name_count; i++)
        if (strcmp(d->names[i].path, path) == 0) return &d->names[i];
    return NULL;
}

static void image_folder(disk *d, const char *folder);

static void image_entry(disk *d, const char *path, ino_t number) {
    char to[512];
    if (number) {
        image_file(d, path, number);
        return;
    }
    image_path(d, path, to);
    assert_int_equal(mkdir(to, 0750), 0);
    image_folder(d, path);
}

/* A present name: the one that is durable under it, or it, or (not yet durable) none. */
static void image_present(disk *d, const char *path, ino_t number) {
    const disk_name *durable = durable_name(d, path);
    if (durable && (durable->number == number || coin(d))) {
        image_entry(d, path, durable->number);
    } else if (!durable ? coin(d) : true) {
        image_entry(d, path, number);
    }
}

static void image_folder(disk *d, const char *folder) {
    each_present(d, folder, image_present);
    for (size_t i = 0; i < d->name_count; i++) { /* names that were removed, and the removal is not durable */
        const disk_name *name = &d->names[i];
        if (in_folder(name->path, folder) && !weir_path_exists(name->path) && coin(d)) {
            image_entry(d, name->path, name->number);
        }
    }
}

static void image_check(void *context) {
    const disk *d = context;
    weir_eventlog *log = NULL;
    bool nothing_acknowledged = true;
    for (uint32_t p = 0; p < PARTITIONS; p++)
        nothing_acknowledged = nothing_acknowledged && d->acknowledged[p] == 0;
    const weir_eventlog_opts opts = {.partitions = PARTITIONS, .segment_bytes = 2 * WEIR_EVENTLOG_SEGMENT_MIN};
    assert_ok(weir_eventlog_open(d->image, "t", &opts, &log));
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        uint64_t begin = fixture_stats(log, p).offset_begin;
        uint64_t end = fixture_check(log, p, begin, p);
        assert_true(end >= d->acknowledged[p]);
        assert_true(nothing_acknowledged || begin <= d->acknowledged[p]);
        assert_ok(fixture_try_append(log, p, end, 2, p));
    }
    assert_ok(weir_eventlog_close(log));
    assert_ok(weir_eventlog_open(d->image, "t", &opts, &log));
    for (uint32_t p = 0; p < PARTITIONS; p++)
        fixture_check(log, p, fixture_stats(log, p).offset_begin, p);
    assert_ok(weir_eventlog_close(log));
}

/* The thread that is being watched may hold locks of the log: a thread of its own opens the image. */
static void image_take(disk *d) {
    weir_thread *checker;
    d->off = true;
    if (weir_path_exists(d->image)) assert_ok(weir_folder_remove(d->image));
    assert_int_equal(mkdir(d->image, 0750), 0);
    image_folder(d, d->root);
    assert_ok(weir_thread_start("checker", WEIR_ROLE_TEST, image_check, d, &checker));
    weir_thread_join(checker);
    d->images++;
    d->off = false;
}

/* Called before the operation: first the cut that comes before it, then what it makes durable. */
static void watch(void *context, weir_fault_op op, const char *path) {
    disk *d = context;
    struct stat status;
    if (d->off || strncmp(path, d->root, strlen(d->root)) != 0) return;
    d->operations++;
    see(d, d->root, 0);
    if (op != WEIR_FAULT_READ && weir_rng_below(&d->rng, d->one_in) == 0) image_take(d);
    if (op != WEIR_FAULT_SYNC || stat(path, &status) != 0) return;
    if (S_ISDIR(status.st_mode)) {
        folder_synced(d, path);
    } else {
        file_synced(file_of(d, path, status.st_ino));
    }
}

/* --- the workload --------------------------------------------------------------------------------------------- */

static void session(disk *d, uint64_t groups) {
    weir_eventlog *log = NULL;
    uint64_t next[PARTITIONS], removed;
    const weir_eventlog_opts opts = {
        .partitions = PARTITIONS, .segment_bytes = 2 * WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 24000};
    assert_ok(weir_eventlog_open(d->root, "t", &opts, &log));
    for (uint32_t p = 0; p < PARTITIONS; p++)
        next[p] = fixture_stats(log, p).offset_end;
    for (uint64_t i = 0; i < groups; i++) {
        for (uint32_t p = 0; p < PARTITIONS; p++) {
            uint64_t count = weir_rng_below(&d->rng, 80);
            assert_ok(fixture_try_append(log, p, next[p], count, p));
            next[p] += count;
        }
        uint32_t p = (uint32_t)weir_rng_below(&d->rng, PARTITIONS);
        assert_ok(weir_eventlog_sync_partition(log, p));
        d->acknowledged[p] = next[p];
    }
    assert_ok(weir_eventlog_retain(log, &removed));
    assert_ok(weir_eventlog_close(log));
    for (uint32_t p = 0; p < PARTITIONS; p++)
        d->acknowledged[p] = next[p];
}

/* Ends in a sync that fails: its records are in the file and not durable, and the log is abandoned. */
static void failed_session(disk *d) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.partitions = PARTITIONS, .segment_bytes = 2 * WEIR_EVENTLOG_SEGMENT_MIN};
    assert_ok(weir_eventlog_open(d->root, "t", &opts, &log));
    assert_ok(fixture_try_append(log, 0, fixture_stats(log, 0).offset_end, 70, 0));
    assert_ok(weir_fault_arm("sync:1:EIO"));
    d->off = true; /* a sync that fails makes nothing durable */
    weir_eventlog_sync_partition(log, 0);
    assert_ok(weir_fault_arm(NULL));
    d->off = false;
    weir_eventlog_close(log);
}

static void run(uint64_t seed, uint64_t round, uint64_t one_in, unsigned sessions) {
    disk *d = &the_disk;
    *d = (disk){.rng = weir_rng_stream(seed, round, 0), .one_in = one_in};
    snprintf(d->root, sizeof d->root, "%s/live%" PRIu64, weir_test_folder(), round);
    snprintf(d->image, sizeof d->image, "%s/image%" PRIu64, weir_test_folder(), round);
    assert_int_equal(mkdir(d->root, 0750), 0);
    weir_fault_watch(watch, d);
    for (unsigned i = 0; i < sessions; i++) {
        session(d, 2 + weir_rng_below(&d->rng, 6));
        failed_session(d);
    }
    session(d, 2);
    weir_fault_watch(NULL, NULL);
    for (size_t i = 0; i < d->file_count; i++) {
        close(d->files[i].fd);
        free(d->files[i].durable);
    }
    printf("%" PRIu64 " operations, %" PRIu64 " power cuts\n", d->operations, d->images);
    assert_true(d->images > 5);
    assert_ok(weir_folder_remove(d->root));
    assert_ok(weir_folder_remove(d->image));
}

/* One thread does almost all: the thread sanitizer has little to find here, and takes twenty times as long. */
static uint64_t rounds(uint64_t normal) {
    return weir_test_rounds(strcmp(weir_test_sanitizer(), "thread") == 0 ? 1 : normal);
}

static void l2_l3_every_image_of_a_power_cut_has_what_was_acknowledged(void **state) {
    (void)state;
    fixture_in_memory();
    uint64_t seed = weir_test_seed();
    for (uint64_t round = 0; round < rounds(5); round++)
        run(seed, round, 5, 4);
}

static void l2_l3_a_power_cut_before_every_operation(void **state) {
    (void)state;
    fixture_in_memory();
    uint64_t seed = weir_test_seed();
    for (uint64_t round = 0; round < rounds(2); round++)
        run(seed, round, 1, 1);
}

WEIR_TESTS(WEIR_CASE(l2_l3_every_image_of_a_power_cut_has_what_was_acknowledged),
           WEIR_CASE(l2_l3_a_power_cut_before_every_operation))
