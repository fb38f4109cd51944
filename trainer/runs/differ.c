/* SPDX-License-Identifier: Apache-2.0 */
/* differ.c - which options are not the same in all of some runs. */
#include <stdlib.h>
#include <string.h>

#include "runs_private.h"

static int differ_by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Models of a register say more than a command line does, so they are held against each other alone. */
static bool differ_is(const weir_runs_shown *shown, const char *name) {
    const weir_run *firsts[2] = {NULL, NULL};
    for (size_t i = 0; i < shown->count; i++) {
        const weir_run *run = shown->runs[i], *before = firsts[run->registered];
        firsts[run->registered] = before ? before : run;
        if (!before) continue;
        const char *first = weir_run_option_find(before, name), *other = weir_run_option_find(run, name);
        if (!first != !other || (first && strcmp(first, other) != 0)) return true;
    }
    return false;
}

weir_err weir_runs_find_differing(weir_arena *arena, weir_runs_shown *shown) {
    size_t room = 1, count = 0, kept = 0;
    for (size_t i = 0; i < shown->count; i++)
        room += shown->runs[i]->option_count;
    const char **names = weir_arena_calloc(arena, room, sizeof *names);
    if (!names) return WEIR_ARENA_ERR(arena, "the runs have too many options; name fewer folders");
    for (size_t i = 0; i < shown->count; i++)
        for (size_t o = 0; o < shown->runs[i]->option_count; o++)
            names[count++] = shown->runs[i]->options[o].name;
    qsort(names, count, sizeof *names, differ_by_name);
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || strcmp(names[i - 1], names[i]) != 0) && differ_is(shown, names[i])) names[kept++] = names[i];
    shown->differing = names;
    shown->differing_count = kept;
    return WEIR_OK;
}
