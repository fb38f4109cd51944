/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest_test.c - days of pays whose rule turns round at one of them: who knows the new rule before its labels came
 * has read the future. And the figures, computed again from predictions.csv, pair by pair.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>
#include <weir/trainer/backtest/backtest.h>
#include <weir/trainer/boost/boost.h>

#include "learn_fixture.h"

#define DAYS     13u
#define EACH     160u /* pays of a day */
#define TURN     6u   /* the day from which on a high x is bad, where a low one was before */
#define MIDNIGHT 1700006400000000ll
#define DAY_US   (86400 * LEARN_SECOND)
#define STEP_US  (DAY_US / EACH)
#define TOLD_US  (DAY_US / 2) /* from a pay to its label, which has two days */
#define RIPE_US  (2 * DAY_US)
#define NO_FORK  INT64_MAX

static const char days_schema_text[] =
    "version: 1\n"
    "name: days\n"
    "vertices:\n"
    "  pay: {features: {x: {kind: number, normalise: standard}}}\n"
    "  who: {features: {hint: {kind: number, normalise: standard}}}\n"
    "relations:\n"
    "  by: {from: pay, to: who, features: {w: {kind: number, normalise: standard}}}\n"
    "aggregates:\n"
    "  pays_1d: {vertex: who, relation: by, function: count, window: 1d, normalise: log-standard}\n"
    "  bad_5d: {vertex: who, relation: by, function: count, label: bad, is: yes, window: 5d}\n"
    "labels:\n"
    "  bad: {vertex: pay, values: [no, yes], absent: no, lag: 2d}\n"
    "tasks:\n"
    "  bad: {kind: classify, label: bad, positive: yes}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: by, from: a, to: b}]}\n";

/* --- a world ------------------------------------------------------------------------------------------------------ */

/* What happens from fork_us on is drawn by another stream. */
typedef struct days_world {
    learn_world learn;
    weir_rng before, after;
    int64_t fork_us;
} days_world;

static weir_rng *rng_at(days_world *w, int64_t time_us) {
    return time_us < w->fork_us ? &w->before : &w->after;
}

/* All that is said of a pay later: its label, and now and then more. */
static void say_later(days_world *w, uint64_t n, double x, int64_t t) {
    const int64_t told_us = t + TOLD_US;
    const bool high = n / EACH >= TURN ? x > 0 : x < 0;
    weir_rng *rng = rng_at(w, told_us);
    const bool turned = told_us >= w->fork_us && weir_rng_below(rng, 2); /* of a fork the labels are others, too */
    learn_label(&w->learn, LEARN_BAD, n, high != turned ? "yes" : "no", told_us);
    if (weir_rng_below(rng, 8) == 0) {
        const double other = weir_rng_normal(rng);
        learn_put(&w->learn, LEARN_PAY, n, told_us + 1, &other);
    }
    if (weir_rng_below(rng, 8) == 0) learn_edge(&w->learn, n, weir_rng_below(rng, 9), told_us + 2, 7);
}

static weir_snapshot *days_open(uint64_t seed, uint64_t other_seed, int64_t fork_us, int64_t as_of_us) {
    days_world w = {.before = weir_rng_stream(seed, 1, 0), .after = weir_rng_stream(other_seed, 2, 0)};
    weir_snapshot *snapshot;
    char out[4096];
    double xs[DAYS * EACH] = {0};
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    w.fork_us = fork_us;
    learn_open(&w.learn, days_schema_text, seed);
    for (uint64_t n = 0; n < DAYS * EACH + EACH / 2;
         n++) { /* in the order of times: a label half a day after its pay */
        const int64_t t = MIDNIGHT + (int64_t)n * STEP_US;
        if (n >= EACH / 2) say_later(&w, n - EACH / 2, xs[n - EACH / 2], t - TOLD_US);
        if (n >= DAYS * EACH) continue;
        weir_rng *rng = rng_at(&w, t);
        const double x = xs[n] = weir_rng_normal(rng), hint = weir_rng_normal(rng);
        const uint64_t who = weir_rng_below(rng, 9);
        if (weir_rng_below(rng, 4) == 0) learn_put(&w.learn, LEARN_WHO, who, t - 1, &hint);
        learn_put(&w.learn, LEARN_PAY, n, t, &x);
        learn_edge_of(&w.learn, n, who, t, x, w.learn.offset);
    }
    learn_build(&w.learn, out, as_of_us);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    return snapshot;
}

