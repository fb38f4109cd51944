/* SPDX-License-Identifier: Apache-2.0 */
/* backtest.c - `weir backtest`: its options, and what it says while it goes on. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/cli/cli.h>
#include <weir/trainer/backtest/backtest.h>
#include <weir/trainer/boost/boost.h>

#include "train_private.h"

#define BACKTEST_LEARNING 4u /* raised when the same options learn something else */
#define BACKTEST_SUMS_MAX ((size_t)64 << 20)
#define BACKTEST_LAST_OWN "amount" /* behind it stand the options that say how a model learns */

static const weir_option options[] = {
    {"out", 'o', "DIR", "write backtest.csv, .json and .svg, predictions.csv, and what was learnt of each day there",
     NULL},
    {"from", 0, "TIME",
     "when the first day begins (default: so that the last one is the last of which all labels had their time)", NULL},
    {"days", 0, "N", "how many days, of 24 hours each (default: 7)", NULL},
    {"every", 0, "K", "learn at the start of every K-th day, for K days (default: 1)", NULL},
    {"models", 'm', "NAME,NAME…",
     "network, trees over what stands around a target, blend of both, row: trees on the target's row alone (default: "
     "all)",
     NULL},
    {"budget", 0, "N", "alerts a day (default: 50)", NULL},
    {BACKTEST_LAST_OWN, 0, "FEATURE",
     "number of what the task asks about: say how much of it, over positives, alerts find (default: do not)", NULL},
#include "learning.def"
    {0}};

/* The text of every option that says how a model learns, and the snapshot by the sums of its files: what was learnt
 * with others, or of another, is learnt anew. */
static weir_err backtest_write_made_of(const weir_cli *cli, weir_buf *text) {
    const weir_option *option = options;
    char path[PATH_MAX], *sums = NULL;
    size_t length = 0;
    weir_err err = weir_path_join(path, sizeof path, weir_cli_positional(cli, 0), "MANIFEST");
    if (!err) err = weir_file_load(path, BACKTEST_SUMS_MAX, &sums, &length);
    if (err) return err;
    while (strcmp(option->name, BACKTEST_LAST_OWN) != 0)
        option++;
    weir_buf_printf(text, "%s, learning %u\n%016" PRIx64, WEIR_VERSION, BACKTEST_LEARNING, weir_xxh3(sums, length, 0));
    weir_free(sums);
    while ((++option)->name) {
        const char *value = weir_cli_text(cli, option->name);
        if (weir_cli_given(cli, option->name)) weir_buf_printf(text, "\n--%s %s", option->name, value ? value : "");
    }
    weir_buf_byte(text, 0);
    return weir_buf_err(text);
}

/* "network,trees" */
static weir_err backtest_read_models(const weir_cli *cli, weir_backtest_opts *o) {
    const char *rest = weir_cli_text(cli, "models");
    for (weir_backtest_model m = 0; !rest && m < WEIR_BACKTEST_MODELS; m++)
        o->models[m] = m == WEIR_BACKTEST_NETWORK || weir_boost_available();
    while (rest) {
        const size_t length = strcspn(rest, ",");
        weir_backtest_model m = 0;
        while (m < WEIR_BACKTEST_MODELS &&
               (strlen(weir_backtest_models[m]) != length || strncmp(weir_backtest_models[m], rest, length) != 0))
            m++;
        if (m == WEIR_BACKTEST_MODELS)
            return WEIR_ERR(WEIR_EUSAGE, "--models: '%.*s' is none of network, trees, blend and row", (int)length,
                            rest);
        o->models[m] = true;
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    return WEIR_OK;
}

static weir_err backtest_read_amount(const weir_cli *cli, weir_backtest_opts *o) {
    const weir_schema *schema = weir_snapshot_schema(o->train.snapshot);
    const weir_schema_task *task = weir_schema_task_at(schema, o->train.task);
    const char *name = weir_cli_text(cli, "amount");
    o->amount = WEIR_SCHEMA_NONE;
    if (!name || task->kind != WEIR_SCHEMA_CLASSIFY) return WEIR_OK; /* what is none is refused by the run */
    const weir_schema_label *label = weir_schema_label_at(schema, task->label);
    if (label->on_relation) return WEIR_OK;
    const weir_schema_vertex *vertex = weir_schema_vertex_at(schema, label->target);
    o->amount = weir_schema_feature_find(vertex->features, vertex->feature_count, name);
    if (o->amount != WEIR_SCHEMA_NONE && vertex->features[o->amount].kind == WEIR_SCHEMA_NUMBER) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "--amount: '%s' has no feature '%s' that is a number", vertex->name, name);
}

