/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.h - the system calls of file.c, folder.c and scratch.c, and of no other file.
 *
 * Each passes fault.c first, goes on after EINTR, and returns 0 or an errno. What path names is for fault.c.
 */
#ifndef WEIR_BASE_SYS_H
#define WEIR_BASE_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Always with O_CLOEXEC.  *fdp is -1 on failure. */
int weir_sys_open(const char *path, int flags, mode_t mode, int *fdp);
/* Relative to folder_fd: name is the last component of path. */
int weir_sys_open_at(int folder_fd, const char *name, const char *path, int flags, int *fdp);
int weir_sys_close(int fd, const char *path);
/* EWOULDBLOCK: another open file holds it. */
int weir_sys_lock(int fd, const char *path);
/* All of it, in as many calls as it takes. */
int weir_sys_write_at(int fd, const char *path, const void *bytes, size_t length, uint64_t offset);
/* Until length or the end of the file. */
int weir_sys_read_at(int fd, const char *path, void *bytes, size_t length, uint64_t offset, size_t *read_bytesp);
/* One call at the descriptor's own position, for what cannot seek; 0 bytes are the end. */
int weir_sys_read(int fd, const char *path, void *bytes, size_t length, size_t *read_bytesp);
int weir_sys_sync_data(int fd, const char *path); /* contents and length           */
int weir_sys_sync(int fd, const char *path);      /* the mode and a folder's names too */
int weir_sys_truncate(int fd, const char *path, uint64_t length);
int weir_sys_rename(const char *from, const char *to);
int weir_sys_swap(const char *a, const char *b);
int weir_sys_unlink(const char *path);
int weir_sys_link(const char *from, const char *to);
int weir_sys_make_folder(const char *path);
/* flags: 0 or AT_REMOVEDIR; name is the last component of path. */
int weir_sys_unlink_at(int folder_fd, const char *name, const char *path, int flags);

#endif /* WEIR_BASE_SYS_H */