static weir_snapshot *days_open_all(uint64_t seed) {
    return days_open(seed, seed, NO_FORK, MIDNIGHT + DAYS * DAY_US);
}

/* --- a backtest --------------------------------------------------------------------------------------------------- */

static weir_backtest_opts days_opts(const weir_snapshot *snapshot, const char *folder) {
    static const uint32_t fanouts[] = {4, 4};
    weir_backtest_opts o = {.train = weir_train_defaults(), .made_of = "of a test", .folder = folder};
    o.train.snapshot = snapshot;
    o.train.reach.fanouts = fanouts;
    o.train.hidden = 8;
    o.train.epochs = 6;
    o.train.batch = 16;
    o.train.rate = 0.02;
    o.train.negatives = 0;
    o.train.cut.warm_up = 0.5; /* so that the new rule is learnt a few days after the turn */
    o.train.cut.validation = 0.25;
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        o.models[m] = m == WEIR_BACKTEST_NETWORK || weir_boost_available();
    o.from_us = MIDNIGHT + 4 * DAY_US;
    o.days = 5;
    o.every = 1;
    o.budget = 9;
    o.amount = WEIR_SCHEMA_NONE;
    return o;
}

/* What a run has told of its steps; it is ended at this one. */
typedef struct heard {
    uint32_t steps, kept, end_at;
} heard;

static weir_err hear(void *context, const weir_backtest_step *step) {
    heard *h = context;
    h->steps++;
    h->kept += step->kept;
    assert_int_equal(step->number, h->steps);
    return h->steps == h->end_at ? WEIR_ERR(WEIR_EUNAVAILABLE, "ended") : WEIR_OK;
}

static weir_err run(weir_backtest_opts opts, heard *h) {
    weir_comm *comm = NULL;
    weir_buf text = {0};
    *h = (heard){.end_at = h->end_at};
    opts.on_step = hear;
    opts.context = h;
    weir_err err = weir_comm_start(NULL, NULL, &comm);
    if (!err) err = weir_backtest_run(comm, &opts, &text);
    weir_comm_stop(comm);
    weir_buf_free(&text);
    return err;
}

static char *file_text(const char *folder, const char *name, size_t *lengthp) {
    char path[4096], *text;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(weir_file_load(path, (size_t)1 << 26, &text, lengthp));
    return text;
}

/* --- predictions.csv, read again ---------------------------------------------------------------------------------- */

typedef struct prediction {
    uint32_t day;
    double label, amount, scores[WEIR_BACKTEST_MODELS];
} prediction;

typedef struct predictions {
    uint32_t count, models;
    prediction of[DAYS * EACH];
} predictions;

/* "key,time,label[,amount],score,…"; no key has a comma. */
static void read_predictions(const weir_backtest_opts *o, predictions *p) {
    size_t length;
    char *text = file_text(o->folder, "predictions.csv", &length), *rest = text;
    const bool amounts = o->amount != WEIR_SCHEMA_NONE;
    p->count = p->models = 0;
    char *head = strsep(&rest, "\n");
    for (const char *at = head; *at; at++)
        p->models += *at == ',';
    p->models -= 2 + amounts;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        prediction *one = &p->of[p->count++];
        char *word = (strsep(&line, ","), strsep(&line, ","));
        int64_t time_us;
        assert_ok(weir_time_parse(word, strlen(word), &time_us));
        one->day = (uint32_t)((time_us - o->from_us) / DAY_US);
        one->label = strtod(strsep(&line, ","), NULL);
        one->amount = amounts ? strtod(strsep(&line, ","), NULL) : 0;
        for (uint32_t m = 0; m < p->models; m++)
            one->scores[m] = strtod(strsep(&line, ","), NULL);
        assert_null(line);
    }
    weir_free(text);
}

/* What a naive walk over the pairs finds; of one day, or of all (UINT32_MAX). */
typedef struct naive {
    double targets, positives, average_precision, auroc, alerts, precision, recall, caught, amount;
} naive;

