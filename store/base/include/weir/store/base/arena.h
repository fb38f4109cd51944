/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory of one scope (a request, a batch), given back at once.
 *
 * INVARIANTS
 *   BASE-A1  No allocation is ever moved or freed before the arena is reset or closed.
 *   BASE-A2  bytes used never pass bytes_max: allocation returns NULL instead.
 *   BASE-A3  In address-sanitizer builds reset frees every chunk, so that a use after reset is seen;
 *       in other builds reset keeps the largest chunk.
 *
 * THREADS: an arena belongs to one thread at a time.
 */
#ifndef WEIR_STORE_BASE_ARENA_H
#define WEIR_STORE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_arena weir_arena;

/* bytes_max: limit over all chunks.  WEIR_EINVAL if 0; WEIR_ENOMEM. */
weir_err weir_arena_open(size_t bytes_max, weir_arena **arenap);
/* NULL at the limit or when out of memory. Aligned for any type. */
void *weir_arena_alloc(weir_arena *arena, size_t size);
void *weir_arena_calloc(weir_arena *arena, size_t count, size_t size);
void *weir_arena_alloc_aligned(weir_arena *arena, size_t alignment, size_t size);
char *weir_arena_strndup(weir_arena *arena, const char *text, size_t length);
char *weir_arena_printf(weir_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Since the last reset malloc has failed at least once, which is then taken for the reason of every refusal. */
bool weir_arena_starved(const weir_arena *arena);
/* The error of an allocation that failed: WEIR_ENOMEM of an arena that is starved, else WEIR_ELIMIT with the words. */
#define WEIR_ARENA_ERR(arena, ...)                                                                                \
    (weir_arena_starved(arena) ? WEIR_ERR(WEIR_ENOMEM, "the machine has no memory for this now; try again later") \
                               : WEIR_ERR(WEIR_ELIMIT, __VA_ARGS__))
/* Everything allocated is gone. */
void weir_arena_reset(weir_arena *arena);
size_t weir_arena_used(const weir_arena *arena);
/* NULL is allowed. */
void weir_arena_close(weir_arena *arena);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_ARENA_H */
