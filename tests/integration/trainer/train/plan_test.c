/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_test.c - what `weir-train --plan` says, beside what a training with the same options then needs: its own
 * checkpoint, its log, the calls that it makes to MPI, and the kernel's count of its memory.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/snapshot/npy.h>

#include "learn_fixture.h"
#include "ranks.h"
#include "shell.h"

#define RANKS_MAX   4u
#define EPOCHS      3u   /* of the longer training: less one of the shorter one, two epochs without what comes before */
#define STATE_STEPS 3u   /* of checkpoint/state.npy */
#define SENT_WITHIN 0.05 /* of bytes between ranks that are sampled */
#define LEAST_SHARE 0.7  /* of the memory that is planned, what a training has at least */
#define MOST_SHARE  1.25 /* and at most */

/* A graph and how it is trained on: words of a command line. */
typedef struct sample {
    const char *graph, *options;
    unsigned ranks;
} sample;

/* What a training was seen to need. */
typedef struct needs {
    uint64_t sent[RANKS_MAX], memory[RANKS_MAX];
    uint64_t floats, told, steps;
} needs;

static char *words(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *words(const char *format, ...) {
    static char texts[4][8192];
    static unsigned next;
    char *text = texts[next++ % 4];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof texts[0], format, list);
    va_end(list);
    return text;
}

/* mpirun of one rank, too: it then counts. */
static const char *train(const sample *s, const char *more) {
    return words("cd $folder && mpirun --allow-run-as-root --oversubscribe --bind-to none -n %u '%s' %s %s %s",
                 s->ranks, ranks_train_program(), s->graph, s->options, more);
}

static void run(const char *line, char **outp) {
    const char *const argv[] = {"bash", "-e", "-o", "pipefail", "-c", line, NULL};
    char folder[4096];
    snprintf(folder, sizeof folder, "folder=%s", weir_test_folder());
    const char *environment[8] = {folder};
    size_t count = 1;
    for (const char *const *e = ranks_environment; *e; e++)
        environment[count++] = *e;
    weir_test_output output;
    if (access("/usr/bin/mpirun", X_OK) != 0) weir_test_skip("there is no mpirun; install openmpi-bin");
    weir_test_run(argv, environment, &output);
    if (output.status) fail_msg("status %d\n%s\n%s\n%s", output.status, line, output.out, output.err);
    if (outp) {
        *outp = output.out;
        output.out = NULL;
    }
    weir_test_output_free(&output);
}

static json_t *plan_of(const sample *s) {
    char *text;
    json_error_t error;
    run(train(s, "--plan --json"), &text);
    json_t *plan = json_loads(text, 0, &error);
    if (!plan) fail_msg("%s\n%s", error.text, text);
    free(text);
    return plan;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("there is no number '%s'", key);
    return json_number_value(value);
}

static const json_t *rank_of(const json_t *plan, unsigned rank) {
    return json_array_get(json_object_get(plan, "of"), rank);
}

static void see(const sample *s, unsigned epochs, needs *seen) {
    weir_npy_map *map;
    weir_npy_array array;
    *seen = (needs){.floats = 0};
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("watched"), 1), 0);
    run(train(s, words("--learn once --no-baselines --patience 0 --epochs %u --folder run", epochs)), NULL);
    unsetenv("LD_PRELOAD");
    for (unsigned rank = 0; rank < s->ranks; rank++) {
        char *text = NULL;
        size_t length;
        uint64_t channel[4][4] = {{0}};
        assert_ok(weir_file_load(words("%s.%u", weir_test_path("watched"), rank), 4096, &text, &length));
        char *at = text;
        for (unsigned i = 0; i < 4 && *at >= '0' && *at <= '9'; i++, at++)
            for (unsigned k = 0; k < 4; k++)
                channel[i][k] = strtoull(at, &at, 10);
        /* 0: what comes before the batches, which is as much whatever the epochs */
        seen->sent[rank] = channel[0][2] + channel[1][2] + channel[2][2] + channel[3][2];
        at = strstr(text, "embeddings ");
        if (at) at += strlen("embeddings ");
        for (unsigned k = 0; at && k < 3; k++) { /* calls, messages, bytes */
            const uint64_t count = strtoull(at, &at, 10);
            seen->sent[rank] += k == 2 ? count : 0;
        }
        at = strstr(text, "sums ");
        assert_non_null(at);
        seen->floats = strtoull(at + 5, &at, 10);
        seen->told = strtoull(at, &at, 10);
        seen->memory[rank] = strtoull(at, &at, 10) << 10;
        assert_true(*at == ' ' && seen->memory[rank] > 0); /* and then how many sums and tellings that were */
        weir_free(text);
    }
    assert_ok(weir_npy_map_open(weir_test_path("run/checkpoint/state.npy"), &map, &array));
    seen->steps = ((const uint64_t *)array.data)[STATE_STEPS];
    weir_npy_map_close(map);
}

