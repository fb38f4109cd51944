/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c - windows of plain arrays: a window is a place in them, and nothing is copied, except where a deletion has
 * taken an edge out of one: what is left of it is gathered.
 *
 * The arrays may be files that were mapped: what they say is checked before it is followed, one comparison at each use,
 * so that opening them needs no walk over all of it.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sampler_private.h"

/* Neighbour and time of an edge that is seen, side by side as after a load. */
typedef struct arrays_seen_edge {
    int64_t neighbor, time_us;
} arrays_seen_edge;

typedef struct arrays_source {
    weir_sample_source base; /* first: the handle is this */
    weir_sample_arrays arrays;
    arrays_seen_edge *seen; /* of the windows at hand that are gathered; three arrays of one capacity */
    uint64_t *seen_events, *seen_places;
    size_t seen_capacity;
    void *owned; /* or NULL */
    void (*owned_free)(void *owned);
    weir_sample_csr csrs[];
} arrays_source;

static const arrays_source *arrays_of(const weir_sample_source *source) {
    return (const arrays_source *)(const void *)source;
}

static arrays_source *arrays_of_own(weir_sample_source *source) {
    return (arrays_source *)(void *)source;
}

static const weir_sample_csr *arrays_csr_of(const weir_sample_source *source, const weir_sample_ask *ask) {
    return &arrays_of(source)->csrs[ask->relation * 2u + ask->direction];
}

static const uint8_t *arrays_at(const void *array, uint64_t index, uint32_t stride) {
    return (const uint8_t *)array + index * stride;
}

static int64_t arrays_word_at(const void *array, uint64_t index, uint32_t stride) {
    int64_t word;
    memcpy(&word, arrays_at(array, index, stride), sizeof word);
    return word;
}

static int64_t arrays_time_at(const weir_sample_csr *csr, int64_t edge) {
    return csr->times ? arrays_word_at(csr->times, (uint64_t)edge, csr->edge_stride) : csr->newest_us;
}

static void arrays_time_ahead(const weir_sample_csr *csr, int64_t edge) {
    if (csr->times) __builtin_prefetch(arrays_at(csr->times, (uint64_t)edge, csr->edge_stride));
}

static weir_err arrays_ids(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids) {
    const weir_sample_arrays *arrays = &arrays_of(source)->arrays;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t type = targets[i].type;
        if (targets[i].vertex >= arrays->vertices[type]) {
            return WEIR_ERR(WEIR_EINVAL, "there is no vertex %llu of type %u, only %llu",
                            (unsigned long long)targets[i].vertex, type, (unsigned long long)arrays->vertices[type]);
        }
        ids[i] = (uint64_t)arrays_word_at(arrays->ids[type], (uint64_t)targets[i].vertex, arrays->id_stride);
    }
    return WEIR_OK;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

/* The edges of one parent; then those that its target sees. */
typedef struct arrays_span {
    int64_t begin, end;
} arrays_span;

typedef struct arrays_search {
    int64_t low, high;
    uint32_t parent;
} arrays_search;

/* The whole list of each parent. */
static weir_err arrays_fetch_lists(const weir_sample_csr *csr, const weir_sample_ask *ask, arrays_span *spans) {
    for (uint32_t i = 0; i < ask->count; i++) {
        if (ask->parents[i] >= csr->vertices) {
            return WEIR_ERR(WEIR_ECORRUPT, "a neighbour is vertex %llu of type %u, of which there are only %llu",
                            (unsigned long long)ask->parents[i], ask->type, (unsigned long long)csr->vertices);
        }
        __builtin_prefetch(arrays_at(csr->indptr, ask->parents[i], csr->vertex_stride));
        __builtin_prefetch(arrays_at(csr->ids, ask->parents[i], csr->id_stride));
    }
    for (uint32_t i = 0; i < ask->count; i++) {
        int64_t begin = arrays_word_at(csr->indptr, ask->parents[i], csr->vertex_stride);
        int64_t end = arrays_word_at(csr->indptr, ask->parents[i] + 1, csr->vertex_stride);
        if (begin < 0 || end < begin || (uint64_t)end > csr->edges) {
            return WEIR_ERR(WEIR_ECORRUPT, "vertex %llu has edges %lld to %lld of %llu; verify the arrays",
                            (unsigned long long)ask->parents[i], (long long)begin, (long long)end,
                            (unsigned long long)csr->edges);
        }
        arrays_time_ahead(csr, begin);
        spans[i] = (arrays_span){begin, end};
    }
    return WEIR_OK;
}

/* Halves what is left of a search: [low, high) holds the first edge that is older. Times fall. */
static void arrays_halve(const weir_sample_csr *csr, int64_t before_us, arrays_search *s) {
    int64_t middle = s->low + (s->high - s->low) / 2;
    if (arrays_time_at(csr, middle) >= before_us) {
        s->low = middle + 1;
    } else {
        s->high = middle;
    }
    arrays_time_ahead(csr, s->low + (s->high - s->low) / 2);
}

