/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/store/base/buf.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/utf8.h>

#define DEPTH_MAX    63u
#define F64_TEXT_MAX 32u

/* --- structure ------------------------------------------------------------------------------------------------ */

weir_json weir_json_begin(weir_buf *buf) {
    return (weir_json){.buf = buf};
}

/* Whether a comma stands between the value before and this one. */
static bool json_comma_due(weir_json *json) {
    uint64_t level = 1ull << json->depth;
    bool due = json->depth > 0 && !(json->first & level) && !json->after_key;
    json->after_key = false;
    json->first &= ~level;
    return due;
}

static void json_separate(weir_json *json) {
    if (json_comma_due(json)) weir_buf_byte(json->buf, ',');
}

static void json_open_level(weir_json *json, char bracket) {
    json_separate(json);
    WEIR_ASSERT(json->depth < DEPTH_MAX);
    json->depth++;
    json->first |= 1ull << json->depth;
    weir_buf_byte(json->buf, bracket);
}

static void json_close_level(weir_json *json, char bracket) {
    WEIR_ASSERT(json->depth > 0 && !json->after_key);
    json->depth--;
    weir_buf_byte(json->buf, bracket);
}

void weir_json_object(weir_json *json) {
    json_open_level(json, '{');
}

void weir_json_object_end(weir_json *json) {
    json_close_level(json, '}');
}

#define CHECK_FORMAT ",\"check\":\"%016" PRIx64 "\""
#define CHECK_BYTES  28u

void weir_json_object_end_checked(weir_json *json, size_t from) {
    const weir_buf *buf = json->buf;
    WEIR_ASSERT(json->depth == 1);
    if (buf->length > from)
        weir_buf_printf(json->buf, CHECK_FORMAT, weir_xxh3(buf->bytes + from, buf->length - from, 0));
    weir_json_object_end(json);
}

size_t weir_json_checked(const char *text, size_t length) {
    char wanted[CHECK_BYTES + 2];
    if (length && text[length - 1] == '\n') length--;
    if (length <= CHECK_BYTES) return 0;
    size_t covered = length - CHECK_BYTES;
    snprintf(wanted, sizeof wanted, CHECK_FORMAT "}", weir_xxh3(text, covered, 0));
    return memcmp(text + covered, wanted, CHECK_BYTES) == 0 ? covered : 0;
}

void weir_json_array(weir_json *json) {
    json_open_level(json, '[');
}

void weir_json_array_end(weir_json *json) {
    json_close_level(json, ']');
}

/* --- text ----------------------------------------------------------------------------------------------------- */

#define EACH_BYTE(value) (0x0101010101010101ull * (value))

/* True if one of the eight bytes is a control, a quote, a backslash or not ASCII. May be true without cause, since a
 * borrow can run into the byte above; never false with one. */
static bool json_any_special(uint64_t word) {
    uint64_t quote = word ^ EACH_BYTE('"');
    uint64_t backslash = word ^ EACH_BYTE('\\');
    uint64_t special = (word - EACH_BYTE(0x20)) | (quote - EACH_BYTE(1)) | (backslash - EACH_BYTE(1)) | word;
    return (special & EACH_BYTE(0x80)) != 0;
}

/* How many bytes from the start are ASCII that is written as it is. */
static size_t json_plain_ascii(const char *text, size_t length) {
    size_t i = 0;
    for (uint64_t word; i + 8 <= length; i += 8) {
        memcpy(&word, text + i, 8);
        if (json_any_special(word)) break;
    }
    for (uint8_t byte; i < length; i++) {
        byte = (uint8_t)text[i];
        if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
    }
    return i;
}

/* The same, and whole characters beyond ASCII. */
static size_t json_plain_length(const char *text, size_t length) {
    size_t i = 0;
    bool valid = true;
    while (valid) {
        i += json_plain_ascii(text + i, length - i);
        if (i == length || (uint8_t)text[i] < 0x80) break;
        size_t taken = weir_utf8_take(text + i, length - i, &valid);
        if (valid) i += taken;
    }
    return i;
}

