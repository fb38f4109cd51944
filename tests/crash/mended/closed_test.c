/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed_test.c - a shard that is damaged so that nobody can open it, and closed: it is made anew all the same.
 *
 * A server closes a shard's store when it puts another in its place. If that cannot be opened either, neither is open.
 */
#include "mended.h"

/* Of a file that is there: without it nothing is opened. */
static void spoil_current(const mended *m, const char *suffix) {
    char path[PATH_LENGTH];
    snprintf(path, sizeof path, "%s/d/store/shard-001%s/CURRENT", m->folder, suffix);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!pwrite(fd, "X", 1, 0);
    close(fd);
}

static void a_shard_that_nobody_can_open_is_made_anew(void **state) {
    static mended m;
    (void)state;
    share_id_key();
    mended_make(&m, weir_test_path("world"));
    spoil_current(&m, "");
    while (!mended_metric(&m, "weir_store_repair_failures_total"))
        spoil_current(&m, ".repair");
    while (mended_send(&m, &m.boss) != 200)
        usleep(LOOK_AGAIN_US);
    mended_await_whole(&m);
    assert_true(mended_metric(&m, "weir_store_repairs_total") > 0);
    mended_await_ready(&m);
    mended_ask_all(&m, 0);
    mended_stop(&m);
    mended_is_what_the_log_says(&m);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(a_shard_that_nobody_can_open_is_made_anew)};
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "12", 0);
    return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}
