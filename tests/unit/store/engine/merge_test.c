/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_test.c - what merges make without RocksDB, against all that was ever written, and read by RocksDB alone.
 */
#include "fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "rocks_checksums.h"
#include "rocks_filters.h"
#include "rocks_old.h"

#define KEY_MAX     64u
#define RECORDS_MAX 80000u
#define FILES       24u
#define KEYS_A_FILE 2000u
#define VERTICES    60000u
#define VALUE_MAX   9000u /* more than two blocks */
#define BLOCK_BYTES 4096u
#define FLIPS       (60u / (unsigned)weir_test_part(1, 6))
#define MIB         (1u << 20)
#define FILE_BYTES  (64u * MIB) /* of what merges make, but for level 0 */
#define SOUGHT      4000u
#define RANKED_FROM 6u /* of the lengths of keys */
#define FIRST_KEYS  20u
#define LITTLE_ROOM (512u << 10) /* for filters, but not for all indices */

typedef struct record {
    uint8_t key[KEY_MAX];
    uint32_t key_length, value_length, seed; /* of its value, which differs each time that it is written */
} record;

typedef struct world {
    weir_rng rng;
    weir_engine *engine;
    record *records; /* what the engine must have, in the order of keys once world_sort was called */
    size_t count;
    uint32_t value_max, seeds;
    bool ranked; /* all keys are long enough to have a rank */
} world;

static int by_key(const void *a, const void *b) {
    const record *x = a, *y = b;
    uint32_t least = x->key_length < y->key_length ? x->key_length : y->key_length;
    int order = memcmp(x->key, y->key, least);
    return order ? order : (x->key_length > y->key_length) - (x->key_length < y->key_length);
}

static int by_key_the_last_first(const void *a, const void *b) {
    const record *x = a, *y = b;
    int order = by_key(a, b);
    return order ? order : (x->seed < y->seed) - (x->seed > y->seed);
}

/* Of a key that was written again the last counts. */
static void world_sort(world *w) {
    size_t kept = 0;
    qsort(w->records, w->count, sizeof *w->records, by_key_the_last_first);
    for (size_t i = 0; i < w->count; i++)
        if (kept == 0 || by_key(&w->records[kept - 1], &w->records[i]) != 0) w->records[kept++] = w->records[i];
    w->count = kept;
}

static void value_of(const record *r, uint8_t *value) {
    weir_rng rng = weir_rng_stream(r->seed, 0, 0);
    for (size_t i = 0; i < r->value_length; i += sizeof(uint64_t)) {
        const uint64_t word = weir_rng_u64(&rng);
        memcpy(value + i, &word, r->value_length - i < sizeof word ? r->value_length - i : sizeof word);
    }
}

/* Short ones, which lie before all others (engine.h), those that are just a prefix, and long ones, of which some
 * vertices have very many; bytes of 0 and 255 are among them. */
static void make_key(world *w, record *r) {
    static const uint32_t lengths[] = {1, 3, 8, 16, 17, 22, 38, 57, KEY_MAX};
    uint64_t vertex = weir_rng_below(&w->rng, 4) ? weir_rng_below(&w->rng, VERTICES) : weir_rng_below(&w->rng, 3);
    weir_rng of_vertex = weir_rng_stream(vertex, 1, 0);
    const size_t first = w->ranked ? RANKED_FROM : 0, count = sizeof lengths / sizeof lengths[0];
    r->key_length = lengths[first + weir_rng_below(&w->rng, count - first)];
    for (uint32_t i = 0; i < r->key_length; i++) {
        uint64_t byte = i < WEIR_ENGINE_PREFIX_BYTES ? weir_rng_below(&of_vertex, 6) : weir_rng_below(&w->rng, 6);
        r->key[i] = byte == 5 ? UINT8_MAX : (uint8_t)byte;
    }
    r->key[0] = r->key_length < WEIR_ENGINE_PREFIX_BYTES ? 'A' : 'K';
}

/* Between the short ones and the others. */
static void make_wall(record *r) {
    r->key_length = WEIR_ENGINE_PREFIX_BYTES;
    memset(r->key, 'B', r->key_length);
}

