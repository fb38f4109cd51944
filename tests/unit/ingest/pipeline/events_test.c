/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events_test.c - one event id, several messages: which of them the graph shows is what the log says, at once, after
 * any restart and when a store is filled anew; seals and the order of partitions have no part in it.
 */
#include "fixture.h"

static const char payments[] = "version: 1\n"
                               "name: events\n"
                               "vertices:\n"
                               "  account: {features: {limit: {kind: number}}}\n"
                               "  shop: {}\n"
                               "relations:\n"
                               "  paid: {from: account, to: shop, features: {amount: {kind: number}}}\n"
                               "labels:\n"
                               "  risk: {vertex: account, values: [low, high]}\n"
                               "sources:\n"
                               "  payments:\n"
                               "    id: id\n"
                               "    time: {field: t, format: s}\n"
                               "    mutations:\n"
                               "      - put_edge: paid\n"
                               "        from: account\n"
                               "        to: shop\n"
                               "        when: {has: amount}\n"
                               "        features: [amount]\n"
                               "      - put_vertex: account\n"
                               "        key: account\n"
                               "        when: {has: limit}\n"
                               "        features: [limit]\n"
                               "      - put_label: risk\n"
                               "        key: account\n"
                               "        when: {has: risk}\n"
                               "        value: risk\n";

static void append(fixture *f, uint32_t partition, const char *id, int time_s, int amount) {
    char text[128];
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"t\":%d,\"account\":\"a\",\"shop\":\"s\",\"amount\":%d}", id, time_s,
             amount);
    fixture_text(f, 0, partition, text);
}

static double amount_of(const fixture *f, const weir_edge *edge) {
    weir_value value;
    size_t count;
    const weir_value_kind *kinds = weir_graph_relation_kinds(f->graph, 0, &count);
    weir_row_read(kinds, count, edge->row, edge->row_length, &value);
    return value.number;
}

/* The amounts that the account has paid, newest first, as one text. */
static const char *paid(const fixture *f) {
    static char text[16384];
    const weir_edge *edges;
    uint32_t count;
    weir_arena *arena;
    size_t used = 0;
    weir_vertex account = weir_vertex_id(weir_graph_id_key(f->graph), "account", "a", 1);
    assert_ok(weir_arena_open(4u << 20, &arena));
    assert_ok(weir_graph_neighbors(f->graph, account, 0, WEIR_OUT, WEIR_BEFORE_ALL, 500, arena, &edges, &count));
    text[0] = 0;
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld:%g", i ? " " : "",
                                 (long long)(edges[i].time_us / WEIR_US_PER_S), amount_of(f, &edges[i]));
    weir_arena_close(arena);
    return text;
}

static void restart(fixture *f) {
    fixture_stop(f);
    fixture_open_graph(f);
    fixture_start(f);
    fixture_drain(f);
}

/* The store that the log makes when it is begun anew. */
static void rebuild(fixture *f) {
    char *store = weir_strdup(weir_test_path("store"));
    fixture_stop(f);
    assert_int_equal(rename(store, weir_test_path("moved")), 0);
    weir_free(store);
    fixture_open_graph(f);
    fixture_start(f);
    fixture_drain(f);
    assert_ok(weir_folder_remove(weir_test_path("moved")));
}

static void holds_always(fixture *f, const char *wanted) {
    fixture_drain(f);
    assert_string_equal(paid(f), wanted);
    restart(f);
    assert_string_equal(paid(f), wanted);
    rebuild(f);
    assert_string_equal(paid(f), wanted);
    assert_ok(weir_graph_seal(f->graph));
    assert_string_equal(paid(f), wanted);
}

static void count_reason(void *context, uint64_t number, const weir_dead_letter *letter) {
    char reason[512];
    (void)number;
    snprintf(reason, sizeof reason, "%.*s", (int)letter->reason_length, letter->reason);
    if (strstr(reason, "the first event of an id stands")) ++*(size_t *)context;
}

/* With a seal in between the later one used to win, and without one too: until the store was filled anew. */
static void the_first_in_the_log_stands(void **state) {
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        fixture f = {.schema = fixture_schema(payments)};
        size_t losers = 0;
        fixture_open(&f);
        append(&f, 0, "e1", 100, 10);
        fixture_drain(&f);
        if (sealed) assert_ok(weir_graph_seal(f.graph));
        append(&f, 0, "e1", 100, 99); /* same time and ends, another amount */
        append(&f, 0, "e1", 200, 10); /* another time                      */
        append(&f, 0, "e2", 300, 7);
        append(&f, 0, "e1", 100, 10); /* said again                        */
        holds_always(&f, "300:7 100:10");
        assert_int_equal(fixture_letters(count_reason, &losers), 2);
        assert_int_equal(losers, 2);
        fixture_close(&f);
        assert_ok(weir_folder_remove(weir_test_path("log")));
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

/* The first one is sealed and its delta gone when the second comes, in another life of the process. */
static void the_first_is_remembered_over_restarts(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(payments), .graph_opts = {.shards = 4}};
    fixture_open(&f);
    append(&f, 0, "e1", 100, 10);
    for (int i = 0; i < 5; i++) {
        fixture_drain(&f);
        restart(&f);
        append(&f, 0, "e1", 100 + i, 20 + i);
    }
    holds_always(&f, "100:10");
    fixture_close(&f);
}

