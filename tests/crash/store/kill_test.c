/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_test.c - kill -9 of a process that feeds a graph from a log; nothing acknowledged is lost, nothing counts twice.
 *
 *   parent: appends, syncs, keeps a book        child: graph and pipeline, seals and checkpoints ──SIGKILL
 *        └── after each kill: a third process opens what is left, reads the log on, and compares every vertex with
 *            the naive replay of the log; now and then it does so from the last whole checkpoint
 *
 * A child begins with a backlog to replay, so that early kills fall into recovery. The last line sums up;
 * tests/crash/run repeats it with a seed.
 */
#include "campaign.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>

enum {
    CYCLES = 20,
    SHARDS = 3,
    LIFE_MAX_MS = 120,
    LIFE_OF_POINT_MS = 10000,
    FRESH_EVERY = 25, /* cycles: what is compared grows with the log */
    LIST_MAX = 8192,
    ARENA_BYTES = 256 << 20
};

typedef struct totals {
    uint64_t cycles, events, lost, duplicated, seed;
} totals;

static totals *sum; /* shared with all children */

typedef struct kill_point {
    const char *name;
    uint64_t passes_max;
} kill_point;

static const kill_point points[] = {
    {"seal.begin", 9},          {"seal.half_written", 9},
    {"engine.finished", 9},     {"engine.ingested", 9},
    {"seal.ingested", 9},       {"seal.end", 9},
    {"shard.applied", 30},      {"checkpoint.shard", 6},
    {"checkpoint.whole", 2},    {"pipeline.letters_synced", 20},
    {"pipeline.submitted", 20},
};
#define POINTS (sizeof points / sizeof points[0])

typedef struct campaign {
    stream stream;
    book book;
    weir_eventlog *log;
    uint64_t cycle;
    const kill_point *point; /* NULL: at a random moment */
    uint64_t passes;
    uint64_t seal_us;
} campaign;

/* --- the child -------------------------------------------------------------------------------------------------- */

static void open_feed(fixture *f, const char *store) {
    const weir_eventlog_opts opts = {.read_only = true};
    const weir_pipeline_source source = {.source = 0, .stream = WEIR_PIPELINE_EVENTLOG};
    weir_pipeline_source sources[1] = {source};
    f->log_count = 1;
    f->graph_opts.create = true;
    f->graph_opts.id_key = &weir_id_key_public;
    assert_ok(weir_eventlog_open(weir_test_path("log"), "cards", &opts, &f->logs[0]));
    assert_ok(weir_graph_open(store, f->schema, &f->graph_opts, &f->graph));
    sources[0].log = f->logs[0];
    const weir_pipeline_opts pipeline = {.graph = f->graph,
                                         .folder = store,
                                         .letter_folder = weir_test_path("log"),
                                         .sources = sources,
                                         .source_count = 1};
    assert_ok(weir_pipeline_open(&pipeline, &f->pipeline));
    assert_ok(weir_pipeline_start(f->pipeline));
}

static void remove_if_there(const char *name) {
    if (weir_path_exists(weir_test_path(name))) assert_ok(weir_folder_remove(weir_test_path(name)));
}

/* The one before is moved away first: what stands under the name is always whole. */
static void make_checkpoint(weir_graph *graph) {
    remove_if_there("checkpoint.next");
    remove_if_there("checkpoint.old");
    assert_ok(weir_graph_checkpoint(graph, weir_test_path("checkpoint.next")));
    if (weir_path_exists(weir_test_path("checkpoint")))
        assert_ok(weir_file_rename(weir_test_path("checkpoint"), weir_test_path("checkpoint.old")));
    assert_ok(weir_file_rename(weir_test_path("checkpoint.next"), weir_test_path("checkpoint")));
}

