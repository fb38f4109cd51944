/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - believing a model folder, in this order and no other (MODEL-M2):
 *
 *   1. MANIFEST is read, and its signature checked over those bytes; and whether it is the one that was promoted.
 *   2. Each file is read once, and its line of the MANIFEST made again from the bytes in memory; the lines must be
 *      those of the MANIFEST, byte for byte. So nothing of a hostile MANIFEST is ever parsed.
 *   3. Nothing else is in the folder.
 *   4. Only then model.json, the texts and the weights are interpreted.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "files.h"
#include "safetensors.h"

#define MANIFEST_BYTES_MAX 4096u

typedef struct model_loaded {
    char *bytes;
    size_t length;
} model_loaded;

struct weir_model {
    char folder[WEIR_MODEL_PATH_MAX];
    model_loaded files[WEIR_MODEL_FILE_COUNT]; /* the weights only until they are read */
    weir_weights weights;
    char *task, *texts[WEIR_MODEL_TEXT_COUNT];
    size_t lengths[WEIR_MODEL_TEXT_COUNT];
    char manifest[WEIR_MODEL_MANIFEST_MAX];
    uint64_t schema_hash;
};

/* --- whom to believe ------------------------------------------------------------------------------------------- */

weir_err weir_model_trust_load(const char *path, bool accept_unsigned, weir_model_trust *trustp) {
    size_t count = 0;
    weir_err err = path && *path ? weir_public_keys_load(path, trustp->keys, &count) : WEIR_OK;
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK;
    WEIR_ASSERT(count <= WEIR_PUBLIC_KEYS_MAX);
    trustp->opts = (weir_model_opts){.keys = trustp->keys, .key_count = count, .accept_unsigned = accept_unsigned};
    return err;
}

/* --- verifying ------------------------------------------------------------------------------------------------- */

/* A model that was signed once stays so for ever: that it is this one is said by who promoted it. */
static weir_err model_load_manifest(weir_model *m, const weir_model_opts *opts, model_loaded *manifest) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_err err = weir_path_join(path, sizeof path, m->folder, "MANIFEST");
    if (!err) err = weir_file_load_as(path, WEIR_FILE_NO_LINK, MANIFEST_BYTES_MAX, &manifest->bytes, &manifest->length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) {
        return weir_path_exists(m->folder)
                   ? WEIR_ERR(WEIR_ECORRUPT, "%s has no MANIFEST; it is not a model, or not all of one", m->folder)
                   : WEIR_ERR(WEIR_ENOTFOUND, "there is no model %s; weir model list names those that are", m->folder);
    }
    if (err) return err;
    weir_sha256_hex(manifest->bytes, manifest->length, m->manifest);
    if (opts->manifest && *opts->manifest && strcmp(opts->manifest, m->manifest) != 0) {
        return WEIR_ERR(WEIR_EPERM, "%s holds another model than the one that was promoted; take a copy of that one",
                        m->folder);
    }
    if (opts->accept_unsigned && !opts->key_count) return WEIR_OK;
    err = weir_path_join(path, sizeof path, m->folder, "MANIFEST.sig");
    if (err || (opts->accept_unsigned && !weir_path_exists(path))) return err;
    return weir_manifest_signature_verify(m->folder, manifest->bytes, manifest->length, opts->keys, opts->key_count);
}

/* Loads a file and holds the next line of the MANIFEST against the bytes in memory. */
static weir_err model_load_file(weir_model *m, weir_model_file which, const model_loaded *manifest, size_t *atp) {
    char path[WEIR_MODEL_PATH_MAX], line[256], hex[65];
    const char *name = weir_model_file_name(which);
    model_loaded *file = &m->files[which];
    uint64_t length_max = which == WEIR_MODEL_FILE_WEIGHTS
                              ? WEIR_MODEL_WEIGHTS_BYTES_MAX + WEIR_MODEL_HEADER_BYTES_MAX + 8
                              : WEIR_MODEL_TEXT_BYTES_MAX;
    WEIR_ASSERT(!file->bytes && *atp <= manifest->length); /* loaded once */
    weir_err err = weir_path_join(path, sizeof path, m->folder, name);
    if (!err) err = weir_file_load_as(path, WEIR_FILE_NO_LINK, length_max, &file->bytes, &file->length);
    if (weir_err_is(err, WEIR_ENOTFOUND))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s is missing; take another copy of the model", path);
    if (err) return err;
    weir_sha256_hex(file->bytes, file->length, hex);
    int length = snprintf(line, sizeof line, "%s  %zu  %s\n", hex, file->length, name);
    WEIR_ASSERT(length > 0 && (size_t)length < sizeof line);
    if (manifest->length - *atp < (size_t)length || memcmp(manifest->bytes + *atp, line, (size_t)length) != 0) {
        return WEIR_ERR(WEIR_ECORRUPT, "%s/%s is not as its MANIFEST says; take another copy of the model", m->folder,
                        name);
    }
    *atp += (size_t)length;
    return WEIR_OK;
}

static weir_err model_check_entry(void *context, const char *name) {
    const weir_model *m = context;
    bool known = strcmp(name, "MANIFEST") == 0 || strcmp(name, "MANIFEST.sig") == 0;
    for (int i = 0; i < WEIR_MODEL_FILE_COUNT; i++)
        known |= strcmp(name, weir_model_file_name(i)) == 0;
    if (known) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT, "%s/%s belongs to no model; remove it if you know it", m->folder, name);
}

