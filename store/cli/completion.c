/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion.c - a bash completion script from the tables of commands, options and settings.
 *
 * The script is three tables as case statements and one function that walks the words so far. bash hands
 * `--to=x` over as three words, `--to`, `=` and `x`: the walk puts them together again.
 */
#include "cli_private.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

typedef struct completion_script {
    weir_buf *out;
    const char *program;
} completion_script;

/* Calls visit for every command from the program down, with its path. */
static void completion_each_command(const completion_script *made, const weir_command *command, const char *path,
                                    unsigned depth,
                                    void (*visit)(const completion_script *made, const weir_command *command,
                                                  const char *path)) {
    WEIR_ASSERT(depth < WEIR_CLI_DEPTH_MAX);
    visit(made, command, path);
    for (const weir_command *const *sub = command->subcommands; sub && *sub; sub++) {
        char below[WEIR_CLI_PATH_MAX];
        int length = snprintf(below, sizeof below, "%s %s", path, (*sub)->name);
        WEIR_ASSERT(length > 0 && (size_t)length < sizeof below);
        completion_each_command(made, *sub, below, depth + 1, visit);
    }
}

/* --- table of words: a path's commands, its options, and those of them that need a value -------------------- */

static bool needs_value(const weir_option *option) {
    return option->value && option->value[0] != '[';
}

static void completion_write_options(weir_buf *out, const weir_option *options, bool valued) {
    for (; options && options->name; options++) {
        if (valued && !needs_value(options)) continue;
        weir_buf_printf(out, " --%s", options->name);
        if (valued && options->letter) weir_buf_printf(out, " -%c", options->letter);
    }
}

static void completion_write_all_options(weir_buf *out, const weir_command *command, const char *path, bool valued) {
    if (command->raw && !command->subcommands) return;
    completion_write_options(out, command->options, valued);
    completion_write_options(out, weir_cli_common, valued);
    if (!strchr(path, ' ')) completion_write_options(out, weir_cli_version_option, valued);
}

static void completion_write_words(const completion_script *made, const weir_command *command, const char *path) {
    weir_buf_printf(made->out, "    '%s')\n        commands='", path);
    for (const weir_command *const *sub = command->subcommands; sub && *sub; sub++)
        weir_buf_printf(made->out, " %s", (*sub)->name);
    weir_buf_text(made->out, " '\n        options='");
    completion_write_all_options(made->out, command, path, false);
    weir_buf_text(made->out, " '\n        valued='");
    completion_write_all_options(made->out, command, path, true);
    weir_buf_text(made->out, " '\n        ;;\n");
}

/* --- table of choices: what an option of a path, or a setting, may be --------------------------------------- */

static void completion_write_choice(weir_buf *out, const char *pattern, const char *bars) {
    weir_buf_printf(out, "    %s) choices='", pattern);
    for (; *bars; bars++)
        weir_buf_append(out, *bars == '|' ? " " : bars, 1);
    weir_buf_text(out, "' ;;\n");
}

static void completion_write_choices(const completion_script *made, const weir_command *command, const char *path) {
    for (const weir_option *option = command->options; option && option->name; option++) {
        if (!option->choices) continue;
        char pattern[WEIR_CLI_PATH_MAX + 96];
        int length = snprintf(pattern, sizeof pattern, "'%s --%s'", path, option->name);
        if (option->letter && length > 0 && (size_t)length < sizeof pattern)
            snprintf(pattern + length, sizeof pattern - (size_t)length, " | '%s -%c'", path, option->letter);
        completion_write_choice(made->out, pattern, option->choices);
    }
}

