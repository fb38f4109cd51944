/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_test.c - `weir sweep` as a user types it, also killed and typed again, and with trials that fail. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "days_fixture.h"

#define IN_USE    69 /* a training of the killed sweep still ends */
#define TRIES_MAX 400
#define SIGKILLED (128 + SIGKILL)
#define LIFE_US   700000

#define SAME_AGAIN "trainings as in the other cases, over and over"

#define LEARN " -- --batch 32 --fanouts 4,4 --negatives 0 --warm-up 0 --validation 0.2 --test 0.2"
#define TRY   " --try rate=log:1e-4..1e-1 --try 'hidden=4|8' --try 'residual=on|off'"
#define PLAN  " --trials 7 --rungs 2 --epochs 6" TRY LEARN
#define SWEEP "weir sweep snap --out "

/* What is left apart from how long it took. */
#define TABLE(folder) "sed 's/,[^,]*$//' " folder "/trials.csv"
#define SAME(folder)                                                                                           \
    "test \"$(" TABLE(folder) ")\" = \"$(" TABLE(                                                              \
        "whole") ")\" && "                                                                                     \
                 "test \"$(sed 's/.*\"best\"//; s/,\"check\".*//' " folder "/sweep.json)\" = "                 \
                 "\"$(sed 's/.*\"best\"//; s/,\"check\".*//' whole/sweep.json)\" && "                          \
                 "for t in whole/trials/*; do cmp $t/report.json " folder "/trials/${t##*/}/report.json; done" \
                 " && echo the same"

static void a_sweep_finds_the_best_by_validation(void **state) {
    (void)state;
    days_snapshot();
    cli_must(SWEEP "s --dry-run" PLAN, "^rung 2 of 2: 3 trials, each to epoch 6$");
    cli_must("test ! -e s && echo nothing", "^nothing$");
    cli_must(SWEEP "s" PLAN,
             "^best on validation: trial [1-7]\\. .* on the test, by which nothing was chosen, it has 0");
    cli_must("tail -n +2 s/trials.csv | cut -d, -f2 | sort | uniq -c | tr -s ' ' | tr '\\n' ';'",
             "^ 1 best; 2 ended; 4 stopped;$");
    /* The best is the highest of those that came to the last rung; three did, with all epochs that there are. */
    cli_must("test \"$(awk -F, '$4 == 2' s/trials.csv | sort -t, -k7,7gr | head -n 1)\" = \"$(grep best s/trials.csv | "
             "grep -v ^trial)\" && awk -F, '$4 == 2 && $5 == 6' s/trials.csv | wc -l",
             "^3$");
    cli_must("grep -c '<path class=\"best\"' s/sweep.svg", "^2$"); /* its line, and the legend's */
    cli_must("grep -c 'prefers-color-scheme' s/sweep.svg", "^1$");
    /* The command line that it prints is the training that it had, but for learning again and the trees. */
    cli_must(
        "line=$(grep -o '\"command\":\"[^\"]*' s/sweep.json | cut -d'\"' -f4); "
        "best=$(grep best s/trials.csv | grep -v ^trial | cut -d, -f1); $line --learn once --no-baselines --folder "
        "again > said; "
        "cmp again/report.json s/trials/00$best/report.json && echo the same",
        "^the same$");
    cli_must(SWEEP "s" PLAN, "^rung 1/2 .*, was there ");
    cli_must(SWEEP "s" PLAN, " it has 0[^:]* \\(95 of 100: [^)]*\\), learnt once$");
    cli_must(SWEEP "s" PLAN, "^train it again, which learns a second time, from validation, too, ");
    cli_must("weir runs s --sort validation | sed -n 3p", "^s/trials/00[1-7] ");
}

/* Trials beyond those that there were leave the others as they are. */
static void h1_more_trials_are_added(void **state) {
    (void)state;
    days_snapshot();
    cli_must(SWEEP "s --trials 2 --epochs 1" TRY LEARN, "^best on validation: trial [12]\\.");
    cli_must("cp s/trials.csv two.csv; " SWEEP "s --trials 4 --epochs 1" TRY LEARN,
             "^rung 1/1  trial 2 .*, was there ");
    cli_must("for row in $(grep '^[12],' two.csv | cut -d, -f4-); do grep -q \",$row$\" s/trials.csv; done; "
             "wc -l < s/trials.csv",
             "^5$");
    cli_refused(SWEEP "s --trials 3 --epochs 1" TRY LEARN, "--trials was 4 and is 3");
}

