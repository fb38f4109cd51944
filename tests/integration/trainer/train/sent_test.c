/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sent_test.c - what ranks ask each other for, to the byte. What it has to be follows from the arrays of the snapshot,
 * whose lists are walked here, and from the ids in the folders of the parts; a library before MPI counts what is sent.
 */
#include <inttypes.h>
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/trainer/train/targets.h>

#include "learn_fixture.h"
#include "ranks.h"
#include "shell.h"

#define RANKS        3u
#define TYPES        2u
#define EPOCHS       2u
#define NEWEST       6u
#define VERTICES_MAX 1024u
#define WHOLE        (-1) /* as a depth: there are no parts */
#define ASK_BYTES    32u  /* vertex, time, event, type and place */

/* How often a training goes through the targets of each part: epochs learn, each is judged, what is kept once more. */
static const uint64_t passes[WEIR_TARGETS_PARTS] = {EPOCHS, EPOCHS + 1, 1};

static struct {
    weir_snapshot *snapshot;
    weir_targets *targets;
    uint32_t *owner_of[TYPES];                        /* of each vertex of the snapshot */
    uint64_t rows[RANKS][RANKS], bytes[RANKS][RANKS]; /* that the first has to ask the second for, and to be answered */
    bool seen[RANKS][TYPES][VERTICES_MAX];            /* by that rank, in the batch at hand */
    uint64_t calls[RANKS][3], sent[RANKS][3][RANKS];  /* as were counted: of asks, of answers, of sampling */
} world;

enum { ASKS, ANSWERS, SAMPLES };

/* --- who owns what ------------------------------------------------------------------------------------------------ */

/* Without parts, by ids. */
static void owners_read(int depth) {
    for (uint32_t type = 0; type < weir_schema_vertex_count(weir_snapshot_schema(world.snapshot)); type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(world.snapshot, type);
        world.owner_of[type] = calloc(v->count, sizeof **world.owner_of);
        assert_non_null(world.owner_of[type]);
        for (uint64_t i = 0; i < v->count; i++)
            world.owner_of[type][i] = depth == WHOLE ? (uint32_t)(v->ids[i].low % RANKS) : RANKS;
        for (uint32_t p = 0; depth != WHOLE && p < RANKS; p++) {
            char name[32];
            weir_part *part;
            snprintf(name, sizeof name, "parts/part-%u", p);
            assert_ok(weir_part_open(weir_test_path(name), &(weir_part_opts){.verify = true}, &part));
            const weir_snapshot_vertices *has = weir_snapshot_vertices_of(weir_part_snapshot(part), type);
            for (uint64_t k = 0; k < has->own; k++)
                for (uint64_t i = 0; i < v->count; i++)
                    if (memcmp(&has->ids[k], &v->ids[i], sizeof v->ids[i]) == 0) world.owner_of[type][i] = p;
            weir_part_close(part);
        }
        for (uint64_t i = 0; i < v->count; i++)
            assert_true(world.owner_of[type][i] < RANKS);
    }
}

static void world_open(const weir_targets_opts *which, int depth) {
    memset(&world, 0, sizeof world);
    assert_ok(weir_snapshot_open(weir_test_path("snapshot"), &(weir_snapshot_opts){0}, &world.snapshot));
    assert_ok(weir_targets_open(world.snapshot, which, &world.targets));
    owners_read(depth);
}

static void world_close(void) {
    for (uint32_t type = 0; type < TYPES; type++)
        free(world.owner_of[type]);
    weir_targets_close(world.targets);
    weir_snapshot_close(world.snapshot);
}

/* Of a row: what holds however late it is asked for, and what does not. */
typedef struct row_bytes {
    uint64_t fixed, moving;
} row_bytes;

