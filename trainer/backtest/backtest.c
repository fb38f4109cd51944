/* SPDX-License-Identifier: Apache-2.0 */
/* backtest.c - from the days that are wanted to what is left of them. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/trainer/boost/boost.h>

#include "backtest_private.h"

const char *const weir_backtest_models[WEIR_BACKTEST_MODELS] = {
    [WEIR_BACKTEST_NETWORK] = "network",
    [WEIR_BACKTEST_TREES] = "trees",
    [WEIR_BACKTEST_BLEND] = "blend",
    [WEIR_BACKTEST_ROW] = "row",
};

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static weir_err backtest_check_days(const weir_backtest *b) {
    const weir_backtest_opts *o = &b->opts;
    const int64_t as_of_us = weir_snapshot_as_of_us(b->snapshot);
    char as_of[WEIR_TIME_TEXT_MAX];
    if (o->days < 1 || o->days > WEIR_BACKTEST_DAYS_MAX || o->every < 1 || o->budget < 1)
        return WEIR_ERR(WEIR_EUSAGE,
                        "%u days, a model every %u of them and %u alerts a day; days are 1 to %u, and the "
                        "others at least 1",
                        o->days, o->every, o->budget, WEIR_BACKTEST_DAYS_MAX);
    /* the last day begins before the snapshot ends */
    if (o->from_us < as_of_us && (as_of_us - 1 - o->from_us) / WEIR_BACKTEST_DAY_US >= o->days - 1) return WEIR_OK;
    weir_time_format(as_of_us, as_of);
    return WEIR_ERR(WEIR_EUSAGE,
                    "the snapshot ends at %s, before the last of these %u days; take earlier ones, or "
                    "fewer",
                    as_of, o->days);
}

static weir_err backtest_check_models(const weir_backtest *b) {
    const bool *models = b->opts.models;
    const bool trees = models[WEIR_BACKTEST_TREES] || models[WEIR_BACKTEST_BLEND] || models[WEIR_BACKTEST_ROW];
    if (!trees && !models[WEIR_BACKTEST_NETWORK])
        return WEIR_ERR(WEIR_EUSAGE, "no model is wanted; take one of network, trees, blend and row");
    if (!trees || weir_boost_available()) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "XGBoost was not there when this program was built, or is not there now; install "
                    "libxgboost-dev, and build again if that was not enough, or take the network "
                    "alone");
}

static weir_err backtest_check(weir_backtest *b) {
    const weir_schema *schema = weir_snapshot_schema(b->snapshot);
    const weir_schema_task *task = weir_schema_task_at(schema, b->opts.train.task);
    if (weir_comm_ranks(b->comm) > 1)
        return WEIR_ERR(WEIR_EUSAGE, "a backtest is of one process; start it without mpirun");
    if (task->kind != WEIR_SCHEMA_CLASSIFY)
        return WEIR_ERR(WEIR_ECONFIG, "task %s recommends; only yes-or-no questions can be backtested", task->name);
    const weir_schema_label *label = weir_schema_label_at(schema, task->label);
    if (!task->positive_count)
        return WEIR_ERR(WEIR_ECONFIG,
                        "task %s tells %u classes apart, and only yes-or-no questions can be backtested; name in the "
                        "schema by 'positive' which of them is a yes",
                        task->name, label->values.count);
    b->type = label->target;
    weir_err err = backtest_check_days(b);
    return err ? err : backtest_check_models(b);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static weir_err backtest_step(weir_backtest *b, uint32_t number) {
    const weir_backtest_span *span = &b->spans[number];
    const weir_backtest_day *first = &b->days[span->first], *last = &b->days[span->end - 1];
    weir_backtest_step step = {.from_us = first->from_us,
                               .to_us = last->from_us + WEIR_BACKTEST_DAY_US,
                               .targets = last->end - first->begin,
                               .learnt_from = span->learnt,
                               .number = number + 1,
                               .of_number = b->span_count};
    char name[WEIR_BACKTEST_NAME_MAX];
    weir_backtest_name(first->from_us, name);
    weir_err err = weir_err_prefix(weir_backtest_span_score(b, span, &step.kept), "the models of %s", name);
    if (!err && b->opts.on_step) err = b->opts.on_step(b->opts.context, &step);
    return err;
}

static weir_err backtest_report(const weir_backtest *b, weir_buf *text) {
    weir_backtest_results results;
    weir_err err = weir_backtest_results_make(b, &results);
    if (!err) err = weir_backtest_write_predictions(b);
    if (!err) err = weir_backtest_write_days(b, &results);
    if (!err) err = weir_backtest_write_picture(b, &results);
    if (!err) err = weir_backtest_write_json(b, &results);
    if (!err) weir_backtest_tell(b, &results, text);
    weir_backtest_results_free(&results);
    return err ? err : weir_buf_err(text);
}

static void backtest_free(weir_backtest *b) {
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
        weir_free(b->scores[m]);
    weir_free(b->days);
    weir_free(b->spans);
    weir_free(b->targets);
    weir_free(b->labels);
    weir_free(b->day_of);
    weir_free(b->amounts);
    weir_free(b);
}

weir_err weir_backtest_run(weir_comm *comm, const weir_backtest_opts *opts, weir_buf *text) {
    char days[WEIR_BACKTEST_PATH_MAX];
    weir_backtest *b = weir_calloc(1, sizeof *b);
    if (!b) return WEIR_NOMEM("for a backtest");
    b->opts = *opts;
    b->comm = comm;
    b->snapshot = opts->train.snapshot;
    weir_err err = backtest_check(b);
    if (!err) err = weir_path_join(days, sizeof days, opts->folder, "days");
    if (!err) err = weir_backtest_plan(b);
    if (!err) err = weir_folder_create(days);
    for (uint32_t span = 0; !err && span < b->span_count; span++)
        err = backtest_step(b, span);
    if (!err) err = backtest_report(b, text);
    backtest_free(b);
    return err;
}
