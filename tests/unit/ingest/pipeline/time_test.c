/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_test.c - hostile times through the pipeline: what is too far ahead is a dead letter, whatever its source is,
 * and makes nothing else vanish; what counts for the watermark, and from when on not.
 */
#include "../kafka/mock.h"

#include <unistd.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/metrics.h>

#include "fixture.h"

#define HOUR_US (3600 * WEIR_US_PER_S)
#define HISTORY 11u

static const char cards[] = "version: 1\n"
                            "name: cards\n"
                            "vertices: {account: {expire: 60d}, card: {}}\n"
                            "relations: {holds: {from: account, to: card, expire: 30d}}\n"
                            "sources:\n"
                            "  cards:\n"
                            "    id: id\n"
                            "    time: when.at\n"
                            "    mutations:\n"
                            "      - {put_edge: holds, from: account, to: card}\n";

typedef struct world {
    fixture f;
    weir_clock *clock;
    uint64_t events; /* so many ids were given */
} world;

static void world_open(world *w, const char *wall) {
    int64_t wall_us;
    assert_ok(weir_time_parse(wall, strlen(wall), &wall_us));
    *w = (world){.f = {.schema = fixture_schema(cards)}};
    assert_ok(weir_clock_manual_open(wall_us, &w->clock));
    w->f.graph_opts.clock = w->clock;
    w->f.graph_opts.future_us = HOUR_US;
    fixture_open_logs(&w->f);
}

static void set_wall(world *w, const char *wall) {
    int64_t wall_us;
    assert_ok(weir_time_parse(wall, strlen(wall), &wall_us));
    weir_clock_manual_set_wall(w->clock, wall_us);
}

static void start(world *w, const weir_pipeline_source *source, const char *brokers) {
    const weir_pipeline_opts opts = {.graph = w->f.graph,
                                     .folder = weir_test_path("store"),
                                     .letter_folder = weir_test_path("log"),
                                     .sources = source,
                                     .source_count = 1,
                                     .brokers = brokers,
                                     .kafka_timeout_us = 30 * WEIR_US_PER_S,
                                     .clock = w->clock};
    assert_ok(weir_pipeline_open(&opts, &w->f.pipeline));
    assert_ok(weir_pipeline_start(w->f.pipeline));
}

static void start_log(world *w) {
    const weir_pipeline_source source = {.stream = WEIR_PIPELINE_EVENTLOG, .log = w->f.logs[0]};
    fixture_open_graph(&w->f);
    start(w, &source, NULL);
}

static void world_close(world *w) {
    fixture_close(&w->f);
    weir_clock_close(w->clock);
}

static void make(world *w, const char *time, char text[256]) {
    unsigned long long n = w->events++;
    snprintf(text, 256, "{\"id\":\"e%02llu\",\"when\":{\"at\":\"%s\"},\"account\":\"a%llu\",\"card\":\"c%llu\"}", n,
             time, n, n);
}

/* Into the log, as if it was taken at this time; NULL: now. */
static void append(world *w, uint32_t partition, const char *time, const char *arrived) {
    char text[256];
    weir_record record = {.value = text, .time_us = weir_clock_wall_us(w->clock)};
    uint64_t offset;
    make(w, time, text);
    record.value_length = strlen(text);
    if (arrived) assert_ok(weir_time_parse(arrived, strlen(arrived), &record.time_us));
    assert_ok(weir_eventlog_append(w->f.logs[0], partition, &record, 1, &offset));
}

static void append_history(world *w, uint32_t partition) {
    for (unsigned i = 0; i < HISTORY; i++) {
        char time[32];
        snprintf(time, sizeof time, "2023-06-%02uT00:00:00Z", i + 1);
        append(w, partition, time, NULL);
    }
}

