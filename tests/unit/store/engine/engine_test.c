/* SPDX-License-Identifier: Apache-2.0 */
/* engine_test.c - the cold store: files come in whole, stay, and a flipped bit is seen. */
#include "fixture.h"

#include <weir/store/base/rng.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define RECORDS 5000u

static void newer_file_wins_and_points_are_found(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    weir_buf value = {0};
    char key[32];
    bool found;
    assert_ok(write_file(engine, RECORDS, "old"));
    assert_ok(write_file(engine, RECORDS, "new"));
    assert_int_equal(count_with(engine, "new"), RECORDS);
    assert_ok(engine_value(engine, key, key_of(17, key), &value, &found));
    assert_true(found && strcmp(value.bytes, "new") == 0);
    assert_ok(engine_value(engine, key, key_of(RECORDS, key), &value, &found));
    assert_false(found);
    weir_buf_free(&value);
    weir_engine_close(engine);
}

/* Sixteen runs of which each is larger than the one that came after it: RocksDB says that one job is due, for ever. */
static void what_will_not_be_done_is_not_due(void **state) {
    (void)state;
    enum { RUNS = 16, SMALLEST = 1000 };
    weir_engine *engine = engine_open(true);
    weir_engine_stats stats;
    uint64_t records[RUNS] = {SMALLEST};
    for (int run = 1; run < RUNS; run++)
        records[run] = records[run - 1] * 6 / 5;
    for (int run = RUNS; run--;)
        assert_ok(write_file(engine, records[run], "value"));
    wait_for_merges(engine, &stats);
    assert_int_equal(stats.live_files, RUNS);
    weir_engine_close(engine);
}

/* What is due beside a compaction that was asked for ends by itself. */
static void what_came_in_and_what_compactions_wrote_is_counted(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    weir_engine_stats stats;
    weir_engine_stats_get(engine, &stats);
    assert_true(stats.taken_bytes == 0 && stats.compacted_bytes == 0 && stats.jobs == 0);
    assert_ok(write_file(engine, RECORDS, "old"));
    assert_ok(write_file(engine, RECORDS, "new"));
    weir_engine_stats_get(engine, &stats);
    assert_in_range(stats.taken_bytes, stats.live_bytes / 2, stats.live_bytes);
    assert_int_equal(stats.compacted_bytes, 0);
    uint64_t taken_bytes = stats.taken_bytes;
    assert_ok(weir_engine_compact(engine));
    wait_for_merges(engine, &stats);
    assert_int_equal(stats.taken_bytes, taken_bytes);
    assert_in_range(stats.compacted_bytes, 1, taken_bytes);
    assert_true(stats.compaction_cpu_us > 0);
    weir_engine_close(engine);
}

/* A cursor of before sees nothing of a file that came after: not half, not all. */
static void n1_a_file_is_seen_whole_or_not_at_all(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    weir_engine_cursor *before;
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &before));
    assert_ok(write_file(engine, RECORDS, "v"));
    weir_engine_cursor_seek(before, "", 0);
    assert_false(weir_engine_cursor_valid(before));
    weir_engine_cursor_close(before);
    assert_int_equal(count_with(engine, "v"), RECORDS);
    weir_engine_close(engine);
}

