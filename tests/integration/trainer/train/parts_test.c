/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts_test.c - training on parts: the snapshot is gone, and each rank has a folder with its own part alone. What one
 * rank learns from the whole snapshot is the oracle.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "learn_fixture.h"
#include "ranks.h"
#include "shell.h"

#define EPOCHS        4u
#define ARGUMENTS_MAX 48u
#define RANKS_MAX     8u

static void make_snapshot(uint64_t pays) {
    const learn_plan plan = {.seed = 3, .pays = pays, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
}

/* Parts of the snapshot `from` as alone-0/part-0, alone-1/part-1 and so on below NAME, and a program that trains rank R
 * from alone-R. */
static const char *cut(const char *from, const char *name, unsigned ranks, unsigned depth, const char *method) {
    static char program[4096];
    char line[16384];
    snprintf(
        line, sizeof line,
        "cd %s && '%s' partition %s --parts %u --depth %u --method %s --out %s.all >/dev/null && mkdir %s && for r "
        "in $(seq 0 %u); do mkdir %s/alone-$r && mv %s.all/part-$r %s/alone-$r/; done && rm -r %s.all && "
        "printf '#!/bin/bash\\nexec %s --parts %s/%s/alone-${OMPI_COMM_WORLD_RANK:-0} \"$@\"\\n' >%s/train && "
        "chmod +x %s/train",
        weir_test_folder(), weir_test_program(), from, ranks, depth, method, name, name, ranks - 1, name, name, name,
        name, ranks_train_program(), weir_test_folder(), name, name, name);
    const char *const argv[] = {"/bin/bash", "-c", line, NULL};
    weir_test_output output;
    weir_test_run(argv, ranks_environment, &output);
    if (output.status) fail_msg("%s\n%s%s", line, output.out, output.err);
    weir_test_output_free(&output);
    snprintf(program, sizeof program, "%s/%s/train", weir_test_folder(), name);
    return program;
}

/* first: the snapshot, or NULL. more ends with NULL, or is NULL. */
static void run(unsigned ranks, const char *program, const char *first, const char *folder, const char *const *more,
                weir_test_output *outputp) {
    const char *const fixed[] = {"--task",     "bad", "--folder",  folder, "--batch",      "64",   "--hidden", "16",
                                 "--patience", "0",   "--warm-up", "0.05", "--validation", "0.25", "--test",   "0.25"};
    const char *arguments[ARGUMENTS_MAX];
    size_t count = 0;
    if (first) arguments[count++] = first;
    memcpy(arguments + count, fixed, sizeof fixed);
    count += sizeof fixed / sizeof *fixed;
    while (more && *more)
        arguments[count++] = *more++;
    arguments[count] = NULL;
    ranks_run(ranks, program, arguments, outputp);
}

static void trains(unsigned ranks, const char *program, const char *first, const char *folder,
                   const char *const *more) {
    weir_test_output output;
    run(ranks, program, first, folder, more, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
}

static void refused(unsigned ranks, const char *program, const char *first, const char *const *more, const char *text) {
    weir_test_output output;
    run(ranks, program, first, weir_test_path("refused"), more, &output);
    if (output.status == 0 || !strstr(output.err, text))
        fail_msg("status %d, wanted '%s'\n%s", output.status, text, output.err);
    weir_test_output_free(&output);
}

/* The numbers behind `key` in the lines of a run. */
static size_t numbers_of(const char *folder, const char *key, double numbers[64]) {
    char path[4200], *text = NULL;
    size_t length, count = 0;
    snprintf(path, sizeof path, "%s/epochs.jsonl", folder);
    assert_ok(weir_file_load(path, 1u << 20, &text, &length));
    for (char *line = text, *end; (end = strchr(line, '\n')) && count < 64; line = end + 1) {
        *end = 0;
        const char *at = strstr(line, key);
        assert_non_null(at);
        numbers[count++] = strtod(at + strlen(key), NULL);
    }
    weir_free(text);
    return count;
}

static void same_losses(const char *one, const char *many, size_t epochs) {
    double a[64], b[64], c[64], d[64];
    assert_int_equal(numbers_of(one, "\"loss\":", a), epochs);
    assert_int_equal(numbers_of(many, "\"loss\":", b), epochs);
    assert_int_equal(numbers_of(one, "\"validation\":", c), epochs);
    assert_int_equal(numbers_of(many, "\"validation\":", d), epochs);
    for (size_t i = 0; i < epochs; i++) {
        if (!(fabs(a[i] - b[i]) <= 1e-5 * fabs(a[i]))) fail_msg("epoch %zu: losses %.9g and %.9g", i + 1, a[i], b[i]);
        if (!(fabs(c[i] - d[i]) <= 1e-3)) fail_msg("epoch %zu: validation %.9g and %.9g", i + 1, c[i], d[i]);
    }
}

static const char *const usual[] = {"--fanouts", "6,6", "--epochs", "4", "--no-baselines", NULL};

/* --- the snapshot is gone ----------------------------------------------------------------------------------------- */

static void as_the_whole_with(unsigned ranks, const char *method, const char *const *more) {
    char alone[4096], parts[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("one"));
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts-run"));
    make_snapshot(600);
    trains(1, ranks_train_program(), weir_test_path("snapshot"), alone, more);
    const char *program = cut("snapshot", "p", ranks, 1, method);
    shell("cd $folder && rm -r snapshot");
    trains(ranks, program, NULL, parts, more);
    same_losses(alone, parts, EPOCHS);
}

static void as_the_whole(unsigned ranks, const char *method) {
    as_the_whole_with(ranks, method, usual);
}

/* Degrees of what other ranks have drawn, too, are those of the whole. */
static void r1_two_parts_of_other_networks(void **state) {
    static const char *const attention[] = {"--fanouts",      "6,6",       "--epochs",  "4",
                                            "--no-baselines", "--network", "attention", NULL};
    static const char *const gcn[] = {"--fanouts", "6,6", "--epochs", "4", "--no-baselines", "--network", "gcn", NULL};
    (void)state;
    as_the_whole_with(2, "metis", attention);
    shell("cd $folder && rm -r one p*");
    as_the_whole_with(2, "random", gcn);
}

static void r1_one_part(void **state) {
    (void)state;
    as_the_whole(1, "metis");
}

static void r1_two_parts(void **state) {
    (void)state;
    as_the_whole(2, "metis");
}

static void r1_four_parts_drawn(void **state) {
    (void)state;
    as_the_whole(4, "random");
}

static void r1_eight_parts(void **state) {
    (void)state;
    as_the_whole(RANKS_MAX, "metis");
}

/* A target's edges, their ends' edges, and so on: where parts end, those who own the vertices draw. */
static void e2_what_parts_do_not_reach_is_asked_for(void **state) {
    (void)state;
    static const char *const draws[] = {"recent", "uniform", "weighted:30m", "uniform by=weighted:w"};
    static const struct {
        unsigned ranks, depth;
        const char *method;
    } cuts[] = {{2, 0, "metis"}, {4, 0, "random"}, {8, 1, "random"}, {3, 2, "hash"}, {1, 0, "metis"}};
    char alone[4096], parts[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("one"));
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts-run"));
    make_snapshot(400);
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        const char *const deep[] = {"--fanouts", "4,3,3", "--epochs",   "2",      "--no-baselines",
                                    "--dropout", "0.3",   "--strategy", draws[i], NULL};
        trains(1, ranks_train_program(), weir_test_path("snapshot"), alone, deep);
        for (size_t c = i ? 1 : 0; c < (i ? 2 : sizeof cuts / sizeof *cuts); c++) {
            char name[32];
            snprintf(name, sizeof name, "p%zu-%zu", i, c);
            const char *program = cut("snapshot", name, cuts[c].ranks, cuts[c].depth, cuts[c].method);
            shell("cd $folder && mv snapshot away");
            trains(cuts[c].ranks, program, NULL, parts, deep);
            same_losses(alone, parts, 2);
            shell("cd $folder && mv away snapshot && rm -r parts-run");
        }
        shell("cd $folder && rm -r one");
    }
}

/* Who has met whom is in the lists of the one, which a part of depth 1 has; and what a part does not see, it brings:
 * but not as of a label. */
static void e2_pairs_are_those_of_the_whole(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 3, .pays = 500, .people = 30, .bad = 0.3, .pairs = true};
    char alone[4096], parts[4096], whole[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("one"));
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts-run"));
    snprintf(whole, sizeof whole, "%s", weir_test_path("whole-run"));
    learn_snapshot(&plan, weir_test_path("snapshot"));
    trains(1, ranks_train_program(), weir_test_path("snapshot"), alone, usual);
    trains(3, ranks_train_program(), weir_test_path("snapshot"), whole, usual);
    same_losses(alone, whole, EPOCHS);
    char shallow[4096], program[4096];
    snprintf(shallow, sizeof shallow, "%s", cut("snapshot", "flat", 3, 0, "random"));
    snprintf(program, sizeof program, "%s", cut("snapshot", "p", 3, 1, "random"));
    shell("cd $folder && rm -r snapshot");
    trains(3, program, NULL, parts, usual);
    same_losses(alone, parts, EPOCHS);
    shell("cd $folder && rm -r parts-run");
    trains(3, shallow, NULL, parts, usual);
    same_losses(alone, parts, EPOCHS);
    refused(3, program, NULL, (const char *const[]){"--task", "said", "--no-baselines", NULL},
            "make the parts with `weir partition --depth 2`");
}