static naive naive_of(const predictions *p, uint32_t model, uint32_t day, uint32_t budget) {
    naive f = {0};
    double pairs = 0, found = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const prediction *a = &p->of[i];
        double above = 0, bad_above = 0, higher = 0, equal = 0;
        if (day != UINT32_MAX && a->day != day) continue;
        f.targets++;
        f.positives += a->label;
        f.amount += a->label * a->amount;
        for (uint32_t j = 0; j < p->count; j++) {
            const prediction *b = &p->of[j];
            if (day != UINT32_MAX && b->day != day) continue;
            const double by = a->scores[model] - b->scores[model];
            above += by <= 0;
            bad_above += by <= 0 ? b->label : 0;
            higher += b->day == a->day && by < 0;
            equal += b->day == a->day && by == 0;
            if (!(a->label > b->label)) continue;
            pairs++;
            f.auroc += by > 0 ? 1 : by == 0 ? 0.5 : 0;
        }
        const double looked = fmax(0, fmin(1, ((double)budget - higher) / equal));
        f.alerts += looked;
        found += looked * a->label;
        f.caught += looked * a->label * a->amount;
        if (a->label > 0) f.average_precision += bad_above / above;
    }
    f.average_precision /= f.positives;
    f.auroc /= pairs;
    f.precision = found / f.alerts;
    f.recall = found / f.positives;
    return f;
}

static double auroc_of_day(const predictions *p, uint32_t model, uint32_t day) {
    return naive_of(p, model, day, 1).auroc;
}

/* --- no future ---------------------------------------------------------------------------------------------------- */

/* Before the turn each model is right; after it surely wrong, as long as no label of the new rule had its time; and at
 * last right again, so that the new rule would have shown, had anything of it been seen. */
static void d1_the_new_rule_is_not_known_before_its_labels(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    weir_backtest_opts opts = days_opts(snapshot, weir_test_path("out"));
    predictions *p = malloc(sizeof *p);
    heard h = {0};
    opts.days = 7; /* 4 to 10 */
    assert_ok(run(opts, &h));
    read_predictions(&opts, p);
    assert_int_equal(p->count, 7 * EACH);
    for (uint32_t m = 0; m < p->models; m++) {
        for (uint32_t day = 0; day < opts.days; day++) {
            const uint32_t at = 4 + day;
            const double auroc = auroc_of_day(p, m, day);
            if (at < TURN && !(auroc > 0.8)) fail_msg("model %u on day %u, before the turn: %.3f", m, at, auroc);
            if (at >= TURN && at <= TURN + 2 && !(auroc < 0.2))
                fail_msg("model %u on day %u, before it could know of the turn: %.3f", m, at, auroc);
        }
    }
    opts.train.cut.warm_up = 0.8;
    opts.from_us = MIDNIGHT + 10 * DAY_US;
    opts.days = 1;
    assert_ok(run(opts, &h));
    read_predictions(&opts, p);
    for (uint32_t m = 0; m < p->models; m++)
        if (!(auroc_of_day(p, m, 0) > 0.8)) fail_msg("model %u has not learnt the new rule", m);
    free(p);
    weir_snapshot_close(snapshot);
}

typedef struct learnt {
    weir_real *params;
    uint64_t count;
    weir_train_metrics validation, trees;
} learnt;

static learnt learn_at(const weir_snapshot *snapshot, int64_t known_us) {
    weir_train_opts o = days_opts(snapshot, NULL).train;
    weir_comm *comm = NULL;
    weir_trained *trained = NULL;
    learnt l = {0};
    o.embedded = (const uint32_t[]){LEARN_WHO};
    o.embedded_count = 1;
    o.cut.split = WEIR_TARGETS_BY_TIMES;
    o.cut.known_us = o.cut.test_from_us = known_us;
    o.cut.test_to_us = known_us + DAY_US;
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    assert_ok(weir_train_run(comm, &o, &trained));
    const weir_trained_view view = weir_trained_look(trained);
    l.count = weir_nn_parameter_count(view.nn);
    l.params = calloc(l.count, sizeof *l.params);
    assert_ok(weir_trained_params(trained, l.params));
    l.validation = view.metrics[WEIR_TARGETS_VALIDATION];
    if (weir_boost_available()) {
        weir_train_trees trees;
        assert_ok(weir_train_trees_learn(trained, WEIR_TRAIN_GRAPH_TREES, &trees, NULL));
        l.trees = trees.metrics[WEIR_TARGETS_VALIDATION];
        weir_train_trees_free(&trees);
    }
    weir_trained_close(trained);
    weir_comm_stop(comm);
    return l;
}