static void killed_at(const char *point) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        weir_engine *engine = engine_open(true);
        if (weir_fault_kill_arm(point)) _exit(1);
        if (write_file(engine, RECORDS, "second")) _exit(2);
        _exit(3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void n2_what_ingest_returned_for_survives_a_kill(void **state) {
    (void)state;
    if (strcmp(weir_test_sanitizer(), "thread") == 0) {
        weir_test_skip("the thread sanitizer does not follow a fork of a process with threads");
    }
    weir_engine *engine = engine_open(true);
    assert_ok(write_file(engine, RECORDS, "first"));
    weir_engine_close(engine);
    killed_at("engine.finished:1");
    engine = engine_open(false);
    assert_int_equal(count_with(engine, "first"), RECORDS);
    weir_engine_close(engine);
    killed_at("engine.ingested:1");
    engine = engine_open(false);
    assert_int_equal(count_with(engine, "second"), RECORDS);
    weir_engine_close(engine);
}

/* --- filters ---------------------------------------------------------------------------------------------------- */

#define VERTICES 40000u /* the filter of so many prefixes is of several parts, once it is merged */

/* Of a prefix as long as a filter's; keys of one differ behind it. Each third vertex has none. */
static size_t vertex_key(uint32_t vertex, uint32_t nth, char key[32]) {
    return (size_t)snprintf(key, 32, "K%016u%03u", vertex, nth);
}

static void write_vertices(weir_engine *engine) {
    weir_engine_writer *writer;
    char key[32];
    assert_ok(weir_engine_writer_open(engine, &writer));
    for (uint32_t vertex = 0; vertex < VERTICES; vertex++) {
        for (uint32_t nth = 0; vertex % 3 && nth < 1 + vertex % 4; nth++)
            assert_ok(weir_engine_writer_add(writer, key, vertex_key(vertex, 10 * nth, key), "v", 1));
    }
    assert_ok(weir_engine_writer_ingest(writer));
}

/* What a seek must find: the first key of the vertex that is not before this, if there is one. */
static void seek_finds(weir_engine *engine, uint32_t vertex, uint32_t from) {
    weir_engine_cursor *cursor;
    char key[32], wanted[32];
    size_t length = vertex_key(vertex, from, key), found_length = 0;
    uint32_t nth = (from + 9) / 10, count = vertex % 3 ? 1 + vertex % 4 : 0;
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_POINT, &cursor));
    weir_engine_cursor_seek(cursor, key, length);
    bool valid = weir_engine_cursor_valid(cursor);
    const char *found = valid ? weir_engine_cursor_key(cursor, &found_length) : NULL;
    bool of_it = valid && memcmp(found, key, WEIR_ENGINE_PREFIX_BYTES) == 0;
    assert_int_equal(of_it, nth < count);
    if (of_it) {
        assert_int_equal(found_length, vertex_key(vertex, 10 * nth, wanted));
        assert_memory_equal(found, wanted, found_length);
    }
    assert_ok(weir_engine_cursor_err(cursor));
    weir_engine_cursor_close(cursor);
}

/* A vertex may begin in one part of the filter and end in the next. */
static void no_part_of_a_filter_hides_a_key(void **state) {
    (void)state;
    static const uint32_t from[] = {0, 1, 10, 11, 31};
    weir_engine *engine = engine_open(true);
    write_vertices(engine);
    for (int compacted = 0; compacted < 2; compacted++) {
        for (uint32_t vertex = 0; vertex < VERTICES; vertex++)
            seek_finds(engine, vertex, from[vertex % (sizeof from / sizeof from[0])]);
        write_vertices(engine);
        assert_ok(weir_engine_compact(engine));
    }
    weir_engine_close(engine);
}

/* --- flipped bits ----------------------------------------------------------------------------------------------------
 * */

/* Opening, or reading everything, must say it; a wrong value never comes out (count_with would see it). */
static void n3_a_flipped_bit_is_an_error(void **state) {
    (void)state;
    const weir_engine_opts opts = {0};
    files found;
    weir_engine *engine = engine_open(true);
    assert_ok(write_file(engine, RECORDS, "value"));
    weir_engine_close(engine);
    files_find(&found, "engine", ".sst");
    long size = size_of(found.paths[0]);
    for (long at = 0; at < size; at += size / 40) {
        uint64_t keys = 0;
        flip(found.paths[0], at, 2);
        weir_err err = weir_engine_open(weir_test_path("engine"), &opts, &engine);
        if (!err) {
            err = count_keys(engine, &keys);
            weir_engine_close(engine);
        }
        /* A bit in what only speeds up reading (a filter) may pass: then every record must still be there. */
        if (!err) assert_int_equal(keys, RECORDS);
        flip(found.paths[0], at, 2);
    }
}

/* Behind the records and their index lies what an opening reads before it compares any checksum. */
static void n3_an_opening_bears_any_bit_of_what_describes_a_file(void **state) {
    (void)state;
    const weir_engine_opts opts = {.read_only = true};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_engine *engine = engine_open(true);
    files found;
    assert_ok(write_file(engine, RECORDS, "before"));
    assert_ok(write_file(engine, RECORDS, "value"));
    weir_engine_close(engine);
    files_find(&found, "engine", ".sst");
    for (uint64_t round = weir_test_rounds(300); round > 0; round--) {
        const char *path = found.paths[weir_rng_below(&rng, found.count)];
        long at = size_of(path) - 1 - (long)weir_rng_below(&rng, 2000);
        int bit = (int)weir_rng_below(&rng, 8);
        uint64_t keys = 0;
        flip(path, at, bit);
        weir_err err = weir_engine_open(weir_test_path("engine"), &opts, &engine);
        if (!err) err = count_keys(engine, &keys);
        if (!err) assert_int_equal(keys, RECORDS);
        if (err) assert_err(err, WEIR_ECORRUPT, NULL);
        weir_engine_close(engine);
        flip(path, at, bit);
        engine = NULL;
    }
}

