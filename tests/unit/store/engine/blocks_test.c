/* SPDX-License-Identifier: Apache-2.0 */
/* blocks_test.c - files read by their blocks, against RocksDB's own iterator over them, and files that mean harm. */
#include "fixture.h"

#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "blocks.h"
#include "rocks_twice.h"

#define RECORDS   6000u
#define VERTICES  900u /* with keys; twice as many are asked for */
#define HUB_SHARE 3u   /* one key in so many is the hub's, which fills blocks */
#define ROUNDS    3000u
#define STEPS_MAX 40u
#define HARMS     3000u
#define VALUE_MAX 400u
#define KEY_BYTES 64u

typedef struct record_key {
    uint8_t bytes[KEY_BYTES];
    size_t length;
} record_key;

/* A prefix, which few share, and 0 to 47 bytes behind it: keys differ in their first bytes or in their last. */
static record_key draw_key(weir_rng *rng, uint32_t vertices) {
    record_key key;
    uint32_t vertex = weir_rng_below(rng, HUB_SHARE) ? (uint32_t)weir_rng_below(rng, vertices) : 77;
    char text[WEIR_ENGINE_PREFIX_BYTES + 1];
    snprintf(text, sizeof text, "K%016llx", (unsigned long long)weir_hash_mix(vertex));
    memcpy(key.bytes, text, WEIR_ENGINE_PREFIX_BYTES);
    key.length = WEIR_ENGINE_PREFIX_BYTES + weir_rng_below(rng, KEY_BYTES - WEIR_ENGINE_PREFIX_BYTES + 1);
    for (size_t i = WEIR_ENGINE_PREFIX_BYTES; i < key.length; i++)
        key.bytes[i] = (uint8_t)weir_rng_below(rng, 3) * 127;
    return key;
}

static int compare(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_keys(const void *a, const void *b) {
    const record_key *x = a, *y = b;
    return compare(x->bytes, x->length, y->bytes, y->length);
}

/* A file of its own, and the only one. Some values are longer than a block. */
static weir_engine *write_engine(weir_rng *rng, bool large) {
    static record_key keys[RECORDS];
    static uint8_t value[20000];
    weir_engine_writer *writer;
    weir_engine *engine = engine_open(true);
    for (size_t i = 0; i < RECORDS; i++)
        keys[i] = draw_key(rng, VERTICES);
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)weir_rng_below(rng, 256);
    qsort(keys, RECORDS, sizeof keys[0], compare_keys);
    assert_ok(large ? weir_engine_writer_open_large(engine, &writer) : weir_engine_writer_open(engine, &writer));
    for (size_t i = 0; i < RECORDS; i++) {
        if (i && compare_keys(&keys[i - 1], &keys[i]) == 0) continue;
        size_t length = weir_rng_below(rng, 100) ? weir_rng_below(rng, VALUE_MAX) : weir_rng_below(rng, sizeof value);
        const uint8_t *from = value + weir_rng_below(rng, sizeof value - length + 1);
        assert_ok(weir_engine_writer_add(writer, keys[i].bytes, keys[i].length, from, length));
    }
    assert_ok(weir_engine_writer_ingest(writer));
    return engine;
}

/* B2: both stand at the same record, or at none. */
static void assert_same(const weir_blocks_cursor *blocks, const weir_engine_cursor *engine) {
    size_t key_length, value_length;
    assert_ok(weir_engine_cursor_err(engine));
    assert_int_equal(blocks->valid, weir_engine_cursor_valid(engine));
    if (!blocks->valid) return;
    const uint8_t *key = weir_engine_cursor_key(engine, &key_length);
    const uint8_t *value = weir_engine_cursor_value(engine, &value_length);
    assert_int_equal(blocks->key_length, key_length);
    assert_memory_equal(blocks->key, key, key_length);
    assert_int_equal(blocks->value_length, value_length);
    assert_memory_equal(blocks->value, value, value_length);
}

