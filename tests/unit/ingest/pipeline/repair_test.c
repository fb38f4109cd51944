/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair_test.c - a store whose files are damaged, beside one that is not: both are fed from the same logs, by the same
 * clock, and in the end all their records are the same.
 *
 * The messages are random: repeated ids with the same and with another content, late and early ones, what cannot be
 * mapped, what is too far ahead when it comes, and would be taken when the shard is made anew.
 */
#include "fixture.h"

#include <stdatomic.h>
#include <unistd.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/thread.h>

#include <damage.h>
#include <submit.h>
#include <tiny_schema.h>

#define SHARDS     3u
#define PARTITIONS 3u
#define WINDOW     40u /* records; the logs have thousands */
#define HOUR_US    (3600 * WEIR_US_PER_S)
#define LOOK_US    2000
#define TEXT_MAX   300u
#define KEPT       64u

static const char rich_schema[] = "version: 1\n"
                                  "name: rich\n"
                                  "vertices:\n"
                                  "  account: {expire: 60d, features: {age: {kind: number}}}\n"
                                  "  card: {}\n"
                                  "relations:\n"
                                  "  holds: {from: account, to: card, features: {rank: {kind: number}}}\n"
                                  "labels:\n"
                                  "  risk: {vertex: account, values: [low, high]}\n"
                                  "sources:\n"
                                  "  cards:\n"
                                  "    id: id\n"
                                  "    time: t\n"
                                  "    mutations:\n"
                                  "      - {put_edge: holds, from: a, to: b, when: {has: w}, features: {rank: w}}\n"
                                  "      - {put_vertex: account, key: a, when: {has: age}, features: [age]}\n"
                                  "      - {delete_vertex: account, key: a, when: {has: gone}}\n"
                                  "      - {delete_edge: holds, from: a, to: b, when: {has: lost}}\n"
                                  "  risks:\n"
                                  "    id: id\n"
                                  "    time: t\n"
                                  "    mutations:\n"
                                  "      - {put_label: risk, key: a, value: risk}\n";

/* The same in short: no event comes as late as what is kept. */
static const char kept_schema[] = "version: 1\n"
                                  "name: kept\n"
                                  "vertices:\n"
                                  "  account: {expire: 12h, history: 30h, features: {age: {kind: number}}}\n"
                                  "  card: {}\n"
                                  "relations:\n"
                                  "  holds: {from: account, to: card, expire: 6h, history: 30h,\n"
                                  "          features: {rank: {kind: number}}}\n"
                                  "labels:\n"
                                  "  risk: {vertex: account, values: [low, high]}\n"
                                  "sources:\n"
                                  "  cards:\n"
                                  "    id: id\n"
                                  "    time: t\n"
                                  "    mutations:\n"
                                  "      - {put_edge: holds, from: a, to: b, when: {has: w}, features: {rank: w}}\n"
                                  "      - {put_vertex: account, key: a, when: {has: age}, features: [age]}\n";

/* A store of its own, with letters of its own. */
typedef struct side {
    const char *store, *letters, *checkpoints; /* NULL: none */
    bool repairs;
    int64_t scrub_us;
    weir_graph *graph;
    weir_pipeline *pipeline;
} side;

typedef struct kept {
    char text[TEXT_MAX];
} kept;

typedef struct world {
    fixture logs; /* and the schema */
    weir_clock *clock;
    weir_rng rng;
    side damaged, whole;
    uint64_t made;
    kept last[FIXTURE_SOURCES][PARTITIONS][KEPT]; /* the newest messages */
    uint64_t counts[FIXTURE_SOURCES][PARTITIONS];
} world;

/* --- the stores ----------------------------------------------------------------------------------------------- */

static int64_t wall(const char *text) {
    int64_t us;
    assert_ok(weir_time_parse(text, strlen(text), &us));
    return us;
}

static void open_graph(world *w, side *s) {
    const weir_graph_opts opts = {.shards = SHARDS,
                                  .memory_bytes = 32u << 20,
                                  .event_window = WINDOW,
                                  .create = true,
                                  .clock = w->clock,
                                  .id_key = &weir_id_key_public,
                                  .future_us = HOUR_US};
    assert_ok(weir_graph_open(weir_test_path(s->store), w->logs.schema, &opts, &s->graph));
}

