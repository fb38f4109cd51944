/* SPDX-License-Identifier: Apache-2.0 */
/* workspace.c - what forward passes hold in the kernels' memory: one chunk, sized by the largest pass so far. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "nn_private.h"

#define ALIGNMENT  64u
#define EXTRAS_MAX 65536u

weir_err weir_nn_workspace_open(const weir_nn *nn, bool tape, weir_nn_workspace **workspacep) {
    *workspacep = weir_calloc(1, sizeof **workspacep);
    if (!*workspacep) return WEIR_NOMEM("for a network's workspace");
    **workspacep = (weir_nn_workspace){.nn = nn, .kernels = nn->kernels, .keeps_tape = tape};
    return WEIR_OK;
}

/* KERNEL-K4: threads that share a network share no context. */
weir_err weir_nn_workspace_open_apart(const weir_nn *nn, weir_nn_workspace **workspacep) {
    weir_err err = weir_nn_workspace_open(nn, false, workspacep);
    if (!err) err = nn->kernels->open(nn->kernels, &(*workspacep)->kernels);
    if (!err) {
        (*workspacep)->apart = true;
    } else {
        weir_free(*workspacep);
        *workspacep = NULL;
    }
    return err;
}

static void workspace_release_extras(weir_nn_workspace *w) {
    for (uint32_t i = 0; i < w->extra_count; i++)
        w->kernels->release(w->kernels, w->extras[i]);
    w->extra_count = 0;
}

void weir_nn_workspace_close(weir_nn_workspace *w) {
    if (!w) return;
    workspace_release_extras(w);
    weir_free(w->extras);
    if (w->chunk) w->kernels->release(w->kernels, w->chunk);
    if (w->apart) w->kernels->close(w->kernels);
    weir_free(w);
}

uint64_t weir_nn_workspace_bytes(const weir_nn_workspace *w) {
    return w->chunk_bytes > w->wanted ? w->chunk_bytes : w->wanted;
}

/* A quarter more than what was wanted: the next batch is seldom the same size. */
weir_err weir_nn_workspace_begin(weir_nn_workspace *w) {
    workspace_release_extras(w);
    w->used = 0;
    w->taped = false;
    if (w->wanted <= w->chunk_bytes) return WEIR_OK;
    if (w->chunk) w->kernels->release(w->kernels, w->chunk);
    w->chunk_bytes = 0;
    size_t bytes = (w->wanted + w->wanted / 4) / ALIGNMENT * ALIGNMENT;
    void *chunk = NULL;
    weir_err err = w->kernels->alloc(w->kernels, bytes, &chunk);
    w->chunk = chunk;
    if (!err) w->chunk_bytes = bytes;
    return err;
}

static void *workspace_alloc_extra(weir_nn_workspace *w, size_t bytes) {
    void *memory = NULL;
    if (w->extra_count == w->extra_room) {
        uint32_t room = w->extra_room ? 2 * w->extra_room : 64;
        void **extras = room <= EXTRAS_MAX ? weir_realloc_array(w->extras, room, sizeof *extras) : NULL;
        if (!extras) return NULL;
        w->extras = extras;
        w->extra_room = room;
    }
    if (w->kernels->alloc(w->kernels, bytes, &memory)) return NULL;
    w->extras[w->extra_count++] = memory;
    return memory;
}

void *weir_nn_workspace_alloc(weir_nn_workspace *w, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* never nothing: NULL means that there is no memory */
    WEIR_ASSERT(w->used % ALIGNMENT == 0);
    size_t left = w->used < w->chunk_bytes ? w->chunk_bytes - w->used : 0;
    void *memory = bytes <= left ? w->chunk + w->used : workspace_alloc_extra(w, bytes);
    w->used += bytes;
    if (w->used > w->wanted) w->wanted = w->used;
    return memory;
}

size_t weir_nn_workspace_mark(const weir_nn_workspace *w) {
    return w->used;
}

void weir_nn_workspace_back(weir_nn_workspace *w, size_t mark) {
    WEIR_ASSERT(mark <= w->used);
    w->used = mark;
}

const void *weir_nn_workspace_bring(weir_nn_workspace *w, const void *host, size_t count, size_t size) {
    static const uint64_t nothing;
    if (count == 0) return &nothing;
    if (w->kernels->unified) return host;
    const void *place = w->arrival ? weir_nn_arrival_place(w->arrival, host, count * size) : NULL;
    if (place) return place;
    void *copy = weir_nn_workspace_alloc(w, count, size);
    if (copy) w->kernels->to_device(w->kernels, copy, host, count * size);
    return copy;
}

const weir_nn_tape *weir_nn_tape_of(const weir_nn_workspace *w) {
    return w->taped ? &w->tape : NULL;
}
