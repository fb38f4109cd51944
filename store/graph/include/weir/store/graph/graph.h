/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the living graph: shards of delta, window cache and cold store, fed by mutations, read while it grows.
 *
 *   submit ──► queue ──► [shard] apply ──► active delta ──freeze──► frozen delta ──[worker] seal──► file ──► engine
 *                                               ▲                        ▲                                     ▲
 *   reads ──────────────────────────────────────┴────────────────────────┴─────────── window cache ────────────┘
 *
 * Each shard has an owner thread that applies and a seal thread that writes. A seal carries, per source partition, the
 * offset below which the shard is complete; after a crash the engine's offsets say where the log is read on.
 *
 * INVARIANTS: each is cited where the code keeps it, and a test is named after it
 *
 *   GRAPH-S1  For every source partition, a shard reflects exactly the events below its offset, each once.
 *   GRAPH-S2  A reader sees a vertex's window either before or after an event, never half.
 *   GRAPH-S3  A seal is atomic: all of its mutations and offsets are in the cold store, or none.
 *   GRAPH-S4  Applying an event twice, or replaying from any older offset, changes nothing.
 *   GRAPH-S5  What a cached window answers equals what delta and cold store would answer.
 *   GRAPH-S6  Memory stays inside the budget: when the delta is full, submit waits and counts it; nothing is dropped.
 *
 * TIME: a read "before t" sees what has time < t, and deletions with time < t; so the past can be asked again. The age
 * of what expires is counted up to t; without a t, up to the watermark, the time that the sources agree on (see "what
 * time it is" below), or, if that has gone back behind a trim, up to the first time of which the trim kept all.
 * The schema's `history` of a relation or a vertex type says how far back t may lie: of a t at the watermark (or the
 * time of a trim, if that is later) less the history, or before, a reader is told no edge of that relation and no label
 * on one, and no vertex of that type is there. Age has nothing to do with it: without a t, and of a later one, all is
 * told that has not expired, but for what a trim has taken under a shorter `history`. So what no t reaches any more
 * need not be kept; an event that comes later than the history may find nothing to belong to.
 *
 * ERRORS: where a list has WEIR_EIO, all that a file may fail with (file.h) may come. While a shard's files could not
 * be opened again after an error, what reads or writes them returns why, or WEIR_EUNAVAILABLE.
 */
#ifndef WEIR_STORE_GRAPH_GRAPH_H
#define WEIR_STORE_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>
#include <weir/store/format/entry.h>
#include <weir/store/format/id.h>
#include <weir/store/format/mutation.h>
#include <weir/store/format/row.h>
#include <weir/store/schema/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_WINDOW_MAX       65536u /* edges that one read may ask for */
#define WEIR_GRAPH_BESIDE_MAX 32u    /* lists that are fetched beside it */
#define WEIR_BEFORE_ALL       INT64_MAX
#define WEIR_EVENT_WINDOW_MAX (1u << 24)

typedef struct weir_graph weir_graph;

typedef struct weir_graph_opts {
    uint32_t shards;       /* of a store that is created; an existing one keeps its own; 0: as stored, or 2  */
    uint64_t memory_bytes; /* budget for deltas, windows, names, deletions and block cache together; 0: 1 GiB */
    uint64_t seal_bytes;   /* a delta is frozen at this size; 0: a fifth of the budget over all shards, of piles
                              a fourth; more than the fifth is taken as that */
    int64_t seal_us;       /* or at this age; 0: 10 s                                                        */
    uint32_t window;       /* W: newest edges of a cached window at most, unless more are asked for; 0: 128  */
    uint32_t event_window; /* of a store that is created: see weir_graph_event_window; 0: 131072            */
    bool create;
    bool from_log; /* what is created is filled from a log: see weir_graph_filling                 */
    /* A shard whose files are damaged so that it cannot be opened is set aside as shard-NNN.damaged, and begins with
     * what the best of the checkpoints in a folder has, or empty: it is filled from the log. NULL: no such folder;
     * borrowed for the call. */
    bool repairs;
    const char *checkpoints;
    /* For a caller that only submits: what comes after the first seals is put down as it comes and sorted when it is
     * sealed, and readers find it only then. So it is with from_log, too, until weir_graph_filled. */
    bool piles;
    bool read_only;    /* no threads, no submit: tools over a store that is not written, or a checkpoint  */
    weir_clock *clock; /* borrowed; NULL: the system's                                                   */
    /* Of a store that is created: what its ids depend on, or else a file of it; neither, or "": drawn. Two stores of
     * one log are the same byte for byte only if they share it: what comes first of equal times hangs on ids. Borrowed
     * for the call. */
    const weir_id_key *id_key;
    const char *id_key_path;
    int64_t future_us; /* how far ahead of the wall clock weir_graph_latest lets an event be; 0: any     */
} weir_graph_opts;

