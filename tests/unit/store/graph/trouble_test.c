/* SPDX-License-Identifier: Apache-2.0 */
/* trouble_test.c - a store in trouble says so, for as long as it lasts; it comes back, or it stops; nothing is lost. */
#include "trouble.h"

#include <stdatomic.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/thread.h>

#define MEMORY (64u << 20)

static void make_errors(void) {
    for (uint32_t i = 0; i < 3 * WEIR_ERR_SENTENCES; i++)
        (void)WEIR_ERR(WEIR_EBUSY, "another error, %u", i);
}

static uint32_t degree(trouble_store *s, uint64_t a, weir_direction direction) {
    uint32_t count;
    assert_ok(trouble_degree(s, a, direction, &count));
    return count;
}

/* The freeze that the clock asks for once dropped everything behind it, in silence: no log, ready, and exit 0. */
static void a_failed_allocation_at_a_freeze_drops_nothing(void **state) {
    (void)state;
    uint32_t failed = 0;
    for (uint64_t nth = 1; nth <= 12; nth++) {
        trouble_store s = {0};
        uint32_t edges = 0;
        assert_ok(trouble_open(&s, MEMORY, 1000)); /* frozen at every tick */
        assert_ok(trouble_edge(&s, 1, 2, 1));
        assert_ok(weir_graph_drain(s.graph));
        edges++;
        weir_alloc_fail_nth(nth);
        for (int i = 0; i < 150 && !weir_alloc_failed(); i++)
            trouble_nap();
        failed += weir_alloc_failed() != 0;
        weir_alloc_fail_nth(0);
        for (uint64_t b = 3; b < 40; b++, edges++)
            assert_ok(trouble_edge(&s, 1, b, (int64_t)b));
        assert_ok(weir_graph_drain(s.graph));
        assert_int_equal(degree(&s, 1, WEIR_OUT), edges);
        assert_ok(trouble_close(&s));
        assert_ok(trouble_open(&s, MEMORY, 1000));
        assert_int_equal(degree(&s, 1, WEIR_OUT), edges);
        assert_int_equal(weir_graph_offset_sealed(s.graph, s.source, 0), edges);
        assert_ok(trouble_close(&s));
        trouble_free(&s);
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
    assert_true(failed > 0);
}

static weir_err count_troubles(void *context, const weir_graph_trouble *trouble) {
    uint32_t *stopped = context;
    assert_string_equal(trouble->part, "apply");
    *stopped += trouble->stopped;
    return WEIR_OK;
}

static void what_cannot_be_tried_again_stops_and_is_named_for_ever(void **state) {
    (void)state;
    trouble_store s = {0};
    weir_mutation m = {.kind = WEIR_PUT_EDGE, .vertex = trouble_vertex(1), .neighbor = trouble_vertex(2)};
    uint32_t stopped = 0;
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_ok(trouble_edge(&s, 1, 2, 3));
    assert_ok(weir_graph_drain(s.graph));
    assert_ok(weir_graph_health(s.graph));
    assert_ok(trouble_submit(&s, &m, 1, 5)); /* the shards see that events are missing, and no one else */
    assert_err(weir_graph_drain(s.graph), WEIR_EORDER, "events are missing");
    for (int later = 0; later < 3; later++, make_errors()) {
        assert_err(weir_graph_health(s.graph), WEIR_EORDER, "shard 0 of the store, apply, has stopped");
        assert_err(weir_graph_health(s.graph), WEIR_EORDER, "events are missing");
        assert_err(trouble_edge(&s, 1, 3, 4), WEIR_EORDER, "events are missing");
        assert_err(weir_graph_seal(s.graph), WEIR_EORDER, "events are missing");
    }
    assert_ok(weir_graph_troubles(s.graph, count_troubles, &stopped));
    assert_int_equal(stopped, TROUBLE_SHARDS);
    assert_int_equal(degree(&s, 1, WEIR_OUT), 1); /* reads go on */
    assert_err(trouble_close(&s), WEIR_EORDER, "events are missing");
    assert_ok(trouble_open(&s, MEMORY, 0));
    assert_true(weir_graph_offset_sealed(s.graph, s.source, 0) <= 1);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

static void too_large_for_a_delta_stops_with_advice(void **state) {
    (void)state;
    trouble_store s = {0};
    static uint8_t row[WEIR_ROW_BYTES_MAX];
    weir_mutation m[64];
    for (uint64_t i = 0; i < 64; i++) {
        m[i] = (weir_mutation){.kind = WEIR_PUT_EDGE, .event = i, .row = row, .row_length = sizeof row};
        m[i].vertex = trouble_vertex(1);
        m[i].neighbor = trouble_vertex(2 + i);
    }
    assert_ok(trouble_open(&s, 1u << 20, 0));
    assert_ok(trouble_submit(&s, m, 64, 0));
    assert_err(weir_graph_drain(s.graph), WEIR_ELIMIT, "raise store.memory");
    assert_err(trouble_close(&s), WEIR_ELIMIT, "raise store.memory");
    trouble_free(&s);
}

/* --- a disk that is full ---------------------------------------------------------------------------------------- */

typedef struct pusher {
    trouble_store *store;
    atomic_uint_fast64_t taken;
    atomic_bool cancelled;
    atomic_uint_fast64_t most; /* it ends with so many; 0: any. Each has a row, and readers want room for all */
} pusher;

/* What a source does until it is stopped. */
static void push_until_cancelled(void *context) {
    pusher *p = context;
    static uint8_t row[4096];
    weir_err err = WEIR_OK;
    for (uint64_t most = 0; !err && (most == 0 || atomic_load(&p->taken) < most); most = atomic_load(&p->most)) {
        uint64_t n = p->store->offset;
        weir_mutation m = {
            .kind = WEIR_PUT_EDGE, .event = n + 1, .time_us = (int64_t)n, .row = row, .row_length = sizeof row};
        m.vertex = trouble_vertex(1 + n % 7);
        m.neighbor = trouble_vertex(100 + n);
        err = trouble_submit(p->store, &m, 1, 0);
        atomic_fetch_add(&p->taken, !err);
    }
    if (!err) return;
    assert_err(err, WEIR_ECANCELLED, NULL);
    atomic_store(&p->cancelled, true);
}

static void wait_for_a_standstill(pusher *p) {
    uint64_t before;
    do {
        before = atomic_load(&p->taken);
        for (int i = 0; i < 100; i++)
            trouble_nap();
    } while (before == 0 || atomic_load(&p->taken) != before);
}

/* A worker that waits in a push for ever made a stop hang. */
static void a_stop_ends_while_the_disk_is_full_and_the_queue_too(void **state) {
    (void)state;
    trouble_store s = {0};
    pusher p = {.store = &s};
    weir_thread *thread;
    assert_ok(trouble_open(&s, 1u << 20, 0));
    assert_ok(weir_fault_arm("write:1:ENOSPC:/store/shard-"));
    assert_ok(weir_thread_start("pusher", WEIR_ROLE_TEST, push_until_cancelled, &p, &thread));
    wait_for_a_standstill(&p);
    for (int later = 0; later < 2; later++, make_errors())
        assert_err(weir_graph_health(s.graph), WEIR_EFULL, "free some space");
    assert_false(atomic_load(&p.cancelled));
    weir_graph_interrupt(s.graph, true);
    weir_thread_join(thread);
    weir_graph_interrupt(s.graph, false);
    assert_true(atomic_load(&p.cancelled));
    assert_err(weir_graph_drain(s.graph), WEIR_EFULL, "free some space");
    assert_err(trouble_close(&s), WEIR_EFULL, "free some space");
    assert_ok(weir_fault_arm(NULL));
    trouble_free(&s);
}

static void writes_go_on_by_themselves_once_there_is_room(void **state) {
    (void)state;
    trouble_store s = {0};
    pusher p = {.store = &s};
    weir_thread *thread;
    uint32_t total = 0;
    assert_ok(trouble_open(&s, 1u << 20, 0));
    assert_ok(weir_fault_arm("write:1:ENOSPC:/store/shard-"));
    assert_ok(weir_thread_start("pusher", WEIR_ROLE_TEST, push_until_cancelled, &p, &thread));
    wait_for_a_standstill(&p);
    uint64_t stuck_at = atomic_load(&p.taken);
    atomic_store(&p.most, stuck_at + 500);
    assert_ok(weir_fault_arm(NULL));
    while (atomic_load(&p.taken) < stuck_at + 500 || weir_graph_health(s.graph))
        trouble_nap();
    weir_thread_join(thread);
    assert_ok(trouble_close(&s));
    assert_ok(trouble_open(&s, 1u << 20, 0));
    for (uint64_t a = 1; a <= 7; a++)
        total += degree(&s, a, WEIR_OUT);
    uint64_t sealed = weir_graph_offset_sealed(s.graph, s.source, 0);
    assert_in_range(total, sealed, s.offset + 1); /* one shard may have had the last, which the other was not given */
    assert_true(sealed >= stuck_at);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

/* --- a file that is damaged ------------------------------------------------------------------------------------- */

typedef struct file_found {
    const char *folder;
    char path[512];
} file_found;

static weir_err find_sorted(void *context, const char *name) {
    file_found *found = context;
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".sst") == 0 && !found->path[0])
        snprintf(found->path, sizeof found->path, "%s/%s", found->folder, name);
    return WEIR_OK;
}

static void flip(const char *path) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 20, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, 20, SEEK_SET), 0);
    fputc(byte ^ 0x04, file);
    fclose(file);
}

