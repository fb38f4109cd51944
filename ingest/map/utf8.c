/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - whether bytes are UTF-8; both readers ask. */
#include "message.h"

static bool continues(const unsigned char *p, size_t left, size_t count) {
    if (left < count) return false;
    for (size_t i = 1; i < count; i++) {
        if ((p[i] & 0xc0) != 0x80) return false;
    }
    return true;
}

size_t weir_message_utf8_char(const char *text, size_t left) {
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80) return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) return continues(p, left, 2) ? 2 : 0;
    if ((p[0] & 0xf0) == 0xe0) {
        if (!continues(p, left, 3) || (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
        return 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        if (!continues(p, left, 4) || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
        return 4;
    }
    return 0;
}

bool weir_message_utf8(const char *text, size_t length) {
    for (size_t i = 0, step; i < length; i += step) {
        step = weir_message_utf8_char(text + i, length - i);
        if (step == 0) return false;
    }
    return true;
}
