/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - the fast CRC-32C runs three streams: the instruction takes three cycles, and one can start in each. */
#include <weir/store/base/hash.h>

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#ifdef WEIR_XXH3_DISPATCH
#define LONG_BYTES 512u /* from here on it pays to ask which instructions there are */
/* The library's, by the widest of them. Its own header would make it static here, too. */
uint64_t XXH3_64bits_withSeed_dispatch(const void *bytes, size_t length, uint64_t seed);
#endif

/* table[1 << b] of the reflected polynomial 0x82F63B78. A checksum is linear, so these eight make the whole table. */
#define BIT(i, b, value) ((i) & (1u << (b)) ? (value) : 0u)
#define ENTRY(i)                                                                                         \
    (BIT(i, 0, 0xF26B8303u) ^ BIT(i, 1, 0xE13B70F7u) ^ BIT(i, 2, 0xC79A971Fu) ^ BIT(i, 3, 0x8AD958CFu) ^ \
     BIT(i, 4, 0x105EC76Fu) ^ BIT(i, 5, 0x20BD8EDEu) ^ BIT(i, 6, 0x417B1DBCu) ^ BIT(i, 7, 0x82F63B78u))
#define ENTRIES_4(i)  ENTRY(i), ENTRY((i) + 1u), ENTRY((i) + 2u), ENTRY((i) + 3u)
#define ENTRIES_16(i) ENTRIES_4(i), ENTRIES_4((i) + 4u), ENTRIES_4((i) + 8u), ENTRIES_4((i) + 12u)
#define ENTRIES_64(i) ENTRIES_16(i), ENTRIES_16((i) + 16u), ENTRIES_16((i) + 32u), ENTRIES_16((i) + 48u)

static const uint32_t crc_table[256] = {ENTRIES_64(0u), ENTRIES_64(64u), ENTRIES_64(128u), ENTRIES_64(192u)};

uint32_t weir_crc32c_naive(uint32_t crc, const void *bytes, size_t length) {
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < length; i++)
        crc = crc >> 8 ^ crc_table[(crc ^ p[i]) & 0xFFu];
    return ~crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Bytes of one stream. The two constants are x^(8 * LANE - 33) and x^(16 * LANE - 33) modulo the polynomial:
 * multiplied without carry and reduced by one more step of the instruction, they move a checksum past one and two
 * lanes of zeros. */
#define LANE           512u
#define PAST_ONE_LANE  0xDD7E3B0Cu
#define PAST_TWO_LANES 0x170076FAu

static uint64_t crc_load(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_move_past(uint64_t crc, uint32_t power) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int32_t)power), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_three_lanes(uint64_t crc, const uint8_t *p) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < LANE; i += 8) {
        crc = _mm_crc32_u64(crc, crc_load(p + i));
        second = _mm_crc32_u64(second, crc_load(p + LANE + i));
        third = _mm_crc32_u64(third, crc_load(p + 2u * LANE + i));
    }
    return crc_move_past(crc, PAST_TWO_LANES) ^ crc_move_past(second, PAST_ONE_LANE) ^ third;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc32c_fast(uint32_t start, const uint8_t *p, size_t length) {
    uint64_t crc = ~start;
    for (; length >= 3u * LANE; p += 3u * LANE, length -= 3u * LANE)
        crc = crc_three_lanes(crc, p);
    for (; length >= 8; p += 8, length -= 8)
        crc = _mm_crc32_u64(crc, crc_load(p));
    for (; length > 0; p++, length--)
        crc = _mm_crc32_u8((uint32_t)crc, *p);
    return ~(uint32_t)crc;
}

uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t length) {
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) return crc32c_fast(crc, bytes, length);
    return weir_crc32c_naive(crc, bytes, length);
}
#else
uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t length) {
    return weir_crc32c_naive(crc, bytes, length);
}
#endif

#ifdef WEIR_XXH3_DISPATCH
#ifdef __x86_64__
/* The library's code for AVX returns with something in the upper halves of vector registers. From then on each
 * instruction of SSE, which all other code is made of, waits for the one before it that wrote the same register: the
 * arithmetic of a score or a batch takes up to three times as long. Threads even inherit it. */
__attribute__((target("avx"))) static void hash_clear_upper_halves(void) {
    _mm256_zeroupper();
}
#endif

static uint64_t hash_long(const void *bytes, size_t length, uint64_t seed) {
    const uint64_t hash = XXH3_64bits_withSeed_dispatch(bytes, length, seed);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx")) hash_clear_upper_halves();
#endif
    return hash;
}
#endif

uint64_t weir_xxh3(const void *bytes, size_t length, uint64_t seed) {
#ifdef WEIR_XXH3_DISPATCH
    if (length >= LONG_BYTES) return hash_long(bytes, length, seed);
#endif
    return XXH3_64bits_withSeed(bytes, length, seed);
}
