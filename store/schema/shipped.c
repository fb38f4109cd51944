/* SPDX-License-Identifier: Apache-2.0 */
/* shipped.c - the schemas of the folder schemas/, which the build turns into arrays (embed.cmake). */
#include <string.h>

#include <weir/store/base/assert.h>

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
