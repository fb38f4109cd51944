/* SPDX-License-Identifier: Apache-2.0 */
/* siphash_test.c - SipHash-2-4 against its authors' published vectors, and against libsodium's. */
#include "weir_test.h"

#include <string.h>

#include <sodium.h>

#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#define ROUNDS 20000u

/* Key 00 01 … 0f, message 00 01 … of so many bytes: vectors.h of the reference implementation. */
static const struct {
    size_t length;
    uint8_t output[8];
} short_vectors[] = {
    {0, {0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72}},
    {1, {0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74}},
    {15, {0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1}}, /* also appendix A of the paper */
};

static const struct {
    size_t length;
    uint8_t output[16];
} long_vectors[] = {
    {0, {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93}},
    {1, {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45}},
};

static void count_up(uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)i;
}

static void published_vectors(void **state) {
    (void)state;
    uint8_t key[WEIR_SIPHASH_KEY_BYTES], message[64];
    uint64_t words[2];
    count_up(key, sizeof key);
    count_up(message, sizeof message);
    for (size_t i = 0; i < sizeof short_vectors / sizeof short_vectors[0]; i++) {
        assert_true(weir_siphash(key, message, short_vectors[i].length) == weir_get_u64(short_vectors[i].output));
    }
    for (size_t i = 0; i < sizeof long_vectors / sizeof long_vectors[0]; i++) {
        weir_siphash128(key, message, long_vectors[i].length, words);
        assert_true(words[0] == weir_get_u64(long_vectors[i].output));
        assert_true(words[1] == weir_get_u64(long_vectors[i].output + 8));
    }
}

/* Any key, any message, at any alignment: the two agree on every bit. */
static void as_libsodium_has_it(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = weir_test_rounds(ROUNDS); round > 0; round--) {
        uint8_t key[16], bytes[300 + 8], small[8], large[16];
        uint64_t words[2];
        size_t at = weir_rng_below(&rng, 8), length = weir_rng_below(&rng, 300);
        for (size_t i = 0; i < sizeof key; i++)
            key[i] = (uint8_t)weir_rng_u32(&rng);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)weir_rng_u32(&rng);
        crypto_shorthash(small, bytes + at, length, key);
        crypto_shorthash_siphashx24(large, bytes + at, length, key);
        assert_true(weir_siphash(key, bytes + at, length) == weir_get_u64(small));
        weir_siphash128(key, bytes + at, length, words);
        assert_true(words[0] == weir_get_u64(large) && words[1] == weir_get_u64(large + 8));
    }
}

WEIR_TESTS(WEIR_CASE(published_vectors), WEIR_CASE(as_libsodium_has_it))
