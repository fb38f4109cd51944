/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest_test.c - `weir backtest` as a user types it, also killed and typed again; and `weir train --as-served`,
 * which is a backtest of the time that its test takes.
 */
#include "days_fixture.h"

#define LEARN   " --epochs 4 --batch 32 --hidden 8 --fanouts 4,4 --negatives 0 --warm-up 0"
#define RUN     "weir backtest snap --budget 10 --models network --validation 0.2" LEARN
#define FROM(n) " --from 2024-10-" n

static void a_backtest_says_how_each_day_went(void **state) {
    (void)state;
    days_snapshot();
    cli_must(RUN " --out out --days 3 --amount x", "^3/3  2024-10-13T00:00  120 targets, learnt from 841$");
    cli_must("head -n 1 out/backtest.csv", "^day,model,targets,.*,amount_caught,amount_of_positives$");
    cli_must("wc -l < out/backtest.csv && tail -n 1 out/backtest.csv", "^2024-10-13,network,120,[0-9]+,0,0[.0-9]*,");
    cli_must("head -n 2 out/predictions.csv", "^n840,2024-10-11T00:00:00.000000Z,[01],-?[.0-9]+,-?[.0-9]+$");
    cli_must("cat out/backtest.json", "\"days\":3,\"every\":1,\"alerts_a_day\":10,\"targets\":360,");
    cli_must("grep -c '<circle' out/backtest.svg", "^3$");
    cli_must(RUN " --out out --days 3", "^1/3  .* learnt from [0-9]+, was there$");
    cli_must(RUN " --out weeks --days 4 --every 3" FROM("10T12:00:00Z"), "^2/2  2024-10-13T12:00  60 targets");
}

/* Killed as soon as a day is there, at some moment of the second one. */
static void a_killed_one_goes_on(void **state) {
    (void)state;
    days_snapshot();
    cli_must(RUN " --out whole --days 4", "^4 days from 2024-10-10: 480 targets");
    cli_must("{ " RUN " --out killed --days 4 > said 2>&1 & pid=$!; "
             "until ls killed/days/*.json > days 2> /dev/null; do sleep 0.01; done; "
             "kill -9 $pid; wait $pid || true; test ! -e killed/backtest.csv && test $(ls killed/days/*.json | wc -l) "
             "-lt 4; }"
             " && echo killed",
             "^killed$");
    cli_must(RUN " --out killed --days 4", ", was there$");
    cli_must("diff -r killed whole && echo the same", "^the same$");
}

/* The test of the training is the last day: the figure of a backtest of that day, to the last digit. */
static void a_training_as_served(void **state) {
    (void)state;
    days_snapshot();
    cli_must(
        "weir train snap --as-served --no-baselines --folder run --models models --validation 0.18 --test 0.1" LEARN,
        "^  as served  +0\\.[0-9]{4}  0\\.[0-9]{4} to ");
    cli_must(RUN " --out out --days 1" FROM("13"), "^1/1");
    cli_must("sed 's/.*\"as_served\":{//; s/}.*//' run/report.json",
             "^\"known\":\"2024-10-13T00:00:00.000000Z\",\"known_targets\":841,\"not_known_yet\":239,\"targets\":120,");
    cli_must("number() { grep -o '\"average_precision\":[0-9.]*' | head -n 1; }; "
             "test \"$(sed 's/.*\"as_served\"//' run/report.json | number)\" = \"$(number < out/backtest.json)\" && "
             "grep -q '\"as_served\":{\"known\"' models/2*/metrics.json && echo the same",
             "^the same$");
    cli_must("weir train snap --as-served --no-baselines --validation 0.05 --test 0.9" LEARN,
             "^  as served  +there are only [0-9]+ targets ");
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"weir backtest snap", "--out is missing"},
        {"weir backtest nothing --out out", "nothing"},
        {RUN " --out out --models networks", "'networks' is none of network, trees, blend and row"},
        {RUN " --out out --models trees,row --jump max", "--jump is of a network, and --models has neither"},
        {RUN " --out out --amount y", "'p' has no feature 'y' that is a number"},
        {RUN " --out out --task u", "the schema has no task 'u'"},
        {RUN " --out out --days 0", "--days"},
        {RUN " --out out --test 0.2", "unknown option --test"},
        {RUN " --out out" FROM("05"), "what was known on 2024-10-05: there are only 0 targets to learn from"},
        {RUN " --out out" FROM("15"), "the snapshot ends at 2024-10-16"},
        {"weir train snap --as-served --per-class 3,3", "--as-served is of a cut by time"},
        {"weir train snap --as-served --plan", "--as-served is a second training"},
    };
    days_snapshot();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cli_refused(rows[i][0], rows[i][1]);
    cli_must("test ! -e out && echo nothing", "^nothing$");
}

WEIR_TESTS(WEIR_CASE(a_backtest_says_how_each_day_went), WEIR_CASE(a_killed_one_goes_on),
           WEIR_CASE(a_training_as_served), WEIR_CASE(what_makes_no_sense_is_refused))
