/* SPDX-License-Identifier: Apache-2.0 */
/* watch_test.c - which keys count when the serving model is loaded: those that lie there then, not at the start. */
#include "model_fixture.h"
#include "model_register.h"

#include <weir/inference/score/scoring.h>
#include <weir/store/base/alloc.h>
#include <weir/store/graph/graph.h>

#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES_MAX 4096

typedef struct lookout {
    weir_schema *schema;
    weir_graph *graph;
    weir_scoring *scoring;
    weir_scoring_watch *watch;
    char folder[PATH_BYTES_MAX], data_keys[PATH_BYTES_MAX], public_keys[PATH_BYTES_MAX], seen[PATH_BYTES_MAX];
} lookout;

/* As a server that starts: nothing serves, and what was seen is on the disk alone. */
static void lookout_watch_again(lookout *l) {
    const weir_scoring_watch_opts watch = {.scoring = l->scoring,
                                           .schema = l->schema,
                                           .folder = l->folder,
                                           .data_keys = l->data_keys,
                                           .public_keys = l->public_keys,
                                           .seen = l->seen};
    weir_scoring_watch_close(l->watch);
    assert_ok(weir_scoring_watch_open(&watch, &l->watch));
}

static void lookout_open(lookout *l) {
    const weir_graph_opts graph = {.shards = 1, .memory_bytes = 16u << 20, .create = true};
    memset(l, 0, sizeof *l);
    snprintf(l->folder, sizeof l->folder, "%s", weir_test_path("models"));
    snprintf(l->data_keys, sizeof l->data_keys, "%s", weir_test_path("data.pub"));
    snprintf(l->public_keys, sizeof l->public_keys, "%s", weir_test_path("setting.pub"));
    snprintf(l->seen, sizeof l->seen, "%s", weir_test_path("models.seen"));
    l->schema = register_schema();
    assert_ok(weir_graph_open(weir_test_path("store"), l->schema, &graph, &l->graph));
    assert_ok(weir_scoring_open(&(weir_scoring_opts){.graph = l->graph, .threads = 1}, &l->scoring));
    lookout_watch_again(l);
}

static void lookout_close(lookout *l) {
    weir_scoring_watch_close(l->watch);
    weir_scoring_close(l->scoring);
    assert_ok(weir_graph_close(l->graph));
    weir_schema_free(l->schema);
}