/* Opens FOLDER/{graph.yaml, schema.yaml, LOCK, shard-000/…}.  The schema is borrowed and must outlive the graph.
 * WEIR_EINVAL too many shards, or a window that is too large; WEIR_ELIMIT the path is too long; WEIR_ENOTFOUND;
 * WEIR_EBUSY another process has it open: names its id; WEIR_EVERSION; WEIR_EDATA the stored data was written under a
 * schema that this one does not continue: the first difference; or a shard's folder is another's; WEIR_ECORRUPT says
 * what is damaged; WEIR_ECONFIG graph.yaml has its checksum, and says what this program does not read;
 * WEIR_EUNAVAILABLE no thread, or, with `repairs`, this file system cannot exchange folders; WEIR_EIO, WEIR_EFULL,
 * WEIR_ENOMEM; of a store that is created, errors of weir_id_key_load and _draw.  Blocks on the disk.  [owner] */
weir_err weir_graph_open(const char *folder, const weir_schema *schema, const weir_graph_opts *opts,
                         weir_graph **graphp);
/* Applies and seals what was submitted, then closes; what cannot be sealed is still in the log. No other call may be
 * running: end a trim, a scrub and a repair first, by what they call as they go. It is closed after an error, too. NULL
 * is allowed.  [owner]  Errors of a seal; WEIR_EIO, WEIR_EFULL. */
weir_err weir_graph_close(weir_graph *graph);
/* Whether the store was made with from_log, or a shard of it was emptied or set aside to be filled from the log, and
 * weir_graph_filled has not ended that since: it does not have yet what the log had then, so that an answer would be
 * wrong. It stays so over restarts.  [any] */
bool weir_graph_filling(const weir_graph *graph);
/* The store has all of it. In this process that holds at the latest when this returns without an error; for the next
 * one once all that is applied is sealed, which this waits for. After an error the next start is filling again; if this
 * process still is, call again.  Errors of a seal, and of a file.  [owner] */
weir_err weir_graph_filled(weir_graph *graph);
uint32_t weir_graph_shards(const weir_graph *graph);           /* [any] */
const weir_schema *weir_graph_schema(const weir_graph *graph); /* [any] */
/* What the ids of its vertices and events depend on: a secret, for what makes ids.  [any] */
const weir_id_key *weir_graph_id_key(const weir_graph *graph);

/* The key that the store in a folder was made with, whether or not the store can be opened.  WEIR_ENOTFOUND,
 * WEIR_EVERSION; WEIR_ECORRUPT, WEIR_ECONFIG of graph.yaml, as for weir_graph_open; WEIR_ELIMIT, WEIR_EIO, WEIR_ENOMEM.
 * Blocks on the disk.  [any] */
weir_err weir_graph_id_key_of(const char *folder, weir_id_key *id_keyp);
/* The schema that the store in a folder was last opened for writing with.  WEIR_ENOTFOUND; WEIR_ECORRUPT names the
 * file; WEIR_ELIMIT, WEIR_EIO, WEIR_ENOMEM.  Blocks on the disk.  [any] */
weir_err weir_graph_schema_of(const char *folder, weir_schema **schemap);

/* --- sources ---------------------------------------------------------------------------------------------------- */

/* The number of a source in batches and offsets; registered for ever at the first call. identity tells a source apart
 * from another of the same name (a recreated topic's creation id).  WEIR_EDATA the same name with another identity:
 * says that the topic was recreated and what to do; WEIR_ENOTFOUND not known, and the store is open for reading only;
 * WEIR_ELIMIT too many sources, or a name that cannot be kept; WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM.  Blocks on the disk
 * at the first call.  [any] */
