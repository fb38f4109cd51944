/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - the new model, the one that serves, and which of them shall. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/json.h>

#include "nightly_private.h"

/* --- which models ------------------------------------------------------------------------------------------------ */

typedef struct search {
    const weir_night *night;
    weir_models *models;
    char snapshot[WEIR_NIGHT_PATH_MAX];
    char id[WEIR_MODEL_ID_MAX];
} search;

static bool names_snapshot(const weir_model *model, const char *snapshot) {
    size_t length;
    const char *text = weir_model_text_of(model, WEIR_MODEL_PROVENANCE, &length);
    const weir_json_node *root;
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse("provenance", text, length, WEIR_JSON_DEPTH_MAX, arena, &root);
    bool same = !err && strcmp(weir_json_node_text(weir_json_find(root, "snapshot")), snapshot) == 0;
    weir_arena_close(arena);
    return same;
}

/* Signed or not: what is not to be believed is refused, with a sentence, when it is judged. */
static weir_err see_model(void *context, const char *id) {
    const weir_model_opts opts = {.accept_unsigned = true};
    search *s = context;
    char path[WEIR_NIGHT_PATH_MAX];
    weir_model *model = NULL;
    if (weir_models_path(s->models, id, path, sizeof path) || weir_model_open(path, &opts, &model)) return WEIR_OK;
    if (names_snapshot(model, s->snapshot)) snprintf(s->id, sizeof s->id, "%s", id);
    weir_model_close(model);
    return WEIR_OK;
}

weir_err weir_night_find_candidate(const weir_night *night, char id[WEIR_MODEL_ID_MAX]) {
    search s = {.night = night};
    weir_err err = weir_night_path(s.snapshot, night->folder, "snapshot");
    if (!err) err = weir_models_open(night->models, weir_clock_system(), &s.models);
    if (!err) err = weir_models_list(s.models, see_model, &s);
    weir_models_close(s.models);
    memcpy(id, s.id, sizeof s.id);
    return err;
}

typedef struct trusted {
    weir_public_key keys[WEIR_PUBLIC_KEYS_MAX];
    weir_model_opts opts;
} trusted;

static weir_err trust(const weir_night *night, trusted *t) {
    size_t count = 0;
    weir_err err = weir_public_keys_load(night->public_keys, t->keys, &count);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK;
    t->opts = (weir_model_opts){.keys = t->keys, .key_count = count, .accept_unsigned = night->accept_unsigned};
    return err;
}

weir_err weir_night_find_serving(const weir_night *night, char id[WEIR_MODEL_ID_MAX]) {
    weir_models *models = NULL;
    weir_models_entry entry = {0};
    trusted t;
    id[0] = 0;
    if (!weir_path_exists(night->models)) return WEIR_OK; /* opening would make it, and a rehearsal makes nothing */
    weir_err err = trust(night, &t);
    if (!err) err = weir_models_open(night->models, weir_clock_system(), &models);
    if (!err) err = weir_models_current(models, &t.opts, &entry);
    weir_models_close(models);
    memcpy(id, entry.id, sizeof entry.id);
    return err;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

static weir_err read_count(const weir_json_node *root, const char *key, uint64_t *countp) {
    const weir_json_node *node = weir_json_find(root, key);
    int64_t number = 0;
    weir_err err = node ? weir_json_node_i64(node, 0, INT64_MAX, &number) : WEIR_OK;
    *countp = (uint64_t)number;
    return err;
}

void weir_night_example_read(const weir_json_node *root, weir_night_figure *figure) {
    const weir_json_node *example = weir_json_find(root, "example");
    const weir_json_node *type = weir_json_find(example, "type"), *key = weir_json_find(example, "key");
    if (!type || !key || strlen(weir_json_node_text(key)) >= sizeof figure->example_key) return;
    snprintf(figure->example_type, sizeof figure->example_type, "%s", weir_json_node_text(type));
    snprintf(figure->example_key, sizeof figure->example_key, "%s", weir_json_node_text(key));
}

weir_err weir_night_figure_read(const char *name, const char *text, weir_night_figure *figurep) {
    const weir_json_node *root = NULL;
    weir_arena *arena = NULL;
    *figurep = (weir_night_figure){0};
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(name, text, strlen(text), WEIR_JSON_DEPTH_MAX, arena, &root);
    const weir_json_node *measure = weir_json_find(root, "measure"), *value = weir_json_find(root, "value");
    if (!err && (!measure || !value)) err = WEIR_ERR(WEIR_EDATA, "%s says no figure: %.100s", name, text);
    if (!err) err = weir_json_node_f64(value, &figurep->value);
    if (!err) err = read_count(root, "targets", &figurep->targets);
    if (!err) err = read_count(root, "positives", &figurep->positives);
    if (!err) weir_night_example_read(root, figurep);
    if (!err) snprintf(figurep->measure, sizeof figurep->measure, "%s", weir_json_node_text(measure));
    weir_arena_close(arena);
    return err;
}

/* --- the decision ------------------------------------------------------------------------------------------------ */

static bool decide_alone(const weir_night_state *s, char *sentence, size_t size) {
    snprintf(sentence, size, "promoted %s: no model served yet; its %s is %.4f on %llu targets", s->candidate,
             s->candidate_figure.measure, s->candidate_figure.value, (unsigned long long)s->candidate_figure.targets);
    return true;
}

/* Strictly better without a tolerance: an equal one is no reason to change what works. */
bool weir_night_decide(const weir_night *night, char *sentence, size_t size) {
    const weir_night_state *s = &night->state;
    double own = s->candidate_figure.value, other = s->serving_figure.value;
    if (!s->serving[0]) return decide_alone(s, sentence, size);
    if (!s->serving_figure.measure[0]) {
        snprintf(sentence, size, "promoted %s: --force, without a figure of %s; its own %s is %.4f", s->candidate,
                 s->serving, s->candidate_figure.measure, own);
        return true;
    }
    bool better = night->tolerance > 0 ? own >= other - night->tolerance : own > other;
    const char *why = better ? "" : night->force ? "--force, though " : "";
    snprintf(sentence, size, "%s %s: %sits %s is %.4f, that of %s is %.4f on the same %llu targets%s",
             better || night->force ? "promoted" : "kept", better || night->force ? s->candidate : s->serving, why,
             s->candidate_figure.measure, better || night->force ? own : other,
             better || night->force ? s->serving : s->candidate, better || night->force ? other : own,
             (unsigned long long)s->candidate_figure.targets, better && own <= other ? ", within --tolerance" : "");
    return better || night->force;
}

weir_err weir_night_promote(const weir_night *night, const char *reason) {
    trusted t;
    weir_models_entry entry;
    weir_models *models = NULL;
    weir_secret_key *key = NULL;
    weir_err err = trust(night, &t);
    if (!err && night->key[0]) err = weir_secret_key_load(night->key, &key);
    const weir_models_change change = {.reason = reason, .key = key};
    if (!err) err = weir_models_open(night->models, weir_clock_system(), &models);
    if (!err) err = weir_models_promote(models, night->state.candidate, &change, &t.opts, &entry);
    weir_models_close(models);
    weir_secret_key_free(key);
    return err;
}
