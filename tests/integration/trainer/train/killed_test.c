/* SPDX-License-Identifier: Apache-2.0 */
/*
 * killed_test.c - ranks with a part each, of which one is killed at a step or at a named point, again and again: as
 * many ranks go on with the bits of a training that was let be, and other parts or other ranks with its losses.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "learn_fixture.h"
#include "ranks.h"
#include "shell.h"

#define RANKS       3u
#define EPOCHS      6u
#define KILLS       4u
#define LOSS_WITHIN 1e-5 /* of the loss of a training that was let be: TRAIN-R1 */

/* Of each rank its own part alone; RANK_TO_KILL names the one that is killed at KILLED_AT. */
static void cut(const char *name, unsigned ranks, unsigned depth) {
    char line[8192];
    snprintf(line, sizeof line,
             "cd $folder && $weir partition snapshot --parts %u --depth %u --method random --out %s >/dev/null && "
             "printf '#!/bin/bash\\n[ \"$OMPI_COMM_WORLD_RANK\" != \"$RANK_TO_KILL\" ] || export "
             "WEIR_KILL_AT=\"$KILLED_AT\"\\nexec %s --parts %s/%s \"$@\"\\n' >%s/train && chmod +x %s/train",
             ranks, depth, name, ranks_train_program(), weir_test_folder(), name, name, name);
    shell(line);
}

/* Returns the exit status. program: of parts, or NULL, of the whole snapshot. */
static int run(unsigned ranks, const char *program, const char *folder, weir_test_output *outputp) {
    char snapshot[4096], epochs[16];
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    snprintf(epochs, sizeof epochs, "%u", EPOCHS);
    const char *const arguments[] = {"--task",
                                     "bad",
                                     "--folder",
                                     folder,
                                     "--epochs",
                                     epochs,
                                     "--batch",
                                     "32",
                                     "--hidden",
                                     "16",
                                     "--fanouts",
                                     "6,6",
                                     "--patience",
                                     "0",
                                     "--warm-up",
                                     "0.05",
                                     "--validation",
                                     "0.25",
                                     "--test",
                                     "0.25",
                                     "--learn",
                                     "once",
                                     "--embed-vertices",
                                     "who",
                                     "--average",
                                     "0.6",
                                     "--no-baselines",
                                     "--resume",
                                     program ? NULL : snapshot,
                                     NULL};
    ranks_run(ranks, program ? program : ranks_train_program(), arguments, outputp);
    return outputp->status;
}

static void goes_well(unsigned ranks, const char *program, const char *folder) {
    weir_test_output output;
    if (run(ranks, program, folder, &output)) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
}

static void is_killed(const char *program, const char *folder, unsigned rank, const char *at) {
    char number[16];
    weir_test_output output;
    snprintf(number, sizeof number, "%u", rank);
    assert_int_equal(setenv("RANK_TO_KILL", number, 1), 0);
    assert_int_equal(setenv("KILLED_AT", at, 1), 0);
    print_message("rank %u is killed at %s\n", rank, at);
    if (!run(RANKS, program, folder, &output) || !strstr(output.err, "exited on signal 9"))
        fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    weir_test_output_free(&output);
    unsetenv("RANK_TO_KILL");
    unsetenv("KILLED_AT");
}

/* How many epochs the folder's curve has; losses are those. */
static unsigned losses_of(const char *folder, double losses[EPOCHS]) {
    char path[4200], *text = NULL, *at;
    size_t length;
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/epochs.jsonl", folder);
    if (!weir_path_exists(path)) return 0;
    assert_ok(weir_file_load(path, 1u << 20, &text, &length));
    for (at = text; (at = strstr(at, "\"loss\":")); count++) {
        assert_true(count < EPOCHS);
        losses[count] = strtod(at + strlen("\"loss\":"), &at);
    }
    weir_free(text);
    return count;
}

static void same_losses(const char *whole, const char *killed) {
    double a[EPOCHS], b[EPOCHS];
    assert_int_equal(losses_of(whole, a), EPOCHS);
    assert_int_equal(losses_of(killed, b), EPOCHS);
    for (unsigned i = 0; i < EPOCHS; i++)
        if (!(fabs(a[i] - b[i]) <= LOSS_WITHIN * fabs(a[i])))
            fail_msg("epoch %u: losses %.9g and %.9g", i + 1, a[i], b[i]);
}

