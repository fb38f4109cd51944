/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir.c - the one program: finds its subcommand in commands.def, in the manner of git.
 *
 * What the server must not link (the simulator, METIS, MPI, the benches) is a program of its own that is run in place
 * of this one. It is looked for beside this program and in ../libexec/weir, never in PATH: a version must not mix with
 * another.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/metrics.h>
#include <weir/store/cli/cli.h>

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const weir_command program;
extern const weir_command *const weir_simulate_words[]; /* ingest/simulate/cmd/words.h */

/* --- programs beside this one ------------------------------------------------------------------------------- */

typedef struct program_beside {
    const char *name, *file;
    const char *found; /* how to come by it where it is missing */
} program_beside;

static const program_beside programs[] = {
#define WEIR_COMMAND(symbol)
#define WEIR_PROGRAM(name, summary, file, words, found) {#name, file, found},
#include "commands.def"
#undef WEIR_COMMAND
#undef WEIR_PROGRAM
    {NULL, NULL, NULL},
};

/* This program's folder, without a slash at its end. */
static weir_err program_own_folder(char *folder, size_t size) {
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0) return WEIR_ERRNO(errno, "cannot find this program's own file by /proc/self/exe");
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    WEIR_ASSERT(slash);
    *slash = 0;
    return WEIR_OK;
}

static weir_err program_exec_beside(const program_beside *sought, char *const *arguments) {
    static const char *const places[] = {"", "/../libexec/weir"};
    char folder[4096], path[4096 + 128];
    weir_err err = program_own_folder(folder, sizeof folder);
    if (err) return err;
    signal(SIGPIPE, SIG_DFL);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, places[i], sought->file);
        execv(path, arguments);
        if (errno != ENOENT) return WEIR_ERRNO(errno, "cannot run %s", path);
    }
    return WEIR_ERR(WEIR_EUNAVAILABLE, "%s is neither in %s nor in %s%s; %s", sought->file, folder, folder, places[1],
                    sought->found);
}

/* The positional arguments from index on, then last, which may be NULL. */
static weir_err program_run_beside(const weir_cli *cli, const program_beside *sought, size_t index, const char *last) {
    char **arguments = weir_calloc(weir_cli_positional_count(cli) + 3, sizeof *arguments);
    if (!arguments) return WEIR_NOMEM("for the arguments; free some");
    size_t count = 0;
    /* execv does not write to them, and says so only in its manual */
    memcpy(&arguments[count++], &sought->file, sizeof sought->file);
    for (const char *word; (word = weir_cli_positional(cli, index)); index++)
        memcpy(&arguments[count++], &word, sizeof word);
    if (last) memcpy(&arguments[count++], &last, sizeof last);
    weir_err err = program_exec_beside(sought, arguments);
    weir_free(arguments);
    return err;
}

static const program_beside *program_beside_find(const char *name) {
    const program_beside *found = programs;
    while (found->name && strcmp(found->name, name))
        found++;
    WEIR_ASSERT(found->name); /* only rows of the table are raw commands */
    return found;
}

static weir_err program_run(weir_cli *cli) {
    return program_run_beside(cli, program_beside_find(strrchr(weir_cli_path(cli), ' ') + 1), 0, NULL);
}

/* --- help, completion, reference ---------------------------------------------------------------------------- */

static weir_err program_print(weir_buf *out) {
    weir_err err = weir_buf_err(out);
    if (!err) err = weir_cli_output(out->bytes, out->length);
    weir_buf_free(out);
    return err;
}

static weir_err program_run_help(weir_cli *cli) {
    weir_buf out = {0};
    if (weir_cli_given(cli, "all")) {
        weir_cli_list(&program, &out);
        return program_print(&out);
    }
    const weir_command *command = &program;
    char path[256] = "weir";
    const char *name;
    for (size_t i = 0; (name = weir_cli_positional(cli, i)); i++) {
        const weir_command *sub = weir_cli_subcommand(command, name);
        if (!sub) return weir_cli_unknown_command(command, path, name);
        if (sub->raw) return program_run_beside(cli, program_beside_find(name), i + 1, "--help");
        size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, " %s", name);
        command = sub;
    }
    weir_cli_help(command, path, &out);
    return program_print(&out);
}

