/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - RocksDB behind our error type; opening, reading and keeping.
 *
 * Debian's RocksDB is built with its assertions on: a slip in its API is an abort, not an error. So handles are
 * private, and the order of closing is fixed here once: cursors before the engine, the engine before the cache that it
 * shares. What RocksDB says passes rocks.cc, which lets no exception through.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>

#include "engine_private.h"

struct weir_engine_cursor {
    weir_rocks_cursor *cursor;
    weir_engine *engine;
};

/* --- errors ----------------------------------------------------------------------------------------------------- */

static weir_err engine_error_of(const char *folder, const char *what, const weir_rocks_status *status) {
    static const struct {
        weir_code code;
        const char *advice;
    } of_kind[] = {
        [WEIR_ROCKS_CORRUPT] = {WEIR_ECORRUPT,
                                "bring the file back from a copy, restore a checkpoint, or empty the folder except for "
                                "its file 'identity', and it is filled again from the log"},
        [WEIR_ROCKS_FULL] = {WEIR_EFULL, "free some space and try again"},
        [WEIR_ROCKS_LOCKED] = {WEIR_EBUSY, "stop the other process first"},
        [WEIR_ROCKS_MISSING] = {WEIR_ENOTFOUND, "check the path"},
        [WEIR_ROCKS_MEMORY] = {WEIR_ENOMEM, "give the process more memory, or lower store.memory"},
        [WEIR_ROCKS_FAILED] = {WEIR_EIO, "look at the disk"},
    };
    if (status->kind == WEIR_ROCKS_OK) return WEIR_OK;
    WEIR_ASSERT((size_t)status->kind < sizeof of_kind / sizeof of_kind[0]);
    return WEIR_ERR(of_kind[status->kind].code, "cannot %s %s: %.300s; %s", what, folder, status->text,
                    of_kind[status->kind].advice);
}

/* Kept until weir_engine_mend finds that it is over. Of several, the first is kept: the others mostly follow from
 * it. */
static void engine_remember_damage(weir_engine *engine, weir_err err, const char *file) {
    weir_mutex_lock(&engine->mutex);
    bool news = !engine->damaged || engine->restored;
    engine->damaged = true;
    engine->restored = false;
    if (news) {
        weir_err_kept_set(&engine->trouble, err);
        snprintf(engine->file, sizeof engine->file, "%s", file);
    }
    weir_mutex_unlock(&engine->mutex);
    if (news) weir_log_error("engine.damaged", err);
}

weir_err weir_engine_error(weir_engine *engine, const char *what, const weir_rocks_status *status) {
    char file[WEIR_ENGINE_PATH_MAX] = "";
    weir_err err = engine_error_of(engine->folder, what, status);
    if (status->kind != WEIR_ROCKS_CORRUPT) return err;
    /* "… in /data/shard-000/000012.sst offset 7 …": the name of the file, out of the words. */
    const char *end = strstr(status->text, ".sst"), *begin = end;
    while (begin && begin > status->text && begin[-1] >= '0' && begin[-1] <= '9')
        begin--;
    if (begin < end &&
        snprintf(file, sizeof file, "%s/%.*s.sst", engine->folder, (int)(end - begin), begin) >= (int)sizeof file)
        file[0] = 0;
    engine_remember_damage(engine, err, file);
    return err;
}

weir_err weir_engine_file_error(weir_engine *engine, const char *file, const weir_rocks_status *status) {
    weir_err err = engine_error_of(file, "read", status);
    if (status->kind == WEIR_ROCKS_CORRUPT) engine_remember_damage(engine, err, file);
    return err;
}

/* Called by a thread of RocksDB, as soon as it fails: no question has to come first. */
static void engine_background_failed(void *context, const weir_rocks_status *status) {
    weir_engine_stopped(context, weir_engine_error(context, "keep the files of", status));
}

/* --- the block cache -------------------------------------------------------------------------------------------- */

weir_err weir_engine_cache_open(uint64_t bytes, weir_engine_cache **cachep) {
    weir_rocks_status status;
    *cachep = NULL;
    weir_engine_cache *cache = weir_calloc(1, sizeof *cache);
    if (!cache) return WEIR_NOMEM("for a block cache");
    if (!weir_rocks_cache_open(bytes, &cache->cache, &status)) {
        weir_free(cache);
        return engine_error_of("the store", "open the block cache of", &status);
    }
    *cachep = cache;
    return WEIR_OK;
}

void weir_engine_cache_close(weir_engine_cache *cache) {
    if (!cache) return;
    weir_rocks_cache_close(cache->cache);
    weir_free(cache);
}

