/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - values of the table, from file, environment and flags.
 *
 * Every load works on a draft of the values and swaps it in at the end, so that a wrong line changes nothing.
 */
#include "config_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/suggest.h>
#include <weir/store/base/thread.h>
#include <weir/store/conf/yaml.h>

/* A file, an environment and a thousand --set, each text at its longest. */
#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define PATH_BYTES_MAX  128u

typedef struct config_draft {
    weir_config *config;
    weir_config_value values[WEIR_CONFIG_COUNT];
    unsigned lines[WEIR_CONFIG_COUNT]; /* where this load has set it; 0: not yet */
} config_draft;

static void config_draft_begin(config_draft *plan, weir_config *config) {
    *plan = (config_draft){.config = config};
    memcpy(plan->values, config->values, sizeof plan->values);
}

static void config_draft_commit(const config_draft *plan) {
    memcpy(plan->config->values, plan->values, sizeof plan->values);
}

static weir_err config_draft_set(config_draft *plan, size_t index, const char *text, const char *source) {
    weir_config_value value;
    weir_err err = weir_setting_read(&weir_settings[index], text, &value);
    if (err) return err;
    value.text = weir_arena_strndup(plan->config->arena, text, strlen(text));
    value.source = weir_arena_strndup(plan->config->arena, source, strlen(source));
    if (!value.text || !value.source) return WEIR_NOMEM("for settings; free some");
    plan->values[index] = value;
    return WEIR_OK;
}

weir_err weir_config_open(weir_config **configp) {
    *configp = NULL;
    WEIR_ON_ROLE(MAIN);
    weir_arena *arena;
    weir_err err = weir_arena_open(ARENA_BYTES_MAX, &arena);
    if (err) return err;
    weir_config *config = weir_arena_calloc(arena, 1, sizeof *config);
    if (!config) {
        weir_arena_close(arena);
        return WEIR_NOMEM("for settings; free some");
    }
    config->arena = arena;
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        weir_config_value *value = &config->values[i];
        err = weir_setting_read(&weir_settings[i], weir_settings[i].initial, value);
        WEIR_ASSERT(!err); /* the table's own default */
        value->text = weir_settings[i].initial;
        value->source = "default";
    }
    *configp = config;
    return WEIR_OK;
}

void weir_config_free(weir_config *config) {
    if (config) weir_arena_close(config->arena);
}

/* --- names -------------------------------------------------------------------------------------------------- */

/* WEIR_CONFIG_COUNT if there is none. */
static size_t setting_find(const char *key) {
    size_t i = 0;
    while (i < WEIR_CONFIG_COUNT && strcmp(weir_settings[i].key, key))
        i++;
    return i;
}

static bool setting_is_section(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++)
        if (!strncmp(weir_settings[i].key, path, length) && weir_settings[i].key[length] == '.') return true;
    return false;
}

/* "there is no setting 'log.levl'; did you mean 'log.level'?" */
static weir_err setting_unknown(const char *key) {
    weir_suggest suggest = weir_suggest_for(key);
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++)
        weir_suggest_offer(&suggest, weir_settings[i].key);
    char nearest[128];
    weir_suggest_text(&suggest, nearest, sizeof nearest);
    return WEIR_ERR(WEIR_ECONFIG, "there is no setting '%.100s'%s", key,
                    *nearest ? nearest : "; --print-config shows all of them");
}

/* --- file --------------------------------------------------------------------------------------------------- */

static weir_err config_load_mapping(config_draft *plan, const char *name, const weir_yaml_node *mapping,
                                    const char *section);

