/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - the register's serving model becomes the one that answers; what cannot be loaded leaves the one before.
 *
 * A look is one stat while nothing changes. A model that failed is tried again when the register moves on, when
 * a look is forced, and now and then by itself: what kept it out may have been a mode, a key or a lack of descriptors.
 */
#include <stdio.h>
#include <string.h>

#include <weir/inference/pack/pack.h>
#include <weir/inference/score/scoring.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
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

/* The model of the entry: its folder is verified and its network unpacked; the pack goes with the model. Of one that
 * recommends, *recommenderp. */
static weir_err scoring_watch_load(weir_scoring_watch *watch, const weir_models_entry *entry, const weir_model_trust *t,
                                   weir_score_model **modelp, weir_recommend_model **recommenderp) {
    char path[PATH_BYTES_MAX];
    weir_model *folder = NULL;
    weir_pack *pack = NULL;
    weir_model_opts opts = t->opts;
    opts.manifest = entry->manifest; /* a name alone may hold any model that was ever signed */
    *modelp = NULL;
    *recommenderp = NULL;
    weir_err err = weir_models_path(watch->models, entry->id, path, sizeof path);
    if (!err) err = weir_model_open(path, &opts, &folder);
    if (!err && weir_recommend_is_of(folder)) {
        err = weir_recommend_model_open(folder, entry->id, watch->opts.schema, recommenderp);
        weir_err unindexed = err ? WEIR_OK : weir_recommend_model_index(*recommenderp, WEIR_RECOMMEND_INDEXED);
        if (unindexed) weir_log_error("recommend.unindexed", unindexed); /* answers are exact, and take longer */
        return err;
    }
    if (!err) err = weir_pack_open(folder, watch->opts.kernels ? watch->opts.kernels : weir_kernels_cpu(), &pack);
    if (!err) {
        const weir_pack_contents of = weir_pack_look(pack);
        const weir_score_model_opts model_opts = {
            .name = weir_nn_task(of.shape),
            .version = entry->id,
            .nn = of.nn,
            .params = of.params,
            .shape = of.shape,
            .trees = of.trees,
            .hops = of.hops,
            .blend = of.blend,
            .seed = of.sample_seed,
            .slope = of.slope,
            .offset = of.offset,
            .release = scoring_watch_pack_release,
            .owner = pack,
        };
        err = weir_score_model_open(&model_opts, watch->opts.schema, modelp);
        if (err) weir_pack_close(pack);
    }
    weir_model_close(folder);
    return err;
}

/* The same trouble, seen again at each look, is one line in the log. */
static void scoring_watch_trouble(weir_scoring_watch *watch, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    if (strcmp(sentence, watch->state.trouble) != 0) weir_log_error("model.refused", err);
    memcpy(watch->state.trouble, sentence, sizeof sentence);
}

/* Loads the entry's model and lets it answer; if that fails, the model before goes on. */
static void scoring_watch_serve(weir_scoring_watch *watch, const weir_models_entry *entry, const weir_model_trust *t) {
    weir_score_model *model;
    weir_recommend_model *recommender;
    WEIR_ASSERT(weir_mutex_held(&watch->mutex));
    weir_err err = scoring_watch_load(watch, entry, t, &model, &recommender);
    if (err) {
        scoring_watch_trouble(watch, weir_err_prefix(err, "model %s cannot serve", entry->id));
        return;
    }
    if (recommender)
        weir_scoring_swap_recommender(watch->opts.scoring, recommender);
    else
        weir_scoring_swap(watch->opts.scoring, model);
    weir_score_model_drop(model);
    weir_recommend_model_drop(recommender);
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

void weir_scoring_watch_look(weir_scoring_watch *watch, bool force) {
    weir_models_entry entry = {0};
    weir_model_trust t;
    weir_mutex_lock(&watch->mutex);
    if (!force && !watch->lost && !weir_models_changed(watch->models) && !scoring_watch_is_due(watch)) goto done;

    /* What the register names, if it may be believed and is not older than what was seen. */
    const char *keys = weir_public_keys_place(watch->opts.data_keys, watch->opts.public_keys);
    weir_err err = weir_model_trust_load(keys, watch->opts.accept_unsigned, &t);
    if (!err) err = weir_models_current(watch->models, &t.opts, &entry);
    if (!err && watch->opts.seen) err = weir_models_admit(watch->opts.seen, watch->models, &t.opts, &entry);
    watch->lost = err != WEIR_OK;
    if (err) {
        scoring_watch_trouble(watch, err);
        goto done;
    }

    watch->state.generation = entry.generation;
    bool serves = !strcmp(entry.id, watch->state.serving) && !watch->state.trouble[0];
    if (!entry.generation)
        watch->state.trouble[0] = 0; /* the register can be read, and names none */
    else if (!serves)
        scoring_watch_serve(watch, &entry, &t);
done:
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
