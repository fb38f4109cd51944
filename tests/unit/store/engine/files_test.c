/* SPDX-License-Identifier: Apache-2.0 */
/* files_test.c - a prefix read file by file, in the order of ranks, against all that was ever written. */
#include "fixture.h"

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#define FILES       48u
#define KEYS_A_FILE 300u
#define VERTICES    400u /* of which each file has some; twice as many are asked for */
#define KEY_BYTES   38u
#define ROUNDS      (4000u / (unsigned)weir_test_part(1, 5))
#define KEYS_MAX    (FILES * KEYS_A_FILE)
#define CACHE_BYTES (8u << 20)
#define NO_ROOM     64u /* for a cache, and a part of it for filters */
#define RANK_A_FILE 1000u
#define FLIPS       (40u / (unsigned)weir_test_part(1, 4))
#define WIDE        500u

typedef struct world {
    weir_rng rng;
    bool in_order; /* nothing comes late, and nothing again */
    weir_engine_cache *cache;
    weir_engine *engine;
    uint8_t (*keys)[KEY_BYTES]; /* all that was written: each once, rising from world_sort on */
    size_t count;
} world;

/* A prefix, some bytes that are the same for all, the rank, and what makes it another key. */
static void make_key(uint32_t vertex, uint64_t rank, uint64_t unique, uint8_t key[KEY_BYTES]) {
    char text[WEIR_ENGINE_RANK_AT + 1];
    snprintf(text, sizeof text, "K%016uabcde", vertex);
    memcpy(key, text, WEIR_ENGINE_RANK_AT);
    for (int i = 0; i < 8; i++) {
        key[WEIR_ENGINE_RANK_AT + i] = (uint8_t)(rank >> (56 - 8 * i));
        key[WEIR_ENGINE_RANK_AT + 8 + i] = (uint8_t)(unique >> (56 - 8 * i));
    }
}

static uint64_t rank_of(const uint8_t key[KEY_BYTES]) {
    uint64_t rank = 0;
    for (int i = 0; i < 8; i++)
        rank = rank << 8 | key[WEIR_ENGINE_RANK_AT + i];
    return rank;
}

/* Every other value has ranks up to so many more than its key's. */
static uint64_t last_rank_of(const uint8_t *key) {
    return rank_of(key) + (key[KEY_BYTES - 1] % 2 ? WIDE : 0);
}

static uint64_t last_rank(const void *key, size_t length, const void *value, size_t value_length) {
    assert_int_equal(length, KEY_BYTES);
    assert_true(value || value_length == 0);
    return last_rank_of(key);
}

static int order(const void *a, const void *b) {
    return memcmp(a, b, KEY_BYTES);
}

/* Later files have lesser ranks, with some in between that came late; a few keys are those of an earlier file. */
static void write_one(world *w, uint32_t file) {
    static uint8_t keys[KEYS_A_FILE][KEY_BYTES];
    weir_engine_writer *writer;
    for (uint32_t i = 0; i < KEYS_A_FILE; i++) {
        uint64_t back = w->in_order || weir_rng_below(&w->rng, 50) ? 1 : 1 + weir_rng_below(&w->rng, 10);
        uint64_t rank = (FILES - file + back) * RANK_A_FILE + weir_rng_below(&w->rng, RANK_A_FILE);
        make_key((uint32_t)weir_rng_below(&w->rng, VERTICES), rank, weir_rng_below(&w->rng, UINT64_MAX), keys[i]);
        if (!w->in_order && w->count && weir_rng_below(&w->rng, 20) == 0)
            memcpy(keys[i], w->keys[weir_rng_below(&w->rng, w->count)], KEY_BYTES);
    }
    qsort(keys, KEYS_A_FILE, KEY_BYTES, order);
    assert_ok(weir_engine_writer_open(w->engine, &writer));
    for (uint32_t i = 0; i < KEYS_A_FILE; i++) {
        if (i && order(keys[i - 1], keys[i]) == 0) continue;
        assert_ok(weir_engine_writer_add(writer, keys[i], KEY_BYTES, keys[i], KEY_BYTES));
        memcpy(w->keys[w->count++], keys[i], KEY_BYTES);
    }
    assert_ok(weir_engine_writer_ingest(writer));
}

