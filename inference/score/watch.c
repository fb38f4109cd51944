/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - the register's serving model becomes the one that answers; what cannot be loaded leaves the one before.
 *
 * A look is one stat while nothing changes. A model that failed is tried again when the register moves on, when
 * somebody says so, and now and then by itself: what kept it out may have been a mode, a key or a lack of descriptors.
 */
#include <stdio.h>
#include <string.h>

#include <weir/inference/pack/pack.h>
#include <weir/inference/score/scoring.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/log.h>
#include <weir/store/base/thread.h>

#define PATH_BYTES_MAX 4096u
#define PATIENCE_MAX   32u /* looks between two tries of what failed: each reads all of it */

struct weir_scoring_watch {
    weir_scoring_watch_opts opts;
    weir_mutex mutex; /* MODELS; guards the rest */
    weir_models *models;
    weir_scoring_state state;
    bool lost;                 /* the register could not be believed at the last look */
    unsigned patience, waited; /* in looks, since a model failed                     */
};

static void scoring_watch_pack_release(void *owner) {
    weir_pack_close(owner);
}

typedef struct scoring_watch_trusted {
    weir_public_key keys[WEIR_PUBLIC_KEYS_MAX];
    weir_model_opts opts;
} scoring_watch_trusted;

/* Without keys nothing that must be signed can be opened, and the sentence of that says what to do. */
static weir_err scoring_watch_trust(const weir_scoring_watch *watch, scoring_watch_trusted *t) {
    size_t count = 0;
    const char *place = weir_public_keys_place(watch->opts.data_keys, watch->opts.public_keys);
    weir_err err = place && *place ? weir_public_keys_load(place, t->keys, &count) : WEIR_OK;
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK;
    t->opts = (weir_model_opts){.keys = t->keys, .key_count = count, .accept_unsigned = watch->opts.accept_unsigned};
    return err;
}

/* The pack goes with the model that is made of it. */
static weir_err scoring_watch_make_model(const weir_scoring_watch *watch, const char *id, weir_pack *pack,
                                         weir_score_model **modelp) {
    const weir_score_model_opts opts = {
        .name = weir_nn_task(weir_nn_shape_of(weir_pack_nn(pack))),
        .version = id,
        .nn = weir_pack_nn(pack),
        .params = weir_pack_params(pack),
        .seed = weir_pack_sample_seed(pack),
        .slope = weir_pack_slope(pack),
        .offset = weir_pack_offset(pack),
        .release = scoring_watch_pack_release,
        .owner = pack,
    };
    weir_err err = weir_score_model_open(&opts, watch->opts.schema, modelp);
    if (err) weir_pack_close(pack);
    return err;
}

static weir_err scoring_watch_load(weir_scoring_watch *watch, const weir_models_entry *entry,
                                   const scoring_watch_trusted *t, weir_score_model **modelp) {
    char path[PATH_BYTES_MAX];
    weir_model *folder = NULL;
    weir_pack *pack = NULL;
    weir_model_opts opts = t->opts;
    opts.manifest = entry->manifest; /* a name alone may hold any model that was ever signed */
    weir_err err = weir_models_path(watch->models, entry->id, path, sizeof path);
    *modelp = NULL;
    if (!err) err = weir_model_open(path, &opts, &folder);
    if (!err) err = weir_pack_open(folder, weir_kernels_cpu(), &pack);
    if (!err) err = scoring_watch_make_model(watch, entry->id, pack, modelp);
    weir_model_close(folder);
    return err;
}

/* The same trouble, looked at once a second, is one line. */
static void scoring_watch_trouble(weir_scoring_watch *watch, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    if (strcmp(sentence, watch->state.trouble) != 0) weir_log_error("model.refused", err);
    memcpy(watch->state.trouble, sentence, sizeof sentence);
}

static void scoring_watch_serve(weir_scoring_watch *watch, const weir_models_entry *entry,
                                const scoring_watch_trusted *t) {
    weir_score_model *model;
    weir_err err = scoring_watch_load(watch, entry, t, &model);
    if (err) {
        scoring_watch_trouble(watch, weir_err_prefix(err, "model %s cannot serve", entry->id));
        return;
    }
    weir_scoring_swap(watch->opts.scoring, model);
    weir_score_model_drop(model);
    snprintf(watch->state.serving, sizeof watch->state.serving, "%s", entry->id);
    watch->state.trouble[0] = 0;
    WEIR_LOG(INFO, "model.serving", "serves another model", WEIR_TEXT("model", entry->id));
}

/* Whether what failed is to be tried again at this look: after 1, 2, 4, … of them. */
static bool scoring_watch_is_due(weir_scoring_watch *watch) {
    if (!watch->state.trouble[0]) {
        watch->patience = watch->waited = 0;
        return false;
    }
    if (watch->waited++ < watch->patience) return false;
    watch->patience = watch->patience ? watch->patience * 2 : 1;
    if (watch->patience > PATIENCE_MAX) watch->patience = PATIENCE_MAX;
    watch->waited = 0;
    return true;
}

/* What the register names, if it may be believed and is not older than what was seen. */
static weir_err scoring_watch_see(weir_scoring_watch *watch, scoring_watch_trusted *t, weir_models_entry *entry) {
    weir_err err = scoring_watch_trust(watch, t);
    if (!err) err = weir_models_current(watch->models, &t->opts, entry);
    if (!err && watch->opts.seen) err = weir_models_admit(watch->opts.seen, watch->models, &t->opts, entry);
    return err;
}

static void scoring_watch_follow(weir_scoring_watch *watch, const weir_models_entry *entry,
                                 const scoring_watch_trusted *t) {
    bool serves = !strcmp(entry->id, watch->state.serving) && !watch->state.trouble[0];
    watch->state.generation = entry->generation;
    if (!entry->generation) watch->state.trouble[0] = 0; /* the register can be read, and names none */
    if (entry->generation && !serves) scoring_watch_serve(watch, entry, t);
}

void weir_scoring_watch_look(weir_scoring_watch *watch, bool force) {
    weir_models_entry entry = {0};
    scoring_watch_trusted t;
    weir_mutex_lock(&watch->mutex);
    if (force || watch->lost || weir_models_changed(watch->models) || scoring_watch_is_due(watch)) {
        weir_err err = scoring_watch_see(watch, &t, &entry);
        if (err)
            scoring_watch_trouble(watch, err);
        else
            scoring_watch_follow(watch, &entry, &t);
        watch->lost = err != WEIR_OK;
    }
    weir_mutex_unlock(&watch->mutex);
}

void weir_scoring_watch_state(weir_scoring_watch *watch, weir_scoring_state *statep) {
    weir_mutex_lock(&watch->mutex);
    *statep = watch->state;
    weir_mutex_unlock(&watch->mutex);
}

weir_err weir_scoring_watch_open(const weir_scoring_watch_opts *opts, weir_scoring_watch **watchp) {
    *watchp = NULL;
    weir_scoring_watch *watch = weir_calloc(1, sizeof *watch);
    if (!watch) return WEIR_NOMEM("while watching the models");
    watch->opts = *opts;
    weir_mutex_init(&watch->mutex, WEIR_RANK_MODELS, "models watch");
    weir_err err = weir_models_open(opts->folder, weir_clock_system(), &watch->models);
    if (err) {
        weir_scoring_watch_close(watch);
        return err;
    }
    *watchp = watch;
    return WEIR_OK;
}

void weir_scoring_watch_close(weir_scoring_watch *watch) {
    if (!watch) return;
    weir_models_close(watch->models);
    weir_mutex_destroy(&watch->mutex);
    weir_free(watch);
}
