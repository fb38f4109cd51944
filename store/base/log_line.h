/* SPDX-License-Identifier: Apache-2.0 */
/* log_line.h - one event as one line, for log.c. */
#ifndef WEIR_BASE_LOG_LINE_H
#define WEIR_BASE_LOG_LINE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/log.h>

typedef enum weir_log_look { WEIR_LOOK_JSON, WEIR_LOOK_PLAIN, WEIR_LOOK_COLOURED } weir_log_look;

typedef struct weir_log_entry {
    int64_t wall_us;
    weir_log_level level;
    const char *event;
    const char *message;
    const weir_log_field *fields;
    size_t field_count;
} weir_log_entry;

/* Returns the length of line, its newline included; there is no 0 behind it. Allocates nothing.  [any] */
size_t weir_log_line(const weir_log_entry *entry, weir_log_look look, char line[WEIR_LOG_LINE_MAX]);

/* While a progress bar stands on a terminal, lines for people wipe it off before they are written.  [any] */
void weir_log_note_bar(int change);

#endif /* WEIR_BASE_LOG_LINE_H */
