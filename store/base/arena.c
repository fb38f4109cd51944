/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - a list of chunks, each twice the one before; the newest is the one allocated from. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/arena.h>
#include <weir/base/assert.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEEP_CHUNKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_CHUNKS false
#endif
#endif
#ifndef KEEP_CHUNKS
#define KEEP_CHUNKS true
#endif

#define CHUNK_BYTES_MIN ((size_t)4096)
#define CHUNK_BYTES_MAX ((size_t)1 << 22)

typedef struct chunk {
    struct chunk *older;
    size_t capacity;
    size_t used;
    _Alignas(max_align_t) uint8_t bytes[];
} chunk;

struct weir_arena {
    chunk *newest;
    size_t bytes_max;
    size_t used; /* bytes handed out, padding counted */
};

weir_err weir_arena_open(size_t bytes_max, weir_arena **arenap) {
    *arenap = NULL;
    if (bytes_max == 0) return WEIR_ERR(WEIR_EINVAL, "an arena needs a limit above 0 bytes");
    weir_arena *arena = weir_calloc(1, sizeof *arena);
    if (!arena) return WEIR_ERR(WEIR_ENOMEM, "no memory for an arena");
    arena->bytes_max = bytes_max;
    *arenap = arena;
    return WEIR_OK;
}

static chunk *chunk_add(weir_arena *arena, size_t needed) {
    size_t capacity = arena->newest ? arena->newest->capacity * 2 : CHUNK_BYTES_MIN;
    if (capacity > CHUNK_BYTES_MAX) capacity = CHUNK_BYTES_MAX;
    if (capacity < needed) capacity = needed;
    if (capacity > SIZE_MAX - sizeof(chunk)) return NULL;
    chunk *added = weir_malloc(sizeof(chunk) + capacity);
    if (!added) return NULL;
    added->older = arena->newest;
    added->capacity = capacity;
    added->used = 0;
    arena->newest = added;
    return added;
}

static size_t padding(const chunk *c, size_t alignment) {
    uintptr_t next = (uintptr_t)(c->bytes + c->used);
    return (size_t)(-next & (alignment - 1));
}

void *weir_arena_alloc_aligned(weir_arena *arena, size_t alignment, size_t size) {
    chunk *c = arena->newest;
    WEIR_ASSERT(alignment > 0 && (alignment & (alignment - 1)) == 0);
    if (size > arena->bytes_max || alignment > arena->bytes_max) return NULL;
    if (size == 0) size = 1; /* a unique pointer */
    if (!c || c->capacity - c->used < size || padding(c, alignment) > c->capacity - c->used - size) {
        if (size + alignment > arena->bytes_max - arena->used && size > arena->bytes_max - arena->used) return NULL;
        c = chunk_add(arena, size + alignment);
        if (!c) return NULL;
    }
    size_t pad = padding(c, alignment);
    if (pad + size > arena->bytes_max - arena->used) return NULL; /* A2 */
    void *block = c->bytes + c->used + pad;
    c->used += pad + size;
    arena->used += pad + size;
    WEIR_ASSERT(c->used <= c->capacity && arena->used <= arena->bytes_max); /* A1, A2 */
    return block;
}

void *weir_arena_alloc(weir_arena *arena, size_t size) {
    return weir_arena_alloc_aligned(arena, _Alignof(max_align_t), size);
}

void *weir_arena_calloc(weir_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *block = weir_arena_alloc(arena, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

char *weir_arena_strndup(weir_arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX) return NULL;
    char *copy = weir_arena_alloc_aligned(arena, 1, length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *weir_arena_printf(weir_arena *arena, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length >= 0 ? weir_arena_alloc_aligned(arena, 1, (size_t)length + 1) : NULL;
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

static void chunks_free(chunk *c) {
    while (c) {
        chunk *older = c->older;
        weir_free(c);
        c = older;
    }
}

/* A request above CHUNK_BYTES_MAX has a chunk to its size, so the newest need not be the largest. */
static chunk *largest(chunk *newest) {
    chunk *found = newest;
    for (chunk *c = newest; c; c = c->older) {
        if (c->capacity > found->capacity) found = c;
    }
    return found;
}

void weir_arena_reset(weir_arena *arena) {
    chunk *kept = KEEP_CHUNKS ? largest(arena->newest) : NULL; /* A3 */
    for (chunk *c = arena->newest, *older; c; c = older) {
        older = c->older;
        if (c != kept) weir_free(c);
    }
    if (kept) {
        kept->older = NULL;
        kept->used = 0;
    }
    arena->newest = kept;
    arena->used = 0;
}

size_t weir_arena_used(const weir_arena *arena) {
    return arena->used;
}

void weir_arena_close(weir_arena *arena) {
    if (!arena) return;
    chunks_free(arena->newest);
    weir_free(arena);
}