static void write_one(world *w) {
    const size_t begin = w->count;
    weir_engine_writer *writer;
    uint8_t value[VALUE_MAX];
    for (uint32_t i = 0; i < KEYS_A_FILE; i++) {
        record *r = &w->records[w->count++];
        assert_true(w->count <= RECORDS_MAX);
        if (i == 0)
            make_wall(r);
        else if (begin && weir_rng_below(&w->rng, 10) == 0)
            *r = w->records[weir_rng_below(&w->rng, begin)];
        else
            make_key(w, r);
        bool large = weir_rng_below(&w->rng, 200) == 0;
        r->value_length = (uint32_t)weir_rng_below(&w->rng, (large ? VALUE_MAX : w->value_max) + 1);
        r->seed = ++w->seeds;
    }
    qsort(w->records + begin, KEYS_A_FILE, sizeof *w->records, by_key_the_last_first);
    if (!w->engine) return; /* whoever asks writes them himself */
    assert_ok(weir_engine_writer_open(w->engine, &writer));
    for (size_t i = begin; i < w->count; i++) {
        const record *r = &w->records[i];
        if (i > begin && by_key(r - 1, r) == 0) continue;
        value_of(r, value);
        assert_ok(weir_engine_writer_add(writer, r->key, r->key_length, value, r->value_length));
    }
    assert_ok(weir_engine_writer_ingest(writer));
}

/* Of those of a file, the at-th. false: it was put again in the same file. */
static bool old_record(void *context, size_t at, const void **key, size_t *key_length, const void **value,
                       size_t *value_length) {
    static uint8_t bytes[VALUE_MAX];
    const world *w = context;
    const record *r = &w->records[at];
    value_of(r, bytes);
    *key = r->key;
    *key_length = r->key_length;
    *value = bytes;
    *value_length = r->value_length;
    return at == 0 || by_key(r - 1, r) != 0;
}

static void world_open(world *w) {
    *w = (world){.rng = weir_rng_stream(weir_test_seed(), 0, 0), .value_max = 120};
    w->records = malloc(RECORDS_MAX * sizeof *w->records);
    assert_non_null(w->records);
    w->engine = engine_open(true);
}

static void world_fill(world *w, uint32_t count) {
    for (uint32_t file = 0; file < count; file++)
        write_one(w);
    world_sort(w);
}

static void world_close(world *w) {
    weir_engine_close(w->engine);
    free(w->records);
}

static uint64_t merges_of(weir_engine *engine) {
    weir_engine_stats stats;
    weir_engine_stats_get(engine, &stats);
    return stats.merges;
}

static void world_merge(world *w) {
    uint64_t before = merges_of(w->engine);
    assert_ok(weir_engine_compact(w->engine));
    assert_true(merges_of(w->engine) > before);
}

/* --- what is read ------------------------------------------------------------------------------------------------- */

static void is_at(const weir_engine_cursor *cursor, const record *r) {
    uint8_t value[VALUE_MAX];
    size_t length;
    assert_true(weir_engine_cursor_valid(cursor));
    const void *key = weir_engine_cursor_key(cursor, &length);
    assert_int_equal(length, r->key_length);
    assert_memory_equal(key, r->key, length);
    const void *there = weir_engine_cursor_value(cursor, &length);
    assert_int_equal(length, r->value_length);
    value_of(r, value);
    assert_memory_equal(there, value, length);
}

static void all_is_there(const world *w) {
    weir_engine_cursor *cursor;
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_SCAN, &cursor));
    weir_engine_cursor_seek(cursor, "", 0);
    for (size_t i = 0; i < w->count; i++, weir_engine_cursor_next(cursor))
        is_at(cursor, &w->records[i]);
    assert_false(weir_engine_cursor_valid(cursor));
    assert_ok(weir_engine_cursor_err(cursor));
    weir_engine_cursor_close(cursor);
}