/* of: what the difference is a share of. */
static void near(const char *what, double planned, double is, double within, double of) {
    print_message("  %-24s planned %14.0f, seen %14.0f: %+.1f %%\n", what, planned, is, 100 * (planned - is) / of);
    if (!(fabs(planned - is) <= within * of)) fail_msg("%s: planned %.9g, seen %.9g", what, planned, is);
}

static void sent_as_planned(const sample *s, const json_t *plan, const needs *one, const needs *more) {
    double steps = (double)(more->steps - one->steps), floats = (double)(more->floats - one->floats) / steps;
    double told = (double)(more->told - one->told) / steps, all = 0, planned = 0;
    for (unsigned rank = 0; rank < s->ranks; rank++) {
        planned += number(rank_of(plan, rank), "sent_epoch_bytes");
        all += (double)(more->sent[rank] - one->sent[rank]) / (EPOCHS - 1);
    }
    near("all send an epoch", planned, all, SENT_WITHIN, all);
    for (unsigned rank = 0; rank < s->ranks; rank++)
        near(words("rank %u sends an epoch", rank), number(rank_of(plan, rank), "sent_epoch_bytes"),
             (double)(more->sent[rank] - one->sent[rank]) / (EPOCHS - 1), 2 * SENT_WITHIN, all / s->ranks);
    near("floats summed a step", number(plan, "summed_floats_step"), floats, SENT_WITHIN, floats);
    near("bytes told a step", number(plan, "told_bytes_step"), told, SENT_WITHIN, fmax(told, 1));
}

static void as_planned(const sample *s) {
    needs one, more;
    print_message("%u ranks: %s %s\n", s->ranks, s->graph, s->options);
    json_t *plan = plan_of(&(sample){s->graph, words("%s --epochs %u", s->options, EPOCHS), s->ranks});
    see(s, 1, &one);
    see(s, EPOCHS, &more);
    assert_int_equal((uint64_t)number(plan, "steps_first_epoch"), one.steps);
    assert_int_equal((uint64_t)number(plan, "steps"), more.steps);
    if (s->ranks > 1) sent_as_planned(s, plan, &one, &more);
    for (unsigned rank = 0; rank < s->ranks; rank++) {
        double planned = number(rank_of(plan, rank), "peak_bytes"), is = (double)more.memory[rank];
        print_message("  rank %u's memory           planned %14.0f, seen %14.0f: %.2f of it\n", rank, planned, is,
                      is / planned);
        if (is < LEAST_SHARE * planned || is > MOST_SHARE * planned)
            fail_msg("rank %u: planned %.0f bytes, seen %.0f", rank, planned, is);
    }
    char *text;
    run("cd $folder && cat run/checkpoint/*.npy | wc -c", &text);
    near("bytes of a checkpoint", number(plan, "checkpoint_bytes"), strtod(text, NULL), 0.01, strtod(text, NULL));
    free(text);
    json_decref(plan);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static void make_payments(void) {
    run(words(
            "cd $folder && weir='%s'; \"$weir\" simulate payments --days 60 --accounts 200 --fraud-rate 0.02 --seed 1 "
            "--to file:out && \"$weir\" load --schema payments --data d out/*.jsonl && \"$weir\" snapshot build "
            "payments --path d/store && \"$weir\" partition payments --parts 3 "
            "--out cut",
            weir_test_program()),
        NULL);
}

static void make_cora(void) {
    const char *data = words("%s/tests/data/cora", getenv("WEIR_SOURCE_DIR"));
    run(words(
            "cd $folder && weir='%s'; \"$weir\" snapshot import cora --nodes %s/nodes.csv --edges %s/edges.csv --bits "
            "nonzero --undirected && \"$weir\" partition cora --parts 3 --method random --out cora-parts",
            weir_test_program(), data, data),
        NULL);
}

/* Of many small batches, a few are tried; of the last, ranks draw edges for each other, too. */
static void payments_as_planned(void **state) {
    (void)state;
    make_payments();
    as_planned(&(sample){"payments", "--batch 32 --negatives 150", 1});
    as_planned(&(sample){"payments", "--batch 32 --negatives 150", 3});
    as_planned(&(sample){"--parts cut", "--batch 32 --negatives 150 --fanouts 6,4,3 --wire half", 3});
}

/* Memory of batches and layers is most of what there is. */
static void large_batches_as_planned(void **state) {
    (void)state;
    make_payments();
    as_planned(&(sample){"payments", "--batch 1024 --negatives 0 --hidden 96", 1});
    as_planned(&(sample){"payments", "--batch 1024 --negatives 0 --hidden 96 --fanouts 15,10", 3});
}

/* Nodes that targets share, wide rows, a cache of some; and targets that are handed over. */
static void cora_as_planned(void **state) {
    (void)state;
    make_cora();
    as_planned(&(sample){"cora", "--out-only --per-class 60,60 --batch 40 --hidden 256 --load", 1});
    as_planned(&(sample){"--parts cora-parts", "--out-only --per-class 60,60 --batch 40 --cache 0.2", 3});
    as_planned(&(sample){"--parts cora-parts", "--out-only --per-class 60,60 --batch 40 --batches local --load", 3});
}

/* Edges and matrices, of the whole and of parts. */
static void what_is_loaded_teaches_the_same(void **state) {
    static const sample graphs[] = {{"cora", "--out-only --per-class 60,60 --batch 40", 1},
                                    {"--parts cora-parts", "--out-only --per-class 60,60 --batch 40", 3}};
    static const char *const once = "--learn once --no-baselines --patience 0 --epochs 2 --folder";
    (void)state;
    make_cora();
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        run(train(&graphs[i], words("%s mapped", once)), NULL);
        run(train(&graphs[i], words("%s loaded --load", once)), NULL);
        run("cd $folder && for f in mapped/checkpoint/*.npy; do cmp $f loaded/checkpoint/${f##*/} || exit 1; done; "
            "rm -r mapped loaded",
            NULL);
    }
}

