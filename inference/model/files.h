/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - the files of a model folder, in the order of its MANIFEST. */
#ifndef WEIR_INFERENCE_MODEL_FILES_H
#define WEIR_INFERENCE_MODEL_FILES_H

#include <weir/inference/model/model.h>

#define WEIR_MODEL_PATH_MAX       4096u
#define WEIR_MODEL_JSON_DEPTH_MAX 32u

/* Bytes of somebody else's; not ended by 0. */
typedef struct weir_span {
    const char *bytes;
    size_t length;
} weir_span;

typedef enum weir_model_file {
    WEIR_MODEL_FILE_METRICS,
    WEIR_MODEL_FILE_MODEL,
    WEIR_MODEL_FILE_PROVENANCE,
    WEIR_MODEL_FILE_WEIGHTS,
    WEIR_MODEL_FILE_COUNT
} weir_model_file;

const char *weir_model_file_name(weir_model_file file);

/* What model.json says; spans of its text. */
typedef struct weir_model_card {
    uint64_t schema_hash;
    weir_span task, architecture, normalisation, calibration;
} weir_model_card;

weir_err weir_model_card_write(const char *path, const weir_model_write_opts *opts);
/* WEIR_EDATA what is missing or wrong; WEIR_EVERSION. */
weir_err weir_model_card_read(const char *name, weir_span text, weir_model_card *cardp);

/* Fills a folder that must not exist, and signs it; for write.c and models.c.  The folder stays after an error. */
weir_err weir_model_stage(const char *folder, const weir_model_write_opts *opts);

#endif /* WEIR_INFERENCE_MODEL_FILES_H */