static weir_err config_load_scalar(config_draft *plan, const char *name, const weir_yaml_node *key,
                                   const weir_yaml_node *value, const char *path) {
    size_t index = setting_find(path);
    if (index == WEIR_CONFIG_COUNT) {
        bool empty = !weir_yaml_quoted(value) && !*weir_yaml_text(value);
        if (setting_is_section(path))
            return empty ? WEIR_OK : WEIR_YAML_ERR(key, "'%s' is a section; put its settings below it", path);
        return weir_yaml_err_at(key, setting_unknown(path));
    }
    if (plan->lines[index])
        return WEIR_YAML_ERR(key, "%s is given twice, first on line %u; remove one of the two", path,
                             plan->lines[index]);
    plan->lines[index] = weir_yaml_line(key);
    char source[512];
    snprintf(source, sizeof source, "%.480s:%u", name, weir_yaml_line(value));
    return weir_yaml_err_at(value, config_draft_set(plan, index, weir_yaml_text(value), source));
}

static weir_err config_load_entry(config_draft *plan, const char *name, const weir_yaml_node *key,
                                  const weir_yaml_node *value, const char *section) {
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", weir_yaml_text(key));
    if (weir_yaml_node_kind(value) == WEIR_YAML_SCALAR) return config_load_scalar(plan, name, key, value, path);
    bool mapping = weir_yaml_node_kind(value) == WEIR_YAML_MAPPING;
    if (mapping && setting_is_section(path)) return config_load_mapping(plan, name, value, path);
    if (setting_is_section(path))
        return WEIR_YAML_ERR(value, "'%s' is a section, not a list; write 'key: value' below it", path);
    if (setting_find(path) == WEIR_CONFIG_COUNT) return weir_yaml_err_at(key, setting_unknown(path));
    return WEIR_YAML_ERR(value, "%s takes one value, not a %s", path, mapping ? "mapping" : "list");
}

/* As deep as the table's own sections, no deeper. */
static weir_err config_load_mapping(config_draft *plan, const char *name, const weir_yaml_node *mapping,
                                    const char *section) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < weir_yaml_count(mapping); i++)
        err = config_load_entry(plan, name, weir_yaml_entry_key_node(mapping, i), weir_yaml_entry_value(mapping, i),
                                section);
    return err;
}

static weir_err config_load_yaml(weir_config *config, const char *name, const weir_yaml *yaml) {
    const weir_yaml_node *root = weir_yaml_root(yaml);
    if (!root) return WEIR_OK;
    if (weir_yaml_node_kind(root) != WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(root, "settings must be sections, as in 'log: {level: info}'");
    config_draft plan;
    config_draft_begin(&plan, config);
    weir_err err = config_load_mapping(&plan, name, root, "");
    if (!err) config_draft_commit(&plan);
    return err;
}

weir_err weir_config_load_file(weir_config *config, const char *path) {
    weir_yaml *yaml;
    weir_err err = weir_yaml_load(path, &yaml);
    if (err) return err;
    err = config_load_yaml(config, path, yaml);
    weir_yaml_free(yaml);
    return err;
}

weir_err weir_config_load_text(weir_config *config, const char *name, const char *text, size_t length) {
    weir_yaml *yaml;
    weir_err err = weir_yaml_parse(name, text, length, &yaml);
    if (err) return err;
    err = config_load_yaml(config, name, yaml);
    weir_yaml_free(yaml);
    return err;
}

/* --- environment -------------------------------------------------------------------------------------------- */

/* Kubernetes puts WEIR_SERVICE_HOST, WEIR_PORT=tcp://…, WEIR_PORT_80_TCP_ADDR and the like into every pod beside a
 * Service whose name begins with "weir": not a spelling mistake, and nothing the user could remove. The name itself may
 * have a _PORT in it, as that of `weir-portal` has. */
static bool variable_is_service_link(const char *name, const char *value) {
    size_t length = strlen(name);
    if (length > 13 && !strcmp(name + length - 13, "_SERVICE_HOST")) return true;
    if (strstr(name, "_SERVICE_PORT")) return true;
    for (const char *port = strstr(name, "_PORT"); port; port = strstr(port + 5, "_PORT"))
        if (port[5] == '_' ? isdigit((unsigned char)port[6]) : !port[5] && strstr(value, "://")) return true;
    return false;
}

static weir_err config_load_variable(config_draft *plan, const char *name, const char *value) {
    /* Variables that begin with WEIR_ and are other programs' or not settings. */
    static const char *const others[] = {"WEIR_FAULT", "WEIR_KILL_AT", "WEIR_CONFIG"};
    static const char *const prefixes[] = {"WEIR_TEST_", "WEIR_PROGRAM", "WEIR_SOURCE_DIR", "WEIR_BENCH_"};
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        char variable[WEIR_SETTING_ENV_MAX], source[256 + 16];
        if (strcmp(weir_setting_variable(&weir_settings[i], variable), name)) continue;
        snprintf(source, sizeof source, "environment %s", name);
        weir_err err = config_draft_set(plan, i, value, source);
        return err ? weir_err_prefix(err, "environment: %s", name) : WEIR_OK;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(name, others[i])) return WEIR_OK;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return WEIR_OK;
    if (variable_is_service_link(name, value)) return WEIR_OK;
    char variables[WEIR_CONFIG_COUNT][WEIR_SETTING_ENV_MAX], nearest[128];
    weir_suggest suggest = weir_suggest_for(name);
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++)
        weir_suggest_offer(&suggest, weir_setting_variable(&weir_settings[i], variables[i]));
    weir_suggest_text(&suggest, nearest, sizeof nearest);
    return WEIR_ERR(WEIR_ECONFIG, "environment: there is no setting %.100s; %s%s", name,
                    *nearest ? "unset it" : "unset it, or give it a name that does not begin with WEIR_", nearest);
}