/* Two worlds that differ in all that happens from a midnight on: what is learnt at it is the same, bit for bit. */
static void d1_what_comes_later_changes_no_bit(void **state) {
    (void)state;
    const uint64_t seed = weir_test_seed();
    const int64_t known_us = MIDNIGHT + 8 * DAY_US, as_of_us = MIDNIGHT + DAYS * DAY_US;
    weir_snapshot *one = days_open(seed, seed, known_us, as_of_us);
    weir_snapshot *other = days_open(seed, seed + 1, known_us, as_of_us);
    learnt a = learn_at(one, known_us), b = learn_at(other, known_us);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.params, b.params, a.count * sizeof *a.params);
    assert_memory_equal(&a.validation, &b.validation, sizeof a.validation);
    assert_memory_equal(&a.trees, &b.trees, sizeof a.trees);
    free(a.params);
    a = learn_at(one, known_us + DAY_US);
    b.validation.targets =
        a.validation.targets; /* a day later the worlds are others, which shows that it is looked at */
    assert_memory_not_equal(&a.validation, &b.validation, sizeof a.validation);
    free(a.params);
    free(b.params);
    weir_snapshot_close(one);
    weir_snapshot_close(other);
}

/* --- ended and begun again ---------------------------------------------------------------------------------------- */

static const char *const left[] = {"predictions.csv", "backtest.csv", "backtest.json", "backtest.svg"};

static void same_files(const char *a, const char *b) {
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        size_t of_a, of_b;
        char *x = file_text(a, left[i], &of_a), *y = file_text(b, left[i], &of_b);
        assert_int_equal(of_a, of_b);
        assert_memory_equal(x, y, of_a);
        weir_free(x);
        weir_free(y);
    }
}

static void damage(const char *folder, const char *name) {
    size_t length;
    char path[4096], *text = file_text(folder, name, &length);
    text[length / 2] ^= 1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(weir_file_replace(path, text, length));
    weir_free(text);
}

static void d2_what_is_begun_again_is_the_same(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    char whole[4096], again[4096];
    snprintf(whole, sizeof whole, "%s", weir_test_path("whole"));
    snprintf(again, sizeof again, "%s", weir_test_path("again"));
    weir_backtest_opts opts = days_opts(snapshot, whole);
    heard h = {0};
    opts.days = 4;
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 0);

    opts.folder = again;
    h.end_at = 2;
    assert_err(run(opts, &h), WEIR_EUNAVAILABLE, "ended");
    assert_false(weir_path_exists(weir_test_path("again/backtest.csv")));
    h.end_at = 0;
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 2);
    same_files(whole, again);

    damage(again, "days/2023-11-20.json"); /* the second day */
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 3);
    same_files(whole, again);

    opts.budget = 3; /* a figure alone */
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 4);
    opts.made_of = "of another test";
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 0);
    opts.days = 3; /* later days stay as they are */
    opts.from_us += DAY_US;
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 3);
    weir_snapshot_close(snapshot);
}

/* What a file of scores may lack or have too much, with a check that is right. */
typedef struct forgery {
    int more;                /* scores of each model */
    bool twice, other, late; /* a model twice; one that there is not; what it was made of stands behind the scores */
} forgery;

static void forge(const char *folder, const char *name, const char *made_of, forgery f) {
    char path[4096];
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);
    weir_json_object(&json);
    if (!f.late) weir_json_key_string(&json, "made_of", made_of);
    weir_json_key(&json, "scores");
    weir_json_object(&json);
    for (unsigned m = 0; m < 1u + f.twice; m++) {
        weir_json_key(&json, f.other ? "forest" : "network");
        weir_json_array(&json);
        for (int i = 0; i < (int)EACH + f.more; i++)
            weir_json_f64(&json, i);
        weir_json_array_end(&json);
    }
    weir_json_object_end(&json);
    if (f.late) weir_json_key_string(&json, "made_of", made_of);
    weir_json_object_end_checked(&json, 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(weir_file_replace(path, text.bytes, text.length));
    weir_buf_free(&text);
}

