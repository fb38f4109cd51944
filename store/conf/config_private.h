/* SPDX-License-Identifier: Apache-2.0 */
/* config_private.h - the table and the values, for the files of this module that load, print and read them. */
#ifndef WEIR_CONF_CONFIG_PRIVATE_H
#define WEIR_CONF_CONFIG_PRIVATE_H

#include <weir/store/conf/config.h>

#include <weir/store/base/arena.h>
#include <weir/store/conf/choice.h>

typedef enum weir_setting_kind {
    WEIR_SETTING_TEXT,
    WEIR_SETTING_U64,
    WEIR_SETTING_BOOL,
    WEIR_SETTING_DURATION,
    WEIR_SETTING_SIZE,
    WEIR_SETTING_CHOICE
} weir_setting_kind;

/* One row of config.def. */
typedef struct weir_setting {
    const char *key;
    weir_setting_kind kind;
    const char *initial, *min, *max, *unit, *live, *meaning;
} weir_setting;

typedef struct weir_config_value {
    const char *text;   /* as it was written      */
    const char *source; /* "default", "a.yaml:3"  */
    union {
        uint64_t u64; /* U64, SIZE              */
        int64_t us;   /* DURATION               */
        bool boolean;
    } as;
} weir_config_value;

struct weir_config {
    weir_arena *arena; /* texts and sources; what was overridden stays until the end */
    weir_config_value values[WEIR_CONFIG_COUNT];
};

#define WEIR_SETTING_TEXT_MAX    4096u /* bytes of one value                         */
#define WEIR_SETTING_ENV_MAX     128u  /* bytes of a variable's name, its end included */
#define WEIR_SETTING_ALLOWED_MAX WEIR_CHOICES_BYTES_MAX

extern const weir_setting weir_settings[WEIR_CONFIG_COUNT];

/* Reads text as the setting's kind and checks its range; fills only `as`.  WEIR_ECONFIG says what is allowed, without
 * the place. */
weir_err weir_setting_read(const weir_setting *setting, const char *text, weir_config_value *valuep);
/* "a whole number from 1 to 1024 partitions"; "debug, info, warn or error". */
const char *weir_setting_allowed(const weir_setting *setting, char buffer[WEIR_SETTING_ALLOWED_MAX]);
/* "WEIR_LOG_LEVEL". */
const char *weir_setting_variable(const weir_setting *setting, char buffer[WEIR_SETTING_ENV_MAX]);

#endif /* WEIR_CONF_CONFIG_PRIVATE_H */
