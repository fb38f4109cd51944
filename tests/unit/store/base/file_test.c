/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

static weir_file *open_new(const char *name) {
    weir_file *file;
    assert_ok(weir_file_open(weir_test_path(name), WEIR_FILE_CREATE, &file));
    return file;
}

static void assert_content(const char *path, const void *wanted, size_t length) {
    char *bytes;
    size_t loaded;
    assert_ok(weir_file_load(path, SIZE_MAX, &bytes, &loaded));
    assert_int_equal(loaded, length);
    assert_memory_equal(bytes, wanted, length);
    assert_int_equal(bytes[length], 0);
    weir_free(bytes);
}

static void assert_text(const char *path, const char *wanted) {
    assert_content(path, wanted, strlen(wanted));
}

static void disarm(void) {
    assert_ok(weir_fault_arm(NULL));
}

/* --- handles --------------------------------------------------------------------------------------------------- */

static void append_then_read_back(void **state) {
    (void)state;
    enum { BYTES = 100000 };
    static char model[BYTES], read_back[BYTES];
    size_t length = 0, got;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_file *file = open_new("file");
    for (size_t i = 0; i < BYTES; i++)
        model[i] = (char)weir_rng_u32(&rng);
    while (length < BYTES) {
        size_t part = weir_rng_below(&rng, 5000);
        if (part > BYTES - length) part = BYTES - length;
        assert_ok(weir_file_append(file, model + length, part));
        length += part;
        assert_int_equal(weir_file_length(file), length);
        size_t from = weir_rng_below(&rng, BYTES), wanted = weir_rng_below(&rng, BYTES);
        size_t there = from >= length ? 0 : wanted < length - from ? wanted : length - from;
        assert_ok(weir_file_read_at(file, from, read_back, wanted, &got));
        assert_int_equal(got, there);
        assert_memory_equal(read_back, model + from, there);
    }
    assert_ok(weir_file_sync(file));
    assert_ok(weir_file_close(file));
    assert_content(weir_test_path("file"), model, BYTES);
}

static void modes_open_what_they_say(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    weir_file *file = (weir_file *)&file;
    struct stat status;
    umask(0);
    assert_err(weir_file_open(path, WEIR_FILE_READ, &file), WEIR_ENOTFOUND, path);
    assert_null(file);
    assert_err(weir_file_open(path, WEIR_FILE_READ_WRITE, &file), WEIR_ENOTFOUND, path);
    assert_ok(weir_file_open(path, WEIR_FILE_OPEN_OR_CREATE, &file));
    assert_string_equal(weir_file_path(file), path);
    assert_ok(weir_file_append(file, "abc", 3));
    assert_ok(weir_file_close(file));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_err(weir_file_open(path, WEIR_FILE_CREATE, &file), WEIR_EEXIST, path);
    assert_ok(weir_file_open(path, WEIR_FILE_READ_WRITE, &file));
    assert_int_equal(weir_file_length(file), 3);
    assert_ok(weir_file_append(file, "d", 1)); /* at the end that it found */
    assert_ok(weir_file_close(file));
    assert_ok(weir_file_open(path, WEIR_FILE_READ, &file));
    assert_err(weir_file_append(file, "e", 1), WEIR_EIO, path);
    assert_ok(weir_file_close(file));
    assert_ok(weir_file_close(NULL));
    assert_text(path, "abcd");
}

static void what_is_no_file_is_refused(void **state) {
    (void)state;
    weir_file *file;
    assert_err(weir_file_open(weir_test_folder(), WEIR_FILE_READ, &file), WEIR_EIO, "directory");
    assert_err(weir_file_open("/dev/null", WEIR_FILE_READ_WRITE, &file), WEIR_EINVAL,
               "/dev/null is not a regular file");
    assert_int_equal(mkfifo(weir_test_path("pipe"), 0600), 0);
    assert_err(weir_file_open(weir_test_path("pipe"), WEIR_FILE_READ, &file), WEIR_EINVAL, "not a regular file");
    assert_err(weir_file_open("", WEIR_FILE_READ, &file), WEIR_ENOTFOUND, NULL);
}

