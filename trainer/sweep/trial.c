/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - one training of a trial, as a program of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#include "sweep_private.h"

#define TRIAL_ARENA_BYTES ((size_t)64 << 20)

weir_err weir_sweep_trial_folder(const weir_sweep *s, uint32_t trial, char path[WEIR_SWEEP_PATH_MAX]) {
    char name[32];
    snprintf(name, sizeof name, "trials/%03u", trial + 1);
    return weir_path_join(path, WEIR_SWEEP_PATH_MAX, s->folder, name);
}

/* What is behind the last end of a text goes into the buffer, and will be a word when all are there. */
static void trial_put_word(weir_buf *text, uint32_t *countp, const char *word) {
    weir_buf_append(text, word, strlen(word) + 1);
    ++*countp;
}

/* "--name=value"; "on" is a switch, "off" is nothing. */
static void trial_put_tried(const weir_sweep *s, const weir_sweep_trial *trial, weir_buf *text, uint32_t *countp) {
    char word[WEIR_SWEEP_NAME_MAX + WEIR_SWEEP_VALUE_MAX + 4];
    for (uint32_t t = 0; t < s->try_count; t++) {
        const char *value = trial->values[t];
        if (strcmp(value, "off") == 0) continue;
        const bool on = strcmp(value, "on") == 0;
        snprintf(word, sizeof word, "--%s%s%s", s->tries[t].name, on ? "" : "=", on ? "" : value);
        trial_put_word(text, countp, word);
    }
}

/* What the sweep gives stands last, and counts. */
static weir_err trial_put_words(const weir_sweep *s, const weir_sweep_trial *trial, const char *folder, uint32_t epochs,
                                weir_buf *text, uint32_t *countp) {
    char program[WEIR_CHILD_PATH_MAX], mpirun[WEIR_CHILD_PATH_MAX], number[24];
    weir_err err = weir_child_beside("weir-train", program);
    if (!err && s->ranks > 1) err = weir_child_find_mpirun(mpirun);
    if (err) return err;
    if (s->ranks > 1) {
        snprintf(number, sizeof number, "%u", s->ranks);
        trial_put_word(text, countp, mpirun);
        trial_put_word(text, countp, "-n");
        trial_put_word(text, countp, number);
    }
    trial_put_word(text, countp, program);
    if (s->parts) trial_put_word(text, countp, "--parts");
    trial_put_word(text, countp, s->parts ? s->parts : s->snapshot);
    for (uint32_t i = 0; i < s->word_count; i++)
        trial_put_word(text, countp, s->words[i]);
    trial_put_tried(s, trial, text, countp);
    if (epochs) {
        snprintf(number, sizeof number, "%u", epochs);
        trial_put_word(text, countp, "--epochs");
        trial_put_word(text, countp, number);
        trial_put_word(text, countp, "--folder");
        trial_put_word(text, countp, folder);
        trial_put_word(text, countp, "--resume");
        trial_put_word(text, countp, "--learn=once");
        if (s->baselines_known) trial_put_word(text, countp, "--no-baselines");
    } else {
        trial_put_word(text, countp, "--check");
    }
    return weir_buf_err(text);
}

weir_err weir_sweep_words(const weir_sweep *s, const weir_sweep_trial *trial, const char *folder, uint32_t epochs,
                          weir_buf *text, weir_child_words *words) {
    uint32_t count = 0;
    weir_err err = trial_put_words(s, trial, folder, epochs, text, &count);
    const char *word = text->bytes;
    for (uint32_t i = 0; !err && i < count; i++, word += strlen(word) + 1)
        WEIR_CHILD_WORDS_ADD(words, word);
    return err;
}

/* What its report says. */
static weir_err trial_take_result(weir_sweep *s, const char *folder, uint32_t epochs, weir_sweep_result *result) {
    weir_arena *arena = NULL;
    weir_run *run = NULL;
    weir_err err = weir_arena_open(TRIAL_ARENA_BYTES, &arena);
    if (!err) err = weir_run_read(arena, folder, folder, &run);
    if (!err && !isfinite(run->validation.value))
        err = WEIR_ERR(WEIR_EDATA, "its figure of validation is no number: all of its targets are of one class");
    if (!err && *s->measure && strcmp(s->measure, run->measure) != 0)
        err = WEIR_ERR(WEIR_EDATA, "its figure is of %s and those of the others are of %s", run->measure, s->measure);
    if (!err) {
        *result = (weir_sweep_result){run->validation.value,
                                      run->validation.low,
                                      run->validation.high,
                                      run->best_epoch,
                                      run->epoch_count ? (uint32_t)run->epoch_count : epochs,
                                      run->seconds};
        snprintf(s->measure, sizeof s->measure, "%s", run->measure);
    }
    weir_arena_close(arena);
    return err;
}

/* Whether a trial is to blame, and the others can go on. What ended by a signal or for want of memory or disk is not:
 * the sweep stops, knows nothing of it, and goes on with it when it is begun again (SWEEP-H2). */
static bool trial_is_own(weir_err err) {
    const weir_code code = weir_err_code(err);
    return code == WEIR_EDATA || code == WEIR_ECORRUPT || code == WEIR_ENOTFOUND || code == WEIR_ELIMIT;
}

weir_err weir_sweep_train(weir_sweep *s, uint32_t number) {
    weir_sweep_trial *trial = &s->trials[number];
    const uint32_t epochs = weir_sweep_epochs(s->epochs, s->keep, s->rungs, trial->rungs);
    char folder[WEIR_SWEEP_PATH_MAX], log[WEIR_SWEEP_PATH_MAX], name[32];
    weir_child_opts opts = {.log = log, .lock = s->lock, .goes_on = "the same command goes on"};
    weir_child_words words = {.count = 0};
    weir_buf text = {0};
    snprintf(name, sizeof name, "rung-%u.log", trial->rungs + 1);
    weir_err err = weir_sweep_trial_folder(s, number, folder);
    if (!err) err = weir_path_join(log, sizeof log, folder, name);
    if (!err) err = weir_folder_create(folder);
    if (!err) err = weir_sweep_words(s, trial, folder, epochs, &text, &words);
    weir_kill_point("sweep.before");
    if (!err) {
        err = weir_child_run(&words, &opts, NULL, 0);
        weir_kill_point("sweep.trained");
        if (!err) err = trial_take_result(s, folder, epochs, &trial->results[trial->rungs]);
        if (err && trial_is_own(err)) {
            weir_err_sentence(err, trial->failed, sizeof trial->failed);
            err = WEIR_OK;
        } else if (!err) {
            trial->rungs++;
        }
    }
    weir_buf_free(&text);
    return err;
}
