/* SPDX-License-Identifier: Apache-2.0 */
/* without.c - where XGBoost was not found at configure time: there are no boosted trees, and they say so. */
#include <weir/trainer/boost/boost.h>

weir_boost_opts weir_boost_defaults(void) {
    return (weir_boost_opts){0};
}

bool weir_boost_available(void) {
    return false;
}

weir_err weir_boost_learn(const weir_boost_opts *opts, const weir_boost_rows *train, const weir_boost_rows *validation,
                          weir_boost **boostp) {
    (void)opts, (void)train, (void)validation;
    *boostp = NULL;
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "this program was built without XGBoost; install libxgboost-dev and build again");
}

void weir_boost_close(weir_boost *boost) {
    (void)boost;
}

uint32_t weir_boost_rounds(const weir_boost *boost) {
    (void)boost;
    return 0;
}

weir_err weir_boost_score(const weir_boost *boost, const weir_boost_rows *rows, double *scores) {
    (void)boost, (void)rows, (void)scores;
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "this program was built without XGBoost; install libxgboost-dev and build again");
}

weir_err weir_boost_export(const weir_boost *boost, weir_trees **treesp) {
    (void)boost;
    *treesp = NULL;
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "this program was built without XGBoost; install libxgboost-dev and build again");
}
