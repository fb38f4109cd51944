/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/store/base/buf.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define CAPACITY_MIN     64u
#define DECIMAL_TEXT_MAX 20u /* digits of UINT64_MAX */

static bool buf_meter_ask(const weir_buf *buf, size_t more, size_t less) {
    return !buf->meter || buf->meter(buf->meter_context, more, less);
}

/* A block that takes so many bytes: twice as large as before, so that growing costs each byte only a constant. */
static bool buf_enlarge(weir_buf *buf, size_t needed) {
    size_t capacity = buf->capacity < CAPACITY_MIN ? CAPACITY_MIN : buf->capacity;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    if (buf->length_max && capacity > buf->length_max) capacity = buf->length_max + 1;
    WEIR_ASSERT(capacity >= needed);
    if (!buf_meter_ask(buf, capacity, 0)) { /* what moves is there twice for a moment, and is counted so */
        buf->failed = WEIR_EBUSY;
        return false;
    }
    char *bytes = weir_realloc_array(buf->bytes, capacity, 1);
    (void)buf_meter_ask(buf, 0, bytes ? buf->capacity : capacity);
    if (!bytes) {
        buf->failed = WEIR_ENOMEM;
        return false;
    }
    buf->bytes = bytes;
    buf->capacity = capacity;
    return true;
}

char *weir_buf_grow(weir_buf *buf, size_t length) {
    if (buf->failed) return NULL;
    size_t length_max = buf->length_max ? buf->length_max : SIZE_MAX - 1;
    if (buf->length > length_max || length > length_max - buf->length) {
        buf->failed = WEIR_ELIMIT;
        return NULL;
    }
    size_t needed = buf->length + length + 1;
    if (needed > buf->capacity && !buf_enlarge(buf, needed)) return NULL;
    buf->room = length_max < buf->capacity ? length_max + 1 : buf->capacity;
    WEIR_ASSERT(length < buf->room - buf->length);
    return buf->bytes + buf->length;
}

void weir_buf_append(weir_buf *buf, const void *bytes, size_t length) {
    char *to = weir_buf_reserve(buf, length);
    if (!to) return;
    if (length > 0) memcpy(to, bytes, length);
    weir_buf_commit(buf, length);
}

void weir_buf_byte(weir_buf *buf, char byte) {
    char *to = weir_buf_reserve(buf, 1);
    if (!to) return;
    *to = byte;
    weir_buf_commit(buf, 1);
}

void weir_buf_text(weir_buf *buf, const char *text) {
    weir_buf_append(buf, text, strlen(text));
}

void weir_buf_printf(weir_buf *buf, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    WEIR_ASSERT(length >= 0);
    if ((size_t)length < sizeof text) {
        weir_buf_append(buf, text, (size_t)length);
        return;
    }
    char *to = weir_buf_reserve(buf, (size_t)length);
    if (!to) return;
    va_start(arguments, format);
    vsnprintf(to, (size_t)length + 1, format, arguments);
    va_end(arguments);
    weir_buf_commit(buf, (size_t)length);
}

void weir_buf_u64(weir_buf *buf, uint64_t value) {
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[DECIMAL_TEXT_MAX];
    char *first = digits + sizeof digits;
    for (; value >= 100; value /= 100) {
        first -= 2;
        memcpy(first, pairs + value % 100 * 2, 2);
    }
    if (value >= 10) {
        first -= 2;
        memcpy(first, pairs + value * 2, 2);
    } else {
        *--first = (char)('0' + value);
    }
    weir_buf_append(buf, first, (size_t)(digits + sizeof digits - first));
}

void weir_buf_i64(weir_buf *buf, int64_t value) {
    if (value < 0) weir_buf_byte(buf, '-');
    weir_buf_u64(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void weir_buf_csv(weir_buf *buf, const char *text, size_t length) {
    bool quoted = false;
    for (size_t i = 0; i < length; i++)
        quoted = quoted || strchr(",\"\r\n", text[i]) != NULL;
    if (quoted) weir_buf_byte(buf, '"');
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') weir_buf_byte(buf, '"');
        weir_buf_byte(buf, text[i]);
    }
    if (quoted) weir_buf_byte(buf, '"');
}

void weir_buf_clear(weir_buf *buf) {
    buf->length = buf->room = 0; /* the next write looks at the limit, which may be another then */
    buf->failed = WEIR_CODE_OK;
    if (buf->bytes) buf->bytes[0] = 0;
}

void weir_buf_free(weir_buf *buf) {
    weir_free(buf->bytes);
    (void)buf_meter_ask(buf, 0, buf->capacity);
    *buf = (weir_buf){.length_max = buf->length_max, .meter = buf->meter, .meter_context = buf->meter_context};
}

void weir_buf_shrink(weir_buf *buf) {
    WEIR_ASSERT(!buf->bytes || buf->length < buf->capacity);
    if (!buf->length) {
        weir_code failed = buf->failed; /* what is not there may be what did not fit */
        weir_buf_free(buf);
        buf->failed = failed;
        return;
    }
    char *bytes = weir_realloc_array(buf->bytes, buf->length + 1, 1);
    if (!bytes) return; /* it stays as large as it is */
    (void)buf_meter_ask(buf, buf->length + 1, buf->capacity);
    buf->bytes = bytes;
    buf->capacity = buf->room = buf->length + 1;
}

weir_err weir_buf_err(const weir_buf *buf) {
    switch (buf->failed) {
    case WEIR_CODE_OK:
        return WEIR_OK;
    case WEIR_ELIMIT:
        return WEIR_ERR(WEIR_ELIMIT, "the text is longer than the %zu bytes that are allowed", buf->length_max);
    case WEIR_EBUSY:
        return WEIR_ERR(WEIR_EBUSY, "there is no room for a text of more than %zu bytes now; try again in a second",
                        buf->length);
    default:
        return WEIR_NOMEM("for a text of more than %zu bytes", buf->length);
    }
}
