/* SPDX-License-Identifier: Apache-2.0 */
/* kill_test.c - kill -9 in the middle of a repair: the next start goes on with what is there, and ends whole. */
#include "mended.h"

/* A bit of each sorted file, wherever: also of what no start can do without. */
static void flip_in_every_file(const mended *m, weir_rng *rng) {
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        char folder[PATH_LENGTH - SHARE / 2], path[PATH_LENGTH + 256];
        unsigned count = 0;
        snprintf(folder, sizeof folder, "%s/d/store/shard-%03u", m->folder, shard);
        DIR *open = opendir(folder);
        for (struct dirent *entry; open && (entry = readdir(open));) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            count += is_of_kind(entry->d_name, FLIPPED_SORTED) && flip_bit(path, rng, 0, UINT64_MAX);
        }
        if (open) closedir(open);
        assert_true(count > 0);
    }
}

/* Events come until it is dead; what had no answer is sent again to the next one. */
static void send_until_it_is_dead(mended *m) {
    asker a = asker_of(m);
    while (!process_has_ended(&m->server)) {
        (void)mended_send(m, &a);
        usleep(20000);
    }
    ask_free(&a);
    ask_free(&m->boss);
    assert_int_equal(process_wait(&m->server, PATIENCE_MS), 128 + SIGKILL);
}

/* The next start, after the server was killed: all is there. */
static void goes_on(mended *m) {
    assert_true(something_is_left_over(m));
    mended_start(m, NULL);
    while (mended_send(m, &m->boss) != 200)
        usleep(LOOK_AGAIN_US); /* whether it was there before may stand in what is damaged */
    mended_await_whole(m);
    mended_await_ready(m);
    mended_ask_all(m, 0);
    assert_false(something_is_left_over(m));
    mended_stop(m);
    mended_is_what_the_log_says(m);
}

static void is_killed_at(const char *point, bool has_checkpoint) {
    static mended m;
    uint64_t rounds = weir_test_rounds(1), seed = weir_test_seed();
    char kill_at[96], folder[512];
    snprintf(folder, sizeof folder, "%s/world", weir_test_folder());
    share_id_key();
    for (uint64_t round = 0; round < rounds; round++) {
        weir_rng rng = weir_rng_stream(seed, round, 0);
        mended_make(&m, folder);
        if (has_checkpoint) mended_checkpoint(&m, "one");
        mended_stop(&m); /* so that nothing is in a cache */
        snprintf(kill_at, sizeof kill_at, "%s:%" PRIu64, point, 1 + weir_rng_below(&rng, SHARDS));
        printf("%s\n", kill_at);
        mended_start(&m, kill_at);
        mended_await_ready(&m);
        flip_in_every_file(&m, &rng);
        send_until_it_is_dead(&m);
        goes_on(&m);
    }
}

static void killed_with_a_file_of_the_new_shard(void **state) {
    (void)state;
    is_killed_at("repair.flushed", false);
}
static void killed_with_a_file_on_its_way_back(void **state) {
    (void)state;
    is_killed_at("engine.restoring", true);
}
static void killed_when_a_file_has_come_back(void **state) {
    (void)state;
    is_killed_at("engine.restored", true);
}
static void killed_before_the_new_shard_takes_its_place(void **state) {
    (void)state;
    is_killed_at("repair.whole", false);
}
static void killed_when_the_folders_are_exchanged(void **state) {
    (void)state;
    is_killed_at("engine.replaced", false);
}
static void killed_before_the_damaged_shard_is_put_aside(void **state) {
    (void)state;
    is_killed_at("repair.replaced", false);
}

/* By a start, which finds that it cannot open the shard. */
static void killed_when_a_shard_is_set_aside(void **state) {
    static mended m;
    char path[512];
    (void)state;
    share_id_key();
    mended_make(&m, weir_test_path("world"));
    mended_stop(&m);
    snprintf(path, sizeof path, "%s/world/d/store/shard-001/CURRENT", weir_test_folder());
    file_write(path, "nothing", 0600);
    assert_false(mended_try_start(&m, "repair.set_aside:1"));
    assert_int_equal(process_wait(&m.server, PATIENCE_MS), 128 + SIGKILL);
    goes_on(&m);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {
        WEIR_CASE(killed_with_a_file_of_the_new_shard),   WEIR_CASE(killed_with_a_file_on_its_way_back),
        WEIR_CASE(killed_when_a_file_has_come_back),      WEIR_CASE(killed_before_the_new_shard_takes_its_place),
        WEIR_CASE(killed_when_the_folders_are_exchanged), WEIR_CASE(killed_before_the_damaged_shard_is_put_aside),
        WEIR_CASE(killed_when_a_shard_is_set_aside)};
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "12", 0);
    return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}
