/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside_test.c - a start that meets a damaged shard: it is set aside and made again, of a checkpoint or of the log, and
 * is what it was; and where no log has what it was made of, nothing of it is lost in silence.
 */
#include "fixture.h"

#define EVENTS  6000u
#define KEYS    40u
#define SHARDS  3u
#define SEGMENT (64u << 10)

static const char cards[] = "version: 1\n"
                            "name: cards\n"
                            "vertices:\n"
                            "  account: {features: {age: {kind: number}}}\n"
                            "  card: {}\n"
                            "relations:\n"
                            "  holds: {from: account, to: card}\n"
                            "labels:\n"
                            "  risk: {vertex: account, values: [low, high]}\n"
                            "sources:\n"
                            "  cards:\n"
                            "    id: id\n"
                            "    time: {field: t, format: s}\n"
                            "    mutations:\n"
                            "      - {put_vertex: account, key: account, when: {has: age}, features: [age]}\n"
                            "      - {put_edge: holds, from: account, to: card, when: {has: card}}\n"
                            "      - {put_label: risk, key: account, when: {has: risk}, value: risk}\n"
                            "      - {delete_vertex: account, key: account, when: {has: gone}}\n"
                            "      - {delete_edge: holds, from: account, to: card, when: {has: lost}}\n";

/* Equal times, late ones, deletions, labels; ids that come again with the same content or another; some that cannot be
 * mapped. */
static void append_event(fixture *f, weir_rng *rng, uint64_t n) {
    char text[256];
    bool again = n > 20 && weir_rng_below(rng, 15) == 0;
    uint64_t of = again ? n - 1 - weir_rng_below(rng, 19) : n;
    uint64_t card = again && weir_rng_below(rng, 2) ? KEYS : of * 7 % KEYS;
    const char *also = of % 50 == 7   ? ",\"gone\":true"
                       : of % 50 == 9 ? ",\"lost\":true"
                       : of % 9 == 1  ? ",\"risk\":\"high\""
                                      : "";
    snprintf(text, sizeof text,
             "{\"id\":\"e%llu\",\"t\":%s%llu,\"account\":\"a%llu\",\"card\":\"c%llu\",\"age\":%llu%s}",
             (unsigned long long)of, of % 60 == 3 ? "\"never\" " : "", (unsigned long long)(1700000000 + of / 4 % 400),
             (unsigned long long)(of * 13 % KEYS), (unsigned long long)card, (unsigned long long)(of % 11), also);
    fixture_text(f, 0, (uint32_t)(of / 8 % 2), text);
}

/* All records but those that say how far the store is, and the times of names: the put that came first has it. */
static weir_err add_record(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    char kind = *(const char *)key;
    if (kind == 'O' || kind == 'P') return WEIR_OK;
    weir_buf_append(context, key, key_length);
    if (kind != 'N') weir_buf_append(context, value, value_length);
    return WEIR_OK;
}

static void scan(fixture *f, weir_buf records[SHARDS]) {
    assert_ok(weir_graph_seal(f->graph));
    for (uint32_t i = 0; i < SHARDS; i++) {
        weir_buf_clear(&records[i]);
        assert_ok(weir_graph_scan(f->graph, i, add_record, &records[i]));
        assert_ok(weir_buf_err(&records[i]));
    }
}

static void assert_scan(fixture *f, weir_buf expected[SHARDS]) {
    weir_buf found[SHARDS] = {{0}};
    scan(f, found);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(found[i].length, expected[i].length);
        assert_memory_equal(found[i].bytes, expected[i].bytes, found[i].length);
        weir_buf_free(&found[i]);
    }
}

static void open_logs(fixture *f) {
    const weir_eventlog_opts opts = {.partitions = 2, .segment_bytes = SEGMENT, .retain_bytes = 1};
    f->log_count = 1;
    assert_ok(weir_eventlog_open(weir_test_path("log"), "cards", &opts, &f->logs[0]));
}

static void damage(uint32_t shard) {
    char path[64];
    snprintf(path, sizeof path, "store/shard-%03u/CURRENT", shard);
    assert_ok(weir_file_replace(weir_test_path(path), "MANIFEST-0?0005\n", 16));
}

static bool is_aside(uint32_t shard) {
    char path[64];
    snprintf(path, sizeof path, "store/shard-%03u.damaged/CURRENT", shard);
    return weir_path_exists(weir_test_path(path));
}

typedef struct world {
    fixture f;
    weir_rng rng;
    weir_buf records[SHARDS];
    uint64_t events;
    size_t letters;
} world;

static void world_open(world *w) {
    uint64_t seed = weir_test_seed();
    *w = (world){.f = {.schema = fixture_schema(cards),
                       .graph_opts = {.shards = SHARDS, .repairs = true, .memory_bytes = 64u << 20}},
                 .rng = weir_rng_stream(seed, 1, 0)};
    open_logs(&w->f);
    fixture_open_graph(&w->f);
    fixture_start(&w->f);
}

static void grow(world *w) {
    for (uint64_t end = w->events + EVENTS; w->events < end; w->events++)
        append_event(&w->f, &w->rng, w->events);
    fixture_drain(&w->f);
    scan(&w->f, w->records);
    w->letters = fixture_letters(NULL, NULL);
    assert_true(w->letters > 0);
}

/* The events that were refused because of what came before them, or could not be read, stay refused, each once. */
static void start_again(world *w) {
    fixture_open_graph(&w->f);
    assert_true(weir_graph_filling(w->f.graph));
    fixture_start(&w->f);
    fixture_drain(&w->f);
    assert_ok(weir_graph_filled(w->f.graph));
    assert_scan(&w->f, w->records);
    assert_int_equal(fixture_letters(NULL, NULL), w->letters);
    assert_true(weir_graph_health(w->f.graph) == WEIR_OK);
}

