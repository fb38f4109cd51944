/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - chunks that double, and a mark that rises in the newest.
 *
 * A chunk is never larger than what the limit leaves, so that a small arena costs little and a limit is one of
 * memory, not only of what was handed out. What does not fit in the newest chunk starts another; the rest of the old
 * one is lost until reset, at most half of what is held.
 */
#include <weir/store/base/arena.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_A_CHUNK false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_A_CHUNK false
#endif
#endif
#ifndef KEEPS_A_CHUNK
#define KEEPS_A_CHUNK true
#endif

#define CHUNK_BYTES_MIN 4096u
#define ALIGNMENT       _Alignof(max_align_t)

typedef struct arena_chunk {
    struct arena_chunk *older;
    size_t bytes; /* of data */
    size_t used;  /* of data, from its start */
    _Alignas(ALIGNMENT) unsigned char data[];
} arena_chunk;

struct weir_arena {
    size_t bytes_max;
    size_t bytes_held;   /* data of all chunks */
    size_t used_before;  /* used in all chunks but the newest */
    arena_chunk *newest; /* NULL before the first allocation */
    bool starved;        /* malloc has refused since the last reset */
};

weir_err weir_arena_open(size_t bytes_max, weir_arena **arenap) {
    *arenap = NULL;
    if (bytes_max == 0) return WEIR_ERR(WEIR_EINVAL, "an arena of 0 bytes can hold nothing; give it a limit");
    weir_arena *arena = weir_calloc(1, sizeof *arena);
    if (!arena) return WEIR_NOMEM("for an arena");
    arena->bytes_max = bytes_max;
    *arenap = arena;
    return WEIR_OK;
}

/* --- chunks ------------------------------------------------------------------------------------------------- */

/* Leaves the largest chunk, empty, or none at all. BASE-A3 */
static void arena_drop_chunks(weir_arena *arena, bool keep_largest) {
    arena_chunk *kept = NULL, *chunk = arena->newest;
    while (chunk) {
        arena_chunk *older = chunk->older;
        bool keep = keep_largest && (!kept || chunk->bytes > kept->bytes);
        weir_free(keep ? kept : chunk);
        if (keep) kept = chunk;
        chunk = older;
    }
    arena->newest = kept;
    arena->bytes_held = kept ? kept->bytes : 0;
    arena->used_before = 0;
    if (kept) *kept = (arena_chunk){.bytes = kept->bytes};
}

/* A chunk with room for `bytes`, twice as large as the last where the limit allows. */
static bool arena_add_chunk(weir_arena *arena, size_t bytes) {
    if (arena->newest && arena->newest->used == 0) { /* one kept by reset, and too small */
        WEIR_ASSERT(!arena->newest->older);          // BASE-A1
        arena_drop_chunks(arena, false);
    }
    size_t room = arena->bytes_max - arena->bytes_held;
    if (bytes > room) return false;
    size_t want = arena->newest ? arena->newest->bytes : CHUNK_BYTES_MIN / 2;
    want = want < room / 2 ? 2 * want : room;
    if (want < bytes) want = bytes;
    if (want > SIZE_MAX - sizeof(arena_chunk)) return false;
    arena_chunk *chunk = weir_malloc(sizeof *chunk + want);
    if (!chunk) {
        arena->starved = true;
        return false;
    }
    *chunk = (arena_chunk){.older = arena->newest, .bytes = want};
    if (arena->newest) arena->used_before += arena->newest->used;
    arena->newest = chunk;
    arena->bytes_held += want;
    WEIR_ASSERT(arena->bytes_held <= arena->bytes_max); // BASE-A2
    return true;
}

/* --- allocation --------------------------------------------------------------------------------------------- */

/* The next of `size` bytes in the newest chunk, or NULL. */
static void *chunk_bump(arena_chunk *chunk, size_t alignment, size_t size) {
    size_t padding = -(uintptr_t)(chunk->data + chunk->used) & (alignment - 1);
    size_t left = chunk->bytes - chunk->used;
    if (padding > left || size > left - padding) return NULL;
    void *block = chunk->data + chunk->used + padding;
    chunk->used += padding + size;
    WEIR_ASSERT(chunk->used <= chunk->bytes && ((uintptr_t)block & (alignment - 1)) == 0);
    return block;
}

static void *arena_allocate(weir_arena *arena, size_t alignment, size_t size) {
    if (size == 0) size = 1; /* a pointer of its own */
    void *block = arena->newest ? chunk_bump(arena->newest, alignment, size) : NULL;
    if (block) return block;
    size_t padding_max = alignment > ALIGNMENT ? alignment - ALIGNMENT : 0;
    if (size > SIZE_MAX - padding_max || !arena_add_chunk(arena, size + padding_max)) return NULL;
    return chunk_bump(arena->newest, alignment, size);
}

void *weir_arena_alloc(weir_arena *arena, size_t size) {
    return arena_allocate(arena, ALIGNMENT, size);
}

void *weir_arena_calloc(weir_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *block = arena_allocate(arena, ALIGNMENT, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *weir_arena_alloc_aligned(weir_arena *arena, size_t alignment, size_t size) {
    WEIR_ASSERT(alignment > 0 && (alignment & (alignment - 1)) == 0);
    return arena_allocate(arena, alignment, size);
}

char *weir_arena_strndup(weir_arena *arena, const char *text, size_t length) {
    size_t bytes = strnlen(text, length);
    char *copy = arena_allocate(arena, 1, bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

char *weir_arena_printf(weir_arena *arena, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : arena_allocate(arena, 1, (size_t)length + 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

/* --- the end of the scope ----------------------------------------------------------------------------------- */

void weir_arena_reset(weir_arena *arena) {
    arena_drop_chunks(arena, KEEPS_A_CHUNK);
    arena->starved = false;
    WEIR_ASSERT(weir_arena_used(arena) == 0 && (KEEPS_A_CHUNK || !arena->newest)); // BASE-A3
}

bool weir_arena_starved(const weir_arena *arena) {
    return arena->starved;
}

size_t weir_arena_used(const weir_arena *arena) {
    return arena->used_before + (arena->newest ? arena->newest->used : 0);
}

void weir_arena_close(weir_arena *arena) {
    if (!arena) return;
    arena_drop_chunks(arena, false);
    weir_free(arena);
}
