/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - edit distance over three rows of the table; a swap of neighbours counts as one edit. */
#include <weir/store/base/suggest.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

#define NAME_BYTES_MAX 64u /* longer names are not compared */

weir_suggest weir_suggest_for(const char *wrong) {
    return (weir_suggest){.wrong = wrong, .distance = SIZE_MAX};
}

static size_t suggest_least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Row i of the table has the distance of a's first i letters to each beginning of b; three rows are kept. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][NAME_BYTES_MAX + 1];
    WEIR_ASSERT(a_length <= NAME_BYTES_MAX && b_length <= NAME_BYTES_MAX);
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        const size_t *two_above = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = suggest_least(row[j], suggest_least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = suggest_least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void weir_suggest_offer(weir_suggest *suggest, const char *name) {
    size_t wrong_length = strlen(suggest->wrong), length = strlen(name);
    size_t longer = wrong_length > length ? wrong_length : length;
    if (longer > NAME_BYTES_MAX) return;
    size_t distance = edit_distance(suggest->wrong, wrong_length, name, length);
    if (distance >= suggest->distance || 3 * distance > longer) return;
    suggest->best = name;
    suggest->distance = distance;
}

const char *weir_suggest_text(const weir_suggest *suggest, char *buffer, size_t size) {
    if (suggest->best) {
        snprintf(buffer, size, "; did you mean '%s'?", suggest->best);
    } else if (size > 0) {
        buffer[0] = 0;
    }
    return buffer;
}
