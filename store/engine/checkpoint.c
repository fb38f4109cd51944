/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - the files of an engine in another folder, as they are at one moment, while it goes on.
 *
 *   *.sst      never change: a link, or a copy
 *   MANIFEST   grows: its first bytes, as many as RocksDB says, name all that is there
 *   CURRENT    the manifest's name; written last, because RocksDB may have begun another one meanwhile
 *
 * There is no write-ahead log to be kept: all comes in by whole files. RocksDB's own checkpoints ask for it all the
 * same, and wait for a thread that is just deleting files; where a reader that ends finds none to delete, they are not
 * woken, and wait for ever (mended in RocksDB long after 7.8).
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/file.h>

#include "engine_private.h"

typedef struct engine_checkpoint_walk {
    const char *from, *to;
    uint64_t shared;   /* files that are links              */
    char manifest[64]; /* its name, as CURRENT will have it */
    weir_err err;
} engine_checkpoint_walk;

/* A link takes no time; where the file system has none, the file is copied here. */
static bool engine_checkpoint_take(void *context, const char *name, uint64_t length) {
    engine_checkpoint_walk *s = context;
    char from[WEIR_ENGINE_PATH_MAX], to[WEIR_ENGINE_PATH_MAX];
    bool linked = weir_engine_is_sorted(name);
    if (strcmp(name, "CURRENT") == 0) return true;
    if (strncmp(name, "MANIFEST-", 9) == 0) snprintf(s->manifest, sizeof s->manifest, "%s\n", name);
    s->err = weir_engine_path(s->from, name, from);
    if (!s->err) s->err = weir_engine_path(s->to, name, to);
    if (!s->err && linked) s->err = weir_file_link(from, to);
    if (weir_err_is(s->err, WEIR_EUNAVAILABLE)) { /* another disk */
        linked = false;
        s->err = WEIR_OK;
    }
    if (!s->err && !linked) s->err = weir_file_copy(from, to, length);
    s->shared += linked && !s->err;
    return !s->err;
}

/* A file of its own in the place of a link. */
static weir_err engine_checkpoint_own_file(void *context, const char *name) {
    const engine_checkpoint_walk *s = context;
    char path[WEIR_ENGINE_PATH_MAX], copy[WEIR_ENGINE_PATH_MAX + 8];
    if (!weir_engine_is_sorted(name)) return WEIR_OK;
    weir_err err = weir_engine_path(s->to, name, path);
    if (err) return err;
    snprintf(copy, sizeof copy, "%s.copy", path);
    err = weir_file_copy(path, copy, UINT64_MAX);
    return err ? err : weir_file_rename(copy, path);
}

/* Links become copies only when the engine is left: opening it again must not wait for the copy of a whole store. */
weir_err weir_engine_checkpoint(weir_engine *engine, const char *folder, bool links, uint64_t *sharedp) {
    char current[WEIR_ENGINE_PATH_MAX];
    weir_rocks_status status;
    engine_checkpoint_walk s = {.from = engine->folder, .to = folder};
    weir_err err = weir_engine_path(folder, "CURRENT", current);
    *sharedp = 0;
    if (!err && weir_path_exists(folder)) err = WEIR_ERR(WEIR_EEXIST, "%s is there already; name a new folder", folder);
    if (!err) err = weir_folder_create(folder);
    if (err || !weir_engine_enter(engine, &err)) return err;
    if (!weir_rocks_live_files(engine->db, engine_checkpoint_take, &s, &status))
        err = weir_engine_error(engine, "make a checkpoint of", &status);
    weir_engine_leave(engine);
    weir_err_keep(&err, s.err);
    if (!err && !s.manifest[0]) err = WEIR_ERR(WEIR_EIO, "%s has no manifest; look at the disk", engine->folder);
    if (!err && !links && s.shared) {
        err = weir_folder_list(folder, engine_checkpoint_own_file, &s);
        s.shared = 0;
    }
    if (!err) err = weir_file_replace(current, s.manifest, strlen(s.manifest)); /* syncs the folder, too */
    *sharedp = s.shared;
    return err;
}
