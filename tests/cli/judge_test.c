/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_test.c - `weir train --judge` of a model whose schema has gained aggregates since: those that the model does
 * not know change no figure, and where they would come in between it is refused in a sentence. And of two models; and
 * what a training writes of each target.
 *
 * The snapshots are of one store, so that targets and blocks are the same. Whether a payment is bad shows in nothing
 * but how many its account has made, which is what the model's only aggregate counts.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "cli_support.h"

#define PAYMENTS 1200
#define ACCOUNTS 300 /* more than are read at once, so that what does not fit is behind the end */

static const char schema_begin[] = "version: 1\n"
                                   "name: t\n"
                                   "vertices: {p: {features: {x: {kind: number}}}, a: {}}\n"
                                   "relations: {by: {from: p, to: a, features: {x: {kind: number}}}}\n"
                                   "aggregates:\n";
static const char known[] = "  made: {vertex: a, relation: by, function: count, window: 1d, normalise: log-standard}\n";
static const char schema_end[] = "labels: {bad: {vertex: p, values: [no, yes], absent: no, lag: 1s}}\n"
                                 "tasks: {t: {kind: classify, label: bad, positive: yes}}\n"
                                 "sources:\n"
                                 "  s:\n"
                                 "    id: i\n"
                                 "    time: {field: t, format: s}\n"
                                 "    mutations:\n"
                                 "      - {put_vertex: p, key: i, features: [x]}\n"
                                 "      - {put_edge: by, from: i, to: a, features: [x]}\n"
                                 "      - {put_label: bad, key: i, when: {has: y}, value: y}\n";

static void put_schema(const char *name, const char *before, unsigned more) {
    FILE *file = fopen(weir_test_path(name), "w");
    assert_non_null(file);
    fprintf(file, "%s%s%s", schema_begin, before, known);
    for (unsigned i = 1; i <= more; i++)
        fprintf(file, "  sum%u: {vertex: a, relation: by, function: sum, of: x, window: %uh, normalise: none}\n", i, i);
    fputs(schema_end, file);
    assert_int_equal(fclose(file), 0);
}

/* Of four payments three are of a third of the accounts, and of those two are bad. */
static void put_events(void) {
    FILE *file = fopen(weir_test_path("s.jsonl"), "w");
    assert_non_null(file);
    for (int i = 0; i < PAYMENTS; i++) {
        bool busy = i % 4 != 0;
        int account = busy ? i % (ACCOUNTS / 3) : ACCOUNTS / 3 + i / 4 % (ACCOUNTS * 2 / 3);
        fprintf(file, "{\"i\":\"%d\",\"t\":%d,\"x\":%d,\"a\":\"%d\"%s}\n", i, 1000 + i, i * 31 % 100, account,
                busy && i % 3 ? ",\"y\":\"yes\"" : "");
    }
    assert_int_equal(fclose(file), 0);
}

/* As nightly does, which shows the figures beside those of the next model. The batch size is that of the training:
 * for products of another shape some processors' BLAS rounds differently, and two equal scores may then no longer be
 * equal. */
#define JUDGE                                                                                   \
    "weir train %s --judge models/2* --batch 64 --warm-up 0 --validation 0.2 --test 0.5 --set " \
    "models.require_signature=false"

static void judge(const char *snapshot, weir_test_output *output) {
    char line[512];
    snprintf(line, sizeof line, JUDGE, snapshot);
    cli_bash(weir_test_folder(), line, output);
}

static void snapshot_of(const char *schema, const char *data) {
    char line[512];
    snprintf(line, sizeof line,
             "weir load --schema %s.yaml --data %s s.jsonl && weir snapshot build %s --path %s/store --as-of "
             "1970-01-01T02:00:00Z",
             schema, data, schema, data);
    cli_must(line, "^.*: 1[45][0-9]+ vertices, 1200 edges");
}

static void make_model(void) {
    put_events();
    put_schema("old.yaml", "", 0);
    snapshot_of("old", "d");
    cli_must(
        "weir train old --epochs 8 --batch 64 --hidden 8 --rate 0.02 --warm-up 0 --validation 0.2 --test 0.5 --folder "
        "run --models models --no-baselines",
        "^epoch");
}