static void start_with(world *w, side *s, const weir_pipeline_source *sources, size_t count) {
    const weir_pipeline_opts opts = {.graph = s->graph,
                                     .folder = weir_test_path(s->store),
                                     .letter_folder = weir_test_path(s->letters),
                                     .checkpoints = s->checkpoints ? weir_test_path(s->checkpoints) : NULL,
                                     .sources = sources,
                                     .source_count = count,
                                     .clock = w->clock,
                                     .repairs = s->repairs,
                                     .scrub_us = s->scrub_us,
                                     .keep_us = LOOK_US};
    assert_ok(weir_pipeline_open(&opts, &s->pipeline));
    assert_ok(weir_pipeline_start(s->pipeline));
}

static void open_side(world *w, side *s) {
    weir_pipeline_source sources[FIXTURE_SOURCES] = {0};
    for (uint32_t i = 0; i < w->logs.log_count; i++)
        sources[i] = (weir_pipeline_source){.source = i, .stream = WEIR_PIPELINE_EVENTLOG, .log = w->logs.logs[i]};
    open_graph(w, s);
    start_with(w, s, sources, w->logs.log_count);
}

static void close_side(side *s) {
    assert_ok(weir_pipeline_close(s->pipeline));
    assert_ok(weir_graph_close(s->graph));
    s->pipeline = NULL;
    s->graph = NULL;
}

static world *world_open(const char *schema) {
    world *w = weir_calloc(1, sizeof *w);
    assert_non_null(w);
    w->rng = weir_rng_stream(weir_test_seed(), 0, 0);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    w->logs = (fixture){.schema = fixture_schema(schema), .partitions = PARTITIONS, .segment_bytes = 8192};
    assert_ok(weir_clock_manual_open(wall("2026-01-20T00:00:00Z"), &w->clock));
    fixture_open_logs(&w->logs);
    w->damaged = (side){.store = "damaged", .letters = "letters-of-damaged", .repairs = true, .scrub_us = 50 * LOOK_US};
    w->whole = (side){.store = "whole", .letters = "letters-of-whole"};
    open_side(w, &w->damaged);
    open_side(w, &w->whole);
    return w;
}

static void world_close(world *w) {
    if (w->damaged.graph) close_side(&w->damaged);
    if (w->whole.graph) close_side(&w->whole);
    for (size_t i = 0; i < w->logs.log_count; i++)
        assert_ok(weir_eventlog_close(w->logs.logs[i]));
    weir_schema_free(w->logs.schema);
    weir_clock_close(w->clock);
    weir_free(w);
}

/* --- messages ------------------------------------------------------------------------------------------------- */

