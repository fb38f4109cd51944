/* SPDX-License-Identifier: Apache-2.0 */
/* along.h - spills walked in the order of ids, and with them when each vertex existed. */
#ifndef WEIR_STORE_ALONG_H
#define WEIR_STORE_ALONG_H

#include "draft.h"
#include "lives.h"

/* A merge over all shards. Zeroed, it is closed. */
typedef struct weir_along {
    weir_merge *merge;
    weir_spill_record record;
    bool found;
} weir_along;

weir_err weir_along_open(const weir_snapshot_draft *draft, const char *kind, uint32_t type, weir_along *along);
void weir_along_close(weir_along *along);
weir_err weir_along_step(weir_along *along);
/* Leaves the record at the first of this vertex; *herep says whether it has one. */
weir_err weir_along_to(weir_along *along, weir_vertex vertex, bool *herep);

/* The puts of a type's vertices: like the store, it looks at rows, at events of edges, and at puts that left
 * neither. */
typedef struct weir_pulse {
    const weir_snapshot_draft *draft;
    int64_t expire_us; /* 0: never                              */
    int64_t from_us;   /* the first time at which targets see them */
    weir_along met, rowed, puts;
    weir_lives lives; /* of the vertex at hand: all, seen or not */
    weir_vertex vertex;
    bool begun;
} weir_pulse;

weir_err weir_pulse_open(const weir_snapshot_draft *draft, uint32_t type, weir_pulse *pulse);
void weir_pulse_close(weir_pulse *pulse);
/* Each call names the same vertex as the last, or a later one. */
weir_err weir_pulse_to(weir_pulse *pulse, weir_vertex vertex);
/* Whether any target sees the life; *untilp its end. */
bool weir_pulse_sees(const weir_pulse *pulse, const weir_life *life, int64_t *untilp);
/* Whether any target sees any of them. */
bool weir_pulse_sees_any(const weir_pulse *pulse);

#endif /* WEIR_STORE_ALONG_H */