/* As of another time in the same batch, what holds is said to be the same, in a byte. */
static void wants(uint32_t reader, uint32_t type, uint64_t vertex, uint64_t times, row_bytes bytes) {
    const uint32_t owner = world.owner_of[type][vertex];
    bool *seen = &world.seen[reader][type][vertex];
    if (owner == reader) return;
    world.rows[reader][owner] += times;
    world.bytes[reader][owner] += times * ((*seen ? 1 : bytes.fixed) + bytes.moving);
    *seen = true;
}

/* --- trained, and counted ----------------------------------------------------------------------------------------- */

static void counted(unsigned rank) {
    static const char *const names[] = {"to ask ", "to answer ", "to sample "};
    char name[32], *text = NULL;
    size_t length;
    snprintf(name, sizeof name, "sent.%u", rank);
    assert_ok(weir_file_load(weir_test_path(name), 4096, &text, &length));
    for (unsigned kind = 0; kind < 3; kind++) {
        char *at = strstr(text, names[kind]);
        assert_non_null(at);
        world.calls[rank][kind] = strtoull(at + strlen(names[kind]), &at, 10);
        for (unsigned to = 0; to < RANKS; to++)
            world.sent[rank][kind][to] = strtoull(at, &at, 10);
        assert_int_equal(*at, '\n');
    }
    weir_free(text);
}

/* depth: of parts, or WHOLE. more ends with NULL. */
static void trains_watched(int depth, const char *const *more) {
    char number[16], snapshot[4096], parts[4096], run[4096];
    const char *arguments[48] = {NULL};
    size_t count = 0;
    weir_test_output output;
    snprintf(number, sizeof number, "%d", EPOCHS);
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts"));
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    if (depth != WHOLE) arguments[count++] = "--parts";
    arguments[count++] = depth == WHOLE ? snapshot : parts;
    const char *const fixed[] = {"--folder",   run, "--epochs", number, "--learn",       "once",
                                 "--patience", "0", "--hidden", "8",    "--no-baselines"};
    memcpy(arguments + count, fixed, sizeof fixed);
    count += sizeof fixed / sizeof *fixed;
    while (*more)
        arguments[count++] = *more++;
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("sent"), 1), 0);
    ranks_run(RANKS, ranks_train_program(), arguments, &output);
    unsetenv("LD_PRELOAD");
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    for (unsigned rank = 0; rank < RANKS; rank++)
        counted(rank);
}

static void cut(int depth) {
    char line[256];
    snprintf(line, sizeof line,
             "cd $folder && rm -rf parts run && $weir partition snapshot --parts %u --depth %d --method random --out "
             "parts >/dev/null",
             RANKS, depth);
    if (depth != WHOLE) shell(line);
}