_Noreturn static void child(const campaign *c) {
    fixture f = {.schema = fixture_schema(campaign_schema),
                 .graph_opts = {.shards = SHARDS, .seal_us = (int64_t)c->seal_us, .memory_bytes = 64u << 20}};
    char spec[64];
    weir_rng rng = weir_rng_stream(c->cycle, c->seal_us, 1);
    snprintf(spec, sizeof spec, "%s:%" PRIu64, c->point ? c->point->name : "", c->passes);
    if (c->point) assert_ok(weir_fault_kill_arm(spec));
    open_feed(&f, weir_test_path("store"));
    for (;;) {
        usleep((useconds_t)weir_rng_below(&rng, 40000));
        make_checkpoint(f.graph);
    }
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static void count_loss(const char *what, weir_vertex vertex) {
    sum->lost++;
    fprintf(stderr, "lost: %s of " WEIR_VERTEX_FORMAT "\n", what, WEIR_VERTEX_WORDS(vertex));
}

static void count_double(const char *what, weir_vertex vertex) {
    sum->duplicated++;
    fprintf(stderr, "more than there should be: %s of " WEIR_VERTEX_FORMAT "\n", what, WEIR_VERTEX_WORDS(vertex));
}

static int order_of(const weir_edge *a, const naive_edge *b) {
    if (a->time_us != b->time_us) return a->time_us > b->time_us ? -1 : 1;
    if (a->neighbor != b->neighbor) return a->neighbor < b->neighbor ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

static bool same_row(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length) {
    return a_length == b_length && (a_length == 0 || memcmp(a, b, a_length) == 0);
}

/* Both newest first: what stands in one only is lost, or there once too often. */
static void compare_edges(fixture_expected *e, weir_vertex vertex, weir_direction direction, weir_arena *arena) {
    static naive_edge wanted[LIST_MAX];
    const weir_edge *edges;
    uint32_t count, i = 0;
    size_t wanted_count = naive_graph_neighbors(e->naive, vertex, 0, direction, INT64_MAX, 0, naive_graph_now(e->naive),
                                                LIST_MAX, wanted),
           w = 0;
    assert_ok(
        weir_graph_neighbors(e->f->graph, vertex, 0, direction, WEIR_BEFORE_ALL, LIST_MAX, arena, &edges, &count));
    while (i < count || w < wanted_count) {
        int order = i == count ? 1 : w == wanted_count ? -1 : order_of(&edges[i], &wanted[w]);
        if (order < 0) count_double("an edge", vertex);
        if (order > 0) count_loss("an edge", vertex);
        if (order == 0 && !same_row(edges[i].row, edges[i].row_length, wanted[w].row, wanted[w].row_length))
            count_loss("the features of an edge", vertex);
        i += order <= 0;
        w += order >= 0;
    }
}

static void compare_features(fixture_expected *e, weir_vertex vertex, weir_arena *arena) {
    static const weir_value_kind kinds[2] = {WEIR_VALUE_NUMBER, WEIR_VALUE_NUMBER};
    static naive_edge rows[LIST_MAX];
    weir_value wanted[2] = {0}, found[2] = {0};
    weir_row_view view;
    size_t count = naive_graph_rows(e->naive, vertex, WEIR_PUT_VERTEX, 0, INT64_MAX, LIST_MAX, rows);
    for (size_t i = 0; i < count; i++)
        weir_row_fill(kinds, 2, rows[i].row, rows[i].row_length, wanted);
    assert_ok(weir_graph_features(e->f->graph, vertex, WEIR_BEFORE_ALL, arena, &view));
    if (view.row) weir_row_read(kinds, 2, view.row, view.row_length, found);
    for (size_t i = 0; i < 2; i++) {
        if (wanted[i].present != found[i].present || (found[i].present && wanted[i].number != found[i].number))
            (wanted[i].present ? count_loss : count_double)("a feature", vertex);
    }
}

static void compare_label(fixture_expected *e, weir_vertex vertex, weir_arena *arena) {
    naive_edge wanted;
    weir_row_view view;
    bool known = naive_graph_label(e->naive, vertex, 0, WEIR_BEFORE_ALL, 0, &wanted);
    assert_ok(weir_graph_label(e->f->graph, vertex, 0, WEIR_BEFORE_ALL, arena, &view));
    if (known && (!view.row || !same_row(view.row, view.row_length, wanted.row, wanted.row_length)))
        count_loss("a label", vertex);
    if (!known && view.row) count_double("a label", vertex);
}

static void compare_name(fixture_expected *e, weir_vertex vertex, weir_arena *arena) {
    const char *key;
    uint32_t length;
    uint16_t type;
    size_t wanted_length;
    const char *wanted = naive_graph_name(e->naive, vertex, &wanted_length);
    assert_ok(weir_graph_name(e->f->graph, vertex, arena, &type, &key, &length));
    if (wanted && (!key || length != wanted_length || memcmp(key, wanted, length) != 0)) count_loss("the name", vertex);
    if (!wanted && key) count_double("the name", vertex);
}

static void compare_graph(fixture *f, weir_arena *arena) {
    fixture_expected e;
    fixture_expect(f, &e);
    qsort(e.vertices, e.vertex_count, sizeof *e.vertices, fixture_order);
    for (size_t i = 0; i < e.vertex_count; i++) {
        if (i > 0 && e.vertices[i] == e.vertices[i - 1]) continue;
        compare_edges(&e, e.vertices[i], WEIR_OUT, arena);
        compare_edges(&e, e.vertices[i], WEIR_IN, arena);
        compare_features(&e, e.vertices[i], arena);
        compare_label(&e, e.vertices[i], arena);
        compare_name(&e, e.vertices[i], arena);
        weir_arena_reset(arena);
    }
    fixture_expected_close(&e);
}

/* --- dead letters: one for each broken message, none for others -------------------------------------------------- */

typedef struct letters {
    uint8_t *seen[CAMPAIGN_PARTITIONS];
    const book *book;
    weir_mapper *mapper;
} letters;

static void letter_met(void *context, uint64_t number, const weir_dead_letter *letter) {
    letters *l = context;
    (void)number;
    assert_true(letter->partition < CAMPAIGN_PARTITIONS && letter->offset < l->book->counts[letter->partition]);
    if (l->seen[letter->partition][letter->offset]++) count_double("a dead letter", letter->offset);
}

static void check_record(void *context, const fixture_record *r) {
    letters *l = context;
    weir_mapped mapped;
    uint64_t offset = r->record->offset;
    if (l->book->hashes[r->partition][offset] != campaign_hash(r->record->value, r->record->value_length))
        count_loss("an acknowledged message", offset);
    bool refused =
        weir_mapper_map(l->mapper, r->partition, offset, r->record->value, r->record->value_length, &mapped) != WEIR_OK;
    if (refused && !l->seen[r->partition][offset]) count_loss("a dead letter", offset);
    if (!refused && l->seen[r->partition][offset]) count_double("a dead letter", offset);
}

static uint64_t durable_end(fixture *f, uint32_t partition) {
    weir_eventlog_partition_stats stats;
    assert_ok(weir_eventlog_stats_get(f->logs[0], partition, &stats));
    return stats.offset_durable;
}

static void compare_letters(fixture *f, const book *b) {
    letters l = {.book = b};
    assert_ok(weir_mapper_open(f->schema, 0, &weir_id_key_public, &l.mapper));
    for (uint32_t p = 0; p < CAMPAIGN_PARTITIONS; p++) {
        assert_non_null(l.seen[p] = weir_calloc(b->counts[p] + 1, 1));
        assert_int_equal(durable_end(f, p), b->counts[p]);
    }
    fixture_letters(letter_met, &l);
    fixture_walk(f, check_record, &l);
    for (uint32_t p = 0; p < CAMPAIGN_PARTITIONS; p++)
        weir_free(l.seen[p]);
    weir_mapper_close(l.mapper);
}

/* A process of its own, since threads do not live through a fork. It ends as untidily as the child, or tidily. */
_Noreturn static void checker(const campaign *c, const char *store, bool tidy) {
    fixture f = {.schema = fixture_schema(campaign_schema),
                 .graph_opts = {.shards = SHARDS, .seal_us = (int64_t)c->seal_us, .memory_bytes = 64u << 20}};
    weir_arena *arena;
    assert_ok(weir_arena_open(ARENA_BYTES, &arena));
    open_feed(&f, store);
    assert_ok(weir_pipeline_drain(f.pipeline, FIXTURE_WAIT));
    compare_graph(&f, arena);
    compare_letters(&f, &c->book);
    if (!tidy) kill(getpid(), SIGKILL);
    weir_arena_close(arena);
    fixture_close(&f);
    _exit(0);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static void check(const campaign *c, const char *store, bool tidy) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) checker(c, store, tidy);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(tidy ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
    if (!tidy) assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* What a kill has left, before anybody repairs it: each shard is what the log says below its own offsets (S1, S3). */
static void verify_as_left(void) {
    const char *const argv[] = {
        weir_test_program(),   "store", "verify", "--against-log", "--path", weir_test_path("store"), "--log",
        weir_test_path("log"), NULL};
    weir_test_output output;
    if (!weir_path_exists(weir_test_path("store/graph.yaml"))) return; /* killed while it was being made */
    weir_test_run(argv, NULL, &output);
    if (output.status) fprintf(stderr, "%s%s", output.out, output.err);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
}

/* A whole checkpoint, whenever it was made, catches up with the log. */
static void check_checkpoint(const campaign *c) {
    if (!weir_path_exists(weir_test_path("checkpoint"))) return;
    const char *restored = weir_test_path("restored");
    if (weir_path_exists(restored)) assert_ok(weir_folder_remove(restored));
    assert_ok(weir_graph_restore(weir_test_path("checkpoint"), restored));
    check(c, weir_test_path("restored"), true);
    assert_ok(weir_folder_remove(weir_test_path("restored")));
}

static void start_afresh(campaign *c) {
    const weir_eventlog_opts opts = {.partitions = CAMPAIGN_PARTITIONS};
    assert_ok(weir_eventlog_close(c->log));
    remove_if_there("store");
    remove_if_there("log");
    remove_if_there("checkpoint");
    remove_if_there("checkpoint.next");
    remove_if_there("checkpoint.old");
    memset(c->book.counts, 0, sizeof c->book.counts);
    assert_ok(weir_eventlog_open(weir_test_path("log"), "cards", &opts, &c->log));
}

/* Streams until the child is dead: by its own point, or by us at the end of its life. */
static int stream_until_dead(campaign *c, pid_t pid, int64_t life_us) {
    weir_clock *clock = weir_clock_system();
    int64_t end_us = weir_clock_mono_us(clock) + life_us;
    bool killed = false;
    int status;
    while (waitpid(pid, &status, killed ? 0 : WNOHANG) == 0) {
        if (weir_clock_mono_us(clock) >= end_us) {
            kill(pid, SIGKILL);
            killed = true;
            continue;
        }
        campaign_append(&c->stream, &c->book, c->log, 1 + weir_rng_below(&c->stream.rng, 40));
        usleep(1000 + (useconds_t)weir_rng_below(&c->stream.rng, 4000));
    }
    return status;
}

static uint64_t acknowledged(const campaign *c) {
    uint64_t count = 0;
    for (uint32_t p = 0; p < CAMPAIGN_PARTITIONS; p++)
        count += c->book.counts[p];
    return count;
}

static void cycle(campaign *c) {
    weir_rng *rng = &c->stream.rng;
    if (c->cycle % FRESH_EVERY == 0) start_afresh(c);
    uint64_t before = acknowledged(c);
    c->seal_us = 3000 + weir_rng_below(rng, 40000);
    campaign_append(&c->stream, &c->book, c->log, 1 + weir_rng_below(rng, 400));
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) child(c);
    int64_t life_ms = c->point ? LIFE_OF_POINT_MS : (int64_t)weir_rng_below(rng, LIFE_MAX_MS);
    int status = stream_until_dead(c, pid, life_ms * 1000);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    verify_as_left();
    check(c, weir_test_path("store"), weir_rng_below(rng, 2));
    if (weir_rng_below(rng, 4) == 0) check_checkpoint(c);
    sum->cycles++;
    sum->events += acknowledged(c) - before;
    assert_int_equal(sum->lost, 0);
    assert_int_equal(sum->duplicated, 0);
}

static void quiet(void) {
    weir_log_opts opts = weir_log_defaults();
    opts.level = WEIR_LOG_ERROR;
    weir_log_setup(&opts);
}

static uint64_t cycles_wanted(void) {
    const char *given = getenv("WEIR_TEST_CRASH_CYCLES");
    return given ? strtoull(given, NULL, 10) : weir_test_rounds(CYCLES);
}

static void run(uint64_t cycles, bool at_points, uint64_t substream) {
    campaign c = {.cycle = 0};
    quiet();
    sum->seed = weir_test_seed();
    c.stream.rng = weir_rng_stream(sum->seed, substream, 0);
    for (c.cycle = 0; c.cycle < cycles; c.cycle++) {
        c.point = at_points ? &points[c.cycle % POINTS] : NULL;
        c.passes = c.point ? 1 + weir_rng_below(&c.stream.rng, c.point->passes_max) : 0;
        cycle(&c);
    }
    assert_ok(weir_eventlog_close(c.log));
    for (uint32_t p = 0; p < CAMPAIGN_PARTITIONS; p++)
        weir_free(c.book.hashes[p]);
}

static void kill_at_random_moments(void **state) {
    (void)state;
    uint64_t cycles = cycles_wanted();
    run(cycles - cycles * POINTS / CYCLES, false, 1);
}

static void kill_at_every_named_point(void **state) {
    (void)state;
    run(cycles_wanted() * POINTS / CYCLES, true, 2);
}

static const weir_test_case cases[] = {WEIR_CASE(kill_at_random_moments), WEIR_CASE(kill_at_every_named_point)};

int main(int argc, char **argv) {
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, weir_rng_fresh_seed());
    setenv("WEIR_TEST_SEED", seed, 0); /* one for both cases, so that the last line repeats them */
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sum == MAP_FAILED) return 2;
    int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    if (sum->cycles) {
        printf("%" PRIu64 " cycles, %" PRIu64 " events, %" PRIu64 " lost, %" PRIu64 " duplicated, seed %" PRIu64 "\n",
               sum->cycles, sum->events, sum->lost, sum->duplicated, sum->seed);
    }
    return status;
}