weir_err weir_graph_source(weir_graph *graph, const char *name, uint64_t identity, uint32_t *sourcep);
/* Where the source must be read from: the least sealed offset over all shards; 0 for a partition never seen.  [any] */
uint64_t weir_graph_offset_sealed(weir_graph *graph, uint32_t source, uint32_t partition);
/* Below this, every shard has applied every event; readers see it, unless it lies in a pile (`piles`).  [any] */
uint64_t weir_graph_offset_applied(weir_graph *graph, uint32_t source, uint32_t partition);

/* How many records of its partition an event's id is compared with: a part of what the store is, because the same log
 * gives another store with another window.  [any] */
uint32_t weir_graph_event_window(const weir_graph *graph);
/* What WEIR_NOTE_EVENT mutations of a source partition are put at: their time is the event's offset.  [any] */
weir_vertex weir_graph_source_vertex(const weir_graph *graph, uint32_t source, uint32_t partition);

/* An event of an id of which there was no note at the weir_graph_event_window offsets before it. */
typedef struct weir_event_note {
    uint64_t offset, event;
    uint32_t content;
} weir_event_note;
/* The notes of a source partition's offsets from `from` up to before `to`, the newest first; at most WEIR_WINDOW_MAX
 * offsets at a time. A trim may have taken those that are further than weir_graph_event_window before the newest. What
 * lies in a pile (`piles`) of them is sealed first.  [any]  WEIR_EINVAL; WEIR_ELIMIT the arena is full; WEIR_ECORRUPT,
 * WEIR_EIO, WEIR_ENOMEM; errors of a seal. */
weir_err weir_graph_events(weir_graph *graph, uint32_t source, uint32_t partition, uint64_t from, uint64_t to,
                           weir_arena *arena, const weir_event_note **notesp, uint32_t *countp);

/* Hands over one run of a source partition: batches[s] is the encoded batch (mutation.h) for shard s, all with one
 * span; a shard without mutations gets an empty batch, because the offset is news too. Copies.  Waits while a shard's
 * queue or delta is full (GRAPH-S6).  Spans of a partition are submitted in order by one thread; what a shard has
 * already is skipped (GRAPH-S4).  [any]
 * WEIR_EPERM, WEIR_EINVAL, WEIR_ECORRUPT a batch that cannot be decoded, WEIR_ELIMIT too many source partitions:
 * nothing of the run was taken. Some shards may have taken it, and it is submitted again or is still in the log, after
 * WEIR_ENOMEM, WEIR_ECLOSED, WEIR_ECANCELLED (weir_graph_interrupt), and after the error that has stopped a shard, in
 * its own words: weir_graph_stopped. */
weir_err weir_graph_submit(weir_graph *graph, const weir_buf *batches);
/* While it is on, no submit waits for room: one that would have to ends with WEIR_ECANCELLED, and what it had not
 * handed over is still in the log. For a stop.  [any] */
void weir_graph_interrupt(weir_graph *graph, bool on);
/* Waits until everything submitted before is applied.  [any]  Why a shard has stopped, or why it has tried to go on
 * since, in vain: it goes on trying; WEIR_ECLOSED. */
weir_err weir_graph_drain(weir_graph *graph);
/* Seals what was submitted before, and waits until it is in the cold store.  [any]  WEIR_EPERM a store that is only
 * read; else errors as for a drain: the delta stays, and is tried again. */
weir_err weir_graph_seal(weir_graph *graph);

/* A part of the store that is not well: "apply", "seal", "files" or "repair" of a shard. It lasts until the part is
 * well again, and so do its words. */
typedef struct weir_graph_trouble {
    uint32_t shard;
    const char *part;
    bool stopped; /* "apply" only: it does not come back without a new start */
    weir_err err;
} weir_graph_trouble;

