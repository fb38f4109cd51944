/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - what a command's table says, laid out for a terminal of 80 columns or more. */
#include "cli_private.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/conf/choice.h>

#define TEXT_COLUMNS 96u /* where descriptions are wrapped                */
#define LEFT_COLUMNS 34u /* a longer option has its help on the next line */
#define LABEL_MAX    96u

/* --- text --------------------------------------------------------------------------------------------------- */

/* Wraps one line of a description; a line that begins with a blank is an example and stays as it is. */
static void help_wrap_line(weir_buf *out, const char *line, size_t length) {
    size_t column = 0;
    while (length > 0) {
        size_t word = 0;
        while (word < length && (line[word] != ' ' || line[0] == ' '))
            word++;
        if (column > 0) {
            bool full = column + 1 + word > TEXT_COLUMNS;
            weir_buf_text(out, full ? "\n" : " ");
            column = full ? 0 : column + 1;
        }
        weir_buf_append(out, line, word);
        column += word;
        line += word;
        length -= word;
        while (length > 0 && *line == ' ') {
            line++;
            length--;
        }
    }
    weir_buf_text(out, "\n");
}

/* --- options ------------------------------------------------------------------------------------------------ */

/* "-p, --path DIR"; returns its width. */
static size_t help_option_label(const weir_option *option, char label[LABEL_MAX]) {
    char letter[8] = "    ";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    const char *value = option->value ? option->value : "";
    bool optional = *value == '[';
    int length = snprintf(label, LABEL_MAX, "%s--%s%s%s", letter, option->name,
                          optional ? "[="
                          : *value ? " "
                                   : "",
                          value + optional);
    WEIR_ASSERT(length > 0 && (size_t)length < LABEL_MAX);
    return (size_t)length;
}

static size_t help_widest_option(const weir_option *options, size_t widest) {
    for (; options && options->name; options++) {
        char label[LABEL_MAX];
        size_t width = help_option_label(options, label);
        if (width > widest && width <= LEFT_COLUMNS) widest = width;
    }
    return widest;
}

static void help_write_options(weir_buf *out, const weir_option *options, size_t widest) {
    for (; options && options->name; options++) {
        char label[LABEL_MAX];
        size_t width = help_option_label(options, label);
        weir_buf_printf(out, "  %s", label);
        if (width > widest) weir_buf_text(out, "\n  ");
        weir_buf_printf(out, "%*s  %s", (int)(width > widest ? widest : widest - width), "", options->help);
        if (options->choices && options->value[0] != '[') {
            weir_choices choices;
            char sentence[WEIR_CHOICES_BYTES_MAX];
            weir_choices_split(options->choices, &choices);
            weir_buf_printf(out, "; %s", weir_choices_sentence(&choices, sentence));
        }
        weir_buf_text(out, "\n");
    }
}

/* --- commands ----------------------------------------------------------------------------------------------- */

void weir_cli_help(const weir_command *command, const char *path, weir_buf *out) {
    weir_buf_printf(out, "usage: %s", path);
    if (command->subcommands) weir_buf_text(out, " COMMAND");
    if (command->positional) weir_buf_printf(out, " %s", command->positional);
    weir_buf_printf(out, " [OPTIONS]\n\n%s: %s\n", path, command->summary);

    const char *text = command->description;
    if (text) weir_buf_text(out, "\n");
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        help_wrap_line(out, text, length);
        text += length + (text[length] == '\n');
    }

    if (command->subcommands) {
        size_t widest_name = 0;
        for (const weir_command *const *sub = command->subcommands; *sub; sub++)
            if (strlen((*sub)->name) > widest_name) widest_name = strlen((*sub)->name);
        weir_buf_text(out, "\ncommands:\n");
        for (const weir_command *const *sub = command->subcommands; *sub; sub++)
            weir_buf_printf(out, "  %-*s  %s\n", (int)widest_name, (*sub)->name, (*sub)->summary);
    }

    bool first = !strchr(path, ' ');
    size_t widest = help_widest_option(weir_cli_common, help_widest_option(command->options, 0));
    if (command->options) {
        weir_buf_text(out, "\noptions:\n");
        help_write_options(out, command->options, widest);
    }
    weir_buf_text(out, "\noptions of every command:\n");
    help_write_options(out, weir_cli_common, widest);
    if (first) help_write_options(out, weir_cli_version_option, widest);

    text = command->example;
    if (text) weir_buf_text(out, "\nexample:\n");
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        weir_buf_printf(out, "  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

/* --- list --------------------------------------------------------------------------------------------------- */

typedef struct help_list {
    weir_buf *out; /* NULL: only measure */
    size_t widest;
} help_list;

static void help_list_below(help_list *list, const weir_command *command, const char *path, unsigned depth) {
    WEIR_ASSERT(depth < WEIR_CLI_DEPTH_MAX);
    if (!command->subcommands) {
        if (strlen(path) > list->widest) list->widest = strlen(path);
        if (list->out) weir_buf_printf(list->out, "%-*s  %s\n", (int)list->widest, path, command->summary);
        return;
    }
    for (const weir_command *const *sub = command->subcommands; *sub; sub++) {
        char below[WEIR_CLI_PATH_MAX];
        int length = snprintf(below, sizeof below, "%s %s", path, (*sub)->name);
        WEIR_ASSERT(length > 0 && (size_t)length < sizeof below);
        help_list_below(list, *sub, below, depth + 1);
    }
}

void weir_cli_list(const weir_command *program, weir_buf *out) {
    help_list list = {0};
    help_list_below(&list, program, program->name, 0);
    list.out = out;
    help_list_below(&list, program, program->name, 0);
}
