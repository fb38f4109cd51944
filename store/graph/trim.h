/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trim.h - a shard written anew without what no reader can be told any more, while it is read and written.
 *
 *   hold ─► a store beside it begins with the offsets; a cursor of this moment ─► release
 *   every vertex: what may go is left out, the rest is bundled anew ─► sorted files       each seal is written twice:
 *   hold ─► those seals come in ─► the folders are exchanged in one step ─► release       into the shard, and for this
 *
 * The store that it was is removed. A crash leaves one of the two under the shard's name, and the start removes the
 * other.
 */
#ifndef WEIR_STORE_TRIM_H
#define WEIR_STORE_TRIM_H

#include "gather.h"
#include "graph_private.h"

/* What decides what may go, and the time that it counts from. */
typedef struct weir_trim_rule {
    const weir_schema *schema;
    const weir_graph_kinds *vertex_kinds;
    int64_t now_us;
    uint32_t event_window; /* of notes so many offsets older than the newest are asked for */
} weir_trim_rule;

/* trim_rule.c: what of a vertex stays. Kept from one vertex to the next for its memory only. */
typedef struct weir_trimmer {
    weir_trim_rule rule;
    weir_deleted_look look;
    weir_arena *arena; /* of the deletions that a list has */
    int64_t *times;    /* of the puts whose records go     */
    size_t time_count, time_capacity;
} weir_trimmer;

/* Takes out of what was gathered the records that no reader can be told any more; of a put that loses its record, or
 * of several that stand for each other, a bare put stays.  WEIR_ENOMEM; those of a look. */
weir_err weir_trimmer_vertex(weir_trimmer *trimmer, weir_gather *gather);
/* Of a vertex that is too large to be gathered: the time up to which the edges of a list may go with their bundles,
 * because the oldest and the newest of their times is all that is ever asked for; INT64_MIN: none may. */
weir_err weir_trimmer_gone_us(weir_trimmer *trimmer, weir_vertex vertex, weir_list list, int64_t *gone_usp);
/* How long puts rely on a name; 0: for ever, because the type's names stay. */
int64_t weir_trim_rule_renew_us(const weir_schema_vertex *type);
/* Until which time the watermark is to have come before trimming again gives enough back; INT64_MAX: never. */
int64_t weir_trim_rule_next_us(const weir_schema *schema, int64_t trimmed_us);

/* What is newer than this a trim leaves alone. */
int64_t weir_trim_rule_whole_from_us(const weir_trim_rule *rule);

/* A shard was trimmed at this watermark: readers are told of no time before which it may have kept nothing. */
void weir_graph_set_trimmed(weir_graph *graph, int64_t trimmed_us);

/* What a seal does for a shard that is being trimmed; NULL: none is. */
typedef struct weir_trim weir_trim;
/* A file for the same records; NULL: the trim has failed. */
weir_engine_writer *weir_trim_seal_begin(weir_trim *trim, weir_trimmed *trimmedp);
/* It has them all, or one of them did not fit (err), and the trim is given up. The file is the trim's then. */
void weir_trim_seal_end(weir_trim *trim, weir_engine_writer *writer, weir_err err);

#endif /* WEIR_STORE_TRIM_H */