/* The first record that is not less than a key, which need not be there. */
static size_t place_of(const world *w, const record *sought) {
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_key(&w->records[middle], sought) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_prefix_of(const record *r, const record *other) {
    return r->key_length >= WEIR_ENGINE_PREFIX_BYTES && memcmp(r->key, other->key, WEIR_ENGINE_PREFIX_BYTES) == 0;
}

/* In both directions, of keys that are there and keys that are not, whose prefix may be there or not. */
static void each_key_is_found(world *w) {
    weir_engine_cursor *point, *probe;
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_POINT, &point));
    assert_ok(weir_engine_cursor_open(w->engine, WEIR_ENGINE_PROBE, &probe));
    for (uint32_t i = 0; i < SOUGHT / weir_test_part(1, 10); i++) {
        record sought;
        make_key(w, &sought);
        if (i % 2) sought = w->records[weir_rng_below(&w->rng, w->count)];
        const size_t at = place_of(w, &sought);
        const bool is_there = at < w->count && by_key(&w->records[at], &sought) == 0;
        weir_engine_cursor_seek(probe, sought.key, sought.key_length);
        assert_int_equal(weir_engine_cursor_valid(probe), at < w->count);
        if (at < w->count) is_at(probe, &w->records[at]);
        if (sought.key_length < WEIR_ENGINE_PREFIX_BYTES) continue;
        const size_t last = is_there ? at : at - 1; /* SIZE_MAX: nothing is before it */
        const bool goes_on = at < w->count && has_prefix_of(&w->records[at], &sought);
        const bool goes_back = last != SIZE_MAX && has_prefix_of(&w->records[last], &sought);
        weir_engine_cursor_seek(point, sought.key, sought.key_length);
        assert_int_equal(weir_engine_cursor_valid(point), goes_on);
        if (goes_on) is_at(point, &w->records[at]);
        weir_engine_cursor_seek_last(point, sought.key, sought.key_length);
        assert_int_equal(weir_engine_cursor_valid(point), goes_back);
        if (goes_back) is_at(point, &w->records[last]);
    }
    assert_ok(weir_engine_cursor_err(point));
    assert_ok(weir_engine_cursor_err(probe));
    weir_engine_cursor_close(point);
    weir_engine_cursor_close(probe);
}

static bool goes_on(void *context, uint64_t bytes) {
    (void)context;
    (void)bytes;
    return true;
}

/* No file has changed on the disk, either. */
static void is_as_written(world *w) {
    all_is_there(w);
    each_key_is_found(w);
    assert_ok(weir_engine_scrub(w->engine, goes_on, NULL));
    weir_engine_close(w->engine);
    assert_true(rocks_checksums(weir_test_path("engine")) > 0);
    w->engine = engine_open(false);
}

/* --- the cases ---------------------------------------------------------------------------------------------------- */

static void what_is_merged_is_what_was_written(void **state) {
    (void)state;
    world w;
    world_open(&w);
    for (int round = 0; round < 3; round++) { /* the second time with files of level 0 and with what merges have made */
        world_fill(&w, FILES / 3);
        world_merge(&w);
        is_as_written(&w);
    }
    world_close(&w);
}

/* The way of RocksDB's own choice, when there are so many files. */
static void they_are_merged_by_themselves(void **state) {
    (void)state;
    weir_engine_stats stats;
    world w;
    world_open(&w);
    world_fill(&w, FILES);
    wait_for_merges(w.engine, &stats);
    assert_true(stats.merges > 0 && stats.live_files < FILES);
    is_as_written(&w);
    world_close(&w);
}

static void one_record_is_merged(void **state) {
    (void)state;
    world w;
    world_open(&w);
    write_one(&w);
    w.records[0] = (record){.key = "K", .key_length = 1, .value_length = 3, .seed = ++w.seeds};
    w.count = 1;
    weir_engine_close(w.engine);
    w.engine = engine_open_at("one", true);
    for (int again = 0; again < 2; again++) {
        weir_engine_writer *writer;
        uint8_t value[VALUE_MAX];
        w.records[0].seed += (uint32_t)again;
        value_of(&w.records[0], value);
        assert_ok(weir_engine_writer_open(w.engine, &writer));
        assert_ok(weir_engine_writer_add(writer, w.records[0].key, 1, value, 3));
        assert_ok(weir_engine_writer_ingest(writer));
    }
    world_merge(&w);
    all_is_there(&w);
    world_close(&w);
}

/* What is larger than a file of a level is many, and each begins behind the end of the one before. */
static void much_becomes_several_files(void **state) {
    (void)state;
    weir_test_skip_under("thread", "it merges as in other cases, but more");
    weir_engine_stats stats;
    world w;
    world_open(&w);
    w.value_max = VALUE_MAX;
    for (int round = 0; round < 2; round++) {
        world_fill(&w, FILES / 2);
        world_merge(&w);
        all_is_there(&w);
        each_key_is_found(&w);
    }
    weir_engine_stats_get(w.engine, &stats);
    assert_true(stats.live_bytes > FILE_BYTES);
    /* A file is larger by what stands at its end: of a few files that may add up to what is missing in the last one. */
    assert_in_range(stats.live_files, stats.live_bytes / FILE_BYTES, stats.live_bytes / FILE_BYTES + 2);
    assert_true(stats.live_files > 1);
    is_as_written(&w);
    world_close(&w);
}

