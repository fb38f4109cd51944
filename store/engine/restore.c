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

#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>

#include "engine_private.h"

typedef struct engine_restore {
    weir_engine *engine;
    const weir_engine_copies *copies;
    uint32_t restored, left;
} engine_restore;

/* A file that cannot be read is not a copy; having no memory, or no engine just now, says nothing about the file. */
static weir_err engine_restore_look(weir_engine *engine, const char *name, const char *path, bool *wholep) {
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    *wholep = false;
    if (!weir_path_exists(path) || !weir_engine_enter(engine, &err)) return err;
    *wholep = weir_rocks_check_copy(engine->db, name, path, &status);
    weir_engine_leave(engine);
    return !*wholep && status.kind == WEIR_ROCKS_MEMORY ? weir_engine_file_error(engine, path, &status) : WEIR_OK;
}

/* A reader that has the damaged file open keeps it until the engine is opened again. */
static weir_err engine_restore_from(engine_restore *r, const char *folder, const char *name, bool *donep) {
    char from[WEIR_ENGINE_PATH_MAX], aside[WEIR_ENGINE_PATH_MAX], to[WEIR_ENGINE_PATH_MAX];
    bool whole = false;
    weir_err err = weir_engine_path(folder, name, from);
    if (!err) err = weir_engine_path(r->copies->aside, name, aside);
    if (!err) err = weir_engine_path(r->engine->folder, name, to);
    if (!err) err = engine_restore_look(r->engine, name, from, &whole);
    if (err || !whole) return err;
    if (weir_path_exists(aside)) err = weir_file_remove(aside); /* of a copy that was not whole */
    if (!err) err = weir_file_copy(from, aside, UINT64_MAX);
    if (!err) err = engine_restore_look(r->engine, name, aside, &whole);
    if (err || !whole) return err;
    weir_kill_point("engine.restoring");
    err = weir_file_rename(aside, to);
    weir_kill_point("engine.restored");
    if (err) return err;
    *donep = true;
    WEIR_LOG(INFO, "engine.restored", "a damaged file was taken out of a checkpoint", WEIR_TEXT("file", to),
             WEIR_TEXT("from", from));
    return WEIR_OK;
}

/* A full disk or no memory ends it: another copy would meet that, too. Any other failure is that of one copy, which may
 * just be being removed. */
static weir_err engine_restore_out_of_any(engine_restore *r, const char *name, bool *donep) {
    const weir_engine_copies *copies = r->copies;
    for (size_t i = 0; i < copies->count && !*donep; i++) {
        if (!copies->go_on(copies->context)) return WEIR_ERR(WEIR_ECLOSED, "the repair is stopped");
        weir_err err = engine_restore_from(r, copies->folders[i], name, donep);
        if (weir_err_is(err, WEIR_EFULL) || weir_err_is(err, WEIR_ENOMEM)) return err;
        if (err) weir_log_error("engine.not_restored", err);
    }
    return WEIR_OK;
}

static weir_err engine_restore_one(void *context, const char *name) {
    engine_restore *r = context;
    uint64_t bytes;
    bool done = false;
    if (!r->copies->go_on(r->copies->context)) return WEIR_ERR(WEIR_ECLOSED, "the repair is stopped");
    weir_err err = weir_engine_check_sorted(r->engine, name, &bytes);
    if (!weir_err_is(err, WEIR_ECORRUPT) && !weir_err_is(err, WEIR_EIO)) return err;
    err = engine_restore_out_of_any(r, name, &done);
    r->restored += done;
    r->left += !done;
    return err;
}

weir_err weir_engine_restore(weir_engine *engine, const weir_engine_copies *copies, uint32_t *restoredp,
                             uint32_t *leftp) {
    char file[WEIR_ENGINE_PATH_MAX];
    engine_restore r = {.engine = engine, .copies = copies};
    bool damaged = false;
    WEIR_ASSERT(copies->go_on && copies->aside);
    weir_err err = weir_engine_walk_sorted(engine, engine_restore_one, &r);
    if (!err) err = weir_engine_check_names(engine, file, &damaged);
    *restoredp = r.restored;
    *leftp = r.left + damaged;
    if (err || *leftp > 0 || r.restored == 0) return err;
    /* Even if it was opened again meanwhile, because one file was whole: another was then opened while damaged. */
    weir_mutex_lock(&engine->mutex);
    weir_err_kept_set(&engine->trouble,
                      WEIR_ERR(WEIR_ECORRUPT,
                               "files of %s came back out of a checkpoint; it is opened again as soon as no long read "
                               "is in it",
                               engine->folder));
    engine->damaged = engine->restored = true;
    weir_mutex_unlock(&engine->mutex);
    return WEIR_OK;
}