static void truncate_moves_the_end(void **state) {
    (void)state;
    weir_file *file = open_new("file");
    assert_ok(weir_file_append(file, "abcdef", 6));
    assert_ok(weir_file_truncate(file, 2));
    assert_ok(weir_file_append(file, "X", 1));
    assert_ok(weir_file_truncate(file, 5));
    assert_int_equal(weir_file_length(file), 5);
    assert_ok(weir_fault_arm("truncate:1:EIO:once"));
    assert_err(weir_file_truncate(file, 0), WEIR_EIO, weir_test_path("file"));
    assert_int_equal(weir_file_length(file), 5);
    assert_ok(weir_file_close(file));
    assert_content(weir_test_path("file"), "abX\0\0", 5);
}

static void no_offset_reads_from_elsewhere(void **state) {
    (void)state;
    char bytes[8];
    size_t got = 1;
    weir_file *file = open_new("file");
    assert_ok(weir_file_append(file, "abcdef", 6));
    static const uint64_t offsets[] = {6, 7, INT64_MAX - 8, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        assert_ok(weir_file_read_at(file, offsets[i], bytes, sizeof bytes, &got));
        assert_int_equal(got, 0);
    }
    assert_ok(weir_file_close(file));
}

/* --- handles that fail ----------------------------------------------------------------------------------------- */

static void full_disk_says_what_to_do_and_the_end_stays(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    weir_file *file = open_new("file");
    assert_ok(weir_file_append(file, "good", 4));
    assert_ok(weir_fault_arm("write:1:short:once"));
    weir_err err = weir_file_append(file, "12345678", 8);
    assert_err(err, WEIR_EFULL, path);
    assert_err(err, WEIR_EFULL, "free");
    disarm();
    assert_int_equal(weir_file_length(file), 4);
    assert_text(path, "good1234"); /* what came through is there, but not ours */
    assert_ok(weir_file_append(file, "ABCDEF", 6));
    assert_text(path, "goodABCDEF");
    assert_ok(weir_file_close(file));
}

/* The system's own short write: it stores what fits below the limit, and refuses the next call. */
static void real_short_write_is_continued_to_its_error(void **state) {
    (void)state;
    char bytes[1500];
    weir_file *file = open_new("file");
    memset(bytes, 'x', sizeof bytes);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, RLIM_INFINITY}), 0);
    weir_err err = weir_file_append(file, bytes, sizeof bytes);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    assert_err(err, WEIR_EIO, weir_test_path("file"));
    assert_int_equal(weir_file_length(file), 0);
    assert_ok(weir_file_truncate(file, weir_file_length(file)));
    assert_ok(weir_file_close(file));
    assert_text(weir_test_path("file"), "");
}

static void parts_and_interruptions_are_continued(void **state) {
    (void)state;
    static const char *const specs[] = {"any:1:part", "any:1:EINTR:once", "any:2:EINTR:once", "any:3:EINTR:once"};
    char bytes[1000], read_back[1001];
    size_t got;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        weir_file *file;
        assert_ok(weir_fault_arm(specs[i]));
        assert_ok(weir_file_open(weir_test_path("file"), WEIR_FILE_OPEN_OR_CREATE, &file));
        assert_ok(weir_file_truncate(file, 0));
        assert_ok(weir_file_append(file, bytes, sizeof bytes));
        assert_ok(weir_file_sync(file));
        assert_ok(weir_file_read_at(file, 0, read_back, sizeof read_back, &got));
        assert_int_equal(got, sizeof bytes);
        assert_memory_equal(read_back, bytes, got);
        assert_ok(weir_file_close(file));
        assert_content(weir_test_path("file"), bytes, sizeof bytes);
        disarm();
    }
}

static void interruptions_without_end_are_an_error(void **state) {
    (void)state;
    char byte;
    size_t got;
    weir_file *file = open_new("file");
    assert_ok(weir_fault_arm("any:1:EINTR"));
    assert_err(weir_file_append(file, "x", 1), WEIR_EIO, "Interrupted");
    assert_err(weir_file_read_at(file, 0, &byte, 1, &got), WEIR_EIO, "Interrupted");
    assert_int_equal(got, 0);
    assert_err(weir_file_truncate(file, 9), WEIR_EIO, "Interrupted");
    assert_ok(weir_file_close(file)); /* it is closed: nothing is lost */
    disarm();
}

/* A second sync could succeed for pages that the kernel has dropped after the first. */
static void poisoned_after_a_failed_sync(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    char bytes[4];
    size_t got;
    weir_file *file = open_new("file");
    assert_ok(weir_file_append(file, "abc", 3));
    assert_ok(weir_fault_arm("sync:1:EIO:once"));
    assert_err(weir_file_sync(file), WEIR_EIO, path);
    disarm();
    assert_err(weir_file_sync(file), WEIR_EPOISONED, path);
    assert_err(weir_file_append(file, "d", 1), WEIR_EPOISONED, "check the disk");
    assert_ok(weir_file_read_at(file, 0, bytes, sizeof bytes, &got));
    assert_int_equal(got, 3);
    assert_ok(weir_file_close(file));
}

