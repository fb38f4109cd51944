/* SPDX-License-Identifier: Apache-2.0 */
/* npy_file.c - arrays in files: mapped for reading, alone or a folder of them; appended for writing. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>

#include "npy_private.h"

#define PATH_BYTES_MAX 4096
#define WRITE_BYTES    (256u << 10)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are used as they lie in the file");

/* --- reading ----------------------------------------------------------------------------------------------------- */

weir_err weir_mapping_open(const char *path, weir_mapping *mappingp) {
    struct stat status;
    weir_err err = WEIR_OK;
    *mappingp = (weir_mapping){NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return WEIR_ERRNO(errno, "cannot open %s", path);
    if (fstat(fd, &status)) {
        err = WEIR_ERRNO(errno, "cannot look at %s", path);
    } else if (!S_ISREG(status.st_mode)) {
        err = WEIR_ERR(WEIR_EINVAL, "%s is not a regular file; name one that is", path);
    } else if (status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) {
            err = WEIR_ERRNO(errno, "cannot map %s", path);
        } else {
            *mappingp = (weir_mapping){bytes, (size_t)status.st_size};
        }
    }
    close(fd); /* the mapping stays */
    return err;
}

void weir_mapping_close(weir_mapping *mapping) {
    if (mapping->bytes) munmap((void *)(uintptr_t)mapping->bytes, mapping->length);
    *mapping = (weir_mapping){NULL, 0};
}

struct weir_npy_map {
    weir_mapping mapping;
    bool of_zeros; /* and of no file */
};

weir_err weir_npy_map_open(const char *path, weir_npy_map **mapp, weir_npy_array *arrayp) {
    *mapp = NULL;
    *arrayp = (weir_npy_array){.type = WEIR_NPY_BOOL};
    weir_npy_map *map = weir_calloc(1, sizeof *map);
    if (!map) return WEIR_NOMEM("while mapping %s", path);
    weir_err err = weir_mapping_open(path, &map->mapping);
    if (!err) err = weir_npy_read(path, map->mapping.bytes, map->mapping.length, arrayp);
    if (err) {
        weir_npy_map_close(map);
        return err;
    }
    *mapp = map;
    return WEIR_OK;
}

void weir_npy_map_close(weir_npy_map *map) {
    if (!map) return;
    weir_mapping_close(&map->mapping);
    weir_free(map);
}

/* --- a folder of arrays, checked against a manifest --------------------------------------------------------------- */

struct weir_npy_folder {
    weir_npy_map **maps;
    size_t count, capacity;
    char path[PATH_BYTES_MAX];
};

weir_err weir_npy_folder_open(const char *path, weir_npy_folder **folderp) {
    weir_npy_folder *folder = *folderp = weir_calloc(1, sizeof *folder);
    if (!folder) return WEIR_NOMEM("for the arrays of %s", path);
    size_t length = strlen(path);
    if (length < sizeof folder->path) {
        memcpy(folder->path, path, length + 1);
        return WEIR_OK;
    }
    weir_npy_folder_close(folder);
    *folderp = NULL;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", path);
}

void weir_npy_folder_close(weir_npy_folder *folder) {
    if (!folder) return;
    for (size_t i = 0; i < folder->count; i++)
        weir_npy_map_close(folder->maps[i]);
    weir_free(folder->maps);
    weir_free(folder);
}

uint64_t weir_npy_folder_bytes(const weir_npy_folder *folder) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < folder->count; i++)
        bytes += folder->maps[i]->of_zeros ? 0 : folder->maps[i]->mapping.length;
    return bytes;
}

void weir_npy_folder_give_back(const weir_npy_folder *folder) {
    for (size_t i = 0; i < folder->count; i++) {
        const weir_mapping *of = &folder->maps[i]->mapping;
        if (of->bytes) madvise((void *)(uintptr_t)of->bytes, of->length, MADV_DONTNEED); /* advice only */
    }
}

