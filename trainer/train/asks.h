/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asks.h - whose the input rows of a block are: what this rank owns, and what it asks others for. Private to this
 * folder.
 *
 * With parts a rank has no more than its own: another rank's vertex is asked for by its number, which all parts agree
 * on. Without, each rank has the whole snapshot, but reads the rows only of vertices that it owns by their ids.
 */
#ifndef WEIR_TRAINER_TRAIN_ASKS_H
#define WEIR_TRAINER_TRAIN_ASKS_H

#include <weir/inference/nn/shape.h>
#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/table.h>
#include <weir/store/sample/block.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/train/targets.h>

/* A plain value; all is borrowed. */
typedef struct weir_train_owners {
    const weir_snapshot *snapshot; /* what this rank has           */
    const weir_part *part;         /* whose snapshot it is; NULL: the whole one */
    uint32_t rank, ranks;
} weir_train_owners;

/* A row that another rank owns, as it goes over the wire. */
typedef struct weir_train_ask {
    uint64_t vertex; /* its number, or its index in the whole snapshot */
    int64_t before_us;
    uint64_t event; /* as weir_sample_vertices.events */
    uint16_t type;
    uint16_t parts; /* of its row: form.h   */
    uint32_t row;   /* of the asker's type */
} weir_train_ask;

struct weir_train_cache;
struct weir_train_lookahead;
struct weir_train_remote;

/* Of one block. Memory grows to the largest and stays. */
typedef struct weir_train_asks {
    weir_buf asks;        /* weir_train_ask, by rank and then as the rows are    */
    uint64_t *bytes;      /* of them, to each rank                              */
    uint64_t *places;     /* of each rank's next one, while they are laid out   */
    uint32_t *own_rows;   /* rows of this rank by their places, type after type */
    uint32_t *own_ends;   /* of each type, where they end                       */
    weir_train_ask *hits; /* rows that this rank keeps: `vertex` is their place */
    uint32_t hit_count;
    weir_buf keeps;   /* weir_train_ask: asked for, to be put into the place `vertex` */
    weir_buf earlier; /* uint32_t, of each ask: the last one before it for this vertex, counted from the first of all */
    weir_table asked; /* by vertex: its last ask                                               */
    weir_arena *arena;   /* of the table; NULL: no vertex is asked for twice */
    weir_buf reads;      /* weir_train_read, of the lookahead: of the block's rows that others own, in their order */
    uint32_t *owner_of;  /* of each row                                        */
    uint16_t *parts_of;  /* of each row: what its owner is asked for; 0: nothing */
    uint32_t partly;     /* hits of which the moving part is asked for           */
    size_t row_capacity; /* of own_rows, owner_of, parts_of and hits           */
} weir_train_asks;

/* timed: targets have several times, so that a vertex has several rows; false also where no answers are asked for, but
 * others told of what is read.  WEIR_ENOMEM. */
weir_err weir_train_asks_open(const weir_train_owners *owners, uint32_t types, bool timed, weir_train_asks *asks);
void weir_train_asks_close(weir_train_asks *asks);
/* What a rank keeps of others' rows: one of the two, or none. A plain value; both are borrowed. */
typedef struct weir_train_kept {
    const struct weir_train_cache *cache;   /* from the beginning; or: */
    struct weir_train_lookahead *lookahead; /* for coming batches; then asks->reads is of this block */
} weir_train_kept;

/* For the input rows of this block; none of an earlier one are left. remote, view may be NULL: none.
 * Nobody is asked for rows of a type without inputs.  WEIR_ECORRUPT an array of the snapshot leads outside;
 * WEIR_ENOMEM. */
weir_err weir_train_asks_make(weir_train_asks *asks, const weir_train_owners *owners, const weir_nn_shape *shape,
                              weir_train_kept kept, const struct weir_train_remote *remote,
                              const weir_block_view *view);

/* What all ranks call a vertex. A plain value. */
typedef struct weir_train_name {
    uint64_t number; /* of parts; or its index in the whole snapshot */
    uint64_t id;     /* its low half                                 */
} weir_train_name;

/* Of a vertex as a block calls it; remote: of the block's batch (remote.h), or NULL.  WEIR_ECORRUPT there is no such
 * vertex here, and no rank told of one. */
weir_err weir_train_name_of(const weir_train_owners *owners, const struct weir_train_remote *remote, uint32_t type,
                            uint64_t vertex, weir_train_name *namep);

/* The rank that owns the vertex of the snapshot with this index, which must be there. */
uint32_t weir_train_owner(const weir_train_owners *owners, uint32_t type, uint64_t vertex);
/* The same of the vertex of a target. */
uint32_t weir_train_target_owner(const weir_train_owners *owners, const weir_targets *targets, uint64_t target);
/* What a rank that asks for one of this rank's vertices means, as an index into the snapshot.  WEIR_ECORRUPT it is not
 * this rank's. */
weir_err weir_train_asked(const weir_train_owners *owners, const weir_train_ask *ask, uint64_t *vertexp);

#endif /* WEIR_TRAINER_TRAIN_ASKS_H */
