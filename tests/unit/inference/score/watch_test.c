/* SPDX-License-Identifier: Apache-2.0 */
/* watch_test.c - which keys count when the serving model is loaded: those that lie there then, not at the start. */
#include "model_fixture.h"
#include "model_register.h"

#include <weir/inference/scoring.h>
#include <weir/store/graph.h>

#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES_MAX 4096

typedef struct lookout {
    weir_schema *schema;
    weir_graph *graph;
    weir_scoring *scoring;
    weir_scoring_watch *watch;
    char folder[PATH_BYTES_MAX], data_keys[PATH_BYTES_MAX], public_keys[PATH_BYTES_MAX];
} lookout;

static void lookout_open(lookout *l) {
    const weir_graph_opts graph = {.shards = 1, .memory_bytes = 16u << 20, .create = true};
    memset(l, 0, sizeof *l);
    snprintf(l->folder, sizeof l->folder, "%s", weir_test_path("models"));
    snprintf(l->data_keys, sizeof l->data_keys, "%s", weir_test_path("data.pub"));
    snprintf(l->public_keys, sizeof l->public_keys, "%s", weir_test_path("setting.pub"));
    l->schema = register_schema();
    assert_ok(weir_graph_open(weir_test_path("store"), l->schema, &graph, &l->graph));
    assert_ok(weir_scoring_open(&(weir_scoring_opts){.graph = l->graph, .threads = 1}, &l->scoring));
    const weir_scoring_watch_opts watch = {.scoring = l->scoring,
                                           .schema = l->schema,
                                           .folder = l->folder,
                                           .data_keys = l->data_keys,
                                           .public_keys = l->public_keys};
    assert_ok(weir_scoring_watch_open(&watch, &l->watch));
}

static void lookout_close(lookout *l) {
    weir_scoring_watch_close(l->watch);
    weir_scoring_close(l->scoring);
    assert_ok(weir_graph_close(l->graph));
    weir_schema_free(l->schema);
}

/* A model that these keys sign begins to serve; the watch looks. */
static weir_scoring_state promote(lookout *l, const model_keys *keys, uint64_t seed, char id[WEIR_MODEL_ID_MAX]) {
    const weir_model_opts opts = model_opts(keys);
    weir_scoring_state state;
    weir_models *models;
    weir_models_entry entry;
    assert_ok(weir_models_open(l->folder, weir_clock_system(), &models));
    assert_ok(register_add(models, l->schema, 16, seed, keys->secret, id));
    assert_ok(model_promote(models, id, "a test", keys->secret, &opts, &entry));
    weir_models_close(models);
    weir_scoring_watch_look(l->watch, false);
    weir_scoring_watch_state(l->watch, &state);
    return state;
}

static void keys_made_after_the_start_count(void **state) {
    lookout l;
    char id[WEIR_MODEL_ID_MAX];
    (void)state;
    lookout_open(&l);
    weir_scoring_watch_look(l.watch, true);
    model_keys keys = model_keys_make("data");
    weir_scoring_state seen = promote(&l, &keys, 1, id);
    assert_string_equal(seen.trouble, "");
    assert_string_equal(seen.serving, id);
    weir_secret_key_free(keys.secret);
    lookout_close(&l);
}

/* Those of the setting serve until there are some beside the data, which then count alone. */
static void keys_beside_the_data_count_before_the_setting(void **state) {
    lookout l;
    char first[WEIR_MODEL_ID_MAX], second[WEIR_MODEL_ID_MAX], third[WEIR_MODEL_ID_MAX];
    (void)state;
    lookout_open(&l);
    model_keys setting = model_keys_make("setting");
    weir_scoring_state seen = promote(&l, &setting, 1, first);
    assert_string_equal(seen.serving, first);
    model_keys data = model_keys_make("data");
    seen = promote(&l, &data, 2, second);
    assert_string_equal(seen.serving, second);
    seen = promote(&l, &setting, 3, third);
    assert_string_equal(seen.serving, second);
    assert_non_null(strstr(seen.trouble, third));
    weir_secret_key_free(setting.secret);
    weir_secret_key_free(data.secret);
    lookout_close(&l);
}

