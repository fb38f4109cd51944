/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - one table of settings; file < environment < flags; nothing unknown is ignored.
 *
 * The file is YAML with sections (log: {level: info}). WEIR_LOG_LEVEL in the environment overrides it, and
 * --set log.level=debug overrides both. An unknown key is an error with its line and the nearest name, if one is
 * near; so is a WEIR_… variable that belongs to no key. Not settings: WEIR_FAULT, WEIR_KILL_AT, WEIR_CONFIG, names
 * beginning with WEIR_TEST_, WEIR_PROGRAM, WEIR_SOURCE_DIR or WEIR_BENCH_, and what Kubernetes puts into a pod's
 * environment for a Service whose name begins with weir (WEIR_SERVICE_HOST, WEIR_PORT_80_TCP, …). A load that fails
 * changes nothing.
 *
 * THREADS: built by [main], then read-only and [any].
 */
#ifndef WEIR_STORE_CONF_CONFIG_H
#define WEIR_STORE_CONF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_config weir_config;

typedef enum weir_config_key {
#define WEIR_CONFIG(id, key, kind, def, min, max, unit, live, meaning) WEIR_CONFIG_##id,
#include <weir/store/conf/config.def>
#undef WEIR_CONFIG
    WEIR_CONFIG_COUNT
} weir_config_key;

/* All defaults.  WEIR_ENOMEM. */
weir_err weir_config_open(weir_config **configp);
/* Each overrides what came before.  WEIR_ECONFIG names place, key, value, what is allowed; WEIR_ENOMEM; of the file
 * WEIR_ENOTFOUND and the like. */
weir_err weir_config_load_file(weir_config *config, const char *path);
weir_err weir_config_load_text(weir_config *config, const char *name, const char *text, size_t length);
weir_err weir_config_load_environment(weir_config *config, char *const *environment);
/* "log.level=debug".  WEIR_EUSAGE besides, if it is not an assignment. */
weir_err weir_config_set(weir_config *config, const char *assignment);
void weir_config_free(weir_config *config);

const char *weir_config_text(const weir_config *config, weir_config_key key); /* TEXT and CHOICE; borrowed */
uint64_t weir_config_u64(const weir_config *config, weir_config_key key);     /* U64, SIZE      */
int64_t weir_config_us(const weir_config *config, weir_config_key key);       /* DURATION       */
bool weir_config_bool(const weir_config *config, weir_config_key key);

/* Effective settings as a YAML file that load_file accepts, each with where its value came from. */
void weir_config_print(const weir_config *config, weir_buf *out);
/* The table itself, for ops/docs/CONFIG.md. */
void weir_config_markdown(weir_buf *out);

/* "64MiB", "1GiB", "1000" to bytes.  WEIR_EDATA. */
weir_err weir_size_parse(const char *text, uint64_t *bytesp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_CONF_CONFIG_H */
