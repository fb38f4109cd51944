/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - little-endian fields in byte buffers, and hex digits. What we store goes in and out this way, but for keys,
 * and the ranks that a sorted file says of itself, whose numbers have the high byte first (format/key.c,
 * engine/sorted.cc), and NumPy arrays, tensors and the runs of a sort (snapshot/sorter.c), which lie on disk as in
 * memory.
 */
#ifndef WEIR_STORE_BASE_BYTES_H
#define WEIR_STORE_BASE_BYTES_H

#include <stdint.h>

static inline void weir_put_u16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void weir_put_u32(uint8_t *p, uint32_t v) {
    weir_put_u16(p, (uint16_t)v);
    weir_put_u16(p + 2, (uint16_t)(v >> 16));
}
static inline void weir_put_u64(uint8_t *p, uint64_t v) {
    weir_put_u32(p, (uint32_t)v);
    weir_put_u32(p + 4, (uint32_t)(v >> 32));
}
static inline uint16_t weir_get_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t weir_get_u32(const uint8_t *p) {
    return (uint32_t)weir_get_u16(p) | (uint32_t)weir_get_u16(p + 2) << 16;
}
static inline uint64_t weir_get_u64(const uint8_t *p) {
    return (uint64_t)weir_get_u32(p) | (uint64_t)weir_get_u32(p + 4) << 32;
}

/* What a digit of either case stands for; -1: it is none. */
static inline int weir_hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    int letter = c | 0x20; /* in lower case */
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}
/* Sixteen digits, without a 0 behind them. */
static inline void weir_hex_put_u64(char *text, uint64_t v) {
    for (unsigned i = 16; i--; v >>= 4)
        text[i] = "0123456789abcdef"[v & 15];
}

#endif /* WEIR_STORE_BASE_BYTES_H */
