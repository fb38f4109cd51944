/* SPDX-License-Identifier: Apache-2.0 */
/* owners.c - which rank owns which vertex of the snapshot, from the folder that `weir partition` made. */
#include <stdio.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "train_private.h"

struct weir_cmd_owners {
    uint32_t types;
    uint32_t **of; /* [type][vertex] */
};

static weir_err owners_read_type(weir_cmd_owners *owners, const char *folder, const weir_part *part, uint32_t type,
                                 uint64_t vertices) {
    char path[4096];
    weir_npy_map *map;
    weir_npy_array array;
    snprintf(path, sizeof path, "%s/map/%s.npy", folder, weir_schema_vertex_at(weir_part_schema(part), type)->name);
    weir_err err = weir_npy_map_open(path, &map, &array);
    if (err) return err;
    if (array.type != WEIR_NPY_I64 || array.dims != 1 || array.count != vertices) {
        err = WEIR_ERR(WEIR_EDATA, "%s is of another snapshot; partition this one", path);
        goto done;
    }
    owners->of[type] = weir_calloc(vertices + 1, sizeof *owners->of[type]);
    if (!owners->of[type]) {
        err = WEIR_NOMEM("for the owners of vertices");
        goto done;
    }
    const int64_t *numbers = array.data, end = weir_part_starts(part, type)[weir_part_count(part)];
    for (uint64_t i = 0; i < vertices; i++) {
        if (numbers[i] < 0 || numbers[i] >= end) {
            err = WEIR_ERR(WEIR_ECORRUPT, "%s: number %lld of vertex %llu leads outside; partition the snapshot anew",
                           path, (long long)numbers[i], (unsigned long long)i);
            goto done;
        }
        owners->of[type][i] = weir_part_owner(part, type, numbers[i]);
        WEIR_ASSERT(owners->of[type][i] < weir_part_count(part));
    }
done:
    weir_npy_map_close(map);
    return err;
}

static weir_err owners_check(const weir_part *part, const weir_snapshot *snapshot, const char *folder, uint32_t ranks) {
    if (weir_part_count(part) != ranks)
        return WEIR_ERR(WEIR_EUSAGE, "%s has %u parts, but there are %u ranks; start as many by mpirun -n %u", folder,
                        weir_part_count(part), ranks, weir_part_count(part));
    if (weir_part_as_of_us(part) != weir_snapshot_as_of_us(snapshot) ||
        weir_schema_hash(weir_part_schema(part)) != weir_schema_hash(weir_snapshot_schema(snapshot)))
        return WEIR_ERR(WEIR_EDATA, "%s is of another snapshot; partition this one", folder);
    return WEIR_OK;
}

weir_err weir_cmd_owners_open(const char *folder, const weir_snapshot *snapshot, uint32_t ranks,
                              weir_cmd_owners **ownersp) {
    const weir_part_opts opts = {.verify = false};
    weir_cmd_owners *owners = *ownersp = weir_calloc(1, sizeof *owners);
    weir_part *part = NULL;
    char path[4096];
    if (!owners) return WEIR_NOMEM("for the owners of vertices");
    owners->types = weir_schema_vertex_count(weir_snapshot_schema(snapshot));
    owners->of = weir_calloc(owners->types, sizeof *owners->of);
    snprintf(path, sizeof path, "%s/part-0", folder);
    weir_err err = owners->of ? weir_part_open(path, &opts, &part) : WEIR_NOMEM("for the owners of vertices");
    if (!err) err = owners_check(part, snapshot, folder, ranks);
    for (uint32_t type = 0; !err && type < owners->types; type++)
        err = owners_read_type(owners, folder, part, type, weir_snapshot_vertices_of(snapshot, type)->count);
    weir_part_close(part);
    if (!err) return WEIR_OK;
    weir_cmd_owners_close(owners);
    *ownersp = NULL;
    return err;
}

const uint32_t *const *weir_cmd_owners_of(const weir_cmd_owners *owners) {
    return (const uint32_t *const *)owners->of;
}

void weir_cmd_owners_close(weir_cmd_owners *owners) {
    if (!owners) return;
    for (uint32_t type = 0; owners->of && type < owners->types; type++)
        weir_free(owners->of[type]);
    weir_free(owners->of);
    weir_free(owners);
}