/* What was said of a pay counts for who it is by, whichever part has the pay. */
static void e2_labels_are_those_of_the_whole(void **state) {
    (void)state;
    const learn_plan plan = {.seed = 3, .pays = 500, .people = 30, .bad = 0.3, .told = true};
    char alone[4096], whole[4096], flat[4096], deep[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("one"));
    snprintf(whole, sizeof whole, "%s", weir_test_path("whole-run"));
    snprintf(flat, sizeof flat, "%s", weir_test_path("flat-run"));
    snprintf(deep, sizeof deep, "%s", weir_test_path("deep-run"));
    learn_snapshot(&plan, weir_test_path("snapshot"));
    trains(1, ranks_train_program(), weir_test_path("snapshot"), alone, usual);
    trains(3, ranks_train_program(), weir_test_path("snapshot"), whole, usual);
    same_losses(alone, whole, EPOCHS);
    trains(3, cut("snapshot", "flat", 3, 0, "random"), NULL, flat, usual);
    same_losses(alone, flat, EPOCHS);
    const char *program = cut("snapshot", "p", 3, 1, "random");
    shell("cd $folder && rm -r snapshot");
    trains(3, program, NULL, deep, usual);
    same_losses(alone, deep, EPOCHS);
}

/* Each part has some of the people, and all ranks give one the same row: which, and which are shown as unknown, depends
 * on ids alone. */
