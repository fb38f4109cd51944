/* SPDX-License-Identifier: Apache-2.0 */
/* night.c - the folder of a night: its lock, how far it is, and which old ones go. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/json.h>

#include "nightly_private.h"

#define NIGHT_STATE_BYTES_MAX (1u << 20)
#define NIGHT_NAME_LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

const char *weir_night_step_name(weir_night_step step) {
    static const char *const names[] = {
#define WEIR_NIGHT_NAME(step, name) name,
        WEIR_NIGHT_STEPS(WEIR_NIGHT_NAME)
#undef WEIR_NIGHT_NAME
    };
    WEIR_ASSERT(step < WEIR_NIGHT_STEP_COUNT);
    return names[step];
}

weir_err weir_night_path(char path[WEIR_NIGHT_PATH_MAX], const char *folder, const char *name) {
    return weir_path_join(path, WEIR_NIGHT_PATH_MAX, folder, name);
}

/* --- night.json: writing ----------------------------------------------------------------------------------------- */

static void night_put_figure(weir_json *json, const char *key, const weir_night_figure *figure) {
    if (!figure->measure[0]) return;
    weir_json_key(json, key);
    weir_json_object(json);
    weir_json_key_string(json, "measure", figure->measure);
    weir_json_key_f64(json, "value", figure->value);
    weir_json_key_u64(json, "targets", figure->targets);
    weir_json_key_u64(json, "positives", figure->positives);
    weir_json_object_end(json);
}

weir_err weir_night_save(const weir_night *night) {
    const weir_night_state *s = &night->state;
    char path[WEIR_NIGHT_PATH_MAX];
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);
    weir_json_object(&json);
    weir_json_key_string(&json, "name", night->name);
    weir_json_key_u64(&json, "done", s->done);
    weir_json_key_string(&json, "begun", s->begun);
    weir_json_key_string(&json, "ended", s->ended);
    weir_json_key_string(&json, "checkpoint", s->checkpoint);
    weir_json_key_string(&json, "candidate", s->candidate);
    weir_json_key_string(&json, "serving", s->serving);
    night_put_figure(&json, "candidate_figure", &s->candidate_figure);
    night_put_figure(&json, "serving_figure", &s->serving_figure);
    if (s->difference.known) {
        weir_json_key(&json, "difference");
        weir_json_object(&json);
        weir_json_key_f64(&json, "low", s->difference.low);
        weir_json_key_f64(&json, "high", s->difference.high);
        weir_json_object_end(&json);
    }
    if (s->candidate_figure.example_type[0]) {
        weir_json_key(&json, "example");
        weir_json_object(&json);
        weir_json_key_string(&json, "type", s->candidate_figure.example_type);
        weir_json_key_string(&json, "key", s->candidate_figure.example_key);
        weir_json_object_end(&json);
    }
    weir_json_key_string(&json, "outcome", s->outcome);
    weir_json_key_string(&json, "sentence", s->sentence);
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(&text, '\n');
    weir_err err = weir_buf_err(&text);
    if (!err) err = weir_night_path(path, night->folder, "night.json");
    if (!err) err = weir_file_replace(path, text.bytes, text.length);
    weir_buf_free(&text);
    return err;
}

/* --- night.json: reading ----------------------------------------------------------------------------------------- */

static void night_get_text(const weir_json_node *object, const char *key, char *text, size_t size) {
    snprintf(text, size, "%s", weir_json_node_text(weir_json_find(object, key)));
}

static weir_err night_get_count(const weir_json_node *object, const char *key, uint64_t *countp) {
    const weir_json_node *node = weir_json_find(object, key);
    int64_t number = 0;
    weir_err err = node ? weir_json_node_i64(node, 0, INT64_MAX, &number) : WEIR_OK;
    *countp = (uint64_t)number;
    return err;
}

weir_err weir_night_figure_read(const weir_json_node *object, weir_night_figure *figure) {
    const weir_json_node *value = weir_json_find(object, "value");
    if (!value) return WEIR_OK;
    night_get_text(object, "measure", figure->measure, sizeof figure->measure);
    weir_err err = weir_json_node_f64(value, &figure->value);
    if (!err) err = night_get_count(object, "targets", &figure->targets);
    return err ? err : night_get_count(object, "positives", &figure->positives);
}

weir_err weir_night_difference_read(const weir_json_node *object, weir_night_difference *differencep) {
    const weir_json_node *difference = weir_json_find(object, "difference"), *low, *high;
    *differencep = (weir_night_difference){.known = false};
    if (!difference) return WEIR_OK;
    weir_err err = weir_json_need(difference, "low", WEIR_JSON_NUMBER, &low);
    if (!err) err = weir_json_need(difference, "high", WEIR_JSON_NUMBER, &high);
    if (!err) err = weir_json_node_f64(low, &differencep->low);
    if (!err) err = weir_json_node_f64(high, &differencep->high);
    differencep->known = !err;
    return err;
}

