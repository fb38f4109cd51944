/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c - which rows stay, and their tables. They are encoded by the code that encodes those of batches. */
#include <stdlib.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "resident.h"

#define RESIDENT_AT_ONCE   4096u /* rows, on their way to the kernels' memory */
#define RESIDENT_NO_MEMORY "for input rows that stay; lower --resident"

typedef struct resident_type {
    weir_train_resident seen; /* what others see of it */
    weir_real *table;
    uint32_t *slots;
    uint64_t *vertices; /* those whose rows stay, until these are encoded */
    size_t room;
} resident_type;

struct weir_train_residents {
    const weir_kernels *kernels;
    resident_type *types;
    uint32_t type_count;
};

/* What is said of a target's ends is of the target, and not of the vertex. */
static bool resident_may_stay(const weir_train_cache_opts *o, uint32_t type) {
    return weir_nn_sees(o->shape, type) && weir_nn_vertex(o->shape, type)->width > 0 &&
           !weir_aggregates_of_ends(weir_snapshot_schema(o->owners.snapshot), type) &&
           weir_snapshot_vertices_of(o->owners.snapshot, type)->count < WEIR_NO_SLOT;
}

static bool resident_is_own(const weir_train_cache_opts *o, uint32_t type, uint64_t vertex) {
    return weir_train_owner(&o->owners, type, vertex) == o->owners.rank;
}

static weir_err resident_take(resident_type *t, uint64_t vertex) {
    size_t count = t->seen.count;
    if (!WEIR_GROW(t->vertices, t->room, count)) return WEIR_NOMEM(RESIDENT_NO_MEMORY);
    t->vertices[t->seen.count++] = vertex;
    return WEIR_OK;
}

static weir_err resident_take_all(const weir_train_residents *r, const weir_train_cache_opts *o) {
    weir_err err = WEIR_OK;
    for (uint32_t type = 0; type < r->type_count; type++) {
        const uint64_t vertices = weir_snapshot_vertices_of(o->owners.snapshot, type)->count;
        for (uint64_t i = 0; !err && resident_may_stay(o, type) && i < vertices; i++)
            if (resident_is_own(o, type, i)) err = resident_take(&r->types[type], i);
    }
    return err;
}

/* Those that batches read with the highest chance. */
static weir_err resident_take_some(const weir_train_residents *r, const weir_train_cache_opts *o) {
    double **weights = weir_calloc(r->type_count, sizeof *weights);
    weir_train_candidate *list = NULL;
    size_t room = 0, count = 0;
    weir_err err = weights ? weir_train_weigh(o, weights) : WEIR_NOMEM(RESIDENT_NO_MEMORY);
    for (uint32_t type = 0; !err && type < r->type_count; type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(o->owners.snapshot, type);
        for (uint64_t i = 0; !err && resident_may_stay(o, type) && i < v->count; i++) {
            if (!resident_is_own(o, type, i)) continue;
            if (WEIR_GROW(list, room, count))
                list[count++] = (weir_train_candidate){weights[type][i], v->ids[i].low, i, type};
            else
                err = WEIR_NOMEM(RESIDENT_NO_MEMORY);
        }
    }
    if (count) qsort(list, count, sizeof *list, weir_train_by_weight);
    for (size_t i = 0; !err && i < (size_t)(o->share * (double)count); i++)
        err = resident_take(&r->types[list[i].type], list[i].vertex);
    for (uint32_t type = 0; weights && type < r->type_count; type++)
        weir_free(weights[type]);
    weir_free(weights);
    weir_free(list);
    return err;
}

/* In the order in which they were taken, which is that of their numbers where all vertices of a type were. */
static weir_err resident_place(const weir_train_residents *r, const weir_train_cache_opts *o, uint32_t type) {
    resident_type *t = &r->types[type];
    const uint64_t vertices = weir_snapshot_vertices_of(o->owners.snapshot, type)->count;
    if (o->share >= 1 && t->seen.count == vertices) return WEIR_OK;
    t->seen.place_of = weir_calloc(vertices, sizeof *t->seen.place_of);
    if (!t->seen.place_of) return WEIR_NOMEM(RESIDENT_NO_MEMORY);
    memset(t->seen.place_of, 0xff, vertices * sizeof *t->seen.place_of); /* WEIR_NO_SLOT */
    for (uint32_t i = 0; i < t->seen.count; i++)
        t->seen.place_of[t->vertices[i]] = i;
    return WEIR_OK;
}