/* Two of the values cannot be drawn once each in five trials. */
static void what_repeats_is_trained_once(void **state) {
    (void)state;
    days_snapshot();
    cli_must(SWEEP "s --trials 5 --epochs 1 --try 'hidden=4|8'" LEARN, "^ +[1-5] .*  as trial [1-4]$");
    /* The first line of the table has the word, too. */
    cli_must(
        SWEEP "s --trials 5 --epochs 1 --try 'hidden=4|8'" LEARN,
        "^best on validation: trial [1-5]\\. (Being the best of 2, its figure there says too much; on|On) the test");
    cli_must("test $(ls s/trials | wc -l) = $(grep -vc ',repeats,' s/trials.csv) && "
             "test $(ls s/trials | wc -l) -le 2 && echo once",
             "^once$");
}

/* Its folder has a checkpoint that is damaged, which is no fault of the options. */
static void a_failing_trial_is_said_and_the_others_go_on(void **state) {
    static const char line[] = SWEEP "s --trials 6 --epochs 1" TRY LEARN;
    weir_test_output output;
    (void)state;
    days_snapshot();
    cli_must(SWEEP "s --trials 2 --epochs 1" TRY LEARN, "^best on validation");
    cli_must("mkdir -p s/trials/004/checkpoint", "");
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 65, line, &output, "must say by its status that one failed");
    CLI_ASSERT(cli_matches(output.err, "^weir sweep: 1 of 6 trials failed, the first of them trial 4: weir train: the "
                                       "checkpoint .* has lost its MANIFEST"),
               line, &output, "must say so on stderr");
    CLI_ASSERT(cli_matches(output.out, "^best on validation: trial [12356]"), line, &output, "must go on");
    CLI_ASSERT(cli_matches(output.out, "^rung 1/1  trial 4     failed: weir train: "), line, &output, "must say it");
    CLI_ASSERT(cli_matches(output.out, "^    4  .*  failed: weir train: "), line, &output, "must name it");
    weir_test_output_free(&output);
    cli_must("grep -c ',failed,' s/trials.csv", "^1$");
    cli_bash(weir_test_folder(), line, &output); /* and it is not tried again */
    CLI_ASSERT(output.status == 65 && !strstr(output.out, "training"), line, &output, "must be recorded");
    weir_test_output_free(&output);
    cli_must("rm -r s/trials/004/checkpoint", "");
    cli_must(SWEEP "s --trials 6 --epochs 1 --retry" TRY LEARN, "^rung 1/1  trial 4     0");
}