/* A model that these keys sign begins to serve; the watch looks. also: the keys of the promotion before, or NULL. */
static weir_scoring_state promote_after(lookout *l, const model_keys *keys, const model_keys *also, uint64_t seed,
                                        char id[WEIR_MODEL_ID_MAX]) {
    const weir_public_key both[] = {keys->public_key, also ? also->public_key : keys->public_key};
    const weir_model_opts opts = {.keys = both, .key_count = 2};
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

static weir_scoring_state promote(lookout *l, const model_keys *keys, uint64_t seed, char id[WEIR_MODEL_ID_MAX]) {
    return promote_after(l, keys, NULL, seed, id);
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

/* A network, then trees, then both, then a network again, of which each is another way to come to a score. */
static void models_of_each_family_serve(void **state) {
    static const weir_pack_family families[] = {WEIR_PACK_NETWORK, WEIR_PACK_TREES, WEIR_PACK_BLEND, WEIR_PACK_NETWORK};
    lookout l;
    char id[WEIR_MODEL_ID_MAX];
    (void)state;
    lookout_open(&l);
    model_keys keys = model_keys_make("data");
    const weir_model_opts opts = {.keys = &keys.public_key, .key_count = 1};
    for (uint32_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        weir_scoring_state seen;
        weir_models_entry entry;
        weir_models *models;
        assert_ok(weir_models_open(l.folder, weir_clock_system(), &models));
        assert_ok(register_add_family(models, l.schema, families[i], 8, i + 1, keys.secret, id));
        assert_ok(model_promote(models, id, "a test", keys.secret, &opts, &entry));
        weir_models_close(models);
        weir_scoring_watch_look(l.watch, false);
        weir_scoring_watch_state(l.watch, &seen);
        assert_string_equal(seen.trouble, "");
        assert_string_equal(seen.serving, id);
    }
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
    seen = promote_after(&l, &data, &setting, 2, second);
    assert_string_equal(seen.serving, second);
    seen = promote_after(&l, &setting, &data, 3, third);
    assert_string_equal(seen.serving, second);
    assert_non_null(strstr(seen.trouble, "none of the 1 keys"));
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
    const weir_model_opts opts = model_opts(&keys);
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

static void copy_current(const lookout *l, const char *name, bool back) {
    char current[PATH_BYTES_MAX + 16], *text = NULL;
    size_t length = 0;
    snprintf(current, sizeof current, "%s/current", l->folder);
    assert_ok(weir_file_load(back ? weir_test_path(name) : current, 1u << 20, &text, &length));
    assert_ok(weir_file_replace(back ? current : weir_test_path(name), text, length));
    weir_free(text);
}

/* Who can write a file of the register, and has no key. Each thing that he puts there is refused with a sentence, and
 * the model before goes on; a server that starts anew has none rather than his. */
static void m6_files_that_are_put_back_change_nothing(void **state) {
    lookout l;
    char first[WEIR_MODEL_ID_MAX], second[WEIR_MODEL_ID_MAX];
    weir_scoring_state now;
    (void)state;
    lookout_open(&l);
    model_keys keys = model_keys_make("data");
    promote(&l, &keys, 1, first);
    copy_current(&l, "old", false);
    now = promote(&l, &keys, 2, second);
    assert_string_equal(now.serving, second);
    copy_current(&l, "new", false);
    for (int restart = 0; restart < 2; restart++) {
        copy_current(&l, "old", true);
        assert_true(trouble_is(&l, "is generation 1, and 2 was seen"));
        weir_scoring_watch_state(l.watch, &now);
        assert_string_equal(now.serving, restart ? "" : second);
        assert_true(trouble_is(&l, "is generation 1, and 2 was seen")); /* and an hour later */
        weir_scoring_watch_look(l.watch, true);
        assert_true(trouble_is(&l, "is generation 1, and 2 was seen"));
        copy_current(&l, "new", true);
        assert_true(trouble_is(&l, NULL));
        if (restart) break;
        lookout_watch_again(&l);
    }
    weir_scoring_watch_state(l.watch, &now);
    assert_string_equal(now.serving, second);
    weir_secret_key_free(keys.secret);
    lookout_close(&l);
}

/* Its name is in `current`, rightly signed, and what lies there is rightly signed too: another night. */
static void m5_an_older_model_under_the_newer_name_is_refused(void **state) {
    lookout l;
    char ids[2][WEIR_MODEL_ID_MAX], path[2][2 * PATH_BYTES_MAX];
    weir_scoring_state now;
    (void)state;
    lookout_open(&l);
    model_keys keys = model_keys_make("data");
    for (int i = 0; i < 2; i++) {
        promote(&l, &keys, (uint64_t)i + 1, ids[i]);
        snprintf(path[i], sizeof path[i], "%s/%s", l.folder, ids[i]);
    }
    assert_ok(weir_file_rename(path[1], weir_test_path("aside")));
    assert_ok(weir_file_rename(path[0], path[1]));
    lookout_watch_again(&l);
    weir_scoring_watch_look(l.watch, true);
    weir_scoring_watch_state(l.watch, &now);
    assert_string_equal(now.serving, "");
    assert_non_null(strstr(now.trouble, "another model than the one that was promoted"));
    weir_secret_key_free(keys.secret);
    lookout_close(&l);
}

WEIR_TESTS(WEIR_CASE(models_of_each_family_serve), WEIR_CASE(m6_files_that_are_put_back_change_nothing),
           WEIR_CASE(m5_an_older_model_under_the_newer_name_is_refused), WEIR_CASE(what_is_mended_serves_by_itself),
           WEIR_CASE(a_pipe_in_the_place_of_a_file_is_refused), WEIR_CASE(keys_made_after_the_start_count),
           WEIR_CASE(keys_beside_the_data_count_before_the_setting))