/* Calls visit for each part that is not well; what it returns other than success ends the walk.  [any] */
typedef weir_err (*weir_graph_trouble_visit)(void *context, const weir_graph_trouble *trouble);
weir_err weir_graph_troubles(weir_graph *graph, weir_graph_trouble_visit visit, void *context);
/* The first of them, named; success: the store is well.  [any] */
weir_err weir_graph_health(weir_graph *graph);
/* The first that is `stopped`, named: no submit succeeds from then on.  [any] */
weir_err weir_graph_stopped(weir_graph *graph);

/* A claim of this vertex follows soon: begins to fetch what it will look at. Worth it for several at once.  [ingest] */
void weir_graph_name_ahead(weir_graph *graph, weir_vertex vertex);
/* Whether this put of a vertex is to carry its name: for a vertex that was not named for long, or not since the
 * start, also over deletions. Naming one twice is never wrong.  [ingest] */
bool weir_graph_name_claim(weir_graph *graph, const weir_mutation *put);

/* --- what time it is -------------------------------------------------------------------------------------------- */

/* Each source partition has a clock: the lower median of the times of its newest 63 events, in the order of the log.
 * From 63 events on it does not go back, except while it is later than the wall clock and future_us allow.
 * The watermark is the least clock of the partitions that count, and never later than both what a majority of the
 * newest events of all partitions bear and the latest clock of one that has 63 of them. It does not go back, except
 * while the partitions together have had fewer than 63 events, or while it is later than the wall clock and future_us
 * allow. Expiry counts from it. After those first events a single one cannot move it, however wild. A source that is
 * behind holds it, so that what it brings late is still there to be met. It is sealed with the offsets.
 *
 * A caller that only submits needs none of this: a partition counts from its first event on. */

typedef enum weir_clock_state {
    WEIR_CLOCK_READING, /* there is more to read: counts, and holds the watermark even before its first event */
    WEIR_CLOCK_WAITING, /* at its end: counts if it has had an event                                          */
    WEIR_CLOCK_IDLE     /* does not count, until an event that is handed over after this was said is applied  */
} weir_clock_state;

/* What the reader of a partition knows of it. All are IDLE when the store is opened; WAITING does not wake one whose
 * clock is behind the watermark: it was idle before. IDLE begins when what was submitted is applied.  WEIR_ENOMEM,
 * WEIR_ELIMIT.  [any] */
weir_err weir_graph_clock_state(weir_graph *graph, uint32_t source, uint32_t partition, weir_clock_state state);
/* The time up to which ages are counted; INT64_MIN: there is none yet.  [any] */
int64_t weir_graph_watermark(const weir_graph *graph);
/* The latest time that an event may bear: future_us ahead of the wall clock, or of when the event has arrived
 * (INT64_MIN: not known), if that is later. A wall clock that has jumped back refuses nothing that is not newer than
 * the watermark, or than the newest 63 events of a partition that counts or has events that are not applied yet. The
 * newest event of all does not count: after one minute of a wall clock far ahead, what it let in would let in more for
 * years. INT64_MAX: no bound.  [any] */
int64_t weir_graph_latest(weir_graph *graph, int64_t arrived_us);

typedef struct weir_graph_clock {
    const char *source; /* its name as registered */
    uint32_t partition;
    weir_clock_state state;
    int64_t clock_us;  /* INT64_MIN: no event yet              */
    int64_t newest_us; /* the newest time of its newest events */
} weir_graph_clock;

/* Every partition, rising by source; until visit returns an error, which is passed on.  [any] */
typedef weir_err (*weir_graph_clock_visit)(void *context, const weir_graph_clock *clock);
weir_err weir_graph_clocks(weir_graph *graph, weir_graph_clock_visit visit, void *context);

/* --- reads: any thread, while the graph grows ------------------------------------------------------------------- */

/* One edge of a window; rows are borrowed from the arena. */
typedef struct weir_edge {
    weir_vertex neighbor;
    int64_t time_us;
    uint64_t event;
    const uint8_t *row;
    uint32_t row_length;
} weir_edge;