static void d2_a_file_that_somebody_wrote_is_not_believed(void **state) {
    (void)state;
    static const char day[] = "days/2023-11-19.json";
    static const forgery forgeries[] = {{.more = -1},    {.more = 1},     {.more = -(int)EACH},
                                        {.twice = true}, {.other = true}, {.late = true}};
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    weir_backtest_opts opts = days_opts(snapshot, weir_test_path("out"));
    char made_of[17] = "";
    size_t length;
    heard h = {0};
    opts.days = 1;
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        opts.models[m] = m == WEIR_BACKTEST_NETWORK;
    assert_ok(run(opts, &h));
    char *right = file_text(opts.folder, day, &length);
    memcpy(made_of, strstr(right, "\"made_of\":\"") + 11, 16);
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        forge(opts.folder, day, made_of, forgeries[i]);
        assert_ok(run(opts, &h));
        assert_int_equal(h.kept, 0);
        size_t again_length;
        char *again = file_text(opts.folder, day, &again_length);
        assert_int_equal(again_length, length);
        assert_memory_equal(again, right, length);
        weir_free(again);
    }
    forge(opts.folder, day, made_of, (forgery){.more = 0}); /* of the right form: there is no more to see */
    assert_ok(run(opts, &h));
    assert_int_equal(h.kept, 1);
    weir_free(right);
    weir_snapshot_close(snapshot);
}

/* One model for two days sees no label of the first when it scores the second. */
static void d2_a_model_for_some_days(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    char each[4096], pair[4096];
    snprintf(each, sizeof each, "%s", weir_test_path("each"));
    snprintf(pair, sizeof pair, "%s", weir_test_path("pair"));
    weir_backtest_opts opts = days_opts(snapshot, each);
    predictions *of_each = malloc(sizeof *of_each), *of_pair = malloc(sizeof *of_pair);
    heard h = {0};
    opts.days = 3;
    assert_ok(run(opts, &h));
    read_predictions(&opts, of_each);
    opts.folder = pair;
    opts.every = 2;
    assert_ok(run(opts, &h));
    assert_int_equal(h.steps, 2);
    read_predictions(&opts, of_pair);
    assert_int_equal(of_each->count, of_pair->count);
    uint32_t others = 0;
    for (uint32_t i = 0; i < of_each->count; i++) {
        const prediction *a = &of_each->of[i], *b = &of_pair->of[i];
        const bool same = memcmp(a->scores, b->scores, of_each->models * sizeof a->scores[0]) == 0;
        assert_true(a->day == b->day && (a->day == 1 || same)); /* the third day has a model of its own in both */
        others += !same;
    }
    assert_true(others > EACH / 2);
    free(of_each);
    free(of_pair);
    weir_snapshot_close(snapshot);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static void d3_labels_that_may_still_come(void **state) {
    (void)state;
    const int64_t as_of_us = MIDNIGHT + 9 * DAY_US + DAY_US / 2; /* half of day 7 had its two days */
    weir_snapshot *snapshot = days_open(weir_test_seed(), 1, NO_FORK, as_of_us);
    weir_backtest_opts opts = days_opts(snapshot, weir_test_path("out"));
    predictions *p = malloc(sizeof *p);
    size_t length;
    heard h = {0};
    opts.from_us = MIDNIGHT + 6 * DAY_US;
    opts.days = 3;
    assert_ok(run(opts, &h));
    read_predictions(&opts, p);
    assert_int_equal(p->count, EACH + EACH / 2 + 1); /* the last one's time ends with the snapshot */
    char *text = file_text(opts.folder, "backtest.csv", &length);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "\n2023-11-22,network,%u,", EACH / 2 + 1);
    assert_non_null(strstr(text, wanted));
    snprintf(wanted, sizeof wanted, ",%u,", EACH / 2 - 1);
    assert_non_null(strstr(strstr(text, "\n2023-11-22,network,"), wanted));
    snprintf(wanted, sizeof wanted, "\n2023-11-23,network,0,0,%u,,,0,,\n", EACH); /* there is nothing to tell */
    assert_non_null(strstr(text, wanted));
    weir_free(text);
    opts.from_us = MIDNIGHT + 8 * DAY_US;
    opts.days = 1;
    assert_err(run(opts, &h), WEIR_EDATA, "have no target whose label had its time (160 may still get theirs)");
    free(p);
    weir_snapshot_close(snapshot);
}