static void world_sort(world *w) {
    size_t kept = 1;
    qsort(w->keys, w->count, KEY_BYTES, order);
    for (size_t i = 1; i < w->count; i++)
        if (order(w->keys[kept - 1], w->keys[i]) != 0) memmove(w->keys[kept++], w->keys[i], KEY_BYTES);
    w->count = kept;
}

static void world_open_engine(world *w, uint64_t cache_bytes, bool create) {
    assert_ok(weir_engine_cache_open(cache_bytes, &w->cache));
    const weir_engine_opts opts = {.create = create, .cache = w->cache, .last_rank = last_rank};
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w->engine));
}

static void world_close_engine(world *w) {
    weir_engine_close(w->engine);
    weir_engine_cache_close(w->cache);
}

typedef enum kind { ANY, MERGED, IN_ORDER } kind;

/* MERGED: in the middle all of it is, so that there are files of both kinds. */
static void world_open(world *w, uint64_t cache_bytes, kind of) {
    *w = (world){.rng = weir_rng_stream(weir_test_seed(), 0, 0), .in_order = of == IN_ORDER};
    w->keys = malloc(KEYS_MAX * sizeof *w->keys);
    assert_non_null(w->keys);
    world_open_engine(w, cache_bytes, true);
    for (uint32_t file = 0; file < FILES; file++) {
        write_one(w, file);
        if (of == MERGED && file == FILES / 2) assert_ok(weir_engine_compact(w->engine));
    }
    world_sort(w);
}

static void world_close(world *w) {
    world_close_engine(w);
    free(w->keys);
}

/* The first key of a vertex, and how many it has. */
static size_t keys_of(const world *w, const uint8_t *prefix, size_t *countp) {
    size_t begin = 0, end;
    while (begin < w->count && memcmp(w->keys[begin], prefix, WEIR_ENGINE_PREFIX_BYTES) < 0)
        begin++;
    for (end = begin; end < w->count && memcmp(w->keys[end], prefix, WEIR_ENGINE_PREFIX_BYTES) == 0;)
        end++;
    *countp = end - begin;
    return begin;
}

/* All that the cursor's file has of a prefix, noted in seen. */
static void read_file(const world *w, weir_engine_cursor *cursor, const uint8_t *prefix, uint64_t rank, size_t begin,
                      size_t count, bool *seen) {
    weir_engine_cursor_seek(cursor, prefix, WEIR_ENGINE_PREFIX_BYTES);
    for (; weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor)) {
        size_t length, value_length, at = begin;
        const uint8_t *key = weir_engine_cursor_key(cursor, &length);
        assert_int_equal(length, KEY_BYTES);
        assert_memory_equal(weir_engine_cursor_value(cursor, &value_length), key, KEY_BYTES);
        while (at < begin + count && order(w->keys[at], key) != 0)
            at++;
        assert_true(at < begin + count); /* nothing of another prefix, and nothing that was not written */
        assert_true(rank_of(key) >= rank);
        seen[at - begin] = true;
    }
}

/* Of what a cursor has left out that has anything of from_rank or more, nothing has a lesser rank than the file that it
 * comes to. Returns the files taken. */
static unsigned read_all(const world *w, weir_engine_cursor *cursor, const uint8_t *prefix, uint64_t from_rank) {
    bool seen[KEYS_MAX / VERTICES * 8] = {false};
    size_t count, begin = keys_of(w, prefix, &count);
    uint64_t rank, last = 0;
    unsigned taken = 0;
    assert_true(count <= sizeof seen / sizeof seen[0]);
    for (; weir_engine_cursor_next_file(cursor, &rank); taken++, last = rank) {
        assert_true(rank >= last);
        for (size_t i = 0; i < count; i++)
            assert_true(seen[i] || rank_of(w->keys[begin + i]) >= rank || last_rank_of(w->keys[begin + i]) < from_rank);
        read_file(w, cursor, prefix, rank, begin, count, seen);
    }
    assert_ok(weir_engine_cursor_err(cursor));
    for (size_t i = 0; i < count; i++)
        assert_true(seen[i] || last_rank_of(w->keys[begin + i]) < from_rank);
    return taken;
}