/* The newest `limit` visible edges of (vertex, relation, direction) with time < before_us, newest first (equal times:
 * by neighbour, then event). Expired edges are not visible; before a time that the relation's `history` does not reach
 * none is.  [any]
 * WEIR_EINVAL no such relation, limit 0 or above WEIR_WINDOW_MAX; WEIR_ELIMIT the arena is full; WEIR_ECORRUPT,
 * WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_graph_neighbors(weir_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                              int64_t before_us, uint32_t limit, weir_arena *arena, const weir_edge **edgesp,
                              uint32_t *countp);
/* The same of many vertices, each as of a time of its own; what is in memory of one is fetched while others are read.
 * The arena is to have room for all; deltas are held until it returns. After an error windows say nothing.  Errors as
 * above.  [any]
 * Who needs only edges that are young enough says so by since_us: a list is then read no further back than that,
 * however long it is.
 * `beside` names lists of the same vertices, rising, that the caller will read next, of edges or features only (an
 * assertion), and about how many entries of each: where a vertex has to be looked for in the cold store, it is looked
 * for once. */
typedef struct weir_graph_list {
    weir_list list;
    uint32_t least;    /* entries, of whatever age …                         */
    uint32_t limit;    /* … and up to so many, while they are no older than … */
    int64_t window_us; /* … this before the time of the vertex               */
} weir_graph_list;
typedef struct weir_graph_ask {
    uint16_t relation;
    weir_direction direction;
    uint32_t limit;
    const int64_t *since_us;       /* of each vertex: older edges are left out; NULL: none are */
    const weir_graph_list *beside; /* NULL: none */
    size_t beside_count;           /* at most WEIR_GRAPH_BESIDE_MAX */
    weir_arena *scratch;           /* of those, reset for each vertex; what it has no room for is not read */
} weir_graph_ask;
typedef struct weir_graph_window {
    const weir_edge *edges;
    uint32_t count;
} weir_graph_window;
weir_err weir_graph_neighbors_of_many(weir_graph *graph, const weir_vertex *vertices, const int64_t *before_us,
                                      uint32_t count, const weir_graph_ask *ask, weir_arena *arena,
                                      weir_graph_window *windows);
/* A row as of a time: each feature has its newest value that was put before then. */
typedef struct weir_row_view {
    const uint8_t *row; /* NULL: there is none */
    uint32_t row_length;
    uint16_t vertex_type; /* features only */
    int64_t time_us;      /* of the newest row, or of the label */
} weir_row_view;

/* A LIFE of a vertex goes from its oldest put to its deletion, or until it has not been put for as long as its type's
 * expiry: then it is forgotten. Each put leaves a record of its time: a feature row, an edge at it (whether that was
 * deleted since or not), or one of its own. Before a time, a vertex is there if its newest put is newer than its newest
 * deletion and than what the expiry leaves; what it has is of that life. An edge counts as a put, whatever its
 * relation's `history`. Before a time that its type's `history` does not reach, no vertex is there: it has neither
 * features nor labels then. Names have no time: they stay.
 *
 * The features of a vertex before before_us, as far as they were put in the life that it has then; none if it is not
 * there, or was forgotten since its newest row. A feature that none of the newest 16,384 rows has is told as missing.
 * Errors as for neighbours.  [any] */
weir_err weir_graph_features(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_arena *arena,
                             weir_row_view *viewp);
/* The newest value of a label that was known before before_us. Of a vertex that was deleted, or whose type expires: of
 * the life that it has then, which began before the label, or was its first. None before a time that the `history` of
 * what is labelled does not reach.  [any]  WEIR_EINVAL no such label; else errors as for neighbours. */
weir_err weir_graph_label(weir_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us, weir_arena *arena,
                          weir_row_view *viewp);
/* The same of many vertices, each before its own time: the memory that they lie in is fetched side by side.  [any] */
weir_err weir_graph_labels_of_many(weir_graph *graph, const weir_vertex *vertices, const int64_t *before_us,
                                   uint32_t count, uint16_t label, weir_arena *arena, weir_row_view *views);
/* Type and key of a vertex; *keyp NULL if it is not known, or nothing was put at it (itself, or an edge) that is newer
 * than its newest deletion and than what its type's expiry leaves; which of them came first does not matter.  [any] */
weir_err weir_graph_name(weir_graph *graph, weir_vertex vertex, weir_arena *arena, uint16_t *vertex_typep,
                         const char **keyp, uint32_t *key_lengthp);