/* How many accounts are there with their edge, for a reader who gives no time. */
static uint64_t visible(world *w) {
    weir_arena *arena;
    uint64_t seen = 0;
    assert_ok(weir_graph_drain(w->f.graph));
    assert_ok(weir_arena_open(1u << 20, &arena));
    for (uint64_t n = 0; n < w->events; n++) {
        char key[32];
        const char *name;
        const weir_edge *edges;
        uint32_t count, length;
        uint16_t type;
        size_t key_length = (size_t)snprintf(key, sizeof key, "a%llu", (unsigned long long)n);
        weir_vertex vertex = weir_vertex_id(weir_graph_id_key(w->f.graph), "account", key, key_length);
        assert_ok(weir_graph_neighbors(w->f.graph, vertex, 0, WEIR_OUT, WEIR_BEFORE_ALL, 8, arena, &edges, &count));
        assert_ok(weir_graph_name(w->f.graph, vertex, arena, &type, &name, &length));
        assert_int_equal(name != NULL, count);
        seen += count;
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
    return seen;
}

/* The only letter, and its reason. */
static void one_letter(world *w, const char *reason) {
    weir_eventlog *log;
    weir_eventlog_reader *reader;
    weir_record records[8];
    weir_dead_letter letter;
    size_t count;
    const weir_eventlog_opts opts = {.read_only = true};
    (void)w;
    assert_ok(weir_eventlog_open(weir_test_path("log"), WEIR_DEAD_LETTER_TOPIC, &opts, &log));
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    assert_ok(weir_eventlog_reader_next(reader, records, 8, &count));
    assert_int_equal(count, 1);
    assert_ok(weir_dead_letter_read(&records[0], &letter));
    char *found = strndup(letter.reason, letter.reason_length);
    assert_string_equal(found, reason);
    free(found);
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
}

static const char reason_9999[] =
    "field 'when.at' (byte 27): the event's time, 9999-12-31T23:59:59.000000Z, is in the future: none after "
    "2026-01-01T01:00:00.000000Z is taken (ingest.future_max); check the sender's clock";

/* --- each kind of source ---------------------------------------------------------------------------------------- */

static void log_the_year_9999_is_a_letter(void **state) {
    (void)state;
    world w;
    uint64_t counted = weir_metric_counter(WEIR_METRIC_INGEST_FUTURE);
    world_open(&w, "2026-01-01T00:00:00Z");
    append_history(&w, 0);
    append(&w, 0, "9999-12-31T23:59:59Z", NULL);
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY);
    assert_int_equal(weir_metric_counter(WEIR_METRIC_INGEST_FUTURE) - counted, 1);
    fixture_stop(&w.f);
    one_letter(&w, reason_9999);
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY);
    world_close(&w);
}

/* Up to the bound an event is taken, and still makes nothing old; one past it is not. */
static void log_59_minutes_are_taken_and_61_are_not(void **state) {
    (void)state;
    world w;
    world_open(&w, "2026-01-01T00:00:00Z");
    append_history(&w, 0);
    append(&w, 1, "2026-01-01T00:59:00Z", NULL);
    append(&w, 1, "2026-01-01T01:00:00Z", NULL);
    append(&w, 1, "2026-01-01T01:00:00.000001Z", NULL);
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY + 2);
    weir_clock_manual_advance(w.clock, 6 * 60 * WEIR_US_PER_S); /* both partitions are idle */
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY + 2);
    fixture_stop(&w.f);
    one_letter(&w, "field 'when.at' (byte 27): the event's time, 2026-01-01T01:00:00.000001Z, is in the future: none "
                   "after 2026-01-01T01:00:00.000000Z is taken (ingest.future_max); check the sender's clock");
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY + 2);
    world_close(&w);
}

