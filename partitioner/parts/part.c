/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.c - a part, open: a snapshot, and the numbers by which other parts know its vertices. Those are checked when it
 * is opened, because whoever asks another part for a vertex follows them there.
 */
#include <stdio.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "part.h"

static weir_err part_map_numbers(weir_part *p, uint32_t type) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(p->snapshot, type);
    const char *name = weir_schema_vertex_at(weir_snapshot_schema(p->snapshot), type)->name;
    const int64_t *starts = p->manifest.starts[type];
    int64_t first = starts[p->manifest.part], behind = starts[p->manifest.part + 1];
    weir_npy_array array;
    if (v->own != (uint64_t)(behind - first)) {
        return WEIR_ERR(WEIR_EDATA,
                        "%s/manifest.json: part %u has %llu vertices of type '%s' of its own, but its numbers are %lld "
                        "to before %lld; take another copy of the part",
                        p->folder, p->manifest.part, (unsigned long long)v->own, name, (long long)first,
                        (long long)behind);
    }
    weir_err err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, v->count - v->own, 0, &array, "numbers/%s.npy", name);
    const int64_t *numbers = p->numbers[type] = array.data;
    for (uint64_t i = 0; !err && i < v->count - v->own; i++) {
        bool own = numbers[i] >= first && numbers[i] < behind;
        if (!own && numbers[i] >= 0 && numbers[i] < starts[p->manifest.parts]) continue;
        err = WEIR_ERR(WEIR_ECORRUPT, "%s/numbers/%s.npy: number %llu %s; take another copy of the part", p->folder,
                       name, (unsigned long long)i, own ? "is one of the part's own" : "points outside");
    }
    return err;
}

static weir_err part_map_all(weir_part *p) {
    uint32_t types = weir_schema_vertex_count(weir_snapshot_schema(p->snapshot));
    if (p->manifest.types != types) {
        return WEIR_ERR(WEIR_EDATA,
                        "%s/manifest.json: 'starts' has rows for %u vertex types, the schema has %u; take another copy "
                        "of the part",
                        p->folder, p->manifest.types, types);
    }
    weir_err err = weir_npy_folder_open(p->folder, &p->arrays);
    p->numbers = weir_calloc((size_t)types + 1, sizeof *p->numbers);
    if (!err && !p->numbers) err = WEIR_NOMEM("while opening the part %s", p->folder);
    for (uint32_t type = 0; !err && type < types; type++)
        err = part_map_numbers(p, type);
    return err;
}

weir_err weir_part_open(const char *folder, const weir_part_opts *opts, weir_part **partp) {
    const weir_snapshot_opts as_part = {.verify = opts->verify, .part = true};
    *partp = NULL;
    weir_part *p = weir_calloc(1, sizeof *p);
    if (!p) return WEIR_NOMEM("while opening the part %s", folder);
    int length = snprintf(p->folder, sizeof p->folder, "%s", folder);
    weir_err err =
        length < (int)sizeof p->folder ? WEIR_OK : WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    /* Before the rest: of a part of an earlier version it says so. */
    if (!err) err = weir_part_manifest_read(p->folder, &p->manifest);
    if (!err) err = weir_snapshot_open(p->folder, &as_part, &p->snapshot);
    if (!err) err = part_map_all(p);
    if (!err && opts->verify) err = weir_snapshot_check(p->snapshot);
    if (err) {
        weir_part_close(p);
    } else {
        *partp = p;
    }
    return err;
}

void weir_part_close(weir_part *p) {
    if (!p) return;
    weir_npy_folder_close(p->arrays);
    weir_free(p->numbers);
    weir_snapshot_close(p->snapshot);
    weir_part_manifest_free(&p->manifest);
    weir_free(p);
}

/* --- looking --------------------------------------------------------------------------------------------------- */

const weir_snapshot *weir_part_snapshot(const weir_part *part) {
    return part->snapshot;
}

uint32_t weir_part_index(const weir_part *part) {
    return part->manifest.part;
}

uint32_t weir_part_count(const weir_part *part) {
    return part->manifest.parts;
}

uint32_t weir_part_depth(const weir_part *part) {
    return part->manifest.depth;
}

const char *weir_part_cutting(const weir_part *part) {
    return part->manifest.cutting;
}

const int64_t *weir_part_starts(const weir_part *part, uint32_t type) {
    WEIR_ASSERT(type < part->manifest.types);
    return part->manifest.starts[type];
}

int64_t weir_part_number(const weir_part *part, uint32_t type, uint64_t place) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part->snapshot, type);
    WEIR_ASSERT(place < v->count);
    if (place >= v->own) return part->numbers[type][place - v->own];
    return weir_part_starts(part, type)[part->manifest.part] + (int64_t)place;
}

uint32_t weir_part_owner(const weir_part *part, uint32_t type, int64_t number) {
    const int64_t *starts = weir_part_starts(part, type);
    uint32_t low = 0, high = part->manifest.parts;
    WEIR_ASSERT(number >= 0 && number < starts[high]);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (starts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}
