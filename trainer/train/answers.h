/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.h - rows on their way to those who have asked for them. Private to this folder.
 *
 * What a rank asks is answered in its order: of each ask, in this order, what it wants of
 *
 *   span     since when, and until when, the fixed part is as it is
 *   fixed    of an ask that is not the rank's first one for this vertex, a byte first: whether the fixed part is that
 *            of the last one before, and does not come again, or follows. Where times rise, each comes once
 *   moving   the rest of the row
 */
#ifndef WEIR_TRAINER_TRAIN_ANSWERS_H
#define WEIR_TRAINER_TRAIN_ANSWERS_H

#include <weir/inference/inputs/inputs.h>
#include <weir/store/base/table.h>
#include <weir/trainer/comm/comm.h>

#include "asks.h"
#include "form.h"

typedef struct weir_train_answers {
    weir_train_form form;
    weir_buf answers, received;
    weir_buf numbers, slots;              /* of rows on their way into answers */
    weir_table told;                      /* vertices whose fixed part the rank at hand was told */
    weir_arena *arena;                    /* of the table */
    uint64_t *lengths, *received_lengths; /* to and from each rank */
} weir_train_answers;

/* timed: targets have several times.  WEIR_ENOMEM. */
weir_err weir_train_answers_open(const weir_train_owners *owners, const weir_nn_shape *shape, weir_train_wire wire,
                                 bool timed, weir_train_answers *answers);
void weir_train_answers_close(weir_train_answers *answers);
/* Of its buffers, with the room that they have. */
uint64_t weir_train_answers_bytes(const weir_train_answers *answers);
/* Answers `asked`, so many bytes from each rank, and takes the answers of the others: all ranks together.
 * WEIR_ECORRUPT another rank asked for what is not this one's; errors of the exchange and of the source. */
weir_err weir_train_answers_exchange(weir_train_answers *answers, const weir_train_owners *owners, weir_inputs *inputs,
                                     const weir_buf *asked, const uint64_t *asked_bytes, weir_comm *comm);

/* How many bytes the answers to these asks of one rank would be. Errors of the source. */
weir_err weir_train_answers_expect(weir_train_answers *answers, const weir_train_owners *owners, weir_inputs *inputs,
                                   const char *asks, uint64_t bytes, uint64_t *expectedp);

/* Where answers go, by type: numbers and slots of rows; spans, two a row, or NULL where no span was asked for. */
typedef struct weir_train_rows_to {
    weir_real *const *numbers;
    uint32_t *const *slots;
    int64_t *const *spans;
} weir_train_rows_to;

/* What came, to where it was asked for; asks: as they were sent; earlier: as in weir_train_asks, NULL: no vertex is
 * asked for twice.  WEIR_ECORRUPT it is too little, or too much. */
weir_err weir_train_answers_put(const weir_train_answers *answers, const weir_buf *asks, const weir_buf *earlier,
                                const weir_train_rows_to *to);

#endif /* WEIR_TRAINER_TRAIN_ANSWERS_H */
