/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - what the process tells its operator: one line an event, on stderr.
 *
 * On a terminal a line is for people; otherwise it is one JSON object with ts, level, event, msg, thread
 * and the fields. `event` is a stable code that an alert can match ("eventlog.tail_cut"); the
 * sentence may change. The same event is written once per interval, as long as no 64 others come, then once more with
 * a count of what was held back; events that begin with "audit." are all written. Payload values and secrets are never
 * logged.
 */
#ifndef WEIR_STORE_BASE_LOG_H
#define WEIR_STORE_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_log_level { WEIR_LOG_DEBUG, WEIR_LOG_INFO, WEIR_LOG_WARN, WEIR_LOG_ERROR } weir_log_level;
typedef enum weir_log_format { WEIR_LOG_AUTO, WEIR_LOG_HUMAN, WEIR_LOG_JSON } weir_log_format;

typedef struct weir_log_opts {
    weir_log_level level;   /* lower ones are not written                                   */
    weir_log_format format; /* AUTO: human on a terminal, JSON elsewhere                    */
    int fd;                 /* where to; 2 is stderr                                        */
    int64_t repeat_us;      /* one line per event code and interval; 0 writes every line    */
    weir_clock *clock;      /* borrowed; NULL is the system's                               */
} weir_log_opts;

typedef enum weir_log_type { WEIR_FIELD_I64, WEIR_FIELD_U64, WEIR_FIELD_F64, WEIR_FIELD_TEXT } weir_log_type;

typedef struct weir_log_field {
    const char *name;
    weir_log_type type;
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
        const char *text;
    } value;
} weir_log_field;

#define WEIR_I64(name, v)         \
    {                             \
        (name), WEIR_FIELD_I64, { \
            .i64 = (v)            \
        }                         \
    }
#define WEIR_U64(name, v)         \
    {                             \
        (name), WEIR_FIELD_U64, { \
            .u64 = (v)            \
        }                         \
    }
#define WEIR_F64(name, v)         \
    {                             \
        (name), WEIR_FIELD_F64, { \
            .f64 = (v)            \
        }                         \
    }
#define WEIR_TEXT(name, v)         \
    {                              \
        (name), WEIR_FIELD_TEXT, { \
            .text = (v)            \
        }                          \
    }

#define WEIR_LOG_FIELDS_MAX 16u
#define WEIR_LOG_LINE_MAX   4096u /* longer lines are cut, and stay valid JSON */

/* Defaults: INFO, AUTO, stderr, 5 s, system clock. May be called again.  [main] */
void weir_log_setup(const weir_log_opts *opts);
weir_log_opts weir_log_defaults(void);
bool weir_log_enabled(weir_log_level level);

/* event: a string literal. fields may be NULL when field_count is 0. Of the message at most 767 bytes are written.
 * [any] */
void weir_log_write(weir_log_level level, const char *event, const weir_log_field *fields, size_t field_count,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* An error with its sentence, code and place as fields.  [any] */
void weir_log_error(const char *event, weir_err err);
/* Writes the counts that are still held back.  [any] */
void weir_log_flush(void);

/*     WEIR_LOG(WARN, "eventlog.tail_cut", "cut a torn tail", WEIR_U64("bytes", n), WEIR_TEXT("file", path));
 * The comma at the end lets the second macro see an argument behind the message even where there are no fields. */
#define WEIR_LOG(level, event, ...) WEIR_LOG_FIELDS(level, event, __VA_ARGS__, )
#define WEIR_LOG_FIELDS(level, event, message, ...)                                                  \
    do {                                                                                             \
        if (weir_log_enabled(WEIR_LOG_##level)) {                                                    \
            const weir_log_field weir_log_fields[] = {{NULL, WEIR_FIELD_I64, {0}}, __VA_ARGS__};     \
            weir_log_write(WEIR_LOG_##level, (event), weir_log_fields + 1,                           \
                           sizeof weir_log_fields / sizeof weir_log_fields[0] - 1, "%s", (message)); \
        }                                                                                            \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_LOG_H */
