/* SPDX-License-Identifier: Apache-2.0 */
/* joining_test.c - bundles of many seals become few: against the plain list of all entries that went in. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "bundling.h"
#include "joining.h"

#define ROUNDS      200u
#define SEALS_MAX   24u
#define LISTS       6u
#define RECORDS_MAX 4096u
#define ENTRIES_MAX 40000u

static const int64_t now_us = 1700000000000000;
static const weir_list lists[LISTS] = {WEIR_LIST_EDGES(0, WEIR_OUT),
                                       WEIR_LIST_EDGES(2, WEIR_IN),
                                       WEIR_LIST_FEATURES,
                                       WEIR_LIST_LABEL(1),
                                       WEIR_LIST_PUTS,
                                       WEIR_LIST_EVENTS};

/* One that went in, or came out. */
typedef struct kept {
    uint8_t key[WEIR_BUNDLE_KEY_BYTES + 1];
    size_t key_length, length;
    uint64_t sequence;
    uint8_t *value;
} kept;

typedef struct heap {
    kept records[RECORDS_MAX];
    size_t count;
    uint64_t sequence; /* of those that come */
} heap;

/* What a vertex has: an entry of a list, as often as it was said. */
typedef struct told {
    weir_vertex vertex;
    weir_list list;
    weir_entry entry;
} told;

static told naive[ENTRIES_MAX], found[ENTRIES_MAX];
static const uint8_t rows[4][2] = {{0, 9}, {1, 9}, {2, 9}, {3, 9}}; /* what a row says hangs on its event */

static void keep(heap *p, const void *key, size_t key_length, const void *value, size_t length, uint64_t sequence) {
    assert_true(p->count < RECORDS_MAX && key_length <= sizeof p->records[0].key);
    kept *k = &p->records[p->count++];
    *k = (kept){.key_length = key_length, .length = length, .sequence = sequence, .value = malloc(length + 1)};
    assert_non_null(k->value);
    memcpy(k->key, key, key_length);
    memcpy(k->value, value, length);
}

static void forget(heap *p) {
    for (size_t i = 0; i < p->count; i++)
        free(p->records[i].value);
    p->count = 0;
}

static weir_err see_sealed(void *context, const uint8_t *key, size_t key_length, const uint8_t *value, size_t length) {
    heap *p = context;
    keep(p, key, key_length, value, length, p->sequence);
    return WEIR_OK;
}

static weir_err see_joined(void *context, const weir_engine_record *r) {
    heap *p = context;
    if (p->count) {
        const kept *last = &p->records[p->count - 1];
        size_t least = last->key_length < r->key_length ? last->key_length : r->key_length;
        int order = memcmp(last->key, r->key, least);
        assert_true(order < 0 || (order == 0 && last->key_length < r->key_length)); /* JOIN-J1 */
    }
    keep(p, r->key, r->key_length, r->value, r->value_length, r->sequence);
    return WEIR_OK;
}

static int by_key(const void *a, const void *b) {
    const kept *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->key_length < y->key_length ? x->key_length : y->key_length);
    return order ? order : (x->key_length > y->key_length) - (x->key_length < y->key_length);
}

/* As a merge gives them: in the order of keys, of each key the one that was written last. */
static void join(heap *in, heap *out) {
    void *joiner;
    qsort(in->records, in->count, sizeof in->records[0], by_key);
    assert_ok(weir_joining.open(see_joined, out, &joiner));
    for (size_t i = 0; i < in->count; i++) {
        const kept *k = &in->records[i];
        if (i + 1 < in->count && by_key(k, k + 1) == 0) continue;
        const weir_engine_record record = {k->key, k->value, k->key_length, k->length, k->sequence};
        assert_ok(weir_joining.add(joiner, &record));
    }
    assert_ok(weir_joining.end(joiner));
    weir_joining.close(joiner);
}

static int oldest_first(const void *a, const void *b) {
    return weir_entry_order(b, a);
}

static int by_vertex(const void *a, const void *b) {
    const told *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    int order = weir_entry_order(&x->entry, &y->entry);
    if (order) return order;
    return weir_entry_says_more(&x->entry, &y->entry) ? -1 : weir_entry_says_more(&y->entry, &x->entry);
}

/* Of records that are the same, the one that says more, as readers take them. */
static size_t once(told *of, size_t count) {
    size_t left = 0;
    qsort(of, count, sizeof *of, by_vertex);
    for (size_t i = 0; i < count; i++) {
        const told *last = left ? &of[left - 1] : NULL;
        bool again = last && last->vertex == of[i].vertex && last->list == of[i].list &&
                     weir_entry_order(&last->entry, &of[i].entry) == 0;
        if (!again) of[left++] = of[i];
    }
    return left;
}

