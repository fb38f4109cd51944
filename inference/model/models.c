/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.c - the register: which models there are, which one serves, and which served before.
 *
 * Serving model and history are one file. Two would need an order between them, and a crash in that order would leave
 * a promotion that happened without having been written down, or the other way round. A night adds a line of about
 * two hundred bytes, so replacing all of it costs nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>

#include "files.h"
#include "history.h"

#define STAGING "staging" /* what is being written; what a crash left there is nobody's */

struct weir_models {
    char folder[WEIR_MODEL_PATH_MAX], current[WEIR_MODEL_PATH_MAX];
    weir_clock *clock;
    struct stat seen; /* `current`, when it was last read; zeros: it was not there */
    bool looked;
};

/* --- open, close ----------------------------------------------------------------------------------------------- */

weir_err weir_models_open(const char *folder, weir_clock *clock, weir_models **modelsp) {
    *modelsp = NULL;
    weir_models *models = weir_calloc(1, sizeof *models);
    if (!models) return WEIR_NOMEM("for the models of %s", folder);
    models->clock = clock;
    weir_err err = weir_path_join(models->folder, sizeof models->folder - 64, folder, NULL); /* names follow */
    if (!err) err = weir_path_join(models->current, sizeof models->current, folder, "current");
    if (err) {
        weir_models_close(models);
        return err;
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

static struct stat models_status(const weir_models *models) {
    struct stat status = {0}, found;
    if (stat(models->current, &found) == 0) status = found;
    return status;
}

/* The status is taken before the file is read: a change between the two is seen again, never missed. */
weir_err weir_models_current(weir_models *models, const weir_model_opts *opts, weir_models_entry *entryp) {
    weir_model_history history;
    struct stat now = models_status(models);
    *entryp = (weir_models_entry){0};
    weir_err err = weir_model_history_load(models->current, opts, &history);
    if (err) return err;
    if (history.count) *entryp = history.entries[history.count - 1];
    weir_model_history_free(&history);
    models->seen = now;
    models->looked = true;
    return WEIR_OK;
}

/* The size rises with each line, so an inode that is used again at the same instant is told apart too. */
bool weir_models_changed(weir_models *models) {
    struct stat now = models_status(models), *seen = &models->seen;
    return !models->looked || now.st_ino != seen->st_ino || now.st_size != seen->st_size ||
           now.st_mtim.tv_sec != seen->st_mtim.tv_sec || now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec;
}

weir_err weir_models_history(weir_models *models, const weir_model_opts *opts, weir_models_history_visit visit,
                             void *context) {
    weir_model_history history;
    weir_err err = weir_model_history_load(models->current, opts, &history);
    if (err) return err;
    for (size_t i = 0; !err && i < history.count; i++)
        err = visit(context, &history.entries[i]);
    weir_model_history_free(&history);
    return err;
}

/* --- models ---------------------------------------------------------------------------------------------------- */

weir_err weir_models_path(weir_models *models, const char *id, char *path, size_t size) {
    *path = '\0';
    if (!weir_model_is_id(id)) {
        return WEIR_ERR(WEIR_EDATA, "'%.40s' is not a model; weir model list names those that are", id);
    }
    return weir_path_join(path, size, models->folder, id);
}

typedef struct models_listing {
    weir_models_visit visit;
    void *context;
} models_listing;

static weir_err models_list_entry(void *context, const char *name) {
    const models_listing *list = context;
    return weir_model_is_id(name) ? list->visit(list->context, name) : WEIR_OK;
}

weir_err weir_models_list(weir_models *models, weir_models_visit visit, void *context) {
    models_listing list = {visit, context};
    if (!weir_path_exists(models->folder)) return WEIR_OK;
    return weir_folder_list(models->folder, models_list_entry, &list);
}

/* --- changing -------------------------------------------------------------------------------------------------- */

static weir_err models_lock(weir_models *models, weir_file **lockp) {
    char path[WEIR_MODEL_PATH_MAX];
    *lockp = NULL;
    weir_err err = weir_path_join(path, sizeof path, models->folder, "lock");
    if (!err) err = weir_file_open(path, WEIR_FILE_OPEN_OR_CREATE, lockp);
    if (err) return err;
    err = weir_file_lock(*lockp);
    if (err) {
        weir_err_keep(&err, weir_file_close(*lockp));
        *lockp = NULL;
    }
    return err;
}

/* Under "20261121T101500Z-1a2b3c4d", of now and of the MANIFEST in the folder. */
static weir_err models_move_in(weir_models *models, const char *staging, char id[WEIR_MODEL_ID_MAX]) {
    char path[WEIR_MODEL_PATH_MAX], time[WEIR_TIME_TEXT_MAX], hex[65];
    uint64_t length = 0;
    weir_err err = weir_path_join(path, sizeof path, staging, "MANIFEST");
    if (!err) err = weir_sha256_file(path, hex, &length);
    if (err) return err;
    weir_time_format(weir_clock_wall_us(models->clock), time);
    snprintf(id, WEIR_MODEL_ID_MAX, "%.4s%.2s%.2sT%.2s%.2s%.2sZ-%.8s", time, time + 5, time + 8, time + 11, time + 14,
             time + 17, hex);
    WEIR_ASSERT(weir_model_is_id(id));
    err = weir_path_join(path, sizeof path, models->folder, id);
    if (!err && weir_path_exists(path))
        err = WEIR_ERR(WEIR_EEXIST, "the same model was added this second already, as %s", path);
    return err ? err : weir_file_rename(staging, path); // MODEL-M1
}

weir_err weir_models_add(weir_models *models, const weir_model_write_opts *opts, char id[WEIR_MODEL_ID_MAX]) {
    char staging[WEIR_MODEL_PATH_MAX];
    weir_file *lock = NULL;
    *id = '\0';
    weir_err err = weir_path_join(staging, sizeof staging, models->folder, STAGING);
    if (!err) err = weir_folder_create(models->folder);
    if (!err) err = models_lock(models, &lock);
    if (err) return err;
    if (weir_path_exists(staging)) err = weir_folder_remove(staging);
    if (!err) err = weir_model_stage(staging, opts);
    if (!err) err = models_move_in(models, staging, id);
    if (err && weir_path_exists(staging)) weir_err_keep(&err, weir_folder_remove(staging));
    if (err) *id = '\0';
    weir_err_keep(&err, weir_file_close(lock));
    return err;
}

/* What cannot be opened does not serve (MODEL-M4). The entry gets what the register says of the model: its task stands
 * there as one word. */
static weir_err models_try(weir_models *models, const char *id, const weir_model_opts *opts, weir_models_entry *entry) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_model *model = NULL;
    weir_err err = weir_models_path(models, id, path, sizeof path);
    if (!err) err = weir_model_open(path, opts, &model);
    if (err) return err;
    const char *task = weir_model_task(model), *digits = strrchr(id, '-') + 1;
    if (strncmp(weir_model_manifest(model), digits, strlen(digits)) != 0) {
        err = WEIR_ERR(WEIR_EPERM,
                       "%s holds another model than the one that was added under this name; take a copy of it", id);
    } else if (strlen(task) >= sizeof entry->task || strpbrk(task, " \t\n\r")) {
        err = WEIR_ERR(WEIR_EDATA, "the task '%.60s' has a blank in it or is too long; name it in one word", task);
    } else {
        snprintf(entry->id, sizeof entry->id, "%s", id);
        snprintf(entry->task, sizeof entry->task, "%s", task);
        snprintf(entry->manifest, sizeof entry->manifest, "%s", weir_model_manifest(model));
    }
    weir_model_close(model);
    return err;
}

/* What no key vouched for is not signed afterwards: a history that another wrote would say where rollbacks lead. */
static void models_begin_anew(const weir_models *models, weir_model_history *history,
                              const weir_models_change *change) {
    if (history->signing != WEIR_MODEL_SIGNING_ABSENT)
        WEIR_LOG(WARN, "models.begun", "what stood in `current` is left out; its history begins anew",
                 WEIR_TEXT("models", models->folder));
    weir_model_history_begin(history);
    if (*change->after_register) memcpy(history->register_id, change->after_register, sizeof history->register_id);
}

/* The history that the change goes on from. */
static weir_err models_begin(weir_models *models, const weir_models_change *change, const weir_model_opts *opts,
                             weir_model_history *history) {
    weir_public_key own = change->key ? weir_secret_key_public(change->key) : (weir_public_key){{0}};
    weir_model_opts by_own = *opts;
    if (change->key && !opts->key_count &&
        opts->accept_unsigned) { /* else nothing would say what it has signed before */
        by_own.keys = &own;
        by_own.key_count = 1;
    }
    weir_err err = weir_model_history_load(models->current, &by_own, history);
    bool told = *change->after_register != 0;
    if (!change->key && !opts->accept_unsigned)
        return WEIR_ERR(WEIR_EPERM,
                        "%s/current must be signed: name the secret key with --key FILE, or by the setting "
                        "models.signing_key",
                        models->folder);
    bool unsigned_yet =
        history->signing == WEIR_MODEL_SIGNING_UNSIGNED || history->signing == WEIR_MODEL_SIGNING_EARLIER;
    if (err && !told && !(change->take_over && change->key && unsigned_yet)) return err;
    if (!err && !change->key && history->signing == WEIR_MODEL_SIGNING_SIGNED)
        return WEIR_ERR(WEIR_EPERM, "%s/current is signed, and without a key the next would not be; name it with --key",
                        models->folder);
    bool another = told && strcmp(history->register_id, change->after_register) != 0;
    if (err || another || !*history->register_id || (change->key && unsigned_yet))
        models_begin_anew(models, history, change);
    return WEIR_OK;
}

/* Called with the lock. id NULL: back to the one before. */
static weir_err models_decide(weir_models *models, const char *id, const weir_models_change *change,
                              const weir_model_opts *opts, weir_model_history *history, weir_models_entry *entryp) {
    const weir_models_entry *last = history->count ? &history->entries[history->count - 1] : NULL, *before = NULL;
    uint64_t generation = last ? last->generation : 0;
    weir_model_opts open = *opts;
    weir_models_entry entry = {.generation =
                                   1 + (generation > change->after_generation ? generation : change->after_generation),
                               .time_us = weir_clock_wall_us(models->clock),
                               .action = id ? WEIR_MODELS_PROMOTE : WEIR_MODELS_ROLLBACK,
                               .is_signed = change->key != NULL};
    weir_err err = id ? WEIR_OK : weir_model_history_before(history, models->folder, &before);
    if (!err && before) open.manifest = before->manifest;
    if (!err) err = models_try(models, id ? id : before->id, &open, &entry); // MODEL-M4
    if (err) return err;
    if (last && strcmp(last->id, entry.id) == 0 && last->is_signed == entry.is_signed && !*change->after_register) {
        *entryp = *last;
        return WEIR_OK;
    }
    if (entry.generation > WEIR_MODELS_GENERATION_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "no generation is left in %s; move `current` away and promote", models->folder);
    memcpy(entry.register_id, history->register_id, sizeof entry.register_id);
    weir_model_history_reason(entry.reason, change->reason);
    err = weir_model_history_add(history, &entry);
    weir_kill_point("models.decided");
    if (!err) err = weir_model_history_store(models->current, history, change->key, opts); // MODEL-M3, MODEL-M5
    weir_kill_point("models.promoted");
    if (!err) *entryp = entry;
    return err;
}

static weir_err models_change(weir_models *models, const char *id, const weir_models_change *change,
                              const weir_model_opts *opts, weir_models_entry *entryp) {
    weir_file *lock = NULL;
    weir_model_history history;
    *entryp = (weir_models_entry){0};
    if (!weir_path_exists(models->folder))
        return WEIR_ERR(WEIR_ENOTFOUND, "there are no models in %s; weir train makes the first", models->folder);
    weir_err err = models_lock(models, &lock);
    if (err) return err;
    err = models_begin(models, change, opts, &history);
    if (!err) err = models_decide(models, id, change, opts, &history, entryp);
    weir_model_history_free(&history);
    weir_err_keep(&err, weir_file_close(lock));
    return err;
}

weir_err weir_models_promote(weir_models *models, const char *id, const weir_models_change *change,
                             const weir_model_opts *opts, weir_models_entry *entryp) {
    *entryp = (weir_models_entry){0};
    if (!id) return WEIR_ERR(WEIR_EINVAL, "name the model to promote; weir model list names those that are");
    return models_change(models, id, change, opts, entryp);
}

weir_err weir_models_rollback(weir_models *models, const weir_models_change *change, const weir_model_opts *opts,
                              weir_models_entry *entryp) {
    return models_change(models, NULL, change, opts, entryp);
}