void weir_night_example_read(const weir_json_node *object, weir_night_figure *figure) {
    const weir_json_node *example = weir_json_find(object, "example");
    const weir_json_node *type = weir_json_find(example, "type"), *key = weir_json_find(example, "key");
    if (!type || !key || strlen(weir_json_node_text(key)) >= sizeof figure->example_key)
        return; /* a cut key is another */
    snprintf(figure->example_type, sizeof figure->example_type, "%s", weir_json_node_text(type));
    snprintf(figure->example_key, sizeof figure->example_key, "%s", weir_json_node_text(key));
}

static weir_err night_read_state(const char *path, const weir_json_node *root, weir_night_state *s) {
    const weir_json_node *done = weir_json_find(root, "done");
    int64_t number;
    *s = (weir_night_state){0};
    if (!done) return WEIR_ERR(WEIR_ECORRUPT, "%s has no 'done'; remove the night's folder", path);
    weir_err err = weir_json_node_i64(done, 0, WEIR_NIGHT_STEP_COUNT, &number);
    if (err) return err;
    s->done = (uint32_t)number;
    night_get_text(root, "begun", s->begun, sizeof s->begun);
    night_get_text(root, "ended", s->ended, sizeof s->ended);
    night_get_text(root, "checkpoint", s->checkpoint, sizeof s->checkpoint);
    night_get_text(root, "candidate", s->candidate, sizeof s->candidate);
    night_get_text(root, "serving", s->serving, sizeof s->serving);
    night_get_text(root, "outcome", s->outcome, sizeof s->outcome);
    night_get_text(root, "sentence", s->sentence, sizeof s->sentence);
    weir_night_example_read(root, &s->candidate_figure);
    err = weir_night_difference_read(root, &s->difference);
    if (!err) err = weir_night_figure_read(weir_json_find(root, "candidate_figure"), &s->candidate_figure);
    if (!err) err = weir_night_figure_read(weir_json_find(root, "serving_figure"), &s->serving_figure);
    /* What served when a night failed may serve no more: the step looks it up again. */
    if (s->done <= WEIR_NIGHT_JUDGE_SERVING) s->serving[0] = 0;
    /* An earlier version compared figures alone: its night is judged once more, against what served then. */
    if (!err && s->done == WEIR_NIGHT_DECIDE && s->serving_figure.measure[0] && !s->difference.known) {
        s->done = WEIR_NIGHT_JUDGE_SERVING;
        s->serving_figure = (weir_night_figure){0};
    }
    return err;
}

