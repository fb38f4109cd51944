/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boost.c - the only includer of xgboost/c_api.h. The library is loaded when trees are first asked for: linked, it
 * would take 5 MiB of each rank of a training, of which one at most learns trees.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/trainer/boost/boost.h>
#include <weir/trainer/eval/eval.h>
#include <xgboost/c_api.h>

#include "export.h"

#define BOOST_NO_MEMORY "for boosted trees; omit them by --no-baselines"

struct weir_boost {
    BoosterHandle booster;
    uint32_t rounds; /* the best */
    size_t columns;
};

/* A training under way. */
typedef struct boost_training {
    const weir_boost_opts *opts;
    const weir_boost_rows *validation;
    DMatrixHandle train_matrix, validation_matrix;
    double *scores; /* of validation */
    double best;
    weir_boost *out;
} boost_training;

weir_boost_opts weir_boost_defaults(void) {
    return (weir_boost_opts){.rounds = 300, .patience = 30, .depth = 6, .threads = 2, .rate = 0.1, .seed = 1};
}

/* --- the library -------------------------------------------------------------------------------------------------- */

#define BOOST_LIBRARY "libxgboost.so.0"
#define BOOST_FUNCTIONS(X)         \
    X(XGBGetLastError)             \
    X(XGDMatrixCreateFromMat)      \
    X(XGDMatrixSetFloatInfo)       \
    X(XGDMatrixFree)               \
    X(XGBoosterCreate)             \
    X(XGBoosterSetParam)           \
    X(XGBoosterUpdateOneIter)      \
    X(XGBoosterPredictFromDMatrix) \
    X(XGBoosterSaveModelToBuffer)  \
    X(XGBoosterFree)

#define BOOST_DECLARE(name) __typeof__(name) *name;
static struct { BOOST_FUNCTIONS(BOOST_DECLARE) } xgb;

static bool boost_loaded;
static pthread_once_t boost_once = PTHREAD_ONCE_INIT;

static void boost_load(void) {
    void *library = dlopen(BOOST_LIBRARY, RTLD_NOW | RTLD_LOCAL), *function;
    boost_loaded = library != NULL;
#define BOOST_FIND(name)                                    \
    function = boost_loaded ? dlsym(library, #name) : NULL; \
    boost_loaded &= function != NULL;                       \
    memcpy(&xgb.name, &function, sizeof function);
    BOOST_FUNCTIONS(BOOST_FIND)
}

bool weir_boost_available(void) {
    pthread_once(&boost_once, boost_load);
    return boost_loaded;
}

/* XGBoost's message is a page with a stack; its first line says what it was. */
static weir_err boost_check(int status, const char *what) {
    if (status == 0) return WEIR_OK;
    const char *message = xgb.XGBGetLastError();
    int length = 0;
    while (message[length] && message[length] != '\n')
        length++;
    return WEIR_ERR(WEIR_EINTERNAL, "XGBoost cannot %s: %.*s", what, length, message);
}

/* --- matrices ----------------------------------------------------------------------------------------------------- */

static weir_err boost_matrix(const weir_boost_rows *rows, DMatrixHandle *matrixp) {
    *matrixp = NULL;
    weir_err err =
        boost_check(xgb.XGDMatrixCreateFromMat(rows->rows, rows->count, rows->columns, NAN, matrixp), "make a matrix");
    if (err || !rows->labels) return err;
    float *labels = weir_calloc(rows->count, sizeof *labels);
    if (!labels) return WEIR_NOMEM(BOOST_NO_MEMORY);
    for (size_t i = 0; i < rows->count; i++)
        labels[i] = rows->labels[i];
    err = boost_check(xgb.XGDMatrixSetFloatInfo(*matrixp, "label", labels, rows->count), "take the labels");
    weir_free(labels);
    return err;
}

static weir_err boost_predict(BoosterHandle booster, DMatrixHandle matrix, uint32_t rounds, size_t count,
                              double *scores) {
    char config[128];
    const bst_ulong *shape = NULL;
    bst_ulong dimensions = 0;
    const float *values = NULL;
    snprintf(config, sizeof config,
             "{\"type\": 1, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": %u, "
             "\"strict_shape\": false}",
             rounds);
    weir_err err =
        boost_check(xgb.XGBoosterPredictFromDMatrix(booster, matrix, config, &shape, &dimensions, &values), "predict");
    for (size_t i = 0; !err && i < count; i++)
        scores[i] = (double)values[i];
    return err;
}

/* --- learning ----------------------------------------------------------------------------------------------------- */

static weir_err boost_set_number(BoosterHandle booster, const char *name, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", value);
    return boost_check(xgb.XGBoosterSetParam(booster, name, text), "take a parameter");
}

static weir_err boost_set_up(BoosterHandle booster, const weir_boost_opts *o) {
    weir_err err = boost_check(xgb.XGBoosterSetParam(booster, "objective", "binary:logistic"), "take a parameter");
    if (!err) err = boost_check(xgb.XGBoosterSetParam(booster, "tree_method", "hist"), "take a parameter");
    if (!err) err = boost_set_number(booster, "verbosity", 0);
    if (!err) err = boost_set_number(booster, "max_depth", o->depth);
    if (!err) err = boost_set_number(booster, "eta", o->rate);
    if (!err) err = boost_set_number(booster, "subsample", 0.8);
    if (!err) err = boost_set_number(booster, "colsample_bytree", 0.8);
    if (!err) err = boost_set_number(booster, "min_child_weight", 5);
    /* BOOST-X1: sums depend on the number of threads, so it is never the machine's. */
    if (!err) err = boost_set_number(booster, "nthread", o->threads);
    if (!err) err = boost_set_number(booster, "seed", (double)(o->seed & 0x7FFFFFFF));
    return err;
}

static weir_err boost_grow(boost_training *b) {
    const weir_boost_opts *o = b->opts;
    weir_scored scored = {0};
    weir_err err = WEIR_OK;
    if (b->validation) scored = (weir_scored){b->scores, b->validation->labels, b->validation->count};
    for (uint32_t round = 0; !err && round < o->rounds; round++) {
        double precision = 0;
        if (b->validation && o->patience && round >= b->out->rounds + o->patience) break;
        err = boost_check(xgb.XGBoosterUpdateOneIter(b->out->booster, (int)round, b->train_matrix), "grow a tree");
        if (!err && !b->validation) b->out->rounds = round + 1;
        if (err || !b->validation) continue;
        err = boost_predict(b->out->booster, b->validation_matrix, 0, b->validation->count, b->scores);
        if (!err) err = weir_eval_average_precision(&scored, &precision);
        if (!err && precision > b->best) { /* BOOST-X2 */
            b->best = precision;
            b->out->rounds = round + 1;
        }
    }
    return err;
}

static weir_err boost_check_rows(const weir_boost_rows *rows, size_t columns) {
    if (rows->count == 0 || rows->columns == 0) return WEIR_ERR(WEIR_EINVAL, "there are no rows for boosted trees");
    if (rows->columns == columns) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "rows for boosted trees have %zu columns; they need %zu", rows->columns, columns);
}

