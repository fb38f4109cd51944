/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - who could change a file, or put another in its place.
 *
 * A signature proves who made a model. But which keys count, who may ask, and what the log says is decided by files
 * without a signature: whoever can write one of those, or the folder that it is in, decides it.
 */
#include "guard.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#define DEPTH_MAX 8u /* of what is looked at whole: a log, say */

static weir_err guard_status(const char *path, const struct stat *status) {
    uid_t own = geteuid();
    if (status->st_uid != 0 && status->st_uid != own)
        return WEIR_ERR(WEIR_EPERM, "%s belongs to user %u, who could change it; run: chown %u %s", path,
                        (unsigned)status->st_uid, (unsigned)own, path);
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return WEIR_ERR(WEIR_EPERM, "others than its owner may write %s (mode %04o); run: chmod go-w %s", path,
                        (unsigned)(status->st_mode & 07777), path);
    return WEIR_OK;
}

static weir_err guard_folder_of(const char *path) {
    char folder[PATH_MAX];
    struct stat status;
    const char *slash = strrchr(path, '/');
    size_t length = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof folder) return WEIR_ERRNO(ENAMETOOLONG, "cannot use the path %.200s…", path);
    memcpy(folder, slash ? path : ".", length);
    folder[length] = 0;
    if (stat(folder, &status)) return WEIR_ERRNO(errno, "cannot look at %s", folder);
    return guard_status(folder, &status);
}

weir_err weir_guard_check(const char *path, const struct stat *status) {
    char real[PATH_MAX];
    weir_err err = guard_status(path, status);
    if (!err) err = guard_folder_of(path);
    if (err) return err;
    if (!realpath(path, real)) return WEIR_ERRNO(errno, "cannot look at %s", path);
    return guard_folder_of(real);
}

weir_err weir_path_guarded(const char *path) {
    struct stat status;
    if (stat(path, &status)) return WEIR_ERRNO(errno, "cannot look at %s", path);
    return weir_guard_check(path, &status);
}

/* --- all of a folder -------------------------------------------------------------------------------------------- */

typedef struct guard_walk {
    char path[PATH_MAX];
    size_t length;
    unsigned depth;
} guard_walk;

static weir_err guard_visit(void *context, const char *name) {
    guard_walk *w = context;
    size_t before = w->length, more = strlen(name);
    if (before + more + 2 > sizeof w->path) return WEIR_ERRNO(ENAMETOOLONG, "cannot use the path %.200s…", w->path);
    w->path[before] = '/';
    memcpy(w->path + before + 1, name, more + 1);
    w->length = before + 1 + more;

    struct stat status;
    weir_err err = WEIR_OK;
    if (lstat(w->path, &status)) { /* what is gone by now was a file that was deleted meanwhile */
        if (errno != ENOENT) err = WEIR_ERRNO(errno, "cannot look at %s", w->path);
        goto done;
    }
    /* A link's own mode says nothing: where it leads must be guarded as this is. */
    bool link = S_ISLNK(status.st_mode);
    err = link ? weir_path_guarded(w->path) : guard_status(w->path, &status);
    if (!err && link && stat(w->path, &status)) err = WEIR_ERRNO(errno, "cannot look at %s", w->path);
    if (err || !S_ISDIR(status.st_mode)) goto done;
    if (w->depth == DEPTH_MAX) {
        err = WEIR_ERR(WEIR_ELIMIT, "%s has folders more than %u deep", w->path, DEPTH_MAX);
        goto done;
    }
    w->depth++;
    err = weir_folder_list(w->path, guard_visit, w);
    w->depth--;
done:
    w->length = before;
    w->path[before] = 0;
    return err;
}

weir_err weir_folder_guarded(const char *path) {
    weir_err err = weir_path_guarded(path);
    if (err) return err;
    guard_walk *w = weir_calloc(1, sizeof *w);
    if (!w) return WEIR_NOMEM("while looking at the folder %s", path);
    w->length = strlen(path);
    if (w->length < sizeof w->path) {
        memcpy(w->path, path, w->length + 1);
        err = weir_folder_list(path, guard_visit, w);
    } else {
        err = WEIR_ERRNO(ENAMETOOLONG, "cannot use the path %.200s…", path);
    }
    weir_free(w);
    return err;
}
