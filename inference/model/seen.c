/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.c - what a server has seen of a register, in a file of its own: a line,
 *
 *   weir-models-seen 1 REGISTER GENERATION ID MANIFEST
 *
 * A signature does not grow old: who can write the register can put yesterday's `current` back, rightly signed. Only
 * what is kept where he cannot write tells the two apart. It is raised before the model is loaded, so that a crash
 * between the two forgets nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#include "history.h"

#define WORD           "weir-models-seen 1 "
#define FILE_BYTES_MAX 512u

typedef struct models_seen {
    char register_id[WEIR_MODELS_REGISTER_MAX];
    uint64_t generation; /* 0: nothing was seen yet */
    char id[WEIR_MODEL_ID_MAX], manifest[WEIR_MODEL_MANIFEST_MAX];
} models_seen;

/* One spelling: what was read is written again and compared. */
static int seen_print(char line[FILE_BYTES_MAX], const models_seen *s) {
    return snprintf(line, FILE_BYTES_MAX, WORD "%s %" PRIu64 " %s %s\n", s->register_id, s->generation, s->id,
                    s->manifest);
}

static bool seen_parse(const char *text, models_seen *s) {
    char line[FILE_BYTES_MAX];
    char generation[20];
    if (sscanf(text, WORD "%16[0-9a-f] %19[0-9] %31[0-9TZa-f-] %64[0-9a-f]", s->register_id, generation, s->id,
               s->manifest) != 4)
        return false;
    s->generation = strtoull(generation, NULL, 10);
    seen_print(line, s);
    return strcmp(line, text) == 0 && s->generation && s->generation <= WEIR_MODELS_GENERATION_MAX &&
           weir_model_is_register(s->register_id) && weir_model_is_id(s->id) && weir_model_is_manifest(s->manifest);
}

static weir_err seen_load(const char *path, models_seen *s) {
    char *text = NULL;
    size_t length = 0;
    *s = (models_seen){0};
    weir_err err = weir_file_load_as(path, WEIR_FILE_GUARDED | WEIR_FILE_NO_LINK, FILE_BYTES_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return WEIR_OK;
    if (!err && !seen_parse(text, s)) {
        *s = (models_seen){0};
        err = WEIR_ERR(
            WEIR_ECORRUPT,
            "%s is not as it was written, so nothing says which promotion was the last; put back a copy of it, "
            "or remove it to believe what the register says now",
            path);
    }
    weir_free(text);
    return err;
}

static weir_err seen_store(const char *path, const weir_models_entry *entry) {
    char line[FILE_BYTES_MAX];
    models_seen s = {.generation = entry->generation};
    memcpy(s.register_id, entry->register_id, sizeof s.register_id);
    memcpy(s.id, entry->id, sizeof s.id);
    memcpy(s.manifest, entry->manifest, sizeof s.manifest);
    int length = seen_print(line, &s);
    WEIR_ASSERT(length > 0 && (size_t)length < sizeof line);
    weir_err err = weir_file_replace(path, line, (size_t)length);
    if (!err && chmod(path, 0600) != 0) err = WEIR_ERRNO(errno, "cannot keep %s to its owner", path);
    weir_kill_point("models.noted");
    return weir_err_prefix(err, "the promotion cannot be noted, and would be forgotten at a restart");
}

static weir_err seen_compare(const char *path, const char *folder, const models_seen *s,
                             const weir_models_entry *entry) {
    unsigned long long last = s->generation, now = entry->generation;
    if (!now)
        return WEIR_ERR(WEIR_EPERM,
                        "%s/current is gone, and generation %llu was seen; put it back, or write it anew: weir model "
                        "promote ID --after %s:%llu",
                        folder, last, s->register_id, last);
    if (strcmp(entry->register_id, s->register_id) != 0)
        return WEIR_ERR(
            WEIR_EPERM,
            "%s/current is of register %s, and this server follows %s, generation %llu; put its own back, or "
            "remove %s to follow the other",
            folder, entry->register_id, s->register_id, last, path);
    if (now < last)
        return WEIR_ERR(WEIR_EPERM,
                        "%s/current is generation %llu, and %llu was seen: an older file was put in its place; put the "
                        "newest back, or go on from there: weir model promote ID --after %s:%llu",
                        folder, now, last, s->register_id, last);
    if (now == last && (strcmp(entry->id, s->id) != 0 || strcmp(entry->manifest, s->manifest) != 0))
        return WEIR_ERR(WEIR_EPERM,
                        "%s/current says that generation %llu is %s, and %s was seen; promote what shall serve: weir "
                        "model promote ID --after %s:%llu",
                        folder, now, entry->id, s->id, s->register_id, last);
    return WEIR_OK;
}

weir_err weir_models_admit(const char *seen_path, const weir_models *models, const weir_model_opts *opts,
                           const weir_models_entry *entry) {
    models_seen s;
    if (!entry->is_signed && opts->accept_unsigned) return WEIR_OK; /* a number that anybody may write says nothing */
    weir_err err = seen_load(seen_path, &s);
    if (!err && s.generation) err = seen_compare(seen_path, weir_models_folder(models), &s, entry); // MODEL-M6
    if (err || entry->generation <= s.generation) return err;
    return seen_store(seen_path, entry);
}
