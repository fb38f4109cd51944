/* SPDX-License-Identifier: Apache-2.0 */
/* The table against an array that has a place for each key, with hashes that are good, poor and all the same. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/table.h>

/* The table may have entries of more bytes: those behind it repeat the value. */
typedef struct item {
    uint32_t tag, value;
    uint64_t key;
} item;

enum { ITEM_BYTES_MAX = 48 };
static const size_t sizes[] = {sizeof(item), 24, ITEM_BYTES_MAX};

/* As ids are; as ids of tests are; one that stands on all fours with others; one that many keys share; one for all. */
enum { SPREAD, SMALL, HIGH, SHARED, SAME, HASHES };

static uint64_t hash_of(int kind, uint64_t key) {
    const uint64_t hashes[HASHES] = {(key + 1) * 0xd6e8feb86659fd93ull, key, key << 48, key % 7, 42};
    return hashes[kind];
}

static item *find(const weir_table *table, uint64_t hash, uint64_t key, size_t bytes) {
    item *found = weir_table_first(table, hash, bytes);
    while (found && found->key != key)
        found = weir_table_next(table, found, bytes);
    return found;
}

static const item *item_at(const weir_table *table, size_t place, size_t bytes) {
    return (const item *)(const void *)((const char *)table->entries + (place & (table->capacity - 1)) * bytes);
}

static void put_value(item *i, uint32_t value, size_t bytes) {
    i->value = value;
    memset((char *)i + sizeof *i, (int)(value & 0xff), bytes - sizeof *i);
}

static void add(weir_table *table, uint64_t hash, uint64_t key, uint32_t value, size_t bytes) {
    static const char zeros[ITEM_BYTES_MAX];
    item *added = weir_table_add(table, hash, bytes);
    assert_int_equal(added->tag, weir_table_tag(hash));
    assert_memory_equal((char *)added + sizeof added->tag, zeros, bytes - sizeof added->tag);
    added->key = key;
    put_value(added, value, bytes);
}

/* What the header promises of where entries stand. */
static void check_places(const weir_table *table, size_t bytes) {
    size_t entries = 0;
    assert_int_equal(table->capacity & (table->capacity - 1), 0);
    assert_true(table->count * 3 <= table->capacity * 2); /* BASE-T1 */
    for (size_t place = 0; place < table->capacity; place++) {
        uint32_t tag = item_at(table, place, bytes)->tag;
        if (!tag) continue;
        entries++;
        for (size_t at = tag & (table->capacity - 1); at != place; at = (at + 1) & (table->capacity - 1))
            assert_true(item_at(table, at, bytes)->tag); /* BASE-T2 */
    }
    assert_int_equal(entries, table->count);
}

/* --- against a model ---------------------------------------------------------------------------------------------- */

enum { KEYS = 300 };

/* values: of each key; 0: it is not there. */
static void check_model(const weir_table *table, const uint32_t values[KEYS], int hashes, size_t bytes) {
    size_t count = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        const item *found = find(table, hash_of(hashes, key), key, bytes);
        count += values[key] != 0;
        assert_int_equal(found ? found->value : 0, values[key]);
        for (size_t i = sizeof *found; found && i < bytes; i++)
            assert_int_equal(((const unsigned char *)found)[i], values[key] & 0xff);
        if (found) assert_null(find(table, hash_of(hashes, key), KEYS + key, bytes));
    }
    assert_int_equal(table->count, count);
}

/* More is added than removed for a while, then less, so that it is filled and emptied again. */
static void run_model(weir_rng *rng, int hashes, size_t bytes) {
    weir_table table = {0};
    uint32_t values[KEYS] = {0};
    for (uint32_t step = 1; step < 4000; step++) {
        uint64_t key = weir_rng_below(rng, KEYS), hash = hash_of(hashes, key);
        item *found = find(&table, hash, key, bytes);
        bool keep = weir_rng_below(rng, 10) < (step / 500 % 2 ? 2u : 8u);
        assert_int_equal(found != NULL, values[key] != 0);
        if (keep && found) {
            put_value(found, step, bytes);
        } else if (keep) {
            assert_true(weir_table_reserve(&table, table.count + 1, bytes));
            add(&table, hash, key, step, bytes);
        } else if (found) {
            weir_table_remove(&table, found, bytes);
        }
        values[key] = keep ? step : 0;
        if (step % 50) continue;
        check_places(&table, bytes);
        check_model(&table, values, hashes, bytes);
    }
    weir_table_free(&table);
    assert_true(!table.entries && !table.count && !table.capacity);
}

