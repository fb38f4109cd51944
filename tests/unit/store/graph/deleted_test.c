/* SPDX-License-Identifier: Apache-2.0 */
/* deleted_test.c - deletions of vertices, sealed and not, against a plain list of all of them. */
#include "weir_test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>
#include <weir/store/format/key.h>

#include "deleted_private.h"

#define ANSWER_BYTES 4096u /* of 128 vertices */

typedef struct one {
    weir_vertex vertex;
    int64_t time_us;
} one;

/* What a shard has around its deletions, and all that it was told. */
typedef struct world {
    weir_engine *engine;
    weir_deleted_filter *filter;
    weir_deleted *deleted;
    one *told;
    size_t count, capacity;
    size_t frozen, sealed; /* of `told`: up to there */
} world;

static weir_vertex vertex_of(uint64_t n) {
    return weir_vertex_make(n * 0x9e3779b97f4a7c15ull, (n + 1) * 0xd6e8feb86659fd93ull);
}

static void begin(world *w, size_t capacity, size_t filter_bytes) {
    const weir_engine_opts opts = {.create = true};
    *w = (world){.capacity = capacity, .told = calloc(capacity, sizeof *w->told)};
    assert_non_null(w->told);
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w->engine));
    assert_ok(weir_deleted_filter_open(filter_bytes, &w->filter));
    assert_ok(weir_deleted_open(w->engine, w->filter, ANSWER_BYTES, &w->deleted));
}

static void end(world *w) {
    weir_deleted_close(w->deleted);
    weir_deleted_filter_close(w->filter);
    weir_engine_close(w->engine);
    free(w->told);
}

static void tell(world *w, weir_vertex vertex, int64_t time_us) {
    assert_true(w->count < w->capacity);
    assert_ok(weir_deleted_add(w->deleted, vertex, time_us));
    w->told[w->count++] = (one){vertex, time_us == INT64_MIN ? INT64_MIN + 1 : time_us};
}

static int as_keys(const void *a, const void *b) {
    const one *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    return (x->time_us < y->time_us) - (x->time_us > y->time_us);
}

static void freeze(world *w) {
    weir_deleted_freeze(w->deleted);
    w->frozen = w->count;
}

static void seal(world *w) {
    size_t count = w->frozen - w->sealed;
    uint8_t key[WEIR_DELETED_KEY_BYTES];
    weir_engine_writer *writer;
    one *file = malloc((count + 1) * sizeof *file);
    assert_non_null(file);
    memcpy(file, w->told + w->sealed, count * sizeof *file);
    qsort(file, count, sizeof *file, as_keys);
    if (count) assert_ok(weir_engine_writer_open(w->engine, &writer));
    for (size_t i = 0; i < count; i++) {
        if (i && as_keys(&file[i - 1], &file[i]) == 0) continue;
        weir_deleted_key_write(file[i].vertex, file[i].time_us, key);
        assert_ok(weir_engine_writer_add(writer, key, sizeof key, NULL, 0));
    }
    if (count) assert_ok(weir_engine_writer_ingest(writer));
    weir_deleted_sealed(w->deleted);
    w->sealed = w->frozen;
    free(file);
}

/* What is not sealed is told again, as the log does. */
static void start_again(world *w) {
    const weir_engine_opts opts = {.create = false};
    weir_deleted_close(w->deleted);
    weir_deleted_filter_close(w->filter);
    weir_engine_close(w->engine);
    assert_ok(weir_engine_open(weir_test_path("engine"), &opts, &w->engine));
    assert_ok(weir_deleted_filter_open(4096, &w->filter));
    assert_ok(weir_deleted_open(w->engine, w->filter, ANSWER_BYTES, &w->deleted));
    for (size_t i = w->sealed; i < w->count; i++)
        assert_ok(weir_deleted_add(w->deleted, w->told[i].vertex, w->told[i].time_us));
    w->frozen = w->sealed;
}

static int64_t naive_time(const world *w, weir_vertex vertex, int64_t before_us) {
    int64_t newest_us = WEIR_DELETED_NEVER;
    for (size_t i = 0; i < w->count; i++) {
        bool counts = w->told[i].vertex == vertex && w->told[i].time_us < before_us;
        if (counts && w->told[i].time_us > newest_us) newest_us = w->told[i].time_us;
    }
    return newest_us;
}

