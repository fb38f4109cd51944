/* SPDX-License-Identifier: Apache-2.0 */
/* npy_folder.c - the arrays of a folder, mapped and held against what somebody's manifest says of them. */
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
    if (!folder) return WEIR_NOMEM("while opening the arrays of %s", path);
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

/* So that closing needs no list of names. */
static weir_err npy_folder_keep(weir_npy_folder *folder, weir_npy_map *map) {
    if (folder->count == folder->capacity) {
        size_t capacity = folder->capacity ? 2 * folder->capacity : 64;
        weir_npy_map **grown = weir_realloc_array(folder->maps, capacity, sizeof *grown);
        if (!grown) {
            weir_npy_map_close(map);
            return WEIR_NOMEM("while opening the arrays of %s", folder->path);
        }
        folder->maps = grown;
        folder->capacity = capacity;
    }
    folder->maps[folder->count++] = map;
    return WEIR_OK;
}

static weir_err npy_folder_check(const char *path, const weir_npy_array *array, const weir_npy_wanted *wanted) {
    uint64_t rows = wanted->rows == WEIR_NPY_ANY_ROWS ? array->shape[0] : wanted->rows;
    bool shape = wanted->columns ? array->dims == 2 && array->shape[1] == wanted->columns : array->dims == 1;
    if (array->type != wanted->type || !shape || array->shape[0] != rows)
        return WEIR_ERR(WEIR_ECORRUPT, "%s has not the type or the %llu rows that the manifest says; take another copy",
                        path, (unsigned long long)rows);
    if ((uintptr_t)array->data % weir_npy_size(wanted->type) != 0)
        return WEIR_ERR(WEIR_ECORRUPT, "%s has numbers that are not aligned; take another copy", path);
    return WEIR_OK;
}

weir_err weir_npy_folder_map(weir_npy_folder *folder, const char *name, const weir_npy_wanted *wanted,
                             weir_npy_array *arrayp) {
    char path[PATH_BYTES_MAX];
    weir_npy_map *map = NULL;
    *arrayp = (weir_npy_array){.type = wanted->type};
    int length = snprintf(path, sizeof path, "%s/%s", folder->path, name);
    if (length < 0 || length >= PATH_BYTES_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder->path);
    weir_err err = weir_npy_map_open(path, &map, arrayp);
    if (!err) err = npy_folder_keep(folder, map);
    return err ? err : npy_folder_check(path, arrayp, wanted);
}