/* Moves the begin of each list to its first edge that is older: all searches a step each, so that misses overlap. */
static void arrays_seek_begins(const weir_sample_csr *csr, const weir_sample_ask *ask, arrays_span *spans) {
    arrays_search searches[WEIR_SAMPLE_BATCH];
    uint32_t left = 0;
    for (uint32_t i = 0; i < ask->count; i++) {
        int64_t begin = spans[i].begin, end = spans[i].end;
        if (begin == end || csr->newest_us < ask->before_us[i] || arrays_time_at(csr, begin) < ask->before_us[i])
            continue;
        searches[left++] = (arrays_search){begin + 1, end, i};
        arrays_time_ahead(csr, begin + 1 + (end - begin - 1) / 2);
    }
    while (left > 0) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < left; i++) {
            arrays_search s = searches[i];
            if (s.low < s.high) arrays_halve(csr, ask->before_us[s.parent], &s);
            if (s.low < s.high) {
                searches[kept++] = s;
            } else {
                spans[s.parent].begin = s.low;
            }
        }
        left = kept;
    }
}

/* --- windows with holes ------------------------------------------------------------------------------------------- */

static weir_err arrays_seen_reserve(arrays_source *s, size_t capacity) {
    if (capacity <= s->seen_capacity) return WEIR_OK;
    arrays_seen_edge *seen = weir_realloc_array(s->seen, capacity, sizeof *seen);
    if (seen) s->seen = seen;
    uint64_t *events = weir_realloc_array(s->seen_events, capacity, sizeof *events);
    if (events) s->seen_events = events;
    uint64_t *places = weir_realloc_array(s->seen_places, capacity, sizeof *places);
    if (places) s->seen_places = places;
    if (!seen || !events || !places) return WEIR_NOMEM("for windows with deleted edges");
    s->seen_capacity = capacity;
    return WEIR_OK;
}

/* One that is never deleted is seen by who asks for all, too. */
static bool arrays_sees(const weir_sample_csr *csr, int64_t edge, int64_t before_us) {
    return csr->until_us[edge] > before_us || csr->until_us[edge] == INT64_MAX;
}

static void arrays_gather(arrays_source *s, const weir_sample_csr *csr, arrays_span list, int64_t before_us,
                          uint32_t limit, size_t at, weir_sample_window *window) {
    uint32_t count = 0;
    for (int64_t edge = list.begin; edge < list.end && count < limit; edge++) {
        if (!arrays_sees(csr, edge, before_us)) continue;
        s->seen[at + count] = (arrays_seen_edge){arrays_word_at(csr->neighbors, (uint64_t)edge, csr->edge_stride),
                                                 arrays_time_at(csr, edge)};
        s->seen_events[at + count] = csr->events ? csr->events[edge] : 0;
        s->seen_places[at + count++] = (uint64_t)edge;
    }
    window->neighbors = (const uint8_t *)&s->seen[at].neighbor;
    window->times = (const uint8_t *)&s->seen[at].time_us;
    window->events = csr->events ? s->seen_events + at : NULL;
    window->places = s->seen_places + at;
    window->stride = window->times_stride = sizeof s->seen[0];
    window->count = count;
}

/* In place of the windows whose targets do not see all of it: what they see, as far as the limit. Room first, because
 * windows point into it. */
static weir_err arrays_take_out_holes(arrays_source *s, const weir_sample_csr *csr, const weir_sample_ask *ask,
                                      const arrays_span *lists, weir_sample_window *windows) {
    size_t room = 0, at = 0;
    uint32_t rooms[WEIR_SAMPLE_BATCH]; /* 0: its target sees all of the first `limit` */
    WEIR_ASSERT(ask->count <= WEIR_SAMPLE_BATCH);
    for (uint32_t i = 0; i < ask->count; i++) {
        int64_t left = lists[i].end - lists[i].begin;
        uint32_t looked = left < (int64_t)ask->limit ? (uint32_t)left : ask->limit, seen = 0;
        while (seen < looked && arrays_sees(csr, lists[i].begin + seen, ask->before_us[i]))
            seen++;
        room += rooms[i] = seen < looked ? looked : 0;
    }
    weir_err err = arrays_seen_reserve(s, room);
    for (uint32_t i = 0; !err && i < ask->count; i++) {
        if (rooms[i]) arrays_gather(s, csr, lists[i], ask->before_us[i], ask->limit, at, &windows[i]);
        WEIR_ASSERT(!rooms[i] || windows[i].count <= rooms[i]);
        at += rooms[i];
    }
    return err;
}