static void file_the_year_9999_is_a_letter(void **state) {
    (void)state;
    world w;
    char text[256], lines[16 * 256] = "";
    world_open(&w, "2026-01-01T00:00:00Z");
    for (unsigned i = 0; i <= HISTORY; i++) {
        char time[32];
        snprintf(time, sizeof time, "2023-06-%02uT00:00:00Z", i + 1);
        make(&w, i == 3 ? "9999-12-31T23:59:59Z" : time, text);
        strcat(strcat(lines, text), "\n");
    }
    assert_ok(weir_file_replace(weir_test_path("cards.jsonl"), lines, strlen(lines)));
    char *path = strdup(weir_test_path("cards.jsonl"));
    const weir_pipeline_source source = {.stream = WEIR_PIPELINE_FILE, .path = path};
    for (int again = 0; again < 2; again++) {
        fixture_open_graph(&w.f);
        start(&w, &source, NULL);
        assert_ok(weir_pipeline_drain(w.f.pipeline, FIXTURE_WAIT));
        assert_int_equal(visible(&w), HISTORY);
        fixture_stop(&w.f);
        one_letter(&w, reason_9999);
    }
    fixture_open_graph(&w.f);
    start(&w, &source, NULL);
    world_close(&w);
    free(path);
}

static void produce(world *w, weir_kafka_producer *producer, const char *time) {
    char text[256];
    make(w, time, text);
    assert_ok(weir_kafka_produce(producer, weir_clock_wall_us(w->clock), "k", 1, text, strlen(text)));
}

static void wait_for_records(world *w, uint64_t records) {
    weir_pipeline_source_stats stats = {0};
    for (int i = 0; i < 6000 && stats.records < records; i++) {
        weir_pipeline_source_stats_get(w->f.pipeline, 0, &stats);
        if (stats.status == WEIR_PIPELINE_FAILED) assert_ok(stats.err);
        usleep(10000);
    }
    assert_int_equal(stats.records, records);
}

/* A producer writes the record's timestamp too: it is not believed. */
static void kafka_the_year_9999_is_a_letter(void **state) {
    (void)state;
    world w;
    mock_broker mock = mock_open("cards", 1);
    weir_kafka_producer *producer;
    uint64_t acknowledged;
    const weir_kafka_producer_opts opts = {.brokers = mock.address, .topic = "cards", .timeout_us = 30 * WEIR_US_PER_S};
    const weir_pipeline_source source = {.stream = WEIR_PIPELINE_KAFKA};
    world_open(&w, "2026-01-01T00:00:00Z");
    assert_ok(weir_kafka_producer_open(&opts, &producer));
    for (unsigned i = 0; i < HISTORY; i++)
        produce(&w, producer, "2023-06-01T00:00:00Z");
    set_wall(&w, "9999-12-31T00:00:00Z");
    produce(&w, producer, "9999-12-31T23:59:59Z");
    set_wall(&w, "2026-01-01T00:00:00Z");
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    weir_kafka_producer_close(producer);
    fixture_open_graph(&w.f);
    start(&w, &source, mock.address);
    wait_for_records(&w, HISTORY + 1);
    assert_int_equal(visible(&w), HISTORY);
    fixture_stop(&w.f);
    one_letter(&w, reason_9999);
    fixture_open_graph(&w.f);
    start(&w, &source, mock.address);
    assert_int_equal(visible(&w), HISTORY);
    world_close(&w);
    mock_close(&mock);
}

/* --- clocks ----------------------------------------------------------------------------------------------------- */

/* What was acknowledged when the clock was right is not refused by one that went back, nor what is not newer. */
static void p2_a_wall_clock_that_went_back_refuses_nothing_taken(void **state) {
    (void)state;
    world w;
    weir_pipeline_source_stats stats;
    world_open(&w, "2026-01-01T00:00:00Z");
    append(&w, 0, "2026-01-01T00:30:00Z", NULL);
    set_wall(&w, "1970-01-01T00:00:00Z");
    start_log(&w);
    fixture_drain(&w.f);
    append(&w, 0, "2025-12-31T00:00:00Z", NULL);
    fixture_drain(&w.f);
    weir_pipeline_source_stats_get(w.f.pipeline, 0, &stats);
    assert_int_equal(stats.dead_letters, 0);
    assert_int_equal(visible(&w), 2);
    append(&w, 0, "2026-01-01T00:31:00Z", NULL); /* newer than all, by a clock that knows nothing of it */
    fixture_drain(&w.f);
    weir_pipeline_source_stats_get(w.f.pipeline, 0, &stats);
    assert_int_equal(stats.dead_letters, 1);
    world_close(&w);
}