/* One cursor for all of it, as a pass over a vertex has: it seeks, goes on, and seeks from where it is. */
static void ask_for_many(weir_rng *rng, weir_engine *engine, const weir_blocks *blocks) {
    weir_blocks_cursor cursor = {0};
    size_t found = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        weir_engine_cursor *oracle;
        record_key key = draw_key(rng, 2 * VERTICES), prefix = key;
        weir_blocks_cursor_enter(&cursor, blocks, prefix.bytes);
        assert_false(cursor.valid);
        assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_POINT, &oracle));
        for (uint32_t seeks = 0; seeks < 3; seeks++) {
            assert_ok(weir_blocks_cursor_seek(&cursor, key.bytes, key.length));
            weir_engine_cursor_seek(oracle, key.bytes, key.length);
            assert_same(&cursor, oracle);
            for (uint64_t steps = weir_rng_below(rng, STEPS_MAX); cursor.valid && steps > 0; steps--, found++) {
                bool back = weir_rng_below(rng, 4) == 0;
                assert_ok(back ? weir_blocks_cursor_previous(&cursor) : weir_blocks_cursor_next(&cursor));
                back ? weir_engine_cursor_previous(oracle) : weir_engine_cursor_next(oracle);
                assert_same(&cursor, oracle);
            }
            assert_ok(weir_blocks_cursor_seek_last(&cursor, key.bytes, key.length));
            weir_engine_cursor_seek_last(oracle, key.bytes, key.length);
            assert_same(&cursor, oracle);
            for (uint64_t steps = weir_rng_below(rng, STEPS_MAX); cursor.valid && steps > 0; steps--, found++) {
                assert_ok(weir_blocks_cursor_previous(&cursor));
                weir_engine_cursor_previous(oracle);
                assert_same(&cursor, oracle);
            }
            for (size_t i = WEIR_ENGINE_PREFIX_BYTES; i < key.length; i++)
                key.bytes[i] = (uint8_t)weir_rng_below(rng, 3) * 127;
        }
        weir_engine_cursor_close(oracle);
    }
    weir_blocks_cursor_end(&cursor);
    assert_true(found > ROUNDS); /* mostly there is something */
}

static void b2_the_same_as_rocksdbs_own(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (int large = 0; large < 2; large++) {
        weir_engine *engine = write_engine(&rng, large);
        weir_blocks *blocks;
        files f;
        files_find(&f, "engine", ".sst");
        assert_int_equal(f.count, 1);
        assert_ok(weir_blocks_open(f.paths[0], large, &blocks));
        assert_in_range(weir_blocks_bytes(blocks), RECORDS / 40, 64 * RECORDS);
        ask_for_many(&rng, engine, blocks);
        weir_blocks_close(blocks);
        weir_engine_close(engine);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
    }
}

/* Of keys that are there twice the newest is read, forwards and backwards, wherever in a block they lie. */
static void b2_what_is_there_twice_is_read_once(void **state) {
    (void)state;
    enum { KEYS = 120 }; /* all in one block: of a key on both sides of a border RocksDB says so, and reads the file */
    char key[32], end[32];
    weir_blocks_cursor cursor = {0};
    weir_blocks *blocks;
    files f;
    assert_int_equal(rocks_twice(weir_test_path("twice"), KEYS), 2 * KEYS - 1);
    files_find(&f, "twice", ".sst");
    assert_int_equal(f.count, 1);
    assert_ok(weir_blocks_open(f.paths[0], false, &blocks));
    unsigned length = rocks_twice_key(0, key), end_length = rocks_twice_key(KEYS, end);
    weir_blocks_cursor_enter(&cursor, blocks, (const uint8_t *)key);
    assert_ok(weir_blocks_cursor_seek(&cursor, key, WEIR_ENGINE_PREFIX_BYTES));
    for (int back = 0; back < 2; back++) {
        for (unsigned n = 0; n < KEYS; n++) {
            unsigned number = back ? KEYS - 1 - n : n;
            char wanted[32];
            assert_true(cursor.valid);
            assert_int_equal(cursor.key_length, rocks_twice_key(number, wanted));
            assert_memory_equal(cursor.key, wanted, cursor.key_length);
            assert_int_equal(cursor.value_length, number ? 3 : 4);
            assert_memory_equal(cursor.value, number ? "new" : "only", cursor.value_length);
            assert_ok(back ? weir_blocks_cursor_previous(&cursor) : weir_blocks_cursor_next(&cursor));
        }
        assert_false(cursor.valid);
        assert_ok(weir_blocks_cursor_seek_last(&cursor, end, end_length));
    }
    for (unsigned number = 0; number < KEYS; number++) {
        length = rocks_twice_key(number, key);
        assert_ok(weir_blocks_cursor_seek(&cursor, key, length));
        assert_true(cursor.valid && cursor.value_length == (number ? 3 : 4));
        assert_ok(weir_blocks_cursor_seek_last(&cursor, key, length));
        assert_true(cursor.valid && cursor.value_length == (number ? 3 : 4) && cursor.value[0] == (number ? 'n' : 'o'));
    }
    weir_blocks_cursor_end(&cursor);
    weir_blocks_close(blocks);
}

