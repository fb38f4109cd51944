/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.c - damaged sorted files are taken out of copies of the engine again.
 *
 * A sorted file never changes, and large ones live long, so an older checkpoint mostly has it. Whether what it has is
 * that very file tells the checksum that RocksDB keeps of each: a name comes again when an engine was made anew. It is
 * asked twice, of the copy where it lies, and of what was made of it.
 */
#include <stdio.h>
#include <string.h>

#include <weir/base/fault.h>
#include <weir/base/file.h>
#include <weir/base/log.h>

#include "engine_private.h"

typedef struct restore {
    weir_engine *engine;
    const weir_engine_copies *copies;
    uint32_t restored, left;
} restore;

static weir_err restore_path(const char *folder, const char *name, char path[WEIR_ENGINE_PATH_MAX]) {
    int length = snprintf(path, WEIR_ENGINE_PATH_MAX, "%s/%s", folder, name);
    if (length > 0 && length < (int)WEIR_ENGINE_PATH_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
}

static bool restore_is_whole(weir_engine *engine, const char *name, const char *path) {
    weir_rocks_status status;
    weir_err none = WEIR_OK;
    if (!weir_path_exists(path) || !weir_engine_enter(engine, &none)) return false;
    bool whole = weir_rocks_check_copy(engine->db, name, path, &status);
    weir_engine_leave(engine);
    return whole;
}

/* Whoever has the damaged file open keeps it until the engine is opened again. */
static weir_err restore_from(restore *r, const char *folder, const char *name, bool *donep) {
    char from[WEIR_ENGINE_PATH_MAX], aside[WEIR_ENGINE_PATH_MAX], to[WEIR_ENGINE_PATH_MAX];
    weir_err err = restore_path(folder, name, from);
    if (!err) err = restore_path(r->copies->aside, name, aside);
    if (!err) err = weir_engine_path(r->engine, name, to);
    if (err || !restore_is_whole(r->engine, name, from)) return err;
    if (weir_path_exists(aside)) err = weir_file_remove(aside); /* of a copy that was not whole */
    if (!err) err = weir_file_copy(from, aside, UINT64_MAX);
    if (err || !restore_is_whole(r->engine, name, aside)) return err;
    err = weir_file_rename(aside, to);
    weir_kill_point("engine.restored");
    if (err) return err;
    *donep = true;
    WEIR_LOG(INFO, "engine.restored", "a damaged file was taken out of a checkpoint", WEIR_TEXT("file", to),
             WEIR_TEXT("from", from));
    return WEIR_OK;
}

static weir_err restore_one(void *context, const char *name) {
    restore *r = context;
    const weir_engine_copies *copies = r->copies;
    uint64_t bytes;
    bool done = false;
    if (!copies->go_on(copies->context)) return WEIR_ERR(WEIR_ECLOSED, "the repair is stopped");
    weir_err err = weir_engine_check_sorted(r->engine, name, &bytes);
    if (!weir_err_is(err, WEIR_ECORRUPT)) return err;
    err = WEIR_OK;
    for (size_t i = 0; !err && !done && i < copies->count; i++)
        err = restore_from(r, copies->folders[i], name, &done);
    r->restored += done;
    r->left += !done;
    return err;
}

weir_err weir_engine_restore(weir_engine *engine, const weir_engine_copies *copies, uint32_t *restoredp,
                             uint32_t *leftp) {
    char file[WEIR_ENGINE_PATH_MAX];
    restore r = {.engine = engine, .copies = copies};
    bool damaged = false;
    weir_err err = weir_engine_walk_sorted(engine, restore_one, &r);
    if (!err) err = weir_engine_check_names(engine, file, &damaged);
    *restoredp = r.restored;
    *leftp = r.left + damaged;
    weir_mutex_lock(&engine->mutex);
    engine->restored = !err && *leftp == 0;
    weir_mutex_unlock(&engine->mutex);
    return err;
}
