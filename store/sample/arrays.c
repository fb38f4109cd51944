/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c - windows of plain arrays: a window is a place in them, nothing is copied.
 *
 * The arrays may be files that were mapped: what they say is checked before it is followed, one comparison at each use,
 * so that opening them needs no walk over all of it.
 */
#include <weir/base/alloc.h>

#include "sampler_private.h"

typedef struct arrays_source {
    weir_sample_source base; /* first: the handle is this */
    weir_sample_arrays arrays;
} arrays_source;

static const arrays_source *arrays_of(const weir_sample_source *source) {
    return (const arrays_source *)(const void *)source;
}

static weir_err no_vertex(weir_vertex vertex, uint16_t type, uint64_t vertices) {
    return WEIR_ERR(WEIR_EINVAL, "there is no vertex %llu of type %u, only %llu", (unsigned long long)vertex, type,
                    (unsigned long long)vertices);
}

static weir_err ids(weir_sample_source *source, uint16_t type, const weir_vertex *vertices, uint32_t count,
                    weir_vertex *ids) {
    const weir_sample_arrays *arrays = &arrays_of(source)->arrays;
    for (uint32_t i = 0; i < count; i++) {
        if (vertices[i] >= arrays->vertices[type]) return no_vertex(vertices[i], type, arrays->vertices[type]);
        ids[i] = arrays->ids[type][vertices[i]];
    }
    return WEIR_OK;
}

/* --- windows ---------------------------------------------------------------------------------------------------------
 * */

/* The first of [begin, end) that is older than before_us; times fall. */
static int64_t seek(const int64_t *times, int64_t begin, int64_t end, int64_t before_us) {
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (times[middle] >= before_us) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

static weir_err fetch_vertices(const weir_sample_arrays *arrays, const weir_sample_csr *csr,
                               const weir_sample_ask *ask) {
    const weir_vertex *ids = arrays->ids[ask->type];
    for (uint32_t i = 0; i < ask->count; i++) {
        if (ask->parents[i] >= csr->vertices) {
            return WEIR_ERR(WEIR_ECORRUPT, "a neighbour is vertex %llu of type %u, of which there are only %llu",
                            (unsigned long long)ask->parents[i], ask->type, (unsigned long long)csr->vertices);
        }
        __builtin_prefetch(&csr->indptr[ask->parents[i]]);
        __builtin_prefetch(&ids[ask->parents[i]]);
    }
    return WEIR_OK;
}

/* Leaves the whole list of each parent as its window. */
static weir_err fetch_lists(const weir_sample_csr *csr, const weir_sample_ask *ask, int64_t *begins, int64_t *ends) {
    for (uint32_t i = 0; i < ask->count; i++) {
        int64_t begin = csr->indptr[ask->parents[i]], end = csr->indptr[ask->parents[i] + 1];
        if (begin < 0 || end < begin || (uint64_t)end > csr->edges) {
            return WEIR_ERR(WEIR_ECORRUPT, "vertex %llu has edges %lld to %lld of %llu; verify the arrays",
                            (unsigned long long)ask->parents[i], (long long)begin, (long long)end,
                            (unsigned long long)csr->edges);
        }
        __builtin_prefetch(csr->times + begin);
        __builtin_prefetch(csr->neighbors + begin);
        begins[i] = begin;
        ends[i] = end;
    }
    return WEIR_OK;
}

/* Expiry ends a window from its old side: at or below this time, an edge is gone. */
static int64_t expired_at(const weir_sample_csr *csr, int64_t before_us) {
    int64_t gone_us;
    return __builtin_sub_overflow(before_us, csr->expire_us, &gone_us) ? INT64_MIN : gone_us;
}

static void narrow(const weir_sample_csr *csr, int64_t before_us, uint32_t limit, int64_t *beginp, int64_t *endp) {
    int64_t begin = *beginp, end = *endp;
    if (begin < end && csr->times[begin] >= before_us) begin = seek(csr->times, begin + 1, end, before_us);
    if (end - begin > limit) end = begin + limit;
    if (csr->expire_us && begin < end && before_us != WEIR_BEFORE_ALL) {
        int64_t gone_us = expired_at(csr, before_us);
        if (csr->times[end - 1] <= gone_us) end = seek(csr->times, begin, end - 1, gone_us + 1);
    }
    *beginp = begin;
    *endp = end;
}

static weir_err windows(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows) {
    const weir_sample_arrays *arrays = &arrays_of(source)->arrays;
    const weir_sample_csr *csr = &arrays->csrs[ask->relation * 2u + ask->direction];
    int64_t begins[WEIR_SAMPLE_BATCH], ends[WEIR_SAMPLE_BATCH];
    weir_err err = fetch_vertices(arrays, csr, ask);
    if (!err) err = fetch_lists(csr, ask, begins, ends);
    for (uint32_t i = 0; !err && i < ask->count; i++) {
        narrow(csr, ask->before_us[i], ask->limit, &begins[i], &ends[i]);
        int64_t begin = begins[i];
        windows[i] = (weir_sample_window){
            .neighbors = (const uint8_t *)(csr->neighbors + begin),
            .times = (const uint8_t *)(csr->times + begin),
            .events = csr->events ? (const uint8_t *)(csr->events + begin) : NULL,
            .first = (uint64_t)begin,
            .id = arrays->ids[ask->type][ask->parents[i]],
            .stride = sizeof(int64_t),
            .count = (uint32_t)(ends[i] - begin),
        };
    }
    return err;
}

static weir_err weights(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                        uint32_t feature, float *weights) {
    const weir_sample_csr *csr = &arrays_of(source)->arrays.csrs[ask->relation * 2u + ask->direction];
    const float *column = feature < csr->feature_count ? csr->features[feature] : NULL;
    if (!column)
        return WEIR_ERR(WEIR_EINVAL, "relation %u has no number feature %u to weigh by", ask->relation, feature);
    for (uint32_t i = 0; i < window->count; i++)
        weights[i] = column[window->first + i];
    return WEIR_OK;
}

/* --- the handle --------------------------------------------------------------------------------------------------- */

static void begin(weir_sample_source *source) {
    (void)source;
}

static void close_arrays(weir_sample_source *source) {
    weir_free(source);
}

weir_err weir_sample_over_arrays(const weir_sample_arrays *arrays, weir_sample_source **sourcep) {
    *sourcep = NULL;
    arrays_source *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_ERR(WEIR_ENOMEM, "no memory for a source of samples");
    s->arrays = *arrays;
    s->base = (weir_sample_source){
        .types = arrays->types,
        .relations = arrays->relations,
        .ends = arrays->ends,
        .begin = begin,
        .ids = ids,
        .windows = windows,
        .weights = weights,
        .close = close_arrays,
    };
    *sourcep = &s->base;
    return WEIR_OK;
}