static const weir_option help_options[] = {
    {"all", 'a', NULL, "list every command with its subcommands, one a line", NULL},
    {0},
};
static const weir_command help = {
    .name = "help",
    .summary = "show what a command does, takes and prints",
    .positional = "[COMMAND [SUBCOMMAND]]",
    .positional_max = 3,
    .description = "The same text as `weir COMMAND --help`.",
    .example = "weir help log cat\nweir help --all",
    .options = help_options,
    .run = program_run_help,
    .without_config = true,
};

static weir_err program_run_completion_bash(weir_cli *cli) {
    (void)cli;
    weir_buf out = {0};
    weir_cli_bash_completion(&program, &out);
    return program_print(&out);
}

static const weir_command completion_bash = {
    .name = "bash",
    .summary = "print a completion script for bash",
    .description = "Completes commands, options, their choices, the names of settings, and files elsewhere.",
    .example = "source <(weir completion bash)\nweir completion bash > /etc/bash_completion.d/weir",
    .run = program_run_completion_bash,
    .without_config = true,
};
static const weir_command *const shells[] = {&completion_bash, NULL};
static const weir_command completion = {
    .name = "completion",
    .summary = "print a script that completes weir's words in a shell",
    .example = "source <(weir completion bash)",
    .subcommands = shells,
};

static weir_err program_run_reference_config(weir_cli *cli) {
    (void)cli;
    weir_buf out = {0};
    weir_config_markdown(&out);
    return program_print(&out);
}

static weir_err program_run_reference_metrics(weir_cli *cli) {
    (void)cli;
    size_t length = weir_metrics_markdown(NULL, 0);
    char *text = weir_malloc(length + 1);
    if (!text) return WEIR_NOMEM("for %zu bytes of text; free some", length);
    weir_metrics_markdown(text, length + 1);
    weir_err err = weir_cli_output(text, length);
    weir_free(text);
    return err;
}

static const weir_command reference_config = {
    .name = "config",
    .summary = "print the table of settings as Markdown",
    .example = "weir reference config > ops/docs/CONFIG.md",
    .run = program_run_reference_config,
    .without_config = true,
};
static const weir_command reference_metrics = {
    .name = "metrics",
    .summary = "print the table of metrics as Markdown",
    .example = "weir reference metrics > ops/docs/METRICS.md",
    .run = program_run_reference_metrics,
    .without_config = true,
};
static const weir_command *const references[] = {&reference_config, &reference_metrics, NULL};
static const weir_command reference = {
    .name = "reference",
    .summary = "print the tables of settings and of metrics",
    .example = "weir reference config\nweir reference metrics",
    .subcommands = references,
};

/* --- the table ---------------------------------------------------------------------------------------------- */

#define WEIR_COMMAND(symbol) extern const weir_command weir_command_##symbol;
#define WEIR_PROGRAM(program_name, text, file, words, found)                           \
    static const weir_command program_##program_name = {.name = #program_name,         \
                                                        .summary = text,               \
                                                        .positional = "[ARGUMENT]...", \
                                                        .subcommands = words,          \
                                                        .run = program_run,            \
                                                        .raw = true,                   \
                                                        .without_config = true};
#include "commands.def"
#undef WEIR_COMMAND
#undef WEIR_PROGRAM

static const weir_command *const commands[] = {
#define WEIR_COMMAND(symbol)                                 &weir_command_##symbol,
#define WEIR_PROGRAM(program_name, text, file, words, found) &program_##program_name,
#include "commands.def"
#undef WEIR_COMMAND
#undef WEIR_PROGRAM
    &help,
    &completion,
    &reference,
    NULL,
};

static const weir_command program = {
    .name = "weir",
    .summary = "a stream of events as a living graph, and what it says about the next one",
    .description = "`weir help COMMAND` says more about one of them, with an example each.",
    .example = "weir simulate payments --count 1000 --to log:build/data\nweir log ls --path build/data",
    .subcommands = commands,
    .version = "compiled by " COMPILER ", " WEIR_BUILD "\nwith " WEIR_LIBRARIES,
};

int main(int argc, char **argv) {
    return weir_cli_main(&program, program.name, argc, argv);
}