/* --- opening and closing ---------------------------------------------------------------------------------------- */

weir_err weir_engine_rocks_open(weir_engine *engine, bool compacts, weir_rocks **dbp) {
    const weir_engine_opts *opts = &engine->opts;
    const weir_rocks_opts rocks = {
        .cache = opts->cache ? opts->cache->cache : NULL,
        .create = opts->create,
        .read_only = opts->read_only,
        .compacts = compacts && !opts->bulk,
        .last_rank = opts->last_rank,
        .joining = opts->joining,
        .alarm = engine_background_failed,
        .context = engine,
    };
    weir_rocks_status status;
    if (weir_rocks_open(engine->folder, &rocks, dbp, &status)) return WEIR_OK;
    return engine_error_of(engine->folder, "open the store", &status);
}

weir_err weir_engine_try(const char *folder) {
    const weir_rocks_opts rocks = {.read_only = true};
    weir_rocks_status status;
    weir_rocks *db;
    if (!weir_rocks_open(folder, &rocks, &db, &status)) return engine_error_of(folder, "open the store", &status);
    weir_rocks_close(db);
    return WEIR_OK;
}

weir_err weir_engine_open(const char *folder, const weir_engine_opts *opts, weir_engine **enginep) {
    *enginep = NULL;
    weir_engine *engine = weir_calloc(1, sizeof *engine);
    if (!engine) return WEIR_NOMEM("while opening %s", folder);
    weir_err err = WEIR_OK;
    engine->opts = *opts;
    weir_mutex_init(&engine->mutex, WEIR_RANK_LEAF, "engine");
    weir_cond_init(&engine->left);
    engine->folder = weir_strdup(folder);
    if (!engine->folder) err = WEIR_NOMEM("while opening %s", folder);
    if (!err && opts->create) err = weir_folder_create(folder);
    if (!err) err = weir_engine_rocks_open(engine, true, &engine->db);
    if (err) {
        weir_engine_close(engine);
        return err;
    }
    engine->opts.create = false; /* when it is opened again, it must be there */
    *enginep = engine;
    return WEIR_OK;
}

void weir_engine_close(weir_engine *engine) {
    if (!engine) return;
    WEIR_ASSERT(atomic_load(&engine->inside) == 0);         /* cursors and writers are closed before it */
    bool stays = engine->db && weir_rocks_held(engine->db); /* and its threads may call engine_background_failed */
    weir_rocks_close(engine->db);
    if (stays) return;
    weir_cond_destroy(&engine->left);
    weir_mutex_destroy(&engine->mutex);
    weir_free(engine->folder);
    weir_free(engine);
}

/* --- reading --------------------------------------------------------------------------------------------------- */

/* The caller is inside already; the cursor stays there until it is closed, as what it reads must not be replaced. With
 * a prefix it goes file by file. */
static weir_err engine_cursor_open_inside(weir_engine *engine, weir_engine_use use, const void *prefix,
                                          uint64_t from_rank, weir_engine_cursor **cursorp) {
    weir_rocks_status status;
    weir_engine_cursor *cursor = weir_calloc(1, sizeof *cursor);
    if (!cursor) {
        weir_engine_leave(engine);
        return WEIR_NOMEM("for a cursor");
    }
    cursor->engine = engine;
    /* Blocks are checked as they are read: ENGINE-N3 */
    bool opened = prefix ? weir_rocks_cursor_open_files(engine->db, prefix, from_rank, &cursor->cursor, &status)
                         : weir_rocks_cursor_open(engine->db, use != WEIR_ENGINE_POINT, use != WEIR_ENGINE_SCAN,
                                                  &cursor->cursor, &status);
    if (!opened) {
        weir_err err = weir_engine_error(engine, "read from", &status);
        weir_engine_cursor_close(cursor);
        return err;
    }
    *cursorp = cursor;
    return WEIR_OK;
}

weir_err weir_engine_cursor_open(weir_engine *engine, weir_engine_use use, weir_engine_cursor **cursorp) {
    weir_err err = WEIR_OK;
    *cursorp = NULL;
    return weir_engine_enter(engine, &err) ? engine_cursor_open_inside(engine, use, NULL, 0, cursorp) : err;
}

weir_err weir_engine_cursor_open_files(weir_engine *engine, const void *prefix, uint64_t from_rank,
                                       weir_engine_cursor **cursorp) {
    weir_err err = WEIR_OK;
    *cursorp = NULL;
    return weir_engine_enter(engine, &err)
               ? engine_cursor_open_inside(engine, WEIR_ENGINE_POINT, prefix, from_rank, cursorp)
               : err;
}

