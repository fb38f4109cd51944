/* SPDX-License-Identifier: Apache-2.0 */
/* model_fixture.h - a small model, a pair of keys, and a register of models. */
#ifndef WEIR_MODEL_FIXTURE_H
#define WEIR_MODEL_FIXTURE_H

#include "weir_test.h"

#include <stdio.h>
#include <string.h>

#include <weir/inference/model/model.h>
#include <weir/store/base/file.h>

#define MODEL_SCHEMA 0x0123456789abcdefull

static const float model_head[] = {1.0f, -2.5f, 0.0f, 1e-30f, 3.25f, 1e30f};
static const float model_bias[] = {0.5f, -0.5f};
static const weir_model_tensor model_tensors[] = {{"head.weight", 3, 2, model_head, NULL},
                                                  {"head.bias", 1, 2, model_bias, NULL}};

static inline weir_model_write_opts model_write_opts(const weir_secret_key *key) {
    return (weir_model_write_opts){.tensors = model_tensors,
                                   .tensor_count = 2,
                                   .schema_hash = MODEL_SCHEMA,
                                   .task = "fraud",
                                   .architecture = "{\"hidden\":64,\"layers\":[1,2]}",
                                   .normalisation = "{}",
                                   .calibration = "{\"slope\":1.5}",
                                   .metrics = "{\"average_precision\":0.61}",
                                   .provenance = "{\"seed\":7}",
                                   .key = key};
}

typedef struct model_keys {
    weir_public_key public_key;
    weir_secret_key *secret;
} model_keys;

/* A pair in files that begin with name. */
static inline model_keys model_keys_make(const char *name) {
    char secret[64], public_name[64];
    model_keys keys = {0};
    snprintf(secret, sizeof secret, "%s.key", name);
    snprintf(public_name, sizeof public_name, "%s.pub", name);
    assert_ok(weir_key_pair_write(weir_test_path(secret), weir_test_path(public_name), &keys.public_key));
    assert_ok(weir_secret_key_load(weir_test_path(secret), &keys.secret));
    return keys;
}

static inline weir_model_opts model_opts(const model_keys *keys) {
    return (weir_model_opts){.keys = &keys->public_key, .key_count = 1};
}

/* Promotes as the holder of the key would; NULL: unsigned. */
static inline weir_err model_promote(weir_models *models, const char *id, const char *reason,
                                     const weir_secret_key *key, const weir_model_opts *opts,
                                     weir_models_entry *entryp) {
    const weir_models_change change = {.reason = reason, .key = key};
    return weir_models_promote(models, id, &change, opts, entryp);
}

static inline weir_err model_rollback(weir_models *models, const char *reason, const weir_secret_key *key,
                                      const weir_model_opts *opts, weir_models_entry *entryp) {
    const weir_models_change change = {.reason = reason, .key = key};
    return weir_models_rollback(models, &change, opts, entryp);
}

#endif /* WEIR_MODEL_FIXTURE_H */
