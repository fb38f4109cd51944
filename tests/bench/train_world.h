/* SPDX-License-Identifier: Apache-2.0 */
/* train_world.h - a snapshot to train on: payments of people at shops, an eighth of the people bad. */
#ifndef WEIR_TRAIN_WORLD_H
#define WEIR_TRAIN_WORLD_H

#include <weir/store/base/err.h>

#include <stdint.h>

/* Makes folder/store and folder/snapshot.  Blocks. */
weir_err weir_train_world_make(const char *folder, uint64_t pays);

#endif /* WEIR_TRAIN_WORLD_H */
