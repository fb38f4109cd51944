/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_test.c - what the logs say is what the graph says, whatever comes between; bad messages are where they
 * belong. */
#include "fixture.h"
#include "met_names.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/ingest/pipeline/lines.h>
#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/fault.h>

static const char cards[] = "version: 1\n"
                            "name: cards\n"
                            "vertices:\n"
                            "  account: {features: {age: {kind: number}}}\n"
                            "  card: {}\n"
                            "relations:\n"
                            "  holds: {from: account, to: card, features: {rank: {kind: number}}}\n"
                            "labels:\n"
                            "  risk: {vertex: account, values: [low, high]}\n"
                            "sources:\n"
                            "  cards:\n"
                            "    id: id\n"
                            "    time: {field: t, format: s}\n"
                            "    mutations:\n"
                            "      - put_vertex: account\n"
                            "        key: account\n"
                            "        when: {has: age}\n"
                            "        features: [age]\n"
                            "      - put_edge: holds\n"
                            "        from: account\n"
                            "        to: card\n"
                            "        when: {has: card}\n"
                            "        features: {rank: {field: rank, optional: true}}\n"
                            "      - put_label: risk\n"
                            "        key: account\n"
                            "        when: {has: risk}\n"
                            "        value: risk\n"
                            "      - delete_vertex: account\n"
                            "        key: account\n"
                            "        when: {has: gone}\n"
                            "      - delete_edge: holds\n"
                            "        from: account\n"
                            "        to: card\n"
                            "        when: {has: lost}\n";

static weir_schema *shipped(const char *name) {
    return fixture_schema(weir_schema_shipped_find(name)->text);
}

static weir_simulate *simulation(uint64_t seed) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    weir_simulate *sim;
    opts.seed = seed;
    opts.accounts = 200;
    opts.label_delay_us = WEIR_SIMULATE_LABEL_DELAY_MIN;
    opts.fraud_ppm = 50000;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    return sim;
}

static void append_simulated(fixture *f, weir_simulate *sim, size_t count) {
    for (size_t i = 0; i < count; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        uint32_t source = m.topic == WEIR_SIMULATE_PAYMENTS ? 0 : 1;
        uint32_t partition = weir_eventlog_partition_of(f->logs[source], m.key, m.key_length);
        fixture_append(f, source, partition, m.value, m.value_length);
    }
}

static void simulated_payments_are_in_the_graph(void **state) {
    (void)state;
    fixture f = {.schema = shipped("payments")};
    weir_simulate *sim = simulation(1);
    fixture_open(&f);
    append_simulated(&f, sim, 3000);
    fixture_drain(&f);
    fixture_compare(&f);
    assert_int_equal(fixture_letters(NULL, NULL), 0);
    weir_simulate_close(sim);
    fixture_close(&f);
}

static weir_err at_its_end(void *context, const weir_pipeline_partition_stats *stats) {
    size_t *seen = context;
    ++*seen;
    assert_int_equal(stats->offset_read, stats->offset_end);
    assert_int_equal(stats->offset_applied, stats->offset_end);
    assert_int_equal(stats->lag_us, 0);
    return WEIR_OK;
}

static weir_err sealed_to_its_end(void *context, const weir_pipeline_partition_stats *stats) {
    size_t *seen = context;
    ++*seen;
    assert_int_equal(stats->offset_sealed, stats->offset_end);
    return WEIR_OK;
}

static void p1_every_shard_has_every_offset(void **state) {
    (void)state;
    fixture f = {.schema = shipped("payments"), .partitions = 3, .graph_opts = {.shards = 5}};
    weir_simulate *sim = simulation(2);
    size_t seen = 0;
    fixture_open(&f);
    append_simulated(&f, sim, 1000);
    fixture_drain(&f);
    assert_ok(weir_pipeline_partitions(f.pipeline, at_its_end, &seen));
    assert_int_equal(seen, 6);
    assert_ok(weir_graph_seal(f.graph));
    assert_ok(weir_pipeline_partitions(f.pipeline, sealed_to_its_end, &seen));
    assert_int_equal(seen, 12);
    weir_simulate_close(sim);
    fixture_close(&f);
}

