/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a folder that a training has left, as a run; or what is wrong with it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/json.h>
#include <weir/store/base/utf8.h>
#include <weir/trainer/runs/runs.h>

#define READ_PATH_MAX         4096u
#define READ_REPORT_BYTES_MAX ((size_t)16 << 20)
#define READ_EPOCHS_BYTES_MAX ((size_t)64 << 20)
#define READ_TEXT_BYTES_MAX   1000u
#define READ_OPTIONS_MAX      256u /* of a run; weir train has fewer than 80 */
#define READ_SECONDS_MAX      1e9  /* of an epoch */
#define READ_UNKNOWN          ((double)NAN)

/* The files of a run while it is read. */
typedef struct read_files {
    const char *folder;
    weir_arena *arena; /* of the run */
    weir_arena *trees; /* of the files' JSON */
    char *report, *told, *epochs;
    size_t report_length, told_length, epochs_length;
    const weir_json_node *report_root, *told_root; /* told: run.json or provenance.json; NULL: there is none */
    char report_path[READ_PATH_MAX], told_path[READ_PATH_MAX], epochs_path[READ_PATH_MAX];
} read_files;

/* One line that can be printed (RUNS-V2); NULL: there is no room. */
static const char *read_text(weir_arena *arena, const char *text) {
    const size_t length = strnlen(text, READ_TEXT_BYTES_MAX);
    char *copy = weir_arena_strndup(arena, text, length);
    bool valid;
    for (size_t i = 0; copy && i < length;) {
        const size_t bytes = weir_utf8_take(copy + i, length - i, &valid);
        const unsigned char first = (unsigned char)copy[i];
        /* C1 controls are two bytes, of which a terminal may see one */
        const bool control = first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)copy[i + 1] < 0xa0);
        if (!valid || control) memset(copy + i, '?', bytes);
        i += bytes;
    }
    return copy;
}

static weir_err read_no_room(const read_files *f) {
    return WEIR_ARENA_ERR(f->arena, "%s has too much in it", f->folder);
}

static weir_err read_member_text(const read_files *f, const weir_json_node *object, const char *key,
                                 const char **textp) {
    *textp = read_text(f->arena, weir_json_node_text(weir_json_find(object, key)));
    return *textp ? WEIR_OK : read_no_room(f);
}

/* NaN where it is missing or null. */
static weir_err read_member_f64(const weir_json_node *object, const char *key, double *valuep) {
    const weir_json_node *node = weir_json_find(object, key);
    *valuep = READ_UNKNOWN;
    if (!node || node->token.kind == WEIR_JSON_NULL) return WEIR_OK;
    return weir_json_node_f64(node, valuep);
}

static weir_err read_member_count(const weir_json_node *object, const char *key, int64_t max, int64_t *valuep) {
    const weir_json_node *node = weir_json_find(object, key);
    *valuep = 0;
    return node ? weir_json_node_i64(node, 0, max, valuep) : WEIR_OK;
}

/* --- report.json -------------------------------------------------------------------------------------------------- */

typedef struct read_measure {
    const char *key, *low, *high, *targets, *name;
} read_measure;

static const read_measure read_measures[] = {
    {"average_precision", "average_precision_low", "average_precision_high", "targets", "average precision"},
    {"accuracy", "accuracy_low", "accuracy_high", "targets", "accuracy"},
    {"recall_at_20", "recall_at_20_low", "recall_at_20_high", "users", "recall@20"},
};

/* NaN where it is missing or null. */
static weir_err read_share(const weir_json_node *part, const char *key, double least, double most, double *valuep) {
    weir_err err = read_member_f64(part, key, valuep);
    if (err || isnan(*valuep) || (*valuep >= least && *valuep <= most)) return err;
    return WEIR_JSON_ERR(weir_json_find(part, key), "%s is not from %g to %g; it is not the report of a training", key,
                         least, most);
}