/* The oldest put of the life that a vertex has before before_us; *knownp false: it has no name, or is not there. All of
 * its lists are looked through in one pass over the files that have it, with a few seeks more for each list of many
 * bundles; of a type that expires, twice that for each expiry that the life is long.  [any] */
weir_err weir_graph_first_put(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_arena *arena, bool *knownp,
                              int64_t *time_usp);

/* Steps of a seek, or of a name: it takes about as long as to pass so many records. */
#define WEIR_GRAPH_SEEK_STEPS 24u

/* What a question may cost. The same one is handed to all reads of a request, and is used up by them. */
typedef struct weir_graph_budget {
    uint64_t steps;    /* that are left: a record or a bundle that is passed is one; UINT64_MAX: any        */
    weir_clock *clock; /* borrowed; NULL: no deadline                                                       */
    int64_t until_us;  /* by that clock's monotonic time                                                    */
    uint64_t unlooked; /* steps since the clock was looked at; 0 at first                                   */
    bool exceeded;     /* a read has ended for want of steps: with more of them it can be asked anew        */
} weir_graph_budget;

/* The same questions within a budget (NULL: any). What a list has is passed from its newest record on, hidden ones too:
 * a vertex with many deleted edges costs as many steps; to look up whether the vertex or a neighbour was deleted, where
 * that may be, WEIR_GRAPH_SEEK_STEPS, or twice that as of the past.  [any]
 * Also WEIR_EBUSY, and `exceeded`: it takes more steps than are left; WEIR_ETIMEOUT: the deadline has passed, which is
 * looked at every thousand steps. */
weir_err weir_graph_neighbors_within(weir_graph *graph, weir_vertex vertex, uint16_t relation, weir_direction direction,
                                     int64_t before_us, uint32_t limit, weir_graph_budget *budget, weir_arena *arena,
                                     const weir_edge **edgesp, uint32_t *countp);
weir_err weir_graph_features_within(weir_graph *graph, weir_vertex vertex, int64_t before_us, weir_graph_budget *budget,
                                    weir_arena *arena, weir_row_view *viewp);
weir_err weir_graph_label_within(weir_graph *graph, weir_vertex vertex, uint16_t label, int64_t before_us,
                                 weir_graph_budget *budget, weir_arena *arena, weir_row_view *viewp);
weir_err weir_graph_name_within(weir_graph *graph, weir_vertex vertex, weir_graph_budget *budget, weir_arena *arena,
                                uint16_t *vertex_typep, const char **keyp, uint32_t *key_lengthp);

/* Takes nothing: whether there are so many steps, where it is known what must follow. budget is not NULL.  Errors as if
 * they were taken. */
weir_err weir_graph_budget_covers(weir_graph_budget *budget, uint64_t steps);

/* Every deletion of a vertex, by vertex and time, each once.  What visit returns; WEIR_ENOMEM, WEIR_ECORRUPT, WEIR_EIO.
 * [any] */
typedef weir_err (*weir_graph_deletion_visit)(void *context, weir_vertex vertex, int64_t time_us);
weir_err weir_graph_deletions(weir_graph *graph, weir_graph_deletion_visit visit, void *context);
/* The kinds of a vertex type's or a relation's features in the schema's order: what weir_row_* take.  [any] */
const weir_value_kind *weir_graph_vertex_kinds(const weir_graph *graph, uint32_t vertex_type, size_t *countp);
const weir_value_kind *weir_graph_relation_kinds(const weir_graph *graph, uint32_t relation, size_t *countp);

/* Calls visit once per record of a shard's sealed state: key.h, values as stored.h says. First what the store keeps for
 * itself and the deletions of vertices, then vertex by vertex, rising: its edges, features, labels, puts and notes of
 * events, each list newest first, and its name. Snapshots and verify read the graph so.
 * What visit returns; WEIR_EINVAL no such shard; WEIR_ECORRUPT, WEIR_EIO, WEIR_ENOMEM.  [any] */
typedef weir_err (*weir_graph_visit)(void *context, const void *key, size_t key_length, const void *value,
                                     size_t value_length);