static void stopped_and_started_at_random(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    fixture f = {.schema = shipped("payments"), .graph_opts = {.shards = 3, .seal_us = 20000}};
    weir_simulate *sim = simulation(3);
    fixture_open(&f);
    for (int round = 0; round < 8; round++) {
        append_simulated(&f, sim, weir_rng_below(&rng, 600));
        for (size_t i = 0; i < f.log_count; i++)
            assert_ok(weir_eventlog_sync(f.logs[i]));
        if (weir_rng_below(&rng, 2)) assert_ok(weir_pipeline_drain(f.pipeline, FIXTURE_WAIT));
        fixture_stop(&f);
        fixture_open_graph(&f);
        fixture_start(&f);
    }
    fixture_drain(&f);
    fixture_compare(&f);
    weir_simulate_close(sim);
    fixture_close(&f);
}

/* --- dead letters ----------------------------------------------------------------------------------------------- */

static const char *const bad[] = {"{",
                                  "",
                                  "[1]",
                                  "{\"id\":\"x\",\"t\":\"soon\",\"account\":\"a\"}",
                                  "{\"id\":\"x\",\"account\":\"a\"}",
                                  "{\"id\":\"x\",\"t\":5,\"card\":\"c\"}",
                                  "{\"id\":\"x\",\"t\":5,\"account\":\"a\",\"risk\":\"none\"}"};
#define BADS (sizeof bad / sizeof bad[0])

static void append_card(fixture *f, uint32_t partition, uint64_t n) {
    char text[128];
    int length = snprintf(text, sizeof text, "{\"id\":\"e%llu\",\"t\":%llu,\"account\":\"a%llu\",\"card\":\"c%llu\"}",
                          (unsigned long long)n, 1000 + (unsigned long long)n, (unsigned long long)n % 17,
                          (unsigned long long)(n % 23));
    fixture_append(f, 0, partition, text, (size_t)length);
}

static void check_bad(void *context, uint64_t number, const weir_dead_letter *letter) {
    bool *met = context;
    (void)number;
    assert_int_equal(letter->source_length, 5);
    assert_memory_equal(letter->source, "cards", 5);
    assert_int_equal(letter->offset % 3, 1);
    const char *text = bad[letter->offset / 3 % BADS];
    assert_int_equal(letter->length, strlen(text));
    assert_memory_equal(letter->bytes, text, letter->length);
    assert_true(letter->reason_length > 0);
    assert_false(letter->cut);
    assert_int_equal(letter->value_length, strlen(text));
    assert_true(letter->key == NULL);
    size_t index = letter->partition * 100 + letter->offset / 3;
    assert_false(met[index]);
    met[index] = true;
}

static void append_mixed(fixture *f, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
        for (uint32_t p = 0; p < 2; p++) {
            append_card(f, p, i * 4 + p);
            fixture_text(f, 0, p, bad[i % BADS]);
            append_card(f, p, i * 4 + 2 + p);
        }
    }
}

static void p2_bad_messages_go_aside_and_good_ones_on(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    bool met[200] = {false};
    fixture_open(&f);
    append_mixed(&f, 0, 60);
    fixture_drain(&f);
    fixture_compare(&f);
    assert_int_equal(fixture_letters(check_bad, met), 120);
    weir_pipeline_source_stats stats;
    weir_pipeline_source_stats_get(f.pipeline, 0, &stats);
    assert_int_equal(stats.records, 360);
    assert_int_equal(stats.dead_letters, 120);
    assert_int_equal(stats.status, WEIR_PIPELINE_RUNNING);
    fixture_close(&f);
}