static uint64_t below(world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

/* In the days before the clock began, most of them one after the other; or long after it. */
static void make_time(world *w, char text[32]) {
    uint64_t s = w->made * 60 + (below(w, 3) ? 0 : below(w, 100000));
    if (below(w, 40) == 0) {
        snprintf(text, 32, "2026-02-%02uT00:00:00Z", 1 + (unsigned)below(w, 20));
        return;
    }
    s %= 18 * 86400;
    snprintf(text, 32, "2026-01-%02uT%02u:%02u:%02uZ", 1 + (unsigned)(s / 86400), (unsigned)(s / 3600 % 24),
             (unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

static void make_text(world *w, uint64_t id, char text[TEXT_MAX]) {
    static const char *const tails[] = {
        "\"w\":%llu",           "\"w\":%llu",    "\"w\":%llu",    "\"age\":%llu",
        "\"w\":%llu,\"age\":7", "\"gone\":%llu", "\"lost\":%llu", "\"w\":\"x%llu\"", /* cannot be mapped */
    };
    char time[32], tail[64];
    make_time(w, time);
    const char *form = tails[below(w, sizeof tails / sizeof tails[0])];
    unsigned long long value = below(w, 1000);
    size_t begin = (size_t)(strstr(form, "%llu") - form);
    snprintf(tail, sizeof tail, "%.*s%llu%s", (int)begin, form, value, form + begin + 4);
    snprintf(text, TEXT_MAX,
             "{\"id\":\"e%llu\",\"t\":\"%s\",\"a\":\"a%llu\",\"b\":\"b%llu\",\"risk\":\"%s\",\"filler\":\"%llx\",%s}",
             (unsigned long long)id, time, (unsigned long long)below(w, 150), (unsigned long long)below(w, 400),
             below(w, 2) ? "low" : "high", (unsigned long long)below(w, UINT64_MAX), tail);
}

/* A new one; one of the newest again, within the window or not; or its id with another content. */
static void append_one(world *w) {
    uint32_t source = (uint32_t)below(w, w->logs.log_count), partition = (uint32_t)below(w, PARTITIONS);
    kept *last = w->last[source][partition];
    uint64_t *count = &w->counts[source][partition], what = *count ? below(w, 8) : 7;
    const kept *again = &last[below(w, *count < KEPT ? *count + 1 : KEPT)];
    char text[TEXT_MAX];
    w->made++;
    make_text(w, w->made, text);
    if (what < 2 && again->text[0]) snprintf(text, sizeof text, "%s", again->text);
    if (what == 2 && again->text[0]) make_text(w, strtoull(again->text + strlen("{\"id\":\"e"), NULL, 10), text);
    const weir_record record = {.value = text, .value_length = strlen(text), .time_us = weir_clock_wall_us(w->clock)};
    uint64_t offset;
    assert_ok(weir_eventlog_append(w->logs.logs[source], partition, &record, 1, &offset));
    snprintf(last[(*count)++ % KEPT].text, TEXT_MAX, "%s", text);
}

static void append_many(world *w, uint64_t count) {
    for (; count > 0; count--)
        append_one(w);
    for (size_t i = 0; i < w->logs.log_count; i++)
        assert_ok(weir_eventlog_sync(w->logs.logs[i]));
}

static void drain(side *s) {
    assert_ok(weir_pipeline_drain(s->pipeline, FIXTURE_WAIT));
}

static void drain_both(world *w) {
    drain(&w->damaged);
    drain(&w->whole);
}

/* --- looking at them ------------------------------------------------------------------------------------------ */

static void nap(void) {
    usleep(2000);
}

/* Whoever repairs it, this looks at everything itself. */
static void until_well(side *s) {
    while (weir_graph_scrub(s->graph, damage_never_wait, NULL) || weir_graph_health(s->graph))
        nap();
}

static weir_err any_trouble(void *context, const weir_graph_trouble *trouble) {
    (void)context;
    return trouble->err;
}

static uint64_t repairs(void) {
    return weir_metric_counter(WEIR_METRIC_STORE_REPAIRS);
}

static uint64_t failures(void) {
    return weir_metric_counter(WEIR_METRIC_STORE_REPAIR_FAILURES);
}

/* A side's letters: how many, and which, in the order of their places. */
static uint64_t letters_of(const side *s) {
    weir_pipeline_source_stats stats;
    uint64_t letters = 0;
    for (size_t i = 0; i < weir_pipeline_source_count(s->pipeline); i++) {
        weir_pipeline_source_stats_get(s->pipeline, i, &stats);
        letters += stats.dead_letters;
    }
    return letters;
}

/* letters_before: of the damaged side, before it was opened last. */
static void both_are_the_same_with(world *w, uint64_t letters_before) {
    drain_both(w);
    assert_ok(weir_graph_seal(w->damaged.graph));
    assert_ok(weir_graph_seal(w->whole.graph));
    while (weir_graph_troubles(w->damaged.graph, any_trouble, NULL)) /* the keeper says last that it is over */
        nap();
    assert_int_equal(letters_of(&w->damaged) + letters_before, letters_of(&w->whole));
    for (uint32_t i = 0; i < SHARDS; i++) {
        weir_buf wanted = damage_dump(w->whole.graph, i);
        assert_true(wanted.length > 0);
        damage_same(w->damaged.graph, i, &wanted);
        weir_buf_free(&wanted);
    }
}

static void both_are_the_same(world *w) {
    both_are_the_same_with(w, 0);
}

/* "it is made anew …", or why it cannot be. */
static weir_err find_said(void *context, const weir_graph_trouble *trouble) {
    if (strcmp(trouble->part, "repair") == 0) weir_err_sentence(trouble->err, context, WEIR_ERR_SENTENCE_MAX);
    return WEIR_OK;
}

/* Until the keeper has tried and says it; and it is tried again. */
static void is_refused(side *s, const char *sentence) {
    char said[WEIR_ERR_SENTENCE_MAX] = "";
    uint64_t before = failures();
    while (failures() < before + 3)
        nap();
    do {
        nap();
        assert_ok(weir_graph_troubles(s->graph, find_said, said));
    } while (!strstr(said, "it could not be made anew"));
    if (!strstr(said, sentence)) fail_msg("'%s' is not in: %s", sentence, said);
    assert_err(weir_graph_health(s->graph), WEIR_ECORRUPT, NULL);
}

/* --- a random stream ------------------------------------------------------------------------------------------ */

typedef struct sealer {
    world *w;
    atomic_bool over;
} sealer;

/* Seals and feeds go on while a shard is made anew. */
static void seal_over_and_over(void *context) {
    sealer *s = context;
    for (unsigned i = 0; !atomic_load(&s->over); i++) {
        (void)weir_graph_seal(s->w->damaged.graph); /* a file that is damaged may be in the way for a moment */
        if (i % 4 == 0) append_many(s->w, 30);
        weir_pipeline_wake(s->w->damaged.pipeline);
        nap();
    }
}

static void damage_some(world *w) {
    for (uint64_t i = 0, shards = 1 + weir_rng_below(&w->rng, SHARDS); i < shards; i++)
        damage_bits(&w->rng, w->damaged.store, (uint32_t)weir_rng_below(&w->rng, SHARDS),
                    1 + weir_rng_below(&w->rng, 12));
}

static void what_is_damaged_is_as_it_was(const char *schema) {
    world *w = world_open(schema);
    sealer s = {.w = w};
    const uint64_t rounds = weir_test_rounds(4) / weir_test_part(1, 2);
    for (uint64_t round = 0; round < rounds; round++) {
        weir_thread *thread;
        append_many(w, 400 + below(w, 800));
        drain_both(w);
        assert_ok(weir_graph_seal(w->damaged.graph));
        if (round == 1) weir_clock_manual_set_wall(w->clock, wall("2026-03-01T00:00:00Z")); /* the future has come */
        damage_some(w);                                                                     /* at rest */
        until_well(&w->damaged);
        both_are_the_same(w);
        atomic_store(&s.over, false);
        damage_some(w); /* on the way */
        assert_ok(weir_thread_start("sealer", WEIR_ROLE_TEST, seal_over_and_over, &s, &thread));
        until_well(&w->damaged);
        atomic_store(&s.over, true);
        weir_thread_join(thread);
        both_are_the_same(w);
    }
    printf("%llu repairs, %llu failures, %llu letters\n", (unsigned long long)repairs(), (unsigned long long)failures(),
           (unsigned long long)letters_of(&w->whole));
    assert_true(repairs() >= rounds && letters_of(&w->whole) > 25 * rounds);
    world_close(w);
}

static void a_stream_of_the_tiny_schema(void **state) {
    (void)state;
    what_is_damaged_is_as_it_was(tiny_schema);
}

static void a_stream_with_deletions_labels_and_two_sources(void **state) {
    (void)state;
    what_is_damaged_is_as_it_was(rich_schema);
}

/* In the middle of it, or before, or after: the next start finds what was damaged, and no scratch. */
static void a_stop_at_any_moment(void **state) {
    (void)state;
    world *w = world_open(rich_schema);
    append_many(w, 1500);
    for (uint64_t round = 0; round < weir_test_rounds(12) / weir_test_part(1, 4); round++) {
        uint32_t shard = (uint32_t)below(w, SHARDS);
        append_many(w, 50);
        drain_both(w);
        assert_ok(weir_graph_seal(w->damaged.graph));
        damage_a_block(w->damaged.store, shard);
        (void)weir_graph_scrub(w->damaged.graph, damage_never_wait, NULL);
        usleep((useconds_t)below(w, 60000));
        close_side(&w->damaged);
        open_side(w, &w->damaged);
        assert_false(damage_beside(w->damaged.store, shard, ".repair"));
        until_well(&w->damaged);
        drain_both(w);
        for (uint32_t i = 0; i < SHARDS; i++) {
            assert_ok(weir_graph_seal(w->whole.graph));
            assert_ok(weir_graph_seal(w->damaged.graph));
            weir_buf wanted = damage_dump(w->whole.graph, i);
            damage_same(w->damaged.graph, i, &wanted);
            weir_buf_free(&wanted);
        }
    }
    world_close(w);
}

/* --- what was refused stays refused --------------------------------------------------------------------------- */

static void append_future(world *w, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        char text[TEXT_MAX];
        snprintf(text, sizeof text,
                 "{\"id\":\"f%u\",\"t\":\"2026-02-%02uT00:00:00Z\",\"a\":\"f%u\",\"b\":\"f%u\",\"w\":1}", i, 1 + i % 20,
                 i, i);
        const weir_record record = {
            .value = text, .value_length = strlen(text), .time_us = weir_clock_wall_us(w->clock)};
        uint64_t offset;
        assert_ok(weir_eventlog_append(w->logs.logs[0], i % PARTITIONS, &record, 1, &offset));
    }
}

/* In the end of the shard's first file, which is read when the file is opened: all of its records can be read, and the
 * notes of events among them, but it is damaged. */
static void damage_the_end(const side *s, uint32_t shard) {
    static damage_files f;
    weir_file *file;
    damage_find(&f, s->store, shard);
    assert_true(f.count > 0);
    assert_ok(weir_file_open(f.paths[0], WEIR_FILE_READ, &file));
    uint64_t size = weir_file_length(file);
    assert_ok(weir_file_close(file));
    assert_true(damage_flip(f.paths[0], size - 20, 2));
}

/* A store that is filled anew beside the letters of the one before refuses the event too, and writes no second one. */
static void letters_of_an_earlier_store(void **state) {
    (void)state;
    world *w = world_open(tiny_schema);
    append_many(w, 300);
    append_future(w, 30);
    append_many(w, 300);
    drain_both(w);
    close_side(&w->damaged);
    assert_ok(weir_folder_remove(weir_test_path("damaged")));
    open_side(w, &w->damaged);
    drain(&w->damaged);
    assert_int_equal(letters_of(&w->damaged), 0);
    weir_clock_manual_set_wall(w->clock, wall("2026-03-01T00:00:00Z"));
    assert_ok(weir_graph_seal(w->damaged.graph));
    assert_ok(weir_graph_seal(w->whole.graph));
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        uint64_t before = repairs();
        damage_the_end(&w->damaged, shard);
        while (repairs() == before)
            nap();
        until_well(&w->damaged);
        for (uint32_t i = 0; i < SHARDS; i++) {
            weir_buf wanted = damage_dump(w->whole.graph, i);
            damage_same(w->damaged.graph, i, &wanted);
            weir_buf_free(&wanted);
        }
    }
    world_close(w);
}

/* --- GRAPH-R1 ------------------------------------------------------------------------------------------------- */

/* What can be read of each shard but the damaged one is read as before. */
static void others_are_read(world *w, uint32_t shard) {
    for (uint32_t i = 0; i < SHARDS; i++) {
        weir_buf wanted = i == shard ? (weir_buf){0} : damage_dump(w->whole.graph, i);
        if (i != shard) damage_same(w->damaged.graph, i, &wanted);
        weir_buf_free(&wanted);
    }
}

static world *world_sealed(uint64_t messages) {
    world *w = world_open(tiny_schema);
    append_many(w, messages);
    both_are_the_same(w);
    return w;
}

static void cut_the_log(world *w) {
    uint64_t removed, keep_from[PARTITIONS];
    for (uint32_t p = 0; p < PARTITIONS; p++)
        keep_from[p] = weir_graph_offset_sealed(w->damaged.graph, 0, p);
    assert_ok(weir_eventlog_retain_from(w->logs.logs[0], keep_from, &removed));
    assert_true(removed > 0);
}

static void r1_a_log_that_retention_has_cut(void **state) {
    (void)state;
    world *w = world_sealed(1500);
    cut_the_log(w);
    damage_a_block(w->damaged.store, 1);
    is_refused(&w->damaged, "retention has removed them. Restore a checkpoint");
    others_are_read(w, 1);
    append_many(w, 200); /* it is fed on */
    drain_both(w);
    damage_a_block(w->damaged.store, 1); /* the file comes back */
    until_well(&w->damaged);
    both_are_the_same(w);
    world_close(w);
}

/* The store has sealed an event at an offset where the log, which was cut and filled again, has another. */
static void r1_events_that_are_not_in_the_log_any_more(void **state) {
    (void)state;
    world *w = world_sealed(800);
    weir_mutation m = {.kind = WEIR_PUT_EDGE, .event = 77, .time_us = wall("2026-01-03T00:00:00Z")};
    for (m.vertex = ~(weir_vertex)0; weir_shard_of(m.vertex, SHARDS) != 1;)
        m.vertex--; /* behind all others: not beside what is damaged */
    assert_ok(submit_event(w->damaged.graph, 0, weir_graph_offset_sealed(w->damaged.graph, 0, 0), &m, 1));
    append_many(w, 300);
    drain(&w->damaged);
    assert_ok(weir_graph_seal(w->damaged.graph));
    damage_a_block(w->damaged.store, 1);
    is_refused(&w->damaged, "readable records that do not follow from the log, the first of them an edge");
    damage_a_block(w->damaged.store, 1);
    until_well(&w->damaged);
    world_close(w);
}

static void r1_a_store_that_was_fed_from_a_file_too(void **state) {
    (void)state;
    world *w = world_open(tiny_schema);
    FILE *file = fopen(weir_test_path("lines"), "w");
    char text[TEXT_MAX];
    assert_non_null(file);
    for (uint64_t i = 0; i < 200; i++) {
        w->made++;
        make_text(w, 1000000 + i, text);
        fprintf(file, "%s\n", text);
    }
    fclose(file);
    close_side(&w->damaged);
    const weir_pipeline_source lines = {.stream = WEIR_PIPELINE_FILE, .path = weir_test_path("lines")};
    open_graph(w, &w->damaged);
    start_with(w, &w->damaged, &lines, 1);
    drain(&w->damaged);
    close_side(&w->damaged);
    open_side(w, &w->damaged);
    append_many(w, 300);
    drain(&w->damaged);
    assert_ok(weir_graph_seal(w->damaged.graph));
    damage_a_block(w->damaged.store, 2);
    is_refused(&w->damaged, "it was also made from files");
    damage_a_block(w->damaged.store, 2);
    until_well(&w->damaged);
    world_close(w);
}

/* --- out of a checkpoint ---------------------------------------------------------------------------------------- */

static uint64_t restored(void) {
    return weir_metric_counter(WEIR_METRIC_STORE_RESTORED_FILES);
}

static void checkpoint_as(world *w, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "checkpoints/%s", name);
    if (!weir_path_exists(weir_test_path("checkpoints"))) assert_ok(weir_folder_create(weir_test_path("checkpoints")));
    assert_ok(weir_graph_checkpoint(w->damaged.graph, weir_test_path(path)));
}

static world *world_with_checkpoints(uint64_t messages) {
    world *w = world_open(tiny_schema);
    close_side(&w->damaged);
    w->damaged.checkpoints = "checkpoints";
    open_side(w, &w->damaged);
    append_many(w, messages);
    both_are_the_same(w);
    return w;
}

/* The log could not give it back any more. */
static void a_file_that_a_checkpoint_has_needs_no_log(void **state) {
    (void)state;
    world *w = world_with_checkpoints(1500);
    checkpoint_as(w, "first");
    cut_the_log(w);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        damage_a_block(w->damaged.store, shard);
        until_well(&w->damaged);
        assert_false(damage_beside(w->damaged.store, shard, ".damaged"));
        assert_false(damage_beside(w->damaged.store, shard, ".repair"));
    }
    assert_int_equal(restored(), SHARDS);
    while (repairs() < SHARDS) /* the keeper says last that it is over */
        nap();
    assert_int_equal(repairs(), SHARDS);
    assert_int_equal(failures(), 0);
    append_many(w, 300); /* it is fed on */
    both_are_the_same(w);
    world_close(w);
}

