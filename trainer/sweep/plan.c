/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - what a sweep is to do, and all that can be known to be wrong with it before it begins. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#include "sweep_private.h"

#define PLAN_SUMS_MAX  ((size_t)64 << 20)
#define PLAN_OWN_WORDS 24u /* of the longest command line, without what is tried and what all share */

/* --- the command line --------------------------------------------------------------------------------------------- */

typedef struct plan_name {
    const char *name;
    char letter;
    const char *instead;
} plan_name;

/* Options of weir train that the sweep gives itself, or that are of something else than a training. */
static const plan_name plan_reserved[] = {
    {"folder", 'f', "each trial has a folder of its own below --out"},
    {"epochs", 'e', "give --epochs to the sweep: how many the last rung has"},
    {"parts", 'p', "give --parts to the sweep"},
    {"models", 'm', "train the best one again, by the command line that the sweep prints, and add that model"},
    {"key", 'k', "it signs a model, and trials leave none"},
    {"predictions", 0, "train the best one again, by the command line that the sweep prints"},
    {"trace", 0, "train one of them again, by its command line"},
    {"judge", 'j', "it is no training"},
    {"against", 0, "it is no training"},
    {"plan", 0, "it is no training"},
    {"json", 0, "it is no training"},
    {"ranks", 0, "give --ranks to the sweep"},
    {"check", 0, "the sweep does it"},
    {"resume", 0, "the sweep does it"},
    {"as-served", 0, "train the best one again, by the command line that the sweep prints"},
    {"learn", 0, "the sweep gives it, since a second learning changes nothing of validation"},
    {"help", 'h', "see weir train --help"},
    {"version", 0, "it is no training"},
    {"check-config", 0, "it is no training"},
    {"print-config", 0, "it is no training"},
};

/* Options that say what is asked, and of which targets: trials that differ in one cannot be compared by their figures
 * (SWEEP-H3). */
static const char *const plan_measured[] = {"task",  "validation", "test",    "masks",   "per-class",
                                            "split", "fold",       "warm-up", "horizons"};

static weir_err plan_refuse_measured(const char *name) {
    for (size_t i = 0; i < sizeof plan_measured / sizeof plan_measured[0]; i++)
        if (strcmp(plan_measured[i], name) == 0)
            return WEIR_ERR(WEIR_EUSAGE,
                            "--try %s would have each trial measured on other targets, so that none is better than "
                            "another; give all the same, behind --",
                            name);
    return WEIR_OK;
}

static weir_err plan_refuse_reserved(const char *name, size_t length, char letter) {
    for (size_t i = 0; i < sizeof plan_reserved / sizeof plan_reserved[0]; i++) {
        const bool is =
            letter ? plan_reserved[i].letter == letter
                   : strlen(plan_reserved[i].name) == length && strncmp(plan_reserved[i].name, name, length) == 0;
        if (is)
            return WEIR_ERR(WEIR_EUSAGE, "--%s cannot be an option of the trials: %s", plan_reserved[i].name,
                            plan_reserved[i].instead);
    }
    return WEIR_OK;
}

/* The words that all trials share. */
static weir_err plan_read_words(const weir_cli *cli, weir_sweep *s) {
    const char *first = weir_cli_positional(cli, 0);
    const bool named = first && first[0] != '-';
    s->snapshot = named ? first : NULL;
    s->parts = weir_cli_text(cli, "parts");
    if (s->snapshot && s->parts)
        return WEIR_ERR(WEIR_EUSAGE, "give the snapshot or --parts: each rank opens its own part, and nothing else");
    if (!s->snapshot && !s->parts)
        return WEIR_ERR(WEIR_EUSAGE, "the snapshot to train from is missing; name its folder first, or give --parts");
    for (size_t i = named; i < weir_cli_positional_count(cli); i++) {
        const char *word = weir_cli_positional(cli, i);
        const bool option = word[0] == '-' && word[1];
        weir_err err = WEIR_OK;
        if (option && word[1] == '-') err = plan_refuse_reserved(word + 2, strcspn(word + 2, "="), 0);
        if (option && word[1] != '-') err = plan_refuse_reserved("", 0, word[1]);
        if (err) return err;
        if (s->word_count == WEIR_SWEEP_WORDS_MAX)
            return WEIR_ERR(WEIR_EUSAGE, "at most %u words may follow --", WEIR_SWEEP_WORDS_MAX);
        s->words[s->word_count++] = word;
    }
    return WEIR_OK;
}