/* A child runs the pipeline until the kill point; what it has sealed or not is its own affair. */
static void run_killed(fixture *f, const char *kill_at) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (weir_fault_kill_arm(kill_at)) _exit(1);
        fixture_open(f);
        (void)!weir_pipeline_drain(f->pipeline, FIXTURE_WAIT);
        _exit(2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void p3_letters_are_there_once_across_kills(void **state) {
    (void)state;
    static const char *const points[] = {"pipeline.letters_synced:1", "pipeline.submitted:1",
                                         "pipeline.letters_synced:2", "shard.applied:1", "pipeline.submitted:2"};
    fixture f = {.schema = fixture_schema(cards)};
    bool met[200] = {false};
    fixture_open_logs(&f);
    append_mixed(&f, 0, 60);
    assert_ok(weir_eventlog_close(f.logs[0]));
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        run_killed(&f, points[i]);
    fixture_open(&f);
    fixture_drain(&f);
    fixture_compare(&f);
    assert_int_equal(fixture_letters(check_bad, met), 120);
    fixture_close(&f);
}

static void a_letter_of_this_store_stays_one(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open_logs(&f);
    fixture_text(&f, 0, 0, "{\"id\":\"x\",\"t\":5,\"account\":\"a\",\"risk\":\"none\"}");
    assert_ok(weir_eventlog_close(f.logs[0]));
    run_killed(&f, "pipeline.submitted:1");
    weir_schema_free(f.schema); /* a schema that takes the message now, as if it had been put right meanwhile */
    char text[sizeof cards + 64];
    const char *values = strstr(cards, "[low, high]");
    snprintf(text, sizeof text, "%.*s[low, high, none]%s", (int)(values - cards), cards,
             values + strlen("[low, high]"));
    f.schema = fixture_schema(text);
    fixture_open(&f);
    fixture_drain(&f);
    assert_int_equal(fixture_letters(NULL, NULL), 1);
    weir_arena *arena;
    weir_row_view view;
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_graph_label(f.graph, weir_vertex_id(&weir_id_key_public, "account", "a", 1), 0, WEIR_BEFORE_ALL,
                               arena, &view));
    assert_null(view.row);
    /* A store that is built anew from the log takes it, and the letter of the other life is not written again. */
    fixture_stop(&f);
    assert_ok(weir_folder_remove(weir_test_path("store")));
    fixture_open_graph(&f);
    fixture_start(&f);
    fixture_drain(&f);
    assert_int_equal(fixture_letters(NULL, NULL), 1);
    assert_ok(weir_graph_label(f.graph, weir_vertex_id(&weir_id_key_public, "account", "a", 1), 0, WEIR_BEFORE_ALL,
                               arena, &view));
    assert_non_null(view.row);
    weir_arena_close(arena);
    fixture_close(&f);
}

/* --- names that once met ---------------------------------------------------------------------------------------- */

static void check_name(const fixture *f, weir_vertex vertex, const char *name) {
    weir_arena *arena;
    const char *key;
    uint32_t length;
    uint16_t type;
    assert_ok(weir_arena_open(1u << 16, &arena));
    assert_ok(weir_graph_name(f->graph, vertex, arena, &type, &key, &length));
    assert_non_null(key);
    assert_int_equal(length, strlen(name));
    assert_memory_equal(key, name, length);
    weir_arena_close(arena);
}

static uint32_t edges_of(const fixture *f, const char *key) {
    weir_arena *arena;
    const weir_edge *edges;
    uint32_t count;
    weir_vertex vertex = weir_vertex_id(&weir_id_key_public, MET_TYPE, key, strlen(key));
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_graph_neighbors(f->graph, vertex, 0, WEIR_OUT, WEIR_BEFORE_ALL, 100, arena, &edges, &count));
    weir_arena_close(arena);
    return count;
}

/* A stranger puts a key that was computed to meet another's: whoever came first, each has what is its own, and nothing
 * becomes a dead letter. With ids of 64 unkeyed bits, all of the second's events did. */
