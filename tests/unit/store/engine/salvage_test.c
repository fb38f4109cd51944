/* SPDX-License-Identifier: Apache-2.0 */
/* salvage_test.c - of damaged files every record is told that lies in a whole block, wherever others are damaged. */
#include "fixture.h"

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#define KEYS      6000u
#define FILES     3u
#define FLIPS_MAX 12u
#define VALUE_MAX 2000u /* a few in a block, and of one file more blocks than one part of an index names */

typedef struct world {
    weir_rng rng;
    weir_engine *engine;
    char paths[FILES][512];
    bool has[FILES][KEYS];
    bool can_be_read[KEYS]; /* as told */
    const char *from, *to;
    uint64_t told, end_at;
} world;

static size_t value_of(uint64_t i, uint8_t value[VALUE_MAX]) {
    weir_rng rng = weir_rng_stream(i, 0, 0);
    size_t length = 1 + weir_rng_below(&rng, VALUE_MAX);
    for (size_t at = 0; at < length; at++)
        value[at] = (uint8_t)weir_rng_u32(&rng);
    return length;
}

static void write_some(world *w, uint32_t file) {
    weir_engine_writer *writer;
    uint8_t value[VALUE_MAX];
    char key[32];
    uint64_t one_in = file == 0 ? 1 : 3 * file;
    assert_ok(file == 0 ? weir_engine_writer_open_large(w->engine, &writer)
                        : weir_engine_writer_open(w->engine, &writer));
    for (uint64_t i = 0; i < KEYS; i++) {
        w->has[file][i] = weir_rng_below(&w->rng, one_in + 1) == 0;
        if (w->has[file][i]) assert_ok(weir_engine_writer_add(writer, key, key_of(i, key), value, value_of(i, value)));
    }
    assert_ok(weir_engine_writer_ingest(writer));
}

/* The first is of a compaction: it lies below level 0, where RocksDB reads a file's index and filter part by part, so
 * that it opens with damaged ones. */
static void note_files(world *w, uint32_t file) {
    files found;
    if (file == 0) assert_ok(weir_engine_compact(w->engine));
    files_find(&found, "engine", ".sst");
    assert_int_equal(found.count, file + 1);
    for (size_t i = 0; i < found.count; i++) {
        bool known = false;
        for (uint32_t before = 0; before < file; before++)
            known = known || strcmp(found.paths[i], w->paths[before]) == 0;
        if (!known) snprintf(w->paths[file], sizeof w->paths[file], "%s", found.paths[i]);
    }
}

static void open_again(world *w) {
    const weir_engine_opts opts = {.bulk = true};
    weir_engine_close(w->engine);
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w->engine));
}

static world *world_open(void) {
    const weir_engine_opts opts = {.create = true, .bulk = true};
    world *w = weir_calloc(1, sizeof *w);
    assert_non_null(w);
    w->rng = weir_rng_stream(weir_test_seed(), 0, 0);
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w->engine));
    for (uint32_t file = 0; file < FILES; file++) {
        write_some(w, file);
        note_files(w, file);
    }
    return w;
}

static void world_close(world *w) {
    weir_engine_close(w->engine);
    weir_free(w);
}

/* --- what is told ------------------------------------------------------------------------------------------------ */

static weir_err meet(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    world *w = context;
    uint8_t wanted[VALUE_MAX];
    char text[32] = "";
    assert_true(key_length < sizeof text);
    memcpy(text, key, key_length);
    assert_true(strcmp(text, w->from) >= 0 && strcmp(text, w->to) < 0);
    uint64_t i = strtoull(text + strlen("Kvertex"), NULL, 10);
    assert_true(i < KEYS);
    assert_int_equal(value_length, value_of(i, wanted));
    assert_memory_equal(value, wanted, value_length);
    w->can_be_read[i] = true;
    return ++w->told == w->end_at ? WEIR_ERR(WEIR_ECLOSED, "told to end") : WEIR_OK;
}

