/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - the file `current`: which register it is of, a line a change, oldest first, their number, a signature.
 *
 *   weir-models 1 REGISTER
 *   GENERATION TIME promote|rollback ID MANIFEST TASK REASON
 *   7 2026-11-21T02:15:00.000000Z promote 20261121T021458Z-1a2b3c4d 1a2b3c4d… fraud average precision 0.61 over 0.58
 *   end 1
 *   weir-ed25519 KEY SIGNATURE          over every byte above; or the word "unsigned"
 *
 * REGISTER is drawn when the register begins, so that one key may sign for several. MANIFEST is the SHA-256 of the
 * model's, so that nobody puts an older model, rightly signed, into the folder that is named.
 */
#ifndef WEIR_INFERENCE_MODEL_HISTORY_H
#define WEIR_INFERENCE_MODEL_HISTORY_H

#include <weir/inference/model/model.h>

typedef enum weir_model_signing {
    WEIR_MODEL_SIGNING_ABSENT,   /* there is no file                                                     */
    WEIR_MODEL_SIGNING_SIGNED,   /* and verified                                                         */
    WEIR_MODEL_SIGNING_UNSIGNED, /* or signed where no key says whether rightly                          */
    WEIR_MODEL_SIGNING_EARLIER,  /* of a version that signed none, and knew neither REGISTER nor MANIFEST */
} weir_model_signing;

typedef struct weir_model_history {
    char register_id[WEIR_MODELS_REGISTER_MAX]; /* "": none yet */
    weir_model_signing signing;                 /* is there after an error too */
    weir_models_entry *entries;
    size_t count, capacity;
} weir_model_history;

/* Verifies, then reads. Empty where there is no file.  WEIR_EPERM not signed, or not by a key that counts;
 * WEIR_ECORRUPT names the line; WEIR_EVERSION. */
weir_err weir_model_history_load(const char *path, const weir_model_opts *opts, weir_model_history *history);
/* Signs with the key, which must be one of opts, unless these have none and accept what is unsigned; NULL: unsigned.
 * WEIR_EPERM; WEIR_ENOMEM; errors of file.h. */
weir_err weir_model_history_store(const char *path, const weir_model_history *history, const weir_secret_key *key,
                                  const weir_model_opts *opts);
void weir_model_history_free(weir_model_history *history);
/* Forgets what is in it and begins another register. */
void weir_model_history_begin(weir_model_history *history);
/* At WEIR_MODELS_HISTORY_MAX the oldest goes. */
weir_err weir_model_history_add(weir_model_history *history, const weir_models_entry *entry);
/* What a rollback leads to: replays the history, a promotion on top of what served, a rollback off it. folder is for
 * the sentence; the entry is the history's.  WEIR_ENOTFOUND none served before; WEIR_ENOMEM. */
weir_err weir_model_history_before(const weir_model_history *history, const char *folder,
                                   const weir_models_entry **entryp);
/* One line of it, cut to what fits. */
void weir_model_history_reason(char reason[WEIR_MODEL_REASON_MAX], const char *text);
bool weir_model_is_id(const char *text);
bool weir_model_is_register(const char *text);
/* The SHA-256 of a MANIFEST: 64 lower-case digits. */
bool weir_model_is_manifest(const char *text);

#endif /* WEIR_INFERENCE_MODEL_HISTORY_H */