static void names_that_met_under_the_old_hash_live_side_by_side(void **state) {
    (void)state;
    static const char *const keys[2] = {MET_KEY, MET_TWIN};
    assert_true(met_hash(keys[0]) == met_hash(keys[1]));
    for (unsigned first = 0; first < 2; first++) {
        fixture f = {.schema = fixture_schema(cards), .partitions = 1};
        fixture_open(&f);
        for (unsigned n = 0; n < 12; n++) {
            char text[512];
            int length = snprintf(text, sizeof text, "{\"id\":\"e%u\",\"t\":%u,\"account\":\"%s\",\"card\":\"c%u\"}", n,
                                  1000 + n, keys[n % 3 ? 1 - first : first], n);
            fixture_append(&f, 0, 0, text, (size_t)length);
            if (n == 5) fixture_drain(&f);
        }
        fixture_drain(&f);
        for (int pass = 0; pass < 2; pass++) {
            fixture_compare(&f);
            assert_int_equal(edges_of(&f, keys[first]), 4);
            assert_int_equal(edges_of(&f, keys[1 - first]), 8);
            for (unsigned i = 0; i < 2; i++)
                check_name(&f, weir_vertex_id(&weir_id_key_public, MET_TYPE, keys[i], strlen(keys[i])), keys[i]);
            assert_int_equal(fixture_letters(NULL, NULL), 0);
            fixture_stop(&f);
            fixture_open_graph(&f);
            fixture_start(&f);
            fixture_drain(&f);
        }
        fixture_close(&f);
        assert_ok(weir_folder_remove(weir_test_path("store")));
        assert_ok(weir_folder_remove(weir_test_path("log")));
    }
}

/* --- names ------------------------------------------------------------------------------------------------------ */

static void deleted_and_put_again_it_has_its_name(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards), .partitions = 1};
    fixture_open(&f);
    fixture_text(&f, 0, 0, "{\"id\":\"1\",\"t\":10,\"account\":\"a\",\"card\":\"c\"}");
    fixture_text(&f, 0, 0, "{\"id\":\"2\",\"t\":20,\"account\":\"a\",\"gone\":1}");
    fixture_drain(&f);
    fixture_compare(&f);
    fixture_text(&f, 0, 0, "{\"id\":\"3\",\"t\":30,\"account\":\"a\",\"card\":\"c\"}");
    fixture_drain(&f);
    fixture_compare(&f);
    fixture_text(&f, 0, 0, "{\"id\":\"4\",\"t\":40,\"account\":\"a\",\"gone\":1}"); /* both in one span */
    fixture_text(&f, 0, 0, "{\"id\":\"5\",\"t\":35,\"account\":\"a\",\"card\":\"c\"}");
    fixture_text(&f, 0, 0, "{\"id\":\"6\",\"t\":50,\"account\":\"a\",\"card\":\"c\"}");
    fixture_drain(&f);
    fixture_compare(&f);
    fixture_stop(&f);
    fixture_open_graph(&f);
    fixture_start(&f);
    fixture_drain(&f);
    fixture_compare(&f);
    fixture_close(&f);
}

static const char bare[] = "version: 1\n"
                           "name: bare\n"
                           "vertices:\n"
                           "  account: {features: {age: {kind: number}}}\n"
                           "  card: {}\n"
                           "relations:\n"
                           "  holds: {from: account, to: card}\n"
                           "sources:\n"
                           "  bare:\n"
                           "    id: id\n"
                           "    time: {field: t, format: s}\n"
                           "    mutations:\n"
                           "      - {put_vertex: card, key: card, when: {has: put}}\n"
                           "      - {put_edge: holds, from: account, to: card, when: {has: account}}\n"
                           "      - {delete_vertex: card, key: card, when: {has: gone}}\n";

/* A put at 10, one at 60 and the deletion of 50, in each order, the puts with and without an edge; each card of its
 * own, one event a run of the pipeline. */