static void near(double actual, double expected, const char *what) {
    if (!(fabs(actual - expected) <= 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%s is %.12g and should be %.12g", what, actual, expected);
}

static void compare_row(char *line, const naive *f) {
    static const char *const names[] = {"targets", "positives", "unripe",           "average precision", "AUROC",
                                        "alerts",  "precision", "recall at budget", "amount caught",     "amount"};
    const double wanted[] = {
        f->targets, f->positives, 0,        f->average_precision, f->auroc, f->alerts, f->precision,
        f->recall,  f->caught,    f->amount};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        near(strtod(strsep(&line, ","), NULL), wanted[i], names[i]);
    assert_null(line);
}

static double number_of(const char *text, const char *key) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    const char *found = strstr(text, wanted);
    if (!found) fail_msg("no %s", key);
    return strtod(found + strlen(wanted), NULL);
}

/* The member of models that has this name, up to the end of the text. */
static const char *model_of(const char *json, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":{", name);
    const char *found = strstr(json, wanted);
    if (!found) fail_msg("no model %s", name);
    return found;
}

static void compare_totals(const predictions *p, const weir_backtest_opts *o, const char *json) {
    double precisions[WEIR_BACKTEST_MODELS];
    for (uint32_t m = 0; m < p->models; m++) {
        const naive all = naive_of(p, m, UINT32_MAX, o->budget);
        const char *of = model_of(json, weir_backtest_models[m]);
        precisions[m] = all.average_precision;
        near(number_of(of, "average_precision"), all.average_precision, "pooled average precision");
        near(number_of(of, "auroc"), all.auroc, "pooled AUROC");
        near(number_of(of, "precision_at_budget"), all.precision, "pooled precision");
        near(number_of(of, "recall_at_budget"), all.recall, "pooled recall");
        near(number_of(of, "amount_caught"), all.caught, "amount caught");
        near(number_of(json, "amount_of_positives"), all.amount, "amount");
        assert_true(number_of(of, "low") < all.average_precision && all.average_precision < number_of(of, "high"));
    }
    const char *at = strstr(json, "\"differences\":[");
    for (uint32_t m = 0; m < p->models; m++) {
        for (uint32_t against = 0; against < m; against++) {
            char wanted[96];
            snprintf(wanted, sizeof wanted, "{\"model\":\"%s\",\"against\":\"%s\",", weir_backtest_models[m],
                     weir_backtest_models[against]);
            const char *of = strstr(at, wanted);
            assert_non_null(of);
            near(number_of(of, "average_precision"), precisions[m] - precisions[against], "difference");
            assert_true(number_of(of, "low") <= number_of(of, "high"));
        }
    }
}

