/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soonest.h - which rows stay where the batches to come are known: those that are read soonest. Private to this folder.
 *
 * Batches are told by the rows that they read, in their order, up to `horizon` of them before they come. Then each is
 * taken: which of its rows have a place, and which of the others get one, be it that of a row that is read later. Of
 * rows that no list names, the one that was read longest ago goes first. With a horizon as far as the last batch no
 * other choice asks for fewer rows (Belady).  THREADS: [owner].
 */
#ifndef WEIR_TRAINER_TRAIN_SOONEST_H
#define WEIR_TRAINER_TRAIN_SOONEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>

#define WEIR_TRAIN_NO_PLACE UINT32_MAX

/* What a batch does with a row that it reads. */
typedef struct weir_train_read {
    uint32_t row;
    uint32_t place; /* where it is, or where it goes once it has come; or WEIR_TRAIN_NO_PLACE */
    bool there;     /* it is in its place already */
} weir_train_read;

typedef struct weir_train_soonest weir_train_soonest;

/* Of rows 0 to rows - 1, with so many places.  WEIR_ENOMEM. */
weir_err weir_train_soonest_open(uint32_t rows, uint32_t places, uint32_t horizon, weir_train_soonest **soonestp);
void weir_train_soonest_close(weir_train_soonest *soonest); /* NULL is allowed */
/* What the next batch reads, each row once; of batches that are not taken yet, at most horizon + 1.  WEIR_ENOMEM. */
weir_err weir_train_soonest_list(weir_train_soonest *soonest, const uint32_t *rows, size_t count);
/* Of the first batch that is not taken yet: adds a weir_train_read a row, in the order of its list. All that are there
 * are to be copied out before others come in, and those in this order: a place may be given away twice.
 * WEIR_ENOMEM. */
weir_err weir_train_soonest_take(weir_train_soonest *soonest, weir_buf *reads);

#endif /* WEIR_TRAINER_TRAIN_SOONEST_H */