static weir_entry random_entry(weir_rng *rng, weir_list list, int64_t around_us) {
    weir_entry e = {.time_us = around_us - (int64_t)weir_rng_below(rng, 1ull << weir_rng_below(rng, 42)),
                    .event = 1 + weir_rng_below(rng, 3)};
    if (WEIR_LIST_KIND(list) == WEIR_LIST_KIND_PUTS) e.event = 0;
    if (WEIR_LIST_KIND(list) == WEIR_LIST_KIND_EDGES) {
        e.neighbor = 1 + weir_rng_below(rng, 4);
        e.deletion = weir_rng_below(rng, 10) == 0;
    }
    bool has_row = WEIR_LIST_KIND(list) == WEIR_LIST_KIND_EDGES || WEIR_LIST_KIND(list) == WEIR_LIST_KIND_FEATURES;
    if (has_row && !e.deletion && weir_rng_below(rng, 2)) {
        e.row = rows[e.event];
        e.row_length = weir_rng_below(rng, 2) ? 1 : 2;
    }
    return e;
}

/* Writes a seal's bundles of one vertex; returns how many entries of it are in `naive` then. */
static size_t seal(weir_rng *rng, weir_vertex vertex, uint32_t most, heap *p, size_t told_count) {
    static weir_entry entries[LISTS][1 << 12];
    weir_bundling_list of[LISTS];
    weir_bundling bundling = {.visit = see_sealed, .context = p};
    const int64_t around_us = now_us + (int64_t)p->sequence * 1000000;
    static const weir_name name = {1, 2, 9, "hi"};
    for (unsigned l = 0; l < LISTS; l++) {
        of[l] = (weir_bundling_list){lists[l], 0, entries[l]};
        uint32_t count = (uint32_t)weir_rng_below(rng, most + 1);
        for (uint32_t i = 0; i < count; i++)
            entries[l][i] = random_entry(rng, lists[l], around_us);
        qsort(entries[l], count, sizeof entries[l][0], oldest_first);
        for (uint32_t i = 0; i < count; i++) {
            bool again = of[l].count && oldest_first(&entries[l][of[l].count - 1], &entries[l][i]) == 0;
            if (again) continue;
            assert_true(told_count < ENTRIES_MAX);
            naive[told_count++] = (told){vertex, lists[l], entries[l][i]};
            entries[l][of[l].count++] = entries[l][i];
        }
    }
    assert_ok(weir_bundling_vertex(&bundling, vertex, weir_rng_below(rng, 4) ? NULL : &name, of, LISTS));
    weir_buf_free(&bundling.bundle.value);
    return told_count;
}

/* Takes all apart. */
static size_t find(const heap *p) {
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++) {
        const kept *k = &p->records[i];
        weir_bundle_reader reader;
        weir_bundle_key key;
        uint32_t of_list = 0;
        assert_true(weir_bundle_key_read(k->key, k->key_length, &key) && weir_bundle_check(&key, k->value, k->length));
        assert_true(weir_bundle_open(&reader, &key, k->value, k->length));
        for (weir_entry e; weir_bundle_next(&reader, &e) == WEIR_BUNDLE_ENTRY; count++) {
            assert_true(count < ENTRIES_MAX);
            assert_true(++of_list <= WEIR_BUNDLE_ENTRIES_MAX || key.part == WEIR_BUNDLE_NAMED);
            found[count] = (told){key.vertex, reader.list, e};
        }
    }
    return count;
}

