/* SPDX-License-Identifier: Apache-2.0 */
/* models_test.c - the register: promote, roll back, watch, and what is said about a bad `current`. */
#include "model_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>

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
    assert_ok(weir_models_current(f->models, &f->opts, &entry));
    assert_string_equal(entry.id, id);
    assert_int_equal(entry.generation, generation);
}

static void promote(fixture *f, int i) {
    weir_models_entry entry;
    assert_ok(model_promote(f->models, f->ids[i], "better", f->keys.secret, &f->opts, &entry));
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
    int count = 0;
    assert_ok(weir_models_open(weir_test_path("models"), weir_clock_system(), &models));
    assert_ok(weir_models_current(models, &opts, &entry));
    assert_true(!weir_models_changed(models) && !entry.generation);
    assert_ok(weir_models_list(models, count_id, &count));
    assert_err(weir_models_path(models, "current", path, sizeof path), WEIR_EDATA, "is not a model");
    assert_err(model_promote(models, "20261121T101500Z-1a2b3c4d", "it", NULL, &opts, &entry), WEIR_ENOTFOUND,
               "weir train makes the first");
    assert_err(model_rollback(models, "it", NULL, &opts, &entry), WEIR_ENOTFOUND, "there are no models in");
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
    assert_err(model_rollback(f.models, "bad", f.keys.secret, &f.opts, &entry), WEIR_ENOTFOUND,
               "no model served before");
    promote(&f, 1);
    promote(&f, 2);
    promote(&f, 2); /* serves already: no line */
    serves(&f, f.ids[2], 3);
    assert_ok(model_rollback(f.models, "bad", f.keys.secret, &f.opts, &entry));
    serves(&f, f.ids[1], 4);
    promote(&f, 3);
    assert_ok(model_rollback(f.models, "bad", f.keys.secret, &f.opts, &entry));
    assert_ok(model_rollback(f.models, "bad", f.keys.secret, &f.opts, &entry));
    serves(&f, f.ids[0], 7);
    assert_err(model_rollback(f.models, "bad", f.keys.secret, &f.opts, &entry), WEIR_ENOTFOUND,
               "no model served before");
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
    assert_ok(model_promote(f.models, f.ids[1], "line\nend 0\n", f.keys.secret, &f.opts, &entry));
    assert_ok(model_rollback(f.models, NULL, f.keys.secret, &f.opts, &entry));
    assert_ok(weir_models_history(f.models, &f.opts, take_entry, &next));
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
    assert_err(model_promote(f.models, f.ids[1], "", f.keys.secret, &f.opts, &entry), WEIR_ECORRUPT,
               "model.json is not as its");
    assert_err(model_promote(f.models, "20261121T101500Z-00000000", "", f.keys.secret, &f.opts, &entry), WEIR_ENOTFOUND,
               "no model");
    assert_err(model_promote(f.models, "../models", "", f.keys.secret, &f.opts, &entry), WEIR_EDATA, "is not a model");
    f.opts.schema_hash = 1;
    assert_err(model_promote(f.models, f.ids[2], "", f.keys.secret, &f.opts, &entry), WEIR_EVERSION,
               "train a new model");
    serves(&f, f.ids[0], 1);
    teardown(&f);
}

static void changed_sees_each_change_once(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    weir_models *server;
    setup(&f);
    assert_ok(weir_models_open(weir_test_path("models"), f.clock, &server));
    assert_true(weir_models_changed(server)); /* nobody has looked yet */
    assert_ok(weir_models_current(server, &f.opts, &entry));
    assert_false(weir_models_changed(server));
    for (uint64_t generation = 1; generation <= 3; generation++) {
        promote(&f, (int)generation);
        assert_true(weir_models_changed(server));
        assert_ok(weir_models_current(server, &f.opts, &entry));
        assert_int_equal(entry.generation, generation);
        assert_string_equal(entry.id, f.ids[generation]);
        assert_false(weir_models_changed(server));
    }
    assert_ok(weir_file_remove(weir_test_path("models/current")));
    assert_true(weir_models_changed(server));
    weir_models_close(server);
    teardown(&f);
}

/* What stands before the signature is signed as it is, so that reading comes to it. */
static void put_signed(const fixture *f, const char *text) {
    char line[WEIR_SIGNATURE_LINE_MAX], all[4096];
    weir_bytes_sign(text, strlen(text), f->keys.secret, line);
    snprintf(all, sizeof all, "%s%s", text, line);
    assert_ok(weir_file_replace(weir_test_path("models/current"), all, strlen(all)));
}