static void append_in_order(fixture *f, unsigned order, const char *rest, const char *cards_of) {
    static const unsigned char orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const unsigned times[3] = {10, 60, 50};
    for (unsigned i = 0; i < 3; i++) {
        char text[128];
        unsigned what = orders[order][i];
        int length = snprintf(text, sizeof text, "{\"id\":\"%s%u%u\",\"t\":%u,\"card\":\"%s%u\"%s}", cards_of, order,
                              what, times[what], cards_of, order, what == 2 ? ",\"gone\":1" : rest);
        fixture_append(f, 0, 0, text, (size_t)length);
        if (order & 1) fixture_drain(f);
        if (i == 1) assert_ok(weir_graph_seal(f->graph));
    }
}

static void a_late_deletion_leaves_the_name_of_what_was_put_after_it(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(bare), .partitions = 1};
    char key[8];
    fixture_open(&f);
    for (unsigned order = 0; order < 6; order++) {
        append_in_order(&f, order, ",\"put\":1", "p");
        append_in_order(&f, order, ",\"account\":\"a\"", "e");
    }
    fixture_drain(&f);
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < 12; i++) {
            snprintf(key, sizeof key, "%c%u", i < 6 ? 'p' : 'e', i % 6);
            check_name(&f, weir_vertex_id(&weir_id_key_public, "card", key, 2), key);
        }
        fixture_compare(&f);
        fixture_stop(&f);
        fixture_open_graph(&f);
        fixture_start(&f);
        fixture_drain(&f);
    }
    fixture_close(&f);
}

/* Mostly edges; each other kind of mutation now and then. */
static void append_random(fixture *f, weir_rng *rng, uint64_t n) {
    static const char *const rest[] = {
        "", ",\"rank\":3", ",\"age\":7", ",\"risk\":\"high\"", ",\"gone\":1", ",\"lost\":true"};
    char text[160];
    uint64_t kind = weir_rng_below(rng, 24);
    const bool edge = kind != 2 && kind != 3 && kind != 4;
    int length = snprintf(text, sizeof text, "{\"id\":\"e%llu\",\"t\":%llu,\"account\":\"a%llu\",\"%s\":\"c%llu\"%s}",
                          (unsigned long long)n,
                          1000 + (unsigned long long)(n - (n ? weir_rng_below(rng, n < 300 ? n : 300) : 0)),
                          (unsigned long long)weir_rng_below(rng, 30), edge ? "card" : "other",
                          (unsigned long long)weir_rng_below(rng, 9), rest[kind < 6 ? kind : 0]);
    fixture_append(f, 0, 0, text, (size_t)length);
}

static void random_events_with_deletions(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    fixture f = {.schema = fixture_schema(cards), .partitions = 1, .graph_opts = {.shards = 4, .seal_us = 10000}};
    fixture_open(&f);
    for (uint64_t n = 0; n < 4000; n++) {
        append_random(&f, &rng, n);
        if (weir_rng_below(&rng, 700) == 0) fixture_drain(&f);
    }
    fixture_drain(&f);
    fixture_compare(&f);
    fixture_close(&f);
}

/* --- memory and order ------------------------------------------------------------------------------------------- */