/* All of the last rung fail: what they got in the first one is said of that one, and another is the best. */
static void what_fails_in_the_last_rung_is_never_the_best(void **state) {
    static const char line[] = SWEEP "s" PLAN;
    weir_test_output output;
    (void)state;
    days_snapshot();
    cli_bash(weir_test_folder(), "WEIR_KILL_AT=sweep.before:8 " SWEEP "s" PLAN, &output);
    CLI_ASSERT(output.status == 128 + SIGKILL, line, &output, "must be killed there");
    weir_test_output_free(&output);
    cli_must("rm s/trials/*/checkpoint/MANIFEST", "");
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 65 && cli_matches(output.err, "^weir sweep: 3 of 7 trials failed"), line, &output,
               "must say how many failed");
    CLI_ASSERT(cli_matches(output.out, "^rung 2/2  trial [1-7]     failed: "), line, &output, "must say where");
    CLI_ASSERT(!cli_matches(output.out, "^rung 1/2  trial [1-7]     failed: "), line, &output, "must say where");
    weir_test_output_free(&output);
    cli_bash(weir_test_folder(), line, &output); /* nor when it is begun again */
    CLI_ASSERT(!cli_matches(output.out, "^rung 1/2  trial [1-7]     failed: "), line, &output, "must say where");
    weir_test_output_free(&output);
    cli_must("best=$(grep -o '\"best\":{\"number\":[0-9]*' s/sweep.json | tr -dc 0-9); "
             "sed -n 2p s/trials.csv | grep -c \"^$best,best,.*,1,\"; grep -c ,failed, s/trials.csv",
             "^1\n3$");
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"weir sweep snap", "--out is missing"},
        {SWEEP "s" LEARN, "--try is missing"},
        {"weir sweep --out s" TRY LEARN, "the snapshot to train from is missing"},
        {"weir sweep nothing --out s" TRY LEARN, "nothing is no folder of a snapshot"},
        {SWEEP "s --try rate=2..1", "does not rise"},
        {SWEEP "s --try 'rate=1|2' --try 'rate=3|4'", "--try rate is given twice"},
        {SWEEP "s --try 'rat=1|2'", "trial 1, --rat=[12]: weir train says: unknown option --rat; did you mean --rate"},
        {SWEEP "s --try 'heads=2|4'", "weir train says: --heads is of --network attention and gat"},
        {SWEEP "s --try rate=5..50", "weir train says: --rate is"},
        {SWEEP "s --try 'network=mean|mode'", "--network is 'mode'"},
        {SWEEP "s --try 'epochs=1|2'", "--epochs cannot be an option of the trials"},
        {SWEEP "s" TRY " -- --models m", "--models cannot be an option of the trials"},
        {SWEEP "s --try 'learn=once|twice'", "--learn cannot be an option of the trials"},
        {SWEEP "s --try validation=0.1..0.3", "--try validation would have each trial measured on other targets"},
        {SWEEP "s --try 'test=0.1|0.2'", "--try test would have"},
        {SWEEP "s --try 'masks=a,b,c|a,c,b'", "--try masks would have"},
        {SWEEP "s --try 'per-class=1,2|2,3'", "--try per-class would have"},
        {SWEEP "s --try 'warm-up=0|0.1'", "--try warm-up would have"},
        {SWEEP "s --try horizons=1..3", "--try horizons would have"},
        {SWEEP "s --try 'task=t|u'", "--try task would have"},
        {SWEEP "s" TRY " -- --print-config", "--print-config cannot be an option of the trials"},
        {SWEEP "s" TRY " -- --print-config=markdown", "--print-config cannot be an option of the trials"},
        {SWEEP "s" TRY " -- --check-config", "--check-config cannot be an option of the trials"},
        {SWEEP "s" TRY " -- --version", "--version cannot be an option of the trials"},
        {SWEEP "s" TRY " -- -e 5", "--epochs cannot be an option of the trials"},
        {SWEEP "s" TRY " -- --folder=x", "--folder cannot be an option of the trials"},
        {SWEEP "s" TRY " -- --nonsense", "unknown option --nonsense"},
        {SWEEP "s" TRY " --keep 2", "--keep says how many go on"},
        {SWEEP "s" TRY " --rungs 3 --epochs 2", "2 epochs are too few for 3 rungs"},
        {SWEEP "s --rungs 2 --try 'schedule=constant|cosine'" LEARN, "each of the 2 rungs would have another"},
        {SWEEP "s --try seed=1..9" LEARN " --split random", "measured on targets that its own seed draws"},
        {SWEEP "s --rungs 2" TRY LEARN " --schedule cosine", "each of the 2 rungs would have another"},
        {SWEEP "s" TRY " --trials 0", "--trials"},
    };
    days_snapshot();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cli_refused(rows[i][0], rows[i][1]);
    cli_must("test ! -e s && echo nothing", "^nothing$"); /* all of it before anything was begun */
}

static void another_sweep_in_its_folder_is_refused(void **state) {
    (void)state;
    days_snapshot();
    cli_must(SWEEP "s --trials 2 --rungs 2 --epochs 3" TRY LEARN, "^best on validation");
    cli_must("cp -r s before", "");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 4" TRY LEARN, "s has another sweep: --epochs was 3 and is 4");
    cli_refused(SWEEP "s --trials 3 --rungs 2 --epochs 3" TRY LEARN, "--trials was 2 and is 3");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 3 --seed 2" TRY LEARN, "--seed was 1 and is 2");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 3" TRY " --try dropout=0..0.5" LEARN,
                "--try dropout was not given and is 0..0.5");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 3 --try rate=log:1e-4..1e-1 --try 'hidden=4|8'" LEARN,
                "--try residual was on\\|off and is not given");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 3" TRY LEARN " --dropout 0.1",
                "-- was --batch .* and is --batch");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 4 --dry-run" TRY LEARN, "--epochs was 3 and is 4");
    cli_must(SWEEP "s --trials 2 --rungs 2 --epochs 3 --dry-run" TRY LEARN, "^rung 2 of 2: ");
    cli_must("mkdir -p other/trials", "");
    cli_refused(SWEEP "other --trials 2 --dry-run" TRY LEARN, "other/trials is there, but no sweep.json");
    cli_must("diff -r s before && echo untouched", "^untouched$");
    cli_must("sed -i 's/average/anerage/' s/sweep.json", "");
    cli_refused(SWEEP "s --trials 2 --rungs 2 --epochs 3" TRY LEARN, "s/sweep.json is damaged");
}

