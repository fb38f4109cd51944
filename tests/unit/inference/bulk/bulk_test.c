/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk_test.c - files of scores and embeddings of a snapshot, held against what a server says of the living graph that
 * the snapshot was made of: its scorer shares neither the source, nor the batches, nor the times with what is tested.
 */
#include "score_fixture.h"

#include <math.h>
#include <unistd.h>

#include <weir/inference/bulk/bulk.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#define EVENTS     900u
#define LATER      25u /* of a hundred events: followed by one that says more of a vertex, or deletes it */
#define FILE_BYTES (8u << 20)
#define TOLERANCE  1e-5
#define ONE_THREAD "its threads do what they do in the other cases"

typedef struct bulk_world {
    score_world world;
    score_net net;
    weir_score_model *model;
    weir_scorer *scorer;
    weir_arena *arena;
    weir_snapshot *snapshot;
    weir_pack *pack;
    weir_bulk_opts opts;
    char path[4096], folder[4096]; /* that was written last, and of the snapshot */
} bulk_world;

static const char *numbered(const char *format) {
    static unsigned number;
    char name[64];
    snprintf(name, sizeof name, "%u%s", number++, format);
    return weir_test_path(name);
}

static void snapshot_make(bulk_world *b, int64_t history_us) {
    const weir_graph_opts read_only = {.read_only = true};
    weir_snapshot_build_opts build = {.as_of_us = b->world.now_us + 1, .history_us = history_us};
    weir_snapshot_stats stats;
    weir_graph *still;
    char checkpoint[4096], folder[4096];
    snprintf(b->folder, sizeof b->folder, "%s", numbered("snapshot"));
    snprintf(checkpoint, sizeof checkpoint, "%s", numbered("checkpoint"));
    snprintf(folder, sizeof folder, "%s", numbered("still"));
    build.out = b->folder;
    assert_ok(weir_graph_checkpoint(b->world.graph, checkpoint));
    assert_ok(weir_graph_restore(checkpoint, folder));
    assert_ok(weir_graph_open(folder, b->world.schema, &read_only, &still));
    assert_ok(weir_snapshot_build(still, &build, &stats));
    assert_ok(weir_graph_close(still));
    assert_ok(weir_snapshot_open(b->folder, &(weir_snapshot_opts){.verify = true}, &b->snapshot));
    b->opts.snapshot = b->snapshot;
}

/* The network, trees or both as they come out of a folder. */
static void pack_make(bulk_world *b) {
    const score_net *net = &b->net;
    const bool trees_alone = net->family == SCORE_TREES;
    const weir_pack_opts opts = {.nn = trees_alone ? NULL : net->nn,
                                 .params = net->params,
                                 .shape = net->shape,
                                 .trees = net->trees,
                                 .hops = net->hops,
                                 .blend = score_blend,
                                 .sample_seed = 77,
                                 .slope = 2,
                                 .offset = -1,
                                 .schema_hash = weir_schema_hash(b->world.schema)};
    const weir_model_opts unsigned_too = {.accept_unsigned = true};
    weir_pack_draft *draft;
    weir_model *model;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", numbered("model"));
    assert_ok(weir_pack_draft_open(&opts, &draft));
    assert_ok(weir_model_write(folder, weir_pack_draft_opts(draft)));
    assert_ok(weir_model_open(folder, &unsigned_too, &model));
    assert_ok(weir_pack_open(model, weir_kernels_cpu(), &b->pack));
    weir_model_close(model);
    weir_pack_draft_close(draft);
    b->opts.pack = b->pack;
}

static void bulk_open(bulk_world *b, score_family family, uint64_t events, uint64_t later) {
    const uint64_t seed = weir_test_seed();
    *b = (bulk_world){.opts = {.from_us = INT64_MIN, .to_us = INT64_MAX, .scores = true, .batch = 100, .threads = 2}};
    score_world_open(&b->world, seed, numbered("store"));
    score_world_grow_telling(&b->world, events, later);
    score_net_open_family(&b->net, b->world.schema, seed, family, WEIR_TREE_COLUMNS_HOPS_MAX);
    b->model = score_model_of(&b->net, b->world.schema, "1");
    assert_ok(weir_scorer_open(b->world.graph, &b->scorer));
    assert_ok(weir_arena_open(1u << 20, &b->arena));
    snapshot_make(b, 0);
    pack_make(b);
}

