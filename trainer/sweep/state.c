/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the folder of a sweep: its lock, and sweep.json with the plan and what each trial got. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

#include "sweep_private.h"

#define STATE_BYTES_MAX ((size_t)64 << 20)
#define STATE_ROWS_MAX  (WEIR_SWEEP_TRIES_MAX + 16u)

/* --- the plan: what has to be the same when a sweep goes on ------------------------------------------------------- */

typedef struct state_row {
    char name[WEIR_SWEEP_NAME_MAX + 16];
    const char *text; /* its own text, or number */
    char number[32];
} state_row;

typedef struct state_plan {
    state_row rows[STATE_ROWS_MAX];
    size_t count;
    weir_buf words;
} state_plan;

static void state_add_number(state_plan *p, const char *name, uint64_t number) {
    state_row *row = &p->rows[p->count++];
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->number, sizeof row->number, "%" PRIu64, number);
    row->text = row->number;
}

static void state_add_text(state_plan *p, const char *prefix, const char *name, const char *text) {
    state_row *row = &p->rows[p->count++];
    snprintf(row->name, sizeof row->name, "%s%s", prefix, name);
    row->text = text;
}

static weir_err state_make_plan(const weir_sweep *s, state_plan *p) {
    state_add_text(p, "", "program", "weir " WEIR_VERSION);
    state_add_number(p, "graph", s->sums);
    state_add_number(p, "--trials", s->trial_count);
    state_add_number(p, "--rungs", s->rungs);
    state_add_number(p, "--keep", s->rungs > 1 ? s->keep : 0);
    state_add_number(p, "--epochs", s->epochs);
    state_add_number(p, "--ranks", s->ranks);
    state_add_number(p, "--seed", s->seed);
    for (uint32_t i = 0; i < s->word_count; i++)
        weir_buf_printf(&p->words, "%s%s", i ? " " : "", s->words[i]);
    state_add_text(p, "", "--", s->word_count && p->words.bytes ? p->words.bytes : "");
    for (uint32_t t = 0; t < s->try_count; t++)
        state_add_text(p, "--try ", s->tries[t].name, s->tries[t].values);
    return weir_buf_err(&p->words);
}

/* More trials in one rung leave those alone that are there. */
static bool state_may_differ(const weir_sweep *s, const char *name, const char *was) {
    return strcmp(name, "--trials") == 0 && s->rungs == 1 && strtoull(was, NULL, 10) < s->trial_count;
}

static weir_err state_refuse(const weir_sweep *s, const char *name, const char *was, const char *is) {
    if (strcmp(name, "graph") == 0)
        return WEIR_ERR(WEIR_EEXIST, "%s has a sweep over another snapshot; name another folder with --out", s->folder);
    return WEIR_ERR(WEIR_EEXIST,
                    "%s has another sweep: %s was %s and is %s; name another folder with --out, or give "
                    "what it had",
                    s->folder, name, was ? (*was ? was : "empty") : "not given",
                    is ? (*is ? is : "empty") : "not given");
}

