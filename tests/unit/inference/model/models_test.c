/* SPDX-License-Identifier: Apache-2.0 */
/* models_test.c - the register: promote, roll back, watch, and what is said about a bad `current`. */
#include "model_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/base/alloc.h>
#include <weir/base/fault.h>

typedef struct fixture {
    model_keys keys;
    weir_model_opts opts;
    weir_clock *clock;
    weir_models *models;
    char ids[4][WEIR_MODEL_ID_MAX];
} fixture;

/* 2026-11-21T10:15:00Z; four models, a second apart. */
static void setup(fixture *f) {
    *f = (fixture){.keys = model_keys_make("k")};
    f->opts = (weir_model_opts){.keys = &f->keys.public_key, .key_count = 1};
    assert_ok(weir_clock_manual_open(1795256100ll * WEIR_US_PER_S, &f->clock));
    assert_ok(weir_models_open(weir_test_path("models"), f->clock, &f->models));
    weir_model_write_opts write = model_write_opts(f->keys.secret);
    for (int i = 0; i < 4; i++) {
        assert_ok(weir_models_add(f->models, &write, f->ids[i]));
        weir_clock_manual_advance(f->clock, WEIR_US_PER_S);
    }
}

static void teardown(fixture *f) {
    weir_models_close(f->models);
    weir_clock_close(f->clock);
    weir_secret_key_free(f->keys.secret);
}

static void serves(fixture *f, const char *id, uint64_t generation) {
    weir_models_entry entry;
    assert_ok(weir_models_current(f->models, &entry));
    assert_string_equal(entry.id, id);
    assert_int_equal(entry.generation, generation);
}

static void promote(fixture *f, int i) {
    weir_models_entry entry;
    assert_ok(weir_models_promote(f->models, f->ids[i], "better", &f->opts, &entry));
    assert_string_equal(entry.id, f->ids[i]);
}

static weir_err count_id(void *context, const char *id) {
    int *count = context;
    assert_int_equal(strlen(id), 25);
    (*count)++;
    return WEIR_OK;
}

static void a_folder_is_made_by_the_first_model_alone(void **state) {
    (void)state;
    const weir_model_opts opts = {.accept_unsigned = true};
    const weir_model_write_opts write = model_write_opts(NULL);
    weir_models *models;
    weir_models_entry entry;
    char id[WEIR_MODEL_ID_MAX], path[WEIR_MODEL_ID_MAX];
    bool changed;
    int count = 0;
    assert_ok(weir_models_open(weir_test_path("models"), weir_clock_system(), &models));
    assert_ok(weir_models_current(models, &entry));
    assert_ok(weir_models_watch(models, 0, &changed, &entry));
    assert_true(!changed && !entry.generation);
    assert_ok(weir_models_list(models, count_id, &count));
    assert_err(weir_models_path(models, NULL, path, sizeof path), WEIR_ENOTFOUND, "serves yet");
    assert_err(weir_models_promote(models, "20261121T101500Z-1a2b3c4d", "it", &opts, &entry), WEIR_ENOTFOUND,
               "weir train makes the first");
    assert_err(weir_models_rollback(models, "it", &opts, &entry), WEIR_ENOTFOUND, "there are no models in");
    assert_false(weir_path_exists(weir_test_path("models")));
    assert_ok(weir_models_add(models, &write, id));
    assert_ok(weir_models_list(models, count_id, &count));
    assert_int_equal(count, 1);
    weir_models_close(models);
}

static void ids_are_times_and_hashes(void **state) {
    (void)state;
    fixture f;
    int count = 0;
    setup(&f);
    assert_memory_equal(f.ids[0], "20261121T101500Z-", 17);
    assert_memory_equal(f.ids[3], "20261121T101503Z-", 17);
    assert_ok(weir_models_list(f.models, count_id, &count));
    assert_int_equal(count, 4);
    serves(&f, "", 0);
    teardown(&f);
}

static void rolling_back_twice_goes_back_two(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    setup(&f);
    promote(&f, 0);
    assert_err(weir_models_rollback(f.models, "bad", &f.opts, &entry), WEIR_ENOTFOUND, "no model served before");
    promote(&f, 1);
    promote(&f, 2);
    promote(&f, 2); /* serves already: no line */
    serves(&f, f.ids[2], 3);
    assert_ok(weir_models_rollback(f.models, "bad", &f.opts, &entry));
    serves(&f, f.ids[1], 4);
    promote(&f, 3);
    assert_ok(weir_models_rollback(f.models, "bad", &f.opts, &entry));
    assert_ok(weir_models_rollback(f.models, "bad", &f.opts, &entry));
    serves(&f, f.ids[0], 7);
    assert_err(weir_models_rollback(f.models, "bad", &f.opts, &entry), WEIR_ENOTFOUND, "no model served before");
    teardown(&f);
}