static void t2_as_an_array_says_whatever_the_hashes(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = 0; round < weir_test_rounds(2); round++)
        for (int hashes = 0; hashes < HASHES; hashes++)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                run_model(&rng, hashes, sizes[s]);
}

/* Who walks over the entries with one hash meets each of them once. */
static void entries_with_one_hash_are_all_met(void **state) {
    (void)state;
    enum { ALL = 1000 };
    weir_table table = {0};
    bool met[ALL] = {0};
    uint64_t count = 0;
    for (uint64_t key = 0; key < ALL; key++) {
        assert_true(weir_table_reserve(&table, table.count + 2, sizeof(item)));
        add(&table, 1, key, (uint32_t)key, sizeof(item));
    }
    add(&table, 2, ALL, 0, sizeof(item));
    for (const item *i = weir_table_first(&table, 1, sizeof *i); i; i = weir_table_next(&table, i, sizeof *i)) {
        assert_true(i->key < ALL && !met[i->key]);
        met[i->key] = true;
        count++;
    }
    assert_int_equal(count, ALL);
    for (uint64_t key = 0; key < ALL; key += 2)
        weir_table_remove(&table, find(&table, 1, key, sizeof(item)), sizeof(item));
    for (uint64_t key = 0; key < ALL; key++)
        assert_int_equal(find(&table, 1, key, sizeof(item)) != NULL, key % 2);
    assert_non_null(find(&table, 2, ALL, sizeof(item)));
    check_places(&table, sizeof(item));
    weir_table_free(&table);
}

/* --- room --------------------------------------------------------------------------------------------------------- */

static void an_empty_table_has_nothing(void **state) {
    (void)state;
    weir_table table = {0};
    weir_table_ahead(&table, 7, sizeof(item));
    assert_null(weir_table_first(&table, 7, sizeof(item)));
    assert_true(weir_table_reserve(&table, 0, sizeof(item)));
    assert_int_equal(table.capacity, 0);
    assert_true(weir_table_reserve(&table, 1, sizeof(item)));
    weir_table_ahead(&table, 7, sizeof(item));
    assert_null(weir_table_first(&table, 7, sizeof(item)));
    weir_table_free(&table);
    weir_table_free(&table);
}

/* Whether it grows by one at a time or at once; what there is room for moves nothing. */
static void t1_a_third_is_free(void **state) {
    (void)state;
    weir_table table = {0}, at_once = {0};
    for (uint64_t key = 0; key < 3000; key++) {
        assert_true(weir_table_reserve(&table, key + 1, sizeof(item)));
        add(&table, key, key, 1, sizeof(item));
        check_places(&table, sizeof(item));
        if (key % 100) continue;
        assert_true(weir_table_reserve(&at_once, key + 1, sizeof(item)));
        assert_int_equal(at_once.capacity, table.capacity);
        assert_int_equal(at_once.count, 0);
    }
    assert_true(weir_table_reserve(&at_once, 3000, sizeof(item)));
    const void *entries = at_once.entries;
    for (uint64_t key = 0; key < 3000; key++)
        add(&at_once, key, key, 1, sizeof(item));
    assert_true(weir_table_reserve(&at_once, 3000, sizeof(item)));
    assert_ptr_equal(at_once.entries, entries);
    weir_table_free(&table);
    weir_table_free(&at_once);
}

static void add_without_room(void *context) {
    weir_table table = {0};
    (void)context;
    if (!weir_table_reserve(&table, 1, sizeof(item))) return;
    for (uint64_t key = 0; key <= table.capacity; key++)
        (void)weir_table_add(&table, key, sizeof(item));
}