static weir_err arrays_windows(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows) {
    const weir_sample_csr *csr = arrays_csr_of(source, ask);
    arrays_span spans[WEIR_SAMPLE_BATCH];
    WEIR_ASSERT(ask->count <= WEIR_SAMPLE_BATCH && ask->parents);
    weir_err err = arrays_fetch_lists(csr, ask, spans);
    if (err) return err;
    arrays_seek_begins(csr, ask, spans);
    for (uint32_t i = 0; i < ask->count; i++) {
        int64_t begin = spans[i].begin, before_us = ask->before_us[i], gone_us;
        if (!csr->until_us && spans[i].end - begin > ask->limit) spans[i].end = begin + ask->limit;
        /* Expiry ends a list from its old side: at or below this time, an edge is gone. */
        if (csr->expire_us && before_us != WEIR_BEFORE_ALL &&
            !__builtin_sub_overflow(before_us, csr->expire_us, &gone_us)) {
            arrays_search s = {begin, spans[i].end, i};
            while (s.low < s.high)
                arrays_halve(csr, gone_us + 1, &s);
            spans[i].end = s.low;
        }
        int64_t count = spans[i].end - begin;
        WEIR_ASSERT(begin >= 0 && count >= 0 && (uint64_t)spans[i].end <= csr->edges);
        windows[i] = (weir_sample_window){
            .neighbors = arrays_at(csr->neighbors, (uint64_t)begin, csr->edge_stride),
            .times = csr->times ? arrays_at(csr->times, (uint64_t)begin, csr->edge_stride)
                                : (const uint8_t *)&csr->newest_us,
            .events = csr->events ? csr->events + begin : NULL,
            .first = (uint64_t)begin,
            .id = (uint64_t)arrays_word_at(csr->ids, ask->parents[i], csr->id_stride),
            .stride = csr->edge_stride,
            .times_stride = csr->times ? csr->edge_stride : 0,
            .count = count > ask->limit ? ask->limit : (uint32_t)count,
        };
    }
    return csr->until_us ? arrays_take_out_holes(arrays_of_own(source), csr, ask, spans, windows) : WEIR_OK;
}

static weir_err arrays_no_column(const weir_sample_ask *ask, const char *kind, uint32_t feature) {
    return WEIR_ERR(WEIR_EINVAL, "relation %u has no %s feature %u", ask->relation, kind, feature);
}

static weir_err arrays_numbers(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                               uint32_t feature, float *numbers) {
    const weir_sample_csr *csr = arrays_csr_of(source, ask);
    const float *column = feature < csr->feature_count ? csr->features[feature] : NULL;
    if (!column) return arrays_no_column(ask, "number", feature);
    if (!window->places) memcpy(numbers, column + window->first, window->count * sizeof *numbers);
    for (uint32_t i = 0; window->places && i < window->count; i++)
        numbers[i] = column[window->places[i]];
    return WEIR_OK;
}

static weir_err arrays_codes(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                             uint32_t feature, uint64_t *codes) {
    const weir_sample_csr *csr = arrays_csr_of(source, ask);
    const int32_t *column = feature < csr->feature_count && csr->codes ? csr->codes[feature] : NULL;
    if (!column) return arrays_no_column(ask, "category", feature);
    for (uint32_t i = 0; i < window->count; i++) {
        int32_t code = column[window->places ? window->places[i] : window->first + i];
        codes[i] = code < 0 ? 0 : (uint64_t)code + 1;
    }
    return WEIR_OK;
}

/* --- the handle --------------------------------------------------------------------------------------------------- */

static void arrays_close(weir_sample_source *source) {
    arrays_source *s = arrays_of_own(source);
    weir_free(s->seen);
    weir_free(s->seen_events);
    weir_free(s->seen_places);
    if (s->owned_free) s->owned_free(s->owned);
    weir_free(s);
}

void weir_sample_arrays_own(weir_sample_source *source, void *owned, void (*release)(void *owned)) {
    arrays_source *s = arrays_of_own(source);
    WEIR_ASSERT(source->close == arrays_close && !s->owned_free);
    s->owned = owned;
    s->owned_free = release;
}

void *weir_sample_arrays_owned(const weir_sample_source *source) {
    return arrays_of(source)->owned;
}

weir_err weir_sample_over_arrays(const weir_sample_arrays *arrays, weir_sample_source **sourcep) {
    *sourcep = NULL;
    arrays_source *s = weir_calloc(1, sizeof *s + 2u * arrays->relations * sizeof s->csrs[0]);
    if (!s) return WEIR_NOMEM("for a source of samples");
    s->arrays = *arrays;
    if (s->arrays.id_stride == 0) s->arrays.id_stride = sizeof(uint64_t);
    for (uint32_t i = 0; i < 2 * arrays->relations; i++) {
        s->csrs[i] = arrays->csrs[i];
        if (s->csrs[i].vertex_stride == 0) s->csrs[i].vertex_stride = sizeof(int64_t);
        if (s->csrs[i].id_stride == 0) s->csrs[i].id_stride = s->csrs[i].vertex_stride;
        if (s->csrs[i].edge_stride == 0) s->csrs[i].edge_stride = sizeof(int64_t);
        WEIR_ASSERT(s->csrs[i].times || s->csrs[i].edges == 0 || s->csrs[i].newest_us < INT64_MAX);
    }
    s->arrays.csrs = s->csrs;
    s->base = (weir_sample_source){
        .types = arrays->types,
        .relations = arrays->relations,
        .ends = arrays->ends,
        .ids = arrays_ids,
        .windows = arrays_windows,
        .numbers = arrays_numbers,
        .codes = arrays_codes,
        .close = arrays_close,
    };
    *sourcep = &s->base;
    return WEIR_OK;
}
