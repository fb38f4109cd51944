/* SPDX-License-Identifier: Apache-2.0 */
/* train_world.h - a snapshot to train on: payments of people at shops, an eighth of the people bad. */
#ifndef WEIR_TRAIN_WORLD_H
#define WEIR_TRAIN_WORLD_H

#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/comm/comm.h>

/* Makes folder/store and folder/snapshot.  Blocks. */
weir_err weir_train_world_make(const char *folder, uint64_t pays);
/* Starts this rank, and opens such a snapshot: each rank has made the same in a folder of its own. Only rank 0 speaks.
 * Both are the caller's, after an error, too. */
weir_err weir_train_world_open(uint64_t pays, weir_comm **commp, weir_snapshot **snapshotp);

#endif /* WEIR_TRAIN_WORLD_H */