weir_err weir_boost_learn(const weir_boost_opts *opts, const weir_boost_rows *train, const weir_boost_rows *validation,
                          weir_boost **boostp) {
    *boostp = NULL;
    if (!weir_boost_available())
        return WEIR_ERR(WEIR_EUNAVAILABLE, BOOST_LIBRARY " cannot be loaded; install libxgboost0");
    weir_err err = boost_check_rows(train, train->columns);
    if (!err && validation) err = boost_check_rows(validation, train->columns);
    if (err) return err;
    boost_training b = {.opts = opts, .validation = validation, .best = -1};
    b.out = weir_calloc(1, sizeof *b.out);
    b.scores = weir_calloc(validation ? validation->count : 1, sizeof *b.scores);
    if (!b.out || !b.scores) err = WEIR_NOMEM(BOOST_NO_MEMORY);
    if (!err) err = boost_matrix(train, &b.train_matrix);
    if (!err && validation) err = boost_matrix(validation, &b.validation_matrix);
    const DMatrixHandle cached[] = {b.train_matrix, b.validation_matrix};
    if (!err) b.out->columns = train->columns;
    if (!err) err = boost_check(xgb.XGBoosterCreate(cached, validation ? 2 : 1, &b.out->booster), "make a model");
    if (!err) err = boost_set_up(b.out->booster, opts);
    if (!err) err = boost_grow(&b);
    if (b.train_matrix) xgb.XGDMatrixFree(b.train_matrix);
    if (b.validation_matrix) xgb.XGDMatrixFree(b.validation_matrix);
    weir_free(b.scores);
    if (err) {
        weir_boost_close(b.out);
        return err;
    }
    *boostp = b.out;
    return WEIR_OK;
}

/* --- afterwards --------------------------------------------------------------------------------------------------- */

void weir_boost_close(weir_boost *boost) {
    if (!boost) return;
    if (boost->booster) xgb.XGBoosterFree(boost->booster);
    weir_free(boost);
}

uint32_t weir_boost_rounds(const weir_boost *boost) {
    return boost->rounds;
}

weir_err weir_boost_score(const weir_boost *boost, const weir_boost_rows *rows, double *scores) {
    DMatrixHandle matrix = NULL;
    weir_err err = boost_check_rows(rows, boost->columns);
    if (!err) err = boost_matrix(rows, &matrix);
    if (!err) err = boost_predict(boost->booster, matrix, boost->rounds, rows->count, scores);
    if (matrix) xgb.XGDMatrixFree(matrix);
    return err;
}

weir_err weir_boost_export(const weir_boost *boost, weir_trees **treesp) {
    bst_ulong length = 0;
    const char *text =
        NULL; /* the library's, until it is called again; an object, so that a bracket is its last byte */
    *treesp = NULL;
    weir_err err = boost_check(xgb.XGBoosterSaveModelToBuffer(boost->booster, "{\"format\": \"json\"}", &length, &text),
                               "write its model");
    return err ? err : weir_boost_read_model(text, length, boost->rounds, (uint32_t)boost->columns, treesp);
}
