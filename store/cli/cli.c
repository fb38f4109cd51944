/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.c - from argv to an exit status.
 *
 *   parse ─► --help, --version ─► settings: file < environment < --set ─► --print-config, --check-config
 *                                      └─► log, faults ─► run ─► one sentence, exit status
 */
#include "cli_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/base/thread.h>

#define STATUS_USAGE 64

/* --- settings ----------------------------------------------------------------------------------------------- */

static weir_err cli_load_config(weir_cli *cli) {
    weir_err err = weir_config_open(&cli->config);
    const weir_given *file = weir_cli_find(cli, "config");
    const char *path = file ? file->value : getenv("WEIR_CONFIG");
    if (!err && path && *path) {
        err = weir_config_load_file(cli->config, path);
        if (weir_err_is(err, WEIR_ENOTFOUND))
            err = WEIR_ERR(WEIR_ECONFIG, "%s: there is no such file; %s names it", path,
                           file ? "--config" : "WEIR_CONFIG in the environment");
    }
    if (!err) err = weir_config_load_environment(cli->config, environ);
    for (size_t i = 0; !err && i < cli->given_count; i++)
        if (!strcmp(cli->given[i].option->name, "set")) err = weir_config_set(cli->config, cli->given[i].value);
    return err;
}

static void cli_set_up_log(const weir_config *config) {
    const char *level = weir_config_text(config, WEIR_CONFIG_LOG_LEVEL);
    const char *format = weir_config_text(config, WEIR_CONFIG_LOG_FORMAT);
    weir_log_opts opts = weir_log_defaults();
    opts.level = !strcmp(level, "debug")   ? WEIR_LOG_DEBUG
                 : !strcmp(level, "warn")  ? WEIR_LOG_WARN
                 : !strcmp(level, "error") ? WEIR_LOG_ERROR
                                           : WEIR_LOG_INFO;
    opts.format = !strcmp(format, "human") ? WEIR_LOG_HUMAN : !strcmp(format, "json") ? WEIR_LOG_JSON : WEIR_LOG_AUTO;
    opts.repeat_us = weir_config_us(config, WEIR_CONFIG_LOG_REPEAT);
    weir_log_setup(&opts);
}

/* --- running ------------------------------------------------------------------------------------------------ */

static weir_err cli_run_command(weir_cli *cli) {
    const weir_command *command = cli->command;
    if (cli->positional_count < command->positional_min)
        return WEIR_ERR(WEIR_EUSAGE, "an argument is missing; it takes %s", command->positional);
    weir_err err = WEIR_OK;
    if (!command->without_config) err = cli_load_config(cli);
    if (!err && cli->config) cli_set_up_log(cli->config);
    const char *fault = getenv("WEIR_FAULT"), *kill_at = getenv("WEIR_KILL_AT");
    if (!err && (fault || kill_at)) {
        err = weir_fault_from_environment();
        if (!err)
            WEIR_LOG(WARN, "fault.armed", "failures are armed by the environment; unset WEIR_FAULT and WEIR_KILL_AT",
                     WEIR_TEXT("fault", fault ? fault : ""), WEIR_TEXT("kill_at", kill_at ? kill_at : ""));
    }
    if (!err) err = command->run(cli);
    weir_log_flush();
    return err;
}

static int cli_status_of(const weir_cli *cli, weir_err err) {
    if (!err) return 0;
    if (weir_err_is(err, WEIR_ECLOSED) && weir_cli_reader_gone()) return 0;
    if (weir_log_enabled(WEIR_LOG_DEBUG)) weir_log_error("cli.failed", err);
    weir_cli_complain(cli->path, err);
    return weir_err_exit_status(err);
}

/* Frees the buffer. */
static weir_err cli_print(weir_buf *out) {
    weir_err err = weir_buf_err(out);
    if (!err && out->length > 0) err = weir_cli_output(out->bytes, out->length);
    weir_buf_free(out);
    return err;
}

static int cli_run(weir_cli *cli, int argc, char *const *argv) {
    weir_err err = weir_cli_parse(cli, argc, argv);
    if (err) return cli_status_of(cli, err);
    weir_buf out = {0};
    if (weir_cli_find(cli, "help")) {
        weir_cli_help(cli->command, cli->path, &out);
        return cli_status_of(cli, cli_print(&out));
    }
    if (weir_cli_find(cli, "version")) {
        weir_buf_printf(&out, "%s " WEIR_VERSION "\n", cli->path);
        if (cli->root->version) weir_buf_printf(&out, "%s\n", cli->root->version);
        return cli_status_of(cli, cli_print(&out));
    }
    const weir_given *how = weir_cli_find(cli, "print-config");
    if (how || weir_cli_find(cli, "check-config")) {
        err = cli_load_config(cli);
        if (err) return cli_status_of(cli, err);
        if (how && how->value && !strcmp(how->value, "markdown")) {
            weir_config_markdown(&out);
        } else if (how) {
            weir_config_print(cli->config, &out);
        } else {
            weir_buf_text(&out, "ok\n");
        }
        return cli_status_of(cli, cli_print(&out));
    }
    if (cli->command->subcommands &&
        !cli->command->raw) { /* a group alone: its help on stderr, because nothing was done */
        weir_cli_help(cli->command, cli->path, &out);
        if (!weir_buf_err(&out)) dprintf(STDERR_FILENO, "%s", out.bytes);
        weir_buf_free(&out);
        return STATUS_USAGE;
    }
    return cli_status_of(cli, cli_run_command(cli));
}

int weir_cli_main(const weir_command *command, const char *path, int argc, char *const *argv) {
    WEIR_ON_ROLE(MAIN);
    weir_cli_claim_streams();
    weir_cli cli = {.root = command, .command = command};
    int length = snprintf(cli.path, sizeof cli.path, "%s", path);
    WEIR_ASSERT(length > 0 && (size_t)length < sizeof cli.path);
    int status = cli_run(&cli, argc, argv);
    weir_config_free(cli.config);
    weir_free(cli.given);
    weir_free(cli.positional);
    return status;
}