/* Of files that came after it, or of a checkpoint of another store, nothing comes back: the shard is made anew. */
static void a_file_that_no_checkpoint_has_is_made_anew(void **state) {
    (void)state;
    static damage_files files;
    world *w = world_with_checkpoints(1500);
    checkpoint_as(w, "first");
    append_many(w, 300);
    both_are_the_same(w);
    damage_find(&files, w->damaged.store, 1);
    for (size_t i = 0; i < files.count; i++)
        assert_true(damage_flip(files.paths[i], 20, 2));
    weir_err err = weir_graph_scrub(w->damaged.graph, damage_never_wait, NULL);
    if (err) assert_err(err, WEIR_ECORRUPT, NULL); /* the keeper may have been faster */
    until_well(&w->damaged);
    both_are_the_same(w);
    assert_true(damage_beside(w->damaged.store, 1, ".damaged"));
    assert_true(restored() > 0); /* what it has came back first */
    uint64_t before = restored();
    assert_ok(weir_folder_remove(weir_test_path("checkpoints")));
    assert_ok(weir_folder_create(weir_test_path("checkpoints")));
    assert_ok(weir_graph_checkpoint(w->whole.graph, weir_test_path("checkpoints/of-another")));
    damage_a_block(w->damaged.store, 2);
    until_well(&w->damaged);
    both_are_the_same(w);
    assert_true(damage_beside(w->damaged.store, 2, ".damaged"));
    assert_int_equal(restored(), before);
    world_close(w);
}

