/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - `weir schedule`: when a cron expression of the configuration comes next. */
#include <weir/store/base/clock.h>
#include <weir/store/cli/cli.h>
#include <weir/trainer/schedule/schedule.h>

extern const weir_command weir_command_schedule;

#define TIMES_MAX 1000u

static weir_err read_expression(const weir_cli *cli, const char **textp, weir_cron *cron) {
    *textp = weir_cli_positional(cli, 0);
    if (!*textp) *textp = weir_config_text(weir_cli_config(cli), WEIR_CONFIG_NIGHTLY_CRON);
    if (!**textp) return WEIR_ERR(WEIR_EUSAGE, "name an expression, or set nightly.cron");
    return weir_cron_parse(*textp, cron);
}

static weir_err write_times(const weir_cron *cron, int64_t at_us, uint64_t count, weir_buf *out) {
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < count; i++) {
        char time[WEIR_TIME_TEXT_MAX];
        err = weir_cron_next(cron, at_us, &at_us);
        if (err) break;
        weir_time_format(at_us, time);
        weir_buf_printf(out, "%.16sZ\n", time);
    }
    return err ? err : weir_buf_err(out);
}

static weir_err run_next(weir_cli *cli) {
    const char *text;
    weir_cron cron;
    weir_buf out = {0};
    uint64_t count = 5;
    int64_t after_us = weir_clock_wall_us(weir_clock_system());
    weir_err err = weir_cli_u64(cli, "count", 1, TIMES_MAX, &count);
    if (!err) err = weir_cli_time(cli, "after", &after_us);
    if (!err) err = read_expression(cli, &text, &cron);
    if (!err) err = write_times(&cron, after_us, count, &out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err run_check(weir_cli *cli) {
    const char *text;
    weir_cron cron;
    weir_buf out = {0};
    int64_t next_us;
    char time[WEIR_TIME_TEXT_MAX];
    weir_err err = read_expression(cli, &text, &cron);
    if (!err) err = weir_cron_next(&cron, weir_clock_wall_us(weir_clock_system()), &next_us);
    if (err) return err;
    weir_time_format(next_us, time);
    weir_buf_printf(&out, "%s is valid; next at %.16sZ\n", text, time);
    err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static const weir_option next_options[] = {{"count", 'n', "N", "how many times (default: 5)", NULL},
                                           {"after", 'a', "TIME", "from this moment on, RFC 3339 (default: now)", NULL},
                                           {0}};

static const weir_command command_next = {
    .name = "next",
    .summary = "print the next times of a cron expression, in UTC",
    .positional = "[EXPRESSION]",
    .positional_max = 1,
    .description = "Without EXPRESSION: the setting nightly.cron.",
    .example = "weir schedule next '15 2 * * *'\nweir schedule next '0 8-18/2 * * mon-fri' --count 20",
    .options = next_options,
    .run = run_next,
};
static const weir_command command_check = {
    .name = "check",
    .summary = "say whether a cron expression can be read, and when it comes next",
    .positional = "[EXPRESSION]",
    .positional_max = 1,
    .description = "Without EXPRESSION: the setting nightly.cron.",
    .example = "weir schedule check '15 2 * * *'",
    .run = run_check,
};
static const weir_command *const commands[] = {&command_next, &command_check, NULL};

const weir_command weir_command_schedule = {
    .name = "schedule",
    .summary = "when the nights begin that `weir serve` starts by itself",
    .description = "The setting nightly.cron has five fields: minute, hour, day, month, weekday, in UTC. While it is "
                   "empty, `weir serve` starts none.",
    .example = "weir schedule next '15 2 * * *'",
    .subcommands = commands,
};
