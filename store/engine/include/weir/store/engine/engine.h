/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the cold store of one shard: RocksDB, written by sorted files that are ingested whole.
 *
 * The only module that includes RocksDB's headers. No write-ahead log, and no memtable except where damage is in the
 * way of ingesting: a sorted file becomes visible in one step or not at all, and the log of events is what it is
 * rebuilt from.
 *
 * While RocksDB is closed, because it could not be opened again after an error, each call but weir_engine_mend and
 * weir_engine_replace, which open it, returns what is wrong: the error of weir_engine_health, or WEIR_EUNAVAILABLE.
 *
 * INVARIANTS
 *   ENGINE-N1  A reader sees all of an ingested file or nothing of it.
 *   ENGINE-N2  What ingest has returned for survives kill -9 and a power cut.
 *   ENGINE-N3  A flipped bit in a file is an error when it is read, never a wrong value.
 */
#ifndef WEIR_STORE_ENGINE_ENGINE_H
#define WEIR_STORE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_engine weir_engine;
typedef struct weir_engine_cursor weir_engine_cursor;
typedef struct weir_engine_writer weir_engine_writer;
typedef struct weir_engine_cache weir_engine_cache; /* one block cache for many engines */

/* Kind and vertex: what filters are made of. Shorter keys are found without them; none may be the first behind what a
 * POINT cursor seeks. */
#define WEIR_ENGINE_PREFIX_BYTES 17u
/* A key that is long enough has a rank: these 8 bytes, read as a number, high byte first. Of one prefix the least rank
 * is wanted first. */
#define WEIR_ENGINE_RANK_AT 22u

/* A value may hold things of several ranks, the least of which is its key's. Returns the greatest, or more. Called for
 * each key that has a rank, when a file is written.  [any] */
typedef uint64_t (*weir_engine_last_rank)(const void *key, size_t length, const void *value, size_t value_length);

/* A hook that may put other records in the place of some that stand side by side, while files are merged. All are puts.
 * `add` copies what it keeps; it and `end` call emit as often as they like, and return its error at once. After an
 * error only `close` is called. What is emitted rises strictly in its keys; a record made of several has the greatest
 * of their numbers. Its key may lie outside of those of the merge's input, but then within a prefix of theirs: RocksDB
 * takes no file into the level that a merge writes to, as each file that comes in overlaps all others. Called by a
 * thread of RocksDB. */
typedef struct weir_engine_record {
    const void *key, *value; /* borrowed until the next */
    size_t key_length, value_length;
    uint64_t sequence;
} weir_engine_record;

typedef weir_err (*weir_engine_emit)(void *context, const weir_engine_record *record);

typedef struct weir_engine_joining {
    weir_err (*open)(weir_engine_emit emit, void *context, void **statep);
    weir_err (*add)(void *state, const weir_engine_record *record);
    weir_err (*end)(void *state); /* nothing more comes */
    void (*close)(void *state);   /* NULL is allowed    */
} weir_engine_joining;

typedef struct weir_engine_opts {
    weir_engine_cache *cache;           /* borrowed; NULL: a small one of its own                 */
    bool create;                        /* makes it when it is not there                          */
    bool read_only;                     /* for tools: another process may have it open            */
    bool bulk;                          /* no compaction on its own: for tests and benches        */
    weir_engine_last_rank last_rank;    /* NULL: not known */
    const weir_engine_joining *joining; /* NULL: records stay as they are */
} weir_engine_opts;

typedef struct weir_engine_stats {
    uint64_t live_bytes;       /* gauge: files on disk                    */
    uint64_t live_files;       /* gauge                                   */
    uint64_t keys_estimate;    /* gauge                                   */
    uint64_t level0_files;     /* gauge: many of them slow reads          */
    uint64_t compaction_bytes; /* gauge: still to be compacted, estimated */
    uint64_t jobs;             /* gauge: flushes and compactions that run or will soon */
    /* counters since RocksDB was opened: mending and replacing open it again */
    uint64_t taken_bytes;       /* files that came in            */
    uint64_t compacted_bytes;   /* written by compactions        */
    uint64_t compaction_cpu_us; /* of the threads that compacted */
    uint64_t merges;            /* compactions that were not left to RocksDB */
} weir_engine_stats;

weir_err weir_engine_cache_open(uint64_t bytes, weir_engine_cache **cachep);
void weir_engine_cache_close(weir_engine_cache *cache);

/* WEIR_ENOTFOUND; WEIR_EBUSY another process has it open; WEIR_ECORRUPT with what RocksDB says; WEIR_EIO;
 * WEIR_EFULL; WEIR_ENOMEM; to create it, what weir_folder_create may fail with.  Blocks.  [owner] */
