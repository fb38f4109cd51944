/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/store/base/utf8.h>

#include <string.h>

#include <weir/store/base/assert.h>

size_t weir_utf8_take(const char *text, size_t length, bool *validp) {
    WEIR_ASSERT(length > 0);
    uint8_t first = (uint8_t)text[0];
    size_t needed = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    /* The range of the second byte excludes overlong forms (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4).
     * All later ones are 80..BF. */
    uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    *validp = false;
    if (needed == 0) return 1;
    for (size_t i = 1; i < needed; i++) {
        uint8_t byte = i < length ? (uint8_t)text[i] : 0;
        if (byte < low || byte > high) return i;
        low = 0x80;
        high = 0xBF;
    }
    *validp = true;
    return needed;
}

size_t weir_utf8_decode(const char *text, size_t length, uint32_t *codep) {
    bool valid;
    size_t bytes = weir_utf8_take(text, length, &valid);
    *codep = 0;
    if (!valid) return 0;
    WEIR_ASSERT(bytes <= length && bytes <= WEIR_UTF8_BYTES_MAX);
    uint32_t code = bytes == 1 ? (uint8_t)text[0] : (uint8_t)text[0] & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((uint8_t)text[i] & 0x3Fu);
    *codep = code;
    return bytes;
}

char *weir_utf8_encode(char *to, uint32_t code) {
    WEIR_ASSERT(code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF));
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xE0 | code >> 12);
        } else {
            *to++ = (char)(0xF0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (code & 0x3F));
    return to;
}

bool weir_utf8_valid(const char *text, size_t length) {
    bool valid = true;
    for (size_t i = 0; valid && i < length;)
        i += weir_utf8_take(text + i, length - i, &valid);
    return valid;
}

bool weir_utf8_printable(const char *text) {
    size_t length = strlen(text);
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t code;
        bytes = weir_utf8_decode(text + at, length - at, &code);
        bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
        if (bytes == 0 || control || code == 0xfeff || (code & 0xfffe) == 0xfffe) return false;
    }
    return true;
}