/* Partitions come in any order: so an id is compared within its partition, and elsewhere both stand, whatever came
 * first. */
static void partitions_take_nothing_from_each_other(void **state) {
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        fixture f = {.schema = fixture_schema(payments)};
        fixture_open(&f);
        append(&f, first, "e1", 100, first ? 99 : 10);
        fixture_drain(&f);
        assert_ok(weir_graph_seal(f.graph));
        append(&f, 1 - first, "e1", 100, first ? 10 : 99);
        append(&f, 1 - first, "e2", 50, 5);
        append(&f, first, "e2", 50, 5); /* the same event in both is one */
        fixture_drain(&f);
        char *wanted = weir_strdup(paid(&f));
        assert_true(strcmp(wanted, "100:10 100:99 50:5") == 0 || strcmp(wanted, "100:99 100:10 50:5") == 0);
        assert_int_equal(fixture_letters(NULL, NULL), 0);
        restart(&f);
        assert_int_equal(strlen(paid(&f)), strlen(wanted));
        rebuild(&f);
        assert_int_equal(strlen(paid(&f)), strlen(wanted));
        weir_free(wanted);
        fixture_close(&f);
        assert_ok(weir_folder_remove(weir_test_path("log")));
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

static void a_window_is_the_stores_own(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(payments), .graph_opts = {.event_window = 3}};
    fixture_open(&f);
    append(&f, 0, "e1", 100, 10);
    append(&f, 0, "x1", 101, 1);
    append(&f, 0, "x2", 102, 1);
    append(&f, 0, "e1", 103, 30); /* three offsets on: refused */
    append(&f, 0, "e1", 104, 40); /* four: another event       */
    fixture_drain(&f);
    f.graph_opts.event_window = 100;
    restart(&f);
    assert_int_equal(weir_graph_event_window(f.graph), 3);
    append(&f, 0, "x1", 105, 50);
    f.graph_opts.event_window = 3;
    holds_always(&f, "105:50 104:40 102:1 101:1 100:10");
    fixture_close(&f);
}

/* --- random streams ----------------------------------------------------------------------------------------------- */

enum { EVENTS = 600, IDS = 60 };

typedef struct said {
    int id, time_s, amount;
    bool stands;
} said;

static int by_time(const void *a, const void *b) {
    const said *x = *(said *const *)a, *y = *(said *const *)b;
    return (x->time_s < y->time_s) - (x->time_s > y->time_s);
}

/* What stands, of one partition, by looking back from each message. Times differ, so their order is one. */
static void expect(said *log, size_t count, uint32_t window, char *text, size_t room) {
    said *standing[EVENTS];
    size_t stands = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        log[i].stands = true;
        for (size_t back = 1; back <= window && back <= i; back++)
            if (log[i - back].id == log[i].id && log[i - back].stands) log[i].stands = false;
        if (log[i].stands) standing[stands++] = &log[i];
    }
    qsort(standing, stands, sizeof standing[0], by_time);
    text[0] = 0;
    for (size_t i = 0; i < stands && i < 500; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%d:%d", i ? " " : "", standing[i]->time_s,
                                 standing[i]->amount);
}

static void random_ids_and_restarts(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    static said log[EVENTS];
    static char wanted[16384];
    for (uint64_t round = 0; round < weir_test_rounds(2); round++) {
        uint32_t window = 1 + (uint32_t)weir_rng_below(&rng, 200);
        fixture f = {.schema = fixture_schema(payments),
                     .partitions = 1,
                     .graph_opts = {.event_window = window, .shards = 1 + (uint32_t)weir_rng_below(&rng, 4)}};
        size_t count = 120;
        fixture_open(&f);
        for (size_t i = 0; i < count; i++) {
            char id[16];
            log[i] = (said){.id = (int)weir_rng_below(&rng, IDS),
                            .time_s = (int)((i * 7919) % EVENTS), /* each once, in any order */
                            .amount = (int)weir_rng_below(&rng, 1000)};
            snprintf(id, sizeof id, "e%d", log[i].id);
            append(&f, 0, id, log[i].time_s, log[i].amount);
            uint64_t what = weir_rng_below(&rng, 60);
            if (what < 3) fixture_drain(&f);
            if (what == 1) assert_ok(weir_graph_seal(f.graph));
            if (what == 2) restart(&f);
        }
        expect(log, count, window, wanted, sizeof wanted);
        holds_always(&f, wanted);
        fixture_close(&f);
        assert_ok(weir_folder_remove(weir_test_path("log")));
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

WEIR_TESTS(WEIR_CASE(the_first_in_the_log_stands), WEIR_CASE(the_first_is_remembered_over_restarts),
           WEIR_CASE(partitions_take_nothing_from_each_other), WEIR_CASE(a_window_is_the_stores_own),
           WEIR_CASE(random_ids_and_restarts))