static weir_err time_of(const world *w, weir_vertex vertex, int64_t before_us, weir_graph_budget *budget,
                        int64_t *time_usp) {
    weir_deleted_look look = {.deleted = w->deleted, .budget = budget};
    weir_err err = weir_deleted_time(&look, vertex, before_us, time_usp);
    weir_deleted_look_end(&look);
    return err;
}

/* By a look of its own, and by one that was begun any while ago. */
static void ask(const world *w, weir_deleted_look *look, weir_vertex vertex, int64_t before_us) {
    int64_t time_us, wanted_us = naive_time(w, vertex, before_us);
    assert_ok(time_of(w, vertex, before_us, NULL, &time_us));
    assert_int_equal(time_us, wanted_us);
    if (!look) return;
    assert_ok(weir_deleted_time(look, vertex, before_us, &time_us));
    assert_int_equal(time_us, wanted_us);
}

/* Each that was told is met, rising, and nothing else. */
static void walk_all(const world *w) {
    weir_deleted_walk *walk;
    one last = {0}, met;
    bool found;
    size_t distinct = 0, expected = 0;
    one *sorted = malloc((w->count + 1) * sizeof *sorted);
    assert_non_null(sorted);
    memcpy(sorted, w->told, w->count * sizeof *sorted);
    qsort(sorted, w->count, sizeof *sorted, as_keys);
    assert_ok(weir_deleted_walk_open(w->deleted, &walk));
    for (bool first = true;; first = false) {
        assert_ok(weir_deleted_walk_next(walk, &found, &met.vertex, &met.time_us));
        if (!found) break;
        if (!first) assert_true(as_keys(&last, &met) <= 0);
        if (first || as_keys(&last, &met) != 0) distinct++;
        assert_non_null(bsearch(&met, sorted, w->count, sizeof met, as_keys));
        last = met;
    }
    for (size_t i = 0; i < w->count; i++)
        expected += i == 0 || as_keys(&sorted[i - 1], &sorted[i]) != 0;
    assert_int_equal(distinct, expected);
    weir_deleted_walk_close(walk);
    free(sorted);
}

static void every_answer_is_that_of_a_plain_list(void **state) {
    enum { STEPS = 3000, VERTICES = 60, TIMES = 40 };
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (uint64_t round = 0; round < weir_test_rounds(3); round++) {
        world w;
        begin(&w, STEPS, 4096);
        weir_deleted_look look = {.deleted = w.deleted};
        for (int step = 0; step < STEPS; step++) {
            weir_vertex vertex = vertex_of(weir_rng_below(&rng, 2 * VERTICES));
            int64_t time_us = (int64_t)weir_rng_below(&rng, TIMES);
            uint64_t what = weir_rng_below(&rng, 100);
            if (what < 20) tell(&w, vertex_of(weir_rng_below(&rng, VERTICES)), time_us ? time_us : INT64_MIN + 1);
            if (what == 20 && w.frozen == w.sealed) freeze(&w);
            if (what == 21 && w.frozen > w.sealed) seal(&w);
            if (what == 22 && weir_rng_below(&rng, 4) == 0) {
                weir_deleted_look_end(&look);
                start_again(&w);
                look.deleted = w.deleted;
            }
            if (what == 23 && weir_rng_below(&rng, 4) == 0) walk_all(&w);
            if (what >= 24) ask(&w, &look, vertex, what < 60 ? INT64_MAX : time_us);
        }
        walk_all(&w);
        weir_deleted_look_end(&look);
        end(&w);
        assert_ok(weir_folder_remove(weir_test_path("engine")));
    }
}

