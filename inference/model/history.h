/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - the file `current`: a line a change, oldest first, and a line "end N" with their number.
 *
 *   GENERATION TIME promote|rollback ID REASON
 *   7 2026-11-21T02:15:00.000000Z promote 20261121T021458Z-1a2b3c4d average precision 0.61 over 0.58
 */
#ifndef WEIR_INFERENCE_MODEL_HISTORY_H
#define WEIR_INFERENCE_MODEL_HISTORY_H

#include <weir/inference/model.h>

typedef struct weir_model_history {
    weir_models_entry *entries;
    size_t count, capacity;
} weir_model_history;

/* Empty where there is no file.  WEIR_ECORRUPT names the line. */
weir_err weir_model_history_load(const char *path, weir_model_history *history);
weir_err weir_model_history_store(const char *path, const weir_model_history *history);
void weir_model_history_free(weir_model_history *history);
/* At WEIR_MODELS_HISTORY_MAX the oldest goes. */
weir_err weir_model_history_add(weir_model_history *history, const weir_models_entry *entry);
/* What a rollback leads to: replays the history, a promotion on top of what served, a rollback off it. folder is for
 * the sentence; the id is the history's. */
weir_err weir_model_history_before(const weir_model_history *history, const char *folder, const char **idp);
/* One line of it, cut to what fits. */
void weir_model_history_reason(char reason[WEIR_MODEL_REASON_MAX], const char *text);
bool weir_model_is_id(const char *text);

#endif /* WEIR_INFERENCE_MODEL_HISTORY_H */