static void r1_known_vertices_are_those_of_all_parts(void **state) {
    (void)state;
    static const char *const known[] = {"--fanouts",        "6,6", "--epochs",  "4",   "--no-baselines",
                                        "--embed-vertices", "who", "--unknown", "0.2", NULL};
    char alone[4096], blind[4096], parts[4096];
    double a[64], b[64];
    snprintf(alone, sizeof alone, "%s", weir_test_path("one"));
    snprintf(blind, sizeof blind, "%s", weir_test_path("blind"));
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts-run"));
    make_snapshot(600);
    trains(1, ranks_train_program(), weir_test_path("snapshot"), alone, known);
    trains(1, ranks_train_program(), weir_test_path("snapshot"), blind, usual);
    assert_int_equal(numbers_of(alone, "\"loss\":", a), EPOCHS);
    assert_int_equal(numbers_of(blind, "\"loss\":", b), EPOCHS);
    assert_true(a[EPOCHS - 1] != b[EPOCHS - 1]);
    const char *program = cut("snapshot", "p", 3, 0, "random");
    shell("cd $folder && rm -r snapshot");
    trains(3, program, NULL, parts, known);
    same_losses(alone, parts, EPOCHS);
}

/* Saved by four ranks, continued by two: the targets and their order are those of the snapshot. */
static void r2_t5_resumed_by_other_ranks(void **state) {
    (void)state;
    static const char *const half[] = {"--fanouts", "6,6", "--epochs", "2", "--no-baselines", NULL};
    static const char *const rest[] = {"--fanouts", "6,6", "--epochs", "4", "--no-baselines", "--resume", NULL};
    char alone[4096], parts[4096], four[4096];
    snprintf(alone, sizeof alone, "%s", weir_test_path("one"));
    snprintf(parts, sizeof parts, "%s", weir_test_path("parts-run"));
    make_snapshot(600);
    trains(1, ranks_train_program(), weir_test_path("snapshot"), alone, usual);
    snprintf(four, sizeof four, "%s", cut("snapshot", "p4", 4, 1, "metis"));
    const char *two = cut("snapshot", "p2", 2, 1, "hash");
    shell("cd $folder && rm -r snapshot");
    trains(4, four, NULL, parts, half);
    trains(2, two, NULL, parts, rest);
    same_losses(alone, parts, EPOCHS);
}