static void close_reports_and_frees(void **state) {
    (void)state;
    weir_alloc_stats before, after;
    weir_alloc_stats_get(&before);
    weir_file *file = open_new("file");
    assert_ok(weir_fault_arm("close:1:EIO:once"));
    assert_err(weir_file_close(file), WEIR_EIO, weir_test_path("file"));
    disarm();
    weir_alloc_stats_get(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

static weir_err open_and_close(void *context) {
    weir_file *file;
    const char *const *path = context;
    weir_err err = weir_file_open(*path, WEIR_FILE_OPEN_OR_CREATE, &file);
    return err ? err : weir_file_close(file);
}

static weir_err load_and_free(void *context) {
    char *bytes;
    size_t length;
    const char *const *path = context;
    weir_err err = weir_file_load(*path, SIZE_MAX, &bytes, &length);
    weir_free(bytes);
    return err;
}

static weir_err replace_content(void *context) {
    const char *const *path = context;
    return weir_file_replace(*path, "text", 4);
}

static void fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    const char *path = weir_test_path("file"), *grows = "/proc/self/maps";
    weir_test_every_allocation(open_and_close, &path);
    weir_test_every_allocation(replace_content, &path);
    weir_test_every_allocation(load_and_free, &path);
    weir_test_every_allocation(load_and_free, &grows);
}

/* --- locks ----------------------------------------------------------------------------------------------------- */

static void lock_is_exclusive_until_close(void **state) {
    (void)state;
    const char *path = weir_test_path("LOCK");
    weir_file *first = open_new("LOCK"), *second;
    assert_ok(weir_file_lock(first));
    assert_ok(weir_file_lock(first));
    assert_ok(weir_file_open(path, WEIR_FILE_READ_WRITE, &second));
    assert_err(weir_file_lock(second), WEIR_EBUSY, "locked by another process");
    assert_ok(weir_file_append(first, "4711\n", 5));
    assert_err(weir_file_lock(second), WEIR_EBUSY, "locked by process 4711");
    assert_ok(weir_file_truncate(first, 0));
    assert_ok(weir_file_append(first, "not a number", 12));
    assert_err(weir_file_lock(second), WEIR_EBUSY, "locked by another process");
    assert_ok(weir_file_close(first));
    assert_ok(weir_file_lock(second));
    assert_ok(weir_file_close(second));
}

static void lock_dies_with_its_process(void **state) {
    (void)state;
    const char *path = weir_test_path("LOCK");
    int ends[2], status;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        weir_file *file;
        if (weir_file_open(path, WEIR_FILE_CREATE, &file) || weir_file_lock(file)) _exit(1);
        if (write(ends[1], "x", 1) != 1) _exit(1);
        pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    weir_file *file;
    assert_ok(weir_file_open(path, WEIR_FILE_READ_WRITE, &file));
    assert_err(weir_file_lock(file), WEIR_EBUSY, path);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_ok(weir_file_lock(file));
    assert_ok(weir_file_close(file));
}

static void lock_that_fails_names_the_file(void **state) {
    (void)state;
    weir_file *file = open_new("LOCK");
    assert_ok(weir_fault_arm("open:1:EIO"));
    assert_err(weir_file_lock(file), WEIR_EIO, weir_test_path("LOCK"));
    disarm();
    assert_ok(weir_file_close(file));
}

/* --- replacing ------------------------------------------------------------------------------------------------- */

static void replace_leaves_only_the_new(void **state) {
    (void)state;
    const char *path = weir_test_path("file"), *temporary = weir_test_path("file.tmp");
    struct stat status;
    umask(022);
    assert_ok(weir_file_replace(path, "one", 3));
    assert_text(path, "one");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(chmod(path, 0600), 0); /* a secret stays one */
    assert_ok(weir_file_replace(path, "", 0));
    assert_text(path, "");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_false(weir_path_exists(temporary));
    assert_err(weir_file_replace(weir_test_path("none/file"), "x", 1), WEIR_ENOTFOUND, "none/file.tmp");
}

static unsigned mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* Whatever was there, whatever a crash has left, and whatever the mask allows. */
static void replace_secret_is_its_owners_alone(void **state) {
    (void)state;
    const char *path = weir_test_path("file"), *temporary = weir_test_path("file.tmp");
    umask(0);
    assert_ok(weir_file_replace_secret(path, "one", 3));
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0644), 0);
    assert_ok(weir_file_replace_secret(path, "two", 3));
    assert_text(path, "two");
    assert_int_equal(mode_of(path), 0600);
    assert_ok(weir_file_replace(temporary, "left behind", 11));
    assert_int_equal(chmod(temporary, 0666), 0);
    assert_ok(weir_file_replace_secret(path, "three", 5));
    assert_text(path, "three");
    assert_int_equal(mode_of(path), 0600);
}