/* WEIR_ENOTFOUND: there is no such night. */
static weir_err night_load(const char *nights, const char *name, weir_night_state *s) {
    char folder[WEIR_NIGHT_PATH_MAX], path[WEIR_NIGHT_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    const weir_json_node *root;
    weir_arena *arena = NULL;
    weir_err err = weir_night_path(folder, nights, name);
    if (!err) err = weir_night_path(path, folder, "night.json");
    if (!err) err = weir_file_load(path, NIGHT_STATE_BYTES_MAX, &text, &length);
    if (!err && !weir_json_checked(text, length))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s is damaged or of an older version; remove the night's folder", path);
    if (!err) err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(path, text, length, WEIR_JSON_DEPTH_MAX, arena, &root);
    if (!err) err = night_read_state(path, root, s);
    weir_arena_close(arena);
    weir_free(text);
    return err;
}

/* --- which night ------------------------------------------------------------------------------------------------- */

/* As night_choose names one by its time: 20261121T021500.123Z. */
static bool night_is_dated(const char *name) {
    static const char pattern[] = "00000000T000000.000Z";
    for (size_t i = 0; i < sizeof pattern; i++)
        if (pattern[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != pattern[i]) return false;
    return true;
}

/* The nights come sorted by their names: by time. Of a folder alone only the name says that it is a night just begun.
 * What was cut off before another night ended is out of date. */
static weir_err night_see_unfinished(void *context, const char *name) {
    weir_night *night = context;
    weir_night_state state;
    weir_err err = night_load(night->nights, name, &state);
    bool dated = night_is_dated(name);
    bool open = err ? weir_err_is(err, WEIR_ENOTFOUND) && dated : !state.outcome[0];
    if (open && strlen(name) < sizeof night->name) memcpy(night->name, name, strlen(name) + 1);
    if (!err && !open && dated) night->name[0] = 0;
    return WEIR_OK; /* what is not a night, or cannot be read, is not continued */
}

static weir_err night_choose(weir_night *night, const char *name, bool resume) {
    char now[WEIR_TIME_TEXT_MAX];
    night->name[0] = 0;
    if (name) {
        size_t length = strlen(name);
        if (!length || length >= sizeof night->name || strspn(name, NIGHT_NAME_LETTERS) != length || *name == '.')
            return WEIR_ERR(WEIR_EUSAGE, "--name has 1 to %u letters, digits, '-', '_' and '.', and begins with no '.'",
                            WEIR_NIGHT_NAME_MAX - 1);
        memcpy(night->name, name, length + 1);
        return WEIR_OK;
    }
    if (resume) {
        weir_err err = weir_folder_list(night->nights, night_see_unfinished, night);
        if (err || night->name[0]) return err;
    }
    weir_time_format(weir_clock_wall_us(weir_clock_system()), now); /* 2026-11-21T02:15:00.123456Z */
    snprintf(night->name, sizeof night->name, "%.4s%.2s%.2sT%.2s%.2s%.2s.%.3sZ", now, now + 5, now + 8, now + 11,
             now + 14, now + 17, now + 20);
    return WEIR_OK;
}

/* Not by weir_file_lock: the steps are to inherit it. */
static weir_err night_take_lock(weir_night *night) {
    char path[WEIR_NIGHT_PATH_MAX];
    weir_err err = weir_night_path(path, night->nights, "lock");
    if (err) return err;
    night->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (night->lock < 0) return WEIR_ERRNO(errno, "cannot open %s", path);
    if (flock(night->lock, LOCK_EX | LOCK_NB) == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EBUSY, "another night runs in %s, or one of its steps is still ending; try again later",
                    night->nights);
}

weir_err weir_night_place(weir_night *night) {
    weir_err err = weir_night_path(night->folder, night->nights, night->name);
    if (!err) err = weir_night_path(night->snapshot_folder, night->folder, "snapshot");
    if (!err) err = weir_night_path(night->parts_folder, night->folder, "parts");
    return err ? err : weir_night_path(night->train_folder, night->folder, "train");
}

weir_err weir_night_open(weir_night *night, const char *name, bool resume) {
    weir_err err = weir_folder_create(night->nights);
    if (!err) err = night_take_lock(night);
    if (!err) err = night_choose(night, name, resume);
    if (!err) err = weir_night_place(night);
    if (err) return err;
    err = night_load(night->nights, night->name, &night->state);
    if (weir_err_is(err, WEIR_ENOTFOUND)) {
        night->state = (weir_night_state){0};
        weir_time_format(weir_clock_wall_us(weir_clock_system()), night->state.begun);
        err = weir_folder_create(night->folder);
        weir_kill_point("nightly.begun");
        return err ? err : weir_night_save(night);
    }
    if (err || strcmp(night->state.outcome, "failed") == 0 || !night->state.outcome[0]) return err;
    return WEIR_ERR(WEIR_EEXIST, "night %s has ended (%s); name another", night->name, night->state.outcome);
}

void weir_night_close(weir_night *night) {
    if (night->lock >= 0) close(night->lock);
}

/* --- old ones ---------------------------------------------------------------------------------------------------- */

typedef struct night_pruning {
    const char *folder, *prefix; /* prefix NULL: what has a night.json */
    const char *own;             /* is never removed                   */
    uint64_t count, surplus;     /* surplus: to be removed; 0: they are counted */
} night_pruning;

static weir_err night_prune_one(void *context, const char *name) {
    night_pruning *p = context;
    char path[WEIR_NIGHT_PATH_MAX], state[WEIR_NIGHT_PATH_MAX];
    weir_err err = weir_night_path(path, p->folder, name);
    if (!err) err = weir_night_path(state, path, "night.json");
    if (err) return WEIR_OK; /* none that was made here */
    if (p->prefix ? strncmp(name, p->prefix, strlen(p->prefix)) != 0 : !weir_path_exists(state)) return WEIR_OK;
    if (!p->surplus) p->count++;
    if (!p->surplus || strcmp(name, p->own) == 0) return WEIR_OK;
    p->surplus--;
    return weir_folder_remove(path);
}

/* They come sorted by their names: the oldest first. */
static weir_err night_prune_folder(night_pruning *p, uint64_t keep) {
    if (!weir_path_exists(p->folder)) return WEIR_OK;
    weir_err err = weir_folder_list(p->folder, night_prune_one, p);
    if (err || p->count <= keep) return err;
    p->surplus = p->count - keep;
    return weir_folder_list(p->folder, night_prune_one, p);
}

/* A checkpoint holds files of the store that the store itself has long given up: only the newest is worth its room. */
weir_err weir_night_prune(const weir_night *night) {
    night_pruning nights = {.folder = night->nights, .own = night->name};
    night_pruning checkpoints = {.folder = night->checkpoints, .prefix = WEIR_NIGHT_PREFIX, .own = ""};
    weir_err err = night_prune_folder(&nights, night->keep);
    return err ? err : night_prune_folder(&checkpoints, 1);
}