static void s6_a_small_budget_waits_and_drops_nothing(void **state) {
    (void)state;
    fixture f = {.schema = shipped("payments"), .graph_opts = {.shards = 2, .memory_bytes = 8u << 20}};
    weir_simulate *sim = simulation(4);
    weir_graph_stats stats;
    fixture_open(&f);
    append_simulated(&f, sim, 6000);
    fixture_drain(&f);
    fixture_compare(&f);
    weir_graph_stats_get(f.graph, &stats);
    assert_true(stats.seals > 2);
    assert_true(stats.delta_bytes + stats.cache_bytes <= 8u << 20);
    weir_simulate_close(sim);
    fixture_close(&f);
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

static void a_recreated_topic_is_refused(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open(&f);
    append_card(&f, 0, 1);
    fixture_drain(&f);
    fixture_stop(&f);
    assert_ok(weir_eventlog_close(f.logs[0]));
    assert_ok(weir_folder_remove(weir_test_path("log/cards")));
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    assert_err(fixture_try_pipeline(&f), WEIR_EDATA, "recreated");
    assert_null(f.pipeline);
    fixture_close(&f);
}

static void wait_for(fixture *f, weir_pipeline_status status, weir_pipeline_source_stats *stats) {
    for (int i = 0; i < 12000; i++) {
        weir_pipeline_source_stats_get(f->pipeline, 0, stats);
        if (stats->status == status) return;
        usleep(10000);
    }
    fail_msg("the source is %s", weir_pipeline_status_name(stats->status));
}

/* A segment each few records; the store has sealed the first ones only. */
static void p4_retention_that_ran_past_us_is_an_error(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards), .partitions = 1};
    const weir_eventlog_opts small = {.partitions = 1, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 1};
    weir_pipeline_source_stats stats;
    uint64_t removed;
    fixture_open(&f);
    append_card(&f, 0, 1);
    fixture_drain(&f);
    fixture_stop(&f);
    assert_ok(weir_eventlog_close(f.logs[0]));
    assert_ok(weir_eventlog_open(weir_test_path("log"), "cards", &small, &f.logs[0]));
    for (uint64_t n = 0; n < 400; n++) {
        append_card(&f, 0, n);
        assert_ok(weir_eventlog_sync(f.logs[0]));
    }
    assert_ok(weir_eventlog_retain(f.logs[0], &removed));
    assert_true(removed > 0);
    fixture_open_graph(&f);
    fixture_start(&f);
    wait_for(&f, WEIR_PIPELINE_FAILED, &stats);
    assert_err(stats.err, WEIR_ENOTFOUND, "retention");
    for (uint32_t i = 0; i < WEIR_ERR_SENTENCES + 50; i++)
        (void)WEIR_ERR(WEIR_EBUSY, "a newer error, %u", i);
    weir_pipeline_source_stats_get(f.pipeline, 0, &stats);
    assert_err(stats.err, WEIR_ENOTFOUND, "retention"); /* in the words that it had */
    assert_err(weir_pipeline_drain(f.pipeline, FIXTURE_WAIT), WEIR_ENOTFOUND, "retention");
    fixture_close(&f);
}

/* A new store of a log that retention has cut takes what is there; a crash before its first seal loses none of it. */
static void a_new_store_begins_where_the_log_does(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards), .partitions = 1};
    const weir_eventlog_opts small = {.partitions = 1, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 1};
    weir_eventlog_partition_stats log_stats;
    uint64_t removed;
    f.log_count = 1;
    assert_ok(weir_eventlog_open(weir_test_path("log"), "cards", &small, &f.logs[0]));
    for (uint64_t n = 0; n < 200; n++) {
        append_card(&f, 0, n);
        assert_ok(weir_eventlog_sync(f.logs[0]));
    }
    assert_ok(weir_eventlog_retain(f.logs[0], &removed));
    assert_ok(weir_eventlog_stats_get(f.logs[0], 0, &log_stats));
    assert_true(log_stats.offset_begin > 0);
    assert_ok(weir_eventlog_close(f.logs[0]));
    run_killed(&f, "pipeline.submitted:1");
    fixture_open(&f);
    fixture_drain(&f);
    weir_pipeline_source_stats stats;
    weir_pipeline_source_stats_get(f.pipeline, 0, &stats);
    assert_int_equal(stats.records, log_stats.offset_end - log_stats.offset_begin);
    fixture_close(&f);
}

static void a_second_pipeline_is_refused(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open(&f);
    weir_pipeline *first = f.pipeline;
    assert_err(fixture_try_pipeline(&f), WEIR_EBUSY, NULL);
    f.pipeline = first;
    fixture_close(&f);
}