static void bulk_close(bulk_world *b) {
    weir_pack_close(b->pack);
    weir_snapshot_close(b->snapshot);
    weir_arena_close(b->arena);
    weir_scorer_close(b->scorer);
    weir_score_model_drop(b->model);
    score_net_close(&b->net);
    score_world_close(&b->world);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static char *load(const char *path, size_t *lengthp) {
    static char *loaded; /* a local one dangles in GCC's eyes, which cannot see that its content alone is kept */
    assert_ok(weir_file_load(path, FILE_BYTES, &loaded, lengthp));
    return loaded;
}

/* A new file of what the options say; with its bytes, which are to be freed. */
static char *written(bulk_world *b, const char *ending, weir_bulk_stats *stats, size_t *lengthp) {
    snprintf(b->path, sizeof b->path, "%s", numbered(ending));
    b->opts.path = b->path;
    assert_ok(weir_bulk_run(&b->opts, stats));
    return load(b->path, lengthp);
}

typedef struct bulk_line {
    uint64_t key;
    int64_t time_us;
    double cells[32];
    uint32_t cell_count;
} bulk_line;

/* The next line of a table whose keys are numbers; false: there is none. */
static bool next_line(char **atp, bulk_line *line) {
    char *end, *at = *atp;
    if (!*at) return false;
    line->key = strtoull(at, &end, 10);
    assert_true(end > at && *end == ',');
    at = end + 1;
    const size_t length = strcspn(at, ",\n");
    assert_ok(weir_time_parse(at, length, &line->time_us));
    at += length;
    for (line->cell_count = 0; *at == ','; at = end) {
        assert_true(line->cell_count < 32);
        line->cells[line->cell_count++] = strtod(at + 1, &end);
        assert_true(end > at + 1);
    }
    assert_int_equal(*at, '\n');
    *atp = at + 1;
    return true;
}

static char *behind_head(char *text, const char *head) {
    assert_memory_equal(text, head, strlen(head));
    return strchr(text, '\n') + 1;
}

/* --- what a server says ------------------------------------------------------------------------------------------- */

static void near(double a, double b, const char *what, uint64_t key) {
    if (fabs(a - b) <= TOLERANCE * (1 + fabs(b))) return;
    fail_msg("%s of %llu: %.9g in the file, %.9g by the server", what, (unsigned long long)key, a, b);
}

static void same_score(bulk_world *b, const bulk_line *line, const weir_score_ask *ask) {
    weir_score score;
    assert_ok(weir_scorer_run(b->scorer, b->model, ask, 1, &score));
    assert_int_equal(line->cell_count, 2);
    near(line->cells[0], score.logit, "score", line->key);
    near(line->cells[1], score.probability, "probability", line->key);
    if (b->net.family == SCORE_TREES) assert_true((float)line->cells[0] == (float)score.logit);
}

/* Each life that lasts, as of its put: those of the deleted are in the file, too, and no server knows them. */
static void scores_as_served(score_family family) {
    bulk_world b;
    weir_bulk_stats stats;
    bulk_line line;
    size_t length;
    uint64_t rows = 0, lasting = 0, living = 0, events = EVENTS / weir_test_part(3, 4);
    char key[SCORE_VERTEX_KEY];
    bulk_open(&b, family, events, LATER);
    char *text = written(&b, "s.csv", &stats, &length), *at = behind_head(text, "key,time,score,probability\n");
    while (next_line(&at, &line)) {
        weir_score_ask ask;
        rows++;
        weir_arena_reset(b.arena);
        weir_err err =
            weir_score_ask_vertex(b.world.graph, b.model, score_vertex(&b.world, SCORE_PAYMENT, line.key, key),
                                  b.world.now_us, b.arena, &ask);
        if (weir_err_is(err, WEIR_ENOTFOUND)) continue;
        assert_ok(err);
        if (ask.time_us != line.time_us) continue; /* an earlier life */
        same_score(&b, &line, &ask);
        lasting++;
    }
    for (uint64_t n = 1; n <= b.world.events; n++) {
        bool known;
        int64_t first_us;
        weir_arena_reset(b.arena);
        assert_ok(weir_graph_first_put(b.world.graph, score_vertex(&b.world, SCORE_PAYMENT, n, key), WEIR_BEFORE_ALL,
                                       b.arena, &known, &first_us));
        living += known;
    }
    assert_true(rows == stats.rows && stats.old == 0 && stats.unknown == 0);
    assert_true(lasting == living && rows > living && living > events / 2);
    weir_free(text);
    bulk_close(&b);
}

static void b2_scores_of_a_network_are_as_served(void **state) {
    (void)state;
    weir_test_skip_under("thread", ONE_THREAD);
    scores_as_served(SCORE_NETWORK);
}

static void b2_scores_of_trees_are_as_served(void **state) {
    (void)state;
    scores_as_served(SCORE_TREES);
}

static void b2_scores_of_a_blend_are_as_served(void **state) {
    (void)state;
    weir_test_skip_under("thread", ONE_THREAD);
    scores_as_served(SCORE_BLEND);
}

/* All that had been put by then, and nothing else, without an event of its own. The blend draws nothing at random, so
 * its targets share their trees; the network's do not. */
static void b2_scores_as_of_one_time_are_as_served(void **state) {
    (void)state;
    weir_test_skip_under("thread", ONE_THREAD);
    for (score_family family = SCORE_NETWORK; family <= SCORE_BLEND; family++) {
        bulk_world b;
        weir_bulk_stats stats, all;
        bulk_line line;
        size_t length;
        uint64_t before = 0, rows = 0;
        char key[SCORE_VERTEX_KEY];
        bulk_open(&b, family, EVENTS / 3, 0);
        const int64_t then_us = SCORE_START_US + (b.world.now_us - SCORE_START_US) / 2;
        char *text = written(&b, "s.csv", &all, &length), *at = strchr(text, '\n') + 1;
        while (next_line(&at, &line))
            before += line.time_us < then_us;
        weir_free(text);
        b.opts.at_once = true;
        b.opts.as_of_us = then_us;
        text = written(&b, "s.csv", &stats, &length);
        at = strchr(text, '\n') + 1;
        for (; next_line(&at, &line); rows++) {
            const weir_score_ask ask = {.vertex = score_vertex(&b.world, SCORE_PAYMENT, line.key, key),
                                        .time_us = then_us};
            assert_true(line.time_us == then_us);
            same_score(&b, &line, &ask);
        }
        assert_true(rows == before && stats.rows == rows && rows > 50 && rows < all.rows);
        weir_free(text);
        bulk_close(&b);
    }
}

/* Of each type what GET /v1/embeddings would answer at the snapshot's time. */
static void b2_embeddings_are_as_served(void **state) {
    (void)state;
    weir_test_skip_under("thread", ONE_THREAD);
    static const score_family families[] = {SCORE_NETWORK, SCORE_BLEND};
    for (size_t f = 0; f < 2; f++) {
        bulk_world b;
        bulk_open(&b, families[f], EVENTS, LATER);
        const int64_t end_us = weir_snapshot_as_of_us(b.snapshot);
        b.opts.scores = false;
        for (b.opts.type = 0; b.opts.type < SCORE_TYPES; b.opts.type++) {
            weir_bulk_stats stats;
            bulk_line line;
            size_t length;
            uint64_t rows = 0;
            char key[SCORE_VERTEX_KEY];
            char *text = written(&b, "e.csv", &stats, &length), *at = behind_head(text, "key,time,e0,e1,");
            for (; next_line(&at, &line); rows++) {
                weir_score_ask ask;
                weir_score score;
                weir_arena_reset(b.arena);
                assert_ok(weir_score_ask_embedding(b.world.graph, b.model, (uint16_t)b.opts.type,
                                                   score_vertex(&b.world, b.opts.type, line.key, key), end_us, b.arena,
                                                   &ask));
                assert_ok(weir_scorer_run(b.scorer, b.model, &ask, 1, &score));
                assert_true(line.time_us == ask.time_us);
                assert_int_equal(line.cell_count, score.embedding_width);
                for (uint32_t c = 0; c < score.embedding_width; c++)
                    near(line.cells[c], (double)score.embedding[c], "embedding", line.key);
            }
            assert_true(rows == stats.rows && rows >= (b.opts.type == SCORE_SHOP ? 4 : 15));
            weir_free(text);
        }
        bulk_close(&b);
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void b1_any_number_of_threads_writes_the_same(void **state) {
    (void)state;
    static const char *const endings[] = {"x.csv", "x.npy"};
    bulk_world b;
    bulk_open(&b, SCORE_BLEND, EVENTS / 3, LATER);
    b.opts.batch = 13;
    for (unsigned kind = 0; kind < 4; kind++) {
        weir_bulk_stats stats;
        size_t length, other_length;
        b.opts.scores = kind < 2;
        b.opts.type = SCORE_ACCOUNT;
        b.opts.threads = 1;
        char *one = written(&b, endings[kind % 2], &stats, &length);
        for (b.opts.threads = 2; b.opts.threads <= 5; b.opts.threads++) {
            char *other = written(&b, endings[kind % 2], &stats, &other_length);
            assert_true(length == other_length && memcmp(one, other, length) == 0);
            weir_free(other);
        }
        weir_free(one);
    }
    bulk_close(&b);
}

/* An array and its keys are the columns of the table. */
static void an_array_is_the_table(void **state) {
    (void)state;
    bulk_world b;
    weir_bulk_stats stats;
    bulk_line line, name;
    size_t length;
    bulk_open(&b, SCORE_NETWORK, EVENTS / 3, LATER);
    for (unsigned scores = 0; scores < 2; scores++) {
        char path[4096 + 16];
        weir_npy_map *map;
        weir_npy_array array;
        uint64_t rows = 0;
        b.opts.scores = scores;
        b.opts.type = SCORE_SHOP;
        char *table = written(&b, "t.csv", &stats, &length), *at = strchr(table, '\n') + 1;
        weir_free(written(&b, "t.npy", &stats, &length));
        snprintf(path, sizeof path, "%.*s.keys.csv", (int)strlen(b.path) - 4, b.path);
        char *keys = load(path, &length), *key = behind_head(keys, "key,time\n");
        assert_ok(weir_npy_map_open(b.path, &map, &array));
        assert_int_equal(array.type, scores ? WEIR_NPY_F64 : WEIR_NPY_F32);
        assert_true(array.dims == 2 && array.shape[0] == stats.rows);
        for (; next_line(&at, &line); rows++) {
            assert_true(next_line(&key, &name) && name.key == line.key && name.time_us == line.time_us);
            assert_int_equal(name.cell_count, 0);
            assert_int_equal(line.cell_count, array.shape[1]);
            for (uint32_t c = 0; c < line.cell_count; c++) {
                const double cell = weir_npy_f64(&array, rows * array.shape[1] + c);
                assert_true(fabs(cell - line.cells[c]) <= 1e-8 * fabs(cell));
            }
        }
        assert_true(rows == stats.rows && !*key);
        weir_npy_map_close(map);
        weir_free(keys);
        weir_free(table);
    }
    bulk_close(&b);
}

/* By hand: lives put in [from, to); of a history of two hours none from before it. */
static void times_choose_lives(void **state) {
    (void)state;
    bulk_world b;
    weir_bulk_stats all, some;
    bulk_line line;
    size_t length;
    uint64_t between = 0, late = 0;
    bulk_open(&b, SCORE_TREES, EVENTS / 3, LATER);
    const int64_t span_us = b.world.now_us - SCORE_START_US, history_us = 2 * 3600 * 1000000ll;
    const int64_t from_us = SCORE_START_US + span_us / 4, to_us = SCORE_START_US + span_us / 2;
    char *text = written(&b, "s.csv", &all, &length), *at = strchr(text, '\n') + 1;
    while (next_line(&at, &line)) {
        between += line.time_us >= from_us && line.time_us < to_us;
        late += line.time_us >= b.world.now_us + 1 - history_us;
    }
    weir_free(text);
    b.opts.from_us = from_us;
    b.opts.to_us = to_us;
    weir_free(written(&b, "s.csv", &some, &length));
    assert_true(some.rows == between && between > 20 && between < all.rows);

    b.opts.from_us = INT64_MIN;
    b.opts.to_us = INT64_MAX;
    weir_snapshot_close(b.snapshot);
    snapshot_make(&b, history_us);
    weir_free(written(&b, "s.csv", &some, &length));
    assert_int_equal(some.rows, late);
    assert_true(some.old > 0 && late > 0);
    b.opts.at_once = true;
    b.opts.as_of_us = weir_snapshot_from_us(b.snapshot) - 1;
    assert_err(weir_bulk_run(&b.opts, &some), WEIR_EUSAGE, "does not cover that time");
    b.opts.as_of_us = weir_snapshot_as_of_us(b.snapshot) + 1;
    assert_err(weir_bulk_run(&b.opts, &some), WEIR_EUSAGE, "does not cover that time");
    bulk_close(&b);
}

static bool is_there(const char *stem, const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", stem, ending);
    return access(path, F_OK) == 0;
}

/* Each operation on files fails once: then the old files are whole, or the new ones, or the array is gone. */
static void b3_a_file_is_whole_or_not_there(void **state) {
    (void)state;
    bulk_world b;
    weir_bulk_stats stats;
    size_t length, keys_length;
    char stem[4096], path[4096 + 8], keys_path[4096 + 16];
    bool failed = true;
    bulk_open(&b, SCORE_TREES, EVENTS / 6, 0);
    snprintf(stem, sizeof stem, "%s", numbered("f"));
    snprintf(path, sizeof path, "%s.npy", stem);
    snprintf(keys_path, sizeof keys_path, "%s.keys.csv", stem);
    b.opts.path = path;
    b.opts.to_us = SCORE_START_US + (b.world.now_us - SCORE_START_US) / 2;
    assert_ok(weir_bulk_run(&b.opts, &stats));
    char *old = load(path, &length), *old_keys = load(keys_path, &keys_length);
    b.opts.to_us = INT64_MAX;
    for (unsigned nth = 1; failed; nth++) {
        char spec[64];
        size_t now_length, now_keys_length;
        snprintf(spec, sizeof spec, "any:%u:EIO:once:/%s", nth, strrchr(stem, '/') + 1);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_bulk_run(&b.opts, &stats);
        failed = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        if (!failed) assert_ok(err);
        if (!is_there(stem, ".npy")) continue;
        char *now = load(path, &now_length), *now_keys = load(keys_path, &now_keys_length);
        const bool is_old = now_length == length && memcmp(now, old, length) == 0;
        const bool keys_are_old = now_keys_length == keys_length && memcmp(now_keys, old_keys, keys_length) == 0;
        assert_true(is_old == keys_are_old);
        if (is_old) assert_true(err);
        weir_free(now);
        weir_free(now_keys);
    }
    assert_false(is_there(stem, ".npy.partial") || is_there(stem, ".keys.csv.partial"));
    weir_free(old);
    weir_free(old_keys);
    bulk_close(&b);
}

/* What a killed process has left is removed; what another one writes is not touched. */
static void b3_what_another_has_begun(void **state) {
    (void)state;
    bulk_world b;
    weir_bulk_stats stats;
    weir_file *left;
    size_t length;
    char path[4096], partial[4096 + 16];
    bulk_open(&b, SCORE_TREES, EVENTS / 6, 0);
    snprintf(path, sizeof path, "%s", numbered("p.csv"));
    snprintf(partial, sizeof partial, "%s.partial", path);
    b.opts.path = path;
    assert_ok(weir_file_open(partial, WEIR_FILE_CREATE, &left));
    assert_ok(weir_file_append(left, "half", 4));
    assert_ok(weir_file_lock(left));
    assert_err(weir_bulk_run(&b.opts, &stats), WEIR_EBUSY, "p.csv.partial");
    assert_true(is_there(partial, "") && !is_there(path, ""));
    assert_ok(weir_file_close(left));
    assert_ok(weir_bulk_run(&b.opts, &stats));
    assert_false(is_there(partial, ""));
    weir_free(load(path, &length));
    bulk_close(&b);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    bulk_world b;
    weir_bulk_stats stats;
    char path[4096];
    bulk_open(&b, SCORE_TREES, 60, 0);
    snprintf(path, sizeof path, "%s", numbered("r.txt"));
    b.opts.path = path;
    assert_err(weir_bulk_run(&b.opts, &stats), WEIR_EUSAGE, "neither .csv nor .npy");
    b.opts.path = weir_test_path("nowhere/x.csv");
    assert_err(weir_bulk_run(&b.opts, &stats), WEIR_ENOTFOUND, "nowhere/x.csv");
    b.opts.scores = false;
    snprintf(path, sizeof path, "%s", numbered("r.csv"));
    b.opts.path = path;
    assert_err(weir_bulk_run(&b.opts, &stats), WEIR_ENOTFOUND, "boosted trees");
    bulk_close(&b);
}

/* Lists of a snapshot that nobody has checked lead anywhere: a file, or a sentence, and never a crash. */
static void damaged_lists_are_refused(void **state) {
    (void)state;
    weir_test_skip_under("thread", ONE_THREAD);
    static const char *const names[] = {"vertices/payment/lives/indptr.npy", "vertices/payment/key_offsets.npy",
                                        "relations/paid_by/out/indptr.npy", "relations/paid_by/out/neighbors.npy",
                                        "vertices/account/lives/indptr.npy"};
    bulk_world b;
    weir_bulk_stats stats;
    unsigned refused = 0;
    bulk_open(&b, SCORE_NETWORK, 60, LATER);
    snprintf(b.path, sizeof b.path, "%s", numbered("d.csv"));
    b.opts.path = b.path;
    for (unsigned round = 0; round < 60; round++) {
        const int64_t values[] = {-1, INT64_MIN, INT64_MAX, (int64_t)score_below(&b.world, 200), 1};
        char name[4096 + 64], *bytes;
        size_t length;
        snprintf(name, sizeof name, "%s/%s", b.folder, names[score_below(&b.world, 5)]);
        assert_ok(weir_file_load(name, FILE_BYTES, &bytes, &length));
        FILE *file = fopen(name, "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, (long)(128 + 8 * score_below(&b.world, (length - 128) / 8)), SEEK_SET), 0);
        assert_int_equal(fwrite(&values[score_below(&b.world, 5)], sizeof *values, 1, file), 1);
        assert_int_equal(fclose(file), 0);
        weir_snapshot_close(b.snapshot);
        b.snapshot = NULL;
        weir_err err = weir_snapshot_open(b.folder, &(weir_snapshot_opts){.verify = false}, &b.snapshot);
        b.opts.snapshot = b.snapshot;
        b.opts.scores = score_below(&b.world, 2);
        b.opts.type = SCORE_ACCOUNT;
        if (!err) err = weir_bulk_run(&b.opts, &stats);
        refused += err != WEIR_OK;
        if (err) assert_true(weir_err_is(err, WEIR_ECORRUPT) || weir_err_is(err, WEIR_EDATA));
        file = fopen(name, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, length, file), length);
        assert_int_equal(fclose(file), 0);
        weir_free(bytes);
    }
    assert_true(refused > 5 && refused < 60);
    bulk_close(&b);
}

/* One thread: of two, one might take the allocation that was meant to fail for the other. */
static weir_err attempt(void *context) {
    bulk_world *b = context;
    weir_bulk_stats stats;
    weir_err err = weir_bulk_run(&b->opts, &stats);
    assert_true(is_there(b->path, "") == !err && !is_there(b->path, ".partial"));
    if (!err) assert_int_equal(unlink(b->path), 0);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    bulk_world b;
    bulk_open(&b, SCORE_BLEND, 40, 0);
    snprintf(b.path, sizeof b.path, "%s", numbered("a.csv"));
    b.opts.path = b.path;
    b.opts.threads = 1;
    weir_test_every_allocation(attempt, &b);
    bulk_close(&b);
}

WEIR_TESTS(WEIR_CASE(b2_scores_of_a_network_are_as_served), WEIR_CASE(b2_scores_of_trees_are_as_served),
           WEIR_CASE(b2_scores_of_a_blend_are_as_served), WEIR_CASE(b2_scores_as_of_one_time_are_as_served),
           WEIR_CASE(b2_embeddings_are_as_served), WEIR_CASE(b1_any_number_of_threads_writes_the_same),
           WEIR_CASE(an_array_is_the_table), WEIR_CASE(times_choose_lives), WEIR_CASE(b3_a_file_is_whole_or_not_there),
           WEIR_CASE(b3_what_another_has_begun), WEIR_CASE(what_cannot_be_is_refused),
           WEIR_CASE(damaged_lists_are_refused), WEIR_CASE(every_allocation_may_fail))
