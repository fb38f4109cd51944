/* SPDX-License-Identifier: Apache-2.0 */
/* shipped.h - the table that embed.cmake writes. */
#ifndef WEIR_STORE_SCHEMA_SHIPPED_H
#define WEIR_STORE_SCHEMA_SHIPPED_H

#include <weir/store/schema/schema.h>

extern const weir_schema_shipped weir_schema_shipped_files[]; /* sorted by name */
extern const size_t weir_schema_shipped_files_count;

#endif /* WEIR_STORE_SCHEMA_SHIPPED_H */