/* --- what is in the way ---------------------------------------------------------------------------------------- */

static void a_full_disk_is_said_and_then_it_goes_on(void **state) {
    (void)state;
    world *w = world_sealed(800);
    assert_ok(weir_fault_arm("write:1:ENOSPC:.repair/"));
    damage_a_block(w->damaged.store, 0);
    is_refused(&w->damaged, "space");
    assert_false(damage_beside(w->damaged.store, 0, ".damaged"));
    others_are_read(w, 0);
    assert_ok(weir_fault_arm(NULL));
    until_well(&w->damaged);
    assert_true(damage_beside(w->damaged.store, 0, ".damaged"));
    both_are_the_same(w);
    world_close(w);
}

/* A start reads which ids came last, out of the store: before a scrub or a question has met the damage. The sources
 * wait for the repair, which needs them. */
static void damage_that_a_start_meets_first(void **state) {
    (void)state;
    static damage_files files;
    world *w = world_sealed(3000);
    const uint64_t letters = letters_of(&w->damaged);
    close_side(&w->damaged);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        damage_find(&files, w->damaged.store, shard);
        for (size_t i = 0; i < files.count; i++) {
            weir_file *file;
            assert_ok(weir_file_open(files.paths[i], WEIR_FILE_READ, &file));
            const uint64_t bytes = weir_file_length(file);
            assert_ok(weir_file_close(file));
            for (uint64_t part = 8; part < 24 && bytes > 20000; part++) /* the first block has the offsets */
                assert_true(damage_flip(files.paths[i], bytes * part / 32, 2));
        }
    }
    open_side(w, &w->damaged);
    append_many(w, 300);
    until_well(&w->damaged);
    both_are_the_same_with(w, letters);
    assert_true(repairs() > 0);
    world_close(w);
}