static weir_err plan_read_tries(const weir_cli *cli, weir_sweep *s) {
    const char *text;
    for (size_t i = 0; (text = weir_cli_text_at(cli, "try", i)); i++) {
        if (s->try_count == WEIR_SWEEP_TRIES_MAX)
            return WEIR_ERR(WEIR_EUSAGE, "at most %u options can be tried", WEIR_SWEEP_TRIES_MAX);
        weir_sweep_try *try = &s->tries[s->try_count];
        weir_err err = weir_sweep_try_read(text, try);
        if (!err) err = plan_refuse_reserved(try->name, strlen(try->name), 0);
        if (!err) err = plan_refuse_measured(try->name);
        for (uint32_t t = 0; !err && t < s->try_count; t++)
            if (strcmp(s->tries[t].name, try->name) == 0)
                err = WEIR_ERR(WEIR_EUSAGE, "--try %s is given twice; give all of its values once", try->name);
        if (err) return err;
        s->try_count++;
    }
    if (s->try_count) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE,
                    "--try is missing: an option of weir train and what it may be, as rate=log:1e-4..1e-2");
}

/* A draw of targets is the seed's, so trials of several seeds would be measured on other ones (SWEEP-H3). */
static weir_err plan_refuse_draws(const weir_sweep *s) {
    bool seeds = false, draws = false;
    for (uint32_t t = 0; t < s->try_count; t++)
        seeds = seeds || strcmp(s->tries[t].name, "seed") == 0;
    for (size_t i = 0; i < s->word_count; i++)
        draws = draws || strncmp(s->words[i], "--split", 7) == 0 || strncmp(s->words[i], "--per-class", 11) == 0;
    if (!seeds || !draws) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE,
                    "--try seed would have each trial measured on targets that its own seed draws, by --split "
                    "or --per-class; give masks, or one seed behind --");
}

/* A trial that goes on to the next rung has more epochs, so its rates would have fallen by another curve until then. */
static weir_err plan_refuse_falling(const weir_sweep *s) {
    bool falls = false;
    for (uint32_t t = 0; t < s->try_count; t++)
        falls = falls || strcmp(s->tries[t].name, "schedule") == 0;
    for (size_t i = 0; i < s->word_count; i++) {
        const char *word = s->words[i], *next = i + 1 < s->word_count ? s->words[i + 1] : "";
        falls = falls || strcmp(word, "--schedule=cosine") == 0 ||
                (strcmp(word, "--schedule") == 0 && strcmp(next, "cosine") == 0);
    }
    if (!falls || s->rungs == 1) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE,
                    "--schedule cosine is a curve over all epochs, and each of the %u rungs would have "
                    "another; give one of --schedule and --rungs",
                    s->rungs);
}

static weir_err plan_read_u32(const weir_cli *cli, const char *name, uint32_t least, uint32_t most, uint32_t *valuep) {
    uint64_t value = *valuep;
    weir_err err = weir_cli_u64(cli, name, least, most, &value);
    *valuep = (uint32_t)value;
    return err;
}

static weir_err plan_read_numbers(const weir_cli *cli, weir_sweep *s) {
    s->trial_count = 20;
    s->rungs = 1;
    s->keep = 3;
    s->epochs = 100;
    s->ranks = 1;
    s->seed = 1;
    weir_err err = plan_read_u32(cli, "trials", 1, WEIR_SWEEP_TRIALS_MAX, &s->trial_count);
    if (!err) err = plan_read_u32(cli, "rungs", 1, WEIR_SWEEP_RUNGS_MAX, &s->rungs);
    if (!err) err = plan_read_u32(cli, "keep", 2, WEIR_SWEEP_KEEP_MAX, &s->keep);
    if (!err) err = plan_read_u32(cli, "epochs", 1, 100000, &s->epochs);
    if (!err) err = plan_read_u32(cli, "ranks", 1, WEIR_SWEEP_RANKS_MAX, &s->ranks);
    if (!err) err = weir_cli_u64(cli, "seed", 0, UINT32_MAX, &s->seed);
    if (!err && weir_cli_given(cli, "keep") && s->rungs == 1)
        err = WEIR_ERR(WEIR_EUSAGE, "--keep says how many go on to the next rung, and there is one; give --rungs, too");
    if (!err) err = plan_refuse_draws(s);
    if (!err) err = plan_refuse_falling(s);
    if (!err && s->rungs > 1 &&
        weir_sweep_epochs(s->epochs, s->keep, s->rungs, 0) == weir_sweep_epochs(s->epochs, s->keep, s->rungs, 1))
        err = WEIR_ERR(WEIR_EUSAGE,
                       "%u epochs are too few for %u rungs of which each has %u times as many as the one "
                       "before; give more --epochs, or fewer --rungs",
                       s->epochs, s->rungs, s->keep);
    return err;
}

/* The graph by the sums of its files: a folder of the same name may hold another tomorrow. */
static weir_err plan_read_sums(weir_sweep *s) {
    char path[WEIR_SWEEP_PATH_MAX], *sums = NULL;
    size_t length = 0;
    weir_err err = weir_path_join(path, sizeof path, s->snapshot ? s->snapshot : s->parts,
                                  s->snapshot ? "MANIFEST" : "part-0/MANIFEST");
    if (!err) err = weir_file_load(path, PLAN_SUMS_MAX, &sums, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND))
        return WEIR_ERR(WEIR_ENOTFOUND, "%s is no folder of %s, or not whole: it has no %s",
                        s->snapshot ? s->snapshot : s->parts, s->snapshot ? "a snapshot" : "parts",
                        s->snapshot ? "MANIFEST" : "part-0/MANIFEST");
    if (!err) s->sums = weir_xxh3(sums, length, 0);
    weir_free(sums);
    return err;
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