#define HEAD "weir-models 1 00c0ffee00c0ffee\n"
#define LINE " 2026-11-21T10:00:00Z promote 20261121T101500Z-1a2b3c4d "
#define SHA  "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d "
#define REST LINE SHA "fraud ok\n"

static void bad_current_is_named_by_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {HEAD, ":2: the end is missing"},
        {"weir-models 1 00c0ffee\nend 0\n", ":1: this names no register"},
        {"weir-models 1 00C0FFEE00C0FFEE\nend 0\n", ":1: this names no register"},
        {HEAD "end 1\n", ":2: this is not a promotion"},
        {HEAD "end 0\nx\n", ":2: this is not a promotion"},
        {HEAD "1" REST "end 2\n", ":3: this is not a promotion"},
        {HEAD "1" REST, ":3: the end is missing"},
        {HEAD "1 2026-11-21T10:00:00Z promote ../../../../../../../etc " SHA "fraud ok\nend 1\n",
         ":2: this is not a promotion"},
        {HEAD "1 2026-11-21T10:00:00Z adopt 20261121T101500Z-1a2b3c4d " SHA "fraud ok\nend 1\n",
         ":2: this is not a promotion"},
        {HEAD "1" LINE "1a2b fraud ok\nend 1\n", ":2: this is not a promotion"},
        {HEAD "1" LINE SHA "fraud\nend 1\n", ":2: this is not a promotion"},
        {HEAD "-1" REST "end 1\n", ":2: this is not a promotion"},
        {HEAD "0" REST "end 1\n", ":2: this is not a promotion"},
        {HEAD "18446744073709551615" REST "end 1\n", ":2: this is not a promotion"},
        {HEAD "3" REST "3" REST "end 2\n", ":3: its generation does not follow"},
    };
    fixture f;
    weir_models_entry entry;
    setup(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_signed(&f, cases[i].text);
        assert_err(weir_models_current(f.models, &f.opts, &entry), WEIR_ECORRUPT, cases[i].sentence);
        assert_err(model_promote(f.models, f.ids[0], "", f.keys.secret, &f.opts, &entry), WEIR_ECORRUPT, NULL);
    }
    put_signed(&f, "weir-models 2 00c0ffee00c0ffee\nend 0\n");
    assert_err(weir_models_current(f.models, &f.opts, &entry), WEIR_EVERSION, "later version");
    put_signed(&f, HEAD "1" REST "9" REST "end 2\n");
    assert_ok(weir_models_current(f.models, &f.opts, &entry));
    assert_int_equal(entry.generation, 9);
    assert_string_equal(entry.register_id, "00c0ffee00c0ffee");
    assert_string_equal(entry.task, "fraud");
    assert_memory_equal(entry.manifest, SHA, 64);
    teardown(&f);
}

static char *current_text(size_t *lengthp) {
    char *text = NULL;
    assert_ok(weir_file_load(weir_test_path("models/current"), 4u << 20, &text, lengthp));
    return text;
}

/* One bit, anywhere; one byte less, at any length: nothing of it is believed. */
static void m5_current_is_believed_by_its_signature_alone(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    size_t length;
    setup(&f);
    promote(&f, 0);
    promote(&f, 1);
    char *text = current_text(&length);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        text[bit / 8] ^= (char)(1u << bit % 8);
        assert_ok(weir_file_replace(weir_test_path("models/current"), text, length));
        if (!weir_models_current(f.models, &f.opts, &entry)) fail_msg("bit %zu is believed", bit);
        text[bit / 8] ^= (char)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < length; cut++) {
        assert_ok(weir_file_replace(weir_test_path("models/current"), text, cut));
        if (!weir_models_current(f.models, &f.opts, &entry)) fail_msg("%zu bytes are believed", cut);
    }
    assert_ok(weir_file_replace(weir_test_path("models/current"), text, length));
    serves(&f, f.ids[1], 2);
    weir_free(text);
    teardown(&f);
}