/* As a crash leaves one behind: of any length, and nobody has it open. */
static void replace_takes_over_what_a_crash_left(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    weir_file *left = open_new("file.tmp");
    assert_ok(weir_file_append(left, "longer than what comes", 22));
    assert_ok(weir_file_close(left));
    assert_ok(weir_file_replace(path, "short", 5));
    assert_text(path, "short");
}

static void replace_writes_through_no_link(void **state) {
    (void)state;
    assert_ok(weir_file_replace(weir_test_path("victim"), "keep", 4));
    assert_int_equal(symlink(weir_test_path("victim"), weir_test_path("file.tmp")), 0);
    assert_err(weir_file_replace(weir_test_path("file"), "x", 1), WEIR_EIO, "file.tmp");
    assert_text(weir_test_path("victim"), "keep");
}

/* The other has opened path.tmp before us, and renames it to path between our open and our lock. What we hold then is
 * his finished file: writing into it would leave a mixture under path if we die. */
static void finish_the_other(void *context, weir_fault_op op, const char *path) {
    unsigned *operations = context;
    (void)op;
    if (++*operations == 2) assert_int_equal(rename(path, weir_test_path("file")), 0);
}

static void replace_leaves_a_finished_file_of_another_alone(void **state) {
    (void)state;
    unsigned operations = 0;
    weir_file *other = open_new("file.tmp");
    assert_ok(weir_file_append(other, "the other's", 11));
    assert_ok(weir_file_close(other));
    assert_int_equal(link(weir_test_path("file.tmp"), weir_test_path("kept")), 0);
    weir_fault_watch(finish_the_other, &operations);
    assert_ok(weir_file_replace(weir_test_path("file"), "ours", 4));
    weir_fault_watch(NULL, NULL);
    assert_text(weir_test_path("file"), "ours");
    assert_text(weir_test_path("kept"), "the other's");
}