static void more_aggregates_change_no_figure(void **state) {
    weir_test_output before, after;
    (void)state;
    make_model();
    judge("old", &before);
    CLI_ASSERT(before.status == 0 && cli_matches(before.out, "\"targets\":[1-9]"), JUDGE, &before, "must be judged");
    put_schema("new.yaml", "", 12);
    snapshot_of("new", "d");
    judge("new", &after);
    CLI_ASSERT(after.status == 0, JUDGE, &after, "must be judged");
    assert_string_equal(after.out, before.out);
    weir_test_output_free(&before);
    weir_test_output_free(&after);
}

/* A store is not opened under such a schema; but it can be filled under it. */
static void an_aggregate_in_between_is_refused(void **state) {
    weir_test_output output;
    (void)state;
    make_model();
    put_schema("new.yaml", "  first: {vertex: a, relation: by, function: max, of: x, window: 1h, normalise: none}\n",
               0);
    snapshot_of("new", "filled-anew");
    judge("new", &output);
    CLI_ASSERT(output.status == 65 && cli_one_line(output.err) && cli_matches(output.err, "aggregate"), JUDGE, &output,
               "must be refused in a sentence");
    weir_test_output_free(&output);
}

/* The number behind the nth "key": of a line of JSON. */
static double number_at(const char *text, const char *key, unsigned nth) {
    for (; text && nth > 0; nth--) {
        text = strstr(text, key);
        text = text ? text + strlen(key) : NULL;
    }
    if (!text) fail_msg("there is no %s", key);
    return strtod(text, NULL);
}

/* One that has seen the data once is worse than one that has learnt; each gets against the other what it gets alone. */
static void two_models_are_compared(void **state) {
    static const char compare[] = "a=$(ls -d models/2*) b=$(ls -d less/2*)\n"
                                  "j() { weir train old --warm-up 0 --validation 0.2 --test 0.5 --set "
                                  "models.require_signature=false \"$@\"; }\n"
                                  "j --judge $a --against $b && j --judge $b --against $a && j --judge $a --against $a";
    weir_test_output output;
    (void)state;
    make_model();
    cli_must("weir train old --epochs 1 --batch 256 --hidden 8 --rate 0.0001 --warm-up 0 --validation 0.2 --test 0.5 "
             "--models less --no-baselines",
             "^epoch");
    cli_bash(weir_test_folder(), compare, &output);
    CLI_ASSERT(output.status == 0, compare, &output, "must be compared");
    const char *second = strchr(output.out, '\n') + 1, *third = strchr(second, '\n') + 1;
    double own = number_at(output.out, "\"value\":", 1), other = number_at(output.out, "\"value\":", 2);
    CLI_ASSERT(own > other && number_at(output.out, "\"low\":", 1) > 0, compare, &output, "must be surely better");
    assert_true(number_at(second, "\"value\":", 1) == other && number_at(second, "\"value\":", 2) == own);
    assert_true(fabs(number_at(output.out, "\"value\":", 3) - (own - other)) < 1e-9);
    assert_true(number_at(second, "\"high\":", 1) < 0);
    assert_true(number_at(third, "\"low\":", 1) == 0 && number_at(third, "\"high\":", 1) == 0);
    weir_test_output_free(&output);
    cli_bash(weir_test_folder(), "weir train old --against models/2*", &output);
    CLI_ASSERT(output.status == 64 && cli_matches(output.err, "give --judge"), "--against", &output, "needs --judge");
    weir_test_output_free(&output);
}

/* A model whose layers add is written, read and judged as what it is: it gets what its training said. */
static void layers_that_add_stay_so(void **state) {
    weir_test_output output;
    char *report;
    size_t length;
    (void)state;
    put_events();
    put_schema("old.yaml", "", 0);
    snapshot_of("old", "d");
    cli_must("weir train old --residual --fanouts 4,4,4 --epochs 4 --batch 64 --hidden 8 --rate 0.02 --warm-up 0 "
             "--validation 0.2 --test 0.5 --folder run --models models --no-baselines",
             "^epoch");
    cli_must("grep -c '\"residual\":true' models/2*/model.json", "^1");
    judge("old", &output);
    CLI_ASSERT(output.status == 0, JUDGE, &output, "must be judged");
    assert_ok(weir_file_load(weir_test_path("run/report.json"), 1 << 20, &report, &length));
    double said = number_at(strstr(report, "\"test\":"), "\"average_precision\":", 1);
    assert_true(number_at(output.out, "\"value\":", 1) == said);
    weir_free(report);
    weir_test_output_free(&output);
}

