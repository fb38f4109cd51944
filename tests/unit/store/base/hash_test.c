/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

typedef uint32_t (*crc_function)(uint32_t crc, const void *bytes, size_t length);

/* The vectors of RFC 3720, appendix B.4, and the check value that every catalogue of checksums lists. */
static void check_published(crc_function crc) {
    uint8_t bytes[32], read_pdu[48] = {0x01, 0xC0};
    assert_int_equal(crc(0, "123456789", 9), 0xE3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc(0, bytes, sizeof bytes), 0x8A9136AA);
    memset(bytes, 0xFF, sizeof bytes);
    assert_int_equal(crc(0, bytes, sizeof bytes), 0x62A8AB43);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc(0, bytes, sizeof bytes), 0x46DD794E);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(31 - i);
    assert_int_equal(crc(0, bytes, sizeof bytes), 0x113FDB5C);
    read_pdu[16] = 0x14;
    read_pdu[22] = 0x04;
    read_pdu[27] = 0x14;
    read_pdu[31] = 0x18;
    read_pdu[32] = 0x28;
    read_pdu[40] = 0x02;
    assert_int_equal(crc(0, read_pdu, sizeof read_pdu), 0xD9963A56);
    assert_int_equal(crc(0, NULL, 0), 0);
    assert_int_equal(crc(0x12345678, NULL, 0), 0x12345678);
}

static void crc32c_published_vectors(void **state) {
    (void)state;
    check_published(weir_crc32c);
    check_published(weir_crc32c_naive);
}

/* The definition, a bit at a time: the table of the naive twin is made by macros, and could be wrong in one row. */
static uint32_t crc_by_bits(const uint8_t *bytes, size_t length) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

static void crc32c_naive_equals_the_definition_for_every_byte(void **state) {
    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[] = {(uint8_t)first, 0, (uint8_t)~first};
        for (size_t length = 1; length <= sizeof bytes; length++)
            assert_int_equal(weir_crc32c_naive(0, bytes, length), crc_by_bits(bytes, length));
    }
}

enum { BYTES = 16384 };

static uint8_t *random_bytes(weir_rng *rng) {
    uint8_t *bytes = weir_malloc(BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < BYTES; i += 8)
        weir_put_u64(bytes + i, weir_rng_u64(rng));
    return bytes;
}

static void crc32c_fast_equals_naive(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    uint8_t *bytes = random_bytes(&rng);
    for (uint64_t round = 0; round < weir_test_rounds(3000); round++) {
        /* Around whole blocks of three lanes too, from every alignment. */
        size_t length = weir_rng_below(&rng, 4) ? weir_rng_below(&rng, 5000) : 1536 * weir_rng_below(&rng, 6);
        size_t start = weir_rng_below(&rng, 64);
        uint32_t crc = weir_rng_u32(&rng);
        assert_int_equal(weir_crc32c(crc, bytes + start, length), weir_crc32c_naive(crc, bytes + start, length));
    }
    weir_free(bytes);
}

static void crc32c_in_parts_equals_the_whole(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    uint8_t *bytes = random_bytes(&rng);
    uint32_t whole = weir_crc32c(0, bytes, BYTES);
    for (uint64_t round = 0; round < weir_test_rounds(200); round++) {
        uint32_t crc = 0;
        for (size_t done = 0, part; done < BYTES; done += part) {
            part = 1 + weir_rng_below(&rng, 4000);
            if (part > BYTES - done) part = BYTES - done;
            crc = weir_crc32c(crc, bytes + done, part);
        }
        assert_int_equal(crc, whole);
    }
    weir_free(bytes);
}

