/* SPDX-License-Identifier: Apache-2.0 */
/* scrub_test.c - what lies damaged on the disk is found by a scrub, wherever it is, and nothing else is called so. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include <weir/store/base/rng.h>

#define RECORDS 3000u
#define FILES   3u

typedef struct paced {
    uint64_t files, bytes, end_at;
} paced;

static bool pace(void *context, uint64_t bytes) {
    paced *p = context;
    p->bytes += bytes;
    return ++p->files != p->end_at;
}

static weir_engine *engine_of_files(void) {
    weir_engine *engine = engine_open(true);
    char value[16];
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(value, sizeof value, "value-%u", i);
        assert_ok(write_file(engine, RECORDS, value));
    }
    return engine;
}

static void a_whole_engine_has_nothing_and_each_byte_is_counted(void **state) {
    (void)state;
    weir_engine *engine = engine_of_files();
    weir_engine_stats stats;
    paced p = {0};
    weir_engine_stats_get(engine, &stats);
    assert_ok(weir_engine_scrub(engine, pace, &p));
    assert_ok(weir_engine_health(engine));
    assert_int_equal(p.files, stats.live_files);
    assert_int_equal(p.bytes, stats.live_bytes);
    p = (paced){.end_at = 2};
    assert_ok(weir_engine_scrub(engine, pace, &p));
    assert_int_equal(p.files, 2);
    assert_ok(weir_engine_compact(engine)); /* what was compacted away is in no list */
    p = (paced){0};
    assert_ok(weir_engine_scrub(engine, pace, &p));
    assert_int_equal(p.files, 1);
    weir_engine_close(engine);
}

/* --- a flipped bit ----------------------------------------------------------------------------------------------- */

/* It is found, told by health with the file's name until it is over, and then over: scrub and health say so. */
static void is_found(weir_engine *engine, const char *path, long at, int bit) {
    paced p = {0};
    flip(path, at, bit);
    weir_err err = weir_engine_scrub(engine, pace, &p);
    if (!err) fail_msg("%s, byte %ld, bit %d: not found", path, at, bit);
    assert_err(err, WEIR_ECORRUPT, NULL);
    assert_err(weir_engine_health(engine), WEIR_ECORRUPT, strrchr(path, '/') + 1);
    assert_err(weir_engine_mend(engine), WEIR_ECORRUPT, NULL); /* who looks again finds it again */
    flip(path, at, bit);
    assert_ok(weir_engine_mend(engine));
    assert_ok(weir_engine_health(engine));
}

/* Each file, at random places: its blocks, its index, its filter, its properties, its footer. */
static void a_bit_of_any_sorted_file(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_engine *engine = engine_of_files();
    paced p = {0};
    files found;
    files_find(&found, "engine", ".sst");
    assert_int_equal(found.count, FILES);
    for (uint64_t round = weir_test_rounds(40) / weir_test_part(1, 4); round > 0; round--)
        for (size_t i = 0; i < found.count; i++) {
            long size = size_of(found.paths[i]);
            uint64_t from_end = weir_rng_below(&rng, 2) ? (uint64_t)size : 2000; /* most of what is small is there */
            long at = size - 1 - (long)weir_rng_below(&rng, from_end);
            int bit = (int)weir_rng_below(&rng, 8);
            is_found(engine, found.paths[i], at, bit);
        }
    assert_ok(weir_engine_scrub(engine, pace, &p));
    assert_int_equal(count_with(engine, "value-2"), RECORDS);
    weir_engine_close(engine);
}

/* Every byte: without them the next start would have no store. The thread sanitizer sees some. */
static void a_bit_of_what_names_the_files(void **state) {
    (void)state;
    static const char *const names[] = {"MANIFEST-", "CURRENT"};
    const uint64_t part = weir_test_part(1, 16);
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_engine *engine = engine_of_files();
    paced p = {0};
    files found;
    for (size_t i = 0; i < 2; i++) {
        long size = (long)part;
        for (long at = (long)weir_rng_below(&rng, part); at < size; at += (long)part) { /* its name changes */
            files_find(&found, "engine", names[i]);
            assert_int_equal(found.count, 1);
            size = size_of(found.paths[0]);
            is_found(engine, found.paths[0], at, (int)weir_rng_below(&rng, 8));
        }
    }
    assert_ok(weir_engine_scrub(engine, pace, &p));
    weir_engine_close(engine);
}

