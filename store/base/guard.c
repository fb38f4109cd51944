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
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#define DEPTH_MAX 8u  /* of what is looked at whole: a log, say */
#define LINKS_MAX 40u /* as many as the kernel follows */

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

/* The way to a file, name by name, as the kernel goes it. */
typedef struct guard_way {
    char at[PATH_MAX];   /* where it has come, without a link; "": the root */
    char rest[PATH_MAX]; /* what follows                                    */
    unsigned links;
} guard_way;

/* at is a link: what it leads to comes in its place. Whoever may put another there leads the rest elsewhere. */
static weir_err guard_way_follow(guard_way *way, size_t folder_length, const char *target, size_t length) {
    weir_err err = guard_folder_of(way->at);
    if (err) return err;
    size_t left = strlen(way->rest);
    if (++way->links > LINKS_MAX) return WEIR_ERRNO(ELOOP, "cannot look at %s", way->at);
    if (length + 1 + left >= sizeof way->rest)
        return WEIR_ERRNO(ENAMETOOLONG, "cannot follow the link %.200s…", way->at);
    memmove(way->rest + length + 1, way->rest, left + 1);
    memcpy(way->rest, target, length);
    way->rest[length] = '/';
    way->at[target[0] == '/' ? 0 : folder_length] = 0;
    return WEIR_OK;
}

/* Takes the first name of the rest. */
static weir_err guard_way_step(guard_way *way) {
    char target[PATH_MAX];
    size_t begin = strspn(way->rest, "/"), length = strcspn(way->rest + begin, "/"), before = strlen(way->at);
    if (before + 1 + length >= sizeof way->at) return WEIR_ERRNO(ENAMETOOLONG, "cannot use the path %.200s…", way->at);
    char *name = way->at + before + 1;
    memcpy(name, way->rest + begin, length);
    name[length] = 0;
    memmove(way->rest, way->rest + begin + length, strlen(way->rest + begin + length) + 1);
    if (length == 0 || strcmp(name, ".") == 0) return WEIR_OK;
    if (strcmp(name, "..") == 0) {
        char *slash = strrchr(way->at, '/');
        if (slash) *slash = 0;
        return WEIR_OK;
    }
    way->at[before] = '/';
    ssize_t target_length = readlink(way->at, target, sizeof target - 1);
    if (target_length > 0) return guard_way_follow(way, before, target, (size_t)target_length);
    return errno == EINVAL ? WEIR_OK : WEIR_ERRNO(errno, "cannot look at %s", way->at); /* EINVAL: no link */
}

/* The folder of each link on the way, and that of what the last of them leads to. */
static weir_err guard_links(const char *path) {
    guard_way way = {0};
    size_t length = strlen(path);
    weir_err err = WEIR_OK;
    if (length >= sizeof way.rest) return WEIR_ERRNO(ENAMETOOLONG, "cannot use the path %.200s…", path);
    memcpy(way.rest, path, length + 1);
    if (path[0] != '/' && !getcwd(way.at, sizeof way.at)) return WEIR_ERRNO(errno, "cannot look at %s", path);
    if (strcmp(way.at, "/") == 0) way.at[0] = 0;
    while (!err && way.rest[0])
        err = guard_way_step(&way);
    return err ? err : guard_folder_of(way.at[0] ? way.at : "/");
}

weir_err weir_guard_check(const char *path, const struct stat *status) {
    weir_err err = guard_status(path, status);
    if (!err) err = guard_folder_of(path);
    return err ? err : guard_links(path);
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
