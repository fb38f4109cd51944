/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - a command is a table: its help, its errors and its completion are made from it.
 *
 * Every command understands --help, --config FILE, --set KEY=VALUE, --check-config and --print-config[=markdown]
 * without listing them; they may stand before or after a subcommand's name. Only a raw one has none of them: what
 * follows its name is another program's. The first of a path understands --version, too, before a subcommand's name. An
 * option given twice counts as given last, but each --set counts, and each that a command asks for by weir_cli_text_at;
 * `--` ends the options. Results go to stdout, everything else to stderr. Exit status: 0, or that of err.h.
 *
 *     static weir_err run_ls(weir_cli *cli) { … weir_cli_text(cli, "path") … }
 *     static const weir_option ls_options[] = {{"path", 'p', "DIR", "folder of the log", NULL}, {0}};
 *     static const weir_command ls = {.name = "ls", .summary = "list topics and partitions", …, .run = run_ls};
 */
#ifndef WEIR_STORE_CLI_CLI_H
#define WEIR_STORE_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/conf/config.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_cli weir_cli;

/* A plain value; tables end with {0}. */
typedef struct weir_option {
    const char *name;    /* long name without dashes                          */
    char letter;         /* 0: none                                           */
    const char *value;   /* what it stands for ("N", "FILE"); "[X]": only as --name=X; NULL: a switch */
    const char *help;    /* one line, lower case, no full stop; says the default    */
    const char *choices; /* "a|b|c": checked, and offered by completion; or NULL    */
} weir_option;

typedef struct weir_command weir_command;
struct weir_command {
    const char *name;
    const char *summary;    /* one line, lower case, no full stop                     */
    const char *positional; /* "[FILE]", "TOPIC [PARTITION]"; NULL: takes none        */
    unsigned positional_min, positional_max;
    const char *description;                /* paragraphs; may be NULL                                */
    const char *example;                    /* real command lines, a line each; NULL: a raw one has none */
    const weir_option *options;             /* NULL: none; only where run is                           */
    const weir_command *const *subcommands; /* NULL-ended; then run is NULL, unless raw is set  */
    weir_err (*run)(weir_cli *cli);
    bool raw;            /* all that follows its name is positional, options too: for another program, whose
                            subcommands, if any are given, are only listed and completed */
    bool without_config; /* runs even if the settings are wrong: help and the like                  */
    const char *version; /* of the first of a path: what --version prints below name and version; or NULL */
};

/* Parses, handles the common options, sets up log and faults, runs, prints an error as one sentence
 * ("weir log ls: …"), returns the exit status. argv[0] is the command's own name. path is how the user
 * reached it ("weir log").  [main] */
int weir_cli_main(const weir_command *command, const char *path, int argc, char *const *argv);

/* What was given, NULL without a value; whether it was given.  [main] */
const char *weir_cli_text(const weir_cli *cli, const char *option);
bool weir_cli_given(const weir_cli *cli, const char *option);
/* Of an option that may be given several times, in the order of the command line; NULL: there are fewer.  [main] */
const char *weir_cli_text_at(const weir_cli *cli, const char *option, size_t index);
/* *valuep keeps what it has (your default) when the option was not given.  WEIR_EUSAGE names the option, the
 * value and what it must be. */
weir_err weir_cli_u64(const weir_cli *cli, const char *option, uint64_t min, uint64_t max, uint64_t *valuep);
weir_err weir_cli_f64(const weir_cli *cli, const char *option, double min, double max, double *valuep);
weir_err weir_cli_us(const weir_cli *cli, const char *option, int64_t *usp);        /* "15m"                     */
weir_err weir_cli_time(const weir_cli *cli, const char *option, int64_t *wall_usp); /* RFC 3339, or a date       */
size_t weir_cli_positional_count(const weir_cli *cli);
const char *weir_cli_positional(const weir_cli *cli, size_t index); /* NULL past the end */
const weir_config *weir_cli_config(const weir_cli *cli);            /* NULL: a command without_config */
/* How the user reached this command: "weir log ls". */
const char *weir_cli_path(const weir_cli *cli);
/* Writes all of it to stdout.  WEIR_EIO, WEIR_EFULL (a closed pipe: WEIR_ECLOSED, which weir_cli_main turns into a
 * silent status 0, as after `weir … | head`). */
weir_err weir_cli_output(const void *bytes, size_t length);
/* The same of a line: the sentence of an error that ends nothing, behind `before`.  WEIR_ENOMEM, as above. */
weir_err weir_cli_output_sentence(const char *before, weir_err err);

/* The help text of one command. */
void weir_cli_help(const weir_command *command, const char *path, weir_buf *out);
/* Every command that can be run below program: its path, two or more blanks, its summary, a line each. */
void weir_cli_list(const weir_command *program, weir_buf *out);
/* The subcommand of this name, or NULL.  [any] */
const weir_command *weir_cli_subcommand(const weir_command *command, const char *name);
/* The error for a name that is not a command: WEIR_EUSAGE with the nearest, if one is near.  [any] */
weir_err weir_cli_unknown_command(const weir_command *command, const char *path, const char *name);
/* A bash completion script for the program and every command below it. */
void weir_cli_bash_completion(const weir_command *program, weir_buf *out);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_CLI_CLI_H */
