/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/scratch.h>

enum { BYTES = 1500000 };

static weir_err count_entry(void *context, const char *name) {
    (void)name;
    ++*(unsigned *)context;
    return WEIR_OK;
}

static unsigned entries_of(const char *folder) {
    unsigned count = 0;
    assert_ok(weir_folder_list(weir_test_path(folder), count_entry, &count));
    return count;
}

static void what_was_written_is_mapped(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_scratch *scratch;
    const void *mapped;
    char *model = malloc(BYTES);
    assert_ok(weir_folder_create(weir_test_path("d")));
    for (size_t i = 0; i < BYTES; i++)
        model[i] = (char)weir_rng_u32(&rng);
    assert_ok(weir_scratch_open(weir_test_path("d/s"), &scratch));
    for (size_t at = 0, part; at < BYTES; at += part) {
        part = weir_rng_below(&rng, 2) ? weir_rng_below(&rng, 10) : weir_rng_below(&rng, BYTES / 2);
        if (part > BYTES - at) part = BYTES - at;
        assert_ok(weir_scratch_write(scratch, model + at, part));
        assert_int_equal(entries_of("d"), 0); /* it has no name */
    }
    assert_ok(weir_scratch_map(scratch, &mapped));
    weir_scratch_in_order(scratch, true);
    assert_memory_equal(mapped, model, BYTES);
    weir_scratch_in_order(scratch, false);
    weir_scratch_close(scratch);
    assert_int_equal(entries_of("d"), 0);
    free(model);
}

static void nothing_is_mapped_as_nothing(void **state) {
    (void)state;
    weir_scratch *scratch;
    const void *mapped = "";
    assert_ok(weir_scratch_open(weir_test_path("s"), &scratch));
    assert_ok(weir_scratch_map(scratch, &mapped));
    assert_null(mapped);
    weir_scratch_in_order(scratch, true);
    weir_scratch_close(scratch);
    weir_scratch_close(NULL);
}

/* A kill between opening and unlinking may leave a name. The file behind it is not written to: others may have it. */
static void a_name_that_was_left_is_replaced(void **state) {
    (void)state;
    weir_scratch *scratch;
    char *bytes;
    size_t length;
    assert_ok(weir_file_replace(weir_test_path("kept"), "kept", 4));
    assert_ok(weir_file_link(weir_test_path("kept"), weir_test_path("s")));
    assert_ok(weir_scratch_open(weir_test_path("s"), &scratch));
    assert_ok(weir_scratch_write(scratch, "other", 5));
    weir_scratch_close(scratch);
    assert_false(weir_path_exists(weir_test_path("s")));
    assert_ok(weir_file_load(weir_test_path("kept"), 100, &bytes, &length));
    assert_string_equal(bytes, "kept");
    weir_free(bytes);
    assert_err(weir_scratch_open(weir_test_path("absent/s"), &scratch), WEIR_ENOTFOUND, "absent/s");
    assert_null(scratch);
}

static void a_full_disk_says_what_to_do(void **state) {
    (void)state;
    static char block[1 << 20];
    weir_scratch *scratch;
    const void *mapped;
    assert_ok(weir_scratch_open(weir_test_path("s"), &scratch));
    assert_ok(weir_fault_arm("write:2:ENOSPC"));
    assert_err(weir_scratch_write(scratch, block, sizeof block), WEIR_EFULL, "free space on that disk");
    assert_ok(weir_fault_arm(NULL));
    weir_scratch_close(scratch);

    assert_ok(weir_scratch_open(weir_test_path("s"), &scratch));
    assert_ok(weir_scratch_write(scratch, block, 1)); /* it fits into the buffer */
    assert_ok(weir_fault_arm("write:1:ENOSPC"));
    assert_err(weir_scratch_map(scratch, &mapped), WEIR_EFULL, "allow more memory");
    assert_ok(weir_fault_arm(NULL));
    weir_scratch_close(scratch);
}

static weir_err write_some(void *context) {
    static char block[600000];
    weir_scratch *scratch;
    const void *mapped;
    (void)context;
    weir_err err = weir_scratch_open(weir_test_path("s"), &scratch);
    if (!err) err = weir_scratch_write(scratch, block, sizeof block);
    if (!err) err = weir_scratch_map(scratch, &mapped);
    weir_scratch_close(scratch);
    return err;
}

static void every_operation_and_allocation_may_fail(void **state) {
    (void)state;
    assert_ok(weir_fault_arm("any:1000:EIO"));
    assert_ok(write_some(NULL));
    const uint64_t operations = weir_fault_seen();
    assert_true(operations > 5);
    for (uint64_t nth = 1; nth <= operations; nth++) {
        char spec[64];
        snprintf(spec, sizeof spec, "any:%llu:EIO:once", (unsigned long long)nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = write_some(NULL);
        assert_true(nth == operations ? !err : weir_err_is(err, WEIR_EIO)); /* closing loses nothing */
    }
    assert_ok(weir_fault_arm(NULL));
    weir_test_every_allocation(write_some, NULL);
}

static void a_kill_leaves_nothing(void **state) {
    (void)state;
    int status = 0;
    assert_ok(weir_folder_create(weir_test_path("d")));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char block[1 << 20];
        weir_scratch *scratch;
        if (!weir_scratch_open(weir_test_path("d/s"), &scratch) && !weir_scratch_write(scratch, block, sizeof block))
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(entries_of("d"), 0);
}

WEIR_TESTS(WEIR_CASE(what_was_written_is_mapped), WEIR_CASE(nothing_is_mapped_as_nothing),
           WEIR_CASE(a_name_that_was_left_is_replaced), WEIR_CASE(a_full_disk_says_what_to_do),
           WEIR_CASE(every_operation_and_allocation_may_fail), WEIR_CASE(a_kill_leaves_nothing))