static weir_err salvage(world *w, const char *from, const char *to) {
    const weir_engine_range range = {from, to, strlen(from), strlen(to)};
    memset(w->can_be_read, 0, sizeof w->can_be_read);
    w->from = from;
    w->to = to;
    w->told = 0;
    return weir_engine_salvage(w->engine, &range, 1, meet, w);
}

/* --- what should be ---------------------------------------------------------------------------------------------- */

/* A bit that the engine opens with; half of them are behind the records, where filter and index are. */
static long flip_one(world *w, uint32_t file) {
    const weir_engine_opts opts = {.read_only = true};
    for (;;) {
        uint64_t size = (uint64_t)size_of(w->paths[file]);
        uint64_t among = weir_rng_below(&w->rng, 2) ? size : size / 50;
        long at = (long)(size - 1 - weir_rng_below(&w->rng, among));
        weir_engine *opened;
        flip(w->paths[file], at, 1);
        weir_err err = weir_engine_open(weir_test_path("engine"), &opts, &opened);
        if (!err) {
            weir_engine_close(opened);
            return at;
        }
        assert_true(weir_err_is(err, WEIR_ECORRUPT));
        flip(w->paths[file], at, 1);
    }
}

/* Only this file is damaged: so where a merged read meets damage it is this one's. */
static void expect_of(world *w, uint32_t file, bool expected[KEYS]) {
    open_again(w);
    for (uint64_t i = 0; i < KEYS; i++) {
        char key[32];
        size_t length = key_of(i, key);
        weir_engine_cursor *cursor;
        if (!w->has[file][i] || expected[i]) continue;
        assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_PROBE, &cursor));
        weir_engine_cursor_seek(cursor, key, length);
        expected[i] = weir_engine_cursor_valid(cursor);
        weir_engine_cursor_close(cursor);
    }
}

static void damage_and_compare(world *w) {
    bool *expected = weir_calloc(KEYS, sizeof *expected);
    long flips[FILES][FLIPS_MAX];
    size_t counts[FILES], wanted = 0, told = 0;
    char from[32], to[32];
    assert_non_null(expected);
    for (uint32_t file = 0; file < FILES; file++) {
        counts[file] = weir_rng_below(&w->rng, FLIPS_MAX + 1);
        for (size_t i = 0; i < counts[file]; i++)
            flips[file][i] = flip_one(w, file);
        expect_of(w, file, expected);
        for (size_t i = 0; i < counts[file]; i++)
            flip(w->paths[file], flips[file][i], 1);
    }
    for (uint32_t file = 0; file < FILES; file++)
        for (size_t i = 0; i < counts[file]; i++)
            flip(w->paths[file], flips[file][i], 1);
    open_again(w);
    uint64_t first = weir_rng_below(&w->rng, 2) ? 0 : weir_rng_below(&w->rng, KEYS);
    uint64_t end = weir_rng_below(&w->rng, 2) ? KEYS : first + weir_rng_below(&w->rng, KEYS - first);
    key_of(first, from);
    key_of(end, to);
    assert_ok(salvage(w, from, to));
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_int_equal(w->can_be_read[i], expected[i] && i >= first && i < end);
        told += w->can_be_read[i];
        wanted += (w->has[0][i] || w->has[1][i] || w->has[2][i]) && i >= first && i < end;
    }
    printf("%zu + %zu + %zu bits: %zu of %zu can be read\n", counts[0], counts[1], counts[2], told, wanted);
    for (uint32_t file = 0; file < FILES; file++)
        for (size_t i = 0; i < counts[file]; i++)
            flip(w->paths[file], flips[file][i], 1);
    weir_free(expected);
}

static void what_lies_in_a_whole_block_is_told(void **state) {
    (void)state;
    world *w = world_open();
    for (uint64_t round = weir_test_rounds(6) / weir_test_part(1, 3); round > 0; round--)
        damage_and_compare(w);
    world_close(w);
}

/* --- what cannot be read at all, or just now --------------------------------------------------------------------- */

