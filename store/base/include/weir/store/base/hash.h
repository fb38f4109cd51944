/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - checksums and hashes. CRC-32C guards records on disk; XXH3 finds places, and tells one content from
 * another; SipHash makes ids of foreign names.
 *
 * The first two are no defence against an attacker. SipHash is one as long as its key is secret; signatures are in
 * store/trust.  Every function is [any].
 */
#ifndef WEIR_STORE_BASE_HASH_H
#define WEIR_STORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CRC-32C (Castagnoli), as Kafka and iSCSI use it; crc is 0 or the value so far.
 * Of "123456789", from 0 on, it is 0xE3069283. Uses the instructions of an x86-64 processor that has SSE4.2 and
 * PCLMULQDQ; any other is served by the table. */
uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t length);
/* The table twin that the fast one is tested against. */
uint32_t weir_crc32c_naive(uint32_t crc, const void *bytes, size_t length);

uint64_t weir_xxh3(const void *bytes, size_t length, uint64_t seed);

/* Of a number, of which any bits are a place in a table then: those of tests are small, those of hashes are not. No two
 * numbers become one. */
static inline uint64_t weir_hash_mix(uint64_t number) {
    number = (number ^ number >> 32) * 0xd6e8feb86659fd93ull;
    return number ^ number >> 32;
}

/* SipHash-2-4 (Aumasson and Bernstein, 2012): who does not know the key can neither tell its outputs from chance nor
 * make two of them collide. The 128 bits are the first and the second word of the published output, each
 * little-endian. */
#define WEIR_SIPHASH_KEY_BYTES 16u
uint64_t weir_siphash(const uint8_t key[WEIR_SIPHASH_KEY_BYTES], const void *bytes, size_t length);
void weir_siphash128(const uint8_t key[WEIR_SIPHASH_KEY_BYTES], const void *bytes, size_t length, uint64_t words[2]);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_HASH_H */
