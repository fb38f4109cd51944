/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident.h - input rows that stay in the kernels' memory while batches come and go, so that no batch brings them.
 * Private to this folder.
 *
 *   rows of the rank's own vertices, encoded once ──► a table a type, in the kernels' memory
 *   a batch: places in the table, and the rows that it lacks ──► kernels put both together
 *
 * Of a graph that stands still only: there a vertex has one row, whatever the batch.
 *
 * INVARIANTS
 *   TRAIN-D1  A row has the same bits, wherever it lies.
 */
#ifndef WEIR_TRAINER_TRAIN_RESIDENT_H
#define WEIR_TRAINER_TRAIN_RESIDENT_H

#include <weir/inference/nn/nn.h>

#include "cache.h"

typedef struct weir_train_residents weir_train_residents;

/* One type's. A plain value. */
typedef struct weir_train_resident {
    const weir_real *table; /* in the kernels' memory, a row each; NULL: no row of this type stays */
    const uint32_t *slots;  /* in the host's, a row each: of the type's categories                 */
    uint32_t count;
    uint32_t *place_of; /* of each vertex of the snapshot, or WEIR_NO_SLOT; NULL: its number */
} weir_train_resident;

/* opts->share of the rank's own rows, those first that a batch reads with the highest chance. *residentsp NULL: none,
 * because the share is 0 or no type has rows that could stay.
 * WEIR_EINVAL the graph does not stand still; WEIR_ENOMEM, what the kernels report; errors of the source.  [main] */
weir_err weir_train_residents_open(const weir_train_cache_opts *opts, const weir_kernels *kernels,
                                   weir_train_residents **residentsp);
void weir_train_residents_close(weir_train_residents *residents); /* NULL is allowed, here and below */
/* NULL: no row of this type stays.  [any] */
const weir_train_resident *weir_train_residents_of(const weir_train_residents *residents, uint32_t type);

/* Where the vertex's row stays, or WEIR_NO_SLOT.  [any] */
static inline uint32_t weir_train_resident_place(const weir_train_resident *resident, uint64_t vertex) {
    return resident->place_of ? resident->place_of[vertex] : (uint32_t)vertex;
}

#endif /* WEIR_TRAINER_TRAIN_RESIDENT_H */
