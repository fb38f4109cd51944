/* SPDX-License-Identifier: Apache-2.0 */
/* shipped.c - the schemas of the folder schemas/, which the build turns into arrays (embed.cmake). */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/suggest.h>

#include "shipped.h"

size_t weir_schema_shipped_count(void) {
    return weir_schema_shipped_files_count;
}

const weir_schema_shipped *weir_schema_shipped_at(size_t index) {
    WEIR_ASSERT(index < weir_schema_shipped_files_count);
    return &weir_schema_shipped_files[index];
}

const weir_schema_shipped *weir_schema_shipped_find(const char *name) {
    for (size_t i = 0; i < weir_schema_shipped_files_count; i++)
        if (strcmp(weir_schema_shipped_files[i].name, name) == 0) return &weir_schema_shipped_files[i];
    return NULL;
}

weir_err weir_schema_shipped_missing(const char *what, const char *name) {
    char nearest[128];
    weir_suggest suggest = weir_suggest_for(name);
    for (size_t i = 0; i < weir_schema_shipped_files_count; i++)
        weir_suggest_offer(&suggest, weir_schema_shipped_files[i].name);
    return WEIR_ERR(WEIR_ENOTFOUND, "no %s '%.200s'; `weir schema list` names the shipped ones%s", what, name,
                    weir_suggest_text(&suggest, nearest, sizeof nearest));
}

weir_err weir_schema_load_named(const char *operand, weir_schema **schemap) {
    const weir_schema_shipped *shipped = weir_schema_shipped_find(operand);
    *schemap = NULL;
    if (shipped) return weir_schema_parse(shipped->name, shipped->text, shipped->length, schemap);
    if (weir_path_exists(operand)) return weir_schema_load(operand, schemap);
    return weir_schema_shipped_missing("file or shipped schema", operand);
}