/* Of vertices of which half have nothing. */
static void ask_for_many(world *w) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        weir_engine_cursor *cursor;
        uint8_t key[KEY_BYTES];
        uint64_t from_rank = weir_rng_below(&w->rng, 2) ? weir_rng_below(&w->rng, (FILES + 11) * RANK_A_FILE) : 0;
        make_key((uint32_t)weir_rng_below(&w->rng, 2 * VERTICES), 0, 0, key);
        assert_ok(weir_engine_cursor_open_files(w->engine, key, from_rank, &cursor));
        read_all(w, cursor, key, from_rank);
        weir_engine_cursor_close(cursor);
    }
}

static void a_prefix_is_found_in_the_order_of_ranks(void **state) {
    (void)state;
    world w;
    world_open(&w, CACHE_BYTES, ANY);
    ask_for_many(&w);
    world_close(&w);
}

static void it_is_so_when_files_were_merged_and_after_a_start(void **state) {
    (void)state;
    world w;
    world_open(&w, CACHE_BYTES, MERGED);
    ask_for_many(&w);
    world_close_engine(&w);
    world_open_engine(&w, CACHE_BYTES, ANY);
    ask_for_many(&w);
    assert_ok(weir_engine_compact(w.engine));
    ask_for_many(&w);
    world_close(&w);
}

/* Vertices that are asked for in vain lie in the midst of the others here, so that only filters know. They are of many
 * names: files have the same vertices, so a name that one filter is mistaken about, the others are too. */
static void filters_pass_over_files(void **state) {
    (void)state;
    unsigned taken[2] = {0};
    uint64_t held[2], live_files[2]; /* merges end with as many files as they happen to */
    for (int room = 0; room < 2; room++) {
        world w;
        weir_alloc_stats before, after;
        weir_alloc_stats_get(&before);
        world_open(&w, room ? CACHE_BYTES : NO_ROOM, ANY);
        weir_engine_stats stats;
        wait_for_merges(w.engine, &stats); /* a merge has memory of its own */
        live_files[room] = stats.live_files;
        weir_alloc_stats_get(&after);
        held[room] = after.live_bytes - before.live_bytes;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            weir_engine_cursor *cursor;
            uint8_t key[KEY_BYTES];
            uint64_t rank;
            make_key((uint32_t)weir_rng_below(&w.rng, VERTICES), 0, 0, key);
            key[WEIR_ENGINE_PREFIX_BYTES - 1] = (uint8_t)('9' + 1 + weir_rng_below(&w.rng, UINT8_MAX - '9'));
            assert_ok(weir_engine_cursor_open_files(w.engine, key, 0, &cursor));
            while (weir_engine_cursor_next_file(cursor, &rank)) {
                taken[room]++;
                weir_engine_cursor_seek(cursor, key, WEIR_ENGINE_PREFIX_BYTES);
                assert_false(weir_engine_cursor_valid(cursor));
            }
            weir_engine_cursor_close(cursor);
        }
        if (!room) ask_for_many(&w); /* what has no filter is found as well */
        world_close(&w);
        assert_ok(weir_folder_remove(weir_test_path("engine"))); /* what has no filter gets none */
    }
    assert_true(taken[0] > ROUNDS * live_files[0] / 2);
    assert_true(taken[1] < ROUNDS * live_files[1] / 50);
    assert_true(held[1] >
                held[0] + 100 * live_files[1]); /* each that has a filter has an index: RocksDB does not read it */
}

/* What merges make is not split where something older lies behind it. A reader of one that has very many vertices must
 * not fall back to RocksDB. */
