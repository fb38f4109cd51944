/* SPDX-License-Identifier: Apache-2.0 */
/* contributions_test.c - what columns contribute, as the library itself says it of trees that it has learnt here. */
#include "weir_test.h"

#if __has_include(<xgboost/c_api.h>)

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/trainer/boost/boost.h>
#include <xgboost/c_api.h>

#include "export.h"

#define ROWS    1500u
#define COLUMNS 8u
#define ROUNDS  40u

#define FUNCTIONS(X)               \
    X(XGDMatrixCreateFromMat)      \
    X(XGDMatrixSetFloatInfo)       \
    X(XGDMatrixFree)               \
    X(XGBoosterCreate)             \
    X(XGBoosterSetParam)           \
    X(XGBoosterUpdateOneIter)      \
    X(XGBoosterPredictFromDMatrix) \
    X(XGBoosterSaveModelToBuffer)  \
    X(XGBoosterFree)

#define DECLARE(name) __typeof__(name) *name;
static struct { FUNCTIONS(DECLARE) } xgb;

static void library_load(void) {
    if (!weir_boost_available()) weir_test_skip("XGBoost cannot be loaded");
    void *library = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL), *function;
    assert_non_null(library);
#define FIND(name)                    \
    function = dlsym(library, #name); \
    assert_non_null(function);        \
    memcpy(&xgb.name, &function, sizeof function);
    FUNCTIONS(FIND)
}

/* Yes by the products of columns, seldom the other way; a part of all is missing, more of some columns. */
static void rows_draw(weir_rng *rng, float rows[ROWS][COLUMNS], float labels[ROWS]) {
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t c = 0; c < COLUMNS; c++)
            rows[i][c] = c % 3 ? (float)weir_rng_normal(rng) : (float)weir_rng_below(rng, 5);
        const bool yes = rows[i][1] * rows[i][2] + rows[i][0] - rows[i][4] > 1.5f;
        labels[i] = weir_rng_below(rng, 10) ? yes : !yes;
        for (uint32_t c = 0; c < COLUMNS; c++)
            if (weir_rng_below(rng, 4 + 3 * c) == 0) rows[i][c] = NAN;
    }
}

static BoosterHandle learn(DMatrixHandle matrix, const char *depth, const char *least) {
    const char *const params[][2] = {{"objective", "binary:logistic"}, {"tree_method", "hist"}, {"max_depth", depth},
                                     {"min_child_weight", least},      {"subsample", "0.8"},    {"eta", "0.3"},
                                     {"colsample_bytree", "0.8"},      {"nthread", "1"},        {"verbosity", "0"}};
    BoosterHandle booster;
    assert_int_equal(xgb.XGBoosterCreate(&matrix, 1, &booster), 0);
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
        assert_int_equal(xgb.XGBoosterSetParam(booster, params[i][0], params[i][1]), 0);
    for (int round = 0; round < (int)ROUNDS; round++)
        assert_int_equal(xgb.XGBoosterUpdateOneIter(booster, round, matrix), 0);
    return booster;
}

static weir_trees *trees_of(BoosterHandle booster) {
    const char *text;
    bst_ulong length;
    weir_trees *trees;
    assert_int_equal(xgb.XGBoosterSaveModelToBuffer(booster, "{\"format\": \"json\"}", &length, &text), 0);
    assert_ok(weir_boost_read_model(text, length, ROUNDS, COLUMNS, &trees));
    return trees;
}

/* The library adds up floats, so that a sum of 40 trees is off by some 1e-6. */
static void same_contributions(BoosterHandle booster, DMatrixHandle matrix, float rows[ROWS][COLUMNS]) {
    static const char config[] = "{\"type\": 2, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
                                 "\"strict_shape\": false}";
    const bst_ulong *shape;
    bst_ulong dimensions;
    const float *said;
    double contributions[COLUMNS], largest = 0;
    weir_trees *trees = trees_of(booster);
    assert_int_equal(xgb.XGBoosterPredictFromDMatrix(booster, matrix, config, &shape, &dimensions, &said), 0);
    assert_true(dimensions == 2 && shape[0] == ROWS && shape[1] == COLUMNS + 1);
    for (uint32_t i = 0; i < ROWS; i++, said += COLUMNS + 1) {
        weir_trees_contribute(trees, rows[i], contributions);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            largest = fmax(largest, fabs(contributions[c]));
            if (fabs(contributions[c] - (double)said[c]) > 2e-5)
                fail_msg("row %u, column %u: %.9g, not %.9g", i, c, contributions[c], (double)said[c]);
        }
        assert_true(fabs(weir_trees_expected(trees) - (double)said[COLUMNS]) < 2e-5);
    }
    assert_true(largest > 0.1);
    weir_trees_close(trees);
}

static void x4_contributions_are_the_library(void **state) {
    (void)state;
    static const char *const depths[][2] = {{"1", "5"}, {"6", "5"}, {"10", "0.001"}};
    static float rows[ROWS][COLUMNS], labels[ROWS];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    DMatrixHandle matrix;
    library_load();
    rows_draw(&rng, rows, labels);
    assert_int_equal(xgb.XGDMatrixCreateFromMat(rows[0], ROWS, COLUMNS, NAN, &matrix), 0);
    assert_int_equal(xgb.XGDMatrixSetFloatInfo(matrix, "label", labels, ROWS), 0);
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        BoosterHandle booster = learn(matrix, depths[i][0], depths[i][1]);
        same_contributions(booster, matrix, rows);
        assert_int_equal(xgb.XGBoosterFree(booster), 0);
    }
    assert_int_equal(xgb.XGDMatrixFree(matrix), 0);
}

#else

static void x4_contributions_are_the_library(void **state) {
    (void)state;
    weir_test_skip("XGBoost was not found at configure time");
}

#endif

WEIR_TESTS(WEIR_CASE(x4_contributions_are_the_library))