weir_err weir_npy_folder_map(weir_npy_folder *folder, weir_npy_type type, uint64_t rows, uint64_t columns,
                             weir_npy_array *arrayp, const char *format, ...) {
    char path[PATH_BYTES_MAX];
    weir_npy_map *map = NULL;
    weir_npy_array array;
    va_list list;
    *arrayp = (weir_npy_array){.type = type};
    int length = snprintf(path, sizeof path, "%s/", folder->path);
    va_start(list, format);
    if (length < PATH_BYTES_MAX) length += vsnprintf(path + length, sizeof path - (size_t)length, format, list);
    va_end(list);
    if (length >= PATH_BYTES_MAX) return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder->path);

    /* kept, so that closing needs no list of names */
    if (!WEIR_GROW(folder->maps, folder->capacity, folder->count))
        return WEIR_NOMEM("for the arrays of %s", folder->path);
    weir_err err = weir_npy_map_open(path, &map, &array);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return WEIR_ERR(WEIR_ECORRUPT, "%s is missing; take another copy", path);
    if (err) return err;
    folder->maps[folder->count++] = map;

    if (rows == WEIR_NPY_ANY_ROWS) rows = array.shape[0];
    bool shape = columns ? array.dims == 2 && array.shape[1] == columns : array.dims == 1;
    if (array.type != type || !shape || array.shape[0] != rows)
        return WEIR_ERR(WEIR_ECORRUPT, "%s lacks the type or the %llu rows that the manifest states; take another copy",
                        path, (unsigned long long)rows);
    if ((uintptr_t)array.data % weir_npy_size(type) != 0)
        return WEIR_ERR(WEIR_ECORRUPT, "%s has numbers that are not aligned; take another copy", path);
    *arrayp = array;
    return WEIR_OK;
}

weir_err weir_npy_folder_zeros(weir_npy_folder *folder, weir_npy_type type, uint64_t rows, const void **zerosp) {
    size_t length = 0;
    *zerosp = NULL;
    if (__builtin_mul_overflow(rows + 1, weir_npy_size(type), &length) ||
        !WEIR_GROW(folder->maps, folder->capacity, folder->count))
        return WEIR_NOMEM("for the arrays of %s", folder->path);
    weir_npy_map *map = weir_calloc(1, sizeof *map);
    if (!map) return WEIR_NOMEM("for the arrays of %s", folder->path);
    void *zeros = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) {
        weir_free(map);
        return WEIR_NOMEM("for the arrays of %s", folder->path);
    }
    madvise(zeros, length, MADV_HUGEPAGE); /* advice only: one page of zeros is all that there is in either size */
    *map = (weir_npy_map){{zeros, length}, true};
    folder->maps[folder->count++] = map;
    *zerosp = zeros;
    return WEIR_OK;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

struct weir_npy_writer {
    weir_file *file;
    weir_npy_type type;
    uint64_t wanted, written; /* numbers; wanted WEIR_NPY_ANY_ROWS: the header is corrected at the end */
    size_t size;              /* bytes of one */
    size_t used;
    uint8_t bytes[WRITE_BYTES];
};

/* The header of one dimension has the same length for any number of rows, because it is padded. */
static weir_err npy_writer_put_rows(const char *path, weir_npy_type type, uint64_t rows) {
    weir_npy_array array = {.type = type, .dims = 1, .shape = {rows}};
    weir_buf head = {0};
    weir_npy_header(&array, &head);
    weir_err err = weir_buf_err(&head);
    int fd = err ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (!err && fd < 0) err = WEIR_ERRNO(errno, "cannot open %s again", path);
    if (!err && (pwrite(fd, head.bytes, head.length, 0) != (ssize_t)head.length || fsync(fd)))
        err = WEIR_ERRNO(errno ? errno : EIO, "cannot write how many numbers %s has", path);
    if (fd >= 0) close(fd);
    weir_buf_free(&head);
    return err;
}