static void a_file_of_a_million_vertices_is_read_by_its_blocks(void **state) {
    (void)state;
    enum { MILLION = 1000000, BYTES_A_BLOCK = 20 };
    weir_test_skip_under("thread", "a million of what other cases have less of");
    weir_alloc_stats before, after;
    weir_engine_writer *writer;
    uint8_t key[KEY_BYTES];
    world w = {.rng = weir_rng_stream(weir_test_seed(), 0, 0)};
    world_open_engine(&w, CACHE_BYTES, true);
    weir_alloc_stats_get(&before);
    assert_ok(weir_engine_writer_open_large(w.engine, &writer));
    for (uint32_t vertex = 0; vertex < MILLION; vertex++) {
        make_key(vertex, 1, 0, key);
        assert_ok(weir_engine_writer_add(writer, key, KEY_BYTES, "", 0));
    }
    assert_ok(weir_engine_writer_ingest(writer));
    weir_alloc_stats_get(&after);
    assert_true(after.live_bytes > before.live_bytes + (uint64_t)MILLION * KEY_BYTES / 8192 * BYTES_A_BLOCK / 4);
    unsigned in_vain = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        weir_engine_cursor *cursor;
        uint64_t rank;
        bool there = round % 2;
        make_key((uint32_t)weir_rng_below(&w.rng, MILLION), 1, 0, key);
        if (!there) key[WEIR_ENGINE_PREFIX_BYTES - 1] = 'x';
        assert_ok(weir_engine_cursor_open_files(w.engine, key, 0, &cursor));
        bool taken = weir_engine_cursor_next_file(cursor, &rank);
        in_vain += taken && !there;
        if (taken) weir_engine_cursor_seek(cursor, key, WEIR_ENGINE_PREFIX_BYTES);
        assert_int_equal(taken && weir_engine_cursor_valid(cursor), there);
        assert_ok(weir_engine_cursor_err(cursor));
        weir_engine_cursor_close(cursor);
    }
    assert_true(in_vain < ROUNDS / 10); /* its filter knows */
    world_close_engine(&w);
}

/* Who asks as of long ago takes none of what came since. */
static void ranks_pass_over_files(void **state) {
    (void)state;
    world w;
    unsigned taken[2] = {0};
    world_open(&w, CACHE_BYTES, IN_ORDER);
    for (uint32_t vertex = 0; vertex < VERTICES; vertex++) {
        for (int past = 0; past < 2; past++) {
            const uint64_t from_rank = past ? (FILES - 4) * RANK_A_FILE : 0;
            weir_engine_cursor *cursor;
            uint8_t key[KEY_BYTES];
            make_key(vertex, 0, 0, key);
            assert_ok(weir_engine_cursor_open_files(w.engine, key, from_rank, &cursor));
            taken[past] += read_all(&w, cursor, key, from_rank);
            weir_engine_cursor_close(cursor);
        }
    }
    assert_true(taken[1] > 0 && taken[1] < taken[0] / 2);
    world_close(&w);
}

/* Neither what comes in nor what is merged away changes what a cursor sees. */
static void a_cursor_sees_the_files_of_when_it_was_opened(void **state) {
    (void)state;
    world w, later;
    weir_engine_cursor *cursors[VERTICES];
    uint8_t key[KEY_BYTES];
    world_open(&w, CACHE_BYTES, ANY);
    for (uint32_t vertex = 0; vertex < VERTICES; vertex++) {
        make_key(vertex, 0, 0, key);
        assert_ok(weir_engine_cursor_open_files(w.engine, key, 0, &cursors[vertex]));
    }
    later = w;
    later.count = 0;
    later.keys = malloc(KEYS_MAX * sizeof *later.keys);
    assert_non_null(later.keys);
    write_one(&later, 0);
    assert_ok(weir_engine_compact(w.engine));
    for (uint32_t vertex = 0; vertex < VERTICES; vertex++) {
        make_key(vertex, 0, 0, key);
        read_all(&w, cursors[vertex], key, 0);
        weir_engine_cursor_close(cursors[vertex]);
    }
    memcpy(w.keys[w.count], later.keys, later.count * KEY_BYTES);
    w.count += later.count;
    world_sort(&w);
    ask_for_many(&w);
    free(later.keys);
    world_close(&w);
}