weir_err weir_engine_open(const char *folder, const weir_engine_opts *opts, weir_engine **enginep);
void weir_engine_close(weir_engine *engine);

/* A cursor over a consistent view from the moment it was opened. Any thread opens one; it belongs to one thread then.
 * WEIR_ENOMEM; WEIR_EIO; while RocksDB is closed, as above. What is damaged weir_engine_cursor_err tells.  [any]
 * POINT: for short reads at one vertex; it ends where the first WEIR_ENGINE_PREFIX_BYTES of the key sought end, and
 * filters skip files. SCAN: in full order over everything; what it reads does not come into the cache, where
 * others keep theirs. PROBE: in full order, too, and into the cache: for a reader that looks up single keys. */
typedef enum weir_engine_use { WEIR_ENGINE_POINT, WEIR_ENGINE_SCAN, WEIR_ENGINE_PROBE } weir_engine_use;
weir_err weir_engine_cursor_open(weir_engine *engine, weir_engine_use use, weir_engine_cursor **cursorp);
/* A POINT cursor that reads the sorted files one by one, for what a prefix has of from_rank and more. It stands nowhere
 * until weir_engine_cursor_next_file puts it into the next file that may have some of that: then seek, forwards or
 * backwards, a key that begins with the prefix (an assertion). No key of this file, or of those that follow, has a rank
 * less than *rankp, so a reader who has enough may stop. A record may be in several files; a key without a rank may be
 * in none. false: there are no more files, or an error. What is seen is that of one moment since the opening. Where the
 * files are not known one by one all of them are read as one.  Errors as above.  [any] */
weir_err weir_engine_cursor_open_files(weir_engine *engine, const void *prefix, uint64_t from_rank,
                                       weir_engine_cursor **cursorp);
bool weir_engine_cursor_next_file(weir_engine_cursor *cursor, uint64_t *rankp);
/* A POINT cursor for a caller that already holds one: it does not wait for the engine to be opened again or
 * replaced, which waits for the one that is held.  Errors as above.  [any] */
weir_err weir_engine_cursor_open_beside(const weir_engine_cursor *held, weir_engine_cursor **cursorp);
/* Stands at the first key >= key.  [owner] */
void weir_engine_cursor_seek(weir_engine_cursor *cursor, const void *key, size_t length);
/* Stands at the last key <= key.  [owner] */
void weir_engine_cursor_seek_last(weir_engine_cursor *cursor, const void *key, size_t length);
/* Goes to the key before where it stands.  [owner] */
void weir_engine_cursor_previous(weir_engine_cursor *cursor);
bool weir_engine_cursor_valid(const weir_engine_cursor *cursor);
/* Borrowed until the cursor moves. */
const void *weir_engine_cursor_key(const weir_engine_cursor *cursor, size_t *lengthp);
const void *weir_engine_cursor_value(const weir_engine_cursor *cursor, size_t *lengthp);
void weir_engine_cursor_next(weir_engine_cursor *cursor);
/* Whether it stopped at an error rather than at the end.  WEIR_ECORRUPT, WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_engine_cursor_err(const weir_engine_cursor *cursor);
void weir_engine_cursor_close(weir_engine_cursor *cursor);

/* Success, or what is wrong for longer than a call: RocksDB has stopped taking files (a full disk, a damaged file that
 * a compaction met), something that was read is damaged (the sentence names the file if RocksDB does), or the process
 * has too little memory (WEIR_ENOMEM).  [any] */
weir_err weir_engine_health(weir_engine *engine);
/* Looks whether that is over, and gets RocksDB to work again as far as it can; what is still wrong is returned, but for
 * a wait for memory that has stopped nothing. To be called now and then while weir_engine_health is not success, and
 * before what failed is tried again; by the thread that writes. To open RocksDB again it lets no reader in for up to a
 * second, until those inside have gone (WEIR_EBUSY: they have not), and then for as long as closing and opening take.
 * Blocks.  [owner] */
weir_err weir_engine_mend(weir_engine *engine);

/* Puts the engine in `folder`, which is closed and lies beside this one, in this one's place: readers meet one or the
 * other. What it was is in `folder`, and its troubles are over, but for one: where what took its place could not be
 * opened, weir_engine_health says so, and weir_engine_mend opens it.  WEIR_EBUSY: it is read; WEIR_EUNAVAILABLE: the
 * file system cannot; after any error it is as it was, or opened again by weir_engine_mend.  Blocks.  [owner] */