static bool plan_is_same(const weir_sweep *s, const weir_sweep_trial *a, const weir_sweep_trial *b) {
    for (uint32_t t = 0; t < s->try_count; t++)
        if (strcmp(a->values[t], b->values[t]) != 0) return false;
    return true;
}

static weir_err plan_draw(weir_sweep *s) {
    s->trials = weir_calloc(s->trial_count, sizeof *s->trials);
    if (!s->trials) return WEIR_NOMEM("for the trials; take fewer");
    for (uint32_t i = 0; i < s->trial_count; i++) {
        weir_sweep_trial *trial = &s->trials[i];
        for (uint32_t t = 0; t < s->try_count; t++)
            weir_sweep_draw(&s->tries[t], s->seed, i + 1, trial->values[t]);
        for (uint32_t before = 0; before < i && !trial->same_as; before++)
            if (!s->trials[before].same_as && plan_is_same(s, trial, &s->trials[before])) trial->same_as = before + 1;
    }
    return WEIR_OK;
}

weir_err weir_sweep_plan(const weir_cli *cli, weir_sweep *s) {
    *s = (weir_sweep){.folder = weir_cli_text(cli, "out"), .lock = -1};
    if (!s->folder || !*s->folder)
        return WEIR_ERR(WEIR_EUSAGE, "--out is missing: the folder for what the sweep leaves");
    weir_err err = plan_read_words(cli, s);
    if (!err) err = plan_read_tries(cli, s);
    if (!err) err = plan_read_numbers(cli, s);
    if (!err && s->word_count + s->try_count + PLAN_OWN_WORDS > WEIR_CHILD_WORDS_MAX)
        err = WEIR_ERR(WEIR_EUSAGE, "at most %u words may follow --",
                       WEIR_CHILD_WORDS_MAX - PLAN_OWN_WORDS - s->try_count);
    if (!err) err = plan_read_sums(s);
    return err ? err : plan_draw(s);
}

void weir_sweep_free(weir_sweep *s) {
    weir_free(s->trials);
}

void weir_sweep_put_tried(const weir_sweep *s, const weir_sweep_trial *trial, weir_buf *out) {
    for (uint32_t t = 0; t < s->try_count; t++) {
        const char *value = trial->values[t];
        if (strcmp(value, "off") == 0) continue;
        weir_buf_printf(out, " --%s", s->tries[t].name);
        if (strcmp(value, "on") != 0) weir_buf_printf(out, "=%s", value);
    }
}

/* --- what weir-train says of them --------------------------------------------------------------------------------- */

static weir_err plan_check_trial(const weir_sweep *s, const weir_sweep_trial *trial, char *said, size_t size) {
    const weir_child_opts opts = {.lock = -1, .goes_on = "no training was begun"};
    weir_child_words words = {.count = 0};
    weir_buf text = {0};
    weir_err err = weir_sweep_words(s, trial, NULL, 0, &text, &words);
    if (!err) err = weir_child_run(&words, &opts, said, size);
    if (!err && !strstr(said, "the options are right")) /* an option made it something else than a training */
        err = WEIR_ERR(WEIR_EDATA, "weir train: %.200s", *said ? said : "nothing");
    weir_buf_free(&text);
    return err;
}

/* "weir train: --heads …; see 'weir train --help'" without its ends. */
static weir_err plan_refuse_trial(const weir_sweep *s, uint32_t trial, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_buf tried = {0};
    if (!weir_err_is(err, WEIR_EDATA)) return err;
    weir_err_sentence(err, sentence, sizeof sentence);
    const char *begin = strncmp(sentence, "weir train: ", 12) == 0 ? sentence + 12 : sentence;
    char *end = strstr(sentence, "; see 'weir train --help'");
    if (end) *end = 0;
    weir_sweep_put_tried(s, &s->trials[trial], &tried);
    err = weir_buf_err(&tried);
    if (!err)
        err = WEIR_ERR(WEIR_EUSAGE, "trial %u,%s: weir train says: %s; no training was begun", trial + 1,
                       tried.length ? tried.bytes : " of defaults", begin);
    weir_buf_free(&tried);
    return err;
}

weir_err weir_sweep_check(weir_sweep *s) {
    char said[WEIR_ERR_SENTENCE_MAX] = "";
    for (uint32_t i = 0; i < s->trial_count; i++) {
        if (s->trials[i].same_as) continue;
        weir_err err = plan_check_trial(s, &s->trials[i], said, sizeof said);
        if (err) return plan_refuse_trial(s, i, err);
        if (i == 0) s->baselines_known = strstr(said, " classifies") != NULL;
    }
    return WEIR_OK;
}
