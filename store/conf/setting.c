/* SPDX-License-Identifier: Apache-2.0 */
/* setting.c - one row of the table: how its value is read, bounded and described. */
#include "config_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/utf8.h>

const weir_setting weir_settings[WEIR_CONFIG_COUNT] = {
#define WEIR_CONFIG(id, key, kind, initial, min, max, unit, live, meaning) \
    {key, WEIR_SETTING_##kind, initial, min, max, unit, live, meaning},
#include <weir/store/conf/config.def>
#undef WEIR_CONFIG
};

const char *weir_setting_variable(const weir_setting *setting, char buffer[WEIR_SETTING_ENV_MAX]) {
    int length = snprintf(buffer, WEIR_SETTING_ENV_MAX, "WEIR_%s", setting->key);
    WEIR_ASSERT(length > 0 && (size_t)length < WEIR_SETTING_ENV_MAX);
    for (char *c = buffer; *c; c++)
        *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
    return buffer;
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static bool setting_read_kind(const weir_setting *setting, const char *text, weir_config_value *valuep) {
    weir_choices choices;
    char *end;
    switch (setting->kind) {
    case WEIR_SETTING_TEXT: /* may be empty only where the table's own default is */
        return (*text || !*setting->initial) && strlen(text) <= WEIR_SETTING_TEXT_MAX && weir_utf8_printable(text);
    case WEIR_SETTING_U64:
        errno = 0;
        valuep->as.u64 = strtoull(text, &end, 10);
        return isdigit((unsigned char)*text) && !*end && errno == 0;
    case WEIR_SETTING_BOOL:
        valuep->as.boolean = !strcmp(text, "true");
        return valuep->as.boolean || !strcmp(text, "false");
    case WEIR_SETTING_DURATION:
        return !weir_duration_parse(text, &valuep->as.us);
    case WEIR_SETTING_SIZE:
        return !weir_size_parse(text, &valuep->as.u64);
    case WEIR_SETTING_CHOICE:
        weir_choices_split(setting->max, &choices);
        return weir_choices_have(&choices, text);
    }
    return false;
}

static bool setting_at_most(weir_setting_kind kind, const weir_config_value *low, const weir_config_value *high) {
    if (kind == WEIR_SETTING_DURATION) return low->as.us <= high->as.us;
    return low->as.u64 <= high->as.u64;
}

static bool setting_in_range(const weir_setting *setting, const weir_config_value *value) {
    if (setting->kind == WEIR_SETTING_TEXT || setting->kind == WEIR_SETTING_CHOICE ||
        setting->kind == WEIR_SETTING_BOOL)
        return true;
    weir_config_value bound;
    if (*setting->min) {
        WEIR_ASSERT(setting_read_kind(setting, setting->min, &bound));
        if (!setting_at_most(setting->kind, &bound, value)) return false;
    }
    if (*setting->max) {
        WEIR_ASSERT(setting_read_kind(setting, setting->max, &bound));
        if (!setting_at_most(setting->kind, value, &bound)) return false;
    }
    return true;
}

/* --- describing --------------------------------------------------------------------------------------------- */

static void setting_describe_range(const weir_setting *setting, const char *noun,
                                   char buffer[WEIR_SETTING_ALLOWED_MAX]) {
    bool counted = *setting->unit && setting->kind == WEIR_SETTING_U64;
    int length =
        snprintf(buffer, WEIR_SETTING_ALLOWED_MAX, "%s%s%s%s%s%s%s", noun, *setting->min ? " from " : "", setting->min,
                 *setting->max ? " to " : "", setting->max, counted ? " " : "", counted ? setting->unit : "");
    WEIR_ASSERT(length > 0 && (size_t)length < WEIR_SETTING_ALLOWED_MAX);
}

const char *weir_setting_allowed(const weir_setting *setting, char buffer[WEIR_SETTING_ALLOWED_MAX]) {
    weir_choices choices;
    switch (setting->kind) {
    case WEIR_SETTING_TEXT:
        snprintf(buffer, WEIR_SETTING_ALLOWED_MAX, "one line of text%s", *setting->initial ? ", not empty" : "");
        break;
    case WEIR_SETTING_BOOL:
        snprintf(buffer, WEIR_SETTING_ALLOWED_MAX, "true or false");
        break;
    case WEIR_SETTING_CHOICE:
        weir_choices_split(setting->max, &choices);
        weir_choices_sentence(&choices, buffer);
        break;
    case WEIR_SETTING_U64:
        setting_describe_range(setting, "a whole number", buffer);
        break;
    case WEIR_SETTING_DURATION:
        setting_describe_range(setting, "a duration", buffer);
        break;
    case WEIR_SETTING_SIZE:
        setting_describe_range(setting, "a size", buffer);
        break;
    }
    return buffer;
}

weir_err weir_setting_read(const weir_setting *setting, const char *text, weir_config_value *valuep) {
    if (setting_read_kind(setting, text, valuep) && setting_in_range(setting, valuep)) return WEIR_OK;
    char allowed[WEIR_SETTING_ALLOWED_MAX], nearest[128] = "";
    weir_setting_allowed(setting, allowed);
    if (setting->kind == WEIR_SETTING_CHOICE) {
        weir_choices choices;
        weir_choices_split(setting->max, &choices);
        weir_choices_nearest(&choices, text, nearest, sizeof nearest);
    }
    return WEIR_ERR(WEIR_ECONFIG, "%s is '%.60s'; it must be %s%s", setting->key, text, allowed, nearest);
}

/* --- sizes -------------------------------------------------------------------------------------------------- */

/* "64MiB" to bytes. Powers of 1024 only, spelt so: 64MB would be two numbers to two readers. */
static weir_err setting_size_wrong(const char *text) {
    return WEIR_ERR(WEIR_EDATA, "'%.60s' is not a size; write bytes (4096) or KiB, MiB, GiB, TiB, PiB (64MiB)", text);
}

weir_err weir_size_parse(const char *text, uint64_t *bytesp) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
    *bytesp = 0;
    uint64_t number = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
            return setting_size_wrong(text);
    if (c == text) return setting_size_wrong(text);
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(c, units[i])) continue;
        if (number > UINT64_MAX >> (10 * i)) return setting_size_wrong(text);
        *bytesp = number << (10 * i);
        return WEIR_OK;
    }
    return setting_size_wrong(text);
}
