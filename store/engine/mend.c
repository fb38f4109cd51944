/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mend.c - what an engine does about RocksDB's lasting errors, so that the process need not be restarted for them.
 *
 *   full disk, input or output   RocksDB stops writing; Resume, once there is room
 *   a damaged file               meets the compaction that reads it: RocksDB stops for good, and only a new opening
 *                                ends that. While the file stays damaged, the store is opened without compaction, so
 *                                that seals go on and all else can be read; once it reads well again, with.
 *   any other                    opened again
 *
 * THE DOOR. A database is closed before it is opened again, because it locks its folder, so readers must be out. A
 * caller that comes while it is exchanged waits; one that stays in it for long (a scan over everything) puts that off:
 * the door is closed for DOOR_US at most, and the next try comes with the next call. Before it is closed, a read-only
 * opening beside it shows that it will open again: a store that can still be read must not be lost to that.
 */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>

#include "engine_private.h"

#define DOOR_US      WEIR_US_PER_S
#define LOOK_LONG_US WEIR_US_PER_S /* a look at damaged files that takes longer comes no oftener than ... */
#define LOOK_SHARE   4             /* ... for this part of the time: a repair needs the disk meanwhile */

/* --- the door --------------------------------------------------------------------------------------------------- */

bool weir_engine_enter(weir_engine *engine, weir_err *errp) {
    for (;;) {
        atomic_fetch_add(&engine->inside, 1);
        if (__builtin_expect(!atomic_load(&engine->closing), 1)) break;
        weir_engine_leave(engine);
        weir_mutex_lock(&engine->mutex);
        while (atomic_load(&engine->closing))
            weir_cond_wait(&engine->left, &engine->mutex);
        weir_mutex_unlock(&engine->mutex);
    }
    if (engine->db) return true;
    weir_engine_leave(engine);
    *errp = weir_engine_health(engine);
    if (!*errp) *errp = WEIR_ERR(WEIR_EUNAVAILABLE, "%s is being opened again; try again", engine->folder);
    return false;
}

void weir_engine_leave(weir_engine *engine) {
    unsigned inside = atomic_fetch_sub(&engine->inside, 1);
    WEIR_ASSERT(inside > 0);
    if (inside != 1 || !atomic_load(&engine->closing)) return;
    weir_mutex_lock(&engine->mutex);
    weir_cond_broadcast(&engine->left);
    weir_mutex_unlock(&engine->mutex);
}

static void mend_open_door(weir_engine *engine) {
    weir_mutex_lock(&engine->mutex);
    WEIR_ASSERT(atomic_load(&engine->closing));
    atomic_store(&engine->closing, false);
    weir_cond_broadcast(&engine->left);
    weir_mutex_unlock(&engine->mutex);
}

/* false: a call or a cursor stays inside; the door is open again. */
static bool mend_close_door(weir_engine *engine) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + DOOR_US;
    bool in_time = true;
    weir_mutex_lock(&engine->mutex);
    WEIR_ASSERT(!atomic_load(&engine->closing)); /* one thread mends or replaces */
    atomic_store(&engine->closing, true);
    while (in_time && atomic_load(&engine->inside) > 0)
        in_time = weir_cond_wait_until(&engine->left, &engine->mutex, until_us);
    bool empty = atomic_load(&engine->inside) == 0;
    weir_mutex_unlock(&engine->mutex);
    if (!empty) mend_open_door(engine);
    return empty;
}

/* --- how it is -------------------------------------------------------------------------------------------------- */

weir_err weir_engine_health(weir_engine *engine) {
    weir_mutex_lock(&engine->mutex);
    weir_err err = weir_err_kept_get(&engine->trouble);
    weir_mutex_unlock(&engine->mutex);
    if (weir_rocks_torn())
        return WEIR_ERR(WEIR_ENOMEM,
                        "%s ran out of memory in the middle of a call and takes no more writes; restart the process",
                        engine->folder);
    if (!err && weir_rocks_waits())
        err =
            WEIR_ERR(WEIR_ENOMEM, "%s waits for memory; give the process more, or lower store.memory", engine->folder);
    return err;
}

void weir_engine_stopped(weir_engine *engine, weir_err err) {
    WEIR_ASSERT(err);
    weir_mutex_lock(&engine->mutex);
    bool news = !engine->stopped;
    engine->stopped = true;
    if (!engine->trouble.err) weir_err_kept_set(&engine->trouble, err);
    weir_mutex_unlock(&engine->mutex);
    if (news) weir_log_error("engine.stopped", err);
}

typedef struct mend_state {
    bool stopped, damaged, restored;
    char file[WEIR_ENGINE_PATH_MAX];
} mend_state;

static void mend_well_again(weir_engine *engine, bool damaged) {
    weir_mutex_lock(&engine->mutex);
    engine->stopped = false;
    engine->damaged = damaged;
    engine->restored = false;
    if (!damaged) {
        engine->file[0] = 0;
        weir_err_kept_set(&engine->trouble, WEIR_OK);
    }
    weir_mutex_unlock(&engine->mutex);
    if (!damaged && engine->db)
        WEIR_LOG(INFO, "engine.well", "the store reads and writes again", WEIR_TEXT("folder", engine->folder));
}

/* --- mending ---------------------------------------------------------------------------------------------------- */

/* Whether the damage is still there. A sorted file that is gone can do no harm: what it held was compacted meanwhile.
 * When RocksDB has not named one, all are read, and what names them. */