/* As weir_train_batch_encode would (TRAIN-D1). */
static weir_err resident_fill(const weir_train_residents *r, const weir_train_cache_opts *o, weir_inputs *inputs,
                              uint32_t type) {
    resident_type *t = &r->types[type];
    const weir_nn_inputs *of = weir_nn_vertex(o->shape, type);
    const size_t width = of->width;
    weir_real *numbers = weir_calloc(RESIDENT_AT_ONCE * width, sizeof *numbers);
    int64_t *before_us = weir_calloc(RESIDENT_AT_ONCE, sizeof *before_us);
    void *table = NULL;
    t->slots = weir_calloc((size_t)t->seen.count * of->category_count + 1, sizeof *t->slots);
    t->seen.slots = t->slots;
    weir_err err = numbers && before_us && t->slots ? WEIR_OK : WEIR_NOMEM(RESIDENT_NO_MEMORY);
    for (uint32_t i = 0; !err && i < RESIDENT_AT_ONCE; i++)
        before_us[i] = o->targets->from_us[WEIR_TARGETS_TRAIN];
    if (!err) err = r->kernels->alloc(r->kernels, t->seen.count * width * sizeof *numbers, &table);
    if (weir_err_is(err, WEIR_ENOMEM)) err = WEIR_NOMEM(RESIDENT_NO_MEMORY);
    t->seen.table = t->table = table;
    for (uint32_t begin = 0, count; !err && begin < t->seen.count; begin += count) {
        count = t->seen.count - begin < RESIDENT_AT_ONCE ? t->seen.count - begin : RESIDENT_AT_ONCE;
        const weir_sample_vertices some = {
            .vertices = t->vertices + begin, .before_us = before_us, .count = count, .type = (uint16_t)type};
        err = weir_inputs_rows(inputs, &some, numbers,
                               of->category_count ? t->slots + (size_t)begin * of->category_count : NULL);
        if (!err) r->kernels->to_device(r->kernels, t->table + begin * width, numbers, count * width * sizeof *numbers);
    }
    if (!err) err = r->kernels->finish(r->kernels);
    weir_free(numbers);
    weir_free(before_us);
    weir_free(t->vertices);
    t->vertices = NULL;
    return err;
}

static weir_err resident_fill_all(const weir_train_residents *r, const weir_train_cache_opts *o, bool *anyp) {
    weir_sample_source *source = NULL;
    weir_inputs *inputs = NULL;
    weir_err err = weir_sample_over_snapshot(o->owners.snapshot, &source);
    *anyp = false;
    if (!err) err = weir_inputs_open(o->shape, weir_snapshot_schema(o->owners.snapshot), source, &inputs);
    for (uint32_t type = 0; !err && type < r->type_count; type++) {
        if (r->types[type].seen.count == 0) continue;
        *anyp = true;
        err = resident_place(r, o, type);
        if (!err) err = resident_fill(r, o, inputs, type);
    }
    weir_inputs_close(inputs);
    weir_sample_source_close(source);
    return err;
}

weir_err weir_train_residents_open(const weir_train_cache_opts *opts, const weir_kernels *kernels,
                                   weir_train_residents **residentsp) {
    bool any = false;
    *residentsp = NULL;
    if (!(opts->share > 0)) return WEIR_OK;
    if (!opts->targets->one_time)
        return WEIR_ERR(WEIR_EINVAL, "rows that stay are of graphs without times: here a row depends on the time of "
                                     "its target; omit --resident");
    weir_train_residents *r = weir_calloc(1, sizeof *r);
    if (!r) return WEIR_NOMEM(RESIDENT_NO_MEMORY);
    r->kernels = kernels;
    r->type_count = weir_nn_types(opts->shape);
    r->types = weir_calloc(r->type_count, sizeof *r->types);
    weir_err err = r->types ? WEIR_OK : WEIR_NOMEM(RESIDENT_NO_MEMORY);
    if (!err) err = opts->share >= 1 ? resident_take_all(r, opts) : resident_take_some(r, opts);
    if (!err) err = resident_fill_all(r, opts, &any);
    if (err || !any) {
        weir_train_residents_close(r);
        return err;
    }
    *residentsp = r;
    return WEIR_OK;
}

void weir_train_residents_close(weir_train_residents *residents) {
    if (!residents) return;
    for (uint32_t type = 0; residents->types && type < residents->type_count; type++) {
        resident_type *t = &residents->types[type];
        residents->kernels->release(residents->kernels, t->table);
        weir_free(t->slots);
        weir_free(t->vertices);
        weir_free(t->seen.place_of);
    }
    weir_free(residents->types);
    weir_free(residents);
}

const weir_train_resident *weir_train_residents_of(const weir_train_residents *residents, uint32_t type) {
    return residents && residents->types[type].table ? &residents->types[type].seen : NULL;
}
