/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - one value of a definition: a name, a text, a word of a list, a number, a duration, a reference. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/suggest.h>
#include <weir/store/base/utf8.h>

#include "schema_private.h"

#define SUGGEST_BYTES 128u /* "; did you mean 'NAME'?" with a name at its limit */
#define CHOICES_BYTES 128u

void *weir_schema_calloc(weir_schema *schema, size_t count, size_t bytes) {
    return weir_arena_calloc(schema->arena, count ? count : 1, bytes);
}

weir_err weir_schema_no_memory(void) {
    return WEIR_NOMEM("for the schema; free some, or give the process more");
}

/* --- keys ---------------------------------------------------------------------------------------------------- */

/* What YAML calls null: nothing was written. */
bool weir_schema_is_empty(const weir_yaml_node *node) {
    return weir_yaml_node_kind(node) == WEIR_YAML_SCALAR && !weir_yaml_quoted(node) && weir_yaml_text(node)[0] == 0;
}

weir_err weir_schema_only_keys(weir_schema_def *def, const char *const *allowed) {
    if (def->map && weir_schema_is_empty(def->map)) def->map = NULL;
    return def->map ? weir_yaml_only_keys(def->map, def->what, allowed) : WEIR_OK;
}

const weir_yaml_node *weir_schema_get(const weir_schema_def *def, const char *key) {
    return def->map ? weir_yaml_find(def->map, key) : NULL;
}

weir_err weir_schema_need(const weir_schema_def *def, const char *key, const weir_yaml_node **nodep) {
    *nodep = weir_schema_get(def, key);
    return *nodep ? WEIR_OK : WEIR_YAML_ERR(def->place, "%s needs '%s'; add it", def->what, key);
}

weir_err weir_schema_refuse(const weir_schema_def *def, const char *key, const char *reason) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    return node ? WEIR_YAML_ERR(node, "%s: '%s' has no meaning %s; remove it", def->what, key, reason) : WEIR_OK;
}

/* --- texts --------------------------------------------------------------------------------------------------- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool weir_schema_is_name(const char *text) {
    return strspn(text, LETTERS) > 0 && !text[strspn(text, LETTERS "0123456789_-")] &&
           strlen(text) <= WEIR_SCHEMA_NAME_BYTES_MAX;
}

/* A name becomes a part of file names, URLs and metric labels. */
weir_err weir_schema_read_name(weir_schema *schema, const weir_yaml_node *node, const char *noun, const char **namep) {
    if (weir_yaml_node_kind(node) != WEIR_YAML_SCALAR)
        return WEIR_YAML_ERR(node, "the name of a %s is a word; write no list or mapping here", noun);
    const char *text = weir_yaml_text(node);
    size_t length = strlen(text);
    if (length > WEIR_SCHEMA_NAME_BYTES_MAX)
        return WEIR_YAML_ERR(node, "the name of a %s has %zu bytes; at most %u are allowed", noun, length,
                             WEIR_SCHEMA_NAME_BYTES_MAX);
    if (!weir_schema_is_name(text))
        return WEIR_YAML_ERR(node, "'%s' cannot name a %s; begin with a letter and use letters, digits, _ and -", text,
                             noun);
    *namep = weir_arena_strndup(schema->arena, text, length);
    return *namep ? WEIR_OK : weir_schema_no_memory();
}

weir_err weir_schema_read_text(weir_schema *schema, const weir_yaml_node *node, const char *key, const char *what,
                               size_t bytes_max, const char **textp) {
    if (weir_yaml_node_kind(node) != WEIR_YAML_SCALAR)
        return WEIR_YAML_ERR(node, "%s: '%s' is one text; write no list or mapping here", what, key);
    const char *text = weir_yaml_text(node);
    size_t length = strlen(text);
    if (length == 0) return WEIR_YAML_ERR(node, "%s: '%s' is empty; write its value", what, key);
    if (length > bytes_max)
        return WEIR_YAML_ERR(node, "%s: '%s' has %zu bytes; at most %zu are allowed", what, key, length, bytes_max);
    if (!weir_utf8_printable(text)) /* so that a canonical text needs only two escapes */
        return WEIR_YAML_ERR(node, "%s: '%s' holds a character that cannot be printed; remove it", what, key);
    *textp = weir_arena_strndup(schema->arena, text, length);
    return *textp ? WEIR_OK : weir_schema_no_memory();
}

/* --- words, numbers, durations ------------------------------------------------------------------------------- */

