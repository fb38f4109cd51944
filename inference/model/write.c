/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - a model folder, made beside its place and moved there when all of it is on the disk. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "files.h"
#include "safetensors.h"

const char *weir_model_file_name(weir_model_file file) {
    static const char *const names[] = {"metrics.json", "model.json", "provenance.json", "weights.safetensors"};
    return names[file];
}

static weir_err model_write_object(const char *folder, weir_model_file file, const char *text) {
    const char *name = weir_model_file_name(file);
    char path[WEIR_MODEL_PATH_MAX];
    size_t length = text ? strlen(text) : 0;
    weir_err err = weir_json_check_object(name, text ? text : "", length, WEIR_MODEL_JSON_DEPTH_MAX);
    if (!err && length >= WEIR_MODEL_TEXT_BYTES_MAX) err = WEIR_ERR(WEIR_ELIMIT, "%s would be too long", name);
    if (!err) err = weir_path_join(path, sizeof path, folder, name);
    return err ? err : weir_file_replace(path, text, length);
}

weir_err weir_model_stage(const char *folder, const weir_model_write_opts *opts) {
    char path[WEIR_MODEL_PATH_MAX];
    weir_err err = weir_folder_create(folder);
    if (!err) err = weir_path_join(path, sizeof path, folder, weir_model_file_name(WEIR_MODEL_FILE_WEIGHTS));
    if (!err) err = weir_safetensors_write(path, opts->tensors, opts->tensor_count);
    if (!err) err = weir_path_join(path, sizeof path, folder, weir_model_file_name(WEIR_MODEL_FILE_MODEL));
    if (!err) err = weir_model_card_write(path, opts);
    if (!err) err = model_write_object(folder, WEIR_MODEL_FILE_METRICS, opts->metrics);
    if (!err) err = model_write_object(folder, WEIR_MODEL_FILE_PROVENANCE, opts->provenance);
    if (!err) err = weir_manifest_write(folder);
    if (!err && opts->key) err = weir_manifest_sign(folder, opts->key);
    if (!err) err = weir_folder_sync(folder);
    weir_kill_point("model.staged");
    return err;
}

weir_err weir_model_write(const char *folder, const weir_model_write_opts *opts) {
    char beside[WEIR_MODEL_PATH_MAX];
    if (weir_path_exists(folder)) return WEIR_ERR(WEIR_EEXIST, "%s is there already; name a new folder", folder);
    int length = snprintf(beside, sizeof beside, "%s.new", folder);
    if (length < 0 || (size_t)length >= sizeof beside) {
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    }
    weir_err err = weir_path_exists(beside) ? weir_folder_remove(beside) : WEIR_OK; /* a crash left it there */
    if (!err) err = weir_model_stage(beside, opts);
    if (!err) err = weir_file_rename(beside, folder); // MODEL-M1
    if (err && weir_path_exists(beside)) weir_err_keep(&err, weir_folder_remove(beside));
    return err;
}
