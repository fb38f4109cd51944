/* SPDX-License-Identifier: Apache-2.0 */
/* register_fixture.h - a register of signed models, promoted by the real `weir model`. */
#ifndef REGISTER_FIXTURE_H
#define REGISTER_FIXTURE_H

#include "model_fixture.h"
#include "model_register.h"

#include <stdlib.h>

#include <weir/store/base/alloc.h>

#define SIGNED_MODELS    3
#define SIGNED_PATH_MAX  1024
#define SIGNED_WORDS_MAX 24

/* folder/models, folder/models.key and folder/models.pub. */
typedef struct signed_register {
    char models[SIGNED_PATH_MAX], current[SIGNED_PATH_MAX + 16];
    char key[SIGNED_PATH_MAX], trusted[SIGNED_PATH_MAX + 32];
    weir_public_key public_key;
    char ids[SIGNED_MODELS][WEIR_MODEL_ID_MAX];
} signed_register;

/* Models of other random weights; nothing is promoted. folder is below the case's. */
static inline void signed_make(signed_register *r, const char *folder) {
    char public_path[SIGNED_PATH_MAX];
    weir_schema *schema = register_schema();
    weir_secret_key *secret;
    weir_models *models;
    assert_ok(weir_folder_create(weir_test_path(folder)));
    snprintf(r->models, sizeof r->models, "%s/models", weir_test_path(folder));
    snprintf(r->current, sizeof r->current, "%s/current", r->models);
    snprintf(r->key, sizeof r->key, "%s/models.key", weir_test_path(folder));
    snprintf(public_path, sizeof public_path, "%s/models.pub", weir_test_path(folder));
    snprintf(r->trusted, sizeof r->trusted, "models.public_keys=%s", public_path);
    assert_ok(weir_key_pair_write(r->key, public_path, &r->public_key));
    assert_ok(weir_secret_key_load(r->key, &secret));
    assert_ok(weir_models_open(r->models, weir_clock_system(), &models));
    for (int i = 0; i < SIGNED_MODELS; i++)
        assert_ok(register_add(models, schema, 16, (uint64_t)i + 1, secret, r->ids[i]));
    weir_models_close(models);
    weir_secret_key_free(secret);
    weir_schema_free(schema);
}

/* `weir model WORDS… --path … --key …`; words end with NULL. */
static inline void signed_run(const signed_register *r, const char *const *words, const char *const *environment,
                              weir_test_output *output) {
    const char *argv[SIGNED_WORDS_MAX] = {weir_test_program(), "model"};
    size_t count = 2;
    while (*words)
        argv[count++] = *words++;
    const char *const places[] = {"--path", r->models, "--key", r->key, "--set", r->trusted};
    memcpy(argv + count, places, sizeof places);
    weir_test_run(argv, environment, output);
}

static inline void signed_must(const signed_register *r, const char *const *words) {
    weir_test_output output;
    signed_run(r, words, NULL, &output);
    if (output.status) fail_msg("weir model %s: %s", words[0], output.err);
    weir_test_output_free(&output);
}

static inline void signed_promote(const signed_register *r, int i) {
    signed_must(r, (const char *const[]){"promote", r->ids[i], NULL});
}

static inline weir_models_entry signed_entry(const signed_register *r) {
    const weir_model_opts opts = {.keys = &r->public_key, .key_count = 1};
    weir_models_entry entry;
    weir_models *models;
    assert_ok(weir_models_open(r->models, weir_clock_system(), &models));
    assert_ok(weir_models_current(models, &opts, &entry));
    weir_models_close(models);
    return entry;
}

/* As who can write both would copy it. */
static inline void copy_small(const char *from, const char *to) {
    char *text = NULL;
    size_t length = 0;
    assert_ok(weir_file_load(from, 1u << 20, &text, &length));
    assert_ok(weir_file_replace(to, text, length));
    weir_free(text);
}

#endif /* REGISTER_FIXTURE_H */
