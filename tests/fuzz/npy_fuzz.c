/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes become an array whose every number can be read, or one sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <weir/store/snapshot/npy.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_npy_array array;
    int64_t whole;
    double sum = 0;
    if (weir_npy_read("fuzz.npy", data, size, &array)) return 0;
    if (array.count * weir_npy_size(array.type) > size) abort();
    for (uint64_t i = 0; i < array.count; i++) {
        sum += weir_npy_f64(&array, i);
        (void)weir_npy_i64(&array, "fuzz.npy", i, &whole);
    }
    return sum > 1e308 ? -1 : 0;
}
