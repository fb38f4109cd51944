/* SPDX-License-Identifier: Apache-2.0 */
/* along.h - spills walked along rising ids, and by them whether a vertex is there. */
#ifndef WEIR_STORE_ALONG_H
#define WEIR_STORE_ALONG_H

#include "draft.h"
#include "lives.h"

/* A merge over all shards. Zeroed, it is closed. */
typedef struct weir_along {
    const weir_snapshot_draft *draft;
    weir_merge *merge;
    weir_spill_record record;
    bool found;
    bool hidden_too; /* names: an id keeps its key, whatever was deleted */
} weir_along;

weir_err weir_along_open(const weir_snapshot_draft *draft, const char *kind, uint32_t type, weir_along *along);
void weir_along_close(weir_along *along);
weir_err weir_along_step(weir_along *along);
/* Leaves the record at the first of this vertex; *herep says whether it has one. */
weir_err weir_along_to(weir_along *along, weir_vertex vertex, bool *herep);

/* The puts of a type's vertices: as the store, it looks at rows, at the events of edges, and at what left neither. */
typedef struct weir_pulse {
    int64_t expire_us; /* 0: never, and nothing is read */
    int64_t gone_us;   /* who was last put then, or before, is forgotten */
    weir_along met, puts, rows;
    weir_lives lives; /* of the vertex at hand */
    weir_vertex vertex;
    bool begun;
} weir_pulse;

weir_err weir_pulse_open(const weir_snapshot_draft *draft, uint32_t type, weir_pulse *pulse);
void weir_pulse_close(weir_pulse *pulse);
/* Vertices must rise, or stay. *therep: the vertex has not expired, and life is its newest; all times, where the type
 * never expires. */
weir_err weir_pulse_to(weir_pulse *pulse, weir_vertex vertex, bool *therep, weir_life *lifep);

#endif /* WEIR_STORE_ALONG_H */