static bool mend_still_damaged(weir_engine *engine, const mend_state *now) {
    char file[WEIR_ENGINE_PATH_MAX];
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    int64_t begun_us = weir_clock_mono_us(weir_clock_system());
    bool any = !now->file[0], sorted = strstr(now->file, ".sst") != NULL, whole = true, damaged = false;
    if (begun_us < engine->look_at_us) return true;
    if (sorted && !weir_path_exists(now->file)) return false;
    if (!weir_engine_enter(engine, &err)) return true;
    if (any || sorted) whole = weir_rocks_check_file(engine->db, any ? NULL : now->file, &status);
    weir_engine_leave(engine);
    if (whole && !sorted) err = weir_engine_check_names(engine, file, &damaged);
    int64_t now_us = weir_clock_mono_us(weir_clock_system()), took_us = now_us - begun_us;
    engine->look_at_us = took_us > LOOK_LONG_US ? now_us + took_us * (LOOK_SHARE - 1) : 0;
    return !whole || err || damaged;
}

/* weir_rocks_close does not really close what a read was thrown out of: the folder would stay locked, and what can
 * still be read and written would be lost. */
static weir_err mend_may_close(const weir_engine *engine) {
    if (!engine->db || !weir_rocks_held(engine->db)) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOMEM, "%s cannot be opened again after it ran out of memory; restart the process",
                    engine->folder);
}

/* On success the door is shut and RocksDB closed. what: what is about to be done to the engine, for the sentence. */
static weir_err mend_take_out(weir_engine *engine, const char *what) {
    if (!mend_close_door(engine))
        return WEIR_ERR(WEIR_EBUSY, "%s cannot be %s while it is read; it is tried again", engine->folder, what);
    weir_err err = mend_may_close(engine); /* a call that was inside meanwhile may have been thrown out */
    if (err) {
        mend_open_door(engine);
        return err;
    }
    weir_rocks_close(engine->db);
    engine->db = NULL;
    return WEIR_OK;
}

weir_err weir_engine_mend(weir_engine *engine) {
    mend_state now;
    weir_mutex_lock(&engine->mutex);
    now.stopped = engine->stopped;
    now.damaged = engine->damaged;
    now.restored = engine->restored;
    memcpy(now.file, engine->file, sizeof now.file);
    weir_mutex_unlock(&engine->mutex);
    if (weir_rocks_torn()) return weir_engine_health(engine);
    if (!now.stopped && !now.damaged) return WEIR_OK;
    if (engine->opts.read_only) return weir_engine_health(engine);
    bool bad = now.damaged && !now.restored && mend_still_damaged(engine, &now);
    weir_err err = WEIR_OK;
    if (!now.damaged && engine->db && weir_engine_enter(engine, &err)) {
        /* When RocksDB goes on by itself, it need not be opened again. */
        weir_rocks_status status;
        bool resumed = weir_rocks_resume(engine->db, &status);
        weir_engine_leave(engine);
        if (resumed) {
            mend_well_again(engine, false);
            return WEIR_OK;
        }
    }
    if (bad && !now.stopped) return weir_engine_health(engine);
    /* Closed and opened again. If that fails it stays closed: reads say why, and the next call tries again. */
    err = mend_may_close(engine);
    if (!err && engine->db) err = weir_engine_try(engine->folder);
    if (!err) err = mend_take_out(engine, "opened again");
    if (err) return err;
    err = weir_engine_rocks_open(engine, !bad, &engine->db);
    mend_open_door(engine);
    /* Damage that has passed is over even if the opening fails: else it would be looked for in an engine that is not
     * open, for ever, and a whole shard be repaired. */
    if (!err || (now.damaged && !bad)) mend_well_again(engine, bad);
    if (err) weir_engine_stopped(engine, err);
    if (!err && bad) err = weir_engine_health(engine);
    return err;
}

/* --- another in its place --------------------------------------------------------------------------------------- */

static bool mend_is_damaged(weir_engine *engine) {
    weir_mutex_lock(&engine->mutex);
    bool damaged = engine->damaged;
    weir_mutex_unlock(&engine->mutex);
    return damaged;
}

/* The folders are exchanged in one step, so whatever happens there is one with this name that is whole. What would not
 * open is found out before the other is closed: that one may be open only because it was opened before it was damaged.
 * The other one compacts again unless it is damaged: as long as it is well nobody opens it a second time. Success is
 * that the other has the name, be it that it does not open just now and cannot give the name back: the folder decides
 * what weir_engine_mend opens. */
weir_err weir_engine_replace(weir_engine *engine, const char *folder) {
    if (weir_rocks_torn()) return weir_engine_health(engine);
    weir_err closed = WEIR_OK, err = mend_may_close(engine);
    if (!err) err = weir_engine_try(folder);
    if (!err) err = mend_take_out(engine, "replaced");
    if (err) return err;
    err = weir_folder_swap(engine->folder, folder);
    weir_kill_point("engine.replaced");
    if (!err) {
        closed = weir_engine_rocks_open(engine, true, &engine->db);
        if (closed && !weir_folder_swap(engine->folder, folder)) err = closed;
    }
    if (err) closed = weir_engine_rocks_open(engine, !mend_is_damaged(engine), &engine->db);
    mend_open_door(engine);
    if (!err) mend_well_again(engine, false);
    if (closed) weir_engine_stopped(engine, closed); /* weir_engine_mend opens it */
    return err;
}