/* Of each rank to each other: what it asks for, and what it answers; and nothing else, nothing to itself. */
static void sent_is_what_is_wanted(void) {
    uint64_t all = 0;
    for (unsigned from = 0; from < RANKS; from++) {
        for (unsigned to = 0; to < RANKS; to++) {
            const uint64_t rows = world.rows[from][to], bytes = world.bytes[from][to];
            if (world.sent[from][ASKS][to] != rows * ASK_BYTES || world.sent[to][ANSWERS][from] != bytes)
                fail_msg("rank %u of rank %u: %" PRIu64 " rows of %" PRIu64 " bytes, and asked by %" PRIu64
                         " bytes, answered by %" PRIu64,
                         from, to, rows, bytes, world.sent[from][ASKS][to], world.sent[to][ANSWERS][from]);
            all += rows;
        }
        assert_int_equal(world.sent[from][ASKS][from] + world.sent[from][ANSWERS][from], 0);
        assert_int_equal(world.calls[from][ASKS], world.calls[0][ASKS]);
        assert_int_equal(world.calls[from][ANSWERS], world.calls[0][ASKS]);
    }
    assert_true(all > 0);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const row_bytes pay_bytes = {8, 0}, /* a number and whether it is missing */
    who_bytes = {8, 4},                    /* and an aggregate */
    friend_bytes = {8, 0};

/* A pay sees who it is of, and that one's newest pays of before: each as of its time, so as rows of its own. Nobody is
 * ever put again. */
static void pays_want(uint64_t target, uint32_t reader, uint64_t times) {
    const weir_target *t = &world.targets->targets[target];
    const weir_snapshot_edges *by = weir_snapshot_edges_of(world.snapshot, LEARN_BY, WEIR_OUT);
    const weir_snapshot_edges *of = weir_snapshot_edges_of(world.snapshot, LEARN_BY, WEIR_IN);
    const int64_t pay = (int64_t)t->vertex;
    assert_int_equal(by->indptr[pay + 1] - by->indptr[pay], 1);
    const int64_t who = by->neighbors[by->indptr[pay]];
    wants(reader, LEARN_WHO, (uint64_t)who, times, who_bytes);
    unsigned newest = 0;
    for (int64_t e = of->indptr[who]; e < of->indptr[who + 1] && newest < NEWEST; e++) {
        if (of->times[e] >= t->before_us) continue;
        wants(reader, LEARN_PAY, (uint64_t)of->neighbors[e], times, pay_bytes);
        newest++;
    }
}

static void e4_of_pays(int depth) {
    static const char *const more[] = {"--task",       "bad",         "--fanouts", "6,6",       "--batch",
                                       "1024",         "--negatives", "0",         "--warm-up", "0.05",
                                       "--validation", "0.25",        "--test",    "0.25",      NULL};
    const weir_targets_opts which = {.task = LEARN_TASK_BAD,
                                     .cut = {.warm_up = 0.05, .validation = 0.25, .test = 0.25}};
    cut(depth);
    world_open(&which, depth);
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
        memset(world.seen, 0, sizeof world.seen); /* a part is one batch */
        for (uint64_t i = weir_targets_begin(world.targets, part); i < world.targets->ends[part]; i++)
            pays_want(i, world.owner_of[LEARN_PAY][(uint64_t)world.targets->targets[i].vertex], passes[part]);
    }
    trains_watched(depth, more);
    sent_is_what_is_wanted();
    world_close();
}

static void e4_rows_of_others_and_no_more(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 700, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
    for (int depth = WHOLE; depth <= 1; depth++)
        e4_of_pays(depth);
}

#define FRIENDS 240u

/* Who knows whom, without times. */
static void import_friends(void) {
    weir_buf nodes = {0}, edges = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 7, 0);
    weir_buf_text(&nodes, "id,label,number.x,mask.learn,mask.look,mask.judge\n");
    weir_buf_text(&edges, "src,dst\n");
    for (unsigned i = 0; i < FRIENDS; i++) {
        const unsigned part = i < 12 ? i % 3 : (unsigned)weir_rng_below(&rng, 4);
        weir_buf_printf(&nodes, "%u,%c,%u,%d,%d,%d\n", i, i / 3 % 2 ? 'a' : 'b', i, part == 0, part == 1, part == 2);
        for (uint64_t k = weir_rng_below(&rng, 4); k > 0; k--)
            weir_buf_printf(&edges, "%u,%u\n", i, (unsigned)weir_rng_below(&rng, FRIENDS));
    }
    assert_ok(weir_file_replace(weir_test_path("nodes.csv"), nodes.bytes, nodes.length));
    assert_ok(weir_file_replace(weir_test_path("edges.csv"), edges.bytes, edges.length));
    shell("cd $folder && $weir snapshot import snapshot --nodes nodes.csv --edges edges.csv --undirected >/dev/null");
    weir_buf_free(&nodes);
    weir_buf_free(&edges);
}