/* One of each kind of gathering, with its words in model.json; and what the command refuses. */
static void networks_stay_what_they_are(void **state) {
    static const struct {
        const char *options, *words;
    } of[] = {{"attention --heads 2", "\"network\":\"attention\",\"heads\":2"},
              {"gcn", "\"network\":\"gcn\""},
              {"mean --jump concat", "\"jump\":\"concat\""},
              {"mean --jump max", "\"jump\":\"max\""},
              {"mean --norm none", "\"norm\":\"none\""},
              {"mean --norm stream --residual", "\"residual\":true,\"norm\":\"stream\""},
              {"mean --residual --feed-forward", "\"feed_forward\":true"},
              {"gat --head none --residual", "\"window\":[0-9]*,\"head\":\"none\",\"network\":\"gat\""}};
    char line[512];
    weir_test_output output;
    (void)state;
    put_events();
    put_schema("old.yaml", "", 0);
    snapshot_of("old", "d");
    const size_t part = weir_test_part(4, 1); /* of them, others in each run */
    for (size_t i = weir_test_seed() % part; i < sizeof of / sizeof of[0]; i += part) {
        char *report;
        size_t length;
        snprintf(
            line, sizeof line,
            "rm -rf run models; weir train old --network %s --fanouts 4,4 --epochs 3 --batch 64 --hidden 8 --rate 0.02 "
            "--warm-up 0 --validation 0.2 --test 0.5 --folder run --models models --no-baselines",
            of[i].options);
        cli_must(line, "^epoch");
        snprintf(line, sizeof line, "grep -c '%s' models/2*/model.json", of[i].words);
        cli_must(line, "^1");
        judge("old", &output);
        CLI_ASSERT(output.status == 0, JUDGE, &output, "must be judged");
        assert_ok(weir_file_load(weir_test_path("run/report.json"), 1 << 20, &report, &length));
        assert_true(number_at(output.out, "\"value\":", 1) ==
                    number_at(strstr(report, "\"test\":"), "\"average_precision\":", 1));
        weir_free(report);
        weir_test_output_free(&output);
    }
    static const char *const wrong[][2] = {
        {"weir train old --network gin --heads 2", "--heads is of --network attention and gat"},
        {"weir train old --network gat --hidden 10", "4 heads do not divide --hidden 10"},
        {"weir train old --network gat --model trees", "--model trees has none"},
        {"weir train old --residual --model trees", "--residual is of a network"},
        {"weir train old --encoder none --model trees", "--encoder is of a network"},
        {"weir train old --schedule cosine --model trees", "--schedule is of a network, and --model trees has none"},
        {"weir train old --edge-dropout 0.1 --model trees", "--edge-dropout is of a network"},
        {"weir train old --edge-dropout 1", "--edge-dropout"},
        {"weir train old --attention-dropout 0.1", "--attention-dropout is of --network attention and gat"},
        {"weir train old --attention-dropout 0.1 --model trees", "--attention-dropout is of a network"},
        {"weir train old --network gat --attention-dropout 1", "--attention-dropout"},
        {"weir train old --average 1", "--average"},
        {"weir train old --average 0.5 --model trees", "--average is of a network"},
        {"weir train old --l2 0.001 --model trees", "--l2 is of a network"},
        {"weir train old --l2 -1", "--l2"},
        {"weir train old --focal 2 --model trees", "--focal is of a network"},
        {"weir train old --focal 11", "--focal"},
        {"weir train old --jump max --model trees", "--jump is of a network"},
        {"weir train old --jump lstm", "--jump"},
        {"weir train old --head none --model trees", "--head is of a network"},
        {"weir train old --feed-forward --model trees", "--feed-forward is of a network"},
        {"weir train old --norm none --model trees", "--norm is of a network"},
        {"weir train old --head none --jump max", "--head none has none"},
        {"weir train old --head none --fanouts 4", "take two layers"},
        {"weir train old --head none --fanouts 4 --check", "take two layers"},
        {"weir train old --rate-end 0.1", "--rate-end is where --schedule cosine falls to"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cli_bash(weir_test_folder(), wrong[i][0], &output);
        CLI_ASSERT(output.status == 64 && cli_matches(output.err, wrong[i][1]), wrong[i][0], &output, wrong[i][1]);
        weir_test_output_free(&output);
    }
}

/* --- families ----------------------------------------------------------------------------------------------------- */

#define CUT       " --warm-up 0 --validation 0.2 --test 0.5 "
#define ANYBODY_S "--set models.require_signature=false "

static void make_data(void) {
    put_events();
    put_schema("old.yaml", "", 0);
    snapshot_of("old", "d");
}

/* Into the folder of its name; its report is beside it. */
static void train_family(const char *family) {
    char line[512];
    snprintf(line, sizeof line,
             "weir train old --model %s --epochs 4 --batch 64 --hidden 8 --rate 0.02" CUT
             "--folder run-%s --models %s --no-baselines --predictions %s.csv",
             family, family, family, family);
    cli_must(line, "model 2");
}

static double said_by_report(const char *family, const char *behind) {
    char name[64], *report;
    size_t length;
    snprintf(name, sizeof name, "run-%s/report.json", family);
    assert_ok(weir_file_load(weir_test_path(name), 1 << 20, &report, &length));
    const char *from = behind ? strstr(report, behind) : report;
    assert_non_null(from);
    double value = number_at(strstr(from, "\"test\":"), "\"average_precision\":", 1);
    weir_free(report);
    return value;
}

/* What a training said of trees, of a network and of both is what each of these models gets when it is judged, against
 * any other. */
static void families_get_what_their_training_said(void **state) {
    static const char *const families[] = {"network", "trees", "blend"};
    double said[3];
    (void)state;
    make_data();
    for (int i = 0; i < 3; i++) {
        char line[512];
        train_family(families[i]);
        said[i] = said_by_report(families[i], NULL);
        snprintf(line, sizeof line, "weir model show ./%s/2* " ANYBODY_S "| grep -o '\"family\":\"[a-z]*\"' | head -1",
                 families[i]);
        cli_must(line, families[i]);
    }
    assert_true(said_by_report("blend", "\"with_network\"") > 0);
    assert_true(said_by_report("blend", "\"network\"") == said[0]); /* as it is learnt alone */
    assert_true(said_by_report("blend", "\"graph_trees\"") == said[1]);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            char line[512];
            weir_test_output output;
            snprintf(line, sizeof line, "weir train old --batch 64" CUT ANYBODY_S "--judge %s/2* --against %s/2*",
                     families[i], families[j]);
            cli_bash(weir_test_folder(), line, &output);
            CLI_ASSERT(output.status == 0, line, &output, "must be compared");
            assert_true(number_at(output.out, "\"value\":", 1) == said[i]);
            assert_true(number_at(output.out, "\"value\":", 2) == said[j]);
            weir_test_output_free(&output);
        }
}

