/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - one file: handles, and whole files at once.
 *
 * A handle writes at an end that it tracks itself. After a failed append the end has not moved, so that the next append
 * overwrites what the failed one left, and a truncate to weir_file_length gives the file back its last good state.
 */
#include <weir/store/base/file.h>

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

#include "guard.h"
#include "sys.h"

#define FILE_MODE        0640
#define SECRET_MODE      0600
#define TEMPORARY_SUFFIX ".tmp"
#define TEMPORARY_TRIES  8u
#define LOAD_STEP_BYTES  4096u
#define LOCK_TEXT_MAX    32u
#define COPY_BYTES       (1u << 20)

struct weir_file {
    int fd;
    bool poisoned;   /* a sync has failed: what the disk holds is unknown */
    uint64_t length; /* where the next append goes                        */
    char path[];
};

/* --- handles -------------------------------------------------------------------------------------------------- */

weir_err weir_file_open(const char *path, weir_file_mode mode, weir_file **filep) {
    static const int flags[] = {
        [WEIR_FILE_READ] = O_RDONLY,
        [WEIR_FILE_READ_WRITE] = O_RDWR,
        [WEIR_FILE_CREATE] = O_RDWR | O_CREAT | O_EXCL,
        [WEIR_FILE_OPEN_OR_CREATE] = O_RDWR | O_CREAT,
    };
    struct stat status;
    size_t path_bytes = strlen(path) + 1;
    *filep = NULL;
    weir_file *file = weir_malloc(sizeof *file + path_bytes);
    if (!file) return WEIR_NOMEM("while opening %s", path);
    *file = (weir_file){.fd = -1};
    memcpy(file->path, path, path_bytes);

    weir_err err = WEIR_OK;
    /* Not blocking, because opening a pipe would wait for its other end; for a regular file it means nothing. */
    int error = weir_sys_open(path, flags[mode] | O_NONBLOCK, FILE_MODE, &file->fd);
    if (!error && fstat(file->fd, &status)) error = errno;
    if (!error && S_ISDIR(status.st_mode)) error = EISDIR;
    if (error) {
        err = WEIR_ERRNO(error, "cannot %s %s", mode == WEIR_FILE_CREATE ? "create" : "open", path);
    } else if (!S_ISREG(status.st_mode)) {
        err = WEIR_ERR(WEIR_EINVAL, "%s is not a regular file; name one that is", path);
    }
    if (err) {
        weir_file_close(file); /* the first error is the one that tells */
        return err;
    }
    file->length = (uint64_t)status.st_size;
    *filep = file;
    return WEIR_OK;
}

weir_err weir_file_close(weir_file *file) {
    weir_err err = WEIR_OK;
    if (!file) return WEIR_OK;
    int error = file->fd >= 0 ? weir_sys_close(file->fd, file->path) : 0;
    if (error) err = WEIR_ERRNO(error, "cannot close %s, so what was written last may be lost", file->path);
    weir_free(file);
    return err;
}

static weir_err file_refuse_poisoned(const weir_file *file) {
    return WEIR_ERR(WEIR_EPOISONED,
                    "%s takes no more writes because a sync of it failed; check the disk, then restart to read back "
                    "what it holds",
                    file->path);
}

weir_err weir_file_append(weir_file *file, const void *bytes, size_t length) {
    if (file->poisoned) return file_refuse_poisoned(file);
    int error = weir_sys_write_at(file->fd, file->path, bytes, length, file->length);
    if (error) return WEIR_ERRNO(error, "cannot write %zu bytes to %s", length, file->path);
    file->length += length;
    return WEIR_OK;
}

weir_err weir_file_read_at(weir_file *file, uint64_t offset, void *bytes, size_t length, size_t *read_bytesp) {
    int error = weir_sys_read_at(file->fd, file->path, bytes, length, offset, read_bytesp);
    if (error) {
        *read_bytesp = 0;
        return WEIR_ERRNO(error, "cannot read %s at byte %llu", file->path, (unsigned long long)offset);
    }
    WEIR_ASSERT(*read_bytesp <= length);
    return WEIR_OK;
}

