/* SPDX-License-Identifier: Apache-2.0 */
/* cli_private.h - one parsed command line, for the files of this module. */
#ifndef WEIR_CLI_CLI_PRIVATE_H
#define WEIR_CLI_CLI_PRIVATE_H

#include <weir/store/cli/cli.h>

#define WEIR_CLI_PATH_MAX  128u /* bytes of "weir log ls", its end included */
#define WEIR_CLI_DEPTH_MAX 4u   /* names in a path                          */

typedef struct weir_given {
    const weir_option *option;
    const char *value; /* NULL: a switch, or an optional value left out */
} weir_given;

struct weir_cli {
    const weir_command *root;
    const weir_command *command; /* the deepest that was named */
    char path[WEIR_CLI_PATH_MAX];
    weir_given *given; /* in the order of the line */
    size_t given_count;
    size_t given_capacity;
    const char **positional;
    size_t positional_count;
    size_t positional_capacity;
    weir_config *config;
};

/* What every command understands, ended by {0}; the first of a path has --version besides. */
extern const weir_option weir_cli_common[];
extern const weir_option weir_cli_version_option[];

/* Fills command, path, given and positional; stops at --help or --version.  WEIR_EUSAGE; WEIR_ENOMEM. */
weir_err weir_cli_parse(weir_cli *cli, int argc, char *const *argv);
/* The last value given for the option, or NULL. */
const weir_given *weir_cli_find(const weir_cli *cli, const char *option);

/* File descriptors 0 to 2 are open and a closed pipe is an error code, not a signal. */
void weir_cli_claim_streams(void);
/* True once a reader of stdout has gone. */
bool weir_cli_reader_gone(void);
/* Writes "path: sentence" to stderr. */
void weir_cli_complain(const char *path, weir_err err);

#endif /* WEIR_CLI_CLI_PRIVATE_H */