/* Ranks have the losses of one process but for the order of sums. */
static void each_trial_may_have_ranks(void **state) {
    weir_test_output output;
    (void)state;
    if (access("/usr/bin/mpirun", X_OK) != 0) weir_test_skip("no mpirun");
    days_snapshot();
    cli_refused("PATH=$(dirname $(command -v weir)) weir sweep snap --out s --ranks 2" TRY LEARN,
                "mpirun is not in PATH");
    const char *line = "ASAN_OPTIONS=detect_leaks=0 " SWEEP "s --ranks 2 --trials 2 --epochs 2" TRY LEARN;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 0 && cli_matches(output.out, "^  mpirun -n 2 weir-train snap "), line, &output,
               "must say how to train it again");
    weir_test_output_free(&output);
    cli_must("grep -o '\"ranks\":[0-9]*' s/trials/002/run.json", "^\"ranks\":2$");
    /* mpirun says of its ranks whether the options were wrong. */
    cli_refused("ASAN_OPTIONS=detect_leaks=0 " SWEEP "t --ranks 2 --try 'heads=2|4'" LEARN,
                "trial 1, --heads=[24]: weir train says: (rank . of 2 [^:]*: )?--heads is of --network attention");
}

/* One that is asked to stop ends its training, records nothing of it, and goes on when it is begun again. */
static void a_stopped_one_goes_on(void **state) {
    (void)state;
    weir_test_skip_under("address", SAME_AGAIN);
    days_snapshot();
    cli_must(SWEEP "whole" PLAN, "^best on validation");
    cli_must(
        "{ " SWEEP "k" PLAN " > said 2> err & pid=$!; until grep -q 'trial 2' said; do sleep 0.01; done; "
        "kill -TERM $pid; wait $pid || echo status $?; grep -c 'stopped on request; the same command goes on' err; "
        "grep -c failed k/sweep.json || true; }",
        "^status 70$");
    cli_must(SWEEP "k" PLAN, "^rung 1/2  trial 2 .*, was there ");
    cli_must(SAME("k"), "^the same$");
}

/* While the options of its trials are looked at, also of a sweep that has trained some. */
static void a_stopped_look_has_begun_no_training(void **state) {
    (void)state;
    days_snapshot();
    cli_must(SWEEP "s --trials 1 --epochs 1" TRY LEARN, "^best on validation: trial 1\\. On the test, by which ");
    cli_must("cp -r s before; { " SWEEP "s --trials 1000 --epochs 1" TRY LEARN " > said 2> err & pid=$!; "
             "until grep -q . /proc/$pid/task/$pid/children; do sleep 0.01; done; kill -TERM $pid; "
             "wait $pid || echo status $?; }; diff -r s before",
             "^status 70$");
    cli_must("cat err", "^weir sweep: stopped on request; no training was begun");
}

/* A training that is killed alone, as for want of memory, is not the trial's failing. */
static void h2_a_killed_training_is_gone_on_with(void **state) {
    (void)state;
    weir_test_skip_under("address", SAME_AGAIN);
    days_snapshot();
    cli_must(SWEEP "whole" PLAN, "^best on validation");
    /* A look for leaks would be another child of it, to which nothing may happen. */
    cli_must("{ ASAN_OPTIONS=detect_leaks=0 " SWEEP "k" PLAN " > said 2> err & pid=$!; "
             "until grep -q 'trial 2' said; do sleep 0.01; done; "
             "for i in {1..200}; do grep -q sweep /proc/$pid/cmdline 2> nothing || break; "
             "kill -KILL $(cat /proc/$pid/task/$pid/children) 2> nothing || true; sleep 0.01; done; "
             "wait $pid || echo status $?; "
             "grep -c 'weir-train was ended by signal 9, .*; the same command goes on' err; "
             "grep -c failed k/sweep.json || true; }",
             "^status 69$");
    cli_must("grep -c 'the same command goes on' err; grep -c failed k/sweep.json || true", "^0$");
    cli_must(SWEEP "k" PLAN, "^rung 1/2  trial 2 .*, was there ");
    cli_must(SAME("k"), "^the same$");
}

/* --- killed ------------------------------------------------------------------------------------------------------- */