static void a_file_that_cannot_be_opened_hides_no_other(void **state) {
    (void)state;
    world *w = world_open();
    for (uint32_t file = 0; file < FILES; file++) {
        flip(w->paths[file], size_of(w->paths[file]) - 1, 6); /* of the footer */
        assert_ok(salvage(w, "K", "L"));
        for (uint64_t i = 0; i < KEYS; i++)
            assert_int_equal(w->can_be_read[i],
                             (file != 0 && w->has[0][i]) || (file != 1 && w->has[1][i]) || (file != 2 && w->has[2][i]));
        flip(w->paths[file], size_of(w->paths[file]) - 1, 6);
    }
    assert_int_equal(remove(w->paths[0]), 0);
    assert_ok(salvage(w, "K", "L"));
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(w->can_be_read[i], w->has[1][i] || w->has[2][i]);
    world_close(w);
}

static void who_is_told_may_end_it(void **state) {
    (void)state;
    world *w = world_open();
    for (w->end_at = 1; w->end_at < 1000; w->end_at *= 9) {
        uint64_t end_at = w->end_at;
        assert_err(salvage(w, "K", "L"), WEIR_ECLOSED, "told to end");
        assert_int_equal(w->told, end_at);
    }
    world_close(w);
}

typedef struct told {
    uint64_t old, fresh;
} told;

static weir_err count_told(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    told *t = context;
    (void)key, (void)key_length;
    assert_int_equal(value_length, 3);
    ++*(memcmp(value, "old", 3) == 0 ? &t->old : &t->fresh);
    return WEIR_OK;
}

/* Beside damage a file comes by a memtable. Here that does not end, and the beginning of a compaction writes it to the
 * disk: readers see it only after another opening. */
static void what_no_reader_sees_yet_is_not_told(void **state) {
    (void)state;
    const weir_engine_range all = {"K", "L", 1, 1};
    weir_engine *engine = engine_open(true);
    told before = {0}, after = {0};
    weir_engine_writer *writer;
    files f;
    assert_ok(write_file(engine, 1000, "old"));
    weir_engine_close(engine);
    files_find(&f, "engine", ".sst");
    flip(f.paths[0], 20, 2);
    engine = engine_open(false);
    assert_ok(weir_engine_salvage(engine, &all, 1, count_told, &before));
    assert_in_range(before.old, 1, 999);
    assert_ok(weir_engine_writer_open(engine, &writer));
    assert_ok(weir_engine_writer_add(writer, "Kvertex0000000001+", 18, "new", 3));
    assert_ok(weir_fault_arm("engine:4:EIO:once")); /* after finishing, linking and writing it: before the flush */
    assert_err(weir_engine_writer_ingest(writer), WEIR_ECORRUPT, NULL);
    assert_ok(weir_fault_arm(NULL));
    assert_err(weir_engine_compact(engine), WEIR_ECORRUPT, NULL);
    assert_ok(weir_engine_salvage(engine, &all, 1, count_told, &after));
    assert_int_equal(after.old, before.old);
    assert_int_equal(after.fresh, 0);
    weir_engine_close(engine);
    engine = engine_open(false);
    assert_ok(weir_engine_salvage(engine, &all, 1, count_told, &after));
    assert_int_equal(after.fresh, 1);
    weir_engine_close(engine);
}

static void what_fails_is_an_error_and_not_damage(void **state) {
    (void)state;
    world *w = world_open();
    assert_ok(weir_fault_arm("engine:1:EIO:once"));
    assert_err(salvage(w, "K", "L"), WEIR_EIO, NULL);
    assert_ok(weir_fault_arm("engine:1:ENOMEM:once"));
    assert_err(salvage(w, "K", "L"), WEIR_ENOMEM, NULL);
    assert_ok(weir_fault_arm(NULL));
    assert_ok(weir_engine_health(w->engine));
    world_close(w);
}

WEIR_TESTS(WEIR_CASE(what_lies_in_a_whole_block_is_told), WEIR_CASE(a_file_that_cannot_be_opened_hides_no_other),
           WEIR_CASE(who_is_told_may_end_it), WEIR_CASE(what_no_reader_sees_yet_is_not_told),
           WEIR_CASE(what_fails_is_an_error_and_not_damage))
