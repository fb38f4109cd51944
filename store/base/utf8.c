/* SPDX-License-Identifier: Apache-2.0 */
#include "utf8.h"

#include <stdint.h>

/* Bytes of a character by its first byte, 0 if none begins so, and the range of the second byte: it is what excludes
 * overlong forms (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4). All later ones are 80..BF. */
static size_t first_byte(uint8_t byte, uint8_t *lowp, uint8_t *highp) {
    *lowp = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    *highp = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    if (byte < 0x80) return 1;
    if (byte < 0xC2) return 0;
    if (byte < 0xE0) return 2;
    if (byte < 0xF0) return 3;
    return byte < 0xF5 ? 4 : 0;
}

size_t weir_utf8_take(const char *text, size_t length, bool *validp) {
    uint8_t low, high;
    size_t needed = first_byte((uint8_t)text[0], &low, &high);
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