/* Whatever of a rank's targets lead to, two steps far, is in one batch once. */
static void friends_want(weir_targets_part part, uint32_t reader) {
    static bool reached[FRIENDS];
    const weir_snapshot_edges *e = weir_snapshot_edges_of(world.snapshot, 0, WEIR_OUT);
    memset(reached, 0, sizeof reached);
    for (uint64_t i = weir_targets_begin(world.targets, part); i < world.targets->ends[part]; i++) {
        const int64_t one = (int64_t)world.targets->targets[i].vertex;
        if (world.owner_of[0][one] != reader) continue;
        reached[one] = true;
        for (int64_t k = e->indptr[one]; k < e->indptr[one + 1]; k++) {
            const int64_t two = e->neighbors[k];
            reached[two] = true;
            for (int64_t n = e->indptr[two]; n < e->indptr[two + 1]; n++)
                reached[e->neighbors[n]] = true;
        }
    }
    for (uint64_t v = 0; v < FRIENDS; v++)
        if (reached[v]) wants(reader, 0, v, passes[part], friend_bytes);
}

/* A batch has all targets of its part, and what many of them lead to is asked for once. */
static void e4_a_row_is_asked_for_once_a_batch(void **state) {
    (void)state;
    static const char *const more[] = {"--masks", "learn,look,judge", "--fanouts", "64,64",      "--strategy",
                                       "full",    "--batch",          "240",       "--out-only", NULL};
    const weir_targets_opts which = {.cut = {.split = WEIR_TARGETS_BY_MASKS, .masks = {"learn", "look", "judge"}}};
    import_friends();
    for (int depth = WHOLE; depth <= 1; depth++) {
        cut(depth);
        world_open(&which, depth);
        for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
            memset(world.seen, 0, sizeof world.seen);
            for (uint32_t rank = 0; rank < RANKS; rank++)
                friends_want(part, rank);
        }
        trains_watched(depth, more);
        sent_is_what_is_wanted();
        world_close();
    }
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

#define HOP_ROUNDS 2u  /* a question and its answer */
#define BATCH_OF   64u /* targets */

static uint64_t batches(void) {
    uint64_t all = 0;
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
        const uint64_t count = world.targets->ends[part] - weir_targets_begin(world.targets, part);
        all += passes[part] * ((count + BATCH_OF - 1) / BATCH_OF);
    }
    return all;
}

/* A part has the edges of its own vertices, so the first hop from a batch asks nobody, not even by an empty round; so
 * do as many more as the part is deep. Each further hop is one round of questions and one of answers a batch. */
static void e2_hops_within_a_part_are_silent(void **state) {
    (void)state;
    static const char *const fanouts[] = {"6", "6,6", "6,6,4"};
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 500, .people = 30, .bad = 0.3};
    const weir_targets_opts which = {.task = LEARN_TASK_BAD,
                                     .cut = {.warm_up = 0.05, .validation = 0.25, .test = 0.25}};
    learn_snapshot(&plan, weir_test_path("snapshot"));
    for (int depth = WHOLE; depth <= 1; depth++) {
        cut(depth);
        world_open(&which, depth);
        for (unsigned layers = 1; layers <= 3; layers++) {
            const char *const more[] = {"--task",       "bad",  "--fanouts", fanouts[layers - 1],
                                        "--batch",      "64",   "--warm-up", "0.05",
                                        "--validation", "0.25", "--test",    "0.25",
                                        "--negatives",  "0",    NULL};
            const unsigned silent = depth == WHOLE ? layers : 1 + (unsigned)depth;
            const uint64_t hops = layers > silent ? layers - silent : 0;
            trains_watched(depth, more);
            for (unsigned rank = 0; rank < RANKS; rank++) {
                uint64_t bytes = 0;
                for (unsigned to = 0; to < RANKS; to++)
                    bytes += world.sent[rank][SAMPLES][to];
                assert_int_equal(world.calls[rank][SAMPLES], HOP_ROUNDS * hops * batches());
                assert_true((bytes > 0) == (hops > 0));
                assert_int_equal(world.sent[rank][SAMPLES][rank], 0);
            }
        }
        world_close();
    }
}

WEIR_TESTS(WEIR_CASE(e4_rows_of_others_and_no_more), WEIR_CASE(e4_a_row_is_asked_for_once_a_batch),
           WEIR_CASE(e2_hops_within_a_part_are_silent))
