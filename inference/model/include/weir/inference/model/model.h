/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a trained model as a folder that is checked before a byte of it is believed, and the register of models.
 *
 *   weights.safetensors   the parameters: named matrices of float32, as the Python package `safetensors` reads them,
 *                         and lists of uint64 that go with them
 *   model.json            format, schema_hash, task, and the caller's architecture, normalisation and calibration
 *   metrics.json          what it scored, on what
 *   provenance.json       from which data, with which code and seed
 *   MANIFEST              SHA-256 of the four (trust.h)
 *   MANIFEST.sig          Ed25519 over MANIFEST (trust.h); missing from an unsigned model
 *
 * INVARIANTS: what MODEL-M2 says of signatures, MODEL-M5 and MODEL-M6 hold where unsigned models are not accepted
 *
 *   MODEL-M1  A model folder appears under its name whole and synced, or not at all.
 *   MODEL-M2  No byte of a file is interpreted before the signature of MANIFEST and then the file's checksum have been
 *             verified, and the bytes that were verified are those that are read: a file is loaded once.
 *   MODEL-M3  `current` is replaced as one file: after a crash at any moment it names the model before or the one
 *             after.
 *   MODEL-M4  Only what could be opened is promoted, and only if it is of the schema that was asked for.
 *   MODEL-M5  Without a key that counts, no one can make another model serve: `current` is believed by its signature
 *             alone, over the register, the generation and the SHA-256 of the model's MANIFEST.
 *   MODEL-M6  A server that keeps what it has seen (weir_models_admit) never goes back below it, nor to another
 *             register.
 */
#ifndef WEIR_INFERENCE_MODEL_MODEL_H
#define WEIR_INFERENCE_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>
#include <weir/store/trust/trust.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MODEL_FORMAT            1u
#define WEIR_MODEL_TENSORS_MAX       4096u
#define WEIR_MODEL_NAME_MAX          192u       /* bytes of a tensor's name, its end included */
#define WEIR_MODEL_HEADER_BYTES_MAX  (1u << 20) /* of weights.safetensors */
#define WEIR_MODEL_WEIGHTS_BYTES_MAX ((uint64_t)4096 << 20)
#define WEIR_MODEL_TEXT_BYTES_MAX    (16u << 20) /* of model.json and its like */
#define WEIR_MODEL_TASK_MAX          257u        /* bytes of a task's name, its end included */
#define WEIR_MODEL_MANIFEST_MAX      65u         /* SHA-256 in hex, its end included */

/* A matrix in row order; a plain value. */
typedef struct weir_model_tensor {
    const char *name; /* letters, digits, "_", "-", "." */
    uint64_t rows, cols;
    const float *data;     /* one of the two */
    const uint64_t *words; /* to be given before all matrices of float32 */
} weir_model_tensor;

typedef struct weir_model_write_opts {
    const weir_model_tensor *tensors;
    size_t tensor_count;
    uint64_t schema_hash;
    const char *task; /* of the schema: the name of the one that it answers */
    /* JSON objects, kept as they are. */
    const char *architecture, *normalisation, *calibration, *metrics, *provenance;
    const weir_secret_key *key; /* NULL: not signed */
} weir_model_write_opts;

/* A new folder: all of it, or nothing (MODEL-M1).  WEIR_EEXIST; WEIR_EDATA a text that is not a JSON object;
 * WEIR_EINVAL a name that is not valid or stands twice, a weight that is not finite, words behind an odd number of
 * float32, no task or one of more than 256 bytes or with a quote or a backslash; WEIR_ELIMIT; WEIR_ENOMEM; errors of a
 * file.  Blocks.  [any] */
weir_err weir_model_write(const char *folder, const weir_model_write_opts *opts);

typedef struct weir_model weir_model;

typedef struct weir_model_opts {
    const weir_public_key *keys; /* whose signatures count */
    size_t key_count;
    bool accept_unsigned; /* models.require_signature: false; with keys, what is signed must be signed rightly */
    uint64_t schema_hash; /* that it must have been trained for; 0: any */
    const char *manifest; /* SHA-256 in hex that its MANIFEST must have; NULL, "": any */
} weir_model_opts;

