/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the rows that are worth it, fetched once from their owners. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "answers.h"
#include "cache.h"

#define CACHE_LINE      64u
#define CACHE_NO_MEMORY "for a cache of rows; lower --cache"

typedef struct cache_type {
    uint32_t *place_of; /* of each vertex of the snapshot */
    uint64_t vertices;
    weir_real *numbers;
    uint32_t *slots;
    int64_t *spans; /* two a row: from when on, and until before when, it is right; NULL: always */
    uint32_t count;
} cache_type;

struct weir_train_cache {
    const weir_nn_shape *shape;
    weir_train_form form;
    cache_type *types;
    uint32_t type_count;
};

int weir_train_by_weight(const void *a, const void *b) {
    const weir_train_candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Whether rows of the type have anything that may be kept. */
static bool cache_keeps(const weir_train_cache_opts *o, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(o->shape, type);
    bool any = inputs->category_count > 0 || inputs->matrix_count > 0;
    for (uint32_t i = 0; i < inputs->number_count; i++)
        any = any || o->targets->one_time || inputs->numbers[i].kind == WEIR_NN_VALUE;
    return any;
}

/* Vertices of all ranks of which something may be kept. */
static uint64_t cache_count_vertices(const weir_train_cache_opts *o) {
    uint64_t count = 0;
    for (uint32_t type = 0; type < weir_nn_types(o->shape); type++) {
        if (!cache_keeps(o, type)) continue;
        count += o->owners.part ? (uint64_t)weir_part_starts(o->owners.part, type)[o->owners.ranks]
                                : weir_snapshot_vertices_of(o->owners.snapshot, type)->count;
    }
    return count;
}

uint64_t weir_train_cache_rows(const weir_train_cache_opts *o) {
    return (uint64_t)(o->share * (double)cache_count_vertices(o) / o->owners.ranks);
}

/* Vertices of other ranks that batches may read, the best first, as many as are to be kept. */
static weir_err cache_choose(const weir_train_cache_opts *o, weir_train_candidate **chosenp, size_t *countp) {
    uint32_t types = weir_nn_types(o->shape);
    double **weights = weir_calloc(types, sizeof *weights);
    size_t capacity = 0, most = weir_train_cache_rows(o);
    *chosenp = NULL;
    *countp = 0;
    weir_err err = weights ? weir_train_weigh(o, weights) : WEIR_NOMEM(CACHE_NO_MEMORY);
    for (uint32_t type = 0; !err && type < types; type++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(o->owners.snapshot, type);
        for (uint64_t i = 0; !err && cache_keeps(o, type) && i < v->count; i++) {
            if (!(weights[type][i] > 0) || weir_train_owner(&o->owners, type, i) == o->owners.rank) continue;
            if (!WEIR_GROW(*chosenp, capacity, *countp)) {
                err = WEIR_NOMEM(CACHE_NO_MEMORY);
                break;
            }
            (*chosenp)[(*countp)++] = (weir_train_candidate){weights[type][i], v->ids[i].low, i, type};
        }
    }
    if (!err && *countp) qsort(*chosenp, *countp, sizeof **chosenp, weir_train_by_weight);
    if (*countp > most) *countp = most;
    for (uint32_t type = 0; weights && type < types; type++)
        weir_free(weights[type]);
    weir_free(weights);
    return err;
}

static weir_err cache_open_types(weir_train_cache *cache, const weir_train_cache_opts *o,
                                 const weir_train_candidate *chosen, size_t count) {
    cache->type_count = weir_nn_types(o->shape);
    cache->types = weir_calloc(cache->type_count, sizeof *cache->types);
    if (!cache->types) return WEIR_NOMEM(CACHE_NO_MEMORY);
    for (uint32_t type = 0; type < cache->type_count; type++) {
        cache_type *t = &cache->types[type];
        uint64_t vertices = weir_snapshot_vertices_of(o->owners.snapshot, type)->count;
        t->vertices = vertices;
        t->place_of = weir_calloc(vertices + 1, sizeof *t->place_of);
        if (!t->place_of) return WEIR_NOMEM(CACHE_NO_MEMORY);
        memset(t->place_of, 0xff, vertices * sizeof *t->place_of); /* WEIR_TRAIN_CACHE_MISS */
    }
    for (size_t i = 0; i < count; i++) {
        cache_type *t = &cache->types[chosen[i].type];
        t->place_of[chosen[i].vertex] = t->count++;
    }
    for (uint32_t type = 0; type < cache->type_count; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(o->shape, type);
        cache_type *t = &cache->types[type];
        t->numbers = weir_calloc((size_t)t->count * inputs->width + 1, sizeof *t->numbers);
        t->slots = weir_calloc((size_t)t->count * inputs->category_count + 1, sizeof *t->slots);
        if (!o->targets->one_time) t->spans = weir_calloc(2 * (size_t)t->count + 1, sizeof *t->spans);
        if (!t->numbers || !t->slots || (!o->targets->one_time && !t->spans)) return WEIR_NOMEM(CACHE_NO_MEMORY);
    }
    return WEIR_OK;
}

/* Asks for the chosen rows, and answers what others ask: each rank once. */
static weir_err cache_fetch(weir_train_cache *cache, const weir_train_cache_opts *o, weir_comm *comm,
                            const weir_train_candidate *chosen, size_t count) {
    weir_sample_source *source = NULL;
    weir_inputs *inputs = NULL;
    weir_train_answers answers = {.lengths = NULL};
    weir_buf asks = {0}, asked = {0};
    const bool timed = !o->targets->one_time;
    uint64_t *bytes = weir_calloc(o->owners.ranks, sizeof *bytes);
    uint64_t *asked_bytes = weir_calloc(o->owners.ranks, sizeof *asked_bytes);
    weir_real **numbers = weir_calloc(cache->type_count, sizeof *numbers);
    uint32_t **slots = weir_calloc(cache->type_count, sizeof *slots);
    int64_t **spans = weir_calloc(cache->type_count, sizeof *spans);
    weir_err err = bytes && asked_bytes && numbers && slots && spans ? WEIR_OK : WEIR_NOMEM(CACHE_NO_MEMORY);
    for (uint32_t rank = 0; !err && rank < o->owners.ranks; rank++) {
        for (size_t i = 0; i < count; i++) {
            const weir_train_candidate *c = &chosen[i];
            if (weir_train_owner(&o->owners, c->type, c->vertex) != rank) continue;
            uint64_t name = c->vertex;
            if (o->owners.part) name = (uint64_t)weir_part_number(o->owners.part, c->type, c->vertex);
            /* What is known last is what most targets see, and of most vertices all that is ever known. */
            const weir_train_ask ask = {.vertex = name,
                                        .before_us = o->targets->to_us[WEIR_TARGETS_TRAIN],
                                        .event = WEIR_SAMPLE_NO_TARGET,
                                        .type = (uint16_t)c->type,
                                        .parts = timed ? WEIR_TRAIN_FIXED | WEIR_TRAIN_SPAN : WEIR_TRAIN_FIXED,
                                        .row = cache->types[c->type].place_of[c->vertex]};
            weir_buf_append(&asks, &ask, sizeof ask);
            bytes[rank] += sizeof ask;
        }
    }
    if (!err) err = weir_buf_err(&asks);
    if (!err) err = weir_comm_exchange(comm, asks.bytes, bytes, &asked, asked_bytes);
    if (!err) err = weir_train_answers_open(&o->owners, o->shape, o->wire, timed, &answers);
    if (!err) err = weir_sample_over_snapshot(o->owners.snapshot, &source);
    if (!err) err = weir_inputs_open(o->shape, weir_snapshot_schema(o->owners.snapshot), source, &inputs);
    if (!err) err = weir_train_answers_exchange(&answers, &o->owners, inputs, &asked, asked_bytes, comm);
    for (uint32_t type = 0; !err && type < cache->type_count; type++) {
        numbers[type] = cache->types[type].numbers;
        slots[type] = cache->types[type].slots;
        spans[type] = cache->types[type].spans;
    }
    if (!err) err = weir_train_answers_put(&answers, &asks, NULL, &(weir_train_rows_to){numbers, slots, spans});
    weir_inputs_close(inputs);
    weir_sample_source_close(source);
    weir_train_answers_close(&answers);
    weir_buf_free(&asks);
    weir_buf_free(&asked);
    weir_free(bytes);
    weir_free(asked_bytes);
    weir_free(numbers);
    weir_free(slots);
    weir_free(spans);
    return err;
}

weir_err weir_train_cache_open(const weir_train_cache_opts *o, weir_comm *comm, weir_train_cache **cachep) {
    weir_train_candidate *chosen = NULL;
    size_t count = 0;
    *cachep = NULL;
    if (o->policy == WEIR_TRAIN_CACHED_NONE || !(o->share > 0) || o->owners.ranks == 1) return WEIR_OK;
    if (o->policy == WEIR_TRAIN_CACHED_AHEAD && !o->targets->one_time)
        return WEIR_ERR(WEIR_EINVAL,
                        "--cache-policy ahead is of graphs without times: here what holds of a row depends on the time "
                        "of its target, which is not known before its owner has said so; use another policy");
    if (o->policy == WEIR_TRAIN_CACHED_AHEAD) return WEIR_OK;
    weir_train_cache *cache = weir_calloc(1, sizeof *cache);
    if (!cache) return WEIR_NOMEM(CACHE_NO_MEMORY);
    cache->shape = o->shape;
    weir_err err = weir_train_form_open(o->shape, o->wire, !o->targets->one_time, &cache->form);
    if (!err) err = cache_choose(o, &chosen, &count);
    if (!err) err = cache_open_types(cache, o, chosen, count);
    if (!err) err = cache_fetch(cache, o, comm, chosen, count);
    weir_free(chosen);
    if (err) {
        weir_train_cache_close(cache);
        return err;
    }
    *cachep = cache;
    return WEIR_OK;
}

void weir_train_cache_close(weir_train_cache *cache) {
    if (!cache) return;
    for (uint32_t type = 0; cache->types && type < cache->type_count; type++) {
        weir_free(cache->types[type].place_of);
        weir_free(cache->types[type].numbers);
        weir_free(cache->types[type].slots);
        weir_free(cache->types[type].spans);
    }
    weir_train_form_close(&cache->form);
    weir_free(cache->types);
    weir_free(cache);
}

uint64_t weir_train_cache_bytes(const weir_train_cache *cache) {
    uint64_t bytes = 0;
    for (uint32_t type = 0; cache && type < cache->type_count; type++) {
        const cache_type *t = &cache->types[type];
        bytes += t->vertices * sizeof *t->place_of +
                 t->count * weir_train_row_bytes(weir_nn_vertex(cache->shape, type)) +
                 (t->spans ? 2 * t->count * sizeof *t->spans : 0);
    }
    return bytes;
}

uint32_t weir_train_cache_find(const weir_train_cache *cache, uint32_t type, uint64_t vertex, int64_t before_us) {
    if (!cache) return WEIR_TRAIN_CACHE_MISS;
    const cache_type *t = &cache->types[type];
    const uint32_t place = t->place_of[vertex];
    if (place == WEIR_TRAIN_CACHE_MISS || !t->spans) return place;
    const int64_t *span = &t->spans[2 * (size_t)place];
    return span[0] <= before_us && before_us < span[1] ? place : WEIR_TRAIN_CACHE_MISS;
}

bool weir_train_cache_moves(const weir_train_cache *cache, uint32_t type) {
    return cache && cache->form.types[type].moving > 0;
}

void weir_train_cache_ahead(const weir_train_cache *cache, uint32_t type, uint64_t vertex) {
    if (cache) __builtin_prefetch(&cache->types[type].place_of[vertex]);
}

void weir_train_cache_ahead_row(const weir_train_cache *cache, uint32_t type, uint32_t place) {
    const cache_type *t = &cache->types[type];
    const size_t width = weir_nn_vertex(cache->shape, type)->width;
    for (size_t at = 0; at < width; at += CACHE_LINE / sizeof *t->numbers)
        __builtin_prefetch(t->numbers + place * width + at);
}

void weir_train_cache_copy(const weir_train_cache *cache, uint32_t type, uint32_t place, weir_real *numbers,
                           uint32_t *slots) {
    const weir_nn_inputs *inputs = weir_nn_vertex(cache->shape, type);
    const cache_type *t = &cache->types[type];
    WEIR_ASSERT(place < t->count);
    weir_train_form_copy(&cache->form, type, t->numbers + (size_t)place * inputs->width,
                         t->slots + (size_t)place * inputs->category_count, numbers, slots);
}