static void m5_another_key_is_none(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    setup(&f);
    promote(&f, 0);
    model_keys other = model_keys_make("other");
    const weir_model_opts trusting_other = model_opts(&other);
    assert_err(weir_models_current(f.models, &trusting_other, &entry), WEIR_EPERM, "none of the 1 keys");
    assert_err(model_promote(f.models, f.ids[1], "", other.secret, &f.opts, &entry), WEIR_EPERM, "none of the 1 keys");
    assert_err(model_promote(f.models, f.ids[1], "", NULL, &f.opts, &entry), WEIR_EPERM, "name the secret key");
    assert_err(model_rollback(f.models, "", NULL, &f.opts, &entry), WEIR_EPERM, "name the secret key");
    serves(&f, f.ids[0], 1);
    weir_secret_key_free(other.secret);
    teardown(&f);
}

static void swap_folders(fixture *f, int a, int b) {
    char one[4096], two[4096], aside[4096];
    assert_ok(weir_models_path(f->models, f->ids[a], one, sizeof one));
    assert_ok(weir_models_path(f->models, f->ids[b], two, sizeof two));
    snprintf(aside, sizeof aside, "%s", weir_test_path("aside"));
    assert_ok(weir_file_rename(one, aside));
    assert_ok(weir_file_rename(two, one));
    assert_ok(weir_file_rename(aside, two));
}

/* Both are rightly signed, so the folder's name must not be what tells them apart. */
static void m5_another_signed_model_in_its_folder_is_refused(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    weir_model *model;
    char path[4096];
    weir_model_write_opts write;
    setup(&f);
    write = model_write_opts(f.keys.secret);
    write.provenance = "{\"seed\":8}";
    assert_ok(weir_models_add(f.models, &write, f.ids[3])); /* the others are the same model, a second apart */
    promote(&f, 0);
    assert_ok(weir_models_current(f.models, &f.opts, &entry));
    swap_folders(&f, 0, 3);
    weir_model_opts opts = f.opts;
    opts.manifest = entry.manifest;
    assert_ok(weir_models_path(f.models, f.ids[0], path, sizeof path));
    assert_err(weir_model_open(path, &opts, &model), WEIR_EPERM, "another model than the one that was promoted");
    assert_err(model_promote(f.models, f.ids[3], "", f.keys.secret, &f.opts, &entry), WEIR_EPERM, "under this name");
    swap_folders(&f, 0, 3);
    promote(&f, 3);
    swap_folders(&f, 0, 3);
    assert_err(model_rollback(f.models, "", f.keys.secret, &f.opts, &entry), WEIR_EPERM, "another model than");
    serves(&f, f.ids[3], 2);
    teardown(&f);
}

/* As an earlier version wrote it, and as one without a key does. */
static void what_nobody_signed_is_taken_over_by_name_alone(void **state) {
    (void)state;
    static const char *const texts[] = {"7" LINE "of an earlier version\nend 1\n", HEAD "7" REST "end 1\nunsigned\n"};
    const weir_model_opts lenient = {.accept_unsigned = true};
    fixture f;
    weir_models_entry entry;
    setup(&f);
    for (int i = 0; i < 2; i++) {
        const weir_models_change change = {.reason = "by hand", .key = f.keys.secret, .take_over = true};
        assert_ok(weir_file_replace(weir_test_path("models/current"), texts[i], strlen(texts[i])));
        assert_err(weir_models_current(f.models, &f.opts, &entry), WEIR_EPERM, "weir model promote ID --key FILE");
        assert_err(model_promote(f.models, f.ids[0], "", f.keys.secret, &f.opts, &entry), WEIR_EPERM, "is not signed");
        assert_ok(weir_models_current(f.models, &lenient, &entry));
        assert_int_equal(entry.generation, 7);
        assert_false(entry.is_signed);
        assert_ok(weir_models_promote(f.models, f.ids[0], &change, &f.opts, &entry));
        serves(&f, f.ids[0], 1); /* what nobody vouched for is not signed afterwards */
        assert_err(model_rollback(f.models, "", f.keys.secret, &f.opts, &entry), WEIR_ENOTFOUND,
                   "no model served before");
    }
    teardown(&f);
}

