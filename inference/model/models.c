/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.c - the register: which models there are, which one serves, and which served before.
 *
 * Serving model and history are one file. Two would need an order between them, and a crash in that order would leave
 * a promotion that happened without having been written down, or the other way round. A night adds a line of about
 * a hundred bytes, so replacing all of it costs nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/base/alloc.h>
#include <weir/base/fault.h>
#include <weir/base/file.h>

#include "files.h"
#include "history.h"

#define STAGING "staging" /* what is being written; what a crash left there is nobody's */

struct weir_models {
    char folder[WEIR_MODEL_PATH_MAX];
    weir_clock *clock;
    weir_models_entry serving; /* as of `seen` */
    struct stat seen;          /* zeros: never looked */
};

/* --- open, close ----------------------------------------------------------------------------------------------- */

weir_err weir_models_open(const char *folder, weir_clock *clock, weir_models **modelsp) {
    *modelsp = NULL;
    weir_models *models = weir_calloc(1, sizeof *models);
    if (!models) return WEIR_ERR(WEIR_ENOMEM, "no memory for the models of %s", folder);
    models->clock = clock;
    int length = snprintf(models->folder, sizeof models->folder, "%s", folder);
    if (length >= (int)(sizeof models->folder - 64)) {
        weir_models_close(models);
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    }
    *modelsp = models;
    return WEIR_OK;
}

void weir_models_close(weir_models *models) {
    weir_free(models);
}

const char *weir_models_folder(const weir_models *models) {
    return models->folder;
}

/* --- what serves ----------------------------------------------------------------------------------------------- */

static weir_err load_history(weir_models *models, weir_model_history *history) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_err err = weir_model_join(path, models->folder, "current");
    return err ? err : weir_model_history_load(path, history);
}

static weir_err refresh(weir_models *models) {
    weir_model_history history;
    weir_err err = load_history(models, &history);
    if (err) return err;
    models->serving = history.count ? history.entries[history.count - 1] : (weir_models_entry){0};
    weir_model_history_free(&history);
    return WEIR_OK;
}

weir_err weir_models_current(weir_models *models, weir_models_entry *entryp) {
    *entryp = (weir_models_entry){0};
    weir_err err = refresh(models);
    if (!err) *entryp = models->serving;
    return err;
}

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The stat is taken before the file is read: a change between the two is seen again, never missed. The size rises with
 * each line, so an inode that is used again at the same instant is told apart too. */
weir_err weir_models_watch(weir_models *models, uint64_t seen, bool *changedp, weir_models_entry *entryp) {
    char path[WEIR_MODEL_PATH_MAX];
    struct stat now = {0};
    *changedp = false;
    *entryp = (weir_models_entry){0};
    weir_err err = weir_model_join(path, models->folder, "current");
    if (err) return err;
    if (stat(path, &now) != 0) now = (struct stat){0};
    if (!is_same(&now, &models->seen)) {
        err = refresh(models);
        if (err) return err;
        models->seen = now;
    }
    *entryp = models->serving;
    *changedp = models->serving.generation != seen;
    return WEIR_OK;
}

weir_err weir_models_history(weir_models *models, weir_models_history_visit visit, void *context) {
    weir_model_history history;
    weir_err err = load_history(models, &history);
    if (err) return err;
    for (size_t i = 0; !err && i < history.count; i++)
        err = visit(context, &history.entries[i]);
    weir_model_history_free(&history);
    return err;
}

/* --- models ---------------------------------------------------------------------------------------------------- */

weir_err weir_models_path(weir_models *models, const char *id, char *path, size_t size) {
    weir_models_entry entry = {0};
    *path = '\0';
    if (id && !weir_model_is_id(id)) {
        return WEIR_ERR(WEIR_EDATA, "'%.40s' is no model; weir model list names those that are", id);
    }
    weir_err err = id ? WEIR_OK : weir_models_current(models, &entry);
    if (err) return err;
    if (!id && !entry.generation) {
        return WEIR_ERR(WEIR_ENOTFOUND, "no model of %s serves yet; weir model promote makes one serve",
                        models->folder);
    }
    int length = snprintf(path, size, "%s/%s", models->folder, id ? id : entry.id);
    if (length >= 0 && (size_t)length < size) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", models->folder);
}

typedef struct listing {
    weir_models_visit visit;
    void *context;
} listing;

static weir_err list_entry(void *context, const char *name) {
    const listing *list = context;
    return weir_model_is_id(name) ? list->visit(list->context, name) : WEIR_OK;
}

weir_err weir_models_list(weir_models *models, weir_models_visit visit, void *context) {
    listing list = {visit, context};
    if (!weir_path_exists(models->folder)) return WEIR_OK;
    return weir_folder_list(models->folder, list_entry, &list);
}

/* --- changing -------------------------------------------------------------------------------------------------- */

static weir_err take_lock(weir_models *models, weir_file **lockp) {
    char path[WEIR_MODEL_PATH_MAX];
    *lockp = NULL;
    weir_err err = weir_model_join(path, models->folder, "lock");
    if (!err) err = weir_file_open(path, WEIR_FILE_OPEN_OR_CREATE, lockp);
    if (err) return err;
    err = weir_file_lock(*lockp);
    if (err) {
        weir_err_keep(&err, weir_file_close(*lockp));
        *lockp = NULL;
    }
    return err;
}

