/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fraud_baseline - is the simulated fraud in the row, or in the relations?
 *
 * Simulates payments, trains boosted trees (XGBoost) on the earlier days and tests them on the later ones, three times:
 * on what a payment's own row says, on that and simple counts around it, and on that and looks two hops away. Prints
 * AUROC and average precision for every seed, and with --kinds the AUROC of each kind of fraud against all honest
 * payments. With --check it fails when the row says too much or the counts say too little.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/err.h>
#include <xgboost/c_api.h>

#include "fraud_features.h"

#define DAY_US 86400000000ll

typedef struct settings {
    weir_simulate_payments_opts sim;
    int64_t days, warm_days, test_days, gap_days; /* gap: between training and test */
    int rounds, seeds;
    bool kinds, check, gains, moving;
    const char *rows; /* where to write all rows, and train nothing; NULL: nowhere */
} settings;

/* Payments behind the warm-up, oldest first. */
typedef struct dataset {
    float *rows;
    float *labels;
    unsigned char *kinds;
    size_t count, train, capacity;
} dataset;

typedef struct result {
    double auroc, precision, base_rate;
    double auroc_kind[WEIR_SIMULATE_FRAUDS];
} result;

static const char *const set_names[] = {"row only", "row + counts", "row + counts + two hops"};
static const int set_ends[] = {FEATURES_ROW_END, FEATURES_COUNTS_END, FEATURES_END};
#define SETS 3

/* --- data --------------------------------------------------------------------------------------------------------- */

static weir_err dataset_grow(dataset *d) {
    size_t capacity = d->capacity ? 2 * d->capacity : 65536;
    float *rows = weir_realloc_array(d->rows, capacity, FEATURES_END * sizeof *rows);
    if (rows) d->rows = rows;
    float *labels = weir_realloc_array(d->labels, capacity, sizeof *labels);
    if (labels) d->labels = labels;
    unsigned char *kinds = weir_realloc_array(d->kinds, capacity, 1);
    if (kinds) d->kinds = kinds;
    if (!rows || !labels || !kinds) return WEIR_NOMEM("for the payments; use fewer days");
    d->capacity = capacity;
    return WEIR_OK;
}

static void dataset_free(dataset *d) {
    weir_free(d->rows);
    weir_free(d->labels);
    weir_free(d->kinds);
}

static weir_err dataset_add(dataset *d, features *f, const weir_simulate_message *m, const settings *s) {
    if (d->count == d->capacity) {
        weir_err err = dataset_grow(d);
        if (err) return err;
    }
    weir_err err = features_of(f, m->value, m->value_length, m->time_us, d->rows + d->count * FEATURES_END);
    if (err || m->time_us < s->sim.start_us + s->warm_days * DAY_US) return err;
    int64_t test_us = s->sim.start_us + (s->days - s->test_days) * DAY_US;
    if (m->time_us < test_us && m->time_us >= test_us - s->gap_days * DAY_US) return err;
    if (m->time_us < test_us) d->train++;
    d->labels[d->count] = m->fraud != WEIR_SIMULATE_HONEST;
    d->kinds[d->count] = (unsigned char)m->fraud;
    d->count++;
    return WEIR_OK;
}

static weir_err dataset_make(const settings *s, dataset *d) {
    *d = (dataset){0};
    weir_simulate *sim = NULL;
    features *f = NULL;
    weir_err err = weir_simulate_payments_open(&s->sim, &sim);
    if (!err) err = features_open(&f);
    while (!err) {
        weir_simulate_message message;
        weir_simulate_next(sim, &message);
        if (message.time_us >= s->sim.start_us + s->days * DAY_US) break;
        if (message.topic == WEIR_SIMULATE_PAYMENTS) err = dataset_add(d, f, &message, s);
    }
    features_close(f);
    weir_simulate_close(sim);
    return err;
}

/* --- boosted trees ------------------------------------------------------------------------------------------------ */

static weir_err xgb(int status, const char *what) {
    return status == 0 ? WEIR_OK : WEIR_ERR(WEIR_EINTERNAL, "xgboost cannot %s: %s", what, XGBGetLastError());
}