static weir_err read_figure(const weir_json_node *part, const read_measure *m, weir_run_figure *figure) {
    int64_t targets = 0;
    weir_err err = read_share(part, m->key, 0, 1, &figure->value);
    /* The interval of a mean by its deviation may reach beyond what a mean can be. */
    if (!err) err = read_share(part, m->low, -1, 2, &figure->low);
    if (!err) err = read_share(part, m->high, -1, 2, &figure->high);
    if (!err) err = read_member_count(part, m->targets, INT64_MAX, &targets);
    figure->targets = (uint64_t)targets;
    return err;
}

static weir_err read_report(const read_files *f, weir_run *run) {
    const weir_json_node *task = NULL, *validation = NULL, *test = NULL;
    const read_measure *measure = NULL;
    int64_t best = 0;
    weir_err err = weir_json_need(f->report_root, "task", WEIR_JSON_STRING, &task);
    if (!err) err = weir_json_need(f->report_root, "validation", WEIR_JSON_OBJECT, &validation);
    if (!err) err = weir_json_need(f->report_root, "test", WEIR_JSON_OBJECT, &test);
    for (size_t i = 0; !err && !measure && i < sizeof read_measures / sizeof read_measures[0]; i++)
        if (weir_json_find(validation, read_measures[i].key)) measure = &read_measures[i];
    if (!err && !measure)
        err = WEIR_JSON_ERR(validation, "validation has none of average_precision, accuracy and recall_at_20; it is "
                                        "not the report of a training");
    if (!err) err = read_figure(validation, measure, &run->validation);
    if (!err) err = read_figure(test, measure, &run->test);
    if (!err) err = read_member_count(f->report_root, "best_epoch", WEIR_RUN_EPOCHS_MAX, &best);
    if (!err) err = read_member_text(f, f->report_root, "task", &run->task);
    if (!err) err = read_member_text(f, f->report_root, "family", &run->family);
    if (err) return err;
    run->measure = measure->name;
    run->best_epoch = (uint32_t)best;
    if (!*run->family) run->family = strcmp(measure->key, "recall_at_20") == 0 ? "recommend" : "network";
    return WEIR_OK;
}

/* --- run.json, or a model's provenance.json ----------------------------------------------------------------------- */