static void remove_what_is_not_there(void *context) {
    weir_table table = {0};
    (void)context;
    if (weir_table_reserve(&table, 1, sizeof(item))) weir_table_remove(&table, table.entries, sizeof(item));
}

static void t1_an_entry_that_has_no_room_stops_the_process(void **state) {
    (void)state;
    assert_dies(add_without_room, NULL, "table_room");
    assert_dies(remove_what_is_not_there, NULL, "hole");
}

/* Each search looks at few places when many entries have hashes of a simple make. */
static void simple_hashes_spread(void **state) {
    (void)state;
    enum { MANY = 1 << 14 };
    for (unsigned shift = 0; shift <= 48; shift += 4) {
        weir_table table = {0};
        uint64_t steps = 0;
        assert_true(weir_table_reserve(&table, MANY, sizeof(item)));
        for (uint64_t key = 0; key < MANY; key++)
            add(&table, key << shift, key, 1, sizeof(item));
        for (size_t place = 0; place < table.capacity; place++) {
            uint32_t tag = item_at(&table, place, sizeof(item))->tag;
            if (tag) steps += (place - tag) & (table.capacity - 1);
        }
        assert_true(steps < 3 * (uint64_t)MANY);
        weir_table_free(&table);
    }
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static weir_err fill_and_free(void *context) {
    weir_table table = {0};
    weir_err err = WEIR_OK;
    (void)context;
    for (uint64_t key = 0; !err && key < 200; key++) {
        bool room = weir_table_reserve(&table, key + 1, sizeof(item));
        if (room) add(&table, key, key, 1, sizeof(item));
        if (!room) err = WEIR_NOMEM("for a test");
        assert_int_equal(table.count, key + room); /* without memory it is as it was */
        for (uint64_t before = 0; before < table.count; before++)
            assert_non_null(find(&table, before, before, sizeof(item)));
        check_places(&table, sizeof(item));
    }
    weir_table_free(&table);
    return err;
}

static void growth_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(fill_and_free, NULL);
}

static void more_than_tags_tell_apart_is_refused(void **state) {
    (void)state;
    static const size_t counts[] = {((size_t)1 << 32) / 3 + 1, (size_t)1 << 31, (size_t)1 << 40, SIZE_MAX};
    weir_table table = {0};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        weir_alloc_fail_nth(1);
        assert_false(weir_table_reserve(&table, counts[i], sizeof(item)));
        assert_false(weir_alloc_failed()); /* it has not even asked */
    }
    weir_alloc_fail_nth(0);
    assert_false(weir_table_reserve(&table, 1000, SIZE_MAX / 16));
    assert_true(!table.entries && table.capacity == 0);
}

static void a_table_in_an_arena_takes_no_memory_of_its_own(void **state) {
    (void)state;
    weir_arena *arena;
    weir_alloc_stats before, after;
    weir_alloc_stats_get(&before);
    assert_ok(weir_arena_open(16384, &arena));
    weir_table table = {.arena = arena};
    for (uint64_t key = 0; weir_table_reserve(&table, key + 1, sizeof(item)); key++)
        add(&table, key, key, (uint32_t)key, sizeof(item));
    assert_true(table.count > 100 && weir_arena_used(arena) >= table.capacity * sizeof(item)); /* then it was full */
    for (uint64_t key = 0; key < table.count; key++)
        assert_int_equal(find(&table, key, key, sizeof(item))->value, key);
    weir_table_free(&table);
    weir_arena_close(arena);
    weir_alloc_stats_get(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

WEIR_TESTS(WEIR_CASE(t2_as_an_array_says_whatever_the_hashes), WEIR_CASE(entries_with_one_hash_are_all_met),
           WEIR_CASE(an_empty_table_has_nothing), WEIR_CASE(t1_a_third_is_free),
           WEIR_CASE(t1_an_entry_that_has_no_room_stops_the_process), WEIR_CASE(simple_hashes_spread),
           WEIR_CASE(growth_fails_cleanly_at_every_allocation), WEIR_CASE(more_than_tags_tell_apart_is_refused),
           WEIR_CASE(a_table_in_an_arena_takes_no_memory_of_its_own))
