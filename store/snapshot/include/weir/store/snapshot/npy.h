/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - NumPy's array files, and zip archives of them: written as version 1.0, little-endian, in C order.
 *
 *   offset size  meaning
 *     0     6    "\x93NUMPY"
 *     6     2    version: 1 0; what NumPy writes for long headers, 2 0 and 3 0, is read too
 *     8     2    bytes of the header, little-endian (version 1; else 4)
 *    10     …    {'descr': '<i8', 'fortran_order': False, 'shape': (3,), } in text, padded, ended by a newline
 *     …     …    the numbers
 *
 * Files are hostile until they are read: every length is checked, and no shape reaches beyond the bytes that are there.
 *
 * ERRORS: where a list has WEIR_EIO, all that a file may fail with (file.h) may come.
 */
#ifndef WEIR_STORE_SNAPSHOT_NPY_H
#define WEIR_STORE_SNAPSHOT_NPY_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_NPY_DIMS_MAX    4u
#define WEIR_NPY_HEADER_MAX  65536u /* bytes of a header's text */
#define WEIR_NPZ_MEMBERS_MAX 4096u
#define WEIR_NPZ_UNPACK_MAX  ((uint64_t)1 << 36) /* bytes that an archive may become beyond its own length */

/* X(name, NumPy's descr without its first character, bytes) */
#define WEIR_NPY_TYPES(X) \
    X(BOOL, "b1", 1)      \
    X(I8, "i1", 1)        \
    X(I16, "i2", 2)       \
    X(I32, "i4", 4)       \
    X(I64, "i8", 8)       \
    X(U8, "u1", 1)        \
    X(U16, "u2", 2)       \
    X(U32, "u4", 4)       \
    X(U64, "u8", 8)       \
    X(F32, "f4", 4)       \
    X(F64, "f8", 8)

typedef enum weir_npy_type {
#define WEIR_NPY_ENUM(name, descr, size) WEIR_NPY_##name,
    WEIR_NPY_TYPES(WEIR_NPY_ENUM)
#undef WEIR_NPY_ENUM
        WEIR_NPY_TYPE_COUNT
} weir_npy_type;

/* A plain value; data is borrowed, and may be unaligned, unless weir_npy_folder_map gave it. No dimension: one number.
 */
typedef struct weir_npy_array {
    weir_npy_type type;
    uint32_t dims;
    uint64_t shape[WEIR_NPY_DIMS_MAX];
    uint64_t count; /* of numbers */
    const void *data;
} weir_npy_array;

size_t weir_npy_size(weir_npy_type type);
/* What is in these bytes; name stands for the file in messages.  WEIR_EDATA what is wrong with it, and what can be
 * read.  [any] */
weir_err weir_npy_read(const char *name, const void *bytes, size_t length, weir_npy_array *arrayp);
/* Number `index` of any type as a whole number or as a double.  WEIR_EDATA it is not a whole number, or beyond 64 bits:
 * says which. */
weir_err weir_npy_i64(const weir_npy_array *array, const char *name, uint64_t index, int64_t *valuep);
double weir_npy_f64(const weir_npy_array *array, uint64_t index);
/* The same of many, from `first` on; the floats are the nearest to the doubles. */
weir_err weir_npy_i64s(const weir_npy_array *array, const char *name, uint64_t first, size_t count, int64_t *values);
void weir_npy_f32s(const weir_npy_array *array, uint64_t first, size_t count, float *values);

/* --- files ---------------------------------------------------------------------------------------------------- */

typedef struct weir_npy_map weir_npy_map;

/* Maps a file for reading. A file that is made shorter while it is mapped ends the process: keep snapshots unchanged.
 * WEIR_ENOTFOUND, WEIR_EIO, WEIR_ENOMEM; WEIR_EINVAL not a regular file; WEIR_EDATA as for weir_npy_read.  [any] */
weir_err weir_npy_map_open(const char *path, weir_npy_map **mapp, weir_npy_array *arrayp);
void weir_npy_map_close(weir_npy_map *map); /* NULL is allowed */

/* All arrays of a folder, closed together. */
typedef struct weir_npy_folder weir_npy_folder;

#define WEIR_NPY_ANY_ROWS UINT64_MAX /* as many as the file has */

/* WEIR_ENOMEM; WEIR_ELIMIT the path. Nothing is opened yet.  [any] */
weir_err weir_npy_folder_open(const char *path, weir_npy_folder **folderp);
void weir_npy_folder_close(weir_npy_folder *folder);           /* NULL is allowed */
uint64_t weir_npy_folder_bytes(const weir_npy_folder *folder); /* of the files that are mapped */
/* Gives the memory of what was read of the files back to the kernel; what is read again comes back, out of its cache as
 * a rule.  [any] */