/* A letter of this store stays one; a store that is built again when its time has come takes the event. */
static void a_rebuild_takes_what_is_past_by_then(void **state) {
    (void)state;
    world w;
    world_open(&w, "2026-01-01T00:00:00Z");
    append_history(&w, 0);
    append(&w, 0, "2026-02-01T00:00:00Z", NULL);
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY);
    fixture_stop(&w.f);
    set_wall(&w, "2026-03-01T00:00:00Z");
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY);
    fixture_stop(&w.f);
    assert_ok(weir_folder_remove(weir_test_path("store")));
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), HISTORY + 1);
    world_close(&w);
}

/* --- who counts ------------------------------------------------------------------------------------------------- */

static void append_many(world *w, uint32_t partition, const char *time) {
    for (unsigned i = 0; i < 63; i++)
        append(w, partition, time, NULL);
}

static void a_silent_partition_holds_for_as_long_as_it_may(void **state) {
    (void)state;
    world w;
    world_open(&w, "2026-01-01T00:00:00Z");
    append_many(&w, 0, "2023-06-01T00:00:00Z");
    append_many(&w, 1, "2025-06-01T00:00:00Z");
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), 126);
    weir_clock_manual_advance(w.clock, 299 * WEIR_US_PER_S);
    append(&w, 1, "2025-06-01T00:00:00Z", NULL);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), 127);
    weir_clock_manual_advance(w.clock, 2 * WEIR_US_PER_S);
    fixture_drain(&w.f); /* partition 0 has been silent for five minutes */
    assert_int_equal(visible(&w), 64);
    fixture_stop(&w.f);
    start_log(&w);
    fixture_drain(&w.f);
    assert_int_equal(visible(&w), 64);
    world_close(&w);
}

/* A log of years is read in seconds: no partition makes old what another has not read yet. */
static void a_replay_ends_as_it_began(void **state) {
    (void)state;
    world w;
    int64_t watermark_us = 0;
    world_open(&w, "2026-01-01T00:00:00Z");
    for (unsigned month = 1; month <= 12; month++) {
        char time[32];
        snprintf(time, sizeof time, "2024-%02u-01T00:00:00Z", month);
        for (unsigned i = 0; i < 40; i++)
            append(&w, i % 2, time, NULL);
        if (month % 3) continue;
        if (!w.f.graph) start_log(&w); /* the first months at once, the others as they come */
        fixture_drain(&w.f);
    }
    for (int again = 0; again < 2; again++) {
        int64_t now_us = weir_graph_watermark(w.f.graph);
        if (again) assert_int_equal(now_us, watermark_us);
        watermark_us = now_us;
        fixture_stop(&w.f);
        if (!again) assert_ok(weir_folder_remove(weir_test_path("store")));
        start_log(&w);
        fixture_drain(&w.f);
    }
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(log_the_year_9999_is_a_letter), WEIR_CASE(log_59_minutes_are_taken_and_61_are_not),
           WEIR_CASE(file_the_year_9999_is_a_letter), WEIR_CASE(kafka_the_year_9999_is_a_letter),
           WEIR_CASE(p2_a_wall_clock_that_went_back_refuses_nothing_taken),
           WEIR_CASE(a_rebuild_takes_what_is_past_by_then), WEIR_CASE(a_silent_partition_holds_for_as_long_as_it_may),
           WEIR_CASE(a_replay_ends_as_it_began))
