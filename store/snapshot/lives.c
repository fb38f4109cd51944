/* SPDX-License-Identifier: Apache-2.0 */
/* lives.c - puts in any order become lives; those of one vertex are in memory, one more than it has pauses. */
#include "lives.h"

#include <stdbool.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

void weir_lives_begin(weir_lives *lives, int64_t expire_us, const int64_t *deletions, size_t deletion_count) {
    lives->expire_us = expire_us;
    lives->deletions = deletions;
    lives->deletion_count = deletion_count;
    lives->count = 0;
}

int64_t weir_lives_deleted_us(const weir_lives *lives, int64_t time_us) {
    size_t low = 0, high = lives->deletion_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lives->deletions[middle] < time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < lives->deletion_count ? lives->deletions[low] : INT64_MAX;
}

int64_t weir_lives_until_us(const weir_lives *lives, const weir_life *life) {
    int64_t until_us = INT64_MAX, deleted_us = weir_lives_deleted_us(lives, life->last_us);
    if (lives->expire_us && __builtin_add_overflow(life->last_us, lives->expire_us, &until_us)) until_us = INT64_MAX;
    return deleted_us < until_us ? deleted_us + 1 : until_us;
}

size_t weir_lives_find(const weir_lives *lives, int64_t time_us) {
    size_t low = 0, high = lives->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lives->of[middle].first_us <= time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? low - 1 : lives->count;
}

/* Whether the vertex was deleted or expired between these two. */
static bool lives_apart(const weir_lives *lives, const weir_life *older, const weir_life *newer) {
    int64_t between_us;
    if (newer->first_us <= older->last_us) return false;
    if (lives->deletion_count && weir_lives_deleted_us(lives, older->last_us) < newer->first_us) return true;
    if (lives->expire_us == 0) return false;
    return __builtin_sub_overflow(newer->first_us, older->last_us, &between_us) || between_us >= lives->expire_us;
}

weir_err weir_lives_add(weir_lives *lives, weir_life life) {
    WEIR_ASSERT(life.first_us <= life.last_us);
    bool hidden = lives->deletion_count && life.first_us == life.last_us &&
                  weir_lives_deleted_us(lives, life.first_us) == life.first_us;
    if (hidden) return WEIR_OK;
    size_t begin = 0, end = lives->count;
    while (begin < end) { /* the first that is not apart from this one */
        size_t middle = begin + (end - begin) / 2;
        if (lives_apart(lives, &lives->of[middle], &life)) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; end < lives->count && !lives_apart(lives, &life, &lives->of[end]); end++) {
        if (lives->of[end].first_us < life.first_us) life.first_us = lives->of[end].first_us;
        if (lives->of[end].last_us > life.last_us) life.last_us = lives->of[end].last_us;
    }
    WEIR_ASSERT(begin <= end);
    if (begin == end && !WEIR_GROW(lives->of, lives->capacity, lives->count))
        return WEIR_NOMEM("for %zu lives of a vertex", lives->count + 1);
    memmove(lives->of + begin + 1, lives->of + end, (lives->count - end) * sizeof *lives->of);
    lives->of[begin] = life;
    lives->count += 1 + begin - end;
    WEIR_ASSERT(lives->count <= lives->capacity);
    return WEIR_OK;
}

void weir_lives_free(weir_lives *lives) {
    weir_free(lives->of);
    *lives = (weir_lives){.of = NULL};
}