/* With store.repair: false a scrub tells, whatever it waits for between files, and nobody mends. */
static void without_repairs_damage_is_only_told(void **state) {
    (void)state;
    world *w = world_sealed(3000);
    close_side(&w->damaged);
    w->damaged.repairs = false;
    w->damaged.scrub_us = 24 * LOOK_US;
    open_side(w, &w->damaged);
    damage_a_block(w->damaged.store, 1);
    while (!weir_graph_health(w->damaged.graph))
        nap();
    uint64_t scrubbed = weir_metric_counter(WEIR_METRIC_STORE_SCRUBBED_BYTES);
    while (weir_metric_counter(WEIR_METRIC_STORE_SCRUBBED_BYTES) < scrubbed + (8u << 20))
        nap();
    assert_err(weir_graph_health(w->damaged.graph), WEIR_ECORRUPT, NULL);
    assert_int_equal(repairs() + failures(), 0);
    assert_false(damage_beside(w->damaged.store, 1, ".damaged"));
    world_close(w);
}

/* --- trimmed shards --------------------------------------------------------------------------------------------- */

static uint64_t trims(void) {
    return weir_metric_counter(WEIR_METRIC_STORE_TRIMS);
}

static bool any_is_due(const side *s) {
    bool due = false;
    for (uint32_t i = 0; i < SHARDS; i++)
        due = due || weir_graph_trim_due(s->graph, i);
    return due;
}

