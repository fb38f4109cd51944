/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what a night does, one step after the other, and what it says about each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>

#include "nightly_private.h"

#define LOG_BYTES_MAX (1u << 20)

/* What a step says when it is done; a step that has nothing to do says why. */
typedef struct step_said {
    char text[WEIR_NIGHT_SENTENCE_MAX];
} step_said;

typedef weir_err (*step_run)(weir_night *night, step_said *said);

static void say(step_said *s, const char *text) {
    snprintf(s->text, sizeof s->text, "%s", text);
}

/* --- command lines ----------------------------------------------------------------------------------------------- */

static weir_err print_words(const weir_night_words *words) {
    weir_buf out = {0};
    weir_buf_text(&out, "     ");
    for (size_t i = 0; i < words->count; i++)
        weir_buf_printf(&out, " %s", words->words[i]);
    weir_buf_byte(&out, '\n');
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err log_path(const weir_night *night, weir_night_step step, char path[WEIR_NIGHT_PATH_MAX]) {
    char name[64];
    snprintf(name, sizeof name, "%02d-%s.log", (int)step + 1, weir_night_step_name(step));
    return weir_night_path(path, night->folder, name);
}

static weir_err run(const weir_night *night, weir_night_step step, weir_night_words *words, bool pass_on,
                    step_said *said) {
    char log[WEIR_NIGHT_PATH_MAX];
    words->lock = night->lock;
    if (night->dry_run) return print_words(words);
    weir_err err = log_path(night, step, log);
    return err ? err : weir_night_run(words, log, pass_on, said->text, sizeof said->text);
}

static weir_err find_mpirun(char path[WEIR_NIGHT_PATH_MAX]) {
    const char *begin = getenv("PATH");
    for (; begin && *begin; begin += *begin == ':') {
        size_t length = strcspn(begin, ":");
        int written = snprintf(path, WEIR_NIGHT_PATH_MAX, "%.*s/mpirun", (int)length, begin);
        begin += length;
        if (written <= 0 || (unsigned)written >= WEIR_NIGHT_PATH_MAX || access(path, X_OK) != 0) continue;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EUNAVAILABLE, "mpirun is not in PATH; install openmpi-bin, or train with --ranks 1");
}

/* What stands behind `--` on our own command line: options of weir train. */
static void more_words(const weir_night *night, weir_night_words *words) {
    for (size_t i = 0; i < weir_cli_positional_count(night->cli); i++)
        weir_night_word(words, weir_cli_positional(night->cli, i));
}

/* --- the steps --------------------------------------------------------------------------------------------------- */

static weir_err step_checkpoint(weir_night *night, step_said *said) {
    char name[WEIR_NIGHT_NAME_MAX + 16];
    const char *given = weir_cli_text(night->cli, "checkpoint");
    if (given) {
        say(said, "one that is there is read");
        return weir_night_path(night->state.checkpoint, given, NULL);
    }
    if (!night->server) {
        say(said, "none is needed: no server is asked, the store itself is read");
        return weir_night_path(night->state.checkpoint, night->store, NULL);
    }
    snprintf(name, sizeof name, WEIR_NIGHT_PREFIX "%s", night->name);
    snprintf(said->text, sizeof said->text, "%s by the server", name);
    if (night->dry_run) return weir_night_path(night->state.checkpoint, night->checkpoints, name);
    return weir_night_ask_checkpoint(night, name, night->state.checkpoint);
}

/* A snapshot appears when it is whole, so one that is there is of this night and done. */
static weir_err step_snapshot(weir_night *night, step_said *said) {
    char weir[WEIR_NIGHT_PATH_MAX], out[WEIR_NIGHT_PATH_MAX];
    weir_night_words words = {.count = 0};
    weir_err err = weir_night_beside("weir", weir);
    if (!err) err = weir_night_path(out, night->folder, "snapshot");
    if (err) return err;
    if (weir_path_exists(out)) {
        say(said, "it is there already");
        return WEIR_OK;
    }
    weir_night_word(&words, weir);
    weir_night_word(&words, "snapshot");
    weir_night_word(&words, "build");
    weir_night_word(&words, out);
    weir_night_word(&words, "--path");
    weir_night_word(&words, night->state.checkpoint);
    return run(night, WEIR_NIGHT_SNAPSHOT, &words, true, said);
}

static weir_err partition(weir_night *night, const char *program, step_said *said) {
    char snapshot[WEIR_NIGHT_PATH_MAX], out[WEIR_NIGHT_PATH_MAX], count[24];
    weir_night_words words = {.count = 0};
    weir_err err = weir_night_path(snapshot, night->folder, "snapshot");
    if (!err) err = weir_night_path(out, night->folder, "parts");
    if (!err && weir_path_exists(out) && !night->dry_run) err = weir_folder_remove(out); /* half of it, perhaps */
    if (err) return err;
    snprintf(count, sizeof count, "%llu", (unsigned long long)night->parts);
    weir_night_word(&words, program);
    weir_night_word(&words, snapshot);
    weir_night_word(&words, "--parts");
    weir_night_word(&words, count);
    weir_night_word(&words, "--out");
    weir_night_word(&words, out);
    return run(night, WEIR_NIGHT_PARTITION, &words, true, said);
}

static weir_err step_partition(weir_night *night, step_said *said) {
    char program[WEIR_NIGHT_PATH_MAX];
    say(said, "one rank needs no parts");
    if (night->ranks < 2) return WEIR_OK;
    weir_err err = weir_night_beside("weir-partition", program);
    if (!err) return partition(night, program, said);
    say(said, "weir-partition is not installed: ranks own vertices by their ids");
    return WEIR_OK;
}

static void train_words(const weir_night *night, const char *const *paths, weir_night_words *words) {
    enum { TRAIN, SNAPSHOT, FOLDER, PARTS };
    weir_night_word(words, paths[TRAIN]);
    weir_night_word(words, paths[SNAPSHOT]);
    weir_night_word(words, "--folder");
    weir_night_word(words, paths[FOLDER]);
    weir_night_word(words, "--models");
    weir_night_word(words, night->models);
    weir_night_word(words, paths[PARTS] ? "--parts" : NULL);
    weir_night_word(words, paths[PARTS]);
    weir_night_word(words, "--resume");
    weir_night_word(words, *night->key ? "--key" : NULL);
    weir_night_word(words, *night->key ? night->key : NULL);
    more_words(night, words);
}

static weir_err train(weir_night *night, step_said *said) {
    char program[WEIR_NIGHT_PATH_MAX], snapshot[WEIR_NIGHT_PATH_MAX], folder[WEIR_NIGHT_PATH_MAX];
    char parts[WEIR_NIGHT_PATH_MAX], mpirun[WEIR_NIGHT_PATH_MAX], ranks[24];
    weir_night_words words = {.count = 0};
    weir_err err = weir_night_beside("weir-train", program);
    if (!err) err = weir_night_path(snapshot, night->folder, "snapshot");
    if (!err) err = weir_night_path(folder, night->folder, "train");
    if (!err) err = weir_night_path(parts, night->folder, "parts");
    if (!err && night->ranks > 1) err = find_mpirun(mpirun);
    if (err) return err;
    snprintf(ranks, sizeof ranks, "%llu", (unsigned long long)night->ranks);
    weir_night_word(&words, night->ranks > 1 ? mpirun : NULL);
    weir_night_word(&words, night->ranks > 1 ? "-n" : NULL);
    weir_night_word(&words, night->ranks > 1 ? ranks : NULL);
    const char *const paths[] = {program, snapshot, folder, weir_path_exists(parts) ? parts : NULL};
    train_words(night, paths, &words);
    return run(night, WEIR_NIGHT_TRAIN, &words, true, said);
}

/* A model of this snapshot that is in the register was added before a crash came between it and night.json. */
static weir_err step_train(weir_night *night, step_said *said) {
    weir_night_state *s = &night->state;
    if (night->dry_run) return train(night, said);
    weir_err err = weir_night_find_candidate(night, s->candidate);
    if (!err && !s->candidate[0]) {
        err = train(night, said);
        if (!err) err = weir_night_find_candidate(night, s->candidate);
    }
    if (!err && !s->candidate[0]) err = WEIR_ERR(WEIR_ENOTFOUND, "the training left no model in %s", night->models);
    if (!err) snprintf(said->text, sizeof said->text, "model %s", s->candidate);
    return err;
}

static weir_err judge(weir_night *night, weir_night_step step, const char *id, weir_night_figure *figure,
                      step_said *said) {
    char program[WEIR_NIGHT_PATH_MAX], snapshot[WEIR_NIGHT_PATH_MAX], model[WEIR_NIGHT_PATH_MAX];
    char keys[WEIR_NIGHT_PATH_MAX + 32];
    weir_night_words words = {.count = 0};
    weir_err err = weir_night_beside("weir-train", program);
    if (!err) err = weir_night_path(snapshot, night->folder, "snapshot");
    if (!err) err = weir_night_path(model, night->models, id);
    if (err) return err;
    snprintf(keys, sizeof keys, "models.public_keys=%s", night->public_keys);
    weir_night_word(&words, program);
    weir_night_word(&words, snapshot);
    weir_night_word(&words, "--judge");
    weir_night_word(&words, model);
    weir_night_word(&words, "--set");
    weir_night_word(&words, keys);
    weir_night_word(&words, "--set");
    weir_night_word(&words,
                    night->accept_unsigned ? "models.require_signature=false" : "models.require_signature=true");
    more_words(night, &words);
    err = run(night, step, &words, false, said);
    if (err || night->dry_run) return err;
    err = weir_night_figure_read(weir_night_step_name(step), said->text, figure);
    if (!err) snprintf(said->text, sizeof said->text, "%s: %s %.4f", id, figure->measure, figure->value);
    return err;
}

static weir_err step_judge(weir_night *night, step_said *said) {
    return judge(night, WEIR_NIGHT_JUDGE, night->dry_run ? "THE-NEW-MODEL" : night->state.candidate,
                 &night->state.candidate_figure, said);
}

/* After a crash the candidate may serve already: what is compared is what served when this step was first done. */
static weir_err step_judge_serving(weir_night *night, step_said *said) {
    weir_night_state *s = &night->state;
    weir_err err = weir_night_find_serving(night, s->serving);
    if (err) return err;
    if (!s->serving[0]) {
        say(said, "no model serves yet");
        return WEIR_OK;
    }
    err = judge(night, WEIR_NIGHT_JUDGE_SERVING, s->serving, &s->serving_figure, said);
    if (!err || !night->force || weir_err_is(err, WEIR_ECANCELLED)) return err;
    weir_err_sentence(err, said->text, sizeof said->text); /* --force: it goes on without */
    return WEIR_OK;
}

static weir_err step_decide(weir_night *night, step_said *said) {
    weir_night_state *s = &night->state;
    if (night->dry_run) {
        say(said, "the better one serves");
        return WEIR_OK;
    }
    bool promote = weir_night_decide(night, said->text, sizeof said->text); /* G2 */
    weir_err err = promote ? weir_night_promote(night, said->text) : WEIR_OK;
    if (err) return err;
    snprintf(s->outcome, sizeof s->outcome, "%s", promote ? "promoted" : "kept");
    snprintf(s->sentence, sizeof s->sentence, "%s", said->text);
    weir_time_format(weir_clock_wall_us(weir_clock_system()), s->ended);
    return WEIR_OK;
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

static weir_err print_step(weir_night_step step, const char *text, int64_t us) {
    weir_buf out = {0};
    weir_buf_printf(&out, "%d/%d  %-13s  %s", (int)step + 1, WEIR_NIGHT_STEP_COUNT, weir_night_step_name(step), text);
    if (us >= WEIR_US_PER_S) weir_buf_printf(&out, "  (%.1f s)", (double)us / 1e6);
    weir_buf_byte(&out, '\n');
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err do_step(weir_night *night, weir_night_step step) {
    static const step_run runs[] = {step_checkpoint, step_snapshot,      step_partition, step_train,
                                    step_judge,      step_judge_serving, step_decide};
    step_said said = {""};
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    weir_kill_point("nightly.before");
    weir_err err = runs[step](night, &said);
    if (err) return weir_err_prefix(err, "%s", weir_night_step_name(step));
    weir_kill_point("nightly.between");
    night->state.done = step + 1u;
    if (!night->dry_run) err = weir_night_save(night); /* G1 */
    weir_kill_point("nightly.after");
    return err ? err : print_step(step, said.text, weir_clock_mono_us(weir_clock_system()) - begin_us);
}

/* The old model goes on serving whatever has failed: nothing before the last step touches it (G2). */
static weir_err fail(weir_night *night, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX], serving[WEIR_MODEL_ID_MAX] = "";
    if (weir_err_is(err, WEIR_ECANCELLED)) return err;
    (void)weir_night_find_serving(night, serving);
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_night_state *s = &night->state;
    snprintf(s->outcome, sizeof s->outcome, "failed");
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
    weir_time_format(weir_clock_wall_us(weir_clock_system()), s->ended);
    if (!night->dry_run) (void)weir_night_save(night);
    if (!serving[0]) return err;
    return WEIR_ERR(weir_err_code(err), "%s; %s goes on serving", sentence, serving);
}

weir_err weir_night_go(weir_night *night) {
    weir_err err = WEIR_OK;
    night->state.outcome[0] = 0;
    for (weir_night_step step = night->state.done; !err && step < WEIR_NIGHT_STEP_COUNT; step++)
        err = do_step(night, step);
    return err ? fail(night, err) : WEIR_OK;
}