/* --- files that mean harm ----------------------------------------------------------------------------------------- */

static uint8_t *load(const char *path, size_t *lengthp) {
    char *bytes;
    assert_ok(weir_file_load(path, 64u << 20, &bytes, lengthp));
    return (uint8_t *)bytes;
}

/* Where blocks end, by the checksum that each has. */
static size_t find_blocks(const uint8_t *file, size_t length, size_t *ends, size_t ends_max) {
    size_t count = 0, begin = 0;
    for (size_t end = 1; end + WEIR_BLOCKS_TRAILER_BYTES <= length && count < ends_max; end++) {
        if (file[end] || !weir_blocks_is_as_written(file + begin, end - begin)) continue;
        ends[count++] = end;
        begin = end + WEIR_BLOCKS_TRAILER_BYTES;
        end = begin;
    }
    return count;
}

static void sign(uint8_t *block, size_t bytes) {
    uint32_t sum = (uint32_t)weir_xxh3(block, bytes, 0) ^ block[bytes] * 0x6b9083d9u;
    weir_put_u32(block + bytes + 1, sum);
    assert_true(weir_blocks_is_as_written(block, bytes));
}

/* Reads as far as it goes: it is over, or an error, but in no case reads outside (the address sanitizer looks), or for
 * ever. */
static void read_what_there_is(weir_rng *rng, const char *path, bool in_parts, unsigned *errors) {
    weir_blocks *blocks;
    weir_err err = weir_blocks_open(path, in_parts, &blocks);
    for (unsigned round = 0; !err && round < 8; round++) {
        weir_blocks_cursor cursor = {0};
        record_key key = draw_key(rng, VERTICES);
        weir_blocks_cursor_enter(&cursor, blocks, key.bytes);
        err = weir_blocks_cursor_seek(&cursor, key.bytes, WEIR_ENGINE_PREFIX_BYTES);
        for (unsigned steps = 0; !err && cursor.valid; steps++) {
            assert_true(steps < 100 * RECORDS);
            assert_memory_equal(cursor.key, key.bytes, WEIR_ENGINE_PREFIX_BYTES);
            assert_true(cursor.key_length <= WEIR_BLOCKS_KEY_MAX);
            err = weir_blocks_cursor_next(&cursor);
        }
        assert_true(!err || !cursor.valid);
        if (!err) err = weir_blocks_cursor_seek_last(&cursor, key.bytes, KEY_BYTES);
        for (unsigned steps = 0; !err && cursor.valid; steps++) {
            if (steps == STEPS_MAX) break; /* in files that are not in order there may be no end */
            err = weir_blocks_cursor_previous(&cursor);
        }
        weir_blocks_cursor_end(&cursor);
    }
    if (err) assert_true(weir_err_is(err, WEIR_ECORRUPT) || weir_err_is(err, WEIR_EVERSION));
    *errors += err != WEIR_OK;
    weir_blocks_close(blocks);
}