static void put_another_in_its_place(void *context, weir_fault_op op, const char *path) {
    if (op != WEIR_FAULT_OPEN || ++*(unsigned *)context % 2) return; /* the opens; the locks are what we want */
    assert_int_equal(unlink(path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void replace_gives_up_where_others_never_rest(void **state) {
    (void)state;
    unsigned opens = 0;
    weir_fault_watch(put_another_in_its_place, &opens);
    assert_err(weir_file_replace(weir_test_path("file"), "x", 1), WEIR_EBUSY, "written by others all the time");
    weir_fault_watch(NULL, NULL);
    assert_int_equal(opens, 2 * 8);
}

static void replace_that_fails_leaves_no_litter(void **state) {
    (void)state;
    static const char *const specs[] = {"write:1:short:once", "sync:1:EIO:once", "rename:1:EACCES:once"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        assert_ok(weir_fault_arm(specs[i]));
        assert_true(weir_file_replace(weir_test_path("file"), "content", 7) != WEIR_OK);
        assert_false(weir_path_exists(weir_test_path("file.tmp")));
        assert_false(weir_path_exists(weir_test_path("file")));
    }
    disarm();
}

static void replace_refuses_while_another_does_it(void **state) {
    (void)state;
    weir_file *other = open_new("file.tmp");
    assert_ok(weir_file_lock(other));
    assert_err(weir_file_replace(weir_test_path("file"), "x", 1), WEIR_EBUSY, "file.tmp is being written by another");
    assert_ok(weir_file_close(other));
}

#define OLD "the old content, which is the longer one of the two"
#define NEW "the new content"

/* Whichever operation fails, with whatever error: one of the two contents, whole; and the next replace succeeds. */
static void replace_with_each_operation_failing(void **state) {
    (void)state;
    static const char *const whats[] = {"EIO", "ENOSPC", "EACCES", "EINTR", "short", "EWOULDBLOCK"};
    const char *path = weir_test_path("file");
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        uint64_t nth = 0;
        do {
            char spec[64], *bytes;
            size_t length;
            snprintf(spec, sizeof spec, "any:%d:%s:once", (int)++nth, whats[i]);
            assert_ok(weir_file_replace(path, OLD, strlen(OLD)));
            assert_ok(weir_fault_arm(spec));
            weir_err err = weir_file_replace(path, NEW, strlen(NEW));
            disarm();
            assert_ok(weir_file_load(path, 1000, &bytes, &length));
            bool is_new = strcmp(bytes, NEW) == 0;
            assert_true(is_new || (err && strcmp(bytes, OLD) == 0));
            if (err) assert_err(err, weir_err_code(err), weir_test_folder());
            weir_free(bytes);
        } while (weir_fault_seen() >= nth);
        assert_true(nth > 8);
        assert_false(weir_path_exists(weir_test_path("file.tmp")));
    }
}

static void kill_at(void *context, weir_fault_op op, const char *path) {
    unsigned *left = context;
    (void)op;
    (void)path;
    if (--*left == 0) raise(SIGKILL);
}

/* The same with the process killed before each of its operations. */
static void replace_killed_before_each_operation(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    int status = 0;
    unsigned nth = 0;
    do {
        char *bytes;
        size_t length;
        assert_ok(weir_file_replace(path, OLD, strlen(OLD)));
        unsigned left = ++nth;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            weir_fault_watch(kill_at, &left);
            _exit(weir_file_replace(path, NEW, strlen(NEW)) ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_ok(weir_file_load(path, 1000, &bytes, &length));
        assert_true(strcmp(bytes, NEW) == 0 || (WIFSIGNALED(status) && strcmp(bytes, OLD) == 0));
        weir_free(bytes);
    } while (WIFSIGNALED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(nth > 8);
}

static atomic_bool writers_done;

static void replace_again_and_again(void *context) {
    const char *path = context;
    for (unsigned i = 0; i < 100; i++) {
        weir_err err = i % 2 ? weir_file_replace(path, NEW, strlen(NEW)) : weir_file_replace(path, OLD, strlen(OLD));
        assert_true(!err || weir_err_is(err, WEIR_EBUSY));
    }
    atomic_store(&writers_done, true);
}

static void replace_by_many_is_always_whole(void **state) {
    (void)state;
    weir_thread *threads[3];
    char path[PATH_MAX], *bytes;
    size_t length;
    snprintf(path, sizeof path, "%s", weir_test_path("file"));
    assert_ok(weir_file_replace(path, OLD, strlen(OLD)));
    for (size_t i = 0; i < 3; i++)
        assert_ok(weir_thread_start("replacer", WEIR_ROLE_TEST, replace_again_and_again, path, &threads[i]));
    while (!atomic_load(&writers_done)) {
        assert_ok(weir_file_load(path, 1000, &bytes, &length));
        assert_true(strcmp(bytes, OLD) == 0 || strcmp(bytes, NEW) == 0);
        weir_free(bytes);
    }
    for (size_t i = 0; i < 3; i++)
        weir_thread_join(threads[i]);
    assert_false(weir_path_exists(weir_test_path("file.tmp")));
}

/* --- whole files ----------------------------------------------------------------------------------------------- */

static void load_limit_and_one_past_it(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    char *bytes = (char *)&bytes;
    size_t length = 7;
    assert_err(weir_file_load(path, 10, &bytes, &length), WEIR_ENOTFOUND, path);
    assert_null(bytes);
    assert_int_equal(length, 0);
    assert_ok(weir_file_replace(path, "0123456789", 10));
    assert_ok(weir_file_load(path, 10, &bytes, &length));
    assert_string_equal(bytes, "0123456789");
    weir_free(bytes);
    assert_err(weir_file_load(path, 9, &bytes, &length), WEIR_ELIMIT, "more than the 9 bytes");
    assert_null(bytes);
    assert_ok(weir_file_replace(path, "", 0));
    assert_ok(weir_file_load(path, 0, &bytes, &length));
    assert_string_equal(bytes, "");
    weir_free(bytes);
    assert_err(weir_file_load(weir_test_folder(), 10, &bytes, &length), WEIR_EIO, "directory");
}

/* Its length is said to be 0, so that only the end tells. */
static void load_what_has_no_length(void **state) {
    (void)state;
    char *bytes;
    size_t length;
    assert_ok(weir_file_load("/proc/self/maps", 1 << 20, &bytes, &length));
    assert_true(length > 100);
    assert_int_equal(strlen(bytes), length);
    weir_free(bytes);
    assert_err(weir_file_load("/proc/self/maps", 100, &bytes, &length), WEIR_ELIMIT, "/proc/self/maps");
}

/* A pipe keeps who opens it waiting for its other end, and /dev/zero has none. */
static void load_waits_for_nobody(void **state) {
    (void)state;
    char *bytes;
    size_t length;
    const char *path = weir_test_path("x");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_err(weir_file_load("/dev/zero", 100000, &bytes, &length), WEIR_EINVAL, "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_err(weir_file_load(path, 10, &bytes, &length), WEIR_EINVAL, "not a regular file");
    assert_int_equal(unlink(path), 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_err(weir_file_load(path, 10, &bytes, &length), WEIR_EIO, path);
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_ok(weir_file_load(path, 1 << 20, &bytes, &length));
    weir_free(bytes);
    assert_err(weir_file_load_as(path, WEIR_FILE_NO_LINK, 1 << 20, &bytes, &length), WEIR_EPERM, "symbolic link");
    assert_null(bytes);
}

static void load_in_parts_and_with_each_read_failing(void **state) {
    (void)state;
    const char *path = weir_test_path("file");
    char *bytes;
    size_t length;
    assert_ok(weir_file_replace(path, OLD, strlen(OLD)));
    assert_ok(weir_fault_arm("read:1:part"));
    assert_ok(weir_file_load(path, 1000, &bytes, &length));
    assert_string_equal(bytes, OLD);
    weir_free(bytes);
    assert_ok(weir_fault_arm("read:2:EIO:once"));
    assert_err(weir_file_load(path, 1000, &bytes, &length), WEIR_EIO, path);
    assert_null(bytes);
    disarm();
}

static void paths_that_are_too_long_are_refused(void **state) {
    (void)state;
    static char path[PATH_MAX + 10];
    char *bytes;
    size_t length;
    memset(path, 'x', PATH_MAX);
    path[0] = '/';
    assert_err(weir_file_replace(path, "x", 1), WEIR_EIO, "too long");
    assert_err(weir_file_load(path, 1, &bytes, &length), WEIR_EIO, NULL);
    path[PATH_MAX - 4] = 0;
    assert_err(weir_file_replace(path, "x", 1), WEIR_EIO, "too long");
}

WEIR_TESTS(WEIR_CASE(append_then_read_back), WEIR_CASE(modes_open_what_they_say), WEIR_CASE(what_is_no_file_is_refused),
           WEIR_CASE(truncate_moves_the_end), WEIR_CASE(no_offset_reads_from_elsewhere),
           WEIR_CASE(full_disk_says_what_to_do_and_the_end_stays),
           WEIR_CASE(real_short_write_is_continued_to_its_error), WEIR_CASE(parts_and_interruptions_are_continued),
           WEIR_CASE(interruptions_without_end_are_an_error), WEIR_CASE(poisoned_after_a_failed_sync),
           WEIR_CASE(close_reports_and_frees), WEIR_CASE(fails_cleanly_at_every_allocation),
           WEIR_CASE(lock_is_exclusive_until_close), WEIR_CASE(lock_dies_with_its_process),
           WEIR_CASE(lock_that_fails_names_the_file), WEIR_CASE(replace_leaves_only_the_new),
           WEIR_CASE(replace_secret_is_its_owners_alone), WEIR_CASE(replace_takes_over_what_a_crash_left),
           WEIR_CASE(replace_writes_through_no_link), WEIR_CASE(replace_refuses_while_another_does_it),
           WEIR_CASE(replace_leaves_a_finished_file_of_another_alone),
           WEIR_CASE(replace_gives_up_where_others_never_rest), WEIR_CASE(replace_that_fails_leaves_no_litter),
           WEIR_CASE(replace_with_each_operation_failing), WEIR_CASE(replace_killed_before_each_operation),
           WEIR_CASE(replace_by_many_is_always_whole), WEIR_CASE(load_limit_and_one_past_it),
           WEIR_CASE(load_waits_for_nobody), WEIR_CASE(load_what_has_no_length),
           WEIR_CASE(load_in_parts_and_with_each_read_failing), WEIR_CASE(paths_that_are_too_long_are_refused))
