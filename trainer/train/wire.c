/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - floats as halves and as steps, with no help from the processor: the same bits on every machine. */
#include <math.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/trainer/train/wire.h>

#define HALF_MAX   65504.0f
#define INT8_STEPS 127.0f

static const char *const wire_names[WEIR_TRAIN_WIRES] = {"floats", "half", "int8"};

const char *weir_train_wire_name(weir_train_wire wire) {
    WEIR_ASSERT(wire < WEIR_TRAIN_WIRES);
    return wire_names[wire];
}

/* The exponent's bias is 15 instead of 127; below 2^-14 a half has fewer bits, in steps of 2^-24. */
static uint16_t wire_half_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float magnitude = fabsf(number);
    if (magnitude >= HALF_MAX) return sign | 0x7bff;
    if (magnitude < 0x1p-14f) return sign | (uint16_t)nearbyintf(magnitude * 0x1p24f);
    uint32_t kept = (bits & 0x7fffffff) - ((127u - 15u) << 23), rest = kept & 0x1fff, half = kept >> 13;
    half += rest > 0x1000 || (rest == 0x1000 && half & 1); /* a carry into the exponent is the next power of two */
    return sign | (uint16_t)(half < 0x7bff ? half : 0x7bff);
}

static float wire_float_of(uint16_t half) {
    float sign = half & 0x8000 ? -1.0f : 1.0f;
    uint32_t exponent = half >> 10 & 0x1f, bits = half & 0x3ff;
    if (exponent == 0) return sign * (float)bits * 0x1p-24f;
    return sign * ldexpf((float)(bits | 0x400), (int)exponent - 25);
}

size_t weir_train_wire_bytes(weir_train_wire wire, uint32_t width) {
    if (wire == WEIR_TRAIN_WIRE_FLOATS) return width * sizeof(weir_real);
    if (wire == WEIR_TRAIN_WIRE_HALF) return width * sizeof(uint16_t);
    return width ? sizeof(float) + width : 0;
}

void weir_train_wire_pack(weir_train_wire wire, const weir_real *numbers, uint32_t width, char *bytes) {
    float most = 0;
    if (wire == WEIR_TRAIN_WIRE_FLOATS) {
        memcpy(bytes, numbers, width * sizeof *numbers);
        return;
    }
    for (uint32_t i = 0; wire == WEIR_TRAIN_WIRE_HALF && i < width; i++) {
        uint16_t half = wire_half_of((float)numbers[i]);
        memcpy(bytes + i * sizeof half, &half, sizeof half);
    }
    if (wire == WEIR_TRAIN_WIRE_HALF || width == 0) return;
    for (uint32_t i = 0; i < width; i++)
        most = fmaxf(most, fabsf((float)numbers[i]));
    memcpy(bytes, &most, sizeof most);
    for (uint32_t i = 0; i < width; i++)
        bytes[sizeof most + i] = (char)(most > 0 ? (int)nearbyintf((float)numbers[i] / most * INT8_STEPS) : 0);
}

void weir_train_wire_unpack(weir_train_wire wire, const char *bytes, uint32_t width, weir_real *numbers) {
    float most = 0;
    if (wire == WEIR_TRAIN_WIRE_FLOATS) {
        memcpy(numbers, bytes, width * sizeof *numbers);
        return;
    }
    for (uint32_t i = 0; wire == WEIR_TRAIN_WIRE_HALF && i < width; i++) {
        uint16_t half;
        memcpy(&half, bytes + i * sizeof half, sizeof half);
        numbers[i] = (weir_real)wire_float_of(half);
    }
    if (wire == WEIR_TRAIN_WIRE_HALF || width == 0) return;
    memcpy(&most, bytes, sizeof most);
    for (uint32_t i = 0; i < width; i++)
        numbers[i] = (weir_real)((float)(signed char)bytes[sizeof most + i] / INT8_STEPS * most);
}