weir_err weir_engine_replace(weir_engine *engine, const char *folder);
/* Reads every byte of every sorted file from the disk, past the caches of RocksDB and, where the file system can, of
 * the kernel, and what names the files; what is damaged is told, too, by weir_engine_health from then on, and ends the
 * walk. Of a file whose checksum is not known only the blocks are checked. pace is called after each file, with its
 * bytes, and may wait; false ends it with success.  WEIR_ECORRUPT, WEIR_ENOMEM; errors of a file.  Blocks.  [any] */
typedef bool (*weir_engine_pace)(void *context, uint64_t bytes);
weir_err weir_engine_scrub(weir_engine *engine, weir_engine_pace pace, void *context);

/* Puts a copy in the place of each sorted file that is damaged or lost: out of the first of `folders`, which are copies
 * of this engine (weir_engine_checkpoint), that has a file of its name with the very bytes it was written with. `aside`
 * is a folder of this file system for what is on its way. *restoredp counts them; *leftp counts the files that are
 * damaged still. If some came back and none are left, weir_engine_health says that the engine is to be opened again,
 * and weir_engine_mend does so. go_on is asked before each file that is read; false: WEIR_ECLOSED.  WEIR_ENOMEM;
 * errors of a file.  Blocks.  [any] */
typedef struct weir_engine_copies {
    const char *const *folders;
    size_t count;
    const char *aside;
    bool (*go_on)(void *context);
    void *context;
} weir_engine_copies;
weir_err weir_engine_restore(weir_engine *engine, const weir_engine_copies *copies, uint32_t *restoredp,
                             uint32_t *leftp);

/* What can still be read of a damaged engine, where a cursor cannot: of each sorted file alone, block by block, all
 * records in [from, to) of each range; but none of a file that has not come in. Files come in any order, and a record
 * more than once. visit's error ends it and is returned. No file is removed meanwhile.  WEIR_EIO, WEIR_ENOMEM.
 * Blocks.  [any] */
typedef struct weir_engine_range {
    const void *from, *to;
    size_t from_length, to_length;
} weir_engine_range;
typedef weir_err (*weir_engine_visit)(void *context, const void *key, size_t key_length, const void *value,
                                      size_t value_length);
weir_err weir_engine_salvage(weir_engine *engine, const weir_engine_range *ranges, size_t count,
                             weir_engine_visit visit, void *context);

/* A sorted file in the engine's folder; several may be written at once, each by one thread. Keys have 1 to 64 bytes (an
 * assertion) and must rise strictly, or weir_engine_writer_add returns WEIR_EORDER.  WEIR_EPERM the engine is open for
 * reading only; WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM; while RocksDB is closed, as above.  [any] */
weir_err weir_engine_writer_open(weir_engine *engine, weir_engine_writer **writerp);
/* The same for a large file: index and filter are in parts, as those of what merges make.  [any] */
weir_err weir_engine_writer_open_large(weir_engine *engine, weir_engine_writer **writerp);
weir_err weir_engine_writer_add(weir_engine_writer *writer, const void *key, size_t key_length, const void *value,
                                size_t value_length);
uint64_t weir_engine_writer_bytes(const weir_engine_writer *writer);
/* Makes the file complete and durable; it must still be ingested, or cancelled. Without a record it does nothing.
 * WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM.  Blocks on the disk. */
weir_err weir_engine_writer_finish(weir_engine_writer *writer);
/* Finishes it, if that has not been done, and ingests it: ENGINE-N1, ENGINE-N2. The writer is closed either way. After
 * an error nothing of it is seen; but where damage was in the way, all of it may be once another file has come in or
 * RocksDB was opened again.  WEIR_EFULL, WEIR_EIO, WEIR_ECORRUPT, WEIR_ENOMEM.  Blocks on the disk. */
weir_err weir_engine_writer_ingest(weir_engine_writer *writer);
/* Throws the file away; NULL is allowed. */
void weir_engine_writer_cancel(weir_engine_writer *writer);

/* A consistent copy into a folder that must not exist. links: sorted files are second names of the engine's own, where
 * the file system is the same; *sharedp counts them.  What was begun is left there.  WEIR_EEXIST; WEIR_ELIMIT
 * the path is too long; WEIR_ENOMEM; errors of files.  Blocks on the disk.  [any] */
weir_err weir_engine_checkpoint(weir_engine *engine, const char *folder, bool links, uint64_t *sharedp);
/* Compacts everything now; for tools and benches.  WEIR_EPERM read-only; what a write may fail with.  Blocks.  [any] */
weir_err weir_engine_compact(weir_engine *engine);
/* All 0 while RocksDB is closed.  [any] */
void weir_engine_stats_get(weir_engine *engine, weir_engine_stats *statsp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ENGINE_ENGINE_H */