static uint32_t prefixes_of(const world *w) {
    uint32_t count = 0;
    for (size_t i = 1; i < w->count; i++)
        count +=
            w->records[i].key_length >= WEIR_ENGINE_PREFIX_BYTES && !has_prefix_of(&w->records[i - 1], &w->records[i]);
    return count;
}

/* RocksDB alone finds what is there, and its reader of filters passes over what is not: of 99 in 100 it knows. */
static void rocksdb_reads_the_filters(void **state) {
    (void)state;
    const uint32_t prefixes_of_a_part = 8192 * 8 / 10;
    world w;
    uint64_t asked, saved;
    uint8_t *keys = malloc(SOUGHT * WEIR_ENGINE_PREFIX_BYTES);
    size_t there = 0;
    assert_non_null(keys);
    world_open(&w);
    world_fill(&w, FILES);
    world_merge(&w);
    assert_true(prefixes_of(&w) > 2 * prefixes_of_a_part);
    for (uint32_t i = 0; i < SOUGHT; i++) {
        record sought;
        do
            make_key(&w, &sought);
        while (sought.key_length < WEIR_ENGINE_PREFIX_BYTES);
        sought.key_length = WEIR_ENGINE_PREFIX_BYTES;
        if (i % 2) sought.key[4 + weir_rng_below(&w.rng, 8)] = 'x';
        const size_t at = place_of(&w, &sought);
        there += at < w.count && by_key(&w.records[at], &sought) == 0;
        memcpy(keys + i * WEIR_ENGINE_PREFIX_BYTES, sought.key, WEIR_ENGINE_PREFIX_BYTES);
    }
    weir_engine_close(w.engine);
    int64_t found = rocks_filters(weir_test_path("engine"), WEIR_ENGINE_PREFIX_BYTES, keys, WEIR_ENGINE_PREFIX_BYTES,
                                  SOUGHT, &asked, &saved);
    assert_int_equal(found, there);
    assert_true(there > SOUGHT / 10 && asked >= SOUGHT / 2);
    assert_true(saved > SOUGHT / 2 - SOUGHT / 2 * 3 / 100);
    free(keys);
    free(w.records);
}

/* The first keys of all are the most: they lie at the beginning of every file. */
static void is_read_file_by_file(world *w) {
    for (uint32_t i = 0; i < SOUGHT; i++) {
        weir_engine_cursor *cursor;
        uint64_t rank;
        const record sought = w->records[weir_rng_below(&w->rng, i % 2 ? w->count : FIRST_KEYS)];
        if (sought.key_length == WEIR_ENGINE_PREFIX_BYTES) continue; /* without a rank: may be in none (engine.h) */
        bool met = false;
        assert_ok(weir_engine_cursor_open_files(w->engine, sought.key, 0, &cursor));
        while (!met && weir_engine_cursor_next_file(cursor, &rank)) { /* the files' order is not that of writing */
            size_t length, value_length;
            uint8_t value[VALUE_MAX];
            weir_engine_cursor_seek(cursor, sought.key, sought.key_length);
            if (!weir_engine_cursor_valid(cursor)) continue;
            const void *key = weir_engine_cursor_key(cursor, &length);
            const void *bytes = weir_engine_cursor_value(cursor, &value_length);
            value_of(&sought, value);
            met = length == sought.key_length && memcmp(key, sought.key, length) == 0 &&
                  value_length == sought.value_length && memcmp(bytes, value, value_length) == 0;
        }
        assert_ok(weir_engine_cursor_err(cursor));
        assert_true(met);
        weir_engine_cursor_close(cursor);
    }
}

/* What finds no room for its index is read by RocksDB, which has blocks of many files in one cache and must not take
 * one for another. */