static void an_unsigned_register_stays_usable(void **state) {
    (void)state;
    const weir_model_opts lenient = {.accept_unsigned = true};
    fixture f;
    weir_models_entry entry, first;
    setup(&f);
    assert_ok(model_promote(f.models, f.ids[0], "", NULL, &lenient, &first));
    assert_ok(model_promote(f.models, f.ids[1], "", NULL, &lenient, &entry));
    assert_ok(model_promote(f.models, f.ids[1], "", NULL, &lenient, &entry));
    assert_int_equal(entry.generation, 2);
    assert_ok(model_rollback(f.models, "", NULL, &lenient, &entry));
    assert_string_equal(entry.id, f.ids[0]);
    assert_string_equal(entry.register_id, first.register_id);
    assert_false(entry.is_signed);
    /* A key without anybody's file of keys goes on with what it has signed itself. */
    assert_ok(model_promote(f.models, f.ids[0], "", f.keys.secret, &lenient, &entry));
    assert_ok(model_promote(f.models, f.ids[1], "", f.keys.secret, &lenient, &entry));
    assert_int_equal(entry.generation, 2);
    assert_ok(model_rollback(f.models, "", f.keys.secret, &lenient, &entry));
    serves(&f, f.ids[0], 3);
    weir_model_opts both = f.opts;
    both.accept_unsigned = true;
    assert_err(model_promote(f.models, f.ids[2], "", NULL, &both, &entry), WEIR_EPERM, "the next would not be");
    teardown(&f);
}

static void after_goes_on_from_what_was_seen(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    setup(&f);
    promote(&f, 0);
    weir_models_change change = {.key = f.keys.secret, .after_register = "00c0ffee00c0ffee", .after_generation = 9};
    assert_ok(weir_models_promote(f.models, f.ids[0], &change, &f.opts, &entry));
    serves(&f, f.ids[0], 10);
    assert_string_equal(entry.register_id, "00c0ffee00c0ffee");
    promote(&f, 1);
    change.after_generation = 20;
    assert_ok(weir_models_promote(f.models, f.ids[2], &change, &f.opts, &entry));
    serves(&f, f.ids[2], 21);
    assert_ok(
        model_rollback(f.models, "", f.keys.secret, &f.opts, &entry)); /* the history of the same register stays */
    serves(&f, f.ids[1], 22);
    assert_ok(weir_file_replace(weir_test_path("models/current"), "rubbish", 7));
    change.after_generation = 22;
    assert_ok(weir_models_promote(f.models, f.ids[2], &change, &f.opts, &entry));
    serves(&f, f.ids[2], 23);
    teardown(&f);
}

static void history_keeps_the_newest(void **state) {
    (void)state;
    fixture f;
    weir_buf out = {0};
    char line[WEIR_SIGNATURE_LINE_MAX];
    size_t length = 0;
    setup(&f);
    weir_buf_printf(&out, HEAD);
    for (unsigned i = 1; i <= WEIR_MODELS_HISTORY_MAX; i++)
        weir_buf_printf(&out, "%u 2026-11-21T10:00:00Z promote %s " SHA "fraud -\n", i, f.ids[i % 2]);
    weir_buf_printf(&out, "end %u\n", WEIR_MODELS_HISTORY_MAX);
    weir_bytes_sign(out.bytes, out.length, f.keys.secret, line);
    weir_buf_text(&out, line);
    assert_ok(weir_buf_err(&out));
    assert_ok(weir_file_replace(weir_test_path("models/current"), out.bytes, out.length));
    weir_buf_free(&out);
    promote(&f, 3);
    serves(&f, f.ids[3], WEIR_MODELS_HISTORY_MAX + 1);
    char *text = current_text(&length);
    assert_memory_equal(text, HEAD "2 ", sizeof HEAD + 1);
    assert_non_null(strstr(text, "\nend 4096\n"));
    weir_free(text);
    teardown(&f);
}

/* --- what a server has seen ------------------------------------------------------------------------------------ */

static weir_err admit(fixture *f, const weir_model_opts *opts, weir_models_entry *entryp) {
    weir_err err = weir_models_current(f->models, opts, entryp);
    return err ? err : weir_models_admit(weir_test_path("seen"), f->models, opts, entryp);
}