/* "20261121T101500Z-1a2b3c4d" of now and of the MANIFEST in folder. */
static weir_err make_id(weir_models *models, const char *folder, char id[WEIR_MODEL_ID_MAX]) {
    char path[WEIR_MODEL_PATH_MAX], time[WEIR_TIME_TEXT_MAX], hex[65];
    uint64_t length = 0;
    weir_err err = weir_model_join(path, folder, "MANIFEST");
    if (!err) err = weir_sha256_file(path, hex, &length);
    if (err) return err;
    weir_time_format(weir_clock_wall_us(models->clock), time);
    snprintf(id, WEIR_MODEL_ID_MAX, "%.4s%.2s%.2sT%.2s%.2s%.2sZ-%.8s", time, time + 5, time + 8, time + 11, time + 14,
             time + 17, hex);
    return WEIR_OK;
}

static weir_err move_in(weir_models *models, const char *staging, char id[WEIR_MODEL_ID_MAX]) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_err err = make_id(models, staging, id);
    if (!err) err = weir_model_join(path, models->folder, id);
    if (!err && weir_path_exists(path)) {
        err = WEIR_ERR(WEIR_EEXIST, "the same model was added this second already, as %s", path);
    }
    return err ? err : weir_file_rename(staging, path); // M1
}

weir_err weir_models_add(weir_models *models, const weir_model_write_opts *opts, char id[WEIR_MODEL_ID_MAX]) {
    char staging[WEIR_MODEL_PATH_MAX];
    weir_file *lock = NULL;
    *id = '\0';
    weir_err err = weir_model_join(staging, models->folder, STAGING);
    if (!err) err = weir_folder_create(models->folder);
    if (!err) err = take_lock(models, &lock);
    if (err) return err;
    if (weir_path_exists(staging)) err = weir_folder_remove(staging);
    if (!err) err = weir_model_stage(staging, opts);
    if (!err) err = move_in(models, staging, id);
    if (err && weir_path_exists(staging)) weir_err_keep(&err, weir_folder_remove(staging));
    if (err) *id = '\0';
    weir_err_keep(&err, weir_file_close(lock));
    return err;
}

/* M4: what cannot be opened does not serve. */
static weir_err try_model(weir_models *models, const char *id, const weir_model_opts *opts) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_model *model = NULL;
    weir_err err = weir_models_path(models, id, path, sizeof path);
    if (!err) err = weir_model_open(path, opts, &model);
    weir_model_close(model);
    return err;
}

static weir_err append(weir_models *models, weir_model_history *history, const weir_models_entry *entry) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_err err = weir_model_join(path, models->folder, "current");
    if (!err) err = weir_model_history_add(history, entry);
    weir_kill_point("models.decided");
    if (!err) err = weir_model_history_store(path, history); // M3
    weir_kill_point("models.promoted");
    return err;
}

/* Called with the lock. */
static weir_err change(weir_models *models, weir_models_action action, const char *id, const char *reason,
                       const weir_model_opts *opts, weir_models_entry *entryp) {
    weir_model_history history;
    weir_err err = load_history(models, &history);
    if (err) return err;
    const weir_models_entry *last = history.count ? &history.entries[history.count - 1] : NULL;
    if (action == WEIR_MODELS_ROLLBACK) err = weir_model_history_before(&history, models->folder, &id);
    if (!err) err = try_model(models, id, opts); // M4
    if (!err && last && strcmp(last->id, id) == 0) {
        *entryp = *last;
    } else if (!err) {
        weir_models_entry entry = {.generation = last ? last->generation + 1 : 1,
                                   .time_us = weir_clock_wall_us(models->clock),
                                   .action = action};
        snprintf(entry.id, sizeof entry.id, "%s", id);
        weir_model_history_reason(entry.reason, reason);
        err = append(models, &history, &entry);
        if (!err) *entryp = entry;
    }
    weir_model_history_free(&history);
    return err;
}

static weir_err change_locked(weir_models *models, weir_models_action action, const char *id, const char *reason,
                              const weir_model_opts *opts, weir_models_entry *entryp) {
    weir_file *lock = NULL;
    *entryp = (weir_models_entry){0};
    if (!weir_path_exists(models->folder))
        return WEIR_ERR(WEIR_ENOTFOUND, "there are no models in %s; weir train makes the first", models->folder);
    weir_err err = take_lock(models, &lock);
    if (err) return err;
    err = change(models, action, id, reason, opts, entryp);
    weir_err_keep(&err, weir_file_close(lock));
    return err;
}

weir_err weir_models_promote(weir_models *models, const char *id, const char *reason, const weir_model_opts *opts,
                             weir_models_entry *entryp) {
    if (!id) return WEIR_ERR(WEIR_EINVAL, "name the model to promote; weir model list names those that are");
    return change_locked(models, WEIR_MODELS_PROMOTE, id, reason, opts, entryp);
}

weir_err weir_models_rollback(weir_models *models, const char *reason, const weir_model_opts *opts,
                              weir_models_entry *entryp) {
    return change_locked(models, WEIR_MODELS_ROLLBACK, NULL, reason, opts, entryp);
}