/* Which records are there hangs on when each side was trimmed, what is told does not. */
static void both_tell_the_same(world *w, weir_arena *arena, int64_t before_us) {
    for (unsigned i = 0; i < 150; i++) {
        char key[16];
        size_t length = (size_t)snprintf(key, sizeof key, "a%u", i);
        weir_vertex v = weir_vertex_id(&weir_id_key_public, "account", key, length);
        const weir_edge *a, *b;
        uint32_t count, wanted, key_length;
        uint16_t type;
        const char *name, *wanted_name;
        weir_arena_reset(arena);
        assert_ok(weir_graph_neighbors(w->whole.graph, v, 0, WEIR_OUT, before_us, 5000, arena, &b, &wanted));
        assert_ok(weir_graph_neighbors(w->damaged.graph, v, 0, WEIR_OUT, before_us, 5000, arena, &a, &count));
        assert_int_equal(count, wanted);
        for (uint32_t e = 0; e < count; e++)
            assert_true(a[e].neighbor == b[e].neighbor && a[e].time_us == b[e].time_us && a[e].event == b[e].event);
        assert_ok(weir_graph_name(w->whole.graph, v, arena, &type, &wanted_name, &key_length));
        assert_ok(weir_graph_name(w->damaged.graph, v, arena, &type, &name, &key_length));
        assert_int_equal(name != NULL, wanted_name != NULL);
    }
}

