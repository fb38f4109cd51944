/* SPDX-License-Identifier: Apache-2.0 */
/* identity_test.c - a shard's folder knows whose it is; what describes a store is never made anew over one. */
#include "trouble.h"

#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#define MEMORY (64u << 20)

static void make(trouble_store *s, uint32_t edges) {
    assert_ok(trouble_open(s, MEMORY, 0));
    for (uint64_t b = 0; b < edges; b++)
        assert_ok(trouble_edge(s, 1 + b % 5, 100 + b, (int64_t)b));
    assert_ok(trouble_close(s));
}

static void rename_in_store(const char *from, const char *to) {
    char a[512], b[512];
    snprintf(a, sizeof a, "%s/%s", weir_test_path("store"), from);
    snprintf(b, sizeof b, "%s/%s", weir_test_path("store"), to);
    assert_int_equal(rename(a, b), 0);
}

static uint32_t count_edges(trouble_store *s) {
    uint32_t total = 0, count;
    for (uint64_t a = 1; a <= 5; a++, total += count)
        assert_ok(trouble_degree(s, a, WEIR_OUT, &count));
    return total;
}

/* Every answer was wrong, and the server ready. */
static void exchanged_shards_are_refused(void **state) {
    (void)state;
    trouble_store s = {0};
    make(&s, 50);
    rename_in_store("shard-000", "away");
    rename_in_store("shard-001", "shard-000");
    rename_in_store("away", "shard-001");
    assert_err(trouble_open(&s, MEMORY, 0), WEIR_EDATA, "says shard 1 of 2 of store");
    rename_in_store("shard-000", "away");
    rename_in_store("shard-001", "shard-000");
    rename_in_store("away", "shard-001");
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_int_equal(count_edges(&s), 50);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

static void another_stores_shard_and_a_missing_one_are_refused(void **state) {
    (void)state;
    trouble_store s = {0}, other = {0};
    make(&other, 7);
    assert_int_equal(rename(weir_test_path("store"), weir_test_path("other")), 0);
    make(&s, 50);
    rename_in_store("shard-001", "away");
    assert_err(trouble_open(&s, MEMORY, 0), WEIR_ECORRUPT, "shard 1 of the store is not there");
    char from[512];
    snprintf(from, sizeof from, "%s/shard-001", weir_test_path("other"));
    char to[512];
    snprintf(to, sizeof to, "%s/shard-001", weir_test_path("store"));
    assert_int_equal(rename(from, to), 0);
    assert_err(trouble_open(&s, MEMORY, 0), WEIR_EDATA, "folders were exchanged or copied");
    assert_int_equal(rename(to, from), 0);
    rename_in_store("away", "shard-001");
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_int_equal(count_edges(&s), 50);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
    trouble_free(&other);
}

/* A server that would fill a damaged shard says of a lost one what it is, and leaves nothing behind. */
static void a_missing_shard_is_not_a_damaged_one(void **state) {
    (void)state;
    const weir_graph_opts opts = {.shards = TROUBLE_SHARDS, .memory_bytes = MEMORY, .repairs = true};
    trouble_store s = {0};
    make(&s, 50);
    rename_in_store("shard-001", "away");
    for (int tries = 0; tries < 2; tries++)
        assert_err(weir_graph_open(weir_test_path("store"), s.schema, &opts, &s.graph), WEIR_ECORRUPT,
                   "shard 1 of the store is not there");
    assert_false(weir_path_exists(weir_test_path("store/shard-001")));
    assert_false(weir_path_exists(weir_test_path("store/shard-001.repair")));
    rename_in_store("away", "shard-001");
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_int_equal(count_edges(&s), 50);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

/* Of graph.yaml 503 of 1,000 vertices were gone, and the server ready; without schema.yaml any schema was the store's,
 * and under one with another order of types none of them was found. */
static void a_lost_description_is_not_made_anew(void **state) {
    (void)state;
    static const struct {
        const char *name, *said;
    } lost[] = {{"graph.yaml", "that is lost, not new"}, {"schema.yaml", "under which schema"}};
    trouble_store s = {0};
    make(&s, 50);
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        rename_in_store(lost[i].name, "away");
        for (int tries = 0; tries < 2; tries++)
            assert_err(trouble_open(&s, MEMORY, 0), WEIR_ECORRUPT, lost[i].said);
        rename_in_store("away", lost[i].name);
        assert_ok(trouble_open(&s, MEMORY, 0));
        assert_int_equal(count_edges(&s), 50);
        assert_ok(trouble_close(&s));
    }
    trouble_free(&s);
}

/* The user's own schema is whole: nothing of the configuration is to be mended. */
static void a_damaged_schema_is_the_stores_damage(void **state) {
    (void)state;
    trouble_store s = {0};
    char path[512], *text;
    size_t length;
    make(&s, 50);
    snprintf(path, sizeof path, "%s/schema.yaml", weir_test_path("store"));
    assert_ok(weir_file_load(path, 1u << 20, &text, &length));
    text[length / 2] = (char)(text[length / 2] ^ 1 << 7); /* no UTF-8 any more */
    assert_ok(weir_file_replace(path, text, length));
    assert_err(trouble_open(&s, MEMORY, 0), WEIR_ECORRUPT, path);
    text[length / 2] = (char)(text[length / 2] ^ 1 << 7);
    assert_ok(weir_file_replace(path, text, length));
    weir_free(text);
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_int_equal(count_edges(&s), 50);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

/* Every operation of the making fails: the next opening makes it whole. A sanitizer sees some, others in each run. */
static void cut_short(const char *how) {
    bool met = true;
    uint64_t points = 0, part = weir_test_part(2, 6), nth = (how[0] ? 1 : 2) + 2 * (weir_test_seed() % part);
    trouble_in_memory();
    for (; met; nth += 2 * part, points++) {
        trouble_store s = {0};
        char spec[64];
        snprintf(spec, sizeof spec, "any:%llu:EIO%s:/store", (unsigned long long)nth, how);
        assert_ok(weir_fault_arm(spec));
        weir_err err = trouble_open(&s, MEMORY, 0);
        met = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        if (err) assert_ok(trouble_open(&s, MEMORY, 0));
        for (uint64_t b = 0; b < 5; b++)
            assert_ok(trouble_edge(&s, 1 + b, 100 + b, (int64_t)b));
        assert_ok(trouble_close(&s));
        assert_ok(trouble_open(&s, MEMORY, 0));
        assert_int_equal(count_edges(&s), 5);
        assert_ok(trouble_close(&s));
        trouble_free(&s);
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
    printf("%llu points\n", (unsigned long long)points);
    assert_true(points > 30 / part);
}

static void a_creation_that_fails_once_is_begun_again(void **state) {
    (void)state;
    cut_short(":once");
}

static void a_creation_that_was_cut_short_is_begun_again(void **state) {
    (void)state;
    cut_short("");
}

static void a_checkpoint_carries_it(void **state) {
    (void)state;
    trouble_store s = {0};
    make(&s, 20);
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_ok(weir_graph_checkpoint(s.graph, weir_test_path("point")));
    assert_ok(trouble_close(&s));
    assert_ok(weir_folder_remove(weir_test_path("store")));
    assert_ok(weir_graph_restore(weir_test_path("point"), weir_test_path("store")));
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_int_equal(count_edges(&s), 20);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

WEIR_TESTS(WEIR_CASE(exchanged_shards_are_refused), WEIR_CASE(another_stores_shard_and_a_missing_one_are_refused),
           WEIR_CASE(a_missing_shard_is_not_a_damaged_one), WEIR_CASE(a_lost_description_is_not_made_anew),
           WEIR_CASE(a_damaged_schema_is_the_stores_damage), WEIR_CASE(a_creation_that_fails_once_is_begun_again),
           WEIR_CASE(a_creation_that_was_cut_short_is_begun_again), WEIR_CASE(a_checkpoint_carries_it))