static void files_are_told_apart_without_room(void **state) {
    (void)state;
    weir_engine_stats stats;
    weir_engine_cache *cache;
    world w;
    world_open(&w);
    weir_engine_close(w.engine);
    w.value_max = 2000;
    w.ranked = true;
    assert_ok(weir_engine_cache_open(LITTLE_ROOM, &cache));
    const weir_engine_opts opts = {.cache = cache};
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w.engine));
    for (int round = 0; round < 2; round++) {
        world_fill(&w, 17); /* are merged, by RocksDB's choice */
        wait_for_merges(w.engine, &stats);
    }
    assert_true(stats.merges >= 2 && stats.live_files >= 2);
    is_read_file_by_file(&w);
    each_key_is_found(&w);
    weir_engine_close(w.engine);
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w.engine));
    is_read_file_by_file(&w);
    world_close(&w);
    weir_engine_cache_close(cache);
}

/* A failure of ours is none: RocksDB makes what we could not, and nothing of ours is left. Returns how often it did. */
static uint64_t fail_each(const char *of) {
    uint64_t left_to_it = 0;
    for (uint64_t nth = 1, failed = 1; failed; nth++) {
        char spec[64];
        world w;
        files left = {.folder = weir_test_path("engine"), .with = "merge-"};
        world_open(&w);
        world_fill(&w, 3);
        snprintf(spec, sizeof spec, "any:%llu:EIO:once:%s", (unsigned long long)nth, of);
        assert_ok(weir_fault_arm(spec));
        assert_ok(weir_engine_compact(w.engine));
        failed = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        assert_true(failed || merges_of(w.engine) == 1);
        left_to_it += merges_of(w.engine) == 0;
        assert_ok(weir_folder_list(left.folder, files_take, &left));
        assert_int_equal(left.count, 0);
        is_as_written(&w);
        world_close(&w);
        assert_ok(weir_folder_remove(left.folder));
        assert_true(nth < 100);
    }
    return left_to_it;
}

static void what_fails_is_left_to_rocksdb(void **state) {
    (void)state;
    weir_test_skip_under("thread", "of what fails, it sees allocations");
    assert_true(fail_each("/merge-") >= 4);  /* an opening, a cut, a write, a sync; what was synced is closed anyhow */
    assert_true(fail_each(".sst") >= 3 * 4); /* of each file it is opened, and its end, index and blocks are read */
}

static void each_failing_allocation_is_left_to_rocksdb(void **state) {
    (void)state;
    uint64_t left_to_it = 0, all = 1;
    for (uint64_t nth = 1; all; nth += 1 + nth / (8 / weir_test_part(1, 4))) {
        world w;
        world_open(&w);
        world_fill(&w, 3);
        weir_alloc_fail_nth(nth);
        assert_ok(weir_engine_compact(w.engine));
        all = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        left_to_it += merges_of(w.engine) == 0;
        assert_true(all || merges_of(w.engine) == 1);
        is_as_written(&w);
        world_close(&w);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
    }
    assert_true(left_to_it > 5);
}

/* --- a joiner ----------------------------------------------------------------------------------------------------- */

typedef enum slip { NO_SLIP, AT_OPEN, AT_ADD, AT_END, OUT_OF_ORDER, SLIPS } slip;

static slip slips;

/* Holds each record back until the next one comes. */
typedef struct holder {
    weir_engine_emit emit;
    void *context;
    uint8_t key[KEY_MAX], value[VALUE_MAX];
    weir_engine_record held;
    uint64_t count;
} holder;

static weir_err holder_open(weir_engine_emit emit, void *context, void **statep) {
    if (slips == AT_OPEN) return WEIR_NOMEM("for a joiner of a test");
    holder *h = *statep = weir_calloc(1, sizeof *h);
    if (!h) return WEIR_NOMEM("for a joiner of a test");
    h->emit = emit;
    h->context = context;
    return WEIR_OK;
}

static weir_err holder_add(void *state, const weir_engine_record *one) {
    holder *h = state;
    bool at_slip = ++h->count == 20;
    if (at_slip && slips == AT_ADD) return WEIR_ERR(WEIR_EIO, "a joiner of a test slips");
    if (at_slip && slips == OUT_OF_ORDER) return h->emit(h->context, one); /* before the one that is held */
    weir_err err = h->held.key ? h->emit(h->context, &h->held) : WEIR_OK;
    assert_true(one->key_length <= sizeof h->key && one->value_length <= sizeof h->value);
    memcpy(h->key, one->key, one->key_length);
    memcpy(h->value, one->value, one->value_length);
    h->held = *one;
    h->held.key = h->key;
    h->held.value = h->value;
    return err;
}

