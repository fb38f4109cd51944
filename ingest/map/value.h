/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - cells become numbers, times and texts, or a reason why not. */
#ifndef WEIR_INGEST_VALUE_H
#define WEIR_INGEST_VALUE_H

#include "message.h"

/* Each: WEIR_EDATA "field 'amount' (byte 120): …". field is the path, for the sentence.  [any] */
weir_err weir_cell_number(const weir_cell *cell, const char *field, double *numberp);
weir_err weir_cell_time(const weir_cell *cell, const char *field, weir_schema_time_format format, int64_t *time_usp);
/* The text of any plain value; a nested one is an error. */
weir_err weir_cell_text(const weir_cell *cell, const char *field, const char **textp, size_t *lengthp);
weir_err weir_cell_integer(const weir_cell *cell, const char *field, int64_t *integerp);
weir_err weir_cell_wrong(const weir_cell *cell, const char *field, const char *what);

#endif /* WEIR_INGEST_VALUE_H */