static weir_err take_entry(void *context, const weir_models_entry *entry) {
    weir_models_entry **next = context;
    *(*next)++ = *entry;
    return WEIR_OK;
}

static void history_says_when_and_why(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entries[8], *next = entries, entry;
    setup(&f);
    promote(&f, 0);
    assert_ok(weir_models_promote(f.models, f.ids[1], "line\nend 0\n", &f.opts, &entry));
    assert_ok(weir_models_rollback(f.models, NULL, &f.opts, &entry));
    assert_ok(weir_models_history(f.models, take_entry, &next));
    assert_int_equal(next - entries, 3);
    assert_int_equal(entries[0].time_us, 1795256104ll * WEIR_US_PER_S);
    assert_string_equal(entries[0].reason, "better");
    assert_string_equal(entries[1].reason, "line end 0 ");
    assert_int_equal(entries[2].action, WEIR_MODELS_ROLLBACK);
    assert_string_equal(entries[2].id, f.ids[0]);
    teardown(&f);
}

static void m4_what_cannot_be_opened_does_not_serve(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    char path[4096];
    setup(&f);
    promote(&f, 0);
    assert_ok(weir_models_path(f.models, f.ids[1], path, sizeof path));
    strcat(path, "/model.json");
    assert_ok(weir_file_replace(path, "{}", 2));
    assert_err(weir_models_promote(f.models, f.ids[1], "", &f.opts, &entry), WEIR_ECORRUPT, "model.json is not as its");
    assert_err(weir_models_promote(f.models, "20261121T101500Z-00000000", "", &f.opts, &entry), WEIR_ENOTFOUND,
               "no model");
    assert_err(weir_models_promote(f.models, "../models", "", &f.opts, &entry), WEIR_EDATA, "is no model");
    f.opts.schema_hash = 1;
    assert_err(weir_models_promote(f.models, f.ids[2], "", &f.opts, &entry), WEIR_EVERSION, "train a new model");
    serves(&f, f.ids[0], 1);
    teardown(&f);
}

static void watch_sees_each_change_once(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    weir_models *server;
    bool changed = true;
    setup(&f);
    assert_ok(weir_models_open(weir_test_path("models"), f.clock, &server));
    assert_ok(weir_models_watch(server, 0, &changed, &entry));
    assert_false(changed);
    for (uint64_t generation = 1; generation <= 3; generation++) {
        promote(&f, (int)generation);
        assert_ok(weir_models_watch(server, generation - 1, &changed, &entry));
        assert_true(changed);
        assert_int_equal(entry.generation, generation);
        assert_string_equal(entry.id, f.ids[generation]);
        assert_ok(weir_models_watch(server, generation, &changed, &entry));
        assert_false(changed);
        assert_string_equal(entry.id, f.ids[generation]);
    }
    weir_models_close(server);
    teardown(&f);
}

static void bad_current_is_named_by_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", ":1: the end is missing"},
        {"end 1\n", ":1: this is no promotion"},
        {"end 0", ":1: the line is cut"},
        {"end 0\nx\n", ":1: this is no promotion"},
        {"1 2026-11-21T10:00:00Z promote 20261121T101500Z-1a2b3c4d ok\nend 2\n", ":2: this is no promotion"},
        {"1 2026-11-21T10:00:00Z promote 20261121T101500Z-1a2b3c4d ok\n", ":2: the end is missing"},
        {"1 2026-11-21T10:00:00Z promote ../../../../../../../etc ok\nend 1\n", ":1: this is no promotion"},
        {"1 2026-11-21T10:00:00Z adopt 20261121T101500Z-1a2b3c4d ok\nend 1\n", ":1: this is no promotion"},
        {"-1 2026-11-21T10:00:00Z promote 20261121T101500Z-1a2b3c4d ok\nend 1\n", ":1: this is no promotion"},
        {"1 2026-11-21T10:00:00Z promote 20261121T101500Z-1a2b3c4d ok\n"
         "3 2026-11-21T10:00:00Z promote 20261121T101500Z-1a2b3c4d ok\nend 2\n",
         ":2: its generation does not follow"},
    };
    fixture f;
    weir_models_entry entry;
    setup(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(weir_file_replace(weir_test_path("models/current"), cases[i].text, strlen(cases[i].text)));
        assert_err(weir_models_current(f.models, &entry), WEIR_ECORRUPT, cases[i].sentence);
        assert_err(weir_models_promote(f.models, f.ids[0], "", &f.opts, &entry), WEIR_ECORRUPT, NULL);
    }
    teardown(&f);
}