/* Moments of all that a rank has. */
static double moments_of(const json_t *plan, unsigned rank) {
    return number(json_object_get(rank_of(plan, rank), "bytes"), "moments");
}

/* Each of three ranks has its share of the embeddings: together those of one rank. */
static void embeddings_as_planned(void **state) {
    (void)state;
    const char *const options = "--batch 64 --negatives 150 --embed-vertices payment,account";
    make_payments();
    as_planned(&(sample){"payments", options, 1});
    as_planned(&(sample){"payments", options, 3});
    as_planned(&(sample){"--parts cut", options, 3});
    json_t *none = plan_of(&(sample){"payments", "--batch 64 --negatives 150", 1});
    json_t *one = plan_of(&(sample){"payments", options, 1}), *three = plan_of(&(sample){"payments", options, 3});
    double rest = moments_of(none, 0), all = moments_of(one, 0) - rest, sum = 0;
    for (unsigned rank = 0; rank < 3; rank++) {
        sum += moments_of(three, rank) - rest;
        assert_true(moments_of(three, rank) - rest < 0.36 * all);
    }
    assert_true(all > 0 && sum == all);
    json_decref(none);
    json_decref(one);
    json_decref(three);
}

/* --- one process -------------------------------------------------------------------------------------------------- */

static void pretends_as_ranks_would(const char *graph, const char *options) {
    static const char *const counted[] = {"steps",      "validation_batches", "test_batches",       "parameters",
                                          "embeddings", "checkpoint_bytes",   "summed_floats_step", "told_bytes_step"};
    static const char *const of_ranks[] = {"rows",  "remote_rows",     "cached_rows",
                                           "edges", "sent_step_bytes", "sent_epoch_bytes"};
    json_t *real = plan_of(&(sample){graph, options, 3});
    json_t *pretended = plan_of(&(sample){graph, words("%s --ranks 3", options), 1});
    assert_true(json_is_true(json_object_get(pretended, "pretended")));
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (number(real, counted[i]) != number(pretended, counted[i]))
            fail_msg("%s: %.9g and %.9g", counted[i], number(real, counted[i]), number(pretended, counted[i]));
    for (unsigned rank = 0; rank < 3; rank++)
        for (size_t i = 0; i < sizeof of_ranks / sizeof *of_ranks; i++)
            assert_true(number(rank_of(real, rank), of_ranks[i]) == number(rank_of(pretended, rank), of_ranks[i]));
    assert_true(number(rank_of(real, 1), "sent_step_bytes") > 0 && number(real, "told_bytes_step") >= 0);
    json_decref(real);
    json_decref(pretended);
}

