/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what a night does, one step after the other, and what it says about each. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>

#include "nightly_private.h"

/* What a step says when it is done; a step that has nothing to do says why. */
typedef struct step_said {
    char text[WEIR_NIGHT_SENTENCE_MAX];
} step_said;

typedef weir_err (*step_function)(weir_night *night, step_said *said);

static void step_say(step_said *s, const char *text) {
    snprintf(s->text, sizeof s->text, "%s", text);
}

/* --- programs ---------------------------------------------------------------------------------------------------- */

/* Runs the command line and says its last line; a rehearsal prints the command line instead. */
static weir_err step_program(const weir_night *night, weir_night_step step, weir_child_words *words, bool pass_on,
                             step_said *said) {
    char name[64], log[WEIR_NIGHT_PATH_MAX];
    if (night->dry_run) {
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
    snprintf(name, sizeof name, "%02d-%s.log", (int)step + 1, weir_night_step_name(step));
    weir_err err = weir_night_path(log, night->folder, name);
    const weir_child_opts opts = {
        .log = log, .pass_on = pass_on, .lock = night->lock, .goes_on = "--resume continues this night"};
    return err ? err : weir_child_run(words, &opts, said->text, sizeof said->text);
}

/* What follows `--` on our own command line: options of weir train. */
static void step_add_train_options(const weir_night *night, weir_child_words *words) {
    for (size_t i = 0; i < weir_cli_positional_count(night->cli); i++)
        WEIR_CHILD_WORDS_ADD(words, weir_cli_positional(night->cli, i));
}

/* The best of all families, unless the user asks for one. */
static void step_add_model(const weir_night *night, weir_child_words *words) {
    for (size_t i = 0; i < weir_cli_positional_count(night->cli); i++) {
        const char *word = weir_cli_positional(night->cli, i);
        if (strcmp(word, "--model") == 0 || strncmp(word, "--model=", 8) == 0) return;
    }
    WEIR_CHILD_WORDS_ADD(words, "--model", "best");
}

/* --- the steps --------------------------------------------------------------------------------------------------- */

static weir_err step_checkpoint(weir_night *night, step_said *said) {
    char name[WEIR_NIGHT_NAME_MAX + 16];
    const char *given = weir_cli_text(night->cli, "checkpoint");
    if (given) {
        step_say(said, "the one that --checkpoint names");
        return weir_night_path(night->state.checkpoint, given, NULL);
    }
    if (!night->server) {
        step_say(said, "none is needed: without --server the store itself is read");
        return weir_night_path(night->state.checkpoint, night->store, NULL);
    }
    snprintf(name, sizeof name, WEIR_NIGHT_PREFIX "%s", night->name);
    snprintf(said->text, sizeof said->text, "%s by the server", name);
    if (night->dry_run) return weir_night_path(night->state.checkpoint, night->checkpoints, name);
    return weir_night_ask_checkpoint(night, name, night->state.checkpoint);
}

/* A snapshot appears when it is whole, so one that is there is of this night and done. */
static weir_err step_snapshot(weir_night *night, step_said *said) {
    char weir[WEIR_NIGHT_PATH_MAX];
    weir_child_words words = {.count = 0};
    weir_err err = weir_child_beside("weir", weir);
    if (err) return err;
    if (weir_path_exists(night->snapshot_folder)) {
        step_say(said, "it is there already");
        return WEIR_OK;
    }
    WEIR_CHILD_WORDS_ADD(&words, weir, "snapshot", "build", night->snapshot_folder, "--path", night->state.checkpoint);
    return step_program(night, WEIR_NIGHT_SNAPSHOT, &words, true, said);
}

static weir_err step_partition(weir_night *night, step_said *said) {
    char program[WEIR_NIGHT_PATH_MAX], count[24], depth[24];
    weir_child_words words = {.count = 0};
    if (night->ranks < 2) {
        step_say(said, "one rank needs no parts");
        return WEIR_OK;
    }
    if (weir_child_beside("weir-partition", program)) {
        step_say(said, "weir-partition is not installed: ranks own vertices by their ids");
        return WEIR_OK;
    }
    if (!night->dry_run && weir_path_exists(night->parts_folder)) { /* half of them, perhaps */
        weir_err err = weir_folder_remove(night->parts_folder);
        if (err) return err;
    }
    snprintf(count, sizeof count, "%llu", (unsigned long long)night->parts);
    snprintf(depth, sizeof depth, "%llu", (unsigned long long)night->depth);
    WEIR_CHILD_WORDS_ADD(&words, program, night->snapshot_folder, "--parts", count, "--depth", depth, "--out",
                         night->parts_folder);
    return step_program(night, WEIR_NIGHT_PARTITION, &words, true, said);
}

static weir_err step_train_model(weir_night *night, step_said *said) {
    char program[WEIR_NIGHT_PATH_MAX], cutter[WEIR_NIGHT_PATH_MAX], mpirun[WEIR_NIGHT_PATH_MAX], ranks[24];
    weir_child_words words = {.count = 0};
    weir_err err = weir_child_beside("weir-train", program);
    if (!err && night->ranks > 1) err = weir_child_find_mpirun(mpirun);
    if (err) return err;
    snprintf(ranks, sizeof ranks, "%llu", (unsigned long long)night->ranks);
    if (night->ranks > 1) WEIR_CHILD_WORDS_ADD(&words, mpirun, "-n", ranks);
    WEIR_CHILD_WORDS_ADD(&words, program);
    bool cut = night->dry_run ? night->ranks > 1 && !weir_child_beside("weir-partition", cutter)
                              : weir_path_exists(night->parts_folder);
    if (cut)
        WEIR_CHILD_WORDS_ADD(&words, "--parts", night->parts_folder);
    else
        WEIR_CHILD_WORDS_ADD(&words, night->snapshot_folder);
    WEIR_CHILD_WORDS_ADD(&words, "--folder", night->train_folder, "--models", night->models, "--resume");
    if (*night->key) WEIR_CHILD_WORDS_ADD(&words, "--key", night->key);
    step_add_model(night, &words);
    step_add_train_options(night, &words);
    return step_program(night, WEIR_NIGHT_TRAIN, &words, true, said);
}

/* A model of this snapshot that is in the register was added before a crash came between it and night.json. */
static weir_err step_train(weir_night *night, step_said *said) {
    weir_night_state *s = &night->state;
    if (night->dry_run) return step_train_model(night, said);
    weir_err err = weir_night_find_candidate(night, s->candidate);
    if (!err && !s->candidate[0]) {
        err = step_train_model(night, said);
        if (!err) err = weir_night_find_candidate(night, s->candidate);
    }
    if (!err && !s->candidate[0]) err = WEIR_ERR(WEIR_ENOTFOUND, "the training left no model in %s", night->models);
    if (!err) snprintf(said->text, sizeof said->text, "model %s", s->candidate);
    return err;
}

/* against: the model that serves, or NULL. */
static weir_err step_judge_model(weir_night *night, weir_night_step step, const char *id, const char *against,
                                 step_said *said) {
    weir_night_state *s = &night->state;
    char program[WEIR_NIGHT_PATH_MAX], model[WEIR_NIGHT_PATH_MAX], other[WEIR_NIGHT_PATH_MAX];
    char keys[WEIR_NIGHT_PATH_MAX + 32];
    weir_child_words words = {.count = 0};
    weir_err err = weir_child_beside("weir-train", program);
    if (!err) err = weir_night_path(model, night->models, id);
    if (!err && against) err = weir_night_path(other, night->models, against);
    if (err) return err;
    snprintf(keys, sizeof keys, "models.public_keys=%s", night->public_keys);
    WEIR_CHILD_WORDS_ADD(&words, program, night->snapshot_folder, "--judge", model);
    if (against) WEIR_CHILD_WORDS_ADD(&words, "--against", other);
    WEIR_CHILD_WORDS_ADD(&words, "--set", keys, "--set",
                         night->accept_unsigned ? "models.require_signature=false" : "models.require_signature=true");
    step_add_train_options(night, &words);
    err = step_program(night, step, &words, false, said);
    if (err || night->dry_run) return err;
    weir_night_figure own = {0};
    err = weir_night_figure_parse(weir_night_step_name(step), said->text, &own, against ? &s->serving_figure : NULL,
                                  &s->difference);
    if (err) return err;
    if (!against) s->candidate_figure = own; /* with its example, which a comparison does not say */
    const weir_night_figure *figure = against ? &s->serving_figure : &own;
    snprintf(said->text, sizeof said->text, "%s: %s %.4f", against ? against : id, figure->measure, figure->value);
    return WEIR_OK;
}

static weir_err step_judge(weir_night *night, step_said *said) {
    return step_judge_model(night, WEIR_NIGHT_JUDGE, night->dry_run ? "THE-NEW-MODEL" : night->state.candidate, NULL,
                            said);
}

/* After a crash the candidate may serve already: what is compared is what served when this step was first done. */
static weir_err step_judge_serving(weir_night *night, step_said *said) {
    weir_night_state *s = &night->state;
    weir_err err = s->serving[0] ? WEIR_OK : weir_night_find_serving(night, s->serving);
    if (err) return err;
    if (!s->serving[0]) {
        step_say(said, "no model serves yet");
        return WEIR_OK;
    }
    err = step_judge_model(night, WEIR_NIGHT_JUDGE_SERVING, night->dry_run ? "THE-NEW-MODEL" : s->candidate, s->serving,
                           said);
    if (!err || !night->force || weir_err_is(err, WEIR_ECANCELLED)) return err;
    weir_err_sentence(err, said->text, sizeof said->text); /* --force needs no figure of it */
    return WEIR_OK;
}

static weir_err step_decide(weir_night *night, step_said *said) {
    weir_night_state *s = &night->state;
    if (night->dry_run) {
        step_say(said, "the new one serves if it is surely better");
        return WEIR_OK;
    }
    bool promote = weir_night_decide(night, said->text, sizeof said->text); /* NIGHTLY-G2 */
    weir_err err = promote ? weir_night_promote(night, said->text) : WEIR_OK;
    if (err) return err;
    snprintf(s->outcome, sizeof s->outcome, "%s", promote ? "promoted" : "kept");
    snprintf(s->sentence, sizeof s->sentence, "%s", said->text);
    weir_time_format(weir_clock_wall_us(weir_clock_system()), s->ended);
    return WEIR_OK;
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

static weir_err step_do(weir_night *night, weir_night_step step) {
    static const step_function functions[] = {step_checkpoint, step_snapshot,      step_partition, step_train,
                                              step_judge,      step_judge_serving, step_decide};
    step_said said = {""};
    weir_buf out = {0};
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    weir_kill_point("nightly.before");
    WEIR_ASSERT(night->state.done == step); /* NIGHTLY-G1 */
    weir_err err = functions[step](night, &said);
    if (err) return weir_err_prefix(err, "%s", weir_night_step_name(step));
    weir_kill_point("nightly.between");
    night->state.done = step + 1u;
    if (!night->dry_run) err = weir_night_save(night); /* NIGHTLY-G1 */
    weir_kill_point("nightly.after");
    if (err) return err;

    int64_t us = weir_clock_mono_us(weir_clock_system()) - begin_us;
    weir_buf_printf(&out, "%d/%d  %-13s  %s", (int)step + 1, WEIR_NIGHT_STEP_COUNT, weir_night_step_name(step),
                    said.text);
    if (us >= WEIR_US_PER_S) weir_buf_printf(&out, "  (%.1f s)", (double)us / 1e6);
    weir_buf_byte(&out, '\n');
    err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

weir_err weir_night_go(weir_night *night) {
    char sentence[WEIR_ERR_SENTENCE_MAX], serving[WEIR_MODEL_ID_MAX] = "";
    weir_night_state *s = &night->state;
    weir_err err = WEIR_OK;
    s->outcome[0] = 0;
    for (weir_night_step step = s->done; !err && step < WEIR_NIGHT_STEP_COUNT; step++)
        err = step_do(night, step);
    if (!err || weir_err_is(err, WEIR_ECANCELLED)) return err;

    /* The old model goes on serving whatever has failed: nothing before the last step touches it (NIGHTLY-G2). */
    (void)weir_night_find_serving(night, serving);
    weir_err_sentence(err, sentence, sizeof sentence);
    snprintf(s->outcome, sizeof s->outcome, "failed");
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
    weir_time_format(weir_clock_wall_us(weir_clock_system()), s->ended);
    if (!night->dry_run) (void)weir_night_save(night);
    return serving[0] ? WEIR_ERR(weir_err_code(err), "%s; %s goes on serving", sentence, serving) : err;
}