static void history_keeps_the_newest(void **state) {
    (void)state;
    fixture f;
    char *text = NULL;
    size_t length = 0;
    setup(&f);
    FILE *file = fopen(weir_test_path("models/current"), "w");
    assert_non_null(file);
    for (unsigned i = 1; i <= WEIR_MODELS_HISTORY_MAX; i++)
        fprintf(file, "%u 2026-11-21T10:00:00Z promote %s -\n", i, f.ids[i % 2]);
    fprintf(file, "end %u\n", WEIR_MODELS_HISTORY_MAX);
    fclose(file);
    promote(&f, 3);
    serves(&f, f.ids[3], WEIR_MODELS_HISTORY_MAX + 1);
    assert_ok(weir_file_load(weir_test_path("models/current"), 4u << 20, &text, &length));
    assert_memory_equal(text, "2 ", 2);
    assert_non_null(strstr(text, "\nend 4096\n"));
    weir_free(text);
    teardown(&f);
}

static void one_changes_at_a_time(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    weir_file *lock;
    setup(&f);
    assert_ok(weir_file_open(weir_test_path("models/lock"), WEIR_FILE_READ_WRITE, &lock));
    assert_ok(weir_file_lock(lock));
    assert_err(weir_models_promote(f.models, f.ids[0], "", &f.opts, &entry), WEIR_EBUSY, "lock");
    assert_ok(weir_file_close(lock));
    promote(&f, 0);
    teardown(&f);
}

/* --- kill -9 ----------------------------------------------------------------------------------------------------- */

typedef struct killer {
    unsigned left;
} killer;

static void kill_at_zero(void *context, weir_fault_op op, const char *path) {
    killer *k = context;
    (void)op;
    (void)path;
    if (k->left-- == 0) kill(getpid(), SIGKILL);
}

/* A child that dies before its nth operation on files; false: it came to its end. */
static bool dies_at(fixture *f, unsigned n, bool add) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        killer k = {n};
        weir_models_entry entry;
        weir_model_write_opts write = model_write_opts(f->keys.secret);
        char id[WEIR_MODEL_ID_MAX];
        weir_fault_watch(kill_at_zero, &k);
        weir_err err = add ? weir_models_add(f->models, &write, id)
                           : weir_models_promote(f->models, f->ids[1], "", &f->opts, &entry);
        _exit(err ? 1 : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void m3_old_or_new_wherever_promote_is_killed(void **state) {
    (void)state;
    fixture f;
    unsigned old = 0, new = 0;
    setup(&f);
    for (unsigned n = 0;; n++) {
        weir_models_entry entry;
        assert_ok(weir_folder_create(weir_test_path("models")));
        if (weir_path_exists(weir_test_path("models/current"))) {
            assert_ok(weir_file_remove(weir_test_path("models/current")));
        }
        promote(&f, 0);
        bool died = dies_at(&f, n, false);
        assert_ok(weir_models_current(f.models, &entry));
        bool is_new = strcmp(entry.id, f.ids[1]) == 0;
        assert_true(is_new || strcmp(entry.id, f.ids[0]) == 0);
        assert_int_equal(entry.generation, is_new ? 2 : 1);
        old += !is_new;
        new += is_new;
        promote(&f, 2); /* and the next one is not hindered */
        if (!died) break;
    }
    assert_true(old > 5 && new >= 2); /* both sides of the rename were met */
    teardown(&f);
}

static weir_err open_each(void *context, const char *id) {
    fixture *f = context;
    char path[4096];
    weir_model *model = NULL;
    assert_ok(weir_models_path(f->models, id, path, sizeof path));
    assert_ok(weir_model_open(path, &f->opts, &model));
    weir_model_close(model);
    return WEIR_OK;
}

static void m1_every_listed_model_is_whole_wherever_add_is_killed(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    for (unsigned n = 0; dies_at(&f, n, true); n += 3) {
        assert_ok(weir_models_list(f.models, open_each, &f));
        weir_clock_manual_advance(f.clock, WEIR_US_PER_S); /* another id: the one before may have come to be */
    }
    assert_ok(weir_models_list(f.models, open_each, &f));
    assert_false(weir_path_exists(weir_test_path("models/staging")));
    teardown(&f);
}

WEIR_TESTS(WEIR_CASE(a_folder_is_made_by_the_first_model_alone), WEIR_CASE(ids_are_times_and_hashes),
           WEIR_CASE(rolling_back_twice_goes_back_two), WEIR_CASE(history_says_when_and_why),
           WEIR_CASE(m4_what_cannot_be_opened_does_not_serve), WEIR_CASE(watch_sees_each_change_once),
           WEIR_CASE(bad_current_is_named_by_line), WEIR_CASE(history_keeps_the_newest),
           WEIR_CASE(one_changes_at_a_time), WEIR_CASE(m3_old_or_new_wherever_promote_is_killed),
           WEIR_CASE(m1_every_listed_model_is_whole_wherever_add_is_killed))