static weir_err count_one(void *context, const char *name) {
    (void)name;
    (*(unsigned *)context)++;
    return WEIR_OK;
}

static unsigned descriptors(void) {
    unsigned count = 0;
    assert_ok(weir_folder_list("/proc/self/fd", count_one, &count));
    return count;
}

/* Files that were merged away are let go of, and all of them at the end: else the disk would never have their room
 * back. */
static void what_is_merged_away_is_let_go_of(void **state) {
    (void)state;
    world w;
    unsigned before = descriptors();
    world_open(&w, CACHE_BYTES, IN_ORDER);
    assert_ok(weir_engine_compact(w.engine));
    weir_engine_stats stats;
    wait_for_merges(w.engine, &stats);
    unsigned open = descriptors() - before;
    assert_in_range(open, 2 * stats.live_files, 2 * stats.live_files + 16);
    assert_true(stats.live_files < 8);
    world_close(&w);
    assert_int_equal(descriptors(), before);
}

/* N3: what is read is what was written, or it is an error. */
static void n3_a_flipped_bit_is_seen_file_by_file(void **state) {
    (void)state;
    world w;
    files f;
    unsigned errors = 0;
    world_open(&w, CACHE_BYTES, MERGED);
    world_close_engine(&w);
    for (unsigned flipped = 0; flipped < FLIPS; flipped++) {
        files_find(&f, "engine", ".sst");
        const char *path = f.paths[weir_rng_below(&w.rng, f.count)];
        long at = (long)weir_rng_below(&w.rng, (uint64_t)size_of(path));
        int bit = (int)weir_rng_below(&w.rng, 8);
        flip(path, at, bit);
        assert_ok(weir_engine_cache_open(CACHE_BYTES, &w.cache));
        const weir_engine_opts opts = {.cache = w.cache, .read_only = true};
        bool opened = !weir_engine_open(weir_test_path("engine"), &opts, &w.engine);
        errors += !opened;
        for (uint32_t vertex = 0; opened && vertex < VERTICES; vertex++) {
            weir_engine_cursor *cursor;
            uint8_t key[KEY_BYTES];
            uint64_t rank;
            size_t count, found = 0, begin;
            bool seen[KEYS_MAX / VERTICES * 8] = {false};
            make_key(vertex, 0, 0, key);
            begin = keys_of(&w, key, &count);
            assert_ok(weir_engine_cursor_open_files(w.engine, key, 0, &cursor));
            while (weir_engine_cursor_next_file(cursor, &rank) && !weir_engine_cursor_err(cursor))
                read_file(&w, cursor, key, rank, begin, count, seen);
            weir_err err = weir_engine_cursor_err(cursor);
            for (size_t i = 0; i < count; i++)
                found += seen[i];
            assert_true(err || found == count);
            if (err) assert_true(weir_err_is(weir_engine_health(w.engine), WEIR_ECORRUPT));
            errors += err != WEIR_OK;
            weir_engine_cursor_close(cursor);
        }
        if (opened) weir_engine_close(w.engine);
        weir_engine_cache_close(w.cache);
        flip(path, at, bit);
    }
    assert_true(errors > 0);
    world_open_engine(&w, CACHE_BYTES, false);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(a_prefix_is_found_in_the_order_of_ranks),
           WEIR_CASE(it_is_so_when_files_were_merged_and_after_a_start), WEIR_CASE(filters_pass_over_files),
           WEIR_CASE(ranks_pass_over_files), WEIR_CASE(a_file_of_a_million_vertices_is_read_by_its_blocks),
           WEIR_CASE(a_cursor_sees_the_files_of_when_it_was_opened), WEIR_CASE(what_is_merged_away_is_let_go_of),
           WEIR_CASE(n3_a_flipped_bit_is_seen_file_by_file))