/* The value of the last record, which is not damaged. */
static bool last_is(weir_engine *engine, const char *value) {
    weir_buf found = {0};
    weir_engine_cursor *cursor;
    char key[32];
    size_t length = key_of(RECORDS - 1, key);
    bool any;
    assert_ok(engine_value(engine, key, length, &found, &any));
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor));
    weir_engine_cursor_seek(cursor, key, length);
    assert_true(any && weir_engine_cursor_valid(cursor));
    const char *text = weir_engine_cursor_value(cursor, &length);
    bool is = length == strlen(value) && memcmp(text, value, length) == 0;
    assert_int_equal(found.length == length && memcmp(found.bytes, text, length) == 0, 1);
    weir_engine_cursor_close(cursor);
    weir_buf_free(&found);
    return is;
}

/* Beside a damaged file it comes by a memtable, and what fails may be behind that: then it is not there, until all is.
 */
static void n1_a_file_that_was_not_taken_is_not_seen(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    files found;
    uint64_t nth = 0, failures = 0;
    assert_ok(write_file(engine, RECORDS, "old"));
    weir_engine_close(engine);
    files_find(&found, "engine", ".sst");
    flip(found.paths[0], 20, 2);
    engine = engine_open(false);
    for (bool met = true; met; nth++) {
        char spec[64];
        weir_engine_writer *writer;
        char key[32];
        assert_ok(weir_engine_writer_open(engine, &writer));
        for (uint64_t i = 0; i < RECORDS; i++)
            assert_ok(weir_engine_writer_add(writer, key, key_of(i, key), "new", 3));
        snprintf(spec, sizeof spec, "engine:%d:EIO:once", (int)nth + 1);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_engine_writer_ingest(writer);
        met = weir_fault_seen() > nth;
        assert_ok(weir_fault_arm(NULL));
        assert_true(last_is(engine, err ? "old" : "new"));
        failures += err != WEIR_OK;
        if (!err) break;
    }
    assert_int_equal(failures, 4); /* the file is finished; it is linked in, and by a memtable, and that is flushed */
    weir_engine_close(engine);
}

static void keys_that_do_not_rise_are_refused(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    weir_engine_writer *writer;
    assert_ok(weir_engine_writer_open(engine, &writer));
    assert_ok(weir_engine_writer_add(writer, "b", 1, "", 0));
    assert_err(weir_engine_writer_add(writer, "b", 1, "", 0), WEIR_EORDER, "record 1");
    assert_err(weir_engine_writer_add(writer, "a", 1, "", 0), WEIR_EORDER, NULL);
    weir_engine_writer_cancel(writer);
    weir_engine_close(engine);
}

static void bad_folders_are_one_sentence_each(void **state) {
    (void)state;
    const weir_engine_opts opts = {0};
    weir_engine *engine, *second;
    assert_err(weir_engine_open(weir_test_path("nothing"), &opts, &engine), WEIR_ENOTFOUND, "nothing");
    engine = engine_open(true);
    assert_err(weir_engine_open(weir_test_path("engine"), &opts, &second), WEIR_EBUSY, NULL);
    weir_engine_close(engine);
}

static void full_disk_changes_nothing(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    assert_ok(write_file(engine, RECORDS, "first"));
    assert_ok(weir_fault_arm("write:1:ENOSPC:once"));
    assert_err(write_file(engine, RECORDS, "second"), WEIR_EFULL, "free some space");
    assert_ok(weir_fault_arm(NULL));
    assert_int_equal(count_with(engine, "first"), RECORDS);
    assert_ok(write_file(engine, RECORDS, "third"));
    assert_int_equal(count_with(engine, "third"), RECORDS);
    weir_engine_close(engine);
}

/* --- files that are begun and thrown away ------------------------------------------------------------------------ */

static _Atomic(weir_engine *) begun_meanwhile_in; /* NULL: nothing is begun */
static weir_engine_writer *begun_meanwhile;

/* In the place of libc's: what another thread may do just before a file goes. */
int unlink(const char *name) {
    weir_engine *engine = atomic_exchange(&begun_meanwhile_in, NULL); /* RocksDB's threads remove files, too */
    if (engine) assert_ok(weir_engine_writer_open(engine, &begun_meanwhile));
    return unlinkat(AT_FDCWD, name, 0);
}