/* Nothing is as old as the least time but what is of that time, and a reader of that time sees nothing. */
static void the_ends_of_time_are_times(void **state) {
    (void)state;
    world w;
    begin(&w, 8, 4096);
    for (int pass = 0; pass < 2; pass++) {
        tell(&w, vertex_of(1), INT64_MIN);
        tell(&w, vertex_of(2), INT64_MAX - 1);
        for (uint64_t n = 0; n < 3; n++) {
            ask(&w, NULL, vertex_of(n), INT64_MAX);
            ask(&w, NULL, vertex_of(n), INT64_MIN);
            ask(&w, NULL, vertex_of(n), INT64_MIN + 1);
            ask(&w, NULL, vertex_of(n), INT64_MIN + 2);
        }
        freeze(&w);
        seal(&w);
    }
    end(&w);
}

/* The table that there was took 64 bytes a deletion, for ever. */
static void what_is_sealed_takes_no_memory(void **state) {
    enum { SEALS = 10, A_SEAL = 5000 };
    (void)state;
    weir_alloc_stats before, after;
    world w;
    begin(&w, (size_t)SEALS * A_SEAL, 1u << 16);
    weir_alloc_stats_get(&before);
    for (uint64_t i = 0; i < SEALS; i++) {
        for (uint64_t n = 0; n < A_SEAL; n++)
            tell(&w, vertex_of(i * A_SEAL + n), (int64_t)n);
        freeze(&w);
        seal(&w);
    }
    weir_alloc_stats_get(&after);
    assert_true(after.live_bytes <= before.live_bytes + 4096);
    for (uint64_t n = 0; n < 100; n++) {
        int64_t time_us;
        assert_ok(time_of(&w, vertex_of(n * 499), INT64_MAX, NULL, &time_us));
        assert_int_equal(time_us, (n * 499) % A_SEAL);
    }
    assert_int_equal(weir_deleted_count(w.deleted), SEALS * A_SEAL);
    end(&w);
}

/* A lookup takes the steps of a seek, so that a request cannot look up for ever; an answer that is known takes none. */
static void what_is_looked_up_is_paid_for(void **state) {
    (void)state;
    world w;
    int64_t time_us;
    weir_graph_budget none = {.steps = 0}, one_seek = {.steps = WEIR_GRAPH_SEEK_STEPS};
    begin(&w, 1, 4096);
    assert_ok(time_of(&w, vertex_of(1), INT64_MAX, &none, &time_us));
    tell(&w, vertex_of(1), 7);
    freeze(&w);
    seal(&w);
    assert_err(time_of(&w, vertex_of(1), INT64_MAX, &none, &time_us), WEIR_EBUSY, NULL);
    assert_ok(time_of(&w, vertex_of(1), INT64_MAX, &one_seek, &time_us));
    assert_int_equal(one_seek.steps, 0);
    assert_ok(time_of(&w, vertex_of(1), INT64_MAX, &one_seek, &time_us));
    assert_int_equal(time_us, 7);
    end(&w);
}

/* With b bits a deletion and six set of a block's 512: about as a plain filter, and a little more, because blocks fill
 * unevenly. */
static double wrongly_suspected(size_t bits_each, uint64_t members) {
    enum { ASKED = 100000 };
    weir_deleted_filter *filter;
    uint64_t suspected = 0;
    assert_ok(weir_deleted_filter_open(members * bits_each / 8, &filter));
    for (uint64_t n = 0; n < members; n++)
        weir_deleted_filter_add(filter, vertex_of(n));
    for (uint64_t n = 0; n < members; n++)
        assert_true(weir_deleted_filter_may_have(filter, vertex_of(n)));
    for (uint64_t n = 0; n < ASKED; n++)
        suspected += weir_deleted_filter_may_have(filter, vertex_of(members + n));
    weir_deleted_filter_close(filter);
    return (double)suspected / ASKED;
}

static void one_stranger_in_a_hundred_is_suspected(void **state) {
    (void)state;
    double at_ten = wrongly_suspected(10, 200000), at_five = wrongly_suspected(5, 200000);
    assert_true(at_ten > 0.005 && at_ten < 0.02);
    assert_true(at_five > 0.05 && at_five < 0.2);
}

/* A producer that deletes one vertex again and again, as time goes on: each costs about as much as the one before. The
 * table that there was looked at all of them for each. */
