/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - what a training was told, and when it was: FOLDER/run.json, which `weir runs` reads beside report.json. */
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "train_private.h"

extern const weir_command weir_command_train;

/* Options that say where something is or goes, and not how it is learnt. */
static bool run_is_place(const char *name) {
    static const char *const places[] = {"models", "folder", "predictions", "trace", "parts", "key", "resume"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strcmp(places[i], name) == 0) return true;
    return false;
}

/* As they were given; a switch is true. */
static void run_put_options(weir_json *json, const weir_cli *cli) {
    weir_json_key(json, "options");
    weir_json_object(json);
    for (const weir_option *o = weir_command_train.options; o->name; o++) {
        if (!weir_cli_given(cli, o->name) || run_is_place(o->name)) continue;
        if (o->value)
            weir_json_key_string(json, o->name, weir_cli_text(cli, o->name));
        else
            weir_json_key_bool(json, o->name, true);
    }
    weir_json_object_end(json);
}

static weir_err run_remove(const weir_cmd_train *c, const char *name) {
    char path[4096];
    weir_err err = weir_path_join(path, sizeof path, c->opts.folder, name);
    return err || !weir_path_exists(path) ? err : weir_file_remove(path);
}

weir_err weir_cmd_train_begin_run(const weir_cmd_train *c, bool going_on) {
    static const char *const names[] = {"report.json", "run.json", "epochs.jsonl"}; /* without the first it is no run */
    weir_err err = WEIR_OK;
    if (!c->opts.folder || going_on) return WEIR_OK;
    for (size_t i = 0; !err && i < sizeof names / sizeof names[0]; i++)
        err = run_remove(c, names[i]);
    return err;
}

weir_err weir_cmd_train_write_report(const weir_cmd_train *c, const weir_buf *report) {
    char path[4096];
    if (!c->opts.folder) return WEIR_OK;
    weir_err err = weir_folder_create(c->opts.folder);
    if (!err) err = run_remove(c, "run.json");
    if (!err) err = weir_path_join(path, sizeof path, c->opts.folder, "report.json");
    return err ? err : weir_file_replace(path, report->bytes, report->length);
}

weir_err weir_cmd_train_write_run(const weir_cmd_train *c, const char *model) {
    char path[4096];
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    if (!c->opts.folder) return WEIR_OK;
    weir_json_object(&json);
    weir_json_key_string(&json, "program", "weir " WEIR_VERSION);
    weir_json_key_time(&json, "begun", c->begun_us);
    weir_json_key_time(&json, "ended", weir_clock_wall_us(weir_clock_system()));
    weir_json_key_string(&json, c->part ? "parts" : "snapshot", c->part ? c->parts_folder : c->snapshot_folder);
    weir_json_key_time(&json, "as_of", weir_snapshot_as_of_us(c->opts.snapshot));
    weir_json_key_u64(&json, "ranks", weir_comm_ranks(c->comm));
    run_put_options(&json, c->cli);
    if (model && *model) weir_json_key_string(&json, "model", model);
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(&out, '\n');
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_path_join(path, sizeof path, c->opts.folder, "run.json");
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}