/* Which family --model best took, by the reports of all three that learn alike. */
static void best_is_the_best_on_validation(void **state) {
    static const char *const families[] = {"network", "trees", "blend"};
    (void)state;
    make_data();
    const int seeds = 3 / (int)weir_test_part(3, 1);
    for (int seed = 1; seed <= seeds; seed++) {
        char line[512], *report;
        double got[3];
        int best = 0;
        size_t length;
        for (int i = 0; i < 4; i++) {
            const char *family = i < 3 ? families[i] : "best";
            snprintf(line, sizeof line,
                     "rm -rf %s && weir train old --model %s --seed %d --epochs 2 --batch 64 --hidden 8 --rate 0.02" CUT
                     "--folder run-%s --models %s --no-baselines%s",
                     family, family, seed, family, family, i < 3 ? "" : " >shown");
            cli_must(line, i < 3 ? "model 2" : "");
            snprintf(line, sizeof line, "run-%s/report.json", family);
            assert_ok(weir_file_load(weir_test_path(line), 1 << 20, &report, &length));
            const double value = number_at(strstr(report, "\"validation\":"), "\"average_precision\":", 1);
            weir_free(report);
            if (i < 3) got[i] = value;
            if (i < 3 && got[i] > got[best]) best = i;
            assert_true(i < 3 || value == got[best]);
        }
        printf("seed %d: %s of %.4f %.4f %.4f\n", seed, families[best], got[0], got[1], got[2]);
        snprintf(line, sizeof line, "^best on validation: %s, 0\\.[0-9]{4} above", families[best]);
        cli_must("cat shown", line);
        snprintf(line, sizeof line,
                 "cmp <(tail -c 500 best/2*/weights.safetensors) <(tail -c 500 %s/2*/weights.safetensors) && "
                 "weir model show ./best/2* " ANYBODY_S,
                 families[best]);
        cli_must(line, best ? families[best] : "\"task\"");
        weir_test_output output;
        cli_bash(weir_test_folder(), "weir train old --batch 64" CUT ANYBODY_S "--judge best/2*", &output);
        assert_ok(weir_file_load(weir_test_path("run-best/report.json"), 1 << 20, &report, &length));
        assert_true(number_at(output.out, "\"value\":", 1) ==
                    number_at(strstr(report, "\"test\":"), "\"average_precision\":", 1));
        weir_free(report);
        weir_test_output_free(&output);
    }
}