static void one_vertex_may_be_deleted_for_ever(void **state) {
    enum { TIMES = 300000 };
    (void)state;
    world w;
    begin(&w, TIMES, 4096);
    weir_deleted_look look = {.deleted = w.deleted};
    for (int64_t i = 0; i < TIMES; i++)
        tell(&w, vertex_of(1), i * 2);
    for (int64_t i = 1; i < TIMES; i += 97) {
        int64_t time_us;
        assert_ok(weir_deleted_time(&look, vertex_of(1), i * 2, &time_us));
        assert_int_equal(time_us, i * 2 - 2);
    }
    weir_deleted_look_end(&look);
    end(&w);
}

enum { ASKED = 6 };

typedef struct asking {
    world *w;
    atomic_int_fast64_t told_us[ASKED];
    atomic_bool over;
} asking;

/* What was told before the question is in the answer, wherever it lies meanwhile. */
static void keep_asking(void *context) {
    asking *a = context;
    weir_deleted_look look = {.deleted = a->w->deleted};
    for (uint64_t i = 0; !atomic_load(&a->over); i++) {
        int64_t told_us = atomic_load(&a->told_us[i % ASKED]), time_us;
        if (i % 8 == 0) weir_deleted_look_end(&look);
        assert_ok(weir_deleted_time(&look, vertex_of(i % ASKED), INT64_MAX, &time_us));
        assert_true(time_us >= told_us);
    }
    weir_deleted_look_end(&look);
}

static void a_question_meets_it_while_it_is_sealed(void **state) {
    enum { SEALS = 200, A_SEAL = 10, READERS = 3 };
    (void)state;
    world w;
    weir_thread *threads[READERS];
    begin(&w, SEALS * A_SEAL, 1u << 14);
    asking a = {.w = &w};
    for (int i = 0; i < ASKED; i++)
        atomic_init(&a.told_us[i], WEIR_DELETED_NEVER);
    for (int i = 0; i < READERS; i++)
        assert_ok(weir_thread_start("asking", WEIR_ROLE_INGEST, keep_asking, &a, &threads[i]));
    for (uint64_t i = 0; i < SEALS; i++) {
        for (uint64_t n = 0; n < A_SEAL; n++) {
            int64_t time_us = (int64_t)w.count;
            uint64_t vertex = (i + n) % ASKED;
            tell(&w, vertex_of(vertex), time_us);
            atomic_store(&a.told_us[vertex], time_us);
        }
        freeze(&w);
        seal(&w);
    }
    atomic_store(&a.over, true);
    for (int i = 0; i < READERS; i++)
        weir_thread_join(threads[i]);
    end(&w);
}

static void vertices_of_one_hash_are_told_apart(void **state) {
    enum { ALIKE = 200 };
    (void)state;
    weir_deletion_table table = {0};
    bool is_new;
    for (uint64_t n = 1; n <= ALIKE; n++) /* each once more than the one before, the newest first */
        for (uint64_t i = n; i > 0; i--) {
            assert_true(weir_deletion_table_insert(&table, weir_vertex_make(n, n), (int64_t)i, &is_new));
            assert_true(is_new);
        }
    for (uint64_t n = 1; n <= ALIKE; n++) {
        assert_int_equal(weir_deletion_table_newest(&table, weir_vertex_make(n, n), INT64_MAX), n);
        assert_int_equal(weir_deletion_table_newest(&table, weir_vertex_make(n, n), 2), 1);
    }
    assert_int_equal(weir_deletion_table_newest(&table, weir_vertex_make(0, 0), INT64_MAX), WEIR_DELETED_NEVER);
    assert_int_equal(table.count, ALIKE * (ALIKE + 1) / 2);
    weir_deletion_table_free(&table);
}

WEIR_TESTS(WEIR_CASE(vertices_of_one_hash_are_told_apart), WEIR_CASE(every_answer_is_that_of_a_plain_list),
           WEIR_CASE(the_ends_of_time_are_times), WEIR_CASE(what_is_sealed_takes_no_memory),
           WEIR_CASE(what_is_looked_up_is_paid_for), WEIR_CASE(one_stranger_in_a_hundred_is_suspected),
           WEIR_CASE(one_vertex_may_be_deleted_for_ever), WEIR_CASE(a_question_meets_it_while_it_is_sealed))