bool weir_engine_cursor_next_file(weir_engine_cursor *cursor, uint64_t *rankp) {
    return weir_rocks_cursor_next_file(cursor->cursor, rankp);
}

weir_err weir_engine_cursor_open_beside(const weir_engine_cursor *held, weir_engine_cursor **cursorp) {
    *cursorp = NULL;
    unsigned inside = atomic_fetch_add(&held->engine->inside, 1);
    WEIR_ASSERT(inside > 0 && held->engine->db); /* the held one keeps the engine as it is */
    return engine_cursor_open_inside(held->engine, WEIR_ENGINE_POINT, NULL, 0, cursorp);
}

void weir_engine_cursor_seek(weir_engine_cursor *cursor, const void *key, size_t length) {
    weir_rocks_cursor_seek(cursor->cursor, key, length);
}

void weir_engine_cursor_seek_last(weir_engine_cursor *cursor, const void *key, size_t length) {
    weir_rocks_cursor_seek_last(cursor->cursor, key, length);
}

void weir_engine_cursor_previous(weir_engine_cursor *cursor) {
    weir_rocks_cursor_previous(cursor->cursor);
}

bool weir_engine_cursor_valid(const weir_engine_cursor *cursor) {
    return weir_rocks_cursor_valid(cursor->cursor);
}

const void *weir_engine_cursor_key(const weir_engine_cursor *cursor, size_t *lengthp) {
    return weir_rocks_cursor_key(cursor->cursor, lengthp);
}

const void *weir_engine_cursor_value(const weir_engine_cursor *cursor, size_t *lengthp) {
    return weir_rocks_cursor_value(cursor->cursor, lengthp);
}

void weir_engine_cursor_next(weir_engine_cursor *cursor) {
    weir_rocks_cursor_next(cursor->cursor);
}

weir_err weir_engine_cursor_err(const weir_engine_cursor *cursor) {
    weir_rocks_status status;
    if (weir_rocks_cursor_status(cursor->cursor, &status)) return WEIR_OK;
    return weir_engine_error(cursor->engine, "read from", &status);
}

void weir_engine_cursor_close(weir_engine_cursor *cursor) {
    if (!cursor) return;
    if (cursor->cursor) weir_rocks_cursor_close(cursor->cursor);
    weir_engine_leave(cursor->engine);
    weir_free(cursor);
}

/* --- keeping --------------------------------------------------------------------------------------------------- */

typedef struct engine_salvage_walk {
    weir_engine_visit visit;
    void *context;
    weir_err err;
} engine_salvage_walk;

static bool engine_salvage_take(void *context, const void *key, size_t key_length, const void *value,
                                size_t value_length) {
    engine_salvage_walk *walk = context;
    walk->err = walk->visit(walk->context, key, key_length, value, value_length);
    return !walk->err;
}

weir_err weir_engine_salvage(weir_engine *engine, const weir_engine_range *ranges, size_t count,
                             weir_engine_visit visit, void *context) {
    engine_salvage_walk walk = {.visit = visit, .context = context};
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    if (!weir_engine_enter(engine, &err)) return err;
    if (!weir_rocks_salvage(engine->db, ranges, count, engine_salvage_take, &walk, &status))
        err = weir_engine_error(engine, "read the files of", &status);
    weir_engine_leave(engine);
    return walk.err ? walk.err : err;
}

weir_err weir_engine_compact(weir_engine *engine) {
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    if (engine->opts.read_only) return WEIR_ERR(WEIR_EPERM, "%s is open for reading only", engine->folder);
    if (!weir_engine_enter(engine, &err)) return err;
    if (!weir_rocks_compact(engine->db, &status)) err = weir_engine_error(engine, "compact", &status);
    weir_engine_leave(engine);
    return err;
}

void weir_engine_stats_get(weir_engine *engine, weir_engine_stats *statsp) {
    weir_rocks_numbers numbers = {0};
    weir_err err = WEIR_OK;
    if (weir_engine_enter(engine, &err)) {
        weir_rocks_numbers_get(engine->db, &numbers);
        weir_engine_leave(engine);
    }
    *statsp = (weir_engine_stats){
        .live_bytes = numbers.live_bytes,
        .live_files = numbers.live_files,
        .keys_estimate = numbers.keys_estimate,
        .level0_files = numbers.level0_files,
        .compaction_bytes = numbers.compaction_bytes,
        .jobs = numbers.jobs,
        .taken_bytes = numbers.taken_bytes,
        .compacted_bytes = numbers.compacted_bytes,
        .compaction_cpu_us = numbers.compaction_cpu_us,
        .merges = numbers.merges,
    };
}
