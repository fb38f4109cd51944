/* SPDX-License-Identifier: Apache-2.0 */
/* setting.c - one row of the table: how its value is read, bounded and described. */
#include "config_private.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
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

/* --- text --------------------------------------------------------------------------------------------------- */

bool weir_text_is_printable(const char *text) {
    size_t length = strlen(text);
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t point;
        bytes = weir_utf8_decode(text + at, length - at, &point);
        if (bytes == 0) return false;
        bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
        bool barred = point == 0xfeff || point == 0xfffe || point == 0xffff || point == 0x2028 || point == 0x2029;
        if (control || barred) return false;
    }
    return true;
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static bool read_u64(const char *text, uint64_t *valuep) {
    if (!isdigit((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    *valuep = strtoull(text, &end, 10);
    return !*end && errno == 0;
}

static bool read_f64(const char *text, double *valuep) {
    if (!*text || text[strspn(text, "0123456789+-.eE")]) return false;
    char *end;
    *valuep = strtod(text, &end);
    return !*end && isfinite(*valuep);
}

static bool read_bool(const char *text, bool *valuep) {
    *valuep = !strcmp(text, "true");
    return *valuep || !strcmp(text, "false");
}

/* An empty text is meant only where the table's own default is empty. */
static bool read_text(const weir_setting *setting, const char *text) {
    return (*text || !*setting->initial) && strlen(text) <= WEIR_SETTING_TEXT_MAX && weir_text_is_printable(text);
}

static bool read_choice(const weir_setting *setting, const char *text) {
    weir_choices choices;
    weir_choices_split(setting->max, &choices);
    return weir_choices_have(&choices, text);
}

static bool read_kind(const weir_setting *setting, const char *text, weir_config_value *valuep) {
    switch (setting->kind) {
    case WEIR_SETTING_TEXT:
        return read_text(setting, text);
    case WEIR_SETTING_U64:
        return read_u64(text, &valuep->as.u64);
    case WEIR_SETTING_F64:
        return read_f64(text, &valuep->as.f64);
    case WEIR_SETTING_BOOL:
        return read_bool(text, &valuep->as.boolean);
    case WEIR_SETTING_DURATION:
        return !weir_duration_parse(text, &valuep->as.us);
    case WEIR_SETTING_SIZE:
        return !weir_size_parse(text, &valuep->as.u64);
    case WEIR_SETTING_CHOICE:
        return read_choice(setting, text);
    }
    return false;
}

static bool at_most(weir_setting_kind kind, const weir_config_value *low, const weir_config_value *high) {
    if (kind == WEIR_SETTING_F64) return low->as.f64 <= high->as.f64;
    if (kind == WEIR_SETTING_DURATION) return low->as.us <= high->as.us;
    return low->as.u64 <= high->as.u64;
}

static bool in_range(const weir_setting *setting, const weir_config_value *value) {
    if (setting->kind == WEIR_SETTING_TEXT || setting->kind == WEIR_SETTING_CHOICE ||
        setting->kind == WEIR_SETTING_BOOL)
        return true;
    weir_config_value bound;
    if (*setting->min) {
        WEIR_ASSERT(read_kind(setting, setting->min, &bound));
        if (!at_most(setting->kind, &bound, value)) return false;
    }
    if (*setting->max) {
        WEIR_ASSERT(read_kind(setting, setting->max, &bound));
        if (!at_most(setting->kind, value, &bound)) return false;
    }
    return true;
}

/* --- describing --------------------------------------------------------------------------------------------- */

static void describe_choices(const weir_setting *setting, char buffer[WEIR_SETTING_ALLOWED_MAX]) {
    weir_choices choices;
    weir_choices_split(setting->max, &choices);
    weir_choices_sentence(&choices, buffer);
}

static void describe_range(const weir_setting *setting, const char *noun, char buffer[WEIR_SETTING_ALLOWED_MAX]) {
    bool counted = *setting->unit && (setting->kind == WEIR_SETTING_U64 || setting->kind == WEIR_SETTING_F64);
    snprintf(buffer, WEIR_SETTING_ALLOWED_MAX, "%s%s%s%s%s%s%s", noun, *setting->min ? " from " : "", setting->min,
             *setting->max ? " to " : "", setting->max, counted ? " " : "", counted ? setting->unit : "");
}

const char *weir_setting_allowed(const weir_setting *setting, char buffer[WEIR_SETTING_ALLOWED_MAX]) {
    switch (setting->kind) {
    case WEIR_SETTING_TEXT:
        snprintf(buffer, WEIR_SETTING_ALLOWED_MAX, "one line of text%s", *setting->initial ? ", not empty" : "");
        break;
    case WEIR_SETTING_BOOL:
        snprintf(buffer, WEIR_SETTING_ALLOWED_MAX, "true or false");
        break;
    case WEIR_SETTING_CHOICE:
        describe_choices(setting, buffer);
        break;
    case WEIR_SETTING_U64:
        describe_range(setting, "a whole number", buffer);
        break;
    case WEIR_SETTING_F64:
        describe_range(setting, "a number", buffer);
        break;
    case WEIR_SETTING_DURATION:
        describe_range(setting, "a duration", buffer);
        break;
    case WEIR_SETTING_SIZE:
        describe_range(setting, "a size", buffer);
        break;
    }
    return buffer;
}

weir_err weir_setting_read(const weir_setting *setting, const char *text, weir_config_value *valuep) {
    if (read_kind(setting, text, valuep) && in_range(setting, valuep)) return WEIR_OK;
    char allowed[WEIR_SETTING_ALLOWED_MAX], nearest[128] = "";
    weir_setting_allowed(setting, allowed);
    if (setting->kind == WEIR_SETTING_CHOICE) {
        weir_choices choices;
        weir_choices_split(setting->max, &choices);
        weir_choices_nearest(&choices, text, nearest, sizeof nearest);
    }
    return WEIR_ERR(WEIR_ECONFIG, "%s is '%.60s'; it must be %s%s", setting->key, text, allowed, nearest);
}
