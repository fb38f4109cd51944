/* SPDX-License-Identifier: Apache-2.0 */
/* npy_folder.c - the arrays of a folder, mapped and checked against what a manifest states of them. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/snapshot/npy.h>

#define PATH_BYTES_MAX 4096

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

    if (folder->count == folder->capacity) { /* kept, so that closing needs no list of names */
        size_t capacity = folder->capacity ? 2 * folder->capacity : 64;
        weir_npy_map **grown = weir_realloc_array(folder->maps, capacity, sizeof *grown);
        if (!grown) return WEIR_NOMEM("for the arrays of %s", folder->path);
        folder->maps = grown;
        folder->capacity = capacity;
    }
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
