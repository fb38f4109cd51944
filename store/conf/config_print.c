/* SPDX-License-Identifier: Apache-2.0 */
/* config_print.c - the settings as a YAML file that can be loaded again, and the table as Markdown. */
#include "config_private.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/utf8.h>

#define COMMENT_COLUMN 40

static void config_print_text(weir_buf *out, const char *text) {
    weir_buf_text(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') weir_buf_append(out, "\\", 1);
        weir_buf_append(out, text, 1);
    }
    weir_buf_text(out, "\"");
}

/* The lines "log:" (and below it "  file:") that key has and the key before it had not; returns key's depth. */
static unsigned config_print_sections(weir_buf *out, const char *before, const char *key) {
    unsigned depth = 0;
    bool shared = true;
    for (const char *part = key, *dot; (dot = strchr(part, '.')); part = dot + 1, depth++) {
        size_t through = (size_t)(dot - key) + 1;
        shared = shared && !strncmp(before, key, through);
        if (!shared) weir_buf_printf(out, "%*s%.*s:\n", (int)depth * 2, "", (int)(dot - part), part);
    }
    return depth;
}

static void config_print_setting(weir_buf *out, const weir_setting *setting, const weir_config_value *value,
                                 unsigned depth) {
    size_t start = out->length;
    weir_buf_printf(out, "%*s%s: ", (int)depth * 2, "", depth ? strrchr(setting->key, '.') + 1 : setting->key);
    if (setting->kind == WEIR_SETTING_TEXT)
        config_print_text(out, value->text);
    else
        weir_buf_text(out, value->text);
    size_t width = out->length - start;
    weir_buf_printf(out, "%*s # ", width < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - width) : 0, "");
    bool printable = weir_utf8_printable(value->source); /* a file's name may hold anything, a comment may not */
    for (const char *c = value->source; *c; c++)
        weir_buf_append(out, printable || (*c >= ' ' && *c < 0x7f) ? c : "?", 1);
    weir_buf_text(out, "\n");
}

void weir_config_print(const weir_config *config, weir_buf *out) {
    const char *before = "";
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        unsigned depth = config_print_sections(out, before, weir_settings[i].key);
        config_print_setting(out, &weir_settings[i], &config->values[i], depth);
        before = weir_settings[i].key;
    }
}

/* --- Markdown ----------------------------------------------------------------------------------------------- */

static void config_markdown_cell(weir_buf *out, const char *text) {
    weir_buf_text(out, " ");
    for (; *text; text++) {
        if (*text == '|') weir_buf_append(out, "\\", 1);
        weir_buf_append(out, text, 1);
    }
    weir_buf_text(out, " |");
}

void weir_config_markdown(weir_buf *out) {
    weir_buf_text(
        out,
        "# Settings\n\n"
        "Printed by `weir reference config` from `store/conf/include/weir/store/conf/config.def`;\n"
        "`tests/lint/generated --write` brings this page up to date.\n\n"
        "A setting comes from, each overriding the one before: its default; the YAML file named by `--config FILE` or\n"
        "`WEIR_CONFIG`; the environment, where `log.level` is spelt `WEIR_LOG_LEVEL`; `--set log.level=debug`. A name\n"
        "that is not a setting is an error in all three. `weir --print-config` shows the settings in force and where "
        "each\n"
        "comes from, as a file that can be loaded; `weir --check-config` says whether they are right.\n\n"
        "Sizes are bytes or have a unit: `KiB`, `MiB`, `GiB`, `TiB`, `PiB`. Durations have a unit: `us`, `ms`, `s`,\n"
        "`m`, `h`, `d`. A setting that is live may change in a running process; the others are read at its start.\n\n"
        "```yaml\n"
        "log:\n"
        "  level: debug\n"
        "eventlog:\n"
        "  path: /var/lib/weir/eventlog\n"
        "```\n\n"
        "| setting | default | allowed | live | meaning |\n"
        "|---|---|---|---|---|\n");
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        const weir_setting *setting = &weir_settings[i];
        char allowed[WEIR_SETTING_ALLOWED_MAX];
        const char *tick = *setting->initial ? "`" : "";
        weir_buf_printf(out, "| `%s` | %s%s%s |", setting->key, *setting->initial ? "`" : "empty", setting->initial,
                        tick);
        config_markdown_cell(out, weir_setting_allowed(setting, allowed));
        config_markdown_cell(out, setting->live);
        config_markdown_cell(out, setting->meaning);
        weir_buf_text(out, "\n");
    }
}
