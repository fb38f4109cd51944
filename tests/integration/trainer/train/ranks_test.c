/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks_test.c - weir-train as it is started: on one rank and under mpirun, killed and gone on, and with what it cannot
 * learn from.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#include "learn_fixture.h"
#include "ranks.h"
#include "shell.h"

#define EPOCHS_MAX    64u
#define ARGUMENTS_MAX 32u
#define KILLS         5u
#define LOSS_WITHIN   1e-5 /* of a loss of one rank: TRAIN-R1; seen are 1e-7 */

static void make_snapshot(uint64_t pays) {
    const learn_plan plan = {.seed = 3, .pays = pays, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
}

/* A small training into a folder of the case; more ends with NULL, or is NULL. */
static void arguments_of(const char *folder, const char *epochs, const char *const *more, const char **arguments) {
    static char snapshot[4096];
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    const char *const fixed[] = {snapshot, "--task",     "bad",  "--folder",      folder, "--epochs",
                                 epochs,   "--batch",    "64",   "--hidden",      "16",   "--fanouts",
                                 "6,6",    "--patience", "0",    "--warm-up",     "0.05", "--validation",
                                 "0.25",   "--test",     "0.25", "--no-baselines"};
    size_t count = sizeof fixed / sizeof *fixed;
    memcpy(arguments, fixed, sizeof fixed);
    while (more && *more)
        arguments[count++] = *more++;
    assert_true(count < ARGUMENTS_MAX);
    arguments[count] = NULL;
}

static void train(unsigned ranks, const char *folder, const char *epochs, const char *const *more,
                  weir_test_output *outputp) {
    const char *arguments[ARGUMENTS_MAX];
    arguments_of(folder, epochs, more, arguments);
    ranks_run(ranks, ranks_train_program(), arguments, outputp);
}

static void trains(unsigned ranks, const char *folder, const char *epochs, const char *const *more) {
    weir_test_output output;
    train(ranks, folder, epochs, more, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
}

static void refuses(unsigned ranks, const char *folder, const char *const *more, const char *text) {
    weir_test_output output;
    train(ranks, folder, "2", more, &output);
    if (output.status == 0 || !strstr(output.err, text) || strstr(output.err, "please report"))
        fail_msg("status %d, wanted '%s'\n%s", output.status, text, output.err);
    weir_test_output_free(&output);
}

/* --- what the epochs said ----------------------------------------------------------------------------------------- */

typedef struct history {
    double loss[EPOCHS_MAX];
    bool best[EPOCHS_MAX];
    size_t count;
} history;

static void history_read(const char *folder, history *h) {
    char path[4200], *text = NULL;
    size_t length;
    *h = (history){.count = 0};
    snprintf(path, sizeof path, "%s/epochs.jsonl", folder);
    assert_ok(weir_file_load(path, 1u << 20, &text, &length));
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        const char *loss = strstr(line, "\"loss\":");
        assert_non_null(loss);
        assert_true(h->count < EPOCHS_MAX);
        h->loss[h->count] = strtod(loss + 7, NULL);
        h->best[h->count++] = strstr(line, "\"best\":true") != NULL;
    }
    weir_free(text);
}

static void same_history(const history *one, const history *many) {
    assert_int_equal(one->count, many->count);
    for (size_t i = 0; i < one->count; i++) {
        if (!(fabs(one->loss[i] - many->loss[i]) <= LOSS_WITHIN * fabs(one->loss[i])))
            fail_msg("epoch %zu: %.9g and %.9g", i + 1, one->loss[i], many->loss[i]);
        assert_int_equal(one->best[i], many->best[i]);
    }
}

static void r1_as_one_rank_of(uint64_t at_once, unsigned ranks, const char *const *more) {
    static history one, many;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 600, .people = 30, .bad = 0.3, .at_once = at_once};
    char alone[4096], together[4096];
    shell("cd $folder && rm -rf alone together snapshot");
    learn_snapshot(&plan, weir_test_path("snapshot"));
    snprintf(alone, sizeof alone, "%s", weir_test_path("alone"));
    snprintf(together, sizeof together, "%s", weir_test_path("together"));
    trains(1, alone, "4", more);
    trains(ranks, together, "4", more);
    history_read(alone, &one);
    history_read(together, &many);
    assert_int_equal(one.count, 4);
    assert_true(one.loss[3] < one.loss[0]);
    same_history(&one, &many);
}