weir_err weir_npy_writer_open_shape(const char *path, const weir_npy_array *shape, weir_npy_writer **writerp) {
    *writerp = NULL;
    weir_buf head = {0};
    weir_npy_writer *writer = weir_malloc(sizeof *writer);
    if (!writer) return WEIR_NOMEM("while writing %s", path);
    writer->file = NULL;
    writer->type = shape->type;
    writer->size = weir_npy_size(shape->type);
    writer->wanted = 1;
    WEIR_ASSERT(shape->dims <= WEIR_NPY_DIMS_MAX);
    for (uint32_t i = 0; i < shape->dims; i++)
        writer->wanted *= shape->shape[i];
    writer->written = writer->used = 0;
    weir_err err = weir_file_open(path, WEIR_FILE_CREATE, &writer->file);
    if (!err) {
        weir_npy_header(shape, &head);
        err = weir_buf_err(&head);
        if (!err) err = weir_file_append(writer->file, head.bytes, head.length);
        weir_buf_free(&head);
    }
    if (err) {
        weir_npy_writer_cancel(writer);
        return err;
    }
    *writerp = writer;
    return WEIR_OK;
}

weir_err weir_npy_writer_open(const char *path, weir_npy_type type, uint64_t rows, uint64_t columns,
                              weir_npy_writer **writerp) {
    WEIR_ASSERT(rows != WEIR_NPY_ANY_ROWS || columns == 0);
    const weir_npy_array shape = {.type = type, .dims = columns ? 2 : 1, .shape = {rows, columns}};
    return weir_npy_writer_open_shape(path, &shape, writerp);
}

static weir_err npy_writer_flush(weir_npy_writer *writer) {
    weir_err err = writer->used ? weir_file_append(writer->file, writer->bytes, writer->used) : WEIR_OK;
    writer->used = 0;
    return err;
}

weir_err weir_npy_write(weir_npy_writer *writer, const void *numbers, uint64_t count) {
    const uint8_t *p = numbers;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(writer->used < WRITE_BYTES);
    writer->written += count;
    for (uint64_t left = count * writer->size; !err && left > 0;) {
        size_t room = WRITE_BYTES - writer->used, part = left < room ? (size_t)left : room;
        memcpy(writer->bytes + writer->used, p, part);
        writer->used += part;
        p += part;
        left -= part;
        if (writer->used == WRITE_BYTES) err = npy_writer_flush(writer);
    }
    return err;
}

weir_err weir_npy_write_i64(weir_npy_writer *writer, int64_t number) {
    WEIR_ASSERT(writer->size == sizeof number);
    return weir_npy_write(writer, &number, 1);
}

uint64_t weir_npy_written(const weir_npy_writer *writer) {
    return writer->written;
}

weir_err weir_npy_writer_close(weir_npy_writer *writer) {
    if (!writer) return WEIR_OK;
    weir_err err = npy_writer_flush(writer);
    if (!err && writer->wanted == WEIR_NPY_ANY_ROWS) {
        err = npy_writer_put_rows(weir_file_path(writer->file), writer->type, writer->written);
    } else if (!err && writer->written != writer->wanted) {
        err = WEIR_ERR(WEIR_EINVAL, "%s was given %llu numbers and announced with %llu", weir_file_path(writer->file),
                       (unsigned long long)writer->written, (unsigned long long)writer->wanted);
    }
    if (!err) err = weir_file_sync(writer->file);
    weir_err_keep(&err, weir_file_close(writer->file));
    weir_free(writer);
    return err;
}

void weir_npy_writer_cancel(weir_npy_writer *writer) {
    if (!writer) return;
    weir_file_close(writer->file);
    weir_free(writer);
}

weir_err weir_npy_writer_end(weir_npy_writer *writer, weir_err err) {
    if (!err) return weir_npy_writer_close(writer);
    weir_npy_writer_cancel(writer);
    return err;
}