static void j1_what_comes_out_is_what_went_in(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    static heap in, out, again;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count = 0, seals = 1 + weir_rng_below(&rng, SEALS_MAX);
        uint32_t most = 1u << weir_rng_below(&rng, 6);
        for (in.sequence = 1; in.sequence <= seals; in.sequence++)
            for (weir_vertex vertex = 1; vertex <= 4; vertex++)
                if (count + LISTS * most < ENTRIES_MAX && weir_rng_below(&rng, 3))
                    count = seal(&rng, vertex, most, &in, count);
        count = once(naive, count);
        join(&in, &out);
        assert_true(out.count <= in.count);
        size_t found_count = once(found, find(&out));
        assert_int_equal(found_count, count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(by_vertex(&naive[i], &found[i]), 0);
        join(&out, &again); /* and what comes of it is joined again */
        assert_int_equal(once(found, find(&again)), count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(by_vertex(&naive[i], &found[i]), 0);
        forget(&in);
        forget(&out);
        forget(&again);
    }
}

/* A seal after the other, each with so many edges, so far apart. */
typedef struct edges {
    weir_vertex vertex;
    unsigned seals;
    uint32_t each, row_length;
    int64_t apart_us;
} edges;

static void seal_edges(heap *p, edges of) {
    static const uint8_t long_row[WEIR_BUNDLE_ROWS_MAX];
    weir_bundling bundling = {.visit = see_sealed, .context = p};
    weir_entry entries[WEIR_BUNDLE_ENTRIES_MAX];
    for (unsigned s = 0; s < of.seals; s++) {
        p->sequence = s + 1;
        for (uint32_t i = 0; i < of.each; i++)
            entries[i] = (weir_entry){.time_us = now_us + (s * of.each + i) * of.apart_us,
                                      .event = i + 1,
                                      .neighbor = 5,
                                      .row = of.row_length ? long_row : NULL,
                                      .row_length = of.row_length & INT32_MAX};
        const weir_bundling_list list = {lists[0], of.each, entries};
        assert_ok(weir_bundling_vertex(&bundling, of.vertex, NULL, &list, 1));
    }
    weir_buf_free(&bundling.bundle.value);
}

#define SECOND_US 1000000ll
#define DAY_US    (86400 * SECOND_US)

static void same_records(const heap *out, size_t at, const heap *in, size_t in_at, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const kept *a = &out->records[at + i], *b = &in->records[in_at + i];
        assert_true(by_key(a, b) == 0 && a->sequence == b->sequence && a->length == b->length);
        assert_memory_equal(a->value, b->value, a->length);
    }
}

static void few_bundles_are_left_and_what_gains_nothing_stays(void **state) {
    (void)state;
    static heap in, out;
    seal_edges(&in, (edges){1, 100, 1, 0, SECOND_US});                      /* two are left  */
    seal_edges(&in, (edges){2, 16, WEIR_BUNDLE_ENTRIES_MAX, 0, SECOND_US}); /* full          */
    seal_edges(&in, (edges){3, 1, 3, 0, SECOND_US});                        /* alone         */
    seal_edges(&in, (edges){4, 20, 1, WEIR_BUNDLE_ROWS_MAX, SECOND_US});    /* full of rows  */
    seal_edges(&in, (edges){5, 300, 1, 0, 30 * DAY_US});                    /* far apart     */
    seal_edges(&in, (edges){6, 3000, 1, 0, SECOND_US});                     /* too long to wait */
    join(&in, &out);
    assert_int_equal(out.count, 2 + 16 + 1 + 20 + 300 + 3000);
    assert_true(out.records[0].sequence == 100 && out.records[1].sequence == 100); /* the greatest of theirs */
    same_records(&out, 2, &in, 100, out.count - 2);
    forget(&in);
    forget(&out);
}

/* A reader of the past passes all that is newer in a span without a bound. */
static void none_is_wider_than_a_reader_of_the_past_may_pass(void **state) {
    (void)state;
    static heap in, out;
    seal_edges(&in, (edges){1, 1000, 1, 0, DAY_US});
    join(&in, &out);
    assert_true(out.count >= 1000 / 13 && out.count <= 1000 / 10); /* some 12 days each */
    for (size_t i = 0; i < out.count; i++) {
        weir_bundle_key key;
        assert_true(weir_bundle_key_read(out.records[i].key, out.records[i].key_length, &key));
        assert_true(key.span < WEIR_BUNDLE_SPANS - 1);
    }
    assert_int_equal(find(&out), 1000);
    forget(&in);
    forget(&out);
}

static void what_was_said_thrice_is_kept_once(void **state) {
    (void)state;
    static heap in, out;
    for (unsigned again = 0; again < 3; again++) {
        seal_edges(&in, (edges){1, 5 + again, 2, 0, SECOND_US});
        seal_edges(&in, (edges){2, 1, 20 + again, 0, SECOND_US});
    }
    join(&in, &out);
    assert_int_equal(out.count, 2);
    assert_int_equal(find(&out), 7 * 2 + 22);
    forget(&in);
    forget(&out);
}

/* Then the merge is RocksDB's, or a list goes on as it is. */
static void each_failing_allocation_is_told_or_does_no_harm(void **state) {
    (void)state;
    static heap in, out;
    seal_edges(&in, (edges){1, 100, 1, 0, SECOND_US});
    qsort(in.records, in.count, sizeof in.records[0], by_key);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        void *joiner = NULL;
        weir_alloc_fail_nth(nth);
        weir_err err = weir_joining.open(see_joined, &out, &joiner);
        for (size_t i = 0; !err && i < in.count; i++) {
            const kept *k = &in.records[i];
            err = weir_joining.add(joiner, &(weir_engine_record){k->key, k->value, k->key_length, k->length, 1});
        }
        if (!err) err = weir_joining.end(joiner);
        weir_joining.close(joiner);
        failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        assert_true(!err || (failed && weir_err_is(err, WEIR_ENOMEM)));
        if (!err) assert_int_equal(find(&out), 100);
        forget(&out);
    }
    forget(&in);
}

