/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - names: making, syncing, listing and removing them. */
#include <weir/store/base/file.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>

#include "sys.h"

/* --- making and syncing --------------------------------------------------------------------------------------- */

/* How many bytes of path name the folder that holds its last component; 0: it is the current one. */
static size_t path_parent_length(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

static weir_err path_copy(const char *path, size_t length, char copy[PATH_MAX]) {
    if (length >= PATH_MAX) return WEIR_ERRNO(ENAMETOOLONG, "cannot use the folder %.200s…", path);
    memcpy(copy, path, length);
    copy[length] = 0;
    return WEIR_OK;
}

weir_err weir_folder_sync(const char *path) {
    int fd;
    int error = weir_sys_open(path, O_RDONLY | O_DIRECTORY, 0, &fd);
    if (error) return WEIR_ERRNO(error, "cannot open the folder %s", path);
    error = weir_sys_sync(fd, path);
    int close_error = weir_sys_close(fd, path);
    if (!error) error = close_error;
    if (error) return WEIR_ERRNO(error, "cannot sync the folder %s, so new names in it may be lost", path);
    return WEIR_OK;
}

weir_err weir_folder_sync_of(const char *path) {
    char folder[PATH_MAX];
    size_t length = path_parent_length(path);
    if (length == 0) return weir_folder_sync(".");
    weir_err err = path_copy(path, length, folder);
    return err ? err : weir_folder_sync(folder);
}

/* Makes the one folder, whose parent is there. */
static weir_err folder_create_one(const char *path) {
    struct stat status = {0};
    int error = weir_sys_make_folder(path);
    if (!error) return weir_folder_sync_of(path);
    /* Some file systems refuse before they look: a parent that is read-only, and the folder is there. */
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode)) return WEIR_OK;
        return WEIR_ERR(WEIR_EEXIST, "%s exists and is not a folder; move it away or name another", path);
    }
    return WEIR_ERRNO(error, "cannot create the folder %s", path);
}

weir_err weir_folder_create(const char *path) {
    char folder[PATH_MAX] = "";
    weir_err err = path_copy(path, strlen(path), folder);
    for (char *end = folder; !err && *end; end++) {
        if (*end != '/' || end == folder || end[-1] == '/') continue;
        *end = 0;
        err = folder_create_one(folder);
        *end = '/';
    }
    return err ? err : folder_create_one(path);
}

weir_err weir_folder_swap(const char *a, const char *b) {
    int error = weir_sys_swap(a, b);
    if (error == EINVAL || error == ENOSYS || error == EOPNOTSUPP)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "the file system of %s cannot exchange two folders", a);
    if (error) return WEIR_ERRNO(error, "cannot exchange %s and %s", a, b);
    weir_err err = weir_folder_sync_of(a);
    if (!err) return WEIR_OK;
    if (!weir_sys_swap(a, b)) return err; /* who is told that it failed finds both as they were */
    weir_log_error("folder.swap_unsynced", err);
    return WEIR_OK;
}

bool weir_path_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

weir_err weir_path_join(char *path, size_t size, const char *folder, const char *name) {
    int length = snprintf(path, size, "%s%s%s", folder, name ? "/" : "", name ? name : "");
    if (length > 0 && (size_t)length < size) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
}

weir_err weir_path_beside(char *path, size_t size, const char *of, const char *name) {
    size_t parent = path_parent_length(of);
    int length = snprintf(path, size, "%.*s%s%s", (int)parent, of, parent && of[parent - 1] != '/' ? "/" : "", name);
    if (length > 0 && (size_t)length < size) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", of);
}

/* --- listing -------------------------------------------------------------------------------------------------- */

/* *listp is NULL exactly on failure. */
static weir_err folder_open_list(int parent_fd, const char *name, const char *path, int flags, DIR **listp) {
    int fd;
    *listp = NULL;
    int error = weir_sys_open_at(parent_fd, name, path, O_RDONLY | O_DIRECTORY | flags, &fd);
    if (!error) {
        *listp = fdopendir(fd);
        if (!*listp) {
            error = errno;
            weir_sys_close(fd, path);
        }
    }
    if (error) return WEIR_ERRNO(error, "cannot open the folder %s", path);
    return WEIR_OK;
}

/* The next entry but . and ..; *entryp is NULL at the end. */
static weir_err folder_next_entry(DIR *list, const char *path, struct dirent **entryp) {
    *entryp = NULL;
    int error = weir_fault_check(WEIR_FAULT_READ, path, NULL);
    while (!error) {
        errno = 0;
        *entryp = readdir(list);
        if (!*entryp) error = errno;
        if (!*entryp || (strcmp((*entryp)->d_name, ".") != 0 && strcmp((*entryp)->d_name, "..") != 0)) break;
    }
    if (error) return WEIR_ERRNO(error, "cannot list the folder %s", path);
    return WEIR_OK;
}

