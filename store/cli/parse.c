/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - words of a command line to options, positional arguments and the command they are for.
 *
 * Names are never abbreviated: an abbreviation that works today is a script that breaks when a longer name arrives.
 */
#include "cli_private.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/suggest.h>
#include <weir/store/conf/choice.h>

const weir_option weir_cli_common[] = {
    {"help", 'h', NULL, "show this help", NULL},
    {"config", 0, "FILE", "read settings from this YAML file; default: WEIR_CONFIG, if set", NULL},
    {"set", 0, "KEY=VALUE", "override one setting; may be repeated", NULL},
    {"check-config", 0, NULL, "say whether the settings are right, and do nothing else", NULL},
    {"print-config", 0, "[markdown]", "print the settings in force and where each comes from, and do nothing else",
     "markdown"},
    {0},
};

const weir_option weir_cli_version_option[] = {
    {"version", 0, NULL, "show the version and what it was built with", NULL},
    {0},
};

typedef struct cli_words {
    char *const *argv;
    int count, next;
} cli_words;

/* --- finding options ---------------------------------------------------------------------------------------- */

static const weir_option *option_find_in(const weir_option *options, const char *name, size_t length, char letter) {
    for (; options && options->name; options++)
        if (letter ? options->letter == letter
                   : strlen(options->name) == length && !strncmp(options->name, name, length))
            return options;
    return NULL;
}

static const weir_option *option_find(const weir_cli *cli, const char *name, size_t length, char letter) {
    const weir_option *option = option_find_in(cli->command->options, name, length, letter);
    if (!option) option = option_find_in(weir_cli_common, name, length, letter);
    if (!option && cli->command == cli->root) option = option_find_in(weir_cli_version_option, name, length, letter);
    return option;
}

static weir_err option_unknown(const weir_cli *cli, const char *name) {
    const weir_option *const tables[] = {cli->command->options, weir_cli_common,
                                         cli->command == cli->root ? weir_cli_version_option : NULL};
    weir_suggest suggest = weir_suggest_for(name);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const weir_option *option = tables[i]; option && option->name; option++)
            weir_suggest_offer(&suggest, option->name);
    if (suggest.best) return WEIR_ERR(WEIR_EUSAGE, "unknown option --%.100s; did you mean --%s?", name, suggest.best);
    return WEIR_ERR(WEIR_EUSAGE, "unknown option --%.100s", name);
}

/* --- taking words ------------------------------------------------------------------------------------------- */

static weir_err cli_record(weir_cli *cli, const weir_option *option, const char *value) {
    if (option->choices && value) {
        weir_choices choices;
        char allowed[WEIR_CHOICES_BYTES_MAX], nearest[128];
        weir_choices_split(option->choices, &choices);
        if (!weir_choices_have(&choices, value))
            return WEIR_ERR(WEIR_EUSAGE, "--%s is '%.60s'; it must be %s%s", option->name, value,
                            weir_choices_sentence(&choices, allowed),
                            weir_choices_nearest(&choices, value, nearest, sizeof nearest));
    }
    WEIR_ASSERT(cli->given_count < cli->given_capacity);
    cli->given[cli->given_count++] = (weir_given){option, value};
    return WEIR_OK;
}

static weir_err words_take_value(cli_words *line, const weir_option *option, const char **valuep) {
    *valuep = NULL;
    if (line->next >= line->count) return WEIR_ERR(WEIR_EUSAGE, "--%s needs a value, %s", option->name, option->value);
    const char *word = line->argv[line->next];
    if (!strncmp(word, "--", 2))
        return WEIR_ERR(WEIR_EUSAGE, "--%s needs a value, %s; one that begins with -- is given as --%s=%.60s",
                        option->name, option->value, option->name, word);
    line->next++;
    *valuep = word;
    return WEIR_OK;
}

static weir_err words_take_long(weir_cli *cli, cli_words *line, const char *name) {
    size_t length = strcspn(name, "=");
    const char *value = name[length] ? name + length + 1 : NULL;
    const weir_option *option = option_find(cli, name, length, 0);
    if (!option) {
        char wrong[128];
        snprintf(wrong, sizeof wrong, "%.*s", (int)(length < 100 ? length : 100), name);
        return option_unknown(cli, wrong);
    }
    if (value && !option->value) return WEIR_ERR(WEIR_EUSAGE, "--%s takes no value; write it alone", option->name);
    bool optional = option->value && option->value[0] == '[';
    weir_err err = option->value && !optional && !value ? words_take_value(line, option, &value) : WEIR_OK;
    return err ? err : cli_record(cli, option, value);
}