/* The days: those that are named, else the last ones of which all labels had their time. */
static weir_err backtest_read_days(const weir_cli *cli, weir_backtest_opts *o) {
    const weir_schema_task *task = weir_schema_task_at(weir_snapshot_schema(o->train.snapshot), o->train.task);
    const int64_t ripe_us = weir_snapshot_as_of_us(o->train.snapshot) - task->maturity_us;
    o->days = 7;
    o->every = 1;
    o->budget = 50;
    weir_err err = weir_cmd_train_u32(cli, "days", 1, WEIR_BACKTEST_DAYS_MAX, &o->days);
    if (!err) err = weir_cmd_train_u32(cli, "every", 1, WEIR_BACKTEST_DAYS_MAX, &o->every);
    if (!err) err = weir_cmd_train_u32(cli, "budget", 1, 1000000, &o->budget);
    o->from_us = (ripe_us / WEIR_BACKTEST_DAY_US - o->days) * WEIR_BACKTEST_DAY_US;
    return err ? err : weir_cli_time(cli, "from", &o->from_us);
}

static weir_err backtest_say_step(void *context, const weir_backtest_step *step) {
    weir_buf line = {0};
    char from[WEIR_TIME_TEXT_MAX];
    (void)context;
    weir_time_format(step->from_us, from);
    weir_buf_printf(&line, "%u/%u  %.16s  %" PRIu64 " targets", step->number, step->of_number, from, step->targets);
    if (!step->targets)
        weir_buf_text(&line, ", nothing to learn for\n");
    else
        weir_buf_printf(&line, ", learnt from %" PRIu64 "%s\n", step->learnt_from, step->kept ? ", was there" : "");
    weir_err err = weir_buf_err(&line);
    if (!err) err = weir_cli_output(line.bytes, line.length);
    weir_buf_free(&line);
    return err;
}

static weir_err backtest_prepare(const weir_cli *cli, weir_cmd_train *c, weir_backtest_opts *o, weir_buf *made_of) {
    c->opts = weir_train_defaults();
    o->folder = weir_cli_text(cli, "out");
    if (!o->folder) return WEIR_ERR(WEIR_EUSAGE, "--out is missing: the folder for what the backtest leaves");
    weir_err err = weir_cmd_learning_numbers(cli, &c->opts);
    if (!err) err = backtest_read_models(cli, o);
    if (!err && !o->models[WEIR_BACKTEST_NETWORK] && !o->models[WEIR_BACKTEST_BLEND])
        err = weir_cmd_train_refuse_network(cli, "--models has neither network nor blend");
    if (!err) err = backtest_write_made_of(cli, made_of);
    if (!err) err = weir_snapshot_open(weir_cli_positional(cli, 0), &(weir_snapshot_opts){.verify = true}, &c->whole);
    c->opts.snapshot = c->whole;
    if (!err) err = weir_cmd_learning_places(cli, c);
    if (!err) err = weir_cmd_learning_task(cli, &c->opts);
    o->train = c->opts;
    o->made_of = made_of->bytes;
    o->on_step = backtest_say_step;
    if (!err) err = backtest_read_amount(cli, o);
    return err ? err : backtest_read_days(cli, o);
}

static weir_err backtest_run(weir_cli *cli) {
    static weir_cmd_train c; /* large */
    weir_backtest_opts opts = {.folder = NULL};
    weir_buf text = {0}, made_of = {0};
    weir_alloc_return_large(); /* each training begins with memory of its own */
    weir_err err = weir_comm_start(NULL, NULL, &c.comm);
    if (err) return err;
    err = weir_comm_fail(c.comm, backtest_prepare(cli, &c, &opts, &made_of));
    if (!err) err = weir_backtest_run(c.comm, &opts, &text);
    if (!err) err = weir_cli_output(text.bytes, text.length);
    weir_buf_free(&text);
    weir_buf_free(&made_of);
    weir_snapshot_close(c.whole);
    weir_comm_stop(c.comm);
    return err;
}

const weir_command weir_command_backtest = {
    .name = "backtest",
    .summary = "how a task would have gone, day by day: learnt from what was known, judged on the day after",
    .positional = "SNAPSHOT",
    .positional_min = 1,
    .positional_max = 1,
    .description = "For each day, models learn from the targets whose labels were known at its start, and score the "
                   "day's as a server would have. Begun again, it goes on with the first day that was not finished.",
    .example = "weir backtest tonight --out backtest --days 14 --budget 50 --amount amount\n"
               "weir backtest tonight --out backtest --from 2026-02-01 --days 28 --every 7 --models trees,row",
    .options = options,
    .run = backtest_run,
};
