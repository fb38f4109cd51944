/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - the words of the schema language, by the enums of schema.h: read.c reads with them, print.c writes. */
#include "schema_private.h"

const char *const weir_schema_kind_words[] = {"number", "category", "time", NULL};
const char *const weir_schema_normalise_words[] = {"none", "standard", "log-standard", "min-max", NULL};
const char *const weir_schema_key_words[] = {"text", "integer", NULL};
const char *const weir_schema_direction_words[] = {"out", "in", NULL};
const char *const weir_schema_function_words[] = {"count",     "sum",        "mean",        "max",   "distinct", "min",
                                                  "deviation", "since_last", "since_first", "depth", "newest",   NULL};
const char *const weir_schema_task_words[] = {"classify", "recommend", NULL};
const char *const weir_schema_moment_words[] = {"put", "label", NULL};
const char *const weir_schema_format_words[] = {"json", "csv", NULL};
const char *const weir_schema_separator_words[] = {"comma", "semicolon", "tab", "pipe", NULL};
const char weir_schema_separators[] = {',', ';', '\t', '|'};
const char *const weir_schema_time_words[] = {"rfc3339", "s", "ms", "us", NULL};
const char *const weir_schema_test_words[] = {"has", "lacks", "is", "is_not", NULL};
const char *const weir_schema_verb_words[] = {"put_vertex",    "put_edge",    "put_label",
                                              "delete_vertex", "delete_edge", NULL};
const weir_schema_section_id weir_schema_verb_sections[] = {
    WEIR_SCHEMA_VERTICES, WEIR_SCHEMA_RELATIONS, WEIR_SCHEMA_LABELS, WEIR_SCHEMA_VERTICES, WEIR_SCHEMA_RELATIONS};