static void world_close(world *w) {
    fixture_close(&w->f);
    for (uint32_t i = 0; i < SHARDS; i++)
        weir_buf_free(&w->records[i]);
}

static void a_shard_that_does_not_open_is_filled_from_the_log(void **state) {
    (void)state;
    world w;
    world_open(&w);
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t shard = (uint32_t)weir_rng_below(&w.rng, SHARDS);
        grow(&w);
        fixture_stop(&w.f);
        damage(shard);
        start_again(&w);
        assert_true(is_aside(shard));
    }
    fixture_stop(&w.f);
    for (uint32_t i = 0; i < SHARDS; i++)
        damage(i);
    start_again(&w);
    world_close(&w);
}

static void without_repairs_it_is_refused(void **state) {
    (void)state;
    world w;
    world_open(&w);
    grow(&w);
    fixture_stop(&w.f);
    damage(1);
    w.f.graph_opts.repairs = false;
    assert_err(weir_graph_open(weir_test_path("store"), w.f.schema, &w.f.graph_opts, &w.f.graph), WEIR_ECORRUPT,
               "restore a checkpoint");
    assert_false(is_aside(1));
    w.f.graph_opts.repairs = true;
    start_again(&w);
    world_close(&w);
}

/* Of two checkpoints the better one is damaged, of the other the log has the rest, and no more. */
static void a_checkpoint_has_what_the_log_has_not(void **state) {
    (void)state;
    world w;
    uint64_t keep_from[2] = {UINT64_MAX, UINT64_MAX}, removed;
    char *checkpoints = weir_strdup(weir_test_path("checkpoints"));
    world_open(&w);
    w.f.graph_opts.checkpoints = checkpoints;
    assert_ok(weir_folder_create(checkpoints));
    grow(&w);
    assert_ok(weir_graph_checkpoint(w.f.graph, weir_test_path("checkpoints/older")));
    for (uint32_t p = 0; p < 2; p++)
        keep_from[p] = weir_graph_offset_sealed(w.f.graph, 0, p);
    grow(&w);
    assert_ok(weir_graph_checkpoint(w.f.graph, weir_test_path("checkpoints/better")));
    grow(&w);
    fixture_stop(&w.f);
    damage(2);
    assert_ok(weir_file_replace(weir_test_path("checkpoints/better/shard-001/identity"), "what\n", 5));
    assert_ok(weir_eventlog_retain_from(w.f.logs[0], keep_from, &removed));
    assert_true(removed > 0);
    start_again(&w);
    world_close(&w);
    weir_free(checkpoints);
}

/* Neither a checkpoint nor the log has all of it: it is said, each time, and what is damaged is kept. */
static void what_no_log_has_is_not_lost_in_silence(void **state) {
    (void)state;
    world w;
    weir_buf lines = {0};
    const weir_pipeline_source file = {.source = 0, .stream = WEIR_PIPELINE_FILE, .path = weir_test_path("old.ndjson")};
    const weir_pipeline_opts load = {
        .folder = weir_test_path("store"), .letter_folder = weir_test_path("log"), .sources = &file, .source_count = 1};
    for (unsigned i = 0; i < 500; i++)
        weir_buf_printf(&lines, "{\"id\":\"f%u\",\"t\":1600000000,\"account\":\"a%u\",\"card\":\"c%u\"}\n", i, i % KEYS,
                        i % 7);
    assert_ok(weir_file_replace(file.path, lines.bytes, lines.length));
    weir_buf_free(&lines);
    world_open(&w);
    fixture_stop(&w.f);
    fixture_open_graph(&w.f);
    weir_pipeline_opts opts = load;
    opts.graph = w.f.graph;
    assert_ok(weir_pipeline_open(&opts, &w.f.pipeline));
    assert_ok(weir_pipeline_start(w.f.pipeline));
    assert_ok(weir_pipeline_drain(w.f.pipeline, FIXTURE_WAIT));
    fixture_stop(&w.f);
    fixture_open_graph(&w.f);
    fixture_start(&w.f); /* what is whole is no gap */
    grow(&w);
    fixture_stop(&w.f);
    damage(0);
    for (unsigned tries = 0; tries < 2; tries++) {
        fixture_open_graph(&w.f);
        assert_err(fixture_try_pipeline(&w.f), WEIR_EDATA, "no log has them");
        assert_ok(weir_graph_close(w.f.graph));
    }
    assert_true(is_aside(0));
    assert_ok(weir_folder_swap(weir_test_path("store/shard-000"), weir_test_path("store/shard-000.damaged")));
    fixture_open_graph(&w.f); /* is damaged, and was set aside once more: nobody has mended it */
    assert_err(fixture_try_pipeline(&w.f), WEIR_EDATA, "no log has them");
    for (size_t i = 0; i < w.f.log_count; i++)
        assert_ok(weir_eventlog_close(w.f.logs[i]));
    assert_ok(weir_graph_close(w.f.graph));
    weir_schema_free(w.f.schema);
    for (uint32_t i = 0; i < SHARDS; i++)
        weir_buf_free(&w.records[i]);
}

WEIR_TESTS(WEIR_CASE(a_shard_that_does_not_open_is_filled_from_the_log), WEIR_CASE(without_repairs_it_is_refused),
           WEIR_CASE(a_checkpoint_has_what_the_log_has_not), WEIR_CASE(what_no_log_has_is_not_lost_in_silence))
