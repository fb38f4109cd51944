/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_device.c - the emulator's functions where there is a real device in its place: what they would look for is left to
 * compute-sanitizer, and what they would change cannot be changed.
 */
#include "emulator.h"
#include "weir_test.h"

void emu_reset(uint64_t seed) {
    (void)seed;
}

const emu_finding *emu_findings(size_t *count) {
    *count = 0;
    return NULL;
}

void emu_print_findings(void) {}

emu_counted emu_counts(void) {
    return (emu_counted){0};
}

void emu_limit(size_t bytes) {
    (void)bytes;
    weir_test_skip("a device has the memory that it has");
}