static void j2_damage_goes_on_as_it_is(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    static heap in, out;
    for (unsigned round = 0; round < ROUNDS; round++) {
        seal_edges(&in, (edges){1, 10, 2, 0, SECOND_US});
        seal_edges(&in, (edges){2, 10, 2, 0, SECOND_US});
        kept *damaged = &in.records[weir_rng_below(&rng, 10)];
        if (weir_rng_below(&rng, 2))
            damaged->value[weir_rng_below(&rng, damaged->length)] ^= (uint8_t)(1u << weir_rng_below(&rng, 8));
        else
            damaged->length = weir_rng_below(&rng, damaged->length);
        join(&in, &out);
        assert_int_equal(out.count, 10 + 1);
        for (size_t i = 0; i < 10; i++) {
            assert_int_equal(by_key(&out.records[i], &in.records[i]), 0);
            assert_int_equal(out.records[i].length, in.records[i].length);
            assert_memory_equal(out.records[i].value, in.records[i].value, in.records[i].length);
        }
        forget(&in);
        forget(&out);
    }
}

static void what_is_no_bundle_goes_through(void **state) {
    (void)state;
    static heap in, out;
    static const uint8_t offset[WEIR_BUNDLE_KEY_BYTES] = {'O', 1, 2, 3}, deleted[] = "Tdeleted at some time     ";
    uint8_t no_key[WEIR_BUNDLE_KEY_BYTES] = {WEIR_BUNDLE_KIND, 255};
    no_key[WEIR_BUNDLE_NEWEST_AT - 1] = WEIR_BUNDLE_SPANS; /* there is no such span */
    seal_edges(&in, (edges){1, 5, 1, 0, SECOND_US});
    keep(&in, offset, sizeof offset, "x", 1, 7);
    keep(&in, deleted, sizeof deleted - 1, "", 0, 8);
    keep(&in, no_key, sizeof no_key, "y", 1, 9);
    no_key[sizeof no_key - 1] = 1;
    keep(&in, no_key, sizeof no_key, "y", 1, 10);
    join(&in, &out);
    assert_int_equal(out.count, 5);
    assert_true(out.records[3].sequence == 9 && out.records[4].sequence == 10);
    assert_true(out.records[0].sequence == 7 && out.records[1].sequence == 8 && out.records[2].sequence == 5);
    forget(&in);
    forget(&out);
}

static weir_err refuse(void *context, const weir_engine_record *record) {
    (void)record;
    return --*(unsigned *)context ? WEIR_OK : WEIR_ERR(WEIR_EFULL, "no room");
}

static void who_takes_nothing_more_is_told_nothing_more(void **state) {
    (void)state;
    static heap in;
    seal_edges(&in, (edges){1, 3, 1, 0, SECOND_US});
    seal_edges(&in, (edges){2, 1, 1, 0, SECOND_US});
    for (unsigned left = 1; left <= 2; left++) {
        unsigned takes = left;
        void *joiner;
        weir_err err = WEIR_OK;
        assert_ok(weir_joining.open(refuse, &takes, &joiner));
        for (size_t i = 0; !err && i < in.count; i++) {
            const kept *k = &in.records[i];
            err = weir_joining.add(joiner, &(weir_engine_record){k->key, k->value, k->key_length, k->length, 1});
        }
        if (!err) err = weir_joining.end(joiner);
        assert_err(err, WEIR_EFULL, "no room");
        weir_joining.close(joiner);
    }
    weir_joining.close(NULL);
    forget(&in);
}

WEIR_TESTS(WEIR_CASE(j1_what_comes_out_is_what_went_in), WEIR_CASE(few_bundles_are_left_and_what_gains_nothing_stays),
           WEIR_CASE(none_is_wider_than_a_reader_of_the_past_may_pass), WEIR_CASE(what_was_said_thrice_is_kept_once),
           WEIR_CASE(each_failing_allocation_is_told_or_does_no_harm), WEIR_CASE(j2_damage_goes_on_as_it_is),
           WEIR_CASE(what_is_no_bundle_goes_through), WEIR_CASE(who_takes_nothing_more_is_told_nothing_more))