weir_err weir_config_load_environment(weir_config *config, char *const *environment) {
    config_draft plan;
    config_draft_begin(&plan, config);
    for (; *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        if (!equals || strncmp(*environment, "WEIR_", strlen("WEIR_")) != 0) continue;
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)(equals - *environment), *environment);
        weir_err err = config_load_variable(&plan, name, equals + 1);
        if (err) return err;
    }
    config_draft_commit(&plan);
    return WEIR_OK;
}

/* --- flags -------------------------------------------------------------------------------------------------- */

weir_err weir_config_set(weir_config *config, const char *assignment) {
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return WEIR_ERR(WEIR_EUSAGE, "--set %.100s: write it as KEY=VALUE, as in --set log.level=debug", assignment);
    char key[PATH_BYTES_MAX];
    snprintf(key, sizeof key, "%.*s", (int)(equals - assignment), assignment);
    size_t index = setting_find(key);
    if (index == WEIR_CONFIG_COUNT) return weir_err_prefix(setting_unknown(key), "--set %.100s", assignment);
    config_draft plan;
    config_draft_begin(&plan, config);
    weir_err err = config_draft_set(&plan, index, equals + 1, "--set");
    if (err) return weir_err_prefix(err, "--set");
    config_draft_commit(&plan);
    return WEIR_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static const weir_config_value *config_value(const weir_config *config, weir_config_key key) {
    WEIR_ASSERT(key < WEIR_CONFIG_COUNT);
    return &config->values[key];
}

const char *weir_config_text(const weir_config *config, weir_config_key key) {
    const weir_config_value *value = config_value(config, key);
    WEIR_ASSERT(weir_settings[key].kind == WEIR_SETTING_TEXT || weir_settings[key].kind == WEIR_SETTING_CHOICE);
    return value->text;
}

uint64_t weir_config_u64(const weir_config *config, weir_config_key key) {
    const weir_config_value *value = config_value(config, key);
    WEIR_ASSERT(weir_settings[key].kind == WEIR_SETTING_U64 || weir_settings[key].kind == WEIR_SETTING_SIZE);
    return value->as.u64;
}

int64_t weir_config_us(const weir_config *config, weir_config_key key) {
    const weir_config_value *value = config_value(config, key);
    WEIR_ASSERT(weir_settings[key].kind == WEIR_SETTING_DURATION);
    return value->as.us;
}

bool weir_config_bool(const weir_config *config, weir_config_key key) {
    const weir_config_value *value = config_value(config, key);
    WEIR_ASSERT(weir_settings[key].kind == WEIR_SETTING_BOOL);
    return value->as.boolean;
}