/* The order of local batches is a function of seed, epoch and who owns what: a training that goes on has it, too. */
static void r2_local_batches_go_on(void **state) {
    (void)state;
    static const char *const through[] = {"--fanouts",      "6,6",       "--epochs", "4",
                                          "--no-baselines", "--batches", "local",    NULL};
    static const char *const half[] = {"--fanouts",      "6,6",       "--epochs", "2",
                                       "--no-baselines", "--batches", "local",    NULL};
    static const char *const rest[] = {"--fanouts", "6,6",   "--epochs", "4", "--no-baselines",
                                       "--batches", "local", "--resume", NULL};
    char whole[4096], two[4096];
    double a[64], b[64];
    snprintf(whole, sizeof whole, "%s", weir_test_path("through"));
    snprintf(two, sizeof two, "%s", weir_test_path("two"));
    make_snapshot(600);
    const char *program = cut("snapshot", "p", 3, 0, "random");
    trains(3, program, NULL, whole, through);
    trains(3, program, NULL, two, half);
    trains(3, program, NULL, two, rest);
    assert_int_equal(numbers_of(whole, "\"handed_share\":", a), EPOCHS);
    assert_true(a[0] > 0 && a[0] < 0.2); /* parts drawn at random are of unequal sizes */
    assert_int_equal(numbers_of(whole, "\"loss\":", a), EPOCHS);
    assert_int_equal(numbers_of(two, "\"loss\":", b), EPOCHS);
    assert_memory_equal(a, b, EPOCHS * sizeof *a);
    refused(3, program, NULL, (const char *const[]){"--fanouts", "6,6", "--batches", "sideways", NULL}, "--batches");
}

#define CIRCLES        24u
#define CIRCLE_PEOPLE  100u
#define CIRCLE_FRIENDS 6u

/* People who know others of their circle, and now and then somebody else. */
static void import_circles(void) {
    char nodes[4200], edges[4200];
    weir_buf n = {0}, e = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 6, 0);
    weir_buf_text(&n, "id,label,type,x,mask.train,mask.val,mask.test\n");
    weir_buf_text(&e, "src,dst,type,timestamp\n");
    for (unsigned i = 0; i < CIRCLES * CIRCLE_PEOPLE; i++) {
        unsigned circle = i / CIRCLE_PEOPLE, part = (unsigned)weir_rng_below(&rng, 5);
        weir_buf_printf(&n, "%u,%u,person,%u,%u,%u,%u\n", i, circle % 2, part, part < 3, part == 3, part == 4);
        for (unsigned k = 0; k < CIRCLE_FRIENDS; k++) {
            bool far = weir_rng_below(&rng, 50) == 0;
            unsigned other = far ? (unsigned)weir_rng_below(&rng, CIRCLES * CIRCLE_PEOPLE)
                                 : circle * CIRCLE_PEOPLE + (unsigned)weir_rng_below(&rng, CIRCLE_PEOPLE);
            weir_buf_printf(&e, "%u,%u,knows,\n", i, other);
        }
    }
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    assert_ok(weir_file_replace(nodes, n.bytes, n.length));
    assert_ok(weir_file_replace(edges, e.bytes, e.length));
    shell("cd $folder && $weir snapshot import circles --nodes nodes.csv --edges edges.csv");
    weir_buf_free(&n);
    weir_buf_free(&e);
}

/* No part has more than 1.01 of its share of training targets: of 100 that are learnt from, 99 are computed where they
 * lie. */