static void bad_options_are_refused(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    const weir_pipeline_source wrong[] = {{.source = 9, .log = f.logs[0]},
                                          {.stream = WEIR_PIPELINE_EVENTLOG},
                                          {.stream = WEIR_PIPELINE_KAFKA},
                                          {.stream = WEIR_PIPELINE_FILE}};
    for (size_t i = 0; i < 4; i++) {
        const weir_pipeline_opts opts = {.graph = f.graph,
                                         .folder = weir_test_path("store"),
                                         .letter_folder = weir_test_path("log"),
                                         .sources = &wrong[i],
                                         .source_count = 1};
        assert_err(weir_pipeline_open(&opts, &f.pipeline), WEIR_EINVAL, NULL);
        assert_null(f.pipeline);
    }
    fixture_close(&f);
}

static void a_drain_that_takes_too_long_says_so(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    assert_ok(fixture_try_pipeline(&f)); /* not started */
    assert_err(weir_pipeline_drain(f.pipeline, 1000), WEIR_ETIMEOUT, NULL);
    fixture_close(&f);
}

static weir_err open_and_close(void *context) {
    fixture *f = context;
    weir_err err = fixture_try_pipeline(f);
    weir_err_keep(&err, weir_pipeline_close(f->pipeline));
    f->pipeline = NULL;
    return err;
}

static void open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open(&f);
    append_mixed(&f, 0, 5);
    fixture_drain(&f);
    assert_ok(weir_graph_seal(f.graph));
    assert_ok(weir_pipeline_close(f.pipeline));
    f.pipeline = NULL;
    weir_test_every_allocation(open_and_close, &f);
    fixture_close(&f);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static const char table[] = "version: 1\n"
                            "name: table\n"
                            "vertices: {a: {}, b: {}}\n"
                            "relations: {r: {from: a, to: b}}\n"
                            "sources:\n"
                            "  rows:\n"
                            "    format: csv\n"
                            "    columns: [id, time, from, to]\n"
                            "    id: id\n"
                            "    time: {field: time, format: s}\n"
                            "    mutations:\n"
                            "      - {put_edge: r, from: from, to: to}\n";

static void load_file(fixture *f, const char *path, uint64_t *records, uint64_t *letters) {
    const weir_pipeline_source source = {.source = 0, .stream = WEIR_PIPELINE_FILE, .path = path};
    const weir_pipeline_opts opts = {.graph = f->graph,
                                     .folder = weir_test_path("store"),
                                     .letter_folder = weir_test_path("log"),
                                     .sources = &source,
                                     .source_count = 1};
    weir_pipeline_source_stats stats;
    assert_ok(weir_pipeline_open(&opts, &f->pipeline));
    assert_ok(weir_pipeline_start(f->pipeline));
    assert_ok(weir_pipeline_drain(f->pipeline, FIXTURE_WAIT));
    weir_pipeline_source_stats_get(f->pipeline, 0, &stats);
    assert_int_equal(stats.status, WEIR_PIPELINE_ENDED);
    assert_ok(weir_pipeline_close(f->pipeline));
    f->pipeline = NULL;
    *records = stats.records;
    *letters = stats.dead_letters;
}

static uint32_t neighbors(fixture *f, const char *type, const char *key) {
    weir_arena *arena;
    const weir_edge *edges;
    uint32_t count;
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_graph_neighbors(f->graph, weir_vertex_id(&weir_id_key_public, type, key, strlen(key)), 0, WEIR_OUT,
                                   WEIR_BEFORE_ALL, 100, arena, &edges, &count));
    weir_arena_close(arena);
    return count;
}