static void completion_write_settings(weir_buf *out) {
    static const struct {
        const char *key, *kind, *choices;
    } settings[] = {
#define WEIR_CONFIG(id, key, kind, initial, min, max, unit, live, meaning) {key, #kind, max},
#include <weir/store/conf/config.def>
#undef WEIR_CONFIG
    };
    weir_buf_text(out, "    *' --set') choices='");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        weir_buf_printf(out, "%s%s=", i ? " " : "", settings[i].key);
    weir_buf_text(out, "' ;;\n");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        bool boolean = !strcmp(settings[i].kind, "BOOL");
        if (!boolean && strcmp(settings[i].kind, "CHOICE") != 0) continue;
        char pattern[WEIR_CLI_PATH_MAX];
        snprintf(pattern, sizeof pattern, "*' --set %s'", settings[i].key);
        completion_write_choice(out, pattern, boolean ? "true|false" : settings[i].choices);
    }
}

/* --- the walk ----------------------------------------------------------------------------------------------- */

/* @ stands for the program's name. */
static const char completion_walk[] =
    "_@() {\n"
    "    local path=@ pending='' setting='' before='' helping='' commands options valued choices i word\n"
    "    local current=${COMP_WORDS[COMP_CWORD]}\n"
    "    COMPREPLY=()\n"
    "    _@_words \"$path\"\n"
    "    for ((i = 1; i < COMP_CWORD + 1; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $word == '=' ]]; then\n"
    "            if [[ -n $setting ]]; then pending=\"--set $setting\"; elif [[ $before == --* ]]; then "
    "pending=$before; fi\n"
    "            if ((i == COMP_CWORD)); then current=''; fi\n"
    "        elif ((i == COMP_CWORD)); then\n"
    "            break\n"
    "        elif [[ -n $pending ]]; then\n"
    "            setting=''\n"
    "            if [[ $pending == --set ]]; then setting=$word; fi\n"
    "            pending=''\n"
    "        elif [[ $word == -* ]]; then\n"
    "            setting=''\n"
    "            if [[ $valued == *\" $word \"* ]]; then pending=$word; fi\n"
    "        elif [[ $path == @ && $word == help ]]; then\n"
    "            helping=1\n"
    "        elif [[ $commands == *\" $word \"* ]]; then\n"
    "            path+=\" $word\" setting=''\n"
    "            _@_words \"$path\"\n"
    "        fi\n"
    "        before=$word\n"
    "    done\n"
    "    choices=''\n"
    "    if [[ -n $pending ]]; then\n"
    "        _@_choices \"$path $pending\"\n"
    "        if [[ $choices == *= ]]; then compopt -o nospace 2>/dev/null || true; fi\n"
    "    elif [[ $current == -* && -n $helping ]]; then\n"
    "        choices='--all --help'\n"
    "    elif [[ $current == -* ]]; then\n"
    "        choices=$options\n"
    "    else\n"
    "        choices=$commands\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$current\")\n"
    "}\n"
    "complete -o bashdefault -o default -F _@ @\n";

static void completion_write_named(const completion_script *made, const char *text) {
    for (; *text; text++) {
        if (*text == '@')
            weir_buf_text(made->out, made->program);
        else
            weir_buf_append(made->out, text, 1);
    }
}

void weir_cli_bash_completion(const weir_command *program, weir_buf *out) {
    completion_script made = {out, program->name};
    completion_write_named(&made,
                           "# shellcheck shell=bash\n"
                           "# Completion of @ for bash, printed by `@ completion bash`.\n"
                           "# For one shell: source <(@ completion bash)\n\n"
                           "# A command's path to its subcommands, its options, and those of them that need a value.\n"
                           "_@_words() {\n    commands='' options='' valued=''\n    case $1 in\n");
    completion_each_command(&made, program, program->name, 0, completion_write_words);
    completion_write_named(&made, "    esac\n}\n\n# A path and one of its options to what the option may be.\n"
                                  "_@_choices() {\n    case $1 in\n");
    completion_each_command(&made, program, program->name, 0, completion_write_choices);
    completion_write_choice(out, "*' --print-config'", "markdown");
    completion_write_settings(out);
    completion_write_named(&made, "    esac\n}\n\n");
    completion_write_named(&made, completion_walk);
}
