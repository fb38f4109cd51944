/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - numbers of a row on their way between ranks: as they are, or in fewer bytes and not quite as they are.
 *
 *   floats   as they are
 *   half     IEEE 754 binary16: 11 bits of each number, the nearest, ties to even; beyond 65504 it is 65504
 *   int8     the row's largest magnitude, as a float, and of each number the nearest of 255 steps up to it
 */
#ifndef WEIR_TRAINER_TRAIN_WIRE_H
#define WEIR_TRAINER_TRAIN_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/inference/kernel/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_train_wire {
    WEIR_TRAIN_WIRE_FLOATS,
    WEIR_TRAIN_WIRE_HALF,
    WEIR_TRAIN_WIRE_INT8,
    WEIR_TRAIN_WIRES
} weir_train_wire;

const char *weir_train_wire_name(weir_train_wire wire);

/* Of a row of so many numbers. */
size_t weir_train_wire_bytes(weir_train_wire wire, uint32_t width);
/* Numbers are finite.  [any] */
void weir_train_wire_pack(weir_train_wire wire, const weir_real *numbers, uint32_t width, char *bytes);
void weir_train_wire_unpack(weir_train_wire wire, const char *bytes, uint32_t width, weir_real *numbers);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_TRAIN_WIRE_H */