/* B1: a byte of a block is another one, and the checksum is right all the same. */
static void b1_what_is_well_signed_is_not_believed(void **state) {
    (void)state;
    enum { ENDS_MAX = 1000 };
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    const char *path = weir_test_path("harmful.sst");
    for (int large = 0; large < 2; large++) {
        size_t length, ends[ENDS_MAX];
        unsigned errors = 0;
        files f;
        weir_engine_close(write_engine(&rng, large));
        files_find(&f, "engine", ".sst");
        uint8_t *whole = load(f.paths[0], &length), *harmed = malloc(length);
        assert_non_null(harmed);
        size_t count = find_blocks(whole, length, ends, ENDS_MAX);
        assert_true(count > 20);
        for (uint32_t harm = 0; harm < weir_test_rounds(HARMS) / weir_test_part(10, 40); harm++) {
            /* Of data blocks those that a reader comes to, of the others, which are the last, any. */
            size_t at = weir_rng_below(&rng, 2) ? weir_rng_below(&rng, count) : count - 1 - weir_rng_below(&rng, 8);
            size_t begin = at ? ends[at - 1] + WEIR_BLOCKS_TRAILER_BYTES : 0, bytes = ends[at] - begin;
            memcpy(harmed, whole, length);
            for (uint64_t n = 1 + weir_rng_below(&rng, 4); n > 0; n--) {
                size_t byte = weir_rng_below(&rng, 3) ? weir_rng_below(&rng, bytes)
                                                      : bytes - 1 - weir_rng_below(&rng, bytes < 12 ? bytes : 12);
                harmed[begin + byte] = (uint8_t)weir_rng_below(&rng, 256);
            }
            sign(harmed + begin, bytes);
            assert_ok(weir_file_replace(path, harmed, length));
            read_what_there_is(&rng, path, large, &errors);
        }
        assert_true(errors > 0);
        free(whole);
        free(harmed);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
    }
}

/* A file of one block of data that was put together by hand. */
typedef struct made {
    uint8_t bytes[4096];
    size_t length;
} made;

static void make_bytes(made *m, const void *bytes, size_t length) {
    assert_true(m->length + length <= sizeof m->bytes);
    memcpy(m->bytes + m->length, bytes, length);
    m->length += length;
}

static void make_number(made *m, uint64_t number) {
    uint8_t byte;
    for (; number >= 128; number >>= 7) {
        byte = (uint8_t)(number | 128);
        make_bytes(m, &byte, 1);
    }
    byte = (uint8_t)number;
    make_bytes(m, &byte, 1);
}

static void make_trailer(made *m, size_t begin, uint8_t compressed) {
    static const uint8_t sum[4];
    make_bytes(m, &compressed, 1);
    make_bytes(m, sum, sizeof sum);
    sign(m->bytes + begin, m->length - begin - WEIR_BLOCKS_TRAILER_BYTES);
}

static void make_restarts(made *m, uint32_t offset, uint32_t count) {
    uint8_t numbers[8];
    weir_put_u32(numbers, offset);
    weir_put_u32(numbers + 4, count);
    make_bytes(m, numbers, sizeof numbers);
}

/* What one of its lengths says, and what is right. */
typedef struct lengths {
    uint64_t shared, unshared, value; /* of the last entry of the data */
    uint64_t index_unshared, place;   /* of the index: of its key, and of the block */
    uint32_t offset, restarts;
    uint8_t kind, compressed;
} lengths;

#define DATA_KEY "Kvertex00000000401"
#define DATA_END "Kvertex00000000409"
static const lengths right = {17, 1 + 8, 3, 17, 67, 0, 1, 1, 0};