static void go_on(const char *line) {
    weir_test_output output;
    for (int i = 0; i < TRIES_MAX; i++) {
        cli_bash(weir_test_folder(), line, &output);
        const int status = output.status;
        if (status && status != IN_USE) CLI_ASSERT(false, line, &output, "must go on");
        weir_test_output_free(&output);
        if (!status) return;
        usleep(50000);
    }
    fail_msg("the trainings of a killed sweep do not end");
}

/* A sweep that ends so because of a kill at that point ends as it would have when it goes on. */
static void check_killed_at(const char *point, int status) {
    weir_test_output output;
    char line[1024];
    snprintf(line, sizeof line, "rm -rf k; WEIR_KILL_AT=%s " SWEEP "k" PLAN, point);
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "must be killed there");
    weir_test_output_free(&output);
    go_on(SWEEP "k" PLAN);
    cli_must(SAME("k"), "^the same$");
}

/* Each point comes in a trial of the first rung and in one of the second. */
static void h2_killed_at_each_point_it_ends_as_it_would_have(void **state) {
    static const char *const points[] = {"before:3", "trained:3", "saved:4", "before:9", "trained:9", "saved:10"};
    (void)state;
    weir_test_skip_under("address", SAME_AGAIN);
    days_snapshot();
    cli_must(SWEEP "whole" PLAN, "^best on validation");
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        char point[64];
        snprintf(point, sizeof point, "sweep.%s", points[i]);
        check_killed_at(point, SIGKILLED);
    }
}

/* A training writes an epoch's line and its checkpoint; killed between the two it has lost neither. The sweep, whose
 * trainings are killed, says so. */
static void h2_killed_between_a_line_and_its_checkpoint(void **state) {
    (void)state;
    weir_test_skip_under("address", SAME_AGAIN);
    days_snapshot();
    cli_must(SWEEP "whole" PLAN, "^best on validation");
    for (unsigned epoch = 1; epoch <= 3; epoch++) {
        char point[64];
        snprintf(point, sizeof point, "train.between:%u", epoch);
        check_killed_at(point, IN_USE);
        cli_must("for t in whole/trials/*; do diff <(grep -o '\"epoch\":[0-9]*' $t/epochs.jsonl) "
                 "<(grep -o '\"epoch\":[0-9]*' k/trials/${t##*/}/epochs.jsonl); done && echo all lines",
                 "^all lines$");
    }
}

static void run_and_kill(int64_t life_us) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        cli_path_set();
        if (chdir(weir_test_folder()) == 0)
            execlp("bash", "bash", "-c", "exec " SWEEP "k" PLAN " > said", (char *)NULL);
        _exit(127);
    }
    usleep((useconds_t)life_us);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void h2_killed_at_random_moments_it_ends_as_it_would_have(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    (void)state;
    weir_test_skip_under("address", SAME_AGAIN);
    days_snapshot();
    cli_must(SWEEP "whole" PLAN, "^best on validation");
    for (uint64_t round = 0; round < weir_test_rounds(5); round++)
        run_and_kill(400000 + (int64_t)weir_rng_below(&rng, LIFE_US));
    go_on(SWEEP "k" PLAN);
    cli_must(SAME("k"), "^the same$");
}

/* Two at once would train into the same folders. */
static void a_second_one_waits_outside(void **state) {
    (void)state;
    days_snapshot();
    cli_must("mkdir s; flock s/lock sleep 3 & sleep 0.5; " SWEEP "s --trials 1 --epochs 1" TRY LEARN
             " 2> said || echo status $?; wait; grep -c 'another sweep runs in s' said",
             "^status 69$");
}

WEIR_TESTS(WEIR_CASE(a_sweep_finds_the_best_by_validation), WEIR_CASE(h1_more_trials_are_added),
           WEIR_CASE(what_repeats_is_trained_once), WEIR_CASE(a_failing_trial_is_said_and_the_others_go_on),
           WEIR_CASE(what_makes_no_sense_is_refused), WEIR_CASE(another_sweep_in_its_folder_is_refused),
           WEIR_CASE(each_trial_may_have_ranks), WEIR_CASE(a_stopped_one_goes_on),
           WEIR_CASE(a_stopped_look_has_begun_no_training), WEIR_CASE(h2_a_killed_training_is_gone_on_with),
           WEIR_CASE(what_fails_in_the_last_rung_is_never_the_best),
           WEIR_CASE(h2_killed_at_each_point_it_ends_as_it_would_have),
           WEIR_CASE(h2_killed_between_a_line_and_its_checkpoint),
           WEIR_CASE(h2_killed_at_random_moments_it_ends_as_it_would_have), WEIR_CASE(a_second_one_waits_outside))