/* Where there is one family only, it is that. */
static void best_of_what_can_be_had(void **state) {
    (void)state;
    make_data();
    cli_must("weir train old --model best --epochs 1 --batch 64 --hidden 8 --strategy uniform --no-baselines" CUT,
             "^best on validation: network$");
    cli_must("weir train old --model best --epochs 1 --batch 64 --hidden 8 --fanouts 4,4,4 --no-baselines" CUT,
             "^best on validation: (network, 0\\.[0-9]{4} above blend|blend, 0\\.[0-9]{4} above network)$");
}

/* The same seed, the same bits. */
static void trees_are_the_same_again(void **state) {
    (void)state;
    make_data();
    train_family("trees");
    cli_must("mv trees first && mv trees.csv first.csv && echo moved", "^moved");
    train_family("trees");
    cli_must("cmp first/2*/weights.safetensors trees/2*/weights.safetensors && cmp first/2*/model.json "
             "trees/2*/model.json && cmp first.csv trees.csv && echo same",
             "^same");
}

/* What stands beside a blend's scores, and that these are probabilities. */
static void a_blend_s_predictions(void **state) {
    char line[256];
    double least = 1, most = 0;
    (void)state;
    make_data();
    train_family("blend");
    FILE *file = fopen(weir_test_path("blend.csv"), "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "part,key,time,label,score,probability,network,graph_trees\n");
    while (fgets(line, sizeof line, file)) {
        char *rest = line, *field = NULL;
        for (int i = 0; i < 6; i++)
            assert_non_null(field = strsep(&rest, ","));
        const double probability = strtod(field, NULL);
        least = fmin(least, probability);
        most = fmax(most, probability);
    }
    assert_true(least >= 0 && most <= 1 && most > least);
    fclose(file);
}

static void what_trees_cannot_be_learnt_with(void **state) {
    static const struct {
        const char *options, *sentence;
    } cases[] = {
        {"--model trees --fanouts 4,4,4", "two hops far"},
        {"--model trees --embed-vertices a", "know no embeddings"},
        {"--model trees --strategy 'recent by.out=uniform'", "newest edges"},
        {"--model blend --strategy uniform", "newest edges"},
        {"--model blend --plan", "of a network"},
        {"--model forest", "network"},
    };
    (void)state;
    make_data();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        weir_test_output output;
        snprintf(line, sizeof line, "weir train old %s" CUT, cases[i].options);
        cli_bash(weir_test_folder(), line, &output);
        CLI_ASSERT(output.status == 64 && cli_one_line(output.err) && cli_matches(output.err, cases[i].sentence), line,
                   &output, "must be refused in a sentence");
        weir_test_output_free(&output);
    }
}

/* --- predictions -------------------------------------------------------------------------------------------------- */

typedef struct predicted {
    bool test;
    int pay, label;
    double score, probability, graph_trees, row_trees;
} predicted;