void weir_npy_folder_give_back(const weir_npy_folder *folder);
/* Maps the file of this name, in the manner of printf, below the folder: of this type, so many rows, and where columns
 * is not 0 so many columns. Borrowed from the folder; without data after an error.  Errors of weir_npy_map_open, but
 * WEIR_ECORRUPT it is missing, or not what was wanted, or its numbers are not aligned; WEIR_ELIMIT its path is too
 * long.  [owner] */
weir_err weir_npy_folder_map(weir_npy_folder *folder, weir_npy_type type, uint64_t rows, uint64_t columns,
                             weir_npy_array *arrayp, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* In place of a file that is left out because all its numbers are 0: so many, in pages that take no memory. Borrowed
 * from the folder.  WEIR_ENOMEM.  [owner] */
weir_err weir_npy_folder_zeros(weir_npy_folder *folder, weir_npy_type type, uint64_t rows, const void **zerosp);

typedef struct weir_npy_writer weir_npy_writer;

/* A new file of rows numbers, or of rows × columns where columns is not 0. WEIR_NPY_ANY_ROWS, of one dimension: as many
 * as will be written.
 * WEIR_EEXIST, WEIR_EIO, WEIR_EFULL, WEIR_ENOMEM.  [owner] */
weir_err weir_npy_writer_open(const char *path, weir_npy_type type, uint64_t rows, uint64_t columns,
                              weir_npy_writer **writerp);
weir_err weir_npy_write(weir_npy_writer *writer, const void *numbers, uint64_t count);
weir_err weir_npy_write_i64(weir_npy_writer *writer, int64_t number); /* types of 8 bytes */
uint64_t weir_npy_written(const weir_npy_writer *writer);
/* Syncs and closes.  WEIR_EINVAL other than the rows that were announced.  The writer is freed either way; NULL is
 * allowed. */
weir_err weir_npy_writer_close(weir_npy_writer *writer);
/* Closes without a look: the file is not whole. NULL is allowed. */
void weir_npy_writer_cancel(weir_npy_writer *writer);
/* Closes; where err says that something has failed already, cancels. Returns the first error. NULL is allowed. */
weir_err weir_npy_writer_end(weir_npy_writer *writer, weir_err err);

/* --- archives ------------------------------------------------------------------------------------------------- */

typedef struct weir_npz weir_npz;

/* Reads the directory of an .npz: members stored or deflated, no encryption, not split. Arrays may be larger than
 * memory, so each is unpacked into a file of `folder` when it is asked for; no such file outlives its array.
 * WEIR_ENOTFOUND, WEIR_EIO, WEIR_ENOMEM; WEIR_EINVAL not a regular file; WEIR_EDATA; WEIR_ELIMIT more than
 * WEIR_NPZ_MEMBERS_MAX.  [any] */
weir_err weir_npz_open(const char *path, const char *folder, weir_npz **npzp);
void weir_npz_close(weir_npz *npz); /* NULL is allowed */
uint32_t weir_npz_count(const weir_npz *npz);
/* Without the ".npy". */
const char *weir_npz_name(const weir_npz *npz, uint32_t index);
/* The array of this name: its checksum is checked. Borrowed from npz.  WEIR_ENOTFOUND; WEIR_EDATA; WEIR_ENOMEM;
 * WEIR_EIO, WEIR_EFULL, WEIR_EEXIST where it is unpacked; WEIR_ELIMIT a path that is too long.  [owner] */
weir_err weir_npz_array(weir_npz *npz, const char *name, weir_npy_array *arrayp);

typedef struct weir_npz_writer weir_npz_writer;

/* A new archive of stored members; the same members make the same bytes.  WEIR_EEXIST and the like.  [owner] */
weir_err weir_npz_writer_open(const char *path, weir_npz_writer **writerp);
/* The array in this file, a whole .npy, which must stay until the archive is closed: only then it is copied. */
weir_err weir_npz_add(weir_npz_writer *writer, const char *name, const char *file);
/* Writes a file beside path and renames it, so that path is whole or empty; then syncs.  WEIR_EFULL, WEIR_EIO,
 * WEIR_ENOMEM.  The writer is freed either way; NULL is allowed.  Blocks. */
weir_err weir_npz_writer_close(weir_npz_writer *writer);
/* Leaves an empty file at path. NULL is allowed. */
void weir_npz_writer_cancel(weir_npz_writer *writer);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SNAPSHOT_NPY_H */
