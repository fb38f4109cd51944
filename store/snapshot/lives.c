/* SPDX-License-Identifier: Apache-2.0 */
/* lives.c - puts in any order become lives; those of one vertex lie in memory, and are as many as its pauses. */
#include "lives.h"

#include <stdbool.h>
#include <string.h>

#include <weir/base/alloc.h>

#define CAPACITY_FIRST 16u

void weir_lives_begin(weir_lives *lives, int64_t expire_us) {
    lives->expire_us = expire_us;
    lives->count = 0;
}

/* Whether the vertex was forgotten between these two. */
static bool apart(const weir_lives *lives, const weir_life *older, const weir_life *newer) {
    int64_t between_us;
    if (lives->expire_us == 0 || newer->first_us <= older->last_us) return false;
    return __builtin_sub_overflow(newer->first_us, older->last_us, &between_us) || between_us >= lives->expire_us;
}

/* The first that does not end long before this one. */
static size_t place_of(const weir_lives *lives, const weir_life *life) {
    size_t low = 0, high = lives->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (apart(lives, &lives->of[middle], life)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static weir_err make_room(weir_lives *lives) {
    if (lives->count < lives->capacity) return WEIR_OK;
    size_t capacity = lives->capacity ? 2 * lives->capacity : CAPACITY_FIRST;
    weir_life *grown = weir_realloc_array(lives->of, capacity, sizeof *grown);
    if (!grown) return WEIR_ERR(WEIR_ENOMEM, "no memory for %zu lives of a vertex", capacity);
    lives->of = grown;
    lives->capacity = capacity;
    return WEIR_OK;
}

weir_err weir_lives_add(weir_lives *lives, weir_life life) {
    size_t begin = place_of(lives, &life), end = begin;
    for (; end < lives->count && !apart(lives, &life, &lives->of[end]); end++) {
        if (lives->of[end].first_us < life.first_us) life.first_us = lives->of[end].first_us;
        if (lives->of[end].last_us > life.last_us) life.last_us = lives->of[end].last_us;
    }
    weir_err err = begin == end ? make_room(lives) : WEIR_OK;
    if (err) return err;
    memmove(lives->of + begin + 1, lives->of + end, (lives->count - end) * sizeof *lives->of);
    lives->of[begin] = life;
    lives->count += 1 + begin - end;
    return WEIR_OK;
}

void weir_lives_free(weir_lives *lives) {
    weir_free(lives->of);
    *lives = (weir_lives){.of = NULL};
}