weir_err weir_schema_read_choice(const weir_schema_def *def, const char *key, const char *const *words,
                                 uint32_t *indexp) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    if (!node) return WEIR_OK;
    const char *text = weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : "";
    for (uint32_t i = 0; words[i]; i++) {
        if (strcmp(words[i], text) != 0) continue;
        *indexp = i;
        return WEIR_OK;
    }
    char choices[CHOICES_BYTES] = "", nearest[SUGGEST_BYTES]; /* "a, b or c" */
    weir_suggest suggest = weir_suggest_for(text);
    size_t used = 0;
    for (size_t i = 0; words[i]; i++) {
        const char *comma = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        weir_suggest_offer(&suggest, words[i]);
        used += (size_t)snprintf(choices + used, sizeof choices - used, "%s%s", comma, words[i]);
        WEIR_ASSERT(used < sizeof choices);
    }
    return WEIR_YAML_ERR(node, "%s: '%s' is '%.64s'; it may be %s%s", def->what, key, text, choices,
                         weir_suggest_text(&suggest, nearest, sizeof nearest));
}

weir_err weir_schema_read_bool(const weir_schema_def *def, const char *key, bool *valuep) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    return node ? weir_yaml_bool(node, valuep) : WEIR_OK;
}

weir_err weir_schema_read_u32(const weir_schema_def *def, const char *key, uint32_t min, uint32_t max,
                              uint32_t *valuep) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    int64_t value = *valuep;
    weir_err err = node ? weir_yaml_i64(node, min, max, &value) : WEIR_OK;
    if (!err) *valuep = (uint32_t)value;
    return err;
}

weir_err weir_schema_read_duration(const weir_schema_def *def, const char *key, const char *zero_word, bool zero_ok,
                                   int64_t *usp) {
    const weir_yaml_node *node = weir_schema_get(def, key);
    if (!node) return WEIR_OK;
    const char *text = weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : "";
    int64_t us = 0;
    if (zero_word && strcmp(text, zero_word) == 0) {
        *usp = 0;
        return WEIR_OK;
    }
    if (weir_duration_parse(text, &us) != WEIR_OK || us < 0 || us > WEIR_SCHEMA_DURATION_US_MAX ||
        (us == 0 && !zero_ok))
        return WEIR_YAML_ERR(
            node, "%s: '%s' is '%.64s'; write %s%sa whole number and us, ms, s, m, h or d%s, as in 36h", def->what, key,
            text, zero_word ? zero_word : "", zero_word ? ", or " : "", zero_ok ? "" : " (more than 0)");
    *usp = us;
    return WEIR_OK;
}

/* --- references ---------------------------------------------------------------------------------------------- */

weir_err weir_schema_read_reference(const weir_schema_def *def, const char *key, weir_schema_section_id section,
                                    uint32_t *idp) {
    const weir_yaml_node *node = NULL;
    weir_err err = weir_schema_need(def, key, &node);
    if (err) return err;
    if (weir_yaml_node_kind(node) != WEIR_YAML_SCALAR)
        return WEIR_YAML_ERR(node, "%s: '%s' names one %s; write no list or mapping here", def->what, key,
                             weir_schema_sections[section].noun);
    const char *name = weir_yaml_text(node);
    *idp = weir_schema_find(def->schema, section, name);
    if (*idp != WEIR_SCHEMA_NONE) return WEIR_OK;
    char nearest[SUGGEST_BYTES];
    weir_suggest suggest = weir_suggest_for(name);
    for (uint32_t id = 0; id < def->schema->tables[section].count; id++)
        weir_suggest_offer(&suggest, weir_schema_slot_name(def->schema, section, id));
    return WEIR_YAML_ERR(node, "%s: '%s' is '%.64s', but no such %s is declared under '%s'%s", def->what, key, name,
                         weir_schema_sections[section].noun, weir_schema_sections[section].key,
                         weir_suggest_text(&suggest, nearest, sizeof nearest));
}

weir_err weir_schema_read_feature_reference(const weir_schema_def *def, const char *key, const weir_yaml_node *node,
                                            const char *owner, const weir_schema_feature *features, uint32_t count,
                                            uint32_t *indexp) {
    char nearest[SUGGEST_BYTES];
    const char *name = weir_yaml_node_kind(node) == WEIR_YAML_SCALAR ? weir_yaml_text(node) : "";
    *indexp = weir_schema_feature_find(features, count, name);
    if (*indexp != WEIR_SCHEMA_NONE) return WEIR_OK;
    weir_suggest suggest = weir_suggest_for(name);
    for (uint32_t i = 0; i < count; i++)
        weir_suggest_offer(&suggest, features[i].name);
    return WEIR_YAML_ERR(node, "%s: '%s' has '%.64s', but '%s' declares no such feature%s", def->what, key, name, owner,
                         weir_suggest_text(&suggest, nearest, sizeof nearest));
}
