/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend_test.c - `weir train` of a task that recommends, as a user types it: its report, its judgement beside
 * another model's, two nights, and options of the other kind of task, which are refused.
 */
#include "cli_support.h"

#define MODELS            " --models models "
#define CONFIG            " --set models.require_signature=false"
#define TRAIN             "weir train snap --task next_view --epochs 2"
#define RECALLS           "0\\.[0-9]{4}"
#define TRAINED_ELSEWHERE "trains as the other cases do"

static void shop_make(void) {
    cli_must("weir simulate clicks --people 200 --items 480 --days 10 --seed 5 --to file:stream 2>/dev/null && "
             "weir load stream/clicks.jsonl --schema clicks --data data && "
             "weir snapshot build snap --path data/store",
             "^snap: [0-9]+ vertices");
}

static void a_training_reports_and_is_judged(void **state) {
    (void)state;
    shop_make();
    cli_must(TRAIN MODELS "--folder run", "^  model +" RECALLS "  " RECALLS " to " RECALLS "  ");
    /* the test's figure, to the last digit */
    cli_must("test $(grep -o '\"recall_at_20\":[0-9.]*' run/report.json | tail -1 | cut -d: -f2) = "
             "$(weir train snap --judge models/2*" CONFIG
             " | grep -o '\"value\":[0-9.]*' | cut -d: -f2) && echo the same",
             "^the same$");
    cli_must(TRAIN " --model best", "^  model +"); /* as a night asks for it */
    cli_must("weir train snap --judge models/2* --against models/2*" CONFIG,
             "\"difference\":\\{\"value\":0,\"low\":0,\"high\":0\\}");
    cli_must("weir model show $(ls models | grep Z-) --path models" CONFIG, "\"family\":\"recommend\"");
}

/* How items to compare with are drawn follows from whether edges fade, unless it is said. */
static void how_items_are_drawn(void **state) {
    (void)state;
    weir_test_skip_under("address", TRAINED_ELSEWHERE);
    static const char *const rows[][2] = {{"", "as-met"},
                                          {" --half-life 0s", "evenly"},
                                          {" --half-life 0s --drawn as-met", "as-met"},
                                          {" --drawn evenly", "evenly"},
                                          {" --loss bpr", "evenly"}};
    shop_make();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char command[512], said[64];
        snprintf(command, sizeof command,
                 "weir train snap --task next_view --epochs 1 --hidden 4 --models drawn%zu%s >/dev/null && cat "
                 "drawn%zu/2*/provenance.json",
                 i, rows[i][0], i);
        snprintf(said, sizeof said, "\"drawn\":\"%s\"", rows[i][1]);
        cli_must(command, said);
    }
}

/* Products have a decay, unless it is said, and a scale of their own. */
static void what_products_are_learnt_with(void **state) {
    (void)state;
    shop_make();
    cli_must(
        "weir train snap --task next_view --epochs 1 --hidden 4 --models products --loss products >/dev/null && cat "
        "products/2*/provenance.json",
        "\"loss\":\"products\".*\"rate\":0.01,\"decay\":0.1\\}");
    cli_must("weir train snap --task next_view --epochs 1 --hidden 4 --models said --loss products --schedule cosine "
             "--decay 0 >/dev/null && cat said/2*/provenance.json",
             "\"schedule\":\"cosine\",\"decay\":0\\}");
}

static void runs_and_sweeps_know_its_figure(void **state) {
    (void)state;
    weir_test_skip_under("address", TRAINED_ELSEWHERE);
    shop_make();
    cli_must(TRAIN " --folder run", "^epoch 2");
    cli_must("weir runs run",
             "^run .*  next_view +recommend +" RECALLS "  " RECALLS " \\(" RECALLS " to " RECALLS "\\) ");
    cli_must("weir runs run --json | grep -c '\"validation_by_epoch\":\\[0[.0-9]*,0[.0-9]*\\]'", "^1$");
    cli_must(
        "weir sweep snap --out s --trials 4 --rungs 2 --keep 2 --epochs 2 --try 'hidden=4..16' -- --task next_view",
        "^trials, by recall@20 of validation:$");
    cli_must("grep -c '<path class=\"best\"' s/sweep.svg", "^2$");
}

static void options_of_the_other_kind_are_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {TRAIN " --fanouts 3", "--fanouts is of a network that classifies, and task 'next_view' recommends"},
        {TRAIN " --model trees", "--model is of a network"},
        {TRAIN " --no-baselines", "--no-baselines is of a network"},
        {TRAIN " --loss bpr --negatives 3", "--negatives is of --loss softmax and products"},
        {TRAIN " --loss products --temperature 3", "--temperature is of --loss softmax"},
        {TRAIN " --relations opened", "no relation 'opened' between the types of 'viewed'"},
        {TRAIN " --relations viewed=0", "the weight of 'viewed' is a number from"},
        {TRAIN " --relations viewed=1x", "the weight of 'viewed' is a number from"},
        {TRAIN " --horizons 900", "history is shorter|pairs of a user and an item to learn from"},
    };
    shop_make();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cli_refused(rows[i][0], rows[i][1]);
    cli_must("weir simulate payments --accounts 200 --days 2 --to file:bank 2>/dev/null && "
             "weir load bank/*.jsonl --schema payments --data bank-data && "
             "weir snapshot build bank-snap --path bank-data/store",
             "^bank-snap: [0-9]+ vertices");
    cli_refused("weir train bank-snap --layers 3", "--layers is of a task that recommends, and this one classifies");
}

static void vectors_of_both_kinds_are_written(void **state) {
    (void)state;
    shop_make();
    cli_must(TRAIN MODELS "--hidden 8", "^model 2");
    cli_must("weir embed snap --model models/2* --out v" CONFIG " && ls v | tr '\n' ' '",
             "^item.keys.csv item.npy person.keys.csv person.npy $");
    cli_must("weir embed snap --model models/2* --type item --out i.csv" CONFIG " && head -1 i.csv",
             "^key,time,e0,e1,e2,e3,e4,e5,e6,e7,e8$");
    cli_refused("weir embed snap --model models/2* --type session --out s.csv" CONFIG, "no embedding of a session");
    cli_refused("weir score snap --model models/2* --out s.csv" CONFIG, "recommends, and scores nothing");
}

/* The second night's model is as good, give or take chance, so the first goes on. */
static void a_night_promotes_one_that_recommends(void **state) {
    (void)state;
    weir_test_skip_under("address", TRAINED_ELSEWHERE);
    shop_make();
    cli_must("weir nightly --data data" CONFIG " -- --task next_view --epochs 2",
             "^7/7  decide +promoted .*: no model served yet; its recall@20 is " RECALLS " on [0-9]+ targets");
    cli_must("weir nightly --data data" CONFIG " -- --task next_view --epochs 2 --seed 2",
             "^7/7  decide +(kept|promoted) .*recall@20 is " RECALLS);
}

WEIR_TESTS(WEIR_CASE(a_training_reports_and_is_judged), WEIR_CASE(how_items_are_drawn),
           WEIR_CASE(what_products_are_learnt_with), WEIR_CASE(runs_and_sweeps_know_its_figure),
           WEIR_CASE(options_of_the_other_kind_are_refused), WEIR_CASE(vectors_of_both_kinds_are_written),
           WEIR_CASE(a_night_promotes_one_that_recommends))
