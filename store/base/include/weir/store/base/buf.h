/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - a growing byte buffer, and JSON written into it.
 *
 * A failed growth marks the buffer: later writes do nothing, and weir_buf_err says so once at the end, so
 * that writers need no check per call.  THREADS: [owner].
 */
#ifndef WEIR_STORE_BASE_BUF_H
#define WEIR_STORE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For a budget that many buffers share: a buffer takes a block of `more` bytes and gives back one of `less` (0: none).
 * false: there is no room for it now; never where more is no larger than less. */
typedef bool (*weir_buf_meter)(void *context, uint64_t more, uint64_t less);

/* A plain value; {0} is an empty buffer without a limit. */
typedef struct weir_buf {
    char *bytes; /* always ended by a 0 that length does not count, once anything was written */
    size_t length;
    size_t capacity;
    size_t room;          /* of capacity, what the limit lets be used, with the 0; 0: to be found by the next write */
    size_t length_max;    /* 0: no limit; holds whatever memory was kept, if it is set while the buffer is empty */
    weir_code failed;     /* 0, WEIR_ENOMEM, WEIR_ELIMIT or, by the meter, WEIR_EBUSY */
    weir_buf_meter meter; /* NULL: no budget; else asked before each growth */
    void *meter_context;
} weir_buf;

/* All of it or nothing. */
void weir_buf_append(weir_buf *buf, const void *bytes, size_t length);
void weir_buf_byte(weir_buf *buf, char byte);
void weir_buf_text(weir_buf *buf, const char *text);
void weir_buf_printf(weir_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void weir_buf_u64(weir_buf *buf, uint64_t value); /* decimal, fast */
void weir_buf_i64(weir_buf *buf, int64_t value);  /* of a negative one the sign alone may fit */
/* A field of a comma-separated row, quoted where it must be (RFC 4180). */
void weir_buf_csv(weir_buf *buf, const char *text, size_t length);
/* The slow half of weir_buf_reserve. */
char *weir_buf_grow(weir_buf *buf, size_t length);
/* Room for length more bytes, to be written by the caller at bytes + length; NULL: marked as failed.
 * Inline, since each word of each line needs it. */
static inline char *weir_buf_reserve(weir_buf *buf, size_t length) {
    return length < buf->room - buf->length && !buf->failed ? buf->bytes + buf->length : weir_buf_grow(buf, length);
}
/* Counts bytes that were written into reserved room. */
static inline void weir_buf_commit(weir_buf *buf, size_t length) {
    WEIR_ASSERT(length < buf->room - buf->length);
    buf->length += length;
    buf->bytes[buf->length] = 0;
}
/* Keeps the memory, and the limit, which may be set anew then. */
void weir_buf_clear(weir_buf *buf);
void weir_buf_free(weir_buf *buf);
/* Gives back the room that what was written does not need, where the allocator can; bytes is NULL if that is all. */
void weir_buf_shrink(weir_buf *buf);
/* WEIR_ENOMEM, WEIR_ELIMIT or WEIR_EBUSY if any write failed since clear. */
weir_err weir_buf_err(const weir_buf *buf);

/* JSON: commas and colons are placed by the caller's order of calls; depth is checked by assertion. Several values at
 * the top are written one behind the other: put the newlines between them with weir_buf_byte. */
typedef struct weir_json {
    weir_buf *buf;
    uint64_t first; /* one bit a level: nothing written there yet */
    uint32_t depth; /* at most 63 */
    bool after_key;
} weir_json;

weir_json weir_json_begin(weir_buf *buf);
void weir_json_object(weir_json *json);
void weir_json_object_end(weir_json *json);
/* Ends an object at the top with a last member "check": a hash of the buffer up to there, beginning at from. */
void weir_json_object_end_checked(weir_json *json, size_t from);
/* How many bytes of a text such a member at its end covers, a newline behind it or not; 0: there is none, or a byte was
 * changed, lost or added since. Against accidents, not against somebody who writes his own. */
size_t weir_json_checked(const char *text, size_t length);
void weir_json_array(weir_json *json);
void weir_json_array_end(weir_json *json);
void weir_json_key(weir_json *json, const char *key);
/* Escaped; bytes that are not UTF-8 become U+FFFD. */
void weir_json_text(weir_json *json, const char *text, size_t length);
void weir_json_string(weir_json *json, const char *text); /* NULL: null */
void weir_json_u64(weir_json *json, uint64_t value);
void weir_json_i64(weir_json *json, int64_t value);
/* The fewest significant digits that read back the same; NaN and infinities become null. */
void weir_json_f64(weir_json *json, double value);
void weir_json_bool(weir_json *json, bool value);
void weir_json_null(weir_json *json);

/* A member: its key, then its value. */
static inline void weir_json_key_u64(weir_json *json, const char *key, uint64_t value) {
    weir_json_key(json, key);
    weir_json_u64(json, value);
}
static inline void weir_json_key_i64(weir_json *json, const char *key, int64_t value) {
    weir_json_key(json, key);
    weir_json_i64(json, value);
}
static inline void weir_json_key_f64(weir_json *json, const char *key, double value) {
    weir_json_key(json, key);
    weir_json_f64(json, value);
}
static inline void weir_json_key_bool(weir_json *json, const char *key, bool value) {
    weir_json_key(json, key);
    weir_json_bool(json, value);
}
static inline void weir_json_key_string(weir_json *json, const char *key, const char *text) {
    weir_json_key(json, key);
    weir_json_string(json, text);
}
static inline void weir_json_key_text(weir_json *json, const char *key, const char *text, size_t length) {
    weir_json_key(json, key);
    weir_json_text(json, text, length);
}
/* A time as weir_time_format writes it. */
void weir_json_key_time(weir_json *json, const char *key, int64_t time_us);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_BUF_H */