static weir_err holder_end(void *state) {
    holder *h = state;
    if (slips == AT_END) return WEIR_ERR(WEIR_EIO, "a joiner of a test slips");
    return h->held.key ? h->emit(h->context, &h->held) : WEIR_OK;
}

static void a_joiner_that_slips_leaves_it_to_rocksdb(void **state) {
    (void)state;
    static const weir_engine_joining joining = {holder_open, holder_add, holder_end, weir_free};
    const weir_engine_opts opts = {.joining = &joining};
    for (slips = NO_SLIP; slips < SLIPS; slips++) {
        world w;
        world_open(&w);
        weir_engine_close(w.engine);
        assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w.engine));
        world_fill(&w, 3);
        assert_ok(weir_engine_compact(w.engine));
        assert_int_equal(merges_of(w.engine), slips == NO_SLIP);
        is_as_written(&w);
        world_close(&w);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
    }
}

/* ENGINE-N3: what was damaged before it was merged is damage still. */
static void n3_damage_is_not_merged_away(void **state) {
    (void)state;
    world w;
    files f;
    world_open(&w);
    world_fill(&w, 4);
    weir_engine_close(w.engine);
    files_find(&f, "engine", ".sst");
    flip(f.paths[1], size_of(f.paths[1]) / 3, 2);
    w.engine = engine_open(false);
    assert_err(weir_engine_compact(w.engine), WEIR_ECORRUPT, "");
    assert_int_equal(merges_of(w.engine), 0);
    assert_err(weir_engine_health(w.engine), WEIR_ECORRUPT, "");
    world_close(&w);
}

/* ENGINE-N3: each bit of what merges make is looked at. */
static void n3_a_flipped_bit_of_a_merged_file_is_found(void **state) {
    (void)state;
    world w;
    files f;
    world_open(&w);
    world_fill(&w, 4);
    world_merge(&w);
    weir_engine_close(w.engine);
    for (unsigned flipped = 0; flipped < FLIPS; flipped++) {
        files_find(&f, "engine", ".sst");
        const char *path = f.paths[weir_rng_below(&w.rng, f.count)];
        long from_end = flipped % 2 ? 1 + (long)weir_rng_below(&w.rng, 2000) : 0; /* properties and footer */
        long at = from_end ? size_of(path) - from_end : (long)weir_rng_below(&w.rng, (uint64_t)size_of(path));
        int bit = (int)weir_rng_below(&w.rng, 8);
        const weir_engine_opts opts = {.create = false};
        flip(path, at, bit);
        weir_err err = weir_engine_open(weir_test_path("engine"), &opts, &w.engine);
        if (!err) {
            err = weir_engine_scrub(w.engine, goes_on, NULL);
            weir_engine_close(w.engine);
        }
        assert_err(err, WEIR_ECORRUPT, "");
        flip(path, at, bit);
    }
    w.engine = engine_open(false);
    is_as_written(&w);
    world_close(&w);
}

static world *world_shared(void) {
    const size_t bytes = RECORDS_MAX * sizeof(record);
    world *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    record *records = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(w != MAP_FAILED && records != MAP_FAILED);
    *w = (world){.rng = weir_rng_stream(weir_test_seed(), 0, 0), .value_max = 120, .records = records};
    return w;
}

/* RocksDB's threads are not those of a child: so each is the first of its process that opens an engine. */
static int status_of_child(void (*child)(world *w, const char *point), world *w, const char *point) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(w, point);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void fill_and_merge_nothing(world *w, const char *point) {
    (void)point;
    const weir_engine_opts opts = {.create = true, .bulk = true};
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w->engine));
    world_fill(w, FILES);
    weir_engine_close(w->engine);
}

/* There are so many files that a merge begins while it is opened. */
static void open_and_wait_for_merges(world *w, const char *point) {
    weir_engine_stats stats;
    if (point) assert_ok(weir_fault_kill_arm(point));
    w->engine = engine_open(false);
    wait_for_merges(w->engine, &stats);
}

static void open_and_look(world *w, const char *point) {
    files left = {.folder = weir_test_path("engine"), .with = "merge-"};
    open_and_wait_for_merges(w, point);
    assert_true(merges_of(w->engine) > 0);
    assert_ok(weir_folder_list(left.folder, files_take, &left));
    assert_int_equal(left.count, 0);
    is_as_written(w);
    weir_engine_close(w->engine);
}