weir_err weir_file_sync(weir_file *file) {
    if (file->poisoned) return file_refuse_poisoned(file);
    int error = weir_sys_sync_data(file->fd, file->path);
    if (!error) return WEIR_OK;
    file->poisoned = true;
    return WEIR_ERRNO(error, "cannot sync %s, so what was written to it since the last sync may be lost", file->path);
}

weir_err weir_file_truncate(weir_file *file, uint64_t length) {
    int error = weir_sys_truncate(file->fd, file->path, length);
    if (error) {
        return WEIR_ERRNO(error, "cannot set the length of %s to %llu bytes", file->path, (unsigned long long)length);
    }
    file->length = length;
    return WEIR_OK;
}

uint64_t weir_file_length(const weir_file *file) {
    return file->length;
}

const char *weir_file_path(const weir_file *file) {
    return file->path;
}

weir_err weir_file_lock(weir_file *file) {
    int error = weir_sys_lock(file->fd, file->path);
    if (!error) return WEIR_OK;
    if (error != EWOULDBLOCK) return WEIR_ERRNO(error, "cannot lock %s", file->path);
    /* The holder may have written its pid into the file. */
    char text[LOCK_TEXT_MAX];
    size_t got;
    if (weir_sys_read_at(file->fd, file->path, text, sizeof text - 1, 0, &got)) got = 0;
    text[got] = 0;
    long pid = strtol(text, NULL, 10);
    if (pid <= 0) return WEIR_ERR(WEIR_EBUSY, "%s is locked by another process; stop that one first", file->path);
    return WEIR_ERR(WEIR_EBUSY, "%s is locked by process %ld; stop that one first", file->path, pid);
}

/* --- whole files ---------------------------------------------------------------------------------------------- */

/*
 * The temporary has a fixed name, so that crashes leave at most one behind, and a lock, so that two writers cannot fill
 * it at the same time. Between our open and our lock the other may have renamed it to path: then we hold the lock of a
 * finished file and must not touch it, which the comparison with the name shows.
 */
static weir_err temporary_open(const char *temporary, mode_t mode, int *fdp, struct stat *statusp) {
    for (unsigned i = 0; i < TEMPORARY_TRIES; i++) {
        struct stat named;
        int error = weir_sys_open(temporary, O_RDWR | O_CREAT | O_NOFOLLOW, mode, fdp);
        if (error) return WEIR_ERRNO(error, "cannot create %s", temporary);
        error = weir_sys_lock(*fdp, temporary);
        if (!error && fstat(*fdp, statusp)) error = errno;
        if (!error && lstat(temporary, &named) == 0 && named.st_dev == statusp->st_dev &&
            named.st_ino == statusp->st_ino)
            return WEIR_OK;
        weir_sys_close(*fdp, temporary); /* nothing was written */
        *fdp = -1;
        if (error == EWOULDBLOCK)
            return WEIR_ERR(WEIR_EBUSY, "%s is being written by another; try again when it is done", temporary);
        if (error) return WEIR_ERRNO(error, "cannot lock %s", temporary);
    }
    return WEIR_ERR(WEIR_EBUSY, "%s is being written by others all the time; try again later", temporary);
}

static weir_err temporary_fill(int fd, const struct stat *status, const char *path, const char *temporary, mode_t mode,
                               const void *bytes, size_t length) {
    int error = status->st_size > 0 ? weir_sys_truncate(fd, temporary, 0) : 0;
    if (error) return WEIR_ERRNO(error, "cannot empty %s", temporary);
    /* A secret stays as secret as it was; what was left of a replacement that broke off may be less so. */
    struct stat old;
    bool secret = mode == SECRET_MODE;
    if ((secret || stat(path, &old) == 0) && fchmod(fd, secret ? mode : old.st_mode & 07777)) {
        return WEIR_ERRNO(errno, "cannot give %s the permissions of %s", temporary, path);
    }
    error = weir_sys_write_at(fd, temporary, bytes, length, 0);
    if (error) return WEIR_ERRNO(error, "cannot write %zu bytes to %s", length, temporary);
    error = weir_sys_sync(fd, temporary);
    if (error) return WEIR_ERRNO(error, "cannot sync %s", temporary);
    return WEIR_OK;
}

