/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - files that are durable when we say so. What opens, locks, reads, writes, syncs, renames or removes goes
 * through fault.h; a look at a status does not. What the system refuses has the code that WEIR_ERRNO gives its
 * errno, but where another is named.
 *
 * A new file is durable only when the file AND its folder have been synced; a replaced one only when
 * the temporary was synced before the rename and the folder after it. weir_file_replace does all of it.
 * After a failed sync the handle is poisoned: a second sync could report success for pages that the
 * kernel has already dropped.
 *
 * THREADS: a handle belongs to one thread at a time; weir_file_read_at on one handle is [any].
 */
#ifndef WEIR_STORE_BASE_FILE_H
#define WEIR_STORE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_FOLDER_DEPTH_MAX   64u
#define WEIR_FOLDER_ENTRIES_MAX (1u << 20)

typedef struct weir_file weir_file;

typedef enum weir_file_mode {
    WEIR_FILE_READ,       /* must exist                        */
    WEIR_FILE_READ_WRITE, /* must exist                        */
    WEIR_FILE_CREATE,     /* must not exist; 0640              */
    WEIR_FILE_OPEN_OR_CREATE
} weir_file_mode;

/* Every error names the path. WEIR_ENOTFOUND, WEIR_EEXIST, WEIR_EPERM, WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM; WEIR_EINVAL
 * it is a pipe or a device. */
weir_err weir_file_open(const char *path, weir_file_mode mode, weir_file **filep);
/* Appends all of it at the handle's end (tracked, not O_APPEND).  Short writes are continued.
 * WEIR_EPOISONED; after another error some bytes may be in the file, but its end for us has not moved: append again,
 * truncate to weir_file_length, or close. */
weir_err weir_file_append(weir_file *file, const void *bytes, size_t length);
/* Reads up to length at offset; *read_bytesp < length only at the end of the file, or after an error: 0. */
weir_err weir_file_read_at(weir_file *file, uint64_t offset, void *bytes, size_t length, size_t *read_bytesp);
/* fdatasync.  After an error append and sync return WEIR_EPOISONED.  Blocks on the disk. */
weir_err weir_file_sync(weir_file *file);
/* Cuts or extends; the end moves with it. */
weir_err weir_file_truncate(weir_file *file, uint64_t length);
uint64_t weir_file_length(const weir_file *file);
const char *weir_file_path(const weir_file *file);
/* Does not sync. NULL is allowed. The handle is freed, whatever close reports. */
weir_err weir_file_close(weir_file *file);
/* An exclusive advisory lock until close.  WEIR_EBUSY another handle holds it: the sentence names the pid that the
 * file begins with, if it does; writing it there is the holder's business. */
weir_err weir_file_lock(weir_file *file);

/* Temp file beside path (path.tmp), write, sync, rename, sync the folder: path has the old or the new content, whole,
 * and keeps its permissions. After an error either of the two.  WEIR_EBUSY another is replacing it just now. */
weir_err weir_file_replace(const char *path, const void *bytes, size_t length);
/* The same, but with mode 0600 from its first moment on: only its owner may read it. */
weir_err weir_file_replace_secret(const char *path, const void *bytes, size_t length);
/* The whole file, with a 0 byte behind it; free with weir_free.  WEIR_ELIMIT above length_max; WEIR_EINVAL it is a
 * pipe or a device; WEIR_ENOMEM. */
weir_err weir_file_load(const char *path, size_t length_max, char **bytesp, size_t *lengthp);

/* What else a file must be, for those whose content decides what is trusted. */
typedef enum weir_file_rule {
    WEIR_FILE_GUARDED = 1, /* as weir_path_guarded; what was checked is what is read */
    WEIR_FILE_NO_LINK = 2, /* the name is the file's own                             */
    WEIR_FILE_SECRET = 4,  /* only its owner, and root, can read it                  */
} weir_file_rule;
/* The same with rules, a set of bits.  If one is broken: WEIR_EPERM, whose sentence says what to do. */
weir_err weir_file_load_as(const char *path, unsigned rules, size_t length_max, char **bytesp, size_t *lengthp);
/* Whether only root and the user of this process can change what is at path, or put something else into its folder:
 * it and the folder that it is in, and that of each link on the way, belong to one of the two and are written by
 * neither group nor others. A sticky bit is no excuse, since whoever comes first may make the file. Folders further up
 * are not looked at: whoever may write one of those can put another folder there.  If not: WEIR_EPERM,
 * whose sentence says what to do. WEIR_ENOTFOUND.  [any] */
weir_err weir_path_guarded(const char *path);
/* The same of a folder and of all that is below it.  WEIR_ELIMIT as weir_folder_list, or folders more than 8 deep;
 * WEIR_ENOMEM.  [any] */
weir_err weir_folder_guarded(const char *path);

/* A new file with what is in another, at most length_max bytes of it, synced; its folder is not.  WEIR_EEXIST and all
 * that a file may fail with; what was begun is left there. */
weir_err weir_file_copy(const char *from, const char *to, uint64_t length_max);
/* A second name of one file.  WEIR_EUNAVAILABLE: not here, for example on another disk. */
weir_err weir_file_link(const char *from, const char *to);
weir_err weir_file_rename(const char *from, const char *to); /* then syncs the folder of to   */
weir_err weir_file_remove(const char *path);                 /* then syncs its folder          */
weir_err weir_folder_create(const char *path);               /* and its parents, each new name synced; fine if there */
weir_err weir_folder_sync(const char *path);
weir_err weir_folder_sync_of(const char *path); /* the folder that holds path */
/* Each of two folders beside each other gets the other's name, in one step; a power cut leaves either both or neither.
 * WEIR_EUNAVAILABLE: this file system cannot. After any error both have the names that they had. If the sync fails, and
 * then giving them back, they stay exchanged: that is success, is logged, and may be undone by a power cut. */
weir_err weir_folder_swap(const char *a, const char *b);
bool weir_path_exists(const char *path);
/* FOLDER/NAME, or FOLDER where name is NULL.  WEIR_ELIMIT it is empty, or longer than size allows.  [any] */
weir_err weir_path_join(char *path, size_t size, const char *folder, const char *name);
/* NAME in the folder that holds `of`.  WEIR_ELIMIT.  [any] */
weir_err weir_path_beside(char *path, size_t size, const char *of, const char *name);
/* Removes a folder with all in it. Follows no link in it, nor one that path names, be it with '/' or "/." behind it.
 * WEIR_EINVAL, so that no slip removes much: a path without a name, or that ends in ".."; one from the root on with
 * "..", or with one component that has no ending as /snap.partial has. WEIR_ELIMIT below WEIR_FOLDER_DEPTH_MAX. */
weir_err weir_folder_remove(const char *path);

/* Calls visit for each entry but . and .., sorted by name, until it returns an error, which is passed on.
 * WEIR_ELIMIT more than WEIR_FOLDER_ENTRIES_MAX. */
typedef weir_err (*weir_folder_visit)(void *context, const char *name);
weir_err weir_folder_list(const char *path, weir_folder_visit visit, void *context);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_FILE_H */
