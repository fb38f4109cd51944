/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - the new model, the one that serves, and which of them shall. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/json.h>

#include "nightly_private.h"

/* --- which models ------------------------------------------------------------------------------------------------ */

typedef struct compare_search {
    weir_models *models;
    const char *snapshot, *parts;
    char id[WEIR_MODEL_ID_MAX];
} compare_search;

/* A model that was trained on the snapshot or on its parts, by its provenance. Signed or not: one that is not to be
 * trusted is refused, with a sentence, when it is judged. */
static weir_err compare_see_model(void *context, const char *id) {
    const weir_model_opts opts = {.accept_unsigned = true};
    compare_search *s = context;
    char path[WEIR_NIGHT_PATH_MAX];
    size_t length;
    weir_model *model = NULL;
    weir_arena *arena = NULL;
    const weir_json_node *root;
    if (weir_models_path(s->models, id, path, sizeof path) || weir_model_open(path, &opts, &model)) return WEIR_OK;
    const char *text = weir_model_text_of(model, WEIR_MODEL_PROVENANCE, &length);
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse("the provenance", text, length, WEIR_JSON_DEPTH_MAX, arena, &root);
    if (!err && (strcmp(weir_json_node_text(weir_json_find(root, "snapshot")), s->snapshot) == 0 ||
                 strcmp(weir_json_node_text(weir_json_find(root, "parts")), s->parts) == 0))
        snprintf(s->id, sizeof s->id, "%s", id);
    weir_arena_close(arena);
    weir_model_close(model);
    return WEIR_OK; /* a provenance that cannot be read names no snapshot */
}

weir_err weir_night_find_candidate(const weir_night *night, char id[WEIR_MODEL_ID_MAX]) {
    compare_search s = {.snapshot = night->snapshot_folder, .parts = night->parts_folder};
    weir_err err = weir_models_open(night->models, weir_clock_system(), &s.models);
    if (!err) err = weir_models_list(s.models, compare_see_model, &s);
    weir_models_close(s.models);
    memcpy(id, s.id, sizeof s.id);
    return err;
}

weir_err weir_night_find_serving(const weir_night *night, char id[WEIR_MODEL_ID_MAX]) {
    weir_models *models = NULL;
    weir_models_entry entry = {0};
    weir_model_trust t;
    id[0] = 0;
    if (!weir_path_exists(night->models)) return WEIR_OK; /* opening would make it, and a rehearsal makes nothing */
    weir_err err = weir_model_trust_load(night->public_keys, night->accept_unsigned, &t);
    if (!err) err = weir_models_open(night->models, weir_clock_system(), &models);
    if (!err) err = weir_models_current(models, &t.opts, &entry);
    weir_models_close(models);
    memcpy(id, entry.id, sizeof entry.id);
    return err;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

weir_err weir_night_figure_parse(const char *name, const char *text, weir_night_figure *figurep,
                                 weir_night_figure *otherp, weir_night_difference *differencep) {
    const weir_json_node *root;
    weir_arena *arena = NULL;
    weir_night_figure figure = {0}, other = {0};
    weir_night_difference difference = {.known = false};
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(name, text, strlen(text), WEIR_JSON_DEPTH_MAX, arena, &root);
    if (!err) err = weir_night_figure_read(root, &figure);
    if (!err && !figure.measure[0]) err = WEIR_ERR(WEIR_EDATA, "%s printed no figure: %.100s", name, text);
    if (!err && otherp) {
        err = weir_night_figure_read(weir_json_find(root, "against"), &other);
        if (!err) err = weir_night_difference_read(root, &difference);
        if (!err && (!other.measure[0] || !difference.known))
            err = WEIR_ERR(WEIR_EDATA, "%s compared nothing: %.100s", name, text);
    }
    if (!err && otherp) {
        *otherp = other;
        *differencep = difference;
    }
    if (!err) weir_night_example_read(root, &figure);
    if (!err) *figurep = figure;
    weir_arena_close(arena);
    return err;
}

/* --- the decision ------------------------------------------------------------------------------------------------ */

/* A figure that is higher by chance is no reason to change what works: the 95 % interval of the difference is to lie
 * above 0, or with a tolerance the new figure not below the old one by more. */
bool weir_night_decide(const weir_night *night, char *sentence, size_t size) {
    const weir_night_state *s = &night->state;
    const weir_night_figure *own = &s->candidate_figure, *other = &s->serving_figure;
    const char *measure = own->measure;
    unsigned long long targets = own->targets;
    if (!s->serving[0]) {
        snprintf(sentence, size, "promoted %s: no model served yet; its %s is %.4f on %llu targets", s->candidate,
                 measure, own->value, targets);
        return true;
    }
    if (!other->measure[0] && night->force) {
        snprintf(sentence, size, "promoted %s: --force, without a figure of %s; its own %s is %.4f", s->candidate,
                 s->serving, measure, own->value);
        return true;
    }
    const bool better = s->difference.low > 0; // NIGHTLY-G3
    const bool within = night->tolerance > 0 && own->value >= other->value - night->tolerance;
    if (better || within || night->force) {
        snprintf(sentence, size,
                 "promoted %s: %sits %s is %.4f, that of %s is %.4f on the same %llu targets (%+.4f to %+.4f)%s",
                 s->candidate, better || within ? "" : "--force, though ", measure, own->value, s->serving,
                 other->value, targets, s->difference.low, s->difference.high,
                 within && !better ? ", within --tolerance" : "");
        return true;
    }
    snprintf(sentence, size, "kept %s: its %s is %.4f, that of %s is %.4f on the same %llu targets (%+.4f to %+.4f)%s",
             s->serving, measure, other->value, s->candidate, own->value, targets, s->difference.low,
             s->difference.high, own->value > other->value ? ", which may be chance" : "");
    return false;
}

weir_err weir_night_promote(const weir_night *night, const char *reason) {
    weir_model_trust t;
    weir_models_entry entry;
    weir_models *models = NULL;
    weir_secret_key *key = NULL;
    weir_err err = weir_model_trust_load(night->public_keys, night->accept_unsigned, &t);
    if (!err && night->key[0]) err = weir_secret_key_load(night->key, &key);
    const weir_models_change change = {.reason = reason, .key = key};
    if (!err) err = weir_models_open(night->models, weir_clock_system(), &models);
    if (!err) err = weir_models_promote(models, night->state.candidate, &change, &t.opts, &entry);
    weir_models_close(models);
    weir_secret_key_free(key);
    return err;
}