/* Two entries: the key, and the key with a 2 for its 1. */
static void make_file(const lengths *l, const char *path) {
    static const uint8_t suffix[8] = {1}, zeros[41];
    made m = {.length = 0};
    uint8_t second[8] = {l->kind}, mark[8], version[4];
    make_number(&m, 0);
    make_number(&m, 18 + 8);
    make_number(&m, 3);
    make_bytes(&m, DATA_KEY, 18);
    make_bytes(&m, suffix, 8);
    make_bytes(&m, "one", 3);
    make_number(&m, l->shared);
    make_number(&m, l->unshared);
    make_number(&m, l->value);
    make_bytes(&m, "2", 1);
    make_bytes(&m, second, 8);
    make_bytes(&m, "two", 3);
    make_restarts(&m, l->offset, l->restarts);
    size_t data = m.length;
    assert_true(data < 128); /* so that places are short, and `right` is */
    make_trailer(&m, 0, l->compressed);
    size_t index = m.length;
    make_number(&m, 0);
    make_number(&m, l->index_unshared);
    make_bytes(&m, "Kvertex0000000041", 17);
    make_number(&m, 0);
    make_number(&m, l->place == right.place ? data : l->place);
    make_restarts(&m, 0, 1);
    size_t index_bytes = m.length - index;
    make_trailer(&m, index, 0);
    size_t footer = m.length;
    make_bytes(&m, "\4", 1);
    make_number(&m, 0);
    make_number(&m, 0);
    make_number(&m, index);
    make_number(&m, index_bytes);
    make_bytes(&m, zeros, footer + 41 - m.length);
    weir_put_u32(version, 5);
    make_bytes(&m, version, 4);
    weir_put_u64(mark, 0x88e241b785f4cff7u);
    make_bytes(&m, mark, 8);
    assert_ok(weir_file_replace(path, m.bytes, m.length));
}

/* *openedp: the index was all right. What was an error is one when it is asked again (the block is not taken for
 * another). */
static weir_err read_made(const char *path, bool *openedp, unsigned *readp) {
    weir_blocks_cursor cursor = {0};
    weir_blocks *blocks;
    weir_err err = weir_blocks_open(path, false, &blocks);
    *openedp = !err;
    *readp = 0;
    if (err) return err;
    weir_blocks_cursor_enter(&cursor, blocks, (const uint8_t *)DATA_KEY);
    err = weir_blocks_cursor_seek(&cursor, DATA_KEY, WEIR_ENGINE_PREFIX_BYTES);
    for (; !err && cursor.valid; ++*readp)
        err = weir_blocks_cursor_next(&cursor);
    weir_err last = weir_blocks_cursor_seek_last(&cursor, DATA_END, 18);
    assert_int_equal(weir_err_code(last), weir_err_code(err));
    weir_err again = weir_blocks_cursor_seek(&cursor, DATA_END, 18);
    assert_int_equal(weir_err_code(again), weir_err_code(err));
    assert_false(cursor.valid);
    weir_blocks_cursor_end(&cursor);
    weir_blocks_close(blocks);
    return err;
}

/* B1: each length, one more than there is. */
static void b1_no_length_is_believed(void **state) {
    (void)state;
    const char *path = weir_test_path("made.sst");
    bool opened;
    unsigned read;
    make_file(&right, path);
    assert_ok(read_made(path, &opened, &read));
    assert_int_equal(read, 2);
    lengths wrong[14];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        wrong[i] = right;
    wrong[0].shared = 18 + 8 + 1;
    wrong[1].unshared++, wrong[1].value = 3; /* one byte of the trailer's side */
    wrong[2].value++;
    wrong[3].unshared = 12 + 1, wrong[3].value = 0;
    wrong[4].value = UINT64_MAX;
    wrong[5].unshared = UINT64_MAX;
    wrong[6].shared = UINT64_MAX;
    wrong[7].shared = 0, wrong[7].unshared = 8; /* no key before the suffix */
    wrong[8].offset = 1u << 20;
    wrong[9].restarts = 0;
    wrong[10].restarts = 1u << 31 | 1;
    wrong[11].restarts = 100;
    wrong[12].kind = 0; /* a deletion, which nobody writes */
    wrong[13].compressed = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        make_file(&wrong[i], path);
        weir_err err = read_made(path, &opened, &read);
        if (!opened || !weir_err_is(err, WEIR_ECORRUPT)) fail_msg("length %zu: opened %d", i, opened);
        assert_true(read <= 1);
    }
    static const uint64_t index_lengths[] = {64 + 1, 28, UINT64_MAX}, places[] = {4096, UINT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        lengths of_index = right;
        if (i < 3) of_index.index_unshared = index_lengths[i];
        if (i >= 3) of_index.place = places[i - 3];
        make_file(&of_index, path);
        weir_err err = read_made(path, &opened, &read);
        assert_true(!opened && weir_err_is(err, WEIR_ECORRUPT));
    }
}