static weir_err file_rename(const char *from, const char *to) {
    int error = weir_sys_rename(from, to);
    if (error) return WEIR_ERRNO(error, "cannot rename %s to %s", from, to);
    return WEIR_OK;
}

static weir_err file_replace(const char *path, mode_t mode, const void *bytes, size_t length) {
    char temporary[PATH_MAX];
    struct stat status = {0};
    int fd;
    if ((size_t)snprintf(temporary, sizeof temporary, "%s" TEMPORARY_SUFFIX, path) >= sizeof temporary) {
        return WEIR_ERRNO(ENAMETOOLONG, "cannot create %.200s…" TEMPORARY_SUFFIX, path);
    }
    weir_err err = temporary_open(temporary, mode, &fd, &status);
    if (err) return err;
    err = temporary_fill(fd, &status, path, temporary, mode, bytes, length);
    if (!err) err = file_rename(temporary, path);
    if (err) weir_sys_unlink(temporary); /* if that fails too, the next replace uses it */
    if (!err) err = weir_folder_sync_of(path);
    int error = weir_sys_close(fd, path);
    if (error) weir_err_keep(&err, WEIR_ERRNO(error, "cannot close %s", path));
    return err;
}

weir_err weir_file_replace(const char *path, const void *bytes, size_t length) {
    return file_replace(path, FILE_MODE, bytes, length);
}

weir_err weir_file_replace_secret(const char *path, const void *bytes, size_t length) {
    return file_replace(path, SECRET_MODE, bytes, length);
}

weir_err weir_file_rename(const char *from, const char *to) {
    weir_err err = file_rename(from, to);
    return err ? err : weir_folder_sync_of(to);
}

weir_err weir_file_remove(const char *path) {
    int error = weir_sys_unlink(path);
    if (error) return WEIR_ERRNO(error, "cannot remove %s", path);
    return weir_folder_sync_of(path);
}

static weir_err file_refuse_size(const char *path, size_t length_max) {
    return WEIR_ERR(WEIR_ELIMIT, "%s has more than the %zu bytes that are allowed here; use a smaller one", path,
                    length_max);
}

/* Of the descriptor, not of the name: another file may stand there by now. */
static weir_err file_check_rules(int fd, const char *path, unsigned rules, struct stat *statusp) {
    if (fstat(fd, statusp)) return WEIR_ERRNO(errno, "cannot read %s", path);
    if (S_ISDIR(statusp->st_mode)) return WEIR_ERRNO(EISDIR, "cannot read %s", path);
    if (!S_ISREG(statusp->st_mode)) return WEIR_ERR(WEIR_EINVAL, "%s is not a regular file; name one that is", path);
    if (rules & WEIR_FILE_SECRET && statusp->st_mode & 077)
        return WEIR_ERR(WEIR_EPERM, "others may read %s, which is a secret (mode %04o); run: chmod 600 %s", path,
                        (unsigned)(statusp->st_mode & 07777), path);
    return rules & WEIR_FILE_GUARDED ? weir_guard_check(path, statusp) : WEIR_OK;
}

