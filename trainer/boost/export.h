/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - XGBoost's own form of a model, read. */
#ifndef WEIR_TRAINER_BOOST_EXPORT_H
#define WEIR_TRAINER_BOOST_EXPORT_H

#include <weir/inference/trees/trees.h>

/* The first trees of a model as XGBoost writes it in JSON, one a round. Behind the text stands at least one byte that
 * is neither a digit nor a point.  WEIR_EINTERNAL it is not such a model: says what is wrong; WEIR_EDATA, WEIR_ELIMIT
 * as weir_trees_open; WEIR_ENOMEM.  [any] */
weir_err weir_boost_read_model(const char *text, size_t length, uint32_t rounds, uint32_t columns, weir_trees **treesp);

#endif /* WEIR_TRAINER_BOOST_EXPORT_H */