/* A bit that is another one is an error where it is read, and where it is not, nothing changes (ENGINE-N3). */
static void b1_a_flipped_bit_is_an_error(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_engine *engine = write_engine(&rng, false);
    unsigned errors = 0;
    files f;
    files_find(&f, "engine", ".sst");
    for (unsigned flipped = 0; flipped < 60; flipped++) {
        long at = (long)weir_rng_below(&rng, (uint64_t)size_of(f.paths[0]));
        int bit = (int)weir_rng_below(&rng, 8);
        weir_blocks *blocks;
        flip(f.paths[0], at, bit);
        weir_err err = weir_blocks_open(f.paths[0], false, &blocks);
        for (uint32_t round = 0; !err && round < 200; round++) {
            weir_blocks_cursor cursor = {0};
            weir_engine_cursor *oracle;
            record_key key = draw_key(&rng, VERTICES);
            weir_blocks_cursor_enter(&cursor, blocks, key.bytes);
            err = weir_blocks_cursor_seek(&cursor, key.bytes, key.length);
            assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_POINT, &oracle)); /* of what it had read, or whole */
            weir_engine_cursor_seek(oracle, key.bytes, key.length);
            if (!err && !weir_engine_cursor_err(oracle)) assert_same(&cursor, oracle);
            weir_engine_cursor_close(oracle);
            weir_blocks_cursor_end(&cursor);
        }
        errors += err != WEIR_OK;
        weir_blocks_close(blocks);
        flip(f.paths[0], at, bit);
    }
    assert_true(errors > 0);
    weir_engine_close(engine);
}

/* What is not of this kind, RocksDB reads: the version of the format, and the kind of the checksum. */
static void another_kind_is_refused(void **state) {
    (void)state;
    static const long from_end[] = {53, 12};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_blocks *blocks;
    files f;
    weir_engine_close(write_engine(&rng, false));
    files_find(&f, "engine", ".sst");
    for (size_t i = 0; i < sizeof from_end / sizeof from_end[0]; i++) {
        long at = size_of(f.paths[0]) - from_end[i];
        flip(f.paths[0], at, 1);
        assert_true(weir_err_is(weir_blocks_open(f.paths[0], false, &blocks), WEIR_EVERSION));
        assert_null(blocks);
        flip(f.paths[0], at, 1);
    }
    assert_ok(weir_blocks_open(f.paths[0], false, &blocks));
    weir_blocks_close(blocks);
    assert_ok(weir_file_replace(weir_test_path("short.sst"), "short", 5));
    assert_true(weir_err_is(weir_blocks_open(weir_test_path("short.sst"), false, &blocks), WEIR_ECORRUPT));
    assert_true(weir_err_is(weir_blocks_open(weir_test_path("none.sst"), false, &blocks), WEIR_ENOTFOUND));
}

WEIR_TESTS(WEIR_CASE(b2_the_same_as_rocksdbs_own), WEIR_CASE(b1_what_is_well_signed_is_not_believed),
           WEIR_CASE(b1_a_flipped_bit_is_an_error), WEIR_CASE(another_kind_is_refused),
           WEIR_CASE(b1_no_length_is_believed), WEIR_CASE(b2_what_is_there_twice_is_read_once))