static void r1_as_one_rank(unsigned ranks, const char *const *more) {
    r1_as_one_rank_of(1, ranks, more);
}

/* Ranks share within themselves: which targets of a time meet depends on their number, and nothing else may. */
static void r1_ranks_lose_the_same_where_times_are_few(void **state) {
    (void)state;
    static const char *const draws[] = {"--strategy=uniform", "--edge-dropout=0.4", "--dropout=0.2", NULL};
    r1_as_one_rank_of(50, 2, NULL);
    r1_as_one_rank_of(50, 4, draws);
}

static void r1_ranks_lose_what_one_does(void **state) {
    (void)state;
    for (unsigned ranks = 2; ranks <= 8; ranks += (unsigned)weir_test_part(2, 3))
        r1_as_one_rank(ranks, NULL);
}

/* Whatever a vertex gathers, its tree is the same on whichever rank, and so is what a step leaves out of it. */
static void r1_each_network_loses_the_same_on_two_ranks(void **state) {
    (void)state;
    static const char *const of[][8] = {
        {"--network=attention", "--edge-dropout=0.4", "--average=0.6", "--attention-dropout=0.3"},
        {"--network=mean", "--edge-dropout=0.4", "--average=0.6"},
        {"--network=gcn", "--average=0.6", "--head=none", "--norm=none", "--l2=0.001", "--decay=0"},
        {"--network=gin", "--edge-dropout=0.4", "--average=0.6"},
        {"--network=max", "--average=0.6"},
        {"--network=gat", "--edge-dropout=0.4", "--average=0.6", "--attention-dropout=0.3"},
        {"--network=pna", "--average=0.6", "--feed-forward"},
        {"--network=gat", "--attention-dropout=0.3", "--feed-forward", "--residual", "--norm=stream", "--head=none"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        r1_as_one_rank(2, of[i]);
}

/* A batch of 4 for 6 ranks: some have nothing to do in each of them. */
static void r1_more_ranks_than_targets_of_a_batch(void **state) {
    (void)state;
    static const char *const tiny[] = {"--batch", "4", "--epochs", "1", NULL};
    make_snapshot(300);
    char alone[4096], together[4096];
    static history one, many;
    snprintf(alone, sizeof alone, "%s", weir_test_path("alone"));
    snprintf(together, sizeof together, "%s", weir_test_path("together"));
    trains(1, alone, "1", tiny);
    trains(6, together, "1", tiny);
    history_read(alone, &one);
    history_read(together, &many);
    same_history(&one, &many);
}

/* --- the same bytes ----------------------------------------------------------------------------------------------- */

/* Whether files are mapped or loaded. */
static void two_runs_write_the_same_weights(void **state) {
    (void)state;
    char a[4096], b[4096];
    make_snapshot(400);
    snprintf(a, sizeof a, "%s", weir_test_path("a"));
    snprintf(b, sizeof b, "%s", weir_test_path("b"));
    trains(1, weir_test_path("run1"), "2", (const char *const[]){"--models", a, NULL});
    trains(1, weir_test_path("run2"), "2", (const char *const[]){"--models", b, "--load", NULL});
    shell("x=$(find $folder/a -name weights.safetensors) y=$(find $folder/b -name weights.safetensors); "
          "[ -s \"$x\" ]; cmp $x $y");
}

static pid_t start(unsigned ranks, const char *folder, const char *epochs, const char *const *more) {
    const char *arguments[ARGUMENTS_MAX], *argv[64];
    arguments_of(folder, epochs, more, arguments);
    ranks_argv(ranks, ranks_train_program(), arguments, argv);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    for (const char *const *e = ranks_environment; *e; e++)
        putenv((char *)(uintptr_t)*e);
    FILE *out = freopen(weir_test_path("out"), "w", stdout), *err = freopen(weir_test_path("err"), "w", stderr);
    if (out && err) execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static void wait_ms(uint64_t ms) {
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* Killed at random moments and gone on each time; the last is let through. */
static void r2_killed_at_random_moments(void **state) {
    (void)state;
    static const char *const resume[] = {"--resume", NULL};
    char whole[4096], killed[4096];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    make_snapshot(600);
    snprintf(whole, sizeof whole, "%s", weir_test_path("whole"));
    snprintf(killed, sizeof killed, "%s", weir_test_path("killed"));
    trains(1, whole, "12", NULL);
    for (unsigned i = 0; i < KILLS; i++) {
        int status = 0;
        pid_t pid = start(1, killed, "12", resume);
        wait_ms(weir_rng_below(&rng, 250));
        kill(pid, SIGKILL);
        assert_true(waitpid(pid, &status, 0) == pid);
    }
    trains(1, killed, "12", resume);
    shell("cd $folder; cmp whole/report.json killed/report.json; "
          "cmp whole/checkpoint/best.npy killed/checkpoint/best.npy");
}

/* --- a rank that dies --------------------------------------------------------------------------------------------- */

static void a_rank_that_is_killed_is_named(void **state) {
    (void)state;
    char run[4096], path[4200], *said = NULL;
    size_t length;
    int status = 0;
    make_snapshot(600);
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    snprintf(path, sizeof path, "%s/epochs.jsonl", run);
    pid_t launcher = start(2, run, "100000", NULL);
    while (!weir_path_exists(path))
        wait_ms(5);
    pid_t rank = ranks_find(launcher);
    assert_true(rank > 0);
    assert_int_equal(kill(rank, SIGKILL), 0);
    assert_true(waitpid(launcher, &status, 0) == launcher);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    assert_ok(weir_file_load(weir_test_path("err"), 1u << 20, &said, &length));
    assert_non_null(strstr(said, "process rank "));
    assert_non_null(strstr(said, "exited on signal 9"));
    /* And the other one, where that was: which the launcher does not know. */
    const char *where = strstr(said, " of 2 on "), *step = where ? strstr(where, " was ended by the launcher") : NULL;
    if (!step || !strstr(step, " batch ") || !strstr(step, "; another rank has ended")) fail_msg("%s", said);
    weir_free(said);
    trains(1, run, "1", (const char *const[]){"--resume", NULL}); /* verifies the last checkpoint and judges with it */
}

/* One of two ranks is killed again and again, which ends the other: embeddings that they share go on with the bits of
 * a training that was let be. */
static void r4_killed_and_gone_on(void **state) {
    (void)state;
    static const char *const resume[] = {"--embed-vertices", "who", "--average", "0.6", "--resume", NULL};
    char whole[4096], killed[4096];
    unsigned midway = 0;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    make_snapshot(600);
    snprintf(whole, sizeof whole, "%s", weir_test_path("whole"));
    snprintf(killed, sizeof killed, "%s", weir_test_path("killed"));
    trains(2, whole, "30", resume);
    for (unsigned i = 0; i < KILLS; i++) {
        int status = 0;
        pid_t launcher = start(2, killed, "30", resume), rank = 0;
        while (!rank && waitpid(launcher, &status, WNOHANG) == 0)
            rank = ranks_find(launcher);
        if (!rank) break; /* it was quicker */
        wait_ms(weir_rng_below(&rng, 150));
        kill(rank, SIGKILL);
        assert_true(waitpid(launcher, &status, 0) == launcher);
        midway += status != 0;
    }
    assert_true(midway > 0);
    trains(2, killed, "30", resume);
    shell("cd $folder; for f in params best moment1 moment2 average; do cmp whole/checkpoint/$f.npy "
          "killed/checkpoint/$f.npy; "
          "done; cmp whole/report.json killed/report.json");
}

/* Who it was, on which machine, and how far it had come. */
static void a_rank_that_fails_says_where(void **state) {
    (void)state;
    static const char *const wild[] = {"--rate", "10", "--decay", "10", "--dropout", "0", "--batch", "8", NULL};
    char host[256] = "", text[512];
    make_snapshot(600);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    snprintf(text, sizeof text, " of 2 on %s: epoch 1: computing batch ", host);
    refuses(2, weir_test_path("run"), wild, text);
    refuses(2, weir_test_path("run"), wild, "no longer finite");
    refuses(1, weir_test_path("run"), wild, "weir train: epoch 1: computing batch ");
}

/* --- what is summed ----------------------------------------------------------------------------------------------- */

static void watch(const char *delay_us) {
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_MPI, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI", weir_test_path("sent"), 1), 0);
    assert_int_equal(setenv("WEIR_TEST_MPI_DELAY_US", delay_us, 1), 0);
}

#define TOWNS       2000u
#define TOWN_SLOTS  65537u /* what an import gives a category */
#define TOWN_PEOPLE 900u
#define TOWN_HIDDEN 16u

/* People of towns, who know each other: a town has an embedding, and a batch meets some of them. */
static void make_towns(void) {
    char nodes[4200], edges[4200];
    weir_buf n = {0}, e = {0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    weir_buf_text(&n, "id,label,type,town\n");
    weir_buf_text(&e, "src,dst,type,timestamp\n");
    for (unsigned i = 0; i < TOWN_PEOPLE; i++) {
        unsigned town = (unsigned)weir_rng_below(&rng, TOWNS);
        weir_buf_printf(&n, "%u,%u,person,town %u\n", i, town % 2, town);
        for (unsigned k = 0; k < 3; k++)
            weir_buf_printf(&e, "%u,%u,knows,\n", i, (unsigned)weir_rng_below(&rng, TOWN_PEOPLE));
    }
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    assert_ok(weir_file_replace(nodes, n.bytes, n.length));
    assert_ok(weir_file_replace(edges, e.bytes, e.length));
    shell("cd $folder && $weir snapshot import towns --nodes nodes.csv --edges edges.csv");
    weir_buf_free(&n);
    weir_buf_free(&e);
}

/* Each person has an embedding, too. optimizer: of both. resume: "--resume", or NULL. */
static void trains_towns(unsigned ranks, const char *folder, const char *epochs, const char *optimizer,
                         const char *resume) {
    char snapshot[4096];
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("towns"));
    const char *const arguments[] = {snapshot,
                                     "--folder",
                                     folder,
                                     "--per-class",
                                     "200,100",
                                     "--epochs",
                                     epochs,
                                     "--patience",
                                     "0",
                                     "--hidden",
                                     "16",
                                     "--fanouts",
                                     "4,4",
                                     "--negatives",
                                     "0",
                                     "--batch",
                                     "40",
                                     "--no-baselines",
                                     "--decay",
                                     "0.1",
                                     "--embed-vertices",
                                     "person",
                                     "--embedding-optimizer",
                                     optimizer,
                                     "--embedding-rate",
                                     "0.02",
                                     resume,
                                     NULL};
    weir_test_output output;
    ranks_run(ranks, ranks_train_program(), arguments, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
}

/* Of a table of 65,537 embeddings, ranks sum the rows that a step has read: as many floats as rows were told, at most.
 * Those of 900 people, who have owners, are not summed. The losses are those of one rank. */
static void ranks_sum_rows(const char *optimizer) {
    static history one, two;
    char alone[4096], together[4096], path[4200], *text = NULL;
    size_t length;
    uint64_t floats = 0, told = 0;
    snprintf(alone, sizeof alone, "%s", weir_test_path("alone"));
    snprintf(together, sizeof together, "%s", weir_test_path("together"));
    make_towns();
    trains_towns(1, alone, "3", optimizer, NULL);
    watch("0");
    trains_towns(2, together, "3", optimizer, NULL);
    history_read(alone, &one);
    history_read(together, &two);
    same_history(&one, &two);
    snprintf(path, sizeof path, "%s.0", weir_test_path("sent"));
    assert_ok(weir_file_load(path, 4096, &text, &length));
    char *at = strstr(text, "sums ");
    assert_non_null(at);
    floats = strtoull(at + strlen("sums "), &at, 10);
    told = strtoull(at, &at, 10);
    assert_int_equal(*at, ' '); /* and then its memory */
    weir_free(text);
    /* 3 epochs of 10 steps; what is not embeddings is some thousand floats. */
    const uint64_t steps = 30, table = (uint64_t)TOWN_SLOTS * TOWN_HIDDEN;
    print_message("%" PRIu64 " floats a step, of a table of %" PRIu64 "\n", floats / steps, table);
    assert_true(floats > steps * TOWN_HIDDEN && floats < steps * 5000 + told / 4 * TOWN_HIDDEN);
    assert_true(floats < steps * table / 20);
    shell("cd $folder && rm -r towns alone together sent.*");
}

static void b3_ranks_sum_the_rows_of_a_batch(void **state) {
    (void)state;
    ranks_sum_rows("adamw");
    ranks_sum_rows("adagrad");
}

/* Rows that waited when the training ended wait no longer when it goes on: the same bits. */
static void r2_embeddings_that_are_resumed(void **state) {
    (void)state;
    make_towns();
    for (unsigned run = 0; run < 4; run++) {
        const char *optimizer = run / 2 ? "adagrad" : "adamw";
        unsigned ranks = 1 + run % 2;
        char whole[4096], resumed[4096];
        snprintf(whole, sizeof whole, "%s", weir_test_path("whole"));
        snprintf(resumed, sizeof resumed, "%s", weir_test_path("resumed"));
        trains_towns(ranks, whole, "3", optimizer, NULL);
        trains_towns(ranks, resumed, "1", optimizer, NULL);
        trains_towns(ranks, resumed, "2", optimizer, "--resume");
        trains_towns(ranks, resumed, "3", optimizer, "--resume");
        shell("cd $folder; for f in params best moment1 moment2; do cmp whole/checkpoint/$f.npy "
              "resumed/checkpoint/$f.npy; done; rm -r whole resumed");
    }
}

/* However long an exchange takes, and so however far the stages are apart, the losses are the same bits. */
static void e4_a_slow_network_changes_nothing(void **state) {
    (void)state;
    static history quick, slow;
    make_snapshot(300);
    watch("0");
    trains(2, weir_test_path("quick"), "2", NULL);
    watch("3000");
    trains(2, weir_test_path("slow"), "2", NULL);
    history_read(weir_test_path("quick"), &quick);
    history_read(weir_test_path("slow"), &slow);
    assert_int_equal(quick.count, 2);
    assert_memory_equal(quick.loss, slow.loss, sizeof quick.loss);
}

/* As many batches ahead as one likes, and makers that are anywhere: the same bits, also where the end comes early. */
static void e4_how_far_ahead_changes_nothing(void **state) {
    (void)state;
    static const char *const wild[] = {"1", "2", "8", "16"};
    make_snapshot(600);
    for (unsigned ranks = 1; ranks <= 4; ranks *= 2) {
        for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
            const char *const more[] = {"--ahead", wild[i], "--rate", "0.05", "--patience", "2", NULL};
            static history h;
            trains(ranks, weir_test_path(i ? "other" : "first"), "12", more);
            history_read(weir_test_path(i ? "other" : "first"), &h);
            assert_true(h.count > 2 && !h.best[h.count - 1] && !h.best[h.count - 2]); /* it did end early */
            if (i > 0)
                shell("cd $folder; for f in params best moment1 moment2; do cmp first/checkpoint/$f.npy "
                      "other/checkpoint/$f.npy; done; rm -r other");
        }
        shell("rm -r $folder/first");
    }
}

/* Makers of one rank meet what they cannot read, while the others wait for its part of the batch, or are elsewhere. */
static void a_maker_that_fails_ends_all(void **state) {
    (void)state;
    char line[16384];
    make_snapshot(600);
    snprintf(line, sizeof line,
             "cd $folder && cp -r snapshot spoilt && for i in $(seq 400 599); do "
             "printf '\\377\\377\\377\\377\\377\\377\\377\\177' | dd of=spoilt/relations/by/out/neighbors.npy bs=1 "
             "seek=$((128 + 8 * i)) conv=notrunc status=none; done && "
             "printf '#!/bin/bash\\nfolder=%s/snapshot\\n[ $OMPI_COMM_WORLD_RANK != 1 ] || folder=%s/spoilt\\n"
             "shift\\nexec %s $folder \"$@\"\\n' >one && chmod +x one",
             weir_test_folder(), weir_test_folder(), ranks_train_program());
    shell(line);
    for (unsigned ranks = 2; ranks <= 4; ranks *= 2) {
        const char *arguments[ARGUMENTS_MAX];
        weir_test_output output;
        char said[64];
        arguments_of(weir_test_path("run"), "50", NULL, arguments);
        ranks_run(ranks, weir_test_path("one"), arguments, &output);
        snprintf(said, sizeof said, "rank 1 of %u on ", ranks);
        const char *sentence = strstr(output.err, said);
        if (output.status == 0 || !sentence || !strstr(sentence, "a neighbour is vertex"))
            fail_msg("status %d\n%s", output.status, output.err);
        weir_test_output_free(&output);
    }
}

/* --- a folder that is a disk of each machine ---------------------------------------------------------------------- */

/* Two ranks go on, each in run-RANK; `text` is what they refuse with, NULL: they do not. */
static void goes_on_apart(const char *const *more, const char *text) {
    const char *arguments[ARGUMENTS_MAX];
    weir_test_output output;
    arguments_of("run", "4", more, arguments);
    ranks_run(2, weir_test_path("apart"), arguments, &output);
    if ((output.status == 0) != !text || (text && !strstr(output.err, text)))
        fail_msg("status %d, wanted '%s'\n%s", output.status, text ? text : "that it goes on", output.err);
    weir_test_output_free(&output);
}

/* Rank 0 alone writes. What the others find is none of its checkpoints, or an old one, or one of another training with
 * as many epochs; only of the very same do they go on, with the bits of a training that shares its folder. */
static void r2_ranks_go_on_from_one_checkpoint(void **state) {
    (void)state;
    static const char *const plain[] = {"--resume", NULL};
    static const char *const known[] = {"--resume", "--embed-vertices", "who", NULL};
    char line[16384];
    make_snapshot(600);
    snprintf(line, sizeof line,
             "cd $folder && printf '#!/bin/bash\nexec %s \"$@\" --folder %s/run-$OMPI_COMM_WORLD_RANK\n' >apart && "
             "chmod +x apart",
             ranks_train_program(), weir_test_folder());
    shell(line);
    for (unsigned shared = 0; shared < 2; shared++) {
        const char *const *more = shared ? known : plain;
        trains(2, weir_test_path("whole"), "4", more);
        trains(2, weir_test_path("run-0"), "2", more);
        shell("cd $folder && cp -r run-0 begun");
        goes_on_apart(more, "rank 0 would continue after epoch 2 and rank 1 after epoch 0; put the folder ");
        trains(2, weir_test_path("run-1"), "1", more);
        goes_on_apart(more, "rank 0 would continue after epoch 2 and rank 1 after epoch 1; put the folder ");
        shell("cd $folder && mv run-0 kept && mv run-1 run-0 && mv kept run-1");
        goes_on_apart(more, "rank 0 would continue after epoch 1 and rank 1 after epoch 2; put the folder ");
        shell("cd $folder && rm -r run-0 run-1 && cp -r begun run-0");
        trains(3, weir_test_path("run-1"), "2", more); /* adds in another order */
        shell("cd $folder && ! cmp -s run-0/checkpoint/params.npy run-1/checkpoint/params.npy");
        goes_on_apart(more, "rank 1 after epoch 2, but from different checkpoints; put the folder ");
        shell("cd $folder && rm -r run-1 && cp -r run-0 run-1");
        goes_on_apart(more, NULL);
        shell("cd $folder; for f in params best moment1 moment2; do cmp whole/checkpoint/$f.npy "
              "run-0/checkpoint/$f.npy; done; rm -r whole begun run-0 run-1");
    }
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static void sentences(void **state) {
    (void)state;
    char run[4096];
    make_snapshot(300);
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    refuses(1, run, (const char *const[]){"--task", "none", NULL}, "the schema has no task 'none'");
    refuses(1, run, (const char *const[]){"--fanouts", "3,,3", NULL}, "--fanouts is 1 to");
    refuses(1, run, (const char *const[]){"--fanouts", "3,3 of=1,1", NULL}, "the schema has no relation 'of'");
    refuses(1, run, (const char *const[]){"--fanouts", "3,3 by.up=1,1", NULL}, "the schema has no relation 'by.up'");
    refuses(1, run, (const char *const[]){"--fanouts", "3,3 by.in=1", NULL}, "--fanouts of 'by' is 2 numbers from 0");
    refuses(1, run, (const char *const[]){"--fanouts", "by=3,3 4,4", NULL}, "put '4,4' first");
    refuses(1, run, (const char *const[]){"--fanouts", " ", NULL}, "--fanouts is empty");
    refuses(1, run, (const char *const[]){"--fanouts", "3,3 by=3,0", NULL}, "all fan-outs of layer 2 are 0");
    refuses(1, run, (const char *const[]){"--fanouts", "3,3 by=0,0", NULL}, "take a fan-out above 0");
    refuses(1, run, (const char *const[]){"--trace", "no/such/folder/t.json", NULL}, "no/such/folder");
    refuses(1, run, (const char *const[]){"--strategy", "weighted:w", NULL}, "nor, behind RELATION=weighted:");
    refuses(1, run, (const char *const[]){"--strategy", "newest", NULL}, "--strategy knows recent, uniform, full,");
    refuses(1, run, (const char *const[]){"--strategy", "recent by=weighted:none", NULL},
            "is neither a half-life such as 30d nor");
    refuses(1, run, (const char *const[]){"--strategy", "by=", NULL}, "--strategy knows recent,");
    refuses(1, run, (const char *const[]){"--validation", "0.6", "--test", "0.4", NULL}, "below 1 together");
    refuses(1, run, (const char *const[]){"--warm-up", "0.9", NULL}, "targets");
    refuses(1, run, (const char *const[]){"--embed-vertices", "who,nobody", NULL}, "no vertex type 'nobody'");
    refuses(1, run, (const char *const[]){"--embed-vertices", "who,", NULL}, "no vertex type ''");
    refuses(1, run, (const char *const[]){"--embed-vertices", "who,who", NULL}, "names 'who' twice");
    refuses(1, run, (const char *const[]){"--unknown", "0.5", NULL}, "name their types, too");
    refuses(1, run, (const char *const[]){"--embedding-optimizer", "sgd", NULL}, "--embedding-optimizer");
    trains(1, run, "1", NULL);
    refuses(1, run, (const char *const[]){"--resume", "--rate", "0.5", NULL}, "of other options");
    refuses(1, run, (const char *const[]){"--resume", "--strategy", "by.in=weighted:w", NULL}, "of other options");
}

/* The exit status is that of a wrong command line, whoever finds it: the options' reader, or a training that knows the
 * snapshot, which under mpirun ends all ranks. */
static void a_wrong_option_is_wrong_usage(void **state) {
    (void)state;
    static const char *const wrong[][3] = {{"--epochs", "0", NULL},
                                           {"--task", "none", NULL},
                                           {"--fanouts", "3,3 by=3,0", NULL},
                                           {"--fanouts", "3,3 by=0,0", NULL},
                                           {"--test", "0.8", NULL}};
    make_snapshot(300);
    for (unsigned ranks = 1; ranks <= 3; ranks += 2) {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            weir_test_output output;
            train(ranks, weir_test_path("run"), "2", wrong[i], &output);
            if (output.status != 64) fail_msg("%u ranks: status %d\n%s", ranks, output.status, output.err);
            weir_test_output_free(&output);
        }
    }
}

static void an_error_of_a_rank_names_it(void **state) {
    (void)state;
    make_snapshot(300);
    refuses(2, weir_test_path("run"), (const char *const[]){"--warm-up", "0.9", NULL}, "rank ");
}

static void a_schema_without_a_task(void **state) {
    (void)state;
    static const char schema[] = "version: 1\nname: bare\nvertices: {pay: {features: {x: {kind: number}}}, who: {}}\n"
                                 "relations: {by: {from: pay, to: who, features: {w: {kind: number}}}}\n"
                                 "sources: {s: {id: id, time: t, mutations: [{put_edge: by, from: a, to: b}]}}\n";
    const char *arguments[3] = {NULL, "--no-baselines", NULL};
    weir_test_output output;
    learn_world w;
    const double x = 1;
    learn_open(&w, schema, 1);
    learn_put(&w, LEARN_PAY, 1, LEARN_START_US, &x);
    arguments[0] = weir_test_path("snapshot");
    learn_build(&w, arguments[0], LEARN_START_US + 1);
    ranks_run(1, ranks_train_program(), arguments, &output);
    assert_int_not_equal(output.status, 0);
    if (!strstr(output.err, "the schema has 0 tasks; add one")) fail_msg("%s", output.err);
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(r1_ranks_lose_what_one_does), WEIR_CASE(r1_ranks_lose_the_same_where_times_are_few),
           WEIR_CASE(r1_each_network_loses_the_same_on_two_ranks), WEIR_CASE(r1_more_ranks_than_targets_of_a_batch),
           WEIR_CASE(two_runs_write_the_same_weights), WEIR_CASE(r2_killed_at_random_moments),
           WEIR_CASE(e4_a_slow_network_changes_nothing), WEIR_CASE(e4_how_far_ahead_changes_nothing),
           WEIR_CASE(a_maker_that_fails_ends_all), WEIR_CASE(b3_ranks_sum_the_rows_of_a_batch),
           WEIR_CASE(r2_embeddings_that_are_resumed), WEIR_CASE(a_rank_that_is_killed_is_named),
           WEIR_CASE(r4_killed_and_gone_on), WEIR_CASE(a_rank_that_fails_says_where),
           WEIR_CASE(r2_ranks_go_on_from_one_checkpoint), WEIR_CASE(sentences),
           WEIR_CASE(a_wrong_option_is_wrong_usage), WEIR_CASE(an_error_of_a_rank_names_it),
           WEIR_CASE(a_schema_without_a_task))