/* Nobody gets the name of a file that is still to be removed. */
static void what_is_thrown_away_takes_no_other_file_with_it(void **state) {
    (void)state;
    weir_engine *engine = engine_open(true);
    weir_engine_writer *writer;
    char key[32];
    assert_ok(weir_engine_writer_open(engine, &writer));
    atomic_store(&begun_meanwhile_in, engine);
    weir_engine_writer_cancel(writer);
    assert_ok(weir_engine_writer_add(begun_meanwhile, key, key_of(1, key), "v", 1));
    assert_ok(weir_engine_writer_ingest(begun_meanwhile));
    assert_int_equal(count_with(engine, "v"), 1);
    weir_engine_close(engine);
}

/* --- checkpoints beside readers ----------------------------------------------------------------------------------- */

#define CHECKPOINTS 150

static atomic_bool over;

/* The last reader of files that were compacted away is who removes them. */
static void *read_over_and_over(void *context) {
    weir_engine *engine = context;
    while (!atomic_load(&over)) {
        weir_engine_cursor *cursor;
        if (weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor)) continue;
        weir_engine_cursor_seek(cursor, "", 0);
        weir_engine_cursor_close(cursor);
    }
    return NULL;
}

/* Each file takes the place of the one before; they are compacted away. */
static void *write_over_and_over(void *context) {
    weir_engine *engine = context;
    for (int i = 0; !atomic_load(&over); i++) {
        char value[16];
        snprintf(value, sizeof value, "value-%d", i);
        if (write_file(engine, 50, value) || (i % 5 == 4 && weir_engine_compact(engine))) return engine;
    }
    return NULL;
}

/* All 50 records, of one file: that is what the engine was at some moment. */
static void is_whole(const char *folder) {
    const weir_engine_opts opts = {0};
    weir_engine *copy;
    weir_buf value = {0};
    char key[32], text[32];
    bool found;
    assert_ok(weir_engine_open(folder, &opts, &copy));
    assert_ok(engine_value(copy, key, key_of(0, key), &value, &found));
    assert_true(found);
    snprintf(text, sizeof text, "%.*s", (int)value.length, value.bytes);
    assert_int_equal(count_with(copy, text), 50);
    weir_buf_free(&value);
    weir_engine_close(copy);
}

/* One checkpoint in some two thousand waited for ever for a reader that had ended; of these it is one in hundreds. */
static void checkpoints_beside_readers_end_and_are_whole(void **state) {
    (void)state;
    pthread_t readers[3], writer;
    char folder[512];
    void *failed;
    weir_engine *engine = engine_open(true);
    assert_ok(write_file(engine, 50, "value-first"));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_over_and_over, engine), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_over_and_over, engine), 0);
    for (int i = 0; i < CHECKPOINTS; i++) {
        uint64_t shared;
        snprintf(folder, sizeof folder, "%s/checkpoint-%d", weir_test_folder(), i);
        assert_ok(weir_engine_checkpoint(engine, folder, i % 2, &shared));
        assert_true((shared > 0) == (i % 2 == 1));
        if (i % 5 == 0) is_whole(folder);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    pthread_join(writer, &failed);
    assert_null(failed);
    weir_engine_close(engine);
}

WEIR_TESTS(WEIR_CASE(checkpoints_beside_readers_end_and_are_whole), WEIR_CASE(newer_file_wins_and_points_are_found),
           WEIR_CASE(no_part_of_a_filter_hides_a_key), WEIR_CASE(what_came_in_and_what_compactions_wrote_is_counted),
           WEIR_CASE(what_will_not_be_done_is_not_due), WEIR_CASE(n1_a_file_is_seen_whole_or_not_at_all),
           WEIR_CASE(n2_what_ingest_returned_for_survives_a_kill), WEIR_CASE(n3_a_flipped_bit_is_an_error),
           WEIR_CASE(n3_an_opening_bears_any_bit_of_what_describes_a_file),
           WEIR_CASE(n1_a_file_that_was_not_taken_is_not_seen), WEIR_CASE(keys_that_do_not_rise_are_refused),
           WEIR_CASE(bad_folders_are_one_sentence_each), WEIR_CASE(full_disk_changes_nothing),
           WEIR_CASE(what_is_thrown_away_takes_no_other_file_with_it))
