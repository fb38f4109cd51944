/* SPDX-License-Identifier: Apache-2.0 */
/* wire_test.c - numbers between ranks, against a search over all halves that there are, and a bound of steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/trainer/train/wire.h>

#include "weir_test.h"

#define HALVES    0x7c00u /* the finite ones that are not negative */
#define WIDTH     37u
#define FLOAT_OFF 1e-4 /* of half a step: 127 of them, in floats */

/* By its definition: sign, 5 bits of exponent, 10 of fraction. */
static double value_of(unsigned half) {
    unsigned exponent = half >> 10 & 31, fraction = half & 1023;
    return exponent ? pow(2, (int)exponent - 15) * (1 + fraction / 1024.0) : fraction / 1024.0 * pow(2, -14);
}

/* The nearest; of two that are as near the even one. Values rise with their bits. */
static unsigned nearest(double magnitude) {
    unsigned low = 0, high = HALVES - 1;
    if (magnitude >= value_of(high)) return high;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (value_of(middle) <= magnitude) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double below = magnitude - value_of(low), above = value_of(high) - magnitude;
    if (below != above) return below < above ? low : high;
    return low % 2 ? high : low;
}

static void half_of(float number, unsigned *bitsp, double *backp) {
    weir_real in = (weir_real)number, out;
    uint16_t half;
    weir_train_wire_pack(WEIR_TRAIN_WIRE_HALF, &in, 1, (char *)&half);
    weir_train_wire_unpack(WEIR_TRAIN_WIRE_HALF, (const char *)&half, 1, &out);
    *bitsp = half;
    *backp = (double)out;
}

static void every_half_is_itself(void **state) {
    (void)state;
    for (unsigned half = 0; half < HALVES; half++) {
        for (int sign = 1; sign >= -1; sign -= 2) {
            unsigned bits;
            double back;
            half_of((float)(sign * value_of(half)), &bits, &back);
            assert_int_equal(bits & 0x7fff, half);
            assert_true(back == sign * value_of(half));
        }
    }
}

static void a_half_is_the_nearest(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (unsigned i = 0; i < 200000; i++) {
        unsigned bits, at = (unsigned)weir_rng_below(&rng, HALVES - 1);
        double between = i % 3 ? weir_rng_double(&rng) : 0.5; /* a tie, often */
        double wanted = value_of(at) + between * (value_of(at + 1) - value_of(at)), back;
        float number = (float)wanted;
        if (i % 2) number = -number;
        half_of(number, &bits, &back);
        if ((bits & 0x7fff) != nearest(fabs((double)number)) || bits >> 15 != i % 2)
            fail_msg("%.9g became %04x, not %04x", (double)number, bits, nearest(fabs((double)number)));
    }
    const float beyond[] = {65504, 65519, 65520, 1e30f, 3e38f};
    for (unsigned i = 0; i < 5; i++) {
        unsigned bits;
        double back;
        half_of(beyond[i], &bits, &back);
        assert_true(back == 65504);
        half_of(-beyond[i], &bits, &back);
        assert_true(back == -65504);
    }
}

/* Within half of a step of the row's largest, which comes back as it was. */
static void int8_is_within_half_a_step(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (unsigned round = 0; round < 20000; round++) {
        weir_real in[WIDTH], out[WIDTH];
        uint32_t width = (uint32_t)weir_rng_below(&rng, WIDTH + 1), largest = 0;
        double scale = pow(10, (double)weir_rng_below(&rng, 60) - 30);
        char bytes[sizeof(float) + WIDTH];
        for (uint32_t i = 0; i < width; i++) {
            in[i] = (weir_real)(round % 10 ? scale * weir_rng_normal(&rng) : 0);
            if (fabs((double)in[i]) > fabs((double)in[largest])) largest = i;
        }
        assert_int_equal(weir_train_wire_bytes(WEIR_TRAIN_WIRE_INT8, width), width ? sizeof(float) + width : 0);
        weir_train_wire_pack(WEIR_TRAIN_WIRE_INT8, in, width, bytes);
        weir_train_wire_unpack(WEIR_TRAIN_WIRE_INT8, bytes, width, out);
        for (uint32_t i = 0; i < width; i++)
            assert_true(fabs((double)in[i] - (double)out[i]) <= fabs((double)in[largest]) / 254 * (1 + FLOAT_OFF));
        assert_true(width == 0 || out[largest] == in[largest]);
    }
}

static void floats_are_themselves(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    weir_real in[WIDTH], out[WIDTH];
    char bytes[sizeof in];
    for (uint32_t i = 0; i < WIDTH; i++)
        in[i] = (weir_real)weir_rng_normal(&rng);
    assert_int_equal(weir_train_wire_bytes(WEIR_TRAIN_WIRE_FLOATS, WIDTH), sizeof in);
    assert_int_equal(weir_train_wire_bytes(WEIR_TRAIN_WIRE_HALF, WIDTH), 2 * WIDTH);
    weir_train_wire_pack(WEIR_TRAIN_WIRE_FLOATS, in, WIDTH, bytes);
    weir_train_wire_unpack(WEIR_TRAIN_WIRE_FLOATS, bytes, WIDTH, out);
    assert_memory_equal(in, out, sizeof in);
}

WEIR_TESTS(WEIR_CASE(every_half_is_itself), WEIR_CASE(a_half_is_the_nearest), WEIR_CASE(int8_is_within_half_a_step),
           WEIR_CASE(floats_are_themselves))