static void d4_figures_follow_from_the_predictions(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    weir_backtest_opts opts = days_opts(snapshot, weir_test_path("out"));
    predictions *p = malloc(sizeof *p);
    size_t length;
    heard h = {0};
    opts.amount = 0; /* x */
    assert_ok(run(opts, &h));
    read_predictions(&opts, p);
    assert_int_equal(p->count, opts.days * EACH);
    char *csv = file_text(opts.folder, "backtest.csv", &length), *rest = csv;
    strsep(&rest, "\n");
    for (uint32_t day = 0; day < opts.days; day++) {
        for (uint32_t m = 0; m < p->models; m++) {
            const naive f = naive_of(p, m, day, opts.budget);
            char *line = strsep(&rest, "\n");
            strsep(&line, ",");
            assert_string_equal(strsep(&line, ","), weir_backtest_models[m]);
            compare_row(line, &f);
        }
    }
    assert_string_equal(rest, "");
    char *json = file_text(opts.folder, "backtest.json", &length);
    compare_totals(p, &opts, json);
    weir_free(csv);
    weir_free(json);
    free(p);
    weir_snapshot_close(snapshot);
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

/* Walks the tags: each that is opened is closed in its turn, and quotes come in pairs. Returns how many of a name. */
static uint32_t count_elements(const char *xml, const char *name) {
    const char *open[16];
    uint32_t depth = 0, count = 0, roots = 0;
    for (const char *at = strchr(xml, '<'); at; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        uint32_t quotes = 0;
        assert_non_null(end);
        for (const char *c = at + 1; c < end; c++) {
            quotes += *c == '"';
            assert_true(*c != '<' && *c != '&');
        }
        assert_true(quotes % 2 == 0);
        if (at[1] == '/') {
            assert_true(depth > 0);
            const size_t length = strcspn(open[--depth], " >");
            assert_true(strncmp(open[depth], at + 2, length) == 0 && at[2 + length] == '>');
            continue;
        }
        roots += depth == 0;
        count += strcspn(at + 1, " />") == strlen(name) && strncmp(at + 1, name, strlen(name)) == 0;
        if (end[-1] == '/') continue;
        assert_true(depth < sizeof open / sizeof open[0]);
        open[depth++] = at + 1;
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
    return count;
}

static void a_dot_a_day_and_model(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    weir_backtest_opts opts = days_opts(snapshot, weir_test_path("out"));
    heard h = {0};
    size_t length;
    opts.from_us = MIDNIGHT + 7 * DAY_US;
    opts.days = 6; /* of the last but one a single pay had its time for labels, of the last none */
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        opts.models[m] = m == WEIR_BACKTEST_NETWORK || (m == WEIR_BACKTEST_ROW && weir_boost_available());
    assert_ok(run(opts, &h));
    const uint32_t models = 1 + weir_boost_available();
    char *svg = file_text(opts.folder, "backtest.svg", &length);
    assert_int_equal(count_elements(svg, "circle"), 5 * models);
    assert_int_equal(count_elements(svg, "title"), 5 * models);
    assert_non_null(strstr(svg, ">network</text>"));
    assert_non_null(strstr(svg, ">2023-11-22</text>"));
    assert_null(strstr(svg, "nan"));
    weir_free(svg);
    weir_snapshot_close(snapshot);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static void what_cannot_be_backtested_is_refused(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    const weir_backtest_opts good = days_opts(snapshot, weir_test_path("out"));
    weir_backtest_opts opts = good;
    heard h = {0};
    opts.days = 10;
    assert_err(run(opts, &h), WEIR_EUSAGE, "before the last of these 10 days");
    opts.days = 0;
    assert_err(run(opts, &h), WEIR_EUSAGE, "0 days");
    opts = good;
    opts.from_us = MIDNIGHT + DAY_US;
    assert_err(run(opts, &h), WEIR_EDATA, "what was known on 2023-11-16: there are only 0 targets to learn from");
    opts = good;
    memset(opts.models, 0, sizeof opts.models);
    assert_err(run(opts, &h), WEIR_EUSAGE, "no model is wanted");
    opts = good;
    opts.train.hidden = 0;
    assert_err(run(opts, &h), WEIR_EUSAGE, "the models of 2023-11-19: hidden is 0");
    assert_int_equal(h.steps, 0);
    weir_snapshot_close(snapshot);
}

static weir_err run_kept(void *context) {
    heard h = {0};
    return run(*(const weir_backtest_opts *)context, &h);
}

/* The models are there; all that is done with them may lack memory. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_snapshot *snapshot = days_open_all(weir_test_seed());
    weir_backtest_opts opts = days_opts(snapshot, weir_test_path("out"));
    opts.days = 2;
    opts.every = 2;
    assert_ok(run_kept(&opts));
    weir_test_some_allocations(run_kept, &opts, weir_test_part(8, 16));
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(d1_the_new_rule_is_not_known_before_its_labels), WEIR_CASE(d1_what_comes_later_changes_no_bit),
           WEIR_CASE(d2_what_is_begun_again_is_the_same), WEIR_CASE(d2_a_file_that_somebody_wrote_is_not_believed),
           WEIR_CASE(d2_a_model_for_some_days), WEIR_CASE(d3_labels_that_may_still_come),
           WEIR_CASE(d4_figures_follow_from_the_predictions), WEIR_CASE(a_dot_a_day_and_model),
           WEIR_CASE(what_cannot_be_backtested_is_refused), WEIR_CASE(every_allocation_may_fail))
