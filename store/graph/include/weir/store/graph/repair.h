/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.h - a shard whose files are damaged is made anew, out of the events that it was made of, while it is read.
 *
 *   files ──► what a checkpoint has the very same comes back; if that is all that was damaged, there is no more to do
 *   begin ──► for each source partition that is missing: add what its events say, then say how far that covers it
 *         ──► hold ──► again, of what was sealed meanwhile ──► replace ──► close
 *
 * INVARIANT
 *   GRAPH-R1  What could be read before is there after it: else the damaged store stays in its place, and says why.
 *
 * ERRORS as in graph.h.
 */
#ifndef WEIR_STORE_GRAPH_REPAIR_H
#define WEIR_STORE_GRAPH_REPAIR_H

#include <weir/store/graph/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_graph_repair weir_graph_repair;

#define WEIR_GRAPH_REPAIR_NAMES_BYTES (5u << 20)

typedef bool (*weir_graph_repair_go_on)(void *context); /* asked now and then; false: WEIR_ECLOSED */

/* Damaged or lost sorted files of a shard come back out of the checkpoints of this store that are in a folder, if one
 * has the very same; that takes the reading of the shard, and none of the log. *restoredp counts those, *leftp what is
 * damaged still; UINT32_MAX: there was no checkpoint to look into, and nothing was read. If nothing is left, nothing
 * need be made anew, and the shard is opened again as soon as no long read is in it.  WEIR_EFULL, WEIR_EIO,
 * WEIR_ENOMEM, WEIR_ECLOSED.  Blocks. */
weir_err weir_graph_repair_files(weir_graph *graph, uint32_t shard, const char *checkpoints,
                                 weir_graph_repair_go_on go_on, void *context, uint32_t *restoredp, uint32_t *leftp);

/* Begins FOLDER/shard-NNN.repair: with what the best of the checkpoints in a folder has, or else empty; NULL: there is
 * no such folder. It takes about a quarter of what a delta of the shard may have, or 1 MiB if that is more, and 5 MiB
 * for names, and disk for as much as the shard has. One repair of a shard at a time.  WEIR_ECORRUPT what a checkpoint
 * has cannot be read; WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM.  [owner] */
weir_err weir_graph_repair_begin(weir_graph *graph, uint32_t shard, const char *checkpoints,
                                 weir_graph_repair **repairp);
/* Removes what was begun; the shard goes on as it is. NULL is allowed. */
void weir_graph_repair_close(weir_graph_repair *repair);

/* Calls visit for each source partition of which the shard has sealed more than is covered: offsets from `covered` up
 * to before `sealed` are wanted. Until it returns an error, which is passed on. */
typedef weir_err (*weir_graph_repair_visit)(void *context, uint32_t source, uint32_t partition, uint64_t covered,
                                            uint64_t sealed);
weir_err weir_graph_repair_missing(weir_graph_repair *repair, weir_graph_repair_visit visit, void *context);
/* Whether a mutation is of this shard. */
bool weir_graph_repair_wants(const weir_graph_repair *repair, const weir_mutation *mutation);
/* As weir_graph_name_claim, of the store that is being made. */
bool weir_graph_repair_claim(weir_graph_repair *repair, weir_vertex vertex);
/* The notes of a source partition's events at `from` and above that it has, the newest first: of a checkpoint that it
 * began with, if they are of this shard (weir_graph_repair_wants).  What visit returns; WEIR_ECORRUPT, WEIR_EIO,
 * WEIR_ENOMEM. */
typedef weir_err (*weir_graph_repair_note)(void *context, const weir_event_note *note);
weir_err weir_graph_repair_notes(weir_graph_repair *repair, weir_vertex source_vertex, uint64_t from,
                                 weir_graph_repair_note visit, void *context);
/* What an event says of this shard, sorted by vertex. After an error the repair is of no use.  WEIR_EFULL, WEIR_EIO,
 * WEIR_ECORRUPT, WEIR_ENOMEM. */
weir_err weir_graph_repair_add(weir_graph_repair *repair, const weir_mutation *mutations, size_t count);
/* All events of a source partition below the offset were added. */
weir_err weir_graph_repair_covered(weir_graph_repair *repair, uint32_t source, uint32_t partition, uint64_t offset);

/* Until release, or close, the shard seals nothing: what is missing stays the same.  WEIR_ECLOSED. */
weir_err weir_graph_repair_hold(weir_graph_repair *repair);
void weir_graph_repair_release(weir_graph_repair *repair);
/* While it is held and nothing is missing: puts what was made into the place of the damaged store, which is kept as
 * FOLDER/shard-NNN.damaged; the one that was kept before is removed. If it cannot get that name, which is logged, it is
 * FOLDER/shard-NNN.repair until the next repair, or the next start.  WEIR_EBUSY a reader takes long: release it, and
 * try again later; WEIR_EDATA the damaged store has records that were not added (GRAPH-R1); WEIR_EUNAVAILABLE this
 * file system cannot; WEIR_ECORRUPT, WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM, WEIR_ECLOSED.  Blocks. */
weir_err weir_graph_repair_replace(weir_graph_repair *repair, weir_graph_repair_go_on go_on, void *context);

/* What weir_graph_troubles says of the shard as its part "repair", until success is said.  [any] */
void weir_graph_repair_say(weir_graph *graph, uint32_t shard, weir_err err);

/* Reads all that the shards have stored from the disk, but neither graph.yaml nor schema.yaml; what is found damaged,
 * weir_graph_troubles says from then on. pace is called after each file, with its bytes, and may wait; false ends the
 * walk. The first error is returned, and the walk goes on to the other shards. A damaged `identity` of a shard is
 * written anew, which is no error, unless the store is only read: then WEIR_EDATA it is another's, too.  WEIR_ECORRUPT,
 * WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM.  Blocks.  [any] */
typedef bool (*weir_graph_pace)(void *context, uint64_t bytes);
weir_err weir_graph_scrub(weir_graph *graph, weir_graph_pace pace, void *context);

/* Writes a shard anew without what no reader can be told any more, because the schema's `history` does not reach so far
 * back. Readers and seals go on. It begins only if the disk has room for as much as the shard has, and writes what
 * stays. pace as above, of what was read; false ends it, and so does an error: the shard is then as it was. Not beside
 * a repair of the same shard. WEIR_EUNAVAILABLE not now: the sentence says why; WEIR_ECLOSED; WEIR_EBUSY a reader takes
 * very long, or it is being trimmed; WEIR_EFULL, WEIR_EIO, WEIR_ECORRUPT, WEIR_ENOMEM.  Blocks.  [any] */
weir_err weir_graph_trim(weir_graph *graph, uint32_t shard, weir_graph_pace pace, void *context);
/* Whether the schema says of anything how far back it can be asked for.  [any] */
bool weir_graph_trims(const weir_graph *graph);
/* Whether a trim is worth its time, and would not be told WEIR_EUNAVAILABLE: an eighth of what the schema keeps has
 * become too old since the last one, or there was none yet and the shard is not tiny.  [any] */
bool weir_graph_trim_due(const weir_graph *graph, uint32_t shard);
/* What is newer is all there; of what is as old, or older, a trim may have taken what no reader can be told, and have
 * left bare puts in its place. INT64_MIN: there was no trim.  [any] */
int64_t weir_graph_whole_from_us(const weir_graph *graph, uint32_t shard);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_GRAPH_REPAIR_H */