static int folder_compare_names(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

weir_err weir_folder_list(const char *path, weir_folder_visit visit, void *context) {
    weir_buf names = {0}; /* each with its 0 */
    const char **sorted = NULL;
    size_t count = 0;
    DIR *list;
    struct dirent *entry;
    weir_err err = folder_open_list(AT_FDCWD, path, path, 0, &list);
    if (err) return err;
    for (err = folder_next_entry(list, path, &entry); !err && entry; err = folder_next_entry(list, path, &entry)) {
        if (++count > WEIR_FOLDER_ENTRIES_MAX) {
            err = WEIR_ERR(WEIR_ELIMIT, "the folder %s has more than %u entries; clear it up", path,
                           WEIR_FOLDER_ENTRIES_MAX);
            break;
        }
        weir_buf_append(&names, entry->d_name, strlen(entry->d_name) + 1);
    }
    closedir(list);
    if (!err) err = weir_err_prefix(weir_buf_err(&names), "listing the folder %s", path);
    if (err) goto done;

    sorted = weir_calloc(count, sizeof *sorted);
    if (!sorted) {
        err = WEIR_NOMEM("while listing the folder %s", path);
        goto done;
    }
    const char *name = names.bytes;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = name;
        name += strlen(name) + 1;
    }
    WEIR_ASSERT(count == 0 || name == names.bytes + names.length);
    qsort(sorted, count, sizeof *sorted, folder_compare_names);
    for (size_t i = 0; !err && i < count; i++)
        err = visit(context, sorted[i]);
done:
    weir_free(sorted);
    weir_buf_free(&names);
    return err;
}

/* --- removing ------------------------------------------------------------------------------------------------- */

/* As /snap.partial has, which is written beside /snap, and no folder that a system has at its root. */
static bool folder_has_ending(const char *name, size_t length) {
    const char *dot = memrchr(name, '.', length);
    return dot && dot > name && dot + 1 < name + length;
}

/* How many bytes of path name what is to be removed: up to the end of its last name, since slashes and dots behind a
 * link would follow it. 0: that is refused, so that a slip such as an empty variable removes nothing: what ends in no
 * name, and what begins at the root with one name without an ending, or leads upwards from there. */
static size_t folder_removed_length(const char *path) {
    size_t end = 0;
    unsigned names = 0;
    bool upwards = false, last_upwards = false, ending = false;
    for (size_t at = 0; path[at];) {
        size_t length = strcspn(path + at, "/");
        if (length > 0 && !(length == 1 && path[at] == '.')) {
            last_upwards = length == 2 && memcmp(path + at, "..", 2) == 0;
            upwards = upwards || last_upwards;
            names += !last_upwards;
            ending = folder_has_ending(path + at, length);
            end = at + length;
        }
        at += length + (path[at + length] == '/');
    }
    bool slip = upwards || names == 0 || (names == 1 && !ending);
    return last_upwards || (*path == '/' && slip) ? 0 : end;
}

static weir_err folder_remove_below(int parent_fd, const char *name, weir_buf *path, unsigned depth);

/* path is that of the folder, and is so again on return. */
static weir_err folder_remove_entry(int folder_fd, const char *name, weir_buf *path, unsigned depth) {
    size_t length = path->length;
    struct stat status;
    int error = 0;
    weir_buf_printf(path, "/%s", name);
    weir_err err = weir_buf_err(path);
    if (err) return err;
    if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW)) error = errno;
    if (!error && S_ISDIR(status.st_mode)) {
        err = folder_remove_below(folder_fd, name, path, depth + 1);
    } else if (!error) {
        error = weir_sys_unlink_at(folder_fd, name, path->bytes, 0);
    }
    if (error) err = WEIR_ERRNO(error, "cannot remove %s", path->bytes);
    WEIR_ASSERT(path->length > length);
    path->length = length;
    path->bytes[length] = 0;
    return err;
}

static weir_err folder_remove_below(int parent_fd, const char *name, weir_buf *path, unsigned depth) {
    DIR *list;
    struct dirent *entry;
    if (depth > WEIR_FOLDER_DEPTH_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "%s is more than %u folders deep; remove it by hand", path->bytes,
                        WEIR_FOLDER_DEPTH_MAX);
    }
    weir_err err = folder_open_list(parent_fd, name, path->bytes, O_NOFOLLOW, &list);
    if (err) return err;
    for (err = folder_next_entry(list, path->bytes, &entry); !err && entry;
         err = folder_next_entry(list, path->bytes, &entry)) {
        err = folder_remove_entry(dirfd(list), entry->d_name, path, depth);
        if (err) break;
    }
    closedir(list);
    if (err) return err;
    int error = weir_sys_unlink_at(parent_fd, name, path->bytes, AT_REMOVEDIR);
    return error ? WEIR_ERRNO(error, "cannot remove the folder %s", path->bytes) : WEIR_OK;
}

weir_err weir_folder_remove(const char *path) {
    char top[PATH_MAX] = "";
    weir_buf walked = {0};
    size_t length = folder_removed_length(path);
    if (!length) {
        return WEIR_ERR(WEIR_EINVAL,
                        "'%s' is not removed: name a folder, and one that begins with '/' without '..' and by at least "
                        "two components, or one with an ending",
                        path);
    }
    weir_err err = path_copy(path, length, top);
    weir_buf_text(&walked, top);
    if (!err) err = weir_buf_err(&walked);
    if (!err) err = folder_remove_below(AT_FDCWD, top, &walked, 0);
    weir_buf_free(&walked);
    return err;
}