static size_t read_predictions(const char *name, predicted *rows) {
    char line[256];
    size_t count = 0;
    FILE *file = fopen(weir_test_path(name), "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "part,key,time,label,score,probability,graph_trees,row_trees\n");
    while (fgets(line, sizeof line, file)) {
        predicted *p = &rows[count++];
        assert_true(count <= PAYMENTS);
        char *fields[8], *rest = line;
        for (unsigned i = 0; i < 8; i++)
            assert_non_null(fields[i] = strsep(&rest, ","));
        assert_null(rest);
        p->pay = (int)strtol(fields[1], NULL, 10);
        p->label = (int)strtol(fields[3], NULL, 10);
        p->score = strtod(fields[4], NULL);
        p->probability = strtod(fields[5], NULL);
        p->graph_trees = strtod(fields[6], NULL);
        p->row_trees = strtod(fields[7], NULL);
        p->test = strcmp(fields[0], "test") == 0;
        assert_true(p->test || strcmp(fields[0], "validation") == 0);
        assert_int_equal(p->label, p->pay % 4 != 0 && p->pay % 3 != 0); /* as the events were made */
        assert_true(p->probability > 0 && p->probability < 1);
    }
    fclose(file);
    return count;
}

/* By the definition: the mean, over the positives of the test, of the precision of all that score as high or higher. */
static double naive_precision(const predicted *rows, size_t count, size_t offset) {
    double sum = 0, positives = 0;
    for (size_t i = 0; i < count; i++) {
        double all = 0, found = 0, score = *(const double *)((const char *)&rows[i] + offset);
        for (size_t j = 0; j < count && rows[i].label; j++) {
            bool above = rows[j].test && *(const double *)((const char *)&rows[j] + offset) >= score;
            all += above;
            found += above && rows[j].label;
        }
        if (!rows[i].test || !rows[i].label) continue;
        sum += found / all;
        positives++;
    }
    return sum / positives;
}

/* Each target stands there once, and what the report says of all follows from what is said of each. */
static void predictions_are_those_of_the_report(void **state) {
    static predicted rows[PAYMENTS];
    bool met[PAYMENTS] = {false};
    char *report;
    size_t length;
    (void)state;
    put_events();
    put_schema("old.yaml", "", 0);
    snapshot_of("old", "d");
    cli_must("weir train old --epochs 4 --batch 64 --hidden 8 --rate 0.02 --warm-up 0 --validation 0.2 --test 0.5 "
             "--folder run --predictions p.csv",
             "\\+ network");
    size_t count = read_predictions("p.csv", rows);
    for (size_t i = 0; i < count; i++) {
        assert_false(met[rows[i].pay]);
        met[rows[i].pay] = true;
    }
    assert_ok(weir_file_load(weir_test_path("run/report.json"), 1 << 20, &report, &length));
    const char *test = strstr(report, "\"test\":"), *trees = strstr(report, "\"graph_trees\":");
    assert_true((double)count == number_at(report, "\"targets\":", 1) + number_at(report, "\"targets\":", 2));
    double network = number_at(test, "\"average_precision\":", 1);
    double graph = number_at(strstr(trees, "\"test\":"), "\"average_precision\":", 1);
    double row = number_at(strstr(strstr(report, "\"row_trees\":"), "\"test\":"), "\"average_precision\":", 1);
    assert_true(fabs(naive_precision(rows, count, offsetof(predicted, score)) - network) < 1e-6);
    assert_true(fabs(naive_precision(rows, count, offsetof(predicted, graph_trees)) - graph) < 1e-6);
    assert_true(fabs(naive_precision(rows, count, offsetof(predicted, row_trees)) - row) < 1e-6);
    weir_free(report);
}

static void predictions_are_of_a_training(void **state) {
    weir_test_output output;
    (void)state;
    make_model();
    cli_bash(weir_test_folder(), "weir train old --judge models/2* --predictions p.csv", &output);
    CLI_ASSERT(output.status == 64 && cli_matches(output.err, "omit --parts, --judge"), "--judge", &output, "refused");
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(families_get_what_their_training_said), WEIR_CASE(best_is_the_best_on_validation),
           WEIR_CASE(best_of_what_can_be_had), WEIR_CASE(trees_are_the_same_again), WEIR_CASE(a_blend_s_predictions),
           WEIR_CASE(what_trees_cannot_be_learnt_with), WEIR_CASE(more_aggregates_change_no_figure),
           WEIR_CASE(an_aggregate_in_between_is_refused), WEIR_CASE(two_models_are_compared),
           WEIR_CASE(layers_that_add_stay_so), WEIR_CASE(networks_stay_what_they_are),
           WEIR_CASE(predictions_are_those_of_the_report), WEIR_CASE(predictions_are_of_a_training))
