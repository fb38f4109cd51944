/* SPDX-License-Identifier: Apache-2.0 */
/* engine_private.h - what the C files of the engine share. */
#ifndef WEIR_STORE_ENGINE_PRIVATE_H
#define WEIR_STORE_ENGINE_PRIVATE_H

#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/thread.h>
#include <weir/store/engine/engine.h>

#include "rocks.h"

#define WEIR_ENGINE_PATH_MAX 4096u

struct weir_engine_cache {
    weir_rocks_cache *cache;
};

struct weir_engine {
    weir_rocks *db; /* replaced by mend.c only, while no call is inside; NULL: closed */
    weir_engine_opts opts;
    char *folder;
    atomic_uint_fast64_t next_file; /* number of the next sorted file */
    int64_t look_at_us;             /* [owner] not before then is it checked again whether the damage is still there */

    atomic_uint inside;  /* calls and cursors that use db */
    atomic_bool closing; /* new callers wait: db is about to be replaced */

    weir_mutex mutex;                /* LEAF; guards the rest */
    weir_cond left;                  /* the last call is out, or the door is open again */
    weir_err_kept trouble;           /* why RocksDB takes no more files, or what could not be read */
    bool stopped;                    /* RocksDB does not compact, and may take no files */
    bool damaged;                    /* something lies on the disk that cannot be read */
    bool restored;                   /* restore.c has mended that: it is to be opened again */
    char file[WEIR_ENGINE_PATH_MAX]; /* what is damaged; "": RocksDB has not said */
};

/* Makes an error of what RocksDB says, and remembers what is lasting: damage. */
weir_err weir_engine_error(weir_engine *engine, const char *what, const weir_rocks_status *status);
weir_err weir_engine_rocks_open(weir_engine *engine, bool compacts, weir_rocks **dbp);

/* As weir_engine_error, of one file, which RocksDB may not have named. */
weir_err weir_engine_file_error(weir_engine *engine, const char *file, const weir_rocks_status *status);
/* Opens a folder for reading, and closes that: whether it would open. */
weir_err weir_engine_try(const char *folder);

/* scrub.c: whether what names the files, CURRENT and MANIFEST, is damaged, and which of them is.  WEIR_EIO,
 * WEIR_ENOMEM.  [any] */
weir_err weir_engine_check_names(weir_engine *engine, char file[WEIR_ENGINE_PATH_MAX], bool *damagedp);

/* scrub.c: a file of a folder; the names of the sorted files that make it, until visit returns an error;
 * and whether one of them is whole (*bytesp 0: it is not needed any more), which weir_engine_health is told.
 * WEIR_ECORRUPT, WEIR_EIO, WEIR_ENOMEM, WEIR_ELIMIT.  [any] */
static inline bool weir_engine_is_sorted(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".sst") == 0;
}
weir_err weir_engine_path(const char *folder, const char *name, char path[WEIR_ENGINE_PATH_MAX]);
typedef weir_err (*weir_engine_visit_file)(void *context, const char *name);
weir_err weir_engine_walk_sorted(weir_engine *engine, weir_engine_visit_file visit, void *context);
weir_err weir_engine_check_sorted(weir_engine *engine, const char *name, uint64_t *bytesp);

/* Around every use of db; false: there is none just now, and *errp says why. */
bool weir_engine_enter(weir_engine *engine, weir_err *errp);
void weir_engine_leave(weir_engine *engine);
/* RocksDB has refused a file, or says itself that it has stopped. */
void weir_engine_stopped(weir_engine *engine, weir_err err);

#endif /* WEIR_STORE_ENGINE_PRIVATE_H */
