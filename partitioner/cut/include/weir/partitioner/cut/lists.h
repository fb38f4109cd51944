/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.h - the ends of a graph's edges: whom each leads to and what it weighs, vertex after vertex.
 *
 * They are most of a graph. Where there is no room for them they lie in two files without a name (scratch.h), mapped to
 * be read: who reads them does not know.
 */
#ifndef WEIR_PARTITIONER_CUT_LISTS_H
#define WEIR_PARTITIONER_CUT_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/scratch.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_CUT_END_BYTES 8u /* of an end: uint32 both */

typedef struct weir_cut_lists {
    const uint32_t *neighbors, *edge_weights; /* once all are put: weir_cut_lists_end */
    uint64_t count, room;
    uint32_t *memory[2]; /* the two, or NULL: they lie in files */
    weir_scratch *scratch[2];
} weir_cut_lists;

/* For at most so many ends, in memory; or in files that have the name `scratch` until they are open.  Errors of a file;
 * WEIR_ENOMEM. */
weir_err weir_cut_lists_open(uint64_t room, const char *scratch, weir_cut_lists *lists);
/* Errors as of weir_scratch_write. */
weir_err weir_cut_lists_put(weir_cut_lists *lists, uint32_t neighbor, uint32_t weight);
/* Room that was not needed goes back. */
weir_err weir_cut_lists_end(weir_cut_lists *lists);
/* Whether they are read from front to end from now on, or anywhere. */
void weir_cut_lists_in_order(const weir_cut_lists *lists, bool in_order);
void weir_cut_lists_close(weir_cut_lists *lists); /* may be all 0 */

#ifdef __cplusplus
}
#endif

#endif /* WEIR_PARTITIONER_CUT_LISTS_H */