/* "-p DIR", "-pDIR", "-vq". */
static weir_err words_take_letters(weir_cli *cli, cli_words *line, const char *letters) {
    for (; *letters; letters++) {
        const weir_option *option = option_find(cli, NULL, 0, *letters);
        if (!option) return WEIR_ERR(WEIR_EUSAGE, "unknown option -%.1s", letters);
        const char *value = NULL;
        bool takes_one = option->value && option->value[0] != '['; /* else a word of its own may stand behind it */
        if (takes_one && letters[1]) return cli_record(cli, option, letters + 1);
        weir_err err = takes_one ? words_take_value(line, option, &value) : WEIR_OK;
        if (!err) err = cli_record(cli, option, value);
        if (err) return err;
    }
    return WEIR_OK;
}

const weir_command *weir_cli_subcommand(const weir_command *command, const char *name) {
    for (const weir_command *const *sub = command->subcommands; sub && *sub; sub++)
        if (!strcmp((*sub)->name, name)) return *sub;
    return NULL;
}

weir_err weir_cli_unknown_command(const weir_command *command, const char *path, const char *name) {
    weir_suggest suggest = weir_suggest_for(name);
    for (const weir_command *const *sub = command->subcommands; sub && *sub; sub++)
        weir_suggest_offer(&suggest, (*sub)->name);
    char nearest[128];
    weir_suggest_text(&suggest, nearest, sizeof nearest);
    return WEIR_ERR(WEIR_EUSAGE, "%s has no command '%.100s'%s", path, name, nearest);
}

static weir_err words_take_plain(weir_cli *cli, const char *word) {
    if (!cli->command->subcommands || cli->command->raw) {
        if (cli->positional_count >= cli->command->positional_max && !cli->command->raw)
            return WEIR_ERR(WEIR_EUSAGE, "'%.100s' is one argument too many; it takes %s", word,
                            cli->command->positional ? cli->command->positional : "none");
        WEIR_ASSERT(cli->positional_count < cli->positional_capacity);
        cli->positional[cli->positional_count++] = word;
        return WEIR_OK;
    }
    const weir_command *sub = weir_cli_subcommand(cli->command, word);
    if (!sub) return weir_cli_unknown_command(cli->command, cli->path, word);
    if (sub->raw && cli->given_count > 0)
        return WEIR_ERR(WEIR_EUSAGE, "options of '%s' must follow its name; move --%s there", sub->name,
                        cli->given[0].option->name);
    size_t used = strlen(cli->path);
    int length = snprintf(cli->path + used, sizeof cli->path - used, " %s", sub->name);
    WEIR_ASSERT(length > 0 && used + (size_t)length < sizeof cli->path);
    cli->command = sub;
    return WEIR_OK;
}

weir_err weir_cli_parse(weir_cli *cli, int argc, char *const *argv) {
    size_t letters = 1; /* an upper bound of what can be given: one per character behind a dash */
    for (int i = 1; i < argc; i++)
        letters += argv[i][0] == '-' ? strlen(argv[i]) : 1;
    cli->given_capacity = letters;
    cli->given = weir_calloc(letters, sizeof *cli->given);
    cli->positional_capacity = (size_t)argc + 1;
    cli->positional = weir_calloc(cli->positional_capacity, sizeof *cli->positional);
    if (!cli->given || !cli->positional) return WEIR_NOMEM("for the arguments; free some");
    cli_words line = {.argv = argv, .count = argc, .next = 1};
    bool options_ended = false;
    weir_err err = WEIR_OK;
    while (!err && line.next < argc && !weir_cli_find(cli, "help") && !weir_cli_find(cli, "version")) {
        const char *word = argv[line.next++];
        if (options_ended || cli->command->raw || word[0] != '-' || !word[1])
            err = words_take_plain(cli, word);
        else if (!strcmp(word, "--"))
            options_ended = true;
        else
            err = word[1] == '-' ? words_take_long(cli, &line, word + 2) : words_take_letters(cli, &line, word + 1);
    }
    return err;
}

const weir_given *weir_cli_find(const weir_cli *cli, const char *option) {
    for (size_t i = cli->given_count; i > 0; i--)
        if (!strcmp(cli->given[i - 1].option->name, option)) return &cli->given[i - 1];
    return NULL;
}