/* Whom to believe, by a file of public keys. */
typedef struct weir_model_trust {
    weir_public_key keys[WEIR_PUBLIC_KEYS_MAX];
    weir_model_opts opts; /* its keys are those above, so the whole is not to be moved */
} weir_model_trust;
/* A missing file, "" and NULL are no error: then no model can be opened, and that error says what to do; with
 * accept_unsigned any can, and no signature is looked at. Else what weir_public_keys_load reports.  [any] */
weir_err weir_model_trust_load(const char *path, bool accept_unsigned, weir_model_trust *trustp);

/* Verifies, then loads (MODEL-M2).  WEIR_ENOTFOUND; WEIR_EPERM not signed, or not by a key that counts, another model
 * than opts->manifest, or a link in a file's place; WEIR_ECORRUPT a file is missing, changed or too many; WEIR_EDATA as
 * it was made, but not right; WEIR_EVERSION another format or schema; WEIR_ELIMIT; WEIR_ENOMEM; errors of a file.
 * Blocks.  [any] */
weir_err weir_model_open(const char *folder, const weir_model_opts *opts, weir_model **modelp);
void weir_model_close(weir_model *model); /* NULL is allowed */

/* What follows is read-only and [any]; what it returns is the model's. */

size_t weir_model_tensor_count(const weir_model *model);
const weir_model_tensor *weir_model_tensor_at(const weir_model *model, size_t index);
/* NULL: it has none of this name. */
const weir_model_tensor *weir_model_tensor_find(const weir_model *model, const char *name);
uint64_t weir_model_schema_hash(const weir_model *model);
const char *weir_model_task(const weir_model *model);
const char *weir_model_manifest(const weir_model *model); /* SHA-256 of its MANIFEST, in hex */

typedef enum weir_model_text {
    WEIR_MODEL_ARCHITECTURE,
    WEIR_MODEL_NORMALISATION,
    WEIR_MODEL_CALIBRATION,
    WEIR_MODEL_METRICS,
    WEIR_MODEL_PROVENANCE,
    WEIR_MODEL_TEXT_COUNT
} weir_model_text;

/* A JSON object, ended by 0. */
const char *weir_model_text_of(const weir_model *model, weir_model_text which, size_t *lengthp);

/* For fuzzing: what is in these bytes of a weights.safetensors, or of a model.json. name stands for the file. */
weir_err weir_model_weights_check(const char *name, const void *bytes, size_t length);
weir_err weir_model_json_file_check(const char *name, const char *text, size_t length);

/* --- the register ---------------------------------------------------------------------------------------------- */
/*
 *   MODELS/20261121T101500Z-1a2b3c4d/   a model: when it was written (UTC), first digits of its MANIFEST's SHA-256
 *   MODELS/current                      promotions and rollbacks, a line each, oldest first; the last names what
 *                                       serves; signed
 *   MODELS/lock                         held by whoever changes something
 *
 * Where unsigned models are not accepted, whoever can write these files and has no key can take a model away, and no
 * more: what is put there is refused (MODEL-M5), and so is an older state that is put back (MODEL-M6).
 */
#define WEIR_MODEL_ID_MAX          32u /* its end included */
#define WEIR_MODEL_REASON_MAX      256u
#define WEIR_MODELS_HISTORY_MAX    4096u /* lines that are kept; the generation counts on */
#define WEIR_MODELS_REGISTER_MAX   17u   /* 16 hex digits that tell registers apart, and their end */
#define WEIR_MODELS_GENERATION_MAX ((uint64_t)1 << 62)

typedef struct weir_models weir_models;

/* One that is not there has no models; weir_models_add makes it. clock is borrowed.  WEIR_ENOMEM, WEIR_ELIMIT.
 * [owner] */
weir_err weir_models_open(const char *folder, weir_clock *clock, weir_models **modelsp);
void weir_models_close(weir_models *models); /* NULL is allowed */
const char *weir_models_folder(const weir_models *models);

/* Writes a model under a new id.  Errors as weir_model_write; WEIR_EBUSY another changes the register.  Blocks.
 * [owner] */
weir_err weir_models_add(weir_models *models, const weir_model_write_opts *opts, char id[WEIR_MODEL_ID_MAX]);
/* The folder of a model.  WEIR_EDATA it is not an id; WEIR_ELIMIT.  [owner] */
weir_err weir_models_path(weir_models *models, const char *id, char *path, size_t size);
/* Calls visit for every id, oldest first, until it returns an error, which is passed on. Nothing is opened.  [owner] */
typedef weir_err (*weir_models_visit)(void *context, const char *id);
weir_err weir_models_list(weir_models *models, weir_models_visit visit, void *context);