static void local_batches_are_local_on_a_clustered_graph(void **state) {
    (void)state;
    char run[4096];
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    const char *const arguments[] = {"--folder",    run,     "--masks",        "train,val,test",
                                     "--batches",   "local", "--batch",        "96",
                                     "--epochs",    "2",     "--patience",     "0",
                                     "--hidden",    "8",     "--fanouts",      "4,4",
                                     "--negatives", "0",     "--no-baselines", NULL};
    weir_test_output output;
    double handed[64];
    import_circles();
    ranks_run(4, cut("circles", "p", 4, 0, "metis --balance training --tolerance 1.01"), arguments, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    assert_int_equal(numbers_of(run, "\"handed_share\":", handed), 2);
    assert_true(handed[0] <= 0.01 && handed[1] <= 0.01);
}

/* A finished model gets the same figures, and the same example by its key, which only one rank has. */
static void judged_as_on_the_whole(void **state) {
    (void)state;
    make_snapshot(600);
    char models[4096];
    snprintf(models, sizeof models, "%s", weir_test_path("models"));
    trains(1, ranks_train_program(), weir_test_path("snapshot"), weir_test_path("one"),
           (const char *const[]){"--fanouts", "6,6", "--epochs", "2", "--no-baselines", "--embed-vertices", "who",
                                 "--models", models, NULL});
    cut("snapshot", "p", 3, 1, "random");
    char line[4096];
    snprintf(line, sizeof line,
             "cd $folder && m=$(echo models/*-*) && judge() { \"$@\" --judge $m --set models.require_signature=false "
             "--warm-up 0.05 --validation 0.25 --test 0.25; } && judge '%s' snapshot >whole.json && rm -r snapshot && "
             "judge mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 p/train >parts.json && grep -q "
             "example whole.json && cmp whole.json parts.json",
             ranks_train_program());
    shell(line);
}

/* --- what a rank keeps of others ---------------------------------------------------------------------------------- */

#define CORA_WIDTH 1433u
#define ASK_BYTES  32u /* vertex, time, event, type and place */

typedef struct kept {
    double loss[64], rows[64], asked[64], kept[64];
    uint64_t bytes; /* of asks and answers, of all ranks, from the first batch on */
    uint64_t asks;  /* of rank 0, of whatever batch: those that judge, too */
} kept;

/* Of an answer. int8 has a scale, too. */
static uint64_t cora_row_bytes(const char *wire) {
    if (strcmp(wire, "int8") == 0) return sizeof(float) + CORA_WIDTH;
    return CORA_WIDTH * (strcmp(wire, "half") == 0 ? 2 : sizeof(float));
}

static void import_cora(void) {
    char line[8192];
    snprintf(line, sizeof line,
             "cd $folder && $weir snapshot import cora --nodes '%s/tests/data/cora/nodes.csv' --edges "
             "'%s/tests/data/cora/edges.csv' --bits nonzero --undirected >/dev/null",
             getenv("WEIR_SOURCE_DIR"), getenv("WEIR_SOURCE_DIR"));
    shell(line);
}

/* Whatever is kept and however it is sent, the case's trainings all leave the bits of its first one. */
static void trains_cora(const char *program, const char *folder, const char *share, const char *policy,
                        const char *wire, kept *k) {
    const char *const arguments[] = {"--folder",
                                     folder,
                                     "--out-only",
                                     "--fanouts",
                                     "5,5",
                                     "--epochs",
                                     "2",
                                     "--patience",
                                     "0",
                                     "--hidden",
                                     "8",
                                     "--per-class",
                                     "20,30",
                                     "--batch",
                                     "60",
                                     "--no-baselines",
                                     "--cache",
                                     share,
                                     "--cache-policy",
                                     policy,
                                     "--wire",
                                     wire,
                                     NULL};
    weir_test_output output;
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("sent"), 1), 0);
    ranks_run(3, program, arguments, &output);
    unsetenv("LD_PRELOAD");
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    assert_int_equal(numbers_of(folder, "\"loss\":", k->loss), 2);
    assert_int_equal(numbers_of(folder, "\"rows\":", k->rows), 2);
    assert_int_equal(numbers_of(folder, "\"remote_rows\":", k->asked), 2);
    assert_int_equal(numbers_of(folder, "\"cached_rows\":", k->kept), 2);
    uint64_t sent[2] = {0}; /* asks and answers, of all ranks */
    for (unsigned rank = 0; rank < 3; rank++) {
        char path[4200], *text = NULL;
        size_t length;
        snprintf(path, sizeof path, "%s.%u", weir_test_path("sent"), rank);
        assert_ok(weir_file_load(path, 4096, &text, &length));
        const char *at = strchr(text, '\n'); /* behind the channel of what comes before the batches */
        for (unsigned channel = 0; channel < 2; channel++) {
            uint64_t numbers[4]; /* calls, messages, bytes to others, bytes to itself */
            char *end = strchr(at, '\n') + 1;
            for (unsigned i = 0; i < 4; i++)
                numbers[i] = strtoull(end, &end, 10);
            assert_true(*end == '\n' && numbers[3] == 0);
            sent[channel] += numbers[2];
            if (rank == 0 && channel == 0) k->asks = numbers[2] / ASK_BYTES;
            at = end;
        }
        assert_memory_equal(at, "\nsums", 5); /* nobody asked for edges: of two layers, the part has them all */
        weir_free(text);
    }
    /* A row that is asked for is answered, once, and nothing else is sent. */
    assert_int_equal(sent[0] % ASK_BYTES, 0);
    assert_int_equal(sent[1], sent[0] / ASK_BYTES * cora_row_bytes(wire));
    k->bytes = sent[0] + sent[1];
    shell("cd $folder; [ -d first ] || cp -r run/checkpoint first; for f in params best moment1 moment2; do "
          "cmp first/$f.npy run/checkpoint/$f.npy; done");
}

