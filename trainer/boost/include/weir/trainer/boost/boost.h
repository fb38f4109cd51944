/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boost.h - boosted trees for a yes-or-no question: what a graph network has to beat.
 *
 *   train rows ──► a tree a round ──► score the validation rows ──► better? keep : patience is over? end
 *
 * INVARIANTS
 *   BOOST-X1  The same rows, labels and options give the same scores.
 *   BOOST-X2  The rounds kept are those with the best average precision on the validation rows; the first of equals.
 *             Without validation rows all are made and kept: the same trees as far as both go.
 *   BOOST-X3  Trees that were exported give each row the log odds that the library gives it, to the last bit of a
 *             float.
 *   BOOST-X4  … and what each column contributes to them as the library says it (pred_contribs), but for rounding.
 *
 * THREADS: [owner] all; a call works on up to `threads` threads of the library's own.
 */
#ifndef WEIR_TRAINER_BOOST_BOOST_H
#define WEIR_TRAINER_BOOST_BOOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/inference/trees/trees.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_boost weir_boost;

/* Borrowed. rows: count x columns, NaN is missing. labels: 0 or 1, may be NULL where rows are only scored. */
typedef struct weir_boost_rows {
    const float *rows;
    const uint8_t *labels;
    size_t count, columns;
} weir_boost_rows;

typedef struct weir_boost_opts {
    uint32_t rounds, patience; /* patience: rounds without a better validation; 0: all rounds are made */
    uint32_t depth, threads;
    double rate;
    uint64_t seed;
} weir_boost_opts;

weir_boost_opts weir_boost_defaults(void);
/* Whether this program was built with the library, and finds it, which loads it; without, learning and scoring are
 * WEIR_EUNAVAILABLE.  [any] */
bool weir_boost_available(void);
/* validation: NULL, if `rounds` is known to be right.  WEIR_EINVAL no rows, or columns that differ; WEIR_EDATA the
 * validation rows are of one class; WEIR_ENOMEM; WEIR_EINTERNAL what the library says. */
weir_err weir_boost_learn(const weir_boost_opts *opts, const weir_boost_rows *train, const weir_boost_rows *validation,
                          weir_boost **boostp);
void weir_boost_close(weir_boost *boost);            /* NULL is allowed */
uint32_t weir_boost_rounds(const weir_boost *boost); /* kept, by BOOST-X2 */
/* Log odds, one a row.  WEIR_EINVAL, WEIR_ENOMEM, WEIR_EINTERNAL as above. */
weir_err weir_boost_score(const weir_boost *boost, const weir_boost_rows *rows, double *scores);
/* The trees of the rounds kept, to be served without the library (BOOST-X3).  WEIR_EINTERNAL what the library says, or
 * its model cannot be read; WEIR_ENOMEM. */
weir_err weir_boost_export(const weir_boost *boost, weir_trees **treesp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_BOOST_BOOST_H */