/* Rows [begin, begin + count), the first width columns. */
static weir_err make_matrix(const dataset *d, size_t begin, size_t count, int width, DMatrixHandle *matrixp) {
    float *narrow = weir_calloc(count * (size_t)width, sizeof *narrow);
    if (!narrow) return WEIR_NOMEM("for a matrix; use fewer days");
    for (size_t i = 0; i < count; i++)
        memcpy(narrow + i * (size_t)width, d->rows + (begin + i) * FEATURES_END, (size_t)width * sizeof *narrow);
    weir_err err = xgb(XGDMatrixCreateFromMat(narrow, count, (bst_ulong)width, NAN, matrixp), "make a matrix");
    weir_free(narrow);
    return err;
}

static weir_err set_up(BoosterHandle booster, uint64_t seed) {
    char seed_text[24];
    snprintf(seed_text, sizeof seed_text, "%d", (int)(seed & 0x7FFFFFFF));
    const char *const parameters[][2] = {
        {"objective", "binary:logistic"},
        {"tree_method", "hist"},
        {"max_depth", "6"},
        {"eta", "0.1"},
        {"subsample", "0.8"},
        {"colsample_bytree", "0.8"},
        {"nthread", "1"}, /* threads that wait for each other stand still on a busy machine */
        {"verbosity", "0"},
        {"min_child_weight", "5"},
        {"seed", seed_text},
    };
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < sizeof parameters / sizeof parameters[0]; i++)
        err = xgb(XGBoosterSetParam(booster, parameters[i][0], parameters[i][1]), "take a parameter");
    return err;
}

static weir_err train(const dataset *d, int width, const settings *s, BoosterHandle *boosterp) {
    DMatrixHandle matrix = NULL;
    weir_err err = make_matrix(d, 0, d->train, width, &matrix);
    if (!err) err = xgb(XGDMatrixSetFloatInfo(matrix, "label", d->labels, d->train), "take the labels");
    if (!err) err = xgb(XGBoosterCreate(&matrix, 1, boosterp), "make a model");
    if (!err) err = set_up(*boosterp, s->sim.seed);
    for (int round = 0; !err && round < s->rounds; round++)
        err = xgb(XGBoosterUpdateOneIter(*boosterp, round, matrix), "train");
    if (matrix) XGDMatrixFree(matrix);
    return err;
}

/* --- how good ----------------------------------------------------------------------------------------------------- */

typedef struct scored {
    float score;
    unsigned char kind;
} scored;

static int by_score(const void *a, const void *b) {
    float x = ((const scored *)a)->score;
    float y = ((const scored *)b)->score;
    return (x < y) - (x > y);
}

/* Both from one walk from the highest score down; equal scores are one step. kind: 0 for all frauds. */
static void measure(const scored *s, size_t count, int kind, double *aurocp, double *precisionp) {
    double above_good = 0, bad = 0, good = 0, area = 0, precision = 0;
    for (size_t i = 0; i < count;) {
        double step_bad = 0, step_good = 0;
        size_t j = i;
        for (; j < count && s[j].score >= s[i].score; j++) {
            if (s[j].kind == 0)
                step_good++;
            else if (kind == 0 || s[j].kind == kind)
                step_bad++;
        }
        bad += step_bad;
        good += step_good;
        precision += step_bad * bad / (bad + good > 0 ? bad + good : 1);
        area += step_bad * (above_good + step_good / 2);
        above_good += step_good;
        i = j;
    }
    *aurocp = bad > 0 && good > 0 ? 1 - area / (bad * good) : NAN;
    *precisionp = bad > 0 ? precision / bad : NAN;
}

static weir_err score(const dataset *d, BoosterHandle booster, int width, scored *scores) {
    DMatrixHandle matrix = NULL;
    size_t count = d->count - d->train;
    weir_err err = make_matrix(d, d->train, count, width, &matrix);
    bst_ulong length = 0;
    const float *values = NULL;
    if (!err) err = xgb(XGBoosterPredict(booster, matrix, 0, 0, 0, &length, &values), "predict");
    for (size_t i = 0; !err && i < count; i++)
        scores[i] = (scored){values[i], d->kinds[d->train + i]};
    if (matrix) XGDMatrixFree(matrix);
    return err;
}