weir_err weir_graph_scan(weir_graph *graph, uint32_t shard, weir_graph_visit visit, void *context);
/* Every source partition that the first shard has seen, rising: what weir_graph_offset_sealed and _applied know. Of one
 * that it has not seen yet they say 0.  [any] */
typedef weir_err (*weir_graph_offset_visit)(void *context, const char *source, uint32_t partition, uint64_t sealed,
                                            uint64_t applied);
weir_err weir_graph_offsets(weir_graph *graph, weir_graph_offset_visit visit, void *context);
/* Calls visit for each source partition of which a shard has applied less than another; `shard` has least. In a store
 * that was just opened, reading the partition on makes them even; a partition without a reader stays so.  [any] */
typedef weir_err (*weir_graph_uneven_visit)(void *context, const char *source, uint32_t partition, uint32_t shard,
                                            uint64_t least, uint64_t most);
weir_err weir_graph_uneven(weir_graph *graph, weir_graph_uneven_visit visit, void *context);

/* --- operations ------------------------------------------------------------------------------------------------- */

/* Seals, unless the store is only read, then copies all shards into a folder that must not exist, with MANIFEST (path,
 * length, SHA-256 of each file). It appears under its name only when it is whole, and shares no block with the store
 * that this program knows of; FOLDER.partial is removed first.  [any]  WEIR_EEXIST; WEIR_ELIMIT the path is too long,
 * or too many files; WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM; errors of a seal. */
weir_err weir_graph_checkpoint(weir_graph *graph, const char *folder);
/* The same at the price of a folder, where the file system has hard links: the files are the store's own, so what
 * damages one damages both. For a reader of the next hours, not for a backup; the file SHARED in it says so.  [any] */
weir_err weir_graph_checkpoint_linked(weir_graph *graph, const char *folder);
/* Whether a checkpoint says that its files are a store's own.  [any] */
bool weir_graph_checkpoint_shares(const char *checkpoint);
/* Verifies a checkpoint against its MANIFEST and copies it into a store folder that must not exist.  WEIR_ECORRUPT
 * names the file; WEIR_ENOTFOUND it has no MANIFEST; WEIR_EEXIST, WEIR_ELIMIT, WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_graph_restore(const char *checkpoint, const char *folder);
/* Reads every record of every shard that is sealed, its key and its row.  WEIR_ECORRUPT, WEIR_EIO, WEIR_ENOMEM.
 * [any] */
weir_err weir_graph_verify(weir_graph *graph, uint64_t *recordsp);

typedef struct weir_graph_stats {
    uint64_t applied_mutations;        /* counter: since open                             */
    uint64_t skipped_mutations;        /* counter: replayed, already there                */
    uint64_t sealed_records;           /* counter                                         */
    uint64_t seals;                    /* counter                                         */
    uint64_t seal_failures;            /* counter                                         */
    uint64_t submit_wait_us;           /* counter: GRAPH-S6                                     */
    uint64_t delta_bytes;              /* gauge: active and frozen, all shards            */
    uint64_t cache_bytes;              /* gauge: window cache                             */
    uint64_t cache_hits, cache_misses; /* counters                                  */
    uint64_t cold_bytes;               /* gauge                                           */
    uint64_t cold_files;               /* gauge                                           */
    uint64_t level0_files;             /* gauge: many of them slow reads                  */
    uint64_t compaction_bytes;         /* gauge: still to be compacted, estimated         */
    uint64_t compactions;              /* gauge: that run or are due                      */
    uint64_t taken_bytes;              /* counter: sorted files that came in, as engine.h */
    uint64_t compacted_bytes;          /* counter: written by compactions, as engine.h    */
    uint64_t compaction_cpu_us;        /* counter: of those, as engine.h                  */
    uint64_t deleted_vertices;         /* gauge: their deletions; one that comes twice may count twice until a start */
    int64_t event_time_last_us;        /* gauge: newest event time applied; INT64_MIN: no event. Of one sender: what
                                        * time it is says weir_graph_watermark          */
} weir_graph_stats;
void weir_graph_stats_get(weir_graph *graph, weir_graph_stats *statsp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_GRAPH_GRAPH_H */