static void crc32c_sees_every_flipped_bit(void **state) {
    (void)state;
    uint8_t bytes[200] = {0};
    uint32_t whole = weir_crc32c(0, bytes, sizeof bytes);
    for (unsigned bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(weir_crc32c(0, bytes, sizeof bytes), whole);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* Of the xxHash project's own self test. A name's hash is on disk: it may never change, whatever library we link. */
static void xxh3_published_vectors(void **state) {
    (void)state;
    static const struct {
        size_t length;
        uint64_t seed, hash;
    } vectors[] = {
        {0, 0, 0x2D06800538D394C2ull},    {0, 0x9E3779B185EBCA8Dull, 0xA8A6B918B2F0364Aull},
        {1, 0, 0xC44BDFF4074EECDBull},    {6, 0, 0x27B56A84CD2D7325ull},
        {24, 0, 0xA3FE70BF9D3510EBull},   {48, 0, 0x397DA259ECBA1F11ull},
        {80, 0, 0xBCDEFBBB2C47C90Aull},   {195, 0, 0xCD94217EE362EC3Aull},
        {403, 0, 0xCDEB804D65C6DEA4ull},  {512, 0, 0x617E49599013CB6Bull},
        {2048, 0, 0xDD59E2C3A5F038E0ull}, {2240, 0, 0x6E73A90539CF2948ull},
        {2367, 0, 0xCB37AEB9E5D361EDull}, {2367, 0x9E3779B185EBCA8Dull, 0xD2DB3415B942B42Aull},
    };
    uint8_t bytes[2367];
    uint64_t generator = 2654435761u;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(generator >> 56);
        generator *= 11400714785074694797ull;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        assert_true(weir_xxh3(bytes, vectors[i].length, vectors[i].seed) == vectors[i].hash);
}

#ifdef __x86_64__
/* Whether the processor can tell. */
static bool upper_halves_are_told(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) return false;
    return __get_cpuid_count(0xD, 1, &a, &b, &c, &d) && (a & 4u);
}

/* Whether the upper halves of vector registers have anything in them, which makes instructions of SSE slow. */
static bool upper_halves_are_used(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low & 4u;
}

static void xxh3_leaves_no_upper_halves(void **state) {
    (void)state;
    static uint8_t bytes[100000];
    if (!upper_halves_are_told()) skip();
    __asm__ volatile("vzeroupper");
    if (upper_halves_are_used()) skip(); /* a processor that always says so */
    for (size_t length = 1; length < sizeof bytes; length = length * 3 / 2 + 1) {
        const uint64_t hash = weir_xxh3(bytes, length, length);
        if (upper_halves_are_used()) fail_msg("after %zu bytes, whose hash is %llx", length, (unsigned long long)hash);
    }
}
#else
static void xxh3_leaves_no_upper_halves(void **state) {
    (void)state;
    skip();
}
#endif

static void bytes_are_little_endian_on_every_machine(void **state) {
    (void)state;
    uint8_t bytes[14];
    static const uint8_t wanted[14] = {0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x0E,
                                       0x0D, 0x0C, 0x0B, 0x0A, 0x09, 0x08, 0xF7};
    weir_put_u16(bytes, 0x0102);
    weir_put_u32(bytes + 2, 0x03040506);
    weir_put_u64(bytes + 6, 0xF708090A0B0C0D0Eull);
    assert_memory_equal(bytes, wanted, sizeof bytes);
    assert_int_equal(weir_get_u16(bytes), 0x0102);
    assert_int_equal(weir_get_u32(bytes + 2), 0x03040506);
    assert_true(weir_get_u64(bytes + 6) == 0xF708090A0B0C0D0Eull);
}

WEIR_TESTS(WEIR_CASE(crc32c_published_vectors), WEIR_CASE(crc32c_naive_equals_the_definition_for_every_byte),
           WEIR_CASE(crc32c_fast_equals_naive), WEIR_CASE(crc32c_in_parts_equals_the_whole),
           WEIR_CASE(crc32c_sees_every_flipped_bit), WEIR_CASE(xxh3_published_vectors),
           WEIR_CASE(xxh3_leaves_no_upper_halves), WEIR_CASE(bytes_are_little_endian_on_every_machine))