static void grade(scored *scores, size_t count, result *r) {
    qsort(scores, count, sizeof *scores, by_score);
    double frauds = 0;
    for (size_t i = 0; i < count; i++)
        frauds += scores[i].kind != 0;
    r->base_rate = frauds / (double)count;
    measure(scores, count, 0, &r->auroc, &r->precision);
    for (int kind = 1; kind < WEIR_SIMULATE_FRAUDS; kind++) {
        double unused;
        measure(scores, count, kind, &r->auroc_kind[kind], &unused);
    }
}

static const char *const feature_names[] = {
#define FEATURE_NAME(name) #name,
    FEATURES_OF_ROW(FEATURE_NAME) FEATURES_OF_COUNTS(FEATURE_NAME) FEATURES_OF_TWO_HOPS(FEATURE_NAME)
#undef FEATURE_NAME
};

static weir_err print_gains(BoosterHandle booster) {
    bst_ulong count = 0, dimensions = 0;
    const bst_ulong *shape = NULL;
    const char **names = NULL;
    const float *gains = NULL;
    weir_err err = xgb(XGBoosterFeatureScore(booster, "{\"importance_type\": \"total_gain\"}", &count, &names,
                                             &dimensions, &shape, &gains),
                       "tell its gains");
    for (bst_ulong i = 0; !err && i < count; i++)
        printf("    %-28s %12.0f\n", feature_names[strtol(names[i] + 1, NULL, 10)], (double)gains[i]);
    return err;
}

static weir_err evaluate(const dataset *d, int width, const settings *s, result *r) {
    *r = (result){0};
    BoosterHandle booster = NULL;
    size_t count = d->count - d->train;
    scored *scores = weir_calloc(count ? count : 1, sizeof *scores);
    weir_err err = scores ? WEIR_OK : WEIR_NOMEM("for the scores; use fewer days");
    if (!err) err = train(d, width, s, &booster);
    if (!err) err = score(d, booster, width, scores);
    if (!err) grade(scores, count, r);
    if (!err && s->gains) err = print_gains(booster);
    if (booster) XGBoosterFree(booster);
    weir_free(scores);
    return err;
}

/* --- the report --------------------------------------------------------------------------------------------------- */

static void print_result(uint64_t seed, const char *set, const result *r, bool kinds) {
    printf("seed %-6llu %-24s AUROC %.3f  AP %.3f  (%.1f x base rate %.4f)\n", (unsigned long long)seed, set, r->auroc,
           r->precision, r->precision / r->base_rate, r->base_rate);
    for (int kind = 1; kinds && kind < WEIR_SIMULATE_FRAUDS; kind++)
        printf("    %-12s AUROC %.3f\n", weir_simulate_fraud_name((weir_simulate_fraud)kind), r->auroc_kind[kind]);
    fflush(stdout);
}

/* The promise of the generator: the row is weak, the counts are strong, and there is something behind them. */
static weir_err check(const result *r) {
    if (r[0].auroc >= 0.70 || r[0].precision > 5 * r[0].base_rate)
        return WEIR_ERR(WEIR_EINTERNAL, "the row alone tells too much: AUROC %.3f, average precision %.4f", r[0].auroc,
                        r[0].precision);
    if (r[1].auroc <= 0.90) return WEIR_ERR(WEIR_EINTERNAL, "counts tell too little: AUROC %.3f", r[1].auroc);
    if (r[2].precision <= r[1].precision)
        return WEIR_ERR(WEIR_EINTERNAL, "a second hop adds nothing: average precision %.3f after %.3f", r[2].precision,
                        r[1].precision);
    return WEIR_OK;
}