weir_err weir_file_load_as(const char *path, unsigned rules, size_t length_max, char **bytesp, size_t *lengthp) {
    char *bytes = NULL;
    size_t length = 0;
    struct stat status;
    int fd;
    *bytesp = NULL;
    *lengthp = 0;
    if (length_max > SIZE_MAX - 2) length_max = SIZE_MAX - 2;
    /* Not blocking: somebody may have put a pipe there, and opening one waits for its other end. */
    int flags = O_RDONLY | O_NONBLOCK | (rules & WEIR_FILE_NO_LINK ? O_NOFOLLOW : 0);
    int error = weir_sys_open(path, flags, 0, &fd);
    if (error == ELOOP && rules & WEIR_FILE_NO_LINK)
        return WEIR_ERR(WEIR_EPERM, "%s is a symbolic link, and could lead anywhere; put the file itself there", path);
    if (error) return WEIR_ERRNO(error, "cannot open %s", path);
    weir_err err = file_check_rules(fd, path, rules, &status);
    if (!err && (size_t)status.st_size > length_max) err = file_refuse_size(path, length_max);
    if (err) goto done;

    size_t capacity = (size_t)status.st_size + 2; /* one for the 0, one so that the end is seen without growing */
    bytes = weir_malloc(capacity);
    if (!bytes) err = WEIR_NOMEM("for %zu bytes of %s", capacity, path);
    /* To the end rather than to the length that stat tells: files in /proc have none. */
    for (size_t got = 1; !err && got > 0; length += got) {
        if (length == capacity - 1) {
            size_t larger = capacity < LOAD_STEP_BYTES ? LOAD_STEP_BYTES : capacity;
            larger = larger > (length_max + 2) / 2 ? length_max + 2 : larger * 2;
            char *moved = weir_realloc_array(bytes, larger, 1);
            if (!moved) {
                err = WEIR_NOMEM("for %zu bytes of %s", larger, path);
                break;
            }
            bytes = moved;
            capacity = larger;
        }
        WEIR_ASSERT(length < capacity - 1);
        error = weir_sys_read(fd, path, bytes + length, capacity - 1 - length, &got);
        if (error) err = WEIR_ERRNO(error, "cannot read %s at byte %zu", path, length);
        if (!err && length + got > length_max) err = file_refuse_size(path, length_max);
    }
done:
    weir_sys_close(fd, path); /* nothing was written, so it cannot lose anything */
    if (err) {
        weir_free(bytes);
        return err;
    }
    bytes[length] = 0;
    *bytesp = bytes;
    *lengthp = length;
    return WEIR_OK;
}

weir_err weir_file_load(const char *path, size_t length_max, char **bytesp, size_t *lengthp) {
    return weir_file_load_as(path, 0, length_max, bytesp, lengthp);
}

/* --- a file again, under another name: by its bytes, or as the same file ------------------------------------------ */

weir_err weir_file_copy(const char *from, const char *to, uint64_t length_max) {
    weir_file *source = NULL, *target = NULL;
    uint8_t *chunk = weir_malloc(COPY_BYTES);
    weir_err err = chunk ? WEIR_OK : WEIR_NOMEM("while copying %s", from);
    if (!err) err = weir_file_open(from, WEIR_FILE_READ, &source);
    if (!err) err = weir_file_open(to, WEIR_FILE_CREATE, &target);
    uint64_t at = 0;
    for (size_t got = 1; !err && got && at < length_max; at += got) {
        uint64_t left = length_max - at;
        err = weir_file_read_at(source, at, chunk, left < COPY_BYTES ? (size_t)left : COPY_BYTES, &got);
        if (!err && got) err = weir_file_append(target, chunk, got);
    }
    if (!err) err = weir_file_sync(target);
    weir_err_keep(&err, weir_file_close(target));
    weir_err_keep(&err, weir_file_close(source));
    weir_free(chunk);
    return err;
}

weir_err weir_file_link(const char *from, const char *to) {
    int error = weir_sys_link(from, to);
    if (error == EXDEV || error == EPERM || error == EMLINK || error == EOPNOTSUPP)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "%s cannot be a second name of %s here; copy it", to, from);
    return error ? WEIR_ERRNO(error, "cannot link %s to %s", from, to) : WEIR_OK;
}