static void a_file_that_somebody_has_removed(void **state) {
    (void)state;
    static const char *const names[] = {".sst", "MANIFEST-", "CURRENT"};
    weir_engine *engine = engine_of_files();
    paced p = {0};
    files found;
    for (size_t i = 0; i < 3; i++) {
        char aside[600];
        files_find(&found, "engine", names[i]);
        snprintf(aside, sizeof aside, "%s/aside", weir_test_folder());
        assert_int_equal(rename(found.paths[0], aside), 0);
        assert_err(weir_engine_scrub(engine, pace, &p), WEIR_ECORRUPT, NULL);
        assert_err(weir_engine_health(engine), WEIR_ECORRUPT, NULL);
        assert_int_equal(count_with(engine, "value-2"), RECORDS); /* it is open, and goes on */
        assert_int_equal(rename(aside, found.paths[0]), 0);
        assert_ok(weir_engine_mend(engine));
        assert_ok(weir_engine_scrub(engine, pace, &p));
    }
    weir_engine_close(engine);
}

/* --- beside compaction ------------------------------------------------------------------------------------------- */

static atomic_bool over;

static void *write_and_compact(void *context) {
    weir_engine *engine = context;
    for (int i = 0; !atomic_load(&over); i++) {
        char value[16];
        snprintf(value, sizeof value, "value-%d", i);
        if (write_file(engine, 50, value) || (i % 3 == 2 && weir_engine_compact(engine))) return engine;
    }
    return NULL;
}

/* What goes away between the list and the look, or between the name and the opening, is nobody's. */
static void what_compaction_removes_is_no_damage(void **state) {
    (void)state;
    weir_engine *engine = engine_of_files();
    pthread_t writer;
    void *failed;
    assert_int_equal(pthread_create(&writer, NULL, write_and_compact, engine), 0);
    for (uint64_t i = weir_test_rounds(300) / weir_test_part(1, 3); i > 0; i--) {
        paced p = {0};
        assert_ok(weir_engine_scrub(engine, pace, &p));
        assert_ok(weir_engine_health(engine));
    }
    atomic_store(&over, true);
    pthread_join(writer, &failed);
    assert_null(failed);
    weir_engine_close(engine);
}

/* What fails for another reason is told, and is no damage. */
static void a_disk_that_fails_is_no_damage(void **state) {
    (void)state;
    weir_engine *engine = engine_of_files();
    uint64_t nth = 0;
    for (bool met = true; met;) {
        static const char *const whys[] = {"EIO", "ENOMEM"};
        char spec[64];
        paced p = {0};
        nth++;
        snprintf(spec, sizeof spec, "any:%d:%s:once", (int)nth, whys[nth % 2]);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_engine_scrub(engine, pace, &p);
        met = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        if (err && !weir_err_is(err, WEIR_EIO)) assert_err(err, WEIR_ENOMEM, NULL);
        assert_ok(weir_engine_health(engine));
    }
    assert_true(nth > 5);
    weir_engine_close(engine);
}

/* Whatever fails while it is opened again, once and from then on until the disk works: the damage has passed, so the
 * disk's failure is told and not the damage, and it is well after the next calls. */
static void a_disk_that_fails_while_it_mends(void **state) {
    (void)state;
    static const char *const how_often[] = {":once", ""};
    weir_engine *engine = engine_of_files();
    uint64_t points = 0, told = 0;
    paced p = {0};
    files found;
    files_find(&found, "engine", ".sst");
    const char *path = found.paths[0];
    const long at = size_of(path) / 2;
    for (size_t i = 0; i < 2; i++) {
        uint64_t nth = 1;
        for (bool met = true; met; nth++) {
            char spec[64];
            flip(path, at, 1);
            assert_err(weir_engine_scrub(engine, pace, &p), WEIR_ECORRUPT, NULL);
            flip(path, at, 1);
            snprintf(spec, sizeof spec, "any:%d:EIO%s", (int)nth, how_often[i]);
            assert_ok(weir_fault_arm(spec));
            (void)weir_engine_mend(engine);
            met = weir_fault_seen() >= nth;
            assert_ok(weir_fault_arm(NULL));
            told += weir_err_is(weir_engine_health(engine), WEIR_EIO);
            for (unsigned call = 0; call < 2 && weir_engine_health(engine); call++)
                (void)weir_engine_mend(engine); /* the first may open it without compaction */
            assert_ok(weir_engine_health(engine));
            assert_int_equal(count_with(engine, "value-2"), RECORDS);
            points += met;
        }
    }
    assert_true(points >= 4 && told >= 2);
    weir_engine_close(engine);
}

WEIR_TESTS(WEIR_CASE(a_whole_engine_has_nothing_and_each_byte_is_counted), WEIR_CASE(a_bit_of_any_sorted_file),
           WEIR_CASE(a_bit_of_what_names_the_files), WEIR_CASE(a_file_that_somebody_has_removed),
           WEIR_CASE(what_compaction_removes_is_no_damage), WEIR_CASE(a_disk_that_fails_is_no_damage),
           WEIR_CASE(a_disk_that_fails_while_it_mends))