static bool trouble_is(lookout *l, const char *part) {
    weir_scoring_state state;
    weir_scoring_watch_look(l->watch, false);
    weir_scoring_watch_state(l->watch, &state);
    return part ? strstr(state.trouble, part) != NULL : !state.trouble[0] && state.serving[0];
}

/* What the operator was told to mend is seen without a word from him, within the patience of the watch. */
static void what_is_mended_serves_by_itself(void **state) {
    lookout l;
    char id[WEIR_MODEL_ID_MAX], current[PATH_BYTES_MAX + 16];
    (void)state;
    lookout_open(&l);
    model_keys keys = model_keys_make("data");
    assert_int_equal(chmod(l.data_keys, 0666), 0);
    weir_scoring_state seen = promote(&l, &keys, 1, id);
    assert_string_equal(seen.serving, "");
    assert_non_null(strstr(seen.trouble, "run: chmod go-w"));
    assert_non_null(strstr(seen.trouble, l.data_keys));
    assert_int_equal(chmod(l.data_keys, 0640), 0);
    uint32_t looks = 0;
    while (!trouble_is(&l, NULL) && looks < 100)
        looks++;
    assert_true(looks < 100);
    snprintf(current, sizeof current, "%s/current", l.folder);
    assert_int_equal(chmod(current, 0662), 0);
    weir_models *models;
    weir_models_entry entry;
    assert_ok(weir_models_open(l.folder, weir_clock_system(), &models));
    assert_err(weir_models_current(models, &opts, &entry), WEIR_EPERM, "chmod go-w");
    assert_int_equal(chmod(current, 0640), 0);
    assert_int_equal(chmod(l.folder, 01777), 0);
    assert_err(weir_models_current(models, &opts, &entry), WEIR_EPERM, l.folder);
    assert_int_equal(chmod(l.folder, 0750), 0);
    assert_ok(weir_models_current(models, &opts, &entry));
    weir_models_close(models);
    weir_secret_key_free(keys.secret);
    lookout_close(&l);
}

/* Whatever stands in the place of a file, nobody waits for it. */
static void a_pipe_in_the_place_of_a_file_is_refused(void **state) {
    static const char *const names[] = {"MANIFEST", "MANIFEST.sig", "model.json", "weights.safetensors"};
    lookout l;
    char id[WEIR_MODEL_ID_MAX], path[2 * PATH_BYTES_MAX], aside[PATH_BYTES_MAX];
    weir_scoring_state seen;
    (void)state;
    lookout_open(&l);
    model_keys keys = model_keys_make("data");
    promote(&l, &keys, 1, id);
    snprintf(aside, sizeof aside, "%s", weir_test_path("aside"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        weir_scoring_watch *watch;
        snprintf(path, sizeof path, "%s/%s/%s", l.folder, id, names[i]);
        for (int link = 0; link < 2; link++) {
            assert_int_equal(rename(path, aside), 0);
            assert_int_equal(link ? symlink(aside, path) : mkfifo(path, 0600), 0);
            const weir_scoring_watch_opts opts = {
                .scoring = l.scoring, .schema = l.schema, .folder = l.folder, .data_keys = l.data_keys};
            assert_ok(weir_scoring_watch_open(&opts, &watch));
            weir_scoring_watch_look(watch, false);
            weir_scoring_watch_state(watch, &seen);
            assert_non_null(strstr(seen.trouble, link ? "symbolic link" : "not a regular file"));
            assert_non_null(strstr(seen.trouble, path));
            weir_scoring_watch_close(watch);
            assert_int_equal(rename(aside, path), 0);
        }
    }
    weir_secret_key_free(keys.secret);
    lookout_close(&l);
}

WEIR_TESTS(WEIR_CASE(what_is_mended_serves_by_itself), WEIR_CASE(a_pipe_in_the_place_of_a_file_is_refused),
           WEIR_CASE(keys_made_after_the_start_count), WEIR_CASE(keys_beside_the_data_count_before_the_setting))