static int read_by_name(const void *a, const void *b) {
    const weir_run_option *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* A number or a word as it is written. */
static const char *read_value(const read_files *f, const weir_json_node *node) {
    if (node->token.kind == WEIR_JSON_STRING) return read_text(f->arena, node->text);
    if (node->token.kind == WEIR_JSON_BOOL) return node->token.bytes[0] == 't' ? "yes" : "no";
    const char *copy = weir_arena_strndup(f->arena, node->token.bytes, node->token.length);
    return copy ? read_text(f->arena, copy) : NULL;
}

static weir_err read_options(const read_files *f, const weir_json_node *object, weir_run *run) {
    static const char *const others[] = {"program", "snapshot", "parts", "cutting", "as_of", "check"};
    const size_t room = object->count ? object->count : 1;
    if (object->count > READ_OPTIONS_MAX)
        return WEIR_JSON_ERR(object, "there are more than %u options; it is not what a training was told",
                             READ_OPTIONS_MAX);
    weir_run_option *options = weir_arena_calloc(f->arena, room, sizeof *options);
    if (!options) return read_no_room(f);
    for (const weir_json_node *node = object->first; node; node = node->next) {
        bool other = node->token.kind == WEIR_JSON_ARRAY || node->token.kind == WEIR_JSON_OBJECT;
        for (size_t i = 0; !other && run->registered && i < sizeof others / sizeof others[0]; i++)
            other = strcmp(node->name, others[i]) == 0;
        if (other) continue;
        weir_run_option *o = &options[run->option_count++];
        o->name = read_text(f->arena, node->name);
        o->value = read_value(f, node);
        if (!o->name || !o->value) return read_no_room(f);
    }
    qsort(options, run->option_count, sizeof *options, read_by_name);
    run->options = options;
    return WEIR_OK;
}

/* Of a run without times, when its report was written. */
static void read_when(const read_files *f, weir_run *run) {
    char text[WEIR_TIME_TEXT_MAX];
    struct stat status;
    if (weir_time_parse(run->ended, strlen(run->ended), &run->ended_us) == WEIR_OK) return;
    run->ended = "";
    if (stat(f->report_path, &status) != 0) return;
    run->ended_us = (int64_t)status.st_mtim.tv_sec * WEIR_US_PER_S + status.st_mtim.tv_nsec / 1000;
    weir_time_format(run->ended_us, text);
    const char *copy = weir_arena_strndup(f->arena, text, strlen(text));
    if (copy) run->ended = copy;
}

static weir_err read_told(const read_files *f, weir_run *run) {
    const weir_json_node *root = f->told_root;
    weir_err err = read_member_text(f, root, "program", &run->program);
    if (!err) err = read_member_text(f, root, weir_json_find(root, "parts") ? "parts" : "snapshot", &run->snapshot);
    if (!err) err = read_member_text(f, root, "begun", &run->began);
    if (!err) err = read_member_text(f, root, "ended", &run->ended);
    if (!err) err = read_member_text(f, root, "model", &run->model);
    const weir_json_node *options = run->registered ? root : weir_json_find(root, "options");
    if (!err && options && options->token.kind == WEIR_JSON_OBJECT) err = read_options(f, options, run);
    if (!err) read_when(f, run);
    return err;
}

/* --- epochs.jsonl ------------------------------------------------------------------------------------------------- */

/* Reads the line that begins here, and returns where the next one does; NULL: there is none, or it is wrong. */
static const char *read_epoch(const char *line, weir_run_epoch *e) {
    const char *end = strchr(line, '\n');
    if (!end) return NULL;
    weir_json_reader r = weir_json_reader_of(line, (size_t)(end - line), WEIR_JSON_DEPTH_MAX);
    weir_json_token name, value;
    int64_t number = 0;
    *e = (weir_run_epoch){0, READ_UNKNOWN, READ_UNKNOWN, READ_UNKNOWN};
    weir_json_enter(&r, "a line is no object");
    while (weir_json_read_name(&r, &name) && weir_json_read(&r, &value) && weir_json_skip(&r, &value)) {
        double *to = weir_json_token_is(&name, "loss")         ? &e->loss
                     : weir_json_token_is(&name, "validation") ? &e->validation
                     : weir_json_token_is(&name, "seconds")    ? &e->seconds
                                                               : NULL;
        if (value.kind != WEIR_JSON_NUMBER) continue;
        if (to) *to = strtod(value.bytes, NULL); /* what stands behind it ends it */
        if (weir_json_token_is(&name, "epoch")) weir_json_token_i64(&value, 1, WEIR_RUN_EPOCHS_MAX, &number);
    }
    e->number = (uint32_t)number;
    return !r.fault && number ? end + 1 : NULL;
}

static weir_err read_epochs(const read_files *f, weir_run *run) {
    size_t room = 0;
    uint32_t before = 0;
    run->seconds = READ_UNKNOWN;
    if (!f->epochs) return WEIR_OK;
    if (!weir_json_checked(f->epochs, f->epochs_length))
        return WEIR_ERR(WEIR_ECORRUPT, "%s is damaged or of an older version", f->epochs_path);
    for (const char *c = f->epochs; *c; c++)
        room += *c == '\n';
    weir_run_epoch *epochs = weir_arena_calloc(f->arena, room + 1, sizeof *epochs);
    if (!epochs) return read_no_room(f);
    run->epochs = epochs;
    run->seconds = 0;
    for (const char *line = f->epochs; *line;) {
        weir_run_epoch *e = &epochs[run->epoch_count];
        line = read_epoch(line, e);
        if (!line || e->number <= before)
            return WEIR_ERR(WEIR_EDATA, "%s: line %zu is not what an epoch leaves", f->epochs_path,
                            run->epoch_count + 1);
        before = e->number;
        if (!(e->seconds >= 0 && e->seconds <= READ_SECONDS_MAX)) e->seconds = READ_UNKNOWN;
        if (isfinite(e->seconds)) run->seconds += e->seconds;
        run->epoch_count++;
    }
    return WEIR_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* *textp NULL: there is no such file. */
static weir_err read_load(const read_files *f, const char *name, size_t bytes_max, char path[READ_PATH_MAX],
                          char **textp, size_t *lengthp) {
    weir_err err = weir_path_join(path, READ_PATH_MAX, f->folder, name);
    if (err || !weir_path_exists(path)) return err;
    err = weir_file_load(path, bytes_max, textp, lengthp);
    if (!err && strlen(*textp) != *lengthp) err = WEIR_ERR(WEIR_EDATA, "%s has a byte 0 in it", path);
    return err;
}

static weir_err read_load_all(read_files *f, weir_run *run) {
    weir_err err = read_load(f, "report.json", READ_REPORT_BYTES_MAX, f->report_path, &f->report, &f->report_length);
    run->registered = !err && !f->report;
    if (!err && run->registered) {
        err = read_load(f, "metrics.json", READ_REPORT_BYTES_MAX, f->report_path, &f->report, &f->report_length);
        if (!err && f->report)
            err = read_load(f, "provenance.json", READ_REPORT_BYTES_MAX, f->told_path, &f->told, &f->told_length);
    } else if (!err) {
        err = read_load(f, "run.json", READ_REPORT_BYTES_MAX, f->told_path, &f->told, &f->told_length);
        if (!err)
            err = read_load(f, "epochs.jsonl", READ_EPOCHS_BYTES_MAX, f->epochs_path, &f->epochs, &f->epochs_length);
        if (!err && f->told && !weir_json_checked(f->told, f->told_length))
            err = WEIR_ERR(WEIR_ECORRUPT, "%s is damaged", f->told_path);
    }
    if (!err && (!f->report || (run->registered && !f->told)))
        err = WEIR_ERR(WEIR_ENOTFOUND, "%s is neither the folder of a training that has ended nor a model", f->folder);
    if (!err)
        err = weir_json_parse(f->report_path, f->report, f->report_length, WEIR_JSON_DEPTH_MAX, f->trees,
                              &f->report_root);
    if (!err && f->told)
        err = weir_json_parse(f->told_path, f->told, f->told_length, WEIR_JSON_DEPTH_MAX, f->trees, &f->told_root);
    return err;
}

/* Of what it was told, what it got and when it began, not of places: two that were told the same are two. An earlier
 * version did not say when; then it is of what each epoch took. */
static void read_make_id(const read_files *f, weir_run *run) {
    uint64_t words[2] = {0, 1};
    for (size_t i = 0; i < 2; i++) {
        words[i] = weir_xxh3(f->report, f->report_length, words[i]);
        if (*run->began)
            words[i] = weir_xxh3(run->began, strlen(run->began), words[i]);
        else if (f->epochs)
            words[i] = weir_xxh3(f->epochs, f->epochs_length, words[i]);
        for (size_t o = 0; o < run->option_count; o++) {
            words[i] = weir_xxh3(run->options[o].name, strlen(run->options[o].name), words[i]);
            words[i] = weir_xxh3(run->options[o].value, strlen(run->options[o].value), words[i]);
        }
    }
    snprintf(run->id, sizeof run->id, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

weir_err weir_run_read(weir_arena *arena, const char *folder, const char *name, weir_run **runp) {
    read_files f = {.folder = folder, .arena = arena};
    *runp = NULL;
    weir_run *run = weir_arena_calloc(arena, 1, sizeof *run);
    if (!run) return read_no_room(&f);
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &f.trees);
    if (!err) err = read_load_all(&f, run);
    if (!err) err = read_report(&f, run);
    if (!err) err = read_told(&f, run);
    if (!err) err = read_epochs(&f, run);
    if (!err) read_make_id(&f, run);
    run->name = read_text(arena, name);
    run->folder = weir_arena_strndup(arena, folder, strlen(folder));
    if (!err && (!run->name || !run->folder)) err = read_no_room(&f);
    weir_free(f.report);
    weir_free(f.told);
    weir_free(f.epochs);
    weir_arena_close(f.trees);
    if (!err) *runp = run;
    return err;
}

const char *weir_run_option_find(const weir_run *run, const char *name) {
    for (size_t i = 0; i < run->option_count; i++)
        if (strcmp(run->options[i].name, name) == 0) return run->options[i].value;
    return NULL;
}
