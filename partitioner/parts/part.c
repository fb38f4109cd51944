/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.c - a part, open: a snapshot, and the numbers by which other parts know its vertices. Those are checked when it
 * is opened, because whoever asks another part for a vertex follows them there.
 */
#include <stdio.h>

#include <weir/store/aggregate/aggregate.h>
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
    if ((uint64_t)p->manifest.listed[type] > v->count) {
        return WEIR_ERR(WEIR_EDATA,
                        "%s/manifest.json: 'listed' says that %lld vertices of type '%s' have lists, but only %llu are "
                        "here; take another copy of the part",
                        p->folder, (long long)p->manifest.listed[type], name, (unsigned long long)v->count);
    }
    weir_err err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, v->count - v->own, 0, &array, "numbers/%s.npy", name);
    const int64_t *numbers = p->numbers[type] = array.data;
    uint64_t *rises = p->rises[type] = weir_calloc(p->manifest.depth + 2u, sizeof *rises);
    if (!err && !rises) err = WEIR_NOMEM("while opening the part %s", p->folder);
    for (uint64_t i = 0; !err && i < v->count - v->own; i++) {
        bool own = numbers[i] >= first && numbers[i] < behind, step = i == 0 || numbers[i] <= numbers[i - 1];
        bool outside = numbers[i] < 0 || numbers[i] >= starts[p->manifest.parts];
        if (own || outside || (step && p->rise_counts[type] > p->manifest.depth)) {
            err = WEIR_ERR(WEIR_ECORRUPT, "%s/numbers/%s.npy: number %llu %s; take another copy of the part", p->folder,
                           name, (unsigned long long)i,
                           own       ? "is one of the part's own"
                           : outside ? "points outside"
                                     : "does not rise within its step");
        } else if (step) {
            rises[p->rise_counts[type]++] = i;
        }
    }
    if (!err) rises[p->rise_counts[type]] = v->count - v->own;
    return err;
}

/* PARTS-P6: without it, a rank would take what it does not see for what is not there. */
static weir_err part_check_ends(const weir_part *p) {
    const weir_schema *schema = weir_snapshot_schema(p->snapshot);
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
        const bool further = weir_parts_bring(aggregate, p->manifest.parts, p->manifest.depth);
        if (further == weir_snapshot_has_precomputed(p->snapshot, i)) continue;
        return WEIR_ERR(
            WEIR_EDATA,
            "%s/manifest.json: 'aggregates' %s aggregate '%s', which looks %u hops far in a part of depth %u; "
            "take another copy of the part",
            p->folder, further ? "lacks" : "has", aggregate->name, weir_aggregates_hops(aggregate), p->manifest.depth);
    }
    return WEIR_OK;
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
    p->rises = weir_calloc((size_t)types + 1, sizeof *p->rises);
    p->rise_counts = weir_calloc((size_t)types + 1, sizeof *p->rise_counts);
    if (!err && !(p->numbers && p->rises && p->rise_counts)) err = WEIR_NOMEM("while opening the part %s", p->folder);
    for (uint32_t type = 0; !err && type < types; type++)
        err = part_map_numbers(p, type);
    return err ? err : part_check_ends(p);
}

/* PARTS-P2, PARTS-P3: a vertex of others that has its lists here was led to by one of their edges; the rest have
 * none. */
static weir_err part_check_listed(const weir_part *p) {
    const weir_schema *schema = weir_snapshot_schema(p->snapshot);
    for (uint32_t type = 0; type < weir_schema_vertex_count(schema); type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(p->snapshot, type);
        for (uint64_t place = v->own; place < v->count; place++) {
            bool has = false;
            for (uint32_t i = 0; i < 2 * weir_schema_relation_count(schema); i++) {
                const weir_schema_relation *r = weir_schema_relation_at(schema, i / 2);
                const weir_snapshot_edges *e = weir_snapshot_edges_of(p->snapshot, i / 2, i % 2);
                if ((i % 2 == WEIR_OUT ? r->from : r->to) == type) has |= e->indptr[place + 1] > e->indptr[place];
            }
            if (has == (place < weir_part_listed(p, type))) continue;
            return WEIR_ERR(WEIR_ECORRUPT,
                            "%s: 'listed' is wrong about vertex %llu of type '%s', which has %s; take another copy of "
                            "the part",
                            p->folder, (unsigned long long)place, weir_schema_vertex_at(schema, type)->name,
                            has ? "edges" : "no edge");
        }
    }
    return WEIR_OK;
}

weir_err weir_part_open(const char *folder, const weir_part_opts *opts, weir_part **partp) {
    const weir_snapshot_opts as_part = {.verify = opts->verify, .load = opts->load, .part = true};
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
    if (!err && opts->verify) err = part_check_listed(p);
    if (err) {
        weir_part_close(p);
        return err;
    }
    if (opts->verify) { /* what was read for that alone; who uses the part reads less */
        weir_snapshot_give_back(p->snapshot);
        weir_npy_folder_give_back(p->arrays);
    }
    *partp = p;
    return WEIR_OK;
}

void weir_part_close(weir_part *p) {
    if (!p) return;
    weir_npy_folder_close(p->arrays);
    weir_free(p->numbers);
    for (uint32_t type = 0; p->rises && type < p->manifest.types; type++)
        weir_free(p->rises[type]);
    weir_free(p->rises);
    weir_free(p->rise_counts);
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

uint64_t weir_part_listed(const weir_part *part, uint32_t type) {
    WEIR_ASSERT(type < part->manifest.types);
    return (uint64_t)part->manifest.listed[type];
}

int64_t weir_part_number(const weir_part *part, uint32_t type, uint64_t place) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part->snapshot, type);
    WEIR_ASSERT(place < v->count);
    if (place >= v->own) return part->numbers[type][place - v->own];
    return weir_part_starts(part, type)[part->manifest.part] + (int64_t)place;
}

void weir_part_number_ahead(const weir_part *part, uint32_t type, uint64_t place) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part->snapshot, type);
    if (place >= v->own && place < v->count) __builtin_prefetch(&part->numbers[type][place - v->own]);
}

bool weir_part_find(const weir_part *part, uint32_t type, int64_t number, uint64_t *placep) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part->snapshot, type);
    const int64_t *starts = weir_part_starts(part, type) + part->manifest.part, *numbers = part->numbers[type];
    *placep = (uint64_t)(number - starts[0]);
    if (number >= starts[0] && number < starts[1]) return true;
    for (uint32_t step = 0; step < part->rise_counts[type]; step++) {
        uint64_t low = part->rises[type][step], high = part->rises[type][step + 1];
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (numbers[middle] < number) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        *placep = v->own + low;
        if (low < part->rises[type][step + 1] && numbers[low] == number) return true;
    }
    return false;
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