/* What is kept changes no bit of a loss, and is not asked for: the more, the less is sent. */
static void e4_what_is_kept_is_not_asked_for(void **state) {
    (void)state;
    static const char *const shares[] = {"0", "0.05", "0.3", "3"};
    static const char *const policies[] = {"vip", "paths", "simulated", "degree", "halo"};
    static kept none, some;
    import_cora();
    const char *program = cut("cora", "p", 3, 1, "random");
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        double asked = INFINITY;
        uint64_t bytes = UINT64_MAX;
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
            trains_cora(program, weir_test_path("run"), shares[i], policies[p], "floats", i ? &some : &none);
            const kept *k = i ? &some : &none;
            assert_memory_equal(k->loss, none.loss, sizeof k->loss);
            assert_memory_equal(k->rows, none.rows, sizeof k->rows);
            assert_true(k->asked[0] + k->kept[0] == none.asked[0] && none.kept[0] == 0); /* of rank 0 */
            assert_true(k->asked[0] < asked && k->bytes < bytes);
            asked = k->asked[0];
            bytes = k->bytes;
        }
        if (p < 3) assert_true(asked == 0); /* all that training may read; who judges reads more */
    }
    /* A word is there or not: both are the same in fewer bytes. */
    const uint64_t answers = none.bytes / (ASK_BYTES + CORA_WIDTH * sizeof(float));
    static const char *const fewer[] = {"half", "int8"};
    for (size_t i = 0; i < sizeof fewer / sizeof *fewer; i++) {
        trains_cora(program, weir_test_path("run"), "0", "vip", fewer[i], &some);
        assert_memory_equal(some.loss, none.loss, sizeof some.loss);
        assert_int_equal(some.bytes, answers * (ASK_BYTES + cora_row_bytes(fewer[i])));
        trains_cora(program, weir_test_path("run"), "0.05", "vip", fewer[i], &some);
        assert_memory_equal(some.loss, none.loss, sizeof some.loss);
    }
}

/* What stays for coming batches follows from what they read: however late answers come, the same rows are asked for. */
static void e4_looking_ahead_is_the_same_whoever_is_late(void **state) {
    (void)state;
    static const char *const shares[] = {"0.01", "0.05", "0.3"};
    static kept none, some, late;
    import_cora();
    const char *program = cut("cora", "p", 3, 1, "random");
    trains_cora(program, weir_test_path("run"), "0", "vip", "floats", &none);
    double asked = none.asked[0] + none.asked[1];
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        trains_cora(program, weir_test_path("run"), shares[i], "ahead", "floats", &some);
        assert_memory_equal(some.loss, none.loss, sizeof some.loss);
        assert_memory_equal(some.rows, none.rows, sizeof some.rows);
        for (unsigned epoch = 0; epoch < 2; epoch++)
            assert_true(some.asked[epoch] + some.kept[epoch] == none.asked[epoch]);
        assert_true((double)(none.asks - some.asks) == some.kept[0] + some.kept[1]); /* who judges asks as before */
        assert_true(some.asked[0] + some.asked[1] < asked && some.kept[0] > 0);
        asked = some.asked[0] + some.asked[1];
        assert_int_equal(setenv("WEIR_TEST_MPI_DELAY_US", i % 2 ? "3000" : "500", 1), 0);
        trains_cora(program, weir_test_path("run"), shares[i], "ahead", "floats", &late);
        unsetenv("WEIR_TEST_MPI_DELAY_US");
        assert_memory_equal(&late, &some, sizeof late);
    }
    trains_cora(program, weir_test_path("run"), "0.3", "ahead", "int8", &some);
    assert_memory_equal(some.loss, none.loss, sizeof some.loss);
}

