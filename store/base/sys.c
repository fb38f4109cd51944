/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>

/* A signal may interrupt a call; so many in a row are no accident, and EINTR is then the error. */
#define INTERRUPTIONS_MAX 1000u
#define FOLDER_MODE       0750

/* 0 or the errno of call, which returns -1 when it fails. */
#define SYS_CHECKED(op, path, call)                                \
    (__extension__({                                               \
        int error_;                                                \
        unsigned tries_ = 0;                                       \
        do {                                                       \
            error_ = weir_fault_check((op), (path), NULL);         \
            if (!error_ && (call) == -1) error_ = errno;           \
        } while (error_ == EINTR && ++tries_ < INTERRUPTIONS_MAX); \
        error_;                                                    \
    }))

int weir_sys_open(const char *path, int flags, mode_t mode, int *fdp) {
    *fdp = -1;
    return SYS_CHECKED(WEIR_FAULT_OPEN, path, *fdp = open(path, flags | O_CLOEXEC, mode));
}

int weir_sys_open_at(int folder_fd, const char *name, const char *path, int flags, int *fdp) {
    *fdp = -1;
    return SYS_CHECKED(WEIR_FAULT_OPEN, path, *fdp = openat(folder_fd, name, flags | O_CLOEXEC));
}

int weir_sys_close(int fd, const char *path) {
    int injected = weir_fault_check(WEIR_FAULT_CLOSE, path, NULL);
    int error = close(fd) ? errno : injected;
    return error == EINTR ? 0 : error; /* Linux has closed it by then; a second call could close a stranger */
}

int weir_sys_lock(int fd, const char *path) {
    return SYS_CHECKED(WEIR_FAULT_OPEN, path, flock(fd, LOCK_EX | LOCK_NB));
}

int weir_sys_write_at(int fd, const char *path, const void *bytes, size_t length, uint64_t offset) {
    const char *from = bytes;
    unsigned tries = 0;
    while (length > 0) {
        size_t part = length;
        int error = weir_fault_check(WEIR_FAULT_WRITE, path, &part);
        ssize_t written = part > 0 ? pwrite(fd, from, part, (off_t)offset) : 0;
        if (written < 0) error = errno;
        if (!error && written == 0) error = EIO; /* a file that takes nothing would take nothing for ever */
        if (error && (error != EINTR || ++tries >= INTERRUPTIONS_MAX)) return error;
        if (written > 0) {
            WEIR_ASSERT((size_t)written <= length);
            from += written;
            offset += (uint64_t)written;
            length -= (size_t)written;
            tries = 0;
        }
    }
    return 0;
}

/* offset < 0: at the descriptor's own position. */
static int sys_read_once(int fd, const char *path, void *bytes, size_t length, off_t offset, size_t *read_bytesp) {
    unsigned tries = 0;
    int error;
    *read_bytesp = 0;
    do {
        size_t part = length;
        error = weir_fault_check(WEIR_FAULT_READ, path, &part);
        if (!error) {
            ssize_t got = offset < 0 ? read(fd, bytes, part) : pread(fd, bytes, part, offset);
            if (got >= 0) *read_bytesp = (size_t)got;
            if (got < 0) error = errno;
        }
    } while (error == EINTR && ++tries < INTERRUPTIONS_MAX);
    return error;
}

int weir_sys_read_at(int fd, const char *path, void *bytes, size_t length, uint64_t offset, size_t *read_bytesp) {
    size_t got = 0;
    int error = 0;
    *read_bytesp = 0;
    if (offset > INT64_MAX - length) return 0; /* no file is that long */
    while (*read_bytesp < length) {
        size_t done = *read_bytesp;
        error = sys_read_once(fd, path, (char *)bytes + done, length - done, (off_t)(offset + done), &got);
        if (error || got == 0) break;
        *read_bytesp += got;
        WEIR_ASSERT(*read_bytesp <= length);
    }
    return error;
}

int weir_sys_read(int fd, const char *path, void *bytes, size_t length, size_t *read_bytesp) {
    return sys_read_once(fd, path, bytes, length, -1, read_bytesp);
}

int weir_sys_sync_data(int fd, const char *path) {
    return SYS_CHECKED(WEIR_FAULT_SYNC, path, fdatasync(fd));
}

int weir_sys_sync(int fd, const char *path) {
    return SYS_CHECKED(WEIR_FAULT_SYNC, path, fsync(fd));
}

int weir_sys_truncate(int fd, const char *path, uint64_t length) {
    return SYS_CHECKED(WEIR_FAULT_TRUNCATE, path, ftruncate(fd, (off_t)length));
}

int weir_sys_rename(const char *from, const char *to) {
    return SYS_CHECKED(WEIR_FAULT_RENAME, to, rename(from, to));
}

int weir_sys_swap(const char *a, const char *b) {
    return SYS_CHECKED(WEIR_FAULT_RENAME, b, renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
}

int weir_sys_unlink(const char *path) {
    return SYS_CHECKED(WEIR_FAULT_UNLINK, path, unlink(path));
}

int weir_sys_link(const char *from, const char *to) {
    return SYS_CHECKED(WEIR_FAULT_OPEN, to, link(from, to));
}

int weir_sys_make_folder(const char *path) {
    return SYS_CHECKED(WEIR_FAULT_OPEN, path, mkdir(path, FOLDER_MODE));
}

int weir_sys_unlink_at(int folder_fd, const char *name, const char *path, int flags) {
    return SYS_CHECKED(WEIR_FAULT_UNLINK, path, unlinkat(folder_fd, name, flags));
}