static void is_killed_at(const char *point) {
    world *w = world_shared();
    assert_int_equal(status_of_child(fill_and_merge_nothing, w, NULL), 0);
    for (int again = 0; again < 3; again++) {
        int status = status_of_child(open_and_wait_for_merges, w, point);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    assert_int_equal(status_of_child(open_and_look, w, NULL), 0);
    munmap(w->records, RECORDS_MAX * sizeof(record));
    munmap(w, sizeof *w);
    assert_ok(weir_folder_remove(weir_test_path("engine")));
}

static void killed_while_it_merges(void **state) {
    (void)state;
    is_killed_at("engine.merging:1");
    is_killed_at("engine.merged:1");
}

/* Holds up the first piece that a merge writes until the engine is being closed, and those after it for a while, and
 * counts them. */
static struct {
    atomic_bool writes, closing;
    atomic_uint pieces;
} held_up;

static void hold_up(void *context, weir_fault_op op, const char *path) {
    (void)context;
    if (op != WEIR_FAULT_WRITE || !strstr(path, "/merge-")) return;
    atomic_fetch_add(&held_up.pieces, 1);
    atomic_store(&held_up.writes, true);
    while (!atomic_load(&held_up.closing))
        usleep(1000);
    usleep(200000); /* in which the closing comes to wait for the merge */
}

/* A closing does not wait for a large merge to its end. What was begun is begun again. */
static void a_closing_ends_it(void **state) {
    (void)state;
    world w;
    files left = {.folder = weir_test_path("engine"), .with = "merge-"};
    world_open(&w);
    w.value_max = 4000;
    weir_fault_watch(hold_up, NULL);
    world_fill(&w, 16);
    while (!atomic_load(&held_up.writes))
        usleep(1000);
    weir_engine_stats stats;
    weir_engine_stats_get(w.engine, &stats);
    assert_true(stats.live_bytes > 20 * MIB); /* a piece is one of them */
    atomic_store(&held_up.closing, true);
    weir_engine_close(w.engine);
    weir_fault_watch(NULL, NULL);
    assert_true(atomic_load(&held_up.pieces) < 10);
    assert_ok(weir_folder_list(left.folder, files_take, &left));
    assert_int_equal(left.count, 0);
    w.engine = engine_open(false);
    is_as_written(&w);
    world_close(&w);
}

/* --- stores of before --------------------------------------------------------------------------------------------- */

/* What RocksDB has written, with numbers of its own or in the file, is merged; what is compressed RocksDB merges. */
static void files_of_rocksdb_are_merged(void **state) {
    (void)state;
    for (int compressed = 0; compressed < 2; compressed++) {
        world w;
        world_open(&w);
        weir_engine_close(w.engine);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
        for (uint32_t file = 0; file < 6; file++) {
            const size_t begin = w.count;
            w.engine = NULL;
            write_one(&w);
            assert_int_equal(rocks_old(weir_test_path("engine"), compressed, file, begin, w.count, old_record, &w), 0);
        }
        world_sort(&w);
        w.engine = engine_open(false);
        all_is_there(&w);
        assert_ok(weir_engine_compact(w.engine));
        assert_int_equal(merges_of(w.engine), compressed ? 0 : 1);
        is_as_written(&w);
        world_close(&w);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
    }
}

WEIR_TESTS(WEIR_CASE(what_is_merged_is_what_was_written), WEIR_CASE(they_are_merged_by_themselves),
           WEIR_CASE(one_record_is_merged), WEIR_CASE(much_becomes_several_files), WEIR_CASE(rocksdb_reads_the_filters),
           WEIR_CASE(files_are_told_apart_without_room), WEIR_CASE(what_fails_is_left_to_rocksdb),
           WEIR_CASE(each_failing_allocation_is_left_to_rocksdb), WEIR_CASE(a_joiner_that_slips_leaves_it_to_rocksdb),
           WEIR_CASE(files_of_rocksdb_are_merged), WEIR_CASE(n3_damage_is_not_merged_away),
           WEIR_CASE(n3_a_flipped_bit_of_a_merged_file_is_found), WEIR_CASE(killed_while_it_merges),
           WEIR_CASE(a_closing_ends_it))