#define RING 3000u

/* Neighbours stand near, and one in ten is one of few that many have. */
static void import_ring(void) {
    weir_rng rng = weir_rng_stream(7, 0, 0);
    char nodes[4096], edges[4096];
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    FILE *file = fopen(nodes, "w");
    assert_non_null(file);
    fprintf(file, "id,label,number.x,mask.learn,mask.look,mask.judge\n");
    for (unsigned v = 0; v < RING; v++) {
        unsigned part = (unsigned)weir_rng_below(&rng, 5);
        fprintf(file, "%u,%c,%g,%d,%d,%d\n", v, v % 2 ? 'a' : 'b', weir_rng_double(&rng), part == 0, part == 1,
                part == 2);
    }
    assert_int_equal(fclose(file), 0);
    file = fopen(edges, "w");
    assert_non_null(file);
    fprintf(file, "src,dst\n");
    for (unsigned i = 0; i < 8 * RING; i++) {
        unsigned from = i / 8, near = (from + 1 + (unsigned)weir_rng_below(&rng, 30)) % RING;
        fprintf(file, "%u,%u\n", from, weir_rng_below(&rng, 10) ? near : (unsigned)weir_rng_below(&rng, 60) * 50);
    }
    assert_int_equal(fclose(file), 0);
    shell("cd $folder && $weir snapshot import ring --nodes nodes.csv --edges edges.csv --undirected >/dev/null");
}