typedef struct clocks {
    int64_t least_us, newest_us;
} clocks;

static weir_err take_clock(void *context, const weir_graph_clock *clock) {
    clocks *c = context;
    if (clock->clock_us < c->least_us) c->least_us = clock->clock_us;
    if (clock->clock_us > c->newest_us) c->newest_us = clock->clock_us;
    return WEIR_OK;
}

static void append_at(world *w, uint32_t partition, int64_t time_us) {
    char time[WEIR_TIME_TEXT_MAX], text[TEXT_MAX];
    uint64_t offset;
    weir_time_format(time_us, time);
    w->made++;
    int length = snprintf(text, sizeof text, "{\"id\":\"e%llu\",\"t\":\"%s\",\"a\":\"a0\",\"b\":\"b0\",\"w\":1}",
                          (unsigned long long)w->made, time);
    const weir_record record = {.value = text, .value_length = (size_t)length, .time_us = weir_clock_wall_us(w->clock)};
    assert_ok(weir_eventlog_append(w->logs.logs[0], partition, &record, 1, &offset));
}

/* A watermark never goes back, so it hangs on which partition a side read first. Both are brought to one time: every
 * partition says the newest time that a clock shows, more often than a clock remembers, and once more if a clock was
 * on its way to a newer one. */
static int64_t both_are_at_one_time(world *w) {
    drain_both(w);
    for (;;) {
        clocks c = {INT64_MAX, INT64_MIN};
        assert_ok(weir_graph_clocks(w->damaged.graph, take_clock, &c));
        assert_ok(weir_graph_clocks(w->whole.graph, take_clock, &c));
        if (c.least_us == c.newest_us && weir_graph_watermark(w->damaged.graph) == c.newest_us &&
            weir_graph_watermark(w->whole.graph) == c.newest_us)
            return c.newest_us;
        for (uint32_t i = 0; i < 64 * PARTITIONS; i++)
            append_at(w, i % PARTITIONS, c.newest_us);
        assert_ok(weir_eventlog_sync(w->logs.logs[0]));
        drain_both(w);
        nap(); /* a clock moves a moment after what was read is applied */
    }
}

/* The keeper trims; what it has trimmed is damaged then, and made anew from a log that says more. */
static void a_trimmed_shard_is_made_anew(void **state) {
    (void)state;
    world *w = world_open(kept_schema);
    weir_arena *arena;
    assert_ok(weir_arena_open(64u << 20, &arena));
    for (int round = 0; round < 3; round++) {
        uint64_t mended = repairs();
        append_many(w, 3000);
        int64_t now_us = both_are_at_one_time(w);
        assert_ok(weir_graph_seal(w->damaged.graph));
        assert_ok(weir_graph_seal(w->whole.graph));
        while (any_is_due(&w->damaged) || any_is_due(&w->whole))
            nap();
        damage_a_block(w->damaged.store, (uint32_t)round);
        until_well(&w->damaged);
        assert_true(repairs() > mended);
        both_tell_the_same(w, arena, WEIR_BEFORE_ALL);
        both_tell_the_same(w, arena, now_us - HOUR_US);
        both_tell_the_same(w, arena, now_us - 29 * HOUR_US);
    }
    assert_int_equal(weir_metric_counter(WEIR_METRIC_STORE_TRIM_FAILURES), 0);
    assert_true(trims() >= 2ull * SHARDS);
    weir_arena_close(arena);
    world_close(w);
}

WEIR_TESTS(WEIR_CASE(a_trimmed_shard_is_made_anew), WEIR_CASE(a_stream_of_the_tiny_schema),
           WEIR_CASE(a_stream_with_deletions_labels_and_two_sources), WEIR_CASE(a_stop_at_any_moment),
           WEIR_CASE(letters_of_an_earlier_store), WEIR_CASE(r1_a_log_that_retention_has_cut),
           WEIR_CASE(r1_events_that_are_not_in_the_log_any_more), WEIR_CASE(r1_a_store_that_was_fed_from_a_file_too),
           WEIR_CASE(a_file_that_a_checkpoint_has_needs_no_log), WEIR_CASE(a_file_that_no_checkpoint_has_is_made_anew),
           WEIR_CASE(a_full_disk_is_said_and_then_it_goes_on), WEIR_CASE(without_repairs_damage_is_only_told),
           WEIR_CASE(damage_that_a_start_meets_first))
