/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - edit distance with transpositions of neighbours, in three rows. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weir/base/suggest.h>

#define NAME_MAX_BYTES 64u /* longer names are nobody's typing mistake */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][NAME_MAX_BYTES + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(change, least(last[j], now[j - 1]) + 1);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b_length];
}

weir_suggest weir_suggest_for(const char *wrong) {
    return (weir_suggest){.wrong = wrong, .distance = SIZE_MAX};
}

void weir_suggest_offer(weir_suggest *suggest, const char *name) {
    size_t wrong_length = strlen(suggest->wrong), length = strlen(name);
    if (wrong_length == 0 || wrong_length > NAME_MAX_BYTES || length > NAME_MAX_BYTES) return;
    size_t longest = wrong_length > length ? wrong_length : length;
    size_t d = distance(suggest->wrong, wrong_length, name, length);
    size_t allowed = longest < 3 ? 1 : (longest + 2) / 3;
    if (d < longest && d <= allowed && d < suggest->distance) {
        suggest->best = name;
        suggest->distance = d;
    }
}

const char *weir_suggest_text(const weir_suggest *suggest, char *buffer, size_t size) {
    if (size == 0) return buffer;
    buffer[0] = '\0';
    if (suggest->best) snprintf(buffer, size, "; did you mean '%s'?", suggest->best);
    return buffer;
}