typedef enum weir_models_action { WEIR_MODELS_PROMOTE, WEIR_MODELS_ROLLBACK } weir_models_action;

/* One line of the history. A plain value. */
typedef struct weir_models_entry {
    uint64_t generation; /* from 1, rising */
    int64_t time_us;
    weir_models_action action;
    char id[WEIR_MODEL_ID_MAX]; /* what serves since */
    char reason[WEIR_MODEL_REASON_MAX];
    char task[WEIR_MODEL_TASK_MAX],
        manifest[WEIR_MODEL_MANIFEST_MAX]; /* the model's; "": an earlier version wrote it */
    char register_id[WEIR_MODELS_REGISTER_MAX];
    bool is_signed; /* by a key that counts; of a change that was just made: by any */
} weir_models_entry;

/* What serves. generation 0 and an empty id: nothing was promoted yet. keys and accept_unsigned of opts count.
 * WEIR_EPERM `current` is not signed, or not by a key that counts (MODEL-M5), or others may change it; WEIR_ECORRUPT it
 * is wrong; WEIR_EVERSION; WEIR_ENOMEM; errors of a file.  [owner] */
weir_err weir_models_current(weir_models *models, const weir_model_opts *opts, weir_models_entry *entryp);
/* Whether `current` is another file than at the last weir_models_current that succeeded: one stat.  [owner] */
bool weir_models_changed(weir_models *models);
typedef weir_err (*weir_models_history_visit)(void *context, const weir_models_entry *entry);
weir_err weir_models_history(weir_models *models, const weir_model_opts *opts, weir_models_history_visit visit,
                             void *context);

/* How a promotion or a rollback is written down. A plain value. */
typedef struct weir_models_change {
    const char *reason;         /* one line                                                                          */
    const weir_secret_key *key; /* signs it; NULL: unsigned, which accept_unsigned must allow                        */
    /* With a key: an unsigned `current`, which opts do not accept, is left out and another register begins; false: it
     * is refused. One that they accept is left out whatever this says. */
    bool take_over;
    /* The register and the generation that a server's refusal names: the change is of that register, and of a later
     * generation, whatever `current` says. "" and 0: not used. */
    char after_register[WEIR_MODELS_REGISTER_MAX];
    uint64_t after_generation;
} weir_models_change;

/* Opens the model by opts (MODEL-M4), then makes it the serving one (MODEL-M3). Promoting what serves already changes
 * nothing, if it is as signed as before, after_register is "" and no earlier version wrote `current`. Errors of
 * weir_model_open and of weir_models_current; WEIR_EPERM the key is missing or, unless opts have none and accept what
 * is unsigned, not among theirs; WEIR_EDATA it is not an id, or its task has a blank; WEIR_EINVAL id is NULL;
 * WEIR_ENOTFOUND there are no models; WEIR_ELIMIT no generation is left; WEIR_EBUSY.  Blocks.  [owner] */
weir_err weir_models_promote(weir_models *models, const char *id, const weir_models_change *change,
                             const weir_model_opts *opts, weir_models_entry *entryp);
/* Back to what served before the last promotion that still stands; twice goes back two.  WEIR_ENOTFOUND there is none;
 * errors of weir_models_promote.  Blocks.  [owner] */
weir_err weir_models_rollback(weir_models *models, const weir_models_change *change, const weir_model_opts *opts,
                              weir_models_entry *entryp);

/* Compares what a register says now with the file of what this server has seen of it, and raises that (MODEL-M6):
 * whoever can write the register must not be able to write that file. An unsigned register is accepted if opts allow
 * it, and is not recorded. After an error it is not to be followed.  WEIR_EPERM it is an older file, another of the
 * same generation, or another register's, or gone, or others may change the file of what was seen; WEIR_ECORRUPT that
 * file; WEIR_ENOMEM; errors of a file.  Blocks.  [any] */
weir_err weir_models_admit(const char *seen_path, const weir_models *models, const weir_model_opts *opts,
                           const weir_models_entry *entry);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_MODEL_MODEL_H */