static void m6_nobody_goes_back_below_what_was_seen(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    struct stat status;
    char *texts[4];
    size_t lengths[4];
    setup(&f);
    assert_ok(admit(&f, &f.opts, &entry)); /* nothing yet */
    assert_false(weir_path_exists(weir_test_path("seen")));
    for (int i = 1; i < 4; i++) {
        promote(&f, i);
        texts[i] = current_text(&lengths[i]);
        assert_ok(admit(&f, &f.opts, &entry));
        assert_ok(admit(&f, &f.opts, &entry));
    }
    assert_int_equal(stat(weir_test_path("seen"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    for (int i = 1; i < 4; i++) {
        assert_ok(weir_file_replace(weir_test_path("models/current"), texts[i], lengths[i]));
        if (i == 3)
            assert_ok(admit(&f, &f.opts, &entry));
        else
            assert_err(admit(&f, &f.opts, &entry), WEIR_EPERM, "and 3 was seen: an older file");
        weir_free(texts[i]);
    }
    assert_ok(weir_file_remove(weir_test_path("models/current")));
    assert_err(admit(&f, &f.opts, &entry), WEIR_EPERM, "is gone, and generation 3 was seen");
    teardown(&f);
}

static void m6_nor_to_another_register_or_another_third_generation(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry, other;
    size_t length;
    setup(&f);
    promote(&f, 0);
    promote(&f, 1);
    char *fork = current_text(&length);
    promote(&f, 2);
    assert_ok(admit(&f, &f.opts, &entry));
    assert_ok(weir_file_replace(weir_test_path("models/current"), fork, length)); /* a copy is put back … */
    promote(&f, 3);                                                               /* … and goes on for itself */
    assert_err(admit(&f, &f.opts, &other), WEIR_EPERM, "says that generation 3 is");
    promote(&f, 1);
    assert_ok(admit(&f, &f.opts, &other));
    assert_ok(weir_file_remove(weir_test_path("models/current")));
    for (int i = 0; i < 6; i++)
        promote(&f, i % 2);
    assert_err(admit(&f, &f.opts, &other), WEIR_EPERM, "this server follows");
    weir_models_change change = {.key = f.keys.secret, .after_generation = 4};
    memcpy(change.after_register, entry.register_id, sizeof change.after_register);
    assert_ok(weir_models_promote(f.models, f.ids[0], &change, &f.opts, &other)); /* as the refusal says */
    assert_ok(admit(&f, &f.opts, &other));
    assert_int_equal(other.generation, 5);
    weir_free(fork);
    teardown(&f);
}

static void m6_a_memory_that_cannot_be_read_or_kept_admits_nothing(void **state) {
    (void)state;
    static const char *const bad[] = {"", "weir-models-seen 1 00c0ffee00c0ffee 1 20261121T101500Z-1a2b3c4d\n",
                                      "weir-models-seen 2 00c0ffee00c0ffee 1 20261121T101500Z-1a2b3c4d " SHA "\n",
                                      "weir-models-seen 1 00c0ffee00c0ffee -1 20261121T101500Z-1a2b3c4d " SHA "\n"};
    fixture f;
    weir_models_entry entry;
    setup(&f);
    promote(&f, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_ok(weir_file_replace(weir_test_path("seen"), bad[i], strlen(bad[i])));
        assert_err(admit(&f, &f.opts, &entry), WEIR_ECORRUPT, "is not as it was written");
    }
    assert_ok(weir_file_remove(weir_test_path("seen")));
    assert_ok(weir_models_current(f.models, &f.opts, &entry));
    assert_ok(weir_fault_arm("write:1:ENOSPC"));
    assert_err(weir_models_admit(weir_test_path("seen"), f.models, &f.opts, &entry), WEIR_EFULL, "cannot be noted");
    assert_ok(weir_fault_arm(NULL));
    assert_false(weir_path_exists(weir_test_path("seen")));
    assert_ok(admit(&f, &f.opts, &entry));
    teardown(&f);
}

static void what_is_not_signed_leaves_no_trace(void **state) {
    (void)state;
    const weir_model_opts lenient = {.accept_unsigned = true};
    fixture f;
    weir_models_entry entry;
    setup(&f);
    assert_ok(model_promote(f.models, f.ids[0], "", NULL, &lenient, &entry));
    assert_ok(admit(&f, &lenient, &entry));
    assert_false(weir_path_exists(weir_test_path("seen")));
    teardown(&f);
}

/* --- others at the same time, a disk that is full ----------------------------------------------------------------- */

static void one_changes_at_a_time(void **state) {
    (void)state;
    fixture f;
    weir_models_entry entry;
    weir_file *lock;
    setup(&f);
    assert_ok(weir_file_open(weir_test_path("models/lock"), WEIR_FILE_READ_WRITE, &lock));
    assert_ok(weir_file_lock(lock));
    assert_err(model_promote(f.models, f.ids[0], "", f.keys.secret, &f.opts, &entry), WEIR_EBUSY, "lock");
    assert_ok(weir_file_close(lock));
    promote(&f, 0);
    teardown(&f);
}

/* Each as often as it must until it has the lock: every one of them is a generation, and none twice. */
static void promote_often(fixture *f, int times) {
    weir_models *models;
    weir_models_entry entry;
    assert_ok(weir_models_open(weir_test_path("models"), weir_clock_system(), &models));
    for (int done = 0, last = -1; done < times;) {
        int i = last < 0 ? (int)(getpid() % 2) : !last;
        weir_err err = model_promote(models, f->ids[i], "", f->keys.secret, &f->opts, &entry);
        if (err && !weir_err_is(err, WEIR_EBUSY)) _exit(1);
        if (!err) {
            done++;
            last = i;
        }
    }
    weir_models_close(models);
    _exit(0);
}

static weir_err count_change(void *context, const weir_models_entry *entry) {
    uint64_t *count = context;
    assert_int_equal(entry->generation, ++*count);
    return WEIR_OK;
}

static void promoters_at_once_lose_no_generation(void **state) {
    (void)state;
    enum { PROMOTERS = 4, TIMES = 25 };
    fixture f;
    weir_models_entry entry;
    uint64_t count = 0;
    setup(&f);
    for (int i = 0; i < PROMOTERS; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) promote_often(&f, TIMES);
    }
    for (int i = 0; i < PROMOTERS; i++) {
        int status = 0;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_ok(weir_models_history(f.models, &f.opts, count_change, &count));
    assert_ok(weir_models_current(f.models, &f.opts, &entry));
    assert_int_equal(entry.generation, count);
    assert_true(count > TIMES && count <= PROMOTERS * TIMES); /* promoting what serves already changes nothing */
    teardown(&f);
}

/* Any operation may fail, once: old or new, and never less. */
static void m3_old_or_new_whatever_fails(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    promote(&f, 0);
    unsigned old = 0;
    for (uint64_t n = 1, generation = 1;; n++) {
        char spec[64];
        weir_models_entry entry, now;
        int i = (int)(n % 3);
        snprintf(spec, sizeof spec, "any:%llu:ENOSPC:once", (unsigned long long)n);
        assert_ok(weir_models_current(f.models, &f.opts, &now));
        if (strcmp(now.id, f.ids[i]) == 0) i = (i + 1) % 3;
        assert_ok(weir_fault_arm(spec));
        weir_err err = model_promote(f.models, f.ids[i], "", f.keys.secret, &f.opts, &entry);
        bool struck = weir_fault_seen() >= n;
        assert_ok(weir_fault_arm(NULL));
        assert_ok(weir_models_current(f.models, &f.opts, &now));
        bool is_new = strcmp(now.id, f.ids[i]) == 0;
        assert_true(err || is_new);
        assert_int_equal(now.generation, generation + is_new);
        generation = now.generation;
        old += !is_new;
        if (!struck) break;
    }
    assert_true(old > 5);
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
                           : model_promote(f->models, f->ids[1], "", f->keys.secret, &f->opts, &entry);
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
        assert_ok(weir_models_current(f.models, &f.opts, &entry));
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
           WEIR_CASE(m4_what_cannot_be_opened_does_not_serve), WEIR_CASE(changed_sees_each_change_once),
           WEIR_CASE(bad_current_is_named_by_line), WEIR_CASE(m5_current_is_believed_by_its_signature_alone),
           WEIR_CASE(m5_another_key_is_none), WEIR_CASE(m5_another_signed_model_in_its_folder_is_refused),
           WEIR_CASE(what_nobody_signed_is_taken_over_by_name_alone), WEIR_CASE(an_unsigned_register_stays_usable),
           WEIR_CASE(after_goes_on_from_what_was_seen), WEIR_CASE(history_keeps_the_newest),
           WEIR_CASE(m6_nobody_goes_back_below_what_was_seen),
           WEIR_CASE(m6_nor_to_another_register_or_another_third_generation),
           WEIR_CASE(m6_a_memory_that_cannot_be_read_or_kept_admits_nothing),
           WEIR_CASE(what_is_not_signed_leaves_no_trace), WEIR_CASE(promoters_at_once_lose_no_generation),
           WEIR_CASE(m3_old_or_new_whatever_fails), WEIR_CASE(one_changes_at_a_time),
           WEIR_CASE(m3_old_or_new_wherever_promote_is_killed),
           WEIR_CASE(m1_every_listed_model_is_whole_wherever_add_is_killed))
