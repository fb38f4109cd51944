/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - `weir runs`: the trainings below some folders, for people, machines and MLflow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

#include "runs_private.h"

extern const weir_command weir_command_runs;

#define RUNS_FOLDERS_MAX 1000u
#define RUNS_ARENA_BYTES ((size_t)64 << 20)

/* --- which, and in which order ------------------------------------------------------------------------------------ */

static int runs_by_ended(const void *a, const void *b) {
    const weir_run *x = *(const weir_run *const *)a, *y = *(const weir_run *const *)b;
    if (x->ended_us != y->ended_us) return x->ended_us < y->ended_us ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Figures of another task or another kind are of something else. */
static int runs_by_asked(const weir_run *a, const weir_run *b) {
    const int order = strcmp(a->task, b->task);
    return order ? order : strcmp(a->measure, b->measure);
}

/* Within what can be compared, the best first; what has none stands last. */
static int runs_by_validation(const void *a, const void *b) {
    const weir_run *x = *(const weir_run *const *)a, *y = *(const weir_run *const *)b;
    const double one = x->validation.value, other = y->validation.value;
    const int asked = runs_by_asked(x, y);
    if (asked) return asked;
    if (one > other || (one == one && other != other)) return -1;
    if (one < other || (one != one && other == other)) return 1;
    return strcmp(x->name, y->name);
}

static weir_err runs_choose(const weir_cli *cli, const weir_runs *list, weir_arena *arena, weir_runs_shown *shown) {
    const char *order = weir_cli_text(cli, "sort");
    shown->count = weir_runs_count(list);
    shown->runs = weir_arena_calloc(arena, shown->count + 1, sizeof *shown->runs);
    if (!shown->runs) return WEIR_ARENA_ERR(arena, "there are too many runs; name fewer folders");
    for (size_t i = 0; i < shown->count; i++)
        shown->runs[i] = weir_runs_at(list, i);
    if (order && strcmp(order, "ended") == 0) qsort(shown->runs, shown->count, sizeof *shown->runs, runs_by_ended);
    if (order && strcmp(order, "validation") == 0)
        qsort(shown->runs, shown->count, sizeof *shown->runs, runs_by_validation);
    return shown->count ? weir_runs_find_differing(arena, shown) : WEIR_OK;
}

/* --- what is done with them --------------------------------------------------------------------------------------- */

static weir_err runs_plot(const char *path, const weir_runs_shown *shown) {
    weir_buf svg = {0};
    weir_runs_line *lines = weir_calloc(shown->count + 1, sizeof *lines);
    if (!lines) return WEIR_NOMEM("for a picture");
    size_t best = 0;
    bool alike = true;
    char what[64] = "validation";
    for (size_t i = 0; i < shown->count; i++) {
        const weir_run *run = shown->runs[i];
        lines[i] = (weir_runs_line){run->name, run->epochs, run->epoch_count, run->best_epoch, false};
        if (runs_by_asked(run, shown->runs[0]) != 0) alike = false;
        if (runs_by_validation(&shown->runs[i], &shown->runs[best]) < 0) best = i;
    }
    if (alike && shown->count > 1) lines[best].best = true;
    if (alike && shown->count) snprintf(what, sizeof what, "%s of validation", shown->runs[0]->measure);
    weir_runs_draw(&svg, lines, shown->count, what);
    weir_err err = weir_buf_err(&svg);
    if (!err) err = weir_file_replace(path, svg.bytes, svg.length);
    weir_buf_free(&svg);
    weir_free(lines);
    return err;
}

/* Where no run was found, and what was none. */
static void runs_tell_rest(const weir_cli *cli, const weir_runs *list, weir_buf *out) {
    const char *folder, *why;
    if (!weir_runs_count(list)) {
        weir_buf_text(out, "no runs in");
        for (size_t i = 0; i < weir_cli_positional_count(cli); i++)
            weir_buf_printf(out, "%s %s", i ? "," : "", weir_cli_positional(cli, i));
        weir_buf_printf(out,
                        ", nor %u folders below: `weir train --folder DIR` leaves one, with report.json, when it has "
                        "ended\n",
                        WEIR_RUNS_DEPTH_MAX);
    }
    for (size_t i = 0; (folder = weir_runs_skipped(list, i, &why)); i++)
        weir_buf_printf(out, "skipped %s: %s\n", folder, why);
}

static weir_err runs_print(const weir_cli *cli, const weir_runs *list, const weir_runs_shown *shown) {
    weir_buf out = {0};
    if (weir_cli_given(cli, "json")) {
        weir_runs_tell_json(shown, list, &out);
    } else {
        if (shown->count && weir_cli_given(cli, "compare"))
            weir_runs_tell_both(shown, &out);
        else if (shown->count && !weir_cli_given(cli, "mlflow")) /* which has said a line of each */
            weir_runs_tell(shown, &out);
        runs_tell_rest(cli, list, &out);
    }
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err runs_check(const weir_cli *cli) {
    if (weir_cli_given(cli, "compare") && weir_cli_positional_count(cli) != 2)
        return WEIR_ERR(WEIR_EUSAGE, "--compare is of two runs; name both of their folders, and no more");
    if (!weir_cli_given(cli, "mlflow") && (weir_cli_given(cli, "experiment") || weir_cli_given(cli, "api-key-file")))
        return WEIR_ERR(WEIR_EUSAGE, "--experiment and --api-key-file are of --mlflow; name its address, too");
    if (weir_cli_given(cli, "mlflow") && (weir_cli_given(cli, "json") || weir_cli_given(cli, "compare")))
        return WEIR_ERR(WEIR_EUSAGE, "--mlflow says which runs were sent; omit --json and --compare");
    if (weir_cli_given(cli, "compare") && weir_cli_given(cli, "json"))
        return WEIR_ERR(WEIR_EUSAGE, "--compare is for people; omit it with --json, which has all that it shows");
    if (weir_cli_given(cli, "experiment") && !*weir_cli_text(cli, "experiment"))
        return WEIR_ERR(WEIR_EUSAGE, "--experiment is empty; name one");
    return WEIR_OK;
}

static weir_err runs_run(weir_cli *cli) {
    const weir_mlflow_opts mlflow = {.url = weir_cli_text(cli, "mlflow"),
                                     .key_file = weir_cli_text(cli, "api-key-file"),
                                     .experiment =
                                         weir_cli_given(cli, "experiment") ? weir_cli_text(cli, "experiment") : "weir"};
    weir_runs_shown shown = {.count = 0};
    weir_runs *list = NULL;
    weir_arena *arena = NULL;
    weir_err err = runs_check(cli);
    if (!err) err = weir_arena_open(RUNS_ARENA_BYTES, &arena);
    if (!err) err = weir_runs_open(&list);
    for (size_t i = 0; !err && i < weir_cli_positional_count(cli); i++)
        err = weir_runs_add(list, weir_cli_positional(cli, i));
    if (!err) err = runs_choose(cli, list, arena, &shown);
    if (!err && weir_cli_given(cli, "compare") && shown.count != 2)
        err = WEIR_ERR(WEIR_EUSAGE, "--compare is of two runs, and these folders have %zu; name a folder of each",
                       shown.count);
    if (!err && weir_cli_given(cli, "plot")) err = runs_plot(weir_cli_text(cli, "plot"), &shown);
    if (!err && mlflow.url) err = weir_mlflow_send(&mlflow, &shown);
    if (!err) err = runs_print(cli, list, &shown);
    weir_runs_close(list);
    weir_arena_close(arena);
    return err;
}

static const weir_option options[] = {
    {"compare", 'c', NULL, "of two folders: figures and the options that differ, side by side", NULL},
    {"sort", 0, "ORDER", "order of the table (default: name)", "name|ended|validation"},
    {"plot", 'p', "FILE", "write their validation by epoch there, as SVG (default: do not)", NULL},
    {"json", 0, NULL, "print JSON", NULL},
    {"mlflow", 0, "URL", "send them to this MLflow tracking server; a run that is there already is not sent again",
     NULL},
    {"experiment", 0, "NAME", "of --mlflow: its experiment, which is made if there is none (default: weir)", NULL},
    {"api-key-file", 0, "FILE", "of --mlflow: file with a bearer's token (default: none)", NULL},
    {0}};

const weir_command weir_command_runs = {
    .name = "runs",
    .summary = "trainings that have ended: their options and figures, side by side, and to MLflow",
    .positional = "FOLDER...",
    .positional_min = 1,
    .positional_max = RUNS_FOLDERS_MAX,
    .description = "Finds what `weir train --folder` and `weir sweep` have left, and models of a register, in the "
                   "folders and below them. Figures of the test say how good a run is; choose by validation.",
    .example = "weir runs runs --sort validation\n"
               "weir runs --compare runs/wide runs/narrow\n"
               "weir runs sweep --plot curves.svg\n"
               "weir runs runs sweep --mlflow http://127.0.0.1:5000 --experiment fraud",
    .options = options,
    .run = runs_run,
};
