/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - all runs below some folders. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/trainer/runs/runs.h>

#define LIST_ARENA_BYTES ((size_t)1 << 30)
#define LIST_PATH_MAX    4096u

typedef struct list_skipped {
    const char *folder, *why;
} list_skipped;

struct weir_runs {
    weir_arena *arena;
    weir_run **runs;
    size_t count, capacity;
    list_skipped *skipped;
    size_t skipped_count, skipped_capacity;
};

weir_err weir_runs_open(weir_runs **runsp) {
    weir_runs *r = *runsp = weir_calloc(1, sizeof *r);
    weir_err err = r ? weir_arena_open(LIST_ARENA_BYTES, &r->arena) : WEIR_NOMEM("for a list of runs");
    if (!err) return WEIR_OK;
    weir_free(r);
    *runsp = NULL;
    return err;
}

void weir_runs_close(weir_runs *runs) {
    if (!runs) return;
    weir_arena_close(runs->arena);
    weir_free(runs->runs);
    weir_free(runs->skipped);
    weir_free(runs);
}

/* Bytes of a terminal's commands may stand in a name, or in a sentence that quotes one. */
static char *list_line(weir_arena *arena, const char *text) {
    char *line = weir_arena_strndup(arena, text, strlen(text));
    for (char *c = line; c && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return line;
}

static weir_err list_skip(weir_runs *r, const char *folder, weir_err why) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(why, sentence, sizeof sentence);
    if (!WEIR_GROW(r->skipped, r->skipped_capacity, r->skipped_count)) return WEIR_NOMEM("for a list of runs");
    list_skipped *s = &r->skipped[r->skipped_count++];
    s->folder = list_line(r->arena, folder);
    s->why = list_line(r->arena, sentence);
    return s->folder && s->why ? WEIR_OK : WEIR_ARENA_ERR(r->arena, "there are too many runs; name fewer folders");
}

/* Where weir_folder_list is. */
typedef struct list_place {
    weir_runs *runs;
    const char *folder;
    unsigned depth;
} list_place;

static weir_err list_walk(weir_runs *r, const char *folder, unsigned depth);

static weir_err list_visit(void *context, const char *name) {
    const list_place *place = context;
    char path[LIST_PATH_MAX];
    struct stat status;
    if (weir_path_join(path, sizeof path, place->folder, name)) return WEIR_OK;
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return WEIR_OK;
    return list_walk(place->runs, path, place->depth + 1);
}

/* What is no run may hold some; one whose files are wrong is named, and nothing below it is looked for (RUNS-V1). */
static weir_err list_walk(weir_runs *r, const char *folder, unsigned depth) {
    weir_run *run = NULL;
    weir_err err = weir_run_read(r->arena, folder, folder, &run);
    if (weir_err_is(err, WEIR_ENOTFOUND)) {
        list_place place = {r, folder, depth};
        if (depth == WEIR_RUNS_DEPTH_MAX) return WEIR_OK;
        err = weir_folder_list(folder, list_visit, &place);
        return depth && err && !weir_err_is(err, WEIR_ENOMEM) && !weir_err_is(err, WEIR_ELIMIT)
                   ? list_skip(r, folder, err)
                   : err;
    }
    if (weir_err_is(err, WEIR_ENOMEM)) return err;
    if (err) return list_skip(r, folder, err);
    if (r->count == WEIR_RUNS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "there are more than %u runs; name fewer folders", WEIR_RUNS_MAX);
    if (!WEIR_GROW(r->runs, r->capacity, r->count)) return WEIR_NOMEM("for a list of runs");
    r->runs[r->count++] = run;
    return WEIR_OK;
}

weir_err weir_runs_add(weir_runs *runs, const char *folder) {
    char path[LIST_PATH_MAX];
    struct stat status;
    weir_err err = weir_path_join(path, sizeof path, folder, NULL);
    size_t length = err ? 0 : strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = 0;
    if (err) return err;
    if (stat(path, &status) != 0) return WEIR_ERRNO(errno, "cannot look into %s", path);
    if (!S_ISDIR(status.st_mode)) return WEIR_ERR(WEIR_EUSAGE, "%s is no folder; name one that has runs", path);
    return list_walk(runs, path, 0);
}

size_t weir_runs_count(const weir_runs *runs) {
    return runs->count;
}

const weir_run *weir_runs_at(const weir_runs *runs, size_t index) {
    return runs->runs[index];
}

const char *weir_runs_skipped(const weir_runs *runs, size_t index, const char **whyp) {
    if (index >= runs->skipped_count) return NULL;
    *whyp = runs->skipped[index].why;
    return runs->skipped[index].folder;
}