static void a_file_of_csv_is_loaded_once(void **state) {
    (void)state;
    static const char text[] = "id,time,from,to\r\n1,10,x,\"y\"\n\n2,11,x,\"y,z\"\r\nbad\n3,12,x,w";
    fixture f = {.schema = fixture_schema(table)};
    const char *path = weir_test_path("rows.csv"), *other = weir_test_path("more.csv");
    uint64_t records, letters;
    fixture_open_graph(&f);
    assert_ok(weir_file_replace(path, text, strlen(text)));
    load_file(&f, path, &records, &letters);
    assert_int_equal(records, 4);
    assert_int_equal(letters, 1);
    assert_int_equal(neighbors(&f, "a", "x"), 3);
    load_file(&f, path, &records, &letters);
    assert_int_equal(records, 0);
    assert_int_equal(letters, 0);
    assert_ok(weir_file_replace(other, "9,13,x,q\n", 9)); /* another file, though its lines have the same numbers */
    load_file(&f, other, &records, &letters);
    assert_int_equal(records, 1);
    assert_int_equal(neighbors(&f, "a", "x"), 4);
    f.log_count = 0;
    fixture_close(&f);
}

static void check_cut(void *context, uint64_t number, const weir_dead_letter *letter) {
    (void)number;
    assert_true(letter->cut);
    assert_int_equal(letter->length, WEIR_LINE_MAX);
    assert_int_equal(letter->value_length, *(const size_t *)context);
}

static void a_line_beyond_the_limit_is_a_letter_cut(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(table)};
    size_t length = 9u << 20;
    char *text = weir_malloc(length + 64);
    const char *path = weir_test_path("long.csv");
    uint64_t records, letters;
    memset(text, 'x', length);
    size_t tail = (size_t)snprintf(text + length, 64, "\n1,10,x,y\n");
    assert_ok(weir_file_replace(path, text, length + tail));
    weir_free(text);
    fixture_open_graph(&f);
    load_file(&f, path, &records, &letters);
    assert_int_equal(records, 2);
    assert_int_equal(letters, 1);
    assert_int_equal(neighbors(&f, "a", "x"), 1);
    assert_int_equal(fixture_letters(check_cut, &length), 1);
    fixture_close(&f);
}

static void a_file_that_is_not_there(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(table)};
    const weir_pipeline_source source = {.source = 0, .stream = WEIR_PIPELINE_FILE, .path = weir_test_path("none")};
    fixture_open_graph(&f);
    const weir_pipeline_opts opts = {.graph = f.graph,
                                     .folder = weir_test_path("store"),
                                     .letter_folder = weir_test_path("log"),
                                     .sources = &source,
                                     .source_count = 1};
    assert_err(weir_pipeline_open(&opts, &f.pipeline), WEIR_ENOTFOUND, "none");
    fixture_close(&f);
}

WEIR_TESTS(WEIR_CASE(simulated_payments_are_in_the_graph), WEIR_CASE(p1_every_shard_has_every_offset),
           WEIR_CASE(stopped_and_started_at_random), WEIR_CASE(p2_bad_messages_go_aside_and_good_ones_on),
           WEIR_CASE(p3_letters_are_there_once_across_kills), WEIR_CASE(a_letter_of_this_store_stays_one),
           WEIR_CASE(names_that_met_under_the_old_hash_live_side_by_side),
           WEIR_CASE(deleted_and_put_again_it_has_its_name),
           WEIR_CASE(a_late_deletion_leaves_the_name_of_what_was_put_after_it), WEIR_CASE(random_events_with_deletions),
           WEIR_CASE(s6_a_small_budget_waits_and_drops_nothing), WEIR_CASE(a_recreated_topic_is_refused),
           WEIR_CASE(p4_retention_that_ran_past_us_is_an_error), WEIR_CASE(a_new_store_begins_where_the_log_does),
           WEIR_CASE(a_second_pipeline_is_refused), WEIR_CASE(bad_options_are_refused),
           WEIR_CASE(open_fails_cleanly_at_every_allocation), WEIR_CASE(a_drain_that_takes_too_long_says_so),
           WEIR_CASE(a_file_of_csv_is_loaded_once), WEIR_CASE(a_line_beyond_the_limit_is_a_letter_cut),
           WEIR_CASE(a_file_that_is_not_there))