static void json_escape_ascii(weir_buf *buf, uint8_t byte) {
    static const char digits[] = "0123456789abcdef";
    static const char letters[0x20] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char letter = byte < 0x20 ? letters[byte] : (char)byte;
    if (letter) {
        weir_buf_append(buf, (char[]){'\\', letter}, 2);
    } else {
        weir_buf_append(buf, (char[]){'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6);
    }
}

static void json_write_escaped(weir_buf *buf, const char *text, size_t length) {
    for (size_t taken; length > 0; text += taken, length -= taken) {
        bool valid;
        taken = json_plain_length(text, length);
        if (taken > 0) {
            weir_buf_append(buf, text, taken);
            continue;
        }
        taken = weir_utf8_take(text, length, &valid);
        if (valid) {
            json_escape_ascii(buf, (uint8_t)text[0]);
        } else {
            weir_buf_text(buf, WEIR_UTF8_REPLACEMENT);
        }
    }
}

/* A comma if one is due, the text in quotes, and end behind it. Most texts are plain, and then written in one go. */
static void json_write_quoted(weir_json *json, const char *text, size_t length, const char *end, size_t end_length) {
    const char *begin = json_comma_due(json) ? ",\"" : "\"";
    size_t begin_length = strlen(begin);
    if (length == 0 || json_plain_length(text, length) < length) {
        weir_buf_append(json->buf, begin, begin_length);
        json_write_escaped(json->buf, text, length);
        weir_buf_append(json->buf, end, end_length);
        return;
    }
    char *to = weir_buf_reserve(json->buf, begin_length + length + end_length);
    if (!to) return;
    memcpy(to, begin, begin_length);
    memcpy(to + begin_length, text, length);
    memcpy(to + begin_length + length, end, end_length);
    weir_buf_commit(json->buf, begin_length + length + end_length);
}

void weir_json_key(weir_json *json, const char *key) {
    WEIR_ASSERT(json->depth > 0 && !json->after_key);
    json_write_quoted(json, key, strlen(key), "\":", 2);
    json->after_key = true;
}

void weir_json_text(weir_json *json, const char *text, size_t length) {
    json_write_quoted(json, text, length, "\"", 1);
}

void weir_json_string(weir_json *json, const char *text) {
    if (text) {
        weir_json_text(json, text, strlen(text));
    } else {
        weir_json_null(json);
    }
}

void weir_json_key_time(weir_json *json, const char *key, int64_t time_us) {
    char text[WEIR_TIME_TEXT_MAX];
    weir_json_key_text(json, key, text, weir_time_format(time_us, text));
}

/* --- numbers -------------------------------------------------------------------------------------------------- */

void weir_json_u64(weir_json *json, uint64_t value) {
    json_separate(json);
    weir_buf_u64(json->buf, value);
}

void weir_json_i64(weir_json *json, int64_t value) {
    json_separate(json);
    weir_buf_i64(json->buf, value);
}

/* digits * 10^-places. */
static void json_write_decimal(weir_buf *buf, uint64_t digits, unsigned places) {
    static const uint32_t divisors[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    char fraction[8] = ".";
    weir_buf_u64(buf, digits / divisors[places]);
    if (places == 0) return;
    uint64_t rest = digits % divisors[places];
    for (unsigned i = places; i > 0; i--, rest /= 10)
        fraction[i] = (char)('0' + rest % 10);
    weir_buf_append(buf, fraction, places + 1);
}

/*
 * Amounts and counts. When value * 10^places is, rounded, an integer below 10^15 that divided by 10^places gives value
 * again, then these at most 15 digits read back as value: the division of two exact doubles is rounded as reading is.
 * Fewer places were tried before, so the last digit is not 0, and no shorter text exists.
 */
static bool json_write_short_decimal(weir_buf *buf, double value) {
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    double magnitude = fabs(value);
    if (!(magnitude < 1e15) || (magnitude < 1e-4 && magnitude > 0)) return false;
    for (unsigned places = 0; places < sizeof powers / sizeof powers[0]; places++) {
        double scaled = rint(magnitude * powers[places]);
        if (scaled >= 1e15) return false;
        if (scaled / powers[places] != magnitude) continue;
        if (signbit(value)) weir_buf_byte(buf, '-');
        json_write_decimal(buf, (uint64_t)scaled, places);
        return true;
    }
    return false;
}

/* "1e+05" to "1e5", "1e-05" to "1e-5". */
static void json_trim_exponent(char *text) {
    char *from = strchr(text, 'e');
    if (!from) return;
    char *to = ++from;
    if (*from == '-') to++;
    if (*from == '-' || *from == '+') from++;
    while (*from == '0' && from[1])
        from++;
    memmove(to, from, strlen(from) + 1);
}

/* Adds one to the last digit of d.ddde±xx. No carry out of the front: no power of two has 16 nines there. */
static void json_bump_last_digit(char *text) {
    char *digit = strchr(text, 'e') - 1;
    for (; *digit == '9' || *digit == '.'; digit--) {
        if (*digit == '9') *digit = '0';
    }
    ++*digit;
}

/*
 * Seventeen digits always read back, and 15 do if any so few do, except below the normal range. With 16 the nearest
 * number does if any does, except at a power of two: its neighbours below are nearer than those above, so that the
 * nearest number of 16 digits, below, may be too far while the next one, above, is near enough.
 */
static void json_format_shortest(double value, char text[F64_TEXT_MAX]) {
    int exponent;
    int precision = fabs(value) < 2.2250738585072014e-308 ? 1 : 15;
    for (; precision <= 17; precision++) {
        snprintf(text, F64_TEXT_MAX, "%.*g", precision, value);
        if (precision == 17 || strtod(text, NULL) == value) return;
        if (precision == 16 && fabs(frexp(value, &exponent)) == 0.5) {
            snprintf(text, F64_TEXT_MAX, "%.15e", value);
            json_bump_last_digit(text);
            if (strtod(text, NULL) == value) return;
        }
    }
}

void weir_json_f64(weir_json *json, double value) {
    char text[F64_TEXT_MAX];
    if (!isfinite(value)) {
        weir_json_null(json);
        return;
    }
    json_separate(json);
    if (json_write_short_decimal(json->buf, value)) return;
    json_format_shortest(value, text);
    json_trim_exponent(text);
    weir_buf_text(json->buf, text);
}

void weir_json_bool(weir_json *json, bool value) {
    json_separate(json);
    weir_buf_text(json->buf, value ? "true" : "false");
}

void weir_json_null(weir_json *json) {
    json_separate(json);
    weir_buf_text(json->buf, "null");
}