/* What an earlier start has written has to be this one's (SWEEP-H2). */
static weir_err state_compare_plan(const weir_sweep *s, const state_plan *p, const weir_json_node *plan) {
    for (size_t i = 0; i < p->count; i++) {
        const weir_json_node *node = weir_json_find(plan, p->rows[i].name);
        const char *was = node ? weir_json_node_text(node) : NULL;
        if (was && (strcmp(was, p->rows[i].text) == 0 || state_may_differ(s, p->rows[i].name, was))) continue;
        return state_refuse(s, p->rows[i].name, was, p->rows[i].text);
    }
    for (const weir_json_node *node = plan->first; node; node = node->next) {
        bool known = false;
        for (size_t i = 0; i < p->count; i++)
            known |= strcmp(p->rows[i].name, node->name) == 0;
        if (!known) return state_refuse(s, node->name, weir_json_node_text(node), NULL);
    }
    return WEIR_OK;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void state_put_result(weir_json *json, const weir_sweep_result *r) {
    weir_json_object(json);
    weir_json_key_u64(json, "epochs", r->epochs);
    weir_json_key_u64(json, "best_epoch", r->best_epoch);
    weir_json_key_f64(json, "validation", r->validation);
    weir_json_key_f64(json, "low", r->low);
    weir_json_key_f64(json, "high", r->high);
    weir_json_key_f64(json, "seconds", r->seconds);
    weir_json_object_end(json);
}

static void state_put_trial(weir_json *json, const weir_sweep *s, uint32_t number) {
    const weir_sweep_trial *trial = &s->trials[number];
    weir_json_object(json);
    weir_json_key_u64(json, "number", number + 1);
    weir_json_key(json, "options");
    weir_json_object(json);
    for (uint32_t t = 0; t < s->try_count; t++)
        weir_json_key_string(json, s->tries[t].name, trial->values[t]);
    weir_json_object_end(json);
    if (trial->same_as) weir_json_key_u64(json, "same_as", trial->same_as);
    weir_json_key(json, "rungs");
    weir_json_array(json);
    for (uint32_t r = 0; r < trial->rungs; r++)
        state_put_result(json, &trial->results[r]);
    weir_json_array_end(json);
    if (trial->failed[0]) weir_json_key_string(json, "failed", trial->failed);
    weir_json_object_end(json);
}

static void state_put_best(weir_json *json, const weir_sweep *s, const weir_run *best) {
    const uint32_t number = weir_sweep_best(s);
    weir_buf command = {0};
    weir_sweep_put_command(s, &s->trials[number - 1], &command);
    weir_json_key(json, "best");
    weir_json_object(json);
    weir_json_key_u64(json, "number", number);
    weir_json_key_string(json, "command", command.bytes ? command.bytes : "");
    weir_json_key_f64(json, "test", best->test.value);
    weir_json_key_f64(json, "test_low", best->test.low);
    weir_json_key_f64(json, "test_high", best->test.high);
    weir_json_object_end(json);
    weir_buf_free(&command);
}

weir_err weir_sweep_save(const weir_sweep *s, const weir_run *best) {
    char path[WEIR_SWEEP_PATH_MAX];
    state_plan plan = {.count = 0};
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);
    weir_err err = state_make_plan(s, &plan);
    weir_json_object(&json);
    weir_json_key(&json, "plan");
    weir_json_object(&json);
    for (size_t i = 0; i < plan.count; i++)
        weir_json_key_string(&json, plan.rows[i].name, plan.rows[i].text);
    weir_json_object_end(&json);
    weir_json_key_string(&json, s->snapshot ? "snapshot" : "parts", s->snapshot ? s->snapshot : s->parts);
    weir_json_key_string(&json, "figure", s->measure);
    weir_json_key(&json, "trials");
    weir_json_array(&json);
    for (uint32_t i = 0; i < s->trial_count; i++)
        state_put_trial(&json, s, i);
    weir_json_array_end(&json);
    if (best) state_put_best(&json, s, best);
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(&text, '\n');
    if (!err) err = weir_buf_err(&text);
    if (!err) err = weir_path_join(path, sizeof path, s->folder, "sweep.json");
    if (!err) err = weir_file_replace(path, text.bytes, text.length);
    weir_kill_point("sweep.saved");
    weir_buf_free(&text);
    weir_buf_free(&plan.words);
    return err;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* NaN where it is null. */
static weir_err state_get_f64(const weir_json_node *object, const char *key, double *valuep) {
    const weir_json_node *node = weir_json_find(object, key);
    *valuep = (double)NAN;
    return node && node->token.kind == WEIR_JSON_NUMBER ? weir_json_node_f64(node, valuep) : WEIR_OK;
}

static weir_err state_get_result(const weir_json_node *object, weir_sweep_result *r) {
    int64_t epochs, best;
    weir_err err = weir_json_need_i64(object, "epochs", 0, WEIR_RUN_EPOCHS_MAX, &epochs);
    if (!err) err = weir_json_need_i64(object, "best_epoch", 0, WEIR_RUN_EPOCHS_MAX, &best);
    if (!err) err = state_get_f64(object, "validation", &r->validation);
    if (!err) err = state_get_f64(object, "low", &r->low);
    if (!err) err = state_get_f64(object, "high", &r->high);
    if (!err) err = state_get_f64(object, "seconds", &r->seconds);
    if (err) return err;
    r->epochs = (uint32_t)epochs;
    r->best_epoch = (uint32_t)best;
    return WEIR_OK;
}

static weir_err state_get_trial(const weir_sweep *s, const weir_json_node *object, bool again) {
    const weir_json_node *rungs;
    int64_t number;
    weir_err err = weir_json_need_i64(object, "number", 1, s->trial_count, &number);
    if (!err) err = weir_json_need(object, "rungs", WEIR_JSON_ARRAY, &rungs);
    if (err) return err;
    weir_sweep_trial *trial = &s->trials[number - 1];
    for (const weir_json_node *node = rungs->first; !err && node; node = node->next) {
        if (trial->rungs == s->rungs) return WEIR_JSON_ERR(node, "a trial has more rungs than the sweep");
        err = state_get_result(node, &trial->results[trial->rungs]);
        trial->rungs += !err;
    }
    if (!again)
        snprintf(trial->failed, sizeof trial->failed, "%s", weir_json_node_text(weir_json_find(object, "failed")));
    return err;
}

static weir_err state_read(weir_sweep *s, const weir_json_node *root, bool again) {
    const weir_json_node *plan = NULL, *trials = NULL;
    state_plan own = {.count = 0};
    weir_err err = weir_json_need(root, "plan", WEIR_JSON_OBJECT, &plan);
    if (!err) err = weir_json_need(root, "trials", WEIR_JSON_ARRAY, &trials);
    if (!err) err = state_make_plan(s, &own);
    if (!err) err = state_compare_plan(s, &own, plan);
    for (const weir_json_node *node = err ? NULL : trials->first; !err && node; node = node->next)
        err = state_get_trial(s, node, again);
    if (!err) snprintf(s->measure, sizeof s->measure, "%s", weir_json_node_text(weir_json_find(root, "figure")));
    weir_buf_free(&own.words);
    return err;
}

/* WEIR_ENOTFOUND: there is none. */
static weir_err state_load(weir_sweep *s, bool again) {
    char path[WEIR_SWEEP_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    const weir_json_node *root;
    weir_arena *arena = NULL;
    weir_err err = weir_path_join(path, sizeof path, s->folder, "sweep.json");
    if (!err) err = weir_file_load(path, STATE_BYTES_MAX, &text, &length);
    if (!err && !weir_json_checked(text, length))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s is damaged or of an older version; name another folder with --out", path);
    if (!err) err = weir_arena_open(2 * (size_t)WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(path, text, length, WEIR_JSON_DEPTH_MAX, arena, &root);
    if (!err) err = state_read(s, root, again);
    weir_arena_close(arena);
    weir_free(text);
    return err;
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

/* Not by weir_file_lock: trainings are to inherit it. */
static weir_err state_take_lock(weir_sweep *s) {
    char path[WEIR_SWEEP_PATH_MAX];
    weir_err err = weir_path_join(path, sizeof path, s->folder, "lock");
    if (err) return err;
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (s->lock < 0) return WEIR_ERRNO(errno, "cannot open %s", path);
    if (flock(s->lock, LOCK_EX | LOCK_NB) == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EBUSY, "another sweep runs in %s, or one of its trainings is still ending; try again later",
                    s->folder);
}

/* A folder without sweep.json is to be begun, or is something else. */
static weir_err state_refuse_other(const weir_sweep *s) {
    char trials[WEIR_SWEEP_PATH_MAX];
    weir_err err = weir_path_join(trials, sizeof trials, s->folder, "trials");
    if (err) return err;
    if (weir_path_exists(trials))
        return WEIR_ERR(WEIR_EEXIST, "%s is there, but no sweep.json that says of what; name another folder with --out",
                        trials);
    return WEIR_OK;
}

weir_err weir_sweep_look(weir_sweep *s, bool again) {
    weir_err err = state_load(s, again);
    return weir_err_is(err, WEIR_ENOTFOUND) ? state_refuse_other(s) : err;
}

weir_err weir_sweep_open(weir_sweep *s, bool again) {
    weir_err err = weir_folder_create(s->folder);
    if (!err) err = state_take_lock(s);
    if (err) return err;
    err = state_load(s, again);
    if (!weir_err_is(err, WEIR_ENOTFOUND)) return err;
    err = state_refuse_other(s);
    return err ? err : weir_sweep_save(s, NULL);
}