/* What rank 0 asks for in all epochs. */
static double asked_on_ring(const char *program, const char *policy, const char *makers, double loss[64]) {
    const char *const arguments[] = {"--folder",
                                     weir_test_path("run"),
                                     "--masks",
                                     "learn,look,judge",
                                     "--epochs",
                                     "3",
                                     "--hidden",
                                     "8",
                                     "--batch",
                                     "120",
                                     "--cache",
                                     policy ? "0.2" : "0",
                                     "--ahead",
                                     makers,
                                     "--cache-policy",
                                     policy ? policy : "vip",
                                     "--out-only",
                                     "--no-baselines",
                                     "--fanouts",
                                     "5,5,3",
                                     NULL};
    weir_test_output output;
    double asked[64];
    ranks_run(4, program, arguments, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    assert_int_equal(numbers_of(arguments[1], "\"loss\":", loss), 3);
    assert_int_equal(numbers_of(arguments[1], "\"remote_rows\":", asked), 3);
    return asked[0] + asked[1] + asked[2];
}

/* Of a graph in which few edges are cut: where parts reach as far as batches, and where others draw the rest. */
static void e4_looking_ahead_asks_for_less_than_what_never_changes(void **state) {
    (void)state;
    import_ring();
    for (unsigned depth = 0; depth <= 2; depth += 2) {
        double loss[64], same[64];
        const char *program = cut("ring", depth ? "deep" : "flat", 4, depth, "metis");
        double none = asked_on_ring(program, NULL, "6", loss), vip = asked_on_ring(program, "vip", "6", same);
        assert_memory_equal(loss, same, 3 * sizeof *loss);
        double ahead = asked_on_ring(program, "ahead", "6", same);
        assert_memory_equal(loss, same, 3 * sizeof *loss);
        printf("depth %u: %g rows of others, with vip %g, looking ahead %g\n", depth, none, vip, ahead);
        assert_true(vip < none && ahead < vip);
        asked_on_ring(program, "ahead", "1", same);
        assert_memory_equal(loss, same, 3 * sizeof *loss);
        asked_on_ring(program, "ahead", "16", same);
        assert_memory_equal(loss, same, 3 * sizeof *loss);
    }
}

/* Who is drawn to learn from is drawn from all, in the order of all; and what is hidden of a vertex, and which of its
 * edges are, is hidden wherever they are known. */
static void t5_a_draw_is_from_all_parts(void **state) {
    (void)state;
    static const char *const few[] = {"--out-only",
                                      "--fanouts",
                                      "5,5",
                                      "--epochs",
                                      "2",
                                      "--patience",
                                      "0",
                                      "--hidden",
                                      "8",
                                      "--per-class",
                                      "20,30",
                                      "--batch",
                                      "60",
                                      "--dropout",
                                      "0.2",
                                      "--input-dropout",
                                      "0.5",
                                      "--no-baselines",
                                      "--edge-dropout",
                                      "0.3",
                                      NULL};
    const char *whole[32] = {weir_test_path("cora"), "--folder", weir_test_path("one")};
    const char *parts[32] = {"--folder", weir_test_path("many")};
    weir_test_output output;
    import_cora();
    memcpy(whole + 3, few, sizeof few);
    memcpy(parts + 2, few, sizeof few);
    ranks_run(1, ranks_train_program(), whole, &output);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
    ranks_run(4, cut("cora", "p", 4, 0, "metis"), parts, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    double a[64], b[64];
    assert_int_equal(numbers_of(whole[2], "\"loss\":", a), 2);
    assert_int_equal(numbers_of(parts[1], "\"loss\":", b), 2);
    for (size_t i = 0; i < 2; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-5 * fabs(a[i]))) fail_msg("epoch %zu: losses %.9g and %.9g", i + 1, a[i], b[i]);
}

/* --- what does not fit -------------------------------------------------------------------------------------------- */

static void sentences(void **state) {
    (void)state;
    char snapshot[4096], alone[4200];
    make_snapshot(300);
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    const char *program = cut("snapshot", "p", 2, 1, "metis");
    snprintf(alone, sizeof alone, "%s/p/alone-0/part-0", weir_test_folder());
    refused(1, program, NULL, usual, "has 2 parts, but there are 1 ranks; start as many by mpirun -n 2");
    refused(1, ranks_train_program(), NULL, usual, "the snapshot to train from is missing");
    refused(1, program, snapshot, usual, "give the snapshot or --parts");
    refused(1, ranks_train_program(), snapshot, (const char *const[]){"--cache", "0.5", NULL}, "but there is one rank");
    refused(2, program, NULL, (const char *const[]){"--cache-policy", "halo", NULL}, "give --cache X, too");
    refused(2, program, NULL, (const char *const[]){"--cache", "0.5", "--cache-policy", "ahead", NULL},
            "ahead is of graphs without times");
    refused(2, program, NULL, (const char *const[]){"--plan", "--cache", "0.5", "--cache-policy", "ahead", NULL},
            "plan with vip");
    refused(1, ranks_train_program(), alone, usual,
            "is a part of a snapshot; give the snapshot, or all parts with --parts");
    refused(3, program, NULL, usual, "has 2 parts, but there are 3 ranks");
    shell("cd $folder && mv p/alone-1/part-1 p/kept && cp -r p/alone-0/part-0 p/alone-1/part-1");
    refused(2, program, NULL, usual, "is part 0 of its cutting; give each folder the name it had");
    shell("cd $folder && rm -r p/alone-1/part-1");
    cut("snapshot", "other", 2, 1, "random");
    shell("cd $folder && cp -r other/alone-1/part-1 p/alone-1/");
    snprintf(alone, sizeof alone, "%s/p/train", weir_test_folder());
    refused(2, alone, NULL, usual, "a part of another cutting; cut the snapshot again");
}

WEIR_TESTS(WEIR_CASE(e2_pairs_are_those_of_the_whole), WEIR_CASE(e2_labels_are_those_of_the_whole),
           WEIR_CASE(r1_one_part), WEIR_CASE(r1_two_parts), WEIR_CASE(r1_two_parts_of_other_networks),
           WEIR_CASE(r1_four_parts_drawn), WEIR_CASE(r1_eight_parts),
           WEIR_CASE(e2_what_parts_do_not_reach_is_asked_for), WEIR_CASE(r1_known_vertices_are_those_of_all_parts),
           WEIR_CASE(r2_t5_resumed_by_other_ranks), WEIR_CASE(r2_local_batches_go_on),
           WEIR_CASE(local_batches_are_local_on_a_clustered_graph), WEIR_CASE(judged_as_on_the_whole),
           WEIR_CASE(e4_what_is_kept_is_not_asked_for), WEIR_CASE(e4_looking_ahead_is_the_same_whoever_is_late),
           WEIR_CASE(e4_looking_ahead_asks_for_less_than_what_never_changes), WEIR_CASE(t5_a_draw_is_from_all_parts),
           WEIR_CASE(sentences))