typedef struct places {
    char program[4096], whole[4096], killed[4096];
} places;

/* A training that is let be, of parts of this depth. */
static void begin(unsigned depth, places *p) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 600, .people = 30, .bad = 0.3};
    shell("rm -rf $folder/*");
    learn_snapshot(&plan, weir_test_path("snapshot"));
    cut("three", RANKS, depth);
    snprintf(p->program, sizeof p->program, "%s", weir_test_path("three/train"));
    snprintf(p->whole, sizeof p->whole, "%s", weir_test_path("whole"));
    snprintf(p->killed, sizeof p->killed, "%s", weir_test_path("killed"));
    goes_well(RANKS, p->program, p->whole);
}

/* A rank that is drawn ends at a step that is drawn of those of an epoch and a half, and all with it. */
static void r2_killed_at_any_step(unsigned depth) {
    static places p;
    double losses[EPOCHS];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 9, depth);
    begin(depth, &p);
    for (unsigned i = 0; i < KILLS && losses_of(p.killed, losses) + 2 <= EPOCHS; i++) {
        char at[32];
        snprintf(at, sizeof at, "train.step:%u", 1 + (unsigned)weir_rng_below(&rng, 14));
        is_killed(p.program, p.killed, (unsigned)weir_rng_below(&rng, RANKS), at);
    }
    goes_well(RANKS, p.program, p.killed);
    shell("cd $folder; for f in params best moment1 moment2 average moments state; do cmp whole/checkpoint/$f.npy "
          "killed/checkpoint/$f.npy; done; cmp whole/report.json killed/report.json");
}

/* Between an epoch's line and its checkpoint, of who writes both and of who gives embeddings for it. */
static void r2_killed_between(unsigned depth) {
    static places p;
    begin(depth, &p);
    is_killed(p.program, p.killed, 0, "train.between:1");
    is_killed(p.program, p.killed, RANKS - 1, "train.between:2");
    is_killed(p.program, p.killed, 0, "train.between:2");
    goes_well(RANKS, p.program, p.killed);
    shell("cd $folder; for f in params best moment1 moment2 average moments state; do cmp whole/checkpoint/$f.npy "
          "killed/checkpoint/$f.npy; done; cmp whole/report.json killed/report.json");
}

/* What three have left two go on with, whose parts reach elsewhere, then five, and in the end one with the snapshot. */
static void r1_others_go_on(unsigned depth) {
    static places p;
    char two[4096], five[4096], at[32];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 10, depth);
    begin(depth, &p);
    cut("two", 2, 1 - depth);
    cut("five", 5, depth);
    snprintf(two, sizeof two, "%s", weir_test_path("two/train"));
    snprintf(five, sizeof five, "%s", weir_test_path("five/train"));
    snprintf(at, sizeof at, "train.step:%u", 11 + (unsigned)weir_rng_below(&rng, 20)); /* behind the first epoch */
    is_killed(p.program, p.killed, (unsigned)weir_rng_below(&rng, RANKS), at);
    shell("cd $folder; [ -d killed/checkpoint ]; cp -r killed killed2; cp -r killed killed5; cp -r killed killed1");
    goes_well(2, two, weir_test_path("killed2"));
    goes_well(5, five, weir_test_path("killed5"));
    goes_well(1, NULL, weir_test_path("killed1"));
    same_losses(p.whole, weir_test_path("killed2"));
    same_losses(p.whole, weir_test_path("killed5"));
    same_losses(p.whole, weir_test_path("killed1"));
}

static void r2_killed_at_any_step_with_parts_of_depth_0(void **state) {
    (void)state;
    r2_killed_at_any_step(0);
}

static void r2_killed_at_any_step_with_parts_of_depth_1(void **state) {
    (void)state;
    r2_killed_at_any_step(1);
}

static void r2_killed_before_the_checkpoint(void **state) {
    (void)state;
    r2_killed_between(0);
    r2_killed_between(1);
}

static void r1_killed_and_gone_on_by_other_ranks(void **state) {
    (void)state;
    r1_others_go_on(0);
    r1_others_go_on(1);
}

WEIR_TESTS(WEIR_CASE(r2_killed_at_any_step_with_parts_of_depth_0),
           WEIR_CASE(r2_killed_at_any_step_with_parts_of_depth_1), WEIR_CASE(r2_killed_before_the_checkpoint),
           WEIR_CASE(r1_killed_and_gone_on_by_other_ranks))