static weir_err model_verify(weir_model *m, const weir_model_opts *opts) {
    model_loaded manifest = {0};
    char end[32];
    size_t at = 0;
    weir_err err = model_load_manifest(m, opts, &manifest); // MODEL-M2
    for (int i = 0; !err && i < WEIR_MODEL_FILE_COUNT; i++)
        err = model_load_file(m, i, &manifest, &at); // MODEL-M2
    size_t length = (size_t)snprintf(end, sizeof end, "end %d\n", (int)WEIR_MODEL_FILE_COUNT);
    if (!err && (manifest.length - at != length || memcmp(manifest.bytes + at, end, length) != 0))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s/MANIFEST is cut, or names what no model has; take another copy", m->folder);
    if (!err) err = weir_folder_list(m->folder, model_check_entry, m);
    weir_free(manifest.bytes);
    return err;
}

/* --- interpreting ---------------------------------------------------------------------------------------------- */

static weir_err model_keep_text(weir_model *m, weir_model_text which, weir_span text) {
    m->texts[which] = weir_strndup(text.bytes, text.length);
    m->lengths[which] = text.length;
    return m->texts[which] ? WEIR_OK : WEIR_NOMEM("for the model %s", m->folder);
}

static weir_err model_read_card(weir_model *m, const weir_model_opts *opts) {
    char path[WEIR_MODEL_PATH_MAX];
    const model_loaded *file = &m->files[WEIR_MODEL_FILE_MODEL];
    weir_model_card card = {0};
    weir_err err = weir_path_join(path, sizeof path, m->folder, weir_model_file_name(WEIR_MODEL_FILE_MODEL));
    if (!err) err = weir_model_card_read(path, (weir_span){file->bytes, file->length}, &card);
    if (err) return err;
    m->schema_hash = card.schema_hash;
    m->task = weir_strndup(card.task.bytes, card.task.length);
    if (!m->task) return WEIR_NOMEM("for the model %s", m->folder);
    if (opts->schema_hash && opts->schema_hash != m->schema_hash)
        return WEIR_ERR(WEIR_EVERSION, "%s was trained for schema %016llx, and this one is %016llx; train a new model",
                        m->folder, (unsigned long long)m->schema_hash, (unsigned long long)opts->schema_hash);
    err = model_keep_text(m, WEIR_MODEL_ARCHITECTURE, card.architecture);
    if (!err) err = model_keep_text(m, WEIR_MODEL_NORMALISATION, card.normalisation);
    if (!err) err = model_keep_text(m, WEIR_MODEL_CALIBRATION, card.calibration);
    return err;
}

static weir_err model_read_object(weir_model *m, weir_model_file file, weir_model_text which) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_span text = {m->files[file].bytes, m->files[file].length};
    weir_err err = weir_path_join(path, sizeof path, m->folder, weir_model_file_name(file));
    if (!err) err = weir_json_check_object(path, text.bytes, text.length, WEIR_MODEL_JSON_DEPTH_MAX);
    return err ? err : model_keep_text(m, which, text);
}

static void model_free_files(weir_model *m) {
    for (int i = 0; i < WEIR_MODEL_FILE_COUNT; i++) {
        weir_free(m->files[i].bytes);
        m->files[i] = (model_loaded){0};
    }
}

weir_err weir_model_open(const char *folder, const weir_model_opts *opts, weir_model **modelp) {
    char path[WEIR_MODEL_PATH_MAX];
    *modelp = NULL;
    weir_model *m = weir_calloc(1, sizeof *m);
    if (!m) return WEIR_NOMEM("for the model %s", folder);
    const model_loaded *weights = &m->files[WEIR_MODEL_FILE_WEIGHTS];
    weir_err err = weir_path_join(m->folder, sizeof m->folder, folder, NULL);
    if (!err) err = model_verify(m, opts);
    if (!err) err = model_read_card(m, opts);
    if (!err) err = model_read_object(m, WEIR_MODEL_FILE_METRICS, WEIR_MODEL_METRICS);
    if (!err) err = model_read_object(m, WEIR_MODEL_FILE_PROVENANCE, WEIR_MODEL_PROVENANCE);
    if (!err) err = weir_path_join(path, sizeof path, m->folder, weir_model_file_name(WEIR_MODEL_FILE_WEIGHTS));
    if (!err) err = weir_safetensors_read(path, weights->bytes, weights->length, &m->weights);
    model_free_files(m);
    if (err) {
        weir_model_close(m);
    } else {
        *modelp = m;
    }
    return err;
}

void weir_model_close(weir_model *model) {
    if (!model) return;
    model_free_files(model);
    weir_weights_free(&model->weights);
    weir_free(model->task);
    for (int i = 0; i < WEIR_MODEL_TEXT_COUNT; i++)
        weir_free(model->texts[i]);
    weir_free(model);
}

/* --- looking --------------------------------------------------------------------------------------------------- */

size_t weir_model_tensor_count(const weir_model *model) {
    return model->weights.count;
}

const weir_model_tensor *weir_model_tensor_at(const weir_model *model, size_t index) {
    return &model->weights.tensors[index];
}

const weir_model_tensor *weir_model_tensor_find(const weir_model *model, const char *name) {
    size_t low = 0, high = model->weights.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, model->weights.tensors[middle].name);
        if (order == 0) return &model->weights.tensors[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

uint64_t weir_model_schema_hash(const weir_model *model) {
    return model->schema_hash;
}

const char *weir_model_task(const weir_model *model) {
    return model->task;
}

const char *weir_model_manifest(const weir_model *model) {
    return model->manifest;
}

const char *weir_model_text_of(const weir_model *model, weir_model_text which, size_t *lengthp) {
    if (lengthp) *lengthp = model->lengths[which];
    return model->texts[which];
}