/* One flipped bit once made every seal after the next compaction fail for ever. */
static void seals_go_on_beside_a_damaged_file_and_it_comes_back(void **state) {
    (void)state;
    trouble_store s = {0};
    char folder[512];
    uint64_t damaged_shard = weir_shard_of(trouble_vertex(1), TROUBLE_SHARDS);
    snprintf(folder, sizeof folder, "%s/shard-%03u", weir_test_path("store"), (unsigned)damaged_shard);
    file_found found = {.folder = folder};
    uint32_t edges = 0, count;
    assert_ok(trouble_open(&s, MEMORY, 0));
    for (uint64_t b = 0; b < 300; b++, edges++)
        assert_ok(trouble_edge(&s, 1, 1000 + b, (int64_t)b));
    assert_ok(weir_graph_seal(s.graph));
    assert_ok(weir_folder_list(folder, find_sorted, &found));
    assert_true(found.path[0] != 0);
    flip(found.path);
    bool named = false;
    for (uint64_t b = 0; b < 16 || (!named && b < 400); b++, edges++) {
        assert_ok(trouble_edge(&s, 1, 2000 + b, (int64_t)(1000 + b)));
        while (weir_graph_seal(s.graph)) /* one may meet the error; each is done in the end */
            trouble_nap();
        named = named || weir_graph_health(s.graph);
    }
    assert_int_equal(weir_graph_offset_sealed(s.graph, s.source, 0), edges);
    for (int later = 0; later < 2; later++, make_errors())
        assert_err(weir_graph_health(s.graph), WEIR_ECORRUPT, strrchr(found.path, '/') + 1);
    assert_err(trouble_degree(&s, 1, WEIR_OUT, &count), WEIR_ECORRUPT, strrchr(found.path, '/') + 1);
    flip(found.path);
    while (weir_graph_health(s.graph))
        trouble_nap();
    assert_int_equal(degree(&s, 1, WEIR_OUT), edges);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

/* A 5xx alone is not seen by whoever looks at readiness. */
static void a_damaged_read_is_named_until_it_is_over(void **state) {
    (void)state;
    trouble_store s = {0};
    char folder[512];
    uint32_t count;
    snprintf(folder, sizeof folder, "%s/shard-%03u", weir_test_path("store"),
             (unsigned)weir_shard_of(trouble_vertex(1), TROUBLE_SHARDS));
    file_found found = {.folder = folder};
    assert_ok(trouble_open(&s, MEMORY, 0));
    for (uint64_t b = 0; b < 100; b++)
        assert_ok(trouble_edge(&s, 1, 1000 + b, (int64_t)b));
    assert_ok(weir_graph_seal(s.graph));
    assert_ok(weir_folder_list(folder, find_sorted, &found));
    flip(found.path);
    assert_ok(weir_graph_health(s.graph));
    assert_err(trouble_degree(&s, 1, WEIR_OUT, &count), WEIR_ECORRUPT, strrchr(found.path, '/') + 1);
    for (int later = 0; later < 2; later++, make_errors())
        assert_err(weir_graph_health(s.graph), WEIR_ECORRUPT, "files");
    flip(found.path);
    while (weir_graph_health(s.graph))
        trouble_nap();
    assert_int_equal(degree(&s, 1, WEIR_OUT), 100);
    assert_ok(trouble_close(&s));
    trouble_free(&s);
}

WEIR_TESTS(WEIR_CASE(a_failed_allocation_at_a_freeze_drops_nothing),
           WEIR_CASE(what_cannot_be_tried_again_stops_and_is_named_for_ever),
           WEIR_CASE(too_large_for_a_delta_stops_with_advice),
           WEIR_CASE(a_stop_ends_while_the_disk_is_full_and_the_queue_too),
           WEIR_CASE(writes_go_on_by_themselves_once_there_is_room),
           WEIR_CASE(seals_go_on_beside_a_damaged_file_and_it_comes_back),
           WEIR_CASE(a_damaged_read_is_named_until_it_is_over))