/* The rows of all payments in their order, FEATURES_END floats each: what tests/accuracy/trees.py learns from. */
static weir_err write_rows(const settings *s, const dataset *d) {
    FILE *file = fopen(s->rows, "wb");
    if (!file) return WEIR_ERR(WEIR_EIO, "%s cannot be written: %s", s->rows, strerror(errno));
    size_t written = fwrite(d->rows, FEATURES_END * sizeof *d->rows, d->count, file);
    bool closed = fclose(file) == 0;
    if (written < d->count || !closed) return WEIR_ERR(WEIR_EIO, "%s cannot be written; is the disk full?", s->rows);
    printf("%zu rows of %d columns in %s:", d->count, (int)FEATURES_END, s->rows);
    for (int i = 0; i < FEATURES_END; i++)
        printf(" %s", feature_names[i]);
    printf("\n");
    return WEIR_OK;
}

static weir_err run_seed(settings *s, uint64_t seed) {
    s->sim.seed = seed;
    dataset d;
    result results[SETS];
    weir_err err = dataset_make(s, &d);
    if (s->rows) {
        if (!err) err = write_rows(s, &d);
        dataset_free(&d);
        return err;
    }
    if (!err && (d.train == 0 || d.train == d.count))
        err = WEIR_ERR(WEIR_EUSAGE, "no payments to train or to test on; give more days");
    for (int set = 0; !err && set < SETS; set++) {
        err = evaluate(&d, set_ends[set], s, &results[set]);
        if (!err) print_result(seed, set_names[set], &results[set], s->kinds);
    }
    if (!err && s->check) err = check(results);
    dataset_free(&d);
    return err;
}

static const char usage[] = "usage: fraud_baseline [--accounts N] [--days N] [--warm N] [--test N] [--rounds N]\n"
                            "                      [--seeds N] [--seed N] [--kinds] [--gains] [--check]\n"
                            "                      [--gap N] [--moving]   days left out before the test; the world\n"
                            "                      [--rows FILE]   write every payment's columns, train nothing\n";

static bool take_number(const char *name, char **argv, int *i, int64_t *valuep) {
    if (strcmp(argv[*i], name) != 0 || !argv[*i + 1]) return false;
    *valuep = strtoll(argv[++*i], NULL, 10);
    return true;
}

static weir_err parse_arguments(char **argv, settings *s) {
    int64_t accounts = 20000, rounds = 150, seeds = 3, seed = 1;
    for (int i = 1; argv[i]; i++) {
        if (take_number("--accounts", argv, &i, &accounts) || take_number("--days", argv, &i, &s->days) ||
            take_number("--warm", argv, &i, &s->warm_days) || take_number("--test", argv, &i, &s->test_days) ||
            take_number("--rounds", argv, &i, &rounds) || take_number("--seeds", argv, &i, &seeds) ||
            take_number("--seed", argv, &i, &seed) || take_number("--gap", argv, &i, &s->gap_days))
            continue;
        if (strcmp(argv[i], "--rows") == 0 && argv[i + 1])
            s->rows = argv[++i];
        else if (strcmp(argv[i], "--kinds") == 0)
            s->kinds = true;
        else if (strcmp(argv[i], "--gains") == 0)
            s->gains = true;
        else if (strcmp(argv[i], "--moving") == 0)
            s->moving = true;
        else if (strcmp(argv[i], "--check") == 0)
            s->check = true;
        else
            return WEIR_ERR(WEIR_EUSAGE, "'%s' is no option\n%s", argv[i], usage);
    }
    s->sim.accounts = (uint32_t)accounts;
    if (s->moving) weir_simulate_payments_moving(&s->sim);
    s->sim.seed = (uint64_t)seed;
    s->rounds = (int)rounds;
    s->seeds = (int)seeds;
    return WEIR_OK;
}

int main(int argc, char **argv) {
    (void)argc;
    settings s = {.sim = weir_simulate_payments_defaults(), .days = 21, .warm_days = 6, .test_days = 6};
    weir_err err = parse_arguments(argv, &s);
    uint64_t first = s.sim.seed;
    for (int i = 0; !err && i < s.seeds; i++)
        err = run_seed(&s, first + (uint64_t)i);
    if (!err) return 0;
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    fprintf(stderr, "fraud_baseline: %s\n", sentence);
    return weir_err_exit_status(err);
}