static void one_process_pretends(void **state) {
    (void)state;
    make_payments();
    make_cora();
    pretends_as_ranks_would("payments", "--batch 64");
    pretends_as_ranks_would("payments", "--batch 64 --wire int8");
    pretends_as_ranks_would("cora", "--out-only --per-class 60,60 --batch 100");
    pretends_as_ranks_would("payments", "--batch 64 --embed-vertices payment,account");
}

/* The payments with more buckets of two categories than every rank would have: of a type's vertices each. */
static void make_wide_payments(void) {
    run(words("cd $folder && weir='%s'; \"$weir\" schema show payments | sed 's/buckets: 1024/buckets: 200000/' "
              ">wide.yaml && \"$weir\" simulate payments --days 60 --accounts 200 --fraud-rate 0.02 --seed 1 --to "
              "file:out && \"$weir\" load --schema wide.yaml --data d out/*.jsonl && \"$weir\" snapshot build wide "
              "--path d/store",
              weir_test_program()),
        NULL);
}

/* So are large categories, with nobody's vertices embedded: a rank has a third of them and of their moments. */
static void categories_as_planned(void **state) {
    (void)state;
    const char *const options = "--batch 64 --negatives 150 --hidden 16";
    make_wide_payments();
    as_planned(&(sample){"wide", options, 1});
    as_planned(&(sample){"wide", options, 3});
    json_t *one = plan_of(&(sample){"wide", options, 1}), *three = plan_of(&(sample){"wide", options, 3});
    const double tables = 2 * 200001 * (2 * 16 * sizeof(float) + sizeof(uint64_t)); /* and as of which step a row is */
    for (unsigned rank = 0; rank < 3; rank++)
        assert_true(fabs(moments_of(three, rank) - (moments_of(one, 0) - tables * 2 / 3)) < 1e-6 * tables);
    json_decref(one);
    json_decref(three);
    pretends_as_ranks_would("wide", options);
}

/* --- what it leaves, and what does not fit ------------------------------------------------------------------------ */

static void refused(const char *options, const char *sentence) {
    char *text;
    run(words("cd $folder && { '%s' %s 2>&1 >/dev/null || true; }", ranks_train_program(), options), &text);
    if (!strstr(text, sentence)) fail_msg("%s: wanted '%s', not\n%s", options, sentence, text);
    free(text);
}

static void nothing_is_written(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 3, .pays = 600, .people = 30, .bad = 0.3};
    char *text;
    learn_snapshot(&plan, weir_test_path("snapshot"));
    run("cd $folder && find . | sort >before && true", NULL);
    run(train(&(sample){"snapshot", "--task bad --batch 64 --folder run --trace trace.json --models models", 2},
              "--plan"),
        &text);
    assert_non_null(strstr(text, "nothing was trained or written"));
    assert_non_null(strstr(text, "\nwire "));
    free(text);
    run("cd $folder && find . | grep -v '^./before$' | sort | diff <(grep -v '^./before$' before) -", NULL);
    refused("snapshot --json", "--json and --ranks are of --plan");
    refused("snapshot --ranks 2", "--json and --ranks are of --plan");
    refused("snapshot --plan --resume --folder run", "omit --resume and --judge");
    refused("--parts parts --plan --ranks 2", "--ranks pretends with a whole snapshot");
    refused("snapshot --plan --ranks 2 --cache 1", "there is one rank; omit it");
    refused("nowhere --plan", "nowhere");
}

WEIR_TESTS(WEIR_CASE(payments_as_planned), WEIR_CASE(large_batches_as_planned), WEIR_CASE(cora_as_planned),
           WEIR_CASE(what_is_loaded_teaches_the_same), WEIR_CASE(embeddings_as_planned),
           WEIR_CASE(categories_as_planned), WEIR_CASE(one_process_pretends), WEIR_CASE(nothing_is_written))
